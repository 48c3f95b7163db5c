/* Requests from the door to a function and back. */
#include "gateway/gateway.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/random.h"
#include "gateway/internal.h"

#define WORKERS 8 /* threads for what waits for the tables, and for routes that call DynamoDB */

/* Pages that functions serve below a path of the server's own are of no origin. */
#define SANDBOX "Content-Security-Policy: sandbox allow-forms allow-modals allow-popups allow-scripts"

struct gateway *gateway_open(const struct gateway_options *options)
{
    struct gateway *gateway = must_zero(1, sizeof *gateway);
    struct random random;
    random_seed_from_system(&random);
    gateway->options = *options;
    gateway->seed = random_next(&random);
    gateway->table = arena_printf(&gateway->arena, "%sroutes", options->prefix ? options->prefix : "quipu-");
    pthread_mutex_init(&gateway->lock, NULL);
    gateway->workers = workers_new(WORKERS);
    apis_read_soon(gateway); /* before the first page asks */
    return gateway;
}

void gateway_close(struct gateway *gateway)
{
    if (!gateway) return;
    workers_free(gateway->workers);
    apis_close(gateway);
    pthread_mutex_destroy(&gateway->lock);
    arena_free(&gateway->arena);
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

/* Hosts' names have no case. */
static struct slice api_name(const struct gateway_target *target, struct arena *arena)
{
    char *name = arena_alloc(arena, target->name.len);
    for (size_t i = 0; i < target->name.len; i++) {
        char c = target->name.data[i];
        name[i] = c >= 'A' && c <= 'Z' && target->by_host ? (char)(c + 32) : c;
    }
    return (struct slice){name, target->name.len};
}

struct gateway_target gateway_target(const struct rest_head *head)
{
    static const struct {
        struct slice middle, path; /* of a host's name; of a path */
        enum gateway_door door;
    } doors[] = {{SLICE("lambda-url."), SLICE("/_url/"), GATEWAY_URL},
                 {SLICE("execute-api."), SLICE("/_api/"), GATEWAY_API}};
    struct slice rest = host_name(rest_head_find(head, SLICE("Host"))), name = slice_cut(&rest, '.');
    for (size_t i = 0; name.len && i < 2; i++)
        if (rest.len > doors[i].middle.len &&
            slice_equal_ignoring_case((struct slice){rest.data, doors[i].middle.len}, doors[i].middle))
            return (struct gateway_target){doors[i].door, name, true, head->path};
    for (size_t i = 0; i < 2; i++) {
        if (!slice_starts(head->path, doors[i].path)) continue;
        rest = slice_from(head->path, doors[i].path.len);
        name = slice_cut(&rest, '/');
        bool has_path = name.data + name.len < head->path.data + head->path.len;
        return (struct gateway_target){doors[i].door, name, false,
                                       has_path ? (struct slice){rest.data - 1, rest.len + 1} : SLICE("/")};
    }
    return (struct gateway_target){.door = GATEWAY_NONE};
}

static bool url_find(struct gateway *gateway, const struct gateway_target *target, struct arena *arena,
                     struct func_url *url)
{
    struct slice name = target->name;
    if (!target->by_host && !rest_decode(arena, name, &name)) return false;
    return func_url_find(gateway->options.func, name, target->by_host, arena, url);
}

bool gateway_opens(struct gateway *gateway, const struct rest_head *head)
{
    struct gateway_target target = gateway_target(head);
    struct arena arena = {0};
    struct func_url url;
    struct slice cors = SLICE_NONE;
    unsigned origins = 0;
    if (!target.door) return false;
    struct api *api = target.door == GATEWAY_API ? apis_known(gateway, api_name(&target, &arena), true) : NULL;
    if (api) cors = api->cors;
    if (!api && target.door == GATEWAY_API) apis_read_soon(gateway); /* the page may try again */
    if (target.door == GATEWAY_URL && url_find(gateway, &target, &arena, &url)) cors = url.cors;
    for (uint32_t i = 0; i < head->header_count; i++)
        origins += slice_equal_ignoring_case(head->headers[i].name, SLICE("Origin"));
    bool opens = cors.len && origins <= 1 && cors_allows(cors, rest_head_find(head, SLICE("Origin")), &arena);
    api_release(api);
    arena_free(&arena);
    return opens;
}

/* ---- replies ---- */

static void put_head(struct visit *visit, int status)
{
    struct rest_call *call = visit->call;
    call->status = status;
    call->is_bare = true;
    if (!visit->target.by_host) rest_add_header(call, SANDBOX);
    rest_add_header(call, "%s: %s", visit->target.door == GATEWAY_API ? "apigw-requestid" : "x-amzn-RequestId",
                    visit->id);
    cors_put(call, visit->cors, false);
}

static void finish(struct visit *visit, int status)
{
    put_head(visit, status);
    api_release(visit->api);
    visit->call->done(visit->call);
}

static void fail(struct visit *visit, int status, struct slice message)
{
    struct rest_call *call = visit->call;
    call->reply->len = 0;
    call->content_type = SLICE("application/json");
    if (visit->target.door == GATEWAY_API)
        compose(call->reply, "{'message':%s}", message);
    else
        compose(call->reply, "{'Message':%s}", message);
    finish(visit, status);
}

/* A function's URL answers 502, an HTTP API 500. */
static void fail_function(struct visit *visit)
{
    bool is_http_api = visit->target.door == GATEWAY_API && !visit->is_payload_1;
    fail(visit, is_http_api ? 500 : 502,
         visit->is_payload_1 ? SLICE("Internal server error") : SLICE("Internal Server Error"));
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

static bool refuse_answer(struct visit *visit, const char *fault)
{
    func_log(visit->gateway->options.func, visit->function,
             arena_printf(visit->call->arena, "The answer to the request %s is no reply of HTTP: %s.", visit->id,
                          fault));
    return false;
}

static void put_answer(struct visit *visit, const struct http_answer *answer, struct slice default_type)
{
    struct rest_call *call = visit->call;
    call->headers = visit->cors.len ? without_cors(call->arena, answer->headers) : answer->headers;
    call->content_type = answer->content_type.len ? answer->content_type : default_type;
}

static void answer(struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct http_answer answer;
    struct slice reply = arena_take(call->arena, &visit->invocation.reply);
    const char *fault = visit->invocation.has_prelude
                            ? http_answer_read_prelude(reply, call->arena, &answer)
                            : http_answer_read(reply, visit->is_payload_1, call->arena, &answer);
    if (fault) {
        refuse_answer(visit, fault);
        fail_function(visit);
        return;
    }
    put_answer(visit, &answer,
               visit->target.door == GATEWAY_API ? SLICE("text/plain; charset=utf-8") : SLICE("application/json"));
    buf_slice(call->reply, answer.body);
    finish(visit, answer.status);
}

/* ---- replies that are sent as they come ---- */

/* The head, where it can be told by now; *bytes is what is left for the body. False: not yet. */
static bool stream_begin(struct visit *visit, struct slice *bytes)
{
    const struct invocation *invocation = &visit->invocation;
    static const char zeros[8];
    struct slice type = invocation->content_type;
    struct http_answer answer = {.status = 200, .headers = SLICE("")};
    if (invocation->has_prelude) {
        buf_slice(&visit->prelude, *bytes);
        struct slice all = buf_view(&visit->prelude);
        bool is_whole = memmem(all.data, all.len, zeros, sizeof zeros) != NULL;
        if (!is_whole && all.len <= LIMIT_PRELUDE_BYTES) return false;
        const char *fault = http_answer_read_prelude(arena_take(visit->call->arena, &visit->prelude),
                                                     visit->call->arena, &answer);
        visit->is_bad = fault != NULL;
        if (fault) return refuse_answer(visit, fault);
        *bytes = answer.body;
        type = SLICE_NONE;
    }
    bool is_line = true;
    for (size_t i = 0; i < type.len; i++) is_line &= (unsigned char)type.data[i] >= ' ' && type.data[i] != 0x7f;
    put_answer(visit, &answer, type.len && is_line ? type : SLICE("application/octet-stream"));
    put_head(visit, answer.status);
    visit->has_begun = true;
    return true;
}

static bool invoked_piece(struct invocation *invocation, struct slice bytes)
{
    struct visit *visit = invocation->context;
    struct gateway *gateway = visit->gateway;
    if (visit->is_bad || (!visit->has_begun && !stream_begin(visit, &bytes))) return true;
    pthread_mutex_lock(&gateway->lock);
    visit->stream = invocation->stream;
    pthread_mutex_unlock(&gateway->lock);
    /* What a client that has gone does not take is thrown away: the function ends as it would have. */
    return !visit->call->piece(visit->call, bytes) || !visit->call->is_full(visit->call);
}

static void piece_taken(struct rest_call *call)
{
    struct visit *visit = call->context;
    pthread_mutex_lock(&visit->gateway->lock);
    if (visit->stream) func_stream_resume(visit->stream);
    pthread_mutex_unlock(&visit->gateway->lock);
}

/* True: the call is answered. */
static bool stream_end(struct visit *visit)
{
    struct rest_call *call = visit->call;
    struct invocation *invocation = &visit->invocation;
    bool is_answered = invocation->end == INVOCATION_ANSWERED;
    buf_free(&visit->prelude);
    pthread_mutex_lock(&visit->gateway->lock);
    visit->stream = NULL;
    pthread_mutex_unlock(&visit->gateway->lock);
    if (!visit->has_begun && !visit->is_bad && is_answered) { /* without a byte, or within its prelude */
        struct slice none = SLICE("");
        if (invocation->has_prelude)
            visit->is_bad = !refuse_answer(visit, "its prelude has no end");
        else
            stream_begin(visit, &none);
    }
    buf_free(&invocation->reply);
    if (visit->has_begun) {
        call->is_torn = !is_answered;
        api_release(visit->api);
        call->done(call);
        return true;
    }
    if (!visit->is_bad) return false;
    fail_function(visit);
    return true;
}

static void invoked(struct invocation *invocation)
{
    struct visit *visit = invocation->context;
    buf_free(&invocation->log);
    if (invocation->stream && stream_end(visit)) return;
    if (invocation->end == INVOCATION_ANSWERED) {
        answer(visit);
        return;
    }
    buf_free(&invocation->reply);
    switch (invocation->end) {
    case INVOCATION_THROTTLED:
        fail(visit, 429, visit->api ? SLICE("Too Many Requests") : SLICE("Rate Exceeded."));
        break;
    case INVOCATION_UNKNOWN:
        func_log(visit->gateway->options.func, visit->function, SLICE("There is no such function"));
        fail_function(visit);
        break;
    default: fail_function(visit);
    }
}

/* ---- serving ---- */

static void map(void *room, struct rest_call *call)
{
    struct visit *visit = call->context;
    (void)room;
    if (call->body.len > LIMIT_MAPPED_BODY_BYTES)
        fail(visit, 413, SLICE("Request Entity Too Large"));
    else
        mapping_run(visit, finish);
}

static void begin(struct visit *visit)
{
    struct rest_call *call = visit->call;
    bool is_preflight = cors_is_preflight(call, visit->cors);
    if (is_preflight) {
        cors_put(call, visit->cors, true);
        call->is_bare = true;
        call->content_type = SLICE("text/plain");
        call->status = visit->api ? 204 : 200;
        api_release(visit->api);
        call->done(call);
        return;
    }
    if (visit->is_signed && !visit->key.len) {
        fail(visit, 403, SLICE("Forbidden"));
        return;
    }
    if (visit->mapped) {
        call->context = visit;
        rest_workers_run(visit->gateway->workers, map, visit->gateway, call);
        return;
    }
    struct slice event = http_event_write(visit);
    if (event.len > LIMIT_EVENT_BYTES) {
        fail(visit, 413, SLICE("Request must be smaller than 6291456 bytes"));
        return;
    }
    visit->invocation = (struct invocation){.function = visit->function,
                                            .qualifier = visit->qualifier,
                                            .payload = event,
                                            .cause = call->cause,
                                            .arena = call->arena,
                                            .done = invoked,
                                            .piece = visit->streams ? invoked_piece : NULL,
                                            .context = visit};
    call->context = visit;
    call->taken = piece_taken;
    memcpy(visit->invocation.request_id, visit->id, sizeof visit->id);
    func_invoke(visit->gateway->options.func, &visit->invocation);
}

static void serve_url(struct visit *visit, const struct func_url *url)
{
    visit->place = url->id;
    visit->function = url->function;
    visit->qualifier = url->qualifier;
    visit->cors = url->cors;
    visit->is_signed = url->is_signed;
    visit->streams = url->streams;
    visit->route = visit->stage = SLICE("$default");
    visit->path = visit->target.path;
    begin(visit);
}

/* The path behind the stage's name; false: it does not begin so. */
static bool cut_stage(struct slice *path, struct slice stage)
{
    if (slice_equal(stage, SLICE("$default"))) return true;
    struct slice rest = slice_from(*path, path->len ? 1 : 0), first = slice_cut(&rest, '/');
    if (!slice_equal(first, stage)) return false;
    bool has_more = first.data + first.len < path->data + path->len;
    *path = has_more ? (struct slice){rest.data - 1, rest.len + 1} : SLICE("/");
    return true;
}

/* Takes the API over. */
static void serve_api(struct visit *visit, struct api *api)
{
    struct rest_call *call = visit->call;
    visit->api = api;
    visit->place = api->name;
    visit->cors = api->cors;
    visit->stage = api->stage;
    visit->variables = api->variables;
    visit->path = visit->target.path;
    const struct route *route = cut_stage(&visit->path, api->stage) ? api_route(api, call->method, visit->path) : NULL;
    if (!route && !cors_is_preflight(call, visit->cors)) {
        fail(visit, 404, SLICE("Not Found"));
        return;
    }
    if (route) {
        visit->function = route->function;
        visit->mapped = route->operation.len ? route : NULL;
        visit->route = route->key;
        visit->route_path = route->path;
        visit->is_payload_1 = route->is_payload_1;
        visit->is_signed = route->is_signed;
        visit->parameters = route_parameters(route, visit->path, call->arena);
    }
    begin(visit);
}

/* On a worker: it is not in memory, or another server may have made it. */
static void look(void *room, struct rest_call *call)
{
    struct gateway *gateway = room;
    struct visit *visit = call->context;
    struct func_url url;
    bool failed = false;
    if (visit->target.door == GATEWAY_API) {
        struct slice name = api_name(&visit->target, call->arena);
        struct api *api = api_name_is_valid(name) ? apis_load(gateway, name, &failed) : NULL;
        if (api) {
            serve_api(visit, api);
            return;
        }
    } else {
        func_refresh(gateway->options.func);
        if (url_find(gateway, &visit->target, call->arena, &url)) {
            serve_url(visit, &url);
            return;
        }
    }
    if (failed)
        fail(visit, 503, SLICE("Service Unavailable"));
    else if (visit->target.by_host || visit->target.door == GATEWAY_API)
        fail(visit, 404, SLICE("Not Found"));
    else
        fail(visit, 404, SLICE("There is no such function, or it has no URL: 'quipu function url NAME' makes one"));
}

void gateway_serve(struct gateway *gateway, struct rest_call *call, const struct gateway_target *target)
{
    struct visit *visit = arena_new(call->arena, struct visit);
    uint64_t number = atomic_fetch_add_explicit(&gateway->count, 1, memory_order_relaxed);
    struct random random;
    struct func_url url;
    struct api *api = NULL;
    random_seed(&random, gateway->seed + number);
    *visit = (struct visit){.gateway = gateway,
                            .call = call,
                            .target = *target,
                            .host = http_text(call->arena, host_name(call->header(call, SLICE("Host")))),
                            .now_ms = clock_now_ms(gateway->options.clock)};
    uuid_put(visit->id, random_next(&random), random_next(&random));
    if (!gateway->options.is_signed(call, &visit->key)) visit->key = SLICE_NONE;
    visit->key = http_text(call->arena, visit->key);
    if (target->door == GATEWAY_URL && url_find(gateway, target, call->arena, &url)) {
        serve_url(visit, &url);
    } else if (target->door == GATEWAY_API && (api = apis_known(gateway, api_name(target, call->arena), false))) {
        serve_api(visit, api);
    } else {
        call->context = visit;
        rest_workers_run(gateway->workers, look, gateway, call);
    }
}
