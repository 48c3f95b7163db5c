/* Throughput that acts: buckets by themselves, and what requests meet when they are empty. */
#include "api/bucket.h"
#include "unit/api_fixture.h"

/* ---- buckets ---- */

TEST(a_bucket_fills_up_to_its_size)
{
    struct bucket bucket = {.tokens = 5, .at_ms = 1000};
    bucket_fill(&bucket, 10, 100, 1000);
    CHECK_INT((int)bucket.tokens, 5);
    bucket_fill(&bucket, 10, 100, 1500);
    CHECK_INT((int)bucket.tokens, 10);
    bucket_fill(&bucket, 10, 100, 1000000);
    CHECK_INT((int)bucket.tokens, 100);
    bucket_fill(&bucket, 1, 10, 1000000); /* the rate was lowered */
    CHECK_INT((int)bucket.tokens, 10);
}

TEST(a_bucket_may_be_overdrawn_once)
{
    struct bucket bucket = {.tokens = 0.5, .at_ms = 0};
    CHECK(bucket_admits(&bucket));
    bucket_take(&bucket, 30.5);
    CHECK(!bucket_admits(&bucket));
    bucket_fill(&bucket, 10, 100, 2999);
    CHECK(!bucket_admits(&bucket));
    bucket_fill(&bucket, 10, 100, 3000);
    CHECK(!bucket_admits(&bucket)); /* nothing is not anything */
    bucket_fill(&bucket, 10, 100, 3001);
    CHECK(bucket_admits(&bucket));
}

TEST(a_clock_that_goes_back_fills_no_bucket)
{
    struct bucket bucket = {.tokens = 0, .at_ms = 10000};
    bucket_fill(&bucket, 10, 100, 5000);
    CHECK_INT((int)bucket.tokens, 0);
    bucket_fill(&bucket, 10, 100, 6000);
    CHECK_INT((int)bucket.tokens, 10);
}

/* Ten times as many as there is room for: those that are used stay. */
TEST(buckets_are_bounded)
{
    struct bucket_cache cache;
    bucket_cache_init(&cache, 64);
    for (uint64_t i = 0; i < 640; i++) {
        bucket_cache_find(&cache, 7, 1, 0, (int64_t)i)->at_ms = (int64_t)i;
        struct bucket *bucket = bucket_cache_find(&cache, i * 2 + 101, 2, 3, (int64_t)i);
        CHECK_INT((int)bucket->tokens, 3);
    }
    CHECK_INT((int)bucket_cache_find(&cache, 7, 1, 9, 640)->tokens, 0);
    bucket_cache_drain(&cache, 1, 641);
    CHECK_INT((int)bucket_cache_find(&cache, 639 * 2 + 101, 2, 9, 641)->tokens, 3);
    bucket_cache_drain(&cache, 0, 642);
    CHECK_INT((int)bucket_cache_find(&cache, 639 * 2 + 101, 2, 9, 642)->tokens, 0);
    bucket_cache_free(&cache);
}

/* ---- requests ---- */

#define ARN "arn:aws:dynamodb:us-east-1:000000000000:table/units"
#define KEYS                                                                                                        \
    "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'},{'AttributeName':'g','AttributeType':'S'}]," \
    "'KeySchema':[{'AttributeName':'a','KeyType':'HASH'}]"
#define UNITS(r, w) "'ProvisionedThroughput':{'ReadCapacityUnits':" r ",'WriteCapacityUnits':" w "}"
#define INDEX(more)                                                                                          \
    "'GlobalSecondaryIndexes':[{'IndexName':'gsi','KeySchema':[{'AttributeName':'g','KeyType':'HASH'}],"     \
    "'Projection':{'ProjectionType':'ALL'}" more "}]"
#define PUT(key)   "{'TableName':'units','Item':{'a':{'S':'" key "'}}}"
#define PUT_G(key) "{'TableName':'units','Item':{'a':{'S':'" key "'},'g':{'S':'x'}}}"
#define GET(key)   "{'TableName':'units','ConsistentRead':true,'Key':{'a':{'S':'" key "'}}}"
#define TABLE_WORDS                                                                                          \
    "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "   \
    "provisioning level with the UpdateTable API."
#define INDEX_WORDS                                                                                          \
    "The level of configured provisioned throughput for one or more global secondary indexes of the table "  \
    "was exceeded. Consider increasing your provisioning level for the under-provisioned global "            \
    "secondary indexes with the UpdateTable API"
#define HOT_WORDS                                                                                            \
    "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling "     \
    "your table or index so please try again shortly. If exceptions persist, check if you have a hot "       \
    "key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"
#define MAX_WORDS          "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
#define REASON(what, more) "'ThrottlingReasons':[{'reason':'" what "','resource':'" ARN more "'}]"
#define EXCEEDED(words, reason)                                                                              \
    "{'__type':'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException','message':'" words  \
    "'," reason "}"
#define THROTTLED(words, reason)                                                                             \
    "{'__type':'com.amazon.coral.availability#ThrottlingException','message':'" words "'," reason "}"

static const char *quoted(struct world *world, const char *text)
{
    struct slice copy = arena_copy(&world->scratch, slice_of(text));
    for (char *at = (char *)(uintptr_t)copy.data; *at; at++)
        if (*at == '\'') *at = '"';
    return copy.data;
}

static struct slice say(struct world *world, const char *operation, const char *body)
{
    return ask(world, operation, quoted(world, body));
}

#define SAYS(operation, body, reply)      CHECK_TEXT(say(&world, operation, body), quoted(&world, reply))
#define SHOWS_PART(operation, body, part) CHECK_CONTAINS(say(&world, operation, body), quoted(&world, part))

static uint64_t throttle(struct world *world, struct api_throttle order)
{
    uint64_t refused;
    CHECK(api_throttle(world->api, &order, &refused));
    return refused;
}

/* The table has the members, and nothing unused yet but the units of its first second. */
static void open_units(struct world *world, const char *members)
{
    world_open(world);
    throttle(world, (struct api_throttle){.has_enforce = true, .enforce = true});
    say(world, "CreateTable",
        arena_printf(&world->scratch, "{'TableName':'units'," KEYS ",%s}", members).data);
    CHECK_INT(world->status, 200);
}

TEST(writes_beyond_the_units_are_refused)
{
    struct world world;
    open_units(&world, UNITS("2", "2") "," INDEX("," UNITS("5", "5")));
    SAYS("PutItem", PUT("1"), "{}");
    SAYS("PutItem", PUT("2"), "{}");
    SAYS("PutItem", PUT("3"), EXCEEDED(TABLE_WORDS, REASON("TableWriteProvisionedThroughputExceeded", "")));
    SAYS("GetItem", GET("3"), "{}"); /* it was not done, and reads have units of their own */
    SAYS("DeleteItem", "{'TableName':'units','Key':{'a':{'S':'3'}}}",
         EXCEEDED(TABLE_WORDS, REASON("TableWriteProvisionedThroughputExceeded", "")));
    CHECK_INT((int)throttle(&world, (struct api_throttle){0}), 2);
    world.now_ms += 500;
    SAYS("UpdateItem", "{'TableName':'units','Key':{'a':{'S':'3'}}}", "{}");
    SHOWS_PART("PutItem", PUT("3"), "ProvisionedThroughputExceededException");
    world_close(&world);
}

/* The tag says it of one table; what is said of all at run time goes before tags, and of the table before that. */
TEST(a_tag_lets_the_throughput_of_its_table_act)
{
    struct world world;
    world_open(&world);
#define TABLE(name, more)                                                                                    \
    "{'TableName':'" name "'," KEYS "," INDEX("," UNITS("9", "9")) "," UNITS("1", "1") more "}"
#define TAG(word) "{'ResourceArn':'" ARN "','Tags':[{'Key':'quipu:throttle','Value':'" word "'}]}"
#define WRITES                                                                                               \
    "{'TransactItems':[{'Put':{'TableName':'other','Item':{'a':{'S':'1'}}}},"                                \
    "{'Put':{'TableName':'units','Item':{'a':{'S':'1'}}}}]}"
#define READS                                                                                                \
    "{'TransactItems':[{'Get':{'TableName':'other','Key':{'a':{'S':'1'}}}},"                                 \
    "{'Get':{'TableName':'units','Key':{'a':{'S':'1'}}}}]}"
    static const char refused[] = "ProvisionedThroughputExceededException";
    say(&world, "CreateTable", TABLE("units", ",'Tags':[{'Key':'quipu:throttle','Value':'on'}]"));
    say(&world, "CreateTable", TABLE("other", ""));
    SAYS("PutItem", PUT("1"), "{}");
    SHOWS_PART("PutItem", PUT("2"), refused);
    SHOWS_PART("BatchWriteItem", "{'RequestItems':{'units':[{'PutRequest':{'Item':{'a':{'S':'1'}}}}]}}",
               refused);
    SHOWS_PART("TransactWriteItems", WRITES, "TransactionCanceledException");
    SHOWS_PART("GetItem", GET("1"), "'Item'");
    SHOWS_PART("GetItem", GET("1"), refused);
    SHOWS_PART("Scan", "{'TableName':'units'}", refused);
    SHOWS_PART("BatchGetItem", "{'RequestItems':{'units':{'Keys':[{'a':{'S':'1'}}]}}}", refused);
    SHOWS_PART("TransactGetItems", READS, "TransactionCanceledException");
    for (int i = 0; i < 3; i++) SAYS("PutItem", "{'TableName':'other','Item':{'a':{'S':'1'}}}", "{}");
    say(&world, "TagResource", TAG("off"));
    SAYS("PutItem", PUT("2"), "{}");
    say(&world, "TagResource", TAG("yes")); /* says nothing */
    SAYS("PutItem", PUT("2"), "{}");
    throttle(&world, (struct api_throttle){.table = SLICE("units"), .has_enforce = true, .enforce = true});
    say(&world, "TagResource", TAG("off"));
    SHOWS_PART("PutItem", PUT("2"), refused);
    throttle(&world, (struct api_throttle){.has_enforce = true, .enforce = true});
    SHOWS_PART("PutItem", PUT("2"), refused);
    say(&world, "TagResource", TAG("on"));
    throttle(&world, (struct api_throttle){.has_enforce = true, .enforce = false});
    SAYS("PutItem", PUT("2"), "{}");
#undef TABLE
#undef TAG
#undef WRITES
#undef READS
    world_close(&world);
}

TEST(reads_beyond_the_units_are_refused)
{
    struct world world;
    open_units(&world, UNITS("2", "9") "," INDEX("," UNITS("1", "9")));
    SAYS("PutItem", PUT_G("1"), "{}");
    SHOWS_PART("GetItem", GET("1"), "'Item'");
    SHOWS_PART("Query",
               "{'TableName':'units','KeyConditionExpression':'a = :a','ConsistentRead':true,"
               "'ExpressionAttributeValues':{':a':{'S':'1'}}}",
               "'Count':1");
    SAYS("Scan", "{'TableName':'units'}",
         EXCEEDED(TABLE_WORDS, REASON("TableReadProvisionedThroughputExceeded", "")));
#define BY_INDEX                                                                                             \
    "{'TableName':'units','IndexName':'gsi','KeyConditionExpression':'g = "                                  \
    ":g','ExpressionAttributeValues':{':g':{'S':'x'}}}"
    SHOWS_PART("Query", BY_INDEX, "'Count':1");
    SHOWS_PART("Query", BY_INDEX, "'Count':1");
    SAYS("Query", BY_INDEX,
         EXCEEDED(INDEX_WORDS, REASON("IndexReadProvisionedThroughputExceeded", "/index/gsi")));
#undef BY_INDEX
    world_close(&world);
}

TEST(statements_are_refused_like_requests)
{
    struct world world;
    open_units(&world, UNITS("1", "1") "," INDEX("," UNITS("9", "9")));
    static const char insert[] = "{\"Statement\":\"INSERT INTO units VALUE {'a':'1'}\"}";
    static const char select[] =
        "{\"Statement\":\"SELECT * FROM units WHERE a = '1'\",\"ConsistentRead\":true}";
    CHECK_TEXT(ask(&world, "ExecuteStatement", insert), "{\"Items\":[]}");
    CHECK_CONTAINS(ask(&world, "ExecuteStatement", insert), "TableWriteProvisionedThroughputExceeded");
    CHECK_CONTAINS(ask(&world, "ExecuteStatement", select), "\"Items\":[{");
    CHECK_CONTAINS(ask(&world, "ExecuteStatement", select), "TableReadProvisionedThroughputExceeded");
    static const char reads[] = "{\"Statements\":[{\"Statement\":\"SELECT * FROM units WHERE a = '1'\"}]}";
    static const char writes[] = "{\"Statements\":[{\"Statement\":\"INSERT INTO units VALUE {'a':'2'}\"}]}";
    CHECK_CONTAINS(ask(&world, "BatchExecuteStatement", reads), "\"Code\":\"ProvisionedThroughputExceeded\"");
    CHECK_CONTAINS(ask(&world, "BatchExecuteStatement", writes),
                   "\"Code\":\"ProvisionedThroughputExceeded\"");
    world.now_ms += 1000;
    CHECK_TEXT(ask(&world, "BatchExecuteStatement", writes), "{\"Responses\":[{\"TableName\":\"units\"}]}");
    world_close(&world);
}

/* What was not used for five minutes may be used at once, and no more than that. */
TEST(unused_units_are_kept_for_five_minutes)
{
    struct world world;
    open_units(&world, UNITS("9", "1") "," INDEX("," UNITS("9", "900")));
    world.now_ms += 3600 * 1000;
    for (int i = 0; i < 300; i++) SAYS("PutItem", PUT("1"), "{}");
    SHOWS_PART("PutItem", PUT("1"), "ProvisionedThroughputExceededException");
    world.now_ms += 3000;
    for (int i = 0; i < 3; i++) SAYS("PutItem", PUT("1"), "{}");
    SHOWS_PART("PutItem", PUT("1"), "ProvisionedThroughputExceededException");
    world_close(&world);
}

TEST(a_failed_condition_consumes_and_what_is_refused_does_not)
{
    struct world world;
    open_units(&world, UNITS("9", "2") "," INDEX("," UNITS("9", "9")));
#define IMPOSSIBLE "{'TableName':'units','Item':{'a':{'S':'1'}},'ConditionExpression':'attribute_exists(a)'}"
    SHOWS_PART("PutItem", IMPOSSIBLE, "ConditionalCheckFailedException");
    SHOWS_PART("PutItem", IMPOSSIBLE, "ConditionalCheckFailedException");
    SHOWS_PART("PutItem", IMPOSSIBLE, "ProvisionedThroughputExceededException");
    world.now_ms += 500;
    SHOWS_PART("PutItem", IMPOSSIBLE, "ConditionalCheckFailedException");
#undef IMPOSSIBLE
    world_close(&world);
}

/* A write waits for the slowest of the indexes that it changes. */
TEST(an_index_holds_back_writes_of_its_table)
{
    struct world world;
    open_units(&world, UNITS("9", "9") "," INDEX("," UNITS("9", "1")));
    SAYS("PutItem", PUT_G("1"), "{}");
    SAYS("PutItem", PUT_G("2"),
         EXCEEDED(INDEX_WORDS, REASON("IndexWriteProvisionedThroughputExceeded", "/index/gsi")));
    SAYS("PutItem", PUT("2"), "{}");   /* which the index does not see */
    SAYS("PutItem", PUT_G("1"), "{}"); /* which changes no entry */
    world_close(&world);
}

TEST(batches_leave_over_what_was_too_much)
{
    struct world world;
    open_units(&world, UNITS("2", "2") "," INDEX("," UNITS("9", "9")));
#define PUT_3                                                                                                  \
    "{'RequestItems':{'units':[{'PutRequest':{'Item':{'a':{'S':'1'}}}},{'DeleteRequest':{'Key':{'a':{'S':'2'}" \
    "}}},{'PutRequest':{'Item':{'a':{'S':'3'},'n':{'N':'1'}}}},{'DeleteRequest':{'Key':{'a':{'S':'4'}}}}]},"   \
    "'ReturnConsumedCapacity':'TOTAL'}"
    SAYS("BatchWriteItem", PUT_3,
         "{'UnprocessedItems':{'units':[{'PutRequest':{'Item':{'a':{'S':'3'},'n':{'N':'1'}}}},"
         "{'DeleteRequest':{'Key':{'a':{'S':'4'}}}}]},"
         "'ConsumedCapacity':[{'TableName':'units','CapacityUnits':2.0}]}");
    SAYS("BatchWriteItem", PUT_3,
         EXCEEDED(TABLE_WORDS, REASON("TableWriteProvisionedThroughputExceeded", "")));
#define GET_3                                                                                                \
    "{'RequestItems':{'units':{'ConsistentRead':true,'Keys':[{'a':{'S':'1'}},{'a':{'S':'2'}},{'a':{'S':'3'}}]}}}"
    SAYS("BatchGetItem", GET_3,
         "{'Responses':{'units':[{'a':{'S':'1'}}]},"
         "'UnprocessedKeys':{'units':{'Keys':[{'a':{'S':'3'}}],'ConsistentRead':true}}}");
    SAYS("BatchGetItem", GET_3, EXCEEDED(TABLE_WORDS, REASON("TableReadProvisionedThroughputExceeded", "")));
    world_close(&world);
}

#define WRITES "{'TransactItems':[{'Put':" PUT("1") "},{'Put':" PUT("2") "}]}"
#define READS  "{'TransactItems':[{'Get':{'TableName':'units','Key':{'a':{'S':'1'}}}}]}"
#define CANCELLED(codes, reasons)                                                                            \
    "{'__type':'com.amazonaws.dynamodb.v20120810#TransactionCanceledException','Message':'Transaction "      \
    "cancelled, please refer cancellation reasons for specific reasons [" codes                              \
    "]','CancellationReasons':[" reasons "]}"

TEST(transactions_are_cancelled)
{
    struct world world;
    open_units(&world, UNITS("2", "4") "," INDEX("," UNITS("9", "9")));
    SAYS("TransactWriteItems", WRITES, "{}");
#define FULL "{'Code':'ProvisionedThroughputExceeded','Message':'" TABLE_WORDS "'}"
    SAYS("TransactWriteItems", WRITES,
         CANCELLED("ProvisionedThroughputExceeded, ProvisionedThroughputExceeded", FULL "," FULL));
    SHOWS_PART("TransactGetItems", READS, "'Item'");
    SAYS("TransactGetItems", READS, CANCELLED("ProvisionedThroughputExceeded", FULL));
#undef FULL
    world_close(&world);
}

#define ON_DEMAND "'BillingMode':'PAY_PER_REQUEST'"

TEST(maxima_of_on_demand_tables_are_kept)
{
    struct world world;
    open_units(&world,
               ON_DEMAND ",'OnDemandThroughput':{'MaxReadRequestUnits':1,'MaxWriteRequestUnits':1}," INDEX(
                   ",'OnDemandThroughput':{'MaxReadRequestUnits':1,'MaxWriteRequestUnits':5}"));
    world.now_ms += 3600 * 1000; /* nothing is saved up */
    SAYS("PutItem", PUT("1"), "{}");
    SAYS("PutItem", PUT("1"), THROTTLED(MAX_WORDS, REASON("TableWriteMaxOnDemandThroughputExceeded", "")));
    SHOWS_PART("GetItem", GET("1"), "'Item'");
    SAYS("GetItem", GET("1"), THROTTLED(MAX_WORDS, REASON("TableReadMaxOnDemandThroughputExceeded", "")));
    SHOWS_PART("Scan", "{'TableName':'units','IndexName':'gsi'}", "'Count':0");
    SHOWS_PART("Scan", "{'TableName':'units','IndexName':'gsi'}", "'Count':0");
    SAYS("Scan", "{'TableName':'units','IndexName':'gsi'}",
         THROTTLED(MAX_WORDS, REASON("IndexReadMaxOnDemandThroughputExceeded", "/index/gsi")));
    SAYS("TransactWriteItems", "{'TransactItems':[{'Put':" PUT("2") "}]}",
         CANCELLED("ThrottlingError", "{'Code':'ThrottlingError','Message':'" MAX_WORDS "'}"));
    world_close(&world);
}

/* A thousand writes a second to one key, whatever the table has; other keys do not suffer. */
TEST(one_key_has_its_bounds)
{
    struct world world;
    open_units(&world, ON_DEMAND "," INDEX(""));
    for (int i = 0; i < 1000; i++) SAYS("PutItem", PUT("hot"), "{}");
    SAYS("PutItem", PUT("hot"), THROTTLED(HOT_WORDS, REASON("TableWriteKeyRangeThroughputExceeded", "")));
    SAYS("PutItem", PUT("cold"), "{}");
    world.now_ms += 10000;
    for (int i = 0; i < 1000; i++) SAYS("PutItem", PUT("hot"), "{}");
    SHOWS_PART("PutItem", PUT("hot"), "KeyRange");
    world_close(&world);
}

/* Off unless somebody says so; one table may have its own way; what is drained has nothing. */
TEST(throttling_is_said_table_by_table)
{
    struct world world;
    open_units(&world, UNITS("1", "1") "," INDEX("," UNITS("9", "9")));
    throttle(&world, (struct api_throttle){.has_enforce = true});
    for (int i = 0; i < 10; i++) SAYS("PutItem", PUT("1"), "{}");
    throttle(&world, (struct api_throttle){.table = SLICE("units"), .has_enforce = true, .enforce = true});
    SAYS("PutItem", PUT("1"), "{}");
    SHOWS_PART("PutItem", PUT("1"), "Exceeded");
    throttle(&world, (struct api_throttle){.table = SLICE("units"), .has_enforce = true});
    SAYS("PutItem", PUT("1"), "{}");
    throttle(&world, (struct api_throttle){.has_enforce = true, .enforce = true});
    world.now_ms += 100000;
    throttle(&world, (struct api_throttle){.table = SLICE("units"), .drain = true});
    SHOWS_PART("PutItem", PUT("1"), "Exceeded");
    SHOWS_PART("GetItem", GET("1"), "Exceeded"); /* also what nobody has taken from yet */
    world.now_ms += 1000;
    SAYS("PutItem", PUT("1"), "{}");
    SHOWS_PART("PutItem", PUT("1"), "Exceeded");
    uint64_t refused;
    struct api_throttle unknown = {
        .table = SLICE("nowhere"), .drain = true, .has_burst = true, .burst_seconds = 9};
    CHECK(!api_throttle(world.api, &unknown, &refused));
    throttle(&world, (struct api_throttle){.has_burst = true, .burst_seconds = 2});
    world.now_ms += 100000;
    for (int i = 0; i < 2; i++) SAYS("PutItem", PUT("1"), "{}");
    SHOWS_PART("PutItem", PUT("1"), "Exceeded");
    world_close(&world);
}
