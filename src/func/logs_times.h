/* When what stands in a log was written. */
#ifndef FUNC_LOGS_TIMES_H
#define FUNC_LOGS_TIMES_H

#include "func/internal.h"

/* Notes that what stands from the position on was written then. */
void times_append(const char *path, uint64_t position, int64_t time_ms);
/* In the arena, in order. */
struct log_time *times_read(const char *path, struct arena *arena, uint32_t *count);
/* Forgets what was written before the position. */
void times_cut(const char *path, uint64_t first);

#endif
