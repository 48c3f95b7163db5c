/* The queue of asynchronous calls: accepted with one write, run later, retried, and removed together with
 * what they led to.
 *
 * What lasts is in the table (queue_item.c). Here is what this server knows of it: an *errand* for each call,
 * ordered by when it is due, and one thread that takes them through their stations: load, (claim,) run,
 * settle. None of these blocks it: calls of the door and invocations are begun, and come back to its list
 * when they are done.
 *
 * Invariants:
 *  Q1. A call that was accepted is in the table until its outcome is: it is removed in the transaction that
 *      writes what its function returned and what its destination is told. So these happen once, and a call
 *      that was cut off by a crash is run again.
 *  Q2. Every change of a call is on the condition of the fence that was read with it. Whoever finds another
 *      fence has lost the call to somebody else, and forgets it.
 *  Q3. What ends the server's life (REFUSED at the end) is no attempt: the call stays as it is.
 *  Q4. Where several servers share, a call is run by its holder while the lease lasts; a lease that is over
 *      can be taken by anybody. A function may then run twice; its returned writes are still applied once, by
 *      Q2.
 *
 * Time is the passed clock's, which may jump: the thread looks at least ten times a second while anything
 * waits. */
#include "func/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/stats.h"

#define LOOK_AGAIN_MS 100

static void *run_thread(void *queue);

/* ---- opening and closing ---- */

static void put_uuid(struct random *random, char *out)
{
    uint64_t a = random_next(random), b = random_next(random);
    snprintf(out, 37, "%08x-%04x-4%03x-%04x-%012llx", (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
             (unsigned)(a & 0xfff), (unsigned)(b >> 48 & 0x3fff) | 0x8000,
             (unsigned long long)(b & 0xffffffffffff));
}

void func_free_leases(struct dynamo *dynamo, const char *prefix)
{
    struct buf table = {0};
    buf_printf(&table, "%sinvocations", prefix ? prefix : "quipu-");
    buf_byte(&table, '\0');
    dynamo_leases_free(dynamo, &(struct dynamo_lease){table.data, "id", "part", "holder", "lease"});
    buf_free(&table);
}

struct queue *queue_open(struct func *func, char *error, size_t error_len)
{
    struct queue *queue = must_zero(1, sizeof *queue);
    (void)error, (void)error_len; /* what the table holds is read when the queue is started */
    queue->func = func;
    queue->table = arena_printf(&queue->texts, "%.*sinvocations", SLICE_ARG(func->prefix));
    random_seed_from_system(&queue->random);
    put_uuid(&queue->random, queue->me);
    if (!func->options.shared) memcpy(queue->me, DYNAMO_OWNER_HERE, strlen(DYNAMO_OWNER_HERE));
    pthread_mutex_init(&queue->lock, NULL);
    pthread_mutex_init(&queue->gate, NULL);
    pthread_mutex_init(&queue->table_lock, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->more, &attributes);
    pthread_condattr_destroy(&attributes);
    for (unsigned i = 0; i < QUEUE_BUCKETS; i++) ring_init(&queue->by_id[i]);
    atomic_store(&queue->next_due_ms, INT64_MAX);
    return queue;
}

void queue_start(struct queue *queue)
{
    ensure(pthread_create(&queue->thread, NULL, run_thread, queue) == 0);
    queue->has_thread = true;
}

static void queue_signal_end(struct queue *queue, bool *flag)
{
    pthread_mutex_lock(&queue->lock);
    *flag = true;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

void queue_stop(struct queue *queue)
{
    pthread_mutex_lock(&queue->gate);
    queue->is_shut = true;
    pthread_mutex_unlock(&queue->gate);
    queue_signal_end(queue, &queue->is_stopping);
}

static void errand_free(struct errand *errand)
{
    arena_free(&errand->arena);
    buf_free(&errand->invocation.reply);
    arena_free(&errand->renewal_arena);
    buf_free(&errand->request);
    buf_free(&errand->reply);
    buf_free(&errand->renewal_request);
    buf_free(&errand->renewal_reply);
    free(errand);
}

void queue_close(struct queue *queue)
{
    queue_stop(queue);
    queue_signal_end(queue, &queue->is_closing);
    if (queue->has_thread) pthread_join(queue->thread, NULL);
    for (size_t i = 0; i < queue->heap_len; i++) errand_free(queue->heap[i]);
    free(queue->heap);
    while (queue->puts) {
        struct put *put = queue->puts;
        queue->puts = put->next;
        free(put);
    }
    pthread_cond_destroy(&queue->more);
    pthread_mutex_destroy(&queue->lock);
    pthread_mutex_destroy(&queue->gate);
    pthread_mutex_destroy(&queue->table_lock);
    arena_free(&queue->texts);
    free(queue);
}

void queue_name(struct queue *queue, char id[37])
{
    pthread_mutex_lock(&queue->lock);
    put_uuid(&queue->random, id);
    pthread_mutex_unlock(&queue->lock);
}

int64_t queue_now_ms(const struct queue *queue)
{
    return clock_now_ms(queue->func->options.clock);
}

bool queue_is_at_rest(struct queue *queue)
{
    return atomic_load(&queue->active) == 0;
}

bool queue_is_idle(struct queue *queue)
{
    return queue_is_at_rest(queue) && atomic_load(&queue->next_due_ms) > queue_now_ms(queue);
}

void queue_put_metrics(struct queue *queue, struct buf *out)
{
    const struct queue_stats *stats = &queue->stats;
    stats_put_head(out, "quipu_async_calls_total", "counter", "Asynchronous calls by what became of them.");
    buf_printf(
        out,
        "quipu_async_calls_total{what=\"accepted\"} %llu\nquipu_async_calls_total{what=\"succeeded\"} %llu\n"
        "quipu_async_calls_total{what=\"failed\"} %llu\nquipu_async_calls_total{what=\"retried\"} %llu\n"
        "quipu_async_calls_total{what=\"throttled\"} %llu\nquipu_async_calls_total{what=\"redriven\"} %llu\n",
        (unsigned long long)stats_read(&stats->accepted), (unsigned long long)stats_read(&stats->succeeded),
        (unsigned long long)stats_read(&stats->failed), (unsigned long long)stats_read(&stats->retried),
        (unsigned long long)stats_read(&stats->throttled), (unsigned long long)stats_read(&stats->redriven));
}

/* ---- calls that come with the transactions of others ---- */

static void put_note(struct queue *queue, struct slice id)
{
    struct put *put = must_alloc(sizeof *put + id.len);
    put->made_us = monotonic_us();
    put->id_len = id.len;
    memcpy(put->id, id.data, id.len);
    pthread_mutex_lock(&queue->lock);
    if (queue->put_count == QUEUE_PUTS) { /* whoever put the oldest may never wake us: the table knows */
        struct put **last = &queue->puts;
        while ((*last)->next) last = &(*last)->next;
        free(*last);
        *last = NULL;
        queue->has_lost_puts = true;
        queue->put_count--;
    }
    put->next = queue->puts;
    queue->puts = put;
    queue->put_count++;
    pthread_mutex_unlock(&queue->lock);
}

unsigned func_queue_put(struct func *func, struct slice function, struct slice payload, struct slice cause,
                        struct slice id, struct buf *members)
{
    return func_queue_put_call(
        func, &(struct func_call){.function = function, .payload = payload, .cause = cause, .id = id},
        members);
}

unsigned func_queue_put_call(struct func *func, const struct func_call *call, struct buf *members)
{
    if (!queue_table_make(func->queue)) return 0;
    unsigned count = queue_put_members(func->queue, call, members);
    if (count) put_note(func->queue, call->id);
    return count;
}

void func_queue_wake(struct func *func)
{
    struct queue *queue = func->queue;
    pthread_mutex_lock(&queue->lock);
    if (!queue->is_woken) atomic_fetch_add(&queue->active, 1);
    queue->is_woken = true;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

/* Those that were put lately: each becomes an errand, which finds out whether it is there. Those that are too
 * old belong to transactions that failed. */
static void puts_take(struct queue *queue)
{
    int64_t now_us = monotonic_us(), now_ms = queue_now_ms(queue);
    pthread_mutex_lock(&queue->lock);
    bool woken = queue->is_woken;
    queue->is_woken = false;
    if (queue->has_lost_puts && woken) queue->is_overflowed = true;
    queue->has_lost_puts &= !woken;
    struct put **at = &queue->puts;
    while (woken && *at) {
        struct put *put = *at;
        errand_add(queue, (struct slice){put->id, put->id_len}, now_ms);
        if (now_us - put->made_us < (int64_t)QUEUE_PUT_MS * 1000) {
            at = &put->next;
            continue;
        }
        *at = put->next;
        queue->put_count--;
        free(put);
    }
    pthread_mutex_unlock(&queue->lock);
    if (woken) atomic_fetch_sub(&queue->active, 1);
}

void queue_put_found(struct queue *queue, struct slice id)
{
    pthread_mutex_lock(&queue->lock);
    for (struct put **at = &queue->puts; *at; at = &(*at)->next) {
        struct put *put = *at;
        if (!slice_equal((struct slice){put->id, put->id_len}, id)) continue;
        *at = put->next;
        queue->put_count--;
        free(put);
        break;
    }
    pthread_mutex_unlock(&queue->lock);
}

/* ---- errands by name and by time ---- */

static void heap_place(struct queue *queue, size_t at, struct errand *errand)
{
    queue->heap[at] = errand;
    errand->heap_at = at;
}

static void heap_rise(struct queue *queue, size_t at)
{
    struct errand *errand = queue->heap[at];
    while (at && queue->heap[(at - 1) / 2]->due_ms > errand->due_ms) {
        heap_place(queue, at, queue->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_place(queue, at, errand);
}

static void heap_sink(struct queue *queue, size_t at)
{
    struct errand *errand = queue->heap[at];
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= queue->heap_len) break;
        if (child + 1 < queue->heap_len && queue->heap[child + 1]->due_ms < queue->heap[child]->due_ms)
            child++;
        if (queue->heap[child]->due_ms >= errand->due_ms) break;
        heap_place(queue, at, queue->heap[child]);
        at = child;
    }
    heap_place(queue, at, errand);
}

static void heap_publish(struct queue *queue)
{
    atomic_store(&queue->next_due_ms, queue->heap_len ? queue->heap[0]->due_ms : INT64_MAX);
}

static void heap_add(struct queue *queue, struct errand *errand)
{
    if (queue->heap_len == queue->heap_room) {
        queue->heap_room = queue->heap_room ? queue->heap_room * 2 : 64;
        queue->heap = must_realloc(queue->heap, queue->heap_room * sizeof *queue->heap);
    }
    heap_place(queue, queue->heap_len++, errand);
    heap_rise(queue, queue->heap_len - 1);
    heap_publish(queue);
}

/* The first; it counts as active before it counts no more as waiting (and all the while, if it only paused).
 */
static struct errand *heap_take(struct queue *queue)
{
    struct errand *first = queue->heap[0];
    if (!first->resume) atomic_fetch_add(&queue->active, 1);
    struct errand *last = queue->heap[--queue->heap_len];
    if (last != first) {
        heap_place(queue, 0, last);
        heap_sink(queue, 0);
    }
    heap_publish(queue);
    return first;
}

static struct ring *bucket_of(struct queue *queue, struct slice id)
{
    return &queue->by_id[hash_bytes(id) % QUEUE_BUCKETS];
}

void errand_add(struct queue *queue, struct slice id, int64_t due_ms)
{
    struct ring *bucket = bucket_of(queue, id);
    ring_each(struct errand, known, by_id, bucket)
    {
        if (!slice_equal((struct slice){known->id, known->id_len}, id)) continue;
        if (known->state == ERRAND_WAITS && due_ms < known->due_ms) {
            known->due_ms = due_ms;
            heap_rise(queue, known->heap_at);
            heap_publish(queue);
        }
        return;
    }
    if (queue->errand_count == LIMIT_QUEUE_ENTRIES) {
        queue->is_overflowed = true;
        return;
    }
    struct errand *errand = must_zero(1, sizeof *errand + id.len);
    errand->queue = queue;
    errand->due_ms = due_ms;
    errand->id_len = id.len;
    memcpy(errand->id, id.data, id.len);
    ring_append(bucket, &errand->by_id);
    queue->errand_count++;
    heap_add(queue, errand);
}

void errand_wait(struct errand *errand, int64_t due_ms)
{
    arena_free(&errand->arena);
    buf_free(&errand->request);
    buf_free(&errand->reply);
    buf_free(&errand->invocation.reply);
    errand->state = ERRAND_WAITS;
    errand->due_ms = due_ms;
    heap_add(errand->queue, errand);
    atomic_fetch_sub(&errand->queue->active, 1);
}

void errand_pause(struct errand *errand, int64_t pause_ms, void (*resume)(struct errand *errand))
{
    errand->resume = resume;
    errand->due_ms = queue_now_ms(errand->queue) + pause_ms;
    heap_add(errand->queue, errand);
}

void errand_forget(struct errand *errand)
{
    struct queue *queue = errand->queue;
    ring_remove(&errand->by_id);
    queue->errand_count--;
    errand_free(errand);
    atomic_fetch_sub(&queue->active, 1);
}

/* ---- calls of the door ---- */

static void call_done(struct dynamo_call *call)
{
    struct errand *errand = ring_owner(call, struct errand, call);
    struct queue *queue = errand->queue;
    pthread_mutex_lock(&queue->lock);
    errand->next_done = queue->done;
    queue->done = errand;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

void queue_errand_call(struct errand *errand, const char *operation, void (*then)(struct errand *errand))
{
    struct queue *queue = errand->queue;
    errand->reply.len = 0;
    errand->then = then;
    errand->is_calling = true;
    errand->call = (struct dynamo_call){.name = slice_of(operation),
                                        .request = buf_view(&errand->request),
                                        .arena = &errand->arena,
                                        .reply = &errand->reply,
                                        .cause = errand->written_cause,
                                        .in_order = true,
                                        .done = call_done};
    if (!dynamo_begin(queue->func->options.dynamo, &errand->call, &queue->turn)) return;
    errand->is_calling = false;
    then(errand);
}

static void errands_go_on(struct errand *done)
{
    struct errand *first = NULL;
    while (done) { /* the oldest stands last */
        struct errand *next = done->next_done;
        done->next_done = first;
        first = done;
        done = next;
    }
    while (first) {
        struct errand *errand = first;
        first = errand->next_done;
        if (errand->is_calling) dynamo_finish(&errand->call);
        errand->is_calling = false;
        errand->then(errand);
    }
}

/* ---- the thread ---- */

static void errands_renew(struct queue *queue)
{
    int64_t now_us = monotonic_us();
    if (!queue->func->options.shared) return;
    for (unsigned i = 0; i < QUEUE_BUCKETS; i++)
        ring_each(struct errand, errand, by_id, &queue->by_id[i]) errand_renew(errand, now_us);
}

/* All that do not wait are under way: being read, running, or being written. */
static bool queue_has_room(const struct queue *queue)
{
    return queue->errand_count - queue->heap_len < LIMIT_QUEUE_RUNNING;
}

static void errands_begin(struct queue *queue)
{
    int64_t now_ms = queue_now_ms(queue);
    while (queue->heap_len && queue->heap[0]->due_ms <= now_ms && queue_has_room(queue)) {
        struct errand *errand = heap_take(queue);
        void (*resume)(struct errand *) = errand->resume;
        errand->resume = NULL;
        if (resume)
            resume(errand);
        else
            errand_begin(errand);
    }
    if (queue->is_overflowed && queue->errand_count < LIMIT_QUEUE_ENTRIES / 2) queue->look_us = 0;
}

/* At the end those that paused do not go on: their calls are still in the table. */
static void errands_abandon(struct queue *queue)
{
    for (size_t i = 0; i < queue->heap_len; i++) {
        if (!queue->heap[i]->resume) continue;
        queue->heap[i]->resume = NULL;
        atomic_fetch_sub(&queue->active, 1);
    }
}

/* Sleeps until something is done or may be due. */
static void queue_sleep(struct queue *queue)
{
    bool ticks = queue->heap_len || queue->func->options.shared || queue->look_us != INT64_MAX;
    pthread_mutex_lock(&queue->lock);
    bool idle = !queue->done && !queue->renewed && !queue->accepted && !queue->is_woken && !queue->look_done;
    if (idle && !queue->is_closing) {
        int64_t until_us = monotonic_us() + LOOK_AGAIN_MS * 1000;
        struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
        if (ticks)
            pthread_cond_timedwait(&queue->more, &queue->lock, &until);
        else
            pthread_cond_wait(&queue->more, &queue->lock);
    } else if (idle) { /* at the end, only what is under way is waited for */
        int64_t until_us = monotonic_us() + 1000;
        struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
        pthread_cond_timedwait(&queue->more, &queue->lock, &until);
    }
    pthread_mutex_unlock(&queue->lock);
}

static void *run_thread(void *context)
{
    struct queue *queue = context;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        struct errand *done = queue->done, *renewed = queue->renewed;
        struct acceptance *accepted = queue->accepted;
        bool stopping = queue->is_stopping, closing = queue->is_closing;
        queue->done = queue->renewed = NULL;
        queue->accepted = NULL;
        pthread_mutex_unlock(&queue->lock);
        acceptances_finish(queue, accepted);
        while (renewed) {
            struct errand *errand = renewed;
            renewed = errand->next_renewed;
            errand_renewed(errand);
        }
        errands_go_on(done);
        puts_take(queue);
        queue_look(queue);
        if (stopping) {
            errands_abandon(queue);
        } else {
            errands_begin(queue);
            errands_renew(queue);
        }
        dynamo_turn_end(queue->func->options.dynamo, &queue->turn);
        if (closing && atomic_load(&queue->active) == 0) return NULL;
        queue_sleep(queue);
    }
}
