/* BatchWriteItem. All of its writes go into one commit; only throttling leaves some unprocessed. */
#include "api/throttle.h"
#include "base/fail.h"

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

struct batch_write {
    struct many_writes many;
    bool table_is_gone;
};

/* ---- the request ---- */

/* The map of a PutRequest's Item or a DeleteRequest's Key. */
static bool take_request(struct api_call *call, const struct node *request, struct placed_write *item)
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

/* The checks that need no table, in the service's order. A table's place is that in RequestItems. */
static bool understand(struct api_call *call, const struct node *items, struct many_writes *many)
{
    uint32_t total = 0;
    if (items->count == 0) return invalid(call, "The requestItems parameter is required for BatchWriteItem");
    for (uint32_t i = 0; i < items->count; i++) total += items->entries[i].node.count;
    if (total > LIMIT_BATCH_WRITE_REQUESTS)
        return invalid(call, "Too many items requested for the BatchWriteItem call");
    many->writes = arena_zero(call->arena, total * sizeof *many->writes);
    many->tables = arena_zero(call->arena, items->count * sizeof *many->tables);
    many->table_count = items->count;
    for (uint32_t i = 0; i < items->count; i++) {
        const struct node *requests = &items->entries[i].node;
        many->tables[i].name = items->entries[i].key;
        if (!check_choices(call, items->entries[i].key, requests)) return false;
        for (uint32_t j = 0; j < requests->count; j++) {
            struct placed_write *item = &many->writes[many->count++];
            item->place = i;
            if (!take_request(call, &requests->elements[j], item)) return false;
        }
    }
    return true;
}

/* Keys against their tables' schemas; no key may be written twice. */
static bool fit(struct api_call *call, struct many_writes *many)
{
    for (uint32_t i = 0; i < many->count; i++) {
        struct placed_write *item = &many->writes[i];
        const struct table *table = item->write.table = many->tables[item->place].table;
        bool sound = item->write.kind == WRITE_PUT
                         ? key_from_item(call, table, &item->write.item, true, &item->key)
                         : key_from_map(call, table, &item->write.item, &item->key);
        if (!sound) return false;
        item->write.key = item->key.bytes;
        for (uint32_t j = 0; j < i; j++)
            if (slice_equal(many->writes[j].write.key, item->write.key))
                return invalid(call, "Provided list of item keys contains duplicates");
    }
    return true;
}

/* ---- on the writer's thread ---- */

static void apply(struct commit *commit, struct batch *writer)
{
    struct api_call *call = call_of_commit(commit);
    struct batch_write *batch = call->state;
    struct many_writes *many = &batch->many;
    batch->table_is_gone = any_table_is_gone(writer, many->tables, many->table_count);
    for (uint32_t i = 0; !batch->table_is_gone && i < many->count; i++) {
        engine_write_check(writer, &many->writes[i].write);
        if (many->writes[i].write.outcome != WRITE_APPLIED) return;
    }
    for (uint32_t i = 0; !batch->table_is_gone && i < many->count; i++) {
        struct placed_write *placed = &many->writes[i];
        if (throttle_is_on(call->api, placed->write.table))
            placed->throttled = throttle_refusal(call, throttle_write(call, &placed->write, false));
        if (!placed->throttled) engine_write_keep(writer, &placed->write);
    }
}

/* ---- the reply ---- */

/* A request without conditions can fail only for what its items, with their entries in indexes, weigh. */
static bool check_outcomes(struct api_call *call, const struct batch_write *batch)
{
    if (batch->table_is_gone)
        return refuse(call, "ResourceNotFoundException", "Requested resource not found");
    for (uint32_t i = 0; i < batch->many.count; i++) {
        const struct write *write = &batch->many.writes[i].write;
        if (write->outcome == WRITE_INVALID) return invalid_text(call, write->fault);
        if (write->outcome == WRITE_COLLECTION_FULL) return refuse_full_collection(call);
        if (write->outcome == WRITE_VECTORS_FULL) return refuse(call, "LimitExceededException", NO_VECTOR_MEMORY);
        ensure(write->outcome == WRITE_APPLIED);
    }
    return true;
}

static uint32_t count_throttled(const struct many_writes *many)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < many->count; i++) count += many->writes[i].throttled != NULL;
    return count;
}

/* What throttling left over of one table, so that it can be sent again as it stands. */
static void put_rest(struct buf *out, const struct many_writes *many, uint32_t place, bool *any)
{
    bool begun = false;
    for (uint32_t i = 0; i < many->count; i++) {
        const struct placed_write *placed = &many->writes[i];
        if (placed->place != place || !placed->throttled) continue;
        if (begun || *any) buf_byte(out, ',');
        if (!begun) {
            json_put_string(out, many->tables[place].name);
            buf_text(out, ":[");
        }
        begun = *any = true;
        buf_slice(out, placed->write.kind == WRITE_PUT ? SLICE("{\"PutRequest\":{\"Item\":")
                                                       : SLICE("{\"DeleteRequest\":{\"Key\":"));
        api_put_item_json(out, &placed->write.item);
        buf_text(out, "}}");
    }
    if (begun) buf_byte(out, ']');
}

static void finish(struct api_call *call)
{
    const struct batch_write *batch = call->state;
    const struct many_writes *many = &batch->many;
    bool any = false;
    if (!check_outcomes(call, batch)) return;
    if (count_throttled(many) == many->count) {
        refuse_throttled(call, many->writes[0].throttled);
        return;
    }
    buf_text(call->reply, "{\"UnprocessedItems\":{");
    for (uint32_t i = 0; i < many->table_count; i++) put_rest(call->reply, many, i, &any);
    buf_byte(call->reply, '}');
    put_many_capacities(call, &batch->many, AXIS_NONE);
    put_many_metrics(call, &batch->many);
    buf_byte(call->reply, '}');
}

static void begin(struct api_call *call, const struct node *input)
{
    struct batch_write *batch = arena_new(call->arena, struct batch_write);
    struct many_writes *many = &batch->many;
    many->return_capacity = node_member(input, BATCH_RETURN_CAPACITY);
    many->return_metrics = node_member(input, BATCH_RETURN_METRICS);
    if (!understand(call, node_member(input, BATCH_ITEMS), many)) return;
    if (!find_tables(call, many->tables, many->table_count) || !fit(call, many)) return;
    call->state = batch;
    call->commit.apply = apply;
    call->is_write = true;
}

const struct operation operation_BatchWriteItem = {SLICE("BatchWriteItem"), &shape, begin, finish};
