/* Answers in pages, and listings in one order over the slots of an index: the first of each slot, put together, not
 * more than were asked for. Whoever lists the newest first asks each slot from its end. */
#ifndef PATTERN_LISTING_H
#define PATTERN_LISTING_H

#include "pattern/flow.h"

/* Appends ],"next":...} to the body, for SLICE_NONE only ]}, and ends the flow. */
void page_finish(struct flow *flow, struct slice next);

struct listing_entry {
    struct slice order, item;
};

struct listing {
    struct listing_entry *entries;
    int64_t count, most;
    bool newest_first; /* the order falls */
    bool more;         /* there are others behind them */
};

struct listing *listing_new(struct flow *flow, int64_t most, bool newest_first);
/* Takes in what a Query of a slot has answered (of up to most + 2 items), in the order of the attribute.
 * `after`: the order of the last one of the page before, which is left out; empty: none. */
void listing_take(struct flow *flow, struct listing *listing, const char *attribute, struct slice after);
/* ':from' and ':to' of a slot's query: the page behind `after` (empty: the first), of what was opened up to `before`;
 * and the query's members ScanIndexForward and Limit. */
struct slice listing_range(struct flow *flow, const struct listing *listing, struct slice after,
                           struct slice before);
struct slice listing_members(struct flow *flow, const struct listing *listing);
/* Behind the last entry. */
void listing_finish(struct flow *flow, const struct listing *listing);

#endif
