/* Secondary indexes: an entry for each item that has the index's keys, written in the batch of the item's own
 * change. */
#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

const struct index_definition *table_index_find(const struct table *table, struct slice name)
{
    for (uint32_t i = 0; i < table->definition.index_count; i++)
        if (slice_equal(table->definition.indexes[i].name, name)) return &table->definition.indexes[i];
    return NULL;
}

/* An item may be older than the index, and its attributes then no keys at all: of another type, empty, or
 * together too long. */
static bool has_keys(const struct table *table, const struct map *item, const struct slice *names,
                     uint32_t count, size_t limit_bytes)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        enum value_type type;
        const struct value *value = map_find(item, names[i]);
        if (!value || !table_attribute_type(&table->definition, names[i], &type) || value->type != type)
            return false;
        if (type != VALUE_N && value->bytes.len == 0) return false;
        bytes += value_size(value);
    }
    return bytes <= limit_bytes;
}

bool index_holds(const struct table *table, const struct index_definition *index, const struct map *item)
{
    return has_keys(table, item, index->hash, index->hash_count, LIMIT_HASH_KEY_BYTES) &&
           has_keys(table, item, index->range, index->range_count, LIMIT_RANGE_KEY_BYTES);
}

static bool is_among(const struct slice *names, uint32_t count, struct slice name)
{
    for (uint32_t i = 0; i < count; i++)
        if (slice_equal(names[i], name)) return true;
    return false;
}

bool index_projects(const struct table *table, const struct index_definition *index, struct slice name)
{
    if (index->projection == PROJECT_ALL) return true;
    if (slice_equal(name, table->keys.hash) ||
        (table->keys.range.len && slice_equal(name, table->keys.range)))
        return true;
    if (is_among(index->hash, index->hash_count, name) || is_among(index->range, index->range_count, name))
        return true;
    return index->projection == PROJECT_INCLUDE && is_among(index->non_key, index->non_key_count, name);
}

struct map index_project(struct arena *arena, const struct table *table, const struct index_definition *index,
                         const struct map *item)
{
    if (index->projection == PROJECT_ALL) return *item;
    struct map entry = {arena_array(arena, struct attribute, item->count), 0};
    for (uint32_t i = 0; i < item->count; i++)
        if (index_projects(table, index, item->attributes[i].name))
            entry.attributes[entry.count++] = item->attributes[i];
    return entry;
}

/* The key and bytes of an item's entry; false when it has none. */
static bool entry_of(struct batch *batch, const struct table *table, const struct index_definition *index,
                     const struct map *item, struct slice image, struct buf *key, struct buf *bytes)
{
    key->len = bytes->len = 0;
    if (!item || !index_holds(table, index, item)) return false;
    engine_index_key(key, table, index, item);
    if (index->projection == PROJECT_ALL) {
        buf_slice(bytes, image);
    } else {
        struct map entry = index_project(&batch->scratch, table, index, item);
        item_encode(bytes, &entry);
    }
    return true;
}

static int64_t entry_size(const struct buf *bytes)
{
    return (int64_t)item_encoded_size(buf_view(bytes));
}

/* While an index is being created an older item may not have its entry yet. */
static bool entry_is_there(struct batch *batch, const struct index_definition *index, const struct buf *key)
{
    struct slice ignored, bytes = buf_view(key);
    return index->status == INDEX_ACTIVE ||
           batch_find(batch, &batch->scratch, hash_bytes(bytes), bytes, &ignored);
}

/* How much larger the index becomes. */
static int64_t follow_one(struct batch *batch, const struct change *change, uint32_t place)
{
    const struct table *table = change->table;
    const struct index_definition *index = &table->definition.indexes[place];
    bool was = entry_of(batch, table, index, change->old, change->old_image, &batch->old_key,
                        &batch->old_value);
    bool is = entry_of(batch, table, index, change->new, change->new_image, &batch->key, &batch->value);
    bool same_key = was && is && slice_equal(buf_view(&batch->old_key), buf_view(&batch->key));
    if (was) was = entry_is_there(batch, index, &batch->old_key);
    if (was && same_key && slice_equal(buf_view(&batch->old_value), buf_view(&batch->value))) return 0;
    if (was && !same_key) batch_set_uncached(batch, buf_view(&batch->old_key), NULL);
    if (is) {
        struct slice bytes = buf_view(&batch->value);
        batch_set_uncached(batch, buf_view(&batch->key), &bytes);
    }
    int64_t growth = (is ? entry_size(&batch->value) : 0) - (was ? entry_size(&batch->old_value) : 0);
    if (was || is) batch_count(batch, table, place, is - was, growth);
    return growth;
}

void index_follow(struct batch *batch, const struct change *change)
{
    const struct table *table = change->table;
    int64_t growth = 0; /* of the item's collection */
    for (uint32_t i = 0; i < table->definition.index_count; i++) {
        int64_t grown = follow_one(batch, change, i);
        if (!table->definition.indexes[i].global) growth += grown;
    }
    if (!table_has_collections(table)) return;
    if (change->new) growth += (int64_t)item_encoded_size(change->new_image);
    if (change->old) growth -= (int64_t)item_encoded_size(change->old_image);
    collection_grow(batch, table, change->key, growth);
}

void index_fill(struct batch *batch, const struct table *table, uint32_t place, struct slice key,
                const struct map *item, struct slice image)
{
    const struct index_definition *index = &table->definition.indexes[place];
    (void)key;
    if (!entry_of(batch, table, index, item, image, &batch->key, &batch->value)) return;
    if (entry_is_there(batch, index, &batch->key)) return;
    struct slice bytes = buf_view(&batch->value);
    batch_set_uncached(batch, buf_view(&batch->key), &bytes);
    batch_count(batch, table, place, 1, entry_size(&batch->value));
}

void index_clear(struct batch *batch, const struct table *table, const struct index_definition *index)
{
    struct buf from = {0}, to = {0};
    key_of_kind(&from, KEY_COUNTS, table->number);
    buf_u32(&from, index->number);
    store_batch_delete(&batch->writes, buf_view(&from));
    from.data[0] = KEY_INDEX;
    buf_slice(&to, buf_view(&from));
    ensure(key_successor(&to));
    batch_clear(batch, buf_view(&from), buf_view(&to));
    buf_free(&from);
    buf_free(&to);
}
