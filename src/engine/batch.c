/* What one commit of the writer gathers: new entries in an overlay, changes of counts, tables and streams.
 * Nothing of it can be seen by readers before batch_commit has it in the store (E2). An entry written many
 * times in one batch is stored once. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

#define OVERLAY_MIN_SLOTS 256

void batch_begin(struct batch *batch, struct engine *engine)
{
    batch->engine = engine;
    if (!batch->overlay) {
        batch->overlay_slots = OVERLAY_MIN_SLOTS;
        batch->overlay = must_zero(batch->overlay_slots, sizeof *batch->overlay);
    }
    ensure(batch->overlay_count == 0 && batch->changes_count == 0 && batch->streams_count == 0);
    store_batch_clear(&batch->writes);
    batch->counts_count = 0;
    batch->bytes = 0;
    batch->failed = false;
    batch->first_sequence = engine->next_sequence;
}

/* ---- the overlay ---- */

/* The slot that holds the key, or the free one where it belongs. */
static struct cache_value **overlay_slot(struct cache_value **slots, uint32_t count, uint64_t hash,
                                         struct slice key)
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

const struct cache_value *batch_own(struct batch *batch, uint64_t hash, struct slice key)
{
    return *overlay_slot(batch->overlay, batch->overlay_slots, hash, key);
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
    const struct cache_value *own = batch_own(batch, hash, key);
    if (own) return !own->deleted && copy_out(arena, cache_value_bytes(own), out);
    struct cache_value *value;
    uint64_t version;
    enum cache_result known = cache_find(engine->cache, hash, key, &value, &version);
    stats_add(known == CACHE_UNKNOWN ? &engine->stats.cache_misses : &engine->stats.cache_hits, 1);
    if (known == CACHE_UNKNOWN) return read_store(batch, arena, key, out);
    if (known == CACHE_MISSING) return false;
    copy_out(arena, cache_value_bytes(value), out);
    cache_value_release(value);
    return true;
}

struct cache_value *batch_set(struct batch *batch, uint64_t hash, struct slice key, const struct slice *bytes)
{
    if (batch->overlay_count * 2 >= batch->overlay_slots) overlay_grow(batch);
    struct cache_value *value = cache_value_new(hash, key, bytes ? *bytes : SLICE_NONE);
    value->deleted = bytes == NULL;
    struct cache_value **slot = overlay_slot(batch->overlay, batch->overlay_slots, hash, key);
    if (*slot)
        cache_value_release(*slot);
    else
        batch->overlay_count++;
    *slot = value;
    batch->bytes += key.len + value->value_len;
    return value;
}

void batch_set_uncached(struct batch *batch, struct slice key, const struct slice *bytes)
{
    batch_set(batch, hash_bytes(key), key, bytes)->uncached = true;
}

void batch_clear(struct batch *batch, struct slice from, struct slice to)
{
    store_batch_delete_range(&batch->writes, from, to);
    for (uint32_t i = 0; i < batch->overlay_slots && batch->overlay_count; i++) {
        struct cache_value *value = batch->overlay[i];
        if (value && slice_compare(cache_value_key(value), from) >= 0 &&
            slice_compare(cache_value_key(value), to) < 0)
            value->deleted = true;
    }
}

/* ---- counts ---- */

void batch_count(struct batch *batch, const struct table *table, uint32_t index_place, int64_t items,
                 int64_t bytes)
{
    bool of_table = index_place == COUNT_OF_TABLE;
    struct table_counts *counts = of_table ? table->counts : table->index_counts[index_place];
    struct count_change *change = batch->counts, *end = change ? change + batch->counts_count : NULL;
    while (change < end && change->counts != counts) change++;
    if (change == end) {
        if (batch->counts_count == batch->counts_capacity) {
            batch->counts_capacity = batch->counts_capacity ? batch->counts_capacity * 2 : 8;
            batch->counts = must_realloc(batch->counts, batch->counts_capacity * sizeof *batch->counts);
        }
        change = &batch->counts[batch->counts_count++];
        *change = (struct count_change){.counts = counts,
                                        .table_counts = table->counts,
                                        .table = table->number,
                                        .index = of_table ? 0
                                                          : table->definition.indexes[index_place].number};
    }
    change->items += items;
    change->bytes += bytes;
}

int64_t batch_items(const struct batch *batch, const struct table *table)
{
    int64_t items = atomic_load(&table->counts->items);
    for (uint32_t i = 0; i < batch->counts_count; i++)
        if (batch->counts[i].counts == table->counts) items += batch->counts[i].items;
    return items;
}

/* ---- committing ---- */

static int by_key(const void *a, const void *b)
{
    return slice_compare(cache_value_key(*(const struct cache_value *const *)a),
                         cache_value_key(*(const struct cache_value *const *)b));
}

/* The overlay as store entries, behind the ranges that were cleared. In the order of their keys: what is put
 * beside its neighbour is found a place at once by the store, which else searches from the top. */
static void collect_entries(struct batch *batch)
{
    uint32_t count = 0;
    if (batch->sorted_slots < batch->overlay_count) {
        batch->sorted_slots = batch->overlay_slots;
        free(batch->sorted);
        batch->sorted = must_zero(batch->sorted_slots, sizeof *batch->sorted);
    }
    for (uint32_t i = 0; i < batch->overlay_slots && count < batch->overlay_count; i++)
        if (batch->overlay[i]) batch->sorted[count++] = batch->overlay[i];
    if (count > 1) qsort(batch->sorted, count, sizeof *batch->sorted, by_key);
    for (uint32_t i = 0; i < count; i++) {
        const struct cache_value *value = batch->sorted[i];
        if (value->deleted)
            store_batch_delete(&batch->writes, cache_value_key(value));
        else
            store_batch_put(&batch->writes, cache_value_key(value), cache_value_bytes(value));
    }
}

static void collect_counts(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->counts_count; i++) {
        const struct count_change *change = &batch->counts[i];
        if (atomic_load(&change->table_counts->dropped) || atomic_load(&change->counts->dropped)) continue;
        batch->key.len = batch->value.len = 0;
        key_of_kind(&batch->key, KEY_COUNTS, change->table);
        if (change->index) buf_u32(&batch->key, change->index);
        counts_encode(&batch->value, atomic_load(&change->counts->items) + change->items,
                      atomic_load(&change->counts->bytes) + change->bytes);
        store_batch_put(&batch->writes, buf_view(&batch->key), buf_view(&batch->value));
    }
}

static void collect_sequence(struct batch *batch)
{
    if (batch->engine->next_sequence == batch->first_sequence) return;
    batch->value.len = 0;
    buf_u64(&batch->value, batch->engine->next_sequence);
    store_batch_put(&batch->writes, key_next_sequence, buf_view(&batch->value));
}

static void announce(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->overlay_slots && batch->overlay_count; i++)
        if (batch->overlay[i] && !batch->overlay[i]->uncached)
            cache_announce(batch->engine->cache, batch->overlay[i]);
}

static void publish_streams(struct batch *batch);

static void publish(struct batch *batch)
{
    struct engine *engine = batch->engine;
    for (uint32_t i = 0; i < batch->overlay_slots && batch->overlay_count; i++) {
        if (!batch->overlay[i]) continue;
        if (batch->overlay[i]->uncached)
            cache_value_release(batch->overlay[i]);
        else
            cache_publish(engine->cache, batch->overlay[i]);
        batch->overlay[i] = NULL;
        batch->overlay_count--;
    }
    for (uint32_t i = 0; i < batch->changes_count; i++) {
        struct table_change *change = &batch->changes[i];
        if (change->table)
            registry_put(&engine->registry, change->table);
        else
            registry_remove(&engine->registry, buf_view(&change->name));
        buf_free(&change->name);
    }
    batch->changes_count = 0;
    for (uint32_t i = 0; i < batch->counts_count; i++) {
        struct count_change *change = &batch->counts[i];
        atomic_fetch_add(&change->counts->items, change->items);
        atomic_fetch_add(&change->counts->bytes, change->bytes);
    }
    publish_streams(batch);
    change_tell(engine, false);
}

/* Puts the stream in the place of its number, or takes that away; the writer alone changes the list. */
static void publish_stream(struct engine *engine, const struct stream_change *change)
{
    uint32_t place = 0;
    while (place < engine->streams_count && engine->streams[place]->number < change->number) place++;
    bool known = place < engine->streams_count && engine->streams[place]->number == change->number;
    struct stream **streams = engine->streams;
    if (known) engine_stream_release(streams[place]);
    if (known && !change->stream) {
        engine->streams_count--;
        memmove(streams + place, streams + place + 1, (engine->streams_count - place) * sizeof *streams);
    } else if (known) {
        streams[place] = change->stream;
    } else if (change->stream) {
        if (engine->streams_count == engine->streams_capacity) {
            engine->streams_capacity = engine->streams_capacity ? engine->streams_capacity * 2 : 16;
            streams = engine->streams = must_realloc(streams, engine->streams_capacity * sizeof *streams);
        }
        memmove(streams + place + 1, streams + place, (engine->streams_count - place) * sizeof *streams);
        streams[place] = change->stream;
        engine->streams_count++;
    }
}

static void publish_streams(struct batch *batch)
{
    struct engine *engine = batch->engine;
    if (batch->streams_count) {
        pthread_rwlock_wrlock(&engine->streams_lock);
        for (uint32_t i = 0; i < batch->streams_count; i++) publish_stream(engine, &batch->streams[i]);
        pthread_rwlock_unlock(&engine->streams_lock);
        batch->streams_count = 0;
    }
    if (engine->next_sequence == batch->first_sequence) return;
    atomic_store(&engine->published_sequence, engine->next_sequence);
    pthread_mutex_lock(&engine->watchers_lock);
    for (struct engine_watcher *watcher = engine->watchers; watcher; watcher = watcher->next)
        watcher->notify(watcher, engine->next_sequence);
    pthread_mutex_unlock(&engine->watchers_lock);
}

static void drop_everything(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->overlay_slots && batch->overlay_count; i++) {
        if (!batch->overlay[i]) continue;
        cache_value_release(batch->overlay[i]);
        batch->overlay[i] = NULL;
        batch->overlay_count--;
    }
    for (uint32_t i = 0; i < batch->changes_count; i++) {
        if (batch->changes[i].table) engine_table_release(batch->changes[i].table);
        buf_free(&batch->changes[i].name);
    }
    for (uint32_t i = 0; i < batch->streams_count; i++)
        if (batch->streams[i].stream) engine_stream_release(batch->streams[i].stream);
    batch->changes_count = batch->streams_count = 0;
}

bool batch_commit(struct batch *batch)
{
    struct engine *engine = batch->engine;
    if (batch->failed) {
        engine_fail(engine, "reading");
        drop_everything(batch);
        return false;
    }
    collect_entries(batch);
    collect_counts(batch);
    collect_sequence(batch);
    if (batch->writes.count) {
        int64_t began = monotonic_us();
        announce(batch);
        if (store_write(engine->store, &batch->writes, engine->durable) != STORE_OK) {
            engine_fail(engine, "writing");
            drop_everything(batch);
            return false;
        }
        histogram_add(&engine->stats.commit_us, (uint64_t)(monotonic_us() - began));
    }
    publish(batch);
    return true;
}

void batch_free(struct batch *batch)
{
    if (batch->overlay) drop_everything(batch);
    free(batch->overlay);
    free(batch->sorted);
    free(batch->counts);
    free(batch->changes);
    free(batch->streams);
    buf_free(&batch->key);
    buf_free(&batch->value);
    buf_free(&batch->old_key);
    buf_free(&batch->old_value);
    store_batch_free(&batch->writes);
    arena_free(&batch->scratch);
    *batch = (struct batch){0};
}
