/* Checkpoints and followers of a server, and up to where the log is held for them. */
#include "backup/followers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/print.h"
#include "base/random.h"
#include "base/stats.h"

void followers_init(struct followers *followers, struct store *store, const struct clock *clock,
                    const char *data)
{
    char error[100];
    *followers = (struct followers){.store = store, .clock = clock, .bytes_max = LIMIT_BACKUP_LOG_BYTES};
    pthread_mutex_init(&followers->lock, NULL);
    ensure(disk_path(followers->journal, data, "journal", error, sizeof error));
}

/* With the last batch that a follower has: it tells whether the follower's log goes on there. */
static void hold(struct followers *followers)
{
    uint64_t from = UINT64_MAX;
    for (size_t i = 0; i < LIMIT_BACKUP_FOLLOWERS; i++)
        if (followers->all[i].is_held && followers->all[i].next - 1 < from) from = followers->all[i].next - 1;
    for (size_t i = 0; i < LIMIT_BACKUP_CHECKPOINTS; i++) {
        const struct checkpoint *checkpoint = &followers->checkpoints[i];
        if (checkpoint->id[0] && !checkpoint->is_let_go && checkpoint->base.number < from)
            from = checkpoint->base.number;
    }
    store_log_keep_from(followers->store, from ? from : 1);
}

/* ---- followers ---- */

static struct follower *follower_find(struct followers *followers, const char *name)
{
    for (size_t i = 0; i < LIMIT_BACKUP_FOLLOWERS; i++)
        if (strcmp(followers->all[i].name, name) == 0) return &followers->all[i];
    return NULL;
}

bool follower_has(struct followers *followers, const char *name, uint64_t next)
{
    pthread_mutex_lock(&followers->lock);
    struct follower *follower = follower_find(followers, name);
    if (!follower) {
        follower = follower_find(followers, "");
        if (follower) snprintf(follower->name, sizeof follower->name, "%s", name);
        if (follower) follower->until_ms = clock_now_ms(followers->clock);
    }
    if (follower) {
        if (follower->sent_ms && follower->place.cursor.number == next)
            follower->until_ms = follower->sent_ms;
        follower->next = next;
        follower->asked_us = monotonic_us();
        follower->is_held = true;
        hold(followers);
    }
    pthread_mutex_unlock(&followers->lock);
    return follower != NULL;
}

struct log_place follower_place(struct followers *followers, const char *name, uint64_t from)
{
    pthread_mutex_lock(&followers->lock);
    struct follower *follower = follower_find(followers, name);
    struct log_place place = {.cursor.number = from};
    if (name[0] && follower && follower->place.cursor.number == from) place = follower->place;
    pthread_mutex_unlock(&followers->lock);
    return place;
}

void follower_sent(struct followers *followers, const char *name, const struct log_place *place,
                   int64_t until_ms)
{
    pthread_mutex_lock(&followers->lock);
    struct follower *follower = follower_find(followers, name);
    if (name[0] && follower) {
        follower->place = *place;
        follower->sent_ms = until_ms;
    }
    pthread_mutex_unlock(&followers->lock);
}

uint64_t followers_newest(struct followers *followers)
{
    pthread_mutex_lock(&followers->lock);
    uint64_t newest = followers->newest;
    pthread_mutex_unlock(&followers->lock);
    return newest;
}

void follower_forget(struct followers *followers, const char *name)
{
    pthread_mutex_lock(&followers->lock);
    struct follower *follower = follower_find(followers, name);
    if (name[0] && follower) *follower = (struct follower){0};
    hold(followers);
    pthread_mutex_unlock(&followers->lock);
}

/* ---- checkpoints ---- */

static struct checkpoint *checkpoint_of(struct followers *followers, struct slice id)
{
    for (size_t i = 0; i < LIMIT_BACKUP_CHECKPOINTS; i++) {
        struct checkpoint *checkpoint = &followers->checkpoints[i];
        if (slice_equal(slice_of(checkpoint->id), id) && (!id.len || checkpoint->is_made)) return checkpoint;
    }
    return NULL;
}

/* With the lock, which is left for as long as files are removed. */
static void remove_checkpoint(struct followers *followers, struct checkpoint *checkpoint)
{
    char path[DISK_PATH];
    strcpy(path, checkpoint->path);
    backup_base_free(&checkpoint->base);
    *checkpoint = (struct checkpoint){0};
    hold(followers);
    pthread_mutex_unlock(&followers->lock);
    disk_remove(path);
    pthread_mutex_lock(&followers->lock);
}

/* A free place; where there is none, the one of a checkpoint that nobody has read from for a while: whoever made it was
 * killed, as it seems. NULL: all are in use. */
static struct checkpoint *place_find(struct followers *followers)
{
    struct checkpoint *stalest = NULL, *place = checkpoint_of(followers, SLICE(""));
    int64_t before_us = monotonic_us() - LIMIT_BACKUP_STALE_MS * 1000LL;
    for (size_t i = 0; !place && i < LIMIT_BACKUP_CHECKPOINTS; i++) {
        struct checkpoint *one = &followers->checkpoints[i];
        if (one->is_made && one->used_us < before_us && (!stalest || one->used_us < stalest->used_us))
            stalest = one;
    }
    if (!stalest) return place;
    log_line("a backup that nobody has gone on with for a minute gives way to another one");
    remove_checkpoint(followers, stalest);
    return checkpoint_of(followers, SLICE(""));
}

bool checkpoint_add(struct followers *followers, const char *target, const char *data, struct buf *out,
                    char *error, size_t error_len)
{
    struct random random;
    struct backup_base base;
    char path[DISK_PATH];
    pthread_mutex_lock(&followers->lock);
    for (size_t i = 0; target[0] && i < LIMIT_BACKUP_CHECKPOINTS; i++) {
        struct checkpoint *earlier = &followers->checkpoints[i];
        if (earlier->is_made && strcmp(earlier->target, target) == 0) remove_checkpoint(followers, earlier);
    }
    struct checkpoint *checkpoint = place_find(followers);
    if (checkpoint) {
        random_seed_from_system(&random);
        hex_put(checkpoint->id, random_next(&random));
        strcpy(checkpoint->target, target);
        checkpoint->base.number = store_log_synced(followers->store);
        hold(followers);
    }
    pthread_mutex_unlock(&followers->lock);
    if (!checkpoint) {
        snprintf(error, error_len,
                 "%d backups are being made already; wait until one of them has ended; one that was killed makes "
                 "room within a minute",
                 LIMIT_BACKUP_CHECKPOINTS);
        return false;
    }
    bool made = checkpoint_make(followers->store, data, checkpoint->id, followers->clock, &base, path, error,
                                error_len);
    pthread_mutex_lock(&followers->lock);
    if (made) {
        checkpoint->base = base;
        strcpy(checkpoint->path, path);
        checkpoint->used_us = monotonic_us();
        checkpoint->is_made = true;
        if (base.number > followers->newest) followers->newest = base.number;
        base_put(out, &base, checkpoint->id);
    } else {
        *checkpoint = (struct checkpoint){0};
        hold(followers);
    }
    pthread_mutex_unlock(&followers->lock);
    return made;
}

bool checkpoint_find(struct followers *followers, struct slice id, struct slice name, char path[DISK_PATH],
                     char *error, size_t error_len)
{
    bool found = false;
    pthread_mutex_lock(&followers->lock);
    struct checkpoint *checkpoint = id.len ? checkpoint_of(followers, id) : NULL;
    snprintf(error, error_len, "%s",
             checkpoint ? "there is no such file"
                        : "there is no such checkpoint (any more): the server was started anew, or nobody "
                          "had read from it for a minute or more; make the backup again");
    for (size_t i = 0; checkpoint && !found && i < checkpoint->base.count; i++) {
        found = slice_equal(slice_of(checkpoint->base.files[i].name), name);
        if (found)
            found = disk_path(path, checkpoint->path, checkpoint->base.files[i].name, error, error_len);
    }
    if (checkpoint) checkpoint->used_us = monotonic_us();
    pthread_mutex_unlock(&followers->lock);
    return found;
}

bool checkpoint_end(struct followers *followers, struct slice id)
{
    pthread_mutex_lock(&followers->lock);
    struct checkpoint *checkpoint = id.len ? checkpoint_of(followers, id) : NULL;
    if (checkpoint) remove_checkpoint(followers, checkpoint);
    pthread_mutex_unlock(&followers->lock);
    return checkpoint != NULL;
}

void followers_free(struct followers *followers)
{
    pthread_mutex_lock(&followers->lock);
    for (size_t i = 0; i < LIMIT_BACKUP_CHECKPOINTS; i++)
        if (followers->checkpoints[i].is_made) remove_checkpoint(followers, &followers->checkpoints[i]);
    pthread_mutex_unlock(&followers->lock);
    pthread_mutex_destroy(&followers->lock);
}

/* ---- now and then ---- */

static uint64_t log_bytes(const struct followers *followers)
{
    uint64_t bytes = 0;
    DIR *folder = opendir(followers->journal);
    struct stat status;
    if (!folder) return 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (fstatat(dirfd(folder), entry->d_name, &status, 0) == 0 && S_ISREG(status.st_mode))
            bytes += (uint64_t)status.st_size;
    closedir(folder);
    return bytes;
}

/* The one that is farthest behind is not waited for any more: a follower, or a copy that is being made. It is served if
 * it comes while the log is still there. */
static void let_go(struct followers *followers)
{
    struct follower *last = NULL;
    for (size_t i = 0; i < LIMIT_BACKUP_FOLLOWERS; i++) {
        struct follower *follower = &followers->all[i];
        if (follower->is_held && (!last || follower->next < last->next)) last = follower;
    }
    struct checkpoint *copy = NULL;
    for (size_t i = 0; i < LIMIT_BACKUP_CHECKPOINTS; i++) {
        struct checkpoint *one = &followers->checkpoints[i];
        if (one->is_made && !one->is_let_go && (!copy || one->base.number < copy->base.number)) copy = one;
    }
    if (copy && last && last->next <= copy->base.number) copy = NULL;
    if (!copy && !last) return;
    uint64_t next = copy ? copy->base.number + 1 : last->next;
    if (copy)
        copy->is_let_go = true;
    else
        last->is_held = false;
    log_line(
        "the log is not held any longer for the backup '%s', which is %s behind: it has grown to %llu MB",
        copy ? copy->target : last->name, counted(store_log_synced(followers->store) + 1 - next, "batch").text,
        (unsigned long long)(followers->bytes_max >> 20));
}

void followers_tidy(struct followers *followers)
{
    int64_t now_us = monotonic_us();
    bool is_long = log_bytes(followers) > followers->bytes_max;
    pthread_mutex_lock(&followers->lock);
    for (size_t i = 0; i < LIMIT_BACKUP_CHECKPOINTS; i++) {
        struct checkpoint *checkpoint = &followers->checkpoints[i];
        if (checkpoint->is_made && now_us - checkpoint->used_us > LIMIT_BACKUP_IDLE_MS * 1000LL)
            remove_checkpoint(followers, checkpoint);
    }
    for (size_t i = 0; i < LIMIT_BACKUP_FOLLOWERS; i++) {
        struct follower *follower = &followers->all[i];
        if (follower->name[0] && now_us - follower->asked_us > LIMIT_BACKUP_FOLLOWER_MS * 1000)
            *follower = (struct follower){0};
    }
    if (is_long) let_go(followers);
    hold(followers);
    pthread_mutex_unlock(&followers->lock);
}

void followers_put_metrics(struct followers *followers, struct buf *out)
{
    uint64_t synced = store_log_synced(followers->store);
    int64_t now_ms = clock_now_ms(followers->clock);
    pthread_mutex_lock(&followers->lock);
    stats_put_head(out, "quipu_backup_lag_batches", "gauge",
                   "Batches of the log that a follower has not got yet.");
    for (size_t i = 0; i < LIMIT_BACKUP_FOLLOWERS; i++) {
        const struct follower *follower = &followers->all[i];
        if (follower->name[0])
            buf_printf(out, "quipu_backup_lag_batches{follower=\"%s\"} %llu\n", follower->name,
                       (unsigned long long)(synced >= follower->next ? synced - follower->next + 1 : 0));
    }
    stats_put_head(out, "quipu_backup_lag_seconds", "gauge",
                   "Seconds since everything that was written was in a follower's hands.");
    for (size_t i = 0; i < LIMIT_BACKUP_FOLLOWERS; i++) {
        const struct follower *follower = &followers->all[i];
        int64_t lag_ms = synced >= follower->next && now_ms > follower->until_ms ? now_ms - follower->until_ms
                                                                                 : 0;
        if (follower->name[0])
            buf_printf(out, "quipu_backup_lag_seconds{follower=\"%s\"} %lld.%03d\n", follower->name,
                       (long long)(lag_ms / 1000), (int)(lag_ms % 1000));
    }
    pthread_mutex_unlock(&followers->lock);
}
