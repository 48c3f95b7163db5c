/* The past of a database that is open: copies by name, and any moment of a log that is kept.
 *
 *   DATA/backups/NAME   a data folder of its own, its tables' files links to those that the database had; NAME.new
 *                       while it is made
 *   DATA/views/ID       the same for as long as a moment is read
 *
 * In memory both are snapshots, which share what has not changed since. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backup/room.h"
#include "base/fail.h"
#include "base/random.h"

#define BACKUPS     "backups"
#define VIEWS       "views"
#define NEW         ".new"
#define CACHE_BYTES (8 << 20)

static bool path_of(const struct backup *backup, struct slice name, char folder[DISK_PATH], char path[DISK_PATH],
                    char *error, size_t error_len)
{
    char text[BACKUP_NAME_BYTES];
    if (!disk_name_is_plain(name) || name.len >= sizeof text) {
        snprintf(error, error_len, "'%.*s' is no name of a copy", SLICE_ARG(name));
        return false;
    }
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(name));
    return disk_path(folder, backup->options.folder, BACKUPS, error, error_len) &&
           disk_path(path, folder, text, error, error_len);
}

/* ---- in memory ---- */

static struct store *store_of(const struct store_snapshot *snapshot)
{
    struct store *store = store_open_memory(NULL);
    store_snapshot_restore(store, snapshot);
    return store;
}

/* With the lock. NULL: there is none. */
static struct backup_snapshot *snapshot_find(struct backup *backup, struct slice name)
{
    for (unsigned i = 0; i < backup->snapshot_count; i++)
        if (slice_equal(slice_of(backup->snapshots[i].name), name)) return &backup->snapshots[i];
    return NULL;
}

static bool snapshot_take(struct backup *backup, struct slice name, char *error, size_t error_len)
{
    pthread_mutex_lock(&backup->lock);
    bool fine = backup->snapshot_count < LIMIT_MEMORY_BACKUPS && name.len < BACKUP_NAME_BYTES;
    if (fine) {
        struct backup_snapshot *snapshot = &backup->snapshots[backup->snapshot_count++];
        snprintf(snapshot->name, sizeof snapshot->name, "%.*s", SLICE_ARG(name));
        snapshot->content = store_snapshot_take(backup->options.store);
    } else {
        snprintf(error, error_len, "there are %d backups in memory already: delete some", LIMIT_MEMORY_BACKUPS);
    }
    pthread_mutex_unlock(&backup->lock);
    return fine;
}

static void snapshot_drop(struct backup *backup, struct slice name)
{
    pthread_mutex_lock(&backup->lock);
    struct backup_snapshot *snapshot = snapshot_find(backup, name);
    if (snapshot) {
        store_snapshot_free(snapshot->content);
        *snapshot = backup->snapshots[--backup->snapshot_count];
    }
    pthread_mutex_unlock(&backup->lock);
}

void snapshots_free(struct backup *backup)
{
    for (unsigned i = 0; i < backup->snapshot_count; i++) store_snapshot_free(backup->snapshots[i].content);
    backup->snapshot_count = 0;
}

/* ---- copies ---- */

/* It gets its name when it is whole and on disk. */
static bool links_take(struct backup *backup, struct slice name, char *error, size_t error_len)
{
    char folder[DISK_PATH], path[DISK_PATH], fresh[DISK_PATH], files[DISK_PATH];
    uint64_t number;
    if (!path_of(backup, name, folder, path, error, error_len)) return false;
    int len = snprintf(fresh, sizeof fresh, "%s" NEW, path);
    bool fine = len > 0 && (size_t)len < sizeof fresh && disk_path(files, fresh, "store", error, error_len) &&
                disk_make_folder(folder, error, error_len);
    if (!fine) return false;
    disk_remove(fresh);
    fine = disk_make_folder(fresh, error, error_len) &&
           store_checkpoint(backup->options.store, files, &number, error, error_len) &&
           store_adopt(fresh, error, error_len) && disk_sync_folder(fresh, error, error_len) &&
           (rename(fresh, path) == 0 || disk_refuse("write", path, error, error_len)) &&
           disk_sync_folder(folder, error, error_len);
    if (!fine) disk_remove(fresh);
    return fine;
}

bool backup_copy_take(struct backup *backup, struct slice name, char *error, size_t error_len)
{
    return backup->is_on_disk ? links_take(backup, name, error, error_len)
                              : snapshot_take(backup, name, error, error_len);
}

bool backup_copy_exists(struct backup *backup, struct slice name)
{
    char folder[DISK_PATH], path[DISK_PATH], error[100];
    if (backup->is_on_disk)
        return path_of(backup, name, folder, path, error, sizeof error) && access(path, F_OK) == 0;
    pthread_mutex_lock(&backup->lock);
    bool is_there = snapshot_find(backup, name) != NULL;
    pthread_mutex_unlock(&backup->lock);
    return is_there;
}

void backup_copy_drop(struct backup *backup, struct slice name)
{
    char folder[DISK_PATH], path[DISK_PATH], error[100];
    if (!backup->is_on_disk)
        snapshot_drop(backup, name);
    else if (path_of(backup, name, folder, path, error, sizeof error))
        disk_remove(path);
}

static void links_sweep(struct backup *backup, backup_copy_keeps *keeps, void *context)
{
    char path[DISK_PATH], error[100];
    DIR *folder = disk_path(path, backup->options.folder, BACKUPS, error, sizeof error) ? opendir(path) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char copy[DISK_PATH];
        if (entry->d_name[0] != '.' && !keeps(context, slice_of(entry->d_name)) &&
            disk_path(copy, path, entry->d_name, error, sizeof error))
            disk_remove(copy);
    }
    if (folder) closedir(folder);
}

void backup_copies_sweep(struct backup *backup, backup_copy_keeps *keeps, void *context)
{
    if (backup->is_on_disk) {
        links_sweep(backup, keeps, context);
        return;
    }
    for (unsigned i = backup->snapshot_count; i-- > 0;) {
        char name[BACKUP_NAME_BYTES];
        pthread_mutex_lock(&backup->lock);
        snprintf(name, sizeof name, "%s", i < backup->snapshot_count ? backup->snapshots[i].name : "");
        pthread_mutex_unlock(&backup->lock);
        if (name[0] && !keeps(context, slice_of(name))) snapshot_drop(backup, slice_of(name));
    }
}

bool backup_past_copy(struct backup *backup, struct slice name, struct backup_past *past, char *error,
                      size_t error_len)
{
    char folder[DISK_PATH], path[DISK_PATH];
    struct store_options options = {.folder = path, .read_only = true, .cache_bytes = CACHE_BYTES};
    *past = (struct backup_past){0};
    if (backup->is_on_disk) {
        if (path_of(backup, name, folder, path, error, error_len))
            past->store = store_open_disk(&options, error, error_len);
        return past->store != NULL;
    }
    pthread_mutex_lock(&backup->lock);
    const struct backup_snapshot *snapshot = snapshot_find(backup, name);
    if (snapshot) past->store = store_of(snapshot->content);
    pthread_mutex_unlock(&backup->lock);
    if (!past->store) snprintf(error, error_len, "the copy '%.*s' is gone", SLICE_ARG(name));
    return past->store != NULL;
}

/* ---- moments ---- */

bool backup_keep(struct backup *backup, int64_t keep_ms, char *error, size_t error_len)
{
    if (atomic_load(&backup->stops)) {
        snprintf(error, error_len, "the server is about to end");
        return false;
    }
    if (backup->is_on_disk)
        return kept_keep(&backup->kept,
                           keep_ms > backup->options.keep_ms ? keep_ms : backup->options.keep_ms, error,
                           error_len);
    if (keep_ms)
        store_history_begin(backup->options.store, backup->options.clock);
    else
        store_history_end(backup->options.store);
    return true;
}

int64_t backup_kept_from(struct backup *backup)
{
    return backup->is_on_disk ? atomic_load(&backup->kept.from_ms)
                              : store_history_from(backup->options.store);
}

void views_clear(const char *data)
{
    char path[DISK_PATH], error[100];
    if (disk_path(path, data, VIEWS, error, sizeof error)) disk_remove(path);
}

/* A folder that is not there yet. */
static bool view_path(const struct backup *backup, char view[DISK_PATH], char *error, size_t error_len)
{
    char views[DISK_PATH], id[17];
    struct random random;
    random_seed_from_system(&random);
    hex_put(id, random_next(&random));
    return disk_path(views, backup->options.folder, VIEWS, error, error_len) &&
           disk_path(view, views, id, error, error_len) && disk_make_folder(views, error, error_len);
}

static bool view_open(struct backup *backup, int64_t at_ms, struct backup_past *past, char *error,
                      size_t error_len)
{
    char kept[DISK_PATH], view[DISK_PATH];
    struct backup_restored restored;
    if (!disk_path(kept, backup->options.folder, KEEP_NAME, error, error_len) ||
        !view_path(backup, view, error, error_len))
        return false;
    past->store = backup_view_open(kept, view, at_ms, &restored, error, error_len);
    if (!past->store) return false;
    ensure((past->folder = strdup(view)) != NULL);
    return true;
}

bool backup_past_moment(struct backup *backup, int64_t at_ms, struct backup_past *past, char *error,
                        size_t error_len)
{
    *past = (struct backup_past){0};
    if (backup->is_on_disk) {
        if (!kept_read_begin(&backup->kept, &at_ms, error, error_len)) return false;
        bool fine = view_open(backup, at_ms, past, error, error_len);
        kept_read_end(&backup->kept);
        return fine;
    }
    struct store_snapshot *snapshot = store_history_at(backup->options.store, at_ms);
    if (!snapshot) {
        snprintf(error, error_len, "what was there at that moment is not kept");
        return false;
    }
    past->store = store_of(snapshot);
    store_snapshot_free(snapshot);
    return true;
}

bool backup_scratch_open(struct backup *backup, struct backup_past *scratch, char *error, size_t error_len)
{
    char view[DISK_PATH];
    struct store_options options = {.folder = view, .create = true, .cache_bytes = CACHE_BYTES};
    *scratch = (struct backup_past){0};
    if (!backup->is_on_disk) {
        scratch->store = store_open_memory(NULL);
        return true;
    }
    if (!view_path(backup, view, error, error_len)) return false;
    scratch->store = store_open_disk(&options, error, error_len);
    if (!scratch->store) return false;
    ensure((scratch->folder = strdup(view)) != NULL);
    return true;
}

bool backup_past_log(struct backup *backup, int64_t from_ms, int64_t to_ms, store_log_visitor visitor,
                     void *context, char *error, size_t error_len)
{
    if (backup->is_on_disk) {
        char path[DISK_PATH];
        int64_t before_ms = from_ms - 1;
        if (!disk_path(path, backup->options.folder, KEEP_NAME, error, error_len) ||
            !kept_read_begin(&backup->kept, &before_ms, error, error_len))
            return false;
        bool fine = log_walk(path, from_ms, to_ms, visitor, context, error, error_len);
        kept_read_end(&backup->kept);
        return fine;
    }
    if (store_history_read(backup->options.store, from_ms, to_ms, visitor, context) == STORE_OK) return true;
    snprintf(error, error_len, "what was written then is not kept");
    return false;
}

void backup_past_close(struct backup_past *past)
{
    if (past->store) store_close(past->store);
    if (past->folder) disk_remove(past->folder);
    free(past->folder);
    *past = (struct backup_past){0};
}
