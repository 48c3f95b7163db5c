/* Changes of an item: what becomes of it, on which condition, and the values of both, in the words of DynamoDB's
 * expressions.
 *
 *     edit_item(flow, &job_table, key, SLICE("SET #due = :due"), SLICE("#run = :run and #due <= :now"),
 *                 "':due':%N,':run':%S,':now':%N", due_ms, run, flow->now_ms)
 *
 * Where it depends on more what is written, it is put together first:
 *
 *     struct edit edit = {0};
 *     edit_set(flow, &edit, "due", "%N", due_ms);
 *     if (ends) edit_put(flow, &edit, EDIT_REMOVE, "#slot", NULL);
 *     edit_if(flow, &edit, "#run = :run", "':run':%S", run);
 *     edit_write(flow, &edit, &job_table, key)
 *
 * Both are one UpdateItem. True: it was written, and flow_item is the item as it is then. False: the condition did not
 * hold, and flow_item is the item as it was found. A condition may be missing (SLICE_NONE, no edit_if). */
#ifndef PATTERN_EDIT_H
#define PATTERN_EDIT_H

#include "pattern/flow.h"

bool edit_item(struct flow *flow, const struct flow_table *table, struct slice key, struct slice update,
               struct slice condition, const char *values, ...);

/* X(clause): of an update, in the order in which they are written; behind them the condition. */
#define EDIT_CLAUSES(X) X(SET) X(REMOVE) X(ADD) X(DELETE)
enum edit_clause {
#define X(clause) EDIT_##clause,
    EDIT_CLAUSES(X) EDIT_IF,
    EDIT_PARTS
#undef X
};

/* Zeroed: nothing yet. It owns memory until it is written, so nothing that waits or ends the task stands between. */
struct edit {
    struct buf parts[EDIT_PARTS], values;
    /* what flow_item of something that was written is, if not the item as it is then: the item as it was, or none */
    bool returns_old, returns_none;
};

/* SET #name = :name, with a value by its format. */
void edit_set(struct flow *flow, struct edit *edit, const char *name, const char *format, ...);
/* Something else, "#count :one, #sum :amount", and its values, "':one':%N,':amount':%J"; NULL: none. */
void edit_put(struct flow *flow, struct edit *edit, enum edit_clause clause, const char *text,
              const char *values, ...);
/* A condition, besides those that are there. */
#define edit_if(flow, edit, ...) edit_put(flow, edit, EDIT_IF, __VA_ARGS__)
bool edit_write(struct flow *flow, struct edit *edit, const struct flow_table *table, struct slice key);

#endif
