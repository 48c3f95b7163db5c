/* Groups: their rules. The tables and what holds for them: group.c. */
#include "calendar/calendar.h"
#include "pattern/group.h"
#include "pattern/names.h"
#include "pattern/rows.h"

#define WHEN_BYTES 1000
#define NAME_BYTES 200
#define SIZE_MOST  1000000

/* ---- PUT ---- */

enum { PUT_COMPLETE = GROUP_NAME + 1, PUT_FOLD, PUT_QUIET, PUT_DEADLINE, PUT_LATE, PUT_KEEP, PUT_THEN };

const struct field group_put_fields[] = {
    FIELD_GROUP_NAME,
    [PUT_COMPLETE] =
        {"complete", IN_BODY, FIELD_JSON,
         .help = "an object; all that is given must hold: size: so many events; kinds: at least one of "
                 "each; when: a condition like \"count >= 3 and sum > 100\" over count, kinds, sum, opened, "
                 "touched, events and the names of fold, or in DynamoDB's own words as {expression, values}"},
    [PUT_FOLD] = {"fold", IN_BODY, FIELD_JSON,
                  .help = "an object of values that are folded from the events' data, by names of your own: "
                          "{\"paid\": {\"sum\": \"amount\", \"of\": \"payment\"}}; count, sum, min, max, "
                          "last or distinct of a path, perhaps of one kind only"},
    [PUT_QUIET] = {"quiet", IN_BODY, FIELD_DURATION, .min = 1, .max = GROUP_LONG_MS,
                   .help = "or when nothing came for so long"},
    [PUT_DEADLINE] = {"deadline", IN_BODY, FIELD_DURATION, .min = 1, .max = GROUP_LONG_MS,
                      .help = "or so long after the first event"},
    [PUT_LATE] =
        {"late", IN_BODY, FIELD_CHOICE, .words = "discard|append|new",
         .help =
             "what becomes of events that come to a complete group: refused, added, or they open the next "
             "generation (default: discard)"},
    [PUT_KEEP] = FIELD_KEEP(GROUP_LONG_MS, "how long complete groups are kept (default: for ever)"),
    [PUT_THEN] = {"then", IN_BODY, FIELD_THEN,
                  .help = "what runs when a group is complete: a function, a URL or a call"},
};

struct put {
    struct slice attributes;   /* of the rules, as they are stored */
    struct slice when, values; /* the condition and its values, as calls take them */
    struct slice folds;        /* as they were sent */
};

static _Noreturn void refuse_rule(struct flow *flow, const char *sentence)
{
    task_refuse(flow, 400, "bad-rule", "%s", sentence);
}

static void take_kinds(struct flow *flow, struct put *put, struct slice value)
{
    struct slice kind, kinds[GROUP_KINDS], list = SLICE("");
    size_t count = 0;
    if (raw_kind(value) != JSON_ARRAY) refuse_rule(flow, "complete.kinds must be an array of names.");
    raw_each (flow->arena, value, &kind) {
        struct slice text = raw_kind(kind) == JSON_STRING ? raw_text(flow->arena, kind) : SLICE_NONE;
        bool again = false;
        for (size_t i = 0; i < count; i++) again |= slice_equal(kinds[i], text);
        if (!text.len || text.len > NAME_BYTES || again || count == GROUP_KINDS)
            refuse_rule(flow, "complete.kinds must be up to 50 different names of 1 to 200 bytes.");
        kinds[count++] = text;
        list = flow_compose(flow, "%A%,%s", list, text);
    }
    if (!count) refuse_rule(flow, "complete.kinds must name at least one kind.");
    put->attributes = flow_compose(flow, "%A,'needs':{'SS':[%A]}", put->attributes, list);
}

/* {":least": 3} -> the map that is stored, whose names have no colon. */
static void take_values(struct flow *flow, struct put *put, struct slice values)
{
    struct slice name, value, map = SLICE("");
    if (values.data && raw_kind(values) != JSON_OBJECT)
        refuse_rule(flow, "complete.when.values must be an object.");
    raw_each_member (flow->arena, values, &name, &value) {
        bool fits = name.len > 1 && name.data[0] == ':';
        for (size_t i = 1; i < name.len; i++) fits &= group_is_word(name.data[i]);
        if (!fits) refuse_rule(flow, "The names of complete.when.values are like \":least\".");
        map = flow_compose(flow, "%A%,%s:%J", map, slice_from(name, 1), value);
    }
    put->values = group_when_values(flow, flow_compose(flow, "{%A}", map));
    put->attributes = flow_compose(flow, "%A,'values':{'M':{%A}}", put->attributes, map);
}

static void take_when(struct flow *flow, struct put *put, struct slice value)
{
    bool is_object = raw_kind(value) == JSON_OBJECT;
    struct slice expression = is_object ? raw_member(flow->arena, value, "expression") : value;
    struct slice values = is_object ? raw_member(flow->arena, value, "values") : SLICE_NONE;
    const char *fault = NULL;
    if (raw_kind(expression) != JSON_STRING)
        refuse_rule(flow, "complete.when must be a condition, or {\"expression\": ..., \"values\": {...}}.");
    expression = raw_text(flow->arena, expression);
    if (!expression.len || expression.len > WHEN_BYTES)
        refuse_rule(flow, "complete.when must have 1 to 1000 bytes.");
    if (!is_object) expression = group_when_read(flow, expression, &values, &fault);
    if (!fault) put->when = group_when(flow, expression, put->folds, &fault);
    if (!fault) fault = group_when_fault(flow, expression, values, put->folds);
    if (fault) task_refuse(flow, 400, "bad-rule", "complete.when cannot be used: %s.", fault);
    put->attributes = flow_compose(flow, "%A,'when':%S", put->attributes, expression);
    if (values.data) take_values(flow, put, values);
}

static void take_complete(struct flow *flow, struct put *put)
{
    struct slice value = flow_text(flow, PUT_COMPLETE), name, member;
    if (!flow_given(flow, PUT_COMPLETE)) return;
    if (raw_kind(value) != JSON_OBJECT) refuse_rule(flow, "complete must be an object of size, kinds, when.");
    raw_each_member (flow->arena, value, &name, &member) {
        if (slice_equal(name, SLICE("size"))) {
            int64_t size;
            if (raw_kind(member) != JSON_NUMBER || !raw_int(member, &size) || size < 1 || size > SIZE_MOST)
                refuse_rule(flow, "complete.size must be between 1 and 1000000.");
            put->attributes = flow_compose(flow, "%A,'size':%N", put->attributes, size);
        } else if (slice_equal(name, SLICE("kinds")))
            take_kinds(flow, put, member);
        else if (slice_equal(name, SLICE("when")))
            take_when(flow, put, member);
        else
            refuse_rule(flow, "complete knows size, kinds and when.");
    }
}

/* ---- telling the rules ---- */

/* The condition as it was sent, its values' names with their colons. */
static struct slice when_told(struct flow *flow, struct slice item)
{
    struct slice when = item_text(flow->arena, item, "when"), name, value, list = SLICE("");
    struct slice values = item_content(flow->arena, item, "values");
    if (!when.data) return SLICE_NONE;
    if (!values.data) return flow_compose(flow, "%s", when);
    raw_each_member (flow->arena, values, &name, &value)
        list = flow_compose(flow, "%A%,':%A':%P", list, name, value);
    return flow_compose(flow, "{'expression':%s,'values':{%A}}", when, list);
}

/* All but the name, behind a comma. */
static struct slice rules_members(struct flow *flow, struct slice item)
{
    struct arena *arena = flow->arena;
    int64_t quiet_ms = item_int(arena, item, "quiet", 0), deadline_ms = item_int(arena, item, "deadline", 0);
    int64_t keep_ms = item_int(arena, item, "keep", 0);
    return flow_compose(
        flow,
        ",'complete':{%[%,'size':%P%]%[%,'kinds':%P%]%[%,'when':%A%]}%[,'fold':%P%]%[%?,'quiet':%s%]"
        "%[%?,'deadline':%s%]%[%?,'keep':%s%],'late':%s%A",
        item_attribute(arena, item, "size"), item_attribute(arena, item, "needs"), when_told(flow, item),
        item_attribute(arena, item, "folds"), quiet_ms != 0, duration_text(arena, quiet_ms), deadline_ms != 0,
        duration_text(arena, deadline_ms), keep_ms != 0, duration_text(arena, keep_ms),
        item_text(arena, item, "late"), flow_then_member(flow, item));
}

static void tell_rules(struct flow *flow, struct slice item)
{
    flow_answer(flow, 200, "{'name':%s%A}", item_text(flow->arena, item, "name"), rules_members(flow, item));
}

static bool is_same(struct flow *flow, struct slice one, struct slice other)
{
    static const char *const names[] = {
#define X(name) #name,
        GROUP_RULES(X)
#undef X
            "forgotten"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct slice value = item_attribute(flow->arena, one, names[i]);
        if (!attribute_equal(flow->arena, value, item_attribute(flow->arena, other, names[i]))) return false;
    }
    return true;
}

/* The rules replace those that are there, with a greater version. Where they are there already they are not
 * written again; perhaps whoever wrote them did not get to all open groups. */
static struct slice rules_write(struct flow *flow, struct slice attributes, bool *is_first, bool *is_applied)
{
    for (;;) {
        struct slice there = group_rules_item(flow, flow_text(flow, GROUP_NAME));
        int64_t version = item_int(flow->arena, there, "version", 0);
        struct slice item = flow_compose(flow, "{%A,'version':%N}", attributes, version);
        *is_first = !there.data;
        *is_applied = item_int(flow->arena, there, "applied", 0) == version;
        if (version && is_same(flow, there, item)) return item;
        item = flow_compose(flow, "{%A,'version':%N}", attributes,
                            version < flow->now_ms ? flow->now_ms : version + 1);
        *is_applied = false;
        task_call(flow, "PutItem",
                  "{'TableName':%T,'Item':%A,'ConditionExpression':'%r',%#"
                  "%[%?,'ExpressionAttributeValues':{':version':%N}%]}",
                  &group_rules_table, item,
                  version ? SLICE("#version = :version") : SLICE("attribute_not_exists(#version)"),
                  version != 0, version);
        if (!flow_failed(flow)) return item;
        task_again(flow);
    }
}

void group_put(struct flow *flow)
{
    struct put put = {.attributes = SLICE(""), .values = SLICE("")};
    bool is_first, is_applied;
    if (flow_given(flow, PUT_FOLD)) {
        put.folds = flow_text(flow, PUT_FOLD);
        group_folds_check(flow, put.folds);
    }
    take_complete(flow, &put);
    if (!put.attributes.len && !flow_given(flow, PUT_QUIET) && !flow_given(flow, PUT_DEADLINE))
        refuse_rule(flow, "Groups of these rules would never be complete: give complete, quiet or deadline.");
    if (put.when.data) {
        /* A condition is shown to the service first, on a group that is not there: what it does not understand it
         * refuses. */
        task_call(
            flow, "DeleteItem",
            "{'TableName':%T,'Key':{'group':{'S':'/'},'generation':{'N':'0'}},"
            "'ConditionExpression':'attribute_exists(#group) or %r',%#%[,'ExpressionAttributeValues':{%A}%]}",
            &group_table, put.when, put.values.len ? slice_from(put.values, 1) : SLICE_NONE);
    }
    struct slice attributes = flow_compose(
        flow,
        "'name':%S%A%[,'folds':%J%]%[%?,'quiet':%N%]%[%?,'deadline':%N%]%[%?,'keep':%N%],'late':%S%[,'then':%S%]",
        flow_text(flow, GROUP_NAME), put.attributes, put.folds, flow_given(flow, PUT_QUIET),
        flow_int(flow, PUT_QUIET), flow_given(flow, PUT_DEADLINE), flow_int(flow, PUT_DEADLINE),
        flow_given(flow, PUT_KEEP), flow_int(flow, PUT_KEEP), flow_text_or(flow, PUT_LATE, SLICE("discard")),
        flow_then(flow, PUT_THEN));
    names_note(flow, SLICE("group"), flow_text(flow, GROUP_NAME));
    struct slice item = rules_write(flow, attributes, &is_first, &is_applied);
    group_rules_remember(flow, flow_text(flow, GROUP_NAME), item);
    if (!is_applied) {
        group_change_all(flow, item, is_first ? 0 : flow->world->lag_ms);
        /* unless somebody else has put others meanwhile, who then gives them to the groups */
        edit_item(flow, &group_rules_table, flow_compose(flow, "{'name':%S}", flow_text(flow, GROUP_NAME)),
                  SLICE("SET #applied = :version, #again = :again"), SLICE("#version = :version"),
                  "':version':%A,':again':%N", item_attribute(flow->arena, item, "version"),
                  flow->now_ms + GROUP_AGAIN_MS);
        flow_forget(flow, group_sweep_topic(flow_text(flow, GROUP_NAME)));
    }
    tell_rules(flow, item);
}

/* ---- GET, DELETE ---- */

const struct field group_name_fields[] = {FIELD_GROUP_NAME};

static _Noreturn void group_refuse_no_rules(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-group", "There are no groups named '%.*s': put their rules first.",
                SLICE_ARG(flow_text(flow, GROUP_NAME)));
}

static struct slice told_in_list(struct flow *flow, struct slice item)
{
    return item_has(flow->arena, item, "forgotten") ? SLICE_NONE : rules_members(flow, item);
}

void group_list_rules(struct flow *flow)
{
    names_list(flow,
               (struct names){SLICE("group"), "groups", "name", "name", .table = &group_rules_table,
                              .tell = told_in_list},
               0);
}

void group_rules(struct flow *flow)
{
    struct slice rules = group_rules_read(flow, flow_text(flow, GROUP_NAME));
    if (!rules.data) group_refuse_no_rules(flow);
    tell_rules(flow, rules);
}

/* Groups that are open are completed by the rules that they have. The item stays, for the sweep to know that there may
 * be some. */
void group_forget(struct flow *flow)
{
    bool is_forgotten = edit_item(
        flow, &group_rules_table, flow_compose(flow, "{'name':%S}", flow_text(flow, GROUP_NAME)),
        SLICE("SET #forgotten = :now"), SLICE("attribute_exists(#name) and attribute_not_exists(#forgotten)"),
        "':now':%N", flow->now_ms);
    group_rules_remember(flow, flow_text(flow, GROUP_NAME), SLICE_NONE);
    if (!is_forgotten) group_refuse_no_rules(flow);
    flow_answer(flow, 200, "{'deleted':true}");
}
