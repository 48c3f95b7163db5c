/* JSON without a tree: a strict pull reader over bytes in memory, and a few writers into a buf.
 *
 * The reader walks the text once. A caller asks what comes next (json_peek) and takes it: a scalar with
 * json_string, json_number or json_skip; an object with json_enter and json_member until that answers false;
 * an array with json_enter and json_element until false. The first fault sticks: every later call answers
 * false or JSON_FAULT, so a caller may check json_failed once at the end. Strings are slices of the text
 * where they hold no escape, else copies in the arena; they are always valid UTF-8. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/slice.h"

enum json_kind {
    JSON_FAULT, /* malformed here, or earlier */
    JSON_END,   /* nothing but white space is left */
    JSON_NULL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_OBJECT,
    JSON_ARRAY,
};

struct json_reader {
    const char *at, *start, *end;
    struct arena *arena;
    const char *fault; /* a short phrase, NULL while all is well */
    unsigned depth;
    bool first; /* no comma is due before the next member or element */
};

void json_begin(struct json_reader *reader, struct slice text, struct arena *arena);
enum json_kind json_peek(struct json_reader *reader);
bool json_string(struct json_reader *reader, struct slice *out);
/* The whole of {"S":"..."}, written without white space, of which the name is one of the tags and the string is plain
 * ASCII without escapes: as most attribute values are. False for everything else, and then nothing is taken. */
bool json_tagged_string(struct json_reader *reader, const char *tags, char *tag, struct slice *out);
bool json_number(struct json_reader *reader, struct slice *out); /* the text as it stands */
bool json_enter(struct json_reader *reader);                     /* the object or array that json_peek saw */
bool json_member(struct json_reader *reader, struct slice *name);
bool json_element(struct json_reader *reader);
bool json_skip(struct json_reader *reader); /* any value, checked like the rest */
/* True when the text ended as JSON must: one value, then white space only. */
bool json_done(struct json_reader *reader);
bool json_fail(struct json_reader *reader, const char *fault); /* always false */

static inline bool json_failed(const struct json_reader *reader)
{
    return reader->fault != NULL;
}

static inline size_t json_offset(const struct json_reader *reader)
{
    return (size_t)(reader->at - reader->start);
}

/* True when the bytes are well-formed UTF-8 (no surrogates, no overlong forms, at most U+10FFFF). */
bool utf8_valid(struct slice bytes);

/* ---- writing ---- */
/* The string in quotes, with escapes where JSON asks for them. */
void json_put_string(struct buf *buf, struct slice text);
void json_put_base64(struct buf *buf, struct slice bytes); /* in quotes */
void json_put_int(struct buf *buf, int64_t value);
/* A number with a fraction, as short as it reads back the same: 0.5, 3, 1.7631234E9. */
void json_put_double(struct buf *buf, double value);

/* ---- base64 (RFC 4648, padding required) ---- */
enum base64_fault { BASE64_OK, BASE64_LENGTH, BASE64_CHARACTER, BASE64_LAST_BITS };
enum base64_fault base64_decode(struct arena *arena, struct slice text, struct slice *out);
void base64_put(struct buf *buf, struct slice bytes);

#endif
