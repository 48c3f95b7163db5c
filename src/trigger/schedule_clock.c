/* The clockwork: a task begins another for each schedule whose time comes, and one reads the table.
 *
 * Nobody scans the table to find what is due: the agenda knows, from reading the table once at the start and from
 * hearing of each change that is made here. Where other servers work on the same table it is read again every few
 * seconds, for what they changed. The agenda may be wrong or old: what is due is read, judged, and moved on by a
 * conditional write. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/log.h"
#include "trigger/schedule.h"

#define READ_EVERY_US 5000000

/* ---- the agenda ---- */

static struct agenda_entry *entry_find(struct schedules *schedules, struct slice group, struct slice name,
                                       bool is_made)
{
    struct ring *bucket = &schedules->by_name[(hash_bytes(group) * 31 + hash_bytes(name)) % SCHEDULE_BUCKETS];
    ring_each (struct agenda_entry, known, by_name, bucket)
        if (slice_equal(agenda_group(known), group) && slice_equal(agenda_name(known), name)) return known;
    if (!is_made) return NULL;
    struct agenda_entry *entry = must_zero(1, sizeof *entry + group.len + name.len);
    entry->schedules = schedules;
    entry->group_len = group.len;
    entry->name_len = name.len;
    memcpy(entry->names, group.data, group.len);
    memcpy(entry->names + group.len, name.data, name.len);
    ring_append(bucket, &entry->by_name);
    schedules->count++;
    return entry;
}

/* HEAP_NEVER: it is forgotten. Of one that is not in hand. */
static void entry_due(struct agenda_entry *entry, int64_t due_ms)
{
    struct schedules *schedules = entry->schedules;
    heap_set(&schedules->due, &entry->due, due_ms);
    atomic_store(&schedules->next_ms, heap_due(&schedules->due));
    task_signal_give(&schedules->changed);
    if (due_ms != HEAP_NEVER) return;
    ring_remove(&entry->by_name);
    schedules->count--;
    free(entry);
}

void agenda_give_back(struct agenda_entry *entry, int64_t due_ms)
{
    struct schedules *schedules = entry->schedules;
    if (entry->is_noted) due_ms = entry->noted_ms;
    entry->is_in_hand = entry->is_noted = false;
    schedules->in_hand--;
    entry_due(entry, due_ms);
    atomic_fetch_sub(&schedules->active, 1);
}

static void entry_change(struct agenda_entry *entry, int64_t due_ms)
{
    entry->failures = 0;
    entry->round = entry->schedules->round;
    entry->is_noted = entry->is_in_hand;
    entry->noted_ms = due_ms;
    if (!entry->is_in_hand) entry_due(entry, due_ms);
}

/* When a schedule is to be looked at; HEAP_NEVER: not before somebody changes it. */
static int64_t look_at_ms(const struct schedule *schedule)
{
    struct arena arena = {0};
    struct slice why;
    int64_t at_ms = schedule->next_ms;
    if (at_ms == SCHEDULE_NONE) return HEAP_NEVER;
    if (schedule->window_min == SCHEDULE_NONE) return at_ms;
    struct timetable *timetable = schedule_timetable(&arena, schedule, &why);
    if (timetable) at_ms = schedule_fire_ms(schedule, timetable, at_ms);
    arena_free(&arena);
    return at_ms;
}

void schedules_note(struct schedules *schedules, const struct schedule *schedule)
{
    int64_t at_ms = look_at_ms(schedule);
    struct agenda_entry *entry = entry_find(schedules, schedule->group, schedule->name, at_ms != HEAP_NEVER);
    if (entry) entry_change(entry, at_ms);
}

void schedules_forget(struct schedules *schedules, struct slice group, struct slice name)
{
    struct agenda_entry *entry = entry_find(schedules, group, name, false);
    if (entry) entry_change(entry, HEAP_NEVER);
}

/* ---- deletions ---- */

static uint64_t deletion_hash(struct slice token, struct slice name)
{
    return hash_bytes(token) * 31 + hash_bytes(name);
}

bool schedules_has_deleted(struct schedules *schedules, struct slice token, struct slice name)
{
    bool found = false;
    for (unsigned i = 0; token.len && i < SCHEDULE_DELETIONS && i < schedules->deletion_count; i++)
        found |= schedules->deletions[i] == deletion_hash(token, name);
    return found;
}

void schedules_note_deletion(struct schedules *schedules, struct slice token, struct slice name)
{
    if (!token.len) return;
    schedules->deletions[schedules->deletion_count++ % SCHEDULE_DELETIONS] = deletion_hash(token, name);
}

/* ---- reading the table ---- */

/* What was heard of since the reading began is newer than what is read. */
bool schedules_read(struct schedules *schedules)
{
    uint64_t round = ++schedules->round;
    struct schedule_walk walk = schedule_walk_from(schedules, SLICE_NONE, SLICE_NONE, SLICE_NONE);
    struct schedule schedule;
    struct slice item;
    while (schedule_walk_next(&walk, &item)) {
        if (!schedule_from_item(task_arena(), item, &schedule) ||
            slice_equal(schedule.group, SLICE(SCHEDULE_GROUPS)))
            continue;
        int64_t at_ms = look_at_ms(&schedule);
        if (at_ms == HEAP_NEVER) continue;
        struct agenda_entry *entry = entry_find(schedules, schedule.group, schedule.name, true);
        if (entry->round == round) continue;
        entry->round = round;
        if (!entry->is_in_hand && !entry->failures) entry_due(entry, at_ms);
    }
    if (walk.fault != DYNAMO_FINE) return walk.fault == DYNAMO_MISSING;
    schedules->table_is_there = true;
    for (unsigned i = 0; i < SCHEDULE_BUCKETS; i++)
        ring_each (struct agenda_entry, entry, by_name, &schedules->by_name[i])
            if (entry->round < round && !entry->is_in_hand) entry_due(entry, HEAP_NEVER);
    return true;
}

/* Where other servers work on the table, for what they changed. */
static void read_task(void *argument)
{
    struct schedules *schedules = argument;
    while (!schedules->is_stopping) {
        struct task_moment next = {task_host_ticks_us(schedules->host) + READ_EVERY_US, HEAP_NEVER};
        while (!schedules->is_stopping && !task_moment_is_over(schedules->host, &next))
            task_await(&schedules->changed, next);
        struct arena_mark mark = arena_mark(task_arena());
        atomic_fetch_add(&schedules->active, 1);
        if (!schedules->is_stopping) schedules_read(schedules);
        atomic_fetch_sub(&schedules->active, 1);
        arena_rewind(task_arena(), mark);
    }
}

/* ---- beginning what is due ---- */

static void dispatch_task(void *argument)
{
    struct schedules *schedules = argument;
    while (!schedules->is_stopping) {
        int64_t now_ms = task_host_now_ms(schedules->host);
        while (heap_due(&schedules->due) <= now_ms && schedules->in_hand < LIMIT_SCHEDULES_FIRING) {
            struct agenda_entry *entry = ring_owner(heap_first(&schedules->due), struct agenda_entry, due);
            atomic_fetch_add(&schedules->active, 1); /* before it counts no more as waiting */
            heap_remove(&schedules->due, &entry->due);
            atomic_store(&schedules->next_ms, heap_due(&schedules->due));
            entry->is_in_hand = true;
            schedules->in_hand++;
            task_begin(schedules->host, schedule_fire_task, entry);
        }
        bool has_room = schedules->in_hand < LIMIT_SCHEDULES_FIRING;
        task_await(&schedules->changed,
                   (struct task_moment){HEAP_NEVER, has_room ? heap_due(&schedules->due) : HEAP_NEVER});
    }
    while (!schedules->is_closing)
        task_await(&schedules->changed, TASK_NEVER); /* requests are served still */
}

/* ---- opening and closing ---- */

static void note_stopping(struct task_note *note)
{
    struct schedules *schedules = ring_owner(note, struct schedules, stopping);
    schedules->is_stopping = true;
    task_signal_give(&schedules->changed);
}

static void note_closing(struct task_note *note)
{
    struct schedules *schedules = ring_owner(note, struct schedules, closing);
    schedules->is_closing = true;
    task_signal_give(&schedules->changed);
}

static void first_read_task(void *argument)
{
    struct schedules *schedules = argument;
    schedules->is_readable = schedules_read(schedules);
}

struct schedules *schedules_open_with(struct trigger *trigger, const struct schedule_doors *doors,
                                      struct task_host *host)
{
    struct schedules *schedules = must_zero(1, sizeof *schedules);
    schedules->trigger = trigger;
    schedules->doors = *doors;
    schedules->table = arena_printf(&schedules->arena, "%.*sschedules", SLICE_ARG(trigger->prefix));
    schedules->host = host;
    schedules->stopping.run = note_stopping;
    schedules->closing.run = note_closing;
    atomic_init(&schedules->next_ms, HEAP_NEVER);
    for (unsigned i = 0; i < SCHEDULE_BUCKETS; i++) ring_init(&schedules->by_name[i]);
    task_begin(host, first_read_task, schedules);
    task_host_run(host);
    if (schedules->is_readable) return schedules;
    schedules_close(schedules);
    return NULL;
}

void schedules_begin(struct schedules *schedules)
{
    task_begin(schedules->host, dispatch_task, schedules);
    if (schedules->trigger->options.shared) task_begin(schedules->host, read_task, schedules);
}

static void *run_thread(void *schedules)
{
    task_host_run(((struct schedules *)schedules)->host);
    return NULL;
}

void schedules_start(struct schedules *schedules)
{
    schedules_begin(schedules);
    ensure(pthread_create(&schedules->thread, NULL, run_thread, schedules) == 0);
    schedules->has_thread = true;
}

void schedules_halt(struct schedules *schedules)
{
    if (!schedules->is_halted) task_host_post(schedules->host, &schedules->stopping);
    schedules->is_halted = true;
}

void schedules_close(struct schedules *schedules)
{
    if (!schedules) return;
    schedules_halt(schedules);
    task_host_post(schedules->host, &schedules->closing);
    if (schedules->has_thread) pthread_join(schedules->thread, NULL);
    task_host_free(schedules->host);
    for (unsigned i = 0; i < SCHEDULE_BUCKETS; i++)
        ring_each (struct agenda_entry, entry, by_name, &schedules->by_name[i]) free(entry);
    heap_free(&schedules->due);
    arena_free(&schedules->arena);
    free(schedules);
}

bool schedules_are_idle(struct schedules *schedules)
{
    return atomic_load(&schedules->active) == 0 &&
           atomic_load(&schedules->next_ms) > clock_now_ms(schedules->trigger->options.clock);
}

/* ---- the real world ---- */

struct schedules *schedules_open(struct trigger *trigger, char *error, size_t error_len)
{
    static const struct schedule_doors doors = {func_resolve,    func_queue_put,  destination_fault,
                                                destination_put, func_queue_wake, func_tables_mend_in_task};
    struct schedules *schedules = schedules_open_with(
        trigger, &doors, task_host_open(trigger->options.dynamo, trigger->options.clock));
    if (!schedules)
        snprintf(error, error_len, "the table %.*sschedules cannot be read", SLICE_ARG(trigger->prefix));
    return schedules;
}
