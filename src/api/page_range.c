/* From what a Query or Scan asks for to the range of stored keys that it reads. */
#include "api/items.h"

static struct slice take_buf(struct api_call *call, struct buf *buf)
{
    struct slice copy = arena_copy(call->arena, buf_view(buf));
    buf_free(buf);
    return copy;
}

struct slice page_start(struct api_call *call, const struct page_request *request)
{
    const struct key_schema *keys = &request->table->keys;
    struct buf key = {0};
    if (!request->index)
        return key_bytes(call, request->table, map_find(request->start, keys->hash),
                         keys->range.len ? map_find(request->start, keys->range) : NULL);
    engine_index_key(&key, request->table, request->index, request->start);
    return take_buf(call, &key);
}

/* The start key is the last item of the page before: this one begins behind it, or ends before it. */
static bool apply_start(struct api_call *call, const struct page_request *request, struct key_range *range)
{
    struct slice start = page_start(call, request);
    if (request->backwards) {
        if (slice_compare(start, range->to) < 0) range->to = start;
    } else if (slice_compare(start, range->from) >= 0) {
        range->from = (struct slice){start.data, start.len + 1}; /* arena_copy ends in a zero byte */
    }
    return slice_compare(range->from, range->to) < 0;
}

static bool index_range(const struct page_request *request, struct buf *from, struct buf *to)
{
    const struct key_condition *keys = request->key_condition;
    if (!keys) {
        engine_index_scan_range(request->table, request->index, request->segment, request->segments, from,
                                to);
        return true;
    }
    return engine_index_query_range(request->table, request->index, keys, from, to);
}

static bool table_range(const struct page_request *request, struct buf *from, struct buf *to)
{
    if (request->key_condition) return engine_query_range(request->table, request->key_condition, from, to);
    engine_scan_range(request->table, request->segment, request->segments, from, to);
    return true;
}

bool page_range(struct api_call *call, const struct page_request *request, struct key_range *out)
{
    struct buf from = {0}, to = {0};
    bool any = request->index ? index_range(request, &from, &to) : table_range(request, &from, &to);
    out->from = take_buf(call, &from);
    out->to = take_buf(call, &to);
    if (!any || !request->start) return any;
    return apply_start(call, request, out);
}
