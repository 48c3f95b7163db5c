/* Verifying a store from outside: is it what the engine would have written? */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

struct check {
    struct store *store;
    struct check_report *report;
    struct buf *out;
    struct catalog catalog;
    struct table_counts *seen; /* what the items add up to, per table of the catalog */
    struct arena scratch;      /* of one item or fault */
};

static void fault(struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void fault(struct check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice text = arena_vprintf(&check->scratch, format, args);
    va_end(args);
    buf_slice(check->out, text);
    buf_byte(check->out, '\n');
    check->report->faults++;
}

static void catalog_fault(void *context, const char *sentence)
{
    fault(context, "%s", sentence);
}

/* True when the item's own key attributes lead to the key under which it stands. */
static bool stands_under_own_key(const struct table *table, const struct map *item, struct slice key)
{
    const struct value *hash = map_find(item, table->keys.hash);
    const struct value *range = table->keys.range.len ? map_find(item, table->keys.range) : NULL;
    if (!hash || hash->type != table->keys.hash_type) return false;
    if (table->keys.range.len && (!range || range->type != table->keys.range_type)) return false;
    struct buf own = {0};
    engine_item_key(&own, table, hash, range);
    bool same = slice_equal(buf_view(&own), key);
    buf_free(&own);
    return same;
}

static bool check_item(void *context, struct slice key, struct slice value)
{
    struct check *check = context;
    struct map item;
    arena_reset(&check->scratch);
    check->report->items++;
    uint32_t number = key.len >= ITEM_KEY_HEAD ? bytes_u32(key.data + 1) : 0;
    uint32_t place = catalog_place(&check->catalog, number);
    if (place == UINT32_MAX) {
        fault(check, "an item belongs to table number %u, which does not exist", number);
        return true;
    }
    const struct table *table = check->catalog.tables[place];
    atomic_fetch_add(&check->seen[place].items, 1);
    atomic_fetch_add(&check->seen[place].bytes, (int64_t)item_encoded_size(value));
    if (!item_decode(&check->scratch, value, &item))
        fault(check, "table %.*s: an item is damaged", SLICE_ARG(table->definition.name));
    else if (!stands_under_own_key(table, &item, key))
        fault(check, "table %.*s: an item stands under another key than its own", SLICE_ARG(table->definition.name));
    else if (map_size(&item) != item_encoded_size(value))
        fault(check, "table %.*s: an item's stored size is wrong", SLICE_ARG(table->definition.name));
    return true;
}

static void check_counts(struct check *check)
{
    for (uint32_t i = 0; i < check->catalog.count; i++) {
        const struct table *table = check->catalog.tables[i];
        struct buf key = {0}, bytes = {0};
        int64_t items = -1, size = -1, seen_items = check->seen[i].items, seen_bytes = check->seen[i].bytes;
        key_of_kind(&key, KEY_COUNTS, table->number);
        if (store_get(check->store, buf_view(&key), &bytes) != STORE_OK ||
            !counts_decode(buf_view(&bytes), &items, &size))
            fault(check, "table %.*s: its counts are missing or damaged", SLICE_ARG(table->definition.name));
        else if (items != seen_items || size != seen_bytes)
            fault(check, "table %.*s: it counts %lld items of %lld bytes, but holds %lld of %lld",
                  SLICE_ARG(table->definition.name), (long long)items, (long long)size, (long long)seen_items,
                  (long long)seen_bytes);
        buf_free(&key);
        buf_free(&bytes);
    }
}

bool engine_check(struct store *store, struct check_report *report, struct buf *out)
{
    struct check check = {.store = store, .report = report, .out = out};
    const char from[] = {KEY_ITEM}, to[] = {KEY_ITEM + 1};
    *report = (struct check_report){0};
    bool read = catalog_load(&check.catalog, store, catalog_fault, &check);
    if (read) {
        report->tables = check.catalog.count;
        check.seen = must_zero(check.catalog.count, sizeof *check.seen);
        read = store_scan(store, (struct slice){from, 1}, (struct slice){to, 1}, false, check_item, &check) == STORE_OK;
    }
    if (read) check_counts(&check);
    catalog_free(&check.catalog);
    free(check.seen);
    arena_free(&check.scratch);
    return read;
}
