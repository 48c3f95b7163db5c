/* Records: from GetRecords' form to Lambda's, and to their lanes.
 *
 * They differ in little: Lambda adds the stream's ARN and writes the members of userIdentity in lower
 * case. So an event is the record's own text with a member more; nothing is decoded and written anew. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "trigger/consume.h"

/* Seconds, with a fraction or not. */
static int64_t moment_of(struct slice number)
{
    char text[40];
    unsigned long long seconds;
    if (slice_to_u64(number, INT64_MAX / 1000, &seconds)) return (int64_t)seconds * 1000;
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(number));
    double value = strtod(text, NULL);
    return value > -1e15 && value < 1e15 ? (int64_t)(value * 1000) : 0;
}

static bool read_change(struct json_reader *reader, struct raw_record *out)
{
    struct slice name, raw;
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    while (json_member(reader, &name)) {
        if (slice_equal(name, SLICE("SequenceNumber")) && json_peek(reader) == JSON_STRING) {
            if (!json_string(reader, &out->sequence)) return false;
            continue;
        }
        if (!raw_take(reader, &raw)) return false;
        if (slice_equal(name, SLICE("Keys"))) out->keys = raw;
        if (slice_equal(name, SLICE("ApproximateCreationDateTime"))) out->created_ms = moment_of(raw);
    }
    return !json_failed(reader);
}

/* A member that only the door in this process tells. */
static bool is_own(struct slice name)
{
    return slice_equal(name, SLICE("cause")) || slice_equal(name, SLICE("transaction")) ||
           slice_equal(name, SLICE("time"));
}

bool raw_record_read(struct json_reader *reader, struct raw_record *out)
{
    struct slice name, raw;
    *out = (struct raw_record){0};
    if (json_peek(reader) != JSON_OBJECT) return false;
    const char *start = reader->at, *member;
    json_enter(reader);
    while (member = reader->at, json_member(reader, &name)) {
        if (out->time_at) out->is_special = true; /* it is not the last */
        if (slice_equal(name, SLICE("dynamodb"))) {
            if (!read_change(reader, out)) return false;
        } else if (slice_equal(name, SLICE("cause")) && json_peek(reader) == JSON_STRING) {
            if (!json_string(reader, &out->cause)) return false;
            out->is_special = true;
        } else if (slice_equal(name, SLICE("time"))) {
            if (!raw_take(reader, &raw)) return false;
            out->time_at = (size_t)(member - start);
        } else {
            if (!raw_take(reader, &raw)) return false;
            out->is_special |= slice_equal(name, SLICE("userIdentity")) || is_own(name);
        }
    }
    out->text = (struct slice){start, (size_t)(reader->at - start)};
    return !json_failed(reader) && out->sequence.len && out->sequence.len <= POINT_BYTES;
}

/* ---- as Lambda shows it ---- */

/* {"PrincipalId":...,"Type":...} with names in lower case. */
static void put_identity(struct buf *out, struct json_reader *reader)
{
    struct slice name, raw;
    bool is_first = true;
    buf_byte(out, '{');
    while (json_member(reader, &name) && raw_take(reader, &raw)) {
        if (!is_first) buf_byte(out, ',');
        is_first = false;
        size_t quote = out->len + 1;
        json_put_string(out, name);
        if (out->data[quote] >= 'A' && out->data[quote] <= 'Z')
            out->data[quote] = (char)(out->data[quote] | 32);
        buf_byte(out, ':');
        buf_slice(out, raw);
    }
    buf_byte(out, '}');
}

/* Member by member: with the other names of userIdentity, and without our own where a function gets them. */
static void put_special(struct buf *out, struct slice text, bool with_own, struct arena *arena)
{
    struct json_reader reader;
    struct slice name, raw;
    json_begin(&reader, text, arena);
    json_enter(&reader);
    buf_byte(out, '{');
    while (json_member(&reader, &name)) {
        if (is_own(name) && !with_own) {
            json_skip(&reader);
            continue;
        }
        if (out->data[out->len - 1] != '{') buf_byte(out, ',');
        json_put_string(out, name);
        buf_byte(out, ':');
        if (slice_equal(name, SLICE("userIdentity")) && json_peek(&reader) == JSON_OBJECT) {
            json_enter(&reader);
            put_identity(out, &reader);
        } else if (raw_take(&reader, &raw)) {
            buf_slice(out, raw);
        }
    }
    buf_byte(out, '}');
}

void put_event_record(struct buf *out, const struct raw_record *raw, struct slice arn_json, bool with_own,
                      struct arena *arena)
{
    if (raw->is_special) {
        put_special(out, raw->text, with_own, arena);
        out->len--; /* the brace */
    } else {
        bool is_cut = raw->time_at && !with_own;
        buf_slice(out, (struct slice){raw->text.data, is_cut ? raw->time_at : raw->text.len - 1});
    }
    buf_text(out, ",\"eventSourceARN\":");
    buf_slice(out, arn_json);
    buf_byte(out, '}');
}

/* ---- where it goes ---- */

uint32_t lane_of_keys(struct slice keys, struct slice hash_key, uint32_t lanes, struct arena *arena)
{
    struct json_reader reader;
    struct slice name, raw, chosen = keys;
    if (lanes == 1) return 0;
    json_begin(&reader, keys, arena);
    if (json_peek(&reader) == JSON_OBJECT && json_enter(&reader))
        while (json_member(&reader, &name) && raw_take(&reader, &raw))
            if (slice_equal(name, hash_key)) chosen = raw;
    return (uint32_t)(hash_bytes(chosen) % lanes);
}

void record_free(struct record *record)
{
    struct record_page *page = record->page;
    if (--page->references) return;
    arena_free(&page->arena);
    free(page);
}
