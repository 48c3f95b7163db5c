/* DescribeGlobalTableSettings and UpdateGlobalTableSettings, of the older kind of global tables. */
#include "api/global_tables.h"
#include "api/scaling.h"

enum { UPDATE_NAME, UPDATE_BILLING, UPDATE_UNITS, UPDATE_WRITE, UPDATE_INDEXES, UPDATE_REPLICAS };
enum { INDEX_NAME, INDEX_UNITS, INDEX_SCALING };
enum { REPLICA_REGION, REPLICA_UNITS, REPLICA_READ, REPLICA_INDEXES, REPLICA_CLASS };

static const struct shape shape_unit = {.kind = SHAPE_LONG, .has_min = true, .min = 1};

static const struct shape_member index_write_members[] = {
    [INDEX_NAME] = REQUIRED("IndexName", shape_index_name),
    [INDEX_UNITS] = MEMBER("ProvisionedWriteCapacityUnits", shape_unit),
    [INDEX_SCALING] = MEMBER("ProvisionedWriteCapacityAutoScalingSettingsUpdate", shape_scaling),
};
static const struct shape shape_index_write = STRUCT_SHAPE("GlobalTableGlobalSecondaryIndexSettingsUpdate",
                                                           index_write_members);
static const struct shape shape_index_writes = LIST_SHAPE_SIZED(shape_index_write, 1, LIMIT_GSI_COUNT);

static const struct shape_member index_read_members[] = {
    [INDEX_NAME] = REQUIRED("IndexName", shape_index_name),
    [INDEX_UNITS] = MEMBER("ProvisionedReadCapacityUnits", shape_unit),
    [INDEX_SCALING] = MEMBER("ProvisionedReadCapacityAutoScalingSettingsUpdate", shape_scaling),
};
static const struct shape shape_index_read = STRUCT_SHAPE("ReplicaGlobalSecondaryIndexSettingsUpdate",
                                                          index_read_members);
static const struct shape shape_index_reads = LIST_SHAPE_SIZED(shape_index_read, 1, LIMIT_GSI_COUNT);

static const struct shape_member replica_members[] = {
    [REPLICA_REGION] = REQUIRED("RegionName", shape_region),
    [REPLICA_UNITS] = MEMBER("ReplicaProvisionedReadCapacityUnits", shape_unit),
    [REPLICA_READ] = MEMBER("ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate", shape_scaling),
    [REPLICA_INDEXES] = MEMBER("ReplicaGlobalSecondaryIndexSettingsUpdate", shape_index_reads),
    [REPLICA_CLASS] = MEMBER("ReplicaTableClass", shape_string),
};
static const struct shape shape_replica = STRUCT_SHAPE("ReplicaSettingsUpdate", replica_members);
static const struct shape shape_replicas = LIST_SHAPE_SIZED(shape_replica, 1, 50);

static const struct shape_member update_members[] = {
    [UPDATE_NAME] = REQUIRED("GlobalTableName", shape_table_name_strict),
    [UPDATE_BILLING] = MEMBER("GlobalTableBillingMode", shape_billing_mode),
    [UPDATE_UNITS] = MEMBER("GlobalTableProvisionedWriteCapacityUnits", shape_unit),
    [UPDATE_WRITE] = MEMBER("GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate", shape_scaling),
    [UPDATE_INDEXES] = MEMBER("GlobalTableGlobalSecondaryIndexSettingsUpdate", shape_index_writes),
    [UPDATE_REPLICAS] = MEMBER("ReplicaSettingsUpdate", shape_replicas),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateGlobalTableSettingsInput", update_members);

static const struct shape_member describe_members[] = {REQUIRED("GlobalTableName", shape_table_name_strict)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeGlobalTableSettingsInput", describe_members);

#define DOES_NOT_EXIST "Global table with name: '%.*s' does not exist."

/* ---- showing ---- */

static struct map regions_of(const struct table_definition *definition)
{
    struct map global = setting_map(definition, "global");
    return map_map(&global, SLICE("regions"));
}

static void put_settings(struct buf *out, const struct api *api, const struct table_definition *definition)
{
    struct map regions = regions_of(definition);
    buf_text(out, "{\"GlobalTableName\":");
    json_put_string(out, definition->name);
    buf_text(out, ",\"ReplicaSettings\":[");
    for (uint32_t i = 0; i < regions.count; i++) {
        if (i) buf_byte(out, ',');
        put_replica_scaling(out, api, definition, regions.attributes[i].name, true);
    }
    buf_text(out, "]}");
}

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct slice name;
    if (!table_name_resolve(call, node_member(input, 0), &name)) return;
    struct table *table = engine_table_find(call->api->engine, name);
    if (table && setting_map(&table->definition, "global").count)
        put_settings(call->reply, call->api, &table->definition);
    else
        refuse(call, "GlobalTableNotFoundException", DOES_NOT_EXIST, SLICE_ARG(name));
    if (table) engine_table_release(table);
}

const struct operation operation_DescribeGlobalTableSettings = {
    .name = TEXT("DescribeGlobalTableSettings"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- changing ---- */

static void keep_units(struct table_change *change, const struct node *units, const struct scaling_path *path,
                       const char *name)
{
    if (units->present) scaling_put(change, path, name, integer_value(change->verdict.arena, units->integer));
}

/* The indexes of the table (region empty) or of one replica. */
static bool take_indexes(struct table_change *change, struct slice region, const struct node *list)
{
    bool is_write = !region.len;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *update = &list->elements[i];
        if (!update->present) continue;
        struct slice index = node_member(update, INDEX_NAME)->text;
        struct scaling_path path = is_write ? scaling_of_index(index)
                                            : scaling_of_replica_index(region, index);
        if (!has_global_index(change->definition, index))
            return reject_as(&change->verdict, "IndexNotFoundException",
                             "Index not found: %.*s of global table '%.*s'", SLICE_ARG(index),
                             SLICE_ARG(change->table_name));
        keep_units(change, node_member(update, INDEX_UNITS), &path, is_write ? "write_units" : "read_units");
        if (!scaling_take(change, node_member(update, INDEX_SCALING), &path, is_write)) return false;
    }
    return true;
}

static bool take_replicas(struct table_change *change, const struct node *list)
{
    struct map regions = regions_of(change->definition);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *update = &list->elements[i];
        if (!update->present) continue;
        struct slice region = node_member(update, REPLICA_REGION)->text;
        struct scaling_path path = scaling_of_replica(region);
        if (!map_find(&regions, region))
            return reject_as(&change->verdict, "ReplicaNotFoundException",
                             "Replica not found: region %.*s of global table '%.*s'", SLICE_ARG(region),
                             SLICE_ARG(change->table_name));
        keep_units(change, node_member(update, REPLICA_UNITS), &path, "read_units");
        if (!check_table_class(&change->verdict, node_member(update, REPLICA_CLASS)) ||
            !scaling_take(change, node_member(update, REPLICA_READ), &path, false) ||
            !take_indexes(change, region, node_member(update, REPLICA_INDEXES)))
            return false;
    }
    return true;
}

static void global_is_missing(struct table_change *change)
{
    reject_as(&change->verdict, "GlobalTableNotFoundException", DOES_NOT_EXIST,
              SLICE_ARG(change->table_name));
}

static bool apply(struct table_change *change)
{
    const struct node *input = &change->input, *billing = node_member(input, UPDATE_BILLING);
    struct scaling_path path = scaling_of_table();
    if (!setting_map(change->definition, "global").count) {
        global_is_missing(change);
        return false;
    }
    if (billing->present) scaling_put(change, &path, "billing", text_value(billing->text));
    keep_units(change, node_member(input, UPDATE_UNITS), &path, "write_units");
    return scaling_take(change, node_member(input, UPDATE_WRITE), &path, true) &&
           take_indexes(change, SLICE_NONE, node_member(input, UPDATE_INDEXES)) &&
           take_replicas(change, node_member(input, UPDATE_REPLICAS));
}

static void update_begin(struct api_call *call, const struct node *input)
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->apply = apply;
    change->missing = global_is_missing;
    table_change_submit_named(call, input, node_member(input, UPDATE_NAME), change);
}

static void update_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (change) put_settings(call->reply, call->api, change->definition);
}

const struct operation operation_UpdateGlobalTableSettings = {
    .name = TEXT("UpdateGlobalTableSettings"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};
