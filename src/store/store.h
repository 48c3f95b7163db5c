/* Ordered bytes: keys to values, atomic batches, durable when asked. Two implementations behind one small
 * table of functions: RocksDB for disks, and a tree in memory that tests can make fail and that `--memory`
 * serves from.
 *
 * Invariants:
 *  S1. A batch is applied whole or not at all, also across a crash.
 *  S2. Readers see only what store_write has finished; with `durable` that means it is on disk before anyone
 *      can read it.
 *  S3. After store_write or store_sync failed, the store refuses all further writes: what is on disk is
 *      unknown.
 *  S4. Any thread may read at any time; one thread writes. A store owns its memory; slices handed to a
 *      visitor die when the visitor returns. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/slice.h"

enum store_result { STORE_OK, STORE_MISSING, STORE_FAILED };

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
    char error[512]; /* what the last failure was, in words */
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
};

/* Opens the folder. On failure answers NULL and one clear sentence in error: held by another process, not
 * ours, not readable, disk full, damaged, written by a newer version. Never damages what it does not
 * understand. */
struct store *store_open_disk(const struct store_options *options, char *error, size_t error_len);

/* ---- in memory ---- */

/* What goes wrong on purpose: the call with this number (counted from 1 over all gets, scans, writes and
 * syncs) fails. A failing write has applied nothing. */
struct store_faults {
    uint64_t fail_at; /* 0: never */
    uint64_t calls;   /* made so far */
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

#endif
