/* DescribeTable, DeleteTable and ListTables. */
#include "api/backups.h"

/* ---- DescribeTable ---- */

static const struct shape_member name_only_members[] = {REQUIRED("TableName", shape_table_name_strict)};
static const struct shape describe_shape = STRUCT_SHAPE("DescribeTableInput", name_only_members);
static const struct shape delete_shape = STRUCT_SHAPE("DeleteTableInput", name_only_members);

static void put_description(struct api_call *call, const char *member, const struct table *table,
                            const char *status)
{
    buf_printf(call->reply, "{\"%s\":", member);
    table_describe(call->reply, &(struct description){.api = call->api,
                                                      .definition = &table->definition,
                                                      .status = status,
                                                      .table = table,
                                                      .items = atomic_load(&table->counts->items),
                                                      .bytes = atomic_load(&table->counts->bytes),
                                                      .now_ms = engine_now_ms(call->api->engine)});
    buf_byte(call->reply, '}');
}

static struct table *find_named(struct api_call *call, const struct node *input)
{
    struct slice name;
    if (!table_name_resolve(call, node_member(input, 0), &name)) return NULL;
    return find_table_to_manage(call, name);
}

static void describe_begin(struct api_call *call, const struct node *input)
{
    struct table *table = find_named(call, input);
    if (!table) return;
    bool is_deleting = map_find(&table->definition.settings, SLICE(API_DELETING)) != NULL;
    put_description(call, "Table", table,
                    is_deleting                              ? "DELETING"
                    : table_is_creating(call->api, table) ? "CREATING"
                                                             : "ACTIVE");
}

const struct operation operation_DescribeTable = {
    .name = TEXT("DescribeTable"),
    .input = &describe_shape,
    .begin = describe_begin,
};

/* ---- DeleteTable ---- */

/* The table is held from the beginning on, so that the answer can show what was deleted. */
struct table_deletion {
    struct table *table;
    bool is_in_use, is_importing, is_deleting;
    enum table_change_result result;
    struct backup_note backup; /* of a table that can be brought back; without an id: none */
};

/* The table, if it may be dropped. */
static const struct table *table_to_drop(struct api_call *call, struct batch *batch)
{
    struct table_deletion *deletion = call->state;
    const struct table *now = engine_table_in_batch(batch, deletion->table->definition.name);
    deletion->result = TABLE_MISSING;
    if (!now) return NULL;
    const struct map *settings = &now->definition.settings;
    deletion->is_importing = map_find(settings, SLICE(API_IMPORTING)) != NULL;
    deletion->is_deleting = map_find(settings, SLICE(API_DELETING)) && !call->is_transfer;
    deletion->is_in_use = !now->definition.deletion_protected &&
                          (creating_index(&now->definition) || filling_vectors(now));
    deletion->result = now->definition.deletion_protected ? TABLE_PROTECTED : TABLE_CHANGED;
    bool is_busy = deletion->is_importing || deletion->is_deleting || deletion->is_in_use;
    return is_busy || deletion->result != TABLE_CHANGED ? NULL : now;
}

static void delete_apply(struct commit *commit, struct batch *batch)
{
    const struct table *table = table_to_drop(call_of_commit(commit), batch);
    if (table) engine_table_drop(batch, table->definition.name);
}

/* A table that can be brought back leaves a backup. Nobody can write it from the first commit on, so that the copy has
 * everything; where the process dies before the second one, the next start does it again. */
static void seal_apply(struct commit *commit, struct batch *batch)
{
    struct api_call *call = call_of_commit(commit);
    const struct table *table = table_to_drop(call, batch);
    if (!table) return;
    struct table_definition *definition = table_definition_copy(call->arena, &table->definition);
    setting_put(call->arena, definition, API_DELETING, truth_value(true));
    engine_table_replace(batch, definition);
}

static void drop_apply(struct commit *commit, struct batch *batch)
{
    struct api_call *call = call_of_commit(commit);
    struct table_deletion *deletion = call->state;
    deletion->result = engine_table_drop(batch, deletion->table->definition.name);
    if (deletion->result == TABLE_CHANGED && deletion->backup.id.len)
        backup_note_put(batch, call->arena, &deletion->backup);
}

static void delete_work(struct api_call *call)
{
    struct table_deletion *deletion = call->state;
    const struct api_backups *backups = call->api->backups;
    char error[600];
    call->commit.apply = seal_apply;
    engine_commit(call->api->engine, &call->commit);
    if (call->commit.failed || deletion->result != TABLE_CHANGED || deletion->is_importing || deletion->is_deleting ||
        deletion->is_in_use)
        return;
    system_backup_take(call, deletion->table->definition.name, &deletion->backup);
    call->commit.apply = drop_apply;
    engine_commit(call->api->engine, &call->commit);
    backups->keep(backups->self, 0, error, sizeof error);
}

static void delete_begin(struct api_call *call, const struct node *input)
{
    struct table *table = find_named(call, input);
    if (!table) return;
    struct table_deletion *deletion = arena_new(call->arena, struct table_deletion);
    deletion->table = table;
    call->state = deletion;
    call->commit.apply = delete_apply;
    if (call->api->backups && setting_map(&table->definition, "backups").count)
        call->work = delete_work;
    else
        call->is_write = true;
}

static void delete_finish(struct api_call *call)
{
    const struct table_deletion *deletion = call->state;
    if (deletion->is_importing)
        refuse(call, "ResourceInUseException", IN_USE "Table is being created: %.*s",
               SLICE_ARG(deletion->table->definition.name));
    else if (deletion->is_deleting)
        refuse(call, "ResourceInUseException", IN_USE "Table is being deleted: %.*s",
               SLICE_ARG(deletion->table->definition.name));
    else if (deletion->is_in_use)
        refuse(call, "ResourceInUseException",
               IN_USE "Cannot delete table while indexes are being created, updated, or deleted.");
    else if (deletion->result == TABLE_MISSING)
        refuse(call, "ResourceNotFoundException", "Requested resource not found: Table: %.*s not found",
               SLICE_ARG(deletion->table->definition.name));
    else if (deletion->result == TABLE_PROTECTED)
        invalid(call,
                "Resource cannot be deleted as it is currently protected against deletion. Disable deletion "
                "protection first.");
    else
        put_description(call, "TableDescription", deletion->table, "DELETING");
}

const struct operation operation_DeleteTable = {
    .name = TEXT("DeleteTable"),
    .input = &delete_shape,
    .begin = delete_begin,
    .finish = delete_finish,
};

/* ---- ListTables ---- */

enum { LIST_START, LIST_LIMIT };

static const struct shape list_limit_shape = {
    .kind = SHAPE_INT, .has_min = true, .min = 1, .has_max = true, .max = LIMIT_LIST_TABLES};
static const struct shape list_start_shape = {NAME_RULES(3)};
static const struct shape_member list_members[] = {
    [LIST_START] = MEMBER("ExclusiveStartTableName", list_start_shape),
    [LIST_LIMIT] = MEMBER("Limit", list_limit_shape),
};
static const struct shape list_shape = STRUCT_SHAPE("ListTablesInput", list_members);

static void list_begin(struct api_call *call, const struct node *input)
{
    struct slice names[LIMIT_LIST_TABLES];
    const struct node *limit = node_member(input, LIST_LIMIT), *start = node_member(input, LIST_START);
    uint32_t most = limit->present ? (uint32_t)limit->integer : LIMIT_LIST_TABLES;
    bool more = false;
    uint32_t count = engine_table_names(call->api->engine, call->arena, start->text, most, names, &more);
    buf_text(call->reply, "{\"TableNames\":[");
    for (uint32_t i = 0; i < count; i++) {
        if (i) buf_byte(call->reply, ',');
        json_put_string(call->reply, names[i]);
    }
    buf_byte(call->reply, ']');
    if (more) {
        buf_text(call->reply, ",\"LastEvaluatedTableName\":");
        json_put_string(call->reply, names[count - 1]);
    }
    buf_byte(call->reply, '}');
}

const struct operation operation_ListTables = {
    .name = TEXT("ListTables"),
    .input = &list_shape,
    .begin = list_begin,
};
