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
#include <stdio.h>
#include <time.h>

#include "base/limits.h"
#include "func/target.h"

#define NAMES_BYTES (5 + 2 + 4 + 4) /* of the attributes, in the item's size */

/* ---- making it ---- */

struct slice queues_table(const struct func *func, struct arena *arena)
{
    return arena_printf(arena, "%.*squeues", SLICE_ARG(func->prefix));
}

bool queues_make(struct func *func)
{
    struct arena arena = {0};
    if (atomic_load(&func->queues_are_made)) return true;
    bool is_made = table_make(func, queues_table(func, &arena), "queue", "id", 'S');
    arena_free(&arena);
    if (is_made) atomic_store(&func->queues_are_made, true);
    return is_made;
}

/* ---- filling it ---- */

struct slice queues_time(struct arena *arena, int64_t now_ms)
{
    char text[QUEUES_TIME_BYTES + 1];
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm broken;
    gmtime_r(&seconds, &broken);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &broken);
    return arena_printf(arena, "%s.%03dZ", text, (int)(now_ms % 1000));
}

static void put_attribute(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, "\"%s\":{\"S\":", name);
    json_put_string(out, text);
    buf_byte(out, '}');
}

static bool put_message(struct slice table, struct slice queue, struct slice id, struct slice document,
                        int64_t now_ms, struct slice more, size_t more_bytes, struct buf *members,
                        size_t *bytes)
{
    struct arena arena = {0};
    struct slice sent = queues_time(&arena, now_ms);
    size_t size = NAMES_BYTES + queue.len + id.len + document.len + sent.len + more_bytes;
    bool fits = size <= LIMIT_ITEM_BYTES;
    if (fits) {
        *bytes += size;
        buf_text(members, "{\"Put\":{\"TableName\":");
        json_put_string(members, table);
        buf_text(members, ",\"Item\":{");
        put_attribute(members, "queue", queue);
        buf_byte(members, ',');
        put_attribute(members, "id", id);
        buf_byte(members, ',');
        put_attribute(members, "sent", sent);
        buf_byte(members, ',');
        put_attribute(members, "body", document);
        buf_slice(members, more);
        buf_text(members, "}}}");
    }
    arena_free(&arena);
    return fits;
}

bool queues_put(struct func *func, struct slice queue, struct slice id, struct slice document, int64_t now_ms,
                struct buf *members, size_t *bytes)
{
    return queues_put_more(func, queue, id, document, now_ms, SLICE_NONE, 0, members, bytes);
}

bool queues_put_more(struct func *func, struct slice queue, struct slice id, struct slice document,
                     int64_t now_ms, struct slice more, size_t more_bytes, struct buf *members, size_t *bytes)
{
    struct arena arena = {0};
    bool fits = put_message(queues_table(func, &arena), queue, id, document, now_ms, more, more_bytes, members,
                            bytes);
    arena_free(&arena);
    return fits;
}

bool queues_put_into(struct slice table, struct slice queue, struct slice id, struct slice document,
                     int64_t now_ms, struct buf *members, size_t *bytes)
{
    return put_message(table, queue, id, document, now_ms, SLICE_NONE, 0, members, bytes);
}
