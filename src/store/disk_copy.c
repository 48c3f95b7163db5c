/* Copies of a store on disk: its log read beside the writer, its files linked elsewhere, and a folder made of them. */
#include <stdio.h>
#include <stdlib.h>

#include "store/disk.h"
#include "store/folder.h"
#include "store/rocks.h"

uint64_t store_log_id(struct store *store)
{
    struct journal *journal = disk_journal(store);
    return journal ? journal_id(journal) : 0;
}

uint64_t store_log_first(struct store *store)
{
    return journal_first(disk_journal(store));
}

uint64_t store_log_synced(struct store *store)
{
    return journal_synced(disk_journal(store));
}

struct visit {
    store_log_visitor visitor;
    void *context;
};

static bool visit_one(void *context, const struct journal_batch *batch)
{
    struct visit *visit = context;
    struct store_log_batch own = {batch->number, batch->time_ms, batch->payload};
    return visit->visitor(visit->context, &own);
}

enum store_result store_log_read(struct store *store, struct store_log_cursor *cursor,
                                 store_log_visitor visitor, void *context, char *error, size_t error_len)
{
    struct visit visit = {visitor, context};
    struct journal_cursor own = {cursor->number, cursor->segment, cursor->at};
    enum journal_read result = journal_read(disk_journal(store), &own, visit_one, &visit, error, error_len);
    *cursor = (struct store_log_cursor){own.number, own.serial, own.at};
    switch (result) {
    case JOURNAL_READ: return STORE_OK;
    case JOURNAL_READ_GONE: return STORE_MISSING;
    case JOURNAL_READ_FAILED: break;
    }
    return STORE_FAILED;
}

void store_log_keep_from(struct store *store, uint64_t number)
{
    journal_keep_from(disk_journal(store), number);
}

bool store_files_number(const char *path, uint64_t *number, char *error, size_t error_len)
{
    struct rocks_options options = {
        .folder = path, .path = path, .read_only = true, .cache_bytes = 1024 * 1024};
    struct rocks_mark mark;
    struct store *files = rocks_open(&options, error, error_len);
    if (!files) return false;
    bool read = rocks_mark_on_disk(files, &mark);
    if (!read) snprintf(error, error_len, "%s", files->error);
    *number = mark.number;
    store_close(files);
    return read;
}

bool store_checkpoint(struct store *store, const char *path, uint64_t *number, char *error, size_t error_len)
{
    return rocks_checkpoint(disk_rocks(store), path, error, error_len) &&
           store_files_number(path, number, error, error_len);
}

bool store_adopt(const char *folder, char *error, size_t error_len)
{
    struct buf path = {0};
    buf_printf(&path, "%s/store", folder);
    buf_byte(&path, '\0');
    if (!folder_is_store(path.data)) {
        snprintf(error, error_len, "the folder %s has no files of a store", folder);
        buf_free(&path);
        return false;
    }
    struct rocks_options options = {.folder = folder, .path = path.data, .cache_bytes = 1024 * 1024};
    struct store *files = rocks_open(&options, error, error_len);
    buf_free(&path);
    if (!files) return false;
    bool marked = disk_begin_log(files, error, error_len);
    store_close(files);
    return marked && folder_make_ours(folder, error, error_len);
}
