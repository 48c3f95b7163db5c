/* A server on a free loopback port with a handler that does what the path says, and a client made of plain
 * sockets. */
#ifndef TEST_UNIT_NET_TESTING_H
#define TEST_UNIT_NET_TESTING_H

#include <pthread.h>

#include "net/net.h"

/* Paths of the handler:
 *   /echo     the method, path, query and body
 *   /headers  every header as "name=value" lines
 *   /size     the lengths of body and body_sent
 *   /repeat?N N bytes of text that compresses well
 *   /act?N    the same as the reply of what cannot be taken back, where there is room for one
 *   /packed?N the same through http_reply_pack, with the length that it left in a header
 *   /coded    a body that the handler says is compressed already
 *   /empty    204
 *   /turn     answered in turn_end
 *   /later    answered by another thread that posts to the loop
 *   /pieces   "first", then as many lines as the query says, each a piece in a turn of its own
 *   /keep     answered when testing_release is called
 *   /long     keeps its loop for two milliseconds
 *   /hold     keeps its loop until testing_let_go is called */
struct testing {
    struct net_server *server;
    pthread_t thread;
    uint16_t port;
};

extern const struct net_handler testing_handler;

/* Changes what it likes of the options; may be NULL. */
typedef void testing_adjust(struct net_options *options);

void testing_start(struct testing *testing, testing_adjust *adjust);
/* Runs a server that was made elsewhere. */
void testing_run(struct testing *testing, struct net_server *server);
/* Stops the server, waits for it and frees it. */
void testing_end(struct testing *testing);
void testing_release(void);
void testing_forget(void); /* what /keep holds is never answered */
/* Requests that /keep holds. */
unsigned testing_kept(void);
unsigned testing_acted(void); /* by /act, of all servers */
unsigned testing_turns_with_requests(void);
void testing_let_go(void);
/* The most requests of /long in one turn since the last call. */
unsigned testing_long_in_a_turn(void);
/* The most requests that one loop of the last server has handled, and the least. */
void testing_loop_share(unsigned loops, unsigned *most, unsigned *least);

struct reply {
    int status;
    char head[8192];
    char *body; /* owned; ended by NUL */
    size_t body_len;
};

int client_connect(uint16_t port);
/* All of it, or fewer bytes when the server has closed. */
size_t client_send_bytes(int fd, const void *bytes, size_t len);
size_t client_send(int fd, const char *text);
/* Reads one reply, as long as its Content-Length says. False at the end of the connection or after five
 * seconds. */
bool client_read(int fd, struct reply *reply);
bool client_read_head(int fd, struct reply *reply); /* for HEAD: no body follows */
void reply_free(struct reply *reply);
/* The header's value in a static buffer, or NULL. */
const char *reply_header(const struct reply *reply, const char *name);
/* True when the server closes without another byte, within five seconds. */
bool client_closed(int fd);
/* Sends, reads one reply, answers its status (0: none), closes. */
int client_status(uint16_t port, const char *text);
void sleep_ms(long ms);

#endif
