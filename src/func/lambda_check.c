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

static void put_value(struct buf *out, const struct shape_node *node);

static void put_many(struct buf *out, const struct shape_node *node, char open, char close)
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

static void put_value(struct buf *out, const struct shape_node *node)
{
    if (!node->present) {
        buf_text(out, "null");
        return;
    }
    switch (node->shape->kind) {
    case SHAPE_STRING: buf_slice(out, node->text); return;
    case SHAPE_TIME:
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
static bool violation(struct checker *checker, const struct place *place, const struct shape_node *node)
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

enum rule { RULE_MAX, RULE_MIN, RULE_PATTERN, RULE_CHOICES, RULES };

static bool has_rule(const struct shape *shape, enum rule rule)
{
    return rule == RULE_MAX       ? shape->has_max
           : rule == RULE_MIN     ? shape->has_min
           : rule == RULE_PATTERN ? shape->pattern != NULL
                                  : shape->choices != NULL;
}

static bool breaks_rule(const struct shape_node *node, enum rule rule)
{
    const struct shape *shape = node->shape;
    if (!has_rule(shape, rule)) return false;
    if (rule == RULE_PATTERN) return !shape->matches(node->text);
    if (rule == RULE_CHOICES) {
        const char *const *choice = shape->choices;
        while (*choice && !slice_equal(slice_of(*choice), node->text)) choice++;
        return !*choice;
    }
    double size = shape->kind == SHAPE_DOUBLE    ? node->real
                  : shape->kind == SHAPE_STRING  ? (double)length_of(node->text)
                  : shape->kind == SHAPE_INTEGER ? (double)node->integer
                                                 : (double)node->count;
    return rule == RULE_MAX ? size > (double)shape->max : size < (double)shape->min;
}

static void put_rule(struct buf *out, const struct shape *shape, enum rule rule)
{
    bool is_value = shape->kind == SHAPE_INTEGER || shape->kind == SHAPE_DOUBLE;
    switch (rule) {
    case RULE_MAX:
    case RULE_MIN:
        buf_printf(out, "Member must have %s %s than or equal to %lld%s", is_value ? "value" : "length",
                   rule == RULE_MAX ? "less" : "greater",
                   (long long)(rule == RULE_MAX ? shape->max : shape->min),
                   shape->kind == SHAPE_DOUBLE ? ".0" : "");
        return;
    case RULE_PATTERN:
        buf_printf(out, "Member must satisfy regular expression pattern: %s", shape->pattern);
        return;
    case RULE_CHOICES:
        buf_text(out, "Member must satisfy enum value set: [");
        for (const char *const *choice = shape->choices; *choice; choice++)
            buf_printf(out, "%s%s", choice == shape->choices ? "" : ", ", *choice);
        buf_byte(out, ']');
        return;
    case RULES: return;
    }
}

/* ---- what is in a list or a map ---- */

/* All that an element must satisfy, in brackets. */
static void put_rules(struct buf *out, const char *begin, const struct shape *shape, bool may_be_null)
{
    const char *comma = "";
    buf_printf(out, "%s must satisfy constraint: [", begin);
    for (enum rule rule = 0; rule < RULES; rule++) {
        if (!has_rule(shape, rule)) continue;
        buf_slice(out, slice_of(comma));
        put_rule(out, shape, rule);
        comma = ", ";
    }
    if (!may_be_null) buf_printf(out, "%sMember must not be null", comma);
    buf_byte(out, ']');
}

static bool is_broken(const struct shape_node *node)
{
    bool broken = !node->present;
    for (enum rule rule = 0; rule < RULES && !broken; rule++) broken = breaks_rule(node, rule);
    return broken;
}

static void check_fields(struct checker *checker, const struct place *parent,
                         const struct shape_field *fields, uint32_t count, const struct shape_node *nodes);

static void check_elements(struct checker *checker, const struct place *place, const struct shape_node *node)
{
    const struct shape *shape = node->shape;
    for (uint32_t i = 0; shape->key && i < node->count; i++) {
        struct shape_node key = {.shape = shape->key, .present = true, .text = node->keys[i]};
        if (!is_broken(&key)) continue;
        if (!violation(checker, place, node)) return;
        put_rules(checker->out, "Map keys", shape->key, true);
        break;
    }
    for (uint32_t i = 0; shape->of->kind == SHAPE_STRUCT && i < node->count; i++) {
        char number[24];
        struct place element = {place, number};
        snprintf(number, sizeof number, "%u.member", i + 1);
        if (node->nodes[i].present)
            check_fields(checker, &element, shape->of->fields, shape->of->field_count, node->nodes[i].nodes);
    }
    for (uint32_t i = 0; i < node->count; i++) {
        if (!is_broken(&node->nodes[i])) continue;
        if (violation(checker, place, node))
            put_rules(checker->out, shape->key ? "Map value" : "Member", shape->of, false);
        return;
    }
}

/* ---- one value ---- */

static void check_one(struct checker *checker, const struct place *place, const struct shape_field *field,
                      const struct shape_node *node)
{
    if (!node->present) {
        if (field->required && violation(checker, place, node))
            buf_text(checker->out, "Member must not be null");
        return;
    }
    for (enum rule rule = 0; rule < RULES; rule++)
        if (breaks_rule(node, rule) && violation(checker, place, node))
            put_rule(checker->out, node->shape, rule);
    if (node->shape->kind == SHAPE_STRUCT)
        check_fields(checker, place, node->shape->fields, node->shape->field_count, node->nodes);
    else if (node->shape->kind == SHAPE_LIST || node->shape->kind == SHAPE_MAP)
        check_elements(checker, place, node);
}

static void check_fields(struct checker *checker, const struct place *parent,
                         const struct shape_field *fields, uint32_t count, const struct shape_node *nodes)
{
    for (uint32_t i = 0; i < count; i++) {
        struct place place = {parent, fields[i].name};
        check_one(checker, &place, &fields[i], &nodes[i]);
    }
}

void lambda_check(struct buf *out, unsigned *count, const struct shape_field *fields, uint32_t field_count,
                  const struct shape_node *nodes)
{
    struct checker checker = {out, count};
    check_fields(&checker, NULL, fields, field_count, nodes);
}
