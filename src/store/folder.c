/* A data folder of ours holds a marker, the file `quipu` with the format's number as text, `store`, the files of
 * RocksDB, and `journal`, the commit log. The marker decides everything before RocksDB may touch a byte:
 *
 *  missing folder               made, when asked for
 *  empty folder                 ours from now on
 *  folder with our marker       opened, unless its format is newer than this program
 *  anything else                refused: it belongs to somebody
 *
 * The lock is flock() on the marker: it dies with its process, so a crash leaves nothing to clean up, and a
 * reader can take it without writing to the folder. A marker without text (no byte, or zeros: a file system may keep
 * a file's size and lose its bytes) is a crash before it was synced; it is completed when nothing else is in the
 * folder. Until it has a second line, text that can be read need not be on disk: who wrote it may have ended before its
 * sync, or that failed; it is written again before anything is made beside it. Each directory entry we make is synced,
 * for what is acknowledged must not hang from a name that a power cut forgets.
 *
 * A second line tells which journal belongs to the folder, and up to where it is known to have gone, so that a journal
 * that is lost or was shortened is found also where neither the tables nor the journal's own files show it. It has
 * always the same length and lies within a sector, so a power cut leaves the old one, the new one, or, where there was
 * none, zeros. */
#include "store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/limits.h"

#define MARKER_NAME  "quipu"
#define MARKER_WORDS "quipu data, format "
#define MARKER_BYTES 256 /* more than it ever has */
#define LOG_LINE     "log %016llx, last batch at least %020llu, durability %s\n"
#define STORE_NAME   "store"
#define JOURNAL_NAME "journal"

struct opening {
    const struct store_options *options;
    char *error;
    size_t error_len;
};

/* Always false, so that a check can end in it. */
__attribute__((format(printf, 2, 3))) static bool refuse(const struct opening *opening, const char *format,
                                                         ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(opening->error, opening->error_len, format, args);
    va_end(args);
    return false;
}

static bool refuse_errno(const struct opening *opening, const char *what)
{
    return refuse(opening, "the data folder %s %s: %s", opening->options->folder, what, strerror(errno));
}

static char *path_join(const char *folder, const char *name)
{
    struct buf path = {0};
    buf_printf(&path, "%s/%s", folder, name);
    buf_byte(&path, '\0');
    return path.data;
}

/* ---- making it ---- */

static bool directory_sync(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    return synced;
}

static bool make_one(const char *path)
{
    if (mkdir(path, 0700) != 0) return errno == EEXIST;
    char *parent = path_join(path, "..");
    bool synced = directory_sync(parent);
    free(parent);
    return synced;
}

/* Makes the folder and those above it that are missing. */
static bool make_all(const char *folder)
{
    struct buf path = {0};
    buf_slice(&path, slice_of(folder));
    buf_byte(&path, '\0');
    bool made = true;
    for (char *at = path.data + 1; made && *at; at++) {
        if (*at != '/') continue;
        *at = '\0';
        made = make_one(path.data);
        *at = '/';
    }
    made = made && make_one(path.data);
    buf_free(&path);
    return made;
}

static bool folder_find(const struct opening *opening)
{
    const char *folder = opening->options->folder;
    struct stat found;
    if (!*folder) return refuse(opening, "the data folder has no name");
    if (stat(folder, &found) == 0) {
        if (S_ISDIR(found.st_mode)) return true;
        return refuse(opening, "the data folder %s is not a folder", folder);
    }
    if (errno != ENOENT) return refuse_errno(opening, "cannot be reached");
    if (opening->options->read_only || !opening->options->create) {
        return refuse(opening, "the data folder %s does not exist", folder);
    }
    return make_all(folder) || refuse_errno(opening, "cannot be made");
}

/* ---- whose it is ---- */

struct content {
    bool marker, others;
    bool is_restoring; /* `quipu restore` was interrupted */
};

static bool folder_look(const struct opening *opening, struct content *content)
{
    DIR *directory = opendir(opening->options->folder);
    if (!directory) return refuse_errno(opening, "cannot be read");
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        const char *name = entry->d_name;
        /* A freshly mounted disk is empty but for lost+found. Buckets are folders that people may make before. */
        if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "lost+found") || !strcmp(name, FOLDER_BUCKETS))
            continue;
        if (!strcmp(name, MARKER_NAME)) {
            content->marker = true;
        } else {
            content->others = true;
            content->is_restoring |= !strcmp(name, FOLDER_RESTORING);
        }
    }
    int failure = errno;
    closedir(directory);
    errno = failure;
    return failure == 0 || refuse_errno(opening, "cannot be read");
}

static bool marker_open(const struct opening *opening, const struct content *content, int *marker)
{
    const struct store_options *options = opening->options;
    if (!content->marker && content->is_restoring)
        return refuse(opening,
                      "the folder %s is not restored yet: `quipu restore` into it was interrupted, or is at it; "
                      "restore into it again",
                      options->folder);
    if (!content->marker && content->others) {
        return refuse(opening, "the folder %s is not empty and holds no data of quipu; it is left as it is",
                      options->folder);
    }
    if (!content->marker && options->read_only) {
        return refuse(opening, "the data folder %s is empty", options->folder);
    }
    char *path = path_join(options->folder, MARKER_NAME);
    *marker = open(path, options->read_only ? O_RDONLY | O_CLOEXEC : O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    free(path);
    return *marker >= 0 || refuse_errno(opening, options->read_only ? "cannot be read" : "cannot be written");
}

/* ---- nobody else has it ---- */

/* Who holds a lock on the file, as /proc/locks tells ("1: FLOCK  ADVISORY  WRITE 712 fd:01:393 0 EOF"); 0:
 * unknown. */
static int lock_holder(int marker)
{
    struct stat file;
    FILE *locks = fopen("/proc/locks", "re");
    if (!locks) return 0;
    char line[256];
    int holder = 0;
    while (holder == 0 && fstat(marker, &file) == 0 && fgets(line, sizeof line, locks)) {
        int pid;
        unsigned major_number, minor_number;
        unsigned long long inode;
        if (sscanf(line, "%*d: FLOCK %*s %*s %d %x:%x:%llu", &pid, &major_number, &minor_number, &inode) != 4)
            continue;
        if (major_number == major(file.st_dev) && minor_number == minor(file.st_dev) && inode == file.st_ino)
            holder = pid;
    }
    fclose(locks);
    return holder > 0 ? holder : 0;
}

static bool marker_lock(const struct opening *opening, int marker)
{
    const struct store_options *options = opening->options;
    if (flock(marker, (options->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return refuse_errno(opening, "cannot be locked");
    int holder = lock_holder(marker);
    if (!holder) return refuse(opening, "the data folder %s is in use by another process", options->folder);
    return refuse(opening, "the data folder %s is in use by another process (pid %d)", options->folder,
                  holder);
}

/* ---- which format ---- */

static bool marker_write(const struct opening *opening, int marker)
{
    char text[MARKER_BYTES];
    int len = snprintf(text, sizeof text, MARKER_WORDS "%d\n", FOLDER_FORMAT);
    errno = ENOSPC; /* what a short write means */
    bool written = pwrite(marker, text, (size_t)len, 0) == len && fsync(marker) == 0 &&
                   directory_sync(opening->options->folder);
    return written || refuse_errno(opening, "cannot be written");
}

static bool is_zeros(const char *bytes, size_t len)
{
    return !len || (!bytes[0] && !memcmp(bytes, bytes + 1, len - 1));
}

static int log_line_print(char out[MARKER_BYTES], const struct folder_log *log)
{
    return snprintf(out, MARKER_BYTES, LOG_LINE, (unsigned long long)log->id, (unsigned long long)log->last,
                    log->is_unsynced ? "os  " : "sync");
}

/* Reads what stands behind the first line, nothing being a line, too. */
static bool log_line_parse(const char *text, size_t len, struct folder_log *log)
{
    unsigned long long id, last;
    char durability[8], again[MARKER_BYTES];
    *log = (struct folder_log){0};
    if (is_zeros(text, len)) return true;
    if (sscanf(text, "log %16llx, last batch at least %20llu, durability %4s", &id, &last, durability) != 3)
        return false;
    struct folder_log found = {id, last, strcmp(durability, "sync") != 0};
    if (!id || (size_t)log_line_print(again, &found) != len || memcmp(again, text, len) != 0) return false;
    *log = found;
    return true;
}

struct folder_log folder_read_log(int marker)
{
    struct folder_log log = {0};
    char text[MARKER_BYTES];
    ssize_t len = pread(marker, text, sizeof text - 1, 0);
    if (len < 0) return log;
    text[len] = '\0';
    const char *rest = strchr(text, '\n');
    if (rest) log_line_parse(rest + 1, (size_t)(text + len - rest - 1), &log);
    return log;
}

bool folder_note_log(struct folder *folder, struct folder_log log)
{
    char text[2 * MARKER_BYTES];
    int first = snprintf(text, MARKER_BYTES, MARKER_WORDS "%d\n", FOLDER_FORMAT);
    int len = first + log_line_print(text + first, &log);
    ensure(log.id && folder->format == FOLDER_FORMAT && len < MARKER_BYTES);
    errno = ENOSPC; /* what a short write means */
    if (pwrite(folder->lock, text, (size_t)len, 0) != len || fsync(folder->lock) != 0) return false;
    folder->log = log;
    return true;
}

static bool marker_check(const struct opening *opening, const struct content *content, int marker,
                         struct folder *folder)
{
    const struct store_options *options = opening->options;
    char text[MARKER_BYTES];
    ssize_t len = pread(marker, text, sizeof text - 1, 0);
    if (len < 0) return refuse_errno(opening, "cannot be read");
    text[len] = '\0';
    bool is_unwritten = is_zeros(text, (size_t)len);
    if (is_unwritten && !content->others) {
        if (options->read_only) return refuse(opening, "the data folder %s is empty", options->folder);
        folder->format = FOLDER_FORMAT;
        return marker_write(opening, marker);
    }
    int format;
    if (sscanf(text, MARKER_WORDS "%d", &format) != 1 || format < 1) {
        return refuse(opening,
                      "the folder %s is not a data folder of quipu: its file " MARKER_NAME " says otherwise",
                      options->folder);
    }
    if (format > FOLDER_FORMAT) {
        return refuse(opening,
                      "the data folder %s has format %d, written by a newer quipu; this one reads up to %d",
                      options->folder, format, FOLDER_FORMAT);
    }
    folder->format = format;
    const char *rest = strchr(text, '\n');
    if (rest && !log_line_parse(rest + 1, (size_t)(text + len - rest - 1), &folder->log))
        return refuse(opening,
                      "the data folder %s is damaged: the second line of its file " MARKER_NAME
                      " cannot be read; `quipu salvage` brings out what can be read",
                      options->folder);
    bool may_be_unsynced = !folder->log.id && format == FOLDER_FORMAT && !options->read_only;
    return !may_be_unsynced || marker_write(opening, marker);
}

/* ---- RocksDB's files ---- */

/* The next regular file of the directory. */
static const char *file_next(DIR *directory, struct stat *file)
{
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (fstatat(dirfd(directory), entry->d_name, file, 0) == 0 && S_ISREG(file->st_mode))
            return entry->d_name;
    }
    return NULL;
}

static bool has_ending(const char *name, const char *ending)
{
    const char *dot = strrchr(name, '.');
    return dot && !strcmp(dot, ending);
}

/* RocksDB finds everything through its file CURRENT; without it, it would begin anew and sweep the old files
 * away. */
static bool files_check(const struct opening *opening, const char *store_path)
{
    bool data = false, current = false;
    struct stat file;
    DIR *directory = opendir(store_path);
    if (!directory) return errno == ENOENT || refuse_errno(opening, "cannot be read");
    for (const char *name; (name = file_next(directory, &file));) {
        if (!strcmp(name, "CURRENT")) current = true;
        if (has_ending(name, ".sst") || (has_ending(name, ".log") && file.st_size > 0)) data = true;
    }
    closedir(directory);
    if (current || !data) return true;
    return refuse(opening, "the data folder %s is damaged: the file %s/CURRENT is missing",
                  opening->options->folder, store_path);
}

/* RocksDB writes a manifest and its options when it is opened. As Debian builds it, a disk that is full just then ends
 * the process by an assertion. Later it bears that. */
static bool room_check(const struct opening *opening)
{
    struct statvfs disk;
    const char *folder = opening->options->folder;
    if (opening->options->read_only || statvfs(folder, &disk) != 0) return true;
    uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail; /* root may use what is set aside */
    if (disk.f_blocks == 0 || blocks * disk.f_frsize >= LIMIT_ROOM_TO_OPEN_BYTES) return true;
    return refuse(opening, "the data folder %s cannot be written: the disk is full (%llu bytes are free)",
                  folder, (unsigned long long)(blocks * disk.f_frsize));
}

bool folder_open(struct folder *folder, const struct store_options *options, char *error, size_t error_len)
{
    struct opening opening = {options, error, error_len};
    struct content content = {0};
    *folder = (struct folder){.lock = -1};
    folder->path = strdup(options->folder);
    ensure(folder->path);
    folder->store_path = path_join(options->folder, STORE_NAME);
    folder->journal_path = path_join(options->folder, JOURNAL_NAME);
    /* Without room a new folder stays empty. */
    if (folder_find(&opening) && folder_look(&opening, &content) &&
        (content.marker || room_check(&opening)) && marker_open(&opening, &content, &folder->lock) &&
        marker_lock(&opening, folder->lock) && marker_check(&opening, &content, folder->lock, folder) &&
        room_check(&opening) && files_check(&opening, folder->store_path)) {
        return true;
    }
    folder_close(folder);
    return false;
}

void folder_close(struct folder *folder)
{
    if (folder->lock >= 0) close(folder->lock);
    free(folder->path);
    free(folder->store_path);
    free(folder->journal_path);
    *folder = (struct folder){.lock = -1};
}

bool folder_find_journal(const struct folder *folder, bool create, bool *found, char *error, size_t error_len)
{
    struct stat status;
    *found = stat(folder->journal_path, &status) == 0;
    if (*found || (errno == ENOENT && !create)) return true;
    *found = errno == ENOENT && make_one(folder->journal_path);
    if (!*found)
        snprintf(error, error_len, "the data folder %s cannot be written: %s: %s", folder->path,
                 folder->journal_path, strerror(errno));
    return *found;
}

bool folder_settle(const struct folder *folder)
{
    char *parent = path_join(folder->path, "..");
    bool synced = directory_sync(parent) || errno == EACCES; /* it may be one that we must not read */
    free(parent);
    return synced && directory_sync(folder->path);
}

bool folder_raise_format(struct folder *folder, char *error, size_t error_len)
{
    struct store_options options = {.folder = folder->path};
    folder->format = FOLDER_FORMAT;
    return marker_write(&(struct opening){&options, error, error_len}, folder->lock);
}

bool folder_make_ours(const char *path, char *error, size_t error_len)
{
    struct store_options options = {.folder = path};
    struct opening opening = {&options, error, error_len};
    char *name = path_join(path, MARKER_NAME), *journal = path_join(path, JOURNAL_NAME);
    bool made = make_one(journal);
    int marker = made ? open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    made = marker >= 0 ? marker_write(&opening, marker) : refuse_errno(&opening, "cannot be written");
    if (marker >= 0) close(marker);
    free(name);
    free(journal);
    return made;
}

bool store_is_data_folder(const char *path)
{
    char *name = path_join(path, MARKER_NAME), text[sizeof MARKER_WORDS] = "";
    int marker = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = marker >= 0 && read(marker, text, sizeof text - 1) > 0 && !strcmp(text, MARKER_WORDS);
    if (marker >= 0) close(marker);
    free(name);
    return is;
}

bool folder_is_store(const char *store_path)
{
    char *path = path_join(store_path, "CURRENT");
    struct stat status;
    bool has = stat(path, &status) == 0;
    free(path);
    return has;
}

static uint64_t bytes_below(const char *path)
{
    uint64_t bytes = 0;
    DIR *directory = opendir(path);
    if (!directory) return 0;
    for (struct stat file; file_next(directory, &file);) bytes += (uint64_t)file.st_size;
    closedir(directory);
    return bytes;
}

uint64_t folder_bytes(const struct folder *folder)
{
    return bytes_below(folder->store_path) + bytes_below(folder->journal_path);
}

void folder_tidy_logs(const struct folder *folder)
{
    struct stat file;
    DIR *directory = opendir(folder->store_path);
    if (!directory) return; /* before the first start */
    for (const char *name; (name = file_next(directory, &file));)
        if (has_ending(name, ".log") && file.st_size == 0) unlinkat(dirfd(directory), name, 0);
    closedir(directory);
}
