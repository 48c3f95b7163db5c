/* Each thread scans a segment of its own. A page that fails for a reason that passes is asked for again, so
 * that throttling makes it slower and nothing else. */
#include "cli/sweep.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/fail.h"

#define ATTEMPTS_IN_VAIN 40 /* in a row: some minutes */
#define TICK_MS          100

struct segment {
    struct sweep_state *state;
    unsigned number;
    pthread_t thread;
};

struct sweep_state {
    const struct sweep *sweep;
    atomic_ullong items;
    atomic_uint running;
    atomic_bool has_failed;
};

static struct quipu_pages *open_segment(const struct segment *segment)
{
    const struct sweep *sweep = segment->state->sweep;
    struct buf request = {0};
    request_begin(&request, sweep->table);
    buf_text(&request, ",\"ConsistentRead\":true");
    if (sweep->segments > 1)
        buf_printf(&request, ",\"Segment\":%u,\"TotalSegments\":%u", segment->number, sweep->segments);
    if (sweep->projection) buf_slice(&request, slice_of(sweep->projection));
    buf_byte(&request, '}');
    buf_byte(&request, 0);
    struct quipu_pages *pages = quipu_pages_open(sweep->place->db, "Scan", request.data);
    buf_free(&request);
    return pages;
}

/* True when the failure may pass and was waited for. */
static bool waits_for_better(const struct segment *segment, const struct quipu_pages *pages,
                             unsigned *in_vain)
{
    const struct sweep *sweep = segment->state->sweep;
    const struct quipu_reply *reply = quipu_pages_reply(pages);
    if (error_may_pass(reply->error) && *in_vain < ATTEMPTS_IN_VAIN) {
        pause_before_retry((*in_vain)++);
        return true;
    }
    if (!atomic_exchange(&segment->state->has_failed, true))
        place_complain(sweep->place, sweep->table, reply->error, reply->message);
    return false;
}

static void *run_segment(void *context)
{
    struct segment *segment = context;
    struct sweep_state *state = segment->state;
    struct quipu_pages *pages = open_segment(segment);
    const char *json;
    size_t len;
    unsigned in_vain = 0;
    while (!atomic_load(&state->has_failed)) {
        enum quipu_result result = quipu_pages_next(pages, &json, &len);
        if (result == QUIPU_NONE) break;
        if (result == QUIPU_FAILED) {
            if (!waits_for_better(segment, pages, &in_vain)) break;
            continue;
        }
        in_vain = 0;
        if (!state->sweep->take(state->sweep->context, (struct slice){json, len}))
            atomic_store(&state->has_failed, true);
        atomic_fetch_add(&state->items, 1);
    }
    quipu_pages_close(pages);
    atomic_fetch_sub(&state->running, 1);
    return NULL;
}

bool sweep_run(const struct sweep *sweep)
{
    struct sweep_state state = {.sweep = sweep, .running = sweep->segments};
    struct segment *segments = must_zero(sweep->segments, sizeof *segments);
    for (unsigned i = 0; i < sweep->segments; i++) {
        segments[i] = (struct segment){.state = &state, .number = i};
        ensure(pthread_create(&segments[i].thread, NULL, run_segment, &segments[i]) == 0);
    }
    while (sweep->tick && atomic_load(&state.running)) {
        sweep->tick(sweep->context, atomic_load(&state.items));
        nanosleep(&(struct timespec){0, TICK_MS * 1000000}, NULL);
    }
    for (unsigned i = 0; i < sweep->segments; i++) pthread_join(segments[i].thread, NULL);
    if (sweep->tick) sweep->tick(sweep->context, atomic_load(&state.items));
    free(segments);
    return !atomic_load(&state.has_failed);
}
