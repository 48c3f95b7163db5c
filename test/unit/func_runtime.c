/* The Runtime API: events that nobody takes, answers that are too late, too large or of nobody, causes. */
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "func/pool.h"
#include "unit/func_stage.h"

static const struct stage_options plain;

TEST(runtime_answers_what_is_out_of_place)
{
    struct stage stage;
    struct arena arena = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    /* an unknown id, an init error after the start, ping, logs, an extension, restore */
    STAGE_EXPECT(&stage, "f", "\"wrong\"", INVOCATION_ANSWERED, "400 403 200 202 200 404");
    stage_log(&stage, "f", "then 202 400\n", &arena); /* and a second answer */
    arena_free(&arena);
    stage_close(&stage);
}

TEST(runtime_takes_the_largest_answer_and_no_larger)
{
    struct stage stage;
    struct outcome outcome = {0};
    struct arena arena = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "\"Timeout\":60");
    outcome_call(&outcome, &stage, "f", "\"large 6291556\"");
    CHECK_INT(outcome.invocation.end, INVOCATION_ANSWERED);
    CHECK_INT(outcome.invocation.reply.len, LIMIT_FUNCTION_REPLY_BYTES);
    stage_log(&stage, "f", "status 202\n", &arena);
    stage_rest_process(&stage, "f");
    outcome_free(&outcome);
    STAGE_EXPECT(
        &stage, "f", "\"large 6291557\"", INVOCATION_FAILED,
        "{\"errorType\":\"Function.ResponseSizeTooLarge\",\"errorMessage\":\"Response payload size (6291557 "
        "bytes) exceeded maximum allowed payload size (6291556 bytes).\"}");
    stage_log(&stage, "f", "status 413\n", &arena);
    stage_rest_process(&stage, "f");
    STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1"); /* by the same process */
    CHECK_INT(stats_read(&stage.func->pool->stats.starts), 1);
    arena_free(&arena);
    stage_close(&stage);
}

/* I2: what was sent to a client that left is sent again. */
TEST(runtime_loses_no_event_that_was_sent_to_nobody)
{
    struct stage stage;
    struct outcome outcomes[3] = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "leave first", "\"Timeout\":30");
    for (int i = 0; i < 3; i++) outcome_begin(&outcomes[i], &stage, "f", "\"pid\"");
    for (int i = 0; i < 3; i++) {
        outcome_wait(&outcomes[i]);
        CHECK_INT(outcomes[i].invocation.end, INVOCATION_ANSWERED);
        outcome_free(&outcomes[i]);
    }
    stage_close(&stage);
}

/* I2: a request whose client has left takes no event with it. */
TEST(runtime_loses_no_event_to_a_client_that_left)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "\"Timeout\":30");
    STAGE_EXPECT(&stage, "f", "\"leave\"", INVOCATION_ANSWERED, "4");
    stage_rest_process(&stage, "f"); /* so it seems: it has asked, and is about to leave */
    usleep(100000);
    STAGE_EXPECT(&stage, "f", "5", INVOCATION_ANSWERED, "5");
    stage_close(&stage);
}

/* I2: who asks again without an answer is given the same event. */
TEST(runtime_gives_an_unanswered_event_again)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    STAGE_EXPECT(&stage, "f", "\"again\"", INVOCATION_ANSWERED, "same \"again\"");
    stage_close(&stage);
}

TEST(runtime_starts_anew_after_a_process_that_ends_between_events)
{
    struct stage stage;
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    for (int i = 0; i < 5; i++) STAGE_EXPECT(&stage, "f", "\"answer and exit\"", INVOCATION_ANSWERED, "3");
    CHECK_INT(stats_read(&stage.func->pool->stats.failed_starts), 0);
    stage_close(&stage);
}

TEST(runtime_hands_requests_on_with_their_cause)
{
    struct stage stage;
    struct outcome caused = {.invocation = {.cause = SLICE("index:2,f:1")}};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    STAGE_EXPECT(&stage, "f", "\"server\"", INVOCATION_ANSWERED, "f:1");
    outcome_call(&caused, &stage, "f", "\"server\"");
    CHECK_TEXT(buf_view(&caused.invocation.reply), "index:2,f:2");
    CHECK_TEXT(slice_of(stage.forwarded_path), "/elsewhere");
    outcome_free(&caused);
    stage_close(&stage);
}

/* ---- several events in one process ---- */

/* The function as the registry has it, but with a concurrency, which `provided` has not by itself. */
static struct function *concurrent(struct stage *stage, const char *name, uint32_t concurrency)
{
    struct function *found = registry_function(stage->func, slice_of(name), SLICE(""), 0);
    struct arena arena = {0};
    struct function *copy = arena_zero(&arena, sizeof *copy);
    memcpy(copy, found, offsetof(struct function, arena));
    copy->concurrency = concurrency;
    copy->name = arena_copy(&arena, found->name);
    copy->version = arena_copy(&arena, found->version);
    copy->arn = arena_copy(&arena, found->arn);
    copy->runtime = arena_copy(&arena, found->runtime);
    copy->handler = arena_copy(&arena, found->handler);
    copy->folder = arena_copy(&arena, found->folder);
    copy->variables = arena_array(&arena, struct function_variable, found->variable_count);
    for (uint32_t i = 0; i < found->variable_count; i++)
        copy->variables[i] = (struct function_variable){arena_copy(&arena, found->variables[i].name),
                                                        arena_copy(&arena, found->variables[i].value)};
    copy->arena = arena;
    atomic_store(&copy->references, 1);
    function_release(found);
    return copy;
}

static void begin(struct outcome *outcome, struct stage *stage, struct function *function,
                  const char *payload)
{
    /* as outcome_begin, for a function that the registry does not know so */
    outcome_prepare(outcome, "f", payload);
    pool_invoke(stage->func->pool, function, &outcome->invocation);
}

TEST(runtime_runs_several_events_in_one_process)
{
    enum { EVENTS = 8 };
    struct stage stage;
    struct outcome outcomes[EVENTS] = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "\"Timeout\":30");
    struct function *function = concurrent(&stage, "f", EVENTS);
    for (int i = 0; i < EVENTS; i++) begin(&outcomes[i], &stage, function, "\"sleep 300\"");
    for (int i = 0; i < EVENTS; i++) {
        outcome_wait(&outcomes[i]);
        CHECK_INT(outcomes[i].invocation.end, INVOCATION_ANSWERED);
        outcome_free(&outcomes[i]);
    }
    /* one, or another where the first was slow to start */
    CHECK(stats_read(&stage.func->pool->stats.starts) < EVENTS / 2);
    function_release(function);
    stage_close(&stage);
}

/* I4: one that takes too long does not take the others with it; the process ends after them. */
TEST(runtime_lets_others_finish_beside_a_timeout)
{
    struct stage stage;
    struct arena arena = {0};
    struct outcome slow = {0}, fine = {0}, late = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "\"Timeout\":6");
    struct function *function = concurrent(&stage, "f", 4);
    begin(&slow, &stage, function, "\"sleep 900000\"");
    usleep(4000000);
    begin(&fine, &stage, function, stage_gated(&stage, &arena)); /* it has so much longer */
    outcome_wait(&slow);
    stage_open_gate(&stage);
    CHECK_INT(slow.invocation.end, INVOCATION_FAILED);
    CHECK(slice_contains(buf_view(&slow.invocation.reply), SLICE("Sandbox.Timedout")));
    begin(&late, &stage, function, "\"pid\""); /* goes to a new process */
    outcome_wait(&fine);
    outcome_wait(&late);
    CHECK_INT(fine.invocation.end, INVOCATION_ANSWERED);
    CHECK_INT(late.invocation.end, INVOCATION_ANSWERED);
    CHECK(stats_read(&stage.func->pool->stats.starts) >= 2);
    outcome_free(&slow);
    outcome_free(&fine);
    outcome_free(&late);
    arena_free(&arena);
    function_release(function);
    stage_close(&stage);
}

/* ---- the log ---- */

TEST(runtime_writes_start_end_and_report)
{
    struct stage stage;
    struct outcome outcome = {.invocation = {.wants_log = true}};
    struct arena arena = {0};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    outcome_call(&outcome, &stage, "f", "\"print hello\"");
    struct slice log = buf_view(&outcome.invocation.log);
    struct slice start = arena_printf(&arena,
                                      "START RequestId: %s Version: $LATEST\nhello\npart\nEND RequestId: %s\n"
                                      "REPORT RequestId: %s\tDuration: ",
                                      outcome.invocation.request_id, outcome.invocation.request_id,
                                      outcome.invocation.request_id);
    if (!slice_starts(log, start))
        test_failed(__FILE__, __LINE__, "\n%.*s\nis not\n%.*s", SLICE_ARG(log), SLICE_ARG(start));
    CHECK(slice_contains(log, SLICE(" ms\tBilled Duration: ")));
    CHECK(slice_contains(log, SLICE(" ms\tMemory Size: 1024 MB\tMax Memory Used: ")));
    CHECK(slice_contains(log, SLICE(" MB\tInit Duration: ")));
    CHECK(log.data[log.len - 1] == '\n');
    struct slice kept = stage_log(&stage, "f", "REPORT RequestId: ", &arena);
    CHECK(slice_equal(kept, log));
    outcome_free(&outcome);
    arena_free(&arena);
    stage_close(&stage);
}

/* Also to those who waited for it: without the reason one searches for long. */
TEST(runtime_logs_why_a_call_failed)
{
    struct stage stage;
    struct arena arena = {0};
    struct outcome crash = {.invocation = {.wants_log = true}}, start = {.invocation = {.wants_log = true}};
    stage_open(&stage, &plain);
    stage_function(&stage, "f", "", "");
    stage_function(&stage, "dies", "print and exit", "");
    outcome_call(&crash, &stage, "f", "\"exit 3\"");
    const char *reason = "START RequestId: %s Version: $LATEST\n"
                         "RequestId: %s Error: Runtime exited with error: exit status %d\n"
                         "Runtime.ExitError\nEND RequestId: %s\nREPORT RequestId: ";
    struct slice log = buf_view(&crash.invocation.log);
    const char *id = crash.invocation.request_id;
    CHECK(slice_starts(log, arena_printf(&arena, reason, id, id, 3, id)));
    CHECK(slice_contains(log, SLICE("\tStatus: error\tError Type: Runtime.ExitError\t\n")));
    outcome_call(&start, &stage, "dies", "1");
    log = buf_view(&start.invocation.log);
    id = start.invocation.request_id;
    CHECK(slice_starts(log, SLICE("last words\nSTART RequestId: ")));
    CHECK(slice_contains(log, arena_printf(&arena, reason, id, id, 3, id)));
    CHECK(slice_equal(stage_log(&stage, "dies", "REPORT RequestId: ", &arena), log));
    outcome_free(&crash);
    outcome_free(&start);
    arena_free(&arena);
    stage_close(&stage);
}

TEST(runtime_logs_the_last_words_of_what_failed)
{
    struct stage stage;
    struct arena arena = {0};
    struct outcome outcome = {.invocation = {.wants_log = true}};
    stage_open(&stage, &plain);
    stage_function(&stage, "dies", "print and exit", "");
    stage_function(&stage, "late", "", "\"Timeout\":1");
    struct outcome dying = {0};
    outcome_call(&dying, &stage, "dies", "1");
    stage_log(&stage, "dies", "last words\n", &arena);
    outcome_call(&outcome, &stage, "late", "\"hang\"");
    struct slice log = buf_view(&outcome.invocation.log);
    CHECK(slice_contains(log, SLICE("\tStatus: timeout\t\n")));
    CHECK(
        slice_contains(log, arena_printf(&arena, "Z %s Task timed out after 1.00 seconds\n\nEND RequestId: ",
                                         outcome.invocation.request_id)));
    outcome_free(&outcome);
    outcome_free(&dying);
    arena_free(&arena);
    stage_close(&stage);
}

/* Output without end hurts nobody else: the log stays bounded, others are served. */
TEST(runtime_bears_output_without_end)
{
    struct stage stage;
    struct outcome flood = {.invocation = {.wants_log = true}};
    stage_open(&stage, &plain);
    stage_script(&stage, "flood", "#!/bin/sh\nexec yes 'an endless line'\n", "\"Timeout\":1");
    stage_function(&stage, "f", "", "");
    outcome_begin(&flood, &stage, "flood", "1");
    for (int i = 0; i < 20; i++) STAGE_EXPECT(&stage, "f", "1", INVOCATION_ANSWERED, "1");
    stage_close(&stage);
    outcome_wait(&flood);
    /* Refused when the stage closed, or failed before when a slow machine took longer than its time. */
    CHECK(flood.invocation.end == INVOCATION_REFUSED || flood.invocation.end == INVOCATION_FAILED);
    outcome_free(&flood);
}
