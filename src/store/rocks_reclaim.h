/* Gives back the disk space of large ranges that were deleted, without making the writer wait for it. */
#ifndef STORE_ROCKS_RECLAIM_H
#define STORE_ROCKS_RECLAIM_H

#include <pthread.h>
#include <rocksdb/c.h>

#include "store/store.h"

struct reclaim {
    rocksdb_t *db;
    pthread_mutex_t lock; /* over all below */
    pthread_cond_t more;
    struct store_batch ranges; /* to be compacted */
    unsigned held;             /* how often the deletion of files was put off for them */
    bool stopping, started;
    pthread_t thread;
};

void reclaim_init(struct reclaim *reclaim, rocksdb_t *db); /* keeps db; at its address until reclaim_stop */
/* Ends at once, also in the midst of a compaction: what is left is compacted some day anyway. */
void reclaim_stop(struct reclaim *reclaim);

/* Called by the writer, after a durable batch has put a range tombstone over from <= key < to and nothing
 * behind it. NULL, or RocksDB's words when that failed. */
char *reclaim_range(struct reclaim *reclaim, struct slice from, struct slice to);

#endif
