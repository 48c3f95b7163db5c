/* Records of an export, line by line into packed files of about LIMIT_TRANSFER_FILE_BYTES, which are made in memory and
 * put whole. */
#include "transfer/export.h"

#include "base/fail.h"
#include "base/hash.h"
#include "transfer/formats.h"
#include "transfer/manifest.h"

#define NAME_BYTES  26
#define GZIP_WINDOW (15 + 16)
#define LINE_BYTES  (256 * 1024) /* lines are packed so many bytes at a time */

bool export_put_object(struct export *export, const char *name, struct slice bytes)
{
    struct slice key = arena_printf(&export->arena, "%.*s/%s", SLICE_ARG(export->folder), name);
    return buckets_put(export->run->transfer->buckets, export->bucket, key, bytes, &export->failure);
}

void export_file_open(struct export *export)
{
    random_seed(&export->random, hash_bytes(export->run->job.id));
    ensure(deflateInit2(&export->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                        Z_DEFAULT_STRATEGY) == Z_OK);
}

void export_file_close(struct export *export)
{
    deflateEnd(&export->zlib);
    buf_free(&export->lines);
    buf_free(&export->packed);
    buf_free(&export->files);
}

static void pack(struct export *export, int flush)
{
    z_stream *zlib = &export->zlib;
    struct buf *out = &export->packed;
    zlib->next_in = (Bytef *)export->lines.data;
    zlib->avail_in = (uInt) export->lines.len;
    do {
        buf_reserve(out, LINE_BYTES);
        size_t room = out->cap - out->len;
        zlib->next_out = (Bytef *)out->data + out->len;
        zlib->avail_out = (uInt)room;
        ensure(deflate(zlib, flush) != Z_STREAM_ERROR);
        out->len += room - zlib->avail_out;
    } while (zlib->avail_out == 0);
    export->lines.len = 0;
}

bool export_file_end(struct export *export)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    char name[NAME_BYTES + 1] = {0};
    pack(export, Z_FINISH);
    ensure(deflateReset(&export->zlib) == Z_OK);
    for (unsigned i = 0; i < NAME_BYTES; i++)
        name[i] = letters[random_below(&export->random, sizeof letters - 1)];
    struct slice key = arena_printf(&export->arena, "%.*s/%s.%s.gz", SLICE_ARG(export->data_folder), name,
                                    export->is_ion ? "ion" : "json");
    struct slice bytes = buf_view(&export->packed);
    if (!buckets_put(export->run->transfer->buckets, export->bucket, key, bytes, &export->failure))
        return false;
    manifest_put_file(&export->files, key, bytes, export->file_items);
    export->run->job.bytes += (int64_t)bytes.len;
    export->packed.len = 0;
    export->file_items = 0;
    return true;
}

/* ---- lines ---- */

/* Whether the filter takes it. */
static bool takes(const struct export *export, const struct map *item)
{
    return !export->filter.condition || condition_holds(export->filter.condition, item);
}

/* ,"Name":{...} or ,Name:{...}: what the projection takes of the item. */
static void put_image(struct export *export, struct arena *arena, const char *name, const struct map *item)
{
    const struct projection *projection = export->filter.projection;
    struct map part = projection ? projection_apply(arena, projection, item) : *item;
    if (export->is_ion) {
        buf_printf(&export->lines, ",%s:", name);
        ion_struct_put(&export->lines, &part);
    } else {
        buf_printf(&export->lines, ",\"%s\":", name);
        api_put_item_json(&export->lines, &part);
    }
}

/* Behind a line. `bytes`: what was read is charged. */
static bool end_line(struct export *export, size_t bytes, bool has_line)
{
    struct api_job *job = &export->run->job;
    job->items += has_line;
    export->file_items += has_line;
    job->billed_bytes += (int64_t)bytes;
    if (export->lines.len < LINE_BYTES) return true;
    pack(export, Z_NO_FLUSH);
    return export->packed.len < LIMIT_TRANSFER_FILE_BYTES || export_file_end(export);
}

bool export_item(void *context, struct slice key, struct slice encoded)
{
    struct export *export = context;
    const struct api_filter *filter = &export->filter;
    struct buf *lines = &export->lines;
    struct arena arena = {0};
    struct map item;
    bool is_plain = !export->is_ion && !filter->condition && !filter->projection, has_line = false;
    (void)key;
    if (export->failure.code || transfer_run_is_stopped(export->run)) return false;
    if (is_plain) {
        buf_text(lines, "{\"Item\":");
        has_line = api_put_encoded_item_json(lines, encoded);
        export->is_damaged = !has_line;
        buf_text(lines, "}\n");
    } else if (item_decode(&arena, encoded, &item)) {
        has_line = takes(export, &item);
        if (has_line && filter->projection) item = projection_apply(&arena, filter->projection, &item);
        if (has_line && export->is_ion) {
            ion_item_put(lines, &item);
        } else if (has_line) {
            buf_text(lines, "{\"Item\":");
            api_put_item_json(lines, &item);
            buf_text(lines, "}\n");
        }
    } else {
        export->is_damaged = true;
    }
    arena_free(&arena);
    return !export->is_damaged && end_line(export, item_encoded_size(encoded), has_line);
}

static struct map keys_of(struct arena *arena, const struct table *table, const struct map *item)
{
    struct map keys = {.attributes = arena_array(arena, struct attribute, 2)};
    for (uint32_t i = 0; i < item->count; i++) {
        struct slice name = item->attributes[i].name;
        bool is_key = slice_equal(name, table->keys.hash) ||
                      (table->keys.range.len && slice_equal(name, table->keys.range));
        if (is_key && keys.count < 2) keys.attributes[keys.count++] = item->attributes[i];
    }
    return keys;
}

/* The service's form: what is new decides whether the filter takes it, or what was there of an item that is gone. */
bool export_change(struct export *export, const struct export_change *change)
{
    struct buf *lines = &export->lines;
    struct arena arena = {0};
    struct map before = {0}, after = {0};
    bool was = change->before.len > 0, is = change->after.len > 0, has_line = false;
    if (export->failure.code || transfer_run_is_stopped(export->run)) return false;
    export->is_damaged = (was && !item_decode(&arena, change->before, &before)) ||
                         (is && !item_decode(&arena, change->after, &after));
    const struct map *latest = is ? &after : &before;
    if (!export->is_damaged) has_line = (was || is) && takes(export, latest);
    if (has_line) {
        struct map keys = keys_of(&arena, export->table, latest);
        buf_printf(lines,
                   export->is_ion ? "$ion_1_0 {Record:{Metadata:{WriteTimestampMicros:%lld.},Keys:"
                                  : "{\"Metadata\":{\"WriteTimestampMicros\":{\"N\":\"%lld\"}},\"Keys\":",
                   (long long)change->time_us);
        if (export->is_ion)
            ion_struct_put(lines, &keys);
        else
            api_put_item_json(lines, &keys);
        if (was && change->has_before) put_image(export, &arena, "OldImage", &before);
        if (is) put_image(export, &arena, "NewImage", &after);
        buf_slice(lines, export->is_ion ? SLICE("}}\n") : SLICE("}\n"));
    }
    arena_free(&arena);
    return !export->is_damaged && end_line(export,
                                           (was ? item_encoded_size(change->before) : 0) +
                                               (is ? item_encoded_size(change->after) : 0),
                                           has_line);
}
