/* What happened in a second: differences of the counters and histograms that /metrics has.
 *
 * Counters are read once a second into a struct counts. A sample is the difference of two of them, so the p99 of ten
 * seconds is exact too, not a mean of ten. Samples are small and kept in two rings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/json.h"
#include "console/internal.h"
#include "func/func.h"
#include "pattern/pattern.h"
#include "trigger/trigger.h"

#define BUCKETS      (HISTOGRAM_BUCKETS + 1)
#define SAMPLE_OPS   12 /* operations that a kept sample names; nobody calls more within a second */
#define TICKS_OF_TENS 10
#define OTHER_OP     UINT16_MAX

/* Everything since the start, at one moment. */
struct counts {
    int64_t t_ms;
    struct console_counts door;
    uint64_t commits, batches, batch_sum, calls, call_errors;
    uint64_t latency[BUCKETS], sync[BUCKETS], call[BUCKETS];
    /* not since the start, but now */
    uint64_t memory, disk, lag_ms, queued, dead;
    uint64_t operations[]; /* by number */
};

struct sample {
    int64_t t_ms;
    uint64_t memory, disk;
    float p50, p99, batch, sync_us, call_us; /* less than 0: not known */
    float errors, commits, calls, call_errors, v1;
    uint32_t connections, lag_ms, queued, dead;
    uint32_t op_count;
    struct {
        float count;
        uint16_t number;
    } ops[SAMPLE_OPS];
};

static struct samples samples_new(uint32_t capacity)
{
    return (struct samples){.samples = must_zero(capacity, sizeof(struct sample)), .capacity = capacity};
}

static size_t counts_bytes(void)
{
    return sizeof(struct counts) + api_operation_count() * sizeof(uint64_t);
}

static struct counts *counts_new(void)
{
    return must_zero(1, counts_bytes());
}

void samples_open(struct console *console)
{
    _Static_assert((LIMIT_CONSOLE_SECONDS + LIMIT_CONSOLE_TENS) * sizeof(struct sample) <= LIMIT_CONSOLE_HISTORY_BYTES,
                   "samples must fit their memory");
    console->seconds = samples_new(LIMIT_CONSOLE_SECONDS);
    console->tens = samples_new(LIMIT_CONSOLE_TENS);
    console->now = counts_new();
    console->second_ago = counts_new();
    console->tens_ago = counts_new();
}

void samples_close(struct console *console)
{
    free(console->seconds.samples);
    free(console->tens.samples);
    free(console->now);
    free(console->second_ago);
    free(console->tens_ago);
}

const struct sample *samples_at(const struct samples *samples, uint32_t place)
{
    ensure(place < samples->count);
    return &samples->samples[(samples->first + place) % samples->capacity];
}

static struct sample *samples_add(struct samples *samples)
{
    if (samples->count < samples->capacity)
        samples->count++;
    else
        samples->first = (samples->first + 1) % samples->capacity;
    return &samples->samples[(samples->first + samples->count - 1) % samples->capacity];
}

int64_t sample_time(const struct sample *sample)
{
    return sample->t_ms;
}

/* ---- counting ---- */

static void add_buckets(uint64_t out[BUCKETS], const struct histogram *histogram)
{
    for (unsigned i = 0; i < BUCKETS; i++) out[i] += stats_read(&histogram->buckets[i]);
}

static uint64_t memory_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file) return 0;
    if (fscanf(file, "%*u %llu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

/* Messages in queues are items of one table. */
static uint64_t dead_letters(const struct console *console)
{
    char name[300];
    snprintf(name, sizeof name, "%squeues", console->options.prefix);
    struct table *table = engine_table_find(console->options.engine, slice_of(name));
    if (!table) return 0;
    int64_t items = atomic_load(&table->counts->items);
    engine_table_release(table);
    return items > 0 ? (uint64_t)items : 0;
}

static void count_engine(const struct console *console, struct counts *out, uint64_t last_disk, bool weighs)
{
    struct engine *engine = console->options.engine;
    const struct engine_stats *stats = engine_stats(engine);
    struct store_stats store = {0};
    out->commits = stats_read(&stats->commits);
    out->batches = histogram_count(&stats->batch_sizes);
    out->batch_sum = stats_read(&stats->batch_sizes.sum);
    add_buckets(out->sync, &stats->commit_us);
    if (weighs) engine_store_stats(engine, &store);
    out->disk = weighs ? store.disk_bytes : last_disk;
    out->dead = dead_letters(console);
}

static void count_all(const struct console *console, struct counts *out, const struct counts *last, bool weighs)
{
    unsigned operations = api_operation_count();
    memset(out, 0, sizeof *out);
    out->t_ms = clock_now_ms(console->options.clock);
    for (unsigned i = 0; i < operations; i++) {
        out->operations[i] = histogram_count(&console->source.operations[i]);
        if (out->operations[i]) add_buckets(out->latency, &console->source.operations[i]);
    }
    console->source.count(console->source.context, &out->door);
    out->memory = memory_bytes();
    if (console->options.engine) count_engine(console, out, last->disk, weighs);
    if (console->options.func) {
        struct func_counts counts;
        func_count(console->options.func, &counts);
        out->calls = counts.calls;
        out->call_errors = counts.errors;
        out->queued = counts.queued;
        add_buckets(out->call, counts.duration_us);
    }
    if (console->options.trigger) out->lag_ms = (uint64_t)trigger_lag_ms(console->options.trigger);
}

/* ---- a sample ---- */

/* The value below which this part of all lies, its place within a bucket taken as even; less than 0: there is none. */
static float quantile(const uint64_t from[BUCKETS], const uint64_t to[BUCKETS], double part)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < BUCKETS; i++) total += to[i] - from[i];
    if (!total) return -1;
    double wanted = part * (double)total, below = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        double here = (double)(to[i] - from[i]), low = i ? ldexp(1, (int)i - 1) : 0, high = ldexp(1, (int)i);
        if (here > 0 && below + here >= wanted) return (float)(low + (high - low) * (wanted - below) / here);
        below += here;
    }
    return (float)ldexp(1, BUCKETS - 1);
}

static uint32_t small(uint64_t number)
{
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

/* The busiest have a place of their own; were there ever more, the last place is for the others. */
static void take_operations(struct sample *out, const struct counts *from, const struct counts *to, float seconds)
{
    for (unsigned i = 0; i < api_operation_count(); i++) {
        uint64_t count = to->operations[i] - from->operations[i];
        if (!count) continue;
        uint32_t place = out->op_count < SAMPLE_OPS ? out->op_count++ : SAMPLE_OPS - 1;
        bool is_shared = place == SAMPLE_OPS - 1 && out->ops[place].count > 0;
        out->ops[place].number = is_shared ? OTHER_OP : (uint16_t)i;
        out->ops[place].count += (float)count / seconds;
    }
}

static void sample_make(struct sample *out, const struct counts *from, const struct counts *to, float seconds)
{
    uint64_t batches = to->batches - from->batches;
    *out = (struct sample){.t_ms = to->t_ms,
                           .memory = to->memory,
                           .disk = to->disk,
                           .p50 = quantile(from->latency, to->latency, 0.5),
                           .p99 = quantile(from->latency, to->latency, 0.99),
                           .sync_us = quantile(from->sync, to->sync, 0.5),
                           .call_us = quantile(from->call, to->call, 0.5),
                           .batch = batches ? (float)(to->batch_sum - from->batch_sum) / (float)batches : -1,
                           .errors = (float)(to->door.errors - from->door.errors) / seconds,
                           .v1 = (float)(to->door.v1 - from->door.v1) / seconds,
                           .commits = (float)(to->commits - from->commits) / seconds,
                           .calls = (float)(to->calls - from->calls) / seconds,
                           .call_errors = (float)(to->call_errors - from->call_errors) / seconds,
                           .connections = small(to->door.connections),
                           .lag_ms = small(to->lag_ms),
                           .queued = small(to->queued),
                           .dead = small(to->dead)};
    take_operations(out, from, to, seconds);
}

const struct sample *sample_take(struct console *console)
{
    struct counts *now = console->now, *last = console->second_ago;
    bool is_first = !last->t_ms, ends_tens = console->ticks % TICKS_OF_TENS == 0;
    count_all(console, now, last, ends_tens);
    console->ticks++;
    console->now = last;
    console->second_ago = now;
    if (ends_tens && !is_first) sample_make(samples_add(&console->tens), console->tens_ago, now, TICKS_OF_TENS);
    if (ends_tens) memcpy(console->tens_ago, now, counts_bytes());
    if (is_first) return NULL;
    struct sample *sample = samples_add(&console->seconds);
    sample_make(sample, last, now, 1);
    return sample;
}

/* ---- as JSON ---- */

static void put_number(struct buf *out, const char *name, float number)
{
    if (number < 0) return;
    double rounded = round((double)number * 100) / 100;
    buf_printf(out, rounded >= 1e6 || rounded == floor(rounded) ? ",\"%s\":%.0f" : ",\"%s\":%.2f", name, rounded);
}

static void put_operation(struct buf *out, struct slice name, float count)
{
    bool is_first = out->data[out->len - 1] == '{';
    char text[80];
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(name));
    size_t start = out->len;
    put_number(out, text, count);
    if (!is_first) return;
    out->len--; /* without the comma */
    memmove(out->data + start, out->data + start + 1, out->len - start);
}

void sample_put(struct buf *out, const struct sample *sample, int64_t step_ms)
{
    buf_printf(out, "{\"t\":%lld", (long long)sample->t_ms);
    if (step_ms != 1000) buf_printf(out, ",\"step\":%lld", (long long)step_ms);
    buf_text(out, ",\"ops\":{");
    for (uint32_t i = 0; i < sample->op_count; i++) {
        uint16_t number = sample->ops[i].number;
        put_operation(out, number == OTHER_OP ? SLICE("others") : api_operation_name(api_operation_at(number)),
                      sample->ops[i].count);
    }
    if (sample->v1 > 0) put_operation(out, SLICE("/v1"), sample->v1);
    buf_byte(out, '}');
    put_number(out, "p50", sample->p50);
    put_number(out, "p99", sample->p99);
    put_number(out, "errors", sample->errors);
    put_number(out, "commits", sample->commits);
    put_number(out, "batch", sample->batch);
    put_number(out, "syncUs", sample->sync_us);
    put_number(out, "calls", sample->calls);
    put_number(out, "callErrors", sample->call_errors);
    put_number(out, "callUs", sample->call_us);
    buf_printf(out, ",\"connections\":%u,\"memory\":%llu,\"disk\":%llu,\"lagMs\":%u,\"queue\":%u,\"dead\":%u}",
               sample->connections, (unsigned long long)sample->memory, (unsigned long long)sample->disk,
               sample->lag_ms, sample->queued, sample->dead);
}

/* ---- the busiest ---- */

struct busiest {
    struct arena arena;
    struct func_meter meters[LIMIT_CONSOLE_TOP];
    struct pattern_job_meter jobs[LIMIT_CONSOLE_TOP];
    uint32_t count, job_count;
};

static bool is_busier(const struct func_meter *a, const struct func_meter *b)
{
    return a->calls != b->calls ? a->calls > b->calls : a->running > b->running;
}

static void take_meter(void *context, const struct func_meter *meter)
{
    struct busiest *busiest = context;
    if (!meter->calls && !meter->running) return;
    uint32_t place = busiest->count < LIMIT_CONSOLE_TOP ? busiest->count++ : LIMIT_CONSOLE_TOP;
    for (; place > 0 && is_busier(meter, &busiest->meters[place - 1]); place--)
        if (place < LIMIT_CONSOLE_TOP) busiest->meters[place] = busiest->meters[place - 1];
    if (place == LIMIT_CONSOLE_TOP) return;
    busiest->meters[place] = *meter;
    busiest->meters[place].name = arena_copy(&busiest->arena, meter->name);
}

static void take_job(void *context, const struct pattern_job_meter *meter)
{
    struct busiest *busiest = context;
    struct pattern_job_meter *jobs = busiest->jobs;
    uint32_t place = busiest->job_count < LIMIT_CONSOLE_TOP ? busiest->job_count++ : LIMIT_CONSOLE_TOP;
    for (; place > 0 && meter->done + meter->failed > jobs[place - 1].done + jobs[place - 1].failed; place--)
        if (place < LIMIT_CONSOLE_TOP) jobs[place] = jobs[place - 1];
    if (place == LIMIT_CONSOLE_TOP) return;
    jobs[place] = *meter;
    jobs[place].job = arena_copy(&busiest->arena, meter->job);
}

static void put_jobs(struct buf *out, const struct busiest *busiest)
{
    buf_text(out, ",\"jobs\":{");
    for (uint32_t i = 0; i < busiest->job_count; i++) {
        const struct pattern_job_meter *meter = &busiest->jobs[i];
        compose(out, "%,%s:{'done':%d,'failed':%d%[%?,'total':%d%]}", meter->job, meter->done, meter->failed,
                meter->total >= 0, meter->total);
    }
    buf_byte(out, '}');
}

static void put_lags(struct buf *out, struct trigger *trigger)
{
    struct trigger_lag lags[LIMIT_CONSOLE_TOP];
    unsigned count = trigger_lags(trigger, lags);
    buf_text(out, ",\"triggers\":{");
    for (unsigned i = 0; i < count; i++)
        compose(out, "%,%s:{'table':%s,'function':%s,'lagMs':%d}", slice_of(lags[i].mapping), slice_of(lags[i].table),
                slice_of(lags[i].function), lags[i].ms);
    buf_byte(out, '}');
}

void sample_put_busiest(struct console *console, struct buf *out)
{
    struct busiest busiest = {0};
    struct table_rate tables[LIMIT_CONSOLE_TOP];
    if (console->options.engine) {
        uint32_t count = engine_busy_tables(console->options.engine, &busiest.arena, LIMIT_CONSOLE_TOP, tables);
        buf_text(out, ",\"tables\":{");
        for (uint32_t i = 0; i < count; i++)
            compose(out, "%,%s:{'r':%d,'w':%d}", tables[i].name, (int64_t)tables[i].reads, (int64_t)tables[i].writes);
        buf_byte(out, '}');
    }
    if (console->options.func) {
        func_each_meter(console->options.func, take_meter, &busiest);
        buf_text(out, ",\"functions\":{");
        for (uint32_t i = 0; i < busiest.count; i++) {
            const struct func_meter *meter = &busiest.meters[i];
            compose(out, "%,%s:{'calls':%d,'errors':%d,'running':%d}", meter->name, (int64_t)meter->calls,
                    (int64_t)meter->errors, (int64_t)meter->running);
        }
        buf_byte(out, '}');
    }
    if (console->options.pattern) {
        pattern_each_job(console->options.pattern, take_job, &busiest);
        put_jobs(out, &busiest);
    }
    if (console->options.trigger) put_lags(out, console->options.trigger);
    arena_free(&busiest.arena);
}
