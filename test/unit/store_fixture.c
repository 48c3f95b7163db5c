/* Helpers of the store's tests. */
#include "unit/store_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"

#ifdef THREAD_SANITIZER
/* RocksDB is not compiled for it: what its threads agree on by atomics would be taken for races. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:librocksdb.so\n";
}
#endif

char *folder_make(void)
{
    struct buf path = {0};
    const char *parent = getenv("TMPDIR");
    buf_printf(&path, "%s/quipu-store-XXXXXX", parent ? parent : P_tmpdir);
    buf_byte(&path, '\0');
    ensure(mkdtemp(path.data));
    return path.data;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
    (void)stat, (void)kind, (void)walk;
    return remove(path);
}

void folder_remove(char *folder)
{
    CHECK(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
    free(folder);
}

char *path_in(const char *folder, const char *name)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%s", folder, name);
    buf_byte(&path, '\0');
    return path.data;
}

uint64_t bytes_in(const char *folder, const char *name)
{
    char *path = path_in(folder, name);
    DIR *directory = opendir(path);
    struct stat file;
    uint64_t bytes = 0;
    ensure(directory);
    for (struct dirent *entry; (entry = readdir(directory));)
        if (fstatat(dirfd(directory), entry->d_name, &file, 0) == 0 && S_ISREG(file.st_mode))
            bytes += (uint64_t)file.st_size;
    closedir(directory);
    free(path);
    return bytes;
}

struct store *disk_open(const char *folder)
{
    char error[512] = "";
    struct store_options options = {.folder = folder, .create = true, .cache_bytes = 1 << 20};
    struct store *store = store_open_disk(&options, error, sizeof error);
    if (!store) test_failed(__FILE__, __LINE__, "%s", error);
    return store;
}

void put(struct store *store, const char *key, const char *value)
{
    struct store_batch batch = {0};
    store_batch_put(&batch, slice_of(key), slice_of(value));
    CHECK(store_write(store, &batch, false) == STORE_OK);
    store_batch_free(&batch);
}

static char text[64 * 1024];

struct slice value_of(struct store *store, const char *key)
{
    struct buf value = {0};
    enum store_result result = store_get(store, slice_of(key), &value);
    if (result == STORE_MISSING) return SLICE("(missing)");
    if (result == STORE_FAILED) return SLICE("(failed)");
    int len = snprintf(text, sizeof text, "%.*s", SLICE_ARG(buf_view(&value)));
    buf_free(&value);
    return (struct slice){text, (size_t)len};
}

static bool show(void *context, struct slice key, struct slice value)
{
    size_t *len = context;
    *len += (size_t)snprintf(text + *len, sizeof text - *len, "%.*s=%.*s ", SLICE_ARG(key), SLICE_ARG(value));
    ensure(*len < sizeof text);
    return true;
}

struct slice content(struct store *store, const char *from, const char *to, bool backwards)
{
    size_t len = 0;
    enum store_result result = store_scan(store, slice_of(from), slice_of(to), backwards, show, &len);
    return result == STORE_OK ? (struct slice){text, len} : SLICE("(failed)");
}

struct child child_start(const char *test, const char *folder, const char *durable)
{
    int report[2];
    ensure(pipe2(report, O_CLOEXEC) == 0);
    pid_t pid = fork();
    ensure(pid >= 0);
    if (pid == 0) {
        ensure(dup2(report[1], CHILD_REPORT) == CHILD_REPORT);
        setenv(CHILD_FOLDER, folder, 1);
        setenv(CHILD_DURABLE, durable, 1);
        ensure(freopen("/dev/null", "w", stdout));
        execl("/proc/self/exe", "unit", test, (char *)NULL);
        _exit(127);
    }
    close(report[1]);
    return (struct child){pid, report[0]};
}

uint32_t child_end(struct child child, int *status)
{
    uint32_t last = 0, number;
    while (read(child.report, &number, sizeof number) == sizeof number) last = number;
    close(child.report);
    waitpid(child.pid, status, 0);
    return last;
}

void child_report(uint32_t number)
{
    ensure(write(CHILD_REPORT, &number, sizeof number) == sizeof number);
}
