/* Opening and closing: the tables are read into the registry, the writer starts, and at the end everything is
 * synced. */
#include <stdio.h>
#include <stdlib.h>

#include "base/cond.h"
#include "base/fail.h"
#include "engine/internal.h"

#define DAY_MS        (24ll * 3600 * 1000)
#define STREAM_SHARDS 4

struct table_counts *engine_counts_new(struct engine *engine)
{
    if (engine->all_counts_count == engine->all_counts_capacity) {
        engine->all_counts_capacity = engine->all_counts_capacity ? engine->all_counts_capacity * 2 : 16;
        engine->all_counts = must_realloc(engine->all_counts,
                                          engine->all_counts_capacity * sizeof *engine->all_counts);
    }
    struct table_counts *counts = must_zero(1, sizeof *counts);
    return engine->all_counts[engine->all_counts_count++] = counts;
}

struct load {
    struct engine *engine;
    char *error;
    size_t error_len;
    bool damaged;
};

static bool load_fault(struct load *load, const char *what, uint32_t number)
{
    snprintf(load->error, load->error_len, "the stored %s of table number %u is damaged", what, number);
    load->damaged = true;
    return false;
}

static bool load_counts(struct load *load, uint32_t number, uint32_t index, struct table_counts *counts)
{
    struct buf key = {0}, bytes = {0};
    int64_t items = 0, size = 0;
    key_of_kind(&key, KEY_COUNTS, number);
    if (index) buf_u32(&key, index);
    bool fine = store_get(load->engine->store, buf_view(&key), &bytes) == STORE_OK &&
                counts_decode(buf_view(&bytes), &items, &size);
    atomic_init(&counts->items, items);
    atomic_init(&counts->bytes, size);
    buf_free(&key);
    buf_free(&bytes);
    return fine || load_fault(load, "count", number);
}

static bool load_table(void *context, struct slice key, struct slice value)
{
    struct load *load = context;
    struct arena arena = {0};
    struct table_definition definition;
    if (key.len != 5) return load_fault(load, "definition", 0);
    uint32_t number = bytes_u32(key.data + 1);
    bool fine = table_definition_decode(&arena, value, &definition) || load_fault(load, "definition", number);
    if (fine) {
        struct table_counts *counts = engine_counts_new(load->engine);
        struct table *table = table_new(&definition, number, counts);
        fine = load_counts(load, number, 0, counts);
        for (uint32_t i = 0; i < definition.index_count && fine; i++) {
            table->index_counts[i] = engine_counts_new(load->engine);
            fine = load_counts(load, number, definition.indexes[i].number, table->index_counts[i]);
        }
        vectors_attach(load->engine, NULL, table, NULL, VECTORS_LOADING);
        registry_put(&load->engine->registry, table);
    }
    arena_free(&arena);
    return fine;
}

static bool load_setting(struct load *load, struct slice key, size_t len, struct buf *bytes)
{
    enum store_result result = store_get(load->engine->store, key, bytes);
    bool fine = result == STORE_MISSING || (result == STORE_OK && bytes->len == len);
    if (!fine)
        snprintf(load->error, load->error_len, "the store cannot be read: %s", load->engine->store->error);
    return fine;
}

static bool load_settings(struct load *load)
{
    struct engine *engine = load->engine;
    struct buf table = {0}, sequence = {0};
    bool fine = load_setting(load, key_next_table, 4, &table) &&
                load_setting(load, key_next_sequence, 8, &sequence);
    engine->next_table_number = fine && table.len ? bytes_u32(table.data) : 1;
    engine->next_sequence = fine && sequence.len ? bytes_u64(sequence.data) : 1;
    atomic_init(&engine->published_sequence, engine->next_sequence);
    atomic_init(&engine->trimmed_sequence, engine->next_sequence);
    buf_free(&table);
    buf_free(&sequence);
    return fine;
}

static bool load_stream(void *context, struct slice key, struct slice value)
{
    struct load *load = context;
    struct engine *engine = load->engine;
    struct stream *stream = stream_decode(value);
    (void)key;
    if (!stream) return load_fault(load, "stream", 0);
    if (engine->streams_count == engine->streams_capacity) {
        engine->streams_capacity = engine->streams_capacity ? engine->streams_capacity * 2 : 16;
        engine->streams = must_realloc(engine->streams, engine->streams_capacity * sizeof *engine->streams);
    }
    engine->streams[engine->streams_count++] = stream; /* the store's order is that of the numbers */
    return true;
}

/* Where older marks were taken away, the records below the oldest one that is left went with them. */
static bool load_oldest_minute(void *context, struct slice key, struct slice value)
{
    struct load *load = context;
    (void)key;
    if (value.len == 8) atomic_store(&load->engine->trimmed_sequence, bytes_u64(value.data));
    return false;
}

static bool load_newest_minute(void *context, struct slice key, struct slice value)
{
    struct load *load = context;
    (void)value;
    if (key.len == 9) load->engine->marked_minute = bytes_u64(key.data + 1);
    return false;
}

static bool load_kind(struct load *load, char kind, bool backwards, store_visitor visitor)
{
    const char from = kind, to = (char)(kind + 1);
    enum store_result result = store_scan(load->engine->store, (struct slice){&from, 1},
                                          (struct slice){&to, 1}, backwards, visitor, load);
    if (result != STORE_OK)
        snprintf(load->error, load->error_len, "the store cannot be read: %s", load->engine->store->error);
    return result == STORE_OK && !load->damaged;
}

bool engine_load(struct engine *engine, char *error, size_t error_len)
{
    struct load load = {.engine = engine, .error = error, .error_len = error_len};
    return load_settings(&load) && load_kind(&load, KEY_TABLE, false, load_table) &&
           load_kind(&load, KEY_STREAM, false, load_stream) &&
           load_kind(&load, KEY_MINUTE, false, load_oldest_minute) &&
           load_kind(&load, KEY_MINUTE, true, load_newest_minute);
}

static void engine_free(struct engine *engine)
{
    batch_free(&engine->batch);
    registry_free(&engine->registry);
    cache_free(engine->cache);
    vectors_free(engine);
    for (uint32_t i = 0; i < engine->all_counts_count; i++) free(engine->all_counts[i]);
    free(engine->all_counts);
    for (uint32_t i = 0; i < engine->streams_count; i++) engine_stream_release(engine->streams[i]);
    free(engine->streams);
    store_close(engine->store);
    pthread_mutex_destroy(&engine->queue_lock);
    pthread_mutex_destroy(&engine->batch_lock);
    pthread_mutex_destroy(&engine->random_lock);
    pthread_cond_destroy(&engine->queue_filled);
    pthread_cond_destroy(&engine->commit_done);
    pthread_mutex_destroy(&engine->keeper_lock);
    pthread_mutex_destroy(&engine->poke_lock);
    pthread_cond_destroy(&engine->keeper_wake);
    pthread_rwlock_destroy(&engine->streams_lock);
    pthread_mutex_destroy(&engine->watchers_lock);
    free(engine);
}

static void init_locks(struct engine *engine)
{
    pthread_mutex_init(&engine->queue_lock, NULL);
    pthread_mutex_init(&engine->batch_lock, NULL);
    pthread_mutex_init(&engine->random_lock, NULL);
    pthread_mutex_init(&engine->keeper_lock, NULL);
    pthread_mutex_init(&engine->poke_lock, NULL);
    pthread_mutex_init(&engine->watchers_lock, NULL);
    pthread_rwlock_init(&engine->streams_lock, NULL);
    pthread_cond_init(&engine->queue_filled, NULL);
    pthread_cond_init(&engine->commit_done, NULL);
    cond_init(&engine->keeper_wake);
}

struct engine *engine_open(const struct engine_options *options, char *error, size_t error_len)
{
    struct engine *engine = must_zero(1, sizeof *engine);
    engine->store = options->store;
    engine->durable = options->durable;
    engine->read_only = options->read_only;
    engine->inline_writer = options->inline_writer;
    engine->clock = options->clock;
    engine->on_failure = options->on_failure;
    engine->failure_context = options->failure_context;
    engine->cache = cache_new(options->cache_bytes);
    registry_init(&engine->registry);
    init_locks(engine);
    vectors_init(engine, options);
    engine->ttl_interval_ms = options->ttl_interval_ms ? options->ttl_interval_ms : 1000;
    engine->stream_retention_ms = options->stream_retention_ms ? options->stream_retention_ms : DAY_MS;
    engine->records_no_change = options->records_no_change;
    engine->stream_shards = options->stream_shards ? options->stream_shards : STREAM_SHARDS;
    engine->collection_limit_bytes = options->collection_limit_bytes ? options->collection_limit_bytes
                                                                     : LIMIT_COLLECTION_BYTES;
    if (options->seed)
        random_seed(&engine->random, options->seed);
    else
        random_seed_from_system(&engine->random);
    if (!engine_load(engine, error, error_len)) {
        engine_free(engine);
        return NULL;
    }
    writer_start(engine);
    if (!engine->read_only) keeper_start(engine);
    return engine;
}

void engine_close(struct engine *engine)
{
    keeper_stop(engine);
    writer_stop(engine);
    if (!engine->read_only && !atomic_load(&engine->failed) && store_sync(engine->store) != STORE_OK)
        engine_fail(engine, "closing");
    engine_free(engine);
}

int64_t engine_now_ms(struct engine *engine)
{
    return clock_now_ms(engine->clock);
}

struct slice engine_new_id(struct engine *engine, struct arena *arena)
{
    pthread_mutex_lock(&engine->random_lock);
    uint64_t high = random_next(&engine->random), low = random_next(&engine->random);
    pthread_mutex_unlock(&engine->random_lock);
    /* version 4, variant 1: a random UUID */
    high = (high & ~0xf000ull) | 0x4000;
    low = (low & ~(3ull << 62)) | 1ull << 63;
    return arena_printf(arena, "%08llx-%04llx-%04llx-%04llx-%012llx", (unsigned long long)(high >> 32),
                        (unsigned long long)(high >> 16 & 0xffff), (unsigned long long)(high & 0xffff),
                        (unsigned long long)(low >> 48), (unsigned long long)(low & 0xffffffffffff));
}

const struct engine_stats *engine_stats(struct engine *engine)
{
    return &engine->stats;
}

void engine_store_stats(struct engine *engine, struct store_stats *stats)
{
    store_stats(engine->store, stats);
}

uint64_t engine_cache_bytes(struct engine *engine)
{
    return cache_bytes(engine->cache);
}
