/* The server: listeners, loops and their threads, from new to free. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "net/internal.h"

const struct net_limits net_limits_default = {
    .body_bytes = LIMIT_BODY_BYTES,
    .buffered_bytes = LIMIT_BUFFERED_BYTES,
    .unread_bytes = LIMIT_UNREAD_BYTES,
    .header_bytes = LIMIT_HEADER_BYTES,
    .header_count = LIMIT_HEADER_COUNT,
    .connections = LIMIT_CONNECTIONS,
    .guests = LIMIT_GUESTS,
    .header_ms = LIMIT_HEADER_MS,
    .body_ms = LIMIT_BODY_MS,
    .idle_ms = LIMIT_IDLE_MS,
    .send_ms = LIMIT_SEND_MS,
    .send_pressed_ms = LIMIT_SEND_PRESSED_MS,
    .drain_ms = LIMIT_DRAIN_MS,
};

struct net_server *net_server_new(const struct net_options *options, char *error, size_t error_len)
{
    ensure(options->threads >= 1 && options->handler.request && options->handler.refusal);
    ensure(options->limits.header_count >= 1 && options->limits.header_bytes >= 1);
    struct net_server *server = must_zero(1, sizeof *server);
    server->limits = options->limits;
    server->handler = options->handler;
    link_init(&server->ports);
    pthread_mutex_init(&server->running_lock, NULL);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&server->over_lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    if (options->tls_cert || options->tls_key) {
        server->tls = tls_new(options->tls_cert, options->tls_key, error, error_len);
        if (!server->tls) {
            net_server_free(server);
            return NULL;
        }
    }
    if (!net_listen(server, options->host, options->port, error, error_len)) {
        net_server_free(server);
        return NULL;
    }
    server->loops = must_zero(options->threads, sizeof *server->loops);
    server->loop_count = options->threads;
    atomic_store(&server->undrained, options->threads);
    for (unsigned i = 0; i < server->loop_count; i++) loop_init(&server->loops[i], server, i);
    loop_listen(&server->loops[0]);
    return server;
}

uint16_t net_server_port(const struct net_server *server)
{
    return server->port;
}

static void *loop_thread(void *loop)
{
    loop_run(loop);
    return NULL;
}

/* Signals are for the thread that called net_server_run. */
static void loop_threads_start(struct net_server *server)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (unsigned i = 1; i < server->loop_count; i++)
        ensure(pthread_create(&server->loops[i].thread, NULL, loop_thread, &server->loops[i]) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Runs what was posted to loops that had already ended (connections dealt out at the last moment, ports that
 * are being closed) and what that posts in turn. */
static void server_settle(struct net_server *server)
{
    bool left = true;
    while (left) {
        left = false;
        for (unsigned i = 0; i < server->loop_count; i++) loop_run_tasks(&server->loops[i]);
        pthread_mutex_lock(&server->running_lock);
        for (unsigned i = 0; i < server->loop_count; i++)
            left |= atomic_load(&server->loops[i].tasks) != NULL;
        server->running = left;
        pthread_mutex_unlock(&server->running_lock);
    }
}

void net_server_run(struct net_server *server)
{
    pthread_mutex_lock(&server->running_lock);
    server->running = true;
    pthread_mutex_unlock(&server->running_lock);
    loop_threads_start(server);
    loop_run(&server->loops[0]);
    for (unsigned i = 1; i < server->loop_count; i++) pthread_join(server->loops[i].thread, NULL);
    server_settle(server);
    atomic_store(&server->over, true);
    pthread_mutex_lock(&server->over_lock);
    for (unsigned i = 0; i < server->loop_count; i++) loop_run_tasks(&server->loops[i]);
    pthread_mutex_unlock(&server->over_lock);
}

void net_server_stop(struct net_server *server)
{
    atomic_store(&server->stopping, true);
    for (unsigned i = 0; i < server->loop_count; i++) loop_wake(&server->loops[i]);
}

void net_server_free(struct net_server *server)
{
    if (!server) return;
    ensure(link_empty(&server->ports)); /* whoever opened them closes them */
    for (unsigned i = 0; i < server->loop_count; i++) loop_free(&server->loops[i]);
    for (unsigned i = 0; i < server->listener_count; i++) close(server->listeners[i].fd);
    pthread_mutex_destroy(&server->over_lock);
    pthread_mutex_destroy(&server->running_lock);
    tls_free(server->tls);
    free(server->loops);
    free(server);
}

const struct net_stats *net_server_stats(const struct net_server *server)
{
    return &server->stats;
}

unsigned net_server_loop_connections(const struct net_server *server, unsigned index)
{
    ensure(index < server->loop_count);
    return atomic_load_explicit(&server->loops[index].connection_count, memory_order_relaxed);
}
