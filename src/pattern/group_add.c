/* Groups: adding events. The tables and what holds for them: group.c.
 *
 * One conditional write to the head decides: it counts the event, and completes the group where the rule holds with
 * it. An event that the head has no room for stands in the head's `redo` until it has an item of its own; whoever
 * comes next sees to that before it writes its own there. So all events but the last have their items, and whoever
 * has read a head knows which events the group has.
 *
 * An id that comes again is found in the head or by its item. Where late events open a new generation a token says
 * which generation an id belongs to; it is put before the event, and moves on only when the event can not get into
 * that generation any more. */
#include "calendar/calendar.h"
#include "pattern/group.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"
#include "value/value.h"

/* Of events in a head with short names; with all else, and with an event of some 200 bytes as its redo, it stays below
 * 1 KB, one write unit. */
#define INLINE_BYTES       580
#define INLINE_LEAST_BYTES 300

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
    [ADD_TOKEN] = FIELD_REPEATS("the event's id, where the body has none"),
};

struct add {
    struct slice id;     /* of the event */
    bool has_id;         /* it was given */
    struct slice kind;   /* empty: none */
    struct slice event;  /* members of its item but the key */
    int64_t bytes;       /* that it takes in a head */
    struct slice rules;  /* by which it opens a generation */
    struct slice fold;   /* the group's folded values with it; SLICE_NONE: nothing is folded */
    int64_t generation;  /* that is written to */
    int64_t claimed;     /* the generation that the id's token names; 0: it was not asked for */
    int64_t deadline_ms; /* of the group that it opens; 0: as the rules say */
    struct slice amount; /* SLICE_NONE: none */
    bool opens;
    bool completes; /* the rule holds with it */
    bool tried;     /* a write of it may have happened */
    bool accepted;
    /* of several of one call for this group: those behind it that are written with it */
    struct add *more;
    size_t more_count;
    /* what became of it; status 0: nothing yet */
    int status;
    struct slice answer;
};

/* It is not added, and what is said of it. */
static void refuse(struct flow *flow, struct add *add, struct slice members, int status, const char *code,
                   struct slice sentence)
{
    add->status = status;
    add->answer = flow_compose(flow, "{'error':%s,'message':%s%r%A}", slice_of(code), sentence,
                               members.len ? SLICE(",") : SLICE(""), members);
}

static void refuse_no_rules(struct flow *flow, const struct group *group, struct add *add)
{
    refuse(flow, add, SLICE(""), 404, "no-such-group",
           arena_printf(flow->arena, "There are no groups named '%.*s': put their rules first.",
                        SLICE_ARG(group->name)));
}

/* ---- the write ---- */

/* The event's own deadline as heads have it: counted from now, when the group is opened. */
static int64_t since_opening(const struct flow *flow, const struct add *add)
{
    return add->deadline_ms > flow->now_ms ? add->deadline_ms - flow->now_ms : 1;
}

/* What a head has from its first event on. A deadline may come with the event. */
static void opening(struct flow *flow, const struct group *group, const struct add *add, bool completes,
                    struct edit *edit)
{
    struct group soon = *group;
    group_rules_set(flow, edit, add->rules, add->deadline_ms != 0);
    edit_put(flow, edit, EDIT_SET, "#opened = :now", NULL);
    edit_set(flow, edit, "name", "%S", group->name);
    edit_set(flow, edit, "key", "%S", group->key);
    if (add->deadline_ms) {
        edit_set(flow, edit, "deadline", "%N", since_opening(flow, add));
        edit_set(flow, edit, "fixed", "{'BOOL':true}");
    }
    edit_set(flow, edit, "since", "%S", flow_new_id(flow));
    if (completes) return;
    group_read(flow, &soon, add->rules);
    soon.opened_ms = soon.touched_ms = flow->now_ms;
    if (add->deadline_ms) soon.deadline_ms = since_opening(flow, add);
    int64_t due_ms = group_due_ms(flow, &soon);
    edit_set(flow, edit, "state", "{'S':'OPEN'}");
    edit_set(flow, edit, "open", "%S", group_slot(flow, group));
    if (due_ms != INT64_MAX) group_set_due(flow, group, edit, due_ms);
}

/* The group is what it was: new, open and not complete yet, or complete; and the event is not in it. */
static void condition(struct flow *flow, const struct group *group, const struct add *add, bool in_head,
                      int64_t room, struct edit *edit)
{
    bool is_open = group->state == GROUP_OPEN;
    if (add->opens) {
        edit_if(flow, edit, "attribute_not_exists(#group)", NULL);
        return;
    }
    edit_if(flow, edit, "#state = :state and not contains(#ids, :id)", "':state':%S,':id':%S",
            is_open ? SLICE("OPEN") : SLICE("COMPLETE"), add->id);
    /* nothing was added since it was read: its redo is carried out, and its folded values are those of its events */
    if (group->folds.data || add->more_count || (!in_head && group->spilled.data))
        group_if_unchanged(flow, group, edit);
    if (in_head)
        edit_if(flow, edit, "attribute_not_exists(#spilled) and #bytes <= :room", "':room':%N",
                room - add->bytes);
    else
        edit_if(flow, edit, group->spilled.data ? "#spilled = :spilled" : "attribute_not_exists(#spilled)",
                NULL);
    if (!is_open) return;
    edit_if(flow, edit, "#rules = :rules", "':rules':%N", group->rules);
    if (!add->more_count) /* else it is as it was read, which tells */
        group_if_rule_with(flow, edit, group->item, add->kind, add->completes);
}

/* A hash key for further events that no other group of this name and key has had, or will have: an item that is put
 * very late, when its group was deleted, is nobody's. */
static struct slice new_part(struct flow *flow, const struct group *group, const struct add *add)
{
    return arena_printf(flow->arena, "%.*s/%lld/%010llx", SLICE_ARG(group->id), (long long)add->generation,
                        (unsigned long long)(flow_random(flow) >> 24));
}

/* The item of an event of its own, by what a head's redo says: `event` is a map's content. */
static void put_item(struct flow *flow, struct slice part, struct slice event)
{
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'part':%S,%A,'ConditionExpression':'attribute_not_exists(#part)',%#}",
              &group_events_table, part, slice_from(event, 1));
}

/* What several events bring to the head together. */
struct sums {
    struct slice events, ids, kinds; /* elements of lists */
    int64_t bytes;
    struct slice amount; /* SLICE_NONE: none */
};

/* False: their amounts cannot be added. */
static bool sums_take(struct flow *flow, struct sums *sums, const struct add *add, bool is_late)
{
    if (add->amount.data && !sums->amount.data) {
        sums->amount = add->amount;
    } else if (add->amount.data) {
        struct number a, b, sum;
        if (number_parse(sums->amount, &a) != NUMBER_OK || number_parse(add->amount, &b) != NUMBER_OK ||
            number_add(&a, &b, &sum) != NUMBER_OK)
            return false;
        sums->amount = number_text(flow->arena, &sum);
    }
    sums->events = flow_compose(flow, "%A%,{'M':{'id':%S%A%r}}", sums->events, add->id, add->event,
                                is_late ? SLICE(",\"late\":{\"BOOL\":true}") : SLICE(""));
    sums->ids = flow_compose(flow, "%A%,%s", sums->ids, add->id);
    struct slice kinds = flow_compose(flow, "{'kinds':{'SS':[%A]}}", sums->kinds);
    if (add->kind.len && !group_has(flow, kinds, "kinds", add->kind))
        sums->kinds = flow_compose(flow, "%A%,%s", sums->kinds, add->kind);
    sums->bytes += add->bytes;
    return true;
}

/* Counts the event in the head, and those that go with it. True: the head is as it was written; false: as it is. */
static bool write_head(struct flow *flow, struct group *group, struct add *add, bool in_head, int64_t room)
{
    bool late = !add->opens && group->state == GROUP_COMPLETE;
    const struct add *last = add->more_count ? &add->more[add->more_count - 1] : add;
    struct sums sums = {.events = SLICE(""), .ids = SLICE(""), .kinds = SLICE("")};
    struct edit edit = {0};
    sums_take(flow, &sums, add, late);
    for (size_t i = 0; i < add->more_count; i++) sums_take(flow, &sums, &add->more[i], late);
    edit_put(flow, &edit, EDIT_SET, "#touched = :now", "':now':%N", flow->now_ms);
    edit_set(flow, &edit, "last", "%S", last->id);
    edit_put(flow, &edit, EDIT_ADD, "#count :one", "':one':%N", (int64_t)(1 + add->more_count));
    if (in_head) {
        edit_put(flow, &edit, EDIT_SET, "#events = list_append(if_not_exists(#events, :none), :event)",
                 "':none':{'L':[]},':event':{'L':[%A]}", sums.events);
        edit_put(flow, &edit, EDIT_ADD, "#ids :ids, #bytes :bytes", "':ids':{'SS':[%A]},':bytes':%N",
                 sums.ids, sums.bytes);
    } else {
        bool goes_on = !add->opens && group->spilled.data;
        edit_set(flow, &edit, "redo", "%A", sums.events);
        edit_set(flow, &edit, "spilled", "%S", goes_on ? group->spilled : new_part(flow, group, add));
    }
    if (sums.kinds.len) edit_put(flow, &edit, EDIT_ADD, "#kinds :kinds", "':kinds':{'SS':[%A]}", sums.kinds);
    if (last->fold.data) edit_set(flow, &edit, "fold", "{'M':%A}", last->fold);
    if (sums.amount.data) edit_put(flow, &edit, EDIT_ADD, "#sum :amount", "':amount':%J", sums.amount);
    if (add->opens) opening(flow, group, add, last->completes, &edit);
    if (last->completes)
        group_end(flow, group, &edit,
                  add->opens ? item_int(flow->arena, add->rules, "keep", 0) : group->keep_ms, "rule",
                  "#by = :last");
    condition(flow, group, add, in_head, room - sums.bytes + add->bytes, &edit);
    add->accepted = edit_write(flow, &edit, &group_table, group_key(flow, group, add->generation));
    for (size_t i = 0; i < add->more_count; i++) add->more[i].accepted = add->accepted;
    group_read(flow, group, flow_item(flow));
    return add->accepted;
}

/* ---- where an event is ---- */

static bool is_in_head(struct flow *flow, const struct group *group, const struct add *add)
{
    return group_has(flow, group->item, "ids", add->id) ||
           slice_equal(item_text(flow->arena, group->redo, "id"), add->id);
}

static bool item_is_there(struct flow *flow, const struct group *group, struct slice id)
{
    return task_get(flow, &group_events_table, "{'part':%S,'id':%S}", group->spilled, id).data;
}

/* An id that was made for this call can have an item only by an earlier try of the same call. */
static bool has_item(struct flow *flow, const struct group *group, const struct add *add)
{
    return group->spilled.data && (add->has_id || add->tried) && item_is_there(flow, group, add->id);
}

/* Makes the folded values with the event. False: that cannot be, by what was read of the group and its rules, and it is
 * refused; or by what is remembered of them, and they were read. */
static bool fold_event(struct flow *flow, struct group *group, struct add *add, bool is_guess)
{
    struct slice folds = add->opens ? item_content(flow->arena, add->rules, "folds") : group->folds;
    struct slice values = add->opens ? SLICE("{}") : item_content(flow->arena, group->item, "fold");
    const char *fault = NULL;
    add->fold = SLICE_NONE;
    if (!folds.data) return true;
    add->fold = group_fold_next(flow, folds, values, flow_compose(flow, "{%A}", slice_from(add->event, 1)),
                                &fault);
    if (!fault) return true;
    if (add->opens) {
        struct slice rules = group_rules_read(flow, group->name);
        if (item_int(flow->arena, rules, "version", 0) != item_int(flow->arena, add->rules, "version", 0))
            return false;
    } else if (is_guess) {
        group_load(flow, group, 0);
        return false;
    }
    refuse(flow, add, SLICE(""), 400, "bad-event",
           flow_compose(flow, "The event cannot be folded: %r.", slice_of(fault)));
    return false;
}

/* Which of those behind it, all of one group, are written with an event that stands in the head: as far as there is
 * room and the group is not complete. With a condition of the user's only the service knows that; where late events
 * open a generation each needs its token. */
static void gather(struct flow *flow, const struct group *group, struct add *add, struct add *rest,
                   size_t rest_count, int64_t room)
{
    struct slice rules = add->opens ? add->rules : group->item;
    struct slice folds = item_content(flow->arena, rules, "folds"), kinds = SLICE("");
    struct slice there = add->opens ? SLICE_NONE : item_attribute(flow->arena, group->item, "kinds"), kind;
    int64_t count = add->opens ? 0 : group->count, bytes = add->opens ? 0 : group->bytes;
    struct sums sums = {.events = SLICE(""), .ids = SLICE(""), .kinds = SLICE("")};
    struct add *before = add;
    add->more = rest;
    add->more_count = 0;
    if ((!add->opens && group->state != GROUP_OPEN) || item_has(flow->arena, rules, "when") ||
        item_says(flow->arena, rules, "late", "new"))
        return;
    raw_each (flow->arena, attribute_content(flow->arena, there), &kind)
        kinds = flow_compose(flow, "%A%,%A", kinds, kind);
    struct slice rule = flow_compose(flow, "'size':%N%r%A", item_int(flow->arena, rules, "size", 0),
                                     item_has(flow->arena, rules, "needs") ? SLICE(",\"needs\":") : SLICE(""),
                                     item_attribute(flow->arena, rules, "needs"));
    sums_take(flow, &sums, add, false);
    for (size_t i = 0; i < rest_count && !before->completes; i++) {
        struct add *next = &rest[i];
        struct slice ids = flow_compose(flow, "{'ids':{'SS':[%A]}}", sums.ids);
        const char *fault = NULL;
        if (next->status || bytes + sums.bytes + next->bytes > room ||
            group_has(flow, ids, "ids", next->id) ||
            (!add->opens && group_has(flow, group->item, "ids", next->id)))
            return;
        if (folds.data)
            next->fold = group_fold_next(flow, folds, before->fold,
                                         flow_compose(flow, "{%A}", slice_from(next->event, 1)), &fault);
        struct slice known = flow_compose(flow, "%A%A%A", kinds,
                                          kinds.len && sums.kinds.len ? SLICE(",") : SLICE(""), sums.kinds);
        struct slice soon = flow_compose(flow, "{%A,'count':%N,'kinds':{'SS':[%A]}}", rule,
                                         count + 1 + (int64_t)i, known);
        if (fault || !sums_take(flow, &sums, next, false)) return;
        next->opens = false;
        next->completes = group_completes(flow, soon, next->kind);
        before = next;
        add->more_count = i + 1;
    }
}

/* True: it is in the group. False: the group was not what it seemed to be, and was read again. `is_guess`: it was
 * remembered, and its redo is carried out. */
static bool write_event(struct flow *flow, struct group *group, struct add *add, struct add *rest,
                        size_t rest_count, bool is_guess)
{
    int64_t room = INLINE_BYTES - (int64_t)(4 * group->name.len + 3 * group->key.len);
    room -= group->folds.data
                ? (int64_t)(group->folds.len + item_content(flow->arena, group->item, "fold").len) / 2
                : 0;
    if (room < INLINE_LEAST_BYTES) room = INLINE_LEAST_BYTES;
    bool spills = !add->opens && group->spilled.data;
    bool in_head = !spills && (add->opens ? 0 : group->bytes) + add->bytes <= room;
    if (spills && !is_guess && !item_is_there(flow, group, item_text(flow->arena, group->redo, "id")))
        put_item(flow, group->spilled, group->redo);
    if (spills && has_item(flow, group, add)) return true;
    if (!fold_event(flow, group, add, is_guess)) return false;
    add->more_count = 0;
    if (in_head && rest_count) gather(flow, group, add, rest, rest_count, room);
    if (add->opens && !add->completes) {
        struct slots slots = group_slots(flow, group->name);
        slots_count(flow, &slots, group->id);
    }
    add->tried = true;
    if (!write_head(flow, group, add, in_head, room)) return false;
    if (!in_head) put_item(flow, group->spilled, group->redo);
    return true;
}

/* ---- ids of all generations ---- */

/* With the length of one of them, so that no other key and id look the same together. */
static struct slice token_of(struct flow *flow, const struct group *group, const struct add *add)
{
    return token_text(
        flow, "group", SLICE(""),
        arena_printf(flow->arena, "%zu/%.*s/%.*s", group->key.len, SLICE_ARG(group->id), SLICE_ARG(add->id)));
}

/* Makes the token name the generation that is to be written to. False: it belongs to another one, which was read: it is
 * in there, or can still get there. */
static bool claim(struct flow *flow, struct group *group, struct add *add)
{
    struct slice token = token_of(flow, group, add);
    while (add->claimed != add->generation) {
        if (!add->claimed) {
            task_call(flow, "PutItem",
                      "{'TableName':%T,'Item':{'token':%S,'expires':%N,'generation':%N},"
                      "'ConditionExpression':'attribute_not_exists(#token)',%#,%O}",
                      &token_table, token, flow->now_ms / 1000 + TOKEN_KEPT_S, add->generation);
        } else {
            struct group other = *group;
            group_load(flow, &other, add->claimed);
            if (!other.item.data && add->claimed < add->generation) {
                refuse(flow, add, SLICE(""), 409, "being-deleted", SLICE("The group was deleted meanwhile."));
                return false;
            }
            if (other.item.data && (other.state != GROUP_COMPLETE || is_in_head(flow, &other, add) ||
                                    has_item(flow, &other, add))) {
                *group = other;
                return false;
            }
            edit_item(flow, &token_table, flow_compose(flow, "{'token':%S}", token),
                      SLICE("SET #generation = :generation"), SLICE("#generation = :claimed"),
                      "':generation':%N,':claimed':%N", add->generation, add->claimed);
        }
        add->claimed = flow_failed(flow) ? item_int(flow->arena, flow_item(flow), "generation", 0)
                                         : add->generation;
    }
    return true;
}

/* ---- what becomes of an event ---- */

/* `behind`: so many of those that were written with it came behind it. */
static void tell(struct flow *flow, const struct group *group, struct add *add, size_t behind)
{
    bool completed = group->state == GROUP_COMPLETE && item_says(flow->arena, group->item, "why", "rule") &&
                     slice_equal(item_text(flow->arena, group->item, "by"), add->id);
    struct slice fold = item_attribute(flow->arena, group->item, "fold");
    if (behind && fold.data) fold = flow_compose(flow, "{'M':%A}", add->fold);
    add->status = add->accepted ? 201 : 200;
    add->answer = flow_compose(
        flow,
        "{'accepted':%b%[%?,'duplicate':true%],'generation':%d,'count':%d,'state':%s,'completed':%b%[,'fold':%P%]}",
        add->accepted, !add->accepted, group->generation, group->count - (int64_t)behind,
        behind ? SLICE("OPEN") : item_text(flow->arena, group->item, "state"), completed, fold);
}

/* Which generation the event goes to, and whether it completes it. */
static void choose(struct flow *flow, const struct group *group, struct add *add)
{
    bool is_late = group->state == GROUP_COMPLETE;
    add->opens = !group->item.data || (is_late && group->late == LATE_NEW);
    add->generation = group->generation + add->opens;
    if (is_late && group->late == LATE_DISCARD) {
        refuse(flow, add,
               flow_compose(flow, "'generation':%d,'count':%d,'why':%s", group->generation, group->count,
                            item_text(flow->arena, group->item, "why")),
               409, "closed-group",
               flow_compose(flow, "The group is complete since %r and takes no more events.",
                            item_text(flow->arena, group->item, "completed")));
    }
    if (group->state == GROUP_DELETING)
        refuse(flow, add, SLICE(""), 409, "being-deleted", SLICE("The group is being deleted. Try again."));
    if (add->opens) {
        add->rules = group_rules_guess(flow, group->name);
        if (!add->rules.data) refuse_no_rules(flow, group, add);
    }
    if (add->status) return;
    add->completes = (add->opens || !is_late) &&
                     group_completes(flow, add->opens ? add->rules : group->item, add->kind);
}

/* Whoever has opened a group asks whether its rules were changed meanwhile: those who change rules give them to the
 * groups that they find, and this one may not have been there. */
static void check_rules(struct flow *flow, struct group *group, struct add *add)
{
    const struct add *last = add->more_count ? &add->more[add->more_count - 1] : add;
    struct slice rules = group_rules_read(flow, group->name);
    if (rules.data) {
        group_change(flow, group, rules);
        return;
    }
    /* they are forgotten: nothing happened, unless others came */
    task_delete(flow, "#state = :open and #count = :one and #last = :id",
                "':open':{'S':'OPEN'},':one':%N,':id':%S", &group_table,
                group_key(flow, group, add->generation), (int64_t)(1 + add->more_count), last->id);
    if (flow_failed(flow)) return;
    refuse_no_rules(flow, group, add);
    for (size_t i = 0; i < add->more_count; i++) refuse_no_rules(flow, group, &add->more[i]);
}

/* Of those behind it, all of this group, some may be added with it. `is_written`: the group is as this flow has just
 * written it. */
static void add_event(struct flow *flow, struct group *group, struct add *add, struct add *rest,
                      size_t rest_count, bool is_written)
{
    uint64_t topic = flow_topic("group head", group->id, SLICE(""));
    struct slice seen = is_written ? group->item : flow_recall(flow, topic);
    struct slice rules = group_rules_known(flow, group->name);
    bool is_guess = seen.data;
    if (is_guess)
        group_read(flow, group, seen);
    else
        group_load(flow, group, 0);
    for (;;) {
        add->opens = add->completes = false;
        if (group->state == GROUP_OPEN && group->rules < item_int(flow->arena, rules, "version", 0)) {
            group_change(flow, group, rules); /* whoever opened it died before it had them */
            is_guess = false;
            if (!group->item.data) group_load(flow, group, 0);
        }
        const char *over = group->state == GROUP_OPEN ? group_is_over(flow, group) : NULL;
        if (is_in_head(flow, group, add)) {
            if (!is_guess) break;
            group_load(flow, group, 0); /* to tell how it is now */
            is_guess = false;
            continue;
        }
        if (over) { /* the sweep did not get to it yet */
            group_complete(flow, group, over);
        } else {
            if (group->state == GROUP_COMPLETE && group->late != LATE_APPEND && has_item(flow, group, add))
                break;
            choose(flow, group, add);
            if (add->status) break;
            bool has_token = add->has_id && (add->opens ? item_says(flow->arena, add->rules, "late", "new")
                                                        : group->late == LATE_NEW);
            if (has_token && !claim(flow, group, add)) {
                if (add->status) break;
                is_guess = false;
                continue;
            }
            if (write_event(flow, group, add, rest, rest_count, is_guess) || add->status) break;
            if (is_in_head(flow, group, add)) break;
            if (group->state == GROUP_OPEN && group_may_be_complete(flow, group->item))
                group_complete(flow, group, NULL); /* somebody did not get to it */
        }
        if (group->state != GROUP_COMPLETE && !is_guess && !add->opens) task_again(flow);
        if (!group->item.data || (add->opens && group->state == GROUP_COMPLETE)) group_load(flow, group, 0);
        is_guess = false;
    }
    if (!add->accepted) add->more_count = 0;
    if (add->status) return;
    if (group->state == GROUP_OPEN && group_may_be_complete(flow, group->item))
        group_complete(flow, group, NULL);
    if (group->state == GROUP_OPEN && add->opens && add->accepted) check_rules(flow, group, add);
    if (group->own_deadline)
        flow_forget(flow, group_sweep_topic(group->name)); /* it may be due before all others */
    if (group->state != GROUP_OPEN)
        flow_forget(flow, topic);
    else if (add->accepted)
        flow_remember(flow, topic, group->item);
    const struct add *last = add->more_count ? &add->more[add->more_count - 1] : add;
    if (last->completes) flow_wake(flow, group_topic(group));
    if (add->status) return; /* there are no rules any more */
    tell(flow, group, add, add->more_count);
    for (size_t i = 0; i < add->more_count; i++) tell(flow, group, &add->more[i], add->more_count - 1 - i);
}

/* What was sent, as flow_given and its like read it now. `where`: which one of several it is. */
static void take_event(struct flow *flow, struct add *add, struct slice id, const char *where)
{
    *add = (struct add){.has_id = id.data,
                        .id = id.data ? id : flow_new_id(flow),
                        .kind = flow_given(flow, ADD_KIND) ? flow_text(flow, ADD_KIND) : SLICE("")};
    add->amount = flow_text(flow, ADD_AMOUNT);
    if (add->amount.data && raw_kind(add->amount) != JSON_NUMBER)
        task_refuse(flow, 400, "bad-request", "%samount must be a number.", where);
    /* A time that is over is taken, too: who repeats the call gets the same answer. */
    if (flow_given(flow, ADD_DEADLINE) &&
        (!moment_parse(flow_text(flow, ADD_DEADLINE), &add->deadline_ms) || add->deadline_ms <= 0 ||
         add->deadline_ms > flow->now_ms + GROUP_LONG_MS))
        task_refuse(flow, 400, "bad-request",
                    "%sdeadline must be a time like 2026-11-15T03:42:06Z, within ten years.", where);
    add->event = flow_compose(flow, "%[,'kind':%S%]%[,'data':%J%]%[,'amount':%J%],'time':%S",
                              flow_text(flow, ADD_KIND), flow_text(flow, ADD_DATA), add->amount,
                              moment_text(flow->arena, flow->now_ms));
    struct slice item = flow_compose(flow, "{'id':%S%A}", add->id, add->event);
    add->bytes = (int64_t)(item_bytes(flow->arena, item) + add->id.len);
}

void group_add(struct flow *flow)
{
    struct group group = group_named(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    struct add add;
    take_event(flow, &add, flow_text_or(flow, ADD_ID, flow_text(flow, ADD_TOKEN)), "");
    add_event(flow, &group, &add, NULL, 0, false);
    flow_answer(flow, add.status, "%A", add.answer);
}

/* ---- many ---- */

enum { MANY_EVENTS = GROUP_NAME + 1, MANY_TOKEN };

const struct field group_many_fields[] = {
    FIELD_GROUP_NAME,
    [MANY_EVENTS] =
        {"events", IN_BODY, FIELD_LIST, true,
         .help = "1 to 1000 objects of key, id, kind, data, amount and deadline; those of one group are "
                 "added in their order, and written together where they can be"},
    [MANY_TOKEN] = FIELD_REPEATS("the beginning of the ids of events without one"),
};

void group_add_many(struct flow *flow)
{
    size_t count;
    struct slice name = flow_text(flow, GROUP_NAME);
    struct slice token = flow_text(flow, MANY_TOKEN);
    struct field_value **events = flow_elements(flow, MANY_EVENTS, LIMIT_BATCH_EVENTS,
                                                FIELDS(group_add_fields), &count);
    struct add *all = arena_array(flow->arena, struct add, count);
    struct add *adds = arena_array(flow->arena, struct add, count); /* those of one group side by side */
    size_t *places = arena_array(flow->arena, size_t, count);       /* of each among all */
    bool *is_taken = arena_zero(flow->arena, count), has_new = false;
    for (size_t i = 0; i < count; i++) {
        flow_with(flow, events[i]);
        struct slice id = flow_given(flow, ADD_ID) ? flow_text(flow, ADD_ID)
                          : token.data             ? flow_compose(flow, "%r#%d", token, (int64_t)i)
                                                   : SLICE_NONE;
        take_event(flow, &all[i], id, arena_printf(flow->arena, "events[%zu]: ", i).data);
    }
    for (size_t first = 0; first < count; first++) {
        if (is_taken[first]) continue;
        struct group group = group_named(flow, name, events[first][GROUP_KEY].text);
        size_t of_group = 0;
        bool is_written = false;
        for (size_t i = first; i < count; i++) {
            if (!slice_equal(events[i][GROUP_KEY].text, group.key)) continue;
            adds[of_group] = all[i];
            places[of_group++] = i;
            is_taken[i] = true;
        }
        for (size_t at = 0; at < of_group; at += 1 + adds[at].more_count) {
            flow_with(flow, events[places[at]]);
            add_event(flow, &group, &adds[at], adds + at + 1, of_group - at - 1, is_written);
            is_written = adds[at].accepted && group.state == GROUP_OPEN;
        }
        for (size_t i = 0; i < of_group; i++) all[places[i]] = adds[i];
    }
    buf_text(flow->body, "{\"events\":[");
    for (size_t i = 0; i < count; i++) {
        flow_put(flow, flow->body, "%,%A", all[i].answer);
        has_new |= all[i].status == 201;
    }
    buf_text(flow->body, "]}");
    flow_finish(flow, has_new ? 201 : 200);
}
