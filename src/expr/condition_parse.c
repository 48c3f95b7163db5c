/* Conditions: the text of a ConditionExpression, FilterExpression or KeyConditionExpression becomes a bound
 * tree.
 *
 * Parentheses may hold a condition or a single operand, and only what follows tells which; so the functions
 * that read conditions may, directly after a parenthesis, also answer with a lone operand. */
#include "expr/parse.h"

#include "base/fail.h"

static struct node *parse_or(struct parser *parser, bool may_be_operand);

static bool is_operand(const struct node *node)
{
    return node->kind != NODE_OPERATION || node->operation >= OPERATION_EXISTS;
}

static struct node *parse_primary(struct parser *parser)
{
    if (parser->token.kind != TOKEN_OPEN) return parse_operand(parser);
    parser_advance(parser);
    if (!parser_descend(parser)) return NULL;
    struct node *inner = parse_or(parser, true);
    if (!inner || !parser_expect(parser, TOKEN_CLOSE)) return NULL;
    parser->depth--;
    return node_enclose(parser, inner);
}

static bool append_operand(struct parser *parser, struct node *operation)
{
    struct node *operand = parse_operand(parser);
    if (operand) node_append(operation, operand);
    return operand != NULL;
}

static struct node *parse_in(struct parser *parser, struct node *in)
{
    parser_advance(parser);
    if (parser->token.kind != TOKEN_OPEN) return parser_syntax_error(parser);
    do {
        parser_advance(parser);
        if (!append_operand(parser, in)) return NULL;
    } while (parser->token.kind == TOKEN_COMMA);
    return parser_expect(parser, TOKEN_CLOSE) ? in : NULL;
}

static struct node *parse_between(struct parser *parser, struct node *between)
{
    parser_advance(parser);
    bool done = append_operand(parser, between) && parser_expect(parser, TOKEN_AND) &&
                append_operand(parser, between);
    return done ? between : NULL;
}

/* The operation that the token makes of the operand before it, if any. */
static bool comparison_of(enum token_kind token, enum operation *operation)
{
    if (token >= TOKEN_EQ && token <= TOKEN_GE)
        *operation = (enum operation)(OPERATION_EQ + (token - TOKEN_EQ));
    else if (token == TOKEN_BETWEEN)
        *operation = OPERATION_BETWEEN;
    else if (token == TOKEN_IN)
        *operation = OPERATION_IN;
    else
        return false;
    return true;
}

/* No comparison follows: it is a condition by itself, or the only thing in its parentheses. */
static struct node *finish_alone(struct parser *parser, struct node *node, bool may_be_operand)
{
    if (may_be_operand && parser->token.kind == TOKEN_CLOSE) return node;
    if (node->kind != NODE_OPERATION) return parser_syntax_error(parser);
    if (may_be_operand && parser->token.kind != TOKEN_AND && parser->token.kind != TOKEN_OR) return node;
    return parser_resolve(parser) ? node : NULL;
}

static struct node *parse_comparison(struct parser *parser, bool may_be_operand)
{
    enum operation operation;
    parser->looks_ahead = true;
    struct node *left = parse_primary(parser);
    if (!left) return NULL;
    if (!is_operand(left) || !comparison_of(parser->token.kind, &operation))
        return finish_alone(parser, left, may_be_operand);
    if (!parser_resolve(parser)) return NULL;
    struct node *node = operation_new(parser, operation);
    node_append(node, left);
    if (operation == OPERATION_BETWEEN) return parse_between(parser, node);
    if (operation == OPERATION_IN) return parse_in(parser, node);
    parser_advance(parser);
    return append_operand(parser, node) ? node : NULL;
}

/* Counted in a loop: a text may hold a thousand of them. */
static struct node *parse_not(struct parser *parser, bool may_be_operand)
{
    unsigned count = 0;
    for (; parser->token.kind == TOKEN_NOT; count++) parser_advance(parser);
    struct node *node = parse_comparison(parser, may_be_operand && count == 0);
    for (; node && count > 0; count--) {
        struct node *not = operation_new(parser, OPERATION_NOT);
        node_append(not, node);
        node = not ;
    }
    return node;
}

static struct node *join(struct parser *parser, enum operation operation, struct node *left,
                         struct node *right)
{
    if (!right) return NULL;
    struct node *node = operation_new(parser, operation);
    node_append(node, left);
    node_append(node, right);
    return node;
}

static struct node *parse_and(struct parser *parser, bool may_be_operand)
{
    struct node *left = parse_not(parser, may_be_operand);
    while (left && parser->token.kind == TOKEN_AND) {
        parser_advance(parser);
        left = join(parser, OPERATION_AND, left, parse_not(parser, false));
    }
    return left;
}

static struct node *parse_or(struct parser *parser, bool may_be_operand)
{
    struct node *left = parse_and(parser, may_be_operand);
    while (left && parser->token.kind == TOKEN_OR) {
        parser_advance(parser);
        left = join(parser, OPERATION_OR, left, parse_and(parser, false));
    }
    return left;
}

/* ---- binding ---- */

static const enum condition_kind condition_kinds[] = {
    [OPERATION_AND] = CONDITION_AND,
    [OPERATION_OR] = CONDITION_OR,
    [OPERATION_NOT] = CONDITION_NOT,
    [OPERATION_EQ] = CONDITION_EQ,
    [OPERATION_NE] = CONDITION_NE,
    [OPERATION_LT] = CONDITION_LT,
    [OPERATION_LE] = CONDITION_LE,
    [OPERATION_GT] = CONDITION_GT,
    [OPERATION_GE] = CONDITION_GE,
    [OPERATION_BETWEEN] = CONDITION_BETWEEN,
    [OPERATION_IN] = CONDITION_IN,
    [OPERATION_EXISTS] = CONDITION_EXISTS,
    [OPERATION_NOT_EXISTS] = CONDITION_NOT_EXISTS,
    [OPERATION_TYPE] = CONDITION_TYPE,
    [OPERATION_BEGINS_WITH] = CONDITION_BEGINS_WITH,
    [OPERATION_CONTAINS] = CONDITION_CONTAINS,
};

static struct operand operand_of(const struct node *node)
{
    if (node->kind == NODE_VALUE) return (struct operand){.kind = OPERAND_VALUE, .value = node->value};
    if (node->kind == NODE_PATH) return (struct operand){.kind = OPERAND_PATH, .path = node->path};
    ensure(node->operation == OPERATION_SIZE);
    struct operand measured = operand_of(node->operands);
    measured.kind = OPERAND_SIZE;
    return measured;
}

/* The operands of a comparison or function, bound and checked. attribute_type keeps its second as a type. */
static bool fill_condition(struct parser *parser, struct node *node, struct condition *condition)
{
    if (!bind_node(parser, node)) return false;
    condition->operands = arena_array(parser->arena, struct operand, node->operand_count);
    for (const struct node *operand = node->operands; operand; operand = operand->next)
        condition->operands[condition->operand_count++] = operand_of(operand);
    if (condition->kind == CONDITION_TYPE)
        ensure(value_type_from_name(condition->operands[1].value->bytes, &condition->type));
    return true;
}

/* Left before right, so that the first fault in the text is the one reported. */
static struct condition *bind_condition(struct parser *parser, struct node *node)
{
    struct condition *condition = arena_new(parser->arena, struct condition);
    ensure(node->kind == NODE_OPERATION && node->operation <= OPERATION_CONTAINS);
    condition->kind = condition_kinds[node->operation];
    if (node->operation > OPERATION_NOT) return fill_condition(parser, node, condition) ? condition : NULL;
    condition->left = bind_condition(parser, node->operands);
    if (!condition->left) return NULL;
    if (node->operation == OPERATION_NOT) return condition;
    condition->right = bind_condition(parser, node->operands->next);
    return condition->right ? condition : NULL;
}

struct condition *condition_parse(struct arena *arena, enum expr_kind kind, struct slice text,
                                  struct expr_params *params, struct slice *fault)
{
    struct parser parser;
    ensure(kind == EXPR_CONDITION || kind == EXPR_FILTER || kind == EXPR_KEY_CONDITION);
    if (!parser_begin(&parser, arena, kind, text, params, fault)) return NULL;
    struct node *root = parse_or(&parser, false);
    if (!root) return NULL;
    if (parser.token.kind != TOKEN_END) return parser_syntax_error(&parser);
    if (!check_words(&parser, root, PLACE_CONDITION)) return NULL;
    struct condition *condition = bind_condition(&parser, root);
    return condition && check_operator_count(&parser) ? condition : NULL;
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
