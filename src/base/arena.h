/* One arena per request: allocate freely, free everything at once. What an arena returned lives until its
 * reset. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct arena_block;
struct buf;

struct arena {
    struct arena_block *blocks; /* newest first */
    char *at, *end;
    size_t total_bytes; /* of all blocks, to see what a request cost */
};

/* A zeroed arena is a valid empty one. */
void arena_free(struct arena *arena);
/* Forgets everything but keeps a block for the next request. */
void arena_reset(struct arena *arena);

/* How far an arena is filled. Zeroed: it is empty. */
struct arena_mark {
    struct arena_block *block;
    char *at;
};
struct arena_mark arena_mark(const struct arena *arena);
/* Forgets what was allocated since the mark was taken, and gives its blocks back. */
void arena_rewind(struct arena *arena, struct arena_mark mark);

void *arena_alloc_slow(struct arena *arena, size_t bytes);

/* Aligned for any type; contents undefined. */
static inline void *arena_alloc(struct arena *arena, size_t bytes)
{
    bytes = ((bytes ? bytes : 1) + 15) & ~(size_t)15; /* never NULL, not even for nothing */
    if ((size_t)(arena->end - arena->at) < bytes) return arena_alloc_slow(arena, bytes);
    void *memory = arena->at;
    arena->at += bytes;
    return memory;
}

void *arena_zero(struct arena *arena, size_t bytes);
struct slice arena_copy(struct arena *arena, struct slice bytes);
/* A copy of what the buf holds; the buf is freed. */
struct slice arena_take(struct arena *arena, struct buf *buf);
struct slice arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
struct slice arena_vprintf(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Room for one more element in an array that began as NULL; outgrown ones are left to the arena. */
void *arena_grow(struct arena *arena, void *array, uint32_t count, uint32_t *capacity, size_t size);

/* An array of count elements in the arena. */
#define arena_array(arena, type, count) ((type *)arena_alloc((arena), sizeof(type) * (count)))
#define arena_new(arena, type)          ((type *)arena_zero((arena), sizeof(type)))

#endif
