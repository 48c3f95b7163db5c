/* Jobs: server-sent events. A piece tells how far the job is whenever that has changed, at most twice a
 * second; the last one tells its end. After some minutes the stream ends and the browser comes back by
 * itself. */
#include "base/hash.h"
#include "pattern/job.h"
#include "pattern/rows.h"

#define PAUSE_MS  500
#define STREAM_MS (10 * 60 * 1000)

const struct field job_events_fields[] = {
    FIELD_JOB_ID,
    {"for", IN_QUERY, FIELD_DURATION, .min = 1, .max = STREAM_MS,
     .help = "how long the stream lasts (default: 10m)"},
};

static bool is_open(const struct job *job)
{
    return job->state == JOB_OPEN || job->state == JOB_CLOSING;
}

void job_events(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    int64_t until_ms = flow->now_ms + flow_int_or(flow, JOB_ID + 1, STREAM_MS);
    uint64_t last = 0; /* hash of the last piece; 0: none yet */
    for (;;) {
        flow_look(flow);
        job->has_counted = false;
        job_load_existing(flow);
        if (is_open(job)) job_count(flow, true);
        bool goes_on = is_open(job);
        struct slice text = job_describe(flow);
        uint64_t hash = hash_bytes(text) | 1;
        struct slice piece = arena_printf(flow->arena, "%sevent: %s\ndata: %.*s\n\n",
                                          last ? "" : "retry: 1000\n\n", goes_on ? "progress" : "end",
                                          SLICE_ARG(text));
        flow->content_type = SLICE("text/event-stream");
        if (!goes_on) {
            flow_answer(flow, 200, "%A", piece);
            return;
        }
        if (hash != last) task_piece(flow, piece);
        last = hash;
        task_sleep(flow, PAUSE_MS);
        if (flow->now_ms >= until_ms) {
            flow_finish(flow, 200);
            return;
        }
        job_wait_for_change(flow, job_progress_topic(job->id), until_ms);
    }
}
