/* What survives: closing, the end of the process at any moment, a log that was cut off; and what is refused:
 * damage. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "unit/store_fixture.h"

/* ---- batches that tell whether they are whole ---- */

enum { BATCH_KEYS = 10 };

static enum store_result write_numbered(struct store *store, uint32_t number, bool durable)
{
    struct store_batch batch = {0};
    for (int i = 0; i < BATCH_KEYS; i++) {
        char key[32], value[512];
        snprintf(key, sizeof key, "key-%d", i);
        int len = snprintf(value, sizeof value, "%-500u", number);
        store_batch_put(&batch, slice_of(key), (struct slice){value, (size_t)len});
    }
    enum store_result result = store_write(store, &batch, durable);
    store_batch_free(&batch);
    return result;
}

struct survivors {
    uint32_t number, count;
    bool torn;
};

static bool survivor(void *context, struct slice key, struct slice value)
{
    struct survivors *survivors = context;
    char digits[16];
    (void)key;
    snprintf(digits, sizeof digits, "%.*s", 12, value.data);
    uint32_t number = (uint32_t)strtoul(digits, NULL, 10);
    if (survivors->count++ == 0) survivors->number = number;
    survivors->torn = survivors->torn || survivors->number != number;
    return true;
}

/* The number of the batch that the store holds; 0: none. All of its keys must be of that one batch. */
static uint32_t numbered_content(struct store *store)
{
    struct survivors survivors = {0};
    CHECK(store_scan(store, SLICE(""), SLICE(""), false, survivor, &survivors) == STORE_OK);
    CHECK(survivors.count == 0 || survivors.count == BATCH_KEYS);
    CHECK(!survivors.torn);
    return survivors.number;
}

static uint32_t numbered_content_of(const char *folder)
{
    struct store *store = disk_open(folder);
    if (!store) return 0;
    uint32_t number = numbered_content(store);
    store_close(store);
    return number;
}

/* ---- the end of the process ---- */

TEST(content_survives_closing)
{
    char *folder = folder_make();
    for (uint32_t round = 1; round <= 5; round++) {
        struct store *store = disk_open(folder);
        CHECK_INT(numbered_content(store), round - 1);
        CHECK(write_numbered(store, round, round % 2) == STORE_OK);
        store_close(store);
    }
    folder_remove(folder);
}

TEST(child_writes_until_killed)
{
    const char *folder = getenv(CHILD_FOLDER);
    if (!folder) return;
    bool durable = strcmp(getenv(CHILD_DURABLE), "yes") == 0;
    struct store *store = disk_open(folder);
    ensure(store);
    for (uint32_t number = numbered_content(store) + 1;; number++) {
        ensure(write_numbered(store, number, durable) == STORE_OK);
        child_report(number);
    }
}

/* Several lives of one folder: each continues what the last, killed at some moment, has left. */
static void kill_and_check(bool durable)
{
    char *folder = folder_make();
    for (unsigned life = 0; life < 8; life++) {
        struct child child = child_start("child_writes_until_killed", folder, durable ? "yes" : "no");
        uint32_t first, last;
        ensure(read(child.report, &first, sizeof first) == sizeof first);
        usleep(1000 + life * 3000);
        kill(child.pid, SIGKILL);
        last = child_end(child, NULL);
        if (last < first) last = first;
        uint32_t number = numbered_content_of(folder);
        CHECK(number == last ||
              number == last + 1); /* the report of the last may be missing, never the batch */
    }
    folder_remove(folder);
}

TEST(acknowledged_batches_survive_kill_when_durable)
{
    kill_and_check(true);
}

TEST(acknowledged_batches_survive_kill_when_not_durable)
{
    kill_and_check(false);
}

TEST(child_waits)
{
    if (getenv(CHILD_FOLDER)) pause();
}

/* Until then it holds what its parent has open. */
static void await_program(pid_t pid)
{
    char path[40], environment[65536];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    for (int i = 0; i < 60000; i++) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? 0 : read(file, environment, sizeof environment);
        if (file >= 0) close(file);
        if (got > 0 && memmem(environment, (size_t)got, CHILD_FOLDER "=", strlen(CHILD_FOLDER "="))) return;
        usleep(1000);
    }
}

TEST(a_child_process_does_not_keep_the_folder)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    struct child child = child_start("child_waits", folder, "no");
    await_program(child.pid);
    store_close(store);
    CHECK_INT(numbered_content_of(folder), 0);
    kill(child.pid, SIGKILL);
    child_end(child, NULL);
    folder_remove(folder);
}

/* ---- a disk that takes no more ---- */

TEST(child_writes_until_refused)
{
    const char *folder = getenv(CHILD_FOLDER);
    if (!folder) return;
    signal(SIGXFSZ, SIG_IGN);
    ensure(setrlimit(RLIMIT_FSIZE, &(struct rlimit){512 * 1024, 512 * 1024}) == 0);
    struct store *store = disk_open(folder);
    ensure(store);
    uint32_t number = 1;
    while (write_numbered(store, number, false) == STORE_OK) {
        child_report(number);
        number++;
    }
    CHECK(strstr(store->error, folder));
    CHECK(strstr(store->error, "cannot be written"));
    CHECK(strstr(store->error, "File too large"));
    char words[sizeof store->error];
    memcpy(words, store->error, sizeof words);
    ensure(setrlimit(RLIMIT_FSIZE, &(struct rlimit){512 * 1024, 512 * 1024}) == 0);
    for (int i = 0; i < 3; i++) CHECK(write_numbered(store, number + 1, true) == STORE_FAILED);
    CHECK(store_sync(store) == STORE_FAILED);
    CHECK_TEXT(slice_of(store->error), words);
    CHECK_INT(numbered_content(store), number - 1);
    store_close(store);
}

TEST(a_failed_write_on_disk_ends_writing_and_loses_nothing)
{
    char *folder = folder_make();
    int status;
    uint32_t last = child_end(child_start("child_writes_until_refused", folder, "no"), &status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(last > 50);
    uint32_t number = numbered_content_of(folder);
    CHECK(number == last || number == last + 1);
    folder_remove(folder);
}

/* ---- logs that end early, and damage ---- */

/* The path of the largest file in the store with this ending; free() it. */
static char *largest_file(const char *folder, const char *ending, off_t *size)
{
    char *files = path_in(folder, "store"), *found = NULL;
    DIR *directory = opendir(files);
    ensure(directory);
    *size = -1;
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct stat stat;
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ending) != 0) continue;
        ensure(fstatat(dirfd(directory), entry->d_name, &stat, 0) == 0);
        if (stat.st_size <= *size) continue;
        *size = stat.st_size;
        free(found);
        found = path_in(files, entry->d_name);
    }
    closedir(directory);
    free(files);
    ensure(found);
    return found;
}

static char *folder_with_batches(uint32_t count)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    for (uint32_t number = 1; number <= count; number++)
        CHECK(write_numbered(store, number, false) == STORE_OK);
    store_close(store);
    return folder;
}

TEST(a_log_cut_off_anywhere_loses_only_its_last_batch)
{
    enum { BATCHES = 4 };
    off_t size;
    for (off_t cut = 1; cut < 5000; cut += 613) {
        char *folder = folder_with_batches(BATCHES);
        char *log = largest_file(folder, ".log", &size);
        ensure(truncate(log, size - cut) == 0);
        CHECK_INT(numbered_content_of(folder), BATCHES - 1);
        free(log);
        folder_remove(folder);
    }
}

/* What a crash leaves of a log whose space was reserved ahead. */
TEST(zeros_behind_the_log_are_no_damage)
{
    char *folder = folder_with_batches(4);
    off_t size;
    char *log = largest_file(folder, ".log", &size);
    ensure(truncate(log, size + 100000) == 0);
    CHECK_INT(numbered_content_of(folder), 4);
    free(log);
    folder_remove(folder);
}

static void byte_change(const char *path, off_t at)
{
    char byte;
    int file = open(path, O_RDWR);
    ensure(file >= 0 && pread(file, &byte, 1, at) == 1);
    byte = (char)(byte ^ 0x40);
    ensure(pwrite(file, &byte, 1, at) == 1);
    close(file);
}

TEST(a_damaged_log_is_refused)
{
    char *folder = folder_with_batches(10), error[512] = "", start[512];
    off_t size;
    char *log = largest_file(folder, ".log", &size);
    byte_change(log, size / 2);
    struct store_options options = {.folder = folder, .cache_bytes = 1 << 20};
    struct store *store = store_open_disk(&options, error, sizeof error);
    CHECK(!store);
    if (store) store_close(store);
    snprintf(start, sizeof start, "the data folder %s is damaged: ", folder);
    CHECK(slice_starts(slice_of(error), slice_of(start)));
    byte_change(log, size / 2);
    CHECK_INT(numbered_content_of(folder), 10);
    free(log);
    folder_remove(folder);
}

/* Each start that writes leaves a log, until there are so many that the next start merges them into a file.
 */
static void start_often(const char *folder, uint32_t starts)
{
    for (uint32_t start = 1; start <= starts; start++) {
        struct store *store = disk_open(folder);
        CHECK(write_numbered(store, start, false) == STORE_OK);
        store_close(store);
        CHECK_INT(numbered_content_of(folder), start);
    }
}

TEST(a_damaged_file_fails_the_reads_that_meet_it)
{
    char *folder = folder_make();
    off_t size;
    start_often(folder, 8);
    char *file = largest_file(folder, ".sst", &size);
    byte_change(file, 100);
    struct store *store = disk_open(folder);
    CHECK_TEXT(value_of(store, "other"), "(missing)");
    CHECK_TEXT(value_of(store, "key-3"), "(failed)");
    CHECK_TEXT(content(store, "", "", false), "(failed)");
    CHECK(strstr(store->error, folder));
    CHECK(strstr(store->error, "cannot be read"));
    store_close(store);
    free(file);
    folder_remove(folder);
}

TEST(a_store_that_lost_its_beginning_is_not_begun_anew)
{
    char *folder = folder_with_batches(3), error[512];
    char *current = path_in(folder, "store/CURRENT"), *kept = path_in(folder, "store/kept");
    ensure(rename(current, kept) == 0);
    struct store_options options = {.folder = folder, .create = true, .cache_bytes = 1 << 20};
    CHECK(!store_open_disk(&options, error, sizeof error));
    CHECK(strstr(error, "is damaged: the file "));
    ensure(rename(kept, current) == 0);
    CHECK_INT(numbered_content_of(folder), 3);
    free(current);
    free(kept);
    folder_remove(folder);
}

TEST(starts_do_not_pile_up_logs)
{
    char *folder = folder_make(), *files = path_in(folder, "store");
    start_often(folder, 20);
    int logs = 0;
    DIR *directory = opendir(files);
    ensure(directory);
    for (struct dirent *entry; (entry = readdir(directory));) logs += strstr(entry->d_name, ".log") != NULL;
    closedir(directory);
    CHECK(logs <= 9);
    free(files);
    folder_remove(folder);
}
