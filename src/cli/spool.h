/* Changes put aside in order, in a file without a name, until they may be applied: as many as come while a
 * table is being copied, without holding them in memory. */
#ifndef CLI_SPOOL_H
#define CLI_SPOOL_H

#include <stdio.h>

#include "base/buf.h"

struct spool {
    FILE *file; /* NULL: nothing was put aside yet */
    unsigned long long count;
    struct buf text;
};

/* False after complaining: the disk is full. */
bool spool_add(struct spool *spool, struct slice json);
/* To the front, for reading; nothing may be added any more. */
bool spool_rewind(struct spool *spool);
/* The next one; lives until the next call. False when there are no more, or after complaining; see
 * spool_failed. */
bool spool_next(struct spool *spool, struct slice *json);
bool spool_failed(const struct spool *spool);
void spool_free(struct spool *spool);

#endif
