/* Jobs: deletion, and the sweep that does by itself what is due: deadlines, another look at jobs that stay
 * open, deletions that were interrupted or whose time has come. The tables and what holds for them: job.c.
 *
 * A job that is deleted is DELETING first, so that nobody opens another of its id before all its parts are
 * gone. */
#include "pattern/job.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS 2000

/* ---- deleting ---- */

struct removal {
    int64_t at; /* the next leaf, and behind those, branch, and tally */
    flow_step *then;
    void *own; /* of the route, which gets it back */
};

static flow_step remove_part, remove_listed, remove_ended;

static void job_remove(struct flow *flow, flow_step *then)
{
    struct job_work *work = flow->state;
    struct removal *removal = arena_new(flow->arena, struct removal);
    removal->then = then;
    removal->own = work->own;
    work->own = removal;
    remove_part(flow);
}

static void remove_part(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct removal *removal = work->own;
    const struct job *job = &work->job;
    int64_t level = (removal->at >= job->leaves) + (removal->at >= job->leaves + job->branches);
    if (removal->at == job->leaves + job->branches + job_tallies(job)) {
        flow_call(flow, remove_ended, "DeleteItem",
                  "{'TableName':%T,'Key':{'id':%S},'ConditionExpression':'#run = :run',%#,"
                  "'ExpressionAttributeValues':{':run':%S}}",
                  &job_table, work->id, job->run);
        return;
    }
    int64_t before = (level > 0 ? job->leaves : 0) + (level > 1 ? job->branches : 0);
    struct slice key = job_part_key(flow, (int)level, removal->at - before);
    flow_call(
        flow, remove_listed, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#part = :part','ProjectionExpression':'#part, #task',%#,"
        "'ExpressionAttributeValues':{':part':%A},'ConsistentRead':true,'Limit':%d}",
        &job_parts_table, item_attribute(flow->arena, key, "part"), (int64_t)SWEEP_REMOVED);
}

/* Until nothing is listed any more. */
static void remove_listed(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct removal *removal = work->own;
    if (sweep_remove_listed(flow, &job_parts_table, remove_part)) return;
    removal->at++;
    remove_part(flow);
}

static void remove_ended(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct removal *removal = work->own;
    work->own = removal->own;
    flow_wake(flow, job_topic(work->id));
    removal->then(flow);
}

/* ---- DELETE ---- */

static void delete_done(struct flow *flow)
{
    flow_answer(flow, 200, "{'deleted':true}");
}

static void delete_marked(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (flow_failed(flow)) {
        job_refuse_unknown(flow);
        return;
    }
    job_read(flow, flow_item(flow), &work->job);
    job_remove(flow, delete_done);
}

void job_delete(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    flow_call(
        flow, delete_marked, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #state = :deleting, #slot = :slot, #due = "
        ":now REMOVE #listed, #then','ConditionExpression':'attribute_exists(#id)',%#,"
        "'ExpressionAttributeValues':{':deleting':{'S':'DELETING'},':slot':%S,':now':%N},"
        "'ReturnValues':'ALL_NEW'}",
        &job_table, work->id, job_slot(flow), flow->now_ms);
}

/* ---- the sweep ---- */

static flow_step sweep_loaded, sweep_healed, sweep_marked;

static void sweep_each(struct flow *flow)
{
    struct job_work *work = flow->state;
    work->id = item_text(flow->arena, sweep_entry(flow), "id");
    job_load(flow, true, sweep_loaded);
}

static void sweep_begin(struct flow *flow)
{
    static const struct sweep_plan plan = {&job_table, JOB_SLOTS, sweep_each};
    job_work_new(flow, SLICE(""));
    sweep_over(flow, &plan);
}

static void sweep_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    bool is_due = item_int(flow->arena, job->item, "due", INT64_MAX) <= flow->now_ms;
    if (!job->item.data || !is_due)
        sweep_next(flow);
    else if (job->state == JOB_CLOSING || (job->state == JOB_OPEN && job_is_over(flow, job)))
        job_expire(flow, sweep_next);
    else if (job->state == JOB_OPEN)
        job_heal(flow, sweep_healed);
    else if (job->state == JOB_DELETING)
        job_remove(flow, sweep_next);
    else
        flow_call(
            flow, sweep_marked, "UpdateItem",
            "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #state = :deleting REMOVE #listed, "
            "#then','ConditionExpression':'#run = :run and #state = :state and #due <= :now',%#,"
            "'ExpressionAttributeValues':{':deleting':{'S':'DELETING'},':run':%S,':state':%S,':now':%N}}",
            &job_table, work->id, job->run, job_state_name(job->state), flow->now_ms);
}

static void sweep_marked(struct flow *flow)
{
    if (flow_failed(flow))
        sweep_next(flow);
    else
        job_remove(flow, sweep_next);
}

/* Later again, at twice its age. */
static void sweep_healed(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (work->job.state == JOB_OPEN)
        flow_call(
            flow, sweep_next, "UpdateItem",
            "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #due = :due',"
            "'ConditionExpression':'#run = :run and #state = :open and #due <= :now',%#,"
            "'ExpressionAttributeValues':{':due':%N,':run':%S,':open':{'S':'OPEN'},':now':%N}}",
            &job_table, work->id, job_heal_ms(flow, &work->job), work->job.run, flow->now_ms);
    else
        sweep_next(flow);
}

const struct flow_sweep job_sweep = {"jobs", SWEEP_MS, sweep_begin, true};
