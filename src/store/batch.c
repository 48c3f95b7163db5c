/* A batch is one run of bytes: for each entry its kind (one byte), the key's length and the key, and, except
 * for a delete, the length and bytes of the value (of a range: of the key behind its end). Lengths are
 * varints. The journal stores these bytes: neither they nor the numbers of kinds may change within its version. */
#include "store/batch.h"

#include "base/fail.h"

static void batch_bytes(struct store_batch *batch, struct slice bytes)
{
    buf_varint(&batch->entries, bytes.len);
    buf_slice(&batch->entries, bytes);
}

static void batch_begin(struct store_batch *batch, enum batch_kind kind, struct slice key)
{
    buf_byte(&batch->entries, (unsigned char)kind);
    batch_bytes(batch, key);
    batch->count++;
}

void store_batch_put(struct store_batch *batch, struct slice key, struct slice value)
{
    batch_begin(batch, BATCH_PUT, key);
    batch_bytes(batch, value);
}

void store_batch_delete(struct store_batch *batch, struct slice key)
{
    batch_begin(batch, BATCH_DELETE, key);
}

void store_batch_delete_range(struct store_batch *batch, struct slice from, struct slice to)
{
    ensure(to.len); /* nothing is behind the end of a store, so a range must name its own */
    batch_begin(batch, BATCH_DELETE_RANGE, from);
    batch_bytes(batch, to);
}

void store_batch_clear(struct store_batch *batch)
{
    batch->entries.len = 0;
    batch->count = 0;
}

void store_batch_free(struct store_batch *batch)
{
    buf_free(&batch->entries);
    batch->count = 0;
}

struct batch_reader batch_read(const struct store_batch *batch)
{
    return (struct batch_reader){buf_view(&batch->entries)};
}

static struct slice take_bytes(struct slice *rest)
{
    uint64_t len;
    ensure(varint_take(rest, &len) && len <= rest->len);
    struct slice bytes = {rest->data, (size_t)len};
    *rest = slice_from(*rest, (size_t)len);
    return bytes;
}

bool batch_next(struct batch_reader *reader, struct batch_entry *entry)
{
    if (!reader->rest.len) return false;
    unsigned char kind = (unsigned char)reader->rest.data[0];
    ensure(kind <= BATCH_DELETE_RANGE);
    reader->rest = slice_from(reader->rest, 1);
    entry->kind = (enum batch_kind)kind;
    entry->key = take_bytes(&reader->rest);
    entry->value = entry->kind == BATCH_DELETE ? SLICE_NONE : take_bytes(&reader->rest);
    return true;
}

static bool skip_bytes(struct slice *rest)
{
    uint64_t len;
    if (!varint_take(rest, &len) || len > rest->len) return false;
    *rest = slice_from(*rest, (size_t)len);
    return true;
}

bool store_batch_from_bytes(struct slice bytes, struct store_batch *batch)
{
    struct slice rest = bytes;
    *batch = (struct store_batch){.entries = {(char *)(uintptr_t)bytes.data, bytes.len, bytes.len}};
    while (rest.len) {
        unsigned char kind = (unsigned char)rest.data[0];
        rest = slice_from(rest, 1);
        if (kind > BATCH_DELETE_RANGE || !skip_bytes(&rest)) return false;
        if (kind != BATCH_DELETE && !skip_bytes(&rest)) return false;
        batch->count++;
    }
    return true;
}

void store_batch_visit(const struct store_batch *batch, store_entry_visitor visitor, void *context)
{
    static const enum store_entry_kind kinds[] = {[BATCH_PUT] = STORE_ENTRY_PUT,
                                                  [BATCH_DELETE] = STORE_ENTRY_DELETE,
                                                  [BATCH_DELETE_RANGE] = STORE_ENTRY_DELETE_RANGE};
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry);)
        visitor(context, kinds[entry.kind], entry.key, entry.value);
}
