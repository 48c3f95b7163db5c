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
 *   expires   (N)  the table's time to live, in seconds: of a tombstone, and of parts, whose part 0 may never come
 *   effects, told  (S)  its outcome, written before anything of it: what its function returned and what its destination
 *                  is told, as members of a commit. Whoever takes the call over carries that out and does not run the
 *                  function again, which might return something else */
#include "base/attribute.h"
#include "base/compose.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/raw.h"
#include "func/queue.h"

/* ---- the table ---- */

bool queue_table_make(struct queue *queue)
{
    if (atomic_load(&queue->table_is_made)) return true;
    pthread_mutex_lock(&queue->table_lock);
    struct dynamo_table table = {.name = queue->table, .hash = "id", .range = "part", .range_type = 'N'};
    if (!func_has_transactions(queue->func)) {
        table.index = "open";
        table.expiry = "expires";
    }
    if (!atomic_load(&queue->table_is_made) && table_make(queue->func, &table))
        atomic_store(&queue->table_is_made, true);
    pthread_mutex_unlock(&queue->table_lock);
    return atomic_load(&queue->table_is_made);
}

/* ---- putting ---- */

#define KEY                "'TableName':%s,'Key':{'id':%S,'part':%N}"
#define KEY_OF(call, part) (call)->queue->table, (call)->id, (int64_t)(part)

size_t queue_part_len(struct slice rest)
{
    size_t len = rest.len < LIMIT_QUEUE_PART_BYTES ? rest.len : LIMIT_QUEUE_PART_BYTES;
    while (len < rest.len && len && ((unsigned char)rest.data[len] & 0xc0) == 0x80) len--;
    return len;
}

static unsigned queue_part_count(struct slice payload)
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
    bool is_listed = !func_has_transactions(queue->func);
    compose(out,
            "{'Update':{" KEY ",'UpdateExpression':'SET #function = if_not_exists(#function, :f), "
            "#payload = if_not_exists(#payload, :p), #accepted = if_not_exists(#accepted, :n), "
            "#due = if_not_exists(#due, :n), #attempts = if_not_exists(#attempts, :z), "
            "#fence = if_not_exists(#fence, :z), #parts = if_not_exists(#parts, :k), "
            "#owner = if_not_exists(#owner, :o), #until = if_not_exists(#until, :u)%r%r%r',%#,"
            "'ExpressionAttributeValues':{':f':%S,':p':%S,':n':%N,':z':{'N':'0'},':k':%N,':o':%S,':u':%N",
            queue->table, call->id, (int64_t)0,
            call->cause.len ? SLICE(", #cause = if_not_exists(#cause, :c)") : SLICE_NONE,
            call->on_failure.len ? SLICE(", #failure = if_not_exists(#failure, :w)") : SLICE_NONE,
            is_listed ? SLICE(", #open = if_not_exists(#open, :id)") : SLICE_NONE, call->function, payload,
            now_ms, (int64_t)parts, slice_of(queue->me), lease_until_ms(queue, now_ms));
    if (call->cause.len) compose(out, ",':c':%S", call->cause);
    if (call->on_failure.len) compose(out, ",':w':%S", call->on_failure);
    if (is_listed) compose(out, ",':id':%S", call->id);
    buf_text(out, "}}}");
}

unsigned queue_put_members(struct queue *queue, const struct func_call *call, struct buf *members,
                           size_t *first)
{
    struct slice payload = call->payload.len ? call->payload : SLICE("{}"), rest = payload;
    if (payload.len > LIMIT_ASYNC_EVENT_BYTES || !utf8_valid(payload)) return 0;
    if (!call->id.len || call->id.len > QUEUE_ID_BYTES) return 0;
    bool expires = !func_has_transactions(queue->func);
    unsigned parts = queue_part_count(payload);
    payload.len = queue_part_len(payload);
    for (unsigned part = 1; part < parts; part++) {
        rest = slice_from(rest, queue_part_len(rest));
        compose(members,
                "{'Update':{" KEY ",'UpdateExpression':'SET #payload = if_not_exists(#payload, :p)%r',%#,"
                "'ExpressionAttributeValues':{':p':%S",
                queue->table, call->id, (int64_t)part, expires ? SLICE(", #expires = :e") : SLICE_NONE,
                (struct slice){rest.data, queue_part_len(rest)});
        if (expires) compose(members, ",':e':%N", (queue_now_ms(queue) + QUEUE_PARTS_MS) / 1000);
        buf_text(members, "}}},");
    }
    *first = members->len;
    put_first(queue, call, payload, parts, members);
    return parts;
}

/* ---- changing ---- */

/* As it was read: else somebody else was quicker. */
struct slice call_claim(const struct async_call *call, int64_t now_ms)
{
    return compose_in(call->arena,
                      "{" KEY ",'UpdateExpression':'SET " HOLD_TAKE
                      "','ConditionExpression':'#fence = :fence and " HOLD_FREE_OR_MINE
                      "',%#,'ExpressionAttributeValues':{':fence':%N,':zero':{'N':'0'},':one':{'N':'1'},"
                      "':now':%N,':owner':%S,':until':%N}}",
                      KEY_OF(call, 0), (int64_t)call->fence, now_ms, slice_of(call->queue->me),
                      lease_until_ms(call->queue, now_ms));
}

struct slice call_renewal(const struct async_call *call, int64_t now_ms)
{
    return compose_in(call->arena,
                      "{" KEY ",'UpdateExpression':'SET #until = :until','ConditionExpression':'" HOLD_ACT
                      "',%#,'ExpressionAttributeValues':{':fence':%N,':until':%N}}",
                      KEY_OF(call, 0), (int64_t)call->fence, lease_until_ms(call->queue, now_ms));
}

struct slice call_retry(const struct async_call *call, uint32_t attempts, int64_t due_ms)
{
    return compose_in(
        call->arena,
        "{" KEY ",'UpdateExpression':'SET #attempts = :a, #due = :d REMOVE #owner, #until, #effects, #told',"
        "'ConditionExpression':'" HOLD_ACT "',%#,'ExpressionAttributeValues':{':fence':%N,':a':%N,':d':%N}}",
        KEY_OF(call, 0), (int64_t)call->fence, (int64_t)attempts, due_ms);
}

struct slice call_outcome(const struct async_call *call, struct slice effects, struct slice told)
{
    return compose_in(call->arena,
                      "{" KEY ",'UpdateExpression':'SET #effects = :e, #told = :t',"
                      "'ConditionExpression':'" HOLD_ACT
                      "',%#,'ExpressionAttributeValues':{':fence':%N,':e':%S,':t':%S}}",
                      KEY_OF(call, 0), (int64_t)call->fence, effects, told);
}

struct slice call_removal(const struct async_call *call)
{
    return compose_in(call->arena,
                      "{'Delete':{" KEY ",'ConditionExpression':'" HOLD_ACT "',%#,"
                      "'ExpressionAttributeValues':{':fence':%N}}}",
                      KEY_OF(call, 0), (int64_t)call->fence);
}

/* Whoever has read the call before cannot claim the tombstone: its fence is another. It stays in the index of open ones
 * while there are further parts. */
struct slice call_tombstone(const struct async_call *call, const char *condition, bool is_listed)
{
    int64_t now_ms = queue_now_ms(call->queue);
    return compose_in(
        call->arena,
        "{'Update':{" KEY
        ",'UpdateExpression':'SET #ended = :now, #expires = :expires, #fence = :fence + :one "
        "REMOVE #function, #payload, #cause, #failure, #accepted, #due, #attempts, #owner, #until, #effects, "
        "#told%r',"
        "'ConditionExpression':'%r',%#,'ExpressionAttributeValues':"
        "{':now':%N,':expires':%N,':fence':%N,':one':{'N':'1'}}}}",
        KEY_OF(call, 0), is_listed ? SLICE_NONE : SLICE(", #parts, #open"), slice_of(condition), now_ms,
        (now_ms + QUEUE_TOMBSTONE_MS) / 1000, (int64_t)call->fence);
}

struct slice call_part_removals(const struct async_call *call)
{
    struct buf members = {0};
    for (unsigned part = 1; part < call->parts; part++)
        compose(&members, "%,{'Delete':{" KEY "}}", KEY_OF(call, part));
    return arena_take(call->arena, &members);
}

/* ---- reading ---- */

/* Always all parts that there can be: those that are not there are simply not answered. */
struct slice call_load(const struct async_call *call)
{
    struct buf keys = {0};
    for (unsigned part = 0; part <= QUEUE_PARTS; part++)
        compose(&keys, "%,{'id':%S,'part':%N}", call->id, (int64_t)part);
    return compose_in(call->arena, "{'RequestItems':{%s:{'ConsistentRead':true,'Keys':[%A]}}}",
                      call->queue->table, arena_take(call->arena, &keys));
}

struct slice call_load_rest(const struct async_call *call, struct slice unprocessed)
{
    return compose_in(call->arena, "{'RequestItems':%A}", unprocessed);
}

static bool payload_join(struct async_call *call)
{
    const struct slice *payloads = call->payloads;
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

struct slice call_take(struct async_call *call, struct slice reply)
{
    static const char *const names[] = {"part",  "payload",  "function", "cause",    "failure",
                                        "owner", "accepted", "due",      "attempts", "parts",
                                        "fence", "until",    "ended",    "effects",  "told"};
    struct arena *arena = call->arena;
    struct slice item, at[sizeof names / sizeof *names], rest = raw_member(arena, reply, "UnprocessedKeys");
    const char *table = call->queue->table.data;
    raw_each (arena, raw_member(arena, raw_member(arena, reply, "Responses"), table), &item) {
        raw_pick(arena, item, names, at, sizeof names / sizeof *names);
        int64_t part = attribute_int(arena, at[0], -1);
        if (part < 0 || part > QUEUE_PARTS) continue;
        call->payloads[part] = attribute_text(arena, at[1]);
        if (part) continue;
        call->has_first = true;
        call->function = attribute_text(arena, at[2]);
        call->cause = attribute_text(arena, at[3]);
        call->failure = attribute_text(arena, at[4]);
        call->owner = attribute_text(arena, at[5]);
        call->accepted_ms = attribute_int(arena, at[6], 0);
        call->due_ms = attribute_int(arena, at[7], 0);
        call->attempts = (uint32_t)attribute_int(arena, at[8], 0);
        call->parts = (uint32_t)attribute_int(arena, at[9], 1);
        call->fence = (uint64_t)attribute_int(arena, at[10], 0);
        call->until_ms = attribute_int(arena, at[11], 0);
        call->has_ended = at[12].data != NULL;
        call->effects = attribute_text(arena, at[13]);
        call->told = attribute_text(arena, at[14]);
        call->has_outcome = at[14].data != NULL;
    }
    return raw_member(arena, rest, table).data ? rest : SLICE_NONE;
}

bool call_read(struct async_call *call)
{
    return call->has_first && (call->has_ended || (call->function.len && payload_join(call)));
}

/* ---- looking through the table ---- */

void queue_put_scan(const struct queue *queue, struct slice start_key, struct buf *out)
{
    compose(out,
            "{'TableName':%s,%A,'ProjectionExpression':'#id, #part, #due, #owner, #until','FilterExpression':"
            "'#part = :z',%#,'ExpressionAttributeValues':{':z':{'N':'0'}}",
            queue->table,
            func_has_transactions(queue->func) ? SLICE("\"ConsistentRead\":true")
                                               : SLICE("\"IndexName\":\"open\""));
    if (start_key.len) compose(out, ",'ExclusiveStartKey':%A", start_key);
    buf_byte(out, '}');
}

enum dynamo_hold_state queue_hold_state(const struct queue *queue, struct slice owner, int64_t until_ms,
                                        int64_t now_ms)
{
    struct dynamo_hold hold = {.owner = owner.len ? owner : SLICE_NONE, .until_ms = until_ms};
    if (!queue->func->options.shared && dynamo_owner_is_here(owner)) return HOLD_IS_MINE;
    return dynamo_hold_state(&hold, slice_of(queue->me), now_ms);
}

/* What another server holds is due when that is over, at the earliest. */
struct slice queue_read_page(struct queue *queue, struct slice reply, struct arena *arena)
{
    struct slice item;
    raw_each (arena, raw_member(arena, reply, "Items"), &item) {
        struct slice id = item_text(arena, item, "id"), owner = item_text(arena, item, "owner");
        int64_t due_ms = item_int(arena, item, "due", 0), until_ms = item_int(arena, item, "until", 0);
        if (queue_hold_state(queue, owner, until_ms, due_ms) == HOLD_IS_ANOTHERS) due_ms = until_ms + 1;
        if (id.len && id.len <= QUEUE_ID_BYTES) queue_remember(queue, id, due_ms);
    }
    return raw_member(arena, reply, "LastEvaluatedKey");
}
