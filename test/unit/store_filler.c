/* A disk that is full just when RocksDB is handed a batch that is in the journal already: it is acknowledged, can be
 * read, and reaches RocksDB later. RocksDB's own function is replaced here by one that finds no room when told so. */
#include <pthread.h>
#include <rocksdb/c.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"
#include "unit/store_fixture.h"

enum { RANGE_KEYS = 1200, FILLED_KEYS = 20 };

static _Atomic bool has_no_room;
static _Atomic unsigned written;

void __real_rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_writebatch_t *batch,
                          char **words);
void __wrap_rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_writebatch_t *batch,
                          char **words);
void __wrap_rocksdb_write(rocksdb_t *db, const rocksdb_writeoptions_t *options, rocksdb_writebatch_t *batch,
                          char **words)
{
    if (has_no_room) {
        ensure((*words = strdup("IO error: No space left on device: it is said")) != NULL);
        return;
    }
    __real_rocksdb_write(db, options, batch, words);
    written++;
}

static enum store_result write_one(struct store *store, const char *key, const char *value)
{
    struct store_batch batch = {0};
    store_batch_put(&batch, slice_of(key), slice_of(value));
    enum store_result result = store_write(store, &batch, true);
    store_batch_free(&batch);
    return result;
}

/* Of so many keys that a thread hands them over. */
static enum store_result write_many(struct store *store, char table, unsigned count, const char *value)
{
    struct store_batch batch = {0};
    for (unsigned i = 0; i < count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%c%05u", table, i);
        store_batch_put(&batch, slice_of(key), slice_of(value));
    }
    enum store_result result = store_write(store, &batch, true);
    store_batch_free(&batch);
    return result;
}

static void write_when_there_is_room(struct store *store, const char *key, const char *value)
{
    enum store_result result;
    while ((result = write_one(store, key, value)) == STORE_FULL) usleep(1000);
    CHECK(result == STORE_OK);
}

TEST(a_batch_for_which_rocksdb_has_no_room_is_read_and_reaches_it_later)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    CHECK(write_one(store, "a", "1") == STORE_OK);
    has_no_room = true;
    CHECK(write_one(store, "b", "2") == STORE_OK);
    CHECK_TEXT(value_of(store, "b"), "2");
    CHECK_TEXT(content(store, "", "", false), "a=1 b=2 ");
    CHECK_TEXT(content(store, "", "", true), "b=2 a=1 ");
    CHECK(write_one(store, "c", "3") == STORE_FULL);
    CHECK(strstr(store->refusal, "the disk is full: IO error: No space left on device: it is said"));
    CHECK_TEXT(content(store, "", "", false), "a=1 b=2 ");
    has_no_room = false;
    write_when_there_is_room(store, "c", "4");
    CHECK_TEXT(content(store, "", "", false), "a=1 b=2 c=4 ");
    store_close(store);
    store = disk_open(folder);
    CHECK_TEXT(content(store, "", "", false), "a=1 b=2 c=4 ");
    store_close(store);
    folder_remove(folder);
}

TEST(an_end_while_rocksdb_has_no_room_leaves_the_batch_to_the_next_start)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    has_no_room = true;
    CHECK(write_one(store, "b", "2") == STORE_OK);
    store_close(store);
    has_no_room = false;
    store = disk_open(folder);
    CHECK_TEXT(content(store, "", "", false), "b=2 ");
    CHECK(write_one(store, "c", "3") == STORE_OK);
    store_close(store);
    folder_remove(folder);
}

static bool count_one(void *context, struct slice key, struct slice value)
{
    (void)key, (void)value;
    ++*(unsigned *)context;
    return true;
}

static unsigned count_in(struct store *store, const char *from, const char *to)
{
    unsigned count = 0;
    CHECK(store_scan(store, slice_of(from), slice_of(to), false, count_one, &count) == STORE_OK);
    return count;
}

/* A table that is deleted is what makes room. */
TEST(a_range_for_whose_deletion_rocksdb_has_no_room_is_gone_at_once_and_for_good)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    struct store_batch batch = {0};
    CHECK(write_many(store, 'a', RANGE_KEYS, "1") == STORE_OK);
    CHECK(write_many(store, 'c', RANGE_KEYS, "1") == STORE_OK);
    has_no_room = true;
    store_batch_delete_range(&batch, SLICE("a"), SLICE("b"));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    CHECK_INT(count_in(store, "", ""), RANGE_KEYS);
    CHECK_INT(count_in(store, "a", "b"), 0);
    CHECK(write_one(store, "b", "1") == STORE_FULL);
    has_no_room = false;
    write_when_there_is_room(store, "b", "2");
    CHECK_INT(count_in(store, "a", "b"), 0);
    CHECK_INT(count_in(store, "", ""), RANGE_KEYS + 1);
    store_close(store);
    store = disk_open(folder);
    CHECK_INT(count_in(store, "a", "b"), 0);
    CHECK_INT(count_in(store, "", ""), RANGE_KEYS + 1);
    store_batch_free(&batch);
    store_close(store);
    folder_remove(folder);
}

/* ---- a reader that reads while it reads ---- */

struct nested {
    struct store *store;
    _Atomic bool has_begun, may_go_on;
    bool is_done;
    struct slice key;
};

static bool read_within(void *context, struct slice key, struct slice value)
{
    struct nested *nested = context;
    struct buf found = {0};
    (void)key, (void)value;
    nested->has_begun = true;
    while (!nested->may_go_on) usleep(1000);
    CHECK(store_get(nested->store, nested->key, &found) == STORE_OK);
    buf_free(&found);
    nested->is_done = true;
    return false;
}

static void *scan_and_read(void *context)
{
    struct nested *nested = context;
    CHECK(store_scan(nested->store, SLICE_NONE, SLICE_NONE, false, read_within, nested) == STORE_OK);
    return NULL;
}

static void *write_twice(void *context)
{
    struct store *store = context;
    CHECK(write_many(store, 'b', FILLED_KEYS, "1") == STORE_OK);
    CHECK(write_many(store, 'c', FILLED_KEYS, "1") == STORE_OK); /* not read in between: the thread's */
    return NULL;
}

/* It holds what waited for room; the thread waits for it, and it must not wait for the thread. */
TEST(a_reader_within_a_reader_ends_when_there_is_room_again)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    struct nested nested = {.store = store, .key = SLICE("a00001")};
    pthread_t reader, writer;
    has_no_room = true;
    CHECK(write_many(store, 'a', FILLED_KEYS, "1") == STORE_OK);
    ensure(pthread_create(&reader, NULL, scan_and_read, &nested) == 0);
    while (!nested.has_begun) usleep(1000);
    unsigned before = written;
    has_no_room = false;
    while (written == before) usleep(1000);
    ensure(pthread_create(&writer, NULL, write_twice, store) == 0);
    usleep(50000); /* so that it comes as far as it can */
    nested.may_go_on = true;
    pthread_join(reader, NULL);
    pthread_join(writer, NULL);
    CHECK(nested.is_done);
    CHECK_INT(count_in(store, "", ""), 3 * FILLED_KEYS);
    store_close(store);
    folder_remove(folder);
}
