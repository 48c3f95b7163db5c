/* StartBulkPutItems as it is done: all objects with the prefix, in the order of their keys, put into a table that
 * others use meanwhile. Reports of what was not written go to the output's bucket (the input's where it names none):
 *
 *   [PREFIX/]AWSDynamoDB/ID/error/NUMBER.json                    {"S3Key", "ItemIndex", "Item", "ErrorMessage"}
 *   [PREFIX/]AWSDynamoDB/ID/condition-check-failure/NUMBER.json  {"S3Key", "ItemIndex", "Item", "ExistingItem"}
 *   [PREFIX/]AWSDynamoDB/ID/manifest-summary.json                last
 *
 * One that an earlier process has left is FAILED: others may have written the same items since, so that it cannot be
 * begun again. */
#include <stdio.h>

#include "base/compose.h"
#include "base/json.h"
#include "base/random.h"
#include "base/raw.h"
#include "transfer/jobs.h"
#include "transfer/manifest.h"

#define UNIT_BYTES      1024 /* of a write request unit */
#define RETURN_CAPACITY ",\"ReturnConsumedCapacity\":\"INDEXES\""
#define INDEXES         (LIMIT_GSI_COUNT + LIMIT_LSI_COUNT + LIMIT_VECTOR_INDEXES)

enum report_kind { REPORT_ERROR, REPORT_CONDITION, REPORTS };

struct report {
    const char *folder;
    bool is_wanted;
    struct buf lines; /* of the object that is being made */
    uint64_t count, objects;
};

/* Bytes that were put into an index, by its kind and name. */
struct index_usage {
    unsigned kind;
    struct slice name;
    int64_t bytes;
};

struct bulk {
    struct transfer_run *run;
    struct slice bucket, key; /* key: of the object that is read */
    struct transfer_records_options options;
    struct slice output_bucket, folder;
    struct report reports[REPORTS];
    struct putter *putter;
    int64_t units_a_second, units, paced_units, begun_us;
    int64_t table_bytes;
    struct index_usage indexes[INDEXES];
    unsigned index_count;
    struct buf usage; /* the job's note has it */
    struct transfer_failure failure;
    struct arena arena;
};

/* ---- reports ---- */

static bool report_flush(struct bulk *bulk, struct report *report)
{
    if (!report->lines.len) return true;
    struct slice key = arena_printf(&bulk->arena, "%.*s/%s/%06llu.json", SLICE_ARG(bulk->folder),
                                    report->folder, (unsigned long long)++report->objects);
    bool fine = buckets_put(bulk->run->transfer->buckets, bulk->output_bucket, key, buf_view(&report->lines),
                            &bulk->failure);
    report->lines.len = 0;
    return fine;
}

/* `last`: the name of the last member; its value is JSON, or empty. */
static void report_put(struct bulk *bulk, enum report_kind kind, uint64_t number, struct slice item,
                       const char *last, struct slice value)
{
    struct report *report = &bulk->reports[kind];
    report->count++;
    if (!report->is_wanted || bulk->failure.code) return;
    compose(&report->lines, "{'S3Key':%s,'ItemIndex':%d", bulk->key, (int64_t)number);
    if (item.len) buf_printf(&report->lines, ",\"Item\":%.*s", SLICE_ARG(item));
    if (value.len) buf_printf(&report->lines, ",\"%s\":%.*s", last, SLICE_ARG(value));
    buf_text(&report->lines, "}\n");
    if (report->lines.len >= LIMIT_TRANSFER_FILE_BYTES) report_flush(bulk, report);
}

static void report_error(struct bulk *bulk, uint64_t number, struct slice item, struct slice message)
{
    struct buf quoted = {0};
    json_put_string(&quoted, message);
    bulk->run->job.errors++;
    report_put(bulk, REPORT_ERROR, number, item, "ErrorMessage", buf_view(&quoted));
    buf_free(&quoted);
}

static void put_failed(void *context, const struct put_failure *failure)
{
    struct bulk *bulk = context;
    if (failure->is_condition)
        report_put(bulk, REPORT_CONDITION, failure->number, failure->item, "ExistingItem", failure->existing);
    else
        report_error(bulk, failure->number, failure->item, failure->message);
}

/* ---- what it costs ---- */

static const struct {
    const char *name, *consumed, *bytes;
    int64_t factor;
} index_kinds[] = {
    {"LocalSecondaryIndexes", "CapacityUnits", "BulkPutBytes", UNIT_BYTES},
    {"GlobalSecondaryIndexes", "CapacityUnits", "BulkPutBytes", UNIT_BYTES},
    {"VectorIndexes", "VectorWriteRequestBytes", "BulkPutVectorBytes", 1},
};
#define INDEX_KINDS (sizeof index_kinds / sizeof *index_kinds)

static int64_t number_of(struct arena *arena, struct slice object, const char *name)
{
    int64_t number = 0;
    raw_int(raw_member(arena, object, name), &number);
    return number;
}

static void add_index(struct bulk *bulk, unsigned kind, struct slice name, int64_t bytes)
{
    unsigned i = 0;
    while (i < bulk->index_count &&
           !(bulk->indexes[i].kind == kind && slice_equal(bulk->indexes[i].name, name)))
        i++;
    if (i == INDEXES) return; /* some were deleted and made meanwhile */
    if (i == bulk->index_count)
        bulk->indexes[bulk->index_count++] = (struct index_usage){kind, arena_copy(&bulk->arena, name), 0};
    bulk->indexes[i].bytes += bytes;
}

static void put_written(void *context, struct slice reply)
{
    struct bulk *bulk = context;
    struct arena arena = {0};
    struct slice consumed = raw_member(&arena, reply, "ConsumedCapacity"), name, index;
    bulk->units += number_of(&arena, consumed, "CapacityUnits");
    bulk->table_bytes += UNIT_BYTES *
                         number_of(&arena, raw_member(&arena, consumed, "Table"), "CapacityUnits");
    for (unsigned kind = 0; kind < INDEX_KINDS; kind++)
        raw_each_member (&arena, raw_member(&arena, consumed, index_kinds[kind].name), &name, &index)
            add_index(bulk, kind, name,
                      index_kinds[kind].factor * number_of(&arena, index, index_kinds[kind].consumed));
    arena_free(&arena);
}

/* An element of BulkOperationUsage. */
static void put_usage(struct bulk *bulk)
{
    struct buf *out = &bulk->usage;
    int64_t all = bulk->table_bytes;
    for (unsigned i = 0; i < bulk->index_count; i++)
        if (index_kinds[bulk->indexes[i].kind].factor > 1) all += bulk->indexes[i].bytes;
    out->len = 0;
    compose(out, "{'TableName':%s,'BulkPutBytes':%d,'Table':{'BulkPutBytes':%d}", bulk->run->job.table, all,
            bulk->table_bytes);
    for (unsigned kind = 0; kind < INDEX_KINDS; kind++) {
        bool any = false;
        for (unsigned i = 0; i < bulk->index_count; i++) {
            const struct index_usage *index = &bulk->indexes[i];
            if (index->kind != kind) continue;
            if (!any) buf_printf(out, ",\"%s\":{", index_kinds[kind].name);
            if (any) buf_byte(out, ',');
            any = true;
            compose(out, "%s:{", index->name);
            buf_printf(out, "\"%s\":%lld}", index_kinds[kind].bytes, (long long)index->bytes);
        }
        if (any) buf_byte(out, '}');
    }
    buf_byte(out, '}');
    bulk->run->job.usage = buf_view(out);
}

/* Waits as long as what was written takes at MaxWriteRequestUnits a second. False: nobody wants the job any more. */
static bool keep_pace(struct bulk *bulk)
{
    if (bulk->units == bulk->paced_units) return transfer_run_note(bulk->run, false);
    bulk->paced_units = bulk->units;
    put_usage(bulk);
    if (!transfer_run_note(bulk->run, false)) return false;
    if (bulk->units_a_second)
        transfer_run_wait(bulk->run, bulk->begun_us +
                                         (int64_t)((double)bulk->units / (double)bulk->units_a_second * 1e6));
    return true;
}

/* ---- items ---- */

/* Further members of the request. A line of JSON may have a condition beside its item, in PutItem's own words. */
static struct slice members_of(struct bulk *bulk, struct arena *arena, struct slice line)
{
    static const char *const names[] = {"ConditionExpression", "ExpressionAttributeNames",
                                        "ExpressionAttributeValues"};
    struct slice raws[3];
    struct buf out = {0};
    if (bulk->options.format != TRANSFER_JSON || !raw_members(arena, line, names, raws, 3) || !raws[0].len)
        return SLICE(RETURN_CAPACITY);
    for (unsigned i = 0; i < 3; i++)
        if (raws[i].len) buf_printf(&out, ",\"%s\":%.*s", names[i], SLICE_ARG(raws[i]));
    buf_text(&out, RETURN_CAPACITY ",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"");
    return arena_take(arena, &out);
}

/* False when it is not to go on. */
static bool read_object(struct bulk *bulk, const struct bucket_object *object)
{
    struct transfer_run *run = bulk->run;
    struct arena arena = {0}; /* of one record */
    struct transfer_failure failure = {0};
    struct slice item;
    const char *fault;
    enum transfer_result result;
    bool fine = true;
    bulk->key = object->key;
    struct transfer_source *source = buckets_open(run->transfer->buckets, bulk->bucket, object, &failure);
    if (!source) {
        report_error(bulk, 0, SLICE_NONE, slice_of(failure.message));
        return true;
    }
    struct transfer_records *records = transfer_records_open(source, &bulk->options);
    while (fine && !transfer_run_is_stopped(run) &&
           (result = transfer_records_next(records, &item, &fault)) != TRANSFER_END) {
        uint64_t number = transfer_records_count(records);
        run->job.items++;
        if (result == TRANSFER_FOUND) {
            fine = putter_add(bulk->putter, item, members_of(bulk, &arena, transfer_records_text(records)),
                              number);
        } else {
            report_error(bulk, number, SLICE_NONE, slice_of(fault));
        }
        arena_reset(&arena);
        if (fine) fine = keep_pace(bulk) && !bulk->failure.code;
    }
    /* What was read is written, also when it is cancelled now. */
    fine = fine && putter_flush(bulk->putter) && keep_pace(bulk);
    run->job.bytes += (int64_t)object->bytes;
    transfer_records_close(records);
    arena_free(&arena);
    return fine && !transfer_run_is_stopped(run);
}

/* ---- the whole ---- */

static void read_request(struct bulk *bulk)
{
    struct transfer_run *run = bulk->run;
    struct slice output = raw_member(&run->arena, run->job.request, "OutputS3Configuration"), type;
    bulk->bucket = transfer_run_text(run, "InputS3Configuration", "S3Bucket");
    bulk->output_bucket = transfer_run_text(run, "OutputS3Configuration", "S3Bucket");
    if (!bulk->output_bucket.len) bulk->output_bucket = bulk->bucket;
    bulk->folder = manifest_folder(
        &bulk->arena, transfer_run_text(run, "OutputS3Configuration", "S3KeyPrefix"), run->job.id);
    bulk->options.compression = transfer_run_compression(
        transfer_run_text(run, "InputS3Configuration", "InputCompressionType"));
    if (slice_equal(transfer_run_text(run, "InputS3Configuration", "InputFormat"), SLICE("ION")))
        bulk->options.format = TRANSFER_ION;
    bulk->units_a_second = number_of(&run->arena, run->job.request, "MaxWriteRequestUnits");
    bulk->reports[REPORT_ERROR].folder = "error";
    bulk->reports[REPORT_CONDITION].folder = "condition-check-failure";
    raw_each (&run->arena, raw_member(&run->arena, output, "OutputType"), &type) {
        bool is_error = slice_equal(raw_string(&run->arena, type), SLICE("ERROR"));
        bulk->reports[is_error ? REPORT_ERROR : REPORT_CONDITION].is_wanted = true;
    }
}

static bool put_summary(struct bulk *bulk, const char *status)
{
    struct transfer_run *run = bulk->run;
    struct buf arn = {0}, text = {0};
    api_put_job_arn(&arn, run->transfer->api, &run->job);
    compose(&text,
            "{'bulkOperationArn':%s,'status':%s,'tableName':%s,'processedItemCount':%d,'failedItemCount':%d,"
            "'conditionCheckFailureCount':%d,'errorObjects':%d,'conditionCheckFailureObjects':%d}",
            buf_view(&arn), slice_of(status), run->job.table, run->job.items, run->job.errors,
            (int64_t)bulk->reports[REPORT_CONDITION].count, (int64_t)bulk->reports[REPORT_ERROR].objects,
            (int64_t)bulk->reports[REPORT_CONDITION].objects);
    struct slice key = arena_printf(&bulk->arena, "%.*s/manifest-summary.json", SLICE_ARG(bulk->folder));
    bool fine = buckets_put(run->transfer->buckets, bulk->output_bucket, key, buf_view(&text),
                            &bulk->failure);
    buf_free(&arn);
    buf_free(&text);
    return fine;
}

static void put_all(struct bulk *bulk, const struct bucket_list *list)
{
    struct transfer_run *run = bulk->run;
    bool fine = true;
    run->job.total_bytes = (int64_t)list->total_bytes;
    bulk->putter = putter_open(
        run->transfer, run->job.table,
        (struct put_listener){.failed = put_failed, .written = put_written, .context = bulk});
    bulk->begun_us = monotonic_us();
    put_usage(bulk);
    for (uint32_t i = 0; fine && i < list->count; i++) fine = read_object(bulk, &list->objects[i]);
    putter_close(bulk->putter);
    if (atomic_load(&run->transfer->stopping)) return;
    const char *status = atomic_load(&run->is_cancelled) ? "CANCELLED"
                         : run->job.errors               ? "COMPLETED_WITH_ERRORS"
                                                         : "COMPLETED";
    bool is_reported = report_flush(bulk, &bulk->reports[REPORT_ERROR]) &&
                       report_flush(bulk, &bulk->reports[REPORT_CONDITION]) && put_summary(bulk, status);
    if (!fine && !bulk->failure.code && !atomic_load(&run->is_cancelled))
        transfer_run_fail(run, "InternalServerError", "The items cannot be written.", NULL);
    else if (!is_reported || bulk->failure.code)
        transfer_run_fail(run, bulk->failure.code, bulk->failure.message, NULL);
    else
        transfer_run_end(run, status, NULL);
}

void transfer_bulk(struct transfer_run *run)
{
    struct bulk bulk = {.run = run};
    struct bucket_list list = {0};
    struct buckets *buckets = run->transfer->buckets;
    transfer_run_held(run);
    read_request(&bulk);
    if (run->is_resumed)
        transfer_run_fail(
            run, "InternalServerError",
            "The server was stopped before all items were written. Some are: start it again if they may "
            "be written twice.",
            NULL);
    else if (buckets_exist(buckets, bulk.bucket, &bulk.failure) &&
             buckets_exist(buckets, bulk.output_bucket, &bulk.failure) &&
             buckets_list(buckets, bulk.bucket, transfer_run_text(run, "InputS3Configuration", "S3KeyPrefix"),
                          &list, &bulk.failure))
        put_all(&bulk, &list);
    else
        transfer_run_fail(run, bulk.failure.code, bulk.failure.message, NULL);
    bucket_list_free(&list);
    for (unsigned i = 0; i < REPORTS; i++) buf_free(&bulk.reports[i].lines);
    buf_free(&bulk.usage);
    arena_free(&bulk.arena);
}
