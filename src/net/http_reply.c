/* Replies: a head in front of the handler's body, appended to what the connection has to write. */
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/stats.h"
#include "net/internal.h"

#define REPLY_HEAD_BYTES     256         /* all lines of a head but those the handler gave */
#define REPLY_TAKEOVER_BYTES (16 * 1024) /* from here on a body is taken over, not copied */

static struct slice reason_of(int status)
{
    switch (status) {
    case 200: return SLICE("200 OK");
    case 201: return SLICE("201 Created");
    case 202: return SLICE("202 Accepted");
    case 204: return SLICE("204 No Content");
    case 206: return SLICE("206 Partial Content");
    case 301: return SLICE("301 Moved Permanently");
    case 302: return SLICE("302 Found");
    case 303: return SLICE("303 See Other");
    case 304: return SLICE("304 Not Modified");
    case 307: return SLICE("307 Temporary Redirect");
    case 308: return SLICE("308 Permanent Redirect");
    case 400: return SLICE("400 Bad Request");
    case 401: return SLICE("401 Unauthorized");
    case 403: return SLICE("403 Forbidden");
    case 404: return SLICE("404 Not Found");
    case 405: return SLICE("405 Method Not Allowed");
    case 406: return SLICE("406 Not Acceptable");
    case 408: return SLICE("408 Request Timeout");
    case 409: return SLICE("409 Conflict");
    case 410: return SLICE("410 Gone");
    case 411: return SLICE("411 Length Required");
    case 412: return SLICE("412 Precondition Failed");
    case 413: return SLICE("413 Content Too Large");
    case 414: return SLICE("414 URI Too Long");
    case 415: return SLICE("415 Unsupported Media Type");
    case 417: return SLICE("417 Expectation Failed");
    case 422: return SLICE("422 Unprocessable Content");
    case 428: return SLICE("428 Precondition Required");
    case 429: return SLICE("429 Too Many Requests");
    case 431: return SLICE("431 Request Header Fields Too Large");
    case 500: return SLICE("500 Internal Server Error");
    case 501: return SLICE("501 Not Implemented");
    case 502: return SLICE("502 Bad Gateway");
    case 503: return SLICE("503 Service Unavailable");
    case 504: return SLICE("504 Gateway Timeout");
    case 505: return SLICE("505 HTTP Version Not Supported");
    default: return SLICE_NONE;
    }
}

struct slice http_trailer_find(const struct http_exchange *http, struct slice name)
{
    const struct buf *trailer = &((const struct exchange *)http)->trailer;
    const char *at = trailer->data, *end = at + trailer->len;
    struct http_header field;
    struct http_fault fault;
    while (at < end && http_field_parse(&at, end, &field, &fault) == HTTP_WHOLE)
        if (slice_equal_ignoring_case(field.name, name)) return field.value;
    return SLICE_NONE;
}

struct slice http_header_find(const struct http_exchange *exchange, struct slice name)
{
    return http_field_find(exchange->headers, exchange->header_count, name);
}

/* The Date line, made once a second. */
static struct slice date_line(struct net_loop *loop)
{
    if (loop->now_us >= loop->date_until_us || loop->date_len == 0) {
        int64_t wall_ms = clock_now_ms(&clock_system);
        time_t seconds = (time_t)(wall_ms / 1000);
        struct tm broken;
        gmtime_r(&seconds, &broken);
        loop->date_len = strftime(loop->date, sizeof loop->date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n",
                                  &broken);
        loop->date_until_us = loop->now_us + (1000 - wall_ms % 1000) * 1000;
    }
    return (struct slice){loop->date, loop->date_len};
}

/* Names are compared at the beginning of lines only. */
static bool lines_name(struct slice lines, struct slice name)
{
    while (lines.len >= name.len) {
        if (slice_equal_ignoring_case((struct slice){lines.data, name.len}, name)) return true;
        const char *end = memchr(lines.data, '\n', lines.len);
        if (!end) return false;
        lines = slice_from(lines, (size_t)(end - lines.data) + 1);
    }
    return false;
}

bool http_takes_gzip(const struct http_exchange *http)
{
    return http_accepts_gzip(((const struct exchange *)http)->head.accept_encoding);
}

static bool pack_worthwhile(const struct exchange *exchange)
{
    return exchange->http.reply.len >= LIMIT_GZIP_MIN_BYTES && exchange->head.method != HTTP_HEAD &&
           http_takes_gzip(&exchange->http);
}

bool http_reply_pack(struct http_exchange *http)
{
    struct exchange *exchange = (struct exchange *)http;
    if (exchange->packed) return exchange->gzipped;
    exchange->packed = true;
    if (!pack_worthwhile(exchange)) return false;
    struct buf packed = {0};
    exchange->gzipped = gzip_pack(&http->loop->gzip, buf_view(&http->reply), &packed);
    if (!exchange->gzipped) {
        buf_free(&packed);
        return false;
    }
    buf_free(&http->reply);
    http->reply = packed;
    return true;
}

void reply_put_head(struct exchange *exchange, int status, struct slice content_type,
                    struct slice extra_headers, enum reply_framing framing)
{
    struct buf *out = exchange_output(exchange);
    struct slice reason = reason_of(status);
    ensure(status >= 200 && status <= 599);
    buf_text(out, "HTTP/1.1 ");
    if (reason.len)
        buf_slice(out, reason);
    else
        buf_printf(out, "%03d Status", status);
    buf_text(out, "\r\n");
    buf_slice(out, date_line(exchange->http.loop));
    if (content_type.len) {
        buf_text(out, "Content-Type: ");
        buf_slice(out, content_type);
        buf_text(out, "\r\n");
    }
    if (framing == FRAMING_CHUNKS) buf_text(out, "Transfer-Encoding: chunked\r\n");
    if (framing == FRAMING_LENGTH) {
        buf_text(out, "Content-Length: ");
        buf_decimal(out, exchange->http.reply.len);
        buf_text(out, "\r\n");
    }
    if (exchange->gzipped) buf_text(out, "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n");
    if (exchange->connection->closing)
        buf_text(out, "Connection: close\r\n");
    else if (exchange->head.http_1_0)
        buf_text(out, "Connection: keep-alive\r\n");
    buf_slice(out, extra_headers);
    buf_text(out, "\r\n");
}

void reply_put(struct exchange *exchange, int status, struct slice content_type, struct slice extra_headers)
{
    struct buf *reply = &exchange->http.reply;
    struct buf *out = exchange_output(exchange);
    bool has_length = status != 204 && status != 304; /* these have no body, and so no type of one */
    if (!has_length) content_type = SLICE_NONE;
    bool with_body = exchange->head.method != HTTP_HEAD && has_length && reply->len;
    bool take_over = with_body && out == &exchange->out && reply->len >= REPLY_TAKEOVER_BYTES;
    size_t copied_len = with_body && !take_over ? reply->len : 0;
    buf_reserve(out, REPLY_HEAD_BYTES + content_type.len + extra_headers.len + copied_len);
    reply_put_head(exchange, status, content_type, extra_headers, has_length ? FRAMING_LENGTH : FRAMING_NONE);
    if (take_over) {
        buf_free(&exchange->out_body);
        exchange->out_body = *reply;
        *reply = (struct buf){0};
    } else {
        buf_put(out, reply->data, copied_len);
    }
}

void reply_decide_end(struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    bool drains = connection->loop->draining && !connection_is_guest(connection);
    if (!http_head_keeps_alive(&exchange->head) || drains) connection->closing = true;
}

void reply_finish(struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    exchange->input_at += exchange->head.bytes + exchange->body_bytes;
    ensure(exchange->input_at <= exchange->input.len);
    connection->lingering = connection->closing && (request_pending(exchange) || connection->readable);
    exchange_next(exchange);
    connection_enter(connection, CONNECTION_SEND);
    connection_write_later(connection);
}

/* Gives back what a large body does not use of its memory: it may wait for long. */
static void reply_fit(struct buf *reply)
{
    if (reply->cap <= LIMIT_SPARE_BUFFER_BYTES || reply->cap - reply->len <= reply->len / 4) return;
    reply->cap = reply->len;
    reply->data = must_realloc(reply->data, reply->cap);
}

/* Puts the reason for a 503 in the place of the reply; answers its content type. */
static struct slice reply_withhold(struct exchange *exchange)
{
    struct net_server *server = exchange->http.loop->server;
    struct buf *reply = &exchange->http.reply;
    buf_free(reply);
    exchange->gzipped = false;
    stats_add(&server->stats.refused, 1);
    exchange_charge_unread(exchange);
    int status = 503;
    struct slice type = server->handler.refusal(server->handler.context, &status,
                                                "too many large replies wait to be read; try again", reply);
    ensure(status == 503);
    return type;
}

void http_reply(struct http_exchange *http, int status, struct slice content_type, struct slice extra_headers)
{
    struct exchange *exchange = (struct exchange *)http;
    struct connection *connection = exchange->connection;
    if (connection->state == CONNECTION_GONE) {
        connection_enter(connection, CONNECTION_CLOSED);
        return;
    }
    ensure(connection->state == CONNECTION_BUSY && !exchange->begun);
    /* A handler that names a coding has done the coding. */
    if (lines_name(extra_headers, SLICE("Content-Encoding:"))) exchange->packed = true;
    http_reply_pack(http);
    if (http->reply.len >= LIMIT_SPARE_BUFFER_BYTES) {
        reply_fit(&http->reply);
        if (!exchange_charge_unread(exchange)) {
            status = 503;
            content_type = reply_withhold(exchange);
            extra_headers = SLICE_NONE;
        }
    }
    reply_decide_end(exchange);
    reply_put(exchange, status, content_type, extra_headers);
    reply_finish(exchange);
}

void http_reply_crowded(struct http_exchange *http)
{
    struct exchange *exchange = (struct exchange *)http;
    struct slice content_type = reply_withhold(exchange);
    http_reply(http, 503, content_type, SLICE_NONE);
}
