/* The door to the engine in this process. Its begin is on the path of every request that a server answers: it
 * adds nothing to api_begin but the hand-over of the writes. */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backup/backup.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/workers.h"
#include "dynamo/internal.h"
#include "transfer/transfer.h"

#define ACCOUNT "000000000000" /* in ARNs, as the server has it */

struct local {
    struct dynamo door;
    struct api *api;
    pthread_mutex_t workers_lock;
    struct workers *workers;             /* for what takes long; from the first such call on */
    bool owns;                           /* engine, api and jobs go with the door */
    struct transfer *transfer;           /* NULL: somebody else does the jobs */
    struct backup *backup;               /* the same for copies */
    char *data;                          /* the folder, which that one refers to; NULL: in memory */
    char region[LIMIT_REGION_BYTES + 1]; /* which the api refers to, when it is ours */
};

static struct dynamo_call *call_of(struct commit *commit)
{
    return (struct dynamo_call *)((char *)commit - offsetof(struct dynamo_call, api.commit));
}

static void commit_done(struct commit *commit)
{
    struct dynamo_call *call = call_of(commit);
    call->done(call);
}

static void take_answer(struct dynamo_call *call)
{
    call->status = call->api.status;
    call->error = call->api.error;
}

static bool local_begin(struct dynamo *dynamo, struct dynamo_call *call, struct dynamo_turn *turn)
{
    struct local *local = (struct local *)dynamo;
    if (!call->operation) call->operation = api_operation_find(call->name);
    if (!call->operation) return refuse_unknown_operation(call);
    call->api = (struct api_call){.api = local->api,
                                  .arena = call->arena,
                                  .reply = call->reply,
                                  .operation = call->operation,
                                  .body = call->request,
                                  .in_order = call->in_order,
                                  .shows_causes = call->shows_causes};
    api_begin(&call->api);
    take_answer(call);
    if (call->api.work) {
        commit_list_add(&turn->slow, &call->api.commit);
        return false;
    }
    if (!call->api.is_write) return true;
    call->api.commit.done = commit_done;
    call->api.commit.cause = call->cause;
    call->api.commit.is_quiet = call->is_quiet;
    commit_list_add(&turn->writes, &call->api.commit);
    return false;
}

static void work(void *context, void *job)
{
    struct dynamo_call *call = job;
    (void)context;
    call->api.work(&call->api);
    call->done(call);
}

/* As many threads as the machine has processors: what takes long computes. */
static struct workers *workers_of(struct local *local)
{
    pthread_mutex_lock(&local->workers_lock);
    if (!local->workers) {
        long processors = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned threads = processors < 1                    ? 1
                           : processors > LIMIT_SLOW_THREADS ? LIMIT_SLOW_THREADS
                                                             : (unsigned)processors;
        local->workers = workers_new(threads);
    }
    struct workers *workers = local->workers;
    pthread_mutex_unlock(&local->workers_lock);
    return workers;
}

static void local_turn_end(struct dynamo *dynamo, struct dynamo_turn *turn)
{
    engine_submit(dynamo->engine, &turn->writes);
    while (turn->slow.first) {
        struct commit *commit = turn->slow.first;
        turn->slow.first = commit->next;
        workers_run(workers_of((struct local *)dynamo), work, NULL, call_of(commit));
    }
    turn->slow.last = NULL;
}

static void local_finish(struct dynamo_call *call)
{
    api_finish(&call->api);
    take_answer(call);
}

static void local_close(struct dynamo *dynamo)
{
    struct local *local = (struct local *)dynamo;
    workers_free(local->workers);
    pthread_mutex_destroy(&local->workers_lock);
    if (local->owns) {
        if (local->transfer) transfer_close(local->transfer);
        backup_close(local->backup); /* before the store, which belongs to the engine */
        engine_close(dynamo->engine);
        api_free(local->api);
        free(local->data);
    }
    free(local);
}

static const struct dynamo_methods local_methods = {
    .begin = local_begin, .turn_end = local_turn_end, .finish = local_finish, .close = local_close};

struct dynamo *dynamo_open_local(struct engine *engine, struct api *api)
{
    struct local *local = must_zero(1, sizeof *local);
    local->door = (struct dynamo){&local_methods, engine};
    pthread_mutex_init(&local->workers_lock, NULL);
    local->api = api;
    return &local->door;
}

struct dynamo *local_open_owning(const struct local_parts *parts, const struct dynamo_options *options, char *error,
                                 size_t error_len)
{
    struct local *local = (struct local *)dynamo_open_local(parts->engine, NULL);
    ensure(strlen(parts->region) < sizeof local->region);
    strcpy(local->region, parts->region);
    local->owns = true;
    local->api = api_new(&(struct api_options){.engine = parts->engine,
                                               .region = local->region,
                                               .account = ACCOUNT,
                                               .endpoint = "localhost",
                                               .creating_ms = options->creating_ms,
                                               .throttles = options->throttles,
                                               .is_lenient = options->is_lenient,
                                               .read_only = options->read_only});
    if (options->read_only) return &local->door;
    if (parts->data) ensure((local->data = strdup(parts->data)) != NULL);
    local->backup = backup_open(&(struct backup_options){.store = parts->store,
                                                         .folder = local->data,
                                                         .clock = options->clock ? options->clock : &clock_system});
    local->transfer = transfer_open(&(struct transfer_options){.engine = parts->engine,
                                                               .api = local->api,
                                                               .backup = local->backup,
                                                               .folder = parts->s3_folder,
                                                               .endpoint = options->s3_endpoint},
                                    error, error_len);
    if (local->transfer) return &local->door;
    local_close(&local->door);
    return NULL;
}
