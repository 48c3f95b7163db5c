/* The data folder: whose it is, which format it has, and that no other process holds it. */
#ifndef STORE_FOLDER_H
#define STORE_FOLDER_H

#include "store/store.h"

#define FOLDER_FORMAT 1 /* raised when older programs must not touch what newer ones write */

struct folder {
    int lock;         /* the open marker file; its lock lasts as long as this is open */
    char *path;       /* as the user named it */
    char *store_path; /* where RocksDB's files live */
};

/* Finds or makes the folder and locks it: alone, or shared among those that only read. False and one sentence
 * in error when that cannot be; then nothing is held and nothing was changed, except that a missing folder
 * may have been made. */
bool folder_open(struct folder *folder, const struct store_options *options, char *error, size_t error_len);
void folder_close(struct folder *folder);

/* Bytes of RocksDB's files. */
uint64_t folder_bytes(const struct folder *folder);
/* How many of them are write-ahead logs; those with nothing in them, one from each start, are deleted on the
 * way. Only before RocksDB has the folder open. */
uint32_t folder_tidy_logs(const struct folder *folder);

#endif
