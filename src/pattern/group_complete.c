/* Groups: completed by a caller, whatever their rules say. The tables and what holds for them: group.c.
 *
 * `by` names the call, so that one caller is told that it has completed the group. With an Idempotency-Key a token
 * (tokens.h) is put first, which names the generation: the call that comes again means the same one, though events may
 * have opened the next meanwhile. */
#include "pattern/group.h"
#include "pattern/tokens.h"

enum { COMPLETE_GENERATION = GROUP_KEY + 1, COMPLETE_TOKEN };

const struct field group_complete_fields[] = {
    FIELD_GROUP_NAME,
    FIELD_GROUP_KEY,
    [COMPLETE_GENERATION] = {"generation", IN_BODY, FIELD_INT, .min = 1, .max = INT32_MAX,
                             .help = "which generation (default: the latest)"},
    [COMPLETE_TOKEN] = FIELD_REPEATS(
        "the same call again gets the same answer, and completes no later generation"),
};

static void load(struct flow *flow, struct group *group, int64_t generation)
{
    group_load(flow, group, generation);
    if (!group->item.data || group->state == GROUP_DELETING) group_refuse_unknown(flow);
}

void group_complete_now(struct flow *flow)
{
    struct group group = group_named(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    struct slice by = flow_new_id(flow);
    load(flow, &group, flow_int(flow, COMPLETE_GENERATION));
    if (flow_given(flow, COMPLETE_TOKEN)) {
        by = flow_text(flow, COMPLETE_TOKEN);
        struct slice there = token_keep(flow, "group-complete", group.id, by,
                                        flow_compose(flow, ",'generation':%N", group.generation));
        int64_t generation = item_int(flow->arena, there, "generation", group.generation);
        if (flow_given(flow, COMPLETE_GENERATION) && generation != flow_int(flow, COMPLETE_GENERATION))
            token_refuse(flow);
        if (generation != group.generation) load(flow, &group, generation);
    }
    while (group.state == GROUP_OPEN) {
        struct edit edit = {0};
        group_end(flow, &group, &edit, group.keep_ms, "call", "#by = :caller");
        edit_if(flow, &edit, "#state = :open and #rules = :rules",
                "':open':{'S':'OPEN'},':rules':%N,':caller':%S", group.rules, by);
        bool is_written = edit_write(flow, &edit, &group_table, group_key(flow, &group, group.generation));
        group_read(flow, &group, flow_item(flow));
        if (is_written) flow_wake(flow, group_topic(&group));
        if (group.state == GROUP_OPEN) task_again(flow); /* it has got other rules meanwhile */
    }
    if (group.state != GROUP_COMPLETE) group_refuse_unknown(flow); /* it was deleted meanwhile */
    flow_forget(flow, flow_topic("group head", group.id, SLICE("")));
    struct slice fold = item_attribute(flow->arena, group.item, "fold");
    bool is_ours = item_says(flow->arena, group.item, "why", "call") &&
                   slice_equal(item_text(flow->arena, group.item, "by"), by);
    flow_answer(flow, 200, "{'generation':%d,'count':%d,'state':'COMPLETE','completed':%b,'why':%s%A}",
                group.generation, group.count, (int)is_ours, item_text(flow->arena, group.item, "why"),
                fold.data ? flow_compose(flow, ",'fold':%P", fold) : SLICE(""));
}
