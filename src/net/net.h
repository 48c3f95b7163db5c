/* Sockets and HTTP/1.1: event loops on epoll, one thread each, that turn bytes into requests and replies into
 * bytes.
 *
 * Knows nothing of DynamoDB. A handler is called on the loop's thread with a whole request (headers and body
 * read, chunks joined, gzip undone); it answers at once or later. Requests of one connection are served one
 * after the other, in order, so a pipelining client sees its own writes.
 *
 * Invariants:
 *  N1. An exchange lives until http_reply or http_reply_end was called for it, also when its client has gone
 *      meanwhile.
 *  N2. Everything of a loop happens on its thread. net_post is the only function that other threads may call.
 *  N3. Every wait has a time-out and every size a limit (base/limits.h); a client that breaks one gets its
 *      status, then the connection is closed.
 *  N4. After all sockets that were ready have been read, the loop calls turn_end once: what was collected can
 *      then be handed on in one piece. Replies are written at the end of the turn, one system call per
 *      connection where possible. */
#ifndef NET_NET_H
#define NET_NET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/http.h"
#include "base/limits.h"
#include "base/slice.h"

struct net_loop;
struct net_server;

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_PATCH,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_OTHER
};

/* One request and its reply. Slices point into the exchange and live as long as it does. */
struct http_exchange {
    enum http_method method;
    struct slice method_text, target; /* target: as it came, with query */
    struct slice path, query;         /* split at '?', still percent-encoded */
    struct http_header *headers;
    uint32_t header_count;
    struct slice body;      /* decoded */
    struct slice body_sent; /* before gzip was undone: what a signature covers */
    struct arena arena;     /* of this request; for the handler's use too */
    struct buf reply;       /* the reply's body, filled by the handler before http_reply */
    struct net_loop *loop;
    int64_t began_us; /* monotonic, when the request was whole */
    void *user;       /* the handler's own */
    /* Set by a handler that waits for something: called once on the loop's thread when the client leaves (see
     * http_client_left) before the reply. It must not answer within. NULL: nobody cares. */
    void (*left)(struct http_exchange *exchange);
    /* Set by a handler that replies in pieces: called on the loop's thread each time when all pieces so far are
     * written, and when the connection is closed. It must not answer within. NULL: nobody waits for that. */
    void (*sent)(struct http_exchange *exchange);
    /* Set by the handler before http_reply: what was asked for is done, and a client that is told to try again would
     * do it twice. */
    bool has_acted;
};

/* The value of a header, or an empty slice with NULL data. */
struct slice http_header_find(const struct http_exchange *exchange, struct slice name);
/* The same for the fields that followed a chunked body. */
struct slice http_trailer_find(const struct http_exchange *exchange, struct slice name);

/* Sends exchange->reply with this status. extra_headers: ready lines, each ended by CRLF, may be empty. Sets
 * Content-Length, Date, Connection; gzips the body when it is large and the client accepts it; leaves the
 * body out for HEAD. A large reply that does not fit limits.unread_bytes beside those that wait for their
 * clients becomes a 503; with has_acted, one that does not fit LIMIT_ACTED_TIMES of it. The exchange is gone
 * afterwards. On the loop's thread only. */
void http_reply(struct http_exchange *exchange, int status, struct slice content_type,
                struct slice extra_headers);

/* For a handler that is about to do what it cannot take back, and whose reply may be large: where there is no room
 * for one it does nothing and answers 503 with http_reply_crowded. So there is room for those under way. */
bool http_has_room(const struct http_exchange *exchange);
void http_reply_crowded(struct http_exchange *exchange);

/* Compresses the reply's body now, where http_reply would; for a handler that must see the bytes as they are
 * sent, for a checksum of them. True when it was compressed. Once called, the body must not change. */
bool http_reply_pack(struct http_exchange *exchange);

/* ---- a reply in pieces (chunked), for what goes on for a while: on the loop's thread, like http_reply ----
 */

/* Sends the head; the exchange's `reply` is its first piece. Never compressed. */
void http_reply_begin(struct http_exchange *exchange, int status, struct slice content_type,
                      struct slice extra_headers);
/* Sends a piece. False when the client has gone, or takes nothing any more (limits.send_ms,
 * LIMIT_PIECES_BYTES that wait for it, limits.unread_bytes that wait for all): end it then. */
bool http_reply_piece(struct http_exchange *exchange, struct slice bytes);
/* The exchange is gone afterwards. */
void http_reply_end(struct http_exchange *exchange);
/* The same where the reply broke off: the connection is closed without a last chunk, so that the client knows. */
void http_reply_tear(struct http_exchange *exchange);

/* True when the client has closed its connection, or its side of it, while the handler has the exchange. */
bool http_client_left(const struct http_exchange *exchange);

/* The address that the client has connected from, without its port; "" where it cannot be known any more. */
#define HTTP_PEER_BYTES 48
void http_peer(const struct http_exchange *exchange, char out[HTTP_PEER_BYTES]);
/* True when the client takes a reply in gzip's form. */
bool http_takes_gzip(const struct http_exchange *exchange);
/* True when the request came by TLS. */
bool http_is_secure(const struct http_exchange *exchange);

/* Asked when a request's head is whole, before its body is read or asked for: 0 lets it in, else it is the status
 * of the refusal, after which the connection is closed, with its sentence in `reason`. The exchange has no body
 * yet. On the loop's thread. */
typedef int net_admit(void *context, const struct http_exchange *exchange, char *reason, size_t reason_len);

struct net_handler {
    void (*request)(void *context, struct http_exchange *exchange);
    net_admit *admit;                                       /* NULL: all are let in */
    void (*turn_end)(void *context, struct net_loop *loop); /* may be NULL */
    /* The reply to a request that HTTP itself refuses (too large, malformed, too slow, wrong length): fills
     * *body, may choose another status, and answers the body's content type. */
    struct slice (*refusal)(void *context, int *status, const char *reason, struct buf *body);
    /* The server is about to stop: whatever waits for long should be answered now. May be NULL. */
    void (*draining)(void *context);
    /* How large the body of a request may be, by its target; NULL: limits.body_bytes for all. */
    uint64_t (*body_limit)(void *context, enum http_method method, struct slice target);
    void *context;
};

struct net_limits {
    uint64_t body_bytes, buffered_bytes, unread_bytes, header_bytes, header_count;
    uint64_t connections, guests; /* of clients; by all further ports */
    int64_t header_ms, body_ms, idle_ms, send_ms, send_pressed_ms, drain_ms;
};
extern const struct net_limits net_limits_default;

struct net_options {
    const char *host;
    uint16_t port; /* 0: any; net_server_port tells */
    unsigned threads;
    const char *tls_cert, *tls_key; /* files, or NULL for plain HTTP */
    struct net_limits limits;
    struct net_handler handler;
};

/* Binds and listens; serves nothing yet. NULL and one clear sentence on failure (port in use, bad
 * certificate, ...). */
struct net_server *net_server_new(const struct net_options *options, char *error, size_t error_len);
uint16_t net_server_port(const struct net_server *server);
/* Runs the loops until net_server_stop; the calling thread is the first of them. */
void net_server_run(struct net_server *server);
/* Stop accepting, finish what is in flight within drain_ms, return from net_server_run. Async-signal-safe. */
void net_server_stop(struct net_server *server);
void net_server_free(struct net_server *server);

/* ---- further ports of a running server ---- */

/* A port on 127.0.0.1, of the system's choice, whose requests have a handler of their own: plain HTTP, no
 * limit of time between requests or within one (the server closes nothing that a quiet process behind it
 * keeps open), limits of its own for connections, headers and buffers (LIMIT_PORT_...), and its connections
 * do not hold up the end of net_server_run, but are served until then. Requests forwarded to the server's own
 * handler share its turn. From any thread. */
struct net_port;
/* Somebody who has connected to a guarded port and is not heard yet. */
struct net_guest;
struct net_port_handler {
    void (*request)(void *context, struct http_exchange *exchange);
    /* Asked about each who connects, on the first loop's thread: net_guest_decide must be called for it, once,
     * now or later, also when the port is closed meanwhile. NULL: everybody is welcome. */
    void (*guard)(void *context, struct net_guest *guest);
    net_admit *admit; /* NULL: all requests are let in */
    /* Bodies that are handed over as they come; NULL: none is. `streams` is asked when the head of a request with a
     * chunked body is whole. After a true, `piece` takes the body; its false stops the reading until http_body_resume.
     * Then follows `request`, with an empty body, or `torn`: the request did not come to its end and is gone. The
     * headers are valid in `streams` and `request` only. On the loop's thread. */
    bool (*streams)(void *context, struct http_exchange *exchange);
    bool (*piece)(void *context, struct http_exchange *exchange, struct slice bytes);
    void (*torn)(void *context, struct http_exchange *exchange);
    void *context;
};
/* On the loop's thread, between `streams` and `request` or `torn`. */
void http_body_resume(struct http_exchange *exchange);
struct net_port *net_port_open(struct net_server *server, const struct net_port_handler *handler, char *error,
                               size_t error_len);
/* The port that the guest has connected from; 0: that is not on 127.0.0.1. And the one that it came to. */
uint16_t net_guest_peer_port(const struct net_guest *guest);
uint16_t net_guest_server_port(const struct net_guest *guest);
/* It is served, if its connection is still there; else it is closed unheard. From any thread. */
void net_guest_decide(struct net_guest *guest, bool is_welcome);
uint16_t net_port_number(const struct net_port *port);
/* Closes it and its connections; before net_server_free. The handler may still be called until `closed` was
 * (which may be NULL), on the first loop's thread; before net_server_run and after it, it is called at once.
 * From any thread. */
void net_port_close(struct net_port *port, void (*closed)(void *context));
/* The context of the port that an exchange came by; NULL: the server's own. */
void *net_port_context(const struct http_exchange *exchange);

/* Something to run on a loop's thread. Belongs to the caller until it has run. */
struct net_task {
    void (*run)(struct net_task *task);
    struct net_task *next;
};

/* From any thread, in order for each caller. After net_server_run has returned, it is run at once, on the
 * caller's. */
void net_post(struct net_loop *loop, struct net_task *task);
/* The handler's own pointer per loop, e.g. the list of writes collected this turn. */
void *net_loop_user(struct net_loop *loop);
void net_loop_set_user(struct net_loop *loop, void *user);
/* 0 .. threads - 1 */
unsigned net_loop_index(const struct net_loop *loop);

struct net_stats {
    _Atomic uint64_t connections_open, connections_total, refused, bytes_in, bytes_out, timeouts, displaced, deferred,
        moved; /* from one loop to another */
};
const struct net_stats *net_server_stats(const struct net_server *server);
/* How many connections a loop serves, those of further ports too. */
unsigned net_server_loop_connections(const struct net_server *server, unsigned index);

#endif
