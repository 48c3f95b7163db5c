/* Listening sockets: every address that the host's name stands for, all on one port. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "net/internal.h"

#define LISTEN_BACKLOG 4096

static uint16_t port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0) return 0;
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)(void *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)(void *)&address)->sin_port);
}

/* A socket that listens on the address, or -1 and errno. */
static int listener_open(const struct addrinfo *address, uint16_t port)
{
    int on = 1;
    struct sockaddr_storage place = {0};
    memcpy(&place, address->ai_addr, address->ai_addrlen);
    if (address->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&place)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)(void *)&place)->sin_port = htons(port);
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* accepted sockets inherit it */
    if (bind(fd, (struct sockaddr *)&place, address->ai_addrlen) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static void explain(int number, const char *host, uint16_t port, char *error, size_t error_len)
{
    if (number == EADDRINUSE)
        snprintf(error, error_len, "port %u on %s is already in use", port, host);
    else if (number == EADDRNOTAVAIL || number == EAFNOSUPPORT)
        snprintf(error, error_len, "cannot listen on %s: no such address", host);
    else
        snprintf(error, error_len, "cannot listen on port %u of %s: %s", port, host, strerror(number));
}

/* Two lines of the hosts file may give a name the same address twice. */
static bool address_seen(const struct addrinfo *first, const struct addrinfo *address)
{
    for (; first != address; first = first->ai_next)
        if (first->ai_addrlen == address->ai_addrlen &&
            memcmp(first->ai_addr, address->ai_addr, address->ai_addrlen) == 0)
            return true;
    return false;
}

/* A name may stand for addresses that this machine does not have (::1 without IPv6): those are passed over as
 * long as one works. */
static bool listen_all(struct net_server *server, const struct addrinfo *first, uint16_t port)
{
    int failure = EADDRNOTAVAIL;
    server->port = port;
    for (const struct addrinfo *address = first; address; address = address->ai_next) {
        if (address_seen(first, address) || server->listener_count == LIMIT_LISTENERS) continue;
        int fd = listener_open(address, server->port);
        if (fd < 0) {
            failure = errno;
            if (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT) continue;
            break;
        }
        server->listeners[server->listener_count++] = (struct listener){.fd = fd};
        server->port = port_of(fd);
    }
    errno = failure;
    return server->listener_count > 0 && (failure == EADDRNOTAVAIL || failure == EAFNOSUPPORT);
}

bool net_listen(struct net_server *server, const char *host, uint16_t port, char *error, size_t error_len)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *addresses = NULL;
    char name[NI_MAXHOST];
    size_t len = strlen(host);
    bool bracketed = len > 2 && host[0] == '[' && host[len - 1] == ']';
    snprintf(name, sizeof name, "%.*s", (int)(bracketed ? len - 2 : len), bracketed ? host + 1 : host);
    if (getaddrinfo(name, NULL, &hints, &addresses) != 0 || !addresses) {
        snprintf(error, error_len, "cannot listen on %s: no such address", host);
        return false;
    }
    bool fine = listen_all(server, addresses, port);
    if (!fine) explain(errno, host, port, error, error_len);
    freeaddrinfo(addresses);
    return fine;
}

int net_listen_loopback(uint16_t *port, char *error, size_t error_len)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct addrinfo address = {
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&place, .ai_addrlen = sizeof place};
    int fd = listener_open(&address, 0);
    if (fd < 0)
        explain(errno, "127.0.0.1", 0, error, error_len);
    else
        *port = port_of(fd);
    return fd;
}
