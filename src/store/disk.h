/* What the files of the store on disk share. */
#ifndef STORE_DISK_H
#define STORE_DISK_H

#include "store/journal.h"
#include "store/store.h"

/* NULL: it is no store on disk that can be written. */
struct journal *disk_journal(struct store *store);
/* With everything that was written, unless it has refused something. */
struct store *disk_rocks(struct store *store);
/* RocksDB has everything in its files, and a new journal begins. False: sentence in error. */
bool disk_begin_log(struct store *rocks, char *error, size_t error_len);

#endif
