/* The doors beside DynamoDB's: an exchange becomes a rest_call, a room answers
 * it on whatever thread, and the answer goes back through the loop that has the
 * exchange.
 *
 * Who may create a function can run anything on this machine. A page in
 * somebody's browser must not: browsers send an Origin, and a request that has
 * one is served only when it is this server's own, by a name that no stranger's
 * domain can take (an address or localhost), so that neither forms nor rebound
 * names get through.
 */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "backup/backup.h"
#include "base/fail.h"
#include "base/json.h"
#include "console/console.h"
#include "func/func.h"
#include "gateway/gateway.h"
#include "pattern/pattern.h"
#include "trigger/trigger.h"
#include "web/hooks.h"
#include "web/internal.h"

/* A request while a room has it; lives in the exchange's arena. */
struct web_rest {
    struct rest_call call; /* first: the room's pointer is ours */
    struct http_exchange *exchange;
    struct web *web;
    bool trusted;              /* a function of ours sent it, by its own port */
    struct net_task flow_task; /* brings a flow to the loop ... */
    struct pattern_task *flow; /* ... this one */
    struct net_task task;      /* brings the answer back to the loop */
    _Atomic bool has_left;     /* the client does not take what is sent any more */
    _Atomic size_t waiting;    /* bytes of pieces that are not written yet */
    size_t handed;             /* of these, what the connection has; the loop's own */
    bool in_pieces;            /* its head was sent; the loop's own */
};

/* A piece of a reply on its way to the loop. */
struct piece {
    struct net_task task;
    struct web_rest *rest;
    struct slice bytes;
};

static struct slice header_of(const struct rest_call *call, struct slice name)
{
    return http_header_find(((const struct web_rest *)call)->exchange, name);
}

static struct slice content_type_of(const struct rest_call *call)
{
    return call->content_type.len ? call->content_type : SLICE("application/json");
}

static struct slice all_headers(struct web_rest *rest)
{
    if (rest->call.is_bare) return rest->call.headers;
    struct slice common = web_common_headers(rest->web, rest->exchange, !rest->in_pieces,
                                             rest->call.request_id);
    if (!rest->call.headers.len) return common;
    return arena_printf(&rest->exchange->arena, "%.*s%.*s", SLICE_ARG(common), SLICE_ARG(rest->call.headers));
}

/* Whether it was done for more than its reply. Targets on the path "/" only read. */
static bool acts(const struct http_exchange *exchange)
{
    return exchange->method != HTTP_GET && exchange->method != HTTP_HEAD && exchange->path.len > 1;
}

/* ---- whole replies ---- */

static void finish_on_loop(struct net_task *task)
{
    struct web_rest *rest = (struct web_rest *)((char *)task - offsetof(struct web_rest, task));
    struct http_exchange *exchange = rest->exchange;
    exchange->left = NULL;
    exchange->sent = NULL;
    exchange->has_acted = rest->call.is_bare || (rest->call.status < 400 && acts(exchange));
    if (!rest->in_pieces) {
        http_reply(exchange, rest->call.status, content_type_of(&rest->call), all_headers(rest));
        return;
    }
    if (exchange->reply.len) http_reply_piece(exchange, buf_view(&exchange->reply));
    if (rest->call.is_torn)
        http_reply_tear(exchange);
    else
        http_reply_end(exchange);
}

static void call_done(struct rest_call *call)
{
    struct web_rest *rest = (struct web_rest *)call;
    rest->task.run = finish_on_loop;
    net_post(rest->exchange->loop, &rest->task);
}

/* ---- replies in pieces ---- */

static void exchange_sent(struct http_exchange *exchange)
{
    struct web_rest *rest = exchange->user;
    if (!rest->handed) return;
    atomic_fetch_sub(&rest->waiting, rest->handed);
    rest->handed = 0;
    if (rest->call.taken) rest->call.taken(&rest->call);
}

static void piece_on_loop(struct net_task *task)
{
    struct piece *piece = (struct piece *)task;
    struct web_rest *rest = piece->rest;
    if (!rest->in_pieces) {
        struct buf later = rest->exchange->reply; /* what `done` adds is the last piece, not the first */
        rest->exchange->reply = (struct buf){0};
        rest->in_pieces = true;
        http_reply_begin(rest->exchange, rest->call.status, content_type_of(&rest->call), all_headers(rest));
        buf_free(&rest->exchange->reply);
        rest->exchange->reply = later;
    }
    rest->handed += piece->bytes.len;
    if (!http_reply_piece(rest->exchange, piece->bytes)) {
        atomic_store(&rest->has_left, true);
        exchange_sent(rest->exchange);
    }
    free(piece);
}

static bool call_piece(struct rest_call *call, struct slice bytes)
{
    struct web_rest *rest = (struct web_rest *)call;
    if (atomic_load(&rest->has_left)) return false;
    struct piece *piece = must_zero(1, sizeof *piece + bytes.len);
    if (bytes.len) memcpy(piece + 1, bytes.data, bytes.len);
    *piece = (struct piece){
        .task.run = piece_on_loop, .rest = rest, .bytes = {(char *)(piece + 1), bytes.len}};
    atomic_fetch_add(&rest->waiting, bytes.len);
    net_post(rest->exchange->loop, &piece->task);
    return true;
}

static bool call_is_full(const struct rest_call *call)
{
    return atomic_load(&((const struct web_rest *)call)->waiting) >= LIMIT_STREAM_WINDOW_BYTES;
}

static void exchange_left(struct http_exchange *exchange)
{
    struct web_rest *rest = exchange->user;
    if (rest->call.left) rest->call.left(&rest->call);
}

static bool call_is_gone(const struct rest_call *call)
{
    return http_client_left(((const struct web_rest *)call)->exchange);
}

/* ---- what flows are lent ---- */

static void run_flow(struct net_task *task)
{
    struct web_rest *rest = (struct web_rest *)((char *)task - offsetof(struct web_rest, flow_task));
    rest->flow->run(rest->flow);
}

static void post_flow(const struct pattern_host *host, struct rest_call *call, struct pattern_task *task)
{
    (void)host;
    struct web_rest *rest = (struct web_rest *)call;
    rest->flow = task;
    rest->flow_task.run = run_flow;
    net_post(rest->exchange->loop, &rest->flow_task);
}

static struct dynamo_turn *turn_of(const struct pattern_host *host, struct rest_call *call)
{
    (void)host;
    struct web_rest *rest = (struct web_rest *)call;
    return &rest->web->loops[net_loop_index(rest->exchange->loop)].turn;
}

const struct pattern_host web_pattern_host = {.post = post_flow, .turn = turn_of};

/* ---- who may come in ---- */

static bool refuse(struct web_rest *rest, const char *type, struct slice message)
{
    struct buf *reply = &rest->exchange->reply;
    web_count_error(rest->web, type);
    rest->call.status = 403;
    reply->len = 0;
    bool to_pattern = slice_starts(rest->call.path, SLICE("/v1/"));
    buf_slice(reply, to_pattern ? SLICE("{\"error\":\"access-denied\",\"message\":")
                                : SLICE("{\"Type\":\"User\",\"Message\":"));
    json_put_string(reply, message);
    buf_byte(reply, '}');
    rest_add_header(&rest->call, "X-Amzn-ErrorType: %s", type);
    call_done(&rest->call);
    return true;
}

/* ---- the rooms ---- */

static bool is_ours(struct slice path)
{
    static const struct slice dated = SLICE("/20"),
                              others[] = {SLICE("/schedules"), SLICE("/schedule-groups"), SLICE("/tags/"),
                                          SLICE("/v1/"),       SLICE("/counter"),         SLICE("/wall")};
    if (slice_starts(path, dated)) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (slice_starts(path, others[i])) return true;
    return false;
}

/* All but the patterns' paths. */
static bool is_of_functions(struct slice path)
{
    static const struct slice starts[] = {SLICE("/20"), SLICE("/schedule"), SLICE("/tags/"), SLICE("/v1/functions/"),
                                          SLICE("/v1/queues/"), SLICE("/v1/routes")};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (slice_starts(path, starts[i])) return true;
    return false;
}

static bool serve(struct web *web, struct rest_call *call)
{
    /* However its path is written: nothing but patterns. */
    if (call->role != ROLE_ADMIN) return web->pattern && pattern_serve(web->pattern, call);
    if (slice_starts(call->path, SLICE("/v1/backup/"))) return web->backup && backup_serve(web->backup, call);
    /* The rows of functions and triggers are many, and none of them begins so. */
    if (slice_starts(call->path, SLICE("/v1/")) && !is_of_functions(call->path))
        return web->pattern && pattern_serve(web->pattern, call);
    /* Triggers first: of the paths for tags, which func takes all, they take those of mappings. */
    return (web->gateway && gateway_serve_routes(web->gateway, call)) ||
           (web->trigger && trigger_serve(web->trigger, call)) ||
           (web->func && func_serve(web->func, call)) || (web->pattern && pattern_serve(web->pattern, call));
}

static struct web_rest *rest_of(struct web *web, struct http_exchange *exchange, struct slice cause)
{
    struct web_rest *rest = arena_zero(&exchange->arena, sizeof *rest);
    rest->exchange = exchange;
    rest->web = web;
    exchange->user = rest;
    exchange->left = exchange_left;
    exchange->sent = exchange_sent;
    rest->call = (struct rest_call){.method = exchange->method_text,
                                    .path = exchange->path,
                                    .query = exchange->query,
                                    .body = exchange->body,
                                    .header = header_of,
                                    .cause = cause,
                                    .is_secure = http_is_secure(exchange),
                                    .arena = &exchange->arena,
                                    .done = call_done,
                                    .piece = call_piece,
                                    .is_full = call_is_full,
                                    .gone = call_is_gone,
                                    .reply = &exchange->reply};
    return rest;
}

bool web_serve_rest(struct web *web, struct http_exchange *exchange, struct slice cause, bool trusted)
{
    bool by_target = exchange->method == HTTP_POST && exchange->path.len == 1; /* see func_serves_target */
    if (!by_target && !is_ours(exchange->path)) return false;
    struct web_rest *rest = rest_of(web, exchange, cause);
    struct slice message;
    enum rest_role role = ROLE_ADMIN;
    if (slice_starts(exchange->path, SLICE("/v1/"))) stats_add(&web->v1_requests, 1);
    const char *fault = trusted ? NULL : web_signature_fault(web, exchange, DOOR_REST, &message, &role);
    if (fault) return refuse(rest, fault, message);
    rest->call.role = role;
    if (!rest_role_admits_path(role, exchange->method_text, exchange->path, &exchange->arena, &message))
        return refuse(rest, "AccessDeniedException", message);
    if (acts(exchange) && !http_has_room(exchange)) {
        http_reply_crowded(exchange);
        return true;
    }
    return serve(web, &rest->call);
}

/* ---- URLs of functions ---- */

/* The key's name in "AWS4-HMAC-SHA256 Credential=KEY/20261115/...". */
static struct slice key_of(struct slice authorization)
{
    static const struct slice algorithm = SLICE("AWS4-HMAC-SHA256 "), word = SLICE("Credential=");
    if (!slice_starts(authorization, algorithm)) return SLICE_NONE;
    const char *at = memmem(authorization.data, authorization.len, word.data, word.len);
    if (!at) return SLICE_NONE;
    struct slice rest = slice_from(authorization, (size_t)(at - authorization.data) + word.len);
    return slice_cut(&rest, '/');
}

/* Where the server was given no keys, any will do. Keys that may only read may not call functions. */
bool web_is_signed(struct rest_call *call, struct slice *key)
{
    struct web_rest *rest = (struct web_rest *)call;
    struct slice message;
    enum rest_role role;
    *key = key_of(header_of(call, SLICE("Authorization")));
    if (!key->len || rest->trusted) return key->len > 0;
    return !web_signature_fault(rest->web, rest->exchange, DOOR_FUNCTION, &message, &role) && role != ROLE_READ;
}

bool web_serve_gateway(struct web *web, struct http_exchange *exchange, struct slice cause, bool trusted)
{
    struct rest_head head = web_head_of(exchange);
    struct gateway_target target = gateway_target(&head);
    if (!target.door) return false;
    if (!http_has_room(exchange)) {
        http_reply_crowded(exchange);
        return true;
    }
    struct web_rest *rest = rest_of(web, exchange, cause);
    struct rest_head *kept = arena_alloc(&exchange->arena, sizeof *kept);
    char *peer = arena_alloc(&exchange->arena, HTTP_PEER_BYTES);
    *kept = head;
    http_peer(exchange, peer);
    rest->trusted = trusted;
    rest->call.head = kept;
    rest->call.peer = slice_of(peer);
    rest->call.body = exchange->body_sent; /* as it came, compressed or not: what the event's headers say of it holds */
    gateway_serve(web->gateway, &rest->call, &target);
    return true;
}

/* ---- the console ---- */

/* A person's browser; programs that look at / want what it always said. */
static bool wants_page(const struct http_exchange *exchange)
{
    return exchange->path.len == 1 && (exchange->method == HTTP_GET || exchange->method == HTTP_HEAD) &&
           slice_contains(http_header_find(exchange, SLICE("Accept")), SLICE("text/html"));
}

bool web_is_link_to_console(const struct web *web, const struct http_exchange *exchange)
{
    struct rest_head head = web_head_of(exchange);
    if (web->gateway && gateway_target(&head).door) return false; /* at the host of a function or an API */
    bool is_page = wants_page(exchange) || slice_equal(exchange->path, SLICE("/console")) ||
                   slice_equal(exchange->path, SLICE("/console/"));
    return web->console && is_page && exchange->method == HTTP_GET &&
           slice_equal(http_header_find(exchange, SLICE("Sec-Fetch-Mode")), SLICE("navigate")) &&
           slice_equal(http_header_find(exchange, SLICE("Sec-Fetch-Dest")), SLICE("document")) &&
           !http_header_find(exchange, SLICE("Origin")).data;
}

bool web_serve_console(struct web *web, struct http_exchange *exchange, bool trusted)
{
    struct slice path = exchange->path, message;
    bool is_below = slice_starts(path, SLICE("/console/")) || slice_equal(path, SLICE("/console"));
    if (exchange->method == HTTP_OPTIONS || (!is_below && !(web->console && wants_page(exchange)))) return false;
    struct web_rest *rest = rest_of(web, exchange, SLICE_NONE);
    if (!web->console) {
        rest->call.status = 404;
        buf_text(&exchange->reply, "{\"error\":\"not-found\",\"message\":\"This server has no console.\"}\n");
        call_done(&rest->call);
        return true;
    }
    const char *fault = trusted ? NULL : web_signature_fault(web, exchange, DOOR_REST, &message, &rest->call.role);
    if (fault && !console_is_open(path)) return refuse(rest, fault, message);
    struct console_visit visit = {.is_signed = !fault, .takes_gzip = http_takes_gzip(exchange)};
    console_serve(web->console, &rest->call, &visit);
    return true;
}

/* ---- the hook that waits for triggers ---- */

/* What is at work, for a sentence; NULL: nothing is. */
static const char *busy_rooms(struct web *web)
{
    struct arena arena = {0};
    struct api_job *jobs;
    uint32_t job_count = 0;
    bool transfers = web->engine && api_jobs_running(web->engine, &arena, &jobs, &job_count) && job_count;
    bool triggers = web->trigger && !trigger_is_idle(web->trigger);
    bool functions = web->func && !func_is_idle(web->func);
    arena_free(&arena);
    if (transfers) return "exports, imports or bulk operations are";
    if (triggers) return functions ? "triggers and functions are" : "triggers are";
    return functions ? "functions are" : NULL;
}

/* `timeout` of a query, as durations are written elsewhere; -1 when it is none. */
static int64_t idle_wait_ms(struct slice query)
{
    static const struct slice name = SLICE("timeout=");
    if (!query.len) return LIMIT_IDLE_WAIT_MS;
    if (!slice_starts(query, name)) return -1;
    struct slice digits = slice_from(query, name.len), unit;
    size_t len = 0;
    while (len < digits.len && digits.data[len] >= '0' && digits.data[len] <= '9') len++;
    unit = slice_from(digits, len);
    digits.len = len;
    unsigned long long number = 0, factor = !unit.len || slice_equal(unit, SLICE("ms")) ? 1
                                            : slice_equal(unit, SLICE("s"))             ? 1000
                                            : slice_equal(unit, SLICE("m"))             ? 60000
                                                                                        : 0;
    if (!factor || !slice_to_u64(digits, LIMIT_IDLE_WAIT_MS / factor, &number)) return -1;
    return (int64_t)(number * factor);
}

/* A function that has just ended may have written what starts another: nothing is at rest before two polls in a row
 * found it so. However short the time is, there is one, whose finding then counts. */
static void wait_until_idle(void *room, struct rest_call *call)
{
    struct web_rest *rest = (struct web_rest *)call;
    struct web *web = room;
    int64_t wait_ms = idle_wait_ms(rest->exchange->query), until_us = monotonic_us() + wait_ms * 1000;
    if (wait_ms < 0) {
        buf_text(&rest->exchange->reply,
                 "{\"error\":\"timeout must be up to 60s: 250ms, 5s, 1m or a number of milliseconds\"}\n");
        call->status = 400;
        call->done(call);
        return;
    }
    const char *busy;
    for (unsigned quiet = 0;; usleep(1000)) {
        rest->exchange->reply.len = 0;
        call->status = hooks_serve(web->hooks, rest->exchange);
        busy = busy_rooms(web);
        quiet = busy ? 0 : quiet + 1;
        if (quiet == 2 || monotonic_us() >= until_us || atomic_load(&web->stops)) break;
    }
    if (busy) {
        rest->exchange->reply.len = 0;
        buf_printf(&rest->exchange->reply, "{\"error\":\"%s still at work\"}\n", busy);
        call->status = 504;
    }
    call->done(call);
}

void web_serve_idle(struct web *web, struct http_exchange *exchange)
{
    struct web_rest *rest = rest_of(web, exchange, SLICE_NONE);
    rest_workers_run(web->workers, wait_until_idle, web, &rest->call);
}
