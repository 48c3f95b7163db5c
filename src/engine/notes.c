/* Notes: what the database keeps about itself beside its tables, such as its exports and imports. They are items of a
 * table that no client can name, so that they are written in the same batch as what they tell of, are checked, shown
 * and watched as all items are, and need no form of their own. The table is made with the first note.
 *
 * A note has a kind and an id, which are the keys of that table; the rest is for whoever writes it. */
#include "base/fail.h"
#include "engine/internal.h"

#define KIND SLICE("kind")
#define ID   SLICE("id")

static struct value text_of(struct slice text)
{
    return (struct value){.type = VALUE_S, .bytes = text};
}

static void note_key(struct buf *out, const struct table *table, struct slice kind, struct slice id)
{
    struct value hash = text_of(kind), range = text_of(id);
    engine_item_key(out, table, &hash, &range);
}

/* The table as the batch sees it, made when it is missing. */
static struct table *notes_in_batch(struct batch *batch)
{
    struct key_attribute attributes[] = {{ID, VALUE_S}, {KIND, VALUE_S}};
    struct throughput none = {.max_read = -1, .max_write = -1, .warm_read = -1, .warm_write = -1};
    struct table *table = engine_table_in_batch(batch, SLICE(ENGINE_NOTES));
    if (table) return table;
    int64_t now_ms = engine_now_ms(batch->engine);
    struct table_definition definition = {.name = SLICE(ENGINE_NOTES),
                                          .id = SLICE("00000000-0000-0000-0000-000000000000"),
                                          .created_ms = now_ms,
                                          .attributes = attributes,
                                          .attribute_count = 2,
                                          .hash = KIND,
                                          .range = ID,
                                          .on_demand = true,
                                          .throughput = none};
    if (engine_table_create(batch, &definition) != TABLE_CHANGED) return NULL;
    return engine_table_in_batch(batch, SLICE(ENGINE_NOTES));
}

bool engine_note_put(struct batch *batch, struct arena *arena, struct slice kind, struct slice id,
                     const struct map *fields)
{
    struct value hash = text_of(kind), range = text_of(id);
    struct buf key = {0};
    struct table *table = notes_in_batch(batch);
    if (!table) return false;
    struct map item = map_with(arena, fields, KIND, &hash);
    item = map_with(arena, &item, ID, &range);
    note_key(&key, table, kind, id);
    struct write write = {
        .kind = WRITE_PUT, .table = table, .key = buf_view(&key), .item = item, .arena = arena};
    engine_write(batch, &write);
    buf_free(&key);
    return write.outcome == WRITE_APPLIED;
}

void engine_note_delete(struct batch *batch, struct arena *arena, struct slice kind, struct slice id)
{
    struct buf key = {0};
    struct table *table = engine_table_in_batch(batch, SLICE(ENGINE_NOTES));
    if (!table) return;
    note_key(&key, table, kind, id);
    struct write write = {.kind = WRITE_DELETE, .table = table, .key = buf_view(&key), .arena = arena};
    engine_write(batch, &write);
    buf_free(&key);
}

bool engine_note_in_batch(struct batch *batch, struct arena *arena, struct slice kind, struct slice id,
                          struct map *out)
{
    struct buf key = {0};
    struct slice image;
    struct table *table = engine_table_in_batch(batch, SLICE(ENGINE_NOTES));
    if (!table) return false;
    note_key(&key, table, kind, id);
    bool is_found = engine_read_in_batch(batch, arena, buf_view(&key), &image) &&
                    item_decode(arena, image, out);
    buf_free(&key);
    return is_found;
}

bool engine_note_find(struct engine *engine, struct arena *arena, struct slice kind, struct slice id,
                      struct map *out)
{
    struct buf key = {0};
    struct image image;
    struct table *table = engine_table_find(engine, SLICE(ENGINE_NOTES));
    if (!table) return false;
    note_key(&key, table, kind, id);
    bool is_found = engine_get(engine, table, buf_view(&key), &image) == ENGINE_OK;
    if (is_found) is_found = item_decode(arena, arena_copy(arena, image.bytes), out);
    image_release(&image);
    buf_free(&key);
    engine_table_release(table);
    return is_found;
}

struct note_walk {
    struct arena *arena;
    engine_note_visitor visitor;
    void *context;
    bool is_damaged;
};

static bool visit(void *context, struct slice key, struct slice value)
{
    struct note_walk *walk = context;
    struct map fields;
    (void)key;
    if (!item_decode(walk->arena, arena_copy(walk->arena, value), &fields)) {
        walk->is_damaged = true;
        return false;
    }
    const struct value *id = map_find(&fields, ID);
    return walk->visitor(walk->context, id->bytes, &fields);
}

static enum engine_result walk_notes(struct engine *engine, struct slice kind, struct slice bound, bool backwards,
                                     struct note_walk *walk)
{
    struct value hash = text_of(kind), last = text_of(bound);
    struct key_condition condition = {.hash = {&hash}, .hash_count = 1};
    struct buf from = {0}, to = {0};
    struct table *table = engine_table_find(engine, SLICE(ENGINE_NOTES));
    if (!table) return ENGINE_OK;
    if (bound.len) {
        condition.compare = backwards ? KEY_LT : KEY_GT;
        condition.range[0] = &last;
    }
    enum store_result result = STORE_OK;
    if (engine_query_range(table, &condition, &from, &to))
        result = store_scan(engine->store, buf_view(&from), buf_view(&to), backwards, visit, walk);
    buf_free(&from);
    buf_free(&to);
    engine_table_release(table);
    return result == STORE_OK && !walk->is_damaged ? ENGINE_OK : ENGINE_FAILED;
}

enum engine_result engine_notes(struct engine *engine, struct arena *arena, struct slice kind,
                                struct slice before, engine_note_visitor visitor, void *context)
{
    struct note_walk walk = {.arena = arena, .visitor = visitor, .context = context};
    return walk_notes(engine, kind, before, true, &walk);
}

enum engine_result engine_notes_after(struct engine *engine, struct arena *arena, struct slice kind,
                                      struct slice after, engine_note_visitor visitor, void *context)
{
    struct note_walk walk = {.arena = arena, .visitor = visitor, .context = context};
    return walk_notes(engine, kind, after, false, &walk);
}
