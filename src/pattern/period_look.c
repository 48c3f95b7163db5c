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

struct get {
    struct period period;
    struct slice bucket; /* item */
    int64_t start_ms;    /* -1: not known yet */
    int64_t time_ms;     /* within it; it may be the begin of one that was made by other settings */
    int64_t until_ms, shard, listed;
    bool more; /* events than are listed */
};

static flow_step get_look, get_taken, get_bucket, get_listed, get_part;

static bool get_start(struct flow *flow, struct get *get)
{
    struct slice text = flow_text(flow, GET_BUCKET);
    bool is_last = slice_equal(text, SLICE("last")), is_now = slice_equal(text, SLICE("now"));
    if (get->start_ms >= 0) return true;
    get->time_ms = flow->now_ms;
    if (!is_last && !is_now && (!moment_parse(text, &get->time_ms) || get->time_ms < 0)) {
        flow_refuse(flow, 400, "bad-request",
                    "bucket must be a time like 2026-11-15T03:00:00Z, or \"now\", or \"last\".");
        return false;
    }
    if (is_last) {
        int64_t start_ms = period_bucket(&get->period, get->time_ms);
        get->time_ms = start_ms > 0 ? start_ms - 1 : 0;
    }
    get->start_ms = is_last || is_now ? period_bucket(&get->period, get->time_ms) : get->time_ms;
    return true;
}

void period_get_begin(struct flow *flow)
{
    struct get *get = flow->state = arena_new(flow->arena, struct get);
    get->start_ms = -1;
    get->until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    get_look(flow);
}

/* By two calls: what comes between them must end the watch. */
static void get_look(struct flow *flow)
{
    flow_look(flow);
    period_ask(flow, flow_text(flow, PERIOD_NAME), get_taken);
}

static void get_taken(struct flow *flow)
{
    struct get *get = flow->state;
    if (!period_take(flow, flow_text(flow, PERIOD_NAME), flow_item(flow), &get->period) ||
        !get_start(flow, get))
        return;
    flow_call(flow, get_bucket, "GetItem",
              "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'ConsistentRead':true}", &period_buckets,
              get->period.name, moment_text(flow->arena, get->start_ms));
}

static void put_head(struct flow *flow, const char *state)
{
    const struct get *get = flow->state;
    struct slice end = item_text(flow->arena, get->bucket, "end");
    if (!end.data) end = moment_text(flow->arena, period_end(&get->period, get->start_ms));
    buf_slice(flow->body, flow_compose(flow, "{'period':%s,'bucket':%s,'end':%s,'state':%s", get->period.name,
                                       moment_text(flow->arena, get->start_ms), end, slice_of(state)));
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
        flow_call(flow, get_part, "GetItem",
                  "{'TableName':%T,'Key':{'bucket':%S,'part':%N},"
                  "'ConsistentRead':true}",
                  &period_parts, period_parts_key(flow, &get->period, get->start_ms), part);
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
              "{'TableName':%T,'KeyConditionExpression':'#bucket = :bucket',%#,"
              "'ExpressionAttributeValues':{':bucket':%S},'ConsistentRead':true,'Limit':%d}",
              &period_events, period_events_key(flow, &get->period, get->start_ms, get->shard),
              EVENTS_MOST - get->listed + 1);
}

/* Nobody comes back to a bucket that is over and got nothing. */
static bool is_passed(const struct get *get)
{
    return !get->bucket.data && get->start_ms < get->period.closed_ms;
}

static void get_bucket(struct flow *flow)
{
    struct get *get = flow->state;
    int64_t start_ms = period_bucket(&get->period, get->time_ms);
    get->bucket = flow_item(flow);
    if (!get->bucket.data && get->start_ms != start_ms) { /* not a begin: the one that it lies in */
        get->start_ms = start_ms;
        get_look(flow);
        return;
    }
    if (item_says(flow->arena, get->bucket, "state", "DONE"))
        get_done(flow, get->bucket);
    else if (flow->now_ms < get->until_ms && !is_passed(get))
        flow_watch(flow, period_topic(get->period.name), flow_thing("period", get->period.name),
                   get->until_ms, get_look);
    else
        get_list(flow);
}

static void get_put_event(struct flow *flow, struct slice item)
{
    struct get *get = flow->state;
    if (get->listed == EVENTS_MOST) {
        get->more = true;
        return;
    }
    if (!get->listed++) {
        put_head(flow, get->bucket.data ? "CLOSING" : "OPEN");
        buf_text(flow->body, ",\"events\":[");
    } else {
        buf_byte(flow->body, ',');
    }
    buf_slice(flow->body,
              flow_compose(flow, "{'id':%P,'time':%P%A,'data':%P}", item_attribute(flow->arena, item, "id"),
                           item_attribute(flow->arena, item, "time"),
                           item_has(flow->arena, item, "late") ? SLICE(",\"late\":true") : SLICE(""),
                           item_attribute(flow->arena, item, "data")));
}

/* Of one that is not DONE: what has come so far, up to a limit. */
static void get_listed(struct flow *flow)
{
    struct get *get = flow->state;
    struct raw_look look;
    struct slice item;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (raw_look_next(&look, NULL, &item)) get_put_event(flow, item);
    if (flow_last_key(flow).data) get->more = true;
    if (++get->shard < get->period.shards && get->listed < EVENTS_MOST) {
        get_list(flow);
        return;
    }
    if (!get->listed) {
        put_head(flow, get->bucket.data ? "CLOSING" : is_passed(get) ? "EMPTY" : "OPEN");
        buf_text(flow->body, ",\"events\":[");
    }
    buf_slice(flow->body, get->more ? SLICE("],\"more\":true}") : SLICE("]}"));
    flow_finish(flow, 200);
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

struct list {
    struct period period;
    struct listing *buckets;
};

static flow_step list_taken, list_done, list_shard, list_open;

void period_list_begin(struct flow *flow)
{
    struct list *list = flow->state = arena_new(flow->arena, struct list);
    list->buckets = listing_new(flow, flow_int_or(flow, LIST_LIMIT, LIST_USUAL));
    period_ask(flow, flow_text(flow, PERIOD_NAME), list_taken);
}

static struct slice list_after(struct flow *flow)
{
    return flow_given(flow, LIST_AFTER) ? flow_text(flow, LIST_AFTER) : SLICE("0");
}

static void list_taken(struct flow *flow)
{
    struct list *list = flow->state;
    if (!period_take(flow, flow_text(flow, PERIOD_NAME), flow_item(flow), &list->period)) return;
    if (flow_int(flow, LIST_STATE) == 1) {
        list_shard(flow);
        return;
    }
    flow_call(
        flow, list_done, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#period = :period and #bucket > "
        ":after','FilterExpression':'#state = :done','ProjectionExpression':'#bucket, #state, #end, #count, "
        "#parts, #done',%#,'ExpressionAttributeValues':{':period':%S,':after':%S,':done':{'S':'DONE'}},"
        "'Limit':%d}",
        &period_buckets, list->period.name, list_after(flow), list->buckets->most);
}

static void list_done(struct flow *flow)
{
    struct list *list = flow->state;
    struct slice last = flow_last_key(flow);
    buf_text(flow->body, "{\"buckets\":[");
    listing_take(flow, list->buckets, "bucket", SLICE(""));
    for (int64_t i = 0; i < list->buckets->count; i++) {
        struct slice item = list->buckets->entries[i].item;
        buf_slice(flow->body,
                  flow_compose(
                      flow, "%r{'bucket':%P,'state':%P,'end':%P,'count':%P,'parts':%P,'done':%P}",
                      i ? SLICE(",") : SLICE(""), item_attribute(flow->arena, item, "bucket"),
                      item_attribute(flow->arena, item, "state"), item_attribute(flow->arena, item, "end"),
                      item_attribute(flow->arena, item, "count"), item_attribute(flow->arena, item, "parts"),
                      item_attribute(flow->arena, item, "done")));
    }
    buf_text(flow->body, "]");
    if (last.data)
        buf_slice(flow->body, flow_compose(flow, ",'next':%s", item_text(flow->arena, last, "bucket")));
    buf_text(flow->body, "}");
    flow_finish(flow, 200);
}

/* Each shard has its own gate of a bucket. */
static void list_shard(struct flow *flow)
{
    const struct list *list = flow->state;
    flow_call(
        flow, list_open, "Query",
        "{'TableName':%T,'IndexName':'pending','KeyConditionExpression':'#pending = :gate and #bucket > "
        ":after',%#,'ExpressionAttributeValues':{':gate':%S,':after':%S},'Limit':%d}",
        &period_gates, period_gate_key(flow, &list->period, (int64_t)list->buckets->slot), list_after(flow),
        list->buckets->most + 1);
}

static void list_open(struct flow *flow)
{
    struct list *list = flow->state;
    list->buckets->is_distinct = true;
    listing_take(flow, list->buckets, "bucket", SLICE(""));
    if (++list->buckets->slot < (unsigned)list->period.shards) {
        list_shard(flow);
        return;
    }
    buf_text(flow->body, "{\"buckets\":[");
    for (int64_t i = 0; i < list->buckets->count; i++) {
        struct slice start = list->buckets->entries[i].order;
        int64_t start_ms = 0;
        moment_parse(start, &start_ms);
        buf_slice(flow->body,
                  flow_compose(flow, "%r{'bucket':%s,'state':'OPEN','end':%s}", i ? SLICE(",") : SLICE(""),
                               start, moment_text(flow->arena, period_end(&list->period, start_ms))));
    }
    listing_finish(flow, list->buckets);
}
