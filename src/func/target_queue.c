/* A queue as a target: each record of the event, or the whole event where it has none, is put aside as one
 * document (queues.c).
 *
 * Ids are times in microseconds that only grow, so that a queue is read in the order in which its documents
 * came; the last digits of the call keep two servers apart. Where the database has no transactions a document may be
 * put again (task.h), so its id follows from the record, or from the asynchronous call, and begins with its time. */
#include "base/hash.h"
#include "base/limits.h"
#include "func/target.h"

struct queue_batch {
    struct func *func;
    struct slice queue;
    struct invocation *invocation;
    int64_t now_ms, id_us;
    uint32_t count;
    size_t bytes; /* of all items */
    bool has_transactions;
};

/* Always false. */
static bool too_large(struct queue_batch *batch)
{
    target_fail(batch->invocation, "Target.BadEvent",
                "document %u has more than the %d bytes that an item of a queue can hold", batch->count + 1,
                LIMIT_ITEM_BYTES);
    return false;
}

static bool too_many(struct queue_batch *batch)
{
    batch->invocation->is_too_much = true;
    if (batch->count >= LIMIT_EFFECTS)
        target_fail_too_many(batch->invocation);
    else
        target_fail(batch->invocation, "Target.BatchTooLarge",
                    "the event writes more than %d bytes, which is more than one transaction holds: the "
                    "BatchSize of the mapping must be smaller",
                    LIMIT_TRANSACTION_BYTES);
    return false;
}

static struct slice document_id(const struct queue_batch *batch, struct slice document)
{
    const struct invocation *invocation = batch->invocation;
    struct arena *arena = invocation->arena;
    struct slice change = raw_member(arena, document, "dynamodb"),
                 number = raw_string(arena, raw_member(arena, change, "SequenceNumber")),
                 made = raw_text(arena, raw_member(arena, change, "ApproximateCreationDateTime")),
                 event = raw_string(arena, raw_member(arena, document, "eventID"));
    int64_t made_s = 0;
    if (batch->has_transactions || (!number.len && !invocation->call_id.len))
        return arena_printf(arena, "%016lld-%04u-%.8s", (long long)batch->id_us, batch->count,
                            invocation->request_id);
    if (!number.len)
        return arena_printf(arena, "%016lld-%04u-%016llx", (long long)invocation->accepted_ms * 1000,
                            batch->count, (unsigned long long)hash_bytes(invocation->call_id));
    for (size_t i = 0; i < made.len && made.data[i] >= '0' && made.data[i] <= '9' && i < 10; i++)
        made_s = made_s * 10 + made.data[i] - '0';
    return arena_printf(arena, "%016lld-%0*d%.*s-%016llx", (long long)made_s * 1000000,
                        number.len < 40 ? (int)(40 - number.len) : 1, 0, SLICE_ARG(number),
                        (unsigned long long)hash_bytes(event));
}

static bool put_document(struct queue_batch *batch, struct slice document)
{
    struct invocation *invocation = batch->invocation;
    if (batch->count == LIMIT_EFFECTS) return too_many(batch);
    struct slice id = document_id(batch, document);
    if (batch->count) buf_byte(&invocation->reply, ',');
    size_t bytes = queues_put(
        queues_table(batch->func, invocation->arena),
        &(struct queues_message){batch->queue, id, document, SLICE_NONE, 0, batch->now_ms},
        &invocation->reply);
    if (!bytes) return too_large(batch);
    batch->bytes += bytes;
    batch->count++;
    return batch->bytes <= LIMIT_TRANSACTION_BYTES || too_many(batch);
}

void target_queue(struct func *func, const struct function *function, struct invocation *invocation)
{
    struct slice event = target_event(invocation);
    struct queue_batch batch = {.func = func, .queue = function->queue, .invocation = invocation};
    batch.now_ms = clock_now_ms(func->options.clock);
    /* The next time that no other call of this process has; it runs ahead of the clock when more come than there
     * are microseconds. */
    static _Atomic int64_t last_us;
    int64_t last = atomic_load(&last_us), next;
    do {
        next = batch.now_ms * 1000 > last ? batch.now_ms * 1000 : last + 1;
    } while (!atomic_compare_exchange_weak(&last_us, &last, next));
    batch.id_us = next;
    batch.has_transactions = func_has_transactions(func);
    buf_text(&invocation->reply, "{\"quipu\":{\"transact\":[");
    if (!raw_is_json(invocation->arena, event)) {
        target_fail(invocation, "Target.BadEvent", "the event is no JSON");
        return;
    }
    bool is_object = raw_kind(event) == JSON_OBJECT, is_fine = true;
    struct slice records = is_object ? raw_member(invocation->arena, event, "Records") : SLICE_NONE, record;
    if (raw_kind(records) != JSON_ARRAY) is_fine = put_document(&batch, event);
    raw_each (invocation->arena, raw_kind(records) == JSON_ARRAY ? records : SLICE_NONE, &record)
        is_fine = is_fine && put_document(&batch, record);
    if (!is_fine) return;
    buf_text(&invocation->reply, "]}}");
    invocation->is_repeatable = true;
    invocation->end = INVOCATION_ANSWERED;
}
