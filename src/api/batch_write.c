/* BatchWriteItem. All of its writes go into one commit; none is ever left unprocessed. */
#include "api/items.h"

enum { PUT_REQUEST_ITEM };
static const struct shape_member put_members[] = {
    [PUT_REQUEST_ITEM] = REQUIRED("Item", shape_value_map),
};
static const struct shape shape_put_request = STRUCT_SHAPE("PutRequest", put_members);

enum { DELETE_REQUEST_KEY };
static const struct shape_member delete_members[] = {
    [DELETE_REQUEST_KEY] = REQUIRED("Key", shape_value_map),
};
static const struct shape shape_delete_request = STRUCT_SHAPE("DeleteRequest", delete_members);

enum { WRITE_REQUEST_DELETE, WRITE_REQUEST_PUT };
static const struct shape_member write_members[] = {
    [WRITE_REQUEST_DELETE] = MEMBER("DeleteRequest", shape_delete_request),
    [WRITE_REQUEST_PUT] = MEMBER("PutRequest", shape_put_request),
};
static const struct shape shape_write_request = STRUCT_SHAPE("WriteRequest", write_members);
static const struct shape shape_write_requests = LIST_SHAPE_SIZED(shape_write_request, 1,
                                                                  LIMIT_BATCH_WRITE_REQUESTS);
static const struct shape shape_request_items = {
    .kind = SHAPE_MAP, .of = &shape_write_requests, .key = &shape_table_key};

enum { BATCH_RETURN_CAPACITY, BATCH_RETURN_METRICS, BATCH_ITEMS };
static const struct shape_member members[] = {
    [BATCH_RETURN_CAPACITY] = MEMBER("ReturnConsumedCapacity", shape_return_capacity),
    [BATCH_RETURN_METRICS] = MEMBER("ReturnItemCollectionMetrics", shape_return_metrics),
    [BATCH_ITEMS] = REQUIRED("RequestItems", shape_request_items),
};
static const struct shape shape = STRUCT_SHAPE("BatchWriteItemInput", members);

struct batch_item {
    struct write write;
    struct item_key key;
    uint32_t part; /* of which table */
};

struct batch_write {
    struct batch_item items[LIMIT_BATCH_WRITE_REQUESTS];
    uint32_t count;
    const struct node *request; /* RequestItems: a table's place in it is its part */
    struct table **tables;      /* by part */
    const struct node *return_capacity, *return_metrics;
    bool table_is_gone;
};

/* ---- the request ---- */

/* The map of a PutRequest's Item or a DeleteRequest's Key. */
static bool take_request(struct api_call *call, const struct node *request, struct batch_item *item)
{
    const struct node *put = node_field(request, WRITE_REQUEST_PUT);
    const struct node *delete = node_field(request, WRITE_REQUEST_DELETE);
    item->write.kind = put->present ? WRITE_PUT : WRITE_DELETE;
    item->write.arena = call->arena;
    if (!put->present) return map_from_node(call, node_field(delete, DELETE_REQUEST_KEY), &item->write.item);
    return map_from_node(call, node_field(put, PUT_REQUEST_ITEM), &item->write.item) &&
           encode_put(call, &item->write);
}

/* A request must put or delete; the service says so in the words it has for values. */
static bool check_choices(struct api_call *call, struct slice table, const struct node *requests)
{
    if (!requests->present)
        return invalid(call, "The batch write request list for a table cannot be null or empty: %.*s",
                       SLICE_ARG(table));
    for (uint32_t i = 0; i < requests->count; i++) {
        const struct node *request = &requests->elements[i];
        if (node_field(request, WRITE_REQUEST_PUT)->present ==
            node_field(request, WRITE_REQUEST_DELETE)->present)
            return invalid(call,
                           "Supplied AttributeValue has more than one datatypes set, must contain exactly "
                           "one of the supported datatypes");
    }
    return true;
}

/* The checks that need no table, in the service's order. */
static bool understand(struct api_call *call, const struct node *items, struct batch_write *batch)
{
    uint32_t total = 0;
    if (items->count == 0) return invalid(call, "The requestItems parameter is required for BatchWriteItem");
    for (uint32_t i = 0; i < items->count; i++) total += items->entries[i].node.count;
    if (total > LIMIT_BATCH_WRITE_REQUESTS)
        return invalid(call, "Too many items requested for the BatchWriteItem call");
    for (uint32_t i = 0; i < items->count; i++) {
        const struct node *requests = &items->entries[i].node;
        if (!check_choices(call, items->entries[i].key, requests)) return false;
        for (uint32_t j = 0; j < requests->count; j++) {
            struct batch_item *item = &batch->items[batch->count++];
            item->part = i;
            if (!take_request(call, &requests->elements[j], item)) return false;
        }
    }
    return true;
}

static bool find_tables(struct api_call *call, struct batch_write *batch)
{
    batch->tables = arena_array(call->arena, struct table *, batch->request->count);
    for (uint32_t i = 0; i < batch->request->count; i++) {
        struct node name_node = {
            .shape = &shape_table_name, .present = true, .text = batch->request->entries[i].key};
        struct slice name;
        if (!table_name_resolve(call, &name_node, &name)) return false;
        batch->tables[i] = find_table(call, name);
        if (!batch->tables[i]) return false;
    }
    return true;
}

/* Keys against their tables' schemas; no key may be written twice. */
static bool fit(struct api_call *call, struct batch_write *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        struct batch_item *item = &batch->items[i];
        const struct table *table = item->write.table = batch->tables[item->part];
        bool sound = item->write.kind == WRITE_PUT
                         ? key_from_item(call, table, &item->write.item, true, &item->key)
                         : key_from_map(call, table, &item->write.item, &item->key);
        if (!sound) return false;
        item->write.key = item->key.bytes;
        for (uint32_t j = 0; j < i; j++)
            if (slice_equal(batch->items[j].write.key, item->write.key))
                return invalid(call, "Provided list of item keys contains duplicates");
    }
    return true;
}

/* ---- on the writer's thread ---- */

static void apply(struct commit *commit, struct batch *writer)
{
    struct api_call *call = (struct api_call *)((char *)commit - offsetof(struct api_call, commit));
    struct batch_write *batch = call->state;
    for (uint32_t i = 0; i < batch->request->count; i++) {
        const struct table *now = engine_table_in_batch(writer, batch->tables[i]->definition.name);
        batch->table_is_gone |= !now || now->number != batch->tables[i]->number;
    }
    for (uint32_t i = 0; !batch->table_is_gone && i < batch->count; i++)
        engine_write(writer, &batch->items[i].write, true);
}

/* ---- the reply ---- */

static void put_capacities(struct api_call *call, const struct batch_write *batch)
{
    if (!capacity_wanted(batch->return_capacity)) return;
    buf_text(call->reply, ",\"ConsumedCapacity\":[");
    for (uint32_t part = 0; part < batch->request->count; part++) {
        struct capacity capacity = {0};
        for (uint32_t i = 0; i < batch->count; i++)
            if (batch->items[i].part == part) capacity_add_write(call, &capacity, &batch->items[i].write);
        if (part) buf_byte(call->reply, ',');
        capacity_put(call->reply, batch->return_capacity, batch->request->entries[part].key,
                     batch->tables[part], &capacity);
    }
    buf_byte(call->reply, ']');
}

/* One entry for each item collection of the table that was written to. */
static void put_table_metrics(struct buf *out, const struct batch_write *batch, uint32_t part)
{
    bool any = false;
    json_put_string(out, batch->request->entries[part].key);
    buf_text(out, ":[");
    for (uint32_t i = 0; i < batch->count; i++) {
        bool seen = batch->items[i].part != part;
        for (uint32_t j = 0; !seen && j < i; j++)
            seen = batch->items[j].part == part &&
                   value_equal(batch->items[j].key.hash, batch->items[i].key.hash);
        if (seen) continue;
        if (any) buf_byte(out, ',');
        any = true;
        metrics_put(out, batch->tables[part], batch->items[i].key.hash);
    }
    buf_byte(out, ']');
}

static void put_metrics(struct buf *out, const struct batch_write *batch)
{
    bool any = false;
    for (uint32_t part = 0; part < batch->request->count; part++) {
        if (!metrics_wanted(batch->return_metrics, batch->tables[part])) continue;
        if (any)
            buf_byte(out, ',');
        else
            buf_text(out, ",\"ItemCollectionMetrics\":{");
        any = true;
        put_table_metrics(out, batch, part);
    }
    if (any) buf_byte(out, '}');
}

static void finish(struct api_call *call)
{
    const struct batch_write *batch = call->state;
    if (batch->table_is_gone) {
        refuse(call, "ResourceNotFoundException", "Requested resource not found");
        return;
    }
    buf_text(call->reply, "{\"UnprocessedItems\":{}");
    put_capacities(call, batch);
    put_metrics(call->reply, batch);
    buf_byte(call->reply, '}');
}

static void begin(struct api_call *call, const struct node *input)
{
    struct batch_write *batch = arena_new(call->arena, struct batch_write);
    batch->request = node_member(input, BATCH_ITEMS);
    batch->return_capacity = node_member(input, BATCH_RETURN_CAPACITY);
    batch->return_metrics = node_member(input, BATCH_RETURN_METRICS);
    if (!understand(call, batch->request, batch) || !find_tables(call, batch) || !fit(call, batch)) return;
    call->state = batch;
    call->commit.apply = apply;
    call->is_write = true;
}

const struct operation operation_BatchWriteItem = {SLICE("BatchWriteItem"), &shape, begin, finish};
