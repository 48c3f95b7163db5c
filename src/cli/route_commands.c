/* quipu route: paths of APIs to functions. */
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "cli/input.h"
#include "cli/listing.h"
#include "cli/service.h"

#define API_DEFAULT "api"

static const char *api_of(const struct arguments *arguments)
{
    const char *api = argument_text(arguments, "api");
    return api ? api : API_DEFAULT;
}

/* ---- adding ---- */

static bool put_route(struct buf *out, const struct arguments *arguments)
{
    const char *auth = argument_text(arguments, "auth"), *payload = argument_text(arguments, "payload");
    if (auth && strcmp(auth, "none") != 0 && strcmp(auth, "iam") != 0)
        return complain_of_usage(arguments, "--auth should be none or iam, not '%s'", auth), false;
    if (payload && strcmp(payload, "1.0") != 0 && strcmp(payload, "2.0") != 0)
        return complain_of_usage(arguments, "--payload should be 1.0 or 2.0, not '%s'", payload), false;
    buf_byte(out, '{');
    put_string_member(out, "function", slice_of(argument_word(arguments, 1)));
    if (payload) put_string_member(out, "payload", slice_of(payload));
    if (auth && strcmp(auth, "iam") == 0) put_string_member(out, "auth", SLICE("AWS_IAM"));
    buf_byte(out, '}');
    return true;
}

static int add(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    struct buf body = {0};
    struct response response;
    bool fine = put_route(&body, arguments);
    if (!fine) {
        buf_free(&body);
        return EXIT_USAGE;
    }
    fine = service_open(&service, arguments);
    if (fine) {
        const char *path = path_of(&arena, "/v1/routes/%s/%s", api_of(arguments), argument_word(arguments, 0));
        struct request request = request_to("quipu", "PUT", path, &body);
        fine = service_call(&service, &arena, &request, &response);
        if (fine) printf("%.*s/_api/%s/\n", SLICE_ARG(service.base), api_of(arguments));
        service_close(&service);
    }
    buf_free(&body);
    arena_free(&arena);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* Replaces an API by what a file says. */
static int put(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    struct buf body = {0};
    struct response response;
    bool fine = input_take(argument_word(arguments, 1), LIMIT_API_BYTES, &body) && service_open(&service, arguments);
    if (fine) {
        struct request request = request_to("quipu", "PUT",
                                            path_of(&arena, "/v1/routes/%s", argument_word(arguments, 0), NULL), &body);
        fine = service_call(&service, &arena, &request, &response);
        if (fine) printf("%.*s/_api/%s/\n", SLICE_ARG(service.base), argument_word(arguments, 0));
        service_close(&service);
    }
    buf_free(&body);
    arena_free(&arena);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- listing ---- */

static void list_api(struct listing *listing, struct arena *arena, const struct node *api)
{
    const struct node *routes = node_member(api, "routes");
    for (const struct node *route = routes ? routes->first : NULL; route; route = route->next) {
        struct buf json = {0};
        buf_byte(&json, '{');
        put_string_member(&json, "api", node_text(api, "api"));
        put_string_member(&json, "route", route->name);
        if (route->source.len > 2) {
            buf_byte(&json, ',');
            buf_put(&json, route->source.data + 1, route->source.len - 1);
        } else {
            buf_byte(&json, '}');
        }
        struct slice *row = listing_row(listing, arena_take(arena, &json));
        if (!row) continue;
        struct slice operation = node_text(route, "dynamodb"), payload = node_text(route, "payload");
        row[0] = node_text(api, "api");
        row[1] = route->name;
        row[2] = operation.len ? arena_printf(arena, "DynamoDB %.*s", SLICE_ARG(operation))
                               : node_text(route, "function");
        row[3] = operation.len ? SLICE("-") : payload.len ? payload : SLICE("2.0");
        row[4] = node_text(api, "url");
    }
}

static int list(const struct arguments *arguments)
{
    static const char *const head[] = {"API", "ROUTE", "TO", "PAYLOAD", "URL"};
    struct service service;
    struct arena arena = {0};
    struct response response;
    struct listing listing;
    const char *only = argument_text(arguments, "api");
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    struct request request = request_to("quipu", "GET", "/v1/routes", NULL);
    bool fine = service_call(&service, &arena, &request, &response);
    if (fine) {
        const struct node *apis = node_member(response.json, "apis");
        listing_begin(&listing, form_listed(arguments), head, sizeof head / sizeof *head);
        for (const struct node *api = apis ? apis->first : NULL; api; api = api->next)
            if (!only || slice_equal(node_text(api, "api"), slice_of(only))) list_api(&listing, &arena, api);
        listing_end(&listing, "routes");
    }
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- removing ---- */

static int remove_routes(const struct arguments *arguments)
{
    struct service service;
    struct arena arena = {0};
    struct response response;
    bool all = argument_given(arguments, "all"), fine = true;
    if (!all == !argument_words(arguments))
        return complain_of_usage(arguments, "say which routes, or --all for the whole API");
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    for (size_t i = 0; fine && i < (all ? 1 : argument_words(arguments)); i++) {
        const char *path = all ? path_of(&arena, "/v1/routes/%s", api_of(arguments), NULL)
                               : path_of(&arena, "/v1/routes/%s/%s", api_of(arguments), argument_word(arguments, i));
        struct request request = request_to("quipu", "DELETE", path, NULL);
        fine = service_call(&service, &arena, &request, &response);
    }
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

/* ---- the rows ---- */

#define API_FLAG {"api", "NAME", "of which API (default: api)"}
static const struct flag add_flags[] = {
    API_FLAG,
    {"payload", "1.0|2.0", "the form of the event (default: 2.0)"},
    {"auth", "none|iam", "who may call: everybody, or who signs with a key of the server's (default: none)"},
};
static const struct flag list_flags[] = {{"api", "NAME", "of this API only"}, LIST_FLAGS};
static const struct flag rm_flags[] = {API_FLAG, {"all", NULL, "the whole API"}};

static const struct command children[] = {
    {.name = "add",
     .summary = "lead a path to a function",
     .usage = "'METHOD PATH' FUNCTION [flags]",
     .about = "Leads the requests of a method and a path to a function, and prints where the API answers. {name}\n"
              "takes one segment of a path, {name+} all that is left; ANY is every method, $default what no other\n"
              "route takes. The most specific route counts.",
     FLAGS(add_flags),
     .examples = "  quipu route add 'GET /counter' count\n"
                 "  quipu route add 'ANY /{proxy+}' app --payload 1.0\n"
                 "  quipu route add '$default' wall --api wall",
     .works_on_server = true,
     .words_min = 2,
     .words_max = 2,
     .run = add},
    {.name = "put",
     .summary = "define a whole API",
     .usage = "API JSON|@FILE|-",
     .about = "Replaces an API by a definition: {\"routes\":{\"GET /counter\":{\"function\":\"count\"}},\n"
              "\"cors\":{\"AllowOrigins\":[\"*\"]},\"stage\":\"$default\",\"stageVariables\":{}}.",
     .works_on_server = true,
     .words_min = 2,
     .words_max = 2,
     .run = put},
    {.name = "ls",
     .summary = "list the routes",
     .usage = "[flags]",
     .about = "Lists the routes of all APIs of a server.",
     FLAGS(list_flags),
     .works_on_server = true,
     .run = list},
    {.name = "rm",
     .summary = "remove routes",
     .usage = "'METHOD PATH'... | --all [flags]",
     .about = "Removes routes of an API, or all of it.",
     FLAGS(rm_flags),
     .works_on_server = true,
     .words_max = WORDS_MANY,
     .run = remove_routes},
};

const struct command command_route = {.name = "route",
                                      .summary = "lead paths of HTTP to functions",
                                      .usage = "add|put|ls|rm ...",
                                      .about = "Works on the APIs of a running server.",
                                      .children = children,
                                      .child_count = sizeof children / sizeof *children};
