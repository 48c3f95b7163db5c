/* Tumbling windows: batches of one span of time hand a state from one to the next, and a last call ends it.
 *
 * Each lane has its own window. Its state is stored in the transaction that moves the position, in items
 * of its own: shard = "state/SHARD/LANE/PART", with start and end of the window and a part of the state's
 * text. The last call, without records, is made when a record of a later window is at the head of the
 * lane; when nothing waits and the window's time has passed by a grace; or when nothing more will come to
 * the lane. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "trigger/consume.h"

#define GRACE_MS 1000 /* a record's time is in whole seconds, and it is committed a moment later */

/* ---- when ---- */

int64_t window_end_for(const struct lane *lane)
{
    int64_t tumbling_ms = lane_mapping(lane)->tumbling_ms;
    if (lane->window.is_open) return lane->window.end_ms;
    if (!tumbling_ms || !lane->count) return INT64_MAX;
    return window_start_ms(lane_head(lane)->created_ms, tumbling_ms) + tumbling_ms;
}

/* Nobody can know that nothing more comes for it before the shard was asked behind its end. */
static bool is_passed(struct lane *lane, struct task_moment *until)
{
    struct shard *shard = lane->shard;
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

bool window_is_over(struct lane *lane, struct task_moment *until)
{
    const struct tumbling *window = &lane->window;
    const struct shard *shard = lane->shard;
    if (!window->is_open) return false;
    if (window->ends_early || window->is_finishing) return true;
    if (lane->depth) return false; /* its batch comes first */
    if (lane->count) return lane_head(lane)->created_ms >= window->end_ms;
    if (shard->is_read_out || shard_is_changing_lanes(shard)) return true;
    if (window->end_ms - window->start_ms != lane_mapping(lane)->tumbling_ms) return true;
    return is_passed(lane, until);
}

/* ---- what the function is told ---- */

void window_put_members(struct buf *out, const struct lane *lane)
{
    const struct tumbling *window = &lane->window;
    const struct reader *reader = lane->shard->reader;
    int64_t end_ms = window_end_for(lane);
    int64_t start_ms = window->is_open ? window->start_ms : end_ms - lane_mapping(lane)->tumbling_ms;
    buf_text(out, ",\"window\":{\"start\":");
    put_moment(out, start_ms);
    buf_text(out, ",\"end\":");
    put_moment(out, end_ms);
    buf_text(out, "},\"state\":");
    if (window->is_open)
        buf_slice(out, buf_view(&window->state));
    else
        buf_text(out, "{}");
    buf_text(out, ",\"shardId\":");
    json_put_string(out, slice_of(lane->shard->id));
    buf_text(out, ",\"eventSourceARN\":");
    buf_slice(out, buf_view(&reader->arn_json));
    buf_printf(out, ",\"isFinalInvokeForWindow\":%s,\"isWindowTerminatedEarly\":%s",
               window->is_finishing ? "true" : "false", window->ends_early ? "true" : "false");
}

/* ---- what it answers ---- */

static void put_part_key(struct buf *out, const struct lane *lane, uint32_t part)
{
    char shard[LIMIT_SHARD_ID_BYTES + 40];
    snprintf(shard, sizeof shard, "state/%s/%u/%u", lane->shard->id, lane->number, part);
    put_position_key(out, lane->shard->reader, slice_of(shard));
}

static struct buf *begin_member(struct lane *lane, const char *kind)
{
    struct buf *out = &lane->settlement.members;
    if (lane->settlement.member_count++) buf_byte(out, ',');
    buf_printf(out, "{\"%s\":{\"TableName\":", kind);
    buf_slice(out, buf_view(&lane->shard->reader->consumer->table));
    return out;
}

static void put_part(struct lane *lane, uint32_t part, struct slice text)
{
    struct buf *out = begin_member(lane, "Put");
    buf_text(out, ",\"Item\":");
    put_part_key(out, lane, part);
    out->len--; /* the brace */
    buf_printf(out, ",\"start\":{\"N\":\"%lld\"},\"end\":{\"N\":\"%lld\"},\"state\":{\"S\":",
               (long long)lane->window.start_ms, (long long)lane->window.end_ms);
    json_put_string(out, text);
    buf_text(out, "}}}}");
}

static void delete_part(struct lane *lane, uint32_t part)
{
    struct buf *out = begin_member(lane, "Delete");
    buf_text(out, ",\"Key\":");
    put_part_key(out, lane, part);
    buf_text(out, "}}");
}

/* So many bytes at most, and no character in two parts. */
static size_t part_len(struct slice text)
{
    if (text.len <= LIMIT_WINDOW_PART_BYTES) return text.len;
    size_t len = LIMIT_WINDOW_PART_BYTES;
    while (len && ((unsigned char)text.data[len] & 0xc0) == 0x80) len--;
    return len;
}

static uint32_t put_parts(struct lane *lane, struct slice state)
{
    uint32_t part = 0;
    while (state.len) {
        size_t len = part_len(state);
        put_part(lane, part++, (struct slice){state.data, len});
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
        window->ends_early = true; /* with the state before this batch, which is the
                                      next window's first */
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
    window->next_parts = put_parts(lane, state);
    for (uint32_t part = window->next_parts; part < window->parts; part++) delete_part(lane, part);
    return true;
}

void window_put_closing(struct lane *lane)
{
    lane->settlement.window = WINDOW_CLOSES;
    for (uint32_t part = 0; part < lane->window.parts; part++) delete_part(lane, part);
}

void window_finished(struct lane *lane)
{
    window_put_closing(lane);
    lane_settle(lane, 0);
}

/* The last call has failed: again, or the window is given up. */
void window_failed(struct lane *lane)
{
    const struct mapping *mapping = lane_mapping(lane);
    lane->window.failures++;
    if (mapping->retries_max < 0 || (int64_t)lane->window.failures <= mapping->retries_max) {
        lane_pause(lane, false);
        return;
    }
    lane_give_up(lane, 0, "RetryAttemptsExhausted");
    window_put_closing(lane);
}

void window_committed(struct lane *lane)
{
    struct tumbling *window = &lane->window;
    struct settlement *settlement = &lane->settlement;
    if (settlement->window == WINDOW_STATES) {
        struct buf former = window->state;
        window->state = settlement->state;
        settlement->state = former;
        window->parts = window->next_parts;
        window->is_open = true;
    } else if (settlement->window == WINDOW_CLOSES) {
        window->is_open = window->is_finishing = window->ends_early = false;
        window->state.len = window->parts = window->failures = 0;
    }
}

/* ---- what was stored ---- */

/* "state/SHARD/LANE/PART" */
static struct lane *lane_of_part(struct shard *shard, struct slice key)
{
    size_t begin = sizeof "state/" - 1 + strlen(shard->id) + 1;
    if (key.len <= begin) return NULL;
    struct slice rest = slice_from(key, begin);
    const char *slash = memchr(rest.data, '/', rest.len);
    unsigned long long number;
    if (!slash) return NULL;
    if (!slice_to_u64((struct slice){rest.data, (size_t)(slash - rest.data)}, LANES_MAX - 1, &number))
        return NULL;
    return number < shard->lane_count ? &shard->lanes[number] : NULL;
}

static struct slice attribute_of(struct slice raw, const char *type, struct arena *arena)
{
    struct slice text;
    return raw_members(arena, raw, &type, &text, 1) ? raw_string(arena, text) : SLICE_NONE;
}

/* Parts come in the order of their keys: there are fewer than ten. */
static void take_part(void *context, struct slice raw)
{
    static const char *const names[] = {"shard", "start", "end", "state"};
    struct arena *arena = task_arena();
    struct slice raws[4];
    unsigned long long start_ms, end_ms;
    if (!raw_members(arena, raw, names, raws, 4)) return;
    struct lane *lane = lane_of_part(context, attribute_of(raws[0], "S", arena));
    if (!lane || !slice_to_u64(attribute_of(raws[1], "N", arena), INT64_MAX, &start_ms) ||
        !slice_to_u64(attribute_of(raws[2], "N", arena), INT64_MAX, &end_ms))
        return;
    lane->window.is_open = true;
    lane->window.start_ms = (int64_t)start_ms;
    lane->window.end_ms = (int64_t)end_ms;
    lane->window.parts++;
    buf_slice(&lane->window.state, attribute_of(raws[3], "S", arena));
}

bool windows_load(struct shard *shard)
{
    static const char *const names[] = {"Items", "LastEvaluatedKey"};
    struct slice raws[2] = {{0}};
    char prefix[LIMIT_SHARD_ID_BYTES + 16];
    snprintf(prefix, sizeof prefix, "state/%s/", shard->id);
    do {
        struct task_call *call = task_call_new("Query");
        struct buf *out = task_call_request(call);
        buf_text(out, "{\"TableName\":");
        buf_slice(out, buf_view(&shard->reader->consumer->table));
        buf_text(out, ",\"ConsistentRead\":true,\"KeyConditionExpression\":\"#m = :m AND begins_with(#s, "
                      ":s)\",\"ExpressionAttributeNames\":{\"#m\":\"mapping\",\"#s\":\"shard\"},"
                      "\"ExpressionAttributeValues\":{\":s\":{\"S\":");
        json_put_string(out, slice_of(prefix));
        buf_text(out, "},\":m\":{\"S\":");
        json_put_string(out, shard->reader->mapping->id);
        buf_text(out, "}}");
        if (raws[1].len) {
            buf_text(out, ",\"ExclusiveStartKey\":");
            buf_slice(out, raws[1]);
        }
        buf_byte(out, '}');
        struct task_reply reply = task_send(call);
        if (reply.fault != DYNAMO_FINE || !raw_members(task_arena(), reply.body, names, raws, 2) ||
            !each_element(raws[0], task_arena(), take_part, shard))
            return false;
        raws[1] = arena_copy(task_arena(), raws[1]);
    } while (raws[1].len);
    return true;
}
