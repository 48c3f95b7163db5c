/* The table of queues, PREFIXqueues: what targets and destinations put aside for somebody to fetch.
 *
 *   queue  (S)  hash key: the queue's name
 *   id     (S)  range key: in the order of time for a queue that is a target, else whatever makes it the same
 *               document when it is put twice
 *   body   (S)  the document, as JSON
 *   sent   (S)  when, "2026-11-15T03:42:06.123Z"
 * and, on a dead letter, the call that has failed (letter.c).
 *
 * A document is one item. What does not fit into one (LIMIT_ITEM_BYTES) is refused: whoever fetches from a
 * queue, with any client, need not know how to put pieces together. */
#include "base/compose.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "func/target.h"

#define NAMES_BYTES (5 + 2 + 4 + 4) /* of the attributes, in the item's size */

struct slice queues_table(const struct func *func, struct arena *arena)
{
    return arena_printf(arena, "%.*squeues", SLICE_ARG(func->prefix));
}

bool queues_make(struct func *func)
{
    struct arena arena = {0};
    if (atomic_load(&func->queues_are_made)) return true;
    bool is_made = table_make(
        func, &(struct dynamo_table){
                  .name = queues_table(func, &arena), .hash = "queue", .range = "id", .range_type = 'S'});
    arena_free(&arena);
    if (is_made) atomic_store(&func->queues_are_made, true);
    return is_made;
}

size_t queues_put(struct slice table, const struct queues_message *message, struct buf *members)
{
    struct arena arena = {0};
    struct slice sent = moment_text(&arena, message->now_ms);
    size_t size = NAMES_BYTES + message->queue.len + message->id.len + message->document.len + sent.len +
                  message->more_bytes;
    if (size > LIMIT_ITEM_BYTES)
        size = 0;
    else
        compose(members, "{'Put':{'TableName':%s,'Item':{'queue':%S,'id':%S,'sent':%S,'body':%S%A}}}", table,
                message->queue, message->id, sent, message->document, message->more);
    arena_free(&arena);
    return size;
}
