/* Entries for items that were there before: of a new index, or of a table's expiry. The table is walked in
 * small steps, each a commit that reads the items anew, so writers wait for a step at most, and a write
 * between two steps is never undone. What a restart interrupts begins again: a step may be repeated. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

#define BACKFILL_ITEMS 256
#define BACKFILL_BYTES (1024 * 1024)

struct backfill_step {
    struct commit commit;
    struct table *table;
    struct arena arena;
    struct slice keys[BACKFILL_ITEMS];
    uint32_t count;
    uint64_t bytes;
    bool last;
    bool superseded; /* the table has changed: begin again with its new definition */
};

static bool needs_work(const struct table_definition *definition)
{
    if (definition->ttl_attribute.len && !definition->ttl_ready) return true;
    for (uint32_t i = 0; i < definition->index_count; i++)
        if (definition->indexes[i].status == INDEX_CREATING) return true;
    return false;
}

static bool gather(void *context, struct slice key, struct slice value)
{
    struct backfill_step *step = context;
    if (step->count == BACKFILL_ITEMS || step->bytes >= BACKFILL_BYTES) {
        step->last = false;
        return false;
    }
    step->keys[step->count++] = arena_copy(&step->arena, key);
    step->bytes += value.len;
    return true;
}

static void fill_item(struct backfill_step *step, struct batch *batch, struct slice key)
{
    const struct table *table = step->table;
    struct slice image;
    struct map item;
    if (!engine_read_in_batch(batch, &step->arena, key, &image)) return;
    if (!item_decode(&step->arena, image, &item)) {
        batch->failed = true;
        return;
    }
    if (table->definition.ttl_attribute.len && !table->definition.ttl_ready)
        expiry_fill(batch, table, key, &item);
    for (uint32_t i = 0; i < table->definition.index_count; i++)
        if (table->definition.indexes[i].status == INDEX_CREATING)
            index_fill(batch, table, i, key, &item, image);
}

static void finish(struct backfill_step *step, struct batch *batch, struct table *table)
{
    struct table_definition definition = table->definition;
    definition.indexes = arena_array(&step->arena, struct index_definition, definition.index_count);
    for (uint32_t i = 0; i < definition.index_count; i++) {
        definition.indexes[i] = table->definition.indexes[i];
        definition.indexes[i].status = INDEX_ACTIVE;
    }
    definition.ttl_ready = definition.ttl_attribute.len > 0;
    ensure(engine_table_replace(batch, &definition) == TABLE_CHANGED);
}

/* The step goes by one version of the table; any other in its place ends the walk. */
static void apply_step(struct commit *commit, struct batch *batch)
{
    struct backfill_step *step = (struct backfill_step *)commit;
    struct table *current = engine_table_in_batch(batch, step->table->definition.name);
    step->superseded = current != step->table;
    if (step->superseded) return;
    for (uint32_t i = 0; i < step->count && !batch->failed; i++) fill_item(step, batch, step->keys[i]);
    if (step->last && !batch->failed) finish(step, batch, current);
}

/* Walks the whole table, unless it gets another definition, the engine closes or fails: then the walk ends
 * early, and what is still needed begins anew in the next round. */
static void backfill_table(struct engine *engine, struct table *table)
{
    struct backfill_step *step = must_zero(1, sizeof *step);
    struct buf from = {0}, to = {0};
    engine_scan_range(table, 0, 1, &from, &to);
    step->table = table;
    step->commit.apply = apply_step;
    do {
        arena_reset(&step->arena);
        step->count = 0;
        step->bytes = 0;
        step->last = true;
        if (store_scan(engine->store, buf_view(&from), buf_view(&to), false, gather, step) != STORE_OK) break;
        engine_commit(engine, &step->commit);
        if (step->count) {
            from.len = 0;
            buf_slice(&from, step->keys[step->count - 1]);
            buf_byte(&from, 0);
        }
    } while (!step->last && !step->superseded && !step->commit.failed && !atomic_load(&engine->closing));
    buf_free(&from);
    buf_free(&to);
    arena_free(&step->arena);
    free(step);
}

bool backfill_keep_house(struct engine *engine)
{
    uint32_t count;
    bool worked = false;
    struct table **tables = registry_all(&engine->registry, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (needs_work(&tables[i]->definition)) {
            backfill_table(engine, tables[i]);
            worked = true;
        }
        engine_table_release(tables[i]);
    }
    free(tables);
    return worked && !atomic_load(&engine->failed);
}
