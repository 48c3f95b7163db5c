/* The data that DynamoDB knows: numbers, values, items, and the keys under which they are stored.
 *
 * Invariants, relied on everywhere above:
 *  V1. A number is held as its canonical text (number_canonical): the digits that the service would send
 *      back. Two numbers are equal exactly when their texts are.
 *  V2. The attributes of a map are sorted by name and distinct; the members of a set are sorted and distinct
 *      (strings and binaries bytewise, numbers by value).
 *  V3. So the encoding is canonical: two items are equal exactly when their encoded bytes are.
 *  V4. Everything a value points at lives in the arena it was made in, or in the bytes it was decoded from.
 *      Values are plain data and never change once made; an update builds a new map that shares the old
 *      parts. */
#ifndef VALUE_VALUE_H
#define VALUE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

/* ---- numbers: up to 38 digits, first digit between 10^-130 and 10^125 ---- */

struct number {
    unsigned __int128 digits; /* 0 .. 10^38 - 1, no trailing zero; 0 only for zero itself */
    int exponent;             /* of the last digit: the value is digits * 10^exponent */
    bool negative;
};

enum number_fault {
    NUMBER_OK,
    NUMBER_MALFORMED, /* not a number at all */
    NUMBER_OVERFLOW,  /* magnitude above 9.99..E+125 */
    NUMBER_UNDERFLOW, /* not zero, magnitude below 1E-130 */
    NUMBER_PRECISION, /* more than 38 significant digits */
};

enum number_fault number_parse(struct slice text, struct number *out);
enum number_fault number_add(const struct number *a, const struct number *b, struct number *out);
enum number_fault number_subtract(const struct number *a, const struct number *b, struct number *out);
int number_compare(const struct number *a, const struct number *b);
/* Canonical text: plain digits, no exponent, no needless zeros ("1.5", "-0.001", "100"). */
struct slice number_text(struct arena *arena, const struct number *number);
/* Parses and answers the canonical text; a slice of the input where that is canonical already. */
enum number_fault number_canonical(struct arena *arena, struct slice text, struct slice *out);
/* The bytes the service bills for a number: 1 + its base-100 digits + 1 if negative. Text must be canonical.
 */
size_t number_size(struct slice canonical);
/* The nearest 32-bit float. False when the number is beyond all of them, or the text is none. */
bool number_to_float(struct slice canonical, float *out);
/* Order of two canonical texts by value. */
int number_text_compare(struct slice a, struct slice b);

/* ---- values ---- */

enum value_type {
    VALUE_S,
    VALUE_N,
    VALUE_B,
    VALUE_BOOL,
    VALUE_NULL,
    VALUE_L,
    VALUE_M,
    VALUE_SS,
    VALUE_NS,
    VALUE_BS
};
#define VALUE_TYPES 10

struct attribute;

struct map {
    struct attribute *attributes; /* sorted by name */
    uint32_t count;
};

struct value {
    enum value_type type;
    bool truth;     /* BOOL */
    uint32_t count; /* of items or members */
    union {
        struct slice bytes;     /* S, B (raw, not base64), N (canonical text) */
        struct slice *members;  /* SS, NS, BS: count of them, sorted */
        struct value *elements; /* L: count of them */
        struct map map;         /* M (count unused) */
    };
};

struct attribute {
    struct slice name;
    struct value value;
};

/* "S", "N", ... as they stand in requests. */
struct slice value_type_name(enum value_type type);
bool value_type_from_name(struct slice name, enum value_type *out);

bool value_equal(const struct value *a, const struct value *b);
/* Order of two S, two N or two B. */
int value_compare(const struct value *a, const struct value *b);
/* Sorts members by V2 and drops nothing: answers false when two are equal. */
bool set_sort(enum value_type type, struct slice *members, uint32_t count);
bool set_contains(const struct value *set, struct slice member);
/* Sums and differences of two sets of one type. */
struct value set_union(struct arena *arena, const struct value *a, const struct value *b);
struct value set_difference(struct arena *arena, const struct value *a, const struct value *b);
/* Billed size: dynamodb's item size rules. */
size_t value_size(const struct value *value);
/* Levels of lists and maps: 0 for a scalar or a set. */
unsigned value_depth(const struct value *value);

/* ---- maps (an item is one) ---- */

/* Sorts by name; answers false (and the name) when one occurs twice. */
bool map_sort(struct map *map, struct slice *duplicate);
const struct value *map_find(const struct map *map, struct slice name);
/* A copy with the attribute set (or replaced), or without it. */
struct map map_with(struct arena *arena, const struct map *map, struct slice name, const struct value *value);
struct map map_without(struct arena *arena, const struct map *map, struct slice name);
bool map_equal(const struct map *a, const struct map *b);
/* Names and values, without the 3 bytes that a map nested in an item costs on top. */
size_t map_size(const struct map *map);

/* ---- stored form of an item ---- */

/* Appends the canonical bytes. The item's billed size stands first, so that reads need not decode to charge.
 * The caller has checked the nesting: deeper than the service allows (LIMIT_NESTING and a little slack) is a
 * bug that stops here. */
void item_encode(struct buf *out, const struct map *item);
/* The same where map_size is known: a large set is not measured twice. */
void item_encode_sized(struct buf *out, const struct map *item, size_t size);
/* Decodes into the arena; slices point into bytes, which must outlive the map. False when the bytes are
 * damaged. */
bool item_decode(struct arena *arena, struct slice bytes, struct map *out);
/* The same for an item whose attribute of this name is a list of so many numbers, all of them 32-bit floats: they are
 * read straight into floats, and out has the other attributes. False where it is anything else, or damaged. */
bool item_decode_floats(struct arena *arena, struct slice bytes, struct slice name, uint32_t count, float *floats,
                        struct map *out);
/* The billed size that stands first; 0 when damaged. */
size_t item_encoded_size(struct slice bytes);

/* ---- order-preserving keys ---- */

/* Appends the bytes of one key attribute (S, N or B). Bytewise order of such bytes is the order of the
 * values, no encoded value is a prefix of another of the same type, so several can stand one after the other.
 */
void key_encode(struct buf *out, const struct value *value);
/* The same without the end mark: every string or binary that begins with the value, and no other, starts with
 * these bytes. For S and B only. */
void key_encode_prefix(struct buf *out, const struct value *value);
/* Takes one encoded value off the front. False when damaged. */
bool key_decode(struct arena *arena, struct slice *from, enum value_type type, struct value *out);
/* The smallest bytes above every key that starts with these: for the end of a range. False when there is none
 * (all 0xff). Changes the buffer in place. */
bool key_successor(struct buf *key);

#endif
