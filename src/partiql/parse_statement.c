/* Statements: SELECT, INSERT, UPDATE, DELETE, and those that the service parses only to refuse them. */
#include "partiql/internal.h"

static bool is_base_change(const struct ql_token *token)
{
    return ql_says(token, "insert_into") || ql_says(token, "set") || ql_says(token, "remove");
}

bool ql_begins_statement(const struct ql_token *token)
{
    static const char *const words[] = {"update", "delete", "select", "create", "drop",
                                        "pivot",  "from",   "values", "exec"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ql_says(token, words[i])) return true;
    return is_base_change(token);
}

/* ---- SELECT ---- */

/* [AS] name, AT name, BY name. */
static struct ql_term *parse_alias(struct ql_parser *parser, struct ql_term *term, bool as_only)
{
    for (;;) {
        enum ql_token_kind kind = parser->at->kind;
        bool is_bare = kind == QL_NAME || kind == QL_QUOTED_NAME;
        if (!is_bare && kind != QL_AS && (as_only || (kind != QL_AT && kind != QL_BY))) return term;
        const char *word = kind == QL_AT ? "AT" : kind == QL_BY ? "BY" : "AS";
        if (!is_bare) parser->at++;
        if (parser->at->kind != QL_NAME && parser->at->kind != QL_QUOTED_NAME)
            return ql_malformed(parser,
                                arena_printf(parser->arena, "Expected identifier for %s-alias", word).data);
        struct ql_term *alias = ql_term_new(parser, TERM_ALIAS, parser->at++);
        ql_term_add(alias, term);
        term = alias;
        if (as_only) return term;
    }
}

/* m.* is a column of its own; other stars in a path are malformed. */
static struct ql_term *check_column(struct ql_parser *parser, struct ql_term *term)
{
    bool has_bracket = false;
    if (term->kind != TERM_PATH) return term;
    for (const struct ql_term *step = term->first; step; step = step->next) {
        has_bracket |= step->kind == TERM_INDEX;
        if (step->kind == TERM_INDEX_STAR || (step->kind == TERM_STEP_STAR && step->next))
            return ql_malformed(parser, "Invalid use of * in select list");
        if (step->kind == TERM_STEP_STAR && has_bracket)
            return ql_malformed(parser, "Cannot use [] and * together in SELECT list expression");
    }
    return term;
}

static struct ql_term *parse_column(struct ql_parser *parser)
{
    static const char *const reserved[] = {"insert_into", "set",    "remove", "update",
                                           "delete",      "select", "from",   "where"};
    if (parser->at->kind == QL_STAR) return ql_term_new(parser, TERM_STAR, parser->at++);
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (!ql_says(parser->at, reserved[i])) continue;
        return ql_malformed(parser, arena_printf(parser->arena,
                                                 "Expected identifier or an expression but found unexpected "
                                                 "keyword '%s' in a select list.",
                                                 reserved[i])
                                        .data);
    }
    struct ql_term *term = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
    term = term ? check_column(parser, term) : NULL;
    return term ? parse_alias(parser, term, true) : NULL;
}

static bool parse_columns(struct ql_parser *parser, struct ql_select *select)
{
    bool has_star = false;
    select->list = ql_term_new(parser, TERM_LIST, parser->at);
    for (;;) {
        struct ql_term *column = parse_column(parser);
        if (!column) return false;
        has_star |= column->kind == TERM_STAR;
        ql_term_add(select->list, column);
        if (parser->at->kind != QL_COMMA) break;
        parser->at++;
    }
    if (!has_star || select->list->count == 1) return true;
    ql_malformed(parser,
                 "Other expressions may not be present in the select list when '*' is used without dot "
                 "notation.");
    return false;
}

static struct ql_term *parse_source(struct ql_parser *parser, int precedence);

static struct ql_term *parse_one_source(struct ql_parser *parser, int precedence)
{
    struct ql_term *term;
    bool is_group = parser->at->kind == QL_LEFT_PAREN && parser->at[1].kind != QL_STRING &&
                    parser->at[1].kind != QL_NUMBER && parser->at[1].kind != QL_BOOL &&
                    !ql_says(&parser->at[1], "select");
    if (ql_says(parser->at, "unpivot")) {
        term = ql_term_new(parser, TERM_UNPIVOT, parser->at++);
        if (!ql_parse_expression(parser, precedence)) return NULL;
    } else if (is_group) {
        parser->at++;
        term = parse_source(parser, precedence);
        if (!term || !ql_expect(parser, QL_RIGHT_PAREN)) return NULL;
    } else {
        term = ql_parse_expression(parser, precedence);
    }
    return term ? parse_alias(parser, term, false) : NULL;
}

/* Several sources are read to their end and refused later. */
static struct ql_term *parse_source(struct ql_parser *parser, int precedence)
{
    if (++parser->depth > LIMIT_EXPRESSION_DEPTH) return ql_malformed(parser, "Unexpected term");
    struct ql_term *source = parse_one_source(parser, precedence);
    while (source && (parser->at->kind == QL_COMMA || ql_says(parser->at, "join"))) {
        bool has_condition = parser->at->kind != QL_COMMA && parser->at->length != strlen("cross");
        struct ql_term *join = ql_term_new(parser, TERM_JOIN, parser->at++);
        if (!parse_one_source(parser, precedence)) return NULL;
        if (has_condition && !ql_says(parser->at, "on")) return ql_malformed(parser, "Expected 'ON'");
        if (has_condition) {
            parser->at++;
            if (!ql_parse_expression(parser, precedence)) return NULL;
        }
        source = join;
    }
    parser->depth--;
    return source;
}

static bool parse_order(struct ql_parser *parser, struct ql_select *select)
{
    struct ql_sort **end = &select->order;
    parser->at++;
    if (!ql_expect(parser, QL_BY)) return false;
    for (;;) {
        struct ql_sort *sort = arena_new(parser->arena, struct ql_sort);
        sort->term = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
        if (!sort->term) return false;
        sort->descends = parser->at->kind == QL_DESC;
        if (parser->at->kind == QL_ASC || parser->at->kind == QL_DESC) parser->at++;
        *end = sort;
        end = &sort->next;
        if (parser->at->kind != QL_COMMA) return true;
        parser->at++;
    }
}

/* A clause of one expression. */
static bool parse_clause(struct ql_parser *parser, const char *word, struct ql_term **out)
{
    if (!ql_says(parser->at, word)) return true;
    parser->at++;
    *out = ql_parse_expression(parser, QL_PRECEDENCE_SELECT);
    return *out != NULL;
}

static bool parse_group_by(struct ql_parser *parser, struct ql_select *select)
{
    if (!ql_says(parser->at, "group")) return true;
    select->group = ql_term_new(parser, TERM_LIST, parser->at++);
    if (ql_says(parser->at, "partial")) parser->at++;
    if (!ql_expect(parser, QL_BY)) return false;
    for (;;) {
        struct ql_term *key = ql_parse_expression(parser, QL_PRECEDENCE_SELECT);
        if (!key || !parse_alias(parser, key, true)) return false;
        if (parser->at->kind != QL_COMMA) break;
        parser->at++;
    }
    if (!ql_says(parser->at, "group")) return true;
    parser->at++;
    if (!ql_expect(parser, QL_AS)) return false;
    if (parser->at->kind != QL_NAME && parser->at->kind != QL_QUOTED_NAME)
        return ql_malformed(parser, "Expected identifier for GROUP name") != NULL;
    parser->at++;
    return true;
}

static bool parse_let(struct ql_parser *parser, struct ql_select *select)
{
    if (!ql_says(parser->at, "let")) return true;
    select->let = ql_term_new(parser, TERM_LIST, parser->at);
    do {
        parser->at++;
        struct ql_term *term = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
        if (!term || !ql_expect(parser, QL_AS)) return false;
        if (!ql_expect(parser, QL_NAME)) return false;
    } while (parser->at->kind == QL_COMMA);
    return true;
}

static struct ql_term *parse_after_columns(struct ql_parser *parser, struct ql_term *term)
{
    struct ql_select *select = term->select;
    if (!ql_says(parser->at, "from")) return ql_malformed(parser, "Expected FROM after SELECT list");
    parser->at++;
    select->from = parse_source(parser, QL_PRECEDENCE_SELECT);
    if (!select->from || !parse_let(parser, select) || !parse_clause(parser, "where", &select->where))
        return NULL;
    if (ql_says(parser->at, "order") && !parse_order(parser, select)) return NULL;
    bool done = parse_group_by(parser, select) && parse_clause(parser, "having", &select->having) &&
                parse_clause(parser, "limit", &select->limit) &&
                parse_clause(parser, "offset", &select->offset);
    return done ? term : NULL;
}

static struct ql_term *parse_select(struct ql_parser *parser)
{
    struct ql_term *term = ql_term_new(parser, TERM_SELECT, parser->at);
    struct ql_select *select = term->select = arena_new(parser->arena, struct ql_select);
    if (ql_says(parser->at++, "pivot")) {
        select->is_value = true;
        if (!ql_parse_expression(parser, QL_PRECEDENCE_LEAST) || !ql_expect(parser, QL_AT) ||
            !ql_parse_expression(parser, QL_PRECEDENCE_LEAST))
            return NULL;
        return parse_after_columns(parser, term);
    }
    select->is_distinct = ql_says(parser->at, "distinct");
    if (select->is_distinct || ql_says(parser->at, "all")) parser->at++;
    select->is_value = ql_says(parser->at, "value");
    if (select->is_value) {
        parser->at++;
        if (!ql_parse_expression(parser, QL_PRECEDENCE_LEAST)) return NULL;
    } else if (!parse_columns(parser, select)) {
        return NULL;
    }
    return parse_after_columns(parser, term);
}

/* ---- INSERT, UPDATE, DELETE ---- */

static bool parse_returning(struct ql_parser *parser, struct ql_change *change)
{
    static const char *const mappings[] = {"modified_old", "modified_new", "all_old", "all_new"};
    struct ql_returning **end = &change->returning;
    if (!ql_says(parser->at, "returning")) return true;
    do {
        parser->at++;
        struct ql_returning *returning = arena_new(parser->arena, struct ql_returning);
        for (size_t i = 0; i < sizeof mappings / sizeof *mappings; i++)
            if (ql_says(parser->at, mappings[i])) returning->mapping = slice_of(mappings[i]);
        if (!returning->mapping.len) {
            ql_malformed(parser, "Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element.");
            return false;
        }
        parser->at++;
        if (parser->at->kind == QL_STAR) {
            parser->at++;
        } else {
            struct ql_term *column = returning->column = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
            if (!column) return false;
            bool is_plain = column->kind == TERM_PATH || column->kind == TERM_NAME || ql_is_literal(column);
            if (!is_plain || (column->kind == TERM_PATH && column->count > 2)) {
                ql_malformed(parser, is_plain ? "More than two paths in RETURNING columns."
                                              : "Unsupported syntax in RETURNING columns.");
                return false;
            }
        }
        *end = returning;
        end = &returning->next;
    } while (parser->at->kind == QL_COMMA);
    return true;
}

static bool parse_on_conflict(struct ql_parser *parser, struct ql_change *change)
{
    change->has_on_conflict = ql_says(parser->at, "on_conflict");
    if (!change->has_on_conflict) return true;
    parser->at++;
    if (!ql_says(parser->at, "where")) return ql_malformed(parser, "invalid ON CONFLICT syntax") != NULL;
    parser->at++;
    if (!ql_parse_expression(parser, QL_PRECEDENCE_LEAST)) return false;
    if (!ql_says(parser->at, "do_nothing")) return ql_malformed(parser, "invalid ON CONFLICT syntax") != NULL;
    parser->at++;
    return true;
}

static struct ql_term *change_new(struct ql_parser *parser, enum ql_change_kind kind)
{
    struct ql_term *term = ql_term_new(parser, TERM_CHANGE, parser->at);
    term->change = arena_new(parser->arena, struct ql_change);
    term->change->kind = kind;
    return term;
}

static struct ql_term *parse_insert(struct ql_parser *parser)
{
    struct ql_term *term = change_new(parser, CHANGE_INSERT);
    struct ql_change *change = term->change;
    parser->at++;
    change->target = ql_parse_simple_path(parser);
    if (!change->target) return NULL;
    if (ql_says(parser->at, "value")) {
        change->kind = CHANGE_INSERT_VALUE;
        parser->at++;
    }
    change->value = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
    if (!change->value || change->kind == CHANGE_INSERT) return change->value ? term : NULL;
    if (parser->at->kind == QL_AT) {
        parser->at++;
        change->at = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
        if (!change->at) return NULL;
    }
    return parse_on_conflict(parser, change) && parse_returning(parser, change) ? term : NULL;
}

/* path = value, path = value */
static bool parse_assignments(struct ql_parser *parser, struct ql_term *actions)
{
    do {
        struct ql_term *action = ql_term_new(parser, TERM_SET, parser->at++);
        struct ql_term *path = ql_parse_simple_path(parser);
        if (!path) return false;
        if (!ql_says(parser->at, "=")) return ql_malformed(parser, "Expected '='") != NULL;
        parser->at++;
        struct ql_term *value = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
        if (!value) return false;
        ql_term_add(action, path);
        ql_term_add(action, value);
        ql_term_add(actions, action);
    } while (parser->at->kind == QL_COMMA);
    return true;
}

static bool parse_action(struct ql_parser *parser, struct ql_term *actions)
{
    if (ql_says(parser->at, "set")) return parse_assignments(parser, actions);
    struct ql_term *action;
    if (ql_says(parser->at, "remove")) {
        action = ql_term_new(parser, TERM_REMOVE, parser->at++);
        struct ql_term *path = ql_parse_simple_path(parser);
        if (!path) return false;
        ql_term_add(action, path);
    } else {
        action = parse_insert(parser);
    }
    if (action) ql_term_add(actions, action);
    return action != NULL;
}

static bool parse_actions(struct ql_parser *parser, struct ql_change *change)
{
    change->actions = ql_term_new(parser, TERM_LIST, parser->at);
    while (is_base_change(parser->at))
        if (!parse_action(parser, change->actions)) return false;
    return change->actions->count || ql_malformed(parser, "Expected data manipulation") != NULL;
}

static bool parse_where(struct ql_parser *parser, struct ql_change *change)
{
    if (!ql_says(parser->at, "where")) return true;
    parser->at++;
    change->where = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
    return change->where != NULL;
}

/* UPDATE target actions WHERE ..., DELETE FROM target WHERE ... */
static struct ql_term *parse_change(struct ql_parser *parser)
{
    bool is_update = ql_says(parser->at, "update");
    struct ql_term *term = change_new(parser, is_update ? CHANGE_UPDATE : CHANGE_DELETE);
    struct ql_change *change = term->change;
    parser->at++;
    if (!is_update) {
        if (!ql_says(parser->at, "from")) return ql_malformed(parser, "Expected FROM after DELETE");
        parser->at++;
    }
    change->target = ql_parse_simple_path(parser);
    if (change->target) change->target = parse_alias(parser, change->target, false);
    if (!change->target || (is_update && !parse_actions(parser, change))) return NULL;
    return parse_where(parser, change) && parse_returning(parser, change) ? term : NULL;
}

/* FROM target WHERE ... actions */
static struct ql_term *parse_from_first(struct ql_parser *parser)
{
    struct ql_term *term = change_new(parser, CHANGE_UPDATE);
    struct ql_change *change = term->change;
    change->is_source_first = true;
    parser->at++;
    change->target = parse_source(parser, QL_PRECEDENCE_LEAST);
    if (!change->target || !parse_where(parser, change) || !parse_actions(parser, change)) return NULL;
    return parse_returning(parser, change) ? term : NULL;
}

/* SET and REMOVE without a table: they have no target. */
static struct ql_term *parse_bare_action(struct ql_parser *parser)
{
    if (ql_says(parser->at, "insert_into")) return parse_insert(parser);
    struct ql_term *term = change_new(parser, CHANGE_UPDATE);
    term->change->actions = ql_term_new(parser, TERM_LIST, parser->at);
    return parse_action(parser, term->change->actions) ? term : NULL;
}

/* ---- the others ---- */

/* CREATE TABLE t, DROP TABLE t, CREATE INDEX ON t (k), DROP INDEX i ON t */
static struct ql_term *parse_definition(struct ql_parser *parser)
{
    bool creates = ql_says(parser->at, "create");
    struct ql_term *term = ql_term_new(parser, TERM_OTHER, parser->at++);
    bool of_table = ql_says(parser->at, "table");
    if (!of_table && !ql_says(parser->at, "index"))
        return ql_malformed(parser, creates ? "Unexpected token following CREATE"
                                            : "Unexpected token following DROP");
    if (of_table)
        term->text = creates ? SLICE("CreateTable") : SLICE("DropTable");
    else
        term->text = creates ? SLICE("CreateIndex") : SLICE("DropIndex");
    parser->at++;
    if (!of_table && !creates && !ql_parse_simple_path(parser)) return NULL;
    if (!of_table && !ql_says(parser->at, "on")) return ql_malformed(parser, "Expected ON");
    if (!of_table) parser->at++;
    if (parser->at->kind != QL_NAME && parser->at->kind != QL_QUOTED_NAME)
        return ql_malformed(parser, "Expected identifier!");
    parser->at++;
    if (of_table || !creates) return term;
    if (parser->at->kind != QL_LEFT_PAREN) return ql_malformed(parser, "Expected parenthesis for keys");
    parser->at++;
    struct ql_term *keys = ql_term_new(parser, TERM_LIST, parser->at);
    return ql_parse_list(parser, keys, QL_RIGHT_PAREN) ? term : NULL;
}

/* VALUES (1, 2), (3, 4) is a bag. */
static struct ql_term *parse_values(struct ql_parser *parser)
{
    struct ql_term *bag = ql_term_new(parser, TERM_BAG, parser->at);
    do {
        parser->at++;
        if (parser->at->kind != QL_LEFT_PAREN)
            return ql_malformed(parser, "Expected LEFT_PAREN for row value constructor");
        struct ql_term *row = ql_term_new(parser, TERM_LIST, parser->at++);
        if (!ql_parse_list(parser, row, QL_RIGHT_PAREN)) return NULL;
        ql_term_add(bag, row);
    } while (parser->at->kind == QL_COMMA);
    return bag;
}

static struct ql_term *parse_exec(struct ql_parser *parser)
{
    struct ql_term *term = ql_term_new(parser, TERM_OTHER, parser->at++);
    struct ql_term *arguments = ql_term_new(parser, TERM_LIST, parser->at);
    term->text = SLICE("Exec");
    if (parser->at->kind == QL_END) return ql_malformed(parser, "No stored procedure provided");
    parser->at++;
    if (parser->at->kind == QL_LEFT_PAREN)
        return ql_malformed(parser, "Unexpected LEFT_PAREN found following stored procedure call");
    while (parser->at->kind != QL_END) {
        struct ql_term *argument = ql_parse_expression(parser, QL_PRECEDENCE_LEAST);
        if (!argument) return NULL;
        ql_term_add(arguments, argument);
        if (parser->at->kind != QL_COMMA) break;
        parser->at++;
    }
    return term;
}

struct ql_term *ql_parse_statement(struct ql_parser *parser)
{
    const struct ql_token *token = parser->at;
    if (ql_says(token, "select") || ql_says(token, "pivot")) return parse_select(parser);
    if (ql_says(token, "update") || ql_says(token, "delete")) return parse_change(parser);
    if (ql_says(token, "from")) return parse_from_first(parser);
    if (ql_says(token, "values")) return parse_values(parser);
    if (ql_says(token, "exec")) return parse_exec(parser);
    if (ql_says(token, "create") || ql_says(token, "drop")) return parse_definition(parser);
    return parse_bare_action(parser);
}
