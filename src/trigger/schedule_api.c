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

void schedule_error(struct rest_call *call, const char *type, const char *format, ...)
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
}

void schedule_fault_reply(struct rest_call *call, const struct schedule_fault *fault)
{
    schedule_error(call, fault->type, "%s", fault->text);
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

static bool dates_check(const struct schedule *schedule, int64_t now_ms, struct schedule_fault *fault)
{
    if (schedule->start_ms != SCHEDULE_NONE && schedule->start_ms < now_ms - START_LATE_MS)
        return schedule_fail(fault, "ValidationException",
                             "The StartDate you specify cannot be earlier than 5 minutes ago.");
    if (schedule->end_ms != SCHEDULE_NONE && schedule->end_ms < now_ms)
        return schedule_fail(fault, "ValidationException", "The EndDate you specify cannot be in the past.");
    return true;
}

static bool next_find(struct schedule *schedule, int64_t now_ms, struct schedule_fault *fault)
{
    struct timetable *timetable = schedule_timetable(task_arena(), schedule, fault);
    if (!timetable) return false;
    bool is_enabled = slice_equal(schedule->state, SLICE("ENABLED"));
    schedule->next_ms = is_enabled ? schedule_first(schedule, timetable, now_ms) : SCHEDULE_NONE;
    return true;
}

/* A schedule that begins now. */
static bool timing_begin(struct schedule *schedule, int64_t now_ms, struct schedule_fault *fault)
{
    schedule->anchor_ms = schedule->start_ms == SCHEDULE_NONE ? now_ms : schedule->start_ms;
    return dates_check(schedule, now_ms, fault) && next_find(schedule, now_ms, fault);
}

/* What an update keeps of the schedule before it: a due time that is to come stays, unless the timing is
 * another. One that is switched on again goes on counting, and what passed meanwhile is no missed run. */
static bool timing_go_on(struct schedule *schedule, const struct schedule *before, int64_t now_ms,
                         struct schedule_fault *fault)
{
    schedule->created_ms = before->created_ms;
    schedule->changed_ms = now_ms;
    schedule->revision = now_ms > before->revision ? now_ms : before->revision + 1;
    if (!slice_equal(schedule->expression, before->expression) ||
        !slice_equal(schedule->zone, before->zone) || schedule->start_ms != before->start_ms)
        return timing_begin(schedule, now_ms, fault);
    schedule->anchor_ms = before->anchor_ms;
    schedule->next_ms = before->next_ms;
    if (schedule->end_ms == before->end_ms && slice_equal(schedule->state, before->state)) return true;
    return next_find(schedule, now_ms, fault);
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
    struct schedule_fault fault;
    int64_t now_ms = task_host_now_ms(schedules->host);
    if (!schedule_read(task_arena(), call->body, call->parameters[0], &schedule, &fault) ||
        !timing_begin(&schedule, now_ms, &fault)) {
        schedule_fault_reply(call, &fault);
        return;
    }
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
    struct schedule_fault fault = {0};
    enum dynamo_fault end = DYNAMO_CONDITION;
    bool fine = schedule_read(task_arena(), call->body, call->parameters[0], &schedule, &fault);
    for (int i = 0; fine && end == DYNAMO_CONDITION && i < CHANGE_ROUNDS; i++) {
        end = schedule_load(schedules, schedule.group, schedule.name, &before);
        if (end != DYNAMO_FINE) break;
        if (is_done_already(&schedule, &before)) {
            schedule = before;
        } else if ((fine = timing_go_on(&schedule, &before, task_host_now_ms(schedules->host), &fault))) {
            end = schedule_replace(schedules, &schedule, &before);
        }
    }
    if (!fine) {
        schedule_fault_reply(call, &fault);
    } else if (end == DYNAMO_CONDITION) {
        schedule_busy(call, schedule.name);
    } else if (schedule_is_fine(call, end, "Schedule", schedule.name)) {
        schedules_note(schedules, &schedule);
        reply_arn(call, trigger, &schedule);
    }
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

static void get(struct trigger *trigger, struct rest_call *call)
{
    struct schedule schedule;
    struct slice group, name;
    if (!names_read(call, &group, &name)) return;
    if (!schedule_is_fine(call, schedule_load(trigger->schedules, group, name, &schedule), "Schedule", name))
        return;
    schedule_put_reply(call->reply, call->arena, trigger, &schedule, SHOWN);
    schedule_done(call);
}

/* As it was read: a late repeat must not delete another one of that name. */
static void delete_schedule(struct trigger *trigger, struct rest_call *call)
{
    struct schedules *schedules = trigger->schedules;
    struct schedule schedule;
    struct slice group, name, token = rest_query(call, "clientToken");
    enum dynamo_fault fault = DYNAMO_CONDITION;
    if (!names_read(call, &group, &name)) return;
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
    static const struct schedule_rule state = {SCHEDULE_STATE_RULE};
    struct slice max = rest_query(call, "MaxResults");
    struct schedule_fault fault;
    unsigned long long number = PAGE_MAX;
    bool fine;
    *out = (struct schedule_page){.prefix = rest_query(call, "NamePrefix"),
                                  .state = rest_query(call, "State")};
    if (max.data && (!slice_to_u64(max, PAGE_MAX, &number) || !number))
        fine = schedule_constraint(&fault, "maxResults", max, "Member must have value between 1 and 100");
    else if (!token_read(call, out))
        fine = schedule_fail(&fault, "ValidationException", "Invalid NextToken.");
    else
        fine = schedule_text_check(out->state, &state, "state", &fault) &&
               schedule_name_check(out->prefix, "namePrefix", &fault);
    out->max = (size_t)number;
    if (!fine) schedule_fault_reply(call, &fault);
    return fine;
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
    struct slice group = rest_query(call, "ScheduleGroup"), item;
    struct schedule_page page;
    struct schedule schedule;
    if (!schedule_page_read(call, &page)) return;
    if (group.data && !schedule_group_exists(trigger->schedules, call, group)) return;
    buf_text(call->reply, "{\"Schedules\":[");
    struct schedule_walk walk = schedule_walk_from(trigger->schedules, group, page.after_group,
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
