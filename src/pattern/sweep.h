/* What sweeps and deletions have in common: the walk over everything that is due, and many items at once: reading,
 * writing and removing them.
 *
 * A table with things that are due has an index `due`: hash key `slot` (S), "0" and on (slots.h), and range key `due`
 * (N, ms since 1970). A walk takes each entry of each slot that is due, the most overdue first:
 *
 *     struct due_walk walk = due_begin(flow, &job_table, &job_slots);
 *     struct slice entry;
 *     while (due_next(flow, &walk, &entry)) ...
 *     flow_finish(flow, 200); */
#ifndef PATTERN_SWEEP_H
#define PATTERN_SWEEP_H

#include "base/limits.h"
#include "pattern/flow.h"
#include "pattern/slots.h"

struct due_walk {
    const struct flow_table *table;
    const struct slots *slots;
    int64_t slot, slot_count, slots_done; /* from any slot on: several servers begin at different ones */
    unsigned pages;                       /* of this slot */
    struct slice last_key;
    struct raw_look page;
    struct arena_mark mark; /* behind the page */
};

/* NULL: there is one slot. Else how many there are is asked behind the first: where that is not there, nobody uses
 * the pattern, and no table is made for it. */
struct due_walk due_begin(struct flow *flow, const struct flow_table *table, const struct slots *slots);
/* The next entry, as the index has it; false behind the last. What was allocated for the entry before is gone, but
 * for what is woken: so a walk needs no more memory than its largest entry. */
bool due_next(struct flow *flow, struct due_walk *walk, struct slice *entry);

/* BatchGetItem, as often as the service needs it; keys: elements of a list, at least one; members: further ones of the
 * table's part of the request, behind a comma.
 *     struct item_batch batch = get_items_begin(flow, &table, keys, READ_FRESH);
 *     while (get_items_next(flow, &batch, &item)) ... */
struct item_batch {
    struct slice left; /* to be asked for; SLICE_NONE: nothing */
    struct raw_look page;
    bool is_further;
};
struct item_batch get_items_begin(struct flow *flow, const struct flow_table *table, struct slice keys,
                                  const char *members);
bool get_items_next(struct flow *flow, struct item_batch *batch, struct slice *item);

/* BatchWriteItem; what the service does not get to is sent again. `requests`: of each table, as the call has them. */
void write_items(struct flow *flow, struct slice requests);
/* Deletes the items of these keys, SWEEP_REMOVED at the most. */
#define SWEEP_REMOVED LIMIT_BATCH_WRITE_REQUESTS
void delete_items(struct flow *flow, const struct flow_table *table, const struct slice *keys, size_t count);
/* The same with the keys that the last reply lists, of which there are no more: how many there were. */
size_t delete_listed(struct flow *flow, const struct flow_table *table);

/* Puts items, as many as there are; none is there twice. */
void put_items(struct flow *flow, const struct flow_table *table, const struct slice *items, size_t count);

#endif
