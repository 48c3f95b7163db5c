/* Replicas of a table in other regions, as UpdateTable adds, changes and takes them away. They are kept and
 * shown. */
#include "api/global_tables.h"

enum { ACTION_CREATE, ACTION_UPDATE, ACTION_DELETE };
enum { REPLICA_REGION, REPLICA_KEY, REPLICA_UNITS, REPLICA_ON_DEMAND, REPLICA_INDEXES, REPLICA_CLASS };
enum { INDEX_NAME, INDEX_UNITS, INDEX_ON_DEMAND };

const struct shape shape_region = STRING_SHAPE_SIZED(1, LIMIT_REGION_NAME);

static const struct shape shape_key = STRING_SHAPE_SIZED(1, 2048); /* the service's limit on ARNs of keys */
static const struct shape shape_read_units = {.kind = SHAPE_LONG, .has_min = true, .min = 1};
static const struct shape_member override_members[] = {MEMBER("ReadCapacityUnits", shape_read_units)};
static const struct shape shape_override = STRUCT_SHAPE("ProvisionedThroughputOverride", override_members);
static const struct shape_member on_demand_members[] = {MEMBER("MaxReadRequestUnits", shape_long)};
static const struct shape shape_on_demand_override = STRUCT_SHAPE("OnDemandThroughputOverride",
                                                                  on_demand_members);

static const struct shape_member index_members[] = {
    [INDEX_NAME] = REQUIRED("IndexName", shape_index_name),
    [INDEX_UNITS] = MEMBER("ProvisionedThroughputOverride", shape_override),
    [INDEX_ON_DEMAND] = MEMBER("OnDemandThroughputOverride", shape_on_demand_override),
};
static const struct shape shape_replica_index = STRUCT_SHAPE("ReplicaGlobalSecondaryIndex", index_members);
static const struct shape shape_replica_indexes = {
    .kind = SHAPE_LIST, .of = &shape_replica_index, .has_min = true, .min = 1};

static const struct shape_member replica_members[] = {
    [REPLICA_REGION] = REQUIRED("RegionName", shape_region),
    [REPLICA_KEY] = MEMBER("KMSMasterKeyId", shape_key),
    [REPLICA_UNITS] = MEMBER("ProvisionedThroughputOverride", shape_override),
    [REPLICA_ON_DEMAND] = MEMBER("OnDemandThroughputOverride", shape_on_demand_override),
    [REPLICA_INDEXES] = MEMBER("GlobalSecondaryIndexes", shape_replica_indexes),
    [REPLICA_CLASS] = MEMBER("TableClassOverride", shape_string),
};
static const struct shape shape_create = STRUCT_SHAPE("CreateReplicationGroupMemberAction", replica_members);
static const struct shape shape_update = STRUCT_SHAPE("UpdateReplicationGroupMemberAction", replica_members);
static const struct shape_member delete_members[] = {REQUIRED("RegionName", shape_region)};
static const struct shape shape_delete = STRUCT_SHAPE("DeleteReplicationGroupMemberAction", delete_members);

static const struct shape_member update_members[] = {
    [ACTION_CREATE] = MEMBER("Create", shape_create),
    [ACTION_UPDATE] = MEMBER("Update", shape_update),
    [ACTION_DELETE] = MEMBER("Delete", shape_delete),
};
static const struct shape shape_replica_update = STRUCT_SHAPE("ReplicationGroupUpdate", update_members);
const struct shape shape_replica_updates = {
    .kind = SHAPE_LIST, .of = &shape_replica_update, .has_min = true, .min = 1};

/* ---- what is kept of one ---- */

/* A number in a structure of one member, where it is given. */
static void take_number(struct arena *arena, const struct node *structure, struct map *map, const char *name)
{
    if (structure->present && node_member(structure, 0)->present)
        map_put(arena, map, slice_of(name), integer_value(arena, node_member(structure, 0)->integer));
}

static struct map take_indexes(struct arena *arena, const struct node *list, struct map indexes)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct node *index = &list->elements[i];
        if (!index->present) continue;
        struct slice name = node_member(index, INDEX_NAME)->text;
        struct map own = map_map(&indexes, name);
        take_number(arena, node_member(index, INDEX_UNITS), &own, "read_units");
        take_number(arena, node_member(index, INDEX_ON_DEMAND), &own, "max_read");
        map_put(arena, &indexes, name, map_value(own));
    }
    return indexes;
}

/* Members that are not given stay as they were. */
static struct map take_replica(struct arena *arena, const struct node *action, struct map replica)
{
    const struct node *key = node_member(action, REPLICA_KEY), *class = node_member(action, REPLICA_CLASS),
                      *indexes = node_member(action, REPLICA_INDEXES);
    if (key->present) map_put(arena, &replica, SLICE("kms_key"), text_value(key->text));
    if (class->present) map_put(arena, &replica, SLICE("class"), text_value(class->text));
    take_number(arena, node_member(action, REPLICA_UNITS), &replica, "read_units");
    take_number(arena, node_member(action, REPLICA_ON_DEMAND), &replica, "max_read");
    if (indexes->present)
        map_put(arena, &replica, SLICE("indexes"),
                map_value(take_indexes(arena, indexes, map_map(&replica, SLICE("indexes")))));
    return replica;
}

/* ---- updates ---- */

struct replica_action {
    const struct node *node;
    unsigned kind; /* ACTION_CREATE ... */
    struct slice region;
};

/* The one action of an update. */
static bool action_of(struct verdict *verdict, const struct node *update, struct replica_action *out)
{
    unsigned count = 0;
    for (unsigned kind = ACTION_CREATE; update->present && kind <= ACTION_DELETE; kind++) {
        if (!node_member(update, kind)->present) continue;
        *out = (struct replica_action){node_member(update, kind), kind, SLICE_NONE};
        count++;
    }
    if (!count)
        return reject(verdict, "There are no actions specified in the Replica Update Action of the request.");
    if (count > 1)
        return reject(verdict,
                      "Update table operation with more than one type of replica actions not allowed.");
    out->region = node_member(out->node, REPLICA_REGION)->text;
    return true;
}

static bool check_actions(struct verdict *verdict, const struct api *api, const struct node *list)
{
    struct replica_action action;
    uint32_t made_or_gone = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!action_of(verdict, &list->elements[i], &action)) return false;
        made_or_gone += action.kind != ACTION_UPDATE;
        if (action.kind != ACTION_DELETE &&
            !check_table_class(verdict, node_member(action.node, REPLICA_CLASS)))
            return false;
        if (slice_equal(action.region, api->region))
            return reject(verdict,
                          "Cannot add, delete, or update the local region through ReplicaUpdates. Use "
                          "CreateTable, DeleteTable, or UpdateTable as required.");
    }
    if (made_or_gone > 1)
        return reject(verdict, "Update table operation with more than one create or delete replica actions "
                               "not allowed");
    return true;
}

static bool check_indexes(struct verdict *verdict, const struct table_definition *definition,
                          const struct node *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (!list->elements[i].present) continue;
        struct slice name = node_member(&list->elements[i], INDEX_NAME)->text;
        const struct index_definition *index = definition_index(definition, name);
        if (!index || !index->global)
            return reject_as(verdict, "ResourceNotFoundException",
                             "Requested resource not found: Index %.*s for table %.*s", SLICE_ARG(name),
                             SLICE_ARG(definition->name));
    }
    return true;
}

static bool apply_action(struct verdict *verdict, const struct replica_action *action,
                         const struct table_definition *definition, struct map *replicas)
{
    const struct value *known = map_find(replicas, action->region);
    if (known && action->kind == ACTION_CREATE)
        return reject(verdict,
                      "Failed to create a the new replica of table with name: \xe2\x80\x98%.*s\xe2\x80\x99 "
                      "because one or more replicas already existed as tables.",
                      SLICE_ARG(definition->name));
    if (!known && action->kind != ACTION_CREATE)
        return reject(
            verdict,
            "Update global table operation failed because one or more replicas were not part of the "
            "global table. Please retry the request without these replicas: [%.*s].",
            SLICE_ARG(action->region));
    if (!known && replicas->count == LIMIT_REPLICAS)
        return reject_as(verdict, "LimitExceededException", "A table has at most %d replicas",
                         LIMIT_REPLICAS);
    if (action->kind == ACTION_DELETE) {
        *replicas = map_without(verdict->arena, replicas, action->region);
        return true;
    }
    map_put(verdict->arena, replicas, action->region,
            map_value(take_replica(verdict->arena, action->node, map_map(replicas, action->region))));
    return check_indexes(verdict, definition, node_member(action->node, REPLICA_INDEXES));
}

bool apply_replica_updates(struct verdict *verdict, const struct api *api, const struct node *list,
                           struct table_definition *definition)
{
    struct map replicas = setting_map(definition, "replicas");
    struct replica_action action;
    if (!list->present) return true;
    if (!check_actions(verdict, api, list)) return false;
    for (uint32_t i = 0; i < list->count; i++)
        if (!action_of(verdict, &list->elements[i], &action) ||
            !apply_action(verdict, &action, definition, &replicas))
            return false;
    if (replicas.count)
        setting_put(verdict->arena, definition, "replicas", map_value(replicas));
    else
        setting_remove(verdict->arena, definition, "replicas");
    return true;
}

bool has_replica(const struct table_definition *definition, const struct api *api, struct slice region)
{
    struct map replicas = setting_map(definition, "replicas");
    return slice_equal(region, api->region) || map_find(&replicas, region);
}

/* ---- showing ---- */

static void put_overrides(struct buf *out, const struct map *map)
{
    const struct value *units = map_find(map, SLICE("read_units")), *most = map_find(map, SLICE("max_read"));
    if (units)
        buf_printf(out, ",\"ProvisionedThroughputOverride\":{\"ReadCapacityUnits\":%.*s}",
                   SLICE_ARG(units->bytes));
    if (most)
        buf_printf(out, ",\"OnDemandThroughputOverride\":{\"MaxReadRequestUnits\":%.*s}",
                   SLICE_ARG(most->bytes));
}

static void put_replica_indexes(struct buf *out, const struct map *indexes)
{
    if (!indexes->count) return;
    buf_text(out, ",\"GlobalSecondaryIndexes\":[");
    for (uint32_t i = 0; i < indexes->count; i++) {
        struct map own = map_map(indexes, indexes->attributes[i].name);
        if (i) buf_byte(out, ',');
        buf_text(out, "{\"IndexName\":");
        json_put_string(out, indexes->attributes[i].name);
        put_overrides(out, &own);
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void put_replica(struct buf *out, struct slice region, const struct map *replica)
{
    struct slice key = map_text(replica, "kms_key"), class = map_text(replica, "class");
    struct map indexes = map_map(replica, SLICE("indexes"));
    buf_text(out, "{\"RegionName\":");
    json_put_string(out, region);
    put_text(out, "ReplicaStatus", SLICE("ACTIVE"));
    if (key.len) put_text(out, "KMSMasterKeyId", key);
    put_overrides(out, replica);
    put_replica_indexes(out, &indexes);
    if (class.len) {
        buf_text(out, ",\"ReplicaTableClassSummary\":{\"TableClass\":");
        json_put_string(out, class);
        buf_byte(out, '}');
    }
    buf_byte(out, '}');
}

void put_replicas(struct buf *out, const struct table_definition *definition)
{
    struct map replicas = setting_map(definition, "replicas");
    if (!replicas.count) return;
    buf_text(out, ",\"GlobalTableVersion\":\"2019.11.21\",\"Replicas\":[");
    for (uint32_t i = 0; i < replicas.count; i++) {
        struct map own = map_map(&replicas, replicas.attributes[i].name);
        if (i) buf_byte(out, ',');
        put_replica(out, replicas.attributes[i].name, &own);
    }
    buf_byte(out, ']');
}
