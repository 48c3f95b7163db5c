/* A restore as it is done: a past state of the database is opened, the items of the source are put into the new table a
 * few at a time, and the table is given free. Done again from its beginning after the process has died: the table is
 * made anew, which nobody else could use meanwhile. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "transfer/jobs.h"
#include "transfer/moment.h"

struct restoring {
    struct commit commit; /* first: it is cast back */
    struct transfer_run *run;
    struct table *table; /* the new one; counted */
    struct arena arena;  /* of the writes */
    struct write writes[LIMIT_RESTORE_ITEMS];
    uint32_t count;
    uint64_t bytes;
    char error[700];   /* why it cannot go on; empty: it goes on, or the process ends */
    bool is_stopped;
};

static void give_free(struct transfer_run *run, struct batch *batch, struct arena *arena)
{
    api_restore_done(batch, arena, &run->job, true);
}

static void take_back(struct transfer_run *run, struct batch *batch, struct arena *arena)
{
    api_restore_done(batch, arena, &run->job, false);
}

static void fail(struct restoring *restoring, const char *why)
{
    struct api_job *job = &restoring->run->job;
    log_line("the table %.*s cannot be restored, and is removed: %s", SLICE_ARG(job->table), why);
    transfer_run_fail(restoring->run, "InternalServerError", why, take_back);
}

/* ---- the table ---- */

static void make_apply(struct commit *commit, struct batch *batch)
{
    struct restoring *restoring = (struct restoring *)(void *)commit;
    struct table_definition definition;
    const struct api_job *job = &restoring->run->job;
    const struct table *table = engine_table_in_batch(batch, job->table);
    const struct value *own = table ? map_find(&table->definition.settings, SLICE(API_IMPORTING)) : NULL;
    ensure(table_definition_decode(&restoring->arena, job->definition, &definition));
    if (!own || !slice_equal(own->bytes, job->id))
        snprintf(restoring->error, sizeof restoring->error, "it is not there any more");
    else if (engine_table_drop(batch, job->table) != TABLE_CHANGED ||
             engine_table_create(batch, &definition) != TABLE_CHANGED)
        snprintf(restoring->error, sizeof restoring->error, "it cannot be made anew");
}

/* What an earlier process has put into it goes with it. */
static bool find_table(struct restoring *restoring)
{
    struct transfer_run *run = restoring->run;
    struct commit *commit = &restoring->commit;
    if (run->is_resumed) {
        *commit = (struct commit){.apply = make_apply, .is_quiet = true};
        engine_commit(run->transfer->engine, commit);
        restoring->is_stopped = commit->failed;
        arena_reset(&restoring->arena);
    }
    if (restoring->is_stopped || restoring->error[0]) return false;
    restoring->table = engine_table_find(run->transfer->engine, run->job.table);
    if (!restoring->table) snprintf(restoring->error, sizeof restoring->error, "it is not there any more");
    return restoring->table != NULL;
}

/* ---- its items ---- */

static const char *fault_of(const struct write *write)
{
    switch (write->outcome) {
    case WRITE_APPLIED: return NULL;
    case WRITE_NO_TABLE: return "it is not there any more";
    case WRITE_VECTORS_FULL: return "there is not enough memory for its vectors";
    case WRITE_COLLECTION_FULL: return "an item collection is too large";
    case WRITE_CONFLICT:
    case WRITE_CONDITION_FAILED:
    case WRITE_INVALID: break;
    }
    return "an item was refused";
}

static void write_apply(struct commit *commit, struct batch *batch)
{
    struct restoring *restoring = (struct restoring *)(void *)commit;
    for (uint32_t i = 0; i < restoring->count && !restoring->error[0]; i++) {
        engine_write(batch, &restoring->writes[i]);
        const char *fault = fault_of(&restoring->writes[i]);
        if (fault) snprintf(restoring->error, sizeof restoring->error, "%s", fault);
    }
}

/* Waits until they are durable, so that others take their turns between. */
static bool flush(struct restoring *restoring)
{
    struct transfer_run *run = restoring->run;
    if (restoring->count) {
        restoring->commit = (struct commit){.apply = write_apply};
        engine_commit(run->transfer->engine, &restoring->commit);
        restoring->is_stopped = restoring->commit.failed;
        run->job.written += restoring->count;
    }
    restoring->count = 0;
    restoring->bytes = 0;
    arena_reset(&restoring->arena);
    if (restoring->is_stopped || restoring->error[0]) return false;
    restoring->is_stopped = transfer_run_is_stopped(run) || !transfer_run_note(run, false);
    return !restoring->is_stopped;
}

static bool take_item(void *context, struct slice past_key, struct slice encoded)
{
    struct restoring *restoring = context;
    struct arena *arena = &restoring->arena;
    const struct key_schema *keys = &restoring->table->keys;
    struct write *write = &restoring->writes[restoring->count];
    struct buf key = {0};
    (void)past_key;
    *write = (struct write){.kind = WRITE_PUT, .table = restoring->table, .arena = arena};
    const struct value *hash = NULL, *range = NULL;
    if (item_decode(arena, arena_copy(arena, encoded), &write->item)) {
        hash = map_find(&write->item, keys->hash);
        range = keys->range.len ? map_find(&write->item, keys->range) : NULL;
    }
    if (!hash || (keys->range.len && !range)) {
        snprintf(restoring->error, sizeof restoring->error, "an item of the copy is damaged");
        return false;
    }
    engine_item_key(&key, restoring->table, hash, range);
    write->key = arena_take(arena, &key);
    engine_write_prepare(write);
    restoring->count++;
    restoring->bytes += encoded.len;
    restoring->run->job.items++;
    return (restoring->count < LIMIT_RESTORE_ITEMS && restoring->bytes < LIMIT_RESTORE_BYTES) || flush(restoring);
}

static void fill(struct restoring *restoring, const struct moment *moment)
{
    struct transfer_run *run = restoring->run;
    if (!find_table(restoring)) return;
    enum engine_result result = engine_past_items(moment->past.store, moment->table, take_item, restoring);
    if (result != ENGINE_OK && !restoring->error[0])
        snprintf(restoring->error, sizeof restoring->error, "the copy cannot be read: %.500s",
                 moment->past.store->error);
    if (!restoring->error[0] && !restoring->is_stopped && flush(restoring))
        transfer_run_end(run, "COMPLETED", give_free);
}

void transfer_restore(struct transfer_run *run)
{
    struct transfer *transfer = run->transfer;
    struct api_job *job = &run->job;
    struct restoring *restoring = must_zero(1, sizeof *restoring);
    struct moment moment;
    restoring->run = run;
    transfer_run_held(run);
    job->items = job->written = 0;
    bool is_open = job->backup.len
                       ? moment_open_copy(transfer, job->source, job->backup, &moment, restoring->error,
                                          sizeof restoring->error)
                       : moment_open(transfer, job->source, job->source_id, job->restore_ms, &moment,
                                     restoring->error, sizeof restoring->error);
    if (is_open) {
        restoring->error[0] = '\0'; /* where all is well it may hold any sentence */
        fill(restoring, &moment);
        moment_close(&moment);
    }
    if (restoring->error[0] && !restoring->is_stopped && !atomic_load(&transfer->stopping))
        fail(restoring, restoring->error);
    if (restoring->table) engine_table_release(restoring->table);
    arena_free(&restoring->arena);
    free(restoring);
}
