/* A run of batches of the log as one compressed, checked piece of bytes: what travels over HTTP and what a piece of
 * the target's log consists of.
 *
 * A head of BLOCK_HEAD bytes, numbers big-endian: the words "QUIPUBL2"; the source; the number of the first batch; the
 * mark of the batch before that; the mark of the last one; up to which moment everything is known (in ms: no later
 * batch of the source is older); how many batches there are; the length before and after compression; the checksum of
 * what follows; the checksum of the head up to here. Then the batches, compressed with zstd, each its time, its length
 * and its bytes. A block without batches tells of a moment only.
 *
 * A batch's mark tells it from others of its number: a data folder that was copied or set back writes such. So a block
 * belongs behind a batch of that number and that mark alone. */
#ifndef BACKUP_BLOCK_H
#define BACKUP_BLOCK_H

#include "backup/backup.h"

#define BLOCK_HEAD 80

struct block_head {
    uint64_t source, first;
    uint64_t before, last; /* marks; 0: not known */
    uint32_t count;
    int64_t until_ms;
    uint32_t raw_bytes, stored_bytes;
    uint64_t checksum;
};

/* Collects batches; zeros are an empty one. */
struct block_writer {
    struct buf raw;
    size_t last_at;
    uint32_t count;
};
void block_add(struct block_writer *writer, int64_t time_ms, struct slice bytes);
/* Appends the block, and empties the writer. The mark of its last batch; without any, the one before it. */
uint64_t block_finish(struct block_writer *writer, uint64_t source, uint64_t first, uint64_t before,
                      int64_t until_ms, struct buf *out);
void block_writer_free(struct block_writer *writer);

/* Never 0. */
uint64_t batch_mark(int64_t time_ms, struct slice bytes);

/* The head at the beginning of the bytes; false when there is none. */
bool block_head_read(struct slice bytes, struct block_head *head);

struct block_batch {
    uint64_t number;
    int64_t time_ms;
    struct slice bytes;
};
/* Answers false to stop. */
typedef bool block_visitor(void *context, const struct block_batch *batch);
/* Checks what follows the head, all of it, and then visits its batches. False: it is not as it was written. */
bool block_visit(const struct block_head *head, struct slice stored, block_visitor *visitor, void *context);

#endif
