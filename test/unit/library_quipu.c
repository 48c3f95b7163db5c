/* Opening and calling through the library. */
#include <unistd.h>

#include "unit/library_fixture.h"

#define THREADS 8
#define CALLS   100

TEST(the_version_is_that_of_the_header)
{
    CHECK(strcmp(quipu_version(), QUIPU_VERSION) == 0);
}

TEST(a_reply_tells_how_it_went)
{
    struct quipu *db = open_or_fail(":memory:");
    struct quipu_reply *reply = quipu_call(db, "ListTables", "{}");
    CHECK_INT(reply->status, 200);
    CHECK(!reply->error);
    CHECK_TEXT(slice_of(reply->message), "");
    CHECK_TEXT(slice_of(reply->json), "{\"TableNames\":[]}");
    CHECK_INT(reply->json_len, strlen(reply->json));
    quipu_reply_free(reply);
    reply = quipu_call(db, "GetItem", "{\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"a\"}}}");
    CHECK_INT(reply->status, 400);
    CHECK_TEXT(slice_of(reply->error), "ResourceNotFoundException");
    CHECK_TEXT(slice_of(reply->message), "Requested resource not found");
    CHECK(strstr(reply->json, "__type"));
    quipu_reply_free(reply);
    reply = quipu_call(db, "NoSuchOperation", "{}");
    CHECK_TEXT(slice_of(reply->error), "UnknownOperationException");
    quipu_reply_free(reply);
    quipu_close(db);
}

TEST(what_the_library_cannot_open)
{
    char error[QUIPU_ERROR_BYTES] = "";
    struct quipu_options options = QUIPU_OPTIONS;
    options.must_exist = 1;
    CHECK(!quipu_open("/nowhere/at/all", &options, error, sizeof error));
    CHECK(strstr(error, "/nowhere/at/all"));
    CHECK(!quipu_open(":memory:", &(struct quipu_options){0}, error, sizeof error));
    CHECK(strstr(error, "QUIPU_OPTIONS"));
    options = (struct quipu_options)QUIPU_OPTIONS;
    options.profile = "no such profile";
    CHECK(!quipu_open("http://127.0.0.1:1", &options, error, sizeof error));
    CHECK(strstr(error, "no such profile"));
}

/* A program that was compiled when the struct ended behind `region`; what follows in its memory is not
 * options. */
TEST(options_of_an_older_program)
{
    char error[QUIPU_ERROR_BYTES];
    struct quipu_options options;
    memset(&options, 0xff, sizeof options);
    options.size = offsetof(struct quipu_options, cache_bytes);
    options.region = "eu-north-1";
    struct quipu *db = quipu_open(":memory:", &options, error, sizeof error);
    CHECK(db != NULL);
    create_table(db, false);
    struct quipu_reply *reply = quipu_call(db, "DescribeTable", "{\"TableName\":\"Tab\"}");
    CHECK(strstr(reply->json, "arn:aws:dynamodb:eu-north-1:"));
    quipu_reply_free(reply);
    quipu_close(db);
}

TEST(nothing_may_be_freed_and_closed)
{
    quipu_close(NULL);
    quipu_reply_free(NULL);
    quipu_pages_close(NULL);
    quipu_stream_close(NULL);
}

static void *write_many(void *argument)
{
    struct quipu *db = argument;
    for (int i = 0; i < CALLS; i++)
        call(db, "UpdateItem",
             "{\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"a\"},\"n\":{\"N\":\"1\"}},"
             "\"UpdateExpression\":\"ADD v :1\","
             "\"ExpressionAttributeValues\":{\":1\":{\"N\":\"1\"}}}");
    return NULL;
}

static void check_threads(struct quipu *db)
{
    pthread_t threads[THREADS];
    create_table(db, false);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, write_many, db) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    struct quipu_reply *reply = quipu_call(db, "Scan", "{\"TableName\":\"Tab\"}");
    CHECK_INT(number_of(reply->json, "v"), THREADS * CALLS);
    quipu_reply_free(reply);
}

TEST(many_threads_write_through_the_library)
{
    struct quipu *db = open_or_fail(":memory:");
    check_threads(db);
    quipu_close(db);
}

TEST(many_threads_write_to_a_url)
{
    struct served served;
    served_start(&served, NULL);
    struct quipu *db = open_or_fail(served.url);
    check_threads(db);
    quipu_close(db);
    served_stop(&served);
}
