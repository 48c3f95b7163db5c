/* One write of one item, as the writer does it: old image, condition, new image, into the batch. And the changes of tables. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "engine/internal.h"

void engine_write_prepare(struct write *write)
{
    ensure(write->kind == WRITE_PUT);
    struct buf bytes = {0};
    item_encode(&bytes, &write->item);
    write->new_image = arena_copy(write->arena, buf_view(&bytes));
    write->new_size = item_encoded_size(write->new_image);
    buf_free(&bytes);
}

static void refuse_write(struct write *write, struct slice fault)
{
    write->outcome = WRITE_INVALID;
    write->fault = fault;
}

/* UpdateItem is measured against what the request could grow the item to, not only against the item: the service adds a fixed
 * amount for each action and leaves the key out. */
static size_t update_size(const struct write *write, size_t item_size)
{
    if (write->plain_size_check || !write->update) return item_size;
    size_t estimate = item_size - map_size(&write->item) + 3;
    for (uint32_t i = 0; i < write->update->count; i++) {
        enum update_verb verb = write->update->actions[i].verb;
        estimate += verb == UPDATE_SET || verb == UPDATE_ADD ? 19 : 2;
    }
    return estimate > item_size ? estimate : item_size;
}

/* The new item of an update; false when refused. */
static bool make_updated(struct write *write, const struct map *old)
{
    const struct map *base = write->existed ? old : &write->item;
    struct map item = *base;
    bool fine = !write->update || (write->existed
                                       ? update_apply(write->arena, write->update, base, &item, &write->fault)
                                       : update_create(write->arena, write->update, base, &item, &write->fault));
    if (!fine) {
        write->outcome = WRITE_INVALID;
        return false;
    }
    size_t size = map_size(&item);
    if (update_size(write, size) > LIMIT_ITEM_BYTES) {
        refuse_write(write, SLICE("Item size to update has exceeded the maximum allowed size"));
        return false;
    }
    if (write->check_new && !write->check_new(write, &item, &write->fault)) {
        write->outcome = WRITE_INVALID;
        return false;
    }
    struct buf bytes = {0};
    item_encode(&bytes, &item);
    write->new_image = arena_copy(write->arena, buf_view(&bytes));
    write->new_size = size;
    buf_free(&bytes);
    return true;
}

/* Reads and decodes the old image where somebody needs it decoded; false when it cannot be read. */
static bool read_old(struct batch *batch, struct write *write, uint64_t hash, struct map *old)
{
    *old = (struct map){0};
    write->existed = batch_find(batch, write->arena, hash, write->key, &write->old_image);
    write->old_size = write->existed ? item_encoded_size(write->old_image) : 0;
    if (!write->existed) write->old_image = SLICE_NONE;
    if (!write->existed || (!write->condition && write->kind != WRITE_UPDATE)) return true;
    if (item_decode(write->arena, write->old_image, old)) return true;
    snprintf(batch->engine->store->error, sizeof batch->engine->store->error, "a stored item is damaged");
    batch->failed = true;
    return false;
}

void engine_write(struct batch *batch, struct write *write, bool keep)
{
    struct map old;
    uint64_t hash = hash_bytes(write->key);
    write->outcome = WRITE_APPLIED;
    if (atomic_load(&write->table->counts->dropped)) {
        write->outcome = WRITE_NO_TABLE;
        return;
    }
    if (!read_old(batch, write, hash, &old)) return;
    if (write->condition && !condition_holds(write->condition, &old)) {
        write->outcome = WRITE_CONDITION_FAILED;
        return;
    }
    if (write->kind == WRITE_PUT && !write->new_image.data) engine_write_prepare(write);
    if (write->kind == WRITE_UPDATE && !make_updated(write, &old)) return;
    if (!keep || write->kind == WRITE_CHECK) return;
    bool deletes = write->kind == WRITE_DELETE;
    if (deletes && !write->existed) return;
    batch_set(batch, write->table, hash, write->key, deletes ? NULL : &write->new_image, write->old_size,
              write->new_size, write->existed);
}

/* ---- tables ---- */

struct table *engine_table_in_batch(struct batch *batch, struct slice name)
{
    for (uint32_t i = batch->changes_count; i-- > 0;)
        if (slice_equal(batch->changes[i].name, name)) return batch->changes[i].table;
    struct table *table = registry_find(&batch->engine->registry, name);
    if (table) engine_table_release(table); /* only the writer changes the registry, so it stays while we apply */
    return table;
}

static void note_change(struct batch *batch, struct slice name, struct table *table)
{
    if (batch->changes_count == batch->changes_capacity) {
        batch->changes_capacity = batch->changes_capacity ? batch->changes_capacity * 2 : 8;
        batch->changes = must_realloc(batch->changes, batch->changes_capacity * sizeof *batch->changes);
    }
    char *copy = must_alloc(name.len);
    memcpy(copy, name.data, name.len);
    batch->changes[batch->changes_count++] = (struct table_change){{copy, name.len}, table};
}

static void store_definition(struct batch *batch, uint32_t number, const struct table_definition *definition)
{
    struct buf key = {0}, bytes = {0};
    key_of_kind(&key, KEY_TABLE, number);
    table_definition_encode(&bytes, definition);
    store_batch_put(&batch->writes, buf_view(&key), buf_view(&bytes));
    buf_free(&key);
    buf_free(&bytes);
}

static void store_new_table(struct batch *batch, uint32_t number)
{
    struct buf key = {0}, bytes = {0};
    key_of_kind(&key, KEY_COUNTS, number);
    counts_encode(&bytes, 0, 0);
    store_batch_put(&batch->writes, buf_view(&key), buf_view(&bytes));
    bytes.len = 0;
    buf_u32(&bytes, number + 1);
    store_batch_put(&batch->writes, key_next_table, buf_view(&bytes));
    buf_free(&key);
    buf_free(&bytes);
}

enum table_change_result engine_table_create(struct batch *batch, const struct table_definition *definition)
{
    struct engine *engine = batch->engine;
    if (engine_table_in_batch(batch, definition->name)) return TABLE_EXISTS;
    if (registry_count(&engine->registry) + batch->changes_count >= LIMIT_TABLES) return TABLE_TOO_MANY;
    uint32_t number = engine->next_table_number++;
    struct table *table = table_new(definition, number, engine_counts_new(engine));
    store_definition(batch, number, definition);
    store_new_table(batch, number);
    note_change(batch, definition->name, table);
    return TABLE_CHANGED;
}

enum table_change_result engine_table_replace(struct batch *batch, const struct table_definition *definition)
{
    struct table *old = engine_table_in_batch(batch, definition->name);
    if (!old) return TABLE_MISSING;
    store_definition(batch, old->number, definition);
    note_change(batch, definition->name, table_new(definition, old->number, old->counts));
    return TABLE_CHANGED;
}

enum table_change_result engine_table_drop(struct batch *batch, struct slice name)
{
    struct table *table = engine_table_in_batch(batch, name);
    if (!table) return TABLE_MISSING;
    if (table->definition.deletion_protected) return TABLE_PROTECTED;
    struct buf from = {0}, to = {0};
    key_of_kind(&from, KEY_TABLE, table->number);
    store_batch_delete(&batch->writes, buf_view(&from));
    from.data[0] = KEY_COUNTS;
    store_batch_delete(&batch->writes, buf_view(&from));
    from.data[0] = KEY_ITEM;
    key_of_kind(&to, KEY_ITEM, table->number + 1);
    store_batch_delete_range(&batch->writes, buf_view(&from), buf_view(&to));
    buf_free(&from);
    buf_free(&to);
    atomic_store(&table->counts->dropped, true);
    note_change(batch, name, NULL);
    return TABLE_CHANGED;
}
