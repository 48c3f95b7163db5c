/* Groups: conditions as people write them, "count >= 3 and contains(kinds, 'vip')", as DynamoDB takes them.
 * What is written in its own way (#count) stays as it is. Called by group_put.c. */
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

/* ---- words and types ---- */

enum when_type { WHEN_NONE, WHEN_NUMBER, WHEN_KINDS, WHEN_EVENTS };
static const struct {
    const char *name;
    enum when_type type;
} attributes[] = {{"count", WHEN_NUMBER},  {"sum", WHEN_NUMBER},  {"opened", WHEN_NUMBER},
                  {"touched", WHEN_NUMBER}, {"kinds", WHEN_KINDS}, {"events", WHEN_EVENTS}};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Words of the language, and its functions. */
static bool is_language(struct slice word)
{
    static const char *const words[] = {"and",         "or",       "not",    "between",          "in",
                                        "begins_with", "contains", "size",   "attribute_exists", "attribute_type",
                                        "attribute_not_exists"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal_ignoring_case(word, slice_of(words[i]))) return true;
    return false;
}

static enum when_type type_of(struct slice word)
{
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (slice_equal(word, slice_of(attributes[i].name))) return attributes[i].type;
    return WHEN_NONE;
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

static bool is_comparison(struct slice token)
{
    return token.len && memchr("<>=", token.data[0], 3);
}

/* What a value is compared with must be of its type, or it never holds. */
static const char *value_fault(struct flow *flow, struct slice attribute, struct slice value, struct slice values)
{
    struct slice name = arena_printf(flow->arena, "%.*s", SLICE_ARG(value));
    struct slice given = raw_member(flow->arena, values, name.data);
    if (!given.data || raw_kind(given) == JSON_NUMBER) return NULL;
    return arena_printf(flow->arena, "%.*s is a number, which it compares with %.*s", SLICE_ARG(attribute),
                        SLICE_ARG(flow_shown(given)))
        .data;
}

static bool is_word(struct slice token, const char *word)
{
    return slice_equal_ignoring_case(token, slice_of(word));
}

/* The kinds are texts: nothing else is among them. */
static const char *kind_fault(struct flow *flow, struct slice value, struct slice values)
{
    struct slice name = arena_printf(flow->arena, "%.*s", SLICE_ARG(value));
    struct slice given = raw_member(flow->arena, values, name.data);
    if (!given.data || raw_kind(given) == JSON_STRING) return NULL;
    return arena_printf(flow->arena, "kinds are texts, and it looks for %.*s among them",
                        SLICE_ARG(flow_shown(given)))
        .data;
}

/* What stands behind "between", "in" and "contains(": the attribute in question, and whose values follow. */
struct when_list {
    enum { LIST_NONE, LIST_BETWEEN, LIST_IN, LIST_CONTAINS } kind;
    struct slice attribute;
    unsigned values; /* so far */
};

static const char *list_take(struct flow *flow, struct when_list *list, struct slice before, struct slice token,
                             struct slice values)
{
    struct slice word = token.data[0] == '#' ? slice_from(token, 1) : token;
    if (is_word(token, "between") || is_word(token, "in")) {
        struct slice name = before.len && before.data[0] == '#' ? slice_from(before, 1) : before;
        *list = (struct when_list){is_word(token, "in") ? LIST_IN : LIST_BETWEEN, name, 0};
        return NULL;
    }
    if (is_word(token, "contains")) *list = (struct when_list){LIST_CONTAINS, SLICE(""), 0};
    if (list->kind == LIST_NONE) return NULL;
    if (list->kind == LIST_CONTAINS && type_of(word) != WHEN_NONE && !list->attribute.len) {
        list->attribute = word;
        if (type_of(word) == WHEN_NUMBER)
            return arena_printf(flow->arena, "%.*s is a number, which contains nothing", SLICE_ARG(word)).data;
    }
    if (token.data[0] == ')') list->kind = LIST_NONE;
    if (token.data[0] != ':') return NULL;
    list->values++;
    enum when_type type = type_of(list->attribute);
    const char *fault = NULL;
    if (list->kind == LIST_CONTAINS && type == WHEN_KINDS)
        fault = kind_fault(flow, token, values);
    else if (list->kind != LIST_CONTAINS && type == WHEN_NUMBER)
        fault = value_fault(flow, list->attribute, token, values);
    if (list->kind == LIST_BETWEEN && list->values == 2) list->kind = LIST_NONE;
    return fault;
}

const char *group_when_fault(struct flow *flow, struct slice expression, struct slice values)
{
    struct slice before = SLICE(""), compared = SLICE(""), token, left = SLICE("");
    struct when_list list = {0};
    while ((token = when_token(&expression)).len) {
        bool is_name = token.data[0] == '#' || (is_letter(token.data[0]) && !is_language(token));
        bool is_path = before.len == 1 && before.data[0] == '.';
        struct slice word = token.data[0] == '#' ? slice_from(token, 1) : token;
        if (is_name && !is_path && type_of(word) == WHEN_NONE)
            return arena_printf(flow->arena,
                                "there is no \"%.*s\" in a group, only count, sum, kinds, opened, touched and events",
                                SLICE_ARG(flow_shown(word)))
                .data;
        const char *fault = is_path ? NULL : list_take(flow, &list, before, token, values);
        if (token.data[0] == ':' && is_comparison(before) && type_of(compared) == WHEN_NUMBER)
            fault = value_fault(flow, compared, token, values);
        if (is_name && type_of(word) == WHEN_NUMBER && is_comparison(before) && left.len && left.data[0] == ':')
            fault = value_fault(flow, word, left, values);
        if (fault) return fault;
        if (is_comparison(token)) {
            left = before;
            compared = before.len && before.data[0] == '#' ? slice_from(before, 1) : before;
        }
        before = token;
    }
    return NULL;
}
