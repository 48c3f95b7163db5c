/* Folders that are run in place: a change in one retires the processes that were started from it.
 *
 * Below the top, node_modules, .git and __pycache__ are passed over: they are large, and the last is written
 * by the function's own interpreter. The number of folders is bounded; in what lies beyond, changes are not
 * seen. All of it happens on the pool's thread. */
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/limits.h"
#include "base/log.h"
#include "func/pool.h"

#define WATCHED_EVENTS                                                                                       \
    (IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |  \
     IN_ONLYDIR | IN_EXCL_UNLINK)
#define DEPTH_MAX 32

/* One watched directory. */
struct directory {
    struct ring all;       /* in the watcher's */
    struct ring of_folder; /* in its folder's */
    struct watched_folder *folder;
    int descriptor;
    unsigned depth;
    char path[];
};

/* What is watched for one group. */
struct watched_folder {
    struct ring all; /* in the watcher's */
    struct group *group;
    struct ring directories;
    bool is_lost;    /* the folder itself went away: look again at the next start */
    bool is_changed; /* since the last look */
};

struct watcher {
    int fd; /* -1: the system has none left */
    unsigned directory_count;
    bool is_full;
    struct ring folders, directories;
};

struct watcher *watcher_new(void)
{
    struct watcher *watcher = must_zero(1, sizeof *watcher);
    watcher->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watcher->fd < 0) log_line("changes of functions' folders are not seen: %s", strerror(errno));
    ring_init(&watcher->folders);
    ring_init(&watcher->directories);
    return watcher;
}

static void directory_remove(struct watcher *watcher, struct directory *directory, bool is_watched)
{
    if (is_watched) inotify_rm_watch(watcher->fd, directory->descriptor);
    ring_remove(&directory->all);
    ring_remove(&directory->of_folder);
    watcher->directory_count--;
    free(directory);
}

static void folder_remove(struct watcher *watcher, struct watched_folder *folder)
{
    ring_each(struct directory, directory, of_folder, &folder->directories)
        directory_remove(watcher, directory, true);
    ring_remove(&folder->all);
    folder->group->folder = NULL;
    free(folder);
}

void watcher_free(struct watcher *watcher)
{
    ring_each(struct watched_folder, folder, all, &watcher->folders) folder_remove(watcher, folder);
    if (watcher->fd >= 0) close(watcher->fd);
    free(watcher);
}

int watcher_descriptor(const struct watcher *watcher)
{
    return watcher->fd;
}

void watcher_remove(struct watcher *watcher, struct group *group)
{
    folder_remove(watcher, group->folder);
}

/* ---- beginning to watch ---- */

static bool is_passed_over(const char *name)
{
    return strcmp(name, "node_modules") == 0 || strcmp(name, ".git") == 0 || strcmp(name, "__pycache__") == 0;
}

/* False: it is not to be gone into. The same directory may come again, by another group or an event that overtook the
 * walk. */
static bool directory_add(struct watcher *watcher, struct watched_folder *folder, const char *path,
                          unsigned depth)
{
    if (watcher->directory_count == LIMIT_WATCHED_DIRECTORIES) {
        if (!watcher->is_full) log_line("too many folders to watch for changes; %s and others are not", path);
        watcher->is_full = true;
        return false;
    }
    int descriptor = inotify_add_watch(watcher->fd, path, WATCHED_EVENTS);
    if (descriptor < 0) return false;
    ring_each(struct directory, known, of_folder, &folder->directories)
    {
        if (known->descriptor == descriptor) return false;
    }
    size_t len = strlen(path);
    struct directory *directory = must_zero(1, sizeof *directory + len + 1);
    directory->folder = folder;
    directory->descriptor = descriptor;
    directory->depth = depth;
    memcpy(directory->path, path, len);
    ring_append(&watcher->directories, &directory->all);
    ring_append(&folder->directories, &directory->of_folder);
    watcher->directory_count++;
    return true;
}

/* Each directory is watched before it is read, so that nothing is made in between unseen. */
static void watch_tree(struct watcher *watcher, struct watched_folder *folder, char *path, unsigned depth)
{
    FTS *tree = fts_open((char *const[]){path, NULL}, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
    for (FTSENT *file; tree && (file = fts_read(tree));) {
        if (file->fts_info != FTS_D) continue;
        unsigned level = depth + (unsigned)file->fts_level;
        bool is_left_out = level > DEPTH_MAX || (file->fts_level > 0 && is_passed_over(file->fts_name));
        if (is_left_out || !directory_add(watcher, folder, file->fts_path, level))
            fts_set(tree, file, FTS_SKIP);
    }
    if (tree) fts_close(tree);
}

void watcher_add(struct watcher *watcher, struct group *group)
{
    char path[4096];
    struct slice root = group->function->folder;
    if (watcher->fd < 0 || root.len >= sizeof path) return;
    if (group->folder && !group->folder->is_lost) return;
    if (group->folder) folder_remove(watcher, group->folder);
    struct watched_folder *folder = must_zero(1, sizeof *folder);
    folder->group = group;
    ring_init(&folder->directories);
    ring_append(&watcher->folders, &folder->all);
    group->folder = folder;
    memcpy(path, root.data, root.len);
    path[root.len] = 0;
    watch_tree(watcher, folder, path, 0);
    folder->is_lost = ring_empty(&folder->directories);
}

/* ---- changes ---- */

static void directory_changed(struct watcher *watcher, struct directory *directory,
                              const struct inotify_event *event)
{
    struct watched_folder *folder = directory->folder;
    if (event->mask & IN_IGNORED) { /* the directory is gone, and its watch with it */
        if (directory->depth == 0) folder->is_lost = true;
        directory_remove(watcher, directory, false);
        return;
    }
    if (event->len && is_passed_over(event->name)) return;
    if (directory->depth == 0 && event->mask & (IN_MOVE_SELF | IN_DELETE_SELF)) folder->is_lost = true;
    folder->is_changed = true;
    if (!(event->mask & IN_ISDIR) || !(event->mask & (IN_CREATE | IN_MOVED_TO)) || !event->len) return;
    char child[4096];
    int len = snprintf(child, sizeof child, "%s/%s", directory->path, event->name);
    if (len > 0 && len < (int)sizeof child) watch_tree(watcher, folder, child, directory->depth + 1);
}

static void event_take(struct watcher *watcher, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW) {
        /* The kernel's queue was full: anything may have changed. */
        ring_each(struct watched_folder, folder, all, &watcher->folders) folder->is_changed = true;
        return;
    }
    /* Several groups may watch the same directory: the kernel has one descriptor for it. */
    ring_each(struct directory, directory, all, &watcher->directories) if (directory->descriptor == event->wd)
        directory_changed(watcher, directory, event);
}

void watcher_read(struct watcher *watcher, struct pool *pool)
{
    _Alignas(struct inotify_event) char buffer[16384];
    struct after after = {0};
    ssize_t len;
    while ((len = read(watcher->fd, buffer, sizeof buffer)) > 0) {
        for (char *at = buffer; at < buffer + len;) {
            const struct inotify_event *event = (const struct inotify_event *)(void *)at;
            event_take(watcher, event);
            at += sizeof *event + event->len;
        }
    }
    pool_lock(pool);
    ring_each(struct watched_folder, folder, all, &watcher->folders)
    {
        if (folder->is_changed) {
            stats_add(&folder->group->pool->stats.reloads, 1);
            ring_each(struct instance, instance, of_group, &folder->group->instances)
                instance_retire(instance);
        }
        folder->is_changed = false;
    }
    pool_serve_hungry(pool, &after);
    pool_unlock(pool);
    after_do(pool, &after);
}
