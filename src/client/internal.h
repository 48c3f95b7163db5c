/* The inside of a client: the calls that wait, and the transfers that move one each.
 *
 * A call is handed over by any thread under the lock and from then on belongs to the client's thread until
 * its `done`. It is ready (in a queue), on the wire (a transfer has it) or waits until its pause is over. */
#ifndef CLIENT_INTERNAL_H
#define CLIENT_INTERNAL_H

#include <pthread.h>

#include "client/client.h"
#include "client/curl.h"

struct client_queue {
    struct client_call *first, *last;
};

/* One connection's worth of work: a handle of libcurl, used for one call after the other. */
struct transfer {
    CURL *easy;
    struct transfer *next; /* among the free ones, or those on the wire */
    struct client *client;
    struct client_call *call;
    struct curl_slist *headers;
    size_t reply_start, header_bytes;
    bool too_long;
    char failure[CURL_ERROR_SIZE];
};

struct client {
    const struct curl *curl;
    CURLM *multi;
    struct client_options options;
    pthread_t thread;

    pthread_mutex_t lock; /* of the next three */
    struct client_queue incoming;
    bool stopping, hurries;

    /* the thread's own */
    struct client_queue ready;
    struct client_call *waiting; /* the soonest first */
    struct transfer *transfers;  /* made when they are needed first, up to in_flight */
    uint32_t transfer_count;
    struct transfer *free;
};

/* ---- transfer.c ---- */

void transfer_init(struct transfer *transfer, struct client *client);
void transfer_free(struct transfer *transfer);
/* Prepares the call and hands it to libcurl. False when it cannot be sent: it has ended. */
bool transfer_start(struct transfer *transfer, struct client_call *call);
/* Writes into the call what came of it, and takes it off libcurl; free for another call. */
void transfer_end(struct transfer *transfer, CURLcode code);

/* ---- credentials.c ---- */

/* What a profile of one of AWS's files says; slices of its text. */
struct profile {
    struct slice access_key, secret_key, session_token, region;
    bool uses_more; /* roles, SSO, processes: what other tools can turn into keys, but not we */
};

/* False when the text has no such profile. The config file writes [profile NAME] for all but the default. */
bool profile_find(struct slice text, struct slice name, bool is_config, struct profile *out);

#endif
