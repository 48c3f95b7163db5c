/* Blocks double in size up to a megabyte, so that a small request costs one malloc and a large one a few. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/print.h"

#define ARENA_FIRST_BYTES 4000 /* a request that waits takes this as long as it waits */
#define ARENA_BLOCK_MAX   (1024 * 1024)
#define GROWS_FROM        8 /* elements of an array whose number is not known before its end */
#define ARENA_KEEP_BYTES                                                                                     \
    16000 /* a larger block is given back at reset; a call of a pattern needs half of it */

struct arena_block {
    struct arena_block *older;
    size_t bytes;
    _Alignas(16) char data[];
};

static void arena_use(struct arena *arena, struct arena_block *block)
{
    arena->at = block->data;
    arena->end = block->data + block->bytes;
}

void *arena_alloc_slow(struct arena *arena, size_t bytes)
{
    size_t want = arena->blocks ? arena->blocks->bytes * 2 : ARENA_FIRST_BYTES;
    if (want > ARENA_BLOCK_MAX) want = ARENA_BLOCK_MAX;
    if (want < bytes) want = bytes;
    struct arena_block *block = must_alloc(sizeof *block + want);
    block->bytes = want;
    block->older = arena->blocks;
    arena->blocks = block;
    arena->total_bytes += want;
    arena_use(arena, block);
    arena->at += bytes;
    return block->data;
}

/* Frees blocks, the newest first, down to this one. */
static struct arena_block *blocks_free(struct arena_block *newest, const struct arena_block *down_to)
{
    while (newest != down_to) {
        struct arena_block *older = newest->older;
        free(newest);
        newest = older;
    }
    return newest;
}

void arena_free(struct arena *arena)
{
    blocks_free(arena->blocks, NULL);
    *arena = (struct arena){0};
}

/* Keeps the largest block that may be kept: the next request is most often like the last. */
void arena_reset(struct arena *arena)
{
    struct arena_block *kept = arena->blocks;
    while (kept && kept->bytes > ARENA_KEEP_BYTES) kept = kept->older;
    blocks_free(arena->blocks, kept);
    *arena = (struct arena){.blocks = kept};
    if (!kept) return;
    kept->older = blocks_free(kept->older, NULL);
    arena->total_bytes = kept->bytes;
    arena_use(arena, kept);
}

struct arena_mark arena_mark(const struct arena *arena)
{
    return (struct arena_mark){arena->blocks, arena->at};
}

void arena_rewind(struct arena *arena, struct arena_mark mark)
{
    while (arena->blocks != mark.block) {
        struct arena_block *newest = arena->blocks;
        ensure(newest); /* the mark is of this arena, and not older than its last reset */
        arena->blocks = newest->older;
        arena->total_bytes -= newest->bytes;
        free(newest);
    }
    arena->at = mark.at;
    arena->end = mark.block ? mark.block->data + mark.block->bytes : NULL;
}

void *arena_zero(struct arena *arena, size_t bytes)
{
    return memset(arena_alloc(arena, bytes), 0, bytes);
}

void *arena_grow(struct arena *arena, void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity) return array;
    *capacity = *capacity ? *capacity * 2 : GROWS_FROM;
    void *larger = arena_alloc(arena, *capacity * size);
    if (count) memcpy(larger, array, count * size);
    return larger;
}

struct slice arena_copy(struct arena *arena, struct slice bytes)
{
    char *copy = arena_alloc(arena, bytes.len + 1);
    if (bytes.len) memcpy(copy, bytes.data, bytes.len);
    copy[bytes.len] = 0;
    return (struct slice){copy, bytes.len};
}

struct slice arena_take(struct arena *arena, struct buf *buf)
{
    struct slice copy = arena_copy(arena, buf_view(buf));
    buf_free(buf);
    return copy;
}

/* Written where there is room, once; only what does not fit into the block is written again. */
struct slice arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    char *here = arena->at;
    size_t room = (size_t)(arena->end - here), len = print_text(here, room, format, args);
    char *text = arena_alloc(arena, len + 1);
    if (text != here) print_text(text, len + 1, format, again);
    va_end(again);
    return (struct slice){text, len};
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    struct slice text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
