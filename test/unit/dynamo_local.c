/* The door to an embedded database: opened by name, called by many threads. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "dynamo/dynamo.h"
#include "unit/test.h"

#define THREADS 8
#define CALLS   200

static const char create_table[] =
    "{\"TableName\":\"Tab\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}],"
    "\"AttributeDefinitions\":[{\"AttributeName\":\"k\",\"AttributeType\":\"S\"}],"
    "\"BillingMode\":\"PAY_PER_REQUEST\"}";
static const char count_up[] =
    "{\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"a\"}},"
    "\"UpdateExpression\":\"ADD n :1\",\"ExpressionAttributeValues\":{\":1\":{\"N\":\"1\"}}}";
static const char get[] =
    "{\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"a\"}},\"ProjectionExpression\":\"n\"}";

static struct dynamo *open_or_fail(const char *where, const struct dynamo_options *options)
{
    char error[700] = "";
    struct dynamo *dynamo = dynamo_open(where, options, error, sizeof error);
    if (!dynamo) test_failed(__FILE__, __LINE__, "%s", error);
    return dynamo;
}

static int call(struct dynamo *dynamo, const char *operation, const char *request, struct buf *reply)
{
    reply->len = 0;
    return dynamo_call(dynamo, slice_of(operation), slice_of(request), reply);
}

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

TEST(many_threads_call_an_embedded_database)
{
    struct dynamo *dynamo = open_or_fail(":memory:", NULL);
    struct buf reply = {0};
    pthread_t threads[THREADS];
    CHECK(dynamo_engine(dynamo) != NULL);
    CHECK_INT(call(dynamo, "CreateTable", create_table, &reply), 200);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, count_many, dynamo) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_INT(call(dynamo, "GetItem", get, &reply), 200);
    CHECK_TEXT(buf_view(&reply), "{\"Item\":{\"n\":{\"N\":\"1600\"}}}");
    buf_free(&reply);
    dynamo_close(dynamo);
}

TEST(errors_of_an_embedded_database)
{
    struct dynamo *dynamo = open_or_fail(":memory:", NULL);
    struct arena arena = {0};
    struct buf reply = {0};
    struct slice name, message;
    CHECK_INT(call(dynamo, "GetItem", get, &reply), 400);
    dynamo_error(buf_view(&reply), &arena, &name, &message);
    CHECK_TEXT(name, "ResourceNotFoundException");
    CHECK_TEXT(message, "Requested resource not found");
    CHECK_INT(call(dynamo, "Nonsense", "{}", &reply), 400);
    dynamo_error(buf_view(&reply), &arena, &name, &message);
    CHECK_TEXT(name, "UnknownOperationException");
    CHECK_INT(call(dynamo, "ListTables", "nonsense", &reply), 400);
    dynamo_error(buf_view(&reply), &arena, &name, &message);
    CHECK_TEXT(name, "SerializationException");
    dynamo_error(SLICE("no JSON"), &arena, &name, &message);
    CHECK_INT(name.len + message.len, 0);
    dynamo_error(SLICE("{\"__type\":\"X:http://a/b#c\",\"Message\":3}"), &arena, &name, &message);
    CHECK_TEXT(name, "c");
    arena_free(&arena);
    buf_free(&reply);
    dynamo_close(dynamo);
}

static void remove_folder(const char *folder)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
}

TEST(a_folder_keeps_what_was_written_and_is_opened_once)
{
    char base[] = "/tmp/quipu-door-XXXXXX", folder[64], error[700];
    struct buf reply = {0};
    CHECK(mkdtemp(base) != NULL);
    snprintf(folder, sizeof folder, "%s/data", base);
    CHECK(!dynamo_open(folder, &(struct dynamo_options){.must_exist = true}, error, sizeof error));
    CHECK(strstr(error, folder));
    struct dynamo *dynamo = open_or_fail(folder,
                                         &(struct dynamo_options){.region = "eu-west-1", .unsynced = true});
    CHECK_INT(call(dynamo, "CreateTable", create_table, &reply), 200);
    CHECK(slice_contains(buf_view(&reply), SLICE("arn:aws:dynamodb:eu-west-1:000000000000:table/Tab")));
    CHECK_INT(call(dynamo, "UpdateItem", count_up, &reply), 200);
    CHECK(!dynamo_open(folder, NULL, error, sizeof error)); /* it is in use */
    dynamo_close(dynamo);
    dynamo = open_or_fail(folder, &(struct dynamo_options){.must_exist = true});
    CHECK_INT(call(dynamo, "GetItem", get, &reply), 200);
    CHECK_TEXT(buf_view(&reply), "{\"Item\":{\"n\":{\"N\":\"1\"}}}");
    dynamo_close(dynamo);
    buf_free(&reply);
    remove_folder(base);
}

TEST(a_folder_that_is_only_read)
{
    char base[] = "/tmp/quipu-door-XXXXXX", folder[64], error[700];
    struct dynamo_options options = {.read_only = true};
    struct buf reply = {0};
    CHECK(mkdtemp(base) != NULL);
    snprintf(folder, sizeof folder, "%s/data", base);
    CHECK(!dynamo_open(folder, &options, error, sizeof error));
    CHECK(strstr(error, "does not exist") && access(folder, F_OK) != 0); /* nor is it made */
    struct dynamo *dynamo = open_or_fail(folder, NULL);
    CHECK_INT(call(dynamo, "CreateTable", create_table, &reply), 200);
    CHECK_INT(call(dynamo, "UpdateItem", count_up, &reply), 200);
    dynamo_close(dynamo);
    dynamo = open_or_fail(folder, &options);
    struct dynamo *other = open_or_fail(folder, &options); /* as many readers as like to */
    CHECK_INT(call(other, "GetItem", get, &reply), 200);
    CHECK_TEXT(buf_view(&reply), "{\"Item\":{\"n\":{\"N\":\"1\"}}}");
    /* goes through the writer, and writes nothing */
    CHECK_INT(call(dynamo, "TransactGetItems",
                   "{\"TransactItems\":[{\"Get\":{\"TableName\":\"Tab\",\"Key\":{\"k\":{\"S\":\"a\"}},"
                   "\"ProjectionExpression\":\"n\"}}]}",
                   &reply),
              200);
    CHECK_TEXT(buf_view(&reply), "{\"Responses\":[{\"Item\":{\"n\":{\"N\":\"1\"}}}]}");
    static const char select[] = "{\"Statements\":[{\"Statement\":\"SELECT n FROM Tab WHERE k = 'a'\"}]}";
    CHECK_INT(call(dynamo, "BatchExecuteStatement", select, &reply), 200);
    CHECK_TEXT(buf_view(&reply), "{\"Responses\":[{\"TableName\":\"Tab\",\"Item\":{\"n\":{\"N\":\"1\"}}}]}");
    static const char selects[] = "{\"TransactStatements\":[{\"Statement\":\"SELECT n FROM Tab WHERE k = 'a'\"}]}";
    CHECK_INT(call(dynamo, "ExecuteTransaction", selects, &reply), 200);
    static const char insert[] = "{\"Statements\":[{\"Statement\":\"INSERT INTO Tab VALUE {'k':'b'}\"}]}";
    CHECK_INT(call(dynamo, "BatchExecuteStatement", insert, &reply), 400);
    CHECK_INT(call(dynamo, "UpdateItem", count_up, &reply), 400);
    CHECK(slice_contains(buf_view(&reply), SLICE("AccessDeniedException")));
    CHECK(slice_contains(buf_view(&reply),
                         SLICE("the data was opened for reading only, so UpdateItem is refused")));
    CHECK_INT(call(dynamo, "DeleteTable", "{\"TableName\":\"Tab\"}", &reply), 400);
    CHECK(!dynamo_open(folder, NULL, error, sizeof error)); /* a writer must be alone */
    CHECK(strstr(error, "in use"));
    dynamo_close(other);
    dynamo_close(dynamo);
    dynamo = open_or_fail(folder, NULL);
    CHECK_INT(call(dynamo, "GetItem", get, &reply), 200);
    CHECK_TEXT(buf_view(&reply), "{\"Item\":{\"n\":{\"N\":\"1\"}}}");
    dynamo_close(dynamo);
    buf_free(&reply);
    remove_folder(base);
}

TEST(what_cannot_be_opened)
{
    char error[700];
    CHECK(!dynamo_open("", NULL, error, sizeof error));
    CHECK(!dynamo_open("/dev/null/x", NULL, error, sizeof error));
    CHECK(!dynamo_open("http://", NULL, error, sizeof error));
    CHECK(strstr(error, "not of the form"));
    char region[200];
    memset(region, 'a', sizeof region);
    region[sizeof region - 1] = '\0';
    CHECK(!dynamo_open(":memory:", &(struct dynamo_options){.region = region}, error, sizeof error));
    CHECK(
        !dynamo_open("http://127.0.0.1:1", &(struct dynamo_options){.region = region}, error, sizeof error));
    CHECK(strstr(error, "at most"));
}
