/* Jobs: the tasks of a job, each handed to the job's target.
 *
 * Whoever holds shares of a job walks over its tasks, 256 at a time, and takes those that fall to its shares by a hash
 * of their names. One of the shares' tasks leads for all shares that this server holds: it reads, and begins a task for
 * each call in a free seat. What came of calls is told by one task for all of them: what comes while it tells is told
 * together the next time. Attempts and pauses are kept here only: who takes over counts anew.
 *
 * At the end of a walk, when all that was begun is told, it walks once more where something was found, since failed
 * tasks may have been made missing again; else it waits for more tasks, or the end of the job, and removes the drive of
 * a job that has ended. */
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/hash.h"
#include "calendar/calendar.h"
#include "drive/internal.h"

#define WAIT_MS    20000 /* of a long-poll for tasks; then all are looked at again */
#define IN_HAND    4     /* times the seats: units that are called, wait for another attempt, or to be told */
#define TELL_MOST  500   /* results by one call */
#define TELL_BYTES 1000000
#define ORPHAN_MS                                                                                            \
    60000 /* a drive without a job is as old before it is removed: its job may be about to come */
#define LEAST_PAUSE_MS  10      /* between two looks for it */
#define BACKOFF_MOST_MS 3600000 /* between two attempts */

/* What this server does for a job. */
struct work {
    struct drive_owned owned; /* first; its arena has the page */
    struct driven *driven;
    unsigned users;       /* shares, units and the one that tells */
    struct share *leader; /* NULL: none */
    bool tells;
    struct ring units, ready, ended; /* all in hand; those to be called again; those to be told */
    unsigned count, running;         /* of units; of calls */
    /* the walk */
    bool is_stale; /* it begins anew: shares were added, or the job was changed */
    bool has_found;
    int64_t next;
    struct raw_look page;
    bool has_page, is_end;
    int64_t attempts, backoff_ms;
};

struct unit {
    struct drive_owned owned; /* first */
    struct ring all, queue;
    struct work *work;
    struct share *share;
    struct slice task, item; /* JSON; the item may have NULL data */
    int64_t attempt;
    unsigned tries; /* to have the target called, in vain */
    struct slice result, reason;
    struct running_task shown;
};

static void work_release(struct work *work)
{
    if (--work->users) return;
    work->driven->own = NULL;
    drive_disown(&work->owned);
}

/* Something has changed for who leads, or may. */
static void work_signal(struct work *work)
{
    if (work->leader) task_signal_give(&work->leader->changed);
    for (unsigned i = 0; !work->leader && i < LIMIT_DRIVE_SHARES; i++)
        task_signal_give(&work->driven->shares[i].changed);
}

static unsigned seats_of(const struct work *work)
{
    unsigned seats = 0;
    for (unsigned i = 0; i < LIMIT_DRIVE_SHARES; i++) seats += share_seats(&work->driven->shares[i]);
    return seats;
}

static unsigned share_count_of(const struct driven *driven)
{
    return driven->concurrency < LIMIT_DRIVE_SHARES ? (unsigned)driven->concurrency : LIMIT_DRIVE_SHARES;
}

static int64_t duration_member(struct arena *arena, struct slice object, const char *name, int64_t otherwise)
{
    int64_t ms;
    struct slice text = raw_text(arena, raw_member(arena, object, name));
    return text.len && duration_parse(text, INT64_MAX / 2, &ms) ? ms : otherwise;
}

/* ---- telling ---- */

static void unit_free(struct unit *unit)
{
    struct work *work = unit->work;
    ring_remove(&unit->all);
    work->count--;
    unit->share->busy--;
    task_signal_give(&unit->share->kept);
    drive_disown(&unit->owned);
}

/* Says it until it is heard; 0: never, since the drive ends. */
static int say(struct work *work, const char *what, struct slice body, struct slice *reply)
{
    struct driven *driven = work->driven;
    for (;;) {
        struct drive_reply said = drive_ask(
            driven->drive, NULL, "POST",
            drive_path(task_arena(), "/v1/jobs/%n/%n", driven->name, slice_of(what)), body);
        *reply = said.body;
        if (said.status < 500 && said.status != 429) return said.status;
        task_pause_us(DRIVE_AGAIN_MS * 1000);
    }
}

static int tell_failure(struct work *work, const struct unit *unit, struct slice reason)
{
    struct slice reply, body = compose_in(task_arena(), "{'task':%r,'reason':%s}", unit->task, reason);
    int status = say(work, "failed", body, &reply);
    bool is_open = slice_equal(raw_text(task_arena(), raw_member(task_arena(), reply, "state")),
                               SLICE("OPEN"));
    if (status != 200 || !is_open) work->is_stale = true; /* it has ended, or is gone */
    return status;
}

/* Tells of the first of `units`, in one call, as many as it takes; answers how many. */
static size_t tell_results(struct work *work, struct unit **units, size_t count)
{
    struct buf body = {0};
    struct slice reply;
    size_t told = 0;
    buf_text(&body, "{\"tasks\":[");
    for (; told < count && told < TELL_MOST && (!told || body.len + units[told]->result.len < TELL_BYTES);
         told++) {
        const struct unit *unit = units[told];
        bool is_nothing = slice_equal(unit->result, SLICE("null"));
        if (told) buf_byte(&body, ',');
        if (is_nothing)
            buf_slice(&body, unit->task);
        else
            compose(&body, "{'task':%r,'result':%r}", unit->task, unit->result);
    }
    buf_text(&body, "]}");
    int status = say(work, "done", arena_take(task_arena(), &body), &reply);
    if (status == 400 && told > 1)
        return tell_results(work, units, 1); /* whose fault it is shows by itself */
    if (status == 400) tell_failure(work, units[0], SLICE("What it returned cannot be kept as a result."));
    if (status != 200) work->is_stale = true;
    return told;
}

static void tell_all(struct work *work)
{
    struct unit *answered[TELL_MOST];
    size_t count = 0;
    struct ring failed;
    ring_init(&failed);
    while (!ring_empty(&work->ended) && count < TELL_MOST) {
        struct unit *unit = ring_owner(work->ended.next, struct unit, queue);
        ring_remove(&unit->queue);
        if (unit->result.data)
            answered[count++] = unit;
        else
            ring_append(&failed, &unit->queue);
    }
    for (size_t at = 0; at < count;) {
        struct arena_mark begin = arena_mark(task_arena());
        size_t told = tell_results(work, &answered[at], count - at);
        for (; told; told--) unit_free(answered[at++]);
        arena_rewind(task_arena(), begin);
    }
    while (!ring_empty(&failed)) {
        struct arena_mark begin = arena_mark(task_arena());
        struct unit *unit = ring_owner(failed.next, struct unit, queue);
        ring_remove(&unit->queue);
        tell_failure(work, unit, unit->reason);
        unit_free(unit);
        arena_rewind(task_arena(), begin);
    }
}

static void tell(void *argument)
{
    struct work *work = argument;
    struct driven *driven = work->driven;
    while (!ring_empty(&work->ended)) {
        tell_all(work);
        work_signal(work);
    }
    work->tells = false;
    work_release(work);
    driven_task_ended(driven);
}

/* ---- calling ---- */

static void unit_end(struct unit *unit)
{
    struct work *work = unit->work;
    ring_append(&work->ended, &unit->queue);
    if (work->tells) return;
    work->tells = true;
    work->users++;
    driven_begin(work->driven, tell, work);
}

static struct slice payload_of(const struct unit *unit)
{
    return compose_in(
        task_arena(), "{'job':%s,'task':%r%r,'attempt':%d}", unit->work->driven->name, unit->task,
        unit->item.data ? compose_in(task_arena(), ",'item':%r", unit->item) : SLICE(""), unit->attempt);
}

static int64_t backoff_us(const struct work *work, int64_t attempt)
{
    int64_t ms = work->backoff_ms;
    for (; attempt > 1 && ms < BACKOFF_MOST_MS; attempt--) ms *= 2;
    if (ms > BACKOFF_MOST_MS) ms = BACKOFF_MOST_MS;
    uint64_t part = random_below(task_host_random(work->driven->drive->host), (uint64_t)ms * 250 + 1);
    return ms * 1000 - (int64_t)part; /* up to a quarter less, so that a herd spreads */
}

/* Waits outside of any seat, then it is to be called again. False: nothing is begun any more. */
static bool unit_pause(struct unit *unit, int64_t us)
{
    struct driven *driven = unit->work->driven;
    struct task_moment until = task_after_us(driven->drive->host, us);
    while (!driven_rests(driven) && !task_moment_is_over(driven->drive->host, &until))
        task_await(&driven->changed, until);
    return !driven_rests(driven);
}

static void unit_run(void *argument)
{
    struct unit *unit = argument;
    struct work *work = unit->work;
    struct driven *driven = work->driven;
    struct drive_outcome outcome;
    unit->shown = (struct running_task){.job = driven->name, .task = unit->task};
    drive_note_running(driven->drive, &unit->shown);
    drive_call_await(drive_call_begin(driven, payload_of(unit)), TASK_NEVER, &outcome);
    drive_forget_running(driven->drive, &unit->shown);
    work->running--;
    work_signal(work);
    bool is_called = outcome.end != DRIVE_NOT_RUN;
    bool is_last = outcome.is_final || unit->attempt >= work->attempts;
    if (outcome.end == DRIVE_ANSWERED) {
        unit->result = arena_copy(&unit->owned.arena, outcome.text);
        unit_end(unit);
    } else if (is_called && is_last) {
        unit->reason = arena_copy(&unit->owned.arena, outcome.text);
        unit_end(unit);
    } else if (unit_pause(unit, is_called ? backoff_us(work, unit->attempt)
                                          : drive_pause_us(driven->drive, ++unit->tries))) {
        unit->attempt += is_called;
        ring_append(&work->ready, &unit->queue);
    } else {
        unit_free(unit); /* it is neither done nor failed: whoever walks next finds it */
        work->is_stale = true;
    }
    work_signal(work);
    work_release(work);
    driven_task_ended(driven);
}

static void unit_begin(struct unit *unit)
{
    unit->work->users++;
    unit->work->running++;
    driven_begin(unit->work->driven, unit_run, unit);
}

static bool is_in_hand(const struct work *work, struct slice task)
{
    ring_each(struct unit, unit, all, &work->units) if (slice_equal(unit->task, task)) return true;
    return false;
}

/* The next unit of the page that falls to a share of this server; false: the page is over. */
static bool page_next(struct work *work)
{
    struct driven *driven = work->driven;
    struct slice object;
    struct arena *arena = &work->owned.arena;
    while (work->has_page && raw_look_next(&work->page, NULL, &object)) {
        struct slice task = raw_member(arena, object, "task"), item = raw_member(arena, object, "item");
        struct share *share = &driven->shares[hash_bytes(task) % share_count_of(driven)];
        if (!share_seats(share) || is_in_hand(work, task)) continue;
        struct unit *unit = drive_own(driven->drive, sizeof *unit);
        unit->work = work;
        unit->share = share;
        unit->task = arena_copy(&unit->owned.arena, task);
        if (item.data) unit->item = arena_copy(&unit->owned.arena, item);
        unit->attempt = 1;
        ring_append(&work->units, &unit->all);
        work->count++;
        share->busy++;
        work->has_found = true;
        unit_begin(unit);
        return true;
    }
    work->has_page = false;
    return false;
}

/* Begins calls in all free seats; false: there are free ones, and nothing to be called in what is known. */
static bool seats_fill(struct work *work)
{
    for (unsigned seats = seats_of(work); work->running < seats;) {
        if (!ring_empty(&work->ready)) {
            struct unit *unit = ring_owner(work->ready.next, struct unit, queue);
            ring_remove(&unit->queue);
            unit_begin(unit);
        } else if (work->count >= seats * IN_HAND || !page_next(work)) {
            return work->count >= seats * IN_HAND;
        }
    }
    return true;
}

/* ---- the walk ---- */

/* The job has ended, or there is none: its drive is not needed, unless somebody has written it since. Its job may be
 * about to come, where it is young. */
static void drive_end(struct work *work, struct share *share, bool is_there)
{
    struct driven *driven = work->driven;
    struct drive *drive = driven->drive;
    int64_t changed_ms = 0, pause_ms = DRIVE_RENEW_MS;
    moment_parse(raw_text(task_arena(), raw_member(task_arena(), driven->text, "changed")), &changed_ms);
    int64_t age_ms = task_host_now_ms(drive->host) - changed_ms;
    if (is_there || age_ms > ORPHAN_MS) {
        struct slice path = drive_path(task_arena(), "/v1/drives/%n", driven->id);
        path = arena_printf(task_arena(), "%.*s?version=%lld", SLICE_ARG(path), (long long)driven->version);
        struct drive_reply reply = drive_ask(drive, NULL, "DELETE", path, SLICE(""));
        if (reply.status != 200 || slice_contains(reply.body, SLICE("false"))) pause_ms = DRIVE_AGAIN_MS;
    } else {
        pause_ms = age_ms > 4 * LEAST_PAUSE_MS ? age_ms / 4 : LEAST_PAUSE_MS;
    }
    if (!share_is_over(share)) task_await(&share->changed, task_after_us(drive->host, pause_ms * 1000));
}

/* Reads the next tasks. */
static void page_read(struct work *work, struct share *share, int64_t wait_ms)
{
    struct driven *driven = work->driven;
    struct arena *arena = &work->owned.arena;
    struct slice path = drive_path(task_arena(), "/v1/jobs/%n/tasks", driven->name);
    path = arena_printf(task_arena(), "%.*s?from=%lld&wait=%lld", SLICE_ARG(path), (long long)work->next,
                        (long long)wait_ms);
    struct drive_reply reply = drive_ask(driven->drive, wait_ms ? driven : NULL, "GET", path, SLICE(""));
    struct slice state = raw_text(task_arena(), raw_member(task_arena(), reply.body, "state"));
    bool is_gone = reply.status == 404;
    if (share_is_over(share) || !reply.status) return;
    if (is_gone || (reply.status == 200 && !slice_equal(state, SLICE("OPEN")))) {
        work->is_stale = true;
        drive_end(work, share, !is_gone);
        return;
    }
    if (reply.status != 200) {
        task_await(&share->changed, task_after_us(driven->drive->host, DRIVE_AGAIN_MS * 1000));
        return;
    }
    arena_reset(arena);
    struct slice body = arena_copy(arena, reply.body);
    raw_int(raw_member(arena, body, "next"), &work->next);
    work->is_end = raw_member(arena, body, "end").data != NULL;
    if (!raw_int(raw_member(arena, body, "attempts"), &work->attempts)) work->attempts = 1;
    work->backoff_ms = duration_member(arena, body, "backoff", 0);
    raw_look_begin(&work->page, arena, raw_member(arena, body, "tasks"));
    work->has_page = true;
    if (work->is_end && raw_member(arena, body, "reads").data) { /* the items come from a table */
        path = drive_path(task_arena(), "/v1/jobs/%n/read", driven->name);
        reply = drive_ask(driven->drive, NULL, "POST", path, SLICE(""));
        work->is_end = reply.status != 200 &&
                       !task_await(&share->changed,
                                   task_after_us(driven->drive->host, DRIVE_AGAIN_MS * 1000));
    }
}

static void walk_begin(struct work *work)
{
    work->is_stale = work->has_found = work->has_page = work->is_end = false;
    work->next = 0;
}

static void lead(struct work *work, struct share *share)
{
    struct driven *driven = work->driven;
    while (!share_is_over(share)) {
        struct arena_mark begin = arena_mark(task_arena());
        if (work->is_stale) walk_begin(work);
        if (seats_fill(work)) {
            /* the lease ends by itself, too, when it cannot be renewed */
            task_await(&share->changed, task_after_us(driven->drive->host, DRIVE_RENEW_MS * 1000));
        } else if (!work->is_end) {
            page_read(work, share, 0);
        } else if (work->count) {
            task_await(&share->changed, task_after_us(driven->drive->host, DRIVE_RENEW_MS * 1000));
        } else {
            if (!work->has_found)
                page_read(work, share, WAIT_MS); /* what it brings is seen again from the start */
            walk_begin(work);
        }
        arena_rewind(task_arena(), begin);
    }
}

static void job_share(struct share *share)
{
    struct driven *driven = share->driven;
    struct work *work = driven->own;
    if (!work) {
        work = driven->own = drive_own(driven->drive, sizeof *work);
        work->driven = driven;
        ring_init(&work->units);
        ring_init(&work->ready);
        ring_init(&work->ended);
    }
    work->users++;
    work->is_stale = true;
    while (!share_is_over(share)) {
        if (work->leader) {
            task_await(&share->changed, task_after_us(driven->drive->host, DRIVE_RENEW_MS * 1000));
            continue;
        }
        work->leader = share;
        lead(work, share);
        work->leader = NULL;
        work_signal(work);
    }
    work_release(work);
}

const struct driver drive_job = {.name = "job", .share = job_share};
