/* EventBridge Scheduler's API of schedules. Each request is a task on the host of schedules. */
#include <stdarg.h>

#include "trigger/schedule.h"

#define PAGE_MAX      100
#define START_LATE_MS (5 * 60000) /* the service: how far a StartDate may lie back */
#define CHANGE_ROUNDS 5           /* against firings and others' changes */

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

bool schedule_error(struct rest_call *call, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(call->arena, format, args);
    va_end(args);
    call->status = status_of(type);
    call->reply->len = 0;
    rest_add_header(call, "x-amzn-ErrorType: %s", type);
    compose(call->reply, "{'Message':%s}", message);
    schedule_done(call);
    return false;
}

bool schedule_decode(struct rest_call *call, const struct shape_field *fields, uint32_t count,
                     struct shape_node *nodes)
{
    struct slice message;
    const char *fault = shape_read(call, fields, count, nodes, &message);
    bool is_broken = fault && strcmp(fault, "InvalidRequestContentException") == 0; /* Lambda's word for it */
    return !fault ||
           schedule_error(call, is_broken ? "SerializationException" : fault, "%.*s", SLICE_ARG(message));
}

bool schedule_is_fine(struct rest_call *call, enum dynamo_fault fault, const char *what, struct slice name)
{
    if (fault == DYNAMO_MISSING)
        schedule_error(call, "ResourceNotFoundException", "%s %.*s does not exist.", what, SLICE_ARG(name));
    else if (fault != DYNAMO_FINE)
        schedule_error(call, "InternalServerException", "The schedules' table cannot be reached.");
    return fault == DYNAMO_FINE;
}

static void reply_arn(struct rest_call *call, const struct trigger *trigger, const struct schedule *schedule)
{
    compose(call->reply, "{'ScheduleArn':%s}",
            schedule_arn(call->arena, trigger, schedule->group, schedule->name));
    schedule_done(call);
}

/* ---- timing ---- */

/* These answer false after an error. */
static bool dates_check(struct rest_call *call, const struct schedule *schedule, int64_t now_ms)
{
    if (schedule->start_ms != SCHEDULE_NONE && schedule->start_ms < now_ms - START_LATE_MS)
        return schedule_error(call, "ValidationException",
                              "The StartDate you specify cannot be earlier than 5 minutes ago.");
    if (schedule->end_ms != SCHEDULE_NONE && schedule->end_ms < now_ms)
        return schedule_error(call, "ValidationException", "The EndDate you specify cannot be in the past.");
    return true;
}

static bool next_find(struct rest_call *call, struct schedule *schedule, int64_t now_ms)
{
    struct slice why;
    struct timetable *timetable = schedule_timetable(task_arena(), schedule, &why);
    if (!timetable) return schedule_error(call, "ValidationException", "%.*s", SLICE_ARG(why));
    bool is_enabled = slice_equal(schedule->state, SLICE("ENABLED"));
    schedule->next_ms = is_enabled ? schedule_first(schedule, timetable, now_ms) : SCHEDULE_NONE;
    return true;
}

/* A schedule that begins now. */
static bool timing_begin(struct rest_call *call, struct schedule *schedule, int64_t now_ms)
{
    schedule->anchor_ms = schedule->start_ms == SCHEDULE_NONE ? now_ms : schedule->start_ms;
    return dates_check(call, schedule, now_ms) && next_find(call, schedule, now_ms);
}

/* What an update keeps of the schedule before it: a due time that is to come stays, unless the timing is
 * another. One that is switched on again goes on counting, and what passed meanwhile is no missed run. */
static bool timing_go_on(struct rest_call *call, struct schedule *schedule, const struct schedule *before,
                         int64_t now_ms)
{
    schedule->created_ms = before->created_ms;
    schedule->changed_ms = now_ms;
    schedule->revision = now_ms > before->revision ? now_ms : before->revision + 1;
    if (!slice_equal(schedule->expression, before->expression) ||
        !slice_equal(schedule->zone, before->zone) || schedule->start_ms != before->start_ms)
        return timing_begin(call, schedule, now_ms);
    schedule->anchor_ms = before->anchor_ms;
    schedule->next_ms = before->next_ms;
    if (schedule->end_ms == before->end_ms && slice_equal(schedule->state, before->state)) return true;
    return next_find(call, schedule, now_ms);
}

/* ---- creating ---- */

/* What is there is what was asked for: by a request before this one, or by this one, whose write the door has made and
 * not heard of. */
static bool is_done_already(const struct schedule *asked, const struct schedule *found)
{
    bool is_own = asked->created_ms == found->created_ms && asked->revision == found->revision;
    return slice_equal(asked->token, found->token) && asked->token_sum == found->token_sum &&
           (asked->token.len || is_own);
}

/* Puts the item if there is none, or if the one that is there was never finished. */
static enum dynamo_fault schedule_put(struct schedules *schedules, const struct schedule *schedule)
{
    enum dynamo_fault fault =
        schedules_call(
            schedules, "PutItem",
            "'Item':%A,'ConditionExpression':'attribute_not_exists(#name) OR attribute_exists(#pending)',%#",
            schedule_item(task_arena(), schedule))
            .fault;
    return fault == DYNAMO_MISSING ? DYNAMO_IN_USE : fault; /* the table will be made again */
}

/* A5. CONDITION: there is one already; MISSING: there is no such group, or it is being deleted; IN_USE: the table was
 * gone, or what was put is, for its group was deleted and made again meanwhile, or somebody makes the same schedule. */
static enum dynamo_fault schedule_insert(struct schedules *schedules, struct schedule *schedule)
{
    if (slice_equal(schedule->group, SLICE(SCHEDULE_DEFAULT))) return schedule_put(schedules, schedule);
    struct schedule pending = *schedule;
    pending.next_ms = SCHEDULE_NONE;
    pending.pending = arena_printf(task_arena(), "%016llx",
                                   (unsigned long long)random_next(task_host_random(schedules->host)));
    enum dynamo_fault fault = schedule_put(schedules, &pending);
    if (fault != DYNAMO_FINE) return fault;
    fault = schedules_call(
                schedules, "UpdateItem",
                SCHEDULE_KEY
                ",'UpdateExpression':'SET #state = :active','ConditionExpression':'#state = :active',"
                "%#,'ExpressionAttributeValues':{':active':{'S':'ACTIVE'}}",
                SLICE(SCHEDULE_GROUPS), schedule->group)
                .fault;
    struct slice mine = compose_in(
        task_arena(),
        "'ConditionExpression':'#pending = :pending',%#,'ExpressionAttributeValues':{':pending':%S}",
        pending.pending);
    if (fault == DYNAMO_CONDITION) {
        schedules_call(schedules, "DeleteItem", SCHEDULE_KEY ",%A", schedule->group, schedule->name, mine);
        return DYNAMO_MISSING;
    }
    if (fault != DYNAMO_FINE) return fault;
    schedule->revision++; /* who has seen it pending must not take it for that */
    fault = schedules_call(schedules, "PutItem", "'Item':%A,%A", schedule_item(task_arena(), schedule), mine)
                .fault;
    return fault == DYNAMO_CONDITION ? DYNAMO_IN_USE : fault;
}

static void create(struct trigger *trigger, struct rest_call *call)
{
    struct schedules *schedules = trigger->schedules;
    struct schedule schedule, found;
    int64_t now_ms = task_host_now_ms(schedules->host);
    if (!schedule_read(call, &schedule) || !timing_begin(call, &schedule, now_ms)) return;
    if (schedules->count >= LIMIT_SCHEDULES) {
        schedule_error(call, "ServiceQuotaExceededException", "There are %d schedules already.",
                       LIMIT_SCHEDULES);
        return;
    }
    schedule.created_ms = schedule.changed_ms = schedule.revision = now_ms;
    enum dynamo_fault end = DYNAMO_IN_USE;
    for (int i = 0; end == DYNAMO_IN_USE && i < CHANGE_ROUNDS; i++)
        end = schedule_table_make(schedules) ? schedule_insert(schedules, &schedule) : DYNAMO_REFUSED;
    if (end == DYNAMO_CONDITION) {
        end = schedule_load(schedules, schedule.group, schedule.name, &found);
        if (end == DYNAMO_MISSING || (end == DYNAMO_FINE && !is_done_already(&schedule, &found)))
            end = DYNAMO_CONDITION;
        else if (end == DYNAMO_FINE)
            schedule = found;
    }
    if (end == DYNAMO_CONDITION || end == DYNAMO_IN_USE) {
        schedule_error(call, "ConflictException", "Schedule %.*s already exists.", SLICE_ARG(schedule.name));
    } else if (schedule_is_fine(call, end, "Schedule group", schedule.group)) {
        schedules_note(schedules, &schedule);
        reply_arn(call, trigger, &schedule);
    }
}

/* ---- updating ---- */

static void schedule_busy(struct rest_call *call, struct slice name)
{
    schedule_error(call, "ConflictException", "Schedule %.*s is being changed by somebody else.",
                   SLICE_ARG(name));
}

/* Replaces the item if it still is what was read: also its `next`, or what was fired meanwhile would be fired
 * again. */
static enum dynamo_fault schedule_replace(struct schedules *schedules, const struct schedule *schedule,
                                          const struct schedule *before)
{
    bool has_next = before->next_ms != SCHEDULE_NONE;
    return schedules_call(schedules, "PutItem",
                          "'Item':%A,'ConditionExpression':'#revision = :revision AND %r',%#,"
                          "'ExpressionAttributeValues':{':revision':%N%A}",
                          schedule_item(task_arena(), schedule),
                          has_next ? SLICE("#next = :next") : SLICE("attribute_not_exists(#next)"),
                          before->revision,
                          has_next ? compose_in(task_arena(), ",':next':%N", before->next_ms) : SLICE(""))
        .fault;
}

static void update(struct trigger *trigger, struct rest_call *call)
{
    struct schedules *schedules = trigger->schedules;
    struct schedule schedule, before;
    enum dynamo_fault end = DYNAMO_CONDITION;
    if (!schedule_read(call, &schedule)) return;
    for (int i = 0; end == DYNAMO_CONDITION && i < CHANGE_ROUNDS; i++) {
        end = schedule_load(schedules, schedule.group, schedule.name, &before);
        if (end != DYNAMO_FINE) break;
        if (is_done_already(&schedule, &before)) {
            schedule = before;
            break;
        }
        if (!timing_go_on(call, &schedule, &before, task_host_now_ms(schedules->host))) return;
        end = schedule_replace(schedules, &schedule, &before);
    }
    if (end == DYNAMO_CONDITION) {
        schedule_busy(call, schedule.name);
    } else if (schedule_is_fine(call, end, "Schedule", schedule.name)) {
        schedules_note(schedules, &schedule);
        reply_arn(call, trigger, &schedule);
    }
}

/* ---- getting and deleting ---- */

static const struct shape shape_next = INTEGER_BETWEEN(1, LIMIT_SCHEDULE_NEXT);

#define NAMES(X)                                                                                             \
    X(NAMES_NAME, PATH_FIELD("Name", schedule_shape_name, 0))                                                \
    X(NAMES_GROUP,                                                                                           \
      {.name = "GroupName", .shape = &schedule_shape_name, .source = FROM_QUERY, .wire = "groupName"})       \
    X(NAMES_NEXT, {.name = "next", .shape = &shape_next, .source = FROM_QUERY})
enum { NAMES(FIELD_INDEX) NAMES_COUNT };

/* The name of the path and the group of the query; how many due times are asked for. False after an error. */
static bool names_read(struct rest_call *call, struct slice *group, struct slice *name, int64_t *next)
{
    static const struct shape_field fields[] = {NAMES(FIELD_ROW)};
    struct shape_node nodes[NAMES_COUNT];
    if (!schedule_decode(call, fields, NAMES_COUNT, nodes)) return false;
    *name = nodes[NAMES_NAME].text;
    *group = nodes[NAMES_GROUP].present ? nodes[NAMES_GROUP].text : SLICE(SCHEDULE_DEFAULT);
    *next = nodes[NAMES_NEXT].integer;
    return true;
}

/* The next due times, as the last member of the reply. */
static void put_next(struct rest_call *call, const struct schedule *schedule, int64_t count)
{
    struct slice why;
    struct timetable *timetable = schedule_timetable(task_arena(), schedule, &why);
    int64_t due_ms = timetable ? schedule->next_ms : SCHEDULE_NONE;
    call->reply->len--; /* the bracket at its end */
    compose(call->reply, ",'NextDueTimes':[");
    for (int64_t i = 0; i < count && due_ms != SCHEDULE_NONE; i++) {
        compose(call->reply, "%,");
        seconds_put(call->reply, due_ms);
        due_ms = schedule_first(schedule, timetable, due_ms + 1);
    }
    buf_text(call->reply, "]}");
}

/* next=N (ours): also the next N due times. */
static void get(struct trigger *trigger, struct rest_call *call)
{
    struct schedule schedule;
    struct slice group, name;
    int64_t count;
    if (!names_read(call, &group, &name, &count)) return;
    if (!schedule_is_fine(call, schedule_load(trigger->schedules, group, name, &schedule), "Schedule", name))
        return;
    schedule_put_reply(call->reply, call->arena, trigger, &schedule, SHOWN);
    if (count) put_next(call, &schedule, count);
    schedule_done(call);
}

/* As it was read: a late repeat must not delete another one of that name. */
static void delete_schedule(struct trigger *trigger, struct rest_call *call)
{
    struct schedules *schedules = trigger->schedules;
    struct schedule schedule;
    struct slice group, name, token = rest_query(call, "clientToken");
    enum dynamo_fault fault = DYNAMO_CONDITION;
    int64_t next;
    if (!names_read(call, &group, &name, &next)) return;
    for (int i = 0; fault == DYNAMO_CONDITION && i < CHANGE_ROUNDS; i++) {
        fault = schedule_load(schedules, group, name, &schedule);
        if (fault == DYNAMO_FINE)
            fault = schedule_delete(schedules, group, name, schedule.revision);
        else if (fault == DYNAMO_MISSING && (i || schedules_has_deleted(schedules, token, name)))
            fault = DYNAMO_FINE;
    }
    if (fault == DYNAMO_CONDITION) {
        schedule_busy(call, name);
    } else if (schedule_is_fine(call, fault, "Schedule", name)) {
        schedules_forget(schedules, group, name);
        schedules_note_deletion(schedules, token, name);
        buf_text(call->reply, "{}");
        schedule_done(call);
    }
}

/* ---- listing ---- */

static const struct shape shape_results = INTEGER_BETWEEN(1, PAGE_MAX);

#define LIST_MEMBERS(X)                                                                                      \
    X(LIST_GROUP, QUERY_FIELD("ScheduleGroup", schedule_shape_name))                                         \
    X(LIST_PREFIX, QUERY_FIELD("NamePrefix", schedule_shape_name))                                           \
    X(LIST_STATE, QUERY_FIELD("State", schedule_shape_state))                                                \
    X(LIST_MAX, QUERY_FIELD("MaxResults", shape_results))                                                    \
    X(LIST_TOKEN, QUERY_FIELD("NextToken", lambda_shape_text))
enum { LIST_MEMBERS(FIELD_INDEX) LIST_COUNT };

bool schedule_page_read(struct rest_call *call, struct schedule_page *out)
{
    static const struct shape_field fields[] = {LIST_MEMBERS(FIELD_ROW)};
    struct shape_node nodes[LIST_COUNT];
    struct slice key = SLICE_NONE;
    if (!schedule_decode(call, fields, LIST_COUNT, nodes)) return false;
    *out = (struct schedule_page){.group = nodes[LIST_GROUP].text,
                                  .prefix = nodes[LIST_PREFIX].text,
                                  .state = nodes[LIST_STATE].text,
                                  .max = nodes[LIST_MAX].present ? (size_t)nodes[LIST_MAX].integer
                                                                 : PAGE_MAX};
    if (!nodes[LIST_TOKEN].present) return true;
    bool fits = base64_decode(call->arena, nodes[LIST_TOKEN].text, &key) == BASE64_OK;
    out->after_group = slice_cut(&key, '/');
    out->after_name = key;
    return (fits && out->after_group.len && out->after_name.len) ||
           schedule_error(call, "ValidationException", "Invalid NextToken.");
}

bool schedule_page_takes(struct schedule_page *page, struct rest_call *call, struct slice group,
                         struct slice name, struct slice state)
{
    if (page->prefix.data && !slice_starts(name, page->prefix)) return false;
    if (page->state.data && !slice_equal(state, page->state)) return false;
    page->has_more = page->count == page->max;
    if (page->has_more) return false;
    page->count++;
    page->last = arena_printf(call->arena, "%.*s/%.*s", SLICE_ARG(group), SLICE_ARG(name));
    return true;
}

void schedule_page_end(const struct schedule_page *page, struct rest_call *call, enum dynamo_fault fault)
{
    if (fault == DYNAMO_MISSING) fault = DYNAMO_FINE; /* no table yet */
    if (!schedule_is_fine(call, fault, "", SLICE(""))) return;
    buf_byte(call->reply, ']');
    if (page->has_more) {
        buf_text(call->reply, ",\"NextToken\":");
        json_put_base64(call->reply, page->last);
    }
    buf_byte(call->reply, '}');
    schedule_done(call);
}

static void list(struct trigger *trigger, struct rest_call *call)
{
    struct slice item;
    struct schedule_page page;
    struct schedule schedule;
    if (!schedule_page_read(call, &page)) return;
    if (page.group.data && !schedule_group_exists(trigger->schedules, call, page.group)) return;
    buf_text(call->reply, "{\"Schedules\":[");
    struct schedule_walk walk = schedule_walk_from(trigger->schedules, page.group, page.after_group,
                                                   page.after_name);
    while (!page.has_more && schedule_walk_next(&walk, &item)) {
        if (!schedule_from_item(task_arena(), item, &schedule) || schedule.pending.data ||
            slice_equal(schedule.group, SLICE(SCHEDULE_GROUPS)) ||
            !schedule_page_takes(&page, call, schedule.group, schedule.name, schedule.state))
            continue;
        compose(call->reply, "%,");
        schedule_put_reply(call->reply, call->arena, trigger, &schedule, LISTED);
    }
    schedule_page_end(&page, call, walk.fault);
}

/* ---- routes ---- */

/* A request on its way to its task; in its arena. */
struct request {
    struct task_note note;
    struct trigger *trigger;
    struct rest_call *call;
    schedule_handler *serve;
};

static void request_task(void *argument)
{
    struct request *request = argument;
    request->serve(request->trigger, request->call);
}

static void request_begin(struct task_note *note)
{
    struct request *request = ring_owner(note, struct request, note);
    task_begin(request->trigger->schedules->host, request_task, request);
}

static void request_drop(struct task_note *note)
{
    schedule_error(ring_owner(note, struct request, note)->call, "InternalServerException",
                   "The server is stopping.");
}

static void request_post(struct trigger *trigger, struct rest_call *call, schedule_handler *serve)
{
    struct request *request = arena_new(call->arena, struct request);
    *request = (struct request){{.run = request_begin, .drop = request_drop}, trigger, call, serve};
    task_host_post(trigger->schedules->host, &request->note);
}

#define SCHEDULE_ROUTES(X)                                                                                   \
    X("POST", "/schedules/{Name}", create)                                                                   \
    X("PUT", "/schedules/{Name}", update)                                                                    \
    X("GET", "/schedules/{Name}", get)                                                                       \
    X("DELETE", "/schedules/{Name}", delete_schedule)                                                        \
    X("GET", "/schedules", list)                                                                             \
    X("POST", "/schedule-groups/{Name}", schedule_group_create)                                              \
    X("GET", "/schedule-groups/{Name}", schedule_group_get)                                                  \
    X("DELETE", "/schedule-groups/{Name}", schedule_group_delete)                                            \
    X("GET", "/schedule-groups", schedule_group_list)                                                        \
    X("POST", "/tags/{ResourceArn+}", schedule_tag_add)                                                      \
    X("DELETE", "/tags/{ResourceArn+}", schedule_tag_remove)                                                 \
    X("GET", "/tags/{ResourceArn+}", schedule_tag_list)

#define SERVE(method, path, handler)                                                                         \
    static void serve_##handler(void *room, struct rest_call *call)                                          \
    {                                                                                                        \
        request_post(room, call, handler);                                                                   \
    }
SCHEDULE_ROUTES(SERVE)

#define ROUTE(method, path, handler) {method, path, serve_##handler},
const struct rest_route schedule_routes[] = {SCHEDULE_ROUTES(ROUTE)};
const size_t schedule_route_count = sizeof schedule_routes / sizeof *schedule_routes;
