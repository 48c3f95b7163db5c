/* Two servers with the same schedules, from a seed, with everything going wrong: calls that never leave, whose replies
 * are lost, or that happen long after, throttled ones, servers that die between any two writes and come back with an
 * old agenda or a new one; while clients make and delete a group and schedules in it. With transactions and without.
 *
 * Some schedules stay as they are: in the end each of their due times was fired once. And at no time is there a
 * schedule of a group that is gone (A5). */
#include "unit/trigger_schedule.h"

#include <stdlib.h>

#include "base/attribute.h"
#include "base/fail.h"
#include "base/random.h"

#define HELD     64
#define LATE     64
#define REQUESTS 4
#define STABLE   3
#define PLAYS    30
#define MINUTE   INT64_C(60000)

struct held {
    struct dynamo_call *call;
    unsigned server;
};

/* A write that was answered with a time-out, and happens later. */
struct late {
    char *operation, *request;
};

struct client_request {
    struct rest_call call;
    struct arena arena;
    struct buf reply;
    unsigned server;
    bool is_under_way, is_done;
};

static struct play {
    struct world world;
    struct random random;
    struct held held[HELD];
    unsigned held_count, server; /* that is being stepped */
    struct late late[LATE];
    unsigned late_count;
    struct client_request requests[REQUESTS];
    unsigned trouble; /* how likely a mishap is, of a hundred */
    unsigned crashes, lost, made, deleted;
} play;

static unsigned below(unsigned bound)
{
    return (unsigned)random_below(&play.random, bound);
}

static bool hold(struct world *world, struct dynamo_call *call)
{
    (void)world;
    ensure(play.held_count < HELD);
    play.held[play.held_count++] = (struct held){call, play.server};
    return true;
}

static char *text_copy(struct slice text)
{
    char *copy = malloc(text.len + 1);
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    return copy;
}

static void late_happens(unsigned index)
{
    struct late late = play.late[index];
    struct buf reply = {0};
    play.late[index] = play.late[--play.late_count];
    dynamo_call(play.world.dynamo, slice_of(late.operation), slice_of(late.request), &reply);
    buf_free(&reply);
    free(late.operation);
    free(late.request);
}

static void answer_without(struct dynamo_call *call, int status, const char *error)
{
    call->reply->len = 0;
    buf_printf(call->reply, "{\"__type\":\"%s\",\"message\":\"a mishap\"}", error);
    call->status = status;
    call->error = error;
}

static void perform(unsigned index)
{
    struct held held = play.held[index];
    play.held[index] = play.held[--play.held_count];
    unsigned mishap = below(100) < play.trouble ? 1 + below(4) : 0;
    play.lost += mishap != 0;
    if (mishap == 0 || mishap == 1) world_answer(&play.world, held.call);
    if (mishap == 1 || mishap == 2) answer_without(held.call, 0, "NoReplyException");
    if (mishap == 3) answer_without(held.call, 400, "ThrottlingException");
    if (mishap == 4) {
        if (play.late_count == LATE) late_happens(below(LATE));
        play.late[play.late_count++] = (struct late){text_copy(held.call->name),
                                                     text_copy(held.call->request)};
        answer_without(held.call, 500, "InternalServerError");
    }
    held.call->done(held.call);
}

/* ---- servers ---- */

static void start(unsigned server)
{
    play.world.hold = NULL; /* its first reading is not what this is about */
    server_open(&play.world, server);
    schedules_begin(schedules_of(&play.world, server));
    play.world.hold = hold;
}

/* What it has begun happens, or not; nobody is told. */
static void crash(unsigned server)
{
    for (unsigned i = play.held_count; i-- > 0;) {
        if (play.held[i].server != server) continue;
        struct dynamo_call *call = play.held[i].call;
        play.held[i] = play.held[--play.held_count];
        if (below(2)) world_answer(&play.world, call);
        task_call_drop(call);
    }
    server_close(&play.world, server);
    for (unsigned i = 0; i < REQUESTS; i++)
        if (play.requests[i].server == server) play.requests[i].is_done = true;
    play.crashes++;
}

static void step(unsigned server)
{
    play.server = server;
    task_host_step(play.world.servers[server].host);
}

/* ---- clients ---- */

static void request_done(struct rest_call *call)
{
    ring_owner(call, struct client_request, call)->is_done = true;
}

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call, (void)name;
    return SLICE_NONE;
}

static void request_end(struct client_request *request)
{
    play.made += request->call.status == 200 && slice_equal(request->call.method, SLICE("POST"));
    play.deleted += request->call.status == 200 && slice_equal(request->call.method, SLICE("DELETE"));
    arena_free(&request->arena);
    buf_free(&request->reply);
    *request = (struct client_request){0};
}

/* Anything of: make the group, delete it, make a schedule in it, delete that. */
static void request_begin(struct client_request *request, unsigned server)
{
    static const char *const rows[][3] = {
        {"POST", "/schedule-groups/g", "{}"},
        {"POST", "/schedules/a",
         "{\"ScheduleExpression\":\"rate(1 minute)\",\"GroupName\":\"g\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
         "\"Target\":{\"Arn\":\"f\",\"Input\":\"\\\"of the group\\\"\"}}"},
        {"POST", "/schedules/b",
         "{\"ScheduleExpression\":\"rate(1 minute)\",\"GroupName\":\"g\",\"FlexibleTimeWindow\":{\"Mode\":\"OFF\"},"
         "\"Target\":{\"Arn\":\"f\",\"Input\":\"\\\"of the group\\\"\"}}"},
        {"DELETE", "/schedules/a", ""},
        {"DELETE", "/schedule-groups/g", ""},
    };
    const char *const *row = rows[below(sizeof rows / sizeof *rows)];
    const struct rest_route *route;
    *request = (struct client_request){.server = server, .is_under_way = true};
    request->call = (struct rest_call){.method = slice_of(row[0]),
                                       .path = slice_of(row[1]),
                                       .query = strstr(row[1], "schedules") ? SLICE("groupName=g")
                                                                            : SLICE(""),
                                       .body = slice_of(row[2]),
                                       .header = no_header,
                                       .arena = &request->arena,
                                       .done = request_done,
                                       .reply = &request->reply};
    ensure(rest_route(schedule_routes, schedule_route_count, &request->call, &route) == REST_FOUND);
    route->serve(&play.world.servers[server].trigger, &request->call);
}

/* ---- what must hold ---- */

static void check_group(void)
{
    struct buf reply = {0};
    struct arena arena = {0};
    struct slice item, request = SLICE("{\"TableName\":\"quipu-schedules\"}");
    bool has_group = false, has_schedule = false;
    CHECK_INT(dynamo_call(play.world.dynamo, SLICE("Scan"), request, &reply), 200);
    struct raw_look look;
    raw_look_begin(&look, &arena, raw_member(&arena, buf_view(&reply), "Items"));
    while (raw_look_next(&look, NULL, &item)) {
        has_group |= item_says(&arena, item, "group", "*") && item_says(&arena, item, "name", "g");
        has_schedule |= item_says(&arena, item, "group", "g") && !item_has(&arena, item, "pending");
    }
    CHECK(has_group || !has_schedule);
    arena_free(&arena);
    buf_free(&reply);
}

/* Each due time of those that nobody touched, once: its payload tells schedule and time. */
static void check_fired(int64_t from_ms)
{
    for (int i = 0; i < STABLE; i++) {
        for (int64_t due_ms = from_ms; due_ms <= play.world.now_ms; due_ms += MINUTE) {
            struct arena arena = {0};
            struct slice time = moment_text(&arena, due_ms);
            struct slice payload = arena_printf(&arena, "{\\\"s\\\":%d,\\\"at\\\":\\\"%.19sZ\\\"}%c", i,
                                                time.data, 0);
            size_t count = calls_with(&play.world, payload.data);
            if (count != 1) test_failed(__FILE__, __LINE__, "%s was fired %zu times", payload.data, count);
            arena_free(&arena);
        }
    }
    CHECK_INT(letters_count(&play.world), 0);
}

/* ---- plays ---- */

static void storm_step(void)
{
    unsigned chance = below(100), server = below(SERVERS);
    bool is_up = schedules_of(&play.world, server) != NULL;
    struct client_request *request = &play.requests[below(REQUESTS)];
    if (chance < 40 && is_up) {
        step(server);
    } else if (chance < 80) {
        if (play.held_count) perform(below(play.held_count));
    } else if (chance < 90) {
        int64_t ms = 1 + below(chance < 88 ? 200 : 30000);
        play.world.now_ms += ms;
        play.world.ticks_us += ms * 1000;
    } else if (chance < 92) {
        if (play.late_count) late_happens(below(play.late_count));
    } else if (chance < 94) {
        if (!is_up)
            start(server);
        else if (below(4) == 0)
            crash(server);
    } else if (request->is_done) {
        request_end(request);
        check_group();
    } else if (!request->is_under_way && is_up) {
        play.world.now_ms++; /* what is made again is younger */
        request_begin(request, server);
    }
}

static bool is_under_way(void)
{
    bool is_busy = play.held_count > 0;
    for (unsigned i = 0; i < SERVERS; i++) is_busy |= !schedules_are_idle(schedules_of(&play.world, i));
    for (unsigned i = 0; i < REQUESTS; i++)
        is_busy |= play.requests[i].is_under_way && !play.requests[i].is_done;
    return is_busy;
}

static void run(uint64_t seed, bool has_transactions, unsigned steps)
{
    char name[8], more[64];
    play = (struct play){.trouble = 10};
    random_seed(&play.random, seed);
    world_open(&play.world);
    play.world.has_transactions = has_transactions;
    for (unsigned i = 0; i < SERVERS; i++) play.world.servers[i].trigger.options.shared = true;
    server_open(&play.world, 0);
    int64_t from_ms = play.world.now_ms;
    for (int i = 0; i < STABLE; i++) {
        snprintf(name, sizeof name, "s%d", i);
        snprintf(more, sizeof more, ",\"MissedRuns\":\"ALL\"%s",
                 i == 2 ? ",\"ActionAfterCompletion\":\"DELETE\"" : "");
        schedule_make_with(&play.world, name, "cron(* * * * ? *)",
                           i == 0   ? "{\\\"s\\\":0,\\\"at\\\":\\\"<aws.scheduler.scheduled-time>\\\"}"
                           : i == 1 ? "{\\\"s\\\":1,\\\"at\\\":\\\"<aws.scheduler.scheduled-time>\\\"}"
                                    : "{\\\"s\\\":2,\\\"at\\\":\\\"<aws.scheduler.scheduled-time>\\\"}",
                           more);
    }
    schedules_begin(schedules_of(&play.world, 0));
    start(1);
    while (steps--) storm_step();
    play.trouble = 0;
    while (play.late_count) late_happens(0);
    for (unsigned i = 0; i < SERVERS; i++)
        if (!schedules_of(&play.world, i)) start(i);
    while (is_under_way()) {
        for (unsigned i = 0; i < SERVERS; i++) step(i);
        while (play.held_count) perform(0);
        play.world.ticks_us += 10000;
        if (below(4) == 0) play.world.now_ms += 500; /* who has failed pauses */
    }
    for (unsigned i = 0; i < REQUESTS; i++) request_end(&play.requests[i]);
    check_group();
    check_fired(from_ms);
    world_close(&play.world);
}

static void simulate(bool has_transactions)
{
    unsigned crashes = 0, lost = 0, made = 0, deleted = 0;
    for (uint64_t seed = 1; seed <= PLAYS; seed++) {
        run(seed, has_transactions, 2000);
        crashes += play.crashes;
        lost += play.lost;
        made += play.made;
        deleted += play.deleted;
    }
    CHECK(crashes > PLAYS && lost > PLAYS && made > PLAYS && deleted > PLAYS);
}

TEST(schedules_in_a_storm)
{
    simulate(true);
}

TEST(schedules_in_a_storm_without_transactions)
{
    simulate(false);
}
