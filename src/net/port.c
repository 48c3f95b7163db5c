/* Further ports: each a listening socket of the first loop whose connections are dealt out like all others.
 *
 * A port begins and ends on the first loop, where its socket is. Its end goes from loop to loop, because
 * every loop has connections of it: the first closes the socket and its share, the next one its share, and so
 * on; then the first tells whoever closed the port, and it is gone. Connections on their way to a loop were
 * posted before, so they are there when the end arrives. While no loop runs, before net_server_run or after
 * it, the caller does all of this itself.
 *
 * A guarded port hears nobody before its guard has decided. The guest waits meanwhile as a bare descriptor,
 * which counts as a connection; the decision is carried out on the first loop, like the port's end. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "net/internal.h"

static void port_begin(struct net_port *port)
{
    struct net_loop *first = &port->server->loops[0];
    link_append(&port->server->ports, &port->all);
    /* A loop that waits for descriptors watches nobody; it will watch this port with the others. */
    if (!first->accept_again_us) listener_watch(first, &port->listener, true);
}

static void run_begin(struct net_task *task)
{
    port_begin(link_owner(task, struct net_port, opening));
}

struct net_port *net_port_open(struct net_server *server, const struct net_port_handler *handler, char *error,
                               size_t error_len)
{
    uint16_t number;
    int fd = net_listen_loopback(&number, error, error_len);
    if (fd < 0) return NULL;
    struct net_port *port = must_zero(1, sizeof *port + server->loop_count * sizeof *port->connections);
    port->listener = (struct listener){WATCHED_LISTENER, fd, port};
    port->server = server;
    port->handler = *handler;
    port->number = number;
    link_init(&port->guests);
    port->opening.run = run_begin;
    for (unsigned i = 0; i < server->loop_count; i++) link_init(&port->connections[i]);
    pthread_mutex_lock(&server->running_lock);
    if (server->running)
        net_post(&server->loops[0], &port->opening);
    else
        port_begin(port);
    pthread_mutex_unlock(&server->running_lock);
    return port;
}

uint16_t net_port_number(const struct net_port *port)
{
    return port->number;
}

void *net_port_context(const struct http_exchange *exchange)
{
    return ((const struct exchange *)exchange)->port_context;
}

/* ---- guests ---- */

struct net_guest {
    int fd;
    uint16_t peer_port, server_port;
    bool is_welcome;
    struct net_port *port; /* NULL: it is closed */
    struct net_server *server;
    struct link of_port;
    struct net_task task; /* brings the decision to the first loop */
};

void port_receive(struct net_port *port, int fd, uint16_t peer_port)
{
    struct net_guest *guest = must_zero(1, sizeof *guest);
    guest->fd = fd;
    guest->peer_port = peer_port;
    guest->server_port = port->number;
    guest->port = port;
    guest->server = port->server;
    link_init(&guest->of_port);
    link_append(&port->guests, &guest->of_port);
    atomic_fetch_add_explicit(&port->connection_count, 1, memory_order_relaxed);
    port->handler.guard(port->handler.context, guest);
}

uint16_t net_guest_peer_port(const struct net_guest *guest)
{
    return guest->peer_port;
}

uint16_t net_guest_server_port(const struct net_guest *guest)
{
    return guest->server_port;
}

/* What the guard has found out is about whoever has these addresses. As long as our end has not been reset,
 * that is who connected. */
static bool is_still_there(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

static void run_decision(struct net_task *task)
{
    struct net_guest *guest = link_owner(task, struct net_guest, task);
    struct net_port *port = guest->port;
    link_remove(&guest->of_port);
    if (port) atomic_fetch_sub_explicit(&port->connection_count, 1, memory_order_relaxed);
    if (port && guest->is_welcome && !atomic_load(&guest->server->over) && is_still_there(guest->fd))
        loop_place(&guest->server->loops[0], guest->fd, port);
    else
        close(guest->fd);
    free(guest);
}

void net_guest_decide(struct net_guest *guest, bool is_welcome)
{
    guest->is_welcome = is_welcome;
    guest->task.run = run_decision;
    net_post(&guest->server->loops[0], &guest->task);
}

/* ---- the end of a port ---- */

/* Those of one loop. Requests that the handler has outlive it, with their connections but without the port.
 */
static void port_close_share(struct net_port *port, unsigned loop_index)
{
    struct link *head = &port->connections[loop_index];
    while (!link_empty(head)) {
        struct connection *connection = link_owner(head->next, struct connection, by_port);
        connection_close(connection);
        link_remove(&connection->by_port);
        connection->port = NULL;
    }
}

static void port_close_listener(struct net_port *port)
{
    link_remove(&port->all);
    close(port->listener.fd);
    while (!link_empty(&port->guests)) {
        struct net_guest *guest = link_owner(port->guests.next, struct net_guest, of_port);
        link_remove(&guest->of_port);
        guest->port = NULL;
    }
}

static void port_end(struct net_port *port)
{
    if (port->closed) port->closed(port->handler.context);
    free(port);
}

static void run_end(struct net_task *task)
{
    struct net_port *port = link_owner(task, struct net_port, closing);
    struct net_server *server = port->server;
    if (port->closing_loop == server->loop_count) {
        port_end(port);
        return;
    }
    if (port->closing_loop == 0) port_close_listener(port);
    port_close_share(port, port->closing_loop++);
    net_post(&server->loops[port->closing_loop % server->loop_count], task);
}

void net_port_close(struct net_port *port, void (*closed)(void *context))
{
    struct net_server *server = port->server;
    port->closed = closed;
    port->closing.run = run_end;
    pthread_mutex_lock(&server->running_lock);
    bool running = server->running;
    if (running) {
        net_post(&server->loops[0], &port->closing);
    } else {
        pthread_mutex_lock(&server->over_lock); /* somebody may run a late task */
        port_close_listener(port);
        for (unsigned i = 0; i < server->loop_count; i++) port_close_share(port, i);
        pthread_mutex_unlock(&server->over_lock);
    }
    pthread_mutex_unlock(&server->running_lock);
    if (!running) port_end(port);
}

void ports_listen(struct net_loop *loop, bool on)
{
    struct link *head = &loop->server->ports;
    for (struct link *at = head->next; at != head; at = at->next)
        listener_watch(loop, &link_owner(at, struct net_port, all)->listener, on);
}
