/* What the counter of the original shares with the counters. */
#ifndef PATTERN_COUNTER_H
#define PATTERN_COUNTER_H

#include "pattern/flow.h"

/* Adds one; the reply's item has the new `value`. The call has failed where the counter is at its end: the step
 * then refuses with counter_refuse_end. */
void counter_add_one(struct flow *flow, flow_step *then, struct slice name);
void counter_refuse_end(struct flow *flow);

#endif
