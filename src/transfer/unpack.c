/* Objects as they are stored into the bytes that they hold: gzip (also several members one after the other, as tools
 * that append make them), Zstandard (frames likewise), or nothing. The output is as long as the caller asks for,
 * whatever an object that is small and hostile unfolds to. */
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/fail.h"
#include "transfer/formats.h"

#define INPUT_BYTES (64 * 1024)
#define GZIP_WINDOW (15 + 16) /* zlib's way to say: gzip's header, and no other */

struct unpack {
    struct transfer_source *source;
    enum transfer_compression compression;
    char input[INPUT_BYTES];
    size_t at, len; /* of what is in input */
    bool is_begun;  /* a member or frame has bytes that are not unpacked yet */
    bool is_over;   /* the source has no more */
    z_stream zlib;
    ZSTD_DStream *zstd;
};

struct unpack *unpack_open(struct transfer_source *source, enum transfer_compression compression)
{
    struct unpack *unpack = must_zero(1, sizeof *unpack);
    unpack->source = source;
    unpack->compression = compression;
    if (compression == TRANSFER_GZIP) ensure(inflateInit2(&unpack->zlib, GZIP_WINDOW) == Z_OK);
    if (compression == TRANSFER_ZSTD) {
        unpack->zstd = ZSTD_createDStream();
        ensure(unpack->zstd);
        /* A frame may ask for a window of gigabytes; the usual limit of 128 MB is more than any level uses. */
        ensure(!ZSTD_isError(
            ZSTD_DCtx_setParameter(unpack->zstd, ZSTD_d_windowLogMax, LIMIT_TRANSFER_WINDOW_LOG)));
    }
    return unpack;
}

void unpack_close(struct unpack *unpack)
{
    if (unpack->compression == TRANSFER_GZIP) inflateEnd(&unpack->zlib);
    ZSTD_freeDStream(unpack->zstd);
    free(unpack);
}

static bool fill(struct unpack *unpack, const char **fault)
{
    if (unpack->at < unpack->len || unpack->is_over) return true;
    ssize_t got = unpack->source->read(unpack->source, unpack->input, sizeof unpack->input);
    if (got < 0) {
        *fault = unpack->source->fault;
        return false;
    }
    unpack->at = 0;
    unpack->len = (size_t)got;
    unpack->is_over = got == 0;
    return true;
}

static bool take_gzip(struct unpack *unpack, char *out, size_t *room, const char **fault)
{
    z_stream *zlib = &unpack->zlib;
    zlib->next_in = (Bytef *)unpack->input + unpack->at;
    zlib->avail_in = (uInt)(unpack->len - unpack->at);
    zlib->next_out = (Bytef *)out;
    zlib->avail_out = (uInt)*room;
    unpack->is_begun = true;
    int result = inflate(zlib, Z_NO_FLUSH);
    unpack->at = unpack->len - zlib->avail_in;
    *room = zlib->avail_out;
    if (result == Z_STREAM_END) {
        unpack->is_begun = false;
        return inflateReset(zlib) == Z_OK;
    }
    if (result == Z_OK || result == Z_BUF_ERROR) return true;
    *fault = "it is not gzip, or damaged";
    return false;
}

static bool take_zstd(struct unpack *unpack, char *out, size_t *room, const char **fault)
{
    ZSTD_inBuffer input = {unpack->input, unpack->len, unpack->at};
    ZSTD_outBuffer output = {out, *room, 0};
    size_t result = ZSTD_decompressStream(unpack->zstd, &output, &input);
    unpack->at = input.pos;
    *room -= output.pos;
    unpack->is_begun = result != 0;
    if (!ZSTD_isError(result)) return true;
    *fault = "it is not Zstandard, or damaged";
    return false;
}

static void take_plain(struct unpack *unpack, char *out, size_t *room)
{
    size_t rest = unpack->len - unpack->at, count = rest < *room ? rest : *room;
    memcpy(out, unpack->input + unpack->at, count);
    unpack->at += count;
    *room -= count;
}

bool unpack_read(struct unpack *unpack, struct buf *out, size_t most, bool *is_end, const char **fault)
{
    *is_end = false;
    buf_reserve(out, most);
    for (;;) {
        size_t room = most;
        bool fine = true;
        if (!fill(unpack, fault)) return false;
        bool is_dry = unpack->is_over && unpack->at == unpack->len;
        if (is_dry && !unpack->is_begun) {
            *is_end = true;
            return true;
        }
        if (unpack->compression == TRANSFER_NONE)
            take_plain(unpack, out->data + out->len, &room);
        else if (unpack->compression == TRANSFER_GZIP)
            fine = take_gzip(unpack, out->data + out->len, &room, fault);
        else
            fine = take_zstd(unpack, out->data + out->len, &room, fault);
        if (!fine) return false;
        out->len += most - room;
        if (room < most) return true;
        if (is_dry) {
            *fault = "it is cut off";
            return false;
        }
    }
}
