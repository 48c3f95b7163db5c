/* Errands: calls of the door and of functions that come back through the inbox.
 *
 * An errand keeps its feed and its strand alive (they are freed when none is under way), and it knows the
 * term of the strand's lease, so that an answer that comes too late is seen to be so. Only the inbox is
 * shared with other threads; it outlives the consumer while invocations are under way. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/fail.h"
#include "trigger/consume.h"
#include "trigger/watch.h"

#define SPARE_ERRANDS     64
#define SPARE_REPLY_BYTES (2 * 1024 * 1024) /* a buffer that has grown larger is given back */

/* ---- the inbox ---- */

struct inbox *inbox_new(void)
{
    struct inbox *inbox = must_zero(1, sizeof *inbox);
    pthread_condattr_t monotonic;
    pthread_mutex_init(&inbox->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&inbox->filled, &monotonic);
    pthread_condattr_destroy(&monotonic);
    atomic_init(&inbox->references, 1);
    return inbox;
}

void inbox_release(struct inbox *inbox)
{
    if (atomic_fetch_sub_explicit(&inbox->references, 1, memory_order_acq_rel) != 1) return;
    pthread_cond_destroy(&inbox->filled);
    pthread_mutex_destroy(&inbox->lock);
    free(inbox);
}

void inbox_wake(struct inbox *inbox)
{
    pthread_mutex_lock(&inbox->lock);
    inbox->is_woken = true;
    pthread_cond_signal(&inbox->filled);
    pthread_mutex_unlock(&inbox->lock);
}

void inbox_order(struct inbox *inbox, struct order *order)
{
    pthread_mutex_lock(&inbox->lock);
    order->next = NULL;
    *(inbox->last_order ? &inbox->last_order->next : &inbox->first_order) = order;
    inbox->last_order = order;
    pthread_cond_signal(&inbox->filled);
    pthread_mutex_unlock(&inbox->lock);
}

/* True when it was taken; false when nobody listens any more. */
static bool inbox_push(struct inbox *inbox, struct errand *errand)
{
    pthread_mutex_lock(&inbox->lock);
    bool is_closed = inbox->is_closed;
    if (!is_closed) {
        errand->next = NULL;
        *(inbox->last ? &inbox->last->next : &inbox->first) = errand;
        inbox->last = errand;
        pthread_cond_signal(&inbox->filled);
    }
    pthread_mutex_unlock(&inbox->lock);
    return !is_closed;
}

void inbox_wait(struct inbox *inbox, int64_t wait_us)
{
    int64_t until_us = monotonic_us() + wait_us;
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_mutex_lock(&inbox->lock);
    while (!inbox->first && !inbox->first_order && !inbox->is_woken) {
        if (wait_us < 0)
            pthread_cond_wait(&inbox->filled, &inbox->lock);
        else if (pthread_cond_timedwait(&inbox->filled, &inbox->lock, &until) == ETIMEDOUT)
            break;
    }
    pthread_mutex_unlock(&inbox->lock);
}

void inbox_take(struct inbox *inbox, struct errand **errands, struct order **orders)
{
    pthread_mutex_lock(&inbox->lock);
    *errands = inbox->first;
    *orders = inbox->first_order;
    inbox->first = inbox->last = NULL;
    inbox->first_order = inbox->last_order = NULL;
    inbox->is_woken = false;
    pthread_mutex_unlock(&inbox->lock);
}

void inbox_close(struct inbox *inbox)
{
    struct errand *errands;
    struct order *orders;
    pthread_mutex_lock(&inbox->lock);
    inbox->is_closed = true;
    pthread_mutex_unlock(&inbox->lock);
    inbox_take(inbox, &errands, &orders);
    while (errands) {
        struct errand *next = errands->next;
        if (errands->is_invocation) inbox_release(inbox);
        errand_free(errands);
        errands = next;
    }
    while (orders) {
        struct order *next = orders->next;
        order_free(orders);
        orders = next;
    }
}

void order_free(struct order *order)
{
    if (order->mapping) mapping_release(order->mapping);
    free(order);
}

/* ---- errands ---- */

struct errand *errand_new(struct feed *feed, struct strand *strand, void (*answered)(struct errand *errand))
{
    struct consumer *consumer = feed->consumer;
    struct errand *errand = consumer->spare;
    if (errand) {
        consumer->spare = errand->next;
        consumer->spare_count--;
    } else {
        errand = must_zero(1, sizeof *errand);
    }
    errand->consumer = consumer;
    errand->inbox = consumer->inbox;
    errand->answered = answered;
    errand->feed = feed;
    errand->strand = strand;
    errand->lane = NULL;
    errand->is_invocation = errand->needs_finish = false;
    errand->began_us = consumer_ticks_us(consumer);
    errand->began_ms = consumer_now_ms(consumer);
    errand->news = consumer_news(consumer);
    feed->errands++;
    if (strand) {
        strand->errands++;
        errand->term = strand->term;
    }
    return errand;
}

static void call_done(struct dynamo_call *call)
{
    struct errand *errand = (struct errand *)(void *)((char *)call - offsetof(struct errand, call));
    inbox_push(errand->inbox, errand); /* calls of the door all end before the inbox is closed */
}

void errand_call(struct errand *errand, struct slice operation)
{
    struct consumer *consumer = errand->consumer;
    errand->call.name = operation;
    errand->call.request = buf_view(&errand->request);
    errand->call.arena = &errand->arena;
    errand->call.reply = &errand->reply;
    errand->call.in_order = true; /* effects of several shards may meet in one item */
    errand->call.done = call_done;
    consumer->calls++;
    errand->needs_finish = !consumer->world.begin(consumer->world.self, &errand->call);
    if (errand->needs_finish) {
        consumer->has_turn = true;
        return;
    }
    errand->next = NULL;
    *(consumer->ready_last ? &consumer->ready_last->next : &consumer->ready_first) = errand;
    consumer->ready_last = errand;
}

static void invocation_done(struct invocation *invocation)
{
    struct errand *errand = (struct errand *)(void *)((char *)invocation -
                                                      offsetof(struct errand, invocation));
    struct inbox *inbox = errand->inbox;
    if (inbox_push(inbox, errand)) return;
    errand_free(errand);
    inbox_release(inbox);
}

void errand_invoke(struct errand *errand)
{
    struct consumer *consumer = errand->consumer;
    errand->is_invocation = true;
    errand->invocation.payload = buf_view(&errand->request);
    errand->invocation.arena = &errand->arena;
    errand->invocation.done = invocation_done;
    consumer->invocations++;
    atomic_fetch_add_explicit(&errand->inbox->references, 1, memory_order_relaxed);
    struct watch *watch = errand->feed->mapping->watch;
    if (watch)
        watch_invoke(watch, &errand->invocation);
    else
        consumer->world.invoke(consumer->world.self, &errand->invocation);
}

void errand_free(struct errand *errand)
{
    arena_free(&errand->arena);
    buf_free(&errand->request);
    buf_free(&errand->reply);
    buf_free(&errand->invocation.reply);
    buf_free(&errand->invocation.log);
    free(errand);
}

/* Kept for the next one, with its memory. */
static void errand_retire(struct consumer *consumer, struct errand *errand)
{
    bool is_large = errand->request.cap + errand->reply.cap > SPARE_REPLY_BYTES;
    if (consumer->spare_count == SPARE_ERRANDS || is_large) {
        errand_free(errand);
        return;
    }
    arena_reset(&errand->arena);
    errand->request.len = errand->reply.len = 0;
    buf_free(&errand->invocation.reply);
    buf_free(&errand->invocation.log);
    errand->invocation = (struct invocation){0};
    errand->call = (struct dynamo_call){0};
    errand->next = consumer->spare;
    consumer->spare = errand;
    consumer->spare_count++;
}

void errand_deliver(struct errand *errand)
{
    struct consumer *consumer = errand->consumer;
    if (errand->is_invocation) {
        consumer->invocations--;
        inbox_release(consumer->inbox);
    } else {
        consumer->calls--;
        if (errand->needs_finish) consumer->world.finish(consumer->world.self, &errand->call);
    }
    errand->answered(errand);
    errand->feed->errands--;
    if (errand->strand) errand->strand->errands--;
    if (errand->feed->stage == FEED_DRAINS) feed_touch(errand->feed);
    errand_retire(consumer, errand);
}

bool errand_is_current(const struct errand *errand)
{
    return errand->term == errand->strand->term;
}

enum dynamo_fault errand_fault(const struct errand *errand)
{
    enum dynamo_fault fault = dynamo_fault(errand->call.status,
                                           slice_of(errand->call.error ? errand->call.error : ""));
    return fault == DYNAMO_CONFLICT || fault == DYNAMO_IN_USE ? DYNAMO_AGAIN : fault;
}

struct slice errand_message(struct errand *errand)
{
    struct slice name, message;
    dynamo_error(buf_view(&errand->reply), &errand->arena, &name, &message);
    return message;
}

bool errand_each(struct errand *errand, struct slice array,
                 void (*take)(struct errand *errand, struct slice raw))
{
    struct raw_walk walk;
    struct slice raw;
    if (raw_walk_begin(&walk, &errand->arena, array) != JSON_ARRAY) return false;
    while (raw_walk_next(&walk, NULL, &raw)) take(errand, raw);
    return !json_failed(&walk.reader);
}
