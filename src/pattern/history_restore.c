/* Histories: an item becomes what it was.
 *
 * The write is conditional on the item being what was read just before, so the answer can tell what was
 * replaced, and a copy of the call that comes late changes nothing. What is written is a change like others,
 * with a version of its own; so is what it replaced: nothing is lost by going back, and one can go back
 * again. Who wants to replace nothing but what they have seen names its version (`expect`). */
#include "calendar/calendar.h"
#include "pattern/history.h"

#define COMPARED_MOST 120 /* attributes: a condition holds 300 operators and 4 KB */

enum { RESTORE_AT = HISTORY_RANGE + 1, RESTORE_VERSION, RESTORE_EXPECT };

const struct field history_restore_fields[] = {
    FIELD_HISTORY_TABLE,
    FIELD_HISTORY_KEY,
    FIELD_HISTORY_RANGE(IN_BODY),
    [RESTORE_AT] = {"at", IN_BODY, FIELD_NAME, .max = 40, .help = "as it was at this time"},
    [RESTORE_VERSION] = {"version", IN_BODY, FIELD_NAME, .help = "as this version left it"},
    [RESTORE_EXPECT] = {"expect", IN_BODY, FIELD_NAME, .help = "only if this version is the item's last"},
};

struct restore {
    struct history_search search; /* first */
    struct slice key;             /* of the versions */
    struct slice hash;            /* the name of the hash key */
    struct slice wanted;          /* the version */
    struct slice keys;            /* of the item */
    struct slice last;            /* expected, and it is the last */
    struct slice present;         /* the item as it is; SLICE_NONE: it is not there */
};

static flow_step restore_settings, restore_wanted, restore_last, restore_look, restore_found, restore_done;

void history_restore_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct restore);
    if (flow_given(flow, RESTORE_AT) == flow_given(flow, RESTORE_VERSION))
        flow_refuse(flow, 400, "bad-request", "One of at and version is needed.");
    else
        history_settings_ask(flow, restore_settings);
}

static void restore_settings(struct flow *flow)
{
    struct restore *restore = flow->state;
    struct history_settings settings;
    struct slice bound = SLICE_NONE;
    if (!history_settings_read(flow, flow_item(flow), &settings)) return;
    if (!history_item_key(flow, &settings, &restore->key)) return;
    if (!history_bound(flow, RESTORE_AT, &bound)) return;
    restore->hash = settings.hash;
    if (bound.data)
        history_ask_at(flow, restore->key, bound, restore_wanted);
    else
        history_ask_last(flow, restore->key, flow_text(flow, RESTORE_VERSION), restore_wanted);
}

static void restore_wanted(struct flow *flow)
{
    struct restore *restore = flow->state;
    restore->wanted = history_first(flow);
    restore->keys = item_content(flow->arena, restore->wanted, "keys");
    struct slice version = item_text(flow->arena, restore->wanted, "version");
    bool is_other = flow_given(flow, RESTORE_VERSION) &&
                    !slice_equal(version, flow_text(flow, RESTORE_VERSION));
    if (!restore->wanted.data || is_other)
        flow_refuse(flow, 404, "no-version", "The history has no such version of this item.");
    else if (item_has(flow->arena, restore->wanted, "lost"))
        flow_refuse(flow, 409, "image-lost",
                    "Of this version only its time is known: it was too large, or the stream had no images.");
    else if (flow_given(flow, RESTORE_EXPECT))
        history_ask_last(flow, restore->key, SLICE("~"), restore_last);
    else
        restore_look(flow);
}

static void refuse_changed(struct flow *flow, struct slice version)
{
    flow_refuse_with(flow, flow_compose(flow, "'version':%s", version), 412, "changed-since",
                     "The item has changed since the version that was expected.");
}

static void restore_last(struct flow *flow)
{
    struct restore *restore = flow->state;
    restore->last = history_first(flow);
    struct slice version = item_text(flow->arena, restore->last, "version");
    if (slice_equal(version, flow_text(flow, RESTORE_EXPECT)))
        restore_look(flow);
    else
        refuse_changed(flow, version);
}

static void restore_look(struct flow *flow)
{
    const struct restore *restore = flow->state;
    flow_call(flow, restore_found, "GetItem", "{'TableName':%s,'Key':%A,'ConsistentRead':true}",
              flow_text(flow, HISTORY_TABLE), restore->keys);
    flow_expect_error(flow);
}

/* Two images, either of which may be none. */
static bool images_equal(struct flow *flow, struct slice a, struct slice b)
{
    if (!a.data || !b.data) return a.data == b.data;
    return attribute_equal(flow->arena, flow_compose(flow, "{'M':%A}", a), flow_compose(flow, "{'M':%A}", b));
}

/* The item is what the image says, as members of the request; for one that is not there: it is not. */
static struct slice condition_of(struct flow *flow, struct slice image)
{
    const struct restore *restore = flow->state;
    struct raw_look look;
    struct slice name, value, result;
    struct buf condition = {0}, names = {0}, values = {0};
    if (!image.data)
        return flow_compose(
            flow, "'ConditionExpression':'attribute_not_exists(#a)','ExpressionAttributeNames':{'#a':%s}",
            restore->hash);
    raw_look_begin(&look, flow->arena, image);
    for (int i = 0; i < COMPARED_MOST && raw_look_next(&look, &name, &value); i++) {
        buf_printf(&condition, "%s#a%d = :a%d", i ? " and " : "", i, i);
        buf_printf(&names, "%s\"#a%d\":", i ? "," : "", i);
        json_put_string(&names, name);
        buf_printf(&values, "%s\":a%d\":", i ? "," : "", i);
        buf_slice(&values, value);
    }
    result = flow_compose(
        flow, "'ConditionExpression':'%A','ExpressionAttributeNames':{%A},'ExpressionAttributeValues':{%A}",
        buf_view(&condition), buf_view(&names), buf_view(&values));
    buf_free(&condition);
    buf_free(&names);
    buf_free(&values);
    return result;
}

static void restore_found(struct flow *flow)
{
    struct restore *restore = flow->state;
    struct slice table = flow_text(flow, HISTORY_TABLE), image = history_image(flow, restore->wanted);
    restore->present = flow_item(flow);
    if (flow_failed(flow)) {
        history_refuse_table(flow);
        return;
    }
    if (restore->last.data && !images_equal(flow, restore->present, history_image(flow, restore->last))) {
        refuse_changed(flow, item_text(flow->arena, restore->last, "version"));
        return;
    }
    struct slice condition = condition_of(flow, restore->present);
    if (image.data)
        flow_call(flow, restore_done, "PutItem", "{'TableName':%s,'Item':%A,%A,%O}", table, image, condition);
    else
        flow_call(flow, restore_done, "DeleteItem", "{'TableName':%s,'Key':%A,%A,%O}", table, restore->keys,
                  condition);
    flow_expect_error(flow);
}

static void put_image(struct flow *flow, const char *name, struct slice image)
{
    buf_printf(flow->body, ",\"%s\":", name);
    if (image.data)
        plain_put_item(flow->body, flow->arena, image);
    else
        buf_text(flow->body, "null");
}

static void tell(struct flow *flow)
{
    const struct restore *restore = flow->state;
    struct slice version = item_text(flow->arena, restore->wanted, "version");
    buf_slice(flow->body, flow_compose(flow, "{'restored':%s", version));
    put_image(flow, "item", history_image(flow, restore->wanted));
    put_image(flow, "replaced", restore->present);
    buf_byte(flow->body, '}');
    flow_finish(flow, 200);
}

/* Where the item is already what it shall become, this very call has been made before. */
static void restore_done(struct flow *flow)
{
    const struct restore *restore = flow->state;
    bool is_changed = slice_equal(flow->reply.error, SLICE("ConditionalCheckFailedException"));
    if (!flow_failed(flow) ||
        (is_changed && images_equal(flow, flow_item(flow), history_image(flow, restore->wanted))))
        tell(flow);
    else if (!is_changed)
        history_refuse_table(flow);
    else
        flow_again(flow, restore_look);
}
