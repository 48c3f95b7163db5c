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
    int64_t closed; /* how many */
    bool more;      /* there is more to do, for another flow */
    uint64_t bytes; /* of all events that the flow has seen */
    /* of the bucket that is being closed */
    int64_t start_ms, fence, shard, count, parts;
    int64_t parts_now;    /* of them, made by this flow */
    struct slice last_id; /* of the event that was filled in last */
    struct filled *first, **end;
    uint64_t part_bytes;
    int64_t part_count;
};

/* ---- the oldest bucket that is open ---- */

int64_t period_grace_ms(const struct flow *flow, const struct period *period)
{
    return period->grace_ms < flow->world->lag_ms ? flow->world->lag_ms : period->grace_ms;
}

/* The begin of the oldest bucket with events that is not DONE; INT64_MAX: there is none. */
static int64_t oldest_pending(struct flow *flow, const struct period *period)
{
    int64_t oldest_ms = INT64_MAX;
    for (int64_t shard = 0; shard < period->shards; shard++) {
        struct raw_look look;
        struct slice item;
        int64_t start_ms;
        task_call(flow, "Query",
                  "{'TableName':%T,'IndexName':'pending','KeyConditionExpression':'#pending = :gate',%#,"
                  "'ExpressionAttributeValues':{':gate':%S},'Limit':1}",
                  &period_gates, period_gate_key(flow, period, shard));
        raw_look_begin(&look, flow->arena, flow_items(flow));
        if (raw_look_next(&look, NULL, &item) &&
            moment_parse(item_text(flow->arena, item, "bucket"), &start_ms) && start_ms < oldest_ms)
            oldest_ms = start_ms;
    }
    return oldest_ms;
}

/* Nothing is over: nothing comes to earlier buckets than the present one any more, and the next sweep is at its
 * end. Not so when somebody has changed the settings, or added to an earlier one, since they were read. */
static void nothing_is_over(struct flow *flow, const struct period *period)
{
    int64_t grace_ms = period_grace_ms(flow, period);
    int64_t start_ms = period_start(period, flow->now_ms < grace_ms ? 0 : flow->now_ms - grace_ms);
    if (start_ms < period->closed_ms) start_ms = period->closed_ms;
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #closed = :start, #due = :due',"
              "'ConditionExpression':'#version = :version and #closed = :closed',%#,"
              "'ExpressionAttributeValues':{':start':%N,':due':%N,':version':%N,':closed':%N}}",
              &period_table, period->name, start_ms, period_end(period, start_ms) + grace_ms, period->version,
              period->closed_ms);
    flow_wake(flow, period_topic(period->name)); /* of those who wait for an empty one */
}

/* ---- its gates ---- */

/* All of them, also those that were never opened: nothing comes behind. */
static void gates_write(struct flow *flow, const struct closing *closing, struct slice update)
{
    const struct period *period = &closing->period;
    for (int64_t shard = 0; shard < period->shards; shard++)
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':{'shard':%S,'bucket':%S},'UpdateExpression':'SET #state = :closed, "
            "#expires = :expires%r',%#,'ExpressionAttributeValues':{':closed':{'S':'CLOSED'},':expires':%N}}",
            &period_gates, period_gate_key(flow, period, shard), moment_text(flow->arena, closing->start_ms),
            update, period_expires_s(period, closing->start_ms));
}

/* Behind it adders go past the bucket; those who have looked before are stopped by its gates. False: the period was
 * removed. */
static bool bucket_bar(struct flow *flow, struct closing *closing)
{
    int64_t end_ms = period_end(&closing->period, closing->start_ms);
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #closed = :end',"
              "'ConditionExpression':'#closed < :end',%#,'ExpressionAttributeValues':{':end':%N},%O}",
              &period_table, closing->period.name, end_ms);
    if (flow_failed(flow) && !flow_item(flow).data) return false;
    if (closing->period.closed_ms < end_ms) closing->period.closed_ms = end_ms;
    gates_write(flow, closing, SLICE(""));
    return true;
}

/* ---- its events ---- */

static void part_begin(struct closing *closing)
{
    closing->first = NULL;
    closing->end = &closing->first;
    closing->part_bytes = 0;
    closing->part_count = 0;
}

static void part_add(struct flow *flow, struct closing *closing, struct slice item)
{
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

static struct slice part_text(struct flow *flow, const struct closing *closing)
{
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
static void part_write(struct flow *flow, struct closing *closing)
{
    const struct period *period = &closing->period;
    closing->parts_now++;
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'bucket':%S,'part':%N,'count':%N,'events':{'L':[%A]},'expires':%N}}",
              &period_parts, period_parts_key(flow, period, closing->start_ms), ++closing->parts,
              closing->part_count, part_text(flow, closing),
              flow->now_ms / 1000 + period->keep_s + PERIOD_WAIT_S);
    part_begin(closing);
}

/* Notes how far it has come, and lets go of the bucket. */
static void bucket_pause(struct flow *flow, struct closing *closing)
{
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'UpdateExpression':'SET #parts = :parts, #count = "
        ":count, #shard = :shard, #last = :last, #until = :zero','ConditionExpression':'#state = :closing "
        "and #fence = :fence',%#,'ExpressionAttributeValues':{':parts':%N,':count':%N,':shard':%N,"
        "':last':%S,':zero':{'N':'0'},':closing':{'S':'CLOSING'},':fence':%N}}",
        &period_buckets, closing->period.name, moment_text(flow->arena, closing->start_ms), closing->parts,
        closing->count, closing->shard, closing->last_id, closing->fence);
    closing->more = true;
}

/* Puts the events into parts, from where the one before has stopped. False: this flow stops here. */
static bool parts_make(struct flow *flow, struct closing *closing, struct slice bucket)
{
    struct slice last = item_text(flow->arena, bucket, "last"), last_key = SLICE_NONE, item;
    closing->shard = item_int(flow->arena, bucket, "shard", 0);
    closing->count = item_int(flow->arena, bucket, "count", 0);
    closing->parts = item_int(flow->arena, bucket, "parts", 0);
    closing->last_id = last;
    closing->parts_now = 0;
    part_begin(closing);
    for (; closing->shard < closing->period.shards; closing->shard++, last = SLICE_NONE) {
        struct slice key = period_events_key(flow, &closing->period, closing->start_ms, closing->shard);
        if (last.data) last_key = flow_compose(flow, "{'bucket':%S,'id':%S}", key, last);
        do {
            struct raw_look look;
            task_call(flow, "Query",
                      "{'TableName':%T,'KeyConditionExpression':'#bucket = :bucket',%#,"
                      "'ExpressionAttributeValues':{':bucket':%S},'ConsistentRead':true%A}",
                      &period_events, key,
                      last_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", last_key) : SLICE(""));
            last_key = flow_last_key(flow);
            raw_look_begin(&look, flow->arena, flow_items(flow));
            while (raw_look_next(&look, NULL, &item)) {
                if (closing->part_count && closing->part_bytes + item_bytes(flow->arena, item) > PART_BYTES) {
                    part_write(flow, closing);
                    if (closing->parts_now == PARTS_MOST) {
                        bucket_pause(flow, closing);
                        return false;
                    }
                }
                part_add(flow, closing, item);
            }
        } while (last_key.data);
    }
    if (closing->parts && closing->part_count) part_write(flow, closing);
    return true;
}

/* ---- DONE ---- */

/* What fits one part stands in the bucket itself. False: another has it now. */
static bool bucket_done(struct flow *flow, struct closing *closing)
{
    const struct period *period = &closing->period;
    bool is_small = closing->parts == 0, has_then = period->then.data != NULL;
    task_call(
        flow, "UpdateItem",
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
        is_small ? flow_compose(flow, ",':events':{'L':[%A]}", part_text(flow, closing)) : SLICE(""),
        has_then ? flow_compose(flow, ",':then':%S", period->then) : SLICE(""));
    if (flow_failed(flow)) return false;
    closing->closed++;
    flow_wake(flow, period_topic(period->name));
    return true;
}

/* Closes the bucket that begins at start_ms. False: another is at it, or was and died and its time is not over. */
static bool bucket_close(struct flow *flow, struct closing *closing)
{
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'period':%S,'bucket':%S},'UpdateExpression':'SET #state = :closing, #fence = "
        "if_not_exists(#fence, :zero) + :one, #until = :until',"
        "'ConditionExpression':'attribute_not_exists(#state) or (#state = :closing and #until < :now)',%#,"
        "'ExpressionAttributeValues':{':closing':{'S':'CLOSING'},':zero':{'N':'0'},':one':{'N':'1'},"
        "':until':%N,':now':%N},'ReturnValues':'ALL_NEW',%O}",
        &period_buckets, closing->period.name, moment_text(flow->arena, closing->start_ms),
        flow->now_ms + HOLD_MS + flow->world->skew_ms, flow->now_ms);
    struct slice bucket = flow_item(flow);
    bool is_done = item_says(flow->arena, bucket, "state", "DONE"); /* and whoever did it died then */
    if (flow_failed(flow) && !is_done) return false;
    if (!is_done) {
        closing->fence = item_int(flow->arena, bucket, "fence", 0);
        bool is_resumed = item_has(flow->arena, bucket, "parts"); /* its gates are closed */
        if (!is_resumed && !bucket_bar(flow, closing)) return false;
        if (!parts_make(flow, closing, bucket) || !bucket_done(flow, closing)) return false;
    }
    gates_write(flow, closing, SLICE(" REMOVE #pending")); /* it need not be found any more */
    return true;
}

/* All buckets of the period that are over. */
static void close_all(struct flow *flow, struct closing *closing)
{
    const struct period *period = &closing->period;
    while (closing->closed < CLOSED_MOST) {
        closing->start_ms = oldest_pending(flow, period);
        if (closing->start_ms == INT64_MAX ||
            period_end(period, closing->start_ms) + period_grace_ms(flow, period) > flow->now_ms) {
            nothing_is_over(flow, period);
            return;
        }
        if (!bucket_close(flow, closing)) return;
    }
    closing->more = true;
}

/* ---- by a request, and by itself ---- */

const struct field period_close_fields[] = {FIELD_PERIOD};

void period_close(struct flow *flow)
{
    struct closing closing = {0};
    period_get(flow, &closing.period);
    close_all(flow, &closing);
    flow_answer(flow, 200, "{'closed':%d%r}", closing.closed,
                closing.more ? SLICE(",\"more\":true") : SLICE(""));
}

static void sweep_periods(struct flow *flow)
{
    struct due_walk walk = due_begin(flow, &period_table, 1);
    struct slice entry;
    uint64_t bytes = 0;
    while (bytes <= SWEPT_BYTES && due_next(flow, &walk, &entry)) {
        struct closing closing = {0};
        if (period_find(flow, item_text(flow->arena, entry, "name"), &closing.period))
            close_all(flow, &closing); /* else it was deleted meanwhile, or spoilt */
        bytes += closing.bytes;
    }
    flow_finish(flow, 200);
}

const struct flow_sweep period_sweep = {"periods", SWEEP_MS, sweep_periods};
