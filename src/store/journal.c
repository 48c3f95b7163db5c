/* Opening the commit log: which segments there are, and where the log ends. journal_write.c tells how segments come
 * into being: a file that has a segment's name has its head and its size, whatever happened. All else is damage. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"
#include "store/journal_internal.h"

#define SEGMENT_SUFFIX ".journal"
#define NEW_SUFFIX     ".new"
#define AGAIN_BYTES    (1024 * 1024) /* written at once */

bool journal_fail(struct journal *journal, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(journal->error, sizeof journal->error, format, args);
    va_end(args);
    return false;
}

void segment_name(char out[SEGMENT_NAME_BYTES], uint64_t serial)
{
    snprintf(out, SEGMENT_NAME_BYTES, "%016llx" SEGMENT_SUFFIX, (unsigned long long)serial);
}

static bool fail_file(struct journal *journal, const char *name, const char *what, int failure)
{
    return journal_fail(journal, "%s/%s %s: %s", journal->folder, name, what, strerror(failure));
}

/* ---- opening ---- */

struct listing {
    struct journal *journal;
    char other[SEGMENT_NAME_BYTES]; /* a file that is none of ours */
};

static bool name_ends(struct slice name, struct slice suffix)
{
    return name.len >= suffix.len && slice_equal(slice_from(name, name.len - suffix.len), suffix);
}

static void found_file(void *context, const char *name)
{
    struct listing *listing = context;
    struct journal *journal = listing->journal;
    unsigned long long serial;
    char expected[SEGMENT_NAME_BYTES];
    if (sscanf(name, "%16llx", &serial) == 1) {
        segment_name(expected, serial);
        if (!strcmp(name, expected)) {
            journal->segments = must_realloc(journal->segments,
                                             (journal->count + 1) * sizeof *journal->segments);
            journal->segments[journal->count++] = (struct segment){.serial = serial, .file = -1};
            return;
        }
    }
    if (!name_ends(slice_of(name), SLICE(NEW_SUFFIX)))
        snprintf(listing->other, sizeof listing->other, "%s", name);
}

static int by_serial(const void *a, const void *b)
{
    uint64_t x = ((const struct segment *)a)->serial, y = ((const struct segment *)b)->serial;
    return (x > y) - (x < y);
}

static bool find_segments(struct journal *journal)
{
    struct listing listing = {.journal = journal};
    int failure = journal->files->list(journal->files->self, found_file, &listing);
    if (failure) return journal_fail(journal, "%s cannot be read: %s", journal->folder, strerror(failure));
    if (listing.other[0])
        return journal_fail(journal, "%s/%s is no file of a journal", journal->folder, listing.other);
    if (journal->count) qsort(journal->segments, journal->count, sizeof *journal->segments, by_serial);
    for (size_t i = 1; i < journal->count; i++) {
        uint64_t missing = journal->segments[i - 1].serial + 1;
        if (journal->segments[i].serial == missing) continue;
        char name[SEGMENT_NAME_BYTES];
        segment_name(name, missing);
        return journal_fail(journal, "%s/%s is missing", journal->folder, name);
    }
    return true;
}

static bool open_segment(struct journal *journal, struct segment *segment)
{
    char block[JOURNAL_BLOCK], name[SEGMENT_NAME_BYTES];
    struct segment_head head;
    uint64_t bytes;
    const struct journal_files *files = journal->files;
    segment_name(name, segment->serial);
    int failure = files->open(files->self, name, false, !journal->read_only, &segment->file, &bytes);
    if (failure) {
        segment->file = -1;
        return fail_file(journal, name, "cannot be opened", failure);
    }
    if (bytes < JOURNAL_BLOCK)
        return journal_fail(journal, "%s/%s is damaged: it is cut off", journal->folder, name);
    failure = files->read(files->self, segment->file, block, sizeof block, 0);
    if (failure) return fail_file(journal, name, "cannot be read", failure);
    enum segment_head_result result = segment_head_read(block, &head);
    if (result == SEGMENT_HEAD_NEWER)
        return journal_fail(journal, "%s/%s was written by a newer version of quipu", journal->folder, name);
    if (result != SEGMENT_HEAD_OK || head.serial != segment->serial)
        return journal_fail(journal, "%s/%s is damaged: its first block is none of this segment",
                            journal->folder, name);
    if (journal->id && head.id != journal->id)
        return journal_fail(journal, "%s/%s belongs to another journal", journal->folder, name);
    if (head.bytes != bytes)
        return journal_fail(journal, "%s/%s is damaged: it has %llu bytes, and had %llu", journal->folder,
                            name, (unsigned long long)bytes, (unsigned long long)head.bytes);
    journal->id = head.id;
    segment->bytes = bytes;
    return journal_first_number(journal, segment, &segment->first);
}

/* Walks the newest segment with batches, and the one behind its END. */
static bool find_end(struct journal *journal)
{
    size_t newest = journal->count;
    while (newest && !journal->segments[newest - 1].first) newest--;
    journal->current = newest ? newest - 1 : 0;
    struct walk walk = {.segment = &journal->segments[journal->current], .next = journal->next};
    if (newest) walk.next = walk.segment->first;
    enum walk_end end = journal_walk(journal, &walk);
    journal->doubt.file = walk.segment->file;
    journal->doubt.from = walk.doubt_at;
    journal->doubt.to = walk.at;
    journal->doubt.number = walk.doubt_number;
    if (end == WALK_END) {
        if (newest == journal->count) {
            char name[SEGMENT_NAME_BYTES];
            segment_name(name, walk.segment->serial + 1);
            return journal_fail(journal, "%s/%s is missing, and with it what was written from batch %llu on",
                                journal->folder, name, (unsigned long long)walk.next);
        }
        walk.segment = &journal->segments[++journal->current];
        end = journal_walk(journal, &walk);
    }
    if (end == WALK_FAILED || !journal_walk_is_end(journal, &walk)) return false;
    journal->next = walk.next;
    journal_is_synced(journal, walk.next - 1);
    journal->last_ms = walk.time_ms;
    journal->at = walk.at;
    journal->has_closed = walk.is_closed;
    journal->must_switch = walk.has_remains;
    journal->active = *walk.segment;
    return true;
}

/* What was being prepared, or was kept to be used again. */
static void remove_strays(struct journal *journal)
{
    char name[SEGMENT_NAME_BYTES];
    journal->files->remove(journal->files->self, NEXT_NAME);
    for (size_t i = 0; i < SPARES_MOST; i++) {
        snprintf(name, sizeof name, SPARE_NAME, i);
        journal->files->remove(journal->files->self, name);
    }
}

static bool open_all(struct journal *journal)
{
    if (!find_segments(journal)) return false;
    if (!journal->read_only) remove_strays(journal);
    for (size_t i = 0; i < journal->count; i++)
        if (!open_segment(journal, &journal->segments[i])) return false;
    return !journal->count || find_end(journal);
}

static void journal_free(struct journal *journal)
{
    const struct journal_files *files = journal->files;
    for (size_t i = 0; i < journal->count; i++)
        if (journal->segments[i].file >= 0) files->close(files->self, journal->segments[i].file);
    journal_end_direct(journal);
    free(journal->segments);
    free(journal->folder);
    buf_free(&journal->frame);
    pthread_mutex_destroy(&journal->lock);
    pthread_cond_destroy(&journal->prepared);
    if (journal->owns_files) journal_system_files_free(files);
    free(journal);
}

struct journal *journal_open(const struct journal_options *options, char *error, size_t error_len)
{
    const struct journal_files *files = options->files ? options->files
                                                       : journal_system_files(options->folder);
    if (!files) {
        snprintf(error, error_len, "%s cannot be read: %s", options->folder, strerror(errno));
        return NULL;
    }
    struct journal *journal = must_zero(1, sizeof *journal);
    journal->files = files;
    journal->owns_files = !options->files;
    journal->folder = strdup(options->folder);
    ensure(journal->folder);
    journal->read_only = options->read_only;
    journal->segment_bytes = options->segment_bytes ? options->segment_bytes : LIMIT_SEGMENT_BYTES;
    journal->next = options->next ? options->next : 1;
    journal_is_synced(journal, journal->next - 1);
    journal->keep_from = UINT64_MAX;
    ensure(pthread_mutex_init(&journal->lock, NULL) == 0 && pthread_cond_init(&journal->prepared, NULL) == 0);
    if (open_all(journal)) {
        if (!journal->id) journal->id = options->id;
        return journal;
    }
    snprintf(error, error_len, "%s", journal->error);
    journal_free(journal);
    return NULL;
}

/* Where the sync of a batch failed the system takes its pages for clean: they can be seen, no later sync writes them,
 * and a power cut takes them away. So they are written once more. */
static int write_again(const struct journal *journal)
{
    const struct journal_files *files = journal->files;
    char *bytes = must_alloc(AGAIN_BYTES);
    int failure = 0;
    for (uint64_t at = journal->doubt.from, len; !failure && at < journal->doubt.to; at += len) {
        len = journal->doubt.to - at < AGAIN_BYTES ? journal->doubt.to - at : AGAIN_BYTES;
        failure = files->read(files->self, journal->doubt.file, bytes, (size_t)len, at);
        if (!failure) failure = files->write(files->self, journal->doubt.file, bytes, (size_t)len, at);
    }
    free(bytes);
    return failure;
}

uint64_t journal_unsettled(const struct journal *journal)
{
    return journal->is_settled ? UINT64_MAX : journal->doubt.number;
}

bool journal_settle(struct journal *journal)
{
    const struct journal_files *files = journal->files;
    ensure(!journal->read_only && !journal->is_settled);
    int failure = journal->count ? files->sync_folder(files->self) : 0;
    if (!failure) failure = write_again(journal);
    for (size_t i = 0; !failure && i < journal->count; i++)
        failure = files->sync(files->self, journal->segments[i].file);
    journal->is_settled = !failure;
    return !failure || journal_fail(journal, "%s cannot be synced: %s", journal->folder, strerror(failure));
}

void journal_close(struct journal *journal)
{
    journal_end(journal);
    journal_free(journal);
}

void journal_abandon(struct journal *journal)
{
    journal_free(journal);
}

/* ---- what is there ---- */

uint64_t journal_id(const struct journal *journal)
{
    return journal->id;
}

bool journal_is_new(const struct journal *journal)
{
    return !journal->count;
}

bool journal_has_lost_last(const struct journal *journal)
{
    for (size_t i = 0; i < journal->count; i++)
        if (journal->segments[i].first) return false;
    return journal->count && journal->segments[0].serial > 1;
}

uint64_t journal_first(const struct journal *journal)
{
    struct journal *own = (struct journal *)(uintptr_t)journal;
    pthread_mutex_lock(&own->lock);
    uint64_t first = journal->count ? journal->segments[0].first : 0;
    pthread_mutex_unlock(&own->lock);
    return first ? first : journal_synced(journal) + 1;
}

uint64_t journal_last(const struct journal *journal)
{
    return journal->next - 1;
}

const char *journal_error(const struct journal *journal)
{
    return journal->error;
}

bool journal_replay(struct journal *journal, uint64_t from, journal_visitor *visitor, void *context)
{
    if (from >= journal->next) return true;
    if (from < journal_first(journal))
        return journal_fail(journal, "%s: the batches %llu to %llu are missing", journal->folder,
                            (unsigned long long)from, (unsigned long long)journal_first(journal) - 1);
    size_t i = journal->current;
    while (i && (!journal->segments[i].first || journal->segments[i].first > from)) i--;
    struct walk walk = {
        .next = journal->segments[i].first, .from = from, .visit = visitor, .context = context};
    for (; i <= journal->current; i++) {
        walk.segment = &journal->segments[i];
        enum walk_end end = journal_walk(journal, &walk);
        if (end == WALK_STOPPED) return true;
        if (end == WALK_FAILED) return false;
        if (end == WALK_TORN && i < journal->current) {
            char name[SEGMENT_NAME_BYTES];
            segment_name(name, walk.segment->serial);
            return journal_fail(journal, "%s/%s is damaged at byte %llu: the batch %llu is not whole",
                                journal->folder, name, (unsigned long long)walk.at,
                                (unsigned long long)walk.next);
        }
    }
    return walk.next == journal->next ||
           journal_fail(journal, "%s: the batches %llu to %llu are missing", journal->folder,
                        (unsigned long long)walk.next, (unsigned long long)journal->next - 1);
}
