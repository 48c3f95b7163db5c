/* Parts of JSON texts: what is found in whatever text is JSON itself and stands within it. */
#include "base/fail.h"
#include "base/raw.h"

#define DEPTH 4 /* values within values that are looked into */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(struct slice part, struct slice whole)
{
    return part.data >= whole.data && part.data + part.len <= whole.data + whole.len;
}

static bool is_within_or_none(struct slice part, struct slice whole)
{
    return !part.data || is_within(part, whole);
}

static void try_scalar(struct slice value, struct arena *arena)
{
    struct slice string = raw_string(arena, value), text = raw_text(arena, value);
    enum json_kind kind = raw_kind(value);
    int64_t number;
    ensure((kind == JSON_STRING) == (string.data != NULL));
    ensure((kind == JSON_STRING || kind == JSON_NUMBER) == (text.data != NULL));
    if (kind == JSON_NUMBER) raw_int(text, &number);
}

/* What steps over a well-formed text finds what reads it. */
static void try_look(struct slice value, struct arena *arena)
{
    struct raw_walk walk;
    struct raw_look look;
    struct slice name = SLICE(""), part, other_name = SLICE(""), other;
    raw_walk_begin(&walk, arena, value);
    raw_look_begin(&look, arena, value);
    while (raw_walk_next(&walk, &name, &part)) {
        ensure(raw_look_next(&look, &other_name, &other) && other.data == part.data && other.len == part.len);
        ensure(!walk.is_object || slice_equal(name, other_name));
    }
    ensure(!raw_look_next(&look, &other_name, &other));
}

/* A value that is JSON. */
static void try_value(struct slice value, unsigned depth, struct arena *arena)
{
    struct raw_walk walk;
    struct slice name = SLICE(""), part;
    size_t count = 0;
    ensure(raw_is_json(arena, value));
    try_scalar(value, arena);
    try_look(value, arena);
    enum json_kind kind = raw_walk_begin(&walk, arena, value);
    if (kind != JSON_OBJECT && kind != JSON_ARRAY) return;
    for (; raw_walk_next(&walk, &name, &part); count++) {
        ensure(is_within(part, value));
        if (depth) try_value(part, depth - 1, arena);
    }
    ensure(json_done(&walk.reader) && count == raw_count(arena, value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Items", "LastEvaluatedKey"};
    struct arena arena = {0};
    struct slice text = {(const char *)data, size}, raws[2], found = raw_member(&arena, text, names[0]);
    bool is_json = raw_is_json(&arena, text);
    ensure(is_within_or_none(found, text));
    raw_pick(&arena, text, names, raws, 2);
    for (size_t i = 0; i < 2; i++)
        ensure(slice_equal(raws[i], raw_member(&arena, text, names[i])) && is_within_or_none(raws[i], text));
    ensure(raw_members(&arena, text, names, raws, 2) == (is_json && raw_kind(text) == JSON_OBJECT));
    for (size_t i = 0; is_json && i < 2; i++) {
        if (raws[i].data) ensure(is_within(raws[i], text) && raw_is_json(&arena, raws[i]));
        if (raws[i].data) ensure(raw_member(&arena, text, names[i]).data);
    }
    if (is_json) try_value(text, DEPTH, &arena);
    arena_free(&arena);
    return 0;
}
