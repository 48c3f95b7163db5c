/* Transactions beside others: idempotency tokens, calls that wait for the same commit, many threads. */
#include <pthread.h>
#include <stddef.h>

#include "unit/api_items.h"

#define ADD_ONE(token)                                                                                       \
    "{'TransactItems':[{'Update':{'TableName':'hash','Key':{'a':{'S':'1'}},'UpdateExpression':'ADD n :v','"  \
    "ExpressionAttributeValues':{':v':{'N':'1'}}}}],'ClientRequestToken':'" token "'}"
#define ADDED(n)                                                                                             \
    {                                                                                                        \
        "GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}",                                             \
            "{'Item':{'a':{'S':'1'},'n':{'N':'" n "'}}}"                                                     \
    }
#define OTHER_PAYLOAD                                                                                        \
    "IdempotentParameterMismatchException: DynamoDB rejected the request because you retried a request "     \
    "with "                                                                                                  \
    "a different payload but with an idempotent token that was already used."

/* ---- tokens ---- */

TEST(a_transaction_with_a_known_token_is_not_applied_again)
{
    static const struct exchange exchanges[] = {
        {"TransactWriteItems", ADD_ONE("t"), "{}"},
        {"TransactWriteItems", ADD_ONE("t"), "{}"},
        ADDED("1"),
        {"TransactWriteItems", ADD_ONE("u"), "{}"},
        ADDED("2"),
        /* the same in another order is the same; what is asked about the reply does not matter */
        {"TransactWriteItems",
         "{'ClientRequestToken':'t','ReturnConsumedCapacity':'TOTAL',"
         "'TransactItems':[{'Update':{'ExpressionAttributeValues':{':v':{'N':'1.0'}},"
         "'UpdateExpression':'ADD n :v','Key':{'a':{'S':'1'}},'TableName':'hash'}}]}",
         "{'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':2.0,'ReadCapacityUnits':2.0}]}"},
        {"TransactWriteItems",
         "{'ClientRequestToken':'t','TransactItems':[{'Update':{'ExpressionAttributeValues':{':v':{'N':'2'}},"
         "'UpdateExpression':'ADD n :v','Key':{'a':{'S':'1'}},'TableName':'hash'}}]}",
         OTHER_PAYLOAD},
        /* the token is looked at before the action */
        {"TransactWriteItems",
         "{'ClientRequestToken':'t','TransactItems':[{'Delete':{'TableName':'hash','Key':{'b':{'S':'1'}}}}]}",
         OTHER_PAYLOAD},
        ADDED("2"),
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define PUT_MAP(token, names)                                                                                \
    "{'TransactItems':[{'Put':{'TableName':'hash','Item':{'a':{'S':'1'},'m':{'M':{" names "}}}}}],'"         \
    "ClientRequestToken':'" token "'}"

/* Requests are the same when they say the same, to whatever depth their members are in another order. */
TEST(tokens_tell_payloads_apart)
{
    static const struct exchange exchanges[] = {
        {"TransactWriteItems", PUT_MAP("t", "'x':{'S':'1'},'y':{'SS':['1','2']}"), "{}"},
        {"TransactWriteItems", PUT_MAP("t", "'y':{'SS':['2','1']},'x':{'S':'1'}"), "{}"},
        {"TransactWriteItems", PUT_MAP("t", "'x':{'S':'2'},'y':{'SS':['1','2']}"), OTHER_PAYLOAD},
        {"TransactWriteItems", PUT_MAP("t", "'y':{'S':'1'},'x':{'SS':['1','2']}"), OTHER_PAYLOAD},
        {"TransactWriteItems", PUT_MAP("t", "'x':{'S':'1'}"), OTHER_PAYLOAD},
        {"TransactWriteItems",
         "{'TransactItems':[{'Put':{'TableName':'hash',"
         "'Item':{'a':{'S':'1'},'m':{'M':{'x':{'S':'1'},'y':{'SS':['1','2']}}}},"
         "'ConditionExpression':'attribute_exists(a)'}}],'ClientRequestToken':'t'}",
         OTHER_PAYLOAD},
        {"TransactWriteItems",
         "{'TransactItems':[{'ConditionCheck':{'TableName':'hash','Key':{'a':{'S':'1'}},"
         "'ConditionExpression':'attribute_exists(a)'}}],'ClientRequestToken':'t'}",
         OTHER_PAYLOAD},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define IF_NEW(token)                                                                                        \
    "{'TransactItems':[{'Put':{'TableName':'hash','Item':{'a':{'S':'1'},'n':{'N':'7'}},'"                    \
    "ConditionExpression':'attribute_not_exists(a)'}}],'ClientRequestToken':'" token "'}"

TEST(the_token_of_a_cancelled_transaction_is_free)
{
    static const struct exchange exchanges[] = {
        {"PutItem", "{'TableName':'hash','Item':{'a':{'S':'1'}}}", "{}"},
        {"TransactWriteItems", IF_NEW("t"),
         "TransactionCanceledException: Transaction cancelled, please refer cancellation reasons for "
         "specific "
         "reasons [ConditionalCheckFailed]"},
        {"TransactWriteItems", ADD_ONE("t"), "{}"},
        ADDED("1"),
        {"TransactWriteItems", IF_NEW("t"), OTHER_PAYLOAD},
    };
    check_exchanges(exchanges, sizeof exchanges / sizeof *exchanges);
}

#define PUT_INDEXED                                                                                          \
    "{'TransactItems':[{'Put':{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'}}}}],'"              \
    "ClientRequestToken':'t','ReturnItemCollectionMetrics':'SIZE'}"

/* A table of the same name with other keys: what was done to the old one says nothing about it. */
TEST(a_token_does_not_speak_for_another_table)
{
    struct world world;
    static const struct exchange put = {
        "TransactWriteItems", PUT_INDEXED,
        "{'ItemCollectionMetrics':{'indexed':[{'ItemCollectionKey':{'a':{'S':'1'}},"
        "'SizeEstimateRangeGB':[0.0,1.0]}]}}"};
    static const struct exchange cancelled = {
        "TransactWriteItems", PUT_INDEXED,
        "TransactionCanceledException: Transaction cancelled, please refer cancellation reasons for specific "
        "reasons [ValidationError]"};
    items_open(&world);
    check_exchange(&world, &put);
    check_exchange(&world, &put);
    ask_quoted(&world, "DeleteTable", "{'TableName':'indexed'}");
    ask_quoted(&world, "CreateTable",
               "{'TableName':'indexed'," KEYS("x", "y") ",'BillingMode':'PAY_PER_REQUEST',"
               "'AttributeDefinitions':[{'AttributeName':'x','AttributeType':'S'},"
               "{'AttributeName':'y','AttributeType':'S'},{'AttributeName':'z','AttributeType':'S'}],"
               "'LocalSecondaryIndexes':[{'IndexName':'lsi'," KEYS("x", "z")
               ",'Projection':{'ProjectionType':'ALL'}}]}");
    CHECK_INT(world.status, 200);
    check_exchange(&world, &cancelled);
    world_close(&world);
}

TEST(a_token_is_forgotten_after_ten_minutes)
{
    struct world world;
    static const struct exchange add = {"TransactWriteItems", ADD_ONE("t"), "{}"}, once = ADDED("1"),
                                 twice = ADDED("2");
    items_open(&world);
    check_exchange(&world, &add);
    world.now_ms += 10 * 60 * 1000 - 1;
    check_exchange(&world, &add);
    check_exchange(&world, &once);
    world.now_ms += 1;
    check_exchange(&world, &add);
    check_exchange(&world, &twice);
    world_close(&world);
}

/* A repetition is charged as a read of what the first call saw: the larger of both images, four kilobytes at
 * a time, of deletions and checks too. */
TEST(a_repeated_transaction_costs_reading)
{
    struct world world;
    struct buf item = {0};
    items_open(&world);
    buf_text(&item, "{\"TableName\":\"hash\",\"Item\":{\"a\":{\"S\":\"1\"},\"v\":{\"S\":\"");
    for (unsigned i = 0; i < 9000; i++) buf_byte(&item, 'x');
    buf_text(&item, "\"}}}");
    buf_byte(&item, 0);
    CHECK_ASK(&world, "PutItem", item.data, "{}");
    static const char actions[] = "{'TransactItems':[{'Delete':{'TableName':'hash','Key':{'a':{'S':'1'}}}},"
                                  "{'Put':{'TableName':'indexed','Item':{'a':{'S':'1'},'b':{'S':'1'},"
                                  "'c':{'S':'c'}}}}],'ClientRequestToken':'t',"
                                  "'ReturnConsumedCapacity':'INDEXES','ReturnItemCollectionMetrics':'SIZE'}";
#define METRICS                                                                                              \
    "],'ItemCollectionMetrics':{'indexed':[{'ItemCollectionKey':{'a':{'S':'1'}},'SizeEstimateRangeGB':[0.0," \
    "1.0]"                                                                                                   \
    "}]}}"
    static const struct exchange exchanges[] = {
        {"TransactWriteItems", actions,
         "{'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':18.0,'WriteCapacityUnits':18.0,"
         "'Table':{'CapacityUnits':18.0,'WriteCapacityUnits':18.0}},"
         "{'TableName':'indexed','CapacityUnits':3.0,'WriteCapacityUnits':3.0,"
         "'Table':{'CapacityUnits':2.0,'WriteCapacityUnits':2.0},"
         "'LocalSecondaryIndexes':{'lsi':{'CapacityUnits':1.0,'WriteCapacityUnits':1.0}}}" METRICS},
        {"TransactWriteItems", actions,
         "{'ConsumedCapacity':[{'TableName':'hash','CapacityUnits':6.0,'ReadCapacityUnits':6.0,"
         "'Table':{'CapacityUnits':6.0,'ReadCapacityUnits':6.0}},"
         "{'TableName':'indexed','CapacityUnits':2.0,'ReadCapacityUnits':2.0,"
         "'Table':{'CapacityUnits':2.0,'ReadCapacityUnits':2.0}}" METRICS},
    };
    for (size_t i = 0; i < sizeof exchanges / sizeof *exchanges; i++) check_exchange(&world, &exchanges[i]);
    buf_free(&item);
    world_close(&world);
}

/* ---- calls that wait for the same commit ---- */

struct companion {
    struct api_call call;
    struct arena arena;
    struct buf reply;
    char *body;
};

static void companion_done(struct commit *commit)
{
    api_finish((struct api_call *)(void *)((char *)commit - offsetof(struct api_call, commit)));
}

/* All of them begin before the first is committed, and one commit takes them all. */
static void check_together_in(struct world *world, bool in_order, const struct exchange *exchanges,
                              size_t count)
{
    struct companion companions[4] = {0};
    struct commit_list list = {0};
    ensure(count <= sizeof companions / sizeof *companions);
    for (size_t i = 0; i < count; i++) {
        struct companion *own = &companions[i];
        own->body = quoted(exchanges[i].request);
        own->call = (struct api_call){.api = world->api,
                                      .arena = &own->arena,
                                      .reply = &own->reply,
                                      .operation = api_operation_find(slice_of(exchanges[i].operation)),
                                      .body = slice_of(own->body),
                                      .in_order = in_order};
        api_begin(&own->call);
        own->call.commit.done = companion_done;
        if (own->call.is_write) commit_list_add(&list, &own->call.commit);
    }
    engine_submit(world->engine, &list);
    for (size_t i = 0; i < count; i++) {
        char *expected = quoted(exchanges[i].expected);
        CHECK_CONTAINS(buf_view(&companions[i].reply), expected);
        free(expected);
        free(companions[i].body);
        arena_free(&companions[i].arena);
        buf_free(&companions[i].reply);
    }
}

static void check_together(struct world *world, const struct exchange *exchanges, size_t count)
{
    check_together_in(world, false, exchanges, count);
}

#define ADD_TWO(a, b)                                                                                        \
    "{'TransactItems':[{'Update':{'TableName':'hash','Key':{'a':{'S':'" a                                    \
    "'}},'UpdateExpression':'ADD n :v','"                                                                    \
    "ExpressionAttributeValues':{':v':{'N':'1'}}}},{'Update':{'TableName':'hash','Key':{'a':{'S':'" b        \
    "'}},'"                                                                                                  \
    "UpdateExpression':'ADD n :v','ExpressionAttributeValues':{':v':{'N':'1'}}}}]}"

TEST(transactions_that_overlap_conflict)
{
    struct world world;
    static const struct exchange together[] = {
        {"TransactWriteItems", ADD_TWO("1", "2"), "{}"},
        {"TransactWriteItems", ADD_TWO("3", "1"),
         "'CancellationReasons':[{'Code':'None'},{'Code':'TransactionConflict',"
         "'Message':'Transaction is ongoing for the item'}]"},
        {"TransactWriteItems", ADD_TWO("3", "4"), "{}"}, /* the cancelled one holds nothing */
        {"TransactGetItems",
         "{'TransactItems':[{'Get':{'TableName':'hash','Key':{'a':{'S':'1'}}}},"
         "{'Get':{'TableName':'hash','Key':{'a':{'S':'3'}}}}]}",
         "{'Responses':[{'Item':{'a':{'S':'1'},'n':{'N':'1'}}},{'Item':{'a':{'S':'3'},'n':{'N':'1'}}}]}"},
    };
    static const struct exchange after[] = {
        ADDED("1"), {"TransactWriteItems", ADD_TWO("3", "1"), "{}"}, ADDED("2")};
    items_open(&world);
    check_together(&world, together, sizeof together / sizeof *together);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) check_exchange(&world, &after[i]);
    world_close(&world);
}

/* Each finds what those before it have left, as single writes do. */
TEST(transactions_in_order_do_not_conflict)
{
    struct world world;
    static const struct exchange together[] = {
        {"TransactWriteItems", ADD_TWO("1", "2"), "{}"},
        {"TransactWriteItems", ADD_TWO("3", "1"), "{}"},
        {"TransactWriteItems", IF_NEW("t"), "'CancellationReasons':[{'Code':'ConditionalCheckFailed'"},
    };
    static const struct exchange after = ADDED("2");
    items_open(&world);
    check_together_in(&world, true, together, sizeof together / sizeof *together);
    check_exchange(&world, &after);
    world_close(&world);
}

TEST(a_transaction_whose_token_is_under_way_is_in_progress)
{
    struct world world;
    static const struct exchange together[] = {
        {"TransactWriteItems", ADD_ONE("t"), "{}"},
        {"TransactWriteItems", ADD_ONE("t"),
         "#TransactionInProgressException','Message':'Transaction from previous "
         "request is still in progress'"},
        {"TransactWriteItems", IF_NEW("t"), "#IdempotentParameterMismatchException"},
    };
    static const struct exchange after[] = {{"TransactWriteItems", ADD_ONE("t"), "{}"}, ADDED("1")};
    items_open(&world);
    check_together(&world, together, sizeof together / sizeof *together);
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) check_exchange(&world, &after[i]);
    world_close(&world);
}

TEST(a_transaction_finds_its_table_deleted_meanwhile)
{
    struct world world;
    static const struct exchange together[] = {
        {"DeleteTable", "{'TableName':'hash'}", "'TableStatus':'DELETING'"},
        {"TransactWriteItems",
         "{'TransactItems':[{'Put':{'TableName':'pair','Item':{'a':{'S':'1'},'b':{'N':'1'}}}},"
         "{'Put':{'TableName':'hash','Item':{'a':{'S':'1'}}}}]}",
         "#ResourceNotFoundException"},
        {"TransactGetItems", "{'TransactItems':[{'Get':{'TableName':'hash','Key':{'a':{'S':'1'}}}}]}",
         "#ResourceNotFoundException"},
    };
    static const struct exchange after = {"GetItem",
                                          "{'TableName':'pair','Key':{'a':{'S':'1'},'b':{'N':'1'}}}", "{}"};
    items_open(&world);
    check_together(&world, together, sizeof together / sizeof *together);
    check_exchange(&world, &after);
    world_close(&world);
}

/* A commit that fails keeps nothing of a transaction, and does not say that it did. */
TEST(a_transaction_fails_with_its_store)
{
    struct world world;
    static const struct exchange fails = {"TransactWriteItems", ADD_ONE("t"),
                                          "InternalServerError: Internal server error"};
    static const struct exchange nothing = {"GetItem", "{'TableName':'hash','Key':{'a':{'S':'1'}}}", "{}"};
    for (uint64_t call = 1; call <= 3; call++) { /* reads token and item, writes */
        items_open(&world);
        world.faults.fail_at = world.faults.calls + call;
        check_exchange(&world, &fails);
        check_exchange(&world, &nothing);
        world_close(&world);
    }
}

/* ---- many threads ---- */

#define ACCOUNTS  4
#define THREADS   4
#define TRANSFERS 150

/* A thread of a bank: every other call moves one coin between two accounts, if there is one; in between it
 * reads all accounts and counts. */
struct teller {
    pthread_t thread;
    struct world *world;
    unsigned number;
    unsigned moved, conflicts, wrong;
};

static const char *run_call(struct world *world, const char *operation, const char *request,
                            struct buf *reply)
{
    struct arena arena = {0};
    char *body = quoted(request);
    reply->len = 0;
    struct api_call call = {.api = world->api,
                            .arena = &arena,
                            .reply = reply,
                            .operation = api_operation_find(slice_of(operation)),
                            .body = slice_of(body)};
    api_run(&call);
    free(body);
    arena_free(&arena);
    return call.error;
}

static void transfer(struct teller *teller, unsigned from, unsigned to, struct buf *reply)
{
    char request[700];
    snprintf(request, sizeof request,
             "{'TransactItems':[{'Update':{'TableName':'hash','Key':{'a':{'S':'%u'}},"
             "'UpdateExpression':'SET n = n - :v','ConditionExpression':'n >= :v',"
             "'ExpressionAttributeValues':{':v':{'N':'1'}}}},"
             "{'Update':{'TableName':'hash','Key':{'a':{'S':'%u'}},'UpdateExpression':'SET n = n + :v',"
             "'ExpressionAttributeValues':{':v':{'N':'1'}}}}]}",
             from, to);
    const char *error = run_call(teller->world, "TransactWriteItems", request, reply);
    if (!error)
        teller->moved++;
    else if (slice_contains(buf_view(reply), SLICE("TransactionConflict")))
        teller->conflicts++;
    else if (!slice_contains(buf_view(reply), SLICE("[ConditionalCheckFailed, None]")))
        teller->wrong++;
}

static unsigned sum_of_numbers(struct slice reply)
{
    unsigned sum = 0;
    for (size_t i = 0; i + 6 < reply.len; i++)
        if (memcmp(reply.data + i, "{\"N\":\"", 6) == 0)
            sum += (unsigned)strtoul(reply.data + i + 6, NULL, 10);
    return sum;
}

static void count_coins(struct teller *teller, struct buf *reply)
{
    const char *error = run_call(
        teller->world, "TransactGetItems",
        "{'TransactItems':[{'Get':{'TableName':'hash','Key':{'a':{'S':'0'}}}},"
        "{'Get':{'TableName':'hash','Key':{'a':{'S':'1'}}}},"
        "{'Get':{'TableName':'hash','Key':{'a':{'S':'2'}}}},"
        "{'Get':{'TableName':'hash','Key':{'a':{'S':'3'}}}}]}",
        reply);
    if (error || sum_of_numbers(buf_view(reply)) != ACCOUNTS * 10) teller->wrong++;
}

static void *work(void *argument)
{
    struct teller *teller = argument;
    struct buf reply = {0};
    for (unsigned i = 0; i < TRANSFERS; i++) {
        unsigned from = (teller->number + i) % ACCOUNTS;
        transfer(teller, from, (from + 1 + i % (ACCOUNTS - 1)) % ACCOUNTS, &reply);
        count_coins(teller, &reply);
    }
    buf_free(&reply);
    return NULL;
}

static void open_with_writer(struct world *world)
{
    char error[300];
    world_open(world);
    engine_close(world->engine);
    api_free(world->api);
    struct engine_options options = {.store = store_open_memory(NULL),
                                     .durable = true,
                                     .cache_bytes = 1 << 20,
                                     .clock = &world->clock,
                                     .seed = 1};
    world->engine = engine_open(&options, error, sizeof error);
    ensure(world->engine);
    world->api = api_new(&(struct api_options){.engine = world->engine,
                                               .region = "us-east-1",
                                               .account = "000000000000",
                                               .endpoint = "localhost:8000"});
}

TEST(transfers_never_change_the_sum)
{
    struct world world;
    struct teller tellers[THREADS] = {0};
    char item[100];
    unsigned moved = 0;
    open_with_writer(&world);
    ask_quoted(&world, "CreateTable", item_tables[0]);
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        snprintf(item, sizeof item, "{'TableName':'hash','Item':{'a':{'S':'%u'},'n':{'N':'10'}}}", i);
        ask_quoted(&world, "PutItem", item);
        CHECK_INT(world.status, 200);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        tellers[i].world = &world;
        tellers[i].number = i;
        ensure(pthread_create(&tellers[i].thread, NULL, work, &tellers[i]) == 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(tellers[i].thread, NULL);
        CHECK_INT(tellers[i].wrong, 0);
        moved += tellers[i].moved;
    }
    CHECK(moved > 0);
    world_close(&world);
}
