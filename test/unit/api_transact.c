/* TransactWriteItems: all actions or none, the reasons of a cancellation, refusals, capacity. */
#include "unit/api_items.h"

#define CANCELLED(codes)                                                                                     \
    "{'__type':'com.amazonaws.dynamodb.v20120810#TransactionCanceledException','Message':'Transaction "      \
    "cancelled, please refer cancellation reasons for specific reasons [" codes "]','CancellationReasons':["
#define NONE           "{'Code':'None'}"
#define FAILED         "{'Code':'ConditionalCheckFailed','Message':'The conditional request failed'}"
#define WRONG(message) "{'Code':'ValidationError','Message':'" message "'}"

#define WRITE(items)              "{'TransactItems':[" items "]}"
#define PUT(table, item)          "{'Put':{'TableName':'" table "','Item':{" item "}}}"
#define PUT_IF(table, item, rest) "{'Put':{'TableName':'" table "','Item':{" item "}," rest "}}"
#define DELETE(table, key)        "{'Delete':{'TableName':'" table "','Key':{" key "}}}"
#define UPDATE(table, key, rest)  "{'Update':{'TableName':'" table "','Key':{" key "}," rest "}}"
#define CHECK_IF(table, key, rest)                                                                           \
    "{'ConditionCheck':{'TableName':'" table "','Key':{" key "},'ConditionExpression':" rest "}}"

#define GET(table, key) "{'TableName':'" table "','Key':{" key "}}"
#define ONE             "'a':{'S':'1'}"
#define TWO             "'a':{'S':'2'}"
#define IS_NEW          "'ConditionExpression':'attribute_not_exists(a)'"

TEST(all_actions_of_a_transaction_are_applied)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'u'},'n':{'N':'1'}}}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'d'}}}", "{}"},
        {"TransactWriteItems",
         /* clang-format off */
         WRITE(PUT("hash", "'a':{'S':'p'},'v':{'L':[{'S':'x'}]}") ","
               UPDATE("hash", "'a':{'S':'u'}", "'UpdateExpression':'SET n = n + :one',"
                      "'ExpressionAttributeValues':{':one':{'N':'1'}}") ","
               DELETE("hash", "'a':{'S':'d'}") ","
               CHECK_IF("pair", ONE ",'b':{'N':'1'}", "'attribute_not_exists(a)'") ","
               PUT("pair", ONE ",'b':{'N':'2'}")),
         /* clang-format on */
         "{}"},
        {"GetItem", GET("hash", "'a':{'S':'p'}"), "{'Item':{'a':{'S':'p'},'v':{'L':[{'S':'x'}]}}}"},
        {"GetItem", GET("hash", "'a':{'S':'u'}"), "{'Item':{'a':{'S':'u'},'n':{'N':'2'}}}"},
        {"GetItem", GET("hash", "'a':{'S':'d'}"), "{}"},
        {"GetItem", GET("pair", ONE ",'b':{'N':'1'}"), "{}"},
        {"GetItem", GET("pair", ONE ",'b':{'N':'2'}"), "{'Item':{" ONE ",'b':{'N':'2'}}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(an_update_that_only_clears_makes_no_item_in_a_transaction)
{
    static const struct exchange exchanges[] = {
        {"TransactWriteItems", WRITE(UPDATE("hash", ONE, "'UpdateExpression':'REMOVE v'")), "{}"},
        {"GetItem", GET("hash", ONE), "{}"},
        {"TransactWriteItems",
         WRITE(UPDATE("hash", ONE,
                      "'UpdateExpression':'SET v = :v','ExpressionAttributeValues':{':v':{'S':'x'}}")),
         "{}"},
        {"TransactWriteItems", WRITE(UPDATE("hash", ONE, "'UpdateExpression':'REMOVE v'")), "{}"},
        {"GetItem", GET("hash", ONE), "{'Item':{" ONE "}}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

TEST(one_action_that_fails_leaves_everything_alone)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{" ONE ",'v':{'S':'old'}}}", "{}"},
        {"TransactWriteItems",
         WRITE(PUT("hash", TWO) "," PUT_IF("hash", ONE ",'v':{'S':'new'}",
                                           IS_NEW) "," DELETE("pair", ONE ",'b':{'N':'1'}")),
         CANCELLED("None, ConditionalCheckFailed, None") NONE "," FAILED "," NONE "]}"},
        {"GetItem", GET("hash", TWO), "{}"},
        {"GetItem", GET("hash", ONE), "{'Item':{" ONE ",'v':{'S':'old'}}}"},
        /* the item is told only where it was asked for, and where there is one */
        {"TransactWriteItems",
         WRITE(PUT_IF("hash", ONE, IS_NEW ",'ReturnValuesOnConditionCheckFailure':'ALL_OLD'")
               "," CHECK_IF("hash", TWO, "'attribute_exists(a)','ReturnValuesOnConditionCheckFailure':'ALL_OLD'")
               "," CHECK_IF("hash", "'a':{'S':'3'}",
                            "'attribute_exists(a)','ReturnValuesOnConditionCheckFailure':'NONE'")),
         CANCELLED("ConditionalCheckFailed, ConditionalCheckFailed, ConditionalCheckFailed")
         "{'Code':'ConditionalCheckFailed','Item':{" ONE ",'v':{'S':'old'}},"
         "'Message':'The conditional request failed'}," FAILED "," FAILED "]}"},
        {"TransactWriteItems",
         WRITE("{'Delete':{'TableName':'hash','Key':{" ONE "},'ConditionExpression':'v = :v',"
               "'ExpressionAttributeValues':{':v':{'S':'other'}},"
               "'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}}"),
         CANCELLED("ConditionalCheckFailed")
         "{'Code':'ConditionalCheckFailed','Item':{" ONE ",'v':{'S':'old'}},"
         "'Message':'The conditional request failed'}]}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define SET(text) "'UpdateExpression':'" text "'"
#define NUMBER(n) ",'ExpressionAttributeValues':{':v':{'N':'" n "'}}"

/* What an update cannot do cancels, in the words of UpdateItem; all reasons are told at once, unless the request
 * alone shows that one cannot be done. */
TEST(updates_that_cannot_be_made_cancel)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{" ONE ",'s':{'S':'x'},'n':{'N':'1'}}}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{" TWO "}}", "{}"},
        {"TransactWriteItems",
         WRITE(UPDATE("hash", ONE, SET("SET n = s + :v") NUMBER("1")) "," UPDATE(
             "hash", TWO, SET("SET n = n + :v") NUMBER("1")) "," UPDATE("hash", "'a':{'S':'3'}",
                                                                        SET("SET m.x = :v") NUMBER("1"))),
         CANCELLED("ValidationError, ValidationError, ValidationError")
             WRONG("An operand in the update expression has an incorrect data type") "," WRONG(
                 "The provided expression refers to an attribute that does not exist in the "
                 "item") "," WRONG("The document path provided in the update expression is "
                                   "invalid for update") "]}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'3'},'n':{'N':'9e125'}}}", "{}"},
        {"TransactWriteItems",
         WRITE(PUT("hash", "'a':{'S':'4'}") "," UPDATE(
             "hash", "'a':{'S':'3'}",
             SET("ADD n :v") NUMBER("9e125")) "," UPDATE("hash", TWO, SET("SET a = :v") NUMBER("1"))),
         CANCELLED("None, None, ValidationError") NONE
         "," NONE "," WRONG("One or more parameter values were invalid: Cannot "
                            "update attribute a. This attribute is part "
                            "of the key") "]}"},
        {"TransactWriteItems",
         WRITE(PUT("hash", "'a':{'S':'4'}") "," UPDATE("hash", "'a':{'S':'3'}",
                                                       SET("ADD n :v") NUMBER("9e125"))),
         CANCELLED("None, ValidationError") NONE
         "," WRONG("Number overflow. Attempting to store a number with magnitude larger than "
                   "supported range") "]}"},
        /* a condition that fails is told before what the update would do */
        {"TransactWriteItems", WRITE(UPDATE("hash", ONE, SET("SET n = s + :v") "," IS_NEW NUMBER("1"))),
         CANCELLED("ConditionalCheckFailed") FAILED "]}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define MISMATCH "The provided key element does not match the schema"

/* The first key that does not fit its table cancels, and ends the checking: so the service was seen to do. Empty
 * ones refuse the whole call. */
TEST(keys_that_do_not_fit_cancel)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{" ONE "}}", "{}"},
        {"TransactWriteItems",
         WRITE(
             PUT("hash", "'b':{'S':'1'}") "," PUT("hash", "'a':{'N':'1'}") "," PUT_IF("hash", ONE, IS_NEW) "," DELETE(
                 "hash",
                 "'b':{'S':'1'}") "," DELETE("pair",
                                             ONE) "," CHECK_IF("hash", "'a':{'L':[]}",
                                                               "'attribute_exists(a)'") "," PUT("hash", TWO)),
         CANCELLED("ValidationError, None, None, None, None, None, None") WRONG(
             "One or more parameter values were invalid: Missing the key a in the item") "," NONE "," NONE
                                                                                         "," NONE "," NONE
                                                                                         "," NONE "," NONE
                                                                                         "]}"},
        {"TransactWriteItems", WRITE(PUT("hash", TWO) "," PUT("hash", "'a':{'N':'1'}")),
         CANCELLED("None, ValidationError") NONE
         "," WRONG("One or more parameter values were invalid: Type mismatch for key a expected: S "
                   "actual: N") "]}"},
        {"TransactWriteItems", WRITE(DELETE("hash", "'b':{'S':'1'}")),
         CANCELLED("ValidationError") WRONG(MISMATCH) "]}"},
        {"TransactWriteItems", WRITE(DELETE("pair", ONE)), CANCELLED("ValidationError") WRONG(MISMATCH) "]}"},
        {"TransactWriteItems", WRITE(CHECK_IF("hash", "'a':{'L':[]}", "'attribute_exists(a)'")),
         CANCELLED("ValidationError") WRONG(MISMATCH) "]}"},
        {"TransactWriteItems", WRITE(PUT("hash", "'b':{'S':'1'}") "," PUT("hash", "'a':{'S':''}")),
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        {"TransactWriteItems", WRITE(UPDATE("pair", "'a':{'S':''},'b':{'N':'1'}", SET("REMOVE v"))),
         "ValidationException: One or more parameter values are not valid. The AttributeValue for a key "
         "attribute cannot contain an empty string value. Key: a"},
        /* the number of attributes is looked at first */
        {"TransactWriteItems", WRITE(DELETE("pair", "'a':{'S':''}")),
         CANCELLED("ValidationError") WRONG(MISMATCH) "]}"},
        {"GetItem", GET("hash", TWO), "{}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define STRING(text) ",'ExpressionAttributeValues':{':v':{'S':'" text "'}}"
#define ONE_ONE      ONE ",'b':{'S':'1'}"

TEST(index_keys_that_do_not_fit_cancel)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'indexed','Item':{" ONE_ONE ",'n':{'N':'1'},'e':{'S':''}}}", "{}"},
        {"TransactWriteItems", WRITE(PUT("indexed", ONE_ONE ",'d':{'N':'1'}")),
         CANCELLED("ValidationError") WRONG(
             "One or more parameter values were invalid: Type mismatch for Index Key d Expected: S Actual: "
             "N IndexName: gsi") "]}"},
        {"TransactWriteItems", WRITE(UPDATE("indexed", ONE_ONE, SET("SET d = :v") NUMBER("1"))),
         CANCELLED("ValidationError") WRONG(
             "One or more parameter values were invalid: Type mismatch for Index Key d Expected: S Actual: "
             "N IndexName: gsi") "]}"},
        {"TransactWriteItems", WRITE(UPDATE("indexed", ONE_ONE, SET("SET d = n"))),
         CANCELLED("ValidationError") WRONG(
             "The update expression attempted to update the secondary index key to unsupported type") "]}"},
        {"TransactWriteItems", WRITE(PUT("indexed", ONE_ONE ",'d':{'S':''}")),
         "ValidationException: One or more parameter values are not valid. A value specified for a secondary "
         "index key is not supported. The AttributeValue for a key attribute cannot contain an empty string "
         "value. IndexName: gsi, IndexKey: d"},
        {"TransactWriteItems", WRITE(UPDATE("indexed", ONE_ONE, SET("SET d = e"))),
         "ValidationException: One or more parameter values are not valid. The update expression attempted "
         "to update a secondary index key to a value that is not supported. The AttributeValue for a key "
         "attribute cannot contain an empty string value."},
        {"TransactWriteItems", WRITE(UPDATE("indexed", ONE_ONE, SET("SET d = :v") STRING("x"))), "{}"},
        {"Query",
         "{'TableName':'indexed','IndexName':'gall','KeyConditionExpression':'d = :v'" STRING("x")
         ",'Select':'COUNT'}",
         "{'Count':1,'ScannedCount':1}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define NO_MEMBER(path) "Value null at '" path "' failed to satisfy constraint: Member must not be null"
#define TWICE           "ValidationException: Transaction request cannot include multiple operations on one item"

TEST(what_is_wrong_with_a_transaction_itself_is_refused)
{
    static const struct exchange exchanges[] = {
        {"TransactWriteItems", "{}",
         "ValidationException: 1 validation error detected: " NO_MEMBER("transactItems")},
        {"TransactWriteItems", WRITE(""),
         "ValidationException: 1 validation error detected: Value '[]' at 'transactItems' failed to "
         "satisfy "
         "constraint: Member must have length greater than or equal to 1"},
        /* clang-format off */
        {"TransactWriteItems", WRITE("{'Update':{}},{'ConditionCheck':{}}"),
         "ValidationException: 6 validation errors detected: "
         NO_MEMBER("transactItems.1.member.update.tableName") "; "
         NO_MEMBER("transactItems.1.member.update.key") "; "
         NO_MEMBER("transactItems.1.member.update.updateExpression") "; "
         NO_MEMBER("transactItems.2.member.conditionCheck.tableName") "; "
         NO_MEMBER("transactItems.2.member.conditionCheck.key") "; "
         NO_MEMBER("transactItems.2.member.conditionCheck.conditionExpression")},
        /* clang-format on */
        {"TransactWriteItems", "{'TransactItems':[" PUT("hash", ONE) "],'ClientRequestToken':''}",
         "ValidationException: 1 validation error detected: Value '' at 'clientRequestToken' failed to "
         "satisfy "
         "constraint: Member must have length greater than or equal to 1"},
        {"TransactWriteItems",
         "{'TransactItems':[" PUT("hash",
                                  ONE) "],'ClientRequestToken':'1234567890123456789012345678901234567'}",
         "ValidationException: 1 validation error detected: Value "
         "'1234567890123456789012345678901234567' at "
         "'clientRequestToken' failed to satisfy constraint: Member must have length less than or equal "
         "to "
         "36"},
        {"TransactWriteItems",
         "{'TransactItems':[" PUT("hash", ONE) "],'ReturnConsumedCapacity':'ALL','ClientRequestToken':''}",
         "ValidationException: 2 validation errors detected: Value '' at 'clientRequestToken' failed to satisfy "
         "constraint: Member must have length greater than or equal to 1; Value 'ALL' at 'returnConsumedCapacity' "
         "failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"},
        {"TransactWriteItems", WRITE("{}"),
         "ValidationException: Invalid Request: TransactWriteRequest should contain Delete or Put or "
         "Update "
         "request"},
        {"TransactWriteItems", WRITE("null"),
         "ValidationException: Invalid Request: TransactWriteRequest should contain Delete or Put or "
         "Update "
         "request"},
        {"TransactWriteItems",
         WRITE("{'Put':{'TableName':'hash','Item':{" ONE "}},'Delete':{'TableName':'hash','Key':{" ONE "}}}"),
         "ValidationException: TransactItems can only contain one of Check, Put, Update or Delete"},
        /* action by action, the expressions before the values */
        {"TransactWriteItems", WRITE(PUT_IF("hash", "'a':{'N':'x'}", "'ConditionExpression':'!'") ",{}"),
         "ValidationException: Invalid ConditionExpression: Syntax error; token: \"!\", near: \"!\""},
        {"TransactWriteItems", WRITE(PUT("hash", "'a':{'N':'x'}") ",{}"),
         "ValidationException: The parameter cannot be converted to a numeric value: x"},
        {"TransactWriteItems", WRITE(CHECK_IF("hash", ONE, "''")),
         "ValidationException: Invalid ConditionExpression: The expression can not be empty;"},
        {"TransactWriteItems", WRITE(PUT_IF("hash", ONE, "'ExpressionAttributeValues':{':v':{'S':''}}")),
         "ValidationException: ExpressionAttributeValues can only be specified when using expressions: "
         "ConditionExpression is null"},
        {"TransactWriteItems", WRITE(PUT_IF("hash", ONE, IS_NEW ",'ExpressionAttributeNames':{'#n':'x'}")),
         "ValidationException: Value provided in ExpressionAttributeNames unused in expressions: keys: "
         "{#n}"},
        /* then the tables, and each action against its own */
        {"TransactWriteItems", WRITE(PUT("hash", "'b':{'S':''}") "," PUT("nowhere", ONE)),
         "ResourceNotFoundException: Requested resource not found"},
        {"TransactWriteItems",
         WRITE(PUT("hash", "'b':{'S':''}") "," PUT("hash", ONE) "," DELETE("hash", ONE)), TWICE},
        {"TransactWriteItems",
         WRITE(PUT("hash", ONE) "," CHECK_IF("arn:aws:dynamodb:us-east-1:000000000000:table/hash", ONE,
                                             "'attribute_exists(a)'")),
         TWICE},
        {"TransactWriteItems",
         WRITE(PUT("hash", "'b':{'S':''}") "," PUT_IF("hash", ONE,
                                                      "'ConditionExpression':'attribute_exists(a.b)'")),
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup "
         "'.' "
         "are "
         "not allowed: Key: a"},
        {"Scan", "{'TableName':'hash','Select':'COUNT'}", "{'Count':0,'ScannedCount':0}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

/* The service's figures: the table's part counts twice, an index's once; a check costs what it read. */
TEST(transactions_tell_their_capacity)
{
    static const struct exchange exchanges[] = {
        {"TransactWriteItems",
         "{'TransactItems':[" PUT("indexed", ONE_ONE ",'c':{'S':'c'},'d':{'S':'d'}") "," PUT(
             "hash", ONE) "],'ReturnConsumedCapacity':'INDEXES','ReturnItemCollectionMetrics':'SIZE'}",
         "{'ConsumedCapacity':[{'TableName':'indexed','CapacityUnits':5.0,'WriteCapacityUnits':5.0,"
         "'Table':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0},"
         "'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0,'WriteCapacityUnits':1.0}},"
         "'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':1.0,'WriteCapacityUnits':1.0},"
         "'gall':{'CapacityUnits':1.0,'WriteCapacityUnits':1.0}}},"
         "{'TableName':'hash','CapacityUnits':2.0,'WriteCapacityUnits':2.0,"
         "'Table':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0}}],"
         "'ItemCollectionMetrics':{'indexed':[{'ItemCollectionKey':{" ONE
         "},'SizeEstimateRangeGB':[0.0,1.0]}]}}"},
        {"TransactWriteItems",
         "{'TransactItems':[" CHECK_IF("indexed", ONE_ONE, "'attribute_exists(a)'") "," DELETE(
             "hash", TWO) "],'ReturnConsumedCapacity':'INDEXES'}",
         "{'ConsumedCapacity':[{'TableName':'indexed','CapacityUnits':2.0,'WriteCapacityUnits':2.0,"
         "'Table':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0}},"
         "{'TableName':'hash','CapacityUnits':2.0,'WriteCapacityUnits':2.0,"
         "'Table':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0}}]}"},
        /* a moved index key: the entry goes and comes */
        {"TransactWriteItems",
         "{'TransactItems':[" UPDATE("indexed", ONE_ONE,
                                     SET("SET d = :v") STRING("x")) "],'ReturnConsumedCapacity':'INDEXES'}",
         "{'ConsumedCapacity':[{'TableName':'indexed','CapacityUnits':6.0,'WriteCapacityUnits':6.0,"
         "'Table':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0},"
         "'GlobalSecondaryIndexes':{'gsi':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0},"
         "'gall':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0}}}]}"},
        {"TransactWriteItems",
         "{'TransactItems':[" PUT("hash", ONE) "," PUT(
             "hash", TWO) "],"
                          "'ReturnConsumedCapacity':'TOTAL','ReturnItemCollectionMetrics':'SIZE'}",
         "{'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':4.0,'WriteCapacityUnits':4.0}]}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

/* ---- limits ---- */

static void put_actions(struct buf *out, unsigned count, size_t bytes)
{
    buf_text(out, "{\"TransactItems\":[");
    for (unsigned i = 0; i < count; i++) {
        buf_printf(out, "%s{\"Put\":{\"TableName\":\"hash\",\"Item\":{\"a\":{\"S\":\"%02u\"}", i ? "," : "",
                   i);
        if (bytes) {
            buf_text(out, ",\"v\":{\"S\":\"");
            for (size_t j = 0; j < bytes; j++) buf_byte(out, 'x');
            buf_text(out, "\"}");
        }
        buf_text(out, "}}}");
    }
}

static void ask_actions(struct world *world, struct buf *body)
{
    buf_text(body, "]}");
    buf_byte(body, 0);
    ask(world, "TransactWriteItems", body->data);
    body->len = 0;
}

TEST(a_transaction_has_at_most_a_hundred_actions)
{
    struct world world;
    struct buf body = {0};
    items_open(&world);
    put_actions(&body, 100, 0);
    ask_actions(&world, &body);
    CHECK_TEXT(buf_view(&world.reply), "{}");
    put_actions(&body, 101, 0);
    ask_actions(&world, &body);
    CHECK_CONTAINS(buf_view(&world.reply),
                   "1 validation error detected: Value '[TransactWriteItem(conditionCheck=null, "
                   "put=Put(tableName=hash, item={a={\\\"S\\\":\\\"00\\\"}}, ");
    CHECK_CONTAINS(buf_view(&world.reply),
                   "]' at 'transactItems' failed to satisfy constraint: Member must have length "
                   "less than or equal to 100\"}");
    buf_free(&body);
    world_close(&world);
}

/* Eleven items of 381300 bytes leave four bytes of the four megabytes; a deletion counts its key. */
TEST(a_transaction_has_at_most_four_megabytes)
{
    struct world world;
    struct buf body = {0};
    items_open(&world);
    put_actions(&body, 11, 381296);
    buf_text(&body, ",{\"Delete\":{\"TableName\":\"hash\",\"Key\":{\"a\":{\"S\":\"123\"}}}}");
    ask_actions(&world, &body);
    CHECK_TEXT(buf_view(&world.reply), "{}");
    put_actions(&body, 11, 381296);
    buf_text(&body, ",{\"Delete\":{\"TableName\":\"hash\",\"Key\":{\"a\":{\"S\":\"1234\"}}}}");
    ask_actions(&world, &body);
    CHECK_TEXT(member_text(&world, buf_view(&world.reply), "message"),
               "Transaction payload size cannot exceed 4MB. Payload Size: 4194305");
    buf_free(&body);
    world_close(&world);
}

/* An item that is too large refuses the call when it is put, and cancels when an update makes it. */
TEST(items_of_a_transaction_have_their_limit)
{
    struct world world;
    struct buf body = {0};
    items_open(&world);
    put_actions(&body, 1, LIMIT_ITEM_BYTES - 3);
    ask_actions(&world, &body);
    CHECK_TEXT(member_text(&world, buf_view(&world.reply), "message"),
               "Item size has exceeded the maximum allowed size");
    put_actions(&body, 1, LIMIT_ITEM_BYTES - 4 - 4); /* with "w" of three bytes it is full */
    ask_actions(&world, &body);
    CHECK_TEXT(buf_view(&world.reply), "{}");
    static const struct exchange fits = {
        "TransactWriteItems", WRITE(UPDATE("hash", "'a':{'S':'00'}", SET("SET w = :v") STRING("123"))), "{}"};
    static const struct exchange grows = {
        "TransactWriteItems", WRITE(UPDATE("hash", "'a':{'S':'00'}", SET("SET w = :v") STRING("1234"))),
        CANCELLED("ValidationError") WRONG("Item size to update has exceeded the maximum allowed size") "]}"};
    check_exchange(&world, &fits);
    check_exchange(&world, &grows);
    buf_free(&body);
    world_close(&world);
}
