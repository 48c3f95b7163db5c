/* One write of one item, as the writer does it: old image, condition, new image, into the batch. And the
 * changes of tables. */
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

/* UpdateItem is measured against what the request could grow the item to, not only against the item: the
 * service adds a fixed amount for each action and leaves the key out. */
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
    bool fine = !write->update ||
                (write->existed ? update_apply(write->arena, write->update, base, &item, &write->fault)
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
    item_encode_sized(&bytes, &item, size);
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

/* Two transactions, or a transaction and a single write, that wait for the same batch overlap in time: on the
 * service the later one is told so. A commit may of course meet itself. */
static bool conflicts(struct batch *batch, const struct write *write, uint64_t hash)
{
    const struct cache_value *own = batch_own(batch, hash, write->key);
    return own && own->by_transaction && own->commit_number != batch->commit_number && write->in_transaction;
}

void engine_write_check(struct batch *batch, struct write *write)
{
    struct map old;
    uint64_t hash = hash_bytes(write->key);
    write->outcome = WRITE_APPLIED;
    if (atomic_load(&write->table->counts->dropped)) {
        write->outcome = WRITE_NO_TABLE;
        return;
    }
    if (conflicts(batch, write, hash)) {
        write->outcome = WRITE_CONFLICT;
        return;
    }
    if (!read_old(batch, write, hash, &old)) return;
    if (write->condition && !condition_holds(write->condition, &old)) {
        write->outcome = WRITE_CONDITION_FAILED;
        return;
    }
    if (write->kind == WRITE_PUT && !write->new_image.data) engine_write_prepare(write);
    if (write->kind == WRITE_UPDATE && !make_updated(write, &old)) return;
    collection_check(batch, write);
    if (write->outcome == WRITE_APPLIED) vectors_check(batch, write);
}

static bool has_followers(const struct table_definition *definition)
{
    return definition->index_count || definition->vector_count || definition->stream != STREAM_OFF ||
           definition->ttl_attribute.len;
}

/* A write is checked against the version of the table that its caller found, but what follows from it goes by
 * the newest: an index may have come to be meanwhile. */
static void follow(struct batch *batch, const struct write *write)
{
    struct table *table = engine_table_in_batch(batch, write->table->definition.name);
    ensure(table && table->number == write->table->number);
    if (!has_followers(&table->definition)) return;
    struct map old, new;
    struct change change = {.table = table, .key = write->key, .by_expiry = write->by_expiry};
    bool deletes = write->kind == WRITE_DELETE;
    if (write->existed) {
        if (!item_decode(&batch->scratch, write->old_image, &old)) batch->failed = true;
        change.old = &old;
        change.old_image = write->old_image;
    }
    if (!deletes) {
        if (!item_decode(&batch->scratch, write->new_image, &new)) batch->failed = true;
        change.new = &new;
        change.new_image = write->new_image;
    }
    if (batch->failed) return;
    index_follow(batch, &change);
    vectors_follow(batch, &change);
    expiry_follow(batch, &change);
    stream_follow(batch, &change);
}

void engine_write_keep(struct batch *batch, struct write *write)
{
    ensure(write->outcome == WRITE_APPLIED);
    bool deletes = write->kind == WRITE_DELETE;
    if (batch->failed || write->kind == WRITE_CHECK || (deletes && !write->existed)) return;
    struct cache_value *value = batch_set(batch, hash_bytes(write->key), write->key,
                                          deletes ? NULL : &write->new_image);
    value->by_transaction = write->in_transaction;
    value->commit_number = batch->commit_number;
    stats_add(&write->table->counts->writes, 1);
    batch_count(batch, write->table, COUNT_OF_TABLE, !deletes - write->existed,
                (int64_t)(deletes ? 0 : write->new_size) - (int64_t)write->old_size);
    follow(batch, write);
    change_note(batch, write->table, write->key);
    observe_note(batch, write);
}

void engine_write(struct batch *batch, struct write *write)
{
    engine_write_check(batch, write);
    if (write->outcome == WRITE_APPLIED) engine_write_keep(batch, write);
}

bool engine_read_in_batch(struct batch *batch, struct arena *arena, struct slice key, struct slice *image)
{
    return batch_find(batch, arena, hash_bytes(key), key, image);
}

/* ---- tables ---- */

struct table *engine_table_in_batch(struct batch *batch, struct slice name)
{
    for (uint32_t i = batch->changes_count; i-- > 0;)
        if (slice_equal(buf_view(&batch->changes[i].name), name)) return batch->changes[i].table;
    struct table *table = registry_find(&batch->engine->registry, name);
    if (table)
        engine_table_release(table); /* only the writer changes the registry, so it stays while we apply */
    return table;
}

static void note_change(struct batch *batch, struct slice name, struct table *table)
{
    if (batch->changes_count == batch->changes_capacity) {
        batch->changes_capacity = batch->changes_capacity ? batch->changes_capacity * 2 : 8;
        batch->changes = must_realloc(batch->changes, batch->changes_capacity * sizeof *batch->changes);
    }
    struct table_change *change = &batch->changes[batch->changes_count++];
    *change = (struct table_change){.table = table};
    buf_slice(&change->name, name);
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

static void store_zero_counts(struct batch *batch, uint32_t number, uint32_t index)
{
    batch->key.len = batch->value.len = 0;
    key_of_kind(&batch->key, KEY_COUNTS, number);
    if (index) buf_u32(&batch->key, index);
    counts_encode(&batch->value, 0, 0);
    store_batch_put(&batch->writes, buf_view(&batch->key), buf_view(&batch->value));
}

static void store_next_number(struct batch *batch, uint32_t number)
{
    batch->value.len = 0;
    buf_u32(&batch->value, number);
    store_batch_put(&batch->writes, key_next_table, buf_view(&batch->value));
}

static uint32_t index_place(const struct table *table, uint32_t number)
{
    for (uint32_t i = 0; i < table->definition.index_count; i++)
        if (table->definition.indexes[i].number == number) return i;
    return UINT32_MAX;
}

static void number_vectors(struct batch *batch, struct table_definition *definition)
{
    struct vector_definition *vectors = arena_array(&batch->scratch, struct vector_definition,
                                                    definition->vector_count);
    for (uint32_t i = 0; i < definition->vector_count; i++) {
        vectors[i] = definition->vectors[i];
        if (!vectors[i].index.number) vectors[i].index.number = ++definition->next_index_number;
    }
    definition->vectors = vectors;
}

/* New indexes get their numbers and counts, lost ones go with all their entries. */
static struct table *settle_indexes(struct batch *batch, struct table_definition *definition, uint32_t number,
                                    struct table_counts *counts, const struct table *old)
{
    struct index_definition *indexes = arena_array(&batch->scratch, struct index_definition,
                                                   definition->index_count);
    for (uint32_t i = 0; i < definition->index_count; i++) {
        indexes[i] = definition->indexes[i];
        if (indexes[i].number) continue;
        indexes[i].number = ++definition->next_index_number;
        if (old && batch_items(batch, old)) indexes[i].status = INDEX_CREATING;
        store_zero_counts(batch, number, indexes[i].number);
    }
    definition->indexes = indexes;
    number_vectors(batch, definition);
    struct table *table = table_new(definition, number, counts);
    for (uint32_t i = 0; i < definition->index_count; i++) {
        uint32_t place = old ? index_place(old, indexes[i].number) : UINT32_MAX;
        table->index_counts[i] = place == UINT32_MAX ? engine_counts_new(batch->engine)
                                                     : old->index_counts[place];
    }
    for (uint32_t i = 0; old && i < old->definition.index_count; i++) {
        if (index_place(table, old->definition.indexes[i].number) != UINT32_MAX) continue;
        batch_drop_counts(batch, old->index_counts[i]);
        index_clear(batch, old, &old->definition.indexes[i]);
    }
    bool is_filled = old && batch_items(batch, old);
    vectors_attach(batch->engine, batch, table, old, is_filled ? VECTORS_BACKFILLING : VECTORS_READY);
    return table;
}

/* A stream begins when it is switched on, and ends when it is switched off or its view changes. */
static void settle_stream(struct batch *batch, struct table_definition *definition, const struct table *old)
{
    bool was = old && old->definition.stream != STREAM_OFF, is = definition->stream != STREAM_OFF;
    bool same = was && is && old->definition.stream == definition->stream;
    if (old) definition->stream_number = old->definition.stream_number;
    if (was && !same) stream_end(batch, old->definition.stream_number);
    if (is && !same) definition->stream_number = stream_begin(batch, definition);
}

/* Everything whose key is the kind, the table's number, and more. */
static void clear_kind(struct batch *batch, char kind, uint32_t number)
{
    batch->key.len = batch->value.len = 0;
    key_of_kind(&batch->key, kind, number);
    key_of_kind(&batch->value, kind, number + 1);
    batch_clear(batch, buf_view(&batch->key), buf_view(&batch->value));
}

static void settle_expiry(struct batch *batch, struct table_definition *definition, const struct table *old)
{
    bool same = old && slice_equal(old->definition.ttl_attribute, definition->ttl_attribute);
    if (!old) definition->ttl_ready = true;
    if (!old || same) return;
    definition->ttl_ready = false;
    clear_kind(batch, KEY_EXPIRY, old->number);
}

enum table_change_result engine_table_create(struct batch *batch, const struct table_definition *definition)
{
    struct engine *engine = batch->engine;
    if (engine_table_in_batch(batch, definition->name)) return TABLE_EXISTS;
    if (registry_count(&engine->registry) + batch->changes_count >= LIMIT_TABLES) return TABLE_TOO_MANY;
    struct table_definition own = *definition;
    uint32_t number = engine->next_table_number++;
    store_next_number(batch, engine->next_table_number);
    settle_stream(batch, &own, NULL);
    settle_expiry(batch, &own, NULL);
    struct table *table = settle_indexes(batch, &own, number, engine_counts_new(engine), NULL);
    store_definition(batch, number, &own);
    store_zero_counts(batch, number, 0);
    note_change(batch, definition->name, table);
    return TABLE_CHANGED;
}

enum table_change_result engine_table_replace(struct batch *batch, const struct table_definition *definition)
{
    struct table *old = engine_table_in_batch(batch, definition->name);
    if (!old) return TABLE_MISSING;
    struct table_definition own = *definition;
    own.next_index_number = old->definition.next_index_number;
    settle_stream(batch, &own, old);
    settle_expiry(batch, &own, old);
    struct table *table = settle_indexes(batch, &own, old->number, old->counts, old);
    store_definition(batch, old->number, &own);
    note_change(batch, definition->name, table);
    return TABLE_CHANGED;
}

enum table_change_result engine_table_drop(struct batch *batch, struct slice name)
{
    static const char kinds[] = {KEY_TABLE, KEY_COUNTS, KEY_ITEM, KEY_INDEX, KEY_COLLECTION, KEY_EXPIRY};
    struct table *table = engine_table_in_batch(batch, name);
    if (!table) return TABLE_MISSING;
    if (table->definition.deletion_protected) return TABLE_PROTECTED;
    for (size_t i = 0; i < sizeof kinds; i++) clear_kind(batch, kinds[i], table->number);
    vectors_drop(batch, table);
    if (table->definition.stream != STREAM_OFF) stream_end(batch, table->definition.stream_number);
    batch_drop_counts(batch, table->counts);
    note_change(batch, name, NULL);
    change_note_table(batch, name);
    return TABLE_CHANGED;
}
