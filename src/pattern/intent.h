/* Intent: one conditional write decides, although more than one item must change.
 *
 * The write changes one item, the anchor, and says in it what must follow (`redo`). Then that is carried out, and
 * `redo` is removed. Who dies between leaves the redo, and whoever meets it finishes it before anything else: what a
 * redo says counts as done from the moment it was written.
 *
 * An anchor has, besides what its pattern keeps in it:
 *   intent (S)  the id of its last intent. Every one has another, so who has read it can tell, by the condition of
 *               the next write, that nothing was begun since, even if all else looks as it did.
 *   redo        what that intent has left to do, in the pattern's own words; gone when it is done.
 *
 *  P6. An intent is written by one who has read an anchor without a redo, on the condition that its `intent` is the
 *      one that was read (or that there still is none). As a redo comes with an `intent` of its own, there is none.
 *  P7. A redo is removed only behind carry_out, and only while `intent` is still its own.
 *  P8. carry_out may run several times, by several at once, and minutes late, by one who read the redo long ago. So
 *      each of its writes puts an item with a fixed key if it is absent, or is guarded by a version. What it
 *      has put and others delete comes back by a late one: that must be harmless, or the deleted item leaves a
 *      tombstone for longer than a participant may be late. */
#ifndef PATTERN_INTENT_H
#define PATTERN_INTENT_H

#include "pattern/flow.h"

struct intent {
    const struct flow_table *table;
    struct slice key; /* of the anchor: {"name":{"S":"x"}} */
    /* Does what the anchor's redo says; see P8. The anchor is as it was read or written, with `intent` and `redo`. */
    void (*carry_out)(struct flow *flow, struct slice anchor);
};

struct intent_change {
    struct slice redo;      /* an attribute value, {"M":{...}} */
    struct slice update;    /* goes on behind "SET a = b": ", #value = :value REMOVE #old"; may be empty */
    struct slice condition; /* besides P6; empty: none */
    struct slice values;    /* of both: ",':value':{'N':'7'}"; may be empty */
};

/* The anchor, read, and nothing is left to do for it; SLICE_NONE: there is none. */
struct slice intent_read(struct flow *flow, const struct intent *intent);
/* The same where it has been read already. A redo is finished, though its writer gets a moment to do so itself. */
struct slice intent_finish(struct flow *flow, const struct intent *intent, struct slice anchor);
/* Changes the anchor if it is as it was read, and does what follows. True: done, and *anchor is as it was written.
 * False: *anchor is how it is: perhaps with a redo (for intent_finish), or like before, and the pattern's own
 * condition did not hold. Nothing was changed, or else a call of unknown outcome was made again, and others have
 * finished it and gone on since: a pattern that must not do things twice looks for what carry_out leaves, such
 * as a token, before it tries again. */
bool intent_write(struct flow *flow, const struct intent *intent, struct slice *anchor,
                  const struct intent_change *change);
/* Behind a write that failed: nothing was begun between the two, so it was the pattern's own condition. */
bool intent_is_same(struct flow *flow, struct slice before, struct slice after);

#endif
