/* A WHERE as a condition. Comparisons and functions are bound by src/expr; AND, OR, NOT, IS, and what
 * compares the truth of another condition, become trees of them here. */
#include "partiql/internal.h"

#include "base/fail.h"

static bool says(const struct ql_term *term, const char *word)
{
    return slice_equal(term->text, slice_of(word));
}

/* ---- what a term is ---- */

static bool is_function(const struct ql_term *term, enum expr_operation *operation)
{
    static const struct {
        const char *name;
        enum expr_operation operation;
    } functions[] = {
        {"begins_with", EXPR_OP_BEGINS_WITH},
        {"contains", EXPR_OP_CONTAINS},
        {"attribute_type", EXPR_OP_TYPE},
        {"attribute_exists", EXPR_OP_EXISTS},
        {"attribute_not_exists", EXPR_OP_NOT_EXISTS},
    };
    if (term->kind != TERM_CALL) return false;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!says(term, functions[i].name)) continue;
        *operation = functions[i].operation;
        return true;
    }
    return false;
}

static bool is_infix(const struct ql_term *term, const char *word)
{
    return term->kind == TERM_INFIX && says(term, word);
}

static bool is_comparison(const struct ql_term *term, enum expr_operation *operation)
{
    static const struct {
        const char *word;
        enum expr_operation operation;
    } comparisons[] = {{"=", EXPR_OP_EQ},  {"<>", EXPR_OP_NE}, {"<", EXPR_OP_LT},
                       {"<=", EXPR_OP_LE}, {">", EXPR_OP_GT},  {">=", EXPR_OP_GE}};
    if (term->kind != TERM_INFIX) return false;
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        if (!says(term, comparisons[i].word)) continue;
        *operation = comparisons[i].operation;
        return true;
    }
    return false;
}

/* True or false for every item, as a WHERE must be. */
static bool is_condition(const struct ql_term *term)
{
    enum expr_operation operation;
    if (term->kind == TERM_UNARY) return says(term, "not");
    if (is_function(term, &operation) || is_comparison(term, &operation)) return true;
    return is_infix(term, "and") || is_infix(term, "or") || is_infix(term, "is") ||
           is_infix(term, "is_not") || is_infix(term, "in") || is_infix(term, "not_in") ||
           is_infix(term, "between") || is_infix(term, "not_between");
}

/* ---- operands ---- */

static bool refuse_token(struct ql_binding *binding, const struct ql_term *term, const char *word)
{
    return ql_refuse_at(binding, term, "Unsupported token in expression: %s", word);
}

static bool refuse_call(struct ql_binding *binding, const struct ql_term *term)
{
    static const char *const aggregates[] = {"count", "avg", "max", "min", "sum"};
    bool has_select = term->first && term->first->kind == TERM_SELECT;
    if (has_select) return refuse_token(binding, term->first, "SELECT");
    for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
        if (term->token->kind == QL_KEYWORD && says(term, aggregates[i]))
            return refuse_token(binding, term, aggregates[i]);
    return ql_refuse_at(binding, term, "Unrecognized function: %.*s", SLICE_ARG(term->token->text));
}

/* What can be neither an operand nor a condition. */
static bool refuse_term(struct ql_binding *binding, const struct ql_term *term)
{
    switch (term->kind) {
    case TERM_SELECT: return refuse_token(binding, term, "SELECT");
    case TERM_CASE: return refuse_token(binding, term, "CASE");
    case TERM_CAST:
        return ql_refuse_at(binding, term, "Unsupported token in expression: %.*s", SLICE_ARG(term->text));
    case TERM_MISSING: return ql_refuse(binding, "MISSING must be compared using IS operator");
    case TERM_CALL: return refuse_call(binding, term);
    case TERM_UNARY:
        if (says(term, "not") && (ql_is_path(term->first) || ql_is_literal(term->first)))
            return ql_refuse(binding, "The argument to NOT must be a Type or Expression");
        /* fallthrough */
    case TERM_INFIX: {
        struct slice word = term->text;
        if (slice_starts(word, SLICE("not_"))) word = slice_from(word, strlen("not_"));
        return ql_refuse(binding, "Unsupported operator in Condition Expression. Operator: %.*s",
                         SLICE_ARG(word));
    }
    default:
        return ql_refuse_at(binding, term, "Unsupported token in expression: %.*s",
                            SLICE_ARG(ql_term_name(term)));
    }
}

struct expr_node *ql_bind_operand(struct ql_binding *binding, const struct ql_term *term)
{
    struct path path;
    const struct value *value;
    if (ql_is_path(term)) return ql_bind_path(binding, term, &path) ? expr_path(binding->arena, path) : NULL;
    if (term->kind == TERM_PARAMETER || ql_is_literal(term))
        return ql_bind_value(binding, term, &value) ? expr_value(binding->arena, value) : NULL;
    if (term->kind != TERM_CALL || !says(term, "size")) {
        refuse_term(binding, term);
        return NULL;
    }
    struct expr_node *size = expr_call(binding->arena, EXPR_OP_SIZE);
    for (const struct ql_term *child = term->first; child; child = child->next) {
        struct expr_node *operand = ql_bind_operand(binding, child);
        if (!operand) return NULL;
        expr_append(size, operand);
    }
    return size;
}

/* An operation whose operands are these terms, one after the other. */
static struct condition *bind_operation(struct ql_binding *binding, enum expr_operation operation,
                                        const struct ql_term *const *terms, uint32_t count)
{
    struct expr_node *node = expr_call(binding->arena, operation);
    for (uint32_t i = 0; i < count; i++) {
        struct expr_node *operand = ql_bind_operand(binding, terms[i]);
        if (!operand) return NULL;
        expr_append(node, operand);
    }
    return condition_from(binding->arena, node, binding->fault);
}

/* ---- trees ---- */

static struct condition *bind(struct ql_binding *binding, const struct ql_term *term);

static struct condition *join(struct ql_binding *binding, enum condition_kind kind, struct condition *left,
                              struct condition *right)
{
    struct condition *condition = arena_new(binding->arena, struct condition);
    condition->kind = kind;
    condition->left = left;
    condition->right = right;
    return condition;
}

static struct condition *negate(struct ql_binding *binding, struct condition *condition)
{
    return condition ? join(binding, CONDITION_NOT, condition, NULL) : NULL;
}

/* A condition that always has this truth: comparisons of literals need no rule of their own. */
static struct condition *constant(struct ql_binding *binding, bool truth)
{
    static const struct value yes = {.type = VALUE_BOOL, .truth = true};
    struct condition *condition = arena_new(binding->arena, struct condition);
    condition->kind = truth ? CONDITION_EQ : CONDITION_NE;
    condition->operands = arena_array(binding->arena, struct operand, 2);
    condition->operand_count = 2;
    condition->operands[0] = condition->operands[1] = (struct operand){.kind = OPERAND_VALUE, .value = &yes};
    return condition;
}

/* An operation of two operands, of which the second is a value. */
static struct condition *bind_with_value(struct ql_binding *binding, enum expr_operation operation,
                                         const struct ql_term *term, const struct value *value)
{
    struct expr_node *node = expr_call(binding->arena, operation), *operand = ql_bind_operand(binding, term);
    if (!operand) return NULL;
    expr_append(node, operand);
    expr_append(node, expr_value(binding->arena, value));
    return condition_from(binding->arena, node, binding->fault);
}

/* Whether a condition is equal to an operand, which is a truth in some items. Each condition stands in the tree
 * once: such comparisons nest, and two of each would double the work with every level. */
static struct condition *equal_truth(struct ql_binding *binding, const struct ql_term *term,
                                     const struct ql_term *other)
{
    static const struct value yes = {.type = VALUE_BOOL, .truth = true},
                              bool_name = {.type = VALUE_S, .bytes = {"BOOL", 4}};
    struct condition *condition = bind(binding, term);
    if (!condition) return NULL;
    if (is_condition(other)) {
        struct condition *right = bind(binding, other);
        return right ? join(binding, CONDITION_SAME, condition, right) : NULL;
    }
    struct condition *is_truth = bind_with_value(binding, EXPR_OP_TYPE, other, &bool_name);
    struct condition *is_true = is_truth ? bind_with_value(binding, EXPR_OP_EQ, other, &yes) : NULL;
    if (!is_true) return NULL;
    return join(binding, CONDITION_AND, is_truth, join(binding, CONDITION_SAME, condition, is_true));
}

static struct condition *bind_comparison(struct ql_binding *binding, const struct ql_term *term,
                                         enum expr_operation operation)
{
    const struct ql_term *left = term->first, *right = term->last;
    if (!is_condition(left) && !is_condition(right))
        return bind_operation(binding, operation, (const struct ql_term *[]){left, right}, 2);
    if (operation != EXPR_OP_EQ && operation != EXPR_OP_NE) {
        ql_refuse(binding,
                  "Incorrect operand type for operator or function; operator or function: %.*s, operand "
                  "type: BOOL",
                  SLICE_ARG(term->text));
        return NULL;
    }
    const struct ql_term *truth = is_condition(left) ? left : right, *other = truth == left ? right : left;
    struct condition *equal = equal_truth(binding, truth, other);
    return operation == EXPR_OP_EQ ? equal : negate(binding, equal);
}

static bool refuse_in(struct ql_binding *binding)
{
    return ql_refuse(binding,
                     "IN operator must have a left hand argument of type Variable Reference and right "
                     "hand argument of type Seq with at least one member");
}

/* condition IN [true, false]: which truths are among the values decides. */
static struct condition *bind_truth_in(struct ql_binding *binding, const struct ql_term *left,
                                       const struct ql_term *list)
{
    bool has[2] = {false, false};
    for (const struct ql_term *child = list->first; child; child = child->next) {
        const struct value *value;
        if (child->kind != TERM_PARAMETER && !ql_is_literal(child)) {
            refuse_in(binding);
            return NULL;
        }
        if (!ql_bind_value(binding, child, &value)) return NULL;
        if (value->type == VALUE_BOOL) has[value->truth] = true;
    }
    struct condition *condition = bind(binding, left);
    if (!condition || has[0] == has[1]) return condition ? constant(binding, has[0]) : NULL;
    return has[true] ? condition : negate(binding, condition);
}

static struct condition *bind_in(struct ql_binding *binding, const struct ql_term *term)
{
    const struct ql_term *left = term->first, *list = term->last;
    bool is_list = list->kind == TERM_LIST || list->kind == TERM_BAG;
    if (!is_list || list->count == 0) {
        refuse_in(binding);
        return NULL;
    }
    if (is_condition(left)) return bind_truth_in(binding, left, list);
    const struct ql_term **terms = arena_array(binding->arena, const struct ql_term *, list->count + 1);
    uint32_t count = 0;
    terms[count++] = left;
    for (const struct ql_term *child = list->first; child; child = child->next) terms[count++] = child;
    return bind_operation(binding, EXPR_OP_IN, terms, count);
}

static struct condition *bind_is(struct ql_binding *binding, const struct ql_term *term)
{
    static const struct {
        const char *word;
        enum value_type type;
    } types[] = {{"null", VALUE_NULL}, {"boolean", VALUE_BOOL}, {"blob", VALUE_B},  {"string", VALUE_S},
                 {"numeric", VALUE_N}, {"struct", VALUE_M},     {"tuple", VALUE_M}, {"list", VALUE_L}};
    const struct ql_term *left = term->first, *type = term->last;
    struct expr_node *operand = NULL;
    if (ql_is_path(left) || ql_is_literal(left) || left->kind == TERM_PARAMETER)
        operand = ql_bind_operand(binding, left);
    else
        ql_refuse(binding,
                  "The left hand side argument to IS must be a Variable Reference, Literal, or Path");
    if (!operand) return NULL;
    if (says(type, "missing")) {
        if (!ql_is_path(left)) return constant(binding, false);
        struct expr_node *node = expr_call(binding->arena, EXPR_OP_NOT_EXISTS);
        expr_append(node, operand);
        return condition_from(binding->arena, node, binding->fault);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!says(type, types[i].word)) continue;
        struct value *name = arena_new(binding->arena, struct value);
        *name = (struct value){.type = VALUE_S, .bytes = value_type_name(types[i].type)};
        struct expr_node *node = expr_call(binding->arena, EXPR_OP_TYPE);
        expr_append(node, operand);
        expr_append(node, expr_value(binding->arena, name));
        return condition_from(binding->arena, node, binding->fault);
    }
    struct slice word = arena_copy(binding->arena, type->text);
    for (size_t i = 0; i < word.len; i++)
        if (word.data[i] >= 'a' && word.data[i] <= 'z') ((char *)word.data)[i] = (char)(word.data[i] - 32);
    ql_refuse_at(binding, term,
                 "Unsupported data type for IS operator: %.*s. Supported data types are [MISSING, NULL, "
                 "BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]",
                 SLICE_ARG(word));
    return NULL;
}

static struct condition *bind_function(struct ql_binding *binding, const struct ql_term *term,
                                       enum expr_operation operation)
{
    const struct ql_term **terms = arena_array(binding->arena, const struct ql_term *, term->count + 1);
    uint32_t count = 0;
    for (const struct ql_term *child = term->first; child; child = child->next) terms[count++] = child;
    return bind_operation(binding, operation, terms, count);
}

static struct condition *bind_junction(struct ql_binding *binding, const struct ql_term *term)
{
    const struct ql_term *terms[] = {term->first, term->last};
    struct condition *sides[2];
    for (int i = 0; i < 2; i++) {
        bool is_operand = ql_is_path(terms[i]) || ql_is_literal(terms[i]) || terms[i]->kind == TERM_PARAMETER;
        if (is_operand) ql_refuse(binding, "The arguments to AND/OR must be Expressions");
        sides[i] = is_operand ? NULL : bind(binding, terms[i]);
        if (!sides[i]) return NULL;
    }
    return join(binding, says(term, "and") ? CONDITION_AND : CONDITION_OR, sides[0], sides[1]);
}

static struct condition *bind(struct ql_binding *binding, const struct ql_term *term)
{
    enum expr_operation operation;
    if (is_infix(term, "and") || is_infix(term, "or")) return bind_junction(binding, term);
    if (is_function(term, &operation)) return bind_function(binding, term, operation);
    if (is_comparison(term, &operation)) return bind_comparison(binding, term, operation);
    if (is_infix(term, "in")) return bind_in(binding, term);
    if (is_infix(term, "not_in")) return negate(binding, bind_in(binding, term));
    if (is_infix(term, "is")) return bind_is(binding, term);
    if (is_infix(term, "is_not")) return negate(binding, bind_is(binding, term));
    bool is_between = is_infix(term, "between");
    if (is_between || is_infix(term, "not_between")) {
        const struct ql_term *terms[] = {term->first, term->first->next, term->last};
        struct condition *between = bind_operation(binding, EXPR_OP_BETWEEN, terms, 3);
        return is_between ? between : negate(binding, between);
    }
    if (term->kind == TERM_UNARY && says(term, "not")) {
        const struct ql_term *inner = term->first;
        if (!ql_is_path(inner) && !ql_is_literal(inner)) return negate(binding, bind(binding, inner));
    }
    refuse_term(binding, term);
    return NULL;
}

bool ql_bind_where(struct ql_binding *binding, const struct ql_term *term, const struct condition **out)
{
    const struct value *value;
    *out = NULL;
    if (term->kind == TERM_PARAMETER && !ql_bind_value(binding, term, &value)) return false;
    bool is_operand = ql_is_path(term) || ql_is_literal(term) || term->kind == TERM_PARAMETER ||
                      (term->kind == TERM_CALL && says(term, "size"));
    if (is_operand)
        return ql_refuse(binding, "WHERE clause must contain an expression that resolves to a boolean");
    *out = bind(binding, term);
    return *out != NULL;
}
