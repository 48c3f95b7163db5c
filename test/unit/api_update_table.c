/* UpdateTable: what changes, what the answer shows meanwhile, and what is refused. */
#include "unit/api_fixture.h"

#define INVALID     "One or more parameter values were invalid: "
#define TABLE       "\"TableName\":\"abc\""
#define UNITS(r, w) "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":" #r ",\"WriteCapacityUnits\":" #w "}"
#define KEYS        "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}]"
#define SIMPLE      "{" TABLE ",\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"}]," KEYS
#define INDEX_KEYS                                                                                           \
    "\"KeySchema\":[{\"AttributeName\":\"g\",\"KeyType\":\"HASH\"}],\"Projection\":{\"ProjectionType\":"     \
    "\"ALL\"}"
#define WITH_INDEX                                                                                           \
    "{" TABLE ",\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"},"                \
    "{\"AttributeName\":\"g\",\"AttributeType\":\"S\"}]," KEYS
#define DEFINE_G  "\"AttributeDefinitions\":[{\"AttributeName\":\"g\",\"AttributeType\":\"N\"}]"
#define NOT_FOUND "Requested resource not found: Table: abc not found"

static void open_provisioned(struct world *world)
{
    world_open(world);
    CHECK_FINE(world, "CreateTable", SIMPLE "," UNITS(5, 5) "}");
}

static void open_on_demand(struct world *world)
{
    world_open(world);
    CHECK_FINE(world, "CreateTable", SIMPLE ",\"BillingMode\":\"PAY_PER_REQUEST\"}");
}

static struct slice describe(struct world *world)
{
    return ask(world, "DescribeTable", "{" TABLE "}");
}

TEST(units_go_up_and_down)
{
    struct world world;
    open_provisioned(&world);
    world.now_ms += 1000;
    struct slice reply = ask(&world, "UpdateTable", "{" TABLE "," UNITS(15, 15) "}");
    CHECK_CONTAINS(reply, "\"TableStatus\":\"UPDATING\"");
    CHECK_CONTAINS(reply, "{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":5,\"WriteCapacityUnits\":5,"
                          "\"LastIncreaseDateTime\":1794716006.340}");
    CHECK_CONTAINS(describe(&world),
                   "{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":15,\"WriteCapacityUnits\":15,"
                   "\"LastIncreaseDateTime\":1794716006.340}");
    world.now_ms += 1000;
    reply = ask(&world, "UpdateTable", "{" TABLE "," UNITS(5, 5) "}");
    CHECK_CONTAINS(reply, "{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":15,\"WriteCapacityUnits\":15,"
                          "\"LastIncreaseDateTime\":1794716006.340,\"LastDecreaseDateTime\":1794716007.340}");
    CHECK_CONTAINS(describe(&world), "{\"NumberOfDecreasesToday\":1,\"ReadCapacityUnits\":5,");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE "," UNITS(4, 5) "}");
    CHECK_CONTAINS(describe(&world), "{\"NumberOfDecreasesToday\":2,\"ReadCapacityUnits\":4,");
    world.now_ms += 24 * 3600 * 1000;
    CHECK_CONTAINS(describe(&world), "{\"NumberOfDecreasesToday\":0,\"ReadCapacityUnits\":4,");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE "," UNITS(4, 3) "}");
    CHECK_CONTAINS(describe(&world), "{\"NumberOfDecreasesToday\":1,\"ReadCapacityUnits\":4,");
    world_close(&world);
}

TEST(updates_that_change_nothing)
{
    struct world world;
    const char *nothing = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
                          "GlobalSecondaryIndexUpdates or SSESpecification or ReplicaUpdates is required";
    open_provisioned(&world);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE "}", nothing);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"GlobalSecondaryIndexUpdates\":[]}", nothing);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"OnDemandThroughput\":{}}", nothing);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"AttributeDefinitions\":[]}", nothing);
    CHECK_INVALID(
        &world, "UpdateTable", "{" TABLE ",\"BillingMode\":\"PROVISIONED\"," UNITS(5, 5) "}",
        "The provisioned throughput for the table will not change. The requested value equals the current "
        "value. "
        "Current ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. Current "
        "WriteCapacityUnits provisioned for the table: 5. Requested WriteCapacityUnits: 5. Refer to the "
        "Amazon "
        "DynamoDB Developer Guide for current limits and how to request higher limits.");
    world_close(&world);
}

TEST(tables_that_are_not_there)
{
    struct world world;
    world_open(&world);
    CHECK_REFUSED(&world, "UpdateTable", "{" TABLE "," UNITS(1, 1) "}", "ResourceNotFoundException",
                  NOT_FOUND);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"BillingMode\":\"PROVISIONED\"}",
                  INVALID "ProvisionedThroughput must be specified when BillingMode is PROVISIONED");
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE "," UNITS(1000000000001, 1) "}",
                  "Given value 1000000000001 for ReadCapacityUnits is out of bounds");
    world_close(&world);
}

TEST(to_on_demand_and_back)
{
    struct world world;
    const char *neither = INVALID
        "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
        "PAY_PER_REQUEST";
    open_provisioned(&world);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"BillingMode\":\"PAY_PER_REQUEST\"," UNITS(1, 1) "}",
                  neither);
    CHECK_INVALID(
        &world, "UpdateTable", "{" TABLE ",\"OnDemandThroughput\":{\"MaxReadRequestUnits\":9}}",
        INVALID
        "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is "
        "PROVISIONED");
    world.now_ms += 2000;
    CHECK_FINE(&world, "UpdateTable",
               "{" TABLE
               ",\"BillingMode\":\"PAY_PER_REQUEST\",\"OnDemandThroughput\":{\"MaxReadRequestUnits\":9}}");
    CHECK_CONTAINS(buf_view(&world.reply), "\"ReadCapacityUnits\":0,\"WriteCapacityUnits\":0");
    CHECK_CONTAINS(describe(&world), "\"BillingModeSummary\":{\"BillingMode\":\"PAY_PER_REQUEST\","
                                     "\"LastUpdateToPayPerRequestDateTime\":1794716007.340}");
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE "," UNITS(1, 1) "}", neither);
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"BillingMode\":\"PAY_PER_REQUEST\"}");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"BillingMode\":\"PROVISIONED\"," UNITS(7, 8) "}");
    struct slice reply = describe(&world);
    CHECK_CONTAINS(reply, "\"ReadCapacityUnits\":7,\"WriteCapacityUnits\":8");
    CHECK_CONTAINS(
        reply,
        "\"BillingModeSummary\":{\"BillingMode\":\"PROVISIONED\",\"LastUpdateToPayPerRequestDateTime\":");
    CHECK(!slice_contains(reply, SLICE("OnDemandThroughput")));
    world_close(&world);
}

TEST(ceilings_are_merged_and_taken_away)
{
    struct world world;
    open_on_demand(&world);
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"OnDemandThroughput\":{\"MaxReadRequestUnits\":9}}");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"OnDemandThroughput\":{\"MaxWriteRequestUnits\":4}}");
    CHECK_CONTAINS(describe(&world),
                   "\"OnDemandThroughput\":{\"MaxReadRequestUnits\":9,\"MaxWriteRequestUnits\":4}");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"OnDemandThroughput\":{\"MaxReadRequestUnits\":-1}}");
    CHECK_CONTAINS(describe(&world), "\"OnDemandThroughput\":{\"MaxWriteRequestUnits\":4}");
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"OnDemandThroughput\":{\"MaxReadRequestUnits\":0}}",
                  INVALID
                  "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range");
    world_close(&world);
}

TEST(streams_are_switched)
{
    struct world world;
    open_on_demand(&world);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"StreamSpecification\":{\"StreamEnabled\":false}}",
                  "Table has no stream to disable: TableName: abc");
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"StreamSpecification\":{\"StreamEnabled\":true}}",
                  "Invalid StreamViewType: Stream ViewType must not be null or empty when enabling streams.");
#define ON "{" TABLE ",\"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"OLD_IMAGE\"}}"
    CHECK_FINE(&world, "UpdateTable", ON);
    CHECK_CONTAINS(describe(&world), "\"LatestStreamLabel\":\"2026-11-15T04:13:25.340\"");
    CHECK_INVALID(&world, "UpdateTable", ON, "Table already has an enabled stream: TableName: abc");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"StreamSpecification\":{\"StreamEnabled\":false}}");
    struct slice reply = describe(&world);
    CHECK(!slice_contains(reply, SLICE("StreamSpecification")));
    CHECK_CONTAINS(reply, "\"LatestStreamLabel\":\"2026-11-15T04:13:25.340\"");
    world.now_ms += 5000;
    CHECK_FINE(&world, "UpdateTable", ON);
    CHECK_CONTAINS(describe(&world), "\"LatestStreamLabel\":\"2026-11-15T04:13:30.340\"");
#undef ON
    world_close(&world);
}

TEST(other_settings_change)
{
    struct world world;
    open_on_demand(&world);
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"DeletionProtectionEnabled\":true}");
    CHECK_CONTAINS(describe(&world), "\"DeletionProtectionEnabled\":true");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"TableClass\":\"STANDARD_INFREQUENT_ACCESS\"}");
    CHECK_CONTAINS(describe(&world), "\"TableClassSummary\":{\"TableClass\":\"STANDARD_INFREQUENT_ACCESS\","
                                     "\"LastUpdateDateTime\":1794716005.340}");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"SSESpecification\":{\"Enabled\":true}}");
    CHECK_CONTAINS(describe(&world), "\"SSEDescription\":{\"Status\":\"ENABLED\"");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"SSESpecification\":{\"Enabled\":false}}");
    CHECK(!slice_contains(describe(&world), SLICE("SSEDescription")));
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"WarmThroughput\":{\"WriteUnitsPerSecond\":5001}}");
    CHECK_CONTAINS(describe(&world), "\"ReadUnitsPerSecond\":12000,\"WriteUnitsPerSecond\":5001");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"DeletionProtectionEnabled\":false}");
    CHECK_FINE(&world, "DeleteTable", "{" TABLE "}");
    world_close(&world);
}

TEST(an_index_is_created_and_deleted)
{
    struct world world;
    open_on_demand(&world);
#define CREATE(name, rest)                                                                                   \
    "\"GlobalSecondaryIndexUpdates\":[{\"Create\":{\"IndexName\":\"" name "\"," rest "}}]"
    struct slice reply = ask(&world, "UpdateTable", "{" TABLE "," DEFINE_G "," CREATE("idx", INDEX_KEYS) "}");
    CHECK_CONTAINS(reply, "\"IndexStatus\":\"CREATING\",\"Backfilling\":false");
    reply = describe(&world);
    CHECK_CONTAINS(reply, "\"IndexStatus\":\"ACTIVE\"");
    CHECK_CONTAINS(reply, "{\"AttributeName\":\"g\",\"AttributeType\":\"N\"}]");
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE "," DEFINE_G "," CREATE("idx", INDEX_KEYS) "}",
                  "Attempting to create an index which already exists");
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE "," CREATE("idy", INDEX_KEYS) "}",
                  "Invalid KeySchema: Some index key attribute have no definition");
    reply = ask(&world, "UpdateTable",
                "{" TABLE ",\"GlobalSecondaryIndexUpdates\":[{\"Delete\":{\"IndexName\":\"idx\"}}]}");
    CHECK_CONTAINS(reply, "\"IndexStatus\":\"DELETING\"");
    reply = describe(&world);
    CHECK(!slice_contains(reply, SLICE("GlobalSecondaryIndexes")));
    CHECK(!slice_contains(reply, SLICE("\"g\"")));
    CHECK_REFUSED(&world, "UpdateTable",
                  "{" TABLE ",\"GlobalSecondaryIndexUpdates\":[{\"Delete\":{\"IndexName\":\"idx\"}}]}",
                  "ResourceNotFoundException", "Requested resource not found: Index: idx not found");
    world_close(&world);
}

TEST(known_attributes_keep_their_type_and_unused_ones_go)
{
    struct world world;
    open_on_demand(&world);
    CHECK_FINE(&world, "UpdateTable",
               "{" TABLE ",\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"B\"},{"
                         "\"AttributeName\":\"g\","
               "\"AttributeType\":\"N\"},{\"AttributeName\":\"z\",\"AttributeType\":\"S\"}]," CREATE(
                   "idx", INDEX_KEYS) "}");
    CHECK_CONTAINS(describe(&world),
                   "\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"},"
                   "{\"AttributeName\":\"g\",\"AttributeType\":\"N\"}]");
    world_close(&world);
}
#undef CREATE

TEST(units_of_indexes_change)
{
    struct world world;
    const char *blocked = "This operation cannot be performed with given input values. Please contact "
                          "DynamoDB service team for "
                          "more info: Action Blocked: IndexUpdate";
    world_open(&world);
    CHECK_FINE(&world, "CreateTable",
               WITH_INDEX "," UNITS(5, 5) ",\"GlobalSecondaryIndexes\":[{\"IndexName\":\"idx\"," INDEX_KEYS
                                          "," UNITS(3, 3) "}]}");
#define CHANGE(name, units)                                                                                  \
    "\"GlobalSecondaryIndexUpdates\":[{\"Update\":{\"IndexName\":\"" name "\"," units "}}]"
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE "," CHANGE("idy", UNITS(1, 1)) "}", blocked);
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE "," CHANGE("idx", UNITS(1000000000001, 1)) "}", blocked);
    struct slice reply = ask(&world, "UpdateTable", "{" TABLE "," CHANGE("idx", UNITS(4, 4)) "}");
    CHECK_CONTAINS(reply, "\"IndexStatus\":\"UPDATING\"");
    CHECK_CONTAINS(describe(&world), "\"ReadCapacityUnits\":4,\"WriteCapacityUnits\":4}");
    CHECK_FINE(&world, "UpdateTable", "{" TABLE ",\"BillingMode\":\"PAY_PER_REQUEST\"}");
    CHECK(!slice_contains(describe(&world), SLICE("\"ReadCapacityUnits\":4")));
    CHECK_INVALID(&world, "UpdateTable", "{" TABLE ",\"BillingMode\":\"PROVISIONED\"," UNITS(5, 5) "}",
                  INVALID "ProvisionedThroughput must be specified for index: idx");
    CHECK_FINE(&world, "UpdateTable",
               "{" TABLE ",\"BillingMode\":\"PROVISIONED\"," UNITS(5, 5) "," CHANGE("idx", UNITS(6, 6)) "}");
    CHECK_CONTAINS(describe(&world), "\"ReadCapacityUnits\":6,\"WriteCapacityUnits\":6}");
#undef CHANGE
    world_close(&world);
}

TEST(lists_of_index_updates)
{
    struct world world;
    open_on_demand(&world);
#define DELETE(name)  "{\"Delete\":{\"IndexName\":\"" name "\"}}"
#define UPDATES(list) "{" TABLE ",\"GlobalSecondaryIndexUpdates\":[" list "]}"
    CHECK_INVALID(&world, "UpdateTable", UPDATES("{}"),
                  INVALID "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                          "GlobalSecondaryIndexUpdate.Delete must not be null");
    CHECK_INVALID(&world, "UpdateTable", UPDATES(DELETE("abc") "," DELETE("abc")),
                  INVALID
                  "Only one global secondary index update per index is allowed simultaneously. Index: abc");
    CHECK_REFUSED(
        &world, "UpdateTable", UPDATES(DELETE("abc") "," DELETE("abd")), "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table");
#undef DELETE
#undef UPDATES
    world_close(&world);
}
