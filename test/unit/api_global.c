/* Global tables of both kinds, their settings and auto scaling: names that are kept and shown. Texts hold '
 * for ". */
#include "unit/api_schema.h"

#define OPEN   "\xe2\x80\x98"
#define CLOSE  "\xe2\x80\x99"
#define FAILED "Failed to update settings for global table with name: " OPEN "abc" CLOSE

#define ANSWERS(world, operation, body, expected)                                                            \
    CHECK_TEXT(ask(world, operation, quoted(world, body)), quoted(world, expected))
#define REFUSES(world, operation, body, name, message)                                                       \
    CHECK_REFUSED(world, operation, quoted(world, body), name, message)
#define HIDES(world, part) CHECK(!slice_contains(buf_view(&(world)->reply), slice_of(quoted(world, part))))

static void open_table(struct world *world)
{
    world_open(world);
    FINE(
        world, "CreateTable",
        "{'TableName':'abc','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],"
        "'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],'ProvisionedThroughput':{'ReadCapacityUnits':1,"
        "'WriteCapacityUnits':2},'GlobalSecondaryIndexes':[{'IndexName':'gsi',"
        "'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'},"
        "'ProvisionedThroughput':{'ReadCapacityUnits':3,'WriteCapacityUnits':4}}]}");
}

static void reopen(struct world *world)
{
    struct engine_snapshot *snapshot = engine_snapshot_take(world->engine);
    engine_snapshot_restore(world->engine, snapshot);
    engine_snapshot_free(snapshot);
}

/* ---- replicas ---- */

#define REPLICAS(list) "{'TableName':'abc','ReplicaUpdates':[" list "]}"
#define CREATE(region) "{'Create':{'RegionName':'" region "'}}"
#define REMOVE(region) "{'Delete':{'RegionName':'" region "'}}"
#define DESCRIBE       "{'TableName':'abc'}"

TEST(replicas_come_and_go)
{
    struct world world;
    open_table(&world);
    FINE(&world, "UpdateTable", REPLICAS(CREATE("eu-west-1")));
    SHOWS(&world, "'TableStatus':'UPDATING'");
    FINE(&world, "UpdateTable",
         REPLICAS(
             "{'Create':{'RegionName':'ap-east-1','KMSMasterKeyId':'key',"
             "'ProvisionedThroughputOverride':{'ReadCapacityUnits':7},"
             "'GlobalSecondaryIndexes':[{'IndexName':'gsi',"
             "'ProvisionedThroughputOverride':{'ReadCapacityUnits':8}}],"
             "'TableClassOverride':'STANDARD_INFREQUENT_ACCESS'}}"));
    reopen(&world);
    FINE(&world, "DescribeTable", DESCRIBE);
    SHOWS(&world, "'GlobalTableVersion':'2019.11.21','Replicas':[{'RegionName':'ap-east-1',"
                  "'ReplicaStatus':'ACTIVE','KMSMasterKeyId':'key',"
                  "'ProvisionedThroughputOverride':{'ReadCapacityUnits':7},"
                  "'GlobalSecondaryIndexes':[{'IndexName':'gsi',"
                  "'ProvisionedThroughputOverride':{'ReadCapacityUnits':8}}],"
                  "'ReplicaTableClassSummary':{'TableClass':'STANDARD_INFREQUENT_ACCESS'}},"
                  "{'RegionName':'eu-west-1','ReplicaStatus':'ACTIVE'}]");
    SHOWS(&world, "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'}");
    INVALID(&world, "UpdateTable", "{'TableName':'abc','StreamSpecification':{'StreamEnabled':false}}",
            WRONG "Disabling Stream is not allowed for a Global Table replica.");

    FINE(
        &world, "UpdateTable",
        REPLICAS(
            "{'Update':{'RegionName':'ap-east-1','OnDemandThroughputOverride':{'MaxReadRequestUnits':-1}}}"));
    SHOWS(&world, "'ProvisionedThroughputOverride':{'ReadCapacityUnits':7},"
                  "'OnDemandThroughputOverride':{'MaxReadRequestUnits':-1}");
    FINE(&world, "UpdateTable", REPLICAS(REMOVE("ap-east-1")));
    FINE(&world, "UpdateTable", REPLICAS(REMOVE("eu-west-1")));
    FINE(&world, "DescribeTable", DESCRIBE);
    HIDES(&world, "'Replicas'");
    HIDES(&world, "'GlobalTableVersion'");
    world_close(&world);
}

TEST(replicas_that_cannot_be)
{
    struct world world;
    open_table(&world);
    INVALID(&world, "UpdateTable", REPLICAS(CREATE("us-east-1")),
            "Cannot add, delete, or update the local region through ReplicaUpdates. Use CreateTable, "
            "DeleteTable, or "
            "UpdateTable as required.");
    INVALID(&world, "UpdateTable", REPLICAS(CREATE("a") "," CREATE("b")),
            "Update table operation with more than one create or delete replica actions not allowed");
    INVALID(&world, "UpdateTable", REPLICAS("{}"),
            "There are no actions specified in the Replica Update Action of the request.");
    INVALID(&world, "UpdateTable", REPLICAS(REMOVE("eu-west-1")),
            "Update global table operation failed because one or more replicas were not part of the global "
            "table. "
            "Please retry the request without these replicas: [eu-west-1].");
    INVALID(&world, "UpdateTable",
            "{'TableName':'abc','DeletionProtectionEnabled':true,'ReplicaUpdates':[" CREATE("eu-west-1") "]}",
            WRONG "Requests that modify replicas or witnesses must not also modify other fields");
    FINE(&world, "UpdateTable", REPLICAS(CREATE("eu-west-1")));
    INVALID(&world, "UpdateTable", REPLICAS(CREATE("eu-west-1")),
            "Failed to create a the new replica of table with name: " OPEN "abc" CLOSE
            " because one or more replicas already existed as tables.");
    world_close(&world);
}

/* ---- auto scaling of replicas ---- */

#define POLICY(target)                                                                                       \
    "'ScalingPolicyUpdate':{'TargetTrackingScalingPolicyConfiguration':{'TargetValue':" target "}}"
#define SCALING(min, max)    "{'MinimumUnits':" min ",'MaximumUnits':" max "," POLICY("70") "}"
#define OFF                  "{'AutoScalingDisabled':true,'ScalingPolicies':[]}"
#define UPDATE_SCALING(rest) "{'TableName':'abc'," rest "}"
#define SERVICE_ROLE                                                                                         \
    "'AutoScalingRoleArn':'arn:aws:iam::000000000000:role/aws-service-role/"                                 \
    "dynamodb.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_DynamoDBTable'"

TEST(replicas_are_scaled)
{
    struct world world;
    open_table(&world);
    REFUSES(&world, "DescribeTableReplicaAutoScaling", DESCRIBE, "ResourceNotFoundException",
            "Global table with name: 'abc' does not exist.");
    FINE(&world, "UpdateTable", REPLICAS(CREATE("eu-west-1")));
    FINE(&world, "DescribeTableReplicaAutoScaling", DESCRIBE);
    SHOWS(&world, "{'TableAutoScalingDescription':{'TableName':'abc','TableStatus':'ACTIVE',"
                  "'Replicas':[{'RegionName':'us-east-1','ReplicaStatus':'ACTIVE',"
                  "'ReplicaProvisionedReadCapacityAutoScalingSettings':" OFF
                  ",'ReplicaProvisionedWriteCapacityAutoScalingSettings':" OFF
                  ",'GlobalSecondaryIndexes':[{'IndexName':'gsi','IndexStatus':'ACTIVE',"
                  "'ProvisionedReadCapacityAutoScalingSettings':" OFF
                  ",'ProvisionedWriteCapacityAutoScalingSettings':" OFF "}]},{'RegionName':'eu-west-1',");
    FINE(&world, "UpdateTableReplicaAutoScaling",
         UPDATE_SCALING("'ProvisionedWriteCapacityAutoScalingUpdate':" SCALING(
             "1", "10") ",'GlobalSecondaryIndexUpdates':[{'IndexName':'gsi',"
                        "'ProvisionedWriteCapacityAutoScalingUpdate':" SCALING(
                            "2",
                            "20") "}],'ReplicaUpdates':[{'RegionName':'eu-west-1',"
                                  "'ReplicaProvisionedReadCapacityAutoScalingUpdate':{'MinimumUnits':3,"
                                  "'MaximumUnits':30,'AutoScalingRoleArn':'role',"
                                  "'ScalingPolicyUpdate':{'PolicyName':'mine',"
                                  "'TargetTrackingScalingPolicyConfiguration':{'DisableScaleIn':true,"
                                  "'ScaleInCooldown':-1,'ScaleOutCooldown':60,'TargetValue':50.5}}},"
                                  "'ReplicaGlobalSecondaryIndexUpdates':[{'IndexName':'gsi',"
                                  "'ProvisionedReadCapacityAutoScalingUpdate':" SCALING(
                                      "4", "40") "}]}]"));
    SHOWS(&world, "'TableStatus':'UPDATING'");
    reopen(&world);
    FINE(&world, "DescribeTableReplicaAutoScaling", DESCRIBE);
    SHOWS(&world,
          "'ReplicaProvisionedWriteCapacityAutoScalingSettings':{'MinimumUnits':1,'MaximumUnits':"
          "10," SERVICE_ROLE ",'ScalingPolicies':[{'PolicyName':'DynamoDBWriteCapacityUtilization:table/abc',"
          "'TargetTrackingScalingPolicyConfiguration':{'TargetValue':70}}]}");
    SHOWS(&world, "'ReplicaProvisionedReadCapacityAutoScalingSettings':{'MinimumUnits':3,'MaximumUnits':30,"
                  "'AutoScalingRoleArn':'role','ScalingPolicies':[{'PolicyName':'mine',"
                  "'TargetTrackingScalingPolicyConfiguration':{'TargetValue':50.5,'DisableScaleIn':true,"
                  "'ScaleInCooldown':-1,'ScaleOutCooldown':60}}]}");
    SHOWS(&world,
          "'ProvisionedReadCapacityAutoScalingSettings':{'MinimumUnits':4,'MaximumUnits':40," SERVICE_ROLE
          ",'ScalingPolicies':[{'PolicyName':'DynamoDBReadCapacityUtilization:table/abc/index/gsi',");
    SHOWS(&world, "'ProvisionedWriteCapacityAutoScalingSettings':{'MinimumUnits':2,'MaximumUnits':20,");

    FINE(&world, "UpdateTableReplicaAutoScaling",
         UPDATE_SCALING("'ProvisionedWriteCapacityAutoScalingUpdate':{'AutoScalingDisabled':true}"));
    SHOWS(&world, "'ReplicaProvisionedWriteCapacityAutoScalingSettings':" OFF);
    SHOWS(&world, "'MinimumUnits':3");
    world_close(&world);
}

#define WRITE(update) UPDATE_SCALING("'ProvisionedWriteCapacityAutoScalingUpdate':" update)

TEST(scaling_that_cannot_be)
{
    struct world world;
    open_table(&world);
    FINE(&world, "UpdateTable", REPLICAS(CREATE("eu-west-1")));
    INVALID(&world, "UpdateTableReplicaAutoScaling", DESCRIBE,
            FAILED " because at least one update parameter must be specified.");
    INVALID(&world, "UpdateTableReplicaAutoScaling", WRITE("{}"),
            FAILED
            ": Parameters 'MaximumUnits', 'ScalingPolicyUpdate', 'MinimumUnits' are required unless auto "
            "scaling is being disabled.");
    INVALID(&world, "UpdateTableReplicaAutoScaling", WRITE("{'MinimumUnits':1," POLICY("70") "}"),
            FAILED ": Parameters 'MaximumUnits' are required unless auto scaling is being disabled.");
    INVALID(&world, "UpdateTableReplicaAutoScaling",
            WRITE("{'AutoScalingDisabled':true,'MinimumUnits':1,'MaximumUnits':2}"),
            "Failed to update settings for global table with name " OPEN "abc" CLOSE
            ": Parameters 'MaximumUnits', 'MinimumUnits' must be left blank when disabling auto scaling.");
    REFUSES(&world, "UpdateTableReplicaAutoScaling",
            UPDATE_SCALING("'GlobalSecondaryIndexUpdates':[{'IndexName':'nope'}]"),
            "ResourceNotFoundException",
            FAILED " because the global secondary indexes with names: " OPEN "[nope]" CLOSE " do not exist.");
    REFUSES(
        &world, "UpdateTableReplicaAutoScaling",
        UPDATE_SCALING("'ReplicaUpdates':[{'RegionName':'us-east-1',"
                       "'ReplicaGlobalSecondaryIndexUpdates':[{'IndexName':'nope'}]}]"),
        "ResourceNotFoundException",
        FAILED " because a global secondary index with name: " OPEN "nope" CLOSE
               " does not exist in region: " OPEN "us-east-1" CLOSE ".");
    REFUSES(&world, "UpdateTableReplicaAutoScaling",
            UPDATE_SCALING("'ReplicaUpdates':[{'RegionName':'mars'}]"), "ResourceNotFoundException",
            FAILED " because a replica does not exist in regions: " OPEN "[mars]" CLOSE ".");
    REFUSES(&world, "UpdateTableReplicaAutoScaling", "{'TableName':'missing'}", "ResourceNotFoundException",
            "Requested resource not found: Table: missing not found");
    INVALID(
        &world, "UpdateTableReplicaAutoScaling", WRITE("{'MinimumUnits':0}"),
        "1 validation error detected: Value '0' at 'provisionedWriteCapacityAutoScalingUpdate.minimumUnits' "
        "failed to satisfy constraint: Member must have value greater than or equal to 1");
    world_close(&world);
}

/* ---- the older kind ---- */

#define GLOBAL(name)      "{'GlobalTableName':'" name "'}"
#define GROUP(name, list) "{'GlobalTableName':'" name "','ReplicationGroup':[" list "]}"
#define REGION(region)    "{'RegionName':'" region "'}"
#define UPDATE(list)      "{'GlobalTableName':'abc','ReplicaUpdates':[" list "]}"

TEST(global_tables_are_made_and_changed)
{
    struct world world;
    open_table(&world);
    ANSWERS(&world, "ListGlobalTables", "{}", "{'GlobalTables':[]}");
    REFUSES(&world, "DescribeGlobalTable", GLOBAL("abc"), "GlobalTableNotFoundException",
            "Global table not found: Global table with name: 'abc' does not exist.");
    ANSWERS(
        &world, "CreateGlobalTable", GROUP("abc", REGION("us-east-1") "," REGION("eu-west-1")),
        "{'GlobalTableDescription':{'ReplicationGroup':[{'RegionName':'eu-west-1','ReplicaStatus':'ACTIVE'},"
        "{'RegionName':'us-east-1','ReplicaStatus':'ACTIVE'}],"
        "'GlobalTableArn':'arn:aws:dynamodb::000000000000:global-table/abc',"
        "'CreationDateTime':1794716005.340,"
        "'GlobalTableStatus':'CREATING','GlobalTableName':'abc'}}");
    REFUSES(&world, "CreateGlobalTable", GROUP("abc", REGION("us-east-1")),
            "GlobalTableAlreadyExistsException", "Global table with name: 'abc' already exists.");
    FINE(&world, "UpdateGlobalTable", UPDATE(CREATE("ap-east-1") "," REMOVE("eu-west-1")));
    reopen(&world);
    FINE(&world, "DescribeGlobalTable", GLOBAL("abc"));
    SHOWS(&world, "'ReplicationGroup':[{'RegionName':'ap-east-1','ReplicaStatus':'ACTIVE'},"
                  "{'RegionName':'us-east-1','ReplicaStatus':'ACTIVE'}]");
    SHOWS(&world, "'GlobalTableStatus':'ACTIVE'");
    ANSWERS(&world, "ListGlobalTables", "{'RegionName':'ap-east-1'}",
            "{'GlobalTables':[{'ReplicationGroup':[{'RegionName':'ap-east-1'},{'RegionName':'us-east-1'}],"
            "'GlobalTableName':'abc'}]}");
    ANSWERS(&world, "ListGlobalTables", "{'RegionName':'eu-west-1'}", "{'GlobalTables':[]}");
    world_close(&world);
}

TEST(global_tables_come_in_pages)
{
    struct world world;
    world_open(&world);
    static const char *const names[] = {"aaa", "bbb", "ccc"};
    for (size_t i = 0; i < 3; i++) {
        struct slice body = arena_printf(
            &world.scratch,
            "{'TableName':'%s','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'S'}],"
            "'KeySchema':[{'AttributeName':'p','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}",
            names[i]);
        FINE(&world, "CreateTable", body.data);
        body = arena_printf(&world.scratch,
                            "{'GlobalTableName':'%s','ReplicationGroup':[{'RegionName':'x'}]}", names[i]);
        if (i != 1) FINE(&world, "CreateGlobalTable", body.data);
    }
    ANSWERS(&world, "ListGlobalTables", "{'Limit':1}",
            "{'GlobalTables':[{'ReplicationGroup':[{'RegionName':'x'}],'GlobalTableName':'aaa'}],"
            "'LastEvaluatedGlobalTableName':'aaa'}");
    ANSWERS(&world, "ListGlobalTables", "{'Limit':1,'ExclusiveStartGlobalTableName':'aaa'}",
            "{'GlobalTables':[{'ReplicationGroup':[{'RegionName':'x'}],'GlobalTableName':'ccc'}]}");
    world_close(&world);
}

TEST(global_tables_that_cannot_be)
{
    struct world world;
    open_table(&world);
    REFUSES(&world, "CreateGlobalTable", GROUP("missing", REGION("x")), "TableNotFoundException",
            "Table not found: missing");
    INVALID(&world, "CreateGlobalTable", GROUP("abc", ""), "One or more parameter values were invalid");
    REFUSES(&world, "UpdateGlobalTable", UPDATE(CREATE("x")), "GlobalTableNotFoundException",
            "Global table not found: Global table with name: 'abc' does not exist.");
    FINE(&world, "CreateGlobalTable", GROUP("abc", REGION("us-east-1")));
    INVALID(&world, "UpdateGlobalTable", UPDATE(""), "One or more parameter values were invalid");
    INVALID(&world, "UpdateGlobalTable", UPDATE("{}"), "One or more parameter values were invalid");
    REFUSES(&world, "UpdateGlobalTable", UPDATE(CREATE("us-east-1")), "ReplicaAlreadyExistsException",
            "Replica already exists: region us-east-1 of global table 'abc'");
    REFUSES(&world, "UpdateGlobalTable", UPDATE(REMOVE("mars")), "ReplicaNotFoundException",
            "Replica not found: region mars of global table 'abc'");
    world_close(&world);
}

TEST(global_tables_have_settings)
{
    struct world world;
    open_table(&world);
    REFUSES(&world, "DescribeGlobalTableSettings", GLOBAL("abc"), "GlobalTableNotFoundException",
            "Global table with name: 'abc' does not exist.");
    REFUSES(&world, "UpdateGlobalTableSettings", GLOBAL("missing"), "GlobalTableNotFoundException",
            "Global table with name: 'missing' does not exist.");
    FINE(&world, "CreateGlobalTable", GROUP("abc", REGION("us-east-1")));
    ANSWERS(
        &world, "DescribeGlobalTableSettings", GLOBAL("abc"),
        "{'GlobalTableName':'abc','ReplicaSettings':[{'RegionName':'us-east-1','ReplicaStatus':'ACTIVE',"
        "'ReplicaBillingModeSummary':{'BillingMode':'PROVISIONED'},'ReplicaProvisionedReadCapacityUnits':1,"
        "'ReplicaProvisionedWriteCapacityUnits':2,'ReplicaProvisionedReadCapacityAutoScalingSettings':" OFF
        ",'ReplicaProvisionedWriteCapacityAutoScalingSettings':" OFF
        ",'ReplicaGlobalSecondaryIndexSettings':[{'IndexName':'gsi','IndexStatus':'ACTIVE',"
        "'ProvisionedReadCapacityUnits':3,'ProvisionedWriteCapacityUnits':4,"
        "'ProvisionedReadCapacityAutoScalingSettings':" OFF
        ",'ProvisionedWriteCapacityAutoScalingSettings':" OFF "}]}]}");
    FINE(&world, "UpdateGlobalTableSettings",
         "{'GlobalTableName':'abc','GlobalTableBillingMode':'PAY_PER_REQUEST',"
         "'GlobalTableProvisionedWriteCapacityUnits':11,"
         "'GlobalTableGlobalSecondaryIndexSettingsUpdate':[{'IndexName':'gsi',"
         "'ProvisionedWriteCapacityUnits':12}],'ReplicaSettingsUpdate':[{'RegionName':'us-east-1',"
         "'ReplicaProvisionedReadCapacityUnits':13,"
         "'ReplicaGlobalSecondaryIndexSettingsUpdate':[{'IndexName':'gsi','ProvisionedReadCapacityUnits':14,"
         "'ProvisionedReadCapacityAutoScalingSettingsUpdate':" SCALING("5", "50") "}]}]}");
    reopen(&world);
    FINE(&world, "DescribeGlobalTableSettings", GLOBAL("abc"));
    SHOWS(&world, "'ReplicaBillingModeSummary':{'BillingMode':'PAY_PER_REQUEST'},"
                  "'ReplicaProvisionedReadCapacityUnits':13,'ReplicaProvisionedWriteCapacityUnits':11,");
    SHOWS(&world, "'ProvisionedReadCapacityUnits':14,'ProvisionedWriteCapacityUnits':12,"
                  "'ProvisionedReadCapacityAutoScalingSettings':{'MinimumUnits':5,'MaximumUnits':50,");
    REFUSES(&world, "UpdateGlobalTableSettings",
            "{'GlobalTableName':'abc','ReplicaSettingsUpdate':[{'RegionName':'mars'}]}",
            "ReplicaNotFoundException", "Replica not found: region mars of global table 'abc'");
    REFUSES(
        &world, "UpdateGlobalTableSettings",
        "{'GlobalTableName':'abc','GlobalTableGlobalSecondaryIndexSettingsUpdate':[{'IndexName':'nope'}]}",
        "IndexNotFoundException", "Index not found: nope of global table 'abc'");
    world_close(&world);
}
