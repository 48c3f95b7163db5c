/* New clients. The first loop accepts for all and deals them out, fewest connections first: the kernel's own
 * ways to share a port (SO_REUSEPORT, EPOLLEXCLUSIVE) leave loops idle when there are few connections. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/stats.h"
#include "net/internal.h"

#define ACCEPT_BATCH    64
#define ACCEPT_PAUSE_US 500000 /* when descriptors have run out: others must close first */
#define CROWDED_LOG_US  60000000

void listener_watch(struct net_loop *loop, struct listener *listener, bool on)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};
    ensure(epoll_ctl(loop->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener->fd, &event) == 0);
}

void loop_listen(struct net_loop *loop)
{
    struct net_server *server = loop->server;
    for (unsigned i = 0; i < server->listener_count; i++) listener_watch(loop, &server->listeners[i], true);
}

void loop_listen_end(struct net_loop *loop)
{
    struct net_server *server = loop->server;
    for (unsigned i = 0; i < server->listener_count; i++) close(server->listeners[i].fd);
    server->listener_count = 0;
}

static void accept_pause(struct net_loop *loop, const char *reason)
{
    struct net_server *server = loop->server;
    log_line("new connections have to wait: %s", reason);
    for (unsigned i = 0; i < server->listener_count; i++) listener_watch(loop, &server->listeners[i], false);
    ports_listen(loop, false);
    loop->accept_again_us = loop->now_us + ACCEPT_PAUSE_US;
}

void loop_accept_resume(struct net_loop *loop)
{
    loop->accept_again_us = 0;
    loop_listen(loop);
    ports_listen(loop, true);
}

/* Ties go round, so that short-lived connections spread too. */
static struct net_loop *loop_choose(struct net_server *server)
{
    struct net_loop *best = NULL;
    unsigned best_count = 0;
    for (unsigned i = 0; i < server->loop_count; i++) {
        struct net_loop *loop = &server->loops[(server->next_loop + i) % server->loop_count];
        unsigned count = atomic_load_explicit(&loop->connection_count, memory_order_relaxed);
        if (best && count >= best_count) continue;
        best = loop;
        best_count = count;
    }
    server->next_loop = (best->index + 1) % server->loop_count;
    return best;
}

static void run_adopt(struct net_task *task)
{
    connection_adopt(link_owner(task, struct connection, adopt));
}

/* The log tells of it once a minute, however many there are. */
static void log_crowd(struct net_loop *loop, const char *whose, uint64_t most)
{
    struct net_server *server = loop->server;
    if (server->crowded_logged_us && loop->now_us < server->crowded_logged_us + CROWDED_LOG_US) return;
    server->crowded_logged_us = loop->now_us;
    log_line("connections %s are refused: there are %llu, and more are not allowed", whose,
             (unsigned long long)most);
}

/* Too many: say so, as long as not even those who are told are too many. */
static void accept_refuse(struct net_loop *loop, int fd, uint64_t open)
{
    struct net_server *server = loop->server;
    uint64_t most = server->limits.connections, told = most / 8 + 1;
    if (told > LIMIT_REFUSED_CONNECTIONS) told = LIMIT_REFUSED_CONNECTIONS;
    log_crowd(loop, "of clients", most);
    if (server->tls || open >= most + told) {
        stats_add(&server->stats.refused, 1);
        close(fd);
        return;
    }
    struct connection *connection = connection_new(fd, loop, NULL);
    connection_adopt(connection);
    if (connection->state == CONNECTION_IDLE) connection_refuse(connection, 503, "too many connections");
}

/* A guest beyond the limit of its port, or of all ports, is closed unheard. */
static bool accept_guest(struct net_loop *loop, int fd, struct net_port *port)
{
    struct net_server *server = loop->server;
    uint64_t most = server->limits.guests;
    bool fits = atomic_load_explicit(&server->guests_open, memory_order_relaxed) < most;
    if (fits && atomic_load_explicit(&port->connection_count, memory_order_relaxed) < LIMIT_PORT_CONNECTIONS)
        return true;
    if (!fits) log_crowd(loop, "of functions", most);
    close(fd);
    return false;
}

static bool accept_admit(struct net_loop *loop, int fd, struct net_port *port)
{
    struct net_server *server = loop->server;
    if (port) return accept_guest(loop, fd, port);
    uint64_t open = stats_read(&server->stats.connections_open);
    if (server_is_crowded(server)) /* idle connections of other loops are to make room, too */
        for (unsigned i = 1; i < server->loop_count; i++) loop_wake(&server->loops[i]);
    if (open < server->limits.connections) return true;
    accept_refuse(loop, fd, open);
    return false;
}

void loop_place(struct net_loop *loop, int fd, struct net_port *port)
{
    struct net_loop *home = loop_choose(loop->server);
    struct connection *connection = connection_new(fd, home, port);
    if (home == loop) {
        connection_adopt(connection);
        return;
    }
    connection_send_home(connection);
}

void connection_send_home(struct connection *connection)
{
    connection->adopt.run = run_adopt;
    net_post(connection->loop, &connection->adopt);
}

static uint16_t peer_port_of(const struct sockaddr_storage *from)
{
    const struct sockaddr_in *address = (const void *)from;
    bool is_loopback = from->ss_family == AF_INET && address->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    return is_loopback ? ntohs(address->sin_port) : 0;
}

static void accept_one(struct net_loop *loop, int fd, struct net_port *port,
                       const struct sockaddr_storage *from)
{
    if (!accept_admit(loop, fd, port)) return;
    if (port && port->handler.guard)
        port_receive(port, fd, peer_port_of(from));
    else
        loop_place(loop, fd, port);
}

void loop_accept(struct net_loop *loop, const struct listener *listener)
{
    for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage from = {0};
        socklen_t from_len = sizeof from;
        int fd = accept4(listener->fd, (struct sockaddr *)&from, &from_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            accept_one(loop, fd, listener->port, &from);
            continue;
        }
        bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (exhausted && !loop->accept_again_us) accept_pause(loop, strerror(errno));
        if (errno != ECONNABORTED && errno != EINTR) return;
    }
}
