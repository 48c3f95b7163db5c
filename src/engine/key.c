/* The layout of stored keys, and the ranges of them that queries and scans read. */
#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

const struct slice key_next_table = SLICE("mnext-table");
const struct slice key_next_sequence = SLICE("mnext-sequence");

void key_of_kind(struct buf *out, char kind, uint32_t number)
{
    buf_byte(out, (unsigned char)kind);
    buf_u32(out, number);
}

void counts_encode(struct buf *out, int64_t items, int64_t bytes)
{
    ensure(items >= 0 && bytes >= 0);
    buf_varint(out, (uint64_t)items);
    buf_varint(out, (uint64_t)bytes);
}

bool counts_decode(struct slice from, int64_t *items, int64_t *bytes)
{
    uint64_t first, second;
    if (!varint_take(&from, &first) || !varint_take(&from, &second) || from.len) return false;
    if (first > INT64_MAX || second > INT64_MAX) return false;
    *items = (int64_t)first;
    *bytes = (int64_t)second;
    return true;
}

/* Room for the hash, the encoded parts of the hash key behind it, and then the hash itself. */
static size_t hash_begin(struct buf *out)
{
    buf_u32(out, 0);
    return out->len;
}

static void hash_end(struct buf *out, size_t at)
{
    struct slice encoded = {out->data + at, out->len - at};
    uint32_t spread = (uint32_t)(hash_bytes(encoded) >> 32);
    for (size_t i = 0; i < 4; i++) out->data[at - 4 + i] = (char)(spread >> (24 - 8 * i));
}

/* Kind, table, hash and hash key: what all items of one hash key share. */
void engine_partition_key(struct buf *out, const struct table *table, const struct value *hash)
{
    key_of_kind(out, KEY_ITEM, table->number);
    size_t at = hash_begin(out);
    key_encode(out, hash);
    hash_end(out, at);
}

static void index_partition_key(struct buf *out, const struct table *table,
                                const struct index_definition *index, const struct value *const *hash)
{
    key_of_kind(out, KEY_INDEX, table->number);
    buf_u32(out, index->number);
    size_t at = hash_begin(out);
    for (uint32_t i = 0; i < index->hash_count; i++) key_encode(out, hash[i]);
    hash_end(out, at);
}

void engine_item_key(struct buf *out, const struct table *table, const struct value *hash,
                     const struct value *range)
{
    ensure((range != NULL) == (table->keys.range.len > 0));
    engine_partition_key(out, table, hash);
    if (range) key_encode(out, range);
}

void engine_index_key(struct buf *out, const struct table *table, const struct index_definition *index,
                      const struct map *item)
{
    const struct value *hash[INDEX_KEY_PARTS];
    for (uint32_t i = 0; i < index->hash_count; i++) hash[i] = map_find(item, index->hash[i]);
    index_partition_key(out, table, index, hash);
    for (uint32_t i = 0; i < index->range_count; i++) key_encode(out, map_find(item, index->range[i]));
    key_encode(out, map_find(item, table->keys.hash));
    if (table->keys.range.len) key_encode(out, map_find(item, table->keys.range));
}

/* ---- ranges ---- */

/* Both ends hold the part in front of the hash; the segment's hashes follow. */
static void segment_range(uint32_t segment, uint32_t segments, struct buf *from, struct buf *to)
{
    ensure(segments > 0 && segment < segments);
    uint64_t first = ((uint64_t)segment << 32) / segments, end = ((uint64_t)(segment + 1) << 32) / segments;
    buf_slice(to, buf_view(from));
    buf_u32(from, (uint32_t)first);
    if (end >> 32)
        ensure(key_successor(to));
    else
        buf_u32(to, (uint32_t)end);
}

void engine_scan_range(const struct table *table, uint32_t segment, uint32_t segments, struct buf *from,
                       struct buf *to)
{
    key_of_kind(from, KEY_ITEM, table->number);
    segment_range(segment, segments, from, to);
}

void engine_index_scan_range(const struct table *table, const struct index_definition *index,
                             uint32_t segment, uint32_t segments, struct buf *from, struct buf *to)
{
    key_of_kind(from, KEY_INDEX, table->number);
    buf_u32(from, index->number);
    segment_range(segment, segments, from, to);
}

/* Both ends hold what all keys of the range begin with; narrows them by a comparison of the next part of the
 * key. */
static bool compare_range(enum key_compare compare, const struct value *const range[2], struct buf *from,
                          struct buf *to)
{
    struct buf first = {0}, second = {0};
    buf_slice(&first, buf_view(from));
    buf_slice(&second, buf_view(from));
    if (compare == KEY_BEGINS_WITH)
        key_encode_prefix(&first, range[0]);
    else if (compare != KEY_NONE)
        key_encode(&first, range[0]);
    if (compare == KEY_BETWEEN) key_encode(&second, range[1]);
    bool from_first = compare == KEY_EQ || compare == KEY_BEGINS_WITH || compare == KEY_GE ||
                      compare == KEY_GT || compare == KEY_BETWEEN;
    bool to_first = compare == KEY_EQ || compare == KEY_BEGINS_WITH || compare == KEY_LE || compare == KEY_LT;
    struct buf *end = to_first ? &first : compare == KEY_BETWEEN ? &second : from;
    to->len = 0;
    buf_slice(to, buf_view(end));
    if (compare != KEY_LT) ensure(key_successor(to)); /* never all 0xff: the kind stands first */
    if (from_first) {
        from->len = 0;
        buf_slice(from, buf_view(&first));
        if (compare == KEY_GT) ensure(key_successor(from));
    }
    buf_free(&first);
    buf_free(&second);
    return slice_compare(buf_view(from), buf_view(to)) < 0;
}

bool engine_query_range(const struct table *table, const struct key_condition *condition, struct buf *from,
                        struct buf *to)
{
    ensure(condition->hash_count == 1 && condition->equal_count == 0);
    engine_partition_key(from, table, condition->hash[0]);
    return compare_range(condition->compare, condition->range, from, to);
}

bool engine_index_query_range(const struct table *table, const struct index_definition *index,
                              const struct key_condition *condition, struct buf *from, struct buf *to)
{
    ensure(condition->hash_count == index->hash_count && condition->equal_count <= index->range_count);
    index_partition_key(from, table, index, condition->hash);
    for (uint32_t i = 0; i < condition->equal_count; i++) key_encode(from, condition->equal[i]);
    return compare_range(condition->compare, condition->range, from, to);
}
