/* Plain JSON and DynamoDB's JSON, both as text.
 *
 * A value is the slice of text that it stands in, and SLICE_NONE is what is not there, so lookups may be
 * chained without a check in between. Nothing is copied but strings that hold escapes. An item is an object
 * of attribute values: {"name":{"S":"x"},"value":{"N":"7"}}. All texts must be well-formed (replies of the
 * door are; requests have been checked); what is not reads as not there. */
#ifndef PATTERN_ITEM_H
#define PATTERN_ITEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/slice.h"

/* ---- plain JSON ---- */

/* The member's text as it stands. */
struct slice raw_member(struct arena *arena, struct slice object, const char *name);
/* A string's characters, or a number's digits; SLICE_NONE for all else. */
struct slice raw_text(struct arena *arena, struct slice value);
/* A whole number (also written 5.0 or 5e0) between -2^63 and 2^63 - 1. */
bool raw_int(struct slice number, int64_t *out);
/* A number as one text, however it is written: 7 for 7.0 and 0.7e1. False when it is none that DynamoDB
 * holds. */
bool raw_number(struct arena *arena, struct slice number, struct slice *out);
enum json_kind raw_kind(struct slice value); /* JSON_END: not there */

/* The elements of an array, or the members of an object, one after the other. */
struct raw_walk {
    struct json_reader reader;
    bool is_object;
};
void raw_walk_begin(struct raw_walk *walk, struct arena *arena, struct slice value);
/* `name` may be NULL for arrays. */
bool raw_walk_next(struct raw_walk *walk, struct slice *name, struct slice *value);
size_t raw_count(struct arena *arena, struct slice value);
/* The text of the value that a reader comes to next; SLICE_NONE at a fault. */
struct slice raw_value(struct json_reader *reader);

/* ---- items ---- */

/* The attribute's value with its type, {"S":"x"}. */
struct slice item_attribute(struct arena *arena, struct slice item, const char *name);
bool item_has(struct arena *arena, struct slice item, const char *name);
/* The characters of a string or number attribute; SLICE_NONE when there is none. */
struct slice item_text(struct arena *arena, struct slice item, const char *name);
int64_t item_int(struct arena *arena, struct slice item, const char *name, int64_t otherwise);
bool item_says(struct arena *arena, struct slice item, const char *name, const char *text);
/* What is in a list, map or set attribute: L's and M's elements have types, those of SS and NS are strings.
 */
struct slice item_content(struct arena *arena, struct slice item, const char *name);
/* The same of an attribute's value. */
struct slice attribute_content(struct arena *arena, struct slice attribute);

/* Whether two attribute values of one engine are the same: maps and sets have no order. */
bool attribute_equal(struct arena *arena, struct slice a, struct slice b);

/* Appends an attribute value as plain JSON: sets become arrays, binaries their base64. Nothing for SLICE_NONE
 * but null. */
void plain_put_attribute(struct buf *out, struct arena *arena, struct slice attribute);
/* Appends all attributes of an item as a plain object. */
void plain_put_item(struct buf *out, struct arena *arena, struct slice item);
/* Appends plain JSON as an attribute value. */
void attribute_put_plain(struct buf *out, struct arena *arena, struct slice value);
/* NULL when DynamoDB can hold the value; else a sentence: nesting, a number with too many digits or too
 * large. */
const char *plain_fault(struct arena *arena, struct slice value);

/* Bytes of an item as the service counts them for capacity. */
uint64_t item_bytes(struct arena *arena, struct slice item);

#endif
