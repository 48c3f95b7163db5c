/* What the roles of keys may do, as a decision without a server. */
#include "rest/rest.h"
#include "unit/test.h"

static bool may(enum rest_role role, const char *operation, const char *body)
{
    struct arena arena = {0};
    struct slice message = SLICE_NONE;
    bool may = rest_role_admits_operation(role, slice_of(operation), slice_of(body), SLICE("quipu-"), &arena,
                                          &message);
    CHECK_INT(may, message.len == 0);
    arena_free(&arena);
    return may;
}

TEST(role_names)
{
    enum rest_role role = ROLE_ADMIN;
    CHECK(rest_role_find(SLICE("read"), &role));
    CHECK_INT(role, ROLE_READ);
    CHECK_TEXT(slice_of(rest_role_name(ROLE_DATA)), "data");
    CHECK(!rest_role_find(SLICE("Read"), &role));
    CHECK(!rest_role_find(SLICE(""), &role));
}

TEST(role_data_may_not_use_the_servers_tables)
{
    static const char *const hidden[] = {
        "{\"TableName\":\"quipu-functions\"}",
        "{\"TableName\":\"t\",\"TableName\":\"quipu-functions\"}",
        "{\"TableName\":\"arn:aws:dynamodb:r:1:table/quipu-code\"}",
        "{\"StreamArn\":\"arn:aws:dynamodb:r:1:table/quipu-code/stream/x\"}",
        "{\"TargetTableName\":\"quipu-new\",\"SourceTableName\":\"t\"}",
        "{\"RequestItems\":{\"t\":[],\"quipu-code\":[]}}",
        "{\"TransactItems\":[{\"Put\":{\"TableName\":\"t\"}},{\"Put\":{\"TableName\":\"quipu-x\"}}]}",
        "{\"Statement\":\"SELECT * FROM \\\"quipu-functions\\\"\"}",
        "{\"Statements\":[{\"Statement\":\"DELETE FROM \\\"quipu-x\\\"\"}]}",
        "{\"TableName\":\"t\",}",
    };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        if (may(ROLE_DATA, "PutItem", hidden[i])) test_failed(__FILE__, __LINE__, "%s was let in", hidden[i]);
        CHECK(may(ROLE_ADMIN, "PutItem", hidden[i]));
    }
    CHECK(may(ROLE_DATA, "ListTables", ""));
    CHECK(may(ROLE_DATA, "PutItem",
              "{\"TableName\":\"my-quipu-x\",\"Item\":{\"TableName\":{\"S\":\"quipu-x\"},"
              "\"RequestItems\":{\"M\":{\"quipu-x\":{\"S\":\"a\"}}}}}"));
}

TEST(role_read_may_only_read)
{
    static const char *const reads[] = {"GetItem",          "Query",      "Scan",       "BatchGetItem",
                                        "TransactGetItems", "GetRecords", "ListTables", "DescribeTable"};
    static const char *const writes[] = {
        "PutItem",     "UpdateItem",         "DeleteItem",       "BatchWriteItem", "CreateTable",
        "TagResource", "TransactWriteItems", "UpdateTimeToLive", "ImportTable",    "NewOperation"};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) CHECK(may(ROLE_READ, reads[i], "{}"));
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) CHECK(!may(ROLE_READ, writes[i], "{}"));
    CHECK(may(ROLE_READ, "ExecuteStatement", "{\"Statement\":\" \\nSelect * FROM t\"}"));
    CHECK(!may(ROLE_READ, "ExecuteStatement", "{\"Statement\":\"DELETE FROM t\"}"));
    CHECK(!may(ROLE_READ, "BatchExecuteStatement",
               "{\"Statements\":[{\"Statement\":\"SELECT 1\"},{\"Statement\":\"UPDATE t\"}]}"));
}
