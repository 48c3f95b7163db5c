/* Growing bytes, and the number encodings that the stored formats share. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/print.h"

#define QUICK_BYTES 4096 /* below it buffers grow in larger steps: requests and replies mostly end there */

void buf_free(struct buf *buf)
{
    free(buf->data);
    *buf = (struct buf){0};
}

void buf_grow(struct buf *buf, size_t more)
{
    size_t cap = !buf->cap ? 256 : buf->cap < QUICK_BYTES ? buf->cap * 4 : buf->cap * 2;
    if (cap < buf->len + more) cap = buf->len + more;
    buf->data = must_realloc(buf->data, cap);
    buf->cap = cap;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t len = print_text(buf->cap ? buf->data + buf->len : NULL, buf->cap - buf->len, format, args);
    if (len >= buf->cap - buf->len) {
        buf_reserve(buf, len + 1);
        print_text(buf->data + buf->len, len + 1, format, again);
    }
    buf->len += len;
    va_end(again);
    va_end(args);
}

void buf_varint(struct buf *buf, uint64_t value)
{
    buf_reserve(buf, 10);
    while (value >= 0x80) {
        buf->data[buf->len++] = (char)(value | 0x80);
        value >>= 7;
    }
    buf->data[buf->len++] = (char)value;
}

bool varint_take(struct slice *from, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64 && from->len; shift += 7) {
        unsigned char byte = (unsigned char)from->data[0];
        *from = slice_from(*from, 1);
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return true;
        }
    }
    return false;
}

void buf_u32(struct buf *buf, uint32_t value)
{
    unsigned char bytes[4] = {(unsigned char)(value >> 24), (unsigned char)(value >> 16),
                              (unsigned char)(value >> 8), (unsigned char)value};
    buf_put(buf, bytes, sizeof bytes);
}

void buf_u64(struct buf *buf, uint64_t value)
{
    buf_u32(buf, (uint32_t)(value >> 32));
    buf_u32(buf, (uint32_t)value);
}

uint32_t bytes_u32(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

uint64_t bytes_u64(const char *bytes)
{
    return (uint64_t)bytes_u32(bytes) << 32 | bytes_u32(bytes + 4);
}

void buf_decimal(struct buf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    buf_put(buf, digits + at, sizeof digits - at);
}
