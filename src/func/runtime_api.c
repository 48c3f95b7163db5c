/* Lambda's Runtime API as a process sees it on its own port, and the way on for everything else that it asks.
 *
 * Paths, statuses and words are those of Lambda's own emulator. The requests for events are in
 * runtime_next.c; here are the answers, the polite rest (extensions, logs, telemetry), and the causes of what
 * is handed on. */
#include <stdio.h>

#include "base/compose.h"
#include "base/limits.h"
#include "base/raw.h"
#include "func/pool.h"
#include "func/runtime.h"

#define RUNTIME_PREFIX "/2018-06-01/"

void runtime_reply_error(struct http_exchange *exchange, int status, const char *type, const char *message)
{
    exchange->reply.len = 0;
    compose(&exchange->reply, "{'errorMessage':%s,'errorType':%s}\n", slice_of(message), slice_of(type));
    http_reply(exchange, status, SLICE("application/json"), SLICE_NONE);
}

static void reply_accepted(struct http_exchange *exchange)
{
    buf_text(&exchange->reply, "{\"status\":\"OK\"}\n");
    http_reply(exchange, 202, SLICE("application/json"), SLICE_NONE);
}

static void reply_not_found(struct http_exchange *exchange)
{
    runtime_reply_error(exchange, 404, "NotFound", "404 page not found");
}

/* ---- answers ---- */

/* Takes the run out of its process, which is expected to ask again. NULL: there is none of that id. */
static struct run *run_take(struct instance *instance, struct slice id)
{
    pool_lock(instance->pool);
    struct run *run = instance_run(instance, id);
    if (run) {
        ring_remove(&run->link);
        instance->running_count--;
        run->instance = NULL;
        run->group = NULL;
        run->memory_bytes = instance->process ? sandbox_memory_bytes(instance->process) : 0;
        instance->returning++;
        instance->returning_us = instance->used_us = monotonic_us();
        average_move(&instance->group->duration_us, instance->used_us - run->given_us);
        if (!instance->running_count && !instance->asking_count && !instance->debug_port)
            instance->end_due_us = instance->used_us + instance->function->timeout_ms * 1000ll;
        instance_settle(instance);
    }
    pool_unlock(instance->pool);
    return run;
}

static bool is_object(struct slice text, struct arena *arena)
{
    return raw_kind(text) == JSON_OBJECT && raw_is_json(arena, text);
}

/* An error that the process posted: as it is, where it is an object; else its text becomes the message. */
static void put_posted_error(struct buf *out, struct http_exchange *exchange, struct slice type,
                             struct slice body)
{
    if (body.len <= LIMIT_FUNCTION_REPLY_BYTES && is_object(body, &exchange->arena)) {
        buf_slice(out, body);
        return;
    }
    if (body.len > LIMIT_LOG_LINE_BYTES) body.len = LIMIT_LOG_LINE_BYTES;
    compose(out, "{'errorType':%s,'errorMessage':%s}",
            type.len && utf8_valid(type) ? type : SLICE("Runtime.Unknown"),
            utf8_valid(body) ? body : SLICE("Invalid error body"));
}

static struct slice error_type(const struct http_exchange *exchange)
{
    return http_header_find(exchange, SLICE("Lambda-Runtime-Function-Error-Type"));
}

/* A stream that broke off tells so behind its body. */
static bool take_trailing_error(struct run *run, struct http_exchange *exchange)
{
    struct slice type = http_trailer_find(exchange, SLICE("Lambda-Runtime-Function-Error-Type"));
    struct slice body = http_trailer_find(exchange, SLICE("Lambda-Runtime-Function-Error-Body"));
    struct slice decoded = SLICE_NONE;
    if (!type.data) return false;
    if (base64_decode(&exchange->arena, body, &decoded) != BASE64_OK) decoded = body;
    put_posted_error(&run->reply, exchange, type, decoded);
    run->end = INVOCATION_FAILED;
    return true;
}

void runtime_stream_cut(struct instance *instance, struct slice id)
{
    instance_drain(instance);
    struct run *run = run_take(instance, id);
    if (!run) return;
    run_fail(run, "Function.ResponseSizeTooLarge", "The streamed response exceeded %d bytes.",
             LIMIT_STREAM_REPLY_BYTES);
    run->status = "error";
    run_answered(run, instance);
}

static void reply_too_large(struct http_exchange *exchange, int max_bytes)
{
    char message[80];
    snprintf(message, sizeof message, "Exceeded maximum allowed payload size (%d bytes).", max_bytes);
    runtime_reply_error(exchange, 413, "RequestEntityTooLarge", message);
}

static void serve_response(struct instance *instance, struct http_exchange *exchange, struct slice id)
{
    struct slice mode = http_header_find(exchange, SLICE("Lambda-Runtime-Function-Response-Mode"));
    struct slice body = exchange->body;
    struct func_stream *streamed = exchange->user;
    instance_drain(instance);
    if (streamed && !runtime_stream_end(exchange)) {
        reply_too_large(exchange, LIMIT_STREAM_REPLY_BYTES);
        return;
    }
    struct run *run = run_take(instance, id);
    if (!run) {
        runtime_reply_error(exchange, 400, "InvalidRequestID", "Invalid request ID");
        return;
    }
    bool bad_mode = mode.len && !slice_equal_ignoring_case(mode, SLICE("streaming"));
    bool too_large = body.len > LIMIT_FUNCTION_REPLY_BYTES;
    if (run->stream != streamed) {
        run_fail(run, "Runtime.TruncatedResponse", "The response broke off");
    } else if (bad_mode) {
        run_fail(run, "Runtime.InvalidResponseModeHeader", "Invalid function response mode");
    } else if (too_large) {
        run->end = INVOCATION_FAILED;
        buf_printf(
            &run->reply,
            "{\"errorType\":\"Function.ResponseSizeTooLarge\",\"errorMessage\":\"Response payload size "
            "(%zu bytes) exceeded maximum allowed payload size (%d bytes).\"}",
            body.len, LIMIT_FUNCTION_REPLY_BYTES);
    } else if (!take_trailing_error(run, exchange)) {
        run->end = INVOCATION_ANSWERED;
        run->has_prelude = slice_equal_ignoring_case(http_header_find(exchange, SLICE("Content-Type")),
                                                     SLICE(RUNTIME_PRELUDE_TYPE));
        buf_slice(&run->reply, body);
    }
    if (run->end == INVOCATION_FAILED) run->status = "error";
    run_answered(run, instance);
    if (bad_mode)
        runtime_reply_error(exchange, 400, "InvalidFunctionResponseMode", "Invalid function response mode");
    else if (too_large)
        reply_too_large(exchange, LIMIT_FUNCTION_REPLY_BYTES);
    else
        reply_accepted(exchange);
}

static void serve_error(struct instance *instance, struct http_exchange *exchange, struct slice id)
{
    instance_drain(instance);
    struct run *run = run_take(instance, id);
    if (!run) {
        runtime_reply_error(exchange, 400, "InvalidRequestID", "Invalid request ID");
        return;
    }
    put_posted_error(&run->reply, exchange, error_type(exchange), exchange->body);
    run->end = INVOCATION_FAILED;
    run->status = "error";
    run_answered(run, instance);
    reply_accepted(exchange);
}

static void serve_init_error(struct instance *instance, struct http_exchange *exchange)
{
    struct pool *pool = instance->pool;
    struct after after = {0};
    struct buf posted = {0};
    put_posted_error(&posted, exchange, error_type(exchange), exchange->body);
    instance_drain(instance);
    pool_lock(pool);
    bool starts = instance->state == INSTANCE_STARTING && instance->returning;
    if (starts) {
        instance_failed_to_start(instance, INVOCATION_FAILED, "", "", buf_view(&posted), &after);
        instance->end_due_us = monotonic_us() + POOL_EXIT_MS * 1000;
        pool_wake_by(pool, instance->end_due_us);
    }
    pool_unlock(pool);
    buf_free(&posted);
    after_do(pool, &after);
    if (starts)
        reply_accepted(exchange);
    else
        runtime_reply_error(
            exchange, 403, "InvalidStateTransition",
            "Transition from Ready to InitError failed for runtime. Error: state transition is "
            "not allowed");
}

/* ---- extensions: polite, without effect ---- */

static void serve_register(struct instance *instance, struct http_exchange *exchange)
{
    const struct function *function = instance->function;
    if (!http_header_find(exchange, SLICE("Lambda-Extension-Name")).len) {
        runtime_reply_error(exchange, 403, "Extension.InvalidExtensionName", "Empty extension name");
        return;
    }
    compose(&exchange->reply, "{'functionName':%s,'functionVersion':%s,'handler':%s}\n", function->name,
            function->version, function->handler);
    struct slice header = arena_printf(
        &exchange->arena, "Lambda-Extension-Identifier: %08x-0000-4000-8000-%012llx\r\n",
        (unsigned)instance->number, (unsigned long long)(instance->stream >> 16));
    http_reply(exchange, 200, SLICE("application/json"), header);
}

static void serve_extension(struct instance *instance, struct http_exchange *exchange, struct slice path)
{
    bool posts = exchange->method == HTTP_POST;
    if (posts && slice_equal(path, SLICE("register")))
        serve_register(instance, exchange);
    else if (exchange->method == HTTP_GET && slice_equal(path, SLICE("event/next")))
        runtime_serve_extension_next(instance, exchange);
    else if (posts && (slice_equal(path, SLICE("init/error")) || slice_equal(path, SLICE("exit/error"))))
        reply_accepted(exchange);
    else
        reply_not_found(exchange);
}

/* ---- everything else goes to the server, as the function's own doing ---- */

/* Of the event that the request's trace names; else of all that run, or of the last one. */
static struct slice instance_cause(struct instance *instance, struct http_exchange *exchange)
{
    struct slice trace = http_header_find(exchange, SLICE("X-Amzn-Trace-Id")), cause = SLICE_NONE;
    pool_lock(instance->pool);
    ring_each(struct run, run, link, &instance->running)
    {
        if (trace.len && slice_contains(trace, slice_of(run->root))) {
            cause = run->cause;
            break;
        }
        cause = cause_join(&exchange->arena, cause, run->cause);
    }
    if (!cause.len) cause = instance->last_cause;
    if (cause.len) cause = arena_copy(&exchange->arena, cause);
    pool_unlock(instance->pool);
    return cause.len ? cause : cause_add(&exchange->arena, SLICE_NONE, instance->function->name);
}

static void serve_other(struct instance *instance, struct http_exchange *exchange)
{
    struct func *func = instance->pool->func;
    if (!instance_admits(instance, exchange)) return;
    func->forward(func->forward_context, exchange, instance_cause(instance, exchange));
}

/* ---- paths ---- */

static void serve_invocation(struct instance *instance, struct http_exchange *exchange, struct slice path)
{
    struct slice what = path, id = slice_cut(&what, '/');
    if (exchange->method == HTTP_GET && slice_equal(path, SLICE("next")))
        runtime_serve_next(instance, exchange);
    else if (exchange->method == HTTP_POST && slice_equal(what, SLICE("response")))
        serve_response(instance, exchange, id);
    else if (exchange->method == HTTP_POST && slice_equal(what, SLICE("error")))
        serve_error(instance, exchange, id);
    else
        reply_not_found(exchange);
}

static void serve_runtime(struct instance *instance, struct http_exchange *exchange, struct slice path)
{
    struct slice invocation = SLICE("runtime/invocation/");
    if (slice_starts(path, invocation) && path.len > invocation.len) {
        serve_invocation(instance, exchange, slice_from(path, invocation.len));
    } else if (exchange->method == HTTP_POST && slice_equal(path, SLICE("runtime/init/error"))) {
        serve_init_error(instance, exchange);
    } else if (exchange->method == HTTP_GET && slice_equal(path, SLICE("ping"))) {
        buf_text(&exchange->reply, "pong");
        http_reply(exchange, 200, SLICE("text/plain; charset=utf-8"), SLICE_NONE);
    } else {
        reply_not_found(exchange); /* restore, too: there are no snapshots here */
    }
}

bool runtime_owns_path(struct slice path)
{
    static const struct slice prefixes[] = {SLICE(RUNTIME_PREFIX), SLICE("/2020-01-01/extension/"),
                                            SLICE("/2020-08-15/logs"), SLICE("/2022-07-01/telemetry")};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (slice_starts(path, prefixes[i])) return true;
    return false;
}

void runtime_api_serve(void *context, struct http_exchange *exchange)
{
    struct instance *instance = context;
    struct slice runtime = SLICE(RUNTIME_PREFIX), extension = SLICE("/2020-01-01/extension/");
    bool puts = exchange->method == HTTP_PUT;
    if (slice_starts(exchange->path, runtime))
        serve_runtime(instance, exchange, slice_from(exchange->path, runtime.len));
    else if (slice_starts(exchange->path, extension))
        serve_extension(instance, exchange, slice_from(exchange->path, extension.len));
    else if (puts && slice_equal(exchange->path, SLICE("/2020-08-15/logs")))
        runtime_reply_error(exchange, 202, "Logs.NotSupported", "Logs API is not supported");
    else if (puts && slice_equal(exchange->path, SLICE("/2022-07-01/telemetry")))
        runtime_reply_error(exchange, 202, "Telemetry.NotSupported", "Telemetry API is not supported");
    else
        serve_other(instance, exchange);
}
