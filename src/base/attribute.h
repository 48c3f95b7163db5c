/* Plain JSON and DynamoDB's JSON, both as text.
 *
 * A value is the slice of text that it stands in, as in base/raw.h, which has the look-ups in plain JSON. An
 * item is an object of attribute values: {"name":{"S":"x"},"value":{"N":"7"}}. All texts must be well-formed
 * (replies of the door are; requests have been checked); what is not reads as not there. */
#ifndef BASE_ATTRIBUTE_H
#define BASE_ATTRIBUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/raw.h"
#include "base/slice.h"

/* A number as one text, however it is written: 7 for 7.0 and 0.7e1. False when it is none that DynamoDB
 * holds. */
bool number_plain(struct arena *arena, struct slice number, struct slice *out);

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
/* The same of an attribute's value, of which raw_pick finds several in one pass. */
struct slice attribute_text(struct arena *arena, struct slice attribute);
int64_t attribute_int(struct arena *arena, struct slice attribute, int64_t otherwise);
struct slice attribute_content(struct arena *arena, struct slice attribute);
/* {"S":"x"} -> its type and what it holds; false when it is no attribute value. */
bool attribute_open(struct arena *arena, struct slice attribute, struct slice *type, struct slice *content);

/* Whether two attribute values of one engine are the same: maps and sets have no order. */
bool attribute_equal(struct arena *arena, struct slice a, struct slice b);

/* Appends an attribute value as plain JSON: sets become arrays, binaries their base64. Nothing for SLICE_NONE
 * but null. */
void plain_put_attribute(struct buf *out, struct arena *arena, struct slice attribute);
/* Appends all attributes of an item as a plain object. */
void plain_put_item(struct buf *out, struct arena *arena, struct slice item);
/* Appends ,"name":value for each of the names, which spaces divide, that the item has. */
void plain_put_members(struct buf *out, struct arena *arena, struct slice item, const char *names);
/* The attributes of these names as members of another item: "a":{"S":"x"},"b":{"N":"7"}, as far as it has
 * them. */
struct slice item_members(struct arena *arena, struct slice item, const char *names);
/* Appends plain JSON as an attribute value. */
void attribute_put_plain(struct buf *out, struct arena *arena, struct slice value);
/* The same of what has not been checked, and will be so many lists and maps deep: plain_fault's sentence, and something
 * was appended, or NULL. */
const char *attribute_put_checked(struct buf *out, struct arena *arena, struct slice value, unsigned levels);
/* NULL when DynamoDB can hold the value; else a sentence: nesting, a number with too many digits or too
 * large. */
const char *plain_fault(struct arena *arena, struct slice value);

/* Bytes of an item as the service counts them for capacity. */
uint64_t item_bytes(struct arena *arena, struct slice item);

#endif
