/* What only the store on disk does beside surviving: large ranges, and their space. */
#include <rocksdb/c.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/random.h"
#include "store/rocks.h"
#include "unit/store_fixture.h"

/* RocksDB's own function is replaced by this one, so that little data makes several files. */
#define SMALL_FILE 65536
static bool has_small_files;
void __real_rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t *options, uint64_t bytes);
void __wrap_rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t *options, uint64_t bytes);
void __wrap_rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t *options, uint64_t bytes)
{
    if (has_small_files) rocksdb_options_set_target_file_size_base(options, SMALL_FILE);
    __real_rocksdb_options_set_max_bytes_for_level_base(options, bytes);
}

static void put_many(struct store *store, char table, uint32_t count)
{
    struct store_batch batch = {0};
    char filler[300]; /* of digits that no compression makes short */
    struct random random;
    random_seed(&random, 1);
    for (uint32_t i = 0; i < count; i++) {
        char key[32];
        for (size_t j = 0; j < sizeof filler; j++) filler[j] = (char)random_next(&random);
        snprintf(key, sizeof key, "%c%08u", table, i);
        store_batch_put(&batch, slice_of(key), (struct slice){filler, sizeof filler});
        if (batch.count == 1000 || i + 1 == count) {
            CHECK(store_write(store, &batch, false) == STORE_OK);
            store_batch_clear(&batch);
        }
    }
    store_batch_free(&batch);
}

static bool count_one(void *context, struct slice key, struct slice value)
{
    (void)key, (void)value;
    ++*(uint32_t *)context;
    return true;
}

static uint32_t count_in(struct store *store, struct slice from, struct slice to)
{
    uint32_t count = 0;
    CHECK(store_scan(store, from, to, false, count_one, &count) == STORE_OK);
    return count;
}

TEST(a_large_range_goes_at_once_and_its_neighbours_stay)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    struct store_batch batch = {0};
    put_many(store, 'a', 5000);
    put_many(store, 'b', 5000);
    put_many(store, 'c', 5000);
    store_batch_put(&batch, SLICE("b1 before"), SLICE("1"));
    store_batch_delete_range(&batch, SLICE("b"), SLICE("c"));
    store_batch_put(&batch, SLICE("b2 after"), SLICE("2"));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    for (int round = 0; round < 2; round++) {
        CHECK_INT(count_in(store, SLICE("a"), SLICE("b")), 5000);
        CHECK_TEXT(content(store, "b", "c", false), "b2 after=2 ");
        CHECK_INT(count_in(store, SLICE("c"), SLICE("")), 5000);
        store_close(store);
        store = disk_open(folder);
    }
    store_batch_free(&batch);
    store_close(store);
    folder_remove(folder);
}

/* Waits until the files of its tables are smaller than this. */
static bool shrinks_below(const char *folder, uint64_t bytes)
{
    for (int i = 0; i < 12000; i++) { /* two minutes, of what only hangs when it is broken */
        if (bytes_in(folder, "store") < bytes) return true;
        usleep(10000);
    }
    return false;
}

/* The second range ends where the only file ends: whoever dropped the file with the range would lose a key
 * that is not in it. The first range is there to bring the file about, by the compaction that gives its space
 * back. */
TEST(a_large_range_gives_its_space_back_and_keeps_what_borders_on_it)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    struct store_batch batch = {0};
    put_many(store, 'a', 20000);
    put_many(store, 'b', 5000);
    put(store, "c", "border");
    store_batch_delete_range(&batch, SLICE("a"), SLICE("b"));
    CHECK(store_write(store, &batch, false) == STORE_OK);
    CHECK(shrinks_below(folder, 3 * 1000 * 1000));
    store_batch_clear(&batch);
    store_batch_delete_range(&batch, SLICE("a"), SLICE("c"));
    CHECK(store_write(store, &batch, false) == STORE_OK);
    CHECK_TEXT(content(store, "", "", false), "c=border ");
    store_close(store);
    store = disk_open(folder);
    CHECK_TEXT(content(store, "", "", false), "c=border ");
    store_batch_free(&batch);
    store_close(store);
    folder_remove(folder);
}

/* The compaction behind the first range brings files of the lower levels about, most of which have nothing but "b". */
static struct store *open_with_file(const char *folder)
{
    char *path = path_in(folder, "checkpoint"), error[512];
    struct store *store = disk_open(folder);
    struct store_batch batch = {0};
    uint64_t number;
    put_many(store, 'a', 20000);
    put_many(store, 'b', 5000);
    put(store, "c", "border");
    CHECK(store_checkpoint(store, path, &number, error, sizeof error)); /* brings it to files */
    CHECK(bytes_in(folder, "store") > 3 * 1000 * 1000);
    free(path);
    store_batch_delete_range(&batch, SLICE("a"), SLICE("b"));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    CHECK(shrinks_below(folder, 3 * 1000 * 1000));
    store_batch_free(&batch);
    return store;
}

TEST(child_is_killed_behind_a_range)
{
    const char *folder = getenv(CHILD_FOLDER);
    if (!folder) return;
    has_small_files = true;
    struct store *store = open_with_file(folder);
    struct store_batch batch = {0};
    store_batch_delete_range(&batch, SLICE("b"), SLICE("c"));
    CHECK(store_write(store, &batch, true) == STORE_OK);
    usleep((useconds_t)strtoul(getenv(CHILD_DURABLE), NULL, 10));
    raise(SIGKILL);
}

/* Whoever copies the tables' files takes them for what was there behind the batch that they name. */
TEST(tables_lack_nothing_that_was_there_behind_the_last_batch_that_they_have)
{
    static const char *const behind_us[] = {"0", "1000", "10000", "100000"};
    for (size_t i = 0; i < sizeof behind_us / sizeof *behind_us; i++) {
        char *folder = folder_make(), *path = path_in(folder, "store"), error[512] = "";
        int status;
        child_end(child_start("child_is_killed_behind_a_range", folder, behind_us[i]), &status);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        struct rocks_options options = {
            .folder = folder, .path = path, .read_only = true, .cache_bytes = 1 << 20};
        struct store *tables = rocks_open(&options, error, sizeof error), *store;
        struct rocks_mark mark;
        CHECK_TEXT(slice_of(error), "");
        CHECK(tables && rocks_mark_on_disk(tables, &mark));
        uint32_t left = tables ? count_in(tables, SLICE("b"), SLICE("c")) : 0;
        if (tables) store_close(tables);
        store = disk_open(folder);
        bool has_deletion = mark.number == store_log_synced(store);
        CHECK_INT(left, has_deletion ? 0 : 5000);
        CHECK_TEXT(content(store, "", "", false), "c=border ");
        store_close(store);
        free(path);
        folder_remove(folder);
    }
}

/* What is put into a range before its files are dropped stays. */
TEST(what_is_put_into_a_large_range_behind_its_deletion_stays)
{
    char *folder = folder_make();
    struct store *store = open_with_file(folder);
    struct store_batch batch = {0};
    for (uint32_t round = 0; round < 20; round++) {
        store_batch_clear(&batch);
        store_batch_delete_range(&batch, SLICE("b"), SLICE("c"));
        CHECK(store_write(store, &batch, true) == STORE_OK);
        put_many(store, 'b', 1500 + round);
        CHECK_INT(count_in(store, SLICE("b"), SLICE("c")), 1500 + round);
    }
    store_close(store);
    store = disk_open(folder);
    CHECK_INT(count_in(store, SLICE("b"), SLICE("c")), 1519);
    store_batch_free(&batch);
    store_close(store);
    folder_remove(folder);
}

TEST(closing_does_not_wait_for_space_to_be_given_back)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    struct store_batch batch = {0};
    put_many(store, 'a', 5000);
    for (char table = 'b'; table < 'g'; table++) {
        put_many(store, table, 2000);
        store_batch_clear(&batch);
        store_batch_delete_range(&batch, (struct slice){&table, 1},
                                 (struct slice){(char[]){(char)(table + 1)}, 1});
        CHECK(store_write(store, &batch, false) == STORE_OK);
    }
    store_close(store);
    store = disk_open(folder);
    CHECK_INT(count_in(store, SLICE(""), SLICE("")), 5000);
    store_batch_free(&batch);
    store_close(store);
    folder_remove(folder);
}
