/* Periods: adding events. The tables and what holds for them: period.c.
 *
 * Without an id an event costs four write units and one read unit: a transaction of the event and its gate,
 * behind a look at the settings. With an id, which makes it harmless to repeat, six. Flows of one process
 * that add to the same shard of a bucket at the same time join (flow_join): whoever leads puts the events of
 * all behind one gate, two units less for each, and they do not get into each other's way there. What goes
 * wrong together is done again by each alone. */
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/period.h"
#include "pattern/tokens.h"

#define AHEAD_MOST_MS  (5 * 60 * 1000) /* a client's clock may be wrong by so much */
#define RETRY_AFTER_MS 1000

enum { ADD_ID = PERIOD_NAME + 1, ADD_DATA, ADD_TIME, ADD_TOKEN };

const struct field period_add_fields[] = {
    FIELD_PERIOD,
    [ADD_ID] = {"id", IN_BODY, FIELD_NAME,
                .help = "the same id is added once, for a day (default: a new one)"},
    [ADD_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what is collected"},
    [ADD_TIME] = {"time", IN_BODY, FIELD_NAME, .max = 40,
                  .help = "when it happened, 2026-11-15T03:42:06Z (default: now)"},
    [ADD_TOKEN] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                   .help = "the event's id, where the body has none"},
};

struct add {
    struct period period;
    struct slice id;
    bool has_id; /* it was given */
    int64_t time_ms, start_ms;
    int64_t floor_ms; /* buckets that begin before were found closed */
    int64_t shard;
    bool late;
    bool is_put; /* by whoever led */
};

/* What cannot be added ends the task. */
static void check_request(struct flow *flow)
{
    struct add *add = flow->state;
    struct slice data = flow_text(flow, ADD_DATA);
    add->time_ms = flow->now_ms;
    if (flow_given(flow, ADD_TIME) &&
        (!moment_parse(flow_text(flow, ADD_TIME), &add->time_ms) || add->time_ms < 0))
        flow_refuse(flow, 400, "bad-request", "time must be like 2026-11-15T03:42:06Z.");
    else if (add->time_ms > flow->now_ms + AHEAD_MOST_MS)
        flow_refuse(flow, 400, "bad-request", "time must not lie in the future.");
    else if (data.len + PERIOD_SLACK > LIMIT_ITEM_BYTES &&
             item_bytes(flow->arena, flow_compose(flow, "{'data':%J}", data)) + PERIOD_SLACK >
                 LIMIT_ITEM_BYTES)
        flow_refuse(flow, 413, "too-large", "data does not fit: an item of DynamoDB holds at most 400 KB.");
    else
        return;
    task_end(flow);
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

/* The event of a flow, and its token, as members of a transaction, each behind a comma. */
static struct slice add_members(struct flow *flow, struct flow *of)
{
    const struct add *add = of->state;
    struct slice start = moment_text(flow->arena, add->start_ms), token = SLICE("");
    struct slice told = flow_compose(flow, ",'bucket':%S,'late':{'BOOL':%b},'sent':%S", start, (int)add->late,
                                     token_digest(flow, flow_text(of, ADD_DATA)));
    if (add->has_id)
        token = flow_compose(flow, ",%A", token_put(flow, "period", add->period.name, add->id, told));
    return flow_compose(
        flow,
        ",{'Put':{'TableName':%T,'Item':{'bucket':%S,'id':%S,'time':%S%r,'data':%J,'expires':%N},"
        "'ConditionExpression':'attribute_not_exists(#id)',%#,%O}}%A",
        &period_events, period_events_key(flow, &add->period, add->start_ms, add->shard), add->id,
        moment_text(flow->arena, add->time_ms), add->late ? SLICE(",\"late\":{\"BOOL\":true}") : SLICE(""),
        flow_text(of, ADD_DATA), period_expires_s(&add->period, add->start_ms), token);
}

/* Puts events of one shard of a bucket. The gate is made by the first one, and found not closed by all. */
static void events_put(struct flow *flow, struct slice members)
{
    const struct add *add = flow->state;
    struct slice gate = period_gate_key(flow, &add->period, add->shard);
    task_call(
        flow, "TransactWriteItems",
        "{'TransactItems':[{'Update':{'TableName':%T,'Key':{'shard':%S,'bucket':%S},'UpdateExpression':'SET "
        "#state = :open, #pending = :gate, #expires = :expires',"
        "'ConditionExpression':'attribute_not_exists(#state) or #state = :open',%#,"
        "'ExpressionAttributeValues':{':open':{'S':'OPEN'},':gate':%S,':expires':%N}}}%A]}",
        &period_gates, gate, moment_text(flow->arena, add->start_ms), gate,
        period_expires_s(&add->period, add->start_ms), members);
}

/* A transaction has each item once: who brings an id that another brings, too, comes later. */
static bool is_twin(const struct flow *flow, size_t at)
{
    const struct add *add = flow->state, *own = flow->followers[at]->state;
    bool found = slice_equal(add->id, own->id);
    for (size_t i = 0; i < at && !found; i++)
        found = slice_equal(((const struct add *)flow->followers[i]->state)->id, own->id);
    return found;
}

/* Puts what all bring who are at the same shard of the same bucket. False: each does it alone. */
static bool put_together(struct flow *flow)
{
    struct add *add = flow->state;
    struct slice where = period_events_key(flow, &add->period, add->start_ms, add->shard);
    struct flow_share share = {add, add->has_id ? 2 : 1, flow_text(flow, ADD_DATA).len + PERIOD_SLACK};
    if (!task_join(flow, flow_topic("period add", where, flow->world->prefix), share)) {
        if (flow->led_status < 500) return flow->led_status == 0 && add->is_put;
        flow->retry_after_ms = RETRY_AFTER_MS;
        flow_refuse(flow, flow->led_status, "busy", "The database did not get to it. Try again later.");
        task_end(flow);
    }
    if (!flow->follower_count) return false;
    struct buf members = {0};
    buf_slice(&members, add_members(flow, flow));
    for (size_t i = 0; i < flow->follower_count; i++) {
        struct add *own = flow->followers[i]->state;
        own->is_put = !is_twin(flow, i);
        if (own->is_put) buf_slice(&members, add_members(flow, flow->followers[i]));
    }
    struct slice all = arena_copy(flow->arena, buf_view(&members));
    buf_free(&members);
    events_put(flow, all);
    for (size_t i = 0; flow_failed(flow) && i < flow->follower_count; i++)
        ((struct add *)flow->followers[i]->state)->is_put = false;
    flow_disband(flow);
    return !flow_failed(flow);
}

static void add_tell(struct flow *flow, int status, struct slice bucket, bool late)
{
    const struct add *add = flow->state;
    flow_answer(flow, status, "{'bucket':%s,'id':%s%r}", bucket, add->id,
                late ? SLICE(",\"late\":true") : SLICE(""));
}

static void refuse_other(struct flow *flow)
{
    const struct add *add = flow->state;
    flow_refuse(flow, 422, "key-reused", "The event %.*s was added before, with other data.",
                SLICE_ARG(add->id));
}

/* It was added before, by what is remembered of it for a day. */
static void tell_again(struct flow *flow, struct slice token)
{
    struct slice sent = item_text(flow->arena, token, "sent");
    if (sent.data && !slice_equal(sent, token_digest(flow, flow_text(flow, ADD_DATA))))
        refuse_other(flow);
    else
        add_tell(flow, 200, item_text(flow->arena, token, "bucket"),
                 slice_contains(item_attribute(flow->arena, token, "late"), SLICE("true")));
}

/* By the event itself, in the same bucket: put by this very call, or known longer than its token. */
static void tell_found(struct flow *flow, struct slice event)
{
    const struct add *add = flow->state;
    struct slice data = item_attribute(flow->arena, event, "data");
    if (data.data && !attribute_equal(flow->arena, data, flow_compose(flow, "%J", flow_text(flow, ADD_DATA))))
        refuse_other(flow);
    else
        add_tell(flow, 200, moment_text(flow->arena, add->start_ms), add->late);
}

/* It is in the bucket. Was that over, perhaps this is its first event: whoever closes may just have seen nothing
 * there, and would not look again before the next one is over. */
static void tell_added(struct flow *flow)
{
    const struct add *add = flow->state;
    const struct period *period = &add->period;
    if (period_end(period, add->start_ms) + period_grace_ms(flow, period) <= flow->now_ms)
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':{'name':%S},'UpdateExpression':'SET #due = :now, #version = #version + "
            ":one','ConditionExpression':'attribute_exists(#name)',%#,'ExpressionAttributeValues':{':now':%N,"
            "':one':{'N':'1'}}}",
            &period_table, period->name, flow->now_ms);
    flow_wake(flow, period_topic(period->name));
    add_tell(flow, 201, moment_text(flow->arena, add->start_ms), add->late);
}

void period_add(struct flow *flow)
{
    struct add *add = flow->state = arena_new(flow->arena, struct add);
    struct slice item;
    add->has_id = flow_given(flow, ADD_ID) || flow_given(flow, ADD_TOKEN);
    add->id = !add->has_id ? flow_new_id(flow)
                           : flow_text(flow, flow_given(flow, ADD_ID) ? ADD_ID : ADD_TOKEN);
    check_request(flow);
    for (;;) {
        period_get(flow, &add->period);
        add_place(add, flow->now_ms);
        add->shard = (int64_t)(hash_bytes(add->id) % (uint64_t)add->period.shards);
        if (put_together(flow)) break;
        events_put(flow, add_members(flow, flow));
        flow_disband(flow); /* who led nobody may join elsewhere now */
        if (!flow_failed(flow)) break;
        if (add->has_id && flow_reason(flow, 2, &item)) {
            tell_again(flow, item);
            return;
        }
        if (flow_reason(flow, 1, &item)) {
            tell_found(flow, item);
            return;
        }
        int64_t end_ms = period_end(&add->period, add->start_ms); /* closed since the settings were read */
        if (end_ms > add->floor_ms) add->floor_ms = end_ms;
        task_again(flow);
    }
    tell_added(flow);
}
