/* Commits: the same decision with and without transactions, on engines in memory, with any call failing, getting lost
 * or being the last one before a crash. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/raw.h"
#include "task/task.h"
#include "unit/test.h"

/* What becomes of one call. */
enum mishap {
    THROTTLED,    /* it does not happen */
    LOST,         /* it happens, and nobody is told */
    CRASH_BEFORE, /* it does not happen, and nothing else does */
    CRASH_BEHIND, /* it is the last thing that happens */
    MISHAPS,
    LATE, /* it is answered with a time-out, and happens when stage_late is called */
};

struct stage {
    struct dynamo *dynamo;
    struct task_host *host;
    bool has_transactions;
    unsigned calls; /* that were begun, of writes */
    unsigned at;    /* the number of the call that has the mishap, from 1; 0: none */
    enum mishap mishap;
    struct dynamo_call *hanging; /* that is never answered */
    struct task_commit commit;
    struct task_commit_reply reply;
    unsigned tries;
    char item[400];
    bool is_over;
    struct slice log[40];
    struct arena arena;
    char *late_name, *late_request;
};

static void answer(struct dynamo_call *call, int status, const char *error)
{
    call->status = status;
    call->error = error;
    call->reply->len = 0;
    buf_printf(call->reply, "{\"__type\":\"%s\",\"message\":\"a test\"}", error);
}

static void call_engine(struct stage *stage, struct dynamo_call *call)
{
    struct slice name, message;
    if (call->needs_transactions && dynamo_kind(stage->dynamo) == DYNAMO_KIND_ALTERNATOR) {
        answer(call, 400, DYNAMO_NO_TRANSACTIONS); /* as a remote door does */
        return;
    }
    call->status = dynamo_call_wait(stage->dynamo, &(struct dynamo_call){.name = call->name,
                                                                         .request = call->request,
                                                                         .cause = call->cause,
                                                                         .reply = call->reply});
    call->error = NULL;
    if (call->status == 200) return;
    dynamo_error(buf_view(call->reply), call->arena, &name, &message);
    call->error = arena_printf(call->arena, "%.*s", SLICE_ARG(name)).data;
}

static bool stage_begin(void *self, struct dynamo_call *call)
{
    struct stage *stage = self;
    ensure(stage->calls < 40);
    stage->log[stage->calls++] = arena_copy(&stage->arena, call->name);
    if (stage->calls != stage->at) {
        call_engine(stage, call);
        return true;
    }
    if (stage->mishap == LATE) {
        stage->late_name = strndup(call->name.data, call->name.len);
        stage->late_request = strndup(call->request.data, call->request.len);
        answer(call, 500, "InternalServerError");
        return true;
    }
    if (stage->mishap == THROTTLED) {
        answer(call, 400, "ThrottlingException");
        return true;
    }
    if (stage->mishap != CRASH_BEFORE) call_engine(stage, call);
    if (stage->mishap == LOST) {
        answer(call, 500, "InternalServerError");
        return true;
    }
    stage->hanging = call;
    return false;
}

static void stage_turn_end(void *self)
{
    (void)self;
}

static void stage_finish(void *self, struct dynamo_call *call)
{
    (void)self, (void)call;
}

static int64_t stage_clock(void *self)
{
    (void)self;
    return 1000000;
}

static bool stage_has_transactions(void *self)
{
    return ((struct stage *)self)->has_transactions;
}

static void commit_task(void *argument)
{
    struct stage *stage = argument;
    do {
        stage->reply = task_commit(&stage->commit);
        ensure(++stage->tries < 20);
    } while (stage->reply.end == COMMIT_MAY_PASS);
    snprintf(stage->item, sizeof stage->item, "%.*s", SLICE_ARG(stage->reply.item));
    if (stage->reply.message.len) stage->reply.message = arena_copy(&stage->arena, stage->reply.message);
    if (stage->reply.error.len) stage->reply.error = arena_copy(&stage->arena, stage->reply.error);
    stage->is_over = true;
}

static void host_open(struct stage *stage)
{
    stage->host = task_host_new(&(struct task_environment){.self = stage,
                                                           .begin = stage_begin,
                                                           .turn_end = stage_turn_end,
                                                           .finish = stage_finish,
                                                           .now_ms = stage_clock,
                                                           .ticks_us = stage_clock,
                                                           .has_transactions = stage_has_transactions},
                                7);
}

static void host_close(struct stage *stage)
{
    if (stage->hanging) task_call_drop(stage->hanging);
    stage->hanging = NULL;
    task_host_free(stage->host);
    stage->host = NULL;
}

static int stage_call(struct stage *stage, const char *operation, const char *request, struct buf *reply)
{
    reply->len = 0;
    return dynamo_call(stage->dynamo, slice_of(operation), slice_of(request), reply);
}

static void stage_do(struct stage *stage, const char *operation, const char *request)
{
    struct buf reply = {0};
    int status = stage_call(stage, operation, request, &reply);
    if (status != 200) test_failed(__FILE__, __LINE__, "%s: %.*s", operation, SLICE_ARG(buf_view(&reply)));
    buf_free(&reply);
}

static void stage_open(struct stage *stage, bool has_transactions)
{
    char error[300] = "";
    struct imitation_options options;
    *stage = (struct stage){.has_transactions = has_transactions};
    ensure(imitation_options_read("alternator,index-delay=0", &options, error, sizeof error));
    stage->dynamo = has_transactions
                        ? dynamo_open(":memory:", &(struct dynamo_options){0}, error, sizeof error)
                        : dynamo_open_imitation(&options, &(struct dynamo_options){0}, error, sizeof error);
    ensure(stage->dynamo);
    stage_do(stage, "CreateTable",
             "{\"TableName\":\"Tab\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}],"
             "\"AttributeDefinitions\":[{\"AttributeName\":\"k\",\"AttributeType\":\"S\"}],"
             "\"BillingMode\":\"PAY_PER_REQUEST\"}");
    stage_do(stage, "PutItem",
             "{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"anchor\"},\"n\":{\"N\":\"0\"}}}");
    stage_do(stage, "PutItem", "{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"left\"}}}");
    host_open(stage);
}

static void stage_close(struct stage *stage)
{
    host_close(stage);
    dynamo_close(stage->dynamo);
    arena_free(&stage->arena);
}

/* Until it is decided, with a new host where the one before has crashed. */
static void stage_run(struct stage *stage)
{
    stage->is_over = false;
    stage->tries = stage->calls = 0;
    for (;;) {
        task_begin(stage->host, commit_task, stage);
        task_host_step(stage->host);
        if (stage->is_over) return;
        host_close(stage);
        host_open(stage);
    }
}

/* An item as JSON, without the marks; empty: it is not there. */
static struct slice item_of(struct stage *stage, const char *key)
{
    struct buf reply = {0}, out = {0};
    struct raw_walk walk;
    struct slice name, value;
    char request[200];
    snprintf(request, sizeof request,
             "{\"TableName\":\"Tab\",\"ConsistentRead\":true,\"Key\":{\"k\":{\"S\":\"%s\"}}}", key);
    CHECK_INT(stage_call(stage, "GetItem", request, &reply), 200);
    raw_walk_begin(&walk, &stage->arena, raw_member(&stage->arena, buf_view(&reply), "Item"));
    while (raw_walk_next(&walk, &name, &value))
        if (!slice_equal(name, SLICE(TASK_APPLIED)))
            buf_printf(&out, "%.*s=%.*s ", SLICE_ARG(name), SLICE_ARG(value));
    struct slice text = arena_copy(&stage->arena, buf_view(&out));
    buf_free(&reply);
    buf_free(&out);
    return text;
}

static size_t mark_count(struct stage *stage, const char *key)
{
    struct buf reply = {0};
    char request[200];
    snprintf(request, sizeof request,
             "{\"TableName\":\"Tab\",\"ConsistentRead\":true,\"Key\":{\"k\":{\"S\":\"%s\"}}}", key);
    CHECK_INT(stage_call(stage, "GetItem", request, &reply), 200);
    struct slice copy = arena_copy(&stage->arena, buf_view(&reply));
    buf_free(&reply);
    struct slice marks = raw_member(&stage->arena, raw_member(&stage->arena, copy, "Item"), TASK_APPLIED);
    return raw_count(&stage->arena, raw_member(&stage->arena, marks, "L"));
}

#define KEY(k) "\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"" k "\"}}"
#define ANCHOR(from, to)                                                                                     \
    "{\"Update\":{" KEY(                                                                                     \
        "anchor") ",\"UpdateExpression\":\"SET n = :n\",\"ConditionExpression\":\"n = :old\","               \
                  "\"ExpressionAttributeValues\":{\":n\":{\"N\":\"" to "\"},\":old\":{\"N\":\"" from "\"}}," \
                  "\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}}"
#define CHILD(k)                                                                                             \
    "{\"Update\":{" KEY(k) ",\"UpdateExpression\":\"SET v = if_not_exists(v, :v)\","                         \
                           "\"ExpressionAttributeValues\":{\":v\":{\"S\":\"of " k "\"}}}}"
#define ADD(k)                                                                                               \
    "{ \"Update\" : {" KEY(k) ",\"UpdateExpression\":\"ADD c :one\",\"ExpressionAttributeValues\":"          \
                              "{\":one\":{\"N\":\"1\"}}}}"

static struct task_commit whole(void)
{
    return (struct task_commit){.anchor = SLICE(ANCHOR("0", "1")),
                                .children = SLICE(CHILD("a") "," CHILD("b")),
                                .removals = SLICE("{\"Delete\":{" KEY("left") "}}"),
                                .effects = SLICE(ADD("counter")),
                                .source = SLICE("lane"),
                                .marker = SLICE("1")};
}

static void check_whole(struct stage *stage)
{
    CHECK_TEXT(item_of(stage, "anchor"), "k={\"S\":\"anchor\"} n={\"N\":\"1\"} ");
    CHECK_TEXT(item_of(stage, "a"), "k={\"S\":\"a\"} v={\"S\":\"of a\"} ");
    CHECK_TEXT(item_of(stage, "b"), "k={\"S\":\"b\"} v={\"S\":\"of b\"} ");
    CHECK_TEXT(item_of(stage, "counter"), "c={\"N\":\"1\"} k={\"S\":\"counter\"} ");
}

/* ---- all goes well ---- */

TEST(a_commit_is_one_transaction_where_there_are_some)
{
    struct stage stage;
    stage_open(&stage, true);
    stage.commit = whole();
    stage_run(&stage);
    CHECK_INT(stage.reply.end, COMMIT_DONE);
    CHECK_INT(stage.calls, 1);
    CHECK_TEXT(stage.log[0], "TransactWriteItems");
    check_whole(&stage);
    CHECK_TEXT(item_of(&stage, "left"), "");
    CHECK_INT(mark_count(&stage, "counter"), 0);
    stage_close(&stage);
}

TEST(an_anchor_alone_is_a_plain_write)
{
    for (int way = 0; way < 2; way++) {
        struct stage stage;
        stage_open(&stage, way);
        stage.commit = (struct task_commit){.anchor = SLICE(ANCHOR("0", "1"))};
        stage_run(&stage);
        CHECK_INT(stage.reply.end, COMMIT_DONE);
        CHECK_INT(stage.calls, 1);
        CHECK_TEXT(stage.log[0], "UpdateItem");
        stage_close(&stage);
    }
}

TEST(without_transactions_a_commit_ends_with_its_anchor_and_a_tombstone)
{
    for (int way = 0; way < 2; way++) {
        struct stage stage;
        stage_open(&stage, way);
        stage.commit = whole();
        stage.commit.anchor = SLICE("{\"Delete\":{" KEY("anchor") "}}");
        stage.commit.tombstone = SLICE(ANCHOR("0", "2"));
        stage_run(&stage);
        CHECK_INT(stage.reply.end, COMMIT_DONE);
        CHECK_INT(stage.calls, way ? 1 : 5);
        CHECK_TEXT(item_of(&stage, "anchor"), way ? "" : "k={\"S\":\"anchor\"} n={\"N\":\"2\"} ");
        CHECK_TEXT(item_of(&stage, "left"), "");
        stage_close(&stage);
    }
}

/* A host may be told only by the first call that there are none. */
TEST(a_commit_finds_out_that_there_are_no_transactions)
{
    struct stage stage;
    stage_open(&stage, false);
    stage.has_transactions = true;
    stage.commit = (struct task_commit){.anchor = SLICE(ANCHOR("0", "1")), .children = SLICE(CHILD("a"))};
    stage_run(&stage);
    CHECK_INT(stage.reply.end, COMMIT_DONE);
    CHECK_INT(stage.calls, 3);
    stage.commit.anchor = SLICE(ANCHOR("1", "2"));
    stage_run(&stage);
    CHECK_INT(stage.calls, 2); /* it is known now */
    stage_close(&stage);
}

/* ---- mishaps ---- */

/* Any one call has a mishap, and what is repeated ends in the same state as if it had not. */
TEST(a_commit_is_repeated_after_a_mishap_at_any_call)
{
    for (int way = 0; way < 2; way++) {
        for (unsigned mishap = 0; mishap < MISHAPS; mishap++) {
            for (unsigned at = 1;; at++) {
                struct stage stage;
                stage_open(&stage, way);
                stage.commit = whole();
                stage.at = at;
                stage.mishap = mishap;
                stage_run(&stage);
                check_whole(&stage);
                bool is_over = stage.calls < at;
                /* What had happened before nobody knew of it is found. */
                if (stage.reply.end == COMMIT_CONDITION)
                    CHECK_TEXT(slice_of(stage.item), "{\"k\":{\"S\":\"anchor\"},\"n\":{\"N\":\"1\"}}");
                else
                    CHECK_INT(stage.reply.end, COMMIT_DONE);
                stage_close(&stage);
                if (is_over) break;
            }
        }
    }
}

/* The same of a Put, whose own condition would fail the second time. */
TEST(a_put_that_must_be_the_first_is_found_by_its_repeat)
{
    for (int way = 0; way < 2; way++) {
        for (unsigned mishap = 0; mishap < MISHAPS; mishap++) {
            for (unsigned at = 1;; at++) {
                struct stage stage;
                stage_open(&stage, way);
                stage.commit = whole();
                stage.commit.effects = SLICE(
                    "{\"Put\":{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"counter\"},"
                    "\"c\":{\"N\":\"1\"}},\"ConditionExpression\":"
                    "\"attribute_not_exists(k)\"}}");
                stage.at = at;
                stage.mishap = mishap;
                stage_run(&stage);
                check_whole(&stage);
                CHECK(stage.reply.end == COMMIT_DONE || stage.reply.end == COMMIT_CONDITION);
                bool is_over = stage.calls < at;
                stage_close(&stage);
                if (is_over) break;
            }
        }
    }
}

/* A lease that is over: what was not decided before is not any more. */
TEST(a_commit_writes_nothing_when_its_time_is_over)
{
    struct stage stage;
    stage_open(&stage, false);
    stage.commit = whole();
    stage.commit.until_us = stage_clock(&stage) + 1;
    stage_run(&stage);
    CHECK_INT(stage.reply.end, COMMIT_DONE);
    stage.commit.anchor = SLICE(ANCHOR("1", "2"));
    stage.commit.until_us = stage_clock(&stage);
    stage.calls = 0;
    stage.reply = task_commit_wait(stage.host, &stage.commit, &stage.arena);
    CHECK_INT(stage.reply.end, COMMIT_MAY_PASS);
    CHECK_INT(stage.calls, 0);
    stage_close(&stage);
}

/* ---- who is at fault ---- */

static void check_fault(struct task_commit commit, enum task_commit_end end, enum task_commit_part part,
                        unsigned number, const char *error)
{
    for (int way = 0; way < 2; way++) {
        struct stage stage;
        stage_open(&stage, way);
        stage.commit = commit;
        stage_run(&stage);
        CHECK_INT(stage.reply.end, end);
        CHECK_INT(stage.reply.part, part);
        if (end == COMMIT_REFUSED) {
            CHECK_INT(stage.reply.number, number);
            CHECK(slice_starts(stage.reply.error, slice_of(error)));
        }
        CHECK_TEXT(item_of(&stage, "anchor"), "k={\"S\":\"anchor\"} n={\"N\":\"0\"} ");
        stage_close(&stage);
    }
}

TEST(a_commit_tells_whose_fault_it_was)
{
    struct task_commit commit = whole();
    commit.anchor = SLICE(ANCHOR("7", "8"));
    check_fault(commit, COMMIT_CONDITION, COMMIT_ANCHOR, 1, "");
    commit = whole();
    commit.effects = SLICE("{\"Update\":{" KEY(
        "counter") ",\"UpdateExpression\":\"SET x = :x\",\"ConditionExpression\":"
                   "\"attribute_exists(x)\",\"ExpressionAttributeValues\":{\":x\":{\"S\":\"1\"}}}}");
    check_fault(commit, COMMIT_REFUSED, COMMIT_EFFECT, 1, "ConditionalCheckFailed");
    commit.effects = SLICE(
        "{\"Put\":{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"c\"}},\"ConditionExpression\":"
        "\"attribute_exists(x)\"}}");
    check_fault(commit, COMMIT_REFUSED, COMMIT_EFFECT, 1, "ConditionalCheckFailed");
    commit = whole();
    commit.children = SLICE(
        CHILD("a") ",{\"Update\":{" KEY("b") ",\"UpdateExpression\":\"SET v = v + :v\","
                                             "\"ExpressionAttributeValues\":{\":v\":{\"N\":\"1\"}}}}");
    check_fault(commit, COMMIT_REFUSED, COMMIT_CHILD, 2, "ValidationE");
}

TEST(a_child_that_is_there_already_is_no_fault)
{
    for (int way = 0; way < 2; way++) {
        struct stage stage;
        stage_open(&stage, way);
        stage_do(&stage, "PutItem",
                 "{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"b\"},\"v\":{\"S\":\"of b\"}}}");
        stage.commit = whole();
        stage.commit.children = SLICE(
            CHILD("a") ",{\"Put\":{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"b\"}},"
                       "\"ConditionExpression\":\"attribute_not_exists(k)\"}}");
        stage_run(&stage);
        CHECK_INT(stage.reply.end, COMMIT_DONE);
        check_whole(&stage);
        stage_close(&stage);
    }
}

TEST(without_transactions_one_put_or_update_is_all)
{
    static const struct {
        const char *effects, *message;
    } cases[] = {
        {ADD("x") "," ADD("y"),
         "The database is ScyllaDB Alternator, which has no transactions: a function can "
         "return one Put or Update there, not 2 writes."},
        {"{\"Delete\":{" KEY("x") "}}",
         "The database is ScyllaDB Alternator, which has no transactions: a function "
         "can return one Put or Update there, and no Delete."},
        {"{\"ConditionCheck\":{" KEY("x") ",\"ConditionExpression\":\"attribute_exists(k)\"}}",
         "The database is ScyllaDB Alternator, which has no transactions: a function can return one Put or Update "
         "there, and no ConditionCheck."},
        {"{\"Update\":{\"TableName\":\"Tab\"}}", "An Update must have TableName, Key and UpdateExpression."},
        {"{\"Update\":{" KEY("x") ",\"UpdateExpression\":7}}",
         "An Update must have TableName, Key and UpdateExpression."},
        {"{\"Put\":{\"TableName\":\"Tab\",\"Item\":[1]}}", "A Put must have TableName and Item."},
        {"{\"Put\":{\"Item\":{}}}", "A Put must have TableName and Item."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage;
        stage_open(&stage, false);
        stage.commit = whole();
        stage.commit.effects = slice_of(cases[i].effects);
        stage_run(&stage);
        CHECK_INT(stage.reply.end, COMMIT_REFUSED);
        CHECK_INT(stage.reply.part, COMMIT_EFFECT);
        CHECK_TEXT(stage.reply.message, cases[i].message);
        CHECK_INT(stage.calls, 0);
        stage_close(&stage);
    }
}

/* ---- marks ---- */

/* Updates of every form get their mark, and do what they say. */
TEST(the_marks_of_updates_do_not_change_what_they_do)
{
    static const char *const updates[] = {
        "\"UpdateExpression\":\"set x = :x remove y\",\"ExpressionAttributeValues\":{\":x\":{\"N\":\"5\"}}",
        "\"UpdateExpression\":\"REMOVE #set SET x=:x\",\"ExpressionAttributeNames\":{\"#set\":\"set\"},"
        "\"ExpressionAttributeValues\":{\":x\":{\"N\":\"5\"}}",
        "\"UpdateExpression\":\"ADD x :x\",\"ExpressionAttributeValues\":{\":x\":{\"N\":\"5\"}},"
        "\"ConditionExpression\":\"attribute_not_exists(x) OR x > :x\"",
        "\"UpdateExpression\":\"SET #quipu_applied = :quipu_applied\",\"ExpressionAttributeNames\":"
        "{\"#quipu_applied\":\"x\"},\"ExpressionAttributeValues\":{\":quipu_applied\":{\"N\":\"5\"}}",
    };
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        for (int way = 0; way < 2; way++) {
            struct stage stage;
            stage_open(&stage, way);
            stage.commit = whole();
            stage.commit.effects = arena_printf(&stage.arena, "{\"Update\":{" KEY("u") ",%s}}", updates[i]);
            stage_run(&stage);
            CHECK_INT(stage.reply.end, COMMIT_DONE);
            CHECK_TEXT(item_of(&stage, "u"), "k={\"S\":\"u\"} x={\"N\":\"5\"} ");
            CHECK_INT(mark_count(&stage, "u"), way ? 0 : 1);
            stage_close(&stage);
        }
    }
}

/* Many effects on one item, of one source and of many: each happens once, and the list of marks stays short. */
TEST(marks_stay_few)
{
    for (int is_put = 0; is_put < 2; is_put++) {
        struct stage stage;
        stage_open(&stage, false);
        for (int i = 0; i < 100; i++) {
            char anchor[600], source[20], marker[20];
            snprintf(anchor, sizeof anchor,
                     "{\"Update\":{" KEY(
                         "anchor") ",\"UpdateExpression\":\"SET n = :n\",\"ConditionExpression\":"
                                   "\"n = :old\",\"ExpressionAttributeValues\":{\":n\":{\"N\":\"%d\"},"
                                   "\":old\":{\"N\":\"%d\"}}}}",
                     i + 1, i);
            snprintf(source, sizeof source, i % 2 ? "lane" : "call %d", i);
            snprintf(marker, sizeof marker, "%d", i);
            stage.commit = (struct task_commit){.anchor = slice_of(anchor),
                                                .effects = SLICE(ADD("counter")),
                                                .source = slice_of(source),
                                                .marker = slice_of(marker)};
            if (is_put)
                stage.commit.effects = arena_printf(&stage.arena,
                                                    "{\"Put\":{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":"
                                                    "\"counter\"},\"c\":{\"N\":\"%d\"}}}}",
                                                    i + 1);
            stage.at = (unsigned)i %
                       7; /* the reply of the effect is lost now and then, or that of the anchor */
            stage.mishap = LOST;
            stage_run(&stage);
            CHECK(stage.reply.end == COMMIT_DONE || stage.reply.end == COMMIT_CONDITION);
            CHECK(mark_count(&stage, "counter") <= 64);
            arena_reset(&stage.arena);
        }
        CHECK_TEXT(item_of(&stage, "counter"), "c={\"N\":\"100\"} k={\"S\":\"counter\"} ");
        CHECK(mark_count(&stage, "counter") < 48);
        stage_close(&stage);
    }
}

/* The copy of a write that timed out happens after many others, when the item has forgotten its mark: it must not
 * happen again. */
TEST(an_effect_that_happens_late_happens_once)
{
    for (int is_put = 0; is_put < 2; is_put++) {
        for (int first = 0; first < 30; first += 29) { /* on a new item, and on one that has a list */
            struct stage stage;
            struct buf reply = {0};
            stage_open(&stage, false);
            for (int i = 0; i < 100; i++) {
                char anchor[600], source[20];
                snprintf(anchor, sizeof anchor,
                         "{\"Update\":{" KEY("anchor") ",\"UpdateExpression\":\"SET n = :n\","
                                                       "\"ExpressionAttributeValues\":{\":n\":{\"N\":\"%d\"}}}}",
                         i);
                snprintf(source, sizeof source, "call %d", i);
                stage.commit = (struct task_commit){.anchor = slice_of(anchor),
                                                    .effects = SLICE(ADD("counter")),
                                                    .source = slice_of(source),
                                                    .marker = SLICE("1")};
                if (is_put)
                    stage.commit.effects = arena_printf(&stage.arena,
                                                        "{\"Put\":{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":"
                                                        "\"counter\"},\"c\":{\"N\":\"%d\"}}}}",
                                                        i + 1);
                stage.at = i == first ? (first ? 2 : 1) : 0; /* the first of two is refused where there is a list */
                stage.mishap = LATE;
                stage_run(&stage);
                CHECK_INT(stage.reply.end, COMMIT_DONE);
                arena_reset(&stage.arena);
            }
            CHECK(stage.late_request && strstr(stage.late_request, "quipu:applied"));
            dynamo_call(stage.dynamo, slice_of(stage.late_name), slice_of(stage.late_request), &reply);
            CHECK(slice_contains(buf_view(&reply), SLICE("ConditionalCheckFailed")));
            CHECK_TEXT(item_of(&stage, "counter"), "c={\"N\":\"100\"} k={\"S\":\"counter\"} ");
            free(stage.late_name);
            free(stage.late_request);
            buf_free(&reply);
            stage_close(&stage);
        }
    }
}

/* Effects whose commits never ended do not fill an item; the last ones are still found. */
TEST(marks_that_nobody_decided_are_bounded)
{
    struct stage stage;
    char source[20];
    stage_open(&stage, false);
    for (int i = 0; i < 150; i++) {
        snprintf(source, sizeof source, "call %d", i);
        stage.commit = (struct task_commit){.anchor = SLICE(ANCHOR("7", "8")),
                                            .effects = SLICE(ADD("counter")),
                                            .source = slice_of(source),
                                            .marker = SLICE("end")};
        stage_run(&stage);
        CHECK_INT(stage.reply.end, COMMIT_CONDITION);
        arena_reset(&stage.arena);
    }
    CHECK_INT(mark_count(&stage, "counter"), 64);
    stage_run(&stage); /* the last one again */
    CHECK_TEXT(item_of(&stage, "counter"), "c={\"N\":\"150\"} k={\"S\":\"counter\"} ");
    stage_close(&stage);
}
