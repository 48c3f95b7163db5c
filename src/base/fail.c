/* Where the program stops because of itself. */
#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>

void fail_ensure(const char *condition, const char *file, int line)
{
    fprintf(stderr, "quipu: bug: %s does not hold at %s:%d\n", condition, file, line);
    abort();
}

static void *or_abort(void *memory)
{
    if (!memory) {
        fputs("quipu: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *must_alloc(size_t bytes)
{
    return or_abort(malloc(bytes ? bytes : 1));
}

void *must_align(size_t alignment, size_t bytes)
{
    size_t blocks = bytes ? (bytes + alignment - 1) / alignment : 1;
    return or_abort(aligned_alloc(alignment, blocks * alignment));
}

void *must_zero(size_t count, size_t bytes)
{
    return or_abort(calloc(count ? count : 1, bytes ? bytes : 1));
}

void *must_realloc(void *old, size_t bytes)
{
    return or_abort(realloc(old, bytes ? bytes : 1));
}
