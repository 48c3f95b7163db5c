/* Counters and histograms that any thread may raise and one reader prints in Prometheus' text format. A
 * histogram has power-of-two buckets: exact enough to see a p99, cheap enough to leave on. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"

#define HISTOGRAM_BUCKETS 28 /* 1, 2, 4, ... 2^27: in microseconds, two minutes */

struct histogram {
    _Atomic uint64_t buckets[HISTOGRAM_BUCKETS + 1]; /* the last: all above */
    _Atomic uint64_t sum;
};

static inline void stats_add(_Atomic uint64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static inline uint64_t stats_read(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void histogram_add(struct histogram *histogram, uint64_t value);
/* How many values were added. */
uint64_t histogram_count(const struct histogram *histogram);
/* The # HELP and # TYPE lines of a metric. */
void stats_put_head(struct buf *out, const char *name, const char *type, const char *help);
/* A metric that is one number. */
void stats_put_number(struct buf *out, const char *name, const char *type, const char *help, uint64_t value);
/* Prints buckets, sum and count. unit divides the values (1e6 turns microseconds into seconds); labels may be
 * "". */
void histogram_put(struct buf *out, const char *name, const char *labels, const struct histogram *histogram,
                   double unit);

#endif
