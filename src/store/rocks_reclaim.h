/* Gives back the disk space of large ranges that were deleted, without making the writer wait for it. */
#ifndef STORE_ROCKS_RECLAIM_H
#define STORE_ROCKS_RECLAIM_H

#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>

#include "store/store.h"

struct reclaim_ranges {
    struct store_batch list;
    bool is_written; /* something was put into one of them since */
};

struct reclaim {
    rocksdb_t *db;
    pthread_mutex_t lock; /* over all below, `waits` excepted when it is only read */
    pthread_cond_t more;
    struct reclaim_ranges next, current; /* current: those whose files the thread is about to drop */
    _Atomic bool waits;                  /* there are any */
    bool stopping, started;
    pthread_t thread;
};

void reclaim_init(struct reclaim *reclaim, rocksdb_t *db); /* keeps db; at its address until reclaim_stop */
/* Ends at once, also in the midst of a compaction: what is left is compacted some day anyway. RocksDB does nothing in
 * the background any more. */
void reclaim_stop(struct reclaim *reclaim);

/* ---- called by the writer ---- */

/* After a batch that is on disk, in the journal, has put a range tombstone over from <= key < to and nothing behind it.
 */
void reclaim_range(struct reclaim *reclaim, struct slice from, struct slice to);
/* Before a batch is handed to RocksDB. */
void reclaim_see(struct reclaim *reclaim, const struct store_batch *batch);
/* Whether the batch puts a key into one of the ranges. */
bool reclaim_puts_into(const struct store_batch *batch, const struct store_batch *ranges);

#endif
