/* Jobs: deletion, and the sweep that does by itself what is due: deadlines, healing of jobs that stay open, deletions
 * that were interrupted or whose time has come. The tables and what holds for them: job.c.
 *
 * A job that is deleted is DELETING first, so that nobody opens another of its id before all its parts are
 * gone. */
#include "pattern/job.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define SWEEP_MS 2000

static void part_delete(struct flow *flow, int level, int64_t index)
{
    struct slice key = job_part_key(flow, level, index);
    do {
        task_query(flow, "#part = :part", ",'ProjectionExpression':'#part, #task','Limit':%d" READ_FRESH,
                   "':part':%A", &job_parts_table, (int64_t)SWEEP_REMOVED,
                   item_attribute(flow->arena, key, "part"));
    } while (delete_listed(flow, &job_parts_table));
}

/* All parts of a job that is DELETING, then its head. */
static void parts_delete(struct flow *flow)
{
    struct job *job = flow->state;
    int64_t reached = item_int(flow->arena, job->item, "reach", -1) +
                      1; /* its total may have come out smaller */
    for (int64_t i = 0; i < (job->leaves > reached ? job->leaves : reached); i++)
        part_delete(flow, LEVEL_LEAF, i);
    for (int64_t i = 0; i < job->branches; i++) part_delete(flow, LEVEL_BRANCH, i);
    for (int64_t i = 0; i < job_tallies(job); i++) part_delete(flow, LEVEL_TALLY, i);
    if (job->has_items) job_items_remove(flow);
    task_delete(flow, "#run = :run", "':run':%S", &job_table, job_key(flow), job->run);
    job_forget(flow);
    flow_wake(flow, job_topic(job->id));
}

void job_delete(struct flow *flow)
{
    job_new(flow, flow_text(flow, JOB_ID));
    if (!JOB_EDIT(flow, "SET #state = :deleting, #slot = :slot, #due = :now REMOVE #listed, #then",
                  "attribute_exists(#id)", "':deleting':{'S':'DELETING'},':slot':%S,':now':%N",
                  job_slot(flow), flow->now_ms))
        job_refuse_unknown(flow);
    job_take(flow, flow_item(flow));
    parts_delete(flow);
    flow_answer(flow, 200, "{'deleted':true}");
}

/* ---- the sweep ---- */

static void sweep_one(struct flow *flow)
{
    struct job *job = flow->state;
    job_load(flow);
    if (!job->item.data || item_int(flow->arena, job->item, "due", INT64_MAX) > flow->now_ms) return;
    if (job->state == JOB_CLOSING || (job->state == JOB_OPEN && job_is_over(flow, job))) {
        job_expire(flow);
    } else if (job->state == JOB_OPEN) {
        job_heal(flow);
        job_each_follow(flow, false);
        if (job->state != JOB_OPEN) return;
        JOB_EDIT(flow, "SET #due = :due", "#run = :run and #state = :open and #due <= :now",
                 "':due':%N,':run':%S,':open':{'S':'OPEN'},':now':%N", job_due_ms(flow, job), job->run,
                 flow->now_ms);
    } else if (job->state == JOB_DELETING ||
               JOB_EDIT(flow, "SET #state = :deleting REMOVE #listed, #then",
                        "#run = :run and #state = :state and #due <= :now",
                        "':deleting':{'S':'DELETING'},':run':%S,':state':%S,':now':%N", job->run,
                        job_state_name(job->state), flow->now_ms)) {
        parts_delete(flow);
    }
}

static void sweep_jobs(struct flow *flow)
{
    struct job *job = job_new(flow, SLICE(""));
    struct due_walk walk = due_begin(flow, &job_table, &job_slots);
    struct slice entry;
    while (due_next(flow, &walk, &entry)) {
        job->id = item_text(flow->arena, entry, "id");
        sweep_one(flow);
    }
    flow_finish(flow, 200);
}

const struct flow_sweep job_sweep = {"jobs", SWEEP_MS, sweep_jobs};
