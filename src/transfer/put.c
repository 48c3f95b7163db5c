/* Items into a table by PutItem, many in one hand-over to the writer: each is checked as any client's is, in the
 * service's words, and the writer syncs once for all of them. They are written in the order in which they come, so of
 * several with the same key the last stays. */
#include <semaphore.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/raw.h"
#include "transfer/jobs.h"

#define PUTS       256
#define PUTS_BYTES (4 * 1024 * 1024)

struct put {
    struct api_call call; /* its commit leads back to it */
    struct putter *putter;
    struct arena arena;
    struct buf reply, body;
    struct slice item; /* in body */
    uint64_t number;
};

struct putter {
    struct transfer *transfer;
    struct slice table;
    const struct operation *operation;
    struct put_listener listener;
    struct put puts[PUTS];
    uint32_t count;
    size_t bytes;
    uint64_t written;
    sem_t done;
};

struct putter *putter_open(struct transfer *transfer, struct slice table, struct put_listener listener)
{
    struct putter *putter = must_zero(1, sizeof *putter);
    *putter = (struct putter){.transfer = transfer,
                              .table = table,
                              .operation = api_operation_find(SLICE("PutItem")),
                              .listener = listener};
    ensure(putter->operation && sem_init(&putter->done, 0, 0) == 0);
    return putter;
}

void putter_close(struct putter *putter)
{
    for (unsigned i = 0; i < PUTS; i++) {
        arena_free(&putter->puts[i].arena);
        buf_free(&putter->puts[i].reply);
        buf_free(&putter->puts[i].body);
    }
    sem_destroy(&putter->done);
    free(putter);
}

uint64_t putter_written(const struct putter *putter)
{
    return putter->written;
}

bool putter_add(struct putter *putter, struct slice item, struct slice members, uint64_t number)
{
    struct put *put = &putter->puts[putter->count++];
    put->putter = putter;
    put->number = number;
    put->body.len = put->reply.len = 0;
    arena_reset(&put->arena);
    buf_text(&put->body, "{\"TableName\":");
    json_put_string(&put->body, putter->table);
    buf_text(&put->body, ",\"Item\":");
    size_t start = put->body.len;
    buf_slice(&put->body, item);
    buf_slice(&put->body, members);
    buf_byte(&put->body, '}');
    put->item = (struct slice){put->body.data + start, item.len};
    putter->bytes += put->body.len;
    return (putter->count < PUTS && putter->bytes < PUTS_BYTES) || putter_flush(putter);
}

static void put_done(struct commit *commit)
{
    struct put *put = (struct put *)(void *)((char *)commit - offsetof(struct put, call.commit));
    sem_post(&put->putter->done);
}

/* Answers whether the database goes on; a fault of the item is the item's. */
static bool take_answer(struct putter *putter, struct put *put)
{
    struct slice message, error = put->call.error ? slice_of(put->call.error) : SLICE_NONE;
    if (!error.len) {
        putter->written++;
        if (putter->listener.written)
            putter->listener.written(putter->listener.context, buf_view(&put->reply));
        return true;
    }
    if (slice_equal(error, SLICE("InternalServerError"))) return false;
    message = raw_string(&put->arena, raw_member(&put->arena, buf_view(&put->reply), "message"));
    if (!message.len)
        message = raw_string(&put->arena, raw_member(&put->arena, buf_view(&put->reply), "Message"));
    if (!message.len) message = error;
    putter->listener.failed(
        putter->listener.context,
        &(struct put_failure){.item = put->item,
                              .error = error,
                              .message = message,
                              .number = put->number,
                              .is_condition = slice_equal(error, SLICE("ConditionalCheckFailedException")),
                              .existing = raw_member(&put->arena, buf_view(&put->reply), "Item")});
    return true;
}

bool putter_flush(struct putter *putter)
{
    struct commit_list writes = {0};
    unsigned waiting = 0;
    bool fine = true;
    for (uint32_t i = 0; i < putter->count; i++) {
        struct put *put = &putter->puts[i];
        put->call = (struct api_call){.api = putter->transfer->api,
                                      .arena = &put->arena,
                                      .reply = &put->reply,
                                      .operation = putter->operation,
                                      .body = buf_view(&put->body),
                                      .is_transfer = true};
        api_begin(&put->call);
        if (!put->call.is_write) continue;
        put->call.commit.done = put_done;
        commit_list_add(&writes, &put->call.commit);
        waiting++;
    }
    if (waiting) engine_submit(putter->transfer->engine, &writes);
    while (waiting) waiting -= sem_wait(&putter->done) == 0;
    for (uint32_t i = 0; i < putter->count; i++) {
        struct put *put = &putter->puts[i];
        if (put->call.is_write) api_finish(&put->call);
        fine = take_answer(putter, put) && fine;
    }
    putter->count = 0;
    putter->bytes = 0;
    return fine;
}
