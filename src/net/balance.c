/* Spreads the work over the loops. New connections go to the loop that has the fewest (accept.c), but that count can
 * mislead: a loop that is held up has not yet noticed that its clients left, and of the connections of a loop many
 * may be idle. So a loop that has served clearly more connections than another hands some of them over.
 *
 * Time is cut into windows, the same for all loops. A connection counts in a window in which it sent a request. When
 * a window is over, each loop publishes its count and compares it with the others'. Only connections between two
 * requests move, and only at the end of a turn, when no event of the turn points to them any more. */
#include <sys/epoll.h>

#include "base/fail.h"
#include "base/stats.h"
#include "net/internal.h"

#define WINDOW_US 100000
#define NOISE     32 /* a difference below this part of a loop's count is left alone */

static uint32_t window_at(int64_t now_us)
{
    return (uint32_t)(now_us / WINDOW_US);
}

void balance_init(struct net_loop *loop)
{
    loop->window = window_at(loop->now_us);
}

void balance_note(struct connection *connection)
{
    struct net_loop *loop = connection->loop;
    if (connection->window == loop->window || connection_is_guest(connection)) return;
    connection->window = loop->window;
    loop->active++;
}

/* A loop that has published nothing of late sleeps, or else it is held up: such a one is given nothing. */
static unsigned load_of(struct net_loop *loop, uint32_t window)
{
    uint64_t load = atomic_load_explicit(&loop->load, memory_order_relaxed);
    if (window - (uint32_t)(load >> 32) <= 2) return (unsigned)load;
    return atomic_load_explicit(&loop->asleep, memory_order_relaxed) ? 0 : UINT32_MAX;
}

static void load_publish(struct net_loop *loop, uint32_t window, unsigned active)
{
    atomic_store_explicit(&loop->load, (uint64_t)window << 32 | active, memory_order_relaxed);
}

void balance_begin(struct net_loop *loop)
{
    struct net_server *server = loop->server;
    uint32_t now = window_at(loop->now_us), last = loop->window;
    if (now == last || server->loop_count == 1) return;
    unsigned mine = now - last == 1 ? loop->active : 0, least = mine;
    load_publish(loop, now - 1, mine);
    loop->window = now;
    loop->active = loop->surplus = 0;
    for (unsigned i = 0; i < server->loop_count; i++) {
        unsigned theirs = load_of(&server->loops[i], now);
        if (theirs >= least) continue;
        least = theirs;
        loop->relief = &server->loops[i];
    }
    if ((mine - least) * NOISE >= mine) loop->surplus = (mine - least) / 2;
}

/* Nothing of it is under way. Bytes that come meanwhile are the first event at its new loop. */
static bool is_movable(const struct connection *connection)
{
    return !connection->exchange && link_empty(&connection->queue) && !connection->readable &&
           !connection->half_closed && !connection->closing;
}

static void connection_move(struct connection *connection, struct net_loop *to)
{
    struct net_loop *from = connection->loop;
    ensure(epoll_ctl(from->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL) == 0);
    connection_enter(connection, CONNECTION_NEW);
    link_remove(&connection->by_state);
    atomic_fetch_sub_explicit(&from->connection_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&to->connection_count, 1, memory_order_relaxed);
    connection->loop = to;
    connection->population = &to->clients;
    stats_add(&from->server->stats.moved, 1);
    connection_send_home(connection);
}

/* Those that were answered last are behind the others in the list of idle ones. */
void balance_end(struct net_loop *loop)
{
    struct link *head = &loop->clients.by_state[CONNECTION_IDLE], *at = head->prev;
    while (loop->surplus && !loop->draining && at != head) {
        struct connection *connection = link_owner(at, struct connection, by_state);
        at = at->prev;
        if (loop->window - connection->window > 1) return;
        if (!is_movable(connection)) continue;
        connection_move(connection, loop->relief);
        loop->surplus--;
    }
}
