/* Any bytes as a stored item: refused, or an item that encodes to the same bytes again, but for the billed
 * size, which the decoder takes on trust. */
#include "base/fail.h"
#include "value/value.h"

/* What follows the format byte and the billed size. */
static struct slice body(struct slice bytes)
{
    struct slice rest = slice_from(bytes, 1);
    uint64_t size;
    ensure(varint_take(&rest, &size));
    return rest;
}

static void check_values(struct arena *arena, const struct map *item)
{
    for (uint32_t i = 0; i < item->count; i++) {
        const struct attribute *attribute = &item->attributes[i];
        ensure(map_find(item, attribute->name) == &attribute->value);
        ensure(value_equal(&attribute->value, &attribute->value));
        ensure(value_depth(&attribute->value) < 100);
        struct map without = map_without(arena, item, attribute->name);
        struct map with = map_with(arena, &without, attribute->name, &attribute->value);
        ensure(map_equal(&with, item));
        if (item->count > 64) break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = {(const char *)data, size};
    struct arena arena = {0};
    struct map item, again;
    float floats[4];
    item_encoded_size(bytes);
    for (uint32_t count = 0; count <= 4; count++)
        item_decode_floats(&arena, bytes, SLICE("c"), count, floats, &item);
    arena_reset(&arena);
    bool sound = item_decode(&arena, bytes, &item);
    /* An element per byte, and blocks not quite filled. */
    ensure(arena.total_bytes <= 128 * size + 64 * 1024);
    if (sound) {
        struct buf out = {0};
        item_encode(&out, &item);
        ensure(slice_equal(body(buf_view(&out)), body(bytes)));
        ensure(item_encoded_size(buf_view(&out)) == map_size(&item));
        ensure(item_decode(&arena, buf_view(&out), &again) && map_equal(&item, &again));
        check_values(&arena, &item);
        buf_free(&out);
    }
    arena_free(&arena);
    return 0;
}
