/* Whose connection it is: whether the other end of a TCP connection on 127.0.0.1 is held by the family.
 *
 * The kernel tells the inode of a socket by its addresses (NETLINK_SOCK_DIAG, or the lists in /proc/net), and
 * /proc/PID/fd tells which process holds it. A socket that nobody holds any more has no inode, one that only
 * listens or only tries to connect is not the other end of anything: neither counts. The server asks after it
 * has accepted the connection and looks at its own end again after the answer, so no other socket can have
 * taken these addresses in between.
 *
 * The keeper asks, not the server: a family may have a thousand processes with a thousand descriptors each,
 * and to search them must cost nobody else's time. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "sandbox/internal.h"

#define SEEK_US       200000 /* of the processor's time, for all attempts together */
#define SEEK_ATTEMPTS 3      /* who forks and ends while we look may be missed */
#define SEEK_PAUSE_MS 2
#define REPLY_ROOM    4096
#define LINE_ROOM     512 /* of /proc/net/tcp6: some 200 */

/* The process has it open, and there was a connection. */
static bool is_connected(unsigned state)
{
    return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2;
}

/* ---- by NETLINK_SOCK_DIAG ---- */

static bool diag_ask(int socket, uint16_t server_port, uint16_t peer_port)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } request = {.head = {.nlmsg_len = sizeof request,
                          .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                          .nlmsg_flags = NLM_F_REQUEST},
                 .body = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u}};
    request.body.id.idiag_sport = htons(peer_port);
    request.body.id.idiag_dport = htons(server_port);
    request.body.id.idiag_src[0] = request.body.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
    request.body.id.idiag_cookie[0] = request.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    return sendto(socket, &request, sizeof request, 0, (struct sockaddr *)&kernel, sizeof kernel) ==
           (ssize_t)sizeof request;
}

enum peer_inode peer_inode_by_diag(uint16_t server_port, uint16_t peer_port, uint64_t *inode)
{
    _Alignas(8) char room[REPLY_ROOM];
    int diag = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (diag < 0) return PEER_INODE_UNTOLD;
    ssize_t got = diag_ask(diag, server_port, peer_port) ? recv(diag, room, sizeof room, 0) : -1;
    close(diag);
    const struct nlmsghdr *head = (const void *)room;
    if (got < (ssize_t)sizeof *head || head->nlmsg_type != SOCK_DIAG_BY_FAMILY) return PEER_INODE_UNTOLD;
    const struct inet_diag_msg *found = NLMSG_DATA(head);
    if (got < (ssize_t)NLMSG_LENGTH(sizeof *found)) return PEER_INODE_UNTOLD;
    *inode = found->idiag_inode;
    bool is_it = is_connected(found->idiag_state) && found->idiag_inode &&
                 found->id.idiag_sport == htons(peer_port) && found->id.idiag_dport == htons(server_port);
    return is_it ? PEER_INODE_FOUND : PEER_INODE_NONE;
}

/* ---- by the lists in /proc/net ---- */

static char *put_hex(char *at, uint32_t number, int digits)
{
    for (int i = digits; i-- > 0; number >>= 4) at[i] = "0123456789ABCDEF"[number & 15];
    return at + digits;
}

/* "0100007F:1F90 ", as both lists have it: the address as numbers of this machine, the port as a number. */
static char *put_address(char *at, bool is_mapped, uint16_t port)
{
    if (is_mapped) at = put_hex(put_hex(put_hex(at, 0, 8), 0, 8), htonl(0xffff), 8);
    at = put_hex(at, htonl(INADDR_LOOPBACK), 8);
    *at++ = ':';
    at = put_hex(at, port, 4);
    *at++ = ' ';
    return at;
}

/* The nth text of a line, from 0; they are parted by blanks. */
static const char *field_of(const char *line, int number)
{
    while (*line == ' ') line++;
    for (; number > 0; number--) {
        line += strcspn(line, " ");
        while (*line == ' ') line++;
    }
    return line;
}

static uint64_t number_of(const char *text, unsigned base)
{
    uint64_t number = 0;
    for (;; text++) {
        const char *digits = "0123456789ABCDEF", *digit = *text ? strchr(digits, *text) : NULL;
        if (!digit || (unsigned)(digit - digits) >= base) return number;
        number = number * base + (uint64_t)(digit - digits);
    }
}

enum { FIELD_LOCAL = 1, FIELD_STATE = 3, FIELD_INODE = 9 };

static enum peer_inode inode_in_list(int file, const char *addresses, uint64_t *inode)
{
    char room[REPLY_ROOM], line[LINE_ROOM];
    size_t len = 0;
    ssize_t got;
    while ((got = read(file, room, sizeof room)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (room[i] != '\n') {
                if (len < sizeof line - 1) line[len++] = room[i];
                continue;
            }
            line[len] = 0;
            len = 0;
            if (strncmp(field_of(line, FIELD_LOCAL), addresses, strlen(addresses)) != 0) continue;
            *inode = number_of(field_of(line, FIELD_INODE), 10);
            if (*inode && is_connected((unsigned)number_of(field_of(line, FIELD_STATE), 16)))
                return PEER_INODE_FOUND;
        }
    }
    return PEER_INODE_NONE;
}

/* A client that speaks IPv6 and IPv4 by one socket (Java does) is in the second list. */
enum peer_inode peer_inode_by_lists(uint16_t server_port, uint16_t peer_port, uint64_t *inode)
{
    static const char *const lists[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    enum peer_inode result = PEER_INODE_UNTOLD;
    for (int i = 0; i < 2 && result != PEER_INODE_FOUND; i++) {
        char addresses[2 * 40];
        *put_address(put_address(addresses, i == 1, peer_port), i == 1, server_port) = 0;
        int file = open(lists[i], O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        result = inode_in_list(file, addresses, inode);
        close(file);
    }
    return result;
}

/* ---- who holds it ---- */

/* The kernel answers "no such socket" also where it has no diagnostics for TCP. */
static enum peer_inode inode_of(uint16_t server_port, uint16_t peer_port, uint64_t *inode)
{
    enum peer_inode result = peer_inode_by_diag(server_port, peer_port, inode);
    return result == PEER_INODE_UNTOLD ? peer_inode_by_lists(server_port, peer_port, inode) : result;
}

enum sandbox_peer peer_find(struct family *family, uint16_t server_port, uint16_t peer_port)
{
    int64_t until_us = processor_us() + SEEK_US;
    for (int attempt = 0; attempt < SEEK_ATTEMPTS && processor_us() < until_us; attempt++) {
        uint64_t inode = 0;
        enum peer_inode told = inode_of(server_port, peer_port, &inode);
        if (told == PEER_INODE_NONE) return SANDBOX_PEER_GONE;
        if (told == PEER_INODE_UNTOLD) return SANDBOX_PEER_UNKNOWN;
        if (attempt > 1) poll(NULL, 0, SEEK_PAUSE_MS);
        if (family_holds(family, inode, attempt > 0, until_us)) return SANDBOX_PEER_OWN;
    }
    return family->is_hidden || processor_us() >= until_us ? SANDBOX_PEER_UNKNOWN : SANDBOX_PEER_STRANGER;
}
