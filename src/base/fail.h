/* Two ways to stop: `ensure` for what only a bug can break (always compiled in), and running out of memory,
 * which ends here and nowhere else. No request can cause the latter by its size: limits.h bounds them all. */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include <stddef.h>

#define ensure(condition) ((condition) ? (void)0 : fail_ensure(#condition, __FILE__, __LINE__))

_Noreturn void fail_ensure(const char *condition, const char *file, int line);

/* malloc, aligned_alloc, calloc and realloc that return or abort. Free with free(). */
void *must_alloc(size_t bytes);
void *must_align(size_t alignment, size_t bytes); /* bytes: any number */
void *must_zero(size_t count, size_t bytes);
void *must_realloc(void *old, size_t bytes);

#endif
