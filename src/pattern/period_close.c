/* Periods: closing buckets that are over, the oldest first, whoever died while at it. The tables and what
 * holds for them: period.c.
 *
 * Whoever closes a bucket leases it (fence), has nothing new come to it (`closed` of the period) or get into
 * it (its gates in all shards), reads its events in their order, puts them into parts of a bounded size, and
 * says DONE by its fence. Behind the gates nothing changes, and where a part ends depends on the events'
 * sizes alone: who takes over makes the same parts. A small bucket has its events in its own item, so that a
 * reaction has them at hand; of a large one, what is done so far is noted there now and then, which is also
 * where this flow ends and another goes on: its memory is bounded, not the bucket. */
#include "calendar/calendar.h"
#include "pattern/period.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS    1000
#define CLOSED_MOST 20         /* buckets of one period, at a time: the flow's memory is freed at its end */
#define PARTS_MOST  16         /* of a bucket, likewise */
#define SWEPT_BYTES (16 << 20) /* of events, of all periods: likewise */
#define HOLD_MS     60000
#define PART_BYTES  (300 * 1024)

/* An event of the part that is being filled, as an attribute value. */
struct filled {
    struct slice text;
    struct filled *next;
};

/* One bucket of a period after the other. */
struct closing {
    struct period period;
    flow_step *then;
    int64_t closed;          /* how many */
    bool more;               /* there is more to do, for another flow */
    int64_t shard, start_ms; /* of the oldest open bucket; INT64_MAX: none */
    int64_t fence, count, parts;
    int64_t parts_now; /* of them, made by this flow */
    struct slice last_key;
    struct slice last_id; /* of the event that was filled in last */
    struct raw_look look; /* of the page */
    struct slice left;    /* its event that did not fit the last part; SLICE_NONE: none */
    struct filled *first, **end;
    uint64_t part_bytes;
    int64_t part_count;
    uint64_t bytes; /* of all events that the flow has seen */
};

static flow_step find_shard, find_found, find_none_done, lease_taken, bar_done, gate_close, gate_release,
    events_ask, events_taken, events_go_on, part_put, pause_done, bucket_done;

/* ---- the oldest bucket that is open ---- */

int64_t period_grace_ms(const struct flow *flow, const struct period *period)
{
    return period->grace_ms < flow->world->lag_ms ? flow->world->lag_ms : period->grace_ms;
}

static bool is_over(const struct flow *flow, const struct period *period, int64_t start_ms)
{
    return period_end(period, start_ms) + period_grace_ms(flow, period) <= flow->now_ms;
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
              "{'TableName':%T,'IndexName':'pending','KeyConditionExpression':'#pending = :gate',%#,"
              "'ExpressionAttributeValues':{':gate':%S},'Limit':1}",
              &period_gates, period_gate_key(flow, &closing->period, closing->shard));
}

/* Nothing is over: nothing comes to earlier buckets than the present one any more, and the next look is at
 * its end. Not so when somebody has changed the settings, or added to an earlier one, since they were read.
 */
static void find_none(struct flow *flow)
{
    const struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    int64_t grace_ms = period_grace_ms(flow, period);
    int64_t start_ms = period_start(period, flow->now_ms < grace_ms ? 0 : flow->now_ms - grace_ms);
    if (start_ms < period->closed_ms) start_ms = period->closed_ms;
    flow_call(flow, find_none_done, "UpdateItem",
              "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #closed = :start, #due = :due',"
              "'ConditionExpression':'#version = :version and #closed = :closed',%#,"
              "'ExpressionAttributeValues':{':start':%N,':due':%N,':version':%N,':closed':%N}}",
              &period_table, period->name, start_ms, period_end(period, start_ms) + grace_ms, period->version,
              period->closed_ms);
}

static void find_none_done(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_wake(flow, period_topic(closing->period.name)); /* of those who wait for an empty one */
    closing->then(flow);
}

static void bucket_lease(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_call(
        flow, lease_taken, "UpdateItem",
        "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'UpdateExpression':'SET #state = :closing, #fence = "
        "if_not_exists(#fence, :zero) + :one, #until = :until',"
        "'ConditionExpression':'attribute_not_exists(#state) or (#state = :closing and #until < :now)',%#,"
        "'ExpressionAttributeValues':{':closing':{'S':'CLOSING'},':zero':{'N':'0'},':one':{'N':'1'},"
        "':until':%N,':now':%N},'ReturnValues':'ALL_NEW',%O}",
        &period_buckets, closing->period.name, moment_text(flow->arena, closing->start_ms),
        flow->now_ms + HOLD_MS + flow->world->skew_ms, flow->now_ms);
}

static void find_found(struct flow *flow)
{
    struct closing *closing = flow->state;
    struct raw_look look;
    struct slice item;
    int64_t start_ms;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    if (raw_look_next(&look, NULL, &item) &&
        moment_parse(item_text(flow->arena, item, "bucket"), &start_ms) && start_ms < closing->start_ms)
        closing->start_ms = start_ms;
    if (++closing->shard < closing->period.shards)
        find_shard(flow);
    else if (closing->start_ms == INT64_MAX || !is_over(flow, &closing->period, closing->start_ms))
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

/* Goes on where the one before stopped. */
static void resume(struct flow *flow, struct slice item)
{
    struct closing *closing = flow->state;
    struct slice last = item_text(flow->arena, item, "last");
    closing->shard = item_int(flow->arena, item, "shard", 0);
    closing->count = item_int(flow->arena, item, "count", 0);
    closing->parts = item_int(flow->arena, item, "parts", 0);
    closing->last_key = SLICE_NONE;
    closing->last_id = last;
    if (last.data)
        closing->last_key = flow_compose(
            flow, "{'bucket':%S,'id':%S}",
            period_events_key(flow, &closing->period, closing->start_ms, closing->shard), last);
    closing->parts_now = 0;
    part_begin(closing);
    events_ask(flow);
}

static void lease_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    struct slice item = flow_item(flow);
    closing->shard = 0;
    if (flow_failed(flow) && item_says(flow->arena, item, "state", "DONE")) {
        gate_release(flow); /* whoever did it died then */
        return;
    }
    if (flow_failed(flow)) {
        closing->then(flow); /* another is at it, or was and died: its time is not over */
        return;
    }
    closing->fence = item_int(flow->arena, item, "fence", 0);
    if (item_has(flow->arena, item, "parts")) {
        resume(flow, item); /* its gates are closed */
        return;
    }
    flow_call(
        flow, bar_done, "UpdateItem",
        "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #closed = :end',"
        "'ConditionExpression':'#closed < :end',%#,'ExpressionAttributeValues':{':end':%N},%O}",
        &period_table, period->name, period_end(period, closing->start_ms));
}

/* From here on adders go past the bucket; those who have looked before are stopped by its gates. */
static void bar_done(struct flow *flow)
{
    struct closing *closing = flow->state;
    int64_t end_ms = period_end(&closing->period, closing->start_ms);
    if (flow_failed(flow) && !flow_item(flow).data)
        closing->then(flow); /* the period was removed */
    else
        gate_close(flow);
    if (closing->period.closed_ms < end_ms) closing->period.closed_ms = end_ms;
}

static void gate_write(struct flow *flow, flow_step *then, struct slice update)
{
    struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    flow_call(
        flow, then, "UpdateItem",
        "{'TableName':%T,'Key':{'shard':%S,'bucket':%S},'UpdateExpression':'SET #state = :closed, #expires "
        "= :expires%r',%#,'ExpressionAttributeValues':{':closed':{'S':'CLOSED'},':expires':%N}}",
        &period_gates, period_gate_key(flow, period, closing->shard++),
        moment_text(flow->arena, closing->start_ms), update, period_expires_s(period, closing->start_ms));
}

/* All of them, also those that were never opened: nothing comes behind. */
static void gate_close(struct flow *flow)
{
    struct closing *closing = flow->state;
    if (closing->shard < closing->period.shards) {
        gate_write(flow, gate_close, SLICE(""));
        return;
    }
    resume(flow, SLICE_NONE);
}

static void close_stop(struct flow *flow)
{
    struct closing *closing = flow->state;
    closing->more = true;
    closing->then(flow);
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
        close_stop(flow);
}

/* ---- its events ---- */

static void events_ask(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_call(flow, events_taken, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#bucket = :bucket',%#,"
              "'ExpressionAttributeValues':{':bucket':%S},'ConsistentRead':true%A}",
              &period_events, period_events_key(flow, &closing->period, closing->start_ms, closing->shard),
              closing->last_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", closing->last_key)
                                     : SLICE(""));
}

static void events_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    closing->last_key = flow_last_key(flow);
    closing->left = SLICE_NONE;
    raw_look_begin(&closing->look, flow->arena, flow_items(flow));
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
    closing->bytes += item_bytes(flow->arena, item);
    closing->part_count++;
    closing->count++;
    closing->last_id = item_text(flow->arena, item, "id");
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

/* If it was there, it is the same, but for its time to live. */
static void part_write(struct flow *flow)
{
    struct closing *closing = flow->state;
    const struct period *period = &closing->period;
    closing->parts_now++;
    flow_call(flow, part_put, "PutItem",
              "{'TableName':%T,'Item':{'bucket':%S,'part':%N,'count':%N,'events':{'L':[%A]},'expires':%N}}",
              &period_parts, period_parts_key(flow, period, closing->start_ms), ++closing->parts,
              closing->part_count, part_text(flow), flow->now_ms / 1000 + period->keep_s + PERIOD_WAIT_S);
    part_begin(closing);
}

/* Notes how far it has come, and lets go of the bucket. */
static void part_put(struct flow *flow)
{
    const struct closing *closing = flow->state;
    if (closing->parts_now < PARTS_MOST) {
        events_go_on(flow);
        return;
    }
    flow_call(
        flow, pause_done, "UpdateItem",
        "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'UpdateExpression':'SET #parts = :parts, #count = "
        ":count, #shard = :shard, #last = :last, #until = :zero','ConditionExpression':'#state = :closing "
        "and #fence = :fence',%#,'ExpressionAttributeValues':{':parts':%N,':count':%N,':shard':%N,"
        "':last':%S,':zero':{'N':'0'},':closing':{'S':'CLOSING'},':fence':%N}}",
        &period_buckets, closing->period.name, moment_text(flow->arena, closing->start_ms), closing->parts,
        closing->count, closing->shard, closing->last_id, closing->fence);
}

static void pause_done(struct flow *flow)
{
    close_stop(flow);
}

/* Fills the part until an event does not fit, then writes it; behind the last event all is DONE. */
static void events_go_on(struct flow *flow)
{
    struct closing *closing = flow->state;
    struct slice item = closing->left;
    closing->left = SLICE_NONE;
    while (item.data || raw_look_next(&closing->look, NULL, &item)) {
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
    bool is_small = closing->parts == 0, has_then = period->then.data != NULL;
    flow_call(
        flow, done_taken, "UpdateItem",
        "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'UpdateExpression':'SET #state = :done, #count = "
        ":count, #parts = :parts, #end = :end, #done = :time, #expires = :expires%r%r REMOVE #until, #shard, "
        "#last','ConditionExpression':'#state = :closing and #fence = :fence',%#,"
        "'ExpressionAttributeValues':{':done':{'S':'DONE'},':closing':{'S':'CLOSING'},':fence':%N,"
        "':count':%N,':parts':%N,':end':%S,':time':%S,':expires':%N%A%A}}",
        &period_buckets, period->name, moment_text(flow->arena, closing->start_ms),
        is_small ? SLICE(", #events = :events") : SLICE(""), has_then ? SLICE(", #then = :then") : SLICE(""),
        closing->fence, closing->count, is_small ? 1 : closing->parts,
        moment_text(flow->arena, period_end(period, closing->start_ms)),
        moment_text(flow->arena, flow->now_ms), flow->now_ms / 1000 + period->keep_s,
        is_small ? flow_compose(flow, ",':events':{'L':[%A]}", part_text(flow)) : SLICE(""),
        has_then ? flow_compose(flow, ",':then':%S", period->then) : SLICE(""));
}

/* ---- by a request ---- */

const struct field period_close_fields[] = {FIELD_PERIOD};

static flow_step request_taken;

static void request_done(struct flow *flow)
{
    const struct closing *closing = flow->state;
    flow_answer(flow, 200, "{'closed':%d%r}", closing->closed,
                closing->more ? SLICE(",\"more\":true") : SLICE(""));
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

static void sweep_taken(struct flow *flow)
{
    struct closing *closing = flow->state;
    if (period_read(flow, item_text(flow->arena, sweep_entry(flow), "name"), flow_item(flow),
                    &closing->period))
        find_begin(flow);
    else
        sweep_next(flow); /* deleted meanwhile, or spoilt */
}

static void sweep_each(struct flow *flow)
{
    uint64_t bytes = flow->state ? ((struct closing *)flow->state)->bytes : 0;
    if (bytes > SWEPT_BYTES) {
        flow_finish(flow, 200);
        return;
    }
    struct closing *closing = flow->state = arena_new(flow->arena, struct closing);
    closing->bytes = bytes;
    closing->then = sweep_next;
    period_ask(flow, item_text(flow->arena, sweep_entry(flow), "name"), sweep_taken);
}

static void sweep_begin(struct flow *flow)
{
    static const struct sweep_plan plan = {&period_table, 1, sweep_each};
    sweep_over(flow, &plan);
}

const struct flow_sweep period_sweep = {"periods", SWEEP_MS, sweep_begin};
