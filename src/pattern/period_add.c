/* Periods: adding events. The tables and what holds for them: period.c.
 *
 * Without an id an event costs four write units and one read unit: a transaction of the event and its gate,
 * behind a look at the settings. With an id, which makes it harmless to repeat, six. */
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/period.h"
#include "pattern/tokens.h"

#define AHEAD_MOST_MS (5 * 60 * 1000) /* a client's clock may be wrong by so much */

enum { ADD_ID = PERIOD_NAME + 1, ADD_DATA, ADD_TIME, ADD_TOKEN };

const struct field period_add_fields[] = {
    FIELD_PERIOD,
    [ADD_ID] = {"id", IN_BODY, FIELD_NAME, .help = "the same id is added once, for a day; one is made"},
    [ADD_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what is collected"},
    [ADD_TIME] = {"time", IN_BODY, FIELD_NAME, .max = 40,
                  .help = "when it happened, 2026-11-15T03:42:06Z; now"},
    [ADD_TOKEN] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                   .help = "the event's id, where the body has none"},
};

struct add {
    struct period period;
    struct slice id;
    bool has_id; /* it was given */
    int64_t time_ms, start_ms;
    int64_t floor_ms; /* buckets that begin before were found closed */
    bool late;
};

static flow_step add_ask, add_taken, add_put, add_done, add_healed;

static bool add_fits(struct flow *flow)
{
    struct slice data = flow_text(flow, ADD_DATA);
    if (data.len + PERIOD_SLACK <= LIMIT_ITEM_BYTES ||
        item_bytes(flow->arena, flow_compose(flow, "{'data':%J}", data)) + PERIOD_SLACK <= LIMIT_ITEM_BYTES)
        return true;
    flow_refuse(flow, 413, "too-large", "data does not fit: an item of DynamoDB holds at most 400 KB.");
    return false;
}

void period_add_begin(struct flow *flow)
{
    struct add *add = flow->state = arena_new(flow->arena, struct add);
    add->has_id = flow_given(flow, ADD_ID) || flow_given(flow, ADD_TOKEN);
    add->id = !add->has_id ? flow_new_id(flow)
                           : flow_text(flow, flow_given(flow, ADD_ID) ? ADD_ID : ADD_TOKEN);
    add->time_ms = flow->now_ms;
    if (flow_given(flow, ADD_TIME) &&
        (!moment_parse(flow_text(flow, ADD_TIME), &add->time_ms) || add->time_ms < 0))
        flow_refuse(flow, 400, "bad-request", "time must be like 2026-11-15T03:42:06Z.");
    else if (add->time_ms > flow->now_ms + AHEAD_MOST_MS)
        flow_refuse(flow, 400, "bad-request", "time must not lie in the future.");
    else if (add_fits(flow))
        add_ask(flow);
}

static void add_ask(struct flow *flow)
{
    period_ask(flow, flow_text(flow, PERIOD_NAME), add_taken);
}

/* The bucket of its time, or, when that is closed, the one that is open now. */
static void add_place(struct add *add, int64_t now_ms)
{
    const struct period *period = &add->period;
    int64_t floor_ms = period->closed_ms > add->floor_ms ? period->closed_ms : add->floor_ms;
    add->late = add->time_ms < floor_ms;
    add->start_ms = period_bucket(period, add->late ? now_ms : add->time_ms);
    if (add->start_ms < floor_ms) add->start_ms = floor_ms;
}

static void add_taken(struct flow *flow)
{
    struct add *add = flow->state;
    if (!period_take(flow, flow_text(flow, PERIOD_NAME), flow_item(flow), &add->period)) return;
    add_place(add, flow->now_ms);
    add_put(flow);
}

static struct slice add_token(struct flow *flow)
{
    const struct add *add = flow->state;
    struct slice told = flow_compose(flow, ",'bucket':%S,'late':{'BOOL':%b}",
                                     moment_text(flow->arena, add->start_ms), (int)add->late);
    return flow_compose(flow, ",%A", token_put(flow, "period", add->period.name, add->id, told));
}

/* The gate is made by the first event, and found not closed by all. */
static void add_put(struct flow *flow)
{
    struct add *add = flow->state;
    const struct period *period = &add->period;
    int64_t shard = (int64_t)(hash_bytes(add->id) % (uint64_t)period->shards);
    int64_t expires_s = period_expires_s(period, add->start_ms);
    struct slice gate = period_gate_key(flow, period, shard);
    flow_call(
        flow, add_done, "TransactWriteItems",
        "{'TransactItems':[{'Update':{'TableName':%T,'Key':{'shard':%S,'bucket':%S},'UpdateExpression':'SET "
        "#state = :open, #pending = :gate, #expires = :expires','ConditionExpression':"
        "'attribute_not_exists(#state) or #state = "
        ":open',%#,'ExpressionAttributeValues':{':open':{'S':'OPEN'},"
        "':gate':%S,':expires':%N}}},{'Put':{'TableName':%T,'Item':{'bucket':%S,'id':%S,'time':%S%r,'data':%"
        "J,"
        "'expires':%N},'ConditionExpression':'attribute_not_exists(#id)',%#}}%A]}",
        &period_gates, gate, moment_text(flow->arena, add->start_ms), gate, expires_s, &period_events,
        period_events_key(flow, period, add->start_ms, shard), add->id,
        moment_text(flow->arena, add->time_ms), add->late ? SLICE(",\"late\":{\"BOOL\":true}") : SLICE(""),
        flow_text(flow, ADD_DATA), expires_s, add->has_id ? add_token(flow) : SLICE(""));
}

static void add_tell(struct flow *flow, int status, struct slice bucket, bool late)
{
    const struct add *add = flow->state;
    flow_answer(flow, status, "{'bucket':%s,'id':%s%r}", bucket, add->id,
                late ? SLICE(",\"late\":true") : SLICE(""));
}

static bool token_is_late(struct flow *flow, struct slice token)
{
    return slice_contains(item_attribute(flow->arena, token, "late"), SLICE("true"));
}

/* The bucket was over when it got the event, perhaps its first: whoever closes may just have seen nothing
 * there, and would not look again before the next one is over. */
static void add_heal(struct flow *flow)
{
    const struct add *add = flow->state;
    flow_call(
        flow, add_healed, "UpdateItem",
        "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #due = :now, #version = #version + "
        ":one','ConditionExpression':'attribute_exists(#name)',%#,'ExpressionAttributeValues':{':now':%N,"
        "':one':{'N':'1'}}}",
        &period_table, add->period.name, flow->now_ms);
}

static void add_healed(struct flow *flow)
{
    const struct add *add = flow->state;
    add_tell(flow, 201, moment_text(flow->arena, add->start_ms), add->late);
}

static void add_done(struct flow *flow)
{
    struct add *add = flow->state;
    const struct period *period = &add->period;
    int64_t end_ms = period_end(period, add->start_ms);
    struct slice item;
    if (!flow_failed(flow)) {
        flow_wake(flow, period_topic(period->name));
        if (end_ms + period_grace_ms(flow, period) <= flow->now_ms)
            add_heal(flow);
        else
            add_tell(flow, 201, moment_text(flow->arena, add->start_ms), add->late);
    } else if (add->has_id && flow_reason(flow, 2, &item)) {
        add_tell(flow, 200, item_text(flow->arena, item, "bucket"), token_is_late(flow, item));
    } else if (flow_reason(flow, 1, &item)) { /* put by this very call, or known longer than its token */
        add_tell(flow, 200, moment_text(flow->arena, add->start_ms), add->late);
    } else { /* closed since the settings were read */
        if (end_ms > add->floor_ms) add->floor_ms = end_ms;
        flow_again(flow, add_ask);
    }
}
