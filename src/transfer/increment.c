/* The changes of a table between two moments, one line for each item: how it was at the first, how it is at the second.
 *
 * The log between them tells which items were written, how they were left and when. That is gathered by key in a store
 * of its own, so that memory does not depend on how much was written; how an item was before is read from a view of
 * the first moment. An item that was neither there before nor is behind leaves no line. */
#include <stdio.h>

#include "transfer/export.h"
#include "transfer/moment.h"

#define GATHERED_BYTES (1024 * 1024) /* that are written to the store at once */

struct increment {
    struct export *export;
    struct moment first;
    struct backup_past
        changes; /* by stored key: the time in microseconds (8 bytes), and the item, if it is there */
    struct store_batch batch;
    struct buf from, to; /* the stored keys that count */
    int64_t time_us;
    bool has_failed, has_before;
};

/* ---- gathering ---- */

static void gather_entry(void *context, enum store_entry_kind kind, struct slice key, struct slice value)
{
    struct increment *increment = context;
    struct buf change = {0};
    bool counts = kind != STORE_ENTRY_DELETE_RANGE && slice_compare(key, buf_view(&increment->from)) >= 0 &&
                  slice_compare(key, buf_view(&increment->to)) < 0;
    if (!counts) return; /* ranges are removed with their table only */
    buf_u64(&change, (uint64_t)increment->time_us);
    if (kind == STORE_ENTRY_PUT) buf_slice(&change, value);
    store_batch_put(&increment->batch, key, buf_view(&change));
    buf_free(&change);
}

static bool gather_flush(struct increment *increment)
{
    bool fine = store_write(increment->changes.store, &increment->batch, false) == STORE_OK;
    store_batch_clear(&increment->batch);
    increment->has_failed |= !fine;
    return fine;
}

static bool gather_batch(void *context, const struct store_log_batch *written)
{
    struct increment *increment = context;
    struct store_batch batch;
    if (transfer_run_is_stopped(increment->export->run)) return false;
    increment->has_failed = !store_batch_from_bytes(written->bytes, &batch);
    if (increment->has_failed) return false;
    increment->time_us = written->time_ms * 1000;
    store_batch_visit(&batch, gather_entry, increment);
    return increment->batch.entries.len < GATHERED_BYTES || gather_flush(increment);
}

/* ---- lines ---- */

static bool put_change(void *context, struct slice key, struct slice value)
{
    struct increment *increment = context;
    struct buf before = {0};
    enum store_result result = store_get(increment->first.past.store, key, &before);
    struct export_change change = {.before = buf_view(&before),
                                   .after = slice_from(value, sizeof(uint64_t)),
                                   .time_us = (int64_t)bytes_u64(value.data),
                                   .has_before = increment->has_before};
    increment->has_failed = result != STORE_OK && result != STORE_MISSING;
    bool goes_on = !increment->has_failed && export_change(increment->export, &change);
    buf_free(&before);
    return goes_on;
}

/* ---- the whole ---- */

static bool gather(struct increment *increment, int64_t from_ms, int64_t to_ms, char *error, size_t error_len)
{
    struct transfer *transfer = increment->export->run->transfer;
    bool fine = backup_scratch_open(transfer->backup, &increment->changes, error, error_len) &&
                backup_past_log(transfer->backup, from_ms, to_ms, gather_batch, increment, error, error_len);
    if (!fine) return false;
    if (!increment->has_failed && gather_flush(increment)) return true;
    snprintf(error, error_len, "%s", increment->changes.store->error);
    return false;
}

/* What was written before anything was kept is how it was. */
static int64_t first_ms(struct transfer *transfer, int64_t from_ms)
{
    int64_t kept_ms = backup_kept_from(transfer->backup);
    return kept_ms != INT64_MAX && from_ms <= kept_ms ? kept_ms + 1 : from_ms;
}

bool export_increment(struct export *export, char *error, size_t error_len)
{
    struct transfer_run *run = export->run;
    const struct api_filter *filter = &export->filter;
    struct increment increment = {.export = export};
    struct slice view = transfer_run_text(run, "IncrementalExportSpecification", "ExportViewType");
    int64_t from_ms = first_ms(run->transfer, run->job.from_ms);
    increment.has_before = !slice_equal(view, SLICE("NEW_IMAGE"));
    if (filter->to.len) {
        buf_slice(&increment.from, filter->from);
        buf_slice(&increment.to, filter->to);
    } else {
        engine_scan_range(export->table, 0, 1, &increment.from, &increment.to);
    }
    bool fine = moment_open(run->transfer, run->job.table, run->job.table_id, from_ms - 1, &increment.first,
                            error, error_len);
    if (fine) {
        fine = filter->is_empty || gather(&increment, from_ms, run->job.to_ms, error, error_len);
        if (fine && !filter->is_empty)
            fine = store_scan(increment.changes.store, SLICE_NONE, SLICE_NONE, false, put_change,
                              &increment) == STORE_OK &&
                   !increment.has_failed;
        moment_close(&increment.first);
    }
    backup_past_close(&increment.changes);
    store_batch_free(&increment.batch);
    buf_free(&increment.from);
    buf_free(&increment.to);
    return fine;
}
