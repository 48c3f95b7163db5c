/* Documents and items, each made of the other. What is stored was checked before, so a type that does not fit
 * is a stranger's writing into our table: it is left out, never trusted. */
#include "func/document.h"

#include "base/attribute.h"
#include "base/compose.h"
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
    document->members = arena_grow(arena, document->members, document->count, &document->room,
                                   sizeof *document->members);
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

void document_set_text(struct document *document, const char *name, struct slice text, struct arena *arena)
{
    document_set(document, name, compose_in(arena, "%s", text), arena);
}

void document_set_integer(struct document *document, const char *name, int64_t value, struct arena *arena)
{
    document_set(document, name, compose_in(arena, "%d", value), arena);
}

void document_put_members(struct buf *out, const struct document *document)
{
    for (uint32_t i = 0; i < document->count; i++) {
        if (i) buf_byte(out, ',');
        compose(out, "%s:%A", document->members[i].name, document->members[i].value);
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
    return arena_take(arena, &json);
}

/* ---- items ---- */

void document_put_attributes(struct buf *out, const struct document *document, struct arena *arena)
{
    for (uint32_t i = 0; i < document->count; i++) {
        if (i) buf_byte(out, ',');
        json_put_string(out, document->members[i].name);
        buf_byte(out, ':');
        attribute_put_plain(out, arena, document->members[i].value);
    }
}

/* Writes an attribute value as JSON, without the members and elements that JSON has no type for; false when it is such
 * a one itself. */
static bool put_value(struct buf *out, struct arena *arena, struct slice attribute)
{
    struct slice type, content, name, value;
    struct raw_look look;
    if (!attribute_open(arena, attribute, &type, &content)) return false;
    if (slice_equal(type, SLICE("N")) || slice_equal(type, SLICE("BOOL")) ||
        slice_equal(type, SLICE("NULL"))) {
        plain_put_attribute(out, arena, attribute);
        return true;
    }
    if (slice_equal(type, SLICE("S"))) {
        json_put_string(out, raw_text(arena, content));
        return true;
    }
    if (!slice_equal(type, SLICE("M")) && !slice_equal(type, SLICE("L"))) return false;
    raw_look_begin(&look, arena, content);
    buf_byte(out, look.is_object ? '{' : '[');
    for (bool first = true; raw_look_next(&look, &name, &value);) {
        size_t before = out->len;
        if (!first) buf_byte(out, ',');
        if (look.is_object) compose(out, "%s:", name);
        if (put_value(out, arena, value))
            first = false;
        else
            out->len = before;
    }
    buf_byte(out, look.is_object ? '}' : ']');
    return true;
}

bool document_of_item(struct json_reader *reader, struct document *out)
{
    struct arena *arena = reader->arena;
    struct slice item, name, value;
    *out = (struct document){0};
    if (!raw_take(reader, &item) || raw_kind(item) != JSON_OBJECT) return false;
    raw_each_member (arena, item, &name, &value) {
        struct buf json = {0};
        if (put_value(&json, arena, value)) add(out, name, arena_copy(arena, buf_view(&json)), arena);
        buf_free(&json);
    }
    return true;
}
