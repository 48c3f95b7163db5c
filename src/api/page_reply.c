/* The reply of a Query or Scan: items as they are read, then counts, the last key, the capacity. */
#include "api/throttle.h"

void page_begin(struct page_writer *writer, struct api_call *call, const struct page_request *request)
{
    *writer = (struct page_writer){.call = call, .request = request};
    buf_byte(call->reply, '{');
    if (!request->count_only) buf_text(call->reply, "\"Items\":[");
}

void page_put_encoded(struct page_writer *writer, struct slice encoded)
{
    struct buf *out = writer->call->reply;
    if (writer->request->count_only) return;
    if (writer->items++) buf_byte(out, ',');
    if (!api_put_encoded_item_json(out, encoded)) writer->damaged = true;
}

void page_put_map(struct page_writer *writer, const struct map *item)
{
    struct buf *out = writer->call->reply;
    const struct projection *projection = writer->request->projection;
    struct map taken;
    if (writer->request->count_only) return;
    if (writer->items++) buf_byte(out, ',');
    if (projection) {
        taken = projection_apply(writer->call->arena, projection, item);
        item = &taken;
    }
    api_put_item_json(out, item);
}

/* ---- the end of it ---- */

static bool is_named(const struct slice *names, uint32_t count, struct slice name)
{
    for (uint32_t i = 0; i < count; i++)
        if (slice_equal(names[i], name)) return true;
    return false;
}

static bool is_key(const struct page_request *request, struct slice name)
{
    const struct key_schema *keys = &request->table->keys;
    const struct index_definition *index = request->index;
    if (slice_equal(name, keys->hash) || (keys->range.len && slice_equal(name, keys->range))) return true;
    return index && (is_named(index->hash, index->hash_count, name) ||
                     is_named(index->range, index->range_count, name));
}

struct map page_last_key(struct arena *arena, const struct page_request *request, const struct map *last)
{
    struct map key = {arena_array(arena, struct attribute, last->count), 0};
    for (uint32_t i = 0; i < last->count; i++)
        if (is_key(request, last->attributes[i].name)) key.attributes[key.count++] = last->attributes[i];
    return key;
}

static void put_last_key(struct page_writer *writer, const struct map *last)
{
    struct map key = page_last_key(writer->call->arena, writer->request, last);
    buf_text(writer->call->reply, ",\"LastEvaluatedKey\":");
    api_put_item_json(writer->call->reply, &key);
}

static void put_capacity(struct buf *out, const struct page_request *request,
                         const struct page_totals *totals)
{
    struct capacity capacity = {.table = totals->table_units};
    if (!capacity_wanted(request->return_capacity)) return;
    if (request->index)
        capacity.indexes[request->index - request->table->definition.indexes] = totals->index_units;
    buf_text(out, ",\"ConsumedCapacity\":");
    capacity_put(out, request->return_capacity, request->table_name, request->table, &capacity);
}

void page_end(struct page_writer *writer, const struct page_totals *totals)
{
    struct buf *out = writer->call->reply;
    if (!writer->request->count_only) buf_text(out, "],");
    buf_text(out, "\"Count\":");
    buf_decimal(out, totals->matched);
    buf_text(out, ",\"ScannedCount\":");
    buf_decimal(out, totals->scanned);
    if (totals->last) put_last_key(writer, totals->last);
    put_capacity(out, writer->request, totals);
    buf_byte(out, '}');
}

/* ---- reading ---- */

/* A local index's entry does not hold all that was asked for: the item itself is read too. As seen on the service, that
 * is charged whether the filter takes the entry or not. */
static void put_whole(struct page_writer *writer, const struct map *entry)
{
    const struct page_request *request = writer->request;
    const struct key_schema *keys = &request->table->keys;
    struct image image;
    struct map item;
    struct slice key = key_bytes(writer->call, request->table, map_find(entry, keys->hash),
                                 keys->range.len ? map_find(entry, keys->range) : NULL);
    enum engine_result result = engine_get(writer->call->api->engine, request->table, key, &image);
    if (result == ENGINE_MISSING) return; /* deleted since the entry was read */
    if (result == ENGINE_OK) {
        size_t size = item_encoded_size(image.bytes);
        writer->page->beside_bytes += size;
        writer->fetched_units += capacity_read(size, request->consistent);
    }
    if (result != ENGINE_OK) {
        writer->damaged = true;
    } else if (!request->filter || condition_holds(request->filter, entry)) {
        writer->fetched++;
        if (item_decode(writer->call->arena, image.bytes, &item))
            page_put_map(writer, &item);
        else
            writer->damaged = true;
    }
    image_release(&image);
}

static void emit(void *context, struct slice encoded, const struct map *item)
{
    struct page_writer *writer = context;
    if (writer->request->fetch_whole)
        put_whole(writer, item);
    else if (writer->request->projection)
        page_put_map(writer, item);
    else
        page_put_encoded(writer, encoded);
}

/* A scan reads each partition for itself, and of each at least something: on an on-demand table, which has
 * four from the beginning, the service charges 2 units for a handful of items. */
static double scan_units(const struct page_request *request, const struct page *page)
{
    double units = 0;
    uint32_t first = 0, last = SCAN_PARTITIONS - 1;
    if (page->from.len > page->part_at)
        first = (unsigned char)page->from.data[page->part_at] * SCAN_PARTITIONS / 256;
    if (page->more) {
        last = page->last_part;
    } else if (page->to.len >= page->part_at + 4) { /* the end of a segment; the hash is not part of it */
        const unsigned char *hash = (const unsigned char *)page->to.data + page->part_at;
        uint32_t end = (uint32_t)hash[0] << 24 | (uint32_t)hash[1] << 16 | (uint32_t)hash[2] << 8 | hash[3];
        last = (end - 1) / (UINT32_MAX / SCAN_PARTITIONS + 1);
    }
    for (uint32_t i = first; i <= last; i++) units += capacity_read(page->part_bytes[i], request->consistent);
    return units;
}

bool page_read(struct page_writer *writer, const struct page_request *request, struct page_totals *totals)
{
    bool by_partition = !request->key_condition && !request->index && request->table->definition.on_demand;
    struct key_range range;
    struct page page = {.backwards = request->backwards,
                        .limit = request->limit,
                        .filter = request->fetch_whole ? NULL : request->filter,
                        .scratch = writer->call->arena,
                        .emit = emit,
                        .context = writer,
                        .decode = request->projection != NULL || request->fetch_whole,
                        .part_at = by_partition ? ITEM_KEY_HASH_AT : 0};
    writer->request = request;
    writer->page = &page;
    writer->fetched_units = 0;
    writer->fetched = 0;
    stats_add(&request->table->counts->reads, 1);
    if (page_range(writer->call, request, &range)) {
        page.from = range.from;
        page.to = range.to;
        if (engine_page(writer->call->api->engine, &page) != ENGINE_OK || writer->damaged) return false;
    }
    double units = page.part_at && page.to.len ? scan_units(request, &page)
                                               : capacity_read(page.bytes, request->consistent);
    *totals = (struct page_totals){.scanned = page.scanned,
                                   .matched = request->fetch_whole ? writer->fetched : page.matched,
                                   .bytes = page.bytes + page.beside_bytes,
                                   .table_units = request->index ? writer->fetched_units : units,
                                   .index_units = request->index ? units : 0,
                                   .from = page.from};
    if (!page.more || page_is_one_item(request)) return true;
    struct map *last = arena_new(writer->call->arena, struct map);
    *last = page.last;
    totals->last = last;
    return true;
}

/* A query is of one partition, which its range begins with. */
bool check_page_admission(struct api_call *call, const struct page_request *request,
                          const struct page_totals *totals)
{
    if (!throttle_is_on(call->api, request->table)) return true;
    const struct throttle_demand *throttled = throttle_refusal(
        call,
        throttle_read(request->table, request->index, request->key_condition ? totals->from : SLICE_NONE,
                      totals->table_units, totals->index_units));
    return !throttled || refuse_throttled(call, throttled);
}

void page_reply(struct api_call *call, const struct page_request *request)
{
    struct page_writer writer;
    struct page_totals totals;
    page_begin(&writer, call, request);
    if (!page_read(&writer, request, &totals))
        refuse(call, "InternalServerError", "Internal server error");
    else if (check_page_admission(call, request, &totals))
        page_end(&writer, &totals);
}
