/* Definitions of APIs: routes, and which of them a request takes.
 *
 *   {"routes":{"GET /users/{id}":{"function":"show"},"ANY /{proxy+}":{...},"$default":{...}},
 *    "cors":{"AllowOrigins":["*"]},"stage":"$default","stageVariables":{"name":"text"}}
 *
 * The most specific route counts: from the left a segment as it stands before a {name}, that before {name+}, which
 * takes all that is left; then a method before ANY; then $default. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/raw.h"
#include "gateway/internal.h"

struct reading {
    struct api *api;
    char *error;
    size_t error_len;
};

static bool wrong(struct reading *reading, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(struct reading *reading, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reading->error, reading->error_len, format, args);
    va_end(args);
    return false;
}

#define SHOWN_MAX    200 /* of what was given, in a sentence */
#define SHOWN(text)  (int)((text).len < SHOWN_MAX ? (text).len : SHOWN_MAX), (text).data

bool api_name_is_valid(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool is_inner = c == '-' && i > 0 && i + 1 < name.len;
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && !is_inner) return false;
    }
    return name.len > 0 && name.len <= LIMIT_API_NAME;
}

/* ---- routes ---- */

static bool is_parameter(struct slice segment)
{
    return segment.len > 2 && segment.data[0] == '{' && segment.data[segment.len - 1] == '}';
}

static bool is_greedy(struct slice segment)
{
    return is_parameter(segment) && segment.data[segment.len - 2] == '+';
}

static struct slice parameter_name(struct slice segment)
{
    return (struct slice){segment.data + 1, segment.len - (is_greedy(segment) ? 3 : 2)};
}

static struct slice trimmed(struct slice path)
{
    if (path.len && path.data[0] == '/') path = slice_from(path, 1);
    if (path.len && path.data[path.len - 1] == '/') path.len--;
    return path;
}

static bool path_is_valid(struct slice path)
{
    if (!path.len || path.data[0] != '/') return false;
    for (struct slice rest = trimmed(path); rest.len;) {
        struct slice segment = slice_cut(&rest, '/');
        if (!segment.len || (is_greedy(segment) && rest.len)) return false;
        struct slice text = is_parameter(segment) ? parameter_name(segment) : segment;
        for (size_t i = 0; i < text.len; i++)
            if ((unsigned char)text.data[i] <= ' ' || strchr("{}?#\"\\", text.data[i])) return false;
        if (!text.len) return false;
    }
    return true;
}

static bool method_is_valid(struct slice method)
{
    static const char *const methods[] = {"ANY", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (slice_equal(method, slice_of(methods[i]))) return true;
    return false;
}

static bool key_read(struct reading *reading, struct slice key, struct route *route)
{
    struct slice rest = key, method = slice_cut(&rest, ' ');
    route->key = key;
    if (slice_equal(key, SLICE("$default"))) return true;
    route->method = method;
    route->path = rest;
    if (method_is_valid(method) && path_is_valid(rest)) return true;
    return wrong(reading,
                 "a route is a method and a path, like 'GET /users/{id}', 'ANY /{proxy+}', or $default, not '%.*s'",
                 SHOWN(key));
}

/* Whether all requests of the one could be the other's: {names} count as alike. */
static bool routes_are_alike(const struct route *a, const struct route *b)
{
    struct slice first = trimmed(a->path), second = trimmed(b->path);
    if (!slice_equal(a->method, b->method) || !a->method.len != !b->method.len) return false;
    while (first.len && second.len) {
        struct slice one = slice_cut(&first, '/'), other = slice_cut(&second, '/');
        if (is_parameter(one) != is_parameter(other) || is_greedy(one) != is_greedy(other)) return false;
        if (!is_parameter(one) && !slice_equal(one, other)) return false;
    }
    return !first.len && !second.len;
}

enum { FUNCTION, PAYLOAD, AUTH, DYNAMODB, REQUEST, RESPONSE, RESPONSES, STATUS, ROUTE_MEMBERS };
static const char *const route_members[] = {"function", "payload",  "auth",      "dynamodb",
                                            "request",  "response", "responses", "status"};

static bool function_read(struct reading *reading, const struct slice *raws, struct route *route)
{
    struct arena *arena = &reading->api->arena;
    struct slice payload = raws[PAYLOAD].data ? raw_text(arena, raws[PAYLOAD]) : SLICE("2.0");
    route->function = raw_string(arena, raws[FUNCTION]);
    if (!route->function.len) return wrong(reading, "the route '%.*s' names no function", SHOWN(route->key));
    if (raws[REQUEST].data || raws[RESPONSE].data || raws[RESPONSES].data || raws[STATUS].data)
        return wrong(reading, "the route '%.*s' has templates, which go with dynamodb", SHOWN(route->key));
    route->is_payload_1 = slice_equal(payload, SLICE("1.0"));
    return route->is_payload_1 || slice_equal(payload, SLICE("2.0")) ||
           wrong(reading, "payload of the route '%.*s' should be 1.0 or 2.0", SHOWN(route->key));
}

static bool status_read(struct slice raw, int *status)
{
    int64_t number;
    if (!raw.data) return true;
    bool fine = raw_kind(raw) == JSON_NUMBER && raw_int(raw, &number) && number >= 200 && number <= 599;
    if (fine) *status = (int)number;
    return fine;
}

/* {"dynamodb":"UpdateItem","request":TEMPLATE,"status":200,"response":TEMPLATE,
 *  "responses":[{"pattern":"4\\d{2}","status":400,"response":TEMPLATE}]} */
static bool call_read(struct reading *reading, const struct slice *raws, struct route *route)
{
    struct arena *arena = &reading->api->arena;
    struct slice one;
    bool fits;
    int status;
    route->operation = raw_string(arena, raws[DYNAMODB]);
    route->request = raw_string(arena, raws[REQUEST]);
    route->response = raw_string(arena, raws[RESPONSE]);
    route->responses = raws[RESPONSES];
    route->status = 200;
    if (raws[PAYLOAD].data)
        return wrong(reading, "the route '%.*s' calls no function, so it has no payload", SHOWN(route->key));
    if (!api_operation_find(route->operation))
        return wrong(reading, "the route '%.*s' names no operation of DynamoDB's: '%.*s'", SHOWN(route->key),
                     SHOWN(route->operation));
    if ((raws[REQUEST].data && !route->request.data) || (raws[RESPONSE].data && !route->response.data))
        return wrong(reading, "request and response of the route '%.*s' should be texts", SHOWN(route->key));
    if (!status_read(raws[STATUS], &route->status))
        return wrong(reading, "status of the route '%.*s' should be a number from 200 to 599", SHOWN(route->key));
    if (raws[RESPONSES].data && raw_kind(raws[RESPONSES]) != JSON_ARRAY)
        return wrong(reading, "responses of the route '%.*s' should be a list", SHOWN(route->key));
    raw_each(arena, raws[RESPONSES], &one)
        if (!mapping_pattern_fits(raw_string(arena, raw_member(arena, one, "pattern")), 200, &fits) ||
            !status_read(raw_member(arena, one, "status"), &status))
            return wrong(reading,
                         "each of the responses of the route '%.*s' should have a pattern, like 4\\d{2}, and a status",
                         SHOWN(route->key));
    return true;
}

static bool route_read(struct reading *reading, struct slice key, struct slice value)
{
    struct api *api = reading->api;
    struct arena *arena = &api->arena;
    struct route *route = &api->routes[api->count];
    struct slice raws[ROUTE_MEMBERS], name, member;
    *route = (struct route){0};
    if (!key_read(reading, key, route)) return false;
    if (raw_kind(value) != JSON_OBJECT) return wrong(reading, "the route '%.*s' is no object", SHOWN(key));
    raw_each_member(arena, value, &name, &member)
    {
        bool is_known = false;
        for (size_t i = 0; i < ROUTE_MEMBERS; i++)
            is_known = is_known || slice_equal(name, slice_of(route_members[i]));
        if (!is_known)
            return wrong(reading, "the route '%.*s' has a member '%.*s', which none has", SHOWN(key), SHOWN(name));
    }
    raw_pick(arena, value, route_members, raws, ROUTE_MEMBERS);
    if (raws[FUNCTION].data && raws[DYNAMODB].data)
        return wrong(reading, "the route '%.*s' has a function and dynamodb: one of them will do", SHOWN(key));
    if (!(raws[DYNAMODB].data ? call_read : function_read)(reading, raws, route)) return false;
    struct slice auth = raws[AUTH].data ? raw_string(arena, raws[AUTH]) : SLICE("NONE");
    route->is_signed = slice_equal(auth, SLICE("AWS_IAM"));
    if (!route->is_signed && !slice_equal(auth, SLICE("NONE")))
        return wrong(reading, "auth of the route '%.*s' should be NONE or AWS_IAM", SHOWN(key));
    for (uint32_t i = 0; i < api->count; i++)
        if (routes_are_alike(&api->routes[i], route))
            return wrong(reading, "the routes '%.*s' and '%.*s' are for the same requests",
                         SHOWN(api->routes[i].key), SHOWN(key));
    api->count++;
    return true;
}

/* ---- definitions ---- */

static bool texts_are_lines(struct arena *arena, struct slice list)
{
    struct slice one;
    raw_each(arena, list, &one)
    {
        struct slice text = raw_string(arena, one);
        for (size_t i = 0; i < text.len; i++)
            if ((unsigned char)text.data[i] <= ' ' || (unsigned char)text.data[i] >= 0x7f) return false;
        if (!text.len) return false;
    }
    return true;
}

/* Its words become lines of replies. */
static bool cors_read(struct reading *reading, struct slice cors)
{
    static const char *const lists[] = {"AllowOrigins", "AllowMethods", "AllowHeaders", "ExposeHeaders"};
    struct slice name, value;
    if (raw_kind(cors) != JSON_OBJECT) return wrong(reading, "cors should be an object, as Lambda's Cors is");
    raw_each_member(&reading->api->arena, cors, &name, &value)
    {
        bool fits = slice_equal(name, SLICE("AllowCredentials"))
                        ? raw_kind(value) == JSON_TRUE || raw_kind(value) == JSON_FALSE
                    : slice_equal(name, SLICE("MaxAge")) ? raw_kind(value) == JSON_NUMBER
                                                         : false;
        for (size_t i = 0; i < 4 && !fits; i++)
            fits = slice_equal(name, slice_of(lists[i])) && raw_kind(value) == JSON_ARRAY &&
                   texts_are_lines(&reading->api->arena, value);
        if (!fits) return wrong(reading, "cors has a wrong member: %.*s", SHOWN(name));
    }
    reading->api->cors = cors;
    return true;
}

static bool stage_read(struct reading *reading, struct slice stage)
{
    reading->api->stage = raw_string(&reading->api->arena, stage);
    struct slice text = reading->api->stage;
    for (size_t i = 0; i < text.len; i++)
        if (strchr("/?#% ", text.data[i]) || (unsigned char)text.data[i] < ' ') text.len = 0;
    return text.len || wrong(reading, "stage should be a word, which paths begin with, or $default");
}

static bool variables_read(struct reading *reading, struct slice variables)
{
    struct slice value;
    if (raw_kind(variables) != JSON_OBJECT) return wrong(reading, "stageVariables should be an object of texts");
    raw_each_member(&reading->api->arena, variables, NULL, &value)
        if (raw_kind(value) != JSON_STRING) return wrong(reading, "stageVariables should be an object of texts");
    reading->api->variables = variables;
    return true;
}

static bool routes_read(struct reading *reading, struct slice routes)
{
    struct api *api = reading->api;
    struct slice name, value;
    size_t count = raw_kind(routes) == JSON_OBJECT ? raw_count(&api->arena, routes) : 0;
    if (raw_kind(routes) != JSON_OBJECT) return wrong(reading, "routes should be an object: {\"GET /\":{...}}");
    if (count > LIMIT_ROUTES) return wrong(reading, "an API has %d routes at most", LIMIT_ROUTES);
    api->routes = arena_array(&api->arena, struct route, count);
    raw_each_member(&api->arena, routes, &name, &value)
        if (!route_read(reading, arena_copy(&api->arena, name), value)) return false;
    return true;
}

struct api *api_read(struct slice name, struct slice definition, char *error, size_t error_len)
{
    struct api *api = must_zero(1, sizeof *api);
    struct reading reading = {api, error, error_len};
    struct slice member, value;
    bool fine = true;
    atomic_init(&api->references, 1);
    api->name = arena_copy(&api->arena, name);
    api->definition = definition = arena_copy(&api->arena, definition);
    api->stage = SLICE("$default");
    if (!raw_is_json(&api->arena, definition) || raw_kind(definition) != JSON_OBJECT)
        fine = wrong(&reading, "the definition should be a JSON object: {\"routes\":{...}}");
    else if (definition.len > LIMIT_API_BYTES)
        fine = wrong(&reading, "the definition has more than %d bytes", LIMIT_API_BYTES);
    else
        raw_each_member(&api->arena, definition, &member, &value)
        {
            if (slice_equal(member, SLICE("routes"))) fine = fine && routes_read(&reading, value);
            else if (slice_equal(member, SLICE("cors"))) fine = fine && cors_read(&reading, value);
            else if (slice_equal(member, SLICE("stage"))) fine = fine && stage_read(&reading, value);
            else if (slice_equal(member, SLICE("stageVariables"))) fine = fine && variables_read(&reading, value);
            else fine = fine && wrong(&reading, "a definition has routes, cors, stage and stageVariables, no '%.*s'",
                                      SHOWN(member));
        }
    if (fine) return api;
    api_release(api);
    return NULL;
}

struct api *api_keep(struct api *api)
{
    atomic_fetch_add_explicit(&api->references, 1, memory_order_relaxed);
    return api;
}

void api_release(struct api *api)
{
    if (!api || atomic_fetch_sub_explicit(&api->references, 1, memory_order_acq_rel) != 1) return;
    arena_free(&api->arena);
    free(api);
}

/* ---- matching ---- */

/* 3: a segment as it stands, 2: a {name}, 1: {name+}, 0: no more. */
static int rank_of(struct slice *path)
{
    if (!path->len) return 0;
    struct slice segment = slice_cut(path, '/');
    return is_greedy(segment) ? 1 : is_parameter(segment) ? 2 : 3;
}

static bool is_more_specific(const struct route *route, const struct route *than)
{
    struct slice first = trimmed(route->path), second = trimmed(than->path);
    if (!than->method.len || !route->method.len) return route->method.len != 0;
    while (first.len || second.len) {
        int one = rank_of(&first), other = rank_of(&second);
        if (one != other) return one > other;
    }
    return slice_equal(than->method, SLICE("ANY")) && !slice_equal(route->method, SLICE("ANY"));
}

static bool route_takes(const struct route *route, struct slice method, struct slice path)
{
    if (!route->method.len) return true; /* $default */
    if (!slice_equal(route->method, SLICE("ANY")) && !slice_equal(route->method, method)) return false;
    struct slice pattern = trimmed(route->path), rest = trimmed(path);
    while (pattern.len && rest.len) {
        struct slice wanted = slice_cut(&pattern, '/');
        if (is_greedy(wanted)) return true;
        struct slice found = slice_cut(&rest, '/');
        if (!is_parameter(wanted) ? !slice_equal(wanted, found) : !found.len) return false;
    }
    return !pattern.len && !rest.len;
}

const struct route *api_route(const struct api *api, struct slice method, struct slice path)
{
    const struct route *best = NULL;
    for (uint32_t i = 0; i < api->count; i++)
        if (route_takes(&api->routes[i], method, path) && (!best || is_more_specific(&api->routes[i], best)))
            best = &api->routes[i];
    return best;
}

struct slice route_parameters(const struct route *route, struct slice path, struct arena *arena)
{
    struct buf out = {0};
    struct slice pattern = trimmed(route->path), rest = trimmed(path), value;
    while (pattern.len) {
        struct slice wanted = slice_cut(&pattern, '/');
        struct slice found = is_greedy(wanted) ? rest : slice_cut(&rest, '/');
        if (!is_parameter(wanted)) continue;
        if (!rest_decode(arena, found, &value)) value = utf8_valid(found) ? found : SLICE("");
        buf_byte(&out, out.len ? ',' : '{');
        json_put_string(&out, parameter_name(wanted));
        buf_byte(&out, ':');
        json_put_string(&out, value);
    }
    if (out.len) buf_byte(&out, '}');
    return arena_take(arena, &out);
}
