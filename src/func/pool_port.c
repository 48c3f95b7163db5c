/* A process's port is its own: who may connect to it, and who may ask the server for something by it.
 *
 * Anybody on the machine can connect to 127.0.0.1. So a connection is heard only when a process of the
 * function's holds its other end, which the sandbox finds out while the connection waits. And what is asked
 * of the server by this port, everything but the Runtime API, must be signed with keys that were made for
 * this process and are in its environment: a function that can be talked into fetching a URL of somebody
 * else's choice does not write tables by that. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/log.h"
#include "func/pool.h"
#include "func/runtime.h"

#define REFUSALS_PAUSE_US 10000000 /* between two lines about refused connections */

/* ---- keys ---- */

void instance_keys_make(struct instance_keys *keys)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    snprintf(keys->id, sizeof keys->id, "QUIPU");
    random_letters(keys->id + 5, INSTANCE_ID_LETTERS - 5, letters);
    random_letters(keys->secret, INSTANCE_SECRET_LETTERS, letters);
    random_letters(keys->token, INSTANCE_TOKEN_LETTERS, letters);
}

/* A function that has keys of its own, because it speaks to others, too, has its SDK sign everything with
 * those. */
struct keyring *instance_keyring(const struct instance_keys *keys, const struct function *function)
{
    struct keyring *keyring = keyring_new();
    struct slice id = function_variable(function, SLICE("AWS_ACCESS_KEY_ID"));
    struct slice secret = function_variable(function, SLICE("AWS_SECRET_ACCESS_KEY"));
    struct slice token = function_variable(function, SLICE("AWS_SESSION_TOKEN"));
    keyring_add(keyring, slice_of(keys->id), slice_of(keys->secret), slice_of(keys->token));
    if (id.len && secret.len) keyring_add(keyring, id, secret, token);
    return keyring;
}

/* ---- requests ---- */

static bool has_token(const struct instance *instance, const struct http_exchange *exchange)
{
    struct slice given = http_header_find(exchange, SLICE("Authorization")), scheme = SLICE("Bearer ");
    if (given.len != scheme.len + INSTANCE_TOKEN_LETTERS) return false;
    return slice_equal_ignoring_case((struct slice){given.data, scheme.len}, scheme) &&
           CRYPTO_memcmp(given.data + scheme.len, instance->keys.token, INSTANCE_TOKEN_LETTERS) == 0;
}

bool instance_admits(struct instance *instance, struct http_exchange *exchange)
{
    bool to_dynamodb = exchange->method == HTTP_POST && exchange->path.len == 1 &&
                       !func_serves_target(http_header_find(exchange, SLICE("X-Amz-Target")));
    struct slice type, headers, authorization = http_header_find(exchange, SLICE("Authorization")), message;
    struct rest_head head = {exchange->method_text, exchange->path, exchange->query, exchange->headers,
                             exchange->header_count};
    if (has_token(instance, exchange)) return true;
    if (rest_foreign_put(&head, &exchange->arena, &exchange->reply, &type, &headers)) {
        http_reply(exchange, 400, type, headers);
        return false;
    }
    const char *fault = signature_fault(instance->keyring, &head, exchange->body_sent,
                                        to_dynamodb ? DOOR_DYNAMODB : DOOR_REST, clock_now_ms(&clock_system),
                                        &exchange->arena, &message, NULL);
    if (!fault) return true;
    if (!authorization.len)
        message = SLICE(
            "A function's request to this server must show that it is the function's: use an AWS SDK, which "
            "signs with the keys in the function's environment, or add the header "
            "'Authorization: Bearer ' with the value of the variable QUIPU_TOKEN.");
    exchange->reply.len = 0;
    compose(&exchange->reply,
            to_dynamodb ? "{'__type':%s,'message':%s}" : "{'Type':'User','__type':%s,'Message':%s}",
            arena_printf(&exchange->arena, "%s%s", to_dynamodb ? "com.amazon.coral.service#" : "", fault),
            message);
    http_reply(exchange, to_dynamodb ? 400 : 403,
               to_dynamodb ? SLICE("application/x-amz-json-1.0") : SLICE("application/json"),
               arena_printf(&exchange->arena, "X-Amzn-ErrorType: %s\r\n", fault));
    return false;
}

/* What tells a page from a program. Runtimes are often written by hand and send any Host, which Lambda's
 * Runtime API takes; so only these count there. */
static const struct slice page_headers[] = {SLICE("Origin"), SLICE("Sec-Fetch-Site"), SLICE("Referer")};

int instance_admits_head(void *instance, const struct http_exchange *exchange, char *reason,
                         size_t reason_len)
{
    struct rest_head head = {exchange->method_text, exchange->path, exchange->query, exchange->headers,
                             exchange->header_count};
    struct http_header of_pages[sizeof page_headers / sizeof *page_headers];
    (void)instance;
    if (runtime_owns_path(exchange->path)) {
        head.header_count = 0;
        for (size_t i = 0; i < sizeof page_headers / sizeof *page_headers; i++) {
            struct slice value = http_header_find(exchange, page_headers[i]);
            if (value.data) of_pages[head.header_count++] = (struct http_header){page_headers[i], value};
        }
        head.headers = of_pages;
    }
    if (rest_door_admits(NULL, &head, reason, reason_len)) return 0;
    snprintf(reason, reason_len,
             "A function's port takes requests by the names 127.0.0.1 and localhost, and none of web pages.");
    return 403;
}

/* ---- connections ---- */

/* Somebody who has connected, while it is found out who that is. Holds its instance. */
struct arrival {
    struct sandbox_question question; /* first: the question is us */
    struct net_guest *guest;
    struct instance *instance;
    struct arrival *next;
};

/* A scan of all ports, or a program that tries again and again, must not fill the log. */
static void log_refusal(struct instance *instance, enum sandbox_peer peer)
{
    struct pool *pool = instance->pool;
    int64_t now_us = monotonic_us();
    pool_lock(pool);
    bool is_due = now_us >= pool->refusal_line_us;
    uint64_t others = pool->refusals_unsaid;
    pool->refusals_unsaid = is_due ? 0 : others + 1;
    if (is_due) pool->refusal_line_us = now_us + REFUSALS_PAUSE_US;
    pool_unlock(pool);
    if (!is_due) return;
    char more[60] = "";
    if (others) snprintf(more, sizeof more, " (and %llu more before)", (unsigned long long)others);
    log_line("a connection to the port of the function %.*s was closed%s: %s",
             SLICE_ARG(instance->function->name), more,
             peer == SANDBOX_PEER_UNKNOWN
                 ? "this machine does not tell whose it is; functions need /proc, and either socket "
                   "diagnostics or /proc/net/tcp"
                 : "it is not from a process of the function");
}

static void on_answer(struct sandbox_question *question, enum sandbox_peer peer)
{
    struct arrival *arrival = (struct arrival *)question;
    struct instance *instance = arrival->instance;
    struct pool *pool = instance->pool;
    if (peer == SANDBOX_PEER_STRANGER || peer == SANDBOX_PEER_UNKNOWN) {
        stats_add(&pool->stats.refused_connections, 1);
        log_refusal(instance, peer);
    }
    net_guest_decide(arrival->guest, peer == SANDBOX_PEER_OWN);
    free(arrival);
    pool_lock(pool);
    instance_drop(instance);
    pool_unlock(pool);
}

void instance_guard(void *context, struct net_guest *guest)
{
    struct instance *instance = context;
    struct arrival *arrival = must_zero(1, sizeof *arrival);
    arrival->guest = guest;
    arrival->instance = instance;
    arrival->question.server_port = net_guest_server_port(guest);
    arrival->question.peer_port = net_guest_peer_port(guest);
    arrival->question.answered = on_answer;
    pool_lock(instance->pool);
    instance->holds++;
    if (!instance->process) {
        arrival->next = instance->arrivals;
        instance->arrivals = arrival;
    } else {
        sandbox_ask_peer(instance->process, &arrival->question);
    }
    pool_unlock(instance->pool);
}

void instance_ask_arrivals(struct instance *instance)
{
    while (instance->arrivals) {
        struct arrival *arrival = instance->arrivals;
        instance->arrivals = arrival->next;
        sandbox_ask_peer(instance->process, &arrival->question);
    }
}
