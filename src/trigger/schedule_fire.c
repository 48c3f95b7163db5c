/* Firing: a schedule whose moment has come is read, judged, and moved on together with the call that it makes (T6,
 * task_commit). Whoever loses a race against another server, or a change by a person, finds the condition broken and
 * looks again; a reply that got lost is found the same way, `next` having moved.
 *
 * What the service calls delivery is here the putting of the call into the queue of asynchronous calls. It
 * fails when the function is not there, or when the door does; the first is told to the dead-letter queue at
 * once, the second is tried again within the RetryPolicy. What the function itself does with the event is
 * retried by the queue, as Lambda does. */
#include "base/hash.h"
#include "base/log.h"
#include "trigger/schedule.h"

#define BUSY_MS       20    /* another server is at the same schedule just now */
#define LOOK_AGAIN_MS 60000 /* at what cannot be fired here: an expression's zone may come */
#define PAUSE_MIN_MS  500   /* after a failure; twice as long after each further one ... */
#define PAUSE_MAX_MS  60000
#define UNKNOWN_MS    10000 /* how long a function that is not there is waited for, where others may make it */

/* A schedule in hand. Lives as long as its task. */
struct firing {
    struct schedules *schedules;
    struct agenda_entry *entry;
    struct schedule schedule;
    struct schedule_verdict verdict;
    int64_t now_ms;
    struct arena *arena;
    struct slice children; /* the call, or what becomes of it when it cannot be delivered */
    bool is_queued, is_put_off;
    const char *undelivered; /* why; NULL: it was delivered */
};

/* The schedule itself: moved on, or gone; if it still is what was read. */
static struct slice anchor_of(struct firing *firing)
{
    const struct schedule *schedule = &firing->schedule;
    struct slice delete = SLICE("{\"Delete\":"), update = SLICE("{\"Update\":"), next = SLICE(""),
                 change = SLICE("");
    bool is_over = firing->verdict.next_ms == SCHEDULE_NONE;
    bool is_deleted = is_over && slice_equal(schedule->after, SLICE("DELETE"));
    if (!is_over) next = compose_in(firing->arena, ",':next':%N", firing->verdict.next_ms);
    if (!is_deleted)
        change = compose_in(firing->arena, ",'UpdateExpression':'%r'",
                            is_over ? SLICE("REMOVE #next") : SLICE("SET #next = :next"));
    return compose_in(firing->arena,
                      "%A{'TableName':%s,'Key':{'group':%S,'name':%S}%r,"
                      "'ConditionExpression':'#next = :due AND #revision = :revision',%#,"
                      "'ExpressionAttributeValues':{':due':%N,':revision':%N%A}}}",
                      is_deleted ? delete : update, firing->schedules->table, schedule->group, schedule->name,
                      change, schedule->next_ms, schedule->revision, next);
}

/* The attributes that the service gives a dead letter, and the event itself. */
static void put_letter(struct firing *firing, const struct schedule_attempt *attempt, bool is_found,
                       struct slice event, struct buf *members)
{
    const struct schedule_doors *doors = &firing->schedules->doors;
    const struct schedule *schedule = &firing->schedule;
    const char *code = is_found ? "RetryAttemptsExhausted" : "ResourceNotFoundException";
    unsigned count = 0;
    firing->undelivered = is_found ? "the call could not be put into the queue" : "there is no such function";
    if (!schedule->dead_letter.data) return;
    struct slice letter = compose_in(
        firing->arena,
        "{'ERROR_CODE':%s,'ERROR_MESSAGE':%s,'EXECUTION_ID':%s,'RETRY_ATTEMPTS':%d,'SCHEDULED_TIME':%s,"
        "'SCHEDULE_ARN':%s,'TARGET_ARN':%s,'payload':%A}",
        slice_of(code), slice_of(firing->undelivered), attempt->execution_id, (int64_t)attempt->number - 1,
        moment_text(firing->arena, attempt->due_ms), attempt->arn, schedule->target, event);
    const struct func_call call = {.function = schedule_function(schedule->target), .payload = event};
    struct func *func = firing->schedules->trigger->options.func;
    const char *fault = doors->destination_fault(func, schedule->dead_letter);
    if (fault)
        log_line("schedules: a dead letter cannot go to %.*s: %s", SLICE_ARG(schedule->dead_letter), fault);
    if (fault || !doors->dead_letter(func, schedule->dead_letter, letter, attempt->execution_id, &call,
                                     members, &count))
        members->len = 0;
}

/* Looks for the function, and makes tables where they are not there: not on a task's stack. The id of the call follows
 * from the schedule, when that was made (one that is made again under its name is another one), and the due time. */
static void put_children(void *argument)
{
    struct firing *firing = argument;
    const struct schedule_doors *doors = &firing->schedules->doors;
    const struct schedule *schedule = &firing->schedule;
    const struct agenda_entry *entry = firing->entry;
    const struct trigger *trigger = firing->schedules->trigger;
    struct schedule_attempt attempt = {
        .arn = schedule_arn(firing->arena, trigger, schedule->group, schedule->name),
        .due_ms = firing->verdict.due_ms,
        .number = entry->failures + 1};
    struct slice seed = arena_printf(firing->arena, "%.*s/%lld/%lld", SLICE_ARG(attempt.arn),
                                     (long long)schedule->created_ms, (long long)attempt.due_ms);
    attempt.execution_id = arena_printf(firing->arena, "%016llx", (unsigned long long)hash_bytes(seed));
    struct slice function = schedule_function(schedule->target);
    struct slice event = schedule_event(firing->arena, trigger, schedule, &attempt);
    struct slice arn, name;
    bool is_found = function.data &&
                    doors->resolve(trigger->options.func, function, firing->arena, &arn, &name);
    bool is_exhausted = entry->failures > schedule->retries_max ||
                        (entry->failures &&
                         firing->now_ms - entry->failing_since_ms > schedule->age_max_s * 1000);
    struct buf members = {0};
    firing->is_put_off = !is_found && trigger->options.shared &&
                         (!entry->failures || firing->now_ms - entry->failing_since_ms < UNKNOWN_MS);
    if (firing->is_put_off) return;
    /* What may have been put already, and only the schedule was not moved on, is no failure. */
    firing->is_queued = is_found && (!is_exhausted || entry->put_ms == attempt.due_ms);
    const struct func_call call = {.function = function, .payload = event, .id = attempt.execution_id};
    if (firing->is_queued)
        firing->is_put_off = !doors->queue_put(trigger->options.func, &call, &members);
    else
        put_letter(firing, &attempt, is_found, event, &members);
    firing->children = arena_take(firing->arena, &members);
}

/* Answers when to look again; HEAP_NEVER: there is nothing to come; SCHEDULE_NONE: it failed. */
static int64_t fire(struct firing *firing)
{
    struct agenda_entry *entry = firing->entry;
    struct schedule *schedule = &firing->schedule;
    struct slice why;
    enum dynamo_fault fault = schedule_load(firing->schedules, agenda_group(entry), agenda_name(entry),
                                            schedule);
    if (fault == DYNAMO_MISSING || (fault == DYNAMO_FINE && schedule->next_ms == SCHEDULE_NONE))
        return HEAP_NEVER;
    if (fault != DYNAMO_FINE) return SCHEDULE_NONE;
    if (schedule->revision == SCHEDULE_NONE) { /* no write of ours could be on the condition of it */
        log_line("schedules: %.*s/%.*s has no revision, and is not fired", SLICE_ARG(schedule->group),
                 SLICE_ARG(schedule->name));
        return firing->now_ms + LOOK_AGAIN_MS;
    }
    struct timetable *timetable = schedule_timetable(firing->arena, schedule, &why);
    if (!timetable) {
        log_line("schedules: %.*s/%.*s: %.*s", SLICE_ARG(schedule->group), SLICE_ARG(schedule->name),
                 SLICE_ARG(why));
        return firing->now_ms + LOOK_AGAIN_MS;
    }
    int64_t fire_ms = schedule_fire_ms(schedule, timetable, schedule->next_ms);
    if (fire_ms > firing->now_ms) return fire_ms;

    firing->verdict = schedule_judge(schedule, timetable, firing->now_ms);
    if (firing->verdict.due_ms != SCHEDULE_NONE) task_outside(put_children, firing);
    if (firing->is_put_off) return SCHEDULE_NONE;
    struct task_commit commit = {.anchor = anchor_of(firing), .children = firing->children};
    struct task_commit_reply reply = task_commit(&commit);
    if (reply.end == COMMIT_CONDITION)
        return firing->now_ms; /* somebody else was first: look what it has become */
    if (reply.end == COMMIT_MAY_PASS && reply.is_busy && reply.fault != DYNAMO_AGAIN)
        return firing->now_ms + BUSY_MS;
    if (reply.end != COMMIT_DONE) {
        log_line("schedules: %.*s/%.*s cannot be moved on: %.*s: %.*s", SLICE_ARG(schedule->group),
                 SLICE_ARG(schedule->name), SLICE_ARG(reply.error), SLICE_ARG(reply.message));
        bool may_be_put = reply.part == COMMIT_ANCHOR || reply.fault == DYNAMO_UNKNOWN;
        if (firing->is_queued && may_be_put && !task_has_transactions())
            entry->put_ms = firing->verdict.due_ms;
        if (reply.fault == DYNAMO_MISSING) /* what the call is put into may have been deleted by somebody */
            firing->schedules->doors.mend_tables(firing->schedules->trigger->options.func);
        return SCHEDULE_NONE;
    }
    if (firing->is_queued) firing->schedules->doors.wake(firing->schedules->trigger->options.func);
    if (firing->undelivered)
        log_line("schedules: %.*s/%.*s was not delivered: %s", SLICE_ARG(schedule->group),
                 SLICE_ARG(schedule->name), firing->undelivered);
    if (firing->verdict.next_ms == SCHEDULE_NONE) return HEAP_NEVER;
    fire_ms = schedule_fire_ms(schedule, timetable, firing->verdict.next_ms);
    return fire_ms > firing->now_ms ? fire_ms : firing->now_ms;
}

void schedule_fire_task(void *argument)
{
    struct agenda_entry *entry = argument;
    struct firing *firing = arena_new(task_arena(), struct firing);
    *firing = (struct firing){.schedules = entry->schedules,
                              .entry = entry,
                              .now_ms = task_host_now_ms(entry->schedules->host),
                              .arena = task_arena()};
    int64_t due_ms = fire(firing);
    if (due_ms == SCHEDULE_NONE) {
        int64_t pause_ms = entry->failures > 8 ? PAUSE_MAX_MS : (int64_t)PAUSE_MIN_MS << entry->failures;
        if (!entry->failures++) entry->failing_since_ms = firing->now_ms;
        due_ms = firing->now_ms + (pause_ms < PAUSE_MAX_MS ? pause_ms : PAUSE_MAX_MS);
    } else {
        entry->failures = 0;
    }
    agenda_give_back(entry, due_ms);
}
