/* A shard as one mapping reads it: its lease is taken, and while it is held, positions move by commits, together with
 * what functions returned, once or not at all (T1, L1).
 *
 * The lanes of a shard share one item, so its commits go one after the other, and one takes all with it that
 * waits: a lane with writes of its own (a transaction), all lanes that have none, and those that only saw
 * records go by. A commit without an answer is repeated as it is: when its condition fails, `moves` and `mark` of the
 * item tell whether it had happened. */
#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/log.h"
#include "trigger/consume.h"
#include "trigger/watch.h"

#define TAKE_AGAIN_US 200000  /* after somebody was faster, or no answer came */
#define SKIPPED_MAX   1000    /* records that went by since the position last moved, */
#define SKIPPED_US    1000000 /* or so long ago: a filter costs no more writes than that */
#define RETRY_MAX_US  2000000
#define PUTS_MAX      25 /* of a BatchWriteItem */

struct shard *add_shard(struct reader *reader, struct slice id)
{
    struct shard *shard = must_zero(1, sizeof *shard), **end = &reader->shards;
    while (*end) end = &(*end)->next;
    ensure(id.len <= LIMIT_SHARD_ID_BYTES);
    memcpy(shard->id, id.data, id.len);
    shard->reader = reader;
    shard->known_us = consumer_ticks_us(reader->consumer);
    *end = shard;
    return shard;
}

static void free_lanes(struct shard *shard)
{
    for (uint32_t i = 0; i < shard->lane_count; i++) lane_free(&shard->lanes[i]);
    free(shard->lanes);
    shard->lanes = NULL;
    shard->lane_count = 0;
}

void shard_free(struct shard *shard)
{
    if (shard->lanes) stats_add(&shard->reader->consumer->counts.shards_held, (uint64_t)-1);
    free_lanes(shard);
    position_free(&shard->seen);
    buf_free(&shard->iterator);
    free(shard);
}

void shard_touch(struct shard *shard)
{
    task_signal_give(&shard->changed);
}

void shard_lose(struct shard *shard)
{
    struct reader *reader = shard->reader;
    stats_add(&reader->consumer->counts.leases_lost, 1);
    shard->state = SHARD_LEAVING;
    reader->positions_us = 0; /* who has it now, and how far is it? */
    shard_touch(shard);
    reader_touch(reader);
}

bool shard_is_held(const struct shard *shard)
{
    return shard->state == SHARD_HELD;
}

bool shard_is_stopping(const struct shard *shard)
{
    return shard->is_handing_over || !reader_is_running(shard->reader);
}

/* True while records must go to other lanes than the mapping now asks for. */
bool shard_is_changing_lanes(const struct shard *shard)
{
    return shard->lane_count != shard->reader->mapping->lanes;
}

/* True while something runs that is to end before the lease is given up. */
static bool is_busy(const struct shard *shard)
{
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        enum lane_state state = shard->lanes[i].state;
        if (state == LANE_CALLED || state == LANE_SETTLED || state == LANE_COMMITTING) return true;
    }
    return false;
}

/* True when all records that it has been told of are handled. */
bool shard_is_quiet(const struct shard *shard)
{
    if (shard->state == SHARD_ENDED) return true;
    if (shard->state != SHARD_HELD) return false;
    for (uint32_t i = 0; i < shard->lane_count; i++)
        if (shard->lanes[i].state != LANE_IDLE || shard->lanes[i].count) return false;
    return !shard->is_committing && !shard->is_reading && !shard->has_more;
}

/* ---- lanes ---- */

static void make_lanes(struct shard *shard, uint32_t count, const struct point *at, bool all_the_same)
{
    shard->lanes = must_zero(count, sizeof *shard->lanes);
    shard->lane_count = count;
    for (uint32_t i = 0; i < count; i++) {
        shard->lanes[i].shard = shard;
        shard->lanes[i].number = i;
        shard->lanes[i].at = at[all_the_same ? 0 : i];
    }
}

static void begin_lanes(struct shard *shard)
{
    shard->lane_tasks = shard->lane_count;
    for (uint32_t i = 0; i < shard->lane_count; i++)
        task_begin(shard->reader->consumer->host, lane_task, &shard->lanes[i]);
}

/* Nothing waits or runs in them. */
static void change_lanes(struct shard *shard)
{
    struct point at = shard->plan.to[0];
    shard->ends_lanes = true;
    shard_touch(shard);
    while (shard->lane_tasks) task_await(&shard->changed, TASK_NEVER);
    shard->ends_lanes = false;
    free_lanes(shard);
    make_lanes(shard, shard->plan.lanes, &at, true);
    begin_lanes(shard);
}

/* ---- the plan of a commit ---- */

static bool is_done(const struct lane *lane)
{
    return lane->state == LANE_IDLE && !lane->count && !lane->depth && !lane->window.old_parts;
}

/* Nothing waits or runs and no window is open: the position can be told for all lanes at once. */
static bool all_are_done(const struct shard *shard)
{
    for (uint32_t i = 0; i < shard->lane_count; i++)
        if (!is_done(&shard->lanes[i]) || shard->lanes[i].window.is_open) return false;
    return true;
}

static bool has_writes(const struct lane *lane)
{
    return lane->settlement.effect_count || lane->settlement.child_count;
}

/* The lane with writes that has waited longest; NULL: none has any. */
static struct lane *choose_leader(const struct shard *shard)
{
    struct lane *leader = NULL;
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        struct lane *lane = &shard->lanes[i];
        if (lane->state != LANE_SETTLED || !has_writes(lane)) continue;
        if (!leader || lane->settlement.number < leader->settlement.number) leader = lane;
    }
    return leader;
}

/* Behind the last record that is done; behind all that was read when none is left. */
static struct point point_behind(const struct lane *lane)
{
    const struct shard *shard = lane->shard;
    struct point to = lane->at;
    uint32_t moves = lane->settlement.moves;
    if (moves == lane->count && point_compare(&shard->read_at, &lane->at) > 0) return shard->read_at;
    if (moves) point_set(&to, lane_head(lane)[moves - 1].sequence);
    return to;
}

static bool plan_settled(struct shard *shard, const struct lane *leader, struct commit_plan *plan)
{
    bool any = false;
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        struct lane *lane = &shard->lanes[i];
        if (lane->state != LANE_SETTLED || (has_writes(lane) && lane != leader)) continue;
        lane->state = LANE_COMMITTING;
        plan->moves_lane[i] = any = true;
        plan->to[i] = point_behind(lane);
    }
    return any;
}

static bool has_skipped_enough(const struct shard *shard)
{
    int64_t now_us = consumer_ticks_us(shard->reader->consumer);
    return shard->skipped && (shard->skipped >= SKIPPED_MAX || now_us >= shard->skipped_us + SKIPPED_US);
}

static bool can_change_lanes(const struct shard *shard)
{
    return shard_is_changing_lanes(shard) && !shard->is_reading &&
           point_compare(&shard->read_at, &shard->known_to) >= 0 && !shard_is_stopping(shard);
}

/* No lane needs to know any more where LATEST was. */
static bool all_have_numbers(const struct shard *shard, const struct commit_plan *plan)
{
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        const struct point *at = plan->lanes           ? &plan->to[0]
                                 : plan->moves_lane[i] ? &plan->to[i]
                                                       : &shard->lanes[i].at;
        if (!point_is_number(at)) return false;
    }
    return true;
}

/* True when there is something to commit. */
static bool make_plan(struct shard *shard, struct lane **leader)
{
    struct consumer *consumer = shard->reader->consumer;
    struct commit_plan *plan = &shard->plan;
    *plan = (struct commit_plan){0};
    *leader = choose_leader(shard);
    bool is_wanted = plan_settled(shard, *leader, plan);
    if (!is_wanted && all_are_done(shard)) {
        plan->ends = shard->is_read_out;
        if (!plan->ends && can_change_lanes(shard)) plan->lanes = shard->reader->mapping->lanes;
        if (plan->lanes) plan->to[0] = shard->read_at;
    }
    is_wanted |= plan->ends || plan->lanes || has_skipped_enough(shard);
    is_wanted |= consumer_ticks_us(consumer) >= shard->renew_us;
    if (!is_wanted) return false;
    plan->renews = consumer->settings.shared;
    plan->mark = (int64_t)(consumer_random(consumer) >> 12); /* fits any reader's number */
    if (!plan->lanes) {
        /* Lanes that only saw records go by move along. */
        for (uint32_t i = 0; i < shard->lane_count; i++) {
            const struct lane *lane = &shard->lanes[i];
            if (!is_done(lane) || point_compare(&shard->read_at, &lane->at) <= 0) continue;
            plan->moves_lane[i] = true;
            plan->to[i] = shard->read_at;
        }
    }
    plan->loses_iterator = shard->seen.since_ms > 0 && all_have_numbers(shard, plan);
    return true;
}

/* ---- a commit ---- */

/* A lease counts from when it was asked for: the item's time is not later than that. */
static void lease_renewed(struct shard *shard, int64_t asked_us)
{
    const struct consumer_settings *settings = &shard->reader->consumer->settings;
    shard->lease_us = settings->shared ? asked_us + lease_held_ms(shard->reader->consumer) * 1000 : NEVER_US;
    shard->renew_us = settings->shared ? asked_us + settings->lease_ms * 1000 / 3 : NEVER_US;
}

static void note_success(struct shard *shard)
{
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        const struct lane *lane = &shard->lanes[i];
        if (lane->state != LANE_COMMITTING || lane->gives_up || !lane->settlement.moves) continue;
        if (lane->settlement.moves == lane->take) reader_note(shard->reader, "OK");
    }
}

static void commit_is_through(struct shard *shard, int64_t asked_us)
{
    struct consumer *consumer = shard->reader->consumer;
    const struct commit_plan *plan = &shard->plan;
    bool has_calls = false; /* in the queue of asynchronous ones, perhaps */
    shard->seen.moves++;
    shard->seen.names_effect = false;
    shard->skipped = 0;
    if (plan->loses_iterator) {
        shard->seen.iterator.len = 0;
        shard->seen.since_ms = 0;
    }
    if (plan->renews) lease_renewed(shard, asked_us);
    stats_add(&consumer->counts.commits, 1);
    note_success(shard);
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        struct lane *lane = &shard->lanes[i];
        if (plan->moves_lane[i]) lane->at = plan->to[i];
        if (lane->state != LANE_COMMITTING) continue;
        has_calls |= lane->settlement.has_document ||
                     (lane->settlement.child_count && lane_mapping(lane)->watch);
        lane_committed(lane);
    }
    if (has_calls) consumer->world.wake_queue(consumer->world.func);
    if (plan->lanes) change_lanes(shard);
}

/* The writes of one lane are to blame; the others are tried again without them. False: the position itself is. */
static bool commit_was_refused(struct shard *shard, struct lane *leader, const char *why)
{
    if (!leader) {
        log_line("triggers: mapping %.*s: the position in shard %s cannot be written: %s",
                 SLICE_ARG(shard->reader->mapping->id), shard->id, why);
        return false;
    }
    /* All that it would have moved waits again. */
    for (uint32_t i = 0; i < shard->lane_count; i++)
        if (shard->lanes[i].state == LANE_COMMITTING) shard->lanes[i].state = LANE_SETTLED;
    if (leader->settlement.has_document)
        lane_undocumented(leader, why);
    else
        lane_refused(leader, why);
    return true;
}

static bool lease_is_over(const struct shard *shard)
{
    return consumer_ticks_us(shard->reader->consumer) >= shard->lease_us;
}

/* Whoever comes next may have to make the commit under way. */
static bool commit_may_go_on(const struct shard *shard)
{
    return shard_is_held(shard) && !lease_is_over(shard) && !shard->reader->consumer->is_late;
}

/* False: the lease is over, the shard is left, or the server ends. */
static bool commit_pause(struct shard *shard, uint32_t failures, int64_t share)
{
    struct consumer *consumer = shard->reader->consumer;
    struct task_moment until = task_after_us(
        consumer->host, retry_after_us(failures, RETRY_MAX_US, consumer_random(consumer)) / share);
    while (commit_may_go_on(shard) && !task_moment_is_over(consumer->host, &until))
        task_await(&shard->changed, until);
    return commit_may_go_on(shard);
}

enum decided { DECIDED, DECIDED_BY_OTHERS, DECIDED_NOT };

/* Writes it until it is known what has become of it. DECIDED_NOT: it cannot be, *why. */
static enum decided decide(struct shard *shard, const struct task_commit *write, const char **why)
{
    struct arena *arena = task_arena();
    const struct environment *world = &shard->reader->consumer->world;
    bool is_mended = false; /* a table of queues or calls, which somebody had deleted */
    for (uint32_t failures = 1;; failures++) {
        struct task_commit_reply reply = task_commit(write);
        struct position now = {0};
        struct slice id;
        if (!shard_is_held(shard)) return DECIDED_BY_OTHERS;
        if (reply.end == COMMIT_DONE) return DECIDED;
        if (reply.end == COMMIT_REFUSED && reply.fault == DYNAMO_MISSING && !is_mended) {
            is_mended = world->mend_tables(world->func);
            if (is_mended) continue;
        }
        if (reply.end == COMMIT_REFUSED) {
            bool is_among = reply.number && reply.part != COMMIT_ANCHOR;
            struct slice which = is_among ? arena_printf(arena, "write %u: ", reply.number) : SLICE("");
            *why = arena_printf(arena, "%.*s%.*s: %.*s", SLICE_ARG(which), SLICE_ARG(reply.error),
                                SLICE_ARG(reply.message))
                       .data;
            return DECIDED_NOT;
        }
        if (reply.end == COMMIT_CONDITION) {
            bool is_ours = position_parse(reply.item, arena, &now, &id) && now.fence == shard->seen.fence &&
                           now.owner[0];
            bool has_moved = is_ours && now.moves == shard->seen.moves + 1 && now.mark == shard->plan.mark;
            bool is_same = is_ours && now.moves == shard->seen.moves;
            position_free(&now);
            if (has_moved) return DECIDED;
            if (!is_same) return DECIDED_BY_OTHERS;
        }
        if (reply.is_busy) stats_add(&shard->reader->consumer->counts.conflicts, 1);
        if (!commit_pause(shard, failures, reply.fault == DYNAMO_UNKNOWN ? 1 : 8)) return DECIDED_BY_OTHERS;
    }
}

/* ---- puts that come first ---- */

/* Some of the puts of a lane as a BatchWriteItem, from *at on. */
static struct task_reply put_some(const struct lane *lane, struct slice puts, unsigned from)
{
    struct arena *arena = task_arena();
    struct raw_walk walk;
    struct slice action, table = SLICE_NONE;
    struct task_call *call = task_call_new("BatchWriteItem");
    struct buf *request = task_call_request(call);
    raw_walk_begin(&walk, arena, puts);
    for (unsigned i = 0; i < from + PUTS_MAX && raw_walk_next(&walk, NULL, &action); i++) {
        struct slice put = raw_member(arena, action, "Put"), own = raw_member(arena, put, "TableName");
        if (i < from) continue;
        ensure(put.len && (!table.data || slice_equal(own, table))); /* one table, see trigger.h */
        if (!table.data) buf_printf(request, "{\"RequestItems\":{%.*s:[", SLICE_ARG(own));
        if (table.data) buf_byte(request, ',');
        table = own;
        buf_text(request, "{\"PutRequest\":{\"Item\":");
        buf_slice(request, raw_member(arena, put, "Item"));
        buf_text(request, "}}");
    }
    buf_text(request, "]}}");
    task_call_options(call)->cause = arena_copy(arena, buf_view(&lane->settlement.cause));
    return task_send(call);
}

/* All puts of the lane, until each has been taken. DECIDED_NOT: they cannot be made, *why. */
static enum decided put_all(struct shard *shard, struct lane *lane, const char **why)
{
    struct arena *arena = task_arena();
    struct slice puts = arena_printf(arena, "[%.*s]", SLICE_ARG(buf_view(&lane->settlement.children)));
    uint32_t failures = 0;
    for (unsigned at = 0; at < lane->settlement.child_count;) {
        struct task_reply reply = put_some(lane, puts, at);
        struct slice left = raw_member(arena, reply.body, "UnprocessedItems");
        if (!shard_is_held(shard)) return DECIDED_BY_OTHERS;
        if (reply.fault == DYNAMO_FINE && left.len <= 2) { /* none, or {} */
            at += PUTS_MAX;
            failures = 0;
        } else if (reply.fault == DYNAMO_FINE || dynamo_fault_may_pass(reply.fault) ||
                   reply.fault == DYNAMO_IN_USE) {
            if (!commit_pause(shard, ++failures, 8)) return DECIDED_BY_OTHERS;
        } else {
            *why = arena_printf(arena, "%.*s: %.*s", SLICE_ARG(reply.error),
                                SLICE_ARG(task_reply_message(&reply)))
                       .data;
            return DECIDED_NOT;
        }
    }
    return DECIDED;
}

/* ---- the whole of it ---- */

/* Carries out the plan. True: it is through, or the lanes know what has become of it; false: the lease is lost. */
static bool commit(struct shard *shard, struct lane *leader)
{
    struct consumer *consumer = shard->reader->consumer;
    struct watch *watch = leader ? lane_mapping(leader)->watch : NULL;
    int64_t asked_us = consumer_ticks_us(consumer);
    struct task_commit write = {.in_order = true, /* effects of several shards may meet in one item */
                                .until_us = shard->lease_us};
    const char *why = NULL;
    enum decided decided = DECIDED;
    if (leader) {
        write.cause = buf_view(&leader->settlement.cause);
        write.children = buf_view(&leader->settlement.children);
        write.effects = buf_view(&leader->settlement.effects);
        write.source = position_source(shard, leader->number);
    }
    if (watch && watch_puts_first(watch)) {
        decided = put_all(shard, leader, &why);
        write.children = SLICE("");
    }
    bool names_effect = leader && leader->settlement.effect_count == 1 && !task_has_transactions();
    if (names_effect &&
        decided == DECIDED) { /* first the position tells of it, so that nobody makes another one */
        shard->plan.names_effect_of = leader;
        write.marker = arena_printf(task_arena(), "%lld", (long long)shard->plan.mark);
        struct task_commit naming = {.anchor = position_commit(shard, &shard->plan),
                                     .children = write.children};
        decided = decide(shard, &naming, &why);
        shard->plan.names_effect_of = NULL;
        shard->plan.mark = (int64_t)(consumer_random(consumer) >> 12);
        write.children = SLICE("");
        if (decided == DECIDED) shard->seen.moves++;
        shard->seen.names_effect |= decided == DECIDED;
    }
    if (decided == DECIDED) {
        write.anchor = position_commit(shard, &shard->plan);
        decided = decide(shard, &write, &why);
    }
    if (decided == DECIDED_NOT) return commit_was_refused(shard, leader, why);
    if (decided == DECIDED) commit_is_through(shard, asked_us);
    return decided == DECIDED;
}

/* ---- taking the lease ---- */

/* False: somebody was faster, or no answer came. *item: as it is then. */
static bool take(struct shard *shard, struct slice *item)
{
    struct slice id;
    struct task_reply reply = task_request("UpdateItem", position_take(shard));
    if (reply.fault != DYNAMO_FINE) return false;
    *item = arena_copy(task_arena(), raw_member(task_arena(), reply.body, "Attributes"));
    return position_parse(*item, task_arena(), &shard->seen, &id);
}

/* The last holder may have begun an effect: it is brought to its end, or, where it is refused, forgotten; its records
 * come again. Then the position is another one. False: that could not be done. */
static bool finish_effect(struct shard *shard, struct slice effect)
{
    struct consumer *consumer = shard->reader->consumer;
    struct task_commit write = {0};
    const char *why;
    enum decided decided = DECIDED_NOT;
    for (int is_moved = 1; is_moved >= 0 && decided == DECIDED_NOT; is_moved--) {
        shard->plan = (struct commit_plan){.mark = (int64_t)(consumer_random(consumer) >> 12)};
        position_finish(shard, effect, is_moved, &write);
        decided = decide(shard, &write, &why);
    }
    return decided == DECIDED;
}

/* ---- the task ---- */

enum leaving { LEAVE_LOST, LEAVE_RELEASED, LEAVE_ENDED };

/* Commits until the shard is left. */
static enum leaving work(struct shard *shard)
{
    struct consumer *consumer = shard->reader->consumer;
    struct arena_mark mark = arena_mark(task_arena());
    struct lane *leader;
    while (shard_is_held(shard)) {
        arena_rewind(task_arena(), mark);
        int64_t now_us = consumer_ticks_us(consumer);
        if (lease_is_over(shard)) break;
        if (shard_is_stopping(shard) && (!is_busy(shard) || consumer->is_late)) return LEAVE_RELEASED;
        if (make_plan(shard, &leader)) {
            shard->is_committing = true;
            bool is_fine = commit(shard, leader);
            shard->is_committing = false;
            shard_touch(shard);
            if (!is_fine) break;
            if (shard->plan.ends) return LEAVE_ENDED;
            continue;
        }
        int64_t due_us = shard->lease_us < shard->renew_us ? shard->lease_us : shard->renew_us;
        if (due_us <= now_us) due_us = shard->lease_us;
        if (shard->skipped && shard->skipped_us + SKIPPED_US < due_us)
            due_us = shard->skipped_us + SKIPPED_US;
        task_await(&shard->changed, (struct task_moment){due_us, HEAP_NEVER});
    }
    if (shard_is_held(shard)) shard_lose(shard);
    return LEAVE_LOST;
}

static void leave(struct shard *shard, enum leaving how)
{
    struct consumer *consumer = shard->reader->consumer;
    shard->state = SHARD_LEAVING;
    shard_touch(shard);
    while (shard->lane_tasks || shard->tasks > 1) task_await(&shard->changed, TASK_NEVER);
    free_lanes(shard);
    shard->iterator.len = 0;
    stats_add(&consumer->counts.shards_held, (uint64_t)-1);
    if (how == LEAVE_RELEASED) {
        /* Whoever asked for it has time to take it before we look at it again. */
        if (consumer->settings.shared) {
            /* Gone either way: what is not given back ends by itself. */
            task_request("UpdateItem", position_release(shard));
            shard->retry = task_after_us(consumer->host, consumer->settings.lease_ms * 1000);
        }
        shard->seen.exists = true;
    }
    shard->wish = LEASE_LEAVE;
    if (how == LEAVE_ENDED) return;
    shard->seen.owner[0] = 0;
    if (shard->is_missing) position_free(&shard->seen);
}

/* Takes the lease and makes the lanes. False: somebody was faster, no answer came, or it is to be tried again. */
static bool begin(struct shard *shard)
{
    struct reader *reader = shard->reader;
    int64_t asked_us = consumer_ticks_us(reader->consumer);
    struct slice item, effect = SLICE_NONE;
    do {
        if (!take(shard, &item) || reader_meet(reader, &shard->seen)) return false;
        shard->held_us = consumer_ticks_us(reader->consumer);
        lease_renewed(shard, asked_us);
        shard->is_handing_over = shard->is_missing = false;
        effect = raw_member(task_arena(), raw_member(task_arena(), item, "effect"), "M");
        if (!effect.data) break;
        shard->state = SHARD_HELD;
        if (!finish_effect(shard, effect)) return false;
        shard->state = SHARD_TAKING;
        asked_us = consumer_ticks_us(reader->consumer);
    } while (true);
    if (shard->seen.ended) return true;
    make_lanes(shard, shard->seen.lanes, shard->seen.at, false);
    stats_add(&reader->consumer->counts.shards_held, 1);
    if (reader->mapping->tumbling_ms && !windows_load(shard, item)) {
        leave(shard, LEAVE_LOST);
        return false;
    }
    shard->retry = (struct task_moment){0};
    shard->read_at = shard->known_to = shard->lanes[0].at;
    for (uint32_t i = 1; i < shard->lane_count; i++) {
        if (point_compare(&shard->lanes[i].at, &shard->read_at) < 0) shard->read_at = shard->lanes[i].at;
        if (point_compare(&shard->lanes[i].at, &shard->known_to) > 0) shard->known_to = shard->lanes[i].at;
    }
    /* Reads on where the least lane stands; where that is LATEST, with the iterator of that moment. */
    shard->iterator.len = 0;
    shard->is_reading = shard->is_read_out = shard->from_horizon = false;
    shard->has_lost_latest = false;
    shard->has_more = true;
    shard->ask_us = shard->last_ask_us = shard->pause_us = 0;
    shard->empty_us = shard->empty_ms = -1;
    shard->skipped = shard->read_failures = 0;
    bool is_latest = slice_equal(point_view(&shard->read_at), SLICE("LATEST"));
    if (is_latest && shard->seen.iterator.len)
        json_put_string(&shard->iterator, buf_view(&shard->seen.iterator));
    else if (is_latest)
        shard->has_lost_latest = true;
    shard->state = SHARD_HELD;
    return true;
}

void shard_task(void *argument)
{
    struct shard *shard = argument;
    struct reader *reader = shard->reader;
    struct consumer *consumer = reader->consumer;
    enum shard_state state = SHARD_FREE;
    shard->is_committing = true;
    bool has_begun = begin(shard);
    shard->is_committing = false;
    if (!has_begun) {
        shard->wish = LEASE_LEAVE;
        shard->retry = task_after_us(consumer->host, TAKE_AGAIN_US);
        reader->positions_us = shard->retry.ticks_us;
    } else if (shard->seen.ended) {
        state = SHARD_ENDED;
    } else {
        shard->tasks++;
        task_begin(consumer->host, read_task, shard);
        begin_lanes(shard);
        enum leaving how = work(shard);
        leave(shard, how);
        if (how == LEAVE_ENDED) state = SHARD_ENDED;
    }
    shard->state = state;
    shard->tasks--;
    if (state == SHARD_ENDED) {
        shard->seen.ended = true;
        reader_look_soon(reader, shard);
        if (reader->stage == READER_RUNS) release_shards(reader);
    }
    reader_touch(reader);
}
