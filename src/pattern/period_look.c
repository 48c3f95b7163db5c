/* Periods: looking at buckets, and waiting for the end of one. The tables and what holds for them: period.c.
 */
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/period.h"

#define EVENTS_MOST 1000 /* of a bucket that is not DONE */

/* ---- one bucket ---- */

enum { GET_BUCKET = PERIOD_NAME + 1, GET_PART, GET_WAIT };

const struct field period_get_fields[] = {
    FIELD_PERIOD,
    [GET_BUCKET] = {"bucket", IN_PATH, FIELD_NAME, true, .max = 40,
                    .help = "its begin, or any time within it; \"now\", \"last\": the one before"},
    [GET_PART] = {"part", IN_QUERY, FIELD_INT, .min = 1, .max = INT32_MAX,
                  .help = "of a large bucket that is DONE (default: 1)"},
    [GET_WAIT] = FIELD_WAIT(IN_QUERY, "wait so long until it is DONE"),
};

static int64_t time_asked(struct flow *flow, const struct period *period)
{
    struct slice text = flow_text(flow, GET_BUCKET);
    int64_t time_ms = flow->now_ms;
    if (slice_equal(text, SLICE("now"))) return time_ms;
    if (slice_equal(text, SLICE("last"))) {
        int64_t start_ms = period_bucket(period, time_ms);
        return start_ms > 0 ? start_ms - 1 : 0;
    }
    if (moment_parse(text, &time_ms) && time_ms >= 0) return time_ms;
    task_refuse(flow, 400, "bad-request",
                "bucket must be a time like 2026-11-15T03:00:00Z, or \"now\", or \"last\".");
}

static void put_head(struct flow *flow, const struct period *period, int64_t start_ms, struct slice bucket,
                     const char *state)
{
    struct slice end = item_text(flow->arena, bucket, "end");
    if (!end.data) end = moment_text(flow->arena, period_end(period, start_ms));
    flow_put(flow, flow->body, "{'period':%s,'bucket':%s,'end':%s,'state':%s", period->name,
             moment_text(flow->arena, start_ms), end, slice_of(state));
}

static void put_event(struct flow *flow, struct slice value)
{
    struct slice event = attribute_content(flow->arena, value);
    flow_put(flow, flow->body, "%,{'id':%P,'time':%P%[%?,'late':true%],'data':%P}",
             item_attribute(flow->arena, event, "id"), item_attribute(flow->arena, event, "time"),
             item_has(flow->arena, event, "late"), item_attribute(flow->arena, event, "data"));
}

/* Appends the events to the body, from this one on, `most` at the most; `more`, unless NULL, tells whether there are
 * others. */
static void put_events(struct flow *flow, const struct period *period, int64_t start_ms, int64_t shards,
                       int64_t shard, int64_t from, int64_t most, bool *more)
{
    int64_t count = 0, wanted = most + (more != NULL);
    for (; shard < shards && count < wanted; shard++, from = 1) {
        struct chain chain = period_chain(flow, period, start_ms, shard);
        struct chain_reader reader = {.chain = &chain, .from = from, .most = wanted - count, .rewinds = true};
        while (chain_read(flow, &reader)) {
            if (count++ == most) {
                *more = true;
                break;
            }
            put_event(flow, reader.value);
        }
    }
}

static void show_done(struct flow *flow, const struct period *period, int64_t start_ms, struct slice bucket)
{
    int64_t parts = item_int(flow->arena, bucket, "parts", 0), part = flow_int_or(flow, GET_PART, 1);
    if (part > parts) task_refuse(flow, 404, "no-such-part", "The bucket has %lld parts.", (long long)parts);
    put_head(flow, period, start_ms, bucket, "DONE");
    flow_put(flow, flow->body, ",'count':%P,'parts':%d", item_attribute(flow->arena, bucket, "count"), parts);
    if (parts > 1) {
        struct slice place = task_get(flow, &period_parts, "{'bucket':%S,'part':%N}",
                                      period_parts_key(flow, period, start_ms), part);
        flow_put(flow, flow->body, ",'part':%d,'events':[", part);
        put_events(flow, period, start_ms, item_int(flow->arena, bucket, "shards", period->shards),
                   item_int(flow->arena, place, "shard", 0), item_int(flow->arena, place, "first", 1),
                   item_int(flow->arena, place, "count", 0), NULL);
        buf_text(flow->body, "]}");
    } else {
        flow_put(flow, flow->body, ",'events':%P}", item_attribute(flow->arena, bucket, "events"));
    }
    flow_finish(flow, 200);
}

/* Of a bucket that is not DONE: what has come so far, up to a limit. */
static void show_open(struct flow *flow, const struct period *period, int64_t start_ms, struct slice bucket,
                      const char *state)
{
    bool more = false;
    put_head(flow, period, start_ms, SLICE_NONE, state);
    buf_text(flow->body, ",\"events\":[");
    put_events(flow, period, start_ms, item_int(flow->arena, bucket, "shards", 0), 0, 1, EVENTS_MOST, &more);
    buf_slice(flow->body, more ? SLICE("],\"more\":true}") : SLICE("]}"));
    flow_finish(flow, 200);
}

void period_show(struct flow *flow)
{
    struct slice text = flow_text(flow, GET_BUCKET);
    bool is_begin = !slice_equal(text, SLICE("now")) && !slice_equal(text, SLICE("last"));
    int64_t until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0), time_ms = -1, start_ms = -1;
    struct period period;
    for (;;) {
        flow_look(flow);
        period_get(flow, &period);
        if (start_ms < 0) {
            time_ms = time_asked(flow, &period);
            start_ms = is_begin ? time_ms : period_bucket(&period, time_ms);
        }
        struct slice bucket = period_bucket_read(flow, &period, start_ms);
        if (!bucket.data && start_ms != period_bucket(&period, time_ms)) {
            start_ms = period_bucket(&period, time_ms); /* not a begin: the one that it lies in */
            continue;
        }
        if (item_says(flow->arena, bucket, "state", "DONE")) {
            show_done(flow, &period, start_ms, bucket);
            return;
        }
        /* Nobody comes back to a bucket that is over and got nothing. */
        bool is_closed = start_ms < period.closed_ms,
             is_empty = is_closed && (!bucket.data || start_ms < period.done_ms);
        if (flow->now_ms >= until_ms || is_empty) {
            show_open(flow, &period, start_ms, bucket, is_empty ? "EMPTY" : is_closed ? "CLOSING" : "OPEN");
            return;
        }
        task_watch(flow, period_topic(period.name), flow_thing("period", period.name), until_ms);
    }
}

/* ---- many ---- */

enum { LIST_STATE = PERIOD_NAME + 1, LIST_LIMIT, LIST_AFTER };

const struct field period_list_fields[] = {
    FIELD_PERIOD,
    [LIST_STATE] = {"state", IN_QUERY, FIELD_CHOICE, .words = "done|open",
                    .help = "open: with events, and not handed over yet (default: done)"},
    [LIST_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 40, .help = "the \"next\" of the page before"},
};

/* What is OPEN before `done` got nothing, and never will. */
void period_list(struct flow *flow)
{
    struct period period;
    struct slice item, after = flow_text_or(flow, LIST_AFTER, SLICE("0"));
    bool is_open = flow_int(flow, LIST_STATE) == 1;
    period_get(flow, &period);
    if (is_open && period.done_ms > 0) {
        struct slice before = moment_text(flow->arena, period.done_ms - 1);
        if (slice_compare(after, before) < 0) after = before;
    }
    task_query(
        flow, "#period = :period and #bucket > :after",
        ",'FilterExpression':'#state = :state'"
        ",'ProjectionExpression':'#bucket, #state, #end, #count, #parts, #done','Limit':%d,'ConsistentRead':%b",
        "':period':%S,':after':%S,':state':%S", &period_buckets, flow_int_or(flow, LIST_LIMIT, LIST_USUAL),
        (int)is_open, period.name, after, is_open ? SLICE("OPEN") : SLICE("DONE"));
    buf_text(flow->body, "{\"buckets\":[");
    raw_each (flow->arena, flow_items(flow), &item) {
        struct slice start = item_text(flow->arena, item, "bucket");
        int64_t start_ms = 0;
        moment_parse(start, &start_ms);
        flow_put(flow, flow->body, "%,{'bucket':%s", start);
        plain_put_members(flow->body, flow->arena, item, is_open ? "state" : "state end count parts done");
        flow_put(flow, flow->body, "%[%?,'end':%s%]}", is_open,
                 moment_text(flow->arena, period_end(&period, start_ms)));
    }
    page_finish(flow, item_text(flow->arena, flow_last_key(flow), "bucket"));
}
