/* Keys against a table's schema: which attributes they must have, of which type, how long they may be. */
#include "api/items.h"
#include "base/fail.h"

#define MISMATCH SLICE("The provided key element does not match the schema")

struct slice key_length_fault(const struct value *value, bool is_hash)
{
    if (value->type == VALUE_N) return SLICE_NONE;
    if (is_hash && value->bytes.len > LIMIT_HASH_KEY_BYTES)
        return SLICE("One or more parameter values were invalid: Size of hashkey has exceeded the maximum "
                     "size limit of2048 bytes");
    if (!is_hash && value->bytes.len > LIMIT_RANGE_KEY_BYTES)
        return SLICE("One or more parameter values were invalid: Aggregated size of all range keys has "
                     "exceeded the size limit of 1024 bytes");
    return SLICE_NONE;
}

struct slice key_value_fault(struct arena *arena, struct slice name, const struct value *value, bool is_hash)
{
    if (value->type == VALUE_N || value->bytes.len) return key_length_fault(value, is_hash);
    return arena_printf(arena,
                        "One or more parameter values are not valid. The AttributeValue for a key attribute "
                        "cannot contain an empty %s value. Key: %.*s",
                        value->type == VALUE_S ? "string" : "binary", SLICE_ARG(name));
}

bool check_key_value(struct api_call *call, struct slice name, const struct value *value, bool is_hash)
{
    return invalid_unless_sound(call, key_value_fault(call->arena, name, value, is_hash));
}

struct slice key_bytes(struct api_call *call, const struct table *table, const struct value *hash,
                       const struct value *range)
{
    /* The reply's buffer has room to build in, so that a key costs no memory of its own. */
    size_t mark = call->reply->len;
    engine_item_key(call->reply, table, hash, range);
    struct slice built = {call->reply->data + mark, call->reply->len - mark};
    call->reply->len = mark;
    return arena_copy(call->arena, built);
}

/* One attribute of a Key. */
static struct slice take_key_part(struct arena *arena, const struct map *key, struct slice name,
                                  enum value_type type, bool is_hash, const struct value **out)
{
    *out = map_find(key, name);
    if (!*out || (*out)->type != type) return MISMATCH;
    return key_value_fault(arena, name, *out, is_hash);
}

struct slice key_of_map(struct api_call *call, const struct table *table, const struct map *key,
                        struct item_key *out)
{
    const struct key_schema *keys = &table->keys;
    bool has_range = keys->range.len > 0;
    *out = (struct item_key){0};
    if (key->count != (has_range ? 2u : 1u)) return MISMATCH;
    struct slice fault = take_key_part(call->arena, key, keys->hash, keys->hash_type, true, &out->hash);
    if (!fault.len && has_range)
        fault = take_key_part(call->arena, key, keys->range, keys->range_type, false, &out->range);
    if (!fault.len) out->bytes = key_bytes(call, table, out->hash, out->range);
    return fault;
}

bool key_from_map(struct api_call *call, const struct table *table, const struct map *key,
                  struct item_key *out)
{
    return invalid_unless_sound(call, key_of_map(call, table, key, out));
}

/* One key attribute of an item to put. */
static struct slice take_item_part(struct arena *arena, const struct map *item, struct slice name,
                                   enum value_type type, bool is_hash, bool in_batch,
                                   const struct value **out)
{
    const struct value *value = *out = map_find(item, name);
    if (value && value->type == type) return key_value_fault(arena, name, value, is_hash);
    if (in_batch) return MISMATCH;
    if (!value)
        return arena_printf(arena,
                            "One or more parameter values were invalid: Missing the key %.*s in the item",
                            SLICE_ARG(name));
    return arena_printf(arena,
                        "One or more parameter values were invalid: Type mismatch for key %.*s expected: "
                        "%.*s actual: %.*s",
                        SLICE_ARG(name), SLICE_ARG(value_type_name(type)),
                        SLICE_ARG(value_type_name(value->type)));
}

struct slice key_of_item(struct api_call *call, const struct table *table, const struct map *item,
                         bool in_batch, struct item_key *out)
{
    const struct key_schema *keys = &table->keys;
    *out = (struct item_key){0};
    struct slice fault = take_item_part(call->arena, item, keys->hash, keys->hash_type, true, in_batch,
                                        &out->hash);
    if (!fault.len && keys->range.len)
        fault = take_item_part(call->arena, item, keys->range, keys->range_type, false, in_batch,
                               &out->range);
    if (!fault.len) fault = item_index_fault(call->arena, table, item);
    if (!fault.len) out->bytes = key_bytes(call, table, out->hash, out->range);
    return fault;
}

bool key_from_item(struct api_call *call, const struct table *table, const struct map *item, bool in_batch,
                   struct item_key *out)
{
    return invalid_unless_sound(call, key_of_item(call, table, item, in_batch, out));
}
