/* What a flow would cost on AWS: the capacity that its calls consumed, and its price on demand. It is told as
 * member "cost" of the answer, or by the header Quipu-Cost where the answer is somebody's own document or
 * text. What reads the stream of a table, or ends items by their time to live, is no call of a flow:
 * doc/scale.md reckons with it. Tables are made on first use and for nothing; the calls for that are not
 * counted. */
#include <stdlib.h>

#include "pattern/flow.h"
#include "pattern/pattern.h"

#define WRITE_UNIT_BYTES 1024

/* Those that read come first. */
static const char *const item_operations[] = {"GetItem", "Query",      "Scan",       "BatchGetItem",
                                              "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"};
#define READS      4
#define OPERATIONS (sizeof item_operations / sizeof *item_operations)

static bool is_among(struct slice operation, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(operation, slice_of(item_operations[i]))) return true;
    return false;
}

struct slice cost_ask(struct flow *flow, struct slice operation, struct slice call)
{
    if (!flow->tells_cost || !is_among(operation, OPERATIONS)) return arena_copy(flow->arena, call);
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

/* A failed condition is charged by the size of what the write found or would have put, the larger of them; what was
 * throttled, or refused as nonsense, costs nothing. */
static double refused_units(struct flow *flow)
{
    uint64_t found = item_bytes(flow->arena, raw_member(flow->arena, flow->reply.body, "Item"));
    uint64_t put = item_bytes(flow->arena, raw_member(flow->arena, flow->call, "Item"));
    if (!slice_equal(flow->reply.error, SLICE("ConditionalCheckFailedException"))) return 0;
    return write_units(found > put ? found : put);
}

void cost_count(struct flow *flow)
{
    if (!flow->tells_cost || !is_among(flow->operation, OPERATIONS)) return;
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
    *(is_among(flow->operation, READS) ? &flow->read_units : &flow->write_units) += units;
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
