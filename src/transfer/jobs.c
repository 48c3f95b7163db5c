/* Jobs are begun here: those that the api notes while we watch, and those that an earlier process has left.
 *
 * The engine tells of new notes on the writer's thread, before the call that wrote them is answered. That thread waits
 * until each new export holds its view of the table (LIMIT_TRANSFER_BEGIN_MS at most), so what is written after the
 * answer is never part of the export. Therefore nothing that the dispatcher does may wait for the writer: whatever
 * writes runs on a job's own thread, and its commits are quiet. */
#include <stdlib.h>
#include <time.h>

#include "base/fail.h"
#include "base/log.h"
#include "base/raw.h"
#include "transfer/jobs.h"

#define NOTE_US    300000
#define STACK_SIZE (512 * 1024)

/* ---- a job's own thread ---- */

void transfer_run_held(struct transfer_run *run)
{
    pthread_mutex_lock(&run->transfer->lock);
    run->is_held = true;
    pthread_cond_broadcast(&run->transfer->moved);
    pthread_mutex_unlock(&run->transfer->lock);
}

struct run_commit {
    struct commit commit;
    struct transfer_run *run;
    struct arena arena;
    transfer_run_also *also;
    bool is_gone;
};

/* A note that is gone (the database was rolled back), or a job that has ended, is not written again. */
static void note_apply(struct commit *commit, struct batch *batch)
{
    struct run_commit *own = (struct run_commit *)(void *)commit;
    struct transfer_run *run = own->run;
    struct api_job now, job = run->job;
    own->is_gone = !api_job_in_batch(batch, &own->arena, job.kind, job.id, &now) || !api_job_is_running(&now);
    if (own->is_gone) return;
    if (api_job_is_running(&job)) job.status = now.status; /* somebody may have cancelled it */
    api_job_put(batch, &own->arena, &job);
    if (own->also) own->also(run, batch, &own->arena);
    if (!api_job_is_running(&job))
        api_jobs_forget(batch, run->transfer->engine, &own->arena, engine_now_ms(run->transfer->engine));
}

static bool commit_note(struct transfer_run *run, transfer_run_also *also)
{
    struct run_commit own = {.commit = {.apply = note_apply, .is_quiet = true}, .run = run, .also = also};
    engine_commit(run->transfer->engine, &own.commit);
    arena_free(&own.arena);
    run->noted_us = monotonic_us();
    return !own.is_gone && !own.commit.failed;
}

bool transfer_run_note(struct transfer_run *run, bool must)
{
    if (!must && monotonic_us() - run->noted_us < NOTE_US) return true;
    return commit_note(run, NULL);
}

void transfer_run_wait(struct transfer_run *run, int64_t until_us)
{
    struct transfer *transfer = run->transfer;
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    int result = 0;
    pthread_mutex_lock(&transfer->lock);
    while (!transfer_run_is_stopped(run) && result == 0)
        result = pthread_cond_clockwait(&transfer->moved, &transfer->lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&transfer->lock);
}

void transfer_run_end(struct transfer_run *run, const char *status, transfer_run_also *also)
{
    run->job.status = slice_of(status);
    run->job.end_ms = engine_now_ms(run->transfer->engine);
    commit_note(run, also);
}

void transfer_run_fail(struct transfer_run *run, const char *code, const char *message,
                       transfer_run_also *also)
{
    run->job.failure_code = slice_of(code);
    run->job.failure_message = slice_of(message);
    transfer_run_end(run, "FAILED", also);
}

struct slice transfer_run_text(struct transfer_run *run, const char *outer, const char *name)
{
    struct slice object = run->job.request;
    if (outer) object = raw_member(&run->arena, object, outer);
    return raw_string(&run->arena, raw_member(&run->arena, object, name));
}

enum transfer_compression transfer_run_compression(struct slice word)
{
    if (slice_equal(word, SLICE("GZIP"))) return TRANSFER_GZIP;
    return slice_equal(word, SLICE("ZSTD")) ? TRANSFER_ZSTD : TRANSFER_NONE;
}

static void *run_main(void *context)
{
    struct transfer_run *run = context;
    struct transfer *transfer = run->transfer;
    switch (run->job.kind) {
    case API_EXPORT: transfer_export(run); break;
    case API_IMPORT: transfer_import(run); break;
    case API_BULK: transfer_bulk(run); break;
    case API_RESTORE: transfer_restore(run); break;
    }
    pthread_mutex_lock(&transfer->lock);
    run->is_held = run->is_over = true;
    pthread_cond_broadcast(&transfer->moved);
    pthread_mutex_unlock(&transfer->lock);
    return NULL;
}

/* ---- the dispatcher ---- */

static struct transfer_run *find_run(struct transfer *transfer, const struct api_job *job)
{
    struct transfer_run *run = transfer->runs;
    while (run && (run->job.kind != job->kind || !slice_equal(run->job.id, job->id))) run = run->next;
    return run;
}

static bool start_thread(pthread_t *thread, void *(*main)(void *), void *context)
{
    pthread_attr_t attributes;
    ensure(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, STACK_SIZE) == 0);
    bool fine = pthread_create(thread, &attributes, main, context) == 0;
    pthread_attr_destroy(&attributes);
    return fine;
}

/* Without a thread to be had the job stays as it is noted, and the next change finds it again. */
static void begin(struct transfer *transfer, const struct api_job *job, bool is_resumed)
{
    struct transfer_run *run = must_zero(1, sizeof *run);
    run->transfer = transfer;
    run->is_resumed = is_resumed;
    run->job = *job;
#define X(member) run->job.member = arena_copy(&run->arena, job->member);
    API_JOB_TEXTS(X)
    X(id)
    X(definition)
#undef X
    if (!start_thread(&run->thread, run_main, run)) {
        log_line("no thread can be started for an export, import or bulk operation: it waits");
        arena_free(&run->arena);
        free(run);
        return;
    }
    pthread_mutex_lock(&transfer->lock);
    run->next = transfer->runs;
    transfer->runs = run;
    while (!run->is_held) pthread_cond_wait(&transfer->moved, &transfer->lock);
    pthread_mutex_unlock(&transfer->lock);
}

static void begin_all(struct transfer *transfer, bool is_resumed)
{
    struct arena arena = {0};
    struct api_job *jobs;
    uint32_t count;
    if (api_jobs_running(transfer->engine, &arena, &jobs, &count)) {
        for (uint32_t i = 0; i < count; i++) {
            struct transfer_run *known = find_run(transfer, &jobs[i]);
            if (!known)
                begin(transfer, &jobs[i], is_resumed);
            else if (slice_equal(jobs[i].status, SLICE("CANCELLING")))
                atomic_store(&known->is_cancelled, true);
        }
    }
    arena_free(&arena);
}

/* Takes those that are over off the list; with `all` waits for them. Under the lock. */
static void reap(struct transfer *transfer, bool all)
{
    for (struct transfer_run **place = &transfer->runs; *place;) {
        struct transfer_run *run = *place;
        while (all && !run->is_over) pthread_cond_wait(&transfer->moved, &transfer->lock);
        if (!run->is_over) {
            place = &run->next;
            continue;
        }
        *place = run->next;
        pthread_join(run->thread, NULL);
        arena_free(&run->arena);
        free(run);
        pthread_cond_broadcast(&transfer->moved);
    }
}

static bool any_is_over(const struct transfer *transfer)
{
    for (const struct transfer_run *run = transfer->runs; run; run = run->next)
        if (run->is_over) return true;
    return false;
}

static void *dispatch(void *context)
{
    struct transfer *transfer = context;
    pthread_mutex_lock(&transfer->lock);
    while (!atomic_load(&transfer->stopping)) {
        uint64_t wanted = transfer->wanted;
        pthread_mutex_unlock(&transfer->lock);
        begin_all(transfer, false);
        pthread_mutex_lock(&transfer->lock);
        transfer->settled = wanted;
        pthread_cond_broadcast(&transfer->moved);
        while (transfer->wanted == wanted && !any_is_over(transfer) && !atomic_load(&transfer->stopping))
            pthread_cond_wait(&transfer->moved, &transfer->lock);
        reap(transfer, false);
    }
    reap(transfer, true);
    pthread_mutex_unlock(&transfer->lock);
    return NULL;
}

/* Under the lock. */
static void need_dispatcher(struct transfer *transfer)
{
    if (!transfer->has_dispatcher)
        transfer->has_dispatcher = start_thread(&transfer->dispatcher, dispatch, transfer);
}

static unsigned note_topics(struct engine_change_watcher *watcher, struct slice table, struct slice hash,
                            struct slice range, uint64_t topics[ENGINE_TOPICS])
{
    (void)watcher, (void)table, (void)hash, (void)range;
    topics[0] = 1;
    return 1;
}

static void notes_changed(struct engine_change_watcher *watcher, const uint64_t *topics, size_t count)
{
    struct transfer *transfer = (struct transfer *)(void *)((char *)watcher -
                                                            offsetof(struct transfer, watcher));
    struct timespec until;
    (void)topics, (void)count;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LIMIT_TRANSFER_BEGIN_MS / 1000;
    pthread_mutex_lock(&transfer->lock);
    uint64_t wanted = ++transfer->wanted;
    need_dispatcher(transfer);
    pthread_cond_broadcast(&transfer->moved);
    int result = 0;
    while (transfer->has_dispatcher && transfer->settled < wanted && !atomic_load(&transfer->stopping) &&
           result == 0)
        result = pthread_cond_clockwait(&transfer->moved, &transfer->lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&transfer->lock);
}

/* ---- opening and closing ---- */

struct transfer *transfer_open(const struct transfer_options *options, char *error, size_t error_len)
{
    struct buckets *buckets = options->endpoint
                                  ? buckets_open_s3(options->endpoint, options->region, error, error_len)
                                  : buckets_open_folder(options->folder);
    if (!buckets) return NULL;
    struct transfer *transfer = must_zero(1, sizeof *transfer);
    transfer->engine = options->engine;
    transfer->api = options->api;
    transfer->backup = options->backup;
    transfer->buckets = buckets;
    pthread_mutex_init(&transfer->lock, NULL);
    pthread_cond_init(&transfer->moved, NULL);
    transfer->watcher = (struct engine_change_watcher){
        .prefix = SLICE(ENGINE_NOTES), .topics = note_topics, .changed = notes_changed};
    transfer_backups_open(transfer);
    /* Before anybody can begin one: what is noted now was left by an earlier process. */
    begin_all(transfer, true);
    engine_watch_changes(transfer->engine, &transfer->watcher);
    pthread_mutex_lock(&transfer->lock);
    if (transfer->runs) need_dispatcher(transfer);
    pthread_mutex_unlock(&transfer->lock);
    return transfer;
}

void transfer_close(struct transfer *transfer)
{
    engine_unwatch_changes(transfer->engine, &transfer->watcher);
    atomic_store(&transfer->stopping, true);
    atomic_store(&transfer->buckets->stops, true);
    pthread_mutex_lock(&transfer->lock);
    pthread_cond_broadcast(&transfer->moved);
    pthread_mutex_unlock(&transfer->lock);
    if (transfer->has_dispatcher) pthread_join(transfer->dispatcher, NULL);
    buckets_close(transfer->buckets);
    pthread_cond_destroy(&transfer->moved);
    pthread_mutex_destroy(&transfer->lock);
    pthread_mutex_destroy(&transfer->keeping);
    free(transfer);
}
