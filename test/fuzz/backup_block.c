/* Any bytes as the content of a block whose checksums are right, as a hostile server could send it, as a block, and as
 * the description of a base: nothing is read beyond the end, and every batch that is visited lies within. */
#include <zstd.h>

#include "backup/target.h"
#include "base/fail.h"
#include "base/hash.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static bool visit(void *context, const struct block_batch *batch)
{
    uint64_t *sum = context;
    if (batch->bytes.len) *sum += hash_bytes(batch->bytes);
    return true;
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct slice bytes = {(const char *)data, size};
    struct block_head head;
    struct backup_base base;
    char id[BACKUP_NAME_BYTES];
    uint64_t sum = 0;
    if (block_head_read(bytes, &head) && head.stored_bytes <= size - BLOCK_HEAD)
        block_visit(&head, (struct slice){bytes.data + BLOCK_HEAD, head.stored_bytes}, visit, &sum);
    if (size > 1) {
        char stored[4096];
        size_t raw = size - 1 < 2000 ? size - 1 : 2000, len = ZSTD_compress(stored, sizeof stored, data + 1, raw, 1);
        ensure(!ZSTD_isError(len));
        head = (struct block_head){.source = 1,
                                   .first = 1,
                                   .count = data[0],
                                   .raw_bytes = (uint32_t)raw,
                                   .stored_bytes = (uint32_t)len,
                                   .checksum = hash_bytes((struct slice){stored, len})};
        block_visit(&head, (struct slice){stored, len}, visit, &sum);
    }
    if (base_parse(bytes, &base, id)) {
        for (size_t i = 0; i < base.count; i++) ensure(disk_name_is_plain(slice_of(base.files[i].name)));
        backup_base_free(&base);
    }
    return 0;
}
