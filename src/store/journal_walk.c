/* Reading segments: frame after frame, and the judgement of where the log ends (S7). */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "store/journal_internal.h"

#define SCAN_BYTES (1024 * 1024)

static bool read_at(struct journal *journal, const struct segment *segment, void *data, size_t len,
                    uint64_t at)
{
    char name[SEGMENT_NAME_BYTES];
    int failure = journal->files->read(journal->files->self, segment->file, data, len, at);
    if (!failure) return true;
    segment_name(name, segment->serial);
    return journal_fail(journal, "%s/%s cannot be read at byte %llu: %s", journal->folder, name,
                        (unsigned long long)at, strerror(failure));
}

static bool damaged(struct journal *journal, const struct walk *walk, const char *what)
{
    char name[SEGMENT_NAME_BYTES];
    segment_name(name, walk->segment->serial);
    return journal_fail(journal, "%s/%s is damaged at byte %llu: %s", journal->folder, name,
                        (unsigned long long)walk->at, what);
}

/* The frame at walk->at; its payload is appended to *payload. A frame that is not whole is FRAME_NONE. */
static bool read_frame(struct journal *journal, const struct walk *walk, struct frame_head *head,
                       struct buf *payload)
{
    const struct segment *segment = walk->segment;
    char block[JOURNAL_BLOCK];
    *head = (struct frame_head){.kind = FRAME_NONE};
    payload->len = 0;
    if (walk->at + JOURNAL_BLOCK > segment->bytes) return true;
    if (!read_at(journal, segment, block, sizeof block, walk->at)) return false;
    if (!frame_read(block, journal->id, segment->serial, head) ||
        frame_bytes(head->length) > segment->bytes - walk->at) {
        head->kind = FRAME_NONE;
        return true;
    }
    size_t here = JOURNAL_BLOCK - FRAME_HEAD_BYTES;
    buf_put(payload, block + FRAME_HEAD_BYTES, head->length < here ? head->length : here);
    if (head->length > here) {
        buf_reserve(payload, head->length - here);
        if (!read_at(journal, segment, payload->data + here, head->length - here, walk->at + JOURNAL_BLOCK))
            return false;
        payload->len = head->length;
    }
    if (!frame_payload_is_whole(head, buf_view(payload))) head->kind = FRAME_NONE;
    return true;
}

/* A frame that is whole; true: the walk goes on. */
static bool take_frame(struct journal *journal, struct walk *walk, const struct frame_head *head,
                       struct slice payload, enum walk_end *end)
{
    *end = WALK_FAILED;
    /* Behind an END numbers may go on with a later one: see journal_skip_to. */
    if (head->kind == FRAME_END && head->number > walk->next) walk->next = head->number;
    if (head->number != walk->next) {
        char what[128];
        snprintf(what, sizeof what, "the batch %llu was expected, but the next one is %llu",
                 (unsigned long long)walk->next, (unsigned long long)head->number);
        return damaged(journal, walk, what);
    }
    if (head->synced + 1 >= head->number) {
        walk->doubt_at = walk->at;
        walk->doubt_number = head->number;
    }
    walk->at += frame_bytes(head->length);
    walk->is_closed = head->kind == FRAME_CLOSE;
    if (head->kind == FRAME_END) *end = WALK_END;
    if (head->kind != FRAME_BATCH) return head->kind == FRAME_CLOSE;
    walk->next++;
    walk->time_ms = head->time_ms;
    struct journal_batch batch = {head->number, head->synced, head->time_ms, payload};
    *end = WALK_STOPPED;
    return !walk->visit || head->number < walk->from || walk->visit(walk->context, &batch);
}

enum walk_end journal_walk(struct journal *journal, struct walk *walk)
{
    struct buf payload = {0};
    struct frame_head head;
    enum walk_end end = WALK_FAILED;
    walk->at = walk->doubt_at = JOURNAL_BLOCK;
    walk->doubt_number = walk->next;
    walk->is_closed = false;
    while (read_frame(journal, walk, &head, &payload)) {
        if (head.kind == FRAME_NONE) end = WALK_TORN;
        if (head.kind == FRAME_NONE || !take_frame(journal, walk, &head, buf_view(&payload), &end)) break;
        end = WALK_FAILED;
    }
    buf_free(&payload);
    return end;
}

bool journal_walk_is_end(struct journal *journal, struct walk *walk)
{
    const struct segment *segment = walk->segment;
    char *blocks = must_alloc(SCAN_BYTES);
    struct frame_head head;
    bool is_end = true;
    for (uint64_t at = walk->at; is_end && at < segment->bytes; at += SCAN_BYTES) {
        size_t len = segment->bytes - at < SCAN_BYTES ? (size_t)(segment->bytes - at) : SCAN_BYTES;
        is_end = read_at(journal, segment, blocks, len, at);
        for (size_t i = 0; is_end && i + JOURNAL_BLOCK <= len; i += JOURNAL_BLOCK) {
            if (!frame_read(blocks + i, journal->id, segment->serial, &head)) continue;
            walk->has_remains = true;
            if (head.synced < walk->next) continue;
            char what[160];
            snprintf(what, sizeof what, "the batch %llu is not whole, but all up to %llu had been synced",
                     (unsigned long long)walk->next, (unsigned long long)head.synced);
            is_end = damaged(journal, walk, what);
        }
    }
    free(blocks);
    return is_end;
}

bool journal_first_number(struct journal *journal, const struct segment *segment, uint64_t *number)
{
    char block[JOURNAL_BLOCK];
    struct frame_head head;
    *number = 0;
    if (segment->bytes < 2 * JOURNAL_BLOCK) return true;
    if (!read_at(journal, segment, block, sizeof block, JOURNAL_BLOCK)) return false;
    if (frame_read(block, journal->id, segment->serial, &head)) *number = head.number;
    return true;
}
