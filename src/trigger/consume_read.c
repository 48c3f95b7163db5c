/* Reading a strand: iterators, GetRecords, and each record into its lane.
 *
 * It reads ahead while batches run, up to a bound. Where commits tell of news, a strand whose last answer
 * was empty is asked again when there are some; elsewhere after a pause that grows, and never more often
 * than the service allows a shard to be asked. */
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "trigger/consume.h"

#define PAGE_RECORDS     "1000"
#define NEWS_PAUSE_US    300       /* news may be another table's, and they may be many: at least so long, */
#define NEWS_STRAND_US   20        /* and so much more for each strand that is asked */
#define WATCH_PAUSE_US   5000      /* of our own: not worth the time of who writes without pause */
#define KEEP_ITERATOR_US 240000000 /* iterators are good for five minutes at the least */
#define ASK_GAP_US       200000    /* the service: five questions a second for each shard */
#define RETRY_MAX_US     5000000
#define PAUSE_GROWTH     4      /* the longest pause, in poll_ms */
#define CLOCKS_DIFFER_MS 300000 /* ours and a remote one: what may be too old is rather read */

/* ---- iterators ---- */

void put_iterator_question(struct buf *out, const struct strand *strand, struct slice type,
                           const struct point *at)
{
    buf_text(out, "{\"StreamArn\":");
    buf_slice(out, buf_view(&strand->feed->arn_json));
    buf_text(out, ",\"ShardId\":");
    json_put_string(out, slice_of(strand->id));
    buf_text(out, ",\"ShardIteratorType\":\"");
    buf_slice(out, type);
    buf_byte(out, '"');
    if (at) {
        buf_text(out, ",\"SequenceNumber\":");
        json_put_string(out, point_view(at));
    }
    buf_byte(out, '}');
}

bool iterator_read(struct errand *errand, struct slice *iterator)
{
    static const char *const names[] = {"ShardIterator"};
    struct slice raw;
    if (!raw_members(&errand->arena, buf_view(&errand->reply), names, &raw, 1)) return false;
    *iterator = raw_string(&errand->arena, raw);
    return iterator->len > 0;
}

/* ---- when ---- */

static void wait_us(struct strand *strand, int64_t pause_us)
{
    strand->ask_us = consumer_ticks_us(strand->feed->consumer) + pause_us;
}

static uint32_t count_readers(const struct feed *feed)
{
    uint32_t readers = 0;
    for (const struct feed *other = feed->consumer->feeds; other; other = other->next)
        readers += slice_equal(other->mapping->stream_arn, feed->mapping->stream_arn);
    return readers;
}

/* After an answer without records. */
static void pause_empty(struct strand *strand)
{
    struct consumer *consumer = strand->feed->consumer;
    int64_t poll_us = consumer->settings.poll_ms * 1000;
    if (consumer->world.news && strand->feed->mapping->watch) {
        wait_us(strand, WATCH_PAUSE_US);
        return;
    }
    if (consumer->world.news) {
        wait_us(strand, NEWS_PAUSE_US + NEWS_STRAND_US * (int64_t)stats_read(&consumer->counts.strands_held));
        return;
    }
    strand->pause_us = strand->pause_us ? strand->pause_us * 2 : poll_us;
    if (strand->pause_us > poll_us * PAUSE_GROWTH) strand->pause_us = poll_us * PAUSE_GROWTH;
    wait_us(strand, strand->pause_us);
}

static void pause_failed(struct strand *strand)
{
    strand->read_failures++;
    wait_us(strand, retry_after_us(strand->read_failures, RETRY_MAX_US,
                                   random_next(&strand->feed->consumer->random)));
}

/* Where nobody tells of news there is a least time between two questions; several mappings share it. */
static int64_t earliest_us(const struct strand *strand)
{
    const struct consumer *consumer = strand->feed->consumer;
    if (consumer->world.news || !strand->last_ask_us) return strand->ask_us;
    int64_t gap_us = strand->last_ask_us + ASK_GAP_US * count_readers(strand->feed);
    bool is_probed = strand->empty_us < consumer->probe_us; /* somebody waits to hear that nothing is left */
    return is_probed || gap_us > strand->ask_us ? gap_us : strand->ask_us;
}

/* Nothing is to be expected before there is news. */
static bool is_waiting_for_news(const struct strand *strand)
{
    const struct consumer *consumer = strand->feed->consumer;
    if (!consumer->world.news || strand->has_more || !strand->iterator.len) return false;
    return strand->asked_news == consumer_news(consumer) &&
           consumer_ticks_us(consumer) < strand->last_ask_us + KEEP_ITERATOR_US;
}

/* Other lanes than the item's are wanted: only what some lane had already is still read. */
static bool is_behind(const struct strand *strand)
{
    return point_compare(&strand->read_at, &strand->known_to) < 0;
}

static bool wants_more(const struct strand *strand)
{
    const struct consumer *consumer = strand->feed->consumer;
    if (strand_is_changing_lanes(strand) && !is_behind(strand)) return false;
    bool is_hungry = false, is_empty = true;
    for (uint32_t i = 0; i < strand->lane_count; i++) {
        is_hungry |= lane_is_hungry(&strand->lanes[i]);
        is_empty &= strand->lanes[i].count == 0;
    }
    if (strand->bytes > LIMIT_STRAND_BYTES) return false;
    return is_hungry && (is_empty || consumer->buffered_bytes < LIMIT_CONSUMER_BYTES);
}

/* ---- one record ---- */

static bool is_wanted(const struct mapping *mapping, struct slice event, struct arena *scratch)
{
    for (uint32_t i = 0; i < mapping->filter_count; i++)
        if (pattern_matches(mapping->patterns[i], event, scratch)) return true;
    return mapping->filter_count == 0;
}

/* The begin of LATEST was not known any more, and the record is surely older. */
static bool is_too_old(const struct strand *strand, const struct lane *lane, const struct raw_record *raw)
{
    if (!strand->has_lost_latest || !slice_equal(point_view(&lane->at), SLICE("LATEST"))) return false;
    int64_t since_ms = strand->seen.since_ms / 1000 * 1000;
    if (!strand->feed->consumer->world.news) since_ms -= CLOCKS_DIFFER_MS;
    return raw->created_ms < since_ms;
}

static void skip(struct strand *strand)
{
    if (!strand->skipped++) strand->skipped_us = consumer_ticks_us(strand->feed->consumer);
}

static void add_record(struct strand *strand, struct lane *lane, const struct raw_record *raw,
                       struct record_page *page)
{
    struct feed *feed = strand->feed;
    struct consumer *consumer = feed->consumer;
    struct buf *text = &consumer->text;
    text->len = 0;
    put_event_record(text, raw, buf_view(&feed->arn_json), feed->mapping->watch != NULL, &consumer->scratch);
    if (!is_wanted(feed->mapping, buf_view(text), &consumer->scratch)) {
        stats_add(&consumer->counts.records_filtered, 1);
        skip(strand);
        return;
    }
    struct record record = {.page = page, .created_ms = raw->created_ms};
    record.event = arena_copy(&page->arena, buf_view(text));
    record.sequence = arena_copy(&page->arena, raw->sequence);
    if (raw->cause.len) record.cause = arena_copy(&page->arena, raw->cause);
    record.is_looped =
        raw->cause.len &&
        consumer->world.cause_count(raw->cause, feed->function_name) > feed->mapping->depth_max &&
        !consumer->world.allows_loops(consumer->world.self, feed->function_name);
    page->references++;
    lane_add(lane, &record);
}

static void take_record(struct strand *strand, const struct raw_record *raw, struct record_page *page)
{
    struct consumer *consumer = strand->feed->consumer;
    struct point at;
    point_set(&at, raw->sequence);
    if (point_compare(&at, &strand->read_at) <= 0) return; /* read before */
    strand->read_at = at;
    uint32_t number = lane_of_keys(raw->keys, buf_view(&strand->feed->hash_key), strand->lane_count,
                                   &consumer->scratch);
    struct lane *lane = &strand->lanes[number];
    if (point_compare(&at, &lane->at) <= 0) return; /* done before */
    stats_add(&consumer->counts.records_read, 1);
    if (is_too_old(strand, lane, raw))
        skip(strand);
    else
        add_record(strand, lane, raw, page);
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
static bool take_records(struct strand *strand, struct json_reader *reader, uint32_t *count)
{
    struct consumer *consumer = strand->feed->consumer;
    struct raw_record raw;
    if (json_peek(reader) != JSON_ARRAY || !json_enter(reader)) return false;
    struct record holder = {.page = new_page(consumer)};
    while (json_element(reader) && raw_record_read(reader, &raw)) {
        take_record(strand, &raw, holder.page);
        arena_reset(&consumer->scratch);
        ++*count;
    }
    record_free(&holder);
    return !json_failed(reader);
}

static bool take_page(struct strand *strand, struct errand *errand, uint32_t *count)
{
    struct json_reader reader;
    struct slice name, raw, next = SLICE("");
    *count = 0;
    json_begin(&reader, buf_view(&errand->reply), &errand->arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return false;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, SLICE("Records"))) {
            if (!take_records(strand, &reader, count)) return false;
            continue;
        }
        if (!raw_take(&reader, &raw)) return false;
        if (slice_equal(name, SLICE("NextShardIterator")) && raw.data[0] == '"') next = raw;
    }
    if (!json_done(&reader)) return false;
    strand->iterator.len = 0;
    buf_slice(&strand->iterator, next);
    strand->is_read_out = !next.len;
    return true;
}

static void take_empty(struct strand *strand, const struct errand *errand)
{
    strand->asked_news = errand->news;
    strand->empty_us = errand->began_us;
    strand->empty_ms = errand->began_ms;
    pause_empty(strand);
}

/* What we know of the place is of no use any more: all from the oldest record on, less what was read. */
static void begin_at_horizon(struct strand *strand)
{
    strand->iterator.len = 0;
    strand->from_horizon = true;
}

static void read_failed(struct strand *strand, struct errand *errand)
{
    enum dynamo_fault fault = errand_fault(errand);
    strand->has_more = true;
    pause_failed(strand);
    switch (fault) {
    case DYNAMO_EXPIRED:
        strand->has_lost_latest |= slice_equal(point_view(&strand->read_at), SLICE("LATEST"));
        strand->iterator.len = 0;
        break;
    case DYNAMO_TRIMMED:
        log_line("triggers: mapping %.*s: records of shard %s were cut off before they were read",
                 SLICE_ARG(strand->feed->mapping->id), strand->id);
        feed_note(strand->feed, "PROBLEM: Records were trimmed before they were processed");
        stats_add(&errand->consumer->counts.trimmed, 1);
        begin_at_horizon(strand);
        break;
    case DYNAMO_MISSING: strand->is_read_out = true; break; /* the shard, or all of its stream, is gone */
    case DYNAMO_REFUSED: begin_at_horizon(strand); break;
    default:
        if (strand->read_failures == 3)
            feed_note(strand->feed, "PROBLEM: The stream cannot be read: %.*s",
                      SLICE_ARG(errand_message(errand)));
        break;
    }
}

static void records_answered(struct errand *errand)
{
    struct strand *strand = errand->strand;
    uint32_t count;
    if (!errand_is_current(errand)) return;
    strand->is_reading = false;
    strand_touch(strand);
    stats_add(&errand->consumer->counts.reads, 1);
    if (errand_fault(errand) != DYNAMO_FINE) {
        read_failed(strand, errand);
        return;
    }
    if (!take_page(strand, errand, &count)) {
        feed_note(strand->feed, "PROBLEM: An answer to GetRecords is not of the service's form");
        strand->iterator.len = 0;
        pause_failed(strand);
        return;
    }
    strand->read_failures = 0;
    strand->has_more = count > 0;
    if (count)
        strand->pause_us = strand->ask_us = 0;
    else
        take_empty(strand, errand);
}

static void iterator_answered(struct errand *errand)
{
    struct strand *strand = errand->strand;
    struct slice iterator;
    if (!errand_is_current(errand)) return;
    strand->is_reading = false;
    strand_touch(strand);
    if (errand_fault(errand) != DYNAMO_FINE) {
        read_failed(strand, errand);
    } else if (iterator_read(errand, &iterator)) {
        strand->iterator.len = 0;
        json_put_string(&strand->iterator, iterator);
        strand->from_horizon = false;
        strand->ask_us = 0;
    } else {
        pause_failed(strand);
    }
}

/* ---- asking ---- */

static void ask_iterator(struct strand *strand)
{
    struct errand *errand = errand_new(strand->feed, strand, iterator_answered);
    bool knows_place = !strand->from_horizon && point_is_number(&strand->read_at);
    put_iterator_question(&errand->request, strand,
                          knows_place ? SLICE("AFTER_SEQUENCE_NUMBER") : SLICE("TRIM_HORIZON"),
                          knows_place ? &strand->read_at : NULL);
    errand_call(errand, SLICE("GetShardIterator"));
}

static void ask_records(struct strand *strand)
{
    struct errand *errand = errand_new(strand->feed, strand, records_answered);
    buf_text(&errand->request, "{\"ShardIterator\":");
    buf_slice(&errand->request, buf_view(&strand->iterator));
    buf_text(&errand->request, ",\"Limit\":" PAGE_RECORDS "}");
    errand->call.shows_causes = true;
    strand->last_ask_us = errand->began_us;
    errand_call(errand, SLICE("GetRecords"));
}

void read_attend(struct strand *strand)
{
    int64_t now_us = consumer_ticks_us(strand->feed->consumer);
    if (strand->state != STRAND_HELD || strand->is_reading || strand->is_read_out) return;
    if (strand_is_stopping(strand) || !wants_more(strand)) return;
    if (strand->is_committing && strand->plan.lanes) return; /* its lanes are about to be others */
    if (is_waiting_for_news(strand)) {
        strand_wake_at(strand, strand->last_ask_us + KEEP_ITERATOR_US);
        return;
    }
    int64_t due_us = earliest_us(strand);
    if (now_us < due_us) {
        strand_wake_at(strand, due_us);
        return;
    }
    strand->is_reading = true;
    if (strand->iterator.len)
        ask_records(strand);
    else
        ask_iterator(strand);
}
