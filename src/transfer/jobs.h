/* A job while it is done: what its files share. Each runs on a thread of its own. */
#ifndef TRANSFER_JOBS_H
#define TRANSFER_JOBS_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/api.h"
#include "transfer/buckets.h"
#include "transfer/transfer.h"

struct transfer {
    struct engine *engine;
    struct api *api;
    struct backup *backup;       /* NULL: there are no backups */
    struct api_backups backups;
    pthread_mutex_t keeping; /* held by who changes how much of the log is kept */
    struct buckets *buckets;
    struct engine_change_watcher watcher;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t moved; /* something of it has changed */
    pthread_t dispatcher;
    bool has_dispatcher;
    uint64_t wanted, settled; /* changes of notes, and up to which of them all jobs have begun */
    struct transfer_run *runs;
    _Atomic bool stopping;
};

struct transfer_run {
    struct transfer_run *next;
    struct transfer *transfer;
    struct arena arena; /* of the job */
    struct api_job job;
    bool is_resumed; /* it was begun by a process that has ended */
    pthread_t thread;
    bool is_held; /* what it reads is fixed: those who wait for its begin may go on */
    bool is_over;
    _Atomic bool is_cancelled;
    int64_t noted_us; /* when its note was written last */
};

/* The job is to go no further: cancelled, or the process ends. */
static inline bool transfer_run_is_stopped(const struct transfer_run *run)
{
    return atomic_load(&run->is_cancelled) || atomic_load(&run->transfer->stopping);
}

/* What it reads is fixed from now on. */
void transfer_run_held(struct transfer_run *run);
/* Writes the note, at most a few times a second unless it must. False when the job is gone: nobody wants it. */
bool transfer_run_note(struct transfer_run *run, bool must);
/* Waits until then (monotonic), or until the job is stopped. */
void transfer_run_wait(struct transfer_run *run, int64_t until_us);
/* The end, with an `also` in the same commit (may be NULL). */
typedef void transfer_run_also(struct transfer_run *run, struct batch *batch, struct arena *arena);
void transfer_run_end(struct transfer_run *run, const char *status, transfer_run_also *also);
void transfer_run_fail(struct transfer_run *run, const char *code, const char *message,
                       transfer_run_also *also);

/* A string of the job's request, by one or two names; empty where there is none. */
struct slice transfer_run_text(struct transfer_run *run, const char *outer, const char *name);
enum transfer_compression transfer_run_compression(struct slice word);

/* ---- the kinds ---- */
void transfer_export(struct transfer_run *run);
void transfer_import(struct transfer_run *run);
void transfer_bulk(struct transfer_run *run);
void transfer_restore(struct transfer_run *run);

/* ---- backups.c ---- */

/* Before any job is begun. */
void transfer_backups_open(struct transfer *transfer);

/* ---- put.c: items into a table, many at a time ---- */

/* What became of an item that was not written; called in the order of the items. */
struct put_failure {
    struct slice item, error, message; /* error: the exception's short name */
    uint64_t number;                   /* as the caller gave it */
    bool is_condition;                 /* its condition did not hold, */
    struct slice existing;             /* ... and so the item is, if there is one */
};
struct put_listener {
    void (*failed)(void *context, const struct put_failure *failure);
    void (*written)(void *context, struct slice reply); /* PutItem's own; may be NULL */
    void *context;
};
struct putter;
struct putter *putter_open(struct transfer *transfer, struct slice table, struct put_listener listener);
void putter_close(struct putter *putter); /* what was not flushed is lost */
/* Takes a copy of the item, and of further members of the request (,"Name":...). False when the database writes no
 * more. */
bool putter_add(struct putter *putter, struct slice item, struct slice members, uint64_t number);
bool putter_flush(struct putter *putter);
uint64_t putter_written(const struct putter *putter);

#endif
