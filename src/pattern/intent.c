/* One conditional write that says what must follow; see intent.h. */
#include "pattern/intent.h"

#include "base/fail.h"

/* The anchor as it is then, whether this one or another has removed it. */
static struct slice redo_remove(struct flow *flow, const struct intent *intent, struct slice id)
{
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':%A,'UpdateExpression':'REMOVE #redo','ConditionExpression':'#intent = :intent',"
        "%#,'ExpressionAttributeValues':{':intent':%S},'ReturnValues':'ALL_NEW',%O}",
        intent->table, intent->key, id);
    return flow_item(flow);
}

static struct slice anchor_read(struct flow *flow, const struct intent *intent)
{
    return task_get(flow, intent->table, "%A", intent->key);
}

struct slice intent_read(struct flow *flow, const struct intent *intent)
{
    return intent_finish(flow, intent, anchor_read(flow, intent));
}

/* Its writer is most often at work. If all who wait did its work besides, a busy anchor would cost each of them two
 * writes for every change of the others; so they look once more, after a pause. */
struct slice intent_finish(struct flow *flow, const struct intent *intent, struct slice anchor)
{
    struct slice met = SLICE_NONE;
    while (item_has(flow->arena, anchor, "redo")) {
        struct slice id = item_text(flow->arena, anchor, "intent");
        if (met.data && slice_equal(met, id)) {
            intent->carry_out(flow, anchor);
            anchor = redo_remove(flow, intent, id);
        } else {
            met = id;
            task_again(flow);
            anchor = anchor_read(flow, intent);
        }
    }
    return anchor;
}

bool intent_write(struct flow *flow, const struct intent *intent, struct slice *anchor,
                  const struct intent_change *change)
{
    struct slice id = flow_new_id(flow), seen = item_text(flow->arena, *anchor, "intent");
    ensure(!item_has(flow->arena, *anchor, "redo")); /* P6 */
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #intent = :intent, #redo = :redo%r',"
        "'ConditionExpression':'%r%[ and (%r)%]',%#,"
        "'ExpressionAttributeValues':{':intent':%S,':redo':%A%[,':seen':%S%]%A},'ReturnValues':'ALL_NEW',%O}",
        intent->table, intent->key, change->update,
        seen.data ? SLICE("#intent = :seen") : SLICE("attribute_not_exists(#intent)"),
        change->condition.len ? change->condition : SLICE_NONE, id, change->redo, seen, change->values);
    *anchor = flow_item(flow);
    /* A call that was repeated, because nobody knew what had become of it, fails by its own success. */
    if (flow_failed(flow) && !slice_equal(item_text(flow->arena, *anchor, "intent"), id)) return false;
    if (!item_has(flow->arena, *anchor, "redo")) return true;
    intent->carry_out(flow, *anchor);
    redo_remove(flow, intent, id);
    return true;
}

bool intent_is_same(struct flow *flow, struct slice before, struct slice after)
{
    return slice_equal(item_text(flow->arena, before, "intent"), item_text(flow->arena, after, "intent"));
}
