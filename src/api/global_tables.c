/* CreateGlobalTable, DescribeGlobalTable, ListGlobalTables and UpdateGlobalTable: the older kind of global
 * tables. The table of this region becomes one; other regions are names in its settings. */
#include "api/global_tables.h"

#define LIST_MAX 100

static const struct shape_member replica_members[] = {MEMBER("RegionName", shape_region)};
static const struct shape shape_replica = STRUCT_SHAPE("Replica", replica_members);
static const struct shape shape_replicas = {
    .kind = SHAPE_LIST, .of = &shape_replica, .has_max = true, .max = LIMIT_REPLICAS};

#define DOES_NOT_EXIST "Global table not found: Global table with name: '%.*s' does not exist."

/* ---- showing ---- */

static void put_regions(struct buf *out, const struct map *regions, bool with_status)
{
    buf_text(out, "\"ReplicationGroup\":[");
    for (uint32_t i = 0; i < regions->count; i++) {
        if (i) buf_byte(out, ',');
        buf_text(out, "{\"RegionName\":");
        json_put_string(out, regions->attributes[i].name);
        if (with_status) put_text(out, "ReplicaStatus", SLICE("ACTIVE"));
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static void put_global(struct buf *out, const struct api *api, const struct table_definition *definition,
                       const char *status)
{
    struct map global = setting_map(definition, "global"), regions = map_map(&global, SLICE("regions"));
    buf_text(out, "{\"GlobalTableDescription\":{");
    put_regions(out, &regions, true);
    buf_printf(out, ",\"GlobalTableArn\":\"arn:aws:dynamodb::%.*s:global-table/%.*s\"",
               SLICE_ARG(api->account), SLICE_ARG(definition->name));
    put_time(out, "CreationDateTime", map_integer(&global, "created_ms"));
    put_text(out, "GlobalTableStatus", slice_of(status));
    put_text(out, "GlobalTableName", definition->name);
    buf_text(out, "}}");
}

static void keep_global(struct table_change *change, struct map global, struct map regions)
{
    struct arena *arena = change->verdict.arena;
    map_put(arena, &global, SLICE("regions"), map_value(regions));
    setting_put(arena, change->definition, "global", map_value(global));
}

/* ---- CreateGlobalTable ---- */

enum { CREATE_NAME, CREATE_GROUP };

static const struct shape_member create_members[] = {
    [CREATE_NAME] = REQUIRED("GlobalTableName", shape_table_name_strict),
    [CREATE_GROUP] = REQUIRED("ReplicationGroup", shape_replicas),
};
static const struct shape create_shape = STRUCT_SHAPE("CreateGlobalTableInput", create_members);

static void table_is_missing(struct table_change *change)
{
    reject_as(&change->verdict, "TableNotFoundException", "Table not found: %.*s",
              SLICE_ARG(change->table_name));
}

static bool apply_create(struct table_change *change)
{
    const struct node *group = node_member(&change->input, CREATE_GROUP);
    struct arena *arena = change->verdict.arena;
    struct map global = {0}, regions = {0};
    if (setting_map(change->definition, "global").count)
        return reject_as(&change->verdict, "GlobalTableAlreadyExistsException",
                         "Global table with name: '%.*s' already exists.", SLICE_ARG(change->table_name));
    for (uint32_t i = 0; i < group->count; i++)
        if (group->elements[i].present && node_member(&group->elements[i], 0)->present)
            map_put(arena, &regions, node_member(&group->elements[i], 0)->text, map_value((struct map){0}));
    if (!regions.count) return reject(&change->verdict, "One or more parameter values were invalid");
    map_put(arena, &global, SLICE("created_ms"), integer_value(arena, change->now_ms));
    keep_global(change, global, regions);
    return true;
}

static void create_begin(struct api_call *call, const struct node *input)
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->apply = apply_create;
    change->missing = table_is_missing;
    table_change_submit_named(call, input, node_member(input, CREATE_NAME), change);
}

static void create_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (change) put_global(call->reply, call->api, change->definition, "CREATING");
}

const struct operation operation_CreateGlobalTable = {
    .name = TEXT("CreateGlobalTable"),
    .input = &create_shape,
    .begin = create_begin,
    .finish = create_finish,
};

/* ---- DescribeGlobalTable ---- */

static const struct shape_member describe_members[] = {REQUIRED("GlobalTableName", shape_table_name_strict)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeGlobalTableInput", describe_members);

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct slice name;
    if (!table_name_resolve(call, node_member(input, 0), &name)) return;
    struct table *table = engine_table_find(call->api->engine, name);
    if (table && setting_map(&table->definition, "global").count)
        put_global(call->reply, call->api, &table->definition, "ACTIVE");
    else
        refuse(call, "GlobalTableNotFoundException", DOES_NOT_EXIST, SLICE_ARG(name));
    if (table) engine_table_release(table);
}

const struct operation operation_DescribeGlobalTable = {
    .name = TEXT("DescribeGlobalTable"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- UpdateGlobalTable ---- */

enum { UPDATE_NAME, UPDATE_REPLICAS };
enum { ACTION_CREATE, ACTION_DELETE };

static const struct shape_member action_members[] = {REQUIRED("RegionName", shape_region)};
static const struct shape shape_create = STRUCT_SHAPE("CreateReplicaAction", action_members);
static const struct shape shape_delete = STRUCT_SHAPE("DeleteReplicaAction", action_members);
static const struct shape_member replica_update_members[] = {
    [ACTION_CREATE] = MEMBER("Create", shape_create),
    [ACTION_DELETE] = MEMBER("Delete", shape_delete),
};
static const struct shape shape_update = STRUCT_SHAPE("ReplicaUpdate", replica_update_members);
static const struct shape shape_updates = LIST_SHAPE(shape_update);
static const struct shape_member update_members[] = {
    [UPDATE_NAME] = REQUIRED("GlobalTableName", shape_table_name_strict),
    [UPDATE_REPLICAS] = REQUIRED("ReplicaUpdates", shape_updates),
};
static const struct shape update_shape = STRUCT_SHAPE("UpdateGlobalTableInput", update_members);

static void global_is_missing(struct table_change *change)
{
    reject_as(&change->verdict, "GlobalTableNotFoundException", DOES_NOT_EXIST,
              SLICE_ARG(change->table_name));
}

static bool apply_action(struct table_change *change, const struct node *update, struct map *regions)
{
    const struct node *create = node_member(update, ACTION_CREATE),
                      *remove = node_member(update, ACTION_DELETE);
    struct arena *arena = change->verdict.arena;
    if (create->present) {
        struct slice region = node_member(create, 0)->text;
        if (map_find(regions, region))
            return reject_as(&change->verdict, "ReplicaAlreadyExistsException",
                             "Replica already exists: region %.*s of global table '%.*s'", SLICE_ARG(region),
                             SLICE_ARG(change->table_name));
        if (regions->count == LIMIT_REPLICAS)
            return reject_as(&change->verdict, "LimitExceededException",
                             "A global table has at most %d replicas", LIMIT_REPLICAS);
        map_put(arena, regions, region, map_value((struct map){0}));
    }
    if (remove->present) {
        struct slice region = node_member(remove, 0)->text;
        if (!map_find(regions, region))
            return reject_as(&change->verdict, "ReplicaNotFoundException",
                             "Replica not found: region %.*s of global table '%.*s'", SLICE_ARG(region),
                             SLICE_ARG(change->table_name));
        *regions = map_without(arena, regions, region);
    }
    return create->present || remove->present ||
           reject(&change->verdict, "One or more parameter values were invalid");
}

static bool apply_update(struct table_change *change)
{
    const struct node *updates = node_member(&change->input, UPDATE_REPLICAS);
    struct map global = setting_map(change->definition, "global"),
               regions = map_map(&global, SLICE("regions"));
    if (!global.count) {
        global_is_missing(change);
        return false;
    }
    if (!updates->count) return reject(&change->verdict, "One or more parameter values were invalid");
    for (uint32_t i = 0; i < updates->count; i++)
        if (updates->elements[i].present && !apply_action(change, &updates->elements[i], &regions))
            return false;
    keep_global(change, global, regions);
    return true;
}

static void update_begin(struct api_call *call, const struct node *input)
{
    struct table_change *change = arena_new(call->arena, struct table_change);
    change->apply = apply_update;
    change->missing = global_is_missing;
    table_change_submit_named(call, input, node_member(input, UPDATE_NAME), change);
}

static void update_finish(struct api_call *call)
{
    const struct table_change *change = table_change_finish(call);
    if (change) put_global(call->reply, call->api, change->definition, "UPDATING");
}

const struct operation operation_UpdateGlobalTable = {
    .name = TEXT("UpdateGlobalTable"),
    .input = &update_shape,
    .begin = update_begin,
    .finish = update_finish,
};

/* ---- ListGlobalTables ---- */

enum { LIST_START, LIST_LIMIT, LIST_REGION };

static const struct shape_member list_members[] = {
    [LIST_START] = MEMBER("ExclusiveStartGlobalTableName", shape_index_name), /* the same rules for names */
    [LIST_LIMIT] = MEMBER("Limit", shape_limit),
    [LIST_REGION] = MEMBER("RegionName", shape_region),
};
static const struct shape list_shape = STRUCT_SHAPE("ListGlobalTablesInput", list_members);

/* A page while it is written; `last` is the last name shown. */
struct global_list {
    struct api_call *call;
    const struct node *region;
    int64_t limit, count;
    bool more;
    struct slice last;
};

static void list_one(struct global_list *list, struct slice name)
{
    struct table *table = engine_table_find(list->call->api->engine, name);
    struct buf *out = list->call->reply;
    if (!table) return;
    struct map global = setting_map(&table->definition, "global"),
               regions = map_map(&global, SLICE("regions"));
    if (global.count && (!list->region->present || map_find(&regions, list->region->text))) {
        list->more = list->count == list->limit;
        if (!list->more) {
            if (list->count++) buf_byte(out, ',');
            buf_byte(out, '{');
            put_regions(out, &regions, false);
            put_text(out, "GlobalTableName", name);
            buf_byte(out, '}');
            list->last = name;
        }
    }
    engine_table_release(table);
}

static void list_begin(struct api_call *call, const struct node *input)
{
    const struct node *limit = node_member(input, LIST_LIMIT);
    struct global_list list = {.call = call,
                               .region = node_member(input, LIST_REGION),
                               .limit = limit->present && limit->integer < LIST_MAX ? limit->integer
                                                                                    : LIST_MAX};
    struct slice names[LIST_MAX], after = node_member(input, LIST_START)->text;
    buf_text(call->reply, "{\"GlobalTables\":[");
    for (bool more = true; more && !list.more;) {
        uint32_t count = engine_table_names(call->api->engine, call->arena, after, LIST_MAX, names, &more);
        for (uint32_t i = 0; i < count && !list.more; i++) list_one(&list, names[i]);
        if (count) after = names[count - 1];
    }
    buf_byte(call->reply, ']');
    if (list.more) put_text(call->reply, "LastEvaluatedGlobalTableName", list.last);
    buf_byte(call->reply, '}');
}

const struct operation operation_ListGlobalTables = {
    .name = TEXT("ListGlobalTables"),
    .input = &list_shape,
    .begin = list_begin,
};
