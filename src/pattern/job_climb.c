/* Jobs: the way up from a full leaf to the end of the job. The tables and what holds for them: job.c.
 *
 * Any flow may go it at any time, as often as it likes, from any leaf that it saw full. A leaf whose tasks
 * are all done and that cannot grow stays full for ever: its branch is told so without looking again. */
#include "pattern/job.h"

#define ABSOLVED 50 /* at once: a condition holds at most 300 operators */

static flow_step leaf_absolved, leaf_ask, leaf_seen, leaf_decide, branch_told, branch_ask, branch_seen,
    head_ask, head_seen, head_told, claimed;

/* ---- failed ones that are done ---- */

/* They cease to be failed, and the head counts them no more, in one transaction. */
static void leaf_absolve(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct leaf *leaf = &work->climb.leaf;
    struct buf condition = {0}, values = {0};
    int64_t offsets[ABSOLVED];
    size_t count = 0;
    for (int64_t i = 0; i < leaf->count && count < ABSOLVED; i++) {
        if (leaf->marks[i] != (LEAF_DONE | LEAF_FAILED)) continue;
        struct slice element = leaf->names ? flow_compose(flow, "%S", leaf->names[i])
                                           : flow_compose(flow, "%N", i);
        buf_printf(&condition, "%scontains(#failed, :f%zu)", count ? " and " : "", count);
        buf_printf(&values, ",\":f%zu\":%.*s", count, SLICE_ARG(element));
        offsets[count++] = i;
    }
    struct slice update = flow_compose(
        flow,
        "{'TableName':%T,'Key':%A,'UpdateExpression':'DELETE #failed :gone','ConditionExpression':'%r',%#,"
        "'ExpressionAttributeValues':{':gone':%A%A}}",
        &job_parts_table, job_part_key(flow, 0, leaf->index), buf_view(&condition),
        job_leaf_set(flow, leaf, offsets, count), buf_view(&values));
    flow_call(
        flow, leaf_absolved, "TransactWriteItems",
        "{'TransactItems':[{'Update':%A},{'Update':{'TableName':%T,'Key':{'id':%S},"
        "'UpdateExpression':'ADD #failures :fewer','ConditionExpression':'#run = :run and #state in (:open, "
        ":failed)',%#,"
        "'ExpressionAttributeValues':{':fewer':%N,':run':%S,':open':{'S':'OPEN'},':failed':{'S':'FAILED'}},"
        "%O}}]}",
        update, &job_table, work->id, -(int64_t)count, work->job.run);
    buf_free(&condition);
    buf_free(&values);
}

/* Whatever became of it, the leaf is looked at again; where the job has ended, nothing changes any more. */
static void leaf_absolved(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct slice head;
    if (flow_failed(flow) && flow_reason(flow, 1, &head))
        work->climb.then(flow);
    else
        leaf_ask(flow);
}

static void leaf_ask(struct flow *flow)
{
    const struct job_work *work = flow->state;
    flow_call(flow, leaf_seen, "GetItem", "{'TableName':%T,'Key':%A,'ConsistentRead':true}", &job_parts_table,
              job_part_key(flow, 0, work->climb.leaf.index));
}

static void leaf_seen(struct flow *flow)
{
    struct job_work *work = flow->state;
    job_leaf_read(flow, work->climb.leaf.index, flow_item(flow), &work->climb.leaf);
    leaf_decide(flow);
}

/* ---- from the leaf to its branch ---- */

static bool stays_full(const struct job *job, const struct leaf *leaf)
{
    return !job->named && leaf->wanted == JOB_FAN && leaf->done == JOB_FAN;
}

static struct slice branch_update(struct flow *flow, int64_t leaf)
{
    const struct job_work *work = flow->state;
    return flow_compose(flow,
                        "'TableName':%T,'Key':%A,'UpdateExpression':'SET #wanted = if_not_exists(#wanted, "
                        ":wanted) ADD #full :leaf',%#,'ExpressionAttributeValues':{':wanted':%N,':leaf':%A}",
                        &job_parts_table, job_part_key(flow, 1, work->climb.branch),
                        job_branch_wanted(&work->job, work->climb.branch), job_number_set(flow, &leaf, 1));
}

/* The leaf is as it was when it was seen full. */
static struct slice leaf_check(struct flow *flow)
{
    const struct job_work *work = flow->state;
    struct slice values, same = job_leaf_same(flow, &work->climb.leaf, &values);
    return flow_compose(
        flow, "{'TableName':%T,'Key':%A,'ConditionExpression':'%r',%#,'ExpressionAttributeValues':{%A}}",
        &job_parts_table, job_part_key(flow, 0, work->climb.leaf.index), same, values);
}

/* An only leaf goes up all the way at once. */
static void leaf_climb(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct leaf *leaf = &work->climb.leaf;
    work->climb.at_once = work->job.leaves == 1;
    if (work->climb.at_once)
        head_seen(flow);
    else if (stays_full(&work->job, leaf))
        flow_call(flow, branch_seen, "UpdateItem", "{%A,'ReturnValues':'ALL_NEW'}",
                  branch_update(flow, leaf->index));
    else
        flow_call(flow, branch_told, "TransactWriteItems",
                  "{'TransactItems':[{'ConditionCheck':%A},{'Update':{%A}}]}", leaf_check(flow),
                  branch_update(flow, leaf->index));
}

static void leaf_decide(struct flow *flow)
{
    struct job_work *work = flow->state;
    bool takes_failures = work->job.state == JOB_OPEN || work->job.state == JOB_FAILED;
    if (work->climb.leaf.both && takes_failures)
        leaf_absolve(flow);
    else if (work->climb.leaf.both || !job_leaf_is_full(&work->climb.leaf) || work->job.total < 0)
        work->climb.then(flow);
    else
        leaf_climb(flow);
}

void job_climb(struct flow *flow, const struct leaf *leaf, bool claims, flow_step *then)
{
    struct job_work *work = flow->state;
    work->climb.leaf = *leaf;
    work->climb.branch = leaf->index / JOB_FAN;
    work->climb.claims = claims;
    work->climb.then = then;
    leaf_decide(flow);
}

/* Where the leaf is not what it was, whoever changed it goes on from there. */
static void branch_told(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (flow_failed(flow))
        work->climb.then(flow);
    else
        branch_ask(flow);
}

static void branch_ask(struct flow *flow)
{
    const struct job_work *work = flow->state;
    flow_call(flow, branch_seen, "GetItem", "{'TableName':%T,'Key':%A,'ConsistentRead':true}",
              &job_parts_table, job_part_key(flow, 1, work->climb.branch));
}

void job_climb_branch(struct flow *flow, int64_t branch, flow_step *then)
{
    struct job_work *work = flow->state;
    work->climb.branch = branch;
    work->climb.claims = work->climb.at_once = false;
    work->climb.then = then;
    branch_ask(flow);
}

/* ---- from the branch to the head ---- */

bool job_branch_is_known(struct flow *flow, int64_t branch, int64_t *count)
{
    const struct job_work *work = flow->state;
    struct raw_look look;
    struct slice element;
    int64_t number;
    bool found = false;
    *count = 0;
    raw_look_begin(&look, flow->arena, item_content(flow->arena, work->job.item, "full"));
    while (raw_look_next(&look, NULL, &element)) {
        if (raw_int(raw_text(flow->arena, element), &number) && number == branch) found = true;
        (*count)++;
    }
    return found;
}

static void branch_seen(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct slice branch = flow_item(flow);
    work->climb.wanted = item_int(flow->arena, branch, "wanted", 0);
    size_t full = raw_count(flow->arena, item_content(flow->arena, branch, "full"));
    if (full && (int64_t)full == work->climb.wanted)
        head_seen(flow);
    else
        work->climb.then(flow);
}

static void head_ask(struct flow *flow)
{
    job_load(flow, true, head_seen);
}

/* What the head's write is made together with: the branch must be full, or an only leaf, which fills it. */
static struct slice head_checks(struct flow *flow)
{
    const struct job_work *work = flow->state;
    if (work->climb.at_once)
        return flow_compose(flow, "{'ConditionCheck':%A},{'Update':{%A}}", leaf_check(flow),
                            branch_update(flow, work->climb.leaf.index));
    return flow_compose(flow,
                        "{'ConditionCheck':{'TableName':%T,'Key':%A,"
                        "'ConditionExpression':'#wanted = :wanted and size(#full) = :wanted',%#,"
                        "'ExpressionAttributeValues':{':wanted':%N}}}",
                        &job_parts_table, job_part_key(flow, 1, work->climb.branch), work->climb.wanted);
}

static void head_write(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct slice values = SLICE(""), ending = SLICE(""),
                 seen = item_attribute(flow->arena, job->item, "full");
    work->climb.end = job->failures > job_tolerated(flow, job) ? JOB_FAILED : JOB_COMPLETE;
    struct slice told = work->climb.claims && work->climb.end == JOB_COMPLETE ? work->me : SLICE_NONE;
    if (work->climb.completes)
        ending = flow_compose(flow, "SET%r", job_end(flow, work->climb.end, told, &values));
    struct slice update = flow_compose(
        flow,
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'%r ADD #full :branch',"
        "'ConditionExpression':'#state = :open and #run = :run and #total = :total and #failures = :failures "
        "and %r',%#,"
        "'ExpressionAttributeValues':{':branch':%A,':open':{'S':'OPEN'},':run':%S,':total':%N,"
        "':failures':%N%A%A},%O}",
        &job_table, work->id, ending,
        seen.data ? SLICE("#full = :full") : SLICE("attribute_not_exists(#full)"),
        job_number_set(flow, &work->climb.branch, 1), job->run, job->total, job->failures,
        seen.data ? flow_compose(flow, ",':full':%A", seen) : SLICE(""), values);
    flow_call(flow, head_told, "TransactWriteItems", "{'TransactItems':[{'Update':%A},%A]}", update,
              head_checks(flow));
}

/* The head as it was read, perhaps long ago: where it is not so any more, the write fails and it is read
 * again. */
static void head_seen(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    int64_t count;
    bool known = job_branch_is_known(flow, work->climb.branch, &count);
    work->climb.completes = count + !known == job->branches;
    if (job->state == JOB_COMPLETE && work->climb.claims)
        job_claim(flow, work->climb.then);
    else if (job->state != JOB_OPEN && !work->fresh)
        head_ask(flow);
    else if (job->state != JOB_OPEN || (known && !work->climb.completes))
        work->climb.then(flow);
    else if (work->climb.at_once && job->leaves > 1)
        leaf_climb(flow); /* it has grown meanwhile */
    else
        head_write(flow);
}

static void head_told(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct slice head;
    if (flow_failed(flow) && flow_reason(flow, 0, &head)) {
        flow_again(flow, head_ask);
        return;
    }
    if (!flow_failed(flow) && work->climb.completes) { /* else the branch or leaf is not what it was */
        work->job.state = work->climb.end;
        work->last = work->climb.claims && work->climb.end == JOB_COMPLETE;
        flow_wake(flow, job_topic(work->id));
        flow_wake(flow, flow_topic("job progress", work->id, SLICE("")));
    }
    work->climb.then(flow);
}

/* ---- who is last ---- */

/* Where the job was completed by somebody who only looked at it, the first caller that comes is the last one.
 */
void job_claim(struct flow *flow, flow_step *then)
{
    struct job_work *work = flow->state;
    work->climb.then = then;
    if (slice_equal(work->job.told, work->me)) work->last = true;
    if (work->job.told.data) {
        then(flow);
        return;
    }
    flow_call(flow, claimed, "UpdateItem",
              "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #told = :me',"
              "'ConditionExpression':'#run = :run and #state = :complete and attribute_not_exists(#told)',%#,"
              "'ExpressionAttributeValues':{':me':%S,':run':%S,':complete':{'S':'COMPLETE'}},%O}",
              &job_table, work->id, work->me, work->job.run);
}

static void claimed(struct flow *flow)
{
    struct job_work *work = flow->state;
    work->last = !flow_failed(flow) || slice_equal(item_text(flow->arena, flow_item(flow), "told"), work->me);
    work->climb.then(flow);
}
