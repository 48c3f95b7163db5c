/* What all parsers do alike: stepping through tokens, wording faults, and reading paths and operands.
 *
 * The parsers descend recursively with one token of look-ahead, so the token a syntax error shows is the
 * first that no expression could have at this place, as in the service. */
#include "expr/parse.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/limits.h"

#define FIRST_PARTS 4 /* most paths are shorter */

/* ---- faults ---- */

bool fault_set(struct arena *arena, struct slice *fault, const struct slice *pieces, unsigned count)
{
    size_t len = 0;
    for (unsigned i = 0; i < count; i++) len += pieces[i].len;
    char *text = arena_alloc(arena, len), *at = text;
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].len) memcpy(at, pieces[i].data, pieces[i].len);
        at += pieces[i].len;
    }
    *fault = (struct slice){text, len};
    return false;
}

bool parser_refuse(struct parser *parser, const struct slice *pieces, unsigned count)
{
    struct slice sentence;
    fault_set(parser->arena, &sentence, pieces, count);
    if (parser->kind == EXPR_STATEMENT) return FAULT(parser->arena, parser->fault, sentence);
    return FAULT(parser->arena, parser->fault, SLICE("Invalid "), expr_kind_name(parser->kind), SLICE(": "),
                 sentence);
}

struct slice number_slice(struct arena *arena, uint64_t number)
{
    return arena_printf(arena, "%llu", (unsigned long long)number);
}

/* Shows the token with its neighbours, and the spaces between them as they are. At the ends, where there is
 * no neighbour, everything up to the end of the text. */
void *parser_syntax_error(struct parser *parser)
{
    const char *text_end = parser->text.data + parser->text.len;
    const char *start = parser->previous.text.data ? parser->previous.text.data : parser->text.data;
    const char *end = text_end;
    struct slice token = SLICE("<EOF>");
    if (parser->token.kind != TOKEN_END) {
        token = parser->token.text;
        struct token next = token_read(token.data + token.len, text_end);
        if (next.kind != TOKEN_END) end = next.text.data + next.text.len;
    }
    struct slice near = {start, (size_t)(end - start)};
    REFUSE(parser, SLICE("Syntax error; token: \""), token, SLICE("\", near: \""), near, SLICE("\""));
    return NULL;
}

/* ---- steps ---- */

/* Only conditions say how large they are. */
static bool refuse_size(struct parser *parser)
{
    struct slice sentence = SLICE("Expression size has exceeded the maximum allowed size;");
    if (parser->kind == EXPR_UPDATE || parser->kind == EXPR_PROJECTION) return REFUSE(parser, sentence);
    return REFUSE(parser, sentence, SLICE(" expression size: "),
                  number_slice(parser->arena, parser->text.len));
}

bool parser_begin(struct parser *parser, struct arena *arena, enum expr_kind kind, struct slice text,
                  struct expr_params *params, struct slice *fault)
{
    *parser = (struct parser){.arena = arena, .kind = kind, .params = params, .text = text, .fault = fault};
    if (text.len == 0) return REFUSE(parser, SLICE("The expression can not be empty;"));
    if (text.len > LIMIT_EXPRESSION_BYTES) return refuse_size(parser);
    parser->token = token_read(text.data, text.data + text.len);
    return true;
}

void parser_advance(struct parser *parser)
{
    ensure(parser->token.kind != TOKEN_END);
    parser->previous = parser->token;
    const char *at = parser->token.text.data + parser->token.text.len;
    parser->token = token_read(at, parser->text.data + parser->text.len);
}

bool parser_expect(struct parser *parser, enum token_kind kind)
{
    if (parser->token.kind != kind) {
        parser_syntax_error(parser);
        return false;
    }
    parser_advance(parser);
    return true;
}

/* No expression within the size limit can nest so deep without two pairs of parentheses around the same
 * thing, unless it nests functions that do not exist. */
bool parser_descend(struct parser *parser)
{
    if (++parser->depth <= LIMIT_EXPRESSION_DEPTH) return true;
    return REFUSE(parser, SLICE("The expression has redundant parentheses;"));
}

bool parser_resolve(struct parser *parser)
{
    parser->looks_ahead = false;
    if (!parser->has_redundant_parentheses) return true;
    return REFUSE(parser, SLICE("The expression has redundant parentheses;"));
}

/* The service stops counting at the first that is too many. */
bool check_operator_count(struct parser *parser)
{
    if (parser->operators <= LIMIT_EXPRESSION_OPERATORS) return true;
    return REFUSE(parser, SLICE("The expression contains too many operators; operator count: "),
                  number_slice(parser->arena, LIMIT_EXPRESSION_OPERATORS + 1));
}

/* ---- nodes ---- */

struct expr_node *node_new(struct arena *arena, enum node_kind kind)
{
    struct expr_node *node = arena_new(arena, struct expr_node);
    node->kind = kind;
    return node;
}

struct expr_node *expr_path(struct arena *arena, struct path path)
{
    struct expr_node *node = node_new(arena, NODE_PATH);
    node->path = path;
    return node;
}

struct expr_node *expr_value(struct arena *arena, const struct value *value)
{
    struct expr_node *node = node_new(arena, NODE_VALUE);
    node->value = value;
    return node;
}

struct expr_node *expr_call(struct arena *arena, enum expr_operation operation)
{
    struct expr_node *node = node_new(arena, NODE_OPERATION);
    node->operation = operation;
    return node;
}

struct expr_node *operation_new(struct parser *parser, enum expr_operation operation)
{
    parser->operators++;
    return expr_call(parser->arena, operation);
}

void expr_append(struct expr_node *parent, struct expr_node *operand)
{
    ensure(parent->kind == NODE_OPERATION && operand->next == NULL);
    if (parent->last)
        parent->last->next = operand;
    else
        parent->operands = operand;
    parent->last = operand;
    parent->operand_count++;
}

struct expr_node *node_enclose(struct parser *parser, struct expr_node *node)
{
    if (node->in_parentheses) parser->has_redundant_parentheses = true;
    node->in_parentheses = true;
    return parser->looks_ahead || parser_resolve(parser) ? node : NULL;
}

/* ---- paths and operands ---- */

static struct path_part *path_grow(struct parser *parser, struct path *path, uint32_t *capacity)
{
    if (path->count == *capacity) {
        uint32_t wider = *capacity ? *capacity * 4 : FIRST_PARTS;
        struct path_part *parts = arena_array(parser->arena, struct path_part, wider);
        if (path->count) memcpy(parts, path->parts, path->count * sizeof *parts);
        path->parts = parts;
        *capacity = wider;
    }
    struct path_part *part = &path->parts[path->count++];
    *part = (struct path_part){0};
    return part;
}

static bool parse_name(struct parser *parser, struct path_part *part)
{
    if (parser->token.kind != TOKEN_NAME && parser->token.kind != TOKEN_NAME_PLACEHOLDER) {
        parser_syntax_error(parser);
        return false;
    }
    part->name = parser->token.text;
    parser_advance(parser);
    return true;
}

/* The number stays text until phase 3 looks at its size. */
static bool parse_index(struct parser *parser, struct path_part *part)
{
    part->is_index = true;
    part->name = parser->token.text;
    return parser_expect(parser, TOKEN_INDEX) && parser_expect(parser, TOKEN_CLOSE_INDEX);
}

/* What follows the first name, which is in the path already. */
static bool parse_path_rest(struct parser *parser, struct path *path, uint32_t capacity)
{
    for (;;) {
        if (parser->token.kind == TOKEN_DOT) {
            parser_advance(parser);
            if (!parse_name(parser, path_grow(parser, path, &capacity))) return false;
        } else if (parser->token.kind == TOKEN_OPEN_INDEX) {
            parser_advance(parser);
            if (!parse_index(parser, path_grow(parser, path, &capacity))) return false;
        } else {
            return true;
        }
    }
}

bool parse_path(struct parser *parser, struct path *out)
{
    uint32_t capacity = 0;
    *out = (struct path){0};
    return parse_name(parser, path_grow(parser, out, &capacity)) && parse_path_rest(parser, out, capacity);
}

static enum expr_operation function_named(struct slice name)
{
    static const struct {
        struct slice name;
        enum expr_operation operation;
    } functions[] = {
        {{"attribute_not_exists", 20}, EXPR_OP_NOT_EXISTS},
        {{"attribute_exists", 16}, EXPR_OP_EXISTS},
        {{"if_not_exists", 13}, EXPR_OP_IF_NOT_EXISTS},
        {{"list_append", 11}, EXPR_OP_LIST_APPEND},
        {{"begins_with", 11}, EXPR_OP_BEGINS_WITH},
        {{"contains", 8}, EXPR_OP_CONTAINS},
        {{"size", 4}, EXPR_OP_SIZE},
        {{"attribute_type", 14}, EXPR_OP_TYPE},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (slice_equal(name, functions[i].name)) return functions[i].operation;
    }
    return EXPR_OP_UNKNOWN_FUNCTION;
}

/* The name was read; the current token is the parenthesis. */
static struct expr_node *parse_function(struct parser *parser, struct slice name)
{
    struct expr_node *function = operation_new(parser, function_named(name));
    function->word = name;
    if (!parser_descend(parser)) return NULL;
    do {
        parser_advance(parser);
        struct expr_node *operand = parse_operand(parser);
        if (!operand) return NULL;
        expr_append(function, operand);
    } while (parser->token.kind == TOKEN_COMMA);
    parser->depth--;
    return parser_expect(parser, TOKEN_CLOSE) ? function : NULL;
}

static struct expr_node *parse_enclosed_operand(struct parser *parser)
{
    parser_advance(parser);
    if (!parser_descend(parser)) return NULL;
    struct expr_node *operand = parse_operand(parser);
    if (!operand || !parser_expect(parser, TOKEN_CLOSE)) return NULL;
    parser->depth--;
    return node_enclose(parser, operand);
}

struct expr_node *parse_operand(struct parser *parser)
{
    struct token first = parser->token;
    switch (first.kind) {
    case TOKEN_OPEN: return parse_enclosed_operand(parser);
    case TOKEN_VALUE_PLACEHOLDER: {
        struct expr_node *value = node_new(parser->arena, NODE_VALUE);
        value->word = first.text;
        parser_advance(parser);
        return value;
    }
    case TOKEN_NAME:
    case TOKEN_NAME_PLACEHOLDER: {
        parser_advance(parser);
        if (first.kind == TOKEN_NAME && parser->token.kind == TOKEN_OPEN)
            return parse_function(parser, first.text);
        struct expr_node *node = node_new(parser->arena, NODE_PATH);
        uint32_t capacity = 0;
        path_grow(parser, &node->path, &capacity)->name = first.text;
        return parse_path_rest(parser, &node->path, capacity) ? node : NULL;
    }
    default: return parser_syntax_error(parser);
    }
}
