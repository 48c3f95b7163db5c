/* Readers on several threads beside the one writer. Every batch gives all keys the same value and an ever
 * larger number, so a reader must never see two values at once, nor fewer keys, nor time going back. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/fail.h"
#include "unit/store_fixture.h"

enum { KEYS = 64, ROUNDS = 3000, READERS = 3 };

struct beside {
    struct store *store;
    _Atomic bool done;
    _Atomic int wrong;
};

struct sight {
    int seen, number;
    bool torn;
};

static int number_in(struct slice value)
{
    char text[16];
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(value));
    return atoi(text);
}

static bool compare_values(void *context, struct slice key, struct slice value)
{
    struct sight *sight = context;
    int number = number_in(value);
    (void)key;
    if (sight->seen++ == 0) sight->number = number;
    sight->torn = sight->torn || sight->number != number;
    return true;
}

static void *read_beside(void *argument)
{
    struct beside *beside = argument;
    int last = 0;
    for (bool backwards = false; !beside->done; backwards = !backwards) {
        struct sight sight = {0};
        struct buf value = {0};
        if (store_scan(beside->store, SLICE(""), SLICE(""), backwards, compare_values, &sight) != STORE_OK)
            beside->wrong++;
        if (sight.torn || (sight.seen != 0 && sight.seen != KEYS) || sight.number < last) beside->wrong++;
        if (sight.seen) last = sight.number;
        enum store_result result = store_get(beside->store, SLICE("k07"), &value);
        if (result == STORE_FAILED || (last && (result != STORE_OK || number_in(buf_view(&value)) < last)))
            beside->wrong++;
        buf_free(&value);
    }
    return NULL;
}

static void write_rounds(struct store *store)
{
    struct store_batch batch = {0};
    for (int round = 1; round <= ROUNDS; round++) {
        char key[8], value[16];
        snprintf(value, sizeof value, "%d", round);
        store_batch_clear(&batch);
        if (round % 3 == 0) store_batch_delete_range(&batch, SLICE("k10"), SLICE("k50"));
        for (int i = 0; i < KEYS; i++) {
            snprintf(key, sizeof key, "k%02d", i);
            store_batch_put(&batch, slice_of(key), slice_of(value));
        }
        CHECK(store_write(store, &batch, false) == STORE_OK);
    }
    store_batch_free(&batch);
}

static void run_beside(struct store *store)
{
    struct beside beside = {.store = store};
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++) ensure(pthread_create(&readers[i], NULL, read_beside, &beside) == 0);
    write_rounds(store);
    beside.done = true;
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);
    CHECK_INT(beside.wrong, 0);
}

TEST(readers_beside_the_writer_in_memory)
{
    struct store *store = store_open_memory(NULL);
    run_beside(store);
    store_close(store);
}

TEST(readers_beside_the_writer_over_another_store)
{
    struct store *store = store_open_overlay(store_open_memory(NULL));
    run_beside(store);
    store_close(store);
}

/* ---- what was acknowledged is read at once, though RocksDB is filled behind it ---- */

struct acknowledged {
    struct store *store;
    _Atomic int round; /* whose write has answered */
    _Atomic bool done;
    _Atomic int wrong;
};

/* Reads every fourth batch as soon as it is acknowledged: those between are not read, so that the store fills them, and
 * the fourth, behind its answer. */
static void *read_acknowledged(void *argument)
{
    struct acknowledged *beside = argument;
    bool scans = false;
    for (int last = 0; !beside->done; sched_yield()) {
        int least = beside->round;
        struct sight sight = {0};
        struct buf value = {0};
        if (least == last || least % 4) continue;
        last = least;
        scans = !scans;
        if (scans) {
            if (store_scan(beside->store, SLICE(""), SLICE(""), false, compare_values, &sight) != STORE_OK ||
                sight.torn || sight.seen != KEYS || sight.number < least)
                beside->wrong++;
        } else {
            enum store_result result = store_get(beside->store, SLICE("k63"), &value);
            if (result != STORE_OK || number_in(buf_view(&value)) < least) beside->wrong++;
        }
        buf_free(&value);
    }
    return NULL;
}

/* Batches that go to RocksDB on the writer's thread (ranges, batches without a sync) among those that do not. */
TEST(what_is_acknowledged_is_read_while_the_next_batch_is_written)
{
    enum { DURABLE_ROUNDS = 200 };
    char *folder = folder_make(), *files = path_in(folder, "copy"), error[512] = "";
    struct acknowledged beside = {.store = disk_open(folder)};
    struct store_batch batch = {0};
    pthread_t readers[READERS];
    uint64_t number;
    for (int i = 0; i < READERS; i++)
        ensure(pthread_create(&readers[i], NULL, read_acknowledged, &beside) == 0);
    for (int round = 1; round <= DURABLE_ROUNDS; round++) {
        char key[16], text[16];
        struct buf value = {0};
        snprintf(text, sizeof text, "%d", round);
        store_batch_clear(&batch);
        if (round % 7 == 0) store_batch_delete_range(&batch, SLICE("k10"), SLICE("k50"));
        for (int i = 0; i < KEYS; i++) {
            snprintf(key, sizeof key, "k%02d", i);
            store_batch_put(&batch, slice_of(key), slice_of(text));
        }
        CHECK(store_write(beside.store, &batch, round % 5 != 0) == STORE_OK);
        beside.round = round;
        if (round % 4) continue;
        CHECK(store_get(beside.store, SLICE("k00"), &value) == STORE_OK);
        CHECK_INT(number_in(buf_view(&value)), round);
        buf_free(&value);
    }
    CHECK(store_write(beside.store, &batch, true) == STORE_OK);
    CHECK(store_checkpoint(beside.store, files, &number, error, sizeof error));
    CHECK_INT(number, DURABLE_ROUNDS + 1);
    beside.done = true;
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);
    CHECK_INT(beside.wrong, 0);
    CHECK(store_write(beside.store, &batch, true) ==
          STORE_OK); /* its end does not lose what is being filled */
    store_close(beside.store);
    struct store *again = disk_open(folder);
    struct sight sight = {0};
    CHECK(store_scan(again, SLICE(""), SLICE(""), false, compare_values, &sight) == STORE_OK);
    CHECK(sight.seen == KEYS && !sight.torn && sight.number == DURABLE_ROUNDS);
    store_close(again);
    store_batch_free(&batch);
    free(files);
    folder_remove(folder);
}

/* Snapshots hold the tree that the writer is about to change. */
static void *snapshot_beside(void *argument)
{
    struct beside *beside = argument;
    while (!beside->done) {
        struct store_snapshot *snapshot = store_snapshot_take(beside->store);
        struct store *other = store_open_memory(NULL);
        struct sight sight = {0};
        store_snapshot_restore(other, snapshot);
        store_snapshot_free(snapshot);
        put(other, "z", "1");
        CHECK(store_scan(other, SLICE("k"), SLICE("l"), false, compare_values, &sight) == STORE_OK);
        if (sight.torn || (sight.seen != 0 && sight.seen != KEYS)) beside->wrong++;
        store_close(other);
    }
    return NULL;
}

TEST(snapshots_beside_the_writer)
{
    struct beside beside = {.store = store_open_memory(NULL)};
    pthread_t thread;
    ensure(pthread_create(&thread, NULL, snapshot_beside, &beside) == 0);
    write_rounds(beside.store);
    beside.done = true;
    pthread_join(thread, NULL);
    CHECK_INT(beside.wrong, 0);
    store_close(beside.store);
}

#ifndef THREAD_SANITIZER
TEST(readers_beside_the_writer_on_disk)
{
    char *folder = folder_make();
    struct store *store = disk_open(folder);
    if (store) {
        run_beside(store);
        store_close(store);
    }
    folder_remove(folder);
}
#endif
