/* From bytes to a request: finds where it ends, keeps room for what is still to come, and hands it over
 * whole. */
#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "net/internal.h"

#define READ_MIN_BYTES 4096 /* less room than this behind the bytes at hand is not worth a system call */

static struct slice pending_bytes(const struct exchange *exchange)
{
    return slice_from(buf_view(&exchange->input), exchange->input_at);
}

bool request_make_room(struct exchange *exchange)
{
    struct buf *input = &exchange->input;
    size_t have = input->len - exchange->input_at, wanted = READ_MIN_BYTES;
    if (exchange->head_whole && exchange->head.has_length) {
        size_t missing = exchange->head.bytes + (size_t)exchange->head.content_length - have;
        if (missing < wanted) wanted = missing;
    }
    if (input->cap - input->len >= wanted) return true;
    exchange->moved = true;
    if (exchange->input_at > 0) {
        memmove(input->data, input->data + exchange->input_at, have);
        input->len = have;
        exchange->input_at = 0;
        if (input->cap - input->len >= wanted) return true;
    }
    buf_reserve(input, LIMIT_READ_BYTES);
    return exchange_charge(exchange);
}

/* True when the bytes that came since the last look may end the head: parsing it again and again as it
 * trickles in would cost the square of its length. */
static bool head_end_arrived(struct slice bytes, size_t scanned)
{
    const char *end = bytes.data + bytes.len;
    const char *at = bytes.data + (scanned < 3 ? 0 : scanned - 3);
    while ((at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        if (at < end && *at == '\r') at++;
        if (at < end && *at == '\n') return true;
    }
    return false;
}

static enum http_progress refused(struct connection *connection, int status, const char *reason)
{
    connection_refuse(connection, status, reason);
    return HTTP_REFUSED;
}

static size_t header_limit(const struct connection *connection)
{
    return connection_is_guest(connection) ? LIMIT_PORT_HEADER_BYTES
                                           : (size_t)connection->loop->server->limits.header_bytes;
}

static void head_show(struct exchange *exchange)
{
    struct http_exchange *http = &exchange->http;
    const struct http_head *head = &exchange->head;
    http->method = head->method;
    http->method_text = head->method_text;
    http->target = head->target;
    http->path = head->path;
    http->query = head->query;
    http->header_count = head->header_count;
}

/* What the handler says about it. */
static bool head_is_welcome(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct net_handler *handler = &connection->loop->server->handler;
    const struct net_port *port = connection->port;
    net_admit *admit = port ? port->handler.admit : handler->admit;
    char reason[LIMIT_REFUSAL_BYTES] = "";
    if (!admit) return true;
    head_show(exchange);
    exchange->http.body = exchange->http.body_sent = SLICE_NONE;
    int status = admit(port ? port->handler.context : handler->context, &exchange->http, reason,
                       sizeof reason);
    if (status) connection_refuse(connection, status, reason);
    return !status;
}

/* What the server's limits and abilities say about a well-formed head. */
static enum http_progress head_admit(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    const struct http_head *head = &exchange->head;
    const struct net_server *server = connection->loop->server;
    const struct net_handler *handler = &server->handler;
    if (head->bytes > header_limit(connection)) return refused(connection, 431, "the headers are too large");
    if (!head_is_welcome(connection)) return HTTP_REFUSED;
    exchange->body_max = handler->body_limit
                             ? handler->body_limit(handler->context, head->method, head->target)
                             : server->limits.body_bytes;
    if (head->has_length && head->content_length > exchange->body_max)
        return refused(connection, 413, "the body is too large");
    if (head->coding == HTTP_CODING_UNKNOWN)
        return refused(connection, 415, "the content codings understood are gzip and deflate");
    if (head->expects_other)
        return refused(connection, 417, "the only expectation understood is 100-continue");
    exchange->head_whole = true;
    exchange->moved = false;
    exchange->chunks = (struct http_chunks){.trailer = &exchange->trailer};
    const struct net_port *port = connection->port;
    if (port && port->handler.streams && head->chunked && head->coding == HTTP_CODING_NONE) {
        head_show(exchange);
        exchange->streams = port->handler.streams(port->handler.context, &exchange->http);
        if (exchange->streams) exchange->body_max = UINT64_MAX; /* nothing of it stays here */
    }
    return HTTP_WHOLE;
}

void request_tear(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    if (!exchange || !exchange->streams) return;
    exchange->streams = exchange->paused = false;
    ensure(connection->port);
    connection->port->handler.torn(connection->port->handler.context, &exchange->http);
}

/* Hands on what was decoded, and forgets it. */
static void body_hand_on(struct connection *connection, size_t at, size_t body, size_t rest)
{
    struct exchange *exchange = connection->exchange;
    const struct net_port_handler *handler = &connection->port->handler;
    struct slice bytes = {exchange->input.data + at, body};
    if (body && !handler->piece(handler->context, &exchange->http, bytes)) exchange->paused = true;
    memmove(exchange->input.data + at, exchange->input.data + at + body, rest);
    exchange->input.len = at + rest;
}

static enum http_progress head_unfinished(struct connection *connection, struct slice bytes)
{
    connection->exchange->scanned_bytes = bytes.len;
    if (bytes.len >= header_limit(connection)) {
        bool in_request_line = !memchr(bytes.data, '\n', bytes.len);
        return refused(connection, in_request_line ? 414 : 431,
                       in_request_line ? "the request's target is too long" : "the headers are too large");
    }
    connection_enter(connection, CONNECTION_HEAD);
    return HTTP_MORE;
}

static enum http_progress head_parse(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct slice bytes = pending_bytes(exchange);
    if (exchange->scanned_bytes && !head_end_arrived(bytes, exchange->scanned_bytes))
        return head_unfinished(connection, bytes);
    uint32_t room = (uint32_t)connection->loop->server->limits.header_count;
    enum http_progress progress = http_head_parse(&exchange->head, bytes, exchange->http.headers, room);
    if (progress == HTTP_MORE) return head_unfinished(connection, bytes);
    if (progress == HTTP_WHOLE) return head_admit(connection);
    return refused(connection, exchange->head.fault.status, exchange->head.fault.reason);
}

static enum http_progress chunks_parse(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    size_t at = exchange->input_at + exchange->head.bytes + exchange->body_bytes, body, rest;
    enum http_progress progress = http_chunks_decode(&exchange->chunks, exchange->input.data + at,
                                                     exchange->input.len - at, exchange->body_max,
                                                     header_limit(connection), &body, &rest);
    if (exchange->streams) {
        body_hand_on(connection, at, body, rest);
    } else {
        exchange->body_bytes += body;
        exchange->input.len = at + body + rest;
    }
    if (progress != HTTP_REFUSED) return progress;
    return refused(connection, exchange->chunks.fault.status, exchange->chunks.fault.reason);
}

static enum http_progress body_parse(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    size_t behind_head = exchange->input.len - exchange->input_at - exchange->head.bytes;
    enum http_progress progress = HTTP_WHOLE;
    if (exchange->head.chunked) {
        progress = chunks_parse(connection);
    } else if (exchange->head.has_length) {
        if (behind_head < exchange->head.content_length)
            progress = HTTP_MORE;
        else
            exchange->body_bytes = (size_t)exchange->head.content_length;
    }
    if (progress != HTTP_MORE) return progress;
    if (exchange->head.expects_continue && !exchange->continue_sent && behind_head == 0) {
        buf_text(exchange_output(exchange), "HTTP/1.1 100 Continue\r\n\r\n");
        connection_write_later(connection);
    }
    exchange->continue_sent = true;
    connection_enter(connection, CONNECTION_BODY);
    return HTTP_MORE;
}

enum http_progress request_parse(struct connection *connection)
{
    if (!request_pending(connection->exchange)) return HTTP_MORE;
    if (!connection->exchange->head_whole) {
        enum http_progress progress = head_parse(connection);
        if (progress != HTTP_WHOLE) return progress;
    }
    return body_parse(connection);
}

/* Undoes the body's compression. */
static bool body_unpack(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    enum gunzip result = gzip_unpack(&connection->loop->gzip, exchange->http.body_sent, exchange->body_max,
                                     &exchange->inflated);
    exchange->http.body = buf_view(&exchange->inflated);
    if (!exchange_charge(exchange)) {
        connection_refuse(connection, 503, "too many large requests at once");
        return false;
    }
    if (result == GUNZIP_OK) return true;
    if (result == GUNZIP_TOO_LARGE)
        connection_refuse(connection, 413, "the decompressed body is too large");
    else
        connection_refuse(connection, 415, "the body is not what its Content-Encoding says");
    return false;
}

void request_hand_over(struct connection *connection)
{
    struct exchange *exchange = connection->exchange;
    struct http_exchange *http = &exchange->http;
    const struct net_server *server = connection->loop->server;
    struct http_head *head = &exchange->head;
    if (exchange->moved) {
        struct slice bytes = {exchange->input.data + exchange->input_at, head->bytes};
        ensure(http_head_parse(head, bytes, http->headers, (uint32_t)server->limits.header_count) ==
               HTTP_WHOLE);
    }
    exchange->streams = exchange->paused = false;
    head_show(exchange);
    http->body = http->body_sent = (struct slice){exchange->input.data + exchange->input_at + head->bytes,
                                                  exchange->body_bytes};
    if (head->coding == HTTP_CODING_ZLIB && !body_unpack(connection)) return;
    http->began_us = connection->loop->now_us;
    balance_note(connection);
    connection_enter(connection, CONNECTION_BUSY);
    const struct net_port *port = connection->port;
    exchange->port_context = port ? port->handler.context : NULL;
    int64_t start_us = monotonic_us();
    if (port)
        port->handler.request(port->handler.context, http);
    else
        server->handler.request(server->handler.context, http);
    connection->is_long = monotonic_us() - start_us >= LIMIT_LONG_REQUEST_US;
    if (connection->is_long) connection->loop->long_served = true;
}
