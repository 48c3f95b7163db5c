/* What CreateTable refuses, in the service's words and order. */
#include "unit/api_schema.h"

#define UNITS "'ProvisionedThroughput':{'ReadCapacityUnits':1,'WriteCapacityUnits':2}"

static void refuses(struct world *world, const char *attributes, const char *keys, const char *rest,
                    const char *message)
{
    CHECK_INVALID(world, "CreateTable", schema_table(world, attributes, keys, rest), message);
}

TEST(billing_of_a_new_table)
{
    struct world world;
    world_open(&world);
    refuses(
        &world, "a", "h:a", "'Tags':[]",
        WRONG
        "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED");
    refuses(&world, "", "h:a h:a", UNITS "," ON_DEMAND,
            WRONG "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is "
                  "PAY_PER_REQUEST");
    refuses(&world, "a", "h:a",
            "'ProvisionedThroughput':{'ReadCapacityUnits':1000000000001,'WriteCapacityUnits':1000000000001}",
            "Given value 1000000000001 for ReadCapacityUnits is out of bounds");
    refuses(&world, "a", "h:a",
            "'ProvisionedThroughput':{'ReadCapacityUnits':1000000000000,'WriteCapacityUnits':1000000000001}",
            "Given value 1000000000001 for WriteCapacityUnits is out of bounds");
    world_close(&world);
}

TEST(ceilings_of_a_new_table)
{
    struct world world;
    world_open(&world);
    refuses(&world, "a", "h:a", UNITS ",'OnDemandThroughput':{'MaxWriteRequestUnits':1}",
            WRONG "MaxWriteRequestUnits for OnDemandThroughput cannot be specified when table BillingMode is "
                  "PROVISIONED.");
    refuses(&world, "a", "h:a", ON_DEMAND ",'OnDemandThroughput':{'MaxReadRequestUnits':-1}",
            WRONG "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range");
    CHECK_FINE(&world, "CreateTable", schema_table(&world, "a", "h:a", UNITS ",'OnDemandThroughput':{}"));
    world_close(&world);
}

TEST(warm_throughput_of_a_new_table)
{
    struct world world;
    world_open(&world);
    refuses(&world, "a", "h:a",
            ON_DEMAND ",'WarmThroughput':{'ReadUnitsPerSecond':1,'WriteUnitsPerSecond':1}",
            WRONG "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than initial "
                  "throughput for OnDemand. "
                  "See: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
                  "on-demand-capacity-mode.html#on-demand-capacity-mode-initial");
    refuses(&world, "a", "h:a", UNITS ",'WarmThroughput':{'ReadUnitsPerSecond':1,'WriteUnitsPerSecond':1}",
            WRONG
            "Requested WriteUnitsPerSecond for WarmThroughput for table is lower than WriteCapacityUnits of "
            "ProvisionedThroughput");
    CHECK_FINE(&world, "CreateTable", schema_table(&world, "a", "h:a", ON_DEMAND ",'WarmThroughput':{}"));
    world_close(&world);
}

TEST(keys_of_a_new_table)
{
    struct world world;
    const char *undefined = "Invalid KeySchema: Some index key attribute have no definition";
    world_open(&world);
    refuses(&world, "", "h:a", ON_DEMAND, undefined);
    refuses(&world, "a", "h:a r:a", UNITS, undefined);
    refuses(&world, "b", "h:a", UNITS,
            WRONG "Some index key attributes are not defined in AttributeDefinitions. Keys: [a], "
                  "AttributeDefinitions: [b]");
    refuses(&world, "a b", "h:a h:a", UNITS,
            "Both the Hash Key and the Range Key element in the KeySchema have the same name");
    refuses(&world, "a b", "r:a h:b", UNITS,
            "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    refuses(&world, "a b", "h:a h:b", UNITS,
            "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type");
    refuses(&world, "a b", "h:a", UNITS,
            WRONG "Number of attributes in KeySchema does not exactly match number of attributes defined in "
                  "AttributeDefinitions");
    refuses(&world, "a b a", "h:a", UNITS, "Attribute Name is duplicated: a");
    world_close(&world);
}

static void refuses_local(struct world *world, const char *attributes, const char *keys, const char *index,
                          const char *message)
{
    refuses(world, attributes, keys, schema_list(world, UNITS, "LocalSecondaryIndexes", index, NULL),
            message);
}

TEST(local_indexes_of_a_new_table)
{
    struct world world;
    world_open(&world);
    refuses_local(&world, "a b", "h:a r:b", "", WRONG "List of LocalSecondaryIndexes is empty");
    refuses_local(&world, "a", "h:a", schema_index(&world, "abc", "r:c", ALL),
                  WRONG "Table KeySchema does not have a range key, which is required when specifying a "
                        "LocalSecondaryIndex");
    refuses_local(&world, "a b", "h:a r:b", schema_index(&world, "abc", "h:a r:c", ALL),
                  WRONG "Some index key attributes are not defined in AttributeDefinitions. Keys: [a, c], "
                        "AttributeDefinitions: [a, b]");
    refuses_local(&world, "a b", "h:a r:b", schema_index(&world, "abc", "r:a", ALL),
                  "Invalid KeySchema: The first KeySchemaElement is not a HASH key type");
    refuses_local(&world, "a b", "h:a r:b", schema_index(&world, "abc", "h:b", ALL),
                  WRONG "Index KeySchema does not have a range key for index: abc");
    refuses_local(
        &world, "a b", "h:a r:b", schema_index(&world, "abc", "h:b r:a", ALL),
        WRONG
        "Index KeySchema does not have the same leading hash key as table KeySchema for index: abc. index "
        "hash key: b, table hash key: a");
    world_close(&world);
}

TEST(projections_of_indexes)
{
    struct world world;
    static const char *const cases[][2] = {
        {"'NonKeyAttributes':['a']", "Unknown ProjectionType: null"},
        {"'ProjectionType':'ALL','NonKeyAttributes':['a']",
         "ProjectionType is ALL, but NonKeyAttributes is specified"},
        {"'ProjectionType':'KEYS_ONLY','NonKeyAttributes':['a']",
         "ProjectionType is KEYS_ONLY, but NonKeyAttributes is specified"},
        {"'ProjectionType':'INCLUDE'", "ProjectionType is INCLUDE, but NonKeyAttributes is not specified"},
        {"'ProjectionType':'INCLUDE','NonKeyAttributes':['x','y','x']",
         "Duplicate element in NonKeyAttributes: x"},
    };
    world_open(&world);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct slice projection = arena_printf(&world.scratch, "'Projection':{%s}", cases[i][0]);
        struct slice message = arena_printf(&world.scratch, WRONG "%s", cases[i][1]);
        refuses_local(&world, "a b", "h:a r:b", schema_index(&world, "abc", "h:a r:b", projection.data),
                      message.data);
    }
    world_close(&world);
}

static void refuses_global(struct world *world, const char *attributes, const char *billing,
                           const char *index, const char *message)
{
    refuses(world, attributes, "h:a", schema_list(world, billing, "GlobalSecondaryIndexes", index, NULL),
            message);
}

TEST(global_indexes_of_a_new_table)
{
    struct world world;
    world_open(&world);
    refuses_global(&world, "a", ON_DEMAND, "", WRONG "List of GlobalSecondaryIndexes is empty");
    refuses_global(&world, "a", UNITS, schema_index(&world, "abc", "h:a", ALL),
                   WRONG "ProvisionedThroughput is not specified for index: abc");
    refuses_global(
        &world, "a", ON_DEMAND, schema_index(&world, "abc", "h:a", ALL "," UNITS),
        WRONG
        "ProvisionedThroughput should not be specified for index: abc when BillingMode is PAY_PER_REQUEST");
    refuses_global(
        &world, "a", UNITS,
        schema_index(&world, "abc", "h:a", ALL "," UNITS ",'OnDemandThroughput':{'MaxReadRequestUnits':1}"),
        WRONG "MaxReadRequestUnits for OnDemandThroughput for index: abc cannot be specified when table "
              "BillingMode is PROVISIONED.");
    refuses_global(
        &world, "a", ON_DEMAND,
        schema_index(&world, "abc", "h:a", ALL ",'OnDemandThroughput':{'MaxReadRequestUnits':0}"),
        WRONG
        "Requested MaxReadRequestUnits for OnDemandThroughput for index : abc is outside of valid range");
    world_close(&world);
}

/* An attribute that no key uses hides every fault of projection, throughput and name. */
TEST(unused_attributes_are_said_first)
{
    struct world world;
    world_open(&world);
    refuses_global(
        &world, "a b c", ON_DEMAND, schema_index(&world, "abc", "h:b", "'Projection':{}"),
        WRONG "Some AttributeDefinitions are not used. AttributeDefinitions: [a, b, c], keys used: [a, b]");
    world_close(&world);
}

TEST(names_of_indexes_are_distinct)
{
    struct world world;
    world_open(&world);
    const char *local = schema_index(&world, "abc", "h:a r:b", ALL);
    const char *global = schema_index(&world, "abc", "h:a", ALL);
    const char *twice = WRONG "Duplicate index name: abc";
    refuses(&world, "a b", "h:a r:b", schema_list(&world, ON_DEMAND, "LocalSecondaryIndexes", local, local),
            twice);
    refuses(&world, "a", "h:a", schema_list(&world, ON_DEMAND, "GlobalSecondaryIndexes", global, global),
            twice);
    const char *lists = schema_list(&world, ON_DEMAND, "LocalSecondaryIndexes", local, NULL);
    refuses(&world, "a b", "h:a r:b", schema_list(&world, lists, "GlobalSecondaryIndexes", global, NULL),
            twice);
    world_close(&world);
}

#define TOO_SHORT(name, list)                                                                                \
    "Value '" name "' at '" list                                                                             \
    ".1.member.indexName' failed to satisfy constraint: Member must have length "                            \
    "greater than or equal to 3"

/* Global ones are told first, in whichever order they come. */
TEST(names_of_indexes_have_three_letters)
{
    struct world world;
    world_open(&world);
    const char *local = schema_index(&world, "l1", "h:a r:b", ALL),
               *global = schema_index(&world, "g1", "h:a", ALL);
    const char *lists = schema_list(&world, ON_DEMAND, "LocalSecondaryIndexes", local, NULL);
    refuses(&world, "a b", "h:a r:b", schema_list(&world, lists, "GlobalSecondaryIndexes", global, NULL),
            "2 validation errors detected: " TOO_SHORT("g1", "globalSecondaryIndexes") "; " TOO_SHORT(
                "l1", "localSecondaryIndexes"));
    world_close(&world);
}

TEST(global_indexes_have_up_to_four_and_four_keys)
{
    struct world world;
    const char *all = "a b c d e f g h";
    world_open(&world);
    refuses_global(&world, all, ON_DEMAND, schema_index(&world, "abc", "h:a h:b h:c h:d h:e", ALL),
                   WRONG "The KeySchema exceeds the maximum allowed number of HASH key attributes");
    refuses_global(&world, all, ON_DEMAND, schema_index(&world, "abc", "h:a r:b r:c r:d r:e r:f", ALL),
                   WRONG "The KeySchema exceeds the maximum allowed number of RANGE key attributes");
    refuses_global(&world, all, ON_DEMAND, schema_index(&world, "abc", "h:a r:b h:c", ALL),
                   WRONG "All HASH key attributes must precede RANGE key attributes in the KeySchema");
    refuses_global(&world, all, ON_DEMAND, schema_index(&world, "abc", "h:a h:b r:a", ALL),
                   "The KeySchema contains multiple key attributes with the same name");
    const char *most = schema_index(&world, "abc", "h:a h:b h:c h:d r:e r:f r:g r:h", ALL);
    CHECK_FINE(&world, "CreateTable",
               schema_table(&world, all, "h:a",
                            schema_list(&world, ON_DEMAND, "GlobalSecondaryIndexes", most, NULL)));
    world_close(&world);
}

TEST(numbers_of_indexes)
{
    struct world world;
    struct slice list;
    world_open(&world);
    for (int most = 20; most <= 21; most++) {
        list = SLICE(ON_DEMAND ",'GlobalSecondaryIndexes':[");
        for (int i = 0; i < most; i++) {
            struct slice name = arena_printf(&world.scratch, "abc%d", i);
            list = arena_printf(&world.scratch, "%.*s%s%s", SLICE_ARG(list), i ? "," : "",
                                schema_index(&world, name.data, "h:a", ALL));
        }
        list = arena_printf(&world.scratch, "%.*s]", SLICE_ARG(list));
        if (most == 20) {
            CHECK_FINE(&world, "CreateTable", schema_table(&world, "a", "h:a", list.data));
            FINE(&world, "DeleteTable", "{'TableName':'abc'}");
        } else {
            refuses(&world, "a", "h:a", list.data,
                    WRONG "GlobalSecondaryIndex count exceeds the per-table limit of 20");
        }
    }
    world_close(&world);
}

TEST(streams_of_a_new_table)
{
    struct world world;
    world_open(&world);
    refuses(&world, "a", "h:a", ON_DEMAND ",'StreamSpecification':{}",
            "1 validation error detected: Value null at 'streamSpecification.streamEnabled' failed to "
            "satisfy constraint: "
            "Member must not be null");
    refuses(&world, "a", "h:a",
            ON_DEMAND ",'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'new_image'}",
            "1 validation error detected: Value 'new_image' at 'streamSpecification.streamViewType' failed "
            "to satisfy "
            "constraint: Member must satisfy enum value set: [OLD_IMAGE, KEYS_ONLY, NEW_AND_OLD_IMAGES, "
            "NEW_IMAGE]");
    refuses(&world, "a", "h:a",
            ON_DEMAND ",'StreamSpecification':{'StreamEnabled':false,'StreamViewType':'NEW_IMAGE'}",
            WRONG "Table is being created with a stream disabled, UpdateViewType should not be specified");
    refuses(&world, "a", "h:a", ON_DEMAND ",'StreamSpecification':{'StreamEnabled':true}",
            WRONG "Table is being created with a stream enabled, UpdateViewType is required");
    CHECK_FINE(&world, "CreateTable",
               schema_table(&world, "a", "h:a", ON_DEMAND ",'StreamSpecification':{'StreamEnabled':false}"));
    LACKS(&world, "Stream");
    world_close(&world);
}

static void check_sse(struct world *world, const char *members, const char *message)
{
    struct slice rest = arena_printf(&world->scratch, ON_DEMAND ",'SSESpecification':{%s}", members);
    if (message) {
        struct slice whole = arena_printf(&world->scratch, WRONG "%s", message);
        refuses(world, "a", "h:a", rest.data, whole.data);
        return;
    }
    CHECK_FINE(world, "CreateTable", schema_table(world, "a", "h:a", rest.data));
    FINE(world, "DeleteTable", "{'TableName':'abc'}");
}

TEST(encryption_of_a_new_table)
{
    struct world world;
    world_open(&world);
    check_sse(&world, "'Enabled':false,'SSEType':'KMS'", "SSEType can not be specified if Enabled is false");
    check_sse(&world, "'Enabled':false,'KMSMasterKeyId':'k'",
              "KMSMasterKeyId can not be specified if Enabled is false");
    check_sse(&world, "'Enabled':true,'SSEType':'AES256'", "SSEType AES256 is not supported");
    check_sse(&world, "'Enabled':true,'KMSMasterKeyId':'k'",
              "SSEType KMS is required if KMSMasterKeyId is specified");
    check_sse(&world, "", NULL);
    check_sse(&world, "'SSEType':'KMS','KMSMasterKeyId':'k'", NULL);
    world_close(&world);
}

TEST(tags_and_class_of_a_new_table)
{
    struct world world;
    world_open(&world);
    refuses(&world, "a", "h:a", ON_DEMAND ",'Tags':[{}]", "The Tag Key provided is invalid, Key: null");
    refuses(&world, "a", "h:a", ON_DEMAND ",'Tags':[{'Key':'k'}]",
            "The Tag Value provided is invalid, Value: null");
    refuses(&world, "a", "h:a", ON_DEMAND ",'Tags':[{'Key':'aws:k','Value':''}]",
            "Tag Key cannot be prefixed with aws:, Key: aws:k");
    refuses(&world, "a", "h:a", ON_DEMAND ",'Tags':[{'Key':'k','Value':'1'},{'Key':'k','Value':'2'}]",
            "Duplicate Tag Keys provided as input: Duplicate Tag Key found k");
    /* As TagResource does: what UntagResource could not name may not come in here. */
    refuses(&world, "a", "h:a", ON_DEMAND ",'Tags':[{'Key':'a*','Value':'b'}]",
            "The Tag Key provided is invalid, Key: a*");
    refuses(&world, "a", "h:a", ON_DEMAND ",'Tags':[{'Key':'a','Value':'#'}]",
            "The Tag Value provided is invalid, Value: #");
    refuses(&world, "a", "h:a", ON_DEMAND ",'Tags':[null]", "The Tag Key provided is invalid, Key: null");
    refuses(
        &world, "a", "h:a", ON_DEMAND ",'TableClass':'COLD'",
        "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, "
        "STANDARD_INFREQUENT_ACCESS].");
    world_close(&world);
}

TEST(what_is_not_supported_is_said)
{
    struct world world;
    world_open(&world);
    refuses(&world, "a", "h:a", ON_DEMAND ",'GlobalTableSourceArn':'x'",
            WRONG "GlobalTableSourceArn is not supported");
    world_close(&world);
}
