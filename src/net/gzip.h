/* gzip over whole bodies. One of these per loop: zlib's state is large, so it is made at first use and then
 * reset. */
#ifndef NET_GZIP_H
#define NET_GZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

struct gzip {
    struct z_stream_s *deflate, *inflate;
};

void gzip_free(struct gzip *gzip);

/* Appends the compressed bytes to *out; false, and nothing appended, when that would not be shorter. */
bool gzip_pack(struct gzip *gzip, struct slice bytes, struct buf *out);

enum gunzip { GUNZIP_OK, GUNZIP_MALFORMED, GUNZIP_TOO_LARGE };

/* Appends what the bytes (gzip, one or several members, or zlib) decode to; stops beyond max_bytes. */
enum gunzip gzip_unpack(struct gzip *gzip, struct slice bytes, uint64_t max_bytes, struct buf *out);

#endif
