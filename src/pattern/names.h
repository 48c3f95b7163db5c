/* Lists of names: which counters, leases, boards... there are, in the order of their names.
 *
 * Table PREFIXnames: hash key `list` (S): "counter/0", "counter/1"... (slots.h), range key `name` (S); `entered`
 * (N, ms).
 * Item "slots", LIST: how many slots a list has.
 *
 * A name is entered when its thing is made, not with every call, and stands in a table of its own: so a list reads
 * names and the things of its page, and is consistent on every engine, which an index need not be.
 *
 *  NA1. A thing's name is entered before the thing is made, and within NAMES_FRESH_MS of it. So whatever is there is
 *       listed; a crash in between leaves a name without a thing, which a list does not show.
 *  NA2. Such a name is removed by whoever sees it, when it was entered more than twice that long ago and not again
 *       since: nobody relies on it any more. */
#ifndef PATTERN_NAMES_H
#define PATTERN_NAMES_H

#include "pattern/flow.h"

#define NAMES_FRESH_MS (30 * 60000)

extern const struct flow_table names_table;

/* The name of a thing that is about to be made, because a conditional write has shown that it is not there. */
void names_enter(struct flow *flow, struct slice list, struct slice name);
/* The name of something that may be there or not, before each call that might make it. A process remembers it: that
 * costs half a read unit each half hour, and a write where it was not entered of late. */
void names_note(struct flow *flow, struct slice list, struct slice name);

/* The fields of a list, behind those of the path. */
enum { NAMES_LIMIT, NAMES_AFTER, NAMES_PREFIX };
#define FIELDS_NAMES                                                                                         \
    FIELD_LIMIT(LIST_MOST),                                                                                  \
        {"after", IN_QUERY, FIELD_NAME, .max = 1024, .help = "the \"next\" of the page before"},             \
    {                                                                                                        \
        "prefix", IN_QUERY, FIELD_NAME, .max = 1024, .help = "only names that begin so"                      \
    }
extern const struct field names_fields[3];

/* What a list tells of its things. */
struct names {
    struct slice list;
    const char *member; /* of the answer, that has the things */
    const char *word;   /* by which each tells its name */
    const char *key;    /* the attribute that is the hash key of both tables, and has the name */
    struct slice begin; /* what stands there before it; empty: nothing */
    /* a thing is there if it has an item, or else children, of whom the last is taken; NULL: it has none */
    const struct flow_table *table, *children;
    const char *part; /* the rest of the item's key, behind a comma; NULL: none */
    /* Members, each behind a comma; SLICE_NONE: it is not there. NULL: its name is all. */
    struct slice (*tell)(struct flow *flow, struct slice item);
};
/* A page. `fields`: where those of FIELDS_NAMES begin. */
void names_list(struct flow *flow, struct names names, unsigned fields);
/* A row's function that lists them: NAMES_LIST(list_limits, SLICE("limit"), "limits", "name", "name", ...). */
#define NAMES_LIST(function, ...)                                                                            \
    static void function(struct flow *flow)                                                                  \
    {                                                                                                        \
        names_list(flow, (struct names){__VA_ARGS__}, 0);                                                    \
    }

#endif
