/* A table as it was: at a moment of the log that is kept, or in a copy of the database (backup/backup.h). */
#ifndef TRANSFER_MOMENT_H
#define TRANSFER_MOMENT_H

#include "backup/backup.h"
#include "transfer/transfer.h"

struct moment {
    struct backup_past past;
    struct table *table; /* as it was then; engine_past_items(past.store, table, ...) visits its items */
};

/* At a moment that is over, of the table with this id (empty: with any), which bears this name now or then. Waits for
 * the writer, and as long as it takes to write a day of the log at most: a run must be held before (transfer_run_held).
 * False and a sentence when it is not known, or when there was no such table. */
bool moment_open(struct transfer *transfer, struct slice table, struct slice table_id, int64_t at_ms,
                 struct moment *out, char *error, size_t error_len);
/* In a copy, by its name. */
bool moment_open_copy(struct transfer *transfer, struct slice table, struct slice copy, struct moment *out,
                      char *error, size_t error_len);
void moment_close(struct moment *moment);

#endif
