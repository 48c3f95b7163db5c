/* The door of schedules: calls and what their answers mean, the table, and walking through it. */
#include <time.h>

#include "base/log.h"
#include "trigger/schedule.h"

#define BUSY_ROUNDS   20 /* while other transactions are at the same item */
#define BUSY_PAUSE_MS 10

/* ---- calling ---- */

static enum schedule_end answer_sort(const struct schedules *schedules, const char *operation, int status,
                                     struct slice reply)
{
    struct arena arena = {0};
    struct slice name, message;
    enum schedule_end end = SCHEDULE_FAILED;
    if (status == 200) return SCHEDULE_FINE;
    dynamo_error(reply, &arena, &name, &message);
    enum dynamo_fault fault = dynamo_fault(status, name);
    struct dynamo_cancellation why = {0};
    if (fault == DYNAMO_CANCELLED) why = dynamo_cancellation(reply, &arena);
    if (fault == DYNAMO_MISSING)
        end = SCHEDULE_MISSING;
    else if (fault == DYNAMO_CONDITION || why.has_failed)
        end = SCHEDULE_MOVED;
    else if (fault == DYNAMO_CONFLICT || (why.may_pass && !why.is_refused))
        end = SCHEDULE_BUSY;
    else
        log_line("schedules: %s on %.*s failed: %.*s: %.*s", operation, SLICE_ARG(schedules->table),
                 SLICE_ARG(name), SLICE_ARG(message));
    arena_free(&arena);
    return end;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000L}, NULL);
}

enum schedule_end schedule_ask_once(struct schedules *schedules, const char *operation,
                                    const struct buf *request, struct buf *reply)
{
    reply->len = 0;
    int status = schedules->doors.call(schedules->doors.self, slice_of(operation), buf_view(request), reply);
    return answer_sort(schedules, operation, status, buf_view(reply));
}

enum schedule_end schedule_ask(struct schedules *schedules, const char *operation, const struct buf *request,
                               struct buf *reply)
{
    enum schedule_end end = schedule_ask_once(schedules, operation, request, reply);
    for (int i = 0; end == SCHEDULE_BUSY && i < BUSY_ROUNDS; i++) {
        pause_ms(BUSY_PAUSE_MS);
        end = schedule_ask_once(schedules, operation, request, reply);
    }
    return end == SCHEDULE_BUSY ? SCHEDULE_FAILED : end;
}

/* ---- the table ---- */

/* The group that schedules are in when nothing is said. */
static bool default_group_make(struct schedules *schedules)
{
    struct buf request = {0}, reply = {0};
    int64_t now_ms = clock_now_ms(schedules->trigger->options.clock);
    buf_printf(&request,
               "{\"TableName\":\"%.*s\",\"Item\":{\"group\":{\"S\":\"" SCHEDULE_GROUPS "\"},"
               "\"name\":{\"S\":\"" SCHEDULE_DEFAULT "\"},\"state\":{\"S\":\"ACTIVE\"},"
               "\"created\":{\"N\":\"%lld\"},\"changed\":{\"N\":\"%lld\"},\"tags\":{\"M\":{}}},"
               "\"ConditionExpression\":\"attribute_not_exists(#name)\","
               "\"ExpressionAttributeNames\":{\"#name\":\"name\"}}",
               SLICE_ARG(schedules->table), (long long)now_ms, (long long)now_ms);
    enum schedule_end end = schedule_ask(schedules, "PutItem", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    return end == SCHEDULE_FINE || end == SCHEDULE_MOVED;
}

bool schedule_table_make(struct schedules *schedules)
{
    const struct dynamo_table table = {.name = schedules->table, .hash = "group", .range = "name", .range_type = 'S'};
    char error[256];
    pthread_mutex_lock(&schedules->lock);
    bool is_there = schedules->table_is_there;
    pthread_mutex_unlock(&schedules->lock);
    if (is_there) return true;
    if (!dynamo_table_make_by(schedules->doors.call, schedules->doors.self, &table, error, sizeof error)) {
        log_line("schedules: %s", error);
        return false;
    }
    if (!default_group_make(schedules)) return false;
    pthread_mutex_lock(&schedules->lock);
    schedules->table_is_there = true;
    pthread_mutex_unlock(&schedules->lock);
    return true;
}

/* ---- items ---- */

void schedule_put_key(struct buf *out, const struct schedules *schedules, struct slice group,
                      struct slice name)
{
    buf_printf(out, "{\"TableName\":\"%.*s\",\"Key\":{\"group\":{\"S\":", SLICE_ARG(schedules->table));
    json_put_string(out, group);
    buf_text(out, "},\"name\":{\"S\":");
    json_put_string(out, name);
    buf_text(out, "}}");
}

/* Enters the member of a reply; false when there is none. */
static bool member_enter(struct json_reader *reader, struct slice wanted)
{
    struct slice name;
    if (json_peek(reader) != JSON_OBJECT) return false;
    for (json_enter(reader); json_member(reader, &name); json_skip(reader))
        if (slice_equal(name, wanted)) return true;
    return false;
}

enum schedule_end schedule_load(struct schedules *schedules, struct arena *arena, struct slice group,
                                struct slice name, struct schedule *out)
{
    struct buf request = {0}, reply = {0};
    struct json_reader reader;
    schedule_put_key(&request, schedules, group, name);
    buf_text(&request, ",\"ConsistentRead\":true}");
    enum schedule_end end = schedule_ask(schedules, "GetItem", &request, &reply);
    json_begin(&reader, arena_copy(arena, buf_view(&reply)), arena);
    if (end == SCHEDULE_FINE && (!member_enter(&reader, SLICE("Item")) || !schedule_from_item(&reader, out)))
        end = SCHEDULE_MISSING;
    buf_free(&request);
    buf_free(&reply);
    return end;
}

/* ---- walking ---- */

static void put_page_request(struct buf *out, const struct schedules *schedules, struct slice group,
                             struct slice after_group, struct slice after_name)
{
    buf_printf(out, "{\"TableName\":\"%.*s\",\"ConsistentRead\":true", SLICE_ARG(schedules->table));
    if (group.data) {
        buf_text(out, ",\"KeyConditionExpression\":\"#group = :group\","
                      "\"ExpressionAttributeNames\":{\"#group\":\"group\"},"
                      "\"ExpressionAttributeValues\":{\":group\":{\"S\":");
        json_put_string(out, group);
        buf_text(out, "}}");
    }
    if (after_name.data) {
        buf_text(out, ",\"ExclusiveStartKey\":{\"group\":{\"S\":");
        json_put_string(out, after_group);
        buf_text(out, "},\"name\":{\"S\":");
        json_put_string(out, after_name);
        buf_text(out, "}}");
    }
    buf_byte(out, '}');
}

/* One page; *after is the key to go on behind, with NULL data at the end. False when it was stopped. */
static bool page_visit(struct slice page, struct arena *arena, schedule_visit *each, void *context,
                       struct schedule *after)
{
    struct json_reader reader;
    struct slice name;
    *after = (struct schedule){0};
    json_begin(&reader, page, arena);
    for (json_enter(&reader); json_member(&reader, &name);) {
        if (slice_equal(name, SLICE("LastEvaluatedKey"))) {
            schedule_from_item(&reader, after);
        } else if (slice_equal(name, SLICE("Items"))) {
            for (json_enter(&reader); json_element(&reader);)
                if (!each(context, &reader)) return false;
        } else {
            json_skip(&reader);
        }
    }
    return !json_failed(&reader);
}

enum schedule_end schedule_each(struct schedules *schedules, struct slice group, struct slice after_group,
                                struct slice after_name, schedule_visit *each, void *context)
{
    struct arena arena = {0};
    struct buf request = {0}, reply = {0};
    enum schedule_end end;
    bool goes_on;
    do {
        struct schedule after;
        request.len = 0;
        put_page_request(&request, schedules, group, after_group, after_name);
        end = schedule_ask(schedules, group.data ? "Query" : "Scan", &request, &reply);
        if (end != SCHEDULE_FINE) break;
        goes_on = page_visit(arena_copy(&arena, buf_view(&reply)), &arena, each, context, &after);
        after_group = after.group;
        after_name = after.name;
    } while (goes_on && after_name.data);
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    return end;
}
