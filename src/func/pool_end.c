/* The end of a process: what its invocations are told, and who comes next. */
#include <stdio.h>
#include <string.h>

#include "func/pool.h"

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

static void ending_by_signal(struct ending *ending, int number)
{
    if (number > 0 && number < SIGNAL_TEXTS)
        snprintf(ending->reason, sizeof ending->reason, "Runtime exited with error: signal: %s",
                 signal_texts[number]);
    else
        snprintf(ending->reason, sizeof ending->reason, "Runtime exited with error: signal %d", number);
}

static void ending_by_exit(struct ending *ending, int status)
{
    if (status)
        snprintf(ending->reason, sizeof ending->reason, "Runtime exited with error: exit status %d", status);
    else
        snprintf(ending->reason, sizeof ending->reason, "Runtime exited without providing a reason");
}

static struct ending ending_of(const struct sandbox_result *result)
{
    struct ending ending = {.type = "Runtime.ExitError"};
    switch (result->end) {
    case SANDBOX_EXITED: ending_by_exit(&ending, result->status); break;
    case SANDBOX_SIGNALLED: ending_by_signal(&ending, result->status); break;
    case SANDBOX_STOPPED: ending_by_signal(&ending, SIGNAL_KILL); break;
    case SANDBOX_MEMORY:
        ending.type = "Runtime.OutOfMemory";
        ending_by_signal(&ending, SIGNAL_KILL);
        break;
    case SANDBOX_PROCESSES:
        snprintf(ending.reason, sizeof ending.reason, "Runtime exited with error: too many processes");
        break;
    case SANDBOX_STORAGE:
        ending.type = "Runtime.OutOfStorage";
        snprintf(ending.reason, sizeof ending.reason,
                 "Runtime exited with error: the files in its TMPDIR exceed its EphemeralStorage");
        break;
    case SANDBOX_UNSTARTED:
        ending.type = "Runtime.InvalidEntrypoint";
        snprintf(ending.reason, sizeof ending.reason, "The program could not be started: %s",
                 strerror(result->status));
        break;
    }
    return ending;
}

/* All that ran in it. Those whose answer was decided (time-outs) keep it. */
static void fail_running(struct instance *instance, const struct ending *ending, uint64_t memory_bytes,
                         struct after *after)
{
    bool closing = instance->pool->is_closing;
    ring_each(struct run, run, link, &instance->running)
    {
        if (!run->is_decided) {
            run_fail(run, closing ? "ServiceException" : ending->type, "%s",
                     closing ? "The server is stopping" : ending->reason);
            if (closing) run->end = INVOCATION_REFUSED;
            run->status = "error";
        }
        run->memory_bytes = memory_bytes;
        voice_end(instance, run);
        run_leave(run, after);
    }
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
    fail_running(instance, &ending, result->memory_bytes, &after);
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
