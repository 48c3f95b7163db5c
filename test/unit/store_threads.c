/* Readers on several threads beside the one writer. Every batch gives all keys the same value and an ever
 * larger number, so a reader must never see two values at once, nor fewer keys, nor time going back. */
#include <pthread.h>
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
