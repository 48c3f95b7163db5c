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

/* ---- words and types ----
 *
 * What a condition asks of the group is known by type, so a condition that can never hold is refused when it is
 * put, and not found out when no group is ever complete. Only types are looked at; what the service would not
 * understand it refuses itself, and nothing is said of it here. */

#define NESTED_MOST 50 /* parentheses: deeper ones are left to the service */

/* X(name, letter of DynamoDB's type, what it is called). */
#define WHEN_TYPES(X)                                                                                        \
    X(TEXT, "S", "a text")                                                                                   \
    X(NUMBER, "N", "a number")                                                                               \
    X(BOOL, "BOOL", "true or false")                                                                         \
    X(NULL, "NULL", "null")                                                                                  \
    X(LIST, "L", "a list")                                                                                   \
    X(MAP, "M", "an object")                                                                                 \
    X(TEXTS, "SS", "a set of texts")                                                                         \
    X(NUMBERS, "NS", "a set of numbers")
enum { /* of bits: a value out of an event's data may be any */
#define X(name, letter, called) AT_##name,
       WHEN_TYPES(X)
#undef X
           WHEN_TYPE_COUNT
};
#define WHEN(name) (1u << AT_##name)
#define WHEN_ANY   ((1u << WHEN_TYPE_COUNT) - 1)
#define WHEN_SET   (WHEN(TEXTS) | WHEN(NUMBERS))

static const struct {
    const char *letter, *called;
} type_words[] = {
#define X(name, letter, called) {letter, called},
    WHEN_TYPES(X)
#undef X
};

/* What a group has; `always`: from its first event on. */
struct when_name {
    const char *name;
    unsigned types;
    bool always;
};
static const struct when_name group_names[] = {
    {"count", WHEN(NUMBER), true},   {"sum", WHEN(NUMBER), false},  {"opened", WHEN(NUMBER), true},
    {"touched", WHEN(NUMBER), true}, {"kinds", WHEN(TEXTS), false}, {"events", WHEN(LIST), false}};
static const struct when_name event_names[] = {{"id", WHEN(TEXT), true},   {"kind", WHEN(TEXT), false},
                                               {"data", WHEN_ANY, false},  {"amount", WHEN(NUMBER), false},
                                               {"time", WHEN(TEXT), true}, {"late", WHEN(BOOL), false}};
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(struct slice token, const char *word)
{
    return slice_equal_ignoring_case(token, slice_of(word));
}

/* Words of the language, and its functions. */
static bool is_language(struct slice word)
{
    static const char *const words[] = {"and",
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
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (is_word(word, words[i])) return true;
    return false;
}

static const struct when_name *name_find(const struct when_name *names, size_t count, struct slice word)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(word, slice_of(names[i].name))) return &names[i];
    return NULL;
}

/* The next piece of it: a word with its # or :, or another character; empty at the end. */
static struct slice when_token(struct slice *rest)
{
    while (rest->len && rest->data[0] == ' ') *rest = slice_from(*rest, 1);
    size_t len = rest->len > 0;
    bool has_mark = rest->len && (rest->data[0] == '#' || rest->data[0] == ':');
    if (has_mark || (rest->len && is_letter(rest->data[0])))
        while (len < rest->len &&
               (is_letter(rest->data[len]) || (rest->data[len] >= '0' && rest->data[len] <= '9')))
            len++;
    else if (rest->len && memchr("<>=", rest->data[0], 3))
        while (len < rest->len && memchr("<>=", rest->data[len], 3)) len++;
    struct slice token = {rest->data, len};
    *rest = slice_from(*rest, len);
    return token;
}

/* ---- a walk over the condition ---- */

struct when {
    struct flow *flow;
    struct slice rest, token; /* what is left, and the piece that is looked at */
    struct slice values;      /* a plain object */
    struct slice folds;       /* ... and another */
    unsigned nested;
    bool negated; /* by an odd number of "not" */
    const char *fault;
    bool stuck; /* it is not understood here; or there is a fault */
};

struct when_operand {
    unsigned types;
    struct slice shown;
    bool is_value;
    bool always; /* what it names is in every group */
};

static void when_next(struct when *when)
{
    when->token = when_token(&when->rest);
}

static bool when_takes(struct when *when, const char *word)
{
    bool is = is_word(when->token, word);
    if (is) when_next(when);
    return is;
}

static void when_expects(struct when *when, const char *word)
{
    if (!when_takes(when, word)) when->stuck = true;
}

static void when_fails(struct when *when, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void when_fails(struct when *when, const char *format, ...)
{
    va_list args;
    if (when->stuck) return;
    va_start(args, format);
    when->fault = arena_vprintf(when->flow->arena, format, args).data;
    va_end(args);
    when->stuck = true;
}

static const char *called(unsigned types)
{
    for (unsigned i = 0; i < WHEN_TYPE_COUNT; i++)
        if (types == 1u << i) return type_words[i].called;
    return types == WHEN_SET                      ? "a set"
           : types == (WHEN(NUMBER) | WHEN(TEXT)) ? "a number or a text"
                                                  : "anything";
}

static struct slice without_mark(struct slice token)
{
    return token.len && token.data[0] == '#' ? slice_from(token, 1) : token;
}

/* A name of the rules' fold. */
static bool fold_find(struct flow *flow, struct slice folds, struct slice word, struct when_name *out)
{
    static const unsigned types[] = {[GROUP_FOLD_NUMBER] = WHEN(NUMBER),
                                     [GROUP_FOLD_SCALAR] = WHEN(NUMBER) | WHEN(TEXT),
                                     [GROUP_FOLD_SET] = WHEN_SET,
                                     [GROUP_FOLD_ANY] = WHEN_ANY};
    struct slice name = arena_printf(flow->arena, "%.*s", SLICE_ARG(word));
    struct slice fold = raw_member(flow->arena, folds, name.data);
    if (!fold.data) return false;
    enum group_fold_type type = group_fold_type(flow, fold);
    *out = (struct when_name){name.data, types[type], type == GROUP_FOLD_NUMBER};
    return true;
}

/* ".name" or "[7]" behind what has such parts. */
static void part_take(struct when *when, struct when_operand *path, bool *in_event)
{
    bool is_member = is_word(when->token, ".");
    const char *start = when->token.data;
    when_next(when);
    if (path->types != WHEN_ANY && path->types != (is_member ? WHEN(MAP) : WHEN(LIST))) {
        when_fails(when, "%.*s is %s, which has no %s", SLICE_ARG(path->shown), called(path->types),
                   is_member ? "members" : "places");
    } else if (!is_member) {
        while (when->token.len && !is_word(when->token, "]")) when_next(when);
        *in_event = path->types == WHEN(LIST);
        if (*in_event) path->types = WHEN(MAP);
    } else if (*in_event) {
        const struct when_name *name = name_find(event_names, COUNT_OF(event_names),
                                                 without_mark(when->token));
        if (!name)
            when_fails(when, "there is no \"%.*s\" in an event, only id, kind, data, amount, time and late",
                       SLICE_ARG(flow_shown(without_mark(when->token))));
        else
            path->types = name->types;
        *in_event = false;
    }
    path->always = false;
    struct slice part = {start, (size_t)(when->token.data + when->token.len - start)};
    if (is_member) part = arena_printf(when->flow->arena, ".%.*s", SLICE_ARG(without_mark(when->token)));
    path->shown = arena_printf(when->flow->arena, "%.*s%.*s", SLICE_ARG(path->shown), SLICE_ARG(part));
    when_next(when);
}

static struct when_operand value_take(struct when *when)
{
    static const unsigned types[] = {
        [JSON_STRING] = WHEN(TEXT), [JSON_NUMBER] = WHEN(NUMBER), [JSON_TRUE] = WHEN(BOOL),
        [JSON_FALSE] = WHEN(BOOL),  [JSON_NULL] = WHEN(NULL),     [JSON_ARRAY] = WHEN(LIST),
        [JSON_OBJECT] = WHEN(MAP)};
    struct slice name = arena_printf(when->flow->arena, "%.*s", SLICE_ARG(when->token));
    struct slice given = raw_member(when->flow->arena, when->values, name.data);
    if (!given.data) when->stuck = true;
    enum json_kind kind = raw_kind(given);
    when_next(when);
    return (struct when_operand){.types = !when->stuck && (size_t)kind < COUNT_OF(types) ? types[kind]
                                                                                         : WHEN_ANY,
                                 .shown = flow_shown(given),
                                 .is_value = true};
}

static struct when_operand operand_take(struct when *when)
{
    struct when_operand operand = {.types = WHEN_ANY, .shown = without_mark(when->token)};
    bool in_event = false;
    if (when->token.len && when->token.data[0] == ':') return value_take(when);
    if (when_takes(when, "size")) {
        when_expects(when, "(");
        struct when_operand path = operand_take(when);
        if (path.types == WHEN(NUMBER) || path.types == WHEN(BOOL))
            when_fails(when, "%.*s is %s, which has no size", SLICE_ARG(path.shown), called(path.types));
        when_expects(when, ")");
        return (struct when_operand){
            .types = WHEN(NUMBER),
            .shown = arena_printf(when->flow->arena, "size(%.*s)", SLICE_ARG(path.shown))};
    }
    const struct when_name *name = name_find(group_names, COUNT_OF(group_names), operand.shown);
    struct when_name folded;
    if (!name && fold_find(when->flow, when->folds, operand.shown, &folded)) name = &folded;
    if (!name) when->stuck = true;
    if (when->stuck) return operand;
    operand.types = name->types;
    operand.always = name->always;
    when_next(when);
    while (!when->stuck && (is_word(when->token, ".") || is_word(when->token, "[")))
        part_take(when, &operand, &in_event);
    return operand;
}

/* ---- what compares ---- */

static void types_compare(struct when *when, const struct when_operand *a, const struct when_operand *b,
                          bool by_order)
{
    const struct when_operand *name = a->is_value ? b : a, *other = a->is_value ? a : b;
    const unsigned ordered = WHEN(NUMBER) | WHEN(TEXT);
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

static void comparison_take(struct when *when)
{
    struct when_operand left = operand_take(when), right;
    bool by_order = when->token.len && !is_word(when->token, "=") && !is_word(when->token, "<>");
    if (when->token.len && memchr("<>=", when->token.data[0], 3)) {
        when_next(when);
        right = operand_take(when);
        types_compare(when, &left, &right, by_order);
    } else if (when_takes(when, "between")) {
        right = operand_take(when);
        types_compare(when, &left, &right, true);
        when_expects(when, "and");
        right = operand_take(when);
        types_compare(when, &left, &right, true);
    } else if (when_takes(when, "in")) {
        when_expects(when, "(");
        do {
            right = operand_take(when);
            types_compare(when, &left, &right, false);
        } while (!when->stuck && when_takes(when, ","));
        when_expects(when, ")");
    } else {
        when->stuck = true;
    }
}

/* ---- functions that say yes or no ---- */

static void begins_check(struct when *when, const struct when_operand *path, const struct when_operand *with)
{
    if (!(path->types & WHEN(TEXT)))
        when_fails(when, "%.*s is %s, which begins with nothing", SLICE_ARG(path->shown),
                   called(path->types));
    else if (!(with->types & WHEN(TEXT)))
        when_fails(when, "%.*s is %s, and a text begins with a text only", SLICE_ARG(with->shown),
                   called(with->types));
}

static void contains_check(struct when *when, const struct when_operand *in, const struct when_operand *what)
{
    const unsigned holders = WHEN(TEXT) | WHEN_SET | WHEN(LIST);
    bool is_events = in->types == WHEN(LIST) && is_word(in->shown, "events");
    if (!(in->types & holders))
        when_fails(when, "%.*s is %s, which contains nothing", SLICE_ARG(in->shown), called(in->types));
    else if (in->types == WHEN(TEXTS) && !(what->types & WHEN(TEXT)))
        when_fails(when, "kinds are texts, and it looks for %.*s among them", SLICE_ARG(what->shown));
    else if (in->types == WHEN_SET && !(what->types & (WHEN(TEXT) | WHEN(NUMBER))))
        when_fails(when, "%.*s is a set of texts or numbers, and it looks for %.*s among them",
                   SLICE_ARG(in->shown), SLICE_ARG(what->shown));
    else if (in->types == WHEN(TEXT) && !(what->types & WHEN(TEXT)))
        when_fails(when, "%.*s is a text, and it looks for %.*s in it", SLICE_ARG(in->shown),
                   SLICE_ARG(what->shown));
    else if (is_events && !(what->types & WHEN(MAP)))
        when_fails(when, "events are objects, and it looks for %.*s among them", SLICE_ARG(what->shown));
}

static void type_check(struct when *when, const struct when_operand *path, const struct when_operand *type)
{
    struct slice letters = raw_text(when->flow->arena, type->shown);
    for (unsigned i = 0; i < WHEN_TYPE_COUNT; i++)
        if ((path->types & 1u << i) && slice_equal(letters, slice_of(type_words[i].letter))) return;
    if (path->types != WHEN_ANY)
        when_fails(when, "%.*s is %s, and no attribute of the type %.*s", SLICE_ARG(path->shown),
                   called(path->types), SLICE_ARG(type->shown));
}

static bool function_take(struct when *when, const char *word,
                          void (*check)(struct when *, const struct when_operand *,
                                        const struct when_operand *))
{
    if (!when_takes(when, word)) return false;
    when_expects(when, "(");
    struct when_operand first = operand_take(when), second = {0};
    if (check) {
        when_expects(when, ",");
        second = operand_take(when);
        if (!when->stuck) check(when, &first, &second);
    } else if (first.always && when->negated != (strcmp(word, "attribute_not_exists") == 0)) {
        when_fails(when, "%.*s is in every group", SLICE_ARG(first.shown));
    }
    when_expects(when, ")");
    return true;
}

static void or_take(struct when *when);

static void unit_take(struct when *when)
{
    bool negated = when->negated;
    if (when->stuck) return;
    while (when_takes(when, "not")) when->negated = !when->negated;
    if (is_word(when->token, "(")) {
        if (++when->nested > NESTED_MOST) when->stuck = true;
        when_next(when);
        or_take(when);
        when_expects(when, ")");
        when->nested--;
    } else if (!function_take(when, "begins_with", begins_check) &&
               !function_take(when, "contains", contains_check) &&
               !function_take(when, "attribute_type", type_check) &&
               !function_take(when, "attribute_exists", NULL) &&
               !function_take(when, "attribute_not_exists", NULL))
        comparison_take(when);
    when->negated = negated;
}

/* Which of "and" and "or" binds more does not matter for types. */
static void or_take(struct when *when)
{
    do unit_take(when);
    while (!when->stuck && (when_takes(when, "and") || when_takes(when, "or")));
}

/* Names that groups do not have, wherever they stand. */
static const char *names_fault(struct flow *flow, struct slice expression, struct slice folds)
{
    struct slice before = SLICE(""), token;
    struct when_name folded;
    while ((token = when_token(&expression)).len) {
        bool is_name = token.data[0] == '#' || (is_letter(token.data[0]) && !is_language(token));
        if (is_name && !is_word(before, ".") &&
            !name_find(group_names, COUNT_OF(group_names), without_mark(token)) &&
            !fold_find(flow, folds, without_mark(token), &folded))
            return arena_printf(flow->arena,
                                "there is no \"%.*s\" in a group, only count, sum, kinds, opened, touched%s",
                                SLICE_ARG(flow_shown(without_mark(token))),
                                folds.data ? ", events and the names of fold" : " and events")
                .data;
        before = token;
    }
    return NULL;
}

bool group_when_knows(struct slice word)
{
    for (size_t i = 0; i < COUNT_OF(group_names); i++)
        if (is_word(word, group_names[i].name)) return true;
    return is_language(word);
}

const char *group_when_fault(struct flow *flow, struct slice expression, struct slice values,
                             struct slice folds)
{
    struct when when = {.flow = flow, .rest = expression, .values = values, .folds = folds};
    const char *fault = names_fault(flow, expression, folds);
    if (fault) return fault;
    when_next(&when);
    or_take(&when);
    return when.fault;
}
