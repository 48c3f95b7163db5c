/* Parts of JSON texts, as they stand. Replies are handed on, not understood: an item or a key goes out with
 * the very bytes with which it came in. */
#include "library/internal.h"

static size_t index_of(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, slice_of(names[i]))) return i;
    return count;
}

/* Skips the value that comes next; its text. */
static bool take_raw(struct json_reader *reader, struct slice *raw)
{
    json_peek(reader); /* over the white space in front */
    const char *start = reader->at;
    if (!json_skip(reader)) return false;
    *raw = (struct slice){start, (size_t)(reader->at - start)};
    return true;
}

static bool enter(struct json_reader *reader, enum json_kind kind)
{
    return json_peek(reader) == kind && json_enter(reader);
}

bool members_find(struct slice object, const char *const *names, struct slice *raws, size_t count,
                  struct arena *arena)
{
    struct json_reader reader;
    struct slice name, raw;
    for (size_t i = 0; i < count; i++) raws[i] = SLICE("");
    json_begin(&reader, object, arena);
    if (!enter(&reader, JSON_OBJECT)) return false;
    while (json_member(&reader, &name)) {
        size_t i = index_of(name, names, count);
        if (!take_raw(&reader, &raw)) return false;
        if (i < count) raws[i] = slice_equal(raw, SLICE("null")) ? SLICE("") : raw;
    }
    return json_done(&reader);
}

struct slice member_text(struct slice raw, struct arena *arena)
{
    struct json_reader reader;
    struct slice text;
    json_begin(&reader, raw, arena);
    return json_peek(&reader) == JSON_STRING && json_string(&reader, &text) ? text : SLICE("");
}

static void put_member(struct buf *out, struct slice name, struct slice raw)
{
    buf_byte(out, out->len > 1 ? ',' : '{');
    json_put_string(out, name);
    buf_byte(out, ':');
    buf_slice(out, raw);
}

void member_replace(struct buf *out, struct slice object, struct slice name, struct slice raw,
                    struct arena *arena)
{
    struct json_reader reader;
    struct slice other, other_raw;
    out->len = 0;
    put_member(out, name, raw);
    json_begin(&reader, object, arena);
    bool is_object = enter(&reader, JSON_OBJECT);
    while (is_object && json_member(&reader, &other) && take_raw(&reader, &other_raw))
        if (!slice_equal(other, name)) put_member(out, other, other_raw);
    buf_byte(out, '}');
    if (is_object && json_done(&reader)) return;
    out->len = 0;
    buf_slice(out, object);
}

bool elements_begin(struct elements *elements, struct slice raw, struct arena *arena)
{
    json_begin(&elements->reader, raw, arena);
    return enter(&elements->reader, JSON_ARRAY);
}

bool elements_next(struct elements *elements, struct slice *raw)
{
    return json_element(&elements->reader) && take_raw(&elements->reader, raw);
}
