/* Expressions: from tokens to terms, by precedence. */
#include "partiql/internal.h"

#include "base/fail.h"

#define PRECEDENCE_NOT 30

/* ---- faults ---- */

void *ql_malformed(struct ql_parser *parser, const char *detail)
{
    *parser->fault = arena_printf(parser->texts, "Statement wasn't well formed, can't be processed: %s",
                                  detail);
    return NULL;
}

static const char *const kind_names[] = {
#define X(kind, name) [QL_##kind] = name,
    QL_TOKENS(X)
#undef X
};

bool ql_expect(struct ql_parser *parser, enum ql_token_kind kind)
{
    if (parser->at->kind == kind) {
        parser->at++;
        return true;
    }
    ql_malformed(parser, arena_printf(parser->arena, "Expected %s", kind_names[kind]).data);
    return false;
}

bool ql_expect_word(struct ql_parser *parser, const char *word)
{
    if (ql_says(parser->at, word)) {
        parser->at++;
        return true;
    }
    struct slice shown = arena_printf(parser->arena, "Expected %s keyword", word);
    char *text = (char *)shown.data;
    for (size_t i = strlen("Expected "); i < strlen("Expected ") + strlen(word); i++)
        if (text[i] >= 'a' && text[i] <= 'z') text[i] = (char)(text[i] - 32);
    ql_malformed(parser, text);
    return false;
}

/* ---- terms ---- */

struct ql_term *ql_term_new(struct ql_parser *parser, enum ql_term_kind kind, const struct ql_token *token)
{
    struct ql_term *term = arena_new(parser->arena, struct ql_term);
    term->kind = kind;
    term->token = token;
    term->text = token->text;
    return term;
}

void ql_term_add(struct ql_term *parent, struct ql_term *child)
{
    ensure(!child->next);
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

struct ql_term *ql_parse_list(struct ql_parser *parser, struct ql_term *parent, enum ql_token_kind end)
{
    for (;;) {
        struct ql_term *child = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
        if (!child) return NULL;
        ql_term_add(parent, child);
        if (parser->at->kind != QL_COMMA) return ql_expect(parser, end) ? parent : NULL;
        parser->at++;
    }
}

/* [1, 2], <<1, 2>>: may be empty. The current token opens it. */
static struct ql_term *parse_sequence(struct ql_parser *parser, enum ql_term_kind kind,
                                      enum ql_token_kind end)
{
    struct ql_term *term = ql_term_new(parser, kind, parser->at++);
    if (parser->at->kind != end) return ql_parse_list(parser, term, end);
    parser->at++;
    return term;
}

static struct ql_term *parse_member(struct ql_parser *parser)
{
    struct ql_term *name = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
    if (!name || !ql_expect(parser, QL_COLON)) return NULL;
    struct ql_term *value = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
    if (!value) return NULL;
    struct ql_term *member = ql_term_new(parser, TERM_MEMBER, name->token);
    ql_term_add(member, name);
    ql_term_add(member, value);
    return member;
}

static struct ql_term *parse_struct(struct ql_parser *parser)
{
    struct ql_term *term = ql_term_new(parser, TERM_STRUCT, parser->at++);
    if (parser->at->kind == QL_RIGHT_CURLY) {
        parser->at++;
        return term;
    }
    for (;;) {
        struct ql_term *member = parse_member(parser);
        if (!member) return NULL;
        ql_term_add(term, member);
        if (parser->at->kind != QL_COMMA) return ql_expect(parser, QL_RIGHT_CURLY) ? term : NULL;
        parser->at++;
    }
}

/* (term) is the term, (term, term) a list. */
static struct ql_term *parse_group(struct ql_parser *parser)
{
    struct ql_term *group = ql_term_new(parser, TERM_LIST, parser->at++);
    if (parser->at->kind == QL_RIGHT_PAREN) return ql_malformed(parser, "Expression group cannot be empty");
    if (!ql_parse_list(parser, group, QL_RIGHT_PAREN)) return NULL;
    return group->count == 1 ? group->first : group;
}

/* ---- functions ---- */

static bool is_any(struct slice word, const char *const *list)
{
    for (; *list; list++)
        if (slice_equal(word, slice_of(*list))) return true;
    return false;
}

static const char *const function_keywords[] = {"exists",
                                                "count",
                                                "avg",
                                                "max",
                                                "min",
                                                "sum",
                                                "char_length",
                                                "character_length",
                                                "octet_length",
                                                "bit_length",
                                                "upper",
                                                "lower",
                                                "size",
                                                "sexp",
                                                "list",
                                                "bag",
                                                NULL};
static const char *const aggregates[] = {"count", "avg", "max", "min", "sum", NULL};
/* Functions with a syntax of their own, which the service takes from nobody. */
static const char *const odd_functions[] = {"substring", "trim",   "extract",  "date_add",
                                            "date_diff", "nullif", "coalesce", NULL};

static struct slice small_letters(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = text.data[i] >= 'A' && text.data[i] <= 'Z' ? (char)(text.data[i] + 32) : text.data[i];
    return (struct slice){copy, text.len};
}

/* The current token is the function's name, the next one the parenthesis. */
static struct ql_term *parse_call(struct ql_parser *parser)
{
    struct ql_term *call = ql_term_new(parser, TERM_CALL, parser->at);
    bool is_aggregate = parser->at->kind == QL_KEYWORD && is_any(call->text, aggregates);
    bool is_count = is_aggregate && slice_equal(call->text, SLICE("count"));
    call->text = small_letters(parser->arena, call->text);
    call->is_aggregate = is_aggregate;
    parser->at += 2;
    if (is_aggregate && (ql_says(parser->at, "distinct") || ql_says(parser->at, "all"))) parser->at++;
    if (parser->at->kind == QL_STAR && !is_count)
        return ql_malformed(
            parser, arena_printf(parser->arena, "%.*s(*) is not allowed", SLICE_ARG(call->text)).data);
    if (parser->at->kind == QL_STAR) {
        parser->at++;
        return ql_expect(parser, QL_RIGHT_PAREN) ? call : NULL;
    }
    if (parser->at->kind == QL_RIGHT_PAREN) {
        if (is_aggregate) return ql_malformed(parser, "Aggregate functions are always unary");
        parser->at++;
        return call;
    }
    if (!ql_parse_list(parser, call, QL_RIGHT_PAREN)) return NULL;
    if (is_aggregate && !is_count && call->count != 1)
        return ql_malformed(parser, "Aggregate functions are always unary");
    return call;
}

static struct ql_term *parse_odd_function(struct ql_parser *parser)
{
    struct slice name = parser->at->text;
    if (parser->at[1].kind == QL_LEFT_PAREN) return parse_call(parser);
    parser->at++;
    return ql_malformed(
        parser, arena_printf(parser->arena, "Missing left parenthesis after %.*s", SLICE_ARG(name)).data);
}

/* ---- types ---- */

static struct ql_term *parse_type(struct ql_parser *parser)
{
    static const char *const names[] = {"missing",
                                        "null",
                                        "boolean",
                                        "smallint",
                                        "integer4",
                                        "integer8",
                                        "integer",
                                        "float",
                                        "real",
                                        "date",
                                        "time",
                                        "double_precision",
                                        "decimal",
                                        "numeric",
                                        "timestamp",
                                        "character",
                                        "blob",
                                        "struct",
                                        "character_varying",
                                        "string",
                                        "symbol",
                                        "clob",
                                        "tuple",
                                        "list",
                                        "sexp",
                                        "bag",
                                        "any",
                                        NULL};
    const struct ql_token *token = parser->at;
    bool is_word = token->kind == QL_KEYWORD || token->kind == QL_MISSING || token->kind == QL_NULL;
    if (!is_word || !is_any(token->text, names)) return ql_malformed(parser, "Expected type name");
    struct ql_term *type = ql_term_new(parser, TERM_TYPE, parser->at++);
    if (parser->at->kind != QL_LEFT_PAREN) return type;
    parser->at++;
    if (!ql_parse_list(parser, type, QL_RIGHT_PAREN)) return NULL;
    for (const struct ql_term *child = type->first; child; child = child->next)
        if (child->kind != TERM_NUMBER || child->negative)
            return ql_malformed(parser, "Type parameter must be an unsigned integer literal");
    return type;
}

/* CAST(term AS type) */
static struct ql_term *parse_cast(struct ql_parser *parser)
{
    struct ql_term *cast = ql_term_new(parser, TERM_CAST, parser->at++);
    if (parser->at->kind != QL_LEFT_PAREN)
        return ql_malformed(
            parser,
            arena_printf(parser->arena, "Missing left parenthesis after %.*s", SLICE_ARG(cast->text)).data);
    parser->at++;
    if (!ql_parse_expression(parser, QL_PRECEDENCE_LEAST) || !ql_expect(parser, QL_AS) ||
        !parse_type(parser) || !ql_expect(parser, QL_RIGHT_PAREN))
        return NULL;
    return cast;
}

static struct ql_term *parse_case(struct ql_parser *parser)
{
    struct ql_term *term = ql_term_new(parser, TERM_CASE, parser->at++);
    if (!ql_says(parser->at, "when") && !ql_parse_expression(parser, QL_PRECEDENCE_LEAST)) return NULL;
    if (!ql_says(parser->at, "when")) return ql_malformed(parser, "Expected a WHEN clause in CASE");
    while (ql_says(parser->at, "when")) {
        parser->at++;
        if (!ql_parse_expression(parser, QL_PRECEDENCE_LEAST) || !ql_expect_word(parser, "then") ||
            !ql_parse_expression(parser, QL_PRECEDENCE_LEAST))
            return NULL;
    }
    if (ql_says(parser->at, "else")) {
        parser->at++;
        if (!ql_parse_expression(parser, QL_PRECEDENCE_LEAST)) return NULL;
    }
    return ql_expect_word(parser, "end") ? term : NULL;
}

/* ---- one term ---- */

static struct ql_term *parse_keyword(struct ql_parser *parser)
{
    const struct ql_token *token = parser->at;
    if (ql_begins_statement(token)) return ql_parse_statement(parser);
    if (ql_says(token, "case")) return parse_case(parser);
    if (ql_says(token, "cast") || ql_says(token, "can_cast") || ql_says(token, "can_lossless_cast"))
        return parse_cast(parser);
    if (is_any(token->text, odd_functions)) return parse_odd_function(parser);
    if (is_any(token->text, function_keywords) && token[1].kind == QL_LEFT_PAREN) return parse_call(parser);
    return ql_malformed(parser, "Unexpected keyword");
}

static struct ql_term *parse_operator(struct ql_parser *parser)
{
    if (!ql_says(parser->at, "@")) return ql_malformed(parser, "Unexpected operator");
    parser->at++;
    if (parser->at->kind != QL_NAME && parser->at->kind != QL_QUOTED_NAME)
        return ql_malformed(parser, "Identifier must follow @-operator");
    const struct ql_token *name = parser->at++;
    return ql_term_new(parser, TERM_NAME, name);
}

static struct ql_term *parse_term(struct ql_parser *parser)
{
    switch (parser->at->kind) {
    case QL_NAME:
    case QL_QUOTED_NAME:
        if (parser->at[1].kind == QL_LEFT_PAREN) return parse_call(parser);
        return ql_term_new(parser, TERM_NAME, parser->at++);
    case QL_STRING: return ql_term_new(parser, TERM_STRING, parser->at++);
    case QL_NUMBER: return ql_term_new(parser, TERM_NUMBER, parser->at++);
    case QL_BOOL: return ql_term_new(parser, TERM_BOOL, parser->at++);
    case QL_NULL: return ql_term_new(parser, TERM_NULL, parser->at++);
    case QL_MISSING: return ql_term_new(parser, TERM_MISSING, parser->at++);
    case QL_ION: return ql_term_new(parser, TERM_ION, parser->at++);
    case QL_PARAMETER: return ql_term_new(parser, TERM_PARAMETER, parser->at++);
    case QL_KEYWORD: return parse_keyword(parser);
    case QL_OPERATOR: return parse_operator(parser);
    case QL_LEFT_PAREN: return parse_group(parser);
    case QL_LEFT_BRACKET: return parse_sequence(parser, TERM_LIST, QL_RIGHT_BRACKET);
    case QL_LEFT_ANGLES: return parse_sequence(parser, TERM_BAG, QL_RIGHT_ANGLES);
    case QL_LEFT_CURLY: return parse_struct(parser);
    default: return ql_malformed(parser, "Unexpected term");
    }
}

/* ---- paths ---- */

static struct ql_term *parse_dot(struct ql_parser *parser, bool is_simple)
{
    parser->at++;
    if (parser->at->kind == QL_NAME || parser->at->kind == QL_QUOTED_NAME)
        return ql_term_new(parser, TERM_STEP, parser->at++);
    if (parser->at->kind != QL_STAR) return ql_malformed(parser, "Invalid path dot component");
    if (is_simple) return ql_malformed(parser, "Invalid path dot component for simple path");
    return ql_term_new(parser, TERM_STEP_STAR, parser->at++);
}

static struct ql_term *parse_bracket(struct ql_parser *parser, bool is_simple)
{
    const struct ql_token *bracket = parser->at++;
    struct ql_term *step = ql_term_new(parser, TERM_INDEX, bracket), *index = NULL;
    if (parser->at->kind == QL_STAR) {
        step->kind = TERM_INDEX_STAR;
        parser->at++;
    } else {
        index = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
        if (!index) return NULL;
        ql_term_add(step, index);
    }
    if (!ql_expect(parser, QL_RIGHT_BRACKET)) return NULL;
    if (is_simple && (!index || (!ql_is_literal(index) && index->kind != TERM_NAME)))
        return ql_malformed(parser, "Invalid path component for simple path");
    return step;
}

static struct ql_term *parse_steps(struct ql_parser *parser, struct ql_term *root, bool is_simple)
{
    struct ql_term *path = NULL;
    while (root && (parser->at->kind == QL_DOT || parser->at->kind == QL_LEFT_BRACKET)) {
        struct ql_term *step = parser->at->kind == QL_DOT ? parse_dot(parser, is_simple)
                                                          : parse_bracket(parser, is_simple);
        if (!step) return NULL;
        if (!path) {
            path = ql_term_new(parser, TERM_PATH, root->token);
            ql_term_add(path, root);
        }
        ql_term_add(path, step);
    }
    return path ? path : root;
}

struct ql_term *ql_parse_simple_path(struct ql_parser *parser)
{
    if (parser->at->kind != QL_NAME && parser->at->kind != QL_QUOTED_NAME)
        return ql_malformed(parser, "Expected identifier for simple path");
    struct ql_term *root = ql_term_new(parser, TERM_NAME, parser->at++);
    return parse_steps(parser, root, true);
}

/* ---- operators ---- */

static int infix_precedence(const struct ql_token *token)
{
    static const struct {
        const char *word;
        int precedence;
    } operators[] = {
        {"intersect", 5}, {"intersect_all", 5},
        {"except", 5},    {"except_all", 5},
        {"union", 5},     {"union_all", 5},
        {"or", 10},       {"and", 20},
        {"=", 40},        {"<>", 40},
        {"is", 40},       {"is_not", 40},
        {"in", 40},       {"not_in", 40},
        {"<", 50},        {"<=", 50},
        {">", 50},        {">=", 50},
        {"between", 50},  {"not_between", 50},
        {"like", 50},     {"not_like", 50},
        {"+", 60},        {"-", 60},
        {"||", 60},       {"/", 70},
        {"%", 70},
    };
    if (token->kind == QL_STAR) return 70;
    if (token->kind != QL_OPERATOR) return 0;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (slice_equal(token->text, slice_of(operators[i].word))) return operators[i].precedence;
    return 0;
}

static bool ends_statement(const struct ql_token *token)
{
    return token->kind == QL_END || (token->kind == QL_SEMICOLON && token[1].kind == QL_END);
}

/* The third operand of BETWEEN ... AND ... and LIKE ... ESCAPE ... */
static bool parse_third(struct ql_parser *parser, struct ql_term *infix, const char *word, int precedence)
{
    bool has_word = ql_says(parser->at, word);
    if (has_word) parser->at++;
    if (!has_word || ends_statement(parser->at)) {
        ql_malformed(parser, strcmp(word, "and") == 0 ? "Expected expression after AND"
                                                      : "Expected expression after ESCAPE");
        return false;
    }
    struct ql_term *third = ql_parse_expression(parser, precedence);
    if (third) ql_term_add(infix, third);
    return third != NULL;
}

/* What stands on the right of an operator, which was read. */
static struct ql_term *parse_right(struct ql_parser *parser, const struct ql_token *operator, int precedence)
{
    bool is_in = ql_says(operator, "in") || ql_says(operator, "not_in");
    if (ql_says(operator, "is") || ql_says(operator, "is_not")) return parse_type(parser);
    if (is_in && parser->at->kind == QL_LEFT_PAREN && !ql_says(&parser->at[1], "select") &&
        !ql_says(&parser->at[1], "values")) {
        struct ql_term *list = ql_term_new(parser, TERM_LIST, parser->at++);
        return ql_parse_list(parser, list, QL_RIGHT_PAREN);
    }
    if (parser->at->kind == QL_END)
        return ql_malformed(parser, "Missing right-hand side expression of infix operator");
    return ql_parse_expression(parser, precedence);
}

static struct ql_term *parse_infix(struct ql_parser *parser, struct ql_term *left, int precedence)
{
    const struct ql_token *operator= parser->at++;
    struct ql_term *infix = ql_term_new(parser, TERM_INFIX, operator);
    struct ql_term *right = parse_right(parser, operator, precedence);
    if (!right) return NULL;
    ql_term_add(infix, left);
    ql_term_add(infix, right);
    bool is_between = ql_says(operator, "between") || ql_says(operator, "not_between");
    bool is_like = ql_says(operator, "like") || ql_says(operator, "not_like");
    if (is_between && !parse_third(parser, infix, "and", precedence)) return NULL;
    if (is_like && ql_says(parser->at, "escape") && !parse_third(parser, infix, "escape", precedence))
        return NULL;
    return infix;
}

/* Signs become part of a number; elsewhere they stay operators, and are refused later. */
static struct ql_term *parse_unary(struct ql_parser *parser)
{
    const struct ql_token *operator= parser->at;
    bool is_not = ql_says(operator, "not"), is_minus = ql_says(operator, "-");
    if (!is_not && !is_minus && !ql_says(operator, "+")) {
        struct ql_term *term = parse_term(parser);
        return parse_steps(parser, term, false);
    }
    if (++parser->depth > LIMIT_EXPRESSION_DEPTH) return ql_malformed(parser, "Unexpected term");
    parser->at++;
    struct ql_term *operand = is_not ? ql_parse_expression(parser, PRECEDENCE_NOT) : parse_unary(parser);
    parser->depth--;
    if (!operand) return NULL;
    if (!is_not && operand->kind == TERM_NUMBER) {
        operand->negative ^= is_minus;
        return operand;
    }
    struct ql_term *unary = ql_term_new(parser, TERM_UNARY, operator);
    ql_term_add(unary, operand);
    return unary;
}

struct ql_term *ql_parse_expression(struct ql_parser *parser, int precedence)
{
    if (++parser->depth > LIMIT_EXPRESSION_DEPTH) return ql_malformed(parser, "Unexpected term");
    struct ql_term *term = parse_unary(parser);
    while (term && precedence < infix_precedence(parser->at) && infix_precedence(parser->at) > 0)
        term = parse_infix(parser, term, infix_precedence(parser->at));
    parser->depth--;
    return term;
}

struct ql_term *ql_parse(struct arena *arena, struct arena *texts, struct slice text, struct slice *fault)
{
    struct ql_tokens tokens;
    struct ql_parser parser = {.arena = arena, .texts = texts, .fault = fault};
    if (!ql_tokens_read(arena, texts, text, &tokens)) return ql_malformed(&parser, "");
    parser.at = tokens.list;
    struct ql_term *term = ql_parse_expression(&parser, QL_PRECEDENCE_LEAST);
    if (!term || ends_statement(parser.at)) return term;
    if (parser.at->kind == QL_SEMICOLON)
        return ql_malformed(&parser, "Unexpected token after semicolon. (Only one query is allowed.)");
    return ql_malformed(&parser, "Unexpected token after expression");
}
