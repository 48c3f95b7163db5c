/* How RocksDB is set up for our use; the reasons stand in rocks_options.c. */
#ifndef STORE_ROCKS_OPTIONS_H
#define STORE_ROCKS_OPTIONS_H

#include <rocksdb/c.h>

#include "store/rocks.h"

#define ROCKS_MEMTABLES 3 /* with so many full ones the writer would have to wait */

struct rocks_setup {
    rocksdb_options_t *rocksdb;
    rocksdb_cache_t *cache;
};

void rocks_setup_init(struct rocks_setup *out, const struct rocks_options *options);
void rocks_setup_free(struct rocks_setup *setup);

#endif
