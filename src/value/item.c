/* The stored form of an item.
 *
 *   item      = format, billed size, attributes
 *   attributes = count, then for each: name length, name, value
 *   value     = kind, then by kind: S N B  length, bytes
 *                                   L      count, values
 *                                   M      attributes
 *                                   SS NS BS  count, then for each: length, bytes
 * Format and kind are bytes; sizes, lengths and counts are varints in their shortest form. Numbers stand as
 * text and all strings in the open, so that decoding copies nothing: it fills one array per map, list or set.
 *
 * The decoder trusts no byte but the billed size: it accepts only what the encoder writes (shortest varints,
 * V1, V2, no byte left over), so damaged bytes are reported and never reach the code above, and every
 * accepted item encodes to the same bytes again. It reserves no more memory than the bytes can fill. The
 * store's checksums make damage rare; the checks cost a comparison per name and a glance at each number. */
#include "base/fail.h"
#include "base/limits.h"
#include "value/internal.h"

#define ITEM_FORMAT 1
#define KIND_TRUE   10 /* VALUE_BOOL itself stands for false; other kinds are their type */
#define ITEM_DEPTH_MAX                                                                                       \
    (LIMIT_NESTING + 8) /* stored values nest as deep as requests may, and a little more                     \
                         */
#define SHORT_BYTES     16 /* of members of sets that are copied without a call */
#define MEMBERS_AT_ONCE 32

/* Kinds are stored: their numbers must never change. */
_Static_assert(VALUE_S == 0 && VALUE_N == 1 && VALUE_B == 2 && VALUE_BOOL == 3 && VALUE_NULL == 4 &&
                   VALUE_L == 5 && VALUE_M == 6 && VALUE_SS == 7 && VALUE_NS == 8 && VALUE_BS == 9,
               "stored kinds");

/* ---- encoding ---- */

static inline void put_varint(struct buf *out, uint64_t value)
{
    if (value < 0x80)
        buf_byte(out, (unsigned char)value);
    else
        buf_varint(out, value);
}

static inline void put_bytes(struct buf *out, struct slice bytes)
{
    put_varint(out, bytes.len);
    buf_slice(out, bytes);
}

/* Room for the short ones at once: sets may have many members of a few bytes. */
static void put_members(struct buf *out, const struct value *set)
{
    const struct slice *member = set->members, *end = member + set->count;
    while (member < end) {
        buf_reserve(out, MEMBERS_AT_ONCE * (1 + SHORT_BYTES));
        char *at = out->data + out->len;
        const struct slice *stop = end - member > MEMBERS_AT_ONCE ? member + MEMBERS_AT_ONCE : end;
        for (; member < stop && member->len <= SHORT_BYTES; member++) {
            *at++ = (char)member->len;
            for (size_t k = 0; k < member->len; k++) *at++ = member->data[k];
        }
        out->len = (size_t)(at - out->data);
        if (member < end && member->len > SHORT_BYTES) put_bytes(out, *member++);
    }
}

static void put_map(struct buf *out, const struct map *map, unsigned depth);

static void put_value(struct buf *out, const struct value *value, unsigned depth)
{
    buf_byte(out, value->type == VALUE_BOOL && value->truth ? KIND_TRUE : (unsigned char)value->type);
    switch (value->type) {
    case VALUE_S:
    case VALUE_N:
    case VALUE_B: put_bytes(out, value->bytes); return;
    case VALUE_BOOL:
    case VALUE_NULL: return;
    case VALUE_L:
        ensure(depth < ITEM_DEPTH_MAX);
        put_varint(out, value->count);
        for (uint32_t i = 0; i < value->count; i++) put_value(out, &value->elements[i], depth + 1);
        return;
    case VALUE_M: put_map(out, &value->map, depth + 1); return;
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS:
        put_varint(out, value->count);
        put_members(out, value);
        return;
    }
    fail_ensure("type of a value", __FILE__, __LINE__);
}

static void put_map(struct buf *out, const struct map *map, unsigned depth)
{
    ensure(depth <= ITEM_DEPTH_MAX);
    put_varint(out, map->count);
    for (uint32_t i = 0; i < map->count; i++) {
        put_bytes(out, map->attributes[i].name);
        put_value(out, &map->attributes[i].value, depth);
    }
}

void item_encode(struct buf *out, const struct map *item)
{
    item_encode_sized(out, item, map_size(item));
}

void item_encode_sized(struct buf *out, const struct map *item, size_t size)
{
    buf_reserve(out, size + 8 * (size_t)item->count + 16); /* one growth for a flat item */
    buf_byte(out, ITEM_FORMAT);
    put_varint(out, size);
    put_map(out, item, 0);
}

/* ---- decoding ---- */

struct decoder {
    const char *at, *end;
    struct arena *arena;
    size_t
        unclaimed; /* bytes that no array was yet made for: bounds all arrays together, however they nest */
};

static bool take_long_varint(struct decoder *decoder, uint64_t *value)
{
    struct slice rest = {decoder->at, (size_t)(decoder->end - decoder->at)};
    if (!varint_take(&rest, value)) return false;
    decoder->at = rest.data;
    return rest.data[-1] != 0; /* else a shorter form would have done */
}

static inline bool take_varint(struct decoder *decoder, uint64_t *value)
{
    if (decoder->at < decoder->end && (unsigned char)*decoder->at < 0x80) {
        *value = (unsigned char)*decoder->at++;
        return true;
    }
    return take_long_varint(decoder, value);
}

static inline bool take_bytes(struct decoder *decoder, struct slice *out)
{
    uint64_t len;
    if (!take_varint(decoder, &len) || len > (size_t)(decoder->end - decoder->at)) return false;
    *out = (struct slice){decoder->at, (size_t)len};
    decoder->at += len;
    return true;
}

/* A count of entries that take at least so many bytes each. */
static bool take_count(struct decoder *decoder, size_t least_bytes, uint32_t *count)
{
    uint64_t value;
    if (!take_varint(decoder, &value) || value > decoder->unclaimed / least_bytes || value > UINT32_MAX)
        return false;
    decoder->unclaimed -= (size_t)value * least_bytes;
    *count = (uint32_t)value;
    return true;
}

static bool take_map(struct decoder *decoder, struct map *out, unsigned depth);
static bool take_value(struct decoder *decoder, struct value *out, unsigned depth);

static bool take_list(struct decoder *decoder, struct value *out, unsigned depth)
{
    if (depth >= ITEM_DEPTH_MAX || !take_count(decoder, 1, &out->count)) return false;
    out->elements = out->count ? arena_array(decoder->arena, struct value, out->count) : NULL;
    for (uint32_t i = 0; i < out->count; i++)
        if (!take_value(decoder, &out->elements[i], depth + 1)) return false;
    return true;
}

/* Small ones, which most are, are compared by their values. */
static bool take_numbers(struct decoder *decoder, struct slice *members, uint32_t count)
{
    uint32_t small = 0, before = 0;
    bool was_small = false;
    for (uint32_t i = 0; i < count; i++) {
        struct slice *member = &members[i];
        if (!take_bytes(decoder, member)) return false;
        bool is_small = small_whole(*member, &small);
        if (!is_small && !number_is_canonical(*member)) return false;
        if (is_small && was_small ? small <= before : i > 0 && number_text_compare(member[-1], *member) >= 0)
            return false;
        was_small = is_small;
        before = small;
    }
    return true;
}

static bool take_set(struct decoder *decoder, struct value *out)
{
    if (!take_count(decoder, 1, &out->count)) return false;
    out->members = out->count ? arena_array(decoder->arena, struct slice, out->count) : NULL;
    if (out->type == VALUE_NS) return take_numbers(decoder, out->members, out->count);
    for (uint32_t i = 0; i < out->count; i++) {
        struct slice *member = &out->members[i];
        if (!take_bytes(decoder, member)) return false;
        if (i > 0 && slice_compare(member[-1], *member) >= 0) return false;
    }
    return true;
}

static bool take_value(struct decoder *decoder, struct value *out, unsigned depth)
{
    if (decoder->at == decoder->end) return false;
    unsigned char kind = (unsigned char)*decoder->at++;
    if (kind > KIND_TRUE) return false;
    *out = (struct value){.type = kind == KIND_TRUE ? VALUE_BOOL : (enum value_type)kind,
                          .truth = kind == KIND_TRUE};
    switch (out->type) {
    case VALUE_S:
    case VALUE_B: return take_bytes(decoder, &out->bytes);
    case VALUE_N: return take_bytes(decoder, &out->bytes) && number_is_canonical(out->bytes);
    case VALUE_BOOL:
    case VALUE_NULL: return true;
    case VALUE_L: return take_list(decoder, out, depth);
    case VALUE_M: return take_map(decoder, &out->map, depth + 1);
    case VALUE_SS:
    case VALUE_NS:
    case VALUE_BS: return take_set(decoder, out);
    }
    return false;
}

static bool take_map(struct decoder *decoder, struct map *out, unsigned depth)
{
    *out = (struct map){0};
    if (depth > ITEM_DEPTH_MAX || !take_count(decoder, 2, &out->count)) return false;
    if (out->count) out->attributes = arena_array(decoder->arena, struct attribute, out->count);
    for (uint32_t i = 0; i < out->count; i++) {
        struct attribute *attribute = &out->attributes[i];
        if (!take_bytes(decoder, &attribute->name)) return false;
        if (i > 0 && slice_compare(attribute[-1].name, attribute->name) >= 0) return false;
        if (!take_value(decoder, &attribute->value, depth)) return false;
    }
    return true;
}

static bool take_head(struct decoder *decoder, uint64_t *size)
{
    return decoder->at < decoder->end && *decoder->at++ == ITEM_FORMAT && take_varint(decoder, size);
}

bool item_decode(struct arena *arena, struct slice bytes, struct map *out)
{
    if (bytes.len == 0) return false;
    struct decoder decoder = {bytes.data, bytes.data + bytes.len, arena, bytes.len};
    uint64_t size;
    return take_head(&decoder, &size) && take_map(&decoder, out, 0) && decoder.at == decoder.end;
}

static bool take_floats(struct decoder *decoder, uint32_t count, float *floats)
{
    uint32_t own_count;
    struct slice text;
    if (decoder->at == decoder->end || *decoder->at++ != VALUE_L) return false;
    if (!take_count(decoder, 1, &own_count) || own_count != count) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (decoder->at == decoder->end || *decoder->at++ != VALUE_N) return false;
        if (!take_bytes(decoder, &text) || !number_to_float(text, &floats[i])) return false;
    }
    return true;
}

bool item_decode_floats(struct arena *arena, struct slice bytes, struct slice name, uint32_t count,
                        float *floats, struct map *out)
{
    if (bytes.len == 0) return false;
    struct decoder decoder = {bytes.data, bytes.data + bytes.len, arena, bytes.len};
    uint64_t size;
    uint32_t attributes;
    bool has_floats = false;
    if (!take_head(&decoder, &size) || !take_count(&decoder, 2, &attributes) || attributes == 0) return false;
    *out = (struct map){.attributes = arena_array(arena, struct attribute, attributes)};
    for (uint32_t i = 0; i < attributes; i++) {
        struct attribute *own = &out->attributes[out->count];
        if (!take_bytes(&decoder, &own->name)) return false;
        if (slice_equal(own->name, name)) {
            if (has_floats || !take_floats(&decoder, count, floats)) return false;
            has_floats = true;
            continue;
        }
        if (out->count > 0 && slice_compare(own[-1].name, own->name) >= 0) return false;
        if (!take_value(&decoder, &own->value, 0)) return false;
        out->count++;
    }
    return has_floats && decoder.at == decoder.end;
}

size_t item_encoded_size(struct slice bytes)
{
    if (bytes.len == 0) return 0;
    struct decoder decoder = {.at = bytes.data, .end = bytes.data + bytes.len};
    uint64_t size;
    return take_head(&decoder, &size) ? (size_t)size : 0;
}
