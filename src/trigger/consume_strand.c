/* A strand: one shard as one mapping reads it, from waiting for its parent to its end. */
#include "base/fail.h"
#include "trigger/consume.h"

#include <stdlib.h>

struct strand *strand_new(struct feed *feed, struct slice id)
{
    struct strand *strand = must_zero(1, sizeof *strand), **end = &feed->strands;
    while (*end) end = &(*end)->next;
    ensure(id.len <= LIMIT_SHARD_ID_BYTES);
    memcpy(strand->id, id.data, id.len);
    strand->feed = feed;
    strand->due_us = NEVER_US;
    strand->known_us = consumer_ticks_us(feed->consumer);
    *end = strand;
    return strand;
}

/* ---- lanes ---- */

static void free_lanes(struct strand *strand)
{
    for (uint32_t i = 0; i < strand->lane_count; i++) lane_free(&strand->lanes[i]);
    free(strand->lanes);
    strand->lanes = NULL;
    strand->lane_count = 0;
}

static void make_lanes(struct strand *strand, uint32_t count)
{
    strand->lanes = must_zero(count, sizeof *strand->lanes);
    strand->lane_count = count;
    for (uint32_t i = 0; i < count; i++) {
        strand->lanes[i].strand = strand;
        strand->lanes[i].number = i;
    }
}

void strand_relane(struct strand *strand, uint32_t count, const struct point *at)
{
    free_lanes(strand);
    make_lanes(strand, count);
    for (uint32_t i = 0; i < count; i++) strand->lanes[i].at = *at;
}

/* True while records must go to other lanes than the mapping now asks for. */
bool strand_is_changing_lanes(const struct strand *strand)
{
    return strand->lane_count != strand->feed->mapping->lanes;
}

/* ---- the lease's life ---- */

bool strand_is_held(const struct strand *strand)
{
    return strand->state == STRAND_HELD || strand->state == STRAND_LOADING;
}

static void find_ends(struct strand *strand)
{
    strand->read_at = strand->known_to = strand->lanes[0].at;
    for (uint32_t i = 1; i < strand->lane_count; i++) {
        if (point_compare(&strand->lanes[i].at, &strand->read_at) < 0) strand->read_at = strand->lanes[i].at;
        if (point_compare(&strand->lanes[i].at, &strand->known_to) > 0)
            strand->known_to = strand->lanes[i].at;
    }
}

/* Reads on where the least lane stands; where that is LATEST, with the iterator of that moment. */
static void begin_reading(struct strand *strand)
{
    strand->iterator.len = 0;
    strand->is_reading = strand->is_read_out = strand->from_horizon = false;
    strand->has_lost_latest = false;
    strand->has_more = true;
    strand->ask_us = strand->last_ask_us = strand->pause_us = 0;
    strand->empty_us = strand->empty_ms = -1;
    strand->skipped = strand->read_failures = 0;
    bool is_latest = slice_equal(point_view(&strand->read_at), SLICE("LATEST"));
    if (is_latest && strand->seen.iterator.len)
        json_put_string(&strand->iterator, buf_view(&strand->seen.iterator));
    else if (is_latest)
        strand->has_lost_latest = true;
}

/* The lease is ours and `seen` is the item as it then was. */
void strand_hold(struct strand *strand, int64_t asked_us)
{
    struct consumer *consumer = strand->feed->consumer;
    strand->term++;
    strand->held_us = consumer_ticks_us(consumer);
    lease_renewed(strand, asked_us);
    strand->is_handing_over = strand->is_committing = strand->is_unsure = false;
    strand->commit_failures = 0;
    strand->commit_retry = strand->retry = (struct due){0};
    make_lanes(strand, strand->seen.lanes);
    for (uint32_t i = 0; i < strand->lane_count; i++) strand->lanes[i].at = strand->seen.at[i];
    find_ends(strand);
    begin_reading(strand);
    stats_add(&consumer->counts.strands_held, 1);
    strand->state = STRAND_HELD;
    if (strand->feed->mapping->tumbling_ms) {
        strand->state = STRAND_LOADING;
        windows_load(strand);
    }
    strand_touch(strand);
}

static void let_go(struct strand *strand)
{
    if (strand_is_held(strand)) stats_add(&strand->feed->consumer->counts.strands_held, (uint64_t)-1);
    strand->term++;
    free_lanes(strand);
    strand->iterator.len = 0;
    strand->is_reading = strand->is_committing = false;
    feed_touch(strand->feed);
}

void strand_drop(struct strand *strand)
{
    let_go(strand);
    strand->state = STRAND_FREE;
    strand->wish = LEASE_LEAVE;
    strand->seen.owner[0] = 0;
    strand_touch(strand);
}

void strand_lose(struct strand *strand)
{
    struct feed *feed = strand->feed;
    stats_add(&feed->consumer->counts.leases_lost, 1);
    strand_drop(strand);
    feed->positions_us = 0; /* who has it now, and how far is it? */
    feed_touch(feed);
}

void strand_end(struct strand *strand)
{
    let_go(strand);
    strand->state = STRAND_ENDED;
    strand->seen.ended = true;
    feed_look_soon(strand->feed, strand);
    strands_release(strand->feed);
}

void strand_free(struct strand *strand)
{
    let_go(strand);
    position_free(&strand->seen);
    buf_free(&strand->iterator);
    free(strand);
}

/* ---- attention ---- */

void strand_touch(struct strand *strand)
{
    struct consumer *consumer = strand->feed->consumer;
    if (strand->is_touched) return;
    strand->is_touched = true;
    strand->next_touched = NULL;
    *(consumer->touched_last ? &consumer->touched_last->next_touched : &consumer->touched_first) = strand;
    consumer->touched_last = strand;
}

void strand_wake_at(struct strand *strand, int64_t ticks_us)
{
    struct consumer *consumer = strand->feed->consumer;
    if (ticks_us < strand->due_us) strand->due_us = ticks_us;
    if (ticks_us < consumer->next_due_us) consumer->next_due_us = ticks_us;
}

/* Whichever of the clocks comes first, as they go now; a jump touches everybody. */
void strand_wake_due(struct strand *strand, const struct due *due)
{
    const struct consumer *consumer = strand->feed->consumer;
    int64_t wall_us = due->wall_ms == INT64_MAX
                          ? NEVER_US
                          : consumer_ticks_us(consumer) + (due->wall_ms - consumer_now_ms(consumer)) * 1000;
    strand_wake_at(strand, wall_us < due->ticks_us ? wall_us : due->ticks_us);
}

/* True while something runs that is to end before the lease is given up. */
bool strand_is_busy(const struct strand *strand)
{
    if (strand->is_committing) return true;
    for (uint32_t i = 0; i < strand->lane_count; i++) {
        enum lane_state state = strand->lanes[i].state;
        if (state == LANE_CALLED || state == LANE_SETTLED || state == LANE_COMMITTING) return true;
    }
    return false;
}

bool strand_is_stopping(const struct strand *strand)
{
    return strand->is_handing_over || !feed_is_running(strand->feed);
}

static void attend_held(struct strand *strand)
{
    if (lease_is_over(strand)) {
        strand_lose(strand);
        return;
    }
    if (strand_is_stopping(strand) && !strand_is_busy(strand)) {
        lease_release(strand);
        return;
    }
    for (uint32_t i = 0; i < strand->lane_count; i++) lane_attend(&strand->lanes[i]);
    commit_attend(strand);
    read_attend(strand);
}

void strand_attend(struct strand *strand)
{
    strand->due_us = NEVER_US;
    switch (strand->state) {
    case STRAND_FREE: lease_attend(strand); break;
    case STRAND_HELD: attend_held(strand); break;
    case STRAND_LOADING:
        if (!feed_is_running(strand->feed)) lease_release(strand);
        break;
    case STRAND_WAITS:
    case STRAND_TAKING:
    case STRAND_ENDED: break;
    }
}

/* True when all records that it has been told of are handled. */
bool strand_is_quiet(const struct strand *strand)
{
    if (strand->state == STRAND_ENDED) return true;
    if (strand->state != STRAND_HELD) return false;
    for (uint32_t i = 0; i < strand->lane_count; i++)
        if (strand->lanes[i].state != LANE_IDLE || strand->lanes[i].count) return false;
    return !strand->is_committing && !strand->is_reading && !strand->has_more;
}
