/* Runs flows for callers who wait: of the library, of targets of triggers (target.c) and reactions (gather.c), of
 * `quipu cost`; and sweeps that somebody asks for.
 *
 * The caller lends its own thread, as a loop of the server does (pattern_host): it takes each step of its flow and
 * sleeps in between. So the calls of a program's threads wake each other (who waits for a lease gets it when it is
 * released) and share their work (appends to a log), as those of a server's clients do. */
#include <semaphore.h>

#include "base/fail.h"
#include "pattern/internal.h"

/* A thread that waits for its flow. */
struct caller {
    struct pattern_host host; /* first */
    struct dynamo_turn turn;
    sem_t called;              /* there is a task, or the flow has ended: one after the other, never both */
    struct pattern_task *task; /* a step to take; NULL: it has ended */
};

static struct caller *caller_of(const struct pattern_host *host)
{
    return (struct caller *)(uintptr_t)host;
}

static void caller_post(const struct pattern_host *host, struct rest_call *call, struct pattern_task *task)
{
    (void)call;
    caller_of(host)->task = task;
    sem_post(&caller_of(host)->called);
}

static struct dynamo_turn *caller_turn(const struct pattern_host *host, struct rest_call *call)
{
    (void)call;
    return &caller_of(host)->turn;
}

static void caller_open(struct caller *caller)
{
    *caller = (struct caller){.host = {.post = caller_post, .turn = caller_turn}};
    ensure(sem_init(&caller->called, 0, 0) == 0);
}

/* Takes the steps of the flow as they become due, until it has ended. */
static void caller_see_through(struct pattern *pattern, struct caller *caller)
{
    struct pattern_task *task;
    do {
        dynamo_turn_end(pattern->dynamo, &caller->turn);
        while (sem_wait(&caller->called) != 0) {
            /* a signal's handler ran */
        }
        task = caller->task;
        caller->task = NULL;
        if (task) task->run(task);
    } while (task);
}

bool pattern_run(struct pattern *pattern, struct rest_call *call)
{
    struct caller caller;
    caller_open(&caller);
    call->done = NULL;
    bool is_ours = pattern_serve_on(pattern, call, &caller.host);
    if (is_ours) caller_see_through(pattern, &caller);
    sem_destroy(&caller.called);
    return is_ours;
}

/* A table that nobody has used yet has nothing that is due. */
int pattern_sweep(struct pattern *pattern, struct buf *reply)
{
    const struct flow_sweep *sweep;
    int status = 200;
    for (size_t i = 0; status == 200 && (sweep = sweep_at(i)); i++) {
        struct arena arena = {0};
        struct caller caller;
        size_t reply_len = reply->len;
        caller_open(&caller);
        const struct flow *flow = server_sweep(pattern->server, sweep, &arena, reply, &caller.host);
        caller_see_through(pattern, &caller);
        sem_destroy(&caller.called);
        bool is_unused = slice_equal(flow->reply.error, SLICE("ResourceNotFoundException"));
        if (flow->status != 200 && !is_unused)
            status = flow->status;
        else
            reply->len = reply_len;
        arena_free(&arena);
    }
    return status;
}
