/* Whether a condition holds for an item.
 *
 * Values of different types are never equal and have no order; what is not in the item is equal to nothing
 * and in no order with anything. So every comparison with something missing fails, except <>, which is true
 * whenever = is false. */
#include "expr/parse.h"

#include <stdio.h>

#include "base/fail.h"

/* A size has no value of its own in the item, so it needs a place while it is compared. */
struct scratch {
    struct value value;
    char text[24];
};

/* In UTF-16 units, as the service counts. */
static size_t string_length(struct slice text)
{
    size_t units = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        units += (c & 0xc0) != 0x80;
        units += c >= 0xf0;
    }
    return units;
}

static const struct value *measure(const struct value *value, struct scratch *scratch)
{
    size_t size;
    if (!value) return NULL;
    switch (value->type) {
    case VALUE_S: size = string_length(value->bytes); break;
    case VALUE_B: size = value->bytes.len; break;
    case VALUE_M: size = value->map.count; break;
    case VALUE_L:
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS: size = value->count; break;
    default: return NULL;
    }
    int len = snprintf(scratch->text, sizeof scratch->text, "%zu", size);
    scratch->value = (struct value){.type = VALUE_N, .bytes = {scratch->text, (size_t)len}};
    return &scratch->value;
}

/* What the operand stands for, or NULL. */
static const struct value *operand_value(const struct operand *operand, const struct map *item,
                                         struct scratch *scratch)
{
    const struct value *value = operand->path.count ? path_find(&operand->path, item) : operand->value;
    return operand->kind == OPERAND_SIZE ? measure(value, scratch) : value;
}

static bool is_ordered(const struct value *value)
{
    return value->type == VALUE_S || value->type == VALUE_N || value->type == VALUE_B;
}

static bool equal(const struct value *a, const struct value *b)
{
    return a && b && a->type == b->type && value_equal(a, b);
}

/* True when both are there and comparable; *order is then as of value_compare. */
static bool ordered(const struct value *a, const struct value *b, int *order)
{
    if (!a || !b || a->type != b->type || !is_ordered(a)) return false;
    *order = value_compare(a, b);
    return true;
}

static bool begins_with(const struct value *text, const struct value *start)
{
    if (!text || !start || text->type != start->type) return false;
    return (text->type == VALUE_S || text->type == VALUE_B) && slice_starts(text->bytes, start->bytes);
}

/* A text contains a part of itself, a set its members, a list its elements. */
static bool contains(const struct value *whole, const struct value *part)
{
    if (!whole || !part) return false;
    switch (whole->type) {
    case VALUE_S:
    case VALUE_B: return part->type == whole->type && slice_contains(whole->bytes, part->bytes);
    case VALUE_SS: return part->type == VALUE_S && set_contains(whole, part->bytes);
    case VALUE_NS: return part->type == VALUE_N && set_contains(whole, part->bytes);
    case VALUE_BS: return part->type == VALUE_B && set_contains(whole, part->bytes);
    case VALUE_L:
        for (uint32_t i = 0; i < whole->count; i++) {
            if (equal(&whole->elements[i], part)) return true;
        }
        return false;
    default: return false;
    }
}

static bool is_between(const struct value *value, const struct value *low, const struct value *high)
{
    int from_low, from_high;
    return ordered(value, low, &from_low) && ordered(value, high, &from_high) && from_low >= 0 &&
           from_high <= 0;
}

static bool is_in(const struct condition *condition, const struct map *item, const struct value *value)
{
    struct scratch scratch;
    for (uint32_t i = 1; i < condition->operand_count; i++) {
        if (equal(value, operand_value(&condition->operands[i], item, &scratch))) return true;
    }
    return false;
}

/* Holds for whatever is there and does not contain the part, even if it could not contain anything. */
static bool contains_not(const struct value *whole, const struct value *part)
{
    return whole && part && !contains(whole, part);
}

static bool comparison_holds(const struct condition *condition, const struct map *item)
{
    struct scratch scratch[3];
    const struct value *value[3] = {NULL, NULL, NULL};
    uint32_t count = condition->kind == CONDITION_IN ? 1 : condition->operand_count;
    ensure(condition->kind > CONDITION_NOT && count >= 1 && count <= 3);
    for (uint32_t i = 0; i < count; i++) value[i] = operand_value(&condition->operands[i], item, &scratch[i]);
    int order;
    switch (condition->kind) {
    case CONDITION_EQ: return equal(value[0], value[1]);
    case CONDITION_NE: return !equal(value[0], value[1]);
    case CONDITION_LT: return ordered(value[0], value[1], &order) && order < 0;
    case CONDITION_LE: return ordered(value[0], value[1], &order) && order <= 0;
    case CONDITION_GT: return ordered(value[0], value[1], &order) && order > 0;
    case CONDITION_GE: return ordered(value[0], value[1], &order) && order >= 0;
    case CONDITION_BETWEEN: return is_between(value[0], value[1], value[2]);
    case CONDITION_IN: return is_in(condition, item, value[0]);
    case CONDITION_EXISTS: return value[0] != NULL;
    case CONDITION_NOT_EXISTS: return value[0] == NULL;
    case CONDITION_TYPE: return value[0] && value[0]->type == condition->type;
    case CONDITION_BEGINS_WITH: return begins_with(value[0], value[1]);
    case CONDITION_CONTAINS: return contains(value[0], value[1]);
    case CONDITION_NOT_CONTAINS: return contains_not(value[0], value[1]);
    case CONDITION_AND:
    case CONDITION_OR:
    case CONDITION_NOT:
    case CONDITION_SAME: break;
    }
    return false;
}

bool condition_holds(const struct condition *condition, const struct map *item)
{
    switch (condition->kind) {
    case CONDITION_AND:
        return condition_holds(condition->left, item) && condition_holds(condition->right, item);
    case CONDITION_OR:
        return condition_holds(condition->left, item) || condition_holds(condition->right, item);
    case CONDITION_NOT: return !condition_holds(condition->left, item);
    case CONDITION_SAME:
        return condition_holds(condition->left, item) == condition_holds(condition->right, item);
    default: return comparison_holds(condition, item);
    }
}
