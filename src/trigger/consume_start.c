/* A reader's first and last calls: our table is made, LATEST is written down, positions are deleted.
 *
 * LATEST means the moment at which the mapping began, also when the server is started anew before the
 * first record came. The service tells no sequence number for it, only an iterator; so each shard's
 * position keeps that iterator, which is good for a while, and the time, by which older records are left
 * out afterwards. The item "start" comes last: shards that have no position by then came later and are
 * read from their begin. */
#include "base/log.h"
#include "trigger/consume.h"

#define TABLE_WAIT_US 300000 /* between looks at a table that is being made */
#define DELETES_MAX   25     /* of one BatchWriteItem */

/* A request that begins with our table's name. */
static struct task_call *table_call(struct reader *reader, const char *operation)
{
    struct task_call *call = task_call_new(operation);
    buf_text(task_call_request(call), "{\"TableName\":");
    buf_slice(task_call_request(call), buf_view(&reader->consumer->table));
    return call;
}

/* ---- our table ---- */

static bool is_active(struct slice reply)
{
    static const char *const outer[] = {"Table"}, *const inner[] = {"TableStatus"};
    struct slice table, status;
    return raw_members(task_arena(), reply, outer, &table, 1) &&
           raw_members(task_arena(), table, inner, &status, 1) &&
           slice_equal(raw_string(task_arena(), status), SLICE("ACTIVE"));
}

static void make_table(struct reader *reader)
{
    struct task_call *call = table_call(reader, "CreateTable");
    buf_text(task_call_request(call),
             ",\"BillingMode\":\"PAY_PER_REQUEST\","
             "\"AttributeDefinitions\":[{\"AttributeName\":\"mapping\",\"AttributeType\":\"S\"},"
             "{\"AttributeName\":\"shard\",\"AttributeType\":\"S\"}],\"KeySchema\":["
             "{\"AttributeName\":\"mapping\",\"KeyType\":\"HASH\"},"
             "{\"AttributeName\":\"shard\",\"KeyType\":\"RANGE\"}]}");
    task_send(call); /* made by us, by somebody else, or not at all: looking again tells */
}

/* One reader asks; the others wait for its answer. */
bool positions_table_wait(struct reader *reader)
{
    struct consumer *consumer = reader->consumer;
    while (!reader_is_leaving(reader) && consumer->positions_state != POSITIONS_READY) {
        if (consumer->positions_state == POSITIONS_ASKED) {
            task_await(&reader->changed, TASK_NEVER);
            continue;
        }
        consumer->positions_state = POSITIONS_ASKED;
        struct task_call *call = table_call(reader, "DescribeTable");
        buf_byte(task_call_request(call), '}');
        struct task_reply reply = task_send(call);
        consumer->positions_state = POSITIONS_UNKNOWN;
        if (reply.fault == DYNAMO_FINE && is_active(reply.body)) {
            consumer->positions_state = POSITIONS_READY;
            reader->failures = 0;
        } else if (reply.fault == DYNAMO_MISSING) {
            consumer->positions_state = POSITIONS_ASKED;
            make_table(reader);
            consumer->positions_state = POSITIONS_UNKNOWN;
        } else {
            if (reply.fault != DYNAMO_FINE && !reader->failures)
                log_line("triggers: the table of positions cannot be described: %.*s: %.*s",
                         SLICE_ARG(reply.error), SLICE_ARG(task_reply_message(&reply)));
            for (struct reader *other = consumer->readers; other; other = other->next) reader_touch(other);
            if (reply.fault == DYNAMO_FINE)
                reader_pause(reader, TABLE_WAIT_US);
            else
                reader_failed(reader);
        }
        for (struct reader *other = consumer->readers; other; other = other->next) reader_touch(other);
    }
    return consumer->positions_state == POSITIONS_READY;
}

/* ---- LATEST ---- */

/* Then it came into being after the mapping did: all of it is wanted. */
static bool continues_a_marked_one(const struct reader *reader, const struct shard *shard)
{
    const struct shard *parent = shard->parent[0] ? find_shard(reader, slice_of(shard->parent)) : NULL;
    return parent && parent->seen.exists && !parent->seen.ended;
}

/* The next shard that LATEST means and that has no position. */
static struct shard *next_to_mark(struct reader *reader)
{
    for (struct shard *shard = reader->shards; shard; shard = shard->next)
        if (!shard->seen.exists && !shard->is_marked && shard_is_listed(shard) &&
            !continues_a_marked_one(reader, shard))
            return shard;
    return NULL;
}

/* Writes down where LATEST is in the shard. False: it failed. */
static bool mark(struct reader *reader, struct shard *shard)
{
    struct slice iterator = SLICE("");
    if (!shard->is_closed) {
        struct task_call *call = task_call_new("GetShardIterator");
        put_iterator_question(task_call_request(call), shard, SLICE("LATEST"), NULL);
        struct task_reply reply = task_send(call);
        if (reply.fault == DYNAMO_MISSING) return true; /* trimmed since */
        if (reply.fault != DYNAMO_FINE || !iterator_read(reply.body, task_arena(), &iterator)) return false;
    }
    struct new_position fresh = {.at = POINT_LATEST,
                                 .lanes = reader->mapping->lanes,
                                 .is_ended = shard->is_closed,
                                 .iterator = iterator};
    struct task_call *call = task_call_new("PutItem");
    put_position_create(task_call_request(call), shard, &fresh);
    enum dynamo_fault fault = task_send(call).fault;
    return fault == DYNAMO_FINE || fault == DYNAMO_CONDITION;
}

bool start_write(struct reader *reader)
{
    struct shard *shard;
    while ((shard = next_to_mark(reader)) && !reader_is_leaving(reader)) {
        struct arena_mark before = arena_mark(task_arena());
        shard->is_marked = mark(reader, shard);
        arena_rewind(task_arena(), before);
        if (!shard->is_marked) reader_failed(reader);
    }
    if (reader_is_leaving(reader)) return false;
    struct task_call *call = table_call(reader, "PutItem");
    buf_text(task_call_request(call), ",\"Item\":");
    put_position_key(task_call_request(call), reader, SLICE("start"));
    buf_byte(task_call_request(call), '}');
    if (task_send(call).fault == DYNAMO_FINE) return true;
    reader_failed(reader);
    return false;
}

/* ---- the end ---- */

static void put_deletion(void *context, struct slice key)
{
    struct buf *out = context;
    if (out->data[out->len - 1] != '[') buf_byte(out, ',');
    buf_text(out, "{\"DeleteRequest\":{\"Key\":");
    buf_slice(out, key);
    buf_text(out, "}}");
}

static struct task_reply some_keys(struct reader *reader)
{
    struct task_call *call = table_call(reader, "Query");
    struct buf *out = task_call_request(call);
    buf_text(out, ",\"ConsistentRead\":true,\"KeyConditionExpression\":\"#m = :m\","
                  "\"ProjectionExpression\":\"#m, #s\",\"Limit\":");
    buf_decimal(out, DELETES_MAX);
    buf_text(out, ",\"ExpressionAttributeNames\":{\"#m\":\"mapping\",\"#s\":\"shard\"},"
                  "\"ExpressionAttributeValues\":{\":m\":{\"S\":");
    json_put_string(out, reader->mapping->id);
    buf_text(out, "}}}");
    return task_send(call);
}

/* All items of the mapping, a few at a time, until there is none. */
bool positions_delete(struct reader *reader)
{
    static const char *const names[] = {"Items"};
    struct consumer *consumer = reader->consumer;
    struct arena_mark before = arena_mark(task_arena());
    while (!consumer->is_stopping) {
        arena_rewind(task_arena(), before);
        struct task_reply reply = some_keys(reader);
        struct slice items = SLICE_NONE;
        if (reply.fault == DYNAMO_MISSING) return true;
        if (reply.fault == DYNAMO_FINE) {
            raw_members(task_arena(), reply.body, names, &items, 1);
            items = arena_copy(task_arena(), items);
            if (items.len <= 2) return true;
            struct task_call *call = task_call_new("BatchWriteItem");
            buf_text(task_call_request(call), "{\"RequestItems\":{");
            buf_slice(task_call_request(call), buf_view(&consumer->table));
            buf_text(task_call_request(call), ":[");
            each_element(items, task_arena(), put_deletion, task_call_request(call));
            buf_text(task_call_request(call), "]}}");
            reply = task_send(call);
        }
        if (reply.fault == DYNAMO_FINE) continue;
        reader->failures++;
        struct task_moment until = task_after_us(
            consumer->host, retry_after_us(reader->failures, 10000000, consumer_random(consumer)));
        while (!consumer->is_stopping && !task_moment_is_over(consumer->host, &until))
            task_await(&reader->changed, until);
    }
    return false;
}
