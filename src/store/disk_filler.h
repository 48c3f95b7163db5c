/* RocksDB's memory table is filled while the next batch is on its way to the disk. A batch that is in the journal, and
 * synced, is done for the writer; a thread of its own hands it to RocksDB, one batch at a time, in their order. Until
 * then whoever reads the store waits (disk_filler_wait), so nobody can tell the difference: what was acknowledged is
 * what is read. A batch that RocksDB refuses stays in the journal for the next start; from then on nothing can be read,
 * and nothing written. */
#ifndef STORE_DISK_FILLER_H
#define STORE_DISK_FILLER_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/rocks.h"
#include "store/store.h"

struct disk_filler {
    struct store *rocks;
    pthread_mutex_t lock; /* over what follows, is_filling excepted when it is only read */
    pthread_cond_t more, done;
    _Atomic bool is_filling; /* RocksDB does not have `batch` yet; for good when it has refused it */
    _Atomic bool is_read;    /* somebody has read the store since the last batch */
    bool is_refused;         /* sentence in rocks->refusal */
    bool started, stopping;
    struct store_batch batch; /* the thread's while is_filling */
    struct rocks_mark mark;
    pthread_t thread;
};

void disk_filler_init(struct disk_filler *filler, struct store *rocks); /* keeps it */
/* RocksDB has everything, or never will, when it answers. */
void disk_filler_stop(struct disk_filler *filler);

/* ---- called by the writer, when nothing is being filled ---- */

/* Whether the thread should do it: a batch worth the hand-over, but not so large that readers would notice, and that
 * RocksDB takes at once. Not while the store is read between any two batches: readers would wait for more than the
 * writer gains. */
bool disk_filler_is_for(struct disk_filler *filler, const struct store_batch *batch);
void disk_filler_begin(struct disk_filler *filler, const struct store_batch *batch, struct rocks_mark mark);
/* The same, at once. The batch is in the journal, so it must get into RocksDB too, which may just have found the disk
 * full and goes on by itself when there is room. */
enum rocks_result disk_fill(struct store *rocks, const struct store_batch *batch, struct rocks_mark mark);

/* ---- for any thread ---- */

/* True when RocksDB has every batch that was begun before the call. False: it has refused one. */
bool disk_filler_wait(struct disk_filler *filler);
/* The same, for whoever is about to read. */
bool disk_filler_wait_to_read(struct disk_filler *filler);

#endif
