/* Batches whose order can be told from what is in a store. Batch n is made of a seed and n alone: it counts, it puts a
 * key that tells n, it overwrites, deletes and clears ranges, with values of few bytes up to some pages. So the content
 * after n batches is one, and a hash of it shows that all of them are there, whole, and no later one. */
#ifndef CUT_BATCHES_H
#define CUT_BATCHES_H

#include "store/store.h"

struct batches {
    uint64_t seed;
    uint32_t count;
    bool no_ranges;    /* are cleared */
    uint64_t *content; /* by number of batches, 0 to count: the hash of the content behind it */
};

/* How batch n is written. */
struct batch_manner {
    bool durable;
    bool sync; /* store_sync follows */
};

void batches_init(struct batches *batches, uint64_t seed, uint32_t count, bool no_ranges);
void batches_free(struct batches *batches);
/* Fills the batch, which is empty. Numbers begin with 1. */
struct batch_manner batch_make(const struct batches *batches, uint32_t number, struct store_batch *batch);
/* How many batches the store says to hold, and the hash of all it holds. False: it cannot be read. */
bool batches_read(struct store *store, uint32_t *number, uint64_t *content);
/* Reads the store and judges it. True, or a sentence. *number: of the last batch, also when it is wrong. */
bool batches_verify(const struct batches *batches, struct store *store, uint32_t least, uint32_t most,
                    uint32_t *number, char *words, size_t words_len);

#endif
