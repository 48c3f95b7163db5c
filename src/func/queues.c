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
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "func/target.h"

#define NAMES_BYTES    (5 + 2 + 4 + 4) /* of the attributes, in the item's size */
#define TIME_BYTES     25
#define ACTIVE_TRIES   300 /* a new table is of use at once here, on the service after seconds */
#define ACTIVE_WAIT_US 100000

/* ---- making it ---- */

static void put_table_name(struct func *func, struct buf *out)
{
    struct arena arena = {0};
    json_put_string(out, arena_printf(&arena, "%.*squeues", SLICE_ARG(func->prefix)));
    arena_free(&arena);
}

/* Calls and answers the error's name, empty when all is well. */
static bool call_fine(struct func *func, struct slice operation, struct slice request, struct buf *reply,
                      const char *fine_error)
{
    struct arena arena = {0};
    struct slice name = SLICE_NONE, message = SLICE_NONE;
    reply->len = 0;
    bool fine = dynamo_call(func->options.dynamo, operation, request, reply) == 200;
    if (!fine) {
        dynamo_error(buf_view(reply), &arena, &name, &message);
        fine = fine_error && slice_equal(name, slice_of(fine_error));
        if (!fine && fine_error) log_line("the table of queues cannot be made: %.*s", SLICE_ARG(message));
    }
    arena_free(&arena);
    return fine;
}

static bool table_create(struct func *func, struct buf *request, struct buf *reply)
{
    buf_text(request, "{\"TableName\":");
    put_table_name(func, request);
    buf_text(request, ",\"BillingMode\":\"PAY_PER_REQUEST\",\"KeySchema\":["
                      "{\"AttributeName\":\"queue\",\"KeyType\":\"HASH\"},"
                      "{\"AttributeName\":\"id\",\"KeyType\":\"RANGE\"}],\"AttributeDefinitions\":["
                      "{\"AttributeName\":\"queue\",\"AttributeType\":\"S\"},"
                      "{\"AttributeName\":\"id\",\"AttributeType\":\"S\"}]}");
    return call_fine(func, SLICE("CreateTable"), buf_view(request), reply, "ResourceInUseException");
}

static bool table_is_active(struct func *func, struct buf *request, struct buf *reply)
{
    request->len = 0;
    buf_text(request, "{\"TableName\":");
    put_table_name(func, request);
    buf_byte(request, '}');
    return call_fine(func, SLICE("DescribeTable"), buf_view(request), reply, NULL) &&
           slice_contains(buf_view(reply), SLICE("\"TableStatus\":\"ACTIVE\""));
}

bool queues_make(struct func *func)
{
    if (atomic_load(&func->queues_are_made)) return true;
    struct buf request = {0}, reply = {0};
    bool active = table_is_active(func, &request, &reply);
    request.len = 0;
    if (!active && table_create(func, &request, &reply))
        for (int i = 0; i < ACTIVE_TRIES && !active; i++) {
            active = table_is_active(func, &request, &reply);
            if (!active) usleep(ACTIVE_WAIT_US);
        }
    buf_free(&request);
    buf_free(&reply);
    if (active) atomic_store(&func->queues_are_made, true);
    return active;
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
    struct slice table = arena_printf(&arena, "%.*squeues", SLICE_ARG(func->prefix));
    bool fits = queues_put_into(table, queue, id, document, now_ms, members, bytes);
    arena_free(&arena);
    return fits;
}
