/* The constraints of the shapes: all violations of a request in one ValidationException, in the service's
 * order and words.
 *
 * A sound request passes without writing anything: paths are links on the stack and become text only for a
 * violation. Names of tables are judged first and alone, as the service does since it takes ARNs in their
 * place. */
#include "api/shapes.h"

#include "base/fail.h"
#include "base/raw.h"

#define VIOLATIONS_MAX 10 /* the service lists no more */
#define ARN_MAX        1024

/* Where in the request a value stands. */
enum place_kind { PLACE_MEMBER, PLACE_ELEMENT, PLACE_KEY };

struct place {
    const struct place *parent;
    enum place_kind kind;
    struct slice name; /* of the member, or the map's key */
    uint32_t index;    /* of the element, from 1 */
};

struct checker {
    struct api_call *call;
    struct buf text;
    unsigned count;
};

/* ---- values as Java prints them ---- */

static void put_lower_first(struct buf *out, struct slice name)
{
    unsigned char first = (unsigned char)name.data[0];
    buf_byte(out, first >= 'A' && first <= 'Z' ? (unsigned char)(first + 'a' - 'A') : first);
    buf_slice(out, slice_from(name, 1));
}

static void put_node(struct buf *out, const struct node *node);

static void put_struct(struct buf *out, const struct node *node)
{
    buf_slice(out, slice_of(node->shape->type_name));
    buf_byte(out, '(');
    for (uint32_t i = 0; i < node->shape->member_count; i++) {
        if (i) buf_text(out, ", ");
        put_lower_first(out, node->shape->members[i].name);
        buf_byte(out, '=');
        put_node(out, &node->members[i]);
    }
    buf_byte(out, ')');
}

static void put_list(struct buf *out, const struct node *node)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < node->count; i++) {
        if (i) buf_text(out, ", ");
        put_node(out, &node->elements[i]);
    }
    buf_byte(out, ']');
}

static void put_map(struct buf *out, const struct node *node)
{
    buf_byte(out, '{');
    for (uint32_t i = 0; i < node->count; i++) {
        if (i) buf_text(out, ", ");
        buf_slice(out, node->entries[i].key);
        buf_byte(out, '=');
        put_node(out, &node->entries[i].node);
    }
    buf_byte(out, '}');
}

static void put_node(struct buf *out, const struct node *node)
{
    if (!node->present) {
        buf_text(out, "null");
        return;
    }
    switch (node->shape->kind) {
    case SHAPE_STRUCT: put_struct(out, node); break;
    case SHAPE_LIST: put_list(out, node); break;
    case SHAPE_MAP: put_map(out, node); break;
    case SHAPE_STRING: buf_slice(out, node->text); break;
    case SHAPE_BOOL: buf_slice(out, slice_of(node->truth ? "true" : "false")); break;
    case SHAPE_INT:
    case SHAPE_LONG: json_put_int(out, node->integer); break;
    case SHAPE_DOUBLE: json_put_double(out, node->real); break;
    case SHAPE_VALUE: value_put_json(out, &node->value); break;
    }
}

/* ---- violations ---- */

static void put_place(struct buf *out, const struct place *place, bool as_written)
{
    if (place->parent) {
        put_place(out, place->parent, as_written);
        buf_byte(out, '.');
    }
    if (place->kind == PLACE_ELEMENT) {
        buf_decimal(out, place->index);
        buf_text(out, ".member");
    } else if (place->kind == PLACE_KEY) {
        buf_slice(out, place->name);
        buf_text(out, ".member");
    } else if (as_written) {
        buf_slice(out, place->name);
    } else {
        put_lower_first(out, place->name);
    }
}

/* A member in the request's own JSON, without white space. */
static void put_sent(struct checker *checker, struct slice name)
{
    struct arena *arena = checker->call->arena;
    struct slice raw = raw_member(arena, checker->call->body,
                                  arena_printf(arena, "%.*s", SLICE_ARG(name)).data);
    bool in_string = false;
    for (size_t i = 0; i < raw.len; i++) {
        if (!in_string && memchr(" \t\r\n", raw.data[i], 4)) continue;
        if (raw.data[i] == '"') in_string = !in_string;
        if (in_string && raw.data[i] == '\\') buf_byte(&checker->text, (unsigned char)raw.data[i++]);
        buf_byte(&checker->text, (unsigned char)raw.data[i]);
    }
}

/* Begins the next violation; what the value must satisfy is written behind. False when there are enough. */
static bool violation(struct checker *checker, const struct place *place, const struct node *node, bool terse)
{
    struct buf *out = &checker->text;
    if (checker->count == VIOLATIONS_MAX) return false;
    if (checker->count++) buf_text(out, "; ");
    buf_text(out, "Value ");
    if (!terse) {
        if (node->present) buf_byte(out, '\'');
        if (node->present && node->shape->shown_as_sent)
            put_sent(checker, place->name);
        else
            put_node(out, node);
        if (node->present) buf_byte(out, '\'');
        buf_byte(out, ' ');
    }
    buf_text(out, "at '");
    put_place(out, place, terse);
    buf_text(out, "' failed to satisfy constraint: ");
    return true;
}

static bool refuse_violations(struct api_call *call, struct checker *checker)
{
    struct buf message = {0};
    if (checker->count) {
        buf_printf(&message, "%u validation error%s detected: ", checker->count,
                   checker->count == 1 ? "" : "s");
        buf_slice(&message, buf_view(&checker->text)); /* values may have a NUL, where %.*s would end */
        invalid_text(call, buf_view(&message));
    }
    buf_free(&message);
    buf_free(&checker->text);
    return !call->error;
}

static void check_required(struct checker *checker, const struct place *place, const struct node *node)
{
    if (violation(checker, place, node, false)) buf_text(&checker->text, "Member must not be null");
}

static const char *bound_words(const struct shape *shape)
{
    bool has_value = shape->kind == SHAPE_INT || shape->kind == SHAPE_LONG || shape->kind == SHAPE_DOUBLE;
    return has_value ? "value" : "length";
}

static void put_least(struct buf *out, const struct shape *shape)
{
    buf_printf(out, "Member must have %s greater than or equal to %lld", bound_words(shape),
               (long long)shape->min);
}

static void put_most(struct buf *out, const struct shape *shape)
{
    buf_printf(out, "Member must have %s less than or equal to %lld", bound_words(shape),
               (long long)shape->max);
}

static void put_pattern(struct buf *out, const struct shape *shape)
{
    buf_printf(out, "Member must satisfy regular expression pattern: %s", shape->pattern);
}

static void put_choices(struct buf *out, const struct shape *shape)
{
    buf_text(out, "Member must satisfy enum value set: [");
    for (uint32_t i = 0; shape->choices[i]; i++) buf_printf(out, "%s%s", i ? ", " : "", shape->choices[i]);
    buf_byte(out, ']');
}

/* ---- one value against its shape ---- */

/* Java counts UTF-16 units: a character of four bytes counts twice. */
static int64_t text_length(struct slice text)
{
    int64_t length = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c & 0xc0) != 0x80) length += c >= 0xf0 ? 2 : 1;
    }
    return length;
}

static int64_t measure(const struct node *node)
{
    switch (node->shape->kind) {
    case SHAPE_STRING: return text_length(node->text);
    case SHAPE_LIST:
    case SHAPE_MAP: return node->count;
    case SHAPE_INT:
    case SHAPE_LONG: return node->integer;
    default: return 0;
    }
}

static bool is_choice(const struct shape *shape, struct slice text)
{
    for (uint32_t i = 0; shape->choices[i]; i++)
        if (slice_equal(text, slice_of(shape->choices[i]))) return true;
    return false;
}

static bool is_too_small(const struct node *node)
{
    return node->shape->has_min && measure(node) < node->shape->min;
}

static bool is_too_large(const struct node *node)
{
    return node->shape->has_max && measure(node) > node->shape->max;
}

static bool misses_pattern(const struct node *node)
{
    return node->shape->matches && !node->shape->matches(node->text);
}

static void check_pattern(struct checker *checker, const struct place *place, const struct node *node)
{
    if (misses_pattern(node) && violation(checker, place, node, node->shape->terse))
        put_pattern(&checker->text, node->shape);
}

static void check_own(struct checker *checker, const struct place *place, const struct node *node)
{
    const struct shape *shape = node->shape;
    if (!shape->length_first) check_pattern(checker, place, node);
    if (is_too_small(node) && violation(checker, place, node, shape->terse)) put_least(&checker->text, shape);
    if (is_too_large(node) && violation(checker, place, node, shape->terse)) put_most(&checker->text, shape);
    if (shape->length_first) check_pattern(checker, place, node);
    if (shape->choices && !is_choice(shape, node->text) && violation(checker, place, node, shape->terse))
        put_choices(&checker->text, shape);
}

/* All that the keys or values of a map, or the members of a list, must satisfy. */
static void put_all_constraints(struct buf *out, const char *of, const struct shape *shape)
{
    const char *comma = "";
    buf_printf(out, "%s must satisfy constraint: [", of);
    if (shape->has_max) {
        put_most(out, shape);
        comma = ", ";
    }
    if (shape->has_min) {
        buf_slice(out, slice_of(comma));
        put_least(out, shape);
        comma = ", ";
    }
    if (shape->pattern) {
        buf_slice(out, slice_of(comma));
        put_pattern(out, shape);
        comma = ", ";
    }
    if (shape->choices) {
        buf_slice(out, slice_of(comma));
        put_choices(out, shape);
    }
    buf_byte(out, ']');
}

static bool breaks_own(const struct node *node)
{
    bool is_wrong_choice = node->present && node->shape->choices && !is_choice(node->shape, node->text);
    return node->present &&
           (is_too_small(node) || is_too_large(node) || misses_pattern(node) || is_wrong_choice);
}

static void check_struct(struct checker *checker, const struct place *parent, const struct node *node);

static void check_list(struct checker *checker, const struct place *place, const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++) {
        const struct node *element = &node->elements[i];
        struct place at = {.parent = place, .kind = PLACE_ELEMENT, .index = i + 1};
        if (element->present && element->shape->kind == SHAPE_STRUCT)
            check_struct(checker, &at, element);
        else if (breaks_own(element) && violation(checker, place, node, false))
            put_all_constraints(&checker->text, "Member", element->shape);
    }
}

static bool is_arn(struct slice text)
{
    return slice_starts(text, SLICE("arn:")) && text.len <= ARN_MAX;
}

static void check_map_key(struct checker *checker, const struct place *place, const struct node *map,
                          uint32_t index)
{
    const struct shape *shape = map->shape->key;
    struct node key = {.shape = shape, .present = true, .text = map->entries[index].key};
    if (shape->takes_arn && is_arn(key.text)) return;
    if (breaks_own(&key) && violation(checker, place, map, false))
        put_all_constraints(&checker->text, "Map keys", shape);
}

static void check_map(struct checker *checker, const struct place *place, const struct node *node)
{
    for (uint32_t i = 0; node->shape->key && i < node->count; i++) check_map_key(checker, place, node, i);
    if (node->shape->of->kind == SHAPE_VALUE) return;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct node *value = &node->entries[i].node;
        struct place at = {.parent = place, .kind = PLACE_KEY, .name = node->entries[i].key};
        if (!value->present) continue;
        if (breaks_own(value) && violation(checker, place, node, false))
            put_all_constraints(&checker->text, "Map value", value->shape);
        if (value->shape->kind == SHAPE_STRUCT)
            check_struct(checker, &at, value);
        else if (value->shape->kind == SHAPE_LIST)
            check_list(checker, &at, value);
    }
}

static void check_node(struct checker *checker, const struct place *place, const struct node *node)
{
    if (node->shape->table_name) return; /* judged before */
    check_own(checker, place, node);
    if (node->shape->kind == SHAPE_STRUCT)
        check_struct(checker, place, node);
    else if (node->shape->kind == SHAPE_LIST)
        check_list(checker, place, node);
    else if (node->shape->kind == SHAPE_MAP)
        check_map(checker, place, node);
}

static void check_struct(struct checker *checker, const struct place *parent, const struct node *node)
{
    for (uint32_t i = 0; i < node->shape->member_count; i++) {
        const struct shape_member *member = &node->shape->members[i];
        struct place at = {.parent = parent, .kind = PLACE_MEMBER, .name = member->name};
        if (node->members[i].present)
            check_node(checker, &at, &node->members[i]);
        else if (member->required)
            check_required(checker, &at, &node->members[i]);
    }
}

/* ---- names of tables ---- */

static bool check_table_name(struct api_call *call, const struct shape_member *member,
                             const struct node *node)
{
    struct checker checker = {.call = call};
    struct place at = {.kind = PLACE_MEMBER, .name = member->name};
    const struct shape *shape = member->shape;
    if (!node->present) {
        if (shape->table_name == TABLE_NAME_OF_ITEMS) return true;
        return invalid(call, "The parameter '%.*s' is required but was not present in the request",
                       SLICE_ARG(member->name));
    }
    if (is_arn(node->text)) return true;
    if (shape->table_name == TABLE_NAME_OF_ITEMS && node->text.len < TABLE_NAME_LEAST &&
        (!node->text.len || is_plain_name(node->text))) {
        violation(&checker, &at, node, false);
        put_least(&checker.text, node->text.len ? &shape_table_name_strict : shape);
    } else {
        check_own(&checker, &at, node);
    }
    return refuse_violations(call, &checker);
}

bool request_check(struct api_call *call, const struct node *root)
{
    const struct shape *shape = root->shape;
    struct checker checker = {.call = call};
    ensure(shape->kind == SHAPE_STRUCT);
    for (uint32_t i = 0; i < shape->member_count; i++)
        if (shape->members[i].shape->table_name &&
            !check_table_name(call, &shape->members[i], &root->members[i]))
            return false;
    check_struct(&checker, NULL, root);
    return refuse_violations(call, &checker);
}
