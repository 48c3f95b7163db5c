/* Periods: looking at a bucket, and waiting for its end. */
#include "calendar/calendar.h"
#include "pattern/period.h"

#define LIST_MOST 1000

/* ---- looking ---- */

enum { GET_BUCKET = PERIOD_NAME + 1, GET_PART, GET_WAIT };

const struct field period_get_fields[] = {
    FIELD_PERIOD,
    [GET_BUCKET] = {"bucket", IN_PATH, FIELD_NAME, true, .max = 40,
                    .help = "its begin, or any time within it; \"now\", \"last\": the one before"},
    [GET_PART] = {"part", IN_QUERY, FIELD_INT, .min = 1, .max = INT32_MAX,
                  .help = "of a large bucket that is DONE; 1"},
    [GET_WAIT] = {"wait", IN_QUERY, FIELD_DURATION, .max = 60000, .help = "wait so long until it is DONE"},
};

struct get {
    struct period period;
    struct slice bucket; /* item */
    int64_t start_ms, until_ms, shard, listed;
};

static flow_step get_taken, get_ask, get_bucket, get_listed, get_part;

static bool get_start(struct flow *flow, struct get *get)
{
    struct slice text = flow_text(flow, GET_BUCKET);
    int64_t time_ms = flow->now_ms;
    bool is_last = slice_equal(text, SLICE("last"));
    if (!is_last && !slice_equal(text, SLICE("now")) && (!moment_parse(text, &time_ms) || time_ms < 0)) {
        flow_refuse(flow, 400, "bad-request",
                    "bucket must be a time like 2026-11-15T03:00:00Z, or \"now\", or \"last\".");
        return false;
    }
    get->start_ms = period_start(&get->period, time_ms);
    if (is_last && get->start_ms > 0) get->start_ms = period_start(&get->period, get->start_ms - 1);
    return true;
}

void period_get_begin(struct flow *flow)
{
    struct get *get = flow->state = arena_new(flow->arena, struct get);
    get->until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    period_ask(flow, flow_text(flow, PERIOD_NAME), get_taken);
}

static void get_taken(struct flow *flow)
{
    struct get *get = flow->state;
    if (period_take(flow, flow_text(flow, PERIOD_NAME), flow_item(flow), &get->period) &&
        get_start(flow, get))
        get_ask(flow);
}

static void get_ask(struct flow *flow)
{
    const struct get *get = flow->state;
    flow_call(flow, get_bucket, "GetItem",
              "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'ConsistentRead':true}", &period_buckets,
              get->period.name, moment_text(flow->arena, get->start_ms));
}

static void put_head(struct flow *flow, const char *state)
{
    const struct get *get = flow->state;
    buf_slice(flow->body, flow_compose(flow, "{'period':%s,'bucket':%s,'end':%s,'state':%s", get->period.name,
                                       moment_text(flow->arena, get->start_ms),
                                       moment_text(flow->arena, period_end(&get->period, get->start_ms)),
                                       slice_of(state)));
}

static void get_done(struct flow *flow, struct slice item)
{
    struct get *get = flow->state;
    int64_t parts = item_int(flow->arena, item, "parts", 0), part = flow_int_or(flow, GET_PART, 1);
    get->bucket = item;
    if (part > parts) {
        flow_refuse(flow, 404, "no-such-part", "The bucket has %lld parts.", (long long)parts);
        return;
    }
    if (parts > 1) {
        flow_call(flow, get_part, "GetItem", "{'TableName':%T,'Key':{'bucket':%S,'part':%N}}", &period_parts,
                  period_parts_key(flow, &get->period, get->start_ms), part);
        return;
    }
    put_head(flow, "DONE");
    buf_slice(flow->body, flow_compose(flow, ",'count':%P,'parts':%d,'events':%P}",
                                       item_attribute(flow->arena, item, "count"), parts,
                                       item_attribute(flow->arena, item, "events")));
    flow_finish(flow, 200);
}

static void get_part(struct flow *flow)
{
    const struct get *get = flow->state;
    put_head(flow, "DONE");
    buf_slice(flow->body,
              flow_compose(flow, ",'count':%P,'parts':%P,'part':%d,'events':%P}",
                           item_attribute(flow->arena, get->bucket, "count"),
                           item_attribute(flow->arena, get->bucket, "parts"), flow_int_or(flow, GET_PART, 1),
                           item_attribute(flow->arena, flow_item(flow), "events")));
    flow_finish(flow, 200);
}

static void get_list(struct flow *flow)
{
    const struct get *get = flow->state;
    flow_call(flow, get_listed, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#bucket = "
              ":bucket',%#,'ExpressionAttributeValues':{':bucket':%S},"
              "'ConsistentRead':true,'Limit':%d}",
              &period_events, period_events_key(flow, &get->period, get->start_ms, get->shard),
              LIST_MOST - get->listed);
}

static void get_bucket(struct flow *flow)
{
    struct get *get = flow->state;
    struct slice item = flow_item(flow);
    if (item_says(flow->arena, item, "state", "DONE")) {
        get_done(flow, item);
    } else if (flow->now_ms < get->until_ms) {
        flow_watch(flow, period_topic(get->period.name), get->until_ms, get_ask);
    } else {
        put_head(flow, item.data ? "CLOSING" : "OPEN");
        buf_text(flow->body, ",\"events\":[");
        get_list(flow);
    }
}

/* Of one that is not DONE: what has come so far, up to a limit. */
static void get_listed(struct flow *flow)
{
    struct get *get = flow->state;
    struct raw_walk walk;
    struct slice item;
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    for (; raw_walk_next(&walk, NULL, &item); get->listed++)
        buf_slice(flow->body,
                  flow_compose(flow, "%A{'id':%P,'time':%P%A,'data':%P}",
                               get->listed ? SLICE(",") : SLICE(""), item_attribute(flow->arena, item, "id"),
                               item_attribute(flow->arena, item, "time"),
                               item_has(flow->arena, item, "late") ? SLICE(",\"late\":true") : SLICE(""),
                               item_attribute(flow->arena, item, "data")));
    if (++get->shard < get->period.shards && get->listed < LIST_MOST) {
        get_list(flow);
        return;
    }
    buf_text(flow->body, "]}");
    flow_finish(flow, 200);
}
