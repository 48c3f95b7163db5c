/* DynamoDB's expression language: text and parameters in, a bound tree out, and its evaluation on items.
 *
 * Pure: no clock, no store, no table. Every fault is the service's sentence, complete with its prefix
 * ("Invalid ConditionExpression: ..."), ready to be sent as a ValidationException. Names (#n) and values (:v)
 * are bound while parsing and marked as used, so that the caller can refuse unused ones.
 *
 * Trees and everything they point at live in the arena given at parsing. Evaluation never changes an item: an
 * update builds a new map that shares what did not change. */
#ifndef EXPR_EXPR_H
#define EXPR_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/slice.h"
#include "value/value.h"

/* ---- parameters ---- */

struct expr_name {
    struct slice placeholder; /* "#n" */
    struct slice name;
    bool used;
};

struct expr_value {
    struct slice placeholder; /* ":v" */
    struct value value;
    bool used;
};

struct expr_params {
    struct expr_name *names;
    struct expr_value *values;
    uint32_t name_count, value_count;
    bool has_names, has_values; /* the request gave the member at all: changes the wording of some faults */
};

/* Which member of the request the text came from: it names itself in every fault. */
enum expr_kind {
    EXPR_CONDITION,
    EXPR_FILTER,
    EXPR_KEY_CONDITION,
    EXPR_SEARCH_CONDITION,
    EXPR_PROJECTION,
    EXPR_UPDATE,
    EXPR_STATEMENT, /* a whole statement, parsed elsewhere: no placeholders, and no prefix in its faults */
};
struct slice expr_kind_name(enum expr_kind kind); /* "ConditionExpression", ... */

/* A word that the language keeps for itself, in any case. */
bool expr_is_reserved(struct slice word);

/* ---- paths ---- */

struct path_part {
    bool is_index;
    uint32_t index;    /* a[3] */
    struct slice name; /* a.b, placeholders resolved */
};

struct path {
    struct path_part *parts;
    uint32_t count;
};

/* What the path leads to, or NULL. */
const struct value *path_find(const struct path *path, const struct map *item);

/* ---- conditions ---- */

enum operand_kind { OPERAND_PATH, OPERAND_VALUE, OPERAND_SIZE };

struct operand {
    enum operand_kind kind;
    struct path path;          /* PATH, and what SIZE measures when it measures a path */
    const struct value *value; /* VALUE */
};

enum condition_kind {
    CONDITION_AND,
    CONDITION_OR,
    CONDITION_NOT,
    CONDITION_EQ,
    CONDITION_NE,
    CONDITION_LT,
    CONDITION_LE,
    CONDITION_GT,
    CONDITION_GE,
    CONDITION_BETWEEN,
    CONDITION_IN,
    CONDITION_EXISTS,
    CONDITION_NOT_EXISTS,
    CONDITION_TYPE,
    CONDITION_BEGINS_WITH,
    CONDITION_CONTAINS,
    CONDITION_NOT_CONTAINS, /* only the legacy parameters know it */
    CONDITION_SAME,         /* left and right hold, or neither does; only statements have it */
};

/* A node. AND, OR, SAME, NOT use left and right (NOT: left only); the others use operands[0 .. operand_count). */
struct condition {
    enum condition_kind kind;
    struct condition *left, *right;
    struct operand *operands;
    uint32_t operand_count;
    enum value_type type; /* CONDITION_TYPE */
};

/* Parses and binds. NULL with *fault set when refused. Texts of the service, in its order of checks. */
struct condition *condition_parse(struct arena *arena, enum expr_kind kind, struct slice text,
                                  struct expr_params *params, struct slice *fault);
bool condition_holds(const struct condition *condition, const struct map *item);
/* The first top-level attribute name the condition mentions that is `name`: "Filter Expression can only
 * contain non-primary key attributes". */
bool condition_mentions(const struct condition *condition, struct slice name);

/* ---- key conditions ---- */

enum key_compare { KEY_NONE, KEY_EQ, KEY_LT, KEY_LE, KEY_GT, KEY_GE, KEY_BETWEEN, KEY_BEGINS_WITH };

/* One "attribute OP value" of a key condition, before the keys are known. */
struct key_term {
    struct slice name;
    enum key_compare compare; /* KEY_NONE: a legacy comparison that no key can be searched by */
    uint32_t value_count;
    const struct value *values[2]; /* BETWEEN uses both */
};

struct key_terms {
    struct key_term *list;
    uint32_t count;
};

/* The keys that a condition is about: one hash and at most one range attribute, of a global index up to four
 * of each. */
struct key_field {
    struct slice name;
    enum value_type type;
};

struct key_fields {
    struct slice index; /* its name, for faults; empty: a table's own keys */
    struct key_field hash[LIMIT_KEY_PARTS], range[LIMIT_KEY_PARTS];
    uint32_t hash_count, range_count;
};

/* All hash attributes by equality, the first range attributes too, the next one as compared. */
struct key_condition {
    const struct value *hash[LIMIT_KEY_PARTS];
    uint32_t hash_count; /* 0: what the terms say of the hash attributes was refused */
    const struct value *equal[LIMIT_KEY_PARTS];
    uint32_t equal_count;
    enum key_compare compare;     /* KEY_NONE: no condition on a range attribute */
    const struct value *range[2]; /* BETWEEN uses both */
};

/* A key of the table itself. */
struct key_schema {
    struct slice hash, range; /* range.len 0: none */
    enum value_type hash_type, range_type;
};

/* Reads a parsed EXPR_KEY_CONDITION as terms. False with *fault set for what is wrong with it on every
 * schema: the service says so before it looks for the table. */
bool key_terms_read(struct arena *arena, const struct condition *condition, struct key_terms *out,
                    struct slice *fault);
/* Refuses a number of terms that only keys of several attributes can take. */
bool key_terms_are_plain(struct arena *arena, const struct key_terms *terms, struct slice *fault);
/* More than one hash or range attribute: such keys have rules, and faults, of their own. */
bool key_fields_are_compound(const struct key_fields *fields);
/* Reads the terms as a condition on these keys. False with *fault set when it is none the service takes. */
bool key_terms_bind(struct arena *arena, const struct key_terms *terms, const struct key_fields *fields,
                    struct key_condition *out, struct slice *fault);

/* ---- projections ---- */

struct projection {
    struct path *paths;
    uint32_t count;
    /* NULL: what the paths lead to stays in its place. Else each value becomes an attribute of this name. */
    const struct slice *names;
};

bool projection_parse(struct arena *arena, struct slice text, struct expr_params *params,
                      struct projection *out, struct slice *fault);
/* The parts of the item that the paths lead to, in their places; list elements close ranks. */
struct map projection_apply(struct arena *arena, const struct projection *projection, const struct map *item);

/* ---- names ---- */

/* Names of attributes, each once, in the order in which they were added. */
struct name_list {
    struct slice *names;
    uint32_t count, capacity;
};

void name_list_add(struct arena *arena, struct name_list *list, struct slice name);
/* The attributes that the paths begin with. The condition or projection may be NULL. */
void name_list_add_condition(struct arena *arena, struct name_list *list, const struct condition *condition);
void name_list_add_projection(struct arena *arena, struct name_list *list,
                              const struct projection *projection);
/* Puts them into the order of one of the service's hash sets. */
void name_list_hash_order(struct name_list *list);
/* "a, b" */
struct slice name_list_text(struct arena *arena, const struct name_list *list);

/* ---- updates ---- */

enum update_verb { UPDATE_SET, UPDATE_REMOVE, UPDATE_ADD, UPDATE_DELETE };
enum update_value_kind { UPDATE_PLAIN, UPDATE_PLUS, UPDATE_MINUS };
enum update_operand_kind {
    UPDATE_OPERAND_VALUE,
    UPDATE_OPERAND_PATH,
    UPDATE_OPERAND_IF_NOT_EXISTS,
    UPDATE_OPERAND_LIST_APPEND,
    UPDATE_OPERAND_PLUS, /* within another sum: only statements have such */
    UPDATE_OPERAND_MINUS,
};

struct update_operand {
    enum update_operand_kind kind;
    const struct value *value;           /* VALUE */
    struct path path;                    /* PATH, IF_NOT_EXISTS */
    struct update_operand *left, *right; /* LIST_APPEND, PLUS, MINUS; IF_NOT_EXISTS uses right */
};

struct update_action {
    enum update_verb verb;
    struct path path;
    enum update_value_kind value_kind;   /* SET: a, a + b, a - b */
    struct update_operand *left, *right; /* SET: right only with PLUS and MINUS */
    const struct value *value;           /* ADD, DELETE */
};

struct update {
    struct update_action *actions;
    uint32_t count;
};

struct update *update_parse(struct arena *arena, struct slice text, struct expr_params *params,
                            struct slice *fault);
/* True when an action changes the attribute with this name or something inside it. */
bool update_touches(const struct update *update, struct slice name);
/* The new item. False with *fault: a path that does not exist, an operand of the wrong type, number overflow,
 * ... All operands are read from the old item. */
bool update_apply(struct arena *arena, const struct update *update, const struct map *old, struct map *out,
                  struct slice *fault);
/* The same where no item exists: `key` holds its key attributes. There, REMOVE may name a path that leads
 * nowhere. */
bool update_create(struct arena *arena, const struct update *update, const struct map *key, struct map *out,
                   struct slice *fault);
/* What ReturnValues UPDATED_OLD / UPDATED_NEW answer: the parts of the image that the actions' paths lead to.
 */
struct map update_touched(struct arena *arena, const struct update *update, const struct map *image);

/* ---- trees of a language that is parsed elsewhere (src/partiql) ----
 *
 * They are built of the same nodes as those of expressions, checked by the same rules, and become the same
 * conditions and updates: there is one evaluator. Nodes live in the arena. Faults have no prefix. */

/* Everything that has operands: of the expression language and of other languages alike. */
enum expr_operation {
    EXPR_OP_AND,
    EXPR_OP_OR,
    EXPR_OP_NOT,
    EXPR_OP_EQ,
    EXPR_OP_NE,
    EXPR_OP_LT,
    EXPR_OP_LE,
    EXPR_OP_GT,
    EXPR_OP_GE,
    EXPR_OP_BETWEEN,
    EXPR_OP_IN,
    EXPR_OP_PLUS,
    EXPR_OP_MINUS,
    EXPR_OP_EXISTS, /* from here on: functions */
    EXPR_OP_NOT_EXISTS,
    EXPR_OP_TYPE,
    EXPR_OP_BEGINS_WITH,
    EXPR_OP_CONTAINS,
    EXPR_OP_SIZE,
    EXPR_OP_IF_NOT_EXISTS,
    EXPR_OP_LIST_APPEND,
    EXPR_OP_UNKNOWN_FUNCTION,
};

struct expr_node;
struct expr_node *expr_path(struct arena *arena, struct path path);
struct expr_node *expr_value(struct arena *arena, const struct value *value);
/* Without operands at first; expr_append adds the next one. */
struct expr_node *expr_call(struct arena *arena, enum expr_operation operation);
void expr_append(struct expr_node *parent, struct expr_node *operand);

/* An action of an update before it is checked. */
struct expr_clause {
    enum update_verb verb;
    struct path path;
    struct expr_node *node;    /* SET: operands joined by PLUS and MINUS, in any depth */
    const struct value *value; /* ADD, DELETE: a set */
};

struct condition *condition_from(struct arena *arena, struct expr_node *root, struct slice *fault);
struct update *update_from(struct arena *arena, const struct expr_clause *clauses, uint32_t count,
                           struct slice *fault);
/* Refuses paths that contain each other. */
bool paths_are_apart(struct arena *arena, const struct path *paths, uint32_t count, struct slice *fault);

/* ---- parameters, once all expressions of the request are parsed ---- */

/* False with *fault when a name or value was never used, in the service's words. */
bool expr_params_all_used(struct arena *arena, const struct expr_params *params, struct slice *fault);

/* ---- expressions as people write them, turned into those of the service ----
 *
 * DynamoDB wants every value, and every name that is one of its 573 reserved words, outside of the
 * expression. Here both stand where they are meant:
 *
 *     Year >= 1960 and contains(tags, "jazz")      ->  #Year >= :v1 and contains(#tags, :v2)
 *     SET plays = plays + 1, `odd name`[0].x = {"$set":[1,2]}
 *
 * Literals are plain JSON, and texts also stand in 'single quotes'; names in `backticks` may hold anything.
 * Words before a parenthesis are functions, and AND, OR, NOT, BETWEEN, IN, SET, REMOVE, ADD, DELETE are
 * themselves. */

struct phrase_name {
    struct slice name, placeholder; /* "#name" where the name is letters, digits and _ */
    const struct phrase_name *older;
};

/* What all expressions of one request refer to. Begins with the first three members, all else zero. */
struct phrases {
    struct arena *arena;
    bool keeps_placeholders; /* those of the service's own (#n, :v) stay; else they are refused */
    /* Appends the value of a literal in the form that is wanted. False and a sentence: it has none. */
    bool (*put_value)(struct buf *out, struct arena *arena, struct slice json, const char **fault);
    const struct phrase_name *names; /* newest first */
    unsigned name_count, value_count;
    struct buf values; /* ":v1":VALUE,":v2":VALUE */
    const char *fault; /* a sentence, in the arena, after something was refused */
};

void phrases_free(struct phrases *phrases);

/* Appends the service's form of an expression. False and a fault when it cannot be read. */
bool phrase_put(struct buf *out, struct phrases *phrases, struct slice text);
/* Appends a list of paths, as for a projection: "Artist, tags[0]". */
bool phrase_put_paths(struct buf *out, struct phrases *phrases, struct slice text);

/* Appends the placeholder of a name. */
void phrase_put_name(struct buf *out, struct phrases *phrases, struct slice name);
/* Appends the placeholder of the next value, which the caller then appends to phrases->values. */
void phrase_value_begin(struct buf *out, struct phrases *phrases);

#endif
