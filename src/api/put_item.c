/* PutItem. */
#include "api/items.h"

enum {
    PUT_RETURN_CAPACITY,
    PUT_TABLE_NAME,
    PUT_ITEM,
    PUT_CONDITIONAL_OPERATOR,
    PUT_EXPECTED,
    PUT_RETURN_VALUES,
    PUT_RETURN_METRICS,
    PUT_RETURN_ON_FAILURE,
    PUT_CONDITION,
    PUT_NAMES,
    PUT_VALUES,
};

static const struct shape_member members[] = {
    [PUT_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [PUT_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
    [PUT_ITEM] = REQUIRED("Item", shape_value_map),
    [PUT_CONDITIONAL_OPERATOR] = MEMBER("ConditionalOperator", shape_conditional_operator),
    [PUT_EXPECTED] = MEMBER("Expected", shape_expected_map),
    [PUT_RETURN_VALUES] = MEMBER("ReturnValues", shape_return_values),
    [PUT_RETURN_METRICS] = MEMBER("ReturnItemCollectionMetrics", shape_return_metrics),
    [PUT_RETURN_ON_FAILURE] = MEMBER("ReturnValuesOnConditionCheckFailure", shape_return_on_check_failure),
    [PUT_CONDITION] = MEMBER("ConditionExpression", shape_expression),
    [PUT_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
    [PUT_VALUES] = MEMBER("ExpressionAttributeValues", shape_value_map),
};
static const struct shape shape = STRUCT_SHAPE("PutItemInput", members);

/* The checks that need no table, in the service's order. */
static bool understand(struct api_call *call, const struct node *input, struct item_write *put)
{
    struct expressions expressions = {
        .names = node_member(input, PUT_NAMES),
        .values = node_member(input, PUT_VALUES),
        .condition_text = node_member(input, PUT_CONDITION),
        .legacy = {{"Expected", node_member(input, PUT_EXPECTED)},
                   {"ConditionalOperator", node_member(input, PUT_CONDITIONAL_OPERATOR)}},
    };
    struct condition *expected = NULL;
    if (!expressions_check(call, &expressions)) return false;
    if (!map_from_node(call, node_member(input, PUT_ITEM), &put->write.item)) return false;
    put->return_values = return_values_from_node(node_member(input, PUT_RETURN_VALUES));
    if (put->return_values != RETURN_NONE && put->return_values != RETURN_ALL_OLD)
        return invalid(call, "ReturnValues can only be ALL_OLD or NONE");
    if (!encode_put(call, &put->write)) return false;
    if (!expected_to_condition(call, node_member(input, PUT_EXPECTED),
                               node_member(input, PUT_CONDITIONAL_OPERATOR), &expected) ||
        !expressions_parse(call, &expressions))
        return false;
    put->write.condition = expected ? expected : expressions.condition;
    return true;
}

static void begin(struct api_call *call, const struct node *input)
{
    struct item_write *put = arena_new(call->arena, struct item_write);
    struct slice name;
    put->write.kind = WRITE_PUT;
    put->table_name = node_member(input, PUT_TABLE_NAME)->text;
    put->return_capacity = node_member(input, PUT_RETURN_CAPACITY);
    put->return_metrics = node_member(input, PUT_RETURN_METRICS);
    put->return_on_failure = node_says(node_member(input, PUT_RETURN_ON_FAILURE), "ALL_OLD");
    if (!understand(call, input, put)) return;
    if (!table_name_resolve(call, node_member(input, PUT_TABLE_NAME), &name)) return;
    struct table *table = put->write.table = find_table(call, name);
    if (!table || !key_from_item(call, table, &put->write.item, false, &put->key)) return;
    if (!check_key_paths(call, table, put->write.condition, NULL, NULL)) return;
    item_write_submit(call, put);
}

const struct operation operation_PutItem = {SLICE("PutItem"), &shape, begin, item_write_finish};
