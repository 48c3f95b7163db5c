/* What only the store on disk does: whose folder it is, one process at a time, and what survives a crash. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static char *path_in(const char *folder, const char *name)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%s", folder, name);
    buf_byte(&path, '\0');
    return path.data;
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
    char *parent = folder_make(), *folder = path_in(parent, "some/where");
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
    CHECK_TEXT(slice_of(marker), "quipu data, format 1\n");
    free(folder);
    folder_remove(parent);
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
    file_write(folder, "quipu", "quipu data, format 2\n");
    CHECK(!open_as(folder, true, false));
    CHECK_ERROR("the data folder %s has format 2, written by a newer quipu; this one reads up to 1", folder);
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
    CHECK_TEXT(slice_of(marker), "quipu data, format 1\n");
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

/* ---- what survives ---- */

TEST(content_survives_closing)
{
    char *folder = folder_make();
    for (int round = 1; round <= 5; round++) {
        struct store *store = disk_open(folder);
        char value[8], before[8];
        snprintf(value, sizeof value, "%d", round);
        snprintf(before, sizeof before, "%d", round - 1);
        if (round > 1) CHECK_TEXT(value_of(store, "round"), before);
        put(store, "round", value);
        store_close(store);
    }
    folder_remove(folder);
}

/* Writes numbered batches of ten keys and reports each that store_write has acknowledged, until it is killed.
 */
static _Noreturn void write_until_killed(const char *folder, int report, bool durable)
{
    struct store *store = disk_open(folder);
    struct store_batch batch = {0};
    for (uint32_t number = 1; store; number++) {
        store_batch_clear(&batch);
        for (int i = 0; i < 10; i++) {
            char key[32], value[512];
            snprintf(key, sizeof key, "key-%d", i);
            int len = snprintf(value, sizeof value, "%-500u", number);
            store_batch_put(&batch, slice_of(key), (struct slice){value, (size_t)len});
        }
        if (store_write(store, &batch, durable) != STORE_OK) break;
        if (write(report, &number, sizeof number) != sizeof number) break;
    }
    _exit(1);
}

struct survivors {
    uint32_t number, count;
    bool torn;
};

static bool survivor(void *context, struct slice key, struct slice value)
{
    struct survivors *survivors = context;
    char text[16];
    (void)key;
    snprintf(text, sizeof text, "%.*s", 12, value.data);
    uint32_t number = (uint32_t)strtoul(text, NULL, 10);
    if (survivors->count++ == 0) survivors->number = number;
    survivors->torn = survivors->torn || survivors->number != number;
    return true;
}

/* Runs the writer, kills it after some time and answers the last batch that it saw acknowledged. */
static uint32_t run_and_kill(const char *folder, bool durable, unsigned after_us)
{
    int report[2];
    ensure(pipe(report) == 0);
    pid_t child = fork();
    ensure(child >= 0);
    if (child == 0) write_until_killed(folder, report[1], durable);
    close(report[1]);
    uint32_t last = 0, number;
    ensure(read(report[0], &number, sizeof number) == sizeof number);
    last = number;
    usleep(after_us);
    kill(child, SIGKILL);
    while (read(report[0], &number, sizeof number) == sizeof number) last = number;
    close(report[0]);
    waitpid(child, NULL, 0);
    return last;
}

static void kill_and_check(bool durable)
{
    for (unsigned round = 0; round < 5; round++) {
        char *folder = folder_make();
        uint32_t last = run_and_kill(folder, durable, 1000 + round * 7000);
        struct store *store = disk_open(folder);
        struct survivors survivors = {0};
        CHECK(store_scan(store, SLICE(""), SLICE(""), false, survivor, &survivors) == STORE_OK);
        CHECK_INT(survivors.count, 10);
        CHECK(!survivors.torn);
        CHECK(survivors.number == last || survivors.number == last + 1);
        store_close(store);
        folder_remove(folder);
    }
}

TEST(acknowledged_batches_survive_kill_when_durable)
{
    kill_and_check(true);
}

TEST(acknowledged_batches_survive_kill_when_not_durable)
{
    kill_and_check(false);
}

/* ---- large ranges ---- */

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
