/* Work: the units of a queue, each handed to the queue's target.
 *
 * A task for each share waits for a unit where a seat is free, and hands it to a task of its own. Who has finished one
 * looks for the next without waiting; so under load all seats claim by themselves, and at rest one long-poll for each
 * share is all there is. While the target runs the claim is beaten. What it returns is the unit's result; that it
 * failed is told with its reason, and the queue's own rules say when it is tried again, and when it is DEAD. */
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "calendar/calendar.h"
#include "drive/internal.h"

#define CLAIM_WAIT_MS 20000
#define BEATS_A_LEASE 3
#define UNKNOWN_TRIES 8 /* of a function that another server may have made a moment ago: half a minute */
#define LEAST_BEAT_US 50000

struct unit {
    struct drive_owned owned; /* first */
    struct share *share;
    struct slice id, data, progress;
    int64_t attempt, fence, lease_ms;
    bool is_lost; /* its claim is another's, or it is no more */
};

/* A unit, where there is one within the time. */
static bool claim(struct share *share, int64_t wait_ms, struct unit *unit)
{
    struct driven *driven = share->driven;
    struct drive *drive = driven->drive;
    struct slice path = drive_path(task_arena(), "/v1/work/%n/claim", driven->name);
    struct slice body = compose_in(task_arena(), "{'owner':'drive/%r','wait':%d}", slice_of(drive->owner),
                                   wait_ms);
    struct drive_reply reply = drive_ask(drive, driven, "POST", path, body);
    int64_t until_ms = 0, now_ms = task_host_now_ms(drive->host);
    if (reply.status != 200) {
        bool is_in_vain = reply.status != 204 && wait_ms;
        if (is_in_vain && !driven_rests(driven))
            task_await(&share->changed, task_after_us(drive->host, DRIVE_AGAIN_MS * 1000));
        return false;
    }
    struct slice text = arena_copy(&unit->owned.arena, reply.body);
    unit->share = share;
    unit->id = raw_text(&unit->owned.arena, raw_member(&unit->owned.arena, text, "id"));
    unit->data = raw_member(&unit->owned.arena, text, "data");
    unit->progress = raw_member(&unit->owned.arena, text, "progress");
    raw_int(raw_member(&unit->owned.arena, text, "attempts"), &unit->attempt);
    raw_int(raw_member(&unit->owned.arena, text, "fence"), &unit->fence);
    moment_parse(raw_text(&unit->owned.arena, raw_member(&unit->owned.arena, text, "until")), &until_ms);
    unit->lease_ms = until_ms - now_ms;
    return true;
}

static struct drive_reply act(struct unit *unit, const char *what, struct slice body)
{
    struct driven *driven = unit->share->driven;
    return drive_ask(driven->drive, NULL, "POST",
                     drive_path(task_arena(), "/v1/work/%n/%n/%n", driven->name, unit->id, slice_of(what)),
                     body);
}

static void beat(struct unit *unit)
{
    struct drive_reply reply = act(unit, "beat", compose_in(task_arena(), "{'fence':%d}", unit->fence));
    unit->is_lost |= reply.status == 404 || reply.status == 409;
}

/* Says it until it is heard, or the claim must be over. True: it was taken, or no longer counts. */
static bool say(struct unit *unit, const char *what, struct slice body)
{
    struct drive *drive = unit->share->driven->drive;
    struct task_moment until = task_after_us(drive->host, unit->lease_ms * 1000);
    for (;;) {
        struct drive_reply reply = act(unit, what, body);
        if (reply.status == 200 || reply.status == 404 || reply.status == 409) return true;
        if (!reply.status || (reply.status < 500 && reply.status != 429)) return false;
        if (task_moment_is_over(drive->host, &until)) return true;
        task_pause_us(DRIVE_AGAIN_MS * 1000);
    }
}

static void fail(struct unit *unit, struct slice reason, bool is_final)
{
    say(unit, "fail",
        compose_in(task_arena(), "{'fence':%d,'reason':%s%r}", unit->fence, reason,
                   is_final ? SLICE(",\"retry\":false") : SLICE("")));
}

static struct slice payload_of(struct unit *unit)
{
    return compose_in(
        task_arena(), "{'queue':%s,'id':%s,'attempt':%d,'data':%r%r}", unit->share->driven->name, unit->id,
        unit->attempt, unit->data.data ? unit->data : SLICE("null"),
        unit->progress.data ? compose_in(task_arena(), ",'progress':%r", unit->progress) : SLICE(""));
}

static struct task_moment next_beat(const struct unit *unit)
{
    int64_t us = unit->lease_ms * 1000 / BEATS_A_LEASE;
    return task_after_us(unit->share->driven->drive->host, us < LEAST_BEAT_US ? LEAST_BEAT_US : us);
}

/* Calls the target, again and again where it cannot be run now, and keeps the claim meanwhile. False: it was not run to
 * its end. */
static bool call(struct unit *unit, struct drive_outcome *outcome)
{
    struct share *share = unit->share;
    struct driven *driven = share->driven;
    struct slice payload = payload_of(unit);
    for (unsigned tries = 1;; tries++) {
        struct drive_call *target = drive_call_begin(driven, payload);
        while (!drive_call_await(target, next_beat(unit), outcome))
            if (!unit->is_lost) beat(unit);
        bool may_come = outcome->is_unknown && driven->drive->options.shared && tries < UNKNOWN_TRIES;
        if (outcome->end != DRIVE_NOT_RUN && !may_come) return true;
        struct task_moment again = task_after_us(driven->drive->host, drive_pause_us(driven->drive, tries));
        while (!task_moment_is_over(driven->drive->host, &again)) {
            struct task_moment due = next_beat(unit);
            if (again.ticks_us < due.ticks_us) due = again;
            task_await(&share->changed, due);
            if (unit->is_lost || driven_rests(driven)) return false;
            if (!task_moment_is_over(driven->drive->host, &again)) beat(unit);
        }
    }
}

static void unit_work(struct unit *unit)
{
    struct drive_outcome outcome;
    if (!call(unit, &outcome)) {
        if (!unit->is_lost) fail(unit, outcome.text, false); /* who is paused for long keeps no claims */
        return;
    }
    if (unit->is_lost) return;
    if (outcome.end == DRIVE_FAILED) {
        fail(unit, outcome.text, outcome.is_final);
        return;
    }
    struct slice body = compose_in(task_arena(), "{'fence':%d,'result':%r}", unit->fence, outcome.text);
    if (!say(unit, "finish", body)) fail(unit, SLICE("What it returned cannot be kept as a result."), true);
}

static void unit_run(void *argument)
{
    struct unit *unit = argument;
    struct share *share = unit->share;
    struct driven *driven = share->driven;
    bool goes_on = true;
    while (goes_on) {
        struct arena_mark begin = arena_mark(task_arena());
        unit_work(unit);
        arena_reset(&unit->owned.arena);
        unit->is_lost = false;
        goes_on = share->busy <= share_seats(share) && claim(share, 0, unit);
        arena_rewind(task_arena(), begin);
    }
    drive_disown(&unit->owned);
    share->busy--;
    task_signal_give(&share->changed);
    task_signal_give(&share->kept);
    driven_task_ended(driven);
}

static void work_share(struct share *share)
{
    struct driven *driven = share->driven;
    while (!share_is_over(share)) {
        struct arena_mark begin = arena_mark(task_arena());
        struct unit *unit = drive_own(driven->drive, sizeof *unit);
        bool has_room = share->busy < share_seats(share),
             is_claimed = has_room && claim(share, CLAIM_WAIT_MS, unit);
        if (is_claimed) {
            share->busy++;
            driven_begin(driven, unit_run, unit);
        } else {
            drive_disown(&unit->owned);
        }
        /* the lease ends by itself, too, when it cannot be renewed */
        if (!has_room) task_await(&share->changed, task_after_us(driven->drive->host, DRIVE_RENEW_MS * 1000));
        arena_rewind(task_arena(), begin);
    }
}

const struct driver drive_work = {.name = "work", .share = work_share};
