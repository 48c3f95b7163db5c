/* The walk through the partitions that a group has not read to their end.
 *
 * The index news holds each partition at the second of its last event, in up to 16 slots. A group keeps a
 * mark for each slot: what was touched before it is read. So a walk asks each slot for what was touched
 * since, and compares heads with positions only for these: its cost grows with the news, not with the
 * partitions.
 *
 * A mark is raised to the first partition that is not read, and never nearer to the present than OVERLAP_S:
 * an event may show up in the index with a moment that lies somewhat back (its call was repeated after a
 * pause; an index on AWS follows its table; clocks differ). Replays lower marks and raise the group's turn; a
 * mark is only written on the turn that the walk has seen. */
#include "pattern/log.h"

#include <stdio.h>

#define OVERLAP_S        (10 + LOG_TOUCHED_S) /* longer than a flow repeats a call */
#define OVERLAP_REMOTE_S (60 + LOG_TOUCHED_S)

/* ---- groups ---- */

struct slice log_group_part(struct flow *flow)
{
    return arena_printf(flow->arena, "group/%.*s", SLICE_ARG(flow_text(flow, LOG_GROUP)));
}

static void group_read(struct flow *flow, struct slice item, struct log_group *group)
{
    *group = (struct log_group){.item = item,
                                .turn = item_int(flow->arena, item, "turn", 0),
                                .generation = item_int(flow->arena, item, "generation", 0),
                                .since_ms = item_int(flow->arena, item, "since", 0),
                                .again = item_has(flow->arena, item, "again")};
}

void log_refuse_group(struct flow *flow)
{
    flow_refuse(flow, 404, "no-such-consumer",
                "The log '%.*s' has no group of consumers '%.*s'; its first read makes it.",
                SLICE_ARG(flow_text(flow, LOG_NAME)), SLICE_ARG(flow_text(flow, LOG_GROUP)));
}

void log_batch_get(struct flow *flow, struct slice tables)
{
    for (;;) {
        task_call(flow, "BatchGetItem", "{'RequestItems':{%A}}", tables);
        if (!raw_count(flow->arena, raw_member(flow->arena, flow->reply.body, "UnprocessedKeys"))) return;
        task_again(flow);
    }
}

void log_group_get(struct flow *flow, struct log_layout *layout, struct log_group *group)
{
    struct slice name = flow_text(flow, LOG_NAME), item, log = SLICE_NONE, group_item = SLICE_NONE;
    struct raw_look look;
    log_batch_get(flow, flow_compose(flow,
                                     "%T:{'Keys':[{'log':%S,'part':{'S':'log'}},{'log':%S,'part':%S}],"
                                     "'ConsistentRead':true}",
                                     &log_table, name, name, log_group_part(flow)));
    raw_look_begin(&look, flow->arena, log_batch_items(flow, &log_table));
    while (raw_look_next(&look, NULL, &item))
        *(item_says(flow->arena, item, "part", "log") ? &log : &group_item) = item;
    if (!log_layout_read(flow, log, layout)) task_end(flow);
    group_read(flow, group_item, group);
}

static void group_make(struct flow *flow, struct log_group *group)
{
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'log':%S,'part':%S,'turn':{'N':'0'},'generation':{'N':'0'},"
              "'since':{'N':'0'}},'ConditionExpression':'attribute_not_exists(part)',%O}",
              &log_table, flow_text(flow, LOG_NAME), log_group_part(flow));
    if (flow_failed(flow)) group_read(flow, flow_item(flow), group);
}

struct held log_position(struct flow *flow, int64_t partition)
{
    return (struct held){&log_positions,
                         flow_compose(flow, "{'group':%S,'partition':%S}", log_group_key(flow),
                                      log_partition_text(flow, partition))};
}

int64_t log_position_of(struct flow *flow, const struct log_group *group, int64_t partition,
                        struct slice item)
{
    int64_t position = item_int(flow->arena, item, "position", 0);
    if (partition == LOG_PARKED) return position;
    if (item.data && item_int(flow->arena, item, "generation", 0) >= group->generation) return position;
    return group->since_ms ? -1 : 0;
}

int64_t log_mark(struct flow *flow, const struct log_group *group, int64_t slot)
{
    char name[16];
    snprintf(name, sizeof name, "mark%d", (int)slot);
    return item_int(flow->arena, group->item, name, group->since_ms / 1000 - LOG_TOUCHED_S);
}

/* ---- heads beside positions ---- */

/* The items of the last reply in the order of the names. */
static void sort_items(struct flow *flow, const struct flow_table *table, const struct slice *names,
                       unsigned count, struct slice *items)
{
    struct raw_look look;
    struct slice item;
    for (unsigned i = 0; i < count; i++) items[i] = SLICE_NONE;
    raw_look_begin(&look, flow->arena, log_batch_items(flow, table));
    while (raw_look_next(&look, NULL, &item)) {
        struct slice name = item_text(flow->arena, item, "partition");
        for (unsigned i = 0; i < count; i++)
            if (slice_equal(names[i], name)) items[i] = item;
    }
}

void log_compare_get(struct flow *flow, const struct log_layout *layout, const int64_t *partitions, unsigned count,
                     bool exactly, struct slice *heads, struct slice *positions)
{
    struct slice *keys = arena_array(flow->arena, struct slice, count);
    struct slice *names = arena_array(flow->arena, struct slice, count);
    struct slice group = log_group_key(flow);
    struct buf head_keys = {0}, position_keys = {0};
    for (unsigned i = 0; i < count; i++) {
        struct slice comma = i ? SLICE(",") : SLICE("");
        keys[i] = log_key(flow, layout, partitions[i]);
        names[i] = log_partition_text(flow, partitions[i]);
        flow_put(flow, &head_keys, "%A{'partition':%S}", comma, keys[i]);
        flow_put(flow, &position_keys, "%A{'group':%S,'partition':%S}", comma, group, names[i]);
    }
    struct slice request = flow_compose(
        flow, "%T:{'Keys':[%A],'ConsistentRead':%b},%T:{'Keys':[%A],'ConsistentRead':true}", &log_heads,
        buf_view(&head_keys), (int)exactly, &log_positions, buf_view(&position_keys));
    buf_free(&head_keys);
    buf_free(&position_keys);
    log_batch_get(flow, request);
    sort_items(flow, &log_heads, keys, count, heads);
    sort_items(flow, &log_positions, names, count, positions);
}

static bool is_read(const struct log_scan *scan, const struct log_candidate *candidate)
{
    if (candidate->position < 0) return candidate->time_ms < scan->group.since_ms;
    return candidate->position >= candidate->sequence;
}

/* Takes those of a page that are not read to their end. Tells how far all of them are read. */
static void take_page(struct flow *flow, struct log_scan *scan, const int64_t *partitions,
                      const int64_t *touched_s, unsigned count)
{
    struct slice heads[LOG_PAGE], positions[LOG_PAGE];
    /* A head that is read a little late hides what was appended just now, which the overlap takes care of; a
     * position would hide a replay. */
    log_compare_get(flow, &scan->layout, partitions, count, false, heads, positions);
    scan->count = 0;
    for (unsigned i = 0; i < count; i++) {
        struct log_candidate *candidate = &scan->candidates[scan->count];
        struct log_end end = log_end_get(flow, &scan->layout, partitions[i]);
        *candidate = (struct log_candidate){
            .partition = partitions[i],
            .sequence = end.sequence,
            .time_ms = end.time_ms,
            .parents = item_content(flow->arena, heads[i], "parents"),
            .item = positions[i],
            .position = log_position_of(flow, &scan->group, partitions[i], positions[i])};
        if (!is_read(scan, candidate)) {
            scan->count++;
            if (!scan->unread_s) scan->unread_s = touched_s[i];
        } else if (!scan->unread_s) {
            scan->passed_s = touched_s[i];
            scan->passed += touched_s[i] < scan->asked_s - scan->overlap_s;
        }
    }
}

/* ---- the walk ---- */

void log_scan_begin(struct flow *flow, struct log_scan *scan, bool makes_group)
{
    *scan = (struct log_scan){.overlap_s = flow->world->skew_ms ? OVERLAP_REMOTE_S : OVERLAP_S};
    log_group_get(flow, &scan->layout, &scan->group);
    if (!scan->group.item.data && !makes_group) {
        log_refuse_group(flow);
        task_end(flow);
    }
    if (!scan->group.item.data) group_make(flow, &scan->group);
    scan->parked_is_next = scan->group.again;
    scan->slot = (unsigned)flow_random_below(flow, (uint64_t)scan->layout.slots);
}

/* The slot that has been walked, to its end or not, may get a new mark. */
static void slot_mark(struct flow *flow, struct log_scan *scan, bool to_its_end)
{
    int64_t newest_s = scan->asked_s - scan->overlap_s, mark_s = to_its_end ? newest_s : scan->passed_s;
    if (scan->unread_s) mark_s = scan->unread_s;
    if (mark_s > newest_s) mark_s = newest_s;
    if (scan->passed && mark_s > log_mark(flow, &scan->group, scan->slot)) {
        scan->marks[scan->slot] = mark_s;
        scan->spared += scan->passed;
    }
    scan->unread_s = scan->passed_s = scan->passed = 0;
}

/* A page of the slot's index: partitions, and when each was touched. */
static unsigned slot_page(struct flow *flow, struct log_scan *scan, int64_t *partitions, int64_t *touched_s)
{
    struct raw_look look;
    struct slice item;
    unsigned count = 0;
    task_call(
        flow, "Query",
        "{'TableName':%T,'IndexName':'news','KeyConditionExpression':'#slot = :slot and #touched >= :mark',"
        "%#,'ExpressionAttributeValues':{':slot':%S,':mark':%N},'Limit':%d%A}",
        &log_heads, log_slot(flow, &scan->layout, scan->slot), log_mark(flow, &scan->group, scan->slot),
        (int64_t)LOG_PAGE,
        scan->last_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", scan->last_key) : SLICE(""));
    scan->last_key = flow_last_key(flow);
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (count < LOG_PAGE && raw_look_next(&look, NULL, &item)) {
        touched_s[count] = item_int(flow->arena, item, "touched", 0);
        partitions[count++] = log_key_number(item_text(flow->arena, item, "partition"));
    }
    return count;
}

bool log_scan_page(struct flow *flow, struct log_scan *scan)
{
    int64_t partitions[LOG_PAGE] = {LOG_PARKED}, touched_s[LOG_PAGE] = {0};
    if (scan->parked_is_next) { /* what was parked and is to be read again comes first */
        scan->parked_is_next = false;
        take_page(flow, scan, partitions, touched_s, 1);
        scan->parked_is_read = !scan->count;
        return true;
    }
    while (scan->slots_done < scan->layout.slots) {
        if (!scan->last_key.data) scan->asked_s = flow->now_ms / 1000;
        unsigned count = slot_page(flow, scan, partitions, touched_s);
        if (count) take_page(flow, scan, partitions, touched_s, count);
        if (!scan->last_key.data) {
            slot_mark(flow, scan, true);
            scan->slot = (scan->slot + 1) % (unsigned)scan->layout.slots;
            scan->slots_done++;
        }
        if (count) return true;
    }
    return false;
}

void log_scan_mark(struct flow *flow, struct log_scan *scan, unsigned worth)
{
    struct slice update = SLICE(""), values = SLICE("");
    if (scan->last_key.data) slot_mark(flow, scan, false);
    if ((scan->spared < worth || !scan->spared) && !scan->parked_is_read) return;
    for (int i = 0; i < LOG_SLOTS; i++) {
        if (!scan->marks[i]) continue;
        update = arena_printf(flow->arena, "%.*s%s #mark%d = :mark%d", SLICE_ARG(update),
                              update.len ? "," : "SET", i, i);
        values = flow_compose(flow, "%A,':mark%r':%N", values, arena_printf(flow->arena, "%d", i),
                              scan->marks[i]);
    }
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':{'log':%S,'part':%S},'UpdateExpression':'%r%r',"
              "'ConditionExpression':'#turn = :turn',%#,'ExpressionAttributeValues':{':turn':%N%r}}",
              &log_table, flow_text(flow, LOG_NAME), log_group_part(flow), update,
              scan->parked_is_read ? SLICE(" REMOVE #again") : SLICE(""), scan->group.turn, values);
}

/* ---- by time ---- */

int64_t log_position_before(struct flow *flow, const struct log_layout *layout, int64_t partition, int64_t last,
                            int64_t time_ms)
{
    int64_t low = 0, high = last; /* events up to `low` are older, those behind `high` are not */
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        struct log_reader event = {.layout = layout, .partition = partition, .from = middle, .most = 1};
        /* an event that is not there any more was older than all that are */
        if (!log_read_event(flow, &event) || event.sequence > middle || event.time_ms < time_ms)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}
