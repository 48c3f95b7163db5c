/* From a request's path and headers to the one who answers it, and the reply's headers. */
#include "web/web.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/raw.h"
#include "console/console.h"
#include "func/func.h"
#include "gateway/gateway.h"
#include "pattern/pattern.h"
#include "rest/rest.h"
#include "web/hooks.h"
#include "web/internal.h"
#include "web/regions.h"

#define REQUEST_ID_LETTERS 52

static const struct slice json_type = SLICE("application/x-amz-json-1.0");
static const struct slice scaling_type = SLICE("application/x-amz-json-1.1");
static const struct slice scaling_target = SLICE("AnyScaleFrontendService.");
static const struct slice text_type = SLICE("text/plain; charset=utf-8");

/* A request to DynamoDB while it is under way; lives in the exchange's arena. */
struct web_call {
    struct dynamo_call call;
    struct http_exchange *exchange;
    struct web *web;
    struct net_task task; /* brings it back to its loop */
    struct slice content_type;
    unsigned number; /* of the operation */
};

static bool open_door(struct web *web, const struct web_options *options, char *error, size_t error_len)
{
    const char *const *origin = options->allow_origins, *const *host = options->allow_hosts;
    web->door = rest_door_new(options->host ? options->host : "127.0.0.1");
    for (; origin && *origin; origin++)
        if (!rest_door_allow_origin(web->door, *origin, error, error_len)) return false;
    for (; host && *host; host++)
        if (!rest_door_allow_host(web->door, *host, error, error_len)) return false;
    return true;
}

struct web *web_new(const struct web_options *options, char *error, size_t error_len)
{
    struct web *web = must_zero(1, sizeof *web);
    web->dynamo = options->dynamo;
    web->engine = options->engine;
    web->func = options->func;
    web->gateway = options->gateway;
    web->host = options->host ? options->host : "127.0.0.1";
    web->nodes = options->nodes && *options->nodes ? options->nodes : web->host;
    web->trigger = options->trigger;
    web->react = options->react;
    web->drive = options->drive;
    web->backup = options->backup;
    web->pattern = options->pattern;
    web->console = options->console;
    web->clock = options->clock;
    web->region = slice_of(options->region);
    web->prefix = slice_of(options->prefix ? options->prefix : "quipu-");
    web->started_ms = clock_now_ms(options->clock);
    web->operations = must_zero(api_operation_count(), sizeof *web->operations);
    web->loops = must_zero(options->threads, sizeof *web->loops);
    web->threads = options->threads;
    web->regions = options->regions;
    for (unsigned i = 0; i < options->threads; i++) {
        random_seed_from_system(&web->loops[i].random);
        if (options->regions)
            web->loops[i].region_turns = must_zero(LIMIT_REGION_DATABASES, sizeof(struct dynamo_turn));
    }
    if (options->hook_clock) {
        web->hooks = hooks_new(options->engine, options->api, options->hook_clock);
        web->workers = workers_new(1);
    }
    bool fine = open_door(web, options, error, error_len);
    if (fine && options->credentials) {
        web->keyring = keyring_read(options->credentials, error, error_len);
        fine = web->keyring != NULL;
    }
    if (fine) return web;
    web_free(web);
    return NULL;
}

void web_free(struct web *web)
{
    if (web->keyring) keyring_free(web->keyring);
    if (web->door) rest_door_free(web->door);
    workers_free(web->workers);
    if (web->hooks) hooks_free(web->hooks);
    free(web->operations);
    for (unsigned i = 0; i < web->threads; i++) free(web->loops[i].region_turns);
    free(web->loops);
    free(web);
}

int64_t web_clock_now(void *clock)
{
    struct web_clock *own = clock;
    int64_t frozen = atomic_load(&own->frozen_ms);
    return frozen ? frozen : clock_now_ms(&clock_system) + atomic_load(&own->offset_ms);
}

void web_set_server(struct web *web, struct net_server *server)
{
    web->server = server;
}

void web_start(struct web *web)
{
    struct console_source source = {
        .operations = web->operations, .count = web_count_for_console, .context = web};
    if (web->console) console_start(web->console, &source);
}

static struct web_loop *loop_of(struct web *web, struct net_loop *loop)
{
    return &web->loops[net_loop_index(loop)];
}

/* ---- replies ---- */

/* A letter of A to Z and 2 to 7 for five bits of each byte, eight at a time: every reply has such an id. */
static uint64_t eight_letters(uint64_t bits)
{
    const uint64_t ones = UINT64_MAX / 255;
    bits &= ones * 31;
    uint64_t is_digit = (bits + ones * (128 - 26)) >> 7 & ones;
    return bits + ones * 'A' - is_digit * ('A' + 26 - '2');
}

static void put_request_id(struct buf *out, struct random *random)
{
    uint64_t letters[(REQUEST_ID_LETTERS + 7) / 8];
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        letters[i] = eight_letters(random_next(random));
    buf_put(out, letters, REQUEST_ID_LETTERS);
}

struct rest_head web_head_of(const struct http_exchange *exchange)
{
    return (struct rest_head){.method = exchange->method_text,
                              .path = exchange->path,
                              .query = exchange->query,
                              .headers = exchange->headers,
                              .header_count = exchange->header_count};
}

/* The headers every reply carries; the checksum is of the body as it is sent, compressed or not. */
struct slice web_common_headers(struct web *web, struct http_exchange *exchange, bool is_whole,
                                struct slice request_id)
{
    struct rest_head head = web_head_of(exchange);
    struct slice origin = rest_door_origin(web->door, &head);
    size_t room = 540 + origin.len + request_id.len;
    struct buf out = {.data = arena_alloc(&exchange->arena, room), .cap = room};
    buf_text(&out, "Server: Quipu\r\nx-amzn-RequestId: ");
    if (request_id.len)
        buf_slice(&out, request_id);
    else
        put_request_id(&out, &loop_of(web, exchange->loop)->random);
    buf_text(&out, "\r\n");
    if (is_whole) {
        http_reply_pack(exchange);
        buf_text(&out, "x-amz-crc32: ");
        buf_decimal(&out, crc32(0, (const Bytef *)exchange->reply.data, (uInt)exchange->reply.len));
        buf_text(&out, "\r\n");
    }
    if (origin.len) {
        buf_text(&out, "Access-Control-Allow-Origin: ");
        buf_slice(&out, origin);
        buf_text(&out, "\r\nVary: Origin\r\n"
                       "Access-Control-Expose-Headers: x-amzn-RequestId, x-amz-crc32, x-amzn-ErrorType, "
                       "X-Amz-Function-Error, X-Amz-Executed-Version, X-Amz-Log-Result\r\n");
    }
    ensure(out.len < room);
    return buf_view(&out);
}

static void reply(struct web *web, struct http_exchange *exchange, int status, struct slice type)
{
    http_reply(exchange, status, type, web_common_headers(web, exchange, true, SLICE_NONE));
}

static void reply_error(struct web *web, struct http_exchange *exchange, struct slice type, const char *error,
                        struct slice message)
{
    web_count_error(web, error);
    reply(web, exchange, api_put_error(&exchange->reply, error, message), type);
}

/* A request to a service of AWS's that is not here; false: it is none. */
static bool serve_foreign(struct web *web, struct http_exchange *exchange)
{
    struct rest_head head = web_head_of(exchange);
    struct slice type, headers;
    if (!rest_foreign_put(&head, &exchange->arena, &exchange->reply, &type, &headers)) return false;
    web_count_error(web, "NotImplemented");
    struct slice common = web_common_headers(web, exchange, true, SLICE_NONE);
    headers = arena_printf(&exchange->arena, "%.*s%.*s", SLICE_ARG(common), SLICE_ARG(headers));
    http_reply(exchange, 400, type, headers);
    return true;
}

/* ---- DynamoDB's protocol ---- */

static void answer_call(struct web_call *call)
{
    struct http_exchange *exchange = call->exchange;
    histogram_add(&call->web->operations[call->number], (uint64_t)(monotonic_us() - exchange->began_us));
    if (call->call.error) web_count_error(call->web, call->call.error);
    if (!call->call.error && api_operation_is_silent(call->call.operation)) exchange->reply.len = 0;
    if (exchange->reply.len >= LIMIT_SPARE_BUFFER_BYTES) /* others are never withheld */
        exchange->has_acted = !call->call.error &&
                              !rest_operation_only_reads(api_operation_name(call->call.operation));
    reply(call->web, exchange, call->call.status, call->content_type);
}

static void finish_on_loop(struct net_task *task)
{
    struct web_call *call = (struct web_call *)((char *)task - offsetof(struct web_call, task));
    dynamo_finish(&call->call);
    answer_call(call);
}

/* On the writer's thread: back to the loop, which owns the exchange. */
static void call_done(struct dynamo_call *done)
{
    struct web_call *call = (struct web_call *)done;
    call->task.run = finish_on_loop;
    net_post(call->exchange->loop, &call->task);
}

/* "DynamoDB_20120810.PutItem" -> the operation and its number; NULL when there is none. Streams and auto scaling have
 * their own names, and only they. */
static const struct operation *operation_of(struct slice target, unsigned *number)
{
    struct slice streams = SLICE("DynamoDBStreams_20120810."), service = SLICE("DynamoDB_20120810.");
    bool of_streams = slice_starts(target, streams);
    if (slice_starts(target, scaling_target))
        return api_operation_search_scaling(slice_from(target, scaling_target.len), number)
                   ? api_operation_at(*number)
                   : NULL;
    if (of_streams) service = streams;
    if (!slice_starts(target, service) || !api_operation_search(slice_from(target, service.len), number))
        return NULL;
    const struct operation *operation = api_operation_at(*number);
    bool is_fitting = api_operation_is_of_streams(operation) == of_streams;
    return is_fitting && !api_operation_is_of_scaling(operation) ? operation : NULL;
}

static bool is_json_type(struct slice type, bool is_of_scaling)
{
    const char *end = type.len ? memchr(type.data, ';', type.len) : NULL;
    if (end) type.len = (size_t)(end - type.data);
    while (type.len && type.data[type.len - 1] == ' ') type.len--;
    return slice_equal_ignoring_case(type, is_of_scaling ? scaling_type : json_type) ||
           slice_equal_ignoring_case(type, SLICE("application/json"));
}

static bool is_json(struct http_exchange *exchange)
{
    return !exchange->body.len || raw_is_json(&exchange->arena, exchange->body);
}

const char *web_signature_fault(struct web *web, struct http_exchange *exchange, enum signed_door door,
                                struct slice *message, enum rest_role *role)
{
    *role = ROLE_ADMIN;
    if (!web->keyring) return NULL;
    struct rest_head head = web_head_of(exchange);
    return signature_fault(web->keyring, &head, exchange->body_sent, door, clock_now_ms(&clock_system),
                           &exchange->arena, message, role);
}

/* Signatures, roles and the rules of tests; false when the request was answered with what it met. */
static bool admit(struct web *web, struct http_exchange *exchange, const struct operation *operation,
                  struct slice type, bool trusted)
{
    struct slice message;
    enum rest_role role = ROLE_ADMIN;
    const char *fault = trusted ? NULL : web_signature_fault(web, exchange, DOOR_DYNAMODB, &message, &role);
    if (!fault && !rest_role_admits_operation(role, api_operation_name(operation), exchange->body,
                                              web->prefix, &exchange->arena, &message))
        fault = "AccessDeniedException";
    if (fault) {
        reply_error(web, exchange, type, fault, message);
        return false;
    }
    int status = web->hooks ? hooks_fault(web->hooks, api_operation_name(operation), exchange, &fault) : 0;
    if (!status) return true;
    if (fault) web_count_error(web, fault);
    reply(web, exchange, status, type);
    return false;
}

/* The database of the request's key and region; false when it was answered with why there is none. */
static bool choose_region(struct web *web, struct http_exchange *exchange, struct slice type,
                          struct dynamo **dynamo, struct dynamo_turn **turn)
{
    char error[600];
    struct slice authorization = http_header_find(exchange, SLICE("Authorization"));
    int place = regions_find(web->regions, authorization, error, sizeof error);
    if (place == REGION_REFUSED) {
        reply_error(web, exchange, type, "ValidationException", slice_of(error));
        return false;
    }
    if (place == REGION_NONE) return true;
    *dynamo = regions_at(web->regions, place);
    *turn = &loop_of(web, exchange->loop)->region_turns[place];
    return true;
}

/* A write that asks for an item back: such a reply may be large. */
static bool returns_item(struct http_exchange *exchange, const struct operation *operation)
{
    struct raw_walk walk;
    struct slice name, value;
    if (rest_operation_only_reads(api_operation_name(operation))) return false;
    if (raw_walk_begin(&walk, &exchange->arena, exchange->body) != JSON_OBJECT) return false;
    while (raw_walk_next(&walk, &name, &value))
        if (slice_equal(name, SLICE("ReturnValues"))) return true;
    return false;
}

static void serve_dynamodb(struct web *web, struct http_exchange *exchange, struct slice cause, bool trusted)
{
    struct slice type = http_header_find(exchange, SLICE("Content-Type"));
    struct slice target = http_header_find(exchange, SLICE("X-Amz-Target"));
    bool is_of_scaling = slice_starts(target, scaling_target);
    if (exchange->body.len && !is_json_type(type, is_of_scaling)) {
        if (serve_foreign(web, exchange)) return;
        buf_text(&exchange->reply, "<UnknownOperationException/>\n");
        reply(web, exchange, 404, SLICE("text/xml"));
        return;
    }
    type = slice_equal_ignoring_case(type, SLICE("application/json")) ? SLICE("application/json")
           : is_of_scaling                                            ? scaling_type
                                                                      : json_type;
    unsigned number = 0;
    const struct operation *operation = operation_of(target, &number);
    if (!operation) { /* the service looks at the body first */
        if (serve_foreign(web, exchange)) return;
        const char *error = is_json(exchange) ? "UnknownOperationException" : "SerializationException";
        reply_error(web, exchange, type, error, SLICE(""));
        return;
    }
    if (!admit(web, exchange, operation, type, trusted)) return;
    if (!http_has_room(exchange) && returns_item(exchange, operation)) {
        http_reply_crowded(exchange);
        return;
    }
    struct web_call *call = arena_alloc(&exchange->arena, sizeof *call);
    call->call = (struct dynamo_call){.operation = operation,
                                      .request = exchange->body,
                                      .cause = cause,
                                      .arena = &exchange->arena,
                                      .reply = &exchange->reply,
                                      .done = call_done};
    call->exchange = exchange;
    call->web = web;
    call->content_type = type;
    call->number = number;
    struct dynamo *dynamo = web->dynamo;
    struct dynamo_turn *turn = &loop_of(web, exchange->loop)->turn;
    if (web->regions && !trusted && !choose_region(web, exchange, type, &dynamo, &turn)) return;
    if (dynamo_begin(dynamo, &call->call, turn)) answer_call(call);
}

/* ---- everything else ---- */

/* With an allowed origin it is a browser that asks whether the page may send what follows. */
static void serve_options(struct web *web, struct http_exchange *exchange)
{
    struct rest_head head = web_head_of(exchange);
    struct slice headers = http_header_find(exchange, SLICE("Access-Control-Request-Headers"));
    struct slice method = http_header_find(exchange, SLICE("Access-Control-Request-Method"));
    bool from_outside = http_header_find(exchange, SLICE("Access-Control-Request-Private-Network")).len > 0;
    struct slice extra = web_common_headers(web, exchange, true, SLICE_NONE);
    extra = arena_printf(&exchange->arena, "%.*sAllow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n",
                         SLICE_ARG(extra));
    if (rest_door_origin(web->door, &head).len)
        extra = arena_printf(
            &exchange->arena, "%.*s%s%.*s%s%s%.*s%s%sAccess-Control-Max-Age: 7200\r\n", SLICE_ARG(extra),
            headers.len ? "Access-Control-Allow-Headers: " : "", SLICE_ARG(headers),
            headers.len ? "\r\n" : "", method.len ? "Access-Control-Allow-Methods: " : "", SLICE_ARG(method),
            method.len ? "\r\n" : "", from_outside ? "Access-Control-Allow-Private-Network: true\r\n" : "");
    http_reply(exchange, 200, text_type, extra);
}

static void serve_health(struct web *web, struct http_exchange *exchange)
{
    char failure[600];
    if (!web->engine || !engine_has_failed(web->engine, failure, sizeof failure)) {
        buf_text(&exchange->reply, "{\"status\":\"ok\"}\n");
        reply(web, exchange, 200, SLICE("application/json"));
        return;
    }
    buf_text(&exchange->reply, "{\"status\":\"failed\",\"reason\":");
    json_put_string(&exchange->reply, slice_of(failure));
    buf_text(&exchange->reply, "}\n");
    reply(web, exchange, 503, SLICE("application/json"));
}

static void put_nodes(struct buf *out, const char *nodes)
{
    buf_byte(out, '[');
    while (*nodes) {
        size_t len = strcspn(nodes, "+");
        json_put_string(out, (struct slice){nodes, len});
        nodes += len + (nodes[len] == '+');
        if (*nodes) buf_byte(out, ',');
    }
    buf_byte(out, ']');
}

static void serve_get(struct web *web, struct http_exchange *exchange)
{
    if (slice_equal(exchange->path, SLICE("/healthz"))) {
        serve_health(web, exchange);
    } else if (slice_equal(exchange->path, SLICE("/metrics"))) {
        web_put_metrics(web, &exchange->reply);
        reply(web, exchange, 200, SLICE("text/plain; version=0.0.4; charset=utf-8"));
    } else if (slice_equal(exchange->path, SLICE("/"))) {
        buf_text(&exchange->reply, "healthy: dynamodb.");
        buf_slice(&exchange->reply, web->region);
        buf_text(&exchange->reply, ".amazonaws.com ");
        reply(web, exchange, 200, text_type);
    } else if (slice_equal(exchange->path, SLICE("/localnodes")) &&
               dynamo_kind(web->dynamo) == DYNAMO_KIND_ALTERNATOR) {
        /* Nobody gets transactions through us that the database does not have. */
        put_nodes(&exchange->reply, web->nodes);
        reply(web, exchange, 200, SLICE("application/json"));
    } else {
        buf_text(&exchange->reply,
                 "There is nothing here. DynamoDB's API is POST /, patterns are described in "
                 "/v1/openapi.json, health is /healthz, metrics are /metrics.\n");
        reply(web, exchange, 404, text_type);
    }
}

static void answer_hook(struct web *web, struct http_exchange *exchange, bool trusted)
{
    struct slice message;
    enum rest_role role = ROLE_ADMIN;
    const char *fault = trusted ? NULL : web_signature_fault(web, exchange, DOOR_REST, &message, &role);
    if (!fault &&
        !rest_role_admits_path(role, exchange->method_text, exchange->path, &exchange->arena, &message))
        fault = "AccessDeniedException";
    if (fault) {
        web_count_error(web, fault);
        buf_text(&exchange->reply, "{\"error\":");
        json_put_string(&exchange->reply, message);
        buf_byte(&exchange->reply, '}');
        reply(web, exchange, 403, SLICE("application/json"));
    } else if (slice_equal(exchange->path, SLICE("/_quipu/idle"))) {
        web_serve_idle(web, exchange);
    } else {
        reply(web, exchange, hooks_serve(web->hooks, exchange), SLICE("application/json"));
    }
}

/* With --read-only-console the page's requests, which say that they are its own, change nothing. */
static bool refuse_change_of_console(struct web *web, struct http_exchange *exchange)
{
    if (!web->console || !console_reads_only(web->console)) return false;
    if (!http_header_find(exchange, SLICE("X-Quipu-Console")).data) return false;
    struct slice target = http_header_find(exchange, SLICE("X-Amz-Target"));
    bool is_call = exchange->method == HTTP_POST && exchange->path.len == 1;
    if (is_call && func_serves_target(target)) return false; /* logs, which are read by POST */
    struct slice operation = target;
    slice_cut(&operation, '.');
    if (is_call ? rest_request_only_reads(operation, exchange->body, &exchange->arena)
                : rest_path_only_reads(exchange->method_text, exchange->path))
        return false;
    web_count_error(web, "AccessDeniedException");
    api_put_error(&exchange->reply, "AccessDeniedException", SLICE("this console may only read"));
    reply(web, exchange, 403, json_type);
    return true;
}

/* `trusted`: one of our own functions, on the port that it was given; whatever it writes has this cause. */
static void answer(struct web *web, struct http_exchange *exchange, struct slice cause, bool trusted)
{
    if (refuse_change_of_console(web, exchange)) return;
    if (web->gateway && web_serve_gateway(web, exchange, cause, trusted)) return;
    if (web->hooks && slice_starts(exchange->path, SLICE("/_quipu/"))) {
        answer_hook(web, exchange, trusted);
        return;
    }
    if (web_serve_console(web, exchange, trusted)) return;
    bool to_dynamodb = exchange->method == HTTP_POST && exchange->path.len == 1 &&
                       !(web->func && func_serves_target(http_header_find(exchange, SLICE("X-Amz-Target"))));
    if (!to_dynamodb && exchange->method != HTTP_OPTIONS && serve_foreign(web, exchange)) return;
    if (!to_dynamodb && exchange->method != HTTP_OPTIONS && web_serve_rest(web, exchange, cause, trusted))
        return;
    switch (exchange->method) {
    case HTTP_POST: serve_dynamodb(web, exchange, cause, trusted); return;
    case HTTP_GET:
    case HTTP_HEAD: serve_get(web, exchange); return;
    case HTTP_OPTIONS: serve_options(web, exchange); return;
    default:
        buf_text(&exchange->reply, "<UnknownOperationException/>\n");
        reply(web, exchange, 404, SLICE("text/xml"));
    }
}

/* The service takes less than we do, and only its own API is bound to that. */
static bool head_is_too_large(const struct http_exchange *exchange)
{
    size_t bytes = exchange->path.len + exchange->query.len;
    if (bytes > LIMIT_DYNAMODB_HEADER_BYTES) return true;
    for (uint32_t i = 0; i < exchange->header_count; i++)
        bytes += exchange->headers[i].name.len + exchange->headers[i].value.len;
    return bytes > LIMIT_DYNAMODB_HEADER_BYTES && http_header_find(exchange, SLICE("X-Amz-Target")).len;
}

/* Before the body is read: one rule for all doors. */
static int admit_head(void *context, const struct http_exchange *exchange, char *reason, size_t reason_len)
{
    struct web *web = context;
    struct rest_head head = web_head_of(exchange);
    if (head_is_too_large(exchange)) {
        snprintf(reason, reason_len, "the request line and headers are too large");
        return 400;
    }
    if (rest_door_admits(web->door, &head, reason, reason_len)) return 0;
    bool opens = web_is_link_to_console(web, exchange) || (web->gateway && gateway_opens(web->gateway, &head));
    return opens && rest_door_knows_host(web->door, &head, reason, reason_len) ? 0 : 403;
}

static void handle(void *context, struct http_exchange *exchange)
{
    answer(context, exchange, SLICE_NONE, false);
}

void web_forward(void *context, struct http_exchange *exchange, struct slice cause)
{
    answer(context, exchange, cause, true);
}

/* Archives of functions are larger than anything else that is meant to be sent. A function's answer that is
 * too large is read all the same, so that its caller hears of it at once. */
static uint64_t body_limit(void *context, enum http_method method, struct slice target)
{
    (void)context;
    if (method != HTTP_POST && method != HTTP_PUT) return LIMIT_BODY_BYTES;
    if (slice_starts(target, SLICE("/2018-06-01/runtime/invocation/"))) return LIMIT_ANSWER_READ_BYTES;
    bool takes_code = slice_starts(target, SLICE("/2015-03-31/functions"));
    return takes_code ? LIMIT_CODE_BYTES / 3 * 4 + LIMIT_BODY_BYTES : LIMIT_BODY_BYTES; /* base64 */
}

static void draining(void *context)
{
    struct web *web = context;
    atomic_store(&web->stops, true);
    if (web->pattern) pattern_stop(web->pattern);
    if (web->func) func_drain(web->func);
    if (web->console) console_drain(web->console);
}

static void turn_end(void *context, struct net_loop *loop)
{
    struct web *web = context;
    dynamo_turn_end(web->dynamo, &loop_of(web, loop)->turn);
    if (web->regions) regions_turn_end(web->regions, loop_of(web, loop)->region_turns);
}

/* HTTP has a status of its own for most of what is wrong with a request; DynamoDB answers with 400, and with
 * 500 when it cannot decode the body. */
static struct slice refusal(void *context, int *status, const char *reason, struct buf *body)
{
    struct web *web = context;
    if (*status == 414 || *status == 431) *status = 400;
    if (*status == 415) *status = 500;
    const char *error = *status == 403   ? "AccessDeniedException"
                        : *status == 413 ? "RequestEntityTooLargeException"
                        : *status == 500 ? "InternalServerError"
                        : *status == 503 ? "ServiceUnavailable"
                                         : "SerializationException";
    web_count_error(web, error);
    api_put_error(body, error, slice_of(reason));
    return json_type;
}

struct net_handler web_handler(struct web *web)
{
    return (struct net_handler){.request = handle,
                                .admit = admit_head,
                                .turn_end = turn_end,
                                .refusal = refusal,
                                .draining = draining,
                                .body_limit = body_limit,
                                .context = web};
}
