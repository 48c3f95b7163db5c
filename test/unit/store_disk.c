/* What only the store on disk does beside surviving: large ranges, and their space. */
#include <unistd.h>

#include "unit/store_fixture.h"

static void put_many(struct store *store, char table, uint32_t count)
{
    struct store_batch batch = {0};
    static const char filler[300];
    for (uint32_t i = 0; i < count; i++) {
        char key[32];
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
    for (int i = 0; i < 1000; i++) {
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
