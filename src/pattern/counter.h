/* What the counter of the original shares with the counters. */
#ifndef PATTERN_COUNTER_H
#define PATTERN_COUNTER_H

#include "pattern/flow.h"

/* Adds one, and answers the number; a counter that is at its end ends the task. */
struct slice counter_add_one(struct flow *flow, struct slice name);

#endif
