/* Requests that are not JSON, or not of the right types: SerializationException in the service's words. */
#include "unit/api_fixture.h"

static void check_type_fault(struct world *world, const char *operation, const char *body,
                             const char *message)
{
    CHECK_REFUSED(world, operation, body, "SerializationException", message);
    if (!slice_contains(buf_view(&world->reply), SLICE("\"Message\":")))
        test_failed(__FILE__, __LINE__, "no capital M: %.*s", SLICE_ARG(buf_view(&world->reply)));
}

TEST(decode_what_is_not_json_gets_no_message)
{
    struct world world;
    const char *bodies[] = {"",
                            " ",
                            "{",
                            "hi",
                            "null",
                            "{} {}",
                            "{\"TableName\":\"abc\"",
                            "{\"TableName\":nul}",
                            "{\"TableName\":}",
                            "{\"x\":[1,]}",
                            "{\"TableName\":\"\xff\"}",
                            "{\"TableName\":tru}"};
    world_open(&world);
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        CHECK_ASK(&world, "DescribeTable", bodies[i],
                  "{\"__type\":\"com.amazon.coral.service#SerializationException\"}");
        CHECK_INT(world.status, 400);
    }
    world_close(&world);
}

TEST(decode_a_malformed_rest_goes_before_a_wrong_type)
{
    struct world world;
    world_open(&world);
    CHECK_ASK(&world, "DescribeTable", "{\"TableName\":5,",
              "{\"__type\":\"com.amazon.coral.service#SerializationException\"}");
    world_close(&world);
}

TEST(decode_roots_that_are_no_object)
{
    struct world world;
    world_open(&world);
    check_type_fault(
        &world, "DescribeTable", "[]",
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.DescribeTableInput");
    check_type_fault(&world, "DescribeTable", "5", "Unexpected value type in payload");
    world_close(&world);
}

TEST(decode_strings)
{
    struct world world;
    world_open(&world);
    check_type_fault(&world, "DescribeTable", "{\"TableName\":true}",
                     "TRUE_VALUE cannot be converted to String");
    check_type_fault(&world, "DescribeTable", "{\"TableName\":false}",
                     "FALSE_VALUE cannot be converted to String");
    check_type_fault(&world, "DescribeTable", "{\"TableName\":23}",
                     "NUMBER_VALUE cannot be converted to String");
    check_type_fault(&world, "DescribeTable", "{\"TableName\":34.56}",
                     "DECIMAL_VALUE cannot be converted to String");
    check_type_fault(&world, "DescribeTable", "{\"TableName\":[]}",
                     "Unrecognized collection type class java.lang.String");
    check_type_fault(&world, "DescribeTable", "{\"TableName\":{}}",
                     "Start of structure or map found where not expected");
    world_close(&world);
}

TEST(decode_whole_numbers)
{
    struct world world;
    world_open(&world);
    check_type_fault(&world, "ListTables", "{\"Limit\":\"23\"}",
                     "STRING_VALUE cannot be converted to Integer");
    check_type_fault(&world, "ListTables", "{\"Limit\":true}", "TRUE_VALUE cannot be converted to Integer");
    check_type_fault(&world, "ListTables", "{\"Limit\":[]}",
                     "Unrecognized collection type class java.lang.Integer");
    check_type_fault(&world, "ListTables", "{\"Limit\":{}}",
                     "Start of structure or map found where not expected");
    check_type_fault(&world, "CreateTable", "{\"ProvisionedThroughput\":{\"ReadCapacityUnits\":\"1\"}}",
                     "STRING_VALUE cannot be converted to Long");
    CHECK_FINE(&world, "ListTables", "{\"Limit\":1.9}");
    CHECK_INVALID(&world, "ListTables", "{\"Limit\":99999999999}",
                  "1 validation error detected: Value '2147483647' at 'limit' failed to satisfy constraint: "
                  "Member must "
                  "have value less than or equal to 100");
    CHECK_INVALID(&world, "ListTables", "{\"Limit\":-99999999999}",
                  "1 validation error detected: Value '-2147483648' at 'limit' failed to satisfy constraint: "
                  "Member must "
                  "have value greater than or equal to 1");
    world_close(&world);
}

TEST(decode_booleans_take_some_words)
{
    struct world world;
    world_open(&world);
    check_type_fault(&world, "CreateTable", "{\"DeletionProtectionEnabled\":\"23\"}",
                     "Unexpected token received from parser");
    check_type_fault(&world, "CreateTable", "{\"DeletionProtectionEnabled\":23}",
                     "NUMBER_VALUE cannot be converted to Boolean");
    check_type_fault(&world, "CreateTable", "{\"DeletionProtectionEnabled\":2.5}",
                     "DECIMAL_VALUE cannot be converted to Boolean");
    check_type_fault(&world, "CreateTable", "{\"DeletionProtectionEnabled\":[]}",
                     "Unrecognized collection type class java.lang.Boolean");
    check_type_fault(&world, "CreateTable", "{\"DeletionProtectionEnabled\":{}}",
                     "Start of structure or map found where not expected");
    CHECK_INVALID(&world, "CreateTable", "{\"DeletionProtectionEnabled\":\"YES\"}",
                  "The parameter 'TableName' is required but was not present in the request");
    world_close(&world);
}

TEST(decode_lists_and_structures)
{
    struct world world;
    world_open(&world);
    check_type_fault(&world, "CreateTable", "{\"KeySchema\":\"23\"}", "Unexpected field type");
    check_type_fault(&world, "CreateTable", "{\"KeySchema\":34.56}", "Unexpected field type");
    check_type_fault(&world, "CreateTable", "{\"KeySchema\":{}}",
                     "Start of structure or map found where not expected");
    check_type_fault(&world, "CreateTable", "{\"KeySchema\":[\"x\"]}", "Unexpected value type in payload");
    check_type_fault(&world, "CreateTable", "{\"KeySchema\":[[]]}",
                     "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.KeySchemaElement");
    check_type_fault(&world, "CreateTable", "{\"ProvisionedThroughput\":true}", "Unexpected field type");
    check_type_fault(
        &world, "CreateTable", "{\"ProvisionedThroughput\":[]}",
        "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.ProvisionedThroughput");
    check_type_fault(&world, "UpdateTable",
                     "{\"GlobalSecondaryIndexUpdates\":[{\"Create\":{\"KeySchema\":[5]}}]}",
                     "Unexpected value type in payload");
    world_close(&world);
}

TEST(decode_unknown_members_and_nulls_are_nothing)
{
    struct world world;
    world_open(&world);
    CHECK_ASK(&world, "ListTables", "{\"Nonsense\":{\"a\":[1,{\"b\":null}]},\"Limit\":null}",
              "{\"TableNames\":[]}");
    CHECK_INVALID(&world, "DescribeTable", "{\"TableName\":null}",
                  "The parameter 'TableName' is required but was not present in the request");
    CHECK_INVALID(&world, "DescribeTable", "{\"TableName\":\"abc\",\"TableName\":\"xy\"}",
                  "1 validation error detected: Value 'xy' at 'tableName' failed to satisfy constraint: "
                  "Member must have "
                  "length greater than or equal to 3");
    world_close(&world);
}

TEST(errors_outside_operations)
{
    struct buf out = {0};
    CHECK_INT(api_put_error(&out, "UnknownOperationException", SLICE_NONE), 400);
    CHECK_TEXT(buf_view(&out), "{\"__type\":\"com.amazon.coral.service#UnknownOperationException\"}");
    out.len = 0;
    CHECK_INT(api_put_error(&out, "InternalServerError", SLICE("say \"x\"")), 500);
    CHECK_TEXT(buf_view(&out), "{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\","
                               "\"message\":\"say \\\"x\\\"\"}");
    buf_free(&out);
}

TEST(operations_are_found_by_name)
{
    unsigned number = 0;
    for (unsigned i = 0; i < api_operation_count(); i++) {
        const struct operation *operation = api_operation_at(i);
        CHECK(api_operation_find(api_operation_name(operation)) == operation);
        CHECK(api_operation_search(api_operation_name(operation), &number));
        CHECK_INT(number, i);
    }
    CHECK(!api_operation_find(SLICE("NoSuchThing")));
    CHECK(!api_operation_find(SLICE("")));
}

TEST(a_failed_commit_is_an_internal_server_error)
{
    struct world world;
    world_open(&world);
    world.faults.fail_at = world.faults.calls + 1;
    CHECK_REFUSED(
        &world, "CreateTable",
        "{\"TableName\":\"abc\",\"AttributeDefinitions\":[{\"AttributeName\":\"a\",\"AttributeType\":\"S\"}],"
        "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}],\"BillingMode\":\"PAY_PER_REQUEST\"}",
        "InternalServerError", "Internal server error");
    CHECK_INT(world.status, 500);
    world_close(&world);
}
