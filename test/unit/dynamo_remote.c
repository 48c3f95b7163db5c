/* The remote door against a server that misbehaves by script, and against a real one. */
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "dynamo/dynamo.h"
#include "unit/dynamo_scripted.h"
#include "unit/served.h"
#include "unit/test.h"

#define THREADS 16
#define CALLS   50

static const char throttled[] = "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
                                "ProvisionedThroughputExceededException\",\"message\":\"slow\"}";
static const char in_progress[] =
    "{\"__type\":\"com.amazonaws.dynamodb.v20120810#TransactionInProgressException\",\"Message\":\"wait\"}";
static const char failed_condition[] =
    "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\","
    "\"message\":\"The conditional request failed\"}";

#define FINE                                                                                                 \
    {                                                                                                        \
        DEED_REPLY, 200, NULL, "{\"fine\":true}"                                                             \
    }
#define STEPS(...)                                                                                           \
    (const struct scripted_step[]){__VA_ARGS__},                                                             \
        sizeof((const struct scripted_step[]){__VA_ARGS__}) / sizeof(struct scripted_step)

static struct dynamo *open_or_fail(const char *url, const struct dynamo_options *options)
{
    char error[700] = "";
    struct dynamo *dynamo = dynamo_open(url, options, error, sizeof error);
    if (!dynamo) test_failed(__FILE__, __LINE__, "%s", error);
    return dynamo;
}

/* ---- by script ---- */

struct outcome {
    int status;
    char reply[1000];
    unsigned requests, connections;
    char last_request[8192];
};

/* One call to a server with this script. */
static void run_script(struct outcome *outcome, const char *operation, const char *request,
                       struct dynamo_options options, const struct scripted_step *steps, unsigned count)
{
    struct scripted scripted;
    struct buf reply = {0};
    scripted_start(&scripted, steps, count);
    struct dynamo *dynamo = open_or_fail(scripted.url, &options);
    outcome->status = dynamo_call(dynamo, slice_of(operation), slice_of(request), &reply);
    dynamo_close(dynamo);
    scripted_stop(&scripted);
    snprintf(outcome->reply, sizeof outcome->reply, "%.*s", SLICE_ARG(buf_view(&reply)));
    outcome->requests = scripted.requests;
    outcome->connections = scripted.connections;
    memcpy(outcome->last_request, scripted.last_request, sizeof outcome->last_request);
    buf_free(&reply);
}

TEST(a_call_is_signed_and_names_its_operation)
{
    struct outcome out;
    struct dynamo_options keys = {
        .access_key = "AKME", .secret_key = "s", .session_token = "tok", .region = "eu-west-3"};
    run_script(&out, "PutItem", "{\"a\":1}", keys, STEPS(FINE));
    CHECK_INT(out.status, 200);
    CHECK_TEXT(slice_of(out.reply), "{\"fine\":true}");
    CHECK(strstr(out.last_request, "POST / HTTP/1.1\r\n"));
    CHECK(strstr(out.last_request, "\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n"));
    CHECK(strstr(out.last_request, "\r\nContent-Type: application/x-amz-json-1.0\r\n"));
    CHECK(strstr(out.last_request, "\r\nX-Amz-Security-Token: tok\r\n"));
    CHECK(strstr(out.last_request, "Credential=AKME/") &&
          strstr(out.last_request, "/eu-west-3/dynamodb/aws4_request"));
    CHECK(strstr(out.last_request, "\r\n\r\n{\"a\":1}"));
    run_script(&out, "GetRecords", "{}", keys, STEPS(FINE));
    CHECK(strstr(out.last_request, "\r\nX-Amz-Target: DynamoDBStreams_20120810.GetRecords\r\n"));
}

TEST(what_passes_is_tried_again)
{
    struct outcome out;
    run_script(&out, "PutItem", "{}", (struct dynamo_options){0},
               STEPS({DEED_REPLY, 400, NULL, throttled},
                     {DEED_REPLY, 500, NULL, "{\"__type\":\"InternalServerError\"}"},
                     {DEED_REPLY, 400, NULL, in_progress}, {DEED_REPLY, 503, NULL, "<html>busy</html>"},
                     FINE));
    CHECK_INT(out.status, 200);
    CHECK_TEXT(slice_of(out.reply), "{\"fine\":true}");
    CHECK_INT(out.requests, 5);
    CHECK_INT(out.connections, 1);
}

TEST(what_the_request_is_to_blame_for_is_not_tried_again)
{
    struct outcome out;
    run_script(&out, "PutItem", "{}", (struct dynamo_options){0},
               STEPS({DEED_REPLY, 400, NULL, failed_condition}, FINE));
    CHECK_INT(out.status, 400);
    CHECK_TEXT(slice_of(out.reply), failed_condition);
    CHECK_INT(out.requests, 1);
}

TEST(attempts_end_with_the_last_reply)
{
    struct outcome out;
    run_script(&out, "PutItem", "{}", (struct dynamo_options){.attempts = 3},
               STEPS({DEED_REPLY, 400, NULL, throttled}));
    CHECK_INT(out.status, 400);
    CHECK_TEXT(slice_of(out.reply), throttled);
    CHECK_INT(out.requests, 3);
}

TEST(lost_connections_are_made_anew)
{
    struct outcome out;
    run_script(&out, "PutItem", "{}", (struct dynamo_options){0},
               STEPS({DEED_CLOSE, 0, NULL, NULL},
                     {DEED_BYTES, 0, NULL, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"cut\":"}, FINE));
    CHECK_INT(out.status, 200);
    CHECK_TEXT(slice_of(out.reply), "{\"fine\":true}");
    CHECK_INT(out.requests, 3);
    CHECK_INT(out.connections, 3);
}

TEST(damaged_replies_are_asked_for_again)
{
    struct outcome out;
    char right[60];
    snprintf(right, sizeof right, "x-amz-crc32: %lu\r\n", crc32(0, (const Bytef *)"{\"fine\":true}", 13));
    run_script(&out, "GetItem", "{}", (struct dynamo_options){0},
               STEPS({DEED_REPLY, 200, "x-amz-crc32: 1\r\n", "{\"fine\":true}"},
                     {DEED_REPLY, 200, right, "{\"fine\":true}"}));
    CHECK_INT(out.status, 200);
    CHECK_INT(out.requests, 2);
}

TEST(who_does_not_answer_in_time_is_given_up)
{
    struct outcome out;
    run_script(&out, "GetItem", "{}", (struct dynamo_options){.attempt_ms = 100, .attempts = 2},
               STEPS({DEED_HANG, 0, NULL, NULL}));
    CHECK_INT(out.status, 0);
    CHECK_INT(out.requests, 2);
    CHECK(strstr(out.reply, "NoReplyException") && strstr(out.reply, "(2 attempts)"));
}

TEST(names_that_are_none_go_nowhere)
{
    static const char *const names[] = {"", "Put Item", "PutItem\r\nX: y", "PutItem1"};
    struct outcome out;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        run_script(&out, names[i], "{}", (struct dynamo_options){0}, STEPS(FINE));
        CHECK_INT(out.status, 400);
        CHECK(strstr(out.reply, "UnknownOperationException"));
        CHECK_INT(out.requests, 0);
    }
}

TEST(nobody_there)
{
    struct scripted scripted;
    struct buf reply = {0};
    scripted_start(&scripted, STEPS(FINE));
    scripted_stop(&scripted); /* a port that nobody has */
    struct dynamo *dynamo = open_or_fail(scripted.url, NULL);
    CHECK_INT(dynamo_call(dynamo, SLICE("ListTables"), SLICE("{}"), &reply), 0);
    CHECK(slice_contains(buf_view(&reply), SLICE("NoReplyException")));
    CHECK(slice_contains(buf_view(&reply), slice_of(scripted.url)));
    CHECK(slice_contains(buf_view(&reply), SLICE("(3 attempts)")));
    dynamo_close(dynamo);
    buf_free(&reply);
}

static void *call_the_gone(void *argument)
{
    struct buf reply = {0};
    int status = dynamo_call(argument, SLICE("ListTables"), SLICE("{}"), &reply);
    bool is_none = status == 0 && slice_contains(buf_view(&reply), SLICE("NoReplyException"));
    buf_free(&reply);
    return is_none ? argument : NULL;
}

/* Calls that nobody answers would be tried for ever here, some of them after a pause of seconds: who is about to end is
 * told so. */
TEST(who_is_about_to_end_does_not_wait_for_the_gone)
{
    struct scripted scripted;
    struct buf reply = {0};
    pthread_t threads[4];
    void *was_none;
    scripted_start(&scripted, STEPS(FINE, {DEED_CLOSE, 0, NULL, NULL}));
    struct dynamo *dynamo = open_or_fail(scripted.url, &(struct dynamo_options){.attempts = UINT32_MAX});
    CHECK_INT(dynamo_call(dynamo, SLICE("ListTables"), SLICE("{}"), &reply), 200);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, call_the_gone, dynamo);
    usleep(100000); /* so that some are in a pause; any moment would do */
    dynamo_hurry(dynamo);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &was_none);
        CHECK(was_none);
    }
    CHECK(call_the_gone(dynamo));
    dynamo_close(dynamo);
    scripted_stop(&scripted);
    buf_free(&reply);
}

TEST(strange_replies_are_put_into_words)
{
    struct outcome out;
    run_script(&out, "GetItem", "{}", (struct dynamo_options){0},
               STEPS({DEED_REPLY, 200, NULL, "<html>\"hello\"</html>"}));
    CHECK_INT(out.status, 502);
    CHECK_INT(out.requests, 1);
    CHECK(strstr(out.reply, "BadReplyException") &&
          strstr(out.reply, "status 200 and no JSON: <html>\\\"hello\\\"</html>"));
    run_script(&out, "GetItem", "{}", (struct dynamo_options){0}, STEPS({DEED_REPLY, 404, NULL, ""}));
    CHECK_INT(out.status, 404);
    CHECK(strstr(out.reply, "BadReplyException"));
    run_script(&out, "GetItem", "{}", (struct dynamo_options){0},
               STEPS({DEED_BYTES, 0, NULL, "SSH-2.0-OpenSSH_9.2\r\n"}));
    CHECK_INT(out.status, 0);
    CHECK_INT(out.requests, 1);
}

TEST(a_transaction_keeps_its_token_from_attempt_to_attempt)
{
    struct scripted scripted;
    struct buf reply = {0};
    char tokens[2][40];
    for (int round = 0; round < 2; round++) {
        scripted_start(&scripted, STEPS({DEED_REPLY, 500, NULL, "{}"}, FINE));
        struct dynamo *dynamo = open_or_fail(scripted.url,
                                             &(struct dynamo_options){.attempts = (uint32_t)round + 1});
        dynamo_call(dynamo, SLICE("TransactWriteItems"), SLICE("{\"TransactItems\":[]}"), &reply);
        dynamo_close(dynamo);
        scripted_stop(&scripted);
        const char *token = strstr(scripted.last_request, "\"ClientRequestToken\":\"");
        CHECK(token != NULL);
        snprintf(tokens[round], sizeof tokens[round], "%.32s", token ? token + 22 : "");
        CHECK_INT(strlen(tokens[round]), 32);
    }
    CHECK(strcmp(tokens[0], tokens[1]) != 0);
    buf_free(&reply);
}

/* ---- against a real server ---- */

static const char create_table[] =
    "{\"TableName\":\"Tab\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}],"
    "\"AttributeDefinitions\":[{\"AttributeName\":\"k\",\"AttributeType\":\"S\"}],"
    "\"BillingMode\":\"PAY_PER_REQUEST\"}";
static const char count_up[] =
    "{\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"a\"}},"
    "\"UpdateExpression\":\"ADD n :1\",\"ExpressionAttributeValues\":{\":1\":{\"N\":\"1\"}}}";
static const char get[] =
    "{\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"a\"}},\"ProjectionExpression\":\"n\"}";

static void *count_many(void *argument)
{
    struct buf reply = {0};
    for (int i = 0; i < CALLS; i++) {
        reply.len = 0;
        if (dynamo_call(argument, SLICE("UpdateItem"), slice_of(count_up), &reply) != 200) break;
    }
    buf_free(&reply);
    return NULL;
}

TEST(many_threads_share_a_bounded_number_of_connections)
{
    struct served served;
    struct buf reply = {0};
    pthread_t threads[THREADS];
    served_start(&served, NULL);
    struct dynamo *dynamo = open_or_fail(served.url, &(struct dynamo_options){.in_flight = 4});
    CHECK(dynamo_engine(dynamo) == NULL);
    CHECK_INT(dynamo_call(dynamo, SLICE("CreateTable"), slice_of(create_table), &reply), 200);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, count_many, dynamo) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    reply.len = 0;
    CHECK_INT(dynamo_call(dynamo, SLICE("GetItem"), slice_of(get), &reply), 200);
    CHECK_TEXT(buf_view(&reply), "{\"Item\":{\"n\":{\"N\":\"800\"}}}");
    CHECK(net_server_stats(served.server)->connections_total <= 4);
    dynamo_close(dynamo);
    served_stop(&served);
    buf_free(&reply);
}

/* Calls begun and handed over in one turn, as a server does. */
struct many {
    struct dynamo_call call;
    struct buf reply;
    pthread_mutex_t *lock;
    pthread_cond_t *all_done;
    unsigned *left;
};

static void many_done(struct dynamo_call *call)
{
    struct many *one = (struct many *)call;
    pthread_mutex_lock(one->lock);
    if (--*one->left == 0) pthread_cond_signal(one->all_done);
    pthread_mutex_unlock(one->lock);
}

TEST(a_turn_of_many_calls)
{
    struct served served;
    struct many calls[100];
    struct arena arenas[100] = {0};
    struct dynamo_turn turn = {0};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
    unsigned left = 100;
    served_start(&served, NULL);
    struct dynamo *dynamo = open_or_fail(served.url, NULL);
    for (int i = 0; i < 100; i++) {
        calls[i] = (struct many){.lock = &lock, .all_done = &all_done, .left = &left};
        calls[i].call = (struct dynamo_call){.name = i % 2 ? SLICE("ListTables") : SLICE("GetItem"),
                                             .request = i % 2 ? SLICE("{}") : slice_of(get),
                                             .arena = &arenas[i],
                                             .reply = &calls[i].reply,
                                             .done = many_done};
        CHECK(!dynamo_begin(dynamo, &calls[i].call, &turn));
    }
    dynamo_turn_end(dynamo, &turn);
    pthread_mutex_lock(&lock);
    while (left) pthread_cond_wait(&all_done, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 100; i++) {
        dynamo_finish(&calls[i].call);
        CHECK_INT(calls[i].call.status, i % 2 ? 200 : 400);
        if (i % 2)
            CHECK(!calls[i].call.error);
        else
            CHECK(calls[i].call.error && strcmp(calls[i].call.error, "ResourceNotFoundException") == 0);
        buf_free(&calls[i].reply);
        arena_free(&arenas[i]);
    }
    dynamo_close(dynamo);
    served_stop(&served);
}

static void write_keys(const char *path, const char *secret)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(
        file,
        "[default]\naws_access_key_id = AKID\naws_secret_access_key = %s\naws_session_token = token+/==\n",
        secret);
    CHECK(fclose(file) == 0);
}

static int64_t an_hour_late(void *self)
{
    (void)self;
    return clock_now_ms(&clock_system) - 3600 * 1000;
}

TEST(signatures_are_accepted_even_when_our_clock_is_off)
{
    char path[] = "/tmp/quipu-keys-XXXXXX";
    struct served served;
    struct buf reply = {0};
    struct clock late = {an_hour_late, NULL};
    CHECK(close(mkstemp(path)) == 0);
    write_keys(path, "secret");
    served_start(&served, path);
    struct dynamo_options options = {
        .access_key = "AKID", .secret_key = "secret", .session_token = "token+/=="};
    for (int round = 0; round < 2; round++) {
        options.clock = round ? &late : NULL;
        struct dynamo *dynamo = open_or_fail(served.url, &options);
        CHECK_INT(dynamo_call(dynamo, SLICE("ListTables"), SLICE("{}"), &reply), 200);
        dynamo_close(dynamo);
    }
    options.secret_key = "wrong";
    struct dynamo *dynamo = open_or_fail(served.url, &options);
    reply.len = 0;
    CHECK_INT(dynamo_call(dynamo, SLICE("ListTables"), SLICE("{}"), &reply), 400);
    CHECK(slice_contains(buf_view(&reply), SLICE("InvalidSignatureException")));
    dynamo_close(dynamo);
    served_stop(&served);
    buf_free(&reply);
    unlink(path);
}

TEST(keys_that_have_expired_are_read_again)
{
    char path[] = "/tmp/quipu-keys-XXXXXX";
    struct scripted scripted;
    struct buf reply = {0};
    CHECK(close(mkstemp(path)) == 0);
    write_keys(path, "old");
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    scripted_start(&scripted, STEPS({DEED_REPLY, 400, NULL, "{\"__type\":\"ExpiredTokenException\"}"}, FINE,
                                    {DEED_REPLY, 400, NULL, "{\"__type\":\"ExpiredTokenException\"}"}, FINE));
    struct dynamo *dynamo = open_or_fail(scripted.url, &(struct dynamo_options){.profile = "default"});
    write_keys(path, "new");
    CHECK_INT(dynamo_call(dynamo, SLICE("ListTables"), SLICE("{}"), &reply), 200);
    CHECK_INT(scripted.requests, 2);
    CHECK_INT(dynamo_call(dynamo, SLICE("ListTables"), SLICE("{}"), &reply),
              400); /* the file has no others now */
    CHECK_INT(scripted.requests, 3);
    dynamo_close(dynamo);
    scripted_stop(&scripted);
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    buf_free(&reply);
    unlink(path);
}

TEST(amazon_is_not_called_without_keys)
{
    char error[700];
    char *home = getenv("HOME"), *kept = home ? strdup(home) : NULL;
    setenv("HOME", "/nowhere", 1);
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    CHECK(!dynamo_open("https://dynamodb.eu-west-1.amazonaws.com", NULL, error, sizeof error));
    CHECK(strstr(error, "no keys for https://dynamodb.eu-west-1.amazonaws.com/"));
    if (kept) setenv("HOME", kept, 1);
    free(kept);
}
