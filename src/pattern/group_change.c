/* Groups: changed rules reach the groups that are open. The tables and what holds for them: group.c.
 *
 * A head has its rules and their version, so that no event has to read them. Who changes the rules writes them
 * first, with a greater version, and then gives them to every group that the index of open groups lists. A
 * group takes rules only if they are newer than its own: so several changes may be under way, in any order,
 * and each of these writes may be repeated.
 *
 * Who opens a group knows the rules, writes the head, and reads the rules. If they were written before that look,
 * it sees them and gives them to its group. If they were written behind it, the head was there before, and is listed.
 * It may die between: so the sweep gives the rules to all open groups once more, a minute after they were changed
 * (`again`), and finishes a change that did not come to its end (`applied`), if its repeat does not. Whoever adds an
 * event and knows newer rules than the head has gives them to it, too.
 *
 * A group in which the new rules hold already gets them and is completed by one and the same write, for the
 * reason "rules": it is no event's doing. Where they fold other values (group_fold.c) these are made of all its events
 * first, and the group is completed by a second write, as one whose rule is a condition is. */
#include "pattern/group.h"

#include <string.h>

#define PAGE        25 /* groups at a time; then memory is given back */
#define SINCE_BYTES 80

/* ---- one group ---- */

static bool is_older(struct flow *flow, const struct group *group, struct slice rules)
{
    return group->state == GROUP_OPEN && group->rules < item_int(flow->arena, rules, "version", 0);
}

/* They fold other values of the events than the group has. */
static bool folds_anew(struct flow *flow, const struct group *group, struct slice rules)
{
    return !attribute_equal(flow->arena, item_attribute(flow->arena, rules, "folds"),
                            item_attribute(flow->arena, group->item, "folds"));
}

/* The head gets the new rules, if they hold, or if they do not. False: it was refused. The head is read again. With
 * other values it gets them at any rate, since the service judges by those that were there; no event may have come
 * since they were made. */
static bool rules_give(struct flow *flow, struct group *group, struct slice rules, struct edit *edit,
                       bool holds, struct slice values)
{
    group_rules_set(flow, edit, rules, group->own_deadline);
    edit_if(flow, edit, "#state = :open and #rules < :r_rules", "':open':{'S':'OPEN'}");
    if (!folds_anew(flow, group, rules)) {
        group_if_rule(flow, edit, rules, holds);
    } else if (values.data) {
        edit_set(flow, edit, "fold", "{'M':%A}", values);
        group_if_unchanged(flow, group, edit);
    } else {
        edit_put(flow, edit, EDIT_REMOVE, "#fold", NULL);
        group_if_rule(flow, edit, rules, holds);
    }
    bool is_written = edit_write(flow, edit, &group_table, group_key(flow, group, group->generation));
    group_read(flow, group, flow_item(flow));
    if (is_written) flow_wake(flow, group_topic(group));
    return is_written;
}

/* Could the new rules hold, as far as that can be told without the service? */
static bool may_be_complete(struct flow *flow, const struct group *group, struct slice rules)
{
    struct slice kinds = item_attribute(flow->arena, group->item, "kinds");
    return group_may_be_complete(flow, flow_compose(flow, "{'count':%N%r%A,%A", group->count,
                                                    kinds.data ? SLICE(",\"kinds\":") : SLICE(""),
                                                    kinds.data ? kinds : SLICE(""), slice_from(rules, 1)));
}

static bool give_and_complete(struct flow *flow, struct group *group, struct slice rules)
{
    struct edit edit = {0};
    group_end(flow, group, &edit, item_int(flow->arena, rules, "keep", 0), "rules", "#by = :why");
    return rules_give(flow, group, rules, &edit, true, SLICE_NONE);
}

/* It stays open, but may be due earlier. Where it is due later, the sweep sees it when it looks: to write it here
 * would cost two more units, of the index. */
static bool give(struct flow *flow, struct group *group, struct slice rules, struct slice values)
{
    struct group soon = *group;
    group_read(flow, &soon, rules);
    soon.opened_ms = group->opened_ms;
    soon.touched_ms = group->touched_ms;
    if (group->own_deadline) soon.deadline_ms = group->deadline_ms;
    int64_t due_ms = group_due_ms(flow, &soon);
    struct edit edit = {0};
    if (due_ms < item_int(flow->arena, group->item, "due", INT64_MAX))
        group_set_due(flow, group, &edit, due_ms);
    return rules_give(flow, group, rules, &edit, false, values);
}

void group_change(struct flow *flow, struct group *group, struct slice rules)
{
    while (rules.data && is_older(flow, group, rules)) {
        struct slice folds = item_content(flow->arena, rules, "folds"), values = SLICE_NONE;
        if (folds.data && folds_anew(flow, group, rules))
            values = group_fold_all(flow, group, folds);
        else if (may_be_complete(flow, group, rules) && give_and_complete(flow, group, rules))
            return;
        if (!is_older(flow, group, rules)) return;
        if (give(flow, group, rules, values)) {
            const char *over = group_is_over(flow, group); /* by the new rules */
            if (values.data && !over && group_may_be_complete(flow, group->item)) over = GROUP_BY_RULES;
            if (over) group_complete(flow, group, over);
            return;
        }
        if (is_older(flow, group, rules))
            task_again(flow); /* an event has come, with which the new rule holds */
    }
}

/* ---- all that are open ---- */

void group_change_all(struct flow *flow, struct slice rules, int64_t waits_ms)
{
    rules = arena_copy(flow->arena, rules);
    struct slice name = item_text(flow->arena, rules, "name");
    struct slots slots = group_slots(flow, name);
    int64_t slot = 0, slot_count = slots_read(flow, &slots);
    struct arena_mark mark = arena_mark(flow->arena);
    char since[SINCE_BYTES] = "0"; /* the last entry's */
    size_t since_len = 1;
    if (waits_ms) task_sleep(flow, waits_ms);
    while (slot < slot_count) {
        struct slice entry;
        flow_rewind(flow, mark);
        task_query(flow, "#open = :open and #since > :after", ",'IndexName':'open','Limit':%d",
                   "':open':%S,':after':%S", &group_table, (int64_t)PAGE, group_slot_at(flow, name, slot),
                   (struct slice){since, since_len});
        bool goes_on = flow_last_key(flow).data;
        raw_each (flow->arena, flow_items(flow), &entry) {
            struct slice last = item_text(flow->arena, entry, "since");
            since_len = last.len < SINCE_BYTES ? last.len : SINCE_BYTES;
            memcpy(since, last.data, since_len);
            struct group group = group_named(flow, name, item_text(flow->arena, entry, "key"));
            group_load(flow, &group, item_int(flow->arena, entry, "generation", 0));
            group_change(flow, &group, rules);
        }
        if (goes_on) continue;
        slot++;
        since_len = 1;
        since[0] = '0';
    }
}
