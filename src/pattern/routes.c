/* Opening the patterns, their rows and sweeps, finding the row of a request, and turning a flow's answer into
 * a reply. */
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "pattern/internal.h"
#include "pattern/job_meter.h"
#include "pattern/memory.h"
#include "pattern/rows.h"

#define PREFIX_MOST 128  /* a table's name has up to 255 characters */
#define SKEW_MS     500  /* between machines that keep their time by the network */
#define POLL_MS     400  /* the engine here tells of others' writes, other databases do not */
#define LAG_MS      2000 /* of a remote index; a second is usual at most */

/* ---- rows ---- */

struct rows {
    const struct flow_row *rows;
    const uint32_t *count;
};

static const struct rows all_rows[] = {
#define X(name) {name##_rows, &name##_row_count},
    PATTERNS(X)
#undef X
};

const struct flow_row *row_at(size_t number)
{
    for (size_t i = 0; i < sizeof all_rows / sizeof *all_rows; i++) {
        if (number < *all_rows[i].count) return &all_rows[i].rows[number];
        number -= *all_rows[i].count;
    }
    return NULL;
}

static const struct flow_sweep *const all_sweeps[] = {
#define X(name) &name##_sweep,
    PATTERN_SWEEPS(X)
#undef X
        NULL};

const struct flow_sweep *sweep_at(size_t number)
{
    return all_sweeps[number];
}

static void put_refusal(struct rest_call *call, int status, const char *code, struct slice sentence)
{
    call->status = status;
    compose(call->reply, "{'error':%s,'message':%s}", slice_of(code), sentence);
}

static void refuse_method(struct pattern *pattern, struct rest_call *call)
{
    /* "GET, PUT": what the path of the call can be asked by. */
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    struct slice known = SLICE("");
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        const struct rest_route *route;
        struct rest_call probe = *call;
        probe.method = slice_of(methods[i]);
        if (rest_route(pattern->routes, pattern->route_count, &probe, &route) == REST_FOUND)
            known = arena_printf(call->arena, "%.*s%s%s", SLICE_ARG(known), known.len ? ", " : "",
                                 methods[i]);
    }
    rest_add_header(call, "Allow: %.*s", SLICE_ARG(known));
    put_refusal(call, 405, "wrong-method",
                arena_printf(call->arena, "This path knows %.*s.", SLICE_ARG(known)));
}

const struct flow_row *pattern_find(struct pattern *pattern, struct rest_call *call, bool *refused)
{
    const struct rest_route *route = NULL;
    *refused = true;
    switch (rest_route_indexed(pattern->routes, &pattern->index, pattern->route_count, call, &route)) {
    case REST_FOUND: *refused = false; return row_at((size_t)(route - pattern->routes));
    case REST_OTHER_METHOD: refuse_method(pattern, call); break;
    default:
        *refused = slice_starts(call->path, SLICE("/v1/"));
        if (*refused) {
            /* Patterns are asked last: what they do not know under /v1 is known to nobody. */
            struct slice path = utf8_valid(call->path) ? call->path : SLICE("like this");
            put_refusal(call, 404, "no-such-route",
                        arena_printf(call->arena,
                                     "There is no route %.*s; GET /v1/openapi.json describes all.",
                                     SLICE_ARG(path)));
        }
    }
    return NULL;
}

/* ---- opening ---- */

bool pattern_prefix_is_fit(const char *prefix)
{
    static const char fit[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t len = strspn(prefix, fit);
    return !prefix[len] && len >= 1 && len <= PREFIX_MOST;
}

struct pattern *pattern_open(const struct pattern_options *options)
{
    struct pattern *pattern = must_zero(1, sizeof *pattern);
    bool is_local = dynamo_engine(options->dynamo) != NULL;
    pattern->dynamo = options->dynamo;
    pattern->clock = options->clock ? options->clock : &clock_system;
    pattern->host = options->host;
    pattern->prefix = strdup(options->prefix ? options->prefix : "quipu-");
    ensure(pattern->prefix);
    pattern->memory = memory_new();
    pattern->job_meters = job_meters_new();
    pattern->world = (struct flow_world){.prefix = slice_of(pattern->prefix),
                                         .skew_ms = is_local ? 0 : SKEW_MS,
                                         .poll_ms = is_local ? 0 : POLL_MS,
                                         .lag_ms = is_local ? 0 : LAG_MS,
                                         .memory = memory_for_flows(pattern->memory),
                                         .job_meters = pattern->job_meters};
    if (options->skew_ms) pattern->world.skew_ms = options->skew_ms < 0 ? 0 : options->skew_ms;
    struct random random;
    random_seed_from_system(&random);
    pattern->seed = options->seed ? options->seed : random_next(&random);
    while (row_at(pattern->route_count)) pattern->route_count++;
    pattern->routes = must_zero(pattern->route_count, sizeof *pattern->routes);
    for (size_t i = 0; i < pattern->route_count; i++) {
        const struct flow_row *row = row_at(i);
        pattern->routes[i] = (struct rest_route){.method = row->method, .path = row->path};
    }
    rest_index_make(&pattern->index, pattern->routes, pattern->route_count);
    pattern->server = server_open(pattern, options->sweeps);
    return pattern;
}

void pattern_stop(struct pattern *pattern)
{
    server_stop(pattern->server);
}

void pattern_close(struct pattern *pattern)
{
    server_close(pattern->server);
    memory_free(pattern->memory);
    job_meters_free(pattern->job_meters);
    free(pattern->routes);
    free(pattern->prefix);
    free(pattern);
}

void pattern_each_job(struct pattern *pattern, void (*take)(void *context, const struct pattern_job_meter *meter),
                      void *context)
{
    job_meters_take(pattern->job_meters, take, context);
}

/* ---- what runners need ---- */

struct flow_start pattern_start_of(struct pattern *pattern, struct arena *arena, struct buf *body)
{
    uint64_t serial = atomic_fetch_add(&pattern->serial, 1);
    return (struct flow_start){.world = &pattern->world,
                               .arena = arena,
                               .body = body,
                               .seed = pattern->seed + serial, /* random_seed mixes it */
                               .serial = serial,
                               .now_ms = clock_now_ms(pattern->clock)};
}

struct flow_reply pattern_reply(struct arena *arena, int status, struct slice body)
{
    struct slice message;
    struct flow_reply reply = {.status = status, .body = arena_copy(arena, body)};
    if (status != 200) dynamo_error(reply.body, arena, &reply.error, &message);
    return reply;
}

void pattern_answer(const struct flow *flow, struct rest_call *call)
{
    call->status = flow->status;
    call->content_type = flow->content_type;
    if (flow->etag.len) rest_add_header(call, "ETag: \"%.*s\"", SLICE_ARG(flow->etag));
    if (flow->cost.len) rest_add_header(call, "Quipu-Cost: %.*s", SLICE_ARG(flow->cost));
    if (flow->retry_after_ms)
        rest_add_header(call, "Retry-After: %lld", (long long)(flow->retry_after_ms + 999) / 1000);
}

bool pattern_serve(struct pattern *pattern, struct rest_call *call)
{
    return pattern_serve_on(pattern, call, pattern->host);
}

bool pattern_serve_on(struct pattern *pattern, struct rest_call *call, const struct pattern_host *host)
{
    bool refused;
    const struct flow_row *row = pattern_find(pattern, call, &refused);
    if (row)
        server_begin(pattern->server, row, call, host);
    else if (refused && call->done)
        call->done(call);
    else if (refused)
        host->post(host, call, NULL);
    return row || refused;
}
