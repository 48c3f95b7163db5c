/* Heads are big-endian, and end in a checksum of themselves; a frame's head also has one of its payload. Checksums are
 * XXH3 of 64 bits: as quick as CRC32C with the processor's help, everywhere, and no code of ours. */
#include "store/journal_frame.h"

#include "base/fail.h"
#include "base/hash.h"

#define FRAME_MAGIC     0x516a6672u /* "Qjfr" */
#define SEGMENT_MAGIC   0x516a7367u /* "Qjsg" */
#define SEGMENT_VERSION 1u
#define HEAD_SUM_AT     (FRAME_HEAD_BYTES - 4)

/* The upper half of a head's checksum. */
static uint32_t head_sum(const char *bytes)
{
    return (uint32_t)(hash_bytes((struct slice){bytes, HEAD_SUM_AT}) >> 32);
}

static void fill_block(struct buf *out, size_t start)
{
    size_t over = (out->len - start) % JOURNAL_BLOCK;
    if (!over) return;
    buf_reserve(out, JOURNAL_BLOCK - over);
    memset(out->data + out->len, 0, JOURNAL_BLOCK - over);
    out->len += JOURNAL_BLOCK - over;
}

uint64_t frame_bytes(uint32_t payload_length)
{
    uint64_t bytes = (uint64_t)FRAME_HEAD_BYTES + payload_length;
    return (bytes + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK * JOURNAL_BLOCK;
}

void frame_put(struct buf *out, const struct frame_head *head, struct slice payload)
{
    size_t start = out->len;
    ensure(payload.len <= FRAME_PAYLOAD_MOST && head->kind != FRAME_NONE);
    buf_u32(out, FRAME_MAGIC);
    buf_u32(out, (uint32_t)payload.len);
    buf_u64(out, head->id);
    buf_u64(out, head->serial);
    buf_u64(out, head->number);
    buf_u64(out, head->synced);
    buf_u64(out, (uint64_t)head->time_ms);
    buf_u64(out, hash_bytes(payload));
    buf_u32(out, (uint32_t)head->kind);
    buf_u32(out, head_sum(out->data + start));
    ensure(out->len - start == FRAME_HEAD_BYTES);
    buf_slice(out, payload);
    fill_block(out, start);
}

bool frame_read(const char *bytes, uint64_t id, uint64_t serial, struct frame_head *head)
{
    if (bytes_u32(bytes) != FRAME_MAGIC || bytes_u32(bytes + HEAD_SUM_AT) != head_sum(bytes)) return false;
    uint32_t kind = bytes_u32(bytes + 56);
    *head = (struct frame_head){.kind = (enum frame_kind)kind,
                                .length = bytes_u32(bytes + 4),
                                .id = bytes_u64(bytes + 8),
                                .serial = bytes_u64(bytes + 16),
                                .number = bytes_u64(bytes + 24),
                                .synced = bytes_u64(bytes + 32),
                                .time_ms = (int64_t)bytes_u64(bytes + 40),
                                .checksum = bytes_u64(bytes + 48)};
    return head->id == id && head->serial == serial && kind >= FRAME_BATCH && kind <= FRAME_CLOSE &&
           head->length <= FRAME_PAYLOAD_MOST && (kind == FRAME_BATCH || !head->length);
}

bool frame_payload_is_whole(const struct frame_head *head, struct slice payload)
{
    ensure(payload.len == head->length);
    return hash_bytes(payload) == head->checksum;
}

void segment_head_put(struct buf *out, const struct segment_head *head)
{
    size_t start = out->len;
    buf_u32(out, SEGMENT_MAGIC);
    buf_u32(out, SEGMENT_VERSION);
    buf_u64(out, head->id);
    buf_u64(out, head->serial);
    buf_u64(out, head->bytes);
    while (out->len - start < HEAD_SUM_AT) buf_byte(out, 0);
    buf_u32(out, head_sum(out->data + start));
    fill_block(out, start);
}

enum segment_head_result segment_head_read(const char *bytes, struct segment_head *head)
{
    if (bytes_u32(bytes) != SEGMENT_MAGIC || bytes_u32(bytes + HEAD_SUM_AT) != head_sum(bytes))
        return SEGMENT_HEAD_NONE;
    *head = (struct segment_head){bytes_u64(bytes + 8), bytes_u64(bytes + 16), bytes_u64(bytes + 24)};
    return bytes_u32(bytes + 4) == SEGMENT_VERSION ? SEGMENT_HEAD_OK : SEGMENT_HEAD_NEWER;
}
