/* EventBridge Scheduler's API of schedules. Handlers wait for the door, so each runs on a worker's thread. */
#include <stdarg.h>

#include "trigger/schedule.h"

#define PAGE_MAX      100
#define START_LATE_MS (5 * 60000) /* the service: how far a StartDate may lie back */
#define UPDATE_ROUNDS 5           /* against firings and others' updates */
#define ROOM_OF(room) ((struct trigger *)(room))

/* ---- replies ---- */

static int status_of(const char *type)
{
    if (strcmp(type, "ResourceNotFoundException") == 0) return 404;
    if (strcmp(type, "ConflictException") == 0) return 409;
    if (strcmp(type, "ServiceQuotaExceededException") == 0) return 402;
    return strcmp(type, "InternalServerException") == 0 ? 500 : 400;
}

void schedule_done(struct rest_call *call)
{
    if (!call->status) call->status = 200;
    call->done(call);
}

void schedule_error(struct rest_call *call, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(call->arena, format, args);
    va_end(args);
    call->status = status_of(type);
    call->reply->len = 0;
    rest_add_header(call, "x-amzn-ErrorType: %s", type);
    buf_text(call->reply, "{\"Message\":");
    json_put_string(call->reply, message);
    buf_byte(call->reply, '}');
    schedule_done(call);
}

void schedule_fault_reply(struct rest_call *call, const struct schedule_fault *fault)
{
    schedule_error(call, fault->type, "%s", fault->text);
}

void schedule_door_error(struct rest_call *call)
{
    schedule_error(call, "InternalServerException", "The schedules' table cannot be reached.");
}

static void reply_arn(struct rest_call *call, const struct trigger *trigger, const struct schedule *schedule)
{
    buf_text(call->reply, "{\"ScheduleArn\":");
    json_put_string(call->reply, schedule_arn(call->arena, trigger, schedule->group, schedule->name));
    buf_byte(call->reply, '}');
    schedule_done(call);
}

static void no_such_schedule(struct rest_call *call, struct slice name)
{
    schedule_error(call, "ResourceNotFoundException", "Schedule %.*s does not exist.", SLICE_ARG(name));
}

/* ---- creating ---- */

static bool dates_check(const struct schedule *schedule, int64_t now_ms, struct schedule_fault *fault)
{
    if (schedule->start_ms != SCHEDULE_NONE && schedule->start_ms < now_ms - START_LATE_MS)
        return schedule_fail(fault, "ValidationException",
                             "The StartDate you specify cannot be earlier than 5 minutes ago.");
    if (schedule->end_ms != SCHEDULE_NONE && schedule->end_ms < now_ms)
        return schedule_fail(fault, "ValidationException", "The EndDate you specify cannot be in the past.");
    return true;
}

static bool is_enabled(const struct schedule *schedule)
{
    return slice_equal(schedule->state, SLICE("ENABLED"));
}

/* A schedule that begins now. */
static bool timing_begin(struct arena *arena, struct schedule *schedule, int64_t now_ms,
                         struct schedule_fault *fault)
{
    schedule->anchor_ms = schedule->start_ms == SCHEDULE_NONE ? now_ms : schedule->start_ms;
    struct timetable *timetable = schedule_timetable(arena, schedule, fault);
    if (!timetable) return false;
    schedule->next_ms = is_enabled(schedule) ? schedule_first(schedule, timetable, now_ms) : SCHEDULE_NONE;
    return true;
}

/* The group must be there; the default one always is. */
static void put_group_check(struct buf *out, const struct schedules *schedules, struct slice group)
{
    if (slice_equal(group, SLICE(SCHEDULE_DEFAULT))) return;
    buf_text(out, "{\"ConditionCheck\":");
    schedule_put_key(out, schedules, SLICE(SCHEDULE_GROUPS), group);
    buf_text(out, ",\"ConditionExpression\":\"#state = :active\","
                  "\"ExpressionAttributeNames\":{\"#state\":\"state\"},"
                  "\"ExpressionAttributeValues\":{\":active\":{\"S\":\"ACTIVE\"}}}},");
}

static enum schedule_end schedule_insert(struct schedules *schedules, const struct schedule *schedule)
{
    struct buf request = {0}, reply = {0};
    buf_text(&request, "{\"TransactItems\":[");
    put_group_check(&request, schedules, schedule->group);
    buf_printf(&request, "{\"Put\":{\"TableName\":\"%.*s\",\"Item\":", SLICE_ARG(schedules->table));
    schedule_put_item(&request, schedule);
    buf_text(&request, ",\"ConditionExpression\":\"attribute_not_exists(#name)\","
                       "\"ExpressionAttributeNames\":{\"#name\":\"name\"}}}]}");
    enum schedule_end end = schedule_ask(schedules, "TransactWriteItems", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    return end;
}

static bool is_same_request(const struct schedule *a, const struct schedule *b)
{
    return a->token.len && slice_equal(a->token, b->token) && a->token_sum == b->token_sum;
}

/* It could not be put: because it is there, or because its group is not. */
static void insert_refused(struct trigger *trigger, struct rest_call *call, const struct schedule *schedule)
{
    struct schedule found;
    enum schedule_end end = schedule_load(trigger->schedules, call->arena, schedule->group, schedule->name,
                                          &found);
    if (end == SCHEDULE_FAILED)
        schedule_door_error(call);
    else if (end == SCHEDULE_MISSING)
        schedule_error(call, "ResourceNotFoundException", "Schedule group %.*s does not exist.",
                       SLICE_ARG(schedule->group));
    else if (is_same_request(schedule, &found))
        reply_arn(call, trigger, schedule);
    else
        schedule_error(call, "ConflictException", "Schedule %.*s already exists.", SLICE_ARG(schedule->name));
}

static void create(void *room, struct rest_call *call)
{
    struct trigger *trigger = ROOM_OF(room);
    struct schedule schedule;
    struct schedule_fault fault;
    int64_t now_ms = clock_now_ms(trigger->options.clock);
    if (!schedule_read(call->arena, call->body, call->parameters[0], &schedule, &fault) ||
        !dates_check(&schedule, now_ms, &fault) || !timing_begin(call->arena, &schedule, now_ms, &fault)) {
        schedule_fault_reply(call, &fault);
        return;
    }
    if (schedules_count(trigger->schedules) >= LIMIT_SCHEDULES) {
        schedule_error(call, "ServiceQuotaExceededException", "There are %d schedules already.",
                       LIMIT_SCHEDULES);
        return;
    }
    schedule.created_ms = schedule.changed_ms = schedule.revision = now_ms;
    enum schedule_end end = SCHEDULE_FAILED;
    if (schedule_table_make(trigger->schedules)) end = schedule_insert(trigger->schedules, &schedule);
    if (end == SCHEDULE_FINE) {
        schedules_note(trigger->schedules, &schedule);
        reply_arn(call, trigger, &schedule);
    } else if (end == SCHEDULE_MOVED) {
        insert_refused(trigger, call, &schedule);
    } else {
        schedule_door_error(call);
    }
}

/* ---- updating ---- */

static bool has_same_timing(const struct schedule *a, const struct schedule *b)
{
    return slice_equal(a->expression, b->expression) && slice_equal(a->zone, b->zone) &&
           a->start_ms == b->start_ms && a->end_ms == b->end_ms && slice_equal(a->state, b->state);
}

/* What an update keeps of the schedule before it: a due time that is to come stays, unless the timing is
 * another. One that is switched on again goes on counting, and what passed meanwhile is no missed run. */
static bool timing_go_on(struct arena *arena, struct schedule *schedule, const struct schedule *before,
                         int64_t now_ms, struct schedule_fault *fault)
{
    schedule->created_ms = before->created_ms;
    schedule->changed_ms = now_ms;
    schedule->revision = now_ms > before->revision ? now_ms : before->revision + 1;
    bool counts_on = slice_equal(schedule->expression, before->expression) &&
                     slice_equal(schedule->zone, before->zone) && schedule->start_ms == before->start_ms;
    if (!counts_on)
        return dates_check(schedule, now_ms, fault) && timing_begin(arena, schedule, now_ms, fault);
    schedule->anchor_ms = before->anchor_ms;
    schedule->next_ms = before->next_ms;
    if (has_same_timing(schedule, before)) return true;
    struct timetable *timetable = schedule_timetable(arena, schedule, fault);
    if (!timetable) return false;
    schedule->next_ms = is_enabled(schedule) ? schedule_first(schedule, timetable, now_ms) : SCHEDULE_NONE;
    return true;
}

/* Replaces the item if it still is what was read: also its `next`, or what was fired meanwhile would be fired
 * again. */
static enum schedule_end schedule_replace(struct schedules *schedules, const struct schedule *schedule,
                                          const struct schedule *before)
{
    struct buf request = {0}, reply = {0};
    buf_printf(&request, "{\"TableName\":\"%.*s\",\"Item\":", SLICE_ARG(schedules->table));
    schedule_put_item(&request, schedule);
    buf_printf(&request,
               ",\"ExpressionAttributeNames\":{\"#next\":\"next\"},\"ConditionExpression\":\"revision = "
               ":revision AND %s\",\"ExpressionAttributeValues\":{\":revision\":{\"N\":\"%lld\"}",
               before->next_ms == SCHEDULE_NONE ? "attribute_not_exists(#next)" : "#next = :next",
               (long long)before->revision);
    if (before->next_ms != SCHEDULE_NONE)
        buf_printf(&request, ",\":next\":{\"N\":\"%lld\"}", (long long)before->next_ms);
    buf_text(&request, "}}");
    enum schedule_end end = schedule_ask(schedules, "PutItem", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    return end;
}

/* One attempt. MOVED: it has changed meanwhile. */
static enum schedule_end update_once(struct trigger *trigger, struct rest_call *call,
                                     struct schedule *schedule, struct schedule_fault *fault)
{
    struct schedule before;
    int64_t now_ms = clock_now_ms(trigger->options.clock);
    enum schedule_end end = schedule_load(trigger->schedules, call->arena, schedule->group, schedule->name,
                                          &before);
    if (end != SCHEDULE_FINE || is_same_request(schedule, &before)) return end;
    if (!timing_go_on(call->arena, schedule, &before, now_ms, fault)) return SCHEDULE_FINE;
    end = schedule_replace(trigger->schedules, schedule, &before);
    if (end == SCHEDULE_FINE) schedules_note(trigger->schedules, schedule);
    return end;
}

static void update(void *room, struct rest_call *call)
{
    struct trigger *trigger = ROOM_OF(room);
    struct schedule schedule;
    struct schedule_fault fault = {0};
    if (!schedule_read(call->arena, call->body, call->parameters[0], &schedule, &fault)) {
        schedule_fault_reply(call, &fault);
        return;
    }
    enum schedule_end end = SCHEDULE_MOVED;
    fault.type = NULL;
    for (int i = 0; end == SCHEDULE_MOVED && i < UPDATE_ROUNDS; i++)
        end = update_once(trigger, call, &schedule, &fault);
    if (fault.type)
        schedule_fault_reply(call, &fault);
    else if (end == SCHEDULE_FINE)
        reply_arn(call, trigger, &schedule);
    else if (end == SCHEDULE_MISSING)
        no_such_schedule(call, schedule.name);
    else if (end == SCHEDULE_MOVED)
        schedule_error(call, "ConflictException", "Schedule %.*s is being changed by somebody else.",
                       SLICE_ARG(schedule.name));
    else
        schedule_door_error(call);
}

/* ---- getting and deleting ---- */

/* The group of the query and the name of the path; false after an error. */
static bool names_read(struct rest_call *call, struct slice *group, struct slice *name)
{
    struct schedule_fault fault;
    *name = call->parameters[0];
    *group = rest_query(call, "groupName");
    if (!group->data) *group = SLICE(SCHEDULE_DEFAULT);
    bool fine = schedule_name_check(*name, "name", &fault) &&
                schedule_name_check(*group, "groupName", &fault);
    if (!fine) schedule_fault_reply(call, &fault);
    return fine;
}

static void get(void *room, struct rest_call *call)
{
    struct trigger *trigger = ROOM_OF(room);
    struct schedule schedule;
    struct slice group, name;
    if (!names_read(call, &group, &name)) return;
    enum schedule_end end = schedule_load(trigger->schedules, call->arena, group, name, &schedule);
    if (end == SCHEDULE_FAILED) {
        schedule_door_error(call);
    } else if (end == SCHEDULE_MISSING) {
        no_such_schedule(call, name);
    } else {
        schedule_put_reply(call->reply, call->arena, trigger, &schedule);
        schedule_done(call);
    }
}

static void delete_schedule(void *room, struct rest_call *call)
{
    struct schedules *schedules = ROOM_OF(room)->schedules;
    struct buf request = {0}, reply = {0};
    struct slice group, name, token = rest_query(call, "clientToken");
    if (!names_read(call, &group, &name)) return;
    schedule_put_key(&request, schedules, group, name);
    buf_text(&request, ",\"ConditionExpression\":\"attribute_exists(#name)\","
                       "\"ExpressionAttributeNames\":{\"#name\":\"name\"}}");
    enum schedule_end end = schedule_ask(schedules, "DeleteItem", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    if (end == SCHEDULE_FAILED) {
        schedule_door_error(call);
    } else if (end == SCHEDULE_FINE || schedules_has_deleted(schedules, token, name)) {
        schedules_forget(schedules, group, name);
        schedules_note_deletion(schedules, token, name);
        buf_text(call->reply, "{}");
        schedule_done(call);
    } else {
        no_such_schedule(call, name);
    }
}

/* ---- listing ---- */

void schedule_put_token(struct buf *out, struct slice group, struct slice name)
{
    struct buf key = {0};
    buf_printf(&key, "%.*s/%.*s", SLICE_ARG(group), SLICE_ARG(name));
    json_put_base64(out, buf_view(&key));
    buf_free(&key);
}

static bool token_read(struct rest_call *call, struct schedule_page *out)
{
    struct slice token = rest_query(call, "NextToken"), key;
    if (!token.data) return true;
    if (base64_decode(call->arena, token, &key) != BASE64_OK || !key.len) return false;
    const char *slash = memchr(key.data, '/', key.len);
    if (!slash) return false;
    out->after_group = (struct slice){key.data, (size_t)(slash - key.data)};
    out->after_name = slice_from(key, out->after_group.len + 1);
    return out->after_group.len && out->after_name.len;
}

bool schedule_page_read(struct rest_call *call, struct schedule_page *out)
{
    struct slice max = rest_query(call, "MaxResults");
    struct schedule_fault fault;
    unsigned long long number = PAGE_MAX;
    *out = (struct schedule_page){.prefix = rest_query(call, "NamePrefix"),
                                  .state = rest_query(call, "State")};
    bool fine = true;
    if (max.data && (!slice_to_u64(max, PAGE_MAX, &number) || !number))
        fine = schedule_constraint(&fault, "maxResults", max, "Member must have value between 1 and 100");
    else if (!token_read(call, out))
        fine = schedule_fail(&fault, "ValidationException", "Invalid NextToken.");
    else
        fine = schedule_choice_check(out->state, "ENABLED, DISABLED", "state", &fault) &&
               schedule_name_check(out->prefix, "namePrefix", &fault);
    out->max = (size_t)number;
    if (!fine) schedule_fault_reply(call, &fault);
    return fine;
}

struct listing {
    struct trigger *trigger;
    struct rest_call *call;
    struct schedule_page page;
    size_t count;
    struct slice last_group, last_name;
    bool has_more;
};

static bool list_visit(void *context, struct json_reader *reader)
{
    struct listing *listing = context;
    struct schedule schedule;
    if (!schedule_from_item(reader, &schedule)) return !json_failed(reader);
    if (slice_equal(schedule.group, SLICE(SCHEDULE_GROUPS))) return true;
    if (listing->page.prefix.data && !slice_starts(schedule.name, listing->page.prefix)) return true;
    if (listing->page.state.data && !slice_equal(schedule.state, listing->page.state)) return true;
    if (listing->count == listing->page.max) {
        listing->has_more = true;
        return false;
    }
    if (listing->count++) buf_byte(listing->call->reply, ',');
    schedule_put_summary(listing->call->reply, listing->call->arena, listing->trigger, &schedule);
    listing->last_group = arena_copy(listing->call->arena, schedule.group);
    listing->last_name = arena_copy(listing->call->arena, schedule.name);
    return true;
}

static void list(void *room, struct rest_call *call)
{
    struct listing listing = {.trigger = ROOM_OF(room), .call = call};
    struct schedules *schedules = listing.trigger->schedules;
    struct slice group = rest_query(call, "ScheduleGroup");
    if (!schedule_page_read(call, &listing.page)) return;
    if (group.data && !schedule_group_exists(schedules, call, group)) return;
    buf_text(call->reply, "{\"Schedules\":[");
    enum schedule_end end = schedule_each(schedules, group, listing.page.after_group, listing.page.after_name,
                                          list_visit, &listing);
    if (end == SCHEDULE_FAILED) {
        schedule_door_error(call);
        return;
    }
    buf_byte(call->reply, ']');
    if (listing.has_more) {
        buf_text(call->reply, ",\"NextToken\":");
        schedule_put_token(call->reply, listing.last_group, listing.last_name);
    }
    buf_byte(call->reply, '}');
    schedule_done(call);
}

/* ---- routes ---- */

#define ON_WORKER(name, work)                                                                                \
    static void name(void *room, struct rest_call *call)                                                     \
    {                                                                                                        \
        rest_workers_run(ROOM_OF(room)->workers, work, room, call);                                          \
    }

ON_WORKER(serve_create, create)
ON_WORKER(serve_update, update)
ON_WORKER(serve_get, get)
ON_WORKER(serve_delete, delete_schedule)
ON_WORKER(serve_list, list)
ON_WORKER(serve_group_create, schedule_group_create)
ON_WORKER(serve_group_get, schedule_group_get)
ON_WORKER(serve_group_delete, schedule_group_delete)
ON_WORKER(serve_group_list, schedule_group_list)
ON_WORKER(serve_tag_add, schedule_tag_add)
ON_WORKER(serve_tag_remove, schedule_tag_remove)
ON_WORKER(serve_tag_list, schedule_tag_list)

const struct rest_route schedule_routes[] = {
    {"POST", "/schedules/{Name}", serve_create},
    {"PUT", "/schedules/{Name}", serve_update},
    {"GET", "/schedules/{Name}", serve_get},
    {"DELETE", "/schedules/{Name}", serve_delete},
    {"GET", "/schedules", serve_list},
    {"POST", "/schedule-groups/{Name}", serve_group_create},
    {"GET", "/schedule-groups/{Name}", serve_group_get},
    {"DELETE", "/schedule-groups/{Name}", serve_group_delete},
    {"GET", "/schedule-groups", serve_group_list},
    {"POST", "/tags/{ResourceArn+}", serve_tag_add},
    {"DELETE", "/tags/{ResourceArn+}", serve_tag_remove},
    {"GET", "/tags/{ResourceArn+}", serve_tag_list},
};
const size_t schedule_route_count = sizeof schedule_routes / sizeof *schedule_routes;
