/* Destinations: where it is told that a batch or an asynchronous call has failed, or that a call has
 * succeeded.
 *
 * Settings name them by AWS's ARNs, so that what works there works here: a queue (SQS), a topic (SNS) or a
 * bucket (S3) is a queue of ours with that name (queues.c); a function is called through the queue of
 * asynchronous calls, and so is a URL. A DynamoDB table gets an item with the attributes of a queue's, so it
 * must have the key `id`, or `queue` and `id`, of strings.
 *
 * Everything becomes members of the caller's transaction, so that a document is told once or not at all. */
#include "base/clock.h"
#include "base/limits.h"
#include "func/target.h"

enum destination_kind { TO_NOWHERE, TO_QUEUE, TO_TABLE, TO_FUNCTION, TO_URL };

struct destination {
    enum destination_kind kind;
    struct slice name; /* of the queue or the table; else the text as it is */
};

/* ---- what a text names ---- */

/* Cuts off up to the next colon; false when there is none. */
static bool take_field(struct slice *rest, struct slice *field)
{
    const char *colon = rest->len ? memchr(rest->data, ':', rest->len) : NULL;
    if (!colon) return false;
    *field = (struct slice){rest->data, (size_t)(colon - rest->data)};
    *rest = slice_from(*rest, field->len + 1);
    return true;
}

/* arn:aws:SERVICE:REGION:ACCOUNT:RESOURCE */
static struct destination destination_of(struct slice text)
{
    struct slice rest = text, arn, partition, service, region, account;
    if (target_is_url(text)) return (struct destination){TO_URL, text};
    if (!take_field(&rest, &arn) || !slice_equal(arn, SLICE("arn")) || !take_field(&rest, &partition) ||
        !take_field(&rest, &service) || !take_field(&rest, &region) || !take_field(&rest, &account) ||
        !rest.len)
        return (struct destination){0};
    bool is_queue = slice_equal(service, SLICE("sqs")) || slice_equal(service, SLICE("sns")) ||
                    slice_equal(service, SLICE("s3"));
    if (is_queue && rest.len <= LIMIT_QUEUE_NAME_BYTES) return (struct destination){TO_QUEUE, rest};
    if (slice_equal(service, SLICE("lambda")) && slice_starts(rest, SLICE("function:")))
        return (struct destination){TO_FUNCTION, text};
    struct slice prefix = SLICE("table/");
    if (slice_equal(service, SLICE("dynamodb")) && slice_starts(rest, prefix) && rest.len > prefix.len &&
        !memchr(rest.data + prefix.len, '/', rest.len - prefix.len))
        return (struct destination){TO_TABLE, slice_from(rest, prefix.len)};
    return (struct destination){0};
}

/* ---- putting ---- */

bool destination_put(struct func *func, struct slice text, struct slice document, struct slice id,
                     struct buf *members, unsigned *count)
{
    struct destination destination = destination_of(text);
    int64_t now_ms = clock_now_ms(func->options.clock);
    size_t start = members->len, bytes = 0;
    unsigned added = 0;
    bool fine = destination.kind != TO_NOWHERE && id.len && id.len <= LIMIT_RANGE_KEY_BYTES;
    if (!fine) return false;
    if (destination.kind == TO_QUEUE)
        added = queues_put(func, destination.name, id, document, now_ms, members, &bytes) ? 1 : 0;
    else if (destination.kind == TO_TABLE)
        added = queues_put_into(destination.name, destination.name, id, document, now_ms, members, &bytes)
                    ? 1
                    : 0;
    else
        added = func_queue_put(func, text, document, SLICE_NONE, id, members);
    if (!added) members->len = start;
    *count += added;
    return added > 0;
}

/* ---- checking ---- */

/* The two texts of an object like {"AttributeName":"id","KeyType":"HASH"}. */
static bool take_pair(struct json_reader *json, const char *second_name, struct slice *first,
                      struct slice *second)
{
    struct slice name;
    *first = *second = SLICE_NONE;
    if (json_peek(json) != JSON_OBJECT || !json_enter(json)) return false;
    while (json_member(json, &name)) {
        struct slice *into = slice_equal(name, SLICE("AttributeName"))  ? first
                             : slice_equal(name, slice_of(second_name)) ? second
                                                                        : NULL;
        if (!(into && json_peek(json) == JSON_STRING ? json_string(json, into) : json_skip(json)))
            return false;
    }
    return first->len && second->len;
}

/* What a table's description says of its keys. */
struct key_look {
    struct slice hash, range; /* names */
    bool id_is_text, queue_is_text;
};

static void look_at_schema(struct json_reader *json, struct key_look *look)
{
    struct slice name, type;
    json_enter(json);
    while (json_element(json) && take_pair(json, "KeyType", &name, &type))
        *(slice_equal(type, SLICE("RANGE")) ? &look->range : &look->hash) = name;
}

static void look_at_types(struct json_reader *json, struct key_look *look)
{
    struct slice name, type;
    json_enter(json);
    while (json_element(json) && take_pair(json, "AttributeType", &name, &type)) {
        bool is_text = slice_equal(type, SLICE("S"));
        if (slice_equal(name, SLICE("id"))) look->id_is_text = is_text;
        if (slice_equal(name, SLICE("queue"))) look->queue_is_text = is_text;
    }
}

static void look_at_table(struct json_reader *json, struct key_look *look)
{
    struct slice name;
    json_enter(json);
    while (json_member(json, &name)) {
        bool is_list = json_peek(json) == JSON_ARRAY;
        if (is_list && slice_equal(name, SLICE("KeySchema")))
            look_at_schema(json, look);
        else if (is_list && slice_equal(name, SLICE("AttributeDefinitions")))
            look_at_types(json, look);
        else
            json_skip(json);
    }
}

/* Whether the table has the hash key `id`, or `queue` and the range key `id`. */
static const char *keys_fault(struct slice reply)
{
    struct arena arena = {0};
    struct json_reader json;
    struct slice name;
    struct key_look look = {0};
    json_begin(&json, reply, &arena);
    if (json_peek(&json) == JSON_OBJECT && json_enter(&json))
        while (json_member(&json, &name)) {
            if (slice_equal(name, SLICE("Table")) && json_peek(&json) == JSON_OBJECT)
                look_at_table(&json, &look);
            else
                json_skip(&json);
        }
    bool by_id = slice_equal(look.hash, SLICE("id")) && !look.range.len;
    bool by_both = slice_equal(look.hash, SLICE("queue")) && slice_equal(look.range, SLICE("id")) &&
                   look.queue_is_text;
    bool fits = !json_failed(&json) && look.id_is_text && (by_id || by_both);
    arena_free(&arena);
    return fits ? NULL : "the table's key must be \"id\", or \"queue\" and \"id\", of strings";
}

static const char *table_fault(struct func *func, struct slice table)
{
    struct buf request = {0}, reply = {0};
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, table);
    buf_byte(&request, '}');
    int status = dynamo_call(func->options.dynamo, SLICE("DescribeTable"), buf_view(&request), &reply);
    const char *fault = status == 200 ? keys_fault(buf_view(&reply)) : "there is no such table";
    buf_free(&request);
    buf_free(&reply);
    return fault;
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
