/* Groups: adding events. The tables and what holds for them: group.c.
 *
 * First the latest generation is read; then the event is written on the condition that the group is what it
 * was. Where it is not, the image that comes back tells what else to do. */
#include "calendar/calendar.h"
#include "pattern/group.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"

#define INLINE_BYTES 640 /* of events in the head: with all else it stays below 1 KB, one write unit */

enum { ADD_ID = GROUP_KEY + 1, ADD_KIND, ADD_DATA, ADD_AMOUNT, ADD_DEADLINE, ADD_TOKEN };

const struct field group_add_fields[] = {
    FIELD_GROUP_NAME,
    FIELD_GROUP_KEY,
    [ADD_ID] = {"id", IN_BODY, FIELD_NAME, .max = 512,
                .help = "of the event: the same one again is not added"},
    [ADD_KIND] = {"kind", IN_BODY, FIELD_NAME, .max = 200, .help = "what rules ask for by kinds"},
    [ADD_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "the event"},
    [ADD_AMOUNT] = {"amount", IN_BODY, FIELD_JSON, .help = "a number, added to the group's sum"},
    [ADD_DEADLINE] =
        {"deadline", IN_BODY, FIELD_NAME,
         .help = "a time like 2026-11-15T03:42:06Z: when the group that this event opens is complete, "
                 "instead of the rules' deadline"},
    [ADD_TOKEN] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                   .help = "the event's id, where the body has none"},
};

struct add {
    struct slice id;     /* of the event */
    bool has_id;         /* it was given */
    struct slice event;  /* members of its item but the key */
    struct slice rules;  /* read to open a generation */
    int64_t generation;  /* that is written to */
    int64_t deadline_ms; /* of the group that it opens; 0: as the rules say */
    bool opens, in_head, has_token;
    bool accepted;
};

/* ---- the write ---- */

/* The event's own deadline as heads have it: counted from now, when the group is opened. */
static int64_t since_opening(const struct flow *flow, const struct add *add)
{
    return add->deadline_ms > flow->now_ms ? add->deadline_ms - flow->now_ms : 1;
}

/* What a head has from its first event on. A deadline may come with the event. */
static struct slice opening(struct flow *flow, const struct group *group, const struct add *add,
                            struct slice *values)
{
    struct group soon = *group;
    struct slice since = flow_new_id(flow), slot = group_slot(flow, group), rules_values, none;
    struct slice text = group_rules_set(flow, add->rules, add->deadline_ms != 0, &rules_values, &none);
    group_read(flow, &soon, add->rules);
    soon.opened_ms = soon.touched_ms = flow->now_ms;
    if (add->deadline_ms) soon.deadline_ms = since_opening(flow, add);
    struct slice listed = {group->id.data, group->id.len - group->key.len};
    *values = flow_compose(flow, "%A,':name':%S,':key':%S,':open':%S,':since':%S,':slot':%S,':due':%N",
                           rules_values, group->name, group->key,
                           arena_printf(flow->arena, "%.*s%.*s", SLICE_ARG(listed), SLICE_ARG(slot)), since,
                           slot, group_due_ms(flow, &soon));
    if (add->deadline_ms) {
        *values = flow_compose(flow, "%A,':deadline':%N,':fixed':{'BOOL':true}", *values,
                               since_opening(flow, add));
        text = flow_compose(flow, "%r, #deadline = :deadline, #fixed = :fixed", text);
    }
    return flow_compose(
        flow,
        ", #state = :state, #opened = :now, #name = :name, #key = :key, #open = :open, #since = :since, "
        "#slot = :slot, #due = :due%r",
        text);
}

/* The event's own part of the head's update. */
static struct slice counting(struct flow *flow, const struct group *group, const struct add *add,
                             struct slice *set, struct slice *values)
{
    bool late = !add->opens && group->state == GROUP_COMPLETE;
    *values = flow_compose(flow, ",':one':{'N':'1'},':now':%N,':last':%S", flow->now_ms, add->id);
    *set = SLICE("#touched = :now, #last = :last");
    if (add->in_head) {
        *set = flow_compose(flow, "%r, #events = list_append(if_not_exists(#events, :none), :event)", *set);
        *values = flow_compose(
            flow, "%A,':none':{'L':[]},':event':{'L':[{'M':{'id':%S%A%r}}]},':ids':{'SS':[%s]},':bytes':%N",
            *values, add->id, add->event, late ? SLICE(",\"late\":{\"BOOL\":true}") : SLICE(""), add->id,
            (int64_t)(add->event.len + 2 * add->id.len));
    } else {
        *set = flow_compose(flow, "%r, #spilled = :true", *set);
        *values = flow_compose(flow, "%A,':true':{'BOOL':true}", *values);
    }
    if (flow_given(flow, ADD_KIND))
        *values = flow_compose(flow, "%A,':kinds':{'SS':[%s]}", *values, flow_text(flow, ADD_KIND));
    if (flow_given(flow, ADD_AMOUNT))
        *values = flow_compose(flow, "%A,':amount':%J", *values, flow_text(flow, ADD_AMOUNT));
    return flow_compose(flow, " ADD #count :one%r%r%r",
                        add->in_head ? SLICE(", #ids :ids, #bytes :bytes") : SLICE(""),
                        flow_given(flow, ADD_KIND) ? SLICE(", #kinds :kinds") : SLICE(""),
                        flow_given(flow, ADD_AMOUNT) ? SLICE(", #sum :amount") : SLICE(""));
}

/* The group is what it was: new, open and not complete yet, or complete; and the event is not in it. */
static struct slice condition(struct flow *flow, const struct group *group, const struct add *add,
                              struct slice *values)
{
    struct slice rule_values, rule = group_rule(flow, group->item, &rule_values);
    *values = flow_compose(flow, ",':state':%S",
                           add->opens || group->state == GROUP_OPEN ? SLICE("OPEN") : SLICE("COMPLETE"));
    if (add->opens) return SLICE("attribute_not_exists(#group)");
    struct slice text = SLICE("#state = :state and not contains(#ids, :id)");
    *values = flow_compose(flow, "%A,':id':%S", *values, add->id);
    if (add->in_head)
        text = flow_compose(flow, "%r and attribute_not_exists(#spilled) and #bytes <= :room", text);
    if (add->in_head)
        *values = flow_compose(flow, "%A,':room':%N", *values,
                               INLINE_BYTES - (int64_t)(add->event.len + 2 * add->id.len));
    if (group->state == GROUP_OPEN) {
        struct slice version, same = group_same_rules(flow, group, &version);
        text = flow_compose(flow, "%r and %r", text, same);
        *values = flow_compose(flow, "%A%A", *values, version);
    }
    if (group->state == GROUP_OPEN && rule.len) {
        text = flow_compose(flow, "%r and not (%r)", text, rule);
        *values = flow_compose(flow, "%A%A", *values, rule_values);
    }
    return text;
}

static struct slice head_update(struct flow *flow, const struct group *group, const struct add *add)
{
    struct slice opening_values = SLICE(""), counting_values, condition_values, set;
    struct slice counts = counting(flow, group, add, &set, &counting_values);
    struct slice opens = add->opens ? opening(flow, group, add, &opening_values) : SLICE("");
    struct slice holds = condition(flow, group, add, &condition_values);
    return flow_compose(
        flow,
        "'TableName':%T,'Key':%A,'UpdateExpression':'SET %r%r%r','ConditionExpression':'%r',%#,"
        "'ExpressionAttributeValues':{%A%A%A},%O",
        &group_table, group_key(flow, group, add->generation), set, opens, counts, holds,
        slice_from(counting_values, 1), opening_values, condition_values);
}

/* With the length of one of them, so that no other key and id look the same together. */
static struct slice token_key(struct flow *flow, const struct group *group, const struct add *add)
{
    return arena_printf(flow->arena, "%zu/%.*s/%.*s", group->key.len, SLICE_ARG(group->id),
                        SLICE_ARG(add->id));
}

enum written { IS_IN, WAS_REFUSED };

/* Head, event and token, where the event has an item of its own or its id is kept for all generations. */
static enum written write_together(struct flow *flow, struct group *group, struct add *add)
{
    struct slice event = SLICE(""), token = SLICE(""), there;
    int64_t known = add->generation; /* the generation that has it */
    if (!add->in_head)
        event = flow_compose(
            flow,
            ",{'Put':{'TableName':%T,'Item':{'part':%S,'id':%S%A%r},"
            "'ConditionExpression':'attribute_not_exists(#part)',%#}}",
            &group_events_table, group_part(flow, group, add->generation), add->id, add->event,
            !add->opens && group->state == GROUP_COMPLETE ? SLICE(",\"late\":{\"BOOL\":true}") : SLICE(""));
    if (add->has_token)
        token = flow_compose(flow, ",%A",
                             token_put(flow, "group", SLICE(""), token_key(flow, group, add),
                                       flow_compose(flow, ",'generation':%N", add->generation)));
    task_call(flow, "TransactWriteItems", "{'TransactItems':[{'Update':{%A}}%A%A]}",
              head_update(flow, group, add), event, token);
    add->accepted = !flow_failed(flow);
    bool event_known = flow_failed(flow) && !add->in_head && flow_reason(flow, 1, &there);
    bool token_known = flow_failed(flow) && add->has_token && flow_reason(flow, add->in_head ? 1 : 2, &there);
    if (token_known) known = item_int(flow->arena, there, "generation", known);
    if (add->accepted || event_known || token_known) {
        group_load(flow, group, known);
        if (group->item.data) return IS_IN;
        flow_refuse(flow, 409, "being-deleted", "The group was deleted meanwhile.");
        task_end(flow);
    }
    group_read(flow, group, flow_reason(flow, 0, &there) ? there : SLICE_NONE);
    return WAS_REFUSED;
}

/* Ids are kept for all generations only where there can be several. */
static enum written write_event(struct flow *flow, struct group *group, struct add *add)
{
    int64_t bytes = (int64_t)(add->event.len + 2 * add->id.len), there = add->opens ? 0 : group->bytes;
    bool is_new = add->opens ? item_says(flow->arena, add->rules, "late", "new") : group->late == LATE_NEW;
    add->in_head = (add->opens || !group->spilled) && there + bytes <= INLINE_BYTES;
    add->has_token = add->has_id && is_new;
    if (!add->in_head || add->has_token) return write_together(flow, group, add);
    task_call(flow, "UpdateItem", "{%A,'ReturnValues':'ALL_NEW'}", head_update(flow, group, add));
    add->accepted = !flow_failed(flow);
    group_read(flow, group, flow_item(flow));
    return add->accepted ? IS_IN : WAS_REFUSED;
}

/* ---- what becomes of an event ---- */

static bool has_element(struct flow *flow, struct slice item, const char *name, struct slice wanted)
{
    struct raw_look look;
    struct slice element;
    raw_look_begin(&look, flow->arena, item_content(flow->arena, item, name));
    while (raw_look_next(&look, NULL, &element))
        if (slice_equal(raw_text(flow->arena, element), wanted)) return true;
    return false;
}

/* Of a group that is complete: perhaps by this very event. */
static bool is_in(struct flow *flow, const struct group *group, const struct add *add)
{
    if (has_element(flow, group->item, "ids", add->id)) return true;
    if (!group->spilled) return false;
    task_call(flow, "GetItem", "{'TableName':%T,'Key':{'part':%S,'id':%S},'ConsistentRead':true}",
              &group_events_table, group_part(flow, group, group->generation), add->id);
    return flow_item(flow).data;
}

static void tell(struct flow *flow, const struct group *group, const struct add *add)
{
    bool completed = group->state == GROUP_COMPLETE && item_says(flow->arena, group->item, "why", "rule") &&
                     slice_equal(item_text(flow->arena, group->item, "by"), add->id);
    flow_answer(flow, add->accepted ? 201 : 200,
                "{'accepted':%b%r,'generation':%d,'count':%d,'state':%s,'completed':%b}", (int)add->accepted,
                add->accepted ? SLICE("") : SLICE(",\"duplicate\":true"), group->generation, group->count,
                item_text(flow->arena, group->item, "state"), (int)completed);
}

static _Noreturn void refuse_late(struct flow *flow, const struct group *group)
{
    flow_refuse_with(flow, flow_compose(flow, "'generation':%d,'count':%d", group->generation, group->count),
                     409, "closed-group", "The group is complete since %.*s and takes no more events.",
                     SLICE_ARG(item_text(flow->arena, group->item, "completed")));
    task_end(flow);
}

/* The rules by which the event opens this generation. */
static void open_generation(struct flow *flow, struct group *group, struct add *add, int64_t generation)
{
    task_call(flow, "GetItem", "{'TableName':%T,'Key':{'name':%S}}", &group_rules_table, group->name);
    add->rules = flow_item(flow);
    add->opens = true;
    add->generation = generation;
    if (add->rules.data) return;
    flow_refuse(flow, 404, "no-such-group", "There are no groups named '%.*s': put their rules first.",
                SLICE_ARG(group->name));
    task_end(flow);
}

/* Where the event goes, by the group as it was read. False: it is in already. */
static bool choose(struct flow *flow, struct group *group, struct add *add)
{
    const char *over = group->state == GROUP_OPEN ? group_is_over(flow, group) : NULL;
    while (over) { /* the sweep did not get to it yet */
        group_complete(flow, group, over);
        if (group->state == GROUP_COMPLETE) break;
        task_again(flow);
        group_load(flow, group, 0);
        over = group->state == GROUP_OPEN ? group_is_over(flow, group) : NULL;
    }
    add->opens = false;
    add->generation = group->generation;
    if (!group->item.data) {
        open_generation(flow, group, add, 1);
    } else if (group->state == GROUP_COMPLETE) {
        if (is_in(flow, group, add)) return false;
        if (group->late == LATE_DISCARD) refuse_late(flow, group);
        if (group->late == LATE_NEW) open_generation(flow, group, add, group->generation + 1);
    } else if (group->state != GROUP_OPEN) {
        flow_refuse(flow, 409, "being-deleted", "The group is being deleted. Try again.");
        task_end(flow);
    }
    return true;
}

static void add_event(struct flow *flow, struct group *group, struct add *add)
{
    group_load(flow, group, 0);
    while (choose(flow, group, add)) {
        if (write_event(flow, group, add) == IS_IN) break;
        if (has_element(flow, group->item, "ids", add->id)) break;
        if (group->state == GROUP_OPEN && group_may_be_complete(flow, group->item))
            group_complete(flow, group, NULL); /* somebody did not get to it */
        if (group->state == GROUP_COMPLETE) continue;
        task_again(flow);
        group_load(flow, group, 0);
    }
    if (group->state == GROUP_OPEN && group_may_be_complete(flow, group->item))
        group_complete(flow, group, NULL);
    /* Whoever has opened a group asks whether its rules were changed meanwhile: those who change rules give them to
     * the groups that they find, and this one may not have been there. */
    if (add->opens && group->state == GROUP_OPEN)
        group_change(flow, group, group_rules_read(flow, group->name));
    tell(flow, group, add);
}

/* A time that is over is taken, too: who repeats the call gets the same answer. */
static bool take_deadline(struct flow *flow, struct add *add)
{
    if (moment_parse(flow_text(flow, ADD_DEADLINE), &add->deadline_ms) && add->deadline_ms > 0 &&
        add->deadline_ms <= flow->now_ms + GROUP_LONG_MS)
        return true;
    flow_refuse(flow, 400, "bad-request",
                "deadline must be a time like 2026-11-15T03:42:06Z, within ten years.");
    return false;
}

void group_add(struct flow *flow)
{
    struct group group = group_named(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    struct add add = {.has_id = flow_given(flow, ADD_ID) || flow_given(flow, ADD_TOKEN)};
    bool has_amount = flow_given(flow, ADD_AMOUNT);
    if (has_amount && raw_kind(flow_text(flow, ADD_AMOUNT)) != JSON_NUMBER) {
        flow_refuse(flow, 400, "bad-request", "amount must be a number.");
        return;
    }
    if (flow_given(flow, ADD_DEADLINE) && !take_deadline(flow, &add)) return;
    add.id = flow_given(flow, ADD_ID)      ? flow_text(flow, ADD_ID)
             : flow_given(flow, ADD_TOKEN) ? flow_text(flow, ADD_TOKEN)
                                           : flow_new_id(flow);
    add.event = flow_compose(
        flow, "%A%A%A,'time':%S",
        flow_given(flow, ADD_KIND) ? flow_compose(flow, ",'kind':%S", flow_text(flow, ADD_KIND)) : SLICE(""),
        flow_given(flow, ADD_DATA) ? flow_compose(flow, ",'data':%J", flow_text(flow, ADD_DATA)) : SLICE(""),
        has_amount ? flow_compose(flow, ",'amount':%J", flow_text(flow, ADD_AMOUNT)) : SLICE(""),
        moment_text(flow->arena, flow->now_ms));
    add_event(flow, &group, &add);
}
