/* How RocksDB is set up for our use; the reasons stand in disk_options.c. */
#ifndef STORE_DISK_OPTIONS_H
#define STORE_DISK_OPTIONS_H

#include <rocksdb/c.h>

#include "store/store.h"

struct disk_options {
    rocksdb_options_t *rocksdb;
    rocksdb_cache_t *cache;
};

/* log_files: how many write-ahead logs lie in the folder. */
void disk_options_init(struct disk_options *out, const struct store_options *options, uint32_t log_files);
void disk_options_free(struct disk_options *options);

#endif
