/* Where a process keeps its temporary files: in a /tmp of its own where that can be had, else in a folder
 * that TMPDIR names. Both hold as much as the function's EphemeralStorage says and go with the process.
 *
 * Its own /tmp hides the machine's, so it is not for a process that needs something from there: code, the
 * runtime's program or an interpreter below /tmp. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "func/archive.h"
#include "func/pool.h"

static bool is_below_tmp(const char *path)
{
    char absolute[PATH_MAX];
    if (!path || !realpath(path, absolute)) return false;
    struct slice text = slice_of(absolute);
    return slice_equal(text, SLICE("/tmp")) || slice_starts(text, SLICE("/tmp/"));
}

/* FOLDER/tmp, absolute; NULL data when there is none. */
static struct slice temporary_root(const struct func *func, struct arena *arena)
{
    char absolute[PATH_MAX];
    if (!realpath(func->options.folder, absolute)) return SLICE_NONE;
    struct slice root = arena_printf(arena, "%s/tmp", absolute);
    return mkdir(root.data, 0711) == 0 || errno == EEXIST ? root : SLICE_NONE;
}

static void say_once(struct pool *pool, bool *said, const char *sentence)
{
    pool_lock(pool);
    bool is_said = *said;
    *said = true;
    pool_unlock(pool);
    if (!is_said) log_line("%s", sentence);
}

void instance_choose_storage(struct instance *instance, struct sandbox_program *program, struct arena *arena)
{
    struct pool *pool = instance->pool;
    struct func *func = pool->func;
    bool can_mount = sandbox_has_own_tmp(func->options.sandbox);
    program->storage_bytes = (uint64_t)instance->function->storage_mb << 20;
    program->has_own_tmp = can_mount && !is_below_tmp(program->folder) &&
                           !is_below_tmp(func->options.folder) && !is_below_tmp(program->arguments[0]) &&
                           !is_below_tmp(func->options.node_modules);
    if (program->has_own_tmp) {
        say_once(pool, &pool->has_said_own_tmp,
                 "each process of a function has a /tmp of its own, in memory");
        return;
    }
    struct slice root = temporary_root(func, arena);
    if (root.data)
        program->temporary = arena_printf(arena, "%.*s/%ld-%016llx", SLICE_ARG(root), (long)getpid(),
                                          (unsigned long long)instance->stream)
                                 .data;
    say_once(pool, &pool->has_said_folder,
             can_mount ? "functions whose code or runtime lies below /tmp share the machine's /tmp; each of "
                         "their processes has a folder of its own, which TMPDIR names"
                       : "functions cannot have a /tmp of their own here (no mount namespaces); each process "
                         "has a folder of its own, which TMPDIR names");
}

void storage_sweep(const struct func *func)
{
    struct arena arena = {0};
    struct slice root = temporary_root(func, &arena);
    DIR *folder = root.data ? opendir(root.data) : NULL;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (pid <= 0 || *end != '-' || (kill((pid_t)pid, 0) == 0 && pid != getpid())) continue;
        archive_remove(arena_printf(&arena, "%.*s/%s", SLICE_ARG(root), entry->d_name).data);
    }
    if (folder) closedir(folder);
    arena_free(&arena);
}
