/* StartBulkPutItems, DescribeBulkOperation, ListBulkOperations and CancelBulkOperation: many items from a bucket into a
 * table that is there. */
#include "api/background.h"

enum { INPUT_BUCKET, INPUT_FORMAT, INPUT_PREFIX, INPUT_OWNER, INPUT_COMPRESSION };
enum { OUTPUT_TYPE, OUTPUT_BUCKET, OUTPUT_PREFIX, OUTPUT_OWNER, OUTPUT_ALGORITHM, OUTPUT_KEY };
enum { START_TABLE, START_INPUT, START_OUTPUT, START_TOKEN, START_UNITS, START_TIER };

#define UNITS_MIN 1024 /* of MaxWriteRequestUnits */

static const char *const formats[] = {"DYNAMODB_JSON", "ION", NULL};
static const char *const output_types[] = {"ERROR", "CONDITION_CHECK_FAILURE", NULL};
static const char *const tiers[] = {"STANDARD", "ACCELERATED", NULL};
static const struct shape shape_format = ENUM_SHAPE(formats);
static const struct shape shape_output_type = ENUM_SHAPE(output_types);
static const struct shape shape_output_types = LIST_SHAPE_SIZED(shape_output_type, 1, 2);
static const struct shape shape_tier = ENUM_SHAPE(tiers);
static const struct shape shape_units_max = {.kind = SHAPE_LONG, .has_min = true, .min = UNITS_MIN};
static const struct shape_member input_members[] = {
    [INPUT_BUCKET] = REQUIRED("S3Bucket", shape_bucket),
    [INPUT_FORMAT] = REQUIRED("InputFormat", shape_format),
    [INPUT_PREFIX] = MEMBER("S3KeyPrefix", shape_key_prefix),
    [INPUT_OWNER] = MEMBER("S3BucketOwner", shape_bucket_owner),
    [INPUT_COMPRESSION] = MEMBER("InputCompressionType", shape_compression),
};
static const struct shape shape_input = STRUCT_SHAPE("InputS3Configuration", input_members);
static const struct shape_member output_members[] = {
    [OUTPUT_TYPE] = REQUIRED("OutputType", shape_output_types),
    [OUTPUT_BUCKET] = MEMBER("S3Bucket", shape_bucket),
    [OUTPUT_PREFIX] = MEMBER("S3KeyPrefix", shape_output_prefix),
    [OUTPUT_OWNER] = MEMBER("S3BucketOwner", shape_bucket_owner),
    [OUTPUT_ALGORITHM] = MEMBER("S3SseAlgorithm", shape_sse_algorithm),
    [OUTPUT_KEY] = MEMBER("S3SseKmsKeyId", shape_sse_key),
};
static const struct shape shape_output = STRUCT_SHAPE("OutputS3Configuration", output_members);
static const struct shape_member start_members[] = {
    [START_TABLE] = REQUIRED("TableName", shape_table_name_strict),
    [START_INPUT] = REQUIRED("InputS3Configuration", shape_input),
    [START_OUTPUT] = REQUIRED("OutputS3Configuration", shape_output),
    [START_TOKEN] = MEMBER("ClientToken", shape_client_token),
    [START_UNITS] = MEMBER("MaxWriteRequestUnits", shape_units_max),
    [START_TIER] = MEMBER("PerformanceTier", shape_tier),
};
static const struct shape start_shape = STRUCT_SHAPE("StartBulkPutItemsInput", start_members);

static const struct background_words words = {.kind = API_BULK,
                                              .invalid = "Invalid BulkOperation ARN",
                                              .not_found = "ResourceNotFoundException",
                                              .missing = "Requested resource not found: BulkOperation: "};

/* ---- showing ---- */

static void put_arn(struct buf *out, const struct api *api, const struct api_job *job, const char *status)
{
    buf_text(out, "\"BulkOperationArn\":\"");
    api_put_job_arn(out, api, job);
    buf_printf(out, "\",\"BulkOperationStatus\":\"%s\"", status);
}

static void put_bulk(struct api_call *call, const struct api_job *job)
{
    struct buf *out = call->reply;
    buf_text(out, "{\"BulkOperationDescription\":{");
    put_arn(out, call->api, job, arena_printf(call->arena, "%.*s", SLICE_ARG(job->status)).data);
    buf_text(out, ",\"TableDetails\":[{\"TableName\":");
    json_put_string(out, job->table);
    put_text(out, "TableId", job->table_id);
    buf_text(out, "}]");
    put_text(out, "ClientToken", job->token);
    put_request_member(out, call->arena, job, "InputS3Configuration");
    put_request_member(out, call->arena, job, "OutputS3Configuration");
    put_request_member(out, call->arena, job, "MaxWriteRequestUnits");
    put_request_word(out, call->arena, job, "PerformanceTier", "STANDARD");
    put_time(out, "StartTime", job->start_ms);
    if (job->end_ms) put_time(out, "EndTime", job->end_ms);
    put_int(out, "ProcessedItemCount", job->items);
    put_int(out, "ProcessedInputBytes", job->bytes);
    put_int(out, "TotalInputBytes", job->total_bytes);
    put_int(out, "FailedItemCount", job->errors);
    if (job->usage.len) buf_printf(out, ",\"BulkOperationUsage\":[%.*s]", SLICE_ARG(job->usage));
    put_job_failure(out, job);
    buf_text(out, "}}");
}

/* ---- StartBulkPutItems ---- */

static bool has_new_index(const struct table_definition *definition)
{
    for (uint32_t i = 0; i < definition->index_count; i++)
        if (definition->indexes[i].status == INDEX_CREATING) return true;
    return false;
}

static bool check_table(struct background_start *start, struct batch *batch)
{
    struct api_job *job = &start->job;
    const struct table *table = engine_table_in_batch(batch, job->table);
    if (!table)
        return reject_as(&start->verdict, "ResourceNotFoundException",
                         "Requested resource not found: Table: %.*s not found", SLICE_ARG(job->table));
    if (table_is_creating(start->api, table))
        return reject_as(&start->verdict, "ResourceInUseException", IN_USE "Table is being created: %.*s",
                         SLICE_ARG(job->table));
    if (has_new_index(&table->definition))
        return reject_as(&start->verdict, "ResourceInUseException",
                         IN_USE "Table has an index that is being created: %.*s", SLICE_ARG(job->table));
    if (setting_map(&table->definition, "replicas").count || setting_map(&table->definition, "global").count)
        return reject(&start->verdict, "Invalid Request: bulk operations do not support global tables: %.*s",
                      SLICE_ARG(job->table));
    job->table_id = table->definition.id;
    return true;
}

static void start_begin(struct api_call *call, const struct node *input)
{
    static const char *const kept[] = {"TableName",
                                       "InputS3Configuration",
                                       "OutputS3Configuration",
                                       "MaxWriteRequestUnits",
                                       "PerformanceTier",
                                       NULL};
    struct background_start *start = arena_new(call->arena, struct background_start);
    if (!table_name_resolve(call, node_member(input, START_TABLE), &start->job.table)) return;
    start->job.kind = API_BULK;
    start->job.request = background_request(call, kept);
    start->check = check_table;
    start->conflict = "IdempotentParameterMismatchException";
    start->conflict_words = "The client token was used with other parameters";
    background_submit(call, node_member(input, START_TOKEN), start);
}

static void start_finish(struct api_call *call)
{
    const struct api_job *job = background_finish(call);
    if (job) put_bulk(call, job);
}

const struct operation operation_StartBulkPutItems = {
    .name = TEXT("StartBulkPutItems"),
    .input = &start_shape,
    .begin = start_begin,
    .finish = start_finish,
};

/* ---- DescribeBulkOperation ---- */

static const struct shape_member arn_members[] = {REQUIRED("BulkOperationArn", shape_job_arn)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeBulkOperationInput", arn_members);

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct api_job job;
    if (background_by_arn(call, node_member(input, 0)->text, &words, &job)) put_bulk(call, &job);
}

const struct operation operation_DescribeBulkOperation = {
    .name = TEXT("DescribeBulkOperation"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- CancelBulkOperation ---- */

static const struct shape cancel_shape = STRUCT_SHAPE("CancelBulkOperationInput", arn_members);

static void cancel_apply(struct commit *commit, struct batch *batch)
{
    struct api_call *call = call_of_commit(commit);
    struct api_job *job = call->state, now;
    struct slice id = job->id;
    job->status = SLICE_NONE;
    if (!api_job_in_batch(batch, call->arena, API_BULK, id, &now) || !api_job_is_running(&now)) return;
    *job = now;
    job->status = SLICE("CANCELLING");
    api_job_put(batch, call->arena, job);
}

static void cancel_begin(struct api_call *call, const struct node *input)
{
    struct api_job *job = arena_new(call->arena, struct api_job);
    if (!background_by_arn(call, node_member(input, 0)->text, &words, job)) return;
    call->state = job;
    call->commit.apply = cancel_apply;
    call->is_write = true;
}

static void cancel_finish(struct api_call *call)
{
    const struct api_job *job = call->state;
    if (!job->status.len) {
        invalid(call, "Invalid Request: the bulk operation is not in progress");
        return;
    }
    buf_byte(call->reply, '{');
    put_arn(call->reply, call->api, job, "CANCELLING");
    buf_byte(call->reply, '}');
}

const struct operation operation_CancelBulkOperation = {
    .name = TEXT("CancelBulkOperation"),
    .input = &cancel_shape,
    .begin = cancel_begin,
    .finish = cancel_finish,
};

/* ---- ListBulkOperations ---- */

enum { LIST_SIZE, LIST_TOKEN };

static const struct shape_member list_members[] = {
    [LIST_SIZE] = MEMBER("MaxResults", shape_list_size),
    [LIST_TOKEN] = MEMBER("NextToken", shape_string),
};
static const struct shape list_shape = STRUCT_SHAPE("ListBulkOperationsInput", list_members);

static void put_summary(struct background_list *list, const struct api_job *job)
{
    struct buf *out = list->call->reply;
    buf_byte(out, '{');
    put_arn(out, list->call->api, job, arena_printf(list->call->arena, "%.*s", SLICE_ARG(job->status)).data);
    put_time(out, "StartTime", job->start_ms);
    if (job->end_ms) put_time(out, "EndTime", job->end_ms);
    buf_byte(out, '}');
}

static void list_begin(struct api_call *call, const struct node *input)
{
    struct background_list list = {.call = call, .kind = API_BULK, .put = put_summary};
    background_list_put(&list, "BulkOperationsSummaryList", node_member(input, LIST_SIZE),
                        node_member(input, LIST_TOKEN));
}

const struct operation operation_ListBulkOperations = {
    .name = TEXT("ListBulkOperations"),
    .input = &list_shape,
    .begin = list_begin,
};
