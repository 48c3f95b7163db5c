/* Groups: conditions as people write them, "count >= 3 and contains(kinds, 'vip')", as DynamoDB takes them.
 * What is written in its own way (#count) stays as it is. Called by group_put.c. */
#include <stdarg.h>
#include <string.h>

#include "expr/expr.h"
#include "pattern/group.h"

static bool put_value(struct buf *out, struct arena *arena, struct slice json, const char **fault)
{
    *fault = plain_fault(arena, json);
    buf_slice(out, json);
    return !*fault;
}

/* The condition stands in the group's items, its names do not: they are what follows the #. */
static bool has_odd_name(const struct phrases *phrases)
{
    for (const struct phrase_name *name = phrases->names; name; name = name->older)
        if (!slice_equal(slice_from(name->placeholder, 1), name->name)) return true;
    return false;
}

struct slice group_when_read(struct flow *flow, struct slice written, struct slice *values,
                             const char **fault)
{
    struct phrases phrases = {.arena = flow->arena, .keeps_placeholders = true, .put_value = put_value};
    struct buf text = {0};
    bool fine = phrase_put(&text, &phrases, written);
    struct slice expression = arena_copy(flow->arena, buf_view(&text));
    *fault = !fine                    ? phrases.fault
             : has_odd_name(&phrases) ? "names in it begin with a letter and hold letters, digits and _"
                                      : NULL;
    *values = phrases.value_count ? flow_compose(flow, "{%r}", buf_view(&phrases.values)) : SLICE_NONE;
    buf_free(&text);
    phrases_free(&phrases);
    return expression;
}

/* ---- types ----
 *
 * What a condition asks of the group is known by type, so a condition that can never hold is refused when it is
 * put, and not found out when no group is ever complete. Only types are looked at; what the service would not
 * understand it refuses itself, and nothing is said of it here. */

#define NESTED_MOST                                                                                          \
    30 /* parentheses and "not": the parser recurses, and deeper ones are left to the service */

/* Bits: a value out of an event's data may be any. */
#define WHEN(type) (1u << VALUE_##type)
#define WHEN_ANY   ((1u << VALUE_TYPES) - 1)
#define WHEN_SET   (WHEN(SS) | WHEN(NS))

/* What a group has; `always`: from its first event on. */
struct when_name {
    const char *name;
    unsigned types;
    bool always;
};
static const struct when_name group_names[] = {{"count", WHEN(N), true},   {"sum", WHEN(N), false},
                                               {"opened", WHEN(N), true},  {"touched", WHEN(N), true},
                                               {"kinds", WHEN(SS), false}, {"events", WHEN(L), false}};
static const struct when_name event_names[] = {{"id", WHEN(S), true},     {"kind", WHEN(S), false},
                                               {"data", WHEN_ANY, false}, {"amount", WHEN(N), false},
                                               {"time", WHEN(S), true},   {"late", WHEN(BOOL), false}};
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const struct when_name *name_find(const struct when_name *names, size_t count, struct slice word)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(word, slice_of(names[i].name))) return &names[i];
    return NULL;
}

bool group_when_knows(struct slice word)
{
    static const char *const language[] = {"and",
                                           "or",
                                           "not",
                                           "between",
                                           "in",
                                           "begins_with",
                                           "contains",
                                           "size",
                                           "attribute_exists",
                                           "attribute_type",
                                           "attribute_not_exists"};
    for (size_t i = 0; i < COUNT_OF(language); i++)
        if (slice_equal_ignoring_case(word, slice_of(language[i]))) return true;
    for (size_t i = 0; i < COUNT_OF(group_names); i++)
        if (slice_equal_ignoring_case(word, slice_of(group_names[i].name))) return true;
    return false;
}

static const char *called(unsigned types)
{
    static const char *const words[VALUE_TYPES] = {
        [VALUE_S] = "a text",          [VALUE_N] = "a number",         [VALUE_BOOL] = "true or false",
        [VALUE_NULL] = "null",         [VALUE_L] = "a list",           [VALUE_M] = "an object",
        [VALUE_SS] = "a set of texts", [VALUE_NS] = "a set of numbers"};
    for (unsigned i = 0; i < VALUE_TYPES; i++)
        if (types == 1u << i) return words[i];
    return types == WHEN_SET ? "a set" : types == (WHEN(N) | WHEN(S)) ? "a number or a text" : "anything";
}

/* ---- a walk over the condition ---- */

struct when {
    struct flow *flow;
    struct slice folds; /* a plain object */
    struct expr_params params;
    struct slice *given; /* the values of the params, plain */
    const char *fault;
};

struct when_operand {
    unsigned types;
    struct slice shown;
    bool is_value;
    bool always; /* what it names is in every group */
};

static void when_fails(struct when *when, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void when_fails(struct when *when, const char *format, ...)
{
    va_list args;
    if (when->fault) return;
    va_start(args, format);
    when->fault = arena_vprintf(when->flow->arena, format, args).data;
    va_end(args);
}

/* Each #name means the attribute of that name. Values are bound as texts, whatever they are: so the parser says
 * nothing of types, which are judged here. */
static void params_read(struct when *when, struct slice expression, struct slice values)
{
    struct arena *arena = when->flow->arena;
    struct expr_params *params = &when->params;
    struct raw_look look;
    struct slice name, value;
    params->names = arena_array(arena, struct expr_name, expression.len);
    for (size_t i = 0, len; i < expression.len; i += len) {
        for (len = 1; i + len < expression.len && group_is_word(expression.data[i + len]);) len++;
        struct slice word = {expression.data + i, len};
        if (word.data[0] != '#') continue;
        params->names[params->name_count++] = (struct expr_name){.placeholder = word,
                                                                 .name = slice_from(word, 1)};
    }
    params->value_count = (uint32_t)raw_count(arena, values);
    params->values = arena_array(arena, struct expr_value, params->value_count);
    when->given = arena_array(arena, struct slice, params->value_count);
    raw_look_begin(&look, arena, values);
    for (uint32_t i = 0; raw_look_next(&look, &name, &value); i++) {
        struct slice text = raw_kind(value) == JSON_STRING ? raw_text(arena, value) : SLICE("");
        params->values[i] = (struct expr_value){.placeholder = name,
                                                .value = {.type = VALUE_S, .bytes = text}};
        when->given[i] = value;
    }
    params->has_names = params->name_count > 0;
    params->has_values = params->value_count > 0;
}

/* A name of the rules' fold. */
static bool fold_find(struct flow *flow, struct slice folds, struct slice word, struct when_name *out)
{
    static const unsigned types[] = {[GROUP_FOLD_NUMBER] = WHEN(N),
                                     [GROUP_FOLD_SCALAR] = WHEN(N) | WHEN(S),
                                     [GROUP_FOLD_SET] = WHEN_SET,
                                     [GROUP_FOLD_ANY] = WHEN_ANY};
    struct slice name = arena_printf(flow->arena, "%.*s", SLICE_ARG(word));
    struct slice fold = raw_member(flow->arena, folds, name.data);
    if (!fold.data) return false;
    enum group_fold_type type = group_fold_type(flow, fold);
    *out = (struct when_name){name.data, types[type], type == GROUP_FOLD_NUMBER};
    return true;
}

static struct when_operand path_read(struct when *when, const struct path *path)
{
    struct arena *arena = when->flow->arena;
    struct slice first = path->parts[0].name;
    const struct when_name *name = name_find(group_names, COUNT_OF(group_names), first);
    struct when_name folded;
    bool in_event = false;
    if (!name && fold_find(when->flow, when->folds, first, &folded)) name = &folded;
    if (!name)
        when_fails(when, "there is no \"%.*s\" in a group, only count, sum, kinds, opened, touched%s",
                   SLICE_ARG(flow_shown(first)),
                   when->folds.data ? ", events and the names of fold" : " and events");
    struct when_operand operand = {.types = name ? name->types : WHEN_ANY,
                                   .shown = first,
                                   .always = name && name->always && path->count == 1};
    for (uint32_t i = 1; i < path->count && !when->fault; i++) {
        const struct path_part *part = &path->parts[i];
        if (operand.types != WHEN_ANY && operand.types != (part->is_index ? WHEN(L) : WHEN(M))) {
            when_fails(when, "%.*s is %s, which has no %s", SLICE_ARG(operand.shown), called(operand.types),
                       part->is_index ? "places" : "members");
        } else if (part->is_index) {
            in_event = operand.types == WHEN(L);
            if (in_event) operand.types = WHEN(M);
        } else if (in_event) {
            name = name_find(event_names, COUNT_OF(event_names), part->name);
            if (!name)
                when_fails(when,
                           "there is no \"%.*s\" in an event, only id, kind, data, amount, time and late",
                           SLICE_ARG(flow_shown(part->name)));
            operand.types = name ? name->types : WHEN_ANY;
            in_event = false;
        }
        operand.shown = part->is_index
                            ? arena_printf(arena, "%.*s[%u]", SLICE_ARG(operand.shown), part->index)
                            : arena_printf(arena, "%.*s.%.*s", SLICE_ARG(operand.shown),
                                           SLICE_ARG(part->name));
    }
    return operand;
}

static struct when_operand value_read(const struct when *when, const struct value *value)
{
    static const unsigned types[] = {
        [JSON_STRING] = WHEN(S),   [JSON_NUMBER] = WHEN(N),  [JSON_TRUE] = WHEN(BOOL),
        [JSON_FALSE] = WHEN(BOOL), [JSON_NULL] = WHEN(NULL), [JSON_ARRAY] = WHEN(L),
        [JSON_OBJECT] = WHEN(M)};
    uint32_t i = 0;
    while (&when->params.values[i].value != value) i++;
    return (struct when_operand){
        .types = types[raw_kind(when->given[i])], .shown = flow_shown(when->given[i]), .is_value = true};
}

static struct when_operand operand_read(struct when *when, const struct operand *operand)
{
    struct when_operand read = operand->value ? value_read(when, operand->value)
                                              : path_read(when, &operand->path);
    if (operand->kind != OPERAND_SIZE) return read;
    if (read.types == WHEN(N) || read.types == WHEN(BOOL))
        when_fails(when, "%.*s is %s, which has no size", SLICE_ARG(read.shown), called(read.types));
    return (struct when_operand){
        .types = WHEN(N), .shown = arena_printf(when->flow->arena, "size(%.*s)", SLICE_ARG(read.shown))};
}

/* ---- what compares ---- */

static void types_compare(struct when *when, const struct when_operand *a, const struct when_operand *b,
                          bool by_order)
{
    const struct when_operand *name = a->is_value ? b : a, *other = a->is_value ? a : b;
    const unsigned ordered = WHEN(N) | WHEN(S);
    if (a->types & b->types & (by_order ? ordered : WHEN_ANY)) return;
    if (!(name->types & ~WHEN_SET))
        when_fails(when, "%.*s is %s, which it compares with %.*s: use contains(%.*s, ...) or size(%.*s)",
                   SLICE_ARG(name->shown), called(name->types), SLICE_ARG(other->shown),
                   SLICE_ARG(name->shown), SLICE_ARG(name->shown));
    else if (name->types & other->types)
        when_fails(when, "%.*s is %s, which is not less or more than anything", SLICE_ARG(name->shown),
                   called(name->types));
    else
        when_fails(when, "%.*s is %s, which it compares with %.*s", SLICE_ARG(name->shown),
                   called(name->types), SLICE_ARG(other->shown));
}

/* ---- functions that say yes or no ---- */

static void begins_check(struct when *when, const struct when_operand *path, const struct when_operand *with)
{
    if (!(path->types & WHEN(S)))
        when_fails(when, "%.*s is %s, which begins with nothing", SLICE_ARG(path->shown),
                   called(path->types));
    else if (!(with->types & WHEN(S)))
        when_fails(when, "%.*s is %s, and a text begins with a text only", SLICE_ARG(with->shown),
                   called(with->types));
}

static void contains_check(struct when *when, const struct when_operand *in, const struct when_operand *what)
{
    const unsigned holders = WHEN(S) | WHEN_SET | WHEN(L);
    bool is_events = in->types == WHEN(L) && slice_equal(in->shown, SLICE("events"));
    if (!(in->types & holders))
        when_fails(when, "%.*s is %s, which contains nothing", SLICE_ARG(in->shown), called(in->types));
    else if (in->types == WHEN(SS) && !(what->types & WHEN(S)))
        when_fails(when, "kinds are texts, and it looks for %.*s among them", SLICE_ARG(what->shown));
    else if (in->types == WHEN_SET && !(what->types & (WHEN(S) | WHEN(N))))
        when_fails(when, "%.*s is a set of texts or numbers, and it looks for %.*s among them",
                   SLICE_ARG(in->shown), SLICE_ARG(what->shown));
    else if (in->types == WHEN(S) && !(what->types & WHEN(S)))
        when_fails(when, "%.*s is a text, and it looks for %.*s in it", SLICE_ARG(in->shown),
                   SLICE_ARG(what->shown));
    else if (is_events && !(what->types & WHEN(M)))
        when_fails(when, "events are objects, and it looks for %.*s among them", SLICE_ARG(what->shown));
}

static void type_check(struct when *when, const struct when_operand *path, enum value_type type)
{
    if (path->types & 1u << type) return;
    when_fails(when, "%.*s is %s, and no attribute of the type \"%.*s\"", SLICE_ARG(path->shown),
               called(path->types), SLICE_ARG(value_type_name(type)));
}

/* negated: by an odd number of "not". */
static void condition_check(struct when *when, const struct condition *condition, bool negated)
{
    enum condition_kind kind = condition->kind;
    for (; kind == CONDITION_AND || kind == CONDITION_OR; kind = condition->kind) {
        condition_check(when, condition->left, negated);
        condition = condition->right;
    }
    if (kind == CONDITION_NOT) {
        condition_check(when, condition->left, !negated);
        return;
    }
    struct when_operand first = operand_read(when, &condition->operands[0]);
    if (kind == CONDITION_TYPE) type_check(when, &first, condition->type);
    if (first.always && kind == (negated ? CONDITION_EXISTS : CONDITION_NOT_EXISTS))
        when_fails(when, "%.*s is in every group", SLICE_ARG(first.shown));
    if (kind == CONDITION_TYPE || kind == CONDITION_EXISTS || kind == CONDITION_NOT_EXISTS) return;
    for (uint32_t i = 1; i < condition->operand_count && !when->fault; i++) {
        struct when_operand other = operand_read(when, &condition->operands[i]);
        if (kind == CONDITION_BEGINS_WITH)
            begins_check(when, &first, &other);
        else if (kind == CONDITION_CONTAINS)
            contains_check(when, &first, &other);
        else
            types_compare(when, &first, &other,
                          kind != CONDITION_EQ && kind != CONDITION_NE && kind != CONDITION_IN);
    }
}

static bool is_too_deep(struct slice expression)
{
    unsigned depth = 0, most = 0, negations = 0;
    for (size_t i = 0; i < expression.len; i++) {
        if (expression.data[i] == '(' && ++depth > most) most = depth;
        if (expression.data[i] == ')' && depth) depth--;
        negations += slice_starts(slice_from(expression, i), SLICE("not ")) ||
                     slice_starts(slice_from(expression, i), SLICE("NOT "));
    }
    return most + negations > NESTED_MOST;
}

const char *group_when_fault(struct flow *flow, struct slice expression, struct slice values,
                             struct slice folds)
{
    struct when when = {.flow = flow, .folds = folds};
    struct slice refusal;
    if (is_too_deep(expression)) return NULL;
    params_read(&when, expression, values);
    struct condition *condition = condition_parse(flow->arena, EXPR_CONDITION, expression, &when.params,
                                                  &refusal);
    if (!condition) return arena_printf(flow->arena, "%.*s", SLICE_ARG(refusal)).data;
    condition_check(&when, condition, false);
    return when.fault;
}
