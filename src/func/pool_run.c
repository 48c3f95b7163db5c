/* Invocations from their arrival in the pool to their answer. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "func/pool.h"

/* ---- names ---- */

/* The ARN as it was called: with the qualifier, where there was one. */
static struct slice called_arn(struct run *run, const struct function *function,
                               const struct invocation *invocation)
{
    struct slice name, qualifier = invocation->qualifier;
    if (!qualifier.len && !function_name_parse(invocation->function, &name, &qualifier))
        qualifier = SLICE_NONE;
    if (!qualifier.len) return function->arn;
    return arena_printf(&run->arena, "%.*s:%.*s", SLICE_ARG(function->arn), SLICE_ARG(qualifier));
}

/* ---- from its arrival ---- */

struct run *run_new(struct pool *pool, struct function *function, struct invocation *invocation)
{
    struct run *run = must_zero(1, sizeof *run);
    ring_init(&run->link);
    ring_init(&run->voice);
    atomic_init(&run->references, 1);
    run->invocation = invocation;
    run->function = function_keep(function);
    run->event = arena_copy(&run->arena, invocation->payload);
    run->client_context = arena_copy(&run->arena, invocation->client_context);
    run->cause = cause_add(&run->arena, invocation->cause, function->name);
    run->arn = called_arn(run, function, invocation);
    run->asked_us = monotonic_us();
    run->wants_log = invocation->wants_log;
    run->timeout_ms = invocation_timeout_ms(function, invocation);
    pool_lock(pool);
    if (!invocation->request_id[0])
        uuid_put(invocation->request_id, random_next(&pool->random), random_next(&pool->random));
    /* A trace's root as X-Ray writes it: by it a request of the function tells which of its events it belongs to.
     */
    uint64_t a = random_next(&pool->random), b = random_next(&pool->random);
    unsigned seconds = (unsigned)(clock_now_ms(pool->func->options.clock) / 1000);
    snprintf(run->root, RUN_ROOT_BYTES, "1-%08x-%08x%016llx", seconds, (unsigned)a, (unsigned long long)b);
    pool_unlock(pool);
    invocation->request_id[RUN_ID_BYTES - 1] = 0;
    memcpy(run->id, invocation->request_id, RUN_ID_BYTES);
    invocation->started_us = 0;
    invocation->error_kind = NULL;
    atomic_fetch_add(&pool->under_way, 1);
    return run;
}

void run_keep(struct run *run)
{
    atomic_fetch_add_explicit(&run->references, 1, memory_order_relaxed);
}

void run_release(struct run *run)
{
    if (atomic_fetch_sub_explicit(&run->references, 1, memory_order_acq_rel) != 1) return;
    function_release(run->function);
    buf_free(&run->reply);
    buf_free(&run->tail);
    arena_free(&run->arena);
    free(run);
}

void average_move(int64_t *average_us, int64_t seen_us)
{
    if (seen_us < 1) seen_us = 1;
    *average_us = *average_us ? *average_us + (seen_us - *average_us) / 8 : seen_us;
    if (*average_us < 1) *average_us = 1;
}

struct run *instance_run(struct instance *instance, struct slice id)
{
    ring_each(struct run, run, link,
              &instance->running) if (!run->is_decided && slice_equal(slice_of(run->id), id)) return run;
    return NULL;
}

/* ---- to its answer ---- */

void run_fail(struct run *run, const char *type, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice message = arena_vprintf(&run->arena, format, args);
    va_end(args);
    run->reply.len = 0;
    run->end = INVOCATION_FAILED;
    run->error_type = arena_printf(&run->arena, "%s", type).data;
    run->error = message;
    compose(&run->reply, "{'errorType':%s,'errorMessage':%s}", slice_of(type),
            arena_printf(&run->arena, "RequestId: %s Error: %.*s", run->id, SLICE_ARG(message)));
}

void run_leave(struct run *run, struct after *after)
{
    ring_remove(&run->link);
    if (run->instance)
        run->instance->running_count--;
    else if (run->group)
        run->group->waiting_count--;
    run->instance = NULL;
    run->group = NULL;
    run->next_done = after->answered;
    after->answered = run;
}

static void run_finish(struct pool *pool, struct run *run)
{
    struct invocation *invocation = run->invocation;
    invocation->end = run->end;
    invocation->reply = run->reply;
    invocation->log = run->tail;
    run->reply = run->tail = (struct buf){0};
    invocation->error_kind = run->end == INVOCATION_FAILED ? "Unhandled" : NULL;
    invocation->started_us = run->given_us;
    struct func_stream *stream = run_stream_leave(run);
    if (!stream) invocation->has_prelude = run->has_prelude;
    snprintf(invocation->version, sizeof invocation->version, "%.*s", SLICE_ARG(run->function->version));
    stats_add(&pool->stats.ends[run->end], 1);
    int64_t call_us = run->given_us ? monotonic_us() - run->given_us : 0;
    if (run->given_us) histogram_add(&pool->stats.duration_us, (uint64_t)call_us);
    meters_call(pool->meters, run, call_us);
    run_release(run);
    invocation->done(invocation);
    run_stream_release(stream);
    atomic_fetch_sub(&pool->under_way, 1);
}

void after_do(struct pool *pool, struct after *after)
{
    struct run *first = NULL;
    requests_post(after->posted);
    while (after->answered) { /* the oldest stands last */
        struct run *run = after->answered;
        after->answered = run->next_done;
        run->next_done = first;
        first = run;
    }
    while (first) {
        struct run *run = first;
        first = run->next_done;
        run_finish(pool, run);
    }
}

void run_answered(struct run *run, struct instance *instance)
{
    voice_end(instance, run);
    run_finish(instance->pool, run);
}
