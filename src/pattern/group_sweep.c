/* Groups: deletion, and the sweep that does by itself what is due: groups that nothing came to for long, or
 * whose deadline is over, or that somebody left half completed, or that were kept long enough. The tables and
 * what holds for them: group.c. */
#include "pattern/group.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS 1000

/* ---- removing a generation ---- */

/* Marks it first, so that nobody adds to it while its events go. False: it is not what it was any more. */
static bool mark(struct flow *flow, const struct group *group)
{
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #state = :deleting, #slot = :slot, #due = :now "
        "REMOVE #open, #then','ConditionExpression':'#state = :state',%#,"
        "'ExpressionAttributeValues':{':deleting':{'S':'DELETING'},':slot':%S,':now':%N,':state':%S},%O}",
        &group_table, group_key(flow, group, group->generation), group_slot(flow, group), flow->now_ms,
        item_text(flow->arena, group->item, "state"));
    return !flow_failed(flow);
}

/* Its events, then its head, which is DELETING. */
static void remove_marked(struct flow *flow, const struct group *group)
{
    do {
        if (!group->spilled.data) break;
        task_call(
            flow, "Query",
            "{'TableName':%T,'KeyConditionExpression':'#part = :part','ProjectionExpression':'#part, #id',%#,"
            "'ExpressionAttributeValues':{':part':%S},'ConsistentRead':true,'Limit':%d}",
            &group_events_table, group->spilled, (int64_t)SWEEP_REMOVED);
    } while (delete_listed(flow, &group_events_table));
    task_call(flow, "DeleteItem",
              "{'TableName':%T,'Key':%A,'ConditionExpression':'#state = :deleting',%#,"
              "'ExpressionAttributeValues':{':deleting':{'S':'DELETING'}}}",
              &group_table, group_key(flow, group, group->generation));
    flow_wake(flow, group_topic(group));
}

/* ---- DELETE: from the latest generation back ---- */

const struct field group_only_fields[] = {FIELD_GROUP_NAME, FIELD_GROUP_KEY};

void group_delete(struct flow *flow)
{
    struct group group = group_named(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    int64_t count = 0;
    for (;;) {
        group_load(flow, &group, 0);
        if (!group.item.data) break;
        if (mark(flow, &group)) {
            remove_marked(flow, &group);
            count++;
        } else {
            task_again(flow);
        }
    }
    if (count)
        flow_answer(flow, 200, "{'deleted':%d}", count);
    else
        group_refuse_unknown(flow);
}

/* ---- the sweep ---- */

/* Events have come since it was due: later again. */
static void put_off(struct flow *flow, const struct group *group)
{
    int64_t due_ms = group_due_ms(flow, group);
    bool is_due = item_int(flow->arena, group->item, "due", INT64_MAX) <= flow->now_ms;
    if (group->state != GROUP_OPEN || !is_due || due_ms <= flow->now_ms) return;
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #due = :due',"
              "'ConditionExpression':'#state = :open and #due <= :now',%#,"
              "'ExpressionAttributeValues':{':due':%N,':open':{'S':'OPEN'},':now':%N}}",
              &group_table, group_key(flow, group, group->generation), due_ms, flow->now_ms);
}

/* An open one: is it complete or over? Whoever opened it, or changed the rules, may have died before it got
 * them. */
static void look_after(struct flow *flow, struct group *group)
{
    const char *over = group_is_over(flow, group);
    if (over || group_may_be_complete(flow, group->item))
        group_complete(flow, group, over);
    else
        group_change(flow, group, group_rules_read(flow, group->name));
    put_off(flow, group);
}

static void sweep_groups(struct flow *flow)
{
    struct due_walk walk = due_begin(flow, &group_table, GROUP_SLOTS);
    struct slice entry;
    while (due_next(flow, &walk, &entry)) {
        struct group group = group_named(flow, item_text(flow->arena, entry, "name"),
                                         item_text(flow->arena, entry, "key"));
        group_load(flow, &group, item_int(flow->arena, entry, "generation", 0));
        if (!group.item.data || item_int(flow->arena, group.item, "due", INT64_MAX) > flow->now_ms) continue;
        if (group.state == GROUP_OPEN)
            look_after(flow, &group);
        else if (group.state == GROUP_DELETING || mark(flow, &group))
            remove_marked(flow, &group);
    }
    flow_finish(flow, 200);
}

const struct flow_sweep group_sweep = {"groups", SWEEP_MS, sweep_groups};
