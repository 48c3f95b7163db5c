/* Calls out over HTTP: many at once on one thread, with libcurl, which is loaded when the first client is
 * opened (why it is not linked: curl.h).
 *
 * Knows nothing of DynamoDB; the remote door, the targets of triggers and the command line use it. One
 * attempt is one call: whoever wants another makes one.
 *
 * Invariants:
 *  H1. A call belongs to the caller and stays, with all it points at, until `done`, which is called exactly
 *      once, on the client's thread.
 *  H2. At most `in_flight` calls are on the wire; more wait in order, and a call with a pause until it is
 *      over.
 *  H3. Connections are kept and used again; redirects are not followed. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

struct client;

struct client_options {
    const char *ca_file; /* certificates to trust; NULL: AWS_CA_BUNDLE, else the system's. Kept */
    uint32_t in_flight;  /* 0: 64; up to LIMIT_REMOTE_CALLS */
};

/* NULL and a sentence when there is no libcurl. */
struct client *client_open(const struct client_options *options, char *error, size_t error_len);
/* Ends what is under way (as CLIENT_BROKEN) and waits for it. No call may be begun any more, but by `done`,
 * where it ends at once in the same way. */
void client_close(struct client *client);

/* All pauses are over, now and from now on. From any thread. */
void client_hurry(struct client *client);

enum client_end {
    CLIENT_ANSWERED,    /* a whole reply came */
    CLIENT_UNCONNECTED, /* nobody there: nothing was sent */
    CLIENT_BROKEN,      /* the connection was lost or the time was over: the request may have been served */
    CLIENT_REFUSED,     /* by us: a certificate that is not trusted, a reply too long, no http(s) URL */
};

struct client_call {
    const char *method; /* "POST" */
    const char *url;
    const char *const *headers; /* "Name: value", ended by NULL; Host, Content-Length are made */
    struct slice body;
    int64_t pause_us;             /* to wait before it begins: between attempts */
    int64_t connect_ms, total_ms; /* time-outs, from when it goes on the wire; 0: 5 s, 60 s */
    size_t reply_max_bytes;       /* 0: LIMIT_REMOTE_REPLY_BYTES */
    struct arena *arena;
    struct buf *reply; /* the body is appended when a whole reply came */
    /* Called on the client's thread just before it goes on the wire; may set url, headers and body, with a
     * signature of that moment in them. May be NULL. */
    void (*prepare)(struct client_call *call);
    /* Takes the body of a reply with a good status as it comes, instead of `reply`; false ends the call. May be NULL.
     */
    bool (*piece)(struct client_call *call, struct slice bytes);
    /* Called with each header of the reply; may be NULL. */
    void (*header)(struct client_call *call, struct slice name, struct slice value);
    void (*done)(struct client_call *call);
    void *context;
    /* answers */
    enum client_end end;
    int status;           /* ANSWERED */
    bool timed_out;       /* UNCONNECTED, BROKEN: because the time was over */
    struct slice failure; /* otherwise: a sentence, in the arena */
    /* private */
    struct client_call *next;
    int64_t due_us;
    void *waiter;
};

void client_begin(struct client *client, struct client_call *call); /* from any thread */
/* Begins it and waits; `done` is not called. */
void client_call(struct client *client, struct client_call *call);

/* ---- credentials.c: who we are, by AWS's variables and files ---- */

struct credentials {
    struct slice access_key, secret_key, session_token; /* token.len 0: none */
    struct slice region;                                /* by variables and files; empty: they name none */
};

/* What somebody asks for by name; NULL: by the rules. */
struct credentials_wanted {
    const char *region, *access_key, *secret_key, *session_token, *profile;
};

/* Looks a variable of the environment up, as getenv does. */
typedef char *credentials_variable(const char *name);

/* The wanted keys, else the variables', else the profile's; empty when nobody names any. In the arena. False
 * and a sentence when something was asked for by name and is not there, or of no use. */
bool credentials_find(const struct credentials_wanted *wanted, credentials_variable *variable,
                      struct arena *arena, struct credentials *out, char *error, size_t error_len);

/* ---- sign.c: Signature Version 4 ---- */

struct signed_request {
    const struct credentials *credentials;
    struct slice method, service, region, host;
    struct slice path, query;          /* as they are sent; the query's names in order */
    /* Of their headers; empty: they are not sent. No further header that begins with x-amz- may be. */
    struct slice content_type, target, invocation_type, log_type;
    bool is_of_s3; /* the body's hash is a header, too (x-amz-content-sha256), and a path's escapes are its own */
    struct slice body;
    int64_t time_s; /* since 1970 */
};

#define SIGNED_DATE_BYTES 17 /* 20261115T034206Z and NUL */

/* Writes the values of the headers x-amz-date and Authorization (appended to *out). */
void signature_make(const struct signed_request *request, char date[SIGNED_DATE_BYTES], struct buf *out);

#endif
