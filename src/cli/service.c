/* Calling a server's REST doors. A key that means nothing is good enough for a server that asks for none, as
 * with the other commands. */
#include "cli/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define DEFAULT_SERVER "http://127.0.0.1:8000"
#define DEFAULT_REGION "us-east-1"
#define HEADERS        8
#define PAGES_MAX      10000
#define LIST_FIRST     64

/* ---- opening ---- */

/* http://host:port/path, without slashes at its end. */
static bool url_split(struct service *service)
{
    struct slice url = slice_of(service->where);
    size_t scheme = slice_starts(url, SLICE("http://")) ? 7 : slice_starts(url, SLICE("https://")) ? 8 : 0;
    if (!scheme) return false;
    while (url.len > scheme && url.data[url.len - 1] == '/') url.len--;
    service->base = url;
    service->host = slice_from(url, scheme);
    const char *slash = service->host.len ? memchr(service->host.data, '/', service->host.len) : NULL;
    if (slash) {
        service->path = slice_from(service->host, (size_t)(slash - service->host.data));
        service->host.len = (size_t)(slash - service->host.data);
    }
    return service->host.len > 0;
}

static bool keys_find(struct service *service, const struct arguments *arguments, char *error,
                      size_t error_len)
{
    const struct credentials_wanted wanted = {.region = argument_text(arguments, "region"),
                                              .profile = argument_text(arguments, "profile")};
    if (!credentials_find(&wanted, getenv, &service->arena, &service->keys, error, error_len)) return false;
    service->region = service->keys.region.len ? service->keys.region : SLICE(DEFAULT_REGION);
    if (!service->keys.access_key.len) service->keys.access_key = service->keys.secret_key = SLICE("local");
    return true;
}

bool service_open(struct service *out, const struct arguments *arguments)
{
    char error[512] = "";
    const char *on = argument_text(arguments, "on");
    *out = (struct service){.where = on ? on : DEFAULT_SERVER, .is_default = !on};
    if (!url_split(out))
        return complain(
                   "functions run in a server: --on should be the URL of a running 'quipu serve', not '%s'",
                   out->where),
               false;
    if (slice_contains(out->host, SLICE(".amazonaws.com")))
        return complain("%s is Amazon's: start 'quipu serve --on %s' and name that server's URL", out->where,
                        out->where),
               false;
    bool fine = keys_find(out, arguments, error, sizeof error);
    if (fine) out->client = client_open(&(struct client_options){0}, error, sizeof error);
    if (!out->client) {
        complain("%s", error);
        arena_free(&out->arena);
    }
    return out->client != NULL;
}

void service_close(struct service *service)
{
    client_close(service->client);
    arena_free(&service->arena);
}

/* ---- texts ---- */

void put_escaped(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        (c && strchr("-._~", c));
        if (is_plain)
            buf_byte(out, c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

static const char *escaped(struct arena *arena, const char *text)
{
    struct buf out = {0};
    put_escaped(&out, slice_of(text));
    struct slice copy = arena_printf(arena, "%.*s", SLICE_ARG(buf_view(&out)));
    buf_free(&out);
    return copy.data;
}

const char *path_of(struct arena *arena, const char *format, const char *first, const char *second)
{
    struct buf out = {0};
    const char *names[] = {first, second ? second : ""};
    for (size_t nth = 0; *format; format++) {
        if (format[0] == '%' && format[1] == 's') {
            buf_slice(&out, slice_of(escaped(arena, names[nth++ % 2])));
            format++;
        } else {
            buf_byte(&out, (unsigned char)*format);
        }
    }
    const char *path = arena_printf(arena, "%.*s", SLICE_ARG(buf_view(&out))).data;
    buf_free(&out);
    return path;
}

/* ---- calling ---- */

struct request request_to(const char *service, const char *method, const char *path, const struct buf *body)
{
    return (struct request){
        .name = service, .method = method, .path = path, .body = body ? buf_view(body) : SLICE_NONE};
}

/* The value of a ready header line, where it is this one. */
static struct slice header_value(const char *line, const char *start)
{
    return line && strncmp(line, start, strlen(start)) == 0 ? slice_of(line + strlen(start)) : SLICE_NONE;
}

static const char **headers_make(const struct service *service, struct arena *arena,
                                 const struct request *request)
{
    const char **headers = arena_array(arena, const char *, HEADERS + 1);
    struct slice type = request->body.len ? SLICE("application/json") : SLICE("");
    char date[SIGNED_DATE_BYTES];
    struct buf signature = {0};
    unsigned count = 0;
    signature_make(
        &(struct signed_request){
            .credentials = &service->keys,
            .method = slice_of(request->method),
            .service = slice_of(request->name),
            .region = service->region,
            .host = service->host,
            .path = arena_printf(arena, "%.*s%s", SLICE_ARG(service->path), request->path),
            .query = slice_of(request->query ? request->query : ""),
            .content_type = type,
            .invocation_type = header_value(request->header, "X-Amz-Invocation-Type: "),
            .log_type = header_value(request->header2, "X-Amz-Log-Type: "),
            .body = request->body,
            .time_s = clock_now_ms(&clock_system) / 1000},
        date, &signature);
    headers[count++] = arena_printf(arena, "Host: %.*s", SLICE_ARG(service->host)).data;
    if (type.len) headers[count++] = "Content-Type: application/json";
    headers[count++] = arena_printf(arena, "X-Amz-Date: %s", date).data;
    if (service->keys.session_token.len)
        headers[count++] =
            arena_printf(arena, "X-Amz-Security-Token: %.*s", SLICE_ARG(service->keys.session_token)).data;
    headers[count++] = arena_printf(arena, "Authorization: %.*s", SLICE_ARG(buf_view(&signature))).data;
    if (request->header) headers[count++] = request->header;
    if (request->header2) headers[count++] = request->header2;
    headers[count] = NULL;
    buf_free(&signature);
    return headers;
}

static void header_take(struct client_call *call, struct slice name, struct slice value)
{
    struct response *response = call->context;
    value = arena_printf(call->arena, "%.*s", SLICE_ARG(value));
    if (slice_equal_ignoring_case(name, SLICE("X-Amz-Function-Error"))) response->function_error = value;
    if (slice_equal_ignoring_case(name, SLICE("X-Amz-Log-Result"))) response->log_tail = value;
    if (slice_equal_ignoring_case(name, SLICE("Quipu-Log-Position"))) response->position = value;
    if (slice_equal_ignoring_case(name, SLICE("ETag"))) response->etag = value;
    if (slice_equal_ignoring_case(name, SLICE("X-Amzn-ErrorType"))) response->error = value.data;
}

static const char *text_in(struct arena *arena, struct slice text)
{
    return arena_printf(arena, "%.*s", SLICE_ARG(text)).data;
}

/* The exception's short name, and what it says. */
static void error_find(struct response *response, struct arena *arena)
{
    struct slice message = node_text(response->json, "Message"), type = node_text(response->json, "__type");
    if (!message.len) message = node_text(response->json, "message");
    if (!response->error) {
        const char *hash = type.len ? memrchr(type.data, '#', type.len) : NULL;
        if (hash) type = slice_from(type, (size_t)(hash + 1 - type.data));
        response->error =
            type.len ? text_in(arena, type)
                     : arena_printf(arena, "the server answered with status %d", response->status).data;
    }
    const char *colon = strchr(response->error, ':'); /* some append where to read more */
    if (colon)
        response->error = text_in(arena, (struct slice){response->error, (size_t)(colon - response->error)});
    response->message = text_in(arena, message);
}

struct client_call service_sign(struct service *service, struct arena *arena, const struct request *request)
{
    bool has_query = request->query && *request->query;
    return (struct client_call){.method = request->method,
                                .url = arena_printf(arena, "%.*s%s%s%s", SLICE_ARG(service->base), request->path,
                                                    has_query ? "?" : "", has_query ? request->query : "")
                                           .data,
                                .headers = headers_make(service, arena, request),
                                .body = request->body,
                                .total_ms = request->total_ms,
                                .arena = arena};
}

void response_read(struct response *out, struct arena *arena, const struct client_call *call)
{
    const char *fault;
    out->status = call->status;
    out->body = arena_copy(arena, buf_view(call->reply));
    if (call->end != CLIENT_ANSWERED) return;
    out->json = out->body.len ? node_parse(arena, out->body, &fault) : NULL;
    if (out->status >= 300)
        error_find(out, arena);
    else
        out->error = NULL;
}

bool service_try(struct service *service, struct arena *arena, const struct request *request, struct response *out,
                 struct slice *failure)
{
    struct buf reply = {0};
    struct client_call call = service_sign(service, arena, request);
    *out = (struct response){.message = ""};
    call.reply = &reply;
    call.header = header_take;
    call.context = out;
    client_call(service->client, &call);
    response_read(out, arena, &call);
    *failure = call.failure;
    buf_free(&reply);
    return call.end == CLIENT_ANSWERED;
}

bool service_ask(struct service *service, struct arena *arena, const struct request *request, struct response *out)
{
    struct slice failure;
    if (service_try(service, arena, request, out, &failure)) return true;
    complain("nobody answers on %s: %.*s\n%s", service->where, SLICE_ARG(failure),
             service->is_default
                 ? "Start a server with 'quipu serve', or say where it is: --on URL"
                 : "That is what --on or $QUIPU_ON says. Is it right, and does a server run there?");
    return false;
}

int service_complain(const struct response *response)
{
    if (*response->message) return complain("%s", response->message);
    return complain("%s", response->error);
}

bool service_call(struct service *service, struct arena *arena, const struct request *request,
                  struct response *out)
{
    if (!service_ask(service, arena, request, out)) return false;
    if (out->error) service_complain(out);
    return !out->error;
}

bool service_lacks_function(struct service *service, struct arena *arena, const char *function)
{
    struct response response;
    struct request request = {.name = "lambda",
                              .method = "GET",
                              .path = path_of(arena, "/2015-03-31/functions/%s", function, NULL)};
    return service_ask(service, arena, &request, &response) && response.status == 404;
}

int service_remove_words(const struct arguments *arguments, const char *name, const char *format)
{
    struct service service;
    struct arena arena = {0};
    struct response response;
    bool fine = true;
    if (!service_open(&service, arguments)) return EXIT_FAULT;
    for (size_t i = 0; fine && i < argument_words(arguments); i++) {
        const char *path = path_of(&arena, format, argument_word(arguments, i), NULL);
        struct request request = request_to(name, "DELETE", path, NULL);
        fine = service_call(&service, &arena, &request, &response);
    }
    arena_free(&arena);
    service_close(&service);
    return fine ? EXIT_FINE : EXIT_FAULT;
}

bool response_is(const struct response *response, const char *error)
{
    return response->error && strcmp(response->error, error) == 0;
}

/* ---- lists ---- */

const struct node **service_list(struct service *service, struct arena *arena, struct request request,
                                 const char *member, const char *marker, const char *next, size_t *count)
{
    size_t room = LIST_FIRST;
    const struct node **all = arena_array(arena, const struct node *, room);
    const char *query = request.query ? request.query : "";
    *count = 0;
    for (int page = 0; page < PAGES_MAX; page++) {
        struct response response;
        if (!service_call(service, arena, &request, &response)) return NULL;
        const struct node *list = node_member(response.json, member);
        for (const struct node *one = list ? list->first : NULL; one; one = one->next) {
            if (*count == room) {
                const struct node **larger = arena_array(arena, const struct node *, room * 2);
                memcpy(larger, all, room * sizeof *all);
                all = larger;
                room *= 2;
            }
            all[(*count)++] = one;
        }
        struct slice token = node_text(response.json, next);
        if (!token.len) return all;
        /* `marker` comes after all other names that are used here. */
        request.query = arena_printf(arena, "%s%s%s=%s", query, *query ? "&" : "", marker,
                                     escaped(arena, text_in(arena, token)))
                            .data;
    }
    complain("the list has no end");
    return NULL;
}
