/* Commits: positions move, together with what functions returned, once or not at all (T1, L1).
 *
 * A strand's lanes share one item, so its commits go one after the other, and one takes all with it that
 * waits: a lane with writes of its own (a transaction), all lanes that have none, and those that only saw
 * records go by. A commit without an answer is looked for in the item: `moves` tells whether it happened. */
#include <stdio.h>

#include "base/fail.h"
#include "base/log.h"
#include "trigger/consume.h"

#define SKIPPED_MAX  1000    /* records that went by since the position last moved, */
#define SKIPPED_US   1000000 /* or so long ago: a filter costs no more writes than that */
#define RETRY_MAX_US 2000000

/* ---- the plan ---- */

static bool is_done(const struct lane *lane)
{
    return lane->state == LANE_IDLE && !lane->count && !lane->depth;
}

/* Nothing waits or runs and no window is open: the position can be told for all lanes at once. */
static bool all_are_done(const struct strand *strand)
{
    for (uint32_t i = 0; i < strand->lane_count; i++)
        if (!is_done(&strand->lanes[i]) || strand->lanes[i].window.is_open) return false;
    return true;
}

/* The lane with writes that has waited longest; NULL: none has any. */
static struct lane *choose_leader(const struct strand *strand)
{
    struct lane *leader = NULL;
    for (uint32_t i = 0; i < strand->lane_count; i++) {
        struct lane *lane = &strand->lanes[i];
        if (lane->state != LANE_SETTLED || !lane->settlement.member_count) continue;
        if (!leader || lane->settlement.number < leader->settlement.number) leader = lane;
    }
    return leader;
}

/* Behind the last record that is done; behind all that was read when none is left. */
static struct point point_behind(const struct lane *lane)
{
    const struct strand *strand = lane->strand;
    struct point to = lane->at;
    uint32_t moves = lane->settlement.moves;
    if (moves == lane->count && point_compare(&strand->read_at, &lane->at) > 0) return strand->read_at;
    if (moves) point_set(&to, lane_head(lane)[moves - 1].sequence);
    return to;
}

static bool plan_settled(struct strand *strand, const struct lane *leader, struct commit_plan *plan)
{
    bool any = false;
    for (uint32_t i = 0; i < strand->lane_count; i++) {
        struct lane *lane = &strand->lanes[i];
        if (lane->state != LANE_SETTLED || (lane->settlement.member_count && lane != leader)) continue;
        lane->state = LANE_COMMITTING;
        plan->moves_lane[i] = any = true;
        plan->to[i] = point_behind(lane);
    }
    return any;
}

/* Lanes that only saw records go by move along. */
static bool plan_idle(const struct strand *strand, struct commit_plan *plan)
{
    bool any = false;
    for (uint32_t i = 0; i < strand->lane_count; i++) {
        const struct lane *lane = &strand->lanes[i];
        if (!is_done(lane) || point_compare(&strand->read_at, &lane->at) <= 0) continue;
        plan->moves_lane[i] = any = true;
        plan->to[i] = strand->read_at;
    }
    return any;
}

static bool has_skipped_enough(struct strand *strand)
{
    int64_t now_us = consumer_ticks_us(strand->feed->consumer);
    if (!strand->skipped) return false;
    if (strand->skipped >= SKIPPED_MAX || now_us >= strand->skipped_us + SKIPPED_US) return true;
    strand_wake_at(strand, strand->skipped_us + SKIPPED_US);
    return false;
}

static bool can_change_lanes(const struct strand *strand)
{
    return strand_is_changing_lanes(strand) && !strand->is_reading &&
           point_compare(&strand->read_at, &strand->known_to) >= 0 && !strand_is_stopping(strand);
}

/* True when there is something to commit. */
static bool make_plan(struct strand *strand, struct lane **leader)
{
    struct consumer *consumer = strand->feed->consumer;
    struct commit_plan *plan = &strand->plan;
    *plan = (struct commit_plan){0};
    *leader = choose_leader(strand);
    bool is_wanted = plan_settled(strand, *leader, plan);
    if (!is_wanted && all_are_done(strand)) {
        plan->ends = strand->is_read_out;
        if (!plan->ends && can_change_lanes(strand)) plan->lanes = strand->feed->mapping->lanes;
        if (plan->lanes) plan->to[0] = strand->read_at;
    }
    plan->renews = consumer->settings.shared;
    plan->mark = random_next(&consumer->random) >> 12; /* fits any reader's number */
    is_wanted |= plan->ends || plan->lanes || has_skipped_enough(strand);
    is_wanted |= consumer_ticks_us(consumer) >= strand->renew_us;
    if (is_wanted && !plan->lanes) plan_idle(strand, plan);
    plan->loses_iterator = strand->seen.iterator.len > 0 && point_is_number(&strand->read_at);
    return is_wanted;
}

/* ---- when it is through ---- */

static void note_success(struct strand *strand)
{
    for (uint32_t i = 0; i < strand->lane_count; i++) {
        const struct lane *lane = &strand->lanes[i];
        if (lane->state != LANE_COMMITTING || lane->gives_up || !lane->settlement.moves) continue;
        if (lane->settlement.moves == lane->take) feed_note(strand->feed, "OK");
    }
}

static void commit_is_through(struct strand *strand, int64_t asked_us)
{
    struct consumer *consumer = strand->feed->consumer;
    const struct commit_plan *plan = &strand->plan;
    bool has_calls = false; /* in the queue of asynchronous ones, perhaps */
    strand->is_committing = false;
    strand->commit_failures = 0;
    strand->seen.moves++;
    strand->skipped = 0;
    if (plan->loses_iterator) strand->seen.iterator.len = 0;
    if (plan->renews) lease_renewed(strand, asked_us);
    stats_add(&consumer->counts.commits, 1);
    note_success(strand);
    for (uint32_t i = 0; i < strand->lane_count; i++) {
        struct lane *lane = &strand->lanes[i];
        if (plan->moves_lane[i]) lane->at = plan->to[i];
        if (lane->state != LANE_COMMITTING) continue;
        has_calls |= lane->settlement.has_document ||
                     (lane->settlement.has_effects && lane_mapping(lane)->watch);
        lane_committed(lane);
    }
    if (has_calls) consumer->world.wake_queue(consumer->world.self);
    if (plan->lanes) strand_relane(strand, plan->lanes, &plan->to[0]);
    if (plan->ends) strand_end(strand);
}

/* ---- when it is not ---- */

static struct lane *find_leader(const struct strand *strand)
{
    for (uint32_t i = 0; i < strand->lane_count; i++)
        if (strand->lanes[i].state == LANE_COMMITTING && strand->lanes[i].settlement.member_count)
            return &strand->lanes[i];
    return NULL;
}

/* All that it would have moved waits again. */
static void take_back(struct strand *strand)
{
    strand->is_committing = false;
    for (uint32_t i = 0; i < strand->lane_count; i++)
        if (strand->lanes[i].state == LANE_COMMITTING) strand->lanes[i].state = LANE_SETTLED;
}

static void commit_later(struct strand *strand)
{
    struct consumer *consumer = strand->feed->consumer;
    take_back(strand);
    strand->commit_failures++;
    strand->commit_retry = due_after_us(
        consumer, retry_after_us(strand->commit_failures, RETRY_MAX_US, random_next(&consumer->random)) / 8);
}

/* The writes of one lane are to blame; the others are tried again without them. */
static void commit_was_refused(struct strand *strand, const char *reason)
{
    struct lane *leader = find_leader(strand);
    if (!leader) {
        log_line("triggers: mapping %.*s: the position in shard %s cannot be written: %s",
                 SLICE_ARG(strand->feed->mapping->id), strand->id, reason);
        strand_lose(strand);
        return;
    }
    take_back(strand);
    if (leader->settlement.has_document)
        lane_undocumented(leader, reason);
    else
        lane_refused(leader, reason);
}

static void position_answered(struct errand *errand)
{
    static const char *const names[] = {"Attributes"};
    struct strand *strand = errand->strand;
    struct position position = {0};
    struct slice item, shard;
    if (!errand_is_current(errand)) return;
    strand_touch(strand);
    if (errand_fault(errand) == DYNAMO_CONDITION) { /* the fence is another's, or the position is gone */
        strand_lose(strand);
        return;
    }
    if (errand_fault(errand) != DYNAMO_FINE) {
        strand->is_unsure = true;
        strand->commit_retry = due_after_us(
            errand->consumer,
            retry_after_us(++strand->commit_failures, RETRY_MAX_US, random_next(&errand->consumer->random)));
        return;
    }
    bool is_ours = raw_members(&errand->arena, buf_view(&errand->reply), names, &item, 1) &&
                   position_parse(item, &errand->arena, &position, &shard) &&
                   position.fence == strand->seen.fence;
    if (!is_ours)
        strand_lose(strand);
    else if (position.moves == strand->seen.moves + 1 && position.mark == strand->plan.mark)
        commit_is_through(strand, strand->commit_us);
    else if (position.moves == strand->seen.moves)
        commit_later(strand);
    else
        strand_lose(strand);
    position_free(&position);
}

static void look_whether_it_happened(struct strand *strand)
{
    struct errand *errand = errand_new(strand->feed, strand, position_answered);
    strand->is_unsure = false;
    put_position_probe(&errand->request, strand);
    errand_call(errand, SLICE("UpdateItem"));
}

static void commit_cancelled(struct strand *strand, struct errand *errand)
{
    char reason[200];
    switch (cancellation_of(buf_view(&errand->reply), &errand->arena, reason, sizeof reason)) {
    case CANCELLED_BY_US: look_whether_it_happened(strand); break;
    case CANCELLED_BY_OTHERS: commit_was_refused(strand, reason); break;
    case CANCELLED_FOR_NOW:
        stats_add(&errand->consumer->counts.conflicts, 1);
        commit_later(strand);
        break;
    }
}

static void commit_answered(struct errand *errand)
{
    struct strand *strand = errand->strand;
    char reason[200];
    if (!errand_is_current(errand)) return;
    strand_touch(strand);
    switch (errand_fault(errand)) {
    case DYNAMO_FINE: commit_is_through(strand, errand->began_us); break;
    case DYNAMO_CANCELLED: commit_cancelled(strand, errand); break;
    case DYNAMO_AGAIN: commit_later(strand); break;
    case DYNAMO_UNKNOWN: /* it may have happened, or may have been applied by a
                           repeat of ours */
    case DYNAMO_CONDITION: look_whether_it_happened(strand); break;
    default:
        snprintf(reason, sizeof reason, "%s: %.*s", errand->call.error, SLICE_ARG(errand_message(errand)));
        commit_was_refused(strand, reason);
        break;
    }
}

/* ---- asking ---- */

static void begin_commit(struct strand *strand, const struct lane *leader)
{
    struct errand *errand = errand_new(strand->feed, strand, commit_answered);
    strand->is_committing = true;
    strand->commit_us = errand->began_us;
    if (!leader) {
        put_position_commit(&errand->request, strand, &strand->plan);
        errand_call(errand, SLICE("UpdateItem"));
        return;
    }
    buf_text(&errand->request, "{\"TransactItems\":[{\"Update\":");
    put_position_commit(&errand->request, strand, &strand->plan);
    buf_text(&errand->request, "},");
    buf_slice(&errand->request, buf_view(&leader->settlement.members));
    buf_text(&errand->request, "]}");
    errand->call.cause = arena_copy(&errand->arena, buf_view(&leader->settlement.cause));
    errand_call(errand, SLICE("TransactWriteItems"));
}

void commit_attend(struct strand *strand)
{
    struct consumer *consumer = strand->feed->consumer;
    struct lane *leader;
    if (strand->state != STRAND_HELD || (strand->is_committing && !strand->is_unsure)) return;
    if (!due_is_over(consumer, &strand->commit_retry)) {
        strand_wake_due(strand, &strand->commit_retry);
        return;
    }
    if (strand->is_unsure)
        look_whether_it_happened(strand);
    else if (make_plan(strand, &leader))
        begin_commit(strand, leader);
}
