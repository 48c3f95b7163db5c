/* zlib, one call per body. Compression is at its quickest level: it runs on the loop's thread, where others
 * wait. */
#include "net/gzip.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/fail.h"

#define GZIP_WINDOW_BITS    (15 + 16) /* the largest window, gzip's frame */
#define UNPACK_WINDOW_BITS  (15 + 32) /* gzip's frame or zlib's, whichever comes */
#define GZIP_MEMORY_LEVEL   8
#define UNPACK_FIRST_BYTES  (16 * 1024)
#define ZLIB_CALL_BYTES_MAX (1u << 30) /* zlib counts in unsigned int */

void gzip_free(struct gzip *gzip)
{
    if (gzip->deflate) deflateEnd(gzip->deflate);
    if (gzip->inflate) inflateEnd(gzip->inflate);
    free(gzip->deflate);
    free(gzip->inflate);
    *gzip = (struct gzip){0};
}

static z_stream *deflate_begin(struct gzip *gzip)
{
    if (gzip->deflate) {
        ensure(deflateReset(gzip->deflate) == Z_OK);
        return gzip->deflate;
    }
    gzip->deflate = must_zero(1, sizeof *gzip->deflate);
    ensure(deflateInit2(gzip->deflate, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL,
                        Z_DEFAULT_STRATEGY) == Z_OK);
    return gzip->deflate;
}

bool gzip_pack(struct gzip *gzip, struct slice bytes, struct buf *out)
{
    if (bytes.len == 0 || bytes.len > ZLIB_CALL_BYTES_MAX) return false;
    z_stream *stream = deflate_begin(gzip);
    buf_reserve(out, bytes.len);
    stream->next_in = (Bytef *)(uintptr_t)bytes.data;
    stream->avail_in = (uInt)bytes.len;
    stream->next_out = (Bytef *)out->data + out->len;
    stream->avail_out = (uInt)(bytes.len - 1);
    if (deflate(stream, Z_FINISH) != Z_STREAM_END) return false;
    out->len += stream->total_out;
    return true;
}

static z_stream *inflate_begin(struct gzip *gzip)
{
    if (gzip->inflate) {
        ensure(inflateReset(gzip->inflate) == Z_OK);
        return gzip->inflate;
    }
    gzip->inflate = must_zero(1, sizeof *gzip->inflate);
    ensure(inflateInit2(gzip->inflate, UNPACK_WINDOW_BITS) == Z_OK);
    return gzip->inflate;
}

/* One member of a gzip file, or one zlib stream. Takes its bytes from the front of *bytes. */
static enum gunzip member_unpack(z_stream *stream, struct slice *bytes, uint64_t max_len, struct buf *out)
{
    stream->next_in = (Bytef *)(uintptr_t)bytes->data;
    stream->avail_in = (uInt)bytes->len;
    for (;;) {
        buf_reserve(out, out->len < UNPACK_FIRST_BYTES ? UNPACK_FIRST_BYTES : out->len);
        size_t room = out->cap - out->len;
        if (room > max_len - out->len + 1) room = (size_t)(max_len - out->len) + 1;
        stream->next_out = (Bytef *)out->data + out->len;
        stream->avail_out = (uInt)room;
        int result = inflate(stream, Z_NO_FLUSH);
        out->len += room - stream->avail_out;
        if (out->len > max_len) return GUNZIP_TOO_LARGE;
        if (result == Z_STREAM_END) break;
        if (result != Z_OK || (stream->avail_in == 0 && stream->avail_out > 0)) return GUNZIP_MALFORMED;
    }
    *bytes = slice_from(*bytes, bytes->len - stream->avail_in);
    return GUNZIP_OK;
}

enum gunzip gzip_unpack(struct gzip *gzip, struct slice bytes, uint64_t max_bytes, struct buf *out)
{
    if (bytes.len > ZLIB_CALL_BYTES_MAX || max_bytes > ZLIB_CALL_BYTES_MAX) return GUNZIP_TOO_LARGE;
    uint64_t max_len = out->len + max_bytes;
    enum gunzip result = GUNZIP_MALFORMED;
    while (bytes.len) {
        result = member_unpack(inflate_begin(gzip), &bytes, max_len, out);
        if (result != GUNZIP_OK) break;
    }
    return result;
}
