/* The system's files, of one folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fail.h"
#include "store/journal_internal.h"

struct system_files {
    struct journal_files table; /* first */
    int folder;
};

static int folder_of(void *self)
{
    return ((struct system_files *)self)->folder;
}

static int system_list(void *self, void (*found)(void *context, const char *name), void *context)
{
    int copy = openat(folder_of(self), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
    if (!directory) {
        int failure = errno;
        if (copy >= 0) close(copy);
        return failure;
    }
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory)); errno = 0)
        if (entry->d_name[0] != '.') found(context, entry->d_name);
    int failure = errno;
    closedir(directory);
    return failure;
}

static int system_open(void *self, const char *name, bool create, bool write, int *file, uint64_t *bytes)
{
    struct stat status;
    *file = openat(folder_of(self), name, (write ? O_RDWR : O_RDONLY) | (create ? O_CREAT : 0) | O_CLOEXEC,
                   0600);
    if (*file < 0) return errno;
    if (fstat(*file, &status) == 0) {
        *bytes = (uint64_t)status.st_size;
        return 0;
    }
    int failure = errno;
    close(*file);
    return failure;
}

static void system_close(void *self, int file)
{
    (void)self;
    close(file);
}

static int system_read(void *self, int file, void *data, size_t len, uint64_t at)
{
    (void)self;
    for (char *to = data; len;) {
        ssize_t got = pread(file, to, len, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 ? errno : EIO;
        to += got;
        len -= (size_t)got;
        at += (uint64_t)got;
    }
    return 0;
}

static int write_with(int file, const void *data, size_t len, uint64_t at, int flags)
{
    for (const char *from = data; len;) {
        struct iovec piece = {(void *)(uintptr_t)from, len};
        ssize_t put = pwritev2(file, &piece, 1, (off_t)at, flags);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : EIO;
        from += put;
        len -= (size_t)put;
        at += (uint64_t)put;
    }
    return 0;
}

static int system_write(void *self, int file, const void *data, size_t len, uint64_t at)
{
    (void)self;
    return write_with(file, data, len, at, 0);
}

static int system_sync(void *self, int file)
{
    (void)self;
    return fdatasync(file) == 0 ? 0 : errno;
}

/* One call where the system has it: the data is on its way to the disk before the call could be made again. */
static int system_write_durable(void *self, int file, const void *data, size_t len, uint64_t at)
{
    int failure = write_with(file, data, len, at, RWF_DSYNC);
    if (failure != EOPNOTSUPP && failure != ENOSYS && failure != EINVAL) return failure;
    failure = system_write(self, file, data, len, at);
    return failure ? failure : system_sync(self, file);
}

static int system_open_direct(void *self, const char *name, int *file)
{
    *file = openat(folder_of(self), name, O_WRONLY | O_DIRECT | O_CLOEXEC);
    return *file >= 0 ? 0 : errno;
}

static int system_rename(void *self, const char *from, const char *to)
{
    return renameat(folder_of(self), from, folder_of(self), to) == 0 ? 0 : errno;
}

static int system_remove(void *self, const char *name)
{
    return unlinkat(folder_of(self), name, 0) == 0 ? 0 : errno;
}

static int system_sync_folder(void *self)
{
    return fsync(folder_of(self)) == 0 ? 0 : errno;
}

struct journal_files *journal_system_files(const char *folder)
{
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return NULL;
    struct system_files *files = must_zero(1, sizeof *files);
    *files = (struct system_files){{files, system_list, system_open, system_close, system_read, system_write,
                                    system_write_durable, system_open_direct, system_sync, system_rename,
                                    system_remove, system_sync_folder},
                                   descriptor};
    return &files->table;
}

void journal_system_files_free(const struct journal_files *files)
{
    struct system_files *own = files->self;
    close(own->folder);
    free(own);
}
