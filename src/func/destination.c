/* Destinations: where it is told that a batch or an asynchronous call has failed, or that a call has
 * succeeded.
 *
 * Settings name them by AWS's ARNs, so that what works there works here: a queue (SQS), a topic (SNS) or a
 * bucket (S3) is a queue of ours with that name (queues.c); a function is called through the queue of
 * asynchronous calls, and so is a URL. A DynamoDB table gets an item with the attributes of a queue's, so it
 * must have the key `id`, or `queue` and `id`, of strings.
 *
 * Everything becomes children of the caller's commit (task.h), so that a document is told once or not at all. */
#include "base/clock.h"
#include "base/compose.h"
#include "base/limits.h"
#include "func/letter.h"
#include "func/target.h"

enum destination_kind { TO_NOWHERE, TO_QUEUE, TO_TABLE, TO_FUNCTION, TO_URL };

struct destination {
    enum destination_kind kind;
    struct slice name; /* of the queue or the table; else the text as it is */
};

/* ---- what a text names ---- */

static struct destination destination_of(struct slice text)
{
    static const struct slice table = SLICE("table/");
    struct arn arn;
    if (target_is_url(text)) return (struct destination){TO_URL, text};
    if (!arn_parse(text, &arn)) return (struct destination){0};
    struct slice service = arn.service, resource = arn.resource;
    bool is_queue = slice_equal(service, SLICE("sqs")) || slice_equal(service, SLICE("sns")) ||
                    slice_equal(service, SLICE("s3"));
    if (is_queue && resource.len <= LIMIT_QUEUE_NAME_BYTES) return (struct destination){TO_QUEUE, resource};
    if (slice_equal(service, SLICE("lambda")) && slice_starts(resource, SLICE("function:")))
        return (struct destination){TO_FUNCTION, text};
    if (slice_equal(service, SLICE("dynamodb")) && slice_starts(resource, table) &&
        resource.len > table.len && !memchr(resource.data + table.len, '/', resource.len - table.len))
        return (struct destination){TO_TABLE, slice_from(resource, table.len)};
    return (struct destination){0};
}

/* ---- putting ---- */

bool destination_put(struct func *func, struct slice text, struct slice document, struct slice id,
                     const struct func_call *call, struct buf *members, unsigned *count)
{
    struct destination destination = destination_of(text);
    int64_t now_ms = clock_now_ms(func->options.clock);
    unsigned added;
    if (destination.kind == TO_NOWHERE || !id.len || id.len > LIMIT_RANGE_KEY_BYTES) return false;
    if (destination.kind == TO_QUEUE && !queues_make(func)) return false;
    if (destination.kind == TO_QUEUE)
        added = letter_put(func, destination.name, id, document, call, now_ms, members);
    else if (destination.kind == TO_TABLE)
        added = queues_put(destination.name,
                           &(struct queues_message){destination.name, id, document, SLICE_NONE, 0, now_ms},
                           members) > 0;
    else
        added = func_queue_put(func, &(struct func_call){.function = text, .payload = document, .id = id},
                               members);
    *count += added;
    return added > 0;
}

/* ---- checking ---- */

/* What an entry of a list of objects says: the text of `wanted` where that of `name` is `text`. */
static struct slice find_text(struct arena *arena, struct slice list, const char *name, const char *text,
                              const char *wanted)
{
    struct raw_walk walk;
    struct slice entry;
    raw_walk_begin(&walk, arena, list);
    while (raw_walk_next(&walk, NULL, &entry))
        if (slice_equal(raw_string(arena, raw_member(arena, entry, name)), slice_of(text)))
            return raw_string(arena, raw_member(arena, entry, wanted));
    return SLICE_NONE;
}

/* Whether the table has the hash key `id`, or `queue` and the range key `id`. */
static const char *table_fault(struct func *func, struct slice name)
{
    struct arena arena = {0};
    struct dynamo_reply reply = dynamo_ask(func->options.dynamo, &arena, "DescribeTable",
                                           compose_in(&arena, "{'TableName':%s}", name));
    struct slice table = raw_member(&arena, reply.body, "Table"),
                 keys = raw_member(&arena, table, "KeySchema"),
                 types = raw_member(&arena, table, "AttributeDefinitions");
    struct slice hash = find_text(&arena, keys, "KeyType", "HASH", "AttributeName"),
                 range = find_text(&arena, keys, "KeyType", "RANGE", "AttributeName"),
                 id_type = find_text(&arena, types, "AttributeName", "id", "AttributeType"),
                 queue_type = find_text(&arena, types, "AttributeName", "queue", "AttributeType");
    bool by_id = slice_equal(hash, SLICE("id")) && !range.len;
    bool by_both = slice_equal(hash, SLICE("queue")) && slice_equal(range, SLICE("id")) &&
                   slice_equal(queue_type, SLICE("S"));
    bool fits = slice_equal(id_type, SLICE("S")) && (by_id || by_both);
    arena_free(&arena);
    return reply.status != 200 ? "there is no such table"
           : fits              ? NULL
                               : "the table's key must be \"id\", or \"queue\" and \"id\", of strings";
}

static const char *function_fault(struct func *func, struct slice text)
{
    struct arena arena = {0};
    struct slice arn, name;
    bool found = func_resolve(func, text, &arena, &arn, &name);
    arena_free(&arena);
    return found ? NULL : "there is no such function";
}

const char *destination_fault(struct func *func, struct slice text)
{
    struct destination destination = destination_of(text);
    switch (destination.kind) {
    case TO_QUEUE: return queues_make(func) ? NULL : "the table of queues cannot be made";
    case TO_TABLE: return table_fault(func, destination.name);
    case TO_FUNCTION: return function_fault(func, text);
    case TO_URL: return func_client(func) ? NULL : "this server calls no URLs: libcurl is not to be found";
    case TO_NOWHERE: break;
    }
    return "it is neither the ARN of a queue (SQS, SNS, S3), a function or a DynamoDB table, nor a URL";
}
