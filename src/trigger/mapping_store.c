/* The table of mappings, and the streams that they read, through the door. Calls wait; workers and the keeper
 * make them. The items' form is described in mapping_item.c. */
#include "trigger/mapping.h"

#include "base/log.h"
#include "base/raw.h"

static void put_table(struct buf *out, const struct trigger *trigger)
{
    buf_printf(out, "{\"TableName\":\"%.*smappings\"", SLICE_ARG(trigger->prefix));
}

/* One call; the status, and the exception's name where it failed. */
struct reply {
    int status;
    struct slice error, message;
    struct buf text;
};

static void call_door(struct trigger *trigger, const char *operation, struct buf *request,
                      struct arena *arena, struct reply *out)
{
    *out = (struct reply){0};
    out->status = dynamo_call(trigger->options.dynamo, slice_of(operation), buf_view(request), &out->text);
    if (out->status != 200) dynamo_error(buf_view(&out->text), arena, &out->error, &out->message);
    if (out->error.data) out->error = arena_copy(arena, out->error);
    if (out->message.data) out->message = arena_copy(arena, out->message);
    buf_free(request);
}

static bool reply_fails(const struct reply *reply, const char *error)
{
    return reply->status != 200 && slice_equal(reply->error, slice_of(error));
}

/* What the world does not do is no fault of who asked. */
static bool refuse_service(struct refusal *refusal, struct arena *arena, const struct reply *reply)
{
    return decline(refusal, arena, 500, "ServiceException",
                   "The database did not answer as it should: %.*s: %.*s", SLICE_ARG(reply->error),
                   SLICE_ARG(reply->message));
}

/* ---- scan ---- */

struct scan {
    struct trigger *trigger;
    void (*found)(void *context, const struct settings *settings);
    void *context;
    struct slice next; /* LastEvaluatedKey, raw */
};

static void read_items(struct scan *scan, struct json_reader *reader, struct arena *arena)
{
    struct slice raw;
    if (json_peek(reader) != JSON_ARRAY || !json_enter(reader)) return;
    while (json_element(reader)) {
        /* A second reader for the item, so that one that is not ours spoils no other. */
        struct json_reader item;
        struct settings settings;
        if (!raw_take(reader, &raw)) break;
        json_begin(&item, raw, arena);
        if (mapping_item_parse(&item, arena, &settings))
            scan->found(scan->context, &settings);
        else
            log_line("an item of the table %.*smappings is not a mapping and is left alone",
                     SLICE_ARG(scan->trigger->prefix));
    }
}

static void read_page(struct scan *scan, struct slice text, struct arena *arena)
{
    struct json_reader reader;
    struct slice name, raw;
    scan->next = SLICE_NONE;
    json_begin(&reader, text, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, SLICE("Items"))) {
            read_items(scan, &reader, arena);
        } else {
            if (raw_take(&reader, &raw) && slice_equal(name, SLICE("LastEvaluatedKey")))
                scan->next = arena_copy(arena, raw);
        }
    }
}

bool mapping_table_scan(struct trigger *trigger,
                        void (*found)(void *context, const struct settings *settings), void *context,
                        char *error, size_t error_len)
{
    struct scan scan = {trigger, found, context, SLICE_NONE};
    struct arena arena = {0};
    bool good = true;
    do {
        struct buf request = {0};
        struct reply reply;
        put_table(&request, trigger);
        buf_text(&request, ",\"ConsistentRead\":true");
        if (scan.next.data) buf_printf(&request, ",\"ExclusiveStartKey\":%.*s", SLICE_ARG(scan.next));
        buf_byte(&request, '}');
        call_door(trigger, "Scan", &request, &arena, &reply);
        scan.next = SLICE_NONE;
        if (reply.status == 200) read_page(&scan, buf_view(&reply.text), &arena);
        /* No table, no mappings: it is made with the first one. */
        good = reply.status == 200 || reply_fails(&reply, "ResourceNotFoundException");
        if (!good)
            snprintf(error, error_len, "The table of mappings cannot be read: %.*s: %.*s",
                     SLICE_ARG(reply.error), SLICE_ARG(reply.message));
        buf_free(&reply.text);
    } while (good && scan.next.data);
    arena_free(&arena);
    return good;
}

/* ---- items ---- */

static void put_put(struct buf *out, const struct trigger *trigger, const struct settings *settings)
{
    put_table(out, trigger);
    buf_text(out, ",\"Item\":");
    put_mapping_item(out, settings);
    if (settings->revision == 1)
        buf_text(out, ",\"ConditionExpression\":\"attribute_not_exists(id)\"}");
    else
        buf_printf(
            out,
            ",\"ConditionExpression\":\"revision = :before\","
            "\"ExpressionAttributeValues\":{\":before\":{\"N\":\"%llu\"}}}",
            (unsigned long long)settings->revision - 1);
}

enum stored mapping_table_put(struct trigger *trigger, const struct settings *settings, struct arena *arena,
                              struct refusal *refusal)
{
    const struct dynamo_table table = {
        .name = arena_printf(arena, "%.*smappings", SLICE_ARG(trigger->prefix)), .hash = "id"};
    char error[256];
    for (int attempt = 0;; attempt++) {
        struct buf request = {0};
        struct reply reply;
        put_put(&request, trigger, settings);
        call_door(trigger, "PutItem", &request, arena, &reply);
        buf_free(&reply.text);
        if (reply.status == 200) return STORED;
        if (reply_fails(&reply, "ConditionalCheckFailedException")) return STORED_CONFLICT;
        if (attempt > 0 || !reply_fails(&reply, "ResourceNotFoundException")) {
            refuse_service(refusal, arena, &reply);
            return STORED_NOT;
        }
        if (!dynamo_table_make_transacting(trigger->options.dynamo, &table, error, sizeof error)) {
            decline(refusal, arena, 500, "ServiceException", "The mapping was not stored: %s", error);
            return STORED_NOT;
        }
    }
}

bool mapping_table_get(struct trigger *trigger, struct slice id, struct arena *arena, struct settings *out,
                       bool *is_there, struct refusal *refusal)
{
    struct buf request = {0};
    struct reply reply;
    struct json_reader reader;
    struct slice name;
    *is_there = false;
    put_table(&request, trigger);
    buf_text(&request, ",\"ConsistentRead\":true,\"Key\":{\"id\":{\"S\":");
    json_put_string(&request, id);
    buf_text(&request, "}}}");
    call_door(trigger, "GetItem", &request, arena, &reply);
    struct slice text = arena_copy(arena, buf_view(&reply.text));
    buf_free(&reply.text);
    if (reply_fails(&reply, "ResourceNotFoundException")) return true;
    if (reply.status != 200) return refuse_service(refusal, arena, &reply);
    json_begin(&reader, text, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return true;
    while (json_member(&reader, &name))
        if (!slice_equal(name, SLICE("Item")))
            json_skip(&reader);
        else
            *is_there = mapping_item_parse(&reader, arena, out);
    return true;
}

bool mapping_table_delete(struct trigger *trigger, struct slice id)
{
    struct arena arena = {0};
    struct buf request = {0};
    struct reply reply;
    put_table(&request, trigger);
    buf_text(&request, ",\"Key\":{\"id\":{\"S\":");
    json_put_string(&request, id);
    buf_text(&request, "}}}");
    call_door(trigger, "DeleteItem", &request, &arena, &reply);
    bool gone = reply.status == 200 || reply_fails(&reply, "ResourceNotFoundException");
    buf_free(&reply.text);
    arena_free(&arena);
    return gone;
}

/* ---- sources ---- */

/* The table's name in arn:...:table/NAME, or a bare name; empty when it is neither. */
static struct slice table_of(struct slice source)
{
    const char *mark = source.len ? memmem(source.data, source.len, ":table/", 7) : NULL;
    bool is_arn = slice_starts(source, SLICE("arn:"));
    if (is_arn && !mark) return SLICE_NONE;
    struct slice name = is_arn ? slice_from(source, (size_t)(mark + 7 - source.data)) : source;
    return memchr(name.data, '/', name.len) || memchr(name.data, ':', name.len) ? SLICE_NONE : name;
}

/* A text member of an object within the reply, e.g. LatestStreamArn of Table. */
static struct slice inner_text(struct slice text, const char *outer, const char *inner, struct arena *arena)
{
    struct json_reader reader;
    struct slice name, found = SLICE_NONE;
    json_begin(&reader, text, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return SLICE_NONE;
    while (json_member(&reader, &name)) {
        if (!slice_equal(name, slice_of(outer)) || json_peek(&reader) != JSON_OBJECT) {
            json_skip(&reader);
            continue;
        }
        json_enter(&reader);
        while (json_member(&reader, &name))
            if (slice_equal(name, slice_of(inner)) && json_peek(&reader) == JSON_STRING)
                json_string(&reader, &found);
            else
                json_skip(&reader);
    }
    return found;
}

static void describe_table(struct trigger *trigger, struct slice table, struct arena *arena,
                           struct reply *reply, struct slice *text)
{
    struct buf request = {0};
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, table);
    buf_byte(&request, '}');
    call_door(trigger, "DescribeTable", &request, arena, reply);
    *text = arena_copy(arena, buf_view(&reply->text));
    buf_free(&reply->text);
}

bool mapping_newest_stream(struct trigger *trigger, struct slice table, struct arena *arena,
                           struct slice *arn)
{
    struct reply reply;
    struct slice text;
    describe_table(trigger, table, arena, &reply, &text);
    *arn = reply.status == 200 ? inner_text(text, "Table", "LatestStreamArn", arena) : SLICE_NONE;
    return reply.status == 200 || reply_fails(&reply, "ResourceNotFoundException");
}

/* The table's name in arn:...:table/NAME/stream/LABEL. */
static struct slice table_of_stream(struct slice arn)
{
    const char *name = memmem(arn.data, arn.len, ":table/", 7);
    const char *end = name ? memmem(arn.data, arn.len, "/stream/", 8) : NULL;
    return end && end > name + 7 ? (struct slice){name + 7, (size_t)(end - name - 7)} : SLICE_NONE;
}

/* Of a page of ListStreams: the first stream behind `after`, where it is before the one found so far. */
static void read_streams(struct slice page, struct slice after, struct arena *arena, struct slice *found)
{
    struct raw_walk walk;
    struct slice stream;
    raw_walk_begin(&walk, arena, raw_member(arena, page, "Streams"));
    while (raw_walk_next(&walk, NULL, &stream)) {
        struct slice arn = raw_string(arena, raw_member(arena, stream, "StreamArn"));
        if (slice_compare(arn, after) > 0 && slice_compare(arn, *found) < 0) *found = arn;
    }
}

/* Streams of one table differ by the time at which they began, which ends their ARN. Between the one that is
 * over and the newest there may be others; where the clock went back in the meantime the newest is taken. */
bool mapping_next_stream(struct trigger *trigger, struct slice stream_arn, struct arena *arena,
                         struct slice *arn)
{
    struct slice table = table_of_stream(stream_arn), start = SLICE_NONE;
    *arn = SLICE_NONE;
    if (!table.len || !mapping_newest_stream(trigger, table, arena, arn)) return false;
    if (!arn->len || slice_equal(*arn, stream_arn)) {
        *arn = SLICE_NONE;
        return true;
    }
    do {
        struct buf request = {0};
        struct reply reply;
        buf_text(&request, "{\"TableName\":");
        json_put_string(&request, table);
        if (start.len) buf_printf(&request, ",\"ExclusiveStartStreamArn\":%.*s", SLICE_ARG(start));
        buf_byte(&request, '}');
        call_door(trigger, "ListStreams", &request, arena, &reply);
        struct slice page = arena_copy(arena, buf_view(&reply.text));
        buf_free(&reply.text);
        if (reply.status != 200) return false;
        read_streams(page, stream_arn, arena, arn);
        start = raw_member(arena, page, "LastEvaluatedStreamArn");
    } while (raw_kind(start) == JSON_STRING);
    return true;
}

static bool newest_stream(struct trigger *trigger, struct slice table, struct arena *arena, struct slice *arn,
                          struct refusal *refusal)
{
    struct reply reply;
    struct slice text;
    describe_table(trigger, table, arena, &reply, &text);
    if (reply.status >= 500 || reply.status == 0) return refuse_service(refusal, arena, &reply);
    *arn = reply.status == 200 ? inner_text(text, "Table", "LatestStreamArn", arena) : SLICE_NONE;
    if (arn->len) return true;
    if (reply.status == 200)
        return REFUSE_VALUE(refusal, arena, "Stream not found: the table %.*s has no stream.",
                            SLICE_ARG(table));
    return REFUSE_VALUE(refusal, arena, "Stream not found: there is no table %.*s.", SLICE_ARG(table));
}

static bool check_stream(struct trigger *trigger, struct slice arn, struct arena *arena,
                         struct refusal *refusal)
{
    struct buf request = {0};
    struct reply reply;
    buf_text(&request, "{\"Limit\":1,\"StreamArn\":");
    json_put_string(&request, arn);
    buf_byte(&request, '}');
    call_door(trigger, "DescribeStream", &request, arena, &reply);
    buf_free(&reply.text);
    if (reply.status == 200) return true;
    if (reply.status >= 500 || reply.status == 0) return refuse_service(refusal, arena, &reply);
    return REFUSE_VALUE(refusal, arena, "Stream not found: %.*s", SLICE_ARG(arn));
}

bool mapping_source_find(struct trigger *trigger, struct slice source, struct arena *arena, struct slice *arn,
                         struct refusal *refusal)
{
    bool is_arn = slice_starts(source, SLICE("arn:"));
    const char *service = is_arn ? memmem(source.data, source.len, ":dynamodb:", 10) : NULL;
    struct slice table = table_of(source);
    if (is_arn && !service)
        return REFUSE_VALUE(
            refusal, arena,
            "Unrecognized event source, must be a dynamodb stream. Unsupported source arn : %.*s",
            SLICE_ARG(source));
    if (table.len) return newest_stream(trigger, table, arena, arn, refusal);
    if (!slice_contains(source, SLICE("/stream/")))
        return REFUSE_VALUE(refusal, arena, "Unrecognized event source.");
    *arn = source;
    return check_stream(trigger, source, arena, refusal);
}
