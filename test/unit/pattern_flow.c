/* What all flows have in common, with replies made up: troubles of the service, tables, formats, costs. */
#include "fiber/fiber.h"
#include "pattern/flow.h"
#include "pattern/sweep.h"
#include "unit/test.h"

static const struct flow_table table = {"things", "a", "expires"};
static const struct flow_world world = {.prefix = SLICE("t-"), .poll_ms = 1000};

/* A flow of one call that answers what came of it. */
static void tell(struct flow *flow)
{
    flow_answer(flow, 200, "{'failed':%b,'item':%P}", (int)flow_failed(flow),
                item_attribute(flow->arena, flow_item(flow), "a"));
}

static void ask(struct flow *flow)
{
    task_call(flow, "UpdateItem", "{'TableName':%T}", &table);
    tell(flow);
}

static const struct flow_row row = {"POST", "/x", ask, "A call.", NULL, 0, NULL, NULL};

/* A flow that is begun, and given replies. */
struct trial {
    struct arena arena;
    struct buf body;
    struct rest_call request;
    struct flow flow;
};

static void trial_begin_row(struct trial *trial, const struct flow_row *with, const char *query)
{
    *trial = (struct trial){.request = {.query = slice_of(query)}};
    trial->request.arena = &trial->arena;
    flow_begin(&trial->flow, &(struct flow_start){.world = &world,
                                                  .row = with,
                                                  .request = &trial->request,
                                                  .arena = &trial->arena,
                                                  .body = &trial->body,
                                                  .seed = 1,
                                                  .now_ms = 1000});
}

static void trial_begin(struct trial *trial, const char *query)
{
    trial_begin_row(trial, &row, query);
}

static void trial_end(struct trial *trial)
{
    flow_release(&trial->flow);
    arena_free(&trial->arena);
    buf_free(&trial->body);
}

static void give(struct trial *trial, int status, const char *error, const char *body)
{
    flow_next(&trial->flow, 1000, &(struct flow_reply){status, slice_of(error), slice_of(body)});
}

static void check_call(struct trial *trial, const char *operation, const char *request)
{
    CHECK_INT(trial->flow.want, FLOW_CALL);
    CHECK_TEXT(trial->flow.operation, operation);
    CHECK_TEXT(trial->flow.call, request);
}

static void check_done(struct trial *trial, int status, const char *body)
{
    CHECK_INT(trial->flow.want, FLOW_DONE);
    CHECK_INT(trial->flow.status, status);
    CHECK_TEXT(buf_view(&trial->body), body);
}

TEST(flow_sees_success_and_failed_conditions)
{
    struct trial trial;
    trial_begin(&trial, "");
    check_call(&trial, "UpdateItem", "{\"TableName\":\"t-things\"}");
    give(&trial, 200, "", "{\"Attributes\":{\"a\":{\"N\":\"1\"}}}");
    check_done(&trial, 200, "{\"failed\":false,\"item\":1}");
    trial_end(&trial);
    trial_begin(&trial, "");
    give(&trial, 400, "ConditionalCheckFailedException", "{\"Item\":{\"a\":{\"N\":\"2\"}}}");
    check_done(&trial, 200, "{\"failed\":true,\"item\":2}");
    trial_end(&trial);
}

TEST(flow_repeats_what_passes)
{
    static const char *const errors[] = {"ThrottlingException", "ProvisionedThroughputExceededException",
                                         "TransactionConflictException", "InternalServerError"};
    struct trial trial;
    trial_begin(&trial, "");
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        give(&trial, i == 3 ? 500 : 400, errors[i], "{}");
        CHECK_INT(trial.flow.want, FLOW_PAUSE);
        CHECK(trial.flow.pause_ms > 0 && trial.flow.pause_ms <= 500);
        flow_next(&trial.flow, 1000, NULL);
        check_call(&trial, "UpdateItem", "{\"TableName\":\"t-things\"}");
    }
    give(&trial, 200, "", "{}");
    check_done(&trial, 200, "{\"failed\":false,\"item\":null}");
    trial_end(&trial);
}

TEST(flow_gives_up_when_it_does_not_pass)
{
    struct trial trial;
    unsigned calls = 0;
    trial_begin(&trial, "");
    while (trial.flow.want != FLOW_DONE && calls < 1000) {
        give(&trial, 400, "ThrottlingException", "{}");
        if (trial.flow.want == FLOW_PAUSE) flow_next(&trial.flow, 1000, NULL);
        calls++;
    }
    check_done(&trial, 503,
               "{\"error\":\"busy\",\"message\":\"The database did not get to it (ThrottlingException). "
               "Try again later.\"}");
    CHECK(trial.flow.retry_after_ms > 0 && calls > 5 && calls < 50);
    trial_end(&trial);
}

TEST(flow_tells_other_errors_clearly)
{
    static const struct {
        int status;
        const char *error, *body;
        int told;
        const char *code;
    } cases[] = {
        {0, "NoReplyException", "{\"__type\":\"NoReplyException\",\"message\":\"nobody listens\"}", 503,
         "no-reply"},
        {400, "ValidationException",
         "{\"__type\":\"x#ValidationException\",\"message\":\"Item size has exceeded the maximum allowed "
         "size\"}",
         413, "too-large"},
        {400, "ValidationException", "{\"__type\":\"x#ValidationException\",\"message\":\"no\"}", 400,
         "refused"},
        {400, "AccessDeniedException", "{\"__type\":\"AccessDeniedException\",\"message\":\"no\"}", 502,
         "database-error"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial trial;
        trial_begin(&trial, "");
        give(&trial, cases[i].status, cases[i].error, cases[i].body);
        CHECK_INT(trial.flow.status, cases[i].told);
        CHECK_TEXT(raw_text(&trial.arena, raw_member(&trial.arena, buf_view(&trial.body), "error")),
                   cases[i].code);
        trial_end(&trial);
    }
}

TEST(flow_makes_missing_tables)
{
    struct trial trial;
    trial_begin(&trial, "");
    give(&trial, 400, "ResourceNotFoundException", "{}");
    check_call(&trial, "CreateTable",
               "{\"TableName\":\"t-things\",\"BillingMode\":\"PAY_PER_REQUEST\","
               "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}],"
               "\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"}]}");
    give(&trial, 400, "ResourceInUseException", "{}"); /* somebody else makes it, too */
    check_call(&trial, "DescribeTable", "{\"TableName\":\"t-things\"}");
    give(&trial, 200, "", "{\"Table\":{\"TableStatus\":\"CREATING\"}}");
    CHECK_INT(trial.flow.want, FLOW_PAUSE);
    flow_next(&trial.flow, 1000, NULL);
    check_call(&trial, "DescribeTable", "{\"TableName\":\"t-things\"}");
    give(&trial, 200, "", "{\"Table\":{\"TableStatus\":\"ACTIVE\"}}");
    check_call(&trial, "UpdateTimeToLive",
               "{\"TableName\":\"t-things\",\"TimeToLiveSpecification\":{\"Enabled\":true,"
               "\"AttributeName\":\"expires\"}}");
    give(&trial, 400, "ValidationException", "{\"message\":\"TimeToLive is already enabled\"}");
    check_call(&trial, "UpdateItem", "{\"TableName\":\"t-things\"}");
    give(&trial, 200, "", "{}");
    check_done(&trial, 200, "{\"failed\":false,\"item\":null}");
    trial_end(&trial);
    trial_begin(&trial, "");
    give(&trial, 400, "ResourceNotFoundException", "{}");
    give(&trial, 400, "AccessDeniedException", "{}");
    CHECK_INT(trial.flow.status, 502);
    trial_end(&trial);
}

TEST(flow_counts_its_cost)
{
    struct trial trial;
    trial_begin(&trial, "cost=1");
    check_call(&trial, "UpdateItem", "{\"TableName\":\"t-things\",\"ReturnConsumedCapacity\":\"TOTAL\"}");
    give(&trial, 400, "ConditionalCheckFailedException", "{\"Item\":{\"a\":{\"N\":\"2\"}}}");
    check_done(&trial, 200,
               "{\"failed\":true,\"item\":2,\"cost\":{\"writeUnits\":1,\"readUnits\":0,\"calls\":1,"
               "\"dollarsPerMillion\":0.625}}");
    trial_end(&trial);
    trial_begin(&trial, "cost");
    give(&trial, 200, "", "{\"ConsumedCapacity\":[{\"CapacityUnits\":2.0},{\"CapacityUnits\":4.5}]}");
    check_done(&trial, 200,
               "{\"failed\":false,\"item\":null,\"cost\":{\"writeUnits\":6.5,\"readUnits\":0,\"calls\":1,"
               "\"dollarsPerMillion\":4.0625}}");
    trial_end(&trial);
    trial_begin(&trial, "cost=0");
    check_call(&trial, "UpdateItem", "{\"TableName\":\"t-things\"}");
    trial_end(&trial);
}

/* What the service does not charge for is not counted; what it charges for without saying so, is. */
TEST(flow_counts_what_was_refused)
{
    static const char cost[] =
        "\"cost\":{\"writeUnits\":1,\"readUnits\":0,\"calls\":3,\"dollarsPerMillion\":0.625}}";
    struct trial trial;
    trial_begin(&trial, "cost=1");
    give(&trial, 400, "ThrottlingException", "{}");
    flow_next(&trial.flow, 1000, NULL);
    give(&trial, 500, "InternalServerError", "{}");
    flow_next(&trial.flow, 1000, NULL);
    give(&trial, 200, "", "{\"ConsumedCapacity\":{\"CapacityUnits\":1.0}}");
    CHECK(slice_contains(buf_view(&trial.body), slice_of(cost)));
    trial_end(&trial);
    trial_begin(&trial, "cost=1");
    give(&trial, 400, "ValidationException", "{}");
    CHECK(slice_contains(buf_view(&trial.body), SLICE("\"writeUnits\":0,\"readUnits\":0,\"calls\":1,")));
    trial_end(&trial);
}

/* The larger of what stood there and what was to be put, in units of 1 KB. */
TEST(flow_counts_a_refused_write)
{
    struct trial trial;
    char body[3000], text[2500];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    trial_begin(&trial, "cost=1");
    trial.flow.operation = SLICE("PutItem");
    trial.flow.call = arena_printf(&trial.arena, "{\"Item\":{\"a\":{\"S\":\"%.1500s\"}}}", text);
    snprintf(body, sizeof body, "{\"Item\":{\"a\":{\"S\":\"%s\"}}}", text);
    give(&trial, 400, "ConditionalCheckFailedException", body);
    CHECK(slice_contains(buf_view(&trial.body), SLICE("\"writeUnits\":3,\"readUnits\":0,\"calls\":1,")));
    trial_end(&trial);
}

static void compose_all(struct flow *flow)
{
    struct slice text = flow_compose(flow,
                                     "{'a':%S,'b':%N,'c':%J,'d':%A,'e':%s,'f':%d,'g':%b,'h':'%r','x':'#one = "
                                     ":v and #two <> #one',%#,'y':'#two',"
                                     "%#,%O,'z':'100%%'}",
                                     SLICE("q\"'#no%s"), (int64_t)-5, SLICE("[1]"), SLICE("{\"S\":\"raw\"}"),
                                     SLICE("\n"), (int64_t)7, 1, SLICE("#raw"));
    buf_slice(flow->body, text);
    flow_finish(flow, 200);
}

TEST(flow_composes_requests)
{
    static const struct flow_row compose_row = {"POST", "/x", compose_all, "Formats.", NULL, 0, NULL, NULL};
    struct trial trial;
    trial_begin_row(&trial, &compose_row, "");
    check_done(
        &trial, 200,
        "{\"a\":{\"S\":\"q\\\"'#no%s\"},\"b\":{\"N\":\"-5\"},\"c\":{\"L\":[{\"N\":\"1\"}]},"
        "\"d\":{\"S\":\"raw\"},\"e\":\"\\n\",\"f\":7,\"g\":true,\"h\":\"#raw\","
        "\"x\":\"#one = :v and #two <> #one\","
        "\"ExpressionAttributeNames\":{\"#raw\":\"raw\",\"#one\":\"one\",\"#two\":\"two\"},\"y\":\"#two\","
        "\"ExpressionAttributeNames\":{\"#two\":\"two\"},\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\","
        "\"z\":\"100%\"}");
    trial_end(&trial);
}

static void race(struct flow *flow)
{
    for (;;) task_again(flow);
}

TEST(flow_ends_races_that_it_never_wins)
{
    static const struct flow_row race_row = {"POST", "/x", race, "A race.", NULL, 0, NULL, NULL};
    struct trial trial;
    unsigned pauses = 0;
    trial_begin_row(&trial, &race_row, "");
    for (; trial.flow.want == FLOW_PAUSE && pauses < 1000; pauses++) flow_next(&trial.flow, 1000, NULL);
    CHECK_INT(trial.flow.status, 503);
    CHECK(pauses > 20 && pauses < 200);
    trial_end(&trial);
}

TEST(flow_ids_sort_by_time_and_order)
{
    struct arena arena = {0};
    struct flow one = {.arena = &arena, .now_ms = 2678328805340, .serial = 1}, two = one;
    two.serial = 2;
    struct slice first = flow_new_id(&one), second = flow_new_id(&two);
    CHECK(slice_compare(first, second) < 0);
    one.now_ms++;
    CHECK(slice_compare(second, flow_new_id(&one)) < 0);
    CHECK(slice_starts(first, SLICE("2054-11-15T04:13:25.340Z-000001-")));
    arena_free(&arena);
}

/* ---- removing what is listed ---- */

static void remove_all(struct flow *flow)
{
    do {
        task_call(flow, "Query", "{'TableName':%T}", &table);
    } while (delete_listed(flow, &table));
    flow_answer(flow, 200, "{'empty':true}");
}

TEST(flow_removes_what_is_listed_and_sends_again_what_was_left)
{
    static const struct flow_row removal = {"POST", "/x", remove_all, "Removes all.", NULL, 0, NULL, NULL};
    struct trial trial;
    trial_begin_row(&trial, &removal, "");
    give(&trial, 200, "", "{\"Items\":[{\"a\":{\"N\":\"1\"}},{\"a\":{\"N\":\"2\"}}]}");
    check_call(&trial, "BatchWriteItem",
               "{\"RequestItems\":{\"t-things\":[{\"DeleteRequest\":{\"Key\":{\"a\":{\"N\":\"1\"}}}},"
               "{\"DeleteRequest\":{\"Key\":{\"a\":{\"N\":\"2\"}}}}]}}");
    for (int i = 0; i < 2; i++) { /* as often as need be */
        give(&trial, 200, "",
             "{\"UnprocessedItems\":{\"t-things\":[{\"DeleteRequest\":{\"Key\":{\"a\":{\"N\":\"2\"}}}}]}}");
        CHECK_INT(trial.flow.want, FLOW_PAUSE);
        flow_next(&trial.flow, 1000, NULL);
        check_call(&trial, "BatchWriteItem",
                   "{\"RequestItems\":{\"t-things\":[{\"DeleteRequest\":{\"Key\":{\"a\":{\"N\":\"2\"}}}}]}}");
    }
    give(&trial, 200, "", "{\"UnprocessedItems\":{}}");
    check_call(&trial, "Query", "{\"TableName\":\"t-things\"}");
    give(&trial, 200, "", "{\"Items\":[]}");
    check_done(&trial, 200, "{\"empty\":true}");
    trial_end(&trial);
}

/* ---- the walk over what is due ---- */

static void walk_due(struct flow *flow)
{
    static const struct slots slots = {&table, SLICE("{\"a\":{\"S\":\"slots\"}}")};
    struct due_walk walk = due_begin(flow, &table, &slots);
    struct slice entry;
    while (due_next(flow, &walk, &entry)) {
        buf_slice(flow->body, item_text(flow->arena, entry, "a"));
        task_sleep(flow, 1);
    }
    flow_finish(flow, 200);
}

/* Each slot in pages, whichever comes first, and behind it how many there are. */
TEST(flow_walks_over_what_is_due)
{
    static const struct flow_row due = {"POST", "/x", walk_due, "Walks.", NULL, 0, NULL, NULL};
    struct trial trial;
    trial_begin_row(&trial, &due, "");
    give(&trial, 200, "",
         "{\"Items\":[{\"a\":{\"S\":\"1\"}},{\"a\":{\"S\":\"2\"}}],"
         "\"LastEvaluatedKey\":{\"a\":{\"S\":\"2\"}}}");
    for (int i = 0; i < 2; i++) {
        CHECK_INT(trial.flow.want, FLOW_PAUSE);
        flow_next(&trial.flow, 1000, NULL);
    }
    CHECK(slice_contains(trial.flow.call, SLICE("\"ExclusiveStartKey\":{\"a\":{\"S\":\"2\"}}")));
    give(&trial, 200, "", "{\"Items\":[{\"a\":{\"S\":\"3\"}}]}");
    CHECK_INT(trial.flow.want, FLOW_PAUSE);
    flow_next(&trial.flow, 1000, NULL);
    check_call(&trial, "GetItem", "{\"TableName\":\"t-things\",\"Key\":{\"a\":{\"S\":\"slots\"}}}");
    give(&trial, 200, "", "{\"Item\":{\"a\":{\"S\":\"slots\"},\"slots\":{\"N\":\"8\"}}}");
    for (int i = 1; i < 8; i++) {
        CHECK(!slice_contains(trial.flow.call, SLICE("ExclusiveStartKey")));
        give(&trial, 200, "", "{\"Items\":[]}");
    }
    check_done(&trial, 200, "123");
    trial_end(&trial);
}

/* ---- tasks ---- */

static void task_two_calls(struct flow *flow)
{
    int64_t number = 0;
    task_call(flow, "GetItem", "{'a':%d}", (int64_t)1);
    struct slice first = item_text(flow->arena, flow_item(flow), "x");
    task_sleep(flow, 70);
    do {
        task_call(flow, "PutItem", "{'a':%d,'x':%s}", ++number, first);
        if (flow_failed(flow)) task_again(flow);
    } while (flow_failed(flow));
    flow_answer(flow, 200, "{'x':%s,'number':%d}", first, number);
}

static const struct flow_row task_row = {"POST", "/x", task_two_calls, "Two calls.", NULL, 0, NULL, NULL};

static const char refused[] = "ConditionalCheckFailedException";

static void task_begin(struct trial *trial)
{
    trial_begin_row(trial, &task_row, "");
    CHECK_INT(fiber_count().waiting, 1);
    check_call(trial, "GetItem", "{\"a\":1}");
}

/* Over, and nothing is left of it. */
static void task_check_end(struct trial *trial, int status, const char *part)
{
    CHECK_INT(trial->flow.want, FLOW_DONE);
    CHECK_INT(trial->flow.status, status);
    CHECK(slice_contains(buf_view(&trial->body), slice_of(part)));
    CHECK_INT(fiber_count().waiting, 0);
    trial_end(trial);
}

TEST(task_reads_from_top_to_bottom)
{
    struct trial trial;
    task_begin(&trial);
    give(&trial, 200, "", "{\"Item\":{\"x\":{\"S\":\"seen\"}}}");
    CHECK_INT(trial.flow.want, FLOW_PAUSE);
    CHECK_INT(trial.flow.pause_ms, 70);
    flow_next(&trial.flow, 1000, NULL);
    check_call(&trial, "PutItem", "{\"a\":1,\"x\":\"seen\"}");
    give(&trial, 400, refused, "{}");
    CHECK_INT(trial.flow.want, FLOW_PAUSE);
    flow_next(&trial.flow, 1000, NULL);
    check_call(&trial, "PutItem", "{\"a\":2,\"x\":\"seen\"}");
    give(&trial, 200, "", "{}");
    task_check_end(&trial, 200, "{\"x\":\"seen\",\"number\":2}");
}

TEST(task_is_over_when_a_call_cannot_be_made)
{
    struct trial trial;
    task_begin(&trial);
    give(&trial, 400, "ValidationException", "{\"__type\":\"ValidationException\",\"message\":\"no\"}");
    task_check_end(&trial, 400, "refused");
}

TEST(task_that_loses_too_many_races_is_over)
{
    struct trial trial;
    task_begin(&trial);
    give(&trial, 200, "", "{\"Item\":{\"x\":{\"S\":\"seen\"}}}");
    for (int i = 0; i < 1000 && trial.flow.want != FLOW_DONE; i++) {
        if (trial.flow.want == FLOW_CALL)
            give(&trial, 400, refused, "{}");
        else
            flow_next(&trial.flow, 1000, NULL);
    }
    task_check_end(&trial, 503, "busy");
}

TEST(task_is_given_up_or_dropped_where_it_waits)
{
    struct trial trial;
    task_begin(&trial);
    flow_give_up(&trial.flow);
    task_check_end(&trial, 503, "stopping");
    task_begin(&trial);
    flow_release(&trial.flow);
    CHECK_INT(fiber_count().waiting, 0);
    trial_end(&trial);
}

static void task_of_table(struct flow *flow)
{
    task_call(flow, "UpdateItem", "{'TableName':%T}", &table);
    flow_answer(flow, 200, "{'x':%P}", item_attribute(flow->arena, flow_item(flow), "x"));
}

static const struct flow_row table_row = {"POST", "/x", task_of_table, "A call.", NULL, 0, NULL, NULL};

/* Its table is missing, and is being made. */
static void task_begin_making(struct trial *trial)
{
    trial_begin_row(trial, &table_row, "");
    give(trial, 400, "ResourceNotFoundException", "{}");
    CHECK_TEXT(trial->flow.operation, "CreateTable");
    CHECK_INT(fiber_count().waiting, 1); /* the same task */
}

TEST(task_waits_while_its_tables_are_made)
{
    struct trial trial;
    task_begin_making(&trial);
    give(&trial, 200, "", "{}");
    give(&trial, 200, "", "{\"Table\":{\"TableStatus\":\"ACTIVE\"}}");
    give(&trial, 200, "", "{}");
    check_call(&trial, "UpdateItem", "{\"TableName\":\"t-things\"}");
    CHECK_INT(fiber_count().waiting, 1);
    give(&trial, 200, "", "{\"Attributes\":{\"x\":{\"N\":\"7\"}}}");
    task_check_end(&trial, 200, "{\"x\":7}");
    task_begin_making(&trial);
    give(&trial, 400, "AccessDeniedException", "{}");
    task_check_end(&trial, 502, "no-table");
    task_begin_making(&trial);
    flow_give_up(&trial.flow);
    task_check_end(&trial, 503, "stopping");
    task_begin_making(&trial);
    flow_release(&trial.flow);
    CHECK_INT(fiber_count().waiting, 0);
    trial_end(&trial);
}
