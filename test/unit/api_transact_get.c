/* TransactGetItems. */
#include "unit/api_items.h"

#define READ(items)                "{'TransactItems':[" items "]}"
#define GET(table, key)            "{'Get':{'TableName':'" table "','Key':{" key "}}}"
#define GET_SOME(table, key, rest) "{'Get':{'TableName':'" table "','Key':{" key "}," rest "}}"
#define ONE                        "'a':{'S':'1'}"
#define TWO                        "'a':{'S':'2'}"

TEST(a_transaction_reads_items_in_order)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{" ONE ",'m':{'M':{'x':{'S':'y'}}},'n':{'N':'1'}}}", "{}"},
        {"PutItem", "{'TableName':'pair','Item':{" ONE ",'b':{'N':'1'}}}", "{}"},
        {"TransactGetItems",
         READ(GET("pair", ONE ",'b':{'N':'1'}") "," GET("hash", TWO) "," GET("hash", ONE)),
         "{'Responses':[{'Item':{" ONE ",'b':{'N':'1'}}},{},{'Item':{" ONE
         ",'m':{'M':{'x':{'S':'y'}}},'n':{'N':'1'}}}]}"},
        {"TransactGetItems",
         READ(
             GET_SOME("hash", ONE, "'ProjectionExpression':'#m.x, n','ExpressionAttributeNames':{'#m':'m'}")),
         "{'Responses':[{'Item':{'m':{'M':{'x':{'S':'y'}}},'n':{'N':'1'}}}]}"},
        /* what the projection leaves nothing of is left out like what is missing */
        {"TransactGetItems",
         READ(GET_SOME("hash", ONE, "'ProjectionExpression':'z'")
              "," GET_SOME("hash", TWO, "'ProjectionExpression':'z'")),
         "{'Responses':[{},{}]}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

/* Each item costs two units for four kilobytes, missing ones too; a projection does not make it cheaper. */
TEST(a_transaction_tells_what_reading_cost)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{" ONE ",'n':{'N':'1'}}}", "{}"},
        {"TransactGetItems",
         "{'TransactItems':[" GET_SOME("hash", ONE, "'ProjectionExpression':'n'") "," GET(
             "hash", TWO) "," GET("pair", ONE ",'b':{'N':'1'}") "],'ReturnConsumedCapacity':'TOTAL'}",
         "{'Responses':[{'Item':{'n':{'N':'1'}}},{},{}],"
         "'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':4.0,'ReadCapacityUnits':4.0},"
         "{'TableName':'pair','CapacityUnits':2.0,'ReadCapacityUnits':2.0}]}"},
        {"TransactGetItems", "{'TransactItems':[" GET("hash", ONE) "],'ReturnConsumedCapacity':'INDEXES'}",
         "{'Responses':[{'Item':{" ONE ",'n':{'N':'1'}}}],'ConsumedCapacity':[{'TableName':'hash',"
         "'CapacityUnits':2.0,'ReadCapacityUnits':2.0,'Table':{'CapacityUnits':2.0,'ReadCapacityUnits':2.0}}]}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define WRONG(message) "{'Code':'ValidationError','Message':'" message "'}"
#define MISMATCH       WRONG("The provided key element does not match the schema")
#define NO_MEMBER(path)                                                                                      \
    "ValidationException: 1 validation error detected: Value null at '" path "' failed to satisfy "          \
    "constraint: Member must not be null"

TEST(reading_transactions_are_refused_or_cancelled)
{
    static const struct exchange exchanges[] = {
        {"TransactGetItems", "{}", NO_MEMBER("transactItems")},
        {"TransactGetItems", READ(""),
         "ValidationException: 1 validation error detected: Value '[]' at 'transactItems' failed to satisfy "
         "constraint: Member must have length greater than or equal to 1"},
        {"TransactGetItems", READ("{}"), NO_MEMBER("transactItems.1.member.get")},
        {"TransactGetItems", READ(GET("hash", ONE) ",null"), NO_MEMBER("transactItems.2.member")},
        {"TransactGetItems", READ(GET_SOME("hash", "'a':{'N':'x'}", "'ProjectionExpression':'!'")),
         "ValidationException: Invalid ProjectionExpression: Syntax error; token: \"!\", near: \"!\""},
        {"TransactGetItems", READ(GET_SOME("hash", ONE, "'ExpressionAttributeNames':{'#a':'b'}")),
         "ValidationException: ExpressionAttributeNames can only be specified when using expressions"},
        {"TransactGetItems", READ(GET("hash", "'b':{'S':''}") "," GET("nowhere", ONE)),
         "ResourceNotFoundException: Requested resource not found"},
        {"TransactGetItems", READ(GET("hash", "'b':{'S':''}") "," GET("hash", ONE) "," GET("hash", ONE)),
         "ValidationException: Transaction request cannot include multiple operations on one item"},
        {"TransactGetItems", READ(GET_SOME("hash", ONE, "'ProjectionExpression':'a.b'")),
         "ValidationException: Key attributes must be scalars; list random access '[]' and map lookup '.' "
         "are "
         "not allowed: Key: a"},
        /* here empty keys cancel like any other that does not fit */
        {"TransactGetItems",
         READ(GET("hash", ONE) "," GET("hash", "") "," GET("hash", "'a':{'N':'1'}")
              "," GET("hash", "'a':{'S':''}")),
         "{'__type':'com.amazonaws.dynamodb.v20120810#TransactionCanceledException','Message':'Transaction "
         "cancelled, please refer cancellation reasons for specific reasons [None, ValidationError, "
         "ValidationError, ValidationError]','CancellationReasons':[{'Code':'None'}," MISMATCH "," MISMATCH
         "," WRONG(
             "One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
             "contain an empty string value. Key: a") "]}"},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

/* ---- limits ---- */

static void put_item(struct world *world, unsigned number, size_t bytes)
{
    struct buf body = {0};
    buf_printf(&body, "{\"TableName\":\"hash\",\"Item\":{\"a\":{\"S\":\"%02u\"},\"v\":{\"S\":\"", number);
    for (size_t i = 0; i < bytes; i++) buf_byte(&body, 'x');
    buf_text(&body, "\"}}}");
    buf_byte(&body, 0);
    CHECK_ASK(world, "PutItem", body.data, "{}");
    buf_free(&body);
}

static struct slice get_many(struct world *world, unsigned count, const char *rest)
{
    struct buf body = {0};
    buf_text(&body, "{\"TransactItems\":[");
    for (unsigned i = 0; i < count; i++)
        buf_printf(&body, "%s{\"Get\":{\"TableName\":\"hash\",\"Key\":{\"a\":{\"S\":\"%02u\"}}%s}}",
                   i ? "," : "", i, rest);
    buf_text(&body, "]}");
    buf_byte(&body, 0);
    struct slice reply = ask(world, "TransactGetItems", body.data);
    buf_free(&body);
    return reply;
}

TEST(a_transaction_reads_at_most_a_hundred_items)
{
    struct world world;
    items_open(&world);
    get_many(&world, 100, "");
    CHECK_INT(world.status, 200);
    CHECK_CONTAINS(get_many(&world, 101, ""),
                   "]' at 'transactItems' failed to satisfy constraint: Member must have length less than or "
                   "equal to 100\"}");
    world_close(&world);
}

/* Eleven responses of 381300 bytes, of which 4 are not the item's, leave four bytes of the four megabytes. */
TEST(a_transaction_reads_at_most_four_megabytes)
{
    struct world world;
    items_open(&world);
    for (unsigned i = 0; i < 11; i++) put_item(&world, i, 381292 + (i == 10 ? 4 : 0));
    get_many(&world, 11, "");
    CHECK_INT(world.status, 200);
    put_item(&world, 0, 381293);
    CHECK_TEXT(member_text(&world, get_many(&world, 11, ""), "message"),
               "Payload in response is too large.4194305");
    get_many(&world, 11, ",\"ProjectionExpression\":\"a\"");
    CHECK_INT(world.status, 200);
    world_close(&world);
}
