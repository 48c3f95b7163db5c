/* The walk through the partitions that a group has not read to their end.
 *
 * The index news holds each partition at the second of its last event, in up to 16 slots. A group keeps a
 * mark for each slot: what was touched before it is read. So a walk asks each slot for what was touched
 * since, and compares heads with positions only for these: its cost grows with the news, not with the
 * partitions.
 *
 * A mark is raised to the first partition that is not read, and never nearer to the present than OVERLAP_S:
 * an event may show up in the index with a moment that lies somewhat back (its transaction was repeated after
 * a pause; an index on AWS follows its table; clocks differ). Replays lower marks and raise the group's turn;
 * a mark is only written on the turn that the walk has seen. */
#include "pattern/log.h"

#include <stdio.h>

#define OVERLAP_S        10 /* longer than a flow repeats a call */
#define OVERLAP_REMOTE_S 60

static flow_step scan_taken, scan_made, scan_start, scan_slot, scan_listed, scan_compare, scan_compared;

/* ---- groups ---- */

struct slice log_group_part(struct flow *flow)
{
    return arena_printf(flow->arena, "group/%.*s", SLICE_ARG(flow_text(flow, LOG_GROUP)));
}

void log_group_read(struct flow *flow, struct slice item, struct log_group *group)
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
    return item_int(flow->arena, group->item, name, group->since_ms / 1000);
}

/* The log's item and the group's, by one call. */
void log_group_ask(struct flow *flow, flow_step *then)
{
    struct slice log = flow_text(flow, LOG_NAME);
    flow_call(flow, then, "BatchGetItem",
              "{'RequestItems':{%T:{'Keys':[{'log':%S,'part':{'S':'log'}},{'log':%S,'part':%S}],"
              "'ConsistentRead':true}}}",
              &log_table, log, log, log_group_part(flow));
}

/* ---- beginning ---- */

static void scan_ask(struct flow *flow)
{
    log_group_ask(flow, scan_taken);
}

void log_scan_begin(struct flow *flow, bool makes_group, flow_step *found, flow_step *ended)
{
    struct log_scan *scan = flow->state;
    *scan = (struct log_scan){.found = found, .ended = ended, .makes_group = makes_group};
    flow_look(flow);
    scan_ask(flow);
}

static bool has_unprocessed(struct flow *flow)
{
    return raw_count(flow->arena, raw_member(flow->arena, flow->reply.body, "UnprocessedKeys")) > 0;
}

static void scan_taken(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    struct slice item, log = SLICE_NONE, group = SLICE_NONE;
    struct raw_look look;
    if (has_unprocessed(flow)) {
        flow_again(flow, scan_ask);
        return;
    }
    raw_look_begin(&look, flow->arena, log_batch_items(flow, &log_table));
    while (raw_look_next(&look, NULL, &item))
        *(item_says(flow->arena, item, "part", "log") ? &log : &group) = item;
    if (!log_layout_read(flow, log, &scan->layout)) return;
    log_group_read(flow, group, &scan->group);
    if (group.data)
        scan_start(flow);
    else if (!scan->makes_group)
        log_refuse_group(flow);
    else
        flow_call(flow, scan_made, "PutItem",
                  "{'TableName':%T,'Item':{'log':%S,'part':%S,'turn':{'N':'0'},'generation':{'N':'0'},"
                  "'since':{'N':'0'}},'ConditionExpression':'attribute_not_exists(part)',%O}",
                  &log_table, flow_text(flow, LOG_NAME), log_group_part(flow));
}

static void scan_made(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    if (flow_failed(flow)) log_group_read(flow, flow_item(flow), &scan->group);
    scan_start(flow);
}

/* What was parked and is to be read again comes first. */
static void scan_start(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    scan->slot = (unsigned)flow_random_below(flow, (uint64_t)scan->layout.slots);
    scan->key_count = 0;
    if (!scan->group.again) {
        scan_slot(flow);
        return;
    }
    scan->keys[scan->key_count++] = log_key(flow, LOG_PARKED);
    scan_compare(flow);
}

/* ---- slots ---- */

static int64_t overlap_s(const struct flow *flow)
{
    return flow->world->skew_ms ? OVERLAP_REMOTE_S : OVERLAP_S;
}

static void scan_query(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    flow_call(
        flow, scan_listed, "Query",
        "{'TableName':%T,'IndexName':'news','KeyConditionExpression':'#slot = :slot and #touched >= :mark',"
        "%#,'ExpressionAttributeValues':{':slot':%S,':mark':%N},'Limit':%d%A}",
        &log_heads, log_slot(flow, scan->slot), log_mark(flow, &scan->group, scan->slot), (int64_t)LOG_PAGE,
        scan->last_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", scan->last_key) : SLICE(""));
}

/* The slot that has been walked, to its end or not, may get a new mark. */
static void slot_mark(struct flow *flow, bool to_its_end)
{
    struct log_scan *scan = flow->state;
    int64_t newest_s = scan->asked_s - overlap_s(flow), mark_s = to_its_end ? newest_s : scan->passed_s;
    if (scan->unread_s) mark_s = scan->unread_s;
    if (mark_s > newest_s) mark_s = newest_s;
    if (!scan->passed || mark_s <= log_mark(flow, &scan->group, scan->slot)) return;
    scan->marks[scan->slot] = mark_s;
    scan->spared += scan->passed;
    scan->passed = 0;
}

static void scan_slot(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    if (scan->slots_done == scan->layout.slots) {
        scan->ended(flow);
        return;
    }
    scan->asked_s = flow->now_ms / 1000;
    scan->unread_s = scan->passed_s = 0;
    scan->passed = 0;
    scan->last_key = SLICE_NONE;
    scan_query(flow);
}

void log_scan_more(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    if (scan->last_key.data) {
        scan_query(flow);
        return;
    }
    if (scan->asked_s) { /* else it was about what is parked */
        slot_mark(flow, true);
        scan->slot = (scan->slot + 1) % (unsigned)scan->layout.slots;
        scan->slots_done++;
    }
    scan_slot(flow);
}

static void scan_listed(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    struct raw_look look;
    struct slice item;
    scan->key_count = 0;
    scan->last_key = flow_last_key(flow);
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (scan->key_count < LOG_PAGE && raw_look_next(&look, NULL, &item)) {
        scan->touched_s[scan->key_count] = item_int(flow->arena, item, "touched", 0);
        scan->keys[scan->key_count++] = item_text(flow->arena, item, "partition");
    }
    if (scan->key_count)
        scan_compare(flow);
    else
        log_scan_more(flow);
}

/* ---- heads beside positions ---- */

/* A head that is read a little late hides what was appended just now, which the overlap takes care of; a
 * position would hide a replay. */
static void scan_compare(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    struct buf heads = {0}, positions = {0};
    struct slice group = log_group_key(flow);
    for (unsigned i = 0; i < scan->key_count; i++) {
        struct slice comma = i ? SLICE(",") : SLICE("");
        buf_slice(&heads, flow_compose(flow, "%A{'partition':%S}", comma, scan->keys[i]));
        buf_slice(&positions, flow_compose(flow, "%A{'group':%S,'partition':%S}", comma, group,
                                           log_partition_text(flow, log_key_number(scan->keys[i]))));
    }
    flow_call(flow, scan_compared, "BatchGetItem",
              "{'RequestItems':{%T:{'Keys':[%A]},%T:{'Keys':[%A],'ConsistentRead':true}}}", &log_heads,
              buf_view(&heads), &log_positions, buf_view(&positions));
    buf_free(&heads);
    buf_free(&positions);
}

/* The items of the reply in the order of the keys. */
static void items_sort(struct flow *flow, const struct flow_table *table, const struct slice *keys,
                       struct slice *items)
{
    struct log_scan *scan = flow->state;
    struct raw_look look;
    struct slice item;
    raw_look_begin(&look, flow->arena, log_batch_items(flow, table));
    while (raw_look_next(&look, NULL, &item)) {
        struct slice key = item_text(flow->arena, item, "partition");
        for (unsigned i = 0; i < scan->key_count; i++)
            if (slice_equal(keys[i], key)) items[i] = item;
    }
}

static bool is_read(const struct log_scan *scan, const struct log_candidate *candidate)
{
    if (candidate->position < 0) return candidate->time_ms < scan->group.since_ms;
    return candidate->position >= candidate->sequence;
}

/* Notes how far everything is read. */
static void candidate_pass(struct flow *flow, unsigned number, bool read)
{
    struct log_scan *scan = flow->state;
    int64_t touched_s = scan->touched_s[number];
    if (!scan->asked_s) {
        scan->parked_is_read = read;
    } else if (!read) {
        if (!scan->unread_s) scan->unread_s = touched_s;
    } else if (!scan->unread_s) {
        scan->passed_s = touched_s;
        scan->passed += touched_s < scan->asked_s - overlap_s(flow);
    }
}

static void scan_compared(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    struct slice heads[LOG_PAGE] = {0}, positions[LOG_PAGE] = {0}, names[LOG_PAGE];
    if (has_unprocessed(flow)) {
        flow_again(flow, scan_compare);
        return;
    }
    for (unsigned i = 0; i < scan->key_count; i++)
        names[i] = log_partition_text(flow, log_key_number(scan->keys[i]));
    items_sort(flow, &log_heads, scan->keys, heads);
    items_sort(flow, &log_positions, names, positions);
    scan->count = 0;
    for (unsigned i = 0; i < scan->key_count; i++) {
        struct log_candidate *candidate = &scan->candidates[scan->count];
        *candidate = (struct log_candidate){.partition = log_key_number(scan->keys[i]),
                                            .sequence = item_int(flow->arena, heads[i], "sequence", 0),
                                            .time_ms = item_int(flow->arena, heads[i], "time", 0),
                                            .parents = item_content(flow->arena, heads[i], "parents"),
                                            .item = positions[i]};
        candidate->position = log_position_of(flow, &scan->group, candidate->partition, positions[i]);
        bool read = is_read(scan, candidate);
        candidate_pass(flow, i, read);
        scan->count += !read;
    }
    scan->found(flow);
}

/* ---- marks ---- */

static void marks_written(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    scan->then(flow);
}

void log_scan_mark(struct flow *flow, unsigned worth, flow_step *then)
{
    struct log_scan *scan = flow->state;
    struct buf update = {0}, values = {0};
    scan->then = then;
    if (scan->asked_s && scan->slots_done < scan->layout.slots) slot_mark(flow, false);
    if ((scan->spared < worth || !scan->spared) && !scan->parked_is_read) {
        then(flow);
        return;
    }
    for (int i = 0; i < LOG_SLOTS; i++) {
        if (!scan->marks[i]) continue;
        buf_printf(&update, "%s #mark%d = :mark%d", update.len ? "," : "SET", i, i);
        buf_slice(&values,
                  flow_compose(flow, ",':mark%r':%N", arena_printf(flow->arena, "%d", i), scan->marks[i]));
    }
    if (scan->parked_is_read) buf_printf(&update, " REMOVE #again");
    flow_call(flow, marks_written, "UpdateItem",
              "{'TableName':%T,'Key':{'log':%S,'part':%S},'UpdateExpression':'%r',"
              "'ConditionExpression':'#turn = :turn',%#,'ExpressionAttributeValues':{':turn':%N%r}}",
              &log_table, flow_text(flow, LOG_NAME), log_group_part(flow), buf_view(&update),
              scan->group.turn, buf_view(&values));
    buf_free(&update);
    buf_free(&values);
}

/* ---- by time ---- */

static flow_step search_taken;

/* Events up to `low` are older, those behind `high` are not. */
static void search_next(struct flow *flow)
{
    const struct log_scan *scan = flow->state;
    const struct log_search *search = &scan->search;
    if (search->low == search->high)
        search->then(flow);
    else
        flow_call(flow, search_taken, "GetItem",
                  "{'TableName':%T,'Key':{'partition':%S,'sequence':%N},'ProjectionExpression':'#time',%#,"
                  "'ConsistentRead':true}",
                  &log_events, log_key(flow, search->partition),
                  search->low + (search->high - search->low + 1) / 2);
}

/* An event that is not there any more was older than all that are. */
static void search_taken(struct flow *flow)
{
    struct log_scan *scan = flow->state;
    struct log_search *search = &scan->search;
    int64_t middle = search->low + (search->high - search->low + 1) / 2;
    if (item_int(flow->arena, flow_item(flow), "time", 0) < scan->group.since_ms)
        search->low = middle;
    else
        search->high = middle - 1;
    search_next(flow);
}

void log_search_begin(struct flow *flow, const struct log_candidate *candidate, flow_step *then)
{
    struct log_scan *scan = flow->state;
    scan->search = (struct log_search){candidate->partition, 0, candidate->sequence, then};
    search_next(flow);
}
