/* A header field of HTTP. Net makes them of bytes; rest decides by them without knowing a socket. */
#ifndef BASE_HTTP_H
#define BASE_HTTP_H

#include <stdint.h>

#include "base/slice.h"

struct http_header {
    struct slice name, value; /* name as it came; compare with slice_equal_ignoring_case */
};

/* The value of the first field with this name, or an empty slice with NULL data. */
struct slice http_field_find(const struct http_header *headers, uint32_t count, struct slice name);

#endif
