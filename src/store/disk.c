/* The store on disk: RocksDB behind our own folder rules (folder.c).
 *
 * A batch becomes one rocksdb_write. With sync, RocksDB writes and syncs its log before it inserts into
 * memory and lets readers see it (S2); without, the log has reached the operating system, so the end of this
 * process loses nothing. A failed write or sync, or a failure that RocksDB met in the background, ends all
 * writing (S3): what of the log is on disk is then unknown, and only reading it back at the next start tells.
 *
 * Called by any thread to read and by the writer's alone to write, stats excepted. */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "store/batch.h"
#include "store/disk_options.h"
#include "store/disk_reclaim.h"
#include "store/failure.h"
#include "store/folder.h"

#define BATCH_KEEP_BYTES (1024 * 1024) /* a larger RocksDB batch is given back after its write */
#define RANGE_FEW_KEYS   1000          /* up to so many keys of a range are deleted one by one */

struct disk {
    struct store store; /* first: a store is cast back to its disk */
    struct folder folder;
    struct disk_options options;
    rocksdb_t *db;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write_synced, *write_unsynced;
    rocksdb_writebatch_t *batch; /* the writer's, reused; empty between writes */
    struct store_batch cleared;  /* its large ranges, whose space can be given back */
    struct reclaim reclaim;
    struct failure failure;
    bool read_only;
};

static const struct store_methods disk_methods;

static struct disk *disk_of(struct store *store)
{
    ensure(store->methods == &disk_methods);
    return (struct disk *)store;
}

/* ---- failures ---- */

/* One sentence with the folder's path around RocksDB's own words, which are freed. */
static void describe(const struct disk *disk, const char *what, char *words, char *out, size_t out_len)
{
    const char *cause = strstr(words, "No space left") ? ", the disk is full" : "";
    snprintf(out, out_len, "the data folder %s %s%s: %s", disk->folder.path, what, cause, words);
    rocksdb_free(words);
}

static enum store_result read_failed(struct disk *disk, char *words)
{
    char text[sizeof disk->store.error];
    describe(disk, "cannot be read", words, text, sizeof text);
    return failure_of_read(&disk->failure, &disk->store, text);
}

static enum store_result write_failed(struct disk *disk, char *words)
{
    char text[sizeof disk->store.error];
    describe(disk, "cannot be written", words, text, sizeof text);
    return failure_of_write(&disk->failure, &disk->store, text);
}

/* ---- reading ---- */

/* RocksDB counts what it does per thread unless told otherwise; that is a tenth of a cached read. */
static void counting_off(void)
{
    static _Thread_local bool off;
    if (off) return;
    rocksdb_set_perf_level(rocksdb_disable);
    off = true;
}

static enum store_result disk_get(struct store *store, struct slice key, struct buf *value)
{
    struct disk *disk = disk_of(store);
    char *words = NULL;
    counting_off();
    rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(disk->db, disk->read, key.data, key.len, &words);
    if (words) return read_failed(disk, words);
    if (!pinned) return STORE_MISSING;
    size_t len;
    const char *data = rocksdb_pinnableslice_value(pinned, &len);
    buf_put(value, data, len);
    rocksdb_pinnableslice_destroy(pinned);
    return STORE_OK;
}

static void iterate(rocksdb_iterator_t *iterator, bool backwards, store_visitor visitor, void *context)
{
    while (rocksdb_iter_valid(iterator)) {
        struct slice key, value;
        key.data = rocksdb_iter_key(iterator, &key.len);
        value.data = rocksdb_iter_value(iterator, &value.len);
        if (!visitor(context, key, value)) return;
        if (backwards) {
            rocksdb_iter_prev(iterator);
        } else {
            rocksdb_iter_next(iterator);
        }
    }
}

/* NULL, or RocksDB's words when it failed. The bounds stand in the read options, which therefore belong to
 * one scan: RocksDB then need not look beyond them, over deleted keys or into the next file. */
static char *scan(struct disk *disk, struct slice from, struct slice to, bool backwards,
                  store_visitor visitor, void *context)
{
    if (to.len && slice_compare(from, to) >= 0) return NULL;
    counting_off();
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    if (to.len) rocksdb_readoptions_set_iterate_upper_bound(read, to.data, to.len);
    if (from.len) rocksdb_readoptions_set_iterate_lower_bound(read, from.data, from.len);
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(disk->db, read);
    if (backwards) {
        rocksdb_iter_seek_to_last(iterator);
    } else {
        rocksdb_iter_seek_to_first(iterator);
    }
    iterate(iterator, backwards, visitor, context);
    char *words = NULL;
    rocksdb_iter_get_error(iterator, &words);
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_destroy(read);
    return words;
}

static enum store_result disk_scan(struct store *store, struct slice from, struct slice to, bool backwards,
                                   store_visitor visitor, void *context)
{
    struct disk *disk = disk_of(store);
    char *words = scan(disk, from, to, backwards, visitor, context);
    return words ? read_failed(disk, words) : STORE_OK;
}

/* ---- deleting ranges ---- */

struct few_keys {
    rocksdb_writebatch_t *batch;
    uint32_t count;
};

static bool delete_one(void *context, struct slice key, struct slice value)
{
    struct few_keys *few = context;
    (void)value;
    if (few->count++ == RANGE_FEW_KEYS) return false;
    rocksdb_writebatch_delete(few->batch, key.data, key.len);
    return true;
}

/* True when the entry, of the same batch, puts a key into the range. */
static bool puts_into(const struct batch_entry *entry, const struct batch_entry *range)
{
    return entry->kind == BATCH_PUT && slice_compare(entry->key, range->key) >= 0 &&
           slice_compare(entry->key, range->value) < 0;
}

/* Deletes what earlier entries of this batch put into the range; the store does not know of them yet. */
static void delete_earlier_puts(struct disk *disk, const struct store_batch *batch,
                                const struct batch_entry *range)
{
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry) && entry.key.data != range->key.data;) {
        if (puts_into(&entry, range)) rocksdb_writebatch_delete(disk->batch, entry.key.data, entry.key.len);
    }
}

static bool later_puts(const struct store_batch *batch, const struct batch_entry *range)
{
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry);) {
        if (entry.key.data > range->key.data && puts_into(&entry, range)) return true;
    }
    return false;
}

/* A range tombstone costs every later read that meets it, so a short range is deleted key by key. */
static char *add_range(struct disk *disk, const struct store_batch *batch, const struct batch_entry *range)
{
    struct few_keys few = {disk->batch, 0};
    struct slice from = range->key, to = range->value;
    if (slice_compare(from, to) >= 0) return NULL;
    rocksdb_writebatch_set_save_point(disk->batch);
    char *words = scan(disk, from, to, false, delete_one, &few);
    if (words) return words;
    if (few.count <= RANGE_FEW_KEYS) {
        rocksdb_writebatch_pop_save_point(disk->batch, &words);
        delete_earlier_puts(disk, batch, range);
    } else {
        rocksdb_writebatch_rollback_to_save_point(disk->batch, &words);
        rocksdb_writebatch_delete_range(disk->batch, from.data, from.len, to.data, to.len);
        if (!later_puts(batch, range)) store_batch_delete_range(&disk->cleared, from, to);
    }
    return words;
}

/* The tombstones must be on disk before any file is dropped. */
static char *reclaim_cleared(struct disk *disk)
{
    struct batch_reader reader = batch_read(&disk->cleared);
    char *words = NULL;
    rocksdb_flush_wal(disk->db, true, &words);
    for (struct batch_entry range; !words && batch_next(&reader, &range);) {
        words = reclaim_range(&disk->reclaim, range.key, range.value);
    }
    return words;
}

/* ---- writing ---- */

static void batch_empty(struct disk *disk)
{
    size_t bytes;
    store_batch_clear(&disk->cleared);
    rocksdb_writebatch_data(disk->batch, &bytes);
    if (bytes <= BATCH_KEEP_BYTES) {
        rocksdb_writebatch_clear(disk->batch);
        return;
    }
    rocksdb_writebatch_destroy(disk->batch);
    disk->batch = rocksdb_writebatch_create();
}

static char *batch_fill(struct disk *disk, const struct store_batch *batch)
{
    struct batch_reader reader = batch_read(batch);
    char *words = NULL;
    for (struct batch_entry entry; !words && batch_next(&reader, &entry);) {
        struct slice key = entry.key, value = entry.value;
        switch (entry.kind) {
        case BATCH_PUT: rocksdb_writebatch_put(disk->batch, key.data, key.len, value.data, value.len); break;
        case BATCH_DELETE: rocksdb_writebatch_delete(disk->batch, key.data, key.len); break;
        case BATCH_DELETE_RANGE: words = add_range(disk, batch, &entry); break;
        }
    }
    return words;
}

/* False once writing has ended, also by a flush or compaction that failed behind our back. An empty write is
 * how RocksDB tells what that was. */
static bool may_write(struct disk *disk)
{
    uint64_t errors = 0;
    ensure(!disk->read_only);
    if (disk->failure.writes_refused) return false;
    if (rocksdb_property_int(disk->db, "rocksdb.background-errors", &errors) != 0 || errors == 0) return true;
    char *words = NULL;
    rocksdb_write(disk->db, disk->write_unsynced, disk->batch, &words);
    write_failed(disk,
                 words ? words : strdup("a failure in the background; the file store/LOG in it says more"));
    return false;
}

static enum store_result disk_write(struct store *store, const struct store_batch *batch, bool durable)
{
    struct disk *disk = disk_of(store);
    counting_off();
    if (!may_write(disk)) return STORE_FAILED;
    char *words = batch_fill(disk, batch);
    if (!words) {
        rocksdb_write(disk->db, durable ? disk->write_synced : disk->write_unsynced, disk->batch, &words);
    }
    if (!words && disk->cleared.count) words = reclaim_cleared(disk);
    batch_empty(disk);
    return words ? write_failed(disk, words) : STORE_OK;
}

static enum store_result disk_sync(struct store *store)
{
    struct disk *disk = disk_of(store);
    if (!may_write(disk)) return STORE_FAILED;
    char *words = NULL;
    rocksdb_flush_wal(disk->db, true, &words);
    return words ? write_failed(disk, words) : STORE_OK;
}

/* ---- the rest ---- */

static uint64_t property(struct disk *disk, const char *name)
{
    uint64_t value = 0;
    return rocksdb_property_int(disk->db, name, &value) == 0 ? value : 0;
}

static void disk_stats(struct store *store, struct store_stats *stats)
{
    struct disk *disk = disk_of(store);
    stats->disk_bytes = folder_bytes(&disk->folder);
    stats->memory_bytes = property(disk, "rocksdb.cur-size-all-mem-tables") +
                          property(disk, "rocksdb.estimate-table-readers-mem") +
                          rocksdb_cache_get_usage(disk->options.cache);
    stats->keys_estimate = property(disk, "rocksdb.estimate-num-keys");
}

static void disk_close(struct store *store)
{
    struct disk *disk = disk_of(store);
    if (disk->db) {
        reclaim_stop(&disk->reclaim);
        rocksdb_close(disk->db);
    }
    rocksdb_writebatch_destroy(disk->batch);
    store_batch_free(&disk->cleared);
    rocksdb_readoptions_destroy(disk->read);
    rocksdb_writeoptions_destroy(disk->write_synced);
    rocksdb_writeoptions_destroy(disk->write_unsynced);
    disk_options_free(&disk->options);
    folder_close(&disk->folder);
    failure_free(&disk->failure);
    free(disk);
}

static const struct store_methods disk_methods = {
    disk_get, disk_scan, disk_write, disk_sync, disk_stats, disk_close,
};

static bool database_open(struct disk *disk, char *error, size_t error_len)
{
    char *words = NULL;
    if (disk->read_only) {
        disk->db = rocksdb_open_for_read_only(disk->options.rocksdb, disk->folder.store_path, false, &words);
    } else {
        disk->db = rocksdb_open(disk->options.rocksdb, disk->folder.store_path, &words);
    }
    if (!words) {
        reclaim_init(&disk->reclaim, disk->db);
        return true;
    }
    bool damaged = strncmp(words, "Corruption", strlen("Corruption")) == 0;
    describe(disk, damaged ? "is damaged" : "cannot be opened", words, error, error_len);
    return false;
}

struct store *store_open_disk(const struct store_options *options, char *error, size_t error_len)
{
    struct folder folder;
    if (!folder_open(&folder, options, error, error_len)) return NULL;
    struct disk *disk = must_zero(1, sizeof *disk);
    disk->store.methods = &disk_methods;
    disk->folder = folder;
    disk->read_only = options->read_only;
    failure_init(&disk->failure);
    disk_options_init(&disk->options, options, options->read_only ? 0 : folder_tidy_logs(&folder));
    disk->read = rocksdb_readoptions_create();
    disk->write_synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(disk->write_synced, true);
    disk->write_unsynced = rocksdb_writeoptions_create();
    disk->batch = rocksdb_writebatch_create();
    if (database_open(disk, error, error_len)) return &disk->store;
    disk_close(&disk->store);
    return NULL;
}
