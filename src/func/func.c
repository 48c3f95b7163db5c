/* The room's doors: opening, starting, invoking, serving, closing.
 *
 * Order of the parts, from the ground up: logs, registry, pool, queue. They are closed from the top down, but
 * for one thing: the queue is told to begin nothing new before the pool ends what runs, and is closed after
 * it, so that it hears of every invocation of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/log.h"
#include "func/archive.h"
#include "func/pool.h"
#include "func/queue.h"
#include "func/target.h"

#define PATTERN_CALLERS 2 /* threads that wait for patterns */
#define WORKERS         4 /* for requests that wait for the door */
#define STOP_LOOK_US    2000

/* ---- opening and closing ---- */

static bool parts_open(struct func *func, char *error, size_t error_len)
{
    const char *folder = func->options.folder;
    char path[4096];
    if (!archive_make_folder(folder) || snprintf(path, sizeof path, "%s/logs", folder) >= (int)sizeof path) {
        snprintf(error, error_len, "the folder %s cannot be made: %s", folder, strerror(errno));
        return false;
    }
    if (!bootstrap_install(folder, error, error_len)) return false;
    if (func->options.sandbox) storage_sweep(func);
    func->logs = logs_open(path);
    chmod(path, 0700); /* whoever else reads the code need not read these */
    func->workers = workers_new(WORKERS);
    func->pool = pool_open(func);
    func->registry = registry_open(func, error, error_len);
    if (!func->registry) return false;
    func->queue = queue_open(func, error, error_len);
    return func->queue != NULL;
}

struct func *func_open(const struct func_options *options, char *error, size_t error_len)
{
    struct func *func = must_zero(1, sizeof *func);
    func->options = *options;
    func->prefix = slice_of(options->prefix ? options->prefix : "quipu-");
    func->region = slice_of(options->region);
    func->account = slice_of(options->account);
    if (parts_open(func, error, error_len)) return func;
    func_close(func);
    return NULL;
}

void func_start(struct func *func, struct net_server *server, func_forward *forward, void *context)
{
    func->server = server;
    func->forward = forward;
    func->forward_context = context;
    pool_start(func->pool);
    queue_start(func->queue);
}

void func_set_pattern(struct func *func, func_pattern *pattern, void *context)
{
    func->pattern = pattern;
    func->pattern_context = context;
    func->callers = workers_new(PATTERN_CALLERS);
}

void func_stop(struct func *func, int64_t wait_ms)
{
    int64_t until_us = monotonic_us() + wait_ms * 1000;
    queue_stop(func->queue);
    while (monotonic_us() < until_us && !queue_is_at_rest(func->queue)) usleep(STOP_LOOK_US);
}

void func_close(struct func *func)
{
    if (!func) return;
    if (func->queue) queue_stop(func->queue);
    if (func->pool) pool_stop(func->pool);
    client_close(atomic_load(&func->client)); /* what waits for URLs ends with it */
    workers_free(func->callers);
    if (func->queue) queue_close(func->queue);
    workers_free(func->workers);
    pool_close(func->pool);
    logs_close(func->logs); /* readers that still wait are answered */
    if (func->registry) registry_close(func->registry);
    free(func);
}

/* ---- serving ---- */

bool func_serve(struct func *func, struct rest_call *call)
{
    const struct rest_route *route;
    if (call->path.len == 1 && func_serves_target(call->header(call, SLICE("X-Amz-Target")))) {
        rest_workers_run(func->workers, logs_api_serve, func, call);
        return true;
    }
    enum rest_found found = rest_route(func_routes, func_route_count, call, &route);
    if (found == REST_FOUND) route->serve(func, call);
    if (found == REST_OTHER_METHOD)
        lambda_error(call, 405, "MethodNotAllowedException", "%.*s is not allowed here",
                     SLICE_ARG(call->method));
    return found != REST_NOWHERE;
}

void func_put_metrics(struct func *func, struct buf *out)
{
    pool_put_metrics(func->pool, out);
    queue_put_metrics(func->queue, out);
}

bool func_is_idle(struct func *func)
{
    return queue_is_idle(func->queue) && pool_is_idle(func->pool);
}

/* ---- the database ---- */

bool table_make(struct func *func, const struct dynamo_table *table)
{
    char error[256];
    bool made = dynamo_table_make(func->options.dynamo, table, error, sizeof error);
    if (!made) log_line("functions: %s", error);
    return made;
}

static bool is_missing(struct func *func, struct slice table)
{
    struct arena arena = {0};
    struct dynamo_reply reply = dynamo_ask(func->options.dynamo, &arena, "DescribeTable",
                                           compose_in(&arena, "{'TableName':%s}", table));
    arena_free(&arena);
    return reply.fault == DYNAMO_MISSING;
}

bool func_tables_mend(struct func *func)
{
    struct queue *queue = func->queue;
    struct arena arena = {0};
    bool misses_calls = atomic_load(&queue->table_is_made) && is_missing(func, queue->table);
    bool misses_queues = atomic_load(&func->queues_are_made) && is_missing(func, queues_table(func, &arena));
    arena_free(&arena);
    if (misses_calls) atomic_store(&queue->table_is_made, false);
    if (misses_queues) atomic_store(&func->queues_are_made, false);
    if (misses_calls || misses_queues) log_line("functions: a table of theirs was deleted, and is made anew");
    return (misses_calls || misses_queues) && (!misses_calls || queue_table_make(queue)) &&
           (!misses_queues || queues_make(func));
}

struct mending {
    struct func *func;
    bool is_mended;
};

static void mend_tables(void *argument)
{
    struct mending *mending = argument;
    mending->is_mended = func_tables_mend(mending->func);
}

bool func_tables_mend_in_task(struct func *func)
{
    struct mending mending = {.func = func};
    task_outside(mend_tables, &mending);
    return mending.is_mended;
}

bool func_has_transactions(const struct func *func)
{
    return dynamo_kind_ask(func->options.dynamo) != DYNAMO_KIND_ALTERNATOR;
}

/* ---- invoking ---- */

uint32_t invocation_timeout_ms(const struct function *function, const struct invocation *invocation)
{
    bool is_less = invocation->timeout_ms && invocation->timeout_ms < function->timeout_ms;
    return is_less ? invocation->timeout_ms : function->timeout_ms;
}

/* Bits that aliases with two versions choose by: spread evenly, and no lock to take (splitmix64 of a
 * counter). */
static uint64_t choice_bits(struct func *func)
{
    uint64_t z = atomic_fetch_add_explicit(&func->invocation_count, 1, memory_order_relaxed) + 1;
    z *= 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct function *find(struct func *func, struct slice text, struct slice qualifier)
{
    struct slice name, own;
    if (target_is_url(text)) return target_of_url(text);
    if (!function_name_parse(text, &name, &own)) return NULL;
    return registry_function(func, name, qualifier.len ? qualifier : own, choice_bits(func));
}

void func_invoke(struct func *func, struct invocation *invocation)
{
    struct function *function = find(func, invocation->function, invocation->qualifier);
    if (!function) {
        invocation->end = INVOCATION_UNKNOWN;
        invocation->reply = invocation->log = (struct buf){0};
        invocation->done(invocation);
        return;
    }
    if (function->kind == FUNCTION_PROCESS)
        pool_invoke(func->pool, function, invocation);
    else
        target_invoke(func, function, invocation);
    function_release(function);
}

void func_invoke_target(struct func *func, struct invocation *invocation)
{
    struct function *function = target_of_text(invocation->function);
    if (!function) {
        func_invoke(func, invocation);
        return;
    }
    target_invoke(func, function, invocation);
    function_release(function);
}

bool func_resolve(struct func *func, struct slice text, struct arena *arena, struct slice *arn,
                  struct slice *name)
{
    struct slice own_name, qualifier;
    struct function *function = find(func, text, SLICE_NONE);
    if (!function) return false;
    function_name_parse(text, &own_name, &qualifier);
    *name = arena_copy(arena, function->name);
    *arn = qualifier.len ? arena_printf(arena, "%.*s:%.*s", SLICE_ARG(function->arn), SLICE_ARG(qualifier))
                         : arena_copy(arena, function->arn);
    function_release(function);
    return true;
}
