/* What runs, for people and for metrics. */
#include "base/json.h"
#include "func/pool.h"

static const char *const state_names[] = {[INSTANCE_STARTING] = "Starting",
                                          [INSTANCE_IDLE] = "Idle",
                                          [INSTANCE_BUSY] = "Busy",
                                          [INSTANCE_RETIRING] = "Retiring",
                                          [INSTANCE_ENDED] = "Ended"};
#define STATES (sizeof state_names / sizeof *state_names)

const char *const pool_end_names[] = {[INVOCATION_ANSWERED] = "answered",
                                      [INVOCATION_FAILED] = "failed",
                                      [INVOCATION_THROTTLED] = "throttled",
                                      [INVOCATION_UNKNOWN] = "unknown",
                                      [INVOCATION_REFUSED] = "refused"};

static void put_process(struct buf *out, struct instance *instance, int64_t now_us)
{
    uint64_t memory_bytes = instance->process ? sandbox_memory_bytes(instance->process) : 0;
    buf_printf(out, "{\"Process\":%llu,\"State\":\"%s\",\"Version\":", (unsigned long long)instance->number,
               state_names[instance->state]);
    json_put_string(out, instance->function->version);
    buf_printf(out, ",\"AgeSeconds\":%.3f,\"IdleSeconds\":%.3f,\"MemoryBytes\":%llu",
               (double)(now_us - instance->born_us) / 1e6,
               instance->state == INSTANCE_IDLE ? (double)(now_us - instance->used_us) / 1e6 : 0.0,
               (unsigned long long)memory_bytes);
    buf_printf(out, ",\"Invocations\":%llu,\"Running\":%u,\"InitSeconds\":%.3f}",
               (unsigned long long)instance->invocation_count, instance->running_count,
               (double)instance->init_us / 1e6);
}

void pool_put_processes(struct pool *pool, struct slice name, struct buf *out)
{
    bool first = true;
    unsigned waiting = 0;
    buf_text(out, "{\"Processes\":[");
    pool_lock(pool);
    int64_t now_us = monotonic_us();
    ring_each(struct instance, instance, all, &pool->instances)
    {
        if (instance->state == INSTANCE_ENDED || !slice_equal(instance->function->name, name)) continue;
        if (!first) buf_byte(out, ',');
        first = false;
        put_process(out, instance, now_us);
    }
    ring_each(struct group, group, hungry, &pool->hungry) if (slice_equal(group->function->name, name))
        waiting += group->waiting_count;
    pool_unlock(pool);
    buf_printf(out, "],\"Waiting\":%u}\n", waiting);
}

static void put_counter(struct buf *out, const char *name, const char *help, const _Atomic uint64_t *counter)
{
    stats_put_head(out, name, "counter", help);
    buf_printf(out, "%s %llu\n", name, (unsigned long long)stats_read(counter));
}

static void put_states(struct pool *pool, struct buf *out)
{
    unsigned counts[STATES] = {0};
    pool_lock(pool);
    ring_each(struct instance, instance, all, &pool->instances) counts[instance->state]++;
    pool_unlock(pool);
    stats_put_head(out, "quipu_function_processes", "gauge", "Processes of functions by state.");
    for (unsigned state = 0; state < INSTANCE_ENDED; state++)
        buf_printf(out, "quipu_function_processes{state=\"%s\"} %u\n", state_names[state], counts[state]);
}

static void put_histogram(struct buf *out, const char *name, const char *help,
                          const struct histogram *histogram)
{
    stats_put_head(out, name, "histogram", help);
    histogram_put(out, name, "", histogram, 1e6);
}

void pool_put_metrics(struct pool *pool, struct buf *out)
{
    const struct pool_stats *stats = &pool->stats;
    stats_put_head(out, "quipu_function_invocations_total", "counter",
                   "Invocations of processes by their end.");
    for (size_t i = 0; i <= INVOCATION_REFUSED; i++)
        buf_printf(out, "quipu_function_invocations_total{end=\"%s\"} %llu\n", pool_end_names[i],
                   (unsigned long long)stats_read(&stats->ends[i]));
    put_counter(out, "quipu_function_timeouts_total", "Invocations that took too long.", &stats->timeouts);
    put_counter(out, "quipu_function_starts_total", "Processes that were started.", &stats->starts);
    put_counter(out, "quipu_function_failed_starts_total", "Processes that never asked for an event.",
                &stats->failed_starts);
    put_counter(out, "quipu_function_evictions_total", "Idle processes that made room for others.",
                &stats->evictions);
    put_counter(out, "quipu_function_reloads_total", "Changes of folders that are run in place.",
                &stats->reloads);
    put_counter(out, "quipu_function_refused_connections_total",
                "Connections to a process's port that were not its own.", &stats->refused_connections);
    put_states(pool, out);
    put_histogram(out, "quipu_function_duration_seconds", "From an event's hand-over to its answer.",
                  &stats->duration_us);
    put_histogram(out, "quipu_function_init_seconds",
                  "From a process's start to its first request for an event.", &stats->init_us);
    put_histogram(out, "quipu_function_handover_seconds", "From a call to the hand-over of its event.",
                  &stats->handover_us);
    pool_put_meters(pool, out);
}
