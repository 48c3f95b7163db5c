/* Patterns by method and path through the library: the routes are tested where they are made, here the way
 * to them: replies, headers, errors, threads. */
#include "unit/library_fixture.h"

#define THREADS 8
#define CALLS   50

static void check_reply(struct quipu_reply *reply, int status, const char *error, const char *json)
{
    CHECK_INT(reply->status, status);
    if (error)
        CHECK_TEXT(slice_of(reply->error ? reply->error : "none"), error);
    else
        CHECK(!reply->error);
    CHECK(error ? reply->message[0] : !reply->message[0]);
    CHECK_INT(reply->json_len, strlen(reply->json));
    if (json) CHECK_TEXT(slice_of(reply->json), json);
    quipu_reply_free(reply);
}

static void check_replies(struct quipu *db)
{
    check_reply(quipu_pattern(db, "POST", "/v1/counters/a", NULL, NULL), 200, NULL, "{\"value\":1}");
    check_reply(quipu_pattern(db, "POST", "/v1/counters/a%2Fb", NULL, "{\"by\":5}"), 200, NULL,
                "{\"value\":5}");
    check_reply(quipu_pattern(db, "GET", "/v1/counters/none", NULL, NULL), 404, "no-such-counter", NULL);
    check_reply(quipu_pattern(db, "POST", "/v1/counters/a", NULL, "{\"by\":\"x\"}"), 400, "bad-request",
                NULL);
    check_reply(quipu_pattern(db, "POST", "/v1/counters/a", NULL, "{"), 400, "bad-json", NULL);
    check_reply(quipu_pattern(db, "PATCH", "/v1/counters/a", NULL, "{}"), 405, "wrong-method", NULL);
    check_reply(quipu_pattern(db, "GET", "/v1/nothing", NULL, NULL), 404, "no-such-route", NULL);
    check_reply(quipu_pattern(db, "", "", "", ""), 404, "no-such-route", NULL);
    check_reply(quipu_pattern(db, "GET", "/v1/counters/a", NULL, NULL), 200, NULL, "{\"value\":1}");
}

static void check_headers(struct quipu *db)
{
    const char *path = "/v1/documents/notes/one";
    struct quipu_reply *reply = quipu_pattern(db, "PUT", path, "If-None-Match: *", "{\"a\":1}");
    CHECK_INT(reply->status, 201);
    CHECK_TEXT(slice_of(reply->etag), "1");
    CHECK_TEXT(slice_of(reply->headers), "ETag: \"1\"\n");
    quipu_reply_free(reply);
    check_reply(quipu_pattern(db, "PUT", path, "X-Other: 1\r\nif-match:  \"7\" \r\n", "{\"a\":2}"), 412,
                "version-mismatch", NULL);
    check_reply(quipu_pattern(db, "PUT", path, "X-Other: 1\nIf-Match: \"1\"", "{\"a\":2}"), 200, NULL, NULL);
    check_reply(quipu_pattern(db, "POST", "/v1/counters/t", "Idempotency-Key: k", NULL), 200, NULL,
                "{\"value\":1}");
    check_reply(quipu_pattern(db, "POST", "/v1/counters/t", "Idempotency-Key: k", NULL), 200, NULL,
                "{\"value\":1}");
    reply = quipu_pattern(db, "GET", "/v1/counters/t?cost=1", NULL, NULL);
    CHECK(!reply->etag);
    CHECK(strstr(reply->json, "\"cost\""));
    quipu_reply_free(reply);
}

TEST(patterns_answer_everywhere)
{
    on_every_engine(check_replies);
    on_every_engine(check_headers);
}

TEST(a_pattern_when_nobody_answers)
{
    struct quipu_options options = QUIPU_OPTIONS;
    char error[QUIPU_ERROR_BYTES];
    options.attempts = 1;
    struct quipu *db = quipu_open("http://127.0.0.1:1", &options, error, sizeof error);
    struct quipu_reply *reply = quipu_pattern(db, "GET", "/v1/counters/a", NULL, NULL);
    CHECK_INT(reply->status, 503);
    CHECK(reply->error && reply->message[0]);
    quipu_reply_free(reply);
    quipu_close(db);
}

TEST(tables_have_the_prefix)
{
    struct quipu_options options = QUIPU_OPTIONS;
    char error[QUIPU_ERROR_BYTES];
    options.prefix = "mine.";
    struct quipu *db = quipu_open(":memory:", &options, error, sizeof error);
    check_reply(quipu_pattern(db, "POST", "/v1/counters/a", NULL, NULL), 200, NULL, "{\"value\":1}");
    struct quipu_reply *reply = quipu_call(db, "ListTables", "{}");
    CHECK(strstr(reply->json, "\"mine.counters\""));
    quipu_reply_free(reply);
    quipu_close(db);
    options.prefix = "not/fit";
    CHECK(!quipu_open(":memory:", &options, error, sizeof error));
    CHECK(strstr(error, "prefix"));
    options.prefix = "";
    CHECK(!quipu_open(":memory:", &options, error, sizeof error));
}

/* ---- threads ---- */

static void *count_many(void *argument)
{
    for (int i = 0; i < CALLS; i++)
        check_reply(quipu_pattern(argument, "POST", "/v1/counters/shared", NULL, NULL), 200, NULL, NULL);
    return NULL;
}

static void *append_many(void *argument)
{
    for (int i = 0; i < CALLS; i++)
        check_reply(quipu_pattern(argument, "POST", "/v1/logs/shared", NULL, "{\"key\":\"k\",\"data\":1}"),
                    201, NULL, NULL);
    return NULL;
}

static void run_threads(struct quipu *db, void *(*what)(void *))
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, what, db) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* Appends of threads that meet are made together (flow_join); none may be lost or left waiting. */
static void check_threads(struct quipu *db)
{
    char last[100];
    check_reply(quipu_pattern(db, "PUT", "/v1/logs/shared", NULL, "{\"partitions\":1}"), 201, NULL, NULL);
    run_threads(db, count_many);
    run_threads(db, append_many);
    snprintf(last, sizeof last, "{\"value\":%d}", THREADS * CALLS);
    check_reply(quipu_pattern(db, "GET", "/v1/counters/shared", NULL, NULL), 200, NULL, last);
    struct quipu_reply *reply = quipu_pattern(db, "POST", "/v1/logs/shared", NULL,
                                              "{\"key\":\"k\",\"data\":1}");
    snprintf(last, sizeof last, "\"sequence\":%d", THREADS * CALLS + 1);
    CHECK(strstr(reply->json, last));
    quipu_reply_free(reply);
}

TEST(many_threads_run_patterns)
{
    on_every_engine(check_threads);
}

static void *wait_for_lease(void *argument)
{
    return quipu_pattern(argument, "POST", "/v1/leases/l", NULL,
                         "{\"owner\":\"b\",\"for\":\"1m\",\"wait\":\"30s\"}");
}

/* A thread that waits is woken by another one's release. */
TEST(a_thread_wakes_another)
{
    struct quipu *db = open_or_fail(":memory:");
    pthread_t waiter;
    void *granted;
    check_reply(quipu_pattern(db, "POST", "/v1/leases/l", NULL, "{\"owner\":\"a\",\"for\":\"1m\"}"), 200,
                NULL, NULL);
    CHECK(pthread_create(&waiter, NULL, wait_for_lease, db) == 0);
    check_reply(quipu_pattern(db, "DELETE", "/v1/leases/l?owner=a&fence=1", NULL, NULL), 200, NULL, NULL);
    pthread_join(waiter, &granted);
    CHECK(strstr(((struct quipu_reply *)granted)->json, "\"fence\":2"));
    quipu_reply_free(granted);
    quipu_close(db);
}
