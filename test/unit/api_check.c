/* Constraints of the shapes: all violations of a request in one sentence, and table names before everything
 * else. */
#include "api/shapes.h"
#include "unit/api_fixture.h"

#define KEYS "\"KeySchema\":[{\"AttributeName\":\"a\",\"KeyType\":\"HASH\"}]"

/* "2 validation errors detected: Value ... failed to satisfy constraint: ...; Value ...": the list holds the
 * value, the path and the constraint of each, and ends with NULL. */
static struct slice violations(struct arena *arena, const char *const *list)
{
    struct buf text = {0};
    unsigned count = 0;
    for (; list[3 * count]; count++)
        buf_printf(&text, "%sValue %s%sat '%s' failed to satisfy constraint: %s", count ? "; " : "",
                   list[3 * count], list[3 * count][0] ? " " : "", list[3 * count + 1], list[3 * count + 2]);
    struct slice message = arena_printf(arena, "%u validation error%s detected: %.*s", count,
                                        count == 1 ? "" : "s", SLICE_ARG(buf_view(&text)));
    buf_free(&text);
    return message;
}

static void check_violations(struct world *world, const char *operation, const char *body,
                             const char *const *list)
{
    struct arena arena = {0};
    struct slice message = violations(&arena, list);
    CHECK_INVALID(world, operation, body, message.data);
    arena_free(&arena);
}

#define VIOLATIONS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NULLED          "Member must not be null"
#define PATTERN         "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
#define LEAST_1         "Member must have length greater than or equal to 1"
#define LEAST_3         "Member must have length greater than or equal to 3"

static void put_name(struct buf *out, const char *before, size_t len, const char *after)
{
    out->len = 0;
    buf_slice(out, slice_of(before));
    for (size_t i = 0; i < len; i++) buf_byte(out, 'a');
    buf_slice(out, slice_of(after));
    buf_byte(out, 0);
}

TEST(names_of_new_tables)
{
    struct world world;
    struct buf body = {0}, message = {0};
    world_open(&world);
    CHECK_INVALID(&world, "CreateTable", "{}",
                  "The parameter 'TableName' is required but was not present in the request");
    check_violations(&world, "CreateTable", "{\"TableName\":\"ab\"}",
                     VIOLATIONS("'ab'", "tableName", LEAST_3));
    check_violations(&world, "CreateTable", "{\"TableName\":\"x!\",\"KeySchema\":[]}",
                     VIOLATIONS("'x!'", "tableName", LEAST_3, "'x!'", "tableName", PATTERN));
    put_name(&body, "{\"TableName\":\"", 256, "\"}");
    put_name(
        &message, "1 validation error detected: Value '", 256,
        "' at 'tableName' failed to satisfy constraint: Member must have length less than or equal to 255");
    CHECK_INVALID(&world, "CreateTable", body.data, message.data);
    buf_free(&body);
    buf_free(&message);
    world_close(&world);
}

TEST(names_of_known_tables)
{
    struct world world;
    const char *operations[] = {"DescribeTable", "DeleteTable", "UpdateTable"};
    world_open(&world);
    for (int i = 0; i < 3; i++) {
        CHECK_INVALID(&world, operations[i], "{}",
                      "The parameter 'TableName' is required but was not present in the request");
        check_violations(&world, operations[i], "{\"TableName\":\"\"}",
                         VIOLATIONS("''", "tableName", LEAST_3, "''", "tableName", PATTERN));
        check_violations(&world, operations[i], "{\"TableName\":\"abc;\"}",
                         VIOLATIONS("'abc;'", "tableName", PATTERN));
    }
    world_close(&world);
}

/* A name that is too short is no name of a table that might be missing. */
TEST(names_of_tables_of_items)
{
    struct world world;
    world_open(&world);
    CHECK_INVALID(&world, "GetItem", "{\"TableName\":\"\",\"Key\":{}}",
                  "1 validation error detected: Value '' at 'tableName' failed to satisfy constraint: Member "
                  "must have length greater than or equal to 1");
    check_violations(&world, "GetItem", "{\"TableName\":\"xx\",\"Key\":{}}",
                     VIOLATIONS("'xx'", "tableName", LEAST_3));
    check_violations(&world, "GetItem", "{\"TableName\":\"x!\",\"Key\":{}}",
                     VIOLATIONS("'x!'", "tableName", PATTERN));
    world_close(&world);
}

#define ARN "arn:aws:dynamodb:us-east-1:000000000000:"

static void check_arn(struct world *world, const char *arn, const char *short_name, const char *message)
{
    struct arena arena = {0};
    struct slice body = arena_printf(&arena, "{\"TableName\":\"%s\"}", arn);
    CHECK_REFUSED(world, "DescribeTable", body.data, short_name, message);
    arena_free(&arena);
}

TEST(names_of_tables_as_arns)
{
    struct world world;
    struct arena arena = {0};
    world_open(&world);
    check_arn(&world, ARN "table/abc", "ResourceNotFoundException",
              "Requested resource not found: Table: abc not found");
    check_arn(&world, "arn:aws:dynamodb:us-east-1:999999999999:table/abc", "ResourceNotFoundException",
              "Requested resource not found");
    check_arn(&world, "arn:aws:dynamodb:eu-west-1:000000000000:table/abc", "ValidationException",
              "1 validation error detected: Invalid AWS region in "
              "'arn:aws:dynamodb:eu-west-1:000000000000:table/abc'");
    check_arn(&world, "arn:aws-cn:dynamodb:us-east-1:000000000000:table/abc", "ValidationException",
              "1 validation error detected: Invalid AWS partition in "
              "'arn:aws-cn:dynamodb:us-east-1:000000000000:table/abc'");
    check_arn(&world, ARN "stream/abc", "ValidationException",
              "1 validation error detected: Invalid resource type in '" ARN "stream/abc'");
    const char *malformed[] = {"arn:",         "arn:aws:dynamodb:us-east-1:000000000000",
                               ARN "table/ab", ARN "table/a/index/b",
                               ARN "table/",   ARN "abc"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        struct slice message = arena_printf(&arena,
                                            "1 validation error detected: Value '%s' at 'tableName' failed "
                                            "to satisfy constraint: Valid ARN format is "
                                            "'arn:<awsPartition>:<vendor>:<region>:<subscriber>:resourceType/"
                                            "resourceName', where Resource name must have "
                                            "length less than or equal to 255, Resource name must have "
                                            "length greater than or equal to 3, Resource name "
                                            "must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
                                            malformed[i]);
        check_arn(&world, malformed[i], "ValidationException", message.data);
    }
    arena_free(&arena);
    world_close(&world);
}

TEST(violations_come_together_and_in_order)
{
    struct world world;
    world_open(&world);
    check_violations(&world, "CreateTable", "{\"TableName\":\"abc\"}",
                     VIOLATIONS("null", "attributeDefinitions", NULLED, "null", "keySchema", NULLED));
    check_violations(
        &world, "CreateTable",
        "{\"TableName\":\"abc\",\"AttributeDefinitions\":[],\"KeySchema\":[],\"BillingMode\":\"A\","
        "\"ProvisionedThroughput\":{\"ReadCapacityUnits\":-1}}",
        VIOLATIONS("'A'", "billingMode", "Member must satisfy enum value set: [PROVISIONED, PAY_PER_REQUEST]",
                   "null", "provisionedThroughput.writeCapacityUnits", NULLED, "'-1'",
                   "provisionedThroughput.readCapacityUnits",
                   "Member must have value greater than or equal to 1", "'[]'", "keySchema", LEAST_1));
    world_close(&world);
}

TEST(violations_inside_lists)
{
    struct world world;
    world_open(&world);
    check_violations(&world, "CreateTable",
                     "{\"TableName\":\"abc\",\"AttributeDefinitions\":[{},{\"AttributeName\":\"a\","
                     "\"AttributeType\":\"SS\"}]," KEYS "}",
                     VIOLATIONS("null", "attributeDefinitions.1.member.attributeType", NULLED, "null",
                                "attributeDefinitions.1.member.attributeName", NULLED, "'SS'",
                                "attributeDefinitions.2.member.attributeType",
                                "Member must satisfy enum value set: [B, N, S]"));
    check_violations(
        &world, "CreateTable",
        "{\"TableName\":\"abc\",\"AttributeDefinitions\":[],\"KeySchema\":[{\"KeyType\":\"HASH\"},"
        "{\"AttributeName\":\"b\",\"KeyType\":\"RANGE\"},{\"AttributeName\":\"c\",\"KeyType\":\"RANGE\"}]}",
        VIOLATIONS("'[KeySchemaElement(attributeName=null, keyType=HASH), KeySchemaElement(attributeName=b, "
                   "keyType=RANGE), KeySchemaElement(attributeName=c, keyType=RANGE)]'",
                   "keySchema", "Member must have length less than or equal to 2", "null",
                   "keySchema.1.member.attributeName", NULLED));
    world_close(&world);
}

TEST(violations_of_indexes)
{
    struct world world;
    world_open(&world);
#define LOCAL "localSecondaryIndexes.1.member."
    check_violations(
        &world, "CreateTable",
        "{\"TableName\":\"abc\",\"AttributeDefinitions\":[]," KEYS
        ",\"LocalSecondaryIndexes\":[{\"IndexName\":\"h;\",\"KeySchema\":[],"
        "\"Projection\":{\"ProjectionType\":\"abc\",\"NonKeyAttributes\":[\"\"]}}]}",
        VIOLATIONS(
            "'h;'", LOCAL "indexName", LEAST_3, "'h;'", LOCAL "indexName", PATTERN, "'[]'", LOCAL "keySchema",
            LEAST_1, "'abc'", LOCAL "projection.projectionType",
            "Member must satisfy enum value set: [ALL, INCLUDE, KEYS_ONLY]", "'[]'",
            LOCAL "projection.nonKeyAttributes",
            "Member must satisfy constraint: [Member must have length less than or equal to 255, " LEAST_1
            "]"));
#undef LOCAL
    world_close(&world);
}

TEST(no_more_than_ten_violations)
{
    struct world world;
    world_open(&world);
    struct slice reply = ask(&world, "CreateTable",
                             "{\"TableName\":\"abc\",\"AttributeDefinitions\":[]," KEYS
                             ",\"LocalSecondaryIndexes\":[{},{},{},{},{}]}");
    struct slice message = member_text(&world, reply, "message");
    CHECK(slice_starts(message, SLICE("10 validation errors detected: Value null at "
                                      "'localSecondaryIndexes.1.member.indexName'")));
    CHECK(slice_contains(message, SLICE("'localSecondaryIndexes.4.member.indexName'")));
    CHECK(!slice_contains(message, SLICE("'localSecondaryIndexes.4.member.keySchema'")));
    world_close(&world);
}

/* Maps, their keys and values, and the newer wording, of which the operations on tables have none. */
static const struct shape few_strings = LIST_SHAPE_SIZED(shape_string, 1, 2);
static const struct shape short_key = {.kind = SHAPE_STRING,
                                       .has_min = true,
                                       .min = 3,
                                       .has_max = true,
                                       .max = 5,
                                       .pattern = "[a-z]+",
                                       .matches = is_plain_name};
static const struct shape request_items = {.kind = SHAPE_MAP,
                                           .of = &few_strings,
                                           .key = &short_key,
                                           .has_min = true,
                                           .min = 1,
                                           .has_max = true,
                                           .max = 2};
static const struct shape_member keys_members[] = {MEMBER("Keys", few_strings),
                                                   MEMBER("Limit", shape_limit_terse)};
static const struct shape keys_shape = STRUCT_SHAPE("KeysAndAttributes", keys_members);
static const struct shape keys_map = MAP_SHAPE(keys_shape);
static const struct shape_member map_members[] = {MEMBER("RequestItems", request_items),
                                                  MEMBER("More", keys_map)};
static const struct shape maps_shape = STRUCT_SHAPE("Maps", map_members);

static void check_maps(const char *body, const char *const *list)
{
    struct arena arena = {0};
    struct buf reply = {0};
    struct api api = {0}; /* strict */
    struct api_call call = {.api = &api, .arena = &arena, .reply = &reply, .body = slice_of(body)};
    struct node root;
    struct world reader = {0};
    CHECK(request_decode(&call, &maps_shape, &root));
    CHECK(request_check(&call, &root) == !list);
    if (list) CHECK_TEXT(member_text(&reader, buf_view(&reply), "message"), violations(&arena, list).data);
    arena_free(&reader.arena);
    buf_free(&reply);
    arena_free(&arena);
}

#define KEY_RULES                                                                                            \
    "Map keys must satisfy constraint: [Member must have length less than or equal to 5, " LEAST_3           \
    ", Member must satisfy regular expression pattern: [a-z]+]"

TEST(maps_keys_and_values)
{
    check_maps("{\"RequestItems\":{\"abc\":[\"x\"],\"abd\":[\"x\",\"y\"]}}", NULL);
    check_maps("{\"RequestItems\":{}}", VIOLATIONS("'{}'", "requestItems", LEAST_1));
    check_maps(
        "{\"RequestItems\":{\"abc\":[]}}",
        VIOLATIONS(
            "'{abc=[]}'", "requestItems",
            "Map value must satisfy constraint: [Member must have length less than or equal to 2, " LEAST_1
            "]"));
    check_maps("{\"RequestItems\":{\"ab\":[\"x\"]}}", VIOLATIONS("'{ab=[x]}'", "requestItems", KEY_RULES));
}

TEST(paths_through_maps_and_the_newer_wording)
{
    check_maps("{\"More\":{\"Abc\":{\"Keys\":[]}}}", VIOLATIONS("'[]'", "more.Abc.member.keys", LEAST_1));
    check_maps("{\"More\":{\"Abc\":{\"Limit\":0}}}",
               VIOLATIONS("", "More.Abc.member.Limit", "Member must have value greater than or equal to 1"));
}

/* Java counts UTF-16 units: the euro sign, three bytes, is one. */
TEST(lengths_are_counted_as_java_does)
{
    check_maps("{\"RequestItems\":{\"\xe2\x82\xac\xe2\x82\xac\":[\"x\"]}}",
               VIOLATIONS("'{\xe2\x82\xac\xe2\x82\xac=[x]}'", "requestItems", KEY_RULES));
}
