/* Histories: the versions of an item, with what changed from one to the next, or the one that held at a
 * moment. */
#include "calendar/calendar.h"
#include "pattern/history.h"
#include "pattern/listing.h"

#define WALK_PAGE 25 /* versions of one second, to find the one that held within it */

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
    [GET_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [GET_AFTER] = FIELD_AFTER,
    [GET_DIFF] = {"diff", IN_QUERY, FIELD_BOOL, .help = "also what each change changed"},
    [GET_AGAINST] = {"against", IN_QUERY, FIELD_NAME,
                     .help = "with at or version: also what differs from this version, or time"},
};

struct slice history_image(struct flow *flow, struct slice version)
{
    struct slice image = item_content(flow->arena, version, "image");
    return image.data ? image : item_text(flow->arena, version, "imageText");
}

void history_put_image(struct flow *flow, const char *name, struct slice image)
{
    flow_put(flow, flow->body, ",%s:%r", slice_of(name), image.data ? SLICE("") : SLICE("null"));
    if (image.data) plain_put_item(flow->body, flow->arena, image);
}

struct slice history_bound(struct flow *flow, unsigned field)
{
    int64_t time_ms;
    if (!flow_given(flow, field)) return SLICE_NONE;
    if (moment_parse(flow_text(flow, field), &time_ms) && time_ms >= 0)
        return moment_text(flow->arena, time_ms);
    task_refuse(flow, 400, "bad-request", "\"%.*s\" is no time: one is like 2026-11-15T03:42:06Z.",
                SLICE_ARG(flow_text(flow, field)));
}

/* The last version of the item whose range key is `than` the bound ("<", "<="). */
static struct slice last_version(struct flow *flow, struct slice key, const char *than, struct slice bound)
{
    task_query(flow, "#item = :item and #version %r :bound", QUERY_LAST READ_FRESH, "':item':%S,':bound':%S",
               &history_table, slice_of(than), key, bound);
    return raw_first(flow->arena, flow_items(flow));
}

struct slice history_last(struct flow *flow, struct slice key, struct slice bound)
{
    return last_version(flow, key, "<=", bound);
}

/* The bound behind everything of a moment. */
static struct slice up_to(struct flow *flow, struct slice bound)
{
    return arena_printf(flow->arena, "%.*s~", SLICE_ARG(bound));
}

/* A version's key has the second of its change; `time` may know the millisecond (history_record.c). So those of the
 * same second may be too late. */
struct slice history_at(struct flow *flow, struct slice key, struct slice moment)
{
    struct slice found = history_last(flow, key, up_to(flow, moment)), last_key = found;
    if (slice_compare(item_text(flow->arena, found, "time"), moment) <= 0) return found;
    do {
        task_query(flow, "#item = :item and #version < :version",
                   ",'FilterExpression':'#time <= :moment','ScanIndexForward':false,'Limit':%d" READ_FRESH,
                   "':item':%S,':version':%A,':moment':%S", &history_table, (int64_t)WALK_PAGE, key,
                   item_attribute(flow->arena, last_key, "version"), moment);
        found = raw_first(flow->arena, flow_items(flow));
        last_key = flow_last_key(flow);
    } while (!found.data && last_key.data);
    return found;
}

struct slice history_second(struct flow *flow, struct slice moment)
{
    const char *dot = memchr(moment.data, '.', moment.len);
    return dot ? arena_copy(flow->arena, (struct slice){moment.data, (size_t)(dot - moment.data)}) : moment;
}

/* ---- telling ---- */

static void put_change(struct flow *flow, struct slice name, struct slice before, struct slice after)
{
    if (before.data && after.data && attribute_equal(flow->arena, before, after)) return;
    flow_put(flow, flow->body, "%,{'name':%s", name);
    if (before.data) flow_put(flow, flow->body, ",'before':%P", before);
    if (after.data) flow_put(flow, flow->body, ",'after':%P", after);
    buf_byte(flow->body, '}');
}

/* The attributes that differ; of images that were not kept nobody knows. */
static void put_changes(struct flow *flow, struct slice old, struct slice version)
{
    struct slice name, value, before = history_image(flow, old), after = history_image(flow, version);
    bool is_insert = item_says(flow->arena, version, "event", "INSERT");
    struct slice own = item_content(flow->arena, version, "before");
    if (!own.data) own = item_text(flow->arena, version, "beforeText");
    bool is_alone = (!old.data || item_has(flow->arena, old, "lost")) && !flow_given(flow, GET_AGAINST);
    if (item_has(flow->arena, version, "lost") || (is_alone && !own.data && !is_insert)) return;
    if (!is_alone && item_has(flow->arena, old, "lost")) return;
    buf_text(flow->body, ",\"changes\":[");
    if (is_alone && own.data) { /* what it says itself of its change (history_record.c) */
        raw_each_member (flow->arena, own, &name, &value)
            put_change(flow, name, value, history_attribute(flow->arena, after, name));
        raw_each (flow->arena, item_content(flow->arena, version, "added"), &value) {
            name = raw_text(flow->arena, value);
            put_change(flow, name, SLICE_NONE, history_attribute(flow->arena, after, name));
        }
    } else {
        raw_each_member (flow->arena, after, &name, &value)
            put_change(flow, name, history_attribute(flow->arena, before, name), value);
        raw_each_member (flow->arena, before, &name, &value)
            if (!history_attribute(flow->arena, after, name).data) put_change(flow, name, value, SLICE_NONE);
    }
    buf_byte(flow->body, ']');
}

/* `old`: the version to compare with, SLICE_NONE where there is none; NULL: not compared. */
static void put_version(struct flow *flow, struct slice version, const struct slice *old)
{
    bool is_exact = item_has(flow->arena, version, "exact");
    struct slice image = history_image(flow, version);
    flow_put(flow, flow->body, "{'version':%P", item_attribute(flow->arena, version, "version"));
    plain_put_members(flow->body, flow->arena, version, "event time cause transaction by lost");
    if (flow_given(flow, GET_AT)) buf_printf(flow->body, ",\"precision\":\"%s\"", is_exact ? "1ms" : "1s");
    if (old) put_changes(flow, *old, version);
    history_put_image(flow, "item", image);
    buf_byte(flow->body, '}');
}

/* ---- one ---- */

static void tell_one(struct flow *flow, struct slice key, struct slice at)
{
    bool compares = flow_given(flow, GET_AGAINST) || flow_int_or(flow, GET_DIFF, 0);
    struct slice wanted = flow_text(flow, GET_VERSION), against = flow_text(flow, GET_AGAINST),
                 old = SLICE_NONE;
    struct slice one = at.data ? history_at(flow, key, at) : history_last(flow, key, wanted);
    struct slice version = item_text(flow->arena, one, "version");
    if (!one.data || (!at.data && !slice_equal(version, wanted)))
        task_refuse(flow, 404, "no-version",
                    at.data ? "The history has no version of this item at or before this time."
                            : "The history has no such version of this item.");
    if (compares && !flow_given(flow, GET_AGAINST))
        old = last_version(flow, key, "<", version);
    else if (compares && slice_contains(against, SLICE("Z-")))
        old = history_last(flow, key, against);
    else if (compares)
        old = history_at(flow, key, history_bound(flow, GET_AGAINST));
    put_version(flow, one, compares ? &old : NULL);
    flow_finish(flow, 200);
}

/* ---- lists ---- */

/* A page of the versions between two moments, both included. What the first of the page changed is told by the one
 * before it. */
static void tell_list(struct flow *flow, struct slice key, struct slice from, struct slice to)
{
    struct slice version, old = SLICE_NONE;
    bool diff = flow_int_or(flow, GET_DIFF, 0);
    task_query(flow, "#item = :item and #version between :second and :bound",
               ",'FilterExpression':'#time between :from and :to','Limit':%d"
               "%[,'ExclusiveStartKey':{'item':%S,'version':%S}%]" READ_FRESH,
               "':item':%S,':second':%S,':bound':%S,':from':%S,':to':%S", &history_table,
               flow_int_or(flow, GET_LIMIT, LIST_USUAL), key, flow_text(flow, GET_AFTER), key,
               history_second(flow, from), up_to(flow, to), from, to);
    struct slice items = flow_items(flow), last_key = flow_last_key(flow);
    version = item_text(flow->arena, raw_first(flow->arena, flow_items(flow)), "version");
    if (diff && version.data) old = last_version(flow, key, "<", version);
    buf_text(flow->body, "{\"versions\":[");
    raw_each (flow->arena, items, &version) {
        flow_put(flow, flow->body, "%,");
        put_version(flow, version, diff ? &old : NULL);
        old = version;
    }
    page_finish(flow, item_text(flow->arena, last_key, "version"));
}

void history_get(struct flow *flow)
{
    bool is_one = flow_given(flow, GET_AT) || flow_given(flow, GET_VERSION);
    bool is_list = flow_given(flow, GET_FROM) || flow_given(flow, GET_TO) || flow_given(flow, GET_AFTER);
    const char *fault = flow_given(flow, GET_AT) && flow_given(flow, GET_VERSION)
                            ? "at and version exclude each other."
                        : is_one && is_list ? "at and version tell one: from, to and after are of lists."
                        : flow_given(flow, GET_AGAINST) && !is_one ? "against needs at or version."
                                                                   : NULL;
    if (fault) task_refuse(flow, 400, "bad-request", "%s", fault);
    struct slice hash, key = history_item_key(flow, &hash), at = history_bound(flow, GET_AT),
                       from = history_bound(flow, GET_FROM), to = history_bound(flow, GET_TO);
    if (!from.data) from = SLICE(" ");
    if (!to.data) to = SLICE("~");
    if (slice_compare(from, to) > 0) task_refuse(flow, 400, "bad-request", "from is behind to.");
    if (is_one)
        tell_one(flow, key, at);
    else
        tell_list(flow, key, from, to);
}
