/* Replies in pieces: the connection stays busy, its exchange the handler's, while chunks go out as they are
 * made. HTTP/1.0 knows no chunks: there the end of the connection ends the reply.
 *
 * Whoever makes pieces does not wait for the client, so a client that does not take them is given up: after
 * send_ms without taking a byte, or when LIMIT_PIECES_BYTES wait for it, or fewer where the unread replies of
 * all clients are too many. */
#include "base/fail.h"
#include "base/limits.h"
#include "net/internal.h"

static void piece_put(struct exchange *exchange, struct slice bytes)
{
    if (exchange->bare || bytes.len == 0) return; /* a chunk without bytes would be the last */
    struct buf *out = exchange_output(exchange);
    if (exchange->chunked) buf_printf(out, "%zx\r\n", bytes.len);
    buf_slice(out, bytes);
    if (exchange->chunked) buf_text(out, "\r\n");
    connection_write_later(exchange->connection);
}

void http_reply_begin(struct http_exchange *http, int status, struct slice content_type,
                      struct slice extra_headers)
{
    struct exchange *exchange = (struct exchange *)http;
    struct connection *connection = exchange->connection;
    ensure(!exchange->begun && !exchange->gzipped);
    exchange->begun = true;
    if (connection->state == CONNECTION_GONE) return;
    ensure(connection->state == CONNECTION_BUSY);
    bool has_body = status != 204 && status != 304;
    exchange->bare = !has_body || exchange->head.method == HTTP_HEAD;
    exchange->chunked = has_body && !exchange->head.http_1_0;
    reply_decide_end(exchange);
    if (exchange->head.http_1_0) connection->closing = true;
    reply_put_head(exchange, status, content_type, extra_headers,
                   exchange->chunked ? FRAMING_CHUNKS : FRAMING_NONE);
    piece_put(exchange, buf_view(&http->reply));
    http->reply.len = 0;
    connection_write_later(connection);
}

/* Forgets what was written once it is more than what was not, so that a client that is always a little behind
 * does not make the output grow for ever. */
static void output_trim(struct exchange *exchange)
{
    if (exchange->out_body.len && exchange->out_sent >= exchange->out.len) {
        exchange->out_sent -= exchange->out.len;
        exchange->out.len = 0;
    }
    struct buf *out = exchange->out.len ? &exchange->out : &exchange->out_body;
    if (exchange->out_sent == 0 || exchange->out_sent * 2 < out->len) return;
    ensure(exchange->out_sent <= out->len);
    out->len -= exchange->out_sent;
    memmove(out->data, out->data + exchange->out_sent, out->len);
    exchange->out_sent = 0;
}

/* False when the client is given up. A burst within one turn is no fault of the client's: it is written
 * before it counts. */
static bool client_keeps_up(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    size_t allowed = exchange_charge_unread(exchange) ? LIMIT_PIECES_BYTES : LIMIT_SPARE_BUFFER_BYTES;
    if (exchange_unsent(exchange) > allowed &&
        (!connection_write(connection) || exchange_unsent(exchange) > allowed))
        return false;
    int64_t patience_us = connection->loop->server->limits.send_ms * 1000;
    return !connection->stuck || connection->loop->now_us - connection->taken_us < patience_us;
}

bool http_reply_piece(struct http_exchange *http, struct slice bytes)
{
    struct exchange *exchange = (struct exchange *)http;
    struct connection *connection = exchange->connection;
    ensure(exchange->begun);
    if (connection->state == CONNECTION_GONE) return false;
    if (!client_keeps_up(connection)) {
        connection_close(connection);
        return false;
    }
    output_trim(exchange);
    piece_put(exchange, bytes);
    return true;
}

static void reply_end(struct exchange *exchange, bool is_whole)
{
    struct connection *connection = exchange->connection;
    ensure(exchange->begun);
    if (connection->state == CONNECTION_GONE) {
        connection_enter(connection, CONNECTION_CLOSED);
        return;
    }
    if (is_whole && exchange->chunked && !exchange->bare) buf_text(exchange_output(exchange), "0\r\n\r\n");
    if (!is_whole || (connection->loop->draining && !connection_is_guest(connection))) connection->closing = true;
    reply_finish(exchange);
}

void http_reply_end(struct http_exchange *http)
{
    reply_end((struct exchange *)http, true);
}

void http_reply_tear(struct http_exchange *http)
{
    reply_end((struct exchange *)http, false);
}

bool http_client_left(const struct http_exchange *http)
{
    const struct connection *connection = ((const struct exchange *)http)->connection;
    return connection->state == CONNECTION_GONE || connection->half_closed;
}
