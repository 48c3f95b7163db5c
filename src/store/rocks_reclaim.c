/* A range tombstone hides five million items in a millisecond, but their bytes stay until compaction meets
 * them. So a thread of our own drops the files that hold nothing else, which is an edit of RocksDB's manifest, and
 * compacts the range: seconds of work that nobody waits for.
 *
 * Why only under a tombstone: a dropped file may have hidden older values in deeper levels, and the tombstone
 * goes on hiding them. Why only when the tombstone is in a file: whoever copies the files has what they had behind
 * one batch, so a file must not be gone before the batch that deleted its keys. On a full disk that is not waited for:
 * what is dropped is what makes room. Why not where something was put into the range since: it may be in a file. */
#include "store/rocks_reclaim.h"

#include "base/fail.h"
#include "store/batch.h"

void reclaim_init(struct reclaim *reclaim, rocksdb_t *db)
{
    *reclaim = (struct reclaim){.db = db};
    ensure(pthread_mutex_init(&reclaim->lock, NULL) == 0);
    ensure(pthread_cond_init(&reclaim->more, NULL) == 0);
}

void reclaim_stop(struct reclaim *reclaim)
{
    pthread_mutex_lock(&reclaim->lock);
    reclaim->stopping = true;
    pthread_cond_signal(&reclaim->more);
    pthread_mutex_unlock(&reclaim->lock);
    if (reclaim->started) {
        rocksdb_disable_manual_compaction(reclaim->db);
        rocksdb_cancel_all_background_work(reclaim->db, false);
        pthread_join(reclaim->thread, NULL);
    }
    store_batch_free(&reclaim->next.list);
    pthread_cond_destroy(&reclaim->more);
    pthread_mutex_destroy(&reclaim->lock);
}

/* Waits for ranges; false when it is time to end. */
static bool await_ranges(struct reclaim *reclaim)
{
    pthread_mutex_lock(&reclaim->lock);
    while (!reclaim->stopping && !reclaim->next.list.count) pthread_cond_wait(&reclaim->more, &reclaim->lock);
    bool goes_on = !reclaim->stopping;
    if (goes_on) {
        reclaim->current = reclaim->next;
        reclaim->next = (struct reclaim_ranges){0};
    }
    pthread_mutex_unlock(&reclaim->lock);
    return goes_on;
}

/* Failures of the thread need no answer: RocksDB counts them, and the next write finds them. */
static void forget(char *words)
{
    if (words) rocksdb_free(words);
}

static void flush(struct reclaim *reclaim)
{
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    char *words = NULL;
    rocksdb_flushoptions_set_wait(options, true);
    rocksdb_flush(reclaim->db, options, &words);
    forget(words);
    rocksdb_flushoptions_destroy(options);
}

/* A key below `to` with nearly nothing in between: rocksdb_delete_file_in_range counts its end in. */
static void last_key_below(struct buf *out, struct slice to)
{
    unsigned char last = (unsigned char)to.data[to.len - 1];
    buf_put(out, to.data, to.len - 1);
    if (last == 0) return;
    buf_byte(out, (unsigned char)(last - 1));
    buf_text(out, "\xff\xff\xff\xff\xff\xff\xff\xff");
}

static void drop(struct reclaim *reclaim, const struct store_batch *ranges)
{
    struct batch_reader reader = batch_read(ranges);
    struct buf last = {0};
    for (struct batch_entry range; batch_next(&reader, &range); last.len = 0) {
        char *words = NULL;
        last_key_below(&last, range.value);
        rocksdb_delete_file_in_range(reclaim->db, range.key.data, range.key.len, last.data, last.len, &words);
        forget(words);
    }
    buf_free(&last);
}

/* With the lock, so that nothing is put into the ranges meanwhile. The files themselves are deleted behind it, since
 * that takes long: as often as it was put off, never by force, for RocksDB puts it off for itself, too. */
static struct store_batch drop_files(struct reclaim *reclaim)
{
    char *words = NULL;
    rocksdb_disable_file_deletions(reclaim->db, &words);
    bool is_put_off = !words;
    forget(words);
    pthread_mutex_lock(&reclaim->lock);
    struct store_batch ranges = reclaim->current.list;
    if (!reclaim->current.is_written && is_put_off) drop(reclaim, &ranges);
    reclaim->current = (struct reclaim_ranges){0};
    atomic_store(&reclaim->waits, reclaim->next.list.count > 0);
    pthread_mutex_unlock(&reclaim->lock);
    words = NULL;
    if (is_put_off) rocksdb_enable_file_deletions(reclaim->db, false, &words);
    forget(words);
    return ranges;
}

static void *reclaim_run(void *argument)
{
    struct reclaim *reclaim = argument;
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(options, false);
    while (await_ranges(reclaim)) {
        flush(reclaim);
        struct store_batch ranges = drop_files(reclaim);
        struct batch_reader reader = batch_read(&ranges);
        for (struct batch_entry range; batch_next(&reader, &range);) {
            rocksdb_compact_range_opt(reclaim->db, options, range.key.data, range.key.len, range.value.data,
                                      range.value.len);
        }
        store_batch_free(&ranges);
    }
    rocksdb_compactoptions_destroy(options);
    return NULL;
}

/* The first range starts the thread: most stores never need one. */
void reclaim_range(struct reclaim *reclaim, struct slice from, struct slice to)
{
    pthread_mutex_lock(&reclaim->lock);
    store_batch_delete_range(&reclaim->next.list, from, to);
    atomic_store(&reclaim->waits, true);
    if (!reclaim->started) ensure(pthread_create(&reclaim->thread, NULL, reclaim_run, reclaim) == 0);
    reclaim->started = true;
    pthread_cond_signal(&reclaim->more);
    pthread_mutex_unlock(&reclaim->lock);
}

static bool is_within(const struct store_batch *ranges, struct slice key)
{
    struct batch_reader reader = batch_read(ranges);
    for (struct batch_entry range; batch_next(&reader, &range);)
        if (slice_compare(key, range.key) >= 0 && slice_compare(key, range.value) < 0) return true;
    return false;
}

bool reclaim_puts_into(const struct store_batch *batch, const struct store_batch *ranges)
{
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry);)
        if (entry.kind == BATCH_PUT && is_within(ranges, entry.key)) return true;
    return false;
}

void reclaim_see(struct reclaim *reclaim, const struct store_batch *batch)
{
    if (!atomic_load(&reclaim->waits)) return;
    pthread_mutex_lock(&reclaim->lock);
    reclaim->next.is_written |= reclaim_puts_into(batch, &reclaim->next.list);
    reclaim->current.is_written |= reclaim_puts_into(batch, &reclaim->current.list);
    pthread_mutex_unlock(&reclaim->lock);
}
