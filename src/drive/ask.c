/* Calls of patterns from tasks: made in this process, as whoever comes in by a socket makes them, with the host's
 * thread in the place of a loop's. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/fail.h"
#include "drive/internal.h"

struct ask {
    struct rest_call call; /* first: the patterns are given this */
    struct ring all;
    struct drive *drive;
    struct driven *driven;
    struct task_completion completion;
    struct task_note note;
    struct pattern_task *task;
    struct arena arena;
    struct buf reply;
    bool is_left;
};

/* ---- what patterns are lent ---- */

static void run_flow(struct task_note *note)
{
    struct ask *ask = ring_owner(note, struct ask, note);
    ask->task->run(ask->task);
}

static void post_flow(const struct pattern_host *host, struct rest_call *call, struct pattern_task *task)
{
    (void)host;
    struct ask *ask = (struct ask *)call;
    ask->task = task;
    ask->note.run = run_flow;
    task_host_post(ask->drive->host, &ask->note);
}

static struct dynamo_turn *turn_of(const struct pattern_host *host, struct rest_call *call)
{
    (void)host;
    return &((struct ask *)call)->drive->turn;
}

const struct pattern_host drive_pattern_host = {.post = post_flow, .turn = turn_of};

/* ---- a call ---- */

static struct slice no_header(const struct rest_call *call, struct slice name)
{
    (void)call, (void)name;
    return SLICE_NONE;
}

static bool is_gone(const struct rest_call *call)
{
    return ((const struct ask *)call)->is_left;
}

static void ask_done(struct rest_call *call)
{
    task_completion_done(&((struct ask *)call)->completion);
}

static void ask_free(struct ask *ask)
{
    ring_remove(&ask->all);
    buf_free(&ask->reply);
    arena_free(&ask->arena);
    free(ask);
}

static void ask_release(struct task_completion *completion)
{
    ask_free(ring_owner(completion, struct ask, completion));
}

static void ask_serve(void *argument)
{
    struct ask *ask = argument;
    ask->drive->outside.serve(ask->drive->outside.self, &ask->call);
}

struct drive_reply drive_ask(struct drive *drive, struct driven *driven, const char *method,
                             struct slice path, struct slice body)
{
    if (drive->is_ending) return (struct drive_reply){0, SLICE("")};
    struct ask *ask = must_zero(1, sizeof *ask);
    const char *query = memchr(path.data, '?', path.len);
    ask->drive = drive;
    ask->driven = driven;
    ask->call = (struct rest_call){.method = slice_of(method),
                                   .path = arena_copy(&ask->arena, path),
                                   .body = arena_copy(&ask->arena, body),
                                   .header = no_header,
                                   .gone = is_gone,
                                   .arena = &ask->arena,
                                   .done = ask_done,
                                   .reply = &ask->reply};
    if (query) {
        ask->call.query = slice_from(ask->call.path, (size_t)(query - path.data) + 1);
        ask->call.path.len = (size_t)(query - path.data);
    }
    ring_append(&drive->asks, &ask->all);
    task_completion_begin(&ask->completion, ask_release);
    task_outside(ask_serve, ask);
    task_await_completion(&ask->completion, TASK_NEVER);
    struct drive_reply reply = {ask->call.status, arena_copy(task_arena(), buf_view(&ask->reply))};
    ask_free(ask);
    return reply;
}

void drive_leave(struct drive *drive, const struct driven *driven)
{
    ring_each(struct ask, ask, all, &drive->asks)
    {
        if (driven && ask->driven != driven) continue;
        ask->is_left = true;
        if (ask->call.left) ask->call.left(&ask->call);
    }
}

struct slice drive_path(struct arena *arena, const char *format, ...)
{
    struct buf out = {0};
    va_list args;
    va_start(args, format);
    for (const char *at = format; *at; at++) {
        if (at[0] != '%' || at[1] != 'n') {
            buf_byte(&out, (unsigned char)*at);
            continue;
        }
        rest_encode(&out, va_arg(args, struct slice));
        at++;
    }
    va_end(args);
    return arena_take(arena, &out);
}
