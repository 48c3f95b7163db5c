/* Groups: events that belong together are collected until they are complete, which happens once.
 *
 * Table PREFIXgroup-rules: hash key `name` (S); `size` (N), `needs` (SS): kinds, `when` (S), `values` (M):
 *   when a group is complete; `folds` (M): what is folded from the events' data (group_fold.c), each a map of
 *   how and what, {"sum": "amount", "of": "payment"}; `quiet`, `deadline`, `keep` (N, ms); `late` (S): discard,
 *   append or new;
 *   `then` (S); `version` (N) grows with every change, `applied` (N): the version that all open groups have
 *   got; `again` (N, ms): when they get it once more; `forgotten` (N, ms): there are no rules any more.
 * Table PREFIXgroups, the heads: hash key `group` (S): "NAME/KEY", the name percent-encoded; range key
 *   `generation` (N), from 1 on; `name`, `key` (S); `state` (S): OPEN, COMPLETE, DELETING; `count` (N):
 *   events; `kinds` (SS): of those; `sum` (N): of their amounts; `fold` (M): the folded values by their
 *   names; `opened`, `touched` (N, ms): of the first and of the last event; the rules, and in `rules` (N) their
 *   version; `fixed` (BOOL): its first event brought its deadline, which other rules do not change;
 *   `events` (L), `ids` (SS), `bytes` (N): events that stand in the head; `spilled` (S): the hash key of the
 *   others, which have items of their own; `redo` (M): the last of those, whose item may still be missing;
 *   `last` (S): the id of the last event; `completed` (S, ISO 8601), `why` (S): rule, quiet, deadline,
 *   rules: they were changed, or call; `by` (S): the id of the event that completed it, or of that call, or why.
 *   Index open: hash `open` (S) "NAME/0", "NAME/1"... (slots.h) while it is OPEN, "NAME/0/complete" when COMPLETE,
 *     range `since` (S, when it was opened, and a little more).
 *   Index due: hash `slot` (S) like `open`, range `due` (N, ms): when the sweep looks at it. Only what becomes due by
 *     itself is there: by quiet, deadline or keep, when it is being deleted, or to heal it (below).
 * Table PREFIXgroup-events: hash key `part` (S): "NAME/KEY/GENERATION/" and some digits, range key `id` (S);
 *   `kind`, `data`, `amount`, `time`, `late` (BOOL). Item "-" of "NAME": how many slots the indexes have for the name
 *   (slots.h).
 * Table PREFIXtokens (tokens.h), kind "group": the `generation` that an event's id belongs to, where late
 *   events open a new one.
 *
 * One conditional write to the head adds an event, counts it, and completes the group where its rule holds then: so
 * an OPEN group is not complete, and a group of ten has ten. A condition of the user's is for the service to evaluate:
 * where a rule has one, an event is added on the condition that the rule does not hold yet, and whoever sees it hold
 * completes the group by a second write; if nobody comes to it, the next event, a look at the group or the sweep does.
 * Small events stand in the head; when that would exceed one write unit, the further ones get items (group_add.c).
 * Each of these writes is on the condition that the head has the rules by which it was read: how changed rules get
 * there is told in group_change.c.
 *
 * A process remembers the rules and the heads that it has written to last. So most events are written without a read;
 * where the memory is wrong the write is refused, and the head that comes back with the refusal is the right one.
 */
#include "pattern/group.h"

#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/names.h"
#include "pattern/rows.h"

#define LOOK_AGAIN_MS                                                                                        \
    60000 /* the first look at an OPEN group that is not due; then at twice its age, and so on */
#define MOMENT_BYTES (sizeof "2026-11-15T03:42:06.250Z" - 1)

const struct flow_table group_rules_table = {"group-rules", "name", NULL};

const struct flow_table group_table = {
    "groups", "group generation:N; open open since key; due slot due:N name key; stream", NULL};

const struct flow_table group_events_table = {"group-events", "part id", NULL};

/* ---- the head ---- */

struct group group_named(struct flow *flow, struct slice name, struct slice key)
{
    struct slice id = flow_compose(flow, "%r/%r", rest_encoded(flow->arena, name), key);
    return (struct group){.name = name, .key = key, .id = id};
}

static enum group_state state_of(struct slice text)
{
#define X(name)                                                                                              \
    if (slice_equal(text, SLICE(#name))) return GROUP_##name;
    GROUP_STATES(X)
#undef X
    return GROUP_NONE;
}

void group_read(struct flow *flow, struct group *group, struct slice item)
{
    struct arena *arena = flow->arena;
    *group = (struct group){.name = group->name,
                            .key = group->key,
                            .id = group->id,
                            .item = item,
                            .state = state_of(item_text(arena, item, "state")),
                            .late = item_says(arena, item, "late", "append") ? LATE_APPEND
                                    : item_says(arena, item, "late", "new")  ? LATE_NEW
                                                                             : LATE_DISCARD,
                            .generation = item_int(arena, item, "generation", 0),
                            .count = item_int(arena, item, "count", 0),
                            .bytes = item_int(arena, item, "bytes", 0),
                            .opened_ms = item_int(arena, item, "opened", 0),
                            .touched_ms = item_int(arena, item, "touched", 0),
                            .quiet_ms = item_int(arena, item, "quiet", 0),
                            .deadline_ms = item_int(arena, item, "deadline", 0),
                            .keep_ms = item_int(arena, item, "keep", 0),
                            .rules = item_int(arena, item, "rules", 0),
                            .spilled = item_text(arena, item, "spilled"),
                            .redo = item_content(arena, item, "redo"),
                            .own_deadline = item_has(arena, item, "fixed"),
                            .has_when = item_has(arena, item, "when"),
                            .folds = item_content(arena, item, "folds")};
}

void group_load(struct flow *flow, struct group *group, int64_t generation)
{
    task_query(flow, "#group = :group%[%? and #generation = :generation%]", QUERY_LAST READ_FRESH,
               "':group':%S%[%?,':generation':%N%]", &group_table, generation != 0, group->id,
               generation != 0, generation);
    struct slice item = raw_first(flow->arena, flow_items(flow)), slot = item_text(flow->arena, item, "slot");
    group_read(flow, group, item);
    if (!slot.data || slice_contains(slot, SLICE("/"))) return;
    task_refuse(flow, 409, "older-layout",
                "The group '%.*s' was made by an older version, whose groups this one does "
                "not know: delete the tables of groups.",
                SLICE_ARG(group->id));
}

uint64_t group_sweep_topic(struct slice name)
{
    return flow_topic("group sweep", name, SLICE(""));
}

struct slice group_rules_item(struct flow *flow, struct slice name)
{
    return task_get(flow, &group_rules_table, "{'name':%S}", name);
}

struct slice group_rules_read(struct flow *flow, struct slice name)
{
    struct slice rules = group_rules_item(flow, name);
    if (item_has(flow->arena, rules, "forgotten")) rules = SLICE_NONE;
    group_rules_remember(flow, name, rules);
    return rules;
}

void group_rules_remember(struct flow *flow, struct slice name, struct slice rules)
{
    flow_remember(flow, flow_topic("group rules", name, SLICE("")), rules);
}

struct slice group_rules_known(struct flow *flow, struct slice name)
{
    return flow_recall(flow, flow_topic("group rules", name, SLICE("")));
}

struct slice group_rules_guess(struct flow *flow, struct slice name)
{
    struct slice rules = group_rules_known(flow, name);
    if (rules.data) return rules;
    task_call(flow, "GetItem", "{'TableName':%T,'Key':{'name':%S}}", &group_rules_table, name);
    return item_has(flow->arena, flow_item(flow), "forgotten") ? SLICE_NONE : flow_item(flow);
}

struct slice group_key(struct flow *flow, const struct group *group, int64_t generation)
{
    return flow_compose(flow, "{'group':%S,'generation':%N}", group->id, generation);
}

uint64_t group_topic(const struct group *group)
{
    return flow_topic("group", group->name, group->key);
}

struct slice group_slot(struct flow *flow, const struct group *group)
{
    struct slots slots = group_slots(flow, group->name);
    return group_slot_at(flow, group->name, slots_place(flow, &slots, group->id));
}

struct slice group_slot_at(struct flow *flow, struct slice name, int64_t slot)
{
    return flow_compose(flow, "%r/%d", rest_encoded(flow->arena, name), slot);
}

struct slots group_slots(struct flow *flow, struct slice name)
{
    return (struct slots){&group_events_table,
                          flow_compose(flow, "{'part':%S,'id':{'S':'-'}}", rest_encoded(flow->arena, name))};
}

/* When it is over by quiet or deadline, whichever comes first; INT64_MAX: never. */
static int64_t over_ms(const struct flow *flow, const struct group *group)
{
    int64_t quiet_ms = group->quiet_ms ? group->touched_ms + group->quiet_ms : INT64_MAX;
    int64_t deadline_ms = group->deadline_ms ? group->opened_ms + group->deadline_ms : INT64_MAX;
    int64_t first_ms = quiet_ms < deadline_ms ? quiet_ms : deadline_ms;
    return first_ms == INT64_MAX ? first_ms : first_ms + flow->world->skew_ms;
}

int64_t group_due_ms(const struct flow *flow, const struct group *group)
{
    int64_t age_ms = flow->now_ms - group->opened_ms, end_ms = over_ms(flow, group);
    if (!group->has_when) return end_ms; /* it is completed by its last event, which needs no healing */
    int64_t look_ms = flow->now_ms + (age_ms > LOOK_AGAIN_MS ? age_ms : LOOK_AGAIN_MS);
    return end_ms < look_ms ? end_ms : look_ms;
}

const char *group_is_over(const struct flow *flow, const struct group *group)
{
    if (over_ms(flow, group) > flow->now_ms) return NULL;
    bool by_deadline = group->deadline_ms && (!group->quiet_ms || group->opened_ms + group->deadline_ms <
                                                                      group->touched_ms + group->quiet_ms);
    return by_deadline ? "deadline" : "quiet";
}

_Noreturn void group_refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-group", "There is no group '%.*s' of '%.*s'.",
                SLICE_ARG(flow_text(flow, GROUP_KEY)), SLICE_ARG(flow_text(flow, GROUP_NAME)));
}

/* ---- GET ---- */

enum { GET_GENERATION = GROUP_KEY + 1, GET_WAIT, GET_LIMIT, GET_AFTER };

static const struct field get_fields[] = {
    FIELD_GROUP_NAME,
    FIELD_GROUP_KEY,
    [GET_GENERATION] = {"generation", IN_QUERY, FIELD_INT, .min = 1, .max = INT32_MAX,
                        .help = "which generation (default: the latest)"},
    [GET_WAIT] = FIELD_WAIT(IN_QUERY, "wait so long until it is complete"),
    [GET_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                   .help = "of events with items of their own, at most so many (default: 100)"},
    [GET_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 1024, .help = "the \"next\" of the page before"},
};

/* An event without the keys of its item. */
static void put_event(struct flow *flow, struct slice id, struct slice event)
{
    flow_put(flow, flow->body, "%,{'id':%s", id);
    plain_put_members(flow->body, flow->arena, event, "kind data amount time late");
    buf_byte(flow->body, '}');
}

/* The last of the further events may have no item yet: then it is told where its item would stand. */
static void put_further_events(struct flow *flow, const struct group *group, struct slice items,
                               bool is_last_page)
{
    struct slice last = item_text(flow->arena, group->redo, "id"), item;
    bool is_told = flow_given(flow, GET_AFTER) && slice_compare(last, flow_text(flow, GET_AFTER)) <= 0;
    raw_each (flow->arena, items, &item) {
        struct slice id = item_text(flow->arena, item, "id");
        if (!is_told && slice_compare(last, id) < 0) put_event(flow, last, group->redo);
        is_told |= slice_compare(last, id) <= 0;
        put_event(flow, id, item);
    }
    if (!is_told && is_last_page) put_event(flow, last, group->redo);
}

static void tell_group(struct flow *flow, const struct group *group)
{
    struct arena *arena = flow->arena;
    struct slice items = SLICE_NONE, last = SLICE_NONE, head = group->item, element;
    if (group->spilled.data) {
        task_query(flow, "#part = :part",
                   ",'Limit':%d" READ_FRESH "%[,'ExclusiveStartKey':{'part':%S,'id':%S}%]", "':part':%S",
                   &group_events_table, flow_int_or(flow, GET_LIMIT, LIST_USUAL), group->spilled,
                   flow_text(flow, GET_AFTER), group->spilled);
        items = flow_items(flow);
        last = flow_last_key(flow);
    }
    flow_put(flow, flow->body, "{'name':%s,'key':%s,'generation':%d,'state':%s,'count':%d", group->name,
             group->key, group->generation, item_text(arena, head, "state"), group->count);
    plain_put_members(flow->body, arena, head, group->folds.data ? "kinds sum fold" : "kinds sum");
    flow_put(flow, flow->body, ",'opened':%s,'touched':%s%[,'completed':%s,'why':%s%],'events':[",
             moment_text(arena, group->opened_ms), moment_text(arena, group->touched_ms),
             item_text(arena, head, "completed"), item_text(arena, head, "why"));
    if (!flow_given(flow, GET_AFTER)) /* the first page has those of the head */
        raw_each (arena, item_content(arena, head, "events"), &element) {
            struct slice event = raw_member(arena, element, "M");
            put_event(flow, item_text(arena, event, "id"), event);
        }
    if (group->spilled.data) put_further_events(flow, group, items, !last.data);
    page_finish(flow, item_text(arena, last, "id"));
}

/* Waits until it is complete, if only because its time is over: then whoever looks completes it. */
static void get_group(struct flow *flow)
{
    struct group group = group_named(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    int64_t until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    uint64_t kin = flow_topic("group generation", group.id,
                              flow_compose(flow, "%d", flow_int(flow, GET_GENERATION)));
    for (;;) {
        flow_look(flow);
        group_load(flow, &group, flow_int(flow, GET_GENERATION));
        const char *over = group.state == GROUP_OPEN ? group_is_over(flow, &group) : NULL;
        if (group.state == GROUP_OPEN && (over || group_may_be_complete(flow, group.item)))
            group_complete(flow, &group, over);
        if (group.state == GROUP_DELETING || (!group.item.data && flow->now_ms >= until_ms))
            group_refuse_unknown(flow);
        if (group.state == GROUP_COMPLETE || flow->now_ms >= until_ms) break;
        task_watch_as(flow, group_topic(&group), flow_item_thing(&group_table, group.id, SLICE("")), kin,
                      group.state == GROUP_OPEN ? over_ms(flow, &group) : INT64_MAX, until_ms);
    }
    tell_group(flow, &group);
}

/* ---- lists ---- */

enum { LIST_STATE = GROUP_NAME + 1, LIST_OLDER, LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    FIELD_GROUP_NAME,
    [LIST_STATE] =
        {"state", IN_QUERY, FIELD_CHOICE, .words = "open|complete",
         .help = "open: the groups that are not complete, the oldest first; complete: those that are, the "
                 "newest first; without it, the rules"},
    [LIST_OLDER] = {"older", IN_QUERY, FIELD_DURATION, .max = GROUP_LONG_MS,
                    .help = "only those opened before that"},
    [LIST_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [LIST_AFTER] = FIELD_AFTER,
};

static void list_groups(struct flow *flow)
{
    if (!flow_given(flow, LIST_STATE)) {
        group_rules(flow);
        return;
    }
    struct slots slots = group_slots(flow, flow_text(flow, GROUP_NAME));
    int64_t slot_count = slots_read(flow, &slots);
    bool is_complete = flow_int(flow, LIST_STATE) == 1;
    struct slice before = flow_compose(flow, "%r~",
                                       moment_text(flow->arena, flow->now_ms - flow_int(flow, LIST_OLDER)));
    struct listing *list = listing_new(flow, flow_int_or(flow, LIST_LIMIT, LIST_USUAL), is_complete);
    for (int64_t slot = 0; slot < slot_count; slot++) {
        task_query(flow, "#open = :open and #since between :from and :to", ",'IndexName':'open',%A",
                   "':open':{'S':'%r%r'},%A", &group_table, listing_members(flow, list),
                   group_slot_at(flow, flow_text(flow, GROUP_NAME), slot),
                   is_complete ? SLICE("/complete") : SLICE(""),
                   listing_range(flow, list, flow_text(flow, LIST_AFTER), before));
        listing_take(flow, list, "since", flow_text(flow, LIST_AFTER));
    }
    buf_text(flow->body, "{\"groups\":[");
    for (int64_t i = 0; i < list->count; i++) {
        const struct listing_entry *entry = &list->entries[i];
        flow_put(flow, flow->body, "%,{'key':%s,'generation':%d,'opened':%s}",
                 item_text(flow->arena, entry->item, "key"),
                 item_int(flow->arena, entry->item, "generation", 0),
                 (struct slice){entry->order.data, MOMENT_BYTES});
    }
    listing_finish(flow, list);
}

/* ---- rows ---- */

/* clang-format off */
#define RULES "{'name':'clicks','complete':{'size':10},'late':'discard'}"
const struct flow_row group_rows[] = {
    {"POST", "/v1/groups/{name}/{key}", group_add, "Adds an event; one of them completes the group.",
     FIELDS(group_add_fields), "{'accepted':true,'generation':1,'count':10,'state':'COMPLETE','completed':true}",
     "group add data?"},
    {"GET", "/v1/groups/{name}/{key}", get_group, "A group and its events, perhaps after waiting for its completion.",
     FIELDS(get_fields), "{'name':'clicks','key':'session-7','generation':1,'state':'OPEN','count':1,"
     "'opened':'2026-11-15T03:42:06.250Z','touched':'2026-11-15T03:42:06.250Z','events':[{'id':'a','data':{'x':1},"
     "'time':'2026-11-15T03:42:06.250Z'}]}", "group get"},
    {"POST", "/v1/groups/{name}/{key}/complete", group_complete_now, "Completes a group now, whatever its rules say.",
     FIELDS(group_complete_fields), "{'generation':1,'count':7,'state':'COMPLETE','completed':true,'why':'call'}",
     "group complete"},
    {"DELETE", "/v1/groups/{name}/{key}", group_delete, "Deletes a group, all generations of it.",
     FIELDS(group_only_fields), "{'deleted':1}", "group rm"},
    {"POST", "/v1/groups/{name}", group_add_many, "Adds many events, to one group or to several.",
     FIELDS(group_many_fields),
     "{'events':[{'accepted':true,'generation':1,'count':1,'state':'OPEN','completed':false}]}", NULL},
    {"PUT", "/v1/groups/{name}", group_put, "Sets when groups of this name are complete, also those that are open.",
     FIELDS(group_put_fields), RULES, "group put"},
    {"GET", "/v1/groups/{name}", list_groups, "The rules; or the groups of a state.",
     FIELDS(list_fields), "{'groups':[{'key':'session-7','generation':1,'opened':'2026-11-15T03:42:06.250Z'}]}",
     "group show -> groups"},
    {"GET", "/v1/groups", group_list_rules, "The kinds of groups, by name, and their rules.", FIELDS(names_fields),
     "{'groups':[" RULES "]}", "group list -> groups"},
    {"DELETE", "/v1/groups/{name}", group_forget, "Forgets the rules; open groups keep theirs.",
     FIELDS(group_name_fields), "{'deleted':true}", "group forget"},
};
/* clang-format on */
ROW_COUNT(group);
