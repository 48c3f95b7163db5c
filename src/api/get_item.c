/* GetItem. */
#include "api/throttle.h"

enum {
    GET_RETURN_CAPACITY,
    GET_ATTRIBUTES,
    GET_TABLE_NAME,
    GET_KEY,
    GET_CONSISTENT,
    GET_PROJECTION,
    GET_NAMES,
};

static const struct shape_member members[] = {
    [GET_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [GET_ATTRIBUTES] = MEMBER("AttributesToGet", shape_name_list),
    [GET_TABLE_NAME] = REQUIRED("TableName", shape_table_name),
    [GET_KEY] = REQUIRED("Key", shape_value_map),
    [GET_CONSISTENT] = MEMBER("ConsistentRead", shape_bool),
    [GET_PROJECTION] = MEMBER("ProjectionExpression", shape_expression),
    [GET_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
};
static const struct shape shape = STRUCT_SHAPE("GetItemInput", members);

/* The checks that need no table, in the service's order. */
static bool understand(struct api_call *call, const struct node *input, struct map *key,
                       struct projection **projection)
{
    struct expressions expressions = {
        .names = node_member(input, GET_NAMES),
        .projection_text = node_member(input, GET_PROJECTION),
        .legacy = {{"AttributesToGet", node_member(input, GET_ATTRIBUTES)}},
    };
    if (!expressions_check(call, &expressions) || !map_from_node(call, node_member(input, GET_KEY), key) ||
        !attributes_to_projection(call, node_member(input, GET_ATTRIBUTES), projection) ||
        !expressions_parse(call, &expressions))
        return false;
    if (expressions.projection) *projection = expressions.projection;
    return true;
}

bool put_read_item(struct api_call *call, struct slice image, const struct projection *projection)
{
    struct map item;
    if (!projection) return api_put_encoded_item_json(call->reply, image);
    if (!item_decode(call->arena, image, &item)) return false;
    item = projection_apply(call->arena, projection, &item);
    api_put_item_json(call->reply, &item);
    return true;
}

static void put_capacity(struct api_call *call, const struct node *input, const struct table *table,
                         double units, bool has_item)
{
    const struct node *wanted = node_member(input, GET_RETURN_CAPACITY);
    if (!capacity_wanted(wanted)) return;
    struct capacity capacity = {.table = units};
    if (has_item) buf_byte(call->reply, ',');
    buf_text(call->reply, "\"ConsumedCapacity\":");
    capacity_put(call->reply, wanted, node_member(input, GET_TABLE_NAME)->text, table, &capacity);
}

static void reply(struct api_call *call, const struct node *input, const struct table *table,
                  struct slice key, const struct projection *projection)
{
    struct image image;
    enum engine_result result = engine_get(call->api->engine, table, key, &image);
    bool found = result == ENGINE_OK, sound = result != ENGINE_FAILED;
    size_t bytes = found ? item_encoded_size(image.bytes) : 0;
    double units = capacity_read(bytes, node_is_true(node_member(input, GET_CONSISTENT)));
    buf_byte(call->reply, '{');
    if (found) {
        buf_text(call->reply, "\"Item\":");
        sound = put_read_item(call, image.bytes, projection);
    }
    if (found) image_release(&image);
    if (!sound) {
        refuse(call, "InternalServerError", "Internal server error");
        return;
    }
    if (throttle_is_on(call->api, table)) {
        const struct throttle_demand *throttled = throttle_refusal(call,
                                                                   throttle_read(table, NULL, key, units, 0));
        if (throttled) {
            refuse_throttled(call, throttled);
            return;
        }
    }
    put_capacity(call, input, table, units, found);
    buf_byte(call->reply, '}');
}

static void begin(struct api_call *call, const struct node *input)
{
    struct map key;
    struct item_key item_key;
    struct projection *projection = NULL;
    struct slice name;
    if (!understand(call, input, &key, &projection)) return;
    if (!table_name_resolve(call, node_member(input, GET_TABLE_NAME), &name)) return;
    struct table *table = find_table(call, name);
    if (!table || !key_from_map(call, table, &key, &item_key)) return;
    if (!check_key_paths(call, table, NULL, NULL, projection)) return;
    reply(call, input, table, item_key.bytes, projection);
}

const struct operation operation_GetItem = {SLICE("GetItem"), &shape, begin, NULL};
