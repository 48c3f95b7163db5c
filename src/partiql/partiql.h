/* PartiQL as DynamoDB takes it: the text of a statement in, the trees of the expression language out.
 *
 * A statement is read in two steps, as the service does:
 * - statement_parse: everything that can be said of it without a table. Its WHERE becomes a struct condition,
 *   its SET and REMOVE a struct update, its columns a struct projection, its item a map;
 * - statement_plan (of a SELECT) or statement_pin (of the others): the condition against the keys of the
 *   table or index. What comes out is what GetItem, Query, Scan and the writes of src/api run by, so there is
 *   one evaluator and one account of capacity for both languages.
 *
 * Pure: no clock, no store, no table. Every fault is the service's whole sentence, ready to be sent as a
 * ValidationException. All memory is the arena's. */
#ifndef PARTIQL_PARTIQL_H
#define PARTIQL_PARTIQL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"
#include "expr/expr.h"
#include "value/value.h"

enum statement_kind {
    STATEMENT_SELECT,
    STATEMENT_INSERT,
    STATEMENT_UPDATE,
    STATEMENT_DELETE,
    STATEMENT_EXISTS, /* EXISTS(SELECT ...): a condition check, in transactions only */
};

enum statement_returning {
    RETURNING_NONE,
    RETURNING_ALL_OLD,
    RETURNING_ALL_NEW,
    RETURNING_MODIFIED_OLD,
    RETURNING_MODIFIED_NEW,
};

struct statement_order {
    struct slice name;
    bool descends;
};

struct statement {
    enum statement_kind kind;
    struct slice table, index;           /* index.len 0: none */
    const struct projection *projection; /* SELECT; NULL: all there is */
    const struct condition *where;       /* or NULL */
    struct statement_order *order;       /* SELECT */
    uint32_t order_count;
    struct map item;             /* INSERT */
    const struct update *update; /* UPDATE */
    enum statement_returning returning;
    struct slice late_fault; /* a fault that a read of an index with keys of several attributes outruns */
};

static inline bool statement_is_read(const struct statement *statement)
{
    return statement->kind == STATEMENT_SELECT;
}

/* NULL and the sentence when the statement is refused. Parameters are the values of its ?, in order. EXISTS is
 * for transactions only. */
struct statement *statement_parse(struct arena *arena, struct slice text, const struct value *parameters,
                                  uint32_t parameter_count, bool in_transaction, struct slice *fault);

/* ---- how a SELECT is read ---- */

/* One GetItem or Query. */
struct statement_part {
    struct key_condition keys;
    bool is_get;                    /* the whole key is known: at most one item */
    const struct condition *filter; /* what the keys do not say; or NULL */
};

/* Parts in the order in which their items are answered; no item is in two of them. */
struct statement_plan {
    bool is_scan; /* no parts: everything is read, and the WHERE is its filter */
    struct statement_part *parts;
    uint32_t part_count;
    bool backwards;
};

/* What refuses each read of an index with keys of several attributes. */
extern const struct slice statement_compound_fault;

/* Against the keys that the table or index runs by. False and the sentence when they do not allow it. */
bool statement_plan(struct arena *arena, const struct statement *statement, const struct key_fields *fields,
                    struct statement_plan *out, struct slice *fault);
/* The plan for people: "key read of table Music", "query of index by-city of table Shops, filtered",
 * "3 queries of table Music, backwards", "scan of table Music". */
struct slice statement_explain(struct arena *arena, const struct statement *statement,
                               const struct statement_plan *plan);

/* ---- the one item of all others ---- */

struct statement_pin {
    struct map key;                    /* exactly the key attributes */
    const struct condition *condition; /* what else the WHERE says; or NULL */
};

/* What a WHERE says of the key. */
enum statement_pinned {
    PINNED_WHOLE,
    PINNED_NOT,   /* some key attribute is not named by an equality: *fault says so */
    PINNED_TWICE, /* one has two values: *fault */
    PINNED_WRONG, /* one is of another type than the schema's: *fault */
};
/* takes_in: `key IN [one value]` counts as an equality, as in batches of reads. */
enum statement_pinned statement_pin(struct arena *arena, const struct statement *statement,
                                    const struct key_schema *keys, bool takes_in, struct statement_pin *out,
                                    struct slice *fault);
/* What is wrong with the key of an INSERT's item; empty: nothing. */
struct slice statement_insert_fault(struct arena *arena, const struct statement *statement,
                                    const struct key_schema *keys);

#endif
