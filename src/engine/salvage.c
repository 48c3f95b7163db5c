/* From a damaged store to a sound one: what cannot be made anew is copied, what follows from it is made. */
#include <stdlib.h>

#include "base/fail.h"
#include "engine/internal.h"

#define BATCH_BYTES (1024 * 1024) /* written at once */

/* Of a table of the catalog. */
struct made {
    int64_t items, bytes;
    int64_t entries[TABLE_INDEXES], entry_bytes[TABLE_INDEXES];
    uint64_t damaged;
};

struct salvage {
    struct store *from, *to;
    struct salvage_report *report;
    struct buf *out;
    struct catalog catalog;
    struct made *made;
    struct store_batch batch;
    struct buf key, bytes;
    struct arena scratch;  /* of one entry */
    struct buf collection; /* whose items are being read; empty: none */
    uint64_t collection_bytes, strays;
    uint32_t highest;          /* number of a table or stream */
    uint64_t highest_sequence; /* of a record */
    bool failed;               /* the new store */
};

static void put(struct salvage *salvage, struct slice key, struct slice value)
{
    if (salvage->failed) return;
    store_batch_put(&salvage->batch, key, value);
    if (salvage->batch.entries.len < BATCH_BYTES) return;
    salvage->failed = store_write(salvage->to, &salvage->batch, false) != STORE_OK;
    store_batch_clear(&salvage->batch);
}

static void scan_kind(struct salvage *salvage, char kind, store_visitor visitor)
{
    const char from = kind, to = (char)(kind + 1);
    /* A store that is salvaged notes what it cannot read, and goes on. */
    ensure(store_scan(salvage->from, (struct slice){&from, 1}, (struct slice){&to, 1}, false, visitor,
                      salvage) == STORE_OK);
}

/* ---- what is copied ---- */

static bool copy(void *context, struct slice key, struct slice value)
{
    struct salvage *salvage = context;
    put(salvage, key, value);
    return !salvage->failed;
}

static bool copy_numbered(void *context, struct slice key, struct slice value)
{
    struct salvage *salvage = context;
    uint32_t number = key.len >= 5 ? bytes_u32(key.data + 1) : 0;
    if (number > salvage->highest) salvage->highest = number;
    return copy(salvage, key, value);
}

static bool see_record(void *context, struct slice key, struct slice value)
{
    struct salvage *salvage = context;
    uint64_t sequence = key.len == RECORD_KEY ? bytes_u64(key.data + 9) : 0;
    (void)value;
    if (sequence > salvage->highest_sequence) salvage->highest_sequence = sequence;
    return true;
}

static bool copy_record(void *context, struct slice key, struct slice value)
{
    struct salvage *salvage = context;
    salvage->report->records++;
    return copy(salvage, key, value);
}

static void copy_definitions(struct salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->catalog.count; i++) {
        const struct table *table = salvage->catalog.tables[i];
        salvage->key.len = salvage->bytes.len = 0;
        key_of_kind(&salvage->key, KEY_TABLE, table->number);
        if (store_get(salvage->from, buf_view(&salvage->key), &salvage->bytes) == STORE_OK)
            copy_numbered(salvage, buf_view(&salvage->key), buf_view(&salvage->bytes));
    }
}

/* Settings that were lost follow from what is there. */
static void put_settings(struct salvage *salvage)
{
    scan_kind(salvage, KEY_META, copy);
    scan_kind(salvage, KEY_RECORD, see_record);
    salvage->bytes.len = 0;
    if (store_get(salvage->from, key_next_table, &salvage->bytes) != STORE_OK) {
        buf_u32(&salvage->bytes, salvage->highest + 1);
        put(salvage, key_next_table, buf_view(&salvage->bytes));
    }
    salvage->bytes.len = 0;
    if (store_get(salvage->from, key_next_sequence, &salvage->bytes) != STORE_OK) {
        buf_u64(&salvage->bytes, salvage->highest_sequence + 1);
        put(salvage, key_next_sequence, buf_view(&salvage->bytes));
    }
}

/* ---- items, and what follows from each ---- */

static void put_entry(struct salvage *salvage, uint32_t place, uint32_t index_place, const struct map *item)
{
    const struct table *table = salvage->catalog.tables[place];
    const struct index_definition *index = &table->definition.indexes[index_place];
    struct made *made = &salvage->made[place];
    if (!index_holds(table, index, item)) return;
    salvage->key.len = salvage->bytes.len = 0;
    engine_index_key(&salvage->key, table, index, item);
    struct map entry = index_project(&salvage->scratch, table, index, item);
    item_encode(&salvage->bytes, &entry);
    put(salvage, buf_view(&salvage->key), buf_view(&salvage->bytes));
    uint64_t size = item_encoded_size(buf_view(&salvage->bytes));
    made->entries[index_place]++;
    made->entry_bytes[index_place] += (int64_t)size;
    if (!index->global) salvage->collection_bytes += size;
}

static void end_collection(struct salvage *salvage)
{
    if (!salvage->collection.len) return;
    salvage->bytes.len = 0;
    buf_u64(&salvage->bytes, salvage->collection_bytes);
    put(salvage, buf_view(&salvage->collection), buf_view(&salvage->bytes));
    salvage->collection.len = 0;
}

/* Items stand in the order of their collections. */
static void enter_collection(struct salvage *salvage, const struct table *table, struct slice key,
                             uint64_t bytes)
{
    struct slice collection = SLICE_NONE;
    if (table_has_collections(table)) collection = collection_of_key(&salvage->scratch, table, key);
    if (!slice_equal(collection, buf_view(&salvage->collection))) {
        end_collection(salvage);
        buf_slice(&salvage->collection, collection);
        salvage->collection_bytes = 0;
    }
    salvage->collection_bytes += bytes;
}

static void put_expiry(struct salvage *salvage, const struct table *table, const struct map *item,
                       struct slice key)
{
    uint64_t second;
    if (!expiry_of(table, item, &second)) return;
    salvage->key.len = 0;
    key_of_kind(&salvage->key, KEY_EXPIRY, table->number);
    buf_u64(&salvage->key, second);
    buf_slice(&salvage->key, slice_from(key, ITEM_HASH_AT));
    put(salvage, buf_view(&salvage->key), SLICE(""));
}

static bool put_item(void *context, struct slice key, struct slice value)
{
    struct salvage *salvage = context;
    struct map item;
    arena_reset(&salvage->scratch);
    uint32_t number = key.len >= ITEM_KEY_HEAD ? bytes_u32(key.data + 1) : 0;
    uint32_t place = catalog_place(&salvage->catalog, number);
    if (place == UINT32_MAX) {
        salvage->strays++;
        return true;
    }
    const struct table *table = salvage->catalog.tables[place];
    struct made *made = &salvage->made[place];
    if (!item_decode(&salvage->scratch, value, &item) || !item_stands_under_own_key(table, &item, key) ||
        map_size(&item) != item_encoded_size(value)) {
        made->damaged++;
        return true;
    }
    put(salvage, key, value);
    made->items++;
    made->bytes += (int64_t)item_encoded_size(value);
    enter_collection(salvage, table, key, item_encoded_size(value));
    for (uint32_t i = 0; i < table->definition.index_count; i++) put_entry(salvage, place, i, &item);
    put_expiry(salvage, table, &item, key);
    salvage->report->items++;
    return !salvage->failed;
}

static void put_count(struct salvage *salvage, uint32_t table, uint32_t index, int64_t items, int64_t bytes)
{
    salvage->key.len = salvage->bytes.len = 0;
    key_of_kind(&salvage->key, KEY_COUNTS, table);
    if (index) buf_u32(&salvage->key, index);
    counts_encode(&salvage->bytes, items, bytes);
    put(salvage, buf_view(&salvage->key), buf_view(&salvage->bytes));
}

static void put_counts(struct salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->catalog.count; i++) {
        const struct table *table = salvage->catalog.tables[i];
        const struct made *made = &salvage->made[i];
        put_count(salvage, table->number, 0, made->items, made->bytes);
        for (uint32_t j = 0; j < table->definition.index_count; j++)
            put_count(salvage, table->number, table->definition.indexes[j].number, made->entries[j],
                      made->entry_bytes[j]);
    }
}

/* ---- what is told ---- */

struct touch {
    struct slice from, to; /* keys that are asked about */
    bool is_touched;
};

static void touch_gap(void *context, enum store_entry_kind kind, struct slice key, struct slice value)
{
    struct touch *touch = context;
    (void)kind;
    if (slice_compare(key, touch->to) < 0 && slice_compare(touch->from, value) < 0) touch->is_touched = true;
}

/* Whether a gap touches keys of this kind, from the number on and before the next. */
static bool is_touched(const struct store_salvage *found, char kind, uint32_t number, bool of_number)
{
    struct buf from = {0}, to = {0};
    key_of_kind(&from, kind, number);
    key_of_kind(&to, of_number ? kind : (char)(kind + 1), of_number ? number + 1 : 0);
    struct touch touch = {buf_view(&from), buf_view(&to), false};
    store_batch_visit(&found->gaps, touch_gap, &touch);
    buf_free(&from);
    buf_free(&to);
    return touch.is_touched;
}

static void tell_tables(struct salvage *salvage, const struct store_salvage *found)
{
    for (uint32_t i = 0; i < salvage->catalog.count; i++) {
        const struct table *table = salvage->catalog.tables[i];
        const struct made *made = &salvage->made[i];
        struct slice name = table->definition.name;
        if (is_touched(found, KEY_ITEM, table->number, true))
            buf_printf(salvage->out,
                       "table %.*s: some of its keys could not be read; it has %lld items now\n",
                       SLICE_ARG(name), (long long)made->items);
        if (made->damaged)
            buf_printf(salvage->out, "table %.*s: %llu items were damaged, and are left out\n",
                       SLICE_ARG(name), (unsigned long long)made->damaged);
    }
    if (is_touched(found, KEY_TABLE, 0, false))
        buf_printf(salvage->out, "definitions of tables could not be read: such tables are missing\n");
    if (salvage->strays)
        buf_printf(salvage->out,
                   "%llu items belong to tables whose definitions are missing, and are left out\n",
                   (unsigned long long)salvage->strays);
}

static void tell_definition(void *context, const char *sentence)
{
    struct salvage *salvage = context;
    buf_printf(salvage->out, "%s\n", sentence);
}

bool engine_salvage(struct store *from, const struct store_salvage *found, struct store *to,
                    struct salvage_report *report, struct buf *out)
{
    struct salvage salvage = {.from = from, .to = to, .report = report, .out = out};
    *report = (struct salvage_report){0};
    ensure(catalog_load(&salvage.catalog, from, tell_definition, &salvage));
    report->tables = salvage.catalog.count;
    salvage.made = must_zero(salvage.catalog.count, sizeof *salvage.made);
    copy_definitions(&salvage);
    scan_kind(&salvage, KEY_STREAM, copy_numbered);
    put_settings(&salvage);
    scan_kind(&salvage, KEY_ITEM, put_item);
    end_collection(&salvage);
    put_counts(&salvage);
    tell_tables(&salvage, found);
    if (!found->sentences.len && !out->len) {
        scan_kind(&salvage, KEY_RECORD, copy_record);
        scan_kind(&salvage, KEY_MINUTE, copy);
    } else if (salvage.highest_sequence) {
        buf_printf(out, "records of streams are left out, since they may tell of what is missing\n");
    }
    if (!salvage.failed) salvage.failed = store_write(to, &salvage.batch, true) != STORE_OK;
    catalog_free(&salvage.catalog);
    free(salvage.made);
    store_batch_free(&salvage.batch);
    buf_free(&salvage.key);
    buf_free(&salvage.bytes);
    buf_free(&salvage.collection);
    arena_free(&salvage.scratch);
    return !salvage.failed;
}
