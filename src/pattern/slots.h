/* Slots of an index: what is open or due stands under several hash keys, since one takes only 1,000 writes a second on
 * AWS. A walk over all that is open asks every slot, and each costs half a read unit though it is empty: so there are
 * few at first, and more where more is opened.
 *
 * How many there are is told by an item: `slots` (N); `opened` (N): of one in SAMPLE things that were opened since
 * `since` (N, ms) how many there were.
 *
 *  SL1. The number only grows, and an entry stands in a slot below a number that was written before it. So whoever
 *       reads the number and then asks every slot below finds all that was there when it was read.
 *       Where somebody has deleted the item, whoever remembers it writes it again.
 *  SL2. A number that is remembered from before is too small at most: its slots are fuller than need be. */
#ifndef PATTERN_SLOTS_H
#define PATTERN_SLOTS_H

#include "pattern/flow.h"

#define SLOTS_LEAST 4   /* a sweep that finds nothing costs 2 read units */
#define SLOTS_MOST  256 /* a list asks them one after the other, which takes about a second on AWS */

struct slots {
    const struct flow_table *table;
    struct slice key; /* of the item: {"part":{"S":"slots"},...} */
};

/* How many there are, as this process has learnt last; and as it is. */
int64_t slots_known(struct flow *flow, const struct slots *slots);
int64_t slots_read(struct flow *flow, const struct slots *slots);
/* The slot of a thing that is written now. */
int64_t slots_place(struct flow *flow, const struct slots *slots, struct slice id);
/* Before a thing is opened: counts one in SAMPLE of them, by their ids, and makes more slots where too many come. */
void slots_count(struct flow *flow, const struct slots *slots, struct slice id);

#endif
