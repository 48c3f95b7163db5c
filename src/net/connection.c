/* One client's socket: reads when an edge said so, hands requests over one at a time, writes what was
 * answered at the end of the turn. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/stats.h"
#include "net/internal.h"

#define ADVANCE_STEPS 64 /* reads and requests of one connection before the others have their turn */

struct connection *connection_new(int fd, struct net_loop *loop, struct net_port *port)
{
    struct connection *connection = must_zero(1, sizeof *connection);
    connection->watched = WATCHED_CONNECTION;
    connection->fd = fd;
    connection->loop = loop;
    connection->population = port ? &loop->guests : &loop->clients;
    connection->port = port;
    link_init(&connection->by_state);
    link_init(&connection->by_port);
    link_init(&connection->queue);
    if (port) {
        atomic_fetch_add_explicit(&port->connection_count, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&loop->server->guests_open, 1, memory_order_relaxed);
    } else {
        stats_add(&loop->server->stats.connections_open, 1);
        stats_add(&loop->server->stats.connections_total, 1);
    }
    atomic_fetch_add_explicit(&loop->connection_count, 1, memory_order_relaxed);
    return connection;
}

void connection_adopt(struct connection *connection)
{
    struct net_loop *loop = connection->loop;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    struct net_port *port = connection->port;
    if (port) link_append(&port->connections[loop->index], &connection->by_port);
    bool needs_tls = !port && loop->server->tls && !connection->tls;
    bool fine = (port || !loop->draining) && (!needs_tls || tls_attach(connection)) &&
                epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) == 0;
    if (fine)
        connection_enter(connection, needs_tls ? CONNECTION_HANDSHAKE : CONNECTION_IDLE);
    else
        connection_close(connection);
}

static bool has_unsent(const struct connection *connection)
{
    return connection->exchange && exchange_unsent(connection->exchange) > 0;
}

/* The handler may wait for something on behalf of a client that is not there any more. */
static void tell_left(struct connection *connection)
{
    bool has_handler = connection->state == CONNECTION_BUSY || connection->state == CONNECTION_GONE;
    if (!has_handler || !connection->exchange) return;
    struct http_exchange *http = &connection->exchange->http;
    void (*left)(struct http_exchange *) = http->left;
    http->left = NULL;
    if (left) left(http);
}

static void tell_sent(struct connection *connection)
{
    struct http_exchange *http = &connection->exchange->http;
    if (http->sent) http->sent(http);
}

void connection_event(struct connection *connection, uint32_t events)
{
    if (connection->state == CONNECTION_CLOSED || connection->state == CONNECTION_GONE) return;
    if (events & (EPOLLERR | EPOLLHUP)) {
        connection_close(connection);
        return;
    }
    if (events & EPOLLRDHUP) {
        connection->half_closed = true;
        tell_left(connection);
    }
    /* TLS may have to read in order to write and the reverse, so there every event is worth a try. */
    if (events & (EPOLLIN | EPOLLRDHUP) || connection->tls) connection->readable = true;
    connection->drained = false;
    if (has_unsent(connection)) connection_write_later(connection);
    connection_advance(connection);
}

/* ---- reading ---- */
/* Bytes, 0 for "later", -1 when the client sends no more. */
static ssize_t socket_read(struct connection *connection, void *data, size_t len)
{
    if (connection->tls) return tls_read(connection, data, len);
    ssize_t count = recv(connection->fd, data, len, 0);
    if (count > 0) return count;
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

/* The client's side has ended: what was answered may still be written, an unfinished request is dropped. */
static void connection_end(struct connection *connection)
{
    connection->readable = false;
    connection->ended = connection->closing = true;
    if (!has_unsent(connection)) connection_close(connection);
}

/* One read into the exchange's input; false when nothing came. */
static bool connection_fill(struct connection *connection)
{
    struct exchange *exchange = connection->exchange ? connection->exchange : exchange_take(connection);
    if (!request_make_room(exchange)) {
        connection_refuse(connection, 503, "too many large requests at once");
        return false;
    }
    struct buf *input = &exchange->input;
    size_t room = input->cap - input->len;
    ssize_t count = socket_read(connection, input->data + input->len, room);
    if (count < 0) {
        connection_end(connection);
        return false;
    }
    if (count == 0) {
        connection->readable = false;
        return false;
    }
    input->len += (size_t)count;
    connection->loop->bytes_in += (uint64_t)count;
    if ((size_t)count < room && !connection->half_closed && !connection->tls) connection->readable = false;
    return true;
}

/* To be looked at again in the next turn. One that has something to write is, once that is written. */
static void connection_read_later(struct connection *connection)
{
    if (link_empty(&connection->queue)) link_append(&connection->loop->unread, &connection->queue);
}

void http_body_resume(struct http_exchange *http)
{
    struct exchange *exchange = (struct exchange *)http;
    if (!exchange->paused) return;
    exchange->paused = false;
    connection_read_later(exchange->connection);
}

/* Throws away what a refused client still sends, so that it gets to read our reply. */
static void connection_discard(struct connection *connection)
{
    char waste[LIMIT_READ_BYTES];
    for (unsigned step = 0; step < ADVANCE_STEPS; step++) {
        ssize_t count = recv(connection->fd, waste, sizeof waste, 0);
        if (count > 0) continue;
        connection->readable = false;
        if (count == 0 || errno != EAGAIN) connection_close(connection);
        return;
    }
    connection_read_later(connection);
}

static bool is_paused(const struct connection *connection)
{
    return connection->exchange && connection->exchange->paused;
}

static bool connection_may_read(const struct connection *connection)
{
    if (connection->closing || is_paused(connection)) return false;
    switch (connection->state) {
    case CONNECTION_IDLE:
    case CONNECTION_HEAD:
    case CONNECTION_BODY: return true;
    case CONNECTION_SEND:
        return !connection->stuck && exchange_unsent(connection->exchange) < LIMIT_PIPELINE_BYTES;
    default: return false;
    }
}

/* Nothing to do before the client sends more. */
static void connection_rest(struct connection *connection)
{
    if (connection->state != CONNECTION_IDLE || request_pending(connection->exchange)) return;
    if (connection->exchange) exchange_release(connection->exchange);
    if (connection->loop->draining && !connection_is_guest(connection)) connection_close(connection);
}

static bool connection_handshake(struct connection *connection)
{
    int result = tls_handshake(connection);
    if (result > 0) connection_enter(connection, CONNECTION_IDLE);
    if (result < 0) connection_close(connection);
    return result > 0;
}

/* Scans of whole pages would fill a turn, and each of the others' short requests would wait for all of them:
 * so they take turns, one in each. */
static bool connection_gives_way(struct connection *connection)
{
    if (!connection->is_long || !connection->loop->long_served || !connection_may_read(connection))
        return false;
    if (!connection->readable && !request_pending(connection->exchange)) return false;
    connection_read_later(connection);
    stats_add(&connection->loop->server->stats.deferred, 1);
    return true;
}

void connection_advance(struct connection *connection)
{
    if (connection_gives_way(connection)) return;
    if (connection->state == CONNECTION_HANDSHAKE && !connection_handshake(connection)) return;
    if (connection->state == CONNECTION_LINGER && connection->readable) connection_discard(connection);
    for (unsigned step = 0; connection_may_read(connection); step++) {
        if (step == ADVANCE_STEPS) {
            connection_read_later(connection);
            return;
        }
        enum http_progress progress = request_parse(connection);
        if (progress == HTTP_WHOLE)
            request_hand_over(connection);
        else if (progress == HTTP_REFUSED || !connection->readable || is_paused(connection) ||
                 !connection_fill(connection))
            break;
    }
    connection_rest(connection);
}

/* ---- writing ---- */
void connection_write_later(struct connection *connection)
{
    link_remove(&connection->queue);
    link_append(&connection->loop->unsent, &connection->queue);
}

/* Writes once, from where the last write ended. Bytes, 0 for "later", -1 when the connection is broken. */
static ssize_t socket_write(struct connection *connection)
{
    const struct exchange *exchange = connection->exchange;
    size_t skip = exchange->out_sent, out_len = exchange->out.len;
    struct iovec parts[2];
    int count = 0;
    if (skip < out_len) parts[count++] = (struct iovec){exchange->out.data + skip, out_len - skip};
    skip = skip < out_len ? 0 : skip - out_len;
    if (exchange->out_body.len)
        parts[count++] = (struct iovec){exchange->out_body.data + skip, exchange->out_body.len - skip};
    ensure(count > 0);
    if (connection->tls) return tls_write(connection, parts[0].iov_base, parts[0].iov_len);
    ssize_t sent;
    if (count == 1) {
        sent = send(connection->fd, parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL);
    } else {
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)count};
        sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    }
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

bool connection_write(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    if (!connection->stuck) connection->taken_us = connection->loop->now_us;
    bool was_stuck = connection->stuck;
    connection->stuck = false;
    while (exchange_unsent(exchange)) {
        ssize_t sent = socket_write(connection);
        if (sent < 0) return false;
        if (sent > 0) connection->taken_us = connection->loop->now_us;
        exchange->out_sent += (size_t)sent;
        connection->written_bytes += sent;
        connection->loop->bytes_out += (uint64_t)sent;
        /* A short write means that the socket is full; its edge will tell when it is not. */
        connection->stuck = exchange_unsent(exchange) && (sent == 0 || !connection->tls);
        if (connection->stuck) {
            if (!was_stuck) connection_takes_reply(connection); /* from here on it counts */
            return true;
        }
    }
    exchange_sent(exchange);
    return true;
}

/* The socket's own queue tells of a slow client earlier than the socket's edge, which comes when a third of
 * that queue, often megabytes, is empty. */
bool connection_takes_reply(struct connection *connection)
{
    int queued = 0;
    if (ioctl(connection->fd, SIOCOUTQ, &queued) != 0) queued = 0;
    int64_t taken = connection->written_bytes - queued;
    if (taken - connection->taken_bytes < LIMIT_SEND_BYTES) return false;
    connection->taken_bytes = taken;
    return true;
}

/* Ends our side. A client that has not finished sending would meet a reset before it read the reply: let it
 * finish. */
static void connection_finish(struct connection *connection)
{
    if (connection->tls) tls_end(connection);
    bool wait = connection->lingering && !connection->ended && connection->state == CONNECTION_SEND;
    if (!wait || shutdown(connection->fd, SHUT_WR) != 0) {
        connection_close(connection);
        return;
    }
    exchange_release(connection->exchange);
    connection_enter(connection, CONNECTION_LINGER);
    connection_discard(connection);
}

void connection_flush(struct connection *connection)
{
    link_remove(&connection->queue);
    if (!connection_write(connection)) {
        connection_close(connection);
        return;
    }
    if (connection->state == CONNECTION_BUSY) {
        if (!connection->stuck) tell_sent(connection);
        return;
    }
    if (connection->stuck) {
        connection_enter(connection, CONNECTION_SEND);
        return;
    }
    if (connection->closing) {
        connection_finish(connection);
        return;
    }
    bool settled = connection->state == CONNECTION_SEND;
    if (settled) connection_enter(connection, CONNECTION_IDLE);
    if (connection->readable || (settled && request_pending(connection->exchange)))
        connection_read_later(connection);
    else
        connection_rest(connection);
}

/* ---- the other ends of a connection ---- */
void connection_refuse(struct connection *connection, int status, const char *reason)
{
    request_tear(connection);
    struct exchange *exchange = connection->exchange ? connection->exchange : exchange_take(connection);
    const struct net_handler *handler = &connection->loop->server->handler;
    exchange->http.reply.len = 0;
    struct slice type = handler->refusal(handler->context, &status, reason, &exchange->http.reply);
    exchange->packed = true; /* never compressed: the head may not even be whole */
    connection->closing = connection->lingering = true;
    stats_add(&connection->loop->server->stats.refused, 1);
    reply_put(exchange, status, type, SLICE("Server: Quipu\r\n"));
    exchange->input_at = exchange->input.len;
    exchange_next(exchange);
    connection_enter(connection, CONNECTION_SEND);
    connection_write_later(connection);
}

void connection_timeout(struct connection *connection)
{
    enum connection_state state = connection->state;
    /* Counted first: who sees the connection close may look at once. */
    if (state != CONNECTION_LINGER) stats_add(&connection->loop->server->stats.timeouts, 1);
    if (state == CONNECTION_HEAD)
        connection_refuse(connection, 408, "the headers took too long");
    else if (state == CONNECTION_BODY)
        connection_refuse(connection, 408, "the body took too long");
    else
        connection_close(connection);
}

void connection_close(struct connection *connection)
{
    struct net_loop *loop = connection->loop;
    if (connection->fd < 0) return;
    request_tear(connection);
    if (connection->tls) SSL_free(connection->tls);
    connection->tls = NULL;
    atomic_fetch_sub_explicit(connection_is_guest(connection) ? &loop->server->guests_open
                                                              : &loop->server->stats.connections_open,
                              1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&loop->connection_count, 1, memory_order_relaxed);
    close(connection->fd);
    connection->fd = -1;
    link_remove(&connection->queue);
    bool is_busy = connection->state == CONNECTION_BUSY;
    connection_enter(connection, is_busy ? CONNECTION_GONE : CONNECTION_CLOSED);
    if (!is_busy) return;
    tell_left(connection);
    tell_sent(connection);
}

void http_peer(const struct http_exchange *http, char out[HTTP_PEER_BYTES])
{
    const struct connection *connection = ((const struct exchange *)http)->connection;
    struct sockaddr_storage peer = {0};
    socklen_t len = sizeof peer;
    out[0] = 0;
    if (connection->fd < 0 || getpeername(connection->fd, (struct sockaddr *)&peer, &len) != 0) return;
    if (peer.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&peer)->sin_addr, out, HTTP_PEER_BYTES);
    else if (peer.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&peer)->sin6_addr, out, HTTP_PEER_BYTES);
}

bool http_is_secure(const struct http_exchange *http)
{
    return ((const struct exchange *)http)->connection->loop->server->tls != NULL;
}

void connection_free(struct connection *connection)
{
    link_remove(&connection->by_state);
    if (connection->exchange) exchange_release(connection->exchange);
    link_remove(&connection->by_port);
    if (connection->port)
        atomic_fetch_sub_explicit(&connection->port->connection_count, 1, memory_order_relaxed);
    free(connection);
}
