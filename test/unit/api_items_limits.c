/* The limits of items, keys, batches and pages, to the byte; and what happens when the world below fails. */
#include "unit/api_items.h"

/* Text with each @ replaced by `count` times the letter x, in memory of the test's. */
static char *filled(const char *text, size_t count)
{
    struct buf out = {0};
    for (const char *c = text; *c; c++) {
        if (*c != '@') {
            buf_byte(&out, (unsigned char)(*c == '\'' ? '"' : *c));
            continue;
        }
        buf_reserve(&out, count);
        memset(out.data + out.len, 'x', count);
        out.len += count;
    }
    buf_byte(&out, 0);
    return out.data;
}

static void check_filled(struct world *world, const char *operation, const char *request, size_t count,
                         const char *expected)
{
    char *body = filled(request, count);
    struct slice reply = ask(world, operation, body);
    free(body);
    if (world->error)
        CHECK_TEXT(member_text(world, reply, "message"), expected);
    else
        CHECK_TEXT(slice_of("fine"), expected);
}

#define TOO_LARGE        "Item size has exceeded the maximum allowed size"
#define TOO_LARGE_UPDATE "Item size to update has exceeded the maximum allowed size"
#define LONG_HASH                                                                                            \
    "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 " \
    "bytes"
#define LONG_INDEX_KEY(name, index)                                                                          \
    "One or more parameter values were invalid: Size limit exceeded for Index Key " name                     \
    " Actual Size: 1025 bytes Max Size: 1024 bytes IndexName: " index
#define LONG_RANGE                                                                                           \
    "One or more parameter values were invalid: Aggregated size of all range keys has exceeded the size "    \
    "limit of 1024 bytes"

TEST(an_item_has_at_most_400_kilobytes)
{
    struct world world;
    items_open(&world);
    const char *put = "{'TableName':'hash','Item':{'a':{'S':'1'},'b':{'S':'@'}}}";
    check_filled(&world, "PutItem", put, 409600 - 3, "fine");
    check_filled(&world, "PutItem", put, 409600 - 2, TOO_LARGE);
    put = "{'TableName':'hash','Item':{'a':{'S':'1'},'n':{'N':'-12.5'},'l':{'L':[{'M':{'k':{'BOOL':true}}},"
          "{'NULL':true}]},'b':{'B':''},'s':{'S':'@'}}}";
    /* a: 1+1, n: 1+4, l: 1+3 and for its elements 1+(3+1+1+1) and 1+1, b: 1, s: 1 */
    check_filled(&world, "PutItem", put, 409600 - 22, "fine");
    check_filled(&world, "PutItem", put, 409600 - 21, TOO_LARGE);
    put = "{'RequestItems':{'hash':[{'PutRequest':{'Item':{'a':{'S':'2'},'b':{'S':'@'}}}}]}}";
    check_filled(&world, "BatchWriteItem", put, 409600 - 3, "fine");
    check_filled(&world, "BatchWriteItem", put, 409600 - 2, TOO_LARGE);
    world_close(&world);
}

/* UpdateItem counts 3, and 19 for each action that writes, in place of the key: with a key of 2 bytes the
 * largest item is 20 bytes smaller than PutItem's. */
TEST(an_update_reaches_its_own_limit)
{
    struct world world;
    items_open(&world);
    const char *update = "{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'SET b = :b',"
                         "'ExpressionAttributeValues':{':b':{'S':'@'}}}";
    check_filled(&world, "UpdateItem", update, 409600 - 3 - 19 - 1, "fine");
    check_filled(&world, "UpdateItem", update, 409600 - 3 - 19, TOO_LARGE_UPDATE);
    const char *legacy = "{'TableName':'hash','Key':{'a':{'S':'2'}},"
                         "'AttributeUpdates':{'b':{'Action':'PUT','Value':{'S':'@'}}}}";
    check_filled(&world, "UpdateItem", legacy, 409600 - 3 - 19 - 1, "fine");
    check_filled(&world, "UpdateItem", legacy, 409600 - 3 - 19, TOO_LARGE_UPDATE);
    world_close(&world);
}

TEST(keys_have_their_lengths)
{
    struct world world;
    items_open(&world);
    check_filled(&world, "PutItem", "{'TableName':'hash','Item':{'a':{'S':'@'}}}", 2048, "fine");
    check_filled(&world, "PutItem", "{'TableName':'hash','Item':{'a':{'S':'@'}}}", 2049, LONG_HASH);
    check_filled(&world, "GetItem", "{'TableName':'hash','Key':{'a':{'S':'@'}}}", 2048, "fine");
    check_filled(&world, "GetItem", "{'TableName':'hash','Key':{'a':{'S':'@'}}}", 2049, LONG_HASH);
    const char *put = "{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'@'}}}";
    check_filled(&world, "PutItem", put, 1024, "fine");
    check_filled(&world, "PutItem", put, 1025, LONG_RANGE);
    const char *query = "{'TableName':'indexed','KeyConditionExpression':'a = :a and b > :b',"
                        "'ExpressionAttributeValues':{':a':{'S':'1'},':b':{'S':'@'}}}";
    check_filled(&world, "Query", query, 1024, "fine");
    check_filled(&world, "Query", query, 1025, LONG_RANGE);
    put = "{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'@'}}}";
    check_filled(&world, "PutItem", put, 1024, "fine");
    check_filled(&world, "PutItem", put, 1025, LONG_INDEX_KEY("c", "lsi"));
    put = "{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'1'},'d':{'S':'@'}}}";
    check_filled(&world, "PutItem", put, 1025, LONG_INDEX_KEY("d", "gsi"));
    world_close(&world);
}

TEST(names_and_placeholders_have_their_lengths)
{
    struct world world;
    items_open(&world);
    check_filled(&world, "PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'@':{'S':''}}}", 65535,
                 "fine");
    check_filled(&world, "PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'@':{'S':''}}}", 65536,
                 "Attribute name is too large, must be less than 65536 bytes");
    const char *names = "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'#@',"
                        "'ExpressionAttributeNames':{'#@':'b'}}";
    check_filled(&world, "GetItem", names, 254, "fine");
    check_filled(&world, "GetItem", names, 255,
                 "ExpressionAttributeNames contains invalid key: The expression attribute map contains a key "
                 "that is too long; size of key: 256");
    const char *values = "{'TableName':'hash','Item':{'a':{'S':'1'}},'ConditionExpression':'a = :@',"
                         "'ExpressionAttributeValues':{':@':{'S':'1'}}}";
    check_filled(&world, "PutItem", values, 254, "fine");
    check_filled(
        &world, "PutItem", values, 255,
        "ExpressionAttributeValues contains invalid key: The expression attribute map contains a key "
        "that is too long;");
    names = "{'TableName':'hash','Key':{'a':{'S':'1'}},'ProjectionExpression':'#a',"
            "'ExpressionAttributeNames':{'#a':'@'}}";
    check_filled(&world, "GetItem", names, 65535, "fine");
    check_filled(&world, "GetItem", names, 65536,
                 "ExpressionAttributeNames contains invalid value: Attribute name is too large, must be less "
                 "than 65536 bytes for key #a");
    values = "{'TableName':'hash','Key':{'a':{'S':'1'}},'ConditionExpression':'a <> :v',"
             "'ExpressionAttributeValues':{':v':{'S':'@'}}}";
    check_filled(&world, "DeleteItem", values, 2 * 1024 * 1024 - 2, "fine");
    check_filled(&world, "DeleteItem", values, 2 * 1024 * 1024 - 1,
                 "ExpressionAttributeValues exceeds max size");
    world_close(&world);
}

/* ---- batches ---- */

/* Keys of a BatchGetItem on one table, numbered from first. */
static void put_keys(struct buf *out, const char *table, unsigned first, unsigned count, const char *range)
{
    buf_printf(out, "\"%s\":{\"Keys\":[", table);
    for (unsigned i = 0; i < count; i++)
        buf_printf(out, "%s{\"a\":{\"S\":\"%u\"}%s}", i ? "," : "", first + i, range);
    buf_text(out, "]}");
}

static struct slice ask_buf(struct world *world, const char *operation, struct buf *body)
{
    buf_byte(body, 0);
    struct slice reply = ask(world, operation, body->data);
    body->len = 0;
    return reply;
}

TEST(a_batch_gets_at_most_a_hundred)
{
    struct world world;
    struct buf body = {0};
    items_open(&world);
    buf_text(&body, "{\"RequestItems\":{");
    put_keys(&body, "hash", 0, 100, "");
    buf_text(&body, "}}");
    CHECK_TEXT(ask_buf(&world, "BatchGetItem", &body),
               "{\"Responses\":{\"hash\":[]},\"UnprocessedKeys\":{}}");
    buf_text(&body, "{\"RequestItems\":{");
    put_keys(&body, "hash", 0, 101, "");
    buf_text(&body, "}}");
    CHECK_TEXT(member_text(&world, ask_buf(&world, "BatchGetItem", &body), "message"),
               "1 validation error detected: Value at 'RequestItems.hash.member.Keys' failed to satisfy "
               "constraint: Member must have length less than or equal to 100");
    buf_text(&body, "{\"RequestItems\":{");
    put_keys(&body, "hash", 0, 60, "");
    buf_byte(&body, ',');
    put_keys(&body, "pair", 0, 41, ",\"b\":{\"N\":\"1\"}");
    buf_text(&body, "}}");
    CHECK_TEXT(member_text(&world, ask_buf(&world, "BatchGetItem", &body), "message"),
               "Too many items requested for the BatchGetItem call");
    buf_free(&body);
    world_close(&world);
}

static void put_writes(struct buf *out, const char *table, unsigned count, const char *range)
{
    buf_printf(out, "\"%s\":[", table);
    for (unsigned i = 0; i < count; i++)
        buf_printf(out, "%s{\"PutRequest\":{\"Item\":{\"a\":{\"S\":\"%u\"}%s}}}", i ? "," : "", i, range);
    buf_byte(out, ']');
}

TEST(a_batch_writes_at_most_twenty_five)
{
    struct world world;
    struct buf body = {0};
    items_open(&world);
    buf_text(&body, "{\"RequestItems\":{");
    put_writes(&body, "hash", 25, "");
    buf_text(&body, "}}");
    CHECK_TEXT(ask_buf(&world, "BatchWriteItem", &body), "{\"UnprocessedItems\":{}}");
    buf_text(&body, "{\"RequestItems\":{");
    put_writes(&body, "hash", 26, "");
    buf_text(&body, "}}");
    struct slice message = member_text(&world, ask_buf(&world, "BatchWriteItem", &body), "message");
    CHECK(slice_starts(message, SLICE("1 validation error detected: Value '{hash=[WriteRequest(")));
    CHECK_CONTAINS(message,
                   "at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
                   "[Member must have length less than or equal to 25, Member must have length "
                   "greater than or equal to 1]");
    buf_text(&body, "{\"RequestItems\":{");
    put_writes(&body, "hash", 13, "");
    buf_byte(&body, ',');
    put_writes(&body, "pair", 13, ",\"b\":{\"N\":\"1\"}");
    buf_text(&body, "}}");
    CHECK_TEXT(member_text(&world, ask_buf(&world, "BatchWriteItem", &body), "message"),
               "Too many items requested for the BatchWriteItem call");
    CHECK_TEXT(ask_quoted(&world, "Scan", "{'TableName':'hash','Select':'COUNT'}"),
               "{\"Count\":25,\"ScannedCount\":25}");
    buf_free(&body);
    world_close(&world);
}

static void put_large_items(struct world *world, unsigned count, size_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        char request[100];
        snprintf(request, sizeof request,
                 "{'TableName':'pair','Item':{'a':{'S':'1'},'b':{'N':'%u'},'v':{'S':'@'}}}", i);
        check_filled(world, "PutItem", request, bytes, "fine");
    }
}

TEST(a_batch_gets_at_most_16_megabytes)
{
    struct world world;
    struct buf body = {0};
    items_open(&world);
    put_large_items(&world, 43, 399999);
    buf_text(&body, "{\"RequestItems\":{\"pair\":{\"Keys\":[");
    for (unsigned i = 0; i < 43; i++)
        buf_printf(&body, "%s{\"a\":{\"S\":\"1\"},\"b\":{\"N\":\"%u\"}}", i ? "," : "", i);
    buf_text(
        &body,
        "],\"ConsistentRead\":true,\"ProjectionExpression\":\"#b\","
        "\"ExpressionAttributeNames\":{\"#b\":\"b\"}},"
        "\"hash\":{\"Keys\":[{\"a\":{\"S\":\"1\"}}],\"AttributesToGet\":[\"a\",\"v\"]}}}");
    /* Mixed on purpose: refused. Then with one form only. */
    char *mixed = must_alloc(body.len + 1);
    memcpy(mixed, body.data, body.len);
    mixed[body.len] = 0;
    CHECK_CONTAINS(ask(&world, "BatchGetItem", mixed),
                   "Can not use both expression and non-expression parameters");
    free(mixed);
    body.len -= strlen(",\"AttributesToGet\":[\"a\",\"v\"]}}}");
    buf_text(&body, "}}}");
    struct slice reply = ask_buf(&world, "BatchGetItem", &body);
    CHECK_CONTAINS(reply,
                   "{\"b\":{\"N\":\"40\"}}],\"hash\":[]},"
                   "\"UnprocessedKeys\":{\"pair\":{\"Keys\":[{\"a\":{\"S\":\"1\"},\"b\":{\"N\":\"41\"}},"
                   "{\"a\":{\"S\":\"1\"},\"b\":{\"N\":\"42\"}}],"
                   "\"ConsistentRead\":true,\"ProjectionExpression\":\"#b\","
                   "\"ExpressionAttributeNames\":{\"#b\":\"b\"}},"
                   "\"hash\":{\"Keys\":[{\"a\":{\"S\":\"1\"}}]}}}");
    buf_free(&body);
    world_close(&world);
}

/* ---- pages ---- */

#define QUERY_ALL                                                                                            \
    "{'TableName':'pair','KeyConditionExpression':'a = :a','ExpressionAttributeValues':{':a':{'S':'1'}},"    \
    "'ProjectionExpression':'b','ReturnConsumedCapacity':'TOTAL'"

TEST(a_page_ends_behind_a_megabyte)
{
    struct world world;
    items_open(&world);
    put_large_items(&world, 4, 349525 - 1 - 1 - 1 - 2 - 1); /* three times 349525 is one byte short of 1 MB */
    struct slice reply = ask_quoted(&world, "Query", QUERY_ALL "}");
    CHECK_TEXT(reply, "{\"Items\":[{\"b\":{\"N\":\"0\"}},{\"b\":{\"N\":\"1\"}},{\"b\":{\"N\":\"2\"}},"
                      "{\"b\":{\"N\":\"3\"}}],\"Count\":4,\"ScannedCount\":4,"
                      "\"LastEvaluatedKey\":{\"a\":{\"S\":\"1\"},\"b\":{\"N\":\"3\"}},"
                      "\"ConsumedCapacity\":{\"TableName\":\"pair\",\"CapacityUnits\":171.0}}");
    put_large_items(&world, 3, 349525 - 1 - 1 - 1 - 2); /* one more for each: three are enough */
    reply = ask_quoted(&world, "Query", QUERY_ALL "}");
    CHECK_CONTAINS(
        reply,
        "\"Count\":3,\"ScannedCount\":3,\"LastEvaluatedKey\":{\"a\":{\"S\":\"1\"},\"b\":{\"N\":\"2\"}}");
    reply = ask_quoted(&world, "Query", QUERY_ALL ",'ExclusiveStartKey':{'a':{'S':'1'},'b':{'N':'2'}}}");
    CHECK_TEXT(reply, "{\"Items\":[{\"b\":{\"N\":\"3\"}}],\"Count\":1,\"ScannedCount\":1,"
                      "\"ConsumedCapacity\":{\"TableName\":\"pair\",\"CapacityUnits\":43.0}}");
    world_close(&world);
}

/* Pages of an index are cut from the whole table, most of which must be dropped on the way. */
TEST(a_page_of_an_index_ends_behind_a_megabyte)
{
    struct world world;
    items_open(&world);
    for (unsigned i = 0; i < 30; i++) {
        char request[160];
        snprintf(
            request, sizeof request,
            "{'TableName':'indexed','Item':{'a':{'S':'%u'},'b':{'S':'1'},'c':{'S':'c'},'d':{'S':'%02u'},"
            "'e':{'S':'@'}}}",
            i, 29 - i);
        check_filled(&world, "PutItem", request, 399990, "fine");
    }
    const char *query = "{'TableName':'indexed','IndexName':'gsi','KeyConditionExpression':'c = :c',"
                        "'ExpressionAttributeValues':{':c':{'S':'c'}},'ProjectionExpression':'d'%s}";
    char body[500];
    snprintf(body, sizeof body, query, "");
    CHECK_TEXT(
        ask_quoted(&world, "Query", body),
        "{\"Items\":[{\"d\":{\"S\":\"00\"}},{\"d\":{\"S\":\"01\"}},{\"d\":{\"S\":\"02\"}}],\"Count\":3,"
        "\"ScannedCount\":3,\"LastEvaluatedKey\":{\"a\":{\"S\":\"27\"},\"b\":{\"S\":\"1\"},"
        "\"c\":{\"S\":\"c\"},\"d\":{\"S\":\"02\"}}}");
    snprintf(
        body, sizeof body, query,
        ",'ScanIndexForward':false,'ExclusiveStartKey':{'a':{'S':'3'},'b':{'S':'1'},'c':{'S':'c'},"
        "'d':{'S':'26'}},'Limit':2");
    CHECK_TEXT(
        ask_quoted(&world, "Query", body),
        "{\"Items\":[{\"d\":{\"S\":\"25\"}},{\"d\":{\"S\":\"24\"}}],\"Count\":2,\"ScannedCount\":2,"
        "\"LastEvaluatedKey\":{\"a\":{\"S\":\"5\"},\"b\":{\"S\":\"1\"},\"c\":{\"S\":\"c\"},\"d\":{\"S\":\"24\"}}}");
    world_close(&world);
}

/* A local index's page counts the items that are read beside its entries, or a reply could be a whole collection. */
TEST(a_page_that_fetches_items_ends_behind_a_megabyte)
{
    struct world world;
    items_open(&world);
    for (unsigned i = 0; i < 5; i++) {
        char request[160];
        snprintf(request, sizeof request,
                 "{'TableName':'indexed','Item':{'a':{'S':'p'},'b':{'S':'%u'},'c':{'S':'c'},'e':{'S':'@'}}}",
                 i);
        check_filled(&world, "PutItem", request, 350000, "fine");
    }
    const char *query = "{'TableName':'indexed','IndexName':'lsi','KeyConditionExpression':'a = :a',"
                        "'FilterExpression':'b > :b','ProjectionExpression':'b, f',"
                        "'ExpressionAttributeValues':{':a':{'S':'p'},':b':{'S':'1'}}%s}";
    char body[500];
    snprintf(body, sizeof body, query, "");
    CHECK_TEXT(
        ask_quoted(&world, "Query", body),
        "{\"Items\":[{\"b\":{\"S\":\"2\"}}],\"Count\":1,\"ScannedCount\":3,\"LastEvaluatedKey\":{\"a\":{\"S\":\"p\"},"
        "\"b\":{\"S\":\"2\"},\"c\":{\"S\":\"c\"}}}");
    snprintf(body, sizeof body, query, ",'ExclusiveStartKey':{'a':{'S':'p'},'b':{'S':'2'},'c':{'S':'c'}}");
    CHECK_TEXT(ask_quoted(&world, "Query", body),
               "{\"Items\":[{\"b\":{\"S\":\"3\"}},{\"b\":{\"S\":\"4\"}}],\"Count\":2,\"ScannedCount\":2}");
    world_close(&world);
}

TEST(segments_share_a_table_among_them)
{
    struct world world;
    items_open(&world);
    unsigned total = 0;
    for (unsigned i = 0; i < 200; i++) {
        char request[100];
        snprintf(request, sizeof request, "{'TableName':'hash','Item':{'a':{'S':'%u'}}}", i);
        check_filled(&world, "PutItem", request, 0, "fine");
    }
    for (unsigned segment = 0; segment < 7; segment++) {
        char request[100];
        snprintf(request, sizeof request,
                 "{'TableName':'hash','Select':'COUNT','Segment':%u,'TotalSegments':7}", segment);
        struct slice reply = ask_quoted(&world, "Scan", request);
        unsigned count = 0;
        CHECK(sscanf(reply.data, "{\"Count\":%u,", &count) == 1 && count > 5);
        total += count;
    }
    CHECK_INT(total, 200);
    /* A start key continues in its own segment only. */
    struct slice reply = ask_quoted(&world, "Scan",
                                    "{'TableName':'hash','Segment':0,'TotalSegments':2,'Limit':1}");
    struct slice rest = reply;
    while (rest.len && !slice_starts(rest, SLICE("\"LastEvaluatedKey\":"))) rest = slice_from(rest, 1);
    CHECK(rest.len > 20);
    char next[300];
    snprintf(next, sizeof next,
             "{\"TableName\":\"hash\",\"Segment\":1,\"TotalSegments\":2,\"ExclusiveStartKey\":%.*s",
             (int)(rest.len - 19), rest.data + 19);
    CHECK_TEXT(
        member_text(&world, ask(&world, "Scan", next), "message"),
        "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey "
        "with correct Segment. TotalSegments: 2 Segment: 1");
    world_close(&world);
}

/* ---- between validation and commit ---- */

static void begin_call(struct world *world, struct api_call *call, struct arena *arena, struct buf *reply,
                       const char *operation, const char *body)
{
    *call = (struct api_call){.api = world->api,
                              .arena = arena,
                              .reply = reply,
                              .operation = api_operation_find(slice_of(operation)),
                              .body = slice_of(body)};
    api_begin(call);
    CHECK(call->is_write);
}

TEST(a_table_may_go_away_before_the_commit)
{
    struct world world;
    struct arena arenas[2] = {{0}};
    struct buf replies[2] = {{0}};
    struct api_call calls[2];
    items_open(&world);
    char *put = quoted("{'TableName':'hash','Item':{'a':{'S':'1'}}}");
    char *batch = quoted("{'RequestItems':{'pair':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'N':'1'}}}}],"
                         "'hash':[{'PutRequest':{'Item':{'a':{'S':'1'}}}}]}}");
    begin_call(&world, &calls[0], &arenas[0], &replies[0], "PutItem", put);
    begin_call(&world, &calls[1], &arenas[1], &replies[1], "BatchWriteItem", batch);
    ask_quoted(&world, "DeleteTable", "{'TableName':'hash'}");
    CHECK_INT(world.status, 200);
    for (int i = 0; i < 2; i++) {
        engine_commit(world.engine, &calls[i].commit);
        api_finish(&calls[i]);
        CHECK_TEXT(slice_of(calls[i].error), "ResourceNotFoundException");
        arena_free(&arenas[i]);
        buf_free(&replies[i]);
    }
    CHECK_TEXT(ask_quoted(&world, "Scan", "{'TableName':'pair','Select':'COUNT'}"),
               "{\"Count\":0,\"ScannedCount\":0}");
    free(put);
    free(batch);
    world_close(&world);
}
