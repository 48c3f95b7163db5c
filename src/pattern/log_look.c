/* Looking at a log: its open partitions, and events without a group. */
#include "calendar/calendar.h"
#include "pattern/log.h"

#define LIST_MOST    100 /* partitions: their heads are read by one BatchGetItem */
#define EVENTS_MOST  1000
#define EVENTS_USUAL 100

/* ---- looking at it ---- */

enum { GET_LIMIT = LOG_NAME + 1, GET_AFTER };

const struct field log_get_fields[] = {
    FIELD_LOG,
    [GET_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                   .help = "so many partitions at most (default: 100)"},
    [GET_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 16, .help = "the \"next\" of the page before"},
};

struct route {
    struct log_range range;
    struct route *next;
};

struct get {
    struct log_layout layout;
    struct slice item, consumers; /* names, each behind a comma but the first */
    struct route *routes;         /* in order, without gaps of their own making */
    struct log_range shown[LIST_MOST];
    unsigned shown_count;
    bool is_all;
};

/* All items of the log: itself, its routes and its groups. */
static void get_read(struct flow *flow, struct get *get)
{
    struct slice last = SLICE_NONE, item;
    struct route **routes_end = &get->routes;
    struct log_range range;
    get->consumers = SLICE("");
    do {
        task_call(flow, "Query",
                  "{'TableName':%T,'KeyConditionExpression':'#log = :log',%#,"
                  "'ExpressionAttributeValues':{':log':%S},'ConsistentRead':true%A}",
                  &log_table, flow_text(flow, LOG_NAME), page_from(flow, last));
        raw_each (flow->arena, flow_items(flow), &item) {
            struct slice part = item_text(flow->arena, item, "part");
            if (slice_starts(part, SLICE("from/")) && log_range_read(flow, item, &range)) {
                *routes_end = arena_new(flow->arena, struct route);
                (*routes_end)->range = range;
                routes_end = &(*routes_end)->next;
            }
            if (slice_equal(part, SLICE("log"))) get->item = item;
            if (slice_starts(part, SLICE("group/")))
                get->consumers = flow_compose(flow, "%A%,%s", get->consumers, slice_from(part, 6));
        }
        last = flow_last_key(flow);
    } while (last.data);
}

/* The open partitions in the order of their hashes: routes where there are some, else as at the beginning. */
static void get_choose(struct flow *flow, struct get *get)
{
    uint64_t at = 0;
    const struct route *route = get->routes;
    get->is_all = flow_given(flow, GET_AFTER) && log_hex_read(flow_text(flow, GET_AFTER), &at) && ++at == 0;
    while (!get->is_all && get->shown_count < (unsigned)flow_int_or(flow, GET_LIMIT, LIST_MOST)) {
        while (route && route->range.to < at) route = route->next;
        bool is_route = route && route->range.from <= at;
        struct log_range range = is_route ? route->range : log_range_of(&get->layout, at);
        get->shown[get->shown_count++] = range;
        get->is_all = range.to == UINT64_MAX;
        at = range.to + 1;
    }
}

/* Those of the shown partitions that something was ever put into. */
static struct slice get_heads(struct flow *flow, struct get *get)
{
    struct slice keys = SLICE("");
    for (unsigned i = 0; i < get->shown_count; i++)
        keys = flow_compose(flow, "%A%,{'partition':%S}", keys,
                            log_key(flow, &get->layout, get->shown[i].partition));
    log_batch_get(flow, flow_compose(flow, "%T:{'Keys':[%A],'ConsistentRead':true}", &log_heads, keys));
    return log_batch_items(flow, &log_heads);
}

static bool head_is_there(struct flow *flow, struct slice heads, struct slice key)
{
    struct slice item;
    raw_each (flow->arena, heads, &item)
        if (slice_equal(item_text(flow->arena, item, "partition"), key)) return true;
    return false;
}

void log_get_begin(struct flow *flow)
{
    struct get *get = arena_new(flow->arena, struct get);
    get_read(flow, get);
    log_layout_read(flow, get->item, &get->layout);
    get_choose(flow, get);
    struct slice heads = get_heads(flow, get);
    flow_put(flow, flow->body, "{%A,'created':%P,'version':%d,'consumers':[%A],'open':[",
             log_settings(flow, &get->layout), item_attribute(flow->arena, get->item, "created"),
             get->layout.version, get->consumers);
    for (unsigned i = 0; i < get->shown_count; i++) {
        const struct log_range *range = &get->shown[i];
        struct log_end end = {0};
        if (head_is_there(flow, heads, log_key(flow, &get->layout, range->partition)))
            end = log_end_get(flow, &get->layout, range->partition);
        flow_put(flow, flow->body, "%,{'partition':%s,'from':%s,'to':%s,'sequence':%d}",
                 log_partition_text(flow, range->partition), log_hex(flow, range->from),
                 log_hex(flow, range->to), end.sequence);
    }
    page_finish(flow, get->is_all ? SLICE_NONE : log_hex(flow, get->shown[get->shown_count - 1].to));
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
    for (; log_read_event(flow, &reader); count++) {
        if (count) buf_byte(flow->body, ',');
        log_reader_put(flow, &reader);
    }
    buf_byte(flow->body, ']');
    if (count == reader.most) flow_put(flow, flow->body, ",'next':%d", reader.sequence);
    buf_byte(flow->body, '}');
    flow_finish(flow, 200);
}
