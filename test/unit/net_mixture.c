/* Many connections at once, each with a stream of random requests cut into random pieces, answered in all
 * ways a handler may answer. Every reply must be the right one, whole and in order. The seed is fixed: a
 * failure repeats. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "unit/net_testing.h"
#include "unit/test.h"

#define CLIENTS  8
#define REQUESTS 150
#define BODY_MAX 40000

struct client {
    pthread_t thread;
    struct buf stream; /* all requests */
    char *expected[REQUESTS];
    struct random random;
    uint16_t port;
    int fd;
    bool failed;
};

static void put_chunked(struct client *client, const char *body, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t now = 1 + random_below(&client->random, len - at);
        buf_printf(&client->stream, "%zX%s\r\n", now, random_below(&client->random, 3) ? "" : ";ext=\"a b\"");
        buf_put(&client->stream, body + at, now);
        buf_text(&client->stream, "\r\n");
        at += now;
    }
    buf_text(&client->stream, "0\r\n");
    if (random_below(&client->random, 2)) buf_text(&client->stream, "Trailer: x\r\n");
    buf_text(&client->stream, "\r\n");
}

static char *put_request(struct client *client, int number)
{
    static const char *const paths[] = {"/echo", "/turn", "/later"};
    uint64_t dice = random_below(&client->random, 20);
    const char *path = paths[dice < 14 ? 0 : dice < 19 ? 1 : 2];
    uint64_t size_kind = random_below(&client->random, 10);
    size_t len = size_kind < 6 ? random_below(&client->random, 200) : 0;
    if (size_kind == 9) len = random_below(&client->random, BODY_MAX);
    char *body = malloc(len + 1);
    for (size_t i = 0; i < len; i++) body[i] = (char)('a' + random_below(&client->random, 26));
    body[len] = 0;
    buf_printf(&client->stream, "POST %s?%d HTTP/1.1\r\nHost: h\r\nX-Filler: %.*s\r\n", path, number,
               (int)random_below(&client->random, 60),
               "############################################################");
    if (random_below(&client->random, 2)) {
        buf_text(&client->stream, "Transfer-Encoding: chunked\r\n\r\n");
        put_chunked(client, body, len);
    } else {
        buf_printf(&client->stream, "Content-Length: %zu\r\n\r\n", len);
        buf_put(&client->stream, body, len);
    }
    size_t expected_len = len + 64;
    char *expected = malloc(expected_len);
    snprintf(expected, expected_len, "POST %s [%d] %s", path, number, body);
    free(body);
    return expected;
}

static void *send_stream(void *argument)
{
    struct client *client = argument;
    for (size_t at = 0; at < client->stream.len;) {
        size_t most = random_below(&client->random, 4) ? 100 : 30000;
        size_t now = 1 + random_below(&client->random, most);
        if (now > client->stream.len - at) now = client->stream.len - at;
        if (client_send_bytes(client->fd, client->stream.data + at, now) != now) break;
        at += now;
    }
    shutdown(client->fd, SHUT_WR);
    return NULL;
}

static void *run_client(void *argument)
{
    struct client *client = argument;
    pthread_t sender;
    client->fd = client_connect(client->port);
    pthread_create(&sender, NULL, send_stream, client);
    for (int i = 0; i < REQUESTS && !client->failed; i++) {
        struct reply reply;
        client->failed = !client_read(client->fd, &reply) || strcmp(reply.body, client->expected[i]) != 0;
        reply_free(&reply);
    }
    if (!client->failed) client->failed = !client_closed(client->fd);
    pthread_join(sender, NULL);
    close(client->fd);
    return NULL;
}

static void two_loops(struct net_options *options)
{
    options->threads = 2;
}

TEST(net_mixture_of_everything)
{
    static struct client clients[CLIENTS];
    struct testing testing;
    testing_start(&testing, two_loops);
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *client = &clients[c];
        random_seed(&client->random, 1000 + c);
        client->port = testing.port;
        for (int i = 0; i < REQUESTS; i++) client->expected[i] = put_request(client, i);
        pthread_create(&client->thread, NULL, run_client, client);
    }
    for (unsigned c = 0; c < CLIENTS; c++) {
        pthread_join(clients[c].thread, NULL);
        CHECK(!clients[c].failed);
        for (int i = 0; i < REQUESTS; i++) free(clients[c].expected[i]);
        buf_free(&clients[c].stream);
    }
    testing_end(&testing);
}
