/* The log that a database keeps of itself, in the target DATA/kept: for --keep-log, and while any of its tables is to
 * be brought back to any moment. */
#ifndef BACKUP_KEPT_H
#define BACKUP_KEPT_H

#include <pthread.h>
#include <stdatomic.h>

#include "backup/followers.h"

#define KEEP_NAME "kept"
#define KEEP_MARK "kept.tables" /* beside it, while only tables ask for it: without them it goes */

struct kept {
    struct followers *followers;
    struct store *store;
    const char *data;
    const struct clock *clock;
    bool is_for_tables;      /* --keep-log does not ask for it */
    pthread_mutex_t turning; /* held by who switches it on or off */
    pthread_mutex_t lock;    /* of what follows; held over files */
    struct backup_target *target; /* NULL: nothing is kept, or it could not be opened yet */
    struct backup_source *source;
    struct backup_position position;
    int64_t keep_ms; /* 0: it is off */
    unsigned readers; /* views that are being made: nothing is forgotten meanwhile */
    pthread_t thread;
    /* for any thread, without the lock */
    _Atomic int64_t from_ms; /* the first moment from which everything is known up to now; INT64_MAX: none */
    _Atomic bool stops;
};

void kept_init(struct kept *kept, struct followers *followers, const char *data, bool is_for_tables);
void kept_free(struct kept *kept);

/* Keeps so much from now on: when it answers true, this moment can be gone back to. 0: nothing, and what was kept for
 * tables is removed, also what an earlier process was killed over. False and a sentence: it cannot be kept now, though
 * it is tried on. */
bool kept_keep(struct kept *kept, int64_t keep_ms, char *error, size_t error_len);
/* Ends the thread when everything in the log is kept. */
void kept_stop(struct kept *kept);
/* Brings everything that is in the log by now to the target. *at_ms: a moment that is over, made earlier where nothing
 * was written behind that. Until kept_read_end nothing of it is forgotten. */
bool kept_read_begin(struct kept *kept, int64_t *at_ms, char *error, size_t error_len);
void kept_read_end(struct kept *kept);
#endif
