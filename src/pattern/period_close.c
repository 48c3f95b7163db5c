/* Periods: closing buckets that are over, the oldest first, whoever died while at it.
 *
 * Whoever closes a bucket leases it (fence), closes its gates in all shards, reads its events in their order,
 * puts them into parts of a bounded size, each if absent, and says DONE by its fence. Behind the gates
 * nothing changes, and where a part ends depends on the events' sizes alone: who takes over makes the same
 * parts. A small bucket has its events in its own item, so that a reaction has them at hand. */
#include "calendar/calendar.h"
#include "pattern/period.h"
#include "pattern/rows.h"

#define SWEEP_MS    1000
#define SWEPT       25 /* periods that are due, at a time */
#define CLOSED_MOST 20 /* buckets of one period, at a time: the flow's memory is freed at its end */
#define HOLD_MS     60000
#define PART_BYTES  (300 * 1024)
#define LAG_MS      2000 /* a remote index may follow its table so late */

/* An event of the part that is being filled, as an attribute value. */
struct filled {
    struct slice text;
    struct filled *next;
};

/* One period after the other; of each, one bucket after the other. */
struct closing {
    struct period period;
    flow_step *then;
    int64_t closed;          /* how many */
    int64_t shard, start_ms; /* of the oldest open bucket; INT64_MAX: none */
    int64_t fence, count, parts;
    struct slice last_key;
    struct raw_walk walk; /* of the page */
    struct slice left;    /* its event that did not fit the last part; SLICE_NONE: none */
    struct filled *first, **end;
    uint64_t part_bytes;
    int64_t part_count;
    /* the sweep's */
    struct slice names[SWEPT];
    unsigned name_count, at;
};

static flow_step find_shard, find_found, lease_taken, gate_close, gate_release, events_ask, events_taken,
    events_go_on, part_put, bucket_done, close_end;

/* ---- the oldest bucket that is open ---- */

static int64_t grace_ms(const struct flow *flow, const struct period *period)
{
    return flow->world->skew_ms && period->grace_ms < LAG_MS ? LAG_MS : period->grace_ms;
}

static bool is_over(const struct flow *flow, const struct closing *closing, int64_t start_ms)
{
    return period_end(&closing->period, start_ms) <= flow->now_ms - grace_ms(flow, &closing->period);
}

static void find_begin(struct flow *flow)
{
    struct closing *closing = flow->state;
    closing->shard = 0;
    closing->start_ms = INT64_MAX;
    find_shard(flow);
}

static void find_shard(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_call(flow, find_found, "Query",
              "{'TableName':%T,'IndexName':'pending','KeyConditionExpression':'#pending = "
              ":gate',%#,'ExpressionAttributeValues':{"
              "':gate':%S},'Limit':1}",
              &period_gates, period_gate_key(flow, &closing->period, closing->shard));
}

/* Nothing is over: buckets before the present one are closed from now on, and the next look is at its end. */
static void find_none(struct flow *flow)
{
    const struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    int64_t grace = grace_ms(flow, period), start_ms = period_start(period, flow->now_ms - grace);
    flow_call(
        flow, close_end, "UpdateItem",
        "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #closed = :closed, #due = :due',"
        "'ConditionExpression':'#closed <= :closed',%#,'ExpressionAttributeValues':{':closed':%N,':due':%N}}",
        &period_table, period->name, start_ms, period_end(period, start_ms) + grace);
}

static void bucket_lease(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_call(
        flow, lease_taken, "UpdateItem",
        "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'UpdateExpression':'SET #state = :closing, #fence = "
        "if_not_exists(#fence, :zero) + :one, #until = "
        ":until','ConditionExpression':'attribute_not_exists(#state) or "
        "(#state = :closing and #until < "
        ":now)',%#,'ExpressionAttributeValues':{':closing':{'S':'CLOSING'},':zero':{"
        "'N':'0'},':one':{'N':'1'},':until':%N,':now':%N},'ReturnValues':'ALL_NEW',%O}",
        &period_buckets, closing->period.name, moment_text(flow->arena, closing->start_ms),
        flow->now_ms + HOLD_MS + flow->world->skew_ms, flow->now_ms);
}

static void find_found(struct flow *flow)
{
    struct closing *closing = flow->state;
    struct raw_walk walk;
    struct slice item;
    int64_t start_ms;
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    if (raw_walk_next(&walk, NULL, &item) &&
        moment_parse(item_text(flow->arena, item, "bucket"), &start_ms) && start_ms < closing->start_ms)
        closing->start_ms = start_ms;
    if (++closing->shard < closing->period.shards)
        find_shard(flow);
    else if (closing->start_ms == INT64_MAX || !is_over(flow, closing, closing->start_ms))
        find_none(flow);
    else
        bucket_lease(flow);
}

/* ---- its gates ---- */

static void part_begin(struct closing *closing)
{
    closing->first = NULL;
    closing->end = &closing->first;
    closing->part_bytes = 0;
    closing->part_count = 0;
}

static void lease_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    struct slice item = flow_item(flow);
    bool is_done = flow_failed(flow) && item_says(flow->arena, item, "state", "DONE");
    closing->shard = closing->count = closing->parts = 0;
    if (is_done) { /* whoever did it died then */
        gate_release(flow);
        return;
    }
    if (flow_failed(flow)) {
        closing->then(flow); /* another is at it, or was and died: its time is not over */
        return;
    }
    closing->fence = item_int(flow->arena, item, "fence", 0);
    part_begin(closing);
    gate_close(flow);
}

static void gate_write(struct flow *flow, flow_step *then, struct slice update)
{
    struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    flow_call(flow, then, "UpdateItem",
              "{'TableName':%T,'Key':{'shard':%S,'bucket':%S},'UpdateExpression':'SET #state = :closed, "
              "#expires = :expires"
              "%r',%#,'ExpressionAttributeValues':{':closed':{'S':'CLOSED'},':expires':%N}}",
              &period_gates, period_gate_key(flow, period, closing->shard++),
              moment_text(flow->arena, closing->start_ms), update,
              period_end(period, closing->start_ms) / 1000 + period->keep_s);
}

/* All of them, also those that were never opened: nothing comes behind. */
static void gate_close(struct flow *flow)
{
    struct closing *closing = flow->state;
    if (closing->shard < closing->period.shards) {
        gate_write(flow, gate_close, SLICE(""));
        return;
    }
    closing->shard = 0;
    closing->last_key = SLICE_NONE;
    events_ask(flow);
}

/* The bucket is DONE and need not be found any more. */
static void gate_release(struct flow *flow)
{
    struct closing *closing = flow->state;
    if (closing->shard < closing->period.shards)
        gate_write(flow, gate_release, SLICE(" REMOVE #pending"));
    else if (closing->closed < CLOSED_MOST)
        find_begin(flow);
    else
        closing->then(flow);
}

/* ---- its events ---- */

static void events_ask(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_call(flow, events_taken, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#bucket = "
              ":bucket',%#,'ExpressionAttributeValues':{':bucket':%S},"
              "'ConsistentRead':true%A}",
              &period_events, period_events_key(flow, &closing->period, closing->start_ms, closing->shard),
              closing->last_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", closing->last_key)
                                     : SLICE(""));
}

static void events_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    closing->last_key = flow_last_key(flow);
    closing->left = SLICE_NONE;
    raw_walk_begin(&closing->walk, flow->arena, flow_items(flow));
    events_go_on(flow);
}

static void part_add(struct flow *flow, struct slice item)
{
    struct closing *closing = flow->state;
    struct filled *filled = arena_new(flow->arena, struct filled);
    filled->text = flow_compose(
        flow, "{'M':{'id':%A,'time':%A%A,'data':%A}}", item_attribute(flow->arena, item, "id"),
        item_attribute(flow->arena, item, "time"),
        item_has(flow->arena, item, "late") ? SLICE(",\"late\":{\"BOOL\":true}") : SLICE(""),
        item_attribute(flow->arena, item, "data"));
    *closing->end = filled;
    closing->end = &filled->next;
    closing->part_bytes += item_bytes(flow->arena, item);
    closing->part_count++;
    closing->count++;
}

static struct slice part_text(struct flow *flow)
{
    const struct closing *closing = flow->state;
    struct buf out = {0};
    for (const struct filled *filled = closing->first; filled; filled = filled->next) {
        if (out.len) buf_byte(&out, ',');
        buf_slice(&out, filled->text);
    }
    struct slice text = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return text;
}

static void part_write(struct flow *flow)
{
    struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    flow_call(flow, part_put, "PutItem",
              "{'TableName':%T,'Item':{'bucket':%S,'part':%N,'count':%N,'events':{'L':[%A]},'expires':%N},"
              "'ConditionExpression':'attribute_not_exists(#part)',%#}",
              &period_parts, period_parts_key(flow, period, closing->start_ms), ++closing->parts,
              closing->part_count, part_text(flow),
              period_end(period, closing->start_ms) / 1000 + period->keep_s);
    part_begin(closing);
}

/* If it was there, it is the same. */
static void part_put(struct flow *flow)
{
    events_go_on(flow);
}

/* Fills the part until an event does not fit, then writes it; behind the last event all is DONE. */
static void events_go_on(struct flow *flow)
{
    struct closing *closing = flow->state;
    struct slice item = closing->left;
    closing->left = SLICE_NONE;
    while (item.data || raw_walk_next(&closing->walk, NULL, &item)) {
        if (closing->part_count && closing->part_bytes + item_bytes(flow->arena, item) > PART_BYTES) {
            closing->left = item;
            part_write(flow);
            return;
        }
        part_add(flow, item);
        item = SLICE_NONE;
    }
    if (closing->last_key.data || ++closing->shard < closing->period.shards)
        events_ask(flow);
    else if (closing->parts && closing->part_count)
        part_write(flow);
    else
        bucket_done(flow);
}

/* ---- DONE ---- */

static void done_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    if (flow_failed(flow)) { /* another has it now */
        closing->then(flow);
        return;
    }
    closing->closed++;
    closing->shard = 0;
    flow_wake(flow, period_topic(closing->period.name));
    gate_release(flow);
}

/* What fits one part stands in the bucket itself. */
static void bucket_done(struct flow *flow)
{
    struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    bool is_small = closing->parts == 0;
    int64_t end_ms = period_end(period, closing->start_ms);
    struct slice events = is_small ? flow_compose(flow, ",':events':{'L':[%A]}", part_text(flow)) : SLICE("");
    flow_call(flow, done_taken, "UpdateItem",
              "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'UpdateExpression':'SET #state = :done, "
              "#count = :count, #parts"
              " = :parts, #end = :end, #done = :time, #expires = :expires%r%r REMOVE "
              "#until','ConditionExpression':'#state = "
              ":closing and #fence = "
              ":fence',%#,'ExpressionAttributeValues':{':done':{'S':'DONE'},':closing':{'S':'CLOSING'},"
              "':fence':%N,':count':%N,':parts':%N,':end':%S,':time':%S,':expires':%N%A%A}}",
              &period_buckets, period->name, moment_text(flow->arena, closing->start_ms),
              is_small ? SLICE(", #events = :events") : SLICE(""),
              period->then.data ? SLICE(", #then = :then") : SLICE(""), closing->fence, closing->count,
              is_small ? 1 : closing->parts, moment_text(flow->arena, end_ms),
              moment_text(flow->arena, flow->now_ms), end_ms / 1000 + period->keep_s, events,
              period->then.data ? flow_compose(flow, ",':then':%S", period->then) : SLICE(""));
}

static void close_end(struct flow *flow)
{
    const struct closing *closing = flow->state;
    closing->then(flow);
}

/* ---- by a request ---- */

const struct field period_close_fields[] = {FIELD_PERIOD};

static flow_step request_taken;

static void request_done(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_answer(flow, 200, "{'closed':%d}", closing->closed);
}

void period_close_begin(struct flow *flow)
{
    struct closing *closing = flow->state = arena_new(flow->arena, struct closing);
    closing->then = request_done;
    period_ask(flow, flow_text(flow, PERIOD_NAME), request_taken);
}

static void request_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    if (period_take(flow, flow_text(flow, PERIOD_NAME), flow_item(flow), &closing->period)) find_begin(flow);
}

/* ---- by itself ---- */

static flow_step sweep_listed, sweep_next, sweep_taken;

static void sweep_begin(struct flow *flow)
{
    struct closing *closing = flow->state = arena_new(flow->arena, struct closing);
    closing->then = sweep_next;
    flow_call(
        flow, sweep_listed, "Query",
        "{'TableName':%T,'IndexName':'due','KeyConditionExpression':'#slot = :slot and #due <= :now',%#,"
        "'ExpressionAttributeValues':{':slot':{'S':'due'},':now':%N},'Limit':%d}",
        &period_table, flow->now_ms, (int64_t)SWEPT);
}

static void sweep_listed(struct flow *flow)
{
    struct closing *closing = flow->state;
    struct raw_walk walk;
    struct slice item;
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    while (closing->name_count < SWEPT && raw_walk_next(&walk, NULL, &item))
        closing->names[closing->name_count++] = item_text(flow->arena, item, "name");
    sweep_next(flow);
}

static void sweep_next(struct flow *flow)
{
    struct closing *closing = flow->state;
    closing->closed = 0;
    if (closing->at == closing->name_count)
        flow_finish(flow, 200);
    else
        period_ask(flow, closing->names[closing->at++], sweep_taken);
}

static void sweep_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    if (period_read(flow, closing->names[closing->at - 1], flow_item(flow), &closing->period))
        find_begin(flow);
    else
        sweep_next(flow); /* deleted meanwhile, or spoilt */
}

const struct flow_sweep period_sweep = {"periods", SWEEP_MS, sweep_begin};
