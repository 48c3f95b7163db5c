/* Any bytes as Ion: refused, or an item in JSON. However they are cut into pieces, the scan finds the same ends. */
#include "base/fail.h"
#include "base/raw.h"
#include "transfer/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct ion_scan whole = {0}, pieces = {0};
    size_t end = 0, at = 0;
    bool is_found = ion_scan(&whole, text, &end), is_found_again = false;
    while (!is_found_again && at < size)
        is_found_again = ion_scan(&pieces, (struct slice){text.data, at + 1}, &at);
    ensure(is_found == is_found_again && (!is_found || at == end));

    struct arena arena = {0};
    struct buf json = {0};
    const char *fault = NULL;
    if (ion_item_read(text, &json, &fault) == TRANSFER_FOUND) ensure(raw_is_json(&arena, buf_view(&json)));
    buf_free(&json);
    arena_free(&arena);
    return 0;
}
