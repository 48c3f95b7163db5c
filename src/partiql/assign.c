/* SET and REMOVE as an update. */
#include "partiql/internal.h"

#include "base/fail.h"

static bool says(const struct ql_term *term, const char *word)
{
    return slice_equal(term->text, slice_of(word));
}

static struct expr_node *bind_operand(struct ql_binding *binding, const struct ql_term *term);

static struct expr_node *bind_call(struct ql_binding *binding, const struct ql_term *term)
{
    static const char *const of_conditions[] = {"size",           "begins_with",      "contains",
                                                "attribute_type", "attribute_exists", "attribute_not_exists"};
    for (size_t i = 0; i < sizeof of_conditions / sizeof *of_conditions; i++) {
        if (!says(term, of_conditions[i])) continue;
        ql_refuse(binding, "The function is not allowed in an update expression; function: %s",
                  of_conditions[i]);
        return NULL;
    }
    bool is_append = says(term, "list_append");
    if (!is_append && !says(term, "if_not_exists")) {
        ql_refuse_at(binding, term, "Unrecognized function: %.*s", SLICE_ARG(term->token->text));
        return NULL;
    }
    struct expr_node *node = expr_call(binding->arena,
                                       is_append ? EXPR_OP_LIST_APPEND : EXPR_OP_IF_NOT_EXISTS);
    for (const struct ql_term *child = term->first; child; child = child->next) {
        struct expr_node *operand = bind_operand(binding, child);
        if (!operand) return NULL;
        expr_append(node, operand);
    }
    return node;
}

static struct expr_node *bind_operand(struct ql_binding *binding, const struct ql_term *term)
{
    bool is_sum = term->kind == TERM_INFIX && (says(term, "+") || says(term, "-"));
    if (is_sum) {
        struct expr_node *sum = expr_call(binding->arena, says(term, "+") ? EXPR_OP_PLUS : EXPR_OP_MINUS);
        struct expr_node *left = bind_operand(binding, term->first);
        struct expr_node *right = left ? bind_operand(binding, term->last) : NULL;
        if (!right) return NULL;
        expr_append(sum, left);
        expr_append(sum, right);
        return sum;
    }
    if (term->kind == TERM_CALL && !ql_is_literal(term)) return bind_call(binding, term);
    if (term->kind == TERM_UNARY && !says(term, "not")) {
        ql_refuse(binding,
                  "Incorrect number of operands for operator or function; operator or function: %.*s, number "
                  "of operands: 1",
                  SLICE_ARG(term->text));
        return NULL;
    }
    if (term->kind == TERM_INFIX || term->kind == TERM_UNARY) {
        if (!bind_operand(binding, term->first)) return NULL;
        ql_refuse(binding, "Unsupported operator in Update Expression. Operator: %.*s",
                  SLICE_ARG(term->text));
        return NULL;
    }
    return ql_bind_operand(binding, term);
}

/* SET s = set_add(s, <<1>>) */
static bool bind_set_function(struct ql_binding *binding, const struct ql_term *call,
                              struct expr_clause *clause)
{
    bool adds = says(call, "set_add");
    const char *name = adds ? "SET_ADD" : "SET_DELETE";
    struct path path;
    clause->verb = adds ? UPDATE_ADD : UPDATE_DELETE;
    if (call->count != 2) return ql_refuse_at(binding, call, "%s must have exactly two arguments", name);
    bool is_same = ql_is_path(call->first);
    if (is_same && !ql_bind_path(binding, call->first, &path)) return false;
    is_same = is_same && path.count == clause->path.count;
    for (uint32_t i = 0; is_same && i < path.count; i++)
        is_same = path.parts[i].is_index == clause->path.parts[i].is_index &&
                  path.parts[i].index == clause->path.parts[i].index &&
                  slice_equal(path.parts[i].name, clause->path.parts[i].name);
    if (!is_same)
        return ql_refuse_at(binding, call, "The first argument to %s must equal the assignment value", name);
    bool is_value = call->last->kind == TERM_PARAMETER || ql_is_literal(call->last);
    if (is_value && !ql_bind_value(binding, call->last, &clause->value)) return false;
    if (is_value && clause->value->type >= VALUE_SS) return true;
    return ql_refuse_at(binding, call->first, "The second argument to %s must be a value with type SET",
                        name);
}

static bool bind_action(struct ql_binding *binding, const struct ql_term *action, struct expr_clause *clause)
{
    ensure(action->kind == TERM_SET || action->kind == TERM_REMOVE);
    if (!ql_bind_path(binding, action->first, &clause->path)) return false;
    clause->verb = action->kind == TERM_SET ? UPDATE_SET : UPDATE_REMOVE;
    if (clause->verb == UPDATE_REMOVE) return true;
    const struct ql_term *value = action->last;
    if (value->kind == TERM_CALL && (says(value, "set_add") || says(value, "set_delete")))
        return bind_set_function(binding, value, clause);
    clause->node = bind_operand(binding, value);
    return clause->node != NULL;
}

bool ql_bind_actions(struct ql_binding *binding, const struct ql_term *actions, const struct update **out)
{
    struct expr_clause *clauses = arena_zero(binding->arena, actions->count * sizeof *clauses);
    uint32_t count = 0;
    for (const struct ql_term *action = actions->first; action; action = action->next)
        if (!bind_action(binding, action, &clauses[count++])) return false;
    *out = update_from(binding->arena, clauses, count, binding->fault);
    return *out != NULL;
}
