/* Schemas for tests in few words: attributes "a b c" (strings all), keys "h:a r:b", JSON in single quotes. */
#ifndef TEST_UNIT_API_SCHEMA_H
#define TEST_UNIT_API_SCHEMA_H

#include "unit/api_fixture.h"

/* JSON that tests write with single quotes, in double ones. */
static inline const char *quoted(struct world *world, const char *text)
{
    size_t len = strlen(text);
    char *copy = arena_alloc(&world->scratch, len + 1);
    for (size_t i = 0; i <= len; i++) copy[i] = text[i] == '\'' ? '"' : text[i];
    return copy;
}

static inline bool reply_shows(struct world *world, const char *part)
{
    return slice_contains(buf_view(&world->reply), slice_of(quoted(world, part)));
}

/* The same with what tests write in single quotes. */
#define ASK(world, operation, body)              ask(world, operation, quoted(world, body))
#define FINE(world, operation, body)             CHECK_FINE(world, operation, quoted(world, body))
#define INVALID(world, operation, body, message) CHECK_INVALID(world, operation, quoted(world, body), message)
#define SHOWS(world, part)                       CHECK_CONTAINS(buf_view(&(world)->reply), quoted(world, part))
#define LACKS(world, part)                       CHECK(!reply_shows(world, part))

#define ON_DEMAND "'BillingMode':'PAY_PER_REQUEST'"
#define ALL       "'Projection':{'ProjectionType':'ALL'}"
#define WRONG     "One or more parameter values were invalid: "

static inline const char *schema_attributes(struct world *world, const char *names)
{
    struct slice list = SLICE("[");
    for (const char *at = names; *at; at++) {
        if (*at == ' ') continue;
        list = arena_printf(&world->scratch, "%.*s%s{'AttributeName':'%c','AttributeType':'S'}",
                            SLICE_ARG(list), at == names ? "" : ",", *at);
    }
    return arena_printf(&world->scratch, "%.*s]", SLICE_ARG(list)).data;
}

static inline const char *schema_keys(struct world *world, const char *keys)
{
    struct slice list = SLICE("[");
    for (const char *at = keys; *at; at += at[3] ? 4 : 3)
        list = arena_printf(&world->scratch, "%.*s%s{'AttributeName':'%c','KeyType':'%s'}", SLICE_ARG(list),
                            at == keys ? "" : ",", at[2], at[0] == 'h' ? "HASH" : "RANGE");
    return arena_printf(&world->scratch, "%.*s]", SLICE_ARG(list)).data;
}

/* {'IndexName':...,'KeySchema':...,rest} */
static inline const char *schema_index(struct world *world, const char *name, const char *keys,
                                       const char *rest)
{
    return arena_printf(&world->scratch, "{'IndexName':'%s','KeySchema':%s,%s}", name,
                        schema_keys(world, keys), rest)
        .data;
}

/* A CreateTable of the table "abc". */
static inline const char *schema_table(struct world *world, const char *attributes, const char *keys,
                                       const char *rest)
{
    return quoted(world, arena_printf(&world->scratch,
                                      "{'TableName':'abc','AttributeDefinitions':%s,'KeySchema':%s,%s}",
                                      schema_attributes(world, attributes), schema_keys(world, keys), rest)
                             .data);
}

/* 'GlobalSecondaryIndexes':[...] or 'LocalSecondaryIndexes':[...], with one index or two, and the rest
 * before. */
static inline const char *schema_list(struct world *world, const char *rest, const char *member,
                                      const char *first, const char *second)
{
    return arena_printf(&world->scratch, "%s,'%s':[%s%s%s]", rest, member, first, second ? "," : "",
                        second ? second : "")
        .data;
}

#endif
