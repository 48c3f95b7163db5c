/* Verifying a store from outside: is it what the engine would have written? */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "engine/internal.h"

/* What the items say there should be, per table of the catalog. */
struct expected {
    int64_t items, bytes;
    int64_t entries[TABLE_INDEXES], entry_bytes[TABLE_INDEXES];
    int64_t expiries;
    int64_t found_entries[TABLE_INDEXES], found_expiries;
    int64_t collections, found_collections;
};

struct check {
    struct store *store;
    struct check_report *report;
    struct buf *out;
    struct catalog catalog;
    struct expected *expected;
    struct buf key, bytes, stored; /* for building what should be there */
    struct arena scratch;          /* of one entry or fault */
    struct buf collection;         /* the account of the collection whose items are being read; empty: none */
    uint64_t collection_bytes;     /* so far */
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

/* ---- items, and what follows from each ---- */

bool item_stands_under_own_key(const struct table *table, const struct map *item, struct slice key)
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

/* The index's entry of the item must be there, to the byte; while the index is being created it may be
 * missing. */
static void check_entry(struct check *check, uint32_t place, uint32_t index_place, const struct map *item)
{
    const struct table *table = check->catalog.tables[place];
    const struct index_definition *index = &table->definition.indexes[index_place];
    struct expected *expected = &check->expected[place];
    if (!index_holds(table, index, item)) return;
    check->key.len = check->bytes.len = check->stored.len = 0;
    engine_index_key(&check->key, table, index, item);
    struct map entry = index_project(&check->scratch, table, index, item);
    item_encode(&check->bytes, &entry);
    bool there = store_get(check->store, buf_view(&check->key), &check->stored) == STORE_OK;
    if (!there && index->status == INDEX_CREATING) return;
    if (!there)
        fault(check, "table %.*s: an item has no entry in index %.*s", SLICE_ARG(table->definition.name),
              SLICE_ARG(index->name));
    else if (!slice_equal(buf_view(&check->bytes), buf_view(&check->stored)))
        fault(check, "table %.*s: an entry of index %.*s differs from its item",
              SLICE_ARG(table->definition.name), SLICE_ARG(index->name));
    expected->entries[index_place] += there;
    if (!there) return;
    expected->entry_bytes[index_place] += (int64_t)item_encoded_size(buf_view(&check->stored));
    if (!index->global) check->collection_bytes += item_encoded_size(buf_view(&check->stored));
}

/* All items of a collection were read: its account must be the sum. */
static void end_collection(struct check *check)
{
    if (!check->collection.len) return;
    uint32_t place = catalog_place(&check->catalog, bytes_u32(check->collection.data + 1));
    struct expected *expected = &check->expected[place];
    check->stored.len = 0;
    bool there = store_get(check->store, buf_view(&check->collection), &check->stored) == STORE_OK;
    uint64_t counted = there && check->stored.len == 8 ? bytes_u64(check->stored.data) : 0;
    expected->collections++;
    if (counted != check->collection_bytes)
        fault(check, "table %.*s: an item collection counts %llu bytes, but holds %llu",
              SLICE_ARG(check->catalog.tables[place]->definition.name), (unsigned long long)counted,
              (unsigned long long)check->collection_bytes);
    check->collection.len = 0;
}

/* Items stand in the order of their collections. */
static void enter_collection(struct check *check, const struct table *table, struct slice key,
                             uint64_t item_bytes)
{
    struct slice collection = SLICE_NONE;
    if (table_has_collections(table)) collection = collection_of_key(&check->scratch, table, key);
    if (!slice_equal(collection, buf_view(&check->collection))) {
        end_collection(check);
        buf_slice(&check->collection, collection);
        check->collection_bytes = 0;
    }
    check->collection_bytes += item_bytes;
}

static void check_followers(struct check *check, uint32_t place, const struct map *item, struct slice key)
{
    const struct table *table = check->catalog.tables[place];
    uint64_t second;
    for (uint32_t i = 0; i < table->definition.index_count; i++) check_entry(check, place, i, item);
    if (!expiry_of(table, item, &second)) return;
    check->key.len = check->stored.len = 0;
    key_of_kind(&check->key, KEY_EXPIRY, table->number);
    buf_u64(&check->key, second);
    buf_slice(&check->key, slice_from(key, ITEM_HASH_AT));
    bool there = store_get(check->store, buf_view(&check->key), &check->stored) == STORE_OK;
    check->expected[place].expiries += there;
    if (!there && table->definition.ttl_ready)
        fault(check, "table %.*s: an item's expiry is not noted", SLICE_ARG(table->definition.name));
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
    check->expected[place].items++;
    check->expected[place].bytes += (int64_t)item_encoded_size(value);
    if (!item_decode(&check->scratch, value, &item)) {
        fault(check, "table %.*s: an item is damaged", SLICE_ARG(table->definition.name));
        return true;
    }
    if (!item_stands_under_own_key(table, &item, key))
        fault(check, "table %.*s: an item stands under another key than its own",
              SLICE_ARG(table->definition.name));
    else if (map_size(&item) != item_encoded_size(value))
        fault(check, "table %.*s: an item's stored size is wrong", SLICE_ARG(table->definition.name));
    else {
        enter_collection(check, table, key, item_encoded_size(value));
        check_followers(check, place, &item, key);
    }
    return true;
}

/* ---- entries that no item asks for ---- */

static bool count_entry(void *context, struct slice key, struct slice value)
{
    struct check *check = context;
    (void)value;
    uint32_t number = key.len >= INDEX_KEY_HEAD ? bytes_u32(key.data + 1) : 0;
    uint32_t place = catalog_place(&check->catalog, number), index = 0;
    const struct table *table = place == UINT32_MAX ? NULL : check->catalog.tables[place];
    while (table && index < table->definition.index_count &&
           table->definition.indexes[index].number != bytes_u32(key.data + 5))
        index++;
    if (!table || index == table->definition.index_count)
        fault(check, "an index entry belongs to no index: table number %u", number);
    else
        check->expected[place].found_entries[index]++;
    arena_reset(&check->scratch);
    return true;
}

static bool count_expiry(void *context, struct slice key, struct slice value)
{
    struct check *check = context;
    (void)value;
    uint32_t number = key.len >= EXPIRY_KEY_HEAD ? bytes_u32(key.data + 1) : 0;
    uint32_t place = catalog_place(&check->catalog, number);
    if (place == UINT32_MAX)
        fault(check, "an expiry belongs to table number %u, which does not exist", number);
    else
        check->expected[place].found_expiries++;
    arena_reset(&check->scratch);
    return true;
}

static bool count_collection(void *context, struct slice key, struct slice value)
{
    struct check *check = context;
    (void)value;
    uint32_t number = key.len >= ITEM_KEY_HEAD ? bytes_u32(key.data + 1) : 0;
    uint32_t place = catalog_place(&check->catalog, number);
    if (place == UINT32_MAX)
        fault(check, "an item collection belongs to table number %u, which does not exist", number);
    else
        check->expected[place].found_collections++;
    arena_reset(&check->scratch);
    return true;
}

static void check_count(struct check *check, uint32_t table, uint32_t index, struct slice what, int64_t items,
                        int64_t bytes)
{
    int64_t stored_items = -1, stored_bytes = -1;
    check->key.len = check->stored.len = 0;
    key_of_kind(&check->key, KEY_COUNTS, table);
    if (index) buf_u32(&check->key, index);
    if (store_get(check->store, buf_view(&check->key), &check->stored) != STORE_OK ||
        !counts_decode(buf_view(&check->stored), &stored_items, &stored_bytes))
        fault(check, "%.*s: its counts are missing or damaged", SLICE_ARG(what));
    else if (items != stored_items || bytes != stored_bytes)
        fault(check, "%.*s: it counts %lld items of %lld bytes, but holds %lld of %lld", SLICE_ARG(what),
              (long long)stored_items, (long long)stored_bytes, (long long)items, (long long)bytes);
}

static void check_totals(struct check *check)
{
    for (uint32_t i = 0; i < check->catalog.count; i++) {
        const struct table *table = check->catalog.tables[i];
        const struct expected *expected = &check->expected[i];
        struct slice name = table->definition.name;
        arena_reset(&check->scratch);
        check_count(check, table->number, 0, arena_printf(&check->scratch, "table %.*s", SLICE_ARG(name)),
                    expected->items, expected->bytes);
        for (uint32_t j = 0; j < table->definition.index_count; j++) {
            const struct index_definition *index = &table->definition.indexes[j];
            struct slice what = arena_printf(&check->scratch, "table %.*s, index %.*s", SLICE_ARG(name),
                                             SLICE_ARG(index->name));
            check_count(check, table->number, index->number, what, expected->entries[j],
                        expected->entry_bytes[j]);
            if (expected->found_entries[j] != expected->entries[j])
                fault(check, "%.*s: %lld entries, but %lld items have one", SLICE_ARG(what),
                      (long long)expected->found_entries[j], (long long)expected->entries[j]);
        }
        if (expected->found_collections != expected->collections)
            fault(check, "table %.*s: %lld item collections are counted, but %lld have items",
                  SLICE_ARG(name), (long long)expected->found_collections, (long long)expected->collections);
        if (expected->found_expiries != expected->expiries)
            fault(check, "table %.*s: %lld expiries are noted, but %lld items have one", SLICE_ARG(name),
                  (long long)expected->found_expiries, (long long)expected->expiries);
    }
}

static bool scan_kind(struct check *check, char kind, store_visitor visitor)
{
    const char from = kind, to = (char)(kind + 1);
    return store_scan(check->store, (struct slice){&from, 1}, (struct slice){&to, 1}, false, visitor,
                      check) == STORE_OK;
}

bool engine_check(struct store *store, struct check_report *report, struct buf *out)
{
    struct check check = {.store = store, .report = report, .out = out};
    *report = (struct check_report){0};
    bool read = catalog_load(&check.catalog, store, catalog_fault, &check);
    if (read) {
        report->tables = check.catalog.count;
        check.expected = must_zero(check.catalog.count, sizeof *check.expected);
        read = scan_kind(&check, KEY_ITEM, check_item);
        end_collection(&check);
        read = read && scan_kind(&check, KEY_INDEX, count_entry) &&
               scan_kind(&check, KEY_EXPIRY, count_expiry) &&
               scan_kind(&check, KEY_COLLECTION, count_collection);
    }
    if (read) check_totals(&check);
    if (read) read = check_streams(store, &check.catalog, &report->records, catalog_fault, &check);
    catalog_free(&check.catalog);
    free(check.expected);
    buf_free(&check.key);
    buf_free(&check.bytes);
    buf_free(&check.stored);
    buf_free(&check.collection);
    arena_free(&check.scratch);
    return read;
}
