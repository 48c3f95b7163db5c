/* A pattern of ours as a target: each record of the event is one call of it.
 *
 * Patterns wait for their calls of the door, so they run on threads of their own; how a record becomes a call
 * is the patterns' business (pattern_apply), which stands behind func_set_pattern, since functions know
 * nothing of them. */
#include "func/target.h"

struct pattern_call {
    struct invocation *invocation;
    struct slice pattern, body, cause;
};

static void run(void *context, void *job)
{
    struct func *func = context;
    struct pattern_call *own = job;
    struct invocation *invocation = own->invocation;
    struct buf reply = {0};
    bool fine = func->pattern(func->pattern_context, own->pattern, own->body, target_event(invocation),
                              own->cause, invocation->arena, &reply, &invocation->is_final);
    if (fine) {
        invocation->end = INVOCATION_ANSWERED;
        buf_slice(&invocation->reply, buf_view(&reply));
    } else {
        target_fail(invocation, "Target.PatternRefused", "%.*s", SLICE_ARG(buf_view(&reply)));
    }
    buf_free(&reply);
    invocation->done(invocation);
}

void target_pattern(struct func *func, const struct function *function, struct invocation *invocation)
{
    if (!func->pattern) {
        target_refuse(invocation, "this server calls no patterns");
        invocation->done(invocation);
        return;
    }
    struct pattern_call *own = arena_new(invocation->arena, struct pattern_call);
    own->invocation = invocation;
    own->pattern = arena_copy(invocation->arena, function->pattern);
    own->body = arena_copy(invocation->arena, function->body);
    own->cause = cause_add(invocation->arena, invocation->cause, function->name);
    workers_run(func->callers, run, func, own);
}

bool target_pattern_is_sound(struct func *func, struct slice pattern, struct slice body, struct arena *arena,
                             struct buf *why)
{
    if (func->pattern)
        return func->pattern(func->pattern_context, pattern, body, SLICE_NONE, SLICE_NONE, arena, why, NULL);
    buf_text(why, "this server calls no patterns");
    return false;
}
