/* Key conditions: which of the conditions that the language can say a Query accepts, whatever the keys are.
 *
 * What is wrong without knowing any table is reported before the table is looked up; key_bind.c has the rest.
 */
#include "expr/parse.h"

#include "base/fail.h"

#define FIRST_TERMS 2 /* what most conditions have */

/* The terms while they are found. */
struct reading {
    struct arena *arena;
    struct slice *fault;
    struct key_terms *terms;
    uint32_t capacity;
};

static const struct slice kind_names[] = {
    [CONDITION_AND] = {"AND", 3},
    [CONDITION_OR] = {"OR", 2},
    [CONDITION_NOT] = {"NOT", 3},
    [CONDITION_EQ] = {"=", 1},
    [CONDITION_NE] = {"<>", 2},
    [CONDITION_LT] = {"<", 1},
    [CONDITION_LE] = {"<=", 2},
    [CONDITION_GT] = {">", 1},
    [CONDITION_GE] = {">=", 2},
    [CONDITION_BETWEEN] = {"BETWEEN", 7},
    [CONDITION_IN] = {"IN", 2},
    [CONDITION_EXISTS] = {"attribute_exists", 16},
    [CONDITION_NOT_EXISTS] = {"attribute_not_exists", 20},
    [CONDITION_TYPE] = {"attribute_type", 14},
    [CONDITION_BEGINS_WITH] = {"begins_with", 11},
    [CONDITION_CONTAINS] = {"contains", 8},
};

static enum key_compare compare_of(enum condition_kind kind)
{
    switch (kind) {
    case CONDITION_EQ: return KEY_EQ;
    case CONDITION_LT: return KEY_LT;
    case CONDITION_LE: return KEY_LE;
    case CONDITION_GT: return KEY_GT;
    case CONDITION_GE: return KEY_GE;
    case CONDITION_BETWEEN: return KEY_BETWEEN;
    case CONDITION_BEGINS_WITH: return KEY_BEGINS_WITH;
    default: return KEY_NONE;
    }
}

static enum key_compare mirrored(enum key_compare compare)
{
    switch (compare) {
    case KEY_LT: return KEY_GT;
    case KEY_LE: return KEY_GE;
    case KEY_GT: return KEY_LT;
    case KEY_GE: return KEY_LE;
    default: return compare;
    }
}

static bool refuse(struct reading *reading, struct slice sentence)
{
    return FAULT(reading->arena, reading->fault, sentence);
}

static bool take_name(struct reading *reading, const struct path *path, struct key_term *term)
{
    if (term->name.len) {
        return refuse(reading,
                      SLICE("Invalid condition in KeyConditionExpression: Multiple attribute names used in "
                            "one condition"));
    }
    if (path->count > 1)
        return refuse(reading, SLICE("KeyConditionExpressions cannot have conditions on nested attributes"));
    term->name = path->parts[0].name;
    /* :v < a says a > :v. */
    if (term->value_count > 0) term->compare = mirrored(term->compare);
    return true;
}

/* The key attribute may stand on either side of a comparison, but BETWEEN and begins_with begin with it. */
static bool take_value(struct reading *reading, const struct condition *condition, const struct value *value,
                       struct key_term *term)
{
    bool begins_with_key = condition->kind == CONDITION_BETWEEN || condition->kind == CONDITION_BEGINS_WITH;
    if (begins_with_key && !term->name.len) {
        return FAULT(reading->arena, reading->fault, SLICE("Invalid condition in KeyConditionExpression: "),
                     kind_names[condition->kind],
                     SLICE(" operator must have the key attribute as its first operand"));
    }
    ensure(term->value_count < 2);
    term->values[term->value_count++] = value;
    return true;
}

/* Sorts the operands of one comparison into the one attribute and its values. */
static bool read_operands(struct reading *reading, const struct condition *condition, struct key_term *term)
{
    for (uint32_t i = 0; i < condition->operand_count; i++) {
        const struct operand *operand = &condition->operands[i];
        if (operand->kind == OPERAND_SIZE)
            return refuse(reading, SLICE("KeyConditionExpressions cannot contain nested operations"));
        bool taken = operand->kind == OPERAND_PATH ? take_name(reading, &operand->path, term)
                                                   : take_value(reading, condition, operand->value, term);
        if (!taken) return false;
    }
    if (term->name.len) return true;
    return refuse(reading, SLICE("Invalid condition in KeyConditionExpression: No key attribute specified"));
}

static bool keep_term(struct reading *reading, const struct key_term *term)
{
    struct key_terms *terms = reading->terms;
    for (uint32_t i = 0; i < terms->count; i++) {
        if (slice_equal(terms->list[i].name, term->name))
            return refuse(reading,
                          SLICE("Invalid KeyConditionExpression: KeyConditionExpressions must only contain "
                                "one condition per key"));
    }
    if (terms->count == reading->capacity) {
        reading->capacity = reading->capacity ? reading->capacity * 4 : FIRST_TERMS;
        struct key_term *list = arena_array(reading->arena, struct key_term, reading->capacity);
        if (terms->count) memcpy(list, terms->list, terms->count * sizeof *list);
        terms->list = list;
    }
    terms->list[terms->count++] = *term;
    return true;
}

static bool read_terms(struct reading *reading, const struct condition *condition)
{
    if (condition->kind == CONDITION_AND)
        return read_terms(reading, condition->left) && read_terms(reading, condition->right);
    ensure(condition->kind <= CONDITION_CONTAINS);
    struct key_term term = {.compare = compare_of(condition->kind)};
    if (term.compare == KEY_NONE) {
        return FAULT(reading->arena, reading->fault,
                     SLICE("Invalid operator used in KeyConditionExpression: "), kind_names[condition->kind]);
    }
    return read_operands(reading, condition, &term) && keep_term(reading, &term);
}

bool key_terms_read(struct arena *arena, const struct condition *condition, struct key_terms *out,
                    struct slice *fault)
{
    struct reading reading = {.arena = arena, .fault = fault, .terms = out};
    *out = (struct key_terms){0};
    return read_terms(&reading, condition);
}
