/* Finds a header field by its name. */
#include "base/http.h"

struct slice http_field_find(const struct http_header *headers, uint32_t count, struct slice name)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slice candidate = headers[i].name;
        if (candidate.len != name.len || (candidate.data[0] ^ name.data[0]) & ~0x20) continue;
        if (slice_equal_ignoring_case(candidate, name)) return headers[i].value;
    }
    return SLICE_NONE;
}
