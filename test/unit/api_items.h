/* Item operations as lists of requests and replies, run one after the other against three tables in memory:
 * "hash" (a), "pair" (a, b as a number) and "indexed" (a, b) with a local index and two global ones.
 *
 * JSON is written with ' in place of ", which no request or reply here contains otherwise. An expected text
 * that does not begin with { is an error: its name and message. */
#ifndef TEST_UNIT_API_ITEMS_H
#define TEST_UNIT_API_ITEMS_H

#include <stdlib.h>

#include "unit/api_fixture.h"

struct exchange {
    const char *operation, *request, *expected;
};

#define KEYS(hash, range)                                                                                    \
    "'KeySchema':[{'AttributeName':'" hash "','KeyType':'HASH'},{'AttributeName':'" range                    \
    "','KeyType':'RANGE'}]"

static const char *const item_tables[] = {
    "{'TableName':'hash','KeySchema':[{'AttributeName':'a','KeyType':'HASH'}],"
    "'BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[{'AttributeName':'a','AttributeType':'S'}]}",
    "{'TableName':'pair'," KEYS(
        "a", "b") ",'BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':["
                  "{'AttributeName':'a','AttributeType':'S'},{'AttributeName':'b','AttributeType':'N'}]}",
    "{'TableName':'indexed'," KEYS(
        "a",
        "b") ",'BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':["
             "{'AttributeName':'a','AttributeType':'S'},{'AttributeName':'b','AttributeType':'S'},"
             "{'AttributeName':'c','AttributeType':'S'},{'AttributeName':'d','AttributeType':'S'}],"
             "'LocalSecondaryIndexes':[{'IndexName':'lsi'," KEYS(
                 "a",
                 "c") ",'Projection':{'ProjectionType':'KEYS_ONLY'}}],"
                      "'GlobalSecondaryIndexes':[{'IndexName':'gsi'," KEYS(
                          "c",
                          "d") ",'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['e']}},"
                               "{'IndexName':'gall','KeySchema':[{'AttributeName':'d','KeyType':'HASH'}],"
                               "'Projection':{'ProjectionType':'ALL'}}]}",
};

/* The text with its quotes put right, in memory of its own. */
static inline char *quoted(const char *text)
{
    size_t len = strlen(text);
    char *copy = must_alloc(len + 1);
    for (size_t i = 0; i <= len; i++) copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

static inline struct slice ask_quoted(struct world *world, const char *operation, const char *request)
{
    char *body = quoted(request);
    struct slice reply = ask(world, operation, body);
    free(body);
    return reply;
}

static inline void items_open(struct world *world)
{
    world_open(world);
    for (size_t i = 0; i < sizeof item_tables / sizeof *item_tables; i++) {
        ask_quoted(world, "CreateTable", item_tables[i]);
        ensure(world->status == 200);
    }
}

static inline void check_error(struct world *world, const struct exchange *exchange, struct slice reply)
{
    struct slice message = member_text(world, reply, "message");
    if (!message.len) message = member_text(world, reply, "Message");
    struct slice got = arena_printf(&world->arena, "%s: %.*s", world->error ? world->error : "no error",
                                    SLICE_ARG(world->error ? message : reply));
    if (!slice_equal(got, slice_of(exchange->expected)))
        test_failed(__FILE__, __LINE__, "%s %s\n  got:      %.*s\n  expected: %s", exchange->operation,
                    exchange->request, SLICE_ARG(got), exchange->expected);
}

static inline void check_reply(struct world *world, const struct exchange *exchange, struct slice reply)
{
    if (exchange->expected[0] != '{') {
        check_error(world, exchange, reply);
        return;
    }
    char *expected = quoted(exchange->expected);
    if (!slice_equal(reply, slice_of(expected)))
        test_failed(__FILE__, __LINE__, "%s %s\n  got:      %.*s\n  expected: %s", exchange->operation,
                    exchange->request, SLICE_ARG(reply), expected);
    free(expected);
}

static inline void check_exchange(struct world *world, const struct exchange *exchange)
{
    check_reply(world, exchange, ask_quoted(world, exchange->operation, exchange->request));
}

static inline void check_exchanges(const struct exchange *exchanges, size_t count)
{
    struct world world;
    items_open(&world);
    for (size_t i = 0; i < count; i++) check_exchange(&world, &exchanges[i]);
    world_close(&world);
}

#endif
