/* Ordered bytes: keys to values, atomic batches, durable when asked. Implementations behind one small table of
 * functions: for disks a commit log of our own with RocksDB behind it; a tree in memory that tests can make fail and
 * that `--memory` serves from; and one that lies in memory over another, for folders that must not be written.
 *
 * Invariants:
 *  S1. A batch is applied whole or not at all, also across a crash.
 *  S2. Readers see only what store_write has finished; with `durable` that means it is on disk before anyone
 *      can read it. Whoever begins to read after store_write has answered sees the batch, or a failure.
 *  S3. After store_write or store_sync failed, the store refuses all further writes: what is on disk is unknown. A
 *      disk without room is no such failure: STORE_FULL says that nothing has changed, and that a later write may do.
 *  S4. Any thread may read at any time; one thread writes. A store owns its memory; slices handed to a
 *      visitor die when the visitor returns. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum store_result { STORE_OK, STORE_MISSING, STORE_FULL, STORE_FAILED };

/* Answers false to stop the scan. */
typedef bool (*store_visitor)(void *context, struct slice key, struct slice value);

struct store;

/* Writes collected for one commit; later entries win over earlier ones of the same key. */
struct store_batch {
    struct buf entries; /* kind, key, value; read by the implementations */
    uint32_t count;
};

void store_batch_put(struct store_batch *batch, struct slice key, struct slice value);
void store_batch_delete(struct store_batch *batch, struct slice key);
/* All keys from the first (included) to the second (excluded, never empty). */
void store_batch_delete_range(struct store_batch *batch, struct slice from, struct slice to);
void store_batch_clear(struct store_batch *batch);
void store_batch_free(struct store_batch *batch);

struct store_stats {
    uint64_t disk_bytes;
    uint64_t memory_bytes;
    uint64_t keys_estimate;
};

struct store_methods {
    enum store_result (*get)(struct store *, struct slice key, struct buf *value);
    enum store_result (*scan)(struct store *, struct slice from, struct slice to, bool backwards,
                              store_visitor, void *context);
    enum store_result (*write)(struct store *, const struct store_batch *, bool durable);
    enum store_result (*sync)(struct store *);
    void (*stats)(struct store *, struct store_stats *);
    void (*close)(struct store *);
};

struct store {
    const struct store_methods *methods;
    char error[512];   /* what the last failure was, in words */
    char refusal[512]; /* why there was no room for the last write; read on the writer's thread only */
};

/* Appends the value to *value. */
static inline enum store_result store_get(struct store *store, struct slice key, struct buf *value)
{
    return store->methods->get(store, key, value);
}

/* Visits keys in from <= key < to, in order or backwards; an empty `to` means the end of the store. */
static inline enum store_result store_scan(struct store *store, struct slice from, struct slice to,
                                           bool backwards, store_visitor visitor, void *context)
{
    return store->methods->scan(store, from, to, backwards, visitor, context);
}

/* Applies the batch; when durable, it is on disk before this returns and before any reader sees it. */
static inline enum store_result store_write(struct store *store, const struct store_batch *batch,
                                            bool durable)
{
    return store->methods->write(store, batch, durable);
}

/* Makes everything written so far durable. */
static inline enum store_result store_sync(struct store *store)
{
    return store->methods->sync(store);
}

static inline void store_stats(struct store *store, struct store_stats *stats)
{
    store->methods->stats(store, stats);
}

static inline void store_close(struct store *store)
{
    store->methods->close(store);
}

/* ---- on disk ---- */

struct store_options {
    const char *folder;
    bool read_only;       /* for check and show beside no server; never creates */
    bool create;          /* make the folder when it is missing */
    uint64_t cache_bytes; /* block cache of the store itself */
    uint32_t open_files;  /* that it keeps open, about; 0: all it has */
    const struct clock *clock; /* kept; by it the log tells when a batch was written; NULL: the system's */
};

/* Opens the folder. On failure answers NULL and one clear sentence in error: held by another process, not
 * ours, not readable, disk full, damaged, written by a newer version. Never damages what it does not
 * understand. */
struct store *store_open_disk(const struct store_options *options, char *error, size_t error_len);

/* ---- copies of what is on disk: for any thread beside the writer's. Stores in memory have none of it ---- */

/* The log's batches have numbers without a gap, from 1 on; a folder that was restored begins anew, with another id. */
uint64_t store_log_id(struct store *store);     /* 0: it has no log */
uint64_t store_log_first(struct store *store);  /* the oldest batch that is there; behind the last: none is */
uint64_t store_log_synced(struct store *store); /* the last batch that is on disk */

struct store_log_batch {
    uint64_t number;
    int64_t time_ms; /* when it was written; never goes back */
    struct slice bytes;
};
/* Answers false to stop. */
typedef bool (*store_log_visitor)(void *context, const struct store_log_batch *batch);

/* Where a reader of the log is. Set the number of the first batch to read; the rest begins with zeros. */
struct store_log_cursor {
    uint64_t number;
    uint64_t segment, at; /* private: where it stands */
};
/* Visits batches from the cursor on, up to the last synced one, and moves it behind the last one visited.
 * STORE_MISSING: the batch is not in the log any more. STORE_FAILED: sentence in error. */
enum store_result store_log_read(struct store *store, struct store_log_cursor *cursor, store_log_visitor visitor,
                                 void *context, char *error, size_t error_len);
/* Batches from this number on stay in the log, though the tables have them. UINT64_MAX: nobody needs any. */
void store_log_keep_from(struct store *store, uint64_t number);

/* Brings everything to the tables' files and links them into a new folder at the path, on the same file system.
 * *number: up to which batch it has everything. */
bool store_checkpoint(struct store *store, const char *path, uint64_t *number, char *error, size_t error_len);
#define FOLDER_BUCKETS   "s3" /* may be in a data folder, also before it is one: exports and imports of that server */
#define FOLDER_RESTORING "quipu-restoring" /* is in a folder while it is made of a backup */
/* Makes a data folder of such files, which have been brought to FOLDER/store; its log begins anew. The folder is not
 * one of ours before, and is one only when everything is done. */
bool store_adopt(const char *folder, char *error, size_t error_len);
/* Up to which batch the tables' files in FOLDER/store go, while nobody writes to them. */
bool store_files_number(const char *path, uint64_t *number, char *error, size_t error_len);
/* Whether this is a data folder, of whatever format. */
bool store_is_data_folder(const char *path);
/* The batch of such bytes, which stay the caller's. False: they are none. */
bool store_batch_from_bytes(struct slice bytes, struct store_batch *batch);

enum store_entry_kind { STORE_ENTRY_PUT, STORE_ENTRY_DELETE, STORE_ENTRY_DELETE_RANGE };
/* Of a range `value` is the key behind its last. */
typedef void (*store_entry_visitor)(void *context, enum store_entry_kind kind, struct slice key, struct slice value);
void store_batch_visit(const struct store_batch *batch, store_entry_visitor visitor, void *context);

/* ---- what a damaged folder still holds ---- */

struct store_salvage {
    struct buf sentences;   /* what is damaged, a line each; empty: nothing, as far as it was looked at */
    struct store_batch gaps; /* runs of keys that could not be read, as ranges */
};

/* What can be read of the folder, as a store that is only scanned forwards: a scan goes on behind what it cannot read,
 * and notes that in *out, which is kept. The folder is only read. Where its files have to be put in order, links to
 * them are made in the folder `work`, which is empty; the caller removes it. NULL and a
 * sentence when nothing can be read, or another process has the folder. */
struct store *store_open_salvage(const char *folder, const char *work, struct store_salvage *out, char *error,
                                 size_t error_len);
void store_salvage_free(struct store_salvage *salvage);

/* ---- in memory ---- */

/* What goes wrong on purpose: the call with this number (counted from 1 over all gets, scans, writes and
 * syncs) fails. A failing write has applied nothing. */
struct store_faults {
    uint64_t fail_at; /* 0: never */
    uint64_t calls;   /* made so far */
    bool is_full;     /* writes find no room */
};

struct store *store_open_memory(struct store_faults *faults); /* keeps faults; NULL for none */
bool store_is_memory(const struct store *store);
/* The whole content as it is now, in constant time; and back to it, in this store or another in memory: that
 * is a restart with a known content, so a failure is forgotten. A snapshot is freed by store_snapshot_free.
 */
struct store_snapshot;
struct store_snapshot *store_snapshot_take(struct store *memory_store);
void store_snapshot_restore(struct store *memory_store, const struct store_snapshot *snapshot);
void store_snapshot_free(struct store_snapshot *snapshot);

/* From now on the content as it was at each moment is kept too, of each millisecond the last; of the oldest moments as
 * many are given up as LIMIT_MEMORY_HISTORY_BYTES of later writes ask for. Keeps the clock. */
void store_history_begin(struct store *memory_store, const struct clock *clock);
void store_history_end(struct store *memory_store);
int64_t store_history_from(struct store *memory_store); /* the first moment; INT64_MAX: nothing is kept */
/* NULL: that moment is not kept. */
struct store_snapshot *store_history_at(struct store *memory_store, int64_t at_ms);
/* Visits what was written from the first moment on (included) up to the second (excluded), in order; the batches have
 * no numbers. STORE_MISSING: not all of it is kept, or somebody went back to a snapshot in between. */
enum store_result store_history_read(struct store *memory_store, int64_t from_ms, int64_t to_ms,
                                     store_log_visitor visitor, void *context);

#endif
