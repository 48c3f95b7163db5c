/* Time-outs without timers. A connection may stay in a state for a time that depends on the state alone, so
 * the list of a state is ordered by deadline as it is filled: starting and stopping a time-out is moving
 * between two lists, and the first of each list is the next to expire. */
#include "base/fail.h"
#include "base/limits.h"
#include "base/stats.h"
#include "net/internal.h"

#define PRESS_US 1000000 /* between two looks for clients that do not take their replies */

#define TO(state) (1u << CONNECTION_##state)

static const unsigned connection_moves[CONNECTION_STATES] = {
    [CONNECTION_NEW] = TO(HANDSHAKE) | TO(IDLE) | TO(CLOSED),
    [CONNECTION_HANDSHAKE] = TO(IDLE) | TO(CLOSED),
    [CONNECTION_IDLE] = TO(NEW) | TO(HEAD) | TO(BODY) | TO(BUSY) | TO(SEND) | TO(CLOSED),
    [CONNECTION_HEAD] = TO(BODY) | TO(BUSY) | TO(SEND) | TO(CLOSED),
    [CONNECTION_BODY] = TO(BUSY) | TO(SEND) | TO(CLOSED),
    [CONNECTION_BUSY] = TO(SEND) | TO(GONE),
    [CONNECTION_SEND] = TO(IDLE) | TO(HEAD) | TO(BODY) | TO(BUSY) | TO(LINGER) | TO(CLOSED),
    [CONNECTION_LINGER] = TO(CLOSED),
    [CONNECTION_GONE] = TO(CLOSED),
    [CONNECTION_CLOSED] = 0,
};

void timer_init(struct net_loop *loop)
{
    const struct net_limits *limits = &loop->server->limits;
    int64_t *clients_us = loop->clients.state_us, *guests_us = loop->guests.state_us;
    clients_us[CONNECTION_HANDSHAKE] = limits->header_ms * 1000;
    clients_us[CONNECTION_IDLE] = limits->idle_ms * 1000;
    clients_us[CONNECTION_HEAD] = limits->header_ms * 1000;
    clients_us[CONNECTION_BODY] = limits->body_ms * 1000;
    clients_us[CONNECTION_SEND] = guests_us[CONNECTION_SEND] = limits->send_ms * 1000;
    clients_us[CONNECTION_LINGER] = guests_us[CONNECTION_LINGER] = LIMIT_LINGER_MS * 1000;
    for (int state = 0; state < CONNECTION_STATES; state++) {
        link_init(&loop->clients.by_state[state]);
        link_init(&loop->guests.by_state[state]);
    }
}

void connection_enter(struct connection *connection, enum connection_state state)
{
    if (connection->state == state) return;
    ensure(connection_moves[connection->state] & 1u << state);
    connection->state = state;
    connection_stay(connection);
}

void connection_stay(struct connection *connection)
{
    enum connection_state state = connection->state;
    connection->deadline_us = connection->loop->now_us + connection->population->state_us[state];
    link_remove(&connection->by_state);
    link_append(&connection->population->by_state[state], &connection->by_state);
}

/* Replies that wait for their clients fill more than half of what they may. */
static bool is_pressed(const struct net_server *server)
{
    return atomic_load_explicit(&server->unread_bytes, memory_order_relaxed) >
           server->limits.unread_bytes / 2;
}

static struct connection *first_of(const struct population *population, int state)
{
    const struct link *head = &population->by_state[state];
    if (!population->state_us[state] || link_empty(head)) return NULL;
    return link_owner(head->next, struct connection, by_state);
}

static int64_t first_deadline_us(const struct population *population, int64_t until_us)
{
    for (int state = 0; state < CONNECTION_STATES; state++) {
        const struct connection *first = first_of(population, state);
        if (first && first->deadline_us < until_us) until_us = first->deadline_us;
    }
    return until_us;
}

int timer_wait_ms(const struct net_loop *loop)
{
    int64_t until_us = first_deadline_us(&loop->guests, first_deadline_us(&loop->clients, INT64_MAX));
    if (loop->accept_again_us && loop->accept_again_us < until_us) until_us = loop->accept_again_us;
    if (loop->draining && !loop->drained && loop->drain_until_us < until_us) until_us = loop->drain_until_us;
    bool presses = is_pressed(loop->server) || server_is_crowded(loop->server);
    if (presses && loop->press_again_us < until_us) until_us = loop->press_again_us;
    if (until_us == INT64_MAX) return -1;
    int64_t wait_ms = (until_us - loop->now_us + 999) / 1000;
    if (wait_ms < 0) return 0;
    return wait_ms > 60000 ? 60000 : (int)wait_ms;
}

static void population_expire(struct population *population, int64_t now_us)
{
    for (int state = 0; state < CONNECTION_STATES; state++) {
        struct connection *first;
        while ((first = first_of(population, state)) && first->deadline_us <= now_us) {
            if (state == CONNECTION_SEND && connection_takes_reply(first)) {
                connection_stay(first);
                continue;
            }
            connection_timeout(first);
            ensure((int)first->state != state);
        }
    }
}

/* Closes the connections of clients that hold large replies and have taken too little of them since they were
 * last asked, send_pressed_ms ago or longer. The list is in the order in which they were asked. */
static void clients_press(struct net_loop *loop)
{
    struct link *head = &loop->clients.by_state[CONNECTION_SEND], *at = head->next;
    int64_t spared_us = loop->clients.state_us[CONNECTION_SEND] - loop->server->limits.send_pressed_ms * 1000;
    while (at != head) {
        struct connection *connection = link_owner(at, struct connection, by_state);
        at = at->next;
        if (connection->deadline_us > loop->now_us + spared_us) return;
        if (!connection->exchange->unread_bytes) continue;
        if (connection_takes_reply(connection))
            connection_stay(connection);
        else
            connection_timeout(connection);
    }
}

/* The same for replies in pieces, whose makers may have nothing to say for long. */
static void pieces_press(struct net_loop *loop)
{
    struct link *head = &loop->clients.by_state[CONNECTION_BUSY], *at = head->next;
    int64_t patience_us = loop->server->limits.send_ms * 1000;
    while (at != head) {
        struct connection *connection = link_owner(at, struct connection, by_state);
        at = at->next;
        bool holds = connection->stuck && connection->exchange->unread_bytes;
        if (holds && connection->taken_us + patience_us <= loop->now_us) connection_timeout(connection);
    }
}

/* ---- too many connections ---- */

/* Up to here nobody has to make room. */
static uint64_t crowded_from(const struct net_server *server)
{
    uint64_t most = server->limits.connections, last = most / LIMIT_CROWDED_PART;
    return most - (last ? last : 1);
}

bool server_is_crowded(const struct net_server *server)
{
    return atomic_load_explicit(&server->stats.connections_open, memory_order_relaxed) > crowded_from(server);
}

/* Closes up to `count` connections that have been in the state for `age_us`, the oldest first; how many. */
static uint64_t displace(struct net_loop *loop, enum connection_state state, int64_t age_us, uint64_t count)
{
    struct link *head = &loop->clients.by_state[state], *at = head->next;
    int64_t state_us = loop->clients.state_us[state];
    uint64_t closed = 0;
    while (at != head && closed < count) {
        struct connection *connection = link_owner(at, struct connection, by_state);
        at = at->next;
        if (connection->deadline_us - state_us + age_us > loop->now_us) break;
        if (!link_empty(&connection->queue)) continue; /* about to be read or written */
        stats_add(&loop->server->stats.displaced, 1);
        connection_close(connection);
        closed++;
    }
    return closed;
}

/* Who hoards connections must not shut others out, and who opens ten thousand has them idle, or in the middle
 * of requests that do not come: each loop closes its share of the oldest of these. */
static void clients_make_room(struct net_loop *loop)
{
    static const enum connection_state torn[] = {CONNECTION_HANDSHAKE, CONNECTION_HEAD, CONNECTION_BODY};
    const struct net_server *server = loop->server;
    uint64_t open = stats_read(&server->stats.connections_open), most = crowded_from(server);
    if (open <= most) return;
    uint64_t count = (open - most + server->loop_count - 1) / server->loop_count;
    count -= displace(loop, CONNECTION_IDLE, LIMIT_CROWDED_IDLE_MS * 1000, count);
    for (size_t i = 0; count && i < sizeof torn / sizeof *torn; i++)
        count -= displace(loop, torn[i], loop->clients.state_us[torn[i]] / LIMIT_CROWDED_HASTE, count);
}

void timer_expire(struct net_loop *loop)
{
    population_expire(&loop->clients, loop->now_us);
    population_expire(&loop->guests, loop->now_us);
    if (server_is_crowded(loop->server)) clients_make_room(loop);
    if (loop->now_us < loop->press_again_us) return;
    loop->press_again_us = loop->now_us + PRESS_US;
    if (!is_pressed(loop->server)) return;
    clients_press(loop);
    pieces_press(loop);
}
