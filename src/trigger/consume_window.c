/* Tumbling windows: batches of one span of time hand a state from one to the next, and a last call ends it.
 *
 * Each lane has its own window. The commit that moves the lane's position writes it into the same item, as `window` and
 * the lane's number: start and end, and the state's text. A text that is too long for that is put first, in items of
 * its own: shard = "state/SHARD/LANE/VERSION/PART"; then `window` names the version, which is new each time. So no
 * state is changed before its position is, and none is ever changed by two. What is not named any more is deleted by
 * the lane, or by whoever takes the lease next.
 *
 * The last call, without records, is made when a record of a later window is at the head of the lane; when nothing
 * waits and the window's time has passed by a grace; or when nothing more will come to the lane. */
#include <stdio.h>
#include <stdlib.h>

#include "base/attribute.h"
#include "base/compose.h"
#include "trigger/consume.h"

#define SWEEP_AGAIN_US 100000
#define GRACE_MS       1000 /* a record's time is in whole seconds, and it is committed a moment later */

/* ---- when ---- */

int64_t window_end_for(const struct lane *lane)
{
    int64_t tumbling_ms = lane_mapping(lane)->tumbling_ms;
    if (lane->window.is_open) return lane->window.end_ms;
    if (!tumbling_ms || !lane->count) return INT64_MAX;
    return window_start_ms(lane_head(lane)->created_ms, tumbling_ms) + tumbling_ms;
}

bool window_is_over(struct lane *lane, struct task_moment *until)
{
    const struct tumbling *window = &lane->window;
    struct shard *shard = lane->shard;
    if (!window->is_open) return false;
    if (window->ends_early || window->is_finishing) return true;
    if (lane->depth) return false; /* its batch comes first */
    if (lane->count) return lane_head(lane)->created_ms >= window->end_ms;
    if (shard->is_read_out || shard_is_changing_lanes(shard)) return true;
    if (window->end_ms - window->start_ms != lane_mapping(lane)->tumbling_ms) return true;
    /* Nobody can know that nothing more comes for it before the shard was asked behind its end. */
    int64_t passed_ms = lane->window.end_ms + GRACE_MS;
    if (consumer_now_ms(shard->reader->consumer) < passed_ms) {
        until->now_ms = passed_ms;
        return false;
    }
    if (shard->empty_ms >= passed_ms) return true;
    if (!shard->has_more) shard_touch(shard); /* to be read */
    shard->has_more = true;
    return false;
}

/* ---- what the function is told ---- */

void window_put_members(struct buf *out, const struct lane *lane)
{
    const struct tumbling *window = &lane->window;
    int64_t end_ms = window_end_for(lane);
    int64_t start_ms = window->is_open ? window->start_ms : end_ms - lane_mapping(lane)->tumbling_ms;
    struct arena arena = {0};
    compose(out,
            ",'window':{'start':%s,'end':%s},'state':%A,'shardId':%s,'eventSourceARN':%A,"
            "'isFinalInvokeForWindow':%b,'isWindowTerminatedEarly':%b",
            moment_shown(&arena, start_ms), moment_shown(&arena, end_ms),
            window->is_open ? buf_view(&window->state) : SLICE("{}"), slice_of(lane->shard->id),
            buf_view(&lane->shard->reader->arn_json), window->is_finishing, window->ends_early);
    arena_free(&arena);
}

/* ---- what it answers ---- */

static struct slice part_name(const struct lane *lane, int64_t version, uint32_t part)
{
    return arena_printf(task_arena(), "state/%s/%u/%lld/%u", lane->shard->id, lane->number,
                        (long long)version, part);
}

/* Into the children of the commit. Answers how many. */
static uint32_t put_parts(struct lane *lane, struct slice state, int64_t version)
{
    const struct reader *reader = lane->shard->reader;
    struct settlement *settlement = &lane->settlement;
    uint32_t part = 0;
    while (state.len) {
        size_t len = state.len;
        if (len > LIMIT_WINDOW_PART_BYTES) { /* and no character in two parts */
            len = LIMIT_WINDOW_PART_BYTES;
            while (len && ((unsigned char)state.data[len] & 0xc0) == 0x80) len--;
        }
        if (settlement->children.len) buf_byte(&settlement->children, ',');
        compose(&settlement->children, "{'Put':{'TableName':%A,'Item':{'mapping':%S,'shard':%S,'state':%S}}}",
                buf_view(&reader->consumer->table), reader->mapping->id, part_name(lane, version, part++),
                (struct slice){state.data, len});
        settlement->child_count++;
        state = slice_from(state, len);
    }
    return part;
}

/* Keeps the state for the commit. False when the answer is none that a window can go on with. */
bool window_takes_state(struct lane *lane, struct slice state)
{
    struct tumbling *window = &lane->window;
    struct settlement *settlement = &lane->settlement;
    if (!lane_mapping(lane)->tumbling_ms) return true;
    if (!state.len) {
        lane_fail(lane, "its answer has no state");
        return false;
    }
    if (state.len > LIMIT_WINDOW_STATE_BYTES && window->is_open) {
        window->ends_early = true; /* with the state before this batch, which is the next window's first */
        lane_result(lane, OUTCOME_UNSENT, 0);
        return false;
    }
    if (state.len > LIMIT_WINDOW_STATE_BYTES) {
        lane_fail(lane, "its state is larger than 1 MB");
        return false;
    }
    if (!window->is_open) {
        window->end_ms = window_end_for(lane);
        window->start_ms = window->end_ms - lane_mapping(lane)->tumbling_ms;
    }
    settlement->window = WINDOW_STATES;
    buf_slice(&settlement->state, state);
    settlement->version = (int64_t)(consumer_random(lane->shard->reader->consumer) >> 12);
    settlement->parts = state.len > LIMIT_WINDOW_INLINE_BYTES ? put_parts(lane, state, settlement->version)
                                                              : 0;
    return true;
}

/* The lane's window as the commit writes it. */
struct slice window_attribute(const struct lane *lane, struct arena *arena)
{
    const struct settlement *settlement = &lane->settlement;
    if (!settlement->parts)
        return compose_in(arena, "{'M':{'start':%N,'end':%N,'state':%S}}", lane->window.start_ms,
                          lane->window.end_ms, buf_view(&settlement->state));
    return compose_in(arena, "{'M':{'start':%N,'end':%N,'version':%N,'parts':%N}}", lane->window.start_ms,
                      lane->window.end_ms, settlement->version, (int64_t)settlement->parts);
}

/* The last call has failed: again, or the window is given up. */
void window_failed(struct lane *lane)
{
    const char *condition = judge_last_call(lane_mapping(lane), ++lane->window.failures, lane->window.end_ms,
                                            consumer_now_ms(lane->shard->reader->consumer));
    if (!condition) {
        lane_pause(lane, false);
        return;
    }
    lane_give_up(lane, 0, condition);
    lane->settlement.window = WINDOW_CLOSES;
}

void window_committed(struct lane *lane)
{
    struct tumbling *window = &lane->window;
    struct settlement *settlement = &lane->settlement;
    if (settlement->window == WINDOW_STAYS) return;
    window->old_version = window->version;
    window->old_parts = window->parts;
    window->is_open = settlement->window == WINDOW_STATES;
    window->version = settlement->version;
    window->parts = window->is_open ? settlement->parts : 0;
    window->state.len = 0;
    buf_slice(&window->state, buf_view(&settlement->state));
    if (window->is_open) return;
    window->is_finishing = window->ends_early = false;
    window->failures = 0;
}

/* ---- items of states ---- */

/* What stays because the lane is left goes with the next lease. */
void window_sweep(struct lane *lane)
{
    struct shard *shard = lane->shard;
    struct tumbling *window = &lane->window;
    struct arena_mark mark = arena_mark(task_arena());
    while (window->old_parts && shard_is_held(shard)) {
        struct slice name = part_name(lane, window->old_version, window->old_parts - 1);
        if (dynamo_fault_may_pass(task_request("DeleteItem", position_delete(shard->reader, name)).fault))
            task_await(&shard->changed, task_after_us(shard->reader->consumer->host, SWEEP_AGAIN_US));
        else
            window->old_parts--;
        arena_rewind(task_arena(), mark);
    }
}

static int64_t number_of(struct slice window, const char *name)
{
    return item_int(task_arena(), window, name, 0);
}

/* Parts come in the order of their keys: there are fewer than ten. One that no window names is an orphan.
 * False: it could not be deleted. */
static bool take_part(struct shard *shard, struct slice raw)
{
    struct arena *arena = task_arena();
    struct slice name = item_text(arena, raw, "shard");
    struct slice state = item_text(arena, raw, "state");
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        struct tumbling *window = &shard->lanes[i].window;
        if (window->parts_read == window->parts ||
            !slice_equal(name, part_name(&shard->lanes[i], window->version, window->parts_read)))
            continue;
        window->parts_read++;
        buf_slice(&window->state, state);
        return true;
    }
    return task_request("DeleteItem", position_delete(shard->reader, name)).fault == DYNAMO_FINE;
}

/* Of the position as it is: `item`. */
static void take_windows(struct shard *shard, struct slice item)
{
    struct arena *arena = task_arena();
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        struct tumbling *window = &shard->lanes[i].window;
        struct slice own = raw_member(arena, raw_member(arena, item, arena_printf(arena, "window%u", i).data),
                                      "M");
        window->is_open = own.data != NULL;
        window->start_ms = number_of(own, "start");
        window->end_ms = number_of(own, "end");
        window->version = number_of(own, "version");
        window->parts = (uint32_t)number_of(own, "parts");
        buf_slice(&window->state, item_text(arena, own, "state"));
    }
}

bool windows_load(struct shard *shard, struct slice item)
{
    static const char *const names[] = {"Items", "LastEvaluatedKey"};
    struct slice raws[2] = {{0}}, part;
    bool fine = true;
    struct slice first = arena_printf(task_arena(), "state/%s/", shard->id);
    take_windows(shard, item);
    do {
        struct task_call *call = task_call_new("Query");
        struct buf *out = task_call_request(call);
        compose(out,
                "{'TableName':%A,'ConsistentRead':true,'KeyConditionExpression':'#mapping = :mapping and "
                "begins_with(#shard, :first)',%#,'ExpressionAttributeValues':{':mapping':%S,':first':%S}",
                buf_view(&shard->reader->consumer->table), shard->reader->mapping->id, first);
        if (raws[1].len) compose(out, ",'ExclusiveStartKey':%A", raws[1]);
        buf_byte(out, '}');
        struct task_reply reply = task_send(call);
        struct slice page = reply.fault == DYNAMO_FINE ? arena_copy(task_arena(), reply.body) : SLICE_NONE;
        if (!page.data || !raw_members(task_arena(), page, names, raws, 2) || raw_kind(raws[0]) != JSON_ARRAY)
            return false;
        raw_each (task_arena(), raws[0], &part) fine &= take_part(shard, part);
    } while (raws[1].len);
    for (uint32_t i = 0; i < shard->lane_count; i++)
        if (shard->lanes[i].window.parts_read != shard->lanes[i].window.parts) return false;
    return fine;
}
