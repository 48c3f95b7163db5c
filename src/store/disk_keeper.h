/* What the writer of a disk's store need not wait for: the journal's next segment, RocksDB's flush when the journal has
 * grown, and the end of segments that RocksDB needs no more. A thread of its own, from the first need on. */
#ifndef STORE_DISK_KEEPER_H
#define STORE_DISK_KEEPER_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/journal.h"
#include "store/store.h"

struct disk_keeper {
    struct journal *journal;
    struct store *rocks;
    pthread_mutex_t lock; /* over the next three */
    pthread_cond_t more;
    bool wanted, stopping, started;
    _Atomic bool is_full; /* there was no room for a segment */
    pthread_t thread;
};

void disk_keeper_init(struct disk_keeper *keeper, struct journal *journal,
                      struct store *rocks); /* keeps both */
void disk_keeper_stop(struct disk_keeper *keeper);
/* Called by the writer: there is something to do. */
void disk_keeper_wake(struct disk_keeper *keeper);
/* Called by the writer: a segment could not be made. From then on the keeper looks for room every second. */
void disk_keeper_is_full(struct disk_keeper *keeper);
bool disk_keeper_waits_for_room(struct disk_keeper *keeper);

#endif
