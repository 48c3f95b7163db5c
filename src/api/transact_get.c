/* TransactGetItems. It reads on the writer's thread, between two commits, so that what it sees is the state
 * of one moment; a commit that only reads costs no sync. */
#include "api/throttle.h"

#define RESPONSE_BYTES 4 /* what the service counts for a response beside its item */

enum { GET_TABLE_NAME, GET_KEY, GET_PROJECTION, GET_NAMES };
static const struct shape_member get_members[] = {
    [GET_TABLE_NAME] = REQUIRED("TableName", shape_table_key),
    [GET_KEY] = REQUIRED("Key", shape_value_map),
    [GET_PROJECTION] = MEMBER("ProjectionExpression", shape_expression),
    [GET_NAMES] = MEMBER("ExpressionAttributeNames", shape_name_map),
};
static const struct shape shape_get = STRUCT_SHAPE("Get", get_members);

enum { ITEM_GET };
static const struct shape_member item_members[] = {
    [ITEM_GET] = REQUIRED("Get", shape_get),
};
static const struct shape shape_item = STRUCT_SHAPE("TransactGetItem", item_members);
static const struct shape shape_items = LIST_SHAPE_SIZED(shape_item, 1, LIMIT_TRANSACTION_ACTIONS);

enum { TRANSACT_RETURN_CAPACITY, TRANSACT_ITEMS };
static const struct shape_member members[] = {
    [TRANSACT_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [TRANSACT_ITEMS] = REQUIRED("TransactItems", shape_items),
};
static const struct shape shape = STRUCT_SHAPE("TransactGetItemsInput", members);

/* ---- the request ---- */

static bool understand_get(struct api_call *call, const struct node *node, struct get *get)
{
    struct expressions expressions = {
        .names = node_field(node, GET_NAMES),
        .projection_text = node_field(node, GET_PROJECTION),
    };
    if (!expressions_check(call, &expressions) || !expressions_parse(call, &expressions)) return false;
    get->projection = expressions.projection;
    return map_from_node(call, node_field(node, GET_KEY), &get->key);
}

/* An element that is null; what elements may be missing was checked before. */
static bool refuse_null(struct api_call *call, uint32_t index)
{
    return invalid(call,
                   "1 validation error detected: Value null at 'transactItems.%u.member' failed to satisfy "
                   "constraint: Member must not be null",
                   index + 1);
}

void transact_get_size(struct api_call *call, struct transact_get *transaction, uint32_t count)
{
    transaction->count = count;
    transaction->gets = arena_zero(call->arena, count * sizeof *transaction->gets);
    transaction->tables = arena_zero(call->arena, count * sizeof *transaction->tables);
}

/* The checks that need no table. */
static bool understand(struct api_call *call, const struct node *items, struct transact_get *transaction)
{
    transact_get_size(call, transaction, items->count);
    for (uint32_t i = 0; i < items->count; i++) {
        const struct node *node = node_field(&items->elements[i], ITEM_GET);
        struct get *get = &transaction->gets[i];
        if (!node->present) return refuse_null(call, i);
        if (!understand_get(call, node, get)) return false;
        get->place = place_table(transaction->tables, &transaction->table_count,
                                 node_field(node, GET_TABLE_NAME)->text);
    }
    return true;
}

bool get_is_repeated(const struct transact_get *transaction, uint32_t index)
{
    struct slice key = transaction->gets[index].item_key.bytes;
    for (uint32_t i = 0; key.len && i < index; i++)
        if (slice_equal(transaction->gets[i].item_key.bytes, key)) return true;
    return false;
}

bool transact_get_refuse_faults(struct api_call *call, const struct transact_get *transaction)
{
    struct reason *reasons = arena_array(call->arena, struct reason, transaction->count);
    for (uint32_t i = 0; i < transaction->count; i++) {
        struct slice fault = transaction->gets[i].fault;
        reasons[i] = (struct reason){fault.len ? "ValidationError" : "None", fault, SLICE_NONE};
    }
    return refuse_cancelled(call, reasons, transaction->count);
}

/* Keys against their tables' schemas: unlike other faults, theirs cancel the transaction. */
static bool fit(struct api_call *call, struct transact_get *transaction)
{
    bool any = false;
    if (!find_tables(call, transaction->tables, transaction->table_count)) return false;
    for (uint32_t i = 0; i < transaction->count; i++) {
        struct get *get = &transaction->gets[i];
        const struct table *table = transaction->tables[get->place].table;
        get->fault = key_of_map(call, table, &get->key, &get->item_key);
        any |= get->fault.len > 0;
        if (get_is_repeated(transaction, i)) return refuse_twice(call);
        if (!check_key_paths(call, table, NULL, NULL, get->projection)) return false;
    }
    return !any || transact_get_refuse_faults(call, transaction);
}

/* ---- on the writer's thread ---- */

static void apply(struct commit *commit, struct batch *batch)
{
    struct api_call *call = call_of_commit(commit);
    struct transact_get *transaction = call->state;
    transaction->table_is_gone = any_table_is_gone(batch, transaction->tables, transaction->table_count);
    for (uint32_t i = 0; !transaction->table_is_gone && i < transaction->count; i++) {
        struct get *get = &transaction->gets[i];
        if (!engine_read_in_batch(batch, call->arena, get->item_key.bytes, &get->image))
            get->image = SLICE_NONE;
    }
}

/* ---- the reply ---- */

/* An item of which the projection leaves nothing is left out like one that is missing. Adds what the service
 * counts of the reply. */
static bool put_response(struct api_call *call, const struct get *get, size_t *bytes)
{
    struct map item;
    bool has_item = get->image.len > 0;
    size_t size = has_item ? item_encoded_size(get->image) : 0;
    if (has_item && get->projection) {
        if (!item_decode(call->arena, get->image, &item)) return false;
        item = projection_apply(call->arena, get->projection, &item);
        has_item = item.count > 0;
        size = map_size(&item);
    }
    buf_byte(call->reply, '{');
    bool sound = true;
    if (has_item) {
        *bytes += size + RESPONSE_BYTES;
        buf_text(call->reply, "\"Item\":");
        if (get->projection)
            api_put_item_json(call->reply, &item);
        else
            sound = api_put_encoded_item_json(call->reply, get->image);
    }
    buf_byte(call->reply, '}');
    return sound;
}

static bool put_responses(struct api_call *call, const struct transact_get *transaction)
{
    size_t bytes = 0;
    buf_text(call->reply, "\"Responses\":[");
    for (uint32_t i = 0; i < transaction->count; i++) {
        if (i) buf_byte(call->reply, ',');
        if (!put_response(call, &transaction->gets[i], &bytes))
            return refuse(call, "InternalServerError", "Internal server error");
        if (bytes > LIMIT_TRANSACTION_BYTES)
            return invalid(call, "Payload in response is too large.%zu", bytes);
    }
    buf_byte(call->reply, ']');
    return true;
}

static double units_of(const struct get *get)
{
    size_t size = get->image.len ? item_encoded_size(get->image) : 0;
    return TRANSACTION_FACTOR * capacity_read(size, true);
}

static bool check_admission(struct api_call *call, const struct transact_get *transaction)
{
    uint32_t count = transaction->count;
    bool is_on = false;
    for (uint32_t i = 0; i < transaction->table_count; i++)
        is_on |= throttle_is_on(call->api, transaction->tables[i].table);
    if (!is_on) return true;
    struct throttle_demand *demands = arena_array(call->arena, struct throttle_demand, count);
    struct reason *reasons = arena_array(call->arena, struct reason, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct get *get = &transaction->gets[i];
        demands[i] = throttle_read(transaction->tables[get->place].table, NULL, get->item_key.bytes,
                                   units_of(get), 0);
    }
    if (throttle_admit(call->api, demands, count)) return true;
    for (uint32_t i = 0; i < count; i++) reasons[i] = throttle_reason(&demands[i]);
    return refuse_cancelled(call, reasons, count);
}

static void put_capacities(struct buf *out, const struct transact_get *transaction)
{
    if (!capacity_wanted(transaction->return_capacity)) return;
    buf_text(out, ",\"ConsumedCapacity\":[");
    for (uint32_t place = 0; place < transaction->table_count; place++) {
        struct capacity capacity = {.axis = AXIS_READ};
        for (uint32_t i = 0; i < transaction->count; i++) {
            const struct get *get = &transaction->gets[i];
            if (get->place == place) capacity.table += units_of(get);
        }
        if (place) buf_byte(out, ',');
        capacity_put(out, transaction->return_capacity, transaction->tables[place].name,
                     transaction->tables[place].table, &capacity);
    }
    buf_byte(out, ']');
}

void transact_get_finish(struct api_call *call)
{
    const struct transact_get *transaction = call->state;
    if (transaction->table_is_gone) {
        refuse(call, "ResourceNotFoundException", "Requested resource not found");
        return;
    }
    if (!check_admission(call, transaction)) return;
    buf_byte(call->reply, '{');
    if (!put_responses(call, transaction)) return;
    put_capacities(call->reply, transaction);
    buf_byte(call->reply, '}');
}

void transact_get_submit(struct api_call *call, struct transact_get *transaction)
{
    call->state = transaction;
    call->commit.apply = apply;
    call->is_write = call->only_reads = true;
}

static void begin(struct api_call *call, const struct node *input)
{
    struct transact_get *transaction = arena_new(call->arena, struct transact_get);
    transaction->return_capacity = node_member(input, TRANSACT_RETURN_CAPACITY);
    if (!understand(call, node_member(input, TRANSACT_ITEMS), transaction) || !fit(call, transaction)) return;
    transact_get_submit(call, transaction);
}

const struct operation operation_TransactGetItems = {SLICE("TransactGetItems"), &shape, begin,
                                                     transact_get_finish};
