/* The life of a call: found by name, begun, committed, finished. Everything that is the same for all
 * operations stands here; what differs is in each operation's own file. */
#include "api/shapes.h"

#include <stdlib.h>

#include "api/throttle.h"
#include "base/fail.h"

static const struct operation *const operations[] = {
#define X(op) &operation_##op,
    API_OPERATIONS(X)
#undef X
};

#define OPERATION_COUNT (sizeof operations / sizeof *operations)

struct held_table {
    struct table *table;
    struct held_table *next;
};

struct api *api_new(const struct api_options *options)
{
    ensure(options->engine && options->region && options->account && options->endpoint);
    struct api *api = must_zero(1, sizeof *api);
    api->engine = options->engine;
    api->region = slice_of(options->region);
    api->account = slice_of(options->account);
    api->endpoint = slice_of(options->endpoint);
    api->creating_ms = options->creating_ms;
    api->is_lenient = options->is_lenient;
    api->throttle = throttle_new(options->throttles);
    api->read_only = options->read_only;
    return api;
}

void api_set_backups(struct api *api, const struct api_backups *backups)
{
    api->backups = backups;
}

void api_free(struct api *api)
{
    throttle_free(api->throttle);
    free(api);
}

bool api_operation_search(struct slice name, unsigned *number)
{
    size_t low = 0, high = OPERATION_COUNT;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(name, operations[middle]->name);
        if (order == 0) {
            *number = (unsigned)middle;
            return true;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

const struct operation *api_operation_find(struct slice name)
{
    unsigned number;
    return api_operation_search(name, &number) ? operations[number] : NULL;
}

struct slice api_operation_name(const struct operation *operation)
{
    return operation->name;
}

bool api_operation_is_of_streams(const struct operation *operation)
{
    return operation == &operation_DescribeStream || operation == &operation_GetRecords ||
           operation == &operation_GetShardIterator || operation == &operation_ListStreams;
}

/* Two of them have names that DynamoDB's own have, too. */
static const struct {
    struct slice name;
    const struct operation *operation;
} of_scaling[] = {
    {SLICE("DeleteScalingPolicy"), &operation_DeleteScalingPolicy},
    {SLICE("DeregisterScalableTarget"), &operation_DeregisterScalableTarget},
    {SLICE("DescribeScalableTargets"), &operation_DescribeScalableTargets},
    {SLICE("DescribeScalingPolicies"), &operation_DescribeScalingPolicies},
    {SLICE("ListTagsForResource"), &operation_ListTagsForResource},
    {SLICE("PutScalingPolicy"), &operation_PutScalingPolicy},
    {SLICE("RegisterScalableTarget"), &operation_RegisterScalableTarget},
    {SLICE("TagResource"), &operation_TagScalableTarget},
    {SLICE("UntagResource"), &operation_UntagScalableTarget},
};
#define OF_SCALING_COUNT (sizeof of_scaling / sizeof *of_scaling)

bool api_operation_is_of_scaling(const struct operation *operation)
{
    for (size_t i = 0; i < OF_SCALING_COUNT; i++)
        if (of_scaling[i].operation == operation) return true;
    return false;
}

bool api_operation_search_scaling(struct slice name, unsigned *number)
{
    for (size_t i = 0; i < OF_SCALING_COUNT; i++)
        if (slice_equal(of_scaling[i].name, name))
            return api_operation_search(of_scaling[i].operation->name, number);
    return false;
}

bool api_operation_is_silent(const struct operation *operation)
{
    return operation == &operation_TagResource || operation == &operation_UntagResource;
}

unsigned api_operation_count(void)
{
    return OPERATION_COUNT;
}

const struct operation *api_operation_at(unsigned number)
{
    ensure(number < OPERATION_COUNT);
    return operations[number];
}

static void release_tables(struct api_call *call)
{
    for (struct held_table *held = call->held; held; held = held->next) engine_table_release(held->table);
    call->held = NULL;
}

void api_begin(struct api_call *call)
{
    struct node input;
    call->status = 200;
    call->error = NULL;
    call->is_write = call->only_reads = false;
    call->work = NULL;
    call->state = NULL;
    call->held = NULL;
    call->reply_start = call->reply->len;
    call->commit.apply = NULL;
    call->commit.failed = false;
    bool is_decoded = request_decode(call, call->operation->input, &input);
    if (is_decoded && call->operation->input->check_body)
        is_decoded = call->operation->input->check_body(call);
    if (is_decoded && call->api->is_lenient) request_relax(call->operation, &input);
    if (is_decoded && request_check(call, &input)) call->operation->begin(call, &input);
    ensure(!call->is_write || (call->commit.apply && call->operation->finish && !call->error));
    if (call->api->read_only && call->is_write && !call->only_reads) {
        call->is_write = false;
        refuse(call, "AccessDeniedException", "the data was opened for reading only, so %.*s is refused",
               SLICE_ARG(call->operation->name));
    }
    ensure(!call->work || (!call->is_write && call->operation->finish && !call->error));
    if (!call->is_write && !call->work) release_tables(call);
}

void api_finish(struct api_call *call)
{
    ensure(call->is_write || call->work);
    if (call->commit.failed)
        refuse(call, "InternalServerError", "Internal server error");
    else
        call->operation->finish(call);
    release_tables(call);
}

void api_run(struct api_call *call)
{
    api_begin(call);
    if (call->work) call->work(call);
    if (call->is_write) engine_commit(call->api->engine, &call->commit);
    if (call->is_write || call->work) api_finish(call);
}

/* ---- tables ---- */

static struct table *hold_table(struct api_call *call, struct slice name)
{
    struct table *table = engine_table_find(call->api->engine, name);
    if (!table) return NULL;
    struct held_table *held = arena_new(call->arena, struct held_table);
    *held = (struct held_table){table, call->held};
    call->held = held;
    return table;
}

bool table_is_creating(const struct api *api, const struct table *table)
{
    const struct map *settings = &table->definition.settings;
    if (map_find(settings, SLICE(API_IMPORTING)) || map_find(settings, SLICE(API_DELETING))) return true;
    return api->creating_ms && engine_now_ms(api->engine) - table->definition.created_ms < api->creating_ms;
}

struct table *look_up_table(struct api_call *call, struct slice name)
{
    struct table *table = hold_table(call, name);
    return table && !call->is_transfer && table_is_creating(call->api, table) ? NULL : table;
}

struct table *find_table(struct api_call *call, struct slice name)
{
    struct table *table = look_up_table(call, name);
    if (!table) refuse(call, "ResourceNotFoundException", "Requested resource not found");
    return table;
}

struct table *find_table_to_manage(struct api_call *call, struct slice name)
{
    struct table *table = hold_table(call, name);
    if (!table)
        refuse(call, "ResourceNotFoundException", "Requested resource not found: Table: %.*s not found",
               SLICE_ARG(name));
    return table;
}

/* Takes what stands before the next colon; false when there is none. */
static bool take_arn_part(struct slice *rest, struct slice *part)
{
    const char *colon = rest->len ? memchr(rest->data, ':', rest->len) : NULL;
    if (!colon) return false;
    *part = (struct slice){rest->data, (size_t)(colon - rest->data)};
    *rest = slice_from(*rest, part->len + 1);
    return true;
}

static bool invalid_arn(struct api_call *call, struct slice arn)
{
    return invalid(call,
                   "1 validation error detected: Value '%.*s' at 'tableName' failed to satisfy constraint: "
                   "Valid ARN format "
                   "is 'arn:<awsPartition>:<vendor>:<region>:<subscriber>:resourceType/resourceName', where "
                   "Resource name "
                   "must have length less than or equal to 255, Resource name must have length greater than "
                   "or equal to 3, "
                   "Resource name must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
                   SLICE_ARG(arn));
}

static bool invalid_arn_part(struct api_call *call, const char *part, struct slice arn)
{
    return invalid(call, "1 validation error detected: Invalid %s in '%.*s'", part, SLICE_ARG(arn));
}

bool table_name_resolve(struct api_call *call, const struct node *name, struct slice *out)
{
    struct slice arn = name->text, rest = arn, scheme, partition, service, region, account;
    *out = arn;
    if (!slice_starts(rest, SLICE("arn:"))) return true;
    if (!take_arn_part(&rest, &scheme) || !take_arn_part(&rest, &partition) ||
        !take_arn_part(&rest, &service) || !take_arn_part(&rest, &region) || !take_arn_part(&rest, &account))
        return invalid_arn(call, arn);
    if (!slice_equal(partition, SLICE("aws"))) return invalid_arn_part(call, "AWS partition", arn);
    if (!call->api->is_lenient && !slice_equal(region, call->api->region))
        return invalid_arn_part(call, "AWS region", arn);
    if (!slice_equal(service, SLICE("dynamodb")) || !memchr(rest.data, '/', rest.len))
        return invalid_arn(call, arn);
    if (!slice_starts(rest, SLICE("table/"))) return invalid_arn_part(call, "resource type", arn);
    *out = slice_from(rest, strlen("table/"));
    if (out->len < 3 || out->len > 255 || !is_plain_name(*out)) return invalid_arn(call, arn);
    if (!slice_equal(account, call->api->account))
        return refuse(call, "ResourceNotFoundException", "Requested resource not found");
    return true;
}

struct table *find_table_or_arn(struct api_call *call, struct slice text)
{
    struct node node = {.shape = &shape_table_name, .present = true, .text = text};
    struct slice name;
    return table_name_resolve(call, &node, &name) ? find_table(call, name) : NULL;
}

void api_put_table_arn(struct buf *out, const struct api *api, struct slice name)
{
    put_table_arn(out, api, name);
}

void put_table_arn(struct buf *out, const struct api *api, struct slice name)
{
    buf_text(out, "arn:aws:dynamodb:");
    buf_slice(out, api->region);
    buf_byte(out, ':');
    buf_slice(out, api->account);
    buf_text(out, ":table/");
    buf_slice(out, name);
}
