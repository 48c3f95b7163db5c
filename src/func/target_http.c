/* A URL as a target: the event is sent to it by POST, as JSON, and what it answers with a status of 2xx is
 * the function's answer; so it may return effects and failures of a batch like any function.
 *
 * Headers of the request:
 *
 *   X-Quipu-Function     the function's name
 *   X-Quipu-Request-Id   of the invocation; the same when it is told in logs and replies
 *   X-Quipu-Timestamp    seconds since 1970, when it was sent
 *   X-Quipu-Signature    where the function has a secret: HMAC-SHA256, in hexadecimal, of the timestamp, a
 *                        dot and the body, with the secret as the key
 *
 * Whoever is called computes the same and compares; the timestamp is signed too, so that a request which
 * somebody has overheard cannot be sent again much later. */
#include <openssl/hmac.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/limits.h"
#include "func/target.h"

#define HEADERS       6   /* of a request, and the end of their list */
#define EXCERPT_BYTES 200 /* of a reply that is shown because its status tells of a failure */
#define URLS_AT_ONCE  256 /* so that a few slow ones do not hold up the others ... */
#define FILES_PER_URL 16  /* ... but one for so many files that may be open: they are needed elsewhere, too */
#define CONNECT_MS    5000

/* Lives in the invocation's arena. */
struct http_call {
    struct client_call call;
    struct invocation *invocation;
    const struct clock *clock;
    struct slice name, secret;
    uint32_t timeout_ms;
};

static struct slice signature(struct http_call *http, struct slice timestamp)
{
    struct buf text = {0}, hex = {0};
    unsigned char hash[DIGEST_BYTES];
    unsigned len = sizeof hash;
    buf_slice(&text, timestamp);
    buf_byte(&text, '.');
    buf_slice(&text, http->call.body);
    HMAC(EVP_sha256(), http->secret.data, (int)http->secret.len, (const unsigned char *)text.data, text.len,
         hash, &len);
    digest_put_hex(&hex, hash, sizeof hash);
    buf_free(&text);
    return arena_take(http->call.arena, &hex);
}

/* Signed when it goes on the wire: it may have waited for others before. */
static void prepare(struct client_call *call)
{
    struct http_call *http = call->context;
    struct arena *arena = call->arena;
    const char **headers = arena_array(arena, const char *, HEADERS);
    struct slice timestamp = arena_printf(arena, "%lld", (long long)(clock_now_ms(http->clock) / 1000));
    unsigned count = 0;
    headers[count++] = "Content-Type: application/json";
    headers[count++] = arena_printf(arena, "X-Quipu-Function: %.*s", SLICE_ARG(http->name)).data;
    headers[count++] = arena_printf(arena, "X-Quipu-Request-Id: %s", http->invocation->request_id).data;
    headers[count++] = arena_printf(arena, "X-Quipu-Timestamp: %.*s", SLICE_ARG(timestamp)).data;
    if (http->secret.len)
        headers[count++] =
            arena_printf(arena, "X-Quipu-Signature: %.*s", SLICE_ARG(signature(http, timestamp))).data;
    headers[count] = NULL;
    call->headers = headers;
}

/* ---- what came of it ---- */

static const char *fail_type(enum client_end end)
{
    return end == CLIENT_UNCONNECTED ? "Target.Unreachable"
           : end == CLIENT_BROKEN    ? "Target.ConnectionLost"
                                     : "Target.Refused";
}

static void finish(struct client_call *call)
{
    struct http_call *http = call->context;
    struct invocation *invocation = http->invocation;
    if (call->end == CLIENT_ANSWERED && call->status >= 200 && call->status <= 299) {
        invocation->end = INVOCATION_ANSWERED;
        if (!invocation->reply.len) buf_text(&invocation->reply, "null");
    } else if (call->end == CLIENT_ANSWERED) {
        struct slice body = buf_view(&invocation->reply);
        if (body.len > EXCERPT_BYTES) body.len = EXCERPT_BYTES;
        while (body.len && !utf8_valid(body))
            body.len--; /* a character that was cut in two; or all, if it is no text */
        body = arena_copy(invocation->arena, body);
        target_fail(invocation, "Target.HttpStatus", "%s answered with status %d%s%.*s", http->call.url,
                    http->call.status, body.len ? ": " : "", SLICE_ARG(body));
        invocation->error_kind = "Handled";
    } else if (call->timed_out) {
        target_fail(invocation, "Sandbox.Timedout",
                    "RequestId: %s Error: Task timed out after %u.%02u seconds", invocation->request_id,
                    http->timeout_ms / 1000, http->timeout_ms % 1000 / 10);
    } else {
        target_fail(invocation, fail_type(call->end), "%s: %.*s", call->url, SLICE_ARG(call->failure));
    }
    invocation->done(invocation);
}

/* Loading libcurl takes milliseconds, which a server that calls no URL need not spend. */
struct client *func_client(struct func *func)
{
    char error[300];
    if (func->options.client) return func->options.client;
    struct client *client = atomic_load(&func->client), *none = NULL;
    if (client) return client;
    long files = sysconf(_SC_OPEN_MAX);
    uint32_t at_once = files > 0 && files / FILES_PER_URL < URLS_AT_ONCE ? (uint32_t)files / FILES_PER_URL
                                                                         : URLS_AT_ONCE;
    client = client_open(&(struct client_options){.in_flight = at_once}, error, sizeof error);
    if (!client || atomic_compare_exchange_strong(&func->client, &none, client)) return client;
    client_close(client); /* somebody else was quicker */
    return none;
}

void target_http(struct func *func, const struct function *function, struct invocation *invocation)
{
    struct arena *arena = invocation->arena;
    struct client *client = func_client(func);
    if (!client) {
        target_refuse(invocation, "this server calls no URLs: libcurl is not to be found");
        invocation->done(invocation);
        return;
    }
    struct http_call *http = arena_new(arena, struct http_call);
    http->invocation = invocation;
    http->clock = func->options.clock;
    http->name = arena_copy(arena, function->name);
    http->secret = arena_copy(arena, function->secret);
    http->timeout_ms = invocation_timeout_ms(function, invocation);
    int64_t connect_ms = http->timeout_ms < CONNECT_MS ? http->timeout_ms : CONNECT_MS;
    http->call = (struct client_call){.method = "POST",
                                      .url = arena_copy(arena, function->url).data,
                                      .body = target_event(invocation),
                                      .connect_ms = connect_ms,
                                      .total_ms = http->timeout_ms,
                                      .reply_max_bytes = LIMIT_FUNCTION_REPLY_BYTES,
                                      .arena = arena,
                                      .reply = &invocation->reply,
                                      .prepare = prepare,
                                      .done = finish,
                                      .context = http};
    client_begin(client, &http->call);
}
