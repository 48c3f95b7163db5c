/* Firing: a schedule whose moment has come is read, judged, and moved on in one transaction with the call
 * that it makes (T6). Whoever loses a race against another server, or a change by a person, finds the
 * condition broken and looks again; a reply that got lost is found the same way, `next` having moved.
 *
 * What the service calls delivery is here the putting of the call into the queue of asynchronous calls. It
 * fails when the function is not there, or when the door does; the first is told to the dead-letter queue at
 * once, the second is tried again within the RetryPolicy. What the function itself does with the event is
 * retried by the queue, as Lambda does. */
#include "base/hash.h"
#include "base/log.h"
#include "trigger/schedule.h"

#define BUSY_MS       20    /* another server is at the same schedule just now */
#define LOOK_AGAIN_MS 60000 /* at an expression that cannot be read here: its zone may come */

/* All that one look at a schedule needs. */
struct firing {
    struct schedules *schedules;
    struct schedule schedule;
    struct timetable *timetable;
    struct schedule_verdict verdict;
    struct schedule_failures failures;
    struct arena arena;
    bool is_queued;
    const char *undelivered; /* why; NULL: it was delivered */
};

/* ---- the members of the transaction ---- */

static bool is_deleted_after(const struct firing *firing)
{
    return firing->verdict.next_ms == SCHEDULE_NONE && slice_equal(firing->schedule.after, SLICE("DELETE"));
}

/* The schedule itself: moved on, or gone; if it still is what we read. */
static void put_schedule(struct buf *out, struct firing *firing)
{
    const struct schedule *schedule = &firing->schedule;
    int64_t next_ms = firing->verdict.next_ms;
    bool is_deleted = is_deleted_after(firing);
    buf_printf(out, "{\"%s\":", is_deleted ? "Delete" : "Update");
    schedule_put_key(out, firing->schedules, schedule->group, schedule->name);
    if (!is_deleted)
        buf_printf(out, ",\"UpdateExpression\":\"%s\"",
                   next_ms == SCHEDULE_NONE ? "REMOVE #next" : "SET #next = :next");
    buf_printf(out,
               ",\"ConditionExpression\":\"#next = :due AND revision = :revision\","
               "\"ExpressionAttributeNames\":{\"#next\":\"next\"},"
               "\"ExpressionAttributeValues\":{\":due\":{\"N\":\"%lld\"},\":revision\":{\"N\":\"%lld\"}",
               (long long)schedule->next_ms, (long long)schedule->revision);
    if (next_ms != SCHEDULE_NONE) buf_printf(out, ",\":next\":{\"N\":\"%lld\"}", (long long)next_ms);
    buf_text(out, "}}}");
}

static struct schedule_attempt attempt_of(struct firing *firing)
{
    const struct schedule *schedule = &firing->schedule;
    struct arena *arena = &firing->arena;
    struct schedule_attempt attempt = {
        .arn = schedule_arn(arena, firing->schedules->trigger, schedule->group, schedule->name),
        .due_ms = firing->verdict.due_ms,
        .number = firing->failures.count + 1};
    struct slice seed = arena_printf(arena, "%.*s/%lld/%lld", SLICE_ARG(attempt.arn),
                                     (long long)attempt.due_ms, (long long)schedule->revision);
    attempt.execution_id = arena_printf(arena, "%016llx", (unsigned long long)hash_bytes(seed));
    return attempt;
}

/* The attributes that the service gives a dead letter, and the event itself. */
static void put_letter(struct buf *out, struct firing *firing, const struct schedule_attempt *attempt,
                       const char *code, const char *message, struct slice event)
{
    buf_printf(out,
               "{\"ERROR_CODE\":\"%s\",\"ERROR_MESSAGE\":\"%s\",\"EXECUTION_ID\":\"%.*s\","
               "\"RETRY_ATTEMPTS\":%u,\"SCHEDULED_TIME\":\"%.*s\",\"SCHEDULE_ARN\":\"%.*s\",\"TARGET_ARN\":",
               code, message, SLICE_ARG(attempt->execution_id), attempt->number - 1,
               SLICE_ARG(moment_text(&firing->arena, attempt->due_ms)), SLICE_ARG(attempt->arn));
    json_put_string(out, firing->schedule.target);
    buf_text(out, ",\"payload\":");
    buf_slice(out, event);
    buf_byte(out, '}');
}

static void put_failure(struct buf *members, struct firing *firing, const struct schedule_attempt *attempt,
                        bool is_found, struct slice event)
{
    const struct schedule_doors *doors = &firing->schedules->doors;
    const char *code = is_found ? "RetryAttemptsExhausted" : "ResourceNotFoundException";
    const char *message = is_found ? "the call could not be put into the queue" : "there is no such function";
    unsigned count = 0;
    struct buf letter = {0};
    firing->undelivered = message;
    if (firing->schedule.dead_letter.data) {
        put_letter(&letter, firing, attempt, code, message, event);
        const struct func_call call = {.function = schedule_function(firing->schedule.target),
                                       .payload = event};
        size_t len = members->len;
        buf_byte(members, ',');
        if (!doors->dead_letter(doors->self, firing->schedule.dead_letter, buf_view(&letter),
                                attempt->execution_id, &call, members, &count) ||
            !count)
            members->len = len;
    }
    buf_free(&letter);
}

/* The call, or what becomes of it when it cannot be delivered. */
static void put_call(struct buf *members, struct firing *firing, int64_t now_ms)
{
    const struct schedule_doors *doors = &firing->schedules->doors;
    const struct schedule *schedule = &firing->schedule;
    struct schedule_attempt attempt = attempt_of(firing);
    struct slice function = schedule_function(schedule->target);
    bool is_found = function.data && doors->resolve(doors->self, function, &firing->arena);
    bool is_exhausted = firing->failures.count > schedule->retries_max ||
                        (firing->failures.count &&
                         now_ms - firing->failures.since_ms > schedule->age_max_s * 1000);
    struct buf event = {0};
    schedule_put_event(&event, &firing->arena, firing->schedules->trigger, schedule, &attempt);
    if (is_found && !is_exhausted) {
        buf_byte(members, ',');
        doors->queue_put(doors->self, function, buf_view(&event), attempt.execution_id, members);
        firing->is_queued = true;
    } else {
        put_failure(members, firing, &attempt, is_found, buf_view(&event));
    }
    buf_free(&event);
}

/* ---- one look ---- */

static enum schedule_end move_on(struct firing *firing, int64_t now_ms)
{
    struct buf request = {0}, reply = {0};
    buf_text(&request, "{\"TransactItems\":[");
    put_schedule(&request, firing);
    if (firing->verdict.due_ms != SCHEDULE_NONE) put_call(&request, firing, now_ms);
    buf_text(&request, "]}");
    enum schedule_end end = schedule_ask_once(firing->schedules, "TransactWriteItems", &request, &reply);
    buf_free(&request);
    buf_free(&reply);
    return end;
}

/* Its moment has come: does what is to be done. */
static enum fire_end fire_now(struct firing *firing, int64_t now_ms, int64_t *at_ms)
{
    const struct schedule_doors *doors = &firing->schedules->doors;
    firing->verdict = schedule_judge(&firing->schedule, firing->timetable, now_ms);
    enum schedule_end end = move_on(firing, now_ms);
    if (end == SCHEDULE_FAILED) return FIRE_AGAIN;
    *at_ms = now_ms + (end == SCHEDULE_BUSY ? BUSY_MS : 0);
    if (end != SCHEDULE_FINE) return FIRE_DONE; /* somebody else was first: look what it has become */
    if (firing->is_queued) doors->wake(doors->self);
    if (firing->undelivered)
        log_line("schedules: %.*s/%.*s was not delivered: %s", SLICE_ARG(firing->schedule.group),
                 SLICE_ARG(firing->schedule.name), firing->undelivered);
    if (firing->verdict.next_ms == SCHEDULE_NONE) return FIRE_OVER;
    int64_t fire_ms = schedule_fire_ms(&firing->schedule, firing->timetable, firing->verdict.next_ms);
    if (fire_ms > now_ms) *at_ms = fire_ms;
    return FIRE_DONE;
}

static enum fire_end look(struct firing *firing, int64_t now_ms, int64_t *at_ms)
{
    const struct schedule *schedule = &firing->schedule;
    struct schedule_fault fault;
    if (schedule->next_ms == SCHEDULE_NONE) return FIRE_OVER;
    firing->timetable = schedule_timetable(&firing->arena, schedule, &fault);
    if (!firing->timetable) {
        log_line("schedules: %.*s/%.*s: %s", SLICE_ARG(schedule->group), SLICE_ARG(schedule->name),
                 fault.text);
        *at_ms = now_ms + LOOK_AGAIN_MS;
        return FIRE_DONE;
    }
    *at_ms = schedule_fire_ms(schedule, firing->timetable, schedule->next_ms);
    return *at_ms > now_ms ? FIRE_DONE : fire_now(firing, now_ms, at_ms);
}

enum fire_end schedule_fire(struct schedules *schedules, struct slice group, struct slice name,
                            struct schedule_failures failures, int64_t *at_ms)
{
    struct firing firing = {.schedules = schedules, .failures = failures};
    int64_t now_ms = clock_now_ms(schedules->trigger->options.clock);
    enum fire_end result = FIRE_OVER;
    enum schedule_end end = schedule_load(schedules, &firing.arena, group, name, &firing.schedule);
    if (end == SCHEDULE_FINE) result = look(&firing, now_ms, at_ms);
    if (end == SCHEDULE_FAILED) result = FIRE_AGAIN;
    arena_free(&firing.arena);
    return result;
}
