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
 *  Z1. A letter and what it holds are written by one transaction, and removed by one.
 *  Z2. A letter that is removed in order to be redriven is removed by the transaction that puts its call, on
 *      the condition that it is there: so it is redriven once, whoever else tries, and is never lost. */
#include "func/letter.h"

#include "base/limits.h"
#include "base/raw.h"
#include "func/queue.h"
#include "func/target.h"

#define NAMES_BYTES (8 + 5 + 7 + 7) /* function, cause, failure, payload, in the item's size */
#define HELD_BYTES  8               /* the attribute `held`, name and value, at the most */

/* ---- writing ---- */

static void put_attribute(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, ",\"%s\":{\"S\":", name);
    json_put_string(out, text);
    buf_byte(out, '}');
}

static void put_call(struct buf *out, const struct func_call *call)
{
    put_attribute(out, "function", call->function);
    if (call->cause.len) put_attribute(out, "cause", call->cause);
    if (call->on_failure.len) put_attribute(out, "failure", call->on_failure);
}

static struct slice held_id(struct arena *arena, struct slice queue, struct slice id)
{
    return arena_printf(arena, "letter/%.*s/%.*s", SLICE_ARG(queue), SLICE_ARG(id));
}

/* "id":{"S":...},"part":{"N":...} */
static void put_held_key(struct buf *out, struct slice id, unsigned part)
{
    buf_text(out, "\"id\":{\"S\":");
    json_put_string(out, id);
    buf_printf(out, "},\"part\":{\"N\":\"%u\"}", part);
}

/* The items of a call that the letter does not keep itself; a comma before each. */
static void put_held(struct func *func, struct slice queue, struct slice id, const struct func_call *call,
                     struct buf *members)
{
    struct arena arena = {0};
    struct slice name = held_id(&arena, queue, id), rest = call->payload;
    unsigned part = 1;
    do {
        size_t len = queue_part_len(rest);
        buf_text(members, ",{\"Put\":{\"TableName\":");
        json_put_string(members, func->queue->table);
        buf_text(members, ",\"Item\":{");
        put_held_key(members, name, part);
        put_attribute(members, "payload", (struct slice){rest.data, len});
        if (part == 1) put_call(members, call);
        buf_text(members, "}}}");
        rest = slice_from(rest, len);
        part++;
    } while (rest.len);
    arena_free(&arena);
}

/* Whether the document has the payload as it is; then it need not be there twice. */
static bool document_has(struct slice document, struct slice payload, struct arena *arena)
{
    return slice_equal(raw_member(arena, document, "requestPayload"), payload);
}

static bool is_sendable(const struct func_call *call)
{
    return call && call->function.len && call->payload.len <= LIMIT_ASYNC_EVENT_BYTES &&
           utf8_valid(call->payload) && utf8_valid(call->function);
}

/* The letter with its call in it; false when the item has no room for both. */
static bool put_whole(struct func *func, struct slice queue, struct slice id, struct slice document,
                      const struct func_call *call, int64_t now_ms, struct buf *members, struct arena *arena)
{
    struct buf more = {0};
    bool has_payload = document_has(document, call->payload, arena);
    size_t bytes = NAMES_BYTES + call->function.len + call->cause.len + call->on_failure.len, all = 0;
    put_call(&more, call);
    if (!has_payload) {
        put_attribute(&more, "payload", call->payload);
        bytes += call->payload.len;
    }
    bool fits = queues_put_more(func, queue, id, document, now_ms, buf_view(&more), bytes, members, &all);
    buf_free(&more);
    return fits;
}

unsigned letter_put(struct func *func, struct slice queue, struct slice id, struct slice document,
                    const struct func_call *call, int64_t now_ms, struct buf *members)
{
    struct arena arena = {0};
    size_t bytes = 0;
    unsigned count = 0;
    if (!is_sendable(call)) return queues_put(func, queue, id, document, now_ms, members, &bytes);
    struct func_call own = *call;
    if (!own.payload.len) own.payload = SLICE("{}");
    if (!target_has_secret(own.function, &arena) &&
        put_whole(func, queue, id, document, &own, now_ms, members, &arena)) {
        count = 1;
    } else {
        unsigned held = queue_table_make(func->queue) ? queue_part_count(own.payload) : 0;
        struct slice more = held ? arena_printf(&arena, ",\"held\":{\"N\":\"%u\"}", held) : SLICE_NONE;
        if (queues_put_more(func, queue, id, document, now_ms, more, HELD_BYTES, members, &bytes)) {
            if (held) put_held(func, queue, id, &own, members);
            count = 1 + held;
        }
    }
    arena_free(&arena);
    return count;
}

/* ---- reading ---- */

static struct slice attribute(struct arena *arena, struct slice item, const char *name)
{
    return raw_string(arena, raw_member(arena, raw_member(arena, item, name), "S"));
}

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
    out->function = attribute(arena, item, "function");
    out->cause = attribute(arena, item, "cause");
    out->on_failure = attribute(arena, item, "failure");
    out->payload = attribute(arena, item, "payload");
}

/* One of the items that a letter holds; SLICE_NONE when it is not there. */
static struct slice held_item(struct func *func, struct slice name, unsigned part, struct arena *arena,
                              bool *unreadable)
{
    struct buf request = {0}, reply = {0};
    buf_text(&request, "{\"TableName\":");
    json_put_string(&request, func->queue->table);
    buf_text(&request, ",\"ConsistentRead\":true,\"Key\":{");
    put_held_key(&request, name, part);
    buf_text(&request, "}}");
    int status = dynamo_call(func->options.dynamo, SLICE("GetItem"), buf_view(&request), &reply);
    if (status != 200) *unreadable = true;
    struct slice item = status == 200 ? raw_member(arena, buf_view(&reply), "Item") : SLICE_NONE;
    item = item.data ? arena_copy(arena, item) : SLICE_NONE;
    buf_free(&request);
    buf_free(&reply);
    return item;
}

static bool read_held(struct func *func, struct arena *arena, struct letter *letter, bool *unreadable)
{
    struct slice name = held_id(arena, letter->queue, letter->id);
    struct buf payload = {0};
    bool fine = letter->held <= QUEUE_PARTS + 1;
    for (unsigned part = 1; fine && part <= letter->held; part++) {
        struct slice item = held_item(func, name, part, arena, unreadable);
        if (part == 1) read_call(item, arena, &letter->call);
        fine = item.data != NULL;
        buf_slice(&payload, attribute(arena, item, "payload"));
    }
    letter->call.payload = arena_copy(arena, buf_view(&payload));
    buf_free(&payload);
    return fine && letter->call.function.len;
}

const char *letter_read(struct func *func, struct slice item, struct arena *arena, struct letter *out,
                        bool *unreadable)
{
    int64_t held = 0;
    struct slice body = attribute(arena, item, "body");
    *unreadable = false;
    *out = (struct letter){.queue = attribute(arena, item, "queue"),
                           .id = attribute(arena, item, "id"),
                           .sent = attribute(arena, item, "sent")};
    struct slice number = raw_member(arena, raw_member(arena, item, "held"), "N");
    if (number.data && (!raw_int(raw_string(arena, number), &held) || held < 0 || held > QUEUE_PARTS + 1))
        held = 0;
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

/* ---- removing ---- */

void letter_put_removal(const struct func *func, const struct letter *letter, struct buf *members)
{
    struct arena arena = {0};
    buf_text(members, "{\"Delete\":{\"TableName\":");
    json_put_string(members, queues_table(func, &arena));
    buf_text(members, ",\"Key\":{\"queue\":{\"S\":");
    json_put_string(members, letter->queue);
    buf_text(members, "},\"id\":{\"S\":");
    json_put_string(members, letter->id);
    buf_text(members, "}},\"ConditionExpression\":\"attribute_exists(id)\"}}");
    for (unsigned part = 1; part <= letter->held; part++) {
        buf_text(members, ",{\"Delete\":{\"TableName\":");
        json_put_string(members, func->queue->table);
        buf_text(members, ",\"Key\":{");
        put_held_key(members, held_id(&arena, letter->queue, letter->id), part);
        buf_text(members, "}}}");
    }
    arena_free(&arena);
}
