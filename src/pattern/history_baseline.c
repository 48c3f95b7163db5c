/* Histories: a baseline, of the items that were there before the history.
 *
 * A sweep reads the table page by page and writes a version BASELINE of each item that has none yet. Where it stands is
 * in the settings: `baseline` (M): `state` (S) RUNNING or DONE, `items` (N) that were read, `cursor` (M). Whoever dies
 * is followed by another, who reads the page again and finds what has been written; of two that walk at the same time
 * one loses the cursor's write and stops.
 *
 * Changes go on meanwhile, and their versions come by the stream at any time. A baseline is true whatever comes before
 * or behind it:
 *  HB1. Its time is before the item was read, by more than clocks may differ, a write may be under way, and a stream
 *       rounds its times (DynamoDB Local: to minutes). So a change that the read has missed has a version behind it.
 *  HB2. A change that the read has seen has a version of its own, before or behind it: what held after that is the
 *       same image. So that there is none of what such a version tells already, versions are looked for a while after
 *       the read; where recording is later than that, the baseline tells a little too early what it has seen.
 * What was removed while the walk was on its way to it has the version of its removal, which has what was there. */
#include "calendar/calendar.h"
#include "pattern/edit.h"
#include "pattern/history.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS   5000
#define AT_WORK_MS 4000  /* of a sweep */
#define BACK_MS    70000 /* HB1 */
#define SETTLE_MS                                                                                            \
    15000 /* by then the changes that a read has seen are recorded: Alternator's streams are 10 s late */
#define PAGE 1000 /* items that are read at once, as far as they fit a page of the service */

static struct slice key_of(struct flow *flow, struct slice settings, struct slice item)
{
    struct slice hash = item_text(flow->arena, settings, "hash"),
                 range = item_text(flow->arena, settings, "range");
    struct slice key = flow_compose(flow, "%s:%A", hash, history_attribute(flow->arena, item, hash));
    if (range.data)
        key = flow_compose(flow, "%A,%s:%A", key, range, history_attribute(flow->arena, item, range));
    return key;
}

static bool has_version(struct flow *flow, struct slice key)
{
    task_query(flow, "#item = :item", ",'ProjectionExpression':'#version','Limit':1", "':item':%S",
               &history_table, key);
    return raw_first(flow->arena, flow_items(flow)).data != NULL;
}

/* Writes the baselines of a page; how many items it had. */
static int64_t page_keep(struct flow *flow, struct slice settings, struct slice page, int64_t time_ms)
{
    struct slice table = item_text(flow->arena, settings, "table"), item;
    struct buf out = {0};
    buf_byte(&out, '[');
    raw_each (flow->arena, page, &item)
        flow_put(
            flow, &out,
            "%,{'eventName':'BASELINE','time':%d,'dynamodb':{'ApproximateCreationDateTime':%d,'Keys':{%A},"
            "'NewImage':%A,'SequenceNumber':'0'}}",
            time_ms, time_ms / 1000, key_of(flow, settings, item), item);
    buf_byte(&out, ']');
    struct slice records = arena_take(flow->arena, &out);
    size_t count = raw_count(flow->arena, records), missing = 0;
    struct history_item *items = arena_array(flow->arena, struct history_item, count + 1);
    struct slice *texts = arena_array(flow->arena, struct slice, count + 1);
    if (history_items(flow->arena, table, records, items))
        return (int64_t)count; /* no keys of ours: it was made anew */
    for (size_t i = 0; i < count; i++)
        if (!has_version(flow, items[i].key)) texts[missing++] = items[i].text;
    put_items(flow, &history_table, texts, missing);
    return (int64_t)count;
}

/* Moves the cursor, unless another one has; an empty one: the walk is over. */
static bool cursor_move(struct flow *flow, struct slice settings, int64_t seen, int64_t items,
                        struct slice cursor)
{
    struct slice baseline = flow_compose(flow, "{'M':{'state':{'S':%r},'items':%N%[,'cursor':{'M':%A}%]}}",
                                         cursor.data ? SLICE("\"RUNNING\"") : SLICE("\"DONE\""), items,
                                         cursor);
    return edit_item(flow, &history_settings_table,
                     flow_compose(flow, "{'table':%S}", item_text(flow->arena, settings, "table")),
                     SLICE("SET #baseline = :baseline"),
                     SLICE("#baseline.#state = :running and #baseline.#items = :seen and #since = :since"),
                     "':baseline':%A,':running':{'S':'RUNNING'},':seen':%N,':since':%A", baseline, seen,
                     item_attribute(flow->arena, settings, "since"));
}

/* The next page; true: there may be more. */
static bool walk_page(struct flow *flow, struct slice table)
{
    struct slice settings = task_get(flow, &history_settings_table, "{'table':%S}", table);
    struct slice baseline = item_content(flow->arena, settings, "baseline");
    struct slice cursor = item_content(flow->arena, baseline, "cursor");
    int64_t seen = item_int(flow->arena, baseline, "items", 0);
    int64_t time_ms = flow->now_ms - BACK_MS - flow->world->skew_ms;
    if (!item_says(flow->arena, baseline, "state", "RUNNING")) return false;
    task_try(flow, "Scan", "{'TableName':%s,'Limit':%d" READ_FRESH READ_FROM "}", table, (int64_t)PAGE,
             cursor);
    if (flow_failed(flow))
        return false; /* the table is gone, or not to be had now: the next sweep tries again */
    struct slice page = flow_items(flow);
    cursor = flow_last_key(flow);
    if (raw_first(flow->arena, page).data) task_sleep(flow, SETTLE_MS);
    int64_t items = seen + page_keep(flow, settings, page, time_ms);
    return cursor_move(flow, settings, seen, items, cursor) && cursor.data;
}

static void take_baselines(struct flow *flow)
{
    int64_t until_ms = flow->now_ms + AT_WORK_MS;
    struct slice start = SLICE_NONE, item, all = SLICE("");
    struct arena_mark mark;
    do {
        task_call(flow, "Scan",
                  "{'TableName':%T,'FilterExpression':'#baseline.#state = :running',%#,"
                  "'ExpressionAttributeValues':{':running':{'S':'RUNNING'}}" READ_FROM "}",
                  &history_settings_table, start);
        raw_each (flow->arena, flow_items(flow), &item)
            all = flow_compose(flow, "%A%,{%A}", all, item_members(flow->arena, item, "table"));
        start = flow_last_key(flow);
    } while (start.data);
    raw_each (flow->arena, flow_compose(flow, "[%A]", all), &item) {
        struct slice table = item_text(flow->arena, item, "table");
        for (mark = arena_mark(flow->arena); flow->now_ms < until_ms && walk_page(flow, table);)
            flow_rewind(flow, mark);
    }
    flow_finish(flow, 200);
}

const struct flow_sweep baseline_sweep = {"baselines", SWEEP_MS, take_baselines};
