/* Blocks of the log: written once, checked whole before a byte of them is believed. */
#include "backup/block.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"

#define LEVEL      1 /* of zstd: the server compresses beside its work */
#define BATCH_HEAD 12
#define CHECKED    (BLOCK_HEAD - 8)
static const struct slice words = SLICE("QUIPUBL2");

void block_add(struct block_writer *writer, int64_t time_ms, struct slice bytes)
{
    ensure(bytes.len <= LIMIT_BACKUP_BLOCK_BYTES);
    writer->last_at = writer->raw.len;
    buf_u64(&writer->raw, (uint64_t)time_ms);
    buf_u32(&writer->raw, (uint32_t)bytes.len);
    buf_slice(&writer->raw, bytes);
    writer->count++;
}

static uint64_t mark_of(struct slice raw)
{
    uint64_t hash = hash_bytes(raw);
    return hash ? hash : 1;
}

uint64_t batch_mark(int64_t time_ms, struct slice bytes)
{
    struct block_writer writer = {0};
    block_add(&writer, time_ms, bytes);
    uint64_t mark = mark_of(buf_view(&writer.raw));
    block_writer_free(&writer);
    return mark;
}

uint64_t block_finish(struct block_writer *writer, uint64_t source, uint64_t first, uint64_t before,
                      int64_t until_ms, struct buf *out)
{
    uint64_t last = writer->count ? mark_of(slice_from(buf_view(&writer->raw), writer->last_at)) : before;
    size_t start = out->len, room = writer->raw.len ? ZSTD_compressBound(writer->raw.len) : 0, stored = 0;
    ensure(writer->raw.len <= UINT32_MAX && room <= UINT32_MAX);
    buf_reserve(out, BLOCK_HEAD + room);
    if (room) {
        stored = ZSTD_compress(out->data + start + BLOCK_HEAD, room, writer->raw.data, writer->raw.len,
                               LEVEL);
        ensure(!ZSTD_isError(stored));
    }
    buf_slice(out, words);
    buf_u64(out, source);
    buf_u64(out, first);
    buf_u64(out, before);
    buf_u64(out, last);
    buf_u64(out, (uint64_t)until_ms);
    buf_u32(out, writer->count);
    buf_u32(out, (uint32_t)writer->raw.len);
    buf_u32(out, (uint32_t)stored);
    buf_u32(out, 0);
    buf_u64(out, hash_bytes((struct slice){out->data + start + BLOCK_HEAD, stored}));
    buf_u64(out, hash_bytes((struct slice){out->data + start, CHECKED}));
    out->len += stored;
    writer->raw.len = 0;
    writer->count = 0;
    return last;
}

void block_writer_free(struct block_writer *writer)
{
    buf_free(&writer->raw);
}

bool block_head_read(struct slice bytes, struct block_head *head)
{
    const char *at = bytes.data;
    if (bytes.len < BLOCK_HEAD || !slice_starts(bytes, words)) return false;
    if (hash_bytes((struct slice){at, CHECKED}) != bytes_u64(at + CHECKED)) return false;
    *head = (struct block_head){.source = bytes_u64(at + 8),
                                .first = bytes_u64(at + 16),
                                .before = bytes_u64(at + 24),
                                .last = bytes_u64(at + 32),
                                .until_ms = (int64_t)bytes_u64(at + 40),
                                .count = bytes_u32(at + 48),
                                .raw_bytes = bytes_u32(at + 52),
                                .stored_bytes = bytes_u32(at + 56),
                                .checksum = bytes_u64(at + 64)};
    return head->raw_bytes <= LIMIT_BACKUP_BLOCK_BYTES + LIMIT_BACKUP_READ_BYTES;
}

/* The batches; with no visitor only whether they are all there. */
static bool walk(const struct block_head *head, struct slice raw, block_visitor *visitor, void *context)
{
    for (uint32_t i = 0; i < head->count; i++) {
        if (raw.len < BATCH_HEAD) return false;
        size_t len = bytes_u32(raw.data + 8);
        if (raw.len - BATCH_HEAD < len) return false;
        struct block_batch batch = {
            head->first + i, (int64_t)bytes_u64(raw.data), {raw.data + BATCH_HEAD, len}};
        if (visitor && !visitor(context, &batch)) return true;
        raw = slice_from(raw, BATCH_HEAD + len);
    }
    return !raw.len;
}

bool block_visit(const struct block_head *head, struct slice stored, block_visitor *visitor, void *context)
{
    if (stored.len != head->stored_bytes || hash_bytes(stored) != head->checksum) return false;
    if (!head->raw_bytes) return head->count == 0 && !stored.len;
    char *raw = must_alloc(head->raw_bytes);
    struct slice all = {raw, head->raw_bytes};
    bool fine = ZSTD_decompress(raw, head->raw_bytes, stored.data, stored.len) == head->raw_bytes &&
                walk(head, all, NULL, NULL);
    if (fine && visitor) walk(head, all, visitor, context);
    free(raw);
    return fine;
}
