/* Work, continued: claiming, beating, finishing, failing. The tables and what holds for them: work.c. */
#include "calendar/calendar.h"
#include "pattern/hold.h"
#include "pattern/rows.h"
#include "pattern/work.h"

#define LEASE_MOST_MS (24 * 3600 * 1000ll)
#define PAUSE_MOST_MS (3600 * 1000ll) /* of the doubled back-off */
#define CANDIDATES    10 /* looked at in one slot: claimers who come together take different ones */
#define LOST_PAUSE_MS 10 /* before the next look where others were quicker */
#define REASON_BYTES  4096

/* ---- claim ---- */

enum { CLAIM_OWNER = WORK_QUEUE + 1, CLAIM_FOR, CLAIM_WAIT };

const struct field work_claim_fields[] = {
    FIELD_WORK_QUEUE,
    [CLAIM_OWNER] = {"owner", IN_BODY, FIELD_NAME, .help = "who works"},
    [CLAIM_FOR] = FIELD_FOR(LEASE_MOST_MS, "instead of the queue's lease"),
    [CLAIM_WAIT] = FIELD_WAIT(IN_BODY, "how long to wait for a unit"),
};

/* One look at what can be claimed. */
struct claim_look {
    int64_t due_ms; /* of the first unit that cannot be claimed yet; INT64_MAX: there is none */
    bool lost;      /* others have taken what was found: there may be more behind it */
};

/* Adds to a change that the unit is DEAD, and nobody's. */
static void unit_dies(struct flow *flow, struct edit *edit, struct slice error)
{
    edit_set(flow, edit, "state", "{'S':'DEAD'}");
    edit_set(flow, edit, "dead", "%S", flow_text(flow, WORK_QUEUE));
    edit_set(flow, edit, "error", "%S", error);
    edit_set(flow, edit, "finished", "%S", moment_text(flow->arena, flow->now_ms));
    edit_put(flow, edit, EDIT_REMOVE, "#slot, #due, #until, #owner", NULL);
}

/* The last attempt's claim is over without a word: that was one failure too many. Or it failed when more attempts were
 * allowed than are now. */
static void bury(struct flow *flow, const struct work_settings *settings, struct slice unit)
{
    struct slice id = item_text(flow->arena, unit, "id"), error = item_text(flow->arena, unit, "error");
    int64_t fence = hold_of(flow, unit).fence;
    bool has_error = item_says(flow->arena, unit, "state", "READY") && error.len;
    struct edit edit = {0};
    unit_dies(flow, &edit, has_error ? error : SLICE("its last lease ended without a word"));
    edit_set(flow, &edit, "expires", "%N", flow->now_ms / 1000 + settings->keep_s);
    if (settings->then.data) edit_set(flow, &edit, "then", "%S", settings->then);
    edit_if(flow, &edit, "#fence = :fence and #due <= :now", "':fence':%N,':now':%N", fence, flow->now_ms);
    if (edit_write(flow, &edit, &work_table, work_key(flow, id)))
        flow_wake(flow, work_topic(flow, "work unit", id));
}

/* Takes the unit, if it can be had; buries it, if it was tried too often. */
static bool claim_unit(struct flow *flow, const struct work_settings *settings, struct slice id,
                       struct claim_look *look)
{
    int64_t for_ms = flow_int_or(flow, CLAIM_FOR, settings->lease_ms);
    struct edit edit = {0};
    hold_take(flow, &edit, flow_text(flow, CLAIM_OWNER), for_ms, HOLD_FREE);
    edit_put(flow, &edit, EDIT_SET,
             "#state = :claimed, #due = :due, #attempts = #attempts + :one, #limit = :limit, "
             "#backoff = :backoff, #lease = :lease, #keep = :keep",
             "':claimed':{'S':'CLAIMED'},':due':%N,':limit':%N,':backoff':%N,':lease':%N,':keep':%N",
             hold_until_ms(flow, for_ms) + 1, settings->attempts, settings->backoff_ms, settings->lease_ms,
             settings->keep_s);
    if (settings->then.data)
        edit_set(flow, &edit, "then", "%S", settings->then);
    else
        edit_put(flow, &edit, EDIT_REMOVE, "#then", NULL);
    edit_if(flow, &edit, "#due <= :now and #attempts < :limit", NULL);
    if (edit_write(flow, &edit, &work_table, work_key(flow, id))) return true;
    struct slice unit = flow_item(flow);
    bool is_due = item_int(flow->arena, unit, "due", INT64_MAX) <= flow->now_ms;
    if (is_due && item_int(flow->arena, unit, "attempts", 0) >= settings->attempts)
        bury(flow, settings, unit);
    else
        look->lost = true;
    return false;
}

/* Looks into one slot of the queue, and claims one of the units that are due there, any of the first. */
static bool claim_in_slot(struct flow *flow, const struct work_settings *settings, uint64_t slot,
                          struct claim_look *look)
{
    struct slice ids[CANDIDATES], item;
    unsigned count = 0;
    task_query(flow, "#slot = :slot", ",'IndexName':'claimable','Limit':%d", "':slot':%S", &work_table,
               (int64_t)CANDIDATES, work_slot(flow, flow_text(flow, WORK_QUEUE), slot));
    raw_each (flow->arena, flow_items(flow), &item) {
        if (count == CANDIDATES) break;
        int64_t due_ms = item_int(flow->arena, item, "due", 0);
        if (due_ms > flow->now_ms) { /* so are all behind it */
            if (due_ms < look->due_ms) look->due_ms = due_ms;
            break;
        }
        ids[count++] = item_text(flow->arena, item, "id");
    }
    uint64_t first = count ? flow_random_below(flow, count) : 0;
    for (unsigned i = 0; i < count; i++)
        if (claim_unit(flow, settings, ids[(first + i) % count], look)) return true;
    return false;
}

/* Where to look first: where a unit was submitted last, for one claimer, and anywhere for the others, so that they do
 * not all go to the same slot. */
static uint64_t first_slot(struct flow *flow)
{
    uint64_t topic = work_topic(flow, "work slot", SLICE(""));
    struct slice slot = flow_recall(flow, topic);
    if (!slot.len) return flow_random_below(flow, WORK_SLOTS);
    flow_forget(flow, topic);
    return (uint64_t)(slot.data[slot.len - 1] - '0');
}

void work_claim(struct flow *flow)
{
    struct work_settings settings;
    int64_t until_ms = flow->now_ms + flow_int_or(flow, CLAIM_WAIT, 0);
    task_call(flow, "GetItem", "{'TableName':%T,'Key':{'queue':%S}}", &work_settings_table,
              flow_text(flow, WORK_QUEUE));
    work_settings_read(flow, flow_item(flow), &settings);
    for (;;) {
        struct claim_look look = {.due_ms = INT64_MAX};
        flow_look(flow);
        uint64_t slot = first_slot(flow);
        for (unsigned i = 0; i < WORK_SLOTS; i++) {
            if (!claim_in_slot(flow, &settings, slot + i, &look)) continue;
            flow_wake_kin_at(flow, work_topic(flow, "work", SLICE("")),
                             item_int(flow->arena, flow_item(flow), "due", 0));
            work_tell(flow, 200, flow_item(flow));
            return;
        }
        if (flow->now_ms >= until_ms) break;
        /* Until somebody submits a unit, or one becomes due. All claimers of a queue look for the same. */
        uint64_t topic = work_topic(flow, "work", SLICE(""));
        int64_t soon_ms = flow->now_ms + LOST_PAUSE_MS + (int64_t)flow_random_below(flow, LOST_PAUSE_MS);
        task_watch_as(flow, topic, flow_item_thing(&work_table, flow_text(flow, WORK_QUEUE), SLICE("")),
                      topic, look.due_ms, look.lost && soon_ms < until_ms ? soon_ms : until_ms);
    }
    flow_finish(flow, 204);
}

/* ---- beat ---- */

enum { BEAT_FENCE = WORK_ID + 1, BEAT_FOR, BEAT_PROGRESS, BEAT_STEP };

const struct field work_beat_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [BEAT_FENCE] = FIELD_FENCE("of the claim"),
    [BEAT_FOR] = FIELD_FOR(LEASE_MOST_MS, "instead of the queue's lease"),
    [BEAT_PROGRESS] = {"progress", IN_BODY, FIELD_JSON, .help = "to go on from, whoever does"},
    [BEAT_STEP] = {"step", IN_BODY, FIELD_INT, .max = INT64_MAX,
                   .help = "grows with the progress, so that an old beat never overwrites a newer one; where "
                           "progress is a whole number, that"},
};

/* Why the fence does not fit. */
static _Noreturn void refuse_stale(struct flow *flow, struct slice unit, int64_t fence)
{
    struct slice state = item_text(flow->arena, unit, "state");
    struct slice members = flow_compose(flow, "'state':%s,'fence':%d", state, hold_of(flow, unit).fence);
    if (!unit.data) work_refuse_unknown(flow);
    hold_refuse_fence(flow, unit, fence, members, "unit", "claimed");
    task_refuse_with(flow, members, 409, "not-claimed", "The unit is %.*s.", SLICE_ARG(state));
}

void work_beat(struct flow *flow)
{
    struct slice progress = flow_text(flow, BEAT_PROGRESS);
    int64_t fence = flow_int(flow, BEAT_FENCE), step = flow_int(flow, BEAT_STEP);
    int64_t until_ms = hold_until_ms(flow, flow_int(flow, BEAT_FOR));
    bool has_progress = flow_given(flow, BEAT_PROGRESS);
    bool has_step = flow_given(flow, BEAT_STEP) ||
                    (has_progress && raw_kind(progress) == JSON_NUMBER && raw_int(progress, &step));
    struct edit edit = {0};
    edit_put(flow, &edit, EDIT_SET,
             flow_given(flow, BEAT_FOR) ? "#until = :until, #due = :due"
                                        : "#until = :until + #lease, #due = :due + #lease",
             "':until':%N,':due':%N", until_ms, until_ms + 1);
    edit_if(flow, &edit, HOLD_ACT, "':fence':%N", fence);
    if (has_progress) edit_set(flow, &edit, "progress", "%J", progress);
    if (has_step) {
        edit_set(flow, &edit, "step", "%N", step);
        edit_if(flow, &edit, "(attribute_not_exists(#step) or #step <= :step)", NULL);
    }
    bool is_kept = edit_write(flow, &edit, &work_table, work_key(flow, flow_text(flow, WORK_ID)));
    struct slice unit = work_found(flow);
    int64_t reached = item_int(flow->arena, unit, "step", 0);
    if (is_kept)
        work_tell(flow, 200, unit);
    else if (has_step && item_has(flow->arena, unit, "owner") && hold_of(flow, unit).fence == fence)
        flow_refuse_with(flow,
                         flow_compose(flow, "'step':%d,'progress':%P", reached,
                                      item_attribute(flow->arena, unit, "progress")),
                         409, "progress-behind", "The unit is at step %lld already.", (long long)reached);
    else
        refuse_stale(flow, unit, fence);
}

/* ---- finish ---- */

enum { FINISH_FENCE = WORK_ID + 1, FINISH_RESULT };

const struct field work_finish_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [FINISH_FENCE] = FIELD_FENCE("of the claim"),
    [FINISH_RESULT] = {"result", IN_BODY, FIELD_JSON, .help = "what came of it"},
};

void work_finish(struct flow *flow)
{
    int64_t fence = flow_int(flow, FINISH_FENCE);
    bool is_done = edit_item(
        flow, &work_table, work_key(flow, flow_text(flow, WORK_ID)),
        SLICE("SET #state = :done, #result = :result, #finished = :time, #expires = :now + #keep "
              "REMOVE #slot, #due, #until, #owner, #error, #then"),
        SLICE(HOLD_ACT), "':fence':%N,':done':{'S':'DONE'},':result':%J,':time':%S,':now':%N", fence,
        flow_text(flow, FINISH_RESULT), moment_text(flow->arena, flow->now_ms), flow->now_ms / 1000);
    struct slice unit = work_found(flow);
    bool was_done = item_says(flow->arena, unit, "state", "DONE") && hold_of(flow, unit).fence == fence;
    if (!is_done && !was_done) refuse_stale(flow, unit, fence);
    work_wake_watchers(flow);
    work_tell(flow, 200, unit);
}

/* ---- fail ---- */

enum { FAIL_FENCE = WORK_ID + 1, FAIL_REASON, FAIL_RETRY, FAIL_AFTER };

const struct field work_fail_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [FAIL_FENCE] = FIELD_FENCE("of the claim"),
    [FAIL_REASON] = {"reason", IN_BODY, FIELD_TEXT, .max = REASON_BYTES, .help = "what went wrong"},
    [FAIL_RETRY] = {"retry", IN_BODY, FIELD_BOOL, .help = "false: it is no use to try again"},
    [FAIL_AFTER] = {"after", IN_BODY, FIELD_DURATION, .max = LEASE_MOST_MS,
                    .help = "instead of the queue's back-off"},
};

/* The pause behind a failure: doubled with each, between half and all of it, so that a herd spreads. */
static int64_t fail_pause(struct flow *flow, struct slice unit)
{
    int64_t pause_ms = item_int(flow->arena, unit, "backoff", 0),
            attempts = item_int(flow->arena, unit, "attempts", 1);
    if (flow_given(flow, FAIL_AFTER)) return flow_int(flow, FAIL_AFTER);
    for (; attempts > 1 && pause_ms < PAUSE_MOST_MS; attempts--) pause_ms *= 2;
    if (pause_ms > PAUSE_MOST_MS) pause_ms = PAUSE_MOST_MS;
    return pause_ms - (int64_t)flow_random_below(flow, (uint64_t)pause_ms / 2 + 1);
}

void work_fail(struct flow *flow)
{
    int64_t fence = flow_int(flow, FAIL_FENCE);
    bool is_last = flow_given(flow, FAIL_RETRY) && !flow_int(flow, FAIL_RETRY);
    struct slice unit = SLICE_NONE, reason = flow_text_or(flow, FAIL_REASON, SLICE("no reason given"));
    if (!is_last) {
        unit = work_read(flow);
        is_last = item_int(flow->arena, unit, "attempts", 0) >= item_int(flow->arena, unit, "limit", 0);
    }
    struct edit edit = {0};
    edit_if(flow, &edit, HOLD_ACT, "':fence':%N", fence);
    if (is_last) {
        unit_dies(flow, &edit, reason);
        edit_put(flow, &edit, EDIT_SET, "#expires = :now + #keep", "':now':%N", flow->now_ms / 1000);
    } else {
        edit_set(flow, &edit, "state", "{'S':'READY'}");
        edit_set(flow, &edit, "error", "%S", reason);
        edit_set(flow, &edit, "due", "%N", flow->now_ms + fail_pause(flow, unit));
        edit_put(flow, &edit, EDIT_REMOVE, "#then, #until, #owner", NULL);
    }
    bool is_taken = edit_write(flow, &edit, &work_table, work_key(flow, flow_text(flow, WORK_ID)));
    unit = work_found(flow);
    bool was_taken = hold_of(flow, unit).fence == fence && (item_says(flow->arena, unit, "state", "READY") ||
                                                            item_says(flow->arena, unit, "state", "DEAD"));
    if (!is_taken && !was_taken) refuse_stale(flow, unit, fence);
    work_wake_watchers(flow);
    work_wake_claimers(flow);
    work_tell(flow, 200, unit);
}
