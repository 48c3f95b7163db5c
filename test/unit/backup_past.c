/* The past of a database that is open, on disk and in memory: copies by name, and moments of the log that is kept. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/disk.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "store/store.h"
#include "unit/test.h"

struct study {
    char folder[64], data[80];
    bool on_disk;
    int64_t now_ms;
    struct clock clock;
    struct store *store;
    struct backup *backup;
    char error[600];
};

static int64_t study_now(void *self)
{
    return ((struct study *)self)->now_ms;
}

static void study_start(struct study *study)
{
    struct store_options options = {
        .folder = study->data, .create = true, .cache_bytes = 1 << 20, .clock = &study->clock};
    study->store = study->on_disk ? store_open_disk(&options, study->error, sizeof study->error)
                                  : store_open_memory(NULL);
    ensure(study->store);
    study->backup = backup_open(&(struct backup_options){.store = study->store,
                                                         .folder = study->on_disk ? study->data : NULL,
                                                         .clock = &study->clock});
}

static void study_open(struct study *study, bool on_disk)
{
    *study = (struct study){.on_disk = on_disk, .now_ms = 1000000, .clock = {study_now, study}};
    strcpy(study->folder, "/tmp/quipu-study-XXXXXX");
    ensure(mkdtemp(study->folder));
    snprintf(study->data, sizeof study->data, "%s/data", study->folder);
    study_start(study);
}

static void study_end(struct study *study)
{
    backup_close(study->backup);
    store_close(study->store);
}

static void study_close(struct study *study)
{
    study_end(study);
    disk_remove(study->folder);
}

static void put(struct study *study, const char *value)
{
    struct store_batch batch = {0};
    store_batch_put(&batch, SLICE("key"), slice_of(value));
    CHECK_INT(store_write(study->store, &batch, true), STORE_OK);
    store_batch_free(&batch);
}

/* Closes it. */
static struct slice value_in(struct backup_past *past, bool is_open)
{
    static char text[64];
    struct buf value = {0};
    if (!is_open) return SLICE("(cannot be opened)");
    if (store_get(past->store, SLICE("key"), &value) != STORE_OK) buf_text(&value, "(nothing)");
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(buf_view(&value)));
    buf_free(&value);
    backup_past_close(past);
    return slice_of(text);
}

static struct slice in_copy(struct study *study, const char *name)
{
    struct backup_past past;
    return value_in(&past, backup_past_copy(study->backup, slice_of(name), &past, study->error, sizeof study->error));
}

static struct slice at(struct study *study, int64_t at_ms)
{
    struct backup_past past;
    return value_in(&past, backup_past_moment(study->backup, at_ms, &past, study->error, sizeof study->error));
}

static bool keeps_two(void *context, struct slice name)
{
    (void)context;
    return slice_equal(name, SLICE("two"));
}

static void copies(bool on_disk)
{
    struct study study;
    struct backup_past read;
    study_open(&study, on_disk);
    char *error = study.error;
    put(&study, "1");
    CHECK(backup_copy_take(study.backup, SLICE("one"), error, sizeof study.error));
    put(&study, "2");
    CHECK(backup_copy_take(study.backup, SLICE("two"), error, sizeof study.error));
    CHECK(backup_copy_take(study.backup, SLICE("three"), error, sizeof study.error));
    put(&study, "3");
    CHECK_TEXT(slice_of(error), "");
    CHECK_TEXT(in_copy(&study, "one"), "1");
    CHECK_TEXT(in_copy(&study, "one"), "1");
    CHECK_TEXT(in_copy(&study, "two"), "2");
    CHECK(backup_copy_exists(study.backup, SLICE("two")) && !backup_copy_exists(study.backup, SLICE("four")));
    backup_copy_drop(study.backup, SLICE("one"));
    backup_copy_drop(study.backup, SLICE("one"));
    CHECK_TEXT(in_copy(&study, "one"), "(cannot be opened)");
    backup_copies_sweep(study.backup, keeps_two, NULL);
    CHECK_TEXT(in_copy(&study, "three"), "(cannot be opened)");
    CHECK(backup_past_copy(study.backup, SLICE("two"), &read, error, sizeof study.error));
    CHECK_TEXT(in_copy(&study, "two"), "2"); /* two readers at a time */
    backup_past_close(&read);
    CHECK(on_disk ? !backup_copy_take(study.backup, SLICE("../two"), error, sizeof study.error)
                  : backup_copy_take(study.backup, SLICE("x"), error, sizeof study.error));
    study_close(&study);
}

TEST(past_copies_on_disk_have_what_was_there_and_go_when_they_are_dropped)
{
    copies(true);
}

TEST(past_copies_in_memory_have_what_was_there_and_go_when_they_are_dropped)
{
    copies(false);
}

TEST(past_copies_on_disk_outlive_the_process)
{
    struct study study;
    char left[120];
    study_open(&study, true);
    put(&study, "1");
    CHECK(backup_copy_take(study.backup, SLICE("two"), study.error, sizeof study.error));
    put(&study, "2");
    snprintf(left, sizeof left, "%s/backups/one.new", study.data);
    CHECK(disk_make_folder(left, study.error, sizeof study.error));
    study_end(&study);
    study_start(&study);
    backup_copies_sweep(study.backup, keeps_two, NULL);
    CHECK(access(left, F_OK) != 0);
    CHECK_TEXT(in_copy(&study, "two"), "1");
    study_close(&study);
}

TEST(past_copies_in_memory_are_bounded)
{
    struct study study;
    char name[24];
    study_open(&study, false);
    for (int i = 0; i < LIMIT_MEMORY_BACKUPS; i++) {
        snprintf(name, sizeof name, "copy-%d", i);
        CHECK(backup_copy_take(study.backup, slice_of(name), study.error, sizeof study.error));
    }
    CHECK(!backup_copy_take(study.backup, SLICE("more"), study.error, sizeof study.error));
    CHECK(strstr(study.error, "100 backups in memory already"));
    backup_copy_drop(study.backup, SLICE("copy-7"));
    CHECK(backup_copy_take(study.backup, SLICE("more"), study.error, sizeof study.error));
    study_close(&study);
}

static void moments(bool on_disk)
{
    struct study study;
    study_open(&study, on_disk);
    put(&study, "1");
    CHECK(backup_kept_from(study.backup) == INT64_MAX);
    CHECK_TEXT(at(&study, 1000000), "(cannot be opened)");
    study.now_ms = 2000000;
    CHECK(backup_keep(study.backup, 86400000, study.error, sizeof study.error));
    CHECK(backup_kept_from(study.backup) <= 2000000);
    study.now_ms = 2005000;
    put(&study, "2");
    study.now_ms = 2005001;
    put(&study, "3");
    study.now_ms = 2006000;
    CHECK_TEXT(at(&study, 2000000), "1");
    CHECK_TEXT(at(&study, 2004999), "1");
    CHECK_TEXT(at(&study, 2005000), "2");
    CHECK_TEXT(at(&study, 2005001), "3");
    CHECK_TEXT(at(&study, 2006000), "3");
    CHECK_TEXT(at(&study, 900000), "(cannot be opened)");
    if (on_disk) { /* a restart keeps what it had: whoever kept it before says so again */
        int64_t from_ms = backup_kept_from(study.backup);
        study_end(&study);
        study_start(&study);
        CHECK(backup_keep(study.backup, 86400000, study.error, sizeof study.error));
        CHECK_INT(backup_kept_from(study.backup), from_ms);
        CHECK_TEXT(at(&study, 2005000), "2");
    }
    if (on_disk) { /* a clock that was set back changes nothing of what was there */
        study_end(&study);
        study.now_ms = 2001000;
        study_start(&study);
        CHECK(backup_keep(study.backup, 86400000, study.error, sizeof study.error));
        CHECK_TEXT(at(&study, 2005000), "2");
        CHECK_TEXT(at(&study, 2005001), "3");
        put(&study, "3");
        CHECK_TEXT(at(&study, 2005000), "2");
    }
    CHECK(backup_keep(study.backup, 0, study.error, sizeof study.error));
    CHECK(backup_kept_from(study.backup) == INT64_MAX);
    CHECK_TEXT(at(&study, 2005000), "(cannot be opened)");
    char kept[120];
    snprintf(kept, sizeof kept, "%s/kept", study.data);
    CHECK(access(kept, F_OK) != 0);
    study.now_ms = 3000000;
    put(&study, "4");
    CHECK(backup_keep(study.backup, 86400000, study.error, sizeof study.error));
    CHECK_TEXT(at(&study, 2005000), "(cannot be opened)");
    CHECK_TEXT(at(&study, 3000000), "4");
    study_close(&study);
}

TEST(past_moments_on_disk)
{
    moments(true);
}

TEST(past_moments_in_memory)
{
    moments(false);
}

/* ---- what was written in between ---- */

struct found {
    struct buf text;
    unsigned most; /* stops behind so many; 0: never */
};

static void find_entry(void *context, enum store_entry_kind kind, struct slice key, struct slice value)
{
    struct found *found = context;
    CHECK(kind == STORE_ENTRY_PUT);
    if (slice_equal(key, SLICE("key"))) buf_printf(&found->text, "%.*s ", SLICE_ARG(value));
}

static bool find_batch(void *context, const struct store_log_batch *written)
{
    struct found *found = context;
    struct store_batch batch;
    CHECK(store_batch_from_bytes(written->bytes, &batch));
    buf_printf(&found->text, "%lld:", (long long)written->time_ms);
    store_batch_visit(&batch, find_entry, found);
    return !found->most || --found->most;
}

#define WRITTEN(from, to, stop, words)                                                                       \
    do {                                                                                                     \
        struct found found = {.most = stop};                                                                 \
        bool known = backup_past_log(study.backup, from, to, find_batch, &found, study.error,                \
                                     sizeof study.error);                                                    \
        CHECK_TEXT(known ? buf_view(&found.text) : SLICE("(not known)"), words);                             \
        buf_free(&found.text);                                                                               \
    } while (0)

static void logs(bool on_disk)
{
    struct study study;
    study_open(&study, on_disk);
    put(&study, "1");
    WRITTEN(1000001, 2000000, 0, "(not known)");
    study.now_ms = 2000000;
    CHECK(backup_keep(study.backup, 86400000, study.error, sizeof study.error));
    study.now_ms = 2005000;
    put(&study, "2");
    WRITTEN(2000001, 2006000, 0, "2005000:2 ");
    study.now_ms = 2005001;
    put(&study, "3");
    study.now_ms = 2007000;
    put(&study, "4");
    study.now_ms = 2008000;
    WRITTEN(2000001, 2008000, 0, "2005000:2 2005001:3 2007000:4 ");
    WRITTEN(2005000, 2007000, 0, "2005000:2 2005001:3 ");
    WRITTEN(2005001, 2007001, 0, "2005001:3 2007000:4 ");
    WRITTEN(2000001, 2008000, 1, "2005000:2 ");
    WRITTEN(2006000, 2007000, 0, "");
    WRITTEN(500000, 2007000, 0, "(not known)");
    if (on_disk) { /* the same from several pieces, and behind a second base */
        study_end(&study);
        study_start(&study);
        CHECK(backup_keep(study.backup, 86400000, study.error, sizeof study.error));
        put(&study, "5");
        study.now_ms = 2009000 + LIMIT_BACKUP_BASE_MS;
        put(&study, "6");
        CHECK_TEXT(at(&study, study.now_ms), "6"); /* a base is made, since the first one is a day old */
        put(&study, "7");
        WRITTEN(2007000, 2009000, 0, "2007000:4 2008000:5 ");
        WRITTEN(2008000, study.now_ms + 1, 0, "2008000:5 88409000:6 88409000:7 ");
        WRITTEN(study.now_ms, study.now_ms + 1, 0, "88409000:6 88409000:7 ");
    }
    study_close(&study);
}

TEST(past_log_on_disk)
{
    logs(true);
}

TEST(past_log_in_memory)
{
    logs(false);
}

/* Going back to a snapshot is not something that was written. */
TEST(past_log_in_memory_does_not_lead_over_a_snapshot)
{
    struct study study;
    study_open(&study, false);
    CHECK(backup_keep(study.backup, 86400000, study.error, sizeof study.error));
    struct store_snapshot *snapshot = store_snapshot_take(study.store);
    study.now_ms += 1000;
    put(&study, "1");
    study.now_ms += 1000;
    store_snapshot_restore(study.store, snapshot);
    study.now_ms += 1000;
    put(&study, "2");
    WRITTEN(1000001, 1001500, 0, "1001000:1 ");
    WRITTEN(1000001, 2000000, 0, "(not known)");
    WRITTEN(1002001, 2000000, 0, "1003000:2 ");
    store_snapshot_free(snapshot);
    study_close(&study);
}

TEST(past_scratch_goes_when_it_is_closed)
{
    for (int on_disk = 0; on_disk < 2; on_disk++) {
        struct study study;
        struct backup_past scratch;
        struct store_batch batch = {0};
        struct buf value = {0};
        study_open(&study, on_disk);
        CHECK(backup_scratch_open(study.backup, &scratch, study.error, sizeof study.error));
        CHECK(!scratch.folder == !on_disk);
        store_batch_put(&batch, SLICE("a"), SLICE("1"));
        CHECK_INT(store_write(scratch.store, &batch, false), STORE_OK);
        CHECK_INT(store_get(scratch.store, SLICE("a"), &value), STORE_OK);
        char *folder = on_disk ? strdup(scratch.folder) : NULL;
        backup_past_close(&scratch);
        CHECK(!folder || access(folder, F_OK) != 0);
        free(folder);
        store_batch_free(&batch);
        buf_free(&value);
        study_close(&study);
    }
}
