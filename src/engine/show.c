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
        if (number >= loader->next_number) tell(loader, "table number %u is not below the next number", number);
        if (catalog->count == catalog->capacity) {
            catalog->capacity = catalog->capacity ? catalog->capacity * 2 : 16;
            catalog->tables = must_realloc(catalog->tables, catalog->capacity * sizeof *catalog->tables);
        }
        catalog->tables[catalog->count++] = table_new(&definition, number, NULL);
    }
    arena_free(&arena);
    return true;
}

bool catalog_load(struct catalog *catalog, struct store *store, void (*fault)(void *context, const char *sentence),
                  void *context)
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
        if (catalog->tables[middle]->number < number) low = middle + 1;
        else high = middle;
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
    if (value->type == VALUE_S) json_put_string(out, value->bytes);
    else if (value->type == VALUE_B) base64_put(out, value->bytes);
    else buf_slice(out, value->bytes);
}

static enum stored_kind describe_item(struct show *show, struct slice key)
{
    struct buf *out = &show->meaning;
    uint32_t place = key.len >= ITEM_KEY_HEAD ? catalog_place(&show->catalog, bytes_u32(key.data + 1)) : UINT32_MAX;
    if (place == UINT32_MAX) {
        buf_text(out, "an item of no table");
        return STORED_UNKNOWN;
    }
    const struct table *table = show->catalog.tables[place];
    struct value value;
    struct slice rest = slice_from(key, ITEM_KEY_HEAD);
    buf_text(out, "item of ");
    buf_slice(out, table->definition.name);
    buf_byte(out, ':');
    if (key_decode(&show->scratch, &rest, table->keys.hash_type, &value)) put_key_value(out, table->keys.hash, &value);
    if (table->keys.range.len && key_decode(&show->scratch, &rest, table->keys.range_type, &value))
        put_key_value(out, table->keys.range, &value);
    return STORED_ITEM;
}

static enum stored_kind describe_table_entry(struct show *show, struct slice key, const char *what, enum stored_kind kind)
{
    uint32_t number = key.len == 5 ? bytes_u32(key.data + 1) : 0, place = catalog_place(&show->catalog, number);
    buf_printf(&show->meaning, "%s of table %u", what, number);
    if (place == UINT32_MAX) return kind;
    struct slice name = show->catalog.tables[place]->definition.name;
    buf_printf(&show->meaning, " (%.*s)", SLICE_ARG(name));
    return kind;
}

static enum stored_kind describe(struct show *show, struct slice key)
{
    switch (key.len ? key.data[0] : 0) {
    case KEY_ITEM: return describe_item(show, key);
    case KEY_TABLE: return describe_table_entry(show, key, "definition", STORED_DEFINITION);
    case KEY_COUNTS: return describe_table_entry(show, key, "counts", STORED_COUNTS);
    case KEY_META:
        buf_text(&show->meaning, "setting ");
        buf_slice(&show->meaning, slice_from(key, 1));
        return STORED_SETTING;
    default: buf_text(&show->meaning, "an entry of no known kind"); return STORED_UNKNOWN;
    }
}

/* Settings and counts are few bytes: their numbers are put into words here. */
static struct slice readable_value(struct show *show, enum stored_kind kind, struct slice value)
{
    int64_t items, bytes;
    if (kind == STORED_COUNTS && counts_decode(value, &items, &bytes))
        return arena_printf(&show->scratch, "%lld items, %lld bytes", (long long)items, (long long)bytes);
    if (kind == STORED_SETTING && value.len == 4) return arena_printf(&show->scratch, "%u", bytes_u32(value.data));
    return value;
}

static bool show_entry(void *context, struct slice key, struct slice value)
{
    struct show *show = context;
    arena_reset(&show->scratch);
    show->meaning.len = 0;
    enum stored_kind kind = describe(show, key);
    return show->visitor(show->context, kind, buf_view(&show->meaning), readable_value(show, kind, value));
}

bool engine_show(struct store *store, engine_entry_visitor visitor, void *context)
{
    struct show show = {.visitor = visitor, .context = context};
    bool read = catalog_load(&show.catalog, store, NULL, NULL) &&
                store_scan(store, SLICE(""), SLICE(""), false, show_entry, &show) == STORE_OK;
    catalog_free(&show.catalog);
    arena_free(&show.scratch);
    buf_free(&show.meaning);
    return read;
}
