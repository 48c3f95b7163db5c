/* Periods: closing buckets that are over, the oldest first, whoever died while at it. The tables and what
 * holds for them: period.c.
 *
 * Whoever closes moves `closed` of the period, so that nothing comes to the buckets that are over, finds those that
 * have an item, and seals all shards of each. Behind the seals nothing changes: it reads the events and says DONE by
 * one write that names how many each shard has. Several may close the same bucket at the same time, and come to the
 * same. A small bucket has its events in its own item, so that a reaction has them at hand; of a large one, it is
 * noted where its parts begin, which is also where another flow goes on if this one dies, or has done enough. */
#include "calendar/calendar.h"
#include "pattern/period.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS    1000
#define CLOSED_MOST 20         /* buckets of one period, at a time: others are waiting */
#define PARTS_MOST  16         /* of a bucket, likewise */
#define SWEPT_BYTES (16 << 20) /* of events, of all periods: likewise */
#define PART_BYTES  (300 * 1024)
#define FOUND_MOST  10 /* buckets that are read to find one that is not DONE */

/* An event of a bucket that is small so far, as an attribute value. */
struct filled {
    struct slice text;
    struct filled *next;
};

/* One bucket of a period after the other. */
struct closing {
    struct period period;
    int64_t closed; /* how many */
    bool more;      /* there is more to do, for another flow */
    uint64_t bytes; /* of all events that the flow has read */
    /* of the bucket that is being closed */
    int64_t start_ms, shards, count;
    struct slice ends;        /* how many events each shard has, as elements of a list */
    int64_t parts, parts_now; /* that were noted; of them, by this flow */
    int64_t shard, first;     /* where the part that is being filled begins */
    int64_t part_count;       /* its events so far, */
    uint64_t part_bytes;      /* ... and their bytes */
    struct filled *events, **events_end;
};

/* ---- what is over ---- */

/* From here on nothing comes to buckets that begin before; false: the period was changed or removed meanwhile. */
static bool move_closed(struct flow *flow, struct period *period)
{
    int64_t past_ms = flow->now_ms - period->grace_ms;
    int64_t start_ms = period_start(period, past_ms < 0 ? 0 : past_ms);
    if (start_ms <= period->closed_ms) return true;
    int64_t was_ms = period->closed_ms;
    period->closed_ms = start_ms;
    return edit_item(flow, &period_table, flow_compose(flow, "{'name':%S}", period->name),
                     SLICE("SET #closed = :start"), SLICE("#version = :version and #closed = :closed"),
                     "':start':%N,':version':%N,':closed':%N", start_ms, period->version, was_ms);
}

/* Notes that no bucket that begins before is left, and, where that holds for all that are closed, when the next one is
 * over. */
static void move_done(struct flow *flow, const struct period *period, int64_t done_ms)
{
    struct edit edit = {0};
    edit_set(flow, &edit, "done", "%N", done_ms);
    if (done_ms == period->closed_ms)
        edit_set(flow, &edit, "due", "%N", period_end(period, period->closed_ms) + period->grace_ms);
    edit_if(flow, &edit, "#version = :version and #closed = :closed and #done <= :done",
            "':version':%N,':closed':%N", period->version, period->closed_ms);
    edit_write(flow, &edit, &period_table, flow_compose(flow, "{'name':%S}", period->name));
    period_forget(flow, period->name);
    flow_wake(flow, period_topic(period->name)); /* of those who wait for an empty one, too */
}

/* The oldest bucket from this moment on that is closed and not DONE; SLICE_NONE: there is none. */
static struct slice next_bucket(struct flow *flow, const struct period *period, int64_t from_ms)
{
    struct slice last_key = SLICE_NONE, item;
    if (from_ms >= period->closed_ms) return SLICE_NONE;
    do {
        task_query(flow, "#period = :period and #bucket between :from and :to",
                   ",'FilterExpression':'#state = :open','Limit':%d" READ_FRESH READ_FROM,
                   "':period':%S,':from':%S,':to':%S,':open':{'S':'OPEN'}", &period_buckets,
                   (int64_t)FOUND_MOST, last_key, period->name, moment_text(flow->arena, from_ms),
                   moment_text(flow->arena, period->closed_ms - 1));
        last_key = flow_last_key(flow);
        item = raw_first(flow->arena, flow_items(flow));
        if (item.data) return item;
    } while (last_key.data);
    return SLICE_NONE;
}

/* ---- its events ---- */

/* Notes where the part begins that ends before the given event; who notes it again notes the same. */
static void part_note(struct flow *flow, struct closing *closing, int64_t next_shard, int64_t next)
{
    closing->parts++;
    closing->parts_now++;
    task_call(
        flow, "PutItem",
        "{'TableName':%T,'Item':{'bucket':%S,'part':%N,'shard':%N,'first':%N,'count':%N,'next_shard':%N,"
        "'next':%N,'expires':%N}}",
        &period_parts, period_parts_key(flow, &closing->period, closing->start_ms), closing->parts,
        closing->shard, closing->first, closing->part_count, next_shard, next,
        period_expires_s(&closing->period, closing->start_ms));
    closing->shard = next_shard;
    closing->first = next;
    closing->part_count = 0;
    closing->part_bytes = 0;
}

/* Fills parts from the present place on. False: this flow stops here; or, where all fitted so far, the bucket turned
 * out to be large. */
static bool parts_fill(struct flow *flow, struct closing *closing, bool is_small)
{
    int64_t shard = closing->shard, from = closing->first;
    for (; shard < closing->shards; shard++, from = 1) {
        struct chain chain = period_chain(flow, &closing->period, closing->start_ms, shard);
        struct chain_reader reader = {.chain = &chain, .from = from, .rewinds = !is_small};
        while (chain_read(flow, &reader)) {
            uint64_t bytes = item_bytes(flow->arena, attribute_content(flow->arena, reader.value));
            if (closing->part_count && closing->part_bytes + bytes > PART_BYTES) {
                if (is_small) return false;
                part_note(flow, closing, shard, reader.number);
                if (closing->parts_now == PARTS_MOST) return false;
            }
            if (is_small) {
                struct filled *filled = *closing->events_end = arena_new(flow->arena, struct filled);
                filled->text = reader.value;
                closing->events_end = &filled->next;
            }
            closing->part_bytes += bytes;
            closing->bytes += bytes;
            closing->part_count++;
        }
    }
    if (!is_small && closing->part_count) part_note(flow, closing, shard, 1);
    return true;
}

/* Reads all events. False: this flow has done enough. */
static bool read_events(struct flow *flow, struct closing *closing)
{
    closing->shard = closing->parts = closing->parts_now = closing->part_count = 0;
    closing->first = 1;
    closing->part_bytes = 0;
    closing->events = NULL;
    closing->events_end = &closing->events;
    if (parts_fill(flow, closing, true)) return true;
    closing->shard = 0;
    closing->first = 1;
    /* The bucket does not fit its item. Goes on behind the last part that was noted, if any was. */
    task_query(flow, "#bucket = :bucket", QUERY_LAST READ_FRESH, "':bucket':%S", &period_parts,
               period_parts_key(flow, &closing->period, closing->start_ms));
    struct slice part = raw_first(flow->arena, flow_items(flow));
    if (part.data) {
        closing->parts = item_int(flow->arena, part, "part", 0);
        closing->shard = item_int(flow->arena, part, "next_shard", 0);
        closing->first = item_int(flow->arena, part, "next", 1);
    }
    closing->part_count = 0;
    closing->part_bytes = 0;
    closing->more = !parts_fill(flow, closing, false);
    return !closing->more;
}

/* ---- DONE ---- */

static struct slice events_text(struct flow *flow, const struct closing *closing)
{
    struct buf out = {0};
    for (const struct filled *filled = closing->events; filled; filled = filled->next) {
        if (out.len) buf_byte(&out, ',');
        buf_slice(&out, filled->text);
    }
    return arena_take(flow->arena, &out);
}

/* What fits one part stands in the bucket itself. */
static void bucket_done(struct flow *flow, struct closing *closing)
{
    const struct period *period = &closing->period;
    bool is_small = closing->parts == 0;
    int64_t expires_s = flow->now_ms / 1000 + period->keep_s,
            pages_s = period_expires_s(period, closing->start_ms);
    struct edit edit = {.returns_none = true};
    edit_put(flow, &edit, EDIT_SET, "#state = :finished", "':finished':{'S':'DONE'}");
    edit_set(flow, &edit, "count", "%N", closing->count);
    edit_set(flow, &edit, "parts", "%N", is_small ? 1 : closing->parts);
    edit_set(flow, &edit, "ends", "{'L':[%A]}", closing->ends);
    edit_set(flow, &edit, "end", "%S", moment_text(flow->arena, period_end(period, closing->start_ms)));
    edit_set(flow, &edit, "done", "%S", moment_text(flow->arena, flow->now_ms));
    edit_set(flow, &edit, "expires", "%N", is_small || expires_s < pages_s ? expires_s : pages_s);
    if (is_small) edit_set(flow, &edit, "events", "{'L':[%A]}", events_text(flow, closing));
    if (period->then.data) edit_set(flow, &edit, "then", "%S", period->then);
    edit_if(flow, &edit, "#state = :open", "':open':{'S':'OPEN'}");
    if (!edit_write(flow, &edit, &period_buckets, period_bucket_key(flow, period, closing->start_ms)))
        return; /* another was faster */
    closing->closed++;
    flow_wake(flow, period_topic(period->name));
}

/* False: there is more to do, for another flow. */
static bool bucket_close(struct flow *flow, struct closing *closing)
{
    const struct period *period = &closing->period;
    closing->ends = SLICE("");
    closing->count = 0;
    for (int64_t shard = 0; shard < closing->shards; shard++) {
        struct chain chain = period_chain(flow, &closing->period, closing->start_ms, shard);
        struct chain_end end;
        chain_read_end(flow, &chain, &end);
        chain_seal(flow, &chain, &end, SLICE("{\"S\":\"closed\"}"), chain.keep_s);
        closing->count += end.next - 1;
        closing->ends = flow_compose(flow, "%A%,%N", closing->ends, end.next - 1);
    }
    if (closing->count) {
        if (!read_events(flow, closing)) return false;
        bucket_done(flow, closing);
    } else { /* who opened it has added nothing, and does so no more */
        task_delete(flow, "#state = :open", "':open':{'S':'OPEN'}", &period_buckets,
                    period_bucket_key(flow, period, closing->start_ms));
    }
    return true;
}

/* All buckets of the period that are over. */
static void close_all(struct flow *flow, struct closing *closing)
{
    struct period *period = &closing->period;
    struct slice bucket;
    while (!move_closed(flow, period)) {
        task_again(flow);
        if (!period_find(flow, period->name, period)) return;
    }
    int64_t from_ms = period->done_ms;
    struct arena_mark mark = arena_mark(flow->arena);
    while ((bucket = next_bucket(flow, period, from_ms)).data) {
        if (closing->closed == CLOSED_MOST) {
            closing->more = true;
            move_done(flow, period, from_ms);
            return;
        }
        closing->shards = item_int(flow->arena, bucket, "shards", period->shards);
        if (!moment_parse(item_text(flow->arena, bucket, "bucket"), &closing->start_ms)) return;
        if (!bucket_close(flow, closing)) return;
        from_ms = closing->start_ms + 1;
        flow_rewind(flow, mark);
    }
    move_done(flow, period, period->closed_ms);
}

/* ---- by a request, and by itself ---- */

const struct field period_close_fields[] = {FIELD_PERIOD};

void period_close(struct flow *flow)
{
    struct closing closing = {0};
    period_get(flow, &closing.period);
    close_all(flow, &closing);
    flow_answer(flow, 200, "{'closed':%d%[%?,'more':true%]}", closing.closed, closing.more);
}

static void sweep_periods(struct flow *flow)
{
    struct due_walk walk = due_begin(flow, &period_table, NULL);
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
