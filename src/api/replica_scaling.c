/* DescribeTableReplicaAutoScaling and UpdateTableReplicaAutoScaling: for tables that have replicas. */
#include "api/global_tables.h"
#include "api/scaling.h"

enum { UPDATE_INDEXES, UPDATE_NAME, UPDATE_WRITE, UPDATE_REPLICAS };
enum { INDEX_NAME, INDEX_SCALING };
enum { REPLICA_REGION, REPLICA_INDEXES, REPLICA_READ };

static const struct shape_member index_write_members[] = {
    [INDEX_NAME] = MEMBER("IndexName", shape_index_name),
    [INDEX_SCALING] = MEMBER("ProvisionedWriteCapacityAutoScalingUpdate", shape_scaling),
};
static const struct shape shape_index_write = STRUCT_SHAPE("GlobalSecondaryIndexAutoScalingUpdate",
                                                           index_write_members);
static const struct shape shape_index_writes = {
    .kind = SHAPE_LIST, .of = &shape_index_write, .has_min = true, .min = 1};

static const struct shape_member index_read_members[] = {
    [INDEX_NAME] = MEMBER("IndexName", shape_index_name),
    [INDEX_SCALING] = MEMBER("ProvisionedReadCapacityAutoScalingUpdate", shape_scaling),
};
static const struct shape shape_index_read = STRUCT_SHAPE("ReplicaGlobalSecondaryIndexAutoScalingUpdate",
                                                          index_read_members);
static const struct shape shape_index_reads = LIST_SHAPE(shape_index_read);

static const struct shape_member replica_members[] = {
    [REPLICA_REGION] = REQUIRED("RegionName", shape_region),
    [REPLICA_INDEXES] = MEMBER("ReplicaGlobalSecondaryIndexUpdates", shape_index_reads),
    [REPLICA_READ] = MEMBER("ReplicaProvisionedReadCapacityAutoScalingUpdate", shape_scaling),
};
static const struct shape shape_replica = STRUCT_SHAPE("ReplicaAutoScalingUpdate", replica_members);
static const struct shape shape_replica_list = {
    .kind = SHAPE_LIST, .of = &shape_replica, .has_min = true, .min = 1};

static const struct shape_member update_members[] = {
    [UPDATE_INDEXES] = MEMBER("GlobalSecondaryIndexUpdates", shape_index_writes),
    [UPDATE_NAME] = REQUIRED("TableName", shape_table_name_strict),
    [UPDATE_WRITE] = MEMBER("ProvisionedWriteCapacityAutoScalingUpdate", shape_scaling),
    [UPDATE_REPLICAS] = MEMBER("ReplicaUpdates", shape_replica_list),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateTableReplicaAutoScalingInput", update_members);

static const struct shape_member describe_members[] = {REQUIRED("TableName", shape_table_name_strict)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeTableReplicaAutoScalingInput",
                                                        describe_members);

#define NOT_GLOBAL "Global table with name: '%.*s' does not exist."
#define FAILED     "Failed to update settings for global table with name: \xe2\x80\x98%.*s\xe2\x80\x99 because "

/* ---- showing ---- */

static void put_scaling(struct buf *out, const struct api *api, const struct table_definition *definition,
                        const char *status)
{
    struct map replicas = setting_map(definition, "replicas");
    buf_text(out, "{\"TableAutoScalingDescription\":{\"TableName\":");
    json_put_string(out, definition->name);
    buf_printf(out, ",\"TableStatus\":\"%s\",\"Replicas\":[", status);
    put_replica_scaling(out, api, definition, api->region, false);
    for (uint32_t i = 0; i < replicas.count; i++) {
        buf_byte(out, ',');
        put_replica_scaling(out, api, definition, replicas.attributes[i].name, false);
    }
    buf_text(out, "]}}");
}

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct slice name;
    if (!table_name_resolve(call, node_member(input, 0), &name)) return;
    const struct table *table = find_table_to_manage(call, name);
    if (!table) return;
    if (!setting_map(&table->definition, "replicas").count)
        refuse(call, "ResourceNotFoundException", NOT_GLOBAL, SLICE_ARG(name));
    else
        put_scaling(call->reply, call->api, &table->definition, "ACTIVE");
}

const struct operation operation_DescribeTableReplicaAutoScaling = {
    .name = TEXT("DescribeTableReplicaAutoScaling"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- changing ---- */

static bool take_indexes(struct table_change *change, const struct node *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *update = &list->elements[i];
        if (!update->present) continue;
        struct slice index = node_member(update, INDEX_NAME)->text;
        struct scaling_path path = scaling_of_index(index);
        if (!has_global_index(change->definition, index))
            return reject_as(&change->verdict, "ResourceNotFoundException",
                             FAILED
                             "the global secondary indexes with names: \xe2\x80\x98[%.*s]\xe2\x80\x99 do "
                             "not exist.",
                             SLICE_ARG(change->table_name), SLICE_ARG(index));
        if (!scaling_take(change, node_member(update, INDEX_SCALING), &path, true)) return false;
    }
    return true;
}

static bool take_replica_indexes(struct table_change *change, struct slice region, const struct node *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *update = &list->elements[i];
        if (!update->present) continue;
        struct slice index = node_member(update, INDEX_NAME)->text;
        struct scaling_path path = scaling_of_replica_index(region, index);
        if (!has_global_index(change->definition, index))
            return reject_as(&change->verdict, "ResourceNotFoundException",
                             FAILED
                             "a global secondary index with name: \xe2\x80\x98%.*s\xe2\x80\x99 does not "
                             "exist in region: \xe2\x80\x98%.*s\xe2\x80\x99.",
                             SLICE_ARG(change->table_name), SLICE_ARG(index), SLICE_ARG(region));
        if (!scaling_take(change, node_member(update, INDEX_SCALING), &path, false)) return false;
    }
    return true;
}

static bool take_replicas(struct table_change *change, const struct node *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *update = &list->elements[i];
        if (!update->present) continue;
        struct slice region = node_member(update, REPLICA_REGION)->text;
        struct scaling_path path = scaling_of_replica(region);
        if (!has_replica(change->definition, change->api, region))
            return reject_as(&change->verdict, "ResourceNotFoundException",
                             FAILED "a replica does not exist in regions: \xe2\x80\x98[%.*s]\xe2\x80\x99.",
                             SLICE_ARG(change->table_name), SLICE_ARG(region));
        if (!scaling_take(change, node_member(update, REPLICA_READ), &path, false) ||
            !take_replica_indexes(change, region, node_member(update, REPLICA_INDEXES)))
            return false;
    }
    return true;
}

static bool apply(struct table_change *change)
{
    const struct node *input = &change->input, *write = node_member(input, UPDATE_WRITE);
    struct scaling_path path = scaling_of_table();
    if (!setting_map(change->definition, "replicas").count)
        return reject_as(&change->verdict, "ResourceNotFoundException", NOT_GLOBAL,
                         SLICE_ARG(change->table_name));
    if (!write->present && !node_member(input, UPDATE_INDEXES)->present &&
        !node_member(input, UPDATE_REPLICAS)->present)
        return reject(&change->verdict, FAILED "at least one update parameter must be specified.",
                      SLICE_ARG(change->table_name));
    return scaling_take(change, write, &path, true) &&
           take_indexes(change, node_member(input, UPDATE_INDEXES)) &&
           take_replicas(change, node_member(input, UPDATE_REPLICAS));
}

static void update_begin(struct api_call *call, const struct node *input)
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->apply = apply;
    table_change_submit_named(call, input, node_member(input, UPDATE_NAME), change);
}

static void update_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (change) put_scaling(call->reply, call->api, change->definition, "UPDATING");
}

const struct operation operation_UpdateTableReplicaAutoScaling = {
    .name = TEXT("UpdateTableReplicaAutoScaling"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};
