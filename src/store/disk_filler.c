/* The thread that fills RocksDB's memory table. At 64 connections that is a quarter of what a batch of PutItem takes
 * behind its sync; for a batch of few entries the hand-over would cost more than it saves. */
#include "store/disk_filler.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "store/batch.h"
#include "store/overlay.h"

#define FILL_LEAST_ENTRIES 8   /* 3 us each; to wake a thread and to wait for it takes 10 to 20 */
#define FILL_MOST_ENTRIES  512 /* a reader waits for a millisecond or two at most */
#define FILL_MOST_BYTES    ((size_t)1024 * 1024)
#define ROOM_PATIENCE_US   (30ll * 1000 * 1000) /* that an opening waits for RocksDB */
#define ROOM_LOOK_US       100000

void disk_filler_init(struct disk_filler *filler, struct store *rocks)
{
    pthread_condattr_t attributes;
    *filler = (struct disk_filler){.rocks = rocks};
    ensure(pthread_condattr_init(&attributes) == 0 &&
           pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    ensure(pthread_mutex_init(&filler->lock, NULL) == 0 && pthread_cond_init(&filler->more, &attributes) == 0 &&
           pthread_cond_init(&filler->done, NULL) == 0);
    pthread_condattr_destroy(&attributes);
}

void disk_filler_stop(struct disk_filler *filler)
{
    disk_filler_wait(filler);
    pthread_mutex_lock(&filler->lock);
    filler->stopping = true;
    pthread_cond_signal(&filler->more);
    pthread_mutex_unlock(&filler->lock);
    if (filler->started) pthread_join(filler->thread, NULL);
    pthread_cond_destroy(&filler->more);
    pthread_cond_destroy(&filler->done);
    pthread_mutex_destroy(&filler->lock);
    store_batch_free(&filler->batch);
}

bool disk_filler_is_for(struct disk_filler *filler, const struct store_batch *batch)
{
    bool is_read = atomic_exchange(&filler->is_read, false);
    if (is_read || batch->count < FILL_LEAST_ENTRIES || batch->count > FILL_MOST_ENTRIES ||
        batch->entries.len > FILL_MOST_BYTES)
        return false;
    struct batch_reader reader = batch_read(batch);
    for (struct batch_entry entry; batch_next(&reader, &entry);)
        if (entry.kind == BATCH_DELETE_RANGE) return false; /* space is given back behind it, by the writer */
    return rocks_is_calm(filler->rocks);
}

enum rocks_result disk_fill(struct store *rocks, const struct store_batch *batch, struct rocks_mark mark)
{
    enum rocks_result result;
    for (int64_t until = monotonic_us() + ROOM_PATIENCE_US;;) {
        result = rocks_write(rocks, batch, mark);
        if (result != ROCKS_NO_ROOM || monotonic_us() >= until) return result;
        usleep(ROOM_LOOK_US);
    }
}

/* ---- waiting for room ---- */

/* Under the lock. */
static void pause_for_room(struct disk_filler *filler)
{
    int64_t until_us = monotonic_us() + ROOM_LOOK_US;
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    pthread_cond_timedwait(&filler->more, &filler->lock, &until);
}

/* Under the lock, which is given back in between: readers have what RocksDB has not. NO_ROOM: it is to end. */
static enum rocks_result wait_for_room(struct disk_filler *filler)
{
    enum rocks_result result = ROCKS_NO_ROOM;
    snprintf(filler->no_room, sizeof filler->no_room, "%s", filler->rocks->refusal);
    filler->over = store_open_overlay_on(filler->rocks);
    ensure(store_write(filler->over, &filler->batch, false) == STORE_OK);
    pthread_cond_broadcast(&filler->done);
    while (result == ROCKS_NO_ROOM && !filler->stopping) {
        pause_for_room(filler);
        if (!filler->stopping) result = rocks_write(filler->rocks, &filler->batch, filler->mark);
    }
    return result;
}

/* Under the lock. Nobody begins to read it any more. */
static void leave_over(struct disk_filler *filler)
{
    struct store *over = filler->over;
    filler->over = NULL;
    while (filler->over_readers) pthread_cond_wait(&filler->done, &filler->lock);
    if (over) store_close(over);
}

static void *filler_main(void *argument)
{
    struct disk_filler *filler = argument;
    pthread_setname_np(pthread_self(), "quipu-filler");
    pthread_mutex_lock(&filler->lock);
    for (;;) {
        while (!filler->stopping && (!filler->is_filling || filler->is_refused))
            pthread_cond_wait(&filler->more, &filler->lock);
        if (filler->stopping) break;
        pthread_mutex_unlock(&filler->lock);
        enum rocks_result result = rocks_write(filler->rocks, &filler->batch, filler->mark);
        pthread_mutex_lock(&filler->lock);
        if (result == ROCKS_NO_ROOM) result = wait_for_room(filler);
        if (result == ROCKS_OK)
            atomic_store(&filler->is_filling, false);
        else
            filler->is_refused = true;
        pthread_cond_broadcast(&filler->done);
        leave_over(filler);
    }
    pthread_mutex_unlock(&filler->lock);
    return NULL;
}

bool disk_filler_waits_for_room(struct disk_filler *filler, char *sentence, size_t sentence_len)
{
    if (!atomic_load(&filler->is_filling)) return false;
    pthread_mutex_lock(&filler->lock);
    bool waits = filler->over != NULL;
    if (waits) snprintf(sentence, sentence_len, "%s", filler->no_room);
    pthread_mutex_unlock(&filler->lock);
    return waits;
}

bool disk_filler_add(struct disk_filler *filler, const struct store_batch *batch, struct rocks_mark mark)
{
    if (!atomic_load(&filler->is_filling)) return false;
    pthread_mutex_lock(&filler->lock);
    bool waits = filler->over != NULL;
    if (waits) {
        ensure(store_write(filler->over, batch, false) == STORE_OK);
        buf_slice(&filler->batch.entries, buf_view(&batch->entries));
        filler->batch.count += batch->count;
        filler->mark = mark;
    }
    pthread_mutex_unlock(&filler->lock);
    return waits;
}

/* ---- handing over ---- */

bool disk_filler_is_filling(const struct disk_filler *filler)
{
    return atomic_load(&filler->is_filling);
}

/* Readers of what waited for room before may read once more while they do: they must not be made to wait for this
 * batch, for the thread waits for them. */
static void await_readers(struct disk_filler *filler)
{
    pthread_mutex_lock(&filler->lock);
    while (filler->over_readers) pthread_cond_wait(&filler->done, &filler->lock);
    pthread_mutex_unlock(&filler->lock);
}

void disk_filler_begin(struct disk_filler *filler, const struct store_batch *batch, struct rocks_mark mark)
{
    ensure(!atomic_load(&filler->is_filling));
    await_readers(filler);
    store_batch_clear(&filler->batch);
    buf_slice(&filler->batch.entries, buf_view(&batch->entries));
    filler->batch.count = batch->count;
    filler->mark = mark;
    pthread_mutex_lock(&filler->lock);
    if (!filler->started) ensure(pthread_create(&filler->thread, NULL, filler_main, filler) == 0);
    filler->started = true;
    atomic_store(&filler->is_filling, true);
    pthread_cond_signal(&filler->more);
    pthread_mutex_unlock(&filler->lock);
}

bool disk_filler_wait(struct disk_filler *filler)
{
    if (!atomic_load(&filler->is_filling)) return true;
    pthread_mutex_lock(&filler->lock);
    while (filler->is_filling && !filler->is_refused && !filler->over)
        pthread_cond_wait(&filler->done, &filler->lock);
    bool is_filled = !filler->is_refused;
    pthread_mutex_unlock(&filler->lock);
    return is_filled;
}

struct store *disk_filler_read_begin(struct disk_filler *filler)
{
    struct store *read = filler->rocks;
    if (!atomic_load_explicit(&filler->is_read, memory_order_relaxed)) atomic_store(&filler->is_read, true);
    if (!atomic_load(&filler->is_filling)) return read;
    pthread_mutex_lock(&filler->lock);
    while (filler->is_filling && !filler->is_refused && !filler->over)
        pthread_cond_wait(&filler->done, &filler->lock);
    if (filler->is_refused) read = NULL;
    if (read && filler->over) {
        read = filler->over;
        filler->over_readers++;
    }
    pthread_mutex_unlock(&filler->lock);
    return read;
}

void disk_filler_read_end(struct disk_filler *filler, struct store *read)
{
    if (read == filler->rocks) return;
    pthread_mutex_lock(&filler->lock);
    if (--filler->over_readers == 0) pthread_cond_broadcast(&filler->done);
    pthread_mutex_unlock(&filler->lock);
}
