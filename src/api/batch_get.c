/* BatchGetItem. */
#include "api/throttle.h"
#include "base/hash.h"

enum { KEYS_KEYS, KEYS_ATTRIBUTES, KEYS_CONSISTENT, KEYS_PROJECTION, KEYS_NAMES };
static const struct shape shape_keys = {.kind = SHAPE_LIST,
                                        .of = &shape_value_map,
                                        .has_min = true,
                                        .min = 1,
                                        .has_max = true,
                                        .max = LIMIT_BATCH_GET_KEYS,
                                        .terse = true};
static const struct shape_member keys_members[] = {
    [KEYS_KEYS] = REQUIRED("Keys", shape_keys),
    [KEYS_ATTRIBUTES] = MEMBER("AttributesToGet", shape_name_list),
    [KEYS_CONSISTENT] = MEMBER("ConsistentRead", shape_bool),
    [KEYS_PROJECTION] = MEMBER("ProjectionExpression", shape_expression),
    [KEYS_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
};
static const struct shape shape_keys_and_attributes = STRUCT_SHAPE("KeysAndAttributes", keys_members);
static const struct shape shape_read_table = {NAME_RULES(3), .takes_arn = true};
static const struct shape shape_request_items = {
    .kind = SHAPE_MAP, .of = &shape_keys_and_attributes, .key = &shape_read_table, .shown_as_sent = true};

enum { BATCH_ITEMS, BATCH_RETURN_CAPACITY };
static const struct shape_member members[] = {
    [BATCH_ITEMS] = REQUIRED("RequestItems", shape_request_items),
    [BATCH_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
};
static const struct shape shape = STRUCT_SHAPE("BatchGetItemInput", members);

/* What is asked of one table. */
struct table_part {
    struct slice name; /* as the request had it */
    const struct node *request;
    struct map *keys;
    struct item_key *item_keys;
    uint32_t key_count;
    uint32_t read_count; /* keys from here on are unprocessed */
    const struct throttle_demand *throttled; /* why, where there was room for more; or NULL */
    struct table *table;
    struct projection *projection;
    bool consistent;
    struct capacity capacity;
};

struct batch_get {
    struct table_part *parts;
    uint32_t part_count;
};

/* ---- the request ---- */

/* One table may not use expressions while another uses their predecessors. */
static bool check_mixture(struct api_call *call, const struct batch_get *batch)
{
    struct expressions together = {.legacy = {{"AttributesToGet", NULL}}};
    for (uint32_t i = 0; i < batch->part_count; i++) {
        const struct node *attributes = node_field(batch->parts[i].request, KEYS_ATTRIBUTES);
        const struct node *projection = node_field(batch->parts[i].request, KEYS_PROJECTION);
        if (attributes->present) together.legacy[0].node = attributes;
        if (projection->present) together.projection_text = projection;
    }
    return expressions_check(call, &together);
}

static bool parse_projection(struct api_call *call, struct table_part *part)
{
    struct expressions expressions = {
        .names = node_field(part->request, KEYS_NAMES),
        .projection_text = node_field(part->request, KEYS_PROJECTION),
        .legacy = {{"AttributesToGet", node_field(part->request, KEYS_ATTRIBUTES)}},
    };
    if (!expressions_check(call, &expressions) ||
        !attributes_to_projection(call, node_field(part->request, KEYS_ATTRIBUTES), &part->projection) ||
        !expressions_parse(call, &expressions))
        return false;
    if (expressions.projection) part->projection = expressions.projection;
    return true;
}

static uint64_t hash_of_key(struct api_call *call, const struct map *key)
{
    size_t mark = call->reply->len;
    item_encode(call->reply, key);
    uint64_t hash = hash_bytes((struct slice){call->reply->data + mark, call->reply->len - mark});
    call->reply->len = mark;
    return hash;
}

static bool take_keys(struct api_call *call, struct table_part *part)
{
    const struct node *keys = node_field(part->request, KEYS_KEYS);
    uint64_t hashes[LIMIT_BATCH_GET_KEYS];
    part->key_count = keys->count;
    part->keys = arena_array(call->arena, struct map, keys->count);
    for (uint32_t i = 0; i < keys->count; i++) {
        if (!map_from_node(call, &keys->elements[i], &part->keys[i])) return false;
        hashes[i] = hash_of_key(call, &part->keys[i]);
        for (uint32_t j = 0; j < i; j++)
            if (hashes[j] == hashes[i] && map_equal(&part->keys[j], &part->keys[i]))
                return invalid(call, "Provided list of item keys contains duplicates");
    }
    return true;
}

/* A table's request that is null is like one without keys. */
static bool refuse_null(struct api_call *call, struct slice table)
{
    return invalid(call,
                   "1 validation error detected: Value null at 'requestItems.%.*s.member.keys' failed to "
                   "satisfy constraint: Member must not be null",
                   SLICE_ARG(table));
}

/* The checks that need no table, in the service's order. */
static bool understand(struct api_call *call, const struct node *items, struct batch_get *batch)
{
    uint32_t total = 0;
    if (items->count == 0) return invalid(call, "The requestItems parameter is required for BatchGetItem");
    batch->part_count = items->count;
    batch->parts = arena_zero(call->arena, items->count * sizeof *batch->parts);
    for (uint32_t i = 0; i < items->count; i++) {
        struct table_part *part = &batch->parts[i];
        part->name = items->entries[i].key;
        part->request = &items->entries[i].node;
        if (!part->request->present) return refuse_null(call, part->name);
        part->consistent = node_is_true(node_field(part->request, KEYS_CONSISTENT));
    }
    if (!check_mixture(call, batch)) return false;
    for (uint32_t i = 0; i < items->count; i++) {
        if (!parse_projection(call, &batch->parts[i]) || !take_keys(call, &batch->parts[i])) return false;
        total += batch->parts[i].key_count;
        if (total > LIMIT_BATCH_GET_KEYS)
            return invalid(call, "Too many items requested for the BatchGetItem call");
    }
    return true;
}

/* Tables first, then keys against their schemas. */
static bool fit(struct api_call *call, struct batch_get *batch)
{
    for (uint32_t i = 0; i < batch->part_count; i++) {
        struct table_part *part = &batch->parts[i];
        part->table = find_table_or_arn(call, part->name);
        if (!part->table) return false;
    }
    for (uint32_t i = 0; i < batch->part_count; i++) {
        struct table_part *part = &batch->parts[i];
        part->item_keys = arena_array(call->arena, struct item_key, part->key_count);
        for (uint32_t j = 0; j < part->key_count; j++)
            if (!key_from_map(call, part->table, &part->keys[j], &part->item_keys[j])) return false;
        if (!check_key_paths(call, part->table, NULL, NULL, part->projection)) return false;
    }
    return true;
}

/* ---- reading ---- */

/* One item. A page that grows too large, or throttling, leaves this key and all behind it unprocessed. */
static bool read_key(struct api_call *call, struct table_part *part, struct slice key, uint64_t *bytes,
                     bool *is_first)
{
    struct image image;
    enum engine_result result = engine_get(call->api->engine, part->table, key, &image);
    size_t size = result == ENGINE_OK ? item_encoded_size(image.bytes) : 0;
    if (result == ENGINE_FAILED) return refuse(call, "InternalServerError", "Internal server error");
    bool sound = true, fits = *bytes + size <= LIMIT_BATCH_GET_BYTES;
    double units = capacity_read(size, part->consistent);
    if (fits && throttle_is_on(call->api, part->table))
        part->throttled = throttle_refusal(call, throttle_read(part->table, NULL, key, units, 0));
    if (fits && !part->throttled) {
        part->read_count++;
        part->capacity.table += units;
        if (result == ENGINE_OK) {
            if (!*is_first) buf_byte(call->reply, ',');
            *is_first = false;
            sound = put_read_item(call, image.bytes, part->projection);
        }
    }
    *bytes += size;
    if (result == ENGINE_OK) image_release(&image);
    return sound || refuse(call, "InternalServerError", "Internal server error");
}

static bool put_responses(struct api_call *call, struct batch_get *batch)
{
    uint64_t bytes = 0;
    buf_text(call->reply, "{\"Responses\":{");
    for (uint32_t i = 0; i < batch->part_count; i++) {
        struct table_part *part = &batch->parts[i];
        bool is_first = true;
        if (i) buf_byte(call->reply, ',');
        json_put_string(call->reply, part->name);
        buf_text(call->reply, ":[");
        for (uint32_t j = 0; j < part->key_count && bytes <= LIMIT_BATCH_GET_BYTES && !part->throttled; j++)
            if (!read_key(call, part, part->item_keys[j].bytes, &bytes, &is_first)) return false;
        buf_byte(call->reply, ']');
    }
    buf_byte(call->reply, '}');
    return true;
}

/* ---- the rest of the reply ---- */

static void put_names(struct buf *out, const struct node *names)
{
    buf_text(out, ",\"ExpressionAttributeNames\":{");
    for (uint32_t i = 0; i < names->count; i++) {
        if (i) buf_byte(out, ',');
        json_put_string(out, names->entries[i].key);
        buf_byte(out, ':');
        json_put_string(out, names->entries[i].node.text);
    }
    buf_byte(out, '}');
}

static void put_attribute_names(struct buf *out, const struct node *attributes)
{
    buf_text(out, ",\"AttributesToGet\":[");
    for (uint32_t i = 0; i < attributes->count; i++) {
        if (i) buf_byte(out, ',');
        json_put_string(out, attributes->elements[i].text);
    }
    buf_byte(out, ']');
}

/* What is left of the table's request, so that it can be sent again as it stands. */
static void put_rest(struct buf *out, const struct table_part *part)
{
    const struct node *projection = node_field(part->request, KEYS_PROJECTION);
    json_put_string(out, part->name);
    buf_text(out, ":{\"Keys\":[");
    for (uint32_t i = part->read_count; i < part->key_count; i++) {
        if (i > part->read_count) buf_byte(out, ',');
        api_put_item_json(out, &part->keys[i]);
    }
    buf_byte(out, ']');
    if (part->consistent) buf_text(out, ",\"ConsistentRead\":true");
    if (projection->present) {
        buf_text(out, ",\"ProjectionExpression\":");
        json_put_string(out, projection->text);
    }
    if (node_field(part->request, KEYS_NAMES)->present) put_names(out, node_field(part->request, KEYS_NAMES));
    if (node_field(part->request, KEYS_ATTRIBUTES)->present)
        put_attribute_names(out, node_field(part->request, KEYS_ATTRIBUTES));
    buf_byte(out, '}');
}

/* A batch of which nothing could be read is refused as a whole. */
static bool check_admission(struct api_call *call, const struct batch_get *batch)
{
    const struct throttle_demand *throttled = NULL;
    for (uint32_t i = 0; i < batch->part_count; i++) {
        if (batch->parts[i].read_count) return true;
        if (!throttled) throttled = batch->parts[i].throttled;
    }
    return !throttled || refuse_throttled(call, throttled);
}

static void put_unprocessed(struct buf *out, const struct batch_get *batch)
{
    bool any = false;
    buf_text(out, ",\"UnprocessedKeys\":{");
    for (uint32_t i = 0; i < batch->part_count; i++) {
        if (batch->parts[i].read_count == batch->parts[i].key_count) continue;
        if (any) buf_byte(out, ',');
        any = true;
        put_rest(out, &batch->parts[i]);
    }
    buf_byte(out, '}');
}

static void put_capacities(struct buf *out, const struct node *wanted, const struct batch_get *batch)
{
    if (!capacity_wanted(wanted)) return;
    buf_text(out, ",\"ConsumedCapacity\":[");
    for (uint32_t i = 0; i < batch->part_count; i++) {
        const struct table_part *part = &batch->parts[i];
        if (i) buf_byte(out, ',');
        capacity_put(out, wanted, part->name, part->table, &part->capacity);
    }
    buf_byte(out, ']');
}

static void begin(struct api_call *call, const struct node *input)
{
    struct batch_get batch = {0};
    if (!understand(call, node_member(input, BATCH_ITEMS), &batch) || !fit(call, &batch)) return;
    if (!put_responses(call, &batch) || !check_admission(call, &batch)) return;
    put_unprocessed(call->reply, &batch);
    put_capacities(call->reply, node_member(input, BATCH_RETURN_CAPACITY), &batch);
    buf_byte(call->reply, '}');
}

const struct operation operation_BatchGetItem = {SLICE("BatchGetItem"), &shape, begin, NULL};
