/* Work, continued: claiming, beating, finishing, failing. The tables and what holds for them: work.c. */
#include "calendar/calendar.h"
#include "pattern/rows.h"
#include "pattern/work.h"

#define WAIT_MOST_MS  60000
#define LEASE_MOST_MS (24 * 3600 * 1000ll)
#define PAUSE_MOST_MS (3600 * 1000ll) /* of the doubled back-off */
#define CANDIDATES    10 /* looked at in one slot: claimers who come together take different ones */
#define LOST_PAUSE_MS 10 /* before the next look where others were quicker */
#define REASON_BYTES  4096
#define FENCE_MOST    INT64_MAX

/* ---- claim ---- */

enum { CLAIM_OWNER = WORK_QUEUE + 1, CLAIM_FOR, CLAIM_WAIT };

const struct field work_claim_fields[] = {
    FIELD_WORK_QUEUE,
    [CLAIM_OWNER] = {"owner", IN_BODY, FIELD_NAME, .help = "who works"},
    [CLAIM_FOR] = {"for", IN_BODY, FIELD_DURATION, .min = 1, .max = LEASE_MOST_MS,
                   .help = "instead of the queue's lease"},
    [CLAIM_WAIT] = {"wait", IN_BODY, FIELD_DURATION, .max = WAIT_MOST_MS,
                    .help = "how long to wait for a unit"},
};

struct claim {
    struct work_settings settings;
    int64_t until_ms; /* of the waiting */
    int64_t due_ms;   /* of the first unit that cannot be claimed yet; INT64_MAX: there is none */
    unsigned slot, slots;
    struct slice ids[CANDIDATES];
    unsigned count, at, tried;
    bool lost; /* others have taken what this look has found: there may be more behind it */
};

static flow_step claim_start, claim_slot, claim_listed, claim_next, claim_taken, claim_buried;

static void claim_settings(struct flow *flow)
{
    struct claim *claim = flow->state;
    work_settings_read(flow, flow_item(flow), &claim->settings);
    claim_start(flow);
}

void work_claim(struct flow *flow)
{
    struct claim *claim = flow->state = arena_new(flow->arena, struct claim);
    claim->until_ms = flow->now_ms + flow_int_or(flow, CLAIM_WAIT, 0);
    flow_call(flow, claim_settings, "GetItem", "{'TableName':%T,'Key':{'queue':%S}}", &work_settings_table,
              flow_text(flow, WORK_QUEUE));
}

static void claim_start(struct flow *flow)
{
    struct claim *claim = flow->state;
    claim->slot = (unsigned)flow_random_below(flow, WORK_SLOTS);
    claim->slots = 0;
    claim->due_ms = INT64_MAX;
    claim->lost = false;
    flow_look(flow);
    claim_slot(flow);
}

/* Until somebody submits a unit, or one becomes due. All claimers of a queue look for the same. */
static void claim_wait(struct flow *flow)
{
    const struct claim *claim = flow->state;
    uint64_t topic = work_topic(flow, "work", SLICE(""));
    int64_t soon_ms = flow->now_ms + LOST_PAUSE_MS + (int64_t)flow_random_below(flow, LOST_PAUSE_MS);
    flow_watch(flow, topic, flow_item_thing(&work_table, flow_text(flow, WORK_QUEUE), SLICE("")),
               claim->lost && soon_ms < claim->until_ms ? soon_ms : claim->until_ms, claim_start);
    flow_watch_kin(flow, topic);
    flow_watch_change(flow, claim->due_ms);
}

/* The next slot; behind the last, waits or gives up. */
static void claim_slot(struct flow *flow)
{
    struct claim *claim = flow->state;
    struct slice queue = flow_text(flow, WORK_QUEUE);
    if (claim->slots++ < WORK_SLOTS)
        flow_call(flow, claim_listed, "Query",
                  "{'TableName':%T,'IndexName':'claimable','KeyConditionExpression':'#slot = :slot',%#,"
                  "'ExpressionAttributeValues':{':slot':%S},'Limit':%d}",
                  &work_table, work_slot(flow, queue, claim->slot++), (int64_t)CANDIDATES);
    else if (flow->now_ms < claim->until_ms)
        claim_wait(flow);
    else
        flow_finish(flow, 204);
}

static void claim_listed(struct flow *flow)
{
    struct claim *claim = flow->state;
    struct raw_look look;
    struct slice item;
    claim->count = claim->tried = 0;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (claim->count < CANDIDATES && raw_look_next(&look, NULL, &item)) {
        int64_t due_ms = item_int(flow->arena, item, "due", 0);
        if (due_ms > flow->now_ms) { /* so are all behind it */
            if (due_ms < claim->due_ms) claim->due_ms = due_ms;
            break;
        }
        claim->ids[claim->count++] = item_text(flow->arena, item, "id");
    }
    claim->at = claim->count ? (unsigned)flow_random_below(flow, claim->count) : 0;
    claim_next(flow);
}

static void claim_next(struct flow *flow)
{
    struct claim *claim = flow->state;
    const struct work_settings *settings = &claim->settings;
    if (claim->tried++ == claim->count) {
        claim_slot(flow);
        return;
    }
    struct slice id = claim->ids[claim->at++ % claim->count];
    int64_t until_ms = flow->now_ms + flow_int_or(flow, CLAIM_FOR, settings->lease_ms) + flow->world->skew_ms;
    bool has_then = settings->then.data != NULL;
    flow_call(flow, claim_taken, "UpdateItem",
              "{'TableName':%T,'Key':{'queue':%S,'id':%S},"
              "'UpdateExpression':'SET #state = :claimed, #owner = :owner, #fence = #fence + :one, #attempts "
              "= #attempts + :one, #until = :until, #due = :until, #limit = :limit, #backoff = :backoff, "
              "#lease = :lease, #keep = "
              ":keep%r','ConditionExpression':'attribute_exists(#slot) and "
              "#due <= :now and #attempts < "
              ":limit',%#,'ExpressionAttributeValues':{':claimed':{'S':'CLAIMED'},':owner':%S,"
              "':one':{'N':'1'},':until':%N,':limit':%N,':backoff':%N,':lease':%N,':keep':%N,':now':%N%r},"
              "'ReturnValues':'ALL_NEW',%O}",
              &work_table, flow_text(flow, WORK_QUEUE), id,
              has_then ? SLICE(", #then = :then") : SLICE(" REMOVE #then"), flow_text(flow, CLAIM_OWNER),
              until_ms, settings->attempts, settings->backoff_ms, settings->lease_ms, settings->keep_s,
              flow->now_ms, has_then ? flow_compose(flow, ",':then':%S", settings->then) : SLICE(""));
}

/* The last attempt's lease is over without a word: that was one failure too many. */
static void claim_bury(struct flow *flow, struct slice item)
{
    struct claim *claim = flow->state;
    bool has_then = claim->settings.then.data != NULL;
    flow_call(
        flow, claim_buried, "UpdateItem",
        "{'TableName':%T,'Key':{'queue':%S,'id':%A},'UpdateExpression':'SET #state = :dead, #dead = :queue, "
        "#error = :error, #finished = :time, #expires = :expires%r REMOVE #slot, #due, #until, #owner',"
        "'ConditionExpression':'attribute_exists(#slot) and #fence = :fence and #due <= :now',%#,"
        "'ExpressionAttributeValues':{':dead':{'S':'DEAD'},':queue':%S,"
        "':error':{'S':'its last lease ended without a word'},':time':%S,':expires':%N,':fence':%A,"
        "':now':%N%r},'ReturnValues':'ALL_NEW',%O}",
        &work_table, flow_text(flow, WORK_QUEUE), item_attribute(flow->arena, item, "id"),
        has_then ? SLICE(", #then = :then") : SLICE(""), flow_text(flow, WORK_QUEUE),
        moment_text(flow->arena, flow->now_ms), flow->now_ms / 1000 + claim->settings.keep_s,
        item_attribute(flow->arena, item, "fence"), flow->now_ms,
        has_then ? flow_compose(flow, ",':then':%S", claim->settings.then) : SLICE(""));
}

/* Somebody else has it. */
static void claim_pass(struct flow *flow)
{
    struct claim *claim = flow->state;
    claim->lost = true;
    claim_next(flow);
}

static void claim_taken(struct flow *flow)
{
    struct claim *claim = flow->state;
    struct slice item = flow_item(flow);
    bool is_due = item_has(flow->arena, item, "slot") &&
                  item_int(flow->arena, item, "due", INT64_MAX) <= flow->now_ms;
    if (!flow_failed(flow)) {
        flow_wake_kin_at(flow, work_topic(flow, "work", SLICE("")), item_int(flow->arena, item, "due", 0));
        work_tell(flow, 200, item);
    } else if (is_due && item_int(flow->arena, item, "attempts", 0) >= claim->settings.attempts) {
        claim_bury(flow, item);
    } else {
        claim_pass(flow);
    }
}

static void claim_buried(struct flow *flow)
{
    struct slice id = item_text(flow->arena, flow_item(flow), "id");
    if (!flow_failed(flow)) flow_wake(flow, work_topic(flow, "work unit", id));
    claim_next(flow);
}

/* ---- beat ---- */

enum { BEAT_FENCE = WORK_ID + 1, BEAT_FOR, BEAT_PROGRESS, BEAT_STEP };

const struct field work_beat_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [BEAT_FENCE] = {"fence", IN_BODY, FIELD_INT, true, .min = 1, .max = FENCE_MOST, .help = "of the claim"},
    [BEAT_FOR] = {"for", IN_BODY, FIELD_DURATION, .min = 1, .max = LEASE_MOST_MS,
                  .help = "instead of the queue's lease"},
    [BEAT_PROGRESS] = {"progress", IN_BODY, FIELD_JSON, .help = "to go on from, whoever does"},
    [BEAT_STEP] = {"step", IN_BODY, FIELD_INT, .max = FENCE_MOST,
                   .help = "grows with the progress, so that an old beat never overwrites a newer one; where "
                           "progress is a whole number, that"},
};

/* Why the fence does not fit. */
static void refuse_stale(struct flow *flow, struct slice item, int64_t fence)
{
    int64_t current = item_int(flow->arena, item, "fence", 0);
    struct slice state = item_text(flow->arena, item, "state");
    struct slice members = flow_compose(flow, "'state':%s,'fence':%d", state, current);
    if (!item.data)
        work_refuse_unknown(flow);
    else if (current != fence)
        flow_refuse_fence(flow, members, "unit", "claimed", fence, current);
    else
        flow_refuse_with(flow, members, 409, "not-claimed", "The unit is %.*s.", SLICE_ARG(state));
}

static bool beat_step(struct flow *flow, int64_t *step)
{
    struct slice progress = flow_text(flow, BEAT_PROGRESS);
    *step = flow_int(flow, BEAT_STEP);
    if (flow_given(flow, BEAT_STEP)) return true;
    return flow_given(flow, BEAT_PROGRESS) && raw_kind(progress) == JSON_NUMBER && raw_int(progress, step);
}

static void beat_done(struct flow *flow)
{
    struct slice item = flow_item(flow);
    int64_t fence = flow_int(flow, BEAT_FENCE), step;
    bool is_mine = item_says(flow->arena, item, "state", "CLAIMED") &&
                   item_int(flow->arena, item, "fence", 0) == fence;
    if (!flow_failed(flow)) {
        work_tell(flow, 200, item);
    } else if (is_mine && beat_step(flow, &step)) {
        flow_refuse_with(flow,
                         flow_compose(flow, "'step':%d,'progress':%P", item_int(flow->arena, item, "step", 0),
                                      item_attribute(flow->arena, item, "progress")),
                         409, "progress-behind", "The unit is at step %lld already.",
                         (long long)item_int(flow->arena, item, "step", 0));
    } else {
        refuse_stale(flow, item, fence);
    }
}

void work_beat(struct flow *flow)
{
    int64_t step, until_ms = flow->now_ms + flow_int(flow, BEAT_FOR) + flow->world->skew_ms;
    bool has_for = flow_given(flow, BEAT_FOR), has_progress = flow_given(flow, BEAT_PROGRESS);
    bool has_step = beat_step(flow, &step);
    struct slice progress = has_progress
                                ? flow_compose(flow, ",':progress':%J", flow_text(flow, BEAT_PROGRESS))
                                : SLICE("");
    flow_call(
        flow, beat_done, "UpdateItem",
        "{'TableName':%T,'Key':{'queue':%S,'id':%S},'UpdateExpression':'SET #until = :from%r, #due = "
        ":from%r%r%r','ConditionExpression':'#state = :claimed and #fence = :fence%r',%#,"
        "'ExpressionAttributeValues':{':claimed':{'S':'CLAIMED'},':fence':%N,':from':%N%r%r},"
        "'ReturnValues':'ALL_NEW',%O}",
        &work_table, flow_text(flow, WORK_QUEUE), flow_text(flow, WORK_ID),
        has_for ? SLICE("") : SLICE(" + #lease"), has_for ? SLICE("") : SLICE(" + #lease"),
        has_progress ? SLICE(", #progress = :progress") : SLICE(""),
        has_step ? SLICE(", #step = :step") : SLICE(""),
        has_step ? SLICE(" and (attribute_not_exists(#step) or #step <= :step)") : SLICE(""),
        flow_int(flow, BEAT_FENCE), has_for ? until_ms : flow->now_ms + flow->world->skew_ms, progress,
        has_step ? flow_compose(flow, ",':step':%N", step) : SLICE(""));
}

/* ---- finish ---- */

enum { FINISH_FENCE = WORK_ID + 1, FINISH_RESULT };

const struct field work_finish_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [FINISH_FENCE] = {"fence", IN_BODY, FIELD_INT, true, .min = 1, .max = FENCE_MOST, .help = "of the claim"},
    [FINISH_RESULT] = {"result", IN_BODY, FIELD_JSON, .help = "what came of it"},
};

static void finish_done(struct flow *flow)
{
    struct slice item = flow_item(flow);
    bool was_done = flow_failed(flow) && item_says(flow->arena, item, "state", "DONE") &&
                    item_int(flow->arena, item, "fence", 0) == flow_int(flow, FINISH_FENCE);
    if (flow_failed(flow) && !was_done) {
        refuse_stale(flow, item, flow_int(flow, FINISH_FENCE));
        return;
    }
    work_wake_watchers(flow);
    work_tell(flow, 200, item);
}

void work_finish(struct flow *flow)
{
    flow_call(
        flow, finish_done, "UpdateItem",
        "{'TableName':%T,'Key':{'queue':%S,'id':%S},'UpdateExpression':'SET #state = :done, #result = "
        ":result, #finished = :time, #expires = :now + #keep REMOVE #slot, #due, #until, #owner, #error, "
        "#then',"
        "'ConditionExpression':'#state = :claimed and #fence = :fence',%#,"
        "'ExpressionAttributeValues':{':done':{'S':'DONE'},':claimed':{'S':'CLAIMED'},':fence':%N,"
        "':result':%J,':time':%S,':now':%N},'ReturnValues':'ALL_NEW',%O}",
        &work_table, flow_text(flow, WORK_QUEUE), flow_text(flow, WORK_ID), flow_int(flow, FINISH_FENCE),
        flow_text(flow, FINISH_RESULT), moment_text(flow->arena, flow->now_ms), flow->now_ms / 1000);
}

/* ---- fail ---- */

enum { FAIL_FENCE = WORK_ID + 1, FAIL_REASON, FAIL_RETRY, FAIL_AFTER };

const struct field work_fail_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [FAIL_FENCE] = {"fence", IN_BODY, FIELD_INT, true, .min = 1, .max = FENCE_MOST, .help = "of the claim"},
    [FAIL_REASON] = {"reason", IN_BODY, FIELD_TEXT, .max = REASON_BYTES, .help = "what went wrong"},
    [FAIL_RETRY] = {"retry", IN_BODY, FIELD_BOOL, .help = "false: it is no use to try again"},
    [FAIL_AFTER] = {"after", IN_BODY, FIELD_DURATION, .max = LEASE_MOST_MS,
                    .help = "instead of the queue's back-off"},
};

static void fail_done(struct flow *flow)
{
    struct slice item = flow_item(flow);
    bool was_failed = flow_failed(flow) &&
                      item_int(flow->arena, item, "fence", 0) == flow_int(flow, FAIL_FENCE) &&
                      (item_says(flow->arena, item, "state", "READY") ||
                       item_says(flow->arena, item, "state", "DEAD"));
    if (flow_failed(flow) && !was_failed) {
        refuse_stale(flow, item, flow_int(flow, FAIL_FENCE));
        return;
    }
    work_wake_watchers(flow);
    work_wake_claimers(flow);
    work_tell(flow, 200, item);
}

/* The pause behind a failure: doubled with each, between half and all of it, so that a herd spreads. */
static int64_t fail_pause(struct flow *flow, struct slice item)
{
    int64_t pause_ms = item_int(flow->arena, item, "backoff", 0),
            attempts = item_int(flow->arena, item, "attempts", 1);
    if (flow_given(flow, FAIL_AFTER)) return flow_int(flow, FAIL_AFTER);
    for (; attempts > 1 && pause_ms < PAUSE_MOST_MS; attempts--) pause_ms *= 2;
    if (pause_ms > PAUSE_MOST_MS) pause_ms = PAUSE_MOST_MS;
    return pause_ms - (int64_t)flow_random_below(flow, (uint64_t)pause_ms / 2 + 1);
}

static void fail_write(struct flow *flow, struct slice update, struct slice values)
{
    flow_call(flow, fail_done, "UpdateItem",
              "{'TableName':%T,'Key':{'queue':%S,'id':%S},"
              "'UpdateExpression':'SET #state = :state, #error = :reason%r, #until, #owner',"
              "'ConditionExpression':'#state = :claimed and #fence = :fence',%#,"
              "'ExpressionAttributeValues':{':claimed':{'S':'CLAIMED'},':fence':%N,':reason':%S%r},"
              "'ReturnValues':'ALL_NEW',%O}",
              &work_table, flow_text(flow, WORK_QUEUE), flow_text(flow, WORK_ID), update,
              flow_int(flow, FAIL_FENCE),
              flow_given(flow, FAIL_REASON) ? flow_text(flow, FAIL_REASON) : SLICE("no reason given"),
              values);
}

static void fail_read(struct flow *flow)
{
    struct slice item = flow_item(flow);
    bool is_last = item_int(flow->arena, item, "attempts", 0) >= item_int(flow->arena, item, "limit", 0);
    if (is_last || (flow_given(flow, FAIL_RETRY) && !flow_int(flow, FAIL_RETRY)))
        fail_write(flow,
                   SLICE(", #dead = :queue, #finished = :time, #expires = :now + #keep REMOVE #slot, #due"),
                   flow_compose(flow, ",':state':{'S':'DEAD'},':queue':%S,':time':%S,':now':%N",
                                flow_text(flow, WORK_QUEUE), moment_text(flow->arena, flow->now_ms),
                                flow->now_ms / 1000));
    else
        fail_write(
            flow, SLICE(", #due = :due REMOVE #then"),
            flow_compose(flow, ",':state':{'S':'READY'},':due':%N", flow->now_ms + fail_pause(flow, item)));
}

static void fail_decide(struct flow *flow)
{
    if (flow_item(flow).data)
        fail_read(flow);
    else
        work_refuse_unknown(flow);
}

void work_fail(struct flow *flow)
{
    flow_call(flow, fail_decide, "GetItem",
              "{'TableName':%T,'Key':{'queue':%S,'id':%S},'ConsistentRead':true}", &work_table,
              flow_text(flow, WORK_QUEUE), flow_text(flow, WORK_ID));
}
