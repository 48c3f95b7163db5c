/* Who waits, by topic, thing, kin and moment; and what flows that wait cost: nothing. */
#include "pattern/waits.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "pattern/flow.h"
#include "unit/pattern_fixture.h"

#define HOUR_MS  (3600 * 1000ll)
#define START_MS 1000000ll

static struct waits *waits_new(int64_t poll_ms)
{
    struct waits *waits = calloc(1, sizeof *waits);
    waits_init(waits, poll_ms);
    return waits;
}

static void waits_close(struct waits *waits)
{
    for (struct wait *list = waits_take_all(waits); list; list = list->next) waits_end(waits, list, true, 0);
    waits_free(waits);
    free(waits);
}

static size_t length(const struct wait *list)
{
    size_t count = 0;
    for (; list; list = list->next) count++;
    return count;
}

static struct wait waiter(uint64_t topic, uint64_t kin, int64_t until_ms)
{
    return (struct wait){.topic = topic,
                         .thing = topic + 1000,
                         .kin = kin,
                         .until_ms = until_ms,
                         .until_us = WAITS_NEVER,
                         .change_ms = WAITS_NEVER,
                         .seen = 1};
}

/* An hour, second by second; answers how many had to go on. */
static size_t pass_an_hour(struct waits *waits)
{
    size_t woken = 0;
    for (int64_t ms = 0; ms < HOUR_MS; ms += 1000)
        woken += length(waits_take_due(waits, ms * 1000, START_MS + ms));
    return woken;
}

TEST(waits_cost_nothing_while_nothing_happens)
{
    enum { WAITERS = 2000 };
    struct waits *waits = waits_new(0);
    struct wait *all = calloc(WAITERS, sizeof *all);
    for (unsigned i = 0; i < WAITERS; i++) {
        all[i] = waiter(i % 100 + 1, i % 100 + 1, START_MS + HOUR_MS);
        CHECK(!waits_add(waits, &all[i], 0));
    }
    CHECK_INT(pass_an_hour(waits), 0);
    CHECK_INT(waits->count, WAITERS);
    CHECK_INT(length(waits_take_topic(waits, 101)), 0);
    CHECK_INT(length(waits_take_topic(waits, 7)), 20);
    CHECK_INT(length(waits_take_thing(waits, 1008)), 20);
    CHECK(!waits_has_thing(waits, 1008));
    CHECK(waits_has_thing(waits, 1009));
    CHECK_INT(length(waits_take_due(waits, 0, START_MS + HOUR_MS)), WAITERS - 40);
    waits_close(waits);
    free(all);
}

TEST(waits_end_in_the_order_of_their_moments)
{
    enum { WAITERS = 500 };
    struct waits *waits = waits_new(0);
    struct wait *all = calloc(WAITERS, sizeof *all);
    struct random random;
    random_seed(&random, 7);
    for (unsigned i = 0; i < WAITERS; i++) {
        all[i] = waiter(i + 1, 0, START_MS + (int64_t)random_below(&random, 1000));
        waits_add(waits, &all[i], 0);
    }
    for (unsigned i = 0; i < WAITERS; i += 3) CHECK(waits_take(waits, &all[i]));
    CHECK(!waits_take(waits, &all[0]));
    for (int64_t now_ms = START_MS; waits->count; now_ms++) {
        CHECK(waits_next_us(waits, 0, now_ms, 100000) >= 0);
        for (struct wait *list = waits_take_due(waits, 0, now_ms); list; list = list->next)
            CHECK_INT(list->until_ms, now_ms);
    }
    waits_close(waits);
    free(all);
}

/* On a remote database one looks for all, and less and less often. */
TEST(waits_of_a_kin_send_one_scout)
{
    enum { WAITERS = 1000 };
    struct waits *waits = waits_new(400);
    struct wait *all = calloc(WAITERS, sizeof *all);
    size_t looks = 0;
    for (unsigned i = 0; i < WAITERS; i++) {
        all[i] = waiter(i + 1, 9, START_MS + HOUR_MS);
        waits_add(waits, &all[i], 0);
    }
    for (int64_t ms = 0; ms < 60000; ms += 100) {
        struct wait *scout = waits_take_due(waits, ms * 1000, START_MS + ms);
        if (!scout) continue;
        CHECK_INT(length(scout), 1);
        CHECK(!waits_add(waits, scout, ms * 1000)); /* it has seen the same again */
        looks++;
    }
    CHECK(looks >= 20 && looks <= 60);
    struct wait *scout = NULL; /* now there is news */
    for (int64_t ms = 60000; !scout; ms += 100) scout = waits_take_due(waits, ms * 1000, START_MS + ms);
    scout->seen = 2;
    CHECK_INT(length(waits_add(waits, scout, 60000000)), WAITERS - 1);
    CHECK_INT(waits->count, 1);
    waits_close(waits);
    free(all);
}

TEST(waits_of_a_kin_go_on_when_the_scout_has_found_something)
{
    struct waits *waits = waits_new(0);
    struct wait all[3] = {{0}};
    for (unsigned i = 0; i < 3; i++) {
        all[i] = waiter(1, 9, START_MS + HOUR_MS);
        all[i].change_ms = START_MS + 50;
        waits_add(waits, &all[i], 0);
    }
    CHECK(!waits_take_due(waits, 0, START_MS + 49));
    struct wait *scout = waits_take_due(waits, 0, START_MS + 50);
    CHECK_INT(length(scout), 1);
    CHECK(!waits_take_due(waits, 0, START_MS + 60)); /* while it looks nobody else does */
    CHECK(!waits_end(waits, scout, true, 0));        /* its own time was over: the next one looks */
    scout = waits_take_due(waits, 0, START_MS + 61);
    CHECK_INT(length(scout), 1);
    CHECK_INT(length(waits_end(waits, scout, false, 0)), 1);
    CHECK_INT(waits->count, 0);
    waits_close(waits);
}

/* ---- flows that wait, with the real engine ---- */

struct served {
    struct rest_call call;
    struct arena arena;
    struct buf reply;
    sem_t done;
    char request[80], body[80];
};

static void served_done(struct rest_call *call)
{
    sem_post(&((struct served *)call)->done);
}

static void serve(struct patterns *patterns, struct served *served)
{
    char *space = strchr(served->request, ' '), *query = strchr(served->request, '?');
    size_t path_len = query ? (size_t)(query - space - 1) : strlen(space + 1);
    served->call = (struct rest_call){.method = {served->request, (size_t)(space - served->request)},
                                      .path = {space + 1, path_len},
                                      .query = query ? slice_of(query + 1) : SLICE(""),
                                      .body = served->body[0] ? slice_of(served->body) : SLICE_NONE,
                                      .done = served_done,
                                      .arena = &served->arena,
                                      .reply = &served->reply};
    ensure(sem_init(&served->done, 0, 0) == 0);
    ensure(pattern_serve(patterns->pattern, &served->call));
}

static void await(struct served *served)
{
    while (sem_wait(&served->done) != 0) {
        /* a signal's handler ran */
    }
}

static void served_free(struct served *served)
{
    sem_destroy(&served->done);
    arena_free(&served->arena);
    buf_free(&served->reply);
}

static long metric(struct patterns *patterns, const char *name)
{
    struct buf out = {0};
    char line[80];
    pattern_put_metrics(patterns->pattern, &out);
    buf_byte(&out, 0);
    snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(out.data, line);
    ensure(at);
    long value = atol(at + strlen(line));
    buf_free(&out);
    return value;
}

static void await_waiting(struct patterns *patterns, long wanted)
{
    while (metric(patterns, "quipu_flows_waiting") != wanted) {
        struct timespec moment = {.tv_nsec = 1000000};
        nanosleep(&moment, NULL);
    }
}

/* Others than flows: any SDK, or a command in another process. */
static void put_plain(struct patterns *patterns, const char *request)
{
    struct buf reply = {0};
    CHECK_INT(dynamo_call(patterns->dynamo, SLICE("PutItem"), slice_of(request), &reply), 200);
    buf_free(&reply);
}

static const char *const kinds[] = {
    "GET /v1/documents/c/d%u?wait=60s", "GET /v1/boards/b%u?wait=60s",        "POST /v1/work/q%u/claim",
    "GET /v1/work/q/u%u?wait=60s",      "POST /v1/logs/l%u/consumers/g/read", "GET /v1/groups/g/k%u?wait=60s",
};

TEST(flows_that_wait_make_no_calls_and_no_steps)
{
    enum { WAITERS = 300 };
    struct patterns patterns;
    patterns_open(&patterns);
    if (!dynamo_engine(patterns.dynamo)) { /* others' writes are looked for there */
        patterns_close(&patterns);
        return;
    }
    struct served *all = calloc(WAITERS, sizeof *all);
    for (unsigned i = 0; i < 10; i++) {
        char request[80];
        snprintf(request, sizeof request, "PUT /v1/logs/l%u", i);
        asks(&patterns, request, "{}");
    }
    asks(&patterns, "PUT /v1/documents/c/another", "0");
    for (unsigned i = 0; i < WAITERS; i++) {
        snprintf(all[i].request, sizeof all[i].request, kinds[i % 6], i / 6 % 10);
        if (all[i].request[0] == 'P')
            snprintf(all[i].body, sizeof all[i].body, "{\"owner\":\"o%u\",\"wait\":\"60s\"}", i);
        serve(&patterns, &all[i]);
    }
    await_waiting(&patterns, WAITERS);
    long calls = metric(&patterns, "quipu_flow_calls_total"),
         wakes = metric(&patterns, "quipu_flow_wakes_total");
    for (int second = 1; second < 60; second++) /* of the waits' own clock */
        __atomic_add_fetch(&patterns.now_ms, 900, __ATOMIC_SEQ_CST);
    put_plain(&patterns,
              "{\"TableName\":\"quipu-documents\",\"Item\":{\"collection\":{\"S\":\"c\"},"
              "\"key\":{\"S\":\"other\"},\"version\":{\"N\":\"1\"},\"data\":{\"S\":\"x\"}}}");
    asks(&patterns, "PUT /v1/documents/c/another", "1");
    CHECK_INT(metric(&patterns, "quipu_flow_wakes_total"), wakes); /* a change of something else */
    CHECK_INT(metric(&patterns, "quipu_flow_calls_total"), calls + 1); /* which was one call itself */
    CHECK_INT(metric(&patterns, "quipu_flows_waiting"), WAITERS);
    __atomic_add_fetch(&patterns.now_ms, 60000, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < WAITERS; i++) {
        await(&all[i]);
        served_free(&all[i]);
    }
    free(all);
    patterns_close(&patterns);
}

/* What a plain client writes ends the wait of those who wait for it, and of nobody else. */
TEST(flows_are_woken_by_what_others_write)
{
    struct patterns patterns;
    struct served waiters[2] = {{.request = "GET /v1/documents/c/a?wait=60s"},
                                {.request = "GET /v1/documents/c/b?wait=60s"}};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/documents/c/other", "1");
    for (unsigned i = 0; i < 2; i++) serve(&patterns, &waiters[i]);
    await_waiting(&patterns, 2);
    char request[300];
    snprintf(request, sizeof request,
             "{\"TableName\":\"%sdocuments\",\"Item\":{\"collection\":{\"S\":\"c\"},\"key\":{\"S\":\"a\"},"
             "\"version\":{\"N\":\"1\"},\"data\":{\"N\":\"7\"}}}",
             patterns.prefix);
    put_plain(&patterns, request);
    await(&waiters[0]);
    CHECK_TEXT(buf_view(&waiters[0].reply), "7");
    if (dynamo_engine(patterns.dynamo)) CHECK_INT(metric(&patterns, "quipu_flow_wakes_total"), 1);
    __atomic_add_fetch(&patterns.now_ms, 60000, __ATOMIC_SEQ_CST);
    await(&waiters[1]);
    CHECK_INT(waiters[1].call.status, 404);
    for (unsigned i = 0; i < 2; i++) served_free(&waiters[i]);
    patterns_close(&patterns);
}

/* A unit that becomes due is claimed then, though nobody writes anything. */
TEST(flows_are_woken_when_what_they_wait_for_is_due)
{
    struct patterns patterns;
    struct served waiter = {.request = "POST /v1/work/q/claim", .body = "{\"wait\":\"60s\"}"};
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/work/q/u", "{\"delay\":\"20s\"}");
    CHECK_INT(patterns.call.status, 201);
    serve(&patterns, &waiter);
    await_waiting(&patterns, 1);
    __atomic_add_fetch(&patterns.now_ms, 20000, __ATOMIC_SEQ_CST);
    await(&waiter);
    CHECK_INT(waiter.call.status, 200);
    served_free(&waiter);
    patterns_close(&patterns);
}

/* A flow that is woken a thousand times holds no more memory than after the first. */
TEST(flows_that_wait_do_not_grow)
{
    enum { WAKES = 300 };
    struct patterns patterns;
    struct served waiter = {.request = "GET /v1/boards/b?wait=60s&after=9999"};
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/boards/b", "{\"text\":\"x\"}");
    serve(&patterns, &waiter);
    await_waiting(&patterns, 1);
    size_t bytes = waiter.arena.total_bytes;
    for (unsigned i = 0; i < WAKES; i++) {
        long wakes = metric(&patterns, "quipu_flow_wakes_total");
        asks(&patterns, "POST /v1/boards/b", "{\"text\":\"y\"}");
        while (metric(&patterns, "quipu_flow_wakes_total") == wakes) {
        }
        await_waiting(&patterns, 1);
    }
    CHECK_INT(waiter.arena.total_bytes, bytes);
    __atomic_add_fetch(&patterns.now_ms, 60000, __ATOMIC_SEQ_CST);
    await(&waiter);
    served_free(&waiter);
    patterns_close(&patterns);
}
