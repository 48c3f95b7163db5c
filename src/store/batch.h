/* How the implementations read a batch: entry by entry, in the order in which they were added. */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include "store/store.h"

enum batch_kind { BATCH_PUT, BATCH_DELETE, BATCH_DELETE_RANGE }; /* stored: see batch.c */

struct batch_entry {
    enum batch_kind kind;
    struct slice key;   /* of a range: its first key */
    struct slice value; /* of a range: the key behind its last; of a delete: empty */
};

struct batch_reader {
    struct slice rest;
};

struct batch_reader batch_read(const struct store_batch *batch);
/* The next entry; false behind the last. */
bool batch_next(struct batch_reader *reader, struct batch_entry *entry);

#endif
