/* Targets of backups: what is copied, what is found again, what is called damage, and what an interruption leaves. */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backup/local.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/random.h"
#include "unit/test.h"

/* ---- a store, a target, and a clock that moves by hand ---- */

struct lab {
    char folder[64], data[80], target[80], restored[80];
    struct store *store;
    struct clock clock;
    int64_t now_ms;
    struct backup_source *source;
};

static int64_t lab_now(void *self)
{
    return ((struct lab *)self)->now_ms;
}

static void hold(void *store, uint64_t from)
{
    store_log_keep_from(store, from);
}

static void lab_open_store(struct lab *lab)
{
    char error[500] = "";
    struct store_options options = {
        .folder = lab->data, .create = true, .cache_bytes = 1 << 20, .clock = &lab->clock};
    lab->store = store_open_disk(&options, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    ensure(lab->store);
    lab->source = local_source(lab->store, lab->data, &lab->clock, false, hold, lab->store);
}

static void lab_init(struct lab *lab)
{
    *lab = (struct lab){.now_ms = 1000000};
    lab->clock = (struct clock){lab_now, lab};
    strcpy(lab->folder, "/tmp/quipu-backup-XXXXXX");
    ensure(mkdtemp(lab->folder));
    snprintf(lab->data, sizeof lab->data, "%s/data", lab->folder);
    snprintf(lab->target, sizeof lab->target, "%s/target", lab->folder);
    snprintf(lab->restored, sizeof lab->restored, "%s/restored", lab->folder);
    lab_open_store(lab);
}

static void lab_close_store(struct lab *lab)
{
    backup_source_close(lab->source);
    store_close(lab->store);
}

static void lab_free(struct lab *lab)
{
    lab_close_store(lab);
    disk_remove(lab->folder);
}

/* A second later. */
static void lab_put(struct lab *lab, const char *key, const char *value)
{
    struct store_batch batch = {0};
    lab->now_ms += 1000;
    store_batch_put(&batch, slice_of(key), slice_of(value));
    CHECK_INT(store_write(lab->store, &batch, true), STORE_OK);
    store_batch_free(&batch);
}

static struct backup_target *lab_target(struct lab *lab)
{
    char error[500] = "";
    struct backup_target *target = backup_target_open(lab->target, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    ensure(target);
    return target;
}

static struct backup_progress lab_base(struct lab *lab, struct backup_target *target,
                                       struct backup_position *position)
{
    struct backup_progress progress = {0};
    char error[500] = "";
    *position = (struct backup_position){0};
    CHECK(backup_take_base(target, lab->source, &progress, position, error, sizeof error));
    CHECK_TEXT(slice_of(error), "");
    lab->source->end(lab->source->self);
    return progress;
}

static void lab_ship(struct lab *lab, struct backup_target *target, struct backup_position *position)
{
    char error[500];
    CHECK_INT(backup_ship(target, lab->source, position, 0, error, sizeof error), BACKUP_LOG_BLOCK);
}

/* "a=1 b=2 " of what is restored, or the sentence that says why not. */
static struct slice lab_restore(struct lab *lab, int64_t at_ms)
{
    static char text[2000];
    struct backup_restored restored;
    char error[600];
    struct store *view = backup_view_open(lab->target, lab->restored, at_ms, &restored, error, sizeof error);
    text[0] = '\0';
    if (!view) {
        snprintf(text, sizeof text, "%s", error);
        return slice_of(text);
    }
    for (char key = 'a'; key <= 'z'; key++) {
        struct buf value = {0};
        if (store_get(view, (struct slice){&key, 1}, &value) == STORE_OK)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%c=%.*s ", key,
                     SLICE_ARG(buf_view(&value)));
        buf_free(&value);
    }
    backup_view_close(view, lab->restored);
    CHECK(disk_is_empty(lab->restored, NULL));
    return slice_of(text);
}

static uint64_t lab_faults(struct lab *lab)
{
    struct backup_report report;
    struct buf faults = {0};
    char error[500];
    CHECK(backup_verify(lab->target, &report, &faults, error, sizeof error));
    buf_free(&faults);
    return report.faults;
}

/* Flips a bit of the file at this place, counted from its end. */
static void flip(const char *path, off_t from_end)
{
    struct stat status;
    char byte;
    int file = open(path, O_RDWR);
    ensure(file >= 0 && fstat(file, &status) == 0);
    ensure(pread(file, &byte, 1, status.st_size - from_end) == 1);
    byte = (char)(byte ^ 4);
    ensure(pwrite(file, &byte, 1, status.st_size - from_end) == 1);
    close(file);
}

static char found[DISK_PATH];
static int find_table(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    if (strstr(path, ".sst-")) strcpy(found, path);
    return 0;
}

/* ---- tests ---- */

TEST(backup_every_moment_comes_back)
{
    struct lab lab;
    struct backup_position position;
    lab_init(&lab);
    lab_put(&lab, "a", "1"); /* at 1001000 */
    lab_put(&lab, "b", "1"); /* 1002000 */
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_put(&lab, "a", "2"); /* 1003000 */
    lab_ship(&lab, target, &position);
    lab_put(&lab, "c", "1"); /* 1004000 */
    lab_put(&lab, "a", "3"); /* 1005000 */
    lab_ship(&lab, target, &position);
    backup_target_close(target);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=3 b=1 c=1 ");
    CHECK_TEXT(lab_restore(&lab, 1005000), "a=3 b=1 c=1 ");
    CHECK_TEXT(lab_restore(&lab, 1004999), "a=2 b=1 c=1 ");
    CHECK_TEXT(lab_restore(&lab, 1003000), "a=2 b=1 ");
    CHECK_TEXT(lab_restore(&lab, 1002999), "a=1 b=1 ");
    CHECK_TEXT(lab_restore(&lab, 1002000), "a=1 b=1 ");
    CHECK_TEXT(
        lab_restore(&lab, 1001999),
        "the backups do not know what was there at 1970-01-01T00:16:41.999Z: the oldest moment that they have "
        "is 1970-01-01T00:16:42.000Z");
    CHECK_TEXT(
        lab_restore(&lab, 1005001),
        "the backups do not know what was there at 1970-01-01T00:16:45.001Z: the newest moment that they have "
        "is 1970-01-01T00:16:45.000Z; without --at that is restored");
    CHECK_INT(lab_faults(&lab), 0);
    lab_free(&lab);
}

TEST(backup_a_further_base_copies_what_is_new)
{
    struct lab lab;
    struct backup_position position;
    lab_init(&lab);
    for (char key[] = "a"; key[0] < 'f'; key[0]++) lab_put(&lab, key, "1");
    struct backup_target *target = lab_target(&lab);
    struct backup_progress first = lab_base(&lab, target, &position);
    lab_put(&lab, "z", "1");
    struct backup_progress second = lab_base(&lab, target, &position);
    CHECK_INT(first.files_copied, first.files_all);
    CHECK(second.files_all > first.files_all);
    CHECK(second.files_copied < second.files_all);
    backup_target_close(target);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=1 b=1 c=1 d=1 e=1 z=1 ");
    CHECK_INT(lab_faults(&lab), 0);
    lab_free(&lab);
}

TEST(backup_between_two_bases_without_log_nothing_is_known)
{
    struct lab lab;
    struct backup_position position;
    lab_init(&lab);
    lab_put(&lab, "a", "1"); /* 1001000 */
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_put(&lab, "a", "2"); /* 1002000 */
    lab_put(&lab, "a", "3"); /* 1003000 */
    lab_base(&lab, target, &position);
    backup_target_close(target);
    CHECK_TEXT(lab_restore(&lab, 1002500),
               "the backups do not know what was there at 1970-01-01T00:16:42.500Z: nothing is known between "
               "1970-01-01T00:16:41.000Z and 1970-01-01T00:16:43.000Z");
    struct backup_report report;
    struct buf faults = {0};
    char error[500];
    CHECK(backup_verify(lab.target, &report, &faults, error, sizeof error));
    CHECK_INT(report.gaps, 1);
    CHECK_TEXT(lab_restore(&lab, 1001000), "a=1 ");
    CHECK_TEXT(lab_restore(&lab, 1003000), "a=3 ");
    lab_free(&lab);
}

TEST(backup_flipped_bits_are_found_and_not_restored)
{
    struct lab lab;
    struct backup_position position;
    char path[DISK_PATH + BACKUP_NAME_BYTES];
    lab_init(&lab);
    lab_put(&lab, "a", "1");
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_put(&lab, "a", "2"); /* 1002000 */
    lab_ship(&lab, target, &position);
    lab_put(&lab, "a", "3");
    lab_ship(&lab, target, &position);
    snprintf(path, sizeof path, "%s/%s", target->paths.log, target->piece_name);
    backup_target_close(target);
    CHECK_INT(lab_faults(&lab), 0);
    flip(path, 3);
    CHECK_INT(lab_faults(&lab), 1);
    CHECK(slice_contains(lab_restore(&lab, BACKUP_LATEST), SLICE("is damaged at byte")));
    CHECK_TEXT(lab_restore(&lab, 1002000), "a=2 ");
    flip(path, 3);
    CHECK_INT(lab_faults(&lab), 0);
    ensure(nftw(lab.target, find_table, 8, FTW_PHYS) == 0);
    flip(found, 200);
    CHECK_INT(lab_faults(&lab), 1);
    CHECK(slice_contains(lab_restore(&lab, BACKUP_LATEST), SLICE("is damaged: it has not the checksum")));
    /* A further backup believes what is there, unless it is to mend that. */
    for (int mends = 0; mends < 2; mends++) {
        struct backup_progress progress = {.mends = mends};
        char error[500];
        target = lab_target(&lab);
        position = (struct backup_position){0};
        CHECK(backup_take_base(target, lab.source, &progress, &position, error, sizeof error));
        backup_target_close(target);
        CHECK_INT(lab_faults(&lab), !mends);
    }
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=3 ");
    lab_free(&lab);
}

static bool count_batches(void *context, const struct block_head *head, struct slice stored)
{
    (void)stored;
    *(uint64_t *)context += head->count;
    return true;
}

/* A writer that is killed leaves an open piece, whose end may be torn. */
TEST(backup_an_open_piece_is_good_up_to_its_last_whole_block)
{
    struct lab lab;
    struct backup_position position, again;
    char path[DISK_PATH + BACKUP_NAME_BYTES + 10], error[500];
    lab_init(&lab);
    lab_put(&lab, "a", "1");
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_put(&lab, "a", "2");
    lab_ship(&lab, target, &position);
    snprintf(path, sizeof path, "%s/%s.open", target->paths.log, target->piece_name);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=2 ");
    CHECK(disk_write_all(target->piece, SLICE("QUIPUBL1 and then the power was cut")));
    close(target->piece);
    target->piece = -1; /* nobody closes it in order */
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=2 ");
    CHECK_INT(lab_faults(&lab), 0);
    backup_target_close(target);
    target = lab_target(&lab);
    CHECK(access(path, F_OK) != 0);
    /* Somebody who has listed it before finds it all the same. */
    uint64_t batches = 0;
    struct piece_end end;
    CHECK(piece_walk(path, piece_all, count_batches, &batches, &end, error, sizeof error));
    CHECK_INT(batches, 1);
    CHECK(backup_target_position(target, &again, error, sizeof error));
    CHECK_INT(again.next, position.next);
    lab_put(&lab, "a", "3");
    lab_ship(&lab, target, &again);
    backup_target_close(target);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=3 ");
    CHECK_INT(lab_faults(&lab), 0);
    lab_free(&lab);
}

static bool is_enough(void *context)
{
    int *calls = context;
    return --*calls > 0;
}

/* However far it gets, what was there stays, and the next one needs the rest only. */
TEST(backup_that_is_interrupted_anywhere_goes_on)
{
    struct lab lab;
    struct backup_position position;
    char error[500];
    bool done = false;
    lab_init(&lab);
    lab_put(&lab, "a", "1");
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_put(&lab, "a", "2");
    for (int calls = 1; !done; calls++) {
        int left = calls;
        struct backup_progress progress = {.goes_on = is_enough, .context = &left};
        done = backup_take_base(target, lab.source, &progress, &position, error, sizeof error);
        CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), done ? "a=2 " : "a=1 ");
        CHECK_INT(lab_faults(&lab), 0);
        ensure(calls < 100);
    }
    backup_target_close(target);
    lab_free(&lab);
}

TEST(backup_folders_of_others_are_left_alone)
{
    struct lab lab;
    char error[500], path[DISK_PATH];
    lab_init(&lab);
    CHECK(!backup_target_open(lab.data, error, sizeof error));
    CHECK(slice_contains(slice_of(error), SLICE("holds no backups of quipu")));
    struct backup_target *target = lab_target(&lab);
    CHECK(!backup_target_open(lab.target, error, sizeof error));
    CHECK(slice_contains(slice_of(error), SLICE("another process writes to the backups")));
    backup_target_close(target);
    CHECK(slice_contains(lab_restore(&lab, BACKUP_LATEST), SLICE("there is no backup in")));
    ensure(disk_path(path, lab.target, "quipu-backup", error, sizeof error));
    CHECK(disk_file_put(lab.target, "quipu-backup", SLICE("quipu backup, format 3\n"), error, sizeof error));
    CHECK(!backup_target_open(lab.target, error, sizeof error));
    CHECK(slice_contains(slice_of(error), SLICE("written by a newer quipu")));
    lab_free(&lab);
}

TEST(backup_what_is_too_old_is_forgotten_and_the_rest_stays)
{
    struct lab lab;
    struct backup_position position;
    struct backup_report report;
    struct buf faults = {0};
    char error[500];
    lab_init(&lab);
    struct backup_target *target = lab_target(&lab);
    for (char key[] = "a"; key[0] < 'f'; key[0]++) { /* bases at 1001000, 1003000, ... 1009000 */
        lab_put(&lab, key, "1");
        lab_base(&lab, target, &position);
        lab_put(&lab, "z", key); /* shipped behind each */
        lab_ship(&lab, target, &position);
        CHECK(backup_close_piece(target, error, sizeof error));
    }
    CHECK(backup_forget(target, 1006500, error, sizeof error));
    CHECK(slice_contains(lab_restore(&lab, 1004900),
                         SLICE("the oldest moment that they have is 1970-01-01T00:16:45")));
    CHECK_TEXT(lab_restore(&lab, 1005000), "a=1 b=1 c=1 z=b ");
    CHECK_TEXT(lab_restore(&lab, 1006000), "a=1 b=1 c=1 z=c ");
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=1 b=1 c=1 d=1 e=1 z=e ");
    CHECK(backup_verify(lab.target, &report, &faults, error, sizeof error));
    CHECK_INT(report.faults, 0);
    CHECK_INT(report.bases, 3);
    CHECK_INT(report.pieces, 3);
    buf_free(&faults);
    backup_target_close(target);
    lab_free(&lab);
}

struct rival {
    struct lab *lab;
    pthread_t thread;
    useconds_t pause_us;
    bool is_done;
    char error[500];
};

static void *restore_beside_others(void *context)
{
    struct rival *rival = context;
    struct backup_restored restored;
    usleep(rival->pause_us);
    rival->is_done = backup_restore(rival->lab->target, rival->lab->restored, BACKUP_LATEST, &restored,
                                    rival->error, sizeof rival->error);
    return NULL;
}

/* One of them comes to its end, the others are refused, and what all of them would link to stays as it is. */
TEST(backup_restores_into_one_folder_at_once_leave_the_backup_as_it_is)
{
    enum { RIVALS = 4, ROUNDS = 10, STEP_US = 2000 };
    struct lab lab;
    struct backup_position position;
    lab_init(&lab);
    for (char key[] = "a"; key[0] < 'f'; key[0]++) lab_put(&lab, key, "1");
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    backup_target_close(target);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct rival rivals[RIVALS];
        int done = 0;
        for (unsigned i = 0; i < RIVALS; i++) {
            rivals[i] = (struct rival){.lab = &lab, .pause_us = i * round * STEP_US};
            ensure(pthread_create(&rivals[i].thread, NULL, restore_beside_others, &rivals[i]) == 0);
        }
        for (unsigned i = 0; i < RIVALS; i++) {
            pthread_join(rivals[i].thread, NULL);
            done += rivals[i].is_done;
            struct slice error = slice_of(rivals[i].error);
            CHECK(rivals[i].is_done || slice_contains(error, SLICE("another process restores into")) ||
                  slice_contains(error, SLICE("is not empty")));
        }
        CHECK_INT(done, 1);
        CHECK_INT(lab_faults(&lab), 0);
        disk_remove(lab.restored);
    }
    lab_free(&lab);
}

TEST(backup_a_file_that_is_there_is_not_written_to)
{
    struct lab lab;
    char error[500], one[DISK_PATH], other[DISK_PATH];
    struct buf text = {0};
    uint64_t hash;
    lab_init(&lab);
    ensure(disk_path(one, lab.folder, "one", error, sizeof error));
    ensure(disk_path(other, lab.folder, "other", error, sizeof error));
    CHECK(disk_file_put(lab.folder, "one", SLICE("of somebody"), error, sizeof error));
    ensure(link(one, other) == 0);
    CHECK(!disk_file_copy(one, other, &hash, error, sizeof error));
    CHECK(slice_contains(slice_of(error), SLICE("File exists")));
    strcat(other, ".new"); /* what is written before it gets its name is somebody's link here */
    ensure(link(one, other) == 0);
    CHECK(disk_file_put(lab.folder, "other", SLICE("of mine"), error, sizeof error));
    CHECK(disk_file_read(one, 0, 100, &text, error, sizeof error));
    CHECK_TEXT(buf_view(&text), "of somebody");
    buf_free(&text);
    lab_free(&lab);
}

static void full_disk(rlim_t bytes)
{
    struct rlimit limit;
    ensure(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    limit.rlim_cur = bytes;
    ensure(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* A disk that is full while a block is written: a file may not become longer, so that half of it is there. */
TEST(backup_what_did_not_fit_is_cut_off_before_more_is_appended)
{
    struct lab lab;
    struct backup_position position, again;
    char value[20000], error[500];
    struct random random = {0};
    lab_init(&lab);
    random_seed(&random, 7);
    lab_put(&lab, "a", "1");
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    for (int round = 0; round < 3; round++) {
        if (round != 1) { /* else nothing of the piece is there before it */
            lab_put(&lab, "b", "1");
            lab_ship(&lab, target, &position);
        } else {
            CHECK(backup_close_piece(target, error, sizeof error));
        }
        for (size_t i = 0; i + 1 < sizeof value; i++) value[i] = (char)('A' + random_next(&random) % 26);
        value[sizeof value - 1] = '\0';
        lab_put(&lab, "c", value);
        signal(SIGXFSZ, SIG_IGN);
        full_disk((target->piece < 0 ? 0 : target->piece_bytes) + 5000);
        enum backup_log result = backup_ship(target, lab.source, &position, 0, error, sizeof error);
        full_disk(RLIM_INFINITY);
        CHECK_INT(result, BACKUP_LOG_FAILED);
        CHECK(slice_contains(slice_of(error), SLICE("cannot write the log in")));
        CHECK_INT(lab_faults(&lab), 0);
        lab_put(&lab, "d", "1");
        if (round == 2) break; /* closed behind it */
        lab_ship(&lab, target, &position);
        CHECK_INT(position.next, store_log_synced(lab.store) + 1);
    }
    backup_target_close(target);
    CHECK_INT(lab_faults(&lab), 0);
    target = lab_target(&lab);
    CHECK(backup_target_position(target, &again, error, sizeof error));
    CHECK_INT(again.next, position.next);
    lab_ship(&lab, target, &again);
    backup_target_close(target);
    CHECK_INT(lab_faults(&lab), 0);
    struct backup_restored restored;
    CHECK(backup_restore(lab.target, lab.restored, BACKUP_LATEST, &restored, error, sizeof error));
    CHECK_INT(restored.number, store_log_synced(lab.store));
    lab_free(&lab);
}

static void lab_copy_data(struct lab *lab, const char *from, const char *to)
{
    char command[400];
    snprintf(command, sizeof command, "rm -rf %s/%s && cp -r %s/%s %s/%s", lab->folder, to, lab->folder, from,
             lab->folder, to);
    ensure(system(command) == 0);
}

/* A power cut has left the list of tables with a torn end: readers pass it over, and writers cut it off. */
TEST(backup_of_a_folder_whose_list_of_tables_is_torn)
{
    struct lab lab;
    struct backup_progress progress = {0};
    struct backup_position position = {0};
    char command[400], torn[DISK_PATH], error[500] = "";
    uint64_t number;
    static const char record[] = "\\022\\064\\126\\170\\100\\000\\001"; /* its checksum is not its own */
    lab_init(&lab);
    lab_put(&lab, "a", "1");
    ensure(disk_path(torn, lab.folder, "checkpoint", error, sizeof error));
    CHECK(store_checkpoint(lab.store, torn, &number, error, sizeof error)); /* brings it to tables */
    lab_put(&lab, "b", "2");
    lab_copy_data(&lab, "data", "torn");
    ensure(disk_path(torn, lab.folder, "torn", error, sizeof error));
    snprintf(command, sizeof command, "cd %s/torn/store && { printf '%s'; head -c 700 /dev/zero; } >> $(cat CURRENT)",
             lab.folder, record);
    ensure(system(command) == 0);
    struct backup_source *source = backup_source_folder(torn, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    ensure(source);
    struct backup_target *target = lab_target(&lab);
    CHECK(backup_take_base(target, source, &progress, &position, error, sizeof error));
    CHECK_TEXT(slice_of(error), "");
    CHECK_INT(backup_ship(target, source, &position, 0, error, sizeof error), BACKUP_LOG_BLOCK);
    backup_source_close(source);
    backup_target_close(target);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=1 b=2 ");
    CHECK_INT(lab_faults(&lab), 0);
    lab_free(&lab);
}

/* Written without a sync, brought to the tables, and then the power was cut: the log ends before they do. */
TEST(backup_of_a_folder_whose_log_is_shorter_than_its_tables)
{
    enum { BLOCK = 4096 };
    struct lab lab;
    struct backup_progress progress = {0};
    struct backup_position position = {0};
    char path[DISK_PATH], killed[DISK_PATH], error[500] = "";
    static const char zeros[8 * BLOCK];
    uint64_t number;
    lab_init(&lab);
    lab_put(&lab, "a", "1");
    for (char key[] = "b"; key[0] < 'e'; key[0]++) {
        struct store_batch batch = {0};
        store_batch_put(&batch, slice_of(key), SLICE("2"));
        CHECK_INT(store_write(lab.store, &batch, false), STORE_OK);
        store_batch_free(&batch);
    }
    ensure(disk_path(path, lab.folder, "checkpoint", error, sizeof error));
    CHECK(store_checkpoint(lab.store, path, &number, error, sizeof error));
    lab_copy_data(&lab, "data", "killed");
    ensure(disk_path(killed, lab.folder, "killed", error, sizeof error));
    ensure(disk_path(path, killed, "journal/0000000000000001.journal", error, sizeof error));
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ensure(file >= 0 &&
           pwrite(file, zeros, sizeof zeros, 2 * BLOCK) == sizeof zeros); /* behind the first batch */
    close(file);
    struct backup_source *source = backup_source_folder(killed, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    ensure(source);
    struct backup_target *target = lab_target(&lab);
    CHECK(backup_take_base(target, source, &progress, &position, error, sizeof error));
    CHECK_INT(position.next, number + 1);
    CHECK_INT(backup_ship(target, source, &position, 0, error, sizeof error), BACKUP_LOG_BLOCK);
    CHECK_INT(position.next, number + 1);
    backup_source_close(source);
    backup_target_close(target);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=1 b=2 c=2 d=2 ");
    CHECK_INT(lab_faults(&lab), 0);
    lab_free(&lab);
}

static void lab_refuse(struct lab *lab, struct backup_target *target, const char *part)
{
    struct backup_progress progress = {0};
    struct backup_position position = {0};
    char error[500] = "";
    CHECK(!backup_take_base(target, lab->source, &progress, &position, error, sizeof error));
    CHECK(slice_contains(slice_of(error), slice_of(part)));
    CHECK(progress.is_refused);
}

/* A restored folder has a log of its own. */
TEST(backup_of_another_database_is_refused)
{
    struct lab lab;
    struct backup_position position;
    struct backup_restored restored;
    char error[500];
    lab_init(&lab);
    lab_put(&lab, "a", "1");
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_close_store(&lab);
    CHECK(backup_restore(lab.target, lab.restored, BACKUP_LATEST, &restored, error, sizeof error));
    CHECK_INT(restored.number, 1);
    strcpy(lab.data, lab.restored);
    strcat(lab.restored, "2");
    lab_open_store(&lab);
    lab_put(&lab, "b", "2");
    lab_refuse(&lab, target, "are of another database");
    CHECK_INT(backup_ship(target, lab.source, &position, 0, error, sizeof error), BACKUP_LOG_GONE);
    backup_target_close(target);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=1 ");
    lab_free(&lab);
}

/* The same numbers, once more: before what the target has, up to it, and beyond it. */
TEST(backup_of_a_folder_that_was_set_back_is_refused)
{
    for (int more = 0; more < 4; more++) {
        struct lab lab;
        struct backup_position position, again;
        char error[500];
        lab_init(&lab);
        lab_put(&lab, "a", "1");
        lab_close_store(&lab);
        lab_copy_data(&lab, "data", "earlier");
        lab_open_store(&lab);
        struct backup_target *target = lab_target(&lab);
        lab_base(&lab, target, &position);
        lab_put(&lab, "a", "old");
        lab_put(&lab, "b", "old");
        lab_ship(&lab, target, &position);
        lab_close_store(&lab);
        lab_copy_data(&lab, "earlier", "data");
        lab_open_store(&lab);
        for (int i = 0; i < more; i++) lab_put(&lab, "a", "new");
        again = position;
        enum backup_log shipped = backup_ship(target, lab.source, &again, 0, error, sizeof error);
        CHECK_INT(shipped, more < 2 ? BACKUP_LOG_GONE : BACKUP_LOG_FAILED);
        if (more >= 2) CHECK(slice_contains(slice_of(error), SLICE("have another history: batch 3 is not")));
        lab_refuse(&lab, target, "have another history: batch 3 is not");
        backup_target_close(target);
        CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=old b=old ");
        CHECK_INT(lab_faults(&lab), 0);
        lab_free(&lab);
    }
}

/* Pieces of two histories of which the numbers fit, in one folder: somebody has copied them there. */
TEST(backup_pieces_of_another_history_are_never_laid_over_a_base)
{
    struct lab lab;
    struct backup_position position;
    char command[400];
    lab_init(&lab);
    lab_put(&lab, "a", "1");
    lab_close_store(&lab);
    lab_copy_data(&lab, "data", "earlier");
    lab_open_store(&lab);
    struct backup_target *target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_put(&lab, "b", "old");
    for (int i = 0; i < 4; i++) lab_put(&lab, "c", "old"); /* one block, of batches 2 to 6 */
    lab_ship(&lab, target, &position);
    backup_target_close(target);
    lab_close_store(&lab);
    lab_copy_data(&lab, "target", "old");
    disk_remove(lab.target);
    lab_copy_data(&lab, "earlier", "data");
    lab_open_store(&lab);
    for (int i = 0; i < 2; i++) lab_put(&lab, "a", "new"); /* batches 2 and 3 */
    target = lab_target(&lab);
    lab_base(&lab, target, &position);
    lab_put(&lab, "a", "newer");
    lab_ship(&lab, target, &position);
    backup_target_close(target);
    snprintf(command, sizeof command, "cp %s/old/log/* %s/log/", lab.folder, lab.target);
    ensure(system(command) == 0);
    CHECK_TEXT(lab_restore(&lab, BACKUP_LATEST), "a=newer ");
    lab_free(&lab);
}

static bool add_up(void *context, const struct block_batch *batch)
{
    *(uint64_t *)context += batch->number * 1000 + (uint64_t)batch->time_ms + batch->bytes.len;
    return true;
}

TEST(backup_no_bit_of_a_block_can_be_flipped)
{
    struct block_writer writer = {0};
    struct buf block = {0};
    struct block_head head;
    uint64_t sum = 0;
    block_add(&writer, 5, SLICE("one"));
    block_add(&writer, 6, SLICE(""));
    block_add(&writer, 7, SLICE("three"));
    CHECK(block_finish(&writer, 77, 4, 5, 9, &block) == batch_mark(7, SLICE("three")));
    CHECK(block_head_read(buf_view(&block), &head));
    CHECK(block_visit(&head, slice_from(buf_view(&block), BLOCK_HEAD), add_up, &sum));
    CHECK_INT(sum, 15000 + 18 + 8);
    for (size_t i = 0; i < block.len * 8; i++) {
        block.data[i / 8] = (char)(block.data[i / 8] ^ 1 << i % 8);
        bool believed = block_head_read(buf_view(&block), &head) &&
                        head.stored_bytes == block.len - BLOCK_HEAD &&
                        block_visit(&head, slice_from(buf_view(&block), BLOCK_HEAD), NULL, NULL);
        CHECK(!believed);
        block.data[i / 8] = (char)(block.data[i / 8] ^ 1 << i % 8);
    }
    block_writer_free(&writer);
    buf_free(&block);
}

TEST(backup_names_from_outside_are_files_or_nothing)
{
    static const char *const odd[] = {"", ".", "..", "../quipu", "a/b", "a b", ".hidden", "a\nb", "\xc3\xa4"};
    struct backup_base base;
    char id[BACKUP_NAME_BYTES];
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) CHECK(!disk_name_is_plain(slice_of(odd[i])));
    CHECK(disk_name_is_plain(SLICE("MANIFEST-000004")));
    struct slice text = SLICE(
        "{\"source\":\"0000000000000001\",\"mark\":\"0000000000000001\",\"number\":1,"
        "\"time\":2,\"files\":[{\"name\":\"../../x\","
        "\"bytes\":1,\"mark\":\"0000000000000001\",\"checksum\":\"0000000000000001\"}]}");
    CHECK(!base_parse(text, &base, id));
    CHECK(!base_parse(SLICE("[]"), &base, id));
    CHECK(!base_parse(SLICE("nonsense"), &base, id));
}
