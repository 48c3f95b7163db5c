/* Dead letters: the document that tells of a failed call, and the call itself, so that it can be sent again.
 *
 * The call is kept as attributes of the letter, beside those that every message has (queues.c):
 *   function, cause, failure  (S)  as a call has them (queue_item.c)
 *   payload                   (S)  where it is not the document's own requestPayload
 * Some calls are kept in the table of calls instead: those that do not fit into the letter's item, and those
 * whose target holds a secret, which whoever reads a queue need not see. Such a letter has
 *   held                      (N)  the number of those items
 * They have the id letter/QUEUE/ID and the parts 1, 2, ..., each with its piece of the payload; the first has
 * function, cause and failure. There is no part 0, so no server takes them for a call that is to run.
 *
 * Invariants:
 *  Z1. A letter and what it holds are children of the commit that tells of the call's end; what it holds is written
 *      first, and removed after the letter.
 *  Z2. A letter that is redriven is removed by the commit whose child is its call, on the condition that it is there.
 *      The call's id follows from the letter, so it is redriven once, whoever else tries, and is never lost: where
 *      there are no transactions, and the letter stays or comes again, that call has left a tombstone. */
#include "func/letter.h"

#include "base/attribute.h"
#include "base/compose.h"
#include "base/hash.h"
#include "base/limits.h"
#include "func/queue.h"
#include "func/target.h"

#define NAMES_BYTES (8 + 5 + 7 + 7) /* function, cause, failure, payload, in the item's size */
#define HELD_BYTES  8               /* the attribute `held`, name and value, at the most */

static struct slice held_id(struct arena *arena, struct slice queue, struct slice id)
{
    return arena_printf(arena, "letter/%.*s/%.*s", SLICE_ARG(queue), SLICE_ARG(id));
}

/* ---- writing ---- */

/* Attributes, with a comma before each. */
static struct slice call_attributes(struct arena *arena, const struct func_call *call, bool with_payload)
{
    struct buf out = {0};
    compose(&out, ",'function':%S", call->function);
    if (call->cause.len) compose(&out, ",'cause':%S", call->cause);
    if (call->on_failure.len) compose(&out, ",'failure':%S", call->on_failure);
    if (with_payload) compose(&out, ",'payload':%S", call->payload);
    return arena_take(arena, &out);
}

/* The items of a call that the letter does not keep itself, with a comma behind each. */
static unsigned put_held(struct func *func, struct slice name, const struct func_call *call,
                         struct arena *arena, struct buf *members)
{
    unsigned part = 0;
    if (!queue_table_make(func->queue)) return 0;
    struct slice rest = call->payload, attributes = call_attributes(arena, call, false);
    do {
        size_t len = queue_part_len(rest);
        compose(members, "{'Put':{'TableName':%s,'Item':{'id':%S,'part':%N,'payload':%S%A}}},",
                func->queue->table, name, (int64_t)++part, (struct slice){rest.data, len}, attributes);
        rest = slice_from(rest, len);
        attributes = SLICE_NONE;
    } while (rest.len);
    return part;
}

unsigned letter_put(struct func *func, struct slice queue, struct slice id, struct slice document,
                    const struct func_call *call, int64_t now_ms, struct buf *members)
{
    struct arena arena = {0};
    struct queues_message message = {queue, id, document, SLICE_NONE, 0, now_ms};
    struct slice table = queues_table(func, &arena);
    size_t start = members->len;
    unsigned held = 0;
    bool is_put = false, is_sendable = call && call->function.len &&
                                       call->payload.len <= LIMIT_ASYNC_EVENT_BYTES &&
                                       utf8_valid(call->payload) && utf8_valid(call->function);
    if (is_sendable) {
        struct func_call own = *call;
        if (!own.payload.len) own.payload = SLICE("{}");
        bool has_payload = slice_equal(raw_member(&arena, document, "requestPayload"), own.payload);
        message.more = call_attributes(&arena, &own, !has_payload);
        message.more_bytes = NAMES_BYTES + own.function.len + own.cause.len + own.on_failure.len +
                             (has_payload ? 0 : own.payload.len);
        is_put = !target_has_secret(own.function, &arena) && queues_put(table, &message, members);
        if (!is_put) held = put_held(func, held_id(&arena, queue, id), &own, &arena, members);
        message.more = held ? compose_in(&arena, ",'held':%N", (int64_t)held) : SLICE_NONE;
        message.more_bytes = HELD_BYTES;
    }
    is_put = is_put || queues_put(table, &message, members);
    if (!is_put) members->len = start;
    arena_free(&arena);
    return is_put ? held + 1 : 0;
}

/* ---- reading ---- */

/* Why a message without a call has none. */
static const char *fault_without_call(struct slice body, struct arena *arena)
{
    struct slice context = raw_member(arena, body, "requestContext"),
                 condition = raw_string(arena, raw_member(arena, context, "condition"));
    if (raw_member(arena, body, "DDBStreamBatchInfo").data)
        return "it names records of a stream and does not hold them: read them from the shard and the "
               "sequence numbers that it names, and call the function with them";
    if (slice_equal(condition, SLICE("BadReaction")))
        return "its then cannot be carried out: correct it where it was set, and do again what led to it";
    if (slice_equal(condition, SLICE("Success"))) return "its call did not fail";
    return "it holds no failed call";
}

static void read_call(struct slice item, struct arena *arena, struct func_call *out)
{
    out->function = item_text(arena, item, "function");
    out->cause = item_text(arena, item, "cause");
    out->on_failure = item_text(arena, item, "failure");
    out->payload = item_text(arena, item, "payload");
}

static bool read_held(struct func *func, struct arena *arena, struct letter *letter, bool *unreadable)
{
    struct slice name = held_id(arena, letter->queue, letter->id);
    struct buf payload = {0};
    bool fine = true;
    for (unsigned part = 1; fine && part <= letter->held; part++) {
        struct dynamo_reply reply = dynamo_ask(
            func->options.dynamo, arena, "GetItem",
            compose_in(arena, "{'TableName':%s,'ConsistentRead':true,'Key':{'id':%S,'part':%N}}",
                       func->queue->table, name, (int64_t)part));
        *unreadable |= reply.status != 200;
        struct slice item = raw_member(arena, reply.body, "Item");
        fine = !*unreadable && item.data;
        if (fine && part == 1) read_call(item, arena, &letter->call);
        if (fine) buf_slice(&payload, item_text(arena, item, "payload"));
    }
    letter->call.payload = arena_take(arena, &payload);
    return fine && letter->call.function.len;
}

const char *letter_read(struct func *func, struct slice item, struct arena *arena, struct letter *out,
                        bool *unreadable)
{
    struct slice body = item_text(arena, item, "body");
    int64_t held = item_int(arena, item, "held", 0);
    *unreadable = false;
    *out = (struct letter){.queue = item_text(arena, item, "queue"),
                           .id = item_text(arena, item, "id"),
                           .sent = item_text(arena, item, "sent")};
    if (held < 0 || held > QUEUE_PARTS + 1) held = 0;
    out->held = (unsigned)held;
    out->is_batch = raw_member(arena, body, "DDBStreamBatchInfo").data != NULL;
    if (held) {
        if (read_held(func, arena, out, unreadable)) return NULL;
        return *unreadable ? "its call cannot be read now" : "the call that it held is gone";
    }
    read_call(item, arena, &out->call);
    if (!out->call.function.len) return fault_without_call(body, arena);
    if (!out->call.payload.data) out->call.payload = raw_member(arena, body, "requestPayload");
    return out->call.payload.data ? NULL : "the payload of its call is gone";
}

/* ---- redriving ---- */

void letter_call_id(const struct letter *letter, char id[UUID_BYTES])
{
    struct arena arena = {0};
    struct slice name = held_id(&arena, letter->queue, letter->id);
    uuid_put(id, hash_bytes(name), hash_bytes(slice_from(name, 1)));
    arena_free(&arena);
}

struct slice letter_removal(const struct func *func, const struct letter *letter, struct arena *arena,
                            struct slice *removals)
{
    struct buf out = {0};
    struct slice name = held_id(arena, letter->queue, letter->id);
    for (unsigned part = 1; part <= letter->held; part++)
        compose(&out, "%r{'Delete':{'TableName':%s,'Key':{'id':%S,'part':%N}}}",
                part > 1 ? SLICE(",") : SLICE_NONE, func->queue->table, name, (int64_t)part);
    *removals = arena_take(arena, &out);
    return compose_in(arena,
                      "{'Delete':{'TableName':%s,'Key':{'queue':%S,'id':%S},'ConditionExpression':"
                      "'attribute_exists(#id)',%#}}",
                      queues_table(func, arena), letter->queue, letter->id);
}
