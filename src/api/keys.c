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
    struct slice fault = key_value_fault(call->arena, name, value, is_hash);
    return fault.len ? invalid_text(call, fault) : true;
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
static const struct value *take_key_part(struct api_call *call, const struct map *key, struct slice name,
                                         enum value_type type, bool is_hash)
{
    const struct value *value = map_find(key, name);
    if (!value || value->type != type) {
        invalid_text(call, MISMATCH);
        return NULL;
    }
    return check_key_value(call, name, value, is_hash) ? value : NULL;
}

bool key_from_map(struct api_call *call, const struct table *table, const struct map *key,
                  struct item_key *out)
{
    const struct key_schema *keys = &table->keys;
    bool has_range = keys->range.len > 0;
    *out = (struct item_key){0};
    if (key->count != (has_range ? 2u : 1u)) return invalid_text(call, MISMATCH);
    out->hash = take_key_part(call, key, keys->hash, keys->hash_type, true);
    if (!out->hash) return false;
    if (has_range) {
        out->range = take_key_part(call, key, keys->range, keys->range_type, false);
        if (!out->range) return false;
    }
    out->bytes = key_bytes(call, table, out->hash, out->range);
    return true;
}

/* One key attribute of an item to put. */
static const struct value *take_item_part(struct api_call *call, const struct map *item, struct slice name,
                                          enum value_type type, bool is_hash, bool in_batch)
{
    const struct value *value = map_find(item, name);
    if (value && value->type == type) return check_key_value(call, name, value, is_hash) ? value : NULL;
    if (in_batch)
        invalid_text(call, MISMATCH);
    else if (!value)
        invalid(call, "One or more parameter values were invalid: Missing the key %.*s in the item",
                SLICE_ARG(name));
    else
        invalid(call,
                "One or more parameter values were invalid: Type mismatch for key %.*s expected: %.*s "
                "actual: %.*s",
                SLICE_ARG(name), SLICE_ARG(value_type_name(type)), SLICE_ARG(value_type_name(value->type)));
    return NULL;
}

bool key_from_item(struct api_call *call, const struct table *table, const struct map *item, bool in_batch,
                   struct item_key *out)
{
    const struct key_schema *keys = &table->keys;
    *out = (struct item_key){0};
    out->hash = take_item_part(call, item, keys->hash, keys->hash_type, true, in_batch);
    if (!out->hash) return false;
    if (keys->range.len) {
        out->range = take_item_part(call, item, keys->range, keys->range_type, false, in_batch);
        if (!out->range) return false;
    }
    if (!check_item_index_keys(call, table, item)) return false;
    out->bytes = key_bytes(call, table, out->hash, out->range);
    return true;
}
