/* What a process remembers from one flow to the next: settings that every call needs, the end of a chain. Always a
 * guess, since others write the same tables: what a flow writes must be conditional on it, and a flow that finds its
 * guess wrong remembers the right one. Nothing is lost when it is forgotten, which happens to what is old whenever
 * there is more than the limits allow. Safe from several threads. */
#ifndef PATTERN_MEMORY_H
#define PATTERN_MEMORY_H

#include "base/arena.h"
#include "base/slice.h"
#include "pattern/flow.h"

struct memory;

struct memory *memory_new(void);
void memory_free(struct memory *memory);
/* The table that flows use. */
struct flow_memory memory_for_flows(struct memory *memory);

#endif
