/* Histories: the versions of an item, with what changed from one to the next, or the one that held at a
 * moment. */
#include "calendar/calendar.h"
#include "pattern/history.h"

#define LIST_MOST  1000
#define LIST_USUAL 100
#define WALK_PAGE  25 /* versions of one second, to find the one that held within it */

enum {
    GET_AT = HISTORY_RANGE + 1,
    GET_VERSION,
    GET_FROM,
    GET_TO,
    GET_LIMIT,
    GET_AFTER,
    GET_DIFF,
    GET_AGAINST
};

const struct field history_get_fields[] = {
    FIELD_HISTORY_TABLE,
    FIELD_HISTORY_KEY,
    FIELD_HISTORY_RANGE(IN_QUERY),
    [GET_AT] = {"at", IN_QUERY, FIELD_NAME, .max = 40,
                .help = "only what held at this time: 2026-11-15T03:42:06Z"},
    [GET_VERSION] = {"version", IN_QUERY, FIELD_NAME, .help = "only this version"},
    [GET_FROM] = {"from", IN_QUERY, FIELD_NAME, .max = 40, .help = "changes from this time on"},
    [GET_TO] = {"to", IN_QUERY, FIELD_NAME, .max = 40, .help = "changes up to this time"},
    [GET_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                   .help = "at most so many (default: 100)"},
    [GET_AFTER] = {"after", IN_QUERY, FIELD_NAME, .help = "the \"next\" of the page before"},
    [GET_DIFF] = {"diff", IN_QUERY, FIELD_BOOL, .help = "also what each change changed"},
    [GET_AGAINST] = {"against", IN_QUERY, FIELD_NAME,
                     .help = "with at or version: also what differs from this version, or time"},
};

struct get {
    struct history_search search; /* first */
    struct slice key;
    struct slice one;             /* the version asked for */
    struct slice items, last_key; /* of a list */
};

static flow_step get_settings, get_one, get_listed;

struct slice history_image(struct flow *flow, struct slice version)
{
    struct slice image = item_content(flow->arena, version, "image");
    return image.data ? image : item_text(flow->arena, version, "imageText");
}

struct slice history_first(struct flow *flow)
{
    struct raw_look look;
    struct slice version;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    return raw_look_next(&look, NULL, &version) ? version : SLICE_NONE;
}

bool history_bound(struct flow *flow, unsigned field, struct slice *bound)
{
    int64_t time_ms;
    if (!flow_given(flow, field)) return true;
    if (moment_parse(flow_text(flow, field), &time_ms) && time_ms >= 0) {
        *bound = moment_text(flow->arena, time_ms);
        return true;
    }
    flow_refuse(flow, 400, "bad-request", "\"%.*s\" is no time: one is like 2026-11-15T03:42:06Z.",
                SLICE_ARG(flow_text(flow, field)));
    return false;
}

void history_ask_last(struct flow *flow, struct slice key, struct slice bound, flow_step *then)
{
    flow_call(flow, then, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version <= :bound',%#,"
              "'ExpressionAttributeValues':{':item':%S,':bound':%S},'ScanIndexForward':false,'Limit':1,"
              "'ConsistentRead':true}",
              &history_table, key, bound);
}

static flow_step at_found, at_walked;
static void at_walk(struct flow *flow, struct slice version);

/* The bound behind everything of a moment. */
static struct slice up_to(struct flow *flow, struct slice bound)
{
    return arena_printf(flow->arena, "%.*s~", SLICE_ARG(bound));
}

void history_ask_at(struct flow *flow, struct slice key, struct slice moment, flow_step *then)
{
    struct history_search *search = flow->state;
    *search = (struct history_search){key, moment, then};
    history_ask_last(flow, key, up_to(flow, moment), at_found);
}

/* A version's key has the second of its change; `time` may know the millisecond (history_record.c). */
static void at_found(struct flow *flow)
{
    const struct history_search *search = flow->state;
    struct slice time = item_text(flow->arena, history_first(flow), "time");
    if (slice_compare(time, search->moment) <= 0)
        search->then(flow);
    else
        at_walk(flow, item_attribute(flow->arena, history_first(flow), "version"));
}

/* The last one before a version, among those that are not too late. */
static void at_walk(struct flow *flow, struct slice version)
{
    const struct history_search *search = flow->state;
    flow_call(
        flow, at_walked, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version < :version',"
        "'FilterExpression':'#time <= :moment',%#,'ExpressionAttributeValues':{':item':%S,':version':%A,"
        "':moment':%S},"
        "'ScanIndexForward':false,'Limit':%d,'ConsistentRead':true}",
        &history_table, search->key, version, search->moment, (int64_t)WALK_PAGE);
}

static void at_walked(struct flow *flow)
{
    const struct history_search *search = flow->state;
    struct slice last = flow_last_key(flow);
    if (!history_first(flow).data && last.data)
        at_walk(flow, item_attribute(flow->arena, last, "version"));
    else
        search->then(flow);
}

/* Asks for the one before a version. */
static void before_ask(struct flow *flow, struct slice version, flow_step *then)
{
    const struct get *get = flow->state;
    flow_call(flow, then, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version < :version',%#,"
              "'ExpressionAttributeValues':{':item':%S,':version':%A},'ScanIndexForward':false,'Limit':1,"
              "'ConsistentRead':true}",
              &history_table, get->key, item_attribute(flow->arena, version, "version"));
}

static bool get_is_understood(struct flow *flow)
{
    bool is_one = flow_given(flow, GET_AT) || flow_given(flow, GET_VERSION);
    bool is_list = flow_given(flow, GET_FROM) || flow_given(flow, GET_TO) || flow_given(flow, GET_AFTER);
    if (flow_given(flow, GET_AT) && flow_given(flow, GET_VERSION))
        flow_refuse(flow, 400, "bad-request", "at and version exclude each other.");
    else if (is_one && is_list)
        flow_refuse(flow, 400, "bad-request", "at and version tell one: from, to and after are of lists.");
    else if (flow_given(flow, GET_AGAINST) && !is_one)
        flow_refuse(flow, 400, "bad-request", "against needs at or version.");
    else
        return true;
    return false;
}

void history_get_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct get);
    if (get_is_understood(flow)) history_settings_ask(flow, get_settings);
}

/* The begin of a moment's second, which keys of versions have: "2026-11-15T04:13:25.340Z" -> "...25". */
static struct slice second_of(struct flow *flow, struct slice moment)
{
    const char *dot = memchr(moment.data, '.', moment.len);
    return dot ? arena_copy(flow->arena, (struct slice){moment.data, (size_t)(dot - moment.data)}) : moment;
}

/* A page of the versions between two bounds, both included. */
static void list_ask(struct flow *flow, struct slice from, struct slice to)
{
    const struct get *get = flow->state;
    struct slice start = SLICE("");
    if (flow_given(flow, GET_AFTER))
        start = flow_compose(flow, ",'ExclusiveStartKey':{'item':%S,'version':%S}", get->key,
                             flow_text(flow, GET_AFTER));
    flow_call(flow, get_listed, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version between :second and "
              ":bound','FilterExpression':'#time between :from and :to',%#,"
              "'ExpressionAttributeValues':{':item':%S,':second':%S,':bound':%S,':from':%S,':to':%S},"
              "'ConsistentRead':true,'Limit':%d%A}",
              &history_table, get->key, second_of(flow, from), up_to(flow, to), from, to,
              flow_int_or(flow, GET_LIMIT, LIST_USUAL), start);
}

static void get_settings(struct flow *flow)
{
    struct get *get = flow->state;
    struct history_settings settings;
    struct slice at = SLICE_NONE, from = SLICE(" "), to = SLICE("~");
    if (!history_settings_read(flow, flow_item(flow), &settings)) return;
    if (!history_item_key(flow, &settings, &get->key)) return;
    if (!history_bound(flow, GET_AT, &at) || !history_bound(flow, GET_FROM, &from) ||
        !history_bound(flow, GET_TO, &to))
        return;
    if (slice_compare(from, to) > 0)
        flow_refuse(flow, 400, "bad-request", "from is behind to.");
    else if (at.data)
        history_ask_at(flow, get->key, at, get_one);
    else if (flow_given(flow, GET_VERSION))
        history_ask_last(flow, get->key, flow_text(flow, GET_VERSION), get_one);
    else
        list_ask(flow, from, to);
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
    if (before.data && after.data && attribute_equal(flow->arena, before, after)) return;
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

static bool image_is_known(struct flow *flow, struct slice version)
{
    return version.data && !item_has(flow->arena, version, "lost");
}

/* What a version itself says of its change (history_record.c). */
static void put_own_changes(struct flow *flow, struct slice before, struct slice version)
{
    struct raw_look look;
    struct slice name, value, after = history_image(flow, version);
    bool first = true;
    raw_look_begin(&look, flow->arena, before);
    while (raw_look_next(&look, &name, &value))
        put_change(flow, name, value, attribute_of(flow, after, name), &first);
    raw_look_begin(&look, flow->arena, item_content(flow->arena, version, "added"));
    while (raw_look_next(&look, NULL, &value)) {
        name = raw_text(flow->arena, value);
        put_change(flow, name, SLICE_NONE, attribute_of(flow, after, name), &first);
    }
}

/* The attributes that differ; of images that were not kept nobody knows. */
static void put_changes(struct flow *flow, struct slice old, struct slice version)
{
    struct raw_look look;
    struct slice name, value, before = history_image(flow, old), after = history_image(flow, version);
    bool first = true, is_insert = item_says(flow->arena, version, "event", "INSERT");
    struct slice own = item_content(flow->arena, version, "before");
    if (!own.data) own = item_text(flow->arena, version, "beforeText");
    bool is_alone = !image_is_known(flow, old) && !flow_given(flow, GET_AGAINST);
    if (item_has(flow->arena, version, "lost") || (is_alone && !own.data && !is_insert)) return;
    if (!is_alone && item_has(flow->arena, old, "lost")) return;
    buf_text(flow->body, ",\"changes\":[");
    if (is_alone && own.data) {
        put_own_changes(flow, own, version);
        buf_byte(flow->body, ']');
        return;
    }
    raw_look_begin(&look, flow->arena, after);
    while (raw_look_next(&look, &name, &value))
        put_change(flow, name, attribute_of(flow, before, name), value, &first);
    raw_look_begin(&look, flow->arena, before);
    while (raw_look_next(&look, &name, &value))
        if (!attribute_of(flow, after, name).data) put_change(flow, name, value, SLICE_NONE, &first);
    buf_byte(flow->body, ']');
}

/* `old`: the version to compare with, SLICE_NONE where there is none; NULL: not compared. */
static void put_version(struct flow *flow, struct slice version, const struct slice *old)
{
    bool is_exact = item_has(flow->arena, version, "exact");
    struct slice image = history_image(flow, version);
    buf_slice(flow->body,
              flow_compose(flow, "{'version':%P,'event':%P,'time':%P%A%A%A%A",
                           item_attribute(flow->arena, version, "version"),
                           item_attribute(flow->arena, version, "event"),
                           item_attribute(flow->arena, version, "time"), member_of(flow, version, "cause"),
                           member_of(flow, version, "transaction"), member_of(flow, version, "by"),
                           member_of(flow, version, "lost")));
    if (flow_given(flow, GET_AT))
        buf_printf(flow->body, ",\"precision\":\"%s\"", is_exact ? "1ms" : "1s");
    if (old) put_changes(flow, *old, version);
    buf_text(flow->body, ",\"item\":");
    if (image.data)
        plain_put_item(flow->body, flow->arena, image);
    else
        buf_text(flow->body, "null");
    buf_byte(flow->body, '}');
}

/* ---- one ---- */

static void tell_one(struct flow *flow)
{
    const struct get *get = flow->state;
    put_version(flow, get->one, NULL);
    flow_finish(flow, 200);
}

static void tell_compared(struct flow *flow)
{
    const struct get *get = flow->state;
    struct slice old = history_first(flow);
    put_version(flow, get->one, &old);
    flow_finish(flow, 200);
}

/* What it is compared with: what was asked for, or the one before it. */
static void compare(struct flow *flow)
{
    const struct get *get = flow->state;
    struct slice against = flow_text(flow, GET_AGAINST), bound = SLICE_NONE;
    if (!flow_given(flow, GET_AGAINST))
        before_ask(flow, get->one, tell_compared);
    else if (slice_contains(against, SLICE("Z-")))
        history_ask_last(flow, get->key, against, tell_compared);
    else if (history_bound(flow, GET_AGAINST, &bound))
        history_ask_at(flow, get->key, bound, tell_compared);
}

static void get_one(struct flow *flow)
{
    struct get *get = flow->state;
    struct slice wanted = flow_text(flow, GET_VERSION);
    get->one = history_first(flow);
    bool is_it = slice_equal(item_text(flow->arena, get->one, "version"), wanted);
    if (!get->one.data || (flow_given(flow, GET_VERSION) && !is_it))
        flow_refuse(flow, 404, "no-version",
                    flow_given(flow, GET_AT)
                        ? "The history has no version of this item at or before this time."
                        : "The history has no such version of this item.");
    else if (flow_given(flow, GET_AGAINST) || flow_int_or(flow, GET_DIFF, 0))
        compare(flow);
    else
        tell_one(flow);
}

/* ---- lists ---- */

static void tell_list(struct flow *flow, struct slice old)
{
    const struct get *get = flow->state;
    struct raw_look look;
    struct slice version;
    bool first = true, diff = flow_int_or(flow, GET_DIFF, 0);
    buf_text(flow->body, "{\"versions\":[");
    raw_look_begin(&look, flow->arena, get->items);
    for (; raw_look_next(&look, NULL, &version); first = false) {
        if (!first) buf_byte(flow->body, ',');
        put_version(flow, version, diff ? &old : NULL);
        old = version;
    }
    buf_slice(flow->body, get->last_key.data ? flow_compose(flow, "],'next':%s}",
                                                            item_text(flow->arena, get->last_key, "version"))
                                             : SLICE("]}"));
    flow_finish(flow, 200);
}

static void tell_list_compared(struct flow *flow)
{
    tell_list(flow, history_first(flow));
}

/* What the first of the page changed is told by the one before it. */
static void get_listed(struct flow *flow)
{
    struct get *get = flow->state;
    struct slice first = history_first(flow);
    get->items = flow_items(flow);
    get->last_key = flow_last_key(flow);
    if (flow_int_or(flow, GET_DIFF, 0) && first.data)
        before_ask(flow, first, tell_list_compared);
    else
        tell_list(flow, SLICE_NONE);
}
