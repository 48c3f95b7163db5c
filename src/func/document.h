/* Documents: JSON objects as lists of named members whose values stay text.
 *
 * Everything that is stored of a function is a document, and an item holds it attribute by attribute (a
 * string as S, a number as N, an object as M, ...), so that whoever reads the table with a plain client sees
 * what Lambda's API shows. A document lives in an arena; values are slices of JSON. */
#ifndef FUNC_DOCUMENT_H
#define FUNC_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/slice.h"

struct document_member {
    struct slice name, value; /* value: JSON */
};

struct document {
    struct document_member *members;
    uint32_t count, room;
};

/* An object's text; of members with the same name the last stays. False when it is no JSON object. Keeps
 * slices of the text. */
bool document_parse(struct slice text, struct arena *arena, struct document *out);
/* A copy whose members may be changed without changing the original's. */
struct document document_copy(const struct document *document, struct arena *arena);

/* The value's JSON; NULL data when there is no such member, also in a document that is empty. */
struct slice document_get(const struct document *document, const char *name);
/* A string's text, in the arena; NULL data when it is none. */
struct slice document_text(const struct document *document, const char *name, struct arena *arena);
/* A whole number; `otherwise` when it is none. */
int64_t document_integer(const struct document *document, const char *name, int64_t otherwise);
/* An object; an empty document when it is none. */
struct document document_object(const struct document *document, const char *name, struct arena *arena);

/* Puts or replaces a member; NULL data removes it. The name and the value are kept. */
void document_set(struct document *document, const char *name, struct slice json, struct arena *arena);
void document_set_text(struct document *document, const char *name, struct slice text, struct arena *arena);
void document_set_integer(struct document *document, const char *name, int64_t value, struct arena *arena);

/* The members as JSON, joined by commas, without the braces. */
void document_put_members(struct buf *out, const struct document *document);
/* The same behind other members: a comma before each. */
void document_put_more(struct buf *out, const struct document *document);
/* The whole object, in the arena. */
struct slice document_json(const struct document *document, struct arena *arena);

/* ---- items ---- */

/* The members as attributes, `"Timeout":{"N":"3"},...`, without the braces. */
void document_put_attributes(struct buf *out, const struct document *document, struct arena *arena);
/* Reads an item, the object that comes next; attributes become members. Types that JSON has not (B, sets)
 * are left out. False when it is no item. */
bool document_of_item(struct json_reader *reader, struct document *out);

#endif
