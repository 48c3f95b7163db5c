/* What a flow would cost on AWS: the capacity that its calls consumed, and its price on demand. It is told as
 * member "cost" of the answer, or by the header Quipu-Cost where the answer is somebody's own document or
 * text. */
#include <stdlib.h>

#include "pattern/flow.h"

/* Dollars per million units on demand, us-east-1, standard table class. */
#define DOLLARS_WRITE 0.625
#define DOLLARS_READ  0.125

#define WRITE_UNIT_BYTES 1024

static bool is_read(struct slice operation)
{
    return slice_equal(operation, SLICE("GetItem")) || slice_equal(operation, SLICE("Query")) ||
           slice_equal(operation, SLICE("Scan")) || slice_equal(operation, SLICE("BatchGetItem")) ||
           slice_equal(operation, SLICE("TransactGetItems"));
}

static bool is_of_items(struct slice operation)
{
    return is_read(operation) || slice_equal(operation, SLICE("PutItem")) ||
           slice_equal(operation, SLICE("UpdateItem")) || slice_equal(operation, SLICE("DeleteItem")) ||
           slice_equal(operation, SLICE("BatchWriteItem")) ||
           slice_equal(operation, SLICE("TransactWriteItems"));
}

struct slice cost_ask(struct flow *flow, struct slice call)
{
    if (!flow->tells_cost || !is_of_items(flow->operation)) return arena_copy(flow->arena, call);
    return arena_printf(flow->arena, "%.*s,\"ReturnConsumedCapacity\":\"TOTAL\"}", (int)call.len - 1,
                        call.data);
}

static double units_of(struct flow *flow, struct slice consumed)
{
    struct slice units = raw_text(flow->arena, raw_member(flow->arena, consumed, "CapacityUnits"));
    double value = 0;
    char text[32];
    if (units.len && units.len < sizeof text) {
        memcpy(text, units.data, units.len);
        text[units.len] = '\0';
        value = strtod(text, NULL);
    }
    return value;
}

static double write_units(uint64_t bytes)
{
    return bytes <= WRITE_UNIT_BYTES ? 1 : (double)((bytes + WRITE_UNIT_BYTES - 1) / WRITE_UNIT_BYTES);
}

/* The service charges a failed condition by the item's size, without saying so in the reply. */
static double refused_units(struct flow *flow)
{
    struct raw_walk walk;
    struct slice reason;
    double units = 0;
    raw_walk_begin(&walk, flow->arena, raw_member(flow->arena, flow->reply.body, "CancellationReasons"));
    while (raw_walk_next(&walk, NULL, &reason))
        units += 2 * write_units(item_bytes(flow->arena, raw_member(flow->arena, reason, "Item")));
    if (units > 0) return units;
    return write_units(item_bytes(flow->arena, raw_member(flow->arena, flow->reply.body, "Item")));
}

void cost_count(struct flow *flow)
{
    flow->calls++;
    if (!flow->tells_cost || !is_of_items(flow->operation)) return;
    struct slice consumed = raw_member(flow->arena, flow->reply.body, "ConsumedCapacity"), part;
    double units = 0;
    struct raw_walk walk;
    if (flow->reply.status == 400 && slice_contains(flow->reply.error, SLICE("ResourceNotFound"))) return;
    if (flow->reply.status != 200) {
        units = refused_units(flow);
    } else if (raw_kind(consumed) == JSON_ARRAY) {
        raw_walk_begin(&walk, flow->arena, consumed);
        while (raw_walk_next(&walk, NULL, &part)) units += units_of(flow, part);
    } else {
        units = units_of(flow, consumed);
    }
    *(is_read(flow->operation) ? &flow->read_units : &flow->write_units) += units;
}

static void put_cost(struct flow *flow, struct buf *out)
{
    buf_text(out, "{\"writeUnits\":");
    json_put_double(out, flow->write_units);
    buf_text(out, ",\"readUnits\":");
    json_put_double(out, flow->read_units);
    buf_text(out, ",\"calls\":");
    json_put_int(out, (int64_t)flow->calls);
    buf_text(out, ",\"dollarsPerMillion\":");
    json_put_double(out, flow->write_units * DOLLARS_WRITE + flow->read_units * DOLLARS_READ);
    buf_byte(out, '}');
}

/* True when the answer is an object of ours, which can take one more member. */
static bool takes_member(const struct flow *flow)
{
    const struct buf *body = flow->body;
    if (flow->is_bare || flow->content_type.len || body->len < flow->body_start + 2) return false;
    return body->data[flow->body_start] == '{' && body->data[body->len - 1] == '}';
}

void cost_tell(struct flow *flow)
{
    struct buf header = {0};
    if (!flow->tells_cost) return;
    if (takes_member(flow)) {
        bool is_empty = flow->body->len == flow->body_start + 2;
        flow->body->len--;
        buf_slice(flow->body, is_empty ? SLICE("\"cost\":") : SLICE(",\"cost\":"));
        put_cost(flow, flow->body);
        buf_byte(flow->body, '}');
        return;
    }
    put_cost(flow, &header);
    flow->cost = arena_copy(flow->arena, buf_view(&header));
    buf_free(&header);
}
