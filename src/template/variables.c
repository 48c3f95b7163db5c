/* Variables of serverless.yml: ${self:custom.x}, ${opt:stage, 'dev'}, ${env:X}, ${file(x.yml):a.b}, ${param:x},
 * ${sls:stage}, ${aws:region}. A text that is one variable becomes what it stands for, also an object; within a longer
 * text it must be a text. ${Name} and ${AWS::Name} are CloudFormation's and stay.
 *
 * A variable may hold variables, in its name and in what it stands for. All nodes that are made are counted, since ten
 * lines can stand for more than there is memory; so is the depth, since a variable may stand for itself. */
#include "base/limits.h"
#include "template/internal.h"

struct filler {
    struct template *template;
    struct arena *arena;
    const struct node *root;
    unsigned depth;
};

enum found { FOUND, MISSING, STRANGE /* a source that is not known here */, FAULT };

static const struct node *fill(struct filler *filler, const struct node *value);
static enum found find_variable(struct filler *filler, const struct node *where, struct slice text,
                                const struct node **out);

const struct node *variables_fill(struct template *template, const struct node *root)
{
    struct filler filler = {template, template->arena, root, 0};
    template->work = 0;
    return fill(&filler, root);
}

/* ---- any value ---- */

static bool count(struct filler *filler, const struct node *where, size_t amount)
{
    filler->template->work += amount;
    if (filler->template->work <= LIMIT_TEMPLATE_WORK) return true;
    return template_fail(filler->template, where, "the variables stand for too much text");
}

/* The end of the variable that begins at ${; NULL: it has none. */
static const char *variable_end(struct slice text)
{
    unsigned depth = 0;
    for (const char *at = text.data; at < text.data + text.len; at++) {
        if (*at == '$' && at + 1 < text.data + text.len && at[1] == '{') depth++;
        if (*at == '}' && --depth == 0) return at;
    }
    return NULL;
}

/* CloudFormation's own variables have no source before a colon. */
static bool is_ours(struct slice inner)
{
    size_t at = 0;
    while (at < inner.len && ((inner.data[at] >= 'a' && inner.data[at] <= 'z') ||
                              (inner.data[at] >= 'A' && inner.data[at] <= 'Z') || inner.data[at] == '-'))
        at++;
    if (!at || at == inner.len) return false;
    if (inner.data[at] == '(') return true;
    return inner.data[at] == ':' && (at + 1 == inner.len || inner.data[at + 1] != ':');
}

static bool scalar_text(const struct node *value, struct slice *text)
{
    switch (value->kind) {
    case JSON_STRING:
    case JSON_NUMBER: *text = value->text; return true;
    case JSON_TRUE: *text = SLICE("true"); return true;
    case JSON_FALSE: *text = SLICE("false"); return true;
    case JSON_NULL: *text = SLICE(""); return true;
    default: return false;
    }
}

/* A text with its variables filled in, as text; false after template_fail. */
static bool fill_text(struct filler *filler, const struct node *where, struct slice text, struct slice *out)
{
    struct buf made = {0};
    bool fine = true;
    while (fine && text.len) {
        const char *open = memmem(text.data, text.len, "${", 2);
        const char *close = open ? variable_end(slice_from(text, (size_t)(open - text.data))) : NULL;
        if (!close) {
            buf_slice(&made, text);
            break;
        }
        struct slice whole = {open, (size_t)(close + 1 - open)},
                     inner = {open + 2, (size_t)(close - open - 2)}, part;
        buf_put(&made, text.data, (size_t)(open - text.data));
        text = slice_from(text, (size_t)(close + 1 - text.data));
        const struct node *value = NULL;
        enum found found = is_ours(inner) ? find_variable(filler, where, inner, &value) : STRANGE;
        if (found == FAULT)
            fine = false;
        else if (found == STRANGE)
            buf_slice(&made, whole);
        else if (found == MISSING)
            fine = template_fail(filler->template, where, "'%.*s' stands for nothing: there is no such value",
                                 SLICE_ARG(whole));
        else if (!scalar_text(value, &part))
            fine = template_fail(filler->template, where, "'%.*s' is no text, and stands within one",
                                 SLICE_ARG(whole));
        else
            buf_slice(&made, part);
        fine = fine && count(filler, where, made.len);
    }
    *out = arena_take(filler->arena, &made);
    return fine;
}

static const struct node *fill_string(struct filler *filler, const struct node *value)
{
    struct slice text = value->text;
    if (!memmem(text.data ? text.data : "", text.len, "${", 2)) return value;
    const char *end = slice_starts(text, SLICE("${")) ? variable_end(text) : NULL;
    if (end && end == text.data + text.len - 1) {
        struct slice inner = {text.data + 2, text.len - 3};
        const struct node *found_value = NULL;
        if (!is_ours(inner)) return value;
        switch (find_variable(filler, value, inner, &found_value)) {
        case FOUND: return found_value;
        case STRANGE: return value;
        case FAULT: return NULL;
        case MISSING: break;
        }
        template_fail(filler->template, value, "'%.*s' stands for nothing: there is no such value",
                      SLICE_ARG(text));
        return NULL;
    }
    struct slice made;
    if (!fill_text(filler, value, text, &made)) return NULL;
    return make_text(filler->arena, value, made);
}

static const struct node *fill_value(struct filler *filler, const struct node *value)
{
    if (value->kind == JSON_STRING) return fill_string(filler, value);
    /* YAML 1.2: `on` and `yes` are words. */
    if ((value->kind == JSON_TRUE || value->kind == JSON_FALSE) && value->text.len &&
        !slice_equal_ignoring_case(value->text, SLICE("true")) &&
        !slice_equal_ignoring_case(value->text, SLICE("false")))
        return make_text(filler->arena, value, value->text);
    if (value->kind != JSON_OBJECT && value->kind != JSON_ARRAY) return value;
    struct node *made = make_node(filler->arena, value->kind, value);
    const struct node **end = &made->first;
    for (const struct node *child = value->first; child; child = child->next) {
        const struct node *filled = fill(filler, child);
        struct slice name = child->name;
        if (!filled) return NULL;
        if (memmem(name.data ? name.data : "", name.len, "${", 2) && !fill_text(filler, child, name, &name))
            return NULL;
        struct node *copy = make_copy(filler->arena, filled, name);
        *end = copy;
        end = &copy->next;
    }
    return made;
}

static const struct node *fill(struct filler *filler, const struct node *value)
{
    if (!count(filler, value, sizeof *value)) return NULL;
    if (filler->depth >= LIMIT_TEMPLATE_DEPTH) {
        template_fail(filler->template, value, "variables stand for each other, without an end");
        return NULL;
    }
    filler->depth++;
    const struct node *made = fill_value(filler, value);
    filler->depth--;
    return made;
}

/* ---- sources ---- */

static const struct template_given *given_option(const struct template *template, struct slice name)
{
    for (size_t i = 0; i < template->world->given_count; i++)
        if (slice_equal(template->world->given[i].name, name)) return &template->world->given[i];
    return NULL;
}

/* a.b.0.c within a value. What stands on the way may be a variable itself. */
static enum found walk(struct filler *filler, const struct node *where, const struct node *from,
                       struct slice path, const struct node **out)
{
    while (path.len) {
        struct slice name = slice_cut(&path, '.');
        if (from->kind == JSON_STRING && !(from = fill(filler, from))) return FAULT;
        const struct node *child = from->first;
        unsigned long long index;
        size_t passed = 0;
        if (from->kind == JSON_ARRAY && slice_to_u64(name, LIMIT_TEMPLATE_NODES, &index))
            for (; child && index; index--, passed++) child = child->next;
        else
            for (; child && !slice_equal(child->name, name); passed++) child = child->next;
        if (!count(filler, where, 64 + passed)) return FAULT;
        if (!child) return MISSING;
        from = child;
    }
    if (from->kind == JSON_NULL) return MISSING;
    *out = fill(filler, from);
    return *out ? FOUND : FAULT;
}

static enum found find_stage(struct filler *filler, const struct node *where, const struct node **out)
{
    const struct template_given *given = given_option(filler->template, SLICE("stage"));
    const struct node *own = node_member(node_member(filler->root, "provider"), "stage");
    if (given)
        *out = make_text(filler->arena, where, given->value);
    else if (own)
        return (*out = fill(filler, own)) ? FOUND : FAULT;
    else
        *out = make_text(filler->arena, where, SLICE("dev"));
    return FOUND;
}

static enum found find_self(struct filler *filler, const struct node *where, struct slice path,
                            const struct node **out)
{
    enum found found = walk(filler, where, filler->root, path, out);
    if (found != MISSING) return found;
    if (slice_equal(path, SLICE("provider.stage"))) return find_stage(filler, where, out);
    if (!slice_equal(path, SLICE("provider.region"))) return MISSING;
    *out = make_text(filler->arena, where, filler->template->world->region);
    return FOUND;
}

static enum found find_param(struct filler *filler, const struct node *where, struct slice name,
                             const struct node **out)
{
    const struct template_given *given = given_option(filler->template, name);
    const struct node *params = node_member(filler->root, "params"), *stage = NULL, *group;
    if (given) {
        *out = make_text(filler->arena, where, given->value);
        return FOUND;
    }
    if (!params || find_stage(filler, where, &stage) == FAULT) return params ? FAULT : MISSING;
    for (int i = 0; i < 2; i++) {
        struct slice wanted = i ? SLICE("default") : stage->text;
        for (group = params->first; group && !slice_equal(group->name, wanted);) group = group->next;
        enum found found = group ? walk(filler, where, group, name, out) : MISSING;
        if (found != MISSING) return found;
    }
    return MISSING;
}

/* Nodes of another file stand where they are asked for. */
static void stand_at(struct node *value, const struct node *where)
{
    value->line = where->line;
    value->column = where->column;
    for (const struct node *child = value->first; child; child = child->next)
        stand_at((struct node *)child, where);
}

/* file(path):a.b */
static enum found find_file(struct filler *filler, const struct node *where, struct slice text,
                            const struct node **out)
{
    const struct template_world *world = filler->template->world;
    struct slice path = slice_cut(&text, ')');
    if (text.len && text.data[0] == ':') text = slice_from(text, 1);
    while (path.len && path.data[0] == ' ') path = slice_from(path, 1);
    while (path.len && path.data[path.len - 1] == ' ') path.len--;
    const char *dot = path.len ? memrchr(path.data, '.', path.len) : NULL;
    struct slice ending = dot ? (struct slice){dot, (size_t)(path.data + path.len - dot)} : SLICE("");
    bool is_tree = slice_equal(ending, SLICE(".yml")) || slice_equal(ending, SLICE(".yaml")) ||
                   slice_equal(ending, SLICE(".json"));
    if (slice_equal(ending, SLICE(".js")) || slice_equal(ending, SLICE(".ts")) ||
        slice_equal(ending, SLICE(".cjs"))) {
        note_put(filler->arena, &filler->template->notes, where,
                 "'%.*s' is a program, which is not run for its value", SLICE_ARG(path));
        return STRANGE;
    }
    struct slice bytes = world->read ? world->read(world->context, filler->arena, path) : SLICE_NONE;
    if (!bytes.data) return MISSING;
    if (!count(filler, where, bytes.len + 1)) return FAULT;
    if (!is_tree) {
        *out = make_text(filler->arena, where, bytes);
        return FOUND;
    }
    struct slice name = arena_printf(filler->arena, "%.*s", SLICE_ARG(path));
    const struct node *tree = template_read(filler->arena, bytes, name.data, &filler->template->notes,
                                            filler->template->error);
    if (!tree) return FAULT;
    stand_at((struct node *)tree, where);
    return walk(filler, where, tree, text, out);
}

static enum found find_source(struct filler *filler, const struct node *where, struct slice text,
                              const struct node **out)
{
    const struct template_world *world = filler->template->world;
    struct slice address = text, source, value = SLICE_NONE;
    if (slice_starts(text, SLICE("file("))) return find_file(filler, where, slice_from(text, 5), out);
    source = slice_cut(&address, ':');
    if (slice_equal(source, SLICE("self"))) return find_self(filler, where, address, out);
    if (slice_equal(source, SLICE("param"))) return find_param(filler, where, address, out);
    if (slice_equal(source, SLICE("opt"))) {
        const struct template_given *given = given_option(filler->template, address);
        if (given) value = given->value;
    } else if (slice_equal(source, SLICE("env"))) {
        if (world->variable) value = world->variable(world->context, filler->arena, address);
    } else if (slice_equal(source, SLICE("sls"))) {
        if (slice_equal(address, SLICE("stage"))) return find_stage(filler, where, out);
        value = SLICE("local");
    } else if (slice_equal(source, SLICE("aws"))) {
        value = slice_equal(address, SLICE("region")) ? world->region : world->account;
    } else
        return STRANGE;
    if (!value.data) return MISSING;
    *out = make_text(filler->arena, where, value);
    return FOUND;
}

/* 'text', "text", a number or a word such as true, as a default may be. */
static bool find_literal(struct filler *filler, const struct node *where, struct slice text,
                         const struct node **out)
{
    size_t last = text.len ? text.len - 1 : 0;
    if (text.len >= 2 && (text.data[0] == '\'' || text.data[0] == '"') && text.data[last] == text.data[0]) {
        *out = make_text(filler->arena, where, (struct slice){text.data + 1, text.len - 2});
        return true;
    }
    if (is_ours(text) || !text.len) return false;
    struct template_notes none = {0};
    char error[TEMPLATE_ERROR_BYTES];
    *out = template_read(filler->arena, text, "default", &none, error);
    if (!*out) return false;
    stand_at((struct node *)*out, where);
    return true;
}

/* What stands before the next comma that is in no quotes and no brackets. */
static struct slice cut_choice(struct slice *rest)
{
    char quote = 0;
    unsigned depth = 0;
    size_t at = 0;
    for (; at < rest->len; at++) {
        char c = rest->data[at];
        if (quote ? c == quote : (c == '\'' || c == '"')) quote = quote ? 0 : c;
        if (quote) continue;
        if (c == '(' || c == '{' || c == '[') depth++;
        if ((c == ')' || c == '}' || c == ']') && depth) depth--;
        if (c == ',' && !depth) break;
    }
    struct slice choice = {rest->data, at};
    *rest = slice_from(*rest, at < rest->len ? at + 1 : at);
    while (choice.len && memchr(" \n\t", choice.data[0], 3)) choice = slice_from(choice, 1);
    while (choice.len && memchr(" \n\t", choice.data[choice.len - 1], 3)) choice.len--;
    return choice;
}

/* The inside of ${...}: choices, of which the first that stands for something counts. */
static enum found find_variable(struct filler *filler, const struct node *where, struct slice text,
                                const struct node **out)
{
    enum found all = MISSING;
    struct slice whole = text;
    if (filler->depth >= LIMIT_TEMPLATE_DEPTH) {
        template_fail(filler->template, where, "variables stand for each other, without an end");
        return FAULT;
    }
    filler->depth++;
    while (text.len && all != FAULT && all != FOUND) {
        struct slice choice = cut_choice(&text), filled;
        if (!count(filler, where, choice.len + 1))
            all = FAULT;
        else if (!fill_text(filler, where, choice, &filled))
            all = FAULT;
        else if (find_literal(filler, where, filled, out))
            all = FOUND;
        else {
            bool has_value = slice_starts(filled, SLICE("strToBool("));
            enum found found = STRANGE;
            if (has_value) {
                bool is_true = slice_contains(filled, SLICE("true")) || slice_contains(filled, SLICE("(1"));
                *out = make_node(filler->arena, is_true ? JSON_TRUE : JSON_FALSE, where);
                found = FOUND;
            } else
                found = find_source(filler, where, filled, out);
            if (found != MISSING) all = found;
        }
    }
    filler->depth--;
    if (all == STRANGE)
        note_put(filler->arena, &filler->template->notes, where,
                 "'${%.*s}' is not known here, and stays as it is", SLICE_ARG(whole));
    return all;
}
