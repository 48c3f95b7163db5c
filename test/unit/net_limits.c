/* Clients that break a rule, are slow, or are too many; and how a server ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stats.h"
#include "unit/net_testing.h"
#include "unit/test.h"

#define HOST "Host: h\r\n"

TEST(net_refusals_have_status_body_and_close)
{
    static const struct {
        int status;
        const char *request;
    } cases[] = {
        {400, "NONSENSE\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 16777217\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Content-Length: 999999999999999999999999\r\n\r\n"},
        {413, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1000001\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n"},
        {505, "GET / HTTP/3.0\r\n" HOST "\r\n"},
    };
    struct testing testing;
    testing_start(&testing, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reply reply;
        char start[32];
        int fd = client_connect(testing.port);
        client_send(fd, cases[i].request);
        CHECK(client_read(fd, &reply));
        CHECK_INT(reply.status, cases[i].status);
        snprintf(start, sizeof start, "{\"status\":%d,", cases[i].status);
        CHECK(reply.body && strncmp(reply.body, start, strlen(start)) == 0);
        CHECK(strcmp(reply_header(&reply, "Connection"), "close") == 0);
        CHECK(strcmp(reply_header(&reply, "Content-Type"), "application/json") == 0);
        CHECK(client_closed(fd));
        reply_free(&reply);
        close(fd);
    }
    CHECK_INT(stats_read(&net_server_stats(testing.server)->refused), sizeof cases / sizeof *cases);
    testing_end(&testing);
}

TEST(net_good_requests_before_a_bad_one_are_answered)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /echo HTTP/1.1\r\n" HOST "\r\nGET /turn HTTP/1.1\r\n" HOST
                    "\r\nBAD\r\n\r\nGET /echo HTTP/1.1\r\n");
    CHECK(client_read(fd, &reply) && reply.status == 200);
    reply_free(&reply);
    CHECK(client_read(fd, &reply) && reply.status == 200);
    reply_free(&reply);
    CHECK(client_read(fd, &reply) && reply.status == 400);
    reply_free(&reply);
    CHECK(client_closed(fd));
    close(fd);
    testing_end(&testing);
}

/* The client goes on sending after it was refused: it must still get to read the reply. */
TEST(net_refused_upload_can_read_its_reply)
{
    struct testing testing;
    struct reply reply;
    char *piece = calloc(1, 1000000);
    testing_start(&testing, NULL);
    int fd = client_connect(testing.port);
    client_send(fd, "POST / HTTP/1.1\r\n" HOST "Content-Length: 20000000\r\n\r\n");
    for (int i = 0; i < 20; i++) client_send_bytes(fd, piece, 1000000);
    CHECK(client_read(fd, &reply));
    CHECK_INT(reply.status, 413);
    reply_free(&reply);
    close(fd);
    free(piece);
    testing_end(&testing);
}

static void small_headers(struct net_options *options)
{
    options->limits.header_bytes = 2000;
    options->limits.header_count = 5;
}

static int status_with_filler(uint16_t port, const char *before, size_t filler, const char *after)
{
    struct buf request = {0};
    buf_slice(&request, slice_of(before));
    for (size_t i = 0; i < filler; i++) buf_byte(&request, 'f');
    buf_slice(&request, slice_of(after));
    buf_byte(&request, 0);
    int status = client_status(port, request.data);
    buf_free(&request);
    return status;
}

TEST(net_header_limits)
{
    struct testing testing;
    testing_start(&testing, small_headers);
    uint16_t port = testing.port;
    CHECK_INT(client_status(port, "GET / HTTP/1.1\r\n" HOST "a:1\r\nb:1\r\nc:1\r\nd:1\r\n\r\n"), 200);
    CHECK_INT(client_status(port, "GET / HTTP/1.1\r\n" HOST "a:1\r\nb:1\r\nc:1\r\nd:1\r\ne:1\r\n\r\n"), 431);
    CHECK_INT(status_with_filler(port, "GET / HTTP/1.1\r\n" HOST "a: ", 1900, "\r\n\r\n"), 200);
    CHECK_INT(status_with_filler(port, "GET / HTTP/1.1\r\n" HOST "a: ", 2000, "\r\n\r\n"), 431);
    CHECK_INT(status_with_filler(port, "GET / HTTP/1.1\r\n" HOST "a: ", 100000, ""), 431);
    CHECK_INT(status_with_filler(port, "GET /", 1900, " HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK_INT(status_with_filler(port, "GET /", 3000, ""), 414);
    testing_end(&testing);
}

TEST(net_large_header_within_the_limit)
{
    struct testing testing;
    testing_start(&testing, NULL);
    CHECK_INT(status_with_filler(testing.port, "GET / HTTP/1.1\r\n" HOST "a: ", 60000, "\r\n\r\n"), 200);
    CHECK_INT(status_with_filler(testing.port, "GET / HTTP/1.1\r\n" HOST "a: ", 70000, "\r\n\r\n"), 431);
    testing_end(&testing);
}

static void one_buffered_megabyte(struct net_options *options)
{
    options->limits.buffered_bytes = 1024 * 1024;
}

/* Each request is allowed, all of them together are not; when one has gone there is room again. */
TEST(net_large_requests_together_are_bounded)
{
    enum { CLIENTS = 4, BODY = 400000 };
    struct testing testing;
    struct reply reply;
    int fds[CLIENTS], refused = 0, served = 0;
    char *body = calloc(1, BODY);
    testing_start(&testing, one_buffered_megabyte);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(testing.port);
        client_send(fds[i], "POST /size HTTP/1.1\r\n" HOST "Content-Length: 400000\r\n\r\n");
        client_send_bytes(fds[i], body, BODY - 1);
    }
    const struct net_stats *stats = net_server_stats(testing.server);
    for (int i = 0; i < TEST_WAIT_MS && stats_read(&stats->refused) == 0; i++) sleep_ms(1);
    for (int i = 0; i < CLIENTS; i++) {
        client_send_bytes(fds[i], body, 1);
        CHECK(client_read(fds[i], &reply));
        refused += reply.status == 503;
        served += reply.status == 200;
        reply_free(&reply);
        close(fds[i]);
    }
    CHECK(refused >= 1 && served >= 2 && refused + served == CLIENTS);
    int fd = client_connect(testing.port);
    client_send(fd, "POST /size HTTP/1.1\r\n" HOST "Content-Length: 400000\r\n\r\n");
    client_send_bytes(fd, body, BODY);
    CHECK(client_read(fd, &reply) && reply.status == 200);
    reply_free(&reply);
    close(fd);
    free(body);
    testing_end(&testing);
}

/* ---- time-outs ---- */
static void short_times(struct net_options *options)
{
    options->limits.header_ms = 50;
    options->limits.body_ms = 150;
    options->limits.idle_ms = 300;
    options->limits.send_ms = 100;
}

/* The status of the reply that a dawdling client gets, and how long that took. */
static int dawdle(uint16_t port, const char *beginning, int64_t *took_ms)
{
    struct reply reply = {0};
    int64_t start = monotonic_us();
    int fd = client_connect(port);
    client_send(fd, beginning);
    int status = client_read(fd, &reply) ? reply.status : 0;
    if (status) CHECK(client_closed(fd));
    *took_ms = (monotonic_us() - start) / 1000;
    reply_free(&reply);
    close(fd);
    return status;
}

TEST(net_time_outs)
{
    struct testing testing;
    int64_t took_ms;
    testing_start(&testing, short_times);
    CHECK_INT(dawdle(testing.port, "GET / HT", &took_ms), 408);
    CHECK(took_ms >= 49);
    CHECK_INT(dawdle(testing.port, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab", &took_ms), 408);
    CHECK(took_ms >= 149);
    CHECK_INT(dawdle(testing.port, "", &took_ms), 0);
    CHECK(took_ms >= 299);
    CHECK_INT(stats_read(&net_server_stats(testing.server)->timeouts), 3);
    testing_end(&testing);
}

/* Bytes that keep coming do not extend the time for the headers. */
TEST(net_trickling_headers_time_out)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, short_times);
    int fd = client_connect(testing.port);
    client_send(fd, "GET / HTTP/1.1\r\n");
    struct pollfd readable = {fd, POLLIN, 0};
    for (int i = 0; i < 200 && poll(&readable, 1, 5) == 0; i++) client_send(fd, "a:b\r\n");
    CHECK(client_read(fd, &reply));
    CHECK_INT(reply.status, 408);
    reply_free(&reply);
    close(fd);
    testing_end(&testing);
}

TEST(net_client_that_does_not_take_its_reply)
{
    struct testing testing;
    testing_start(&testing, short_times);
    const struct net_stats *stats = net_server_stats(testing.server);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /repeat?20000000 HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < TEST_WAIT_MS && stats_read(&stats->timeouts) == 0; i++) sleep_ms(1);
    CHECK_INT(stats_read(&stats->timeouts), 1);
    for (int i = 0; i < TEST_WAIT_MS && stats_read(&stats->connections_open); i++) sleep_ms(1);
    CHECK_INT(stats_read(&stats->connections_open), 0);
    close(fd);
    testing_end(&testing);
}

TEST(net_handler_may_take_longer_than_all_time_outs)
{
    struct testing testing;
    struct reply reply;
    testing_start(&testing, short_times);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /keep HTTP/1.1\r\n" HOST "\r\n");
    while (testing_kept() != 1) sleep_ms(1);
    sleep_ms(500);
    testing_release();
    CHECK(client_read(fd, &reply) && reply.status == 200);
    reply_free(&reply);
    close(fd);
    testing_end(&testing);
}

/* ---- numbers of connections ---- */
static void three_connections(struct net_options *options)
{
    options->limits.connections = 3;
}

TEST(net_connection_limit)
{
    struct testing testing;
    struct reply reply;
    int fds[3];
    testing_start(&testing, three_connections);
    for (int i = 0; i < 3; i++) {
        fds[i] = client_connect(testing.port);
        client_send(fds[i], "GET /keep HTTP/1.1\r\n" HOST "\r\n");
    }
    while (testing_kept() != 3) sleep_ms(1);
    CHECK_INT(client_status(testing.port, "GET /echo HTTP/1.1\r\n" HOST "\r\n"), 503);
    testing_release();
    for (int i = 0; i < 3; i++) {
        CHECK(client_read(fds[i], &reply) && reply.status == 200);
        reply_free(&reply);
    }
    close(fds[0]);
    int status = 0;
    for (int i = 0; i < 200 && status != 200; i++, sleep_ms(5))
        status = client_status(testing.port, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    CHECK_INT(status, 200);
    for (int i = 1; i < 3; i++) close(fds[i]);
    testing_end(&testing);
}

static void few_connections(struct net_options *options)
{
    options->threads = 2;
    options->limits.connections = 16;
    options->limits.header_ms = 5000;
}

/* All connections are taken by somebody who does nothing with them, or not enough. */
static void hoard(const char *beginning)
{
    struct testing testing;
    int fds[16], status = 0;
    testing_start(&testing, few_connections);
    const struct net_stats *stats = net_server_stats(testing.server);
    for (int i = 0; i < 16; i++) {
        fds[i] = client_connect(testing.port);
        client_send(fds[i], beginning);
    }
    for (int i = 0; i < 6000 && status != 200; i++, sleep_ms(5))
        status = client_status(testing.port, "GET /echo HTTP/1.1\r\n" HOST "\r\n");
    CHECK_INT(status, 200);
    CHECK(stats_read(&stats->displaced) >= 1);
    for (int i = 0; i < 16; i++) close(fds[i]);
    testing_end(&testing);
}

TEST(net_idle_connections_make_room)
{
    hoard("");
}

TEST(net_torn_requests_make_room)
{
    hoard("POST /echo HTTP/1.1\r\nHo");
}

TEST(net_many_idle_connections)
{
    static int fds[400];
    struct testing testing;
    struct reply reply;
    testing_start(&testing, NULL);
    for (int i = 0; i < 400; i++) fds[i] = client_connect(testing.port);
    for (int i = 399; i >= 0; i -= 7) {
        client_send(fds[i], "GET /echo HTTP/1.1\r\n" HOST "\r\n");
        CHECK(client_read(fds[i], &reply) && reply.status == 200);
        reply_free(&reply);
    }
    CHECK_INT(stats_read(&net_server_stats(testing.server)->connections_open), 400);
    for (int i = 0; i < 400; i++) close(fds[i]);
    testing_end(&testing);
}

/* ---- the end ---- */
static void *stop_thread(void *server)
{
    net_server_stop(server);
    return NULL;
}

TEST(net_stop_closes_idle_and_answers_what_is_in_flight)
{
    struct testing testing;
    struct reply reply;
    pthread_t thread;
    testing_start(&testing, NULL);
    int idle = client_connect(testing.port), busy = client_connect(testing.port),
        slow = client_connect(testing.port);
    client_send(busy, "GET /keep HTTP/1.1\r\n" HOST "\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n");
    client_send(slow, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nab");
    while (testing_kept() != 1) sleep_ms(1);
    sleep_ms(20);
    pthread_create(&thread, NULL, stop_thread, testing.server);
    CHECK(client_closed(idle));
    client_send(slow, "cd");
    CHECK(client_read(slow, &reply));
    CHECK(reply.body && strcmp(reply.body, "POST /echo [] abcd") == 0);
    CHECK(strcmp(reply_header(&reply, "Connection"), "close") == 0);
    reply_free(&reply);
    testing_release();
    CHECK(client_read(busy, &reply));
    CHECK_INT(reply.status, 200);
    CHECK(strcmp(reply_header(&reply, "Connection"), "close") == 0);
    reply_free(&reply);
    CHECK(client_closed(busy)); /* the pipelined second request was not begun */
    pthread_join(thread, NULL);
    pthread_join(testing.thread, NULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(testing.port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int late = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(late, (struct sockaddr *)&address, sizeof address) != 0 && errno == ECONNREFUSED);
    net_server_free(testing.server);
    close(idle);
    close(busy);
    close(slow);
    close(late);
}

static void short_drain(struct net_options *options)
{
    options->threads = 2;
    options->limits.drain_ms = 100;
}

/* A handler that never answers delays the end by drain_ms and no more; its exchange lives until the server is
 * freed. */
TEST(net_stop_does_not_wait_for_ever)
{
    struct testing testing;
    testing_start(&testing, short_drain);
    int fd = client_connect(testing.port);
    client_send(fd, "GET /keep HTTP/1.1\r\n" HOST "\r\n");
    while (testing_kept() != 1) sleep_ms(1);
    int64_t start = monotonic_us();
    net_server_stop(testing.server);
    pthread_join(testing.thread, NULL);
    int64_t took_ms = (monotonic_us() - start) / 1000;
    CHECK(took_ms >= 99);
    testing_forget();
    net_server_free(testing.server);
    close(fd);
}

static struct slice no_refusal(void *context, int *status, const char *reason, struct buf *body)
{
    (void)context, (void)status, (void)reason, (void)body;
    return SLICE_NONE;
}

static void no_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    http_reply(exchange, 200, SLICE_NONE, SLICE_NONE);
}

static struct net_server *try_host(const char *host, uint16_t port, char *error, size_t error_len)
{
    struct net_options options = {.host = host,
                                  .port = port,
                                  .threads = 1,
                                  .limits = net_limits_default,
                                  .handler = {.request = no_request, .refusal = no_refusal}};
    return net_server_new(&options, error, error_len);
}

TEST(net_stop_before_run_returns_at_once)
{
    char error[256];
    struct net_server *server = try_host("127.0.0.1", 0, error, sizeof error);
    CHECK(server != NULL);
    net_server_stop(server);
    net_server_run(server);
    net_server_free(server);
}

TEST(net_hosts)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "0.0.0.0", "::1", "[::1]"};
    for (int i = 0; i < 5; i++) {
        char error[256] = "";
        struct net_server *server = try_host(hosts[i], 0, error, sizeof error);
        /* A machine may be without IPv6, and without localhost in /etc/hosts: then there is nothing to show. */
        bool is_missing = (i == 0 || i >= 3) && strstr(error, "no such address");
        if (is_missing) printf("skipped: this machine has no address %s\n", hosts[i]);
        CHECK((server && net_server_port(server) != 0) || is_missing);
        net_server_free(server);
    }
}

TEST(net_listen_errors_are_sentences)
{
    char error[256] = "", expected[256];
    struct net_server *server = try_host("127.0.0.1", 0, error, sizeof error);
    CHECK(server != NULL);
    CHECK(!try_host("127.0.0.1", net_server_port(server), error, sizeof error));
    snprintf(expected, sizeof expected, "port %u on 127.0.0.1 is already in use", net_server_port(server));
    CHECK_TEXT(slice_of(error), expected);
    net_server_free(server);
    CHECK(!try_host("no-such-host.invalid", 0, error, sizeof error));
    CHECK_TEXT(slice_of(error), "cannot listen on no-such-host.invalid: no such address");
    CHECK(!try_host("192.0.2.1", 0, error, sizeof error));
    CHECK_TEXT(slice_of(error), "cannot listen on 192.0.2.1: no such address");
}
