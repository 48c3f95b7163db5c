/* Any bytes as CSV, in pieces whose size the first byte tells: the items are JSON, and the same as from one piece. */
#include "base/raw.h"
#include "unit/transfer_text.h"

static void read_all(struct buf *out, struct slice text, size_t piece)
{
    struct transfer_records_options options = {.format = TRANSFER_CSV};
    struct arena arena = {0};
    struct slice item;
    const char *fault;
    enum transfer_result result;
    struct transfer_records *records = open_text(text, piece, options);
    while ((result = transfer_records_next(records, &item, &fault)) != TRANSFER_END) {
        buf_byte(out, (unsigned char)result);
        if (result != TRANSFER_FOUND) continue;
        ensure(raw_is_json(&arena, item));
        arena_reset(&arena);
        buf_slice(out, item);
    }
    transfer_records_close(records);
    arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole = {0}, pieces = {0};
    if (size == 0) return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    read_all(&whole, text, 1 << 20);
    read_all(&pieces, text, 1 + data[0] % 16);
    ensure(slice_equal(buf_view(&whole), buf_view(&pieces)));
    buf_free(&whole);
    buf_free(&pieces);
    return 0;
}
