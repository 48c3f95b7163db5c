/* Calls out, against a server of ours that does what the path says, and against sockets that misbehave. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/stats.h"
#include "client/client.h"
#include "net/net.h"
#include "unit/test.h"

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- the server ---- */

/*   /echo     method, query, body, and the header X-Test
 *   /status   as the query says
 *   /size     as many bytes as the query says
 *   /moved    a redirect to /echo
 *   /keep     never answered */
static struct net_server *server;
static pthread_t server_thread;
static char base_url[64];
static _Atomic unsigned served_count;

static void on_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    unsigned long long number = 0;
    slice_to_u64(exchange->query, 100000000, &number);
    served_count++;
    struct slice test = http_header_find(exchange, SLICE("X-Test"));
    if (slice_equal(exchange->path, SLICE("/keep"))) return;
    if (slice_equal(exchange->path, SLICE("/size"))) {
        for (unsigned long long i = 0; i < number; i++) buf_byte(&exchange->reply, 'x');
    } else {
        buf_printf(&exchange->reply, "%.*s [%.*s] %.*s (%.*s)", SLICE_ARG(exchange->method_text),
                   SLICE_ARG(exchange->query), SLICE_ARG(exchange->body), SLICE_ARG(test));
    }
    int status = slice_equal(exchange->path, SLICE("/status"))  ? (int)number
                 : slice_equal(exchange->path, SLICE("/moved")) ? 302
                                                                : 200;
    http_reply(exchange, status, SLICE("text/plain"), SLICE("Location: /echo\r\nX-Told:  a value \r\n"));
}

static struct slice on_refusal(void *context, int *status, const char *reason, struct buf *body)
{
    (void)context;
    buf_printf(body, "%d %s", *status, reason);
    return SLICE("text/plain");
}

static void *server_main(void *argument)
{
    net_server_run(argument);
    return NULL;
}

static void server_start(void)
{
    char error[256];
    struct net_limits limits = net_limits_default;
    limits.drain_ms = 0;
    server = net_server_new(&(struct net_options){.host = "127.0.0.1",
                                                  .threads = 1,
                                                  .limits = limits,
                                                  .handler = {.request = on_request, .refusal = on_refusal}},
                            error, sizeof error);
    ensure(server);
    snprintf(base_url, sizeof base_url, "http://127.0.0.1:%u", net_server_port(server));
    served_count = 0;
    ensure(pthread_create(&server_thread, NULL, server_main, server) == 0);
}

static void server_end(void)
{
    net_server_stop(server);
    pthread_join(server_thread, NULL);
    net_server_free(server);
}

/* ---- calls ---- */

static struct client *opened(uint32_t in_flight)
{
    char error[256] = "";
    struct client *client = client_open(&(struct client_options){.in_flight = in_flight}, error,
                                        sizeof error);
    if (!client) test_failed(__FILE__, __LINE__, "%s", error);
    ensure(client);
    return client;
}

/* A call with all that it points at. */
struct made {
    struct client_call call;
    struct arena arena;
    struct buf reply;
    char url[128];
    _Atomic unsigned done;
};

static void count_done(struct client_call *call)
{
    struct made *made = call->context;
    made->done++;
}

static void make(struct made *made, const char *method, const char *path)
{
    memset(made, 0, sizeof *made);
    snprintf(made->url, sizeof made->url, "%s%s", path[0] == '/' ? base_url : "", path);
    made->call = (struct client_call){.method = method,
                                      .url = made->url,
                                      .arena = &made->arena,
                                      .reply = &made->reply,
                                      .done = count_done,
                                      .context = made};
}

static void made_free(struct made *made)
{
    arena_free(&made->arena);
    buf_free(&made->reply);
}

static void await(struct made *made)
{
    for (int i = 0; i < TEST_WAIT_MS && !made->done; i++) sleep_ms(1);
    CHECK_INT(made->done, 1);
}

static void expect_call(struct client *client, const char *method, const char *path, struct slice body,
                        int status, const char *reply)
{
    struct made made;
    make(&made, method, path);
    static const char *const headers[] = {"X-Test: tried", "Content-Type: text/plain", NULL};
    made.call.headers = headers;
    made.call.body = body;
    buf_text(&made.reply, "before ");
    client_call(client, &made.call);
    CHECK_INT(made.call.end, CLIENT_ANSWERED);
    CHECK_INT(made.call.status, status);
    CHECK_INT(made.done, 0); /* who waits is not called */
    CHECK(made.call.done == count_done && made.call.context == &made);
    CHECK_TEXT(slice_from(buf_view(&made.reply), 7), reply);
    made_free(&made);
}

TEST(client_methods_and_statuses)
{
    server_start();
    struct client *client = opened(0);
    for (int round = 0; round < 2; round++) {
        expect_call(client, "POST", "/echo?q", SLICE("{}"), 200, "POST [q] {} (tried)");
        expect_call(client, "POST", "/echo", SLICE(""), 200, "POST []  (tried)");
        expect_call(client, "GET", "/echo?q", SLICE(""), 200, "GET [q]  (tried)");
        expect_call(client, "GET", "/echo", SLICE("with"), 200, "GET [] with (tried)");
        expect_call(client, "PUT", "/echo", SLICE("x"), 200, "PUT [] x (tried)");
        expect_call(client, "DELETE", "/echo", SLICE(""), 200, "DELETE []  (tried)");
        expect_call(client, "HEAD", "/echo", SLICE(""), 200, "");
        expect_call(client, "POST", "/status?503", SLICE(""), 503, "POST [503]  (tried)");
        expect_call(client, "POST", "/moved", SLICE(""), 302, "POST []  (tried)");
    }
    CHECK_INT(stats_read(&net_server_stats(server)->connections_total), 1);
    client_close(client);
    server_end();
}

static void note_header(struct client_call *call, struct slice name, struct slice value)
{
    struct made *made = call->context;
    if (slice_equal_ignoring_case(name, SLICE("x-told"))) {
        made->done++;
        CHECK_TEXT(value, "a value");
    }
}

TEST(client_tells_the_headers)
{
    struct made made;
    server_start();
    struct client *client = opened(1);
    make(&made, "GET", "/echo");
    made.call.header = note_header;
    client_call(client, &made.call);
    CHECK_INT(made.done, 1);
    made_free(&made);
    client_close(client);
    server_end();
}

static void prepare_body(struct client_call *call)
{
    struct made *made = call->context;
    static const char *const headers[] = {"X-Test: just now", NULL};
    call->headers = headers;
    call->body = SLICE("prepared");
    snprintf(made->url, sizeof made->url, "%s/echo", base_url);
}

TEST(client_prepares_after_the_pause)
{
    struct made made;
    server_start();
    struct client *client = opened(1);
    make(&made, "POST", "");
    made.call.prepare = prepare_body;
    made.call.pause_us = 20000;
    int64_t before = monotonic_us();
    client_call(client, &made.call);
    CHECK(monotonic_us() - before >= 20000);
    CHECK_TEXT(buf_view(&made.reply), "POST [] prepared (just now)");
    made_free(&made);
    client_close(client);
    server_end();
}

#define MANY 200

TEST(client_moves_many_with_few_connections)
{
    static struct made many[MANY];
    server_start();
    struct client *client = opened(4);
    for (int i = 0; i < MANY; i++) {
        char path[32];
        snprintf(path, sizeof path, "/echo?%d", i);
        make(&many[i], "POST", path);
        many[i].call.pause_us = i % 3 == 0 ? 1000 * (i % 7) : 0;
        client_begin(client, &many[i].call);
    }
    for (int i = 0; i < MANY; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "POST [%d]  ()", i);
        await(&many[i]);
        CHECK_INT(many[i].call.end, CLIENT_ANSWERED);
        CHECK_TEXT(buf_view(&many[i].reply), expected);
        made_free(&many[i]);
    }
    CHECK_INT(served_count, MANY);
    CHECK(stats_read(&net_server_stats(server)->connections_total) <= 4);
    client_close(client);
    server_end();
}

/* ---- what goes wrong ---- */

static void expect_failure(struct client *client, struct made *made, enum client_end end, const char *failure)
{
    buf_text(&made->reply, "before");
    client_call(client, &made->call);
    CHECK_INT(made->call.end, end);
    CHECK_INT(made->call.status, 0);
    CHECK_TEXT(buf_view(&made->reply), "before");
    CHECK(made->call.failure.len > 0);
    if (failure) CHECK_TEXT(made->call.failure, failure);
    made_free(made);
}

TEST(client_refuses_what_is_no_http)
{
    static const char *const urls[] = {"file:///etc/passwd", "gopher://127.0.0.1/", "nonsense", ""};
    struct made made;
    struct client *client = opened(1);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        make(&made, "GET", urls[i]);
        expect_failure(client, &made, CLIENT_REFUSED, "it is no URL of HTTP");
    }
    make(&made, "GET", "http://");
    expect_failure(client, &made, CLIENT_REFUSED, NULL);
    client_close(client);
}

TEST(client_bounds_replies)
{
    struct made made;
    server_start();
    struct client *client = opened(1);
    make(&made, "GET", "/size?1001");
    made.call.reply_max_bytes = 1000;
    expect_failure(client, &made, CLIENT_REFUSED, "the reply is too long");
    make(&made, "GET", "/size?1000");
    made.call.reply_max_bytes = 1000;
    client_call(client, &made.call);
    CHECK_INT(made.call.end, CLIENT_ANSWERED);
    CHECK_INT(made.reply.len, 1000);
    made_free(&made);
    client_close(client);
    server_end();
}

TEST(client_times_out)
{
    struct made made;
    server_start();
    struct client *client = opened(1);
    make(&made, "POST", "/keep");
    made.call.total_ms = 50;
    expect_failure(client, &made, CLIENT_BROKEN, NULL);
    CHECK(made.call.timed_out);
    expect_call(client, "GET", "/echo", SLICE(""), 200, "GET []  (tried)");
    client_close(client);
    server_end();
}

/* A socket on the loopback; listening or not. */
static int socket_make(bool listening, char *url, size_t url_len)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ensure(bind(fd, (struct sockaddr *)&address, len) == 0 && (!listening || listen(fd, 4) == 0));
    ensure(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    snprintf(url, url_len, "http://127.0.0.1:%u/", ntohs(address.sin_port));
    return fd;
}

/* Takes one connection, reads a little, says something, closes. */
static void *say_and_close(void *argument)
{
    char text[4096];
    int fd = accept(*(int *)argument, NULL, NULL);
    ensure(read(fd, text, sizeof text) > 0);
    static const char part[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly a part";
    ensure(send(fd, part, sizeof part - 1, MSG_NOSIGNAL) > 0);
    close(fd);
    return NULL;
}

/* A server that takes one connection says it. */
static void expect_failure_of(void *(*say)(void *), struct client *client, struct made *made,
                              enum client_end end, const char *failure)
{
    char url[64];
    pthread_t thread;
    int fd = socket_make(true, url, sizeof url);
    pthread_create(&thread, NULL, say, &fd);
    make(made, "POST", url);
    expect_failure(client, made, end, failure);
    pthread_join(thread, NULL);
    close(fd);
}

TEST(client_tells_nobody_there_from_lost_connections)
{
    struct made made;
    char url[64];
    struct client *client = opened(1);
    int fd = socket_make(false, url, sizeof url);
    make(&made, "POST", url);
    expect_failure(client, &made, CLIENT_UNCONNECTED, NULL);
    close(fd);
    expect_failure_of(say_and_close, client, &made, CLIENT_BROKEN, NULL);
    CHECK(!made.call.timed_out);
    client_close(client);
}

/* Takes one connection, and tells a reply whose trailer is far longer than any. */
static void *say_trailer(void *argument)
{
    char text[4096];
    int fd = accept(*(int *)argument, NULL, NULL);
    ensure(read(fd, text, sizeof text) > 0);
    struct buf out = {0};
    buf_text(&out, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n");
    for (int i = 0; i < 100000; i++) buf_printf(&out, "X-%d: and so on\r\n", i);
    buf_text(&out, "\r\n");
    ssize_t sent = 0;
    for (size_t at = 0; at < out.len && sent >= 0; at += (size_t)(sent > 0 ? sent : 0))
        sent = send(fd, out.data + at, out.len - at, MSG_NOSIGNAL);
    close(fd);
    buf_free(&out);
    return NULL;
}

TEST(client_bounds_the_headers_behind_a_body)
{
    struct made made;
    struct client *client = opened(1);
    expect_failure_of(say_trailer, client, &made, CLIENT_REFUSED, "the reply is too long");
    client_close(client);
}

/* ---- the end ---- */

static struct client *closing;
static struct made again;

static void begin_again(struct client_call *call)
{
    count_done(call);
    client_begin(closing, &again.call);
}

TEST(client_close_ends_what_is_under_way)
{
    static struct made many[8];
    server_start();
    struct client *client = closing = opened(2);
    make(&again, "GET", "/echo");
    for (int i = 0; i < 8; i++) {
        make(&many[i], "POST", "/keep");
        if (i >= 6) many[i].call.pause_us = 3600ll * 1000000;
        if (i == 0) many[i].call.done = begin_again;
        client_begin(client, &many[i].call);
    }
    for (int i = 0; i < TEST_WAIT_MS && served_count < 2; i++) sleep_ms(1);
    client_close(client);
    for (int i = 0; i < 8; i++) {
        CHECK_INT(many[i].done, 1);
        CHECK_INT(many[i].call.end, CLIENT_BROKEN);
        CHECK_TEXT(many[i].call.failure, "the client was closed");
        made_free(&many[i]);
    }
    CHECK_INT(again.done, 1);
    CHECK_INT(again.call.end, CLIENT_BROKEN);
    made_free(&again);
    server_end();
}
