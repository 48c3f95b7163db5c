/* ImportTable, DescribeImport and ListImports: a new table from objects in a bucket.
 *
 * The table is checked with the call, as CreateTable checks it, and made by the job once its bucket was found. While it
 * is filled it is CREATING, and of use to nobody. */
#include "api/background.h"

enum { SOURCE_OWNER, SOURCE_BUCKET, SOURCE_PREFIX };
enum { CSV_DELIMITER, CSV_HEADERS };
enum { IMPORT_TOKEN, IMPORT_SOURCE, IMPORT_FORMAT, IMPORT_OPTIONS, IMPORT_COMPRESSION, IMPORT_TABLE };

static bool is_delimiter(struct slice text)
{
    return text.len == 1 && memchr(",;:|\t ", text.data[0], 6);
}

static const char *const formats[] = {"DYNAMODB_JSON", "ION", "CSV", NULL};
static const struct shape shape_format = ENUM_SHAPE(formats);
static const struct shape shape_delimiter = {.kind = SHAPE_STRING,
                                             .has_min = true,
                                             .min = 1,
                                             .has_max = true,
                                             .max = 1,
                                             .pattern = "[,;:|\\t ]",
                                             .matches = is_delimiter};
static const struct shape shape_header = {.kind = SHAPE_STRING, .has_max = true, .max = 65536};
static const struct shape shape_headers = LIST_SHAPE_SIZED(shape_header, 1, 255);
static const struct shape_member csv_members[] = {
    [CSV_DELIMITER] = MEMBER("Delimiter", shape_delimiter),
    [CSV_HEADERS] = MEMBER("HeaderList", shape_headers),
};
static const struct shape shape_csv = STRUCT_SHAPE("CsvOptions", csv_members);
static const struct shape_member option_members[] = {MEMBER("Csv", shape_csv)};
static const struct shape shape_options = STRUCT_SHAPE("InputFormatOptions", option_members);
static const struct shape_member source_members[] = {
    [SOURCE_OWNER] = MEMBER("S3BucketOwner", shape_bucket_owner),
    [SOURCE_BUCKET] = REQUIRED("S3Bucket", shape_bucket),
    [SOURCE_PREFIX] = MEMBER("S3KeyPrefix", shape_key_prefix),
};
static const struct shape shape_source = STRUCT_SHAPE("S3BucketSource", source_members);
static const struct shape_member import_members[] = {
    [IMPORT_TOKEN] = MEMBER("ClientToken", shape_client_token),
    [IMPORT_SOURCE] = REQUIRED("S3BucketSource", shape_source),
    [IMPORT_FORMAT] = REQUIRED("InputFormat", shape_format),
    [IMPORT_OPTIONS] = MEMBER("InputFormatOptions", shape_options),
    [IMPORT_COMPRESSION] = MEMBER("InputCompressionType", shape_compression),
    [IMPORT_TABLE] = REQUIRED("TableCreationParameters", shape_table_creation),
};
static const struct shape import_shape = STRUCT_SHAPE("ImportTableInput", import_members);

/* ---- showing ---- */

static void put_log_group(struct buf *out, const struct api *api)
{
    buf_printf(out, ",\"CloudWatchLogGroupArn\":\"arn:aws:logs:%.*s:%.*s:log-group:/aws-dynamodb/imports:*\"",
               SLICE_ARG(api->region), SLICE_ARG(api->account));
}

static void put_arns(struct buf *out, const struct api *api, const struct api_job *job)
{
    buf_text(out, "\"ImportArn\":\"");
    api_put_job_arn(out, api, job);
    buf_printf(out, "\",\"ImportStatus\":\"%.*s\",\"TableArn\":\"", SLICE_ARG(job->status));
    put_table_arn(out, api, job->table);
    buf_byte(out, '"');
}

static void put_import(struct api_call *call, const struct api_job *job)
{
    struct buf *out = call->reply;
    buf_text(out, "{\"ImportTableDescription\":{");
    put_arns(out, call->api, job);
    put_text(out, "TableId", job->table_id);
    put_text(out, "ClientToken", job->token);
    put_request_member(out, call->arena, job, "S3BucketSource");
    put_int(out, "ErrorCount", job->errors);
    put_log_group(out, call->api);
    put_request_member(out, call->arena, job, "InputFormat");
    put_request_member(out, call->arena, job, "InputFormatOptions");
    put_request_word(out, call->arena, job, "InputCompressionType", "NONE");
    put_request_member(out, call->arena, job, "TableCreationParameters");
    put_time(out, "StartTime", job->start_ms);
    if (job->end_ms) put_time(out, "EndTime", job->end_ms);
    put_int(out, "ProcessedSizeBytes", job->bytes);
    put_int(out, "ProcessedItemCount", job->items);
    put_int(out, "ImportedItemCount", job->written);
    put_job_failure(out, job);
    buf_text(out, "}}");
}

/* ---- ImportTable ---- */

static bool table_is_free(struct background_start *start, struct batch *batch)
{
    return !engine_table_in_batch(batch, start->job.table) ||
           reject_as(&start->verdict, "ResourceInUseException", "Table already exists: %.*s",
                     SLICE_ARG(start->job.table));
}

static void import_begin(struct api_call *call, const struct node *input)
{
    static const char *const kept[] = {"S3BucketSource",          "InputFormat",
                                       "InputFormatOptions",      "InputCompressionType",
                                       "TableCreationParameters", NULL};
    const struct node *format = node_member(input, IMPORT_FORMAT);
    struct background_start *start = arena_new(call->arena, struct background_start);
    struct table_definition definition = {0};
    struct buf encoded = {0};
    if (node_member(input, IMPORT_OPTIONS)->present && !node_says(format, "CSV")) {
        invalid(call, "Invalid Request: Unsupported InputFormatOptions for the given input format: %.*s.",
                SLICE_ARG(format->text));
        return;
    }
    if (!table_creation_define(call, node_member(input, IMPORT_TABLE), &definition)) return;
    table_definition_encode(&encoded, &definition);
    start->job = (struct api_job){.kind = API_IMPORT,
                                  .table = definition.name,
                                  .table_id = definition.id,
                                  .request = background_request(call, kept),
                                  .definition = arena_take(call->arena, &encoded)};
    start->check = table_is_free;
    start->conflict = "ImportConflictException";
    start->conflict_words = "Import conflict: Duplicate request detected with conflicting parameters";
    background_submit(call, node_member(input, IMPORT_TOKEN), start);
}

static void import_finish(struct api_call *call)
{
    const struct api_job *job = background_finish(call);
    if (job) put_import(call, job);
}

const struct operation operation_ImportTable = {
    .name = TEXT("ImportTable"),
    .input = &import_shape,
    .begin = import_begin,
    .finish = import_finish,
};

/* ---- DescribeImport ---- */

static const struct shape_member describe_members[] = {REQUIRED("ImportArn", shape_job_arn)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeImportInput", describe_members);

static void describe_begin(struct api_call *call, const struct node *input)
{
    static const struct background_words words = {.kind = API_IMPORT,
                                                  .invalid = "Invalid Import ARN",
                                                  .not_found = "ImportNotFoundException",
                                                  .missing = "Import not found: "};
    struct api_job job;
    if (background_by_arn(call, node_member(input, 0)->text, &words, &job)) put_import(call, &job);
}

const struct operation operation_DescribeImport = {
    .name = TEXT("DescribeImport"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- ListImports ---- */

enum { LIST_TABLE, LIST_SIZE, LIST_TOKEN };

static const struct shape_member list_members[] = {
    [LIST_TABLE] = MEMBER("TableArn", shape_string),
    [LIST_SIZE] = MEMBER("PageSize", shape_list_size),
    [LIST_TOKEN] = MEMBER("NextToken", shape_string),
};
static const struct shape list_shape = STRUCT_SHAPE("ListImportsInput", list_members);

static void put_summary(struct background_list *list, const struct api_job *job)
{
    struct buf *out = list->call->reply;
    buf_byte(out, '{');
    put_arns(out, list->call->api, job);
    put_request_member(out, list->call->arena, job, "S3BucketSource");
    put_log_group(out, list->call->api);
    put_request_member(out, list->call->arena, job, "InputFormat");
    put_time(out, "StartTime", job->start_ms);
    if (job->end_ms) put_time(out, "EndTime", job->end_ms);
    buf_byte(out, '}');
}

static void list_begin(struct api_call *call, const struct node *input)
{
    struct background_list list = {.call = call, .kind = API_IMPORT, .put = put_summary};
    const struct node *table = node_member(input, LIST_TABLE);
    if (table->present && !table_name_resolve(call, table, &list.table)) return;
    background_list_put(&list, "ImportSummaryList", node_member(input, LIST_SIZE),
                        node_member(input, LIST_TOKEN));
}

const struct operation operation_ListImports = {
    .name = TEXT("ListImports"),
    .input = &list_shape,
    .begin = list_begin,
};
