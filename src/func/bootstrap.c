/* How a runtime's name becomes a command: the interpreter on this machine and our small program for it.
 *
 * The programs (bootstrap/node.mjs, bootstrap/python.py) are part of the binary and are written into
 * FOLDER/runtime when the server starts: whole or not at all, and only where they differ, so that processes
 * of another server on the same folder never see half of one. Interpreters are looked for on PATH at each
 * start of a process: it costs microseconds, and one that was installed or replaced meanwhile is found. That
 * an interpreter is too old is told by the program itself, as an error of its start.
 *
 * Called by the pool when it starts a process, by the registry to check names, by func_open. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "func/internal.h"

#define NODE_HEAP_PERCENT 90 /* of a function's memory, as Lambda has it: the rest is V8's own */
#define USUAL_PATH        "/usr/local/bin:/usr/bin:/bin"

/* The bytes of a file of the repository, from NAME_start to NAME_end. */
#define EMBED(name, path)                                                                                    \
    __asm__(".pushsection .rodata\n"                                                                         \
            ".hidden " #name "_start\n.globl " #name "_start\n" #name "_start:\n"                            \
            ".incbin \"" path "\"\n"                                                                         \
            ".hidden " #name "_end\n.globl " #name "_end\n" #name "_end:\n"                                  \
            ".popsection\n");                                                                                \
    extern const char name##_start[], name##_end[]

EMBED(bootstrap_node, "src/func/bootstrap/node.mjs");
EMBED(bootstrap_python, "src/func/bootstrap/python.py");

/* A family of runtimes, by how their names begin. */
struct language {
    struct slice prefix;
    const char *name;                /* of the language, for people */
    const char *file;                /* in FOLDER/runtime; NULL: the function brings its own bootstrap */
    const char *start, *end;         /* of the file */
    const char *const *interpreters; /* in the order of preference, behind the runtime's own name */
    bool is_offered;
};

static const char *const node_names[] = {"node", "nodejs", NULL};
static const char *const python_names[] = {"python3", NULL};

static const struct language languages[] = {
    {SLICE("provided"), "a bootstrap", NULL, NULL, NULL, NULL, true},
    {SLICE("nodejs"), "Node.js", "node.mjs", bootstrap_node_start, bootstrap_node_end, node_names, true},
    {SLICE("python3"), "Python", "python.py", bootstrap_python_start, bootstrap_python_end, python_names,
     true},
    {SLICE("java"), "Java", NULL, NULL, NULL, NULL, false},
    {SLICE("dotnet"), ".NET", NULL, NULL, NULL, NULL, false},
    {SLICE("ruby"), "Ruby", NULL, NULL, NULL, NULL, false},
    {SLICE("go1"), "Go", NULL, NULL, NULL, NULL, false},
};
#define LANGUAGES (sizeof languages / sizeof *languages)

/* ---- names ---- */

/* What follows the prefix is a version: digits, dots and letters. */
static bool is_version(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && c != '.') return false;
    }
    return true;
}

static const struct language *language_of(struct slice runtime)
{
    for (size_t i = 0; i < LANGUAGES; i++) {
        struct slice prefix = languages[i].prefix;
        if (slice_starts(runtime, prefix) && is_version(slice_from(runtime, prefix.len)))
            return &languages[i];
    }
    return NULL;
}

bool runtime_is_known(struct slice runtime)
{
    const struct language *language = language_of(runtime);
    return language && language->is_offered;
}

bool runtime_is_named(struct slice runtime)
{
    return language_of(runtime) != NULL;
}

bool runtime_is_concurrent(struct slice runtime)
{
    const struct language *language = language_of(runtime);
    return language && language->is_offered && language->file; /* whose program is ours */
}

/* ---- commands ---- */

static bool is_script(const char *path)
{
    char start[2] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false; /* who may run it need not be able to read it */
    ssize_t got = read(file, start, sizeof start);
    close(file);
    return got == sizeof start && start[0] == '#' && start[1] == '!';
}

/* The file of that name on PATH that can be run, and that is no script unless they will do; NULL data when
 * there is none. */
static struct slice find_command(struct arena *arena, struct slice name, bool scripts_will_do)
{
    const char *path = getenv("PATH");
    if (!path || !*path) path = USUAL_PATH;
    for (const char *end;; path = end + 1) {
        end = path + strcspn(path, ":");
        struct stat status;
        if (*path == '/') { /* others would depend on where the server was started */
            struct slice file = arena_printf(arena, "%.*s/%.*s", (int)(end - path), path, SLICE_ARG(name));
            if (access(file.data, X_OK) == 0 && stat(file.data, &status) == 0 && S_ISREG(status.st_mode) &&
                (scripts_will_do || !is_script(file.data)))
                return file;
        }
        if (!*end) return SLICE_NONE;
    }
}

/* FOLDER may be relative to where the server was started; the process is started elsewhere. */
static const char *runtime_file(struct arena *arena, const char *folder, const char *file)
{
    char absolute[PATH_MAX];
    if (!realpath(folder, absolute)) return NULL;
    return arena_printf(arena, "%s/runtime/%s", absolute, file).data;
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* The function's own bootstrap, else that of its layers: a layer may be a whole runtime, as on Lambda. */
static const char *const *provided_command(const struct function *function, struct arena *arena, char *error,
                                           size_t error_len)
{
    const char **arguments = arena_array(arena, const char *, 2);
    const char *own = arena_printf(arena, "%.*s/bootstrap", SLICE_ARG(function->folder)).data;
    const char *shared = "";
    if (function->layers.len)
        shared = arena_printf(arena, "%.*s/bootstrap", SLICE_ARG(function->layers)).data;
    arguments[0] = !is_file(own) && is_file(shared) ? shared : own;
    arguments[1] = NULL;
    if (!is_file(arguments[0])) {
        snprintf(error, error_len, "Couldn't find valid bootstrap(s): [%s%s%s]", own, *shared ? " " : "",
                 shared);
        return NULL;
    }
    if (access(arguments[0], X_OK) != 0) {
        bool is_in_place = function->in_place && arguments[0] == own;
        snprintf(error, error_len, "bootstrap is there but not executable: chmod +x %s",
                 is_in_place ? own : "bootstrap, then make the archive again");
        return NULL;
    }
    return arguments;
}

/* A program that is given the command and runs it, mostly one of a layer: as the function sees it, below /opt.
 * NULL and a sentence: it cannot be run. */
static const char *wrapper_file(const struct function *function, struct slice wrapper, struct arena *arena,
                                char *error, size_t error_len)
{
    bool is_of_layer = function->layers.len && slice_starts(wrapper, SLICE("/opt/"));
    const char *file = is_of_layer ? arena_printf(arena, "%.*s%.*s", SLICE_ARG(function->layers),
                                                  SLICE_ARG(slice_from(wrapper, 4)))
                                         .data
                                   : arena_copy(arena, wrapper).data;
    errno = ENOENT;
    if (*file == '/' && is_file(file) && access(file, X_OK) == 0) return file;
    snprintf(error, error_len, "AWS_LAMBDA_EXEC_WRAPPER cannot be run: %.*s: %s", SLICE_ARG(wrapper),
             *file == '/' ? strerror(errno) : "it should be an absolute path");
    return NULL;
}

static const char *const *interpreter_command(const struct language *language, const char *folder,
                                              const struct function *function, struct arena *arena,
                                              char *error, size_t error_len)
{
    const char **arguments = arena_array(arena, const char *, 5);
    struct slice wrapper = function_variable(function, SLICE(WRAPPER_VARIABLE));
    /* The interpreter of just that version ("python3.11") before any other of the language. Version managers
     * (pyenv, asdf) put scripts of every version that they know there, and these fail but for the one that is
     * switched on, which is the one that answers to the language's plain name. */
    struct slice interpreter = find_command(arena, function->runtime, false);
    for (const char *const *name = language->interpreters; *name && !interpreter.data; name++)
        interpreter = find_command(arena, slice_of(*name), true);
    const char *file = runtime_file(arena, folder, language->file);
    size_t count = 0;
    if (!interpreter.data || !file) {
        if (!file)
            snprintf(error, error_len, "the folder %s is gone: %s", folder, strerror(errno));
        else
            snprintf(error, error_len, "There is no %s on this machine: %.*s needs '%s' on the server's PATH",
                     language->name, SLICE_ARG(function->runtime), language->interpreters[0]);
        return NULL;
    }
    if (wrapper.len && !(arguments[count++] = wrapper_file(function, wrapper, arena, error, error_len)))
        return NULL;
    arguments[count++] = interpreter.data;
    if (language->interpreters == node_names)
        arguments[count++] = arena_printf(arena, "--max-old-space-size=%u",
                                          function->memory_mb * NODE_HEAP_PERCENT / 100)
                                 .data;
    arguments[count++] = file;
    arguments[count] = NULL;
    return arguments;
}

static bool folder_is_there(struct slice folder, bool is_unpacked, struct arena *arena, char *error,
                            size_t error_len)
{
    if (access(arena_copy(arena, folder).data, X_OK) == 0) return true;
    snprintf(error, error_len, "The folder %.*s cannot be entered: %s%s", SLICE_ARG(folder), strerror(errno),
             is_unpacked ? "; the server unpacks it again when it is restarted" : "");
    return false;
}

const char *const *bootstrap_command(struct func *func, const struct function *function, struct arena *arena,
                                     char *error, size_t error_len)
{
    const struct language *language = language_of(function->runtime);
    if (!language || !language->is_offered) {
        snprintf(
            error, error_len,
            "%.*s functions cannot run here: the runtimes are nodejs*, python3* and provided*, for which the "
            "function brings an executable file 'bootstrap' in any language",
            SLICE_ARG(function->runtime));
        return NULL;
    }
    if (!folder_is_there(function->folder, !function->in_place, arena, error, error_len) ||
        (function->layers.len && !folder_is_there(function->layers, true, arena, error, error_len)))
        return NULL;
    if (!language->file) return provided_command(function, arena, error, error_len);
    return interpreter_command(language, func->options.folder, function, arena, error, error_len);
}

/* ---- files ---- */

static bool file_is(const char *path, struct slice bytes)
{
    char room[4096];
    size_t at = 0;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    for (size_t got; (got = fread(room, 1, sizeof room, file)) > 0; at += got)
        if (got > bytes.len - at || memcmp(room, bytes.data + at, got) != 0) break;
    bool is_same = feof(file) && at == bytes.len;
    fclose(file);
    return is_same;
}

static bool file_put(const char *path, struct slice bytes)
{
    FILE *file = fopen(path, "we");
    if (!file) return false;
    bool is_written = fwrite(bytes.data, 1, bytes.len, file) == bytes.len;
    return (fclose(file) == 0) && is_written;
}

static bool install_one(const char *folder, const struct language *language)
{
    struct slice bytes = {language->start, (size_t)(language->end - language->start)};
    char path[PATH_MAX], fresh[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/%s", folder, language->file);
    int fresh_len = snprintf(fresh, sizeof fresh, "%s/%s.%ld", folder, language->file, (long)getpid());
    errno = ENAMETOOLONG;
    if (len >= (int)sizeof path || fresh_len >= (int)sizeof fresh) return false;
    if (file_is(path, bytes)) return true;
    if (file_put(fresh, bytes) && rename(fresh, path) == 0) return true;
    int failure = errno;
    unlink(fresh);
    errno = failure;
    return false;
}

bool bootstrap_install(const char *folder, char *error, size_t error_len)
{
    char path[PATH_MAX];
    errno = ENAMETOOLONG;
    bool is_fine = snprintf(path, sizeof path, "%s/runtime", folder) < (int)sizeof path &&
                   (mkdir(path, 0777) == 0 || errno == EEXIST);
    for (size_t i = 0; i < LANGUAGES && is_fine; i++)
        if (languages[i].file) is_fine = install_one(path, &languages[i]);
    if (!is_fine)
        snprintf(error, error_len, "the runtimes' programs cannot be written to %s/runtime: %s", folder,
                 strerror(errno));
    return is_fine;
}
