/* Item collections: what all items with one hash key weigh, together with their entries in the table's local
 * indexes. The service bounds them, and tells their size on demand, only where a table has local indexes; no
 * other table keeps account of them. The account is one number a collection, changed in the batch of each
 * write (it equals the sum of what is there; check.c adds it up). */
#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

static uint32_t local_count(const struct table *table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->definition.index_count; i++)
        count += !table->definition.indexes[i].global;
    return count;
}

bool table_has_collections(const struct table *table)
{
    return local_count(table) > 0;
}

struct slice collection_of_key(struct arena *scratch, const struct table *table, struct slice key)
{
    struct slice rest = slice_from(key, ITEM_KEY_HEAD);
    struct value hash;
    ensure(key_decode(scratch, &rest, table->keys.hash_type, &hash));
    char *collection = arena_alloc(scratch, key.len - rest.len);
    memcpy(collection, key.data, key.len - rest.len);
    collection[0] = KEY_COLLECTION;
    return (struct slice){collection, key.len - rest.len};
}

static uint64_t bytes_in_batch(struct batch *batch, struct slice collection)
{
    struct slice value;
    if (!batch_find(batch, &batch->scratch, hash_bytes(collection), collection, &value)) return 0;
    ensure(value.len == 8);
    return bytes_u64(value.data);
}

void collection_grow(struct batch *batch, const struct table *table, struct slice key, int64_t growth)
{
    if (growth == 0) return;
    struct slice collection = collection_of_key(&batch->scratch, table, key);
    int64_t before = (int64_t)bytes_in_batch(batch, collection);
    uint64_t after = before + growth > 0 ? (uint64_t)(before + growth) : 0;
    if (batch->failed) return;
    batch->value.len = 0;
    buf_u64(&batch->value, after);
    struct slice value = buf_view(&batch->value);
    batch_set(batch, hash_bytes(collection), collection, after ? &value : NULL);
}

/* ---- the service's bounds ---- */

/* What an item adds to its collection: itself and its entries in local indexes. */
static uint64_t weight(struct arena *arena, const struct table *table, struct slice image)
{
    struct map item;
    if (!image.len || !item_decode(arena, image, &item)) return 0;
    uint64_t bytes = item_encoded_size(image);
    for (uint32_t i = 0; i < table->definition.index_count; i++) {
        const struct index_definition *index = &table->definition.indexes[i];
        if (index->global || !index_holds(table, index, &item)) continue;
        struct map entry = index_project(arena, table, index, &item);
        bytes += map_size(&entry);
    }
    return bytes;
}

/* An entry is no larger than its item, so most writes are seen to be within the bounds without looking at
 * their entries. */
void collection_check(struct batch *batch, struct write *write)
{
    uint32_t locals = local_count(write->table);
    if (!locals || write->kind == WRITE_DELETE || write->kind == WRITE_CHECK) return;
    uint64_t most = write->new_size * (1 + locals), limit = batch->engine->collection_limit_bytes;
    struct slice collection = collection_of_key(&batch->scratch, write->table, write->key);
    uint64_t now = bytes_in_batch(batch, collection);
    if (batch->failed || (most <= LIMIT_ITEM_BYTES && now + most <= limit)) return;
    uint64_t old = weight(write->arena, write->table, write->old_image);
    uint64_t new = weight(write->arena, write->table, write->new_image);
    if (new > LIMIT_ITEM_BYTES) {
        write->outcome = WRITE_INVALID;
        write->fault = write->kind == WRITE_PUT
                           ? SLICE("Item size has exceeded the maximum allowed size")
                           : SLICE("Item size to update has exceeded the maximum allowed size");
    } else if (new > old && now - old + new > limit) {
        write->outcome = WRITE_COLLECTION_FULL;
    }
}

/* ---- how large it is ---- */

enum engine_result engine_collection_bytes(struct engine *engine, const struct table *table,
                                           const struct value *hash, uint64_t *bytes)
{
    struct buf key = {0};
    struct image image;
    engine_partition_key(&key, table, hash);
    key.data[0] = KEY_COLLECTION;
    enum engine_result result = engine_get(engine, table, buf_view(&key), &image);
    *bytes = result == ENGINE_OK ? bytes_u64(image.bytes.data) : 0;
    buf_free(&key);
    if (result != ENGINE_OK) return result;
    image_release(&image);
    return ENGINE_OK;
}
