/* The walk through the partitions that a group may not have read to their end.
 *
 * The index news holds each partition at a second that is at most LOG_TOUCHED_S before its last event, in up to 16
 * slots. A group keeps a mark for each slot: what was touched before it is read. So a walk asks each slot for what was
 * touched since, and looks at positions only for these: its cost grows with the news, not with the partitions.
 *
 * A head is touched before events are put, and says behind which number: a position up to there has something to read,
 * but for one who died before the put. A position behind it may have something to read, because a busy partition's head
 * is not touched with every page. Whoever has read to the end of a page knows where the next one will stand: one read
 * tells whether it does, and many are told by one call (log_scan_check).
 *
 * A mark is raised to the first partition that is not read, and never nearer to the present than OVERLAP_S:
 * an event may show up in the index with a moment that lies somewhat back (its call was repeated after a
 * pause; an index on AWS follows its table; clocks differ). Replays lower marks and raise the group's turn; a
 * mark is only written on the turn that the walk has seen. */
#include "pattern/log.h"
#include "pattern/sweep.h"

#define OVERLAP_S        (10 + LOG_TOUCHED_S) /* longer than a flow repeats a call */
#define OVERLAP_REMOTE_S (60 + LOG_TOUCHED_S)
#define NO_SLOT          LOG_SLOTS /* of the group's own partition */

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
                                .again = item_int(flow->arena, item, "again", 0)};
}

_Noreturn void log_refuse_group(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-consumer",
                "The log '%.*s' has no group of consumers '%.*s'; its first read makes it.",
                SLICE_ARG(flow_text(flow, LOG_NAME)), SLICE_ARG(flow_text(flow, LOG_GROUP)));
}

void log_group_get(struct flow *flow, struct log_layout *layout, struct log_group *group)
{
    struct slice name = flow_text(flow, LOG_NAME), item, log = SLICE_NONE, group_item = SLICE_NONE;
    struct slice keys = flow_compose(flow, "{'log':%S,'part':{'S':'log'}},{'log':%S,'part':%S}", name, name,
                                     log_group_part(flow));
    struct item_batch batch = get_items_begin(flow, &log_table, keys, READ_FRESH);
    while (get_items_next(flow, &batch, &item))
        *(item_says(flow->arena, item, "part", "log") ? &log : &group_item) = item;
    log_layout_read(flow, log, layout);
    group_read(flow, log_replay_finish(flow, group_item), group);
}

struct slice log_position(struct flow *flow, int64_t partition)
{
    return flow_compose(flow, "{'group':%S,'partition':%S}", log_group_key(flow),
                        log_partition_text(flow, partition));
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
    const char *name = arena_printf(flow->arena, "mark%d", (int)slot).data;
    return item_int(flow->arena, group->item, name, group->since_ms / 1000 - LOG_TOUCHED_S);
}

void log_positions_get(struct flow *flow, const int64_t *partitions, unsigned count, struct slice *items)
{
    struct slice group = log_group_key(flow), item;
    struct buf keys = {0};
    for (unsigned i = 0; i < count; i++)
        flow_put(flow, &keys, "%,{'group':%S,'partition':%S}", group,
                 log_partition_text(flow, partitions[i]));
    struct item_batch batch = get_items_begin(flow, &log_positions, arena_take(flow->arena, &keys),
                                              READ_FRESH);
    for (unsigned i = 0; i < count; i++) items[i] = SLICE_NONE;
    while (get_items_next(flow, &batch, &item)) {
        int64_t partition = log_key_number(item_text(flow->arena, item, "partition"));
        for (unsigned i = 0; i < count; i++)
            if (partitions[i] == partition) items[i] = item;
    }
}

/* ---- candidates ---- */

/* By the head and the position alone. */
static enum log_news news_of(struct flow *flow, const struct log_scan *scan,
                             const struct log_candidate *candidate)
{
    int64_t position = candidate->position, page = item_int(flow->arena, candidate->item, "page", 0);
    if (candidate->partition == LOG_PARKED) return position < scan->group.again ? LOG_UNREAD : LOG_READ;
    if (position < 0)
        return (candidate->touched_s + scan->overlap_s) * 1000 < scan->group.since_ms ? LOG_READ : LOG_UNREAD;
    bool page_is_next = item_int(flow->arena, candidate->item, "given", 0) == position &&
                        page == position + 1;
    return position <= candidate->announced || !page_is_next ? LOG_UNREAD : LOG_UNSURE;
}

/* Where the numbers of a partition begin: behind those of its parents. */
static int64_t position_first(struct flow *flow, const struct log_candidate *candidate)
{
    int64_t last = 0;
    struct slice parent;
    if (!candidate->parents.data) return 0;
    raw_each (flow->arena, candidate->parents, &parent) {
        int64_t end = item_int(flow->arena, raw_member(flow->arena, parent, "M"), "end", 0);
        if (end > last) last = end;
    }
    return last;
}

void log_scan_check(struct flow *flow, struct log_scan *scan)
{
    struct buf keys = {0};
    struct slice page;
    for (unsigned i = 0; i < scan->count; i++) {
        struct log_candidate *candidate = &scan->candidates[i];
        if (candidate->news != LOG_UNSURE) continue;
        flow_put(flow, &keys, "%,{'chain':%S,'first':%N}", log_key(flow, &scan->layout, candidate->partition),
                 candidate->position + 1);
        candidate->news = LOG_READ;
    }
    if (!keys.len) return;
    struct item_batch batch = get_items_begin(flow, &log_events, arena_take(flow->arena, &keys),
                                              ",'ProjectionExpression':'#chain, #n',%#");
    while (get_items_next(flow, &batch, &page)) {
        int64_t partition = log_key_number(item_text(flow->arena, page, "chain"));
        for (unsigned i = 0; i < scan->count; i++) /* a seal has no events */
            if (scan->candidates[i].partition == partition && item_int(flow->arena, page, "n", 0))
                scan->candidates[i].news = LOG_UNREAD;
    }
}

/* ---- the walk ---- */

void log_scan_begin(struct flow *flow, struct log_scan *scan, bool makes_group)
{
    *scan = (struct log_scan){.overlap_s = flow->world->skew_ms ? OVERLAP_REMOTE_S : OVERLAP_S};
    log_group_get(flow, &scan->layout, &scan->group);
    if (!scan->group.item.data && !makes_group) log_refuse_group(flow);
    if (!scan->group.item.data) {
        task_call(flow, "PutItem",
                  "{'TableName':%T,'Item':{'log':%S,'part':%S,'turn':{'N':'0'},'generation':{'N':'0'},"
                  "'since':{'N':'0'}},'ConditionExpression':'attribute_not_exists(part)',%O}",
                  &log_table, flow_text(flow, LOG_NAME), log_group_part(flow));
        if (flow_failed(flow)) group_read(flow, flow_item(flow), &scan->group);
    }
    scan->parked_is_next = scan->group.again != 0;
    scan->slot = (unsigned)flow_random_below(flow, (uint64_t)scan->layout.slots);
}

/* Notes how far all of the page is read. What is unsure counts as unread. */
static void page_pass(struct log_scan *scan)
{
    for (unsigned i = 0; i < scan->count; i++) {
        const struct log_candidate *candidate = &scan->candidates[i];
        if (candidate->slot == NO_SLOT) {
            scan->parked_is_read = candidate->news == LOG_READ;
        } else if (scan->slots[candidate->slot].unread_s) {
            continue;
        } else if (candidate->news != LOG_READ) {
            scan->slots[candidate->slot].unread_s = candidate->touched_s;
        } else {
            scan->slots[candidate->slot].passed_s = candidate->touched_s;
            if (candidate->touched_s < scan->slots[candidate->slot].asked_s - scan->overlap_s)
                scan->slots[candidate->slot].passed++;
        }
    }
    scan->count = 0;
}

/* Adds what fits of the slot's index to the page. */
static void take_slot(struct flow *flow, struct log_scan *scan)
{
    struct slice item;
    if (!scan->last_key.data) scan->slots[scan->slot].asked_s = flow->now_ms / 1000;
    task_query(flow, "#slot = :slot and #touched >= :mark", ",'IndexName':'news','Limit':%d" READ_FROM,
               "':slot':%S,':mark':%N", &log_heads, (int64_t)(LOG_PAGE - scan->count), scan->last_key,
               log_key(flow, &scan->layout, scan->slot), log_mark(flow, &scan->group, scan->slot));
    scan->last_key = flow_last_key(flow);
    raw_each (flow->arena, flow_items(flow), &item)
        if (scan->count < LOG_PAGE)
            scan->candidates[scan->count++] = (struct log_candidate){
                .partition = log_key_number(item_text(flow->arena, item, "partition")),
                .touched_s = item_int(flow->arena, item, "touched", 0),
                .announced = item_int(flow->arena, item, "sequence", 0),
                .parents = item_content(flow->arena, item, "parents"),
                .slot = scan->slot};
    if (scan->last_key.data) return;
    scan->slots[scan->slot].is_walked = true;
    scan->slot = (scan->slot + 1) % (unsigned)scan->layout.slots;
    scan->slots_done++;
}

bool log_scan_page(struct flow *flow, struct log_scan *scan)
{
    page_pass(scan);
    if (scan->parked_is_next) { /* what was parked and is to be read again comes first */
        scan->parked_is_next = false;
        scan->candidates[scan->count++] = (struct log_candidate){.partition = LOG_PARKED, .slot = NO_SLOT};
    } else {
        while (scan->count < LOG_PAGE && scan->slots_done < scan->layout.slots) take_slot(flow, scan);
    }
    if (scan->count) {
        /* Finds the positions of a page. */
        int64_t partitions[LOG_PAGE];
        struct slice items[LOG_PAGE];
        for (unsigned i = 0; i < scan->count; i++) partitions[i] = scan->candidates[i].partition;
        log_positions_get(flow, partitions, scan->count, items);
        for (unsigned i = 0; i < scan->count; i++) {
            struct log_candidate *candidate = &scan->candidates[i];
            candidate->item = log_park_finish(flow, &scan->layout, candidate->partition, items[i]);
            candidate->position = log_position_of(flow, &scan->group, candidate->partition, candidate->item);
            if (!candidate->position) candidate->position = position_first(flow, candidate);
            candidate->news = news_of(flow, scan, candidate);
        }
    }
    return scan->count;
}

void log_scan_mark(struct flow *flow, struct log_scan *scan, unsigned worth)
{
    int64_t marks[LOG_SLOTS] = {0};
    struct edit edit = {0};
    unsigned spared = 0;
    page_pass(scan);
    for (unsigned i = 0; i < scan->layout.slots; i++) {
        int64_t newest_s = scan->slots[i].asked_s - scan->overlap_s;
        int64_t mark_s = scan->slots[i].is_walked ? newest_s : scan->slots[i].passed_s;
        if (scan->slots[i].unread_s) mark_s = scan->slots[i].unread_s;
        if (mark_s > newest_s) mark_s = newest_s;
        if (!scan->slots[i].passed || mark_s <= log_mark(flow, &scan->group, i)) continue;
        spared += scan->slots[i].passed;
        marks[i] = mark_s;
    }
    if ((spared < worth || !spared) && !scan->parked_is_read) return;
    for (unsigned i = 0; i < LOG_SLOTS; i++)
        if (marks[i]) edit_set(flow, &edit, arena_printf(flow->arena, "mark%u", i).data, "%N", marks[i]);
    if (scan->parked_is_read) edit_put(flow, &edit, EDIT_REMOVE, "#again", NULL);
    edit_if(flow, &edit, "#turn = :turn", "':turn':%N", scan->group.turn);
    edit_write(flow, &edit, &log_table, LOG_GROUP_KEY(flow));
}

/* ---- by time ---- */

int64_t log_position_before(struct flow *flow, const struct log_layout *layout, int64_t partition,
                            int64_t time_ms)
{
    struct chain chain = log_chain(flow, layout, partition);
    /* events up to `low` are older, those behind `high` are not */
    int64_t low = 0, high = log_end_get(flow, layout, partition).sequence;
    while (low < high) {
        int64_t middle = low + (high - low + 1) / 2;
        struct chain_reader reader = {.chain = &chain, .from = middle, .most = 1, .backwards = true};
        /* what is not there any more was older than all that is; those of a page have one time */
        if (!chain_read(flow, &reader) || reader.time_ms < time_ms)
            low = middle;
        else
            high = reader.first - 1;
    }
    return low;
}
