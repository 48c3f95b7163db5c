/* Asynchronous calls: accepted once, run at least once, settled once. */
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "func/queue.h"
#include "unit/func_stage.h"

static const struct stage_options plain;

/* ---- helpers ---- */

struct accepting {
    struct queued queued; /* first: the queued is us */
    _Atomic bool is_done;
};

static void accepted(struct queued *queued)
{
    atomic_store(&((struct accepting *)queued)->is_done, true);
}

static bool is_accepted(void *accepting)
{
    return atomic_load(&((struct accepting *)accepting)->is_done);
}

static int accept_call(struct stage *stage, const char *function, struct slice payload)
{
    struct accepting accepting = {.queued = {.function = slice_of(function),
                                             .payload = payload,
                                             .cause = SLICE("origin:1"),
                                             .accepted = accepted}};
    queue_accept(stage->func->queue, &accepting.queued);
    CHECK(stage_until(is_accepted, &accepting));
    return accepting.queued.status;
}

static bool is_idle(void *stage)
{
    return func_is_idle(((struct stage *)stage)->func);
}

static unsigned count_of(struct stage *stage, const char *table)
{
    struct arena arena = {0};
    struct slice request = arena_printf(
        &arena, "{\"TableName\":\"%s\",\"Select\":\"COUNT\",\"ConsistentRead\":true}", table);
    struct slice reply = stage_dynamo(stage, "Scan", request.data, &arena);
    const char *at = memmem(reply.data, reply.len, "\"Count\":", 8);
    unsigned count = at ? (unsigned)atoi(at + 8) : UINT32_MAX;
    arena_free(&arena);
    return count;
}

static unsigned waiting_calls(struct stage *stage)
{
    return count_of(stage, "quipu-invocations");
}

static bool has_no_calls(void *stage)
{
    return waiting_calls(stage) == 0;
}

static bool has_one_call(void *stage)
{
    return waiting_calls(stage) == 1;
}

static bool has_process(void *stage)
{
    return stage_processes(stage, "slow", NULL) > 0;
}

static void make_table(struct stage *stage)
{
    struct arena arena = {0};
    stage_dynamo(stage, "CreateTable",
                 "{\"TableName\":\"effects\",\"BillingMode\":\"PAY_PER_REQUEST\","
                 "\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}],"
                 "\"AttributeDefinitions\":[{\"AttributeName\":\"id\",\"AttributeType\":\"S\"}]}",
                 &arena);
    arena_free(&arena);
}

/* The guest answers its event: so the event is what it returns. */
#define PUT_ONCE                                                                                             \
    "{\"quipu\":{\"transact\":[{\"Update\":{\"TableName\":\"effects\",\"Key\":{\"id\":{\"S\":\"n\"}},"       \
    "\"UpdateExpression\":\"ADD n :one\",\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"}}}}]}}"

static void expect_effects(struct stage *stage, const char *number)
{
    struct arena arena = {0};
    struct slice reply = stage_dynamo(
        stage, "GetItem",
        "{\"TableName\":\"effects\",\"Key\":{\"id\":{\"S\":\"n\"}},\"ConsistentRead\":true}", &arena);
    struct slice wanted = *number
                              ? arena_printf(&arena, "{\"Item\":{\"id\":{\"S\":\"n\"},\"n\":{\"N\":\"%s\"}}}",
                                             number)
                              : SLICE("{}");
    CHECK_TEXT(reply, wanted.data);
    arena_free(&arena);
}

static void set_async(struct stage *stage, const char *function, const char *settings)
{
    struct arena arena = {0};
    struct slice reply;
    struct slice path = arena_printf(&arena, "/2019-09-25/functions/%s/event-invoke-config", function);
    int status = stage_rest(stage, "PUT", path.data, settings, &arena, &reply);
    if (status != 200) test_failed(__FILE__, __LINE__, "%d %.*s", status, SLICE_ARG(reply));
    arena_free(&arena);
}

/* ---- tests ---- */

TEST(queue_runs_a_call_and_applies_its_effects_once)
{
    struct stage stage;
    stage_open(&stage, &plain);
    make_table(&stage);
    stage_function(&stage, "f", "", "");
    for (int i = 0; i < 5; i++) CHECK_INT(accept_call(&stage, "f", SLICE(PUT_ONCE)), 200);
    CHECK(stage_until(is_idle, &stage));
    expect_effects(&stage, "5");
    CHECK_INT(waiting_calls(&stage), 0);
    CHECK_INT(stats_read(&stage.func->queue->stats.succeeded), 5);
    stage_close(&stage);
}

TEST(queue_takes_large_payloads_in_parts)
{
    struct stage stage;
    struct buf payload = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    buf_byte(&payload, '"');
    while (payload.len < LIMIT_ASYNC_EVENT_BYTES - 3)
        buf_text(&payload, "\xc3\xa4"); /* cuts fall into characters */
    buf_byte(&payload, '"');
    CHECK_INT(accept_call(&stage, "f", buf_view(&payload)), 200);
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(stats_read(&stage.func->queue->stats.succeeded), 1);
    CHECK_INT(waiting_calls(&stage), 0);
    while (payload.len <= LIMIT_ASYNC_EVENT_BYTES) buf_byte(&payload, ' ');
    CHECK_INT(accept_call(&stage, "f", buf_view(&payload)), 400);
    CHECK_INT(accept_call(&stage, "f", SLICE("\"\xff\"")), 400);
    buf_free(&payload);
    stage_close(&stage);
}

static bool has_retried(void *stage)
{
    return stats_read(&((struct stage *)stage)->func->queue->stats.retried) > 0 && is_idle(stage);
}

static bool has_failed(void *stage)
{
    return stats_read(&((struct stage *)stage)->func->queue->stats.failed) > 0 && is_idle(stage);
}

/* An asynchronous call of a function with these settings, which fails. */
static void call_failing(struct stage *stage, const char *settings)
{
    stage_function(stage, "f", "", "");
    set_async(stage, "f", settings);
    CHECK_INT(accept_call(stage, "f", SLICE("\"error\"")), 200);
}

TEST(queue_retries_with_pauses_and_tells_the_destination)
{
    struct stage stage;
    struct arena arena = {0};
    stage_open(&stage, &plain);
    call_failing(&stage, "{\"MaximumRetryAttempts\":1,\"DestinationConfig\":{\"OnFailure\":{"
                         "\"Destination\":\"arn:aws:sqs:us-east-1:000000000000:failures\"}}}");
    CHECK(stage_until(has_retried, &stage));
    CHECK_INT(waiting_calls(&stage), 1); /* it waits for a minute, which is not over */
    atomic_store(&stage.ahead_ms, QUEUE_RETRY_MS / 4);
    usleep(300000);
    CHECK_INT(waiting_calls(&stage), 1);
    atomic_store(&stage.ahead_ms, QUEUE_RETRY_MS + 1000);
    CHECK(stage_until(has_failed, &stage));
    CHECK_INT(waiting_calls(&stage), 0);
    struct slice letters = stage_dynamo(&stage, "Scan", "{\"TableName\":\"quipu-queues\"}", &arena);
    CHECK(slice_contains(letters, SLICE("\"queue\":{\"S\":\"failures\"}")));
    CHECK(slice_contains(letters, SLICE("{\\\"version\\\":\\\"1.0\\\",\\\"timestamp\\\":\\\"20")));
    CHECK(slice_contains(
        letters, SLICE("\\\"functionArn\\\":\\\"arn:aws:lambda:us-east-1:000000000000:function:f:$LATEST\\\","
                       "\\\"condition\\\":\\\"RetriesExhausted\\\",\\\"approximateInvokeCount\\\":2}")));
    CHECK(slice_contains(letters, SLICE("\\\"requestPayload\\\":\\\"error\\\"")));
    CHECK(slice_contains(
        letters, SLICE("\\\"responseContext\\\":{\\\"statusCode\\\":200,"
                       "\\\"executedVersion\\\":\\\"$LATEST\\\",\\\"functionError\\\":\\\"Unhandled\\\"}")));
    CHECK(slice_contains(letters, SLICE("\\\"responsePayload\\\":{\\\"errorType\\\":\\\"Mine\\\"")));
    arena_free(&arena);
    stage_close(&stage);
}

/* By a day: what was to be tried again in a minute is not put off until then. */
TEST(queue_goes_on_when_the_clock_is_set_back)
{
    struct stage stage;
    stage_open(&stage, &plain);
    atomic_store(&stage.ahead_ms, 86400000);
    call_failing(&stage, "{\"MaximumRetryAttempts\":1}");
    CHECK(stage_until(has_retried, &stage));
    atomic_store(&stage.ahead_ms, 0);
    CHECK(stage_until(has_failed, &stage));
    CHECK_INT(waiting_calls(&stage), 0);
    stage_close(&stage);
}

static void delete_table(struct stage *stage, const char *table)
{
    struct arena arena = {0};
    stage_dynamo(stage, "DeleteTable", arena_printf(&arena, "{\"TableName\":\"%s\"}", table).data, &arena);
    arena_free(&arena);
}

/* Whoever empties the queues by deleting their table loses what was in them, and no more. */
TEST(queue_makes_tables_anew_that_somebody_deletes)
{
    struct stage stage;
    struct arena arena = {0};
    struct slice reply;
    stage_open(&stage, &plain);
    call_failing(&stage, "{\"MaximumRetryAttempts\":0,\"DestinationConfig\":{\"OnFailure\":{"
                         "\"Destination\":\"arn:aws:sqs:us-east-1:000000000000:failures\"}}}");
    CHECK(stage_until(has_failed, &stage));
    CHECK_INT(count_of(&stage, "quipu-queues"), 1);
    delete_table(&stage, "quipu-queues");
    CHECK_INT(accept_call(&stage, "f", SLICE("\"error\"")), 200);
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(count_of(&stage, "quipu-queues"), 1);
    delete_table(&stage, "quipu-invocations");
    CHECK_INT(stage_rest(&stage, "POST", "/v1/queues/failures/redrive", "{}", &arena, &reply), 200);
    CHECK(slice_starts(reply, SLICE("{\"redriven\":1,")));
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(stats_read(&stage.func->queue->stats.failed), 3);
    CHECK_INT(count_of(&stage, "quipu-queues"), 1);
    arena_free(&arena);
    stage_close(&stage);
}

TEST(queue_tells_of_success_to_a_function)
{
    struct stage stage;
    struct arena arena = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    stage_function(&stage, "told", "", "");
    set_async(&stage, "f",
              "{\"DestinationConfig\":{\"OnSuccess\":{"
              "\"Destination\":\"arn:aws:lambda:us-east-1:000000000000:function:told\"}}}");
    CHECK_INT(accept_call(&stage, "f", SLICE("{\"a\":1}")), 200);
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(waiting_calls(&stage), 0);
    CHECK_INT(stats_read(&stage.func->queue->stats.succeeded), 2);
    stage_log(&stage, "told", "REPORT", &arena);
    arena_free(&arena);
    stage_close(&stage);
}

/* A condition that the function returned does not hold: that is its error, and nothing of it is applied. */
TEST(queue_takes_refused_effects_for_an_error)
{
    struct stage stage;
    stage_open(&stage, &plain);
    make_table(&stage);
    stage_function(&stage, "f", "", "");
    set_async(&stage, "f", "{\"MaximumRetryAttempts\":0}");
    CHECK_INT(
        accept_call(
            &stage, "f",
            SLICE("{\"quipu\":{\"transact\":[{\"Put\":{\"TableName\":\"effects\","
                  "\"Item\":{\"id\":{\"S\":\"n\"}}}},{\"ConditionCheck\":{\"TableName\":\"effects\","
                  "\"Key\":{\"id\":{\"S\":\"m\"}},\"ConditionExpression\":\"attribute_exists(id)\"}}]}}")),
        200);
    CHECK(stage_until(has_failed, &stage));
    expect_effects(&stage, "");
    CHECK_INT(accept_call(&stage, "f", SLICE("{\"quipu\":{\"transact\":[{\"Put\":{}}]}}")), 200);
    CHECK_INT(accept_call(&stage, "f", SLICE("{\"quipu\":1}")), 200);
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(stats_read(&stage.func->queue->stats.failed), 3);
    CHECK_INT(waiting_calls(&stage), 0);
    stage_close(&stage);
}

/* F4: what was accepted is run, also across a restart. */
TEST(queue_goes_on_after_a_restart)
{
    struct stage stage;
    stage_open(&stage, &plain);
    make_table(&stage);
    stage_function(&stage, "f", "", "\"Timeout\":900");
    CHECK_INT(accept_call(&stage, "f", SLICE("\"hang\"")), 200);
    usleep(200000);
    CHECK(!is_idle(&stage));
    stage_restart(&stage);
    CHECK_INT(waiting_calls(&stage), 1); /* the end of the server was no attempt of it */
    CHECK_INT(accept_call(&stage, "f", SLICE(PUT_ONCE)), 200);
    CHECK(stage_until(has_one_call, &stage));
    expect_effects(&stage, "1");
    stage_close(&stage);
}

TEST(queue_drops_what_is_too_old)
{
    struct stage stage;
    stage_open(&stage, &plain);
    call_failing(&stage, "{\"MaximumEventAgeInSeconds\":300,\"MaximumRetryAttempts\":2}");
    CHECK(stage_until(has_retried, &stage));
    atomic_store(&stage.ahead_ms, 330000);
    CHECK(stage_until(has_failed, &stage));
    CHECK_INT(waiting_calls(&stage), 0);
    CHECK_INT(stats_read(&stage.func->queue->stats.retried), 1);
    stage_close(&stage);
}

TEST(queue_makes_no_attempt_that_would_come_too_late)
{
    struct stage stage;
    stage_open(&stage, &plain);
    call_failing(&stage, "{\"MaximumEventAgeInSeconds\":60,\"MaximumRetryAttempts\":2}");
    CHECK(stage_until(has_failed, &stage));
    CHECK_INT(waiting_calls(&stage), 0);
    CHECK_INT(stats_read(&stage.func->queue->stats.retried), 0);
    stage_close(&stage);
}

TEST(queue_waits_for_a_process_without_counting_it)
{
    struct stage stage;
    struct arena arena = {0};
    struct slice reply;
    stage_open(&stage, &plain);
    make_table(&stage);
    stage_function(&stage, "f", "", "");
    CHECK_INT(stage_rest(&stage, "PUT", "/2017-10-31/functions/f/concurrency",
                         "{\"ReservedConcurrentExecutions\":0}", &arena, &reply),
              200);
    CHECK_INT(accept_call(&stage, "f", SLICE(PUT_ONCE)), 200);
    CHECK(stage_until(is_idle, &stage)); /* it waits, and is not due */
    CHECK_INT(waiting_calls(&stage), 1);
    CHECK(stats_read(&stage.func->queue->stats.throttled) > 0);
    CHECK_INT(stage_rest(&stage, "DELETE", "/2017-10-31/functions/f/concurrency", "", &arena, &reply), 204);
    atomic_store(&stage.ahead_ms, 20000);
    CHECK(stage_until(has_no_calls, &stage));
    expect_effects(&stage, "1");
    arena_free(&arena);
    stage_close(&stage);
}

TEST(queue_drops_calls_of_nobody)
{
    struct stage stage;
    stage_open(&stage, &plain);
    CHECK_INT(accept_call(&stage, "nobody", SLICE("1")), 200);
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(waiting_calls(&stage), 0);
    stage_close(&stage);
}

/* ---- as members of somebody's transaction ---- */

static int transact(struct stage *stage, const struct buf *members, const char *more)
{
    struct buf request = {0}, reply = {0};
    buf_text(&request, "{\"TransactItems\":[");
    buf_slice(&request, buf_view(members));
    buf_slice(&request, slice_of(more));
    buf_text(&request, "]}");
    int status = dynamo_call(stage->dynamo, SLICE("TransactWriteItems"), buf_view(&request), &reply);
    buf_free(&request);
    buf_free(&reply);
    return status;
}

static unsigned put_call(struct stage *stage, const char *function, const char *cause, const char *id,
                         struct buf *members)
{
    const struct func_call call = {.function = slice_of(function),
                                   .payload = SLICE(PUT_ONCE),
                                   .cause = slice_of(cause),
                                   .id = slice_of(id)};
    return func_queue_put(stage->func, &call, members);
}

TEST(queue_takes_calls_of_others_transactions)
{
    struct stage stage;
    struct buf members = {0};
    stage_open(&stage, &plain);
    make_table(&stage);
    stage_function(&stage, "f", "", "");
    CHECK_INT(put_call(&stage, "f", "a:1", "call-1", &members), 1);
    func_queue_wake(stage.func); /* of somebody else: this one is not there yet */
    CHECK(stage_until(is_idle, &stage));
    expect_effects(&stage, "");
    CHECK_INT(transact(&stage, &members, ""), 200);
    CHECK_INT(transact(&stage, &members, ""), 200); /* put twice, it is the same call */
    CHECK_INT(waiting_calls(&stage), 1);
    func_queue_wake(stage.func);
    CHECK(stage_until(is_idle, &stage));
    expect_effects(&stage, "1");
    CHECK_INT(waiting_calls(&stage), 0);
    members.len = 0;
    CHECK_INT(put_call(&stage, "f", "", "call-2", &members), 1);
    CHECK_INT(transact(&stage, &members,
                       ",{\"ConditionCheck\":{\"TableName\":\"effects\",\"Key\":{\"id\":{\"S\":\"m\"}},"
                       "\"ConditionExpression\":\"attribute_exists(id)\"}}"),
              400);
    func_queue_wake(stage.func);
    CHECK(stage_until(is_idle, &stage));
    expect_effects(&stage, "1");
    buf_free(&members);
    stage_close(&stage);
}

/* Q2: a call that was changed under the hands of who runs it is not his any more. */
TEST(queue_settles_nothing_behind_a_moved_fence)
{
    struct stage stage;
    struct arena arena = {0};
    struct buf members = {0};
    stage_open(&stage, &plain);
    make_table(&stage);
    stage_script(&stage, "slow",
                 "#!/bin/sh\nuntil [ -e \"$LAMBDA_TASK_ROOT/../gate\" ]; do sleep 0.01; done\n"
                 "exec \"$LAMBDA_TASK_ROOT/guest\"\n",
                 "");
    char folder[128], guest[160];
    stage_folder(&stage, "slow", folder, sizeof folder);
    snprintf(guest, sizeof guest, "%s/guest", folder);
    stage_put_guest(guest);
    CHECK_INT(put_call(&stage, "slow", "", "call-1", &members), 1);
    CHECK_INT(transact(&stage, &members, ""), 200);
    func_queue_wake(stage.func);
    CHECK(stage_until(has_process, &stage));
    stage_dynamo(
        &stage, "UpdateItem",
        "{\"TableName\":\"quipu-invocations\",\"Key\":{\"id\":{\"S\":\"call-1\"},\"part\":{\"N\":\"0\"}},"
        "\"UpdateExpression\":\"SET fence = :f\",\"ExpressionAttributeValues\":{\":f\":{\"N\":\"7\"}}}",
        &arena);
    stage_open_gate(&stage);
    CHECK(stage_until(is_idle, &stage));
    expect_effects(&stage, "");
    CHECK_INT(waiting_calls(&stage), 1);
    buf_free(&members);
    arena_free(&arena);
    stage_close(&stage);
}

/* ---- several servers on one table ---- */

static const char dead_call[] =
    "{\"TableName\":\"quipu-invocations\",\"Item\":{\"id\":{\"S\":\"of-the-dead\"},\"part\":{\"N\":\"0\"},"
    "\"function\":{\"S\":\"f\"},\"payload\":{\"S\":%.*s},\"accepted\":{\"N\":\"%lld\"},"
    "\"due\":{\"N\":\"%lld\"},\"attempts\":{\"N\":\"0\"},\"parts\":{\"N\":\"1\"},\"fence\":{\"N\":\"3\"},"
    "\"owner\":{\"S\":\"dead\"},\"until\":{\"N\":\"%lld\"}}}";

/* Q4: what another holds is left alone until its lease is over, then taken. */
TEST(queue_takes_over_from_the_dead)
{
    struct stage stage;
    struct arena arena = {0};
    struct buf payload = {0};
    stage_open(&stage, &(struct stage_options){.shared = true});
    make_table(&stage);
    stage_function(&stage, "f", "", "");
    CHECK_INT(accept_call(&stage, "f", SLICE("1")), 200); /* makes the table */
    json_put_string(&payload, SLICE(PUT_ONCE));
    long long now_ms = (long long)clock_now_ms(&stage.clock);
    struct slice request = arena_printf(&arena, dead_call, SLICE_ARG(buf_view(&payload)), now_ms, now_ms,
                                        now_ms + 60000);
    stage_dynamo(&stage, "PutItem", request.data, &arena);
    usleep((QUEUE_SCAN_MS + 500) * 1000); /* one look at least */
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(waiting_calls(&stage), 1);
    atomic_store(&stage.ahead_ms, 61000);
    CHECK(stage_until(has_no_calls, &stage));
    expect_effects(&stage, "1");
    buf_free(&payload);
    arena_free(&arena);
    stage_close(&stage);
}

/* Q4: its owner has renewed it since it was read, by the same fence: it is not taken away. */
TEST(queue_takes_nothing_that_was_renewed)
{
    struct stage stage;
    struct arena arena = {0};
    struct buf reply = {0};
    stage_open(&stage, &(struct stage_options){.shared = true});
    stage_function(&stage, "f", "", "");
    CHECK_INT(accept_call(&stage, "f", SLICE("1")), 200); /* makes the table */
    long long now_ms = (long long)clock_now_ms(&stage.clock), later_ms = now_ms + 3600000;
    struct slice put = arena_printf(&arena, dead_call, 4, "\"{}\"", now_ms, later_ms, now_ms + 60000);
    stage_dynamo(&stage, "PutItem", put.data, &arena);
    struct async_call call = {
        .queue = stage.func->queue, .id = SLICE("of-the-dead"), .arena = &arena, .fence = 3};
    CHECK_INT(dynamo_call(stage.dynamo, SLICE("UpdateItem"), call_claim(&call, now_ms + 60000), &reply), 400);
    CHECK(slice_contains(buf_view(&reply), SLICE("ConditionalCheckFailed")));
    reply.len = 0;
    CHECK_INT(dynamo_call(stage.dynamo, SLICE("UpdateItem"), call_claim(&call, now_ms + 60001), &reply), 200);
    struct slice item = stage_dynamo(&stage, "GetItem",
                                     "{\"TableName\":\"quipu-invocations\",\"ConsistentRead\":true,"
                                     "\"Key\":{\"id\":{\"S\":\"of-the-dead\"},\"part\":{\"N\":\"0\"}}}",
                                     &arena);
    CHECK(slice_contains(item, SLICE("\"fence\":{\"N\":\"4\"}")));
    buf_free(&reply);
    arena_free(&arena);
    stage_close(&stage);
}

TEST(queue_is_shared_by_two_servers)
{
    enum { CALLS = 20 };
    struct stage first, second;
    stage_open(&first, &(struct stage_options){.shared = true});
    stage_open(&second, &(struct stage_options){.shared = true, .dynamo = first.dynamo});
    make_table(&first);
    stage_function(&first, "f", "", "");
    for (int i = 0; i < CALLS; i++)
        CHECK_INT(accept_call(i % 2 ? &first : &second, "f", SLICE(PUT_ONCE)), 200);
    CHECK(stage_until(has_no_calls, &first));
    expect_effects(&first, "20");
    stage_close(&second);
    stage_close(&first);
}
