/* A log that is lost, or was shortened: whatever is taken away, the folder is refused, or nothing of it was needed. And
 * what a power cut or a kill leaves, which may look like that, still opens. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "store/journal_frame.h"
#include "unit/store_fixture.h"

enum { KEYS = 10, SEGMENTS_MOST = 8 };

/* ---- folders ---- */

static void write_batches(struct store *store, uint32_t from, uint32_t to, size_t value_bytes, bool durable)
{
    struct store_batch batch = {0};
    char *value = must_zero(1, value_bytes);
    for (uint32_t number = from; number <= to; number++) {
        char key[32];
        store_batch_clear(&batch);
        snprintf(key, sizeof key, "key-%u", number % KEYS);
        snprintf(value, value_bytes, "%u", number);
        store_batch_put(&batch, slice_of(key), (struct slice){value, value_bytes});
        store_batch_put(&batch, SLICE("last"), slice_of(value));
        CHECK(store_write(store, &batch, durable) == STORE_OK);
    }
    store_batch_free(&batch);
    free(value);
}

/* Nobody has it open: a copy of files that change would be a state that never was. */
static char *folder_copy(const char *folder)
{
    char *copy = folder_make();
    struct buf command = {0};
    buf_printf(&command, "cp -a --sparse=always '%s/.' '%s'", folder, copy);
    buf_byte(&command, '\0');
    ensure(system(command.data) == 0);
    buf_free(&command);
    return copy;
}

/* More than stays in the log at a close, so that it goes to the tables; then batches that are in the log only. */
static struct store *open_with_tables(const char *folder)
{
    struct store *store = disk_open(folder);
    write_batches(store, 1, 60, 100 * 1000, true);
    store_close(store);
    store = disk_open(folder);
    write_batches(store, 61, 90, 100 * 1000, true);
    return store;
}

enum shape { IN_LOG_CLOSED, IN_LOG_KILLED, IN_BOTH_CLOSED, IN_BOTH_KILLED, SHAPES };

static struct store *open_in_log(const char *folder)
{
    struct store *store = disk_open(folder);
    write_batches(store, 1, 100, 25 * 1000, true);
    return store;
}

/* The tables have all of it, though half was written without a sync. */
static struct store *open_unsynced(const char *folder)
{
    char error[512], *checkpoint = path_in(folder, "checkpoint");
    struct store *store = disk_open(folder);
    uint64_t number;
    write_batches(store, 1, 10, 1000, true);
    write_batches(store, 11, 20, 1000, false);
    CHECK(store_checkpoint(store, checkpoint, &number, error, sizeof error)); /* brings all to the tables */
    free(checkpoint);
    return store;
}

static struct store *open_with_one(const char *folder)
{
    struct store *store = disk_open(folder);
    write_batches(store, 1, 1, 1000, true);
    return store;
}

static const struct content {
    const char *name;
    struct store *(*open)(const char *folder);
} contents[] = {
    {"in log", open_in_log},
    {"in both", open_with_tables},
    {"unsynced", open_unsynced},
    {"one", open_with_one},
};

static struct store *open_with(const char *name, const char *folder)
{
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++)
        if (strcmp(contents[i].name, name) == 0) return contents[i].open(folder);
    ensure(false);
}

static char *folder_closed(const char *name)
{
    char *folder = folder_make();
    store_close(open_with(name, folder));
    return folder;
}

TEST(child_is_killed_behind_its_writes)
{
    const char *folder = getenv(CHILD_FOLDER);
    if (!folder) return;
    open_with(getenv(CHILD_DURABLE), folder);
    raise(SIGKILL);
}

static char *folder_killed(const char *name)
{
    char *folder = folder_make();
    int status;
    child_end(child_start("child_is_killed_behind_its_writes", folder, name), &status);
    ensure(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return folder;
}

/* *last: its last batch. */
static char *folder_of(enum shape shape, uint32_t *last)
{
    bool has_tables = shape == IN_BOTH_CLOSED || shape == IN_BOTH_KILLED;
    bool is_killed = shape == IN_LOG_KILLED || shape == IN_BOTH_KILLED;
    const char *name = has_tables ? "in both" : "in log";
    *last = has_tables ? 90 : 100;
    return is_killed ? folder_killed(name) : folder_closed(name);
}

struct segments {
    char *names[SEGMENTS_MOST];
    unsigned count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In their order. */
static struct segments segments_of(const char *folder)
{
    struct segments segments = {0};
    char *journal = path_in(folder, "journal");
    DIR *directory = opendir(journal);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!strstr(entry->d_name, ".journal")) continue;
        ensure(segments.count < SEGMENTS_MOST);
        segments.names[segments.count++] = path_in(journal, entry->d_name);
    }
    if (directory) closedir(directory);
    free(journal);
    qsort(segments.names, segments.count, sizeof *segments.names, by_name);
    return segments;
}

static void segments_free(struct segments *segments)
{
    for (unsigned i = 0; i < segments->count; i++) free(segments->names[i]);
}

/* ---- judging ---- */

/* 0: it was refused, with a sentence that has all of these words. */
static uint32_t opened(const char *folder, bool read_only, const char *words)
{
    char error[600] = "", start[200];
    struct store_options options = {.folder = folder, .read_only = read_only, .cache_bytes = 1 << 20};
    struct store *store = store_open_disk(&options, error, sizeof error);
    if (store) {
        uint32_t last = (uint32_t)strtoul(value_of(store, "last").data, NULL, 10);
        store_close(store);
        return last;
    }
    snprintf(start, sizeof start, "the data folder %s is damaged: ", folder);
    if (!slice_starts(slice_of(error), slice_of(start))) CHECK_TEXT(slice_of(error), start);
    if (!strstr(error, words)) CHECK_TEXT(slice_of(error), words);
    CHECK(strstr(error, "would be lost"));
    CHECK(strstr(error, "`quipu salvage`"));
    return 0;
}

static uint64_t folder_stamp(const char *folder)
{
    struct segments segments = segments_of(folder);
    uint64_t stamp = 0;
    for (unsigned i = 0; i < segments.count; i++) {
        struct stat status;
        ensure(stat(segments.names[i], &status) == 0);
        stamp = stamp * 31 + (uint64_t)status.st_mtim.tv_nsec + (uint64_t)status.st_size;
    }
    segments_free(&segments);
    return stamp;
}

/* By readers and by writers, and a refused folder's log stays as it is. */
static bool is_refused(const char *folder, const char *words)
{
    uint64_t before = folder_stamp(folder);
    bool refused = !opened(folder, true, words) && !opened(folder, false, words);
    if (refused) CHECK(folder_stamp(folder) == before);
    return refused;
}

/* True: it is refused. Else it has everything up to that batch. */
static bool is_refused_or_whole(const char *folder, uint32_t last)
{
    uint32_t found = opened(folder, true, "");
    if (found) CHECK_INT(found, last);
    found = opened(folder, false, "");
    if (found) CHECK_INT(found, last);
    return !found;
}

/* ---- segments that are gone ---- */

/* Any of its segments: one, all, all but the newest. */
TEST(a_log_without_any_of_its_segments_is_refused_or_was_not_needed)
{
    for (enum shape shape = 0; shape < SHAPES; shape++) {
        uint32_t last, refused = 0;
        char *folder = folder_of(shape, &last);
        struct segments all = segments_of(folder);
        CHECK(all.count >= 2);
        for (unsigned gone = 1; gone < 1u << all.count; gone++) {
            char *copy = folder_copy(folder);
            struct segments segments = segments_of(copy);
            for (unsigned i = 0; i < segments.count; i++)
                if (gone >> i & 1) ensure(unlink(segments.names[i]) == 0);
            bool is_all = gone + 1 == 1u << all.count;
            if (is_all) CHECK(is_refused(copy, "journal is empty"));
            refused += is_all || is_refused_or_whole(copy, last);
            segments_free(&segments);
            folder_remove(copy);
        }
        CHECK(refused >= 1u << (all.count - 1)); /* each without the newest that has a batch */
        CHECK_INT(opened(folder, false, ""), last);
        segments_free(&all);
        folder_remove(folder);
    }
}

TEST(a_log_that_is_gone_altogether_is_refused_also_before_there_are_tables)
{
    for (enum shape shape = 0; shape < SHAPES; shape++) {
        uint32_t last;
        char *folder = folder_of(shape, &last), *journal = path_in(folder, "journal"),
             *kept = path_in(folder, "kept");
        ensure(rename(journal, kept) == 0);
        CHECK(is_refused(folder, "journal is missing"));
        ensure(rename(kept, journal) == 0);
        CHECK_INT(opened(folder, false, ""), last);
        free(journal);
        free(kept);
        folder_remove(folder);
    }
}

TEST(what_a_lost_log_costs_is_told)
{
    uint32_t last;
    char *folder = folder_of(IN_LOG_CLOSED, &last);
    struct segments segments = segments_of(folder);
    char *kept = path_in(folder, "kept");
    CHECK(segments.count == 3); /* the last one is prepared */
    ensure(rename(segments.names[1], kept) == 0);
    CHECK(is_refused(folder,
                     "0000000000000002.journal is missing; its tables have everything up to batch 0, and the "
                     "writes of the batches 37 to 100, if not more, would be lost"));
    ensure(rename(kept, segments.names[1]) == 0 && rename(segments.names[0], kept) == 0);
    CHECK(is_refused(
        folder, "the batches 1 to 36 are missing; its tables have everything up to batch 0, and the writes "
                "of the batches 1 to 100, if not more, would be lost"));
    ensure(rename(kept, segments.names[0]) == 0);
    ensure(truncate(segments.names[1], 1024 * 1024) == 0);
    CHECK(is_refused(
        folder, "0000000000000002.journal is damaged: it has 1048576 bytes, and had 2097152; its tables have "
                "everything up to batch 0, and the writes of the batches 73 to 100, if not more, would be "
                "lost"));
    free(kept);
    segments_free(&segments);
    folder_remove(folder);
}

/* ---- a log that was shortened ---- */

/* Where the batch begins. */
static off_t find_batch(const char *segment, uint32_t number)
{
    char block[JOURNAL_BLOCK];
    struct segment_head begin;
    struct frame_head head;
    off_t found = 0;
    int file = open(segment, O_RDONLY | O_CLOEXEC);
    ensure(file >= 0 && pread(file, block, sizeof block, 0) == JOURNAL_BLOCK);
    ensure(segment_head_read(block, &begin) == SEGMENT_HEAD_OK);
    for (off_t at = JOURNAL_BLOCK; !found && pread(file, block, sizeof block, at) == JOURNAL_BLOCK;
         at += JOURNAL_BLOCK)
        if (frame_read(block, begin.id, begin.serial, &head) && head.kind == FRAME_BATCH &&
            head.number == number)
            found = at;
    close(file);
    return found;
}

/* From the batch on there are zeros to the end of the segment. */
static void shorten(const char *folder, uint32_t number)
{
    struct segments segments = segments_of(folder);
    struct stat status;
    bool done = false;
    for (unsigned i = 0; i < segments.count; i++) {
        off_t at = find_batch(segments.names[i], number);
        if (!at) continue;
        ensure(stat(segments.names[i], &status) == 0);
        ensure(truncate(segments.names[i], at) == 0 && truncate(segments.names[i], status.st_size) == 0);
        done = true;
    }
    ensure(done);
    segments_free(&segments);
}

TEST(a_log_that_was_shortened_behind_an_end_in_order_is_refused)
{
    static const enum shape shapes[] = {IN_LOG_CLOSED, IN_BOTH_CLOSED};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        uint32_t last;
        char *folder = folder_of(shapes[s], &last);
        for (uint32_t number = last; number > last - 40; number -= 3) {
            char *copy = folder_copy(folder);
            shorten(copy, number);
            CHECK(is_refused(copy, ""));
            folder_remove(copy);
        }
        folder_remove(folder);
    }
}

/* Nothing tells that a batch behind that had been synced: the power may have been cut while it was written. */
TEST(a_log_that_was_shortened_behind_a_kill_is_refused_where_that_can_be_shown)
{
    uint32_t last;
    char *folder = folder_of(IN_BOTH_KILLED, &last), *copy = folder_copy(folder);
    shorten(copy, 85);
    CHECK_INT(opened(copy, true, ""), 84);
    CHECK_INT(opened(copy, false, ""), 84);
    /* It was there when the folder was opened then. */
    shorten(copy, 84);
    CHECK(is_refused(copy, "ends with batch 83, and had 84"));
    folder_remove(copy);
    for (uint32_t number = 60; number > 57; number--) {
        char *other = folder_copy(folder);
        shorten(other, number);
        CHECK(is_refused(other, ""));
        folder_remove(other);
    }
    folder_remove(folder);
}

/* ---- what is no damage ---- */

/* The tables have what the log lost: it was written without a sync, and the folder says so. */
TEST(a_log_that_lost_what_was_not_synced_opens_with_what_the_tables_have)
{
    char *folder = folder_closed("unsynced"), *killed = folder_killed("unsynced");
    shorten(killed, 13);
    for (int life = 0; life < 3; life++) {
        char *copy = folder_copy(killed);
        CHECK_INT(opened(copy, true, ""), 20);
        for (int i = 0; i < life; i++) CHECK_INT(opened(copy, false, ""), 20);
        struct store *store = disk_open(copy);
        write_batches(store, 21, 25, 1000, life != 1);
        store_close(store);
        CHECK_INT(opened(copy, true, ""), 25);
        CHECK_INT(opened(copy, false, ""), 25);
        shorten(copy, 25);
        CHECK(is_refused(copy, "ends with batch 24, and had 25"));
        folder_remove(copy);
    }
    folder_remove(killed);
    /* After an end in order everything was synced. */
    shorten(folder, 13);
    CHECK(is_refused(folder, "ends with batch 12, and had 20"));
    folder_remove(folder);
}

/* The power was cut before the first batch: between its segment and the folder's word of it, and behind that. */
TEST(a_folder_whose_first_batch_was_not_written_yet_opens)
{
    for (int has_word = 0; has_word < 4; has_word++) {
        char *killed = folder_killed("one"), *copied = path_in(killed, "quipu");
        shorten(killed, 1);
        /* The word is there, its bytes are not, its size is not either. */
        if (has_word == 1) ensure(truncate(copied, 21) == 0 && truncate(copied, 40) == 0);
        if (has_word == 2) ensure(truncate(copied, 21) == 0);
        if (has_word != 3) {
            struct store *store = disk_open(killed);
            write_batches(store, 1, 3, 1000, true);
            store_close(store);
            CHECK_INT(opened(killed, true, ""), 3);
        } else { /* half of a word is damage: it lies within one sector */
            ensure(truncate(copied, 60) == 0);
            char error[512] = "";
            struct store_options options = {.folder = killed};
            CHECK(!store_open_disk(&options, error, sizeof error));
            CHECK(strstr(error, "the second line of its file quipu cannot be read"));
        }
        free(copied);
        folder_remove(killed);
    }
}

TEST(a_prepared_segment_that_is_lost_costs_nothing)
{
    uint32_t last;
    char *folder = folder_of(IN_LOG_CLOSED, &last);
    struct segments segments = segments_of(folder);
    ensure(unlink(segments.names[segments.count - 1]) == 0);
    CHECK_INT(opened(folder, true, ""), last);
    CHECK_INT(opened(folder, false, ""), last);
    segments_free(&segments);
    folder_remove(folder);
}

/* Folders of before the marker told of the journal get their line when they are opened. */
TEST(a_marker_without_the_line_gets_it)
{
    uint32_t last;
    char *folder = folder_of(IN_BOTH_KILLED, &last), *marker = path_in(folder, "quipu");
    ensure(truncate(marker, 21) == 0);
    CHECK_INT(opened(folder, true, ""), last);
    CHECK_INT(opened(folder, false, ""), last);
    shorten(folder, last);
    CHECK(is_refused(folder, "ends with batch 89, and had 90"));
    free(marker);
    folder_remove(folder);
}
