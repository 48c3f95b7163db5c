/* The loop: wait, read what is ready, run what other threads posted, let the handler end its turn, write.
 *
 * One clock reading and one epoll_wait per turn, however many connections were ready. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/stats.h"
#include "net/internal.h"

#define TURN_EVENTS 256
#define TASK_ROUNDS 4 /* of posted tasks in one turn; sockets are read again behind them */

void loop_init(struct net_loop *loop, struct net_server *server, unsigned index)
{
    loop->server = server;
    loop->index = index;
    loop->now_us = monotonic_us();
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ensure(loop->epoll_fd >= 0 && loop->wake_fd >= 0);
    /* Edge-triggered: every write is an edge, so the counter need never be read. */
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
    ensure(epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) == 0);
    timer_init(loop);
    balance_init(loop);
    link_init(&loop->unsent);
    link_init(&loop->unread);
}

static void population_reap(struct population *population, enum connection_state state)
{
    struct link *dead = &population->by_state[state];
    while (!link_empty(dead)) connection_free(link_owner(dead->next, struct connection, by_state));
}

static void population_free(struct population *population)
{
    for (int state = 0; state < CONNECTION_GONE; state++) {
        struct link *head = &population->by_state[state];
        while (!link_empty(head)) connection_close(link_owner(head->next, struct connection, by_state));
    }
    population_reap(population, CONNECTION_CLOSED);
    population_reap(population, CONNECTION_GONE); /* never answered, and nobody is left to answer */
}

void loop_free(struct net_loop *loop)
{
    population_free(&loop->clients);
    population_free(&loop->guests);
    while (loop->spares) {
        struct exchange *spare = loop->spares;
        loop->spares = spare->next_spare;
        exchange_free(spare);
    }
    gzip_free(&loop->gzip);
    close(loop->epoll_fd);
    close(loop->wake_fd);
}

/* ---- tasks from other threads ---- */
void loop_wake(struct net_loop *loop)
{
    uint64_t one = 1;
    int saved = errno; /* may run in a signal handler */
    ssize_t written = write(loop->wake_fd, &one, sizeof one);
    (void)written; /* a full counter is a pending wake-up as well */
    errno = saved;
}

void net_post(struct net_loop *loop, struct net_task *task)
{
    task->next = atomic_load_explicit(&loop->tasks, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&loop->tasks, &task->next, task)) {
    }
    if (atomic_load(&loop->asleep) && atomic_exchange(&loop->asleep, false)) loop_wake(loop);
    if (!atomic_load(&loop->server->over)) return;
    pthread_mutex_lock(&loop->server->over_lock); /* there are no loops any more: whoever posts runs it */
    loop_run_tasks(loop);
    pthread_mutex_unlock(&loop->server->over_lock);
}

/* Those that were posted until now, the oldest first; false when there are none. */
static bool run_posted(struct net_loop *loop)
{
    if (!atomic_load_explicit(&loop->tasks, memory_order_relaxed)) return false;
    struct net_task *newest = atomic_exchange(&loop->tasks, NULL), *oldest = NULL;
    while (newest) {
        struct net_task *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest) {
        struct net_task *task = oldest;
        oldest = task->next; /* the task is its owner's again once it runs */
        task->run(task);
    }
    return true;
}

/* A task may post the next one of its request to its own loop. That one runs in this turn as well: its reply goes out
 * without another epoll_wait. */
void loop_run_tasks(struct net_loop *loop)
{
    for (unsigned i = 0; i < TASK_ROUNDS && run_posted(loop); i++) {
    }
}

void *net_loop_user(struct net_loop *loop)
{
    return loop->user;
}

void net_loop_set_user(struct net_loop *loop, void *user)
{
    loop->user = user;
}

unsigned net_loop_index(const struct net_loop *loop)
{
    return loop->index;
}

/* ---- turns ---- */
/* Sleeps until something happens. A poster that finds us awake leaves its task without a system call, so we
 * look at the tasks once more after announcing the sleep. */
static int loop_wait(struct net_loop *loop, struct epoll_event *events)
{
    int wait_ms = link_empty(&loop->unread) ? timer_wait_ms(loop) : 0;
    if (wait_ms != 0) {
        atomic_store(&loop->asleep, true);
        if (atomic_load(&loop->tasks)) wait_ms = 0;
    }
    int count = epoll_wait(loop->epoll_fd, events, TURN_EVENTS, wait_ms);
    atomic_store_explicit(&loop->asleep, false, memory_order_relaxed);
    ensure(count >= 0 || errno == EINTR);
    loop->now_us = monotonic_us();
    return count;
}

/* The wake-up's event carries no address. */
static void loop_dispatch(struct net_loop *loop, const struct epoll_event *event)
{
    const enum watched *watched = event->data.ptr;
    if (!watched) return;
    if (*watched == WATCHED_LISTENER)
        loop_accept(loop, event->data.ptr);
    else
        connection_event(event->data.ptr, event->events);
}

static void loop_read_unread(struct net_loop *loop)
{
    if (link_empty(&loop->unread)) return;
    struct link now = loop->unread; /* those that are added meanwhile wait for the next turn */
    now.next->prev = now.prev->next = &now;
    link_init(&loop->unread);
    while (!link_empty(&now)) {
        struct connection *connection = link_owner(now.next, struct connection, queue);
        link_remove(&connection->queue);
        connection_advance(connection);
    }
}

/* Once a turn: two loops that count every request in one place slow each other down. */
static void loop_publish(struct net_loop *loop)
{
    struct net_stats *stats = &loop->server->stats;
    if (loop->bytes_in) stats_add(&stats->bytes_in, loop->bytes_in);
    if (loop->bytes_out) stats_add(&stats->bytes_out, loop->bytes_out);
    loop->bytes_in = loop->bytes_out = 0;
}

/* No more clients, and nothing for those that have nothing in flight. Guests stay: what a client waits for
 * may be the work of one of them. */
static void loop_drain(struct net_loop *loop)
{
    loop->draining = true;
    loop->drain_until_us = loop->now_us + loop->server->limits.drain_ms * 1000;
    if (loop->index == 0) {
        const struct net_handler *handler = &loop->server->handler;
        loop_listen_end(loop);
        if (handler->draining) handler->draining(handler->context);
    }
    static const enum connection_state at_rest[] = {CONNECTION_HANDSHAKE, CONNECTION_IDLE};
    for (size_t i = 0; i < sizeof at_rest / sizeof *at_rest; i++) {
        struct link *head = &loop->clients.by_state[at_rest[i]], *at = head->next;
        while (at != head) {
            struct connection *connection = link_owner(at, struct connection, by_state);
            at = at->next;
            if (link_empty(&connection->queue)) connection_close(connection);
        }
    }
}

static bool clients_are_served(const struct net_loop *loop)
{
    if (loop->now_us >= loop->drain_until_us) return true;
    for (int state = 0; state < CONNECTION_CLOSED; state++)
        if (state != CONNECTION_LINGER && !link_empty(&loop->clients.by_state[state])) return false;
    return true;
}

/* All loops end together: until then each may have guests whom a client of another waits for. */
static bool loop_may_end(struct net_loop *loop)
{
    struct net_server *server = loop->server;
    if (!loop->draining) return false;
    if (!loop->drained && clients_are_served(loop)) {
        loop->drained = true;
        bool last = atomic_fetch_sub(&server->undrained, 1) == 1;
        for (unsigned i = 0; last && i < server->loop_count; i++) loop_wake(&server->loops[i]);
    }
    return atomic_load(&server->undrained) == 0;
}

static void loop_turn(struct net_loop *loop)
{
    const struct net_handler *handler = &loop->server->handler;
    struct epoll_event events[TURN_EVENTS];
    int count = loop_wait(loop, events);
    loop->long_served = false;
    balance_begin(loop);
    loop_read_unread(loop);
    for (int i = 0; i < count; i++) loop_dispatch(loop, &events[i]);
    loop_run_tasks(loop);
    timer_expire(loop);
    if (loop->accept_again_us && loop->now_us >= loop->accept_again_us) loop_accept_resume(loop);
    if (!loop->draining && atomic_load_explicit(&loop->server->stopping, memory_order_relaxed))
        loop_drain(loop);
    if (handler->turn_end) handler->turn_end(handler->context, loop);
    while (!link_empty(&loop->unsent))
        connection_flush(link_owner(loop->unsent.next, struct connection, queue));
    balance_end(loop);
    population_reap(&loop->clients, CONNECTION_CLOSED);
    population_reap(&loop->guests, CONNECTION_CLOSED);
    loop_publish(loop);
}

void loop_run(struct net_loop *loop)
{
    while (!loop_may_end(loop)) loop_turn(loop);
}
