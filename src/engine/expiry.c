/* Items that end by themselves: an index by the second in which they do, and their deletion soon after. */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

#define EXPIRY_BATCH 256 /* deletions in one commit: nobody else waits long */
#define EXPIRY_AGE                                                                                           \
    (5ll * 365 * 24 * 3600) /* what expired longer ago stays: the service takes it for a mistake */
#define EXPIRY_SECOND_MAX 253402300799ull /* the end of the year 9999 */

bool expiry_of(const struct table *table, const struct map *item, uint64_t *second)
{
    if (!item || !table->definition.ttl_attribute.len) return false;
    const struct value *value = map_find(item, table->definition.ttl_attribute);
    if (!value || value->type != VALUE_N) return false;
    struct slice text = value->bytes;
    const char *point = memchr(text.data, '.', text.len);
    if (point) text.len = (size_t)(point - text.data);
    unsigned long long number;
    if (!slice_to_u64(text, EXPIRY_SECOND_MAX, &number)) return false;
    *second = number;
    return true;
}

static void expiry_key(struct buf *out, const struct table *table, uint64_t second, struct slice item_key)
{
    out->len = 0;
    key_of_kind(out, KEY_EXPIRY, table->number);
    buf_u64(out, second);
    buf_slice(out, slice_from(item_key, ITEM_HASH_AT));
}

void expiry_fill(struct batch *batch, const struct table *table, struct slice key, const struct map *item)
{
    uint64_t second;
    struct slice nothing = SLICE("");
    if (!expiry_of(table, item, &second)) return;
    expiry_key(&batch->key, table, second, key);
    batch_set_uncached(batch, buf_view(&batch->key), &nothing);
}

void expiry_follow(struct batch *batch, const struct change *change)
{
    uint64_t before, after;
    bool was = expiry_of(change->table, change->old, &before),
         is = expiry_of(change->table, change->new, &after);
    if (was && (!is || before != after)) {
        expiry_key(&batch->key, change->table, before, change->key);
        batch_set_uncached(batch, buf_view(&batch->key), NULL);
    }
    if (is && (!was || before != after)) expiry_fill(batch, change->table, change->key, change->new);
}

/* ---- deleting what has expired ---- */

/* One commit's worth of expired items of one table. */
struct sweep {
    struct commit commit;
    struct table *table;
    struct arena arena;
    struct slice keys[EXPIRY_BATCH]; /* of expiry entries */
    uint32_t count;
    uint64_t now;
};

static bool gather(void *context, struct slice key, struct slice value)
{
    struct sweep *sweep = context;
    (void)value;
    sweep->keys[sweep->count++] = arena_copy(&sweep->arena, key);
    return sweep->count < EXPIRY_BATCH;
}

/* The item may have changed since: only one that still ends in that second goes. */
static void expire_one(struct sweep *sweep, struct batch *batch, struct slice entry)
{
    struct buf key = {0};
    struct slice image;
    struct map item;
    uint64_t second;
    key_of_kind(&key, KEY_ITEM, sweep->table->number);
    buf_slice(&key, slice_from(entry, EXPIRY_KEY_HEAD));
    bool there = engine_read_in_batch(batch, &sweep->arena, buf_view(&key), &image) &&
                 item_decode(&sweep->arena, image, &item) && expiry_of(sweep->table, &item, &second) &&
                 second == bytes_u64(entry.data + 5);
    if (there && second <= sweep->now) {
        struct write write = {.kind = WRITE_DELETE,
                              .table = sweep->table,
                              .key = arena_copy(&sweep->arena, buf_view(&key)),
                              .arena = &sweep->arena,
                              .by_expiry = true};
        engine_write(batch, &write);
    } else if (!there) {
        batch_set_uncached(batch, entry, NULL);
    }
    buf_free(&key);
}

static void apply_sweep(struct commit *commit, struct batch *batch)
{
    struct sweep *sweep = (struct sweep *)commit;
    struct table *current = engine_table_in_batch(batch, sweep->table->definition.name);
    if (!current || current->number != sweep->table->number ||
        !slice_equal(current->definition.ttl_attribute, sweep->table->definition.ttl_attribute))
        return;
    for (uint32_t i = 0; i < sweep->count; i++) expire_one(sweep, batch, sweep->keys[i]);
}

/* True when there may be more. */
static bool sweep_table(struct engine *engine, struct table *table)
{
    struct sweep *sweep = must_zero(1, sizeof *sweep);
    struct buf from = {0}, to = {0};
    int64_t now = engine_now_ms(engine) / 1000;
    sweep->table = table;
    sweep->now = (uint64_t)now;
    sweep->commit.apply = apply_sweep;
    key_of_kind(&from, KEY_EXPIRY, table->number);
    buf_u64(&from, now > EXPIRY_AGE ? (uint64_t)(now - EXPIRY_AGE) : 0);
    key_of_kind(&to, KEY_EXPIRY, table->number);
    buf_u64(&to, (uint64_t)now + 1);
    bool read = store_scan(engine->store, buf_view(&from), buf_view(&to), false, gather, sweep) == STORE_OK;
    bool more = read && sweep->count == EXPIRY_BATCH;
    if (read && sweep->count) engine_commit(engine, &sweep->commit);
    if (sweep->commit.failed) more = false;
    buf_free(&from);
    buf_free(&to);
    arena_free(&sweep->arena);
    free(sweep);
    return more;
}

bool expiry_keep_house(struct engine *engine)
{
    int64_t now = engine_now_ms(engine);
    bool more = false;
    if (now < engine->ttl_due_ms && now >= engine->ttl_due_ms - engine->ttl_interval_ms) return false;
    uint32_t count;
    struct table **tables = registry_all(&engine->registry, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (tables[i]->definition.ttl_attribute.len && tables[i]->definition.ttl_ready)
            more |= sweep_table(engine, tables[i]);
        engine_table_release(tables[i]);
    }
    free(tables);
    if (!more) engine->ttl_due_ms = now + engine->ttl_interval_ms;
    return more;
}
