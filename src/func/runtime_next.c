/* Requests for events: how they wait, and how an event reaches one.
 *
 * A request for `next` waits without limit; while it does, it is part of its exchange's memory, so that
 * nothing is left over when the exchange ends. The newest is answered first; where there are more than the
 * function's concurrency allows, the oldest is turned away, because a process that asks again has mostly lost
 * the connection that it asked on before.
 *
 * An event is given under the pool's lock and sent on the loop of the request, on the way to which it holds
 * its instance. */
#include <stdio.h>

#include "base/fail.h"
#include "base/limits.h"
#include "func/pool.h"
#include "func/runtime.h"

/* A request that waits for an event; in its exchange's arena. */
struct next_request {
    struct ring link;
    struct http_exchange *exchange;
    struct instance *instance;
    struct run *run; /* counted: what it is given */
    struct net_task task;
    struct next_request *next_posted;
};

static void reply_gone(struct http_exchange *exchange)
{
    runtime_reply_error(exchange, 410, "Gone", "This process is about to be ended");
}

/* ---- events ---- */

/* A header's value holds no line ends; in JSON they can only stand between tokens, where a space does as
 * well. */
static struct slice one_line(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++) copy[i] = (unsigned char)text.data[i] < ' ' ? ' ' : text.data[i];
    return (struct slice){copy, text.len};
}

static void event_send(struct http_exchange *exchange, const struct run *run)
{
    struct arena *arena = &exchange->arena;
    struct slice headers = arena_printf(arena,
                                        "Lambda-Runtime-Aws-Request-Id: %s\r\n"
                                        "Lambda-Runtime-Deadline-Ms: %lld\r\n"
                                        "Lambda-Runtime-Invoked-Function-Arn: %.*s\r\n"
                                        "Lambda-Runtime-Trace-Id: Root=%s;Parent=%.16s;Sampled=0\r\n",
                                        run->id, (long long)run->deadline_ms, SLICE_ARG(run->arn), run->root,
                                        run->root + RUN_ROOT_BYTES - 17);
    if (run->client_context.len)
        headers = arena_printf(arena, "%.*sLambda-Runtime-Client-Context: %.*s\r\n", SLICE_ARG(headers),
                               SLICE_ARG(one_line(arena, run->client_context)));
    buf_slice(&exchange->reply, run->event);
    http_reply(exchange, 200, SLICE("application/json"), headers);
}

/* Its request turned out to have nobody behind it. */
static void run_give_back(struct instance *instance, struct run *run, struct after *after)
{
    struct group *group = instance->group;
    voice_leave(instance, run);
    ring_remove(&run->link);
    instance->running_count--;
    run->instance = NULL;
    ring_prepend(&group->waiting, &run->link);
    group->waiting_count++;
    instance->returning++;
    instance->returning_us = monotonic_us();
    if (!instance->asking_count && !instance->running_count && !instance->debug_port)
        instance->end_due_us = instance->returning_us + instance->function->timeout_ms * 1000ll;
    instance_settle(instance);
    group_serve(group, after);
}

/* On the loop of the request. */
static void deliver(struct net_task *task)
{
    struct next_request *request = ring_owner(task, struct next_request, task);
    struct instance *instance = request->instance;
    struct run *run = request->run;
    struct after after = {0};
    struct pool *pool = instance->pool;
    bool has_left = http_client_left(request->exchange);
    pool_lock(pool);
    bool is_wanted = run->instance == instance &&
                     !run->is_decided; /* else it timed out, or the process ended */
    if (is_wanted && has_left) run_give_back(instance, run, &after);
    if (is_wanted && !has_left) {
        run->given_us = monotonic_us();
        histogram_add(&pool->stats.handover_us, (uint64_t)(run->given_us - run->asked_us));
    }
    instance_drop(instance);
    pool_unlock(pool);
    if (is_wanted && !has_left)
        event_send(request->exchange, run);
    else
        reply_gone(request->exchange);
    run_release(run);
    after_do(pool, &after);
}

/* To its loop, when the lock is released. */
static void request_post(struct next_request *request, void (*task)(struct net_task *task), struct after *after)
{
    request->task.run = task;
    request->next_posted = after->posted;
    after->posted = request;
}

void requests_post(struct next_request *posted)
{
    while (posted) {
        struct next_request *request = posted;
        posted = request->next_posted; /* once posted, it may be gone */
        net_post(request->exchange->loop, &request->task);
    }
}

void instance_give(struct instance *instance, struct run *run, struct after *after)
{
    struct pool *pool = instance->pool;
    struct next_request *request = ring_owner(instance->asking.next, struct next_request, link);
    ensure(instance->asking_count > 0 && instance->state != INSTANCE_ENDED);
    ring_remove(&request->link);
    instance->asking_count--;
    run->instance = instance;
    ring_append(&instance->running, &run->link);
    instance->running_count++;
    instance->invocation_count++;
    instance->used_us = monotonic_us();
    int64_t limit_ms = instance->debug_port ? LIMIT_DEBUG_CALL_MS : run->timeout_ms;
    run->deadline_us = instance->used_us + limit_ms * 1000;
    run->deadline_ms = clock_now_ms(pool->func->options.clock) + limit_ms;
    arena_reset(&instance->cause_arena);
    instance->last_cause = arena_copy(&instance->cause_arena, run->cause);
    voice_start(instance, run);
    run_keep(run);
    request->run = run;
    instance->holds++;
    request_post(request, deliver, after);
    if (instance->is_stale) instance->state = INSTANCE_RETIRING;
    instance_settle(instance);
    pool_wake_by(pool, run->deadline_us);
}

/* ---- requests ---- */

static void turn_away(struct net_task *task)
{
    reply_gone(ring_owner(task, struct next_request, task)->exchange);
}

static void request_turn_away(struct next_request *request, struct after *after)
{
    ring_remove(&request->link);
    request_post(request, turn_away, after);
}

void instance_abandon(struct instance *instance, struct after *after)
{
    ring_each(struct next_request, request, link, &instance->asking) request_turn_away(request, after);
    ring_each(struct next_request, extension, link, &instance->extensions) request_turn_away(extension, after);
    instance->asking_count = instance->extension_count = 0;
}

static struct next_request *request_new(struct instance *instance, struct http_exchange *exchange)
{
    struct next_request *request = arena_new(&exchange->arena, struct next_request);
    request->exchange = exchange;
    request->instance = instance;
    return request;
}

enum asked { ASKED_WAITS, ASKED_AGAIN, ASKED_GONE, ASKED_TOO_MUCH };

/* AGAIN: it is to be given *run (counted), which it was given before. */
static enum asked instance_ask(struct instance *instance, struct http_exchange *exchange, struct run **run,
                               struct after *after)
{
    unsigned slots = instance->function->concurrency ? instance->function->concurrency : 1;
    int64_t now_us = monotonic_us();
    bool has_failed = !instance->has_asked && !instance->returning; /* it told so, and should exit */
    if (instance->state == INSTANCE_ENDED || instance->is_stopping || has_failed) return ASKED_GONE;
    if (!instance->has_asked) {
        /* It is up. */
        instance->has_asked = true;
        instance->init_us = now_us - instance->born_us;
        instance->group->failures = 0;
        instance->group->retry_us = 0;
        average_move(&instance->group->init_us, instance->init_us);
        histogram_add(&instance->pool->stats.init_us, (uint64_t)instance->init_us);
    }
    if (instance->running_count + instance->asking_count >= slots) {
        if (instance->asking_count) {
            request_turn_away(ring_owner(instance->asking.prev, struct next_request, link), after);
            instance->asking_count--;
        } else if (slots == 1) {
            struct run *given = ring_owner(instance->running.next, struct run, link);
            if (given->is_decided) return ASKED_GONE;
            run_keep(given);
            *run = given;
            return ASKED_AGAIN;
        } else {
            return ASKED_TOO_MUCH;
        }
    }
    /* Takes a request into those that wait. */
    struct group *group = instance->group;
    if (instance->returning) instance->returning--;
    instance->returning_us = instance->used_us = now_us;
    instance->end_due_us = 0;
    ring_prepend(&instance->asking, &request_new(instance, exchange)->link);
    instance->asking_count++;
    if (instance->is_stale && !group->waiting_count) instance->state = INSTANCE_RETIRING;
    instance_settle(instance);
    group_serve(group, after);
    return ASKED_WAITS;
}

void runtime_serve_next(struct instance *instance, struct http_exchange *exchange)
{
    struct pool *pool = instance->pool;
    struct run *run = NULL;
    struct after after = {0};
    instance_drain(instance); /* what was printed since the last answer is not of the next event */
    pool_lock(pool);
    enum asked asked = instance_ask(instance, exchange, &run, &after);
    pool_unlock(pool);
    after_do(pool, &after);
    switch (asked) {
    case ASKED_WAITS: break;
    case ASKED_AGAIN: event_send(exchange, run); break;
    case ASKED_GONE: reply_gone(exchange); break;
    case ASKED_TOO_MUCH:
        runtime_reply_error(exchange, 403, "InvalidStateTransition",
                            "Transition from Running to Ready failed for runtime. Error: state transition is "
                            "not allowed");
        break;
    }
    if (run) run_release(run);
}

void runtime_serve_extension_next(struct instance *instance, struct http_exchange *exchange)
{
    pool_lock(instance->pool);
    bool waits = instance->state != INSTANCE_ENDED && instance->extension_count < POOL_EXTENSIONS;
    if (waits) {
        ring_append(&instance->extensions, &request_new(instance, exchange)->link);
        instance->extension_count++;
    }
    pool_unlock(instance->pool);
    if (!waits) reply_gone(exchange);
}
