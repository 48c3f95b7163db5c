/* /v1/routes: where APIs are defined.
 *
 *   GET /v1/routes                       all APIs
 *   GET, PUT, DELETE /v1/routes/API      one of them, whole: {"routes":{"GET /counter":{"function":"count"}}}
 *   GET, PUT, DELETE /v1/routes/API/KEY  one route, {"function":"count"}; KEY is "GET /counter", percent-encoded
 *
 * A change is checked as a whole, by what the definition would be with it (api.c). */
#include <stdio.h>

#include "base/compose.h"
#include "base/json.h"
#include "base/raw.h"
#include "gateway/internal.h"

struct editing {
    struct gateway *gateway;
    struct rest_call *call;
    struct slice name, key; /* of the API, of the route; empty: all of it */
    bool deletes, is_new;
};

static bool refuse(struct rest_call *call, int status, const char *error, struct slice message)
{
    call->reply->len = 0;
    compose(call->reply, "{'error':%s,'message':%s}", slice_of(error), message);
    call->status = status;
    call->done(call);
    return false;
}

static bool refuse_missing(struct rest_call *call, struct slice key)
{
    return refuse(call, 404, "not-found", key.len ? SLICE("There is no such route") : SLICE("There is no such API"));
}

/* ---- what is shown ---- */

static void put_api(struct buf *out, struct rest_call *call, struct slice name, struct slice definition)
{
    struct slice member, value, host = call->header(call, SLICE("Host"));
    compose(out, "%,{'api':%s,'url':%s", name,
            arena_printf(call->arena, "http%s://%.*s/_api/%.*s/", call->is_secure ? "s" : "", SLICE_ARG(host),
                         SLICE_ARG(name)));
    raw_each_member(call->arena, definition, &member, &value) compose(out, ",%s:%A", member, value);
    buf_byte(out, '}');
}

static struct slice route_in(struct arena *arena, struct slice definition, struct slice key)
{
    struct slice name, value;
    raw_each_member(arena, raw_member(arena, definition, "routes"), &name, &value)
        if (slice_equal(name, key)) return value;
    return SLICE_NONE;
}

static void show(struct editing *editing, int status)
{
    struct rest_call *call = editing->call;
    struct slice definition;
    int64_t version;
    if (!apis_read(editing->gateway, editing->name, call->arena, &definition, &version)) {
        refuse(call, 503, "unavailable", SLICE("The table of routes cannot be used now; see the server's log"));
        return;
    }
    struct slice shown = editing->key.len ? route_in(call->arena, definition, editing->key) : definition;
    if (!shown.data) {
        refuse_missing(call, editing->key);
        return;
    }
    if (editing->key.len)
        buf_slice(call->reply, shown);
    else
        put_api(call->reply, call, editing->name, definition);
    call->status = status;
    call->done(call);
}

static void list_one(void *context, struct slice name, struct slice definition)
{
    struct rest_call *call = context;
    put_api(call->reply, call, name, definition);
}

static void list(void *room, struct rest_call *call)
{
    compose(call->reply, "{'apis':[");
    if (!apis_list(room, call->arena, list_one, call)) {
        refuse(call, 503, "unavailable", SLICE("The table of routes cannot be used now; see the server's log"));
        return;
    }
    buf_text(call->reply, "]}");
    call->status = 200;
    call->done(call);
}

/* ---- changes ---- */

/* The definition with another value for the route; SLICE_NONE takes it away. */
static struct slice with_route(struct arena *arena, struct slice definition, struct slice key, struct slice route)
{
    struct buf out = {0};
    struct slice name, value;
    buf_text(&out, "{\"routes\":{");
    raw_each_member(arena, raw_member(arena, definition, "routes"), &name, &value)
        if (!slice_equal(name, key)) compose(&out, "%,%s:%A", name, value);
    if (route.data) compose(&out, "%,%s:%A", key, route);
    buf_byte(&out, '}');
    raw_each_member(arena, definition, &name, &value)
        if (!slice_equal(name, SLICE("routes"))) compose(&out, ",%s:%A", name, value);
    buf_byte(&out, '}');
    return arena_take(arena, &out);
}

/* What a GET has told besides may be sent back. */
static struct slice without_shown(struct arena *arena, struct slice body)
{
    struct buf out = {0};
    struct slice name, value;
    buf_byte(&out, '{');
    raw_each_member(arena, body, &name, &value)
        if (!slice_equal(name, SLICE("api")) && !slice_equal(name, SLICE("url"))) compose(&out, "%,%s:%A", name, value);
    buf_byte(&out, '}');
    return arena_take(arena, &out);
}

static bool edit(void *context, struct slice before, struct arena *arena, struct slice *after)
{
    struct editing *editing = context;
    struct rest_call *call = editing->call;
    char error[500];
    editing->is_new = editing->key.len ? !route_in(arena, before, editing->key).data : !before.data;
    if (editing->deletes) {
        if (editing->is_new) return refuse_missing(call, editing->key);
        *after = editing->key.len ? with_route(arena, before, editing->key, SLICE_NONE) : SLICE_NONE;
        return true;
    }
    if (!raw_is_json(arena, call->body) || raw_kind(call->body) != JSON_OBJECT)
        return refuse(call, 400, "invalid", SLICE("The body should be a JSON object"));
    *after = editing->key.len ? with_route(arena, before.data ? before : SLICE("{}"), editing->key, call->body)
                              : without_shown(arena, call->body);
    struct api *api = api_read(editing->name, *after, error, sizeof error);
    api_release(api);
    return api || refuse(call, 400, "invalid", slice_of(error));
}

static void change(struct editing *editing)
{
    struct rest_call *call = editing->call;
    switch (apis_change(editing->gateway, editing->name, edit, editing)) {
    case STORED_ANSWERED: return;
    case STORED_FINE:
        if (!editing->deletes) {
            show(editing, editing->is_new ? 201 : 200);
            return;
        }
        call->status = 204;
        call->done(call);
        return;
    default: refuse(call, 503, "unavailable", SLICE("The routes cannot be changed now; try again"));
    }
}

static void serve_one(void *room, struct rest_call *call)
{
    struct editing editing = {.gateway = room,
                              .call = call,
                              .name = call->parameters[0],
                              .key = call->parameters[1],
                              .deletes = slice_equal(call->method, SLICE("DELETE"))};
    if (!api_name_is_valid(editing.name))
        refuse(call, 400, "invalid", SLICE("The name of an API is 1 to 63 small letters, digits and inner hyphens"));
    else if (slice_equal(call->method, SLICE("GET")))
        show(&editing, 200);
    else
        change(&editing);
}

/* ---- paths ---- */

#define ON_WORKER(name)                                                                                      \
    static void name##_on_worker(void *room, struct rest_call *call)                                         \
    {                                                                                                        \
        rest_workers_run(((struct gateway *)room)->workers, name, room, call);                               \
    }
ON_WORKER(list)
ON_WORKER(serve_one)

static const struct rest_route rows[] = {
    {"GET", "/v1/routes", list_on_worker},
    {"GET", "/v1/routes/{api}", serve_one_on_worker},
    {"PUT", "/v1/routes/{api}", serve_one_on_worker},
    {"DELETE", "/v1/routes/{api}", serve_one_on_worker},
    {"GET", "/v1/routes/{api}/{route}", serve_one_on_worker},
    {"PUT", "/v1/routes/{api}/{route}", serve_one_on_worker},
    {"DELETE", "/v1/routes/{api}/{route}", serve_one_on_worker},
};

bool gateway_serve_routes(struct gateway *gateway, struct rest_call *call)
{
    const struct rest_route *row;
    switch (rest_route(rows, sizeof rows / sizeof *rows, call, &row)) {
    case REST_NOWHERE: return false;
    case REST_OTHER_METHOD: refuse(call, 405, "method", SLICE("This method is not for this path")); return true;
    case REST_FOUND: row->serve(gateway, call);
    }
    return true;
}
