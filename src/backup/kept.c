/* The kept log: a thread ships the store's log to DATA/kept every second, takes a base a day, and forgets what is too
 * old. Whoever wants a moment has it shipped at once. */
#include "backup/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#define KEEP_EVERY_US 1000000 /* a block a second: more would only cost syncs, since the log itself is safe */
#define KEEP_AGAIN_US 30000000 /* after a failure: a disk without room */

/* Never let go: what is written while the server ends must be in the log at its next start. */
static void keep_hold(void *context, uint64_t from)
{
    struct kept *kept = context;
    if (from != UINT64_MAX) follower_has(kept->followers, KEEP_NAME, from);
}

void kept_init(struct kept *kept, struct followers *followers, const char *data, bool is_for_tables)
{
    *kept = (struct kept){.followers = followers,
                          .store = followers->store,
                          .data = data,
                          .clock = followers->clock,
                          .is_for_tables = is_for_tables,
                          .from_ms = INT64_MAX};
    pthread_mutex_init(&kept->turning, NULL);
    pthread_mutex_init(&kept->lock, NULL);
}

void kept_free(struct kept *kept)
{
    pthread_mutex_destroy(&kept->turning);
    pthread_mutex_destroy(&kept->lock);
}

/* ---- one round; with the lock ---- */

static bool keep_goes_on(void *context)
{
    return !atomic_load(&((struct kept *)context)->stops);
}

static bool forget(struct kept *kept, char *error, size_t error_len)
{
    struct target_list bases;
    int64_t before_ms = kept->position.until_ms - kept->keep_ms;
    if (!backup_forget(kept->target, before_ms, error, error_len) ||
        !target_bases(&kept->target->paths, &bases, error, error_len))
        return false;
    if (bases.count && bases.all[0].time_ms > kept->from_ms) kept->from_ms = bases.all[0].time_ms;
    target_list_free(&bases);
    return true;
}

/* By links, so that it costs no room before the tables' files are replaced. */
static bool keep_base(struct kept *kept, char *error, size_t error_len)
{
    struct backup_progress progress = {.goes_on = keep_goes_on, .context = kept};
    if (kept->position.source != store_log_id(kept->store)) kept->position.source = 0;
    bool begins = !kept->position.source;
    if (!backup_wants_base(&kept->position)) return true;
    if (begins) kept->from_ms = INT64_MAX;
    if (!backup_take_base(kept->target, kept->source, &progress, &kept->position, error, error_len))
        return false;
    kept->source->end(kept->source->self);
    if (begins) kept->from_ms = kept->position.base_ms;
    return kept->readers || forget(kept, error, error_len);
}

/* Everything that is in the log by now. Before a base is made: that one holds the log from where this ended. */
static bool keep_log(struct kept *kept, char *error, size_t error_len)
{
    enum backup_log result;
    uint64_t synced = store_log_synced(kept->store); /* what is written meanwhile is for the next round */
    do {
        result = backup_ship(kept->target, kept->source, &kept->position, 0, error, error_len);
    } while (result == BACKUP_LOG_BLOCK && kept->position.next <= synced && !atomic_load(&kept->stops));
    if (result == BACKUP_LOG_GONE) {
        log_line(
            "the log that is kept has a gap: the server's own log did not wait for it. A new base is made");
        kept->position.source = 0;
        return true;
    }
    if (result != BACKUP_LOG_BLOCK) return false;
    struct log_place place = {.cursor.number = kept->position.next};
    follower_sent(kept->followers, KEEP_NAME, &place, kept->position.until_ms);
    return true;
}

/* The oldest base from which the log goes on without a gap to where it ends. */
static bool find_first(struct kept *kept, char *error, size_t error_len)
{
    const struct target_paths *paths = &kept->target->paths;
    struct target_list bases;
    if (!target_bases(paths, &bases, error, error_len)) return false;
    bool fine = true;
    for (size_t i = 0; fine && i < bases.count && kept->from_ms == INT64_MAX;) {
        const struct target_entry *base = &bases.all[i];
        struct chain chain;
        fine = chain_find(paths, base, &chain, error, error_len);
        if (!fine) break;
        bool reaches = base->source == kept->position.source && chain.end.next >= kept->position.next;
        if (reaches) kept->from_ms = base->time_ms;
        for (i++; i < bases.count && bases.all[i].source == base->source &&
                  bases.all[i].number < chain.end.next;)
            i++;
        chain_free(&chain);
    }
    target_list_free(&bases);
    return fine;
}

static bool keep_open(struct kept *kept, char *error, size_t error_len)
{
    char path[DISK_PATH];
    if (kept->target) return true;
    if (!disk_path(path, kept->data, KEEP_NAME, error, error_len)) return false;
    struct backup_target *target = backup_target_open(path, error, error_len);
    if (!target) return false;
    kept->target = target;
    kept->from_ms = INT64_MAX;
    if (backup_target_position(target, &kept->position, error, error_len) &&
        find_first(kept, error, error_len)) {
        if (kept->position.source == store_log_id(kept->store)) keep_hold(kept, kept->position.next);
        return true;
    }
    backup_target_close(target);
    kept->target = NULL;
    return false;
}

static bool keep_round(struct kept *kept, char *error, size_t error_len)
{
    bool fine = keep_open(kept, error, error_len);
    if (fine && kept->position.source && kept->position.source == store_log_id(kept->store))
        fine = keep_log(kept, error, error_len);
    return fine && keep_base(kept, error, error_len);
}

/* ---- the thread ---- */

static void *keep_run(void *context)
{
    struct kept *kept = context;
    char error[600];
    bool fine = true;
    while (!atomic_load(&kept->stops)) {
        int64_t until_us = monotonic_us() + (fine ? KEEP_EVERY_US : KEEP_AGAIN_US);
        while (monotonic_us() < until_us && !atomic_load(&kept->stops)) usleep(20000);
        if (atomic_load(&kept->stops)) break;
        pthread_mutex_lock(&kept->lock);
        fine = keep_round(kept, error, sizeof error);
        pthread_mutex_unlock(&kept->lock);
        if (fine || atomic_load(&kept->stops)) continue;
        log_line("the log cannot be kept: %s", error);
        followers_tidy(kept->followers); /* so that it does not fill the disk meanwhile */
    }
    pthread_mutex_lock(&kept->lock);
    if (kept->target && kept->position.source) keep_log(kept, error, sizeof error);
    pthread_mutex_unlock(&kept->lock);
    return NULL;
}

static void close_target(struct kept *kept)
{
    if (kept->target) backup_target_close(kept->target);
    kept->target = NULL;
    kept->position = (struct backup_position){0};
    kept->from_ms = INT64_MAX;
}

static void stop(struct kept *kept)
{
    if (!kept->keep_ms) return;
    atomic_store(&kept->stops, true);
    pthread_join(kept->thread, NULL);
    atomic_store(&kept->stops, false);
    pthread_mutex_lock(&kept->lock);
    kept->keep_ms = 0;
    close_target(kept);
    backup_source_close(kept->source);
    pthread_mutex_unlock(&kept->lock);
}

void kept_stop(struct kept *kept)
{
    pthread_mutex_lock(&kept->turning);
    stop(kept);
    pthread_mutex_unlock(&kept->turning);
}

bool kept_keep(struct kept *kept, int64_t keep_ms, char *error, size_t error_len)
{
    char path[DISK_PATH], mark[DISK_PATH];
    bool fine = true;
    if (!disk_path(path, kept->data, KEEP_NAME, error, error_len) ||
        !disk_path(mark, kept->data, KEEP_MARK, error, error_len))
        return false;
    pthread_mutex_lock(&kept->turning);
    if (!keep_ms) {
        stop(kept);
        follower_forget(kept->followers, KEEP_NAME);
        if (access(mark, F_OK) == 0) {
            disk_remove(path);
            disk_remove(mark); /* last: who is killed over it finds it at the next start */
        }
    } else {
        pthread_mutex_lock(&kept->lock);
        bool was_on = kept->keep_ms > 0;
        if (!was_on && kept->is_for_tables)
            fine = disk_file_put(kept->data, KEEP_MARK, SLICE(""), error, error_len);
        if (!kept->is_for_tables) disk_remove(mark);
        kept->keep_ms = keep_ms;
        if (!was_on)
            kept->source = local_source(kept->store, kept->data, kept->clock, true, keep_hold, kept);
        if (!was_on || kept->from_ms == INT64_MAX) fine = fine && keep_round(kept, error, error_len);
        pthread_mutex_unlock(&kept->lock);
        if (!was_on) ensure(pthread_create(&kept->thread, NULL, keep_run, kept) == 0);
    }
    pthread_mutex_unlock(&kept->turning);
    return fine;
}

/* ---- for readers ---- */

bool kept_read_begin(struct kept *kept, int64_t *at_ms, char *error, size_t error_len)
{
    pthread_mutex_lock(&kept->lock);
    bool fine = kept->keep_ms && keep_round(kept, error, error_len);
    if (!kept->keep_ms) snprintf(error, error_len, "the log is not kept");
    if (fine && (!kept->position.source || kept->from_ms > *at_ms)) {
        snprintf(error, error_len, "what was there at that moment is not kept");
        fine = false;
    }
    if (fine) kept->readers++;
    /* Everything is there up to now, but the target may not say so yet where nothing was written. */
    if (fine && *at_ms > kept->position.until_ms) *at_ms = kept->position.until_ms;
    pthread_mutex_unlock(&kept->lock);
    return fine;
}

void kept_read_end(struct kept *kept)
{
    pthread_mutex_lock(&kept->lock);
    ensure(kept->readers);
    kept->readers--;
    pthread_mutex_unlock(&kept->lock);
}
