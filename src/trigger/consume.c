/* The consumer in the real world: its thread, the door, functions, the clock; and what the rest of the
 * room and the server ask of it. All decisions are made elsewhere (consume_loop.c and what it calls). */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "trigger/consume.h"

#define CLOSE_US 5000000 /* for batches under way, when the server ends */

struct host {
    struct consumer *consumer;
    struct trigger *trigger;
    struct engine *engine; /* NULL: the door is a remote one */
    struct engine_watcher watcher;
    struct dynamo_turn turn;
    pthread_t thread;
    bool is_running;
    _Atomic bool is_ending;
};

/* ---- what lies outside ---- */

static bool real_begin(void *self, struct dynamo_call *call)
{
    struct host *host = self;
    return dynamo_begin(host->trigger->options.dynamo, call, &host->turn);
}

static void real_turn_end(void *self)
{
    struct host *host = self;
    dynamo_turn_end(host->trigger->options.dynamo, &host->turn);
}

static void real_finish(void *self, struct dynamo_call *call)
{
    (void)self;
    dynamo_finish(call);
}

static void real_invoke(void *self, struct invocation *invocation)
{
    struct host *host = self;
    func_invoke(host->trigger->options.func, invocation);
}

static bool real_destination(void *self, struct slice destination, struct slice document, struct slice id,
                             const struct func_call *call, struct buf *members, unsigned *count)
{
    struct host *host = self;
    return destination_put(host->trigger->options.func, destination, document, id, call, members, count);
}

static void real_wake_queue(void *self)
{
    struct host *host = self;
    func_queue_wake(host->trigger->options.func);
}

static bool real_allows_loops(void *self, struct slice function)
{
    struct host *host = self;
    return func_allows_loops(host->trigger->options.func, function);
}

static void real_log_to(void *self, struct slice function, struct slice line)
{
    struct host *host = self;
    func_log(host->trigger->options.func, function, line);
}

static int64_t real_now_ms(void *self)
{
    struct host *host = self;
    return clock_now_ms(host->trigger->options.clock);
}

static int64_t real_ticks_us(void *self)
{
    (void)self;
    return monotonic_us();
}

static uint64_t real_news(void *self)
{
    struct host *host = self;
    return engine_stream_next(host->engine);
}

static void real_note_result(void *self, struct slice id, const char *result)
{
    struct host *host = self;
    mappings_note_result(host->trigger->mappings, id, result);
}

static void real_reached(void *self, struct slice id, enum mapping_state state)
{
    struct host *host = self;
    mappings_reached(host->trigger->mappings, id, state);
}

static void real_stream_over(void *self, struct slice id, struct slice arn, bool is_over)
{
    struct host *host = self;
    mappings_note_over(host->trigger->mappings, id, arn, is_over);
}

static void hear_of_news(struct engine_watcher *watcher, uint64_t next_sequence)
{
    struct host *host = (struct host *)(void *)((char *)watcher - offsetof(struct host, watcher));
    (void)next_sequence;
    task_host_wake(host->consumer->host);
}

/* ---- the thread ---- */

/* Batches under way have a while to end; calls of the door must. */
static void end(struct consumer *consumer)
{
    int64_t until_us = monotonic_us() + CLOSE_US;
    consumer_stop(consumer);
    for (bool is_late = false;;) {
        int64_t wait_us = consumer_step(consumer);
        if (consumer_has_stopped(consumer)) return;
        if (!is_late && monotonic_us() >= until_us) {
            is_late = true;
            consumer_give_back(consumer); /* what late batches would still have done is not done */
            continue;
        }
        if (wait_us < 0 || wait_us > 20000) wait_us = 20000;
        if (wait_us) task_host_sleep(consumer->host, wait_us);
    }
}

static void *run(void *argument)
{
    struct host *host = argument;
    pthread_setname_np(pthread_self(), "quipu-triggers");
    while (!atomic_load(&host->is_ending)) {
        int64_t wait_us = consumer_step(host->consumer);
        if (wait_us) task_host_sleep(host->consumer->host, wait_us);
    }
    end(host->consumer);
    return NULL;
}

/* ---- opening and closing ---- */

static void make_owner(struct random *random, char owner[OWNER_BYTES])
{
    uint64_t a = random_next(random), b = random_next(random);
    snprintf(owner, OWNER_BYTES, "%08x-%04x-4%03x-8%03x-%012llx", (unsigned)(a >> 32),
             (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff, (unsigned)(b >> 52),
             (unsigned long long)(b & 0xffffffffffff));
}

static struct environment real_environment(struct host *host)
{
    return (struct environment){.self = host,
                                .begin = real_begin,
                                .turn_end = real_turn_end,
                                .finish = real_finish,
                                .invoke = real_invoke,
                                .effects = func_effects,
                                .destination = real_destination,
                                .wake_queue = real_wake_queue,
                                .cause_count = cause_count,
                                .cause_add = cause_add,
                                .cause_join = cause_join,
                                .allows_loops = real_allows_loops,
                                .log_to = real_log_to,
                                .now_ms = real_now_ms,
                                .ticks_us = real_ticks_us,
                                .news = host->engine ? real_news : NULL,
                                .note_result = real_note_result,
                                .reached = real_reached,
                                .stream_over = real_stream_over};
}

struct consumer *consumer_open(struct trigger *trigger)
{
    struct host *host = must_zero(1, sizeof *host);
    struct random random;
    host->trigger = trigger;
    host->engine = dynamo_engine(trigger->options.dynamo);
    random_seed_from_system(&random);
    struct environment world = real_environment(host);
    struct consumer_settings settings = {.prefix = trigger->prefix.data,
                                         .shared = trigger->options.shared,
                                         .lease_ms = trigger->options.lease_ms,
                                         .poll_ms = trigger->options.poll_ms,
                                         .seed = random_next(&random)};
    make_owner(&random, settings.owner);
    host->consumer = consumer_new(&world, &settings);
    host->consumer->real = host;
    host->watcher.notify = hear_of_news;
    return host->consumer;
}

void consumer_start(struct consumer *consumer)
{
    struct host *host = consumer->real;
    if (host->engine) engine_watch(host->engine, &host->watcher);
    ensure(pthread_create(&host->thread, NULL, run, host) == 0);
    host->is_running = true;
}

void consumer_halt(struct consumer *consumer)
{
    struct host *host = consumer->real;
    if (!host->is_running) return;
    if (host->engine) engine_unwatch(host->engine, &host->watcher);
    atomic_store(&host->is_ending, true);
    task_host_wake(consumer->host);
    pthread_join(host->thread, NULL);
    host->is_running = false;
}

void consumer_close(struct consumer *consumer)
{
    if (!consumer) return;
    struct host *host = consumer->real;
    consumer_halt(consumer);
    consumer_free(consumer);
    free(host);
}

/* ---- from other threads ---- */

void consumer_set(struct consumer *consumer, struct mapping *mapping)
{
    consumer_order(consumer, mapping, mapping->id);
}

void consumer_remove(struct consumer *consumer, struct slice id)
{
    consumer_order(consumer, NULL, id);
}

bool consumer_is_idle(struct consumer *consumer)
{
    return consumer_is_quiet(consumer);
}

static void put_metric(struct buf *out, const char *name, const char *type, const char *help,
                       const _Atomic uint64_t *value)
{
    stats_put_head(out, name, type, help);
    buf_printf(out, "%s %llu\n", name, (unsigned long long)stats_read(value));
}

void consumer_put_metrics(struct consumer *consumer, struct buf *out)
{
    const struct consumer_counts *counts = &consumer->counts;
    const struct {
        const char *name, *type, *help;
        const _Atomic uint64_t *value;
    } metrics[] = {
        {"quipu_trigger_mappings", "gauge", "Event source mappings that are known.", &counts->readers},
        {"quipu_trigger_watches", "gauge", "Streams that the server itself follows.", &counts->watches},
        {"quipu_trigger_shards", "gauge", "Shards that are being read.", &counts->shards_held},
        {"quipu_trigger_buffered_bytes", "gauge", "Records that wait or run.", &counts->buffered_bytes},
        {"quipu_trigger_reads_total", "counter", "Answers to GetRecords.", &counts->reads},
        {"quipu_trigger_records_read_total", "counter", "Records that were read.", &counts->records_read},
        {"quipu_trigger_records_filtered_total", "counter", "Records that no filter wanted.",
         &counts->records_filtered},
        {"quipu_trigger_records_done_total", "counter", "Records that were handled.", &counts->records_done},
        {"quipu_trigger_records_given_up_total", "counter", "Records that were given up.",
         &counts->records_given_up},
        {"quipu_trigger_records_looped_total", "counter", "Records kept from the function that caused them.",
         &counts->records_looped},
        {"quipu_trigger_invocations_total", "counter", "Batches handed to functions.", &counts->batches},
        {"quipu_trigger_failures_total", "counter", "Invocations that failed.", &counts->failures},
        {"quipu_trigger_throttled_total", "counter", "Invocations that were not begun.", &counts->throttled},
        {"quipu_trigger_commits_total", "counter", "Positions that were moved.", &counts->commits},
        {"quipu_trigger_effects_total", "counter", "Writes of functions that were applied.",
         &counts->effects},
        {"quipu_trigger_conflicts_total", "counter", "Commits that met another transaction.",
         &counts->conflicts},
        {"quipu_trigger_leases_lost_total", "counter", "Leases that were lost.", &counts->leases_lost},
        {"quipu_trigger_trimmed_total", "counter", "Times that records were cut off before they were read.",
         &counts->trimmed},
    };
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        put_metric(out, metrics[i].name, metrics[i].type, metrics[i].help, metrics[i].value);
    stats_put_head(out, "quipu_trigger_start_seconds", "histogram",
                   "From the arrival of a batch's first record to its invocation.");
    histogram_put(out, "quipu_trigger_start_seconds", "", &counts->start_us, 1e6);
}
