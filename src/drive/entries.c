/* What is to be driven: follows GET /v1/drives, and has each thing driven as it says. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "drive/internal.h"

#define LOOK_MS 60000 /* of a long-poll; also how late what others have written may be seen */

static const struct driver *const drivers[] = {&drive_work, &drive_log, &drive_job};

static const struct driver *driver_of(struct slice kind)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (slice_equal(kind, slice_of(drivers[i]->name))) return drivers[i];
    return NULL;
}

/* ---- one thing ---- */

void driven_has_changed(struct driven *driven)
{
    task_signal_give(&driven->changed);
    for (unsigned i = 0; i < LIMIT_DRIVE_SHARES; i++) {
        task_signal_give(&driven->shares[i].changed);
        task_signal_give(&driven->shares[i].kept);
    }
}

/* The settings as the entry has them. False: its target is none that this server understands. */
static bool driven_read(struct driven *driven, struct slice entry)
{
    struct arena *arena = &driven->text_arena;
    struct pattern_target targets[PATTERN_TARGETS];
    unsigned count;
    arena_reset(arena);
    driven->text = arena_copy(arena, entry);
    struct slice target = raw_member(arena, driven->text, "each");
    if (!target.data) target = raw_member(arena, driven->text, "function");
    if (raw_kind(target) == JSON_STRING) target = raw_text(arena, target);
    driven->version = driven_int(driven, "version", 0);
    driven->concurrency = driven_int(driven, "concurrency", 1);
    driven->timeout_ms = driven_ms(driven, "timeout", 0);
    driven->is_paused = driven_bool(driven, "paused");
    const char *fault = pattern_then_read(target, arena, targets, &count);
    if (fault || count != 1) {
        log_line("%.*s is not driven: its target %s", SLICE_ARG(driven->id), fault ? fault : "is not one");
        driven->is_paused = true;
        return false;
    }
    driven->target = pattern_target_text(&targets[0], arena);
    return true;
}

static void driven_run(void *argument)
{
    struct driven *driven = argument;
    driven->driver->run(driven);
    driven_task_ended(driven);
}

static void driven_add(struct drive *drive, const struct driver *driver, struct slice id, struct slice entry)
{
    struct driven *driven = must_zero(1, sizeof *driven);
    struct arena *arena = &driven->arena;
    driven->drive = drive;
    driven->driver = driver;
    driven->is_seen = true;
    driven->id = arena_copy(arena, id);
    driven->name = arena_copy(arena, raw_text(arena, raw_member(arena, entry, "name")));
    driven->part = arena_copy(arena, raw_text(arena, raw_member(arena, entry, "part")));
    for (unsigned i = 0; i < LIMIT_DRIVE_SHARES; i++)
        driven->shares[i] = (struct share){.driven = driven, .number = i};
    ring_append(&drive->things, &driven->all);
    driven_read(driven, entry);
    if (driver->run)
        driven_begin(driven, driven_run, driven);
    else
        shares_follow(driven);
}

static void driven_change(struct driven *driven, struct slice entry)
{
    driven->is_seen = true;
    if (slice_equal(driven->text, entry)) return;
    driven_read(driven, entry);
    if (!driven->driver->run) shares_follow(driven);
    driven_has_changed(driven);
    drive_leave(driven->drive, driven);
}

static void driven_end(struct driven *driven)
{
    driven->is_gone = true;
    driven->tasks++; /* it stays while others are told */
    atomic_fetch_add(&driven->drive->busy, 1);
    driven_has_changed(driven);
    drive_leave(driven->drive, driven);
    driven_task_ended(driven);
}

/* ---- all ---- */

static struct driven *find(struct drive *drive, struct slice id)
{
    ring_each(struct driven, driven, all,
              &drive->things) if (!driven->is_gone && slice_equal(driven->id, id)) return driven;
    return NULL;
}

static void take_list(struct drive *drive, struct slice list)
{
    struct arena *arena = task_arena();
    struct slice entry;
    ring_each(struct driven, driven, all, &drive->things) driven->is_seen = false;
    raw_each (arena, list, &entry) {
        const struct driver *driver = driver_of(raw_text(arena, raw_member(arena, entry, "kind")));
        struct slice id = raw_text(arena, raw_member(arena, entry, "id"));
        struct driven *known = find(drive, id);
        if (known)
            driven_change(known, entry);
        else if (driver)
            driven_add(drive, driver, id, entry);
    }
    ring_each(struct driven, driven, all, &drive->things) if (!driven->is_seen && !driven->is_gone)
        driven_end(driven);
}

void drive_follow(void *argument)
{
    struct drive *drive = argument;
    struct arena *arena = task_arena();
    char mark[20] = "0";
    while (!drive->is_stopping) {
        struct arena_mark begin = arena_mark(arena);
        struct slice path = arena_printf(arena, "/v1/drives?wait=%d&mark=%s", LOOK_MS, mark);
        struct drive_reply reply = drive_ask(drive, NULL, "GET", path, SLICE(""));
        if (reply.status == 200 && !drive->is_stopping) {
            struct slice told = raw_text(arena, raw_member(arena, reply.body, "mark"));
            take_list(drive, raw_member(arena, reply.body, "drives"));
            if (told.len < sizeof mark) snprintf(mark, sizeof mark, "%.*s", SLICE_ARG(told));
        } else if (!drive->is_stopping) {
            task_await(&drive->stopped, task_after_us(drive->host, DRIVE_AGAIN_MS * 1000));
        }
        arena_rewind(arena, begin);
    }
    atomic_fetch_sub(&drive->busy, 1);
}
