/* Groups: changed rules reach the groups that are open. The tables and what holds for them: group.c.
 *
 * A head has its rules and their version, so that no event has to read them. Who changes the rules writes them
 * first, with a greater version, and then gives them to every group that the index of open groups lists. A
 * group takes rules only if they are newer than its own: so several changes may be under way, in any order,
 * and each of these writes may be repeated.
 *
 * Who opens a group reads the rules, writes the head, and reads the rules again. If they were written before
 * that second look, it sees them and gives them to its group. If they were written behind it, the head was
 * there before, and is listed. Where somebody dies on the way, the sweep does the same when it first looks at
 * the group, within a minute; a change that did not come to its end (`applied`) is finished by its repeat.
 *
 * A group in which the new rules hold already gets them and is completed by one and the same write, for the
 * reason "rules": it is no event's doing. */
#include "calendar/calendar.h"
#include "pattern/group.h"

#include <string.h>

#define PAGE        25 /* groups at a time; then memory is given back */
#define SINCE_BYTES 80

/* ---- one group ---- */

static flow_step change_write, change_completed, change_written, change_again;

static bool is_older(const struct flow *flow)
{
    const struct group_work *work = flow->state;
    return work->group.state == GROUP_OPEN &&
           work->group.rules < item_int(flow->arena, work->change.rules, "version", 0);
}

static void change_end(struct flow *flow)
{
    const struct group_work *work = flow->state;
    work->change.then(flow);
}

/* The update of a head that gets the new rules. `set` and `gone` are behind those of the rules. */
static void change_call(struct flow *flow, flow_step *then, const char *set, const char *gone,
                        const char *condition, struct slice values)
{
    const struct group_work *work = flow->state;
    struct slice rules_values, rules_gone, rule_values,
        rule = group_rule(flow, work->change.rules, &rule_values);
    struct slice rules = group_rules_set(flow, work->change.rules, work->group.own_deadline, &rules_values,
                                         &rules_gone);
    struct slice all_gone = flow_compose(flow, "%r%r", rules_gone, slice_of(gone));
    flow_call(
        flow, then, "UpdateItem",
        "{'TableName':%T,'Key':%A,'UpdateExpression':'SET %r%r%r%r','ConditionExpression':'#state = :open and "
        "(attribute_not_exists(#rules) or #rules < :r_rules)%r%r%r',%#,"
        "'ExpressionAttributeValues':{':open':{'S':'OPEN'}%A%A%A},'ReturnValues':'ALL_NEW',%O}",
        &group_table, group_key(flow, work->group.generation), slice_from(rules, 2), slice_of(set),
        all_gone.len ? SLICE(" REMOVE ") : SLICE(""), all_gone.len ? slice_from(all_gone, 2) : SLICE(""),
        rule.len ? slice_of(condition) : SLICE(""), rule.len ? rule : SLICE(""),
        rule.len ? SLICE(")") : SLICE(""), rules_values, rule.len ? rule_values : SLICE(""), values);
}

/* The head as it would be with the new rules, for what can be told without the service. */
static struct slice with_new_rules(struct flow *flow)
{
    const struct group_work *work = flow->state;
    struct slice kinds = item_attribute(flow->arena, work->group.item, "kinds");
    return flow_compose(flow, "{'count':%N%r%A,%A", work->group.count,
                        kinds.data ? SLICE(",\"kinds\":") : SLICE(""), kinds.data ? kinds : SLICE(""),
                        slice_from(work->change.rules, 1));
}

void group_change(struct flow *flow, struct slice rules, flow_step *then)
{
    struct group_work *work = flow->state;
    work->change.rules = rules;
    work->change.then = then;
    int64_t keep_ms = item_int(flow->arena, rules, "keep", 0);
    if (!rules.data || !is_older(flow)) {
        then(flow);
    } else if (group_may_be_complete(flow, with_new_rules(flow))) {
        struct slice values = flow_compose(
            flow, ",':complete':{'S':'COMPLETE'},':now':%S,':why':{'S':'rules'}%A",
            moment_text(flow->arena, flow->now_ms),
            keep_ms ? flow_compose(flow, ",':due':%N", flow->now_ms + keep_ms) : SLICE(""));
        change_call(flow, change_completed,
                    keep_ms ? ", #state = :complete, #completed = :now, #why = :why, #by = :why, #due = :due"
                            : ", #state = :complete, #completed = :now, #why = :why, #by = :why",
                    keep_ms ? ", #open" : ", #open, #slot, #due", " and (", values);
    } else {
        change_write(flow);
    }
}

static void change_completed(struct flow *flow)
{
    struct group_work *work = flow->state;
    group_read(flow, flow_item(flow), &work->group);
    if (!flow_failed(flow)) flow_wake(flow, group_topic(work));
    if (is_older(flow))
        change_write(flow);
    else
        change_end(flow);
}

/* It stays open, but may be due earlier. Where it is due later, the sweep sees it when it looks: to write it here
 * would cost two more units, of the index. */
static void change_write(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct group soon, *group = &work->group;
    group_read(flow, work->change.rules, &soon);
    soon.opened_ms = group->opened_ms;
    soon.touched_ms = group->touched_ms;
    if (group->own_deadline) soon.deadline_ms = group->deadline_ms;
    int64_t due_ms = group_due_ms(flow, &soon);
    bool is_earlier = due_ms < item_int(flow->arena, group->item, "due", INT64_MAX);
    change_call(flow, change_written, is_earlier ? ", #due = :due" : "", "", " and not (",
                is_earlier ? flow_compose(flow, ",':due':%N", due_ms) : SLICE(""));
}

/* Its time may be over by the new rules. */
static void change_written(struct flow *flow)
{
    struct group_work *work = flow->state;
    group_read(flow, flow_item(flow), &work->group);
    if (flow_failed(flow)) {
        if (is_older(flow))
            flow_again(flow, change_again); /* an event has come, with which the new rule holds */
        else
            change_end(flow);
        return;
    }
    flow_wake(flow, group_topic(work));
    const char *over = group_is_over(flow, &work->group);
    if (over)
        group_complete(flow, over, change_end);
    else
        change_end(flow);
}

static void change_again(struct flow *flow)
{
    const struct group_work *work = flow->state;
    group_change(flow, work->change.rules, work->change.then);
}

/* ---- all that are open ---- */

struct walk {
    struct slice rules, name;
    struct slice encoded; /* the name, as the index has it, and a slash */
    unsigned slot;
    char since[SINCE_BYTES]; /* the last entry's */
    size_t since_len;
    struct raw_look page;
    bool goes_on;
    struct arena_mark mark;
    void *state; /* the flow's before */
    flow_step *then;
};

static flow_step walk_ask, walk_taken, walk_next, walk_loaded;

void group_change_all(struct flow *flow, struct slice rules, int64_t waits_ms, flow_step *then)
{
    struct walk *walk = arena_new(flow->arena, struct walk);
    walk->state = flow->state;
    walk->then = then;
    walk->rules = arena_copy(flow->arena, rules);
    walk->name = item_text(flow->arena, walk->rules, "name");
    walk->encoded = group_work_new(flow, walk->name, SLICE(""))->id;
    walk->mark = arena_mark(flow->arena);
    flow->state = walk;
    if (waits_ms)
        flow_pause(flow, waits_ms, walk_ask);
    else
        walk_ask(flow);
}

static void walk_ask(struct flow *flow)
{
    struct walk *walk = flow->state;
    flow_rewind(flow, walk->mark);
    struct slice after = {walk->since, walk->since_len};
    flow_call(
        flow, walk_taken, "Query",
        "{'TableName':%T,'IndexName':'open','KeyConditionExpression':'#open = :open and #since > :after',%#,"
        "'ExpressionAttributeValues':{':open':%S,':after':%S},'Limit':%d}",
        &group_table, arena_printf(flow->arena, "%.*s%u", SLICE_ARG(walk->encoded), walk->slot),
        after.len ? after : SLICE("0"), (int64_t)PAGE);
}

static void walk_taken(struct flow *flow)
{
    struct walk *walk = flow->state;
    raw_look_begin(&walk->page, flow->arena, flow_items(flow));
    walk->goes_on = flow_last_key(flow).data != NULL;
    walk_next(flow);
}

/* Each group has a state of its own. */
static void walk_next(struct flow *flow)
{
    struct walk *walk = flow->state;
    struct slice entry;
    if (raw_look_next(&walk->page, NULL, &entry)) {
        struct slice since = item_text(flow->arena, entry, "since");
        walk->since_len = since.len < SINCE_BYTES ? since.len : SINCE_BYTES;
        memcpy(walk->since, since.data, walk->since_len);
        group_work_new(flow, walk->name, item_text(flow->arena, entry, "key"))->own = walk;
        group_load(flow, item_int(flow->arena, entry, "generation", 0), walk_loaded);
    } else if (walk->goes_on || walk->slot + 1 < GROUP_SLOTS) {
        if (!walk->goes_on) walk->slot++;
        if (!walk->goes_on) walk->since_len = 0;
        walk_ask(flow);
    } else {
        flow->state = walk->state;
        walk->then(flow);
    }
}

static void walk_on(struct flow *flow)
{
    const struct group_work *work = flow->state;
    flow->state = work->own;
    walk_next(flow);
}

static void walk_loaded(struct flow *flow)
{
    const struct group_work *work = flow->state;
    const struct walk *walk = work->own;
    group_change(flow, walk->rules, walk_on);
}
