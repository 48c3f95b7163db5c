/* What the files of this room share: the server, its loops, their connections, and the exchange that a busy
 * connection holds.
 *
 * A connection between requests is a small struct and a socket, nothing else: ten thousand idle clients cost
 * little. All buffers belong to the exchange, which a connection takes from its loop's spares when bytes
 * arrive and gives back when everything was answered, so that a busy server allocates nothing.
 *
 * Invariants:
 *  N5. A connection stands in exactly one state and in the list of that state; it moves as connection_moves
 *      allows.
 *  N6. A connection is registered with epoll once, edge-triggered; `readable` remembers an edge until a read
 *      came back short.
 *  N7. Bytes in exchange->input do not move while the handler has the exchange: nothing is read meanwhile.
 *  N8. A closed connection is freed at the end of the turn, because events of the same turn may still point
 *      to it. */
#ifndef NET_INTERNAL_H
#define NET_INTERNAL_H

#include <openssl/types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "net/gzip.h"
#include "net/http_parse.h"
#include "net/net.h"

/* ---- lists: circular, the head is a link too ---- */
struct link {
    struct link *prev, *next;
};

static inline void link_init(struct link *link)
{
    link->prev = link->next = link;
}

static inline bool link_empty(const struct link *head)
{
    return head->next == head;
}

static inline void link_remove(struct link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link_init(link);
}

static inline void link_append(struct link *head, struct link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

#define link_owner(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

struct tls;

/* ---- what epoll watches: the first member of each tells which it is ---- */
enum watched { WATCHED_LISTENER, WATCHED_CONNECTION };

struct listener {
    enum watched watched;
    int fd;
    struct net_port *port; /* NULL: the server's own */
};

/* A further port. What is not marked otherwise belongs to the first loop; port.c tells how it ends. */
struct net_port {
    struct listener listener;
    struct net_server *server;
    struct net_port_handler handler;
    uint16_t number;
    struct link guests;               /* who waits for the guard's word; the first loop's */
    struct link all;                  /* in the server's ports */
    struct net_task opening, closing; /* carry it from loop to loop */
    unsigned closing_loop;            /* where its connections are closed next */
    void (*closed)(void *context);
    _Atomic unsigned connection_count;
    _Atomic uint64_t buffered_bytes; /* like the server's: what a function sends, or does not read, ... */
    _Atomic uint64_t unread_bytes;   /* ... hurts only itself */
    struct link connections[];       /* of each loop, touched by its thread only */
};

/* ---- connections ---- */
enum connection_state {
    CONNECTION_NEW,       /* on its way to its loop */
    CONNECTION_HANDSHAKE, /* TLS is being agreed */
    CONNECTION_IDLE,      /* between requests */
    CONNECTION_HEAD,      /* a request's head has begun */
    CONNECTION_BODY,      /* its head is whole, its body not */
    CONNECTION_BUSY,      /* the handler has the exchange */
    CONNECTION_SEND,      /* replies wait to be written */
    CONNECTION_LINGER,    /* our side is shut; what the client still sends is thrown away */
    CONNECTION_GONE,      /* the socket is closed, the handler still has the exchange */
    CONNECTION_CLOSED,    /* to be freed at the end of the turn */
    CONNECTION_STATES,
};

struct connection {
    enum watched watched;
    struct link by_state;
    struct link queue;   /* in its loop's unsent or unread, or in neither */
    struct link by_port; /* in its port's connections */
    struct net_loop *loop;
    struct population *population;
    struct net_port *port;     /* that it came by; NULL: the server's own, or the port is closed */
    struct exchange *exchange; /* NULL when idle */
    SSL *tls;
    struct net_task adopt; /* carries it to its loop */
    int64_t deadline_us;
    int fd;
    enum connection_state state;
    bool readable;         /* the socket may hold bytes that were not read */
    bool drained;          /* TLS: the last read of the socket itself came back short */
    bool half_closed;      /* the client sends no more; a short read does not mean that all was read */
    bool ended;            /* the end of the client's bytes was read */
    bool closing;          /* close once everything is written */
    bool lingering;        /* ... and let the client finish sending first, or it would not see our reply */
    bool stuck;            /* the last write did not take everything */
    bool is_long;          /* its last request took long: one such connection is served in a turn */
    uint32_t window;       /* in which it last sent a request (balance.c) */
    int64_t taken_us;      /* stuck: when the client last took something */
    int64_t written_bytes; /* in its whole life */
    int64_t taken_bytes;   /* of these, as seen when we last looked whether it takes its reply */
};

/* Connections by state. Each loop has two: clients of the server, and those that came by further ports, whose
 * times differ and whom the end does not wait for. */
struct population {
    struct link by_state[CONNECTION_STATES];
    int64_t state_us[CONNECTION_STATES]; /* how long a connection may stay; 0: for ever */
};

/* A request, its reply, and all buffers of a connection that is not idle. */
struct exchange {
    struct http_exchange http; /* first: the handler's pointer is ours */
    struct connection *connection;
    struct exchange *next_spare;
    struct http_head head;
    struct http_chunks chunks;
    struct buf input;     /* bytes of this request and of those that follow */
    size_t input_at;      /* where this request begins */
    size_t body_bytes;    /* of the body as it stands behind the head */
    size_t scanned_bytes; /* of an unfinished head that hold no end */
    uint64_t body_max;    /* how large this request's body may be */
    struct buf inflated;  /* the body, where it came compressed */
    struct buf trailer;   /* the lines that followed a chunked body */
    struct buf out;       /* reply heads and small bodies, in order; then... */
    struct buf out_body;  /* ... one large body, taken over from reply */
    size_t out_sent;      /* of both together */
    size_t charged_bytes; /* what it holds of the buffered_bytes of the server or the port, ... */
    size_t unread_bytes;  /* ... and of their unread_bytes */
    void *port_context;   /* of the port, which may be closed before the request is answered */
    bool head_whole;
    bool moved; /* input moved since the head was parsed: its slices are stale */
    bool continue_sent;
    bool packed;  /* it was decided whether the reply is compressed ... */
    bool gzipped; /* ... and it is */
    bool begun;   /* the reply goes out in pieces ... */
    bool chunked; /* ... each as a chunk ... */
    bool bare;    /* ... or none of them does, because such a reply has no body */
    bool streams; /* its body is handed over as it comes ... */
    bool paused;  /* ... and nobody takes more of it now */
};

/* ---- loops ---- */
struct net_loop {
    struct net_server *server;
    unsigned index;
    int epoll_fd, wake_fd;
    pthread_t thread;
    _Atomic(struct net_task *) tasks; /* newest first */
    _Atomic bool asleep;              /* in epoll_wait, or about to be */
    _Atomic unsigned connection_count;
    int64_t now_us;                    /* monotonic, of this turn */
    struct population clients, guests; /* who came by the server's own port; by further ones */
    struct link unsent;                /* with something to write at the end of this turn */
    struct link unread;                /* to be looked at in the next turn without waiting */
    struct exchange *spares;
    unsigned spare_count;
    struct gzip gzip;
    char date[64]; /* a whole header line */
    size_t date_len;
    int64_t date_until_us;
    uint64_t bytes_in, bytes_out; /* of this turn */
    int64_t accept_again_us;      /* 0, or when to try again after running out of descriptors */
    int64_t press_again_us;       /* when to look again for clients that do not take their replies */
    int64_t drain_until_us;
    uint32_t window;         /* of time, in which connections are counted (balance.c) ... */
    unsigned active;         /* ... those that sent a request in it ... */
    unsigned surplus;        /* ... and how many of them another loop had better have ... */
    struct net_loop *relief; /* ... which is this one */
    _Atomic uint64_t load;   /* the last window, and below it how many were active then */
    bool long_served;        /* in this turn */
    bool draining;
    bool drained; /* its clients are served; it goes on while others are not */
    void *user;
};

struct net_server {
    struct net_limits limits;
    struct net_handler handler;
    struct net_stats stats;
    struct tls *tls; /* NULL: plain HTTP */
    struct listener listeners[LIMIT_LISTENERS];
    unsigned listener_count;
    uint16_t port;
    unsigned loop_count, next_loop;
    struct net_loop *loops;
    _Atomic uint64_t guests_open;    /* connections by further ports */
    int64_t crowded_logged_us;       /* when the log last told that there are too many; the first loop's */
    _Atomic uint64_t buffered_bytes; /* by requests too large for a spare exchange's buffers ... */
    _Atomic uint64_t unread_bytes;   /* ... and by such replies */
    _Atomic bool stopping;
    _Atomic unsigned undrained;   /* loops whose clients are not all served yet */
    struct link ports;            /* the first loop's, or of whoever holds the lock when none runs */
    _Atomic bool over;            /* net_server_run has returned */
    pthread_mutex_t over_lock;    /* recursive: what is run may post */
    pthread_mutex_t running_lock; /* what is posted while `running` is surely run */
    bool running;
};

/* ---- server.c, listen.c ---- */
/* Fills listeners and port. */
bool net_listen(struct net_server *server, const char *host, uint16_t port, char *error, size_t error_len);
/* A socket that listens on some port of 127.0.0.1; -1 and a sentence. */
int net_listen_loopback(uint16_t *port, char *error, size_t error_len);

/* ---- port.c ---- */
/* Has the guard decide about a new connection. */
void port_receive(struct net_port *port, int fd, uint16_t peer_port);
/* For the first loop: all further ports' sockets into epoll, or out of it. */
void ports_listen(struct net_loop *loop, bool on);

/* ---- loop.c ---- */
void loop_init(struct net_loop *loop, struct net_server *server, unsigned index);
void loop_free(struct net_loop *loop);
void loop_run(struct net_loop *loop);
void loop_run_tasks(struct net_loop *loop);
void loop_wake(struct net_loop *loop);

/* ---- accept.c ---- */
void listener_watch(struct net_loop *loop, struct listener *listener, bool on);
void loop_listen(struct net_loop *loop);
/* No more clients; guests may still come. */
void loop_listen_end(struct net_loop *loop);
void loop_accept(struct net_loop *loop, const struct listener *listener);
/* A connection that was accepted, to the loop that serves it. */
void loop_place(struct net_loop *loop, int fd, struct net_port *port);
/* Has its loop adopt it, which is another than the caller's. */
void connection_send_home(struct connection *connection);
/* After a pause for want of descriptors. */
void loop_accept_resume(struct net_loop *loop);

/* ---- balance.c ---- */
void balance_init(struct net_loop *loop);
/* The connection has sent a request. */
void balance_note(struct connection *connection);
/* At the beginning and the end of each turn. */
void balance_begin(struct net_loop *loop);
void balance_end(struct net_loop *loop);

/* ---- timer.c ---- */
void timer_init(struct net_loop *loop);
/* Moves the connection to a state; the state's time begins now, unless it stands there already. */
void connection_enter(struct connection *connection, enum connection_state state);
/* The state's time begins anew. */
void connection_stay(struct connection *connection);
/* True when connections are so many that idle ones must make room. */
bool server_is_crowded(const struct net_server *server);
/* Milliseconds until the first time-out, -1 for never. */
int timer_wait_ms(const struct net_loop *loop);
void timer_expire(struct net_loop *loop);

/* ---- connection.c ---- */
struct connection *connection_new(int fd, struct net_loop *loop, struct net_port *port);
/* On its loop's thread: registers with epoll. */
void connection_adopt(struct connection *connection);
void connection_event(struct connection *connection, uint32_t events);
/* Reads, parses and hands over as much as there is and fairness allows. */
void connection_advance(struct connection *connection);
void connection_flush(struct connection *connection);
/* Writes all there is, or as much as the socket takes. False when the connection is broken. */
bool connection_write(struct connection *connection);
/* Something to write: at the end of this turn. */
void connection_write_later(struct connection *connection);
void connection_refuse(struct connection *connection, int status, const char *reason);
void connection_timeout(struct connection *connection);
/* True when the client took a fair amount of its reply since the last call. */
bool connection_takes_reply(struct connection *connection);
/* True when it came by a further port. */
static inline bool connection_is_guest(const struct connection *connection)
{
    return connection->population == &connection->loop->guests;
}
/* Closes the socket; the struct follows at the end of the turn, or when the handler has answered. */
void connection_close(struct connection *connection);
void connection_free(struct connection *connection);

/* ---- request.c ---- */
/* Makes what has arrived into a request as far as it goes; moves the connection to HEAD or BODY when bytes
 * are missing and refuses what is wrong. */
enum http_progress request_parse(struct connection *connection);
/* Hands the whole request to the handler. */
void request_hand_over(struct connection *connection);
/* A body that is handed over as it comes will not come to its end. */
void request_tear(struct connection *connection);
/* Room for the next read behind the bytes that have arrived; false when all connections together hold too
 * much. */
bool request_make_room(struct exchange *exchange);
static inline bool request_pending(const struct exchange *exchange)
{
    return exchange && exchange->input.len > exchange->input_at;
}

/* ---- exchange.c ---- */
struct exchange *exchange_take(struct connection *connection);
/* Brings what the request holds in large buffers to the server's account; false when that exceeds the limit.
 */
bool exchange_charge(struct exchange *exchange);
/* The same for its reply and what else waits to be written. */
bool exchange_charge_unread(struct exchange *exchange);
/* Everything was written. */
void exchange_sent(struct exchange *exchange);
/* Back to the spares; what it held is forgotten. */
void exchange_release(struct exchange *exchange);
/* The request was answered: ready for the next one of the same connection, whose bytes and replies stay. */
void exchange_next(struct exchange *exchange);
void exchange_free(struct exchange *exchange);
static inline size_t exchange_unsent(const struct exchange *exchange)
{
    return exchange->out.len + exchange->out_body.len - exchange->out_sent;
}

/* ---- http_reply.c ---- */
enum reply_framing { FRAMING_LENGTH, FRAMING_CHUNKS, FRAMING_NONE };
/* What goes behind all that the connection has to write. */
static inline struct buf *exchange_output(struct exchange *exchange)
{
    /* What follows a body that was taken over can only go behind it. */
    return exchange->out_body.len ? &exchange->out_body : &exchange->out;
}
void reply_put_head(struct exchange *exchange, int status, struct slice content_type,
                    struct slice extra_headers, enum reply_framing framing);
/* The request is answered: makes the exchange ready for the next and has the connection write. */
void reply_finish(struct exchange *exchange);
/* Whether the connection ends with this reply. */
void reply_decide_end(struct exchange *exchange);
/* Puts the reply in exchange->http.reply into the connection's output. */
void reply_put(struct exchange *exchange, int status, struct slice content_type, struct slice extra_headers);

/* ---- tls.c ---- */
struct tls *tls_new(const char *cert, const char *key, char *error, size_t error_len);
void tls_free(struct tls *tls);
bool tls_attach(struct connection *connection);
/* Each answers bytes, 0 for "later", -1 for an end of the connection (read: also its orderly end).
 * tls_handshake: 1 done. */
int tls_handshake(struct connection *connection);
ssize_t tls_read(struct connection *connection, void *data, size_t len);
ssize_t tls_write(struct connection *connection, const void *data, size_t len);
/* Tells the client that no more follows. */
void tls_end(struct connection *connection);

#endif
