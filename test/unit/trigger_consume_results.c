/* What follows when functions fail, answer partly, return writes, or are not there. */
#include "unit/trigger_stage.h"

#include "base/fail.h"

/* A function that fails whenever a text is in its event, and writes down how many records it was given. */
struct script {
    const char *poison;      /* NULL: it never fails */
    unsigned failures_left;  /* it fails so often in any case */
    enum invocation_end end; /* instead of failing; 0: it fails */
    char sizes[400];
};

static void play_script(struct stage *stage, struct invocation *invocation)
{
    struct script *script = stage->context;
    size_t len = strlen(script->sizes);
    bool is_poisoned = script->poison && count_text(invocation->payload, script->poison) > 0;
    if (len < sizeof script->sizes - 12)
        snprintf(script->sizes + len, 12, "%u ", count_text(invocation->payload, "\"eventID\""));
    if (!is_poisoned && !script->failures_left) return;
    if (script->failures_left) script->failures_left--;
    if (script->end)
        invocation->end = script->end;
    else
        stage_fail(invocation, "as told");
}

static void open_script(struct stage *stage, struct script *script, int records)
{
    stage_open_things(stage, 1);
    stage_make_table(stage, "dead", "id");
    stage->function = play_script;
    stage->context = script;
    for (int i = 0; i < records; i++) {
        char text[16];
        snprintf(text, sizeof text, "r%02d", i);
        stage_put(stage, "a", i, text);
    }
}

static struct actor *start_with(struct stage *stage, struct mapping *mapping, int64_t ms)
{
    struct actor *actor = stage_start(stage, 0);
    stage_set(actor, mapping);
    stage_pass(stage, ms);
    return actor;
}

static void check_documents(struct stage *stage, unsigned count, const char *part)
{
    stage_call(stage, "Scan", "{\"TableName\":\"dead\"}");
    CHECK_INT(count_text(buf_view(&stage->reply), "DDBStreamBatchInfo"), count);
    CHECK_INT(count_text(buf_view(&stage->reply), part), count);
}

/* ---- retries ---- */

TEST(a_failed_batch_is_retried_as_it_was)
{
    struct stage stage;
    struct script script = {.failures_left = 3};
    open_script(&stage, &script, 5);
    struct actor *actor = start_with(&stage, stage_mapping(&stage), 1);
    CHECK_TEXT(slice_of(actor->result), "PROBLEM: Function call failed");
    stage_put(&stage, "b", 1, "x");
    stage_pass(&stage, 5000);
    CHECK_TEXT(slice_of(script.sizes), "5 5 5 5 1 ");
    CHECK_TEXT(slice_of(actor->result), "OK");
    stage_close(&stage);
}

TEST(retries_are_counted)
{
    for (int64_t retries = 0; retries <= 3; retries++) {
        struct stage stage;
        struct script script = {.poison = "r02"};
        open_script(&stage, &script, 5);
        struct mapping *mapping = stage_mapping(&stage);
        mapping->retries_max = retries;
        mapping->on_failure = SLICE("dead");
        start_with(&stage, mapping, 5000);
        CHECK_INT(stage.invocations, retries + 1);
        check_documents(&stage, 1, "\\\"condition\\\":\\\"RetryAttemptsExhausted\\\"");
        check_documents(&stage, 1, "\\\"batchSize\\\":5");
        char count[40];
        snprintf(count, sizeof count, "\\\"approximateInvokeCount\\\":%d", (int)retries + 1);
        check_documents(&stage, 1, count);
        stage_put(&stage, "b", 1, "x");
        stage_pass(&stage, 100);
        CHECK_INT(stage.invocations, retries + 2);
        stage_close(&stage);
    }
}

TEST(a_document_has_lambdas_form)
{
    struct stage stage;
    struct script script = {.poison = "r00"};
    open_script(&stage, &script, 2);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->retries_max = 0;
    mapping->on_failure = SLICE("dead");
    start_with(&stage, mapping, 100);
    stage_call(&stage, "Scan", "{\"TableName\":\"dead\"}");
    struct slice reply = buf_view(&stage.reply);
    CHECK(count_text(reply,
                     "{\\\"requestContext\\\":{\\\"requestId\\\":\\\"request-1\\\","
                     "\\\"functionArn\\\":\\\"arn:aws:lambda:us-east-1:000000000000:function:worker\\\","
                     "\\\"condition\\\":\\\"RetryAttemptsExhausted\\\",\\\"approximateInvokeCount\\\":1},"
                     "\\\"responseContext\\\":{\\\"statusCode\\\":200,"
                     "\\\"executedVersion\\\":\\\"$LATEST\\\",\\\"functionError\\\":\\\"Unhandled\\\"},"
                     "\\\"responsePayload\\\":{\\\"errorType\\\":\\\"Error\\\",\\\"errorMessage\\\":"
                     "\\\"as told\\\"},"
                     "\\\"version\\\":\\\"1.0\\\","
                     "\\\"timestamp\\\":\\\"2026-11-15T04:13:25.340Z\\\","
                     "\\\"DDBStreamBatchInfo\\\":{\\\"shardId\\\":\\\"shardId-"));
    CHECK(count_text(reply,
                     "\\\"startSequenceNumber\\\":\\\"100000000000000000001\\\","
                     "\\\"endSequenceNumber\\\":\\\"100000000000000000002\\\","
                     "\\\"approximateArrivalOfFirstRecord\\\":\\\"2026-11-15T04:13:25Z\\\","
                     "\\\"approximateArrivalOfLastRecord\\\":\\\"2026-11-15T04:13:25Z\\\","
                     "\\\"batchSize\\\":2,\\\"streamArn\\\":\\\"arn:"));
    CHECK_INT(stage.queue_wakes, 1);
    stage_close(&stage);
}

TEST(what_was_given_up_is_not_tried_again_after_a_restart)
{
    struct stage stage;
    struct script script = {.poison = "r00"};
    open_script(&stage, &script, 3);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->retries_max = 0;
    mapping_keep(mapping);
    stage_crash(&stage, start_with(&stage, mapping, 100)); /* without a destination */
    CHECK_INT(stage.invocations, 1);
    start_with(&stage, mapping, 1000);
    CHECK_INT(stage.invocations, 1);
    stage_close(&stage);
}

TEST(throttles_and_missing_functions_use_no_retries_up)
{
    static const enum invocation_end ends[] = {INVOCATION_THROTTLED, INVOCATION_UNKNOWN, INVOCATION_REFUSED};
    for (int i = 0; i < 3; i++) {
        struct stage stage;
        struct script script = {.failures_left = 12, .end = ends[i]};
        open_script(&stage, &script, 2);
        struct mapping *mapping = stage_mapping(&stage);
        mapping->retries_max = 1;
        mapping->bisect = true;
        struct actor *actor = start_with(&stage, mapping, 1);
        CHECK(strncmp(actor->result, "PROBLEM: Function ", 18) == 0);
        stage_pass(&stage, 30000);
        CHECK_TEXT(slice_of(script.sizes), "2 2 2 2 2 2 2 2 2 2 2 2 2 ");
        CHECK_TEXT(slice_of(actor->result), "OK");
        stage_close(&stage);
    }
}

TEST(records_that_are_too_old_are_given_up)
{
    struct stage stage;
    struct script script = {.poison = "r0"};
    open_script(&stage, &script, 2);
    stage_pass(&stage, 30000);
    stage_put(&stage, "a", 2, "r02");
    struct mapping *mapping = stage_mapping(&stage);
    mapping->age_max_ms = 60000;
    mapping->on_failure = SLICE("dead");
    start_with(&stage, mapping, 25000);
    check_documents(&stage, 0, "RecordAgeExceeded");
    stage_pass(&stage, 15000);
    check_documents(&stage, 1, "RecordAgeExceeded");
    check_documents(&stage, 1, "\\\"batchSize\\\":2");
    stage_pass(&stage, 30000);
    check_documents(&stage, 2, "RecordAgeExceeded");
    stage_put(&stage, "b", 2, "fine");
    stage_pass(&stage, 100);
    CHECK(count_text(buf_view(&stage.payloads), "fine") == 1);
    stage_close(&stage);
}

TEST(old_records_are_not_even_handed_over)
{
    struct stage stage;
    struct script script = {0};
    open_script(&stage, &script, 2);
    stage.now_ms += 120000;
    stage_put(&stage, "a", 2, "young");
    struct mapping *mapping = stage_mapping(&stage);
    mapping->age_max_ms = 60000;
    start_with(&stage, mapping, 100);
    CHECK_TEXT(slice_of(script.sizes), "1 ");
    CHECK(count_text(buf_view(&stage.payloads), "young") == 1);
    stage_close(&stage);
}

/* ---- halves and parts ---- */

TEST(bisecting_isolates_the_record_that_fails)
{
    struct stage stage;
    struct script script = {.poison = "r05"};
    open_script(&stage, &script, 8);
    struct mapping *mapping = stage_mapping(&stage);
    mapping->bisect = true;
    mapping->retries_max = 2;
    mapping->on_failure = SLICE("dead");
    start_with(&stage, mapping, 5000);
    CHECK_TEXT(slice_of(script.sizes), "8 4 4 2 1 1 1 1 2 "); /* the poisoned one three times */
    check_documents(&stage, 1, "\\\"batchSize\\\":1");
    stage_close(&stage);
}

static void fail_at(struct stage *stage, struct invocation *invocation)
{
    const char *poison = stage->context;
    stage->function_us = 0;
    struct slice payload = invocation->payload;
    const char *at = memmem(payload.data, payload.len, poison, strlen(poison));
    if (!at) {
        stage_answer(invocation, "{\"batchItemFailures\":[]}");
        return;
    }
    const char *number = strstr(at, "\"SequenceNumber\":\"") + 18;
    stage_answer(invocation, "{\"batchItemFailures\":[{\"itemIdentifier\":\"%.21s\"}]}", number);
}

static void check_partial(bool bisects, const char *poison, unsigned invocations, unsigned given_up)
{
    struct stage stage;
    struct script script = {0};
    open_script(&stage, &script, 8);
    stage.function = fail_at;
    stage.context = (char *)poison;
    struct mapping *mapping = stage_mapping(&stage);
    mapping->reports_failures = true;
    mapping->bisect = bisects;
    mapping->retries_max = 1;
    mapping->on_failure = SLICE("dead");
    struct actor *actor = start_with(&stage, mapping, 5000);
    CHECK_INT(stage.invocations, invocations);
    CHECK_INT(stats_read(&actor->consumer->counts.records_given_up), given_up);
    CHECK_INT(stats_read(&actor->consumer->counts.records_done), 8 - given_up);
    stage_close(&stage);
}

TEST(a_partial_answer_moves_the_position_up_to_the_failure)
{
    check_partial(false, "\"r05\"", 2, 3); /* 8, then the last three; then they are given up */
    check_partial(false, "\"r00\"", 2, 8);
    check_partial(false, "nothing", 1, 0);
    check_partial(true, "\"r05\"", 5, 1); /* 8, 3, then halves: 1, again 1; and 2 */
}

/* ---- effects ---- */

static void return_one_write_a_record(struct stage *stage, struct invocation *invocation)
{
    unsigned count = count_text(invocation->payload, "\"eventID\"");
    struct slice rest = invocation->payload;
    (void)stage;
    buf_text(&invocation->reply, "{\"quipu\":{\"transact\":[");
    for (unsigned i = 0; i < count; i++) {
        const char *at = memmem(rest.data, rest.len, "\"SequenceNumber\":\"", 18);
        if (i) buf_byte(&invocation->reply, ',');
        buf_printf(&invocation->reply,
                   "{\"Put\":{\"TableName\":\"copies\",\"Item\":{\"id\":{\"S\":\"%.21s\"}}}}", at + 18);
        rest = slice_from(rest, (size_t)(at - rest.data) + 18);
    }
    buf_text(&invocation->reply, "]}}");
}

TEST(returned_writes_are_applied_together_with_the_position)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    stage_make_table(&stage, "copies", "id");
    for (int i = 0; i < 400; i++) stage_put(&stage, "a", i, "x");
    stage.function = return_one_write_a_record;
    struct actor *actor = start_with(&stage, stage_mapping(&stage), 1000);
    stage_call(&stage, "Scan", "{\"TableName\":\"copies\",\"Select\":\"COUNT\"}");
    CHECK_TEXT(buf_view(&stage.reply), "{\"Count\":400,\"ScannedCount\":400}");
    CHECK_INT(stats_read(&actor->consumer->counts.effects), 400);
    CHECK(stage.invocations <= 7); /* a hundred are too many for one transaction: that is learned once */
    CHECK_TEXT(slice_of(actor->result), "OK");
    stage_close(&stage);
}

/* As a table does that records are copied to. */
static void refuse_many(struct stage *stage, struct invocation *invocation)
{
    (void)stage;
    invocation->is_too_much = count_text(invocation->payload, "\"eventID\"") > LIMIT_EFFECTS;
    if (invocation->is_too_much) stage_fail(invocation, "too many");
}

TEST(a_target_that_cannot_take_so_many_records_gets_fewer)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    for (int i = 0; i < 400; i++) stage_put(&stage, "a", i, "x");
    stage.function = refuse_many;
    struct mapping *mapping = stage_mapping(&stage);
    mapping->retries_max = 0; /* it is no failure */
    struct actor *actor = start_with(&stage, mapping, 1000);
    CHECK_INT(stats_read(&actor->consumer->counts.records_done), 400);
    CHECK_INT(stats_read(&actor->consumer->counts.failures), 0);
    CHECK(stage.invocations <= 7);
    CHECK_TEXT(slice_of(actor->result), "OK");
    stage_close(&stage);
}

static void return_text(struct stage *stage, struct invocation *invocation)
{
    stage_answer(invocation, "%s", (const char *)stage->context);
}

static void check_refused(const char *answer, const char *result)
{
    struct stage stage;
    struct script script = {0};
    open_script(&stage, &script, 3);
    stage.function = return_text;
    stage.context = (char *)answer;
    struct mapping *mapping = stage_mapping(&stage);
    mapping->retries_max = 2;
    mapping->on_failure = SLICE("dead");
    struct actor *actor = start_with(&stage, mapping, 5000);
    CHECK_INT(stage.invocations, 3);
    check_documents(&stage, 1, "RetryAttemptsExhausted");
    if (strncmp(actor->result, result, strlen(result)) != 0)
        test_failed(__FILE__, __LINE__, "%s, not %s", actor->result, result);
    stage_close(&stage);
}

TEST(writes_that_the_door_refuses_are_a_failure_of_the_function)
{
    check_refused(
        "{\"quipu\":{\"transact\":[{\"Put\":{\"TableName\":\"nowhere\",\"Item\":{\"id\":{\"S\":\"x\"}}}}]}}",
        "PROBLEM: Function call failed: its writes were refused: ResourceNotFoundException");
    check_refused(
        "{\"quipu\":{\"transact\":[{\"Put\":{\"TableName\":\"dead\",\"Item\":{\"x\":{\"S\":\"x\"}}}}]}}",
        "PROBLEM: Function call failed: its writes were refused: ");
    check_refused("{\"quipu\":{\"transact\":[{\"ConditionCheck\":{\"TableName\":\"dead\","
                  "\"Key\":{\"id\":{\"S\":\"x\"}},\"ConditionExpression\":\"attribute_exists(id)\"}}]}}",
                  "PROBLEM: Function call failed: its writes were refused: write 1: ConditionalCheckFailed");
    check_refused("{\"quipu\":{\"transact\":7}}", "PROBLEM: Function call failed: ");
}

TEST(a_destination_that_refuses_does_not_hold_up_the_shard)
{
    static const char *const destinations[] = {"nowhere", "absent"};
    for (int i = 0; i < 2; i++) {
        struct stage stage;
        struct script script = {.poison = "r00"};
        open_script(&stage, &script, 2);
        struct mapping *mapping = stage_mapping(&stage);
        mapping->retries_max = 0;
        mapping->on_failure = slice_of(destinations[i]);
        start_with(&stage, mapping, 1000);
        stage_put(&stage, "b", 1, "fine");
        stage_pass(&stage, 100);
        CHECK_INT(count_text(buf_view(&stage.payloads), "fine"), 1);
        CHECK_INT(stage.invocations, 2);
        stage_close(&stage);
    }
}

TEST(a_destination_whose_table_was_deleted_is_told_all_the_same)
{
    struct stage stage;
    struct script script = {.poison = "r00"};
    open_script(&stage, &script, 1);
    stage_call(&stage, "DeleteTable", "{\"TableName\":\"dead\"}");
    stage.mended = "dead";
    struct mapping *mapping = stage_mapping(&stage);
    mapping->retries_max = 0;
    mapping->on_failure = SLICE("dead");
    start_with(&stage, mapping, 1000);
    CHECK_INT(stage.invocations, 1);
    check_documents(&stage, 1, "RetryAttemptsExhausted");
    stage_close(&stage);
}

static void return_long_write(struct stage *stage, struct invocation *invocation)
{
    static const char some[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    buf_printf(&invocation->reply,
               "{\"quipu\":{\"transact\":[{\"Put\":{\"TableName\":\"slow\",\"Item\":{"
               "\"id\":{\"S\":\"%u\"},\"text\":{\"S\":\"",
               stage->invocations);
    for (int i = 0; i < 1000; i++) buf_slice(&invocation->reply, slice_of(some));
    buf_text(&invocation->reply, "\"}}}}]}}");
    invocation->end = INVOCATION_ANSWERED;
}

/* A server that ends waits a while for what is under way, and not until a table has units again. */
TEST(a_commit_that_is_throttled_does_not_keep_the_server_from_ending)
{
    struct stage stage;
    stage_open_things(&stage, 1);
    CHECK_INT(
        stage_call(
            &stage, "CreateTable",
            "{\"TableName\":\"slow\",\"BillingMode\":\"PROVISIONED\",\"ProvisionedThroughput\":{"
            "\"ReadCapacityUnits\":1,\"WriteCapacityUnits\":1},\"AttributeDefinitions\":[{"
            "\"AttributeName\":\"id\",\"AttributeType\":\"S\"}],\"KeySchema\":[{\"AttributeName\":\"id\","
            "\"KeyType\":\"HASH\"}],\"Tags\":[{\"Key\":\"quipu:throttle\",\"Value\":\"on\"}]}"),
        200);
    for (int i = 0; i < 2; i++) stage_put(&stage, "a", i, "x");
    stage.function = return_long_write;
    struct mapping *mapping = stage_mapping(&stage);
    mapping->batch_size = 1;
    struct consumer *consumer = start_with(&stage, mapping, 1000)->consumer;
    CHECK_INT(stats_read(&consumer->counts.records_done), 1);
    consumer_stop(consumer);
    stage_pass(&stage, 1000);
    CHECK(!consumer_has_stopped(consumer)); /* the second one is throttled for two minutes */
    consumer->is_late = true;
    consumer_stop(consumer);
    stage_pass(&stage, 10);
    CHECK(consumer_has_stopped(consumer));
    stage_close(&stage);
}
