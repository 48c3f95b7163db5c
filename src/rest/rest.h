/* REST requests as values: what came, what is answered, and who answers it, without a socket in sight.
 *
 * The HTTP doors above DynamoDB's (Lambda's API, schedules, the resources under /v1) are rows of a table: a
 * method, a path with {names} in it, and a handler. A handler answers at once or later, on any thread, by
 * filling the call and calling its `done`. Whoever owns the socket (web) makes the calls and sends the
 * replies; a test makes them without one.
 *
 * Invariants:
 *  R1. A call belongs to whoever made it and stays, with its arena, until `done` was called; `done` is called
 *      exactly once, and the handler does not touch the call afterwards.
 *  R2. Path parameters and query values are handed out percent-decoded; a text that is not valid UTF-8 after
 *      decoding matches no route. */
#ifndef REST_REST_H
#define REST_REST_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/http.h"
#include "base/slice.h"
#include "base/workers.h"

#define REST_PARAMETERS 4 /* {names} of one path */

/* What the key of a caller may do, see role.c. */
enum rest_role { ROLE_ADMIN, ROLE_DATA, ROLE_READ };

struct rest_head;

struct rest_call {
    /* the request */
    struct slice method;      /* "GET" */
    struct slice path, query; /* still percent-encoded */
    struct slice body;
    struct slice (*header)(const struct rest_call *call, struct slice name); /* NULL data: not there */
    const struct rest_head *head; /* as it came; NULL: nobody needs it */
    struct slice peer; /* the address of whoever asks; empty: nobody needs it */
    bool is_secure;    /* it came by TLS */
    struct slice
        cause; /* the lineage of the function that calls us, see func.h; empty: somebody else calls */
    enum rest_role role;                  /* of whoever calls; the door has refused what it may not call */
    struct arena *arena;                  /* of this call, for the handler's use too */
    void (*done)(struct rest_call *call); /* from any thread */
    /* A reply in pieces, where the caller can take one (NULL: it cannot). The first call sends the head with
     * status, content_type and headers as they stand; `done` ends the reply and sends what is in `reply` as
     * its last piece. False: the client has gone. From any thread. */
    bool (*piece)(struct rest_call *call, struct slice bytes);
    /* Whether LIMIT_STREAM_WINDOW_BYTES of pieces wait for the client: whoever can wait should, until `taken`, which
     * the handler has set before its first piece; that is called on the call's loop, before `done` was. */
    bool (*is_full)(const struct rest_call *call);
    void (*taken)(struct rest_call *call);
    /* Whoever asked has closed its connection, so that nobody takes an answer. NULL: not known. On the thread
     * that the call came in by only. */
    bool (*gone)(const struct rest_call *call);
    /* Set by a handler that waits; called when that happens, on that thread, unless `done` was called before.
     */
    void (*left)(struct rest_call *call);

    /* the answer */
    int status;
    struct slice content_type; /* empty: application/json */
    struct slice headers;      /* ready lines, each ended by CRLF, in the arena */
    struct slice request_id;   /* of x-amzn-RequestId, in the arena; empty: any */
    bool is_bare;              /* `headers` and content_type are all there is: nothing of the server's own is added */
    bool is_torn; /* a reply in pieces that broke off: `done` closes the connection, without an end of the reply */
    struct buf *reply;

    /* filled by rest_route */
    struct slice parameters[REST_PARAMETERS]; /* in the order of the path */
    /* the handler's own */
    void *context;
};

struct rest_route {
    const char *method;
    const char *path; /* "/2015-03-31/functions/{name}/invocations"; a name takes one segment, {name+} all
                         that is left; a trailing slash makes no difference */
    void (*serve)(void *room, struct rest_call *call);
};

enum rest_found { REST_NOWHERE, REST_OTHER_METHOD, REST_FOUND };
/* Finds the row and fills the parameters. OTHER_METHOD: the path is there, but not for this method. */
enum rest_found rest_route(const struct rest_route *routes, size_t count, struct rest_call *call,
                           const struct rest_route **found);
/* The same where there are many rows. Those whose paths have the same first two segments ("/v1/jobs") must stand
 * together, and are found by these; no such segment is a {name}. */
#define REST_INDEX_PLACES 64
struct rest_index {
    struct {
        struct slice head; /* of rows `from` to `to` - 1; empty: there are none */
        uint16_t from, to;
    } places[REST_INDEX_PLACES];
};
void rest_index_make(struct rest_index *index, const struct rest_route *routes, size_t count);
enum rest_found rest_route_indexed(const struct rest_route *routes, const struct rest_index *index, size_t count,
                                   struct rest_call *call, const struct rest_route **found);

/* A value of the query, percent-decoded, in the arena; NULL data when it is not there. */
struct slice rest_query(const struct rest_call *call, const char *name);
/* The nth value of a name that may be repeated. */
struct slice rest_query_nth(const struct rest_call *call, const char *name, unsigned nth);
/* The first name in the query that `knows` does not, percent-decoded; NULL data: it knows all. */
struct slice rest_query_unknown(const struct rest_call *call,
                                bool (*knows)(const void *context, struct slice name), const void *context);
/* Percent-decodes; false when the escapes are broken or the result is not UTF-8. '+' stays '+'. */
bool rest_decode(struct arena *arena, struct slice text, struct slice *out);
/* Appends the text with everything escaped but letters, digits and -._~ */
void rest_encode(struct buf *out, struct slice text);
struct slice rest_encoded(struct arena *arena, struct slice text);
void rest_add_header(struct rest_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- a request's head, for what is decided before its body is read ---- */

/* Its first line and its header fields, as they came. */
struct rest_head {
    struct slice method, path, query; /* path and query still percent-encoded */
    const struct http_header *headers;
    uint32_t header_count;
};
/* The value of a header, or an empty slice with NULL data. */
struct slice rest_head_find(const struct rest_head *head, struct slice name);

/* ---- door.c: requests of foreign web pages are refused ---- */

/* Known are the loopback's names and addresses, the address that the server listens on and, where that is
 * more than the loopback, all addresses and the machine's name. */
struct rest_door;
struct rest_door *rest_door_new(const char *host);
void rest_door_free(struct rest_door *door);
/* What the flags of the same names say: one or several, with commas between. False and a sentence. */
bool rest_door_allow_origin(struct rest_door *door, const char *origins, char *error, size_t error_len);
bool rest_door_allow_host(struct rest_door *door, const char *hosts, char *error, size_t error_len);
/* False, and a sentence that names the flag which would let it in, for a request of a foreign page or by a
 * name that is not ours. A door that is NULL stands on the loopback and allows nothing else. */
bool rest_door_admits(const struct rest_door *door, const struct rest_head *head, char *reason,
                      size_t reason_len);
/* Only whether it came by a name that is ours; for what has rules of its own about pages. */
bool rest_door_knows_host(const struct rest_door *door, const struct rest_head *head, char *reason,
                          size_t reason_len);
/* The request's origin, where --allow-origin names it: the reply opens itself to that page. Else empty. */
struct slice rest_door_origin(const struct rest_door *door, const struct rest_head *head);

/* ---- signature.c: Signature Version 4, as a server checks it ---- */

/* ---- foreign.c: services of AWS's that are not here ---- */

/* A request to one of them is answered with a 400 that names those that are here, in the form that its SDK
 * understands: writes the reply, its type and further headers. False: it is to none of them. */
bool rest_foreign_put(const struct rest_head *head, struct arena *arena, struct buf *reply, struct slice *type,
                      struct slice *headers);

struct keyring;
struct keyring *keyring_new(void);
/* An admin's key. Copies all three; an empty token: none is asked for. */
void keyring_add(struct keyring *keyring, struct slice id, struct slice secret, struct slice token);
/* The keys of a file in the form of AWS's own credentials file, each with `role = data` or another, if it is not
 * admin. NULL and a sentence on failure. */
struct keyring *keyring_read(const char *path, char *error, size_t error_len);
void keyring_free(struct keyring *keyring);

enum signed_door { DOOR_DYNAMODB, DOOR_REST, DOOR_FUNCTION }; /* the service's name is part of a signature */
/* NULL when the request is signed by a known key; else the exception's short name, and its sentence in
 * *message. The body is the one that was sent, before gzip was undone. *role is the key's; may be NULL. */
const char *signature_fault(const struct keyring *keyring, const struct rest_head *head, struct slice body,
                            enum signed_door door, int64_t now_ms, struct arena *arena, struct slice *message,
                            enum rest_role *role);

/* ---- role.c ---- */

bool rest_role_find(struct slice name, enum rest_role *role);
const char *rest_role_name(enum rest_role role);
/* Whether the text is the name of a table of the server's own, its ARN, or that of what belongs to it. */
bool rest_role_owns_table(struct slice name, struct slice prefix);
/* Whether a DynamoDB operation, by its name, changes nothing. Statements (PartiQL) count as changes. */
bool rest_operation_only_reads(struct slice operation);
/* The same of a whole request: statements are looked at. And of all other paths. */
bool rest_request_only_reads(struct slice operation, struct slice body, struct arena *arena);
bool rest_path_only_reads(struct slice method, struct slice path);
/* Whether a DynamoDB call may be made; `prefix` is that of the server's own tables. False and a sentence. */
bool rest_role_admits_operation(enum rest_role role, struct slice operation, struct slice body,
                                struct slice prefix, struct arena *arena, struct slice *message);
/* The same for all other paths. What a pattern may be asked to do, the pattern looks after (rest_call.role). */
bool rest_role_admits_path(enum rest_role role, struct slice method, struct slice path, struct arena *arena,
                           struct slice *message);

/* ---- workers.c: handlers that wait for the door (they may simply call dynamo_call) ---- */

/* Runs serve(room, call) on one of the threads, in the order of submission. */
void rest_workers_run(struct workers *workers, void (*serve)(void *room, struct rest_call *call), void *room,
                      struct rest_call *call);

#endif
