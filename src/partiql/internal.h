/* What the files of this room share: tokens, the syntax tree, and how faults are said.
 *
 * A statement passes through the service's phases, and each sees the whole statement before the next begins:
 *  1. lexer.c: text into tokens. A fault here has no detail;
 *  2. parse_term.c, parse_statement.c: tokens into terms. The parser is of Pratt's kind, with the precedence
 *     and the points of failure of the open PartiQL parser that the service uses, since these decide which
 *     sentence a malformed statement gets;
 *  3. bind.c, where.c, assign.c, literal.c: terms into the trees of src/expr, with all checks that need no
 *     table;
 *  4. plan.c: the trees against the keys of a table or index. */
#ifndef PARTIQL_INTERNAL_H
#define PARTIQL_INTERNAL_H

#include "partiql/partiql.h"

/* ---- tokens ---- */

/* X(kind, its name in "Expected ...") */
#define QL_TOKENS(X)                                                                                         \
    X(END, "EOF")                                                                                            \
    X(NAME, "IDENTIFIER")                                                                                    \
    X(QUOTED_NAME, "QUOTED_IDENTIFIER")                                                                      \
    X(STRING, "LITERAL")                                                                                     \
    X(NUMBER, "LITERAL")                                                                                     \
    X(BOOL, "LITERAL")                                                                                       \
    X(NULL, "NULL")                                                                                          \
    X(MISSING, "MISSING")                                                                                    \
    X(ION, "ION_LITERAL")                                                                                    \
    X(PARAMETER, "QUESTION_MARK")                                                                            \
    X(KEYWORD, "KEYWORD")                                                                                    \
    X(OPERATOR, "OPERATOR")                                                                                  \
    X(AS, "AS")                                                                                              \
    X(AT, "AT")                                                                                              \
    X(BY, "BY")                                                                                              \
    X(FOR, "FOR")                                                                                            \
    X(ASC, "ASC")                                                                                            \
    X(DESC, "DESC")                                                                                          \
    X(STAR, "STAR")                                                                                          \
    X(DOT, "DOT")                                                                                            \
    X(COMMA, "COMMA")                                                                                        \
    X(COLON, "COLON")                                                                                        \
    X(SEMICOLON, "SEMICOLON")                                                                                \
    X(LEFT_PAREN, "LEFT_PAREN")                                                                              \
    X(RIGHT_PAREN, "RIGHT_PAREN")                                                                            \
    X(LEFT_BRACKET, "LEFT_BRACKET")                                                                          \
    X(RIGHT_BRACKET, "RIGHT_BRACKET")                                                                        \
    X(LEFT_CURLY, "LEFT_CURLY")                                                                              \
    X(RIGHT_CURLY, "RIGHT_CURLY")                                                                            \
    X(LEFT_ANGLES, "LEFT_DOUBLE_ANGLE_BRACKET")                                                              \
    X(RIGHT_ANGLES, "RIGHT_DOUBLE_ANGLE_BRACKET")

enum ql_token_kind {
#define X(kind, name) QL_##kind,
    QL_TOKENS(X)
#undef X
};

struct ql_token {
    enum ql_token_kind kind;
    struct slice text; /* of a keyword or operator: in small letters, words of several joined by _ ("is_not");
                          of a string or name: without its quotes; of a number: as written */
    uint32_t line, column, length; /* from 1; in characters, quotes included */
    uint32_t ordinal;              /* PARAMETER: how many stand before it */
};

struct ql_tokens {
    struct ql_token *list; /* ends in an END */
    uint32_t count;
};

/* False for text that has no tokens. The texts of quoted tokens are in `texts`, all else is in the arena. */
bool ql_tokens_read(struct arena *arena, struct arena *texts, struct slice text, struct ql_tokens *out);
/* The keyword in small letters, from a table that stays; empty when the word is none. */
struct slice ql_keyword(struct slice word);

static inline bool ql_says(const struct ql_token *token, const char *word)
{
    bool has_word = token->kind == QL_KEYWORD || token->kind == QL_OPERATOR;
    return has_word && slice_equal(token->text, slice_of(word));
}

/* ---- terms ---- */

enum ql_term_kind {
    TERM_NAME,   /* text */
    TERM_STRING, /* text */
    TERM_NUMBER, /* text, negative */
    TERM_BOOL,   /* text: true or false */
    TERM_NULL,
    TERM_MISSING,
    TERM_ION,
    TERM_PARAMETER,
    TERM_LIST,   /* children */
    TERM_BAG,    /* children */
    TERM_STRUCT, /* children: MEMBER */
    TERM_MEMBER, /* children: name, value */
    TERM_CALL,   /* text: the function in small letters; children */
    TERM_CAST,
    TERM_CASE,
    TERM_UNARY,      /* text: + - not; one child */
    TERM_INFIX,      /* text: the operator; two children, of BETWEEN and LIKE ESCAPE three */
    TERM_TYPE,       /* text: behind IS */
    TERM_PATH,       /* children: a term, then steps */
    TERM_STEP,       /* .name */
    TERM_INDEX,      /* [term] */
    TERM_STEP_STAR,  /* .* */
    TERM_INDEX_STAR, /* [*] */
    TERM_STAR,       /* of a select list */
    TERM_ALIAS,      /* one child */
    TERM_JOIN,
    TERM_UNPIVOT,
    TERM_SELECT, /* select */
    TERM_CHANGE, /* change */
    TERM_SET,    /* children: path, value */
    TERM_REMOVE, /* one child */
    TERM_OTHER,  /* a statement that the service does not offer; text: as it names it */
};

struct ql_term {
    enum ql_term_kind kind;
    bool negative, is_aggregate;
    const struct ql_token *token; /* for positions */
    struct slice text;
    uint32_t count;
    struct ql_term *first, *last, *next; /* children, and the next among one's siblings */
    struct ql_select *select;
    struct ql_change *change;
};

struct ql_sort {
    struct ql_term *term;
    bool descends;
    struct ql_sort *next;
};

struct ql_select {
    bool is_distinct, is_value; /* SELECT DISTINCT; SELECT VALUE or PIVOT */
    struct ql_term *list;       /* its children are the columns */
    struct ql_term *from, *where;
    struct ql_sort *order;
    struct ql_term *group, *having, *limit, *offset, *let; /* the clause's term, or NULL */
};

enum ql_change_kind { CHANGE_INSERT_VALUE, CHANGE_INSERT, CHANGE_UPDATE, CHANGE_DELETE };

struct ql_returning {
    struct slice mapping;   /* "all_old", ... */
    struct ql_term *column; /* NULL: * */
    struct ql_returning *next;
};

/* INSERT, UPDATE, DELETE, and UPDATE with its source first. */
struct ql_change {
    enum ql_change_kind kind;
    struct ql_term *target;     /* INSERT, UPDATE, DELETE: a path, perhaps with an alias */
    struct ql_term *actions;    /* UPDATE: its children are SET and REMOVE, or a nested INSERT */
    struct ql_term *value, *at; /* INSERT */
    bool has_on_conflict;
    struct ql_term *where;
    struct ql_returning *returning;
    bool is_source_first;
};

/* NULL and the sentence when the statement is malformed. Tokens and terms are in the arena, which may go once they
 * are bound; the sentence and the texts of quoted tokens are in `texts`. */
struct ql_term *ql_parse(struct arena *arena, struct arena *texts, struct slice text, struct slice *fault);

/* ---- the parser ---- */

struct ql_parser {
    struct arena *arena, *texts;
    struct slice *fault;
    const struct ql_token *at; /* the next token */
    unsigned depth;
};

struct ql_term *ql_parse_expression(struct ql_parser *parser, int precedence);
/* Names and steps only, as targets of changes are. */
struct ql_term *ql_parse_simple_path(struct ql_parser *parser);
/* Terms with commas between, up to and with a token of this kind; they become children of `parent`. */
struct ql_term *ql_parse_list(struct ql_parser *parser, struct ql_term *parent, enum ql_token_kind end);
/* What begins with a keyword of statements; the current token is that keyword. */
bool ql_begins_statement(const struct ql_token *token);
struct ql_term *ql_parse_statement(struct ql_parser *parser);

struct ql_term *ql_term_new(struct ql_parser *parser, enum ql_term_kind kind, const struct ql_token *token);
void ql_term_add(struct ql_term *parent, struct ql_term *child);
/* "Statement wasn't well formed, can't be processed: " and the detail. Always NULL. */
void *ql_malformed(struct ql_parser *parser, const char *detail);
bool ql_expect(struct ql_parser *parser, enum ql_token_kind kind);
bool ql_expect_word(struct ql_parser *parser, const char *word);

#define QL_PRECEDENCE_LEAST  (-1)
#define QL_PRECEDENCE_SELECT 6

/* ---- binding ---- */

struct ql_binding {
    struct arena *arena;
    struct slice *fault;
    const struct value *parameters;
    uint32_t parameter_count;
    bool in_transaction;
    struct statement *out;
};

/* Ends the binding with a sentence. Always false. */
bool ql_refuse(struct ql_binding *binding, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with " at LINE:COLUMN:LENGTH" behind it. */
bool ql_refuse_at(struct ql_binding *binding, const struct ql_term *term, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The term's name as the service calls it: Parameter, VariableReference, Literal, ... */
struct slice ql_term_name(const struct ql_term *term);
/* A literal, or a parameter where it is not inside of another literal. */
bool ql_bind_value(struct ql_binding *binding, const struct ql_term *term, const struct value **out);
bool ql_is_literal(const struct ql_term *term);
/* A name with steps. False without a fault when the term is something else. */
bool ql_is_path(const struct ql_term *term);
bool ql_bind_path(struct ql_binding *binding, const struct ql_term *term, struct path *out);
bool ql_bind_where(struct ql_binding *binding, const struct ql_term *term, const struct condition **out);
bool ql_bind_actions(struct ql_binding *binding, const struct ql_term *actions, const struct update **out);
/* Binds an operand of a function or comparison of conditions. */
struct expr_node *ql_bind_operand(struct ql_binding *binding, const struct ql_term *term);

#endif
