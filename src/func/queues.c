/* The table of queues, PREFIXqueues: what targets and destinations put aside for somebody to fetch.
 *
 *   queue  (S)  hash key: the queue's name
 *   id     (S)  range key: in the order of time for a queue that is a target, else whatever makes it the same
 *               document when it is put twice
 *   body   (S)  the document, as JSON
 *   sent   (S)  when, "2026-11-15T03:42:06.123Z"
 *
 * A document is one item. What does not fit into one (LIMIT_ITEM_BYTES) is refused: whoever fetches from a
 * queue, with any client, need not know how to put pieces together. */
#include <stdio.h>
#include <time.h>

#include "base/limits.h"
#include "func/target.h"

#define NAMES_BYTES (5 + 2 + 4 + 4) /* of the attributes, in the item's size */
#define TIME_BYTES  25

/* ---- making it ---- */

static struct slice table_name(const struct func *func, struct arena *arena)
{
    return arena_printf(arena, "%.*squeues", SLICE_ARG(func->prefix));
}

bool queues_make(struct func *func)
{
    struct arena arena = {0};
    if (atomic_load(&func->queues_are_made)) return true;
    bool is_made = table_make(func, table_name(func, &arena), "queue", "id", 'S');
    arena_free(&arena);
    if (is_made) atomic_store(&func->queues_are_made, true);
    return is_made;
}

/* ---- filling it ---- */

static struct slice time_text(int64_t now_ms, char text[TIME_BYTES + 8])
{
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm broken;
    gmtime_r(&seconds, &broken);
    size_t len = strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &broken);
    snprintf(text + len, TIME_BYTES + 8 - len, ".%03dZ", (int)(now_ms % 1000));
    return slice_of(text);
}

static void put_attribute(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, "\"%s\":{\"S\":", name);
    json_put_string(out, text);
    buf_byte(out, '}');
}

bool queues_put_into(struct slice table, struct slice queue, struct slice id, struct slice document,
                     int64_t now_ms, struct buf *members, size_t *bytes)
{
    char time[TIME_BYTES + 8];
    struct slice sent = time_text(now_ms, time);
    size_t size = NAMES_BYTES + queue.len + id.len + document.len + sent.len;
    if (size > LIMIT_ITEM_BYTES) return false;
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
    buf_text(members, "}}}");
    return true;
}

bool queues_put(struct func *func, struct slice queue, struct slice id, struct slice document, int64_t now_ms,
                struct buf *members, size_t *bytes)
{
    struct arena arena = {0};
    bool fits = queues_put_into(table_name(func, &arena), queue, id, document, now_ms, members, bytes);
    arena_free(&arena);
    return fits;
}
