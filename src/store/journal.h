/* The commit log: numbered frames in segment files, exact about where it ends.
 *
 * The store writes every batch here and syncs it before anybody may see it; its own files follow later. After a crash
 * the store tells up to which number it has everything, and journal_replay hands it the rest.
 *
 * A segment is a file of a fixed size, written with zeros (or with an older segment's bytes) before it is used, so that
 * a sync has no metadata to write. It begins with a block that names its journal, its serial number and its size.
 * Behind it frames follow, each at the beginning of a block. A frame is a batch, or a mark: END (the log goes on in the
 * next segment) or CLOSE (the writer has ended in order). A block that was synced is not written again, so a write
 * that is torn cannot damage it.
 *
 * Invariants:
 *  S5. Numbers of batches have no gap, within a segment and from one segment to the next; serial numbers neither.
 *  S6. A frame tells up to which number everything was synced when it was written. With `durable` writes that is
 *      the number before its own.
 *  S7. The log ends at the first frame of the newest segment that is not whole. Whatever stands behind it is no part
 *      of the log, unless it proves that the missing frame had been synced: then that is damage. So is everything
 *      else that is missing, short, flipped or from another journal.
 *  S8. A writer that finds frames of the newest segment behind the end of the log goes on in a new one: a torn tail
 *      can never stand behind a new frame of its own segment.
 *  S9. After a failed write or sync nothing more is written: what is on disk is unknown. A segment that cannot be
 *      made because the disk is full is no such failure: nothing of the batch was written then. */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define JOURNAL_BLOCK 4096 /* what disks and the page cache write at once */

/* ---- what lies outside: files of one folder ---- */

/* Functions answer 0, or errno where nothing else is said. A test's own table records or fails what it likes. */
struct journal_files {
    void *self;
    /* Calls `found` for each file of the folder. */
    int (*list)(void *self, void (*found)(void *context, const char *name), void *context);
    /* Makes the file where it is not there and `create` is set. *file is then closed by `close`. */
    int (*open)(void *self, const char *name, bool create, bool write, int *file, uint64_t *bytes);
    void (*close)(void *self, int file);
    /* All or nothing is asked for; a short read or write is an error. */
    int (*read)(void *self, int file, void *data, size_t len, uint64_t at);
    int (*write)(void *self, int file, const void *data, size_t len, uint64_t at);
    /* The same; the data (and what is needed to find it) is on disk when it answers. */
    int (*write_durable)(void *self, int file, const void *data, size_t len, uint64_t at);
    /* A second way to the file, past the system's cache, for write_durable alone: where both ends of the data lie at
     * JOURNAL_BLOCKs, in the file and in memory. Not every system or file has it. */
    int (*open_direct)(void *self, const char *name, int *file);
    int (*sync)(void *self, int file); /* data, and the file's size */
    int (*rename)(void *self, const char *from, const char *to);
    int (*remove)(void *self, const char *name);
    int (*sync_folder)(void *self); /* names */
};

/* ---- opening ---- */

struct journal;

struct journal_options {
    const char *folder;                /* is there; its name is for sentences, and for the system's files */
    const struct journal_files *files; /* kept; NULL: the system's, in the folder */
    bool read_only;
    uint64_t segment_bytes; /* of the largest segments; 0: LIMIT_SEGMENT_BYTES */
    uint64_t id, next;      /* of a journal that is made: its name, never 0, and its first number; 0: 1 */
};

/* Finds where the log ends. NULL and a sentence when it is damaged or cannot be read. */
struct journal *journal_open(const struct journal_options *options, char *error, size_t error_len);
/* What can be seen need not be on disk: the process that wrote a batch, the END before it, or the name of a segment may
 * have ended before its sync, and a sync may have failed. Brings all of it there. Before the first append, and before
 * anybody has a batch from the unsettled one on; until then nothing is changed. False and a sentence in journal_error.
 */
bool journal_settle(struct journal *journal);
/* The first batch of which nothing shows that it is on disk; behind journal_settle UINT64_MAX. */
uint64_t journal_unsettled(const struct journal *journal);
/* Syncs, and marks that the writer has ended in order. */
void journal_close(struct journal *journal);
/* Closes it as it is: nothing is written. */
void journal_abandon(struct journal *journal);

uint64_t journal_id(const struct journal *journal);
/* Whether nothing was ever written to it; before the first append. */
bool journal_is_new(const struct journal *journal);
/* Segments with batches were there and were released, and none with a batch is left: one always was. */
bool journal_has_lost_last(const struct journal *journal);
/* Numbers of the batches that are there; none where last is below first. */
uint64_t journal_first(const struct journal *journal);
uint64_t journal_last(const struct journal *journal);
/* The journal's last failure, in words. */
const char *journal_error(const struct journal *journal);

/* ---- reading ---- */

struct journal_batch {
    uint64_t number;
    uint64_t synced; /* up to which everything was when this was written */
    int64_t time_ms;
    struct slice payload;
};
/* Answers false to stop. */
typedef bool journal_visitor(void *context, const struct journal_batch *batch);

/* Visits the batches from this number on. False and a sentence in journal_error: one of them is not as it was written,
 * or is missing. Before the first append. */
bool journal_replay(struct journal *journal, uint64_t from, journal_visitor *visitor, void *context);

/* ---- writing, on one thread ---- */

/* The batches before this number, which is beyond the last one's, are elsewhere: the next one gets it. Before the first
 * append. */
void journal_skip_to(struct journal *journal, uint64_t number);

enum journal_result {
    JOURNAL_OK,
    JOURNAL_FULL,   /* there is no room for it; nothing has changed */
    JOURNAL_FAILED, /* and so will all further ones (S9) */
};

/* Makes the first segment where there is none, with room for such a payload. */
enum journal_result journal_begin(struct journal *journal, size_t payload_len);
/* Appends a batch with the next number. `durable`: it is synced, with all before it. */
enum journal_result journal_append(struct journal *journal, struct slice payload, int64_t time_ms,
                                   bool durable);
enum journal_result journal_sync(struct journal *journal);
/* True once in the life of a segment, when half of it is used: it is time for journal_prepare. */
bool journal_wants_next(struct journal *journal);

/* ---- for other threads beside the writer's ---- */

/* Up to which number everything is on disk. */
uint64_t journal_synced(const struct journal *journal);

struct journal_cursor {
    uint64_t number;     /* of the batch that is read next */
    uint64_t serial, at; /* where it is; 0: to be found */
};
enum journal_read {
    JOURNAL_READ,        /* as far as everything is synced, or to where the visitor stopped */
    JOURNAL_READ_GONE,   /* the batch is not there any more */
    JOURNAL_READ_FAILED, /* sentence in error */
};
/* Visits batches from the cursor on and moves it. What it is to find must not be released before: journal_keep_from. */
enum journal_read journal_read(struct journal *journal, struct journal_cursor *cursor,
                               journal_visitor *visitor, void *context, char *error, size_t error_len);
/* Whatever journal_release says, batches from this number on stay. UINT64_MAX: none is needed. */
void journal_keep_from(struct journal *journal, uint64_t number);

/* Makes the next segment, if there is none: the writer else has to make it. False: there is no room. */
bool journal_prepare(struct journal *journal);
/* Numbers up to this one are needed no more: segments that hold no others are used again, or removed. */
void journal_release(struct journal *journal, uint64_t number);
/* Of all segments that hold batches. */
uint64_t journal_bytes(const struct journal *journal);

#endif
