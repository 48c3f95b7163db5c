/* The queue of asynchronous calls: accepted with one write, run later, retried, and removed together with
 * what they led to.
 *
 * What lasts is in the table (queue_item.c). Here is what this server knows of it: the names of calls, ordered by when
 * they are due. A task takes each that is due through its stations (queue_run.c): it is read, claimed, run, and
 * settled. All tasks share one thread.
 *
 * Invariants:
 *  Q1. A call that was accepted is open in the table until its outcome is there: one commit (task.h) writes what its
 *      function returned and what its destination is told, and ends it. So these happen once, and a call that was cut
 *      off by a crash is run again. Where there are no transactions what is told has an id that follows from the
 *      call's, and the call stays as a tombstone.
 *  Q2. Every change of a call is on the condition of the fence that was read with it. Whoever finds another
 *      fence has lost the call to somebody else, and forgets it.
 *  Q3. What ends the server's life (REFUSED at the end) is no attempt: the call stays as it is.
 *  Q4. Where several servers share, a call is run by its owner while its hold lasts; one that is over
 *      can be taken by anybody. A function may then run twice; its returned writes are still applied once, by
 *      the condition on its fence.
 *  Q5. A target has no more calls under way than there is room left for others. So one that does not answer, however
 *      many of its calls wait, holds up nobody else's. */
#include "func/queue.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/stats.h"

#define END_POLL_US 1000 /* at the end what is under way is waited for */

static void dispatch_task(void *argument);
static void scan_task(void *argument);

/* ---- opening and closing ---- */

void func_free_leases(struct dynamo *dynamo, const char *prefix)
{
    dynamo_leases_free(dynamo, prefix, &(struct dynamo_leased){"invocations", "id", "part"});
}

static void note_stopping(struct task_note *note)
{
    struct queue *queue = ring_owner(note, struct queue, stopping);
    queue->is_stopping = true;
    task_signal_give(&queue->changed);
}

static void note_closing(struct task_note *note)
{
    struct queue *queue = ring_owner(note, struct queue, closing);
    queue->is_closing = true;
    task_signal_give(&queue->changed);
}

static void note_waking(struct task_note *note);

struct queue *queue_open(struct func *func, char *error, size_t error_len)
{
    struct queue *queue = must_zero(1, sizeof *queue);
    (void)error, (void)error_len; /* what the table holds is read when the queue is started */
    queue->func = func;
    queue->table = arena_printf(&queue->texts, "%.*sinvocations", SLICE_ARG(func->prefix));
    queue->host = task_host_open(func->options.dynamo, func->options.clock);
    queue->stopping.run = note_stopping;
    queue->closing.run = note_closing;
    queue->waking.run = note_waking;
    random_seed_from_system(&queue->random);
    uuid_put(queue->me, random_next(&queue->random), random_next(&queue->random));
    if (!func->options.shared) memcpy(queue->me, DYNAMO_OWNER_HERE, strlen(DYNAMO_OWNER_HERE));
    pthread_mutex_init(&queue->lock, NULL);
    pthread_mutex_init(&queue->gate, NULL);
    pthread_mutex_init(&queue->table_lock, NULL);
    for (unsigned i = 0; i < QUEUE_BUCKETS; i++) ring_init(&queue->by_id[i]);
    for (unsigned i = 0; i < QUEUE_TARGETS; i++) ring_init(&queue->targets[i].held);
    atomic_store(&queue->next_due_ms, INT64_MAX);
    return queue;
}

static void *run_thread(void *queue)
{
    task_host_run(((struct queue *)queue)->host);
    return NULL;
}

void queue_start(struct queue *queue)
{
    atomic_fetch_add(&queue->active, 1); /* the scan's, until it has ended the first time */
    task_begin(queue->host, dispatch_task, queue);
    task_begin(queue->host, scan_task, queue);
    ensure(pthread_create(&queue->thread, NULL, run_thread, queue) == 0);
    queue->has_thread = true;
}

void queue_stop(struct queue *queue)
{
    pthread_mutex_lock(&queue->gate);
    bool was_shut = queue->is_shut;
    queue->is_shut = true;
    pthread_mutex_unlock(&queue->gate);
    if (!was_shut) task_host_post(queue->host, &queue->stopping);
}

void queue_close(struct queue *queue)
{
    queue_stop(queue);
    task_host_post(queue->host, &queue->closing);
    if (queue->has_thread) pthread_join(queue->thread, NULL);
    task_host_step(queue->host); /* where it was never started */
    task_host_free(queue->host);
    for (unsigned i = 0; i < QUEUE_BUCKETS; i++)
        ring_each(struct pending, pending, by_id, &queue->by_id[i]) free(pending);
    heap_free(&queue->due);
    while (queue->puts) {
        struct put *put = queue->puts;
        queue->puts = put->next;
        free(put);
    }
    pthread_mutex_destroy(&queue->lock);
    pthread_mutex_destroy(&queue->gate);
    pthread_mutex_destroy(&queue->table_lock);
    arena_free(&queue->texts);
    free(queue);
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

uint64_t queue_count(const struct queue *queue)
{
    return atomic_load(&queue->pending_count);
}

void queue_put_metrics(struct queue *queue, struct buf *out)
{
    stats_put_head(out, "quipu_async_calls_total", "counter", "Asynchronous calls by what became of them.");
#define X(what)                                                                                              \
    buf_printf(out, "quipu_async_calls_total{what=\"" #what "\"} %llu\n",                                     \
               (unsigned long long)stats_read(&queue->stats.what));
    QUEUE_STATS(X)
#undef X
}

/* ---- accepting ---- */

static void make_table(void *queue)
{
    atomic_store(&((struct queue *)queue)->table_is_made, false);
    queue_table_make(queue);
}

/* The first call ever finds no table: it is made. */
static void accept_task(void *argument)
{
    struct queued *queued = argument;
    struct queue *queue = queued->queue;
    struct slice members = buf_view(&queued->members);
    size_t parts_len = queued->first ? queued->first - 1 : 0; /* without the last comma */
    struct task_commit commit = {.anchor = slice_from(members, queued->first),
                                 .children = {members.data, parts_len}};
    struct task_commit_reply reply = task_commit(&commit);
    if (reply.end == COMMIT_REFUSED && reply.fault == DYNAMO_MISSING) {
        task_outside(make_table, queue);
        reply = task_commit(&commit);
    }
    queued->status = reply.end == COMMIT_DONE ? 200 : reply.end == COMMIT_MAY_PASS ? 500 : 400;
    if (reply.end == COMMIT_DONE) {
        stats_add(&queue->stats.accepted, 1);
        queue_remember(queue, slice_of(queued->id), queue_now_ms(queue));
    }
    buf_free(&queued->members);
    queued->accepted(queued);
    atomic_fetch_sub(&queue->active, 1);
}

static void note_acceptance(struct task_note *note)
{
    struct queued *queued = ring_owner(note, struct queued, note);
    task_begin(queued->queue->host, accept_task, queued);
}

void queue_accept(struct queue *queue, struct queued *queued)
{
    queued->queue = queue;
    queued->note = (struct task_note){.run = note_acceptance};
    queued->members = (struct buf){0};
    pthread_mutex_lock(&queue->lock);
    uuid_put(queued->id, random_next(&queue->random), random_next(&queue->random));
    pthread_mutex_unlock(&queue->lock);
    struct func_call call = {.function = queued->function,
                             .payload = queued->payload,
                             .cause = queued->cause,
                             .id = slice_of(queued->id)};
    if (!queue_put_members(queue, &call, &queued->members, &queued->first)) {
        queued->status = 400;
        queued->accepted(queued);
        return;
    }
    atomic_fetch_add(&queue->active, 1);
    task_host_post(queue->host, &queued->note);
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

unsigned func_queue_put(struct func *func, const struct func_call *call, struct buf *members)
{
    if (!queue_table_make(func->queue)) return 0;
    size_t first;
    unsigned count = queue_put_members(func->queue, call, members, &first);
    if (count) put_note(func->queue, call->id);
    return count;
}

void func_queue_wake(struct func *func)
{
    struct queue *queue = func->queue;
    pthread_mutex_lock(&queue->lock);
    bool was_woken = queue->is_woken;
    queue->is_woken = true;
    if (!was_woken) {
        atomic_fetch_add(&queue->active, 1);
        task_host_post(queue->host, &queue->waking);
    }
    pthread_mutex_unlock(&queue->lock);
}

/* Those that were put lately: each is looked for. Those that are too old belong to transactions that failed. */
static void note_waking(struct task_note *note)
{
    struct queue *queue = ring_owner(note, struct queue, waking);
    int64_t now_us = monotonic_us(), now_ms = queue_now_ms(queue);
    pthread_mutex_lock(&queue->lock);
    queue->is_woken = false;
    queue->is_overflowed |= queue->has_lost_puts;
    queue->has_lost_puts = false;
    struct put **at = &queue->puts;
    while (*at) {
        struct put *put = *at;
        queue_remember(queue, (struct slice){put->id, put->id_len}, now_ms);
        if (now_us - put->made_us < (int64_t)QUEUE_PUT_MS * 1000) {
            at = &put->next;
            continue;
        }
        *at = put->next;
        queue->put_count--;
        free(put);
    }
    pthread_mutex_unlock(&queue->lock);
    atomic_fetch_sub(&queue->active, 1);
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

/* ---- calls by name and by time ---- */

static void pending_due(struct pending *pending, int64_t due_ms)
{
    struct queue *queue = pending->queue;
    heap_set(&queue->due, &pending->due, due_ms);
    atomic_store(&queue->next_due_ms, heap_due(&queue->due));
    task_signal_give(&queue->changed);
}

void queue_remember(struct queue *queue, struct slice id, int64_t due_ms)
{
    struct ring *bucket = &queue->by_id[hash_bytes(id) % QUEUE_BUCKETS];
    ring_each(struct pending, known, by_id, bucket)
    {
        if (!slice_equal((struct slice){known->id, known->id_len}, id)) continue;
        if (known->due.number && due_ms < known->due.due) pending_due(known, due_ms);
        return;
    }
    if (queue->pending_count == LIMIT_QUEUE_ENTRIES) {
        queue->is_overflowed = true;
        return;
    }
    struct pending *pending = must_zero(1, sizeof *pending + id.len);
    pending->queue = queue;
    ring_init(&pending->held);
    pending->id_len = id.len;
    memcpy(pending->id, id.data, id.len);
    ring_append(bucket, &pending->by_id);
    queue->pending_count++;
    pending_due(pending, due_ms);
}

/* ---- room ---- */

static unsigned room_left(const struct queue *queue)
{
    size_t in_hand = queue->pending_count - queue->due.count - queue->held_count;
    return in_hand < LIMIT_QUEUE_RUNNING ? LIMIT_QUEUE_RUNNING - (unsigned)in_hand : 0;
}

bool queue_target_enter(struct async_call *call)
{
    struct queue_target *target = &call->queue->targets[hash_bytes(call->function) % QUEUE_TARGETS];
    if (target->running && target->running >= room_left(call->queue)) {
        ring_append(&target->held, &call->pending->held);
        return false;
    }
    target->running++;
    call->target = target;
    return true;
}

/* In the place of one that has ended another one is looked at, and a second where there is room for more. */
static void target_release(struct queue *queue, struct queue_target *target)
{
    for (unsigned i = 0; i < 2 && !ring_empty(&target->held); i++) {
        if (i && target->running + i >= room_left(queue)) return;
        struct pending *next = ring_owner(target->held.next, struct pending, held);
        ring_remove(&next->held);
        next->released = target;
        queue->held_count--;
        pending_due(next, queue_now_ms(queue));
    }
}

static void call_task(void *argument)
{
    struct pending *pending = argument;
    struct queue *queue = pending->queue;
    struct queue_target *released = pending->released;
    struct async_call *call = arena_new(task_arena(), struct async_call);
    *call = (struct async_call){
        .queue = queue, .pending = pending, .id = {pending->id, pending->id_len}, .arena = task_arena()};
    pending->released = NULL;
    int64_t due_ms = call_work(call);
    if (due_ms == QUEUE_OVER) {
        ring_remove(&pending->by_id);
        queue->pending_count--;
        free(pending);
    } else if (due_ms == QUEUE_HELD) {
        queue->held_count++;
    } else {
        pending_due(pending, due_ms);
    }
    if (call->target) {
        call->target->running--;
        released = call->target;
    }
    if (released && due_ms != QUEUE_HELD)
        target_release(queue, released); /* also where it was not run after all */
    atomic_fetch_sub(&queue->active, 1);
    task_signal_give(&queue->changed); /* there is room for another */
}

/* A clock that was set back may have put off for years what was to be done in a minute: all of it is read again. */
static void look_at_clock(struct queue *queue, int64_t now_ms)
{
    bool is_set_back = now_ms < queue->seen_ms - QUEUE_CLOCK_MS;
    queue->seen_ms = now_ms;
    for (unsigned i = 0; is_set_back && i < QUEUE_BUCKETS; i++)
        ring_each (struct pending, pending, by_id, &queue->by_id[i]) {
            if (pending->due.number && pending->due.due > now_ms) pending_due(pending, now_ms);
        }
}

/* Begins what is due, as far as there is room. */
static void dispatch_task(void *argument)
{
    struct queue *queue = argument;
    while (!queue->is_stopping) {
        int64_t now_ms = queue_now_ms(queue);
        look_at_clock(queue, now_ms);
        while (heap_due(&queue->due) <= now_ms && room_left(queue)) {
            struct pending *pending = ring_owner(heap_first(&queue->due), struct pending, due);
            atomic_fetch_add(&queue->active, 1); /* before it counts no more as waiting */
            heap_remove(&queue->due, &pending->due);
            atomic_store(&queue->next_due_ms, heap_due(&queue->due));
            task_begin(queue->host, call_task, pending);
        }
        bool has_room = room_left(queue) > 0;
        queue->scans_now |= queue->is_overflowed && queue->pending_count < LIMIT_QUEUE_ENTRIES / 2;
        task_await(&queue->changed,
                   (struct task_moment){task_host_ticks_us(queue->host) + QUEUE_SCAN_MS * 1000ll,
                                        has_room ? heap_due(&queue->due) : HEAP_NEVER});
    }
    while (!queue->is_closing) task_await(&queue->changed, TASK_NEVER);
    while (atomic_load(&queue->active)) task_await(&queue->changed, task_after_us(queue->host, END_POLL_US));
}

/* ---- looking through the table ---- */

/* True: all of it was seen, or there is none. */
static bool scan(struct queue *queue)
{
    struct arena *arena = task_arena();
    struct arena_mark mark = arena_mark(arena);
    struct slice start_key = SLICE_NONE;
    queue->is_overflowed = false;
    do {
        struct task_call *call = task_call_new("Scan");
        queue_put_scan(queue, start_key, task_call_request(call));
        arena_rewind(arena, mark);
        struct task_reply reply = task_send(call);
        if (reply.fault == DYNAMO_MISSING) return true;
        if (reply.fault != DYNAMO_FINE) {
            log_line("asynchronous calls cannot be read: %.*s", SLICE_ARG(task_reply_message(&reply)));
            return false;
        }
        if (task_has_transactions())
            atomic_store(&queue->table_is_made, true); /* else it may lack its expiry */
        start_key = arena_copy(arena, queue_read_page(queue, reply.body, arena));
    } while (start_key.len && !queue->is_stopping);
    return !start_key.len;
}

/* Where nobody shares the table it is looked through once, and when more was put than is known here. The first time
 * was counted as active by whoever began the task. */
static void scan_task(void *argument)
{
    struct queue *queue = argument;
    for (;;) {
        queue->scans_now = false;
        bool is_complete = !queue->is_stopping && scan(queue);
        atomic_fetch_sub(&queue->active, 1);
        bool again = queue->func->options.shared || !is_complete;
        struct task_moment next = {
            again ? task_host_ticks_us(queue->host) + QUEUE_SCAN_MS * 1000ll : HEAP_NEVER, HEAP_NEVER};
        while (!queue->is_stopping && !queue->scans_now && !task_moment_is_over(queue->host, &next))
            task_await(&queue->changed, next);
        if (queue->is_stopping) return;
        atomic_fetch_add(&queue->active, 1);
    }
}
