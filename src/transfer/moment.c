/* A table of a past state of the database. */
#include "transfer/moment.h"

#include <stdio.h>

#include "transfer/jobs.h"

struct syncing {
    struct commit commit;
    bool is_synced;
};

static void sync_apply(struct commit *commit, struct batch *batch)
{
    ((struct syncing *)(void *)commit)->is_synced = engine_sync_in_batch(batch);
}

static bool find_table(struct slice name, struct slice id, struct moment *out, char *error, size_t error_len)
{
    out->table = engine_past_table(out->past.store, name);
    if (out->table && (!id.len || slice_equal(out->table->definition.id, id))) return true;
    snprintf(error, error_len, "there was no table %.*s then", SLICE_ARG(name));
    moment_close(out);
    return false;
}

bool moment_open(struct transfer *transfer, struct slice table, struct slice table_id, int64_t at_ms,
                 struct moment *out, char *error, size_t error_len)
{
    struct syncing syncing = {.commit = {.apply = sync_apply, .is_quiet = true}};
    *out = (struct moment){0};
    engine_commit(transfer->engine, &syncing.commit); /* else the log may end before what was acknowledged */
    if (syncing.commit.failed || !syncing.is_synced) {
        snprintf(error, error_len, "the log cannot be synced");
        return false;
    }
    return backup_past_moment(transfer->backup, at_ms, &out->past, error, error_len) &&
           find_table(table, table_id, out, error, error_len);
}

bool moment_open_copy(struct transfer *transfer, struct slice table, struct slice copy, struct moment *out,
                      char *error, size_t error_len)
{
    *out = (struct moment){0};
    return backup_past_copy(transfer->backup, copy, &out->past, error, error_len) &&
           find_table(table, SLICE_NONE, out, error, error_len);
}

void moment_close(struct moment *moment)
{
    if (moment->table) engine_table_release(moment->table);
    backup_past_close(&moment->past);
    *moment = (struct moment){0};
}
