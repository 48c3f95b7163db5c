/* Secondary indexes as the item operations see them: the types and sizes their key attributes must have in
 * items and updates. */
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

static bool visit_vector_index(const struct table *table, const struct vector_definition *vectors,
                               bool (*visit)(void *context, const struct index_key *key), void *context)
{
    struct index_key key = {.index = &vectors->index, .is_hash = true};
    for (uint32_t i = 0; i < vectors->index.hash_count; i++) {
        key.name = vectors->index.hash[i];
        ensure(table_attribute_type(&table->definition, key.name, &key.type));
        if (!visit(context, &key)) return false;
    }
    key.is_filter = true;
    for (uint32_t i = 0; i < vectors->filter_count; i++) {
        key.name = vectors->filters[i];
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
    for (uint32_t i = 0; i < definition->vector_count; i++)
        if (!visit_vector_index(table, &definition->vectors[i], visit, context)) return false;
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

static size_t limit_of(bool is_hash)
{
    return is_hash ? LIMIT_HASH_KEY_BYTES : LIMIT_RANGE_KEY_BYTES;
}

static struct slice size_fault(struct arena *arena, const struct index_key *key, const struct value *value)
{
    size_t bytes = value_size(value);
    if (bytes <= limit_of(key->is_hash)) return SLICE_NONE;
    return arena_printf(arena,
                        "One or more parameter values were invalid: Size limit exceeded for Index Key %.*s "
                        "Actual Size: %zu bytes Max Size: %zu bytes IndexName: %.*s",
                        SLICE_ARG(key->name), bytes, limit_of(key->is_hash), SLICE_ARG(key->index->name));
}

/* ---- keys of several attributes, which are measured together ---- */

/* The hash attributes of an index, or its range attributes. */
struct key_group {
    const struct index_definition *index;
    const struct slice *names;
    uint32_t count;
    bool is_hash;
};

static bool visit_groups(const struct table *table,
                         bool (*visit)(void *context, const struct key_group *group), void *context)
{
    const struct table_definition *definition = &table->definition;
    for (uint32_t i = 0; i < definition->index_count; i++) {
        const struct index_definition *index = &definition->indexes[i];
        struct key_group hashes = {index, index->hash, index->hash_count, true};
        struct key_group ranges = {index, index->range, index->range_count, false};
        if (hashes.count > 1 && !visit(context, &hashes)) return false;
        if (ranges.count > 1 && !visit(context, &ranges)) return false;
    }
    return true;
}

/* What is there of the key, even where something is missing and the index has no entry. */
static struct slice group_fault(struct arena *arena, const struct map *item, const struct key_group *group)
{
    size_t bytes = 0;
    struct slice names = SLICE_NONE;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct value *value = map_find(item, group->names[i]);
        if (value) bytes += value_size(value);
    }
    if (bytes <= limit_of(group->is_hash)) return SLICE_NONE;
    for (uint32_t i = 0; i < group->count; i++)
        if (map_find(item, group->names[i]))
            names = arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(names), names.len ? ", " : "",
                                 SLICE_ARG(group->names[i]));
    return arena_printf(arena,
                        "Aggregate size for %s key attributes %.*s of index %.*s has exceeded limit %zu "
                        "bytes, with actual size %zu bytes",
                        group->is_hash ? "HASH" : "RANGE", SLICE_ARG(names), SLICE_ARG(group->index->name),
                        limit_of(group->is_hash), bytes);
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
    else if (key->is_filter)
        return true;
    else if (is_empty(value))
        check->fault = empty_fault(check->arena, key);
    else
        check->fault = size_fault(check->arena, key, value);
    return check->fault.len == 0;
}

static bool check_item_group(void *context, const struct key_group *group)
{
    struct item_check *check = context;
    check->fault = group_fault(check->arena, check->item, group);
    return check->fault.len == 0;
}

/* ---- vectors ---- */

#define VECTOR_FAULT "One or more parameter values were invalid. Invalid "

static struct slice vector_fault(struct arena *arena, const struct vector_definition *vectors,
                                 const struct map *item)
{
    const struct value *list = map_find(item, vectors->attribute);
    struct slice name = vectors->attribute, index = vectors->index.name;
    float number;
    if (!list) return SLICE_NONE;
    if (list->type != VALUE_L)
        return arena_printf(arena,
                            VECTOR_FAULT "type for parameter %.*s, Expected: 32-bit floating point number list "
                                         "IndexName: %.*s",
                            SLICE_ARG(name), SLICE_ARG(index));
    if (list->count != vectors->dimensions)
        return arena_printf(arena,
                            VECTOR_FAULT "size for parameter %.*s, Expected: %u, Actual: %u IndexName: %.*s",
                            SLICE_ARG(name), vectors->dimensions, list->count, SLICE_ARG(index));
    for (uint32_t i = 0; i < list->count; i++)
        if (!vector_number(&list->elements[i], &number))
            return arena_printf(arena,
                                VECTOR_FAULT "type for parameter %.*s[%u], Expected: 32-bit floating point "
                                             "number, Actual: %.*s. IndexName: %.*s",
                                SLICE_ARG(name), i, SLICE_ARG(value_type_name(list->elements[i].type)),
                                SLICE_ARG(index));
    return SLICE_NONE;
}

struct slice item_index_fault(struct arena *arena, const struct table *table, const struct map *item)
{
    const struct table_definition *definition = &table->definition;
    if (definition->index_count == 0 && definition->vector_count == 0) return SLICE_NONE;
    struct item_check check = {arena, item, SLICE_NONE};
    if (visit_index_keys(table, check_item_key, &check)) visit_groups(table, check_item_group, &check);
    for (uint32_t i = 0; i < definition->vector_count && !check.fault.len; i++)
        check.fault = vector_fault(arena, &definition->vectors[i], item);
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
    if (operand->kind == UPDATE_OPERAND_VALUE)
        *type = operand->value->type;
    else
        *type = operand->kind == UPDATE_OPERAND_LIST_APPEND ? VALUE_L : VALUE_N;
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
    if (table->definition.index_count == 0 && table->definition.vector_count == 0) return SLICE_NONE;
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

static struct slice updated_size_fault(const struct updated_check *check, struct slice fault)
{
    if (!fault.len || check->is_legacy) return fault;
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
    else if (key->is_filter)
        return true;
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
        check->fault = updated_size_fault(check, size_fault(check->write->arena, key, value));
    return check->fault.len == 0;
}

static bool check_updated_group(void *context, const struct key_group *group)
{
    struct updated_check *check = context;
    bool touched = false;
    for (uint32_t i = 0; i < group->count; i++)
        touched |= update_touches(check->write->update, group->names[i]);
    if (touched)
        check->fault = updated_size_fault(check, group_fault(check->write->arena, check->item, group));
    return check->fault.len == 0;
}

static bool check_updated(const struct write *write, const struct map *item, bool is_legacy,
                          struct slice *fault)
{
    struct updated_check check = {write, item, is_legacy, SLICE_NONE};
    const struct table_definition *definition = &write->table->definition;
    if (visit_index_keys(write->table, check_updated_key, &check))
        visit_groups(write->table, check_updated_group, &check);
    for (uint32_t i = 0; i < definition->vector_count && !check.fault.len; i++)
        if (update_touches(write->update, definition->vectors[i].attribute))
            check.fault = vector_fault(write->arena, &definition->vectors[i], item);
    *fault = check.fault;
    return check.fault.len == 0;
}

bool check_updated_index_keys(const struct write *write, const struct map *item, struct slice *fault)
{
    return check_updated(write, item, false, fault);
}

bool check_legacy_index_keys(const struct write *write, const struct map *item, struct slice *fault)
{
    return check_updated(write, item, true, fault);
}
