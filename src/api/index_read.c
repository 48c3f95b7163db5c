/* Reading from an index while indexes have no stored entries of their own: the table's items are looked
 * through, those that the index holds are put in its order, and a page is cut from them. Right, and as slow
 * as the table is large. Everything about this way of reading is in this file; index_reply is its only door.
 *
 * A scan takes the table's own order and so may stop when the page is full. A query must see all items that
 * could come first; what cannot be among the first megabyte is dropped as it goes, so memory stays bounded.
 */
#include <stdlib.h>

#include "api/items.h"
#include "base/fail.h"

#define GATHER_BYTES (8 * 1024 * 1024) /* of images kept before the list is cut back to one page */

/* An item of the index: where it stands in the order, and its image. */
struct found {
    struct slice order, image;
    uint64_t entry_bytes; /* billed size of what the index holds of it */
};

struct gathering {
    struct api_call *call;
    const struct page_request *request;
    struct slice start; /* order of the start key; empty: none */
    struct arena arenas[2];
    int in_use;
    struct found *found;
    uint32_t count, capacity;
    uint64_t image_bytes;
};

/* ---- gathering ---- */

/* The index's range key, then the table's key: unique, and in the index's order within one hash key. */
static void put_order(struct buf *out, const struct page_request *request, const struct map *item)
{
    const struct table *table = request->table;
    const struct index_definition *index = request->index;
    for (uint32_t i = 0; request->key_condition && i < index->range_count; i++)
        key_encode(out, map_find(item, index->range[i]));
    engine_item_key(out, table, map_find(item, table->keys.hash),
                    table->keys.range.len ? map_find(item, table->keys.range) : NULL);
}

static bool is_wanted(const struct page_request *request, const struct map *item)
{
    const struct key_condition *condition = request->key_condition;
    const struct index_definition *index = request->index;
    if (!index_holds(request->table, index, item)) return false;
    if (!condition) return true;
    if (!value_equal(map_find(item, index->hash[0]), condition->hash)) return false;
    return condition->compare == KEY_NONE || key_condition_admits(condition, map_find(item, index->range[0]));
}

static bool is_behind_start(const struct gathering *gathering, struct slice order)
{
    if (!gathering->start.len) return true;
    int compared = slice_compare(order, gathering->start);
    return gathering->request->backwards ? compared < 0 : compared > 0;
}

static int by_order(const void *a, const void *b)
{
    return slice_compare(((const struct found *)a)->order, ((const struct found *)b)->order);
}

static int by_order_backwards(const void *a, const void *b)
{
    return by_order(b, a);
}

static void sort_found(struct gathering *gathering)
{
    if (gathering->count)
        qsort(gathering->found, gathering->count, sizeof *gathering->found,
              gathering->request->backwards ? by_order_backwards : by_order);
}

/* How many of the first items make a page. */
static uint32_t page_length(const struct gathering *gathering)
{
    uint64_t limit = gathering->request->limit, bytes = 0;
    uint32_t length = 0;
    while (length < gathering->count && bytes < LIMIT_PAGE_BYTES && (!limit || length < limit))
        bytes += gathering->found[length++].entry_bytes;
    return length;
}

/* Drops what cannot be on this page any more. One more than a page is kept, to know that there is more. */
static void cut_back(struct gathering *gathering)
{
    struct arena *other = &gathering->arenas[!gathering->in_use];
    sort_found(gathering);
    uint32_t kept = page_length(gathering) + 1;
    if (kept < gathering->count) gathering->count = kept;
    gathering->image_bytes = 0;
    for (uint32_t i = 0; i < gathering->count; i++) {
        struct found *found = &gathering->found[i];
        found->order = arena_copy(other, found->order);
        found->image = arena_copy(other, found->image);
        gathering->image_bytes += found->image.len;
    }
    arena_free(&gathering->arenas[gathering->in_use]);
    gathering->in_use = !gathering->in_use;
}

static void gather(void *context, struct slice encoded, const struct map *item)
{
    struct gathering *gathering = context;
    const struct page_request *request = gathering->request;
    struct buf *scratch = gathering->call->reply;
    if (!is_wanted(request, item)) return;
    size_t mark = scratch->len;
    put_order(scratch, request, item);
    struct slice order = {scratch->data + mark, scratch->len - mark};
    scratch->len = mark;
    if (!is_behind_start(gathering, order)) return;
    if (gathering->count == gathering->capacity) {
        gathering->capacity = gathering->capacity ? gathering->capacity * 2 : 64;
        gathering->found = must_realloc(gathering->found, gathering->capacity * sizeof *gathering->found);
    }
    struct arena *arena = &gathering->arenas[gathering->in_use];
    struct map entry = index_project(arena, request->table, request->index, item);
    gathering->found[gathering->count++] = (struct found){arena_copy(arena, order),
                                                          arena_copy(arena, encoded), map_size(&entry)};
    gathering->image_bytes += encoded.len;
    if (gathering->image_bytes > GATHER_BYTES) cut_back(gathering);
}

static bool page_is_gathered(const struct gathering *gathering)
{
    uint32_t length = page_length(gathering);
    return !gathering->request->key_condition && length < gathering->count;
}

/* The part of the table to look through: one hash key for a local index, else all of it. */
static void table_range(struct gathering *gathering, struct key_range *range)
{
    const struct page_request *request = gathering->request;
    struct key_condition partition = {0};
    struct page_request table = {.table = request->table, .segments = 1};
    if (!request->index->global && request->key_condition) {
        partition.hash = request->key_condition->hash;
        table.key_condition = &partition;
    } else if (!request->key_condition) {
        table.segment = request->segment;
        table.segments = request->segments;
        table.start = request->start;
    }
    if (!page_range(gathering->call, &table, range)) range->to = range->from;
}

static bool gather_all(struct gathering *gathering)
{
    const struct table *table = gathering->request->table;
    struct key_range range;
    struct page page = {.emit = gather, .context = gathering, .decode = true, .more = true};
    table_range(gathering, &range);
    page.to = range.to;
    while (page.more && slice_compare(range.from, range.to) < 0 && !page_is_gathered(gathering)) {
        struct arena scratch = {0};
        page.scratch = &scratch;
        page.from = range.from;
        bool sound = engine_page(gathering->call->api->engine, &page) == ENGINE_OK;
        if (sound && page.more) {
            struct slice last = key_bytes(gathering->call, table, map_find(&page.last, table->keys.hash),
                                          table->keys.range.len ? map_find(&page.last, table->keys.range)
                                                                : NULL);
            range.from = (struct slice){last.data, last.len + 1}; /* arena_copy ends in a zero byte */
        }
        arena_free(&scratch);
        if (!sound) return false;
    }
    return true;
}

/* ---- the page ---- */

/* Answers one item: the entry, or the whole item where more was asked for than the index holds. */
static bool put_found(struct page_writer *writer, const struct found *found, struct page_totals *totals,
                      struct map *item)
{
    const struct page_request *request = writer->request;
    struct arena *arena = writer->call->arena;
    if (!item_decode(arena, found->image, item)) return false;
    struct map entry = index_project(arena, request->table, request->index, item);
    totals->scanned++;
    if (request->filter && !condition_holds(request->filter, &entry)) return true;
    totals->matched++;
    if (request->fetch_whole) totals->table_units += capacity_read(map_size(item), request->consistent);
    page_put_map(writer, request->fetch_whole ? item : &entry);
    return true;
}

static bool put_page(struct gathering *gathering)
{
    const struct page_request *request = gathering->request;
    struct page_writer writer;
    struct page_totals totals = {0};
    struct map last;
    uint64_t bytes = 0;
    sort_found(gathering);
    uint32_t length = page_length(gathering);
    page_begin(&writer, gathering->call, request);
    for (uint32_t i = 0; i < length; i++) {
        if (!put_found(&writer, &gathering->found[i], &totals, &last)) return false;
        bytes += gathering->found[i].entry_bytes;
    }
    totals.index_units = capacity_read(bytes, request->consistent);
    if (length && (length == request->limit || bytes >= LIMIT_PAGE_BYTES)) totals.last = &last;
    page_end(&writer, &totals);
    return true;
}

void index_reply(struct api_call *call, const struct page_request *request)
{
    struct gathering gathering = {.call = call, .request = request};
    struct buf start = {0};
    if (request->start) put_order(&start, request, request->start);
    gathering.start = buf_view(&start);
    if (!gather_all(&gathering) || !put_page(&gathering))
        refuse(call, "InternalServerError", "Internal server error");
    arena_free(&gathering.arenas[0]);
    arena_free(&gathering.arenas[1]);
    free(gathering.found);
    buf_free(&start);
}
