/* Opening and closing: the tables are read into the registry, the writer starts, and at the end everything is synced. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

struct table_counts *engine_counts_new(struct engine *engine)
{
    if (engine->all_counts_count == engine->all_counts_capacity) {
        engine->all_counts_capacity = engine->all_counts_capacity ? engine->all_counts_capacity * 2 : 16;
        engine->all_counts =
            must_realloc(engine->all_counts, engine->all_counts_capacity * sizeof *engine->all_counts);
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

static bool load_counts(struct load *load, uint32_t number, struct table_counts *counts)
{
    struct buf key = {0}, bytes = {0};
    int64_t items = 0, size = 0;
    key_of_kind(&key, KEY_COUNTS, number);
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
        fine = load_counts(load, number, counts);
        registry_put(&load->engine->registry, table_new(&definition, number, counts));
    }
    arena_free(&arena);
    return fine;
}

static bool load_next_number(struct load *load)
{
    struct buf bytes = {0};
    enum store_result result = store_get(load->engine->store, key_next_table, &bytes);
    bool fine = result == STORE_MISSING || (result == STORE_OK && bytes.len == 4);
    load->engine->next_table_number = result == STORE_OK && fine ? bytes_u32(bytes.data) : 1;
    buf_free(&bytes);
    if (!fine) snprintf(load->error, load->error_len, "the store cannot be read: %s", load->engine->store->error);
    return fine;
}

static bool load_all(struct engine *engine, char *error, size_t error_len)
{
    struct load load = {.engine = engine, .error = error, .error_len = error_len};
    const char from[] = {KEY_TABLE}, to[] = {KEY_TABLE + 1};
    if (!load_next_number(&load)) return false;
    enum store_result result =
        store_scan(engine->store, (struct slice){from, 1}, (struct slice){to, 1}, false, load_table, &load);
    if (result != STORE_OK) snprintf(error, error_len, "the store cannot be read: %s", engine->store->error);
    return result == STORE_OK && !load.damaged;
}

static void engine_free(struct engine *engine)
{
    batch_free(&engine->batch);
    registry_free(&engine->registry);
    cache_free(engine->cache);
    for (uint32_t i = 0; i < engine->all_counts_count; i++) free(engine->all_counts[i]);
    free(engine->all_counts);
    store_close(engine->store);
    pthread_mutex_destroy(&engine->queue_lock);
    pthread_mutex_destroy(&engine->batch_lock);
    pthread_mutex_destroy(&engine->random_lock);
    pthread_cond_destroy(&engine->queue_filled);
    pthread_cond_destroy(&engine->commit_done);
    free(engine);
}

struct engine *engine_open(const struct engine_options *options, char *error, size_t error_len)
{
    struct engine *engine = must_zero(1, sizeof *engine);
    engine->store = options->store;
    engine->durable = options->durable;
    engine->inline_writer = options->inline_writer;
    engine->clock = options->clock;
    engine->on_failure = options->on_failure;
    engine->failure_context = options->failure_context;
    engine->cache = cache_new(options->cache_bytes);
    registry_init(&engine->registry);
    pthread_mutex_init(&engine->queue_lock, NULL);
    pthread_mutex_init(&engine->batch_lock, NULL);
    pthread_mutex_init(&engine->random_lock, NULL);
    pthread_cond_init(&engine->queue_filled, NULL);
    pthread_cond_init(&engine->commit_done, NULL);
    if (options->seed) random_seed(&engine->random, options->seed);
    else random_seed_from_system(&engine->random);
    if (!load_all(engine, error, error_len)) {
        engine_free(engine);
        return NULL;
    }
    writer_start(engine);
    return engine;
}

void engine_close(struct engine *engine)
{
    writer_stop(engine);
    if (!atomic_load(&engine->failed) && store_sync(engine->store) != STORE_OK) engine_fail(engine, "closing");
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
