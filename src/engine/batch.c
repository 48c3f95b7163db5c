/* What one commit of the writer gathers: new entries in an overlay, changes of counts, tables and streams.
 * Nothing of it can be seen by readers before batch_commit has it in the store (E2). An entry written many
 * times in one batch is stored once. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/log.h"
#include "engine/internal.h"

#define OVERLAY_MIN_SLOTS 256

static void overlay_resize(struct batch *batch, uint32_t slots);

void batch_begin(struct batch *batch, struct engine *engine)
{
    batch->engine = engine;
    if (!batch->overlay) overlay_resize(batch, OVERLAY_MIN_SLOTS);
    ensure(batch->entry_count == 0 && batch->changes_count == 0 && batch->streams_count == 0);
    store_batch_clear(&batch->writes);
    batch->counts_count = 0;
    batch->bytes = 0;
    batch->failed = false;
    batch->first_sequence = engine->next_sequence;
    batch->first_table_number = engine->next_table_number;
    batch->first_minute = engine->marked_minute;
    batch->first_trimmed = atomic_load(&engine->trimmed_sequence);
    batch->dropped_count = 0;
    batch->observed.len = 0;
}

/* ---- the overlay ---- */

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t overlay_slot(const struct batch *batch, uint64_t hash, struct slice key)
{
    uint32_t mask = batch->overlay_slots - 1, at = (uint32_t)hash & mask;
    for (; batch->overlay[at]; at = (at + 1) & mask) {
        const struct cache_value *value = batch->entries[batch->overlay[at] - 1].value;
        if (value->hash == hash && slice_equal(cache_value_key(value), key)) break;
    }
    return at;
}

static void overlay_resize(struct batch *batch, uint32_t slots)
{
    free(batch->overlay);
    batch->overlay = must_zero(slots, sizeof *batch->overlay);
    batch->overlay_slots = slots;
    batch->entries = must_realloc(batch->entries, slots / 2 * sizeof *batch->entries);
    for (uint32_t i = 0; i < batch->entry_count; i++) {
        struct overlay_entry *entry = &batch->entries[i];
        entry->slot = overlay_slot(batch, entry->value->hash, cache_value_key(entry->value));
        batch->overlay[entry->slot] = i + 1;
    }
}

/* The values are their owners' from here on. A batch of few entries touches few slots, however large the table has
 * grown. */
static void overlay_empty(struct batch *batch)
{
    for (uint32_t i = 0; i < batch->entry_count; i++) batch->overlay[batch->entries[i].slot] = 0;
    batch->entry_count = 0;
}

const struct cache_value *batch_own(struct batch *batch, uint64_t hash, struct slice key)
{
    uint32_t place = batch->overlay[overlay_slot(batch, hash, key)];
    return place ? batch->entries[place - 1].value : NULL;
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
    if (batch->entry_count * 2 >= batch->overlay_slots) overlay_resize(batch, batch->overlay_slots * 2);
    struct cache_value *value = cache_value_new(hash, key, bytes ? *bytes : SLICE_NONE);
    value->deleted = bytes == NULL;
    uint32_t slot = overlay_slot(batch, hash, key);
    if (batch->overlay[slot]) {
        struct overlay_entry *entry = &batch->entries[batch->overlay[slot] - 1];
        cache_value_release(entry->value);
        entry->value = value;
    } else {
        batch->entries[batch->entry_count++] = (struct overlay_entry){value, slot};
        batch->overlay[slot] = batch->entry_count;
    }
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
    for (uint32_t i = 0; i < batch->entry_count; i++) {
        struct cache_value *value = batch->entries[i].value;
        if (slice_compare(cache_value_key(value), from) >= 0 && slice_compare(cache_value_key(value), to) < 0)
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

void batch_drop_counts(struct batch *batch, struct table_counts *counts)
{
    if (batch->dropped_count == batch->dropped_capacity) {
        batch->dropped_capacity = batch->dropped_capacity ? batch->dropped_capacity * 2 : 8;
        batch->dropped = must_realloc(batch->dropped, batch->dropped_capacity * sizeof *batch->dropped);
    }
    atomic_store(&counts->dropped, true);
    batch->dropped[batch->dropped_count++] = counts;
}

/* ---- committing ---- */

static int by_key(const void *a, const void *b)
{
    return slice_compare(cache_value_key(((const struct overlay_entry *)a)->value),
                         cache_value_key(((const struct overlay_entry *)b)->value));
}

/* The overlay as store entries, behind the ranges that were cleared. In the order of their keys: what is put
 * beside its neighbour is found a place at once by the store, which else searches from the top. Nothing is looked up in
 * the overlay from here on. */
static void collect_entries(struct batch *batch)
{
    if (batch->entry_count > 1) qsort(batch->entries, batch->entry_count, sizeof *batch->entries, by_key);
    for (uint32_t i = 0; i < batch->entry_count; i++) {
        const struct cache_value *value = batch->entries[i].value;
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
        if (!change->items && !change->bytes) continue; /* the store has them as they are */
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
    for (uint32_t i = 0; i < batch->entry_count; i++)
        if (!batch->entries[i].value->uncached)
            cache_announce(batch->engine->cache, batch->entries[i].value);
}

static void publish_streams(struct batch *batch);

static void publish(struct batch *batch)
{
    struct engine *engine = batch->engine;
    bool has_changed_tables = batch->changes_count > 0;
    vectors_publish(batch);
    for (uint32_t i = 0; i < batch->entry_count; i++) {
        struct cache_value *value = batch->entries[i].value;
        if (value->uncached)
            cache_value_release(value);
        else
            cache_publish(engine->cache, value);
    }
    overlay_empty(batch);
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
    observe_tell(batch);
    if (has_changed_tables) keeper_poke(engine); /* only now does it find them: an index may have to be filled */
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
    vectors_forget(batch);
    for (uint32_t i = 0; i < batch->entry_count; i++) cache_value_release(batch->entries[i].value);
    overlay_empty(batch);
    for (uint32_t i = 0; i < batch->changes_count; i++) {
        if (batch->changes[i].table) engine_table_release(batch->changes[i].table);
        buf_free(&batch->changes[i].name);
    }
    for (uint32_t i = 0; i < batch->streams_count; i++)
        if (batch->streams[i].stream) engine_stream_release(batch->streams[i].stream);
    batch->changes_count = batch->streams_count = 0;
}

/* As if the batch had never begun: the store has no room for it. */
static void roll_back(struct batch *batch)
{
    struct engine *engine = batch->engine;
    drop_everything(batch);
    for (uint32_t i = 0; i < batch->dropped_count; i++) atomic_store(&batch->dropped[i]->dropped, false);
    engine->next_sequence = batch->first_sequence;
    engine->next_table_number = batch->first_table_number;
    engine->marked_minute = batch->first_minute;
    atomic_store(&engine->trimmed_sequence, batch->first_trimmed);
    cache_clear(engine->cache); /* it has images that were announced, and will never be published */
    if (!engine->has_no_room) log_line("%s; writes are refused until there is room", engine->store->refusal);
    engine->has_no_room = true;
}

static void has_room(struct engine *engine)
{
    if (engine->has_no_room) log_line("there is room again; writes are accepted");
    engine->has_no_room = false;
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
        enum store_result result = store_write(engine->store, &batch->writes, engine->durable);
        if (result == STORE_FULL) {
            roll_back(batch);
            return false;
        }
        if (result != STORE_OK) {
            engine_fail(engine, "writing");
            drop_everything(batch);
            return false;
        }
        has_room(engine);
        histogram_add(&engine->stats.commit_us, (uint64_t)(monotonic_us() - began));
    }
    publish(batch);
    return true;
}

void batch_free(struct batch *batch)
{
    if (batch->overlay) drop_everything(batch);
    free(batch->overlay);
    free(batch->entries);
    free(batch->counts);
    free(batch->changes);
    free(batch->streams);
    free(batch->dropped);
    buf_free(&batch->key);
    buf_free(&batch->value);
    buf_free(&batch->old_key);
    buf_free(&batch->old_value);
    buf_free(&batch->observed);
    store_batch_free(&batch->writes);
    arena_free(&batch->scratch);
    *batch = (struct batch){0};
}
