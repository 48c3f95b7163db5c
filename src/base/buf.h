/* A growing run of bytes that owns its memory. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

struct buf {
    char *data;
    size_t len, cap;
};

/* A zeroed buf is a valid empty one. */
void buf_free(struct buf *buf);
void buf_grow(struct buf *buf, size_t more);
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void buf_reserve(struct buf *buf, size_t more)
{
    if (buf->cap - buf->len < more) buf_grow(buf, more);
}

static inline void buf_put(struct buf *buf, const void *data, size_t len)
{
    if (!len) return;
    buf_reserve(buf, len);
    memcpy(buf->data + buf->len, data, len);
    buf->len += len;
}

static inline void buf_byte(struct buf *buf, unsigned char byte)
{
    buf_reserve(buf, 1);
    buf->data[buf->len++] = (char)byte;
}

static inline void buf_slice(struct buf *buf, struct slice bytes)
{
    buf_put(buf, bytes.data, bytes.len);
}

/* For string literals: the length is known when compiling. */
#define buf_text(buf, literal) buf_put((buf), "" literal, sizeof(literal) - 1)

static inline struct slice buf_view(const struct buf *buf)
{
    return (struct slice){buf->data, buf->len};
}

/* Unsigned numbers, seven bits a byte, low ones first. */
void buf_varint(struct buf *buf, uint64_t value);
/* Reads one from the front of *from and moves on; false when it is cut off or too long. */
bool varint_take(struct slice *from, uint64_t *value);

/* Big-endian, so that bytewise order is numeric order. */
void buf_u32(struct buf *buf, uint32_t value);
void buf_u64(struct buf *buf, uint64_t value);
uint32_t bytes_u32(const char *bytes);
uint64_t bytes_u64(const char *bytes);

/* Decimal text of a number. */
void buf_decimal(struct buf *buf, uint64_t value);

#endif
