/* Jobs: what ends them but their last task, the deadline; and a new try of what failed. The tables and what
 * holds for them: job.c.
 *
 * A job whose deadline is over becomes CLOSING, which stops whatever would change it; then its leaves are
 * closed one by one, each telling what it had counted; then it is EXPIRED, or COMPLETE after all.
 *
 * Another deadline opens it again, by one write to the head. The leaves stay as they are: each has the deadline
 * that it was closed for, and the head tells that it was overcome (`revived`). So a write of a former expiry that
 * comes late closes nothing. */
#include "calendar/calendar.h"
#include "pattern/job.h"
#include "pattern/rows.h"

#define REDRIVEN_MOST    10000 /* tasks by one call */
#define LEAVES_LOOKED_AT 16    /* of a job where all are, also those that have no failures */

const struct field job_only_fields[] = {FIELD_JOB_ID};

/* ---- the deadline ---- */

/* Which leaves are to be closed, and what those that are had counted. */
struct expiry {
    int64_t *leaves;
    int64_t count, at, missing, done, both;
    flow_step *then;
    void *own; /* of the route, which gets it back */
};

static flow_step expire_marked, expire_leaf, expire_closed, expire_walked, expire_ended;

void job_expire(struct flow *flow, flow_step *then)
{
    struct job_work *work = flow->state;
    struct expiry *expiry = arena_new(flow->arena, struct expiry);
    expiry->then = then;
    expiry->own = work->own;
    work->own = expiry;
    flow_call(
        flow, expire_marked, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #state = :closing',"
        "'ConditionExpression':'#run = :run and (#state = :closing or (#state = :open and #deadline = "
        ":deadline))',%#,"
        "'ExpressionAttributeValues':{':closing':{'S':'CLOSING'},':open':{'S':'OPEN'},':run':%S,"
        "':deadline':%N},'ReturnValues':'ALL_NEW',%O}",
        &job_table, work->id, work->job.run, work->job.deadline_ms);
}

static void expire_leave(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct expiry *expiry = work->own;
    work->own = expiry->own;
    expiry->then(flow);
}

static void expire_marked(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct expiry *expiry = work->own;
    if (flow_failed(flow)) { /* it ended otherwise, or got more time */
        expire_leave(flow);
        return;
    }
    job_read(flow, flow_item(flow), &work->job);
    expiry->leaves = arena_array(flow->arena, int64_t, (size_t)work->job.leaves);
    job_walk(flow, 0, work->job.leaves, false, NULL, NULL, expire_walked);
}

/* Nobody can say how many tasks there are: the total was not told, or its leaves were not all written. */
static bool is_unknown(const struct job *job)
{
    return job->total < 0 || (job->named && !job->prepared);
}

/* All leaves but those that are known to be full and can change no more. */
static void expire_walked(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct expiry *expiry = work->own;
    for (int64_t i = 0; i < work->job.leaves; i++)
        if (!work->walk.marked[i] || is_unknown(&work->job)) expiry->leaves[expiry->count++] = i;
    expire_leaf(flow);
}

/* All are closed: nothing changes any more, and this is what there is. */
static void expire_end(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct expiry *expiry = work->own;
    const struct job *job = &work->job;
    struct slice values;
    int64_t failures = job->failures - expiry->both;
    int64_t counted = job->total < 0 ? expiry->done : job->total - expiry->missing - failures;
    bool is_partial = expiry->missing || job->total<0, fails = failures> job_tolerated(flow, job);
    enum job_state state = is_partial ? JOB_EXPIRED : fails ? JOB_FAILED : JOB_COMPLETE;
    struct slice ending = job_end(flow, state, SLICE_NONE, &values);
    flow_call(flow, expire_ended, "UpdateItem",
              "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #counted = :counted, #forgiven = :forgiven, "
              "#failures = :failures,%r',"
              "'ConditionExpression':'#run = :run and #state = :closing and #deadline = :deadline',%#,"
              "'ExpressionAttributeValues':{':counted':%N,':forgiven':%N,':failures':%N,':run':%S,"
              "':closing':{'S':'CLOSING'},':deadline':%N%A},%O}",
              &job_table, work->id, ending, counted, expiry->both, failures, job->run, job->deadline_ms, values);
}

static void expire_leaf(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct expiry *expiry = work->own;
    const struct job *job = &work->job;
    if (expiry->at < expiry->count) {
        int64_t leaf = expiry->leaves[expiry->at];
        flow_call(flow, expire_closed, "UpdateItem",
                  "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #closed = :deadline, #wanted = "
                  "if_not_exists(#wanted, :wanted)','ConditionExpression':'attribute_not_exists(#closed) or "
                  "#closed <= :deadline',%#,'ExpressionAttributeValues':{':deadline':%N,':wanted':%N},"
                  "'ReturnValues':'ALL_NEW',%O}",
                  &job_parts_table, job_part_key(flow, 0, leaf), job->deadline_ms,
                  job->named ? 0 : job_leaf_wanted(job, leaf));
        return;
    }
    expire_end(flow);
}

static void expire_closed(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct expiry *expiry = work->own;
    struct leaf leaf;
    if (flow_failed(flow)) { /* closed for a later deadline: this one was overcome */
        expire_leave(flow);
        return;
    }
    job_leaf_read(flow, expiry->leaves[expiry->at++], flow_item(flow), &leaf);
    expiry->missing += leaf.wanted - leaf.done - leaf.failed;
    expiry->done += leaf.done;
    expiry->both += leaf.both;
    expire_leaf(flow);
}

static void expire_ended(struct flow *flow)
{
    const struct job_work *work = flow->state;
    flow_wake(flow, job_topic(work->id));
    flow_wake(flow, flow_topic("job progress", work->id, SLICE("")));
    expire_leave(flow);
}

/* ---- another deadline ---- */

static void revived(struct flow *flow)
{
    struct job_work *work = flow->state;
    flow_step *then = work->loaded;
    if (!flow_failed(flow)) {
        flow_wake(flow, job_topic(work->id));
        flow_wake(flow, flow_topic("job progress", work->id, SLICE("")));
    }
    then(flow);
}

/* Failures that a done task had made up for were taken off when it ended; the leaves still have them. */
void job_revive(struct flow *flow, int64_t deadline_ms, flow_step *then)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct job next = *job;
    int64_t forgiven = item_int(flow->arena, job->item, "forgiven", 0);
    bool is_over = job->deadline_ms && flow->now_ms >= job->deadline_ms;
    next.deadline_ms = deadline_ms;
    work->loaded = then;
    flow_call(
        flow, revived, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #state = :open, #deadline = :deadline, #listed = "
        ":listed, #slot = :slot, #due = :due, #failures = #failures + :forgiven%r REMOVE #closed, #counted, "
        "#forgiven','ConditionExpression':'#run = :run and #state = :state and %r',%#,"
        "'ExpressionAttributeValues':{':open':{'S':'OPEN'},':deadline':%N,':listed':%S,':slot':%S,':due':%N,"
        "':forgiven':%N,':run':%S,':state':%S%r}}",
        &job_table, work->id, is_over ? SLICE(", #revived = :was") : SLICE(""),
        job->deadline_ms ? SLICE("#deadline = :was") : SLICE("attribute_not_exists(#deadline)"), deadline_ms,
        job_listed(flow, JOB_OPEN), job_slot(flow), job_heal_ms(flow, &next), forgiven, job->run,
        job_state_name(job->state),
        job->deadline_ms ? flow_compose(flow, ",':was':%N", job->deadline_ms) : SLICE(""));
}

/* ---- once more what failed ---- */

enum { REDRIVE_DEADLINE = JOB_ID + 1 };

const struct field job_redrive_fields[] = {
    FIELD_JOB_ID,
    [REDRIVE_DEADLINE] = {"deadline", IN_BODY, FIELD_DURATION, .min = 1, .max = JOB_LONG_MS,
                          .help = "another one, from now on; needed where the former is over"},
};

struct redrive {
    struct leaf *leaves; /* with failed tasks */
    int64_t count, at;
    struct slice told; /* the tasks, as they are told */
    int64_t tasks;
    bool has_deadline; /* the new one is set */
};

static flow_step redrive_loaded, redrive_revived, redrive_next, redrive_written, redrive_again,
    redrive_reopened, redrive_end, redrive_tell;

void job_redrive(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct redrive *redrive = work->own = arena_new(flow->arena, struct redrive);
    redrive->told = SLICE("");
    job_load(flow, true, redrive_loaded);
}

static void redrive_collect(struct flow *flow, const struct leaf *leaf)
{
    struct job_work *work = flow->state;
    struct redrive *redrive = work->own;
    if (leaf->failed && redrive->tasks < REDRIVEN_MOST) redrive->leaves[redrive->count++] = *leaf;
    redrive->tasks += leaf->failed;
}

static void refuse_over(struct flow *flow)
{
    const struct job_work *work = flow->state;
    flow_refuse_with(flow, flow_compose(flow, "'state':%s", job_state_name(work->job.state)), 409, "deadline-over",
                     "The deadline of the job was %.*s. Send another deadline.",
                     SLICE_ARG(moment_text(flow->arena, work->job.deadline_ms)));
}

static void redrive_revived(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct redrive *redrive = work->own;
    if (flow_failed(flow)) {
        flow_again(flow, redrive_again);
        return;
    }
    redrive->has_deadline = true;
    redrive_again(flow);
}

static void redrive_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct redrive *redrive = work->own;
    const struct job *job = &work->job;
    if (!job->item.data || job->state == JOB_DELETING) {
        job_refuse_unknown(flow);
    } else if (job->state == JOB_CLOSING) {
        job_expire(flow, redrive_again);
    } else if (job->state == JOB_COMPLETE) {
        job_refuse_closed(flow);
    } else if (flow_given(flow, REDRIVE_DEADLINE) && !redrive->has_deadline) {
        job_revive(flow, flow->now_ms + flow_int(flow, REDRIVE_DEADLINE), redrive_revived);
    } else if (job->state == JOB_EXPIRED || (job->deadline_ms && flow->now_ms >= job->deadline_ms)) {
        refuse_over(flow);
    } else {
        redrive->leaves = arena_array(flow->arena, struct leaf, (size_t)job->leaves);
        redrive->count = redrive->at = redrive->tasks = 0;
        if (job->failures)
            job_walk_failing(flow, 0, job->leaves, redrive_collect, NULL, redrive_next);
        else
            redrive_next(flow);
    }
}

/* The part of an update of the head that opens it again, and its values. */
static struct slice reopen(struct flow *flow, struct slice *values)
{
    const struct job_work *work = flow->state;
    *values = flow_compose(
        flow, "':state':{'S':'OPEN'},':run':%S,':failed':{'S':'FAILED'},':listed':%S,':slot':%S,':due':%N",
        work->job.run, job_listed(flow, JOB_OPEN), job_slot(flow), job_heal_ms(flow, &work->job));
    return SLICE("SET #state = :state, #listed = :listed, #slot = :slot, #due = :due REMOVE #closed");
}

static void redrive_write(struct flow *flow, const struct leaf *leaf)
{
    struct job_work *work = flow->state;
    int64_t *offsets = arena_array(flow->arena, int64_t, (size_t)leaf->count), branch = leaf->index / JOB_FAN;
    size_t count = 0;
    struct slice values, update = reopen(flow, &values);
    for (int64_t i = 0; i < leaf->count; i++)
        if (leaf->marks[i] == LEAF_FAILED) offsets[count++] = i;
    struct slice head = flow_compose(
        flow,
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'%r ADD #failures :fewer DELETE #full :branch',"
        "'ConditionExpression':'#run = :run and #state in (:state, :failed)',%#,"
        "'ExpressionAttributeValues':{%A,':fewer':%N,':branch':%A},%O}",
        &job_table, work->id, update, values, -(int64_t)count, job_number_set(flow, &branch, 1));
    struct slice part = flow_compose(flow,
                                     "{'TableName':%T,'Key':%A,'UpdateExpression':'DELETE #failed "
                                     ":tasks%r','ConditionExpression':'#failed = :seen',"
                                     "%#,'ExpressionAttributeValues':{':tasks':%A,':seen':%A}}",
                                     &job_parts_table, job_part_key(flow, 0, leaf->index),
                                     leaf->names ? SLICE(" ADD #waiting :tasks") : SLICE(""),
                                     job_leaf_set(flow, leaf, offsets, count), leaf->failed_set);
    struct slice above = flow_compose(flow,
                                      "{'TableName':%T,'Key':%A,'UpdateExpression':'DELETE #full "
                                      ":leaf, #failing :leaf',%#,'ExpressionAttributeValues':{':leaf':%A}}",
                                      &job_parts_table, job_part_key(flow, 1, branch),
                                      job_number_set(flow, &leaf->index, 1));
    flow_call(flow, redrive_written, "TransactWriteItems",
              "{'TransactItems':[{'Update':%A},{'Update':%A},{'Update':%A}]}", head, part, above);
}

static void redrive_next(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct redrive *redrive = work->own;
    if (redrive->at < redrive->count) {
        redrive_write(flow, &redrive->leaves[redrive->at]);
    } else if (work->job.state == JOB_FAILED) { /* those that failed may have been done since */
        struct slice values, update = reopen(flow, &values);
        flow_call(
            flow, redrive_reopened, "UpdateItem",
            "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'%r','ConditionExpression':'#run = :run and "
            "#state = :failed',%#,'ExpressionAttributeValues':{%A},%O}",
            &job_table, work->id, update, values);
    } else {
        redrive_reopened(flow);
    }
}

static void redrive_again(struct flow *flow)
{
    job_load(flow, true, redrive_loaded);
}

static void redrive_written(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct redrive *redrive = work->own;
    const struct leaf *leaf = &redrive->leaves[redrive->at];
    if (flow_failed(flow)) { /* something else became of it: look again */
        flow_again(flow, redrive_again);
        return;
    }
    for (int64_t i = 0; i < leaf->count; i++)
        if (leaf->marks[i] == LEAF_FAILED)
            redrive->told = flow_compose(flow, "%A%r%A", redrive->told,
                                         redrive->told.len ? SLICE(",") : SLICE(""),
                                         job_task_text(flow, leaf, i));
    work->job.state = JOB_OPEN;
    redrive->at++;
    redrive_next(flow);
}

static void redrive_reopened(struct flow *flow)
{
    job_load(flow, true, redrive_end);
}

/* Leaves told their branches while the job was FAILED, but these did not tell the head. What somebody left half
 * done in a large job is left to the sweep. */
static void redrive_end(struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct redrive *redrive = work->own;
    if (redrive->tasks && work->job.leaves > LEAVES_LOOKED_AT)
        job_heal_branches(flow, redrive_tell);
    else
        job_heal(flow, redrive_tell);
}

static void redrive_tell(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct redrive *redrive = work->own;
    flow_wake(flow, flow_topic("job progress", work->id, SLICE("")));
    flow_answer(flow, 200, "{'redriven':[%A],'state':%s}", redrive->told, job_state_name(work->job.state));
}
