/* Replies in pieces, limits of bodies by target, trailers, and how a handler learns that its client left. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/net_testing.h"
#include "unit/test.h"

#define HOST "Host: h\r\n"

/* One line up to CRLF, without it. */
static bool line_read(int fd, char *line, size_t room)
{
    size_t len = 0;
    while (len < room - 1 && recv(fd, line + len, 1, 0) == 1) {
        line[++len] = 0;
        if (len < 2 || strcmp(line + len - 2, "\r\n") != 0) continue;
        line[len - 2] = 0;
        return true;
    }
    return false;
}

/* Reads a chunked body to its end and joins it. */
static bool chunks_read(int fd, struct buf *body, unsigned *count)
{
    char line[64];
    *count = 0;
    while (line_read(fd, line, sizeof line)) {
        size_t left = strtoul(line, NULL, 16);
        if (left == 0) return line_read(fd, line, sizeof line) && line[0] == 0;
        for (++*count; left > 0;) {
            char piece[4096];
            ssize_t now = recv(fd, piece, left < sizeof piece ? left : sizeof piece, 0);
            if (now <= 0) return false;
            buf_put(body, piece, (size_t)now);
            left -= (size_t)now;
        }
        if (!line_read(fd, line, sizeof line) || line[0] != 0) return false;
    }
    return false;
}

static void lines_make(struct buf *text, unsigned count)
{
    buf_text(text, "first\n");
    for (unsigned i = 0; i < count; i++) buf_printf(text, "%u\n", i);
}

static void expect_pieces(int fd, unsigned count)
{
    struct reply reply;
    struct buf body = {0}, expected = {0};
    unsigned chunks;
    CHECK(client_read_head(fd, &reply));
    CHECK_INT(reply.status, 200);
    const char *framing = reply_header(&reply, "Transfer-Encoding");
    CHECK(framing && strcmp(framing, "chunked") == 0 && !reply_header(&reply, "Content-Length"));
    CHECK(reply_header(&reply, "X-Pieces") != NULL);
    CHECK(chunks_read(fd, &body, &chunks));
    lines_make(&expected, count);
    CHECK_INT(chunks, count + 1);
    CHECK(slice_equal(buf_view(&body), buf_view(&expected)));
    buf_free(&body);
    buf_free(&expected);
}

TEST(net_pieces_keep_the_connection)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    static const unsigned counts[] = {0, 1, 500};
    for (int i = 0; i < 3; i++) {
        char request[128];
        snprintf(request, sizeof request, "GET /pieces?%u HTTP/1.1\r\n" HOST "\r\n", counts[i]);
        client_send(fd, request);
        expect_pieces(fd, counts[i]);
    }
    /* Pipelined between replies of other kinds, also behind one large enough to be taken over. */
    client_send(fd, "GET /repeat?30000 HTTP/1.1\r\n" HOST "\r\nGET /pieces?20 HTTP/1.1\r\n" HOST
                    "\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n");
    CHECK(client_read(fd, &reply) && reply.body_len == 30000);
    reply_free(&reply);
    expect_pieces(fd, 20);
    CHECK(client_read(fd, &reply) && reply.body && strcmp(reply.body, "GET /echo [] ") == 0);
    reply_free(&reply);
    close(fd);
    testing_end(&testing);
}

TEST(net_pieces_of_replies_without_a_body)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "HEAD /pieces?3 HTTP/1.1\r\n" HOST "\r\n");
    CHECK(client_read_head(fd, &reply));
    CHECK(reply_header(&reply, "Transfer-Encoding") != NULL);
    client_send(fd, "GET /pieces?2 HTTP/1.1\r\n" HOST "\r\n");
    expect_pieces(fd, 2);
    close(fd);
    testing_end(&testing);
}

TEST(net_pieces_for_http_1_0_end_with_the_connection)
{
    struct testing testing;
    struct reply reply;
    char text[64] = "";
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /pieces?3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(client_read_head(fd, &reply));
    CHECK(!reply_header(&reply, "Transfer-Encoding") && !reply_header(&reply, "Content-Length"));
    CHECK(strcmp(reply_header(&reply, "Connection"), "close") == 0);
    size_t len = 0;
    for (ssize_t now; len < sizeof text - 1 && (now = recv(fd, text + len, sizeof text - 1 - len, 0)) > 0;)
        len += (size_t)now;
    CHECK(strcmp(text, "first\n0\n1\n2\n") == 0);
    CHECK(client_closed(fd));
    close(fd);
    testing_end(&testing);
}

/* ---- clients that do not take it ---- */

static struct {
    _Atomic size_t sent_bytes, sent_max; /* the handler waits at sent_max */
    _Atomic bool given_up, left;
    size_t piece_bytes;
} flood;

struct flooding {
    struct net_task task;
    struct http_exchange *exchange;
};

/* A piece a turn until the client is given up; it has only said that it left. */
static void run_flood(struct net_task *task)
{
    struct flooding *flooding = (struct flooding *)task;
    static char piece[64 * 1024];
    if (flood.sent_bytes >= flood.sent_max) {
        net_post(flooding->exchange->loop, task);
        return;
    }
    if (http_reply_piece(flooding->exchange, (struct slice){piece, flood.piece_bytes})) {
        flood.sent_bytes += flood.piece_bytes;
        net_post(flooding->exchange->loop, task);
        return;
    }
    flood.left = http_client_left(flooding->exchange);
    http_reply_end(flooding->exchange);
    free(flooding);
    flood.given_up = true;
}

static void on_flood(void *context, struct http_exchange *exchange)
{
    (void)context;
    struct flooding *flooding = calloc(1, sizeof *flooding);
    *flooding = (struct flooding){{run_flood, NULL}, exchange};
    CHECK(!http_client_left(exchange));
    http_reply_begin(exchange, 200, SLICE("text/plain"), SLICE_NONE);
    net_post(exchange->loop, &flooding->task);
}

static void with_flood(struct net_options *options)
{
    options->handler.request = on_flood;
}

static void with_impatient_flood(struct net_options *options)
{
    options->handler.request = on_flood;
    options->limits.send_ms = 30;
}

static void flood_start(struct testing *testing, testing_adjust *adjust, size_t piece_bytes)
{
    flood.sent_bytes = 0;
    flood.sent_max = SIZE_MAX;
    flood.given_up = flood.left = false;
    flood.piece_bytes = piece_bytes;
    testing_start(testing, adjust);
}

static void flood_await(void)
{
    for (int i = 0; i < TEST_WAIT_MS && !flood.given_up; i++) sleep_ms(1);
    CHECK(flood.given_up);
    CHECK(flood.left);
}

TEST(net_pieces_that_wait_are_bounded)
{
    struct testing testing;
    flood_start(&testing, with_flood, 64 * 1024);
    int fd = client_connect(testing.port);
    client_send(fd, "GET / HTTP/1.1\r\n" HOST "\r\n");
    flood_await();
    /* The kernel's buffers hold some more. */
    CHECK(flood.sent_bytes >= LIMIT_PIECES_BYTES && flood.sent_bytes < LIMIT_PIECES_BYTES + 64 * 1024 * 1024);
    close(fd);
    testing_end(&testing);
}

/* Much more than the limit in all, to a client that is always a little behind: nobody is given up. */
TEST(net_pieces_flow_to_a_client_that_reads)
{
    struct testing testing;
    struct reply reply;
    static char waste[256 * 1024];
    flood_start(&testing, with_flood, 8000);
    flood.sent_max = LIMIT_PIECES_BYTES / 2;
    int fd = client_connect(testing.port);
    client_send(fd, "GET / HTTP/1.1\r\n" HOST "\r\n");
    CHECK(client_read_head(fd, &reply));
    size_t taken = 0;
    while (taken < 10 * (size_t)LIMIT_PIECES_BYTES) {
        ssize_t now = recv(fd, waste, sizeof waste, 0);
        CHECK(now > 0);
        if (now <= 0) break;
        taken += (size_t)now;
        flood.sent_max = taken + LIMIT_PIECES_BYTES / 2;
    }
    CHECK(!flood.given_up);
    flood.sent_max = SIZE_MAX;
    close(fd); /* in mid-reply */
    flood_await();
    testing_end(&testing);
}

/* Pieces of a byte do not fill the limit before the time is over, however late a busy machine notices that. */
TEST(net_pieces_that_nobody_takes_time_out)
{
    struct testing testing;
    int small = 4096;
    flood_start(&testing, with_impatient_flood, 1);
    int fd = client_connect(testing.port);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client_send(fd, "GET / HTTP/1.1\r\n" HOST "\r\n");
    flood_await();
    CHECK(flood.sent_bytes < LIMIT_PIECES_BYTES);
    close(fd);
    testing_end(&testing);
}

TEST(net_pieces_begun_after_the_client_left)
{
    struct testing testing;
    testing_start(&testing, NULL);
    for (int i = 0; i < 20; i++) {
        int fd = client_connect(testing.port);
        struct linger reset = {.l_onoff = 1};
        client_send(fd, "GET /pieces?100000 HTTP/1.1\r\n" HOST "\r\n");
        if (i % 2) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    CHECK_INT(client_status(testing.port, "GET /echo HTTP/1.1\r\n" HOST "\r\n"), 200);
    testing_end(&testing);
}

/* ---- whether the client left ---- */

static struct http_exchange *watched;
static _Atomic bool watched_begun, watched_left;

static void run_watch(struct net_task *task)
{
    if (!http_client_left(watched)) {
        net_post(watched->loop, task);
        return;
    }
    watched_left = true;
    http_reply(watched, 200, SLICE("text/plain"), SLICE_NONE);
}

static void on_watch(void *context, struct http_exchange *exchange)
{
    (void)context;
    static struct net_task task = {.run = run_watch};
    watched = exchange;
    watched_begun = true;
    net_post(exchange->loop, &task);
}

static void with_watch(struct net_options *options)
{
    options->handler.request = on_watch;
}

TEST(net_client_left_is_seen)
{
    struct testing testing;
    testing_start(&testing, with_watch);
    for (int i = 0; i < 3; i++) {
        watched_begun = watched_left = false;
        int fd = client_connect(testing.port);
        struct linger reset = {.l_onoff = 1};
        client_send(fd, "GET / HTTP/1.1\r\n" HOST "\r\n");
        for (int k = 0; k < 60000 && !watched_begun; k++)
            sleep_ms(1); /* a reset would take the request back */
        sleep_ms(5);
        CHECK(!watched_left);
        if (i == 1) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        if (i == 2)
            shutdown(fd, SHUT_WR);
        else
            close(fd);
        for (int k = 0; k < TEST_WAIT_MS && !watched_left; k++) sleep_ms(1);
        CHECK(watched_left);
        if (i == 2) close(fd);
    }
    testing_end(&testing);
}

/* ---- bodies and trailers ---- */

static uint64_t limit_by_target(void *context, enum http_method method, struct slice target)
{
    (void)context;
    return method == HTTP_PUT && slice_starts(target, SLICE("/size?big")) ? 20 : 10;
}

static void with_limits_by_target(struct net_options *options)
{
    options->handler.body_limit = limit_by_target;
}

static int status_of_body(uint16_t port, const char *request, bool chunked, size_t len)
{
    char text[512];
    const char *filler = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    int used = snprintf(text, sizeof text, "%s HTTP/1.1\r\n" HOST, request);
    if (chunked)
        snprintf(text + used, sizeof text - (size_t)used,
                 "Transfer-Encoding: chunked\r\n\r\n%zx\r\n%.*s\r\n0\r\n\r\n", len, (int)len, filler);
    else
        snprintf(text + used, sizeof text - (size_t)used, "Content-Length: %zu\r\n\r\n%.*s", len, (int)len,
                 filler);
    return client_status(port, text);
}

TEST(net_body_limits_by_target)
{
    static const struct {
        const char *request;
        size_t len;
        int status;
    } cases[] = {
        {"PUT /size?big", 20, 200},  {"PUT /size?big", 21, 413}, {"POST /size?big", 20, 413},
        {"POST /size?big", 10, 200}, {"PUT /size", 20, 413},     {"PUT /size", 10, 200},
    };
    struct testing testing;
    testing_start(&testing, with_limits_by_target);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int chunked = 0; chunked < 2; chunked++)
            CHECK_INT(status_of_body(testing.port, cases[i].request, chunked, cases[i].len), cases[i].status);
    testing_end(&testing);
}

static void on_trailer(void *context, struct http_exchange *exchange)
{
    (void)context;
    struct slice found = http_trailer_find(exchange, SLICE("X-Sum"));
    buf_slice(&exchange->reply, found.data ? found : SLICE("none"));
    http_reply(exchange, 200, SLICE("text/plain"), SLICE_NONE);
}

static void with_trailer(struct net_options *options)
{
    options->handler.request = on_trailer;
}

TEST(net_trailers_reach_the_handler)
{
    static const char *const cases[][2] = {
        {"X-Sum: 12\r\n", "12"}, {"A: b\r\nx-sum:  3 \r\nX-Sum: 4\r\n", "3"}, {"", "none"}};
    struct testing testing;
    struct reply reply;
    testing_start(&testing, with_trailer);
    int fd = client_connect(testing.port);
    for (int i = 0; i < 3; i++) {
        client_send(fd, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n");
        client_send(fd, cases[i][0]);
        client_send(fd, "\r\n");
        CHECK(client_read(fd, &reply) && reply.body && strcmp(reply.body, cases[i][1]) == 0);
        reply_free(&reply);
    }
    close(fd);
    testing_end(&testing);
}
