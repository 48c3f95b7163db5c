/* Histograms and the Prometheus text of them. */
#include "base/stats.h"

static unsigned bucket_of(uint64_t value)
{
    if (value <= 1) return 0;
    unsigned bits = 64 - (unsigned)__builtin_clzll(value - 1);
    return bits < HISTOGRAM_BUCKETS ? bits : HISTOGRAM_BUCKETS;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    stats_add(&histogram->buckets[bucket_of(value)], 1);
    stats_add(&histogram->sum, value);
}

uint64_t histogram_count(const struct histogram *histogram)
{
    uint64_t count = 0;
    for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) count += stats_read(&histogram->buckets[i]);
    return count;
}

void stats_put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void stats_put_number(struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
    stats_put_head(out, name, type, help);
    buf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

void histogram_put(struct buf *out, const char *name, const char *labels, const struct histogram *histogram,
                   double unit)
{
    const char *comma = *labels ? "," : "";
    uint64_t below = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        uint64_t here = stats_read(&histogram->buckets[i]);
        below += here;
        if (here)
            buf_printf(out, "%s_bucket{%s%sle=\"%.9g\"} %llu\n", name, labels, comma,
                       (double)(1ull << i) / unit, (unsigned long long)below);
    }
    below += stats_read(&histogram->buckets[HISTOGRAM_BUCKETS]);
    buf_printf(out, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma, (unsigned long long)below);
    const char *open = *labels ? "{" : "", *close = *labels ? "}" : "";
    buf_printf(out, "%s_sum%s%s%s %.9g\n", name, open, labels, close,
               (double)stats_read(&histogram->sum) / unit);
    buf_printf(out, "%s_count%s%s%s %llu\n", name, open, labels, close, (unsigned long long)below);
}
