/* Who needs the log of a server's store: checkpoints that are being copied, followers, and the server's own target.
 * The log is held from the first batch that any of them needs on, within a bound. */
#ifndef BACKUP_FOLLOWERS_H
#define BACKUP_FOLLOWERS_H

#include <pthread.h>

#include "backup/local.h"
#include "base/limits.h"

struct follower {
    char name[LIMIT_BACKUP_FOLLOWER_BYTES + 1]; /* "": the place is free */
    struct log_place place;                     /* behind what it was sent */
    uint64_t next;                              /* the first batch that it has not got on its disk */
    int64_t until_ms;                           /* up to when it knows everything, */
    int64_t sent_ms;                            /* and will when it has what it was sent */
    int64_t asked_us;
    bool is_held;
};

struct checkpoint {
    char id[17]; /* "": the place is free */
    char target[LIMIT_BACKUP_FOLLOWER_BYTES + 1];
    char path[DISK_PATH];
    struct backup_base base;
    int64_t used_us;
    bool is_made;   /* until then the log is held from `base.number` on, and nobody else touches it */
    bool is_let_go; /* the log is not held for it any more */
};

struct followers {
    pthread_mutex_t lock; /* of all that follows */
    struct store *store;
    const struct clock *clock;
    char journal[DISK_PATH];
    uint64_t bytes_max; /* of the log, that is held for followers */
    uint64_t newest;    /* batch of all checkpoints so far */
    struct follower all[LIMIT_BACKUP_FOLLOWERS];
    struct checkpoint checkpoints[LIMIT_BACKUP_CHECKPOINTS];
};

void followers_init(struct followers *followers, struct store *store, const struct clock *clock,
                    const char *data);
void followers_free(struct followers *followers); /* with all checkpoints */

/* It has everything before this batch on its disk. False: there are too many. */
bool follower_has(struct followers *followers, const char *name, uint64_t next);
/* Where it was left, and that it was sent on from there. */
struct log_place follower_place(struct followers *followers, const char *name, uint64_t from);
void follower_sent(struct followers *followers, const char *name, const struct log_place *place,
                   int64_t until_ms);
/* A batch that was written, though perhaps not synced yet. */
uint64_t followers_newest(struct followers *followers);
void follower_forget(struct followers *followers, const char *name);

/* Makes one for a target, and writes it as JSON. An earlier one of that target is removed: whoever made it was
 * killed. */
bool checkpoint_add(struct followers *followers, const char *target, const char *data, struct buf *out,
                    char *error, size_t error_len);
/* The path of one of its files; false: there is no such checkpoint or file. */
bool checkpoint_find(struct followers *followers, struct slice id, struct slice name, char path[DISK_PATH],
                     char *error, size_t error_len);
bool checkpoint_end(struct followers *followers, struct slice id);

/* What nobody has asked for is removed; of a log that is too long the one who is farthest behind is let go. Now and
 * then. */
void followers_tidy(struct followers *followers);
void followers_put_metrics(struct followers *followers, struct buf *out);

#endif
