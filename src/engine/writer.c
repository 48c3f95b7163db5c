/* The one writer: takes all commits that wait, applies them in order, writes once, answers all (E1). While it
 * syncs, the next ones gather, so the batch grows with the load and the cost of a sync is shared. */
#include <stdio.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/internal.h"

void commit_list_add(struct commit_list *list, struct commit *commit)
{
    commit->next = NULL;
    *(list->last ? &list->last->next : &list->first) = commit;
    list->last = commit;
}

void engine_fail(struct engine *engine, const char *doing)
{
    if (atomic_load(&engine->failed)) return;
    snprintf(engine->failure, sizeof engine->failure, "the store failed while %s: %s", doing,
             engine->store->error);
    atomic_store(&engine->failed, true);
    log_line("%s; no write is accepted any more", engine->failure);
    if (engine->on_failure) engine->on_failure(engine->failure_context);
}

bool engine_has_failed(struct engine *engine, char *error, size_t error_len)
{
    if (!atomic_load(&engine->failed)) return false;
    snprintf(error, error_len, "%s", engine->failure);
    return true;
}

static void answer(struct commit *commit, bool failed)
{
    commit->failed = failed;
    commit->done(commit);
}

/* Makes one batch of the first commits of the list; the rest stays in it. */
static void run_batch(struct engine *engine, struct commit_list *list)
{
    struct batch *batch = &engine->batch;
    struct commit *first = list->first, *end = first;
    uint64_t count = 0;
    batch_begin(batch, engine);
    while (end && count < LIMIT_COMMIT_REQUESTS && batch->bytes < LIMIT_COMMIT_BYTES && !batch->failed) {
        arena_reset(&batch->scratch);
        batch->commit_number++;
        batch->cause = end->cause;
        batch->token = end->token;
        batch->is_quiet = end->is_quiet;
        end->apply(end, batch);
        end = end->next;
        count++;
    }
    bool failed = !batch_commit(batch);
    stats_add(&engine->stats.commits, count);
    stats_add(&engine->stats.batches, 1);
    histogram_add(&engine->stats.batch_sizes, count);
    list->first = end;
    if (!end) list->last = NULL;
    while (first != end) {
        struct commit *next = first->next; /* a commit may be gone once it is answered */
        answer(first, failed);
        first = next;
    }
}

static void run_all(struct engine *engine, struct commit_list *list)
{
    while (list->first) {
        if (!atomic_load(&engine->failed)) {
            pthread_mutex_lock(&engine->batch_lock);
            run_batch(engine, list);
            pthread_mutex_unlock(&engine->batch_lock);
            continue;
        }
        struct commit *commit = list->first;
        list->first = commit->next;
        answer(commit, true);
    }
    list->last = NULL;
}

static void *writer_main(void *argument)
{
    struct engine *engine = argument;
    pthread_setname_np(pthread_self(), "quipu-writer");
    for (;;) {
        pthread_mutex_lock(&engine->queue_lock);
        while (!engine->queue.first && !engine->stopping)
            pthread_cond_wait(&engine->queue_filled, &engine->queue_lock);
        struct commit_list list = engine->queue;
        engine->queue = (struct commit_list){0};
        pthread_mutex_unlock(&engine->queue_lock);
        if (!list.first) return NULL;
        run_all(engine, &list);
    }
}

void writer_start(struct engine *engine)
{
    if (engine->inline_writer) return;
    ensure(pthread_create(&engine->writer, NULL, writer_main, engine) == 0);
    engine->writer_runs = true;
}

void writer_stop(struct engine *engine)
{
    if (!engine->writer_runs) return;
    pthread_mutex_lock(&engine->queue_lock);
    engine->stopping = true;
    pthread_cond_signal(&engine->queue_filled);
    pthread_mutex_unlock(&engine->queue_lock);
    pthread_join(engine->writer, NULL);
    engine->writer_runs = false;
}

void engine_submit(struct engine *engine, struct commit_list *list)
{
    if (!list->first) return;
    if (engine->inline_writer) {
        run_all(engine, list);
        return;
    }
    pthread_mutex_lock(&engine->queue_lock);
    ensure(!engine->stopping);
    bool was_empty = engine->queue.first == NULL;
    *(engine->queue.last ? &engine->queue.last->next : &engine->queue.first) = list->first;
    engine->queue.last = list->last;
    if (was_empty) pthread_cond_signal(&engine->queue_filled);
    pthread_mutex_unlock(&engine->queue_lock);
    *list = (struct commit_list){0};
}

/* A commit that somebody waits for: stands in the queue in the place of the caller's own. */
struct waited_commit {
    struct commit commit;
    struct commit *inner;
    struct engine *engine;
    bool finished;
};

static void waited_apply(struct commit *commit, struct batch *batch)
{
    struct commit *inner = ((struct waited_commit *)commit)->inner;
    inner->apply(inner, batch);
}

static void waited_done(struct commit *commit)
{
    struct waited_commit *waited = (struct waited_commit *)commit;
    struct engine *engine = waited->engine;
    pthread_mutex_lock(&engine->queue_lock);
    waited->inner->failed = commit->failed;
    waited->finished = true;
    pthread_cond_broadcast(&engine->commit_done);
    pthread_mutex_unlock(&engine->queue_lock);
}

void engine_commit(struct engine *engine, struct commit *commit)
{
    struct waited_commit waited = {.commit = {.apply = waited_apply,
                                              .done = waited_done,
                                              .cause = commit->cause,
                                              .token = commit->token,
                                              .is_quiet = commit->is_quiet},
                                   .inner = commit,
                                   .engine = engine};
    struct commit_list list = {0};
    commit_list_add(&list, &waited.commit);
    engine_submit(engine, &list);
    pthread_mutex_lock(&engine->queue_lock);
    while (!waited.finished) pthread_cond_wait(&engine->commit_done, &engine->queue_lock);
    pthread_mutex_unlock(&engine->queue_lock);
}
