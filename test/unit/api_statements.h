/* Exchanges of statements: requests with ' in place of ", and ^ in place of the ' of PartiQL's strings. */
#ifndef TEST_UNIT_API_STATEMENTS_H
#define TEST_UNIT_API_STATEMENTS_H

#include "unit/api_items.h"

static inline struct slice ask_statement(struct world *world, const char *operation, const char *request)
{
    char *body = quoted(request);
    for (char *c = body; *c; c++)
        if (*c == '^') *c = '\'';
    struct slice reply = ask(world, operation, body);
    free(body);
    return reply;
}

static inline void check_statement(struct world *world, const struct exchange *exchange)
{
    check_reply(world, exchange, ask_statement(world, exchange->operation, exchange->request));
}

static inline void check_statements(const struct exchange *exchanges, size_t count)
{
    struct world world;
    items_open(&world);
    for (size_t i = 0; i < count; i++) check_statement(&world, &exchanges[i]);
    world_close(&world);
}

#endif
