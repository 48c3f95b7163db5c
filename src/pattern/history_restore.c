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

/* Two images, either of which may be none. */
static bool images_equal(struct flow *flow, struct slice a, struct slice b)
{
    if (!a.data || !b.data) return a.data == b.data;
    return attribute_equal(flow->arena, flow_compose(flow, "{'M':%A}", a), flow_compose(flow, "{'M':%A}", b));
}

/* The item is what the image says, as members of the request; for one that is not there: it is not. */
static struct slice condition_of(struct flow *flow, struct slice image, struct slice hash)
{
    struct slice name, value;
    struct buf condition = {0}, names = {0}, values = {0};
    int i = 0;
    if (!image.data)
        return flow_compose(
            flow, "'ConditionExpression':'attribute_not_exists(#a)','ExpressionAttributeNames':{'#a':%s}",
            hash);
    raw_each_member (flow->arena, image, &name, &value) {
        if (i == COMPARED_MOST) break;
        buf_printf(&condition, "%s#a%d = :a%d", i ? " and " : "", i, i);
        flow_put(flow, &names, "%,'#a%d':%s", (int64_t)i, name);
        flow_put(flow, &values, "%,':a%d':%A", (int64_t)i, value);
        i++;
    }
    return flow_compose(
        flow, "'ConditionExpression':'%A','ExpressionAttributeNames':{%A},'ExpressionAttributeValues':{%A}",
        arena_take(flow->arena, &condition), arena_take(flow->arena, &names),
        arena_take(flow->arena, &values));
}

static _Noreturn void refuse_changed(struct flow *flow, struct slice version)
{
    task_refuse_with(flow, flow_compose(flow, "'version':%s", item_text(flow->arena, version, "version")),
                     412, "changed-since", "The item has changed since the version that was expected.");
}

/* The version that the item shall become. */
static struct slice restore_wanted(struct flow *flow, struct slice key)
{
    struct slice at = history_bound(flow, RESTORE_AT), asked = flow_text(flow, RESTORE_VERSION);
    struct slice wanted = at.data ? history_at(flow, key, at) : history_last(flow, key, asked);
    if (!wanted.data || (!at.data && !slice_equal(item_text(flow->arena, wanted, "version"), asked)))
        flow_refuse(flow, 404, "no-version", "The history has no such version of this item.");
    else if (item_has(flow->arena, wanted, "lost"))
        flow_refuse(flow, 409, "image-lost",
                    "Of this version only its time is known: it was too large, or the stream had no images.");
    else
        return wanted;
    task_end(flow);
}

void history_restore(struct flow *flow)
{
    struct slice table = flow_text(flow, HISTORY_TABLE), hash, last = SLICE_NONE, present;
    if (flow_given(flow, RESTORE_AT) == flow_given(flow, RESTORE_VERSION))
        task_refuse(flow, 400, "bad-request", "One of at and version is needed.");
    struct slice key = history_item_key(flow, &hash), wanted = restore_wanted(flow, key);
    struct slice image = history_image(flow, wanted), keys = item_content(flow->arena, wanted, "keys");
    if (flow_given(flow, RESTORE_EXPECT)) {
        last = history_last(flow, key, SLICE("~"));
        if (!slice_equal(item_text(flow->arena, last, "version"), flow_text(flow, RESTORE_EXPECT)))
            refuse_changed(flow, last);
    }
    for (;; task_again(flow)) {
        task_try(flow, "GetItem", "{'TableName':%s,'Key':%A,'ConsistentRead':true}", table, keys);
        if (flow_failed(flow)) history_refuse_table(flow);
        present = flow_item(flow);
        if (last.data && !images_equal(flow, present, history_image(flow, last))) refuse_changed(flow, last);
        struct slice condition = condition_of(flow, present, hash);
        if (image.data)
            task_try(flow, "PutItem", "{'TableName':%s,'Item':%A,%A,%O}", table, image, condition);
        else
            task_try(flow, "DeleteItem", "{'TableName':%s,'Key':%A,%A,%O}", table, keys, condition);
        if (!flow_failed(flow)) break;
        if (!slice_equal(flow->reply.error, SLICE("ConditionalCheckFailedException")))
            history_refuse_table(flow);
        /* where the item is already what it shall become, this very call has been made before */
        if (images_equal(flow, flow_item(flow), image)) break;
    }
    flow_put(flow, flow->body, "{'restored':%s", item_text(flow->arena, wanted, "version"));
    history_put_image(flow, "item", image);
    history_put_image(flow, "replaced", present);
    buf_byte(flow->body, '}');
    flow_finish(flow, 200);
}
