/* Parts of JSON texts, as they stand: what is looked into once, or only handed on, becomes no tree and is not
 * written anew.
 *
 * A value is the slice of text that it stands in, and SLICE_NONE is what is not there, so look-ups may be
 * chained without a check in between. Nothing is copied but strings that hold escapes; those are in the
 * arena. Three ways of looking, by how far a text is trusted:
 *  - raw_member and the look step over what they do not seek without reading it. Their texts must be
 *    well-formed (replies of the door are; requests have been checked). Of what is not they find anything
 *    within the text, or nothing.
 *  - The walk reads what it passes, and stops at a fault.
 *  - raw_members and raw_is_json read all of it and tell whether it is well-formed.
 * Whoever walks with a reader of json.h takes single values with raw_take. */
#ifndef BASE_RAW_H
#define BASE_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/slice.h"

/* Skips the value that the reader comes to next; its text, without white space around it. SLICE_NONE and
 * false at a fault. */
bool raw_take(struct json_reader *reader, struct slice *raw);
/* True when the text is one value with nothing but white space around it. */
bool raw_is_json(struct arena *arena, struct slice text);

/* ---- scalars ---- */

enum json_kind raw_kind(struct slice value); /* JSON_END: not there */
/* A string's characters; SLICE_NONE when it is none. */
struct slice raw_string(struct arena *arena, struct slice value);
/* A string's characters, or a number's digits; SLICE_NONE for all else. */
struct slice raw_text(struct arena *arena, struct slice value);
/* A whole number (also written 5.0 or 5e0) between -2^63 and 2^63 - 1. */
bool raw_int(struct slice number, int64_t *out);

/* A number's sign, its digits and the place of its point. */
struct raw_digits {
    bool negative;
    char digits[LIMIT_NUMBER_DIGITS]; /* without leading and trailing zeros */
    unsigned count;                   /* 0: the number is zero */
    int64_t exponent;                 /* of the last digit */
    bool too_many;                    /* more digits than DynamoDB holds; the rest says nothing */
};
void raw_digits_read(struct slice number, struct raw_digits *out);

/* ---- objects and arrays ---- */

/* The first member of this name. */
struct slice raw_member(struct arena *arena, struct slice object, const char *name);
/* Members by their names in one pass; SLICE_NONE where there is none or it is null, the last of several.
 * False when the text is no object. */
bool raw_members(struct arena *arena, struct slice object, const char *const *names, struct slice *raws,
                 size_t count);

/* The first members of these names, of a text that is known to be well-formed, in one pass; SLICE_NONE where
 * there is none. */
void raw_pick(struct arena *arena, struct slice object, const char *const *names, struct slice *raws,
              size_t count);

/* The elements of an array, or the members of an object, one after the other. */
struct raw_walk {
    struct json_reader reader;
    bool is_object;
};
/* Answers what is walked over; neither JSON_OBJECT nor JSON_ARRAY: there is nothing to walk over. */
enum json_kind raw_walk_begin(struct raw_walk *walk, struct arena *arena, struct slice value);
/* `name` may be NULL; elements of arrays have an empty one. */
bool raw_walk_next(struct raw_walk *walk, struct slice *name, struct slice *value);
size_t raw_count(struct arena *arena, struct slice value);

/* The same of a text that is known to be well-formed, several times as fast. */
struct raw_look {
    const char *at, *end;
    struct arena *arena;
    bool is_object;
};
void raw_look_begin(struct raw_look *look, struct arena *arena, struct slice value);
bool raw_look_next(struct raw_look *look, struct slice *name, struct slice *value);
static inline struct raw_look raw_look_of(struct arena *arena, struct slice value)
{
    struct raw_look look;
    raw_look_begin(&look, arena, value);
    return look;
}
/* The first element; SLICE_NONE: there is none. */
static inline struct slice raw_first(struct arena *arena, struct slice array)
{
    struct raw_look look = raw_look_of(arena, array);
    struct slice value;
    return raw_look_next(&look, NULL, &value) ? value : SLICE_NONE;
}
/* A loop over all of them: raw_each(arena, array, &element) ..., raw_each_member(arena, object, &name, &value) ... */
#define raw_each(arena, array, value) raw_each_member(arena, array, NULL, value)
#define raw_each_member(arena, object, name, value)                                                          \
    for (struct raw_look RAW_LOOK = raw_look_of(arena, object); raw_look_next(&RAW_LOOK, name, value);)
#define RAW_LOOK             RAW_LOOK_AT(__LINE__)
#define RAW_LOOK_AT(line)    RAW_LOOK_NAMED(line)
#define RAW_LOOK_NAMED(line) raw_look_##line

#endif
