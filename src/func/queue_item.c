/* Asynchronous calls as items of the table PREFIXinvocations.
 *
 *   id        (S)  hash key: names the call; the request's id that its function sees, where it is a UUID
 *   part      (N)  range key: 0 for the call, 1.. for what does not fit into it of its payload
 *   payload   (S)  JSON, or this part of it
 * and on part 0 only:
 *   function  (S)  name or name:qualifier, a URL, or a target that is no function, as JSON (target.c)
 *   cause     (S)  the lineage of what led to it (func.h), where there is one
 *   failure   (S)  the destination that is told of its failure where its function names none, or there is none
 *   accepted  (N)  when it was put, milliseconds since 1970
 *   due       (N)  when it is to run next
 *   attempts  (N)  how often its function has failed
 *   parts     (N)  how many items it has
 *   owner     (S)  the server that runs it, with `until` (N) and `fence` (N): its hold (dynamo.h)
 *
 * A call is put by updates that leave alone what is there already: put twice, it is the same call. Part 0 comes last,
 * since it is what makes the others a call.
 *
 * Where the database has no transactions a call that has ended stays for a while, so that a late repeat of the write
 * that put it does not begin it anew. There
 *   open      (S)  its id again, on part 0 while there is something to do. An index by this attribute holds the calls
 *                  that are open, and only those, however many have ended: so they are found without a look at the rest
 *   ended     (N)  when it was over. Such an item is a tombstone: whatever else a late repeat has put is removed
 *   expires   (N)  the table's time to live, in seconds: of a tombstone, and of parts, whose part 0 may never come */
#include <stdio.h>

#include "base/limits.h"
#include "base/log.h"
#include "base/raw.h"
#include "func/document.h"
#include "func/queue.h"

/* ---- the table ---- */

bool queue_table_make(struct queue *queue)
{
    if (atomic_load(&queue->table_is_made)) return true;
    pthread_mutex_lock(&queue->table_lock);
    bool has_tombstones = !func_has_transactions(queue->func);
    if (!atomic_load(&queue->table_is_made) &&
        table_make_as(queue->func,
                      &(struct dynamo_table){queue->table, "id", "part", 'N', has_tombstones ? "open" : NULL,
                                             has_tombstones ? "expires" : NULL}))
        atomic_store(&queue->table_is_made, true);
    pthread_mutex_unlock(&queue->table_lock);
    return atomic_load(&queue->table_is_made);
}

/* ---- writing ---- */

/* "TableName":T,"Key":{...} */
static void put_key(const struct queue *queue, struct slice id, unsigned part, struct buf *out)
{
    buf_text(out, "\"TableName\":");
    json_put_string(out, queue->table);
    buf_text(out, ",\"Key\":{\"id\":{\"S\":");
    json_put_string(out, id);
    buf_printf(out, "},\"part\":{\"N\":\"%u\"}}", part);
}

static void put_number(struct buf *out, const char *name, int64_t value)
{
    buf_printf(out, "\"%s\":{\"N\":\"%lld\"}", name, (long long)value);
}

static void put_string(struct buf *out, const char *name, struct slice value)
{
    buf_printf(out, "\"%s\":{\"S\":", name);
    json_put_string(out, value);
    buf_byte(out, '}');
}

size_t queue_part_len(struct slice rest)
{
    size_t len = rest.len < LIMIT_QUEUE_PART_BYTES ? rest.len : LIMIT_QUEUE_PART_BYTES;
    while (len < rest.len && len && ((unsigned char)rest.data[len] & 0xc0) == 0x80) len--;
    return len;
}

unsigned queue_part_count(struct slice payload)
{
    unsigned count = 0;
    do {
        payload = slice_from(payload, queue_part_len(payload));
        count++;
    } while (payload.len);
    return count;
}

/* A server that has the data itself holds without an end (DYNAMO_OWNER_HERE). */
static int64_t lease_until_ms(const struct queue *queue, int64_t now_ms)
{
    return queue->func->options.shared ? dynamo_hold_until(now_ms, QUEUE_LEASE_MS, 0) : DYNAMO_NO_END_MS;
}

/* It is held from its beginning, which keeps others from it. */
static void put_first(struct queue *queue, const struct func_call *call, struct slice payload, unsigned parts,
                      struct buf *out)
{
    int64_t now_ms = queue_now_ms(queue);
    buf_text(out, "{\"Update\":{");
    put_key(queue, call->id, 0, out);
    buf_text(
        out,
        ",\"UpdateExpression\":\"SET #f = if_not_exists(#f, :f), payload = if_not_exists(payload, :p), "
        "accepted = if_not_exists(accepted, :n), due = if_not_exists(due, :n), attempts = "
        "if_not_exists(attempts, :z), fence = if_not_exists(fence, :z), parts = if_not_exists(parts, :k)");
    if (call->cause.len) buf_text(out, ", cause = if_not_exists(cause, :c)");
    if (call->on_failure.len) buf_text(out, ", failure = if_not_exists(failure, :w)");
    bool is_listed = !func_has_transactions(queue->func);
    if (is_listed) buf_text(out, ", #open = if_not_exists(#open, :id)");
    buf_printf(
        out,
        ", #owner = if_not_exists(#owner, :owner), #until = if_not_exists(#until, :until)\","
        "\"ExpressionAttributeNames\":{\"#f\":\"function\",\"#owner\":\"owner\",\"#until\":\"until\"%s},"
        "\"ExpressionAttributeValues\":{",
        is_listed ? ",\"#open\":\"open\"" : "");
    if (is_listed) {
        put_string(out, ":id", call->id);
        buf_byte(out, ',');
    }
    put_string(out, ":f", call->function);
    buf_byte(out, ',');
    put_string(out, ":p", payload);
    buf_byte(out, ',');
    put_number(out, ":n", now_ms);
    buf_byte(out, ',');
    put_number(out, ":z", 0);
    buf_byte(out, ',');
    put_number(out, ":k", parts);
    if (call->cause.len) {
        buf_byte(out, ',');
        put_string(out, ":c", call->cause);
    }
    if (call->on_failure.len) {
        buf_byte(out, ',');
        put_string(out, ":w", call->on_failure);
    }
    buf_byte(out, ',');
    put_string(out, ":owner", slice_of(queue->me));
    buf_byte(out, ',');
    put_number(out, ":until", lease_until_ms(queue, now_ms));
    buf_text(out, "}}}");
}

static void put_further(const struct queue *queue, struct slice id, unsigned part, struct slice payload,
                        struct buf *out)
{
    bool expires = !func_has_transactions(queue->func);
    buf_text(out, "{\"Update\":{");
    put_key(queue, id, part, out);
    buf_printf(out,
               ",\"UpdateExpression\":\"SET payload = if_not_exists(payload, :p)%s\","
               "\"ExpressionAttributeValues\":{",
               expires ? ", expires = :e" : "");
    put_string(out, ":p", payload);
    if (expires) {
        buf_byte(out, ',');
        put_number(out, ":e", (queue_now_ms(queue) + QUEUE_PARTS_MS) / 1000);
    }
    buf_text(out, "}}},");
}

unsigned queue_put_members(struct queue *queue, const struct func_call *call, struct buf *members,
                           size_t *first)
{
    struct slice payload = call->payload.len ? call->payload : SLICE("{}"), id = call->id, rest;
    if (payload.len > LIMIT_ASYNC_EVENT_BYTES || !utf8_valid(payload)) return 0;
    if (!id.len || id.len > QUEUE_ID_BYTES) return 0;
    unsigned parts = queue_part_count(payload);
    payload.len = queue_part_len(rest = payload);
    for (unsigned part = 1; part < parts; part++) {
        rest = slice_from(rest, queue_part_len(rest));
        put_further(queue, id, part, (struct slice){rest.data, queue_part_len(rest)}, members);
    }
    *first = members->len;
    put_first(queue, call, payload, parts, members);
    return parts;
}

/* An update on a condition, with its values but for those behind the first, which is :fence, and the last braces. */
static void put_update(const struct async_call *call, const char *update, const char *condition,
                       const char *names, struct buf *out)
{
    buf_byte(out, '{');
    put_key(call->queue, call->id, 0, out);
    buf_printf(
        out,
        ",\"UpdateExpression\":\"%s\",\"ConditionExpression\":\"%s\",\"ExpressionAttributeNames\":{%s},"
        "\"ExpressionAttributeValues\":{",
        update, condition, names);
    put_number(out, ":fence", (int64_t)call->fence);
    buf_byte(out, ',');
}

/* As it was read: else somebody else was quicker. */
void call_put_claim(const struct async_call *call, int64_t now_ms, struct buf *out)
{
    put_update(call, "SET " HOLD_TAKE, "#fence = :fence and " HOLD_FREE_OR_MINE, HOLD_NAMES, out);
    put_number(out, ":zero", 0);
    buf_byte(out, ',');
    put_number(out, ":one", 1);
    buf_byte(out, ',');
    put_number(out, ":now", now_ms);
    buf_byte(out, ',');
    put_string(out, ":owner", slice_of(call->queue->me));
    buf_byte(out, ',');
    put_number(out, ":until", lease_until_ms(call->queue, now_ms));
    buf_text(out, "}}");
}

void call_put_renewal(const struct async_call *call, int64_t now_ms, struct buf *out)
{
    put_update(call, "SET #until = :until", HOLD_ACT, HOLD_NAMES, out);
    put_number(out, ":until", lease_until_ms(call->queue, now_ms));
    buf_text(out, "}}");
}

void call_put_retry(const struct async_call *call, uint32_t attempts, int64_t due_ms, struct buf *out)
{
    put_update(call, "SET attempts = :a, due = :d REMOVE #owner, #until", HOLD_ACT, HOLD_NAMES, out);
    put_number(out, ":a", attempts);
    buf_byte(out, ',');
    put_number(out, ":d", due_ms);
    buf_text(out, "}}");
}

/* Whoever has read the call before cannot claim the tombstone: its fence is another. It stays in the index of open ones
 * while there are further parts. */
void call_put_tombstone(const struct async_call *call, const char *condition, bool is_listed, struct buf *out)
{
    int64_t now_ms = queue_now_ms(call->queue);
    buf_text(out, "{\"Update\":{");
    put_key(call->queue, call->id, 0, out);
    buf_printf(
        out,
        ",\"UpdateExpression\":\"SET ended = :now, expires = :expires, #fence = :fence + :one REMOVE #f, "
        "payload, cause, failure, accepted, due, attempts, #owner, #until%s\",\"ConditionExpression\":\"%s\","
        "\"ExpressionAttributeNames\":{\"#f\":\"function\"%s," HOLD_NAMES "},\"ExpressionAttributeValues\":{",
        is_listed ? "" : ", parts, #open", condition, is_listed ? "" : ",\"#open\":\"open\"");
    put_number(out, ":now", now_ms);
    buf_byte(out, ',');
    put_number(out, ":expires", (now_ms + QUEUE_TOMBSTONE_MS) / 1000);
    buf_byte(out, ',');
    put_number(out, ":fence", (int64_t)call->fence);
    buf_byte(out, ',');
    put_number(out, ":one", 1);
    buf_text(out, "}}}");
}

void call_put_removal(const struct async_call *call, struct buf *out)
{
    buf_text(out, "{\"Delete\":{");
    put_key(call->queue, call->id, 0, out);
    buf_text(out, ",\"ConditionExpression\":\"" HOLD_ACT "\",\"ExpressionAttributeNames\":{" HOLD_ACT_NAMES
                  "},\"ExpressionAttributeValues\":{");
    put_number(out, ":fence", (int64_t)call->fence);
    buf_text(out, "}}}");
}

void call_put_part_removals(const struct async_call *call, struct buf *members)
{
    for (unsigned part = 1; part < call->parts; part++) {
        if (part > 1) buf_byte(members, ',');
        buf_text(members, "{\"Delete\":{");
        put_key(call->queue, call->id, part, members);
        buf_text(members, "}}");
    }
}

/* ---- reading ---- */

/* Always all parts that there can be: those that are not there are simply not answered. */
void call_put_load(const struct async_call *call, struct buf *out)
{
    buf_text(out, "{\"RequestItems\":{");
    json_put_string(out, call->queue->table);
    buf_text(out, ":{\"ConsistentRead\":true,\"Keys\":[");
    for (unsigned part = 0; part <= QUEUE_PARTS; part++) {
        if (part) buf_byte(out, ',');
        buf_text(out, "{\"id\":{\"S\":");
        json_put_string(out, call->id);
        buf_printf(out, "},\"part\":{\"N\":\"%u\"}}", part);
    }
    buf_text(out, "]}}}");
}

static void read_first(struct async_call *call, const struct document *item)
{
    struct arena *arena = call->arena;
    call->function = document_text(item, "function", arena);
    call->cause = document_text(item, "cause", arena);
    call->failure = document_text(item, "failure", arena);
    call->owner = document_text(item, "owner", arena);
    call->accepted_ms = document_integer(item, "accepted", 0);
    call->due_ms = document_integer(item, "due", 0);
    call->attempts = (uint32_t)document_integer(item, "attempts", 0);
    call->parts = (uint32_t)document_integer(item, "parts", 1);
    call->fence = (uint64_t)document_integer(item, "fence", 0);
    call->until_ms = document_integer(item, "until", 0);
    call->has_ended = document_integer(item, "ended", 0) != 0;
}

static bool payload_join(struct async_call *call, const struct slice *payloads)
{
    size_t len = 0;
    if (call->parts < 1 || call->parts > QUEUE_PARTS + 1) return false;
    for (unsigned i = 0; i < call->parts; i++) {
        if (!payloads[i].data) return false;
        len += payloads[i].len;
    }
    call->payload = payloads[0];
    if (call->parts == 1) return true;
    struct buf whole = {.data = arena_alloc(call->arena, len), .cap = len};
    for (unsigned i = 0; i < call->parts; i++) buf_slice(&whole, payloads[i]);
    call->payload = buf_view(&whole);
    return true;
}

/* {"Responses":{"table":[item,...]},...} or {"Items":[...]}: calls `take` with each item. */
static bool items_read(struct json_reader *reader, void (*take)(void *context, const struct document *item),
                       void *context)
{
    if (json_peek(reader) != JSON_ARRAY || !json_enter(reader)) return false;
    while (json_element(reader)) {
        struct document item;
        if (!document_of_item(reader, &item)) return false;
        take(context, &item);
    }
    return !json_failed(reader);
}

struct parts_taken {
    struct async_call *call;
    struct slice payloads[QUEUE_PARTS + 1];
    bool has_first;
};

static void take_part(void *context, const struct document *item)
{
    struct parts_taken *taken = context;
    int64_t part = document_integer(item, "part", -1);
    if (part < 0 || part > QUEUE_PARTS) return;
    taken->payloads[part] = document_text(item, "payload", taken->call->arena);
    if (part != 0) return;
    read_first(taken->call, item);
    taken->has_first = true;
}

bool call_read(struct async_call *call, struct slice reply)
{
    struct json_reader reader;
    struct parts_taken taken = {.call = call};
    struct slice name;
    json_begin(&reader, reply, call->arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return false;
    while (json_member(&reader, &name)) {
        if (!slice_equal(name, SLICE("Responses"))) {
            json_skip(&reader);
        } else if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) {
            return false;
        } else {
            while (json_member(&reader, &name))
                if (!items_read(&reader, take_part, &taken)) return false;
        }
    }
    if (taken.has_first && call->has_ended) return true;
    return taken.has_first && call->function.len && payload_join(call, taken.payloads);
}

/* ---- looking through the table ---- */

void queue_put_scan(const struct queue *queue, struct slice start_key, struct buf *out)
{
    buf_text(out, "{\"TableName\":");
    json_put_string(out, queue->table);
    buf_printf(out, ",%s",
               func_has_transactions(queue->func) ? "\"ConsistentRead\":true" : "\"IndexName\":\"open\"");
    buf_text(out, ",\"ProjectionExpression\":\"id, part, due, #owner, #until\","
                  "\"ExpressionAttributeNames\":{\"#owner\":\"owner\",\"#until\":\"until\"},"
                  "\"FilterExpression\":\"part = :z\",\"ExpressionAttributeValues\":{\":z\":{\"N\":\"0\"}}");
    if (start_key.len) {
        buf_text(out, ",\"ExclusiveStartKey\":");
        buf_slice(out, start_key);
    }
    buf_byte(out, '}');
}

enum dynamo_hold_state queue_hold_state(const struct queue *queue, struct slice owner, int64_t until_ms,
                                        int64_t now_ms)
{
    struct dynamo_hold hold = {.owner = owner.len ? owner : SLICE_NONE, .until_ms = until_ms};
    if (!queue->func->options.shared && dynamo_owner_is_here(owner)) return HOLD_IS_MINE;
    return dynamo_hold_state(&hold, slice_of(queue->me), now_ms);
}

struct page_taken {
    struct queue *queue;
    struct arena *arena;
};

/* What another server holds is due when that is over, at the earliest. */
static void take_call(void *context, const struct document *item)
{
    struct page_taken *taken = context;
    struct queue *queue = taken->queue;
    struct slice id = document_text(item, "id", taken->arena),
                 owner = document_text(item, "owner", taken->arena);
    int64_t due_ms = document_integer(item, "due", 0), until_ms = document_integer(item, "until", 0);
    bool of_others = queue_hold_state(queue, owner, until_ms, due_ms) == HOLD_IS_ANOTHERS;
    if (of_others) due_ms = until_ms + 1;
    if (id.len && id.len <= QUEUE_ID_BYTES) queue_remember(queue, id, due_ms);
}

bool queue_read_page(struct queue *queue, struct slice reply, struct arena *arena, struct slice *start_key)
{
    struct json_reader reader;
    struct page_taken taken = {queue, arena};
    struct slice name, raw;
    *start_key = SLICE_NONE;
    json_begin(&reader, reply, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return false;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, SLICE("Items"))) {
            if (!items_read(&reader, take_call, &taken)) return false;
        } else {
            if (!raw_take(&reader, &raw)) return false;
            if (slice_equal(name, SLICE("LastEvaluatedKey"))) *start_key = raw;
        }
    }
    return json_done(&reader);
}
