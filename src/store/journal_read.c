/* Reading the log beside its writer: what is synced is not written again, so it can be read without a lock. */
#include <stdio.h>

#include "store/journal_internal.h"

struct reading {
    struct journal_reader reader;
    struct journal *journal;
    struct journal_cursor *cursor;
    struct segment segment; /* that the cursor is in */
    struct buf payload;
    char *error;
    size_t error_len;
};

static enum journal_read reading_failed(const struct reading *reading, const char *what)
{
    char name[SEGMENT_NAME_BYTES];
    segment_name(name, reading->segment.serial);
    snprintf(reading->error, reading->error_len, "%s/%s cannot be read at byte %llu: %s",
             reading->journal->folder, name, (unsigned long long)reading->cursor->at, what);
    return JOURNAL_READ_FAILED;
}

/* The segment with the cursor's serial, or else the one that has its batch. With the lock held. */
static const struct segment *look_up(const struct journal *journal, const struct journal_cursor *cursor)
{
    const struct segment *found = NULL;
    for (size_t i = 0; i < journal->count && i <= journal->current; i++) {
        const struct segment *segment = &journal->segments[i];
        if (segment->serial == cursor->serial) return segment;
        if (segment->first && segment->first <= cursor->number) found = segment;
    }
    return found;
}

/* Finds the cursor's segment. One that was read to its end may be gone, though its next batch is there. */
static enum journal_read find_segment(struct reading *reading)
{
    struct journal *journal = reading->journal;
    struct journal_cursor *cursor = reading->cursor;
    pthread_mutex_lock(&journal->lock);
    const struct segment *found = look_up(journal, cursor);
    if (found) reading->segment = *found;
    if (found) reading->reader.serial = found->serial;
    pthread_mutex_unlock(&journal->lock);
    if (!found) return JOURNAL_READ_GONE;
    if (cursor->serial != reading->segment.serial || !cursor->at) cursor->at = JOURNAL_BLOCK;
    cursor->serial = reading->segment.serial;
    return JOURNAL_READ;
}

static void reading_begin(struct reading *reading)
{
    struct journal *journal = reading->journal;
    pthread_mutex_lock(&journal->lock);
    reading->reader.next = journal->readers;
    journal->readers = &reading->reader;
    pthread_mutex_unlock(&journal->lock);
}

static void reading_end(struct reading *reading)
{
    struct journal *journal = reading->journal;
    pthread_mutex_lock(&journal->lock);
    struct journal_reader **at = &journal->readers;
    while (*at != &reading->reader) at = &(*at)->next;
    *at = reading->reader.next;
    pthread_mutex_unlock(&journal->lock);
    buf_free(&reading->payload);
}

/* The frame at the cursor, whole; it is known to be synced. */
static enum journal_read read_frame(struct reading *reading, struct frame_head *head)
{
    const struct journal_files *files = reading->journal->files;
    const struct segment *segment = &reading->segment;
    uint64_t at = reading->cursor->at;
    char block[JOURNAL_BLOCK];
    if (at + JOURNAL_BLOCK > segment->bytes) return reading_failed(reading, "the segment has no end");
    int failure = files->read(files->self, segment->file, block, sizeof block, at);
    if (failure) return reading_failed(reading, strerror(failure));
    if (!frame_read(block, reading->journal->id, segment->serial, head) ||
        frame_bytes(head->length) > segment->bytes - at)
        return reading_failed(reading, "it is damaged");
    size_t here = head->length < JOURNAL_BLOCK - FRAME_HEAD_BYTES ? head->length
                                                                  : JOURNAL_BLOCK - FRAME_HEAD_BYTES;
    reading->payload.len = 0;
    buf_reserve(&reading->payload, head->length);
    buf_put(&reading->payload, block + FRAME_HEAD_BYTES, here);
    if (head->length > here) {
        failure = files->read(files->self, segment->file, reading->payload.data + here, head->length - here,
                              at + JOURNAL_BLOCK);
        if (failure) return reading_failed(reading, strerror(failure));
        reading->payload.len = head->length;
    }
    if (!frame_payload_is_whole(head, buf_view(&reading->payload)))
        return reading_failed(reading, "it is damaged");
    return JOURNAL_READ;
}

/* Moves the cursor behind the frame. *stopped: by the visitor. */
static enum journal_read take_frame(struct reading *reading, const struct frame_head *head,
                                    journal_visitor *visitor, void *context, bool *stopped)
{
    struct journal_cursor *cursor = reading->cursor;
    if (head->kind == FRAME_BATCH && head->number > cursor->number) return JOURNAL_READ_GONE;
    cursor->at += frame_bytes(head->length);
    if (head->kind == FRAME_END) {
        cursor->serial++;
        cursor->at = JOURNAL_BLOCK;
        return find_segment(reading);
    }
    if (head->kind != FRAME_BATCH || head->number < cursor->number) return JOURNAL_READ;
    struct journal_batch batch = {head->number, head->synced, head->time_ms, buf_view(&reading->payload)};
    cursor->number++;
    *stopped = !visitor(context, &batch);
    return JOURNAL_READ;
}

enum journal_read journal_read(struct journal *journal, struct journal_cursor *cursor,
                               journal_visitor *visitor, void *context, char *error, size_t error_len)
{
    struct reading reading = {.journal = journal, .cursor = cursor, .error = error, .error_len = error_len};
    uint64_t last = journal_synced(journal);
    bool stopped = false;
    enum journal_read result = JOURNAL_READ;
    if (cursor->number > last) return JOURNAL_READ;
    reading_begin(&reading);
    result = find_segment(&reading);
    while (result == JOURNAL_READ && cursor->number <= last && !stopped) {
        struct frame_head head;
        result = read_frame(&reading, &head);
        if (result == JOURNAL_READ) result = take_frame(&reading, &head, visitor, context, &stopped);
    }
    reading_end(&reading);
    return result;
}

uint64_t journal_synced(const struct journal *journal)
{
    return atomic_load_explicit(&journal->published, memory_order_acquire);
}

void journal_keep_from(struct journal *journal, uint64_t number)
{
    pthread_mutex_lock(&journal->lock);
    journal->keep_from = number;
    pthread_mutex_unlock(&journal->lock);
}
