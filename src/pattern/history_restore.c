/* Histories: an item becomes what it was.
 *
 * The write is conditional on the item being what its last version says, so nobody's change is lost: where it
 * is not (a change is on its way to the history, or somebody writes just now), the last version is read
 * again, and in the end refused. What is written is a change like others, with a version of its own. */
#include "calendar/calendar.h"
#include "pattern/history.h"

#define TRIES         8
#define COMPARED_MOST 90 /* attributes: a condition holds 300 operators and 4 KB */

enum { RESTORE_RANGE = HISTORY_KEY + 1, RESTORE_AT, RESTORE_VERSION };

const struct field history_restore_fields[] = {
    FIELD_HISTORY_TABLE,
    FIELD_HISTORY_KEY,
    [RESTORE_RANGE] = {"range", IN_BODY, FIELD_NAME, .max = 1024,
                       .help = "the item's range key, where the table has one"},
    [RESTORE_AT] = {"at", IN_BODY, FIELD_NAME, .max = 40, .help = "as it was at this time"},
    [RESTORE_VERSION] = {"version", IN_BODY, FIELD_NAME, .help = "as this version left it"},
};

struct restore {
    struct history_settings settings;
    struct slice key, wanted, wanted_version;
    unsigned tries;
};

static flow_step restore_settings, restore_wanted, restore_ask_last, restore_last, restore_done;

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
    struct slice bound = SLICE_NONE;
    struct slice range = flow_given(flow, RESTORE_RANGE) ? flow_text(flow, RESTORE_RANGE) : SLICE_NONE;
    if (!history_settings_read(flow, flow_item(flow), &restore->settings)) return;
    if (!history_item_key(flow, &restore->settings, range, &restore->key)) return;
    if (!history_bound(flow, RESTORE_AT, &bound)) return;
    bool by_time = bound.data != NULL;
    flow_call(flow, restore_wanted, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = :item and #version %r :bound',%#,"
              "'ExpressionAttributeValues':{':item':%S,':bound':%S},'ScanIndexForward':false,'Limit':1,'"
              "ConsistentRead':true}",
              &history_table, by_time ? SLICE("<=") : SLICE("="), restore->key,
              by_time ? arena_printf(flow->arena, "%.*s~", SLICE_ARG(bound))
                      : flow_text(flow, RESTORE_VERSION));
}

static struct slice first_item(struct flow *flow)
{
    struct raw_walk walk;
    struct slice item;
    raw_walk_begin(&walk, flow->arena, flow_items(flow));
    return raw_walk_next(&walk, NULL, &item) ? item : SLICE_NONE;
}

static void restore_wanted(struct flow *flow)
{
    struct restore *restore = flow->state;
    restore->wanted = first_item(flow);
    restore->wanted_version = item_text(flow->arena, restore->wanted, "version");
    if (!restore->wanted.data)
        flow_refuse(flow, 404, "no-version", "The history has no such version of this item.");
    else if (item_has(flow->arena, restore->wanted, "large"))
        flow_refuse(flow, 409, "too-large", "This version was too large to be kept.");
    else
        restore_ask_last(flow);
}

static void restore_ask_last(struct flow *flow)
{
    const struct restore *restore = flow->state;
    flow_call(flow, restore_last, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#item = "
              ":item',%#,'ExpressionAttributeValues':{':item':%S},"
              "'ScanIndexForward':false,'Limit':1,'ConsistentRead':true}",
              &history_table, restore->key);
}

/* The item is what the image says; for one that was removed: it is not there. As members of the request. */
static struct slice condition_of(struct flow *flow, const struct history_settings *settings,
                                 struct slice image)
{
    struct raw_walk walk;
    struct slice name, value, result;
    struct buf condition = {0}, names = {0}, values = {0};
    if (!image.data)
        return flow_compose(
            flow, "'ConditionExpression':'attribute_not_exists(#a)','ExpressionAttributeNames':{'#a':%s}",
            settings->hash);
    raw_walk_begin(&walk, flow->arena, image);
    for (int i = 0; i < COMPARED_MOST && raw_walk_next(&walk, &name, &value); i++) {
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

static void tell(struct flow *flow)
{
    const struct restore *restore = flow->state;
    struct slice image = history_image(flow, restore->wanted);
    buf_slice(flow->body, flow_compose(flow, "{'restored':%s,'item':", restore->wanted_version));
    if (image.data)
        plain_put_item(flow->body, flow->arena, image);
    else
        buf_text(flow->body, "null");
    buf_byte(flow->body, '}');
    flow_finish(flow, 200);
}

static void restore_last(struct flow *flow)
{
    const struct restore *restore = flow->state;
    struct slice last = first_item(flow), image = history_image(flow, restore->wanted);
    struct slice table = flow_text(flow, HISTORY_TABLE);
    if (item_has(flow->arena, last, "large")) {
        flow_refuse(flow, 409, "too-large",
                    "The last version was too large to be kept, so nobody knows what is replaced.");
        return;
    }
    struct slice condition = condition_of(flow, &restore->settings, history_image(flow, last));
    if (image.data)
        flow_call(flow, restore_done, "PutItem", "{'TableName':%s,'Item':%A,%A,%O}", table, image, condition);
    else
        flow_call(flow, restore_done, "DeleteItem", "{'TableName':%s,'Key':%A,%A,%O}", table,
                  item_content(flow->arena, restore->wanted, "keys"), condition);
    flow_expect_error(flow);
}

/* The item is what it shall become: this call, or one like it, has done that before. */
static bool is_restored(struct flow *flow)
{
    const struct restore *restore = flow->state;
    struct slice item = flow_item(flow), image = history_image(flow, restore->wanted), name, value;
    struct raw_walk walk;
    if (!item.data || !image.data) return item.data == image.data;
    if (raw_count(flow->arena, item) != raw_count(flow->arena, image)) return false;
    raw_walk_begin(&walk, flow->arena, image);
    while (raw_walk_next(&walk, &name, &value)) {
        struct slice copy = arena_printf(flow->arena, "%.*s", SLICE_ARG(name));
        if (!slice_equal(raw_member(flow->arena, item, copy.data), value)) return false;
    }
    return true;
}

static void restore_done(struct flow *flow)
{
    struct restore *restore = flow->state;
    bool is_changed = slice_equal(flow->reply.error, SLICE("ConditionalCheckFailedException"));
    if (!flow_failed(flow) || (is_changed && is_restored(flow)))
        tell(flow);
    else if (!is_changed)
        flow_refuse_call(flow);
    else if (++restore->tries < TRIES)
        flow_again(flow, restore_ask_last);
    else
        flow_refuse(flow, 409, "changed-since",
                    "The item is not what its last version says: somebody changes it.");
}
