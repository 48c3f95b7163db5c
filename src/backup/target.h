/* What a target holds, as its names tell it; and the files that are written into it. */
#ifndef BACKUP_TARGET_H
#define BACKUP_TARGET_H

#include "backup/backup.h"
#include "backup/block.h"
#include "backup/disk.h"
#include "store/store.h"

struct target_paths {
    char files[DISK_PATH], bases[DISK_PATH], log[DISK_PATH];
};

struct backup_target {
    char path[DISK_PATH];
    struct target_paths paths;
    int lock; /* the folder, held by who writes */
    /* the open piece of the log */
    int piece;                          /* -1: none */
    char piece_name[BACKUP_NAME_BYTES]; /* that it gets in the end */
    uint64_t piece_bytes;
    int64_t piece_until_ms;
};

/* ---- target.c ---- */

/* False and a sentence: it is no target, or of a newer format. */
bool target_check(const char *path, struct target_paths *paths, char *error, size_t error_len);

/* A base or a piece by its name. */
struct target_entry {
    char name[BACKUP_NAME_BYTES];
    uint64_t source, number; /* of a base's last batch, of a piece's first one */
    uint64_t mark;           /* of a base's last batch */
    int64_t time_ms;         /* of a base */
    bool is_open;            /* a piece that is being written, or was when somebody died */
};
struct target_list {
    struct target_entry *all;
    size_t count;
};
/* In the order of time. */
bool target_bases(const struct target_paths *paths, struct target_list *list, char *error, size_t error_len);
/* By source, then by number. */
bool target_pieces(const struct target_paths *paths, struct target_list *list, char *error, size_t error_len);
void target_list_free(struct target_list *list);
/* The newest base's name; an empty one: there is none. */
bool target_newest(const struct target_paths *paths, struct target_entry *base, char *error,
                   size_t error_len);

/* Always false: what the target has up to this batch is not what the database has now. */
bool target_refuse_history(const struct backup_target *target, uint64_t next, char *error, size_t error_len);
/* False and a sentence: what the target has is another database's. */
bool target_is_of(const struct backup_target *target, uint64_t source, char *error, size_t error_len);

/* "000012.sst-0123456789abcdef": a file of a base, below files. */
bool target_file_path(const struct target_paths *paths, const struct backup_file *file, char path[DISK_PATH],
                      char *error, size_t error_len);
bool target_base_read(const struct target_paths *paths, const struct target_entry *entry,
                      struct backup_base *base, char *error, size_t error_len);
bool target_base_write(const struct target_paths *paths, const struct backup_base *base, char *error,
                       size_t error_len);

/* ---- base.c: a base as JSON, in the target and over HTTP ---- */

void base_put(struct buf *out, const struct backup_base *base, const char *id);
/* *id: "" where it has none. False: it is none, or has a name that is no file's. */
bool base_parse(struct slice text, struct backup_base *base, char id[BACKUP_NAME_BYTES]);
/* For qsort and bsearch: by name, then by mark. */
int backup_file_order(const void *a, const void *b);
void hex_put(char out[17], uint64_t number);
bool hex_read(struct slice text, uint64_t *number); /* 16 digits */

/* ---- piece.c ---- */

/* Answers false to stop. `stored` has data only where the walk reads it. */
typedef bool piece_visitor(void *context, const struct block_head *head, struct slice stored);
struct piece_end {
    uint64_t bytes; /* of whole blocks */
    bool is_whole;  /* nothing stands behind them */
};
/* Of which blocks what follows the head is read, and checked. */
typedef bool piece_reads(void *context, const struct block_head *head);
bool piece_all(void *context, const struct block_head *head); /* of all */
/* Visits its blocks up to the first one that is not whole. `reads`: NULL for none. */
bool piece_walk(const char *path, piece_reads *reads, piece_visitor *visitor, void *context,
                struct piece_end *end, char *error, size_t error_len);
/* Pieces that a writer has left open: what is whole of them is kept. */
bool pieces_finish(const struct target_paths *paths, char *error, size_t error_len);

/* How far the log goes behind a base without a gap, and in which pieces, in order. */
struct chain {
    struct backup_position end;
    struct target_list pieces;
};
bool chain_find(const struct target_paths *paths, const struct target_entry *base, struct chain *chain,
                char *error, size_t error_len);
void chain_free(struct chain *chain);

/* ---- walk.c ---- */

/* Visits the batches of a target's log that were written from a moment on (included) up to another (excluded). False
 * and a sentence: not all of them are there. */
bool log_walk(const char *path, int64_t from_ms, int64_t to_ms, store_log_visitor visitor, void *context,
              char *error, size_t error_len);

#endif
