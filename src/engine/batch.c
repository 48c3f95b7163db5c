/* What one commit of the writer gathers: new images in an overlay, changes of counts and of tables. Nothing of it can be seen
 * by readers before batch_commit has it in the store (E2). An item written many times in one batch is stored once. */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

#define OVERLAY_MIN_SLOTS 256

void batch_begin(struct batch *batch, struct engine *engine)
{
    batch->engine = engine;
    if (!batch->overlay) {
        batch->overlay_slots = OVERLAY_MIN_SLOTS;
        batch->overlay = must_zero(batch->overlay_slots, sizeof *batch->overlay);
    }
    ensure(batch->overlay_count == 0 && batch->changes_count == 0);
    store_batch_clear(&batch->writes);
    batch->counts_count = 0;
    batch->bytes = 0;
    batch->failed = false;
}

/* The slot that holds the key, or the free one where it belongs. */
static struct cache_value **overlay_slot(struct cache_value **slots, uint32_t count, uint64_t hash, struct slice key)
{
    uint32_t at = (uint32_t)hash & (count - 1);
    while (slots[at] && !(slots[at]->hash == hash && slice_equal(cache_value_key(slots[at]), key)))
        at = (at + 1) & (count - 1);
    return &slots[at];
}

static void overlay_grow(struct batch *batch)
{
    uint32_t slots = batch->overlay_slots * 2;
    struct cache_value **larger = must_zero(slots, sizeof *larger);
    for (uint32_t i = 0; i < batch->overlay_slots; i++) {
        struct cache_value *value = batch->overlay[i];
        if (value) *overlay_slot(larger, slots, value->hash, cache_value_key(value)) = value;
    }
    free(batch->overlay);
    batch->overlay = larger;
    batch->overlay_slots = slots;
}

static bool copy_out(struct arena *arena, struct slice bytes, struct slice *out)
{
    *out = arena_copy(arena, bytes);
    return true;
}

static bool read_store(struct batch *batch, struct arena *arena, struct slice key, struct slice *out)
{
    struct buf bytes = {0};
    enum store_result result = store_get(batch->engine->store, key, &bytes);
    if (result == STORE_OK) copy_out(arena, buf_view(&bytes), out);
    if (result == STORE_FAILED) batch->failed = true;
    buf_free(&bytes);
    return result == STORE_OK;
}

bool batch_find(struct batch *batch, struct arena *arena, uint64_t hash, struct slice key, struct slice *out)
{
    struct engine *engine = batch->engine;
    struct cache_value *value = *overlay_slot(batch->overlay, batch->overlay_slots, hash, key);
    if (value) return !value->deleted && copy_out(arena, cache_value_bytes(value), out);
    uint64_t version;
    value = cache_find(engine->cache, hash, key, &version);
    if (!value) {
        stats_add(&engine->stats.cache_misses, 1);
        return read_store(batch, arena, key, out);
    }
    stats_add(&engine->stats.cache_hits, 1);
    copy_out(arena, cache_value_bytes(value), out);
    cache_value_release(value);
    return true;
}

static struct count_change *count_change(struct batch *batch, const struct table *table)
{
    for (uint32_t i = 0; i < batch->counts_count; i++)
        if (batch->counts[i].counts == table->counts) return &batch->counts[i];
    if (batch->counts_count == batch->counts_capacity) {
        batch->counts_capacity = batch->counts_capacity ? batch->counts_capacity * 2 : 8;
        batch->counts = must_realloc(batch->counts, batch->counts_capacity * sizeof *batch->counts);
    }
    struct count_change *change = &batch->counts[batch->counts_count++];
    *change = (struct count_change){.counts = table->counts, .number = table->number};
    return change;
}

void batch_set(struct batch *batch, const struct table *table, uint64_t hash, struct slice key, const struct slice *image,
               uint64_t old_size, uint64_t new_size, bool existed)
{
    if (batch->overlay_count * 2 >= batch->overlay_slots) overlay_grow(batch);
    struct cache_value *value = cache_value_new(hash, key, image ? *image : SLICE_NONE);
    value->deleted = image == NULL;
    value->counts = table->counts;
    struct cache_value **slot = overlay_slot(batch->overlay, batch->overlay_slots, hash, key);
    if (*slot) cache_value_release(*slot);
    else batch->overlay_count++;
    *slot = value;
    batch->bytes += key.len + value->value_len;
    struct count_change *change = count_change(batch, table);
    change->items += (image != NULL) - existed;
    change->bytes += (int64_t)new_size - (int64_t)old_size;
}

/* The overlay's images as store entries. Those of a table that the same batch dropped would bring it back to life. */
static void collect_images(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->overlay_slots && batch->overlay_count; i++) {
        const struct cache_value *value = batch->overlay[i];
        if (!value || atomic_load(&value->counts->dropped)) continue;
        if (value->deleted) store_batch_delete(&batch->writes, cache_value_key(value));
        else store_batch_put(&batch->writes, cache_value_key(value), cache_value_bytes(value));
    }
}

static void collect_counts(struct batch *batch)
{
    struct buf key = {0}, bytes = {0};
    for (uint32_t i = 0; i < batch->counts_count; i++) {
        const struct count_change *change = &batch->counts[i];
        if (atomic_load(&change->counts->dropped)) continue;
        key.len = bytes.len = 0;
        key_of_kind(&key, KEY_COUNTS, change->number);
        counts_encode(&bytes, atomic_load(&change->counts->items) + change->items,
                      atomic_load(&change->counts->bytes) + change->bytes);
        store_batch_put(&batch->writes, buf_view(&key), buf_view(&bytes));
    }
    buf_free(&key);
    buf_free(&bytes);
}

static void publish(struct batch *batch)
{
    struct engine *engine = batch->engine;
    for (uint32_t i = 0; i < batch->changes_count; i++) {
        struct table_change *change = &batch->changes[i];
        if (change->table) registry_put(&engine->registry, change->table);
        else registry_remove(&engine->registry, change->name);
        free((char *)change->name.data);
    }
    batch->changes_count = 0;
    for (uint32_t i = 0; i < batch->counts_count; i++) {
        struct count_change *change = &batch->counts[i];
        atomic_fetch_add(&change->counts->items, change->items);
        atomic_fetch_add(&change->counts->bytes, change->bytes);
    }
    for (uint32_t i = 0; i < batch->overlay_slots && batch->overlay_count; i++) {
        if (!batch->overlay[i]) continue;
        cache_publish(engine->cache, batch->overlay[i]);
        batch->overlay[i] = NULL;
        batch->overlay_count--;
    }
}

static void drop_overlay(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->overlay_slots && batch->overlay_count; i++) {
        if (!batch->overlay[i]) continue;
        cache_value_release(batch->overlay[i]);
        batch->overlay[i] = NULL;
        batch->overlay_count--;
    }
    for (uint32_t i = 0; i < batch->changes_count; i++) {
        if (batch->changes[i].table) engine_table_release(batch->changes[i].table);
        free((char *)batch->changes[i].name.data);
    }
    batch->changes_count = 0;
}

bool batch_commit(struct batch *batch)
{
    struct engine *engine = batch->engine;
    if (batch->failed) {
        engine_fail(engine, "reading");
        drop_overlay(batch);
        return false;
    }
    collect_images(batch);
    collect_counts(batch);
    if (batch->writes.count) {
        int64_t began = monotonic_us();
        if (store_write(engine->store, &batch->writes, engine->durable) != STORE_OK) {
            engine_fail(engine, "writing");
            drop_overlay(batch);
            return false;
        }
        histogram_add(&engine->stats.commit_us, (uint64_t)(monotonic_us() - began));
    }
    publish(batch);
    return true;
}

void batch_free(struct batch *batch)
{
    drop_overlay(batch);
    free(batch->overlay);
    free(batch->counts);
    free(batch->changes);
    store_batch_free(&batch->writes);
    arena_free(&batch->scratch);
    *batch = (struct batch){0};
}
