/* All patterns: a new one is one word here (and, where it does something by itself, one below). Each file
 * names its rows NAME_rows. The most frequent come first: a request is compared with the rows in this order.
 */
#ifndef PATTERN_ROWS_H
#define PATTERN_ROWS_H

#include "pattern/flow.h"

/* X(name): NAME_rows, NAME_row_count. */
#define PATTERNS(X)                                                                                          \
    X(counter)                                                                                               \
    X(log)                                                                                                   \
    X(lease)                                                                                                 \
    X(document)                                                                                              \
    X(once)                                                                                                  \
    X(limit)                                                                                                 \
    X(work)                                                                                                  \
    X(job)                                                                                                   \
    X(group)                                                                                                 \
    X(period)                                                                                                \
    X(history)                                                                                               \
    X(board)                                                                                                 \
    X(drive)                                                                                                 \
    X(original)                                                                                              \
    X(openapi)

/* X(name): struct flow_sweep NAME_sweep. */
#define PATTERN_SWEEPS(X) X(job) X(group) X(period) X(history) X(log) X(baseline)

#define X(name)                                                                                              \
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
