/* RocksDB behind the functions of a store. Readers on any thread; one writer. */
#include "store/rocks.h"

#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "store/batch.h"
#include "store/failure.h"
#include "store/rocks_options.h"
#include "store/rocks_reclaim.h"

#define BATCH_KEEP_BYTES (1024 * 1024) /* a larger RocksDB batch is given back after its write */
#define RANGE_FEW_KEYS   1000          /* up to so many keys of a range are deleted one by one */
#define TOMBSTONES_WORDS "# range deletions="
#define READ_ON_DISK     2 /* rocksdb::kPersistedTier, which c.h does not name */

/* Behind all keys of users; scans end before it. */
static const struct slice mark_key = SLICE("\xff\xff\xff\xff\xff\xff\xff\xffjournal");

struct rocks {
    struct store store; /* first: a store is cast back to its rocks */
    char *folder;
    struct rocks_setup setup;
    rocksdb_t *db;
    rocksdb_readoptions_t *read, *read_on_disk;
    rocksdb_writeoptions_t *write;
    rocksdb_writebatch_t *batch; /* the writer's, reused; empty between writes */
    struct store_batch cleared;  /* large ranges that it has deleted, whose space can be given back */
    struct reclaim reclaim;
    struct failure failure;      /* of reads */
    uint64_t past_errors;        /* failures in the background that RocksDB has got over */
    _Atomic bool has_tombstones; /* of ranges, perhaps */
    bool read_only;
};

static const struct store_methods rocks_methods;

static struct rocks *rocks_of(struct store *store)
{
    ensure(store->methods == &rocks_methods);
    return (struct rocks *)store;
}

/* ---- failures ---- */

static bool is_full(const char *words)
{
    return strstr(words, "No space left") || strstr(words, "Disk quota") || strstr(words, "File too large");
}

/* One sentence with the folder's path around RocksDB's own words, which are freed. */
static void describe(const struct rocks *rocks, const char *what, char *words, char *out, size_t out_len)
{
    const char *cause = is_full(words) ? ", the disk is full" : "";
    snprintf(out, out_len, "the data folder %s %s%s: %s", rocks->folder, what, cause, words);
    rocksdb_free(words);
}

static enum store_result read_failed(struct rocks *rocks, char *words)
{
    char text[sizeof rocks->store.error];
    describe(rocks, "cannot be read", words, text, sizeof text);
    return failure_of_read(&rocks->failure, &rocks->store, text);
}

static enum rocks_result write_failed(struct rocks *rocks, char *words)
{
    bool full = is_full(words);
    describe(rocks, "cannot be written", words, rocks->store.refusal, sizeof rocks->store.refusal);
    return full ? ROCKS_NO_ROOM : ROCKS_FAILED;
}

/* ---- reading ---- */

static uint64_t property(struct rocks *rocks, const char *name)
{
    uint64_t value = 0;
    return rocksdb_property_int(rocks->db, name, &value) == 0 ? value : 0;
}

/* RocksDB counts what it does per thread unless told otherwise; that is a tenth of a cached read. */
static void counting_off(void)
{
    static _Thread_local bool off;
    if (off) return;
    rocksdb_set_perf_level(rocksdb_disable);
    off = true;
}

static enum store_result rocks_get(struct store *store, struct slice key, struct buf *value)
{
    struct rocks *rocks = rocks_of(store);
    char *words = NULL;
    counting_off();
    rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(rocks->db, rocks->read, key.data, key.len, &words);
    if (words) return read_failed(rocks, words);
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

/* RocksDB 7.8 loses an error of iterators: a table whose first block cannot be read is passed over as if it were empty,
 * unless range tombstones are ignored (mended in 8.5.1). They are, where there are none. The writer tells of its first
 * one before it writes it; an iterator that was made meanwhile may see it, and is made again. */
static rocksdb_iterator_t *iterator_make(struct rocks *rocks, rocksdb_readoptions_t *read)
{
    bool ignores = !atomic_load(&rocks->has_tombstones);
    rocksdb_readoptions_set_ignore_range_deletions(read, ignores);
    rocksdb_iterator_t *iterator = rocksdb_create_iterator(rocks->db, read);
    if (!ignores || !atomic_load(&rocks->has_tombstones)) return iterator;
    rocksdb_iter_destroy(iterator);
    rocksdb_readoptions_set_ignore_range_deletions(read, false);
    return rocksdb_create_iterator(rocks->db, read);
}

/* NULL, or RocksDB's words when it failed. The bounds stand in the read options, which therefore belong to
 * one scan: RocksDB then need not look beyond them, over deleted keys or into the next file. */
static char *scan(struct rocks *rocks, struct slice from, struct slice to, bool backwards,
                  store_visitor visitor, void *context)
{
    if (!to.len) to = mark_key;
    if (slice_compare(from, to) >= 0) return NULL;
    counting_off();
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_iterate_upper_bound(read, to.data, to.len);
    if (from.len) rocksdb_readoptions_set_iterate_lower_bound(read, from.data, from.len);
    rocksdb_iterator_t *iterator = iterator_make(rocks, read);
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

static enum store_result rocks_scan(struct store *store, struct slice from, struct slice to, bool backwards,
                                    store_visitor visitor, void *context)
{
    struct rocks *rocks = rocks_of(store);
    char *words = scan(rocks, from, to, backwards, visitor, context);
    return words ? read_failed(rocks, words) : STORE_OK;
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
static void delete_earlier_puts(struct rocks *rocks, const struct store_batch *batch,
                                const struct batch_entry *range)
{
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry) && entry.key.data != range->key.data;) {
        if (puts_into(&entry, range)) rocksdb_writebatch_delete(rocks->batch, entry.key.data, entry.key.len);
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
static char *add_range(struct rocks *rocks, const struct store_batch *batch, const struct batch_entry *range)
{
    struct few_keys few = {rocks->batch, 0};
    struct slice from = range->key, to = range->value;
    if (slice_compare(from, to) >= 0) return NULL;
    rocksdb_writebatch_set_save_point(rocks->batch);
    char *words = scan(rocks, from, to, false, delete_one, &few);
    if (words) return words;
    if (few.count <= RANGE_FEW_KEYS) {
        rocksdb_writebatch_pop_save_point(rocks->batch, &words);
        delete_earlier_puts(rocks, batch, range);
    } else {
        rocksdb_writebatch_rollback_to_save_point(rocks->batch, &words);
        atomic_store(&rocks->has_tombstones, true);
        rocksdb_writebatch_delete_range(rocks->batch, from.data, from.len, to.data, to.len);
        if (!later_puts(batch, range)) store_batch_delete_range(&rocks->cleared, from, to);
    }
    return words;
}

/* ---- writing ---- */

static void batch_empty(struct rocks *rocks)
{
    size_t bytes;
    rocksdb_writebatch_data(rocks->batch, &bytes);
    if (bytes <= BATCH_KEEP_BYTES) {
        rocksdb_writebatch_clear(rocks->batch);
        return;
    }
    rocksdb_writebatch_destroy(rocks->batch);
    rocks->batch = rocksdb_writebatch_create();
}

static char *batch_fill(struct rocks *rocks, const struct store_batch *batch)
{
    struct batch_reader reader = batch_read(batch);
    char *words = NULL;
    for (struct batch_entry entry; !words && batch_next(&reader, &entry);) {
        struct slice key = entry.key, value = entry.value;
        switch (entry.kind) {
        case BATCH_PUT: rocksdb_writebatch_put(rocks->batch, key.data, key.len, value.data, value.len); break;
        case BATCH_DELETE: rocksdb_writebatch_delete(rocks->batch, key.data, key.len); break;
        case BATCH_DELETE_RANGE: words = add_range(rocks, batch, &entry); break;
        }
    }
    return words;
}

static void batch_mark(struct rocks *rocks, struct rocks_mark mark)
{
    struct buf value = {0};
    buf_u64(&value, mark.journal);
    buf_u64(&value, mark.number);
    rocksdb_writebatch_put(rocks->batch, mark_key.data, mark_key.len, value.data, value.len);
    buf_free(&value);
}

enum rocks_result rocks_write(struct store *store, const struct store_batch *batch, struct rocks_mark mark)
{
    struct rocks *rocks = rocks_of(store);
    counting_off();
    reclaim_see(&rocks->reclaim, batch);
    if (rocks->cleared.count && reclaim_puts_into(batch, &rocks->cleared)) store_batch_clear(&rocks->cleared);
    struct store_batch cleared = rocks->cleared;
    char *words = batch_fill(rocks, batch);
    if (!words) {
        batch_mark(rocks, mark);
        rocksdb_write(rocks->db, rocks->write, rocks->batch, &words);
    }
    batch_empty(rocks);
    if (words) { /* what it was to clear is there still */
        rocks->cleared.entries.len = cleared.entries.len;
        rocks->cleared.count = cleared.count;
    }
    return words ? write_failed(rocks, words) : ROCKS_OK;
}

bool rocks_has_cleared(struct store *store)
{
    return rocks_of(store)->cleared.count > 0;
}

void rocks_reclaim(struct store *store)
{
    struct rocks *rocks = rocks_of(store);
    struct batch_reader reader = batch_read(&rocks->cleared);
    for (struct batch_entry range; batch_next(&reader, &range);)
        reclaim_range(&rocks->reclaim, range.key, range.value);
    store_batch_clear(&rocks->cleared);
}

/* RocksDB tries again by itself what failed for want of room. Meanwhile it takes what fits in its memory, and would
 * then make the writer wait: that is found before it happens. When everything is in its files the failures are past. */
enum rocks_result rocks_state(struct store *store)
{
    struct rocks *rocks = rocks_of(store);
    uint64_t errors = property(rocks, "rocksdb.background-errors");
    if (errors == rocks->past_errors) return ROCKS_OK;
    uint64_t waiting = property(rocks, "rocksdb.num-immutable-mem-table");
    char *words = NULL;
    rocksdb_write(rocks->db, rocks->write, rocks->batch, &words); /* an empty one tells what has failed */
    if (words) return write_failed(rocks, words);
    if (waiting == 0) rocks->past_errors = errors;
    if (waiting + 1 < ROCKS_MEMTABLES) return ROCKS_OK;
    snprintf(store->refusal, sizeof store->refusal,
             "the data folder %s has no room for the files of its tables", rocks->folder);
    return ROCKS_NO_ROOM;
}

bool rocks_is_well(struct store *store)
{
    struct rocks *rocks = rocks_of(store);
    return property(rocks, "rocksdb.background-errors") == rocks->past_errors;
}

bool rocks_is_calm(struct store *store)
{
    struct rocks *rocks = rocks_of(store);
    return rocks_is_well(store) && property(rocks, "rocksdb.num-immutable-mem-table") + 1 < ROCKS_MEMTABLES &&
           !property(rocks, "rocksdb.is-write-stopped") &&
           !property(rocks, "rocksdb.actual-delayed-write-rate");
}

/* ---- the mark, and flushing ---- */

static bool mark_read(struct rocks *rocks, rocksdb_readoptions_t *options, struct rocks_mark *mark)
{
    char *words = NULL;
    *mark = (struct rocks_mark){0};
    rocksdb_pinnableslice_t *pinned = rocksdb_get_pinned(rocks->db, options, mark_key.data, mark_key.len,
                                                         &words);
    if (words) return read_failed(rocks, words) == STORE_OK;
    if (!pinned) return true;
    size_t len;
    const char *data = rocksdb_pinnableslice_value(pinned, &len);
    if (len == 16) *mark = (struct rocks_mark){bytes_u64(data), bytes_u64(data + 8)};
    rocksdb_pinnableslice_destroy(pinned);
    return true;
}

bool rocks_mark_all(struct store *store, struct rocks_mark *mark)
{
    struct rocks *rocks = rocks_of(store);
    return mark_read(rocks, rocks->read, mark);
}

bool rocks_mark_on_disk(struct store *store, struct rocks_mark *mark)
{
    struct rocks *rocks = rocks_of(store);
    return mark_read(rocks, rocks->read_on_disk, mark);
}

void rocks_flush(struct store *store)
{
    struct rocks *rocks = rocks_of(store);
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    char *words = NULL;
    rocksdb_flushoptions_set_wait(options, true);
    rocksdb_flush(rocks->db, options, &words);
    if (words) rocksdb_free(words);
    rocksdb_flushoptions_destroy(options);
}

/* ---- the rest ---- */

void rocks_forget_failure(struct store *store)
{
    rocks_of(store)->failure.any_read = false;
}

uint64_t rocks_unflushed_bytes(struct store *store)
{
    return property(rocks_of(store), "rocksdb.cur-size-all-mem-tables");
}

bool rocks_checkpoint(struct store *store, const char *path, char *error, size_t error_len)
{
    struct rocks *rocks = rocks_of(store);
    char *words = NULL;
    rocksdb_checkpoint_t *checkpoint = rocksdb_checkpoint_object_create(rocks->db, &words);
    if (checkpoint) {
        rocksdb_checkpoint_create(checkpoint, path, 0, &words);
        rocksdb_checkpoint_object_destroy(checkpoint);
    }
    if (words) describe(rocks, "cannot be copied", words, error, error_len);
    return !words;
}

static void rocks_stats(struct store *store, struct store_stats *stats)
{
    struct rocks *rocks = rocks_of(store);
    stats->memory_bytes = rocks_unflushed_bytes(store) +
                          property(rocks, "rocksdb.estimate-table-readers-mem") +
                          rocksdb_cache_get_usage(rocks->setup.cache);
    stats->keys_estimate = property(rocks, "rocksdb.estimate-num-keys");
}

static void rocks_close(struct store *store)
{
    struct rocks *rocks = rocks_of(store);
    if (rocks->db) {
        reclaim_stop(&rocks->reclaim);
        rocksdb_close(rocks->db);
    }
    rocksdb_writebatch_destroy(rocks->batch);
    store_batch_free(&rocks->cleared);
    rocksdb_readoptions_destroy(rocks->read);
    rocksdb_readoptions_destroy(rocks->read_on_disk);
    rocksdb_writeoptions_destroy(rocks->write);
    rocks_setup_free(&rocks->setup);
    failure_free(&rocks->failure);
    free(rocks->folder);
    free(rocks);
}

static const struct store_methods rocks_methods = {
    .get = rocks_get,
    .scan = rocks_scan,
    .stats = rocks_stats,
    .close = rocks_close,
};

/* Whether there may be tombstones of ranges at the start: in tables, of which RocksDB says it as text
 * ("...; # range deletions=0; ..."), or in what it has read from a log of its own. */
static bool may_have_tombstones(struct rocks *rocks)
{
    if (property(rocks, "rocksdb.num-entries-active-mem-table") ||
        property(rocks, "rocksdb.num-entries-imm-mem-tables"))
        return true;
    char *text = rocksdb_property_value(rocks->db, "rocksdb.aggregated-table-properties");
    const char *count = text ? strstr(text, TOMBSTONES_WORDS) : NULL;
    bool none = count && !strncmp(count, TOMBSTONES_WORDS "0;", strlen(TOMBSTONES_WORDS "0;"));
    rocksdb_free(text);
    return !none;
}

static bool database_open(struct rocks *rocks, const char *path, char *error, size_t error_len)
{
    char *words = NULL;
    if (rocks->read_only) {
        rocks->db = rocksdb_open_for_read_only(rocks->setup.rocksdb, path, false, &words);
    } else {
        rocks->db = rocksdb_open(rocks->setup.rocksdb, path, &words);
    }
    if (!words) {
        reclaim_init(&rocks->reclaim, rocks->db);
        rocks->has_tombstones = may_have_tombstones(rocks);
        return true;
    }
    bool damaged = strncmp(words, "Corruption", strlen("Corruption")) == 0;
    describe(rocks, damaged ? "is damaged" : "cannot be opened", words, error, error_len);
    return false;
}

struct store *rocks_open(const struct rocks_options *options, char *error, size_t error_len)
{
    struct rocks *rocks = must_zero(1, sizeof *rocks);
    rocks->store.methods = &rocks_methods;
    rocks->folder = strdup(options->folder);
    ensure(rocks->folder);
    rocks->read_only = options->read_only;
    failure_init(&rocks->failure);
    rocks_setup_init(&rocks->setup, options);
    rocks->read = rocksdb_readoptions_create();
    rocks->read_on_disk = rocksdb_readoptions_create();
    rocksdb_readoptions_set_read_tier(rocks->read_on_disk, READ_ON_DISK);
    rocks->write = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(rocks->write, 1);
    rocks->batch = rocksdb_writebatch_create();
    if (database_open(rocks, options->path, error, error_len)) return &rocks->store;
    rocks_close(&rocks->store);
    return NULL;
}
