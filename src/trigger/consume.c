/* The consumer: its thread and what lies outside of it, commands of other threads, its turn, whether all is quiet.
 *
 * Each turn lets the tasks go on (task.h); what they do is told in the other files. A test makes a consumer over an
 * environment of its own and takes the turns itself.
 *
 * All is quiet when every record that was there when somebody asked has been handled. Where commits tell of news, a
 * shard is known to have nothing more when its last question was asked at the newest news and had an empty answer.
 * Elsewhere nobody knows without asking: who wants to know sets a time, and all is quiet when every shard was asked
 * since and had nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/ring.h"
#include "trigger/consume.h"

#define CLOSE_US 5000000 /* for batches under way, when the server ends */
#define LOOK_US  100000  /* the clock may jump */

/* ---- making and freeing ---- */

struct consumer *consumer_new(struct task_host *host, const struct environment *world,
                              const struct consumer_settings *settings)
{
    struct consumer *consumer = must_zero(1, sizeof *consumer);
    consumer->world = *world;
    consumer->settings = *settings;
    consumer->host = host;
    if (!settings->shared)
        snprintf(consumer->settings.owner, OWNER_BYTES, DYNAMO_OWNER_HERE "%.31s", settings->owner);
    buf_printf(&consumer->table, "\"%spositions\"", settings->prefix);
    pthread_mutex_init(&consumer->quiet_lock, NULL);
    consumer->last_news = consumer_news(consumer);
    return consumer;
}

void consumer_free(struct consumer *consumer)
{
    task_host_free(consumer->host);
    while (consumer->readers) {
        struct reader *reader = consumer->readers;
        consumer->readers = reader->next;
        reader_free(reader);
    }
    pthread_mutex_destroy(&consumer->quiet_lock);
    batch_calls_free(consumer);
    arena_free(&consumer->scratch);
    arena_free(&consumer->page_arena);
    buf_free(&consumer->text);
    buf_free(&consumer->table);
    free(consumer);
}

int64_t consumer_now_ms(const struct consumer *consumer)
{
    return task_host_now_ms(consumer->host);
}

int64_t consumer_ticks_us(const struct consumer *consumer)
{
    return task_host_ticks_us(consumer->host);
}

uint64_t consumer_news(const struct consumer *consumer)
{
    return consumer->world.news ? consumer->world.news(consumer->world.engine) : 0;
}

uint64_t consumer_random(struct consumer *consumer)
{
    return random_next(task_host_random(consumer->host));
}

/* ---- commands of other threads ---- */

static void add_reader(struct consumer *consumer, struct mapping *mapping)
{
    struct reader *reader = reader_new(consumer, mapping);
    reader->next = consumer->readers;
    consumer->readers = reader;
}

static void command_drop(struct task_note *note)
{
    struct command *command = ring_owner(note, struct command, note);
    mapping_release(command->mapping);
    free(command);
}

static void command_apply(struct task_note *note)
{
    struct command *command = ring_owner(note, struct command, note);
    struct consumer *consumer = command->consumer;
    struct slice id = slice_of(command->id);
    struct reader *reader = consumer->readers;
    while (reader && !slice_equal(reader->mapping->id, id)) reader = reader->next;
    if (command->mapping && reader)
        reader_change(reader, command->mapping);
    else if (command->mapping)
        add_reader(consumer, command->mapping);
    else if (reader)
        reader_remove(reader);
    else
        consumer->world.reached(consumer->world.mappings, id, MAPPING_DELETING);
    command_drop(note);
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->is_quiet = false; /* what was known of it was known before the command */
    consumer->commands_done++;
    pthread_mutex_unlock(&consumer->quiet_lock);
}

void consumer_command(struct consumer *consumer, struct mapping *mapping, struct slice id)
{
    struct command *command = must_zero(1, sizeof *command);
    command->note = (struct task_note){.run = command_apply, .drop = command_drop};
    command->consumer = consumer;
    command->mapping = mapping ? mapping_keep(mapping) : NULL;
    snprintf(command->id, sizeof command->id, "%.*s", SLICE_ARG(id));
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->commands_given++;
    pthread_mutex_unlock(&consumer->quiet_lock);
    task_host_post(consumer->host, &command->note);
}

/* ---- whether all is quiet ---- */

struct quiet {
    bool is_quiet;
    uint64_t news;
    int64_t since_us;
};

static void look_at_shard(const struct shard *shard, bool shared, struct quiet *quiet)
{
    bool is_anothers = (shared && (shard->state == SHARD_WAITS || shard->state == SHARD_FREE)) ||
                       lease_is_anothers(shard);
    if (shard->state == SHARD_ENDED || is_anothers) return;
    if (!shard_is_listed(shard) && !shard_is_held(shard)) return;
    quiet->is_quiet &= shard_is_quiet(shard) && shard->asked_news == quiet->news;
    if (shard->empty_us < quiet->since_us) quiet->since_us = shard->empty_us;
}

static void look_at_reader(const struct reader *reader, struct quiet *quiet)
{
    bool shared = reader->consumer->settings.shared;
    if (reader->successor) quiet->is_quiet = false;
    if (reader->is_lost_stream || reader->stage == READER_STOPPED || reader->stage == READER_GONE) return;
    quiet->is_quiet &= reader->stage == READER_RUNS && !reader->wanted_of[0] && !reader->must_look_again;
    for (const struct shard *shard = reader->shards; shard; shard = shard->next)
        look_at_shard(shard, shared, quiet);
    quiet->is_quiet = quiet->is_quiet && !misses_children(reader);
}

static void consumer_note_quiet(struct consumer *consumer)
{
    if (!atomic_load_explicit(&consumer->is_quiet_wanted, memory_order_relaxed)) return;
    struct quiet quiet = {.is_quiet = true, .news = consumer_news(consumer), .since_us = NEVER_US};
    for (const struct reader *reader = consumer->readers; reader; reader = reader->next)
        look_at_reader(reader, &quiet);
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->is_quiet = quiet.is_quiet;
    consumer->quiet_news = quiet.news;
    consumer->quiet_since_us = quiet.since_us;
    pthread_mutex_unlock(&consumer->quiet_lock);
}

/* The question must be asked before the answer counts; a good one is used up. */
static bool is_quiet_since_asked(struct consumer *consumer)
{
    int64_t probe_us = atomic_load(&consumer->probe_us);
    if (!probe_us) {
        atomic_store(&consumer->probe_us, consumer_ticks_us(consumer));
        return false;
    }
    if (!consumer->is_quiet || consumer->quiet_since_us < probe_us) return false;
    atomic_store(&consumer->probe_us, 0);
    return true;
}

bool consumer_is_quiet(struct consumer *consumer)
{
    uint64_t news = consumer_news(consumer);
    atomic_store(&consumer->is_quiet_wanted, true);
    pthread_mutex_lock(&consumer->quiet_lock);
    bool is_quiet = consumer->commands_given == consumer->commands_done &&
                    (consumer->world.news ? consumer->is_quiet && consumer->quiet_news == news
                                          : is_quiet_since_asked(consumer));
    pthread_mutex_unlock(&consumer->quiet_lock);
    if (!is_quiet) task_host_wake(consumer->host);
    return is_quiet;
}

/* ---- the turn ---- */

/* Records may have come. When there are fewer than before, the database was rolled back: what we know of positions and
 * records is of a time that never was. */
static void look_for_news(struct consumer *consumer)
{
    uint64_t news = consumer_news(consumer);
    if (news == consumer->last_news) return;
    bool is_rolled_back = news < consumer->last_news;
    consumer->last_news = news;
    if (is_rolled_back) consumer->positions_state = POSITIONS_UNKNOWN;
    for (struct reader *reader = consumer->readers; reader; reader = reader->next) {
        if (is_rolled_back) reader_begin_anew(reader);
        for (struct shard *shard = reader->shards; shard; shard = shard->next)
            if (shard->state == SHARD_HELD && !shard->is_reading) shard_touch(shard);
    }
}

/* True: another one began in the place of one that is gone. */
static bool forget_gone(struct consumer *consumer)
{
    bool has_new = false;
    for (struct reader **at = &consumer->readers; *at;) {
        struct reader *reader = *at;
        if (reader->stage != READER_GONE) {
            at = &reader->next;
            continue;
        }
        *at = reader->next;
        if (reader->successor && !consumer->is_stopping) {
            add_reader(consumer, reader->successor);
            if (at == &consumer->readers)
                at = &consumer->readers->next; /* that one stands before all others */
            has_new = true;
        }
        reader_free(reader);
    }
    return has_new;
}

/* When the oldest change was made that the reader has in hand; 0: it has none. */
static int64_t oldest_of(const struct reader *reader)
{
    int64_t oldest_ms = 0;
    for (const struct shard *shard = reader->shards; shard; shard = shard->next)
        for (uint32_t i = 0; shard->lanes && i < shard->lane_count; i++) {
            const struct lane *lane = &shard->lanes[i];
            if (lane->count && (!oldest_ms || lane_head(lane)->created_ms < oldest_ms))
                oldest_ms = lane_head(lane)->created_ms;
        }
    return oldest_ms;
}

static void copy_name(char *out, size_t room, struct slice name)
{
    snprintf(out, room, "%.*s", SLICE_ARG(name));
}

/* Of what people have made; with the lock held. */
static void note_lag(struct consumer *consumer, const struct mapping *mapping, int64_t oldest_ms)
{
    struct trigger_lag *lags = consumer->lags;
    unsigned place = consumer->lag_count;
    while (place > 0 && lags[place - 1].ms > oldest_ms) place--;
    if (place == LIMIT_CONSOLE_TOP) return;
    if (consumer->lag_count < LIMIT_CONSOLE_TOP) consumer->lag_count++;
    memmove(&lags[place + 1], &lags[place], (consumer->lag_count - place - 1) * sizeof *lags);
    lags[place].ms = oldest_ms;
    copy_name(lags[place].mapping, sizeof lags->mapping, mapping->id);
    copy_name(lags[place].table, sizeof lags->table, mapping_table_of(mapping->stream_arn));
    copy_name(lags[place].function, sizeof lags->function, mapping->function);
}

static void note_oldest(struct consumer *consumer)
{
    int64_t oldest_ms = 0;
    if (!atomic_exchange(&consumer->is_oldest_wanted, false)) return;
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->lag_count = 0;
    for (const struct reader *reader = consumer->readers; reader; reader = reader->next) {
        int64_t own_ms = oldest_of(reader);
        if (own_ms && !reader->mapping->watch) note_lag(consumer, reader->mapping, own_ms);
        if (own_ms && (!oldest_ms || own_ms < oldest_ms)) oldest_ms = own_ms;
    }
    pthread_mutex_unlock(&consumer->quiet_lock);
    atomic_store(&consumer->oldest_ms, oldest_ms);
}

int64_t consumer_step(struct consumer *consumer)
{
    int64_t wait_us;
    look_for_news(consumer);
    do {
        wait_us = task_host_step(consumer->host);
    } while (forget_gone(consumer));
    consumer_note_quiet(consumer);
    note_oldest(consumer);
    if (!consumer->readers) return -1;
    return wait_us < 0 || wait_us > LOOK_US ? LOOK_US : wait_us;
}

/* ---- stopping ---- */

static void touch_all(struct consumer *consumer)
{
    for (struct reader *reader = consumer->readers; reader; reader = reader->next) reader_stop(reader);
}

void consumer_stop(struct consumer *consumer)
{
    consumer->is_stopping = true;
    touch_all(consumer);
}

bool consumer_has_stopped(const struct consumer *consumer)
{
    for (const struct reader *reader = consumer->readers; reader; reader = reader->next)
        if (!reader_is_stopped(reader)) return false;
    return task_host_calls(consumer->host) == 0;
}

static void hear_of_news(struct engine_watcher *watcher, uint64_t next_sequence)
{
    (void)next_sequence;
    task_host_wake(ring_owner(watcher, struct consumer, watcher)->host);
}

/* ---- the thread ---- */

/* Batches under way have a while to end; calls of the door must. */
static void end(struct consumer *consumer)
{
    int64_t until_us = monotonic_us() + CLOSE_US;
    consumer_stop(consumer);
    for (;;) {
        int64_t wait_us = consumer_step(consumer);
        if (consumer_has_stopped(consumer)) return;
        if (!consumer->is_late && monotonic_us() >= until_us) {
            /* Leases are given back now: what late batches would still have done is not done. */
            consumer->is_late = true;
            touch_all(consumer);
            continue;
        }
        if (wait_us < 0 || wait_us > 20000) wait_us = 20000;
        if (wait_us) task_host_sleep(consumer->host, wait_us);
    }
}

static void *run(void *argument)
{
    struct consumer *consumer = argument;
    pthread_setname_np(pthread_self(), "quipu-triggers");
    while (!atomic_load(&consumer->is_ending)) {
        int64_t wait_us = consumer_step(consumer);
        if (wait_us) task_host_sleep(consumer->host, wait_us);
    }
    end(consumer);
    return NULL;
}

struct consumer *consumer_open(struct trigger *trigger)
{
    const struct trigger_options *options = &trigger->options;
    struct task_host *host = task_host_open(options->dynamo, options->clock);
    struct engine *engine = dynamo_engine(options->dynamo);
    const struct environment world = {.func = options->func,
                                      .invoke = func_invoke,
                                      .destination = destination_put,
                                      .mend_tables = func_tables_mend_in_task,
                                      .wake_queue = func_queue_wake,
                                      .allows_loops = func_allows_loops,
                                      .log_to = func_log,
                                      .engine = engine,
                                      .news = engine ? engine_stream_next : NULL,
                                      .note_result = mappings_note_result,
                                      .reached = mappings_reached,
                                      .stream_over = mappings_note_over};
    struct consumer_settings settings = {.prefix = trigger->prefix.data,
                                         .shared = options->shared,
                                         .lease_ms = options->lease_ms,
                                         .poll_ms = options->poll_ms};
    uint64_t a = random_next(task_host_random(host)), b = random_next(task_host_random(host));
    uuid_put(settings.owner, a, b);
    struct consumer *consumer = consumer_new(host, &world, &settings);
    consumer->watcher.notify = hear_of_news;
    return consumer;
}

void consumer_start(struct consumer *consumer)
{
    if (consumer->world.engine) engine_watch(consumer->world.engine, &consumer->watcher);
    ensure(pthread_create(&consumer->thread, NULL, run, consumer) == 0);
    consumer->is_running = true;
}

void consumer_halt(struct consumer *consumer)
{
    if (!consumer->is_running) return;
    if (consumer->world.engine) engine_unwatch(consumer->world.engine, &consumer->watcher);
    atomic_store(&consumer->is_ending, true);
    task_host_wake(consumer->host);
    pthread_join(consumer->thread, NULL);
    consumer->is_running = false;
}

void consumer_close(struct consumer *consumer)
{
    if (!consumer) return;
    consumer_halt(consumer);
    consumer_free(consumer);
}

/* ---- from other threads ---- */

void trigger_put_metrics(struct trigger *trigger, struct buf *out)
{
    const struct consumer_counts *counts = &trigger->consumer->counts;
#define PUT(member, name, type, help)                                                                        \
    stats_put_number(out, "quipu_trigger_" name, type, help, stats_read(&counts->member));
    CONSUMER_COUNTS(PUT)
#undef PUT
    stats_put_head(out, "quipu_trigger_start_seconds", "histogram",
                   "From the arrival of a batch's first record to its invocation.");
    histogram_put(out, "quipu_trigger_start_seconds", "", &counts->start_us, 1e6);
}

int64_t trigger_lag_ms(struct trigger *trigger)
{
    struct consumer *consumer = trigger->consumer;
    int64_t now_ms = task_host_now_ms(consumer->host);
    if (!stats_read(&consumer->counts.buffered_bytes)) {
        atomic_store(&consumer->oldest_ms, 0);
        return 0;
    }
    int64_t oldest_ms = atomic_load(&consumer->oldest_ms);
    atomic_store(&consumer->is_oldest_wanted, true);
    task_host_wake(consumer->host);
    return oldest_ms && now_ms > oldest_ms ? now_ms - oldest_ms : 0;
}

unsigned trigger_lags(struct trigger *trigger, struct trigger_lag out[LIMIT_CONSOLE_TOP])
{
    struct consumer *consumer = trigger->consumer;
    int64_t now_ms = task_host_now_ms(consumer->host);
    if (!stats_read(&consumer->counts.buffered_bytes)) return 0;
    pthread_mutex_lock(&consumer->quiet_lock);
    unsigned count = consumer->lag_count;
    memcpy(out, consumer->lags, count * sizeof *out);
    pthread_mutex_unlock(&consumer->quiet_lock);
    for (unsigned i = 0; i < count; i++) out[i].ms = now_ms > out[i].ms ? now_ms - out[i].ms : 0;
    return count;
}
