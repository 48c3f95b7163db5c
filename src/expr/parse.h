/* What the parsers of this room share: tokens, the syntax tree, faults, and the checks that all kinds of
 * expression have in common.
 *
 * An expression passes through the service's phases, and each phase sees the whole text before the next
 * begins:
 *  1. size;
 *  2. syntax ("Syntax error; token: ...") and, as they are read, redundant parentheses;
 *  3. words: function names and where they stand, reserved words, list indexes; first to last, outer before
 *     inner;
 *  4. binding: names and values are looked up, operands counted and their types compared; inner before outer.
 *     Conditions are bound first to last; updates and projections last to first, all their target paths
 *     before any operand;
 *  5. the count of operators.
 *
 * So the text is read into a tree of nodes, and each later phase is a walk over it. */
#ifndef EXPR_PARSE_H
#define EXPR_PARSE_H

#include "expr/expr.h"

/* ---- tokens ---- */

enum token_kind {
    TOKEN_END,
    TOKEN_UNKNOWN, /* one character that begins nothing */
    TOKEN_NAME,    /* pk */
    TOKEN_NAME_PLACEHOLDER,
    TOKEN_VALUE_PLACEHOLDER,
    TOKEN_INDEX, /* 0, or digits that do not begin with 0 */
    TOKEN_AND,
    TOKEN_OR,
    TOKEN_NOT,
    TOKEN_BETWEEN,
    TOKEN_IN,
    TOKEN_SET,
    TOKEN_REMOVE,
    TOKEN_ADD,
    TOKEN_DELETE,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_OPEN_INDEX,
    TOKEN_CLOSE_INDEX,
    TOKEN_DOT,
    TOKEN_COMMA,
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_EQ, /* the six comparisons in the order of enum expr_operation */
    TOKEN_NE,
    TOKEN_LT,
    TOKEN_LE,
    TOKEN_GT,
    TOKEN_GE,
};

struct token {
    enum token_kind kind;
    struct slice text; /* of END: empty, where the expression ends */
};

/* The first token at or after `at`. */
struct token token_read(const char *at, const char *end);

/* ---- the tree ---- */

enum node_kind { NODE_PATH, NODE_VALUE, NODE_OPERATION };

struct expr_node {
    enum node_kind kind;
    enum expr_operation operation;
    bool in_parentheses;
    uint32_t operand_count;
    struct slice word;                   /* OPERATION: a function's name as written; VALUE: its placeholder */
    struct path path;                    /* PATH: as written, until bound */
    const struct value *value;           /* VALUE, once bound */
    struct expr_node *operands, *last, *next; /* children, and the next among one's siblings */
};

/* The operation's name in faults; of an unknown function, the word in the text. */
struct slice operation_name(const struct expr_node *node);

/* ---- parsing ---- */

struct parser {
    struct arena *arena;
    enum expr_kind kind;
    struct expr_params *params;
    struct slice text;
    struct token token, previous; /* previous.text.data is NULL before the first */
    struct slice *fault;
    unsigned depth, operators;
    /* The service looks ahead until it knows what a parenthesis or a call is the beginning of. A syntax error
     * on that way comes before redundant parentheses on that way. */
    bool looks_ahead, has_redundant_parentheses;
};

/* Checks the size and reads the first token. False with the fault set when there is nothing to parse. */
bool parser_begin(struct parser *parser, struct arena *arena, enum expr_kind kind, struct slice text,
                  struct expr_params *params, struct slice *fault);
void parser_advance(struct parser *parser);

/* Ends the parsing with a sentence made of these slices after "Invalid ...Expression: ". Always false. */
bool parser_refuse(struct parser *parser, const struct slice *pieces, unsigned count);
#define REFUSE(parser, ...)                                                                                  \
    parser_refuse((parser), (const struct slice[]){__VA_ARGS__},                                             \
                  sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))
/* The same for the sentences that have no prefix. */
bool fault_set(struct arena *arena, struct slice *fault, const struct slice *pieces, unsigned count);
#define FAULT(arena, fault, ...)                                                                             \
    fault_set((arena), (fault), (const struct slice[]){__VA_ARGS__},                                         \
              sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))
struct slice number_slice(struct arena *arena, uint64_t number);

/* The current token cannot stand here. Always NULL, so that a parse function can return it. */
void *parser_syntax_error(struct parser *parser);
/* Takes a token of this kind or reports it. */
bool parser_expect(struct parser *parser, enum token_kind kind);
/* One level of nesting down; false with the fault when there are too many. Callers step out with
 * parser->depth--. */
bool parser_descend(struct parser *parser);

struct expr_node *node_new(struct arena *arena, enum node_kind kind);
struct expr_node *operation_new(struct parser *parser, enum expr_operation operation);
/* Notes that the node stood in parentheses; NULL when it did so already. */
struct expr_node *node_enclose(struct parser *parser, struct expr_node *node);
/* Ends the looking ahead: false with the fault when redundant parentheses were seen. */
bool parser_resolve(struct parser *parser);

/* path, :value, function(operand, ...) or one of these in parentheses. NULL on a fault, like all parse
 * functions. */
struct expr_node *parse_operand(struct parser *parser);
bool parse_path(struct parser *parser, struct path *out);
/* Phase 5. */
bool check_operator_count(struct parser *parser);

/* ---- phase 3 ---- */

/* Where a node stands: functions are allowed by place. */
enum place { PLACE_CONDITION, PLACE_OPERAND, PLACE_SET_VALUE };
bool check_words(struct parser *parser, struct expr_node *node, enum place place);
bool check_path_words(struct parser *parser, struct path *path);

/* ---- phase 4 ---- */

/* Replaces placeholders by names. */
bool bind_path(struct parser *parser, struct path *path);
bool bind_value(struct parser *parser, struct slice placeholder, const struct value **out);
/* The node with all its operands, which are checked too. */
bool bind_node(struct parser *parser, struct expr_node *node);
/* The checks on the bound operands of one operation. */
bool check_operands(struct parser *parser, const struct expr_node *node);

/* ---- paths ---- */

struct slice path_text(struct arena *arena, const struct path *path); /* [a, [1], b] */
bool path_equal(const struct path *a, const struct path *b);
/* By parts: indexes by number, names bytewise. */
int path_compare(const struct path *a, const struct path *b);
/* For qsort over struct path. */
int path_order(const void *a, const void *b);
/* What one part leads to from here, or NULL. */
const struct value *part_find(const struct path_part *part, const struct value *from);

/* The parts of the item that paths lead to. No two of them may overlap. */
struct map project(struct arena *arena, const struct path *paths, uint32_t count, const struct map *item);

/* The paths of a projection or an update so far. */
struct path_tree;
struct path_tree *path_tree_new(struct arena *arena);
/* Refuses a path that contains, lies in, or contradicts one that was added before. */
bool path_tree_add(struct parser *parser, struct path_tree *tree, const struct path *path, uint32_t position);
/* The positions of all paths in the order of the service's walk over its tree; answers their count. */
uint32_t path_tree_walk(struct arena *arena, const struct path_tree *tree, uint32_t *positions);

/* ---- the order of a hash map in the service ---- */

/* The service is written in Java and walks its hash maps bucket by bucket; some faults show that order. */
uint32_t java_hash(struct slice key);
uint32_t java_bucket(uint32_t hash, uint32_t capacity);
/* Of a map that grew by one entry at a time, and of a set that was copied from a collection. */
uint32_t java_capacity(uint32_t count);
uint32_t java_set_capacity(uint32_t count);

#endif
