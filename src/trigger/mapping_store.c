/* The table of mappings, and the streams that they read, through the door. Calls wait; workers and the keeper
 * make them. The items' form is described in mapping_item.c. */
#include "trigger/mapping.h"

#include "base/attribute.h"
#include "base/compose.h"
#include "base/log.h"

static struct dynamo_reply call_door(struct trigger *trigger, const char *operation, struct arena *arena,
                                     struct slice request)
{
    return dynamo_ask(trigger->options.dynamo, arena, operation, request);
}

/* What the world does not do is no fault of who asked. */
static bool refuse_service(struct refusal *refusal, struct arena *arena, const struct dynamo_reply *reply)
{
    return decline(refusal, arena, 500, "ServiceException",
                   "The database did not answer as it should: %.*s: %.*s", SLICE_ARG(reply->error),
                   SLICE_ARG(reply->message));
}

static struct slice table_name(const struct trigger *trigger, struct arena *arena)
{
    return arena_printf(arena, "%.*smappings", SLICE_ARG(trigger->prefix));
}

/* ---- items ---- */

bool mapping_table_scan(struct trigger *trigger,
                        void (*found)(void *context, const struct settings *settings), void *context,
                        char *error, size_t error_len)
{
    struct arena arena = {0};
    struct dynamo_reply reply;
    struct slice item, next = SLICE_NONE;
    do {
        struct slice table = table_name(trigger, &arena);
        struct slice start = next.data ? compose_in(&arena, ",'ExclusiveStartKey':%A", next) : SLICE("");
        reply = call_door(trigger, "Scan", &arena,
                          compose_in(&arena, "{'TableName':%s,'ConsistentRead':true%A}", table, start));
        if (reply.status != 200) break;
        raw_each (&arena, raw_member(&arena, reply.body, "Items"), &item) {
            struct settings settings;
            if (mapping_item_parse(item, &arena, &settings))
                found(context, &settings);
            else
                log_line("an item of the table %.*s is not a mapping and is left alone", SLICE_ARG(table));
        }
        next = raw_member(&arena, reply.body, "LastEvaluatedKey");
    } while (next.data);
    /* No table, no mappings: it is made with the first one. */
    bool good = reply.status == 200 || reply.fault == DYNAMO_MISSING;
    if (!good)
        snprintf(error, error_len, "The table of mappings cannot be read: %.*s: %.*s", SLICE_ARG(reply.error),
                 SLICE_ARG(reply.message));
    arena_free(&arena);
    return good;
}

/* After a condition that did not hold: an earlier attempt of the door may have put just this. */
static bool is_stored(const struct dynamo_reply *reply, struct slice put, struct arena *arena)
{
    struct settings stored;
    struct buf text = {0};
    if (!mapping_item_parse(raw_member(arena, reply->body, "Item"), arena, &stored)) return false;
    put_mapping_item(&text, &stored);
    bool is_same = slice_equal(buf_view(&text), put);
    buf_free(&text);
    return is_same;
}

enum stored mapping_table_put(struct trigger *trigger, const struct settings *settings, struct arena *arena,
                              struct refusal *refusal)
{
    const struct dynamo_table table = {.name = table_name(trigger, arena), .hash = "id"};
    struct buf text = {0};
    char error[256];
    put_mapping_item(&text, settings);
    struct slice item = arena_take(arena, &text);
    struct slice request =
        settings->revision == 1
            ? compose_in(arena,
                         "{'TableName':%s,'Item':%A,%O,"
                         "'ConditionExpression':'attribute_not_exists(id)'}",
                         table.name, item)
            : compose_in(arena,
                         "{'TableName':%s,'Item':%A,%O,'ConditionExpression':'revision = :before',"
                         "'ExpressionAttributeValues':{':before':%N}}",
                         table.name, item, settings->revision - 1);
    for (int attempt = 0;; attempt++) {
        struct dynamo_reply reply = call_door(trigger, "PutItem", arena, request);
        if (reply.status == 200) return STORED;
        if (reply.fault == DYNAMO_CONDITION) return is_stored(&reply, item, arena) ? STORED : STORED_CONFLICT;
        if (attempt > 0 || reply.fault != DYNAMO_MISSING) {
            refuse_service(refusal, arena, &reply);
            return STORED_NOT;
        }
        if (!dynamo_table_make(trigger->options.dynamo, &table, error, sizeof error)) {
            decline(refusal, arena, 500, "ServiceException", "The mapping was not stored: %s", error);
            return STORED_NOT;
        }
    }
}

static struct dynamo_reply call_key(struct trigger *trigger, const char *operation, struct slice id,
                                    struct arena *arena)
{
    return call_door(
        trigger, operation, arena,
        compose_in(arena, "{'TableName':%s,'Key':{'id':%S}%A}", table_name(trigger, arena), id,
                   strcmp(operation, "GetItem") ? SLICE("") : SLICE(",\"ConsistentRead\":true")));
}

bool mapping_table_get(struct trigger *trigger, struct slice id, struct arena *arena, struct settings *out,
                       bool *is_there, struct refusal *refusal)
{
    struct dynamo_reply reply = call_key(trigger, "GetItem", id, arena);
    *is_there = mapping_item_parse(raw_member(arena, reply.body, "Item"), arena, out);
    return reply.status == 200 || reply.fault == DYNAMO_MISSING || refuse_service(refusal, arena, &reply);
}

bool mapping_table_delete(struct trigger *trigger, struct slice id)
{
    struct arena arena = {0};
    struct dynamo_reply reply = call_key(trigger, "DeleteItem", id, &arena);
    bool gone = reply.status == 200 || reply.fault == DYNAMO_MISSING;
    arena_free(&arena);
    return gone;
}

/* ---- sources ---- */

/* The newest stream of a table; empty: it has none, or could not be asked. */
static struct dynamo_reply describe_table(struct trigger *trigger, struct slice table, struct arena *arena,
                                          struct slice *arn)
{
    struct dynamo_reply reply = call_door(trigger, "DescribeTable", arena,
                                          compose_in(arena, "{'TableName':%s}", table));
    *arn = SLICE_NONE;
    if (reply.status == 200)
        *arn = raw_string(arena,
                          raw_member(arena, raw_member(arena, reply.body, "Table"), "LatestStreamArn"));
    return reply;
}

bool mapping_newest_stream(struct trigger *trigger, struct slice table, struct arena *arena,
                           struct slice *arn)
{
    struct dynamo_reply reply = describe_table(trigger, table, arena, arn);
    return reply.status == 200 || reply.fault == DYNAMO_MISSING;
}

struct slice mapping_table_of(struct slice stream_arn)
{
    struct slice rest = slice_behind(stream_arn, SLICE(":table/")), name = slice_cut(&rest, '/');
    return slice_starts(rest, SLICE("stream/")) ? name : SLICE_NONE;
}

/* Streams of one table differ by the time at which they began, which ends their ARN. Between the one that is
 * over and the newest there may be others; where the clock went back in the meantime the newest is taken. */
bool mapping_next_stream(struct trigger *trigger, struct slice stream_arn, struct arena *arena,
                         struct slice *arn)
{
    struct slice table = mapping_table_of(stream_arn), start = SLICE_NONE, stream;
    struct raw_look look;
    *arn = SLICE_NONE;
    if (!table.len || !mapping_newest_stream(trigger, table, arena, arn)) return false;
    if (!arn->len || slice_equal(*arn, stream_arn)) {
        *arn = SLICE_NONE;
        return true;
    }
    do {
        struct dynamo_reply reply = call_door(
            trigger, "ListStreams", arena,
            start.len ? compose_in(arena, "{'TableName':%s,'ExclusiveStartStreamArn':%A}", table, start)
                      : compose_in(arena, "{'TableName':%s}", table));
        if (reply.status != 200) return false;
        raw_look_begin(&look, arena, raw_member(arena, reply.body, "Streams"));
        while (raw_look_next(&look, NULL, &stream)) {
            struct slice other = raw_string(arena, raw_member(arena, stream, "StreamArn"));
            if (slice_compare(other, stream_arn) > 0 && slice_compare(other, *arn) < 0) *arn = other;
        }
        start = raw_member(arena, reply.body, "LastEvaluatedStreamArn");
    } while (raw_kind(start) == JSON_STRING);
    return true;
}

bool mapping_move_check(struct trigger *trigger, struct slice stream_arn, struct mapping_move *move,
                        struct arena *arena, struct refusal *refusal)
{
    bool is_sequence = move->to.data[0] >= '0' && move->to.data[0] <= '9', is_there = false;
    struct slice start = SLICE_NONE, shard, first = SLICE_NONE;
    uint32_t count = 0;
    struct raw_look look;
    do {
        struct dynamo_reply reply = call_door(
            trigger, "DescribeStream", arena,
            start.len ? compose_in(arena, "{'StreamArn':%s,'ExclusiveStartShardId':%A}", stream_arn, start)
                      : compose_in(arena, "{'StreamArn':%s}", stream_arn));
        if (reply.fault == DYNAMO_MISSING)
            return REFUSE_VALUE(refusal, arena, "Stream not found: %.*s", SLICE_ARG(stream_arn));
        if (reply.status != 200) return refuse_service(refusal, arena, &reply);
        struct slice stream = raw_member(arena, reply.body, "StreamDescription");
        raw_look_begin(&look, arena, raw_member(arena, stream, "Shards"));
        while (raw_look_next(&look, NULL, &shard)) {
            struct slice id = raw_string(arena, raw_member(arena, shard, "ShardId"));
            is_there |= slice_equal(id, move->shard);
            if (!count++) first = id;
        }
        start = raw_member(arena, stream, "LastEvaluatedShardId");
    } while (raw_kind(start) == JSON_STRING);
    if (move->shard.len && !is_there)
        return REFUSE_VALUE(refusal, arena, "The stream has no shard %.*s.", SLICE_ARG(move->shard));
    if (!is_sequence) return true;
    if (!move->shard.len && count != 1)
        return REFUSE_VALUE(
            refusal, arena,
            "A sequence number is one of a shard, and the stream has %u of them: name one by ShardId.",
            count);
    if (!move->shard.len) move->shard = first;
    struct slice request = compose_in(
        arena,
        "{'StreamArn':%s,'ShardId':%s,'ShardIteratorType':'AFTER_SEQUENCE_NUMBER','SequenceNumber':%s}",
        stream_arn, move->shard, move->to);
    struct dynamo_reply reply = call_door(trigger, "GetShardIterator", arena, request);
    if (reply.status >= 500 || !reply.status) return refuse_service(refusal, arena, &reply);
    return reply.status == 200 ||
           REFUSE_VALUE(refusal, arena, "The shard %.*s has no sequence number %.*s: %.*s",
                        SLICE_ARG(move->shard), SLICE_ARG(move->to), SLICE_ARG(reply.message));
}

/* The table's name in arn:...:table/NAME, or a bare name; empty when it is neither. */
static struct slice table_of(struct slice source)
{
    bool is_arn = slice_starts(source, SLICE("arn:"));
    struct slice name = is_arn ? slice_behind(source, SLICE(":table/")) : source;
    return slice_contains(name, SLICE("/")) || slice_contains(name, SLICE(":")) ? SLICE_NONE : name;
}

bool mapping_source_find(struct trigger *trigger, struct slice source, struct arena *arena, struct slice *arn,
                         struct refusal *refusal)
{
    bool is_arn = slice_starts(source, SLICE("arn:"));
    struct slice table = table_of(source);
    struct dynamo_reply reply;
    if (is_arn && !slice_contains(source, SLICE(":dynamodb:")))
        return REFUSE_VALUE(
            refusal, arena,
            "Unrecognized event source, must be a dynamodb stream. Unsupported source arn : %.*s",
            SLICE_ARG(source));
    if (!table.len && !slice_contains(source, SLICE("/stream/")))
        return REFUSE_VALUE(refusal, arena, "Unrecognized event source.");
    *arn = source;
    if (table.len)
        reply = describe_table(trigger, table, arena, arn);
    else
        reply = call_door(trigger, "DescribeStream", arena,
                          compose_in(arena, "{'Limit':1,'StreamArn':%s}", source));
    if (reply.status >= 500 || reply.status == 0) return refuse_service(refusal, arena, &reply);
    if (reply.status == 200 && arn->len) return true;
    if (!table.len) return REFUSE_VALUE(refusal, arena, "Stream not found: %.*s", SLICE_ARG(source));
    return REFUSE_VALUE(refusal, arena,
                        reply.status == 200 ? "Stream not found: the table %.*s has no stream."
                                            : "Stream not found: there is no table %.*s.",
                        SLICE_ARG(table));
}
