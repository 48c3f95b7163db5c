/* The struct of the room, and what its files share. */
#ifndef BACKUP_ROOM_H
#define BACKUP_ROOM_H

#include <pthread.h>
#include <stdatomic.h>

#include "backup/kept.h"
#include "rest/rest.h"

/* A call that waits for a batch of the log. */
struct waiting {
    struct rest_call *call;
    uint64_t from;
    int64_t until_us;
    struct waiting *next;
};

struct backup_snapshot {
    char name[BACKUP_NAME_BYTES];
    struct store_snapshot *content;
};

struct backup {
    struct backup_options options;
    bool is_on_disk, has_routes;
    struct followers followers;
    struct kept kept;
    struct workers *workers;
    pthread_mutex_t lock; /* of the list, and of the snapshots */
    pthread_cond_t more;
    struct waiting *waiting; /* in the arenas of the calls */
    struct backup_snapshot snapshots[LIMIT_MEMORY_BACKUPS];
    unsigned snapshot_count;
    _Atomic bool stops;
    pthread_t poller;
};

/* ---- past.c ---- */

void views_clear(const char *data);
void snapshots_free(struct backup *backup);

#endif
