/* What the files of velocity share: values. They live in the arena of the rendering. */
#ifndef VELOCITY_INTERNAL_H
#define VELOCITY_INTERNAL_H

#include <stdint.h>

#include "velocity/velocity.h"

enum value_kind { VALUE_NONE, VALUE_TRUTH, VALUE_NUMBER, VALUE_TEXT, VALUE_LIST, VALUE_MAP };

struct value {
    enum value_kind kind;
    bool truth;
    double number;
    struct slice text;    /* of a text; of a number as it is printed */
    struct member *first; /* of a list or map */
    struct member *last;
    uint32_t count;
};

struct member {
    struct slice name; /* of a map */
    struct value *value;
    struct member *next;
};

extern const struct value vtl_none;

struct value *vtl_text(struct arena *arena, struct slice text);
struct value *vtl_truth(struct arena *arena, bool truth);
struct value *vtl_number(struct arena *arena, double number);
struct value *vtl_new(struct arena *arena, enum value_kind kind);
/* NULL when it is no JSON. */
struct value *vtl_of_json(struct arena *arena, struct slice json);
struct value *vtl_member(const struct value *map, struct slice name); /* NULL: there is none */
struct value *vtl_element(const struct value *list, int64_t number);  /* the same */
void vtl_put(struct arena *arena, struct value *map, struct slice name, struct value *value);
void vtl_add(struct arena *arena, struct value *list, struct value *value);
bool vtl_is_true(const struct value *value); /* all but false and nothing */
/* As it stands in the output. */
void vtl_print(struct buf *out, const struct value *value);
void vtl_print_json(struct buf *out, const struct value *value);
struct slice vtl_as_text(struct arena *arena, const struct value *value);

/* What a rendering may still make, and go through. */
struct allowance {
    int64_t bytes, nodes, work;
    size_t arena_bytes; /* that the arena may have */
};
/* False: it was too much. */
bool vtl_may_go_on(const struct arena *arena, const struct allowance *left);
bool vtl_equal(const struct value *a, const struct value *b, struct allowance *left);

/* What "$.a.b[0]['c'][*]" names in the value; NULL: nothing is there. False: it is no such path. */
bool vtl_path(struct arena *arena, struct value *from, struct slice path, struct allowance *left, struct value **out);

/* A copy, so that nothing ever holds itself; NULL: too much. */
struct value *vtl_copy(struct arena *arena, const struct value *value, struct allowance *left, unsigned depth);

/* methods.c: calls a method of a value; false: it has none of that name. A change is made only when `active`. */
/* Where it makes too much, `left` is below zero afterwards. */
bool vtl_call(struct arena *arena, struct value *self, struct slice name, struct value **arguments, uint32_t count,
                bool active, struct allowance *left, struct value **out);
/* The same of $util. */
bool vtl_util_call(struct arena *arena, struct slice name, struct value **arguments, uint32_t count,
                   struct allowance *left, struct value **out);

#endif
