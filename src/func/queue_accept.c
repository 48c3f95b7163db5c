/* What comes into the queue: calls that are accepted, and those that a look through the table finds. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/stats.h"
#include "func/queue.h"

/* A call on its way into the table. */
struct acceptance {
    struct dynamo_call call;
    struct acceptance *next;
    struct queue *queue;
    struct queued *queued;
    struct arena arena;
    struct buf request, reply;
    bool is_unfinished;
    bool is_second; /* the table was made for it */
    char id[37];
};

/* ---- accepting ---- */

static void acceptance_push(struct acceptance *acceptance)
{
    struct queue *queue = acceptance->queue;
    pthread_mutex_lock(&queue->lock);
    acceptance->next = queue->accepted;
    queue->accepted = acceptance;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

static void write_done(struct dynamo_call *call)
{
    struct acceptance *acceptance = (struct acceptance *)call;
    acceptance->is_unfinished = true;
    acceptance_push(acceptance);
}

static void acceptance_write(struct acceptance *acceptance)
{
    struct dynamo *dynamo = acceptance->queue->func->options.dynamo;
    struct dynamo_turn turn = {0}; /* the acceptance may be gone before its hand-over returns */
    acceptance->reply.len = 0;
    acceptance->is_unfinished = false;
    acceptance->call = (struct dynamo_call){.name = SLICE("TransactWriteItems"),
                                            .request = buf_view(&acceptance->request),
                                            .arena = &acceptance->arena,
                                            .reply = &acceptance->reply,
                                            .done = write_done};
    if (dynamo_begin(dynamo, &acceptance->call, &turn))
        acceptance_push(acceptance); /* refused at once */
    else
        dynamo_turn_end(dynamo, &turn);
}

static void acceptance_free(struct acceptance *acceptance)
{
    arena_free(&acceptance->arena);
    buf_free(&acceptance->request);
    buf_free(&acceptance->reply);
    free(acceptance);
}

void queue_accept(struct queue *queue, struct queued *queued)
{
    struct acceptance *acceptance = must_zero(1, sizeof *acceptance);
    acceptance->queue = queue;
    acceptance->queued = queued;
    queue_name(queue, acceptance->id);
    memcpy(queued->id, acceptance->id, sizeof queued->id);
    buf_text(&acceptance->request, "{\"TransactItems\":[");
    struct func_call call = {.function = queued->function,
                             .payload = queued->payload,
                             .cause = queued->cause,
                             .id = slice_of(acceptance->id)};
    unsigned count = queue_put_members(queue, &call, &acceptance->request);
    buf_text(&acceptance->request, "]}");
    if (!count) {
        acceptance_free(acceptance);
        queued->status = 400;
        queued->accepted(queued);
        return;
    }
    atomic_fetch_add(&queue->active, 1);
    acceptance_write(acceptance);
}

/* The first call ever finds no table: it is made, once, on the queue's thread. */
static bool acceptance_again(struct acceptance *acceptance)
{
    const char *error = acceptance->call.error;
    if (acceptance->is_second || !error || strcmp(error, "ResourceNotFoundException") != 0) return false;
    acceptance->is_second = true;
    atomic_store(&acceptance->queue->table_is_made, false);
    if (!queue_table_make(acceptance->queue)) return false;
    acceptance_write(acceptance);
    return true;
}

void acceptances_finish(struct queue *queue, struct acceptance *acceptances)
{
    while (acceptances) {
        struct acceptance *acceptance = acceptances;
        struct queued *queued = acceptance->queued;
        acceptances = acceptance->next;
        if (acceptance->is_unfinished) dynamo_finish(&acceptance->call);
        if (acceptance_again(acceptance)) continue;
        queued->status = acceptance->call.status;
        if (queued->status == 200) {
            stats_add(&queue->stats.accepted, 1);
            errand_add(queue, slice_of(acceptance->id), queue_now_ms(queue));
        }
        acceptance_free(acceptance);
        queued->accepted(queued);
        atomic_fetch_sub(&queue->active, 1);
    }
}

/* ---- looking ---- */

/* A walk through the table, page by page. */
struct look {
    struct dynamo_call call;
    struct queue *queue;
    struct arena arena;
    struct buf request, reply, start_key;
    bool is_unfinished;
};

static void page_done(struct dynamo_call *call)
{
    struct look *look = (struct look *)call;
    struct queue *queue = look->queue;
    look->is_unfinished = true;
    pthread_mutex_lock(&queue->lock);
    queue->look_done = true;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

static void page_begin(struct look *look)
{
    struct queue *queue = look->queue;
    look->request.len = look->reply.len = 0;
    arena_reset(&look->arena);
    look->is_unfinished = false;
    queue_put_look(queue, buf_view(&look->start_key), &look->request);
    look->call = (struct dynamo_call){.name = SLICE("Scan"),
                                      .request = buf_view(&look->request),
                                      .arena = &look->arena,
                                      .reply = &look->reply,
                                      .done = page_done};
    if (!dynamo_begin(queue->func->options.dynamo, &look->call, &queue->turn)) return;
    pthread_mutex_lock(&queue->lock);
    queue->look_done = true;
    pthread_mutex_unlock(&queue->lock);
}

static void look_begin(struct queue *queue)
{
    struct look *look = must_zero(1, sizeof *look);
    look->queue = queue;
    queue->look = look;
    queue->is_overflowed = false;
    atomic_fetch_add(&queue->active, 1);
    page_begin(look);
}

/* Where nobody shares the table, it is looked through once. */
static void look_end(struct queue *queue, bool is_complete)
{
    struct look *look = queue->look;
    int64_t pause_us = (int64_t)QUEUE_LOOK_MS * 1000;
    bool again = queue->func->options.shared || !is_complete;
    queue->look_us = again ? monotonic_us() + pause_us : INT64_MAX;
    queue->look = NULL;
    arena_free(&look->arena);
    buf_free(&look->request);
    buf_free(&look->reply);
    buf_free(&look->start_key);
    free(look);
    atomic_fetch_sub(&queue->active, 1);
}

static void page_end(struct look *look)
{
    struct queue *queue = look->queue;
    struct slice start_key = SLICE_NONE, name = SLICE_NONE, message = SLICE_NONE;
    if (look->is_unfinished) dynamo_finish(&look->call);
    bool is_fine = look->call.status == 200 &&
                   queue_read_look(queue, buf_view(&look->reply), &look->arena, &start_key);
    if (!is_fine) {
        dynamo_error(buf_view(&look->reply), &look->arena, &name, &message);
        bool is_missing = slice_equal(name, SLICE("ResourceNotFoundException"));
        if (!is_missing) log_line("asynchronous calls cannot be read: %.*s", SLICE_ARG(message));
        look_end(queue, is_missing);
        return;
    }
    atomic_store(&queue->table_is_made, true);
    look->start_key.len = 0;
    buf_slice(&look->start_key, start_key);
    if (start_key.len)
        page_begin(look);
    else
        look_end(queue, true);
}

void queue_look(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool done = queue->look_done;
    queue->look_done = false;
    bool stopping = queue->is_stopping;
    pthread_mutex_unlock(&queue->lock);
    if (done && stopping)
        look_end(queue, false);
    else if (done)
        page_end(queue->look);
    if (!queue->look && !stopping && monotonic_us() >= queue->look_us) look_begin(queue);
}
