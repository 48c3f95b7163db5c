/* Nodes that no text has: what short languages are translated into. They stand where the thing stands that they come
 * from, so that errors and notes name a line that somebody has written. */
#include "base/fail.h"
#include "template/internal.h"

struct node *make_node(struct arena *arena, enum json_kind kind, const struct node *where)
{
    struct node *node = arena_new(arena, struct node);
    node->kind = kind;
    node->line = where ? where->line : 0;
    node->column = where ? where->column : 0;
    return node;
}

struct node *make_text(struct arena *arena, const struct node *where, struct slice text)
{
    struct node *node = make_node(arena, JSON_STRING, where);
    node->text = text;
    return node;
}

struct node *make_copy(struct arena *arena, const struct node *value, struct slice name)
{
    struct node *node = arena_new(arena, struct node);
    *node = *value;
    node->name = name;
    node->next = NULL;
    return node;
}

void make_append(struct node *parent, struct node *child)
{
    const struct node **end = &parent->first;
    while (*end) end = (const struct node **)&((struct node *)*end)->next;
    *end = child;
}

void make_set(struct arena *arena, struct node *object, struct slice name, const struct node *value)
{
    struct node *member = make_copy(arena, value, name);
    const struct node **end = &object->first;
    while (*end && !slice_equal((*end)->name, name)) end = (const struct node **)&((struct node *)*end)->next;
    if (*end) member->next = (*end)->next;
    *end = member;
}

bool node_is_call(const struct node *value, const char *name, const struct node **argument)
{
    if (!value || value->kind != JSON_OBJECT || !value->first || value->first->next) return false;
    if (!slice_equal(value->first->name, slice_of(name))) return false;
    *argument = value->first;
    return true;
}

bool node_is_plain(const struct node *value)
{
    return value && (value->kind == JSON_STRING || value->kind == JSON_NUMBER);
}

static bool is_call(const struct node *value)
{
    return value->first && !value->first->next &&
           (slice_equal(value->first->name, SLICE("Ref")) || slice_starts(value->first->name, SLICE("Fn::")));
}

const struct node *make_merged(struct arena *arena, const struct node *lower, const struct node *upper)
{
    if (lower->kind != upper->kind || (upper->kind != JSON_OBJECT && upper->kind != JSON_ARRAY)) return upper;
    if (is_call(lower) || is_call(upper)) return upper;
    struct node *made = make_node(arena, upper->kind, upper);
    const struct node **end = &made->first;
    for (const struct node *member = lower->first; member; member = member->next) {
        const struct node *other = upper->kind == JSON_OBJECT ? upper->first : NULL;
        while (other && !slice_equal(other->name, member->name)) other = other->next;
        struct node *copy = make_copy(arena, other ? make_merged(arena, member, other) : member,
                                      member->name);
        *end = copy;
        end = &copy->next;
    }
    for (const struct node *member = upper->first; member; member = member->next) {
        const struct node *other = upper->kind == JSON_OBJECT ? lower->first : NULL;
        while (other && !slice_equal(other->name, member->name)) other = other->next;
        if (other) continue;
        struct node *copy = make_copy(arena, member, member->name);
        *end = copy;
        end = &copy->next;
    }
    return made;
}

/* ---- trees by formats ---- */

struct format {
    struct arena *arena;
    const struct node *where;
    const char *at;
    va_list args;
};

static struct node *format_value(struct format *format);

struct node *make_tree(struct arena *arena, const struct node *where, const char *text, ...)
{
    struct format format = {.arena = arena, .where = where, .at = text};
    va_start(format.args, text);
    struct node *node = format_value(&format);
    va_end(format.args);
    ensure(node && !*format.at);
    return node;
}

static struct slice format_quoted(struct format *format)
{
    ensure(*format->at == '\'');
    const char *start = ++format->at;
    while (*format->at && *format->at != '\'') format->at++;
    ensure(*format->at);
    return (struct slice){start, (size_t)(format->at++ - start)};
}

static struct node *format_children(struct format *format, enum json_kind kind, char close)
{
    struct node *parent = make_node(format->arena, kind, format->where);
    const struct node **end = &parent->first;
    for (format->at++; *format->at != close;) {
        struct slice name = SLICE("");
        if (*format->at == ',') format->at++;
        if (kind == JSON_OBJECT) {
            name = format_quoted(format);
            ensure(*format->at == ':');
            format->at++;
        }
        struct node *child = format_value(format);
        if (!child) continue;
        child->name = name;
        *end = child;
        end = &child->next;
    }
    format->at++;
    return parent;
}

static struct node *format_argument(struct format *format)
{
    char kind = format->at[1];
    format->at += 2;
    if (kind == 's') {
        struct slice text = va_arg(format->args, struct slice);
        return text.data ? make_text(format->arena, format->where, text) : NULL;
    }
    if (kind == 'n') {
        const struct node *value = va_arg(format->args, const struct node *);
        return value ? make_copy(format->arena, value, SLICE("")) : NULL;
    }
    ensure(kind == 'd');
    struct node *number = make_node(format->arena, JSON_NUMBER, format->where);
    number->text = arena_printf(format->arena, "%d", va_arg(format->args, int));
    return number;
}

static struct node *format_value(struct format *format)
{
    switch (*format->at) {
    case '{': return format_children(format, JSON_OBJECT, '}');
    case '[': return format_children(format, JSON_ARRAY, ']');
    case '\'': return make_text(format->arena, format->where, format_quoted(format));
    case '%': return format_argument(format);
    default: break;
    }
    bool truth = strncmp(format->at, "true", 4) == 0;
    ensure(truth || strncmp(format->at, "false", 5) == 0);
    format->at += truth ? 4 : 5;
    return make_node(format->arena, truth ? JSON_TRUE : JSON_FALSE, format->where);
}
