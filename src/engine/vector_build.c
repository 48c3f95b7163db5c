/* Fills a vector index: a walk over the items of its table, in steps of a few milliseconds, on the house-keeper's
 * thread. The writer is not asked, and goes on meanwhile.
 *
 * Why a step cannot undo a change: what it read may be older than what a batch has changed since. Such a batch has
 * put the newer vector (the step leaves alone what is there), or removed the older one (removals that happen
 * between reading and putting are noted, and such items are left out). A batch that is durable but has not changed
 * the index yet will do so after the step, and has the last word. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/vectors.h"

#define BUILD_ITEMS 1024
#define BUILD_BYTES (4u * 1024 * 1024)
#define PUT_ITEMS   64 /* under the lock: less than a millisecond */

struct gathered {
    struct slice key, partition, note;
    float *vector;
    uint64_t stamp;
};

struct build_step {
    const struct table *table;
    const struct vector_definition *definition;
    struct arena arena;   /* of what was gathered */
    struct arena scratch; /* of one item */
    struct buf partition, note, last;
    struct gathered items[BUILD_ITEMS];
    uint32_t count, looked_at;
    uint64_t bytes;
    bool is_last;
};

static bool gather(void *context, struct slice key, struct slice value)
{
    struct build_step *step = context;
    struct map item;
    if (step->looked_at == BUILD_ITEMS || step->bytes >= BUILD_BYTES) {
        step->is_last = false;
        return false;
    }
    step->looked_at++;
    step->bytes += value.len;
    step->last.len = 0;
    buf_slice(&step->last, key);
    arena_reset(&step->scratch);
    const struct vector_definition *definition = step->definition;
    struct gathered *own = &step->items[step->count];
    float *vector = arena_array(&step->arena, float, definition->dimensions);
    if (!item_decode_floats(&step->scratch, value, definition->attribute, definition->dimensions, vector,
                            &item) ||
        !vector_partition_of_item(&step->partition, step->table, definition, &item))
        return true; /* of what is damaged a check of the store tells */
    vector_note_of_item(&step->note, definition, &item);
    *own = (struct gathered){.key = arena_copy(&step->arena, key),
                             .partition = arena_copy(&step->arena, buf_view(&step->partition)),
                             .note = arena_copy(&step->arena, buf_view(&step->note)),
                             .vector = vector,
                             .stamp = hash_bytes(value)};
    step->count++;
    return true;
}

static bool was_removed(const struct vector_index *index, struct slice key)
{
    uint64_t hash = index->removed_count ? hash_bytes(key) : 0;
    for (uint32_t i = 0; i < index->removed_count; i++)
        if (index->removed[i] == hash) return true;
    return false;
}

/* Some at a time: commits and searches go on in between. */
static void put_gathered(struct build_step *step, struct vector_index *index, uint32_t from)
{
    uint32_t end = step->count - from < PUT_ITEMS ? step->count : from + PUT_ITEMS;
    pthread_rwlock_wrlock(&index->lock);
    for (uint32_t i = from; i < end && !atomic_load(&index->dropped); i++) {
        const struct gathered *own = &step->items[i];
        const struct vector_partition *partition = vector_partition_find(index, own->partition);
        if (partition && vector_set_has(partition->set, own->key)) continue;
        if (was_removed(index, own->key)) continue;
        vector_index_put(index, own->partition, own->key, own->vector, own->note, own->stamp);
    }
    pthread_rwlock_unlock(&index->lock);
}

static void give_up(struct engine *engine, const struct table *table, uint32_t place)
{
    log_line(
        "the vector index %.*s of table %.*s does not fit into memory: all vectors together may take %llu MB",
        SLICE_ARG(table->definition.vectors[place].index.name), SLICE_ARG(table->definition.name),
        (unsigned long long)(engine->vectors_limit_bytes >> 20));
    vector_index_clear(table->vectors[place]);
}

bool vector_build_step(struct engine *engine, const struct table *table, uint32_t place)
{
    struct vector_index *index = table->vectors[place];
    enum vector_status status = atomic_load(&index->status);
    if (status == VECTORS_READY || status == VECTORS_FULL || atomic_load(&index->dropped)) return false;
    struct build_step *step = must_zero(1, sizeof *step);
    struct buf from = {0}, to = {0};
    step->table = table;
    step->definition = &table->definition.vectors[place];
    step->is_last = true;
    engine_scan_range(table, 0, 1, &from, &to);
    pthread_rwlock_wrlock(&index->lock);
    index->is_gathering = true;
    index->removed_count = 0;
    pthread_rwlock_unlock(&index->lock);
    bool was_read = store_scan(engine->store, index->cursor.len ? buf_view(&index->cursor) : buf_view(&from),
                               buf_view(&to), false, gather, step) == STORE_OK;
    for (uint32_t i = 0; was_read && i < step->count; i += PUT_ITEMS) put_gathered(step, index, i);
    pthread_rwlock_wrlock(&index->lock);
    index->is_gathering = false;
    bool is_full = vector_memory_is_full(engine);
    if (is_full) give_up(engine, table, place);
    pthread_rwlock_unlock(&index->lock);
    index->cursor.len = 0;
    buf_slice(&index->cursor, buf_view(&step->last));
    buf_byte(&index->cursor, 0);
    if (is_full)
        vector_index_set_status(index, VECTORS_FULL);
    else if (was_read && step->is_last)
        vector_index_set_status(index, VECTORS_READY);
    arena_free(&step->arena);
    arena_free(&step->scratch);
    buf_free(&step->partition);
    buf_free(&step->note);
    buf_free(&step->last);
    free(step);
    buf_free(&from);
    buf_free(&to);
    return was_read;
}

bool vectors_keep_house(struct engine *engine)
{
    uint32_t count;
    bool worked = false;
    struct table **tables = registry_all(&engine->registry, &count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < tables[i]->definition.vector_count; j++)
            worked |= vector_build_step(engine, tables[i], j);
        engine_table_release(tables[i]);
    }
    free(tables);
    return worked;
}
