/* Where a process keeps its temporary files: in a /tmp of its own where that can be had, else in a folder
 * that TMPDIR names. Both hold as much as the function's EphemeralStorage says and go with the process. And
 * where it finds its layers: at /opt where that can be had, else in the folder that QUIPU_LAYERS names.
 *
 * Its own /tmp or /opt hides the machine's, so it is not for a process that needs something from there: code,
 * the runtime's program or an interpreter below it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "func/archive.h"
#include "func/pool.h"

#define SCRIPT_BYTES 4096 /* of an interpreter's start: shims are short */

/* Both may be links: some systems have their /opt below /var. */
static bool is_below(const char *path, const char *folder)
{
    char absolute[PATH_MAX], above[PATH_MAX];
    if (!path || !realpath(path, absolute) || !realpath(folder, above)) return false;
    size_t len = strlen(above);
    return strncmp(absolute, above, len) == 0 && (!absolute[len] || absolute[len] == '/');
}

static bool is_any_below(const char *const *paths, const char *folder)
{
    while (*paths && !is_below(*paths, folder)) paths++;
    return *paths != NULL;
}

/* A script that starts the interpreter of another folder ("exec /opt/node/bin/node") names it. A function's own
 * bootstrap that does so means its layers. */
static bool is_script_naming(const char *path, const char *folder)
{
    char start[SCRIPT_BYTES];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = file < 0 ? 0 : read(file, start, sizeof start);
    if (file >= 0) close(file);
    struct slice text = {start, got > 0 ? (size_t)got : 0};
    return slice_starts(text, SLICE("#!")) && slice_contains(text, slice_of(folder));
}

/* Whether the program cannot run without what the machine has below the folder. */
static bool program_needs(const struct func *func, const struct sandbox_program *program, const char *folder)
{
    return is_below(program->folder, folder) || is_below(func->options.folder, folder) ||
           is_any_below(program->arguments, folder) || is_below(func->options.node_modules, folder);
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

static void choose_opt(struct instance *instance, struct sandbox_program *program, struct arena *arena)
{
    struct pool *pool = instance->pool;
    const struct func *func = pool->func;
    if (!instance->function->layers.len) return;
    bool can_mount = sandbox_has_own_opt(func->options.sandbox);
    bool is_ours = runtime_is_concurrent(instance->function->runtime); /* an interpreter of the machine runs it */
    bool is_wrapped = function_variable(instance->function, SLICE(WRAPPER_VARIABLE)).len != 0;
    if (can_mount && !program_needs(func, program, "/opt") &&
        !(is_ours && is_script_naming(program->arguments[is_wrapped], "/opt/"))) {
        program->opt = arena_copy(arena, instance->function->layers).data;
        say_once(pool, &pool->has_said_opt, "functions find their layers at /opt");
        return;
    }
    say_once(pool, &pool->has_said_layers,
             can_mount ? "functions whose code or runtime lies below /opt see the machine's /opt; "
                         "QUIPU_LAYERS names the folder of their layers"
                       : "functions cannot find their layers at /opt here (no mount namespaces, or no folder "
                         "/opt); QUIPU_LAYERS names the folder of their layers");
}

struct slice files_folder(const struct func *func, struct slice arn, struct arena *arena)
{
    char absolute[PATH_MAX];
    const char *slash = arn.len ? memrchr(arn.data, '/', arn.len) : NULL;
    if (arn.len && arn.data[0] == '/') return arena_copy(arena, arn);
    if (!slash || !realpath(func->options.folder, absolute)) return SLICE_NONE;
    struct slice name = slice_from(arn, (size_t)(slash + 1 - arn.data));
    return arena_printf(arena, "%s/files/%.*s", absolute, SLICE_ARG(name));
}

/* A folder of the server's own is made by the sandbox when it is first needed, for the user of the programs. */
static void choose_files(struct instance *instance, struct sandbox_program *program)
{
    const struct function *function = instance->function;
    char above[PATH_MAX];
    if (!function->files.len || !sandbox_has_own_tmp(instance->pool->func->options.sandbox)) return;
    const char *slash = strrchr(function->files.data, '/');
    snprintf(above, sizeof above, "%.*s", (int)(slash - function->files.data), function->files.data);
    size_t len = strlen(above);
    bool is_own = len > 6 && strcmp(above + len - 6, "/files") == 0;
    if (is_own && mkdir(above, 0711) == 0) chmod(above, 0711);
    program->files = function->files.data;
    program->files_at = function->files_at.data;
}

void instance_choose_storage(struct instance *instance, struct sandbox_program *program, struct arena *arena)
{
    struct pool *pool = instance->pool;
    struct func *func = pool->func;
    bool can_mount = sandbox_has_own_tmp(func->options.sandbox);
    choose_opt(instance, program, arena);
    choose_files(instance, program);
    program->storage_bytes = (uint64_t)instance->function->storage_mb << 20;
    program->has_own_tmp = can_mount && !program_needs(func, program, "/tmp");
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
