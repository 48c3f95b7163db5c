/* Clients that ask for large replies and do not read them. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/stats.h"
#include "unit/net_testing.h"
#include "unit/test.h"

#define LARGE       "GET /repeat?20000000 HTTP/1.1\r\nHost: h\r\n\r\n" /* more than any socket holds */
#define SMALL       "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n"
#define LARGE_BYTES 20000000
/* With a large one this is too much for an account of 30 MB, and alone too little for its patience to become short. */
#define MEDIUM "GET /repeat?12000000 HTTP/1.1\r\nHost: h\r\n\r\n"

static void await(const _Atomic uint64_t *counter, uint64_t wanted)
{
    for (int i = 0; i < TEST_WAIT_MS && stats_read(counter) != wanted; i++) sleep_ms(1);
    CHECK_INT(stats_read(counter), wanted);
}

static void two_large_replies(struct net_options *options)
{
    options->limits.unread_bytes = 50 * 1000 * 1000;
    options->limits.send_pressed_ms = options->limits.send_ms;
}

/* The first two are held; the others are told to try again and keep their connections. */
TEST(net_unread_replies_together_are_bounded)
{
    enum { CLIENTS = 5, HELD = 2 };
    struct testing testing;
    struct reply reply;
    int fds[CLIENTS], whole = 0, refused = 0;
    testing_start(&testing, two_large_replies);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(testing.port);
        client_send(fds[i], LARGE);
    }
    await(&net_server_stats(testing.server)->refused, CLIENTS - HELD);
    CHECK_INT(client_status(testing.port, SMALL), 200);
    for (int i = 0; i < CLIENTS; i++) {
        CHECK(client_read(fds[i], &reply));
        whole += reply.status == 200 && reply.body_len == LARGE_BYTES;
        if (reply.status == 503) {
            refused++;
            reply_free(&reply);
            client_send(fds[i], SMALL);
            CHECK(client_read(fds[i], &reply) && reply.status == 200);
        }
        reply_free(&reply);
    }
    CHECK_INT(whole, HELD);
    CHECK_INT(refused, CLIENTS - HELD);
    CHECK_INT(client_status(testing.port, LARGE), 200); /* there is room again */
    for (int i = 0; i < CLIENTS; i++) close(fds[i]);
    testing_end(&testing);
}

#define ACT "POST /act?20000000 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"

static void one_large_reply(struct net_options *options)
{
    options->limits.unread_bytes = 25 * 1000 * 1000;
    options->limits.send_pressed_ms = options->limits.send_ms;
}

/* A client that has its reply, by its first byte, and does not read on. */
static int unread_client(struct testing *testing, const char *request)
{
    char byte;
    int fd = client_connect(testing->port);
    client_send(fd, request);
    CHECK(recv(fd, &byte, 1, MSG_PEEK) == 1);
    return fd;
}

/* Where no reply to a read is sent any more, those of what was done are, up to four times as much; and what is not
 * begun is told so. Here 20 MB wait for a read and 40 MB for two that acted. */
TEST(net_unread_replies_of_what_was_done_are_sent)
{
    enum { ACTED = 2 };
    struct testing testing;
    struct reply reply;
    int fds[ACTED + 1];
    unsigned before = testing_acted();
    testing_start(&testing, one_large_reply);
    fds[0] = unread_client(&testing, LARGE);
    CHECK_INT(client_status(testing.port, LARGE), 503);
    for (int i = 1; i <= ACTED; i++) fds[i] = unread_client(&testing, ACT);
    CHECK_INT(client_status(testing.port, ACT), 503); /* 60 MB are more than twice the limit */
    CHECK_INT(testing_acted(), before + ACTED);
    CHECK_INT(client_status(testing.port, SMALL), 200);
    for (int i = 0; i <= ACTED; i++) {
        CHECK(client_read(fds[i], &reply) && reply.status == 200 && reply.body_len == LARGE_BYTES);
        reply_free(&reply);
        close(fds[i]);
    }
    CHECK_INT(client_status(testing.port, ACT), 200); /* there is room again */
    testing_end(&testing);
}

static void little_patience_under_pressure(struct net_options *options)
{
    options->limits.unread_bytes = 30 * 1000 * 1000;
    options->limits.send_pressed_ms = 50;
}

TEST(net_unread_replies_are_given_up_early_when_they_are_many)
{
    struct testing testing;
    testing_start(&testing, little_patience_under_pressure);
    const struct net_stats *stats = net_server_stats(testing.server);
    int fd = client_connect(testing.port);
    client_send(fd, LARGE);
    await(&stats->timeouts, 1);
    await(&stats->connections_open, 0);
    close(fd);
    CHECK_INT(client_status(testing.port, MEDIUM), 200); /* there is room again */
    testing_end(&testing);
}

static void one_second_to_send(struct net_options *options)
{
    options->limits.send_ms = 1000;
}

/* Takes all of a reply, but lets more time pass than a client has that takes nothing. */
static bool slow_client_is_served(uint16_t port)
{
    static char waste[100000];
    size_t taken = 0;
    ssize_t count;
    int fd = client_connect(port), small = 64 * 1024;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client_send(fd, LARGE);
    while (taken < LARGE_BYTES && (count = recv(fd, waste, sizeof waste, 0)) > 0) {
        taken += (size_t)count;
        sleep_ms(8);
    }
    close(fd);
    return taken >= LARGE_BYTES;
}

/* If slow clients are cut off, they always are; a busy machine may hold up one of them. */
TEST(net_slow_clients_that_read_on_are_served)
{
    struct testing testing;
    bool served = false;
    testing_start(&testing, one_second_to_send);
    for (int i = 0; i < 3 && !served; i++) served = slow_client_is_served(testing.port);
    CHECK(served);
    testing_end(&testing);
}
