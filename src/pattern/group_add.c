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

static flow_step add_find, add_loaded, add_rules, add_write, add_written, add_together, add_seen,
    add_completed, add_rules_seen, add_late, add_late_seen, late_completed;

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
    struct group_work *work = group_work_new(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    struct add *add = work->own = arena_new(flow->arena, struct add);
    bool has_amount = flow_given(flow, ADD_AMOUNT);
    if (has_amount && raw_kind(flow_text(flow, ADD_AMOUNT)) != JSON_NUMBER) {
        flow_refuse(flow, 400, "bad-request", "amount must be a number.");
        return;
    }
    if (flow_given(flow, ADD_DEADLINE) && !take_deadline(flow, add)) return;
    add->has_id = flow_given(flow, ADD_ID) || flow_given(flow, ADD_TOKEN);
    add->id = flow_given(flow, ADD_ID)      ? flow_text(flow, ADD_ID)
              : flow_given(flow, ADD_TOKEN) ? flow_text(flow, ADD_TOKEN)
                                            : work->me;
    add->event = flow_compose(
        flow, "%A%A%A,'time':%S",
        flow_given(flow, ADD_KIND) ? flow_compose(flow, ",'kind':%S", flow_text(flow, ADD_KIND)) : SLICE(""),
        flow_given(flow, ADD_DATA) ? flow_compose(flow, ",'data':%J", flow_text(flow, ADD_DATA)) : SLICE(""),
        has_amount ? flow_compose(flow, ",'amount':%J", flow_text(flow, ADD_AMOUNT)) : SLICE(""),
        moment_text(flow->arena, flow->now_ms));
    add_find(flow);
}

static void add_find(struct flow *flow)
{
    group_load(flow, 0, add_loaded);
}

/* ---- where it goes ---- */

static void add_decide(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    const char *over = work->group.state == GROUP_OPEN ? group_is_over(flow, &work->group) : NULL;
    add->opens = false;
    add->generation = work->group.generation;
    if (over)
        group_complete(flow, over, late_completed); /* the sweep did not get to it yet */
    else if (work->group.state == GROUP_OPEN)
        add_write(flow);
    else if (work->group.state == GROUP_COMPLETE)
        add_late(flow);
    else
        flow_refuse(flow, 409, "being-deleted", "The group is being deleted. Try again.");
}

static void rules_ask(struct flow *flow, int64_t generation)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    add->generation = generation;
    flow_call(flow, add_rules, "GetItem", "{'TableName':%T,'Key':{'name':%S}}", &group_rules_table,
              work->name);
}

static void add_loaded(struct flow *flow)
{
    struct group_work *work = flow->state;
    if (work->group.item.data)
        add_decide(flow);
    else
        rules_ask(flow, 1);
}

static void add_rules(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    add->rules = flow_item(flow);
    add->opens = true;
    if (add->rules.data)
        add_write(flow);
    else
        flow_refuse(flow, 404, "no-such-group", "There are no groups named '%.*s': put their rules first.",
                    SLICE_ARG(flow_text(flow, GROUP_NAME)));
}

/* ---- late ones ---- */

static bool has_element(struct flow *flow, struct slice item, const char *name, struct slice wanted)
{
    struct raw_look look;
    struct slice element;
    raw_look_begin(&look, flow->arena, item_content(flow->arena, item, name));
    while (raw_look_next(&look, NULL, &element))
        if (slice_equal(raw_text(flow->arena, element), wanted)) return true;
    return false;
}

static void tell(struct flow *flow)
{
    struct group_work *work = flow->state;
    const struct add *add = work->own;
    const struct group *group = &work->group;
    bool completed = group->state == GROUP_COMPLETE && item_says(flow->arena, group->item, "why", "rule") &&
                     slice_equal(item_text(flow->arena, group->item, "by"), add->id);
    flow_answer(flow, add->accepted ? 201 : 200,
                "{'accepted':%b%r,'generation':%d,'count':%d,'state':%s,'completed':%b}", (int)add->accepted,
                add->accepted ? SLICE("") : SLICE(",\"duplicate\":true"), group->generation, group->count,
                item_text(flow->arena, group->item, "state"), (int)completed);
}

static void late_policy(struct flow *flow)
{
    struct group_work *work = flow->state;
    const struct group *group = &work->group;
    if (group->late == LATE_NEW)
        rules_ask(flow, group->generation + 1);
    else if (group->late == LATE_APPEND)
        add_write(flow);
    else
        flow_refuse_with(flow,
                         flow_compose(flow, "'generation':%d,'count':%d", group->generation, group->count),
                         409, "closed-group", "The group is complete since %.*s and takes no more events.",
                         SLICE_ARG(item_text(flow->arena, group->item, "completed")));
}

/* The group is complete: perhaps by this very event. */
static void add_late(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    if (add->accepted || has_element(flow, work->group.item, "ids", add->id))
        tell(flow);
    else if (work->group.spilled)
        flow_call(flow, add_late_seen, "GetItem",
                  "{'TableName':%T,'Key':{'part':%S,'id':%S},'ConsistentRead':true}", &group_events_table,
                  group_part(flow, work->group.generation), add->id);
    else
        late_policy(flow);
}

static void add_late_seen(struct flow *flow)
{
    if (flow_item(flow).data)
        tell(flow);
    else
        late_policy(flow);
}

/* ---- the write ---- */

/* The event's own deadline as heads have it: counted from now, when the group is opened. */
static int64_t since_opening(const struct flow *flow, const struct add *add)
{
    return add->deadline_ms > flow->now_ms ? add->deadline_ms - flow->now_ms : 1;
}

/* What a head has from its first event on. A deadline may come with the event. */
static struct slice opening(struct flow *flow, struct slice *values)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    struct group soon;
    struct slice since = flow_new_id(flow), slot = group_slot(flow), rules_values, none;
    struct slice text = group_rules_set(flow, add->rules, add->deadline_ms != 0, &rules_values, &none);
    group_read(flow, add->rules, &soon);
    soon.opened_ms = soon.touched_ms = flow->now_ms;
    if (add->deadline_ms) soon.deadline_ms = since_opening(flow, add);
    struct slice listed = {work->id.data, work->id.len - work->key.len};
    *values = flow_compose(flow, "%A,':name':%S,':key':%S,':open':%S,':since':%S,':slot':%S,':due':%N",
                           rules_values, work->name, work->key,
                           arena_printf(flow->arena, "%.*s%.*s", SLICE_ARG(listed), SLICE_ARG(slot)), since,
                           slot, group_due_ms(flow, &soon));
    if (add->deadline_ms) {
        *values = flow_compose(flow, "%A,':deadline':%N,':fixed':{'BOOL':true}", *values, since_opening(flow, add));
        text = flow_compose(flow, "%r, #deadline = :deadline, #fixed = :fixed", text);
    }
    return flow_compose(
        flow,
        ", #state = :state, #opened = :now, #name = :name, #key = :key, #open = :open, #since = :since, "
        "#slot = :slot, #due = :due%r",
        text);
}

/* The event's own part of the head's update. */
static struct slice counting(struct flow *flow, struct slice *set, struct slice *values)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    bool late = !add->opens && work->group.state == GROUP_COMPLETE;
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
static struct slice condition(struct flow *flow, struct slice *values)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    struct slice rule_values, rule = group_rule(flow, work->group.item, &rule_values);
    *values = flow_compose(flow, ",':state':%S",
                           add->opens || work->group.state == GROUP_OPEN ? SLICE("OPEN") : SLICE("COMPLETE"));
    if (add->opens) return SLICE("attribute_not_exists(#group)");
    struct slice text = SLICE("#state = :state and not contains(#ids, :id)");
    *values = flow_compose(flow, "%A,':id':%S", *values, add->id);
    if (add->in_head)
        text = flow_compose(flow, "%r and attribute_not_exists(#spilled) and #bytes <= :room", text);
    if (add->in_head)
        *values = flow_compose(flow, "%A,':room':%N", *values,
                               INLINE_BYTES - (int64_t)(add->event.len + 2 * add->id.len));
    if (work->group.state == GROUP_OPEN) {
        struct slice version, same = group_same_rules(flow, &work->group, &version);
        text = flow_compose(flow, "%r and %r", text, same);
        *values = flow_compose(flow, "%A%A", *values, version);
    }
    if (work->group.state == GROUP_OPEN && rule.len) {
        text = flow_compose(flow, "%r and not (%r)", text, rule);
        *values = flow_compose(flow, "%A%A", *values, rule_values);
    }
    return text;
}

static struct slice head_update(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    struct slice opening_values = SLICE(""), counting_values, condition_values, set;
    struct slice counts = counting(flow, &set, &counting_values);
    struct slice opens = add->opens ? opening(flow, &opening_values) : SLICE("");
    struct slice holds = condition(flow, &condition_values);
    return flow_compose(
        flow,
        "'TableName':%T,'Key':%A,'UpdateExpression':'SET %r%r%r','ConditionExpression':'%r',%#,"
        "'ExpressionAttributeValues':{%A%A%A},%O",
        &group_table, group_key(flow, add->generation), set, opens, counts, holds,
        slice_from(counting_values, 1), opening_values, condition_values);
}

/* With the length of one of them, so that no other key and id look the same together. */
static struct slice token_key(struct flow *flow)
{
    const struct group_work *work = flow->state;
    const struct add *add = work->own;
    return arena_printf(flow->arena, "%zu/%.*s/%.*s", work->key.len, SLICE_ARG(work->id), SLICE_ARG(add->id));
}

/* Ids are kept for all generations only where there can be several. */
static void add_write(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    int64_t bytes = (int64_t)(add->event.len + 2 * add->id.len), there = add->opens ? 0 : work->group.bytes;
    bool is_new = add->opens ? item_says(flow->arena, add->rules, "late", "new")
                             : work->group.late == LATE_NEW;
    add->in_head = (add->opens || !work->group.spilled) && there + bytes <= INLINE_BYTES;
    add->has_token = add->has_id && is_new;
    if (add->in_head && !add->has_token) {
        flow_call(flow, add_written, "UpdateItem", "{%A,'ReturnValues':'ALL_NEW'}", head_update(flow));
        return;
    }
    struct slice event = SLICE(""), token = SLICE("");
    if (!add->in_head)
        event = flow_compose(flow,
                             ",{'Put':{'TableName':%T,'Item':{'part':%S,'id':%S%A%r},"
                             "'ConditionExpression':'attribute_not_exists(#part)',%#}}",
                             &group_events_table, group_part(flow, add->generation), add->id, add->event,
                             !add->opens && work->group.state == GROUP_COMPLETE
                                 ? SLICE(",\"late\":{\"BOOL\":true}")
                                 : SLICE(""));
    if (add->has_token)
        token = flow_compose(flow, ",%A",
                             token_put(flow, "group", SLICE(""), token_key(flow),
                                       flow_compose(flow, ",'generation':%N", add->generation)));
    flow_call(flow, add_together, "TransactWriteItems", "{'TransactItems':[{'Update':{%A}}%A%A]}",
              head_update(flow), event, token);
}

/* ---- what became of it ---- */

/* By the image of the group: is it complete now? */
static void add_evaluate(struct flow *flow)
{
    struct group_work *work = flow->state;
    if (work->group.state == GROUP_OPEN && group_may_be_complete(flow, work->group.item))
        group_complete(flow, NULL, add_completed);
    else
        add_completed(flow);
}

/* Whoever has opened a group asks whether its rules were changed meanwhile: those who change rules give them to
 * the groups that they find, and this one may not have been there. */
static void add_completed(struct flow *flow)
{
    struct group_work *work = flow->state;
    const struct add *add = work->own;
    if (add->opens && work->group.state == GROUP_OPEN)
        flow_call(flow, add_rules_seen, "GetItem", "{'TableName':%T,'Key':{'name':%S},'ConsistentRead':true}",
                  &group_rules_table, work->name);
    else
        tell(flow);
}

static void add_rules_seen(struct flow *flow)
{
    group_change(flow, flow_item(flow), tell);
}

/* The write was refused, and this is how the group is. */
static void add_refused(struct flow *flow, struct slice item)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    if (!item.data) {
        flow_again(flow, add_find);
        return;
    }
    group_read(flow, item, &work->group);
    if (has_element(flow, item, "ids", add->id))
        add_evaluate(flow); /* it is in already */
    else if (work->group.state == GROUP_OPEN && group_may_be_complete(flow, item))
        group_complete(flow, NULL, late_completed); /* somebody did not get to it */
    else if (work->group.state == GROUP_COMPLETE)
        add_decide(flow);
    else
        flow_again(flow, add_find);
}

static void late_completed(struct flow *flow)
{
    struct group_work *work = flow->state;
    if (work->group.state == GROUP_COMPLETE)
        add_decide(flow);
    else
        flow_again(flow, add_find);
}

static void add_written(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    if (flow_failed(flow)) {
        add_refused(flow, flow_item(flow));
        return;
    }
    add->accepted = true;
    group_read(flow, flow_item(flow), &work->group);
    add_evaluate(flow);
}

/* The event, or its id of another generation, was there before. */
static void add_known(struct flow *flow, int64_t generation)
{
    group_load(flow, generation, add_seen);
}

static void add_together(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct add *add = work->own;
    struct slice head, token, event;
    unsigned at = 1;
    bool is_refused = flow_failed(flow) && flow_reason(flow, 0, &head);
    bool event_known = flow_failed(flow) && !add->in_head && flow_reason(flow, at++, &event);
    bool token_known = flow_failed(flow) && add->has_token && flow_reason(flow, at, &token);
    if (!flow_failed(flow)) {
        add->accepted = true;
        add_known(flow, add->generation);
    } else if (token_known) {
        add_known(flow, item_int(flow->arena, token, "generation", add->generation));
    } else if (event_known) {
        add_known(flow, add->generation);
    } else if (is_refused) {
        add_refused(flow, head);
    } else {
        flow_again(flow, add_find);
    }
}

static void add_seen(struct flow *flow)
{
    struct group_work *work = flow->state;
    if (work->group.item.data)
        add_evaluate(flow);
    else
        flow_refuse(flow, 409, "being-deleted", "The group was deleted meanwhile.");
}
