/* ExportTableToPointInTime, DescribeExport and ListExports.
 *
 * An export is of the table as it is when the call is answered, as it was at a moment that can be gone back to, or of
 * the changes between two such moments. */
#include "api/backups.h"
#include "api/export_filter.h"
#include "base/raw.h"

#define NOW_MS           1000 /* a client's clock has seconds: what is no older than this is now */
#define INCREMENT_MIN_MS (15 * 60 * INT64_C(1000))
#define INCREMENT_MAX_MS DAY_MS

enum {
    EXPORT_TABLE,
    EXPORT_TIME,
    EXPORT_TOKEN,
    EXPORT_BUCKET,
    EXPORT_OWNER,
    EXPORT_PREFIX,
    EXPORT_ALGORITHM,
    EXPORT_KEY,
    EXPORT_FORMAT,
    EXPORT_TYPE,
    EXPORT_INCREMENT,
    EXPORT_FILTER,
};
enum { INCREMENT_FROM, INCREMENT_TO, INCREMENT_VIEW };

static const char *const formats[] = {"DYNAMODB_JSON", "ION", NULL};
static const char *const types[] = {"FULL_EXPORT", "INCREMENTAL_EXPORT", NULL};
static const char *const views[] = {"NEW_IMAGE", "NEW_AND_OLD_IMAGES", NULL};
static const struct shape shape_time = {.kind = SHAPE_DOUBLE};
static const struct shape shape_format = ENUM_SHAPE(formats);
static const struct shape shape_type = ENUM_SHAPE(types);
static const struct shape shape_view = ENUM_SHAPE(views);
static const struct shape_member increment_members[] = {
    [INCREMENT_FROM] = MEMBER("ExportFromTime", shape_time),
    [INCREMENT_TO] = MEMBER("ExportToTime", shape_time),
    [INCREMENT_VIEW] = MEMBER("ExportViewType", shape_view),
};
static const struct shape shape_increment = STRUCT_SHAPE("IncrementalExportSpecification", increment_members);
static const struct shape_member export_members[] = {
    [EXPORT_TABLE] = REQUIRED("TableArn", shape_string),
    [EXPORT_TIME] = MEMBER("ExportTime", shape_time),
    [EXPORT_TOKEN] = MEMBER("ClientToken", shape_client_token),
    [EXPORT_BUCKET] = REQUIRED("S3Bucket", shape_bucket),
    [EXPORT_OWNER] = MEMBER("S3BucketOwner", shape_bucket_owner),
    [EXPORT_PREFIX] = MEMBER("S3Prefix", shape_output_prefix),
    [EXPORT_ALGORITHM] = MEMBER("S3SseAlgorithm", shape_sse_algorithm),
    [EXPORT_KEY] = MEMBER("S3SseKmsKeyId", shape_sse_key),
    [EXPORT_FORMAT] = MEMBER("ExportFormat", shape_format),
    [EXPORT_TYPE] = MEMBER("ExportType", shape_type),
    [EXPORT_INCREMENT] = MEMBER("IncrementalExportSpecification", shape_increment),
    [EXPORT_FILTER] = MEMBER("FilterSpecification", shape_export_filter),
};
static const struct shape export_shape = STRUCT_SHAPE("ExportTableToPointInTimeInput", export_members);

/* ---- showing ---- */

static const char *type_of(const struct api_job *job)
{
    return job->from_ms ? "INCREMENTAL_EXPORT" : "FULL_EXPORT";
}

/* With what the request left out. */
static void put_increment(struct buf *out, struct arena *arena, const struct api_job *job)
{
    struct slice sent = raw_member(arena, job->request, "IncrementalExportSpecification"),
                 view = raw_string(arena, raw_member(arena, sent, "ExportViewType"));
    put_text(out, "ExportType", slice_of(type_of(job)));
    buf_printf(out, ",\"IncrementalExportSpecification\":{\"ExportViewType\":\"%.*s\"",
               SLICE_ARG(view.len ? view : SLICE("NEW_AND_OLD_IMAGES")));
    put_time(out, "ExportFromTime", job->from_ms);
    put_time(out, "ExportToTime", job->to_ms);
    buf_byte(out, '}');
}

static void put_export(struct api_call *call, const struct api_job *job)
{
    struct buf *out = call->reply;
    struct arena *arena = call->arena;
    buf_text(out, "{\"ExportDescription\":{\"ExportArn\":\"");
    api_put_job_arn(out, call->api, job);
    buf_printf(out, "\",\"ExportStatus\":\"%.*s\",\"TableArn\":\"", SLICE_ARG(job->status));
    put_table_arn(out, call->api, job->table);
    buf_byte(out, '"');
    put_text(out, "TableId", job->table_id);
    put_text(out, "ClientToken", job->token);
    put_text(out, "DestinationType", SLICE("S3"));
    put_time(out, "StartTime", job->start_ms);
    if (job->end_ms) put_time(out, "EndTime", job->end_ms);
    if (job->from_ms)
        put_increment(out, arena, job);
    else
        put_time(out, "ExportTime", job->export_ms);
    put_request_member(out, arena, job, "S3Bucket");
    put_request_member(out, arena, job, "S3BucketOwner");
    put_request_member(out, arena, job, "S3Prefix");
    put_request_word(out, arena, job, "S3SseAlgorithm", "AES256");
    put_request_member(out, arena, job, "S3SseKmsKeyId");
    put_request_word(out, arena, job, "ExportFormat", "DYNAMODB_JSON");
    put_request_member(out, arena, job, "FilterSpecification");
    if (job->manifest.len) {
        put_text(out, "ExportManifest", job->manifest);
        put_int(out, "BilledSizeBytes", job->billed_bytes);
        put_int(out, "ItemCount", job->items);
    }
    put_job_failure(out, job);
    buf_text(out, "}}");
}

/* ---- ExportTableToPointInTime ---- */

/* What the writer must know of the request. */
struct export_start {
    struct background_start start;
    struct slice arn;
    bool is_increment;
    int64_t time_ms;        /* 0: now */
    int64_t from_ms, to_ms; /* of an increment; to_ms 0: now */
};

static bool reject_time(struct background_start *start, const char *words, int64_t time_ms)
{
    struct buf text = {0};
    put_stream_label(&text, time_ms);
    reject_as(&start->verdict, "InvalidExportTimeException", "%s : %.*sZ", words, SLICE_ARG(buf_view(&text)));
    buf_free(&text);
    return false;
}

/* Clients send whole seconds, so the first second counts as a whole. */
static bool is_kept(const struct recovery *recovery, int64_t time_ms)
{
    return time_ms >= recovery->from_ms - recovery->from_ms % 1000;
}

static bool check_time(struct export_start *export, const struct recovery *recovery)
{
    struct background_start *start = &export->start;
    struct api_job *job = &start->job;
    job->export_ms = job->start_ms;
    if (!export->time_ms) return true;
    if (export->time_ms > job->start_ms + NOW_MS || !is_kept(recovery, export->time_ms))
        return reject_as(&start->verdict, "InvalidExportTimeException", "Export Time is invalid");
    if (export->time_ms < job->start_ms - NOW_MS)
        job->export_ms = export->time_ms < recovery->from_ms ? recovery->from_ms : export->time_ms;
    return true;
}

/* That more than a day is refused is documented; the words are a guess. */
static bool check_increment(struct export_start *export, const struct table_definition *definition,
                            const struct recovery *recovery)
{
    struct background_start *start = &export->start;
    struct api_job *job = &start->job;
    int64_t from_ms = export->from_ms, to_ms = export->to_ms ? export->to_ms : job->start_ms;
    if (from_ms < definition->created_ms - definition->created_ms % 1000)
        return reject_time(start,
                           "Incremental export period from time cannot be less than the table creation time",
                           definition->created_ms);
    if (to_ms > job->start_ms)
        return reject_time(start, "Incremental export period to time cannot be greater than the current time",
                           job->start_ms);
    if (to_ms - from_ms < INCREMENT_MIN_MS)
        return reject_as(
            &start->verdict, "InvalidExportTimeException",
            "Difference between export period from time and export period to time is less than 15 "
            "minutes");
    if (to_ms - from_ms > INCREMENT_MAX_MS)
        return reject_as(
            &start->verdict, "InvalidExportTimeException",
            "Difference between export period from time and export period to time is greater than "
            "24 hours");
    if (!is_kept(recovery, from_ms))
        return reject_as(&start->verdict, "InvalidExportTimeException", "Export Time is invalid");
    job->from_ms = from_ms;
    job->to_ms = to_ms;
    return true;
}

/* In the service's order: the table, its recovery, the time. */
static bool check_export(struct background_start *start, struct batch *batch)
{
    struct export_start *export = (struct export_start *)start;
    struct api_job *job = &start->job;
    const struct table *table = engine_table_in_batch(batch, job->table);
    if (!table)
        return reject_as(&start->verdict, "TableNotFoundException", "Table not found: %.*s",
                         SLICE_ARG(export->arn));
    struct recovery recovery = table_recovery(start->api, &table->definition);
    if (!recovery.is_on)
        return reject_as(&start->verdict, "PointInTimeRecoveryUnavailableException",
                         "Point in time recovery is not enabled for table '%.*s'", SLICE_ARG(job->table));
    job->table_id = table->definition.id;
    return export->is_increment ? check_increment(export, &table->definition, &recovery)
                                : check_time(export, &recovery);
}

static bool check_arn(struct api_call *call, struct slice arn, struct slice *table)
{
    struct resource resource;
    enum resource_fault fault = resource_parse(call->api, arn, &resource);
    if (fault == RESOURCE_NO_ARN || fault == RESOURCE_FOREIGN)
        return invalid(call, INVALID_VALUES "tableArn is not a valid ARN");
    if (fault == RESOURCE_OTHER_ACCOUNT)
        return refuse(call, "TableNotFoundException", "Table not found: %.*s", SLICE_ARG(arn));
    if (fault != RESOURCE_FINE || resource.stream_label.len)
        return invalid(call, "Invalid Request: Table ARN is invalid.");
    *table = resource.table_name;
    return true;
}

static bool check_request(struct api_call *call, const struct node *input, struct slice table)
{
    const struct node *type = node_member(input, EXPORT_TYPE),
                      *increment = node_member(input, EXPORT_INCREMENT),
                      *filter = node_member(input, EXPORT_FILTER);
    if (node_member(input, EXPORT_KEY)->present && !node_says(node_member(input, EXPORT_ALGORITHM), "KMS"))
        return invalid(call, "Invalid Request: KMS Key Id is not supported for this encryption type");
    if (increment->present && !type->present)
        return invalid(
            call, "Invalid Request: Export Type expected to be Incremental Export when incremental export "
                  "specification is provided");
    if (increment->present && node_says(type, "FULL_EXPORT"))
        return invalid(call,
                       "Invalid Request: When Export Type is Full Export , Incremental Export Specification "
                       "should not be provided");
    if (!increment->present && node_says(type, "INCREMENTAL_EXPORT"))
        return invalid(
            call, "Invalid Request: Incremental Export Specification expected when export type is set as "
                  "Incremental Export");
    if (increment->present && !node_member(increment, INCREMENT_FROM)->present)
        return invalid(call,
                       "Invalid Request: ExportFromTime must be provided in IncrementalExportSpecification");
    struct api_filter unused;
    return !filter->present || export_filter_read(call, filter, look_up_table(call, table), &unused);
}

/* In milliseconds; 0: there is none. */
static int64_t read_time(const struct node *time)
{
    if (!time->present) return 0;
    return time->real > 0 && time->real < 1e12 ? (int64_t)(time->real * 1000 + 0.5) : 1;
}

static void export_begin(struct api_call *call, const struct node *input)
{
    static const char *const kept[] = {"TableArn",
                                       "S3Bucket",
                                       "S3BucketOwner",
                                       "S3Prefix",
                                       "S3SseAlgorithm",
                                       "S3SseKmsKeyId",
                                       "ExportFormat",
                                       "ExportTime",
                                       "FilterSpecification",
                                       "IncrementalExportSpecification",
                                       NULL};
    const struct node *increment = node_member(input, EXPORT_INCREMENT);
    struct export_start *export = arena_new(call->arena, struct export_start);
    struct background_start *start = &export->start;
    export->arn = node_member(input, EXPORT_TABLE)->text;
    if (!check_arn(call, export->arn, &start->job.table) || !check_request(call, input, start->job.table))
        return;
    export->time_ms = read_time(node_member(input, EXPORT_TIME));
    export->is_increment = increment->present;
    if (increment->present) {
        export->from_ms = read_time(node_member(increment, INCREMENT_FROM));
        export->to_ms = read_time(node_member(increment, INCREMENT_TO));
    }
    start->job.kind = API_EXPORT;
    start->job.request = background_request(call, kept);
    start->check = check_export;
    start->conflict = "ExportConflictException";
    start->conflict_words = "Export conflict: Duplicate request detected with conflicting parameters";
    background_submit(call, node_member(input, EXPORT_TOKEN), start);
}

static void export_finish(struct api_call *call)
{
    const struct api_job *job = background_finish(call);
    if (job) put_export(call, job);
}

const struct operation operation_ExportTableToPointInTime = {
    .name = TEXT("ExportTableToPointInTime"),
    .input = &export_shape,
    .begin = export_begin,
    .finish = export_finish,
};

/* ---- DescribeExport ---- */

static const struct shape_member describe_members[] = {REQUIRED("ExportArn", shape_job_arn)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeExportInput", describe_members);

static void describe_begin(struct api_call *call, const struct node *input)
{
    static const struct background_words words = {API_EXPORT, "Invalid Export ARN", "ExportNotFoundException",
                                                  "Export not found: Export not found: ",
                                                  "Export not found: Invalid export arn"};
    struct api_job job;
    if (background_by_arn(call, node_member(input, 0)->text, &words, &job)) put_export(call, &job);
}

const struct operation operation_DescribeExport = {
    .name = TEXT("DescribeExport"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- ListExports ---- */

enum { LIST_TABLE, LIST_SIZE, LIST_TOKEN };

static const struct shape_member list_members[] = {
    [LIST_TABLE] = MEMBER("TableArn", shape_string),
    [LIST_SIZE] = MEMBER("MaxResults", shape_list_size),
    [LIST_TOKEN] = MEMBER("NextToken", shape_string),
};
static const struct shape list_shape = STRUCT_SHAPE("ListExportsInput", list_members);

/* Those of a table that is gone are not listed, not even when there is another of its name. */
static bool has_table(struct background_list *list, const struct api_job *job)
{
    struct table *table = engine_table_find(list->call->api->engine, job->table);
    bool is_same = table && slice_equal(table->definition.id, job->table_id);
    if (table) engine_table_release(table);
    return is_same;
}

static void put_summary(struct background_list *list, const struct api_job *job)
{
    struct buf *out = list->call->reply;
    buf_text(out, "{\"ExportArn\":\"");
    api_put_job_arn(out, list->call->api, job);
    buf_printf(out, "\",\"ExportStatus\":\"%.*s\",\"ExportType\":\"%s\"}", SLICE_ARG(job->status),
               type_of(job));
}

static void list_begin(struct api_call *call, const struct node *input)
{
    struct background_list list = {.call = call, .kind = API_EXPORT, .wants = has_table, .put = put_summary};
    const struct node *table = node_member(input, LIST_TABLE);
    if (table->present && !check_arn(call, table->text, &list.table)) return;
    background_list_put(&list, "ExportSummaries", node_member(input, LIST_SIZE),
                        node_member(input, LIST_TOKEN));
}

const struct operation operation_ListExports = {
    .name = TEXT("ListExports"),
    .input = &list_shape,
    .begin = list_begin,
};
