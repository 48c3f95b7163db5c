/* Connections are spread over the loops, and spread again when clients leave or fall silent. */
#include <stdio.h>
#include <unistd.h>

#include "base/stats.h"
#include "unit/net_testing.h"
#include "unit/test.h"

#define REQUEST(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

enum { CLIENTS = 32 };

static void two_threads(struct net_options *options)
{
    options->threads = 2;
}

static void connect_all(struct testing *testing, int fds[])
{
    const struct net_stats *stats = net_server_stats(testing->server);
    uint64_t total = stats_read(&stats->connections_total) + CLIENTS;
    for (int i = 0; i < CLIENTS; i++) fds[i] = client_connect(testing->port);
    for (int i = 0; i < TEST_WAIT_MS && stats_read(&stats->connections_total) < total; i++) sleep_ms(1);
    CHECK_INT(stats_read(&stats->connections_total), total);
}

static unsigned connections_of(const struct testing *testing, unsigned loop)
{
    return net_server_loop_connections(testing->server, loop);
}

static void await_connections(const struct testing *testing, unsigned loop, unsigned count)
{
    for (int i = 0; i < TEST_WAIT_MS && connections_of(testing, loop) != count; i++) sleep_ms(1);
    CHECK_INT(connections_of(testing, loop), count);
}

/* Every `step`th of them. */
static void ask(int fds[], int step, const char *request)
{
    for (int i = 0; i < CLIENTS; i += step) client_send(fds[i], request);
    for (int i = 0; i < CLIENTS; i += step) {
        struct reply reply;
        CHECK(client_read(fds[i], &reply) && reply.status == 200);
        reply_free(&reply);
    }
}

static bool are_even(const struct testing *testing)
{
    unsigned first = connections_of(testing, 0), second = connections_of(testing, 1);
    return first <= second + 1 && second <= first + 1;
}

static void ask_until_even(const struct testing *testing, int fds[], int step)
{
    CHECK(!are_even(testing));
    for (int i = 0; i < TEST_WAIT_MS && !are_even(testing); i++)
        ask(fds, step, i % 2 ? REQUEST("/later") : REQUEST("/turn"));
    CHECK(are_even(testing));
    CHECK(stats_read(&net_server_stats(testing->server)->moved) > 0);
}

static void close_every(int fds[], int first, int step)
{
    for (int i = first; i < CLIENTS; i += step) close(fds[i]);
}

TEST(net_connections_are_dealt_evenly)
{
    struct testing testing;
    int fds[CLIENTS];
    testing_start(&testing, two_threads);
    connect_all(&testing, fds);
    CHECK_INT(connections_of(&testing, 0), CLIENTS / 2);
    CHECK_INT(connections_of(&testing, 1), CLIENTS / 2);
    close_every(fds, 0, 1);
    testing_end(&testing);
}

/* Those who leave were all of one loop. */
TEST(net_connections_that_stay_are_spread_again)
{
    struct testing testing;
    int fds[CLIENTS];
    testing_start(&testing, two_threads);
    connect_all(&testing, fds);
    close_every(fds, 1, 2);
    await_connections(&testing, 1, 0);
    ask_until_even(&testing, fds, 2);
    close_every(fds, 0, 2);
    testing_end(&testing);
}

/* A loop that is held up has not noticed that its clients left, so newcomers go to the other. */
TEST(net_connections_dealt_by_a_stale_count_are_spread_again)
{
    struct testing testing;
    int before[CLIENTS], fds[CLIENTS];
    unsigned most = 0, least;
    testing_start(&testing, two_threads);
    connect_all(&testing, before);
    client_send(before[1], REQUEST("/hold"));
    for (int i = 0; i < TEST_WAIT_MS && !most; i++) {
        testing_loop_share(2, &most, &least);
        sleep_ms(1);
    }
    close_every(before, 0, 2);
    close_every(before, 3, 2);
    await_connections(&testing, 0, 0);
    connect_all(&testing, fds);
    await_connections(&testing, 0, CLIENTS * 3 / 4);
    testing_let_go();
    close(before[1]);
    await_connections(&testing, 1, CLIENTS / 4);
    ask_until_even(&testing, fds, 1);
    close_every(fds, 0, 1);
    testing_end(&testing);
}

/* Who is silent does not count: of each client's two connections one is in use, and all of those came to one loop. */
TEST(net_busy_connections_are_spread)
{
    struct testing testing;
    int fds[CLIENTS];
    bool is_spread = false;
    testing_start(&testing, two_threads);
    connect_all(&testing, fds);
    for (int i = 0; i < TEST_WAIT_MS && !is_spread; i++) {
        ask(fds, 2, REQUEST("/echo"));
        is_spread = connections_of(&testing, 1) >= CLIENTS / 2 + CLIENTS / 4;
    }
    CHECK(is_spread);
    close_every(fds, 0, 1);
    testing_end(&testing);
}
