/* Secondary indexes as the item operations see them: the types their key attributes must have in items and
 * updates. */
#include "api/items.h"
#include "base/fail.h"

/* The attributes of one index; of a local index only the range key, since the hash key is the table's. */
static bool visit_index(const struct table *table, const struct index_definition *index,
                        bool (*visit)(void *context, const struct index_key *key), void *context)
{
    struct index_key key = {.index = index, .is_hash = true};
    for (uint32_t i = 0; index->global && i < index->hash_count; i++) {
        key.name = index->hash[i];
        ensure(table_attribute_type(&table->definition, key.name, &key.type));
        if (!visit(context, &key)) return false;
    }
    key.is_hash = false;
    for (uint32_t i = 0; i < index->range_count; i++) {
        key.name = index->range[i];
        ensure(table_attribute_type(&table->definition, key.name, &key.type));
        if (!visit(context, &key)) return false;
    }
    return true;
}

bool visit_index_keys(const struct table *table, bool (*visit)(void *context, const struct index_key *key),
                      void *context)
{
    const struct table_definition *definition = &table->definition;
    for (int global = 1; global >= 0; global--)
        for (uint32_t i = 0; i < definition->index_count; i++)
            if (definition->indexes[i].global == (global == 1) &&
                !visit_index(table, &definition->indexes[i], visit, context))
                return false;
    return true;
}

/* ---- items ---- */

static struct slice type_fault(struct arena *arena, const struct index_key *key, enum value_type actual)
{
    return arena_printf(arena,
                        "One or more parameter values were invalid: Type mismatch for Index Key %.*s "
                        "Expected: %.*s Actual: %.*s IndexName: %.*s",
                        SLICE_ARG(key->name), SLICE_ARG(value_type_name(key->type)),
                        SLICE_ARG(value_type_name(actual)), SLICE_ARG(key->index->name));
}

static struct slice empty_fault(struct arena *arena, const struct index_key *key)
{
    return arena_printf(arena,
                        "One or more parameter values are not valid. A value specified for a secondary index "
                        "key is not supported. The AttributeValue for a key attribute cannot contain an "
                        "empty %s value. IndexName: %.*s, IndexKey: %.*s",
                        key->type == VALUE_S ? "string" : "binary", SLICE_ARG(key->index->name),
                        SLICE_ARG(key->name));
}

static bool is_empty(const struct value *value)
{
    return value->type != VALUE_N && value->bytes.len == 0;
}

struct item_check {
    struct arena *arena;
    const struct map *item;
    struct slice fault;
};

static bool check_item_key(void *context, const struct index_key *key)
{
    struct item_check *check = context;
    const struct value *value = map_find(check->item, key->name);
    if (!value) return true;
    if (value->type != key->type)
        check->fault = type_fault(check->arena, key, value->type);
    else if (is_empty(value))
        check->fault = empty_fault(check->arena, key);
    else
        check->fault = key_length_fault(value, key->is_hash);
    return check->fault.len == 0;
}

struct slice item_index_fault(struct arena *arena, const struct table *table, const struct map *item)
{
    if (table->definition.index_count == 0) return SLICE_NONE;
    struct item_check check = {arena, item, SLICE_NONE};
    visit_index_keys(table, check_item_key, &check);
    return check.fault;
}

/* ---- updates ---- */

/* The type an action gives its attribute; false when only the item can tell. */
static bool type_of_action(const struct update_action *action, enum value_type *type)
{
    const struct update_operand *operand = action->left;
    if (action->verb == UPDATE_REMOVE) return false;
    if (action->verb != UPDATE_SET) {
        *type = action->value->type;
        return true;
    }
    if (action->value_kind != UPDATE_PLAIN) {
        *type = VALUE_N;
        return true;
    }
    while (operand->kind == UPDATE_OPERAND_IF_NOT_EXISTS) operand = operand->right;
    if (operand->kind == UPDATE_OPERAND_PATH) return false;
    *type = operand->kind == UPDATE_OPERAND_VALUE ? operand->value->type : VALUE_L;
    return true;
}

struct update_check {
    struct arena *arena;
    const struct update *update;
    struct slice fault;
};

static bool check_update_key(void *context, const struct index_key *key)
{
    struct update_check *check = context;
    for (uint32_t i = 0; i < check->update->count; i++) {
        const struct update_action *action = &check->update->actions[i];
        enum value_type type;
        if (action->path.count != 1 || !slice_equal(action->path.parts[0].name, key->name)) continue;
        if (!type_of_action(action, &type) || type == key->type) continue;
        check->fault = type_fault(check->arena, key, type);
        return false;
    }
    return true;
}

struct slice update_index_fault(struct arena *arena, const struct table *table, const struct update *update)
{
    if (table->definition.index_count == 0) return SLICE_NONE;
    struct update_check check = {arena, update, SLICE_NONE};
    visit_index_keys(table, check_update_key, &check);
    return check.fault;
}

/* Attributes that the update leaves alone may be of any type: the index may be younger than the item. */
struct updated_check {
    const struct write *write;
    const struct map *item;
    bool is_legacy;
    struct slice fault;
};

/* Of too long a key transactions speak in words of their own. */
static struct slice updated_length_fault(const struct write *write, const struct index_key *key,
                                         const struct value *value)
{
    struct slice fault = key_length_fault(value, key->is_hash);
    if (!fault.len || !write->in_transaction) return fault;
    return SLICE(
        "The update expression attempted to update the secondary index key beyond allowed size limits");
}

static bool check_updated_key(void *context, const struct index_key *key)
{
    struct updated_check *check = context;
    const struct value *value = map_find(check->item, key->name);
    if (!value || !update_touches(check->write->update, key->name)) return true;
    if (value->type != key->type)
        check->fault = SLICE(
            "The update expression attempted to update the secondary index key to unsupported type");
    else if (is_empty(value) && check->is_legacy)
        check->fault = empty_fault(check->write->arena, key);
    else if (is_empty(value))
        check->fault = arena_printf(check->write->arena,
                                    "One or more parameter values are not valid. The update expression "
                                    "attempted to update a secondary index key to a value that is not "
                                    "supported. The AttributeValue for a key attribute cannot contain an "
                                    "empty %s value.",
                                    value->type == VALUE_S ? "string" : "binary");
    else
        check->fault = updated_length_fault(check->write, key, value);
    return check->fault.len == 0;
}

static bool check_updated(const struct write *write, const struct map *item, bool is_legacy,
                          struct slice *fault)
{
    struct updated_check check = {write, item, is_legacy, SLICE_NONE};
    bool sound = visit_index_keys(write->table, check_updated_key, &check);
    *fault = check.fault;
    return sound;
}

bool check_updated_index_keys(const struct write *write, const struct map *item, struct slice *fault)
{
    return check_updated(write, item, false, fault);
}

bool check_legacy_index_keys(const struct write *write, const struct map *item, struct slice *fault)
{
    return check_updated(write, item, true, fault);
}
