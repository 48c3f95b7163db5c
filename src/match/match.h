/* EventBridge's event patterns: does an event in JSON match?
 *
 * Pure. The whole language: exact strings, numbers, true, false, null; lists are alternatives, keys must all
 * match, arrays in the event match when any element does; prefix, suffix (both also with equals-ignore-case),
 * equals-ignore-case, wildcard, anything-but (of values, prefix, suffix, wildcard, equals-ignore-case and
 * lists of each), numeric ranges, exists, cidr, $or at any level. */
#ifndef MATCH_MATCH_H
#define MATCH_MATCH_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/slice.h"

struct event_pattern;

/* In the arena, which keeps copies of all it needs. NULL and a sentence that says what is wrong and where. */
struct event_pattern *pattern_compile(struct arena *arena, struct slice json, char *error, size_t error_len);
/* The event must be well-formed JSON; what is not matches nothing. Scratch is used and not reset. */
bool pattern_matches(const struct event_pattern *pattern, struct slice event, struct arena *scratch);

#endif
