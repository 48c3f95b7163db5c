/* Asynchronous calls where the database has no transactions: they end as tombstones, so that a late repeat does not
 * begin them anew, and only open ones are looked for. What runs is a pattern, which needs no process. */
#include "base/json.h"
#include "base/limits.h"
#include "base/raw.h"
#include "base/stats.h"
#include "func/queue.h"
#include "unit/func_stage.h"

#define CALL  "{\"call\":\"POST /v1/counters/x\"}"
#define ASIDE "arn:aws:sqs:us-east-1:000000000000:aside"
#define COUNT_UP                                                                                                 \
    "{\"Update\":{\"TableName\":\"effects\",\"Key\":{\"id\":{\"S\":\"n\"}},\"UpdateExpression\":\"ADD n :one\"," \
    "\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"}}}}"

struct answering {
    const char *reply;
    _Atomic bool is_fine;
    _Atomic unsigned calls;
    _Atomic size_t event_len;
};

static bool answer(void *context, struct slice call, struct slice body, struct slice event,
                   struct slice cause, struct arena *arena, struct buf *reply, bool *is_final)
{
    struct answering *answering = context;
    (void)call, (void)body, (void)cause, (void)arena;
    answering->calls++;
    answering->event_len = event.len;
    if (is_final) *is_final = !answering->is_fine;
    buf_slice(reply, slice_of(answering->reply));
    return answering->is_fine;
}

static struct dynamo *imitation_open(void)
{
    char error[300] = "";
    struct imitation_options options;
    struct dynamo *dynamo = NULL;
    if (imitation_options_read("alternator,index-delay=0", &options, error, sizeof error))
        dynamo = dynamo_open_imitation(&options, &(struct dynamo_options){0}, error, sizeof error);
    if (!dynamo) test_failed(__FILE__, __LINE__, "%s", error);
    return dynamo;
}

static void open_answering(struct stage *stage, struct answering *answering, const char *reply)
{
    struct arena arena = {0};
    *answering = (struct answering){.reply = reply, .is_fine = true};
    stage_open(stage, &(struct stage_options){.dynamo = imitation_open()});
    func_set_pattern(stage->func, answer, answering);
    stage_dynamo(stage, "CreateTable",
                 "{\"TableName\":\"effects\",\"BillingMode\":\"PAY_PER_REQUEST\","
                 "\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}],"
                 "\"AttributeDefinitions\":[{\"AttributeName\":\"id\",\"AttributeType\":\"S\"}]}",
                 &arena);
    arena_free(&arena);
}

static void close_answering(struct stage *stage)
{
    struct dynamo *dynamo = stage->dynamo;
    stage_close(stage);
    dynamo_close(dynamo);
}

static bool is_idle(void *stage)
{
    return func_is_idle(((struct stage *)stage)->func);
}

/* Puts a call, one member after the other, and waits until nothing is under way. */
static void put_call(struct stage *stage, const char *id, struct slice payload)
{
    struct arena arena = {0};
    struct buf members = {0};
    struct raw_walk walk;
    struct slice action;
    struct func_call call = {.function = SLICE(CALL),
                             .payload = payload,
                             .cause = SLICE("a:1"),
                             .id = slice_of(id),
                             .on_failure = SLICE(ASIDE)};
    buf_byte(&members, '[');
    CHECK(func_queue_put(stage->func, &call, &members) > 0);
    buf_byte(&members, ']');
    raw_walk_begin(&walk, &arena, buf_view(&members));
    while (raw_walk_next(&walk, NULL, &action)) {
        struct buf reply = {0};
        const char *operation;
        struct slice request = dynamo_action_request(action, &operation);
        CHECK_INT(dynamo_call(stage->dynamo, slice_of(operation), request, &reply), 200);
        buf_free(&reply);
    }
    func_queue_wake(stage->func);
    CHECK(stage_until(is_idle, stage));
    buf_free(&members);
    arena_free(&arena);
}

/* The items of a table, in the arena. */
static struct slice items_of(struct stage *stage, const char *table, struct arena *arena)
{
    struct slice request = arena_printf(arena, "{\"TableName\":\"%s\"}", table);
    return raw_member(arena, stage_dynamo(stage, "Scan", request.data, arena), "Items");
}

/* A tombstone is all that is left of a call. */
static void check_tombstone(struct stage *stage)
{
    struct arena arena = {0};
    struct raw_walk walk;
    struct slice item, items = items_of(stage, "quipu-invocations", &arena), name, value;
    CHECK_INT(raw_count(&arena, items), 1);
    raw_walk_begin(&walk, &arena, items);
    CHECK(raw_walk_next(&walk, NULL, &item));
    raw_walk_begin(&walk, &arena, item);
    while (raw_walk_next(&walk, &name, &value))
        CHECK(slice_equal(name, SLICE("id")) || slice_equal(name, SLICE("part")) ||
              slice_equal(name, SLICE("ended")) || slice_equal(name, SLICE("expires")) ||
              slice_equal(name, SLICE("fence")));
    CHECK_INT(raw_count(&arena, item), 5);
    arena_free(&arena);
}

static unsigned counted(struct stage *stage)
{
    struct arena arena = {0};
    struct raw_walk walk;
    struct slice item = SLICE_NONE;
    int64_t number = 0;
    raw_walk_begin(&walk, &arena, items_of(stage, "effects", &arena));
    if (raw_walk_next(&walk, NULL, &item))
        raw_int(raw_string(&arena, raw_member(&arena, raw_member(&arena, item, "n"), "N")), &number);
    arena_free(&arena);
    return (unsigned)number;
}

TEST(tombstone_is_left_of_a_call_and_its_effect_happens_once)
{
    struct stage stage;
    struct answering answering;
    open_answering(&stage, &answering, "{\"quipu\":{\"transact\":[" COUNT_UP "]}}");
    put_call(&stage, "e1", SLICE("{}"));
    CHECK_INT(answering.calls, 1);
    CHECK_INT(counted(&stage), 1);
    check_tombstone(&stage);
    put_call(&stage, "e1", SLICE("{}")); /* a late repeat */
    CHECK_INT(answering.calls, 1);
    check_tombstone(&stage);
    put_call(&stage, "e2", SLICE("{}"));
    CHECK_INT(counted(&stage), 2);
    close_answering(&stage);
}

TEST(tombstone_of_a_call_in_parts)
{
    struct stage stage;
    struct answering answering;
    struct buf payload = {0};
    buf_byte(&payload, '"');
    while (payload.len < 3 * LIMIT_QUEUE_PART_BYTES) buf_text(&payload, "\xc3\xa4");
    buf_byte(&payload, '"');
    open_answering(&stage, &answering, "{}");
    for (int i = 0; i < 2; i++) {
        put_call(&stage, "e1", buf_view(&payload));
        CHECK_INT(answering.calls, 1);
        CHECK_INT(answering.event_len, (int64_t)payload.len);
        check_tombstone(&stage);
    }
    buf_free(&payload);
    close_answering(&stage);
}

/* Whoever ended the call has died before its parts were removed: the next server finds that. */
TEST(tombstone_that_is_still_listed_is_done_with)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, "{}");
    put_call(&stage, "e1", SLICE("{}"));
    stage_dynamo(
        &stage, "UpdateItem",
        "{\"TableName\":\"quipu-invocations\",\"Key\":{\"id\":{\"S\":\"e1\"},\"part\":{\"N\":\"0\"}},"
        "\"UpdateExpression\":\"SET #o = :o, parts = :two\",\"ExpressionAttributeNames\":{\"#o\":\"open\"},"
        "\"ExpressionAttributeValues\":{\":o\":{\"S\":\"e1\"},\":two\":{\"N\":\"2\"}}}",
        &arena);
    stage_dynamo(
        &stage, "PutItem",
        "{\"TableName\":\"quipu-invocations\",\"Item\":{\"id\":{\"S\":\"e1\"},\"part\":{\"N\":\"1\"},"
        "\"payload\":{\"S\":\"x\"}}}",
        &arena);
    stage_restart(&stage);
    func_set_pattern(stage.func, answer, &answering);
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(answering.calls, 1);
    check_tombstone(&stage);
    arena_free(&arena);
    close_answering(&stage);
}

/* What others left is found by the index of open calls. */
TEST(tombstone_is_no_open_call)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, "{}");
    for (int i = 0; i < 20; i++) put_call(&stage, arena_printf(&arena, "e%d", i).data, SLICE("{}"));
    struct slice open = stage_dynamo(&stage, "Scan",
                                     "{\"TableName\":\"quipu-invocations\",\"IndexName\":\"open\"}", &arena);
    CHECK(slice_contains(open, SLICE("\"ScannedCount\":0")));
    CHECK_INT(raw_count(&arena, items_of(&stage, "quipu-invocations", &arena)), 20);
    struct slice expiry = stage_dynamo(&stage, "DescribeTimeToLive", "{\"TableName\":\"quipu-invocations\"}",
                                       &arena);
    CHECK(slice_contains(expiry, SLICE("\"expires\"")));
    arena_free(&arena);
    close_answering(&stage);
}

/* The letter is a child of the call's end: a failed call is told of once. */
TEST(tombstone_of_a_call_that_failed)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, "it has no such task");
    answering.is_fine = false;
    for (int i = 0; i < 2; i++) {
        put_call(&stage, "e1", SLICE("{}"));
        CHECK_INT(raw_count(&arena, items_of(&stage, "quipu-queues", &arena)), 1);
        check_tombstone(&stage);
    }
    CHECK_INT(stats_read(&stage.func->queue->stats.failed), 1);
    arena_free(&arena);
    close_answering(&stage);
}

TEST(without_transactions_more_than_one_effect_is_refused)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, "{\"quipu\":{\"transact\":[" COUNT_UP "," COUNT_UP "]}}");
    put_call(&stage, "e1", SLICE("{}"));
    CHECK_INT(counted(&stage), 0);
    struct slice call = items_of(&stage, "quipu-invocations", &arena);
    CHECK(slice_contains(call,
                         SLICE("\"attempts\":{\"N\":\"1\"}"))); /* the function's error: it is tried again */
    atomic_store(&stage.ahead_ms, 7 * 3600 * 1000);             /* it is too old for that now */
    func_queue_wake(stage.func);
    CHECK(stage_until(is_idle, &stage));
    check_tombstone(&stage);
    arena_free(&arena);
    close_answering(&stage);
}

static void redrive(struct stage *stage, const char *expected)
{
    struct arena arena = {0};
    struct slice reply;
    CHECK_INT(stage_rest(stage, "POST", "/v1/queues/aside/redrive", "{}", &arena, &reply), 200);
    CHECK_TEXT(reply, expected);
    CHECK(stage_until(is_idle, stage));
    arena_free(&arena);
}

/* Z2: its call is put first, under an id that follows from the letter; so a letter that stays or comes again after that
 * does not run it twice. */
TEST(tombstone_of_a_call_that_was_redriven)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    open_answering(&stage, &answering, "it has no such task");
    answering.is_fine = false;
    put_call(&stage, "e1", SLICE("{}"));
    struct raw_walk walk;
    struct slice letter;
    raw_walk_begin(&walk, &arena, items_of(&stage, "quipu-queues", &arena));
    CHECK(raw_walk_next(&walk, NULL, &letter));
    answering.is_fine = true;
    redrive(&stage, "{\"redriven\":1,\"refused\":0,\"later\":0,\"left\":0,\"reasons\":[]}\n");
    CHECK_INT(answering.calls, 2);
    CHECK_INT(raw_count(&arena, items_of(&stage, "quipu-queues", &arena)), 0);
    struct slice put = arena_printf(&arena, "{\"TableName\":\"quipu-queues\",\"Item\":%.*s}",
                                    SLICE_ARG(letter));
    stage_dynamo(&stage, "PutItem", put.data, &arena);
    redrive(&stage, "{\"redriven\":1,\"refused\":0,\"later\":0,\"left\":0,\"reasons\":[]}\n");
    CHECK_INT(answering.calls, 2);
    CHECK_INT(raw_count(&arena, items_of(&stage, "quipu-queues", &arena)), 0);
    CHECK_INT(raw_count(&arena, items_of(&stage, "quipu-invocations", &arena)), 2);
    arena_free(&arena);
    close_answering(&stage);
}

/* Z1: what a letter holds elsewhere is there before it, and goes after it. */
TEST(tombstone_of_a_call_whose_letter_holds_it)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    struct buf payload = {0};
    buf_byte(&payload, '"');
    while (payload.len < 3 * LIMIT_QUEUE_PART_BYTES) buf_text(&payload, "\xc3\xa4");
    buf_byte(&payload, '"');
    open_answering(&stage, &answering, "it has no such task");
    answering.is_fine = false;
    put_call(&stage, "e1", buf_view(&payload));
    CHECK_INT(raw_count(&arena, items_of(&stage, "quipu-queues", &arena)), 1);
    answering.is_fine = true;
    redrive(&stage, "{\"redriven\":1,\"refused\":0,\"later\":0,\"left\":0,\"reasons\":[]}\n");
    CHECK_INT(answering.calls, 2);
    CHECK_INT(answering.event_len, (int64_t)payload.len);
    struct slice left = items_of(&stage, "quipu-invocations", &arena);
    CHECK_INT(raw_count(&arena, left), 2); /* two tombstones */
    CHECK(!slice_contains(left, SLICE("letter/")));
    buf_free(&payload);
    arena_free(&arena);
    close_answering(&stage);
}

/* Whoever ran the call has died before its outcome was written: the function is not run again, since it might return
 * something else. */
TEST(tombstone_of_a_call_whose_outcome_was_kept)
{
    struct stage stage;
    struct answering answering;
    struct arena arena = {0};
    struct buf request = {0}, reply = {0};
    open_answering(&stage, &answering, "{}");
    CHECK(queue_table_make(stage.func->queue));
    buf_text(
        &request,
        "{\"TableName\":\"quipu-invocations\",\"Item\":{\"id\":{\"S\":\"e1\"},\"part\":{\"N\":\"0\"},"
        "\"open\":{\"S\":\"e1\"},\"payload\":{\"S\":\"{}\"},\"accepted\":{\"N\":\"1\"},\"due\":{\"N\":\"1\"},"
        "\"attempts\":{\"N\":\"0\"},\"parts\":{\"N\":\"1\"},\"fence\":{\"N\":\"3\"},\"owner\":{\"S\":\"dead\"},"
        "\"until\":{\"N\":\"2\"},\"told\":{\"S\":\"\"},\"function\":{\"S\":");
    json_put_string(&request, SLICE(CALL));
    buf_text(&request, "},\"effects\":{\"S\":");
    json_put_string(&request, SLICE(COUNT_UP));
    buf_text(&request, "}}}");
    CHECK_INT(dynamo_call(stage.dynamo, SLICE("PutItem"), buf_view(&request), &reply), 200);
    stage_restart(&stage);
    func_set_pattern(stage.func, answer, &answering);
    CHECK(stage_until(is_idle, &stage));
    CHECK_INT(answering.calls, 0);
    CHECK_INT(counted(&stage), 1);
    check_tombstone(&stage);
    buf_free(&request);
    buf_free(&reply);
    arena_free(&arena);
    close_answering(&stage);
}
