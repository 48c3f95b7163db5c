/* Copies of a database: made while it is written, kept in a folder (the target), verified, and brought back to any
 * moment that the target knows.
 *
 * A copy is a base and the log behind it. A base is the set of the tables' files as they were after one batch; files
 * never change, so bases share them, and a further base copies only what is new. The log is the store's own: batches
 * with their numbers and times, in compressed blocks. To restore is to lay out the files of a base and to write the
 * batches behind it.
 *
 *   TARGET/quipu-backup              marks the folder and tells the format's number
 *   TARGET/files/000012.sst-MARK     files of bases, named by what is in them
 *   TARGET/bases/TIME-SOURCE-NUMBER-MARK  one small text for each base: its files, their sizes and checksums
 *   TARGET/log/SOURCE-NUMBER         a piece of the log: blocks. NAME.open is the one that is being written
 *
 * SOURCE is the log's id, which differs for each data folder, also for a restored one, and is the same for all of a
 * target. A folder that was copied or set back has the same id and other batches of the same numbers, with other MARKs:
 * it is refused, too. Everything that is written gets its name when it is whole and on disk, a base last of all:
 * whatever is interrupted leaves what was there before.
 *
 * Where copies come from is a table of functions: a store in this process (local.c), a server over HTTP (remote.c).
 * The server's half of the latter is server.c, which also keeps a target of its own inside the data folder.
 *
 * What always holds:
 *  - A base is in the target only when all its files are, with these checksums.
 *  - The blocks of a piece follow each other without a gap in numbers. Between pieces there may be one; then nothing
 *    behind it is used together with what is before it. Nor is a batch used behind another one than it was written
 *    behind.
 *  - Whatever is restored is the state after one batch, with every batch of that time or earlier, and none later. */
#ifndef BACKUP_BACKUP_H
#define BACKUP_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"
#include "store/store.h"

struct arena;
struct clock;
struct rest_call;
struct store;

/* ---- where copies come from ---- */

#define BACKUP_NAME_BYTES 96 /* of a file, with its NUL */

struct backup_file {
    char name[BACKUP_NAME_BYTES];
    uint64_t bytes;
    uint64_t mark;     /* tells it from others of the same name: see disk_file_mark */
    uint64_t checksum; /* of the whole; 0 where it is not known yet */
};

struct backup_base {
    uint64_t source, number;
    uint64_t mark;   /* of its last batch: see block.h; 0: not known */
    int64_t time_ms; /* of its last batch */
    struct backup_file *files;
    size_t count;
};
void backup_base_free(struct backup_base *base);

enum backup_log {
    BACKUP_LOG_BLOCK, /* one block, perhaps without a batch */
    BACKUP_LOG_GONE,  /* the source has not got these batches (any more): a new base is needed */
    BACKUP_LOG_AWAY,  /* nobody answers: it may be tried again */
    BACKUP_LOG_FAILED,
};

/* All write a sentence to error when they fail. */
struct backup_source {
    void *self;
    uint64_t newest; /* batch that it had at the last `read`; 0: nobody can write meanwhile */
    /* Makes a consistent set of files that stays until `end`. The caller frees *base. */
    bool (*begin)(void *self, struct backup_base *base, char *error, size_t error_len);
    /* Appends bytes of one of these files, from a place on: some, unless it is at its end. */
    bool (*read)(void *self, const struct backup_file *file, uint64_t from, struct buf *out, char *error,
                 size_t error_len);
    /* Links it to a path on the same file system. False: it cannot. NULL: it never can. */
    bool (*link)(void *self, const struct backup_file *file, const char *path);
    void (*end)(void *self);
    /* Appends a block of the log from this number on; waits so long for a batch, if there is none. */
    enum backup_log (*log)(void *self, uint64_t source, uint64_t from, int64_t wait_ms, struct buf *block,
                           char *error, size_t error_len);
    void (*close)(void *self);
};

/* A data folder that no process has open; opens it. NULL and a sentence. */
struct backup_source *backup_source_folder(const char *folder, char *error, size_t error_len);

/* One request to a server; true when it was answered. Everything of the reply is in *reply. */
struct backup_ask {
    const char *method, *path, *query; /* query: NULL for none */
    int64_t total_ms;
    int status;
    struct buf *reply;
    char failure[300]; /* why nobody answered */
};
typedef bool backup_asker(void *context, struct backup_ask *ask);
/* A server, asked by this function. `name`: of the target, for the server, which has one checkpoint for each; and in
 * its metrics, if the log is followed. */
struct backup_source *backup_source_server(backup_asker *asker, void *context, const char *name,
                                           bool follows);
void backup_source_close(struct backup_source *source);

/* False and a sentence: the path, which need not be there yet, lies in a data folder, whose server removes what is not
 * its own, or below a target. The path itself may be a target. */
bool backup_lies_apart(const char *path, char *error, size_t error_len);

/* ---- the target ---- */

struct backup_target;
/* Opens it to be written, by this process alone; makes it when the folder is missing or empty. NULL and a sentence. */
struct backup_target *backup_target_open(const char *path, char *error, size_t error_len);
void backup_target_close(struct backup_target *target);

struct backup_progress {
    uint64_t bytes_all, bytes_done; /* of files that must be copied */
    uint64_t files_all, files_copied, bytes_copied;
    bool is_fast;    /* does not make way for those who write meanwhile */
    bool mends;      /* reads what the target has, too, and copies it anew where it is damaged */
    bool is_refused; /* set where the target belongs to another database: that does not pass by itself */
    void (*tell)(void *context, const struct backup_progress *progress); /* now and then; may be NULL */
    /* Asked between pieces; false: somebody wants it to end. May be NULL */
    bool (*goes_on)(void *context);
    void *context;
};

/* Where the log goes on; zeros: nowhere. */
struct backup_position {
    uint64_t source, next; /* the number of the first batch that is not there */
    uint64_t mark;         /* of the batch before it */
    int64_t until_ms;      /* up to when everything is known */
    uint64_t base_number;  /* of the newest base */
    int64_t base_ms;
};
/* Takes a base: copies what the target has not got. The log goes on where it was, if it can: a base is one more way to
 * moments that the log knows. Until the source's `end` the source holds the log behind it. */
bool backup_take_base(struct backup_target *target, struct backup_source *source,
                      struct backup_progress *progress, struct backup_position *position, char *error,
                      size_t error_len);
/* Whether it is time for one: there is none that the log goes on from, or the newest is a day old and not all. */
bool backup_wants_base(const struct backup_position *position);
/* The end of the newest base's log. */
bool backup_target_position(struct backup_target *target, struct backup_position *position, char *error,
                            size_t error_len);
/* Appends one block and syncs it. */
enum backup_log backup_ship(struct backup_target *target, struct backup_source *source,
                            struct backup_position *position, int64_t wait_ms, char *error, size_t error_len);
/* Gives the open piece its name: what follows goes to a new one. */
bool backup_close_piece(struct backup_target *target, char *error, size_t error_len);
/* Removes what only moments before this one need. */
bool backup_forget(struct backup_target *target, int64_t before_ms, char *error, size_t error_len);

/* ---- reading it: these need nobody's permission ---- */

struct backup_report {
    uint64_t bases, files, file_bytes, pieces, batches;
    int64_t from_ms, until_ms; /* the first and the last moment that can be restored, */
    uint64_t gaps;             /* and how often nothing is known in between */
    uint64_t faults;
};
/* Reads everything, and appends a line for each fault. False and a sentence: it is no target. */
bool backup_verify(const char *path, struct backup_report *report, struct buf *faults, char *error,
                   size_t error_len);

struct backup_restored {
    uint64_t source, number; /* of the last batch */
    int64_t time_ms;         /* when that was written */
    uint64_t batches;        /* that were taken from the log, behind the base */
    uint64_t tables;
};
#define BACKUP_LATEST INT64_MAX
/* Makes a data folder of what was there at that moment, or of the latest. The folder must be missing or empty. */
bool backup_restore(const char *path, const char *folder, int64_t at_ms, struct backup_restored *restored,
                    char *error, size_t error_len);
/* The same to be read for a while: a store over a folder at this path, which is made, and removed by
 * backup_view_close. Bytes of bases are shared with the target's, so only the log costs room. */
struct store *backup_view_open(const char *path, const char *folder, int64_t at_ms,
                               struct backup_restored *restored, char *error, size_t error_len);
void backup_view_close(struct store *view, const char *folder);

/* ---- what belongs to a database that is open: its past, and in a server routes under /v1/backup ---- */

struct backup;
struct backup_options {
    struct store *store;       /* kept; on disk, or in memory; NULL: the data is elsewhere */
    const char *folder;        /* the data folder; kept; NULL: the store is in memory */
    const struct clock *clock; /* kept; the one that the store has */
    int64_t keep_ms;           /* what DATA/kept covers, whatever backup_keep says; 0: nothing */
    bool is_served;            /* requests come in */
    const char *refusal;       /* a sentence for all of them; kept; NULL: they are answered */
};
struct backup *backup_open(const struct backup_options *options);
/* Answers whoever waits, and ends what runs in the background. From then on requests are refused. */
void backup_stop(struct backup *backup);
void backup_close(struct backup *backup);
/* False when no route is ours. */
bool backup_serve(struct backup *backup, struct rest_call *call);
/* Lines for /metrics. */
void backup_put_metrics(struct backup *backup, struct buf *out);

/* Copies of all that the database holds, by names of letters, digits and '-': links to its files in DATA/backups/NAME,
 * or a snapshot of its memory. Each has what was acknowledged before the call, and nothing that is written after it.
 * False and a sentence. */
bool backup_copy_take(struct backup *backup, struct slice name, char *error, size_t error_len);
bool backup_copy_exists(struct backup *backup, struct slice name);
/* What is not there is fine. */
void backup_copy_drop(struct backup *backup, struct slice name);
/* Drops what an interrupted call has left, and all that `keeps` does not want. */
typedef bool backup_copy_keeps(void *context, struct slice name);
void backup_copies_sweep(struct backup *backup, backup_copy_keeps *keeps, void *context);

/* From now on every moment can be gone back to, for so long; 0: that is not needed any more, and what was kept is
 * removed, unless the options ask for it. False and a sentence. */
bool backup_keep(struct backup *backup, int64_t keep_ms, char *error, size_t error_len);
/* The first moment of which everything is known up to now; INT64_MAX: none. Never waits. */
int64_t backup_kept_from(struct backup *backup);

/* The database as a copy has it, or as it was at a moment, which is over: to be read until it is closed. */
struct backup_past {
    struct store *store;
    char *folder; /* private: removed with it; NULL: none */
};
bool backup_past_copy(struct backup *backup, struct slice name, struct backup_past *past, char *error,
                      size_t error_len);
bool backup_past_moment(struct backup *backup, int64_t at_ms, struct backup_past *past, char *error,
                        size_t error_len);
void backup_past_close(struct backup_past *past);
/* An empty store to write to meanwhile: what is too much for the memory. Nothing in it is durable. */
bool backup_scratch_open(struct backup *backup, struct backup_past *scratch, char *error, size_t error_len);
/* Visits the batches that were written from a moment on (included) up to another (excluded), in order; both are over.
 * False and a sentence: not all of them are known. */
bool backup_past_log(struct backup *backup, int64_t from_ms, int64_t to_ms, store_log_visitor visitor,
                     void *context, char *error, size_t error_len);

#endif
