/* A disk in memory that knows what was synced: it can be cut at any operation, and then keeps of what was not synced
 * whatever a seed decides: sectors, zeroed pages, names. */
#ifndef UNIT_STORE_JOURNAL_DISK_H
#define UNIT_STORE_JOURNAL_DISK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/fail.h"
#include "base/random.h"
#include "store/journal.h"
#include "unit/test.h"

#define DISK_FILES  64
#define DISK_SECTOR 512

struct disk_file {
    char *data, *synced; /* what is seen, and what is on disk for certain */
    bool *forgot;        /* of a page: a sync of it has failed, and the system takes it for written */
    uint64_t bytes, synced_bytes;
};

struct disk_name {
    char name[40];
    int file; /* -1: free */
};

struct disk {
    struct journal_files table;
    struct disk_file files[DISK_FILES];
    int file_count;
    struct disk_name names[DISK_FILES], synced_names[DISK_FILES];
    uint64_t operations, fail_at; /* the operation with this number fails, and all behind it; 0: none */
    int failure;                  /* errno of it */
    bool fails_once;
    uint64_t room; /* bytes that may still be added; UINT64_MAX: all */
    /* Of files of the second way, whose numbers begin at DISK_FILES. */
    enum { DIRECT_WORKS, DIRECT_CANNOT_BE_OPENED, DIRECT_CANNOT_BE_WRITTEN } direct;
    uint64_t direct_writes;
};

static int disk_step(struct disk *disk)
{
    disk->operations++;
    if (!disk->fail_at || disk->operations < disk->fail_at) return 0;
    if (disk->fails_once && disk->operations > disk->fail_at) return 0;
    return disk->failure ? disk->failure : EIO;
}

static size_t disk_pages(uint64_t bytes)
{
    return (size_t)((bytes + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK);
}

static struct disk_name *disk_find(struct disk *disk, const char *name)
{
    for (int i = 0; i < DISK_FILES; i++)
        if (disk->names[i].file >= 0 && !strcmp(disk->names[i].name, name)) return &disk->names[i];
    return NULL;
}

static int disk_list(void *self, void (*found)(void *context, const char *name), void *context)
{
    struct disk *disk = self;
    int failure = disk_step(disk);
    for (int i = 0; !failure && i < DISK_FILES; i++)
        if (disk->names[i].file >= 0) found(context, disk->names[i].name);
    return failure;
}

static int disk_open(void *self, const char *name, bool create, bool write, int *file, uint64_t *bytes)
{
    struct disk *disk = self;
    int failure = disk_step(disk);
    (void)write;
    if (failure) return failure;
    struct disk_name *found = disk_find(disk, name);
    if (!found && !create) return ENOENT;
    for (int i = 0; !found && i < DISK_FILES; i++) {
        if (disk->names[i].file >= 0) continue;
        found = &disk->names[i];
        snprintf(found->name, sizeof found->name, "%s", name);
        int free_file = 0;
        for (bool used = true; used; free_file += used) {
            used = false;
            for (int j = 0; j < DISK_FILES; j++)
                used |= disk->names[j].file == free_file || disk->synced_names[j].file == free_file;
        }
        ensure(free_file < DISK_FILES);
        struct disk_file *fresh = &disk->files[free_file];
        free(fresh->data);
        free(fresh->synced);
        free(fresh->forgot);
        *fresh = (struct disk_file){0};
        found->file = free_file;
    }
    ensure(found);
    *file = found->file;
    *bytes = disk->files[*file].bytes;
    return 0;
}

static int disk_open_direct(void *self, const char *name, int *file)
{
    struct disk *disk = self;
    uint64_t bytes;
    if (disk->direct == DIRECT_CANNOT_BE_OPENED) return EINVAL;
    int failure = disk_open(self, name, false, true, file, &bytes);
    if (!failure) *file += DISK_FILES;
    return failure;
}

static void disk_close_file(void *self, int file)
{
    (void)self;
    (void)file;
}

static int disk_read(void *self, int file, void *data, size_t len, uint64_t at)
{
    struct disk *disk = self;
    int failure = disk_step(disk);
    if (failure) return failure;
    if (at + len > disk->files[file].bytes) return EIO;
    memcpy(data, disk->files[file].data + at, len);
    return 0;
}

static int disk_write(void *self, int file, const void *data, size_t len, uint64_t at)
{
    struct disk *disk = self;
    struct disk_file *own = &disk->files[file];
    int failure = disk_step(disk);
    uint64_t end = at + len;
    if (!failure && end > own->bytes && disk->room != UINT64_MAX && end - own->bytes > disk->room)
        failure = ENOSPC;
    /* What fails may still have been written in part. */
    if (failure) len /= 2, end = at + len;
    if (failure && end > own->bytes) return failure;
    if (end > own->bytes) {
        if (disk->room != UINT64_MAX) disk->room -= end - own->bytes;
        own->data = must_realloc(own->data, end);
        memset(own->data + own->bytes, 0, end - own->bytes);
        size_t pages = disk_pages(own->bytes), more = disk_pages(end) - pages;
        own->forgot = must_realloc(own->forgot, pages + more);
        memset(own->forgot + pages, 0, more);
        own->bytes = end;
    }
    if (len) memcpy(own->data + at, data, len);
    for (uint64_t page = at / JOURNAL_BLOCK; len && page * JOURNAL_BLOCK < end; page++)
        own->forgot[page] = false;
    return failure;
}

/* Pages from the first up to the second are written; where that fails, they are forgotten. */
static void disk_sync_pages(struct disk_file *own, size_t from, size_t to, bool fails)
{
    if (!fails && own->synced_bytes < own->bytes) {
        own->synced = must_realloc(own->synced, own->bytes);
        memset(own->synced + own->synced_bytes, 0, own->bytes - own->synced_bytes);
        own->synced_bytes = own->bytes;
    }
    for (size_t page = from; page < to; page++) {
        uint64_t at = (uint64_t)page * JOURNAL_BLOCK;
        size_t len = own->bytes - at < JOURNAL_BLOCK ? (size_t)(own->bytes - at) : JOURNAL_BLOCK;
        bool was = at + len <= own->synced_bytes && !memcmp(own->synced + at, own->data + at, len);
        own->forgot[page] |= fails && !was;
        if (!own->forgot[page] && !fails) memcpy(own->synced + at, own->data + at, len);
    }
}

static int disk_sync(void *self, int file)
{
    struct disk *disk = self;
    struct disk_file *own = &disk->files[file];
    int failure = disk_step(disk);
    disk_sync_pages(own, 0, disk_pages(own->bytes), failure != 0);
    return failure;
}

/* It fails before anything was written, or behind that. */
static int disk_write_durable(void *self, int file, const void *data, size_t len, uint64_t at)
{
    struct disk *disk = self;
    if (file >= DISK_FILES) {
        if (disk->direct == DIRECT_CANNOT_BE_WRITTEN) return EINVAL;
        ensure((uintptr_t)data % JOURNAL_BLOCK == 0 && len % JOURNAL_BLOCK == 0 && at % JOURNAL_BLOCK == 0);
        disk->direct_writes++;
        file -= DISK_FILES;
    }
    int failure = disk_write(self, file, data, len, at);
    struct disk_file *own = &disk->files[file];
    if (failure) return failure;
    ensure(at + len <= own->synced_bytes); /* it is not the call by which files grow */
    failure = disk_step(disk);
    disk_sync_pages(own, (size_t)(at / JOURNAL_BLOCK), disk_pages(at + len), failure != 0);
    return failure;
}

static int disk_rename(void *self, const char *from, const char *to)
{
    struct disk *disk = self;
    int failure = disk_step(disk);
    struct disk_name *source = disk_find(disk, from), *target = disk_find(disk, to);
    if (failure) return failure;
    if (!source) return ENOENT;
    if (target) target->file = -1;
    snprintf(source->name, sizeof source->name, "%s", to);
    return 0;
}

static int disk_remove(void *self, const char *name)
{
    struct disk *disk = self;
    int failure = disk_step(disk);
    struct disk_name *found = disk_find(disk, name);
    if (failure) return failure;
    if (!found) return ENOENT;
    if (disk->room != UINT64_MAX) disk->room += disk->files[found->file].bytes;
    found->file = -1;
    return 0;
}

static int disk_sync_folder(void *self)
{
    struct disk *disk = self;
    int failure = disk_step(disk);
    if (!failure) memcpy(disk->synced_names, disk->names, sizeof disk->names);
    return failure;
}

static struct disk *disk_new(void)
{
    struct disk *disk = must_zero(1, sizeof *disk);
    disk->table = (struct journal_files){disk,      disk_list,   disk_open,          disk_close_file,
                                         disk_read, disk_write,  disk_write_durable, disk_open_direct,
                                         disk_sync, disk_rename, disk_remove,        disk_sync_folder};
    for (int i = 0; i < DISK_FILES; i++) disk->names[i].file = disk->synced_names[i].file = -1;
    disk->room = UINT64_MAX;
    return disk;
}

static void disk_free(struct disk *disk)
{
    for (int i = 0; i < DISK_FILES; i++) {
        free(disk->files[i].data);
        free(disk->files[i].synced);
        free(disk->files[i].forgot);
    }
    free(disk);
}

/* The power is cut. Sector by sector, what was not synced is there or not; some pages of it are zeros. Names are those
 * of the last sync of the folder, or those that everybody saw. */
static inline void disk_cut(struct disk *disk, struct random *random)
{
    bool keeps_names = random_below(random, 2);
    unsigned manner = (unsigned)random_below(random, 4); /* nothing of it, all of it, any of it twice */
    for (int f = 0; f < DISK_FILES; f++) {
        struct disk_file *own = &disk->files[f];
        for (uint64_t at = 0; at < own->bytes; at += DISK_SECTOR) {
            size_t len = own->bytes - at < DISK_SECTOR ? (size_t)(own->bytes - at) : DISK_SECTOR;
            bool was = at + len <= own->synced_bytes;
            if (was && !memcmp(own->data + at, own->synced + at, len)) continue;
            bool keeps = manner == 1 || (manner > 1 && random_below(random, 2));
            if (keeps) continue;
            if (was && random_below(random, 8))
                memcpy(own->data + at, own->synced + at, len);
            else
                memset(own->data + at, 0, len);
        }
        own->synced = own->bytes ? must_realloc(own->synced, own->bytes) : own->synced;
        if (own->bytes) memcpy(own->synced, own->data, own->bytes);
        own->synced_bytes = own->bytes;
        if (own->bytes) memset(own->forgot, 0, disk_pages(own->bytes));
    }
    if (!keeps_names) memcpy(disk->names, disk->synced_names, sizeof disk->names);
    memcpy(disk->synced_names, disk->names, sizeof disk->names);
    disk->fail_at = 0;
}

#endif
