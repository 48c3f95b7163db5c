/* UpdateItem. */
#include "api/items.h"

enum {
    UPDATE_RETURN_CAPACITY,
    UPDATE_TABLE_NAME,
    UPDATE_RETURN_METRICS,
    UPDATE_RETURN_VALUES,
    UPDATE_RETURN_ON_FAILURE,
    UPDATE_KEY,
    UPDATE_CONDITIONAL_OPERATOR,
    UPDATE_EXPECTED,
    UPDATE_ATTRIBUTE_UPDATES,
    UPDATE_CONDITION,
    UPDATE_EXPRESSION,
    UPDATE_NAMES,
    UPDATE_VALUES,
};

static const struct shape_member members[] = {
    [UPDATE_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [UPDATE_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
    [UPDATE_RETURN_METRICS] = MEMBER("ReturnItemCollectionMetrics", shape_return_metrics),
    [UPDATE_RETURN_VALUES] = MEMBER("ReturnValues", shape_return_values),
    [UPDATE_RETURN_ON_FAILURE] = MEMBER("ReturnValuesOnConditionCheckFailure", shape_return_on_check_failure),
    [UPDATE_KEY] = REQUIRED("Key", shape_value_map),
    [UPDATE_CONDITIONAL_OPERATOR] = MEMBER("ConditionalOperator", shape_conditional_operator),
    [UPDATE_EXPECTED] = MEMBER("Expected", shape_expected_map),
    [UPDATE_ATTRIBUTE_UPDATES] = MEMBER("AttributeUpdates", shape_attribute_updates),
    [UPDATE_CONDITION] = MEMBER("ConditionExpression", shape_expression),
    [UPDATE_EXPRESSION] = MEMBER("UpdateExpression", shape_expression),
    [UPDATE_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
    [UPDATE_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map),
};
static const struct shape shape = STRUCT_SHAPE("UpdateItemInput", members);

/* The checks that need no table, in the service's order. The key attributes begin the item where there is
 * none. */
static bool understand(struct api_call *call, const struct node *input, struct item_write *update)
{
    struct expressions expressions = {
        .names = node_member(input, UPDATE_NAMES),
        .values = node_member(input, UPDATE_VALUES),
        .update_text = node_member(input, UPDATE_EXPRESSION),
        .condition_text = node_member(input, UPDATE_CONDITION),
        .legacy = {{"AttributeUpdates", node_member(input, UPDATE_ATTRIBUTE_UPDATES)},
                   {"Expected", node_member(input, UPDATE_EXPECTED)},
                   {"ConditionalOperator", node_member(input, UPDATE_CONDITIONAL_OPERATOR)}},
    };
    struct condition *expected = NULL;
    struct update *legacy = NULL;
    if (!expressions_check(call, &expressions) ||
        !map_from_node(call, node_member(input, UPDATE_KEY), &update->write.item) ||
        !attribute_updates_to_update(call, node_member(input, UPDATE_ATTRIBUTE_UPDATES), &legacy) ||
        !expected_to_condition(call, node_member(input, UPDATE_EXPECTED),
                               node_member(input, UPDATE_CONDITIONAL_OPERATOR), &expected) ||
        !expressions_parse(call, &expressions))
        return false;
    update->is_legacy = legacy != NULL;
    update->write.update = legacy ? legacy : expressions.update;
    update->write.condition = expected ? expected : expressions.condition;
    return true;
}

bool update_only_clears(const struct update *update)
{
    for (uint32_t i = 0; update && i < update->count; i++)
        if (update->actions[i].verb == UPDATE_SET || update->actions[i].verb == UPDATE_ADD) return false;
    return update && update->count > 0;
}

static struct slice key_update_fault(struct arena *arena, const struct update *update, struct slice name)
{
    if (!update_touches(update, name)) return SLICE_NONE;
    return arena_printf(arena,
                        "One or more parameter values were invalid: Cannot update attribute %.*s. This "
                        "attribute is part of the key",
                        SLICE_ARG(name));
}

struct slice fit_update(struct api_call *call, struct write *write, bool is_legacy)
{
    const struct table *table = write->table;
    const struct update *update = write->update;
    if (!update) return SLICE_NONE;
    if (table->definition.index_count || table->definition.vector_count)
        write->check_new = is_legacy ? check_legacy_index_keys : check_updated_index_keys;
    struct slice fault = key_update_fault(call->arena, update, table->keys.hash);
    if (!fault.len && table->keys.range.len) fault = key_update_fault(call->arena, update, table->keys.range);
    return fault.len ? fault : update_index_fault(call->arena, table, update);
}

static void begin(struct api_call *call, const struct node *input)
{
    struct item_write *update = arena_new(call->arena, struct item_write);
    struct slice name;
    update->write.kind = WRITE_UPDATE;
    update->table_name = node_member(input, UPDATE_TABLE_NAME)->text;
    update->return_capacity = node_member(input, UPDATE_RETURN_CAPACITY);
    update->return_metrics = node_member(input, UPDATE_RETURN_METRICS);
    update->return_values = return_values_from_node(node_member(input, UPDATE_RETURN_VALUES));
    update->return_on_failure = node_says(node_member(input, UPDATE_RETURN_ON_FAILURE), "ALL_OLD");
    if (!understand(call, input, update)) return;
    if (!table_name_resolve(call, node_member(input, UPDATE_TABLE_NAME), &name)) return;
    update->write.table = find_table(call, name);
    if (!update->write.table) return;
    if (!key_from_map(call, update->write.table, &update->write.item, &update->key)) return;
    if (!invalid_unless_sound(call, fit_update(call, &update->write, update->is_legacy))) return;
    if (!check_key_paths(call, update->write.table, update->write.condition, update->write.update, NULL))
        return;
    update->only_clears = update_only_clears(update->write.update);
    item_write_submit(call, update);
}

const struct operation operation_UpdateItem = {SLICE("UpdateItem"), &shape, begin, item_write_finish};
