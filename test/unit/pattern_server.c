/* Flows that are served beside each other: who waits is woken, the line is kept, closing answers all. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "unit/pattern_fixture.h"

#define CALLERS 8
#define CALLS   200

/* A call that somebody waits for. */
struct served {
    struct rest_call call;
    struct arena arena;
    struct buf reply;
    sem_t done;
    unsigned order; /* in which calls were answered */
    _Atomic bool has_gone;
};

static _Atomic unsigned answered;

static void served_done(struct rest_call *call)
{
    struct served *served = (struct served *)call;
    served->order = ++answered;
    sem_post(&served->done);
}

static bool served_gone(const struct rest_call *call)
{
    return ((const struct served *)call)->has_gone;
}

static void serve(struct patterns *patterns, struct served *served, const char *request, const char *body)
{
    const char *space = strchr(request, ' '), *query = strchr(request, '?');
    size_t path_len = query ? (size_t)(query - space - 1) : strlen(space + 1);
    *served = (struct served){.call = {.method = {request, (size_t)(space - request)},
                                       .path = {space + 1, path_len},
                                       .query = query ? slice_of(query + 1) : SLICE(""),
                                       .body = body ? slice_of(body) : SLICE_NONE,
                                       .done = served_done,
                                       .gone = served_gone}};
    served->call.arena = &served->arena;
    served->call.reply = &served->reply;
    ensure(sem_init(&served->done, 0, 0) == 0);
    CHECK(pattern_serve(patterns->pattern, &served->call));
}

/* Its client closes the connection. */
static void leave(struct served *served)
{
    served->has_gone = true;
    served->call.left(&served->call);
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

/* One call, waited for. */
static int served_status(struct patterns *patterns, const char *request, const char *body)
{
    struct served served;
    serve(patterns, &served, request, body);
    await(&served);
    int status = served.call.status;
    served_free(&served);
    return status;
}

/* Until so many stand in the line of lease x. */
static void await_line(struct patterns *patterns, unsigned wanted)
{
    for (unsigned count = 0; count != wanted;) {
        struct served served;
        serve(patterns, &served, "GET /v1/leases/x", NULL);
        await(&served);
        struct slice line = buf_view(&served.reply);
        const char *list = memmem(line.data, line.len, "\"waiting\":[", 11);
        count = 0;
        for (const char *at = list ? list + 11 : NULL; at && at < line.data + line.len && *at != ']'; at++)
            count += *at == '"';
        count /= 2;
        served_free(&served);
    }
}

static void *count_many(void *argument)
{
    for (int i = 0; i < CALLS; i++) CHECK_INT(served_status(argument, "POST /v1/counters/x", NULL), 200);
    return NULL;
}

TEST(server_runs_flows_of_many_threads)
{
    struct patterns patterns;
    pthread_t threads[CALLERS];
    patterns_open(&patterns);
    for (int i = 0; i < CALLERS; i++) CHECK(pthread_create(&threads[i], NULL, count_many, &patterns) == 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    CHECK_ASKS(&patterns, "GET /v1/counters/x", NULL, 200, "{\"value\":1600}");
    CHECK_INT(served_status(&patterns, "PATCH /v1/counters/x", NULL), 405);
    struct served served = {.call = {.method = SLICE("GET"), .path = SLICE("/elsewhere")}};
    served.call.arena = &served.arena;
    CHECK(!pattern_serve(patterns.pattern, &served.call));
    arena_free(&served.arena);
    patterns_close(&patterns);
}

static void *patch_many(void *argument)
{
    for (int i = 0; i < CALLS / 10; i++)
        CHECK_INT(served_status(argument, "PATCH /v1/documents/c/a", "{\"x\":1}"), 200);
    return NULL;
}

TEST(server_repeats_what_lost_a_race)
{
    struct patterns patterns;
    pthread_t threads[CALLERS];
    patterns_open(&patterns);
    CHECK_INT(served_status(&patterns, "PUT /v1/documents/c/a", "{}"), 201);
    for (int i = 0; i < CALLERS; i++) CHECK(pthread_create(&threads[i], NULL, patch_many, &patterns) == 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
    asks(&patterns, "GET /v1/documents/c/a", NULL);
    CHECK_TEXT(patterns.call.headers, "ETag: \"161\"\r\n"); /* 1 and 8 times 20: none was lost */
    patterns_close(&patterns);
}

TEST(server_keeps_the_line_of_a_lease)
{
    enum { WAITERS = 5 };
    struct patterns patterns;
    struct served waiters[WAITERS];
    char bodies[WAITERS][80], release[80];
    patterns_open(&patterns);
    answered = 0;
    CHECK_INT(served_status(&patterns, "POST /v1/leases/x", "{\"owner\":\"first\"}"), 200);
    for (unsigned i = 0; i < WAITERS; i++) {
        snprintf(bodies[i], sizeof bodies[i], "{\"owner\":\"w%u\",\"wait\":\"60s\"}", i);
        serve(&patterns, &waiters[i], "POST /v1/leases/x", bodies[i]);
        await_line(&patterns, i + 1);
    }
    CHECK_INT(served_status(&patterns, "DELETE /v1/leases/x?owner=first&fence=1", NULL), 200);
    for (unsigned i = 0; i < WAITERS; i++) {
        await(&waiters[i]);
        CHECK_INT(waiters[i].call.status, 200);
        snprintf(release, sizeof release, "DELETE /v1/leases/x?owner=w%u&fence=%u", i, i + 2);
        CHECK_INT(served_status(&patterns, release, NULL), 200);
        if (i) CHECK(waiters[i].order > waiters[i - 1].order);
    }
    for (unsigned i = 0; i < WAITERS; i++) served_free(&waiters[i]);
    patterns_close(&patterns);
}

/* Who waits in front of others and is not there any more gets nothing and holds up nobody. */
TEST(server_passes_over_those_who_have_gone)
{
    enum { WAITERS = 30, LAST = WAITERS - 1 };
    struct patterns patterns;
    struct served waiters[WAITERS], reader;
    char bodies[WAITERS][80];
    patterns_open(&patterns);
    CHECK_INT(served_status(&patterns, "POST /v1/leases/x", "{\"owner\":\"first\"}"), 200);
    for (unsigned i = 0; i < WAITERS; i++) {
        snprintf(bodies[i], sizeof bodies[i], "{\"owner\":\"w%u\",\"wait\":\"60s\"}", i);
        serve(&patterns, &waiters[i], "POST /v1/leases/x", bodies[i]);
        await_line(&patterns, i + 1);
    }
    serve(&patterns, &reader, "GET /v1/documents/c/a?wait=60s", NULL);
    for (unsigned i = 0; i < LAST; i++) leave(&waiters[i]);
    leave(&reader);
    CHECK_INT(served_status(&patterns, "DELETE /v1/leases/x?owner=first&fence=1", NULL), 200);
    await(&waiters[LAST]);
    CHECK_INT(waiters[LAST].call.status, 200);
    CHECK(slice_contains(buf_view(&waiters[LAST].reply), SLICE("\"fence\":2,"))); /* nobody between */
    for (unsigned i = 0; i < LAST; i++) {
        await(&waiters[i]);
        CHECK(waiters[i].call.status >= 400);
    }
    await(&reader);
    CHECK_INT(reader.call.status, 408);
    struct buf metrics = {0};
    pattern_put_metrics(patterns.pattern, &metrics);
    CHECK(slice_contains(buf_view(&metrics), SLICE("\nquipu_flows_waiting 0\n")));
    CHECK(slice_contains(buf_view(&metrics), SLICE("\nquipu_flows_gone_total 30\n")));
    buf_free(&metrics);
    for (unsigned i = 0; i < WAITERS; i++) served_free(&waiters[i]);
    served_free(&reader);
    patterns_close(&patterns);
}

TEST(server_wakes_those_who_wait)
{
    struct patterns patterns;
    struct served board, document, claim, unit;
    patterns_open(&patterns);
    serve(&patterns, &board, "GET /v1/boards/b?wait=60s", NULL);
    serve(&patterns, &document, "GET /v1/documents/c/a?wait=60s", NULL);
    serve(&patterns, &claim, "POST /v1/work/q/claim", "{\"wait\":\"60s\"}");
    serve(&patterns, &unit, "GET /v1/work/q/a?wait=60s", NULL);
    CHECK_INT(served_status(&patterns, "POST /v1/boards/b", "{\"text\":\"hello\"}"), 201);
    await(&board);
    CHECK(slice_contains(buf_view(&board.reply), SLICE("hello")));
    CHECK_INT(served_status(&patterns, "PUT /v1/documents/c/a", "7"), 201);
    await(&document);
    CHECK_TEXT(buf_view(&document.reply), "7");
    CHECK_INT(served_status(&patterns, "POST /v1/work/q/a", "{}"), 201);
    await(&claim);
    CHECK_INT(claim.call.status, 200);
    CHECK_INT(served_status(&patterns, "POST /v1/work/q/a/finish", "{\"fence\":1}"), 200);
    await(&unit);
    CHECK(slice_contains(buf_view(&unit.reply), SLICE("\"DONE\"")));
    served_free(&board);
    served_free(&document);
    served_free(&claim);
    served_free(&unit);
    patterns_close(&patterns);
}

TEST(server_answers_all_when_it_closes)
{
    enum { WAITERS = 20 };
    struct patterns patterns;
    struct served waiters[WAITERS];
    patterns_open(&patterns);
    CHECK_INT(served_status(&patterns, "PUT /v1/documents/c/other", "1"), 201);
    for (unsigned i = 0; i < WAITERS; i++)
        serve(&patterns, &waiters[i], "GET /v1/documents/c/a?wait=60s", NULL);
    pattern_close(patterns.pattern);
    for (unsigned i = 0; i < WAITERS; i++) {
        await(&waiters[i]);
        CHECK_INT(waiters[i].call.status, 503);
        CHECK_TEXT(waiters[i].call.headers, "Retry-After: 1\r\n");
        served_free(&waiters[i]);
    }
    dynamo_close(patterns.dynamo);
    arena_free(&patterns.arena);
    buf_free(&patterns.reply);
}

/* A wait that ends because its time has come, by a clock that jumps. */
TEST(server_looks_at_the_clock)
{
    struct patterns patterns;
    struct served waiter;
    patterns_open(&patterns);
    CHECK_INT(served_status(&patterns, "PUT /v1/documents/c/other", "1"), 201);
    serve(&patterns, &waiter, "GET /v1/documents/c/a?wait=60s", NULL);
    __atomic_add_fetch(&patterns.now_ms, 60000, __ATOMIC_SEQ_CST);
    await(&waiter);
    CHECK_INT(waiter.call.status, 404);
    served_free(&waiter);
    patterns_close(&patterns);
}
