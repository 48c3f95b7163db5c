/* Asynchronous calls of what is no function: patterns and URLs with a secret; and where they end when they
 * fail. */
#include <unistd.h>

#include "base/json.h"
#include "base/stats.h"
#include "func/queue.h"
#include "unit/func_stage.h"

static const struct stage_options plain;

#define ASIDE "arn:aws:sqs:us-east-1:000000000000:aside"

/* A pattern that answers as it is told to, and what it was called with last. */
struct answering {
    _Atomic bool is_fine, is_final;
    _Atomic unsigned calls;
    char call[100], body[100], event[200], cause[100];
};

static void keep_text(char *to, size_t room, struct slice text)
{
    snprintf(to, room, "%.*s", SLICE_ARG(text));
}

static bool answer(void *context, struct slice call, struct slice body, struct slice event,
                   struct slice cause, struct arena *arena, struct buf *reply, bool *is_final)
{
    struct answering *answering = context;
    (void)arena;
    keep_text(answering->call, sizeof answering->call, call);
    keep_text(answering->body, sizeof answering->body, body);
    keep_text(answering->event, sizeof answering->event, event);
    keep_text(answering->cause, sizeof answering->cause, cause);
    answering->calls++;
    if (is_final) *is_final = answering->is_final;
    if (answering->is_fine)
        buf_text(reply, "{\"called\":1}");
    else
        buf_text(reply, "it has no such task");
    return answering->is_fine;
}

static void open_answering(struct stage *stage, struct answering *answering, bool is_fine, bool is_final)
{
    *answering = (struct answering){.is_fine = is_fine, .is_final = is_final};
    stage_open(stage, &plain);
    func_set_pattern(stage->func, answer, answering);
}

static void put_call(struct stage *stage, const char *function, const char *id)
{
    struct buf request = {0}, reply = {0};
    struct func_call call = {.function = slice_of(function),
                             .payload = SLICE("{\"detail\":{}}"),
                             .cause = SLICE("a:1"),
                             .id = slice_of(id),
                             .on_failure = SLICE(ASIDE)};
    buf_text(&request, "{\"TransactItems\":[");
    CHECK_INT(func_queue_put(stage->func, &call, &request), 1);
    buf_text(&request, "]}");
    CHECK_INT(dynamo_call(stage->dynamo, SLICE("TransactWriteItems"), buf_view(&request), &reply), 200);
    func_queue_wake(stage->func);
    buf_free(&request);
    buf_free(&reply);
}

static bool is_idle(void *stage)
{
    return func_is_idle(((struct stage *)stage)->func);
}

/* What was put aside, as text; empty: nothing was. */
static struct slice aside(struct stage *stage, struct arena *arena)
{
    struct buf reply = {0};
    int status = dynamo_call(stage->dynamo, SLICE("Scan"), SLICE("{\"TableName\":\"quipu-queues\"}"), &reply);
    struct slice text = status == 200 ? arena_copy(arena, buf_view(&reply)) : SLICE("");
    buf_free(&reply);
    return text;
}

TEST(queue_calls_patterns)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, true, false);
    put_call(&stage, "{\"call\":\"POST /v1/counters/x\",\"body\":{\"by\":2}}", "e1");
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(answering.calls, 1);
    CHECK_TEXT(slice_of(answering.call), "POST /v1/counters/x");
    CHECK_TEXT(slice_of(answering.body), "{\"by\":2}");
    CHECK_TEXT(slice_of(answering.event), "{\"detail\":{}}");
    CHECK_TEXT(slice_of(answering.cause), "a:1," CAUSE_REACTION ":1");
    CHECK_INT(stats_read(&stage.func->queue->stats.succeeded), 1);
    CHECK_TEXT(aside(&stage, &arena), "");
    arena_free(&arena);
    stage_close(&stage);
}

TEST(queue_puts_aside_what_a_pattern_refuses_for_good)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, false, true);
    put_call(&stage, "{\"call\":\"POST /v1/counters/x\"}", "e1");
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(answering.calls, 1);
    struct slice said = aside(&stage, &arena);
    CHECK(slice_contains(said, SLICE("\"queue\":{\"S\":\"aside\"}")));
    CHECK(slice_contains(said, SLICE("it has no such task")));
    CHECK(slice_contains(said, SLICE("POST /v1/counters/x")));
    CHECK_INT(stats_read(&stage.func->queue->stats.failed), 1);
    arena_free(&arena);
    stage_close(&stage);
}

static bool was_called_twice(void *answering)
{
    return ((struct answering *)answering)->calls == 2;
}

TEST(queue_tries_patterns_that_are_busy_again)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, false, false);
    put_call(&stage, "{\"call\":\"POST /v1/counters/x\"}", "e1");
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(answering.calls, 1);
    CHECK_TEXT(aside(&stage, &arena), "");
    answering.is_fine = true;
    atomic_store(&stage.ahead_ms, QUEUE_RETRY_MS + 1000);
    CHECK(stage_until(was_called_twice, &answering));
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(answering.calls, 2);
    CHECK_TEXT(aside(&stage, &arena), "");
    arena_free(&arena);
    stage_close(&stage);
}

TEST(queue_puts_aside_calls_of_nobody_and_hides_secrets)
{
    struct stage stage;
    struct arena arena = {0};
    stage_open(&stage, &plain);
    put_call(&stage, "nobody", "e1");
    put_call(&stage, "{\"neither\":1}", "e2");
    CHECK(stage_until(is_idle, &stage));
    struct slice said = aside(&stage, &arena);
    CHECK(slice_contains(said, SLICE("FunctionNotFound")));
    CHECK(slice_contains(said, SLICE("\"id\":{\"S\":\"e1-told\"}")));
    CHECK(slice_contains(said, SLICE("\"id\":{\"S\":\"e2-told\"}")));
    CHECK_TEXT(target_shown(SLICE("{\"url\":\"http://h/\",\"secret\":\"s\"}"), &arena), "http://h/");
    CHECK_TEXT(target_shown(SLICE("nobody"), &arena), "nobody");
    arena_free(&arena);
    stage_close(&stage);
}
