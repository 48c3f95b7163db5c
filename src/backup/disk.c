/* The few things that are done to files here, each with its sync and its sentence. */
#include "backup/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"

#define MARK_BYTES   (64 * 1024) /* of a table file's end */
#define COPY_BYTES   (1024 * 1024)
#define FOLDERS_OPEN 16

bool disk_refuse(const char *what, const char *path, char *error, size_t error_len)
{
    snprintf(error, error_len, "cannot %s %s: %s", what, path, strerror(errno));
    return false;
}

bool disk_name_is_plain(struct slice name)
{
    if (!name.len || name.len >= BACKUP_NAME_BYTES || name.data[0] == '.') return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-') return false;
    }
    return true;
}

bool disk_is_table(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && strcmp(name + len - 4, ".sst") == 0;
}

bool disk_path(char path[DISK_PATH], const char *folder, const char *name, char *error, size_t error_len)
{
    int len = snprintf(path, DISK_PATH, "%s/%s", folder, name);
    if (len > 0 && len < DISK_PATH) return true;
    snprintf(error, error_len, "the path %.200s/... is too long", folder);
    return false;
}

/* ---- folders ---- */

bool disk_make_folder(const char *path, char *error, size_t error_len)
{
    char parent[DISK_PATH];
    bool is_there = mkdir(path, 0700) != 0;
    if (is_there && errno != EEXIST) return disk_refuse("make the folder", path, error, error_len);
    /* Who made it may have been killed before this, and its parent may be one that we must not read. */
    return disk_path(parent, path, "..", error, error_len) &&
           (disk_sync_folder(parent, error, error_len) || is_there);
}

/* Whether it is still the folder of that name: somebody may have removed it meanwhile. */
static bool is_there(int folder, const char *path)
{
    struct stat held, found;
    errno = ENOENT;
    return fstat(folder, &held) == 0 && stat(path, &found) == 0 && held.st_dev == found.st_dev &&
           held.st_ino == found.st_ino;
}

int disk_lock_folder(const char *path, const char *busy, char *error, size_t error_len)
{
    if (!disk_make_folder(path, error, error_len)) return -1;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && flock(folder, LOCK_EX | LOCK_NB) == 0 && is_there(folder, path)) return folder;
    if (errno == EWOULDBLOCK)
        snprintf(error, error_len, "%s %s", busy, path);
    else if (errno == ENOTDIR)
        snprintf(error, error_len, "%s is not a folder", path);
    else
        disk_refuse("lock the folder", path, error, error_len);
    if (folder >= 0) close(folder);
    return -1;
}

bool disk_sync_folder(const char *path, char *error, size_t error_len)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = folder >= 0 && fsync(folder) == 0;
    if (!synced) disk_refuse("sync the folder", path, error, error_len);
    if (folder >= 0) close(folder);
    return synced;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    remove(path);
    return 0;
}

void disk_remove(const char *path)
{
    nftw(path, remove_entry, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}

bool disk_is_empty(const char *path, const char *but)
{
    DIR *folder = opendir(path);
    if (!folder) return errno == ENOENT;
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(folder));)
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
                !strcmp(entry->d_name, "lost+found") || (but && !strcmp(entry->d_name, but));
    closedir(folder);
    return empty;
}

/* ---- files ---- */

bool disk_write_all(int file, struct slice bytes)
{
    while (bytes.len) {
        ssize_t len = write(file, bytes.data, bytes.len);
        if (len < 0 && errno == EINTR) continue;
        if (len == 0) errno = ENOSPC;
        if (len <= 0) return false;
        bytes = slice_from(bytes, (size_t)len);
    }
    return true;
}

/* Reads from a place to the end, and copies what it reads to another file unless that is -1. */
static bool stream_file(int file, uint64_t from, int to, uint64_t *hash)
{
    char *piece = must_alloc(COPY_BYTES);
    struct hash_stream *stream = hash_stream_begin();
    ssize_t len;
    while ((len = pread(file, piece, COPY_BYTES, (off_t)from)) > 0) {
        struct slice bytes = {piece, (size_t)len};
        hash_stream_add(stream, bytes);
        if (to >= 0 && !disk_write_all(to, bytes)) break;
        from += (uint64_t)len;
    }
    *hash = hash_stream_end(stream);
    free(piece);
    return len == 0;
}

static int open_to_read(const char *path, uint64_t *bytes)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        *bytes = (uint64_t)status.st_size;
        return file;
    }
    if (file >= 0) {
        errno = EINVAL;
        close(file);
    }
    return -1;
}

static bool hash_from(const char *path, uint64_t most, uint64_t *bytes, uint64_t *hash, char *error,
                      size_t error_len)
{
    int file = open_to_read(path, bytes);
    uint64_t from = file >= 0 && *bytes > most ? *bytes - most : 0;
    bool fine = file >= 0 && stream_file(file, from, -1, hash);
    if (!fine) disk_refuse("read", path, error, error_len);
    if (file >= 0) close(file);
    return fine;
}

bool disk_file_mark(const char *path, const char *name, uint64_t *bytes, uint64_t *mark, char *error,
                    size_t error_len)
{
    return hash_from(path, disk_is_table(name) ? MARK_BYTES : UINT64_MAX, bytes, mark, error, error_len);
}

bool disk_file_hash(const char *path, uint64_t *bytes, uint64_t *hash, char *error, size_t error_len)
{
    return hash_from(path, UINT64_MAX, bytes, hash, error, error_len);
}

bool disk_file_read(const char *path, uint64_t from, size_t most, struct buf *out, char *error,
                    size_t error_len)
{
    uint64_t bytes;
    int file = open_to_read(path, &bytes);
    if (file < 0) return disk_refuse("read", path, error, error_len);
    size_t wanted = from >= bytes ? 0 : bytes - from < most ? (size_t)(bytes - from) : most;
    buf_reserve(out, wanted);
    ssize_t len = 0;
    while (wanted && (len = pread(file, out->data + out->len, wanted, (off_t)from)) > 0) {
        out->len += (size_t)len;
        from += (uint64_t)len;
        wanted -= (size_t)len;
    }
    if (wanted) disk_refuse("read", path, error, error_len);
    close(file);
    return !wanted;
}

bool disk_file_copy(const char *from, const char *to, uint64_t *hash, char *error, size_t error_len)
{
    uint64_t bytes;
    int in = open_to_read(from, &bytes);
    if (in < 0) return disk_refuse("read", from, error, error_len);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool fine = out >= 0 && stream_file(in, 0, out, hash) && fsync(out) == 0;
    if (!fine) disk_refuse("write", to, error, error_len);
    if (out >= 0) close(out);
    close(in);
    return fine;
}

int disk_file_new(const char *path)
{
    unlink(path);
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

bool disk_file_put(const char *folder, const char *name, struct slice bytes, char *error, size_t error_len)
{
    char path[DISK_PATH], fresh[DISK_PATH];
    if (!disk_path(path, folder, name, error, error_len)) return false;
    int len = snprintf(fresh, sizeof fresh, "%s.new", path);
    if (len < 0 || (size_t)len >= sizeof fresh) return disk_path(fresh, path, "new", error, error_len);
    int file = disk_file_new(fresh);
    bool fine = file >= 0 && disk_write_all(file, bytes) && fsync(file) == 0;
    if (file >= 0) close(file);
    if (!fine || rename(fresh, path) != 0) return disk_refuse("write", path, error, error_len);
    return disk_sync_folder(folder, error, error_len);
}
