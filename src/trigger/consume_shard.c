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
#define LOAD_AGAIN_US 1000000 /* after the states of windows could not be read */
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

/* Lanes that only saw records go by move along. */
static void plan_idle(const struct shard *shard, struct commit_plan *plan)
{
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        const struct lane *lane = &shard->lanes[i];
        if (!is_done(lane) || point_compare(&shard->read_at, &lane->at) <= 0) continue;
        plan->moves_lane[i] = true;
        plan->to[i] = shard->read_at;
    }
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
    if (!plan->lanes) plan_idle(shard, plan);
    plan->loses_iterator = shard->seen.iterator.len > 0 && point_is_number(&shard->read_at);
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
    shard->skipped = 0;
    if (plan->loses_iterator) shard->seen.iterator.len = 0;
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
    if (has_calls) consumer->world.wake_queue(consumer->world.self);
    if (plan->lanes) change_lanes(shard);
}

/* All that it would have moved waits again. */
static void take_back(struct shard *shard)
{
    for (uint32_t i = 0; i < shard->lane_count; i++)
        if (shard->lanes[i].state == LANE_COMMITTING) shard->lanes[i].state = LANE_SETTLED;
}

/* The writes of one lane are to blame; the others are tried again without them. False: the position itself is. */
static bool commit_was_refused(struct shard *shard, struct lane *leader, struct slice reason)
{
    struct slice text = arena_printf(task_arena(), "%.*s", SLICE_ARG(reason));
    if (!leader) {
        log_line("triggers: mapping %.*s: the position in shard %s cannot be written: %s",
                 SLICE_ARG(shard->reader->mapping->id), shard->id, text.data);
        return false;
    }
    take_back(shard);
    if (leader->settlement.has_document)
        lane_undocumented(leader, text.data);
    else
        lane_refused(leader, text.data);
    return true;
}

static struct task_reply send_commit(struct shard *shard, const struct lane *leader)
{
    struct task_call *call = task_call_new(leader ? "TransactWriteItems" : "UpdateItem");
    struct buf *request = task_call_request(call);
    task_call_options(call)->in_order = true; /* effects of several shards may meet in one item */
    if (!leader) {
        put_position_commit(request, shard, &shard->plan);
        return task_send(call);
    }
    buf_text(request, "{\"TransactItems\":[{\"Update\":");
    put_position_commit(request, shard, &shard->plan);
    buf_byte(request, '}');
    if (leader->settlement.effect_count) compose(request, ",%A", buf_view(&leader->settlement.effects));
    if (leader->settlement.child_count) compose(request, ",%A", buf_view(&leader->settlement.children));
    buf_text(request, "]}");
    task_call_options(call)->cause = arena_copy(task_arena(), buf_view(&leader->settlement.cause));
    return task_send(call);
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

static bool lease_is_over(const struct shard *shard)
{
    return consumer_ticks_us(shard->reader->consumer) >= shard->lease_us;
}

/* False: the lease is over, or the shard is left. */
static bool commit_pause(struct shard *shard, uint32_t failures, int64_t share)
{
    struct consumer *consumer = shard->reader->consumer;
    struct task_moment until = task_after_us(
        consumer->host, retry_after_us(failures, RETRY_MAX_US, consumer_random(consumer)) / share);
    while (shard_is_held(shard) && !lease_is_over(shard) && !task_moment_is_over(consumer->host, &until))
        task_await(&shard->changed, until);
    return shard_is_held(shard) && !lease_is_over(shard);
}

/* All puts of the lane, until each has been taken. False: the lease is over, or the shard is left. *refused: why they
 * cannot be made. */
static bool put_all(struct shard *shard, struct lane *lane, struct slice *refused)
{
    struct arena *arena = task_arena();
    struct slice puts = arena_printf(arena, "[%.*s]", SLICE_ARG(buf_view(&lane->settlement.children)));
    uint32_t failures = 0;
    for (unsigned at = 0; at < lane->settlement.child_count;) {
        struct task_reply reply = put_some(lane, puts, at);
        struct slice left = raw_member(arena, reply.body, "UnprocessedItems");
        if (!shard_is_held(shard)) return false;
        if (reply.fault == DYNAMO_FINE && left.len <= 2) { /* none, or {} */
            at += PUTS_MAX;
            failures = 0;
        } else if (reply.fault == DYNAMO_FINE || dynamo_fault_may_pass(reply.fault) ||
                   reply.fault == DYNAMO_IN_USE) {
            if (!commit_pause(shard, ++failures, 8)) return false;
        } else {
            *refused = arena_printf(arena, "%.*s: %.*s", SLICE_ARG(reply.error),
                                    SLICE_ARG(task_reply_message(&reply)));
            return true;
        }
    }
    return true;
}

/* Of a commit whose condition failed, the item as it is. */
static enum { MOVED_BY_US, NOT_MOVED, MOVED_BY_OTHERS } see_item(const struct shard *shard, struct slice item)
{
    struct position position = {0};
    struct slice id;
    bool is_ours = position_parse(item, task_arena(), &position, &id) && position.fence == shard->seen.fence;
    bool has_moved = is_ours && position.moves == shard->seen.moves + 1 && position.mark == shard->plan.mark;
    bool is_same = is_ours && position.moves == shard->seen.moves;
    position_free(&position);
    return has_moved ? MOVED_BY_US : is_same ? NOT_MOVED : MOVED_BY_OTHERS;
}

/* The item that the reply of a failed condition shows: that of the first action. */
static struct slice failed_item(const struct task_reply *reply)
{
    struct raw_walk walk;
    struct slice reason = reply->body;
    raw_walk_begin(&walk, task_arena(), raw_member(task_arena(), reply->body, "CancellationReasons"));
    if (reply->fault == DYNAMO_CANCELLED && !raw_walk_next(&walk, NULL, &reason)) return SLICE_NONE;
    return raw_member(task_arena(), reason, "Item");
}

/* Carries out the plan. True: it is through, or the lanes know what has become of it; false: the lease is lost. */
static bool commit(struct shard *shard, struct lane *leader)
{
    struct consumer *consumer = shard->reader->consumer;
    struct watch *watch = leader ? lane_mapping(leader)->watch : NULL;
    if (watch && watch_puts_first(watch)) {
        struct slice refused = SLICE_NONE;
        if (!put_all(shard, leader, &refused)) return false;
        if (refused.data) return commit_was_refused(shard, leader, refused);
        leader = NULL;
    }
    for (uint32_t failures = 1;; failures++) {
        int64_t asked_us = consumer_ticks_us(consumer);
        struct task_reply reply = send_commit(shard, leader);
        struct dynamo_cancellation why = {.first = -1};
        if (!shard_is_held(shard)) return false;
        if (reply.fault == DYNAMO_CANCELLED) why = dynamo_cancellation(reply.body, task_arena());
        bool has_failed = reply.fault == DYNAMO_CONDITION || why.first == 0;
        if (reply.fault == DYNAMO_FINE ||
            (has_failed && see_item(shard, failed_item(&reply)) == MOVED_BY_US)) {
            commit_is_through(shard, asked_us);
            return true;
        }
        if (has_failed && see_item(shard, failed_item(&reply)) == MOVED_BY_OTHERS) return false;
        if (why.first > 0)
            return commit_was_refused(shard, leader,
                                      arena_printf(task_arena(), "write %d: %.*s: %.*s", why.first,
                                                   SLICE_ARG(why.code), SLICE_ARG(why.message)));
        bool may_pass = has_failed || dynamo_fault_may_pass(reply.fault) || reply.fault == DYNAMO_CANCELLED ||
                        reply.fault == DYNAMO_IN_USE;
        if (!may_pass)
            return commit_was_refused(shard, leader,
                                      arena_printf(task_arena(), "%.*s: %.*s", SLICE_ARG(reply.error),
                                                   SLICE_ARG(task_reply_message(&reply))));
        if (why.may_pass) stats_add(&consumer->counts.conflicts, 1);
        if (!commit_pause(shard, failures, reply.fault == DYNAMO_UNKNOWN ? 1 : 8)) return false;
    }
}

/* ---- taking the lease ---- */

/* False: somebody was faster, or no answer came. *item: as it is then. */
static bool take(struct shard *shard, struct slice *item)
{
    struct slice id;
    struct task_call *call = task_call_new("UpdateItem");
    put_position_take(task_call_request(call), shard);
    struct task_reply reply = task_send(call);
    if (reply.fault != DYNAMO_FINE) return false;
    *item = arena_copy(task_arena(), raw_member(task_arena(), reply.body, "Attributes"));
    return position_parse(*item, task_arena(), &shard->seen, &id);
}

static void find_ends(struct shard *shard)
{
    shard->read_at = shard->known_to = shard->lanes[0].at;
    for (uint32_t i = 1; i < shard->lane_count; i++) {
        if (point_compare(&shard->lanes[i].at, &shard->read_at) < 0) shard->read_at = shard->lanes[i].at;
        if (point_compare(&shard->lanes[i].at, &shard->known_to) > 0) shard->known_to = shard->lanes[i].at;
    }
}

/* Reads on where the least lane stands; where that is LATEST, with the iterator of that moment. */
static void begin_reading(struct shard *shard)
{
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

/* Whoever asked for it has time to take it before we look at it again. */
static void give_back(struct shard *shard)
{
    struct consumer *consumer = shard->reader->consumer;
    if (consumer->settings.shared) {
        struct task_call *call = task_call_new("UpdateItem");
        put_position_release(task_call_request(call), shard);
        task_send(call); /* gone either way: what is not given back ends by itself */
        shard->retry = task_after_us(consumer->host, consumer->settings.lease_ms * 1000);
    }
    shard->seen.exists = true;
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
    if (how == LEAVE_RELEASED) give_back(shard);
    shard->wish = LEASE_LEAVE;
    if (how == LEAVE_ENDED) return;
    shard->seen.owner[0] = 0;
    if (shard->is_missing) position_free(&shard->seen);
}

static void take_again(struct shard *shard, int64_t us)
{
    shard->wish = LEASE_LEAVE;
    shard->retry = task_after_us(shard->reader->consumer->host, us);
    shard->reader->positions_us = shard->retry.ticks_us;
}

void shard_task(void *argument)
{
    struct shard *shard = argument;
    struct reader *reader = shard->reader;
    struct consumer *consumer = reader->consumer;
    enum shard_state state = SHARD_FREE;
    int64_t asked_us = consumer_ticks_us(consumer);
    struct slice item;
    if (!take(shard, &item)) {
        take_again(shard, TAKE_AGAIN_US);
    } else if (shard->seen.ended) {
        state = SHARD_ENDED;
    } else {
        shard->held_us = consumer_ticks_us(consumer);
        lease_renewed(shard, asked_us);
        shard->is_handing_over = shard->is_committing = shard->is_missing = false;
        shard->retry = (struct task_moment){0};
        make_lanes(shard, shard->seen.lanes, shard->seen.at, false);
        find_ends(shard);
        begin_reading(shard);
        stats_add(&consumer->counts.shards_held, 1);
        if (reader->mapping->tumbling_ms && !windows_load(shard, item)) {
            leave(shard, LEAVE_LOST);
            take_again(shard, LOAD_AGAIN_US);
        } else {
            shard->state = SHARD_HELD;
            shard->tasks++;
            task_begin(consumer->host, read_task, shard);
            begin_lanes(shard);
            enum leaving how = work(shard);
            leave(shard, how);
            if (how == LEAVE_ENDED) state = SHARD_ENDED;
        }
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
