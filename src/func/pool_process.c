/* The start of a process: its port, its command, its environment; how it is let go of; and its end: what its
 * invocations are told, and who comes next.
 *
 * A start is decided under the pool's lock and made on the pool's thread, because it talks to the system.
 * Whatever happens meanwhile (it is told to stop, it asks for an event, it ends) finds the instance there:
 * its end is made on the same thread, so after its start, and it is freed when its port is closed and the
 * last event on its way to it was sent. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "func/pool.h"
#include "func/runtime.h"

struct instance *instance_new(struct group *group)
{
    struct pool *pool = group->pool;
    struct instance *instance = must_zero(1, sizeof *instance);
    instance->pool = pool;
    instance->group = group;
    instance->function = function_keep(group->function);
    instance->number = ++pool->next_number;
    instance->is_stale = group->is_retired;
    instance->holds = 1; /* the port's */
    instance->stream = random_next(&pool->random);
    instance->returning = group->function->concurrency ? group->function->concurrency : 1;
    instance->born_us = instance->used_us = monotonic_us();
    instance->end_due_us = instance->born_us + (pool->init_ms + (int64_t)group->function->timeout_ms) * 1000;
    instance->debug_port = pool_debug_port(pool, group->function->name);
    if (instance->debug_port) instance->end_due_us = 0;
    ring_init(&instance->ready);
    ring_init(&instance->asking);
    ring_init(&instance->extensions);
    ring_init(&instance->running);
    voice_init(&instance->voice);
    ring_append(&pool->instances, &instance->all);
    ring_append(&group->instances, &instance->of_group);
    pool->live_count++;
    *pool->to_start_end = instance;
    pool->to_start_end = &instance->next_chore;
    stats_add(&pool->stats.starts, 1);
    pool_wake_by(pool, 0);
    return instance;
}

void instance_drop(struct instance *instance)
{
    struct pool *pool = instance->pool;
    ensure(instance->holds > 0);
    if (--instance->holds) return;
    ensure(!instance->arrivals && ring_empty(&instance->asking) && ring_empty(&instance->running) &&
           ring_empty(&instance->extensions));
    if (instance->process) sandbox_release(instance->process);
    ring_remove(&instance->all);
    function_release(instance->function);
    if (instance->keyring) keyring_free(instance->keyring);
    voice_free(&instance->voice);
    arena_free(&instance->cause_arena);
    free(instance);
    if (pool->is_closing) pool_wake_by(pool, 0); /* the thread waits for the last one */
}

/* Nothing was run: it cannot be run here, or not now. */
static void start_refused(struct instance *instance, enum invocation_end end, const char *type,
                          const char *reason)
{
    struct pool *pool = instance->pool;
    struct after after = {0};
    struct buf line = {0};
    buf_printf(&line, "%.*s could not be started: %s\n", SLICE_ARG(instance->function->name), reason);
    voice_output(instance, buf_view(&line));
    buf_free(&line);
    pool_lock(pool);
    if (!instance->is_stopping) instance_failed_to_start(instance, end, type, reason, SLICE_NONE, &after);
    instance_forget(instance, &after);
    pool_unlock(pool);
    after_do(pool, &after);
}

static void instance_run_process(struct instance *instance, const char *const *arguments, struct arena *arena)
{
    struct pool *pool = instance->pool;
    const struct function *function = instance->function;
    struct sandbox_program program = {
        .arguments = arguments,
        .folder = arena_copy(arena, function->folder).data,
        .memory_bytes = (uint64_t)function->memory_mb << 20,
        .output = voice_output,
        .ended = instance_ended,
        .context = instance,
    };
    instance_choose_storage(instance, &program, arena);
    program.environment = environment_make(pool->func, function, net_port_number(instance->port),
                                           &instance->keys, instance->stream, &program, arena);
    if (instance->debug_port)
        program.environment = debug_environment(program.environment, instance->debug_port, arena);
    struct sandboxed *process = sandbox_run(pool->func->options.sandbox, &program);
    pool_lock(pool);
    instance->process = process;
    instance_ask_arrivals(instance);
    if (instance->is_stopping && instance->state != INSTANCE_ENDED)
        sandbox_stop(process, instance->stop_grace_ms);
    pool_unlock(pool);
}

/* It was told to end before it began. */
static bool start_cancelled(struct instance *instance)
{
    struct after after = {0};
    pool_lock(instance->pool);
    bool cancelled = instance->is_stopping;
    if (cancelled) instance_forget(instance, &after);
    pool_unlock(instance->pool);
    after_do(instance->pool, &after);
    return cancelled;
}

/* An archive without a bootstrap fails, as on Lambda, for it will never have one. A folder may get it back
 * any moment, a machine its interpreter, and the server what somebody removed. */
static enum invocation_end end_without_command(const struct function *function, struct arena *arena)
{
    bool is_its_own = !runtime_is_concurrent(function->runtime) && !function->in_place;
    const char *folder = arena_copy(arena, function->folder).data;
    const char *layers = arena_copy(arena, function->layers).data;
    bool is_there = access(folder, X_OK) == 0 && (!*layers || access(layers, X_OK) == 0);
    return is_its_own && is_there ? INVOCATION_FAILED : INVOCATION_REFUSED;
}

void instance_start(struct instance *instance)
{
    struct func *func = instance->pool->func;
    struct arena arena = {0};
    char error[512] = "";
    if (start_cancelled(instance)) return;
    if (instance->function->in_place) watcher_add(instance->pool->watcher, instance->group);
    instance_keys_make(&instance->keys);
    instance->keyring = instance_keyring(&instance->keys, instance->function);
    const char *const *arguments = bootstrap_command(func, instance->function, &arena, error, sizeof error);
    if (arguments)
        instance->port = net_port_open(func->server,
                                       &(struct net_port_handler){.request = runtime_api_serve,
                                                                  .guard = instance_guard,
                                                                  .admit = instance_admits_head,
                                                                  .streams = runtime_streams,
                                                                  .piece = runtime_stream_piece,
                                                                  .torn = runtime_stream_torn,
                                                                  .context = instance},
                                       error, sizeof error);
    if (!arguments)
        start_refused(instance, end_without_command(instance->function, &arena), "Runtime.InvalidEntrypoint",
                      error);
    else if (!instance->port)
        start_refused(instance, INVOCATION_REFUSED, "ServiceException", error);
    else
        instance_run_process(instance, arguments, &arena);
    arena_free(&arena);
}

static void port_closed(void *context)
{
    struct instance *instance = context;
    struct pool *pool = instance->pool;
    pool_lock(pool);
    instance_drop(instance);
    pool_unlock(pool);
}

/* Those who still ask are turned away on this thread, so that nothing is on its way to a loop when the pool
 * ends. */
void instance_close(struct instance *instance)
{
    struct after after = {0};
    pool_lock(instance->pool);
    instance_abandon(instance, &after);
    pool_unlock(instance->pool);
    after_do(instance->pool, &after);
    if (instance->port)
        net_port_close(instance->port, port_closed);
    else
        port_closed(instance);
}

/* ---- the end ---- */

/* What Go says of signals, which is what Lambda shows. */
static const char *const signal_texts[] = {
    [1] = "hangup",
    [2] = "interrupt",
    [3] = "quit",
    [4] = "illegal instruction",
    [5] = "trace/breakpoint trap",
    [6] = "aborted",
    [7] = "bus error",
    [8] = "floating point exception",
    [9] = "killed",
    [10] = "user defined signal 1",
    [11] = "segmentation fault",
    [12] = "user defined signal 2",
    [13] = "broken pipe",
    [14] = "alarm clock",
    [15] = "terminated",
};
#define SIGNAL_TEXTS (int)(sizeof signal_texts / sizeof *signal_texts)
#define SIGNAL_KILL  9

struct ending {
    const char *type;
    char reason[256];
};

static struct ending ending_of(const struct sandbox_result *result)
{
    struct ending ending = {.type = "Runtime.ExitError"};
    int number = result->end == SANDBOX_SIGNALLED ? result->status : SIGNAL_KILL;
    const char *begin = "Runtime exited with error: ";
    char what[128] = "";
    switch (result->end) {
    case SANDBOX_EXITED:
        if (result->status)
            snprintf(what, sizeof what, "exit status %d", result->status);
        else
            begin = "Runtime exited without providing a reason";
        break;
    case SANDBOX_MEMORY: ending.type = "Runtime.OutOfMemory"; /* fall through */
    case SANDBOX_STOPPED:
    case SANDBOX_SIGNALLED:
        if (number > 0 && number < SIGNAL_TEXTS)
            snprintf(what, sizeof what, "signal: %s", signal_texts[number]);
        else
            snprintf(what, sizeof what, "signal %d", number);
        break;
    case SANDBOX_PROCESSES: snprintf(what, sizeof what, "too many processes"); break;
    case SANDBOX_STORAGE:
        ending.type = "Runtime.OutOfStorage";
        snprintf(what, sizeof what, "the files in its TMPDIR exceed its EphemeralStorage");
        break;
    case SANDBOX_UNSTARTED:
        ending.type = "Runtime.InvalidEntrypoint";
        begin = "The program could not be started: ";
        snprintf(what, sizeof what, "%s", strerror(result->status));
        break;
    }
    snprintf(ending.reason, sizeof ending.reason, "%s%s", begin, what);
    return ending;
}

/* It ended before it asked for an event. One that was told to end has not failed, unless it was told for
 * being late.
 */
static void fail_waiting(struct instance *instance, struct ending *ending, struct after *after)
{
    if (instance->has_asked || !instance->returning) return;
    if (instance->is_stopping && !instance->is_late) return;
    if (instance->is_late) {
        ending->type = "Sandbox.Timedout";
        snprintf(ending->reason, sizeof ending->reason, "Task timed out after %.2f seconds",
                 instance->function->timeout_ms / 1000.0);
    }
    instance_failed_to_start(instance, INVOCATION_FAILED, ending->type, ending->reason, SLICE_NONE, after);
}

void instance_ended(void *context, const struct sandbox_result *result)
{
    struct instance *instance = context;
    struct pool *pool = instance->pool;
    struct after after = {0};
    pool_lock(pool);
    struct ending ending = ending_of(result);
    /* All that ran in it. Those whose answer was decided (time-outs) keep it. */
    bool closing = instance->pool->is_closing;
    ring_each(struct run, run, link, &instance->running)
    {
        if (!run->is_decided) {
            run_fail(run, closing ? "ServiceException" : ending.type, "%s",
                     closing ? "The server is stopping" : ending.reason);
            if (closing) run->end = INVOCATION_REFUSED;
            run->status = "error";
        }
        run->memory_bytes = result->memory_bytes;
        voice_end(instance, run);
        run_leave(run, &after);
    }
    voice_flush(instance);
    fail_waiting(instance, &ending, &after);
    instance_forget(instance, &after);
    pool_unlock(pool);
    after_do(pool, &after);
}

void instance_failed_to_start(struct instance *instance, enum invocation_end end, const char *type,
                              const char *reason, struct slice posted, struct after *after)
{
    struct group *group = instance->group;
    unsigned slots = instance->returning;
    int64_t pause_ms = POOL_BACKOFF_MS;
    for (unsigned i = 0; i < group->failures && pause_ms < POOL_BACKOFF_MAX_MS; i++) pause_ms *= 2;
    if (pause_ms > POOL_BACKOFF_MAX_MS) pause_ms = POOL_BACKOFF_MAX_MS;
    instance->returning = 0;
    stats_add(&instance->pool->stats.failed_starts, 1);
    group->retry_us = monotonic_us() + pause_ms * 1000;
    if (group->failures++) slots = UINT32_MAX;
    group_start_failed(group, instance, slots, end, slice_of(type), slice_of(reason), posted, after);
}

void instance_forget(struct instance *instance, struct after *after)
{
    struct pool *pool = instance->pool;
    instance->state = INSTANCE_ENDED;
    pool->live_count--;
    if (instance->is_stopping) pool->ending_count--;
    ring_remove(&instance->ready);
    ring_remove(&instance->of_group);
    instance->group->used_us = monotonic_us();
    instance->group = NULL;
    pool_serve_hungry(pool, after);
    instance->next_chore = pool->to_close;
    pool->to_close = instance;
    pool_wake_by(pool, 0);
}
