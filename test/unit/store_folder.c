/* The rules of the data folder: whose it is, one process at a time, and reading that changes nothing. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "unit/store_fixture.h"

static char error[512];

static struct store *open_as(const char *folder, bool create, bool read_only)
{
    struct store_options options = {
        .folder = folder, .create = create, .read_only = read_only, .cache_bytes = 1 << 20};
    error[0] = '\0';
    return store_open_disk(&options, error, sizeof error);
}

static void file_write(const char *folder, const char *name, const char *text)
{
    char *path = path_in(folder, name);
    FILE *file = fopen(path, "w");
    ensure(file);
    fputs(text, file);
    fclose(file);
    free(path);
}

static void file_read(const char *folder, const char *name, char out[64])
{
    char *path = path_in(folder, name);
    FILE *file = fopen(path, "r");
    ensure(file);
    out[fread(out, 1, 63, file)] = '\0';
    fclose(file);
    free(path);
}

/* Compares the error with a format that has the folder's path in it. */
#define CHECK_ERROR(format, ...)                                                                             \
    do {                                                                                                     \
        struct buf expected = {0};                                                                           \
        buf_printf(&expected, format, __VA_ARGS__);                                                          \
        buf_byte(&expected, '\0');                                                                           \
        CHECK_TEXT(slice_of(error), expected.data);                                                          \
        buf_free(&expected);                                                                                 \
    } while (0)

/* ---- whose folder ---- */

TEST(a_missing_folder_is_made_only_when_asked)
{
    char *parent = folder_make(), *folder = path_in(parent, "some/where/");
    CHECK(!open_as(folder, false, false));
    CHECK_ERROR("the data folder %s does not exist", folder);
    CHECK(!open_as(folder, true, true));
    CHECK_ERROR("the data folder %s does not exist", folder);
    CHECK(access(folder, F_OK) != 0);
    struct store *store = open_as(folder, true, false);
    CHECK(store);
    if (store) store_close(store);
    char marker[64];
    file_read(folder, "quipu", marker);
    CHECK_TEXT(slice_of(marker), "quipu data, format 2\n");
    free(folder);
    folder_remove(parent);
}

/* People make buckets before the first start, and disks come with lost+found. */
TEST(a_folder_of_buckets_only_becomes_a_data_folder)
{
    char *folder = folder_make(), *buckets = path_in(folder, "s3");
    ensure(mkdir(buckets, 0700) == 0);
    struct store *store = open_as(folder, true, false);
    CHECK(store);
    if (store) store_close(store);
    CHECK(access(buckets, F_OK) == 0);
    free(buckets);
    folder_remove(folder);
}

TEST(a_strange_folder_is_left_alone)
{
    char *folder = folder_make();
    file_write(folder, "letters.txt", "dear");
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the folder %s is not empty and holds no data of quipu; it is left as it is", folder);
    char *marker = path_in(folder, "quipu");
    CHECK(access(marker, F_OK) != 0);
    file_write(folder, "quipu", "a knotted cord\n");
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the folder %s is not a data folder of quipu: its file quipu says otherwise", folder);
    file_write(folder, "quipu", "");
    CHECK(!open_as(folder, true, false));
    char *files = path_in(folder, "store");
    CHECK(access(files, F_OK) != 0);
    free(files);
    free(marker);
    folder_remove(folder);
}

TEST(a_newer_format_is_refused)
{
    char *folder = folder_make();
    file_write(folder, "quipu", "quipu data, format 3\n");
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the data folder %s has format 3, written by a newer quipu; this one reads up to 2", folder);
    folder_remove(folder);
}

TEST(a_crash_while_the_folder_was_made_is_completed)
{
    char *folder = folder_make(), marker[64];
    file_write(folder, "quipu", "");
    CHECK(!open_as(folder, false, true));
    CHECK_ERROR("the data folder %s is empty", folder);
    struct store *store = disk_open(folder);
    if (store) store_close(store);
    file_read(folder, "quipu", marker);
    CHECK_TEXT(slice_of(marker), "quipu data, format 2\n");
    folder_remove(folder);
}

/* A file system may keep a file's size and lose its bytes. */
TEST(a_marker_of_zeros_is_completed_when_it_is_alone)
{
    char *folder = folder_make(), marker[64], *path = path_in(folder, "quipu");
    file_write(folder, "quipu", "");
    CHECK(truncate(path, 21) == 0);
    CHECK(!open_as(folder, false, true));
    CHECK_ERROR("the data folder %s is empty", folder);
    struct store *store = disk_open(folder);
    if (store) store_close(store);
    file_read(folder, "quipu", marker);
    CHECK_TEXT(slice_of(marker), "quipu data, format 2\n");
    CHECK(truncate(path, 0) == 0 && truncate(path, 21) == 0);
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the folder %s is not a data folder of quipu: its file quipu says otherwise", folder);
    free(path);
    folder_remove(folder);
}

TEST(a_file_is_no_folder)
{
    char *parent = folder_make(), *file = path_in(parent, "file"), *below = path_in(file, "data");
    file_write(parent, "file", "text");
    CHECK(!open_as(file, true, false));
    CHECK_ERROR("the data folder %s is not a folder", file);
    CHECK(!open_as(below, true, false));
    CHECK_ERROR("the data folder %s cannot be reached: Not a directory", below);
    CHECK(!open_as("", true, false));
    CHECK_TEXT(slice_of(error), "the data folder has no name");
    free(below);
    free(file);
    folder_remove(parent);
}

TEST(a_folder_without_permission_is_named)
{
    if (geteuid() == 0) return; /* root may everything */
    char *folder = folder_make();
    ensure(chmod(folder, 0500) == 0);
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the data folder %s cannot be written: Permission denied", folder);
    ensure(chmod(folder, 0) == 0);
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the data folder %s cannot be read: Permission denied", folder);
    ensure(chmod(folder, 0700) == 0);
    folder_remove(folder);
}

TEST(nothing_to_read_yet_is_said)
{
    char *folder = folder_make();
    CHECK(!open_as(folder, true, true));
    CHECK_ERROR("the data folder %s is empty", folder);
    /* What a crash leaves that came before the first batch: a folder with nothing in it. */
    file_write(folder, "quipu", "quipu data, format 2\n");
    struct store *store = open_as(folder, true, true);
    CHECK(store);
    if (store) {
        CHECK_TEXT(content(store, "", "", false), "");
        store_close(store);
    }
    folder_remove(folder);
}

/* ---- one at a time ---- */

TEST(a_held_folder_names_its_holder)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the data folder %s is in use by another process (pid %d)", folder, (int)getpid());
    CHECK(!open_as(folder, false, true));
    CHECK_ERROR("the data folder %s is in use by another process (pid %d)", folder, (int)getpid());
    if (store) store_close(store);
    store = disk_open(folder);
    if (store) store_close(store);
    folder_remove(folder);
}

TEST(readers_share_a_folder_and_keep_writers_out)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    put(store, "a", "1");
    store_close(store);
    struct store *first = open_as(folder, false, true), *second = open_as(folder, false, true);
    CHECK(first && second);
    CHECK(!open_as(folder, false, false));
    if (first) CHECK_TEXT(content(first, "", "", false), "a=1 ");
    if (second) CHECK_TEXT(value_of(second, "a"), "1");
    if (first) store_close(first);
    if (second) store_close(second);
    folder_remove(folder);
}

/* ---- reading only ---- */

static void folder_list(const char *folder, const char *out)
{
    struct buf command = {0};
    buf_printf(&command, "cd '%s' && find . -type f -printf '%%p %%s %%T@\\n' | sort > '%s'", folder, out);
    buf_byte(&command, '\0');
    ensure(system(command.data) == 0);
    buf_free(&command);
}

TEST(reading_only_changes_no_file)
{
    char *folder = folder_make(), *lists = folder_make();
    char *before = path_in(lists, "before"), *after = path_in(lists, "after");
    struct store *store = disk_open(folder);
    put(store, "a", "1");
    store_close(store);
    folder_list(folder, before);
    store = open_as(folder, false, true);
    CHECK_TEXT(slice_of(error), "");
    if (store) {
        CHECK_TEXT(value_of(store, "a"), "1");
        store_close(store);
    }
    folder_list(folder, after);
    struct buf command = {0};
    buf_printf(&command, "cmp -s '%s' '%s'", before, after);
    buf_byte(&command, '\0');
    CHECK(system(command.data) == 0);
    buf_free(&command);
    free(before);
    free(after);
    folder_remove(lists);
    folder_remove(folder);
}
