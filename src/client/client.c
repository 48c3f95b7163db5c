/* The client's thread: starts calls as long as there are free transfers, lets libcurl move them, and tells
 * their callers how they ended. Connections stay open between calls and are used again. */
#include "client/client.h"

#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "client/internal.h"

#define IN_FLIGHT 64
#define IDLE_MS   60000 /* of the thread, when there is nothing to wait for */

static void queue_add(struct client_queue *queue, struct client_call *call)
{
    call->next = NULL;
    *(queue->last ? &queue->last->next : &queue->first) = call;
    queue->last = call;
}

static struct client_call *queue_take(struct client_queue *queue)
{
    struct client_call *call = queue->first;
    if (!call) return NULL;
    queue->first = call->next;
    if (!queue->first) queue->last = NULL;
    return call;
}

/* ---- the thread ---- */

static void wait_until_due(struct client *client, struct client_call *call)
{
    struct client_call **at = &client->waiting;
    while (*at && (*at)->due_us <= call->due_us) at = &(*at)->next;
    call->next = *at;
    *at = call;
}

static void take_due(struct client *client)
{
    int64_t now = client->waiting ? monotonic_us() : 0;
    pthread_mutex_lock(&client->lock);
    bool hurries = client->hurries;
    pthread_mutex_unlock(&client->lock);
    while (client->waiting && (hurries || client->waiting->due_us <= now)) {
        struct client_call *call = client->waiting;
        client->waiting = call->next;
        queue_add(&client->ready, call);
    }
}

/* True as long as the client is open. */
static bool take_incoming(struct client *client)
{
    pthread_mutex_lock(&client->lock);
    struct client_queue incoming = client->incoming;
    client->incoming = (struct client_queue){0};
    bool stopping = client->stopping;
    pthread_mutex_unlock(&client->lock);
    for (struct client_call *call; (call = queue_take(&incoming));) {
        if (call->pause_us > 0)
            wait_until_due(client, call);
        else
            queue_add(&client->ready, call);
    }
    return !stopping;
}

/* A transfer that is free, made now if need be; NULL when all are on the wire. */
static struct transfer *transfer_take(struct client *client)
{
    struct transfer *transfer = client->free;
    if (transfer) {
        client->free = transfer->next;
    } else if (client->transfer_count < client->options.in_flight) {
        transfer = &client->transfers[client->transfer_count++];
        transfer_init(transfer, client);
    }
    return transfer;
}

static void start_ready(struct client *client)
{
    struct transfer *transfer;
    while (client->ready.first && (transfer = transfer_take(client))) {
        struct client_call *call = queue_take(&client->ready);
        if (!transfer_start(transfer, call)) call->done(call);
    }
}

static void end_transfers(struct client *client)
{
    int left;
    for (CURLMsg *message; (message = client->curl->multi_info_read(client->multi, &left));) {
        if (message->msg != CURLMSG_DONE) continue;
        struct transfer *transfer;
        CURLcode code = message->data.result;
        client->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        struct client_call *call = transfer->call;
        transfer_end(transfer, code);
        call->done(call);
    }
}

/* How long to wait for the network: not beyond the next call whose pause is over. */
static int wait_ms(const struct client *client)
{
    if (!client->waiting) return IDLE_MS;
    int64_t left_us = client->waiting->due_us - monotonic_us();
    if (left_us <= 0) return 0;
    return left_us / 1000 >= IDLE_MS ? IDLE_MS : (int)(left_us / 1000) + 1;
}

static void give_up(struct client_call *call)
{
    call->end = CLIENT_BROKEN;
    call->status = 0;
    call->timed_out = false;
    call->failure = SLICE("the client was closed");
    call->done(call);
}

/* All that is under way, and what is begun meanwhile. */
static void give_up_all(struct client *client)
{
    for (uint32_t i = 0; i < client->transfer_count; i++) {
        struct transfer *transfer = &client->transfers[i];
        struct client_call *call = transfer->call;
        if (!call) continue;
        transfer_end(transfer, CURLE_ABORTED_BY_CALLBACK);
        give_up(call);
    }
    do {
        while (client->waiting) {
            struct client_call *call = client->waiting;
            client->waiting = call->next;
            queue_add(&client->ready, call);
        }
        for (struct client_call *call; (call = queue_take(&client->ready));) give_up(call);
        take_incoming(client);
    } while (client->ready.first || client->waiting);
}

static void *client_main(void *argument)
{
    struct client *client = argument;
    int running;
    pthread_setname_np(pthread_self(), "quipu-client");
    while (take_incoming(client)) {
        take_due(client);
        start_ready(client);
        client->curl->multi_perform(client->multi, &running);
        end_transfers(client);
        /* A transfer that has become free may have somebody who waits for it. */
        bool can_start = client->ready.first &&
                         (client->free || client->transfer_count < client->options.in_flight);
        client->curl->multi_poll(client->multi, NULL, 0, can_start ? 0 : wait_ms(client), NULL);
    }
    give_up_all(client);
    return NULL;
}

/* ---- opening and closing ---- */

static void client_free(struct client *client)
{
    for (uint32_t i = 0; i < client->transfer_count; i++) transfer_free(&client->transfers[i]);
    free(client->transfers);
    client->curl->multi_cleanup(client->multi);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

/* Signals are the program's business: none of its handlers runs on our thread, and a lost connection kills
 * nobody. */
static void start_thread(struct client *client)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ensure(pthread_create(&client->thread, NULL, client_main, client) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct client *client_open(const struct client_options *options, char *error, size_t error_len)
{
    const struct curl *curl = curl_load(error, error_len);
    if (!curl) return NULL;
    struct client *client = must_zero(1, sizeof *client);
    client->curl = curl;
    client->options = *options;
    uint32_t *in_flight = &client->options.in_flight;
    if (!*in_flight) *in_flight = IN_FLIGHT;
    if (*in_flight > LIMIT_REMOTE_CALLS) *in_flight = LIMIT_REMOTE_CALLS;
    client->transfers = must_zero(*in_flight, sizeof *client->transfers);
    client->multi = curl->multi_init();
    ensure(client->multi);
    curl->multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)*in_flight);
    pthread_mutex_init(&client->lock, NULL);
    start_thread(client);
    return client;
}

void client_close(struct client *client)
{
    if (!client) return;
    pthread_mutex_lock(&client->lock);
    client->stopping = true;
    pthread_mutex_unlock(&client->lock);
    client->curl->multi_wakeup(client->multi);
    pthread_join(client->thread, NULL);
    client_free(client);
}

void client_hurry(struct client *client)
{
    pthread_mutex_lock(&client->lock);
    client->hurries = true;
    pthread_mutex_unlock(&client->lock);
    client->curl->multi_wakeup(client->multi);
}

/* ---- calls, on the callers' threads ---- */

void client_begin(struct client *client, struct client_call *call)
{
    ensure(call->method && call->arena && call->reply && call->done);
    if (call->pause_us > 0) call->due_us = monotonic_us() + call->pause_us;
    pthread_mutex_lock(&client->lock);
    bool was_empty = !client->incoming.first;
    queue_add(&client->incoming, call);
    pthread_mutex_unlock(&client->lock);
    if (was_empty) client->curl->multi_wakeup(client->multi);
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool is_done;
};

static void wake_waiter(struct client_call *call)
{
    struct waiter *waiter = call->waiter;
    pthread_mutex_lock(&waiter->lock);
    waiter->is_done = true;
    pthread_cond_signal(&waiter->ended);
    pthread_mutex_unlock(&waiter->lock);
}

void client_call(struct client *client, struct client_call *call)
{
    struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    void (*done)(struct client_call *) = call->done;
    call->waiter = &waiter;
    call->done = wake_waiter;
    client_begin(client, call);
    pthread_mutex_lock(&waiter.lock);
    while (!waiter.is_done) pthread_cond_wait(&waiter.ended, &waiter.lock);
    pthread_mutex_unlock(&waiter.lock);
    call->done = done;
}
