/* Key conditions: which of the conditions that the language can say a Query accepts.
 *
 * What is wrong without knowing any table is reported before the table is looked up, so it has its own
 * function. */
#include "expr/parse.h"

#include "base/fail.h"

#define MOST_CONDITIONS 2

/* One "attribute OP value" of the expression. */
struct term {
    bool has_name;
    struct slice name;
    enum key_compare compare;
    uint32_t value_count;
    const struct value *values[2];
};

/* The terms that were found; only the first two are kept, for more are refused, but their names must be
 * distinct, too. */
struct terms {
    struct arena *arena;
    struct slice *fault;
    struct term kept[MOST_CONDITIONS];
    struct slice *names;
    uint32_t count, capacity;
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

static bool refuse(struct terms *terms, struct slice sentence)
{
    return FAULT(terms->arena, terms->fault, sentence);
}

static bool take_name(struct terms *terms, const struct path *path, struct term *term)
{
    if (term->has_name) {
        return refuse(
            terms, SLICE("Invalid condition in KeyConditionExpression: Multiple attribute names used in one "
                         "condition"));
    }
    if (path->count > 1)
        return refuse(terms, SLICE("KeyConditionExpressions cannot have conditions on nested attributes"));
    term->has_name = true;
    term->name = path->parts[0].name;
    /* :v < a says a > :v. */
    if (term->value_count > 0) term->compare = mirrored(term->compare);
    return true;
}

/* The key attribute may stand on either side of a comparison, but BETWEEN and begins_with begin with it. */
static bool take_value(struct terms *terms, const struct condition *condition, const struct value *value,
                       struct term *term)
{
    bool begins_with_key = condition->kind == CONDITION_BETWEEN || condition->kind == CONDITION_BEGINS_WITH;
    if (begins_with_key && !term->has_name) {
        return FAULT(terms->arena, terms->fault, SLICE("Invalid condition in KeyConditionExpression: "),
                     kind_names[condition->kind],
                     SLICE(" operator must have the key attribute as its first operand"));
    }
    ensure(term->value_count < 2);
    term->values[term->value_count++] = value;
    return true;
}

/* Sorts the operands of one comparison into the one attribute and its values. */
static bool read_operands(struct terms *terms, const struct condition *condition, struct term *term)
{
    for (uint32_t i = 0; i < condition->operand_count; i++) {
        const struct operand *operand = &condition->operands[i];
        if (operand->kind == OPERAND_SIZE)
            return refuse(terms, SLICE("KeyConditionExpressions cannot contain nested operations"));
        bool taken = operand->kind == OPERAND_PATH ? take_name(terms, &operand->path, term)
                                                   : take_value(terms, condition, operand->value, term);
        if (!taken) return false;
    }
    if (term->has_name) return true;
    return refuse(terms, SLICE("Invalid condition in KeyConditionExpression: No key attribute specified"));
}

static bool keep_term(struct terms *terms, const struct term *term)
{
    for (uint32_t i = 0; i < terms->count; i++) {
        if (slice_equal(terms->names[i], term->name))
            return refuse(terms, SLICE("KeyConditionExpressions must only contain one condition per key"));
    }
    if (terms->count == terms->capacity) {
        terms->capacity = terms->capacity ? terms->capacity * 4 : MOST_CONDITIONS;
        struct slice *names = arena_array(terms->arena, struct slice, terms->capacity);
        if (terms->count) memcpy(names, terms->names, terms->count * sizeof *names);
        terms->names = names;
    }
    if (terms->count < MOST_CONDITIONS) terms->kept[terms->count] = *term;
    terms->names[terms->count++] = term->name;
    return true;
}

static bool read_terms(struct terms *terms, const struct condition *condition)
{
    if (condition->kind == CONDITION_AND)
        return read_terms(terms, condition->left) && read_terms(terms, condition->right);
    ensure(condition->kind <= CONDITION_CONTAINS);
    struct term term = {.compare = compare_of(condition->kind)};
    if (term.compare == KEY_NONE) {
        return FAULT(terms->arena, terms->fault, SLICE("Invalid operator used in KeyConditionExpression: "),
                     kind_names[condition->kind]);
    }
    return read_operands(terms, condition, &term) && keep_term(terms, &term);
}

static bool check_terms(struct terms *terms, const struct condition *condition)
{
    if (!read_terms(terms, condition)) return false;
    if (terms->count > MOST_CONDITIONS)
        return refuse(terms, SLICE("Conditions can be of length 1 or 2 only"));
    return true;
}

bool key_condition_check(struct arena *arena, const struct condition *condition, struct slice *fault)
{
    struct terms terms = {.arena = arena, .fault = fault};
    return check_terms(&terms, condition);
}

/* ---- against a schema ---- */

static const struct term *find_term(const struct terms *terms, struct slice name)
{
    for (uint32_t i = 0; i < terms->count; i++) {
        if (slice_equal(terms->kept[i].name, name)) return &terms->kept[i];
    }
    return NULL;
}

static bool refuse_missing(struct terms *terms, struct slice name)
{
    return FAULT(terms->arena, terms->fault, SLICE("Query condition missed key schema element: "), name);
}

static bool check_value_types(struct terms *terms, const struct term *term, enum value_type type)
{
    for (uint32_t i = 0; i < term->value_count; i++) {
        if (term->values[i]->type == type) continue;
        return refuse(
            terms, SLICE("One or more parameter values were invalid: Condition parameter type does not match "
                         "schema type"));
    }
    return true;
}

static bool check_not_empty(struct terms *terms, const struct term *term)
{
    for (uint32_t i = 0; i < term->value_count; i++) {
        const struct value *value = term->values[i];
        if (value->type == VALUE_N || value->bytes.len > 0) continue;
        return FAULT(
            terms->arena, terms->fault,
            SLICE("One or more parameter values are not valid. The AttributeValue for a key attribute cannot "
                  "contain an empty "),
            value->type == VALUE_S ? SLICE("string") : SLICE("binary"), SLICE(" value. Key: "), term->name);
    }
    return true;
}

static bool bind_hash(struct terms *terms, const struct key_schema *schema, struct key_condition *out)
{
    if (schema->range.len == 0 && terms->count > 1)
        return refuse(terms, SLICE("Query key condition not supported"));
    const struct term *term = find_term(terms, schema->hash);
    if (!term) return refuse_missing(terms, schema->hash);
    if (!check_value_types(terms, term, schema->hash_type)) return false;
    if (term->compare != KEY_EQ) return refuse(terms, SLICE("Query key condition not supported"));
    if (!check_not_empty(terms, term)) return false;
    out->hash = term->values[0];
    return true;
}

static bool bind_range(struct terms *terms, const struct key_schema *schema, struct key_condition *out)
{
    if (terms->count == 1) return true;
    const struct term *term = find_term(terms, schema->range);
    if (!term) return refuse_missing(terms, schema->range);
    if (!check_value_types(terms, term, schema->range_type) || !check_not_empty(terms, term)) return false;
    out->compare = term->compare;
    out->range[0] = term->values[0];
    out->range[1] = term->values[1];
    return true;
}

bool key_condition_bind(struct arena *arena, const struct condition *condition,
                        const struct key_schema *schema, struct key_condition *out, struct slice *fault)
{
    struct terms terms = {.arena = arena, .fault = fault};
    *out = (struct key_condition){.compare = KEY_NONE};
    return check_terms(&terms, condition) && bind_hash(&terms, schema, out) &&
           bind_range(&terms, schema, out);
}
