/* What the counter of the original shares with the counters. */
#ifndef PATTERN_COUNTER_H
#define PATTERN_COUNTER_H

#include "pattern/flow.h"

/* Adds one; the reply's item has the new `value`. */
void counter_add_one(struct flow *flow, flow_step *then, struct slice name);

#endif
