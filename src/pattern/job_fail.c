/* Jobs: tasks that have failed. The tables and what holds for them: job.c.
 *
 * A failure is counted by its leaf, and told to the branch and the head: the one too many makes the job FAILED. The
 * tasks of a FAILED job still are counted, so that only the failed ones need be done again. */
#include "pattern/job.h"
#include "pattern/job_meter.h"
#include "pattern/rows.h"

#define REASON_BYTES 4096

enum { FAIL_TASK = JOB_ID + 1, FAIL_REASON, FAIL_KEY };

const struct field job_failed_fields[] = {
    FIELD_JOB_ID,
    [FAIL_TASK] = {"task", IN_BODY, FIELD_JSON, true, .help = "its number, from 0 on, or its name"},
    [FAIL_REASON] = {"reason", IN_BODY, FIELD_TEXT, .max = REASON_BYTES, .help = "what went wrong"},
    [FAIL_KEY] = FIELD_REPEATS(
        "tells callers apart that tell of the same task; without it, they are one caller"),
};

static _Noreturn void refuse_outside(struct flow *flow)
{
    task_refuse(flow, 400, "task-outside", "The task is not one of the job's.");
}

#define NOT_YET LEAF_UNCLOSED " and not contains(#done, :task) and not contains(#failed, :task)"

/* The reason first, so that whoever sees the task failed finds it; then the leaf, if the task is neither done nor
 * failed. */
static bool fail_write(struct flow *flow, struct leaf *leaf, int64_t offset)
{
    const struct job *job = flow->state;
    bool is_named = job->named;
    struct slice task = is_named ? flow_compose(flow, "%S", leaf->names[offset])
                                 : flow_compose(flow, "%N", offset);
    edit_item(flow, &job_parts_table, job_task_key(flow, leaf, offset), SLICE("SET #reason = :reason"),
              SLICE_NONE, "':reason':%S", flow_text_or(flow, FAIL_REASON, SLICE("no reason given")));
    if (!edit_item(flow, &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf->index),
                   is_named ? SLICE("SET #failed_once = :true ADD #failed :tasks DELETE #waiting :tasks")
                            : SLICE("SET #failed_once = :true ADD #failed :tasks"),
                   is_named ? SLICE(NOT_YET " and contains(#waiting, :task)") : SLICE(NOT_YET),
                   "':true':{'BOOL':true},':task':%A,':tasks':%A,':revived':%N", task,
                   job_leaf_set(flow, leaf, &offset, 1), job->revived_ms))
        return false;
    leaf->there = leaf->failed_once = true;
    job_leaf_mark(leaf, offset, LEAF_FAILED);
    return true;
}

void job_failed(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct leaf leaf;
    int64_t number, offset, counted = 0;
    struct slice name = job_task_sent(flow, flow_text(flow, FAIL_TASK), &number);
    job->caller = flow_text_or(flow, FAIL_KEY, job_caller(flow, "failed", name, number));
    for (job_recall(flow);; job_load(flow)) {
        int64_t place = number - job->first;
        bool is_over = job->state == JOB_OPEN && job_is_closing(flow, job);
        bool takes = !is_over &&
                     (job->state == JOB_OPEN || job->state == JOB_FAILED || job->state == JOB_COMPLETE);
        bool is_task = job->named == (name.data != NULL) &&
                       (job->named || (place >= 0 && place < (job->total < 0 ? JOB_TASKS_MOST : job->total)));
        if (!job->is_fresh && (!takes || !is_task || job->state == JOB_COMPLETE)) continue;
        if (!job->item.data) job_refuse_unknown(flow);
        if (!is_task) refuse_outside(flow);
        if (!takes) job_refuse_closed(flow);
        int64_t index = job->named ? job_leaf_of_name(job, name) : place / job->fan;
        job_reach(flow, index);
        job_leaf_load(flow, index, &leaf);
        offset = job->named ? job_leaf_find(&leaf, name) : place - index * job->fan;
        bool is_outside = offset < 0 || offset >= leaf.count;
        if (!job->is_fresh && (!leaf.there || leaf.closed || is_outside))
            continue; /* the head may be another */
        if (is_outside) refuse_outside(flow);
        if (leaf.closed) job_refuse_closed(flow);
        if (leaf.marks[offset]) break; /* as in every COMPLETE job */
        counted = fail_write(flow, &leaf, offset);
        job_meters_count(flow->world->job_meters, job->id, job->total, 0, counted);
        if (counted) break;
        task_again(flow); /* the leaf has changed */
    }
    if (job->state == JOB_COMPLETE)
        job_claim(flow);
    else if (leaf.failed_once || job_leaf_is_full(job, &leaf))
        job_propagate(flow, &leaf, true);
    if (!job->is_fresh) job_load(flow);
    flow_answer(flow, 200,
                "{'counted':%d,'state':%s,'failed':%d,'complete':%b,'last':%b%[%?,'wasDone':true%]}", counted,
                job_state_name(job->state), job->failures, job->state == JOB_COMPLETE, job->is_last,
                leaf.marks[offset] & LEAF_DONE);
}
