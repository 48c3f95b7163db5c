/* Literals and parameters as values. Where a literal is refused, the fault tells its place in it: "root.a[1]".
 */
#include "partiql/internal.h"

#include <stdarg.h>

#include "base/buf.h"
#include "base/fail.h"

/* ---- faults ---- */

bool ql_refuse(struct ql_binding *binding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    *binding->fault = arena_vprintf(binding->arena, format, args);
    va_end(args);
    return false;
}

bool ql_refuse_at(struct ql_binding *binding, const struct ql_term *term, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice sentence = arena_vprintf(binding->arena, format, args);
    va_end(args);
    *binding->fault = arena_printf(binding->arena, "%.*s at %u:%u:%u", SLICE_ARG(sentence), term->token->line,
                                   term->token->column, term->token->length);
    return false;
}

struct slice ql_term_name(const struct ql_term *term)
{
    switch (term->kind) {
    case TERM_NAME: return SLICE("VariableReference");
    case TERM_STRING:
    case TERM_NUMBER:
    case TERM_BOOL:
    case TERM_NULL:
    case TERM_ION: return SLICE("Literal");
    case TERM_MISSING: return SLICE("MISSING");
    case TERM_PARAMETER: return SLICE("Parameter");
    case TERM_LIST:
    case TERM_BAG: return SLICE("Seq");
    case TERM_STRUCT: return SLICE("Struct");
    case TERM_PATH: return SLICE("Path");
    case TERM_CASE: return SLICE("SearchedCase");
    case TERM_CAST: return SLICE("Typed");
    case TERM_CALL: return slice_equal(term->text, SLICE("sexp")) ? SLICE("Seq") : term->text;
    default: return term->text;
    }
}

bool ql_is_literal(const struct ql_term *term)
{
    switch (term->kind) {
    case TERM_STRING:
    case TERM_NUMBER:
    case TERM_BOOL:
    case TERM_NULL:
    case TERM_ION:
    case TERM_LIST:
    case TERM_BAG:
    case TERM_STRUCT: return true;
    case TERM_CALL: return slice_equal(term->text, SLICE("list")) || slice_equal(term->text, SLICE("bag"));
    default: return false;
    }
}

/* ---- Ion literals, which are refused by their type ---- */

static bool is_word_byte(char c)
{
    return c == '_' || c == '$' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

static struct slice ion_word(struct slice text)
{
    size_t len = 0;
    while (len < text.len && is_word_byte(text.data[len])) len++;
    return (struct slice){text.data, len};
}

/* Without annotations: name::name::value. */
static struct slice ion_bare(struct slice text)
{
    for (;;) {
        text = slice_trim(text);
        struct slice rest = slice_from(text, ion_word(text).len);
        if (rest.len == text.len || !slice_starts(rest, SLICE("::"))) return text;
        text = slice_from(rest, 2);
    }
}

static const char *ion_number_type(struct slice text)
{
    bool has_point = false;
    if (text.len > 4 && (text.data[4] == 'T' || text.data[4] == '-')) return "TIMESTAMP";
    if (text.len > 1 && text.data[0] == '0' && strchr("xXbB", text.data[1])) return "INT";
    for (size_t i = 0; i < text.len; i++) {
        if ((text.data[i] | 32) == 'e') return "FLOAT";
        has_point |= text.data[i] == '.' || (text.data[i] | 32) == 'd';
    }
    return has_point ? "DECIMAL" : "INT";
}

static const char *ion_word_type(struct arena *arena, struct slice text)
{
    struct slice word = ion_word(text), rest = slice_from(text, word.len);
    if (slice_equal(word, SLICE("true")) || slice_equal(word, SLICE("false"))) return "BOOL";
    if (slice_equal(word, SLICE("nan"))) return "FLOAT";
    if (!slice_equal(word, SLICE("null"))) return "SYMBOL";
    if (!slice_starts(rest, SLICE("."))) return "NULL";
    struct slice type = arena_copy(arena, ion_word(slice_from(rest, 1)));
    char *letters = (char *)type.data;
    for (size_t i = 0; i < type.len; i++)
        if (letters[i] >= 'a') letters[i] = (char)(letters[i] - 32);
    return arena_printf(arena, "%.*s", SLICE_ARG(type)).data;
}

static const char *ion_type(struct arena *arena, struct slice text)
{
    text = ion_bare(text);
    if (slice_starts(text, SLICE("{{"))) {
        text = slice_trim(slice_from(text, 2));
        return text.len && strchr("\"'", text.data[0]) ? "CLOB" : "BLOB";
    }
    if (slice_starts(text, SLICE("\'\'\'"))) return "STRING";
    if (slice_starts(text, SLICE("+inf")) || slice_starts(text, SLICE("-inf"))) return "FLOAT";
    if (slice_starts(text, SLICE("-"))) text = slice_from(text, 1);
    switch (text.len ? text.data[0] : 0) {
    case '{': return "STRUCT";
    case '[': return "LIST";
    case '(': return "SEXP";
    case '"': return "STRING";
    case '\'': return "SYMBOL";
    default: break;
    }
    bool is_number = text.len && text.data[0] >= '0' && text.data[0] <= '9';
    return is_number ? ion_number_type(text) : ion_word_type(arena, text);
}

/* ---- values ---- */

/* Where a value stands in its literal. */
struct place {
    const struct place *parent; /* NULL: the root */
    struct slice name;          /* of a member; else an element */
    uint32_t index;
};

static void put_place(struct buf *out, const struct place *place)
{
    if (!place->parent) {
        buf_text(out, "root");
        return;
    }
    put_place(out, place->parent);
    if (place->name.data)
        buf_printf(out, ".%.*s", SLICE_ARG(place->name));
    else
        buf_printf(out, "[%u]", place->index);
}

static struct slice place_text(struct ql_binding *binding, const struct place *place)
{
    struct buf text = {0};
    put_place(&text, place);
    return arena_take(binding->arena, &text);
}

static bool bind_literal(struct ql_binding *binding, const struct ql_term *term, const struct place *place,
                         unsigned depth, struct value *out);

static bool bind_number(struct ql_binding *binding, const struct ql_term *term, const struct place *place,
                        struct slice *out)
{
    struct slice text = term->text, where;
    if (term->negative) text = arena_printf(binding->arena, "-%.*s", SLICE_ARG(text));
    enum number_fault fault = number_canonical(binding->arena, text, out);
    if (fault == NUMBER_OK) return true;
    where = place_text(binding, place);
    if (fault == NUMBER_OVERFLOW)
        return ql_refuse(binding,
                         "Number overflow. Attempting to store a number with magnitude larger than supported "
                         "range under %.*s",
                         SLICE_ARG(where));
    if (fault == NUMBER_UNDERFLOW)
        return ql_refuse(binding,
                         "Number underflow. Attempting to store a number with magnitude smaller than "
                         "supported range under %.*s",
                         SLICE_ARG(where));
    return ql_refuse(binding, "Attempting to store more than 38 significant digits in a Number under %.*s",
                     SLICE_ARG(where));
}

static bool bind_list(struct ql_binding *binding, const struct ql_term *term, const struct place *place,
                      unsigned depth, struct value *out)
{
    out->type = VALUE_L;
    out->elements = arena_array(binding->arena, struct value, term->count);
    for (const struct ql_term *child = term->first; child; child = child->next) {
        struct place inner = {.parent = place, .index = out->count};
        if (!bind_literal(binding, child, &inner, depth + 1, &out->elements[out->count])) return false;
        out->count++;
    }
    return true;
}

/* "[2, 2.0]": as written. */
static struct slice members_text(struct ql_binding *binding, const struct ql_term *bag)
{
    struct buf text = {0};
    buf_byte(&text, '[');
    for (const struct ql_term *child = bag->first; child; child = child->next) {
        if (child != bag->first) buf_text(&text, ", ");
        if (child->negative) buf_byte(&text, '-');
        buf_slice(&text, child->text);
    }
    buf_byte(&text, ']');
    return arena_take(binding->arena, &text);
}

/* A set of strings or of numbers. */
static bool bind_bag(struct ql_binding *binding, const struct ql_term *term, const struct place *place,
                     struct value *out)
{
    if (term->count == 0) return ql_refuse(binding, "Empty bags are not supported");
    enum ql_term_kind kind = term->first->kind;
    out->members = arena_array(binding->arena, struct slice, term->count);
    out->type = kind == TERM_STRING ? VALUE_SS : VALUE_NS;
    for (const struct ql_term *child = term->first; child; child = child->next) {
        if (child->kind != kind || (kind != TERM_STRING && kind != TERM_NUMBER))
            return ql_refuse(binding,
                             "Unsupported data type in Bag. DynamoDB only supports either numbers or "
                             "strings in bags");
        struct slice *member = &out->members[out->count++];
        *member = child->text;
        if (kind == TERM_NUMBER && !bind_number(binding, child, place, member)) return false;
    }
    if (set_sort(out->type, out->members, out->count)) return true;
    struct slice members = members_text(binding, term);
    if (kind == TERM_STRING)
        return ql_refuse(binding,
                         "One or more parameter values were invalid: Input collection %.*s contains "
                         "duplicates.",
                         SLICE_ARG(members));
    return ql_refuse(binding, "Input collection %.*s contains duplicates! under %.*s", SLICE_ARG(members),
                     SLICE_ARG(place_text(binding, place)));
}

static bool bind_struct(struct ql_binding *binding, const struct ql_term *term, const struct place *place,
                        unsigned depth, struct value *out)
{
    struct slice duplicate;
    out->type = VALUE_M;
    out->map = (struct map){arena_array(binding->arena, struct attribute, term->count), 0};
    for (const struct ql_term *member = term->first; member; member = member->next) {
        struct attribute *attribute = &out->map.attributes[out->map.count];
        const struct ql_term *name = member->first;
        if (name->kind != TERM_STRING)
            return ql_refuse_at(binding, name,
                                "Tuple keys must be of type String. Actual type: %.*s under %.*s",
                                SLICE_ARG(ql_term_name(name)), SLICE_ARG(place_text(binding, place)));
        attribute->name = name->text;
        struct place inner = {.parent = place, .name = name->text};
        if (!bind_literal(binding, member->last, &inner, depth + 1, &attribute->value)) return false;
        out->map.count++;
    }
    if (map_sort(&out->map, &duplicate)) return true;
    return ql_refuse_at(binding, term, "Duplicate keys in tuple. Key: %.*s under %.*s", SLICE_ARG(duplicate),
                        SLICE_ARG(place_text(binding, place)));
}

static bool bind_literal(struct ql_binding *binding, const struct ql_term *term, const struct place *place,
                         unsigned depth, struct value *out)
{
    *out = (struct value){.type = VALUE_S};
    if (depth >= LIMIT_NESTING)
        return ql_refuse(binding, "Nesting Levels have exceeded supported limits under %.*s",
                         SLICE_ARG(place_text(binding, place)));
    switch (term->kind) {
    case TERM_STRING: out->bytes = term->text; return true;
    case TERM_NUMBER: out->type = VALUE_N; return bind_number(binding, term, place, &out->bytes);
    case TERM_BOOL:
        out->type = VALUE_BOOL;
        out->truth = slice_equal(term->text, SLICE("true"));
        return true;
    case TERM_NULL:
        out->type = VALUE_NULL;
        out->truth = true;
        return true;
    case TERM_LIST: return bind_list(binding, term, place, depth, out);
    case TERM_BAG: return bind_bag(binding, term, place, out);
    case TERM_STRUCT: return bind_struct(binding, term, place, depth, out);
    case TERM_ION:
        return ql_refuse_at(binding, term, "Ion Literals are not supported: %s under key %.*s",
                            ion_type(binding->arena, term->text), SLICE_ARG(place_text(binding, place)));
    case TERM_CALL:
        if (slice_equal(term->text, SLICE("list"))) return bind_list(binding, term, place, depth, out);
        if (slice_equal(term->text, SLICE("bag"))) return bind_bag(binding, term, place, out);
        break;
    default: break;
    }
    /* At the root the service calls a name by itself. */
    struct slice what = term->kind == TERM_NAME && !place->parent ? term->text : ql_term_name(term);
    return ql_refuse_at(binding, term, "Unsupported data type: %.*s under key %.*s", SLICE_ARG(what),
                        SLICE_ARG(place_text(binding, place)));
}

bool ql_bind_value(struct ql_binding *binding, const struct ql_term *term, const struct value **out)
{
    if (term->kind == TERM_PARAMETER) {
        uint32_t number = term->token->ordinal;
        if (number >= binding->parameter_count)
            return ql_refuse(binding, "Number of parameters in request and statement don't match.");
        *out = &binding->parameters[number];
        return true;
    }
    const struct place root = {0};
    struct value *value = arena_new(binding->arena, struct value);
    *out = value;
    return bind_literal(binding, term, &root, 0, value);
}

/* ---- paths ---- */

bool ql_is_path(const struct ql_term *term)
{
    return term->kind == TERM_NAME || (term->kind == TERM_PATH && ql_is_path(term->first));
}

static bool bind_step(struct ql_binding *binding, const struct ql_term *step, struct path_part *part)
{
    const struct ql_term *index = step->first;
    unsigned long long number;
    *part = (struct path_part){.name = step->text};
    if (step->kind == TERM_STEP || step->kind == TERM_NAME) return true;
    if (step->kind == TERM_STEP_STAR)
        return ql_refuse_at(binding, step, "Unpivot path component like a.*.b are not supported");
    if (step->kind != TERM_INDEX) return ql_refuse_at(binding, step, "Unexpected path component");
    part->name = index->text;
    if (index->kind == TERM_STRING || index->kind == TERM_NAME) return true;
    bool is_whole = index->kind == TERM_NUMBER;
    for (size_t i = 0; is_whole && i < index->text.len; i++)
        is_whole = index->text.data[i] >= '0' && index->text.data[i] <= '9';
    if (!is_whole) return ql_refuse_at(binding, index, "Unexpected path component");
    bool fits = slice_to_u64(index->text, INT32_MAX, &number);
    if (!fits || (index->negative && number > 0))
        return ql_refuse_at(binding, index, "List index is not within the allowable range; index: [%s%.*s]",
                            index->negative ? "-" : "", SLICE_ARG(index->text));
    part->is_index = true;
    part->index = (uint32_t)number;
    part->name = SLICE_NONE;
    return true;
}

static bool bind_root(struct ql_binding *binding, const struct ql_term *term, struct path *out)
{
    if (term->kind != TERM_PATH) return bind_step(binding, term, &out->parts[out->count++]);
    for (const struct ql_term *child = term->first; child; child = child->next) {
        bool is_inner = child == term->first; /* (a.b).c */
        if (is_inner ? !bind_root(binding, child, out)
                     : !bind_step(binding, child, &out->parts[out->count++]))
            return false;
    }
    return true;
}

static uint32_t count_steps(const struct ql_term *term)
{
    return term->kind == TERM_PATH ? count_steps(term->first) + term->count - 1 : 1;
}

bool ql_bind_path(struct ql_binding *binding, const struct ql_term *term, struct path *out)
{
    ensure(ql_is_path(term));
    *out = (struct path){arena_array(binding->arena, struct path_part, count_steps(term)), 0};
    if (!bind_root(binding, term, out)) return false;
    for (uint32_t i = 0; i < out->count; i++)
        if (!out->parts[i].is_index && out->parts[i].name.len == 0)
            return ql_refuse(binding, "Path component cannot be an empty string");
    return true;
}
