/* Partitions that a server splits and merges by itself, where the log's settings say so (`scale`).
 *
 * Nothing is written for it when events are appended: how many there are stands in the chains, so what a partition gets
 * is the difference of two looks at its end. The sweep looks at each such log every SAMPLE_S, SAMPLE_IDLE_S where
 * nothing comes. The state is one item among the heads, which the index of news lists under the slot "scale" when it is
 * due:
 *   `partition` (S): "scale/LOG"; `slot` (S): "scale"; `touched` (N, s): when it is due; `log`, `id` (S); `at` (N, ms):
 *   of the last look; `rates` (M): of each open partition {M: `n`: its last number, `r`: events a minute, `hot`,
 *   `cold`: since when (N, s)}; `changes` (L): the last ones, the newest first.
 * A look ends with one write on the condition that nobody else has looked since. Whoever made it may then make one
 * change, by the same intent as people do (log_change.c); if it dies before, the next look finds the same.
 *
 * A partition is split when it was above the limit for HOT_S, at the hash that halves its last events: where one key
 * makes nearly all of them no split helps, and none is made. Two neighbours are merged when each of them was below half
 * of the lower limit for COLD_S, and never to fewer partitions than the log began with. What was made is measured anew,
 * and the upper limit is at least twice the lower one: so what a split makes is not merged by the same load, nor the
 * other way round. */
#include <stdlib.h>

#include "base/hash.h"
#include "calendar/calendar.h"
#include "pattern/log.h"
#include "pattern/rows.h"

#define SWEEP_MS         5000
#define SAMPLE_S         10
#define SAMPLE_IDLE_S    60
#define HOT_S            30
#define COLD_S           600
#define LOST_S           180 /* a look that is older tells nothing of the time between */
#define PUT_OFF_S        600 /* before what could not be done is tried again */
#define PARTITIONS_MOST  256 /* each look asks for the end of all of them */
#define PARTITIONS_USUAL 64
#define RATE_MOST        1000000000
#define EVENTS_WEIGHED   1000 /* the last ones of a partition that is to be split, at most */
#define LEAST_SHARE      10   /* one in so many must be on each side */
#define CHANGES_KEPT     10
#define LOGS_AT_ONCE     25

/* ---- settings ---- */

/* "500/s", "30/m": events a minute. False: it is none. */
static bool rate_read(struct slice text, int64_t *rate)
{
    unsigned long long number;
    if (text.len < 3 || text.data[text.len - 2] != '/') return false;
    char unit = text.data[text.len - 1];
    if ((unit != 's' && unit != 'm') ||
        !slice_to_u64((struct slice){text.data, text.len - 2}, RATE_MOST, &number))
        return false;
    *rate = (int64_t)number * (unit == 's' ? 60 : 1);
    return *rate > 0;
}

static struct slice rate_text(struct flow *flow, int64_t rate)
{
    return rate % 60 ? arena_printf(flow->arena, "%lld/m", (long long)rate)
                     : arena_printf(flow->arena, "%lld/s", (long long)(rate / 60));
}

struct log_scale log_scale_read(struct flow *flow, struct slice json, int64_t partitions)
{
    struct log_scale scale = {.partitions = partitions > PARTITIONS_USUAL ? partitions : PARTITIONS_USUAL};
    struct slice name, value;
    if (raw_kind(json) == JSON_NULL) return (struct log_scale){0};
    if (raw_kind(json) != JSON_OBJECT)
        task_refuse(flow, 400, "bad-request", "scale must be an object, or null.");
    raw_each_member (flow->arena, json, &name, &value) {
        bool is_above = slice_equal(name, SLICE("split_above")),
             is_below = slice_equal(name, SLICE("merge_below"));
        if (is_above || is_below) {
            if (raw_kind(value) != JSON_STRING ||
                !rate_read(raw_text(flow->arena, value), is_above ? &scale.above : &scale.below))
                task_refuse(flow, 400, "bad-request", "%.*s must be like \"500/s\" or \"30/m\".",
                            SLICE_ARG(name));
        } else if (!slice_equal(name, SLICE("partitions"))) {
            task_refuse(flow, 400, "bad-request", "scale has a member that is not known here: %.*s.",
                        SLICE_ARG(flow_shown(name)));
        } else if (raw_kind(value) != JSON_NUMBER ||
                   !raw_int(raw_text(flow->arena, value), &scale.partitions)) {
            task_refuse(flow, 400, "bad-request", "partitions of scale must be a whole number.");
        }
    }
    if (!scale.above) task_refuse(flow, 400, "bad-request", "scale needs split_above, like \"500/s\".");
    if (scale.below * 2 > scale.above)
        task_refuse(
            flow, 400, "bad-request",
            "merge_below must be at most half of split_above: else the same load would split and merge.");
    if (scale.partitions < partitions || scale.partitions > PARTITIONS_MOST)
        task_refuse(flow, 400, "bad-request",
                    "partitions of scale must be %lld to %d: the log begins with %lld.",
                    (long long)partitions, PARTITIONS_MOST, (long long)partitions);
    return scale;
}

struct slice log_scale_attribute(struct flow *flow, const struct log_scale *scale)
{
    return flow_compose(flow, "{'M':{'above':%N,'below':%N,'partitions':%N}}", scale->above, scale->below,
                        scale->partitions);
}

struct log_scale log_scale_of(struct flow *flow, struct slice item)
{
    struct slice map = item_content(flow->arena, item, "scale");
    if (!map.data) return (struct log_scale){0};
    return (struct log_scale){.above = item_int(flow->arena, map, "above", 0),
                              .below = item_int(flow->arena, map, "below", 0),
                              .partitions = item_int(flow->arena, map, "partitions", 0)};
}

struct slice log_scale_member(struct flow *flow, const struct log_scale *scale)
{
    if (!scale->above) return SLICE("");
    return flow_compose(flow, ",'scale':{'split_above':%s%[%?,'merge_below':%s%],'partitions':%d}",
                        rate_text(flow, scale->above), scale->below != 0, rate_text(flow, scale->below),
                        scale->partitions);
}

/* ---- the state ---- */

static struct slice state_key(struct flow *flow)
{
    return flow_compose(flow, "{'partition':{'S':'scale/%A'}}",
                        rest_encoded(flow->arena, flow_text(flow, LOG_NAME)));
}

static struct slice state_get(struct flow *flow, struct slice key)
{
    return task_get(flow, &log_heads, "%A", key);
}

struct slice log_scale_state(struct flow *flow, const struct log_layout *layout)
{
    if (!layout->scale.above) return SLICE_NONE;
    struct slice state = state_get(flow, state_key(flow));
    return slice_equal(item_text(flow->arena, state, "id"), slice_of(layout->id)) ? state : SLICE_NONE;
}

void log_scale_enter(struct flow *flow, const struct log_layout *layout)
{
    if (!layout->scale.above) {
        task_call(flow, "DeleteItem", "{'TableName':%T,'Key':%A}", &log_heads, state_key(flow));
        return;
    }
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{%A,'slot':{'S':'scale'},'touched':%N,'log':%S,'id':%S},"
              "'ConditionExpression':'attribute_not_exists(#id) or #id <> :id',%#,"
              "'ExpressionAttributeValues':{':id':%S}}",
              &log_heads, item_members(flow->arena, state_key(flow), "partition"), flow->now_ms / 1000,
              flow_text(flow, LOG_NAME), slice_of(layout->id), slice_of(layout->id));
}

/* What the last look has found of a partition; SLICE_NONE: nothing. */
static struct slice rates_of(struct flow *flow, struct slice state, int64_t partition)
{
    return item_content(flow->arena, item_content(flow->arena, state, "rates"),
                        log_partition_text(flow, partition).data);
}

struct slice log_scale_rate(struct flow *flow, struct slice state, int64_t partition)
{
    int64_t rate = item_int(flow->arena, rates_of(flow, state, partition), "r", -1);
    if (rate < 0) return SLICE("");
    return flow_compose(flow, ",'rate':%s", rate_text(flow, rate));
}

struct slice log_scale_changes(struct flow *flow, struct slice state)
{
    struct slice list = SLICE(""), change;
    if (!item_has(flow->arena, state, "changes")) return list;
    raw_each (flow->arena, item_content(flow->arena, state, "changes"), &change)
        list = flow_compose(flow, "%A%,%P", list, change);
    return flow_compose(flow, ",'changes':[%A]", list);
}

/* ---- a look ---- */

struct sample {
    struct log_range range;
    int64_t last;          /* number */
    int64_t rate;          /* events a minute; -1: not known */
    int64_t hot_s, cold_s; /* since when; 0: it is not */
};

/* What has come since the last look, and how long it has been too much or little. */
static struct sample sample_take(struct flow *flow, const struct log_layout *layout, struct slice state,
                                 struct log_range range)
{
    struct sample sample = {
        .range = range, .last = log_last_number(flow, layout, range.partition), .rate = -1};
    int64_t at_ms = item_int(flow->arena, state, "at", 0), since_ms = flow->now_ms - at_ms;
    struct slice before = rates_of(flow, state, range.partition);
    int64_t last = item_int(flow->arena, before, "n", 0);
    /* the first events of a child have numbers far from 0 */
    if (!before.data || since_ms <= 0 || since_ms > LOST_S * 1000 ||
        (!last && range.partition >= layout->partitions && sample.last))
        return sample;
    sample.rate = sample.last > last ? (sample.last - last) * 60000 / since_ms : 0;
    if (sample.rate > layout->scale.above) {
        sample.hot_s = item_int(flow->arena, before, "hot", 0);
        if (!sample.hot_s) sample.hot_s = at_ms / 1000;
    }
    if (sample.rate * 2 < layout->scale.below) {
        sample.cold_s = item_int(flow->arena, before, "cold", 0);
        if (!sample.cold_s) sample.cold_s = at_ms / 1000;
    }
    return sample;
}

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The hash that halves the events that made it hot; false: nearly all are of one key. */
static bool split_point(struct flow *flow, const struct log_layout *layout, const struct sample *sample,
                        uint64_t *at)
{
    int64_t weighed = sample->rate * HOT_S / 60 + 1;
    if (weighed > EVENTS_WEIGHED) weighed = EVENTS_WEIGHED;
    struct log_reader reader = {.layout = layout,
                                .partition = sample->range.partition,
                                .from = sample->last > weighed ? sample->last - weighed + 1 : 1,
                                .most = EVENTS_WEIGHED};
    uint64_t *hashes = arena_array(flow->arena, uint64_t, EVENTS_WEIGHED);
    size_t count = 0, best = 0, half;
    while (log_read_event(flow, &reader)) hashes[count++] = hash_bytes(reader.key);
    qsort(hashes, count, sizeof *hashes, by_hash);
    half = count / 2;
    for (size_t i = 1; i < count; i++)
        if (hashes[i] != hashes[i - 1] &&
            (!best || (i > half ? i - half : half - i) < (best > half ? best - half : half - best)))
            best = i;
    size_t least = best < count - best ? best : count - best;
    if (!best || least * LEAST_SHARE < count) return false;
    *at = hashes[best];
    return true;
}

/* What should be changed, if anything: false. Those that are chosen are not chosen again for a while. */
static bool choose(struct flow *flow, const struct log_layout *layout, struct sample *samples, size_t count,
                   struct log_change *change)
{
    int64_t now_s = flow->now_ms / 1000, pair_rate = INT64_MAX;
    struct sample *hottest = NULL, *pair = NULL;
    for (size_t i = 0; i < count; i++) {
        struct sample *one = &samples[i], *next = one + 1;
        if (one->hot_s && now_s - one->hot_s >= HOT_S && (!hottest || one->rate > hottest->rate))
            hottest = one;
        if (i + 1 == count || !one->cold_s || !next->cold_s || now_s - one->cold_s < COLD_S ||
            now_s - next->cold_s < COLD_S || one->rate + next->rate >= pair_rate)
            continue;
        pair = one;
        pair_rate = one->rate + next->rate;
    }
    *change = (struct log_change){0};
    if (hottest && count < (size_t)layout->scale.partitions) {
        hottest->hot_s = now_s + PUT_OFF_S;
        change->has_at = split_point(flow, layout, hottest, &change->at);
        change->olds[change->old_count++] = hottest->range.partition;
        return change->has_at;
    }
    if (!pair || count <= (size_t)layout->partitions) return false;
    for (size_t i = 0; i < 2; i++) {
        pair[i].cold_s = now_s + PUT_OFF_S;
        change->olds[change->old_count++] = pair[i].range.partition;
    }
    return true;
}

static bool state_put(struct flow *flow, struct slice key, struct slice state, const struct sample *samples,
                      size_t count, bool is_idle)
{
    struct buf rates = {0};
    for (size_t i = 0; i < count; i++)
        flow_put(flow, &rates, "%,%s:{'M':{'n':%N,'r':%N,'hot':%N,'cold':%N}}",
                 log_partition_text(flow, samples[i].range.partition), samples[i].last, samples[i].rate,
                 samples[i].hot_s, samples[i].cold_s);
    struct slice map = arena_take(flow->arena, &rates);
    struct slice at = item_attribute(flow->arena, state, "at");
    edit_item(flow, &log_heads, key, SLICE("SET #at = :now, #touched = :due, #rates = :rates"),
              flow_compose(flow, "#id = :id and %r",
                           at.data ? SLICE("#at = :seen") : SLICE("attribute_not_exists(#at)")),
              "':now':%N,':due':%N,':rates':{'M':{%A}},':id':%A%[,':seen':%A%]", flow->now_ms,
              flow->now_ms / 1000 + (is_idle ? SAMPLE_IDLE_S : SAMPLE_S), map,
              item_attribute(flow->arena, state, "id"), at);
    return !flow_failed(flow);
}

/* Notes what was done, for people. */
static void change_note(struct flow *flow, struct slice key, struct slice state,
                        const struct log_change *change)
{
    struct slice olds = SLICE(""), news = SLICE(""), older;
    for (unsigned i = 0; i < change->old_count; i++)
        olds = flow_compose(flow, "%A%,%S", olds, log_partition_text(flow, change->olds[i]));
    for (unsigned i = 0; i < change->new_count; i++)
        news = flow_compose(flow, "%A%,%S", news, log_partition_text(flow, change->news[i].partition));
    struct slice list = flow_compose(flow, "{'M':{'time':%S,'from':{'L':[%A]},'to':{'L':[%A]}}}",
                                     moment_text(flow->arena, flow->now_ms), olds, news);
    unsigned kept = 1;
    if (item_has(flow->arena, state, "changes"))
        raw_each (flow->arena, item_content(flow->arena, state, "changes"), &older)
            if (kept++ < CHANGES_KEPT) list = flow_compose(flow, "%A,%A", list, older);
    edit_item(flow, &log_heads, key, SLICE("SET #changes = :list"), SLICE("#id = :id"),
              "':list':{'L':[%A]},':id':%A", list, item_attribute(flow->arena, state, "id"));
}

static void look_at(struct flow *flow, struct slice key)
{
    struct slice state = state_get(flow, key), consumers = SLICE("");
    struct log_routes *routes = NULL;
    struct log_layout layout;
    struct log_change change;
    if (!state.data || item_int(flow->arena, state, "touched", 0) > flow->now_ms / 1000) return;
    flow->fields[LOG_NAME].text = item_text(flow->arena, state, "log");
    struct slice log = log_items_read(flow, &routes, &consumers);
    struct log_scale scale = log_scale_of(flow, log);
    if (!slice_equal(item_text(flow->arena, log, "id"), item_text(flow->arena, state, "id")) ||
        item_has(flow->arena, log, "deleted") || !scale.above) { /* nobody asks for it any more */
        task_delete(flow, "#id = :id", "':id':%A", &log_heads, key, item_attribute(flow->arena, state, "id"));
        return;
    }
    log_layout_read(flow, log, &layout);
    if (layout.change.data) { /* that comes first; the next look finds it done */
        log_change_finish(flow, &layout);
        return;
    }
    struct sample *samples = arena_array(flow->arena, struct sample, PARTITIONS_MOST);
    size_t count = 0;
    bool is_idle = true;
    for (uint64_t at = 0; count < PARTITIONS_MOST;) {
        struct log_range range = log_open_at(&layout, &routes, at);
        samples[count] = sample_take(flow, &layout, state, range);
        is_idle &= samples[count++].rate == 0;
        if (range.to == UINT64_MAX) break;
        at = range.to + 1;
    }
    bool is_changed = choose(flow, &layout, samples, count, &change);
    if (!state_put(flow, key, state, samples, count, is_idle) || !is_changed) return;
    if (log_change_try(flow, &change)) change_note(flow, key, state, &change);
}

static void sweep_logs(struct flow *flow)
{
    struct slice keys[LOGS_AT_ONCE], item;
    size_t count = 0;
    flow->fields = arena_array(flow->arena, struct field_value, LOG_GROUP + 1);
    memset(flow->fields, 0, (LOG_GROUP + 1) * sizeof *flow->fields);
    task_query(flow, "#slot = :slot and #touched <= :now", ",'IndexName':'news','Limit':%d",
               "':slot':{'S':'scale'},':now':%N", &log_heads, (int64_t)LOGS_AT_ONCE, flow->now_ms / 1000);
    raw_each (flow->arena, flow_items(flow), &item)
        if (count < LOGS_AT_ONCE)
            keys[count++] = flow_compose(flow, "{%A}", item_members(flow->arena, item, "partition"));
    struct arena_mark mark = arena_mark(flow->arena);
    for (size_t i = 0; i < count; i++) {
        look_at(flow, keys[i]);
        flow_rewind(flow, mark);
    }
    flow_finish(flow, 200);
}

const struct flow_sweep log_sweep = {"logs", SWEEP_MS, sweep_logs};
