/* RocksDB's memory table is filled while the next batch is on its way to the disk. A batch that is in the journal, and
 * synced, is done for the writer; a thread of its own hands it to RocksDB, one batch at a time, in their order. Until
 * then whoever reads the store waits (disk_filler_wait), so nobody can tell the difference: what was acknowledged is
 * what is read. A batch that RocksDB refuses stays in the journal for the next start; from then on nothing can be read,
 * and nothing written.
 *
 * RocksDB may find the disk full between the sync of a batch and its hand-over. The batch is acknowledged all the same:
 * it lies in memory over RocksDB for whoever reads, and is handed over when RocksDB goes on. Until then nothing more is
 * written; only the batch whose sync was under way is added to it. */
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
    struct store_batch batch; /* the thread's while is_filling, but for the time in which there is `over` */
    struct store *over;       /* RocksDB with the batch, while it waits for room; else NULL */
    unsigned over_readers;
    char no_room[sizeof ((struct store *)0)->refusal]; /* the sentence why it waits */
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
/* Whether RocksDB may be written by the thread now. */
bool disk_filler_is_filling(const struct disk_filler *filler);
/* Whether it waits for room, which must be told before another batch goes to the journal. */
bool disk_filler_waits_for_room(struct disk_filler *filler, char *sentence, size_t sentence_len);
/* Adds a batch that is in the journal to one that waits for room. False: none does. */
bool disk_filler_add(struct disk_filler *filler, const struct store_batch *batch, struct rocks_mark mark);
/* Hands a batch of the journal over at an opening, where the disk may be full, too. */
enum rocks_result disk_fill(struct store *rocks, const struct store_batch *batch, struct rocks_mark mark);

/* ---- for any thread ---- */

/* True when RocksDB has every batch that was begun before the call, but for those that wait for room. False: it has
 * refused one. */
bool disk_filler_wait(struct disk_filler *filler);
/* What is to be read, until disk_filler_read_end; NULL: nothing can be. */
struct store *disk_filler_read_begin(struct disk_filler *filler);
void disk_filler_read_end(struct disk_filler *filler, struct store *read);

#endif
