/* A library for LD_PRELOAD: records what a process does to the files below one folder (trace.h), and lets calls fail.
 *
 * Each call that changes files is made and recorded with one lock held, so the trace is one order in which they
 * happened. What a mapped file is written with cannot be seen; neither the store nor RocksDB does that, and a trace in
 * which somebody did says so.
 *
 * It calls the system itself, not libc's functions of the same names, which are these. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cut/trace.h"

#define SHOWN       __attribute__((visibility("default")))
#define FILES_MOST  65536
#define TRACE_FD    900 /* about: out of the way of descriptors that are counted */
#define PIECES_MOST 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_bytes;
static int trace = -1;
static pid_t process;
static bool is_recorded[FILES_MOST]; /* by descriptor */
static bool is_synced[FILES_MOST];   /* by O_DSYNC or O_SYNC */

/* ---- faults ---- */

enum call { CALL_READ, CALL_WRITE, CALL_SYNC, CALL_SIZE, CALL_NAME, CALL_OPEN, CALLS };
static const char *const call_names[CALLS] = {"read", "write", "sync", "size", "name", "open"};
static struct {
    enum call call;
    unsigned long number;
    int failure; /* 0: the process ends */
    bool goes_on;
} fault = {.call = CALLS};
static unsigned long calls[CALLS];

_Noreturn static void end_process(int status)
{
    for (;;) syscall(SYS_exit_group, status);
}

static void record(struct trace_record record, const char *text, size_t text_bytes, const void *data)
{
    struct iovec pieces[] = {{&record, sizeof record},
                             {(void *)(uintptr_t)text, text_bytes},
                             {(void *)(uintptr_t)data, record.data_bytes}};
    record.process = (uint32_t)process;
    record.text_bytes = (uint32_t)text_bytes;
    size_t all = sizeof record + text_bytes + record.data_bytes;
    if (trace >= 0 && syscall(SYS_writev, trace, pieces, 3) != (long)all) {
        fprintf(stderr, "the trace cannot be written\n");
        end_process(70);
    }
}

/* True, and errno: this call is to fail. With the lock held. */
static bool fails(enum call call)
{
    calls[call]++;
    if (fault.call != call || calls[call] < fault.number || (calls[call] > fault.number && !fault.goes_on))
        return false;
    record((struct trace_record){.kind = TRACE_FAULT}, call_names[call], strlen(call_names[call]) + 1, NULL);
    if (!fault.failure) end_process(CUT_KILLED);
    errno = fault.failure;
    return true;
}

static void read_fault(char *words)
{
    char *rest, *name = strtok_r(words, ":", &rest);
    char *number = name ? strtok_r(NULL, ":", &rest) : NULL,
         *error = number ? strtok_r(NULL, ":", &rest) : NULL;
    if (!error) return;
    for (int i = 0; i < CALLS; i++)
        if (!strcmp(name, call_names[i])) fault.call = (enum call)i;
    fault.number = strtoul(number, NULL, 10);
    fault.failure = !strcmp(error, "KILL") ? 0 : !strcmp(error, "ENOSPC") ? ENOSPC : EIO;
    fault.goes_on = strtok_r(NULL, ":", &rest) != NULL;
}

/* A process that ends while one of its threads writes a record leaves the beginning of it. */
static void cut_torn_record(int file)
{
    struct trace_record head;
    off_t at = 0, bytes = (off_t)syscall(SYS_lseek, file, 0L, SEEK_END);
    while (at < bytes) {
        bool has_head = syscall(SYS_pread64, file, &head, sizeof head, (long)at) == (long)sizeof head;
        off_t next = at + (off_t)sizeof head +
                     (has_head ? (off_t)head.text_bytes + (off_t)head.data_bytes : bytes);
        if (next > bytes) {
            syscall(SYS_ftruncate, file, (long)at);
            return;
        }
        at = next;
    }
}

__attribute__((constructor)) static void begin(void)
{
    const char *below = getenv(CUT_FOLDER), *to = getenv(CUT_TRACE), *failing = getenv(CUT_FAIL);
    unsetenv("LD_PRELOAD"); /* children do other things */
    if (!below || !realpath(below, folder)) return;
    folder_bytes = strlen(folder);
    process = getpid();
    if (failing) read_fault(strdup(failing));
    if (!to) return;
    int opened = (int)syscall(SYS_openat, AT_FDCWD, to, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    cut_torn_record(opened);
    trace = (int)syscall(SYS_fcntl, opened, F_DUPFD_CLOEXEC, TRACE_FD);
    syscall(SYS_close, opened);
}

/* Not while another thread has changed something and not told it yet. */
SHOWN void _exit(int status)
{
    if (getpid() == process) pthread_mutex_lock(&lock);
    end_process(status);
}

__attribute__((destructor)) static void end(void)
{
    if (!getenv(CUT_COUNT)) return;
    for (int i = 0; i < CALLS; i++) fprintf(stderr, "calls %s %lu\n", call_names[i], calls[i]);
}

/* ---- which files ---- */

/* A forked child is not recorded: its descriptors are others'. */
static bool is_ours(int file)
{
    return file >= 0 && file < FILES_MOST && is_recorded[file] && getpid() == process;
}

/* Writes the path below the folder, without . and .. in it; false when it is elsewhere. */
static bool path_below(int at, const char *path, char out[PATH_MAX])
{
    char whole[2 * PATH_MAX + 2], *parts[256], *rest;
    size_t count = 0;
    if (!folder_bytes || getpid() != process) return false;
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char link[64], base[PATH_MAX];
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        ssize_t len = readlink(link, base, sizeof base - 1);
        if (len <= 0) return false;
        base[len] = '\0';
        snprintf(whole, sizeof whole, "%s/%s", base, path);
    }
    for (char *part = strtok_r(whole, "/", &rest); part; part = strtok_r(NULL, "/", &rest)) {
        if (!strcmp(part, ".")) continue;
        if (!strcmp(part, "..")) {
            if (count) count--;
        } else if (count < 256) {
            parts[count++] = part;
        }
    }
    char clean[2 * PATH_MAX + 2];
    size_t len = 0;
    clean[0] = '\0';
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(clean + len, sizeof clean - len, "/%s", parts[i]);
    if (strncmp(clean, folder, folder_bytes) != 0 || (clean[folder_bytes] && clean[folder_bytes] != '/'))
        return false;
    snprintf(out, PATH_MAX, "%s", clean + folder_bytes + (clean[folder_bytes] == '/'));
    return true;
}

static void opened(int file, const char *path, int flags)
{
    if (file < 0 || file >= FILES_MOST) return;
    is_recorded[file] = true;
    is_synced[file] = flags & O_DSYNC; /* O_SYNC has its bit */
    record((struct trace_record){.kind = TRACE_OPEN, .file = file, .flags = (uint32_t)flags}, path,
           strlen(path) + 1, NULL);
}

static void closing(int file)
{
    if (!is_ours(file)) return;
    is_recorded[file] = false;
    record((struct trace_record){.kind = TRACE_CLOSE, .file = file}, NULL, 0, NULL);
}

/* ---- opening and closing ---- */

static int open_any(int at, const char *path, int flags, mode_t mode)
{
    char below[PATH_MAX];
    if (!path_below(at, path, below)) return (int)syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&lock);
    int file = fails(CALL_OPEN) ? -1 : (int)syscall(SYS_openat, at, path, flags, mode);
    if (file >= 0) opened(file, below, flags);
    pthread_mutex_unlock(&lock);
    return file;
}

#define MODE_OF(flags)                                                                                       \
    mode_t mode = 0;                                                                                         \
    if (flags & (O_CREAT | O_TMPFILE)) {                                                                     \
        va_list args;                                                                                        \
        va_start(args, flags);                                                                               \
        mode = va_arg(args, mode_t);                                                                         \
        va_end(args);                                                                                        \
    }

SHOWN int open(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

SHOWN int open64(const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

SHOWN int openat(int at, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_any(at, path, flags, mode);
}

SHOWN int openat64(int at, const char *path, int flags, ...)
{
    MODE_OF(flags)
    return open_any(at, path, flags, mode);
}

SHOWN int close(int file)
{
    if (!is_ours(file)) return (int)syscall(SYS_close, file);
    pthread_mutex_lock(&lock);
    closing(file);
    int result = (int)syscall(SYS_close, file);
    pthread_mutex_unlock(&lock);
    return result;
}

/* Functions of libc that open and close by themselves. */
#define NEXT(type, name, ...)                                                                                \
    static type (*next)(__VA_ARGS__);                                                                        \
    if (!next) next = (type(*)(__VA_ARGS__))(uintptr_t)dlsym(RTLD_NEXT, name);

SHOWN FILE *fopen(const char *path, const char *how)
{
    NEXT(FILE *, "fopen", const char *, const char *)
    char below[PATH_MAX];
    if (!path_below(AT_FDCWD, path, below)) return next(path, how);
    pthread_mutex_lock(&lock);
    FILE *file = fails(CALL_OPEN) ? NULL : next(path, how);
    if (file)
        opened(fileno(file), below,
               how[0] == 'w'   ? O_WRONLY | O_CREAT | O_TRUNC
               : how[0] == 'a' ? O_CREAT
                               : 0);
    pthread_mutex_unlock(&lock);
    return file;
}

SHOWN int fclose(FILE *file)
{
    NEXT(int, "fclose", FILE *)
    pthread_mutex_lock(&lock);
    closing(fileno(file));
    int result = next(file);
    pthread_mutex_unlock(&lock);
    return result;
}

SHOWN int closedir(DIR *directory)
{
    NEXT(int, "closedir", DIR *)
    pthread_mutex_lock(&lock);
    closing(dirfd(directory));
    int result = next(directory);
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- reading, which is not recorded, but may fail ---- */

static bool read_fails(int file)
{
    if (!is_ours(file)) return false;
    pthread_mutex_lock(&lock);
    bool failing = fails(CALL_READ);
    pthread_mutex_unlock(&lock);
    return failing;
}

SHOWN ssize_t read(int file, void *data, size_t len)
{
    return read_fails(file) ? -1 : syscall(SYS_read, file, data, len);
}

SHOWN ssize_t pread(int file, void *data, size_t len, off_t at)
{
    return read_fails(file) ? -1 : syscall(SYS_pread64, file, data, len, at);
}

SHOWN ssize_t pread64(int file, void *data, size_t len, off64_t at)
{
    return read_fails(file) ? -1 : syscall(SYS_pread64, file, data, len, at);
}

#undef fread_unlocked
SHOWN size_t fread_unlocked(void *data, size_t size, size_t count, FILE *file)
{
    NEXT(size_t, "fread_unlocked", void *, size_t, size_t, FILE *)
    return read_fails(fileno(file)) ? 0 : next(data, size, count, file);
}

/* ---- writing ---- */

static bool is_zero(const char *data, size_t len)
{
    return len && !data[0] && !memcmp(data, data + 1, len - 1);
}

/* Where the next byte of write(2) goes. */
static off_t position(int file)
{
    struct stat status;
    bool appends = syscall(SYS_fcntl, file, F_GETFL) & O_APPEND;
    return appends && fstat(file, &status) == 0 ? status.st_size
                                                : (off_t)syscall(SYS_lseek, file, 0, SEEK_CUR);
}

/* `at` below 0: at the file's position. flags: of pwritev2. A write that syncs is a sync, too: where that fails, what
 * it wrote can be seen. */
static ssize_t write_any(int file, const struct iovec *pieces, int count, off_t at, int flags)
{
    pthread_mutex_lock(&lock);
    uint64_t to = (uint64_t)(at < 0 ? position(file) : at);
    bool synced = is_synced[file] || flags & (RWF_DSYNC | RWF_SYNC);
    ssize_t put = -1;
    bool is_lost = false;
    int failure = 0;
    if (!fails(CALL_WRITE)) {
        is_lost = synced && fails(CALL_SYNC);
        failure = errno;
        if (is_lost) flags &= ~(RWF_DSYNC | RWF_SYNC);
        put = syscall(SYS_pwritev2, file, pieces, (long)count, (long)at, 0L, (long)flags);
    }
    size_t left = put > 0 ? (size_t)put : 0;
    if (!is_lost) failure = errno;
    for (int i = 0; left && i < count; i++) {
        size_t len = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        bool zeros = is_zero(pieces[i].iov_base, len);
        record((struct trace_record){.kind = zeros ? TRACE_ZEROS : TRACE_WRITE,
                                     .file = file,
                                     .flags = synced && !is_lost,
                                     .at = to,
                                     .length = len,
                                     .data_bytes = zeros ? 0 : (uint32_t)len},
               NULL, 0, pieces[i].iov_base);
        to += len;
        left -= len;
    }
    if (is_lost) record((struct trace_record){.kind = TRACE_SYNC, .file = file, .flags = 1}, NULL, 0, NULL);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return is_lost ? -1 : put;
}

static ssize_t write_one(int file, const void *data, size_t len, off_t at)
{
    struct iovec piece = {(void *)(uintptr_t)data, len};
    return write_any(file, &piece, 1, at, 0);
}

SHOWN ssize_t write(int file, const void *data, size_t len)
{
    return is_ours(file) ? write_one(file, data, len, -1) : syscall(SYS_write, file, data, len);
}

SHOWN ssize_t pwrite(int file, const void *data, size_t len, off_t at)
{
    return is_ours(file) ? write_one(file, data, len, at) : syscall(SYS_pwrite64, file, data, len, at);
}

SHOWN ssize_t pwrite64(int file, const void *data, size_t len, off64_t at)
{
    return pwrite(file, data, len, at);
}

SHOWN ssize_t writev(int file, const struct iovec *pieces, int count)
{
    return is_ours(file) ? write_any(file, pieces, count, -1, 0)
                         : syscall(SYS_writev, file, pieces, (long)count);
}

SHOWN ssize_t pwritev2(int file, const struct iovec *pieces, int count, off_t at, int flags)
{
    if (is_ours(file)) return write_any(file, pieces, count, at, flags);
    return syscall(SYS_pwritev2, file, pieces, (long)count, (long)at, 0L, (long)flags);
}

SHOWN ssize_t pwritev64v2(int file, const struct iovec *pieces, int count, off64_t at, int flags)
{
    return pwritev2(file, pieces, count, at, flags);
}

SHOWN ssize_t pwritev(int file, const struct iovec *pieces, int count, off_t at)
{
    return pwritev2(file, pieces, count, at, 0);
}

SHOWN ssize_t pwritev64(int file, const struct iovec *pieces, int count, off64_t at)
{
    return pwritev2(file, pieces, count, at, 0);
}

/* ---- sizes ---- */

SHOWN int ftruncate(int file, off_t size)
{
    if (!is_ours(file)) return (int)syscall(SYS_ftruncate, file, size);
    pthread_mutex_lock(&lock);
    int result = fails(CALL_SIZE) ? -1 : (int)syscall(SYS_ftruncate, file, size);
    if (result == 0)
        record((struct trace_record){.kind = TRACE_SIZE, .file = file, .length = (uint64_t)size}, NULL, 0,
               NULL);
    pthread_mutex_unlock(&lock);
    return result;
}

SHOWN int ftruncate64(int file, off64_t size)
{
    return ftruncate(file, size);
}

static void unknown(const char *what)
{
    record((struct trace_record){.kind = TRACE_UNKNOWN}, what, strlen(what) + 1, NULL);
}

/* RocksDB reserves room, and gives it back, behind the end of files: that changes nothing that can be read. */
static bool is_behind_end(int mode, off_t at, off_t size)
{
    return mode == FALLOC_FL_KEEP_SIZE ||
           (mode == (FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE) && at >= size);
}

SHOWN int fallocate(int file, int mode, off_t at, off_t len)
{
    if (!is_ours(file)) return (int)syscall(SYS_fallocate, file, (long)mode, at, len);
    struct stat status = {0};
    pthread_mutex_lock(&lock);
    int result = fails(CALL_SIZE) ? -1 : (int)syscall(SYS_fallocate, file, (long)mode, at, len);
    fstat(file, &status);
    if (result == 0 && !mode) {
        record((struct trace_record){.kind = TRACE_SIZE, .file = file, .length = (uint64_t)status.st_size},
               NULL, 0, NULL);
    } else if (result == 0 && !is_behind_end(mode, at, status.st_size)) {
        unknown("fallocate of another kind");
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SHOWN int fallocate64(int file, int mode, off64_t at, off64_t len)
{
    return fallocate(file, mode, at, len);
}

SHOWN int posix_fallocate(int file, off_t at, off_t len)
{
    return fallocate(file, 0, at, len) == 0 ? 0 : errno;
}

SHOWN int truncate(const char *path, off_t size)
{
    char below[PATH_MAX];
    if (path_below(AT_FDCWD, path, below)) unknown("truncate");
    return (int)syscall(SYS_truncate, path, size);
}

SHOWN void *mmap(void *address, size_t len, int protection, int flags, int file, off_t at)
{
    if (is_ours(file) && protection & PROT_WRITE && (flags & MAP_TYPE) != MAP_PRIVATE)
        unknown("a mapped file is written");
    return (void *)syscall(SYS_mmap, address, len, (long)protection, (long)flags, (long)file, at);
}

/* ---- syncs. sync_file_range promises nothing, and changes nothing. ---- */

static int sync_any(long call, int file)
{
    if (!is_ours(file)) return (int)syscall(call, file);
    pthread_mutex_lock(&lock);
    int result = fails(CALL_SYNC) ? -1 : (int)syscall(call, file);
    int failure = errno;
    record((struct trace_record){.kind = TRACE_SYNC, .file = file, .flags = result != 0}, NULL, 0, NULL);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

SHOWN int fsync(int file)
{
    return sync_any(SYS_fsync, file);
}

SHOWN int fdatasync(int file)
{
    return sync_any(SYS_fdatasync, file);
}

/* ---- names ---- */

static int name_two(enum trace_kind kind, int from_at, const char *from, int to_at, const char *to,
                    unsigned flags)
{
    char text[2 * PATH_MAX], second[PATH_MAX];
    bool below = path_below(from_at, from, text), to_below = path_below(to_at, to, second);
    long call = kind == TRACE_RENAME ? SYS_renameat2 : SYS_linkat;
    if (!below && !to_below) return (int)syscall(call, from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    int result = fails(CALL_NAME) ? -1 : (int)syscall(call, from_at, from, to_at, to, flags);
    if (result == 0 && (!below || !to_below)) unknown("a file came or went");
    if (result == 0 && below && to_below) {
        size_t len = strlen(text) + 1;
        memcpy(text + len, second, strlen(second) + 1);
        record((struct trace_record){.kind = kind}, text, len + strlen(second) + 1, NULL);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

SHOWN int rename(const char *from, const char *to)
{
    return name_two(TRACE_RENAME, AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHOWN int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return name_two(TRACE_RENAME, from_at, from, to_at, to, 0);
}

SHOWN int link(const char *from, const char *to)
{
    return name_two(TRACE_LINK, AT_FDCWD, from, AT_FDCWD, to, 0);
}

SHOWN int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    return name_two(TRACE_LINK, from_at, from, to_at, to, (unsigned)flags);
}

/* unlink, rmdir, mkdir; `argument`: the call's third. */
static int name_one(enum trace_kind kind, int at, const char *path, long argument)
{
    char below[PATH_MAX];
    long call = kind == TRACE_MKDIR ? SYS_mkdirat : SYS_unlinkat;
    if (!path_below(at, path, below)) return (int)syscall(call, at, path, argument);
    pthread_mutex_lock(&lock);
    int result = fails(CALL_NAME) ? -1 : (int)syscall(call, at, path, argument);
    if (result == 0) record((struct trace_record){.kind = kind}, below, strlen(below) + 1, NULL);
    pthread_mutex_unlock(&lock);
    return result;
}

SHOWN int unlink(const char *path)
{
    return name_one(TRACE_UNLINK, AT_FDCWD, path, 0);
}

SHOWN int unlinkat(int at, const char *path, int flags)
{
    return name_one(TRACE_UNLINK, at, path, flags);
}

SHOWN int rmdir(const char *path)
{
    return name_one(TRACE_UNLINK, AT_FDCWD, path, AT_REMOVEDIR);
}

SHOWN int remove(const char *path)
{
    struct stat status;
    bool is_folder = lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
    return name_one(TRACE_UNLINK, AT_FDCWD, path, is_folder ? AT_REMOVEDIR : 0);
}

SHOWN int mkdir(const char *path, mode_t mode)
{
    return name_one(TRACE_MKDIR, AT_FDCWD, path, (long)mode);
}

SHOWN int mkdirat(int at, const char *path, mode_t mode)
{
    return name_one(TRACE_MKDIR, at, path, (long)mode);
}

/* ---- a small RocksDB ---- */

typedef void set_size(void *options, size_t bytes);

/* The store's own call, with less. */
SHOWN void rocksdb_options_set_write_buffer_size(void *options, size_t bytes);
SHOWN void rocksdb_options_set_write_buffer_size(void *options, size_t bytes)
{
    const char *small = getenv(CUT_SMALL);
    set_size *set = (set_size *)(uintptr_t)dlsym(RTLD_NEXT, "rocksdb_options_set_write_buffer_size");
    set_size *set_file = (set_size *)(uintptr_t)dlsym(RTLD_NEXT, "rocksdb_options_set_target_file_size_base");
    if (small && set_file) set_file(options, strtoul(small, NULL, 10) * 2);
    set(options, small ? strtoul(small, NULL, 10) : bytes);
}

SHOWN void rocksdb_options_set_max_bytes_for_level_base(void *options, uint64_t bytes);
SHOWN void rocksdb_options_set_max_bytes_for_level_base(void *options, uint64_t bytes)
{
    const char *small = getenv(CUT_SMALL);
    set_size *set = (set_size *)(uintptr_t)dlsym(RTLD_NEXT, "rocksdb_options_set_max_bytes_for_level_base");
    set(options, small ? strtoul(small, NULL, 10) * 4 : bytes);
}
