/* The consumer's turn: its tasks go on, and whoever waits for news is told of them. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "trigger/consume.h"

#define LOOK_US 100000 /* the clock may jump */

/* ---- making and freeing ---- */

static bool host_begin(void *self, struct dynamo_call *call)
{
    struct consumer *consumer = self;
    return consumer->world.begin(consumer->world.self, call);
}

static void host_turn_end(void *self)
{
    struct consumer *consumer = self;
    consumer->world.turn_end(consumer->world.self);
}

static void host_finish(void *self, struct dynamo_call *call)
{
    struct consumer *consumer = self;
    consumer->world.finish(consumer->world.self, call);
}

static int64_t host_now_ms(void *self)
{
    return consumer_now_ms(self);
}

static int64_t host_ticks_us(void *self)
{
    return consumer_ticks_us(self);
}

struct consumer *consumer_new(const struct environment *world, const struct consumer_settings *settings)
{
    struct consumer *consumer = must_zero(1, sizeof *consumer);
    consumer->world = *world;
    consumer->settings = *settings;
    if (!settings->shared)
        snprintf(consumer->settings.owner, OWNER_BYTES, DYNAMO_OWNER_HERE "%.31s", settings->owner);
    consumer->host = task_host_new(&(struct task_environment){.self = consumer,
                                                              .begin = host_begin,
                                                              .turn_end = host_turn_end,
                                                              .finish = host_finish,
                                                              .now_ms = host_now_ms,
                                                              .ticks_us = host_ticks_us},
                                   settings->seed);
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
    return consumer->world.now_ms(consumer->world.self);
}

int64_t consumer_ticks_us(const struct consumer *consumer)
{
    return consumer->world.ticks_us(consumer->world.self);
}

uint64_t consumer_news(const struct consumer *consumer)
{
    return consumer->world.news ? consumer->world.news(consumer->world.self) : 0;
}

uint64_t consumer_random(struct consumer *consumer)
{
    return random_next(task_host_random(consumer->host));
}

bool each_element(struct slice array, struct arena *arena, void (*take)(void *context, struct slice raw),
                  void *context)
{
    struct raw_walk walk;
    struct slice raw;
    if (raw_walk_begin(&walk, arena, array) != JSON_ARRAY) return false;
    while (raw_walk_next(&walk, NULL, &raw)) take(context, raw);
    return !json_failed(&walk.reader);
}

/* ---- orders ---- */

static struct reader *find_reader(struct consumer *consumer, struct slice id)
{
    struct reader *reader = consumer->readers;
    while (reader && !slice_equal(reader->mapping->id, id)) reader = reader->next;
    return reader;
}

static void add_reader(struct consumer *consumer, struct mapping *mapping)
{
    struct reader *reader = reader_new(consumer, mapping);
    reader->next = consumer->readers;
    consumer->readers = reader;
}

static struct order *order_of(struct task_note *note)
{
    return (struct order *)(void *)((char *)note - offsetof(struct order, note));
}

static void order_drop(struct task_note *note)
{
    struct order *order = order_of(note);
    if (order->mapping) mapping_release(order->mapping);
    free(order);
}

static void obey(struct task_note *note)
{
    struct order *order = order_of(note);
    struct consumer *consumer = order->consumer;
    struct slice id = slice_of(order->id);
    struct reader *reader = find_reader(consumer, id);
    if (order->mapping && reader)
        reader_change(reader, order->mapping);
    else if (order->mapping)
        add_reader(consumer, order->mapping);
    else if (reader)
        reader_remove(reader);
    else
        consumer->world.reached(consumer->world.self, id, MAPPING_DELETING);
    order_drop(note);
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->is_quiet = false; /* what was known of it was known before the order */
    consumer->orders_done++;
    pthread_mutex_unlock(&consumer->quiet_lock);
}

void consumer_order(struct consumer *consumer, struct mapping *mapping, struct slice id)
{
    struct order *order = must_zero(1, sizeof *order);
    order->note = (struct task_note){.run = obey, .drop = order_drop};
    order->consumer = consumer;
    order->mapping = mapping ? mapping_keep(mapping) : NULL;
    snprintf(order->id, sizeof order->id, "%.*s", SLICE_ARG(id));
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->orders_given++;
    pthread_mutex_unlock(&consumer->quiet_lock);
    task_host_post(consumer->host, &order->note);
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

int64_t consumer_step(struct consumer *consumer)
{
    int64_t wait_us;
    look_for_news(consumer);
    do {
        wait_us = task_host_step(consumer->host);
    } while (forget_gone(consumer));
    consumer_note_quiet(consumer);
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

void consumer_give_back(struct consumer *consumer)
{
    consumer->is_late = true;
    touch_all(consumer);
}

bool consumer_has_stopped(const struct consumer *consumer)
{
    for (const struct reader *reader = consumer->readers; reader; reader = reader->next)
        if (!reader_is_stopped(reader)) return false;
    return task_host_calls(consumer->host) == 0;
}
