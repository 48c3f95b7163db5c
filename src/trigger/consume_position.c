/* The items of the table of positions, and the requests on them.
 *
 * PREFIXpositions: hash key `mapping` (the mapping's UUID), range key `shard`.
 *   shard = a shard's id: the position in it:
 *     at                    M     lane -> the last sequence number that is done, or TRIM_HORIZON, or LATEST
 *     lanes                 N     how many there are
 *     moves                 N     how often it was moved since its lease was taken; each move is conditional on it
 *     mark                  N     of the last move, by which its author knows it again
 *     owner, until, fence         the lease: who may move it (J1 to J4 in dynamo.h)
 *     wanted, wanted_until  S, N  who asks for it; a question that is older counts no more
 *     ended                 BOOL  all of the shard is done
 *     iterator, since       S, N  where LATEST was, while nothing has been read yet; since alone: from that time on
 *     moved                 N     the number of the last move of the mapping that it has made
 *     effect                M     the write of a function that is under way, where there are no transactions
 *     window0, window1, ... M     a lane's tumbling window, while one is open (consume_window.c)
 *   shard = "start": there since all shards that LATEST means have their positions, and those that the move means
 *     whose number is its `moved`
 *   shard = "state/SHARD/LANE/VERSION/PART": the state of a window that is too long for the position
 *
 * A server that has the data itself (DYNAMO_OWNER_HERE) holds its leases without an end and need not renew them: others
 * reach the data through it, so while it is dead nobody reads. It takes those of its predecessor at once, and waits for
 * those of others. */
#include <stdio.h>

#include "base/attribute.h"
#include "base/compose.h"
#include "trigger/consume.h"

void position_free(struct position *position)
{
    buf_free(&position->iterator);
    *position = (struct position){0};
}

/* ---- reading an item ---- */

static int64_t number_of(struct arena *arena, struct slice value)
{
    return attribute_int(arena, value, 0);
}

static struct slice text_of(struct arena *arena, struct slice value)
{
    struct slice text = attribute_text(arena, value);
    return text.data ? text : SLICE("");
}

bool position_parse(struct slice item, struct arena *arena, struct position *out, struct slice *shard)
{
    static const char *const names[] = {"shard",  "at",           "lanes", "moves",    "mark", "ended",
                                        "wanted", "wanted_until", "since", "iterator", "moved"};
    struct slice raws[11], name, value;
    unsigned long long lane;
    struct dynamo_hold hold = dynamo_hold_read(arena, item);
    raw_pick(arena, item, names, raws, 11);
    position_free(out);
    *shard = text_of(arena, raws[0]);
    *out = (struct position){.exists = true,
                             .ended = slice_equal(raw_member(arena, raws[5], "BOOL"), SLICE("true")),
                             .fence = hold.fence,
                             .until_ms = hold.until_ms,
                             .moves = number_of(arena, raws[3]),
                             .mark = number_of(arena, raws[4]),
                             .wanted_until_ms = number_of(arena, raws[7]),
                             .since_ms = number_of(arena, raws[8]),
                             .moved = number_of(arena, raws[10])};
    snprintf(out->owner, OWNER_BYTES, "%.*s", SLICE_ARG(hold.owner.data ? hold.owner : SLICE("")));
    snprintf(out->wanted, OWNER_BYTES, "%.*s", SLICE_ARG(text_of(arena, raws[6])));
    int64_t lanes = number_of(arena, raws[2]);
    if (!shard->len || lanes < 1 || lanes > LANES_MAX) return false;
    out->lanes = (uint32_t)lanes;
    raw_each_member (arena, raw_member(arena, raws[1], "M"), &name, &value)
        if (slice_to_u64(name, LANES_MAX - 1, &lane)) point_set(&out->at[lane], text_of(arena, value));
    for (uint32_t i = 0; i < out->lanes; i++)
        if (!out->at[i].len) return false;
    buf_slice(&out->iterator, text_of(arena, raws[9]));
    return true;
}

/* ---- the lease ---- */

static enum dynamo_hold_state hold_state(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    const struct position *seen = &shard->seen;
    bool is_owned = seen->exists && seen->owner[0];
    const struct dynamo_hold hold = {is_owned ? slice_of(seen->owner) : SLICE_NONE, seen->until_ms,
                                     seen->fence};
    if (!consumer->settings.shared && dynamo_owner_is_here(slice_of(seen->owner))) return HOLD_IS_FREE;
    return dynamo_hold_state(&hold, slice_of(consumer->settings.owner), consumer_now_ms(consumer));
}

bool lease_is_free(const struct shard *shard)
{
    return hold_state(shard) == HOLD_IS_FREE;
}

bool lease_is_anothers(const struct shard *shard)
{
    bool is_open = shard->state == SHARD_FREE || shard->state == SHARD_WAITS;
    return is_open && hold_state(shard) == HOLD_IS_ANOTHERS;
}

/* Its holder counts on it for three quarters of its time. */
int64_t lease_held_ms(const struct consumer *consumer)
{
    return consumer->settings.lease_ms - consumer->settings.lease_ms / 4;
}

static int64_t lease_until_ms(const struct consumer *consumer)
{
    if (!consumer->settings.shared) return DYNAMO_NO_END_MS;
    return dynamo_hold_until(consumer_now_ms(consumer), lease_held_ms(consumer),
                             consumer->settings.lease_ms / 2);
}

/* ---- writing requests ---- */

#define POSITION "'TableName':%A,'Key':{'mapping':%S,'shard':%S}"
#define POSITION_OF(shard)                                                                                   \
    buf_view(&(shard)->reader->consumer->table), (shard)->reader->mapping->id, slice_of((shard)->id)

/* All lanes at one point. */
static struct slice points_of(const struct point *at, uint32_t lanes)
{
    struct buf out = {0};
    buf_text(&out, "{\"M\":{");
    for (uint32_t i = 0; i < lanes; i++)
        compose(&out, "%,%s:%S", arena_printf(task_arena(), "%u", i), point_view(at));
    buf_text(&out, "}}");
    return arena_take(task_arena(), &out);
}

/* For PutItem: where LATEST is in a shard that has no position yet; an ended one has nothing for us. */
struct slice position_latest(const struct shard *shard, struct slice iterator, bool is_ended)
{
    const struct reader *reader = shard->reader;
    struct slice since = SLICE_NONE;
    if (iterator.len)
        since = compose_in(task_arena(), ",'iterator':%S,'since':%N", iterator,
                           consumer_now_ms(reader->consumer));
    return compose_in(
        task_arena(),
        "{'TableName':%A,'Item':{'mapping':%S,'shard':%S,'lanes':%N,'moves':%N,'fence':%N,"
        "'ended':{'BOOL':%b}%A,'at':%A},'ConditionExpression':'attribute_not_exists(#mapping)',%#}",
        POSITION_OF(shard), (int64_t)reader->mapping->lanes, (int64_t)0, (int64_t)0, is_ended, since,
        points_of(&POINT_LATEST, reader->mapping->lanes));
}

/* For UpdateItem: where the mapping's move wants it, whoever holds it: the fence grows, so that he moves nothing from
 * there, and an effect or a window that he has begun is forgotten, as its records are skipped or come again. */
struct slice position_move(const struct shard *shard, struct slice iterator, bool is_ended)
{
    const struct mapping *mapping = shard->reader->mapping;
    const struct mapping_move *move = &mapping->move;
    int64_t since_ms = iterator.len ? consumer_now_ms(shard->reader->consumer) : move->since_ms;
    struct point to = POINT_HORIZON;
    struct buf set = {0}, remove = {0}, values = {0};
    point_set(&to, move->to);
    for (uint32_t i = 0; i < LANES_MAX; i++) buf_printf(&remove, ", #window%u", i);
    buf_text(iterator.len ? &set : &remove, ", #iterator");
    if (iterator.len) buf_text(&set, " = :iterator");
    if (iterator.len) compose(&values, ",':iterator':%S", iterator);
    buf_text(since_ms ? &set : &remove, ", #since");
    if (since_ms) buf_text(&set, " = :since");
    if (since_ms) compose(&values, ",':since':%N", since_ms);
    struct slice request = compose_in(
        task_arena(),
        "{" POSITION
        ",'UpdateExpression':'SET #moved = :moved, #at = :at, #lanes = :lanes, #moves = :zero, #ended = :ended, "
        "#fence = if_not_exists(#fence, :zero) + :one%r REMOVE #owner, #until, #wanted, #wanted_until, #effect%r',"
        "'ConditionExpression':'attribute_not_exists(#moved) or #moved < :moved',%#,'ExpressionAttributeValues':{"
        "':moved':%N,':lanes':%N,':zero':%N,':one':%N,':ended':{'BOOL':%b}%A,':at':%A}}",
        POSITION_OF(shard), buf_view(&set), buf_view(&remove), move->number, (int64_t)mapping->lanes,
        (int64_t)0, (int64_t)1, is_ended, buf_view(&values), points_of(&to, mapping->lanes));
    buf_free(&set);
    buf_free(&remove);
    buf_free(&values);
    return request;
}

/* For UpdateItem: the lease becomes ours, if nobody was faster. A position that nobody has made yet is made, from the
 * oldest record on; one that was seen and is gone is not. */
struct slice position_take(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    bool is_here = !consumer->settings.shared;
    return compose_in(
        task_arena(),
        "{" POSITION ",'UpdateExpression':'SET " HOLD_TAKE
        ", #moves = :zero, #at = if_not_exists(#at, :at), #lanes = if_not_exists(#lanes, :lanes), "
        "#ended = if_not_exists(#ended, :no) REMOVE #wanted, #wanted_until',"
        "'ConditionExpression':'%r%r','ReturnValues':'ALL_NEW',%#,'ExpressionAttributeValues':{':owner':%S,"
        "':until':%N,':now':%N,':zero':%N,':one':%N,':lanes':%N%A,':no':{'BOOL':false},':at':%A}}",
        POSITION_OF(shard), shard->seen.exists ? SLICE("attribute_exists(#at) and ") : SLICE(""),
        is_here ? SLICE("(" HOLD_FREE_OR_MINE " or begins_with(#owner, :here))") : SLICE(HOLD_FREE_OR_MINE),
        slice_of(consumer->settings.owner), lease_until_ms(consumer), consumer_now_ms(consumer), (int64_t)0,
        (int64_t)1, (int64_t)shard->reader->mapping->lanes,
        is_here ? SLICE(",\":here\":{\"S\":\"" DYNAMO_OWNER_HERE "\"}") : SLICE(""),
        points_of(&POINT_HORIZON, shard->reader->mapping->lanes));
}

/* For UpdateItem: our name on a lease of somebody who has many. */
struct slice position_ask(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    return compose_in(
        task_arena(),
        "{" POSITION
        ",'UpdateExpression':'SET #wanted = :me, #wanted_until = :until','ConditionExpression':'#fence = :fence and "
        "(attribute_not_exists(#wanted) or #wanted_until < :now)',%#,"
        "'ExpressionAttributeValues':{':me':%S,':until':%N,':fence':%N,':now':%N}}",
        POSITION_OF(shard), slice_of(consumer->settings.owner),
        consumer_now_ms(consumer) + 3 * consumer->settings.lease_ms, shard->seen.fence,
        consumer_now_ms(consumer));
}

/* For UpdateItem: the lease is nobody's. */
struct slice position_release(const struct shard *shard)
{
    return compose_in(task_arena(),
                      "{" POSITION
                      ",'UpdateExpression':'REMOVE #owner, #until','ConditionExpression':'" HOLD_ACT
                      "',%#,'ExpressionAttributeValues':{':fence':%N}}",
                      POSITION_OF(shard), shard->seen.fence);
}

struct slice position_delete(const struct reader *reader, struct slice name)
{
    return compose_in(task_arena(), "{" POSITION "}", buf_view(&reader->consumer->table), reader->mapping->id,
                      name);
}

/* ---- effects, where there are no transactions ---- */

struct slice position_source(const struct shard *shard, uint32_t lane)
{
    return arena_printf(task_arena(), "%.*s/%s/%u", SLICE_ARG(shard->reader->mapping->id), shard->id, lane);
}

/* For UpdateItem: the position tells what a lane is about to write for its function, and where it stands then. The
 * mark of this write names the effect. */
static struct slice position_effect(const struct shard *shard, const struct commit_plan *plan)
{
    const struct lane *lane = plan->names_effect_of;
    const struct settlement *settlement = &lane->settlement;
    struct slice window = SLICE_NONE;
    if (settlement->window == WINDOW_STATES) window = window_attribute(lane, task_arena());
    if (settlement->window == WINDOW_CLOSES) window = SLICE("{\"NULL\":true}");
    return compose_in(
        task_arena(),
        "{'Update':{" POSITION ",'UpdateExpression':'SET #moves = :moves, #mark = :mark, #effect = :effect',"
        "'ConditionExpression':'" HOLD_ACT
        " and #moves = :before',%#,'ExpressionAttributeValues':{':fence':%N,':before':%N,':moves':%N,':mark':%N,"
        "':effect':{'M':{'lane':%N,'to':%S,'mark':%N,'writes':%S,'cause':%S%[,'window':%A%]}}},%O}}",
        POSITION_OF(shard), shard->seen.fence, shard->seen.moves, shard->seen.moves + 1, plan->mark,
        (int64_t)lane->number, point_view(&plan->to[lane->number]), plan->mark,
        buf_view(&settlement->effects), buf_view(&settlement->cause), window);
}

void position_finish(const struct shard *shard, struct slice effect, bool moves, struct task_commit *out)
{
    static const char *const names[] = {"lane", "to", "mark", "writes", "cause", "window"};
    struct arena *arena = task_arena();
    struct slice raws[6];
    raw_pick(arena, effect, names, raws, 6);
    uint32_t lane = (uint32_t)number_of(arena, raws[0]);
    struct slice at = arena_printf(arena, ", #at.#%u = :to", lane),
                 window = arena_printf(arena, ", #window%u", lane);
    bool opens = moves && raw_member(arena, raws[5], "M").data, closes = moves && raws[5].data && !opens;
    *out = (struct task_commit){
        .anchor = compose_in(
            arena,
            "{'Update':{" POSITION
            ",'UpdateExpression':'SET #moves = :moves, #mark = :mark%r%r%r REMOVE #effect%r',"
            "'ConditionExpression':'" HOLD_ACT
            " and #moves = :before',%#,'ExpressionAttributeValues':{':fence':%N,':before':%N,':moves':%N,':mark':%N"
            "%[,':to':%S%]%[,':window':%A%]},%O}}",
            POSITION_OF(shard), moves ? at : SLICE(""), opens ? window : SLICE(""),
            opens ? SLICE(" = :window") : SLICE(""), closes ? window : SLICE(""), shard->seen.fence,
            shard->seen.moves, shard->seen.moves + 1, shard->plan.mark,
            moves ? text_of(arena, raws[1]) : SLICE_NONE, opens ? raws[5] : SLICE_NONE)};
    if (!moves) return;
    out->effects = text_of(arena, raws[3]);
    out->cause = text_of(arena, raws[4]);
    out->source = position_source(shard, lane);
    out->marker = arena_printf(arena, "%lld", (long long)number_of(arena, raws[2]));
}

/* An action, {"Update":...}. */
struct slice position_commit(const struct shard *shard, const struct commit_plan *plan)
{
    struct buf set = {0}, remove = {0}, condition = {0}, values = {0};
    if (plan->names_effect_of) return position_effect(shard, plan);
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        if (!plan->moves_lane[i] && !plan->lanes) continue;
        buf_printf(&condition, " and #at.#%u = :s%u", i, i);
        buf_printf(&values, ",\":s%u\":", i);
        compose(&values, "%S", point_view(&shard->lanes[i].at));
        if (plan->lanes) continue;
        buf_printf(&set, ", #at.#%u = :t%u", i, i);
        buf_printf(&values, ",\":t%u\":", i);
        compose(&values, "%S", point_view(&plan->to[i]));
    }
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        const struct lane *lane = &shard->lanes[i];
        if (lane->state != LANE_COMMITTING || lane->settlement.window == WINDOW_STAYS) continue;
        if (lane->settlement.window == WINDOW_CLOSES) {
            buf_printf(&remove, ", #window%u", i);
            continue;
        }
        buf_printf(&set, ", #window%u = :w%u", i, i);
        buf_printf(&values, ",\":w%u\":", i);
        buf_slice(&values, window_attribute(lane, task_arena()));
    }
    if (plan->lanes) {
        buf_text(&set, ", #at = :at, #lanes = :lanes");
        compose(&values, ",':lanes':%N,':at':%A", (int64_t)plan->lanes, points_of(&plan->to[0], plan->lanes));
    }
    if (plan->ends) buf_text(&set, ", #ended = :ended");
    if (plan->ends) buf_text(&values, ",\":ended\":{\"BOOL\":true}");
    if (plan->renews) buf_text(&set, ", #until = :until");
    if (plan->renews) compose(&values, ",':until':%N", lease_until_ms(shard->reader->consumer));
    if (plan->loses_iterator) buf_text(&remove, ", #iterator, #since");
    if (shard->seen.names_effect) buf_text(&remove, ", #effect");
    if (remove.len) buf_printf(&set, " REMOVE %.*s", SLICE_ARG(slice_from(buf_view(&remove), 2)));
    struct slice action = compose_in(
        task_arena(),
        "{'Update':{" POSITION ",'UpdateExpression':'SET #moves = :moves, #mark = :mark%r',"
        "'ConditionExpression':'" HOLD_ACT
        " and #moves = :before%r',%#,'ExpressionAttributeValues':{':fence':%N,':before':%N,':moves':%N,':mark':%N%A},"
        "%O}}",
        POSITION_OF(shard), buf_view(&set), buf_view(&condition), shard->seen.fence, shard->seen.moves,
        shard->seen.moves + 1, plan->mark, buf_view(&values));
    buf_free(&set);
    buf_free(&remove);
    buf_free(&condition);
    buf_free(&values);
    return action;
}
