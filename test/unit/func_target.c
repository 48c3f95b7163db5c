/* Targets without a process: what tables and queues answer, what those answers do in a database, and how URLs
 * are called. */
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/digest.h"
#include "base/fail.h"
#include "base/limits.h"
#include "func/target.h"
#include "unit/test.h"

/* ---- a func with just what targets use ---- */

static int64_t fixed_now_ms(void *self)
{
    (void)self;
    return 1794714126123; /* 2026-11-15T03:42:06.123Z */
}
static const struct clock fixed_clock = {fixed_now_ms, NULL};

static void func_make(struct func *func)
{
    char error[256];
    memset(func, 0, sizeof *func);
    func->options.clock = &fixed_clock;
    func->options.dynamo = dynamo_open(":memory:", NULL, error, sizeof error);
    ensure(func->options.dynamo);
    func->prefix = SLICE("quipu-");
    func->workers = workers_new(1);
}

static void func_unmake(struct func *func)
{
    workers_free(func->workers);
    dynamo_close(func->options.dynamo);
}

static struct function table_function(void)
{
    return (struct function){
        .kind = FUNCTION_TABLE, .name = SLICE("copy"), .version = SLICE("$LATEST"), .table = SLICE("mirror")};
}

static struct function queue_function(void)
{
    return (struct function){
        .kind = FUNCTION_QUEUE, .name = SLICE("keep"), .version = SLICE("7"), .queue = SLICE("letters")};
}

/* ---- an invocation that is waited for ---- */

struct invoked {
    struct invocation invocation;
    struct arena arena;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    unsigned done;
};

static void note_done(struct invocation *invocation)
{
    struct invoked *invoked = invocation->context;
    pthread_mutex_lock(&invoked->lock);
    invoked->done++;
    pthread_cond_signal(&invoked->ended);
    pthread_mutex_unlock(&invoked->lock);
}

static void note_nothing(struct invocation *invocation)
{
    (void)invocation;
}

static void invoke(struct func *func, struct function *function, struct invoked *invoked, struct slice event)
{
    memset(invoked, 0, sizeof *invoked);
    pthread_mutex_init(&invoked->lock, NULL);
    pthread_cond_init(&invoked->ended, NULL);
    invoked->invocation = (struct invocation){
        .payload = event, .arena = &invoked->arena, .done = note_done, .context = invoked};
    target_invoke(func, function, &invoked->invocation);
    pthread_mutex_lock(&invoked->lock);
    while (!invoked->done) pthread_cond_wait(&invoked->ended, &invoked->lock);
    pthread_mutex_unlock(&invoked->lock);
    CHECK_INT(invoked->done, 1);
    CHECK_INT(strlen(invoked->invocation.request_id), 36);
    CHECK(invoked->invocation.started_us > 0);
}

static void invoked_free(struct invoked *invoked)
{
    buf_free(&invoked->invocation.reply);
    arena_free(&invoked->arena);
    pthread_mutex_destroy(&invoked->lock);
    pthread_cond_destroy(&invoked->ended);
}

static void expect_reply(struct func *func, struct function function, const char *event,
                         enum invocation_end end, const char *reply)
{
    struct invoked invoked;
    invoke(func, &function, &invoked, slice_of(event));
    CHECK_INT(invoked.invocation.end, end);
    CHECK_TEXT(buf_view(&invoked.invocation.reply), reply);
    CHECK((invoked.invocation.error_kind != NULL) == (end == INVOCATION_FAILED));
    invoked_free(&invoked);
}

/* ---- tables ---- */

#define RECORD(event, more)                                                                                  \
    "{\"eventID\":\"1\",\"eventName\":\"" event "\",\"eventSource\":\"aws:dynamodb\",\"dynamodb\":{" more "}}"
#define KEYS(id)     "\"Keys\":{\"id\":{\"S\":\"" id "\"}}"
#define IMAGE(id, n) "\"NewImage\":{\"id\":{\"S\":\"" id "\"},\"n\":{\"N\":\"" n "\"}}"
#define PUT(id, n)                                                                                           \
    "{\"Put\":{\"TableName\":\"mirror\",\"Item\":{\"id\":{\"S\":\"" id "\"},\"n\":{\"N\":\"" n "\"}}}}"

TEST(target_table_writes_images)
{
    struct func func = {.options.clock = &fixed_clock};
    expect_reply(&func, table_function(), "{\"Records\":[]}", INVOCATION_ANSWERED,
                 "{\"quipu\":{\"transact\":[]}}");
    expect_reply(
        &func, table_function(),
        "{\"Records\":[" RECORD("INSERT", KEYS("a") "," IMAGE("a", "1")) "," RECORD(
            "MODIFY", IMAGE("b", "2") "," KEYS("b") ",\"SizeBytes\":3") "," RECORD("REMOVE", KEYS("c")) "]}",
        INVOCATION_ANSWERED,
        "{\"quipu\":{\"transact\":[" PUT("a", "1") "," PUT(
            "b", "2") ",{\"Delete\":{\"TableName\":\"mirror\",\"Key\":{\"id\":{\"S\":\"c\"}}}}]}}");
}

/* A transaction may touch an item once: the last record tells how it is. */
TEST(target_table_keeps_the_last_of_each_key)
{
    struct func func = {.options.clock = &fixed_clock};
    expect_reply(&func, table_function(),
                 "{\"Records\":[" RECORD("INSERT", KEYS("a") "," IMAGE("a", "1"))
                 "," RECORD("INSERT", KEYS("b") "," IMAGE("b", "1")) "," RECORD("REMOVE", KEYS("a"))
                 "," RECORD("MODIFY", KEYS("b") "," IMAGE("b", "2")) "]}",
                 INVOCATION_ANSWERED,
                 "{\"quipu\":{\"transact\":[{\"Delete\":{\"TableName\":\"mirror\","
                 "\"Key\":{\"id\":{\"S\":\"a\"}}}}," PUT("b", "2") "]}}");
    expect_reply(
        &func, table_function(),
        "{\"Records\":[" RECORD("REMOVE", KEYS("a")) "," RECORD("INSERT", KEYS("a") "," IMAGE("a", "3")) "]}",
        INVOCATION_ANSWERED, "{\"quipu\":{\"transact\":[" PUT("a", "3") "]}}");
}

/* The same key in another order, with spaces, or with escapes; and keys that only look alike. */
TEST(target_table_knows_keys_by_their_values)
{
    static const struct {
        const char *a, *b;
        unsigned writes;
    } cases[] = {
        {"{\"p\":{\"S\":\"x\"},\"q\":{\"N\":\"1\"}}", "{ \"q\" : {\"N\": \"1\"}, \"p\":{\"S\":\"\\u0078\"} }",
         1},
        {"{\"p\":{\"S\":\"x\"},\"q\":{\"N\":\"1\"}}", "{\"p\":{\"S\":\"x\"},\"q\":{\"N\":\"2\"}}", 2},
        {"{\"p\":{\"S\":\"1\"},\"q\":{\"S\":\"2\"}}", "{\"p\":{\"S\":\"2\"},\"q\":{\"S\":\"1\"}}", 2},
        {"{\"p\":{\"S\":\"1\"}}", "{\"p\":{\"B\":\"1\"}}", 2},
        {"{\"p\":{\"S\":\"1\"}}", "{\"q\":{\"S\":\"1\"}}", 2},
    };
    struct func func = {.options.clock = &fixed_clock};
    struct function function = table_function();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct invoked invoked;
        struct slice members;
        uint32_t count;
        char error[200], event[600];
        snprintf(event, sizeof event,
                 "{\"Records\":[{\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":%s}},"
                 "{\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":%s}}]}",
                 cases[i].a, cases[i].b);
        invoke(&func, &function, &invoked, slice_of(event));
        CHECK_INT(func_effects(buf_view(&invoked.invocation.reply), LIMIT_EFFECTS, &invoked.arena, &members,
                               &count, error, sizeof error),
                  EFFECTS_FOUND);
        CHECK_INT(count, cases[i].writes);
        invoked_free(&invoked);
    }
}

#define BAD(text)  "{\"errorType\":\"Target.BadEvent\",\"errorMessage\":\"" text "\"}"
#define NO_RECORDS BAD("the event has no Records: a table takes records of DynamoDB streams only")

TEST(target_table_refuses_other_events)
{
    static const char *const cases[][2] = {
        {"{}", NO_RECORDS},
        {"[1,2]", NO_RECORDS},
        {"{\"Records\":7}", NO_RECORDS},
        {"", NO_RECORDS},
        {"{\"Records\":[{]}", BAD("the event is no JSON")},
        {"{\"Records\":[]} x", BAD("the event is no JSON")},
        {"nonsense", BAD("the event is no JSON")},
        {"{\"Records\":[" RECORD("REMOVE", "\"Keys\":{\"a\":e") "]}", BAD("the event is no JSON")},
        {"{\"Records\":[5]}", BAD("record 1 is no object")},
        {"{\"Records\":[{\"eventName\":\"INSERT\"}]}",
         BAD("record 1 has no Keys: a table takes records of DynamoDB streams only")},
        {"{\"Records\":[" RECORD("REMOVE", KEYS("a")) ",{\"eventSource\":\"aws:sqs\",\"body\":\"x\"}]}",
         BAD("record 2 is of another source than a DynamoDB stream")},
        {"{\"Records\":[" RECORD("UPSERT", KEYS("a")) "]}",
         BAD("record 1 has no eventName INSERT, MODIFY or REMOVE")},
        {"{\"Records\":[" RECORD("MODIFY", KEYS("a")) "]}",
         BAD("record 1 has no NewImage: the StreamViewType must be NEW_IMAGE or NEW_AND_OLD_IMAGES")},
        {"{\"Records\":[{\"dynamodb\":[]}]}", BAD("record 1 has no object \\\"dynamodb\\\"")},
        {"{\"Records\":[" RECORD("REMOVE", "\"Keys\":{\"a\":{\"S\":5}}") "]}",
         BAD("record 1 has Keys that are no key of an item")},
        {"{\"Records\":[" RECORD("REMOVE",
                                 "\"Keys\":{\"a\":{\"S\":\"\"},\"b\":{\"S\":\"\"},\"c\":{\"S\":\"\"}}") "]}",
         BAD("record 1 has Keys that are no key of an item")},
        {"{\"Records\":[" RECORD("REMOVE", "\"Keys\":\"a\"") "]}",
         BAD("record 1 has Keys that are no object")},
    };
    struct func func = {.options.clock = &fixed_clock};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_reply(&func, table_function(), cases[i][0], INVOCATION_FAILED, cases[i][1]);
}

/* An event of REMOVEs; keys repeat after `distinct`. */
static void removals_make(struct buf *event, unsigned count, unsigned distinct)
{
    buf_text(event, "{\"Records\":[");
    for (unsigned i = 0; i < count; i++)
        buf_printf(event, "%s{\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":{\"id\":{\"S\":\"key-%u\"}}}}",
                   i ? "," : "", i % distinct);
    buf_text(event, "]}");
}

TEST(target_table_says_which_batches_are_too_large)
{
    struct func func = {.options.clock = &fixed_clock};
    struct function function = table_function();
    for (unsigned distinct = LIMIT_EFFECTS; distinct <= LIMIT_EFFECTS + 1; distinct++) {
        struct buf event = {0};
        struct invoked invoked;
        removals_make(&event, 10000, distinct);
        invoke(&func, &function, &invoked, buf_view(&event));
        struct slice reply = buf_view(&invoked.invocation.reply);
        if (distinct == LIMIT_EFFECTS) {
            struct slice members;
            uint32_t count;
            char error[200];
            CHECK_INT(
                func_effects(reply, LIMIT_EFFECTS, &invoked.arena, &members, &count, error, sizeof error),
                EFFECTS_FOUND);
            CHECK_INT(count, LIMIT_EFFECTS);
        } else {
            CHECK_TEXT(
                reply,
                "{\"errorType\":\"Target.BatchTooLarge\",\"errorMessage\":\"the event writes more than "
                "90 items, which is more than one transaction holds: the BatchSize of the mapping must "
                "be 90 or less\"}");
            CHECK_INT(invoked.invocation.end, INVOCATION_FAILED);
            CHECK(invoked.invocation.is_too_much);
        }
        invoked_free(&invoked);
        buf_free(&event);
    }
}

/* ---- into a database ---- */

static int call(struct func *func, const char *operation, struct slice request, struct buf *reply)
{
    reply->len = 0;
    return dynamo_call(func->options.dynamo, slice_of(operation), request, reply);
}

/* Applies the effects of an answer as a trigger would. */
static void apply(struct func *func, struct invoked *invoked)
{
    struct buf request = {0}, reply = {0};
    struct slice members;
    uint32_t count;
    char error[200];
    CHECK_INT(func_effects(buf_view(&invoked->invocation.reply), LIMIT_EFFECTS, &invoked->arena, &members,
                           &count, error, sizeof error),
              EFFECTS_FOUND);
    buf_text(&request, "{\"TransactItems\":[");
    buf_slice(&request, members);
    buf_text(&request, "]}");
    CHECK_INT(call(func, "TransactWriteItems", buf_view(&request), &reply), 200);
    if (reply.len > 2) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(buf_view(&reply)));
    buf_free(&request);
    buf_free(&reply);
}

TEST(target_table_effects_are_applied)
{
    struct func func;
    struct function function = table_function();
    struct invoked invoked;
    struct buf reply = {0};
    func_make(&func);
    CHECK_INT(call(&func, "CreateTable",
                   SLICE("{\"TableName\":\"mirror\",\"BillingMode\":\"PAY_PER_REQUEST\","
                         "\"KeySchema\":[{\"AttributeName\":\"id\",\"KeyType\":\"HASH\"}],"
                         "\"AttributeDefinitions\":[{\"AttributeName\":\"id\",\"AttributeType\":\"S\"}]}"),
                   &reply),
              200);
    invoke(&func, &function, &invoked,
           SLICE("{\"Records\":[" RECORD("INSERT", KEYS("a") "," IMAGE("a", "1")) "," RECORD(
               "INSERT", KEYS("b") "," IMAGE("b", "1")) "," RECORD("MODIFY",
                                                                   KEYS("b") "," IMAGE("b", "2")) "]}"));
    apply(&func, &invoked);
    invoked_free(&invoked);
    invoke(&func, &function, &invoked, SLICE("{\"Records\":[" RECORD("REMOVE", KEYS("a")) "]}"));
    apply(&func, &invoked);
    invoked_free(&invoked);
    CHECK_INT(call(&func, "Scan", SLICE("{\"TableName\":\"mirror\"}"), &reply), 200);
    CHECK_TEXT(buf_view(&reply),
               "{\"Items\":[{\"id\":{\"S\":\"b\"},\"n\":{\"N\":\"2\"}}],\"Count\":1,\"ScannedCount\":1}");
    buf_free(&reply);
    func_unmake(&func);
}

/* ---- queues ---- */

TEST(target_queue_keeps_documents_in_order)
{
    struct func func;
    struct function function = queue_function();
    struct invoked invoked;
    struct buf reply = {0};
    func_make(&func);
    static const char *const events[] = {"{\"Records\":[{\"n\":1}, {\"n\":\"\\\"2\\\"\"}]}",
                                         "{\"whole\":[1, 2]}", "\"text\"", ""};
    for (int i = 0; i < 4; i++) {
        invoke(&func, &function, &invoked, slice_of(events[i]));
        CHECK_INT(invoked.invocation.end, INVOCATION_ANSWERED);
        CHECK(strcmp(invoked.invocation.version, "7") == 0);
        apply(&func, &invoked);
        invoked_free(&invoked);
    }
    CHECK_INT(call(&func, "Query",
                   SLICE("{\"TableName\":\"quipu-queues\",\"KeyConditionExpression\":\"queue = :q\","
                         "\"ProjectionExpression\":\"body, sent\","
                         "\"ExpressionAttributeValues\":{\":q\":{\"S\":\"letters\"}}}"),
                   &reply),
              200);
    struct slice text = buf_view(&reply);
    static const char *const bodies[] = {
        "{\"S\":\"{\\\"n\\\":1}\"}", "{\"S\":\"{\\\"n\\\":\\\"\\\\\\\"2\\\\\\\"\\\"}\"}",
        "{\"S\":\"{\\\"whole\\\":[1, 2]}\"}", "{\"S\":\"\\\"text\\\"\"}", "{\"S\":\"{}\"}"};
    const char *at = text.data;
    for (int i = 0; i < 5; i++) {
        const char *found = memmem(at, (size_t)(text.data + text.len - at), bodies[i], strlen(bodies[i]));
        CHECK(found != NULL);
        if (found) at = found + strlen(bodies[i]);
    }
    CHECK(slice_contains(text, SLICE("\"Count\":5")));
    CHECK(slice_contains(text, SLICE("{\"S\":\"2026-11-15T03:42:06.123Z\"}")));
    buf_free(&reply);
    func_unmake(&func);
}

static void expect_queue_failure(struct func *func, const struct buf *event, const char *message)
{
    struct function function = queue_function();
    struct invoked invoked;
    invoke(func, &function, &invoked, buf_view(event));
    CHECK_INT(invoked.invocation.end, INVOCATION_FAILED);
    struct slice reply = buf_view(&invoked.invocation.reply);
    if (!slice_contains(reply, slice_of(message))) test_failed(__FILE__, __LINE__, "%.*s", SLICE_ARG(reply));
    invoked_free(&invoked);
}

TEST(target_queue_refuses_what_does_not_fit)
{
    struct func func;
    struct buf event = {0};
    func_make(&func);
    buf_text(&event, "{\"Records\":[{},\"");
    for (int i = 0; i < LIMIT_ITEM_BYTES; i++) buf_byte(&event, 'x');
    buf_text(&event, "\"]}");
    expect_queue_failure(&func, &event,
                         "document 2 has more than the 409600 bytes that an item of a queue can hold");
    event.len = 0;
    buf_text(&event, "{\"Records\":[1");
    for (int i = 0; i < LIMIT_EFFECTS; i++) buf_text(&event, ",2");
    buf_text(&event, "]}");
    expect_queue_failure(&func, &event, "the BatchSize of the mapping must be 90 or less");
    event.len = 0;
    buf_text(&event, "{\"Records\":[1");
    for (int i = 0; i < 12; i++) {
        buf_text(&event, ",\"");
        for (int k = 0; k < 380000; k++) buf_byte(&event, 'x');
        buf_byte(&event, '"');
    }
    buf_text(&event, "]}");
    expect_queue_failure(&func, &event, "the event writes more than 4194304 bytes");
    event.len = 0;
    buf_text(&event, "{\"Records\":[1,]}");
    expect_queue_failure(&func, &event, "the event is no JSON");
    buf_free(&event);
    func_unmake(&func);
}

TEST(target_queue_ids_grow)
{
    struct func func;
    struct function function = queue_function();
    char last[32] = "";
    func_make(&func);
    for (int i = 0; i < 50; i++) {
        struct invoked invoked;
        invoke(&func, &function, &invoked, SLICE("{}"));
        struct slice reply = buf_view(&invoked.invocation.reply), mark = SLICE("\"id\":{\"S\":\"");
        const char *found = memmem(reply.data, reply.len, mark.data, mark.len);
        CHECK(found != NULL);
        if (found) CHECK(strncmp(last, found + mark.len, 21) < 0);
        if (found) snprintf(last, sizeof last, "%.21s", found + mark.len);
        invoked_free(&invoked);
    }
    func_unmake(&func);
}

/* Without transactions a document that is put again is the same one. */
TEST(target_queue_ids_follow_from_the_cause_without_transactions)
{
    static const char *const events[] = {
        "{\"Records\":[{\"eventID\":\"e\",\"dynamodb\":{\"SequenceNumber\":\"700\","
        "\"ApproximateCreationDateTime\":1700000000.5}}]}",
        "{\"whole\":1}",
    };
    static const char *const ids[] = {"1700000000000000-0000000000000000000000000000000000000700-",
                                      "1700000001234000-0000-"};
    char error[300] = "";
    struct imitation_options options;
    struct func func;
    struct function function = queue_function();
    func_make(&func);
    dynamo_close(func.options.dynamo);
    ensure(imitation_options_read("alternator", &options, error, sizeof error));
    func.options.dynamo = dynamo_open_imitation(&options, &(struct dynamo_options){0}, error, sizeof error);
    func.queues_are_made = true;
    for (size_t i = 0; i < 2; i++) {
        struct buf first = {0};
        for (int again = 0; again < 2; again++) {
            struct invocation invocation = {.payload = slice_of(events[i]),
                                            .call_id = SLICE("call"),
                                            .accepted_ms = 1700000001234,
                                            .arena = &(struct arena){0},
                                            .done = note_nothing};
            target_invoke(&func, &function, &invocation);
            CHECK(invocation.is_repeatable);
            CHECK(slice_contains(buf_view(&invocation.reply), slice_of(ids[i])));
            if (again) CHECK(slice_equal(buf_view(&first), buf_view(&invocation.reply)));
            if (!again) buf_slice(&first, buf_view(&invocation.reply));
            buf_free(&invocation.reply);
            arena_free(invocation.arena);
        }
        buf_free(&first);
    }
    func_unmake(&func);
}

/* ---- URLs ---- */

/*   /echo     the body
 *   /fail     status 500 with text
 *   /none     204
 *   /check    the headers that are ours
 *   /keep     never answered
 *   /large    more than a function may answer */
static char heard_timestamp[32], heard_signature[80], heard_function[32], heard_id[40], heard_type[40];

static void hear(struct http_exchange *exchange, const char *name, char *into, size_t room)
{
    struct slice value = http_header_find(exchange, slice_of(name));
    snprintf(into, room, "%.*s", SLICE_ARG(value));
}

static void on_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    hear(exchange, "X-Quipu-Timestamp", heard_timestamp, sizeof heard_timestamp);
    hear(exchange, "X-Quipu-Signature", heard_signature, sizeof heard_signature);
    hear(exchange, "X-Quipu-Function", heard_function, sizeof heard_function);
    hear(exchange, "X-Quipu-Request-Id", heard_id, sizeof heard_id);
    hear(exchange, "Content-Type", heard_type, sizeof heard_type);
    int status = 200;
    if (slice_equal(exchange->path, SLICE("/keep"))) return;
    if (slice_equal(exchange->path, SLICE("/none"))) {
        status = 204;
    } else if (slice_equal(exchange->path, SLICE("/fail"))) {
        status = 500;
        buf_text(&exchange->reply, "out of \"order\"");
    } else if (slice_equal(exchange->path, SLICE("/large"))) {
        for (int i = 0; i <= LIMIT_FUNCTION_REPLY_BYTES; i++) buf_byte(&exchange->reply, 'x');
    } else {
        buf_slice(&exchange->reply, exchange->body);
    }
    http_reply(exchange, status, SLICE("application/json"), SLICE_NONE);
}

static struct slice on_refusal(void *context, int *status, const char *reason, struct buf *body)
{
    (void)context;
    buf_printf(body, "%d %s", *status, reason);
    return SLICE("text/plain");
}

static void *server_main(void *argument)
{
    net_server_run(argument);
    return NULL;
}

struct served_urls {
    struct func func;
    struct net_server *server;
    pthread_t thread;
    char url[64];
};

static void urls_start(struct served_urls *urls)
{
    char error[256];
    struct net_limits limits = net_limits_default;
    limits.drain_ms = 0;
    memset(&urls->func, 0, sizeof urls->func);
    urls->func.options.clock = &fixed_clock;
    urls->func.options.client = client_open(&(struct client_options){0}, error, sizeof error);
    urls->server = net_server_new(
        &(struct net_options){.host = "127.0.0.1",
                              .threads = 1,
                              .limits = limits,
                              .handler = {.request = on_request, .refusal = on_refusal}},
        error, sizeof error);
    ensure(urls->server && urls->func.options.client);
    snprintf(urls->url, sizeof urls->url, "http://127.0.0.1:%u", net_server_port(urls->server));
    ensure(pthread_create(&urls->thread, NULL, server_main, urls->server) == 0);
}

static void urls_end(struct served_urls *urls)
{
    client_close(urls->func.options.client);
    net_server_stop(urls->server);
    pthread_join(urls->thread, NULL);
    net_server_free(urls->server);
}

static void expect_url(struct served_urls *urls, const char *path, uint32_t timeout_ms,
                       enum invocation_end end, const char *reply)
{
    char url[128];
    snprintf(url, sizeof url, "%s%s", path[0] == '/' ? urls->url : "", path);
    struct function function = {.kind = FUNCTION_HTTP,
                                .name = SLICE("hook"),
                                .version = SLICE("$LATEST"),
                                .url = slice_of(url),
                                .timeout_ms = timeout_ms};
    struct invoked invoked;
    invoke(&urls->func, &function, &invoked, SLICE("{\"a\":1}"));
    CHECK_INT(invoked.invocation.end, end);
    struct slice got = buf_view(&invoked.invocation.reply);
    char expected[400];
    snprintf(expected, sizeof expected, reply, path[0] == '/' ? url : invoked.invocation.request_id);
    if (end == INVOCATION_ANSWERED)
        CHECK_TEXT(got, expected);
    else if (!slice_starts(got, slice_of(expected)))
        test_failed(__FILE__, __LINE__, "got %.*s, expected %s", SLICE_ARG(got), expected);
    CHECK((invoked.invocation.error_kind != NULL) == (end == INVOCATION_FAILED));
    invoked_free(&invoked);
}

#define FAULT(type) "{\"errorType\":\"" type "\",\"errorMessage\":\""

TEST(target_url_answers_and_failures)
{
    struct served_urls urls;
    urls_start(&urls);
    expect_url(&urls, "/echo", 3000, INVOCATION_ANSWERED, "{\"a\":1}");
    expect_url(&urls, "/none", 3000, INVOCATION_ANSWERED, "null");
    expect_url(&urls, "/fail", 3000, INVOCATION_FAILED,
               FAULT("Target.HttpStatus") "%s answered with status 500: out of \\\"order\\\"\"}");
    expect_url(&urls, "/large", 3000, INVOCATION_FAILED,
               FAULT("Target.Refused") "%s: the reply is too long\"}");
    expect_url(&urls, "/keep", 50, INVOCATION_FAILED, FAULT("Sandbox.Timedout") "RequestId: ");
    expect_url(&urls, "http://127.0.0.1:1/", 3000, INVOCATION_FAILED,
               FAULT("Target.Unreachable") "http://127.0.0.1:1/: ");
    expect_url(&urls, "file:///etc/passwd", 3000, INVOCATION_FAILED,
               FAULT("Target.Refused") "file:///etc/passwd: it is no URL of HTTP\"}");
    urls_end(&urls);
}

TEST(target_url_opens_a_client_when_it_needs_one)
{
    struct served_urls none = {.func.options.clock = &fixed_clock};
    expect_url(&none, "http://127.0.0.1:1/", 3000, INVOCATION_FAILED,
               FAULT("Target.Unreachable") "http://127.0.0.1:1/: ");
    CHECK(atomic_load(&none.func.client) != NULL &&
          func_client(&none.func) == atomic_load(&none.func.client));
    client_close(atomic_load(&none.func.client));
}

TEST(target_url_time_out_is_told_in_lambdas_words)
{
    struct served_urls urls;
    urls_start(&urls);
    struct function function = {.kind = FUNCTION_HTTP, .version = SLICE("$LATEST"), .timeout_ms = 70};
    char url[128], expected[200];
    snprintf(url, sizeof url, "%s/keep", urls.url);
    function.url = slice_of(url);
    struct invoked invoked;
    invoke(&urls.func, &function, &invoked, SLICE("{}"));
    snprintf(expected, sizeof expected,
             FAULT("Sandbox.Timedout") "RequestId: %s Error: Task timed out after 0.07 seconds\"}",
             invoked.invocation.request_id);
    CHECK_TEXT(buf_view(&invoked.invocation.reply), expected);
    invoked_free(&invoked);
    urls_end(&urls);
}

TEST(target_url_is_called_with_a_signature)
{
    static const char text[] = "1794714126.{\"a\":1}";
    unsigned char hash[DIGEST_BYTES];
    unsigned len = sizeof hash;
    struct buf hex = {0};
    struct served_urls urls;
    urls_start(&urls);
    char url[128];
    snprintf(url, sizeof url, "%s/echo", urls.url);
    for (int secret = 0; secret < 2; secret++) {
        struct function function = {.kind = FUNCTION_HTTP,
                                    .name = SLICE("hook"),
                                    .version = SLICE("$LATEST"),
                                    .url = slice_of(url),
                                    .secret = secret ? SLICE("hush") : SLICE_NONE,
                                    .timeout_ms = 3000};
        struct invoked invoked;
        invoke(&urls.func, &function, &invoked, SLICE("{\"a\":1}"));
        HMAC(EVP_sha256(), "hush", 4, (const unsigned char *)text, sizeof text - 1, hash, &len);
        hex.len = 0;
        digest_put_hex(&hex, hash, sizeof hash);
        CHECK_TEXT(slice_of(heard_timestamp), "1794714126");
        CHECK(slice_equal(slice_of(heard_signature), secret ? buf_view(&hex) : SLICE("")));
        CHECK_TEXT(slice_of(heard_function), "hook");
        CHECK_TEXT(slice_of(heard_id), invoked.invocation.request_id);
        CHECK_TEXT(slice_of(heard_type), "application/json");
        invoked_free(&invoked);
    }
    buf_free(&hex);
    urls_end(&urls);
}
