/* Calls of targets from tasks. */
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/stats.h"
#include "drive/internal.h"

#define FIRST_PAUSE_MS 100
#define REASON_BYTES   4000 /* what a pattern keeps of a failure, and a little less */

struct drive_call {
    struct ring all;
    struct drive *drive;
    struct task_completion completion;
    struct invocation invocation;
    struct arena arena;
};

static void call_free(struct drive_call *call)
{
    ring_remove(&call->all);
    buf_free(&call->invocation.reply);
    buf_free(&call->invocation.log);
    arena_free(&call->arena);
    free(call);
}

/* Perhaps after the drive, on the thread that ends the call: it is in no list then. */
static void call_release(struct task_completion *completion)
{
    call_free(ring_owner(completion, struct drive_call, completion));
}

static void invocation_done(struct invocation *invocation)
{
    task_completion_done(&((struct drive_call *)invocation->context)->completion);
}

static void invoke(void *argument)
{
    struct drive_call *call = argument;
    call->drive->outside.invoke(call->drive->outside.self, &call->invocation);
}

struct drive_call *drive_call_begin(struct driven *driven, struct slice payload)
{
    struct drive *drive = driven->drive;
    struct drive_call *call = must_zero(1, sizeof *call);
    call->drive = drive;
    call->invocation = (struct invocation){.function = arena_copy(&call->arena, driven->target),
                                           .payload = arena_copy(&call->arena, payload),
                                           .timeout_ms = (uint32_t)driven->timeout_ms,
                                           .arena = &call->arena,
                                           .done = invocation_done,
                                           .context = call};
    ring_append(&drive->calls, &call->all);
    stats_add(&drive->calls_total, 1);
    stats_add(&drive->running, 1);
    task_completion_begin(&call->completion, call_release);
    task_outside(invoke, call);
    return call;
}

static struct slice cut(struct slice text, size_t most)
{
    if (text.len <= most) return text;
    text.len = most;
    while (text.len && !utf8_valid(text)) text.len--; /* a character that was cut in two */
    return text;
}

/* "errorType: errorMessage", as far as there are such. */
static struct slice reason_of(const struct invocation *invocation, struct arena *arena)
{
    struct slice reply = buf_view(&invocation->reply), type = SLICE_NONE, message = SLICE_NONE;
    if (raw_is_json(arena, reply) && raw_kind(reply) == JSON_OBJECT) {
        type = raw_text(arena, raw_member(arena, reply, "errorType"));
        message = raw_text(arena, raw_member(arena, reply, "errorMessage"));
    }
    if (!type.len && !message.len)
        return arena_copy(arena, cut(utf8_valid(reply) ? reply : SLICE("it failed"), REASON_BYTES));
    return cut(arena_printf(arena, "%.*s%s%.*s", SLICE_ARG(type), type.len && message.len ? ": " : "",
                            SLICE_ARG(message)),
               REASON_BYTES);
}

/* JSON as it is; other text as a string; nothing as null. */
static struct slice result_of(const struct invocation *invocation, struct arena *arena)
{
    struct slice reply = buf_view(&invocation->reply);
    if (!reply.len) return SLICE("null");
    if (raw_is_json(arena, reply)) return arena_copy(arena, reply);
    return compose_in(arena, "%s", utf8_valid(reply) ? reply : SLICE("(not UTF-8)"));
}

static struct drive_outcome outcome_of(const struct invocation *invocation, struct arena *arena)
{
    struct slice effects;
    uint32_t count;
    char error[256];
    switch (invocation->end) {
    case INVOCATION_ANSWERED: break;
    case INVOCATION_FAILED:
        return (struct drive_outcome){DRIVE_FAILED, reason_of(invocation, arena), invocation->is_final,
                                      false};
    case INVOCATION_UNKNOWN:
        return (struct drive_outcome){
            .end = DRIVE_FAILED,
            .text = arena_printf(arena, "There is no function %.*s.", SLICE_ARG(invocation->function)),
            .is_unknown = true};
    case INVOCATION_THROTTLED:
        return (struct drive_outcome){DRIVE_NOT_RUN, SLICE("there was no process to be had"), false, false};
    case INVOCATION_REFUSED:
        return (struct drive_outcome){DRIVE_NOT_RUN, reason_of(invocation, arena), false, false};
    }
    if (func_effects(buf_view(&invocation->reply), LIMIT_EFFECTS, arena, &effects, &count, error,
                     sizeof error) != EFFECTS_NONE)
        return (struct drive_outcome){
            DRIVE_FAILED,
            SLICE("The returned writes were not applied: only functions of triggers and asynchronous "
                  "calls may return writes (quipu.transact)."),
            true, false};
    return (struct drive_outcome){DRIVE_ANSWERED, result_of(invocation, arena), false, false};
}

bool drive_call_await(struct drive_call *call, struct task_moment until, struct drive_outcome *outcome)
{
    if (!task_await_completion(&call->completion, until)) return false;
    *outcome = outcome_of(&call->invocation, task_arena());
    if (outcome->end == DRIVE_FAILED) stats_add(&call->drive->failures_total, 1);
    atomic_fetch_sub(&call->drive->running, 1);
    call_free(call);
    return true;
}

void drive_calls_abandon(struct drive *drive)
{
    ring_each(struct drive_call, call, all, &drive->calls)
    {
        ring_remove(&call->all);
        task_completion_abandon(&call->completion);
    }
}

int64_t drive_pause_us(struct drive *drive, unsigned tries)
{
    int64_t pause_ms = FIRST_PAUSE_MS;
    for (; tries > 1 && pause_ms < LIMIT_DRIVE_PAUSE_MS; tries--) pause_ms *= 2;
    if (pause_ms > LIMIT_DRIVE_PAUSE_MS) pause_ms = LIMIT_DRIVE_PAUSE_MS;
    uint64_t part = random_below(task_host_random(drive->host), (uint64_t)pause_ms * 500 + 1);
    return pause_ms * 1000 - (int64_t)part; /* between half and all of it, so that a herd spreads */
}
