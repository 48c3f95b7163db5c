/* Drivers simulated from a seed: two servers on one database, whose calls of patterns are slow, refused or answered in
 * vain, whose functions are slow and fail, and which are killed at any moment. Time is the simulation's. */
#include <stdio.h>

#include "drive/internal.h"
#include "unit/pattern_fixture.h"

#define SERVERS 2
#define ROUNDS  12
#define UNITS   12
#define EVENTS  40
#define KEYS    4
#define SEATS   3

struct simulation;

struct server {
    struct simulation *simulation;
    struct drive *drive; /* NULL: it was killed */
    int64_t back_us;     /* when it comes back */
};

/* A call that somebody waits for: of a pattern, or of the function. */
struct pending {
    struct pending *next;
    struct server *server;
    int64_t due_us;
    struct rest_call *rest;
    struct invocation *invocation;
};

struct simulation {
    struct patterns patterns;
    struct random random;
    int64_t ticks_us, start_ms;
    struct server servers[SERVERS];
    struct pending *pending;
    unsigned running, most_running; /* calls for the queue */
    unsigned called[UNITS];
    int64_t last[KEYS]; /* of each key, the number of its event that was called last for the first time */
    bool has_seen[EVENTS + 1];
    bool is_calm; /* nothing fails any more */
};

static bool chance(struct simulation *simulation, unsigned percent)
{
    return !simulation->is_calm && random_below(&simulation->random, 100) < percent;
}

/* Of a queue or a job, which say how many may run at a time. */
static bool is_counted(const struct invocation *invocation)
{
    return slice_contains(invocation->payload, SLICE("\"queue\":")) ||
           slice_contains(invocation->payload, SLICE("\"job\":"));
}

/* ---- what lies outside ---- */

static void pend(struct server *server, struct rest_call *rest, struct invocation *invocation,
                 int64_t after_us)
{
    struct simulation *simulation = server->simulation;
    struct pending *pending = must_zero(1, sizeof *pending);
    *pending = (struct pending){simulation->pending, server, simulation->ticks_us + after_us, rest,
                                invocation};
    simulation->pending = pending;
}

/* A long-poll looks once, after a while: "wait" becomes 0. */
static void serve(void *self, struct rest_call *call)
{
    struct server *server = self;
    char *wait = memmem(call->body.data, call->body.len, "\"wait\":", 7);
    int64_t after_us = 100 + (int64_t)random_below(&server->simulation->random, 5000);
    bool waits = slice_contains(call->query, SLICE("wait="));
    if (wait && wait[7] != '0') {
        waits = true;
        for (char *at = wait + 7; *at >= '0' && *at <= '9'; at++) *at = ' ';
        wait[7] = '0';
    }
    if (slice_contains(call->query, SLICE("wait="))) call->query = SLICE("");
    pend(server, call, NULL, after_us + (waits ? 50000 : 0));
}

static void invoke(void *self, struct invocation *invocation)
{
    struct server *server = self;
    struct simulation *simulation = server->simulation;
    bool is_long = chance(simulation, 5); /* longer than leases last without a beat */
    if (is_counted(invocation)) simulation->running++;
    if (simulation->running > simulation->most_running) simulation->most_running = simulation->running;
    pend(server, NULL, invocation, is_long ? 45000000 : (int64_t)random_below(&simulation->random, 200000));
}

static void fill_text(struct invocation *invocation, const char *text)
{
    invocation->reply.len = 0;
    buf_put(&invocation->reply, text, strlen(text));
}

static int64_t number_of(struct arena *arena, struct slice object, const char *name)
{
    int64_t number = -1;
    raw_int(raw_member(arena, object, name), &number);
    return number;
}

/* What the function sees: units, or events whose keys must be in order. */
static void function_run(struct simulation *simulation, struct invocation *invocation)
{
    struct arena arena = {0};
    struct slice event, events = raw_member(&arena, invocation->payload, "events");
    int64_t unit = number_of(&arena, raw_member(&arena, invocation->payload, "data"), "n");
    int64_t item = number_of(&arena, raw_member(&arena, invocation->payload, "item"), "n");
    if (unit >= 0) simulation->called[unit]++;
    if (item >= 0) simulation->called[item]++;
    raw_each (&arena, events, &event) {
        int64_t n = number_of(&arena, raw_member(&arena, event, "data"), "n"), key = n % KEYS;
        if (!simulation->has_seen[n]) CHECK(simulation->last[key] < n);
        if (!simulation->has_seen[n]) simulation->last[key] = n;
        simulation->has_seen[n] = true;
    }
    arena_free(&arena);
}

static void invocation_end(struct simulation *simulation, struct invocation *invocation, bool is_killed)
{
    if (is_counted(invocation)) simulation->running--;
    invocation->end = INVOCATION_ANSWERED;
    if (is_killed || chance(simulation, 10)) {
        invocation->end = INVOCATION_THROTTLED;
    } else {
        function_run(simulation, invocation);
        fill_text(invocation, "{\"fine\":true}");
        if (chance(simulation, 15)) {
            invocation->end = INVOCATION_FAILED;
            fill_text(invocation, "{\"errorType\":\"Error\",\"errorMessage\":\"no luck\"}");
        }
    }
    invocation->done(invocation);
}

/* A call of a pattern is made or not, and its answer is told or lost. */
static void rest_end(struct simulation *simulation, struct rest_call *rest, bool is_killed)
{
    bool is_made = !is_killed && !chance(simulation, 5);
    if (is_made) {
        struct rest_call copy = *rest;
        copy.gone = NULL; /* which takes it for a part of what it is a copy of */
        CHECK(pattern_run(simulation->patterns.pattern, &copy));
        rest->status = copy.status;
    }
    if (!is_made || chance(simulation, 5)) rest->status = 503;
    rest->done(rest);
}

static void pending_end(struct simulation *simulation, struct pending *pending, bool is_killed)
{
    if (pending->rest)
        rest_end(simulation, pending->rest, is_killed);
    else
        invocation_end(simulation, pending->invocation, is_killed);
    free(pending);
}

/* ---- servers ---- */

static int64_t simulated_ms(void *self)
{
    struct simulation *simulation = self;
    return simulation->start_ms + simulation->ticks_us / 1000;
}

static int64_t simulated_us(void *self)
{
    return ((struct simulation *)self)->ticks_us;
}

static void turn_end(void *self)
{
    (void)self;
}

static void server_begin(struct server *server)
{
    struct simulation *simulation = server->simulation;
    struct task_environment environment = {
        .self = simulation, .turn_end = turn_end, .now_ms = simulated_ms, .ticks_us = simulated_us};
    struct drive_outside outside = {.self = server, .serve = serve, .invoke = invoke};
    struct drive_options options = {.shared = true};
    server->drive = drive_new(&options, &outside,
                              task_host_new(&environment, random_next(&simulation->random)));
    drive_begin(server->drive);
}

/* Nothing that it has begun is done any more. */
static void server_kill(struct server *server)
{
    struct simulation *simulation = server->simulation;
    server->drive->is_ending = true;
    drive_begin_stop(server->drive);
    for (;;) {
        struct pending **at = &simulation->pending;
        while (*at && (*at)->server != server) at = &(*at)->next;
        struct pending *pending = *at;
        if (!pending) break;
        *at = pending->next;
        pending_end(simulation, pending, true);
        task_host_step(server->drive->host);
    }
    drive_free(server->drive);
    server->drive = NULL;
    server->back_us = simulation->ticks_us + 1000000;
}

/* ---- time ---- */

/* All servers do what they can; then the next thing happens. */
static void step(struct simulation *simulation)
{
    int64_t next_us = simulation->ticks_us + 5000000;
    for (unsigned i = 0; i < SERVERS; i++) {
        struct server *server = &simulation->servers[i];
        if (!server->drive && server->back_us <= simulation->ticks_us) server_begin(server);
        if (!server->drive && server->back_us < next_us) next_us = server->back_us;
        if (!server->drive) continue;
        int64_t wait_us = task_host_step(server->drive->host);
        if (wait_us >= 0 && simulation->ticks_us + wait_us < next_us)
            next_us = simulation->ticks_us + wait_us;
    }
    struct pending **due = NULL;
    for (struct pending **at = &simulation->pending; *at; at = &(*at)->next)
        if ((*at)->due_us <= next_us && (!due || (*at)->due_us < (*due)->due_us)) due = at;
    if (due && (*due)->due_us < next_us) next_us = (*due)->due_us;
    if (next_us > simulation->ticks_us) simulation->ticks_us = next_us;
    __atomic_store_n(&simulation->patterns.now_ms, simulated_ms(simulation), __ATOMIC_SEQ_CST);
    if (due && (*due)->due_us <= simulation->ticks_us) {
        struct pending *pending = *due;
        *due = pending->next;
        pending_end(simulation, pending, false);
    }
    if (chance(simulation, 1)) {
        struct server *server = &simulation->servers[random_below(&simulation->random, SERVERS)];
        if (server->drive && chance(simulation, 10)) server_kill(server);
    }
}

static void simulation_open(struct simulation *simulation, uint64_t seed)
{
    *simulation = (struct simulation){0};
    patterns_open(&simulation->patterns);
    random_seed(&simulation->random, seed);
    simulation->start_ms = simulation->patterns.now_ms;
    for (unsigned i = 0; i < KEYS; i++) simulation->last[i] = -1;
    for (unsigned i = 0; i < SERVERS; i++) simulation->servers[i].simulation = simulation;
}

static void simulation_close(struct simulation *simulation)
{
    for (unsigned i = 0; i < SERVERS; i++)
        if (simulation->servers[i].drive) server_kill(&simulation->servers[i]);
    CHECK(!simulation->pending);
    patterns_close(&simulation->patterns);
}

static bool says(struct simulation *simulation, const char *request, const char *words)
{
    struct slice reply = asks(&simulation->patterns, request, NULL);
    return slice_contains(reply, slice_of(words));
}

TEST(a_queue_is_worked_off_whoever_dies)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct simulation simulation;
        char request[100], body[100];
        simulation_open(&simulation, seed);
        snprintf(body, sizeof body,
                 "{\"each\":\"f\",\"concurrency\":%d,\"attempts\":1000,\"backoff\":\"100ms\"}", SEATS);
        asks(&simulation.patterns, "PUT /v1/work/q", body);
        for (int i = 0; i < UNITS; i++) {
            snprintf(request, sizeof request, "POST /v1/work/q/u%d", i);
            snprintf(body, sizeof body, "{\"data\":{\"n\":%d}}", i);
            asks(&simulation.patterns, request, body);
        }
        unsigned done = 0;
        for (unsigned steps = 0; done < UNITS && steps < 200000; steps++) {
            if (steps == 20000) simulation.is_calm = true;
            step(&simulation);
            if (steps % 50) continue;
            for (done = 0; done < UNITS; done++) {
                snprintf(request, sizeof request, "GET /v1/work/q/u%u", done);
                if (!says(&simulation, request, "\"DONE\"")) break;
            }
        }
        CHECK_INT(done, UNITS);
        for (unsigned i = 0; i < UNITS; i++) CHECK(simulation.called[i] >= 1);
        CHECK(simulation.most_running >= 1 && simulation.most_running <= SEATS);
        simulation_close(&simulation);
    }
}

TEST(a_log_is_read_in_the_order_of_its_keys_whoever_dies)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct simulation simulation;
        char body[200];
        simulation_open(&simulation, seed);
        asks(&simulation.patterns, "PUT /v1/logs/l", "{\"partitions\":2}");
        snprintf(body, sizeof body,
                 "{\"function\":\"f\",\"batch\":4,\"attempts\":1000,\"backoff\":\"50ms\",\"parallel\":%d}",
                 (int)(1 + seed % 3));
        asks(&simulation.patterns, "PUT /v1/logs/l/consumers/c", body);
        bool is_read = false;
        int appended = 0;
        for (unsigned steps = 0; !is_read && steps < 200000; steps++) {
            if (appended < EVENTS && steps % 40 == 0) {
                snprintf(body, sizeof body, "{\"key\":\"k%d\",\"data\":{\"n\":%d}}", appended % KEYS,
                         appended);
                asks(&simulation.patterns, "POST /v1/logs/l", body);
                appended++;
            }
            if (steps == 800) asks(&simulation.patterns, "POST /v1/logs/l/split", "{\"partition\":\"0\"}");
            if (steps == 20000) simulation.is_calm = true;
            step(&simulation);
            is_read = appended == EVENTS && steps % 50 == 0 &&
                      says(&simulation, "GET /v1/logs/l/consumers/c/lag", "],\"lag\":0,\"parked\":0}");
        }
        CHECK(is_read);
        for (int i = 0; i < EVENTS; i++) CHECK(simulation.has_seen[i]);
        simulation_close(&simulation);
    }
}

/* How many tasks of a job the servers say that they run. */
static size_t shown_running(struct simulation *simulation, const char *job)
{
    size_t count = 0;
    for (unsigned i = 0; i < SERVERS; i++) {
        struct arena arena = {0};
        struct buf out = {0};
        buf_byte(&out, '[');
        if (simulation->servers[i].drive) drive_put_running(simulation->servers[i].drive, slice_of(job), &out);
        buf_byte(&out, ']');
        count += raw_count(&arena, buf_view(&out));
        buf_free(&out);
        arena_free(&arena);
    }
    return count;
}

TEST(a_job_is_done_whoever_dies)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct simulation simulation;
        struct buf body = {0};
        simulation_open(&simulation, seed);
        buf_printf(&body, "{\"each\":\"f\",\"concurrency\":%d,\"attempts\":100,\"backoff\":\"100ms\",", SEATS);
        buf_text(&body, "\"items\":[");
        for (int i = 0; i < UNITS; i++) buf_printf(&body, "%s{\"n\":%d}", i ? "," : "", i);
        buf_put(&body, "]}", 3);
        asks(&simulation.patterns, "PUT /v1/jobs/j", body.data);
        bool is_done = false;
        size_t most_shown = 0;
        for (unsigned steps = 0; !is_done && steps < 200000; steps++) {
            if (steps == 20000) simulation.is_calm = true;
            step(&simulation);
            size_t shown = shown_running(&simulation, "j");
            if (shown > most_shown) most_shown = shown;
            CHECK_INT(shown_running(&simulation, "k"), 0);
            is_done = steps % 50 == 0 && says(&simulation, "GET /v1/jobs/j", "\"COMPLETE\"");
        }
        CHECK(is_done);
        CHECK(most_shown >= 1 && most_shown <= SEATS);
        CHECK_INT(shown_running(&simulation, "j"), 0);
        for (unsigned i = 0; i < UNITS; i++) CHECK(simulation.called[i] >= 1);
        CHECK(simulation.most_running >= 1 && simulation.most_running <= SEATS);
        struct slice results = asks(&simulation.patterns, "GET /v1/jobs/j/results", NULL);
        struct arena *arena = &simulation.patterns.arena;
        CHECK_INT((int)raw_count(arena, raw_member(arena, results, "results")), UNITS);
        /* The drive is not needed any more, and goes. */
        bool is_gone = false;
        for (unsigned steps = 0; !is_gone && steps < 20000; steps++) {
            simulation.is_calm = true;
            step(&simulation);
            is_gone = steps % 50 == 0 && says(&simulation, "GET /v1/drives", "\"drives\":[]");
        }
        CHECK(is_gone);
        buf_free(&body);
        simulation_close(&simulation);
    }
}
