/* Updates: the text of an UpdateExpression becomes a list of bound actions. */
#include "expr/parse.h"

#include "base/fail.h"

#define FIRST_ACTIONS 8

/* An action as it was read. SET has a tree, ADD and DELETE the placeholder of a value. */
struct clause {
    enum update_verb verb;
    bool ends_section;
    struct path path;
    struct expr_node *node;
    struct slice placeholder;
    const struct value *value; /* of a statement, in place of a placeholder */
};

struct clauses {
    struct clause *items;
    uint32_t count, capacity;
};

static const struct slice verb_names[] = {[UPDATE_SET] = {"SET", 3},
                                          [UPDATE_REMOVE] = {"REMOVE", 6},
                                          [UPDATE_ADD] = {"ADD", 3},
                                          [UPDATE_DELETE] = {"DELETE", 6}};

/* ---- syntax ---- */

static bool is_sum(const struct expr_node *node)
{
    return node->kind == NODE_OPERATION && node->operation < EXPR_OP_EXISTS;
}

static struct expr_node *parse_set_value(struct parser *parser, bool is_enclosed);

static struct expr_node *parse_enclosed_value(struct parser *parser)
{
    parser_advance(parser);
    if (!parser_descend(parser)) return NULL;
    struct expr_node *value = parse_set_value(parser, true);
    if (!value || !parser_expect(parser, TOKEN_CLOSE)) return NULL;
    parser->depth--;
    return node_enclose(parser, value);
}

/* operand, operand + operand, operand - operand, or one of these in parentheses. */
static struct expr_node *parse_set_value(struct parser *parser, bool is_enclosed)
{
    parser->looks_ahead = true;
    struct expr_node *left = parser->token.kind == TOKEN_OPEN ? parse_enclosed_value(parser)
                                                         : parse_operand(parser);
    if (!left) return NULL;
    enum token_kind token = parser->token.kind;
    bool is_alone = is_sum(left) || (token != TOKEN_PLUS && token != TOKEN_MINUS);
    if (is_alone && is_enclosed) return left;
    if (!parser_resolve(parser)) return NULL;
    if (is_alone) return left;
    struct expr_node *sum = operation_new(parser, token == TOKEN_PLUS ? EXPR_OP_PLUS : EXPR_OP_MINUS);
    parser_advance(parser);
    struct expr_node *right = parse_operand(parser);
    if (!right) return NULL;
    expr_append(sum, left);
    expr_append(sum, right);
    return sum;
}

static bool parse_clause(struct parser *parser, struct clause *clause)
{
    if (!parse_path(parser, &clause->path)) return false;
    switch (clause->verb) {
    case UPDATE_SET:
        if (!parser_expect(parser, TOKEN_EQ)) return false;
        clause->node = parse_set_value(parser, false);
        return clause->node != NULL;
    case UPDATE_REMOVE: return true;
    case UPDATE_ADD:
    case UPDATE_DELETE: break;
    }
    clause->placeholder = parser->token.text;
    return parser_expect(parser, TOKEN_VALUE_PLACEHOLDER);
}

static struct clause *clause_new(struct parser *parser, struct clauses *clauses)
{
    if (clauses->count == clauses->capacity) {
        clauses->capacity = clauses->capacity ? clauses->capacity * 4 : FIRST_ACTIONS;
        struct clause *items = arena_array(parser->arena, struct clause, clauses->capacity);
        if (clauses->count) memcpy(items, clauses->items, clauses->count * sizeof *items);
        clauses->items = items;
    }
    struct clause *clause = &clauses->items[clauses->count++];
    *clause = (struct clause){0};
    return clause;
}

static bool parse_section(struct parser *parser, struct clauses *clauses)
{
    enum token_kind token = parser->token.kind;
    if (token < TOKEN_SET || token > TOKEN_DELETE) {
        parser_syntax_error(parser);
        return false;
    }
    struct clause *clause;
    do {
        parser_advance(parser);
        clause = clause_new(parser, clauses);
        clause->verb = (enum update_verb)(UPDATE_SET + (token - TOKEN_SET));
        if (!parse_clause(parser, clause)) return false;
    } while (parser->token.kind == TOKEN_COMMA);
    clause->ends_section = true;
    return true;
}

/* ---- words ---- */

/* A section is known to be a repetition only once its own words were looked at. */
static bool check_clauses(struct parser *parser, struct clauses *clauses)
{
    bool seen[4] = {false, false, false, false};
    for (uint32_t i = 0; i < clauses->count; i++) {
        struct clause *clause = &clauses->items[i];
        if (!check_path_words(parser, &clause->path)) return false;
        if (clause->node && !check_words(parser, clause->node, PLACE_SET_VALUE)) return false;
        if (!clause->ends_section) continue;
        if (seen[clause->verb]) {
            return REFUSE(parser, SLICE("The \""), verb_names[clause->verb],
                          SLICE("\" section can only be used once in an update expression;"));
        }
        seen[clause->verb] = true;
    }
    return true;
}

/* ---- binding ---- */

/* As the faults of ADD and DELETE, and only they, name the types. */
static struct slice long_type_name(enum value_type type)
{
    static const struct slice names[VALUE_TYPES] = {
        [VALUE_S] = {"STRING", 6},      [VALUE_N] = {"NUMBER", 6},       [VALUE_B] = {"BINARY", 6},
        [VALUE_BOOL] = {"BOOLEAN", 7},  [VALUE_NULL] = {"NULL", 4},      [VALUE_L] = {"LIST", 4},
        [VALUE_M] = {"MAP", 3},         [VALUE_SS] = {"STRING_SET", 10}, [VALUE_NS] = {"NUMBER_SET", 10},
        [VALUE_BS] = {"BINARY_SET", 10}};
    return names[type];
}

static bool bind_added(struct parser *parser, const struct clause *clause, struct update_action *action)
{
    action->value = clause->value;
    if (!action->value && !bind_value(parser, clause->placeholder, &action->value)) return false;
    enum value_type type = action->value->type;
    if (type == VALUE_SS || type == VALUE_NS || type == VALUE_BS) return true;
    if (type == VALUE_N && clause->verb == UPDATE_ADD) return true;
    return REFUSE(parser, SLICE("Incorrect operand type for operator or function; operator: "),
                  verb_names[clause->verb], SLICE(", operand type: "), long_type_name(type),
                  SLICE(", typeSet: ALLOWED_FOR_"), verb_names[clause->verb], SLICE("_OPERAND"));
}

static struct update_operand *operand_of(struct arena *arena, const struct expr_node *node)
{
    struct update_operand *operand = arena_new(arena, struct update_operand);
    if (node->kind == NODE_VALUE) {
        operand->kind = UPDATE_OPERAND_VALUE;
        operand->value = node->value;
    } else if (node->kind == NODE_PATH) {
        operand->kind = UPDATE_OPERAND_PATH;
        operand->path = node->path;
    } else if (node->operation == EXPR_OP_IF_NOT_EXISTS) {
        operand->kind = UPDATE_OPERAND_IF_NOT_EXISTS;
        operand->path = node->operands->path;
        operand->right = operand_of(arena, node->operands->next);
    } else {
        ensure(is_sum(node) || node->operation == EXPR_OP_LIST_APPEND);
        operand->kind = node->operation == EXPR_OP_PLUS    ? UPDATE_OPERAND_PLUS
                        : node->operation == EXPR_OP_MINUS ? UPDATE_OPERAND_MINUS
                                                           : UPDATE_OPERAND_LIST_APPEND;
        operand->left = operand_of(arena, node->operands);
        operand->right = operand_of(arena, node->operands->next);
    }
    return operand;
}

static bool bind_set(struct parser *parser, struct expr_node *node, struct update_action *action)
{
    if (!bind_node(parser, node)) return false;
    if (!is_sum(node)) {
        action->left = operand_of(parser->arena, node);
        return true;
    }
    action->value_kind = node->operation == EXPR_OP_PLUS ? UPDATE_PLUS : UPDATE_MINUS;
    action->left = operand_of(parser->arena, node->operands);
    action->right = operand_of(parser->arena, node->operands->next);
    return true;
}

static bool bind_action(struct parser *parser, const struct clause *clause, struct update_action *action)
{
    switch (clause->verb) {
    case UPDATE_SET: return bind_set(parser, clause->node, action);
    case UPDATE_REMOVE: return true;
    case UPDATE_ADD:
    case UPDATE_DELETE: break;
    }
    return bind_added(parser, clause, action);
}

/* The service binds the last action of an expression first, the first of a statement, and all target paths
 * before any operand. */
static bool bind_clauses(struct parser *parser, struct clauses *clauses, struct path_tree *tree,
                         struct update_action *actions)
{
    bool in_order = parser->kind == EXPR_STATEMENT;
    for (uint32_t n = 0; n < clauses->count; n++) {
        uint32_t i = in_order ? n : clauses->count - 1 - n;
        struct clause *clause = &clauses->items[i];
        if (!bind_path(parser, &clause->path) || !path_tree_add(parser, tree, &clause->path, i)) return false;
        actions[i].verb = clause->verb;
        actions[i].path = clause->path;
    }
    for (uint32_t n = 0; n < clauses->count; n++) {
        uint32_t i = in_order ? n : clauses->count - 1 - n;
        if (!bind_action(parser, &clauses->items[i], &actions[i])) return false;
    }
    return true;
}

/* The service carries the actions out as it walks its tree of paths: the first that fails on an item is the
 * one reported, so they are kept in that order. */
static struct update *build_update(struct parser *parser, const struct path_tree *tree,
                                   struct update_action *actions, uint32_t count)
{
    struct update *update = arena_new(parser->arena, struct update);
    update->actions = actions;
    update->count = count;
    if (count == 1) return update;
    uint32_t *positions = arena_array(parser->arena, uint32_t, count);
    ensure(path_tree_walk(parser->arena, tree, positions) == count);
    update->actions = arena_array(parser->arena, struct update_action, count);
    for (uint32_t i = 0; i < count; i++) update->actions[i] = actions[positions[i]];
    return update;
}

struct update *update_parse(struct arena *arena, struct slice text, struct expr_params *params,
                            struct slice *fault)
{
    struct parser parser;
    struct clauses clauses = {0};
    if (!parser_begin(&parser, arena, EXPR_UPDATE, text, params, fault)) return NULL;
    do {
        if (!parse_section(&parser, &clauses)) return NULL;
    } while (parser.token.kind != TOKEN_END);
    if (!check_clauses(&parser, &clauses)) return NULL;
    struct path_tree *tree = path_tree_new(arena);
    struct update_action *actions = arena_zero(arena, clauses.count * sizeof *actions);
    if (!bind_clauses(&parser, &clauses, tree, actions) || !check_operator_count(&parser)) return NULL;
    return build_update(&parser, tree, actions, clauses.count);
}

struct update *update_from(struct arena *arena, const struct expr_clause *from, uint32_t count,
                           struct slice *fault)
{
    struct parser parser = {.arena = arena, .kind = EXPR_STATEMENT, .fault = fault};
    struct clauses clauses = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct clause *clause = clause_new(&parser, &clauses);
        clause->verb = from[i].verb;
        clause->path = from[i].path;
        clause->node = from[i].node;
        clause->value = from[i].value;
    }
    struct path_tree *tree = path_tree_new(arena);
    struct update_action *actions = arena_zero(arena, count * sizeof *actions);
    return bind_clauses(&parser, &clauses, tree, actions) ? build_update(&parser, tree, actions, count) : NULL;
}

bool update_touches(const struct update *update, struct slice name)
{
    for (uint32_t i = 0; i < update->count; i++) {
        if (slice_equal(update->actions[i].path.parts[0].name, name)) return true;
    }
    return false;
}
