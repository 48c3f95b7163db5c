/* What the tests of expressions share: items and parameters written as DynamoDB JSON, and one line from text
 * to result. */
#ifndef TEST_UNIT_EXPR_WORLD_H
#define TEST_UNIT_EXPR_WORLD_H

#include "expr/expr.h"
#include "unit/test.h"

/* Where a test lives: one arena, one set of parameters, one item. */
struct world {
    struct arena arena;
    struct expr_params params;
    struct map item;
    struct slice fault;
};

/* Names as {"#n": "name"}, values as {":v": {"S": "x"}}, the item as {"a": {"N": "1"}}; each may be NULL. */
void world_open(struct world *world, const char *names, const char *values, const char *item);
/* The names, values and item that most tests agree on. */
void world_open_usual(struct world *world);
void world_close(struct world *world);

/* The fault of parsing, or "" when there is none. */
struct slice fault_of(struct world *world, enum expr_kind kind, const char *text);
/* Parsed as a filter and evaluated: "true", "false" or the fault. */
const char *truth_of(struct world *world, const char *text);
/* The projected item in the short form of item_text, or the fault. */
struct slice projection_of(struct world *world, const char *text);
/* The updated item in the short form of item_text, or the fault; without what the update left alone. */
struct slice update_of(struct world *world, const char *text);
struct slice item_text(struct world *world, const struct map *item);

#endif
