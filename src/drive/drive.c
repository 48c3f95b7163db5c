/* The room's front: opening, the thread, stopping, closing; and how long a thing lives. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/stats.h"
#include "calendar/calendar.h"
#include "drive/internal.h"

#define REST_LOOK_US 2000 /* how often who waits for the end looks */

/* ---- things and their tasks ---- */

void *drive_own(struct drive *drive, size_t bytes)
{
    struct drive_owned *owned = must_zero(1, bytes);
    ring_append(&drive->owned, &owned->all);
    return owned;
}

void drive_disown(struct drive_owned *owned)
{
    ring_remove(&owned->all);
    arena_free(&owned->arena);
    free(owned);
}

void drive_note_running(struct drive *drive, struct running_task *task)
{
    pthread_mutex_lock(&drive->running_lock);
    ring_append(&drive->running_tasks, &task->link);
    pthread_mutex_unlock(&drive->running_lock);
}

void drive_forget_running(struct drive *drive, struct running_task *task)
{
    pthread_mutex_lock(&drive->running_lock);
    ring_remove(&task->link);
    pthread_mutex_unlock(&drive->running_lock);
}

void drive_put_running(struct drive *drive, struct slice job, struct buf *out)
{
    size_t start = out->len;
    pthread_mutex_lock(&drive->running_lock);
    ring_each(struct running_task, running, link, &drive->running_tasks)
    {
        if (!slice_equal(running->job, job)) continue;
        if (out->len > start) buf_byte(out, ',');
        buf_slice(out, running->task);
    }
    pthread_mutex_unlock(&drive->running_lock);
}

void driven_begin(struct driven *driven, void (*run)(void *argument), void *argument)
{
    driven->tasks++;
    atomic_fetch_add(&driven->drive->busy, 1);
    task_begin(driven->drive->host, run, argument);
}

static void driven_free(struct driven *driven)
{
    ring_remove(&driven->all);
    arena_free(&driven->text_arena);
    arena_free(&driven->arena);
    free(driven);
}

void driven_task_ended(struct driven *driven)
{
    ensure(driven->tasks > 0);
    driven->tasks--;
    atomic_fetch_sub(&driven->drive->busy, 1);
    if (driven->is_gone && !driven->tasks) driven_free(driven);
}

bool driven_is_over(const struct driven *driven)
{
    return driven->is_gone || driven->drive->is_stopping;
}

bool driven_rests(const struct driven *driven)
{
    return driven->is_paused || driven_is_over(driven);
}

int64_t driven_int(const struct driven *driven, const char *name, int64_t otherwise)
{
    int64_t number;
    struct arena arena = {0};
    bool is_there = raw_int(raw_member(&arena, driven->text, name), &number);
    arena_free(&arena);
    return is_there ? number : otherwise;
}

int64_t driven_ms(const struct driven *driven, const char *name, int64_t otherwise)
{
    int64_t ms;
    struct arena arena = {0};
    struct slice text = raw_text(&arena, raw_member(&arena, driven->text, name));
    bool is_there = text.len && duration_parse(text, INT64_MAX / 2, &ms);
    arena_free(&arena);
    return is_there ? ms : otherwise;
}

bool driven_bool(const struct driven *driven, const char *name)
{
    struct arena arena = {0};
    bool is_true = slice_equal(raw_member(&arena, driven->text, name), SLICE("true"));
    arena_free(&arena);
    return is_true;
}

/* ---- what lies outside ---- */

static void serve(void *self, struct rest_call *call)
{
    struct drive *drive = self;
    ensure(pattern_serve_on(drive->options.pattern, call, &drive_pattern_host));
}

static void invoke(void *self, struct invocation *invocation)
{
    struct drive *drive = self;
    func_invoke_target(drive->options.func, invocation);
}

/* ---- the thread ---- */

static void *run(void *argument)
{
    struct drive *drive = argument;
    pthread_setname_np(pthread_self(), "quipu-drive");
    for (;;) {
        if (atomic_load(&drive->ends) && !drive->is_ending) {
            drive_begin_stop(drive);
            drive->is_ending = true;
        }
        int64_t wait_us = task_host_step(drive->host);
        dynamo_turn_end(drive->options.dynamo, &drive->turn);
        if (drive->is_ending && ring_empty(&drive->asks)) break;
        if (wait_us) task_host_sleep(drive->host, wait_us);
    }
    return NULL;
}

static void take_stop(struct task_note *note)
{
    drive_begin_stop(ring_owner(note, struct drive, stopping));
}

/* ---- opening and closing ---- */

struct drive *drive_new(const struct drive_options *options, const struct drive_outside *outside,
                        struct task_host *host)
{
    struct drive *drive = must_zero(1, sizeof *drive);
    struct random *random = task_host_random(host);
    drive->options = *options;
    drive->outside = *outside;
    drive->host = host;
    ring_init(&drive->things);
    ring_init(&drive->asks);
    ring_init(&drive->calls);
    ring_init(&drive->owned);
    ring_init(&drive->running_tasks);
    pthread_mutex_init(&drive->running_lock, NULL);
    drive->stopping.run = take_stop;
    uuid_put(drive->owner, random_next(random), random_next(random));
    if (!options->shared)
        strcpy(drive->owner, "local"); /* a server that was killed on this data was this one */
    return drive;
}

void drive_begin(struct drive *drive)
{
    atomic_fetch_add(&drive->busy, 1);
    task_begin(drive->host, drive_follow, drive);
}

void drive_begin_stop(struct drive *drive)
{
    drive->is_stopping = true;
    task_signal_give(&drive->stopped);
    ring_each(struct driven, driven, all, &drive->things) driven_has_changed(driven);
    drive_leave(drive, NULL);
}

void drive_free(struct drive *drive)
{
    drive_calls_abandon(drive);
    task_host_free(drive->host);
    ring_each(struct drive_owned, owned, all, &drive->owned) drive_disown(owned);
    ring_each(struct driven, driven, all, &drive->things) driven_free(driven);
    pthread_mutex_destroy(&drive->running_lock);
    free(drive);
}

struct drive *drive_open(const struct drive_options *options)
{
    struct drive_outside outside = {.serve = serve, .invoke = invoke};
    struct drive *drive = drive_new(options, &outside, task_host_open(options->dynamo, options->clock));
    drive->outside.self = drive;
    return drive;
}

void drive_start(struct drive *drive)
{
    drive_begin(drive);
    drive->has_thread = true;
    ensure(pthread_create(&drive->thread, NULL, run, drive) == 0);
}

void drive_stop(struct drive *drive)
{
    task_host_post(drive->host, &drive->stopping);
}

void drive_rest(struct drive *drive, int64_t wait_ms)
{
    int64_t until_us = monotonic_us() + wait_ms * 1000;
    while (atomic_load(&drive->busy) && monotonic_us() < until_us) usleep(REST_LOOK_US);
}

void drive_close(struct drive *drive)
{
    atomic_store(&drive->ends, true);
    task_host_wake(drive->host);
    if (drive->has_thread) pthread_join(drive->thread, NULL);
    drive_free(drive);
}

void drive_put_metrics(struct drive *drive, struct buf *out)
{
#define X(member, name, type, help)                                                                          \
    stats_put_number(out, "quipu_drive_" name, type, help, stats_read(&drive->member));
    DRIVE_COUNTS(X)
#undef X
}
