/* Tumbling windows: their events, their states, their ends. */
#include "unit/trigger_stage.h"

#include <stdlib.h>

#include "base/fail.h"

/* Counts in the state how many records it has seen in the window; the last call writes the sum down. */
static void count_up(struct stage *stage, struct invocation *invocation)
{
    const char *at = memmem(invocation->payload.data, invocation->payload.len, "\"state\":{\"n\":", 13);
    unsigned long seen = at ? strtoul(at + 13, NULL, 10) : 0;
    const char *start = memmem(invocation->payload.data, invocation->payload.len, "\"start\":\"", 9);
    seen += count_text(invocation->payload, "\"eventID\"");
    if (count_text(invocation->payload, "\"isFinalInvokeForWindow\":true"))
        stage_answer(invocation,
                     "{\"quipu\":{\"transact\":[{\"Put\":{\"TableName\":\"sums\","
                     "\"Item\":{\"id\":{\"S\":\"%.20s\"},\"sum\":{\"N\":\"%lu\"}},"
                     "\"ConditionExpression\":\"attribute_not_exists(id)\"}}]}}",
                     start + 9, seen);
    else
        stage_answer(invocation, "{\"state\":{\"n\":%lu}}", seen);
    (void)stage;
}

static struct mapping *window_mapping(struct stage *stage)
{
    struct mapping *mapping = stage_mapping(stage);
    mapping->tumbling_ms = 10000;
    mapping->batch_size = 2;
    return mapping;
}

static void open_windows(struct stage *stage)
{
    stage_open_things(stage, 1);
    stage_make_table(stage, "sums", "id");
    stage->function = count_up;
    stage->now_ms = 1794716010000; /* a window begins */
}

static void check_sum(struct stage *stage, const char *start, const char *sum)
{
    static const char *const names[] = {"Item"};
    struct slice item;
    stage_call(stage, "GetItem", "{\"TableName\":\"sums\",\"Key\":{\"id\":{\"S\":\"%s\"}}}", start);
    raw_members(&stage->arena, buf_view(&stage->reply), names, &item, 1);
    char expected[100];
    snprintf(expected, sizeof expected, "{\"id\":{\"S\":\"%s\"},\"sum\":{\"N\":\"%s\"}}", start, sum);
    CHECK_TEXT(item, sum ? expected : "");
}

static unsigned count_states(struct stage *stage)
{
    stage_call(stage, "Scan", "{\"TableName\":\"quipu-positions\"}");
    return count_text(buf_view(&stage->reply), "\"shard\":{\"S\":\"state/");
}

static unsigned count_windows(struct stage *stage)
{
    stage_call(stage, "Scan", "{\"TableName\":\"quipu-positions\"}");
    return count_text(buf_view(&stage->reply), "\"window0\":{\"M\":{");
}

TEST(a_window_is_summed_up_when_its_time_has_passed)
{
    struct stage stage;
    open_windows(&stage);
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, window_mapping(&stage));
    for (int i = 0; i < 5; i++) stage_put(&stage, "a", i, "x");
    stage_pass(&stage, 100);
    CHECK_INT(stage.invocations, 3);
    CHECK_INT(count_windows(&stage), 1); /* a short state is in the position itself */
    CHECK_INT(count_states(&stage), 0);
    stage_pass(&stage, 9000);
    CHECK_INT(stage.invocations, 3);
    stage_put(&stage, "a", 9, "x");
    stage_pass(&stage, 5000);
    CHECK_INT(stage.invocations, 5);
    check_sum(&stage, "2026-11-15T04:13:30Z", "6");
    CHECK_INT(count_windows(&stage), 0);
    stage_close(&stage);
}

TEST(an_event_of_a_window_has_lambdas_form)
{
    struct stage stage;
    open_windows(&stage);
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, window_mapping(&stage));
    stage_put(&stage, "a", 1, "x");
    stage_pass(&stage, 100);
    stage_put(&stage, "a", 2, "x");
    stage_pass(&stage, 20000);
    struct slice payloads = buf_view(&stage.payloads);
    CHECK_INT(count_text(payloads, "],\"window\":{\"start\":\"2026-11-15T04:13:30Z\","
                                   "\"end\":\"2026-11-15T04:13:40Z\"},\"state\":{},\"shardId\":\"shardId-"),
              1);
    CHECK_INT(count_text(payloads, "\"2026-11-15T04:13:40Z\"},\"state\":{\"n\":1},\"shardId\":\"shardId-"),
              1);
    CHECK_INT(count_text(payloads, "\"isFinalInvokeForWindow\":false,\"isWindowTerminatedEarly\":false}"), 2);
    CHECK_INT(count_text(payloads, "{\"Records\":[],\"window\":{\"start\":\"2026-11-15T04:13:30Z\","
                                   "\"end\":\"2026-11-15T04:13:40Z\"},\"state\":{\"n\":2},\"shardId\":\"shardId-"),
              1);
    CHECK_INT(count_text(payloads, "\"isFinalInvokeForWindow\":true,\"isWindowTerminatedEarly\":false}"), 1);
    CHECK_INT(count_text(payloads,
                         "\"eventSourceARN\":\"arn:aws:dynamodb:us-east-1:000000000000:table/things/"
                         "stream/2026-11-15T04:13:25.340\",\"isFinal"),
              3);
    stage_close(&stage);
}

TEST(a_record_of_the_next_window_ends_the_one_before)
{
    struct stage stage;
    open_windows(&stage);
    for (int i = 0; i < 3; i++) stage_put(&stage, "a", i, "x");
    stage.now_ms += 10000;
    for (int i = 0; i < 2; i++) stage_put(&stage, "b", i, "x");
    stage.now_ms += 1000; /* the second window is still open */
    stage_set(stage_start(&stage, 0), window_mapping(&stage));
    stage_pass(&stage, 1000);
    check_sum(&stage, "2026-11-15T04:13:30Z", "3");
    check_sum(&stage, "2026-11-15T04:13:40Z", NULL);
    stage_pass(&stage, 10000);
    check_sum(&stage, "2026-11-15T04:13:40Z", "2");
    stage_close(&stage);
}

TEST(the_state_of_a_window_survives_a_restart)
{
    struct stage stage;
    open_windows(&stage);
    stage_set(stage_start(&stage, 0), window_mapping(&stage));
    stage_put(&stage, "a", 1, "x");
    stage_pass(&stage, 100);
    stage_crash(&stage, &stage.actors[0]);
    stage_put(&stage, "a", 2, "x");
    stage_set(stage_start(&stage, 0), window_mapping(&stage));
    stage_pass(&stage, 15000);
    check_sum(&stage, "2026-11-15T04:13:30Z", "2");
    stage_close(&stage);
}

TEST(a_shard_that_ends_ends_its_window)
{
    struct stage stage;
    open_windows(&stage);
    stage_set(stage_start(&stage, 0), window_mapping(&stage));
    stage_put(&stage, "a", 1, "x");
    stage_pass(&stage, 100);
    stage_split(&stage);
    stage.now_ms += 10000; /* the children's records are of another window */
    stage_put(&stage, "a", 2, "x");
    stage_pass(&stage, 100);
    check_sum(&stage, "2026-11-15T04:13:30Z", "1");
    stage_pass(&stage, 15000);
    check_sum(&stage, "2026-11-15T04:13:40Z", "1");
    stage_close(&stage);
}

/* ---- large and missing states ---- */

struct large {
    size_t bytes;
    unsigned early, last;
};

static void grow(struct stage *stage, struct invocation *invocation)
{
    struct large *large = stage->context;
    bool is_last = count_text(invocation->payload, "\"isFinalInvokeForWindow\":true") > 0;
    large->last += is_last;
    large->early += count_text(invocation->payload, "\"isWindowTerminatedEarly\":true");
    if (is_last) return;
    const char *at = memmem(invocation->payload.data, invocation->payload.len, "\"state\":\"", 9);
    size_t former = at ? (size_t)(strchr(at + 9, '"') - (at + 9)) : 0;
    buf_text(&invocation->reply, "{\"state\":\"");
    for (size_t i = 0; i < former + large->bytes; i += 2) buf_text(&invocation->reply, "\xc3\xa4");
    buf_text(&invocation->reply, "\"}");
}

TEST(a_large_state_is_stored_in_parts)
{
    struct stage stage;
    struct large large = {.bytes = 900 * 1024};
    open_windows(&stage);
    stage.function = grow;
    stage.context = &large;
    stage_set(stage_start(&stage, 0), window_mapping(&stage));
    stage_put(&stage, "a", 1, "x");
    stage_pass(&stage, 100);
    CHECK_INT(count_states(&stage), 3);
    stage_crash(&stage, &stage.actors[0]);
    large.bytes = 2;
    stage_put(&stage, "a", 2, "x");
    stage_set(stage_start(&stage, 0), window_mapping(&stage));
    stage_pass(&stage, 100);
    CHECK_INT(stage.actors[0].consumer->readers->shards->lanes[0].window.state.len, 900 * 1024 + 4);
    stage_pass(&stage, 15000);
    CHECK_INT(large.last, 1);
    CHECK_INT(large.early, 0);
    CHECK_INT(count_states(&stage), 0);
    stage_close(&stage);
}

TEST(a_state_that_grows_too_large_ends_its_window_early)
{
    struct stage stage;
    struct large large = {.bytes = 600 * 1024};
    open_windows(&stage);
    stage.function = grow;
    stage.context = &large;
    struct actor *actor = stage_start(&stage, 0);
    stage_set(actor, window_mapping(&stage));
    for (int i = 0; i < 3; i++) stage_put(&stage, "a", i, "x");
    stage_pass(&stage, 1000);
    CHECK_INT(large.early, 1); /* with the state of the first two; the third begins anew */
    CHECK_INT(stats_read(&actor->consumer->counts.records_done), 3);
    stage_pass(&stage, 15000);
    CHECK_INT(large.last, 2);
    CHECK_INT(large.early, 1);
    stage_close(&stage);
}

static void check_bad_state(size_t bytes, const char *answer, const char *result)
{
    struct stage stage;
    struct large large = {.bytes = bytes};
    open_windows(&stage);
    stage.function = grow;
    stage.context = &large;
    struct actor *actor = stage_start(&stage, 0);
    struct mapping *mapping = window_mapping(&stage);
    mapping->retries_max = 1;
    if (answer) stage.function = NULL; /* an answer without anything */
    stage_set(actor, mapping);
    stage_put(&stage, "a", 1, "x");
    stage_pass(&stage, 30);
    CHECK_TEXT(slice_of(actor->result), result);
    stage_pass(&stage, 1000);
    CHECK_INT(stage.invocations, 2);
    CHECK_INT(stats_read(&actor->consumer->counts.records_given_up), 1);
    stage_close(&stage);
}

TEST(an_answer_without_a_good_state_is_a_failure)
{
    check_bad_state(2 * 1024 * 1024, NULL, "PROBLEM: Function call failed: its state is larger than 1 MB");
    check_bad_state(0, "", "PROBLEM: Function call failed: its answer has no state");
}

static void fail_last(struct stage *stage, struct invocation *invocation)
{
    if (count_text(invocation->payload, "\"isFinalInvokeForWindow\":true"))
        stage_fail(invocation, "last");
    else
        count_up(stage, invocation);
}

TEST(a_last_call_that_fails_is_retried_and_given_up)
{
    struct stage stage;
    open_windows(&stage);
    stage.function = fail_last;
    struct mapping *mapping = window_mapping(&stage);
    mapping->retries_max = 2;
    stage_set(stage_start(&stage, 0), mapping);
    stage_put(&stage, "a", 1, "x");
    stage_pass(&stage, 20000);
    CHECK_INT(stage.invocations, 4);
    CHECK_INT(count_states(&stage), 0);
    stage_put(&stage, "a", 2, "x");
    stage_pass(&stage, 100);
    CHECK_INT(stage.invocations, 5);
    stage_close(&stage);
}

/* As records are: else it would hold up its shard for ever. */
TEST(a_last_call_that_fails_is_given_up_when_it_is_too_old)
{
    static const int64_t ages_ms[] = {60000, -1};
    for (int i = 0; i < 2; i++) {
        struct stage stage;
        open_windows(&stage);
        stage.function = fail_last;
        struct mapping *mapping = window_mapping(&stage);
        mapping->age_max_ms = ages_ms[i];
        stage_set(stage_start(&stage, 0), mapping);
        stage_put(&stage, "a", 1, "x");
        stage_pass(&stage, 60000);
        CHECK_INT(count_windows(&stage), 1);
        stage_pass(&stage, ages_ms[i] < 0 ? 24 * 3600000 : 30000);
        CHECK_INT(count_windows(&stage), 0);
        unsigned before = stage.invocations;
        stage_put(&stage, "a", 2, "x");
        stage_pass(&stage, 100);
        CHECK_INT(stage.invocations, before + 1);
        stage_close(&stage);
    }
}
