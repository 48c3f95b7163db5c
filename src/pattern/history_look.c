/* Histories: the versions of an item, with what changed from one to the next, or the one that held at a
 * moment. */
#include "calendar/calendar.h"
#include "pattern/history.h"

#define LIST_MOST  1000
#define LIST_USUAL 100

enum { GET_RANGE = HISTORY_KEY + 1, GET_AT, GET_FROM, GET_TO, GET_LIMIT, GET_AFTER, GET_DIFF };

const struct field history_get_fields[] = {
    FIELD_HISTORY_TABLE,
    FIELD_HISTORY_KEY,
    [GET_RANGE] = {"range", IN_QUERY, FIELD_NAME, .max = 1024,
                   .help = "the item's range key, where the table has one"},
    [GET_AT] = {"at", IN_QUERY, FIELD_NAME, .max = 40,
                .help = "only what held at this time, to the second: 2026-11-15T03:42:06Z"},
    [GET_FROM] = {"from", IN_QUERY, FIELD_NAME, .max = 40, .help = "changes from this time on"},
    [GET_TO] = {"to", IN_QUERY, FIELD_NAME, .max = 40, .help = "changes up to this time"},
    [GET_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST, .help = "at most so many; 100"},
    [GET_AFTER] = {"after", IN_QUERY, FIELD_NAME, .help = "the \"next\" of the page before"},
    [GET_DIFF] = {"diff", IN_QUERY, FIELD_BOOL, .help = "also what each change changed"},
};

struct get {
    struct slice key, items, last_key;
};

static flow_step get_settings, get_at, get_listed, get_before;

struct slice history_image(struct flow *flow, struct slice version)
{
    return item_content(flow->arena, version, "image");
}

bool history_bound(struct flow *flow, unsigned field, struct slice *bound)
{
    int64_t time_ms;
    if (!flow_given(flow, field)) return true;
    if (moment_parse(flow_text(flow, field), &time_ms) && time_ms >= 0) {
        *bound = moment_text(flow->arena, time_ms);
        return true;
    }
    flow_refuse(flow, 400, "bad-request", "A time must be like 2026-11-15T03:42:06Z.");
    return false;
}

/* Versions between two bounds, both included. */
static void versions_ask(struct flow *flow, flow_step *then, struct slice from, struct slice to,
                         struct slice more)
{
    const struct get *get = flow->state;
    flow_call(
        flow, then, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version between :from and :to',%#,"
        "'ExpressionAttributeValues':{':item':%S,':from':%S,':to':%S},'ConsistentRead':true%A}",
        &history_table, get->key, from, to, more);
}

void history_get_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct get);
    if (flow_given(flow, GET_AT) && (flow_given(flow, GET_FROM) || flow_given(flow, GET_TO)))
        flow_refuse(flow, 400, "bad-request", "at excludes from and to.");
    else
        history_settings_ask(flow, get_settings);
}

static void get_settings(struct flow *flow)
{
    struct get *get = flow->state;
    struct history_settings settings;
    struct slice at = SLICE_NONE, from = SLICE(" "), to = SLICE("~"), start = SLICE("");
    struct slice range = flow_given(flow, GET_RANGE) ? flow_text(flow, GET_RANGE) : SLICE_NONE;
    if (!history_settings_read(flow, flow_item(flow), &settings)) return;
    if (!history_item_key(flow, &settings, range, &get->key)) return;
    if (!history_bound(flow, GET_AT, &at) || !history_bound(flow, GET_FROM, &from) ||
        !history_bound(flow, GET_TO, &to))
        return;
    if (at.data) {
        versions_ask(flow, get_at, SLICE(" "), arena_printf(flow->arena, "%.*s~", SLICE_ARG(at)),
                     SLICE(",\"ScanIndexForward\":false,\"Limit\":1"));
        return;
    }
    if (flow_given(flow, GET_AFTER))
        start = flow_compose(flow, ",'ExclusiveStartKey':{'item':%S,'version':%S}", get->key,
                             flow_text(flow, GET_AFTER));
    versions_ask(flow, get_listed, from, arena_printf(flow->arena, "%.*s~", SLICE_ARG(to)),
                 flow_compose(flow, ",'Limit':%d%A", flow_int_or(flow, GET_LIMIT, LIST_USUAL), start));
}

/* ---- telling ---- */

static struct slice member_of(struct flow *flow, struct slice item, const char *name)
{
    if (!item_has(flow->arena, item, name)) return SLICE("");
    return flow_compose(flow, ",%s:%P", slice_of(name), item_attribute(flow->arena, item, name));
}

static void put_change(struct flow *flow, struct slice name, struct slice before, struct slice after,
                       bool *first)
{
    if (slice_equal(before, after)) return;
    buf_slice(flow->body, flow_compose(flow, "%A{'name':%s", *first ? SLICE("") : SLICE(","), name));
    if (before.data) buf_slice(flow->body, flow_compose(flow, ",'before':%P", before));
    if (after.data) buf_slice(flow->body, flow_compose(flow, ",'after':%P", after));
    buf_byte(flow->body, '}');
    *first = false;
}

static struct slice attribute_of(struct flow *flow, struct slice image, struct slice name)
{
    return raw_member(flow->arena, image, arena_printf(flow->arena, "%.*s", SLICE_ARG(name)).data);
}

/* The attributes that differ. */
static void put_changes(struct flow *flow, struct slice before, struct slice after)
{
    struct raw_walk walk;
    struct slice name, value;
    bool first = true;
    buf_text(flow->body, ",\"changes\":[");
    raw_walk_begin(&walk, flow->arena, after);
    while (raw_walk_next(&walk, &name, &value))
        put_change(flow, name, attribute_of(flow, before, name), value, &first);
    raw_walk_begin(&walk, flow->arena, before);
    while (raw_walk_next(&walk, &name, &value))
        if (!attribute_of(flow, after, name).data) put_change(flow, name, value, SLICE_NONE, &first);
    buf_byte(flow->body, ']');
}

static void put_version(struct flow *flow, struct slice version, const struct slice *before)
{
    struct slice image = history_image(flow, version);
    buf_slice(flow->body, flow_compose(flow, "{'version':%P,'event':%P,'time':%P%A%A",
                                       item_attribute(flow->arena, version, "version"),
                                       item_attribute(flow->arena, version, "event"),
                                       item_attribute(flow->arena, version, "time"),
                                       member_of(flow, version, "cause"), member_of(flow, version, "large")));
    if (before) put_changes(flow, *before, image);
    buf_text(flow->body, ",\"item\":");
    if (image.data)
        plain_put_item(flow->body, flow->arena, image);
    else
        buf_text(flow->body, "null");
    buf_byte(flow->body, '}');
}

static void get_at(struct flow *flow)
{
    struct raw_walk walk;
    struct slice version;
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    if (!raw_walk_next(&walk, NULL, &version)) {
        flow_refuse(flow, 404, "no-version",
                    "The history has no version of this item at or before this time.");
        return;
    }
    put_version(flow, version, NULL);
    flow_finish(flow, 200);
}

static void tell_list(struct flow *flow, struct slice before)
{
    const struct get *get = flow->state;
    struct raw_walk walk;
    struct slice version;
    bool first = true, diff = flow_int_or(flow, GET_DIFF, 0);
    buf_text(flow->body, "{\"versions\":[");
    raw_walk_begin(&walk, flow->arena, get->items);
    for (; raw_walk_next(&walk, NULL, &version); first = false) {
        if (!first) buf_byte(flow->body, ',');
        put_version(flow, version, diff ? &before : NULL);
        before = history_image(flow, version);
    }
    buf_slice(flow->body, get->last_key.data ? flow_compose(flow, "],'next':%s}",
                                                            item_text(flow->arena, get->last_key, "version"))
                                             : SLICE("]}"));
    flow_finish(flow, 200);
}

/* What the first of the page changed is told by the one before it. */
static void get_listed(struct flow *flow)
{
    struct get *get = flow->state;
    struct raw_walk walk;
    struct slice first;
    get->items = flow_items(flow);
    get->last_key = flow_last_key(flow);
    raw_walk_begin(&walk, flow->arena, get->items);
    if (flow_int_or(flow, GET_DIFF, 0) && raw_walk_next(&walk, NULL, &first))
        flow_call(flow, get_before, "Query",
                  "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version < :first',%#,"
                  "'ExpressionAttributeValues':{':item':%S,':first':%A},'ScanIndexForward':false,'Limit':1}",
                  &history_table, get->key, item_attribute(flow->arena, first, "version"));
    else
        tell_list(flow, SLICE_NONE);
}

static void get_before(struct flow *flow)
{
    struct raw_walk walk;
    struct slice version;
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    tell_list(flow, raw_walk_next(&walk, NULL, &version) ? history_image(flow, version) : SLICE_NONE);
}
