/* Groups: deletion, and the sweep that does by itself what is due: groups that nothing came to for long, or
 * whose deadline is over, or that somebody left half completed, or that were kept long enough. The tables and
 * what holds for them: group.c. */
#include "pattern/group.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS 1000

/* ---- removing a generation ---- */

static flow_step remove_events, remove_listed, remove_ended;

/* Its events, then its head, which is DELETING. */
static void group_remove(struct flow *flow, int64_t generation, flow_step *then)
{
    struct group_work *work = flow->state;
    work->removal.generation = generation;
    work->removal.then = then;
    remove_events(flow);
}

static void remove_events(struct flow *flow)
{
    const struct group_work *work = flow->state;
    flow_call(
        flow, remove_listed, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#part = :part','ProjectionExpression':'#part, #id',%#,"
        "'ExpressionAttributeValues':{':part':%S},'ConsistentRead':true,'Limit':%d}",
        &group_events_table, group_part(flow, work->removal.generation), (int64_t)SWEEP_REMOVED);
}

/* Until nothing is listed any more. */
static void remove_listed(struct flow *flow)
{
    struct group_work *work = flow->state;
    if (sweep_remove_listed(flow, &group_events_table, remove_events)) return;
    flow_call(flow, remove_ended, "DeleteItem",
              "{'TableName':%T,'Key':%A,'ConditionExpression':'#state = :deleting',%#,"
              "'ExpressionAttributeValues':{':deleting':{'S':'DELETING'}}}",
              &group_table, group_key(flow, work->removal.generation));
}

static void remove_ended(struct flow *flow)
{
    struct group_work *work = flow->state;
    flow_wake(flow, group_topic(work));
    work->removal.then(flow);
}

/* Marks a generation, so that nobody adds to it while its events go. */
static void mark(struct flow *flow, flow_step *then)
{
    const struct group_work *work = flow->state;
    flow_call(
        flow, then, "UpdateItem",
        "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #state = :deleting, #slot = :slot, #due = :now "
        "REMOVE #open, #then','ConditionExpression':'#state = :state',%#,"
        "'ExpressionAttributeValues':{':deleting':{'S':'DELETING'},':slot':%S,':now':%N,':state':%S},%O}",
        &group_table, group_key(flow, work->group.generation), group_slot(flow), flow->now_ms,
        item_text(flow->arena, work->group.item, "state"));
}

/* ---- DELETE: from the latest generation back ---- */

const struct field group_only_fields[] = {FIELD_GROUP_NAME, FIELD_GROUP_KEY};

struct delete
{
    int64_t count;
};

static flow_step delete_next, delete_loaded, delete_marked;

void group_delete(struct flow *flow)
{
    struct group_work *work = group_work_new(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    work->own = arena_new(flow->arena, struct delete);
    delete_next(flow);
}

static void delete_next(struct flow *flow)
{
    group_load(flow, 0, delete_loaded);
}

static void delete_loaded(struct flow *flow)
{
    struct group_work *work = flow->state;
    const struct delete *delete = work->own;
    if (work->group.item.data)
        mark(flow, delete_marked);
    else if (delete->count)
        flow_answer(flow, 200, "{'deleted':%d}", delete->count);
    else
        group_refuse_unknown(flow);
}

static void delete_marked(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct delete *delete = work->own;
    if (flow_failed(flow)) {
        flow_again(flow, delete_next);
        return;
    }
    delete->count++;
    group_remove(flow, work->group.generation, delete_next);
}

/* ---- the sweep ---- */

static flow_step sweep_loaded, sweep_rules, sweep_evaluated, sweep_marked;

/* Each group has a state of its own. */
static void sweep_each(struct flow *flow)
{
    struct slice entry = sweep_entry(flow);
    group_work_new(flow, item_text(flow->arena, entry, "name"), item_text(flow->arena, entry, "key"));
    group_load(flow, item_int(flow->arena, entry, "generation", 0), sweep_loaded);
}

static void sweep_begin(struct flow *flow)
{
    static const struct sweep_plan plan = {&group_table, GROUP_SLOTS, sweep_each};
    sweep_over(flow, &plan);
}

static void sweep_loaded(struct flow *flow)
{
    struct group_work *work = flow->state;
    const struct group *group = &work->group;
    bool is_due = item_int(flow->arena, group->item, "due", INT64_MAX) <= flow->now_ms;
    const char *over = group_is_over(flow, group);
    if (!group->item.data || !is_due)
        sweep_next(flow);
    else if (group->state == GROUP_OPEN && (over || group_may_be_complete(flow, group->item)))
        group_complete(flow, over, sweep_evaluated);
    else if (group->state == GROUP_OPEN)
        flow_call(flow, sweep_rules, "GetItem", "{'TableName':%T,'Key':{'name':%S},'ConsistentRead':true}",
                  &group_rules_table, work->name);
    else if (group->state == GROUP_COMPLETE)
        mark(flow, sweep_marked);
    else
        group_remove(flow, group->generation, sweep_next);
}

/* Whoever opened it, or changed the rules, may have died before it got them. */
static void sweep_rules(struct flow *flow)
{
    group_change(flow, flow_item(flow), sweep_evaluated);
}

static void sweep_marked(struct flow *flow)
{
    struct group_work *work = flow->state;
    if (flow_failed(flow))
        sweep_next(flow);
    else
        group_remove(flow, work->group.generation, sweep_next);
}

/* Events have come since it was due: later again. */
static void sweep_evaluated(struct flow *flow)
{
    struct group_work *work = flow->state;
    const struct group *group = &work->group;
    int64_t due_ms = group_due_ms(flow, group);
    bool is_due = item_int(flow->arena, group->item, "due", INT64_MAX) <= flow->now_ms;
    if (group->state == GROUP_OPEN && is_due && due_ms > flow->now_ms)
        flow_call(
            flow, sweep_next, "UpdateItem",
            "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #due = :due',"
            "'ConditionExpression':'#state = :open and #due <= :now',%#,"
            "'ExpressionAttributeValues':{':due':%N,':open':{'S':'OPEN'},':now':%N}}",
            &group_table, group_key(flow, group->generation), due_ms, flow->now_ms);
    else
        sweep_next(flow);
}

const struct flow_sweep group_sweep = {"groups", SWEEP_MS, sweep_begin};
