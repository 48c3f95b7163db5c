/* Jobs: tasks that have failed, and failed tasks that are tried again. The tables and what holds for them:
 * job.c.
 *
 * A failure is counted in the leaf and in the head by one transaction, so the head always knows how many
 * there are: the one too many makes the job FAILED by the same write. The first of a leaf is told to its branch, too,
 * so that whoever looks for failures reads the leaves that have some. The tasks of a FAILED job still are
 * counted, so that only the failed ones need be done again. */
#include "pattern/job.h"
#include "pattern/rows.h"

#define REASON_BYTES 4096
#define NAME_BYTES   200

enum { FAIL_TASK = JOB_ID + 1, FAIL_REASON, FAIL_KEY };

const struct field job_failed_fields[] = {
    FIELD_JOB_ID,
    [FAIL_TASK] = {"task", IN_BODY, FIELD_JSON, true, .help = "its number, from 0 on, or its name"},
    [FAIL_REASON] = {"reason", IN_BODY, FIELD_TEXT, .max = REASON_BYTES, .help = "what went wrong"},
    [FAIL_KEY] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                  .help = "tells callers apart that tell of the same task; without it, they are one caller"},
};

struct fail {
    struct slice name;
    int64_t number; /* as it was sent */
    struct leaf leaf;
    int64_t offset;
    int64_t counted;
};

static flow_step fail_load, fail_loaded, fail_find, fail_found, fail_written, fail_again, fail_end;

void job_failed(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct fail *fail = work->own = arena_new(flow->arena, struct fail);
    struct slice value = flow_text(flow, FAIL_TASK);
    if (raw_kind(value) == JSON_STRING) fail->name = raw_text(flow->arena, value);
    bool is_name = fail->name.len && fail->name.len <= NAME_BYTES;
    if (!is_name && (raw_kind(value) != JSON_NUMBER || !raw_int(value, &fail->number))) {
        flow_refuse(flow, 400, "bad-request", "A task is a whole number, or a name of 1 to %d bytes.",
                    NAME_BYTES);
        return;
    }
    work->me = flow_given(flow, FAIL_KEY) ? flow_text(flow, FAIL_KEY)
                                          : job_caller(flow, "failed", fail->name, fail->number);
    fail_load(flow);
}

static void fail_load(struct flow *flow)
{
    job_load(flow, true, fail_loaded);
}

static void refuse_outside(struct flow *flow)
{
    flow_refuse(flow, 400, "task-outside", "The task is not one of the job's.");
}

static void fail_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct fail *fail = work->own;
    const struct job *job = &work->job;
    int64_t number = fail->number - job->first;
    bool over = job->state == JOB_OPEN && job->deadline_ms && flow->now_ms >= job->deadline_ms;
    if (!job->item.data) {
        job_refuse_unknown(flow);
        return;
    }
    if (job->named != (fail->name.data != NULL) ||
        (!job->named && (number < 0 || number >= (job->total < 0 ? JOB_TASKS_MOST : job->total)))) {
        refuse_outside(flow);
        return;
    }
    if (over || (job->state != JOB_OPEN && job->state != JOB_FAILED && job->state != JOB_COMPLETE)) {
        job_refuse_closed(flow);
        return;
    }
    int64_t leaf = job->named ? job_leaf_of_name(job, fail->name) : number / job->fan;
    fail->offset = number - leaf * job->fan;
    fail->leaf.index = leaf;
    job_reach(flow, leaf, fail_find);
}

static void fail_find(struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct fail *fail = work->own;
    flow_call(flow, fail_found, "GetItem", "{'TableName':%T,'Key':%A,'ConsistentRead':true}",
              &job_parts_table, job_part_key(flow, 0, fail->leaf.index));
}

/* The write to the head: below the limit, at it, or the job is FAILED already. Each only where that is so. */
static struct slice head_update(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    int64_t most = job_tolerated(flow, job);
    bool fails = job->state == JOB_OPEN && job->failures >= most;
    struct slice values = SLICE(""), ending = SLICE(""), condition = SLICE("#state = :was");
    if (fails) ending = flow_compose(flow, "SET%r ", job_end(flow, JOB_FAILED, SLICE_NONE, &values));
    if (job->state == JOB_OPEN)
        condition = fails ? SLICE("#state = :was and #failures >= :most")
                          : SLICE("#state = :was and #failures < :most");
    return flow_compose(
        flow,
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'%rADD #failures :one',"
        "'ConditionExpression':'#run = :run and %r',%#,'ExpressionAttributeValues':{':one':{'N':'1'},"
        "':run':%S,':was':%S%r%r},%O}",
        &job_table, work->id, ending, condition, job->run, job_state_name(job->state),
        job->state == JOB_OPEN ? flow_compose(flow, ",':most':%N", most) : SLICE(""), values);
}

static struct slice leaf_update(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct fail *fail = work->own;
    bool named = work->job.named;
    struct slice since, unclosed = job_leaf_unclosed(flow, &since);
    bool is_first = !fail->leaf.failed_set.data;
    struct slice element = named ? flow_compose(flow, "%S", fail->name)
                                 : flow_compose(flow, "%N", fail->offset);
    return flow_compose(
        flow,
        "{'TableName':%T,'Key':%A,'UpdateExpression':'%r ADD #failed :tasks%r',"
        "'ConditionExpression':'%r and not contains(#done, :task) and not contains(#failed, :task)%r%r',%#,"
        "'ExpressionAttributeValues':{':task':%A,':tasks':%A%r%A},%O}",
        &job_parts_table, job_part_key(flow, 0, fail->leaf.index),
        named ? SLICE("") : SLICE("SET #wanted = if_not_exists(#wanted, :wanted)"),
        named ? SLICE(" DELETE #waiting :tasks") : SLICE(""), unclosed,
        named ? SLICE(" and contains(#waiting, :task)") : SLICE(""),
        is_first ? SLICE("") : SLICE(" and attribute_exists(#failed)"), element,
        job_leaf_set(flow, &fail->leaf, &fail->offset, 1),
        named ? SLICE("")
              : flow_compose(flow, ",':wanted':%N", job_leaf_wanted(&work->job, fail->leaf.index)),
        since);
}

static struct slice branch_update(struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct fail *fail = work->own;
    if (fail->leaf.failed_set.data) return SLICE(""); /* which the leaf's write is conditional on */
    return flow_compose(flow,
                        ",{'Update':{'TableName':%T,'Key':%A,'UpdateExpression':'ADD #failing :leaf',%#,"
                        "'ExpressionAttributeValues':{':leaf':%A}}}",
                        &job_parts_table, job_part_key(flow, 1, fail->leaf.index / JOB_FAN),
                        job_number_set(flow, &fail->leaf.index, 1));
}

/* By the leaf as it is: counted before, outside, or to be counted. */
static void fail_found(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct fail *fail = work->own;
    job_leaf_read(flow, fail->leaf.index, flow_item(flow), &fail->leaf);
    if (work->job.named) fail->offset = job_leaf_find(&fail->leaf, fail->name);
    if (fail->offset < 0 || fail->offset >= fail->leaf.count) {
        refuse_outside(flow);
    } else if (fail->leaf.closed) {
        job_refuse_closed(flow);
    } else if (fail->leaf.marks[fail->offset]) { /* as in every COMPLETE job */
        job_climb(flow, &fail->leaf, true, fail_end);
    } else {
        struct slice reason = flow_given(flow, FAIL_REASON) ? flow_text(flow, FAIL_REASON)
                                                            : SLICE("no reason given");
        struct slice note = flow_compose(flow,
                                         "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #reason = "
                                         ":reason',%#,'ExpressionAttributeValues':{':reason':%S}}",
                                         &job_parts_table, job_task_key(flow, &fail->leaf, fail->offset),
                                         reason);
        flow_call(flow, fail_written, "TransactWriteItems",
                  "{'TransactItems':[{'Update':%A},{'Update':%A},{'Update':%A}%A]}", leaf_update(flow),
                  head_update(flow), note, branch_update(flow));
    }
}

static void fail_again(struct flow *flow)
{
    fail_load(flow);
}

static void fail_written(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct fail *fail = work->own;
    if (flow_failed(flow)) { /* the leaf or the head has changed: look again */
        flow_again(flow, fail_again);
        return;
    }
    fail->counted = 1;
    fail->leaf.there = true;
    fail->leaf.marks[fail->offset] = LEAF_FAILED;
    job_leaf_count(&fail->leaf);
    flow_wake(flow, job_topic(work->id));
    flow_wake(flow, flow_topic("job progress", work->id, SLICE("")));
    job_climb(flow, &fail->leaf, true, fail_end);
}

static void fail_tell(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct fail *fail = work->own;
    bool is_done = fail->leaf.marks[fail->offset] & LEAF_DONE;
    flow_answer(flow, 200, "{'counted':%d,'state':%s,'failed':%d,'complete':%b,'last':%b%r}", fail->counted,
                job_state_name(work->job.state), work->job.failures, (int)(work->job.state == JOB_COMPLETE),
                (int)work->last, is_done ? SLICE(",\"wasDone\":true") : SLICE(""));
}

static void fail_end(struct flow *flow)
{
    job_load(flow, true, fail_tell);
}
