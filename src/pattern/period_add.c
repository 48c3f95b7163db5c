/* Periods: adding events. The tables and what holds for them: period.c.
 *
 * An event costs one write unit for each KB, and one more if it has an id, which makes it harmless to repeat. The
 * settings, the bucket and the end of its shard are remembered in the process: who remembers wrongly meets a seal or
 * another page and reads. Flows of one process that add to the same shard of a bucket at the same time join: whoever
 * leads puts the events of all into one page. */
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/period.h"
#include "pattern/tokens.h"

#define AHEAD_MOST_MS  (5 * 60 * 1000) /* a client's clock may be wrong by so much */
#define RETRY_AFTER_MS 1000
#define RECALLED_MS    60000 /* an end is gone by: all that others have put since is read */
#define SEARCH_MOST                                                                                          \
    1000 /* entries between `from` of a token and its event, before that is noted in the token */

enum { ADD_ID = PERIOD_NAME + 1, ADD_DATA, ADD_TIME, ADD_EVENTS, ADD_TOKEN };

const struct field period_add_fields[] = {
    FIELD_PERIOD,
    [ADD_ID] = {"id", IN_BODY, FIELD_NAME,
                .help = "the same id is added once, for a day (default: a new one)"},
    [ADD_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what is collected"},
    [ADD_TIME] = {"time", IN_BODY, FIELD_NAME, .max = 40,
                  .help = "when it happened, 2026-11-15T03:42:06Z (default: now)"},
    [ADD_EVENTS] = {"events", IN_BODY, FIELD_LIST,
                    .help =
                        "instead of these: up to 1000 objects of id, data and time; those of one bucket are "
                        "written together"},
    [ADD_TOKEN] = FIELD_REPEATS(
        "the event's id, where the body has none; of many events, the beginning of their ids"),
};

struct add {
    struct period period;
    struct slice id, data;
    struct slice way; /* its shard goes by this: the id of the first event of the call */
    bool has_id;      /* it was given */
    int64_t time_ms;
    /* where it goes */
    int64_t start_ms, shard;
    bool late;
    int64_t shut_ms; /* begin of a bucket that was found closed; -1: none was */
    /* of one with an id: what its token says; `from` is an end that was read before the token was put */
    struct slice token_bucket; /* SLICE_NONE: it has none yet */
    int64_t from;
    bool is_repeat; /* the token was there: others may put the event, too */
    /* what became of it */
    struct chain_entry entry;
    bool is_shut;  /* the bucket is closed, and it is not there */
    bool is_taken; /* by this round */
    bool is_done, is_reused;
};

/* Events of one call for one shard of a bucket. */
struct batch {
    struct add **adds;
    size_t count;
};

/* What was sent, as flow_given and its like read it now. What cannot be added ends the task; `where`: which one of
 * several it is. */
static void take_request(struct flow *flow, struct add *add, struct slice id, const char *where)
{
    *add = (struct add){.id = id, .has_id = id.data, .data = flow_text(flow, ADD_DATA), .shut_ms = -1};
    if (!add->has_id) add->id = flow_new_id(flow);
    add->time_ms = flow->now_ms;
    if (flow_given(flow, ADD_TIME) &&
        (!moment_parse(flow_text(flow, ADD_TIME), &add->time_ms) || add->time_ms < 0))
        task_refuse(flow, 400, "bad-request", "%stime must be like 2026-11-15T03:42:06Z.", where);
    if (add->time_ms > flow->now_ms + AHEAD_MOST_MS)
        task_refuse(flow, 400, "bad-request", "%stime must not lie in the future.", where);
    if (add->data.len + PERIOD_SLACK > LIMIT_ITEM_BYTES &&
        item_bytes(flow->arena, flow_compose(flow, "{'data':%J}", add->data)) + PERIOD_SLACK >
            LIMIT_ITEM_BYTES)
        task_refuse(flow, 413, "too-large", "%sdata does not fit: an item of DynamoDB holds at most 400 KB.",
                    where);
}

/* ---- the bucket ---- */

static uint64_t bucket_topic(struct flow *flow, const struct add *add)
{
    return flow_topic("period bucket", add->period.name, moment_text(flow->arena, add->start_ms));
}

static void bucket_is_shut(struct flow *flow, struct add *add)
{
    if (add->shut_ms < add->start_ms) add->shut_ms = add->start_ms;
    flow_forget(flow, bucket_topic(flow, add));
    period_forget(flow, add->period.name);
}

/* Sees to it that the bucket has an item, and that nobody has passed it by before it had one (period.c, PD1). Answers
 * its shards; 0: it is closed, or the settings have changed. */
static int64_t bucket_open(struct flow *flow, struct add *add)
{
    const struct period *period = &add->period;
    struct slice item = period_bucket_read(flow, period, add->start_ms);
    if (!item.data) {
        task_call(
            flow, "PutItem",
            "{'TableName':%T,'Item':{'period':%S,'bucket':%S,'state':{'S':'OPEN'},'shards':%N,'expires':%N},"
            "'ConditionExpression':'attribute_not_exists(#bucket)',%#,%O}",
            &period_buckets, period->name, moment_text(flow->arena, add->start_ms), period->shards,
            period_expires_s(period, add->start_ms));
        if (flow_failed(flow)) item = flow_item(flow);
    }
    int64_t shards = item_int(flow->arena, item, "shards", period->shards), version = period->version;
    bool is_done = item_says(flow->arena, item, "state", "DONE");
    period_forget(flow, period->name);
    period_recall(flow, &add->period);
    if (is_done || period->closed_ms > add->start_ms) {
        bucket_is_shut(flow, add);
        return 0;
    }
    struct slice text = flow_compose(flow, "%d", shards);
    flow_remember(flow, bucket_topic(flow, add), text);
    return period->version == version ? shards : 0;
}

/* The bucket of its time, or, when that is closed, the one that is open now. */
static void find_bucket(struct flow *flow, struct add *add)
{
    const struct period *period = &add->period;
    for (int64_t shards = 0;; task_again(flow)) {
        period_recall(flow, &add->period);
        int64_t floor_ms = period->closed_ms;
        if (add->shut_ms >= floor_ms) floor_ms = period_end(period, add->shut_ms);
        add->late = add->time_ms < floor_ms;
        add->start_ms = period_bucket(period, add->late ? flow->now_ms : add->time_ms);
        if (add->start_ms < floor_ms) add->start_ms = floor_ms;
        bool is_known = raw_int(flow_recall(flow, bucket_topic(flow, add)), &shards);
        if (!is_known) shards = bucket_open(flow, add);
        if (!shards) continue;
        add->shard = (int64_t)(hash_bytes(add->way) % (uint64_t)shards);
        return;
    }
}

/* ---- the token ---- */

/* Takes over what the token says, which may be all, or that the id came with something else. */
static void token_take(struct flow *flow, struct add *add, struct slice token)
{
    add->late = slice_contains(item_attribute(flow->arena, token, "late"), SLICE("true"));
    add->token_bucket = item_text(flow->arena, token, "bucket");
    add->is_reused = !slice_equal(item_text(flow->arena, token, "sent"), token_digest(flow, add->data));
    add->is_done = add->is_reused || item_has(flow->arena, token, "number");
    moment_parse(add->token_bucket, &add->start_ms);
    add->shard = item_int(flow->arena, token, "shard", 0);
    add->from = item_int(flow->arena, token, "from", 1);
    add->is_repeat = true;
}

/* Has the token name this bucket, or takes the bucket that it names. One that was sealed without the event is given
 * up for this one. */
static void token_claim(struct flow *flow, struct add *add)
{
    struct chain chain = period_chain(flow, &add->period, add->start_ms, add->shard);
    struct slice start = moment_text(flow->arena, add->start_ms);
    struct slice token = token_text(flow, "period", add->period.name, add->id);
    struct chain_end end;
    chain.recalled_ms = RECALLED_MS;
    chain_guess_end(flow, &chain, &end);
    add->from = end.next;
    for (;;) {
        if (add->token_bucket.data)
            edit_item(flow, &token_table, flow_compose(flow, "{'token':%S}", token),
                      SLICE("SET #bucket = :bucket, #shard = :shard, #late = :late, #from = :from"),
                      SLICE("#bucket = :sealed"),
                      "':bucket':%S,':shard':%N,':late':{'BOOL':%b},':from':%N,':sealed':%S", start,
                      add->shard, (int)add->late, add->from, add->token_bucket);
        else
            task_call(
                flow, "PutItem",
                "{'TableName':%T,'Item':{'token':%S,'expires':%N,'bucket':%S,'shard':%N,'late':{'BOOL':%b},"
                "'from':%N,'sent':%S},'ConditionExpression':'attribute_not_exists(#token)',%#,%O}",
                &token_table, token, flow->now_ms / 1000 + TOKEN_KEPT_S, start, add->shard, (int)add->late,
                add->from, token_digest(flow, add->data));
        struct slice item = flow_item(flow);
        if (!flow_failed(flow)) {
            add->token_bucket = start;
            return;
        }
        if (item.data) {
            token_take(flow, add, item);
            return;
        }
        add->token_bucket = SLICE_NONE; /* its time was over */
    }
}

/* ---- the page ---- */

static void append_alone(struct flow *flow, struct add *add)
{
    struct chain chain = period_chain(flow, &add->period, add->start_ms, add->shard);
    struct chain_end end = {.next = add->from};
    chain_catch_up(flow, &chain, &end, &add->entry, 1);
    if (!add->entry.number) chain_append(flow, &chain, &end, &add->entry, 1);
    if (add->entry.number > add->from + SEARCH_MOST) {
        /* Whoever repeats this call once more need not search. */
        struct slice token = token_text(flow, "period", add->period.name, add->id);
        edit_item(flow, &token_table, flow_compose(flow, "{'token':%S}", token),
                  SLICE("SET #number = :number"), SLICE("#bucket = :bucket"), "':number':%N,':bucket':%S",
                  add->entry.number, add->token_bucket);
    }
    add->is_shut = !add->entry.number;
}

/* Puts what all bring who are at the same shard of the same bucket. */
static void append_together(struct flow *flow, struct batch *batch)
{
    const struct add *first = batch->adds[0];
    struct chain chain = period_chain(flow, &first->period, first->start_ms, first->shard);
    struct flow_share share = {batch, 0};
    for (size_t i = 0; i < batch->count; i++) share.bytes += batch->adds[i]->entry.value.len;
    if (!task_join(flow, flow_topic("period add", chain.key, flow->world->prefix), share)) {
        if (flow->led_status < 500) return;
        flow->retry_after_ms = RETRY_AFTER_MS;
        task_refuse(flow, flow->led_status, "busy", "The database did not get to it. Try again later.");
    }
    size_t count = batch->count, at = 0;
    for (size_t i = 0; i < flow->follower_count; i++)
        count += ((struct batch *)flow->followers[i]->share.what)->count;
    struct chain_entry *entries = arena_array(flow->arena, struct chain_entry, count);
    struct add **adds = arena_array(flow->arena, struct add *, count);
    struct chain_end end;
    int64_t from = INT64_MAX;
    for (size_t i = 0; i <= flow->follower_count; i++) {
        const struct batch *one = i ? flow->followers[i - 1]->share.what : batch;
        for (size_t k = 0; k < one->count; k++) adds[at++] = one->adds[k];
    }
    for (size_t i = 0; i < count; i++) {
        entries[i] = adds[i]->entry;
        if (adds[i]->has_id && adds[i]->from < from) from = adds[i]->from;
    }
    chain_guess_end(flow, &chain, &end);
    if (from < end.next) { /* what was put since the first of their tokens was */
        end = (struct chain_end){.next = from};
        chain_catch_up(flow, &chain, &end, entries, count);
    }
    chain_append(flow, &chain, &end, entries, count);
    for (size_t i = 0; i < count; i++) {
        adds[i]->entry.number = entries[i].number;
        adds[i]->entry.is_repeated = entries[i].is_repeated;
        adds[i]->is_shut = !entries[i].number;
    }
    flow_disband(flow);
}

/* ---- events ---- */

/* Finds where it goes, and has its token say so. `before`: another event of the call that goes its way, or NULL. */
static void route(struct flow *flow, struct add *add, const struct add *before)
{
    bool is_together = before && before->shut_ms == add->shut_ms && !before->late &&
                       period_bucket(&before->period, add->time_ms) == before->start_ms;
    if (is_together) {
        add->period = before->period;
        add->start_ms = before->start_ms;
        add->shard = before->shard;
        add->late = false;
    } else {
        find_bucket(flow, add);
    }
    add->is_repeat = add->is_shut = add->is_taken = false;
    if (add->has_id) token_claim(flow, add);
    add->entry = (struct chain_entry){
        .value = flow_compose(flow, "{'M':{'id':%S,'time':%S%[%?,'late':{'BOOL':true}%],'data':%J}}", add->id,
                              moment_text(flow->arena, add->time_ms), add->late, add->data),
        .token = add->has_id ? add->id : SLICE_NONE,
        .is_repeated = add->is_done};
}

/* Those that go where this one goes. */
static void append_batch(struct flow *flow, struct add *adds, size_t count, const struct add *first)
{
    struct batch *batch = arena_new(flow->arena, struct batch);
    *batch = (struct batch){.adds = arena_array(flow->arena, struct add *, count)};
    for (size_t i = 0; i < count; i++) {
        struct add *add = &adds[i];
        if (add->is_done || add->is_taken || add->is_repeat || add->start_ms != first->start_ms ||
            add->shard != first->shard)
            continue;
        add->is_taken = true;
        batch->adds[batch->count++] = add;
    }
    append_together(flow, batch);
}

static void add_all(struct flow *flow, struct add *adds, size_t count)
{
    for (size_t left = count; left; left ? task_again(flow) : (void)0) {
        const struct add *before = NULL;
        for (size_t i = 0; i < count; i++) {
            if (adds[i].is_done) continue;
            route(flow, &adds[i], before);
            if (!adds[i].is_done && !adds[i].is_repeat) before = &adds[i];
        }
        for (size_t i = 0; i < count; i++)
            if (!adds[i].is_done && !adds[i].is_repeat && !adds[i].is_taken)
                append_batch(flow, adds, count, &adds[i]);
        left = 0;
        for (size_t i = 0; i < count; i++) {
            if (adds[i].is_done) continue;
            if (adds[i].is_repeat) append_alone(flow, &adds[i]);
            adds[i].is_done = adds[i].entry.number != 0;
            left += !adds[i].is_done;
            if (adds[i].is_shut) bucket_is_shut(flow, &adds[i]);
        }
    }
}

/* ---- the answer ---- */

static struct slice told(struct flow *flow, const struct add *add)
{
    if (add->is_reused)
        return flow_compose(
            flow, "{'error':'key-reused','message':'The event was added before, with other data.'}");
    return flow_compose(flow, "{'bucket':%s,'id':%s%[%?,'late':true%]}",
                        moment_text(flow->arena, add->start_ms), add->id, add->late);
}

static void add_many(struct flow *flow)
{
    size_t count;
    if (flow_given(flow, ADD_ID) || flow_given(flow, ADD_DATA) || flow_given(flow, ADD_TIME))
        task_refuse(flow, 400, "bad-request", "events exclude id, data and time.");
    struct field_value **events = flow_elements(flow, ADD_EVENTS, LIMIT_BATCH_EVENTS, period_add_fields,
                                                sizeof period_add_fields / sizeof *period_add_fields, &count);
    struct add *adds = arena_array(flow->arena, struct add, count);
    struct slice token = flow_text(flow, ADD_TOKEN);
    bool has_new = false;
    for (size_t i = 0; i < count; i++) {
        flow_with(flow, events[i]);
        struct slice id = flow_given(flow, ADD_ID) ? flow_text(flow, ADD_ID)
                          : token.data             ? flow_compose(flow, "%r#%d", token, (int64_t)i)
                                                   : SLICE_NONE;
        take_request(flow, &adds[i], id, arena_printf(flow->arena, "events[%zu]: ", i).data);
        adds[i].way = adds[0].id;
    }
    flow_with(flow, NULL);
    add_all(flow, adds, count);
    buf_text(flow->body, "{\"events\":[");
    for (size_t i = 0; i < count; i++) {
        flow_put(flow, flow->body, "%,%A", told(flow, &adds[i]));
        has_new |= !adds[i].entry.is_repeated;
    }
    buf_text(flow->body, "]}");
    flow_finish(flow, has_new ? 201 : 200);
}

void period_add(struct flow *flow)
{
    struct add *add = arena_new(flow->arena, struct add);
    if (flow_given(flow, ADD_EVENTS)) {
        add_many(flow);
        return;
    }
    take_request(flow, add, flow_text_or(flow, ADD_ID, flow_text(flow, ADD_TOKEN)), "");
    add->way = add->id;
    add_all(flow, add, 1);
    if (add->is_reused)
        flow_refuse(flow, 422, "key-reused", "The event %.*s was added before, with other data.",
                    SLICE_ARG(add->id));
    else
        flow_answer(flow, add->entry.is_repeated ? 200 : 201, "%A", told(flow, add));
}
