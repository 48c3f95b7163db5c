/* Groups: when they are complete. The tables and what holds for them: group.c.
 *
 * A rule is a condition over the head, and the service is who evaluates it: the write that completes a group
 * carries it, and the write that adds an event carries its contrary, so that nothing gets into a group that
 * is complete. */
#include "pattern/group.h"

#include <string.h>

#include "calendar/calendar.h"

#define WHEN_WORDS 10 /* #words of a user's condition */

/* ---- conditions of users ---- */

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
        if ((c == '#' || c == ':') && (i + 1 == text.len || !group_is_word(text.data[i + 1])))
            return "a word must follow # and :";
    }
    return depth ? "its parentheses do not match" : NULL;
}

/* Without parentheses around the whole of it: the service does not take two pairs where one would do. */
static struct slice unwrapped(struct slice text)
{
    int64_t depth = 0;
    text = slice_trim(text);
    if (text.len < 2 || text.data[0] != '(') return text;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '(') depth++;
        if (text.data[i] == ')' && --depth == 0 && i + 1 < text.len) return text;
    }
    return slice_trim((struct slice){text.data + 1, text.len - 2});
}

/* A name that is not a part of another one. */
static bool begins_name(struct slice text, size_t at)
{
    size_t before = at;
    if (!group_is_word(text.data[at]) || (at && group_is_word(text.data[at - 1]))) return false;
    while (before && (text.data[before - 1] == ' ' || text.data[before - 1] == '#')) before--;
    return !before || (text.data[before - 1] != '.' && text.data[before - 1] != ':');
}

struct slice group_when(struct flow *flow, struct slice expression, struct slice folds, const char **fault)
{
    struct buf out = {0};
    *fault = when_fault(expression);
    if (*fault) return SLICE_NONE;
    expression = unwrapped(expression);
    for (size_t i = 0; i < expression.len; i++) {
        size_t len = 0;
        while (folds.data && begins_name(expression, i) && i + len < expression.len &&
               group_is_word(expression.data[i + len]))
            len++;
        const char *word = arena_printf(flow->arena, "%.*s", (int)len, expression.data + i).data;
        if (len && raw_member(flow->arena, folds, word).data) {
            bool has_mark = out.len && out.data[out.len - 1] == '#';
            buf_printf(&out, "%sfold.#%s", has_mark ? "" : "#", word);
            i += len - 1;
            continue;
        }
        buf_byte(&out, (unsigned char)expression.data[i]);
        if (expression.data[i] == ':') buf_text(&out, "w_"); /* not to be taken for one of ours */
    }
    return arena_take(flow->arena, &out);
}

struct slice group_when_values(struct flow *flow, struct slice values)
{
    struct slice name, value, text = SLICE("");
    raw_each_member (flow->arena, values, &name, &value)
        text = flow_compose(flow, "%A,':w_%A':%A", text, name, value);
    return text;
}

/* ---- rules ---- */

/* With `more` further events, one of them of this kind. */
static struct slice rule_of(struct flow *flow, struct slice item, int64_t more, struct slice added,
                            struct slice *values)
{
    struct slice kind, rule = SLICE(""), when = item_text(flow->arena, item, "when");
    const char *fault;
    unsigned count = 0;
    *values = SLICE("");
    if (item_has(flow->arena, item, "size")) {
        rule = SLICE("#count >= :size");
        *values = flow_compose(flow, ",':size':%N", item_int(flow->arena, item, "size", 0) - more);
    }
    raw_each (flow->arena, item_content(flow->arena, item, "needs"), &kind) {
        if (more && slice_equal(raw_text(flow->arena, kind), added)) continue;
        rule = arena_printf(flow->arena, "%.*s%scontains(#kinds, :k%u)", SLICE_ARG(rule),
                            rule.len ? " and " : "", count);
        *values = flow_compose(flow, "%A,':k%d':{'S':%A}", *values, (int64_t)count++, kind);
    }
    if (when.data) {
        when = group_when(flow, when, item_content(flow->arena, item, "folds"), &fault);
        rule = rule.len ? flow_compose(flow, "%r and (%r)", rule, when) : when;
        *values = flow_compose(flow, "%A%A", *values,
                               group_when_values(flow, item_content(flow->arena, item, "values")));
    }
    return rule;
}

static bool if_rule(struct flow *flow, struct edit *edit, struct slice rule, struct slice values, bool holds)
{
    if (!rule.len) return false;
    const char *text = arena_printf(flow->arena, "%s(%.*s)", holds ? "" : "not ", SLICE_ARG(rule)).data;
    edit_if(flow, edit, text, values.len ? "%A" : NULL, slice_from(values, values.len > 0));
    return true;
}

bool group_if_rule(struct flow *flow, struct edit *edit, struct slice item, bool holds)
{
    struct slice values, rule = rule_of(flow, item, 0, SLICE(""), &values);
    return if_rule(flow, edit, rule, values, holds);
}

bool group_if_rule_with(struct flow *flow, struct edit *edit, struct slice item, struct slice kind,
                        bool holds)
{
    if (item_has(flow->arena, item, "when")) return group_if_rule(flow, edit, item, holds);
    struct slice values, rule = rule_of(flow, item, 1, kind, &values);
    if (!rule.len && item_has(flow->arena, item, "needs")) rule = SLICE("attribute_exists(#group)");
    return if_rule(flow, edit, rule, values, holds);
}

bool group_has(struct flow *flow, struct slice item, const char *name, struct slice wanted)
{
    struct slice element;
    raw_each (flow->arena, item_content(flow->arena, item, name), &element)
        if (slice_equal(raw_text(flow->arena, element), wanted)) return true;
    return false;
}

static bool may_hold(struct flow *flow, struct slice item, int64_t more, struct slice added)
{
    struct slice kind;
    int64_t size = item_int(flow->arena, item, "size", 0);
    bool has_rule = size || item_has(flow->arena, item, "needs") || item_has(flow->arena, item, "when");
    if (item_int(flow->arena, item, "count", 0) + more < size) return false;
    raw_each (flow->arena, item_content(flow->arena, item, "needs"), &kind) {
        struct slice needed = raw_text(flow->arena, kind);
        if (!(more && slice_equal(needed, added)) && !group_has(flow, item, "kinds", needed)) return false;
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
void group_rules_set(struct flow *flow, struct edit *edit, struct slice rules, bool keeps_deadline)
{
    static const struct {
        const char *name, *set, *remove, *value;
    } copied[] = {{"version", "#rules = :r_rules", "#rules", "':r_rules':%A"},
#define X(name) {#name, "#" #name " = :r_" #name, "#" #name, "':r_" #name "':%A"},
                  GROUP_RULES(X)
#undef X
    };
    for (size_t i = 0; i < sizeof copied / sizeof *copied - keeps_deadline; i++) {
        struct slice value = item_attribute(flow->arena, rules, copied[i].name);
        if (value.data)
            edit_put(flow, edit, EDIT_SET, copied[i].set, copied[i].value, value);
        else
            edit_put(flow, edit, EDIT_REMOVE, copied[i].remove, NULL);
    }
}

/* ---- completing ---- */

void group_set_due(struct flow *flow, const struct group *group, struct edit *edit, int64_t due_ms)
{
    edit_set(flow, edit, "slot", "%S", group_slot(flow, group));
    edit_set(flow, edit, "due", "%N", due_ms);
}

void group_end(struct flow *flow, const struct group *group, struct edit *edit, int64_t keep_ms,
               const char *why, const char *by)
{
    edit_put(flow, edit, EDIT_SET, "#state = :complete", "':complete':{'S':'COMPLETE'}");
    edit_set(flow, edit, "completed", "%S", moment_text(flow->arena, flow->now_ms));
    edit_set(flow, edit, "why", "%S", slice_of(why));
    edit_put(flow, edit, EDIT_SET, by, NULL);
    edit_put(flow, edit, EDIT_SET, "#open = :listed", "':listed':{'S':'%r/complete'}",
             group_slot(flow, group));
    if (keep_ms)
        group_set_due(flow, group, edit, flow->now_ms + keep_ms);
    else
        edit_put(flow, edit, EDIT_REMOVE, "#slot, #due", NULL);
}

void group_if_unchanged(struct flow *flow, const struct group *group, struct edit *edit)
{
    edit_if(flow, edit, "#count = :seen", "':seen':%N", group->count);
    struct slice since = item_attribute(flow->arena, group->item,
                                        "since"); /* of one that was open: nobody else's */
    if (since.data) edit_if(flow, edit, "#since = :same", "':same':%A", since);
}

/* By its rule, or because nothing came for too long: then nothing may have come since it was read. By its
 * rule means by its last event, since none is added where the rule holds: whoever writes it, that event's
 * callers are told. */
void group_complete(struct flow *flow, struct group *group, const char *why)
{
    struct edit edit = {0};
    group_end(flow, group, &edit, group->keep_ms, why ? why : "rule",
              why ? "#by = :why" : "#by = if_not_exists(#last, :why)");
    edit_if(flow, &edit, "#state = :open", "':open':{'S':'OPEN'}");
    if (!why || strcmp(why, GROUP_BY_RULES) == 0)
        group_if_rule(flow, &edit, group->item, true);
    else
        edit_if(flow, &edit, "#touched = :touched", "':touched':%N", group->touched_ms);
    edit_if(flow, &edit, "#rules = :rules", "':rules':%N", group->rules);
    bool is_written = edit_write(flow, &edit, &group_table, group_key(flow, group, group->generation));
    group_read(flow, group, flow_item(flow));
    if (is_written) flow_wake(flow, group_topic(group));
}
