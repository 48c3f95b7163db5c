/* Looking at a log: its open partitions, and events without a group. */
#include "calendar/calendar.h"
#include "pattern/log.h"
#include "pattern/sweep.h"

#define HEADS_MOST   100 /* partitions: their heads are read by one BatchGetItem */
#define EVENTS_MOST  1000
#define EVENTS_USUAL 100

/* ---- looking at it ---- */

enum { GET_LIMIT = LOG_NAME + 1, GET_AFTER };

const struct field log_get_fields[] = {
    FIELD_LOG,
    [GET_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = HEADS_MOST,
                   .help = "so many partitions at most (default: 100)"},
    [GET_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 16, .help = "the \"next\" of the page before"},
};

struct slice log_items_read(struct flow *flow, struct log_routes **routes, struct slice *consumers)
{
    struct slice log = SLICE_NONE, last = SLICE_NONE, item;
    struct log_range range;
    do {
        task_query(flow, "#log = :log", READ_FRESH READ_FROM, "':log':%S", &log_table, last,
                   flow_text(flow, LOG_NAME));
        raw_each (flow->arena, flow_items(flow), &item) {
            struct slice part = item_text(flow->arena, item, "part");
            if (slice_equal(part, SLICE("log"))) log = item;
            if (slice_starts(part, SLICE("group/")))
                *consumers = flow_compose(flow, "%A%,%s", *consumers, slice_from(part, 6));
            if (!slice_starts(part, SLICE("from/")) || !log_range_read(flow, item, &range)) continue;
            *routes = arena_new(flow->arena, struct log_routes);
            (*routes)->range = range;
            routes = &(*routes)->next;
        }
        last = flow_last_key(flow);
    } while (last.data);
    return log;
}

/* Routes where there are some, else as at the beginning. */
struct log_range log_open_at(const struct log_layout *layout, struct log_routes **routes, uint64_t hash)
{
    while (*routes && (*routes)->range.to < hash) *routes = (*routes)->next;
    return *routes && (*routes)->range.from <= hash ? (*routes)->range : log_range_of(layout, hash);
}

/* The open partitions in the order of their hashes. */
void log_get_begin(struct flow *flow)
{
    struct log_routes *routes = NULL;
    struct slice keys = SLICE(""), consumers = SLICE(""), log = log_items_read(flow, &routes, &consumers),
                 head;
    struct log_layout layout;
    struct log_range shown[HEADS_MOST];
    bool has_head[HEADS_MOST] = {0}; /* something was ever put into it */
    unsigned count = 0;
    uint64_t at = 0;
    log_layout_read(flow, log, &layout);
    bool is_all = flow_given(flow, GET_AFTER) && log_hex_read(flow_text(flow, GET_AFTER), &at) && ++at == 0;
    while (!is_all && count < (unsigned)flow_int_or(flow, GET_LIMIT, HEADS_MOST)) {
        struct log_range range = log_open_at(&layout, &routes, at);
        keys = flow_compose(flow, "%A%,{'partition':%S}", keys, log_key(flow, &layout, range.partition));
        shown[count++] = range;
        is_all = range.to == UINT64_MAX;
        at = range.to + 1;
    }
    struct item_batch batch = get_items_begin(flow, &log_heads, keys, READ_FRESH);
    while (get_items_next(flow, &batch, &head))
        for (unsigned i = 0; i < count; i++)
            has_head[i] |= shown[i].partition == log_key_number(item_text(flow->arena, head, "partition"));
    struct slice scale = log_scale_state(flow, &layout);
    flow_put(flow, flow->body, "{%A,'created':%s,'version':%d,'consumers':[%A]%A,'open':[",
             log_settings(flow, &layout), layout.created, layout.version, consumers,
             log_scale_changes(flow, scale));
    for (unsigned i = 0; i < count; i++) {
        struct log_end end = {0};
        if (has_head[i]) end = log_end_get(flow, &layout, shown[i].partition);
        flow_put(flow, flow->body, "%,{'partition':%s,'from':%s,'to':%s,'sequence':%d%A}",
                 log_partition_text(flow, shown[i].partition), log_hex(flow, shown[i].from),
                 log_hex(flow, shown[i].to), end.sequence, log_scale_rate(flow, scale, shown[i].partition));
    }
    page_finish(flow, is_all ? SLICE_NONE : log_hex(flow, shown[count - 1].to));
}

/* ---- looking into it ---- */

enum { EVENTS_PARTITION = LOG_NAME + 1, EVENTS_AFTER, EVENTS_LIMIT };

const struct field log_events_fields[] = {
    FIELD_LOG,
    [EVENTS_PARTITION] = {"partition", IN_PATH, FIELD_NAME, true, .help = "the partition"},
    [EVENTS_AFTER] = {"after", IN_QUERY, FIELD_INT, .max = LOG_NUMBER_MOST,
                      .help = "only behind this number (default: 0)"},
    [EVENTS_LIMIT] = FIELD_LIMIT(EVENTS_MOST),
};

/* What of other partitions must be read before this one. */
static struct slice parents_member(struct flow *flow, struct slice head)
{
    struct slice list = SLICE(""), parent;
    if (!item_has(flow->arena, head, "parents")) return list;
    raw_each (flow->arena, item_content(flow->arena, head, "parents"), &parent) {
        struct slice map = raw_member(flow->arena, parent, "M");
        list = flow_compose(flow, "%r%,{'partition':%s,'end':%d}", list,
                            item_text(flow->arena, map, "partition"), item_int(flow->arena, map, "end", 0));
    }
    return flow_compose(flow, ",'parents':[%r]", list);
}

static struct slice children_member(struct flow *flow, struct slice seal)
{
    unsigned count;
    struct slice children = log_children_text(flow, seal, &count);
    return count ? flow_compose(flow, ",'children':[%r]", children) : SLICE("");
}

void log_events_begin(struct flow *flow)
{
    struct log_layout layout;
    struct log_reader reader = {.layout = &layout,
                                .from = flow_int_or(flow, EVENTS_AFTER, 0) + 1,
                                .partition = log_partition_of(flow, flow_text(flow, EVENTS_PARTITION), false),
                                .most = flow_int_or(flow, EVENTS_LIMIT, EVENTS_USUAL)};
    int64_t count = 0;
    log_layout_get(flow, &layout);
    if (reader.partition >= layout.next) log_refuse_partition(flow, reader.partition);
    struct slice head = log_head_get(flow, &layout, reader.partition);
    struct log_end end = log_end_get(flow, &layout, reader.partition);
    flow_put(flow, flow->body, "{'partition':%s,'state':%s,'sequence':%d%A%A,'events':[",
             log_partition_text(flow, reader.partition), end.is_sealed ? SLICE("SEALED") : SLICE("OPEN"),
             end.sequence, parents_member(flow, head), children_member(flow, end.seal));
    for (; log_read_event(flow, &reader); count++) log_reader_put(flow, &reader);
    flow_put(flow, flow->body, count == reader.most ? "],'next':%d}" : "]}", reader.sequence);
    flow_finish(flow, 200);
}
