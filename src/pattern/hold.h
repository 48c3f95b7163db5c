/* Holds of flows: who has a lease, a unit of work, a partition of a log; for how long, and by which fence.
 *
 * What holds for all of them is told in dynamo/dynamo.h (J1 to J4). An item that can be held is written here only:
 *
 *     struct held held = {&leases, flow_compose(flow, "{'name':%S}", name)};
 *     struct hold_also also = {.set = SLICE(", #data = :data"), .values = flow_compose(flow, ",':data':%J", data)};
 *     if (hold_take(flow, &held, owner, 30000, HOLD_FREE, &also)) ...
 *     if (hold_act(flow, &held, fence, SLICE("REMOVE #owner"), &(struct hold_also){0})) ...
 *     else hold_refuse_fence(flow, flow_item(flow), fence, members, "lease", "granted");
 *
 * Both write once and see the item as it is then: as written, or as it was found where the condition did not hold
 * (flow_item). */
#ifndef PATTERN_HOLD_H
#define PATTERN_HOLD_H

#include "dynamo/dynamo.h"
#include "pattern/flow.h"

struct held {
    const struct flow_table *table;
    struct slice key; /* of the item: {"name":{"S":"x"}} */
};

/* What a write changes, or asks, besides the hold. All may be empty. hold_take has values :owner, :until, :now, :zero
 * and :one of its own, which may be used, and hold_act has :fence. */
struct hold_also {
    struct slice set;       /* ", #data = :data", of hold_take */
    struct slice remove;    /* " REMOVE #data", of hold_take */
    struct slice condition; /* " and #size < :most" */
    struct slice values;    /* ",\":data\":{...}" */
};

/* Takes it, for so long; false: it was not to be had. `free` is HOLD_FREE, or HOLD_FREE_OR_MINE: then an owner that
 * holds it takes it again. */
bool hold_take(struct flow *flow, const struct held *held, struct slice owner, int64_t for_ms,
               const char *free, const struct hold_also *also);
/* Updates the item as the holder of this fence; false: it is not the holder's any more. */
bool hold_act(struct flow *flow, const struct held *held, int64_t fence, struct slice update,
              const struct hold_also *also);

/* What an item says of its hold, and whose it is now: HOLD_IS_FREE when its time is over. */
struct dynamo_hold hold_of(struct flow *flow, struct slice item);
enum dynamo_hold_state hold_state(struct flow *flow, struct slice item, struct slice me);
bool hold_is_on(struct flow *flow, struct slice item);
#define HOLD_USUAL_MS 30000
#define HOLD_MOST_MS  (7 * 24 * 3600 * 1000ll)
/* What `until` becomes, of a hold that is renewed: by the fields `for` (FIELD_DURATION), or `until` (FIELD_NAME), a
 * time. One that is none, or not to come within HOLD_MOST_MS, ends the task. */
int64_t hold_renewed_ms(struct flow *flow, unsigned for_field, unsigned until_field);
/* What `until` becomes, of a hold that lasts so long from now. */
int64_t hold_until_ms(const struct flow *flow, int64_t for_ms);
/* Until when the holder may count on it: less than the item says, by what clocks may differ. */
struct slice hold_until_text(struct flow *flow, struct slice item);
/* Where the item's fence is not this one: 409 stale-fence, with further members, and the task ends. "The lease was
 * granted again". */
void hold_refuse_fence(struct flow *flow, struct slice item, int64_t fence, struct slice members,
                       const char *thing, const char *taken);

#endif
