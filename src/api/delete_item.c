/* DeleteItem. */
#include "api/items.h"

enum {
    DELETE_RETURN_CAPACITY,
    DELETE_TABLE_NAME,
    DELETE_RETURN_VALUES,
    DELETE_RETURN_METRICS,
    DELETE_RETURN_ON_FAILURE,
    DELETE_KEY,
    DELETE_CONDITIONAL_OPERATOR,
    DELETE_EXPECTED,
    DELETE_CONDITION,
    DELETE_NAMES,
    DELETE_VALUES,
};

static const struct shape_member members[] = {
    [DELETE_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [DELETE_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
    [DELETE_RETURN_VALUES] = MEMBER("ReturnValues", shape_return_values),
    [DELETE_RETURN_METRICS] = MEMBER("ReturnItemCollectionMetrics", shape_return_metrics),
    [DELETE_RETURN_ON_FAILURE] = MEMBER("ReturnValuesOnConditionCheckFailure", shape_return_on_check_failure),
    [DELETE_KEY] = REQUIRED("Key", shape_value_map),
    [DELETE_CONDITIONAL_OPERATOR] = MEMBER("ConditionalOperator", shape_conditional_operator),
    [DELETE_EXPECTED] = MEMBER("Expected", shape_expected_map),
    [DELETE_CONDITION] = MEMBER("ConditionExpression", shape_expression),
    [DELETE_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
    [DELETE_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map),
};
static const struct shape shape = STRUCT_SHAPE("DeleteItemInput", members);

/* The checks that need no table, in the service's order. */
static bool understand(struct api_call *call, const struct node *input, struct item_write *delete,
                       struct map *key)
{
    struct expressions expressions = {
        .names = node_member(input, DELETE_NAMES),
        .values = node_member(input, DELETE_VALUES),
        .condition_text = node_member(input, DELETE_CONDITION),
        .legacy = {{"Expected", node_member(input, DELETE_EXPECTED)},
                   {"ConditionalOperator", node_member(input, DELETE_CONDITIONAL_OPERATOR)}},
    };
    struct condition *expected = NULL;
    if (!expressions_check(call, &expressions)) return false;
    if (!map_from_node(call, node_member(input, DELETE_KEY), key)) return false;
    delete->return_values = return_values_from_node(node_member(input, DELETE_RETURN_VALUES));
    if (delete->return_values != RETURN_NONE && delete->return_values != RETURN_ALL_OLD)
        return invalid(call, "ReturnValues can only be ALL_OLD or NONE");
    if (!expected_to_condition(call, node_member(input, DELETE_EXPECTED),
                               node_member(input, DELETE_CONDITIONAL_OPERATOR), &expected) ||
        !expressions_parse(call, &expressions))
        return false;
    delete->write.condition = expected ? expected : expressions.condition;
    return true;
}

static void begin(struct api_call *call, const struct node *input)
{
    struct item_write *delete = arena_new(call->arena, struct item_write);
    struct slice name;
    struct map key;
    delete->write.kind = WRITE_DELETE;
    delete->table_name = node_member(input, DELETE_TABLE_NAME)->text;
    delete->return_capacity = node_member(input, DELETE_RETURN_CAPACITY);
    delete->return_metrics = node_member(input, DELETE_RETURN_METRICS);
    delete->return_on_failure = node_says(node_member(input, DELETE_RETURN_ON_FAILURE), "ALL_OLD");
    if (!understand(call, input, delete, &key)) return;
    if (!table_name_resolve(call, node_member(input, DELETE_TABLE_NAME), &name)) return;
    struct table *table = delete->write.table = find_table(call, name);
    if (!table || !key_from_map(call, table, &key, &delete->key)) return;
    if (!check_key_paths(call, table, delete->write.condition, NULL, NULL)) return;
    item_write_submit(call, delete);
}

const struct operation operation_DeleteItem = {SLICE("DeleteItem"), &shape, begin, item_write_finish};
