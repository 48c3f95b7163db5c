/* Secondary indexes: keys of several attributes, item collections, indexes made while a table is used. */
#include "unit/api_items.h"

#define INVALID "ValidationException: "
#define IN_USE  "ResourceInUseException: Attempt to change a resource which is still in use: "

static void run(struct world *world, const struct exchange *exchanges, size_t count)
{
    for (size_t i = 0; i < count; i++) check_exchange(world, &exchanges[i]);
}

#define RUN(world, exchanges) run(world, exchanges, sizeof(exchanges) / sizeof *(exchanges))

/* ---- keys of several attributes ---- */

/* "deep" has two hash and three range attributes, "wide" one and two, "pairs" two hash attributes only. */
static const char *const games =
    "{'TableName':'games','BillingMode':'PAY_PER_REQUEST',"
    "'AttributeDefinitions':[{'AttributeName':'id','AttributeType':'S'},"
    "{'AttributeName':'cup','AttributeType':'S'},"
    "{'AttributeName':'year','AttributeType':'N'},{'AttributeName':'round','AttributeType':'S'},"
    "{'AttributeName':'team','AttributeType':'N'},{'AttributeName':'seal','AttributeType':'B'}],"
    "'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}],"
    "'GlobalSecondaryIndexes':[{'IndexName':'deep','Projection':{'ProjectionType':'KEYS_ONLY'},"
    "'KeySchema':[{'AttributeName':'cup','KeyType':'HASH'},{'AttributeName':'year','KeyType':'HASH'},"
    "{'AttributeName':'round','KeyType':'RANGE'},{'AttributeName':'team','KeyType':'RANGE'},"
    "{'AttributeName':'seal','KeyType':'RANGE'}]},"
    "{'IndexName':'wide','Projection':{'ProjectionType':'ALL'},"
    "'KeySchema':[{'AttributeName':'cup','KeyType':'HASH'},{'AttributeName':'round','KeyType':'RANGE'},"
    "{'AttributeName':'team','KeyType':'RANGE'}]},"
    "{'IndexName':'pairs','Projection':{'ProjectionType':'ALL'},"
    "'KeySchema':[{'AttributeName':'cup','KeyType':'HASH'},{'AttributeName':'year','KeyType':'HASH'}]}]}";

/* Items of cup c, year 1, in no order; 6 is of another year, 7 has no seal, 8 no year. */
static const char *const played[] = {
    "{'id':{'S':'1'},'cup':{'S':'c'},'year':{'N':'1'},'round':{'S':'b'},'team':{'N':'10'},'seal':{'B':'AA=='}}",
    "{'id':{'S':'2'},'cup':{'S':'c'},'year':{'N':'1'},'round':{'S':'a'},'team':{'N':'10'},'seal':{'B':'AQ=='}}",
    "{'id':{'S':'3'},'cup':{'S':'c'},'year':{'N':'1'},'round':{'S':'a'},'team':{'N':'9'},'seal':{'B':'AQ=='}}",
    "{'id':{'S':'4'},'cup':{'S':'c'},'year':{'N':'1'},'round':{'S':'a'},'team':{'N':'10'},'seal':{'B':'AA=='}}",
    "{'id':{'S':'5'},'cup':{'S':'c'},'year':{'N':'1'},'round':{'S':'ab'},'team':{'N':'1'},'seal':{'B':'AA=='}}",
    "{'id':{'S':'6'},'cup':{'S':'c'},'year':{'N':'2'},'round':{'S':'a'},'team':{'N':'1'},'seal':{'B':'AA=='}}",
    "{'id':{'S':'7'},'cup':{'S':'c'},'year':{'N':'1'},'round':{'S':'c'},'team':{'N':'1'}}",
    "{'id':{'S':'8'},'cup':{'S':'c'},'round':{'S':'0'},'team':{'N':'1'}}",
};

static void games_open(struct world *world)
{
    world_open(world);
    ask_quoted(world, "CreateTable", games);
    ensure(world->status == 200);
    for (size_t i = 0; i < sizeof played / sizeof *played; i++) {
        char request[400];
        snprintf(request, sizeof request, "{'TableName':'games','Item':%s}", played[i]);
        ask_quoted(world, "PutItem", request);
        ensure(world->status == 200);
    }
}

struct query_example {
    const char *index, *condition, *names, *values, *ids; /* ids: the items found, in order, or the fault */
};

/* The ids of the items, one character each. */
static struct slice found_ids(struct world *world, struct slice reply)
{
    struct buf ids = {0};
    const char *mark = "\"id\":{\"S\":\"";
    for (size_t i = 0; i + strlen(mark) < reply.len; i++)
        if (slice_starts(slice_from(reply, i), slice_of(mark)))
            buf_byte(&ids, (unsigned char)reply.data[i + strlen(mark)]);
    struct slice copy = arena_copy(&world->scratch, buf_view(&ids));
    buf_free(&ids);
    return copy;
}

static void check_query(struct world *world, const struct query_example *example, const char *more)
{
    char request[1000];
    snprintf(request, sizeof request,
             "{'TableName':'games','IndexName':'%s','KeyConditionExpression':'%s',"
             "%s%s'ExpressionAttributeValues':{%s}%s}",
             example->index, example->condition, example->names[0] ? "'ExpressionAttributeNames':" : "",
             example->names, example->values, more);
    struct slice reply = ask_quoted(world, "Query", request);
    struct slice got = world->status == 200 ? found_ids(world, reply) : member_text(world, reply, "message");
    if (!slice_equal(got, slice_of(example->ids)))
        test_failed(__FILE__, __LINE__, "%s %s\n  got:      %.*s\n  expected: %s", example->index,
                    example->condition, SLICE_ARG(got), example->ids);
}

static void check_queries(const struct query_example *examples, size_t count, const char *more)
{
    struct world world;
    games_open(&world);
    for (size_t i = 0; i < count; i++) check_query(&world, &examples[i], more);
    world_close(&world);
}

#define CHECK_QUERIES(examples, more) check_queries(examples, sizeof(examples) / sizeof *(examples), more)

#define C     "':c':{'S':'c'}"
#define CY    C ",':y':{'N':'1'}"
#define NAMES "{'#y':'year'},"

TEST(compound_keys_order_an_index)
{
    static const struct query_example examples[] = {
        {"deep", "cup = :c and #y = :y", NAMES, CY, "34251"},
        {"deep", "#y = :y and cup = :c and round = :r", NAMES, CY ",':r':{'S':'a'}", "342"},
        {"deep", "cup = :c and #y = :y and round > :r", NAMES, CY ",':r':{'S':'a'}", "51"},
        {"deep", "cup = :c and #y = :y and begins_with(round, :r)", NAMES, CY ",':r':{'S':'a'}", "3425"},
        {"deep", "cup = :c and #y = :y and round = :r and team >= :t", NAMES,
         CY ",':r':{'S':'a'},':t':{'N':'9.5'}", "42"},
        {"deep", "cup = :c and #y = :y and round = :r and team between :y and :t", NAMES,
         CY ",':r':{'S':'a'},':t':{'N':'9'}", "3"},
        {"deep", "cup = :c and #y = :y and round = :r and team = :t and seal < :s", NAMES,
         CY ",':r':{'S':'a'},':t':{'N':'10'},':s':{'B':'AQ=='}", "4"},
        {"wide", "cup = :c", "", C, "86324517"},
        {"wide", "cup = :c and round = :r and team = :t", "", C ",':r':{'S':'a'},':t':{'N':'10'}", "24"},
        {"pairs", "cup = :c and #y = :y", NAMES, CY, "123457"},
    };
    CHECK_QUERIES(examples, "");
    static const struct query_example backwards[] = {
        {"deep", "cup = :c and #y = :y", NAMES, CY, "15243"},
        {"wide", "cup = :c and round = :r", "", C ",':r':{'S':'a'}", "4236"},
    };
    CHECK_QUERIES(backwards, ",'ScanIndexForward':false");
}

TEST(compound_keys_refuse_gaps)
{
    static const struct query_example examples[] = {
        {"deep", "cup = :c", "", C,
         "HASH key attributes year must have equality conditions specified in the query"},
        {"deep", "cup = :c and #y = :y and team = :y", NAMES, CY,
         "RANGE key attributes round must have equality conditions specified in the query because a "
         "condition "
         "is present on key attribute team"},
        {"deep", "cup = :c and #y = :y and id = :c", NAMES, CY,
         "Query condition missed key schema element: round"},
        {"pairs", "cup = :c and #y = :y and round = :c", NAMES, CY, "Query key condition not supported"},
        {"wide", "cup = :e", "", "':e':{'S':''}",
         "One or more parameter values are not valid. A value specified for a secondary index key is not "
         "supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: "
         "wide, IndexKey: cup"},
        {"none", "cup = :c and #y = :y and team = :y", NAMES, CY,
         "The table does not have the specified index: none"},
    };
    CHECK_QUERIES(examples, "");
    static const struct query_example filtered[] = {
        {"deep", "cup = :c and #y = :y", NAMES, CY,
         "Filter Expression can only contain non-primary key attributes: Primary key attribute: team"}};
    CHECK_QUERIES(filtered, ",'FilterExpression':'team = :y'");
}

#define EQ(name, value) "'" name "':{'ComparisonOperator':'EQ','AttributeValueList':[" value "]}"
#define GT(name, value) "'" name "':{'ComparisonOperator':'GT','AttributeValueList':[" value "]}"
#define KEY_CONDITIONS(conditions)                                                                           \
    "{'TableName':'games','IndexName':'deep','Select':'COUNT','KeyConditions':{" conditions "}}"

/* Some documents say that the service refuses KeyConditions on such an index. Tests that ran on it show that it takes
 * them, so they are taken here. */
TEST(compound_keys_in_key_conditions)
{
    static const struct exchange exchanges[] = {
        {"Query", KEY_CONDITIONS(EQ("year", "{'N':'1'}") "," EQ("cup", "{'S':'c'}")),
         "{'Count':5,'ScannedCount':5}"},
        {"Query",
         KEY_CONDITIONS(EQ("year", "{'N':'1'}") "," EQ("cup", "{'S':'c'}") "," EQ(
             "round", "{'S':'a'}") "," GT("team", "{'N':'9'}")),
         "{'Count':2,'ScannedCount':2}"},
        {"Query", KEY_CONDITIONS(EQ("year", "{'N':'1'}")),
         INVALID "HASH key attributes cup must have equality conditions specified in the query"},
        {"Query", KEY_CONDITIONS(EQ("year", "{'N':'1'}") "," GT("cup", "{'S':'c'}")),
         INVALID "HASH key attributes cup must have equality conditions specified in the query"},
        {"Query", KEY_CONDITIONS(""), INVALID "Conditions can be of length 1 or 2 only"},
        {"Query",
         "{'TableName':'games','KeyConditions':{" EQ("a", "{'S':'c'}") "," EQ("b", "{'S':'c'}") "," EQ(
             "c", "{'S':'c'}") "}}",
         INVALID "Conditions can be of length 1 or 2 only"},
    };
    struct world world;
    games_open(&world);
    RUN(&world, exchanges);
    world_close(&world);
}

#define COMPOUND_WORDS                                                                                         \
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE " \
    "keys."
#define COMPOUND INVALID COMPOUND_WORDS

TEST(compound_keys_are_refused_by_statements)
{
    static const struct exchange exchanges[] = {
        {"ExecuteStatement", "{'Statement':'SELECT id FROM games.deep'}", COMPOUND},
        {"ExecuteStatement", "{'Statement':'SELECT COUNT(*) FROM games.deep'}", COMPOUND},
        {"BatchExecuteStatement",
         "{'Statements':[{'Statement':'SELECT * FROM games.deep WHERE cup = 1'},{'Statement':'SELECT * FROM "
         "games.none WHERE cup = 1'}]}",
         "{'Responses':[{'Error':{'Code':'ValidationError','Message':'" COMPOUND_WORDS "'}},{'Error':{'Code':"
         "'ValidationError','Message':'Select statements within BatchExecuteStatement must specify the primary key in "
         "the where clause.'}}]}"},
        {"ExecuteStatement", "{'Statement':'SELECT COUNT(*) FROM games'}",
         INVALID "Unexpected path component at 1:8:5"},
        {"ExecuteStatement", "{'Statement':'SELECT COUNT(*) FROM games.none'}",
         INVALID "The table does not have the specified index"},
    };
    struct world world;
    games_open(&world);
    RUN(&world, exchanges);
    world_close(&world);
}

#define DEEP_KEY(id, cup, year, round, team, seal)                                                           \
    "{'cup':{'S':'" cup "'},'id':{'S':'" id "'},'round':{'S':'" round "'},'seal':{'B':'" seal                \
    "'},'team':{'N':'" team "'},'year':{'N':'" year "'}}"
#define DEEP_PAGE(condition, more)                                                                           \
    "{'TableName':'games','IndexName':'deep','KeyConditionExpression':'cup = :c and #y = :y" condition       \
    "','ExpressionAttributeNames':{'#y':'year'},'ExpressionAttributeValues':{" CY more "}"

TEST(compound_keys_are_all_in_the_last_key)
{
    static const struct exchange exchanges[] = {
        {"Query", DEEP_PAGE("", "") ",'Limit':2,'ProjectionExpression':'id'}",
         "{'Items':[{'id':{'S':'3'}},{'id':{'S':'4'}}],'Count':2,'ScannedCount':2,"
         "'LastEvaluatedKey':" DEEP_KEY("4", "c", "1", "a", "10", "AA==") "}"},
        {"Query",
         DEEP_PAGE("", "") ",'ProjectionExpression':'id',"
         "'ExclusiveStartKey':" DEEP_KEY("4", "c", "1", "a", "10", "AA==") "}",
         "{'Items':[{'id':{'S':'2'}},{'id':{'S':'5'}},{'id':{'S':'1'}}],'Count':3,'ScannedCount':3}"},
        {"Query",
         DEEP_PAGE("", "") ",'ScanIndexForward':false,'Select':'COUNT',"
         "'ExclusiveStartKey':" DEEP_KEY("4", "c", "1", "a", "10", "AA==") "}",
         "{'Count':1,'ScannedCount':1}"},
        {"Query",
         DEEP_PAGE("", "") ",'ExclusiveStartKey':{'id':{'S':'4'},'cup':{'S':'c'},'year':{'N':'1'},"
         "'round':{'S':'a'},'team':{'N':'10'}}}",
         INVALID "The provided starting key is invalid"},
        {"Query", DEEP_PAGE("", "") ",'ExclusiveStartKey':" DEEP_KEY("4", "c", "2", "a", "10", "AA==") "}",
         INVALID "The provided starting key is outside query boundaries based on provided conditions"},
        {"Query",
         DEEP_PAGE(" and round = :r and team > :t", ",':r':{'S':'a'},':t':{'N':'9'}")
         ",'ExclusiveStartKey':" DEEP_KEY("4", "c", "1", "b", "10", "AA==") "}",
         INVALID "The provided starting key does not match the range key predicate"},
        {"Query",
         DEEP_PAGE(" and round = :r and team > :t", ",':r':{'S':'a'},':t':{'N':'9'}")
         ",'ExclusiveStartKey':" DEEP_KEY("4", "c", "1", "a", "9", "AA==") "}",
         INVALID "The provided starting key does not match the range key predicate"},
        {"Query",
         DEEP_PAGE(" and round = :r and team > :t", ",':r':{'S':'a'},':t':{'N':'9'}")
         ",'Select':'COUNT','ExclusiveStartKey':" DEEP_KEY("4", "c", "1", "a", "10", "AA==") "}",
         "{'Count':1,'ScannedCount':1}"},
        {"Scan", "{'TableName':'games','IndexName':'deep','Select':'COUNT'}", "{'Count':6,'ScannedCount':6}"},
        {"Scan", "{'TableName':'games','IndexName':'wide','Select':'COUNT'}", "{'Count':8,'ScannedCount':8}"},
    };
    struct world world;
    games_open(&world);
    RUN(&world, exchanges);
    world_close(&world);
}

/* A request with a text of so many bytes in the place of each @. */
static void check_long(struct world *world, const char *operation, const char *request, size_t count,
                       const char *expected)
{
    struct buf filled = {0};
    for (const char *at = request; *at; at++) {
        if (*at != '@') buf_byte(&filled, (unsigned char)*at);
        for (size_t i = 0; *at == '@' && i < count; i++) buf_byte(&filled, 'x');
    }
    buf_byte(&filled, 0);
    struct slice reply = ask_quoted(world, operation, filled.data);
    struct slice got = world->status == 200 ? SLICE("fine") : member_text(world, reply, "message");
    CHECK_TEXT(got, expected);
    buf_free(&filled);
}

TEST(compound_keys_are_measured_together)
{
    const char *put = "{'TableName':'games','Item':{'id':{'S':'1'},'round':{'S':'@'},'team':{'N':'1'}}}";
    const char *update = "{'TableName':'games','Key':{'id':{'S':'1'}},'UpdateExpression':'SET cup = :c, #y = "
                         ":y','ExpressionAttributeNames':{'#y':'year'},"
                         "'ExpressionAttributeValues':{':c':{'S':'@'},':y':{'N':'1'}}}";
    const char *beyond =
        "The update expression attempted to update the secondary index key beyond allowed size limits";
    struct world world;
    games_open(&world);
    check_long(&world, "PutItem", put, 1022, "fine");
    check_long(&world, "PutItem", put, 1023,
               "Aggregate size for RANGE key attributes round, team of index deep has exceeded limit 1024 "
               "bytes, with actual size 1025 bytes");
    check_long(&world, "PutItem", put, 1025,
               "One or more parameter values were invalid: Size limit exceeded for Index Key round Actual "
               "Size: 1025 bytes Max Size: 1024 bytes IndexName: deep");
    check_long(&world, "UpdateItem", update, 2046, "fine");
    check_long(&world, "UpdateItem", update, 2047, beyond);
    check_long(&world, "UpdateItem", update, 2049, beyond);
    world_close(&world);
}

/* ---- item collections ---- */

#define ITEM_OF(hash, range, more)                                                                           \
    "{'TableName':'indexed','Item':{'a':{'S':'" hash "'},'b':{'S':'" range "'}" more "}}"

static void indexed_open(struct world *world, struct engine_options options)
{
    world_open_options(world, options);
    ask_quoted(world, "CreateTable", item_tables[2]);
    ensure(world->status == 200);
}

/* Collections of 1000 bytes: an item with c is counted twice, its keys in the index "lsi" being all it has.
 */
TEST(an_item_collection_can_be_full)
{
    const char *full = "Collection size exceeded";
    const char *batch = "{'RequestItems':{'indexed':[{'PutRequest':{'Item':{'a':{'S':'q'},'b':{'S':'1'}}}},"
                        "{'PutRequest':{'Item':{'a':{'S':'p'},'b':{'S':'9'},'f':{'S':'@'}}}}]}}";
    struct world world;
    indexed_open(&world, (struct engine_options){.collection_limit_bytes = 1000});
    check_long(&world, "PutItem", ITEM_OF("p", "1", ",'f':{'S':'@'}"), 495, "fine"); /* 500 */
    check_long(&world, "PutItem", ITEM_OF("p", "2", ",'f':{'S':'@'}"), 395, "fine"); /* 900 */
    check_long(&world, "PutItem", ITEM_OF("p", "3", ",'c':{'S':'@'}"), 46, full);    /* 51 twice */
    CHECK_TEXT(slice_of(world.error), "ItemCollectionSizeLimitExceededException");
    check_long(&world, "PutItem", ITEM_OF("p", "3", ",'c':{'S':'@'}"), 45, "fine"); /* 1000 */
    check_long(&world, "PutItem", ITEM_OF("p", "3", ",'c':{'S':'@'}"), 46, full);   /* grows */
    check_long(&world, "PutItem", ITEM_OF("p", "3", ",'c':{'S':'@'}"), 44, "fine"); /* 998 */
    check_long(&world, "PutItem", ITEM_OF("other", "1", ",'f':{'S':'@'}"), 500, "fine");
    check_long(&world, "BatchWriteItem", batch, 1, full);
    CHECK_ASK(&world, "Scan", "{\"TableName\":\"indexed\",\"Select\":\"COUNT\"}",
              "{\"Count\":4,\"ScannedCount\":4}");
    ask_quoted(&world, "TransactWriteItems",
               "{'TransactItems':[{'Put':" ITEM_OF("p", "4", "") "},{'Put':" ITEM_OF("z", "4", "") "}]}");
    CHECK_CONTAINS(buf_view(&world.reply), "{\"Code\":\"ItemCollectionSizeLimitExceeded\","
                                           "\"Message\":\"Collection size exceeded\"},{\"Code\":\"None\"}");
    check_long(&world, "DeleteItem", "{'TableName':'indexed','Key':{'a':{'S':'p'},'b':{'S':'1'}}}", 0,
               "fine");
    check_long(&world, "PutItem", ITEM_OF("p", "4", ",'f':{'S':'@'}"), 490, "fine");
    world_close(&world);
}

static bool note_account(void *context, struct slice key, struct slice value)
{
    (void)value;
    *(struct slice *)context = key;
    return false;
}

/* The account of the collection of a stored item, set by hand: a gigabyte takes too long to write. */
TEST(the_size_of_an_item_collection_is_told_in_gigabytes)
{
    struct world world, next;
    struct slice found = SLICE_NONE;
    struct store_batch writes = {0};
    struct store_faults faults = {0};
    struct buf bytes = {0};
    indexed_open(&world, (struct engine_options){0});
    check_long(&world, "PutItem", ITEM_OF("p", "1", ""), 0, "fine");
    store_scan(world.store, SLICE("p"), SLICE("q"), false, note_account, &found);
    CHECK(found.len > 0);
    buf_u64(&bytes, (3ull << 30) + 7);
    store_batch_put(&writes, found, buf_view(&bytes));
    struct store *store = store_open_memory(&faults);
    CHECK(store_write(store, &writes, true) == STORE_OK);
    indexed_open(&next, (struct engine_options){.store = store});
    CHECK_ASK(&next, "DeleteItem",
              "{\"TableName\":\"indexed\",\"Key\":{\"a\":{\"S\":\"p\"},\"b\":{\"S\":\"1\"}},"
              "\"ReturnItemCollectionMetrics\":\"SIZE\"}",
              "{\"ItemCollectionMetrics\":{\"ItemCollectionKey\":{\"a\":{\"S\":\"p\"}},"
              "\"SizeEstimateRangeGB\":[3.0,4.0]}}");
    world_close(&next);
    world_close(&world);
    store_batch_free(&writes);
    buf_free(&bytes);
}

/* "lsi" keeps keys only, so the table of this test has a local index of everything. */
TEST(an_item_and_its_local_entries_have_one_limit)
{
    const char *create =
        "{'TableName':'twice','BillingMode':'PAY_PER_REQUEST',"
        "'AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'},"
        "{'AttributeName':'b','AttributeType':'S'},{'AttributeName':'c','AttributeType':'S'}]," KEYS(
            "a", "b") ","
                      "'LocalSecondaryIndexes':[{'IndexName':'lsi'," KEYS(
                          "a", "c") ","
                                    "'Projection':{'ProjectionType':'ALL'}}]}";
    const char *put =
        "{'TableName':'twice','Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'1'},'f':{'S':'@'}}}";
    const char *sparse = "{'TableName':'twice','Item':{'a':{'S':'1'},'b':{'S':'1'},'f':{'S':'@'}}}";
    const char *update = "{'TableName':'twice','Key':{'a':{'S':'1'},'b':{'S':'1'}},'UpdateExpression':'SET c "
                         "= :c','ExpressionAttributeValues':{':c':{'S':'1'}}}";
    const char *batch =
        "{'RequestItems':{'twice':[{'PutRequest':{'Item':{'a':{'S':'1'},'b':{'S':'1'},'c':{'S':'1'},"
        "'f':{'S':'@'}}}}]}}";
    const char *large = "Item size has exceeded the maximum allowed size";
    struct world world;
    world_open(&world);
    ask_quoted(&world, "CreateTable", create);
    CHECK_INT(world.status, 200);
    check_long(&world, "PutItem", put, LIMIT_ITEM_BYTES / 2 - 7, "fine");
    check_long(&world, "PutItem", put, LIMIT_ITEM_BYTES / 2 - 6, large);
    check_long(&world, "BatchWriteItem", batch, LIMIT_ITEM_BYTES / 2 - 6, large);
    check_long(&world, "PutItem", sparse, LIMIT_ITEM_BYTES / 2, "fine");
    check_long(&world, "UpdateItem", update, 0, "Item size to update has exceeded the maximum allowed size");
    world_close(&world);
}

/* ---- an index that is being created ---- */

#define CREATE_INDEX(name, attribute)                                                                        \
    "{'TableName':'hash','AttributeDefinitions':[{'AttributeName':'" attribute                               \
    "','AttributeType':'S'}],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'" name                   \
    "','KeySchema':[{'AttributeName':'" attribute                                                            \
    "','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}"
#define DELETE_INDEX(name)                                                                                   \
    "{'TableName':'hash','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'" name "'}}]}"
#define QUERY_INDEX                                                                                          \
    "{'TableName':'hash','IndexName':'by-g','KeyConditionExpression':'g = :g','ExpressionAttributeValues':{" \
    "':g':{'S':'1'}},'Select':'COUNT'}"
#define ONE_AT_A_TIME                                                                                        \
    "LimitExceededException: Subscriber limit exceeded: Only 1 online index can be created or deleted "      \
    "simultaneously per table"

/* Without a writer of its own an engine makes the older entries only when it is told to keep house. */
TEST(an_index_under_way_holds_up_its_table)
{
    static const struct exchange under_way[] = {
        {"Query", QUERY_INDEX, INVALID "Cannot read from backfilling global secondary index: by-g"},
        {"Scan", "{'TableName':'hash','IndexName':'by-g'}",
         INVALID "Cannot read from backfilling global secondary index: by-g"},
        {"UpdateTable", CREATE_INDEX("by-h", "h"), ONE_AT_A_TIME},
        {"UpdateTable", CREATE_INDEX("by-g", "h"), IN_USE "Index is being created.  Table: hash Index: by-g"},
        {"UpdateTable", DELETE_INDEX("by-f"), ONE_AT_A_TIME},
        {"DeleteTable", "{'TableName':'hash'}",
         IN_USE "Cannot delete table while indexes are being created, updated, or deleted."},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'2'},'g':{'S':'1'}}}", "{}"},
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'2'},'g':{'N':'1'}}}",
         INVALID "One or more parameter values were invalid: Type mismatch for Index Key g Expected: S "
                 "Actual: N IndexName: by-g"},
    };
    struct world world;
    items_open(&world);
    check_long(&world, "UpdateTable", CREATE_INDEX("by-f", "f"), 0, "fine");
    ask_quoted(&world, "DescribeTable", "{'TableName':'hash'}");
    CHECK_CONTAINS(buf_view(&world.reply), "\"IndexStatus\":\"ACTIVE\"");
    check_long(&world, "PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'g':{'S':'1'}}}", 0, "fine");
    ask_quoted(&world, "UpdateTable", CREATE_INDEX("by-g", "g"));
    CHECK_CONTAINS(buf_view(&world.reply), "\"IndexStatus\":\"CREATING\",\"Backfilling\":false");
    ask_quoted(&world, "DescribeTable", "{'TableName':'hash'}");
    CHECK_CONTAINS(buf_view(&world.reply), "\"TableStatus\":\"ACTIVE\"");
    CHECK_CONTAINS(buf_view(&world.reply), "\"IndexStatus\":\"CREATING\",\"Backfilling\":true");
    CHECK_CONTAINS(buf_view(&world.reply), "\"WarmThroughput\":{\"Status\":\"UPDATING\"");
    RUN(&world, under_way);
    engine_wait_idle(world.engine);
    check_exchange(&world, &(struct exchange){"Query", QUERY_INDEX, "{'Count':2,'ScannedCount':2}"});
    ask_quoted(&world, "DescribeTable", "{'TableName':'hash'}");
    CHECK(!slice_contains(buf_view(&world.reply), SLICE("Backfilling")));
    check_long(&world, "UpdateTable", DELETE_INDEX("by-f"), 0, "fine");
    check_long(&world, "DeleteTable", "{'TableName':'hash'}", 0, "fine");
    world_close(&world);
}

TEST(an_index_under_way_can_be_deleted)
{
    struct world world;
    items_open(&world);
    check_long(&world, "PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'},'g':{'S':'1'}}}", 0, "fine");
    check_long(&world, "UpdateTable", CREATE_INDEX("by-g", "g"), 0, "fine");
    ask_quoted(&world, "UpdateTable", DELETE_INDEX("by-g"));
    CHECK_CONTAINS(buf_view(&world.reply), "\"IndexStatus\":\"DELETING\"");
    engine_wait_idle(world.engine);
    check_exchange(&world, &(struct exchange){"Query", QUERY_INDEX,
                                              INVALID "The table does not have the specified index: by-g"});
    check_long(&world, "DeleteTable", "{'TableName':'hash'}", 0, "fine");
    world_close(&world);
}
