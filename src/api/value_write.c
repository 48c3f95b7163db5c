/* Values and items into JSON, in DynamoDB's form. */
#include "api/internal.h"

#include <stdalign.h>

#include "base/limits.h"

#define STACK_BYTES     4096 /* enough to decode some 80 attributes without touching the heap */
#define NUMBERS_AT_ONCE 8

static void put_map(struct buf *out, const struct map *map)
{
    buf_byte(out, '{');
    for (uint32_t i = 0; i < map->count; i++) {
        if (i) buf_byte(out, ',');
        json_put_string(out, map->attributes[i].name);
        buf_byte(out, ':');
        value_put_json(out, &map->attributes[i].value);
    }
    buf_byte(out, '}');
}

static void put_list(struct buf *out, const struct value *value)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < value->count; i++) {
        if (i) buf_byte(out, ',');
        value_put_json(out, &value->elements[i]);
    }
    buf_byte(out, ']');
}

/* Numbers are digits, sign and dot: nothing that JSON would escape. */
static void put_number(struct buf *out, struct slice text)
{
    buf_byte(out, '"');
    buf_slice(out, text);
    buf_byte(out, '"');
}

/* Sets may have many numbers of a few digits: room is made for some at once. */
static void put_numbers(struct buf *out, const struct value *set)
{
    const struct slice *member = set->members, *end = member + set->count;
    buf_byte(out, '[');
    while (member < end) {
        buf_reserve(out, NUMBERS_AT_ONCE * (LIMIT_NUMBER_TEXT + sizeof "\"\","));
        char *at = out->data + out->len;
        for (unsigned i = 0; i < NUMBERS_AT_ONCE && member < end; i++, member++) {
            *at++ = '"';
            for (size_t k = 0; k < member->len; k++) *at++ = member->data[k];
            *at++ = '"';
            *at++ = ',';
        }
        out->len = (size_t)(at - out->data);
    }
    if (set->count) out->len--; /* the last comma */
    buf_byte(out, ']');
}

static void put_set(struct buf *out, const struct value *value)
{
    if (value->type == VALUE_NS) {
        put_numbers(out, value);
        return;
    }
    buf_byte(out, '[');
    for (uint32_t i = 0; i < value->count; i++) {
        if (i) buf_byte(out, ',');
        if (value->type == VALUE_SS)
            json_put_string(out, value->members[i]);
        else
            json_put_base64(out, value->members[i]);
    }
    buf_byte(out, ']');
}

void value_put_json(struct buf *out, const struct value *value)
{
    buf_text(out, "{\"");
    buf_slice(out, value_type_name(value->type));
    buf_text(out, "\":");
    switch (value->type) {
    case VALUE_S: json_put_string(out, value->bytes); break;
    case VALUE_N: put_number(out, value->bytes); break;
    case VALUE_B: json_put_base64(out, value->bytes); break;
    case VALUE_BOOL:
        if (value->truth)
            buf_text(out, "true");
        else
            buf_text(out, "false");
        break;
    case VALUE_NULL: buf_text(out, "true"); break;
    case VALUE_L: put_list(out, value); break;
    case VALUE_M: put_map(out, &value->map); break;
    default: put_set(out, value); break;
    }
    buf_byte(out, '}');
}

void api_put_item_json(struct buf *out, const struct map *item)
{
    put_map(out, item);
}

/* Decoding copies nothing, so it costs one array per map, list or set; for most items that array fits on the
 * stack. */
bool api_put_encoded_item_json(struct buf *out, struct slice encoded)
{
    alignas(16) char memory[STACK_BYTES];
    struct arena arena = {.at = memory, .end = memory + sizeof memory};
    struct map item;
    bool is_sound = item_decode(&arena, encoded, &item);
    buf_reserve(out, 2 * encoded.len + 64); /* enough for most: it grows once */
    if (is_sound) put_map(out, &item);
    arena_free(&arena);
    return is_sound;
}
