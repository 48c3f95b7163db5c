/* Work: units that somebody claims, works at and finishes, whoever dies on the way. Here: queues, submitting,
 * looking.
 *
 * Table PREFIXwork: hash key `queue` (S), range key `id` (S); `state` (S): READY, CLAIMED, DONE or DEAD;
 *   `data`; `attempts` (N): claims so far; `fence`, `owner`, `until`: of the claim (hold.h); `progress`, `step` (N):
 *   what the last beat saved, to go on from; `result`; `error` (S): the last failure; `submitted`, `finished` (S,
 *   ISO 8601); `limit`, `backoff`, `lease`, `keep`, `then`: the queue's settings as the claim found them; `expires`
 *   (N, s): the time to live of what is DONE or DEAD.
 *   Index claimable: hash `slot` (S): "QUEUE/0" to "QUEUE/3", any of them; range `due` (N, ms): from when on it can
 *     be claimed. Both are there while the unit is READY or CLAIMED (due: behind the end of its claim), so the index
 *     holds what can be claimed.
 *   Index dead: hash `dead` (S): the queue, while the unit is DEAD; range `id`.
 *   One without `state` was deleted: it is there for a while with its `fence`, so that fences go on where the same
 *   id is submitted again, and whoever worked at the old unit cannot finish the new one.
 * Table PREFIXwork-queues: hash key `queue` (S); `lease`, `backoff` (N, ms), `attempts` (N), `keep` (N, s),
 *   `then` (S); `changed` (S): when they were set. A queue whose units the server hands to a function has a drive, too
 *   (drive.c).
 *
 * A claim is a hold (hold.h): beat, finish and fail only act on the fence that they were given, so whoever lost its
 * claim changes nothing. A unit that is submitted again answers what became of it. */
#include "pattern/work.h"

#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/drive.h"
#include "pattern/edit.h"
#include "pattern/hold.h"
#include "pattern/listing.h"
#include "pattern/names.h"
#include "pattern/rows.h"

#define LEASE_MOST_MS (24 * 3600 * 1000ll)
#define DELAY_MOST_MS (365 * 24 * 3600 * 1000ll)
#define DELETED_S     (2 * 24 * 3600) /* longer than any claim lasts */

const struct flow_table work_table = {"work", "queue id; claimable slot due:N; dead dead id *; stream",
                                      "expires"};

const struct flow_table work_settings_table = {"work-queues", "queue", NULL};

/* ---- what all share ---- */

struct slice work_slot(struct flow *flow, struct slice queue, uint64_t number)
{
    return arena_printf(flow->arena, "%.*s/%u", SLICE_ARG(queue), (unsigned)(number % WORK_SLOTS));
}

uint64_t work_topic(const struct flow *flow, const char *kind, struct slice id)
{
    return flow_topic(kind, flow_text(flow, WORK_QUEUE), id);
}

void work_wake_claimers(struct flow *flow)
{
    flow_wake(flow, work_topic(flow, "work", SLICE("")));
}

void work_wake_watchers(struct flow *flow)
{
    flow_wake(flow, work_topic(flow, "work unit", flow_text(flow, WORK_ID)));
}

struct slice work_key(struct flow *flow, struct slice id)
{
    return flow_compose(flow, "{'queue':%S,'id':%S}", flow_text(flow, WORK_QUEUE), id);
}

struct slice work_read(struct flow *flow)
{
    task_get(flow, &work_table, "%A", work_key(flow, flow_text(flow, WORK_ID)));
    return work_found(flow);
}

struct slice work_found(struct flow *flow)
{
    struct slice item = flow_item(flow);
    return item_has(flow->arena, item, "state") ? item : SLICE_NONE;
}

_Noreturn void work_refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-work", "There is no unit '%.*s' in the queue '%.*s'.",
                SLICE_ARG(flow_text(flow, WORK_ID)), SLICE_ARG(flow_text(flow, WORK_QUEUE)));
}

/* As an object, appended to the answer. */
static void work_put(struct flow *flow, struct slice item)
{
    bool is_claimed = item_says(flow->arena, item, "state", "CLAIMED");
    flow_put(flow, flow->body, "{'id':%s", item_text(flow->arena, item, "id"));
    plain_put_members(flow->body, flow->arena, item,
                      is_claimed ? "state attempts fence owner" : "state attempts fence");
    if (is_claimed) flow_put(flow, flow->body, ",'until':%s", hold_until_text(flow, item));
    if (item_says(flow->arena, item, "state", "READY"))
        flow_put(flow, flow->body, ",'due':%s",
                 moment_text(flow->arena, item_int(flow->arena, item, "due", 0)));
    plain_put_members(flow->body, flow->arena, item, "data progress step result error finished");
    buf_byte(flow->body, '}');
}

void work_tell(struct flow *flow, int status, struct slice item)
{
    work_put(flow, item);
    flow_finish(flow, status);
}

/* ---- the queue ---- */

enum {
    SET_LEASE = WORK_QUEUE + 1,
    SET_ATTEMPTS,
    SET_BACKOFF,
    SET_KEEP,
    SET_THEN,
    SET_EACH,
    SET_CONCURRENCY,
    SET_TIMEOUT,
    SET_PAUSED,
    SET_REPLY
};

static const struct field set_fields[] = {
    FIELD_WORK_QUEUE,
    [SET_LEASE] = {"lease", IN_BODY, FIELD_DURATION, .min = 1, .max = LEASE_MOST_MS,
                   .help = "how long a claim lasts without a beat (default: 30s)"},
    [SET_ATTEMPTS] = {"attempts", IN_BODY, FIELD_INT, .min = 1, .max = 1000,
                      .help = "claims before a unit is DEAD (default: 5)"},
    [SET_BACKOFF] = {"backoff", IN_BODY, FIELD_DURATION, .max = LEASE_MOST_MS,
                     .help = "the pause after the first failure, doubled with each (default: 1s)"},
    [SET_KEEP] = FIELD_KEEP(DELAY_MOST_MS, "how long what is DONE or DEAD is kept (default: 7d)"),
    [SET_THEN] = {"then", IN_BODY, FIELD_THEN,
                  .help = "what runs for each unit that becomes DEAD: a function, a URL or a call"},
    [SET_EACH] =
        {"each", IN_BODY, FIELD_THEN,
         .help = "what the server calls with each unit, by itself: a function, a URL or a call; []: nothing"},
    [SET_CONCURRENCY] = {"concurrency", IN_BODY, FIELD_INT, .min = 1, .max = LIMIT_DRIVE_CONCURRENCY,
                         .help = "how many of these calls run at a time, over all servers (default: 10)"},
    [SET_TIMEOUT] = {"timeout", IN_BODY, FIELD_DURATION, .min = 1, .max = LEASE_MOST_MS,
                     .help = "of such a call, where it is shorter than the function's own"},
    [SET_PAUSED] = {"paused", IN_BODY, FIELD_BOOL, .help = "true: no such call is begun"},
    [SET_REPLY] = FIELD_ANSWERED("work", FIELD_LIST),
    FIELD_ANSWERED("next", FIELD_TEXT),
};

static const struct drive_setting work_drive_settings[] = {
    {"each", FIELD_THEN, DRIVE_NONE},
    {"concurrency", FIELD_INT, 10},
    {"timeout", FIELD_DURATION, DRIVE_NONE},
    {"paused", FIELD_BOOL, false},
};
DRIVE_KIND(work);

void work_settings_read(struct flow *flow, struct slice item, struct work_settings *settings)
{
    settings->lease_ms = item_int(flow->arena, item, "lease", 30000);
    settings->attempts = item_int(flow->arena, item, "attempts", 5);
    settings->backoff_ms = item_int(flow->arena, item, "backoff", 1000);
    settings->keep_s = item_int(flow->arena, item, "keep", 7 * 24 * 3600);
    settings->then = item_text(flow->arena, item, "then");
}

static struct slice settings_members(struct flow *flow, struct slice item)
{
    struct work_settings settings;
    work_settings_read(flow, item, &settings);
    return flow_compose(flow, "'lease':%s,'attempts':%d,'backoff':%s,'keep':%s%r",
                        duration_text(flow->arena, settings.lease_ms), settings.attempts,
                        duration_text(flow->arena, settings.backoff_ms),
                        duration_text(flow->arena, settings.keep_s * 1000), flow_then_member(flow, item));
}

/* What is not given stays as it is. */
static void set_queue(struct flow *flow)
{
    struct drive_thing thing = {.kind = &work_drive_kind, .name = flow_text(flow, WORK_QUEUE)};
    drive_check(flow, &thing);
    names_note(flow, SLICE("work"), flow_text(flow, WORK_QUEUE));
    struct edit edit = {0};
    edit_set(flow, &edit, "changed", "%S", moment_text(flow->arena, flow->now_ms));
    if (flow_given(flow, SET_LEASE)) edit_set(flow, &edit, "lease", "%N", flow_int(flow, SET_LEASE));
    if (flow_given(flow, SET_ATTEMPTS)) edit_set(flow, &edit, "attempts", "%N", flow_int(flow, SET_ATTEMPTS));
    if (flow_given(flow, SET_BACKOFF)) edit_set(flow, &edit, "backoff", "%N", flow_int(flow, SET_BACKOFF));
    if (flow_given(flow, SET_KEEP)) edit_set(flow, &edit, "keep", "%N", flow_int(flow, SET_KEEP) / 1000);
    if (flow_given(flow, SET_THEN)) edit_set(flow, &edit, "then", "%S", flow_then(flow, SET_THEN));
    edit_write(flow, &edit, &work_settings_table,
               flow_compose(flow, "{'queue':%S}", flow_text(flow, WORK_QUEUE)));
    struct slice settings = settings_members(flow, flow_item(flow)), drive = drive_put(flow, &thing);
    flow_answer(flow, 200, "{%A%A}", settings, drive_members(flow, &thing, drive));
}

/* ---- submitting ---- */

enum { SUBMIT_DATA = WORK_ID + 1, SUBMIT_DELAY };

static const struct field submit_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [SUBMIT_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what to work at"},
    [SUBMIT_DELAY] = {"delay", IN_BODY, FIELD_DURATION, .max = DELAY_MOST_MS,
                      .help = "not to be claimed before"},
};

/* The unit as it is now. */
static struct slice submit(struct flow *flow, bool *is_new)
{
    struct slice queue = flow_text(flow, WORK_QUEUE), id = flow_text(flow, WORK_ID), unit, found;
    int64_t fence = 0;
    names_note(flow, SLICE("work"), queue);
    do {
        unit = flow_compose(flow,
                            "{'queue':%S,'id':%S,'state':{'S':'READY'},'slot':%S,'due':%N,'fence':%N,"
                            "'attempts':{'N':'0'},'submitted':%S,'data':%J}",
                            queue, id, work_slot(flow, queue, hash_bytes(id)),
                            flow->now_ms + flow_int_or(flow, SUBMIT_DELAY, 0), fence,
                            moment_text(flow->arena, flow->now_ms), flow_text(flow, SUBMIT_DATA));
        task_call(
            flow, "PutItem",
            "{'TableName':%T,'Item':%A,'ConditionExpression':'attribute_not_exists(#id) or "
            "(attribute_not_exists(#state) and #fence = :fence)',%#,'ExpressionAttributeValues':{':fence':%N},%O}",
            &work_table, unit, fence);
        fence = hold_of(flow, flow_item(flow)).fence;
        found = work_found(flow);
    } while (flow_failed(flow) && !found.data); /* it was deleted: by its fence */
    *is_new = !flow_failed(flow);
    if (!*is_new) return found;
    flow_remember(flow, work_topic(flow, "work slot", SLICE("")), item_text(flow->arena, unit, "slot"));
    work_wake_claimers(flow);
    return unit;
}

static void submit_unit(struct flow *flow)
{
    bool is_new;
    struct slice unit = submit(flow, &is_new);
    work_tell(flow, is_new ? 201 : 200, unit);
}

enum { MANY_UNITS = WORK_QUEUE + 1 };

static const struct field many_fields[] = {
    FIELD_WORK_QUEUE,
    [MANY_UNITS] = {"units", IN_BODY, FIELD_LIST, true, .help = "1 to 100 objects of id, data and delay"},
};

/* Each is a write of its own, on the condition that it is not there: who repeats the call finds those that are. */
static void submit_units(struct flow *flow)
{
    size_t count;
    struct field_value **units = flow_elements(flow, MANY_UNITS, LIMIT_BATCH_UNITS, FIELDS(submit_fields),
                                               &count);
    bool has_new = false, is_new;
    struct slice *told = arena_array(flow->arena, struct slice, count);
    for (size_t i = 0; i < count; i++) {
        flow_with(flow, units[i]);
        told[i] = submit(flow, &is_new);
        has_new |= is_new;
    }
    buf_text(flow->body, "{\"units\":[");
    for (size_t i = 0; i < count; i++) {
        flow_put(flow, flow->body, "%,");
        work_put(flow, told[i]);
    }
    buf_text(flow->body, "]}");
    flow_finish(flow, has_new ? 201 : 200);
}

/* ---- looking ---- */

enum { GET_WAIT = WORK_ID + 1 };

static const struct field get_fields[] = {
    FIELD_WORK_QUEUE,
    FIELD_WORK_ID,
    [GET_WAIT] = FIELD_WAIT(IN_QUERY, "wait so long for its end"),
};

static void show_unit(struct flow *flow)
{
    struct slice queue = flow_text(flow, WORK_QUEUE), id = flow_text(flow, WORK_ID), unit;
    int64_t until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    for (;;) {
        flow_look(flow);
        unit = work_read(flow);
        if (item_has(flow->arena, unit, "finished") || flow->now_ms >= until_ms) break;
        task_watch(flow, work_topic(flow, "work unit", id), flow_item_thing(&work_table, queue, id),
                   until_ms);
    }
    if (!unit.data) work_refuse_unknown(flow);
    work_tell(flow, 200, unit);
}

enum { LIST_STATE = WORK_QUEUE + 1, LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    FIELD_WORK_QUEUE,
    [LIST_STATE] = {"state", IN_QUERY, FIELD_CHOICE, .words = "ready|claimed|done|dead",
                    .help = "only these; dead ones have an index, the others are picked out of all"},
    [LIST_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                    .help = "look at so many at most (default: 100)"},
    [LIST_AFTER] = FIELD_AFTER,
};

enum { STATE_READY, STATE_CLAIMED, STATE_DONE, STATE_DEAD };
static const struct slice state_names[] = {SLICE("READY"), SLICE("CLAIMED"), SLICE("DONE"), SLICE("DEAD")};

static void list_units(struct flow *flow)
{
    struct slice queue = flow_text(flow, WORK_QUEUE), state = SLICE_NONE, after = SLICE_NONE, item;
    bool is_all = !flow_given(flow, LIST_STATE),
         is_dead = !is_all && flow_int(flow, LIST_STATE) == STATE_DEAD;
    buf_byte(flow->body, '{');
    if (is_all && !flow_given(flow, LIST_AFTER)) { /* the first page of the whole queue */
        struct slice settings = settings_members(flow,
                                                 task_get(flow, &work_settings_table, "{'queue':%S}", queue));
        struct drive_thing thing = {.kind = &work_drive_kind, .name = queue};
        flow_put(flow, flow->body, "%A%A,", settings, drive_members(flow, &thing, drive_read(flow, &thing)));
    }
    if (!is_all && !is_dead) state = state_names[flow_int(flow, LIST_STATE)];
    if (flow_given(flow, LIST_AFTER))
        after = flow_compose(flow, "{'queue':%S,'id':%S%[%?,'dead':%S%]}", queue, flow_text(flow, LIST_AFTER),
                             (int)is_dead, queue);
    task_query(flow, "%r = :queue",
               "%[%?,'IndexName':'dead'%]%[%?,'FilterExpression':'attribute_exists(#state)'%]"
               "%[%?,'FilterExpression':'#state = :state'%],'Limit':%d" READ_FROM,
               "':queue':%S%[,':state':%S%]", &work_table, is_dead ? SLICE("#dead") : SLICE("#queue"),
               (int)is_dead, (int)is_all, (int)(state.data != NULL),
               flow_int_or(flow, LIST_LIMIT, LIST_USUAL), after, queue, state);
    buf_text(flow->body, "\"work\":[");
    raw_each (flow->arena, flow_items(flow), &item) {
        flow_put(flow, flow->body, "%,");
        work_put(flow, item);
    }
    page_finish(flow, item_text(flow->arena, flow_last_key(flow), "id"));
}

/* Where nobody has set a queue, one of its units tells that it is there. */
static struct slice told_in_list(struct flow *flow, struct slice item)
{
    bool is_unit = item_has(flow->arena, item, "id");
    return flow_compose(flow, ",%A", settings_members(flow, is_unit ? SLICE_NONE : item));
}

NAMES_LIST(list_queues, SLICE("work"), "queues", "queue", "queue", .table = &work_settings_table,
           .children = &work_table, .tell = told_in_list)

/* ---- again, or away ---- */

static const struct field unit_fields[] = {FIELD_WORK_QUEUE, FIELD_WORK_ID};

static void retry_unit(struct flow *flow)
{
    struct slice queue = flow_text(flow, WORK_QUEUE), id = flow_text(flow, WORK_ID);
    edit_item(flow, &work_table, work_key(flow, id),
              SLICE("SET #state = :ready, #slot = :slot, #due = :now, #attempts = :zero "
                    "REMOVE #dead, #expires, #finished"),
              SLICE("#state = :dead"),
              "':ready':{'S':'READY'},':dead':{'S':'DEAD'},':slot':%S,':now':%N,':zero':{'N':'0'}",
              work_slot(flow, queue, hash_bytes(id)), flow->now_ms);
    struct slice unit = work_found(flow);
    if (!unit.data) work_refuse_unknown(flow);
    if (item_says(flow->arena, unit, "state", "READY")) { /* by this call, or before */
        work_wake_claimers(flow);
        work_tell(flow, 200, unit);
    } else {
        flow_refuse(flow, 409, "not-dead", "Only a DEAD unit can be tried again; this one is %.*s.",
                    SLICE_ARG(item_text(flow->arena, unit, "state")));
    }
}

static void delete_unit(struct flow *flow)
{
    if (edit_item(
            flow, &work_table, work_key(flow, flow_text(flow, WORK_ID)),
            SLICE("SET #expires = :expires REMOVE #state, #slot, #due, #dead, #owner, #until, #attempts, "
                  "#data, #progress, #step, #result, #error, #submitted, #finished, #limit, #backoff, "
                  "#lease, #keep, #then"),
            SLICE("attribute_exists(#state) and " HOLD_FREE), "':expires':%N,':now':%N",
            flow->now_ms / 1000 + DELETED_S, flow->now_ms))
        flow_answer(flow, 200, "{'deleted':true}");
    else if (work_found(flow).data)
        flow_refuse(flow, 409, "claimed", "Somebody works at this unit.");
    else
        work_refuse_unknown(flow);
}

/* ---- rows ---- */

/* clang-format off */
#define UNIT "{'id':'a','state':'CLAIMED','attempts':1,'fence':1,'owner':'me','until':'2026-11-15T03:42:36.250Z'}"
const struct flow_row work_rows[] = {
    {"POST", "/v1/work/{queue}/claim", work_claim, "Claims a unit, if there is one.",
     FIELDS(work_claim_fields), UNIT, "work claim owner?"},
    {"POST", "/v1/work/{queue}/{id}/beat", work_beat, "Keeps a claim and saves progress.",
     FIELDS(work_beat_fields), UNIT, "work beat fence progress?"},
    {"POST", "/v1/work/{queue}/{id}/finish", work_finish, "Finishes a unit with its result.",
     FIELDS(work_finish_fields), "{'id':'a','state':'DONE','result':42}", "work finish fence result?"},
    {"POST", "/v1/work/{queue}/{id}/fail", work_fail, "Gives a unit back after a failure, or up.",
     FIELDS(work_fail_fields), "{'id':'a','state':'READY','attempts':1}", "work fail fence reason?"},
    {"POST", "/v1/work/{queue}/{id}/retry", retry_unit, "Makes a DEAD unit READY again.", FIELDS(unit_fields),
     "{'id':'a','state':'READY','attempts':0}", "work retry"},
    {"POST", "/v1/work/{queue}/{id}", submit_unit, "Submits a unit; again, it answers what became of it.",
     FIELDS(submit_fields), "{'id':'a','state':'READY','attempts':0}", "work submit data?"},
    {"GET", "/v1/work/{queue}/{id}", show_unit, "A unit, perhaps after waiting for its end.", FIELDS(get_fields), UNIT,
     "work get"},
    {"DELETE", "/v1/work/{queue}/{id}", delete_unit, "Deletes a unit that nobody works at.", FIELDS(unit_fields),
     "{'deleted':true}", "work rm"},
    {"POST", "/v1/work/{queue}", submit_units, "Submits many units; each answers what became of it.",
     FIELDS(many_fields), "{'units':[{'id':'a','state':'READY','attempts':0}]}", NULL},
    {"PUT", "/v1/work/{queue}", set_queue, "Sets what a queue does by itself.", FIELDS(set_fields),
     "{'lease':'30s','attempts':5,'backoff':'1s','keep':'7d'}", "work put"},
    {"GET", "/v1/work/{queue}", list_units, "The settings of a queue, and its units by id.", FIELDS(list_fields),
     "{'lease':'30s','attempts':5,'backoff':'1s','keep':'7d','work':[" UNIT "],'next':'a'}", "work ls -> work"},
    {"GET", "/v1/work", list_queues, "The queues that were set or have units, by name.", FIELDS(names_fields),
     "{'queues':[{'queue':'mails','lease':'30s','attempts':5,'backoff':'1s','keep':'7d'}]}", "work list -> queues"},
};
/* clang-format on */
ROW_COUNT(work);
