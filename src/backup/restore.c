/* From a target to a data folder: the files of one base, then the batches behind it up to a moment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backup/target.h"
#include "base/fail.h"
#include "store/store.h"

#define WORK        FOLDER_RESTORING /* everything is made in this folder below, and moved up when it is whole */
#define CACHE_BYTES (8 << 20)

struct restoring {
    struct target_paths paths;
    char work[DISK_PATH], store_path[DISK_PATH];
    int lock; /* the folder, so that no other process restores into it */
    int64_t at_ms;
    struct store *store;
    uint64_t next; /* batch to be written */
    bool
        is_known; /* no batch is missing that is older than that moment; some of its millisecond may follow */
    bool is_done; /* all batches up to that moment are written, */
    bool has_failed; /* or one cannot be */
    struct backup_restored *restored;
    char *error;
    size_t error_len;
};

static const char *moment_put(char out[32], int64_t time_ms)
{
    struct tm parts;
    time_t seconds = (time_t)(time_ms / 1000);
    size_t len = gmtime_r(&seconds, &parts) ? strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &parts) : 0;
    snprintf(out + len, 32 - len, ".%03dZ", (int)(time_ms % 1000));
    return out;
}

/* ---- which base ---- */

/* Between this base's end and the next one nothing is known. */
static bool refuse_gap(const struct restoring *restoring, int64_t until_ms, const struct target_entry *next)
{
    char at[32], until[32], from[32];
    moment_put(at, restoring->at_ms);
    moment_put(until, until_ms);
    if (next)
        snprintf(restoring->error, restoring->error_len,
                 "the backups do not know what was there at %s: nothing is known between %s and %s", at,
                 until, moment_put(from, next->time_ms));
    else
        snprintf(
            restoring->error, restoring->error_len,
            "the backups do not know what was there at %s: the newest moment that they have is %s; without --at that "
            "is restored",
            at, until);
    return false;
}

static bool choose_base(const struct restoring *restoring, const struct target_list *bases, const char *path,
                        size_t *chosen, struct chain *chain)
{
    char at[32], first[32];
    if (!bases->count) {
        snprintf(restoring->error, restoring->error_len,
                 "there is no backup in %s that was brought to its end", path);
        return false;
    }
    if (bases->all[0].time_ms > restoring->at_ms) {
        snprintf(restoring->error, restoring->error_len,
                 "the backups do not know what was there at %s: the oldest moment that they have is %s",
                 moment_put(at, restoring->at_ms), moment_put(first, bases->all[0].time_ms));
        return false;
    }
    *chosen = bases->count - 1;
    while (bases->all[*chosen].time_ms > restoring->at_ms) (*chosen)--;
    if (!chain_find(&restoring->paths, &bases->all[*chosen], chain, restoring->error, restoring->error_len))
        return false;
    if (restoring->at_ms == BACKUP_LATEST || chain->end.until_ms >= restoring->at_ms) return true;
    refuse_gap(restoring, chain->end.until_ms, *chosen + 1 < bases->count ? &bases->all[*chosen + 1] : NULL);
    chain_free(chain);
    return false;
}

/* ---- its files ---- */

/* Table files never change, so that a link will do; what RocksDB appends to must be a copy. A file that is there
 * already may be a link to the target's own: it is not written to. */
static bool lay_file(const struct restoring *restoring, const struct backup_file *file)
{
    char from[DISK_PATH], to[DISK_PATH];
    uint64_t bytes = file->bytes, hash;
    char *error = restoring->error;
    size_t error_len = restoring->error_len;
    if (!target_file_path(&restoring->paths, file, from, error, error_len) ||
        !disk_path(to, restoring->store_path, file->name, error, error_len))
        return false;
    bool fine = disk_is_table(file->name) && link(from, to) == 0
                    ? disk_file_hash(to, &bytes, &hash, error, error_len)
                    : disk_file_copy(from, to, &hash, error, error_len);
    if (!fine || (bytes == file->bytes && hash == file->checksum)) return fine;
    snprintf(error, error_len, "%s is damaged: it has not the checksum that it was written with", from);
    return false;
}

static bool lay_files(const struct restoring *restoring, const struct target_entry *entry)
{
    struct backup_base base;
    if (!target_base_read(&restoring->paths, entry, &base, restoring->error, restoring->error_len))
        return false;
    bool fine = true;
    for (size_t i = 0; fine && i < base.count; i++) fine = lay_file(restoring, &base.files[i]);
    backup_base_free(&base);
    return fine && disk_sync_folder(restoring->store_path, restoring->error, restoring->error_len);
}

/* ---- its log ---- */

static bool write_batch(void *context, const struct block_batch *found)
{
    struct restoring *restoring = context;
    struct store_batch batch;
    if (found->number < restoring->next) return true;
    if (found->time_ms > restoring->at_ms) {
        restoring->is_done = true;
        return false;
    }
    bool is_batch = store_batch_from_bytes(found->bytes, &batch);
    if (!is_batch || store_write(restoring->store, &batch, false) != STORE_OK) {
        snprintf(restoring->error, restoring->error_len, "the batch %llu cannot be written: %s",
                 (unsigned long long)found->number,
                 !is_batch                    ? "it is damaged"
                 : restoring->store->error[0] ? restoring->store->error
                                              : restoring->store->refusal);
        restoring->has_failed = true;
        return false;
    }
    restoring->next++;
    restoring->restored->number = found->number;
    restoring->restored->time_ms = found->time_ms;
    restoring->restored->batches++;
    return true;
}

static bool write_block(void *context, const struct block_head *head, struct slice stored)
{
    struct restoring *restoring = context;
    if (head->first > restoring->next) return false;
    if (head->first + head->count < restoring->next) return true;
    block_visit(head, stored, write_batch, restoring);
    restoring->is_known |= head->until_ms >= restoring->at_ms;
    restoring->is_done |= head->until_ms > restoring->at_ms; /* no later batch is so old */
    return !restoring->has_failed && !restoring->is_done;
}

/* What is damaged in one piece may be whole in a later one, which was shipped anew. */
static bool write_log(struct restoring *restoring, const struct chain *chain)
{
    bool is_damaged = false;
    for (size_t i = 0; i < chain->pieces.count && !restoring->is_done; i++) {
        const struct target_entry *piece = &chain->pieces.all[i];
        char path[DISK_PATH], last[32];
        struct piece_end end;
        if (!disk_path(path, restoring->paths.log, piece->name, restoring->error, restoring->error_len) ||
            !piece_walk(path, piece_all, write_block, restoring, &end, restoring->error,
                        restoring->error_len))
            return false;
        if (restoring->has_failed) return false;
        if (end.is_whole || piece->is_open || is_damaged) continue;
        is_damaged = true;
        snprintf(restoring->error, restoring->error_len,
                 "%s is damaged at byte %llu; what was there up to %s can be restored, with --at", path,
                 (unsigned long long)end.bytes, moment_put(last, restoring->restored->time_ms));
    }
    return !is_damaged || restoring->is_known || restoring->next >= chain->end.next;
}

static bool count_table(void *context, struct slice key, struct slice value)
{
    (void)key;
    (void)value;
    ++*(uint64_t *)context;
    return true;
}

static bool replay(struct restoring *restoring, const struct chain *chain)
{
    struct store_options options = {.folder = restoring->work, .cache_bytes = CACHE_BYTES};
    struct store *store = store_open_disk(&options, restoring->error, restoring->error_len);
    if (!store) return false;
    restoring->store = store;
    bool fine = write_log(restoring, chain);
    if (fine && store_sync(store) != STORE_OK) {
        snprintf(restoring->error, restoring->error_len, "%s", store->error);
        fine = false;
    }
    /* Definitions of tables stand under keys that begin with t: see DESIGN.md. */
    if (fine) store_scan(store, SLICE("t"), SLICE("u"), false, count_table, &restoring->restored->tables);
    store_close(store);
    return fine;
}

/* ---- the whole ---- */

/* The marker, which makes the folder a data folder, is moved last. */
static bool move_up(const struct restoring *restoring, const char *folder)
{
    static const char *const names[] = {"store", "journal", "quipu"};
    char from[DISK_PATH], to[DISK_PATH];
    char *error = restoring->error;
    size_t error_len = restoring->error_len;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!disk_path(from, restoring->work, names[i], error, error_len) ||
            !disk_path(to, folder, names[i], error, error_len))
            return false;
        if (rename(from, to) != 0) return disk_refuse("write", to, error, error_len);
        if (!disk_sync_folder(folder, error, error_len)) return false;
    }
    disk_remove(restoring->work);
    return true;
}

/* What was moved up already when somebody was interrupted over it: the marker is moved last. */
static bool remove_moved(const struct restoring *restoring, const char *folder)
{
    static const char *const names[] = {"store", "journal"};
    char path[DISK_PATH];
    if (!store_is_data_folder(restoring->work) || store_is_data_folder(folder)) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!disk_path(path, folder, names[i], restoring->error, restoring->error_len)) return false;
        disk_remove(path);
    }
    return true;
}

/* What an earlier attempt has left there is no data of anybody's. */
static bool prepare_folder(struct restoring *restoring, const char *folder)
{
    char *error = restoring->error;
    size_t error_len = restoring->error_len;
    if (!disk_path(restoring->work, folder, WORK, error, error_len) ||
        !disk_path(restoring->store_path, restoring->work, "store", error, error_len))
        return false;
    restoring->lock = disk_lock_folder(folder, "another process restores into", error, error_len);
    if (restoring->lock < 0 || !remove_moved(restoring, folder)) return false;
    if (!disk_is_empty(folder, WORK)) {
        snprintf(error, error_len, "the folder %s is not empty; restore into a new one", folder);
        return false;
    }
    disk_remove(restoring->work);
    return disk_make_folder(restoring->work, error, error_len) &&
           disk_make_folder(restoring->store_path, error, error_len);
}

bool backup_restore(const char *path, const char *folder, int64_t at_ms, struct backup_restored *restored,
                    char *error, size_t error_len)
{
    struct restoring restoring = {
        .lock = -1, .at_ms = at_ms, .restored = restored, .error = error, .error_len = error_len};
    struct target_list bases;
    struct chain chain;
    size_t chosen;
    *restored = (struct backup_restored){0};
    if (!target_check(path, &restoring.paths, error, error_len) ||
        !target_bases(&restoring.paths, &bases, error, error_len))
        return false;
    bool fine = choose_base(&restoring, &bases, path, &chosen, &chain);
    if (fine) {
        const struct target_entry *base = &bases.all[chosen];
        *restored = (struct backup_restored){
            .source = base->source, .number = base->number, .time_ms = base->time_ms};
        restoring.next = base->number + 1;
        fine = prepare_folder(&restoring, folder);
        if (fine) {
            fine = lay_files(&restoring, base) && store_adopt(restoring.work, error, error_len) &&
                   replay(&restoring, &chain) && move_up(&restoring, folder);
            if (!fine) disk_remove(restoring.work);
        }
        if (restoring.lock >= 0) close(restoring.lock);
        chain_free(&chain);
    }
    target_list_free(&bases);
    return fine;
}

struct store *backup_view_open(const char *path, const char *folder, int64_t at_ms,
                               struct backup_restored *restored, char *error, size_t error_len)
{
    struct store_options options = {.folder = folder, .read_only = true, .cache_bytes = CACHE_BYTES};
    if (!backup_restore(path, folder, at_ms, restored, error, error_len)) return NULL;
    struct store *view = store_open_disk(&options, error, error_len);
    if (!view) disk_remove(folder);
    return view;
}

void backup_view_close(struct store *view, const char *folder)
{
    store_close(view);
    disk_remove(folder);
}
