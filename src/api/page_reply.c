/* The reply of a Query or Scan: items as they are read, then counts, the last key, the capacity. */
#include "api/items.h"

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

static void put_last_key(struct buf *out, const struct page_request *request, const struct map *last)
{
    bool any = false;
    buf_text(out, ",\"LastEvaluatedKey\":{");
    for (uint32_t i = 0; i < last->count; i++) {
        if (!is_key(request, last->attributes[i].name)) continue;
        if (any) buf_byte(out, ',');
        any = true;
        json_put_string(out, last->attributes[i].name);
        buf_byte(out, ':');
        value_put_json(out, &last->attributes[i].value);
    }
    buf_byte(out, '}');
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
    if (totals->last) put_last_key(out, writer->request, totals->last);
    put_capacity(out, writer->request, totals);
    buf_byte(out, '}');
}

/* ---- reading ---- */

/* A local index's entry does not hold all that was asked for: the item itself is read too, and charged. */
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
    if (result == ENGINE_OK && item_decode(writer->call->arena, image.bytes, &item)) {
        writer->fetched_units += capacity_read(item_encoded_size(image.bytes), request->consistent);
        page_put_map(writer, &item);
    } else {
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

void page_reply(struct api_call *call, const struct page_request *request)
{
    struct page_writer writer;
    struct key_range range;
    struct page page = {.backwards = request->backwards,
                        .limit = request->limit,
                        .filter = request->filter,
                        .scratch = call->arena,
                        .emit = emit,
                        .context = &writer,
                        .decode = request->projection != NULL || request->fetch_whole};
    page_begin(&writer, call, request);
    if (page_range(call, request, &range)) {
        page.from = range.from;
        page.to = range.to;
        if (engine_page(call->api->engine, &page) != ENGINE_OK || writer.damaged) {
            refuse(call, "InternalServerError", "Internal server error");
            return;
        }
    }
    double units = capacity_read(page.bytes, request->consistent);
    page_end(&writer, &(struct page_totals){.scanned = page.scanned,
                                            .matched = page.matched,
                                            .table_units = request->index ? writer.fetched_units : units,
                                            .index_units = request->index ? units : 0,
                                            .last = page.more ? &page.last : NULL});
}
