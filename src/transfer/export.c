/* ExportTableToPointInTime as it is done: one view of the table, or the changes between two moments, line by line into
 * data files (export_file.c); then the manifests.
 *
 * A view of the present is held before the call is answered (jobs.c). Such an export that an earlier process has left
 * has lost its moment, and is FAILED. A moment of the past is still there: those exports are made again, under the
 * same names. */
#include "transfer/export.h"

#include <stdio.h>

#include "base/fail.h"
#include "base/raw.h"
#include "transfer/manifest.h"
#include "transfer/moment.h"

#define MANIFEST_BYTES       (16 * 1024) /* a summary has some hundred, and a prefix */
#define INCREMENT_BILLED_MIN 10000000    /* as the service */

/* ---- what it holds ---- */

static void begin(void *context)
{
    struct export *export = context;
    struct buckets *buckets = export->run->transfer->buckets;
    transfer_run_held(export->run);
    if (buckets_exist(buckets, export->bucket, &export->failure))
        export_put_object(export, "_started", SLICE(""));
}

static bool export_present(struct export *export, char *error, size_t error_len)
{
    struct items_view view = {.table = export->table,
                              .held = begin,
                              .visit = export_item,
                              .context = export,
                              .from = export->filter.from,
                              .to = export->filter.to};
    enum engine_result result = ENGINE_OK;
    if (export->filter.is_empty)
        begin(export);
    else
        result = engine_items_view(export->run->transfer->engine, &view);
    if (result != ENGINE_OK) snprintf(error, error_len, "it cannot be read");
    return result == ENGINE_OK;
}

static bool export_past(struct export *export, char *error, size_t error_len)
{
    struct transfer_run *run = export->run;
    struct moment moment;
    begin(export);
    if (!moment_open(run->transfer, run->job.table, run->job.table_id, run->job.export_ms, &moment, error,
                     error_len))
        return false;
    const struct api_filter *filter = &export->filter;
    bool fine;
    if (filter->is_empty)
        fine = true;
    else if (filter->to.len)
        fine = store_scan(moment.past.store, filter->from, filter->to, false, export_item, export) ==
               STORE_OK;
    else
        fine = engine_past_items(moment.past.store, moment.table, export_item, export) == ENGINE_OK;
    moment_close(&moment);
    if (!fine) snprintf(error, error_len, "it cannot be read");
    return fine;
}

static bool export_changes(struct export *export, char *error, size_t error_len)
{
    int64_t *billed = &export->run->job.billed_bytes;
    begin(export);
    if (!export_increment(export, error, error_len)) return false;
    if (*billed < INCREMENT_BILLED_MIN) *billed = INCREMENT_BILLED_MIN;
    return true;
}

/* ---- manifests ---- */

static bool put_with_md5(struct export *export, const char *json, const char *sum, struct slice bytes,
                         bool sum_first)
{
    struct buf digest = {0};
    manifest_put_md5(&digest, bytes);
    bool fine = (!sum_first || export_put_object(export, sum, buf_view(&digest))) &&
                export_put_object(export, json, bytes) &&
                (sum_first || export_put_object(export, sum, buf_view(&digest)));
    buf_free(&digest);
    return fine;
}

static bool put_manifests(struct export *export)
{
    struct transfer_run *run = export->run;
    struct buf summary = {0};
    struct slice algorithm = transfer_run_text(run, NULL, "S3SseAlgorithm");
    run->job.end_ms = engine_now_ms(run->transfer->engine);
    manifest_put_summary(
        &summary,
        &(struct manifest){.api = run->transfer->api,
                           .job = &run->job,
                           .bucket = export->bucket,
                           .prefix = export->prefix,
                           .algorithm = algorithm.len ? algorithm : SLICE("AES256"),
                           .kms_key = transfer_run_text(run, NULL, "S3SseKmsKeyId"),
                           .view = transfer_run_text(run, "IncrementalExportSpecification", "ExportViewType"),
                           .format = export->is_ion ? SLICE("ION") : SLICE("DYNAMODB_JSON"),
                           .files_key = arena_printf(&export->arena, "%.*s/manifest-files.json",
                                                     SLICE_ARG(export->folder))});
    bool fine =
        put_with_md5(export, "manifest-files.json", "manifest-files.md5", buf_view(&export->files), false) &&
        put_with_md5(export, "manifest-summary.json", "manifest-summary.md5", buf_view(&summary), true);
    buf_free(&summary);
    return fine;
}

/* ---- the whole ---- */

static bool is_of_the_present(const struct api_job *job)
{
    return !job->from_ms && job->export_ms >= job->start_ms;
}

static void export_table(struct export *export)
{
    struct transfer_run *run = export->run;
    char error[600] = "";
    run->job.items = run->job.billed_bytes = run->job.bytes = 0; /* it may be its second life */
    bool fine = run->job.from_ms               ? export_changes(export, error, sizeof error)
                : is_of_the_present(&run->job) ? export_present(export, error, sizeof error)
                                               : export_past(export, error, sizeof error);
    if (transfer_run_is_stopped(run)) return;
    if (export->failure.code) {
        transfer_run_fail(run, export->failure.code, export->failure.message, NULL);
    } else if (!fine || export->is_damaged) {
        transfer_run_fail(
            run, "InternalServerError",
            arena_printf(&run->arena, "The table cannot be read: %s.", fine ? "an item is damaged" : error)
                .data,
            NULL);
    } else if (!export_file_end(export) || !put_manifests(export)) {
        transfer_run_fail(run, export->failure.code, export->failure.message, NULL);
    } else {
        run->job.manifest = arena_printf(&run->arena, "%.*s/manifest-summary.json",
                                         SLICE_ARG(export->folder));
        transfer_run_end(run, "COMPLETED", NULL);
    }
}

/* The process may have died between the last object and the note: the manifest tells that all of it is there. */
static bool was_complete(struct export *export)
{
    static const char *const names[] = {"itemCount", "billedSizeBytes"};
    struct transfer_run *run = export->run;
    struct slice raws[2],
        key = arena_printf(&run->arena, "%.*s/manifest-summary.json", SLICE_ARG(export->folder));
    struct bucket_list list = {0};
    struct transfer_source *source = NULL;
    char text[MANIFEST_BYTES];
    size_t len = 0;
    if (buckets_list(run->transfer->buckets, export->bucket, key, &list, &export->failure) && list.count == 1)
        source = buckets_open(run->transfer->buckets, export->bucket, &list.objects[0], &export->failure);
    for (ssize_t got = 1; source && got > 0 && len<sizeof text; len += got> 0 ? (size_t)got : 0)
        got = source->read(source, text + len, sizeof text - len);
    if (source) source->close(source);
    bucket_list_free(&list);
    if (!source || !raw_members(&run->arena, (struct slice){text, len}, names, raws, 2)) return false;
    run->job.manifest = key;
    return raw_int(raws[0], &run->job.items) && raw_int(raws[1], &run->job.billed_bytes);
}

static bool read_filter(struct export *export)
{
    struct transfer_run *run = export->run;
    struct slice request = raw_member(&run->arena, run->job.request, "FilterSpecification");
    return !request.len ||
           api_filter_read(run->transfer->api, &run->arena, request, export->table, &export->filter);
}

static void fail(struct transfer_run *run, const char *code, const char *message)
{
    transfer_run_held(run);
    transfer_run_fail(run, code, message, NULL);
}

void transfer_export(struct transfer_run *run)
{
    struct export export = {.run = run};
    struct table *table = engine_table_find(run->transfer->engine, run->job.table);
    export.table = table;
    export.bucket = transfer_run_text(run, NULL, "S3Bucket");
    export.prefix = transfer_run_text(run, NULL, "S3Prefix");
    export.folder = manifest_folder(&export.arena, export.prefix, run->job.id);
    export.data_folder = run->job.from_ms
                             ? manifest_folder(&export.arena, export.prefix, SLICE("data"))
                             : arena_printf(&export.arena, "%.*s/data", SLICE_ARG(export.folder));
    export.is_ion = slice_equal(transfer_run_text(run, NULL, "ExportFormat"), SLICE("ION"));
    export_file_open(&export);
    if (run->is_resumed && was_complete(&export)) {
        transfer_run_held(run);
        transfer_run_end(run, "COMPLETED", NULL);
    } else if (run->is_resumed && is_of_the_present(&run->job)) {
        fail(
            run, "InternalServerError",
            "The server was stopped before the export was complete. Nothing that it has written is complete: "
            "export the table again.");
    } else if (!table || !slice_equal(table->definition.id, run->job.table_id)) {
        fail(run, "TableNotFoundException", "The table was deleted.");
    } else if (!read_filter(&export)) {
        fail(run, "ValidationException", "The FilterSpecification does not fit the table any more.");
    } else {
        export_table(&export);
    }
    if (table) engine_table_release(table);
    export_file_close(&export);
    arena_free(&export.arena);
}
