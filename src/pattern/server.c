/* Runs flows beside each other without a thread for each.
 *
 * A flow is taken up by the thread that its request came in by, which goes on with it until it waits: for the
 * door, for a pause, for a topic, for others to do its part (join.h). When the door has answered, the flow
 * goes on by that same thread where the host lends it (pattern_host), else by the one thread here, which also
 * knows when pauses are over. A flow is in one place at a time: on a thread, with the door, ready, or parked
 * (waits.h), where it costs nothing and holds no more memory than it had before its first look.
 *
 * Nothing is missed between looking and parking: a run notes the epoch when a look begins, and whoever wakes
 * a topic leaves a new epoch in its bucket. Who parks and finds a younger one there goes on at once. Commits
 * of flows are quiet to the engine, since flows wake by topics; those of others come from it as things. */
#include <stddef.h>
#include <stdlib.h>

#include "base/cond.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/stats.h"
#include "pattern/internal.h"
#include "pattern/join.h"
#include "pattern/rows.h"
#include "pattern/waits.h"

#define BUCKETS   4096
#define TICK_US   100000 /* the clock may jump: nobody sleeps longer while somebody waits for a moment */
#define THINGS_US 20000  /* who waits is not told of others' writes more often */
#define THINGS    256    /* that may have changed meanwhile; behind more, all count as changed */
#define NEVER     INT64_MAX

/* A flow and all it runs with; in the arena of its call, or its own for a sweep. */
struct run {
    struct flow flow;
    struct dynamo_call call;
    struct pattern_task task; /* for the host */
    struct server *server;
    const struct pattern_host *host; /* whose thread goes on with it; NULL: the server's own */
    struct rest_call *rest;          /* NULL: a sweep */
    struct sweep *sweep;
    struct buf reply;
    struct seat seat; /* where it leads or follows */
    struct run *next; /* where it is ready */
    struct wait wait; /* where it is parked */
    uint64_t epoch;   /* when its look began */
    bool has_reply;
    bool has_led; /* somebody has done its part, or it is its turn to lead */
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
    struct engine_change_watcher watcher;
    _Atomic uint64_t epoch, parked, gone, wakes, looks;
    _Atomic uint64_t woken[BUCKETS]; /* the epoch in which a topic or thing was woken last ... */
    _Atomic uint64_t all_woken;      /* ... and in which all of them were */
    pthread_mutex_t lock;            /* of all below */
    pthread_cond_t changed;
    struct joins joins; /* with its own lock */
    struct waits waits;
    uint64_t things[THINGS]; /* that others have written */
    size_t thing_count;
    bool all_things;
    int64_t things_us; /* not before then are those who wait for them told */
    int64_t sleeps_us; /* the thread looks again then */
    struct run *ready, *ready_last;
    _Atomic size_t alive;  /* runs that have begun and not ended */
    _Atomic bool stopping; /* set under the lock */
    pthread_t thread;
    bool has_thread;
    struct sweep *sweeps; /* the thread's own */
    size_t sweep_count;
};

static void *server_thread(void *argument);
static unsigned things_of(struct engine_change_watcher *watcher, struct slice table, struct slice hash,
                          struct slice range, uint64_t things[ENGINE_TOPICS]);
static void things_changed(struct engine_change_watcher *watcher, const uint64_t *things, size_t count);
static void run_drive(struct run *run, struct dynamo_turn *turn);

/* ---- opening ---- */

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
    server->pattern = pattern;
    joins_open(&server->joins);
    waits_init(&server->waits, pattern->world.poll_ms);
    server->watcher = (struct engine_change_watcher){
        .prefix = pattern->world.prefix, .topics = things_of, .changed = things_changed};
    ensure(pthread_mutex_init(&server->lock, NULL) == 0);
    cond_init(&server->changed);
    if (dynamo_engine(pattern->dynamo))
        engine_watch_changes(dynamo_engine(pattern->dynamo), &server->watcher);
    if (sweeps) {
        while (sweep_at(server->sweep_count)) server->sweep_count++;
        server->sweeps = must_zero(server->sweep_count + 1, sizeof *server->sweeps);
        for (size_t i = 0; i < server->sweep_count; i++) server->sweeps[i].what = sweep_at(i);
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
    struct engine *engine = dynamo_engine(server->pattern->dynamo);
    server_stop(server);
    if (server->has_thread) pthread_join(server->thread, NULL);
    if (engine) engine_unwatch_changes(engine, &server->watcher);
    for (size_t i = 0; i < server->sweep_count; i++) {
        arena_free(&server->sweeps[i].arena);
        buf_free(&server->sweeps[i].body);
    }
    joins_close(&server->joins);
    waits_free(&server->waits);
    free(server->sweeps);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

void pattern_put_metrics(struct pattern *pattern, struct buf *out)
{
    struct server *server = pattern->server;
    size_t alive = atomic_load(&server->alive);
    stats_put_number(out, "quipu_flows", "gauge", "Calls of patterns that are under way.", alive);
    stats_put_number(out, "quipu_flows_waiting", "gauge", "Those of them that wait for something or pause.",
                     atomic_load(&server->parked));
    stats_put_number(out, "quipu_flow_wakes_total", "counter",
                     "Calls that waited or paused and went on. It stands still while nothing happens.",
                     stats_read(&server->wakes));
    stats_put_number(out, "quipu_flow_calls_total", "counter", "DynamoDB calls that patterns have made.",
                     stats_read(&server->looks));
    stats_put_number(out, "quipu_flows_gone_total", "counter", "Ended because their client had gone.",
                     stats_read(&server->gone));
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

/* The order of a look's calls does not matter, so their hashes are added up. */
static void reply_take(struct run *run, int64_t now_ms)
{
    struct slice body = buf_view(&run->reply);
    if (run->flow.look != LOOK_NEVER) run->wait.seen += hash_bytes(body);
    struct flow_reply reply = pattern_reply(run->flow.arena, run->call.status, body);
    flow_next(&run->flow, now_ms, &reply);
}

/* Something has happened that the run waited for: takes it a step further and on. */
static void run_resume(struct run *run, struct dynamo_turn *turn)
{
    int64_t now_ms = clock_now_ms(run->server->pattern->clock);
    if (run->has_reply) {
        run->has_reply = false;
        dynamo_finish(&run->call);
        reply_take(run, now_ms);
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
    run_resume(run, run->host->turn(run->host, run->rest));
}

/* Hands it to whoever goes on with it. Not under the lock. */
static void run_is_ready(struct run *run)
{
    struct server *server = run->server;
    if (run->host) {
        run->task.run = resume_on_host;
        run->host->post(run->host, run->rest, &run->task);
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

static struct run *run_of(struct wait *wait)
{
    return (struct run *)(void *)((char *)wait - offsetof(struct run, wait));
}

/* Those of a host go back to its threads; the others are put behind what is ready. Not under the lock. */
static void waits_are_ready(struct server *server, struct wait *list)
{
    uint64_t count = 0;
    while (list) {
        struct wait *next = list->next;
        run_is_ready(run_of(list));
        list = next;
        count++;
    }
    atomic_fetch_sub(&server->parked, count);
    stats_add(&server->wakes, count);
}

static _Atomic uint64_t *woken_of(struct server *server, uint64_t topic)
{
    return &server->woken[topic % BUCKETS];
}

/* The thread is woken only for what is due before it would look anyway. Under the lock. */
static void thread_poke(struct server *server, int64_t due_us)
{
    if (due_us < server->sleeps_us) pthread_cond_signal(&server->changed);
}

static bool has_news(struct run *run)
{
    struct server *server = run->server;
    return run->flow.want == FLOW_WATCH && (atomic_load(woken_of(server, run->flow.topic)) > run->epoch ||
                                            atomic_load(woken_of(server, run->flow.thing)) > run->epoch ||
                                            atomic_load(&server->all_woken) > run->epoch);
}

/* False when what it waits for has happened already. From the moment on that the lock is given back somebody
 * else may have the run. */
static bool run_park(struct run *run)
{
    struct server *server = run->server;
    struct flow *flow = &run->flow;
    bool watches = flow->want == FLOW_WATCH;
    int64_t now_us = monotonic_us(), now_ms = clock_now_ms(server->pattern->clock);
    run->wait.topic = watches ? flow->topic : 0;
    run->wait.thing = watches ? flow->thing : 0;
    run->wait.kin = watches ? flow->kin : 0;
    run->wait.until_ms = watches ? flow->until_ms : NEVER;
    run->wait.until_us = watches ? NEVER : now_us + flow->pause_ms * 1000;
    run->wait.change_ms = watches ? flow->change_ms : NEVER;
    if (watches) flow_rest(flow);
    struct wait *others = NULL;
    pthread_mutex_lock(&server->lock);
    thread_need(server);
    atomic_fetch_add(&server->parked, 1);
    bool missed = server->stopping || has_news(run);
    if (missed) {
        atomic_fetch_sub(&server->parked, 1);
    } else {
        others = waits_add(&server->waits, &run->wait, now_us);
        thread_poke(server, waits_next_us(&server->waits, now_us, now_ms, TICK_US));
    }
    pthread_mutex_unlock(&server->lock);
    waits_are_ready(server, others);
    return !missed;
}

static void hint(struct server *server, const struct flow_wake *wake)
{
    int64_t now_us = monotonic_us(), now_ms = clock_now_ms(server->pattern->clock);
    if (!atomic_load(&server->parked)) return;
    pthread_mutex_lock(&server->lock);
    waits_hint(&server->waits, wake->topic, wake->at_ms);
    thread_poke(server, waits_next_us(&server->waits, now_us, now_ms, TICK_US));
    pthread_mutex_unlock(&server->lock);
}

static void wake(struct server *server, const struct flow_wake *wakes)
{
    for (; wakes; wakes = wakes->next) {
        if (wakes->at_ms) {
            hint(server, wakes);
            continue;
        }
        atomic_store(woken_of(server, wakes->topic), atomic_fetch_add(&server->epoch, 1) + 1);
        if (!atomic_load(&server->parked)) continue;
        pthread_mutex_lock(&server->lock);
        struct wait *woken = waits_take_topic(&server->waits, wakes->topic);
        pthread_mutex_unlock(&server->lock);
        waits_are_ready(server, woken);
    }
}

/* ---- what others than flows write ---- */

static unsigned things_of(struct engine_change_watcher *watcher, struct slice table, struct slice hash,
                          struct slice range, uint64_t things[ENGINE_TOPICS])
{
    _Static_assert(ENGINE_TOPICS >= FLOW_THINGS, "all things of a change find room");
    flow_things_of(slice_from(table, watcher->prefix.len), hash, range, things);
    return FLOW_THINGS;
}

/* Under the lock. */
static void thing_note(struct server *server, uint64_t thing)
{
    if (!waits_has_thing(&server->waits, thing)) return;
    if (server->thing_count == THINGS)
        server->all_things = true;
    else
        server->things[server->thing_count++] = thing;
}

/* On the writer's thread: only notes it. Whoever waits for one that is written all the time is told a bounded
 * number of times a second. */
static void things_changed(struct engine_change_watcher *watcher, const uint64_t *things, size_t count)
{
    struct server *server = (struct server *)(void *)((char *)watcher - offsetof(struct server, watcher));
    uint64_t epoch = atomic_fetch_add(&server->epoch, 1) + 1;
    if (!things) atomic_store(&server->all_woken, epoch);
    for (size_t i = 0; i < count; i++) atomic_store(woken_of(server, things[i]), epoch);
    if (!atomic_load(&server->parked)) return;
    pthread_mutex_lock(&server->lock);
    if (!things) server->all_things = true;
    for (size_t i = 0; i < count && !server->all_things; i++) thing_note(server, things[i]);
    if (server->thing_count || server->all_things) thread_poke(server, server->things_us);
    pthread_mutex_unlock(&server->lock);
}

static void list_join(struct wait **list, struct wait *more)
{
    while (more) {
        struct wait *next = more->next;
        more->next = *list;
        *list = more;
        more = next;
    }
}

/* Adds to the list those who wait for what others have written. Under the lock. */
static void things_take(struct server *server, int64_t now_us, struct wait **list)
{
    if ((!server->thing_count && !server->all_things) || now_us < server->things_us) return;
    if (server->all_things) list_join(list, waits_take_things(&server->waits));
    for (size_t i = 0; i < server->thing_count && !server->all_things; i++)
        list_join(list, waits_take_thing(&server->waits, server->things[i]));
    server->thing_count = 0;
    server->all_things = false;
    server->things_us = now_us + THINGS_US;
}

/* ---- clients that leave ---- */

/* The client of a call that server_begin was given has gone; on the thread that the call came in by. */
static void server_client_left(struct rest_call *call)
{
    struct run *run = call->context;
    struct server *server = run->server;
    pthread_mutex_lock(&server->lock);
    bool was_parked = run->wait.topic && waits_take(&server->waits, &run->wait); /* who pauses is at work */
    if (was_parked) run->wait.next = NULL;
    pthread_mutex_unlock(&server->lock);
    if (was_parked) waits_are_ready(server, &run->wait);
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
    if (next) seat_is_ready(next); /* before the others: they are answered while its write is under way */
    while (followers) {
        struct seat *seat = followers;
        followers = seat->next;
        seat_is_ready(seat);
    }
}

/* True when it leads. Who counts its cost, or acts for a function, does everything itself. */
static bool join_begin(struct run *run)
{
    bool is_alone = run->flow.tells_cost || !run->rest || run->rest->cause.len;
    run->seat.flow = &run->flow;
    run->seat.thread = run->host ? run->host->turn(run->host, run->rest) : NULL;
    if (!is_alone && !joins_begin(&run->server->joins, &run->seat)) return false;
    flow_next(&run->flow, clock_now_ms(run->server->pattern->clock), NULL);
    return true;
}

/* ---- a run from one wait to the next ---- */

static void run_end(struct run *run)
{
    struct server *server = run->server;
    struct rest_call *rest = run->rest;
    flow_release(&run->flow);
    buf_free(&run->reply);
    if (run->wait.scouts_for) {
        /* It was sent to look for others as well and has not come back. */
        bool by_time = run->flow.now_ms >= run->flow.until_ms;
        pthread_mutex_lock(&server->lock);
        struct wait *others = waits_end(&server->waits, &run->wait, by_time, monotonic_us());
        pthread_mutex_unlock(&server->lock);
        waits_are_ready(server, others);
    }
    if (run->sweep) run->sweep->runs = false; /* on the server's thread, as all of it is */
    if (rest) rest->left = NULL;
    if (rest && rest->done)
        rest->done(rest); /* the run is gone with it */
    else if (run->host)
        run->host->post(run->host, rest, NULL); /* likewise */
    atomic_fetch_sub(&server->alive, 1);        /* behind the last one the server may be gone */
}

/* True when the answer is there already. */
static bool call_begin(struct run *run, struct dynamo_turn *turn)
{
    struct server *server = run->server;
    run->reply.len = 0;
    if (run->flow.look == LOOK_BEGINS) {
        run->epoch = atomic_load(&server->epoch);
        run->wait.seen = 0;
        run->flow.look = LOOK_GOES_ON;
    }
    stats_add(&server->looks, 1);
    run->call = (struct dynamo_call){.name = run->flow.operation,
                                     .request = run->flow.call,
                                     .cause = run->rest ? run->rest->cause : SLICE_NONE,
                                     .in_order = true,
                                     .is_quiet = true,
                                     .arena = run->flow.arena,
                                     .reply = &run->reply,
                                     .done = call_done};
    if (!dynamo_begin(server->pattern->dynamo, &run->call, turn)) return false;
    reply_take(run, clock_now_ms(server->pattern->clock));
    return true;
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

static void run_drive(struct run *run, struct dynamo_turn *turn)
{
    for (;;) {
        if (run->flow.wakes) wake(run->server, run->flow.wakes);
        run->flow.wakes = NULL;
        if (run->flow.disbands) round_end(run, 0);
        switch (run->flow.want) {
        case FLOW_CALL:
            if (call_begin(run, turn)) break;
            /* Others wait for it, and what this turn has to do besides need not be waited for. */
            if (run->seat.party && run->flow.follower_count) dynamo_turn_end(run->server->pattern->dynamo, turn);
            return;
        case FLOW_PAUSE:
        case FLOW_WATCH:
            if (is_gone(run)) { /* since it has waited the last time */
                flow_abandon(&run->flow, clock_now_ms(run->server->pattern->clock));
                break;
            }
            if (run_park(run)) return;
            if (atomic_load(&run->server->stopping))
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

static void server_count_in(struct server *server, const struct pattern_host *host)
{
    atomic_fetch_add(&server->alive, 1);
    if (host) return;
    pthread_mutex_lock(&server->lock);
    thread_need(server);
    pthread_mutex_unlock(&server->lock);
}

void server_begin(struct server *server, const struct flow_row *row, struct rest_call *call,
                  const struct pattern_host *host)
{
    struct run *run = arena_new(call->arena, struct run);
    struct dynamo_turn own = {0}, *turn = host ? host->turn(host, call) : &own;
    struct flow_start start = pattern_start_of(server->pattern, call->arena, call->reply);
    struct dynamo *dynamo = server->pattern->dynamo;
    start.row = row;
    start.request = call;
    run->server = server;
    run->host = host;
    run->rest = call;
    call->context = run;
    call->left = server_client_left;
    server_count_in(server, host);
    flow_begin(&run->flow, &start);
    run_drive(run, turn);
    if (!host) dynamo_turn_end(dynamo, &own);
}

/* ---- sweeps ---- */

static struct run *sweep_run(struct server *server, const struct flow_sweep *what, struct arena *arena,
                             struct buf *body, const struct pattern_host *host)
{
    struct run *run = arena_new(arena, struct run);
    struct flow_start start = pattern_start_of(server->pattern, arena, body);
    run->server = server;
    run->host = host;
    server_count_in(server, host);
    flow_begin_sweep(&run->flow, &start, what);
    return run;
}

const struct flow *server_sweep(struct server *server, const struct flow_sweep *what, struct arena *arena,
                                struct buf *body, const struct pattern_host *host)
{
    struct run *run = sweep_run(server, what, arena, body, host);
    run_drive(run, host->turn(host, NULL));
    return &run->flow;
}

static void sweep_begin(struct server *server, struct sweep *sweep, struct dynamo_turn *turn)
{
    int64_t now_ms = clock_now_ms(server->pattern->clock), now_us = monotonic_us();
    if (sweep->runs || (now_ms < sweep->due_ms && now_us < sweep->due_us)) return;
    sweep->due_ms = now_ms + sweep->what->every_ms;
    sweep->due_us = now_us + sweep->what->every_ms * 1000;
    sweep->runs = true;
    sweep->body.len = 0;
    arena_reset(&sweep->arena);
    struct run *run = sweep_run(server, sweep->what, &sweep->arena, &sweep->body, NULL);
    run->sweep = sweep;
    run_drive(run, turn);
}

/* ---- the thread ---- */

/* Who is due, as one list; *next_us: when to look again. Under the lock. */
static struct wait *due_take(struct server *server, int64_t *next_us)
{
    int64_t now_us = monotonic_us(), now_ms = clock_now_ms(server->pattern->clock);
    struct wait *due = server->stopping ? waits_take_all(&server->waits)
                                        : waits_take_due(&server->waits, now_us, now_ms);
    things_take(server, now_us, &due);
    *next_us = waits_next_us(&server->waits, now_us, now_ms, TICK_US);
    bool has_things = server->thing_count || server->all_things;
    if (has_things && server->things_us < *next_us) *next_us = server->things_us;
    if (server->sweep_count && now_us + TICK_US < *next_us) *next_us = now_us + TICK_US;
    return due;
}

/* Under the lock. */
static void wait_for_work(struct server *server, int64_t until_us)
{
    if (server->ready || server->stopping) return;
    server->sleeps_us = until_us;
    cond_wait_until(&server->changed, &server->lock, until_us);
    server->sleeps_us = 0; /* it looks at everything before it sleeps again */
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

/* Takes what is ready; who is due and has a host goes back to it. Gives the lock back. */
static struct run *ready_take(struct server *server, struct wait *due)
{
    struct wait *for_hosts = NULL;
    uint64_t own = 0;
    while (due) {
        struct wait *next = due->next;
        if (run_of(due)->host && !server->stopping) {
            due->next = for_hosts;
            for_hosts = due;
        } else {
            ready_add(server, run_of(due));
            own++;
        }
        due = next;
    }
    atomic_fetch_sub(&server->parked, own);
    stats_add(&server->wakes, own);
    struct run *ready = server->ready;
    server->ready = server->ready_last = NULL;
    pthread_mutex_unlock(&server->lock);
    waits_are_ready(server, for_hosts);
    return ready;
}

static void *server_thread(void *argument)
{
    struct server *server = argument;
    int64_t next_us;
    pthread_mutex_lock(&server->lock);
    for (;;) {
        struct wait *due = due_take(server, &next_us);
        if (!due) wait_for_work(server, next_us);
        if (server->stopping && !server->alive) break;
        bool stopping = server->stopping;
        struct run *ready = ready_take(server, due);
        list_drive(server, ready, stopping);
        pthread_mutex_lock(&server->lock);
        if (stopping && server->alive && !server->ready && !atomic_load(&server->parked))
            /* nobody tells of the last one's end */
            cond_wait_until(&server->changed, &server->lock, monotonic_us() + TICK_US);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}
