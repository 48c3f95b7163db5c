/* Point reads through the cache, and pages of queries and scans straight from the store. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "engine/internal.h"

void image_release(struct image *image)
{
    if (image->held) cache_value_release(image->held);
    *image = (struct image){0};
}

static enum engine_result hold(struct image *out, struct cache_value *value)
{
    out->held = value;
    out->bytes = cache_value_bytes(value);
    return ENGINE_OK;
}

enum engine_result engine_get(struct engine *engine, const struct table *table, struct slice key,
                              struct image *out)
{
    stats_add(&table->counts->reads, 1);
    uint64_t hash = hash_bytes(key), version;
    struct cache_value *value;
    *out = (struct image){0};
    enum cache_result known = cache_find(engine->cache, hash, key, &value, &version);
    if (known != CACHE_UNKNOWN) {
        stats_add(&engine->stats.cache_hits, 1);
        return known == CACHE_FOUND ? hold(out, value) : ENGINE_MISSING;
    }
    stats_add(&engine->stats.cache_misses, 1);
    struct buf bytes = {0};
    enum store_result result = store_get(engine->store, key, &bytes);
    if (result == STORE_OK) {
        value = cache_value_new(hash, key, buf_view(&bytes));
        cache_offer(engine->cache, value, version);
        hold(out, value);
    }
    buf_free(&bytes);
    return result == STORE_OK ? ENGINE_OK : result == STORE_MISSING ? ENGINE_MISSING : ENGINE_FAILED;
}

/* A page while the store is walked. */
struct walk {
    struct page *page;
    struct buf last; /* bytes of the last evaluated item */
    struct arena item_arena;
    bool damaged;
};

/* The service adds an item before it looks whether the page is full, so a page may exceed 1 MB by one item.
 */
static bool page_is_full(const struct page *page)
{
    return (page->limit && page->scanned >= page->limit) ||
           page->bytes + page->beside_bytes >= LIMIT_PAGE_BYTES;
}

static bool visit(void *context, struct slice key, struct slice value)
{
    struct walk *walk = context;
    struct page *page = walk->page;
    size_t size = item_encoded_size(value);
    page->scanned++;
    page->bytes += size;
    if (page->part_at) {
        page->last_part = (unsigned char)key.data[page->part_at] * SCAN_PARTITIONS / 256;
        page->part_bytes[page->last_part] += size;
    }
    struct map item, *decoded = NULL;
    if (page->filter || page->decode) {
        arena_reset(&walk->item_arena);
        if (!item_decode(&walk->item_arena, value, &item)) {
            walk->damaged = true;
            return false;
        }
        decoded = &item;
    }
    if (!page->filter || condition_holds(page->filter, decoded)) {
        page->matched++;
        page->emit(page->context, value, decoded);
    }
    if (!page_is_full(page)) return true;
    page->more = true;
    buf_slice(&walk->last, value);
    return false;
}

enum engine_result engine_page(struct engine *engine, struct page *page)
{
    struct walk walk = {.page = page};
    page->scanned = page->matched = page->bytes = page->beside_bytes = 0;
    page->more = false;
    memset(page->part_bytes, 0, sizeof page->part_bytes);
    enum store_result result = store_scan(engine->store, page->from, page->to, page->backwards, visit, &walk);
    if (result == STORE_OK && page->more &&
        !item_decode(page->scratch, arena_copy(page->scratch, buf_view(&walk.last)), &page->last))
        walk.damaged = true;
    buf_free(&walk.last);
    arena_free(&walk.item_arena);
    return result == STORE_OK && !walk.damaged ? ENGINE_OK : ENGINE_FAILED;
}

/* ---- one moment of a table ---- */

struct view_walk {
    const struct items_view *view;
    bool is_held;
};

static bool view_visit(void *context, struct slice key, struct slice value)
{
    struct view_walk *walk = context;
    if (!walk->is_held && walk->view->held) walk->view->held(walk->view->context);
    walk->is_held = true;
    return walk->view->visit(walk->view->context, key, value);
}

/* One scan of a store sees one state of it, from before its first entry on. */
enum engine_result engine_items_view(struct engine *engine, const struct items_view *view)
{
    struct view_walk walk = {.view = view};
    struct buf from = {0}, to = {0};
    if (view->to.len) {
        buf_slice(&from, view->from);
        buf_slice(&to, view->to);
    } else {
        engine_scan_range(view->table, 0, 1, &from, &to);
    }
    enum store_result result = store_scan(engine->store, buf_view(&from), buf_view(&to), false, view_visit, &walk);
    if (!walk.is_held && view->held) view->held(view->context);
    buf_free(&from);
    buf_free(&to);
    return result == STORE_OK ? ENGINE_OK : ENGINE_FAILED;
}

/* ---- capacity ---- */

double capacity_read(uint64_t bytes, bool consistent)
{
    uint64_t units = bytes ? (bytes + 4095) / 4096 : 1;
    return consistent ? (double)units : (double)units / 2;
}

double capacity_write(uint64_t old_bytes, uint64_t new_bytes)
{
    uint64_t bytes = old_bytes > new_bytes ? old_bytes : new_bytes;
    return bytes ? (double)((bytes + 1023) / 1024) : 1;
}
