/* Any bytes as requests to a database that has two tables: every one is answered, with a status that fits, in
 * JSON.
 *
 * Requests are separated by a zero byte, which no JSON holds. The first byte of each names the operation. */
#include "api/api.h"
#include "base/fail.h"
#include "base/json.h"

static const struct {
    char letter;
    const char *operation;
} letters[] = {
    {'B', "BatchGetItem"},
    {'W', "BatchWriteItem"},
    {'C', "CreateTable"},
    {'d', "DeleteItem"},
    {'D', "DeleteTable"},
    {'T', "DescribeTable"},
    {'g', "GetItem"},
    {'L', "ListTables"},
    {'p', "PutItem"},
    {'q', "Query"},
    {'s', "Scan"},
    {'u', "UpdateItem"},
    {'U', "UpdateTable"},
    {'x', "TransactWriteItems"},
    {'G', "TransactGetItems"},
    {'0', "ListStreams"},
    {'1', "DescribeStream"},
    {'2', "GetShardIterator"},
    {'3', "GetRecords"},
    {'4', "UpdateTimeToLive"},
    {'5', "DescribeTimeToLive"},
    {'6', "TagResource"},
    {'7', "UntagResource"},
    {'8', "ListTagsOfResource"},
    {'9', "CreateBackup"},
    {'P', "PutResourcePolicy"},
    {'R', "GetResourcePolicy"},
    {'E', "DeleteResourcePolicy"},
    {'i', "DescribeContributorInsights"},
    {'I', "UpdateContributorInsights"},
    {'l', "ListContributorInsights"},
    {'k', "EnableKinesisStreamingDestination"},
    {'K', "DisableKinesisStreamingDestination"},
    {'j', "UpdateKinesisStreamingDestination"},
    {'J', "DescribeKinesisStreamingDestination"},
    {'b', "UpdateContinuousBackups"},
    {'c', "DescribeContinuousBackups"},
    {'m', "CreateGlobalTable"},
    {'M', "UpdateGlobalTable"},
    {'n', "DescribeGlobalTable"},
    {'N', "ListGlobalTables"},
    {'o', "UpdateGlobalTableSettings"},
    {'O', "DescribeGlobalTableSettings"},
    {'a', "UpdateTableReplicaAutoScaling"},
    {'A', "DescribeTableReplicaAutoScaling"},
    {'e', "ExecuteStatement"},
    {'f', "BatchExecuteStatement"},
    {'F', "ExecuteTransaction"},
};

static int64_t fixed_now(void *self)
{
    (void)self;
    return 1794716005340;
}

static const struct clock fixed_clock = {fixed_now, NULL};

static const char *const tables[] = {
    "{\"TableName\":\"one\",\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"}],"
    "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}],\"BillingMode\":\"PAY_PER_REQUEST\"}",
    "{\"TableName\":\"two\",\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"},"
    "{\"AttributeName\":\"b\",\"AttributeType\":\"N\"},{\"AttributeName\":\"c\",\"AttributeType\":\"B\"},"
    "{\"AttributeName\":\"d\",\"AttributeType\":\"S\"},{\"AttributeName\":\"e\",\"AttributeType\":\"S\"}],"
    "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"},"
    "{\"AttributeName\":\"b\",\"KeyType\":\"RANGE\"}],"
    "\"LocalSecondaryIndexes\":[{\"IndexName\":\"lsi\","
    "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"},"
    "{\"AttributeName\":\"c\",\"KeyType\":\"RANGE\"}],\"Projection\":{\"ProjectionType\":\"ALL\"}}],"
    "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"gsi\","
    "\"KeySchema\":[{\"AttributeName\":\"c\",\"KeyType\":\"HASH\"}],"
    "\"Projection\":{\"ProjectionType\":\"INCLUDE\",\"NonKeyAttributes\":[\"x\"]}},{\"IndexName\":\"deep\","
    "\"KeySchema\":[{\"AttributeName\":\"c\",\"KeyType\":\"HASH\"},"
    "{\"AttributeName\":\"d\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"b\",\"KeyType\":\"RANGE\"},"
    "{\"AttributeName\":\"e\",\"KeyType\":\"RANGE\"}],\"Projection\":{\"ProjectionType\":\"KEYS_ONLY\"}}],"
    "\"BillingMode\":\"PAY_PER_REQUEST\",\"StreamSpecification\":{\"StreamEnabled\":true,"
    "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"}}",
};

static void check_json(struct slice text)
{
    struct arena arena = {0};
    struct json_reader reader;
    json_begin(&reader, text, &arena);
    ensure(json_peek(&reader) == JSON_OBJECT);
    ensure(json_skip(&reader) && json_done(&reader));
    arena_free(&arena);
}

static int run(struct api *api, const char *operation, struct slice body)
{
    struct arena arena = {0};
    struct buf reply = {0};
    struct api_call call = {.api = api,
                            .arena = &arena,
                            .reply = &reply,
                            .operation = api_operation_find(slice_of(operation)),
                            .body = body};
    api_run(&call);
    ensure(call.status == 200 || call.status == 400);
    ensure((call.status == 200) == !call.error);
    check_json(buf_view(&reply));
    buf_free(&reply);
    arena_free(&arena);
    return call.status;
}

/* An unknown letter lists tables. */
static const char *operation_of(char letter)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].letter == letter) return letters[i].operation;
    return "ListTables";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[200];
    struct engine *engine = engine_open(&(struct engine_options){.store = store_open_memory(NULL),
                                                                 .durable = true,
                                                                 .inline_writer = true,
                                                                 .cache_bytes = 1 << 20,
                                                                 .clock = &fixed_clock,
                                                                 .seed = 1},
                                        error, sizeof error);
    ensure(engine);
    struct api *api = api_new(&(struct api_options){
        .engine = engine, .region = "us-east-1", .account = "000000000000", .endpoint = "localhost:8000"});
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        ensure(run(api, "CreateTable", slice_of(tables[i])) == 200);

    struct slice rest = {(const char *)data, size};
    while (rest.len) {
        const char *zero = memchr(rest.data, 0, rest.len);
        size_t len = zero ? (size_t)(zero - rest.data) : rest.len;
        if (len) run(api, operation_of(rest.data[0]), (struct slice){rest.data + 1, len - 1});
        rest = slice_from(rest, zero ? len + 1 : len);
    }
    api_free(api);
    engine_close(engine);
    return 0;
}
