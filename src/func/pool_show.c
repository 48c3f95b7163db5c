/* What runs, for people and for metrics; and what each function has done: one label for each function, up to a limit;
 * the others share one, so that thousands of functions do not make thousands of lines.
 *
 * The meters have a lock of their own, a leaf. A function that was deleted loses its meter at once; a call of
 * it that ends later makes a new one, which goes with the next look at the metrics. */
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "func/pool.h"

static const char *const end_names[] = {[INVOCATION_ANSWERED] = "answered",
                                        [INVOCATION_FAILED] = "failed",
                                        [INVOCATION_THROTTLED] = "throttled",
                                        [INVOCATION_UNKNOWN] = "unknown",
                                        [INVOCATION_REFUSED] = "refused"};

#define OTHERS "(others)" /* no function can have this name */

struct meter {
    struct ring link; /* in its bucket */
    struct slice name;
    uint64_t ends[INVOCATION_REFUSED + 1], call_us, log_bytes;
    uint64_t told_calls, told_errors; /* by func_each_meter */
    unsigned processes, running; /* as they were counted last */
    char text[];                 /* of the name */
};

struct meters {
    pthread_mutex_t lock;
    struct ring buckets[METER_BUCKETS];
    unsigned count;
    struct meter *others; /* NULL: no function has needed it */
};

/* ---- finding ---- */

static struct meter *meter_new(struct slice name)
{
    struct meter *meter = must_zero(1, sizeof *meter + name.len);
    memcpy(meter->text, name.data, name.len);
    meter->name = (struct slice){meter->text, name.len};
    ring_init(&meter->link);
    return meter;
}

static struct meter *find(struct meters *meters, struct slice name)
{
    ring_each(struct meter, meter, link, &meters->buckets[hash_bytes(name) % METER_BUCKETS])
    {
        if (slice_equal(meter->name, name)) return meter;
    }
    return NULL;
}

/* With the lock held, as is the one above. */
static struct meter *find_or_make(struct meters *meters, struct slice name)
{
    struct meter *meter = find(meters, name);
    if (meter) return meter;
    if (meters->count >= LIMIT_LABELLED_FUNCTIONS) {
        if (!meters->others) meters->others = meter_new(SLICE(OTHERS));
        return meters->others;
    }
    meter = meter_new(name);
    meters->count++;
    ring_append(&meters->buckets[hash_bytes(name) % METER_BUCKETS], &meter->link);
    return meter;
}

struct meters *meters_new(void)
{
    struct meters *meters = must_zero(1, sizeof *meters);
    pthread_mutex_init(&meters->lock, NULL);
    for (unsigned i = 0; i < METER_BUCKETS; i++) ring_init(&meters->buckets[i]);
    return meters;
}

void meters_free(struct meters *meters)
{
    for (unsigned i = 0; i < METER_BUCKETS; i++)
        ring_each(struct meter, meter, link, &meters->buckets[i]) free(meter);
    free(meters->others);
    pthread_mutex_destroy(&meters->lock);
    free(meters);
}

/* ---- counting ---- */

void meters_call(struct meters *meters, const struct run *run, int64_t call_us)
{
    pthread_mutex_lock(&meters->lock);
    struct meter *meter = find_or_make(meters, run->function->name);
    meter->ends[run->end]++;
    meter->call_us += (uint64_t)call_us;
    pthread_mutex_unlock(&meters->lock);
}

void meters_log(struct meters *meters, struct slice name, size_t bytes)
{
    pthread_mutex_lock(&meters->lock);
    find_or_make(meters, name)->log_bytes += bytes;
    pthread_mutex_unlock(&meters->lock);
}

void meters_forget(struct meters *meters, struct slice name)
{
    pthread_mutex_lock(&meters->lock);
    struct meter *meter = find(meters, name);
    if (meter) {
        ring_remove(&meter->link);
        meters->count--;
        free(meter);
    }
    pthread_mutex_unlock(&meters->lock);
}

/* ---- printing ---- */

static int by_name(const void *a, const void *b)
{
    return slice_compare((*(struct meter *const *)a)->name, (*(struct meter *const *)b)->name);
}

/* All of them but the one for others, in the order of their names; with the lock held. */
static struct meter **list(struct meters *meters, struct arena *arena, unsigned *count)
{
    struct meter **all = arena_array(arena, struct meter *, meters->count + 1);
    *count = 0;
    for (unsigned i = 0; i < METER_BUCKETS; i++)
        ring_each(struct meter, meter, link, &meters->buckets[i]) all[(*count)++] = meter;
    qsort(all, *count, sizeof *all, by_name);
    return all;
}

/* The registry is asked without the lock, since its own comes first. */
static void forget_deleted(struct pool *pool, struct arena *arena)
{
    struct meters *meters = pool->meters;
    unsigned count;
    pthread_mutex_lock(&meters->lock);
    struct meter **all = list(meters, arena, &count);
    struct slice *names = arena_array(arena, struct slice, count + 1);
    for (unsigned i = 0; i < count; i++) names[i] = arena_copy(arena, all[i]->name);
    pthread_mutex_unlock(&meters->lock);
    for (unsigned i = 0; i < count; i++) {
        struct function *function = registry_function(pool->func, names[i], SLICE_NONE, 0);
        if (function)
            function_release(function);
        else
            meters_forget(meters, names[i]);
    }
}

static void clear_processes(struct meter *meter)
{
    meter->processes = meter->running = 0;
}

/* With both locks held. */
static void count_processes(struct pool *pool)
{
    struct meters *meters = pool->meters;
    for (unsigned i = 0; i < METER_BUCKETS; i++)
        ring_each(struct meter, meter, link, &meters->buckets[i]) clear_processes(meter);
    if (meters->others) clear_processes(meters->others);
    ring_each(struct instance, instance, all, &pool->instances)
    {
        if (instance->state == INSTANCE_ENDED) continue;
        bool is_leaving = instance->state == INSTANCE_RETIRING; /* perhaps with its function */
        struct slice name = instance->function->name;
        struct meter *meter = is_leaving ? find(meters, name) : find_or_make(meters, name);
        if (!meter) continue;
        meter->processes++;
        meter->running += instance->running_count;
    }
}

/* name{function="..."; the caller goes on. */
static void put_sample(struct buf *out, const char *name, const struct meter *meter)
{
    buf_printf(out, "%s{function=\"", name);
    for (size_t i = 0; i < meter->name.len; i++) {
        char byte = meter->name.data[i];
        if (byte == '"' || byte == '\\') buf_byte(out, '\\');
        if (byte == '\n')
            buf_text(out, "\\n");
        else
            buf_byte(out, (unsigned char)byte);
    }
    buf_byte(out, '"');
}

static void put_calls(struct buf *out, struct meter *const *all, unsigned count)
{
    static const char name[] = "quipu_function_calls_total";
    stats_put_head(out, name, "counter", "Calls of each function by their end.");
    for (unsigned i = 0; i < count; i++)
        for (unsigned end = 0; end <= INVOCATION_REFUSED; end++) {
            if (end == INVOCATION_UNKNOWN) continue; /* then there is no function to count it for */
            put_sample(out, name, all[i]);
            buf_printf(out, ",end=\"%s\"} %llu\n", end_names[end], (unsigned long long)all[i]->ends[end]);
        }
}

void pool_put_meters(struct pool *pool, struct buf *out)
{
    struct arena arena = {0};
    unsigned count;
    if (pool->func->registry) forget_deleted(pool, &arena);
    pool_lock(pool);
    pthread_mutex_lock(&pool->meters->lock);
    count_processes(pool);
    pool_unlock(pool);
    struct meter **all = list(pool->meters, &arena, &count);
    if (pool->meters->others) all[count++] = pool->meters->others;
    put_calls(out, all, count);
#define FAMILY(name, type, help, format, value)                                                              \
    stats_put_head(out, name, type, help);                                                                   \
    for (unsigned i = 0; i < count; i++) {                                                                   \
        put_sample(out, name, all[i]);                                                                       \
        buf_printf(out, "} " format "\n", value);                                                            \
    }
    FAMILY("quipu_function_call_seconds_total", "counter", "What the calls of each function took.", "%.6f",
           (double)all[i]->call_us / 1e6)
    FAMILY("quipu_function_log_bytes_total", "counter", "What each function wrote to its log.", "%llu",
           (unsigned long long)all[i]->log_bytes)
    FAMILY("quipu_function_live_processes", "gauge", "Processes of each function.", "%u", all[i]->processes)
    FAMILY("quipu_function_running_calls", "gauge", "Calls of each function that run now.", "%u",
           all[i]->running)
#undef FAMILY
    pthread_mutex_unlock(&pool->meters->lock);
    arena_free(&arena);
}

void func_each_meter(struct func *func, func_meter_visitor *visit, void *context)
{
    struct pool *pool = func->pool;
    pool_lock(pool);
    pthread_mutex_lock(&pool->meters->lock);
    count_processes(pool);
    pool_unlock(pool);
    for (unsigned i = 0; i < METER_BUCKETS; i++)
        ring_each(struct meter, meter, link, &pool->meters->buckets[i])
        {
            uint64_t calls = 0;
            for (unsigned end = 0; end <= INVOCATION_REFUSED; end++) calls += meter->ends[end];
            uint64_t errors = calls - meter->ends[INVOCATION_ANSWERED];
            visit(context, &(struct func_meter){.name = meter->name,
                                                .calls = calls - meter->told_calls,
                                                .errors = errors - meter->told_errors,
                                                .running = meter->running});
            meter->told_calls = calls;
            meter->told_errors = errors;
        }
    pthread_mutex_unlock(&pool->meters->lock);
}

/* ---- all functions ---- */

void func_count(struct func *func, struct func_counts *out)
{
    const struct pool_stats *stats = &func->pool->stats;
    uint64_t answered = stats_read(&stats->ends[INVOCATION_ANSWERED]);
    *out = (struct func_counts){.duration_us = &stats->duration_us, .queued = queue_count(func->queue)};
    for (unsigned end = 0; end <= INVOCATION_REFUSED; end++) out->calls += stats_read(&stats->ends[end]);
    out->errors = out->calls > answered ? out->calls - answered : 0;
}

static const char *const state_names[] = {[INSTANCE_STARTING] = "Starting",
                                          [INSTANCE_IDLE] = "Idle",
                                          [INSTANCE_BUSY] = "Busy",
                                          [INSTANCE_RETIRING] = "Retiring",
                                          [INSTANCE_ENDED] = "Ended"};
#define STATES (sizeof state_names / sizeof *state_names)

static void put_process(struct buf *out, struct instance *instance, int64_t now_us)
{
    uint64_t memory_bytes = instance->process ? sandbox_memory_bytes(instance->process) : 0;
    compose(out, "%,{'Process':%d,'State':%s,'Version':%s", (int64_t)instance->number,
            slice_of(state_names[instance->state]), instance->function->version);
    buf_printf(out, ",\"AgeSeconds\":%.3f,\"IdleSeconds\":%.3f", (double)(now_us - instance->born_us) / 1e6,
               instance->state == INSTANCE_IDLE ? (double)(now_us - instance->used_us) / 1e6 : 0.0);
    compose(out, ",'MemoryBytes':%d,'Invocations':%d,'Running':%d", (int64_t)memory_bytes,
            (int64_t)instance->invocation_count, (int64_t)instance->running_count);
    buf_printf(out, ",\"InitSeconds\":%.3f}", (double)instance->init_us / 1e6);
}

void pool_put_processes(struct pool *pool, struct slice name, struct buf *out)
{
    int64_t waiting = 0;
    compose(out, "{'Processes':[");
    pool_lock(pool);
    int64_t now_us = monotonic_us();
    ring_each(struct instance, instance, all, &pool->instances)
    {
        if (instance->state == INSTANCE_ENDED || !slice_equal(instance->function->name, name)) continue;
        put_process(out, instance, now_us);
    }
    ring_each(struct group, group, hungry, &pool->hungry) if (slice_equal(group->function->name, name))
        waiting += group->waiting_count;
    pool_unlock(pool);
    compose(out, "],'Waiting':%d}\n", waiting);
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
        buf_printf(out, "quipu_function_invocations_total{end=\"%s\"} %llu\n", end_names[i],
                   (unsigned long long)stats_read(&stats->ends[i]));
#define PUT(member, help)                                                                                    \
    stats_put_number(out, "quipu_function_" #member "_total", "counter", help, stats_read(&stats->member));
    POOL_COUNTERS(PUT)
#undef PUT
    unsigned counts[STATES] = {0};
    pool_lock(pool);
    ring_each(struct instance, instance, all, &pool->instances) counts[instance->state]++;
    pool_unlock(pool);
    stats_put_head(out, "quipu_function_processes", "gauge", "Processes of functions by state.");
    for (unsigned state = 0; state < INSTANCE_ENDED; state++)
        buf_printf(out, "quipu_function_processes{state=\"%s\"} %u\n", state_names[state], counts[state]);
    put_histogram(out, "quipu_function_duration_seconds", "From an event's hand-over to its answer.",
                  &stats->duration_us);
    put_histogram(out, "quipu_function_init_seconds",
                  "From a process's start to its first request for an event.", &stats->init_us);
    put_histogram(out, "quipu_function_handover_seconds", "From a call to the hand-over of its event.",
                  &stats->handover_us);
    pool_put_meters(pool, out);
}
