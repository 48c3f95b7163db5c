/* The server's half of backups without a socket: who waits for the log, who is let go, and what stops. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "backup/followers.h"
#include "base/clock.h"
#include "base/fail.h"
#include "rest/rest.h"
#include "unit/test.h"

struct hall {
    char folder[64], data[80];
    struct store *store;
    struct backup *backup;
};

static void hall_open(struct hall *hall, int64_t keep_ms)
{
    char error[500] = "";
    strcpy(hall->folder, "/tmp/quipu-hall-XXXXXX");
    ensure(mkdtemp(hall->folder));
    snprintf(hall->data, sizeof hall->data, "%s/data", hall->folder);
    struct store_options options = {.folder = hall->data, .create = true, .cache_bytes = 1 << 20};
    hall->store = store_open_disk(&options, error, sizeof error);
    CHECK_TEXT(slice_of(error), "");
    ensure(hall->store);
    hall->backup = backup_open(&(struct backup_options){.store = hall->store,
                                                        .folder = hall->data,
                                                        .clock = &clock_system,
                                                        .keep_ms = keep_ms,
                                                        .is_served = true});
}

static void hall_close(struct hall *hall)
{
    backup_close(hall->backup);
    store_close(hall->store);
    disk_remove(hall->folder);
}

static void write_some(struct hall *hall, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct store_batch batch = {0};
        store_batch_put(&batch, SLICE("key"), SLICE("value"));
        CHECK_INT(store_write(hall->store, &batch, true), STORE_OK);
        store_batch_free(&batch);
    }
}

/* A call that somebody makes and waits for. */
struct visit {
    struct rest_call call; /* first: it is cast back */
    struct arena arena;
    struct buf reply;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool is_done;
};

static void visit_done(struct rest_call *call)
{
    struct visit *visit = (struct visit *)call;
    pthread_mutex_lock(&visit->lock);
    visit->is_done = true;
    pthread_cond_signal(&visit->answered);
    pthread_mutex_unlock(&visit->lock);
}

static void visit_begin(struct visit *visit, struct hall *hall, const char *method, const char *path,
                        const char *query)
{
    *visit = (struct visit){0};
    pthread_mutex_init(&visit->lock, NULL);
    pthread_cond_init(&visit->answered, NULL);
    visit->call = (struct rest_call){.method = slice_of(method),
                                     .path = slice_of(path),
                                     .query = slice_of(query),
                                     .arena = &visit->arena,
                                     .reply = &visit->reply,
                                     .done = visit_done};
    CHECK(backup_serve(hall->backup, &visit->call));
}

static int visit_wait(struct visit *visit)
{
    pthread_mutex_lock(&visit->lock);
    while (!visit->is_done) pthread_cond_wait(&visit->answered, &visit->lock);
    pthread_mutex_unlock(&visit->lock);
    return visit->call.status;
}

static void visit_end(struct visit *visit)
{
    pthread_cond_destroy(&visit->answered);
    pthread_mutex_destroy(&visit->lock);
    buf_free(&visit->reply);
    arena_free(&visit->arena);
}

static const char *log_query(struct hall *hall, char out[200], uint64_t from, const char *more)
{
    snprintf(out, 200, "source=%016llx&from=%llu%s", (unsigned long long)store_log_id(hall->store),
             (unsigned long long)from, more);
    return out;
}

TEST(server_a_reader_of_the_log_waits_for_the_next_batch)
{
    struct hall hall;
    struct visit visits[3];
    struct block_head head;
    char query[200];
    hall_open(&hall, 0);
    write_some(&hall, 2);
    for (int i = 0; i < 3; i++)
        visit_begin(&visits[i], &hall, "GET", "/v1/backup/log",
                    log_query(&hall, query, 3, "&wait=20000&follower=one"));
    write_some(&hall, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(visit_wait(&visits[i]), 200);
        CHECK(block_head_read(buf_view(&visits[i].reply), &head));
        CHECK_INT(head.first, 3);
        CHECK_INT(head.count, 1);
        visit_end(&visits[i]);
    }
    hall_close(&hall);
}

TEST(server_that_stops_answers_whoever_waits_and_refuses_the_next)
{
    struct hall hall;
    struct visit visit;
    char query[200];
    hall_open(&hall, 0);
    visit_begin(&visit, &hall, "GET", "/v1/backup/log", log_query(&hall, query, 1, "&wait=20000"));
    backup_stop(hall.backup);
    CHECK_INT(visit_wait(&visit), 200); /* a block without a batch */
    visit_end(&visit);
    visit_begin(&visit, &hall, "GET", "/v1/backup/log", log_query(&hall, query, 1, "&wait=20000"));
    CHECK_INT(visit_wait(&visit), 503);
    visit_end(&visit);
    hall_close(&hall);
}

TEST(server_checkpoints_are_gone_with_it_and_those_of_one_that_was_killed_at_the_next_start)
{
    struct hall hall;
    struct visit visit;
    char copies[100], left[120];
    hall_open(&hall, 0);
    write_some(&hall, 1);
    snprintf(copies, sizeof copies, "%s/" COPIES, hall.data);
    snprintf(left, sizeof left, "%s/left", copies);
    visit_begin(&visit, &hall, "POST", "/v1/backup/checkpoints", "");
    CHECK_INT(visit_wait(&visit), 200);
    visit_end(&visit);
    CHECK(!disk_is_empty(copies, NULL));
    backup_close(hall.backup);
    CHECK(access(copies, F_OK) != 0);
    char error[200];
    CHECK(disk_make_folder(copies, error, sizeof error) && disk_make_folder(left, error, sizeof error));
    hall.backup = backup_open(
        &(struct backup_options){.store = hall.store, .folder = hall.data, .clock = &clock_system});
    CHECK(access(copies, F_OK) != 0);
    hall_close(&hall);
}

TEST(server_checkpoints_that_nobody_reads_from_give_way_when_their_place_is_needed)
{
    struct hall hall;
    struct followers followers;
    struct buf made = {0};
    char error[500] = "", path[DISK_PATH], first[17];
    hall_open(&hall, 0);
    write_some(&hall, 1);
    followers_init(&followers, hall.store, &clock_system, hall.data);
    for (int i = 0; i < LIMIT_BACKUP_CHECKPOINTS; i++)
        CHECK(checkpoint_add(&followers, "", hall.data, &made, error, sizeof error));
    CHECK(!checkpoint_add(&followers, "", hall.data, &made, error, sizeof error));
    CHECK(slice_contains(slice_of(error), SLICE("4 backups are being made already")));
    for (int i = 0; i < LIMIT_BACKUP_CHECKPOINTS; i++)
        followers.checkpoints[i].used_us -= (LIMIT_BACKUP_STALE_MS + 1000 * (i == 2)) * 1000LL + 1;
    strcpy(first, followers.checkpoints[2].id); /* the one that was not used for the longest time */
    CHECK(checkpoint_find(&followers, slice_of(followers.checkpoints[1].id), SLICE("CURRENT"), path, error,
                          sizeof error)); /* it is used now */
    CHECK(checkpoint_add(&followers, "", hall.data, &made, error, sizeof error));
    CHECK(!checkpoint_find(&followers, slice_of(first), SLICE("CURRENT"), path, error, sizeof error));
    CHECK(slice_contains(slice_of(error), SLICE("make the backup again")));
    followers_free(&followers);
    buf_free(&made);
    hall_close(&hall);
}

TEST(server_log_is_held_for_followers_only_within_a_bound)
{
    struct hall hall;
    struct followers followers;
    struct buf lines = {0};
    char error[500] = "";
    hall_open(&hall, 0);
    write_some(&hall, 5);
    followers_init(&followers, hall.store, &clock_system, hall.data);
    CHECK(follower_has(&followers, "far", 2));
    CHECK(checkpoint_add(&followers, "copy", hall.data, &lines, error, sizeof error)); /* behind batch 5 */
    write_some(&hall, 5);
    CHECK(follower_has(&followers, "near", 10));
    followers_tidy(&followers);
    struct checkpoint *copy = &followers.checkpoints[0];
    CHECK(followers.all[0].is_held && followers.all[1].is_held && !copy->is_let_go);
    followers.bytes_max = 1; /* the log has a whole segment */
    followers_tidy(&followers);
    CHECK(!followers.all[0].is_held && followers.all[1].is_held && !copy->is_let_go);
    followers_tidy(&followers);
    CHECK(followers.all[1].is_held && copy->is_let_go && copy->is_made); /* its files stay */
    lines.len = 0;
    followers_put_metrics(&followers, &lines);
    CHECK(slice_contains(buf_view(&lines), SLICE("quipu_backup_lag_batches{follower=\"far\"} 9\n")));
    CHECK(slice_contains(buf_view(&lines), SLICE("quipu_backup_lag_batches{follower=\"near\"} 1\n")));
    /* It is held again for one that comes back. */
    CHECK(follower_has(&followers, "far", 3));
    CHECK(followers.all[0].is_held);
    char name[32];
    for (int i = 2; i < LIMIT_BACKUP_FOLLOWERS; i++) {
        snprintf(name, sizeof name, "more-%d", i);
        CHECK(follower_has(&followers, name, 1));
    }
    CHECK(!follower_has(&followers, "too-many", 1));
    followers_free(&followers);
    buf_free(&lines);
    hall_close(&hall);
}

TEST(server_keeps_its_log_beside_its_writer)
{
    struct hall hall;
    struct backup_restored restored;
    char kept[100], bases[120], folder[100], error[600];
    hall_open(&hall, 86400000);
    snprintf(kept, sizeof kept, "%s/kept", hall.data);
    snprintf(folder, sizeof folder, "%s/restored", hall.folder);
    snprintf(bases, sizeof bases, "%s/bases", kept);
    while (disk_is_empty(bases, NULL)) usleep(1000);
    write_some(&hall, 50);
    backup_stop(hall.backup); /* the last thing that it does is to ship what there is */
    CHECK(backup_restore(kept, folder, BACKUP_LATEST, &restored, error, sizeof error));
    CHECK_INT(restored.number, 50);
    hall_close(&hall);
}
