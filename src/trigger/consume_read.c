/* Reading a shard: iterators, GetRecords, and each record into its lane.
 *
 * It reads ahead while batches run, up to a bound. Where commits tell of news, a shard whose last answer
 * was empty is asked again when there are some; elsewhere after a pause that grows, and never more often
 * than the service allows a shard to be asked.
 *
 * GetRecords' form of a record and Lambda's differ in little: Lambda adds the stream's ARN and writes the members of
 * userIdentity in lower case. So an event is the record's own text with a member more; nothing is decoded and written
 * anew. */
#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/log.h"
#include "trigger/consume.h"

#define PAGE_RECORDS     "1000"
#define NEWS_PAUSE_US    300       /* news may be another table's, and they may be many: at least so long, */
#define NEWS_SHARD_US    20        /* and so much more for each shard that is asked */
#define WATCH_PAUSE_US   5000      /* of our own: not worth the time of who writes without pause */
#define KEEP_ITERATOR_US 240000000 /* iterators are good for five minutes at the least */
#define ASK_GAP_US       200000    /* the service: five questions a second for each shard */
#define RETRY_MAX_US     5000000
#define PAUSE_GROWTH     4      /* the longest pause, in poll_ms */
#define CLOCKS_DIFFER_MS 300000 /* ours and a remote one: what may be too old is rather read */

/* ---- iterators ---- */

void put_iterator_question(struct buf *out, const struct shard *shard, struct slice type,
                           const struct point *at)
{
    compose(out, "{'StreamArn':%A,'ShardId':%s,'ShardIteratorType':%s", buf_view(&shard->reader->arn_json),
            slice_of(shard->id), type);
    if (at) compose(out, ",'SequenceNumber':%s", point_view(at));
    buf_byte(out, '}');
}

bool iterator_read(struct slice reply, struct arena *arena, struct slice *iterator)
{
    *iterator = raw_string(arena, raw_member(arena, reply, "ShardIterator"));
    return iterator->len > 0;
}

/* ---- when ---- */

static void wait_us(struct shard *shard, int64_t pause_us)
{
    shard->ask_us = consumer_ticks_us(shard->reader->consumer) + pause_us;
}

static uint32_t count_readers(const struct reader *reader)
{
    uint32_t readers = 0;
    for (const struct reader *other = reader->consumer->readers; other; other = other->next)
        readers += slice_equal(other->mapping->stream_arn, reader->mapping->stream_arn);
    return readers;
}

/* After an answer without records. */
static void pause_empty(struct shard *shard)
{
    struct consumer *consumer = shard->reader->consumer;
    int64_t poll_us = consumer->settings.poll_ms * 1000;
    if (consumer->world.news && shard->reader->mapping->watch) {
        wait_us(shard, WATCH_PAUSE_US);
        return;
    }
    if (consumer->world.news) {
        wait_us(shard, NEWS_PAUSE_US + NEWS_SHARD_US * (int64_t)stats_read(&consumer->counts.shards_held));
        return;
    }
    shard->pause_us = shard->pause_us ? shard->pause_us * 2 : poll_us;
    if (shard->pause_us > poll_us * PAUSE_GROWTH) shard->pause_us = poll_us * PAUSE_GROWTH;
    wait_us(shard, shard->pause_us);
}

static void pause_failed(struct shard *shard)
{
    shard->read_failures++;
    wait_us(shard,
            retry_after_us(shard->read_failures, RETRY_MAX_US, consumer_random(shard->reader->consumer)));
}

/* Where nobody tells of news there is a least time between two questions; several mappings share it. */
static int64_t earliest_us(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    if (consumer->world.news || !shard->last_ask_us) return shard->ask_us;
    int64_t gap_us = shard->last_ask_us + ASK_GAP_US * count_readers(shard->reader);
    bool is_probed = shard->empty_us < consumer->probe_us; /* somebody waits to hear that nothing is left */
    return is_probed || gap_us > shard->ask_us ? gap_us : shard->ask_us;
}

/* Nothing is to be expected before there is news. */
static bool is_waiting_for_news(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    if (!consumer->world.news || shard->has_more || !shard->iterator.len) return false;
    return shard->asked_news == consumer_news(consumer) &&
           consumer_ticks_us(consumer) < shard->last_ask_us + KEEP_ITERATOR_US;
}

/* Other lanes than the item's are wanted: only what some lane had already is still read. */
static bool is_behind(const struct shard *shard)
{
    return point_compare(&shard->read_at, &shard->known_to) < 0;
}

static bool wants_more(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    if (shard_is_changing_lanes(shard) && !is_behind(shard)) return false;
    bool has_room = false, is_empty = true;
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        has_room |= lane_has_room(&shard->lanes[i]);
        is_empty &= shard->lanes[i].count == 0;
    }
    if (shard->bytes > LIMIT_SHARD_BYTES) return false;
    return has_room && (is_empty || consumer->buffered_bytes < LIMIT_CONSUMER_BYTES);
}

/* ---- records ---- */

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
        if (slice_equal(name, SLICE("OldImage"))) out->has_old = true;
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
    bool is_insert = false;
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
            is_insert |= slice_equal(name, SLICE("eventName")) && slice_equal(raw, SLICE("\"INSERT\""));
        }
    }
    out->is_special |= is_insert && out->has_old;
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

/* Member by member: with the other names of userIdentity, and without our own where a function gets them. ScyllaDB
 * Alternator may call a change an INSERT: one of what was there before is none. */
static void put_special(struct buf *out, const struct raw_record *record, bool with_own, struct arena *arena)
{
    struct json_reader reader;
    struct slice name, raw;
    json_begin(&reader, record->text, arena);
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
            bool is_wrong = record->has_old && slice_equal(name, SLICE("eventName")) &&
                            slice_equal(raw, SLICE("\"INSERT\""));
            buf_slice(out, is_wrong ? SLICE("\"MODIFY\"") : raw);
        }
    }
    buf_byte(out, '}');
}

void put_event_record(struct buf *out, const struct raw_record *raw, struct slice arn_json, bool with_own,
                      struct arena *arena)
{
    if (raw->is_special) {
        put_special(out, raw, with_own, arena);
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

/* ---- one record ---- */

static bool is_wanted(const struct mapping *mapping, struct slice event, struct arena *scratch)
{
    for (uint32_t i = 0; i < mapping->filter_count; i++)
        if (pattern_matches(mapping->patterns[i], event, scratch)) return true;
    return mapping->filter_count == 0;
}

/* The begin of LATEST was not known any more, and the record is surely older. */
static bool is_too_old(const struct shard *shard, const struct lane *lane, const struct raw_record *raw)
{
    if (!shard->has_lost_latest || !slice_equal(point_view(&lane->at), SLICE("LATEST"))) return false;
    int64_t since_ms = shard->seen.since_ms / 1000 * 1000;
    bool is_by_our_clock = shard->seen.iterator.len; /* else somebody has asked for the changes since then */
    if (is_by_our_clock && !shard->reader->consumer->world.news) since_ms -= CLOCKS_DIFFER_MS;
    return raw->created_ms < since_ms;
}

static void skip(struct shard *shard)
{
    if (!shard->skipped++) shard->skipped_us = consumer_ticks_us(shard->reader->consumer);
}

static void add_record(struct shard *shard, struct lane *lane, const struct raw_record *raw,
                       struct record_page *page)
{
    struct reader *reader = shard->reader;
    struct consumer *consumer = reader->consumer;
    struct buf *text = &consumer->text;
    text->len = 0;
    put_event_record(text, raw, buf_view(&reader->arn_json), reader->mapping->watch != NULL,
                     &consumer->scratch);
    if (!is_wanted(reader->mapping, buf_view(text), &consumer->scratch)) {
        stats_add(&consumer->counts.records_filtered, 1);
        skip(shard);
        return;
    }
    struct record record = {.page = page, .created_ms = raw->created_ms};
    record.event = arena_copy(&page->arena, buf_view(text));
    record.sequence = arena_copy(&page->arena, raw->sequence);
    if (raw->cause.len) record.cause = arena_copy(&page->arena, raw->cause);
    record.is_looped = raw->cause.len &&
                       cause_count(raw->cause, reader->function_name) > reader->mapping->depth_max &&
                       !consumer->world.allows_loops(consumer->world.func, reader->function_name);
    page->references++;
    lane_add(lane, &record);
}

static void take_record(struct shard *shard, const struct raw_record *raw, struct record_page *page)
{
    struct consumer *consumer = shard->reader->consumer;
    struct point at;
    point_set(&at, raw->sequence);
    if (point_compare(&at, &shard->read_at) <= 0) return; /* read before */
    shard->read_at = at;
    uint32_t number = lane_of_keys(raw->keys, buf_view(&shard->reader->hash_key), shard->lane_count,
                                   &consumer->scratch);
    struct lane *lane = &shard->lanes[number];
    if (point_compare(&at, &lane->at) <= 0) return; /* done before */
    stats_add(&consumer->counts.records_read, 1);
    if (is_too_old(shard, lane, raw))
        skip(shard);
    else
        add_record(shard, lane, raw, page);
}

/* ---- one answer ---- */

static struct record_page *new_page(struct consumer *consumer)
{
    struct record_page *page = must_zero(1, sizeof *page);
    page->arrived_ms = consumer_now_ms(consumer);
    page->arrived_us = consumer_ticks_us(consumer);
    page->references = 1;
    return page;
}

/* The array of records; false when it is not of the service's form. */
static bool take_records(struct shard *shard, struct json_reader *reader, uint32_t *count)
{
    struct consumer *consumer = shard->reader->consumer;
    struct raw_record raw;
    if (json_peek(reader) != JSON_ARRAY || !json_enter(reader)) return false;
    struct record holder = {.page = new_page(consumer)};
    while (json_element(reader) && raw_record_read(reader, &raw)) {
        take_record(shard, &raw, holder.page);
        arena_reset(&consumer->scratch);
        ++*count;
    }
    record_free(&holder);
    return !json_failed(reader);
}

/* An answer of GetRecords that is being taken apart. */
struct records_page {
    struct shard *shard;
    struct slice reply;
    uint32_t count;
    bool is_understood;
};

static void take_page(void *argument)
{
    struct records_page *page = argument;
    struct shard *shard = page->shard;
    struct json_reader reader;
    struct slice name, raw, next = SLICE("");
    json_begin(&reader, page->reply, &shard->reader->consumer->page_arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, SLICE("Records"))) {
            if (!take_records(shard, &reader, &page->count)) return;
            continue;
        }
        if (!raw_take(&reader, &raw)) return;
        if (slice_equal(name, SLICE("NextShardIterator")) && raw.data[0] == '"') next = raw;
    }
    if (!json_done(&reader)) return;
    shard->iterator.len = 0;
    buf_slice(&shard->iterator, next);
    shard->is_read_out = !next.len;
    page->is_understood = true;
}

/* What we know of the place is of no use any more: all from the oldest record on, less what was read. */
static void begin_at_horizon(struct shard *shard)
{
    shard->iterator.len = 0;
    shard->from_horizon = true;
}

static void read_failed(struct shard *shard, const struct task_reply *reply)
{
    shard->has_more = true;
    pause_failed(shard);
    switch (reply->fault) {
    case DYNAMO_EXPIRED:
        shard->has_lost_latest |= slice_equal(point_view(&shard->read_at), SLICE("LATEST"));
        shard->iterator.len = 0;
        break;
    case DYNAMO_TRIMMED:
        log_line("triggers: mapping %.*s: records of shard %s were cut off before they were read",
                 SLICE_ARG(shard->reader->mapping->id), shard->id);
        reader_note(shard->reader, "PROBLEM: Records were trimmed before they were processed");
        stats_add(&shard->reader->consumer->counts.trimmed, 1);
        begin_at_horizon(shard);
        break;
    case DYNAMO_MISSING: shard->is_read_out = true; break; /* the shard, or all of its stream, is gone */
    case DYNAMO_REFUSED: begin_at_horizon(shard); break;
    default:
        if (shard->read_failures == 3)
            reader_note(shard->reader, "PROBLEM: The stream cannot be read: %.*s",
                        SLICE_ARG(task_reply_message(reply)));
        break;
    }
}

/* ---- asking ---- */

static void ask_iterator(struct shard *shard)
{
    struct slice iterator;
    bool knows_place = !shard->from_horizon && point_is_number(&shard->read_at);
    struct task_call *call = task_call_new("GetShardIterator");
    put_iterator_question(task_call_request(call), shard,
                          knows_place ? SLICE("AFTER_SEQUENCE_NUMBER") : SLICE("TRIM_HORIZON"),
                          knows_place ? &shard->read_at : NULL);
    struct task_reply reply = task_send(call);
    if (!shard_is_held(shard)) return;
    if (reply.fault != DYNAMO_FINE) {
        read_failed(shard, &reply);
    } else if (iterator_read(reply.body, task_arena(), &iterator)) {
        shard->iterator.len = 0;
        json_put_string(&shard->iterator, iterator);
        shard->from_horizon = false;
        shard->ask_us = 0;
    } else {
        pause_failed(shard);
    }
}

static void ask_records(struct shard *shard)
{
    struct consumer *consumer = shard->reader->consumer;
    int64_t asked_us = consumer_ticks_us(consumer), asked_ms = consumer_now_ms(consumer);
    uint64_t news = consumer_news(consumer);
    struct task_call *call = task_call_new("GetRecords");
    compose(task_call_request(call), "{'ShardIterator':%A,'Limit':" PAGE_RECORDS "}",
            buf_view(&shard->iterator));
    task_call_options(call)->shows_causes = true;
    shard->last_ask_us = asked_us;
    struct task_reply reply = task_send(call);
    if (!shard_is_held(shard)) return;
    stats_add(&consumer->counts.reads, 1);
    if (reply.fault != DYNAMO_FINE) {
        read_failed(shard, &reply);
        return;
    }
    struct records_page page = {.shard = shard, .reply = reply.body};
    task_outside(take_page, &page); /* filters and records nest as deep as they like */
    arena_reset(&consumer->page_arena);
    if (!page.is_understood) {
        reader_note(shard->reader, "PROBLEM: An answer to GetRecords is not of the service's form");
        shard->iterator.len = 0;
        pause_failed(shard);
        return;
    }
    shard->read_failures = 0;
    shard->has_more = page.count > 0;
    if (page.count) {
        shard->pause_us = shard->ask_us = 0;
        return;
    }
    shard->asked_news = news;
    shard->empty_us = asked_us;
    shard->empty_ms = asked_ms;
    pause_empty(shard);
}

void read_task(void *argument)
{
    struct shard *shard = argument;
    struct consumer *consumer = shard->reader->consumer;
    struct arena_mark mark = arena_mark(task_arena());
    while (shard_is_held(shard)) {
        int64_t due_us = NEVER_US;
        arena_rewind(task_arena(), mark);
        bool changes_lanes = shard->is_committing && shard->plan.lanes; /* its lanes are about to be others */
        bool may_ask = !shard->is_read_out && !shard_is_stopping(shard) && !changes_lanes &&
                       wants_more(shard);
        if (may_ask)
            due_us = is_waiting_for_news(shard) ? shard->last_ask_us + KEEP_ITERATOR_US : earliest_us(shard);
        if (!may_ask || consumer_ticks_us(consumer) < due_us) {
            task_await(&shard->changed, (struct task_moment){due_us, HEAP_NEVER});
            continue;
        }
        shard->is_reading = true;
        if (shard->iterator.len)
            ask_records(shard);
        else
            ask_iterator(shard);
        shard->is_reading = false;
        shard_touch(shard);
    }
    shard->tasks--;
    shard_touch(shard);
}
