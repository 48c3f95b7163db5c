/* Runs a flow on the caller's own thread, which waits: for targets of triggers (target.c), for `quipu cost`, and
 * for the sweeps of the library. The server and the library's calls run theirs without waiting (server.c). */
#include <time.h>

#include "pattern/internal.h"

#define SLEEP_MOST_MS 100  /* the clock may jump: look again */
#define POLL_LOCAL_MS 1000 /* one thread waits; threads of the same program may write */

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
        /* a signal's handler ran */
    }
}

static void call_make(struct pattern *pattern, struct flow *flow)
{
    struct buf body = {0};
    struct slice cause = flow->request ? flow->request->cause : SLICE_NONE; /* a sweep has none */
    int status = dynamo_call_wait(
        pattern->dynamo, &(struct dynamo_call){
                             .name = flow->operation, .request = flow->call, .cause = cause, .reply = &body});
    struct flow_reply reply = pattern_reply(flow->arena, status, buf_view(&body));
    buf_free(&body);
    flow_next(flow, clock_now_ms(pattern->clock), &reply);
}

/* Until the moment, or until it is time to look again. */
static void watch(struct pattern *pattern, struct flow *flow)
{
    int64_t poll_ms = pattern->world.poll_ms ? pattern->world.poll_ms : POLL_LOCAL_MS;
    int64_t end_us = monotonic_us() + poll_ms * 1000;
    int64_t until_ms = flow->change_ms < flow->until_ms ? flow->change_ms : flow->until_ms;
    flow_rest(flow);
    for (;;) {
        int64_t left_ms = until_ms - clock_now_ms(pattern->clock);
        int64_t rest_ms = (end_us - monotonic_us()) / 1000;
        if (rest_ms < left_ms) left_ms = rest_ms;
        if (left_ms <= 0) break;
        sleep_ms(left_ms < SLEEP_MOST_MS ? left_ms : SLEEP_MOST_MS);
    }
    flow_next(flow, clock_now_ms(pattern->clock), NULL);
}

/* False when nobody takes it any more. */
static bool piece_send(struct pattern *pattern, struct flow *flow, struct rest_call *call)
{
    call->content_type = flow->content_type;
    call->status = 200;
    if (!call->piece || !call->piece(call, flow->piece)) return false;
    flow_next(flow, clock_now_ms(pattern->clock), NULL);
    return true;
}

/* Until it is done; false: dropped, since nobody takes its pieces. call: NULL for a sweep. */
static bool see_through(struct pattern *pattern, struct flow *flow, struct rest_call *call)
{
    while (flow->want != FLOW_DONE) {
        if (flow->wakes) server_wake(pattern->server, flow->wakes);
        switch (flow->want) {
        case FLOW_CALL: call_make(pattern, flow); break;
        case FLOW_WATCH: watch(pattern, flow); break;
        case FLOW_PIECE:
            if (piece_send(pattern, flow, call)) break;
            flow_release(flow);
            return false;
        case FLOW_JOIN: flow_next(flow, clock_now_ms(pattern->clock), NULL); break;
        default: sleep_ms(flow->pause_ms); flow_next(flow, clock_now_ms(pattern->clock), NULL);
        }
    }
    if (flow->wakes) server_wake(pattern->server, flow->wakes);
    return true;
}

bool pattern_run(struct pattern *pattern, struct rest_call *call)
{
    bool refused;
    struct flow flow;
    const struct flow_row *row = pattern_find(pattern, call, &refused);
    if (!row) return refused;
    struct flow_start start = pattern_start_of(pattern, call->arena, call->reply);
    start.row = row;
    start.request = call;
    flow_begin(&flow, &start);
    if (see_through(pattern, &flow, call)) pattern_answer(&flow, call);
    return true;
}

/* A table that nobody has used yet has nothing that is due. */
int pattern_sweep(struct pattern *pattern, struct buf *reply)
{
    const struct flow_sweep *sweep;
    int status = 200;
    for (size_t i = 0; status == 200 && (sweep = sweep_at(i)); i++) {
        struct arena arena = {0};
        struct flow flow;
        size_t reply_len = reply->len;
        struct flow_start start = pattern_start_of(pattern, &arena, reply);
        flow_begin_sweep(&flow, &start, sweep);
        see_through(pattern, &flow, NULL);
        bool is_unused = slice_equal(flow.reply.error, SLICE("ResourceNotFoundException")) ||
                         slice_equal(flow.reply.error, SLICE(DYNAMO_NO_TRANSACTIONS));
        if (flow.status != 200 && !is_unused)
            status = flow.status;
        else
            reply->len = reply_len;
        arena_free(&arena);
    }
    return status;
}
