/* A mapping at work: from its settings to strands that are read, through changes, to its end.
 *
 * A feed walks through stages; in each it makes one call at a time and comes back with the answer. What
 * goes wrong is tried again after a pause that grows; the mapping's LastProcessingResult tells of it. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "trigger/consume.h"
#include "trigger/watch.h"

#define RETRY_MAX_US     10000000
#define LOOK_EVERY_US    60000000 /* for shards, where none has ended */
#define DRAIN_LOOK_US    50000
#define LOOK_CHILDREN_US 1000000 /* for the children of one that has, when they were not there at once */

/* ---- making and freeing ---- */

static void set_mapping(struct feed *feed, struct mapping *mapping)
{
    struct mapping *former = feed->mapping;
    feed->mapping = mapping_keep(mapping);
    const char *colon = memchr(mapping->function.data, ':', mapping->function.len);
    feed->function_name = mapping->function;
    if (colon) feed->function_name.len = (size_t)(colon - mapping->function.data);
    if (former) mapping_release(former);
}

static _Atomic uint64_t *feeds_beside(const struct feed *feed)
{
    struct consumer_counts *counts = &feed->consumer->counts;
    return feed->mapping->watch ? &counts->watches : &counts->feeds;
}

struct feed *feed_new(struct consumer *consumer, struct mapping *mapping)
{
    struct feed *feed = must_zero(1, sizeof *feed);
    feed->consumer = consumer;
    feed->due_us = NEVER_US;
    feed->knows_filter = true;
    set_mapping(feed, mapping);
    feed_begin_stream(feed);
    feed->stage = mapping->enabled ? FEED_TABLE : FEED_DRAINS;
    feed_touch(feed);
    stats_add(feeds_beside(feed), 1);
    return feed;
}

static void free_strands(struct feed *feed)
{
    while (feed->strands) {
        struct strand *strand = feed->strands;
        feed->strands = strand->next;
        strand_free(strand);
    }
}

void feed_free(struct feed *feed)
{
    free_strands(feed);
    stats_add(feeds_beside(feed), (uint64_t)-1);
    mapping_release(feed->mapping);
    mapping_release(feed->successor);
    buf_free(&feed->arn_json);
    buf_free(&feed->hash_key);
    buf_free(&feed->page_key);
    free(feed);
}

/* ---- what others tell of it ---- */

void feed_touch(struct feed *feed)
{
    feed->is_touched = true;
}

static void touch_strands(struct feed *feed)
{
    for (struct strand *strand = feed->strands; strand; strand = strand->next) strand_touch(strand);
}

static void reach(struct feed *feed, enum mapping_state state)
{
    feed->consumer->world.reached(feed->consumer->world.self, feed->mapping->id, state);
}

static void succeed(struct feed *feed, struct mapping *mapping)
{
    mapping_release(feed->successor);
    feed->successor = mapping;
}

void feed_change(struct feed *feed, struct mapping *mapping)
{
    if (feed->is_removed) { /* it begins when the positions of this one are gone */
        succeed(feed, mapping_keep(mapping));
        return;
    }
    bool moves = !slice_equal(mapping->stream_arn, feed->mapping->stream_arn);
    if (mapping->revision < feed->mapping->revision && !moves) return; /* else the database was rolled back */
    feed->has_moved |= moves;
    set_mapping(feed, mapping);
    if ((moves || !mapping->enabled) && feed->stage != FEED_STOPPED)
        feed->stage = FEED_DRAINS;
    else if (!mapping->enabled)
        reach(feed, MAPPING_DISABLED);
    else if (feed->stage == FEED_RUNS)
        reach(feed, MAPPING_ENABLED);
    feed_touch(feed);
    touch_strands(feed);
}

void feed_remove(struct feed *feed)
{
    succeed(feed, NULL);
    feed->is_removed = true;
    if (feed->stage < FEED_DRAINS) feed->stage = FEED_DRAINS;
    feed_touch(feed);
    touch_strands(feed);
}

void feed_stop(struct feed *feed)
{
    if (feed->stage < FEED_DRAINS) feed->stage = FEED_DRAINS;
    feed_touch(feed);
    touch_strands(feed);
}

void feed_begin_anew(struct feed *feed)
{
    for (struct strand *strand = feed->strands; strand; strand = strand->next)
        if (strand_is_held(strand)) strand_drop(strand);
    feed_stop(feed);
}

bool feed_is_stopped(const struct feed *feed)
{
    return feed->stage == FEED_STOPPED || feed->stage == FEED_GONE ||
           (feed->stage == FEED_DELETES && !feed->is_busy);
}

bool feed_is_running(const struct feed *feed)
{
    return feed->stage == FEED_RUNS;
}

void feed_note(struct feed *feed, const char *format, ...)
{
    char text[sizeof feed->result];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strcmp(text, feed->result) == 0) return;
    memcpy(feed->result, text, sizeof text);
    if (feed->mapping->watch && slice_starts(slice_of(text), SLICE("PROBLEM"))) /* no API shows it */
        log_line("triggers: watch %s: %s", watch_name(feed->mapping->watch), text);
    feed->consumer->world.note_result(feed->consumer->world.self, feed->mapping->id, text);
}

/* For the children of one it is cheap to look; of several at once, all shards are listed. */
void feed_look_soon(struct feed *feed, const struct strand *ended)
{
    if (feed->wanted_of[0])
        feed->must_look_again = true;
    else
        memcpy(feed->wanted_of, ended->id, sizeof feed->wanted_of);
    feed->look_us = 0;
    feed_touch(feed);
}

/* ---- calls about the feed itself ---- */

void feed_wait(struct feed *feed, int64_t us)
{
    feed->retry = due_after_us(feed->consumer, us);
    feed_wake_at(feed, feed->retry.ticks_us);
}

void feed_wake_at(struct feed *feed, int64_t ticks_us)
{
    struct consumer *consumer = feed->consumer;
    if (ticks_us < feed->due_us) feed->due_us = ticks_us;
    if (ticks_us < consumer->next_due_us) consumer->next_due_us = ticks_us;
}

struct errand *feed_ask_for(struct feed *feed, struct strand *strand, void (*answered)(struct errand *errand))
{
    ensure(!feed->is_busy);
    feed->is_busy = true;
    return errand_new(feed, strand, answered);
}

struct errand *feed_ask(struct feed *feed, void (*answered)(struct errand *errand))
{
    return feed_ask_for(feed, NULL, answered);
}

bool feed_answered(struct errand *errand)
{
    struct feed *feed = errand->feed;
    feed->is_busy = false;
    feed_touch(feed);
    if (errand_fault(errand) == DYNAMO_FINE) {
        feed->failures = 0;
        return true;
    }
    feed_failed(feed);
    return false;
}

void feed_failed(struct feed *feed)
{
    feed->failures++;
    feed_wait(feed, retry_after_us(feed->failures, RETRY_MAX_US, random_next(&feed->consumer->random)));
}

/* ---- stages ---- */

void feed_enter(struct feed *feed, enum feed_stage stage)
{
    feed->stage = stage;
    feed->page_key.len = 0;
    feed_touch(feed);
    if (stage != FEED_RUNS) return;
    int64_t now_us = consumer_ticks_us(feed->consumer);
    feed->look_us = now_us + LOOK_EVERY_US;
    feed->positions_us = now_us;
    strands_release(feed);
    if (feed->has_moved) feed_note(feed, "No records processed");
    feed->has_moved = false;
    reach(feed, MAPPING_ENABLED);
}

void feed_looked(struct feed *feed)
{
    bool is_missing = strands_miss_children(feed);
    feed->look_us = consumer_ticks_us(feed->consumer) + (is_missing ? LOOK_CHILDREN_US : LOOK_EVERY_US);
    if (feed->wanted_of[0] || feed->must_look_again) feed->look_us = 0;
    strands_release(feed);
}

/* Positions are looked at again only where others change them, or when one was not as we thought. */
static void attend_running(struct feed *feed)
{
    struct consumer *consumer = feed->consumer;
    int64_t now_us = consumer_ticks_us(consumer);
    if (now_us >= feed->positions_us) {
        feed->positions_us = NEVER_US;
        if (consumer->settings.shared) feed->positions_us = now_us + consumer->settings.lease_ms * 1000 / 3;
        positions_ask(feed);
    } else if (now_us >= feed->look_us) {
        shards_ask(feed);
    } else {
        stream_over_attend(feed);
        strands_forget(feed);
    }
    if (feed->is_busy) return;
    feed_wake_at(feed, feed->look_us);
    feed_wake_at(feed, feed->positions_us);
}

static bool is_drained(const struct feed *feed)
{
    for (const struct strand *strand = feed->strands; strand; strand = strand->next)
        if (strand->state == STRAND_HELD || strand->state == STRAND_LOADING ||
            strand->state == STRAND_TAKING || strand->errands || strand->is_touched)
            return false;
    return true;
}

static void attend_draining(struct feed *feed)
{
    if (!is_drained(feed)) {
        feed_wake_at(feed, consumer_ticks_us(feed->consumer) + DRAIN_LOOK_US);
        return;
    }
    free_strands(feed);
    feed_begin_stream(feed);
    feed->stage = FEED_STOPPED;
    feed->has_start = false;
    feed_touch(feed);
    if (!feed->is_removed && !feed->mapping->enabled) reach(feed, MAPPING_DISABLED);
}

static void attend_stopped(struct feed *feed)
{
    if (feed->is_removed)
        feed_enter(feed, FEED_DELETES);
    else if (feed->mapping->enabled && !feed->consumer->is_stopping)
        feed_enter(feed, FEED_TABLE);
}

void feed_attend(struct feed *feed)
{
    feed->is_touched = false;
    feed->due_us = NEVER_US;
    if (feed->is_busy) return;
    if (feed->stage != FEED_DRAINS && !due_is_over(feed->consumer, &feed->retry)) {
        feed_wake_at(feed, feed->retry.ticks_us);
        return;
    }
    switch (feed->stage) {
    case FEED_TABLE: table_attend(feed); break;
    case FEED_POSITIONS: positions_ask(feed); break;
    case FEED_SHARDS: shards_ask(feed); break;
    case FEED_START: start_attend(feed); break;
    case FEED_RUNS: attend_running(feed); break;
    case FEED_DRAINS: attend_draining(feed); break;
    case FEED_STOPPED: attend_stopped(feed); break;
    case FEED_DELETES: delete_attend(feed); break;
    case FEED_GONE: break;
    }
}
