/* What a store in this process gives: files of a checkpoint, blocks of its log. For the command on a folder and for the
 * server alike. */
#ifndef BACKUP_LOCAL_H
#define BACKUP_LOCAL_H

#include "backup/target.h"
#include "store/store.h"

#define COPIES "copies" /* the folder below the data folder where checkpoints are made */

/* Makes DATA/copies/ID with links to the tables' files, and lists them. The log must be held from the last batch that
 * is synced now on. *path: of the new folder. */
bool checkpoint_make(struct store *store, const char *data, const char *id, const struct clock *clock,
                     struct backup_base *base, char path[DISK_PATH], char *error, size_t error_len);
/* Removes what earlier processes have left. */
void checkpoints_clear(const char *data);

/* Where a reader of the log is, and the mark of the batch before that; 0: it is to be found. */
struct log_place {
    struct store_log_cursor cursor;
    uint64_t mark;
};
/* Appends a block from that place on, as much as one may have, and moves it. `newest`: a batch that is known to be
 * written, though perhaps not synced. */
enum backup_log log_block(struct store *store, struct log_place *place, uint64_t newest, uint64_t source,
                          const struct clock *clock, struct buf *out, char *error, size_t error_len);

/* The source of a store, in a server: links files instead of copying them, and tells whoever holds the log for all from
 * which batch on it needs it (UINT64_MAX: it needs none). */
struct backup_source *local_source(struct store *store, const char *data, const struct clock *clock,
                                   bool links, void (*hold)(void *context, uint64_t from), void *context);

#endif
