/* CreateTable, DescribeTable, DeleteTable and ListTables: what they answer. */
#include "unit/api_schema.h"

#define UNITS "'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':2}"

static void create(struct world *world, const char *attributes, const char *keys, const char *rest)
{
    CHECK_FINE(world, "CreateTable", schema_table(world, attributes, keys, rest));
}

static void describe(struct world *world)
{
    ASK(world, "DescribeTable", "{'TableName':'abc'}");
}

TEST(a_table_is_created_described_and_deleted)
{
    struct world world;
    world_open(&world);
    create(&world, "a", "h:a", UNITS);
    SHOWS(&world, "{'TableDescription':{'TableName':'abc','TableStatus':'CREATING',"
                  "'TableArn':'arn:aws:dynamodb:us-east-1:000000000000:table/abc','TableId':'");
    SHOWS(&world, "'ItemCount':0,'TableSizeBytes':0,'ProvisionedThroughput':{'NumberOfDecreasesToday':0,"
                  "'ReadCapacityUnits':1,'WriteCapacityUnits':2},");
    SHOWS(&world, "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'}],"
                  "'KeySchema':[{'AttributeName':'a','KeyType':'HASH'}],'CreationDateTime':1794716005.340,");
    LACKS(&world, "BillingModeSummary");

    describe(&world);
    SHOWS(&world, "{'Table':{'TableName':'abc','TableStatus':'ACTIVE',");
    SHOWS(&world, "'DeletionProtectionEnabled':false}}");

    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    SHOWS(&world, "{'TableDescription':{'TableName':'abc','TableStatus':'DELETING',");
    LACKS(&world, "KeySchema");
    const char *body = quoted(&world, "{'TableName':'abc'}");
    CHECK_REFUSED(&world, "DescribeTable", body, "ResourceNotFoundException",
                  "Requested resource not found: Table: abc not found");
    CHECK_REFUSED(&world, "DeleteTable", body, "ResourceNotFoundException",
                  "Requested resource not found: Table: abc not found");
    world_close(&world);
}

TEST(a_table_on_demand_has_a_summary)
{
    struct world world;
    world_open(&world);
    create(&world, "a", "h:a", ON_DEMAND);
    SHOWS(&world, "'BillingModeSummary':{'BillingMode':'PAY_PER_REQUEST'}");
    SHOWS(&world, "{'NumberOfDecreasesToday':0,'ReadCapacityUnits':0,'WriteCapacityUnits':0}");
    FINE(&world, "DescribeTable", "{'TableName':'arn:aws:dynamodb:us-east-1:000000000000:table/abc'}");
    SHOWS(&world, "'BillingModeSummary':{'BillingMode':'PAY_PER_REQUEST',"
                  "'LastUpdateToPayPerRequestDateTime':1794716005.340}");
    SHOWS(&world,
          "'WarmThroughput':{'Status':'ACTIVE','ReadUnitsPerSecond':12000,'WriteUnitsPerSecond':4000}");
    world_close(&world);
}

TEST(indexes_are_described)
{
    struct world world;
    world_open(&world);
    const char *local = schema_index(&world, "lsi", "h:a r:c", "'Projection':{'ProjectionType':'KEYS_ONLY'}");
    const char *global = schema_index(
        &world, "gsi", "h:c h:b r:a",
        "'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['y','x']},"
        "'OnDemandThroughput':{'MaxReadRequestUnits':7}");
    const char *lists = schema_list(&world, ON_DEMAND, "LocalSecondaryIndexes", local, NULL);
    create(&world, "c b a", "h:a r:b", schema_list(&world, lists, "GlobalSecondaryIndexes", global, NULL));
    SHOWS(&world, "'IndexStatus':'CREATING'");
    LACKS(&world, "Backfilling");
    describe(&world);
    SHOWS(&world, "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'},{'AttributeName':'b',");
    SHOWS(&world,
          "'LocalSecondaryIndexes':[{'IndexName':'lsi','KeySchema':[{'AttributeName':'a','KeyType':'HASH'},"
          "{'AttributeName':'c','KeyType':'RANGE'}],'Projection':{'ProjectionType':'KEYS_ONLY'},"
          "'IndexArn':'arn:aws:dynamodb:us-east-1:000000000000:table/abc/index/lsi','IndexSizeBytes':0,"
          "'ItemCount':0}]");
    SHOWS(&world,
          "'GlobalSecondaryIndexes':[{'IndexName':'gsi','KeySchema':[{'AttributeName':'c','KeyType':'HASH'},"
          "{'AttributeName':'b','KeyType':'HASH'},{'AttributeName':'a','KeyType':'RANGE'}],"
          "'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['x','y']}");
    SHOWS(&world, "'IndexStatus':'ACTIVE'");
    SHOWS(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':7}");
    world_close(&world);
}

TEST(settings_are_described)
{
    struct world world;
    world_open(&world);
    create(&world, "a", "h:a",
           ON_DEMAND ",'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_IMAGE'},"
                     "'SSESpecification':{'Enabled':true,'SSEType':'KMS','KMSMasterKeyId':'k1'},"
                     "'TableClass':'STANDARD_INFREQUENT_ACCESS','DeletionProtectionEnabled':true,"
                     "'Tags':[{'Key':'k','Value':'v'}],'WarmThroughput':{'ReadUnitsPerSecond':13000},"
                     "'OnDemandThroughput':{'MaxReadRequestUnits':100,'MaxWriteRequestUnits':50}");
    describe(&world);
    SHOWS(&world, "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_IMAGE'},"
                  "'LatestStreamLabel':'2026-11-15T04:13:25.340',"
                  "'LatestStreamArn':'arn:aws:dynamodb:us-east-1:000000000000:table/abc/stream/"
                  "2026-11-15T04:13:25.340'");
    SHOWS(&world, "'SSEDescription':{'Status':'ENABLED','SSEType':'KMS',"
                  "'KMSMasterKeyArn':'arn:aws:kms:us-east-1:000000000000:key/k1'}");
    SHOWS(&world, "'TableClassSummary':{'TableClass':'STANDARD_INFREQUENT_ACCESS'}");
    SHOWS(&world, "'OnDemandThroughput':{'MaxReadRequestUnits':100,'MaxWriteRequestUnits':50}");
    SHOWS(&world, "'ReadUnitsPerSecond':13000,'WriteUnitsPerSecond':4000");
    SHOWS(&world, "'DeletionProtectionEnabled':true");
    INVALID(&world, "DeleteTable", "{'TableName':'abc'}",
            "Resource cannot be deleted as it is currently protected against deletion. Disable deletion "
            "protection first.");
    world_close(&world);
}

TEST(a_name_is_taken_once)
{
    struct world world;
    world_open(&world);
    create(&world, "a", "h:a", ON_DEMAND);
    CHECK_REFUSED(&world, "CreateTable", schema_table(&world, "a", "h:a", ON_DEMAND),
                  "ResourceInUseException", "Table already exists: abc");
    FINE(&world, "DeleteTable", "{'TableName':'abc'}");
    create(&world, "a", "h:a", ON_DEMAND);
    world_close(&world);
}

TEST(tables_are_listed_in_pages)
{
    struct world world;
    world_open(&world);
    for (int i = 0; i < 105; i++) {
        struct slice body = arena_printf(
            &world.scratch, "{'TableName':'t%03d','AttributeDefinitions':%s,'KeySchema':%s," ON_DEMAND "}", i,
            schema_attributes(&world, "a"), schema_keys(&world, "h:a"));
        FINE(&world, "CreateTable", body.data);
    }
    ASK(&world, "ListTables", "{'Limit':2}");
    SHOWS(&world, "{'TableNames':['t000','t001'],'LastEvaluatedTableName':'t001'}");
    ASK(&world, "ListTables", "{'ExclusiveStartTableName':'t102x'}");
    SHOWS(&world, "{'TableNames':['t103','t104']}");
    ASK(&world, "ListTables", "{'ExclusiveStartTableName':'t102','Limit':2}");
    SHOWS(&world, "{'TableNames':['t103','t104']}");
    ASK(&world, "ListTables", "{'ExclusiveStartTableName':'zzz'}");
    SHOWS(&world, "{'TableNames':[]}");
    ASK(&world, "ListTables", "{}");
    SHOWS(&world, "'t099'],'LastEvaluatedTableName':'t099'}");
    INVALID(&world, "ListTables", "{'ExclusiveStartTableName':'a;','Limit':500}",
            "3 validation errors detected: Value 'a;' at 'exclusiveStartTableName' failed to satisfy "
            "constraint: Member must "
            "satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a;' at 'exclusiveStartTableName' "
            "failed to satisfy "
            "constraint: Member must have length greater than or equal to 3; Value '500' at 'limit' failed "
            "to satisfy "
            "constraint: Member must have value less than or equal to 100");
    world_close(&world);
}

TEST(the_service_about_itself)
{
    struct world world;
    world_open(&world);
    ASK(&world, "DescribeLimits", "{}");
    SHOWS(&world, "{'AccountMaxReadCapacityUnits':80000,'AccountMaxWriteCapacityUnits':80000,"
                  "'TableMaxReadCapacityUnits':40000,'TableMaxWriteCapacityUnits':40000}");
    ASK(&world, "DescribeEndpoints", "{}");
    SHOWS(&world, "{'Endpoints':[{'Address':'localhost:8000','CachePeriodInMinutes':1440}]}");
    world_close(&world);
}
