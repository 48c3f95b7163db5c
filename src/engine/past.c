/* A table as it was at a moment: in a store that holds what the database held then (backup/backup.h makes such stores).
 * Only its definition, its counts and its items are of use; nothing is cached, and nobody writes. */
#include "base/fail.h"
#include "engine/internal.h"

struct past_search {
    struct slice name;
    struct table *found;
};

static bool find_named(void *context, struct slice key, struct slice value)
{
    struct past_search *search = context;
    struct table_definition definition;
    struct arena arena = {0};
    bool is_it = key.len == 5 && table_definition_decode(&arena, value, &definition) &&
                 slice_equal(definition.name, search->name);
    if (is_it) search->found = table_new(&definition, bytes_u32(key.data + 1), NULL);
    arena_free(&arena);
    return !is_it;
}

struct table *engine_past_table(struct store *past, struct slice name)
{
    struct past_search search = {.name = name};
    const char from = KEY_TABLE, to = KEY_TABLE + 1;
    struct buf key = {0}, bytes = {0};
    int64_t items = 0, size = 0;
    store_scan(past, (struct slice){&from, 1}, (struct slice){&to, 1}, false, find_named, &search);
    if (!search.found) return NULL;
    key_of_kind(&key, KEY_COUNTS, search.found->number);
    bool fine = store_get(past, buf_view(&key), &bytes) == STORE_OK &&
                counts_decode(buf_view(&bytes), &items, &size);
    struct table_counts *counts = arena_new(&search.found->arena, struct table_counts);
    atomic_init(&counts->items, items);
    atomic_init(&counts->bytes, size);
    search.found->counts = counts;
    buf_free(&key);
    buf_free(&bytes);
    if (fine) return search.found;
    engine_table_release(search.found);
    return NULL;
}

enum engine_result engine_past_items(struct store *past, const struct table *table, store_visitor visitor,
                                     void *context)
{
    struct buf from = {0}, to = {0};
    engine_scan_range(table, 0, 1, &from, &to);
    enum store_result result = store_scan(past, buf_view(&from), buf_view(&to), false, visitor, context);
    buf_free(&from);
    buf_free(&to);
    return result == STORE_OK ? ENGINE_OK : ENGINE_FAILED;
}

bool engine_sync_in_batch(struct batch *batch)
{
    return batch->engine->durable || store_sync(batch->engine->store) == STORE_OK;
}
