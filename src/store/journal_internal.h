/* What the files of the journal share. */
#ifndef STORE_JOURNAL_INTERNAL_H
#define STORE_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "store/journal.h"
#include "store/journal_frame.h"

#define SEGMENT_NAME_BYTES 32

struct segment {
    uint64_t serial, bytes;
    uint64_t first; /* number of its first batch; 0: it has none */
    int file;
};

/* Who reads beside the writer: the segment stays that it is in. */
struct journal_reader {
    uint64_t serial;
    struct journal_reader *next;
};

#define SPARES_MOST 4

struct journal {
    const struct journal_files *files;
    bool owns_files;
    char *folder;
    bool read_only;
    uint64_t id, segment_bytes;

    /* of the writer */
    struct segment active; /* that the log ends in; serial 0: there is none yet */
    uint64_t next, synced; /* number of the next batch; up to which all is synced */
    uint64_t at;           /* where the next frame goes */
    bool must_switch;      /* before that (S8) */
    bool has_closed;       /* nothing was written since the log was closed */
    bool has_asked;        /* for the next segment */
    bool failed;
    int64_t last_ms;  /* of the last batch: times never go back */
    struct buf frame; /* at a JOURNAL_BLOCK in memory */
    struct {
        uint64_t serial; /* of the segment; 0: none */
        int file;        /* -1: it has no such way */
    } direct;            /* past the system's cache */
    char error[512];

    /* of an opening: frames that were found, and of which nothing shows that they were synced */
    struct {
        int file;
        uint64_t from, to;
        uint64_t number; /* of the first batch there */
    } doubt;
    bool is_settled; /* they are */

    _Atomic uint64_t published; /* `synced`, for readers */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t prepared;
    struct segment
        *segments; /* in the order of their serials; those behind `current`, which is active, are prepared */
    size_t count, current;
    struct journal_reader *readers; /* on their stacks */
    uint64_t keep_from;
    bool is_preparing;
    struct {
        char name[SEGMENT_NAME_BYTES];
        uint64_t bytes;
    } spares[SPARES_MOST]; /* files to be used again */
    size_t spare_count;
};

/* Always false: `error` is the sentence. */
bool journal_fail(struct journal *journal, const char *format, ...) __attribute__((format(printf, 2, 3)));
void segment_name(char out[SEGMENT_NAME_BYTES], uint64_t serial);
#define SPARE_NAME "spare-%zu.new" /* by their number below SPARES_MOST */
#define NEXT_NAME  "next.new"

/* ---- journal_walk.c ---- */

enum walk_end {
    WALK_TORN,    /* a frame is not whole, or there is none */
    WALK_END,     /* the segment's END */
    WALK_STOPPED, /* by the visitor */
    WALK_FAILED,  /* it cannot be read, or is damaged: journal->error tells */
};
struct walk {
    const struct segment *segment;
    uint64_t next;          /* number that the next batch must have */
    uint64_t from;          /* batches before it are not visited, and their payloads not checked */
    journal_visitor *visit; /* NULL: nobody */
    void *context;
    /* answers */
    uint64_t at; /* where it has ended */
    /* of the last frame that was written when all before it had been synced */
    uint64_t doubt_at, doubt_number;
    int64_t time_ms;  /* of its last batch */
    bool is_closed;   /* its last frame is a CLOSE */
    bool has_remains; /* journal_walk_is_end: frames of the segment stand behind its end */
};
/* Reads frames to the end of the segment. */
enum walk_end journal_walk(struct journal *journal, struct walk *walk);
/* Whether what stands behind the end proves that the batch `walk->next` was synced. False and a sentence if so. */
bool journal_walk_is_end(struct journal *journal, struct walk *walk);
/* Reads the number of a segment's first batch; 0: it has none. */
bool journal_first_number(struct journal *journal, const struct segment *segment, uint64_t *number);

/* ---- journal_write.c ---- */

/* Closes it. */
void journal_end_direct(struct journal *journal);
/* Everything up to this number is on disk. */
void journal_is_synced(struct journal *journal, uint64_t number);
/* The writer ends. */
void journal_end(struct journal *journal);

/* ---- journal_files.c ---- */

/* The system's, of this folder. NULL and errno. */
struct journal_files *journal_system_files(const char *folder);
void journal_system_files_free(const struct journal_files *files);

#endif
