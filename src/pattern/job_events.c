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
    {"for", IN_QUERY, FIELD_DURATION, .min = 1, .max = STREAM_MS, .help = "how long the stream lasts (default: 10m)"},
};

struct events {
    int64_t until_ms;
    uint64_t told; /* hash of the last piece; 0: none yet */
};

static flow_step events_begin, events_ask, events_loaded, events_counted, events_wait;

void job_events(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct events *events = work->own = arena_new(flow->arena, struct events);
    events->until_ms = flow->now_ms + flow_int_or(flow, JOB_ID + 1, STREAM_MS);
    events_begin(flow);
}

static void events_begin(struct flow *flow)
{
    flow_look(flow);
    events_ask(flow);
}

static void events_ask(struct flow *flow)
{
    job_load(flow, true, events_loaded);
}

static bool is_open(const struct job *job)
{
    return job->state == JOB_OPEN || job->state == JOB_CLOSING;
}

static void events_tell(struct flow *flow, int64_t missing)
{
    struct job_work *work = flow->state;
    struct events *events = work->own;
    struct slice job = job_describe(flow, missing);
    bool open = is_open(&work->job);
    uint64_t hash = hash_bytes(job) | 1;
    struct slice piece = arena_printf(flow->arena, "%sevent: %s\ndata: %.*s\n\n",
                                      events->told ? "" : "retry: 1000\n\n", open ? "progress" : "end",
                                      SLICE_ARG(job));
    bool is_news = events->told != hash;
    flow->content_type = SLICE("text/event-stream");
    events->told = hash;
    if (!open) {
        flow_answer(flow, 200, "%A", piece);
    } else if (is_news) {
        flow_piece(flow, piece, events_wait);
    } else {
        events_wait(flow);
    }
}

static void events_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    if (!job->item.data || job->state == JOB_DELETING)
        job_refuse_unknown(flow);
    else if (is_open(job))
        job_count(flow, events_counted);
    else
        events_tell(flow, -1);
}

static void events_counted(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (is_open(&work->job))
        events_tell(flow, work->walk.missing);
    else
        events_ask(flow);
}

static void events_look(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct events *events = work->own;
    if (flow->now_ms >= events->until_ms)
        flow_finish(flow, 200);
    else
        job_news_watch(flow, flow_topic("job progress", work->id, SLICE("")), events->until_ms, events_begin);
}

static void events_wait(struct flow *flow)
{
    flow_pause(flow, PAUSE_MS, events_look);
}
