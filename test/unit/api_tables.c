/* CreateTable, DescribeTable, DeleteTable and ListTables: what they answer, and what CreateTable says about
 * schemas. */
#include "unit/api_fixture.h"

#define INVALID                 "One or more parameter values were invalid: "
#define NAME                    "\"TableName\":\"abc\""
#define ON_DEMAND               "\"BillingMode\":\"PAY_PER_REQUEST\""
#define UNITS                   "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1,\"WriteCapacityUnits\":2}"
#define ATTRIBUTE(name)         "{\"AttributeName\":\"" name "\",\"AttributeType\":\"S\"}"
#define ATTRIBUTES(list)        "\"AttributeDefinitions\":[" list "]"
#define HASH(name)              "{\"AttributeName\":\"" name "\",\"KeyType\":\"HASH\"}"
#define RANGE(name)             "{\"AttributeName\":\"" name "\",\"KeyType\":\"RANGE\"}"
#define KEYS(list)              "\"KeySchema\":[" list "]"
#define ALL                     "\"Projection\":{\"ProjectionType\":\"ALL\"}"
#define INDEX(name, keys, rest) "{\"IndexName\":\"" name "\"," KEYS(keys) "," rest "}"
#define LOCAL(list)             "\"LocalSecondaryIndexes\":[" list "]"
#define GLOBAL(list)            "\"GlobalSecondaryIndexes\":[" list "]"
#define A                       ATTRIBUTE("a")
#define AB                      ATTRIBUTE("a") "," ATTRIBUTE("b")
#define ABC                     AB "," ATTRIBUTE("c")
#define SIMPLE                  NAME "," ATTRIBUTES(A) "," KEYS(HASH("a"))
#define PAIR                    NAME "," ATTRIBUTES(AB) "," KEYS(HASH("a") "," RANGE("b"))

TEST(a_table_is_created_described_and_deleted)
{
    struct world world;
    world_open(&world);
    struct slice reply = ask(&world, "CreateTable", "{" SIMPLE "," UNITS "}");
    CHECK_CONTAINS(reply,
                   "{\"TableDescription\":{\"TableName\":\"abc\",\"TableStatus\":\"CREATING\","
                   "\"TableArn\":\"arn:aws:dynamodb:us-east-1:000000000000:table/abc\",\"TableId\":\"");
    CHECK_CONTAINS(
        reply,
        "\"ItemCount\":0,\"TableSizeBytes\":0,\"ProvisionedThroughput\":{\"NumberOfDecreasesToday\":0,"
        "\"ReadCapacityUnits\":1,\"WriteCapacityUnits\":2},\"AttributeDefinitions\":[{\"AttributeName\":"
        "\"a\",\"AttributeType\":\"S\"}],\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}],"
        "\"CreationDateTime\":1794716005.340,");
    CHECK(!slice_contains(reply, SLICE("BillingModeSummary")));

    reply = ask(&world, "DescribeTable", "{\"TableName\":\"abc\"}");
    CHECK_CONTAINS(reply, "{\"Table\":{\"TableName\":\"abc\",\"TableStatus\":\"ACTIVE\",");
    CHECK_CONTAINS(reply, "\"DeletionProtectionEnabled\":false}}");

    reply = ask(&world, "DeleteTable", "{\"TableName\":\"abc\"}");
    CHECK_CONTAINS(reply, "{\"TableDescription\":{\"TableName\":\"abc\",\"TableStatus\":\"DELETING\",");
    CHECK(!slice_contains(reply, SLICE("KeySchema")));
    CHECK_REFUSED(&world, "DescribeTable", "{\"TableName\":\"abc\"}", "ResourceNotFoundException",
                  "Requested resource not found: Table: abc not found");
    CHECK_REFUSED(&world, "DeleteTable", "{\"TableName\":\"abc\"}", "ResourceNotFoundException",
                  "Requested resource not found: Table: abc not found");
    world_close(&world);
}

TEST(a_table_on_demand_has_a_summary)
{
    struct world world;
    world_open(&world);
    struct slice reply = ask(&world, "CreateTable", "{" SIMPLE "," ON_DEMAND "}");
    CHECK_CONTAINS(reply, "\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\"}");
    CHECK_CONTAINS(reply, "\"ProvisionedThroughput\":{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":0,"
                          "\"WriteCapacityUnits\":0}");
    reply = ask(&world, "DescribeTable",
                "{\"TableName\":\"arn:aws:dynamodb:us-east-1:000000000000:table/abc\"}");
    CHECK_CONTAINS(reply, "\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\","
                          "\"LastUpdateToPayPerRequestDateTime\":1794716005.340}");
    CHECK_CONTAINS(reply, "\"WarmThroughput\":{\"Status\":\"ACTIVE\",\"ReadUnitsPerSecond\":12000,"
                          "\"WriteUnitsPerSecond\":4000}");
    world_close(&world);
}

TEST(a_table_with_everything)
{
    struct world world;
    world_open(&world);
    CHECK_FINE(
        &world, "CreateTable",
        "{" NAME "," ATTRIBUTES(ABC) "," KEYS(HASH("a") "," RANGE("b")) "," ON_DEMAND "," LOCAL(INDEX(
            "lsi", HASH("a") "," RANGE("c"),
            "\"Projection\":{\"ProjectionType\":\"KEYS_ONLY\"}")) "," GLOBAL(INDEX("gsi",
                                                                                   HASH("c") "," HASH(
                                                                                       "b") "," RANGE("a"),
                                                                                   "\"Projection\":{"
                                                                                   "\"ProjectionType\":"
                                                                                   "\"INCLUDE\","
                                                                                   "\"NonKeyAttributes\":["
                                                                                   "\"x\",\"y\"]},"
                                                                                   "\"OnDemandThroughput\":{"
                                                                                   "\"MaxReadRequestUnits\":"
                                                                                   "7}")) ","
                                                                                          "\"StreamSpecificat"
                                                                                          "ion\":{"
                                                                                          "\"StreamEnabled\":"
                                                                                          "true,"
                                                                                          "\"StreamViewType\""
                                                                                          ":\"NEW_IMAGE\"},"
                                                                                          "\"SSESpecification"
                                                                                          "\":{\"Enabled\":"
                                                                                          "true,"
                                                                                          "\"KMSMasterKeyId\""
                                                                                          ":\"k1\"},"
                                                                                          "\"TableClass\":"
                                                                                          "\"STANDARD_"
                                                                                          "INFREQUENT_"
                                                                                          "ACCESS\","
                                                                                          "\"DeletionProtecti"
                                                                                          "onEnabled\":true,"
                                                                                          "\"Tags\":[{"
                                                                                          "\"Key\":\"k\","
                                                                                          "\"Value\":\"v\"}],"
                                                                                          "\"OnDemandThroughp"
                                                                                          "ut\":{"
                                                                                          "\"MaxReadRequestUn"
                                                                                          "its\":100,"
                                                                                          "\"MaxWriteRequestU"
                                                                                          "nits\":50},"
                                                                                          "\"WarmThroughput\""
                                                                                          ":{"
                                                                                          "\"ReadUnitsPerSeco"
                                                                                          "nd\":13000}}");
    struct slice reply = ask(&world, "DescribeTable", "{\"TableName\":\"abc\"}");
    CHECK_CONTAINS(
        reply, "\"LocalSecondaryIndexes\":[{\"IndexName\":\"lsi\",\"KeySchema\":[{\"AttributeName\":\"a\","
               "\"KeyType\":\"HASH\"},{\"AttributeName\":\"c\",\"KeyType\":\"RANGE\"}],\"Projection\":"
               "{\"ProjectionType\":\"KEYS_ONLY\"},\"IndexArn\":"
               "\"arn:aws:dynamodb:us-east-1:000000000000:table/abc/index/lsi\",\"IndexSizeBytes\":0,"
               "\"ItemCount\":0}]");
    CHECK_CONTAINS(
        reply,
        "\"GlobalSecondaryIndexes\":[{\"IndexName\":\"gsi\",\"KeySchema\":[{\"AttributeName\":\"c\","
        "\"KeyType\":\"HASH\"},{\"AttributeName\":\"b\",\"KeyType\":\"HASH\"},{\"AttributeName\":\"a\","
        "\"KeyType\":\"RANGE\"}],\"Projection\":{\"ProjectionType\":\"INCLUDE\",\"NonKeyAttributes\":"
        "[\"x\",\"y\"]}");
    CHECK_CONTAINS(reply, "\"IndexStatus\":\"ACTIVE\"");
    CHECK_CONTAINS(reply, "\"OnDemandThroughput\":{\"MaxReadRequestUnits\":7}");
    CHECK_CONTAINS(reply,
                   "\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"NEW_IMAGE\"},"
                   "\"LatestStreamLabel\":\"2026-11-15T04:13:25.340\",\"LatestStreamArn\":"
                   "\"arn:aws:dynamodb:us-east-1:000000000000:table/abc/stream/2026-11-15T04:13:25.340\"");
    CHECK_CONTAINS(reply,
                   "\"SSEDescription\":{\"Status\":\"ENABLED\",\"SSEType\":\"KMS\",\"KMSMasterKeyArn\":"
                   "\"arn:aws:kms:us-east-1:000000000000:key/k1\"}");
    CHECK_CONTAINS(reply, "\"TableClassSummary\":{\"TableClass\":\"STANDARD_INFREQUENT_ACCESS\"}");
    CHECK_CONTAINS(reply, "\"OnDemandThroughput\":{\"MaxReadRequestUnits\":100,\"MaxWriteRequestUnits\":50}");
    CHECK_CONTAINS(reply, "\"ReadUnitsPerSecond\":13000,\"WriteUnitsPerSecond\":4000");
    CHECK_CONTAINS(reply, "\"DeletionProtectionEnabled\":true");
    CHECK_INVALID(&world, "DeleteTable", "{\"TableName\":\"abc\"}",
                  "Resource cannot be deleted as it is currently protected against deletion. Disable "
                  "deletion protection "
                  "first.");
    world_close(&world);
}

TEST(a_name_is_taken_once)
{
    struct world world;
    world_open(&world);
    CHECK_FINE(&world, "CreateTable", "{" SIMPLE "," ON_DEMAND "}");
    CHECK_REFUSED(&world, "CreateTable", "{" SIMPLE "," ON_DEMAND "}", "ResourceInUseException",
                  "Table already exists: abc");
    CHECK_FINE(&world, "DeleteTable", "{\"TableName\":\"abc\"}");
    CHECK_FINE(&world, "CreateTable", "{" SIMPLE "," ON_DEMAND "}");
    world_close(&world);
}

TEST(tables_are_listed_in_pages)
{
    struct world world;
    struct arena arena = {0};
    world_open(&world);
    for (int i = 0; i < 105; i++) {
        struct slice body = arena_printf(
            &arena, "{\"TableName\":\"t%03d\"," ATTRIBUTES(A) "," KEYS(HASH("a")) "," ON_DEMAND "}", i);
        CHECK_FINE(&world, "CreateTable", body.data);
    }
    CHECK_ASK(&world, "ListTables", "{\"Limit\":2}",
              "{\"TableNames\":[\"t000\",\"t001\"],\"LastEvaluatedTableName\":\"t001\"}");
    CHECK_ASK(&world, "ListTables", "{\"ExclusiveStartTableName\":\"t102x\"}",
              "{\"TableNames\":[\"t103\",\"t104\"]}");
    CHECK_ASK(&world, "ListTables", "{\"ExclusiveStartTableName\":\"t102\",\"Limit\":2}",
              "{\"TableNames\":[\"t103\",\"t104\"]}");
    CHECK_ASK(&world, "ListTables", "{\"ExclusiveStartTableName\":\"zzz\"}", "{\"TableNames\":[]}");
    CHECK_CONTAINS(ask(&world, "ListTables", "{}"), "\"t099\"],\"LastEvaluatedTableName\":\"t099\"}");
    CHECK_INVALID(&world, "ListTables", "{\"ExclusiveStartTableName\":\"a;\",\"Limit\":500}",
                  "3 validation errors detected: Value 'a;' at 'exclusiveStartTableName' failed to satisfy "
                  "constraint: Member "
                  "must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a;' at "
                  "'exclusiveStartTableName' failed to "
                  "satisfy constraint: Member must have length greater than or equal to 3; Value '500' at "
                  "'limit' failed to "
                  "satisfy constraint: Member must have value less than or equal to 100");
    arena_free(&arena);
    world_close(&world);
}

TEST(the_service_about_itself)
{
    struct world world;
    world_open(&world);
    CHECK_ASK(&world, "DescribeLimits", "{}",
              "{\"AccountMaxReadCapacityUnits\":80000,\"AccountMaxWriteCapacityUnits\":80000,"
              "\"TableMaxReadCapacityUnits\":40000,\"TableMaxWriteCapacityUnits\":40000}");
    CHECK_ASK(&world, "DescribeEndpoints", "{}",
              "{\"Endpoints\":[{\"Address\":\"localhost:8000\",\"CachePeriodInMinutes\":1440}]}");
    world_close(&world);
}

TEST(billing_of_a_new_table)
{
    struct world world;
    world_open(&world);
    CHECK_INVALID(
        &world, "CreateTable", "{" SIMPLE "}",
        INVALID
        "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED");
    CHECK_INVALID(&world, "CreateTable",
                  "{" NAME "," ATTRIBUTES("") "," KEYS(HASH("a") "," HASH("a")) "," UNITS "," ON_DEMAND "}",
                  INVALID
                  "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
                  "PAY_PER_REQUEST");
    CHECK_INVALID(&world, "CreateTable",
                  "{" SIMPLE ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1000000000001,"
                             "\"WriteCapacityUnits\":1000000000001}}",
                  "Given value 1000000000001 for ReadCapacityUnits is out of bounds");
    CHECK_INVALID(&world, "CreateTable",
                  "{" SIMPLE ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":1000000000000,"
                             "\"WriteCapacityUnits\":1000000000001}}",
                  "Given value 1000000000001 for WriteCapacityUnits is out of bounds");
    CHECK_INVALID(&world, "CreateTable",
                  "{" SIMPLE "," UNITS ",\"OnDemandThroughput\":{\"MaxWriteRequestUnits\":1}}",
                  INVALID "MaxWriteRequestUnits for OnDemandThroughput cannot be specified when table "
                          "BillingMode is PROVISIONED.");
    CHECK_INVALID(&world, "CreateTable",
                  "{" SIMPLE "," ON_DEMAND ",\"OnDemandThroughput\":{\"MaxReadRequestUnits\":-1}}",
                  INVALID
                  "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range");
    CHECK_FINE(&world, "CreateTable", "{" SIMPLE "," UNITS ",\"OnDemandThroughput\":{}}");
    world_close(&world);
}

TEST(keys_of_a_new_table)
{
    struct world world;
    const char *undefined = "Invalid KeySchema: Some index key attribute have no definition";
    world_open(&world);
    CHECK_INVALID(&world, "CreateTable", "{" NAME "," ATTRIBUTES("") "," KEYS(HASH("a")) "," ON_DEMAND "}",
                  undefined);
    CHECK_INVALID(&world, "CreateTable",
                  "{" NAME "," ATTRIBUTES(A) "," KEYS(HASH("a") "," RANGE("a")) "," UNITS "}", undefined);
    CHECK_INVALID(&world, "CreateTable",
                  "{" NAME "," ATTRIBUTES(ATTRIBUTE("b")) "," KEYS(HASH("a")) "," UNITS "}",
                  INVALID "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], "
                          "AttributeDefinitions: [b]");
    CHECK_INVALID(&world, "CreateTable",
                  "{" NAME "," ATTRIBUTES(AB) "," KEYS(HASH("a") "," HASH("a")) "," UNITS "}",
                  "Both the Hash Key and the Range Key element in the KeySchema have the same name");
    CHECK_INVALID(&world, "CreateTable",
                  "{" NAME "," ATTRIBUTES(AB) "," KEYS(RANGE("a") "," HASH("b")) "," UNITS "}",
                  "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    CHECK_INVALID(&world, "CreateTable",
                  "{" NAME "," ATTRIBUTES(AB) "," KEYS(HASH("a") "," HASH("b")) "," UNITS "}",
                  "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type");
    CHECK_INVALID(&world, "CreateTable", "{" NAME "," ATTRIBUTES(AB) "," KEYS(HASH("a")) "," UNITS "}",
                  INVALID
                  "Number of attributes in KeySchema does not exactly match number of attributes defined in "
                  "AttributeDefinitions");
    world_close(&world);
}

TEST(local_indexes_of_a_new_table)
{
    struct world world;
    world_open(&world);
    CHECK_INVALID(&world, "CreateTable", "{" PAIR "," UNITS "," LOCAL("") "}",
                  INVALID "List of LocalSecondaryIndexes is empty");
    CHECK_INVALID(
        &world, "CreateTable", "{" SIMPLE "," UNITS "," LOCAL(INDEX("abc", RANGE("c"), ALL)) "}",
        INVALID
        "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex");
    CHECK_INVALID(&world, "CreateTable",
                  "{" PAIR "," UNITS "," LOCAL(INDEX("abc", HASH("a") "," RANGE("c"), ALL)) "}",
                  INVALID "Some index key attributes are not defined in AttributeDefinitions. Keys: [a, c], "
                          "AttributeDefinitions: [a, b]");
    CHECK_INVALID(&world, "CreateTable", "{" PAIR "," UNITS "," LOCAL(INDEX("abc", RANGE("a"), ALL)) "}",
                  "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    CHECK_INVALID(&world, "CreateTable", "{" PAIR "," UNITS "," LOCAL(INDEX("abc", HASH("b"), ALL)) "}",
                  INVALID "Index KeySchema does not have a range key for index: abc");
    CHECK_INVALID(
        &world, "CreateTable", "{" PAIR "," UNITS "," LOCAL(INDEX("abc", HASH("b") "," RANGE("a"), ALL)) "}",
        INVALID
        "Index KeySchema does not have the same leading hash key as table KeySchema for index: abc. index "
        "hash key: b, table hash key: a");
    CHECK_INVALID(&world, "CreateTable",
                  "{" PAIR "," UNITS "," LOCAL(INDEX("abc", HASH("a") "," RANGE("b"), ALL) "," INDEX(
                      "abc", HASH("a") "," RANGE("b"), ALL)) "}",
                  INVALID "Duplicate index name: abc");
    world_close(&world);
}

TEST(projections_of_indexes)
{
    struct world world;
    world_open(&world);
#define PROJECTED(projection)                                                                                \
    "{" PAIR "," UNITS                                                                                       \
    "," LOCAL(INDEX("abc", HASH("a") "," RANGE("b"), "\"Projection\":{" projection "}")) "}"
    CHECK_INVALID(&world, "CreateTable", PROJECTED("\"NonKeyAttributes\":[\"a\"]"),
                  INVALID "Unknown ProjectionType: null");
    CHECK_INVALID(&world, "CreateTable", PROJECTED("\"ProjectionType\":\"ALL\",\"NonKeyAttributes\":[\"a\"]"),
                  INVALID "ProjectionType is ALL, but NonKeyAttributes is specified");
    CHECK_INVALID(&world, "CreateTable",
                  PROJECTED("\"ProjectionType\":\"KEYS_ONLY\",\"NonKeyAttributes\":[\"a\"]"),
                  INVALID "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified");
    CHECK_INVALID(&world, "CreateTable", PROJECTED("\"ProjectionType\":\"INCLUDE\""),
                  INVALID "ProjectionType is INCLUDE, but NonKeyAttributes is not specified");
#undef PROJECTED
    world_close(&world);
}

TEST(global_indexes_of_a_new_table)
{
    struct world world;
    world_open(&world);
    CHECK_INVALID(&world, "CreateTable", "{" SIMPLE "," ON_DEMAND "," GLOBAL("") "}",
                  INVALID "List of GlobalSecondaryIndexes is empty");
    CHECK_INVALID(&world, "CreateTable", "{" PAIR "," UNITS "," GLOBAL(INDEX("abc", HASH("a"), ALL)) "}",
                  INVALID "ProvisionedThroughput must be specified for index: abc");
    CHECK_INVALID(
        &world, "CreateTable", "{" PAIR "," ON_DEMAND "," GLOBAL(INDEX("abc", HASH("a"), ALL "," UNITS)) "}",
        INVALID
        "ProvisionedThroughput should not be specified for index: abc when BillingMode is PAY_PER_REQUEST");
    CHECK_INVALID(&world, "CreateTable",
                  "{" PAIR "," UNITS "," LOCAL(INDEX("abc", HASH("a") "," RANGE("b"), ALL)) "," GLOBAL(
                      INDEX("abc", HASH("a"), ALL "," UNITS)) "}",
                  INVALID "Duplicate index name: abc");
    CHECK_INVALID(
        &world, "CreateTable",
        "{" NAME "," ATTRIBUTES(ABC) "," KEYS(HASH("a")) "," ON_DEMAND
                                                         "," GLOBAL(INDEX("abc", HASH("b"), ALL)) "}",
        INVALID "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c], keys used: [a, b]");
    world_close(&world);
}

TEST(global_indexes_have_up_to_four_and_four_keys)
{
    struct world world;
    world_open(&world);
#define MANY                                                                                                 \
    NAME "," ATTRIBUTES(ABC "," ATTRIBUTE("d") "," ATTRIBUTE("e") "," ATTRIBUTE("f") "," ATTRIBUTE(          \
        "g") "," ATTRIBUTE("h")) "," KEYS(HASH("a")) "," ON_DEMAND
#define FOUR HASH("a") "," HASH("b") "," HASH("c") "," HASH("d")
    CHECK_INVALID(&world, "CreateTable", "{" MANY "," GLOBAL(INDEX("abc", FOUR "," HASH("e"), ALL)) "}",
                  "Too many partition keys. GSI can have at most 4 partition keys");
    CHECK_INVALID(
        &world, "CreateTable",
        "{" MANY "," GLOBAL(
            INDEX("abc", HASH("a") "," RANGE("b") "," RANGE("c") "," RANGE("d") "," RANGE("e") "," RANGE("f"),
                  ALL)) "}",
        "Too many sort keys. GSI can have at most 4 sort keys");
    CHECK_INVALID(&world, "CreateTable",
                  "{" MANY "," GLOBAL(INDEX("abc", HASH("a") "," RANGE("b") "," HASH("c"), ALL)) "}",
                  "Invalid key order. Hash Key must be specified first in key schema, Range Key must be "
                  "specifed second");
    CHECK_INVALID(&world, "CreateTable",
                  "{" MANY "," GLOBAL(INDEX("abc", HASH("a") "," HASH("b") "," RANGE("a"), ALL)) "}",
                  "Two keys can not have the same name");
    CHECK_FINE(&world, "CreateTable",
               "{" MANY "," GLOBAL(
                   INDEX("abc", FOUR "," RANGE("e") "," RANGE("f") "," RANGE("g") "," RANGE("h"), ALL)) "}");
#undef MANY
#undef FOUR
    world_close(&world);
}

TEST(twenty_global_and_five_local_indexes)
{
    struct world world;
    struct buf body = {0};
    world_open(&world);
    for (int count = 20; count <= 21; count++) {
        body.len = 0;
        buf_text(&body, "{" SIMPLE "," ON_DEMAND ",\"GlobalSecondaryIndexes\":[");
        for (int i = 0; i < count; i++)
            buf_printf(&body, "%s{\"IndexName\":\"abc%d\"," KEYS(HASH("a")) "," ALL "}", i ? "," : "", i);
        buf_text(&body, "]}");
        buf_byte(&body, 0);
        if (count == 20)
            CHECK_FINE(&world, "CreateTable", body.data);
        else
            CHECK_INVALID(&world, "CreateTable", body.data,
                          INVALID "GlobalSecondaryIndex count exceeds the per-table limit of 20");
    }
    buf_free(&body);
    world_close(&world);
}

TEST(streams_of_a_new_table)
{
    struct world world;
    world_open(&world);
    CHECK_INVALID(&world, "CreateTable", "{" SIMPLE "," ON_DEMAND ",\"StreamSpecification\":{}}",
                  "1 validation error detected: Value null at 'streamSpecification.streamEnabled' failed to "
                  "satisfy constraint: "
                  "Member must not be null");
    CHECK_INVALID(&world, "CreateTable",
                  "{" SIMPLE "," ON_DEMAND
                  ",\"StreamSpecification\":{\"StreamEnabled\":false,\"StreamViewType\":\"NEW_IMAGE\"}}",
                  INVALID
                  "Table is being created with a stream disabled, UpdateViewType should not be specified");
    CHECK_FINE(&world, "CreateTable",
               "{" SIMPLE "," ON_DEMAND ",\"StreamSpecification\":{\"StreamEnabled\":false}}");
    CHECK(!slice_contains(buf_view(&world.reply), SLICE("Stream")));
    world_close(&world);
}

TEST(what_is_not_supported_is_said)
{
    struct world world;
    world_open(&world);
    CHECK_INVALID(&world, "CreateTable",
                  "{" SIMPLE "," ON_DEMAND ",\"VectorIndexes\":[{\"IndexName\":\"x\"}]}",
                  INVALID "VectorIndexes is not supported");
    world_close(&world);
}
