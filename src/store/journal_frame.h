/* The bytes of segments: a head at the beginning of a segment, frames behind it. */
#ifndef STORE_JOURNAL_FRAME_H
#define STORE_JOURNAL_FRAME_H

#include "base/buf.h"
#include "store/journal.h"

#define FRAME_HEAD_BYTES   64
#define FRAME_PAYLOAD_MOST (1024u * 1024 * 1024) /* a length beyond it is no length */

enum frame_kind { FRAME_NONE, FRAME_BATCH, FRAME_END, FRAME_CLOSE };

struct frame_head {
    enum frame_kind kind;
    uint64_t id, serial; /* of the journal, of the segment */
    uint64_t number;     /* of a mark: of the batch that comes next */
    uint64_t synced;
    int64_t time_ms;
    uint32_t length;   /* of the payload behind it */
    uint64_t checksum; /* of the payload */
};

/* Appends the frame, with zeros up to the end of its last block. */
void frame_put(struct buf *out, const struct frame_head *head, struct slice payload);
/* False: these FRAME_HEAD_BYTES are no head of a frame of the journal's segment. */
bool frame_read(const char *bytes, uint64_t id, uint64_t serial, struct frame_head *head);
bool frame_payload_is_whole(const struct frame_head *head, struct slice payload);
uint64_t frame_bytes(uint32_t payload_length); /* with what fills its last block */

struct segment_head {
    uint64_t id, serial, bytes;
};
/* Appends a block. */
void segment_head_put(struct buf *out, const struct segment_head *head);
enum segment_head_result { SEGMENT_HEAD_OK, SEGMENT_HEAD_NONE, SEGMENT_HEAD_NEWER };
enum segment_head_result segment_head_read(const char *bytes, struct segment_head *head);

#endif
