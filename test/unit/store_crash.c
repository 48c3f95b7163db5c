/* What survives: closing, the end of the process at any moment, a log that was cut off; and what is refused:
 * damage. */
#include <dirent.h>
#include <fcntl.h>
#include <rocksdb/c.h>
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
    CHECK(store_scan(store, SLICE("key-"), SLICE("key."), false, survivor, &survivors) == STORE_OK);
    CHECK(survivors.count == 0 || survivors.count == BATCH_KEYS);
    CHECK(!survivors.torn);
    return survivors.number;
}

/* The same without writing anything. */
static uint32_t numbered_content_of_killed(const char *folder)
{
    char error[512] = "";
    struct store_options options = {.folder = folder, .read_only = true, .cache_bytes = 1 << 20};
    struct store *store = store_open_disk(&options, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    if (!store) return 0;
    uint32_t number = numbered_content(store);
    store_close(store);
    return number;
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

static enum store_result write_filler(struct store *store, uint32_t seed)
{
    struct store_batch batch = {0};
    struct buf value = {0};
    for (uint32_t i = 0; i < 1024 * 1024; i++) buf_u32(&value, (i + seed) * 2654435761u);
    store_batch_put(&batch, SLICE("large"), buf_view(&value));
    enum store_result result = store_write(store, &batch, true);
    store_batch_free(&batch);
    buf_free(&value);
    return result;
}

TEST(child_meets_a_full_disk)
{
    const char *folder = getenv(CHILD_FOLDER);
    if (!folder) return;
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    ensure(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    struct store *store = disk_open(folder);
    ensure(store && write_numbered(store, 1, false) == STORE_OK);
    limit.rlim_cur = 1024 * 1024; /* too little for a segment that takes the large one */
    ensure(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(write_filler(store, 2) == STORE_FULL);
    CHECK(strstr(store->refusal, folder));
    CHECK(strstr(store->refusal, "has no room"));
    CHECK(strstr(store->refusal, "File too large"));
    CHECK(store_sync(store) == STORE_OK);
    CHECK_INT(numbered_content(store), 1);
    limit.rlim_cur = limit.rlim_max;
    ensure(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    uint32_t number = 2;
    enum store_result result;
    while ((result = write_filler(store, number)) == STORE_FULL) usleep(10000);
    CHECK(result == STORE_OK);
    CHECK(write_numbered(store, number, true) == STORE_OK);
    child_report(number);
    store_close(store);
}

TEST(a_full_disk_changes_nothing_and_is_written_again_when_there_is_room)
{
    char *folder = folder_make();
    int status;
    uint32_t last = child_end(child_start("child_meets_a_full_disk", folder, "no"), &status);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_INT(last, 2);
    CHECK_INT(numbered_content_of(folder), last);
    folder_remove(folder);
}

/* ---- logs that end early, and damage ---- */

/* The path of the largest file with this ending; free() it. */
static char *largest_file(const char *folder, const char *below, const char *ending, off_t *size)
{
    char *files = path_in(folder, below), *found = NULL;
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

enum { BLOCK = 4096, FRAME = 2 * BLOCK, FRAME_USED = 64 + 5100 /* of a numbered batch, at least */ };

static void change_bytes(const char *path, off_t at, char with, size_t len)
{
    char bytes[FRAME];
    ensure(len <= sizeof bytes);
    memset(bytes, with, len);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ensure(file >= 0 && pwrite(file, bytes, len, at) == (ssize_t)len);
    close(file);
}

/* A process that was killed leaves no mark of an end in order behind it. */
static char *folder_of_killed(uint32_t count)
{
    char *folder = folder_make();
    struct child child = child_start("child_writes_until_killed", folder, "yes");
    for (uint32_t number = 0; number < count;)
        ensure(read(child.report, &number, sizeof number) == sizeof number);
    kill(child.pid, SIGKILL);
    child_end(child, NULL);
    return folder;
}

/* Whatever a power cut leaves of the last frame, which nobody was told of, is the end of the log. */
TEST(a_torn_last_batch_is_the_end_of_the_log)
{
    static const char fillings[] = {0, -1};
    for (off_t from = 0; from + 512 < FRAME_USED; from += 1024) {
        char *folder = folder_of_killed(4);
        off_t size;
        uint32_t last = numbered_content_of_killed(folder);
        char *log = largest_file(folder, "journal", ".journal", &size);
        off_t at = BLOCK + (off_t)(last - 1) * FRAME + from;
        change_bytes(log, at, fillings[(from / 1024) % 2], 512);
        CHECK_INT(numbered_content_of(folder), last - 1);
        free(log);
        folder_remove(folder);
    }
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

/* Refused by a sentence with these words in it, for reading and for writing, and then opened again as it was. */
static void is_refused(const char *folder, const char *words)
{
    for (int read_only = 0; read_only < 2; read_only++) {
        char error[512] = "", start[512];
        struct store_options options = {.folder = folder, .read_only = read_only, .cache_bytes = 1 << 20};
        struct store *store = store_open_disk(&options, error, sizeof error);
        CHECK(!store);
        if (store) store_close(store);
        snprintf(start, sizeof start, "the data folder %s is damaged: ", folder);
        CHECK(slice_starts(slice_of(error), slice_of(start)));
        if (!strstr(error, words)) CHECK_TEXT(slice_of(error), words);
    }
}

TEST(a_damaged_log_is_refused)
{
    char *folder = folder_with_batches(10);
    off_t size;
    char *log = largest_file(folder, "journal", ".journal", &size);
    for (off_t at = BLOCK; at < BLOCK + 9 * FRAME; at += 700) {
        if ((at - BLOCK) % FRAME >= FRAME_USED) continue;
        byte_change(log, at);
        is_refused(folder, "is not whole, but all up to 10 had been synced");
        byte_change(log, at);
    }
    CHECK_INT(numbered_content_of(folder), 10);
    free(log);
    folder_remove(folder);
}

/* A log of several segments; the first batches are not in RocksDB's files. */
static char *folder_with_segments(void)
{
    return folder_with_batches(300);
}

static void rename_in(const char *folder, const char *from, const char *to)
{
    char *old = path_in(folder, from), *new = path_in(folder, to);
    ensure(rename(old, new) == 0);
    free(old);
    free(new);
}

TEST(a_log_that_is_missing_is_refused)
{
    char *folder = folder_with_segments();
    rename_in(folder, "journal/0000000000000001.journal", "kept");
    is_refused(folder, "the batches 1 to ");
    rename_in(folder, "kept", "journal/0000000000000001.journal");
    rename_in(folder, "journal/0000000000000002.journal", "kept");
    is_refused(folder, "0000000000000002.journal is missing");
    rename_in(folder, "kept", "journal/0000000000000002.journal");
    CHECK_INT(numbered_content_of(folder), 300);
    folder_remove(folder);
}

TEST(a_log_that_was_cut_off_is_refused)
{
    char *folder = folder_with_segments(), *first = path_in(folder, "journal/0000000000000001.journal");
    struct stat status;
    ensure(stat(first, &status) == 0 && truncate(first, status.st_size - BLOCK) == 0);
    is_refused(folder, "0000000000000001.journal is damaged: it has ");
    free(first);
    folder_remove(folder);
}

/* With so much in memory that it is brought to files when the store is closed. */
static char *folder_with_files(void)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    CHECK(write_filler(store, 1) == STORE_OK);
    CHECK(write_filler(store, 2) == STORE_OK);
    CHECK(write_numbered(store, 8, false) == STORE_OK);
    store_close(store);
    return folder;
}

TEST(a_journal_that_its_store_needs_must_be_there_and_its_own)
{
    char *folder = folder_with_files(), *other = folder_with_files();
    rename_in(folder, "journal", "kept");
    is_refused(folder, "journal is missing");
    char *theirs = path_in(other, "journal"), *ours = path_in(folder, "journal");
    ensure(rename(theirs, ours) == 0);
    is_refused(folder,
               "belongs to another data folder; its tables have everything up to batch 3, and what was "
               "written from batch 4 on would be lost");
    ensure(rename(ours, theirs) == 0 && mkdir(ours, 0700) == 0);
    is_refused(folder, "journal is empty");
    ensure(rmdir(ours) == 0);
    rename_in(folder, "kept", "journal");
    CHECK_INT(numbered_content_of(folder), 8);
    free(theirs);
    free(ours);
    folder_remove(folder);
    folder_remove(other);
}

TEST(a_damaged_file_fails_the_reads_that_meet_it)
{
    char *folder = folder_with_files();
    off_t size;
    char *file = largest_file(folder, "store", ".sst", &size);
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
    char *folder = folder_with_files();
    rename_in(folder, "store/CURRENT", "store/kept");
    is_refused(folder, "CURRENT is missing");
    rename_in(folder, "store/kept", "store/CURRENT");
    CHECK_INT(numbered_content_of(folder), 8);
    folder_remove(folder);
}

/* The name of the list of tables; free() it. */
static char *manifest_of(const char *folder)
{
    char *current = path_in(folder, "store/CURRENT"), name[64], path[128];
    FILE *file = fopen(current, "r");
    ensure(file && fgets(name, sizeof name, file));
    fclose(file);
    free(current);
    name[strcspn(name, "\n")] = '\0';
    snprintf(path, sizeof path, "store/%s", name);
    return path_in(folder, path);
}

/* What a power cut leaves of a record that RocksDB was writing: bytes behind the last whole one, in any shape. */
TEST(a_list_of_tables_that_ends_in_a_torn_record_is_mended)
{
    for (int shape = 0; shape < 4; shape++) {
        char *folder = folder_with_files(), *manifest = manifest_of(folder), torn[700];
        struct stat status;
        ensure(stat(manifest, &status) == 0);
        memset(torn, shape == 1 ? 0xff : 0, sizeof torn);
        if (shape == 2)
            memcpy(torn, "\x12\x34\x56\x78\x40\x00\x01", 7); /* a record whose checksum is not its own */
        if (shape == 3)
            memcpy(torn, "\x12\x34\x56\x78\xff\x7f\x02", 7); /* the first part of one, that is cut off */
        int file = open(manifest, O_WRONLY | O_APPEND | O_CLOEXEC);
        ensure(file >= 0 && write(file, torn, sizeof torn) == (ssize_t)sizeof torn);
        close(file);
        struct stat before, after;
        ensure(stat(manifest, &before) == 0);
        CHECK_INT(numbered_content_of_killed(folder), 8); /* a reader changes nothing */
        CHECK(stat(manifest, &after) == 0 && after.st_size == before.st_size);
        CHECK_INT(numbered_content_of(folder), 8);
        CHECK_INT(numbered_content_of(folder), 8);
        free(manifest);
        folder_remove(folder);
    }
}

/* The record that brought the only table is torn: the journal has let none of its batches go. */
TEST(a_torn_record_of_a_table_is_made_good_by_the_journal)
{
    char *folder = folder_with_files(), *manifest = manifest_of(folder);
    struct stat status;
    ensure(stat(manifest, &status) == 0);
    byte_change(manifest, status.st_size - 10);
    CHECK_INT(numbered_content_of_killed(folder), 8);
    CHECK_INT(numbered_content_of(folder), 8);
    struct store *store = disk_open(folder);
    CHECK(write_numbered(store, 9, true) == STORE_OK);
    store_close(store);
    CHECK_INT(numbered_content_of(folder), 9);
    free(manifest);
    folder_remove(folder);
}

/* A flush writes two records before it syncs. Of the first one the end of a sector is missing, the second is whole. */
TEST(a_torn_record_before_a_whole_one_of_the_same_write_is_made_good_by_the_journal)
{
    char *folder = folder_with_files(), *manifest = manifest_of(folder);
    unsigned char bytes[4096];
    int file = open(manifest, O_RDWR | O_CLOEXEC);
    ssize_t len = pread(file, bytes, sizeof bytes, 0);
    off_t last = 0, torn = 0;
    ensure(file >= 0 && len > 0 && len < (ssize_t)sizeof bytes);
    for (off_t at = 0; at < len; at += 7 + bytes[at + 4] + 256 * bytes[at + 5]) {
        torn = last;
        last = at;
    }
    CHECK(torn > 0);
    ensure(pwrite(file, "\0\0\0", 4, torn) == 4);
    close(file);
    CHECK_INT(numbered_content_of_killed(folder), 8);
    CHECK_INT(numbered_content_of(folder), 8);
    CHECK_INT(numbered_content_of(folder), 8);
    free(manifest);
    folder_remove(folder);
}

/* So does RocksDB when the sync of the record failed: it takes the table back, and the record stays. */
TEST(a_record_of_a_table_that_is_not_there_is_made_good_by_the_journal)
{
    char *folder = folder_with_files();
    off_t size;
    char *file = largest_file(folder, "store", ".sst", &size);
    ensure(unlink(file) == 0);
    CHECK_INT(numbered_content_of(folder), 8);
    CHECK_INT(numbered_content_of(folder), 8);
    free(file);
    folder_remove(folder);
}

/* Its last record was synced: the tables that it names are needed, because the journal has let their batches go. */
TEST(a_list_of_tables_that_lost_what_it_needs_is_refused)
{
    char *folder = folder_make(), error[512] = "";
    struct store *store = disk_open(folder);
    for (uint32_t i = 0; i < 20; i++) CHECK(write_filler(store, i) == STORE_OK);
    CHECK(write_numbered(store, 8, false) == STORE_OK);
    store_close(store);
    store = disk_open(folder); /* which begins a list of its own */
    CHECK(write_filler(store, 1) == STORE_OK);
    CHECK(write_filler(store, 2) == STORE_OK);
    store_close(store);
    char *manifest = manifest_of(folder);
    struct stat status;
    ensure(stat(manifest, &status) == 0);
    byte_change(manifest, 40); /* in its first record */
    struct store_options options = {.folder = folder, .cache_bytes = 1 << 20};
    CHECK(!store_open_disk(&options, error, sizeof error));
    CHECK(strstr(error, "is damaged"));
    byte_change(manifest, 40);
    CHECK_INT(numbered_content_of(folder), 8);
    free(manifest);
    folder_remove(folder);
}

/* The journal has everything from the first batch on. */
TEST(files_that_are_lost_before_the_first_flush_are_made_again)
{
    char *folder = folder_with_batches(3);
    rename_in(folder, "store", "lost");
    CHECK_INT(numbered_content_of_killed(folder), 3);
    CHECK_INT(numbered_content_of(folder), 3);
    folder_remove(folder);
}

TEST(starts_do_not_pile_up_logs)
{
    char *folder = folder_make(), *files = path_in(folder, "store");
    for (uint32_t start = 1; start <= 20; start++) {
        struct store *store = disk_open(folder);
        CHECK(write_numbered(store, start, false) == STORE_OK);
        store_close(store);
        CHECK_INT(numbered_content_of(folder), start);
    }
    int logs = 0;
    DIR *directory = opendir(files);
    ensure(directory);
    for (struct dirent *entry; (entry = readdir(directory));) logs += strstr(entry->d_name, ".log") != NULL;
    closedir(directory);
    CHECK(logs <= 1);
    CHECK(bytes_in(folder, "journal") <= 4 * 1024 * 1024);
    free(files);
    folder_remove(folder);
}

/* ---- folders of the older format ---- */

static void put_old(rocksdb_t *db, rocksdb_writeoptions_t *write, uint32_t number)
{
    char *words = NULL;
    for (int i = 0; i < BATCH_KEYS; i++) {
        char key[32], value[512];
        int key_len = snprintf(key, sizeof key, "key-%d", i);
        int len = snprintf(value, sizeof value, "%-500u", number);
        rocksdb_put(db, write, key, (size_t)key_len, value, (size_t)len, &words);
        ensure(!words);
    }
}

/* As written before there was a journal: what came last is in RocksDB's own log. */
static char *old_folder(uint32_t number)
{
    char *folder = folder_make(), *files = path_in(folder, "store"), *marker = path_in(folder, "quipu");
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    char *words = NULL;
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_t *db = rocksdb_open(options, files, &words);
    ensure(!words);
    put_old(db, write, number);
    rocksdb_put(db, write, "gone-1", 6, "", 0, &words);
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_writebatch_delete_range(batch, "gone-", 5, "gone.", 5);
    rocksdb_write(db, write, batch, &words);
    rocksdb_writebatch_destroy(batch);
    ensure(!words);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_writeoptions_destroy(write);
    FILE *file = fopen(marker, "w");
    ensure(file && fprintf(file, "quipu data, format 1\n") > 0 && fclose(file) == 0);
    free(files);
    free(marker);
    return folder;
}

static bool format_is(const char *folder, const char *expected)
{
    char *marker = path_in(folder, "quipu"), text[64] = "";
    FILE *file = fopen(marker, "r");
    ensure(file && fgets(text, sizeof text, file));
    fclose(file);
    free(marker);
    return !strcmp(text, expected);
}

/* Opens the folder, and answers what was said on standard error meanwhile. */
static struct slice said_while_opened(const char *folder)
{
    static char text[1024];
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    ensure(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    uint32_t number = numbered_content_of(folder);
    ensure(dup2(before, STDERR_FILENO) >= 0);
    CHECK_INT(number, 7);
    rewind(file);
    size_t len = fread(text, 1, sizeof text, file);
    fclose(file);
    close(before);
    return (struct slice){text, len};
}

TEST(an_older_folder_is_read_as_it_is_and_taken_over_by_the_first_that_writes)
{
    char *folder = old_folder(7), expected[512];
    CHECK_INT(numbered_content_of_killed(folder), 7);
    CHECK(format_is(folder, "quipu data, format 1\n"));
    snprintf(
        expected, sizeof expected,
        "quipu: the data folder %s has been brought from format 1 to 2: its log is in %s/journal now, and older "
        "versions of quipu cannot open it any more\n",
        folder, folder);
    CHECK_TEXT(said_while_opened(folder), expected);
    CHECK_TEXT(said_while_opened(folder), "");
    CHECK(format_is(folder, "quipu data, format 2\n"));
    struct store *store = disk_open(folder);
    CHECK(write_numbered(store, 8, true) == STORE_OK);
    store_close(store);
    CHECK_INT(numbered_content_of(folder), 8);
    folder_remove(folder);
}

TEST(a_range_that_an_older_folder_has_deleted_in_its_log_stays_deleted)
{
    char *folder = old_folder(7), error[512];
    for (int life = 0; life < 3; life++) { /* read, taken over, as it is then */
        struct store_options options = {.folder = folder, .read_only = life == 0};
        struct store *store = store_open_disk(&options, error, sizeof error);
        CHECK(store);
        if (!store) break;
        CHECK_TEXT(content(store, "gone-", "gone.", false), "");
        store_close(store);
    }
    folder_remove(folder);
}

/* As if it had ended before the last step: everything is there still, and it is done again. */
TEST(a_take_over_that_was_interrupted_is_done_again)
{
    char *folder = old_folder(7);
    CHECK_INT(numbered_content_of(folder), 7);
    char *marker = path_in(folder, "quipu");
    change_bytes(marker, (off_t)strlen("quipu data, format "), '1', 1);
    CHECK_INT(numbered_content_of_killed(folder), 7);
    CHECK_INT(numbered_content_of(folder), 7);
    CHECK(format_is(folder, "quipu data, format 2\n"));
    free(marker);
    folder_remove(folder);
}
