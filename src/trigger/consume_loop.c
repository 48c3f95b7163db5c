/* The consumer's turn: takes what came back, attends to what it touches, and tells when it is next wanted. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "trigger/consume.h"

#define CLOCK_JUMP_US 20000  /* the wall clock went another way than time */
#define CLOCK_LOOK_US 100000 /* how often that is looked for, while somebody waits for a time of day */

/* ---- making and freeing ---- */

struct consumer *consumer_new(const struct surroundings *world, const struct consumer_settings *settings)
{
    struct consumer *consumer = must_zero(1, sizeof *consumer);
    consumer->world = *world;
    consumer->settings = *settings;
    if (!settings->shared)
        snprintf(consumer->settings.owner, OWNER_BYTES, DYNAMO_OWNER_HERE "%.31s", settings->owner);
    consumer->inbox = inbox_new();
    consumer->next_due_us = NEVER_US;
    random_seed(&consumer->random, settings->seed);
    buf_printf(&consumer->table, "\"%spositions\"", settings->prefix);
    pthread_mutex_init(&consumer->quiet_lock, NULL);
    consumer->last_news = consumer_news(consumer);
    consumer->wall_offset_us = consumer_now_ms(consumer) * 1000 - consumer_ticks_us(consumer);
    return consumer;
}

static void free_ready(struct consumer *consumer)
{
    while (consumer->ready_first) {
        struct errand *errand = consumer->ready_first;
        consumer->ready_first = errand->next;
        errand_free(errand);
    }
    while (consumer->spare) {
        struct errand *errand = consumer->spare;
        consumer->spare = errand->next;
        errand_free(errand);
    }
}

void consumer_free(struct consumer *consumer)
{
    inbox_close(consumer->inbox);
    free_ready(consumer);
    while (consumer->feeds) {
        struct feed *feed = consumer->feeds;
        consumer->feeds = feed->next;
        feed_free(feed);
    }
    inbox_release(consumer->inbox);
    pthread_mutex_destroy(&consumer->quiet_lock);
    arena_free(&consumer->scratch);
    buf_free(&consumer->text);
    buf_free(&consumer->table);
    free(consumer);
}

/* ---- time ---- */

int64_t consumer_now_ms(const struct consumer *consumer)
{
    return consumer->world.now_ms(consumer->world.self);
}

int64_t consumer_ticks_us(const struct consumer *consumer)
{
    return consumer->world.ticks_us(consumer->world.self);
}

struct due due_after_us(const struct consumer *consumer, int64_t us)
{
    return (struct due){consumer_now_ms(consumer) + us / 1000, consumer_ticks_us(consumer) + us};
}

bool due_is_over(const struct consumer *consumer, const struct due *due)
{
    return consumer_ticks_us(consumer) >= due->ticks_us || consumer_now_ms(consumer) >= due->wall_ms;
}

uint64_t consumer_news(const struct consumer *consumer)
{
    return consumer->world.news ? consumer->world.news(consumer->world.self) : 0;
}

/* ---- orders ---- */

void consumer_order(struct consumer *consumer, struct mapping *mapping, struct slice id)
{
    struct order *order = must_zero(1, sizeof *order);
    order->mapping = mapping ? mapping_keep(mapping) : NULL;
    snprintf(order->id, sizeof order->id, "%.*s", SLICE_ARG(id));
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->orders_given++;
    pthread_mutex_unlock(&consumer->quiet_lock);
    inbox_order(consumer->inbox, order);
}

static struct feed *find_feed(struct consumer *consumer, struct slice id)
{
    struct feed *feed = consumer->feeds;
    while (feed && !slice_equal(feed->mapping->id, id)) feed = feed->next;
    return feed;
}

static void add_feed(struct consumer *consumer, struct mapping *mapping)
{
    struct feed *feed = feed_new(consumer, mapping);
    feed->next = consumer->feeds;
    consumer->feeds = feed;
}

static void obey(struct consumer *consumer, struct order *order)
{
    struct slice id = slice_of(order->id);
    struct feed *feed = find_feed(consumer, id);
    if (order->mapping && feed) {
        feed_change(feed, order->mapping);
    } else if (order->mapping) {
        add_feed(consumer, order->mapping);
    } else if (feed) {
        feed_remove(feed);
    } else {
        consumer->world.reached(consumer->world.self, id, MAPPING_DELETING);
    }
    order_free(order);
    pthread_mutex_lock(&consumer->quiet_lock);
    consumer->is_quiet = false; /* what was known of it was known before the order */
    consumer->orders_done++;
    pthread_mutex_unlock(&consumer->quiet_lock);
}

/* ---- attending ---- */

static void attend(struct consumer *consumer)
{
    while (consumer->touched_first) {
        struct strand *strand = consumer->touched_first;
        consumer->touched_first = strand->next_touched;
        if (!consumer->touched_first) consumer->touched_last = NULL;
        strand->is_touched = false;
        strand_attend(strand);
    }
    for (struct feed *feed = consumer->feeds; feed; feed = feed->next)
        if (feed->is_touched) feed_attend(feed);
    if (!consumer->has_turn) return;
    consumer->has_turn = false;
    consumer->world.turn_end(consumer->world.self);
}

/* Until nothing more follows at once. */
static void attend_all(struct consumer *consumer)
{
    bool again;
    do {
        attend(consumer);
        again = consumer->touched_first != NULL;
        for (struct feed *feed = consumer->feeds; feed && !again; feed = feed->next) again = feed->is_touched;
    } while (again);
}

static void deliver_all(struct consumer *consumer, struct errand *errand)
{
    while (errand) {
        struct errand *next = errand->next;
        errand_deliver(errand);
        attend_all(consumer);
        errand = next;
    }
}

static void touch_all(struct consumer *consumer)
{
    for (struct feed *feed = consumer->feeds; feed; feed = feed->next) {
        feed_touch(feed);
        for (struct strand *strand = feed->strands; strand; strand = strand->next) strand_touch(strand);
    }
}

static void touch_held(struct consumer *consumer)
{
    for (struct feed *feed = consumer->feeds; feed; feed = feed->next)
        for (struct strand *strand = feed->strands; strand; strand = strand->next)
            if (strand->state == STRAND_HELD && !strand->is_reading) strand_touch(strand);
}

static void wake_due(struct consumer *consumer, int64_t now_us)
{
    int64_t next_us = NEVER_US;
    for (struct feed *feed = consumer->feeds; feed; feed = feed->next) {
        if (feed->due_us <= now_us) feed_touch(feed);
        if (feed->due_us > now_us && feed->due_us < next_us) next_us = feed->due_us;
        for (struct strand *strand = feed->strands; strand; strand = strand->next) {
            if (strand->due_us <= now_us) strand_touch(strand);
            if (strand->due_us > now_us && strand->due_us < next_us) next_us = strand->due_us;
        }
    }
    consumer->next_due_us = next_us;
}

/* The database was rolled back: what we know of positions and records is of a time that never was. */
static void begin_anew(struct consumer *consumer)
{
    consumer->positions_state = POSITIONS_UNKNOWN;
    for (struct feed *feed = consumer->feeds; feed; feed = feed->next) feed_begin_anew(feed);
}

/* Time, the clock's jumps, and news. */
static void look_around(struct consumer *consumer)
{
    int64_t now_us = consumer_ticks_us(consumer);
    int64_t offset_us = consumer_now_ms(consumer) * 1000 - now_us;
    int64_t jump_us = offset_us - consumer->wall_offset_us;
    if (jump_us > CLOCK_JUMP_US || jump_us < -CLOCK_JUMP_US) {
        consumer->wall_offset_us = offset_us;
        touch_all(consumer);
    }
    uint64_t news = consumer_news(consumer);
    if (news < consumer->last_news) begin_anew(consumer);
    if (news != consumer->last_news) {
        consumer->last_news = news;
        touch_held(consumer);
    }
    if (now_us >= consumer->next_due_us) wake_due(consumer, now_us);
}

static void forget_gone(struct consumer *consumer)
{
    bool has_new = false;
    for (struct feed **at = &consumer->feeds; *at;) {
        struct feed *feed = *at;
        if (feed->stage != FEED_GONE || feed->errands) {
            at = &feed->next;
            continue;
        }
        *at = feed->next;
        if (feed->successor && !consumer->is_stopping) {
            add_feed(consumer, feed->successor);
            if (at == &consumer->feeds) at = &consumer->feeds->next; /* that one stands before all others */
            has_new = true;
        }
        feed_free(feed);
    }
    if (has_new) attend_all(consumer);
}

int64_t consumer_step(struct consumer *consumer)
{
    struct errand *errands, *ready;
    struct order *orders;
    inbox_take(consumer->inbox, &errands, &orders);
    while (orders) {
        struct order *next = orders->next;
        obey(consumer, orders);
        orders = next;
    }
    look_around(consumer);
    attend_all(consumer);
    ready = consumer->ready_first;
    consumer->ready_first = consumer->ready_last = NULL;
    deliver_all(consumer, errands);
    deliver_all(consumer, ready);
    forget_gone(consumer);
    consumer_note_quiet(consumer);
    if (consumer->ready_first) return 0;
    if (!consumer->feeds) return -1;
    int64_t wait_us = consumer->next_due_us - consumer_ticks_us(consumer);
    return wait_us < 0 ? 0 : wait_us > CLOCK_LOOK_US ? CLOCK_LOOK_US : wait_us;
}

/* ---- stopping ---- */

void consumer_stop(struct consumer *consumer)
{
    consumer->is_stopping = true;
    for (struct feed *feed = consumer->feeds; feed; feed = feed->next) feed_stop(feed);
}

bool consumer_has_stopped(const struct consumer *consumer)
{
    for (const struct feed *feed = consumer->feeds; feed; feed = feed->next)
        if (!feed_is_stopped(feed)) return false;
    return consumer->calls == 0;
}
