/* The printer of the stored format: every key in words. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "engine/internal.h"

/* ---- the catalog ---- */

struct catalog_loader {
    struct catalog *catalog;
    uint32_t next_number;
    void (*fault)(void *context, const char *sentence);
    void *context;
};

static void tell(const struct catalog_loader *loader, const char *format, uint32_t number)
{
    char sentence[120];
    snprintf(sentence, sizeof sentence, format, number);
    if (loader->fault) loader->fault(loader->context, sentence);
}

static bool load_definition(void *context, struct slice key, struct slice value)
{
    struct catalog_loader *loader = context;
    struct catalog *catalog = loader->catalog;
    struct table_definition definition;
    struct arena arena = {0};
    uint32_t number = key.len == 5 ? bytes_u32(key.data + 1) : 0;
    if (key.len != 5 || !table_definition_decode(&arena, value, &definition)) {
        tell(loader, "the definition of table number %u is damaged", number);
    } else {
        if (number >= loader->next_number)
            tell(loader, "table number %u is not below the next number", number);
        if (catalog->count == catalog->capacity) {
            catalog->capacity = catalog->capacity ? catalog->capacity * 2 : 16;
            catalog->tables = must_realloc(catalog->tables, catalog->capacity * sizeof *catalog->tables);
        }
        catalog->tables[catalog->count++] = table_new(&definition, number, NULL);
    }
    arena_free(&arena);
    return true;
}

bool catalog_load(struct catalog *catalog, struct store *store,
                  void (*fault)(void *context, const char *sentence), void *context)
{
    struct catalog_loader loader = {.catalog = catalog, .next_number = 1, .fault = fault, .context = context};
    struct buf bytes = {0};
    enum store_result result = store_get(store, key_next_table, &bytes);
    if (result == STORE_OK && bytes.len == 4) loader.next_number = bytes_u32(bytes.data);
    if (result == STORE_OK && bytes.len != 4) tell(&loader, "the next table number is damaged", 0);
    buf_free(&bytes);
    const char from[] = {KEY_TABLE}, to[] = {KEY_TABLE + 1};
    return result != STORE_FAILED && store_scan(store, (struct slice){from, 1}, (struct slice){to, 1}, false,
                                                load_definition, &loader) == STORE_OK;
}

void catalog_free(struct catalog *catalog)
{
    for (uint32_t i = 0; i < catalog->count; i++) engine_table_release(catalog->tables[i]);
    free(catalog->tables);
}

uint32_t catalog_place(const struct catalog *catalog, uint32_t number)
{
    uint32_t low = 0, high = catalog->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (catalog->tables[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < catalog->count && catalog->tables[low]->number == number ? low : UINT32_MAX;
}

/* ---- showing ---- */

struct show {
    struct catalog catalog;
    engine_entry_visitor visitor;
    void *context;
    struct arena scratch;
    struct buf meaning;
};

static void put_key_value(struct buf *out, struct slice name, const struct value *value)
{
    buf_byte(out, ' ');
    buf_slice(out, name);
    buf_byte(out, '=');
    if (value->type == VALUE_S)
        json_put_string(out, value->bytes);
    else if (value->type == VALUE_B)
        base64_put(out, value->bytes);
    else
        buf_slice(out, value->bytes);
}

static const struct table *table_of(const struct show *show, struct slice key)
{
    uint32_t place = key.len >= 5 ? catalog_place(&show->catalog, bytes_u32(key.data + 1)) : UINT32_MAX;
    return place == UINT32_MAX ? NULL : show->catalog.tables[place];
}

static void put_attribute(struct show *show, const struct table *table, struct slice name, struct slice *rest)
{
    enum value_type type;
    struct value value;
    if (table_attribute_type(&table->definition, name, &type) &&
        key_decode(&show->scratch, rest, type, &value))
        put_key_value(&show->meaning, name, &value);
}

/* What stands behind the head of an item's key, of an index entry's, and of an expiry's. */
static void put_table_keys(struct show *show, const struct table *table, struct slice rest)
{
    put_attribute(show, table, table->keys.hash, &rest);
    if (table->keys.range.len) put_attribute(show, table, table->keys.range, &rest);
}

static enum stored_kind describe_item(struct show *show, struct slice key)
{
    const struct table *table = table_of(show, key);
    if (!table || key.len < ITEM_KEY_HEAD) {
        buf_text(&show->meaning, "an item of no table");
        return STORED_UNKNOWN;
    }
    buf_printf(&show->meaning, "item of %.*s:", SLICE_ARG(table->definition.name));
    put_table_keys(show, table, slice_from(key, ITEM_KEY_HEAD));
    return STORED_ITEM;
}

static enum stored_kind describe_collection(struct show *show, struct slice key)
{
    const struct table *table = table_of(show, key);
    if (!table || key.len < ITEM_KEY_HEAD) {
        buf_text(&show->meaning, "a collection of no table");
        return STORED_UNKNOWN;
    }
    struct slice rest = slice_from(key, ITEM_KEY_HEAD);
    buf_printf(&show->meaning, "bytes of a collection of %.*s:", SLICE_ARG(table->definition.name));
    put_attribute(show, table, table->keys.hash, &rest);
    return STORED_TEXT;
}

static enum stored_kind describe_index_entry(struct show *show, struct slice key)
{
    const struct table *table = table_of(show, key);
    const struct index_definition *index = NULL;
    for (uint32_t i = 0; table && key.len >= INDEX_KEY_HEAD && i < table->definition.index_count; i++)
        if (table->definition.indexes[i].number == bytes_u32(key.data + 5))
            index = &table->definition.indexes[i];
    if (!index) {
        buf_text(&show->meaning, "an entry of no index");
        return STORED_UNKNOWN;
    }
    struct slice rest = slice_from(key, INDEX_KEY_HEAD);
    buf_printf(&show->meaning, "entry of %.*s, index %.*s:", SLICE_ARG(table->definition.name),
               SLICE_ARG(index->name));
    for (uint32_t i = 0; i < index->hash_count; i++) put_attribute(show, table, index->hash[i], &rest);
    for (uint32_t i = 0; i < index->range_count; i++) put_attribute(show, table, index->range[i], &rest);
    buf_text(&show->meaning, " of item");
    put_table_keys(show, table, rest);
    return STORED_ITEM;
}

static enum stored_kind describe_expiry(struct show *show, struct slice key)
{
    const struct table *table = table_of(show, key);
    if (!table || key.len < EXPIRY_KEY_HEAD + 4) {
        buf_text(&show->meaning, "an expiry of no table");
        return STORED_UNKNOWN;
    }
    buf_printf(&show->meaning, "expiry in %.*s at %llu:", SLICE_ARG(table->definition.name),
               (unsigned long long)bytes_u64(key.data + 5));
    put_table_keys(show, table, slice_from(key, EXPIRY_KEY_HEAD + 4));
    return STORED_TEXT;
}

static void put_table_entry(struct show *show, struct slice key, const char *what)
{
    const struct table *table = table_of(show, key);
    buf_printf(&show->meaning, "%s of table %u", what, key.len >= 5 ? bytes_u32(key.data + 1) : 0);
    if (table) buf_printf(&show->meaning, " (%.*s)", SLICE_ARG(table->definition.name));
    if (key.len == 9) buf_printf(&show->meaning, ", index %u", bytes_u32(key.data + 5));
}

/* The few bytes of settings, counts and tokens in words. */
static struct slice put_into_words(struct show *show, char kind, struct slice value)
{
    int64_t items, bytes;
    if (kind == KEY_COUNTS && counts_decode(value, &items, &bytes))
        return arena_printf(&show->scratch, "%lld items, %lld bytes", (long long)items, (long long)bytes);
    if (kind == KEY_TOKEN && value.len >= 16)
        return arena_printf(&show->scratch, "at %llu ms", (unsigned long long)bytes_u64(value.data));
    if (value.len == 4) return arena_printf(&show->scratch, "%u", bytes_u32(value.data));
    if (value.len == 8)
        return arena_printf(&show->scratch, "%llu", (unsigned long long)bytes_u64(value.data));
    return value.len ? arena_printf(&show->scratch, "(%zu bytes)", value.len) : SLICE("");
}

static enum stored_kind describe_other(struct show *show, struct slice key)
{
    struct buf *out = &show->meaning;
    switch (key.data[0]) {
    case KEY_META: buf_printf(out, "setting %.*s", SLICE_ARG(slice_from(key, 1))); return STORED_TEXT;
    case KEY_COUNTS: put_table_entry(show, key, "counts"); return STORED_TEXT;
    case KEY_TABLE: put_table_entry(show, key, "definition"); return STORED_ITEM;
    case KEY_TOKEN: buf_text(out, "token"); return STORED_TEXT;
    case KEY_TOKEN_TIME: buf_text(out, "time of a token"); return STORED_TEXT;
    case KEY_STREAM:
        if (key.len != 5) break;
        buf_printf(out, "stream %u", bytes_u32(key.data + 1));
        return STORED_ITEM;
    case KEY_RECORD:
        if (key.len != RECORD_KEY) break;
        buf_printf(out, "record of stream %u, shard %u: %llu", bytes_u32(key.data + 1),
                   bytes_u32(key.data + 5), (unsigned long long)bytes_u64(key.data + 9));
        return STORED_ITEM;
    case KEY_MINUTE:
        if (key.len != 9) break;
        buf_printf(out, "first sequence of minute %llu", (unsigned long long)bytes_u64(key.data + 1));
        return STORED_TEXT;
    default: break;
    }
    buf_text(out, "an entry of no known kind");
    return STORED_UNKNOWN;
}

static enum stored_kind describe(struct show *show, struct slice key)
{
    switch (key.len ? key.data[0] : 0) {
    case KEY_ITEM: return describe_item(show, key);
    case KEY_INDEX: return describe_index_entry(show, key);
    case KEY_COLLECTION: return describe_collection(show, key);
    case KEY_EXPIRY: return describe_expiry(show, key);
    case 0: buf_text(&show->meaning, "an entry without a key"); return STORED_UNKNOWN;
    default: return describe_other(show, key);
    }
}

/* The meaning of a key, and its value in words where it is no item. */
static enum stored_kind explain(struct show *show, struct slice key, struct slice *value)
{
    arena_reset(&show->scratch);
    show->meaning.len = 0;
    enum stored_kind kind = describe(show, key);
    if (kind == STORED_TEXT) *value = put_into_words(show, key.data[0], *value);
    return kind;
}

static bool show_entry(void *context, struct slice key, struct slice value)
{
    struct show *show = context;
    enum stored_kind kind = explain(show, key, &value);
    return show->visitor(show->context, kind, buf_view(&show->meaning), value);
}

static void show_free(struct show *show)
{
    catalog_free(&show->catalog);
    arena_free(&show->scratch);
    buf_free(&show->meaning);
}

bool engine_show(struct store *store, engine_entry_visitor visitor, void *context)
{
    struct show show = {.visitor = visitor, .context = context};
    bool read = catalog_load(&show.catalog, store, NULL, NULL) &&
                store_scan(store, SLICE(""), SLICE(""), false, show_entry, &show) == STORE_OK;
    show_free(&show);
    return read;
}

/* ---- the log ---- */

struct show_log {
    struct show show; /* with the tables that there are at the end of the log */
    const struct engine_log_visitor *visitor;
    char *error;
    size_t error_len;
    bool failed;
};

static void log_entry(void *context, enum store_entry_kind kind, struct slice key, struct slice value)
{
    struct show_log *log = context;
    struct show *show = &log->show;
    struct slice words = kind == STORE_ENTRY_PUT ? value : SLICE_NONE;
    enum stored_kind stored = explain(show, key, &words);
    const char *verb = kind == STORE_ENTRY_PUT ? "put" : kind == STORE_ENTRY_DELETE ? "delete" : "clear from";
    if (kind != STORE_ENTRY_PUT) stored = STORED_TEXT, words = SLICE_NONE;
    if (kind == STORE_ENTRY_DELETE_RANGE) {
        buf_text(&show->meaning, " to, without it, ");
        describe(show, value);
    }
    log->visitor->entry(log->visitor->context, verb, stored, buf_view(&show->meaning), words);
}

static bool log_batch(void *context, const struct store_log_batch *found)
{
    struct show_log *log = context;
    struct store_batch batch;
    if (!store_batch_from_bytes(found->bytes, &batch)) {
        snprintf(log->error, log->error_len, "the batch %llu is damaged", (unsigned long long)found->number);
        log->failed = true;
        return false;
    }
    log->visitor->batch(log->visitor->context, found->number, found->time_ms, batch.count, found->bytes.len);
    store_batch_visit(&batch, log_entry, log);
    return true;
}

bool engine_show_log(struct store *store, uint64_t from, const struct engine_log_visitor *visitor,
                     char *error, size_t error_len)
{
    struct show_log log = {.visitor = visitor, .error = error, .error_len = error_len};
    if (!store_log_id(store)) return true;
    struct store_log_cursor cursor = {.number = from ? from : store_log_first(store)};
    bool loaded = catalog_load(&log.show.catalog, store, NULL, NULL);
    if (!loaded) snprintf(error, error_len, "%s", store->error);
    enum store_result result = loaded ? store_log_read(store, &cursor, log_batch, &log, error, error_len)
                                      : STORE_OK;
    if (result == STORE_MISSING)
        snprintf(error, error_len, "the batch %llu is not in the log any more: it begins with %llu",
                 (unsigned long long)cursor.number, (unsigned long long)store_log_first(store));
    show_free(&log.show);
    return loaded && result == STORE_OK && !log.failed;
}
