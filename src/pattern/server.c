/* Runs flows beside each other without a thread for each: for the server.
 *
 * A flow is taken up by the thread that its request came in by, which goes on with it until it waits: for the
 * door, for a pause, for a topic, for others to do its part (join.h). When the door has answered, the flow
 * goes on by that same thread where the host lends it (pattern_host), else by the one thread here, which also
 * knows when pauses are over. A flow is in one place at a time: on a thread, with the door, ready, or parked.
 *
 * Nothing is missed between looking and parking: a run notes the epoch before each of its calls, and whoever
 * wakes a topic leaves a new epoch in its bucket. Who parks and finds a younger one there goes on at once. */
#include <stddef.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/stats.h"
#include "pattern/internal.h"
#include "pattern/join.h"
#include "pattern/rows.h"

#define BUCKETS 1024
#define TICK_US 100000 /* the clock may jump: nobody sleeps longer while somebody waits for a moment */
#define NEVER   INT64_MAX

/* A flow and all it runs with; in the arena of its call, or its own for a sweep. */
struct run {
    struct flow flow;
    struct dynamo_call call;
    struct pattern_task task; /* for the host */
    struct server *server;
    struct rest_call *rest; /* NULL: a sweep */
    struct sweep *sweep;
    struct buf reply;
    struct seat seat; /* where it leads or follows */
    struct run *next; /* where it is ready or parked */
    uint64_t epoch;   /* before its last call */
    int64_t due_us;   /* parked until then, monotonic, */
    int64_t due_ms;   /* or until then by the clock */
    bool has_reply;
    bool has_led; /* somebody has done its part, or it is its turn to lead */
};

struct bucket {
    _Atomic uint64_t woken; /* epoch */
    struct run *runs;
};

struct sweep {
    const struct flow_sweep *what;
    int64_t due_us, due_ms;
    bool runs;
    struct arena arena;
    struct buf body;
};

struct server {
    struct pattern *pattern;
    _Atomic uint64_t epoch, parked, gone;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    struct joins joins; /* with its own lock */
    struct bucket buckets[BUCKETS];
    struct run *ready, *ready_last;
    size_t alive; /* runs that have begun and not ended */
    pthread_t thread;
    bool has_thread, stopping;
    struct sweep *sweeps; /* the thread's own */
    size_t sweep_count;
};

static void *server_thread(void *argument);
static void run_drive(struct run *run, struct dynamo_turn *turn);

/* ---- opening ---- */

static void sweeps_open(struct server *server)
{
    while (sweep_at(server->sweep_count)) server->sweep_count++;
    server->sweeps = must_zero(server->sweep_count + 1, sizeof *server->sweeps);
    for (size_t i = 0; i < server->sweep_count; i++) server->sweeps[i].what = sweep_at(i);
}

/* Under the lock. A program that never serves has no thread. */
static void thread_need(struct server *server)
{
    if (server->has_thread) return;
    ensure(pthread_create(&server->thread, NULL, server_thread, server) == 0);
    server->has_thread = true;
}

struct server *server_open(struct pattern *pattern, bool sweeps)
{
    struct server *server = must_zero(1, sizeof *server);
    pthread_condattr_t attributes;
    server->pattern = pattern;
    joins_open(&server->joins);
    ensure(pthread_mutex_init(&server->lock, NULL) == 0);
    ensure(pthread_condattr_init(&attributes) == 0);
    ensure(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    ensure(pthread_cond_init(&server->changed, &attributes) == 0);
    pthread_condattr_destroy(&attributes);
    if (sweeps) {
        sweeps_open(server);
        pthread_mutex_lock(&server->lock);
        thread_need(server);
        pthread_mutex_unlock(&server->lock);
    }
    return server;
}

void server_stop(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

void server_close(struct server *server)
{
    server_stop(server);
    if (server->has_thread) pthread_join(server->thread, NULL);
    for (size_t i = 0; i < server->sweep_count; i++) {
        arena_free(&server->sweeps[i].arena);
        buf_free(&server->sweeps[i].body);
    }
    joins_close(&server->joins);
    free(server->sweeps);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

void pattern_put_metrics(struct pattern *pattern, struct buf *out)
{
    struct server *server = pattern->server;
    pthread_mutex_lock(&server->lock);
    size_t alive = server->alive;
    pthread_mutex_unlock(&server->lock);
    stats_put_head(out, "quipu_flows", "gauge", "Calls of patterns that are under way.");
    buf_printf(out, "quipu_flows %zu\n", alive);
    stats_put_head(out, "quipu_flows_waiting", "gauge", "Those of them that wait for something or pause.");
    buf_printf(out, "quipu_flows_waiting %llu\n", (unsigned long long)atomic_load(&server->parked));
    stats_put_head(out, "quipu_flows_gone_total", "counter", "Ended because their client had gone.");
    buf_printf(out, "quipu_flows_gone_total %llu\n", (unsigned long long)stats_read(&server->gone));
}

/* ---- ready ---- */

/* Under the lock. */
static void ready_add(struct server *server, struct run *run)
{
    run->next = NULL;
    *(server->ready ? &server->ready_last->next : &server->ready) = run;
    server->ready_last = run;
}

/* Nobody is there any more for whom it watches. */
static bool is_gone(struct run *run)
{
    if (run->flow.want != FLOW_WATCH || !run->rest || !run->rest->gone) return false;
    if (!run->rest->gone(run->rest)) return false;
    stats_add(&run->server->gone, 1);
    return true;
}

/* Something has happened that the run waited for: takes it a step further and on. */
static void run_resume(struct run *run, struct dynamo_turn *turn)
{
    int64_t now_ms = clock_now_ms(run->server->pattern->clock);
    if (run->has_reply) {
        run->has_reply = false;
        dynamo_finish(&run->call);
        struct flow_reply reply = pattern_reply(run->flow.arena, run->call.status, buf_view(&run->reply));
        flow_next(&run->flow, now_ms, &reply);
    } else {
        bool was_parked = !run->has_led;
        run->has_led = false;
        if (was_parked && is_gone(run))
            flow_abandon(&run->flow, now_ms);
        else
            flow_next(&run->flow, now_ms, NULL);
    }
    run_drive(run, turn);
}

static void resume_on_host(struct pattern_task *task)
{
    struct run *run = (struct run *)((char *)task - offsetof(struct run, task));
    run_resume(run, run->server->pattern->host->turn(run->rest));
}

static bool has_host(const struct run *run)
{
    return run->server->pattern->host && run->rest;
}

/* Hands it to whoever goes on with it. Not under the lock. */
static void run_is_ready(struct run *run)
{
    struct server *server = run->server;
    if (has_host(run)) {
        run->task.run = resume_on_host;
        server->pattern->host->post(run->rest, &run->task);
        return;
    }
    pthread_mutex_lock(&server->lock);
    bool was_empty = !server->ready;
    ready_add(server, run);
    if (was_empty) pthread_cond_signal(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

static void call_done(struct dynamo_call *call)
{
    struct run *run = (struct run *)((char *)call - offsetof(struct run, call));
    run->has_reply = true;
    run_is_ready(run);
}

/* ---- parked ---- */

static struct bucket *bucket_of(struct server *server, uint64_t topic)
{
    return &server->buckets[topic % BUCKETS];
}

/* False when what it waits for has happened already. */
static bool run_park(struct run *run)
{
    struct server *server = run->server;
    bool watches = run->flow.want == FLOW_WATCH;
    int64_t wait_ms = run->flow.pause_ms;
    if (watches) /* between half and all of the interval, so that those who wait do not march in step */
        wait_ms = server->pattern->world.poll_ms / 2 +
                  (int64_t)(flow_random_below(&run->flow, (uint64_t)server->pattern->world.poll_ms / 2 + 1));
    run->due_us = monotonic_us() + wait_ms * 1000;
    run->due_ms = watches ? run->flow.until_ms : NEVER;
    if (!watches) run->flow.topic = 0;
    struct bucket *bucket = bucket_of(server, run->flow.topic);
    pthread_mutex_lock(&server->lock);
    thread_need(server);
    atomic_fetch_add(&server->parked, 1);
    bool missed = server->stopping || (watches && atomic_load(&bucket->woken) > run->epoch);
    if (missed) {
        atomic_fetch_sub(&server->parked, 1);
    } else {
        run->next = bucket->runs;
        bucket->runs = run;
        pthread_cond_signal(&server->changed);
    }
    pthread_mutex_unlock(&server->lock);
    return !missed;
}

/* Takes out what is due, or waits for the topic, and answers it as a list. Under the lock. */
static struct run *bucket_take(struct server *server, struct bucket *bucket,
                               bool (*wanted)(const struct run *run, const void *context),
                               const void *context)
{
    struct run *taken = NULL, **at = &bucket->runs;
    while (*at) {
        struct run *run = *at;
        if (!wanted(run, context)) {
            at = &run->next;
            continue;
        }
        *at = run->next;
        run->next = taken;
        taken = run;
        atomic_fetch_sub(&server->parked, 1);
    }
    return taken;
}

static void list_is_ready(struct run *list)
{
    while (list) {
        struct run *next = list->next;
        run_is_ready(list);
        list = next;
    }
}

static bool waits_for_topic(const struct run *run, const void *topic)
{
    return run->flow.want == FLOW_WATCH && run->flow.topic == *(const uint64_t *)topic;
}

void server_wake(struct server *server, const struct flow_wake *wakes)
{
    for (; wakes; wakes = wakes->next) {
        struct bucket *bucket = bucket_of(server, wakes->topic);
        atomic_store(&bucket->woken, atomic_fetch_add(&server->epoch, 1) + 1);
        if (!atomic_load(&server->parked)) continue;
        pthread_mutex_lock(&server->lock);
        struct run *woken = bucket_take(server, bucket, waits_for_topic, &wakes->topic);
        pthread_mutex_unlock(&server->lock);
        list_is_ready(woken);
    }
}

/* ---- joined ---- */

static void seat_is_ready(struct seat *seat)
{
    struct run *run = (struct run *)((char *)seat - offsetof(struct run, seat));
    run->has_led = true;
    run_is_ready(run);
}

/* The round that the run leads is over, by its own word or by its end. */
static void round_end(struct run *run, int status)
{
    struct seat *next, *followers;
    run->flow.disbands = false;
    if (!run->seat.party) return;
    followers = joins_end(&run->server->joins, &run->seat, status, &next);
    while (followers) {
        struct seat *seat = followers;
        followers = seat->next;
        seat_is_ready(seat);
    }
    if (next) seat_is_ready(next);
}

/* True when it leads. Who counts its cost, or acts for a function, does everything itself. */
static bool join_begin(struct run *run)
{
    bool is_alone = run->flow.tells_cost || !run->rest || run->rest->cause.len;
    run->seat.flow = &run->flow;
    if (!is_alone && !joins_begin(&run->server->joins, &run->seat)) return false;
    flow_next(&run->flow, clock_now_ms(run->server->pattern->clock), NULL);
    return true;
}

/* ---- a run from one wait to the next ---- */

static void run_end(struct run *run)
{
    struct server *server = run->server;
    struct rest_call *rest = run->rest;
    buf_free(&run->reply);
    if (run->sweep)
        run->sweep->runs = false; /* on the server's thread, as all of a sweep is */
    else
        rest->done(rest); /* the run is gone with it */
    pthread_mutex_lock(&server->lock);
    server->alive--;
    if (server->stopping) pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* True when the answer is there already. */
static bool call_begin(struct run *run, struct dynamo_turn *turn)
{
    struct server *server = run->server;
    run->reply.len = 0;
    if (run->flow.look != LOOK_GOES_ON) run->epoch = atomic_load(&server->epoch);
    if (run->flow.look == LOOK_BEGINS) run->flow.look = LOOK_GOES_ON;
    run->call = (struct dynamo_call){.name = run->flow.operation,
                                     .request = run->flow.call,
                                     .cause = run->rest ? run->rest->cause : SLICE_NONE,
                                     .in_order = true,
                                     .arena = run->flow.arena,
                                     .reply = &run->reply,
                                     .done = call_done};
    if (!dynamo_begin(server->pattern->dynamo, &run->call, turn)) return false;
    struct flow_reply reply = pattern_reply(run->flow.arena, run->call.status, buf_view(&run->reply));
    flow_next(&run->flow, clock_now_ms(server->pattern->clock), &reply);
    return true;
}

/* The call of a leader that hands on. What the next leader writes must come behind it, so it is not left in
 * the turn; and once it has been handed over, the run may be gone. */
static bool call_begin_handing_on(struct run *run, struct dynamo_turn *turn)
{
    struct server *server = run->server;
    run->flow.hands_on = false;
    struct seat *next = joins_hand_on(&server->joins, &run->seat);
    bool is_done = call_begin(run, turn);
    if (next) {
        dynamo_turn_end(server->pattern->dynamo, turn);
        seat_is_ready(next);
    }
    return is_done;
}

/* False when nobody takes it any more. */
static bool piece_send(struct run *run)
{
    struct rest_call *rest = run->rest;
    rest->content_type = run->flow.content_type;
    rest->status = 200;
    if (!rest->piece || !rest->piece(rest, run->flow.piece)) return false;
    flow_next(&run->flow, clock_now_ms(run->server->pattern->clock), NULL);
    return true;
}

static bool is_stopping(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    bool stopping = server->stopping;
    pthread_mutex_unlock(&server->lock);
    return stopping;
}

static void run_drive(struct run *run, struct dynamo_turn *turn)
{
    for (;;) {
        if (run->flow.wakes) server_wake(run->server, run->flow.wakes);
        run->flow.wakes = NULL;
        if (run->flow.disbands) round_end(run, 0);
        switch (run->flow.want) {
        case FLOW_CALL:
            if (!(run->flow.hands_on ? call_begin_handing_on : call_begin)(run, turn)) return;
            break;
        case FLOW_PAUSE:
        case FLOW_WATCH:
            if (run_park(run)) return;
            if (is_stopping(run->server))
                flow_give_up(&run->flow);
            else
                flow_next(&run->flow, clock_now_ms(run->server->pattern->clock), NULL);
            break;
        case FLOW_PIECE:
            if (piece_send(run)) break;
            run_end(run);
            return;
        case FLOW_JOIN:
            if (!join_begin(run)) return;
            break;
        case FLOW_DONE:
            round_end(run, run->flow.status);
            if (run->rest) pattern_answer(&run->flow, run->rest);
            run_end(run);
            return;
        }
    }
}

static void server_count_in(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    server->alive++;
    if (!server->pattern->host) thread_need(server);
    pthread_mutex_unlock(&server->lock);
}

void server_begin(struct server *server, const struct flow_row *row, struct rest_call *call)
{
    struct run *run = arena_new(call->arena, struct run);
    const struct pattern_host *host = server->pattern->host;
    struct dynamo_turn own = {0}, *turn = host ? host->turn(call) : &own;
    struct flow_start start = pattern_start_of(server->pattern, call->arena, call->reply);
    struct dynamo *dynamo = server->pattern->dynamo;
    start.row = row;
    start.request = call;
    run->server = server;
    run->rest = call;
    server_count_in(server);
    flow_begin(&run->flow, &start);
    run_drive(run, turn);
    if (!host) dynamo_turn_end(dynamo, &own);
}

/* ---- sweeps ---- */

static void sweep_begin(struct server *server, struct sweep *sweep, struct dynamo_turn *turn)
{
    int64_t now_ms = clock_now_ms(server->pattern->clock), now_us = monotonic_us();
    if (sweep->runs || (now_ms < sweep->due_ms && now_us < sweep->due_us)) return;
    sweep->due_ms = now_ms + sweep->what->every_ms;
    sweep->due_us = now_us + sweep->what->every_ms * 1000;
    sweep->runs = true;
    sweep->body.len = 0;
    arena_reset(&sweep->arena);
    struct run *run = arena_new(&sweep->arena, struct run);
    struct flow_start start = pattern_start_of(server->pattern, &sweep->arena, &sweep->body);
    run->server = server;
    run->sweep = sweep;
    server_count_in(server);
    flow_begin_sweep(&run->flow, &start, sweep->what);
    run_drive(run, turn);
}

/* ---- the thread ---- */

struct moment {
    int64_t now_us, now_ms;
    bool all;
};

static bool is_due(const struct run *run, const void *context)
{
    const struct moment *moment = context;
    return moment->all || run->due_us <= moment->now_us || run->due_ms <= moment->now_ms;
}

/* What is due of all that is parked, as one list; *next_us: when to look again. Under the lock. */
static struct run *due_take(struct server *server, int64_t *next_us)
{
    struct moment moment = {monotonic_us(), clock_now_ms(server->pattern->clock), server->stopping};
    struct run *due = NULL;
    *next_us = server->sweep_count ? moment.now_us + TICK_US : NEVER;
    if (!atomic_load(&server->parked)) return NULL;
    for (size_t i = 0; i < BUCKETS; i++) {
        struct run *list = bucket_take(server, &server->buckets[i], is_due, &moment);
        while (list) {
            struct run *next = list->next;
            list->next = due;
            due = list;
            list = next;
        }
        for (struct run *run = server->buckets[i].runs; run; run = run->next) {
            if (run->due_us < *next_us) *next_us = run->due_us;
            if (run->due_ms != NEVER && moment.now_us + TICK_US < *next_us)
                *next_us = moment.now_us + TICK_US;
        }
    }
    return due;
}

/* Under the lock. */
static void wait_for_work(struct server *server, int64_t until_us)
{
    if (server->ready || server->stopping) return;
    if (until_us == NEVER) {
        pthread_cond_wait(&server->changed, &server->lock);
        return;
    }
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_cond_timedwait(&server->changed, &server->lock, &until);
}

/* Goes on with all of a list, in one turn. */
static void list_drive(struct server *server, struct run *list, bool stopping)
{
    struct dynamo_turn turn = {0};
    while (list) {
        struct run *run = list;
        list = list->next;
        if (stopping && !run->has_reply && !run->has_led) {
            flow_give_up(&run->flow);
            run_drive(run, &turn);
        } else {
            run_resume(run, &turn);
        }
    }
    if (!stopping)
        for (size_t i = 0; i < server->sweep_count; i++) sweep_begin(server, &server->sweeps[i], &turn);
    dynamo_turn_end(server->pattern->dynamo, &turn);
}

/* Parked runs of a host's threads go back to those; the others are put behind what is ready. */
static struct run *ready_take(struct server *server, struct run *due)
{
    struct run *for_hosts = NULL;
    while (due) {
        struct run *next = due->next;
        if (has_host(due) && !server->stopping) {
            due->next = for_hosts;
            for_hosts = due;
        } else {
            ready_add(server, due);
        }
        due = next;
    }
    struct run *ready = server->ready;
    server->ready = server->ready_last = NULL;
    pthread_mutex_unlock(&server->lock);
    list_is_ready(for_hosts);
    return ready;
}

static void *server_thread(void *argument)
{
    struct server *server = argument;
    int64_t next_us;
    pthread_mutex_lock(&server->lock);
    for (;;) {
        struct run *due = due_take(server, &next_us);
        if (!due) wait_for_work(server, next_us);
        if (server->stopping && !server->alive) break;
        bool stopping = server->stopping;
        struct run *ready = ready_take(server, due);
        list_drive(server, ready, stopping);
        pthread_mutex_lock(&server->lock);
        if (stopping && server->alive && !server->ready && !atomic_load(&server->parked))
            pthread_cond_wait(&server->changed, &server->lock);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}
