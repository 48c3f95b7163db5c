/* The inside of the remote door: its calls and their attempts.
 *
 * Between its begin and its `done` a call belongs to the client's thread, which makes one attempt after the
 * other. */
#ifndef DYNAMO_REMOTE_H
#define DYNAMO_REMOTE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/client.h"
#include "dynamo/internal.h"

#define REMOTE_DATE_BYTES 40 /* of the header Date */

/* Lives in its call's arena. */
struct remote_call {
    struct dynamo_call *call;
    struct remote *remote;
    struct remote_call *next; /* in its turn */
    struct slice operation;
    bool to_streams;
    bool keys_renewed, clock_corrected; /* each is a remedy once */
    unsigned attempts;                  /* made so far */
    size_t reply_start;
    struct buf nodes; /* the answer to the question what it is, see kind.c */
    /* the attempt */
    struct client_call http; /* body: the request, with its token */
    bool has_checksum;
    uint32_t checksum;
    char date[REMOTE_DATE_BYTES];
};

struct remote {
    struct dynamo door;
    struct client *client;
    struct arena arena; /* endpoint and options */
    struct endpoint endpoint;
    struct dynamo_options options; /* copied, defaults filled in */
    const struct clock *clock;

    _Atomic int kind; /* an enum dynamo_kind */
    _Atomic unsigned asked_in_vain;

    pthread_mutex_t lock; /* of the next one */
    struct random tokens;

    /* the client's thread's own */
    struct arena keys_arena;
    struct credentials keys;
    struct slice region;
    int64_t clock_offset_s;
    bool has_answered;
    struct random jitter;
};

/* ---- attempt.c ---- */

/* Fills the call's `http` for its first attempt, all but `done`. */
void attempt_init(struct remote_call *call, struct slice request);
/* What came of an attempt. The error's name and message are in the call's arena or its reply. */
void attempt_judge(struct remote_call *call, struct attempt *attempt, struct slice *message);

/* ---- remote.c ---- */

/* Begins the call itself, or refuses it, now that it is known what the endpoint is. On the client's thread. */
void remote_call_go(struct remote_call *call);
/* The call's `done`: takes another attempt, or answers. */
void remote_attempt_end(struct client_call *http);

/* Reads the keys again. True when they are others than before. */
bool remote_keys_renew(struct remote *remote);

/* ---- kind.c ---- */

enum dynamo_kind remote_kind(struct dynamo *dynamo);
enum dynamo_kind remote_kind_ask(struct dynamo *dynamo);
/* Fills the call's `http` with the question what the endpoint is; behind it comes remote_call_go. */
void kind_ask_first(struct remote_call *call);

#endif
