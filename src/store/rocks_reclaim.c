/* A range tombstone hides five million items in a millisecond, but their bytes stay until compaction meets
 * them. So the writer at once drops the files that hold nothing else, which is an edit of RocksDB's manifest,
 * and a thread of our own deletes those files and compacts the range: seconds of work that nobody waits for.
 *
 * Why only under a tombstone: a dropped file may have hidden older values in deeper levels, and the tombstone
 * goes on hiding them. Why only after a durable batch: a dropped file does not come back when the log's end
 * is lost. Why by the writer: a later put into the range must not be in a file yet. */
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
        pthread_join(reclaim->thread, NULL);
    }
    store_batch_free(&reclaim->ranges);
    pthread_cond_destroy(&reclaim->more);
    pthread_mutex_destroy(&reclaim->lock);
}

/* Waits for ranges and takes them all; false when it is time to end. */
static bool take_ranges(struct reclaim *reclaim, struct store_batch *ranges, unsigned *held)
{
    pthread_mutex_lock(&reclaim->lock);
    while (!reclaim->stopping && !reclaim->ranges.count) pthread_cond_wait(&reclaim->more, &reclaim->lock);
    *ranges = reclaim->ranges;
    reclaim->ranges = (struct store_batch){0};
    *held = reclaim->held;
    reclaim->held = 0;
    pthread_mutex_unlock(&reclaim->lock);
    return ranges->count > 0;
}

/* Failures need no answer here: RocksDB counts them, and the next write finds them. */
static void *reclaim_run(void *argument)
{
    struct reclaim *reclaim = argument;
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_exclusive_manual_compaction(options, false);
    unsigned held;
    for (struct store_batch ranges; take_ranges(reclaim, &ranges, &held); store_batch_free(&ranges)) {
        /* As often as it was put off, never by force: RocksDB puts it off for itself, too, and counts on that. */
        while (held--) {
            char *words = NULL;
            rocksdb_enable_file_deletions(reclaim->db, false, &words);
            if (words) rocksdb_free(words);
        }
        struct batch_reader reader = batch_read(&ranges);
        for (struct batch_entry range; batch_next(&reader, &range);) {
            rocksdb_compact_range_opt(reclaim->db, options, range.key.data, range.key.len, range.value.data,
                                      range.value.len);
        }
    }
    rocksdb_compactoptions_destroy(options);
    return NULL;
}

/* Hands the range to the thread, which the first range starts: most stores never need one. */
static void compact_later(struct reclaim *reclaim, struct slice from, struct slice to, bool is_held)
{
    pthread_mutex_lock(&reclaim->lock);
    if (is_held) reclaim->held++;
    store_batch_delete_range(&reclaim->ranges, from, to);
    if (!reclaim->started) ensure(pthread_create(&reclaim->thread, NULL, reclaim_run, reclaim) == 0);
    reclaim->started = true;
    pthread_cond_signal(&reclaim->more);
    pthread_mutex_unlock(&reclaim->lock);
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

char *reclaim_range(struct reclaim *reclaim, struct slice from, struct slice to)
{
    struct buf last = {0};
    char *words = NULL;
    last_key_below(&last, to);
    /* Deleting large files takes long; the thread lets it happen. */
    rocksdb_disable_file_deletions(reclaim->db, &words);
    bool is_held = !words;
    if (is_held) {
        rocksdb_delete_file_in_range(reclaim->db, from.data, from.len, last.data, last.len, &words);
    }
    compact_later(reclaim, from, to, is_held);
    buf_free(&last);
    return words;
}
