/* The imitation of ScyllaDB Alternator under many threads, and ended while much is still to come. Each of its traits is
 * tested from outside, in test/blackbox/test_imitation.py. */
#include <pthread.h>
#include <stdio.h>

#include "dynamo/dynamo.h"
#include "unit/test.h"

#define THREADS 4
#define CALLS   100

static const char create_table[] =
    "{\"TableName\":\"Tab\",\"KeySchema\":[{\"AttributeName\":\"k\",\"KeyType\":\"HASH\"}],"
    "\"AttributeDefinitions\":[{\"AttributeName\":\"k\",\"AttributeType\":\"S\"},"
    "{\"AttributeName\":\"i\",\"AttributeType\":\"S\"}],\"BillingMode\":\"PAY_PER_REQUEST\","
    "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"by-i\",\"KeySchema\":[{\"AttributeName\":\"i\",\"KeyType\":"
    "\"HASH\"}],\"Projection\":{\"ProjectionType\":\"KEYS_ONLY\"}}]}";

static struct dynamo *open_or_fail(const char *text)
{
    char error[700] = "";
    struct imitation_options options;
    struct dynamo *dynamo = NULL;
    if (imitation_options_read(text, &options, error, sizeof error))
        dynamo = dynamo_open_imitation(&options, &(struct dynamo_options){0}, error, sizeof error);
    if (!dynamo) test_failed(__FILE__, __LINE__, "%s", error);
    return dynamo;
}

struct writer {
    struct dynamo *dynamo;
    int number, timed_out, others;
};

static void *write_many(void *context)
{
    struct writer *writer = context;
    struct buf request = {0}, reply = {0};
    for (int i = 0; i < CALLS; i++) {
        request.len = reply.len = 0;
        buf_printf(&request,
                   "{\"TableName\":\"Tab\",\"Item\":{\"k\":{\"S\":\"%d-%d\"},\"i\":{\"S\":\"all\"}}}",
                   writer->number, i);
        int status = dynamo_call(writer->dynamo, SLICE("PutItem"), buf_view(&request), &reply);
        writer->timed_out += status == 500;
        writer->others += status != 500 && status != 200;
        reply.len = 0;
        status = dynamo_call(writer->dynamo, SLICE("Scan"),
                             SLICE("{\"TableName\":\"Tab\",\"IndexName\":\"by-i\"}"), &reply);
        writer->others += status != 200;
    }
    buf_free(&request);
    buf_free(&reply);
    return NULL;
}

/* The door is closed with late writes and changes of indexes before it. */
TEST(imitation_is_used_by_many_and_closed_at_any_time)
{
    struct dynamo *dynamo = open_or_fail("alternator,timeouts=50,late=2000,index-delay=5,seed=4");
    struct buf reply = {0};
    CHECK_INT(dynamo_call(dynamo, SLICE("CreateTable"), slice_of(create_table), &reply), 200);
    pthread_t threads[THREADS];
    struct writer writers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){.dynamo = dynamo, .number = i};
        pthread_create(&threads[i], NULL, write_many, &writers[i]);
    }
    int timed_out = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        timed_out += writers[i].timed_out;
        CHECK_INT(writers[i].others, 0);
    }
    CHECK(timed_out > THREADS * CALLS / 4 && timed_out < THREADS * CALLS * 3 / 4);
    CHECK_INT(dynamo_kind(dynamo), DYNAMO_KIND_ALTERNATOR);
    dynamo_close(dynamo);
    buf_free(&reply);
}

TEST(imitation_takes_what_is_no_request)
{
    static const char *const requests[] = {
        "",
        "[]",
        "{",
        "{}",
        "null",
        "{\"TableName\":7,\"Item\":[]}",
        "{\"RequestItems\":{\"Tab\":7}}",
        "{\"ShardIterator\":{},\"Limit\":\"\"}",
        "{\"TableName\":\"Tab\",\"Tags\":{},\"GlobalSecondaryIndexes\":7}"};
    static const char *const operations[] = {"PutItem",    "UpdateItem",  "BatchWriteItem",
                                             "GetRecords", "CreateTable", "UpdateTable",
                                             "Query",      "TagResource", "Nothing"};
    struct dynamo *dynamo = open_or_fail("alternator");
    struct buf reply = {0};
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
        for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
            reply.len = 0;
            CHECK_INT(dynamo_call(dynamo, slice_of(operations[o]), slice_of(requests[r]), &reply), 400);
        }
    buf_free(&reply);
    dynamo_close(dynamo);
}
