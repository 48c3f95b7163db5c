/* Groups: when they are complete. The tables and what holds for them: group.c.
 *
 * A rule is a condition over the head, and the service is who evaluates it: the write that completes a group
 * carries it, and the write that adds an event carries its contrary, so that nothing gets into a group that
 * is complete. */
#include "pattern/group.h"

#include "calendar/calendar.h"

#define WHEN_WORDS 10 /* #words of a user's condition */

/* ---- conditions of users ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* It is put in parentheses among conditions of ours, inside a JSON string: it must not leave them. */
static const char *when_fault(struct slice text)
{
    int64_t depth = 0;
    unsigned words = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') return "it holds characters that no condition has";
        if (c == '(') depth++;
        if (c == ')' && --depth < 0) return "its parentheses do not match";
        if (c == '#' && ++words > WHEN_WORDS) return "it names more than 10 attributes";
        if ((c == '#' || c == ':') && (i + 1 == text.len || !is_word(text.data[i + 1])))
            return "a word must follow # and :";
    }
    return depth ? "its parentheses do not match" : NULL;
}

static struct slice trimmed(struct slice text)
{
    while (text.len && text.data[0] == ' ') text = slice_from(text, 1);
    while (text.len && text.data[text.len - 1] == ' ') text.len--;
    return text;
}

/* Without parentheses around the whole of it: the service does not take two pairs where one would do. */
static struct slice unwrapped(struct slice text)
{
    int64_t depth = 0;
    text = trimmed(text);
    if (text.len < 2 || text.data[0] != '(') return text;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '(') depth++;
        if (text.data[i] == ')' && --depth == 0 && i + 1 < text.len) return text;
    }
    return trimmed((struct slice){text.data + 1, text.len - 2});
}

struct slice group_when(struct flow *flow, struct slice expression, const char **fault)
{
    struct buf out = {0};
    *fault = when_fault(expression);
    if (*fault) return SLICE_NONE;
    expression = unwrapped(expression);
    for (size_t i = 0; i < expression.len; i++) {
        buf_byte(&out, (unsigned char)expression.data[i]);
        if (expression.data[i] == ':') buf_text(&out, "w_"); /* not to be taken for one of ours */
    }
    struct slice text = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return text;
}

struct slice group_when_values(struct flow *flow, struct slice values)
{
    struct raw_look look;
    struct slice name, value, text = SLICE("");
    raw_look_begin(&look, flow->arena, values);
    while (raw_look_next(&look, &name, &value)) text = flow_compose(flow, "%A,':w_%A':%A", text, name, value);
    return text;
}

/* ---- rules ---- */

/* With `more` further events, one of them of this kind. */
static struct slice rule_of(struct flow *flow, struct slice item, int64_t more, struct slice added,
                            struct slice *values)
{
    struct raw_look look;
    struct slice kind, rule = SLICE(""), when = item_text(flow->arena, item, "when");
    const char *fault;
    unsigned count = 0;
    *values = SLICE("");
    if (item_has(flow->arena, item, "size")) {
        rule = SLICE("#count >= :size");
        *values = flow_compose(flow, ",':size':%N", item_int(flow->arena, item, "size", 0) - more);
    }
    raw_look_begin(&look, flow->arena, item_content(flow->arena, item, "needs"));
    while (raw_look_next(&look, NULL, &kind)) {
        if (more && slice_equal(raw_text(flow->arena, kind), added)) continue;
        rule = arena_printf(flow->arena, "%.*s%scontains(#kinds, :k%u)", SLICE_ARG(rule),
                            rule.len ? " and " : "", count);
        *values = flow_compose(flow, "%A,':k%d':{'S':%A}", *values, (int64_t)count++, kind);
    }
    if (when.data) {
        when = group_when(flow, when, &fault);
        rule = rule.len ? flow_compose(flow, "%r and (%r)", rule, when) : when;
        *values = flow_compose(flow, "%A%A", *values,
                               group_when_values(flow, item_content(flow->arena, item, "values")));
    }
    return rule;
}

struct slice group_rule(struct flow *flow, struct slice item, struct slice *values)
{
    return rule_of(flow, item, 0, SLICE(""), values);
}

struct slice group_rule_with(struct flow *flow, struct slice item, struct slice kind, struct slice *values)
{
    if (item_has(flow->arena, item, "when")) return group_rule(flow, item, values);
    struct slice rule = rule_of(flow, item, 1, kind, values);
    return !rule.len && item_has(flow->arena, item, "needs") ? SLICE("attribute_exists(#group)") : rule;
}

static bool has_kind(struct flow *flow, struct slice item, struct slice kind)
{
    struct raw_look look;
    struct slice element;
    raw_look_begin(&look, flow->arena, item_content(flow->arena, item, "kinds"));
    while (raw_look_next(&look, NULL, &element))
        if (slice_equal(raw_text(flow->arena, element), kind)) return true;
    return false;
}

static bool may_hold(struct flow *flow, struct slice item, int64_t more, struct slice added)
{
    struct raw_look look;
    struct slice kind;
    int64_t size = item_int(flow->arena, item, "size", 0);
    bool has_rule = size || item_has(flow->arena, item, "needs") || item_has(flow->arena, item, "when");
    if (item_int(flow->arena, item, "count", 0) + more < size) return false;
    raw_look_begin(&look, flow->arena, item_content(flow->arena, item, "needs"));
    while (raw_look_next(&look, NULL, &kind)) {
        struct slice needed = raw_text(flow->arena, kind);
        if (!(more && slice_equal(needed, added)) && !has_kind(flow, item, needed)) return false;
    }
    return has_rule;
}

bool group_may_be_complete(struct flow *flow, struct slice item)
{
    return may_hold(flow, item, 0, SLICE(""));
}

bool group_completes(struct flow *flow, struct slice item, struct slice kind)
{
    return !item_has(flow->arena, item, "when") && may_hold(flow, item, 1, kind);
}

/* ---- rules in a head ---- */

/* The version of the rules stands in the head under another name. */
struct slice group_rules_set(struct flow *flow, struct slice rules, bool keeps_deadline, struct slice *values,
                             struct slice *gone)
{
    static const struct {
        const char *name, *in_head;
    } copied[] = {{"version", "rules"}, {"size", "size"},        {"needs", "needs"}, {"when", "when"},
                  {"values", "values"}, {"quiet", "quiet"},      {"late", "late"},   {"keep", "keep"},
                  {"then", "then"},     {"deadline", "deadline"}};
    struct slice set = SLICE("");
    *values = *gone = SLICE("");
    for (size_t i = 0; i < sizeof copied / sizeof *copied - keeps_deadline; i++) {
        struct slice value = item_attribute(flow->arena, rules, copied[i].name),
                     name = slice_of(copied[i].in_head);
        if (value.data) {
            set = flow_compose(flow, "%r, #%r = :r_%r", set, name, name);
            *values = flow_compose(flow, "%A,':r_%r':%A", *values, name, value);
        } else {
            *gone = flow_compose(flow, "%r, #%r", *gone, name);
        }
    }
    return set;
}

/* ---- completing ---- */

/* By its rule, or because nothing came for too long: then nothing may have come since it was read. By its
 * rule means by its last event, since none is added where the rule holds: whoever writes it, that event's
 * callers are told. */
void group_complete(struct flow *flow, struct group *group, const char *why)
{
    struct slice values, rule = group_rule(flow, group->item, &values);
    if (why) {
        rule = SLICE("#touched = :touched");
        values = flow_compose(flow, ",':touched':%N", group->touched_ms);
    }
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #state = :complete, #completed = :now, #why = "
        ":why, #by = %r%r','ConditionExpression':'#state = :open and "
        "(%r) and #rules = :rules',%#,'ExpressionAttributeValues':{':complete':{'S':'COMPLETE'},':open':{'S':'OPEN'},"
        "':now':%S,':why':%S,':rules':%N%A%A},'ReturnValues':'ALL_NEW',%O}",
        &group_table, group_key(flow, group, group->generation),
        why ? SLICE(":why") : SLICE("if_not_exists(#last, :why)"),
        group->keep_ms ? SLICE(", #slot = :slot, #due = :due REMOVE #open")
                       : SLICE(" REMOVE #open, #slot, #due"),
        rule, moment_text(flow->arena, flow->now_ms), why ? slice_of(why) : SLICE("rule"), group->rules,
        group->keep_ms ? flow_compose(flow, ",':slot':%S,':due':%N", group_slot(flow, group),
                                      flow->now_ms + group->keep_ms)
                       : SLICE(""),
        values);
    group_read(flow, group, flow_item(flow));
    if (!flow_failed(flow)) flow_wake(flow, group_topic(group));
}
