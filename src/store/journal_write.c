/* Appending, and the life of segments.
 *
 * A segment is made under another name: filled with zeros, or an older one with a new head, synced, renamed, and the
 * folder is synced. The writer begins it when END stands in the one before and is synced. When nobody needs its batches
 * any more it is kept to be used again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "store/journal_internal.h"

#define FILL_BYTES       (1024 * 1024)
#define FRAME_ROOM_BYTES ((size_t)1024 * 1024)
#define FIRST_BYTES                                                                                          \
    (1024 * 1024) /* of the first segment: a new folder is ready at once; each is twice the last */

static enum journal_result failed(struct journal *journal, const char *what, int failure)
{
    char name[SEGMENT_NAME_BYTES];
    segment_name(name, journal->active.serial);
    journal_fail(journal, "%s/%s cannot be %s: %s", journal->folder, name, what, strerror(failure));
    journal->failed = true;
    return JOURNAL_FAILED;
}

void journal_is_synced(struct journal *journal, uint64_t number)
{
    journal->synced = number;
    atomic_store_explicit(&journal->published, number, memory_order_release);
}

/* ---- making segments ---- */

static int fill(const struct journal_files *files, int file, uint64_t bytes)
{
    char *zeros = must_zero(1, FILL_BYTES);
    int failure = 0;
    for (uint64_t at = 0; !failure && at < bytes; at += FILL_BYTES) {
        size_t len = bytes - at < FILL_BYTES ? (size_t)(bytes - at) : FILL_BYTES;
        failure = files->write(files->self, file, zeros, len, at);
    }
    free(zeros);
    return failure;
}

/* By the file NEXT_NAME, which may be there with an older segment's bytes. */
static int make_segment(struct journal *journal, struct segment *segment)
{
    const struct journal_files *files = journal->files;
    struct buf head = {0};
    char name[SEGMENT_NAME_BYTES];
    uint64_t bytes;
    int failure = files->open(files->self, NEXT_NAME, true, true, &segment->file, &bytes);
    if (failure) return failure;
    if (bytes != segment->bytes) failure = fill(files, segment->file, segment->bytes);
    segment_head_put(&head, &(struct segment_head){journal->id, segment->serial, segment->bytes});
    if (!failure) failure = files->write(files->self, segment->file, head.data, head.len, 0);
    if (!failure) failure = files->sync(files->self, segment->file);
    segment_name(name, segment->serial);
    if (!failure) failure = files->rename(files->self, NEXT_NAME, name);
    if (!failure) failure = files->sync_folder(files->self);
    buf_free(&head);
    if (!failure) return 0;
    files->close(files->self, segment->file);
    files->remove(files->self, NEXT_NAME);
    return failure;
}

/* How large the next segment should be, with room for so much. Takes a spare for it where one is large enough: that is
 * the file NEXT_NAME then. With the lock held. */
static uint64_t choose_bytes(struct journal *journal, uint64_t room)
{
    const struct journal_files *files = journal->files;
    uint64_t least = room + 2 * JOURNAL_BLOCK; /* its head, and END */
    while (journal->spare_count) {
        size_t i = --journal->spare_count;
        if (journal->spares[i].bytes >= least &&
            files->rename(files->self, journal->spares[i].name, NEXT_NAME) == 0)
            return journal->spares[i].bytes;
        files->remove(files->self, journal->spares[i].name);
    }
    uint64_t bytes = journal->count ? journal->segments[journal->count - 1].bytes * 2 : FIRST_BYTES;
    if (bytes > journal->segment_bytes) bytes = journal->segment_bytes;
    return bytes > least ? bytes : least;
}

static bool is_full_disk(int failure)
{
    return failure == ENOSPC || failure == EDQUOT || failure == EFBIG;
}

/* Makes the segment behind the last one, whoever asks first. With the lock held, which is released meanwhile. */
static int make_next(struct journal *journal, uint64_t room)
{
    struct segment segment = {.serial = journal->count ? journal->segments[journal->count - 1].serial + 1
                                                       : 1};
    journal->is_preparing = true;
    segment.bytes = choose_bytes(journal, room);
    pthread_mutex_unlock(&journal->lock);
    int failure = make_segment(journal, &segment);
    uint64_t small = room + 2 * JOURNAL_BLOCK > FIRST_BYTES ? room + 2 * JOURNAL_BLOCK : FIRST_BYTES;
    if (failure && is_full_disk(failure) && segment.bytes > small) {
        segment.bytes = small;
        failure = make_segment(journal, &segment);
    }
    pthread_mutex_lock(&journal->lock);
    journal->is_preparing = false;
    pthread_cond_broadcast(&journal->prepared);
    if (failure) return failure;
    journal->segments = must_realloc(journal->segments, (journal->count + 1) * sizeof segment);
    journal->segments[journal->count++] = segment;
    return 0;
}

/* Whether a segment behind the active one has so much room. */
static bool has_next(const struct journal *journal, uint64_t room)
{
    for (size_t i = journal->active.serial ? journal->current + 1 : 0; i < journal->count; i++)
        if (journal->segments[i].bytes >= room + 2 * JOURNAL_BLOCK) return true;
    return false;
}

bool journal_prepare(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    bool made = journal->is_preparing || has_next(journal, 0) || make_next(journal, 0) == 0;
    pthread_mutex_unlock(&journal->lock);
    return made;
}

/* ---- appending ---- */

static void begin_frame(struct journal *journal, uint64_t bytes)
{
    journal->frame.len = 0;
    if (journal->frame.cap >= bytes) return;
    buf_free(&journal->frame);
    journal->frame.cap = bytes > FRAME_ROOM_BYTES ? (size_t)bytes : FRAME_ROOM_BYTES;
    journal->frame.data = must_align(JOURNAL_BLOCK, journal->frame.cap);
}

void journal_end_direct(struct journal *journal)
{
    if (journal->direct.serial && journal->direct.file >= 0)
        journal->files->close(journal->files->self, journal->direct.file);
    journal->direct.file = -1;
}

/* Past the system's cache where it has such a way: the frame is not copied, and need not be looked for to be synced.
 * That it has none may only be seen at the first write. */
static int write_alone(struct journal *journal)
{
    const struct journal_files *files = journal->files;
    char name[SEGMENT_NAME_BYTES];
    if (journal->direct.serial != journal->active.serial) {
        journal_end_direct(journal);
        segment_name(name, journal->active.serial);
        if (files->open_direct(files->self, name, &journal->direct.file) != 0) journal->direct.file = -1;
        journal->direct.serial = journal->active.serial;
    }
    if (journal->direct.file >= 0) {
        int failure = files->write_durable(files->self, journal->direct.file, journal->frame.data,
                                           journal->frame.len, journal->at);
        if (failure != EINVAL) return failure;
        journal_end_direct(journal);
    }
    return files->write_durable(files->self, journal->active.file, journal->frame.data, journal->frame.len,
                                journal->at);
}

static int write_mark(struct journal *journal, enum frame_kind kind)
{
    const struct journal_files *files = journal->files;
    struct frame_head head = {.kind = kind,
                              .id = journal->id,
                              .serial = journal->active.serial,
                              .number = journal->next,
                              .synced = journal->synced};
    begin_frame(journal, frame_bytes(0));
    frame_put(&journal->frame, &head, SLICE_NONE);
    int failure = files->write(files->self, journal->active.file, journal->frame.data, journal->frame.len,
                               journal->at);
    journal->at += journal->frame.len;
    return failure ? failure : files->sync(files->self, journal->active.file);
}

/* Goes on in the next segment, when that or one behind it has so much room: else the prepared one stays for smaller
 * batches. */
static enum journal_result switch_segment(struct journal *journal, uint64_t room)
{
    int failure = 0;
    pthread_mutex_lock(&journal->lock);
    while (journal->is_preparing) pthread_cond_wait(&journal->prepared, &journal->lock);
    if (!has_next(journal, room)) failure = make_next(journal, room);
    pthread_mutex_unlock(&journal->lock);
    if (failure && is_full_disk(failure)) {
        journal_fail(journal, "%s: there is no room for the next segment: %s", journal->folder,
                     strerror(failure));
        return JOURNAL_FULL;
    }
    if (failure) return failed(journal, "followed by another segment", failure);
    if (journal->active.serial) {
        /* Without a CLOSE before it nothing was left unsynced by this writer but what it has written itself. */
        failure = journal->files->sync(journal->files->self, journal->active.file);
        if (failure) return failed(journal, "synced", failure);
        journal_is_synced(journal, journal->next - 1);
        failure = write_mark(journal, FRAME_END);
        if (failure) return failed(journal, "written", failure);
    }
    pthread_mutex_lock(&journal->lock);
    if (journal->active.serial) journal->current++;
    journal->active = journal->segments[journal->current];
    pthread_mutex_unlock(&journal->lock);
    journal->at = JOURNAL_BLOCK;
    journal->must_switch = journal->has_asked = false;
    return JOURNAL_OK;
}

static void began(struct journal *journal)
{
    pthread_mutex_lock(&journal->lock);
    journal->active.first = journal->segments[journal->current].first = journal->next;
    pthread_mutex_unlock(&journal->lock);
}

enum journal_result journal_begin(struct journal *journal, size_t payload_len)
{
    enum journal_result result = journal->failed ? JOURNAL_FAILED : JOURNAL_OK;
    ensure(journal->is_settled && payload_len <= FRAME_PAYLOAD_MOST);
    while (result == JOURNAL_OK && !journal->active.serial)
        result = switch_segment(journal, frame_bytes((uint32_t)payload_len));
    return result;
}

enum journal_result journal_append(struct journal *journal, struct slice payload, int64_t time_ms,
                                   bool durable)
{
    const struct journal_files *files = journal->files;
    ensure(journal->is_settled && payload.len <= FRAME_PAYLOAD_MOST);
    if (journal->failed) return JOURNAL_FAILED;
    uint64_t room = frame_bytes((uint32_t)payload.len);
    while (!journal->active.serial || journal->must_switch ||
           journal->at + room + JOURNAL_BLOCK > journal->active.bytes) {
        enum journal_result result = switch_segment(journal, room);
        if (result != JOURNAL_OK) return result;
    }
    if (time_ms > journal->last_ms) journal->last_ms = time_ms;
    struct frame_head head = {.kind = FRAME_BATCH,
                              .id = journal->id,
                              .serial = journal->active.serial,
                              .number = journal->next,
                              .synced = journal->synced,
                              .time_ms = journal->last_ms};
    begin_frame(journal, room);
    frame_put(&journal->frame, &head, payload);
    bool alone = durable && journal->synced == journal->next - 1;
    int failure = alone ? write_alone(journal)
                        : files->write(files->self, journal->active.file, journal->frame.data,
                                       journal->frame.len, journal->at);
    if (failure) return failed(journal, "written", failure);
    if (!journal->active.first) began(journal);
    journal->at += journal->frame.len;
    journal->has_closed = false;
    if (alone) journal_is_synced(journal, journal->next);
    journal->next++;
    return durable && !alone ? journal_sync(journal) : JOURNAL_OK;
}

enum journal_result journal_sync(struct journal *journal)
{
    if (journal->failed) return JOURNAL_FAILED;
    if (journal->synced == journal->next - 1) return JOURNAL_OK;
    int failure = journal->files->sync(journal->files->self, journal->active.file);
    if (failure) return failed(journal, "synced", failure);
    journal_is_synced(journal, journal->next - 1);
    return JOURNAL_OK;
}

bool journal_wants_next(struct journal *journal)
{
    if (journal->has_asked || journal->at * 2 < journal->active.bytes) return false;
    return journal->has_asked = true;
}

void journal_skip_to(struct journal *journal, uint64_t number)
{
    ensure(number > journal->next);
    journal->next = number;
    journal_is_synced(journal, number - 1);
    journal->must_switch = true;
}

void journal_end(struct journal *journal)
{
    bool is_open = journal->is_settled && !journal->failed && journal->active.serial && !journal->must_switch;
    if (!is_open || journal->has_closed || journal_sync(journal) != JOURNAL_OK) return;
    /* The last block is for END. A log that is not closed is no worse, only slower to open. */
    if (journal->at + 2 * JOURNAL_BLOCK <= journal->active.bytes) write_mark(journal, FRAME_CLOSE);
}

/* ---- what is needed no more ---- */

/* The folder is synced before the next one goes, so that what a power cut brings back is never behind a gap. */
static bool retire(struct journal *journal, const struct segment *segment)
{
    const struct journal_files *files = journal->files;
    char name[SEGMENT_NAME_BYTES], spare[SEGMENT_NAME_BYTES];
    segment_name(name, segment->serial);
    snprintf(spare, sizeof spare, SPARE_NAME, journal->spare_count);
    bool kept = journal->spare_count < SPARES_MOST && segment->bytes >= journal->segment_bytes;
    int failure = kept ? files->rename(files->self, name, spare) : files->remove(files->self, name);
    if (failure || files->sync_folder(files->self)) return false;
    if (kept) {
        snprintf(journal->spares[journal->spare_count].name, sizeof spare, "%s", spare);
        journal->spares[journal->spare_count++].bytes = segment->bytes;
    }
    files->close(files->self, segment->file);
    return true;
}

static bool is_read(const struct journal *journal, uint64_t serial)
{
    for (const struct journal_reader *reader = journal->readers; reader; reader = reader->next)
        if (reader->serial == serial) return true;
    return false;
}

void journal_release(struct journal *journal, uint64_t number)
{
    uint64_t synced = journal_synced(journal);
    pthread_mutex_lock(&journal->lock);
    if (number >= journal->keep_from) number = journal->keep_from - 1;
    /* The number of the next batch must not be forgotten: one with a batch in it is always left, on disk. */
    if (number >= synced) number = synced ? synced - 1 : 0;
    while (journal->current && journal->segments[1].first && journal->segments[1].first <= number + 1 &&
           !is_read(journal, journal->segments[0].serial) && retire(journal, &journal->segments[0])) {
        memmove(journal->segments, journal->segments + 1, (journal->count - 1) * sizeof *journal->segments);
        journal->count--;
        journal->current--;
    }
    pthread_mutex_unlock(&journal->lock);
}

uint64_t journal_bytes(const struct journal *journal)
{
    struct journal *own = (struct journal *)(uintptr_t)journal;
    uint64_t bytes = 0;
    pthread_mutex_lock(&own->lock);
    for (size_t i = 0; i <= journal->current && i < journal->count; i++) bytes += journal->segments[i].bytes;
    pthread_mutex_unlock(&own->lock);
    return bytes;
}
