/* Copying tables while they are written to.
 *
 * For each table: its definition is brought to the target; its stream is opened, so that no change from here
 * on is missed; its items are copied by a sweep, while a thread of its own puts the changes aside; then the
 * thread applies what it put aside, and from there on every change as it comes, until it is told to switch
 * over and nothing more comes.
 *
 *  K1. An item's image that the sweep read is given to the sink before any change of the table is, and the
 *      sink keeps the order of writes on a key. A change that the sweep had seen already is applied once
 *      more, and the later ones after it: what counts is that the last change of every key is applied last.
 *  K2. Applying is repeatable: whole items are put and keys deleted, so a copy may be run again at any time.
 *  K3. A stream that the source lacked is switched on before the sweep and off at the end. */
#ifndef CLI_COPY_H
#define CLI_COPY_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/definition.h"
#include "cli/progress.h"
#include "cli/spool.h"

struct copy {
    struct place source, target;
    struct sink *sink;
    unsigned segments;
    bool follows;             /* streams are read at all */
    bool deletes_extra;       /* what the source does not have goes from the target */
    atomic_bool is_switching; /* the followers end when nothing more comes */
    atomic_bool is_given_up;  /* they end at once */
};

/* One table on its way. */
struct copied {
    struct copy *copy;
    const char *name;
    struct sink_table table;
    struct arena arena;            /* of its names */
    unsigned long long item_count; /* as the source tells, roughly */
    struct progress progress;
    /* following */
    struct quipu_stream *stream; /* NULL: not followed */
    bool stream_is_ours;         /* K3 */
    pthread_t follower;
    bool has_follower;
    struct spool spool;
    atomic_bool has_all_items; /* the sweep is over: changes may be applied */
    atomic_bool has_failed;
    atomic_ullong applied;
    atomic_llong changed_us; /* when the last change came, by the monotonic clock */
};

/* ---- copy_table.c ---- */

/* Definition, stream and items; starts the follower. False after complaining. */
bool copied_run(struct copied *copied, struct copy *copy, const char *name);
/* Ends the follower, switches off a stream of ours, frees everything. False when the follower has failed. */
bool copied_end(struct copied *copied);

/* ---- follow.c ---- */

/* The thread: see the story above. */
void *follow_run(void *copied);

/* ---- extras.c ---- */

/* Deletes from the target what the source does not have. Nothing may be applied meanwhile. False after
 * complaining. */
bool extras_delete(struct copied *copied);

#endif
