/* Holds of flows: who has a lease, a unit of work, a partition of a log; for how long, and by which fence.
 *
 * What holds for all of them is told in dynamo/dynamo.h (J1 to J4). They are taken, and acted on by who has them, by
 * changes of their items (edit.h):
 *
 *     hold_take(flow, &edit, owner, 30000, HOLD_FREE);
 *     edit_set(flow, &edit, "data", "%J", data);
 *     if (edit_write(flow, &edit, &leases, key)) ...
 *     if (edit_item(flow, &leases, key, SLICE("REMOVE #owner"), SLICE(HOLD_ACT), "':fence':%N", fence)) ...
 *     else hold_refuse_fence(flow, flow_item(flow), fence, members, "lease", "granted"); */
#ifndef PATTERN_HOLD_H
#define PATTERN_HOLD_H

#include "dynamo/dynamo.h"
#include "pattern/edit.h"

/* Adds to a change that the item is taken, for so long, where it is to be had. `free` is HOLD_FREE, or
 * HOLD_FREE_OR_MINE: then an owner that holds it takes it again. Its values :now, :zero and :one may be used. */
void hold_take(struct flow *flow, struct edit *edit, struct slice owner, int64_t for_ms, const char *free);

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
