/* Jobs: many tasks that somebody does side by side, and the one moment when all of them are done.
 *
 * Table PREFIXjobs, the heads: hash key `id` (S); `run` (S): tells the job from others that had its id
 *   before, and sorts by time; `state` (S): OPEN, COMPLETE, FAILED (more tasks failed than are tolerated),
 *   EXPIRED (its deadline came first), and on the way there CLOSING, DELETING; `total` (N): tasks, there
 *   when it is known; `first` (N): the number of the first; `layout` (S): tree or set; `leaves` (N), `names`
 *   (S): of a job whose tasks have names, how many leaves there are, and a hash of the names, `prepared`
 *   (BOOL): all leaves are there; `full` (NS): branches all of whose tasks are done or failed; `failures`
 *   (N); `tolerate` (N, or S "5%"); `deadline`, `keep` (N, ms); `opened`, `closed` (S, ISO 8601); `counted`
 *   (N): tasks done when it EXPIRED, `forgiven` (N): of these, how many had failed before; `revived` (N,
 *   ms): the deadline that it EXPIRED by, if it was opened again since; `reach` (N): the last leaf that was
 *   written while the total is not known; `told` (S): who was told to be last, by its key or by the task,
 *   "done 17"; `then` (S).
 *   Index unfinished: hash `listed` (S) "OPEN/0" to "OPEN/3", FAILED, EXPIRED likewise; range `run`.
 *   Index due: hash `slot` (S) "0" to "3", range `due` (N, ms): when the sweep looks at it.
 * Table PREFIXjob-parts: hash key `part` (S): "ID/RUN/0/LEAF" or "ID/RUN/1/BRANCH", range key `task` (S).
 *   Item "-" of a leaf: `wanted` (N): its tasks; `done`, `failed` (NS): their places in the leaf; of named
 *     ones `waiting`, `done`, `failed` (SS): their names; `closed` (N, ms): nothing is counted any more
 *     since the deadline of that time, unless the head's `revived` has come to it.
 *   Item "-" of a branch: `wanted` (N): its leaves; `full` (NS): those that are; `failing` (NS): those with
 *     failures. Item "-" of "ID/RUN/2/TALLY": `tally` (NS): how far its 64 leaves are, see job_walk.c.
 *   Item "000000017" or ":NAME" of a leaf: `result`, `reason` (S) of that task.
 *
 * Task t is in leaf t / 256, leaf l in branch l / 256, branches in the head. A task is counted by one write
 * to its leaf, which stays below 1 KB whatever the size of the job. Who sees a leaf full brings it to its
 * branch, and so on up; who fills the head completes the job by the same write, so one caller at most is
 * last. Anybody who sees a full leaf again goes the same way: that heals what a crash left half done. Where a
 * full leaf can cease to be (the job grows, failed tasks are tried again) the way up is a transaction that
 * looks at it again. */
#include "pattern/job.h"

#include "base/fail.h"
#include "base/hash.h"
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/rows.h"

#define LOOK_AGAIN_MS                                                                                        \
    (5 * 60 * 1000ll)  /* the first look at an OPEN job; then at twice its age, and so on                    \
                        */
#define LIST_MOST   1000
#define LIST_USUAL  100

const struct flow_table job_table = {
    "jobs",
    "'KeySchema':[{'AttributeName':'id','KeyType':'HASH'}],"
    "'AttributeDefinitions':[{'AttributeName':'id','AttributeType':'S'},{'AttributeName':'listed',"
    "'AttributeType':'S'},{'AttributeName':'run','AttributeType':'S'},{'AttributeName':'slot',"
    "'AttributeType':'S'},{'AttributeName':'due','AttributeType':'N'}],"
    "'GlobalSecondaryIndexes':[{'IndexName':'unfinished',"
    "'KeySchema':[{'AttributeName':'listed','KeyType':'HASH'},{'AttributeName':'run','KeyType':'RANGE'}],"
    "'Projection':{'ProjectionType':'KEYS_ONLY'}},"
    "{'IndexName':'due','KeySchema':[{'AttributeName':'slot','KeyType':'HASH'},{'AttributeName':'due',"
    "'KeyType':'RANGE'}],'Projection':{'ProjectionType':'KEYS_ONLY'}}]," FLOW_STREAM,
    NULL};

const struct flow_table job_parts_table = {
    "job-parts",
    "'KeySchema':[{'AttributeName':'part','KeyType':'HASH'},{'AttributeName':'task','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'part','AttributeType':'S'},{'AttributeName':'task',"
    "'AttributeType':'S'}]",
    NULL};

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

struct job_work *job_work_new(struct flow *flow, struct slice id)
{
    struct job_work *work = flow->state = arena_new(flow->arena, struct job_work);
    work->id = id;
    work->me = flow_new_id(flow);
    return work;
}

struct slice job_caller(struct flow *flow, const char *what, struct slice name, int64_t number)
{
    if (name.data) return flow_compose(flow, "%r %s", slice_of(what), name);
    return arena_printf(flow->arena, "%s %lld", what, (long long)number);
}

void job_read(struct flow *flow, struct slice item, struct job *job)
{
    enum { STATE, RUN, TOLD, TOTAL, FIRST, LAYOUT, LEAVES, PREPARED, FAILURES, DEADLINE, KEEP, REACH, REVIVED, ALL };
    static const char *const names[ALL] = {"state",  "run",      "told",     "total",    "first", "layout",
                                           "leaves", "prepared", "failures", "deadline", "keep",  "reach",  "revived"};
    struct arena *arena = flow->arena;
    struct slice found[ALL];
    raw_pick(arena, item, names, found, ALL);
    struct slice state = attribute_text(arena, found[STATE]), layout = attribute_text(arena, found[LAYOUT]);
    *job = (struct job){.item = item,
                        .run = attribute_text(arena, found[RUN]),
                        .told = attribute_text(arena, found[TOLD]),
                        .total = attribute_int(arena, found[TOTAL], -1),
                        .first = attribute_int(arena, found[FIRST], 0),
                        .fan = slice_equal(layout, SLICE("set")) ? JOB_SET_MOST : JOB_FAN,
                        .named = found[LEAVES].data != NULL,
                        .prepared = found[PREPARED].data != NULL,
                        .failures = attribute_int(arena, found[FAILURES], 0),
                        .deadline_ms = attribute_int(arena, found[DEADLINE], 0),
                        .keep_ms = attribute_int(arena, found[KEEP], 0),
                        .revived_ms = attribute_int(arena, found[REVIVED], 0)};
    if (!item.data) return;
    for (size_t i = 1; i < sizeof state_names / sizeof *state_names; i++)
        if (slice_equal(state, state_names[i])) job->state = (enum job_state)i;
    int64_t reached = job->total < 0 ? attribute_int(arena, found[REACH], -1) + 1
                                     : (job->total + job->fan - 1) / job->fan;
    job->leaves = attribute_int(arena, found[LEAVES], reached);
    job->branches = (job->leaves + JOB_FAN - 1) / JOB_FAN;
    job->reached = found[REACH].data != NULL;
    job->blank = job->total < 0 && !job->named && !found[REACH].data;
}

static void loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    job_read(flow, flow_item(flow), &work->job);
    work->loaded(flow);
}

void job_load(struct flow *flow, bool fresh, flow_step *then)
{
    struct job_work *work = flow->state;
    work->loaded = then;
    work->fresh = fresh;
    flow_call(flow, loaded, "GetItem", "{'TableName':%T,'Key':{'id':%S},'ConsistentRead':%b}", &job_table,
              work->id, (int)fresh);
}

void job_refuse_unknown(struct flow *flow)
{
    flow_refuse(flow, 404, "no-such-job", "There is no job '%.*s'.", SLICE_ARG(flow_text(flow, JOB_ID)));
}

void job_refuse_closed(struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct slice state = job_state_name(job->state), members = flow_compose(flow, "'state':%s", state);
    if (job->state == JOB_OPEN || job->state == JOB_CLOSING || job->state == JOB_EXPIRED)
        flow_refuse_with(flow, members, 409, "deadline-over",
                         "The deadline of the job was %.*s. A PATCH with another deadline opens it again.",
                         SLICE_ARG(moment_text(flow->arena, job->deadline_ms)));
    else
        flow_refuse_with(flow, members, 409, "job-closed", "The job is %.*s.", SLICE_ARG(state));
}

uint64_t job_topic(struct slice id)
{
    return flow_topic("job", id, SLICE(""));
}

void job_news_watch(struct flow *flow, uint64_t topic, int64_t until_ms, flow_step *then)
{
    const struct job_work *work = flow->state;
    int64_t over_ms = work->job.deadline_ms + flow->world->skew_ms;
    flow_watch(flow, topic, flow_thing("job", work->id), until_ms, then);
    if (work->job.deadline_ms && over_ms > flow->now_ms) flow_watch_change(flow, over_ms);
}

struct slice job_slot(struct flow *flow)
{
    const struct job_work *work = flow->state;
    return arena_printf(flow->arena, "%u", (unsigned)(hash_bytes(work->id) % JOB_SLOTS));
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
static void reached(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (flow_failed(flow) && item_has(flow->arena, flow_item(flow), "leaves"))
        flow_refuse(flow, 409, "other-tasks", "The tasks of the job are names.");
    else
        work->loaded(flow);
}

void job_reach(struct flow *flow, int64_t leaf, flow_step *then)
{
    struct job_work *work = flow->state;
    work->loaded = then;
    if (work->job.total >= 0 || leaf < work->job.leaves)
        then(flow);
    else
        flow_call(
            flow, reached, "UpdateItem",
            "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #reach = :leaf',"
            "'ConditionExpression':'#run = :run and attribute_not_exists(#leaves) and "
            "(attribute_not_exists(#reach) or #reach < "
            ":leaf)',%#,'ExpressionAttributeValues':{':leaf':%N,':run':%S},%O}",
            &job_table, work->id, leaf, work->job.run);
}

struct slice job_end(struct flow *flow, enum job_state state, struct slice told, struct slice *values)
{
    const struct job_work *work = flow->state;
    bool is_listed = state != JOB_COMPLETE;
    int64_t keep_ms = work->job.keep_ms;
    *values = flow_compose(
        flow, ",':state':%S,':now':%S%r%r%r", job_state_name(state), moment_text(flow->arena, flow->now_ms),
        told.data ? flow_compose(flow, ",':told':%S", told) : SLICE(""),
        is_listed ? flow_compose(flow, ",':listed':%S", job_listed(flow, state)) : SLICE(""),
        keep_ms ? flow_compose(flow, ",':due':%N", flow->now_ms + keep_ms) : SLICE(""));
    return flow_compose(flow, " #state = :state, #closed = :now%r%r%r%r%r%r",
                        told.data ? SLICE(", #told = :told") : SLICE(""),
                        is_listed ? SLICE(", #listed = :listed") : SLICE(""),
                        keep_ms ? SLICE(", #due = :due") : SLICE(""),
                        is_listed && keep_ms ? SLICE("") : SLICE(" REMOVE "),
                        is_listed ? SLICE("")
                        : keep_ms ? SLICE("#listed")
                                  : SLICE("#listed, "),
                        keep_ms ? SLICE("") : SLICE("#slot, #due"));
}

int64_t job_opened_ms(struct slice run)
{
    unsigned long long ms;
    struct slice digits = {run.data, run.len < 13 ? run.len : 13};
    return slice_to_u64(digits, INT64_MAX, &ms) ? (int64_t)ms : 0;
}

int64_t job_heal_ms(const struct flow *flow, const struct job *job)
{
    int64_t age_ms = job->item.data ? flow->now_ms - job_opened_ms(job->run) : 0;
    int64_t due_ms = flow->now_ms + (age_ms > LOOK_AGAIN_MS ? age_ms : LOOK_AGAIN_MS);
    int64_t end_ms = job->deadline_ms + flow->world->skew_ms;
    return job->deadline_ms && end_ms < due_ms ? end_ms : due_ms;
}

bool job_is_over(const struct flow *flow, const struct job *job)
{
    return job->deadline_ms && flow->now_ms >= job->deadline_ms + flow->world->skew_ms;
}

/* ---- telling ---- */

static struct slice counts_text(struct flow *flow, int64_t missing)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    int64_t counted = item_int(flow->arena, job->item, "counted", -1);
    if (counted < 0 && job->state == JOB_COMPLETE) counted = job->total - job->failures;
    if (counted < 0 && missing >= 0 && job->named && !job->prepared) return SLICE("");
    struct slice about = counted < 0 && missing >= 0 && work->walk.at_least ? SLICE(",\"exact\":false") : SLICE("");
    if (counted < 0 && missing >= 0)
        counted = job->total < 0 || about.len ? work->walk.done : job->total - missing - job->failures;
    if (counted < 0) return SLICE("");
    if (job->total < 0) return flow_compose(flow, ",'done':%d%r", counted, about);
    return flow_compose(flow, ",'done':%d,'missing':%d%r", counted, job->total - counted - job->failures, about);
}

static struct slice moment_member(struct flow *flow, const char *name)
{
    const struct job_work *work = flow->state;
    struct slice text = item_text(flow->arena, work->job.item, name);
    return text.data ? flow_compose(flow, ",%s:%s", slice_of(name), text) : SLICE("");
}

struct slice job_describe(struct flow *flow, int64_t missing)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct slice tolerate = item_attribute(flow->arena, job->item, "tolerate");
    return flow_compose(
        flow, "{'id':%s,'state':%s%r%r,'failed':%d%r%r%r%r%r%r%r%r}", work->id, job_state_name(job->state),
        job->total < 0 ? SLICE("") : flow_compose(flow, ",'total':%d", job->total),
        counts_text(flow, missing), job->failures,
        job->first ? flow_compose(flow, ",'first':%d", job->first) : SLICE(""),
        job->fan == JOB_SET_MOST ? SLICE(",\"layout\":\"set\"") : SLICE(",\"layout\":\"tree\""),
        tolerate.data ? flow_compose(flow, ",'tolerate':%P", tolerate) : SLICE(""),
        job->deadline_ms ? flow_compose(flow, ",'deadline':%s", moment_text(flow->arena, job->deadline_ms))
                         : SLICE(""),
        job->keep_ms ? flow_compose(flow, ",'keep':%s", duration_text(flow->arena, job->keep_ms)) : SLICE(""),
        flow_then_member(flow, job->item), moment_member(flow, "opened"), moment_member(flow, "closed"));
}

void job_tell(struct flow *flow, int status, int64_t missing)
{
    flow_answer(flow, status, "%r", job_describe(flow, missing));
}

/* ---- GET ---- */

enum { GET_WAIT = JOB_ID + 1, GET_PROGRESS, GET_EXACT };

static const struct field get_fields[] = {
    FIELD_JOB_ID,
    [GET_WAIT] = {"wait", IN_QUERY, FIELD_DURATION, .max = JOB_WAIT_MS, .help = "wait so long for its end"},
    [GET_PROGRESS] = {"progress", IN_QUERY, FIELD_BOOL,
                      .help = "how many are done, of a large job at least (\"exact\": false); small jobs always tell"},
    [GET_EXACT] = {"exact", IN_QUERY, FIELD_BOOL,
                   .help = "count what is done, which reads 1 KB for 256 tasks that are not done"},
};

struct get {
    int64_t until_ms;
    bool healed;
};

static flow_step get_loaded;

static void get_ask(struct flow *flow)
{
    job_load(flow, true, get_loaded);
}

static void get_look(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct get *get = work->own;
    get->healed = false;
    flow_look(flow);
    get_ask(flow);
}

static void get_again(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct get *get = work->own;
    get->healed = true;
    get_ask(flow);
}

static void get_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct get *get = work->own;
    const struct job *job = &work->job;
    bool is_open = job->state == JOB_OPEN || job->state == JOB_CLOSING;
    bool counts = (is_open || job->state == JOB_FAILED) &&
                  (flow_int(flow, GET_PROGRESS) || flow_int(flow, GET_EXACT) || job->leaves <= JOB_FEW);
    if (!job->item.data || job->state == JOB_DELETING) {
        job_refuse_unknown(flow);
    } else if (is_open && !get->healed && job_is_over(flow, job)) {
        job_expire(flow, get_again);
    } else if (counts && !get->healed && flow_int(flow, GET_EXACT)) {
        job_heal(flow, get_again);
    } else if (counts && !get->healed) {
        job_count(flow, get_again);
    } else if (is_open && flow->now_ms < get->until_ms) {
        job_news_watch(flow, job_topic(work->id), get->until_ms, get_look);
    } else {
        job_tell(flow, 200, counts ? work->walk.missing : -1);
    }
}

static void get_begin(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct get *get = work->own = arena_new(flow->arena, struct get);
    get->until_ms = flow->now_ms + flow_int_or(flow, GET_WAIT, 0);
    get_look(flow);
}

/* ---- the unfinished ones ---- */

enum { LIST_STATE, LIST_OLDER, LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    [LIST_STATE] = {"state", IN_QUERY, FIELD_CHOICE, .words = "open|failed|expired",
                    .help = "only these (default: open)"},
    [LIST_OLDER] = {"older", IN_QUERY, FIELD_DURATION, .max = JOB_LONG_MS,
                    .help = "only those opened before that"},
    [LIST_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                    .help = "at most so many (default: 100)"},
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .help = "the \"next\" of the page before"},
};

static flow_step list_slot, list_taken;

static const enum job_state list_states[] = {JOB_OPEN, JOB_FAILED, JOB_EXPIRED};

static void list_begin(struct flow *flow)
{
    flow->state = listing_new(flow, flow_int_or(flow, LIST_LIMIT, LIST_USUAL));
    list_slot(flow);
}

static void list_slot(struct flow *flow)
{
    const struct listing *list = flow->state;
    int64_t before_ms = flow->now_ms - flow_int(flow, LIST_OLDER) + 1;
    struct slice state = job_state_name(list_states[flow_int(flow, LIST_STATE)]);
    flow_call(
        flow, list_taken, "Query",
        "{'TableName':%T,'IndexName':'unfinished','KeyConditionExpression':'#listed = :listed and #run "
        "between :after and :before',%#,'ExpressionAttributeValues':{':listed':{'S':'%r/%d'},':after':%S,"
        "':before':{'S':'%d'}},'Limit':%d}",
        &job_table, state, (int64_t)list->slot,
        flow_given(flow, LIST_AFTER) ? flow_text(flow, LIST_AFTER) : SLICE("0"), before_ms, list->most + 2);
}

static void list_answer(struct flow *flow)
{
    const struct listing *list = flow->state;
    struct slice state = job_state_name(list_states[flow_int(flow, LIST_STATE)]);
    buf_text(flow->body, "{\"jobs\":[");
    for (int64_t i = 0; i < list->count; i++)
        buf_slice(flow->body,
                  flow_compose(flow, "%r{'id':%s,'state':%s,'opened':%s}", i ? SLICE(",") : SLICE(""),
                               item_text(flow->arena, list->entries[i].item, "id"), state,
                               moment_text(flow->arena, job_opened_ms(list->entries[i].order))));
    listing_finish(flow, list);
}

static void list_taken(struct flow *flow)
{
    struct listing *list = flow->state;
    listing_take(flow, list, "run", flow_text(flow, LIST_AFTER));
    if (++list->slot < JOB_SLOTS)
        list_slot(flow);
    else
        list_answer(flow);
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
    {"GET", "/v1/jobs/{id}", get_begin, "A job, perhaps after waiting for its end.", FIELDS(get_fields), JOB,
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
    {"POST", "/v1/jobs/{id}/redrive", job_redrive, "Makes failed tasks missing again, and the job OPEN.",
     FIELDS(job_redrive_fields), "{'redriven':[17],'state':'OPEN'}", "job redrive"},
    {"GET", "/v1/jobs", list_begin, "Unfinished jobs, the oldest first; no table is scanned.", FIELDS(list_fields),
     "{'jobs':[{'id':'doc3','state':'OPEN','opened':'2026-11-15T03:42:06.250Z'}]}", "job ls -> jobs"},
};
/* clang-format on */
ROW_COUNT(job);
