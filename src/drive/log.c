/* Logs: what a group of consumers has to read, handed to its target in batches.
 *
 * One task waits for news of the log. What it is given, a partition by a lease and its next events, goes to a lane: a
 * task that has them called, moves the position over what is done, and looks for more; so as many partitions are in
 * hand as have something to read. The lease of a partition is the group's own, so servers share a log without shares,
 * and what comes behind a split or a merge waits for its parents as for any reader.
 *
 * The events of a lane are divided among its strips by their keys, and each strip calls its own, batch after batch, in
 * order. The position moves over the events that all strips are done with. An event that fails too often is parked with
 * the reason when those before it are done. */
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/hash.h"
#include "drive/internal.h"

#define READ_WAIT_MS 20000
#define READ_MOST    1000
#define LEASE_MS     30000
#define BEAT_US      (LEASE_MS * 1000ll / 3)
#define STRIPS       10
#define MISSING_MS   5000 /* before a log that is not there is looked for again */

enum event_state { EVENT_OPEN, EVENT_DONE, EVENT_FAILED };

struct log_event {
    struct slice text;
    int64_t sequence;
    unsigned strip;
    enum event_state state;
    struct slice reason; /* FAILED */
};

struct strip {
    struct lane *lane;
    unsigned number;
    bool runs;
};

struct lane {
    struct drive_owned owned; /* first; its arena has what it was given */
    struct driven *driven;
    struct log_run *run;
    unsigned number;
    struct slice partition;
    int64_t fence;
    struct log_event *events;
    size_t count, done; /* done: moved over by the position */
    bool is_lost, has_more;
    struct strip strips[STRIPS];
    unsigned running;
    struct task_signal changed;
};

struct log_run {
    bool is_taken[LIMIT_DRIVE_LANES]; /* the names of readers that are in use */
    unsigned lanes;
};

/* ---- the patterns' calls ---- */

static struct drive_reply ask(struct lane *lane, struct driven *waits, const char *what, struct slice body)
{
    struct driven *driven = lane->driven;
    return drive_ask(
        driven->drive, waits, "POST",
        drive_path(task_arena(), "/v1/logs/%n/consumers/%n/%n", driven->name, driven->part, slice_of(what)),
        body);
}

static void take_events(struct lane *lane, struct slice reply)
{
    struct arena *arena = &lane->owned.arena;
    int64_t parallel = driven_int(lane->driven, "parallel", 1);
    struct slice text = arena_copy(arena, reply), events = raw_member(arena, text, "events"), event;
    lane->partition = raw_text(arena, raw_member(arena, text, "partition"));
    raw_int(raw_member(arena, text, "fence"), &lane->fence);
    lane->has_more = slice_equal(raw_member(arena, text, "more"), SLICE("true"));
    lane->count = lane->done = 0;
    lane->is_lost = false;
    lane->events = arena_array(arena, struct log_event, raw_count(arena, events));
    raw_each (arena, events, &event) {
        struct log_event *own = &lane->events[lane->count++];
        struct slice key = raw_text(arena, raw_member(arena, event, "key"));
        *own = (struct log_event){.text = event, .strip = (unsigned)(hash_bytes(key) % (uint64_t)parallel)};
        raw_int(raw_member(arena, event, "sequence"), &own->sequence);
    }
}

/* What is next, of any partition or of that which it has. False: there is nothing, or it cannot be had. */
static bool read(struct lane *lane, int64_t wait_ms, bool same)
{
    struct driven *driven = lane->driven;
    int64_t most = driven_int(driven, "batch", 100) * driven_int(driven, "parallel", 1);
    struct slice partition = same ? compose_in(task_arena(), ",'partition':%s", lane->partition) : SLICE("");
    struct slice body = compose_in(
        task_arena(), "{'owner':'drive/%r/%d','max':%d,'wait':%d,'for':%d%r}", slice_of(driven->drive->owner),
        (int64_t)lane->number, most < READ_MOST ? most : READ_MOST, wait_ms, (int64_t)LEASE_MS, partition);
    struct drive_reply reply = ask(lane, driven, "read", body);
    if (reply.status == 200) {
        arena_reset(&lane->owned.arena);
        take_events(lane, reply.body);
    } else if (reply.status != 204 && wait_ms && !driven_rests(driven)) {
        int64_t pause_ms = reply.status == 404 ? MISSING_MS : DRIVE_AGAIN_MS;
        task_await(&driven->changed, task_after_us(driven->drive->host, pause_ms * 1000));
    }
    return reply.status == 200;
}

/* Says it until it is heard. Who has lost the partition says nothing more. */
static void say(struct lane *lane, const char *what, struct slice members)
{
    struct drive *drive = lane->driven->drive;
    struct task_moment until = task_after_us(drive->host, LEASE_MS * 1000ll);
    while (!lane->is_lost) {
        struct slice body = compose_in(task_arena(), "{'partition':%s,'fence':%d%A}", lane->partition,
                                       lane->fence, members);
        struct drive_reply reply = ask(lane, NULL, what, body);
        if (reply.status == 200) return;
        if (!reply.status || (reply.status < 500 && reply.status != 429)) lane->is_lost = true;
        if (task_moment_is_over(drive->host, &until)) lane->is_lost = true;
        if (!lane->is_lost) task_pause_us(DRIVE_AGAIN_MS * 1000);
    }
}

/* ---- strips: calling ---- */

static struct slice payload_of(struct lane *lane, struct log_event *const *events, size_t count,
                               unsigned attempt)
{
    struct buf out = {0};
    compose(&out, "{'log':%s,'consumer':%s,'partition':%s,'attempt':%d,'events':[", lane->driven->name,
            lane->driven->part, lane->partition, (int64_t)attempt);
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(&out, ',');
        buf_slice(&out, events[i]->text);
    }
    buf_text(&out, "]}");
    return arena_take(task_arena(), &out);
}

/* How many events, from the first on, it is done with, as the answer says: all, unless it names failures. Where it
 * names one that it was not given, the whole batch has failed: none, and *is_named is false. */
static size_t done_count(struct slice answer, struct log_event *const *events, size_t count, bool *is_named)
{
    struct arena *arena = task_arena();
    struct slice failure, failures = raw_kind(answer) == JSON_OBJECT
                                         ? raw_member(arena, answer, "batchItemFailures")
                                         : SLICE_NONE;
    size_t first = count;
    *is_named = false;
    if (raw_kind(failures) != JSON_ARRAY) return count;
    raw_each (arena, failures, &failure) {
        struct slice id = raw_text(arena, raw_member(arena, failure, "itemIdentifier"));
        int64_t sequence;
        size_t at = 0;
        *is_named = false;
        if (!id.len || !raw_int(id, &sequence)) return 0;
        while (at < count && events[at]->sequence != sequence) at++;
        if (at == count) return 0;
        if (at < first) first = at;
        *is_named = true;
    }
    return first;
}

static void settle(struct log_event *const *events, size_t count, enum event_state state, struct lane *lane,
                   struct slice reason)
{
    reason = arena_copy(&lane->owned.arena, reason);
    for (size_t i = 0; i < count; i++) {
        events[i]->state = state;
        events[i]->reason = reason;
    }
}

static bool strip_is_over(const struct lane *lane)
{
    return lane->is_lost || driven_rests(lane->driven);
}

/* Ends early only where nothing more is to be called. */
static void rest(struct lane *lane, int64_t us)
{
    struct task_host *host = lane->driven->drive->host;
    struct task_moment until = task_after_us(host, us);
    while (!strip_is_over(lane) && !task_moment_is_over(host, &until))
        task_await(&lane->driven->changed, until);
}

/* The pause behind so many failures: between half and all of the back-off, doubled with each. */
static void back_off(struct lane *lane, unsigned failures)
{
    int64_t pause_ms = driven_ms(lane->driven, "backoff", 1000);
    for (; failures > 1 && pause_ms < LIMIT_DRIVE_PAUSE_MS; failures--) pause_ms *= 2;
    if (pause_ms > LIMIT_DRIVE_PAUSE_MS) pause_ms = LIMIT_DRIVE_PAUSE_MS;
    struct random *random = task_host_random(lane->driven->drive->host);
    rest(lane, pause_ms * 1000 - (int64_t)random_below(random, (uint64_t)pause_ms * 500 + 1));
}

static struct drive_outcome call(struct lane *lane, struct log_event *const *events, size_t count,
                                 unsigned attempt)
{
    struct drive_outcome outcome;
    struct drive_call *target = drive_call_begin(lane->driven, payload_of(lane, events, count, attempt));
    while (!drive_call_await(target, TASK_NEVER, &outcome)) {
    }
    return outcome;
}

/* Has its events called in order: those that fail are tried again, alone in the end where batches are halved, and
 * marked as failed when they have failed too often. */
static void strip_call(struct strip *strip, struct log_event **events, size_t total)
{
    struct lane *lane = strip->lane;
    struct driven *driven = lane->driven;
    size_t at = 0, most = (size_t)driven_int(driven, "batch", 100), size = most;
    unsigned failures = 0, vain = 0; /* failures: of the events that come next */
    while (at < total && !strip_is_over(lane)) {
        struct arena_mark begin = arena_mark(task_arena());
        size_t count = total - at < size ? total - at : size;
        struct drive_outcome outcome = call(lane, events + at, count, failures + 1);
        if (outcome.end == DRIVE_NOT_RUN || outcome.is_unknown) {
            rest(lane, drive_pause_us(driven->drive, ++vain));
        } else {
            bool has_answered = outcome.end == DRIVE_ANSWERED;
            bool is_named = false; /* the first that failed, by the function itself */
            size_t done = has_answered ? done_count(outcome.text, events + at, count, &is_named) : 0;
            size_t failed = is_named ? 1 : count;
            struct slice reason = !has_answered ? outcome.text
                                  : is_named
                                      ? SLICE("The function named it in batchItemFailures.")
                                      : SLICE("The function named an event in batchItemFailures that it was "
                                              "not given.");
            vain = 0;
            settle(events + at, done, EVENT_DONE, lane, SLICE(""));
            at += done;
            if (done) failures = 0;
            if (done == count) {
                size = size * 2 < most ? size * 2 : most;
            } else if (!is_named && count > 1 && driven_bool(driven, "bisect")) {
                size = (count + 1) / 2;
            } else if (++failures >= (unsigned)driven_int(driven, "attempts", 5) || outcome.is_final) {
                settle(events + at, failed, EVENT_FAILED, lane, reason);
                at += failed;
                failures = 0;
            } else {
                back_off(lane, failures);
            }
        }
        task_signal_give(&lane->changed);
        arena_rewind(task_arena(), begin);
    }
}

static void strip_run(void *argument)
{
    struct strip *strip = argument;
    struct lane *lane = strip->lane;
    struct driven *driven = lane->driven;
    struct log_event **own = arena_array(task_arena(), struct log_event *, lane->count);
    size_t count = 0;
    for (size_t i = 0; i < lane->count; i++)
        if (lane->events[i].strip == strip->number) own[count++] = &lane->events[i];
    strip_call(strip, own, count);
    lane->running--;
    task_signal_give(&lane->changed);
    driven_task_ended(driven);
}

/* ---- lanes: moving the position ---- */

/* Moves it over what is done from the front on, and parks what failed there. A park says of all before it that they are
 * done. */
static void advance(struct lane *lane)
{
    size_t moved = lane->done;
    for (size_t at = lane->done; at < lane->count && !lane->is_lost; at++) {
        const struct log_event *event = &lane->events[at];
        if (event->state == EVENT_OPEN) break;
        lane->done = at + 1;
        if (event->state == EVENT_DONE) continue;
        say(lane, "park",
            compose_in(task_arena(), ",'sequence':%d,'reason':%s", event->sequence, event->reason));
        moved = lane->done;
    }
    if (moved < lane->done)
        say(lane, "ack", compose_in(task_arena(), ",'sequence':%d", lane->events[lane->done - 1].sequence));
}

/* What it has is called; the lease is kept meanwhile. */
static void lane_work(struct lane *lane)
{
    struct driven *driven = lane->driven;
    struct task_host *host = driven->drive->host;
    struct task_moment beat = task_after_us(host, BEAT_US);
    bool has_strip[STRIPS] = {0};
    for (size_t i = 0; i < lane->count; i++) has_strip[lane->events[i].strip] = true;
    for (unsigned i = 0; i < STRIPS; i++) {
        if (!has_strip[i]) continue;
        lane->strips[i] = (struct strip){.lane = lane, .number = i};
        lane->running++;
        driven_begin(driven, strip_run, &lane->strips[i]);
    }
    while (lane->running) {
        struct arena_mark begin = arena_mark(task_arena());
        task_await(&lane->changed, beat);
        if (task_moment_is_over(host, &beat)) {
            size_t done = lane->done;
            advance(lane);
            if (done == lane->done) say(lane, "ack", SLICE("")); /* renews it */
            beat = task_after_us(host, BEAT_US);
        }
        arena_rewind(task_arena(), begin);
    }
    advance(lane);
    if (lane->done < lane->count)
        say(lane, "ack", SLICE(",\"for\":1")); /* who comes next need not wait for its end */
}

/* A batch that is not full waits for more, as long as the window says. */
static void wait_for_more(struct lane *lane)
{
    struct driven *driven = lane->driven;
    int64_t window_ms = driven_ms(driven, "window", 0);
    struct task_moment until = task_after_us(driven->drive->host, window_ms * 1000);
    if (!window_ms || lane->has_more || lane->count >= (size_t)driven_int(driven, "batch", 100)) return;
    while (!driven_rests(driven) && !task_moment_is_over(driven->drive->host, &until)) {
        struct task_moment look = task_after_us(driven->drive->host, BEAT_US);
        if (until.ticks_us < look.ticks_us) look = until;
        task_await(&driven->changed, look);
        if (!read(lane, 0, true)) return; /* which renews the lease; it has lost it else, and acks in vain */
        if (lane->has_more || lane->count >= (size_t)driven_int(driven, "batch", 100)) return;
    }
}

static void lane_free(struct lane *lane)
{
    lane->run->is_taken[lane->number] = false;
    lane->run->lanes--;
    drive_disown(&lane->owned);
}

static void lane_run(void *argument)
{
    struct lane *lane = argument;
    struct driven *driven = lane->driven;
    bool goes_on = true;
    while (goes_on) {
        struct arena_mark begin = arena_mark(task_arena());
        wait_for_more(lane);
        lane_work(lane);
        bool same = lane->has_more && !lane->is_lost;
        goes_on = !driven_rests(driven) && ((same && read(lane, 0, true)) || read(lane, 0, false));
        arena_rewind(task_arena(), begin);
    }
    lane_free(lane);
    task_signal_give(&driven->changed);
    driven_task_ended(driven);
}

static struct lane *lane_new(struct driven *driven, struct log_run *run, unsigned number)
{
    struct lane *lane = drive_own(driven->drive, sizeof *lane);
    lane->driven = driven;
    lane->run = run;
    lane->number = number;
    while (run->is_taken[lane->number % LIMIT_DRIVE_LANES]) lane->number++;
    lane->number %= LIMIT_DRIVE_LANES;
    run->is_taken[lane->number] = true;
    run->lanes++;
    return lane;
}

/* Begins a lane where there is something to read. */
static void lane_try(struct driven *driven, struct log_run *run, unsigned number, int64_t wait_ms)
{
    struct arena_mark begin = arena_mark(task_arena());
    struct lane *lane = lane_new(driven, run, number);
    if (read(lane, wait_ms, false))
        driven_begin(driven, lane_run, lane);
    else
        lane_free(lane);
    arena_rewind(task_arena(), begin);
}

static void log_run(struct driven *driven)
{
    struct log_run *run = arena_new(&driven->arena, struct log_run);
    bool may_hold = !driven->drive->options.shared; /* what a server held that was killed is this one's */
    for (unsigned i = 0; may_hold && i < LIMIT_DRIVE_LANES - 1 && !driven_rests(driven); i++)
        lane_try(driven, run, i, 0);
    while (!driven_is_over(driven)) {
        if (driven->is_paused || run->lanes == LIMIT_DRIVE_LANES)
            task_await(&driven->changed, TASK_NEVER);
        else
            lane_try(driven, run, 0, READ_WAIT_MS);
    }
}

const struct driver drive_log = {.name = "log", .run = log_run};
