/* Chunked bodies, decoded in place: the decoded bytes never need more room than the chunks did, so the body
 * ends up in one piece behind its head. Extensions are overlooked, trailer fields checked and set aside. */
#include "base/fail.h"
#include "base/limits.h"
#include "net/http_parse.h"

/* Where the decoding stands within the bytes at hand. */
struct cursor {
    const char *at, *end;
    char *to; /* decoded bytes go here; never ahead of at */
};

static enum http_progress refuse(struct http_chunks *chunks, int status, const char *reason)
{
    chunks->fault = (struct http_fault){status, reason};
    return HTTP_REFUSED;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "1f;name=value" CRLF */
static enum http_progress size_parse(struct http_chunks *chunks, struct cursor *cursor, uint64_t body_max)
{
    const char *p = cursor->at;
    uint64_t size = 0;
    for (int digit; p < cursor->end && (digit = hex_digit(*p)) >= 0; p++) {
        if (size > UINT64_MAX >> 4) return refuse(chunks, 413, "the body is too large");
        size = size << 4 | (uint64_t)digit;
    }
    bool digits = p > cursor->at;
    if (p < cursor->end && (!digits || (*p != ';' && *p != '\r')))
        return refuse(chunks, 400, "a chunk's size is malformed");
    p = http_text_end(p, cursor->end);
    if (p - cursor->at > LIMIT_CHUNK_LINE_BYTES)
        return refuse(chunks, 400, "a chunk's first line is too long");
    if (cursor->end - p < 2) {
        if (p < cursor->end && *p != '\r') return refuse(chunks, 400, "a chunk's first line is malformed");
        return HTTP_MORE;
    }
    if (p[0] != '\r' || p[1] != '\n') return refuse(chunks, 400, "a chunk's first line is malformed");
    if (size > body_max - chunks->body_bytes) return refuse(chunks, 413, "the body is too large");
    cursor->at = p + 2;
    chunks->left = size;
    chunks->state = size ? CHUNK_DATA : CHUNK_TRAILER;
    return HTTP_WHOLE;
}

static enum http_progress data_take(struct http_chunks *chunks, struct cursor *cursor)
{
    size_t here = (size_t)(cursor->end - cursor->at);
    if (here > chunks->left) here = (size_t)chunks->left;
    memmove(cursor->to, cursor->at, here);
    cursor->to += here;
    cursor->at += here;
    chunks->left -= here;
    chunks->body_bytes += here;
    if (chunks->left) return HTTP_MORE;
    chunks->state = CHUNK_DATA_END;
    return HTTP_WHOLE;
}

static enum http_progress data_end_parse(struct http_chunks *chunks, struct cursor *cursor)
{
    size_t here = (size_t)(cursor->end - cursor->at);
    if ((here > 0 && cursor->at[0] != '\r') || (here > 1 && cursor->at[1] != '\n'))
        return refuse(chunks, 400, "a chunk is longer than it says");
    if (here < 2) return HTTP_MORE;
    cursor->at += 2;
    chunks->state = CHUNK_SIZE;
    return HTTP_WHOLE;
}

/* One trailer field, or the empty line that ends the body. */
static enum http_progress trailer_parse(struct http_chunks *chunks, struct cursor *cursor, size_t trailer_max)
{
    const char *p = cursor->at;
    size_t here = (size_t)(cursor->end - p);
    if (here == 0 || (here == 1 && *p == '\r')) return HTTP_MORE;
    if (p[0] == '\r' && p[1] == '\n') {
        cursor->at = p + 2;
        chunks->state = CHUNK_DONE;
        return HTTP_WHOLE;
    }
    struct http_header field;
    enum http_progress progress = http_field_parse(&p, cursor->end, &field, &chunks->fault);
    size_t used = progress == HTTP_WHOLE ? (size_t)(p - cursor->at) : here;
    if (progress != HTTP_REFUSED && chunks->trailer_bytes + used > trailer_max)
        return refuse(chunks, 431, "the trailer is too large");
    if (progress != HTTP_WHOLE) return progress;
    chunks->trailer_bytes += used;
    if (chunks->trailer) buf_put(chunks->trailer, cursor->at, used);
    cursor->at = p;
    return HTTP_WHOLE;
}

enum http_progress http_chunks_decode(struct http_chunks *chunks, char *data, size_t len, uint64_t body_max,
                                      size_t trailer_max, size_t *body, size_t *rest)
{
    struct cursor cursor = {data, data + len, data};
    enum http_progress progress = HTTP_WHOLE;
    while (progress == HTTP_WHOLE && chunks->state != CHUNK_DONE) {
        switch (chunks->state) {
        case CHUNK_SIZE: progress = size_parse(chunks, &cursor, body_max); break;
        case CHUNK_DATA: progress = data_take(chunks, &cursor); break;
        case CHUNK_DATA_END: progress = data_end_parse(chunks, &cursor); break;
        case CHUNK_TRAILER: progress = trailer_parse(chunks, &cursor, trailer_max); break;
        case CHUNK_DONE: break;
        }
    }
    ensure(cursor.to <= cursor.at && cursor.at <= cursor.end);
    *body = (size_t)(cursor.to - data);
    *rest = (size_t)(cursor.end - cursor.at);
    memmove(cursor.to, cursor.at, *rest);
    return progress;
}
