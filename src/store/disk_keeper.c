/* The thread beside the writer of a store on disk. */
#include "store/disk_keeper.h"

#include <time.h>

#include "base/fail.h"
#include "base/limits.h"
#include "store/rocks.h"

#define LOOK_FOR_ROOM_S 1

void disk_keeper_init(struct disk_keeper *keeper, struct journal *journal, struct store *rocks)
{
    *keeper = (struct disk_keeper){.journal = journal, .rocks = rocks};
    ensure(pthread_mutex_init(&keeper->lock, NULL) == 0 && pthread_cond_init(&keeper->more, NULL) == 0);
}

void disk_keeper_stop(struct disk_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->stopping = true;
    pthread_cond_signal(&keeper->more);
    pthread_mutex_unlock(&keeper->lock);
    if (keeper->started) pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->more);
    pthread_mutex_destroy(&keeper->lock);
}

static void release(struct disk_keeper *keeper)
{
    struct rocks_mark mark;
    if (rocks_mark_on_disk(keeper->rocks, &mark)) journal_release(keeper->journal, mark.number);
}

static void keep(struct disk_keeper *keeper)
{
    release(keeper); /* first: its segments can be used again */
    if (journal_prepare(keeper->journal)) atomic_store(&keeper->is_full, false);
    if (journal_bytes(keeper->journal) <= LIMIT_JOURNAL_BYTES) return;
    rocks_flush(keeper->rocks);
    release(keeper);
}

/* False when it is time to end. */
static bool await_need(struct disk_keeper *keeper)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LOOK_FOR_ROOM_S;
    pthread_mutex_lock(&keeper->lock);
    bool is_over = false;
    while (!keeper->stopping && !keeper->wanted && !is_over) {
        if (atomic_load(&keeper->is_full))
            is_over = pthread_cond_timedwait(&keeper->more, &keeper->lock, &until) != 0;
        else
            pthread_cond_wait(&keeper->more, &keeper->lock);
    }
    keeper->wanted = false;
    bool goes_on = !keeper->stopping;
    pthread_mutex_unlock(&keeper->lock);
    return goes_on;
}

static void *keeper_main(void *argument)
{
    struct disk_keeper *keeper = argument;
    pthread_setname_np(pthread_self(), "quipu-journal");
    while (await_need(keeper)) keep(keeper);
    return NULL;
}

void disk_keeper_wake(struct disk_keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->wanted = true;
    if (!keeper->started) ensure(pthread_create(&keeper->thread, NULL, keeper_main, keeper) == 0);
    keeper->started = true;
    pthread_cond_signal(&keeper->more);
    pthread_mutex_unlock(&keeper->lock);
}

void disk_keeper_is_full(struct disk_keeper *keeper)
{
    atomic_store(&keeper->is_full, true);
    disk_keeper_wake(keeper);
}

bool disk_keeper_waits_for_room(struct disk_keeper *keeper)
{
    return atomic_load_explicit(&keeper->is_full, memory_order_relaxed);
}
