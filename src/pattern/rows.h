/* All patterns: a new one is one word here (and, where it does something by itself, one below). Each file
 * names its rows NAME_rows. The most frequent come first: a request is compared with the rows in this order.
 */
#ifndef PATTERN_ROWS_H
#define PATTERN_ROWS_H

#include "pattern/flow.h"

/* X(name, transacts): whether it needs transactions. Single rows and calls of those that do not as a whole may
 * say so themselves, by flow_needs_transactions. */
#define PATTERNS(X)                                                                                          \
    X(counter, false)                                                                                        \
    X(log, false)                                                                                            \
    X(lease, false)                                                                                          \
    X(document, false)                                                                                       \
    X(once, false)                                                                                           \
    X(limit, false)                                                                                          \
    X(work, false)                                                                                           \
    X(job, false)                                                                                            \
    X(group, false)                                                                                          \
    X(period, false)                                                                                         \
    X(history, true)                                                                                         \
    X(board, false)                                                                                          \
    X(original, false)                                                                                       \
    X(openapi, false)

/* X(name): struct flow_sweep NAME_sweep. */
#define PATTERN_SWEEPS(X) X(job) X(group) X(period) X(history)

#define X(name, transacts)                                                                                   \
    extern const struct flow_row name##_rows[];                                                              \
    extern const uint32_t name##_row_count;
PATTERNS(X)
#undef X

#define X(name) extern const struct flow_sweep name##_sweep;
PATTERN_SWEEPS(X)
#undef X

/* In a pattern's file, behind its table of rows. */
#define ROW_COUNT(name) const uint32_t name##_row_count = sizeof name##_rows / sizeof *name##_rows
/* The fields of a row. */
#define FIELDS(table) table, sizeof table / sizeof *table

#endif
