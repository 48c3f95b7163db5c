/* Our own resources of functions: logs, processes, debugging, dead letters.
 *
 * A log is plain text. Without `from` its end is answered (at most `max` bytes, 64 KB unless told); the
 * header Quipu-Log-Position tells where to go on. `wait` makes a request for more than there is wait that
 * long; `follow=1` goes on for as long as the client listens, where the caller can take a reply in pieces. */
#include "base/clock.h"
#include "base/compose.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "func/pool.h"

#define LOG_BYTES      (64 * 1024) /* of one answer, unless told */
#define DEBUG_PORT     9229        /* as Node has it */
#define DEBUG_PORT_MIN 1024        /* below it only the system may listen */
#define FOLLOW_LOOK_US 5000000     /* how often a client that hears nothing is looked after */

/* One who reads a log; in the call's arena. */
struct reader {
    struct logs_waiter waiter; /* first: the waiter is us */
    struct func *func;
    struct rest_call *call;
    size_t max;
    bool follows;
};

/* ---- parameters ---- */

/* "30s", "500ms", "2" (seconds). */
static bool wait_parse(struct slice text, int64_t *out_ms)
{
    unsigned long long seconds;
    if (!slice_to_u64(text, LIMIT_LOG_WAIT_MS / 1000, &seconds))
        return duration_parse(text, LIMIT_LOG_WAIT_MS, out_ms);
    *out_ms = (int64_t)seconds * 1000;
    return true;
}

static bool bound_parse(struct rest_call *call, const char *name, uint64_t max, uint64_t *out)
{
    struct slice text = rest_query(call, name);
    unsigned long long value;
    if (!text.data) return true;
    if (!slice_to_u64(text, max, &value))
        return lambda_refuse(call, "%s must be a number up to %llu", name, (unsigned long long)max);
    *out = value;
    return true;
}

/* The function's name of the path; answers for itself when there is no such function. */
static bool name_parse(struct func *func, struct rest_call *call, struct slice *name)
{
    struct slice arn;
    if (func_resolve(func, call->parameters[0], call->arena, &arn, name)) return true;
    return lambda_error(call, 404, "ResourceNotFoundException", "Function not found: %.*s",
                        SLICE_ARG(call->parameters[0]));
}

/* ---- logs ---- */

/* What there is more than `from`, and where to go on. */
static void reader_read(struct reader *reader, struct buf *out)
{
    uint64_t next;
    logs_read(reader->func->logs, reader->waiter.function, reader->waiter.from, reader->max, out, &next);
    reader->waiter.from = next;
}

static void reader_answer(struct reader *reader)
{
    rest_add_header(reader->call, "Quipu-Log-Position: %llu", (unsigned long long)reader->waiter.from);
    reader->call->done(reader->call);
}

static void waited(struct logs_waiter *waiter)
{
    struct reader *reader = (struct reader *)waiter;
    reader_read(reader, reader->call->reply);
    reader_answer(reader);
}

static void followed(struct logs_waiter *waiter)
{
    struct reader *reader = (struct reader *)waiter;
    struct buf out = {0};
    reader_read(reader, &out);
    bool goes_on = reader->call->piece(reader->call, buf_view(&out)) && !waiter->is_last;
    buf_free(&out);
    if (!goes_on) {
        reader->call->done(reader->call);
        return;
    }
    waiter->due_us = monotonic_us() + FOLLOW_LOOK_US;
    logs_wait(reader->func->logs, waiter);
}

void func_serve_logs(void *room, struct rest_call *call)
{
    struct func *func = room;
    struct reader *reader = arena_new(call->arena, struct reader);
    struct slice wait = rest_query(call, "wait");
    uint64_t from = UINT64_MAX, max = LOG_BYTES;
    int64_t wait_ms = 0;
    *reader = (struct reader){.func = func, .call = call};
    if (!name_parse(func, call, &reader->waiter.function)) return;
    if (!bound_parse(call, "from", UINT64_MAX - 1, &from) ||
        !bound_parse(call, "max", LIMIT_LOG_READ_BYTES, &max))
        return;
    if (wait.data && !wait_parse(wait, &wait_ms)) {
        lambda_refuse(call, "wait must be a time up to %d seconds, like 30s", LIMIT_LOG_WAIT_MS / 1000);
        return;
    }
    reader->max = max ? max : 1;
    reader->waiter.from = from;
    reader->follows = call->piece && slice_equal(rest_query(call, "follow"), SLICE("1"));
    reader->waiter.ready = reader->follows ? followed : waited;
    call->status = 200;
    call->content_type = SLICE("text/plain; charset=utf-8");
    if (reader->follows) {
        followed(&reader->waiter);
        return;
    }
    reader_read(reader, call->reply);
    if (call->reply->len || !wait_ms) {
        reader_answer(reader);
        return;
    }
    reader->waiter.due_us = monotonic_us() + wait_ms * 1000;
    logs_wait(func->logs, &reader->waiter);
}

/* ---- processes ---- */

void func_serve_processes(void *room, struct rest_call *call)
{
    struct func *func = room;
    struct slice name;
    if (!name_parse(func, call, &name)) return;
    pool_put_processes(func->pool, name, call->reply);
    lambda_done(call, 200);
}

/* ---- debugging ---- */

/* Whoever debugs asks again before `for` is over. */
void func_serve_debug(void *room, struct rest_call *call)
{
    struct func *func = room;
    struct slice name, length = rest_query(call, "for");
    uint64_t port = DEBUG_PORT;
    int64_t for_ms = LIMIT_DEBUG_MS;
    if (!name_parse(func, call, &name) || !bound_parse(call, "port", UINT16_MAX, &port)) return;
    if (length.data && (!wait_parse(length, &for_ms) || !for_ms || for_ms > LIMIT_DEBUG_MS)) {
        lambda_refuse(call, "for must be a time up to %d seconds, like 30s", LIMIT_DEBUG_MS / 1000);
        return;
    }
    if (port < DEBUG_PORT_MIN) {
        lambda_refuse(call, "port must be a number from %d to 65535", DEBUG_PORT_MIN);
        return;
    }
    struct function *function = registry_function(func, name, SLICE("$LATEST"), 0);
    if (!function || function->kind != FUNCTION_PROCESS) {
        lambda_refuse(call, "%.*s has no process to debug", SLICE_ARG(name));
        if (function) function_release(function);
        return;
    }
    enum debug_begun begun = pool_debug_begin(func->pool, function, (uint16_t)port, for_ms);
    if (begun == DEBUG_BEGUN || begun == DEBUG_GOES_ON) {
        compose(call->reply, "{'FunctionName':%s,'Runtime':%s,'Port':%d,'Begun':%b}\n", name,
                function->runtime, (int64_t)port, begun == DEBUG_BEGUN);
        lambda_done(call, 200);
    } else {
        lambda_error(call, 409, "ResourceConflictException", "%s",
                     begun == DEBUG_ELSEWHERE    ? "The function is being debugged at another port"
                     : begun == DEBUG_PORT_TAKEN ? "Another function is being debugged at this port"
                                                 : "This server runs no processes now");
    }
    function_release(function);
}

void func_serve_debug_end(void *room, struct rest_call *call)
{
    struct func *func = room;
    struct slice name;
    if (!name_parse(func, call, &name)) return;
    pool_debug_end(func->pool, name);
    lambda_done(call, 204);
}
