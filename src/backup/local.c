/* A store as the source of copies. */
#include "backup/local.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/limits.h"
#include "base/random.h"

#define CACHE_BYTES (8 << 20)
#define POLL_US     5000 /* between two questions whether there is another batch */

/* ---- checkpoints ---- */

/* What a checkpoint consists of, too. */
static bool is_of_tables(const char *name)
{
    return disk_is_table(name) || strcmp(name, "CURRENT") == 0 || strncmp(name, "MANIFEST-", 9) == 0 ||
           strncmp(name, "OPTIONS-", 8) == 0;
}

static bool list_files(const char *path, struct backup_base *base, char *error, size_t error_len)
{
    DIR *folder = opendir(path);
    size_t room = 0;
    bool fine = folder || disk_refuse("read the folder", path, error, error_len);
    for (struct dirent *entry; fine && (entry = readdir(folder));) {
        char file_path[DISK_PATH];
        if (!is_of_tables(entry->d_name)) continue;
        if (base->count == room) {
            room = room ? room * 2 : 64;
            base->files = must_realloc(base->files, room * sizeof *base->files);
        }
        struct backup_file *file = &base->files[base->count];
        *file = (struct backup_file){0};
        fine = disk_name_is_plain(slice_of(entry->d_name));
        if (!fine) snprintf(error, error_len, "%s has a file with an odd name: %s", path, entry->d_name);
        if (fine) memcpy(file->name, entry->d_name, strlen(entry->d_name) + 1);
        fine = fine && disk_path(file_path, path, entry->d_name, error, error_len) &&
               disk_file_mark(file_path, file->name, &file->bytes, &file->mark, error, error_len);
        base->count += fine;
    }
    if (folder) closedir(folder);
    return fine;
}

struct last_batch {
    int64_t time_ms;
    uint64_t mark;
};

static bool take_last(void *context, const struct store_log_batch *batch)
{
    *(struct last_batch *)context = (struct last_batch){batch->time_ms,
                                                        batch_mark(batch->time_ms, batch->bytes)};
    return false;
}

/* What the log tells of a batch. Before the first one is the log's id. Where the log has not got it (any more), or it
 * is not synced yet, no mark, and now: it is not later than that. */
static struct last_batch last_find(struct store *store, uint64_t number, const struct clock *clock)
{
    struct store_log_cursor cursor = {.number = number};
    struct last_batch last = {clock_now_ms(clock), number ? 0 : store_log_id(store)};
    char error[300];
    if (number) store_log_read(store, &cursor, take_last, &last, error, sizeof error);
    return last;
}

bool checkpoint_make(struct store *store, const char *data, const char *id, const struct clock *clock,
                     struct backup_base *base, char path[DISK_PATH], char *error, size_t error_len)
{
    char copies[DISK_PATH];
    *base = (struct backup_base){.source = store_log_id(store)};
    if (!disk_path(copies, data, COPIES, error, error_len) ||
        !disk_path(path, copies, id, error, error_len) || !disk_make_folder(copies, error, error_len))
        return false;
    if (store_checkpoint(store, path, &base->number, error, error_len)) {
        struct last_batch last = last_find(store, base->number, clock);
        base->time_ms = last.time_ms;
        base->mark = last.mark;
        if (list_files(path, base, error, error_len)) return true;
    }
    disk_remove(path);
    backup_base_free(base);
    return false;
}

void checkpoints_clear(const char *data)
{
    char copies[DISK_PATH], error[64];
    if (disk_path(copies, data, COPIES, error, sizeof error)) disk_remove(copies);
}

/* ---- the log ---- */

struct collecting {
    struct block_writer block;
    int64_t last_ms;
};

static bool collect(void *context, const struct store_log_batch *batch)
{
    struct collecting *collecting = context;
    block_add(&collecting->block, batch->time_ms, batch->bytes);
    collecting->last_ms = batch->time_ms;
    return collecting->block.raw.len < LIMIT_BACKUP_READ_BYTES;
}

enum backup_log log_block(struct store *store, struct log_place *place, uint64_t newest, uint64_t source,
                          const struct clock *clock, struct buf *out, char *error, size_t error_len)
{
    struct collecting collecting = {0};
    struct store_log_cursor *cursor = &place->cursor;
    int64_t now_ms = clock_now_ms(clock); /* first: what is written from now on is not older */
    uint64_t first = cursor->number, synced = store_log_synced(store);
    snprintf(error, error_len, "the log has not got the batch %llu", (unsigned long long)first);
    if (source != store_log_id(store) || first > (newest > synced ? newest : synced) + 1)
        return BACKUP_LOG_GONE;
    if (!place->mark) place->mark = last_find(store, first - 1, clock).mark;
    if (!place->mark && first <= synced) return BACKUP_LOG_GONE;
    enum store_result result = first > synced
                                   ? STORE_OK
                                   : store_log_read(store, cursor, collect, &collecting, error, error_len);
    bool fine = result == STORE_OK;
    /* A clock may have been set back: then the last batch is later than it. */
    bool is_all = cursor->number > synced && now_ms > collecting.last_ms;
    if (fine)
        place->mark = block_finish(&collecting.block, source, first, place->mark,
                                   is_all ? now_ms : collecting.last_ms, out);
    block_writer_free(&collecting.block);
    return fine ? BACKUP_LOG_BLOCK : result == STORE_MISSING ? BACKUP_LOG_GONE : BACKUP_LOG_FAILED;
}

/* ---- the source ---- */

struct local {
    struct backup_source source; /* first: it is cast back */
    struct store *store;
    bool owns_store;
    bool is_in_place; /* the data folder is only read: its files stand for a checkpoint */
    char data[DISK_PATH], path[DISK_PATH]; /* path: of the checkpoint; "": there is none */
    const struct clock *clock;
    void (*hold)(void *context, uint64_t from);
    void *context;
    uint64_t newest; /* batch of the last checkpoint */
    struct log_place place;
};

/* The batch before it tells whether a target's log goes on there. */
static void hold_alone(void *store, uint64_t from)
{
    store_log_keep_from(store, from > 1 && from != UINT64_MAX ? from - 1 : from);
}

static void local_end(void *self)
{
    struct local *local = self;
    char copies[DISK_PATH], error[64];
    if (!local->path[0]) return;
    if (local->is_in_place) {
        local->path[0] = '\0';
        return;
    }
    disk_remove(local->path);
    local->path[0] = '\0';
    if (disk_path(copies, local->data, COPIES, error, sizeof error))
        rmdir(copies); /* unless others are in it */
}

/* The tables' files as they are; the log has what is behind them. Where it has the batches behind them and not the last
 * one that they have, that one gets a mark that no other has: here nothing can be written in between. */
static bool begin_in_place(struct local *local, struct backup_base *base, char *error, size_t error_len)
{
    struct random random;
    *base = (struct backup_base){.source = store_log_id(local->store)};
    if (!disk_path(local->path, local->data, "store", error, error_len)) return false;
    if (!store_files_number(local->path, &base->number, error, error_len) ||
        !list_files(local->path, base, error, error_len)) {
        backup_base_free(base);
        return false;
    }
    struct last_batch last = last_find(local->store, base->number, local->clock);
    base->time_ms = last.time_ms;
    base->mark = last.mark;
    if (!base->mark) {
        random_seed_from_system(&random);
        base->mark = random_next(&random) | 1;
    }
    if (!last.mark ||
        !base->number) /* when it was written is not known, but it is not later than the next one */
        base->time_ms = last_find(local->store, base->number + 1, local->clock).time_ms;
    local->place = (struct log_place){.cursor.number = base->number + 1, .mark = base->mark};
    local->newest = base->number;
    return true;
}

static bool local_begin(void *self, struct backup_base *base, char *error, size_t error_len)
{
    struct local *local = self;
    char id[17], path[DISK_PATH];
    struct random random;
    local_end(self);
    if (local->is_in_place) return begin_in_place(local, base, error, error_len);
    random_seed_from_system(&random);
    hex_put(id, random_next(&random));
    uint64_t synced = store_log_synced(local->store);
    if (local->place.cursor.number && local->place.cursor.number < synced)
        synced = local->place.cursor.number;
    local->hold(local->context, synced ? synced : 1);
    if (!checkpoint_make(local->store, local->data, id, local->clock, base, path, error, error_len))
        return false;
    strcpy(local->path, path);
    local->newest = base->number;
    return true;
}

static bool local_read(void *self, const struct backup_file *file, uint64_t from, struct buf *out,
                       char *error, size_t error_len)
{
    struct local *local = self;
    char path[DISK_PATH];
    return disk_path(path, local->path, file->name, error, error_len) &&
           disk_file_read(path, from, LIMIT_BACKUP_READ_BYTES, out, error, error_len);
}

static bool local_link(void *self, const struct backup_file *file, const char *path)
{
    struct local *local = self;
    char from[DISK_PATH], error[64];
    return disk_path(from, local->path, file->name, error, sizeof error) &&
           (link(from, path) == 0 || errno == EEXIST);
}

static enum backup_log local_log(void *self, uint64_t source, uint64_t from, int64_t wait_ms,
                                 struct buf *block, char *error, size_t error_len)
{
    struct local *local = self;
    int64_t until_us = monotonic_us() + wait_ms * 1000;
    if (local->place.cursor.number != from) local->place = (struct log_place){.cursor.number = from};
    local->hold(local->context, from);
    while (store_log_synced(local->store) < from && monotonic_us() < until_us) usleep(POLL_US);
    return log_block(local->store, &local->place, local->newest, source, local->clock, block, error,
                     error_len);
}

static void local_close(void *self)
{
    struct local *local = self;
    local_end(self);
    local->hold(local->context, UINT64_MAX);
    if (local->owns_store) store_close(local->store);
    free(local);
}

struct backup_source *local_source(struct store *store, const char *data, const struct clock *clock,
                                   bool links, void (*hold)(void *context, uint64_t from), void *context)
{
    struct local *local = must_zero(1, sizeof *local);
    snprintf(local->data, sizeof local->data, "%s", data);
    local->store = store;
    local->clock = clock;
    local->hold = hold;
    local->context = context;
    local->source = (struct backup_source){.self = local,
                                           .begin = local_begin,
                                           .read = local_read,
                                           .link = links ? local_link : NULL,
                                           .end = local_end,
                                           .log = local_log,
                                           .close = local_close};
    return &local->source;
}

static bool has_whole_tables(const char *folder)
{
    char tables[DISK_PATH], error[600];
    uint64_t number;
    return disk_path(tables, folder, "store", error, sizeof error) &&
           store_files_number(tables, &number, error, sizeof error);
}

struct backup_source *backup_source_folder(const char *folder, char *error, size_t error_len)
{
    char marker[DISK_PATH];
    struct stat status;
    if (!disk_path(marker, folder, "quipu", error, error_len)) return NULL;
    if (stat(marker, &status) != 0) { /* an empty folder would become a data folder */
        snprintf(error, error_len, "%s is no data folder of quipu", folder);
        return NULL;
    }
    /* Reading does: it needs no room, and no permission to write. It does not before the first start, nor where an old
     * version has left its own log, or a power cut a list of tables that a writer mends. */
    struct store_options options = {.folder = folder, .read_only = true, .cache_bytes = CACHE_BYTES};
    struct store *store = store_open_disk(&options, error, error_len);
    if (store && (!store_log_id(store) || !has_whole_tables(folder))) {
        store_close(store);
        store = NULL;
    }
    bool is_in_place = store != NULL;
    if (!store) {
        options.read_only = false;
        store = store_open_disk(&options, error, error_len);
        if (!store) return NULL;
        checkpoints_clear(folder);
    }
    struct backup_source *source = local_source(store, folder, &clock_system, false, hold_alone, store);
    ((struct local *)source)->owns_store = true;
    ((struct local *)source)->is_in_place = is_in_place;
    return source;
}

void backup_source_close(struct backup_source *source)
{
    source->close(source->self);
}
