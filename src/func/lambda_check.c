/* The constraints of a request, in the words of Lambda's own front: all violations, in the order of the
 * members, values as Java prints them. What is in a list or a map is told as one violation of the whole. */
#include <stdio.h>

#include "func/lambda.h"

#define VIOLATIONS_MAX 10
#define VALUE_MAX      512 /* of a value that is shown: nobody reads a megabyte of it */

struct checker {
    struct buf *out;
    unsigned *count;
};

/* Where a value stands: "destinationConfig.onFailure.destination". */
struct place {
    const struct place *parent;
    const char *name;
};

/* ---- values as Java prints them ---- */

static void put_value(struct buf *out, const struct node *node);

static void put_many(struct buf *out, const struct node *node, char open, char close)
{
    buf_byte(out, (unsigned char)open);
    for (uint32_t i = 0; i < node->count; i++) {
        if (i) buf_text(out, ", ");
        if (node->keys) {
            buf_slice(out, node->keys[i]);
            buf_byte(out, '=');
        }
        put_value(out, &node->nodes[i]);
    }
    buf_byte(out, (unsigned char)close);
}

static void put_double(struct buf *out, double value)
{
    size_t start = out->len;
    json_put_double(out, value);
    if (!memchr(out->data + start, '.', out->len - start)) buf_text(out, ".0");
}

static void put_value(struct buf *out, const struct node *node)
{
    if (!node->present) {
        buf_text(out, "null");
        return;
    }
    switch (node->shape->kind) {
    case SHAPE_STRING: buf_slice(out, node->text); return;
    case SHAPE_INTEGER: json_put_int(out, node->integer); return;
    case SHAPE_DOUBLE: put_double(out, node->real); return;
    case SHAPE_BOOL: buf_slice(out, node->truth ? SLICE("true") : SLICE("false")); return;
    case SHAPE_LIST: put_many(out, node, '[', ']'); return;
    case SHAPE_MAP: put_many(out, node, '{', '}'); return;
    case SHAPE_BLOB:
    case SHAPE_STRUCT: buf_text(out, "..."); return;
    }
}

static void put_place(struct buf *out, const struct place *place)
{
    if (place->parent) {
        put_place(out, place->parent);
        buf_byte(out, '.');
    }
    unsigned char first = (unsigned char)place->name[0];
    buf_byte(out, first >= 'A' && first <= 'Z' ? (unsigned char)(first + 'a' - 'A') : first);
    buf_slice(out, slice_of(place->name + 1));
}

/* Cuts what was written since `start` to a length that can be read, between two characters. */
static void cut_value(struct buf *out, size_t start)
{
    if (out->len - start <= VALUE_MAX) return;
    out->len = start + VALUE_MAX;
    while (out->len > start && ((unsigned char)out->data[out->len] & 0xc0) == 0x80) out->len--;
    buf_text(out, "...");
}

/* Begins the next violation; what must be satisfied is written behind. False when there are enough. */
static bool violation(struct checker *checker, const struct place *place, const struct node *node)
{
    struct buf *out = checker->out;
    if (*checker->count == VIOLATIONS_MAX) return false;
    if ((*checker->count)++) buf_text(out, "; ");
    buf_text(out, "Value ");
    if (node->present) buf_byte(out, '\'');
    size_t start = out->len;
    put_value(out, node);
    cut_value(out, start);
    if (node->present) buf_byte(out, '\'');
    buf_text(out, " at '");
    put_place(out, place);
    buf_text(out, "' failed to satisfy constraint: ");
    return true;
}

/* ---- constraints ---- */

/* Characters of a text, continuation bytes not counted. */
static int64_t length_of(struct slice text)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

static bool is_choice(const struct shape *shape, struct slice text)
{
    for (const char *const *choice = shape->choices; *choice; choice++)
        if (slice_equal(slice_of(*choice), text)) return true;
    return false;
}

static bool is_below(const struct shape *shape, const struct node *node)
{
    if (!shape->has_min) return false;
    if (shape->kind == SHAPE_DOUBLE) return node->real < (double)shape->min;
    int64_t size = shape->kind == SHAPE_STRING    ? length_of(node->text)
                   : shape->kind == SHAPE_INTEGER ? node->integer
                                                  : node->count;
    return size < shape->min;
}

static bool is_above(const struct shape *shape, const struct node *node)
{
    if (!shape->has_max) return false;
    if (shape->kind == SHAPE_DOUBLE) return node->real > (double)shape->max;
    int64_t size = shape->kind == SHAPE_STRING    ? length_of(node->text)
                   : shape->kind == SHAPE_INTEGER ? node->integer
                                                  : node->count;
    return size > shape->max;
}

static void put_bound(struct buf *out, const struct shape *shape, bool upper)
{
    bool is_value = shape->kind == SHAPE_INTEGER || shape->kind == SHAPE_DOUBLE;
    buf_printf(out, "Member must have %s %s than or equal to %lld%s", is_value ? "value" : "length",
               upper ? "less" : "greater", (long long)(upper ? shape->max : shape->min),
               shape->kind == SHAPE_DOUBLE ? ".0" : "");
}

static void put_choices(struct buf *out, const struct shape *shape)
{
    buf_text(out, "Member must satisfy enum value set: [");
    for (const char *const *choice = shape->choices; *choice; choice++)
        buf_printf(out, "%s%s", choice == shape->choices ? "" : ", ", *choice);
    buf_byte(out, ']');
}

static void put_pattern(struct buf *out, const struct shape *shape)
{
    buf_printf(out, "Member must satisfy regular expression pattern: %s", shape->pattern);
}

static bool is_text(const struct shape *shape)
{
    return shape->kind == SHAPE_STRING;
}

static bool breaks_pattern(const struct shape *shape, struct slice text)
{
    return is_text(shape) && shape->matches && !shape->matches(text);
}

static bool breaks_choices(const struct shape *shape, struct slice text)
{
    return is_text(shape) && shape->choices && !is_choice(shape, text);
}

/* ---- what is in a list or a map ---- */

/* All that an element must satisfy, in brackets. */
static void put_rules(struct buf *out, const struct shape *shape, bool may_be_null)
{
    size_t start = out->len;
    if (shape->has_max) put_bound(out, shape, true);
    if (shape->has_min) {
        if (out->len > start) buf_text(out, ", ");
        put_bound(out, shape, false);
    }
    if (shape->pattern) {
        if (out->len > start) buf_text(out, ", ");
        put_pattern(out, shape);
    }
    if (shape->choices) {
        if (out->len > start) buf_text(out, ", ");
        put_choices(out, shape);
    }
    if (may_be_null) return;
    if (out->len > start) buf_text(out, ", ");
    buf_text(out, "Member must not be null");
}

static bool is_broken(const struct shape *shape, const struct node *node)
{
    return !node->present || is_below(shape, node) || is_above(shape, node) ||
           breaks_pattern(shape, node->text) || breaks_choices(shape, node->text);
}

static void check_elements(struct checker *checker, const struct place *place, const struct node *node)
{
    const struct shape *shape = node->shape;
    for (uint32_t i = 0; shape->key && i < node->count; i++) {
        struct node key = {.shape = shape->key, .present = true, .text = node->keys[i]};
        if (!is_broken(shape->key, &key)) continue;
        if (!violation(checker, place, node)) return;
        buf_text(checker->out, "Map keys must satisfy constraint: [");
        put_rules(checker->out, shape->key, true);
        buf_byte(checker->out, ']');
        break;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        if (!is_broken(shape->of, &node->nodes[i])) continue;
        if (!violation(checker, place, node)) return;
        buf_slice(checker->out, shape->key ? SLICE("Map value must satisfy constraint: [")
                                           : SLICE("Member must satisfy constraint: ["));
        put_rules(checker->out, shape->of, false);
        buf_byte(checker->out, ']');
        return;
    }
}

/* ---- one value ---- */

static void check_fields(struct checker *checker, const struct place *parent, const struct field *fields,
                         uint32_t count, const struct node *nodes);

static void check_bounds(struct checker *checker, const struct place *place, const struct node *node)
{
    const struct shape *shape = node->shape;
    if (is_above(shape, node) && violation(checker, place, node)) put_bound(checker->out, shape, true);
    if (is_below(shape, node) && violation(checker, place, node)) put_bound(checker->out, shape, false);
    if (breaks_pattern(shape, node->text) && violation(checker, place, node))
        put_pattern(checker->out, shape);
    if (breaks_choices(shape, node->text) && violation(checker, place, node))
        put_choices(checker->out, shape);
}

static void check_one(struct checker *checker, const struct place *place, const struct field *field,
                      const struct node *node)
{
    if (!node->present) {
        if (field->required && violation(checker, place, node))
            buf_text(checker->out, "Member must not be null");
        return;
    }
    check_bounds(checker, place, node);
    if (node->shape->kind == SHAPE_STRUCT)
        check_fields(checker, place, node->shape->fields, node->shape->field_count, node->nodes);
    else if (node->shape->kind == SHAPE_LIST || node->shape->kind == SHAPE_MAP)
        check_elements(checker, place, node);
}

static void check_fields(struct checker *checker, const struct place *parent, const struct field *fields,
                         uint32_t count, const struct node *nodes)
{
    for (uint32_t i = 0; i < count; i++) {
        struct place place = {parent, fields[i].name};
        check_one(checker, &place, &fields[i], &nodes[i]);
    }
}

void lambda_check(struct buf *out, unsigned *count, const struct field *fields, uint32_t field_count,
                  const struct node *nodes)
{
    struct checker checker = {out, count};
    check_fields(&checker, NULL, fields, field_count, nodes);
}
