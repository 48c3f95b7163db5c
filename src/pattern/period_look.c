/* Periods: looking at buckets, and waiting for the end of one. The tables and what holds for them: period.c.
 */
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/period.h"

#define EVENTS_MOST 1000 /* of a bucket that is not DONE */
#define LIST_MOST   1000
#define LIST_USUAL  100

/* ---- one bucket ---- */

enum { GET_BUCKET = PERIOD_NAME + 1, GET_PART, GET_WAIT };

const struct field period_get_fields[] = {
    FIELD_PERIOD,
    [GET_BUCKET] = {"bucket", IN_PATH, FIELD_NAME, true, .max = 40,
                    .help = "its begin, or any time within it; \"now\", \"last\": the one before"},
    [GET_PART] = {"part", IN_QUERY, FIELD_INT, .min = 1, .max = INT32_MAX,
                  .help = "of a large bucket that is DONE (default: 1)"},
    [GET_WAIT] = {"wait", IN_QUERY, FIELD_DURATION, .max = 60000, .help = "wait so long until it is DONE"},
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
    flow_refuse(flow, 400, "bad-request",
                "bucket must be a time like 2026-11-15T03:00:00Z, or \"now\", or \"last\".");
    task_end(flow);
}

static void put_head(struct flow *flow, const struct period *period, int64_t start_ms, struct slice bucket,
                     const char *state)
{
    struct slice end = item_text(flow->arena, bucket, "end");
    if (!end.data) end = moment_text(flow->arena, period_end(period, start_ms));
    flow_put(flow, flow->body, "{'period':%s,'bucket':%s,'end':%s,'state':%s", period->name,
             moment_text(flow->arena, start_ms), end, slice_of(state));
}

static void show_done(struct flow *flow, const struct period *period, int64_t start_ms, struct slice bucket)
{
    int64_t parts = item_int(flow->arena, bucket, "parts", 0), part = flow_int_or(flow, GET_PART, 1);
    struct slice number = SLICE(""), holder = bucket;
    if (part > parts) {
        flow_refuse(flow, 404, "no-such-part", "The bucket has %lld parts.", (long long)parts);
        return;
    }
    if (parts > 1) {
        task_call(flow, "GetItem", "{'TableName':%T,'Key':{'bucket':%S,'part':%N},'ConsistentRead':true}",
                  &period_parts, period_parts_key(flow, period, start_ms), part);
        holder = flow_item(flow);
        number = flow_compose(flow, ",'part':%d", part);
    }
    put_head(flow, period, start_ms, bucket, "DONE");
    flow_put(flow, flow->body, ",'count':%P,'parts':%d%A,'events':%P}",
             item_attribute(flow->arena, bucket, "count"), parts, number,
             item_attribute(flow->arena, holder, "events"));
    flow_finish(flow, 200);
}

static void put_event(struct flow *flow, struct slice item)
{
    flow_put(flow, flow->body, "{'id':%P,'time':%P%A,'data':%P}", item_attribute(flow->arena, item, "id"),
             item_attribute(flow->arena, item, "time"),
             item_has(flow->arena, item, "late") ? SLICE(",\"late\":true") : SLICE(""),
             item_attribute(flow->arena, item, "data"));
}

/* Of a bucket that is not DONE: what has come so far, up to a limit. */
static void show_open(struct flow *flow, const struct period *period, int64_t start_ms, const char *state)
{
    int64_t listed = 0;
    bool more = false;
    put_head(flow, period, start_ms, SLICE_NONE, state);
    buf_text(flow->body, ",\"events\":[");
    for (int64_t shard = 0; shard < period->shards && !more; shard++) {
        struct raw_look look;
        struct slice item;
        task_call(flow, "Query",
                  "{'TableName':%T,'KeyConditionExpression':'#bucket = :bucket',%#,"
                  "'ExpressionAttributeValues':{':bucket':%S},'ConsistentRead':true,'Limit':%d}",
                  &period_events, period_events_key(flow, period, start_ms, shard), EVENTS_MOST - listed + 1);
        more = flow_last_key(flow).data != NULL;
        raw_look_begin(&look, flow->arena, flow_items(flow));
        while (raw_look_next(&look, NULL, &item)) {
            if (listed == EVENTS_MOST) {
                more = true;
                break;
            }
            if (listed++) buf_byte(flow->body, ',');
            put_event(flow, item);
        }
    }
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
        task_call(flow, "GetItem", "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'ConsistentRead':true}",
                  &period_buckets, period.name, moment_text(flow->arena, start_ms));
        struct slice bucket = flow_item(flow);
        if (!bucket.data && start_ms != period_bucket(&period, time_ms)) {
            start_ms = period_bucket(&period, time_ms); /* not a begin: the one that it lies in */
            continue;
        }
        /* Nobody comes back to a bucket that is over and got nothing. */
        bool is_passed = !bucket.data && start_ms < period.closed_ms;
        if (item_says(flow->arena, bucket, "state", "DONE")) {
            show_done(flow, &period, start_ms, bucket);
            return;
        }
        if (flow->now_ms >= until_ms || is_passed) {
            show_open(flow, &period, start_ms, bucket.data ? "CLOSING" : is_passed ? "EMPTY" : "OPEN");
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
    [LIST_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                    .help = "at most so many (default: 100)"},
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 40, .help = "the \"next\" of the page before"},
};

static struct slice list_after(struct flow *flow)
{
    return flow_given(flow, LIST_AFTER) ? flow_text(flow, LIST_AFTER) : SLICE("0");
}

static void list_done(struct flow *flow, const struct period *period)
{
    struct raw_look look;
    struct slice item;
    bool first = true;
    task_call(
        flow, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#period = :period and #bucket > "
        ":after','FilterExpression':'#state = :done','ProjectionExpression':'#bucket, #state, #end, #count, "
        "#parts, #done',%#,'ExpressionAttributeValues':{':period':%S,':after':%S,':done':{'S':'DONE'}},"
        "'Limit':%d}",
        &period_buckets, period->name, list_after(flow), flow_int_or(flow, LIST_LIMIT, LIST_USUAL));
    struct slice last = flow_last_key(flow);
    buf_text(flow->body, "{\"buckets\":[");
    raw_look_begin(&look, flow->arena, flow_items(flow));
    for (; raw_look_next(&look, NULL, &item); first = false)
        flow_put(flow, flow->body, "%r{'bucket':%P,'state':%P,'end':%P,'count':%P,'parts':%P,'done':%P}",
                 first ? SLICE("") : SLICE(","), item_attribute(flow->arena, item, "bucket"),
                 item_attribute(flow->arena, item, "state"), item_attribute(flow->arena, item, "end"),
                 item_attribute(flow->arena, item, "count"), item_attribute(flow->arena, item, "parts"),
                 item_attribute(flow->arena, item, "done"));
    buf_text(flow->body, "]");
    if (last.data) flow_put(flow, flow->body, ",'next':%s", item_text(flow->arena, last, "bucket"));
    buf_text(flow->body, "}");
    flow_finish(flow, 200);
}

/* Each shard has its own gate of a bucket. */
static void list_open(struct flow *flow, const struct period *period)
{
    struct listing *buckets = listing_new(flow, flow_int_or(flow, LIST_LIMIT, LIST_USUAL));
    buckets->is_distinct = true;
    for (int64_t shard = 0; shard < period->shards; shard++) {
        task_call(
            flow, "Query",
            "{'TableName':%T,'IndexName':'pending','KeyConditionExpression':'#pending = :gate and #bucket > "
            ":after',%#,'ExpressionAttributeValues':{':gate':%S,':after':%S},'Limit':%d}",
            &period_gates, period_gate_key(flow, period, shard), list_after(flow), buckets->most + 1);
        listing_take(flow, buckets, "bucket", SLICE(""));
    }
    buf_text(flow->body, "{\"buckets\":[");
    for (int64_t i = 0; i < buckets->count; i++) {
        struct slice start = buckets->entries[i].order;
        int64_t start_ms = 0;
        moment_parse(start, &start_ms);
        flow_put(flow, flow->body, "%r{'bucket':%s,'state':'OPEN','end':%s}", i ? SLICE(",") : SLICE(""),
                 start, moment_text(flow->arena, period_end(period, start_ms)));
    }
    listing_finish(flow, buckets);
}

void period_list(struct flow *flow)
{
    struct period period;
    period_get(flow, &period);
    if (flow_int(flow, LIST_STATE) == 1)
        list_open(flow, &period);
    else
        list_done(flow, &period);
}
