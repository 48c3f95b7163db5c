/* The layout of stored keys, and the ranges of them that queries and scans read. */
#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

const struct slice key_next_table = SLICE("mnext-table");

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

/* Kind, table, hash and hash key: what all items of one hash key share. */
static void partition_key(struct buf *out, const struct table *table, const struct value *hash)
{
    key_of_kind(out, KEY_ITEM, table->number);
    size_t at = out->len;
    buf_u32(out, 0);
    key_encode(out, hash);
    struct slice encoded = {out->data + at + 4, out->len - at - 4};
    uint32_t spread = (uint32_t)(hash_bytes(encoded) >> 32);
    for (int i = 0; i < 4; i++) out->data[at + (size_t)i] = (char)(spread >> (24 - 8 * i));
}

void engine_item_key(struct buf *out, const struct table *table, const struct value *hash, const struct value *range)
{
    ensure((range != NULL) == (table->keys.range.len > 0));
    partition_key(out, table, hash);
    if (range) key_encode(out, range);
}

void engine_scan_range(const struct table *table, uint32_t segment, uint32_t segments, struct buf *from, struct buf *to)
{
    ensure(segments > 0 && segment < segments);
    uint64_t first = ((uint64_t)segment << 32) / segments, end = ((uint64_t)(segment + 1) << 32) / segments;
    key_of_kind(from, KEY_ITEM, table->number);
    buf_u32(from, (uint32_t)first);
    if (end >> 32) {
        key_of_kind(to, KEY_ITEM, table->number + 1);
    } else {
        key_of_kind(to, KEY_ITEM, table->number);
        buf_u32(to, (uint32_t)end);
    }
}

/* The end of a range that holds every key starting with these bytes. */
static void end_behind(struct buf *to, const struct buf *prefix)
{
    buf_slice(to, buf_view(prefix));
    ensure(key_successor(to)); /* the kind byte is not 0xff */
}

bool engine_query_range(const struct table *table, const struct key_condition *condition, struct buf *from,
                        struct buf *to)
{
    partition_key(from, table, condition->hash);
    buf_slice(to, buf_view(from));
    const struct value *first = condition->range[0], *second = condition->range[1];
    struct buf exact = {0};
    if (condition->compare == KEY_NONE) {
        ensure(key_successor(to));
        return true;
    }
    buf_slice(&exact, buf_view(from));
    if (condition->compare == KEY_BEGINS_WITH) key_encode_prefix(&exact, first);
    else key_encode(&exact, first);
    switch (condition->compare) {
    case KEY_EQ:
    case KEY_BEGINS_WITH:
        from->len = to->len = 0;
        buf_slice(from, buf_view(&exact));
        end_behind(to, &exact);
        break;
    case KEY_LT:
        to->len = 0;
        buf_slice(to, buf_view(&exact));
        break;
    case KEY_LE:
        to->len = 0;
        end_behind(to, &exact);
        break;
    case KEY_GT:
        ensure(key_successor(to));
        from->len = 0;
        end_behind(from, &exact);
        break;
    case KEY_GE:
        ensure(key_successor(to));
        from->len = 0;
        buf_slice(from, buf_view(&exact));
        break;
    case KEY_BETWEEN:
        from->len = 0;
        buf_slice(from, buf_view(&exact));
        exact.len = to->len;
        key_encode(&exact, second);
        to->len = 0;
        end_behind(to, &exact);
        break;
    case KEY_NONE: break;
    }
    buf_free(&exact);
    return slice_compare(buf_view(from), buf_view(to)) < 0;
}
