/* A lenient server takes what other local DynamoDBs take; a strict one refuses each of these requests. */
#include "unit/api_schema.h"

#define KEYS  "'TableName':'Tab','KeySchema':[{'AttributeName':'id','KeyType':'HASH'}]"
#define ID    "{'AttributeName':'id','AttributeType':'S'}"
#define OTHER "{'AttributeName':'other','AttributeType':'S'}"
#define UNITS "'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':1}"
#define INDEX                                                                                                \
    "'IndexName':'by-other','KeySchema':[{'AttributeName':'other','KeyType':'HASH'}],'Projection':{"         \
    "'ProjectionType':'ALL'}"

static void open_lenient(struct world *world)
{
    world_open(world);
    api_free(world->api);
    world->api = api_new(&(struct api_options){.engine = world->engine,
                                               .region = "us-east-1",
                                               .account = "000000000000",
                                               .endpoint = "localhost:8000",
                                               .is_lenient = true});
}

/* The strict server refuses the table; the lenient one makes it, and it looks as the last text says. */
static void makes(const char *definition, const char *described)
{
    struct world strict, lenient;
    world_open(&strict);
    open_lenient(&lenient);
    ASK(&strict, "CreateTable", definition);
    CHECK(strict.status == 400);
    ASK(&lenient, "CreateTable", definition);
    CHECK(lenient.status == 200);
    ASK(&lenient, "DescribeTable", "{'TableName':'Tab'}");
    SHOWS(&lenient, described);
    world_close(&strict);
    world_close(&lenient);
}

TEST(definitions_that_are_no_keys_are_left_out)
{
    const char *only_id = "'AttributeDefinitions':[" ID "]";
    makes("{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "," OTHER "]}", only_id);
    makes("{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "," ID "]}", only_id);
    makes("{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "],'LocalSecondaryIndexes':[]}", only_id);
    makes("{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "],'GlobalSecondaryIndexes':[]}", only_id);
}

TEST(throughput_of_tables_on_demand_is_left_out)
{
    makes("{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "],'BillingMode':'PAY_PER_REQUEST'}",
          "'BillingMode':'PAY_PER_REQUEST'");
    makes("{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "," OTHER
          "],'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{" INDEX "," UNITS "}]}",
          "'IndexName':'by-other'");
}

TEST(numbers_may_be_text)
{
    makes("{" KEYS ",'AttributeDefinitions':[" ID
          "],'ProvisionedThroughput':{'ReadCapacityUnits':'7','WriteCapacityUnits':'8'}}",
          "'ReadCapacityUnits':7");
}

TEST(text_that_is_no_number_is_still_refused)
{
    struct world world;
    open_lenient(&world);
    ASK(&world, "ListTables", "{'Limit':'seven'}");
    CHECK_TEXT(slice_of(world.error), "SerializationException");
    ASK(&world, "ListTables", "{'Limit':'7 8'}");
    CHECK_TEXT(slice_of(world.error), "SerializationException");
    ASK(&world, "ListTables", "{'Limit':''}");
    CHECK_TEXT(slice_of(world.error), "SerializationException");
    ASK(&world, "ListTables", "{'Limit':'7'}");
    CHECK(world.status == 200);
    world_close(&world);
}

TEST(values_may_be_numbers)
{
    struct world world;
    open_lenient(&world);
    ASK(&world, "CreateTable", "{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "]}");
    ASK(&world, "PutItem", "{'TableName':'Tab','Item':{'id':{'S':'a'},'n':{'N':5},'s':{'NS':[1,2]}}}");
    CHECK(world.status == 200);
    struct slice reply = ASK(&world, "Scan", "{'TableName':'Tab','Limit':0}");
    CHECK_TEXT(reply, "{\"Items\":[{\"id\":{\"S\":\"a\"},\"n\":{\"N\":\"5\"},\"s\":{\"NS\":[\"1\",\"2\"]}}],"
                      "\"Count\":1,\"ScannedCount\":1}");
    world_close(&world);
}

TEST(a_definition_of_another_type_is_no_repetition)
{
    struct world world;
    open_lenient(&world);
    ASK(&world, "CreateTable",
               "{" KEYS "," UNITS ",'AttributeDefinitions':[" ID
               ",{'AttributeName':'id','AttributeType':'N'}]}");
    CHECK(world.status == 400);
    world_close(&world);
}

TEST(a_new_table_may_be_creating_for_a_while)
{
    struct world world;
    world_open(&world);
    api_free(world.api);
    world.api = api_new(&(struct api_options){.engine = world.engine,
                                              .region = "us-east-1",
                                              .account = "000000000000",
                                              .endpoint = "localhost:8000",
                                              .creating_ms = 1000});
    ASK(&world, "CreateTable", "{" KEYS "," UNITS ",'AttributeDefinitions':[" ID "]}");
    ASK(&world, "PutItem", "{'TableName':'Tab','Item':{'id':{'S':'a'}}}");
    CHECK_TEXT(slice_of(world.error), "ResourceNotFoundException");
    world.now_ms += 999;
    ASK(&world, "DescribeTable", "{'TableName':'Tab'}");
    SHOWS(&world, "'TableStatus':'CREATING'");
    world.now_ms += 1;
    ASK(&world, "DescribeTable", "{'TableName':'Tab'}");
    SHOWS(&world, "'TableStatus':'ACTIVE'");
    ASK(&world, "PutItem", "{'TableName':'Tab','Item':{'id':{'S':'a'}}}");
    CHECK(world.status == 200);
    world_close(&world);
}
