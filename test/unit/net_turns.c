/* Clients whose requests take long share the turns of a loop with those whose requests do not. */
#include <unistd.h>

#include "base/stats.h"
#include "unit/net_testing.h"
#include "unit/test.h"

#define REQUEST(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"

static void expect_200(int fd)
{
    struct reply reply;
    CHECK(client_read(fd, &reply) && reply.status == 200);
    reply_free(&reply);
}

/* They all come while the loop is held, so one turn finds them all. */
TEST(net_long_requests_take_turns)
{
    enum { CLIENTS = 6 };
    struct testing testing;
    int fds[CLIENTS];
    testing_start(&testing, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = client_connect(testing.port);
        client_send(fds[i], REQUEST("/long"));
        expect_200(fds[i]);
    }
    int holder = client_connect(testing.port);
    client_send(holder, REQUEST("/hold"));
    sleep_ms(20);
    for (int i = 0; i < CLIENTS; i++) client_send(fds[i], REQUEST("/long"));
    testing_long_in_a_turn();
    testing_let_go();
    expect_200(holder);
    for (int i = 0; i < CLIENTS; i++) expect_200(fds[i]);
    CHECK_INT(testing_long_in_a_turn(), 1);
    CHECK(stats_read(&net_server_stats(testing.server)->deferred) >= 1);
    for (int i = 0; i < CLIENTS; i++) close(fds[i]);
    close(holder);
    testing_end(&testing);
}
