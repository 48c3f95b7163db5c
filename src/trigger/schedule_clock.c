/* The clockwork: one thread that looks at each schedule when its time comes.
 *
 * It never scans the table to find what is due: the agenda knows, from reading the table once at the start
 * and from hearing of each change that is made here. Where other servers work on the same table it is read
 * again every few seconds, for what they changed. The clock may be set or jump, so no sleep is longer than
 * 100 ms while something is to come. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/log.h"
#include "trigger/schedule.h"

#define WAIT_MS       100
#define READ_EVERY_US 5000000
#define PAUSE_MIN_MS  500 /* after a failure; twice as long after each further one ... */
#define PAUSE_MAX_MS  60000

/* ---- hearing of changes ---- */

/* When a schedule is to be looked at; NONE: not before somebody changes it. */
static int64_t look_at_ms(const struct schedule *schedule)
{
    struct arena arena = {0};
    struct schedule_fault fault;
    int64_t at_ms = schedule->next_ms;
    if (at_ms != SCHEDULE_NONE && schedule->window_min != SCHEDULE_NONE) {
        struct timetable *timetable = schedule_timetable(&arena, schedule, &fault);
        if (timetable) at_ms = schedule_fire_ms(schedule, timetable, at_ms);
    }
    arena_free(&arena);
    return at_ms;
}

void schedules_note(struct schedules *schedules, const struct schedule *schedule)
{
    int64_t at_ms = look_at_ms(schedule);
    pthread_mutex_lock(&schedules->lock);
    if (at_ms == SCHEDULE_NONE) {
        agenda_remove(&schedules->agenda, schedule->group, schedule->name);
    } else {
        struct agenda_entry *entry = agenda_set(&schedules->agenda, schedule->group, schedule->name, at_ms);
        entry->changes++;
        entry->failures = 0;
        entry->round = schedules->round;
    }
    pthread_cond_signal(&schedules->news);
    pthread_mutex_unlock(&schedules->lock);
}

void schedules_forget(struct schedules *schedules, struct slice group, struct slice name)
{
    pthread_mutex_lock(&schedules->lock);
    agenda_remove(&schedules->agenda, group, name);
    pthread_mutex_unlock(&schedules->lock);
}

uint32_t schedules_count(struct schedules *schedules)
{
    pthread_mutex_lock(&schedules->lock);
    uint32_t count = schedules->agenda.count;
    pthread_mutex_unlock(&schedules->lock);
    return count;
}

static uint64_t deletion_hash(struct slice token, struct slice name)
{
    return hash_bytes(token) * 31 + hash_bytes(name);
}

bool schedules_has_deleted(struct schedules *schedules, struct slice token, struct slice name)
{
    bool found = false;
    if (!token.len) return false;
    pthread_mutex_lock(&schedules->lock);
    for (unsigned i = 0; i < SCHEDULE_DELETIONS && i < schedules->deletion_count; i++)
        found |= schedules->deletions[i] == deletion_hash(token, name);
    pthread_mutex_unlock(&schedules->lock);
    return found;
}

void schedules_note_deletion(struct schedules *schedules, struct slice token, struct slice name)
{
    if (!token.len) return;
    pthread_mutex_lock(&schedules->lock);
    schedules->deletions[schedules->deletion_count++ % SCHEDULE_DELETIONS] = deletion_hash(token, name);
    pthread_mutex_unlock(&schedules->lock);
}

/* ---- reading the table ---- */

static bool schedule_seen(void *context, struct json_reader *reader)
{
    struct schedules *schedules = context;
    struct schedule schedule;
    if (!schedule_from_item(reader, &schedule)) return !json_failed(reader);
    if (slice_equal(schedule.group, SLICE(SCHEDULE_GROUPS))) return true;
    int64_t at_ms = look_at_ms(&schedule);
    pthread_mutex_lock(&schedules->lock);
    struct agenda_entry *entry = agenda_find(&schedules->agenda, schedule.group, schedule.name);
    /* What was heard of since the reading began is newer than what is read. */
    if ((!entry || entry->round != schedules->round) && at_ms != SCHEDULE_NONE) {
        if (!entry || !entry->failures)
            entry = agenda_set(&schedules->agenda, schedule.group, schedule.name, at_ms);
        entry->round = schedules->round;
    }
    pthread_mutex_unlock(&schedules->lock);
    return true;
}

bool schedules_read(struct schedules *schedules)
{
    pthread_mutex_lock(&schedules->lock);
    uint64_t round = ++schedules->round;
    pthread_mutex_unlock(&schedules->lock);
    enum schedule_end end = schedule_each(schedules, SLICE_NONE, SLICE_NONE, SLICE_NONE, schedule_seen,
                                          schedules);
    pthread_mutex_lock(&schedules->lock);
    if (end == SCHEDULE_FINE) {
        schedules->table_is_there = true;
        agenda_sweep(&schedules->agenda, round);
    }
    schedules->read_us = monotonic_us();
    pthread_mutex_unlock(&schedules->lock);
    return end != SCHEDULE_FAILED;
}

/* ---- turning ---- */

static int64_t pause_ms(unsigned failures)
{
    int64_t pause = failures > 8 ? PAUSE_MAX_MS : (int64_t)PAUSE_MIN_MS << failures;
    return pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
}

/* What a look has found goes into the agenda, unless somebody changed the schedule meanwhile. Under the lock.
 */
static void look_done(struct schedules *schedules, const struct agenda_entry *before, enum fire_end end,
                      int64_t at_ms, int64_t now_ms)
{
    struct slice group = agenda_group(before), name = agenda_name(before);
    struct agenda_entry *entry = agenda_find(&schedules->agenda, group, name);
    if (!entry || entry->changes != before->changes) return;
    if (end == FIRE_OVER) {
        agenda_remove(&schedules->agenda, group, name);
    } else if (end == FIRE_DONE) {
        entry->failures = 0;
        agenda_set(&schedules->agenda, group, name, at_ms);
    } else {
        if (!entry->failures++) entry->failing_since_ms = now_ms;
        agenda_set(&schedules->agenda, group, name, now_ms + pause_ms(entry->failures - 1));
    }
}

bool schedules_turn(struct schedules *schedules)
{
    int64_t now_ms = clock_now_ms(schedules->trigger->options.clock), at_ms = now_ms;
    pthread_mutex_lock(&schedules->lock);
    struct agenda_entry *first = agenda_first(&schedules->agenda);
    if (!first || first->at_ms > now_ms) {
        pthread_mutex_unlock(&schedules->lock);
        return false;
    }
    size_t bytes = sizeof *first + first->group_len + first->name_len;
    struct agenda_entry *before = memcpy(must_alloc(bytes), first, bytes);
    schedules->is_busy = true;
    pthread_mutex_unlock(&schedules->lock);

    struct schedule_failures failures = {before->failures, before->failing_since_ms};
    enum fire_end end = schedule_fire(schedules, agenda_group(before), agenda_name(before), failures, &at_ms);

    pthread_mutex_lock(&schedules->lock);
    look_done(schedules, before, end, at_ms, now_ms);
    schedules->is_busy = false;
    pthread_mutex_unlock(&schedules->lock);
    free(before);
    return true;
}

/* How long to sleep at most; -1: until somebody calls. Under the lock. */
static int64_t sleep_ms(const struct schedules *schedules)
{
    const struct agenda_entry *first = agenda_first(&schedules->agenda);
    if (!first) return schedules->trigger->options.shared ? READ_EVERY_US / 1000 : -1;
    int64_t left_ms = first->at_ms - clock_now_ms(schedules->trigger->options.clock);
    return left_ms < 0 ? 0 : left_ms < WAIT_MS ? left_ms : WAIT_MS;
}

static void thread_wait(struct schedules *schedules)
{
    struct timespec until;
    pthread_mutex_lock(&schedules->lock);
    int64_t ms = sleep_ms(schedules);
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + ms % 1000 * 1000000;
    until.tv_sec += ms / 1000 + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    if (schedules->is_stopping || ms == 0)
        ;
    else if (ms < 0)
        pthread_cond_wait(&schedules->news, &schedules->lock);
    else
        pthread_cond_timedwait(&schedules->news, &schedules->lock, &until);
    pthread_mutex_unlock(&schedules->lock);
}

static bool thread_goes_on(struct schedules *schedules)
{
    pthread_mutex_lock(&schedules->lock);
    bool goes_on = !schedules->is_stopping;
    pthread_mutex_unlock(&schedules->lock);
    return goes_on;
}

static void *thread_run(void *context)
{
    struct schedules *schedules = context;
    bool is_shared = schedules->trigger->options.shared;
    while (thread_goes_on(schedules)) {
        if (is_shared && monotonic_us() - schedules->read_us > READ_EVERY_US) schedules_read(schedules);
        if (!schedules_turn(schedules)) thread_wait(schedules);
    }
    return NULL;
}

/* ---- opening and closing ---- */

struct schedules *schedules_open_with(struct trigger *trigger, const struct schedule_doors *doors,
                                      char *error, size_t error_len)
{
    struct schedules *schedules = must_zero(1, sizeof *schedules);
    pthread_condattr_t attributes;
    schedules->trigger = trigger;
    schedules->doors = *doors;
    schedules->table = arena_printf(&schedules->arena, "%.*sschedules", SLICE_ARG(trigger->prefix));
    pthread_mutex_init(&schedules->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&schedules->news, &attributes);
    pthread_condattr_destroy(&attributes);
    if (schedules_read(schedules)) return schedules;
    snprintf(error, error_len, "the table %.*s cannot be read", SLICE_ARG(schedules->table));
    schedules_close(schedules);
    return NULL;
}

void schedules_start(struct schedules *schedules)
{
    schedules->has_thread = pthread_create(&schedules->thread, NULL, thread_run, schedules) == 0;
    if (!schedules->has_thread) log_line("schedules: there is no thread to be had, nothing will be fired");
}

void schedules_halt(struct schedules *schedules)
{
    pthread_mutex_lock(&schedules->lock);
    schedules->is_stopping = true;
    pthread_cond_signal(&schedules->news);
    pthread_mutex_unlock(&schedules->lock);
    if (schedules->has_thread) pthread_join(schedules->thread, NULL);
    schedules->has_thread = false;
}

void schedules_close(struct schedules *schedules)
{
    if (!schedules) return;
    schedules_halt(schedules);
    agenda_free(&schedules->agenda);
    pthread_mutex_destroy(&schedules->lock);
    pthread_cond_destroy(&schedules->news);
    arena_free(&schedules->arena);
    free(schedules);
}

bool schedules_are_idle(struct schedules *schedules)
{
    int64_t now_ms = clock_now_ms(schedules->trigger->options.clock);
    pthread_mutex_lock(&schedules->lock);
    const struct agenda_entry *first = agenda_first(&schedules->agenda);
    bool is_idle = !schedules->is_busy && (!first || first->at_ms > now_ms);
    pthread_mutex_unlock(&schedules->lock);
    return is_idle;
}
