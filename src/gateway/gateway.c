/* Requests from the door to a function and back. */
#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/random.h"
#include "gateway/internal.h"

#define WORKERS  2 /* threads that look for what others have changed */
#define URL_PATH "/_url/"

/* Pages that functions serve below a path of the server's own are of no origin. */
#define SANDBOX "Content-Security-Policy: sandbox allow-forms allow-modals allow-popups allow-scripts"

struct gateway *gateway_open(const struct gateway_options *options)
{
    struct gateway *gateway = must_zero(1, sizeof *gateway);
    struct random random;
    random_seed_from_system(&random);
    gateway->options = *options;
    gateway->seed = random_next(&random);
    gateway->workers = rest_workers_new(WORKERS);
    return gateway;
}

void gateway_close(struct gateway *gateway)
{
    if (!gateway) return;
    rest_workers_free(gateway->workers);
    free(gateway);
}

/* ---- whom a request is for ---- */

/* Without port and trailing dot. */
static struct slice host_name(struct slice host)
{
    const char *colon = host.len && host.data[0] != '[' ? memchr(host.data, ':', host.len) : NULL;
    if (colon) host.len = (size_t)(colon - host.data);
    if (host.len > 1 && host.data[host.len - 1] == '.') host.len--;
    return host;
}

struct gateway_target gateway_target(const struct rest_head *head)
{
    static const struct slice path = SLICE(URL_PATH), middle = SLICE("lambda-url.");
    struct slice rest = host_name(rest_head_find(head, SLICE("Host"))), id = slice_cut(&rest, '.');
    struct gateway_target target = {.name = id, .by_host = true, .path = head->path};
    if (id.len && rest.len > middle.len && slice_equal_ignoring_case((struct slice){rest.data, middle.len}, middle)) {
        target.door = GATEWAY_URL;
    } else if (slice_starts(head->path, path)) {
        rest = slice_from(head->path, path.len);
        target = (struct gateway_target){.door = GATEWAY_URL, .name = slice_cut(&rest, '/')};
        target.path = rest.data > target.name.data + target.name.len
                          ? (struct slice){rest.data - 1, rest.len + 1}
                          : SLICE("/");
    }
    return target;
}

static bool find(struct gateway *gateway, const struct gateway_target *target, struct arena *arena,
                 struct func_url *url)
{
    struct slice name = target->name;
    if (!target->by_host && !rest_decode(arena, name, &name)) return false;
    return gateway->options.func && func_url_find(gateway->options.func, name, target->by_host, arena, url);
}

bool gateway_opens(struct gateway *gateway, const struct rest_head *head)
{
    struct gateway_target target = gateway_target(head);
    struct func_url url;
    struct arena arena = {0};
    unsigned origins = 0;
    for (uint32_t i = 0; i < head->header_count; i++)
        origins += slice_equal_ignoring_case(head->headers[i].name, SLICE("Origin"));
    bool opens = target.door && origins <= 1 && find(gateway, &target, &arena, &url) && url.cors.len &&
                 cors_allows(url.cors, rest_head_find(head, SLICE("Origin")), &arena);
    arena_free(&arena);
    return opens;
}

/* ---- replies ---- */

static void finish(struct visit *visit, int status)
{
    struct rest_call *call = visit->call;
    call->status = status;
    call->is_bare = true;
    if (!visit->target.by_host) rest_add_header(call, SANDBOX);
    rest_add_header(call, "x-amzn-RequestId: %s", visit->id);
    cors_put(call, visit->url.cors, false);
    call->done(call);
}

static void fail(struct visit *visit, int status, struct slice message)
{
    struct rest_call *call = visit->call;
    call->reply->len = 0;
    call->content_type = SLICE("application/json");
    compose(call->reply, "{'Message':%s}", message);
    finish(visit, status);
}

/* Lines of a function's own for CORS do not count where there are settings. */
static struct slice without_cors(struct arena *arena, struct slice lines)
{
    struct buf out = {0};
    while (lines.len) {
        struct slice line = slice_cut(&lines, '\n'), rest = line, name = slice_cut(&rest, ':');
        if (cors_owns_header(name)) continue;
        buf_slice(&out, line);
        buf_byte(&out, '\n');
    }
    return arena_take(arena, &out);
}

static void answer(struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct http_answer answer;
    struct slice reply = arena_take(call->arena, &visit->invocation.reply);
    const char *fault = http_answer_read(reply, call->arena, &answer);
    if (fault) {
        func_log(visit->gateway->options.func, visit->url.function,
                 arena_printf(call->arena, "The answer to the request %s is no reply of HTTP: %s.", visit->id, fault));
        fail(visit, 502, SLICE("Internal Server Error"));
        return;
    }
    call->headers = visit->url.cors.len ? without_cors(call->arena, answer.headers) : answer.headers;
    call->content_type = answer.content_type.len ? answer.content_type : SLICE("application/json");
    buf_slice(call->reply, answer.body);
    finish(visit, answer.status);
}

static void invoked(struct invocation *invocation)
{
    struct visit *visit = invocation->context;
    buf_free(&invocation->log);
    if (invocation->end == INVOCATION_ANSWERED) {
        answer(visit);
        return;
    }
    buf_free(&invocation->reply);
    switch (invocation->end) {
    case INVOCATION_THROTTLED: fail(visit, 429, SLICE("Rate Exceeded.")); break;
    case INVOCATION_UNKNOWN: fail(visit, 404, SLICE("There is no such function")); break;
    default: fail(visit, 502, SLICE("Internal Server Error"));
    }
}

/* ---- serving ---- */

static void begin(struct visit *visit)
{
    struct rest_call *call = visit->call;
    const struct gateway_options *options = &visit->gateway->options;
    if (cors_is_preflight(call, visit->url.cors)) {
        cors_put(call, visit->url.cors, true);
        call->is_bare = true;
        call->content_type = SLICE("text/plain");
        call->status = 200;
        call->done(call);
        return;
    }
    struct slice event = http_event_write(visit);
    if (event.len > LIMIT_EVENT_BYTES) {
        fail(visit, 413, SLICE("Request must be smaller than 6291456 bytes"));
        return;
    }
    visit->invocation = (struct invocation){.function = visit->url.function,
                                            .qualifier = visit->url.qualifier,
                                            .payload = event,
                                            .cause = call->cause,
                                            .arena = call->arena,
                                            .done = invoked,
                                            .context = visit};
    memcpy(visit->invocation.request_id, visit->id, sizeof visit->id);
    func_invoke(options->func, &visit->invocation);
}

static void serve(struct visit *visit);

/* On a worker: another server may have made it. */
static void look(void *room, struct rest_call *call)
{
    struct visit *visit = call->context;
    (void)room;
    func_refresh(visit->gateway->options.func);
    visit->has_looked = true;
    serve(visit);
}

static void serve(struct visit *visit)
{
    struct gateway *gateway = visit->gateway;
    struct rest_call *call = visit->call;
    if (find(gateway, &visit->target, call->arena, &visit->url)) {
        if (visit->url.is_signed && !visit->key.len && !cors_is_preflight(call, visit->url.cors))
            fail(visit, 403, SLICE("Forbidden"));
        else
            begin(visit);
    } else if (gateway->options.func && !visit->has_looked) {
        call->context = visit;
        rest_workers_run(gateway->workers, look, gateway, call);
    } else {
        fail(visit, 404,
             visit->target.by_host ? SLICE("There is no function with this URL")
                                   : SLICE("There is no such function, or it has no URL: 'quipu function url NAME' "
                                           "makes one"));
    }
}

void gateway_serve(struct gateway *gateway, struct rest_call *call, const struct gateway_target *target)
{
    struct visit *visit = arena_new(call->arena, struct visit);
    uint64_t number = atomic_fetch_add_explicit(&gateway->count, 1, memory_order_relaxed);
    struct random random;
    random_seed(&random, gateway->seed + number);
    *visit = (struct visit){.gateway = gateway,
                            .call = call,
                            .target = *target,
                            .host = host_name(call->header(call, SLICE("Host"))),
                            .now_ms = clock_now_ms(gateway->options.clock)};
    uuid_put(visit->id, random_next(&random), random_next(&random));
    if (!gateway->options.is_signed(call, &visit->key)) visit->key = SLICE_NONE;
    serve(visit);
}
