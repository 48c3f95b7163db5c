/* Groups: events that belong together are collected until they are complete, which happens once.
 *
 * Table PREFIXgroup-rules: hash key `name` (S); `size` (N), `needs` (SS): kinds, `when` (S), `values` (M):
 *   when a group is complete; `quiet`, `deadline`, `keep` (N, ms); `late` (S): discard, append or new;
 *   `then` (S); `version` (N) grows with every change, `applied` (N): the version that all open groups have
 *   got.
 * Table PREFIXgroups, the heads: hash key `group` (S): "NAME/KEY", the name percent-encoded; range key
 *   `generation` (N), from 1 on; `name`, `key` (S); `state` (S): OPEN, COMPLETE, DELETING; `count` (N):
 *   events; `kinds` (SS): of those; `sum` (N): of their amounts; `opened`, `touched` (N, ms): of the first
 *   and of the last event; the rules, and in `rules` (N) their version; `fixed` (BOOL): its first event
 *   brought its deadline, which other rules do not change; `events` (L), `ids` (SS), `bytes` (N): events
 *   that stand in the head; `spilled` (BOOL): there are others, with items of their own; `last` (S): the id
 *   of the last event; `completed` (S, ISO 8601), `why` (S): rule, quiet, deadline, or rules: they were
 *   changed; `by` (S): the id of the event that completed it, or why.
 *   Index open: hash `open` (S) "NAME/0" to "NAME/3" while it is OPEN, range `since` (S, when it was opened,
 *     and a little more).
 *   Index due: hash `slot` (S) "0" to "3", range `due` (N, ms): when the sweep looks at it.
 * Table PREFIXgroup-events: hash key `part` (S): "NAME/KEY/GENERATION", range key `id` (S); `kind`, `data`,
 *   `amount`, `time`, `late` (BOOL).
 * Table PREFIXtokens (tokens.h), kind "group": the `generation` that an event's id came into, where late
 *   events open a new one.
 *
 * An event is added by one write that also counts it, on the condition that the group is OPEN and its rule
 * does not hold yet: a group of ten has ten. Small events stand in the head; when that would exceed one write
 * unit, the further ones get items of their own, in one transaction with the head. Whoever sees the rule hold
 * completes the group by one conditional write; if nobody comes to it, the next event, a look at the group or
 * the sweep does. Each of these writes is on the condition that the head has the rules by which it was read:
 * how changed rules get there is told in group_change.c. */
#include "pattern/group.h"

#include "base/hash.h"
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/rows.h"

#define LOOK_AGAIN_MS                                                                                        \
    60000 /* the first look at an OPEN group that is not due; then at twice its age, and so on */
#define WAIT_MOST_MS 60000
#define LIST_MOST    1000
#define LIST_USUAL   100
#define MOMENT_BYTES (sizeof "2026-11-15T03:42:06.250Z" - 1)

const struct flow_table group_rules_table = {
    "group-rules",
    "'KeySchema':[{'AttributeName':'name','KeyType':'HASH'}],"
    "'AttributeDefinitions':[{'AttributeName':'name','AttributeType':'S'}]",
    NULL};

const struct flow_table group_table = {
    "groups",
    "'KeySchema':[{'AttributeName':'group','KeyType':'HASH'},"
    "{'AttributeName':'generation','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'group','AttributeType':'S'},{'AttributeName':'generation',"
    "'AttributeType':'N'},{'AttributeName':'open','AttributeType':'S'},"
    "{'AttributeName':'since','AttributeType':'S'},{'AttributeName':'slot','AttributeType':'S'},"
    "{'AttributeName':'due','AttributeType':'N'}],"
    "'GlobalSecondaryIndexes':[{'IndexName':'open','KeySchema':[{'AttributeName':'open','KeyType':'HASH'},"
    "{'AttributeName':'since','KeyType':'RANGE'}],'Projection':{'ProjectionType':'INCLUDE',"
    "'NonKeyAttributes':['key']}},{'IndexName':'due',"
    "'KeySchema':[{'AttributeName':'slot','KeyType':'HASH'},{'AttributeName':'due','KeyType':'RANGE'}],"
    "'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['name','key']}}]," FLOW_STREAM,
    NULL};

const struct flow_table group_events_table = {
    "group-events",
    "'KeySchema':[{'AttributeName':'part','KeyType':'HASH'},{'AttributeName':'id','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'part','AttributeType':'S'},{'AttributeName':'id',"
    "'AttributeType':'S'}]",
    NULL};

/* ---- the head ---- */

struct group_work *group_work_new(struct flow *flow, struct slice name, struct slice key)
{
    struct group_work *work = flow->state = arena_new(flow->arena, struct group_work);
    struct buf encoded = {0};
    rest_encode(&encoded, name);
    work->name = name;
    work->key = key;
    work->id = arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(buf_view(&encoded)), SLICE_ARG(key));
    work->me = flow_new_id(flow);
    buf_free(&encoded);
    return work;
}

static enum group_state state_of(struct slice text)
{
#define X(name)                                                                                              \
    if (slice_equal(text, SLICE(#name))) return GROUP_##name;
    GROUP_STATES(X)
#undef X
    return GROUP_NONE;
}

void group_read(struct flow *flow, struct slice item, struct group *group)
{
    struct arena *arena = flow->arena;
    *group = (struct group){.item = item,
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
                            .spilled = item_has(arena, item, "spilled"),
                            .own_deadline = item_has(arena, item, "fixed")};
}

struct slice group_key(struct flow *flow, int64_t generation)
{
    const struct group_work *work = flow->state;
    return flow_compose(flow, "{'group':%S,'generation':%N}", work->id, generation);
}

struct slice group_part(struct flow *flow, int64_t generation)
{
    const struct group_work *work = flow->state;
    return arena_printf(flow->arena, "%.*s/%lld", SLICE_ARG(work->id), (long long)generation);
}

static void loaded(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct raw_look look;
    struct slice item = SLICE_NONE;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    if (!raw_look_next(&look, NULL, &item)) item = SLICE_NONE;
    group_read(flow, item, &work->group);
    work->loaded(flow);
}

void group_load(struct flow *flow, int64_t generation, flow_step *then)
{
    struct group_work *work = flow->state;
    work->loaded = then;
    flow_call(flow, loaded, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#group = :group%r',%#,"
              "'ExpressionAttributeValues':{':group':%S%A},'ScanIndexForward':false,'Limit':1,"
              "'ConsistentRead':true}",
              &group_table, generation ? SLICE(" and #generation = :generation") : SLICE(""), work->id,
              generation ? flow_compose(flow, ",':generation':%N", generation) : SLICE(""));
}

uint64_t group_topic(const struct group_work *work)
{
    return flow_topic("group", work->name, work->key);
}

struct slice group_slot(struct flow *flow)
{
    const struct group_work *work = flow->state;
    return arena_printf(flow->arena, "%u", (unsigned)(hash_bytes(work->id) % GROUP_SLOTS));
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

void group_refuse_unknown(struct flow *flow)
{
    flow_refuse(flow, 404, "no-such-group", "There is no group '%.*s' of '%.*s'.",
                SLICE_ARG(flow_text(flow, GROUP_KEY)), SLICE_ARG(flow_text(flow, GROUP_NAME)));
}

/* ---- GET ---- */

enum { GET_GENERATION = GROUP_KEY + 1, GET_WAIT, GET_LIMIT, GET_AFTER };

static const struct field get_fields[] = {
    FIELD_GROUP_NAME,
    FIELD_GROUP_KEY,
    [GET_GENERATION] = {"generation", IN_QUERY, FIELD_INT, .min = 1, .max = INT32_MAX,
                        .help = "which generation (default: the latest)"},
    [GET_WAIT] = {"wait", IN_QUERY, FIELD_DURATION, .max = WAIT_MOST_MS,
                  .help = "wait so long until it is complete"},
    [GET_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                   .help = "of events with items of their own, at most so many (default: 100)"},
    [GET_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 1024, .help = "the \"next\" of the page before"},
};

struct get {
    int64_t until_ms;
    bool healed;
};

static flow_step get_loaded, get_healed, get_events;

static void get_ask(struct flow *flow)
{
    group_load(flow, flow_int(flow, GET_GENERATION), get_loaded);
}

static void get_look(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct get *get = work->own;
    get->healed = false;
    flow_look(flow);
    get_ask(flow);
}

static void get_begin(struct flow *flow)
{
    struct group_work *work = group_work_new(flow, flow_text(flow, GROUP_NAME), flow_text(flow, GROUP_KEY));
    struct get *get = work->own = arena_new(flow->arena, struct get);
    get->until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    get_look(flow);
}

/* The end of what the answer has of the head. */
static void put_head(struct flow *flow)
{
    const struct group_work *work = flow->state;
    const struct group *group = &work->group;
    struct arena *arena = flow->arena;
    struct slice why = item_text(arena, group->item, "why"), sum = item_text(arena, group->item, "sum");
    buf_slice(flow->body, flow_compose(flow, "{'name':%s,'key':%s,'generation':%d,'state':%s,'count':%d",
                                       work->name, work->key, group->generation,
                                       item_text(arena, group->item, "state"), group->count));
    if (item_has(arena, group->item, "kinds"))
        buf_slice(flow->body, flow_compose(flow, ",'kinds':%P", item_attribute(arena, group->item, "kinds")));
    if (sum.data) buf_slice(flow->body, flow_compose(flow, ",'sum':%r", sum));
    buf_slice(flow->body,
              flow_compose(flow, ",'opened':%s,'touched':%s", moment_text(arena, group->opened_ms),
                           moment_text(arena, group->touched_ms)));
    if (why.data)
        buf_slice(flow->body, flow_compose(flow, ",'completed':%s,'why':%s",
                                           item_text(arena, group->item, "completed"), why));
    buf_text(flow->body, ",\"events\":[");
}

/* An event without the keys of its item. */
static void put_event(struct flow *flow, struct slice id, struct slice event, bool first)
{
    static const char *const members[] = {"kind", "data", "amount", "time", "late"};
    buf_slice(flow->body, flow_compose(flow, "%r{'id':%s", first ? SLICE("") : SLICE(","), id));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        struct slice value = item_attribute(flow->arena, event, members[i]);
        if (value.data) buf_slice(flow->body, flow_compose(flow, ",%s:%P", slice_of(members[i]), value));
    }
    buf_byte(flow->body, '}');
}

static bool put_own_events(struct flow *flow)
{
    const struct group_work *work = flow->state;
    struct raw_look look;
    struct slice element;
    bool first = true;
    if (flow_given(flow, GET_AFTER)) return true; /* the first page had them */
    raw_look_begin(&look, flow->arena, item_content(flow->arena, work->group.item, "events"));
    while (raw_look_next(&look, NULL, &element)) {
        struct slice event = raw_member(flow->arena, element, "M");
        put_event(flow, item_text(flow->arena, event, "id"), event, first);
        first = false;
    }
    return first;
}

static void get_tell(struct flow *flow)
{
    const struct group_work *work = flow->state;
    struct slice part = group_part(flow, work->group.generation);
    if (!work->group.spilled) {
        put_head(flow);
        put_own_events(flow);
        buf_text(flow->body, "]}");
        flow_finish(flow, 200);
        return;
    }
    flow_call(flow, get_events, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#part = "
              ":part',%#,'ExpressionAttributeValues':{':part':%S},"
              "'Limit':%d,'ConsistentRead':true%r}",
              &group_events_table, part, flow_int_or(flow, GET_LIMIT, LIST_USUAL),
              flow_given(flow, GET_AFTER) ? flow_compose(flow, ",'ExclusiveStartKey':{'part':%S,'id':%S}",
                                                         part, flow_text(flow, GET_AFTER))
                                          : SLICE(""));
}

static void get_events(struct flow *flow)
{
    struct raw_look look;
    struct slice item, last = flow_last_key(flow);
    put_head(flow);
    bool first = put_own_events(flow);
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (raw_look_next(&look, NULL, &item)) {
        put_event(flow, item_text(flow->arena, item, "id"), item, first);
        first = false;
    }
    buf_text(flow->body, "]");
    if (last.data)
        buf_slice(flow->body, flow_compose(flow, ",'next':%s", item_text(flow->arena, last, "id")));
    buf_text(flow->body, "}");
    flow_finish(flow, 200);
}

/* Until it is complete, if only because its time is over: then whoever looks completes it. */
static void get_wait(struct flow *flow)
{
    const struct group_work *work = flow->state;
    const struct get *get = work->own;
    flow_watch(flow, group_topic(work), flow_item_thing(&group_table, work->id, SLICE("")), get->until_ms,
               get_look);
    if (work->group.state == GROUP_OPEN && !get->healed) flow_watch_change(flow, over_ms(flow, &work->group));
}

static void get_loaded(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct get *get = work->own;
    const struct group *group = &work->group;
    bool is_open = group->state == GROUP_OPEN;
    const char *over = is_open ? group_is_over(flow, group) : NULL;
    if (group->state == GROUP_DELETING || (!group->item.data && flow->now_ms >= get->until_ms))
        group_refuse_unknown(flow);
    else if (is_open && !get->healed && (over || group_may_be_complete(flow, group->item)))
        group_complete(flow, over, get_healed);
    else if (group->state != GROUP_COMPLETE && flow->now_ms < get->until_ms)
        get_wait(flow);
    else
        get_tell(flow);
}

static void get_healed(struct flow *flow)
{
    struct group_work *work = flow->state;
    struct get *get = work->own;
    get->healed = true;
    get_ask(flow);
}

/* ---- the open ones ---- */

enum { LIST_STATE = GROUP_NAME + 1, LIST_OLDER, LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    FIELD_GROUP_NAME,
    [LIST_STATE] = {"state", IN_QUERY, FIELD_CHOICE, .words = "open",
                    .help =
                        "open: the groups that are not complete, the oldest first; without it, the rules"},
    [LIST_OLDER] = {"older", IN_QUERY, FIELD_DURATION, .max = GROUP_LONG_MS,
                    .help = "only those opened before that"},
    [LIST_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                    .help = "at most so many (default: 100)"},
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .help = "the \"next\" of the page before"},
};

struct list {
    struct listing *open; /* of all slots, the oldest first */
    struct slice encoded; /* the name, as the index has it */
};

static flow_step list_slot, list_taken;

static void list_begin(struct flow *flow)
{
    if (!flow_given(flow, LIST_STATE)) {
        group_rules(flow);
        return;
    }
    struct list *list = arena_new(flow->arena, struct list);
    struct slice id = group_work_new(flow, flow_text(flow, GROUP_NAME), SLICE(""))->id;
    list->encoded = (struct slice){id.data, id.len - 1};
    list->open = listing_new(flow, flow_int_or(flow, LIST_LIMIT, LIST_USUAL));
    flow->state = list;
    list_slot(flow);
}

static void list_slot(struct flow *flow)
{
    const struct list *list = flow->state;
    struct slice before = moment_text(flow->arena, flow->now_ms - flow_int(flow, LIST_OLDER));
    struct slice listed = arena_printf(flow->arena, "%.*s/%u", SLICE_ARG(list->encoded), list->open->slot);
    flow_call(
        flow, list_taken, "Query",
        "{'TableName':%T,'IndexName':'open','KeyConditionExpression':'#open = :open and #since between "
        ":after and :before',%#,'ExpressionAttributeValues':{':open':%S,':after':%S,':before':{'S':'%r~'}},"
        "'Limit':%d}",
        &group_table, listed, flow_given(flow, LIST_AFTER) ? flow_text(flow, LIST_AFTER) : SLICE("0"), before,
        list->open->most + 2);
}

static void list_answer(struct flow *flow)
{
    const struct listing *open = ((const struct list *)flow->state)->open;
    buf_text(flow->body, "{\"groups\":[");
    for (int64_t i = 0; i < open->count; i++) {
        const struct listing_entry *entry = &open->entries[i];
        buf_slice(flow->body,
                  flow_compose(flow, "%r{'key':%s,'generation':%d,'opened':%s}", i ? SLICE(",") : SLICE(""),
                               item_text(flow->arena, entry->item, "key"),
                               item_int(flow->arena, entry->item, "generation", 0),
                               (struct slice){entry->order.data, MOMENT_BYTES}));
    }
    listing_finish(flow, open);
}

static void list_taken(struct flow *flow)
{
    struct list *list = flow->state;
    listing_take(flow, list->open, "since", flow_text(flow, LIST_AFTER));
    if (++list->open->slot < GROUP_SLOTS)
        list_slot(flow);
    else
        list_answer(flow);
}

/* ---- rows ---- */

/* clang-format off */
#define RULES "{'name':'clicks','complete':{'size':10},'late':'discard'}"
const struct flow_row group_rows[] = {
    {"POST", "/v1/groups/{name}/{key}", group_add, "Adds an event; one of them completes the group.",
     FIELDS(group_add_fields), "{'accepted':true,'generation':1,'count':10,'state':'COMPLETE','completed':true}",
     "group add data?"},
    {"GET", "/v1/groups/{name}/{key}", get_begin, "A group and its events, perhaps after waiting for its completion.",
     FIELDS(get_fields), "{'name':'clicks','key':'session-7','generation':1,'state':'OPEN','count':1,"
     "'opened':'2026-11-15T03:42:06.250Z','touched':'2026-11-15T03:42:06.250Z','events':[{'id':'a','data':{'x':1},"
     "'time':'2026-11-15T03:42:06.250Z'}]}", "group get"},
    {"DELETE", "/v1/groups/{name}/{key}", group_delete, "Deletes a group, all generations of it.",
     FIELDS(group_only_fields), "{'deleted':1}", "group rm"},
    {"PUT", "/v1/groups/{name}", group_put, "Sets when groups of this name are complete, also those that are open.",
     FIELDS(group_put_fields), RULES, "group put"},
    {"GET", "/v1/groups/{name}", list_begin, "The rules; or the open groups, the oldest first: no table is scanned.",
     FIELDS(list_fields), "{'groups':[{'key':'session-7','generation':1,'opened':'2026-11-15T03:42:06.250Z'}]}",
     "group show -> groups"},
    {"DELETE", "/v1/groups/{name}", group_forget, "Forgets the rules; open groups keep theirs.",
     FIELDS(group_name_fields), "{'deleted':true}", "group forget"},
};
/* clang-format on */
ROW_COUNT(group);
