/* What functions print, by name, in bounded files that anybody can read.
 *
 * FOLDER/NAME.log grows to half of LIMIT_LOG_BYTES, then it becomes NAME.POSITION.log and a new one begins;
 * there is one of these older ones at most. POSITION is where it ends, counted in bytes since the function
 * first printed: so positions go on after a restart, and a reader that comes back finds its place, or what is
 * left of it.
 *
 * Whoever prints only appends to memory; the logs' own thread writes. Output that comes faster than the disk
 * takes it is dropped above LIMIT_LOG_PENDING_BYTES, and a line tells how much. A file that cannot be written
 * loses its output, with one line on standard error.
 *
 * Locks: files_lock (what is in files: positions, sizes; held over disk access) before lock (what is in
 * memory; never held over anything slow). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cond.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/log.h"
#include "calendar/calendar.h"
#include "func/internal.h"

#define BUCKETS          256
#define GENERATION_BYTES (LIMIT_LOG_BYTES / 2)
#define GATHER_US        5000 /* between what is printed and what is written: many lines, one write */
#define NAME_MAX_BYTES   200
#define PATH_BYTES       4096

struct log {
    struct log *next; /* in its bucket */
    /* under lock */
    struct buf pending; /* not yet in the file */
    uint64_t dropped_bytes;
    struct logs_waiter *waiters;
    /* under files_lock */
    bool is_open;
    uint64_t end, older_end,
        older_bytes; /* positions: the end of all that is in files; the end of the older one */
    char name[];
};

struct logs {
    char *folder;
    pthread_mutex_t files_lock, lock;
    pthread_cond_t more;
    pthread_t thread;
    bool is_closing, is_dirty;
    bool is_draining; /* nobody waits any more */
    bool has_failed;  /* said so once */
    struct log *buckets[BUCKETS];
};

static void *run_thread(void *logs);

struct logs *logs_open(const char *folder)
{
    struct logs *logs = must_zero(1, sizeof *logs);
    logs->folder = strdup(folder);
    ensure(logs->folder);
    mkdir(folder, 0777); /* when it cannot be made, the first write tells */
    pthread_mutex_init(&logs->files_lock, NULL);
    pthread_mutex_init(&logs->lock, NULL);
    cond_init(&logs->more);
    ensure(pthread_create(&logs->thread, NULL, run_thread, logs) == 0);
    return logs;
}

void time_put(struct buf *out, int64_t time_ms)
{
    struct arena arena = {0};
    buf_slice(out, moment_text(&arena, time_ms));
    arena_free(&arena);
}

/* Whoever waits is called back now, for the last time; so is who comes later. */
void func_drain(struct func *func)
{
    struct logs *logs = func->logs;
    pthread_mutex_lock(&logs->lock);
    logs->is_draining = logs->is_dirty = true;
    pthread_cond_signal(&logs->more);
    pthread_mutex_unlock(&logs->lock);
}

void logs_close(struct logs *logs)
{
    if (!logs) return;
    pthread_mutex_lock(&logs->lock);
    logs->is_closing = logs->is_draining = true;
    pthread_cond_signal(&logs->more);
    pthread_mutex_unlock(&logs->lock);
    pthread_join(logs->thread, NULL);
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (logs->buckets[i]) {
            struct log *log = logs->buckets[i];
            logs->buckets[i] = log->next;
            buf_free(&log->pending);
            free(log);
        }
    }
    pthread_cond_destroy(&logs->more);
    pthread_mutex_destroy(&logs->lock);
    pthread_mutex_destroy(&logs->files_lock);
    free(logs->folder);
    free(logs);
}

/* Names become files' names: those that could lead elsewhere have no log. Under the lock. */
static struct log *log_of(struct logs *logs, struct slice name)
{
    if (!name.len || name.len > NAME_MAX_BYTES || memchr(name.data, '/', name.len) ||
        memchr(name.data, '.', name.len) || memchr(name.data, 0, name.len))
        return NULL;
    struct log **bucket = &logs->buckets[hash_bytes(name) % BUCKETS];
    for (struct log *log = *bucket; log; log = log->next)
        if (slice_equal(slice_of(log->name), name)) return log;
    struct log *log = must_zero(1, sizeof *log + name.len + 1);
    memcpy(log->name, name.data, name.len);
    log->next = *bucket;
    *bucket = log;
    return log;
}

void logs_append(struct logs *logs, struct slice function, struct slice bytes)
{
    if (!bytes.len) return;
    pthread_mutex_lock(&logs->lock);
    struct log *log = log_of(logs, function);
    if (log && log->pending.len + bytes.len > LIMIT_LOG_PENDING_BYTES)
        log->dropped_bytes += bytes.len;
    else if (log)
        buf_slice(&log->pending, bytes);
    bool wake = !logs->is_dirty;
    logs->is_dirty = true;
    if (wake) pthread_cond_signal(&logs->more);
    pthread_mutex_unlock(&logs->lock);
}

/* ---- files: under files_lock ---- */

/* NAME.log, NAME.times */
static void path_of(const struct logs *logs, const struct log *log, const char *kind, char *path)
{
    snprintf(path, PATH_BYTES, "%s/%s.%s", logs->folder, log->name, kind);
}

static void older_path_of(const struct logs *logs, const struct log *log, uint64_t end, char *path)
{
    snprintf(path, PATH_BYTES, "%s/%s.%llu.log", logs->folder, log->name, (unsigned long long)end);
}

static uint64_t file_bytes(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
}

/* NAME.POSITION.log of this log: its position; false for all other names. */
static bool older_position(const struct log *log, const char *name, uint64_t *position)
{
    size_t len = strlen(log->name), whole = strlen(name);
    unsigned long long value;
    if (whole < len + 6 || strncmp(name, log->name, len) != 0 || name[len] != '.') return false;
    if (strcmp(name + whole - 4, ".log") != 0) return false;
    if (!slice_to_u64((struct slice){name + len + 1, whole - len - 5}, UINT64_MAX, &value)) return false;
    *position = value;
    return true;
}

/* Finds where it stands; of several older files (a crash between two steps) the youngest counts. */
static void log_open(const struct logs *logs, struct log *log)
{
    char path[PATH_BYTES];
    uint64_t position;
    if (log->is_open) return;
    log->is_open = true;
    DIR *folder = opendir(logs->folder);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        if (older_position(log, entry->d_name, &position) && position > log->older_end)
            log->older_end = position;
    if (folder) closedir(folder);
    older_path_of(logs, log, log->older_end, path);
    log->older_bytes = log->older_end ? file_bytes(path) : 0;
    path_of(logs, log, "log", path);
    log->end = log->older_end + file_bytes(path);
}

/* ---- when it was written: a file of lines "POSITION TIME" beside it, one for each write, in the order of positions. A
 * line that was cut off by a crash is passed over. Under files_lock. ---- */

/* Notes that what stands from the position on was written then. */
static void times_append(const char *path, uint64_t position, int64_t time_ms)
{
    char line[64];
    int len = snprintf(line, sizeof line, "%llu %lld\n", (unsigned long long)position, (long long)time_ms);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return; /* what cannot be written is told by the log itself */
    ssize_t written = write(fd, line, (size_t)len);
    (void)written;
    close(fd);
}

/* In the arena, in order. */
static struct log_time *times_read(const char *path, struct arena *arena, uint32_t *count)
{
    struct log_time *times = NULL;
    uint32_t room = 0;
    char line[64];
    unsigned long long position;
    long long time_ms;
    *count = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llu %lld", &position, &time_ms) != 2 || !strchr(line, '\n')) continue;
        if (*count && times[*count - 1].position >= position) continue;
        times = arena_grow(arena, times, *count, &room, sizeof *times);
        times[(*count)++] = (struct log_time){position, time_ms};
    }
    if (file) fclose(file);
    return times;
}

/* ---- writing ---- */

static void log_turn_over(const struct logs *logs, struct log *log)
{
    char path[PATH_BYTES], before[PATH_BYTES], after[PATH_BYTES];
    path_of(logs, log, "log", path);
    uint64_t bytes = file_bytes(path);
    if (bytes < GENERATION_BYTES) return;
    older_path_of(logs, log, log->older_end, before);
    older_path_of(logs, log, log->end, after);
    if (rename(path, after) != 0) return;
    if (log->older_end) unlink(before);
    log->older_end = log->end;
    log->older_bytes = bytes;
    path_of(logs, log, "times", path);
    /* Forgets what was written before the position: whole or not at all. */
    uint64_t first = log->older_end - bytes;
    struct arena arena = {0};
    uint32_t count;
    struct log_time *times = times_read(path, &arena, &count);
    const char *fresh = arena_printf(&arena, "%s.new", path).data;
    FILE *file = fopen(fresh, "we");
    bool fine = file != NULL;
    for (uint32_t i = 0; i < count && file; i++) {
        bool is_needed = i + 1 == count || times[i + 1].position > first;
        if (is_needed)
            fine &= fprintf(file, "%llu %lld\n", (unsigned long long)times[i].position,
                            (long long)times[i].time_ms) > 0;
    }
    if (file) fine &= fclose(file) == 0;
    if (!fine || rename(fresh, path) != 0) unlink(fresh);
    arena_free(&arena);
}

static bool write_all(int fd, struct slice bytes)
{
    while (bytes.len) {
        ssize_t count = write(fd, bytes.data, bytes.len);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        bytes = slice_from(bytes, (size_t)count);
    }
    return true;
}

static void log_write(struct logs *logs, struct log *log, struct slice bytes)
{
    char path[PATH_BYTES];
    path_of(logs, log, "times", path);
    times_append(path, log->end, clock_now_ms(&clock_system));
    path_of(logs, log, "log", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    bool fine = fd >= 0 && write_all(fd, bytes);
    if (!fine && !logs->has_failed) {
        logs->has_failed = true;
        log_line("the output of functions is lost: %s cannot be written: %s", path, strerror(errno));
    }
    if (fd >= 0) close(fd);
    log->end += bytes.len; /* what was lost has its positions, too: they only grow */
    log_turn_over(logs, log);
}

static void log_flush(struct logs *logs, struct log *log)
{
    struct buf bytes = {0};
    pthread_mutex_lock(&logs->files_lock);
    log_open(logs, log);
    pthread_mutex_lock(&logs->lock);
    bytes = log->pending;
    log->pending = (struct buf){0};
    if (log->dropped_bytes && bytes.len && bytes.data[bytes.len - 1] != '\n') buf_byte(&bytes, '\n');
    if (log->dropped_bytes)
        buf_printf(&bytes, "(%llu bytes of output were dropped: they came too fast)\n",
                   (unsigned long long)log->dropped_bytes);
    log->dropped_bytes = 0;
    pthread_mutex_unlock(&logs->lock);
    if (bytes.len) log_write(logs, log, buf_view(&bytes));
    pthread_mutex_unlock(&logs->files_lock);
    buf_free(&bytes);
}

/* ---- reading ---- */

/* Bytes of a file that begins at position `start`, from *at on, up to `until`. */
static void read_file(const char *path, uint64_t start, uint64_t until, uint64_t *at, size_t *left,
                      struct buf *out)
{
    if (*at >= until || !*left) return;
    uint64_t wanted = until - *at < *left ? until - *at : *left;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        buf_reserve(out, wanted);
        ssize_t count = pread(fd, out->data + out->len, wanted, (off_t)(*at - start));
        if (count > 0) out->len += (size_t)count;
        close(fd);
    }
    *at += wanted; /* what is not there any more is skipped */
    *left -= wanted;
}

/* The end of a log begins with a whole line. */
static void cut_first_line(struct buf *out, size_t before)
{
    const char *end = memchr(out->data + before, '\n', out->len - before);
    if (!end || end + 1 == out->data + out->len) return;
    size_t cut = (size_t)(end + 1 - (out->data + before));
    memmove(out->data + before, out->data + before + cut, out->len - before - cut);
    out->len -= cut;
}

static void log_read(struct logs *logs, struct log *log, uint64_t from, size_t max, struct buf *out,
                     uint64_t *next)
{
    char path[PATH_BYTES], older[PATH_BYTES];
    size_t before = out->len, left = max;
    log_open(logs, log);
    path_of(logs, log, "log", path);
    older_path_of(logs, log, log->older_end, older);
    uint64_t bytes = file_bytes(path), current = bytes < log->end ? log->end - bytes : 0;
    uint64_t first = log->older_bytes ? log->older_end - log->older_bytes : current;
    pthread_mutex_lock(&logs->lock);
    uint64_t all = log->end + log->pending.len;
    pthread_mutex_unlock(&logs->lock);
    bool is_tail = from == UINT64_MAX;
    uint64_t at = is_tail ? (all > max ? all - max : 0) : from;
    bool cut = is_tail && at > first;
    if (at < first) at = first;
    if (at > all) at = all;
    read_file(older, log->older_end - log->older_bytes, log->older_end, &at, &left, out);
    read_file(path, current, log->end, &at, &left, out);
    pthread_mutex_lock(&logs->lock); /* nothing left for the file meanwhile: we hold files_lock */
    if (at >= log->end && at - log->end < log->pending.len) {
        struct slice rest = slice_from(buf_view(&log->pending), at - log->end);
        if (rest.len > left) rest.len = left;
        buf_slice(out, rest);
        at += rest.len;
    }
    pthread_mutex_unlock(&logs->lock);
    if (cut && out->len > before) cut_first_line(out, before);
    *next = at;
}

static struct log *log_find(struct logs *logs, struct slice function)
{
    pthread_mutex_lock(&logs->lock);
    struct log *log = log_of(logs, function);
    pthread_mutex_unlock(&logs->lock);
    return log;
}

void logs_read(struct logs *logs, struct slice function, uint64_t from, size_t max, struct buf *out,
               uint64_t *next)
{
    struct log *log = log_find(logs, function);
    *next = from == UINT64_MAX ? 0 : from;
    if (!log) return;
    pthread_mutex_lock(&logs->files_lock);
    log_read(logs, log, from, max, out, next);
    pthread_mutex_unlock(&logs->files_lock);
}

struct log_time *logs_times(struct logs *logs, struct slice function, struct arena *arena, uint32_t *count)
{
    char path[PATH_BYTES];
    struct log *log = log_find(logs, function);
    *count = 0;
    if (!log) return NULL;
    log_flush(logs, log);
    pthread_mutex_lock(&logs->files_lock);
    path_of(logs, log, "times", path);
    struct log_time *times = times_read(path, arena, count);
    pthread_mutex_unlock(&logs->files_lock);
    return times;
}

int64_t logs_begun_ms(struct logs *logs, struct slice function)
{
    struct arena arena = {0};
    uint32_t count;
    struct log_time *times = logs_times(logs, function, &arena, &count);
    int64_t begun_ms = count ? times[0].time_ms : 0;
    arena_free(&arena);
    return begun_ms;
}

/* ---- waiting ---- */

void logs_wait(struct logs *logs, struct logs_waiter *waiter)
{
    pthread_mutex_lock(&logs->lock);
    struct log *log = log_of(logs, waiter->function);
    bool in_vain = !log || logs->is_draining;
    waiter->is_last = in_vain;
    if (!in_vain) {
        waiter->next = log->waiters;
        log->waiters = waiter; /* from here on it may be called, and gone */
        logs->is_dirty = true;
        pthread_cond_signal(&logs->more);
    }
    pthread_mutex_unlock(&logs->lock);
    if (in_vain) waiter->ready(waiter);
}

/* Takes those who have something to hear; *due_us becomes when the next one has. Under files_lock and lock.
 */
static struct logs_waiter *waiters_take(const struct logs *logs, struct log *log, int64_t now_us,
                                        int64_t *due_us)
{
    struct logs_waiter *ready = NULL, **at = &log->waiters;
    while (*at) {
        struct logs_waiter *waiter = *at;
        bool due = waiter->due_us && now_us >= waiter->due_us;
        if (logs->is_draining || due || log->end + log->pending.len > waiter->from) {
            *at = waiter->next;
            waiter->next = ready;
            waiter->is_last |= logs->is_draining;
            ready = waiter;
        } else {
            if (waiter->due_us && waiter->due_us < *due_us) *due_us = waiter->due_us;
            at = &waiter->next;
        }
    }
    return ready;
}

static void log_call_waiters(struct logs *logs, struct log *log, int64_t *due_us)
{
    pthread_mutex_lock(&logs->files_lock);
    log_open(logs, log);
    pthread_mutex_lock(&logs->lock);
    struct logs_waiter *ready = waiters_take(logs, log, monotonic_us(), due_us);
    pthread_mutex_unlock(&logs->lock);
    pthread_mutex_unlock(&logs->files_lock);
    while (ready) {
        struct logs_waiter *waiter = ready;
        ready = waiter->next;
        waiter->ready(waiter);
    }
}

/* ---- the thread ---- */

/* All logs, so that none is freed or added under our eyes: they only grow in number while the thread runs. */
static struct log *next_log(struct logs *logs, struct log *log, unsigned *bucket)
{
    pthread_mutex_lock(&logs->lock);
    if (log) log = log->next;
    while (!log && *bucket < BUCKETS) log = logs->buckets[(*bucket)++];
    pthread_mutex_unlock(&logs->lock);
    return log;
}

/* Writes what there is and calls who waits; answers when the next waiter is due. */
static int64_t logs_look(struct logs *logs)
{
    int64_t due_us = INT64_MAX;
    unsigned bucket = 0;
    for (struct log *log = next_log(logs, NULL, &bucket); log; log = next_log(logs, log, &bucket)) {
        pthread_mutex_lock(&logs->lock);
        bool has_output = log->pending.len || log->dropped_bytes, has_waiters = log->waiters != NULL;
        pthread_mutex_unlock(&logs->lock);
        if (has_output) log_flush(logs, log);
        if (has_waiters) log_call_waiters(logs, log, &due_us);
    }
    return due_us;
}

/* Until there is something to do; false when it is the end. */
static bool logs_sleep(struct logs *logs, int64_t due_us)
{
    pthread_mutex_lock(&logs->lock);
    while (!logs->is_dirty && !logs->is_closing && cond_wait_until(&logs->more, &logs->lock, due_us))
        continue;
    bool goes_on = !logs->is_closing;
    pthread_mutex_unlock(&logs->lock);
    if (goes_on) nanosleep(&(struct timespec){.tv_nsec = GATHER_US * 1000}, NULL);
    pthread_mutex_lock(&logs->lock);
    logs->is_dirty = false;
    pthread_mutex_unlock(&logs->lock);
    return goes_on;
}

static void *run_thread(void *context)
{
    struct logs *logs = context;
    int64_t due_us = INT64_MAX;
    while (logs_sleep(logs, due_us)) due_us = logs_look(logs);
    logs_look(logs);
    return NULL;
}
