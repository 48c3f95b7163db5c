/* The inside of the remote door: calls, transfers, and the thread that moves them.
 *
 * A call is handed over by any thread under the lock and from then on belongs to the door's thread until its
 * `done`. It is ready (in a queue), on the wire (a transfer has it) or waits for its next attempt. */
#ifndef DYNAMO_REMOTE_H
#define DYNAMO_REMOTE_H

#include <pthread.h>

#include "dynamo/curl.h"
#include "dynamo/internal.h"

#define REMOTE_DATE_BYTES 40 /* of the header Date */

/* Lives in its call's arena. */
struct remote_call {
    struct dynamo_call *call;
    struct remote_call *next;
    struct slice operation, request;
    bool to_streams;
    bool keys_renewed, clock_corrected; /* each is a remedy once */
    unsigned attempts;                  /* made so far */
    int64_t due_us;                     /* of the next one, when it waits */
    size_t reply_start;
};

struct remote_queue {
    struct remote_call *first, *last;
};

/* One connection's worth of work: a handle of libcurl, used for one attempt after the other. */
struct transfer {
    CURL *easy;
    struct transfer *next_free;
    struct remote *remote;
    struct remote_call *call;
    struct curl_slist *headers;
    struct buf line; /* for making headers */
    char failure[CURL_ERROR_SIZE];
    /* of the reply */
    bool too_long, has_checksum;
    uint32_t checksum;
    char date[REMOTE_DATE_BYTES];
};

struct remote {
    struct dynamo door;
    const struct curl *curl;
    CURLM *multi;
    struct arena arena; /* endpoint and options */
    struct endpoint endpoint;
    struct dynamo_options options; /* copied, defaults filled in */
    const struct clock *clock;
    pthread_t thread;

    pthread_mutex_t lock; /* of the next three */
    struct remote_queue incoming;
    bool stopping;
    struct random tokens;

    /* the thread's own */
    struct remote_queue ready;
    struct remote_call *waiting; /* the soonest first */
    struct transfer *transfers, *free;
    struct arena keys_arena;
    struct credentials keys;
    struct slice region;
    int64_t clock_offset_s;
    bool has_answered;
    struct random jitter;
};

static inline void queue_add(struct remote_queue *queue, struct remote_call *call)
{
    call->next = NULL;
    *(queue->last ? &queue->last->next : &queue->first) = call;
    queue->last = call;
}

static inline struct remote_call *queue_take(struct remote_queue *queue)
{
    struct remote_call *call = queue->first;
    if (!call) return NULL;
    queue->first = call->next;
    if (!queue->first) queue->last = NULL;
    return call;
}

/* ---- transfer.c: an attempt on the wire ---- */

void transfer_init(struct transfer *transfer, struct remote *remote);
void transfer_free(struct transfer *transfer);
/* Signs the call and hands it to libcurl. */
void transfer_start(struct transfer *transfer, struct remote_call *call);
/* What came of it. The error's name and message are in the call's arena or its reply. */
void transfer_judge(struct transfer *transfer, CURLcode code, struct attempt *attempt, struct slice *message);
/* Takes it off libcurl; free for another call. */
void transfer_end(struct transfer *transfer);

/* ---- remote.c ---- */

/* Reads the keys again. True when they are others than before. */
bool remote_keys_renew(struct remote *remote);

#endif
