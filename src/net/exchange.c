/* Exchanges: taken when bytes arrive, given back when all is answered, kept as spares in between. The last
 * given back is the first taken: its buffers are still in the processor's cache. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"
#include "net/internal.h"

static struct exchange *exchange_new(const struct net_loop *loop)
{
    const struct net_limits *limits = &loop->server->limits;
    struct exchange *exchange = must_zero(1, sizeof *exchange);
    exchange->http.headers = must_alloc(limits->header_count * sizeof *exchange->http.headers);
    buf_reserve(&exchange->input, LIMIT_READ_BYTES);
    return exchange;
}

void exchange_free(struct exchange *exchange)
{
    arena_free(&exchange->http.arena);
    buf_free(&exchange->http.reply);
    buf_free(&exchange->input);
    buf_free(&exchange->inflated);
    buf_free(&exchange->trailer);
    buf_free(&exchange->out);
    buf_free(&exchange->out_body);
    free(exchange->http.headers);
    free(exchange);
}

struct exchange *exchange_take(struct connection *connection)
{
    struct net_loop *loop = connection->loop;
    struct exchange *exchange = loop->spares;
    ensure(!connection->exchange);
    if (exchange) {
        loop->spares = exchange->next_spare;
        loop->spare_count--;
    } else {
        exchange = exchange_new(loop);
    }
    exchange->connection = connection;
    exchange->head.method = HTTP_GET; /* a refusal may come before any head */
    exchange->http.loop = loop;
    connection->exchange = exchange;
    return exchange;
}

static size_t large_bytes(const struct buf *buf)
{
    return buf->cap > LIMIT_SPARE_BUFFER_BYTES ? buf->cap : 0;
}

/* A closed port took its accounts with it. */
static bool has_accounts(const struct connection *connection)
{
    return connection->port || !connection_is_guest(connection);
}

/* What an account holds now, and `before` of it by this exchange, becomes `now`; false above the limit. */
static bool account_move(_Atomic uint64_t *account, size_t before, size_t now, uint64_t limit)
{
    if (now <= before) {
        if (now < before) atomic_fetch_sub_explicit(account, before - now, memory_order_relaxed);
        return true;
    }
    uint64_t others = atomic_fetch_add_explicit(account, now - before, memory_order_relaxed);
    return others + (now - before) <= limit;
}

bool exchange_charge(struct exchange *exchange)
{
    struct net_server *server = exchange->http.loop->server;
    struct net_port *port = exchange->connection->port;
    size_t before = exchange->charged_bytes;
    size_t now = large_bytes(&exchange->input) + large_bytes(&exchange->inflated);
    exchange->charged_bytes = now;
    if (!has_accounts(exchange->connection)) return true;
    if (port) return account_move(&port->buffered_bytes, before, now, LIMIT_PORT_BUFFERED_BYTES);
    return account_move(&server->buffered_bytes, before, now, server->limits.buffered_bytes);
}

bool exchange_charge_unread(struct exchange *exchange)
{
    struct net_server *server = exchange->http.loop->server;
    struct net_port *port = exchange->connection->port;
    size_t before = exchange->unread_bytes;
    size_t now = large_bytes(&exchange->http.reply) + large_bytes(&exchange->out) +
                 large_bytes(&exchange->out_body);
    uint64_t limit = port ? LIMIT_PORT_BUFFERED_BYTES : server->limits.unread_bytes;
    if (exchange->http.has_acted) limit *= LIMIT_ACTED_TIMES;
    exchange->unread_bytes = now;
    if (now == before || !has_accounts(exchange->connection)) return true;
    return account_move(port ? &port->unread_bytes : &server->unread_bytes, before, now, limit);
}

bool http_has_room(const struct http_exchange *http)
{
    const struct exchange *exchange = (const struct exchange *)http;
    struct net_server *server = http->loop->server;
    struct net_port *port = exchange->connection->port;
    uint64_t limit = port ? LIMIT_PORT_BUFFERED_BYTES : server->limits.unread_bytes;
    if (!has_accounts(exchange->connection)) return true;
    return atomic_load_explicit(port ? &port->unread_bytes : &server->unread_bytes, memory_order_relaxed) <=
           limit * LIMIT_ROOM_TIMES;
}

/* Empties it; memory that only a large request needed goes back. */
static void buf_forget(struct buf *buf)
{
    buf->len = 0;
    if (buf->cap > LIMIT_SPARE_BUFFER_BYTES) buf_free(buf);
}

void exchange_sent(struct exchange *exchange)
{
    exchange->out_sent = 0;
    buf_forget(&exchange->out);
    if (exchange->out_body.data) buf_free(&exchange->out_body);
    if (exchange->unread_bytes) exchange_charge_unread(exchange);
}

void exchange_next(struct exchange *exchange)
{
    arena_reset(&exchange->http.arena);
    buf_forget(&exchange->http.reply);
    buf_forget(&exchange->inflated);
    buf_forget(&exchange->trailer);
    exchange->http.user = exchange->port_context = NULL;
    exchange->http.left = NULL;
    exchange->http.sent = NULL;
    exchange->http.has_acted = false;
    exchange->head_whole = exchange->moved = exchange->continue_sent = false;
    exchange->packed = exchange->gzipped = exchange->begun = false;
    exchange->streams = exchange->paused = false;
    exchange->body_bytes = exchange->scanned_bytes = 0;
    if (exchange->input_at == exchange->input.len) {
        exchange->input_at = 0;
        buf_forget(&exchange->input);
    }
    exchange_charge(exchange);
    exchange_charge_unread(exchange);
}

void exchange_release(struct exchange *exchange)
{
    struct net_loop *loop = exchange->connection->loop;
    exchange->input_at = exchange->input.len = 0;
    exchange_next(exchange);
    exchange_sent(exchange);
    exchange->connection->exchange = NULL;
    exchange->connection = NULL;
    if (loop->spare_count == LIMIT_SPARE_EXCHANGES) {
        exchange_free(exchange);
        return;
    }
    exchange->next_spare = loop->spares;
    loop->spares = exchange;
    loop->spare_count++;
}
