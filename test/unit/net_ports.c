/* Further ports of a server: their own handlers, lives that differ from the server's own, and every moment at
 * which one can be closed. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/stats.h"
#include "unit/net_testing.h"
#include "unit/test.h"

#define HOST "Host: h\r\n"
#define GET  "GET /echo HTTP/1.1\r\n" HOST "\r\n"

/* A port with a name, which its handler answers with; /forward is the server's. */
struct named {
    const char *name;
    struct net_port *port;
    void (*guard)(void *context, struct net_guest *guest);
    struct net_guest *_Atomic guest; /* the last that came */
    _Atomic unsigned closed, guests;
};

static void on_named(void *context, struct http_exchange *exchange)
{
    struct named *named = context;
    CHECK(net_port_context(exchange) == named);
    if (slice_equal(exchange->path, SLICE("/echo"))) {
        buf_slice(&exchange->reply, slice_of(named->name));
        http_reply(exchange, 200, SLICE("text/plain"), SLICE_NONE);
        return;
    }
    testing_handler.request(NULL, exchange);
}

static void on_closed(void *context)
{
    struct named *named = context;
    named->closed++;
}

static void named_open(struct named *named, struct net_server *server, const char *name)
{
    char error[256] = "";
    named->name = name;
    named->closed = 0;
    named->port = net_port_open(
        server, &(struct net_port_handler){.request = on_named, .guard = named->guard, .context = named},
        error, sizeof error);
    if (!named->port) test_failed(__FILE__, __LINE__, "%s", error);
    ensure(named->port);
}

static void named_close(struct named *named)
{
    net_port_close(named->port, on_closed);
    for (int i = 0; i < TEST_WAIT_MS && !named->closed; i++) sleep_ms(1);
    CHECK_INT(named->closed, 1);
}

static void expect(int fd, const char *request, const char *body)
{
    struct reply reply;
    client_send(fd, request);
    CHECK(client_read(fd, &reply));
    CHECK_INT(reply.status, 200);
    if (reply.body) CHECK_TEXT(((struct slice){reply.body, reply.body_len}), body);
    reply_free(&reply);
}

static void three_threads(struct net_options *options)
{
    options->threads = 3;
}

TEST(net_ports_have_handlers_of_their_own)
{
    struct testing testing;
    struct named one = {0}, two = {0};
    testing_start(&testing, three_threads);
    named_open(&one, testing.server, "one");
    named_open(&two, testing.server, "two");
    CHECK(net_port_number(one.port) != net_port_number(two.port));
    int fds[6];
    for (int i = 0; i < 6; i++) fds[i] = client_connect(net_port_number(i % 2 ? two.port : one.port));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++) expect(fds[i], GET, i % 2 ? "two" : "one");
        expect(fds[0], "POST /later?x HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi", "POST /later [x] hi");
        expect(fds[1], "POST /turn HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi", "POST /turn [] hi");
    }
    int own = client_connect(testing.port);
    expect(own, GET, "GET /echo [] ");
    CHECK_INT(stats_read(&net_server_stats(testing.server)->connections_open), 1);
    named_close(&one);
    for (int i = 0; i < 6; i += 2) CHECK(client_closed(fds[i]));
    for (int i = 1; i < 6; i += 2) expect(fds[i], GET, "two");
    named_close(&two);
    for (int i = 0; i < 6; i++) close(fds[i]);
    close(own);
    testing_end(&testing);
}

/* ---- when a port may be closed ---- */

TEST(net_port_closed_before_the_server_runs)
{
    char error[256];
    struct named one = {0}, two = {0};
    struct net_options options = {
        .host = "127.0.0.1", .threads = 2, .limits = net_limits_default, .handler = testing_handler};
    struct net_server *server = net_server_new(&options, error, sizeof error);
    ensure(server);
    named_open(&one, server, "one");
    named_open(&two, server, "two");
    net_port_close(one.port, on_closed);
    CHECK_INT(one.closed, 1);
    net_port_close(two.port, NULL);
    CHECK_INT(two.closed, 0);
    net_server_free(server);
}

TEST(net_port_opened_before_and_closed_after_the_server_ran)
{
    struct testing testing;
    struct named named = {0};
    char error[256];
    struct net_options options = {
        .host = "127.0.0.1", .threads = 2, .limits = net_limits_default, .handler = testing_handler};
    struct net_server *server = net_server_new(&options, error, sizeof error);
    ensure(server);
    named_open(&named, server, "one");
    int fds[4];
    for (int i = 0; i < 4; i++) fds[i] = client_connect(net_port_number(named.port));
    testing_run(&testing, server);
    for (int i = 0; i < 4; i++) expect(fds[i], GET, "one");
    client_send(fds[3], "GET /keep HTTP/1.1\r\n" HOST "\r\n");
    while (testing_kept() != 1) sleep_ms(1);
    net_server_stop(testing.server);
    pthread_join(testing.thread, NULL);
    net_port_close(named.port, on_closed);
    CHECK_INT(named.closed, 1);
    for (int i = 0; i < 4; i++) CHECK(client_closed(fds[i]));
    testing_forget();
    net_server_free(testing.server);
    for (int i = 0; i < 4; i++) close(fds[i]);
}

/* The handler has a request of the port when it is closed: it answers into the void. */
TEST(net_port_closed_under_a_request)
{
    struct testing testing;
    struct named named = {0};
    testing_start(&testing, three_threads);
    named_open(&named, testing.server, "one");
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = client_connect(net_port_number(named.port));
        client_send(fds[i], "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
    }
    while (testing_kept() != 3) sleep_ms(1);
    named_close(&named);
    for (int i = 0; i < 3; i++) CHECK(client_closed(fds[i]));
    testing_release();
    CHECK_INT(client_status(testing.port, GET), 200);
    for (int i = 0; i < 3; i++) close(fds[i]);
    testing_end(&testing);
}

#define OPENERS        3
#define OPENINGS       40
#define RACES_PER_STOP 5

struct opener {
    struct net_server *server;
    struct named named[OPENINGS];
};

static void *opener_thread(void *argument)
{
    struct opener *opener = argument;
    for (int i = 0; i < OPENINGS; i++) {
        struct named *named = &opener->named[i];
        named_open(named, opener->server, "one");
        int fd = client_connect(net_port_number(named->port));
        client_send(fd, GET);
        net_port_close(named->port, on_closed);
        close(fd);
    }
    return NULL;
}

/* Threads open and close while the server stops: each `closed` comes exactly once. */
TEST(net_ports_opened_and_closed_while_the_server_stops)
{
    static struct opener openers[OPENERS];
    for (int race = 0; race < RACES_PER_STOP; race++) {
        struct testing testing;
        pthread_t threads[OPENERS];
        testing_start(&testing, three_threads);
        for (int i = 0; i < OPENERS; i++) {
            openers[i].server = testing.server;
            pthread_create(&threads[i], NULL, opener_thread, &openers[i]);
        }
        sleep_ms(race * 3);
        net_server_stop(testing.server);
        pthread_join(testing.thread, NULL);
        for (int i = 0; i < OPENERS; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < OPENERS; i++)
            for (int k = 0; k < OPENINGS; k++) CHECK_INT(openers[i].named[k].closed, 1);
        net_server_free(testing.server);
    }
}

/* ---- guards ---- */

static void on_guest(void *context, struct net_guest *guest)
{
    struct named *named = context;
    CHECK(net_guest_peer_port(guest) != 0);
    CHECK(net_guest_server_port(guest) != net_guest_peer_port(guest));
    named->guest = guest;
    named->guests++;
}

static struct net_guest *guest_wait(struct named *named, unsigned count)
{
    while (named->guests < count) sleep_ms(1);
    return named->guest;
}

TEST(net_port_hears_only_whom_its_guard_lets_in)
{
    struct testing testing;
    struct named named = {.guard = on_guest};
    testing_start(&testing, three_threads);
    named_open(&named, testing.server, "one");
    int friend = client_connect(net_port_number(named.port));
    struct net_guest *first = guest_wait(&named, 1);
    client_send(friend, GET);
    int stranger = client_connect(net_port_number(named.port));
    client_send(stranger, GET);
    struct net_guest *second = guest_wait(&named, 2);
    CHECK(net_guest_peer_port(first) != net_guest_peer_port(second));
    net_guest_decide(second, false);
    CHECK(client_closed(stranger));
    net_guest_decide(first, true);
    expect(friend, "", "one");
    expect(friend, GET, "one");
    CHECK_INT(named.guests, 2); /* a connection is looked at once */
    named_close(&named);
    close(friend), close(stranger);
    testing_end(&testing);
}

/* It has hung up meanwhile: whoever has its port now is somebody else. */
TEST(net_port_hears_no_guest_that_has_gone)
{
    struct testing testing;
    struct named named = {.guard = on_guest};
    struct linger at_once = {1, 0};
    testing_start(&testing, NULL);
    named_open(&named, testing.server, "one");
    int gone = client_connect(net_port_number(named.port));
    client_send(gone, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc");
    struct net_guest *guest = guest_wait(&named, 1);
    setsockopt(gone, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(gone);
    net_guest_decide(guest, true);
    int next = client_connect(net_port_number(named.port));
    net_guest_decide(guest_wait(&named, 2), true);
    expect(next, GET, "one");
    CHECK_INT(testing_kept(), 0);
    named_close(&named);
    close(next);
    testing_end(&testing);
}

/* The port ends, or the server, while guests wait: they are let go of when the guard has decided. */
TEST(net_port_closed_while_guests_wait)
{
    struct testing testing;
    struct named one = {.guard = on_guest}, two = {.guard = on_guest};
    testing_start(&testing, three_threads);
    named_open(&one, testing.server, "one");
    named_open(&two, testing.server, "two");
    int fd = client_connect(net_port_number(one.port)), other = client_connect(net_port_number(two.port));
    struct net_guest *guest = guest_wait(&one, 1), *late = guest_wait(&two, 1);
    named_close(&one);
    net_guest_decide(guest, true);
    CHECK(client_closed(fd));
    net_server_stop(testing.server);
    pthread_join(testing.thread, NULL);
    net_guest_decide(late, true);
    CHECK(client_closed(other));
    named_close(&two);
    net_server_free(testing.server);
    close(fd), close(other);
}

TEST(net_port_counts_guests_as_connections)
{
    struct testing testing;
    struct named named = {.guard = on_guest};
    static int fds[LIMIT_PORT_CONNECTIONS];
    static struct net_guest *guests[LIMIT_PORT_CONNECTIONS];
    testing_start(&testing, NULL);
    named_open(&named, testing.server, "one");
    for (unsigned i = 0; i < LIMIT_PORT_CONNECTIONS; i++) {
        fds[i] = client_connect(net_port_number(named.port));
        guests[i] = guest_wait(&named, i + 1);
    }
    int more = client_connect(net_port_number(named.port));
    CHECK(client_closed(more));
    close(more);
    for (unsigned i = 0; i < LIMIT_PORT_CONNECTIONS; i++) net_guest_decide(guests[i], false);
    for (unsigned i = 0; i < LIMIT_PORT_CONNECTIONS; i++) CHECK(client_closed(fds[i]));
    more = client_connect(net_port_number(named.port));
    net_guest_decide(guest_wait(&named, LIMIT_PORT_CONNECTIONS + 1), true);
    expect(more, GET, "one");
    for (unsigned i = 0; i < LIMIT_PORT_CONNECTIONS; i++) close(fds[i]);
    close(more);
    named_close(&named);
    testing_end(&testing);
}

/* ---- what differs from the server's own connections ---- */

static void impatient(struct net_options *options)
{
    options->limits.idle_ms = options->limits.header_ms = options->limits.body_ms = 30;
}

TEST(net_port_waits_for_quiet_processes)
{
    struct testing testing;
    struct named named = {0};
    testing_start(&testing, impatient);
    named_open(&named, testing.server, "one");
    int own = client_connect(testing.port);
    int idle = client_connect(net_port_number(named.port));
    int head = client_connect(net_port_number(named.port));
    int body = client_connect(net_port_number(named.port));
    expect(idle, GET, "one");
    client_send(head, "GET /ec");
    client_send(body, "POST /turn HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nh");
    CHECK(client_closed(own));
    sleep_ms(50);
    expect(idle, GET, "one");
    expect(head, "ho HTTP/1.1\r\n" HOST "\r\n", "one");
    expect(body, "i", "POST /turn [] hi");
    named_close(&named);
    close(own), close(idle), close(head), close(body);
    testing_end(&testing);
}

/* A client of the server waits; the server drains; a port is served meanwhile, on every loop, and opened. */
TEST(net_port_is_served_while_the_server_drains)
{
    struct testing testing;
    struct named one = {0}, two = {0};
    struct reply reply;
    testing_start(&testing, three_threads);
    named_open(&one, testing.server, "one");
    int waiting = client_connect(testing.port), fds[6];
    client_send(waiting, "GET /keep HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 3; i++) {
        fds[i] = client_connect(net_port_number(one.port));
        expect(fds[i], GET, "one");
    }
    while (testing_kept() != 1) sleep_ms(1);
    net_server_stop(testing.server);
    sleep_ms(20);
    named_open(&two, testing.server, "two");
    for (int i = 3; i < 6; i++) fds[i] = client_connect(net_port_number(two.port));
    for (int i = 0; i < 6; i++) expect(fds[i], GET, i < 3 ? "one" : "two");
    named_close(&one);
    testing_release();
    CHECK(client_read(waiting, &reply) && reply.status == 200);
    reply_free(&reply);
    pthread_join(testing.thread, NULL); /* the connections that are still open hold nothing up */
    named_close(&two);
    net_server_free(testing.server);
    for (int i = 0; i < 6; i++) close(fds[i]);
    close(waiting);
}

TEST(net_port_takes_large_headers)
{
    struct testing testing;
    struct named named = {0};
    struct buf request = {0};
    testing_start(&testing, NULL);
    named_open(&named, testing.server, "one");
    buf_text(&request, "GET /echo HTTP/1.1\r\n" HOST "X-Cause: ");
    for (int i = 0; i < 1024 * 1024; i++) buf_byte(&request, 'c');
    buf_text(&request, "\r\n\r\n");
    buf_byte(&request, 0);
    int fd = client_connect(net_port_number(named.port));
    expect(fd, request.data, "one");
    expect(fd, GET, "one");
    close(fd);
    CHECK_INT(client_status(testing.port, request.data), 431);
    buf_free(&request);
    named_close(&named);
    testing_end(&testing);
}

/* As Go's runtime client sends: chunked, with trailers that were announced. */
TEST(net_port_takes_announced_trailers)
{
    struct testing testing;
    struct named named = {0};
    testing_start(&testing, NULL);
    named_open(&named, testing.server, "one");
    int fd = client_connect(net_port_number(named.port));
    for (int i = 0; i < 2; i++)
        expect(fd,
               "POST /turn HTTP/1.1\r\n" HOST "User-Agent: Go-http-client/1.1\r\n"
               "Transfer-Encoding: chunked\r\nTrailer: Lambda-Runtime-Function-Error-Type\r\n"
               "Trailer: Lambda-Runtime-Function-Error-Body\r\n\r\n"
               "5\r\nhello\r\n0\r\nLambda-Runtime-Function-Error-Type: E\r\n"
               "Lambda-Runtime-Function-Error-Body: e30=\r\n\r\n",
               "POST /turn [] hello");
    close(fd);
    named_close(&named);
    testing_end(&testing);
}

/* A function that opens connections without end keeps nobody else out. */
TEST(net_port_has_a_limit_of_connections)
{
    struct testing testing;
    struct named one = {0}, two = {0};
    static int fds[LIMIT_PORT_CONNECTIONS];
    testing_start(&testing, three_threads);
    named_open(&one, testing.server, "one");
    named_open(&two, testing.server, "two");
    for (int i = 0; i < LIMIT_PORT_CONNECTIONS; i++) {
        fds[i] = client_connect(net_port_number(one.port));
        expect(fds[i], GET, "one");
    }
    int more = client_connect(net_port_number(one.port));
    CHECK(client_closed(more));
    CHECK_INT(client_status(net_port_number(two.port), GET), 200);
    CHECK_INT(client_status(testing.port, GET), 200);
    close(fds[0]);
    int status = 0;
    for (int i = 0; i < 1000 && status == 0; i++) status = client_status(net_port_number(one.port), GET);
    CHECK_INT(status, 200);
    for (int i = 1; i < LIMIT_PORT_CONNECTIONS; i++) close(fds[i]);
    close(more);
    named_close(&one);
    named_close(&two);
    testing_end(&testing);
}

static unsigned served_by_strict;

static void on_strict(void *context, struct http_exchange *exchange)
{
    (void)context;
    served_by_strict++;
    http_reply(exchange, 200, SLICE("text/plain"), SLICE_NONE);
}

static int admit_strict(void *context, const struct http_exchange *exchange, char *reason, size_t reason_len)
{
    (void)context;
    CHECK_INT(exchange->body.len, 0);
    if (slice_equal(exchange->path, SLICE("/fine"))) return 0;
    snprintf(reason, reason_len, "%.*s of %.*s is not for you", SLICE_ARG(exchange->method_text),
             SLICE_ARG(http_header_find(exchange, SLICE("Host"))));
    return 403;
}

TEST(net_port_refuses_by_the_head_before_the_body_comes)
{
    struct testing testing;
    struct reply reply;
    char error[256];
    testing_start(&testing, NULL);
    served_by_strict = 0;
    struct net_port *port = net_port_open(
        testing.server, &(struct net_port_handler){.request = on_strict, .admit = admit_strict}, error,
        sizeof error);
    ensure(port);
    int fd = client_connect(net_port_number(port));
    client_send(fd, "POST /fine HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nab");
    CHECK(client_read(fd, &reply));
    CHECK_INT(reply.status, 200);
    reply_free(&reply);
    client_send(fd, "POST /x HTTP/1.1\r\n" HOST "Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n");
    CHECK(client_read(fd, &reply)); /* no body was sent, and none is asked for */
    CHECK_INT(reply.status, 403);
    CHECK(strstr(reply.body, "POST of h is not for you"));
    reply_free(&reply);
    CHECK(client_closed(fd));
    CHECK_INT(served_by_strict, 1);
    net_port_close(port, NULL);
    testing_end(&testing);
}

static void with_admit(struct net_options *options)
{
    options->handler.admit = admit_strict;
}

TEST(net_server_refuses_by_the_head_but_not_on_further_ports)
{
    struct testing testing;
    struct named named = {0};
    testing_start(&testing, with_admit);
    named_open(&named, testing.server, "guest");
    CHECK_INT(client_status(testing.port, "GET /echo HTTP/1.1\r\n" HOST "\r\n"), 403);
    CHECK_INT(client_status(testing.port, "GET /fine HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK_INT(client_status(net_port_number(named.port), "GET /echo HTTP/1.1\r\n" HOST "\r\n"), 200);
    named_close(&named);
    testing_end(&testing);
}
