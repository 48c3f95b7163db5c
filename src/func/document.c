/* Documents and items, each made of the other. What is stored was checked before, so a type that does not fit
 * is a stranger's writing into our table: it is left out, never trusted. */
#include "func/document.h"

#include "base/fail.h"
#include "base/raw.h"

/* ---- members ---- */

static struct document_member *find(const struct document *document, struct slice name)
{
    for (uint32_t i = 0; i < document->count; i++)
        if (slice_equal(document->members[i].name, name)) return &document->members[i];
    return NULL;
}

static void add(struct document *document, struct slice name, struct slice value, struct arena *arena)
{
    struct document_member *known = find(document, name);
    if (known) {
        known->value = value;
        return;
    }
    if (document->count == document->room) {
        uint32_t room = document->room ? document->room * 2 : 16;
        struct document_member *more = arena_array(arena, struct document_member, room);
        if (document->count) memcpy(more, document->members, document->count * sizeof *more);
        document->members = more;
        document->room = room;
    }
    document->members[document->count++] = (struct document_member){name, value};
}

bool document_parse(struct slice text, struct arena *arena, struct document *out)
{
    struct raw_walk walk;
    struct slice name, value;
    *out = (struct document){0};
    if (raw_walk_begin(&walk, arena, text) != JSON_OBJECT) return false;
    while (raw_walk_next(&walk, &name, &value)) add(out, name, value, arena);
    return json_done(&walk.reader);
}

struct document document_copy(const struct document *document, struct arena *arena)
{
    struct document copy = {arena_array(arena, struct document_member, document->count), document->count,
                            document->count};
    if (copy.count) memcpy(copy.members, document->members, copy.count * sizeof *copy.members);
    return copy;
}

struct slice document_get(const struct document *document, const char *name)
{
    const struct document_member *member = find(document, slice_of(name));
    return member ? member->value : SLICE_NONE;
}

struct slice document_text(const struct document *document, const char *name, struct arena *arena)
{
    return raw_string(arena, document_get(document, name));
}

int64_t document_integer(const struct document *document, const char *name, int64_t otherwise)
{
    struct slice text = document_get(document, name);
    unsigned long long value;
    bool negative = text.len && text.data[0] == '-';
    if (negative) text = slice_from(text, 1);
    if (!slice_to_u64(text, INT64_MAX, &value)) return otherwise;
    return negative ? -(int64_t)value : (int64_t)value;
}

struct document document_object(const struct document *document, const char *name, struct arena *arena)
{
    struct document object;
    if (!document_parse(document_get(document, name), arena, &object)) return (struct document){0};
    return object;
}

void document_set(struct document *document, const char *name, struct slice json, struct arena *arena)
{
    struct document_member *known = find(document, slice_of(name));
    if (json.data) {
        add(document, slice_of(name), json, arena);
    } else if (known) {
        size_t after = (size_t)(document->members + document->count - (known + 1));
        memmove(known, known + 1, after * sizeof *known);
        document->count--;
    }
}

/* What was written into a buf, in the arena; the buf is free afterwards. */
static struct slice into_arena(struct buf *text, struct arena *arena)
{
    struct slice copy = arena_copy(arena, buf_view(text));
    buf_free(text);
    return copy;
}

void document_set_text(struct document *document, const char *name, struct slice text, struct arena *arena)
{
    struct buf json = {0};
    json_put_string(&json, text);
    document_set(document, name, into_arena(&json, arena), arena);
}

void document_set_integer(struct document *document, const char *name, int64_t value, struct arena *arena)
{
    struct buf json = {0};
    json_put_int(&json, value);
    document_set(document, name, into_arena(&json, arena), arena);
}

void document_put_members(struct buf *out, const struct document *document)
{
    for (uint32_t i = 0; i < document->count; i++) {
        if (i) buf_byte(out, ',');
        json_put_string(out, document->members[i].name);
        buf_byte(out, ':');
        buf_slice(out, document->members[i].value);
    }
}

void document_put_more(struct buf *out, const struct document *document)
{
    if (document->count) buf_byte(out, ',');
    document_put_members(out, document);
}

struct slice document_json(const struct document *document, struct arena *arena)
{
    struct buf json = {0};
    buf_byte(&json, '{');
    document_put_members(&json, document);
    buf_byte(&json, '}');
    return into_arena(&json, arena);
}

/* ---- JSON into attribute values ---- */

static void put_value(struct buf *out, struct json_reader *reader);

static void put_map(struct buf *out, struct json_reader *reader)
{
    struct slice name;
    buf_text(out, "{\"M\":{");
    json_enter(reader);
    for (bool first = true; json_member(reader, &name); first = false) {
        if (!first) buf_byte(out, ',');
        json_put_string(out, name);
        buf_byte(out, ':');
        put_value(out, reader);
    }
    buf_text(out, "}}");
}

static void put_list(struct buf *out, struct json_reader *reader)
{
    buf_text(out, "{\"L\":[");
    json_enter(reader);
    for (bool first = true; json_element(reader); first = false) {
        if (!first) buf_byte(out, ',');
        put_value(out, reader);
    }
    buf_text(out, "]}");
}

static void put_value(struct buf *out, struct json_reader *reader)
{
    struct slice text = SLICE_NONE;
    enum json_kind kind = json_peek(reader);
    switch (kind) {
    case JSON_OBJECT: put_map(out, reader); return;
    case JSON_ARRAY: put_list(out, reader); return;
    case JSON_STRING:
        json_string(reader, &text);
        buf_text(out, "{\"S\":");
        json_put_string(out, text);
        buf_byte(out, '}');
        return;
    case JSON_NUMBER:
        json_number(reader, &text);
        buf_text(out, "{\"N\":\"");
        buf_slice(out, text);
        buf_text(out, "\"}");
        return;
    case JSON_TRUE: buf_text(out, "{\"BOOL\":true}"); break;
    case JSON_FALSE: buf_text(out, "{\"BOOL\":false}"); break;
    default: buf_text(out, "{\"NULL\":true}"); break;
    }
    json_skip(reader);
}

void document_put_attributes(struct buf *out, const struct document *document, struct arena *arena)
{
    for (uint32_t i = 0; i < document->count; i++) {
        struct json_reader reader;
        if (i) buf_byte(out, ',');
        json_put_string(out, document->members[i].name);
        buf_byte(out, ':');
        json_begin(&reader, document->members[i].value, arena);
        put_value(out, &reader);
        ensure(!json_failed(&reader)); /* a document holds only what was read or written as JSON */
    }
}

/* ---- attribute values into JSON ---- */

/* Writes one value's JSON; false when it has a type that JSON has not (and has been passed over). */
static bool take_value(struct json_reader *reader, struct buf *out);

static void take_map(struct json_reader *reader, struct buf *out)
{
    struct slice name;
    bool first = true;
    buf_byte(out, '{');
    if (json_peek(reader) == JSON_OBJECT) json_enter(reader);
    while (json_member(reader, &name)) {
        size_t before = out->len;
        if (!first) buf_byte(out, ',');
        json_put_string(out, name);
        buf_byte(out, ':');
        if (take_value(reader, out))
            first = false;
        else
            out->len = before;
    }
    buf_byte(out, '}');
}

static void take_list(struct json_reader *reader, struct buf *out)
{
    bool first = true;
    buf_byte(out, '[');
    if (json_peek(reader) == JSON_ARRAY) json_enter(reader);
    while (json_element(reader)) {
        size_t before = out->len;
        if (!first) buf_byte(out, ',');
        if (take_value(reader, out))
            first = false;
        else
            out->len = before;
    }
    buf_byte(out, ']');
}

static bool take_scalar(struct json_reader *reader, struct slice type, struct buf *out)
{
    struct slice text = SLICE_NONE;
    if (slice_equal(type, SLICE("S"))) {
        if (json_string(reader, &text)) json_put_string(out, text);
    } else if (slice_equal(type, SLICE("N"))) {
        if (json_string(reader, &text)) buf_slice(out, text);
    } else if (slice_equal(type, SLICE("BOOL"))) {
        buf_slice(out, json_peek(reader) == JSON_TRUE ? SLICE("true") : SLICE("false"));
        json_skip(reader);
    } else if (slice_equal(type, SLICE("NULL"))) {
        buf_text(out, "null");
        json_skip(reader);
    } else {
        json_skip(reader);
        return false;
    }
    return true;
}

static bool take_value(struct json_reader *reader, struct buf *out)
{
    struct slice type;
    bool taken = false;
    if (json_peek(reader) != JSON_OBJECT) return json_fail(reader, "no attribute value");
    json_enter(reader);
    while (json_member(reader, &type)) {
        taken = true;
        if (slice_equal(type, SLICE("M")))
            take_map(reader, out);
        else if (slice_equal(type, SLICE("L")))
            take_list(reader, out);
        else
            taken = take_scalar(reader, type, out);
    }
    return taken && !json_failed(reader);
}

bool document_of_item(struct json_reader *reader, struct document *out)
{
    struct buf value = {0};
    struct slice name;
    *out = (struct document){0};
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    while (json_member(reader, &name)) {
        value.len = 0;
        if (take_value(reader, &value))
            add(out, name, arena_copy(reader->arena, buf_view(&value)), reader->arena);
    }
    buf_free(&value);
    return !json_failed(reader);
}
