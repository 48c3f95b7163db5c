/* Groups: deletion, and the sweep that does by itself what is due: groups that nothing came to for long, or
 * whose deadline is over, or that somebody left half completed, or that were kept long enough. The tables and
 * what holds for them: group.c. */
#include <string.h>

#include "pattern/group.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS 1000
#define LOOK_MS  10000 /* a name is looked at as often as this, though nothing of it seems to be due */
#define CHANGE_MS                                                                                            \
    300000 /* so long a server has to give changed rules to all groups, before another one begins */
#define BURIED_MS  (24 * 3600 * 1000ll)
#define PAGE       25  /* names, or groups of a slot, at a time */
#define PAGES      4   /* of a slot */
#define NAME_BYTES 200 /* a name has at most so many */

/* ---- removing a generation ---- */

/* Marks it first, so that nobody adds to it while its events go. False: it is not what it was any more. */
static bool mark(struct flow *flow, const struct group *group)
{
    return edit_item(flow, &group_table, group_key(flow, group, group->generation),
                     SLICE("SET #state = :deleting, #slot = :slot, #due = :now REMOVE #open, #then"),
                     SLICE("#state = :state"),
                     "':deleting':{'S':'DELETING'},':slot':%S,':now':%N,':state':%S", group_slot(flow, group),
                     flow->now_ms, item_text(flow->arena, group->item, "state"));
}

/* Its events, then its head, which is DELETING. */
static void remove_marked(struct flow *flow, const struct group *group)
{
    do {
        if (!group->spilled.data) break;
        task_query(flow, "#part = :part", ",'ProjectionExpression':'#part, #id','Limit':%d" READ_FRESH,
                   "':part':%S", &group_events_table, (int64_t)SWEEP_REMOVED, group->spilled);
    } while (delete_listed(flow, &group_events_table));
    task_delete(flow, "#state = :deleting", "':deleting':{'S':'DELETING'}", &group_table,
                group_key(flow, group, group->generation));
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
    if (!count) group_refuse_unknown(flow);
    flow_answer(flow, 200, "{'deleted':%d}", count);
}

/* ---- the sweep ---- */

/* Events have come since it was due: later again, or never. */
static void put_off(struct flow *flow, const struct group *group)
{
    int64_t due_ms = group_due_ms(flow, group);
    bool is_due = item_int(flow->arena, group->item, "due", INT64_MAX) <= flow->now_ms;
    if (group->state != GROUP_OPEN || !is_due || due_ms <= flow->now_ms) return;
    struct edit edit = {0};
    if (due_ms == INT64_MAX)
        edit_put(flow, &edit, EDIT_REMOVE, "#slot, #due", NULL);
    else
        edit_set(flow, &edit, "due", "%N", due_ms);
    edit_if(flow, &edit, "#state = :open and #rules = :rules and #due <= :now",
            "':open':{'S':'OPEN'},':rules':%N,':now':%N", group->rules, flow->now_ms);
    edit_write(flow, &edit, &group_table, group_key(flow, group, group->generation));
}

/* Of the index: what is due is done. */
static void look_after(struct flow *flow, struct slice name, struct slice entry)
{
    struct group group = group_named(flow, name, item_text(flow->arena, entry, "key"));
    group_load(flow, &group, item_int(flow->arena, entry, "generation", 0));
    if (!group.item.data || item_int(flow->arena, group.item, "due", INT64_MAX) > flow->now_ms) return;
    if (group.state == GROUP_OPEN) {
        const char *over = group_is_over(flow, &group);
        if (over || group_may_be_complete(flow, group.item)) group_complete(flow, &group, over);
        put_off(flow, &group);
    } else if (group.state == GROUP_DELETING || mark(flow, &group)) {
        remove_marked(flow, &group);
    }
}

/* Whoever has changed the rules, or opened a group meanwhile, may have died over it. */
static void finish_change(struct flow *flow, struct slice name, struct slice rules)
{
    int64_t version = item_int(flow->arena, rules, "version", 0); /* also when it was made */
    bool is_applied = item_int(flow->arena, rules, "applied", 0) == version;
    int64_t again_ms = item_int(flow->arena, rules, "again",
                                is_applied ? INT64_MAX : version + GROUP_AGAIN_MS);
    if (flow->now_ms < again_ms || item_has(flow->arena, rules, "forgotten")) return;
    /* one server at a time: there may be many groups */
    if (!edit_item(flow, &group_rules_table, flow_compose(flow, "{'name':%S}", name),
                   SLICE("SET #again = :later"),
                   SLICE("#version = :version and (attribute_not_exists(#again) or #again <= :now)"),
                   "':version':%N,':now':%N,':later':%N", version, flow->now_ms, flow->now_ms + CHANGE_MS))
        return;
    group_change_all(flow, rules, 0);
    flow_forget(flow, group_sweep_topic(name)); /* some may be due earlier now */
    edit_item(flow, &group_rules_table, flow_compose(flow, "{'name':%S}", name),
              SLICE("SET #applied = :version REMOVE #again"), SLICE("#version = :version"), "':version':%N",
              version);
}

/* Does all that is due of a slot; when the next is, INT64_MAX: none is there. */
static int64_t sweep_slot(struct flow *flow, struct slice name, struct slice slot)
{
    struct slice last_key = SLICE_NONE, entry;
    for (unsigned pages = 0; pages < PAGES; pages++) {
        task_query(flow, "#slot = :slot", ",'IndexName':'due','Limit':%d" READ_FROM, "':slot':%S",
                   &group_table, (int64_t)PAGE, last_key, slot);
        last_key = flow_last_key(flow);
        struct arena_mark mark = arena_mark(flow->arena);
        raw_each (flow->arena, flow_items(flow), &entry) {
            int64_t due_ms = item_int(flow->arena, entry, "due", 0);
            if (due_ms > flow->now_ms) return due_ms;
            look_after(flow, name, entry);
            flow_rewind(flow, mark);
        }
        if (!last_key.data) return INT64_MAX;
    }
    return flow->now_ms; /* what is left is for the next sweep, which has its memory back */
}

/* Nothing of the name is left for a day and more: nor is the item of its rules. */
static void bury(struct flow *flow, struct slice name, struct slice rules, int64_t slots)
{
    int64_t forgotten_ms = item_int(flow->arena, rules, "forgotten", INT64_MAX);
    if (forgotten_ms > flow->now_ms - BURIED_MS) return;
    for (int64_t slot = 0; slot < slots; slot++) {
        task_query(flow, "#open = :open", ",'IndexName':'open','Limit':1", "':open':%S", &group_table,
                   group_slot_at(flow, name, slot));
        if (raw_count(flow->arena, flow_items(flow))) return;
    }
    task_delete(flow, "#forgotten = :forgotten", "':forgotten':%N", &group_rules_table,
                flow_compose(flow, "{'name':%S}", name), forgotten_ms);
}

static void sweep_name(struct flow *flow, struct slice rules)
{
    struct slice name = item_text(flow->arena, rules, "name");
    int64_t next_ms = 0, first_ms = INT64_MAX;
    finish_change(flow, name, rules);
    if (raw_int(flow_recall(flow, group_sweep_topic(name)), &next_ms) && flow->now_ms < next_ms) return;
    /* When a group that is opened from now on may be due at the earliest, but for those with a deadline of their
     * own. */
    static const char *const times[] = {"quiet", "deadline", "keep"};
    int64_t least_ms = LOOK_MS;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t ms = item_int(flow->arena, rules, times[i], 0);
        if (ms && ms < least_ms) least_ms = ms;
    }
    next_ms = flow->now_ms + least_ms;
    struct slots slots = group_slots(flow, name);
    int64_t slot_count = slots_read(flow, &slots);
    for (int64_t slot = 0; slot < slot_count; slot++) {
        int64_t due_ms = sweep_slot(flow, name, group_slot_at(flow, name, slot));
        if (due_ms < first_ms) first_ms = due_ms;
    }
    if (first_ms == INT64_MAX) bury(flow, name, rules, slot_count);
    flow_remember(flow, group_sweep_topic(name),
                  flow_compose(flow, "%d", first_ms < next_ms ? first_ms : next_ms));
}

static void sweep_groups(struct flow *flow)
{
    struct arena_mark start = arena_mark(flow->arena);
    char after[NAME_BYTES]; /* the last name of the page before */
    size_t after_len = 0;
    do {
        struct slice rules;
        flow_rewind(flow, start);
        task_call(flow, "Scan", "{'TableName':%T,'Limit':%d%[%?,'ExclusiveStartKey':{'name':%S}%]}",
                  &group_rules_table, (int64_t)PAGE, after_len > 0, (struct slice){after, after_len});
        struct slice last = item_text(flow->arena, flow_last_key(flow), "name");
        after_len = last.len < NAME_BYTES ? last.len : NAME_BYTES;
        if (after_len) memcpy(after, last.data, after_len);
        struct arena_mark mark = arena_mark(flow->arena);
        raw_each (flow->arena, flow_items(flow), &rules) {
            sweep_name(flow, rules);
            flow_rewind(flow, mark);
        }
    } while (after_len);
    flow_finish(flow, 200);
}

const struct flow_sweep group_sweep = {"groups", SWEEP_MS, sweep_groups};
