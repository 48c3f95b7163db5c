/* The data folder: whose it is, which format it has, and that no other process holds it. */
#ifndef STORE_FOLDER_H
#define STORE_FOLDER_H

#include "store/store.h"

#define FOLDER_FORMAT          2 /* raised when older programs must not touch what newer ones write */
#define FOLDER_FORMAT_WITH_LOG 1 /* RocksDB had a log of its own, and there was no journal */

/* What the marker says of the journal, and what a journal that is there must therefore have. */
struct folder_log {
    uint64_t id;      /* of the journal; 0: none was begun yet, as far as the marker knows */
    uint64_t last;    /* batches up to this one are on disk, in the journal or in the tables */
    bool is_unsynced; /* the tables may have batches that a power cut has taken from the journal */
};

struct folder {
    int lock;         /* the open marker file; its lock lasts as long as this is open */
    char *path;       /* as the user named it */
    char *store_path; /* where RocksDB's files live */
    char *journal_path;
    int format;
    struct folder_log log;
};

/* Finds or makes the folder and locks it: alone, or shared among those that only read. False and one sentence
 * in error when that cannot be; then nothing is held and nothing was changed, except that a missing folder
 * may have been made. */
bool folder_open(struct folder *folder, const struct store_options *options, char *error, size_t error_len);
void folder_close(struct folder *folder);

/* Where the journal's files live: made when it is not there and `create` is set. */
bool folder_find_journal(const struct folder *folder, bool create, bool *found, char *error,
                         size_t error_len);
/* What can be seen of its names need not be on disk: the process that made them may have ended before its sync. Brings
 * them there: its own name, and those in it. False and errno. */
bool folder_settle(const struct folder *folder);
/* Writes that into the marker; on disk when it answers. False and errno. */
bool folder_note_log(struct folder *folder, struct folder_log log);
/* Reads it from a marker that may be damaged; zeros then. */
struct folder_log folder_read_log(int marker);
/* The folder is one of FOLDER_FORMAT from now on. */
bool folder_raise_format(struct folder *folder, char *error, size_t error_len);

/* Marks a folder as ours that has everything but the marker. */
bool folder_make_ours(const char *path, char *error, size_t error_len);

/* Whether RocksDB has ever been at this path. */
bool folder_is_store(const char *store_path);
/* Bytes of RocksDB's files and the journal's. */
uint64_t folder_bytes(const struct folder *folder);
/* Deletes RocksDB's logs with nothing in them, one from each start. Only before RocksDB has the folder open. */
void folder_tidy_logs(const struct folder *folder);

#endif
