/* Copies of a store on disk: links of its files, the log behind them, and a folder made of both. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fail.h"
#include "unit/store_fixture.h"

static void put_number(struct store *store, uint32_t number)
{
    char key[32], value[32];
    snprintf(key, sizeof key, "key-%03u", number % 50);
    snprintf(value, sizeof value, "value-%u", number);
    put(store, key, value);
}

static bool apply_one(void *context, const struct store_log_batch *found)
{
    struct store_batch batch;
    ensure(store_batch_from_bytes(found->bytes, &batch));
    CHECK(store_write(context, &batch, false) == STORE_OK);
    return true;
}

/* A text that content() has lent. */
static char *kept(struct slice text)
{
    char *copy = strndup(text.data, text.len);
    ensure(copy);
    return copy;
}

TEST(a_copy_is_the_files_and_the_log_behind_them)
{
    char *folder = folder_make(), *other = folder_make(), *files = path_in(other, "store"), error[512] = "";
    struct store *store = disk_open(folder);
    uint64_t number;
    for (uint32_t i = 1; i <= 200; i++) put_number(store, i);
    char *before = kept(content(store, "", "", false));
    store_log_keep_from(store, 1);
    CHECK(store_checkpoint(store, files, &number, error, sizeof error));
    CHECK_TEXT(slice_of(error), "");
    CHECK_INT(number, 200);
    for (uint32_t i = 201; i <= 230; i++) put_number(store, i);
    CHECK(store_sync(store) == STORE_OK);
    CHECK_INT(store_log_synced(store), 230);
    char *after = kept(content(store, "", "", false));

    CHECK(store_adopt(other, error, sizeof error));
    CHECK_TEXT(slice_of(error), "");
    struct store *copy = disk_open(other);
    CHECK_TEXT(content(copy, "", "", false), before);
    CHECK(store_log_id(copy) != store_log_id(store));
    struct store_log_cursor cursor = {.number = number + 1};
    CHECK(store_log_read(store, &cursor, apply_one, copy, error, sizeof error) == STORE_OK);
    CHECK_INT(cursor.number, 231);
    CHECK_TEXT(content(copy, "", "", false), after);
    store_close(copy);
    copy = disk_open(other);
    CHECK_TEXT(content(copy, "", "", false), after);
    CHECK_TEXT(content(store, "", "", false), after);
    store_close(copy);
    store_close(store);
    free(before);
    free(after);
    free(files);
    folder_remove(folder);
    folder_remove(other);
}

/* Without files RocksDB would begin a new, empty store; nobody who restores wants that. */
TEST(a_folder_without_files_is_not_adopted)
{
    char *folder = folder_make(), *marker = path_in(folder, "quipu"), error[512] = "";
    struct stat status;
    CHECK(!store_adopt(folder, error, sizeof error));
    CHECK(strstr(error, folder) && strstr(error, "has no files of a store"));
    CHECK(stat(marker, &status) != 0);
    free(marker);
    folder_remove(folder);
}

TEST(a_store_in_memory_has_no_log)
{
    struct store *store = store_open_memory(NULL);
    CHECK_INT(store_log_id(store), 0);
    store_close(store);
}
