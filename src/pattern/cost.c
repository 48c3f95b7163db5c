/* What a flow would cost on AWS: the capacity that its calls consumed, and its price on demand. It is told as
 * member "cost" of the answer, or by the header Quipu-Cost where the answer is somebody's own document or
 * text. What reads the stream of a table, or ends items by their time to live, is no call of a flow:
 * doc/scale.md reckons with it. Tables are made on first use and for nothing; the calls for that are not
 * counted. */
#include <stdlib.h>

#include "pattern/flow.h"
#include "pattern/pattern.h"

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

struct slice cost_ask(struct flow *flow, struct slice operation, struct slice call)
{
    if (!flow->tells_cost || !is_of_items(operation)) return arena_copy(flow->arena, call);
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

/* Of what a write found and of what it would have put, the larger counts. */
static double refused_write(struct flow *flow, struct slice found, struct slice put)
{
    uint64_t found_bytes = item_bytes(flow->arena, found), put_bytes = item_bytes(flow->arena, put);
    return write_units(found_bytes > put_bytes ? found_bytes : put_bytes);
}

/* A cancelled transaction is counted as if it had been done, without its index entries: the service has
 * prepared it, and tells nothing of what that took. */
static double cancelled_units(struct flow *flow)
{
    struct raw_look reasons, actions;
    struct slice reason, action;
    double units = 0;
    raw_look_begin(&reasons, flow->arena, raw_member(flow->arena, flow->reply.body, "CancellationReasons"));
    raw_look_begin(&actions, flow->arena, raw_member(flow->arena, flow->call, "TransactItems"));
    while (raw_look_next(&reasons, NULL, &reason) && raw_look_next(&actions, NULL, &action)) {
        struct slice put = raw_member(flow->arena, action, "Put");
        units += 2 * refused_write(flow, raw_member(flow->arena, reason, "Item"),
                                   raw_member(flow->arena, put, "Item"));
    }
    return units;
}

/* A failed condition is charged by the items' size, which the reply does not say; what was throttled, or
 * refused as nonsense, costs nothing. */
static double refused_units(struct flow *flow)
{
    if (slice_equal(flow->reply.error, SLICE("TransactionCanceledException"))) return cancelled_units(flow);
    if (!slice_equal(flow->reply.error, SLICE("ConditionalCheckFailedException"))) return 0;
    return refused_write(flow, raw_member(flow->arena, flow->reply.body, "Item"),
                         raw_member(flow->arena, flow->call, "Item"));
}

void cost_count(struct flow *flow)
{
    if (!flow->tells_cost || !is_of_items(flow->operation)) return;
    if (slice_equal(flow->reply.error, SLICE("ResourceNotFoundException"))) return;
    flow->calls++;
    struct slice consumed = raw_member(flow->arena, flow->reply.body, "ConsumedCapacity"), part;
    double units = 0;
    if (flow->reply.status != 200) {
        units = refused_units(flow);
    } else if (raw_kind(consumed) == JSON_ARRAY) {
        raw_each (flow->arena, consumed, &part) units += units_of(flow, part);
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
    json_put_double(out, flow->write_units * PRICE_WRITES + flow->read_units * PRICE_READS);
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
    flow->cost = arena_take(flow->arena, &header);
}
