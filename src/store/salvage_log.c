/* Reads the frames of a journal that journal_open may refuse: segment by segment, up to the first frame that is missing
 * or not whole. Batches behind it are left out, for what they change may rest on the one that is missing. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "store/journal_internal.h"
#include "store/salvage.h"

struct log_files {
    char *folder;
    uint64_t *serials;
    size_t count, capacity;
};

struct log_walk {
    struct salvage_log *out;
    journal_visitor *visitor;
    void *context;
    uint64_t id;
    struct buf payload;
    bool has_ended; /* by a frame that is not whole, or is missing */
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void files_find(struct log_files *files)
{
    DIR *directory = opendir(files->folder);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char name[SEGMENT_NAME_BYTES];
        uint64_t serial = strtoull(entry->d_name, NULL, 16);
        segment_name(name, serial);
        if (!serial || strcmp(name, entry->d_name) != 0) continue;
        if (files->count == files->capacity) {
            files->capacity = files->capacity ? files->capacity * 2 : 16;
            files->serials = must_realloc(files->serials, files->capacity * sizeof *files->serials);
        }
        files->serials[files->count++] = serial;
    }
    closedir(directory);
    if (files->count) qsort(files->serials, files->count, sizeof *files->serials, by_value);
}

static bool read_at(int file, void *data, size_t len, uint64_t at)
{
    return pread(file, data, len, (off_t)at) == (ssize_t)len;
}

/* Reads the frame's payload, whose first bytes are in the block. */
static bool read_payload(struct log_walk *walk, int file, const char *block, const struct frame_head *head,
                         uint64_t at)
{
    size_t here = JOURNAL_BLOCK - FRAME_HEAD_BYTES;
    if (head->length < here) here = head->length;
    walk->payload.len = 0;
    buf_reserve(&walk->payload, head->length);
    buf_put(&walk->payload, block + FRAME_HEAD_BYTES, here);
    if (head->length > here) {
        if (!read_at(file, walk->payload.data + here, head->length - here, at + JOURNAL_BLOCK)) return false;
        walk->payload.len = head->length;
    }
    return frame_payload_is_whole(head, buf_view(&walk->payload));
}

/* Visits the frames of a segment; true behind its END. */
static bool walk_segment(struct log_walk *walk, int file, uint64_t serial, uint64_t bytes, uint64_t *at)
{
    char block[JOURNAL_BLOCK];
    struct segment_head begin;
    struct frame_head head;
    *at = 0;
    if (!read_at(file, block, sizeof block, 0) || segment_head_read(block, &begin) != SEGMENT_HEAD_OK ||
        begin.serial != serial || (walk->id && begin.id != walk->id))
        return false;
    walk->id = walk->out->id = begin.id;
    for (*at = JOURNAL_BLOCK; read_at(file, block, sizeof block, *at); *at += frame_bytes(head.length)) {
        if (!frame_read(block, walk->id, serial, &head) || frame_bytes(head.length) > bytes - *at)
            return false;
        if (head.kind == FRAME_END) return true;
        if (head.kind != FRAME_BATCH) continue;
        if (walk->out->last && head.number != walk->out->last + 1) return false;
        if (!read_payload(walk, file, block, &head, *at)) return false;
        if (!walk->out->first) walk->out->first = head.number;
        walk->out->last = head.number;
        struct journal_batch batch = {head.number, head.synced, head.time_ms, buf_view(&walk->payload)};
        if (walk->visitor && !walk->visitor(walk->context, &batch)) return false;
    }
    return false;
}

/* Frames behind the one where the walk has ended still tell how far the log had gone. */
static void scan_segment(struct log_walk *walk, int file, uint64_t serial)
{
    char block[JOURNAL_BLOCK];
    struct segment_head begin;
    struct frame_head head;
    uint64_t id = walk->id;
    if (read_at(file, block, sizeof block, 0) && segment_head_read(block, &begin) == SEGMENT_HEAD_OK)
        id = begin.id;
    if (walk->id && id != walk->id) return;
    if (!walk->out->id) walk->out->id = id;
    for (uint64_t at = JOURNAL_BLOCK; read_at(file, block, sizeof block, at); at += JOURNAL_BLOCK) {
        if (!frame_read(block, id, serial, &head)) continue;
        uint64_t number = head.kind == FRAME_BATCH ? head.number : head.number - 1;
        if (number > walk->out->known) walk->out->known = number;
    }
}

static void walk_file(struct log_walk *walk, const struct log_files *files, size_t i)
{
    struct salvage_log *out = walk->out;
    char name[SEGMENT_NAME_BYTES];
    struct buf path = {0};
    struct stat status = {0};
    uint64_t at = 0;
    segment_name(name, files->serials[i]);
    buf_printf(&path, "%s/%s", files->folder, name);
    buf_byte(&path, '\0');
    bool follows = !i || files->serials[i] == files->serials[i - 1] + 1;
    int file = open(path.data, O_RDONLY | O_CLOEXEC);
    if (file >= 0) fstat(file, &status);
    uint64_t bytes = (uint64_t)status.st_size;
    if (walk->has_ended) {
        out->left_bytes += bytes;
    } else if (!follows || !(file >= 0 && walk_segment(walk, file, files->serials[i], bytes, &at))) {
        walk->has_ended = true;
        out->left_bytes = bytes - (at < bytes ? at : bytes);
        if (follows)
            snprintf(out->words, sizeof out->words, "%.400s cannot be read from byte %llu on", path.data,
                     (unsigned long long)at);
        else
            snprintf(out->words, sizeof out->words, "the segment before %.400s is missing", path.data);
    }
    if (out->known < out->last) out->known = out->last;
    if (file >= 0 && walk->has_ended) scan_segment(walk, file, files->serials[i]);
    if (file >= 0) close(file);
    buf_free(&path);
}

void salvage_log_read(const char *folder, struct salvage_log *out, journal_visitor *visitor, void *context)
{
    struct log_files files = {.folder = strdup(folder)};
    struct log_walk walk = {.out = out, .visitor = visitor, .context = context};
    char words[512];
    ensure(files.folder);
    *out = (struct salvage_log){0};
    files_find(&files);
    for (size_t i = 0; i < files.count; i++) walk_file(&walk, &files, i);
    /* Whether the end that was found is the log's own, the journal itself knows. */
    struct journal *journal = journal_open(&(struct journal_options){.folder = folder, .read_only = true},
                                           words, sizeof words);
    uint64_t last = journal && journal_last(journal) >= journal_first(journal) ? journal_last(journal) : 0;
    out->is_whole = journal && last == out->last;
    if (!journal) snprintf(out->words, sizeof out->words, "%s", words);
    if (journal) journal_close(journal);
    buf_free(&walk.payload);
    free(files.serials);
    free(files.folder);
}

bool salvage_log_fits(const struct salvage_log *log, uint64_t tables)
{
    return log->last && log->first <= tables + 1 && log->last >= tables;
}
