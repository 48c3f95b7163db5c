/* Jobs: many tasks that somebody does side by side, and the one moment when all of them are done.
 *
 * Table PREFIXjobs, the heads: hash key `id` (S); `run` (S): tells the job from others that had its id
 *   before, and sorts by time; `state` (S): OPEN, COMPLETE, FAILED (more tasks failed than are tolerated),
 *   EXPIRED (its deadline came first), and on the way there CLOSING, DELETING; `total` (N): tasks, there
 *   when it is known; `first` (N): the number of the first; `layout` (S): tree or set; `leaves` (N), `names`
 *   (S): of a job whose tasks have names, how many leaves there are, and a hash of the names, `prepared`
 *   (BOOL): all leaves are there; `epoch` (N): grows with every change of what has to be done; `changing`,
 *   `changing_ms` (N): the epoch of such a change that is not finished, and when it began; `b0`, `b1`, ... (N): of a
 *   branch its version, finished and failed tasks, the last two with 8 digits; `failures` (N): the sum of the
 *   latter; `tolerate` (N, or S "5%"); `deadline`, `keep` (N, ms); `opened`, `closed` (S, ISO 8601); `counted`
 *   (N): tasks done when it EXPIRED; `revived` (N, ms): the deadline that it EXPIRED by, if it was opened
 *   again since; `reach` (N): the last leaf that was written while the total is not known; `last_caller` (S):
 *   who was told to be last, by its key or by the task, "done 17"; `then` (S); `parent` (M): the task of another job
 *   that it is, by `job` and `task`, and `own_then` (S): its `then` without what tells that job; `each` (S),
 *   `concurrency`, `attempts` (N), `backoff`, `timeout` (N, ms), `paused` (BOOL): what is called for each task;
 *   `source` (S): where the items of its tasks come from, "list", "lines" or the JSON of a table and its query.
 *   Index unfinished: hash `listed` (S) "OPEN/0", "OPEN/1"... (slots.h), FAILED, EXPIRED, COMPLETE likewise; range
 *     `run`.
 *   Index due: hash `slot` (S) "0", "1"..., range `due` (N, ms): when the sweep takes it up.
 * Table PREFIXjob-parts: hash key `part` (S): "ID/RUN/0/LEAF" or "ID/RUN/1/BRANCH", range key `task` (S).
 *   Item "-" of a leaf: `done`, `failed` (NS): places of tasks in the leaf; of named ones `waiting`, `done`,
 *     `failed` (SS): their names, and `wanted` (N): how many; `failed_once` (BOOL); `epoch` (N): of the last
 *     change that came to it; `closed` (N, ms): nothing is counted any more since the deadline of that time,
 *     unless the head's `revived` has come to it.
 *   Item "-" of a branch: `full` (NS): leaves all of whose tasks are done and that cannot get more; `l17` (N): of
 *     another leaf its epoch, wanted, done and failed tasks, the last three with 6 digits; `version` (N).
 *   Item "-" of "ID/RUN/2/TALLY": `tally` (NS): how far its 64 leaves are, see job_scan.c.
 *   Item "000000017" or ":NAME" of a leaf: `result`, `reason` (S) of that task. Item "=ID": `results` (M) of tasks that
 *     were done by one call, by their places or names; it counts if the leaf has its ID in `pages` (SS), which is
 *     written when none of them was done before, and then counts more than `result`.
 *   Item "-" of "slots": how many slots the indexes have (slots.h).
 * Table PREFIXjob-items: chains (chain.h) by "ID/RUN": the items of tasks, see job_items.c.
 *
 * Task t is in leaf t / 256, leaf l in branch l / 256, branches in the head. A task is counted by one write to
 * its leaf, which stays below 1 KB whatever the size of the job. Whoever fills a leaf, or changes what has failed in
 * it, tells its branch, and so on up; anybody who comes by does the same again, which makes good what a crash has left
 * out.
 *
 * No two items are written together, so:
 *  1. The leaves are the truth. Branches and the head have what they were told, perhaps not yet the latest.
 *  2. What a leaf tells is a number that only grows while the leaf changes: epoch, wanted, done, failed, in this
 *      order. Tasks that are done stay so, and what has failed becomes less only when more is done or by a new epoch.
 *      A branch tells its version first. So what comes late is smaller, and replaces nothing.
 *  3. Within an epoch of the head what is finished stays finished. Whatever takes that back (failed tasks that are
 *      tried again) or adds to what has to be done raises the epoch first, and while it is under way, `changing`, the
 *      job does not complete. Who completes it does so on condition of the epoch that was read before the leaves.
 *  4. A change that its caller has left is taken over: by a new epoch, which all leaves get that it might still write
 *      to, so that none of its writes succeeds any more.
 *  5. `failures` is the sum of what the head knows of its branches: both change by the same write. */
#include "pattern/job.h"

#include <stddef.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/rows.h"

#define FIRST_HEAL_MS                                                                                        \
    (5 * 60 * 1000ll)     /* when the sweep takes up an OPEN job; then at twice its age, and so on */
#define RANGES_MOST 10000 /* of an answer: about 100 KB */

const struct flow_table job_table = {"jobs", "id; unfinished listed run; due slot due:N; stream", NULL};

const struct flow_table job_parts_table = {"job-parts", "part task", NULL};

/* ---- the head ---- */

static const struct slice state_names[] = {SLICE("NONE"),
#define X(name) SLICE(#name),
                                           JOB_STATES(X)
#undef X
};

struct slice job_state_name(enum job_state state)
{
    return state_names[state];
}

struct job *job_new(struct flow *flow, struct slice id)
{
    struct job *job = flow->state = arena_new(flow->arena, struct job);
    job->id = id;
    return job;
}

struct slice job_key(struct flow *flow)
{
    const struct job *job = flow->state;
    return flow_compose(flow, "{'id':%S}", job->id);
}

struct slice job_caller(struct flow *flow, const char *what, struct slice name, int64_t number)
{
    if (name.data) return flow_compose(flow, "%r %s", slice_of(what), name);
    return arena_printf(flow->arena, "%s %lld", what, (long long)number);
}

/* Attributes of the head, found in one pass. */
/* clang-format off */
#define HEAD(X)                                                                                                        \
    X(state) X(run) X(last_caller) X(total) X(first) X(layout) X(leaves) X(prepared) X(failures) X(deadline) X(keep)   \
    X(reach) X(revived) X(epoch) X(changing) X(changing_ms) X(each) X(source)
/* clang-format on */

static void head_read(struct flow *flow, struct slice item)
{
    enum {
#define X(name) AT_##name,
        HEAD(X) ALL
#undef X
    };
    static const char *const names[ALL] = {
#define X(name) #name,
        HEAD(X)
#undef X
    };
    struct arena *arena = flow->arena;
    struct job *job = flow->state;
    struct slice at[ALL];
    raw_pick(arena, item, names, at, ALL);
    struct slice state = attribute_text(arena, at[AT_state]), layout = attribute_text(arena, at[AT_layout]);
    job->item = item;
    job->run = attribute_text(arena, at[AT_run]);
    job->last_caller = attribute_text(arena, at[AT_last_caller]);
    job->state = JOB_NONE;
    for (size_t i = 1; item.data && i < sizeof state_names / sizeof *state_names; i++)
        if (slice_equal(state, state_names[i])) job->state = (enum job_state)i;
    job->named = at[AT_leaves].data;
    job->prepared = at[AT_prepared].data;
    job->reached = at[AT_reach].data;
    job->total = attribute_int(arena, at[AT_total], -1);
    job->first = attribute_int(arena, at[AT_first], 0);
    job->fan = slice_equal(layout, SLICE("set")) ? JOB_SET_MOST : JOB_FAN;
    int64_t reached = job->total < 0 ? attribute_int(arena, at[AT_reach], -1) + 1
                                     : (job->total + job->fan - 1) / job->fan;
    job->leaves = item.data ? attribute_int(arena, at[AT_leaves], reached) : 0;
    job->branches = (job->leaves + JOB_FAN - 1) / JOB_FAN;
    job->failures = attribute_int(arena, at[AT_failures], 0);
    job->deadline_ms = attribute_int(arena, at[AT_deadline], 0);
    job->keep_ms = attribute_int(arena, at[AT_keep], 0);
    job->revived_ms = attribute_int(arena, at[AT_revived], 0);
    job->epoch = attribute_int(arena, at[AT_epoch], 0);
    job->changing = attribute_int(arena, at[AT_changing], 0);
    job->changing_ms = attribute_int(arena, at[AT_changing_ms], 0);
    job->is_driven = at[AT_each].data;
    job->has_items = at[AT_source].data;
    job->blank = item.data && job->total < 0 && !job->named && !job->reached && !job->has_items;
}

/* What a table has that an earlier version of Quipu made is refused, and left alone by the sweep. */
static void refuse_old_layout(struct flow *flow)
{
    struct job *job = flow->state;
    if (!job->item.data || job->epoch || job->state == JOB_DELETING) return;
    head_read(flow, SLICE_NONE);
    if (!flow->request) return;
    task_refuse(flow, 409, "old-layout",
                "The job was made by an earlier version of Quipu, which kept jobs otherwise. Delete it.");
}

static uint64_t head_topic(struct slice id)
{
    return flow_topic("job head", id, SLICE(""));
}

/* What the process remembers of a head is what was read of it, the members from `item` on, and behind them their texts:
 * tasks that are done need not read it again. */
#define HEAD_AT    offsetof(struct job, item)
#define HEAD_BYTES (sizeof(struct job) - HEAD_AT)

static bool head_recall(struct flow *flow)
{
    struct job *job = flow->state;
    struct slice kept = flow_recall(flow, head_topic(job->id)),
                 *texts[] = {&job->item, &job->run, &job->last_caller};
    if (!kept.data) return false;
    memcpy((char *)job + HEAD_AT, kept.data, HEAD_BYTES);
    const char *at = kept.data + HEAD_BYTES;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; at += texts[i++]->len)
        if (texts[i]->data) texts[i]->data = at;
    ensure(at == kept.data + kept.len);
    return true;
}

void job_take(struct flow *flow, struct slice item)
{
    struct job *job = flow->state;
    head_read(flow, item);
    job->is_fresh = true;
    job->is_recalled = false;
    refuse_old_layout(flow);
    struct buf kept = {0};
    if (job->item.data) {
        buf_put(&kept, (const char *)job + HEAD_AT, HEAD_BYTES);
        buf_slice(&kept, job->item);
        buf_slice(&kept, job->run);
        buf_slice(&kept, job->last_caller);
    }
    flow_remember(flow, head_topic(job->id), buf_view(&kept));
    buf_free(&kept);
}

bool job_took(struct flow *flow, bool is_written)
{
    if (is_written) job_take(flow, flow_item(flow));
    return is_written;
}

void job_forget(struct flow *flow)
{
    const struct job *job = flow->state;
    flow_forget(flow, head_topic(job->id));
}

static void head_load(struct flow *flow, bool is_fresh)
{
    struct job *job = flow->state;
    task_call(flow, "GetItem", "{'TableName':%T,'Key':{'id':%S},'ConsistentRead':%b}", &job_table, job->id,
              (int)is_fresh);
    job_take(flow, flow_item(flow));
    job->is_fresh = is_fresh;
}

void job_load(struct flow *flow)
{
    head_load(flow, true);
}

void job_glance(struct flow *flow)
{
    head_load(flow, false);
}

void job_recall(struct flow *flow)
{
    struct job *job = flow->state;
    if (!head_recall(flow)) {
        job_glance(flow);
        return;
    }
    job->is_recalled = true;
    job->is_fresh = false;
}

void job_load_existing(struct flow *flow)
{
    const struct job *job = flow->state;
    job_load(flow);
    if (!job->item.data || job->state == JOB_DELETING) job_refuse_unknown(flow);
}

_Noreturn void job_refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-job", "There is no job '%.*s'.", SLICE_ARG(flow_text(flow, JOB_ID)));
}

_Noreturn void job_refuse_closed(struct flow *flow)
{
    struct job *job = flow->state;
    struct slice state = job_state_name(job->state), members = flow_compose(flow, "'state':%s", state);
    if (job->state == JOB_OPEN || job->state == JOB_CLOSING || job->state == JOB_EXPIRED)
        task_refuse_with(flow, members, 409, "deadline-over",
                         "The deadline of the job was %.*s. A PATCH with another deadline opens it again.",
                         SLICE_ARG(moment_text(flow->arena, job->deadline_ms)));
    task_refuse_with(flow, members, 409, "job-closed", "The job is %.*s.", SLICE_ARG(state));
}

_Noreturn void job_refuse_unprepared(struct flow *flow)
{
    task_refuse(flow, 409, "not-prepared",
                "The job is still being made; repeat its PUT if that was interrupted.");
}

uint64_t job_topic(struct slice id)
{
    return flow_topic("job", id, SLICE(""));
}

uint64_t job_progress_topic(struct slice id)
{
    return flow_topic("job progress", id, SLICE(""));
}

void job_wake(struct flow *flow)
{
    const struct job *job = flow->state;
    flow_wake(flow, job_topic(job->id));
    flow_wake(flow, job_progress_topic(job->id));
}

void job_wait_for_change(struct flow *flow, uint64_t topic, int64_t until_ms)
{
    const struct job *job = flow->state;
    int64_t over_ms = job->deadline_ms + flow->world->skew_ms;
    bool changes = job->deadline_ms && over_ms > flow->now_ms;
    task_watch_as(flow, topic, flow_thing("job", job->id), 0, changes ? over_ms : INT64_MAX, until_ms);
}

const struct slots job_slots = {&job_parts_table,
                                SLICE("{\"part\":{\"S\":\"slots\"},\"task\":{\"S\":\"-\"}}")};

struct slice job_slot(struct flow *flow)
{
    const struct job *job = flow->state;
    return flow_compose(flow, "%d", slots_place(flow, &job_slots, job->id));
}

struct slice job_listed(struct flow *flow, enum job_state state)
{
    return flow_compose(flow, "%r/%r", job_state_name(state), job_slot(flow));
}

int64_t job_tolerated(struct flow *flow, const struct job *job)
{
    struct slice percent = item_text(flow->arena, job->item, "tolerate");
    int64_t number;
    bool is_percent = percent.len && percent.data[percent.len - 1] == '%';
    if (is_percent) percent.len--;
    if (!percent.len || !raw_int(percent, &number)) return 0;
    if (is_percent) return job->total < 0 ? JOB_TASKS_MOST : job->total * number / 100;
    return number;
}

/* Where the condition does not hold, another has reached further; or the tasks were given names. */
void job_reach(struct flow *flow, int64_t leaf)
{
    struct job *job = flow->state;
    if (job->total >= 0 || leaf < job->leaves) return;
    JOB_EDIT(
        flow, "SET #reach = :leaf",
        "#run = :run and attribute_not_exists(#leaves) and (attribute_not_exists(#reach) or #reach < :leaf)",
        "':leaf':%N,':run':%S", leaf, job->run);
    struct slice run = job->run;
    job_take(flow, flow_item(flow));
    if (!slice_equal(run, job->run)) job_refuse_unknown(flow);
    if (!job->named) return;
    task_refuse(flow, 409, "other-tasks", "The tasks of the job are names.");
}

int64_t job_opened_ms(struct slice run)
{
    unsigned long long ms;
    struct slice digits = {run.data, run.len < 13 ? run.len : 13};
    return slice_to_u64(digits, INT64_MAX, &ms) ? (int64_t)ms : 0;
}

int64_t job_due_ms(const struct flow *flow, const struct job *job)
{
    int64_t age_ms = job->item.data ? flow->now_ms - job_opened_ms(job->run) : 0;
    int64_t due_ms = flow->now_ms + (age_ms > FIRST_HEAL_MS ? age_ms : FIRST_HEAL_MS);
    int64_t end_ms = job->deadline_ms + flow->world->skew_ms;
    return job->deadline_ms && end_ms < due_ms ? end_ms : due_ms;
}

bool job_is_over(const struct flow *flow, const struct job *job)
{
    return job->deadline_ms && flow->now_ms >= job->deadline_ms + flow->world->skew_ms;
}

bool job_is_closing(const struct flow *flow, const struct job *job)
{
    return job->deadline_ms && flow->now_ms >= job->deadline_ms;
}

/* ---- answers ---- */

static struct slice counts_text(struct flow *flow)
{
    struct job *job = flow->state;
    int64_t done = item_int(flow->arena, job->item, "counted", -1);
    bool is_about = false;
    if (done < 0 && job->state == JOB_COMPLETE) done = job->total - job->failures;
    if (done < 0 && job->has_counted && (!job->named || job->prepared)) {
        done = job->total < 0 || job->at_least ? job->done : job->total - job->missing - job->failures;
        is_about = job->at_least;
    }
    return flow_compose(flow, "%[%?,'done':%d%]%[%?,'missing':%d%]%[%?,'exact':false%]", done >= 0, done,
                        done >= 0 && job->total >= 0, job->total - done - job->failures, is_about);
}

/* Of a job that is a task of another: without what tells that one. */
static struct slice then_member(struct flow *flow)
{
    const struct job *job = flow->state;
    if (!item_has(flow->arena, job->item, "parent")) return flow_then_member(flow, job->item);
    struct slice own = item_text(flow->arena, job->item, "own_then");
    return flow_then_member(flow, flow_compose(flow, "{%['then':%S%]}", own));
}

struct slice job_describe(struct flow *flow)
{
    struct job *job = flow->state;
    struct arena *arena = flow->arena;
    struct slice source = item_text(arena, job->item, "source"),
                 parent = item_attribute(arena, job->item, "parent");
    if (!slice_starts(source, SLICE("{"))) source = SLICE_NONE; /* items are not told again */
    return flow_compose(
        flow,
        "{'id':%s,'state':%s%[%?,'preparing':true%]%[%?,'total':%d%]%A,'failed':%d%A%[%?,'first':%d%],'layout':%s"
        "%[,'tolerate':%P%]%[%?,'deadline':%s%]%[%?,'keep':%s%]%A%[,'parent':%P%]%[,'from':%A%]%A%[,'opened':%s%]"
        "%[,'closed':%s%]}",
        job->id, job_state_name(job->state), job->named && !job->prepared, job->total >= 0, job->total,
        counts_text(flow), job->failures, job_ranges_member(flow), job->first != 0, job->first,
        job->fan == JOB_SET_MOST ? SLICE("set") : SLICE("tree"), item_attribute(arena, job->item, "tolerate"),
        job->deadline_ms != 0, moment_text(arena, job->deadline_ms), job->keep_ms != 0,
        duration_text(arena, job->keep_ms), then_member(flow), parent, source, job_each_members(flow),
        item_text(arena, job->item, "opened"), item_text(arena, job->item, "closed"));
}

void job_answer(struct flow *flow, int status)
{
    flow_answer(flow, status, "%r", job_describe(flow));
}

/* ---- GET ---- */

enum { GET_WAIT = JOB_ID + 1, GET_PROGRESS, GET_EXACT, GET_RANGES };

static const struct field get_fields[] = {
    FIELD_JOB_ID,
    [GET_WAIT] = FIELD_WAIT(IN_QUERY, "wait so long for its end"),
    [GET_PROGRESS] =
        {"progress", IN_QUERY, FIELD_BOOL,
         .help = "how many are done, of a large job at least (\"exact\": false); small jobs always tell"},
    [GET_EXACT] = {"exact", IN_QUERY, FIELD_BOOL,
                   .help = "count what is done, which reads 1 KB for 256 tasks that are not done"},
    [GET_RANGES] = {"ranges", IN_QUERY, FIELD_INT, .min = 1, .max = RANGES_MOST,
                    .help = "progress by ranges of numbered tasks, at most so many: done and failed in each"},
};

static void get_job(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    int64_t until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    for (;;) {
        flow_look(flow);
        job->has_counted = false;
        job->ranges = flow_int(flow, GET_RANGES);
        job_load_existing(flow);
        if ((job->state == JOB_OPEN || job->state == JOB_CLOSING) && job_is_over(flow, job)) {
            job_expire(flow);
            job_load_existing(flow);
        }
        bool is_open = job->state == JOB_OPEN || job->state == JOB_CLOSING;
        if (!is_open && job->state != JOB_FAILED) {
            if (job->ranges) job_count(flow, false);
            break;
        }
        if (flow_int(flow, GET_EXACT))
            job_heal(flow);
        else if (flow_int(flow, GET_PROGRESS) || job->ranges || job->leaves <= JOB_FEW)
            job_count(flow, true);
        is_open = job->state == JOB_OPEN || job->state == JOB_CLOSING;
        if (!is_open || flow->now_ms >= until_ms) break;
        job_wait_for_change(flow, job_topic(job->id), until_ms);
    }
    job_answer(flow, 200);
}

/* ---- lists ---- */

enum { LIST_STATE, LIST_OLDER, LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    [LIST_STATE] = {"state", IN_QUERY, FIELD_CHOICE, .words = "open|failed|expired|complete",
                    .help = "only these (default: open); of complete ones the newest first"},
    [LIST_OLDER] = {"older", IN_QUERY, FIELD_DURATION, .max = JOB_LONG_MS,
                    .help = "only those opened before that"},
    [LIST_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [LIST_AFTER] = FIELD_AFTER,
};

static void list_jobs(struct flow *flow)
{
    static const enum job_state states[] = {JOB_OPEN, JOB_FAILED, JOB_EXPIRED, JOB_COMPLETE};
    enum job_state wanted = states[flow_int(flow, LIST_STATE)];
    struct listing *list = listing_new(flow, flow_int_or(flow, LIST_LIMIT, LIST_USUAL),
                                       wanted == JOB_COMPLETE);
    int64_t before_ms = flow->now_ms - flow_int(flow, LIST_OLDER) + 1;
    struct slice state = job_state_name(wanted), before = flow_compose(flow, "%d", before_ms);
    int64_t slots = slots_read(flow, &job_slots);
    for (int64_t slot = 0; slot < slots; slot++) {
        task_query(flow, "#listed = :listed and #run between :from and :to", ",'IndexName':'unfinished',%A",
                   "':listed':{'S':'%r/%d'},%A", &job_table, listing_members(flow, list), state, slot,
                   listing_range(flow, list, flow_text(flow, LIST_AFTER), before));
        listing_take(flow, list, "run", flow_text(flow, LIST_AFTER));
    }
    buf_text(flow->body, "{\"jobs\":[");
    for (int64_t i = 0; i < list->count; i++)
        flow_put(flow, flow->body, "%,{'id':%s,'state':%s,'opened':%s}",
                 item_text(flow->arena, list->entries[i].item, "id"), state,
                 moment_text(flow->arena, job_opened_ms(list->entries[i].order)));
    listing_finish(flow, list);
}

/* ---- rows ---- */

/* clang-format off */
#define JOB "{'id':'doc3','state':'OPEN','total':500,'done':37,'missing':463,'failed':0,'layout':'tree'," \
    "'opened':'2026-11-15T03:42:06.250Z'}"
const struct flow_row job_rows[] = {
    {"POST", "/v1/jobs/{id}/done", job_done, "Counts tasks as done, each once; one caller is told to be last.",
     FIELDS(job_done_fields), "{'counted':1,'complete':false,'last':false,'done':37}", "job done task|tasks..."},
    {"POST", "/v1/jobs/{id}/failed", job_failed, "Counts a task as failed; done later, it is done.",
     FIELDS(job_failed_fields), "{'counted':1,'state':'OPEN','failed':1}", "job failed task reason?"},
    {"PUT", "/v1/jobs/{id}", job_put, "Opens a job; again, with a larger total, it grows.",
     FIELDS(job_put_fields), JOB, "job put"},
    {"PATCH", "/v1/jobs/{id}", job_patch,
     "Changes an open job: more tasks, another deadline or tolerance. A deadline opens an EXPIRED one again.",
     FIELDS(job_patch_fields), JOB, "job change"},
    {"GET", "/v1/jobs/{id}", get_job, "A job, perhaps after waiting for its end.", FIELDS(get_fields), JOB,
     "job get"},
    {"DELETE", "/v1/jobs/{id}", job_delete, "Deletes a job and all that is known of its tasks.",
     FIELDS(job_only_fields), "{'deleted':true}", "job rm"},
    {"GET", "/v1/jobs/{id}/events", job_events, "Server-sent events: \"progress\" while it is open, then \"end\".",
     FIELDS(job_events_fields), "event: progress", "job watch"},
    {"GET", "/v1/jobs/{id}/missing", job_missing, "The tasks that are neither done nor failed.",
     FIELDS(job_page_fields), "{'missing':[17,23]}", "job missing -> missing"},
    {"GET", "/v1/jobs/{id}/failures", job_failures, "The failed tasks and why.", FIELDS(job_page_fields),
     "{'failures':[{'task':17,'reason':'no ink'}]}", "job failures -> failures"},
    {"GET", "/v1/jobs/{id}/results", job_results, "The results of done tasks, in the order of the tasks.",
     FIELDS(job_page_fields), "{'results':[{'task':0,'result':{'any':'JSON'}}],'next':'1'}",
     "job results -> results"},
    {"GET", "/v1/jobs/{id}/tasks", job_tasks,
     "What is to be done next: tasks that are neither done nor failed, with their items, 256 at a time.",
     FIELDS(job_tasks_fields), "{'state':'OPEN','opened':'2026-11-15T03:42:06.250Z','tasks':[{'task':17,"
     "'item':{'any':'JSON'}}],'next':256}", "job tasks -> tasks"},
    {"POST", "/v1/jobs/{id}/items", job_items, "Stores items of tasks, as JSON lines.", FIELDS(job_items_fields),
     "{'stored':500,'state':'OPEN'}", "job items items"},
    {"POST", "/v1/jobs/{id}/read", job_read, "Reads the next items from the job's table, as servers do by themselves.",
     FIELDS(job_read_fields), "{'stored':256,'ended':false,'state':'OPEN'}", "job read"},
    {"POST", "/v1/jobs/{id}/redrive", job_redrive, "Makes failed tasks missing again, and the job OPEN.",
     FIELDS(job_redrive_fields), "{'redriven':[17],'state':'OPEN'}", "job redrive"},
    {"GET", "/v1/jobs", list_jobs, "Jobs of a state, the oldest first; COMPLETE ones the newest first.",
     FIELDS(list_fields),
     "{'jobs':[{'id':'doc3','state':'OPEN','opened':'2026-11-15T03:42:06.250Z'}]}", "job ls -> jobs"},
};
/* clang-format on */
ROW_COUNT(job);
