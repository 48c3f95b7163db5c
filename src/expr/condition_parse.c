/* Conditions: the text of a ConditionExpression, FilterExpression or KeyConditionExpression becomes a bound
 * tree.
 *
 * Parentheses may hold a condition or a single operand, and only what follows tells which; so the functions
 * that read conditions may, directly after a parenthesis, also answer with a lone operand. */
#include "expr/parse.h"

#include "base/fail.h"

static struct expr_node *parse_or(struct parser *parser, bool may_be_operand);

static bool is_operand(const struct expr_node *node)
{
    return node->kind != NODE_OPERATION || node->operation >= EXPR_OP_EXISTS;
}

static struct expr_node *parse_primary(struct parser *parser)
{
    if (parser->token.kind != TOKEN_OPEN) return parse_operand(parser);
    parser_advance(parser);
    if (!parser_descend(parser)) return NULL;
    struct expr_node *inner = parse_or(parser, true);
    if (!inner || !parser_expect(parser, TOKEN_CLOSE)) return NULL;
    parser->depth--;
    return node_enclose(parser, inner);
}

static bool append_operand(struct parser *parser, struct expr_node *operation)
{
    struct expr_node *operand = parse_operand(parser);
    if (operand) expr_append(operation, operand);
    return operand != NULL;
}

static struct expr_node *parse_in(struct parser *parser, struct expr_node *in)
{
    parser_advance(parser);
    if (parser->token.kind != TOKEN_OPEN) return parser_syntax_error(parser);
    do {
        parser_advance(parser);
        if (!append_operand(parser, in)) return NULL;
    } while (parser->token.kind == TOKEN_COMMA);
    return parser_expect(parser, TOKEN_CLOSE) ? in : NULL;
}

static struct expr_node *parse_between(struct parser *parser, struct expr_node *between)
{
    parser_advance(parser);
    bool done = append_operand(parser, between) && parser_expect(parser, TOKEN_AND) &&
                append_operand(parser, between);
    return done ? between : NULL;
}

/* The operation that the token makes of the operand before it, if any. */
static bool comparison_of(enum token_kind token, enum expr_operation *operation)
{
    if (token >= TOKEN_EQ && token <= TOKEN_GE)
        *operation = (enum expr_operation)(EXPR_OP_EQ + (token - TOKEN_EQ));
    else if (token == TOKEN_BETWEEN)
        *operation = EXPR_OP_BETWEEN;
    else if (token == TOKEN_IN)
        *operation = EXPR_OP_IN;
    else
        return false;
    return true;
}

/* No comparison follows: it is a condition by itself, or the only thing in its parentheses. */
static struct expr_node *finish_alone(struct parser *parser, struct expr_node *node, bool may_be_operand)
{
    if (may_be_operand && parser->token.kind == TOKEN_CLOSE) return node;
    if (node->kind != NODE_OPERATION) return parser_syntax_error(parser);
    if (may_be_operand && parser->token.kind != TOKEN_AND && parser->token.kind != TOKEN_OR) return node;
    return parser_resolve(parser) ? node : NULL;
}

static struct expr_node *parse_comparison(struct parser *parser, bool may_be_operand)
{
    enum expr_operation operation;
    parser->looks_ahead = true;
    struct expr_node *left = parse_primary(parser);
    if (!left) return NULL;
    if (!is_operand(left) || !comparison_of(parser->token.kind, &operation))
        return finish_alone(parser, left, may_be_operand);
    if (!parser_resolve(parser)) return NULL;
    struct expr_node *node = operation_new(parser, operation);
    expr_append(node, left);
    if (operation == EXPR_OP_BETWEEN) return parse_between(parser, node);
    if (operation == EXPR_OP_IN) return parse_in(parser, node);
    parser_advance(parser);
    return append_operand(parser, node) ? node : NULL;
}

/* Counted in a loop: a text may hold a thousand of them. */
static struct expr_node *parse_not(struct parser *parser, bool may_be_operand)
{
    unsigned count = 0;
    for (; parser->token.kind == TOKEN_NOT; count++) parser_advance(parser);
    struct expr_node *node = parse_comparison(parser, may_be_operand && count == 0);
    for (; node && count > 0; count--) {
        struct expr_node *not = operation_new(parser, EXPR_OP_NOT);
        expr_append(not, node);
        node = not ;
    }
    return node;
}

static struct expr_node *join(struct parser *parser, enum expr_operation operation, struct expr_node *left,
                         struct expr_node *right)
{
    if (!right) return NULL;
    struct expr_node *node = operation_new(parser, operation);
    expr_append(node, left);
    expr_append(node, right);
    return node;
}

static struct expr_node *parse_and(struct parser *parser, bool may_be_operand)
{
    struct expr_node *left = parse_not(parser, may_be_operand);
    while (left && parser->token.kind == TOKEN_AND) {
        parser_advance(parser);
        left = join(parser, EXPR_OP_AND, left, parse_not(parser, false));
    }
    return left;
}

static struct expr_node *parse_or(struct parser *parser, bool may_be_operand)
{
    struct expr_node *left = parse_and(parser, may_be_operand);
    while (left && parser->token.kind == TOKEN_OR) {
        parser_advance(parser);
        left = join(parser, EXPR_OP_OR, left, parse_and(parser, false));
    }
    return left;
}

/* ---- binding ---- */

static const enum condition_kind condition_kinds[] = {
    [EXPR_OP_AND] = CONDITION_AND,
    [EXPR_OP_OR] = CONDITION_OR,
    [EXPR_OP_NOT] = CONDITION_NOT,
    [EXPR_OP_EQ] = CONDITION_EQ,
    [EXPR_OP_NE] = CONDITION_NE,
    [EXPR_OP_LT] = CONDITION_LT,
    [EXPR_OP_LE] = CONDITION_LE,
    [EXPR_OP_GT] = CONDITION_GT,
    [EXPR_OP_GE] = CONDITION_GE,
    [EXPR_OP_BETWEEN] = CONDITION_BETWEEN,
    [EXPR_OP_IN] = CONDITION_IN,
    [EXPR_OP_EXISTS] = CONDITION_EXISTS,
    [EXPR_OP_NOT_EXISTS] = CONDITION_NOT_EXISTS,
    [EXPR_OP_TYPE] = CONDITION_TYPE,
    [EXPR_OP_BEGINS_WITH] = CONDITION_BEGINS_WITH,
    [EXPR_OP_CONTAINS] = CONDITION_CONTAINS,
};

static struct operand operand_of(const struct expr_node *node)
{
    if (node->kind == NODE_VALUE) return (struct operand){.kind = OPERAND_VALUE, .value = node->value};
    if (node->kind == NODE_PATH) return (struct operand){.kind = OPERAND_PATH, .path = node->path};
    ensure(node->operation == EXPR_OP_SIZE);
    struct operand measured = operand_of(node->operands);
    measured.kind = OPERAND_SIZE;
    return measured;
}

/* The operands of a comparison or function, bound and checked. attribute_type keeps its second as a type. */
static bool fill_condition(struct parser *parser, struct expr_node *node, struct condition *condition)
{
    if (!bind_node(parser, node)) return false;
    condition->operands = arena_array(parser->arena, struct operand, node->operand_count);
    for (const struct expr_node *operand = node->operands; operand; operand = operand->next)
        condition->operands[condition->operand_count++] = operand_of(operand);
    if (condition->kind == CONDITION_TYPE)
        ensure(value_type_from_name(condition->operands[1].value->bytes, &condition->type));
    return true;
}

/* Left before right, so that the first fault in the text is the one reported. */
static struct condition *bind_condition(struct parser *parser, struct expr_node *node)
{
    struct condition *condition = arena_new(parser->arena, struct condition);
    ensure(node->kind == NODE_OPERATION && node->operation <= EXPR_OP_CONTAINS);
    condition->kind = condition_kinds[node->operation];
    if (node->operation > EXPR_OP_NOT) return fill_condition(parser, node, condition) ? condition : NULL;
    condition->left = bind_condition(parser, node->operands);
    if (!condition->left) return NULL;
    if (node->operation == EXPR_OP_NOT) return condition;
    condition->right = bind_condition(parser, node->operands->next);
    return condition->right ? condition : NULL;
}

struct condition *condition_parse(struct arena *arena, enum expr_kind kind, struct slice text,
                                  struct expr_params *params, struct slice *fault)
{
    struct parser parser;
    ensure(kind == EXPR_CONDITION || kind == EXPR_FILTER || kind == EXPR_KEY_CONDITION ||
           kind == EXPR_SEARCH_CONDITION);
    if (!parser_begin(&parser, arena, kind, text, params, fault)) return NULL;
    struct expr_node *root = parse_or(&parser, false);
    if (!root) return NULL;
    if (parser.token.kind != TOKEN_END) return parser_syntax_error(&parser);
    if (!check_words(&parser, root, PLACE_CONDITION)) return NULL;
    struct condition *condition = bind_condition(&parser, root);
    return condition && check_operator_count(&parser) ? condition : NULL;
}

struct condition *condition_from(struct arena *arena, struct expr_node *root, struct slice *fault)
{
    struct parser parser = {.arena = arena, .kind = EXPR_STATEMENT, .fault = fault};
    return bind_condition(&parser, root);
}

/* ---- what a condition mentions ---- */

static bool operand_mentions(const struct operand *operand, struct slice name)
{
    return operand->path.count > 0 && slice_equal(operand->path.parts[0].name, name);
}

bool condition_mentions(const struct condition *condition, struct slice name)
{
    if (condition->left && condition_mentions(condition->left, name)) return true;
    if (condition->right && condition_mentions(condition->right, name)) return true;
    for (uint32_t i = 0; i < condition->operand_count; i++) {
        if (operand_mentions(&condition->operands[i], name)) return true;
    }
    return false;
}
