/* Once: one caller does a thing, all others get its result.
 *
 * Table PREFIXonce: hash key `id` (S): "NAME/KEY", the name percent-encoded; `owner`, `until`, `fence`: the hold
 * (hold.h) of whoever is at it; `state` (S): RUNNING, DONE, FAILED or FORGOTTEN; `result`: what it left, once DONE;
 * `error`: why it FAILED last; `failures` (N); `input` (S): a digest of what it is done with; `keep` (N): for how many
 * seconds its end is remembered; `ended` (N, ms since 1970); `kept` (N, seconds since 1970): once ended, until when it
 * counts; `expires` (N, seconds since 1970; time to live): two days later.
 *
 * The first caller takes the hold by one conditional write and gets its fence. It ends by `finish`, which stores the
 * result, or by `fail`, after which the next caller may try; who does neither loses it when its time is over. Both are
 * one write on the condition of the fence, so a caller that was thought dead stores no result over that of its
 * successor. What is not kept any more counts for nothing, but its fence goes on, for longer than anybody may hold an
 * older one.
 *
 * So two callers work at the same time only where the first one has outlived its hold; what they do outside can be
 * guarded by the fence, as with a lease. */
#include "calendar/calendar.h"
#include "pattern/hold.h"
#include "pattern/names.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"

#define KEEP_USUAL_MS (24 * 3600 * 1000ll)
#define KEEP_MOST_MS  (366 * 24 * 3600 * 1000ll)
#define FENCE_KEPT_S  (2 * 24 * 3600) /* beyond the end of a hold, so that no fence is given twice */
#define ERROR_BYTES   4096

static const struct flow_table once_table = {"once", "id", "expires"};

enum { NAME, KEY };
#define FIELD_ONCE_NAME FIELD_IN_PATH("name", 0, "what is done")
#define FIELDS_ONCE     FIELD_ONCE_NAME, FIELD_IN_PATH("key", 0, "for which order, request or day: once for each")

/* ---- what an item says ---- */

static struct slice id_of(struct flow *flow)
{
    return flow_compose(flow, "%A/%A", rest_encoded(flow->arena, flow_text(flow, NAME)),
                        flow_text(flow, KEY));
}

static struct slice key_of(struct flow *flow)
{
    return flow_compose(flow, "{'id':%S}", id_of(flow));
}

static uint64_t topic_of(struct flow *flow)
{
    return flow_topic("once", flow_text(flow, NAME), flow_text(flow, KEY));
}

static struct slice read_item(struct flow *flow)
{
    return task_get(flow, &once_table, "{'id':%S}", id_of(flow));
}

static bool is_forgotten(struct flow *flow, struct slice item)
{
    return item_int(flow->arena, item, "kept", INT64_MAX) <= flow->now_ms / 1000 ||
           slice_equal(item_text(flow->arena, item, "state"), SLICE("FORGOTTEN"));
}

static bool is_in(struct flow *flow, struct slice item, struct slice state)
{
    return item.data && !is_forgotten(flow, item) &&
           slice_equal(item_text(flow->arena, item, "state"), state);
}

static _Noreturn void refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "not-begun", "Nobody has begun '%.*s' of '%.*s', or it is forgotten.",
                SLICE_ARG(flow_text(flow, KEY)), SLICE_ARG(flow_text(flow, NAME)));
}

/* Members that tell of an item. */
static struct slice told(struct flow *flow, struct slice item)
{
    int64_t fence = hold_of(flow, item).fence, ended_ms = item_int(flow->arena, item, "ended", 0);
    if (is_in(flow, item, SLICE("DONE")))
        return flow_compose(flow, "'state':'DONE','fence':%d,'ended':%s,'result':%P", fence,
                            moment_text(flow->arena, ended_ms), item_attribute(flow->arena, item, "result"));
    if (is_in(flow, item, SLICE("RUNNING")) && hold_is_on(flow, item))
        return flow_compose(flow, "'state':'RUNNING','fence':%d,'owner':%s,'until':%s", fence,
                            hold_of(flow, item).owner, hold_until_text(flow, item));
    if (is_in(flow, item, SLICE("FAILED")))
        return flow_compose(flow, "'state':'FAILED','fence':%d,'ended':%s,'failures':%d,'error':%s", fence,
                            moment_text(flow->arena, ended_ms), item_int(flow->arena, item, "failures", 0),
                            item_text(flow->arena, item, "error"));
    return flow_compose(flow, "'state':'LOST','fence':%d", fence);
}

/* ---- POST: begin ---- */

enum { BEGIN_FOR = KEY + 1, BEGIN_KEEP, BEGIN_WAIT, BEGIN_OWNER, BEGIN_INPUT };

static const struct field begin_fields[] = {
    FIELDS_ONCE,
    [BEGIN_FOR] = FIELD_FOR(HOLD_MOST_MS, "how long the caller has for it, unless it renews (default: 30s)"),
    [BEGIN_KEEP] = FIELD_KEEP(KEEP_MOST_MS, "how long its end is remembered (default: 1d)"),
    [BEGIN_WAIT] = FIELD_WAIT(IN_BODY,
                              "where another is at it: how long to wait for its end (default: not at all)"),
    [BEGIN_OWNER] = {"owner", IN_BODY, FIELD_NAME,
                     .help = "who calls: the same owner that asks again gets the same fence"},
    [BEGIN_INPUT] = {"input", IN_BODY, FIELD_JSON,
                     .help = "what it is done with: the same key with another input is refused"},
};

/* A hold that nobody has, of a thing that is not done or is forgotten; never one that is under way with another
 * input. The fence is remembered beyond the hold, so that nobody gets it again. */
static bool begin_take(struct flow *flow, struct slice owner, struct slice input)
{
    int64_t for_ms = flow_int_or(flow, BEGIN_FOR, HOLD_USUAL_MS), second = flow->now_ms / 1000;
    struct slice key = key_of(flow);
    struct edit edit = {0};
    hold_take(flow, &edit, owner, for_ms, HOLD_FREE);
    edit_set(flow, &edit, "state", "{'S':'RUNNING'}");
    edit_set(flow, &edit, "keep", "%N", flow_int_or(flow, BEGIN_KEEP, KEEP_USUAL_MS) / 1000);
    edit_set(flow, &edit, "expires", "%N", second + for_ms / 1000 + FENCE_KEPT_S);
    edit_put(flow, &edit, EDIT_REMOVE, "#result, #ended, #kept", NULL);
    edit_if(flow, &edit, "(attribute_not_exists(#state) or #state <> :done or #kept <= :second)",
            "':done':{'S':'DONE'},':second':%N", second);
    if (input.data) {
        edit_set(flow, &edit, "input", "%S", input);
        edit_if(flow, &edit, "(attribute_not_exists(#input) or #input = :input or #kept <= :second)", NULL);
    } else {
        edit_put(flow, &edit, EDIT_REMOVE, "#input", NULL);
    }
    return edit_write(flow, &edit, &once_table, key);
}

/* The same owner again: its reply was lost, or it was started again. */
static bool begin_again(struct flow *flow, struct slice item)
{
    return edit_item(flow, &once_table, key_of(flow), SLICE("SET #until = :until"), SLICE(HOLD_ACT),
                     "':fence':%N,':until':%N", hold_of(flow, item).fence,
                     hold_until_ms(flow, flow_int_or(flow, BEGIN_FOR, HOLD_USUAL_MS)));
}

static bool has_other_input(struct flow *flow, struct slice item, struct slice input)
{
    struct slice known = item_text(flow->arena, item, "input");
    return input.data && known.data && !is_forgotten(flow, item) && !slice_equal(known, input);
}

/* Nobody makes a write only to learn that it is to wait: what was seen last decides what is done next. */
static void begin_once(struct flow *flow)
{
    int64_t until_ms = flow->now_ms + flow_int_or(flow, BEGIN_WAIT, 0);
    struct slice owner = flow_text_or(flow, BEGIN_OWNER, flow_new_id(flow));
    struct slice input = flow_given(flow, BEGIN_INPUT) ? token_digest(flow, flow_text(flow, BEGIN_INPUT))
                                                       : SLICE_NONE;
    bool may_take = true;
    flow_look(flow);
    while (!may_take || !begin_take(flow, owner, input)) {
        struct slice item = flow_item(flow);
        enum dynamo_hold_state state = hold_state(flow, item, owner);
        if (has_other_input(flow, item, input))
            task_refuse(flow, 422, "other-input", "This key was begun with another input.");
        if (is_in(flow, item, SLICE("DONE"))) {
            flow_answer(flow, 200, "{%r}", told(flow, item));
            return;
        }
        if (state == HOLD_IS_MINE && begin_again(flow, item)) break;
        may_take = state != HOLD_IS_ANOTHERS;
        if (may_take) {
            task_again(flow); /* it came free, or changed hands, between the write and now */
            continue;
        }
        if (flow->now_ms >= until_ms)
            task_refuse_with(flow, told(flow, item), 409, "running", "Another caller is at it.");
        task_watch_as(flow, topic_of(flow), flow_item_thing(&once_table, id_of(flow), SLICE_NONE),
                      topic_of(flow), hold_of(flow, item).until_ms + 1, until_ms);
        flow_look(flow);
        item = read_item(flow);
        may_take = !is_in(flow, item, SLICE("DONE")) && !hold_is_on(flow, item);
    }
    struct slice item = flow_item(flow);
    flow_wake_kin_at(flow, topic_of(flow), hold_of(flow, item).until_ms + 1);
    flow_answer(flow, 201, "{'state':'BEGUN','fence':%d,'until':%s}", hold_of(flow, item).fence,
                hold_until_text(flow, item));
}

/* ---- PUT: renew; POST: finish, fail ---- */

enum {
    ACT_FENCE = KEY + 1,
    RENEW_FOR,
    RENEW_UNTIL,
    RENEW_ANSWERED,
    FINISH_RESULT = RENEW_FOR,
    FAIL_ERROR = RENEW_FOR
};
#define FIELDS_ACT FIELDS_ONCE, [ACT_FENCE] = FIELD_FENCE("that the caller got when it began")

static const struct field renew_fields[] = {
    FIELDS_ACT,
    [RENEW_FOR] = FIELD_FOR(HOLD_MOST_MS, "for how much longer, from now (default: 30s)"),
    [RENEW_UNTIL] = {"until", IN_BODY, FIELD_NAME, .help = "or a time, as GET answers it"},
    [RENEW_ANSWERED] = FIELD_ANSWERED("state", FIELD_TEXT),
    FIELD_ANSWERED("owner", FIELD_TEXT),
};
static const struct field finish_fields[] = {
    FIELDS_ACT,
    [FINISH_RESULT] = {"result", IN_BODY, FIELD_JSON, .help = "what all others get (default: null)"},
};
static const struct field fail_fields[] = {
    FIELDS_ACT,
    [FAIL_ERROR] = {"error", IN_BODY, FIELD_TEXT, .max = ERROR_BYTES, .help = "why, for people"},
};

/* It is another's by now, or over. */
static _Noreturn void refuse_stale(struct flow *flow, struct slice item)
{
    if (!item.data) refuse_unknown(flow);
    struct slice members = told(flow, item);
    hold_refuse_fence(flow, item, flow_int(flow, ACT_FENCE), members, "thing", "begun");
    task_refuse_with(flow, members, 409, "ended", "It has ended already.");
}

static void renew_once(struct flow *flow)
{
    int64_t until_ms = hold_renewed_ms(flow, RENEW_FOR, RENEW_UNTIL);
    if (!edit_item(flow, &once_table, key_of(flow), SLICE("SET #until = :until, #expires = :expires"),
                   SLICE(HOLD_ACT), "':fence':%N,':until':%N,':expires':%N", flow_int(flow, ACT_FENCE),
                   until_ms, until_ms / 1000 + FENCE_KEPT_S))
        refuse_stale(flow, flow_item(flow));
    struct slice item = flow_item(flow);
    flow_wake_kin_at(flow, topic_of(flow), hold_of(flow, item).until_ms + 1);
    flow_answer(flow, 200, "{'fence':%d,'until':%s}", hold_of(flow, item).fence, hold_until_text(flow, item));
}

#define KEPT ", #kept = #keep + :second, #expires = #keep + :longer"

/* Ends it by one write; a repeat finds that it has ended so. */
static void end_once(struct flow *flow, struct slice state, struct slice update, struct slice values)
{
    int64_t fence = flow_int(flow, ACT_FENCE), second = flow->now_ms / 1000;
    bool has_ended = edit_item(flow, &once_table, key_of(flow), update, SLICE(HOLD_ACT),
                               "':fence':%N,':state':%S,':now':%N,':second':%N,':longer':%N%A", fence, state,
                               flow->now_ms, second, second + FENCE_KEPT_S, values);
    struct slice item = flow_item(flow);
    if (!has_ended && !(is_in(flow, item, state) && hold_of(flow, item).fence == fence))
        refuse_stale(flow, item);
    flow_wake(flow, topic_of(flow));
    flow_answer(flow, 200, "{%r}", told(flow, item));
}

static void finish_once(struct flow *flow)
{
    struct slice result = flow_text_or(flow, FINISH_RESULT, SLICE("null"));
    end_once(flow, SLICE("DONE"),
             SLICE("SET #state = :state, #result = :result, #ended = :now" KEPT
                   " REMOVE #owner, #until, #error, #failures"),
             flow_compose(flow, ",':result':%J", result));
}

static struct slice failed_list(struct flow *flow)
{
    return flow_compose(flow, "once-failed/%r", rest_encoded(flow->arena, flow_text(flow, NAME)));
}

/* Only those that failed are listed (names.h): people look for them, and they are few. An entry for each key would cost
 * as much as what is done with it. */
static void fail_once(struct flow *flow)
{
    names_enter(flow, failed_list(flow), flow_text(flow, KEY));
    end_once(
        flow, SLICE("FAILED"),
        SLICE("SET #state = :state, #error = :error, #ended = :now, "
              "#failures = if_not_exists(#failures, :zero) + :one" KEPT " REMOVE #owner, #until, #input"),
        flow_compose(flow, ",':error':%S,':zero':{'N':'0'},':one':{'N':'1'}", flow_text(flow, FAIL_ERROR)));
}

/* ---- GET, DELETE ---- */

static const struct field name_fields[] = {FIELDS_ONCE};

static void show_once(struct flow *flow)
{
    struct slice item = read_item(flow);
    if (!item.data || is_forgotten(flow, item)) refuse_unknown(flow);
    flow_answer(flow, 200, "{'name':%s,'key':%s,%r}", flow_text(flow, NAME), flow_text(flow, KEY),
                told(flow, item));
}

/* Its fence stays: the next one begins with a larger one, and who is at it now cannot end it any more. */
static void forget_once(struct flow *flow)
{
    if (!edit_item(flow, &once_table, key_of(flow),
                   SLICE("SET #state = :forgotten, #expires = :longer "
                         "REMOVE #owner, #until, #result, #error, #failures, #input, #ended, #kept"),
                   SLICE("attribute_exists(#id) and #state <> :forgotten and "
                         "(attribute_not_exists(#kept) or #kept > :second)"),
                   "':second':%N,':longer':%N,':forgotten':{'S':'FORGOTTEN'}", flow->now_ms / 1000,
                   flow->now_ms / 1000 + FENCE_KEPT_S))
        refuse_unknown(flow);
    flow_wake(flow, topic_of(flow));
    flow_answer(flow, 200, "{'deleted':true}");
}

/* ---- what failed ---- */

enum { FAILED_NAMES = NAME + 1 };

static const struct field failed_fields[] = {FIELD_ONCE_NAME, FIELDS_NAMES};

static struct slice told_in_list(struct flow *flow, struct slice item)
{
    return is_in(flow, item, SLICE("FAILED")) ? flow_compose(flow, ",%r", told(flow, item)) : SLICE_NONE;
}

static void list_failed(struct flow *flow)
{
    struct slice begin = flow_compose(flow, "%r/", rest_encoded(flow->arena, flow_text(flow, NAME)));
    names_list(flow,
               (struct names){failed_list(flow), "failed", "key", "id", .begin = begin, .table = &once_table,
                              .tell = told_in_list},
               FAILED_NAMES);
}

/* ---- rows ---- */

/* clang-format off */
const struct flow_row once_rows[] = {
    {"POST", "/v1/once/{name}/{key}", begin_once, "Begins a thing that is done once, or tells its result.",
     FIELDS(begin_fields), "{'state':'BEGUN','fence':1,'until':'2026-11-15T03:42:36.250Z'}", "once begin"},
    {"PUT", "/v1/once/{name}/{key}", renew_once, "Gives the caller that is at it more time.", FIELDS(renew_fields),
     "{'fence':1,'until':'2026-11-15T03:43:06.250Z'}", "once renew fence"},
    {"POST", "/v1/once/{name}/{key}/finish", finish_once, "Ends it with the result that all others get.",
     FIELDS(finish_fields), "{'state':'DONE','fence':1,'ended':'2026-11-15T03:42:16.250Z','result':{'paid':12}}",
     "once finish fence result?"},
    {"POST", "/v1/once/{name}/{key}/fail", fail_once, "Gives it up: the next caller may try.", FIELDS(fail_fields),
     "{'state':'FAILED','fence':1,'ended':'2026-11-15T03:42:16.250Z','failures':1,'error':'declined'}",
     "once fail fence error?"},
    {"GET", "/v1/once/{name}/{key}", show_once, "Whether it is done, and what came of it.", FIELDS(name_fields),
     "{'name':'charge','key':'o-17','state':'DONE','fence':1,'ended':'2026-11-15T03:42:16.250Z','result':{'paid':12}}",
     "once get"},
    {"DELETE", "/v1/once/{name}/{key}", forget_once, "Forgets it: the next caller does it again.",
     FIELDS(name_fields), "{'deleted':true}", "once rm"},
    {"GET", "/v1/once/{name}", list_failed, "The keys whose last try failed.", FIELDS(failed_fields),
     "{'failed':[{'key':'o-17','state':'FAILED','fence':1,'ended':'2026-11-15T03:42:16.250Z','failures':1,"
     "'error':'declined'}]}", "once list -> failed"},
};
/* clang-format on */
ROW_COUNT(once);
