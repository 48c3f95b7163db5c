/* UpdateTable: what changes, what the answer shows meanwhile, and what is refused. */
#include "unit/api_schema.h"

static void open_provisioned(struct world *world)
{
    world_open(world);
    CHECK_FINE(world, "CreateTable",
               schema_table(world, "a", "h:a",
                            "'ProvisionedThroughput':{'ReadCapacityUnits':5,'WriteCapacityUnits':5}"));
}

static void open_on_demand(struct world *world)
{
    world_open(world);
    CHECK_FINE(world, "CreateTable", schema_table(world, "a", "h:a", ON_DEMAND));
}

static const char *update_body(struct world *world, const char *members)
{
    return quoted(
        world, arena_printf(&world->scratch, "{'TableName':'abc'%s%s}", *members ? "," : "", members).data);
}

static void update(struct world *world, const char *members)
{
    CHECK_FINE(world, "UpdateTable", update_body(world, members));
}

static void refuses(struct world *world, const char *members, const char *message)
{
    CHECK_INVALID(world, "UpdateTable", update_body(world, members), message);
}

static void describe(struct world *world)
{
    ASK(world, "DescribeTable", "{'TableName':'abc'}");
}

static const char *units(struct world *world, const char *before, int64_t read, int64_t write)
{
    return arena_printf(&world->scratch,
                        "%s'ProvisionedThroughput':{'ReadCapacityUnits':%lld,'WriteCapacityUnits':%lld}",
                        before, (long long)read, (long long)write)
        .data;
}

TEST(units_go_up_and_down)
{
    struct world world;
    open_provisioned(&world);
    world.now_ms += 1000;
    update(&world, units(&world, "", 15, 15));
    SHOWS(&world, "'TableStatus':'UPDATING'");
    SHOWS(&world, "{'NumberOfDecreasesToday':0,'ReadCapacityUnits':5,'WriteCapacityUnits':5,"
                  "'LastIncreaseDateTime':1794716006.340}");
    describe(&world);
    SHOWS(&world, "{'NumberOfDecreasesToday':0,'ReadCapacityUnits':15,'WriteCapacityUnits':15,"
                  "'LastIncreaseDateTime':1794716006.340}");
    world.now_ms += 1000;
    update(&world, units(&world, "", 5, 5));
    SHOWS(&world, "{'NumberOfDecreasesToday':0,'ReadCapacityUnits':15,'WriteCapacityUnits':15,"
                  "'LastIncreaseDateTime':1794716006.340,'LastDecreaseDateTime':1794716007.340}");
    describe(&world);
    SHOWS(&world, "{'NumberOfDecreasesToday':1,'ReadCapacityUnits':5,");
    world_close(&world);
}

TEST(decreases_are_counted_by_the_day)
{
    struct world world;
    open_provisioned(&world);
    update(&world, units(&world, "", 4, 5));
    update(&world, units(&world, "", 4, 4));
    describe(&world);
    SHOWS(&world, "{'NumberOfDecreasesToday':2,'ReadCapacityUnits':4,");
    world.now_ms += 24 * 3600 * 1000;
    describe(&world);
    SHOWS(&world, "{'NumberOfDecreasesToday':0,'ReadCapacityUnits':4,");
    update(&world, units(&world, "", 4, 3));
    describe(&world);
    SHOWS(&world, "{'NumberOfDecreasesToday':1,'ReadCapacityUnits':4,");
    world_close(&world);
}

TEST(updates_that_change_nothing)
{
    struct world world;
    const char *nothing =
        "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, "
        "GlobalSecondaryIndexUpdates, "
        "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, "
        "MultiRegionConsistency, "
        "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required";
    open_provisioned(&world);
    refuses(&world, "", nothing);
    refuses(&world, "'GlobalSecondaryIndexUpdates':[]", nothing);
    refuses(&world, "'OnDemandThroughput':{},'WarmThroughput':{}", nothing);
    refuses(&world, "'AttributeDefinitions':[]", nothing);
    refuses(&world, "'GlobalSecondaryIndexUpdates':[],'DeletionProtectionEnabled':true",
            WRONG "List of GlobalSecondaryIndexUpdates is empty");
    refuses(&world, units(&world, "'BillingMode':'PROVISIONED',", 5, 5),
            "The provisioned throughput for the table will not change. The requested value equals the "
            "current value. Current "
            "ReadCapacityUnits provisioned for the table: 5. Requested ReadCapacityUnits: 5. Current "
            "WriteCapacityUnits "
            "provisioned for the table: 5. Requested WriteCapacityUnits: 5. Refer to the Amazon DynamoDB "
            "Developer Guide for "
            "current limits and how to request higher limits.");
    world_close(&world);
}

TEST(tables_that_are_not_there)
{
    struct world world;
    world_open(&world);
    CHECK_REFUSED(&world, "UpdateTable", update_body(&world, units(&world, "", 1, 1)),
                  "ResourceNotFoundException", "Requested resource not found: Table: abc not found");
    refuses(&world, "'BillingMode':'PROVISIONED'",
            WRONG "ProvisionedThroughput must be specified when BillingMode is PROVISIONED");
    refuses(&world, units(&world, "", 1000000000001, 1),
            "Given value 1000000000001 for ReadCapacityUnits is out of bounds");
    world_close(&world);
}

TEST(one_change_at_a_time)
{
    struct world world;
    static const char *const cases[][2] = {
        {"'SSESpecification':{'Enabled':true},'DeletionProtectionEnabled':true",
         "Server-Side Encryption modification must be the only operation in the request"},
        {"'TableClass':'STANDARD','DeletionProtectionEnabled':true",
         "TableClass modification must be the only operation in the request"},
        {"'WarmThroughput':{'ReadUnitsPerSecond':13000},'DeletionProtectionEnabled':true",
         "DeletionProtection modification must be the only operation in the request"},
        {"'WarmThroughput':{'ReadUnitsPerSecond':13000},'BillingMode':'PAY_PER_REQUEST'",
         "WarmThroughput must be the only operation in the request"},
        {"'OnDemandThroughput':{'MaxReadRequestUnits':5},'StreamSpecification':{'StreamEnabled':false}",
         "OnDemandThroughput can only be combined with BillingMode in an UpdateTable request"},
        {"'StreamSpecification':{'StreamEnabled':false},'BillingMode':'PROVISIONED',"
         "'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1}",
         "You cannot modify stream status while updating table IOPS"},
        {"'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'idx'}}],"
         "'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1}",
         "You cannot create or delete index while updating table IOPS"},
        {"'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'idx'}}],'StreamSpecification':{'StreamEnabled':false}",
         "You cannot create or delete index while changing stream status"},
    };
    open_on_demand(&world);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(&world, cases[i][0], arena_printf(&world.scratch, WRONG "%s", cases[i][1]).data);
    update(&world, "'WarmThroughput':{},'DeletionProtectionEnabled':true");
    world_close(&world);
}

TEST(to_on_demand_and_back)
{
    struct world world;
    const char *neither = WRONG "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when "
                                "BillingMode is PAY_PER_REQUEST";
    open_provisioned(&world);
    refuses(&world, units(&world, "'BillingMode':'PAY_PER_REQUEST',", 1, 1), neither);
    refuses(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':9}",
            WRONG "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode "
                  "is PROVISIONED");
    world.now_ms += 2000;
    update(&world, "'BillingMode':'PAY_PER_REQUEST','OnDemandThroughput':{'MaxReadRequestUnits':9}");
    SHOWS(&world, "'ReadCapacityUnits':0,'WriteCapacityUnits':0");
    describe(&world);
    SHOWS(&world, "'BillingModeSummary':{'BillingMode':'PAY_PER_REQUEST',"
                  "'LastUpdateToPayPerRequestDateTime':1794716007.340}");
    refuses(&world, units(&world, "", 1, 1), neither);
    update(&world, "'BillingMode':'PAY_PER_REQUEST'");
    update(&world, units(&world, "'BillingMode':'PROVISIONED',", 7, 8));
    describe(&world);
    SHOWS(&world, "'ReadCapacityUnits':7,'WriteCapacityUnits':8");
    SHOWS(&world, "'BillingModeSummary':{'BillingMode':'PROVISIONED','LastUpdateToPayPerRequestDateTime':");
    LACKS(&world, "OnDemandThroughput");
    world_close(&world);
}

TEST(ceilings_are_merged_and_taken_away)
{
    struct world world;
    open_on_demand(&world);
    update(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':9}");
    SHOWS(&world, "'TableStatus':'ACTIVE'");
    update(&world, "'OnDemandThroughput':{'MaxWriteRequestUnits':4}");
    describe(&world);
    SHOWS(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':9,'MaxWriteRequestUnits':4}");
    update(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':-1}");
    describe(&world);
    SHOWS(&world, "'OnDemandThroughput':{'MaxWriteRequestUnits':4}");
    refuses(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':0}",
            WRONG "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range");
    world_close(&world);
}

TEST(warm_throughput_only_grows)
{
    struct world world;
    open_on_demand(&world);
    update(&world, "'WarmThroughput':{'WriteUnitsPerSecond':5001}");
    SHOWS(&world, "'TableStatus':'ACTIVE'");
    SHOWS(&world,
          "'WarmThroughput':{'Status':'UPDATING','ReadUnitsPerSecond':12000,'WriteUnitsPerSecond':4000}");
    describe(&world);
    SHOWS(&world,
          "'WarmThroughput':{'Status':'ACTIVE','ReadUnitsPerSecond':12000,'WriteUnitsPerSecond':5001}");
    refuses(
        &world, "'WarmThroughput':{'WriteUnitsPerSecond':5000}",
        WRONG
        "Requested WriteUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, "
        "decreasing WarmThroughput is not supported");
    update(&world, "'WarmThroughput':{'WriteUnitsPerSecond':5001}");
    world_close(&world);
}

TEST(streams_are_switched)
{
    struct world world;
    const char *on = "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'OLD_IMAGE'}";
    const char *off = "'StreamSpecification':{'StreamEnabled':false}";
    open_on_demand(&world);
    refuses(&world, off, "Table has no stream to disable: TableName: abc");
    refuses(&world, "'StreamSpecification':{'StreamEnabled':true}",
            WRONG "If stream is being enabled then UpdateViewType is required");
    update(&world, on);
    describe(&world);
    SHOWS(&world, "'LatestStreamLabel':'2026-11-15T04:13:25.340'");
    refuses(&world, on, "Table already has an enabled stream: TableName: abc");
    refuses(&world, "'StreamSpecification':{'StreamEnabled':false,'StreamViewType':'KEYS_ONLY'}",
            WRONG "If stream is being disabled, then UpdateViewType must not be specified");
    update(&world, off);
    describe(&world);
    LACKS(&world, "StreamSpecification");
    SHOWS(&world, "'LatestStreamLabel':'2026-11-15T04:13:25.340'");
    world.now_ms += 5000;
    update(&world, on);
    describe(&world);
    SHOWS(&world, "'LatestStreamLabel':'2026-11-15T04:13:30.340'");
    world_close(&world);
}

TEST(protection_and_class_change)
{
    struct world world;
    open_on_demand(&world);
    update(&world, "'DeletionProtectionEnabled':true");
    SHOWS(&world, "'TableStatus':'ACTIVE'");
    SHOWS(&world, "'DeletionProtectionEnabled':true");
    update(&world, "'TableClass':'STANDARD'");
    LACKS(&world, "TableClassSummary");
    update(&world, "'TableClass':'STANDARD_INFREQUENT_ACCESS'");
    describe(&world);
    SHOWS(&world, "'TableClassSummary':{'TableClass':'STANDARD_INFREQUENT_ACCESS',"
                  "'LastUpdateDateTime':1794716005.340}");
    SHOWS(&world, "'DeletionProtectionEnabled':true");
    update(&world, "'DeletionProtectionEnabled':false");
    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    world_close(&world);
}

TEST(encryption_changes)
{
    struct world world;
    open_on_demand(&world);
    refuses(&world, "'SSESpecification':{'Enabled':false}", WRONG "Table is already encrypted by default");
    update(&world, "'SSESpecification':{'Enabled':true,'SSEType':'KMS','KMSMasterKeyId':'k1'}");
    SHOWS(&world, "'SSEDescription':{'Status':'UPDATING'");
    describe(&world);
    SHOWS(&world, "'SSEDescription':{'Status':'ENABLED'");
    refuses(&world, "'SSESpecification':{'SSEType':'KMS','KMSMasterKeyId':'k1'}",
            WRONG "Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if you "
                  "want to change "
                  "Master Key");
    update(&world, "'SSESpecification':{'Enabled':false}");
    describe(&world);
    LACKS(&world, "SSEDescription");
    world_close(&world);
}

/* ---- indexes ---- */

static const char *one_update(struct world *world, const char *action, const char *content)
{
    return arena_printf(&world->scratch, "'GlobalSecondaryIndexUpdates':[{'%s':%s}]", action, content).data;
}

static const char *creation(struct world *world, const char *attributes, const char *name, const char *keys)
{
    return arena_printf(&world->scratch, "'AttributeDefinitions':%s,%s", schema_attributes(world, attributes),
                        one_update(world, "Create", schema_index(world, name, keys, ALL)))
        .data;
}

TEST(an_index_is_created)
{
    struct world world;
    open_on_demand(&world);
    update(&world, creation(&world, "g", "idx", "h:g"));
    SHOWS(&world, "'TableStatus':'UPDATING'");
    SHOWS(&world, "'IndexStatus':'CREATING','Backfilling':false");
    describe(&world);
    SHOWS(&world, "'IndexStatus':'ACTIVE'");
    SHOWS(&world, "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'},{'AttributeName':'g',");
    refuses(&world, creation(&world, "g", "idx", "h:g"),
            "Attempting to create an index which already exists");
    refuses(&world, creation(&world, "", "idy", "h:g"),
            WRONG "AttributeDefinitions is not specified for index: idy");
    refuses(&world, creation(&world, "g", "idy", "h:g r:a"),
            "Invalid KeySchema: Some index key attribute have no definition");
    world_close(&world);
}

TEST(an_index_is_deleted)
{
    struct world world;
    const char *deletion;
    open_on_demand(&world);
    deletion = one_update(&world, "Delete", "{'IndexName':'idx'}");
    update(&world, creation(&world, "g", "idx", "h:g"));
    update(&world, deletion);
    SHOWS(&world, "'IndexStatus':'DELETING'");
    describe(&world);
    LACKS(&world, "GlobalSecondaryIndexes");
    LACKS(&world, "'g'");
    CHECK_REFUSED(&world, "UpdateTable", update_body(&world, deletion), "ResourceNotFoundException",
                  "Requested resource not found: Index idx for table abc");
    world_close(&world);
}

TEST(known_attributes_keep_their_type_and_unused_ones_go)
{
    struct world world;
    open_on_demand(&world);
    struct slice members = arena_printf(
        &world.scratch,
        "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'B'},{'AttributeName':'z',"
        "'AttributeType':'S'},{'AttributeName':'g','AttributeType':'N'}],%s",
        one_update(&world, "Create", schema_index(&world, "idx", "h:g", ALL)));
    update(&world, members.data);
    describe(&world);
    SHOWS(&world, "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'},"
                  "{'AttributeName':'g','AttributeType':'N'}]");
    world_close(&world);
}

TEST(keys_cannot_be_redefined)
{
    struct world world;
    open_on_demand(&world);
    const char *create = one_update(&world, "Create", schema_index(&world, "idx", "h:g r:a", ALL));
    struct slice members = arena_printf(
        &world.scratch,
        "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'N'},{'AttributeName':'g',"
        "'AttributeType':'S'}],%s",
        create);
    refuses(
        &world, members.data,
        "One or more parameter values were invalid: Attributes cannot be redefined. Please check that your "
        "attribute has the same type as previously defined. Existing schema: Schema:[SchemaElement: "
        "key{a:S:HASH}] New schema: Schema:[SchemaElement: key{g:S:HASH}, SchemaElement: key{a:N:RANGE}]");
    members = arena_printf(
        &world.scratch,
        "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'},{'AttributeName':'g',"
        "'AttributeType':'S'}],%s",
        create);
    update(&world, members.data);
    describe(&world);
    SHOWS(&world, "'IndexName':'idx'");
    world_close(&world);
}

static const char *index_change(struct world *world, const char *name, const char *members)
{
    return one_update(
        world, "Update",
        arena_printf(&world->scratch, "{'IndexName':'%s'%s%s}", name, *members ? "," : "", members).data);
}

static void open_with_index(struct world *world)
{
    world_open(world);
    struct slice with_units = arena_printf(&world->scratch, ALL ",%s", units(world, "", 3, 3));
    const char *index = schema_index(world, "idx", "h:g", with_units.data);
    CHECK_FINE(
        world, "CreateTable",
        schema_table(world, "a g", "h:a",
                     schema_list(world, units(world, "", 5, 5), "GlobalSecondaryIndexes", index, NULL)));
}

TEST(units_of_indexes_change)
{
    struct world world;
    open_with_index(&world);
    CHECK_REFUSED(&world, "UpdateTable",
                  update_body(&world, index_change(&world, "idy", units(&world, "", 1, 1))),
                  "ResourceNotFoundException", "Requested resource not found: Index idy for table abc");
    refuses(&world, index_change(&world, "idx", units(&world, "", 1000000000001, 1)),
            "This operation cannot be performed with given input values. Please contact DynamoDB service "
            "team for more info: "
            "Action Blocked: IndexUpdate");
    refuses(&world, index_change(&world, "idx", ""),
            WRONG "Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: idx");
    refuses(&world, index_change(&world, "idx", units(&world, "", 3, 3)),
            "The provisioned throughput for the index idx will not change. The requested value equals the "
            "current value. "
            "Current ReadCapacityUnits provisioned for index idx: 3. Requested ReadCapacityUnits: 3. Current "
            "WriteCapacityUnits provisioned for index idx: 3. Requested WriteCapacityUnits: 3. Refer to the "
            "Amazon DynamoDB "
            "Developer Guide for current limits and how to request higher limits.");
    update(&world, index_change(&world, "idx", units(&world, "", 4, 4)));
    SHOWS(&world, "'TableStatus':'ACTIVE'");
    SHOWS(&world, "'IndexStatus':'UPDATING','ProvisionedThroughput':{'NumberOfDecreasesToday':0,"
                  "'ReadCapacityUnits':3,");
    describe(&world);
    SHOWS(&world, "'ReadCapacityUnits':4,'WriteCapacityUnits':4}");
    world_close(&world);
}

TEST(indexes_follow_their_table_to_on_demand_and_back)
{
    struct world world;
    open_with_index(&world);
    update(&world, "'BillingMode':'PAY_PER_REQUEST'");
    SHOWS(&world, "'IndexStatus':'UPDATING'");
    describe(&world);
    LACKS(&world, "'ReadCapacityUnits':3");
    refuses(&world, index_change(&world, "idx", units(&world, "", 1, 1)),
            WRONG "The only Updates for index: idx when TableThroughputMode is PAY_PER_REQUEST can be to "
                  "OnDemandThroughput, "
                  "WarmThroughput");
    update(&world, index_change(&world, "idx", "'OnDemandThroughput':{'MaxReadRequestUnits':6}"));
    refuses(&world, index_change(&world, "idx", "'WarmThroughput':{}"),
            WRONG "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond "
                  "specified for index: "
                  "idx");
    refuses(&world, units(&world, "'BillingMode':'PROVISIONED',", 5, 5),
            WRONG "ProvisionedThroughput must be specified for index: idx");
    struct slice back = arena_printf(&world.scratch, "'BillingMode':'PROVISIONED',%s,%s",
                                     units(&world, "", 5, 5),
                                     index_change(&world, "idx", units(&world, "", 6, 6)));
    update(&world, back.data);
    describe(&world);
    SHOWS(&world, "'ReadCapacityUnits':6,'WriteCapacityUnits':6}");
    LACKS(&world, "OnDemandThroughput");
    world_close(&world);
}

TEST(lists_of_index_updates)
{
    struct world world;
    open_on_demand(&world);
    refuses(&world, "'GlobalSecondaryIndexUpdates':[{}]",
            WRONG "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                  "GlobalSecondaryIndexUpdate.Delete must not be null");
    refuses(&world,
            "'GlobalSecondaryIndexUpdates':[{'Update':{'IndexName':'abc'},'Delete':{'IndexName':'abc'}}]",
            WRONG "Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object");
    refuses(&world,
            "'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'abc'}},{'Delete':{'IndexName':'abc'}}]",
            WRONG "Only one global secondary index update per index is allowed simultaneously. Index: abc");
    const char *two =
        "'GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'abc'}},{'Delete':{'IndexName':'abd'}}]";
    CHECK_REFUSED(
        &world, "UpdateTable", update_body(&world, two), "LimitExceededException",
        "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table");
    world_close(&world);
}

TEST(local_indexes_cannot_be_updated)
{
    struct world world;
    world_open(&world);
    const char *local = schema_index(&world, "lsi", "h:a r:b", ALL);
    CHECK_FINE(&world, "CreateTable",
               schema_table(&world, "a b", "h:a r:b",
                            schema_list(&world, ON_DEMAND, "LocalSecondaryIndexes", local, NULL)));
    refuses(&world, one_update(&world, "Delete", "{'IndexName':'lsi'}"),
            "Cannot delete an index that is not a GlobalSecondaryIndex: lsi");
    refuses(&world, index_change(&world, "lsi", "'WarmThroughput':{'ReadUnitsPerSecond':20000}"),
            "Cannot update an index that is not a GlobalSecondaryIndex: lsi");
    world_close(&world);
}
