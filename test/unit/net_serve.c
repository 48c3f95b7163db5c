/* A real server on a loopback port: what HTTP promises to well-behaved clients. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "base/stats.h"
#include "unit/net_testing.h"
#include "unit/test.h"

#define HOST "Host: h\r\n"

static void expect_body(int fd, const char *body)
{
    struct reply reply;
    CHECK(client_read(fd, &reply));
    CHECK_INT(reply.status, 200);
    if (reply.body) CHECK_TEXT(((struct slice){reply.body, reply.body_len}), body);
    reply_free(&reply);
}

TEST(net_keep_alive_serves_many)
{
    struct testing testing;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    for (int i = 0; i < 100; i++) {
        client_send(fd, "POST /echo?q HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
        expect_body(fd, "POST /echo [q] hello");
    }
    CHECK_INT(stats_read(&net_server_stats(testing.server)->connections_total), 1);
    CHECK_INT(stats_read(&net_server_stats(testing.server)->connections_open), 1);
    close(fd);
    testing_end(&testing);
}

TEST(net_reply_head)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    CHECK(client_read(fd, &reply));
    CHECK(strncmp(reply.head, "HTTP/1.1 200 OK\r\n", 17) == 0);
    const char *date = reply_header(&reply, "Date");
    CHECK(date && strlen(date) == 29 && strcmp(date + 25, " GMT") == 0 && date[3] == ',');
    CHECK(strcmp(reply_header(&reply, "Content-Type"), "text/plain") == 0);
    CHECK(!reply_header(&reply, "Connection"));
    reply_free(&reply);
    client_send(fd, "GET /empty HTTP/1.1\r\n" HOST "\r\n");
    CHECK(client_read(fd, &reply));
    CHECK_INT(reply.status, 204);
    CHECK(!reply_header(&reply, "Content-Length") && !reply_header(&reply, "Content-Type"));
    reply_free(&reply);
    close(fd);
    testing_end(&testing);
}

TEST(net_headers_reach_the_handler)
{
    struct testing testing;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /headers HTTP/1.1\r\n" HOST "A:  b \r\na: c\r\n\r\n");
    expect_body(fd, "Host=h\nA=b\na=c\n");
    close(fd);
    testing_end(&testing);
}

TEST(net_pipelined_requests_stay_in_order)
{
    static const char *const paths[] = {"/echo", "/later", "/turn"};
    struct testing testing;
    struct buf all = {0};
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    for (int i = 0; i < 300; i++)
        buf_printf(&all, "POST %s?%d HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nxy", paths[i % 3], i);
    CHECK_INT(client_send_bytes(fd, all.data, all.len), all.len);
    for (int i = 0; i < 300; i++) {
        char body[64];
        snprintf(body, sizeof body, "POST %s [%d] xy", paths[i % 3], i);
        expect_body(fd, body);
    }
    close(fd);
    buf_free(&all);
    testing_end(&testing);
}

/* More replies than the socket takes while the client reads none, then all of them, whole. */
TEST(net_pipelining_client_that_does_not_read)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    for (int i = 0; i < 100; i++) client_send(fd, "GET /repeat?200000 HTTP/1.1\r\n" HOST "\r\n");
    sleep_ms(50);
    for (int i = 0; i < 100; i++) {
        CHECK(client_read(fd, &reply));
        CHECK_INT(reply.body_len, 200000);
        CHECK(reply.body && reply.body[199999] == 'a' + 199999 % 23);
        reply_free(&reply);
    }
    close(fd);
    testing_end(&testing);
}

TEST(net_large_and_small_replies_mix)
{
    struct testing testing;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /echo?1 HTTP/1.1\r\n" HOST "\r\nGET /repeat?20000 HTTP/1.1\r\n" HOST
                    "\r\nGET /echo?2 HTTP/1.1\r\n" HOST "\r\nGET /repeat?30000 HTTP/1.1\r\n" HOST "\r\n");
    struct reply reply;
    expect_body(fd, "GET /echo [1] ");
    CHECK(client_read(fd, &reply) && reply.body_len == 20000 && reply.body[19999] == 'a' + 19999 % 23);
    reply_free(&reply);
    expect_body(fd, "GET /echo [2] ");
    CHECK(client_read(fd, &reply) && reply.body_len == 30000 && reply.body[29999] == 'a' + 29999 % 23);
    reply_free(&reply);
    close(fd);
    testing_end(&testing);
}

TEST(net_bytes_one_at_a_time)
{
    static const char text[] = "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                               "3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n";
    struct testing testing;
    int on = 1;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof text - 1; i++) client_send_bytes(fd, text + i, 1);
        expect_body(fd, "POST /echo [] abcde");
    }
    close(fd);
    testing_end(&testing);
}

TEST(net_chunked_then_pipelined)
{
    struct testing testing;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                    "1\r\na\r\n0\r\n\r\nGET /echo?2 HTTP/1.1\r\n" HOST "\r\n");
    expect_body(fd, "POST /echo [] a");
    expect_body(fd, "GET /echo [2] ");
    close(fd);
    testing_end(&testing);
}

static void send_large(int fd, size_t len, bool chunked)
{
    char head[128], piece[8192];
    snprintf(head, sizeof head,
             "POST /size HTTP/1.1\r\n" HOST "%s: ", chunked ? "Transfer-Encoding" : "Content-Length");
    client_send(fd, head);
    snprintf(head, sizeof head, "%zu\r\nX-After: 1\r\n\r\n", len);
    client_send(fd, chunked ? "chunked\r\nX-After: 1\r\n\r\n" : head);
    memset(piece, 'p', sizeof piece);
    for (size_t sent = 0; sent < len; sent += sizeof piece) {
        size_t now = len - sent < sizeof piece ? len - sent : sizeof piece;
        snprintf(head, sizeof head, "%zx\r\n", now);
        if (chunked) client_send(fd, head);
        client_send_bytes(fd, piece, now);
        if (chunked) client_send(fd, "\r\n");
    }
    if (chunked) client_send(fd, "0\r\n\r\n");
}

TEST(net_large_bodies)
{
    static const size_t sizes[] = {0, 1, 4095, 16000, 16384, 70000, 3000000, LIMIT_BODY_BYTES};
    struct testing testing;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "%zu %zu", sizes[i], sizes[i]);
        send_large(fd, sizes[i], false);
        expect_body(fd, expected);
        send_large(fd, sizes[i], true);
        expect_body(fd, expected);
    }
    close(fd);
    testing_end(&testing);
}

/* A body that arrives after its head moved the bytes at hand: the headers must follow. */
TEST(net_headers_survive_a_growing_body)
{
    struct testing testing;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    char *body = calloc(1, 100001);
    memset(body, 'b', 100000);
    client_send(fd, "POST /headers HTTP/1.1\r\n" HOST "X-One: 1\r\nContent-Length: 100000\r\n\r\n");
    sleep_ms(10);
    client_send_bytes(fd, body, 50000);
    sleep_ms(10);
    client_send_bytes(fd, body, 50000);
    expect_body(fd, "Host=h\nX-One=1\nContent-Length=100000\n");
    free(body);
    close(fd);
    testing_end(&testing);
}

TEST(net_expect_continue)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    for (int round = 0; round < 2; round++) {
        client_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
        CHECK(client_read_head(fd, &reply));
        CHECK_INT(reply.status, 100);
        client_send(fd, "ok");
        expect_body(fd, "POST /echo [] ok");
    }
    /* A client that does not wait needs no invitation. */
    client_send(fd, "POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok");
    expect_body(fd, "POST /echo [] ok");
    close(fd);
    CHECK_INT(client_status(testing.port, "POST /echo HTTP/1.1\r\n" HOST "Expect: miracles\r\n\r\n"), 417);
    testing_end(&testing);
}

TEST(net_head_has_length_but_no_body)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "HEAD /repeat?5000 HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n");
    CHECK(client_read_head(fd, &reply));
    CHECK(strcmp(reply_header(&reply, "Content-Length"), "5000") == 0);
    client_send(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    expect_body(fd, "GET /echo [] ");
    close(fd);
    testing_end(&testing);
}

TEST(net_connection_close_and_http_1_0)
{
    static const struct {
        const char *request, *connection;
    } cases[] = {
        {"GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", "close"},
        {"GET /echo HTTP/1.0\r\n\r\n", "close"},
        {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive"},
    };
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    for (size_t i = 0; i < 3; i++) {
        int fd = client_connect(testing.port);
        client_send(fd, cases[i].request);
        CHECK(client_read(fd, &reply));
        CHECK(strcmp(reply_header(&reply, "Connection"), cases[i].connection) == 0);
        reply_free(&reply);
        if (i < 2)
            CHECK(client_closed(fd));
        else {
            client_send(fd, "GET /echo HTTP/1.0\r\n\r\n");
            expect_body(fd, "GET /echo [] ");
        }
        close(fd);
    }
    testing_end(&testing);
}

TEST(net_half_closing_client_is_answered)
{
    static const char *const requests[] = {
        "GET /echo HTTP/1.1\r\n" HOST "\r\n",
        "GET /later HTTP/1.1\r\n" HOST "\r\n",
        "GET /turn HTTP/1.1\r\n" HOST "\r\n",
    };
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    for (int i = 0; i < 3; i++) {
        int fd = client_connect(testing.port);
        client_send(fd, requests[i]);
        shutdown(fd, SHUT_WR);
        CHECK(client_read(fd, &reply));
        CHECK_INT(reply.status, 200);
        reply_free(&reply);
        CHECK(client_closed(fd));
        close(fd);
    }
    testing_end(&testing);
}

/* The exchange outlives its client: the handler answers into the void. */
TEST(net_client_closes_while_its_request_is_served)
{
    struct testing testing;
    testing_start(&testing, NULL);
    for (int i = 0; i < 10; i++) {
        int fd = client_connect(testing.port);
        struct linger reset = {.l_onoff = 1};
        client_send(fd, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
        while (testing_kept() != (unsigned)i + 1) sleep_ms(1);
        if (i % 2) setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    sleep_ms(20);
    testing_release();
    int fd = client_connect(testing.port);
    client_send(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    expect_body(fd, "GET /echo [] ");
    close(fd);
    testing_end(&testing);
}

TEST(net_client_leaves_in_mid_request)
{
    struct testing testing;
    testing_start(&testing, NULL);
    const struct net_stats *stats = net_server_stats(testing.server);
    static const char *const beginnings[] = {"", "GE",
                                             "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nab"};
    for (int i = 0; i < 3; i++) {
        int fd = client_connect(testing.port);
        client_send(fd, beginnings[i]);
        close(fd);
    }
    for (int i = 0; i < TEST_WAIT_MS && stats_read(&stats->connections_total) < 3; i++) sleep_ms(1);
    for (int i = 0; i < TEST_WAIT_MS && stats_read(&stats->connections_open) > 0; i++) sleep_ms(1);
    CHECK_INT(stats_read(&stats->connections_open), 0);
    CHECK_INT(stats_read(&stats->refused), 0);
    testing_end(&testing);
}

/* ---- gzip ---- */
static size_t zip(const void *bytes, size_t len, char *out, size_t out_len, int window_bits)
{
    z_stream stream = {0};
    deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)len;
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)out_len;
    CHECK_INT(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t made = stream.total_out;
    deflateEnd(&stream);
    return made;
}

static size_t unzip(const char *bytes, size_t len, char *out, size_t out_len)
{
    z_stream stream = {0};
    inflateInit2(&stream, 15 + 16);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)len;
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)out_len;
    CHECK_INT(inflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t made = stream.total_out;
    inflateEnd(&stream);
    return made;
}

static int post_zipped(uint16_t port, const char *path, const char *coding, const char *body, size_t len,
                       struct reply *reply)
{
    char head[256];
    int fd = client_connect(port);
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\n" HOST "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n", path, coding,
             len);
    client_send(fd, head);
    client_send_bytes(fd, body, len);
    int status = client_read(fd, reply) ? reply->status : 0;
    close(fd);
    return status;
}

TEST(net_gzip_requests)
{
    struct testing testing;
    struct reply reply;
    char body[256];
    testing_start(&testing, NULL);
    size_t len = zip("hello", 5, body, sizeof body, 31);
    CHECK_INT(post_zipped(testing.port, "/echo", "gzip", body, len, &reply), 200);
    CHECK(strcmp(reply.body, "POST /echo [] hello") == 0);
    reply_free(&reply);
    CHECK_INT(post_zipped(testing.port, "/echo", "gzip", body, len - 1, &reply), 415); /* cut off */
    reply_free(&reply);
    size_t two = len + zip(" again", 6, body + len, sizeof body - len, 31);
    CHECK_INT(post_zipped(testing.port, "/echo", "gzip", body, two, &reply), 200); /* two members */
    CHECK(strcmp(reply.body, "POST /echo [] hello again") == 0);
    reply_free(&reply);
    body[two] = 'x';
    CHECK_INT(post_zipped(testing.port, "/echo", "gzip", body, two + 1, &reply), 415); /* rubbish behind */
    reply_free(&reply);
    len = zip("hello", 5, body, sizeof body, 15);
    CHECK_INT(post_zipped(testing.port, "/echo", "deflate", body, len, &reply), 200);
    CHECK(strcmp(reply.body, "POST /echo [] hello") == 0);
    reply_free(&reply);
    CHECK_INT(post_zipped(testing.port, "/echo", "gzip", "plain text", 10, &reply), 415);
    reply_free(&reply);
    CHECK_INT(post_zipped(testing.port, "/echo", "br", "plain text", 10, &reply), 415);
    reply_free(&reply);
    testing_end(&testing);
}

static void limit_body_100k(struct net_options *options)
{
    options->limits.body_bytes = 100000;
}

TEST(net_gzip_bomb_is_refused)
{
    struct testing testing;
    struct reply reply;
    char *zeros = calloc(1, 10000000), *body = malloc(20000);
    char expected[64];
    testing_start(&testing, limit_body_100k);
    size_t len = zip(zeros, 10000000, body, 20000, 31);
    CHECK_INT(post_zipped(testing.port, "/size", "gzip", body, len, &reply), 413);
    reply_free(&reply);
    len = zip(zeros, 100000, body, 20000, 31);
    CHECK_INT(post_zipped(testing.port, "/size", "gzip", body, len, &reply), 200);
    snprintf(expected, sizeof expected, "100000 %zu", len);
    CHECK(strcmp(reply.body, expected) == 0);
    reply_free(&reply);
    len = zip(zeros, 100001, body, 20000, 31);
    CHECK_INT(post_zipped(testing.port, "/size", "gzip", body, len, &reply), 413);
    reply_free(&reply);
    testing_end(&testing);
    free(zeros);
    free(body);
}

TEST(net_gzip_replies)
{
    static const struct {
        const char *path, *accept;
        bool zipped;
        size_t len;
    } cases[] = {
        {"/repeat?50000", "gzip", true, 50000}, {"/repeat?50000", "identity", false, 50000},
        {"/repeat?1000", "gzip", false, 1000},  {"/repeat?1024", "br, gzip;q=0.5", true, 1024},
        {"/coded", "gzip", false, 2000},        {"/packed?50000", "gzip", true, 50000},
        {"/packed?500", "gzip", false, 500},
    };
    struct testing testing;
    char *plain = malloc(60000);
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char request[256], packed[64];
        struct reply reply;
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "Accept-Encoding: %s\r\n\r\n",
                 cases[i].path, cases[i].accept);
        client_send(fd, request);
        CHECK(client_read(fd, &reply));
        const char *coding = reply_header(&reply, "Content-Encoding");
        CHECK_INT(coding && strcmp(coding, "gzip") == 0, cases[i].zipped);
        snprintf(packed, sizeof packed, "%d %zu", cases[i].zipped, reply.body_len);
        const char *told = reply_header(&reply, "X-Packed");
        if (strncmp(cases[i].path, "/packed", 7) == 0) CHECK(told && strcmp(told, packed) == 0);
        size_t len = cases[i].zipped ? unzip(reply.body, reply.body_len, plain, 60000) : reply.body_len;
        CHECK_INT(len, cases[i].len);
        if (cases[i].zipped) CHECK(plain[len - 1] == (char)('a' + (len - 1) % 23));
        reply_free(&reply);
    }
    close(fd);
    free(plain);
    testing_end(&testing);
}

/* ---- tasks and turns ---- */

/* What a posted task posts to its own loop runs in the same turn. */
TEST(net_tasks_of_tasks_run_in_the_same_turn)
{
    struct testing testing;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /relay HTTP/1.1\r\n" HOST "\r\n");
    expect_body(fd, "0 turns later");
    close(fd);
    testing_end(&testing);
}

struct counted_task {
    struct net_task task;
    unsigned poster, number;
};
static unsigned next_number[2];
static bool out_of_order;

static void run_counted(struct net_task *task)
{
    struct counted_task *counted = (struct counted_task *)task;
    if (counted->number != next_number[counted->poster]++) out_of_order = true;
    free(counted);
}

static struct net_loop *post_target;
static void remember_loop(void *context, struct http_exchange *exchange)
{
    (void)context;
    post_target = exchange->loop;
    net_loop_set_user(exchange->loop, &post_target);
    http_reply(exchange, 200, SLICE("text/plain"), SLICE_NONE);
}

static void with_remember_loop(struct net_options *options)
{
    options->handler.request = remember_loop;
}

static void *poster_thread(void *argument)
{
    unsigned poster = *(unsigned *)argument;
    for (unsigned i = 0; i < 20000; i++) {
        struct counted_task *counted = calloc(1, sizeof *counted);
        *counted = (struct counted_task){{run_counted, NULL}, poster, i};
        net_post(post_target, &counted->task);
    }
    return NULL;
}

TEST(net_posts_run_in_order_of_each_poster)
{
    struct testing testing;
    pthread_t threads[2];
    unsigned posters[2] = {0, 1};
    testing_start(&testing, with_remember_loop);
    CHECK_INT(client_status(testing.port, "GET / HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK(net_loop_user(post_target) == &post_target && net_loop_index(post_target) == 0);
    next_number[0] = next_number[1] = 0;
    out_of_order = false;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, poster_thread, &posters[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    testing_end(&testing); /* what was posted before the stop still runs */
    CHECK(!out_of_order);
    CHECK_INT(next_number[0], 20000);
    CHECK_INT(next_number[1], 20000);
}

static void ask_all(int fds[], int count, const char *path)
{
    char request[128];
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "\r\n", path);
    for (int i = 0; i < count; i++) client_send(fds[i], request);
    for (int i = 0; i < count; i++) {
        struct reply reply;
        CHECK(client_read(fds[i], &reply));
        reply_free(&reply);
    }
}

TEST(net_turn_end_sees_many_requests_at_once)
{
    struct testing testing;
    int fds[20];
    testing_start(&testing, NULL);
    int busy = client_connect(testing.port);
    for (int i = 0; i < 20; i++) fds[i] = client_connect(testing.port);
    /* While the loop builds and sends a large reply, twenty requests gather at its door. */
    client_send(busy, "GET /repeat?10000000 HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n");
    ask_all(fds, 20, "/turn");
    CHECK(testing_turns_with_requests() >= 1 && testing_turns_with_requests() <= 20);
    for (int i = 0; i < 20; i++) close(fds[i]);
    close(busy);
    testing_end(&testing);
}
