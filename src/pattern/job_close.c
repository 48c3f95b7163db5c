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

#define REDRIVEN_MOST 10000 /* tasks by one call */

const struct field job_only_fields[] = {FIELD_JOB_ID};

/* ---- the deadline ---- */

/* Closes a leaf and counts it; false: it was closed for a later deadline, so this one was overcome. */
static bool leaf_close(struct flow *flow, struct leaf *leaf)
{
    const struct job_work *work = flow->state;
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #closed = :deadline','ConditionExpression':"
              "'attribute_not_exists(#closed) or #closed <= :deadline',%#,"
              "'ExpressionAttributeValues':{':deadline':%N},'ReturnValues':'ALL_NEW',%O}",
              &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf->index), work->job.deadline_ms);
    if (flow_failed(flow)) return false;
    job_leaf_read(flow, leaf->index, flow_item(flow), leaf);
    return true;
}

void job_expire(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct leaf leaf;
    struct branch branch;
    int64_t missing = 0, done = 0, final = 0;
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #state = :closing',"
              "'ConditionExpression':'#run = :run and (#state = :closing or (#state = :open and #deadline = "
              ":deadline))',%#,"
              "'ExpressionAttributeValues':{':closing':{'S':'CLOSING'},':open':{'S':'OPEN'},':run':%S,"
              "':deadline':%N},'ReturnValues':'ALL_NEW',%O}",
              &job_table, work->id, job->run, job->deadline_ms);
    if (flow_failed(flow)) return; /* it ended otherwise, or got more time */
    job_take(flow, flow_item(flow));
    int64_t deadline_ms = job->deadline_ms;
    /* All leaves but those that can change no more. */
    struct job_scan *scan = job_scan_begin(flow, 0, SCAN_NOT_FINAL);
    while (job_scan_next(flow, scan, &leaf)) {
        const struct leaf_entry *entry = &scan->entries[leaf.index];
        if (job->state != JOB_CLOSING || job->deadline_ms != deadline_ms || !leaf_close(flow, &leaf)) return;
        missing += leaf.wanted - leaf.done - leaf.failed;
        done += leaf.done;
        if (!leaf.failed && !entry->failed) continue;
        job_tell_branch(flow, &leaf, &branch);
        job_tell_head(flow, &branch, false);
    }
    for (int64_t i = 0; i < scan->end; i++) final += scan->entries[i].is_final ? JOB_FAN : 0;
    for (int64_t i = 0; i < scan->branch_count; i++) job_tell_head(flow, &scan->branches[i], false);
    if (job->state != JOB_CLOSING || job->deadline_ms != deadline_ms) return;
    /* All are closed: nothing changes any more, and this is what there is. Where nobody can say how many tasks there
     * are (no total, or not all names were written), some are missing. */
    bool is_partial = missing || job->total < 0 || (job->named && !job->prepared);
    bool fails = job->failures > job_tolerated(flow, job);
    struct job_ending ending = job_ending(flow,
                                          is_partial ? JOB_EXPIRED
                                          : fails    ? JOB_FAILED
                                                     : JOB_COMPLETE,
                                          SLICE_NONE);
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #counted = :counted%r REMOVE %r',"
        "'ConditionExpression':'#run = :run and #state = :closing and #deadline = :deadline',%#,"
        "'ExpressionAttributeValues':{':counted':%N,':run':%S,':closing':{'S':'CLOSING'},':deadline':%N%A},%O}",
        &job_table, work->id, ending.set, slice_from(ending.remove, 1), done + final, job->run, deadline_ms,
        ending.values);
    job_wake(flow);
}

/* ---- another deadline ---- */

bool job_revive(struct flow *flow, int64_t deadline_ms)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct job next = *job;
    bool is_over = job_is_closing(flow, job);
    next.deadline_ms = deadline_ms;
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #state = :open, #deadline = :deadline, #listed = "
        ":listed, #slot = :slot, #due = :due%r REMOVE #closed, #counted','ConditionExpression':'#run = :run and "
        "#state = :state and %r',%#,'ExpressionAttributeValues':{':open':{'S':'OPEN'},':deadline':%N,"
        "':listed':%S,':slot':%S,':due':%N,':run':%S,':state':%S%r},'ReturnValues':'ALL_NEW'}",
        &job_table, work->id, is_over ? SLICE(", #revived = :was") : SLICE(""),
        job->deadline_ms ? SLICE("#deadline = :was") : SLICE("attribute_not_exists(#deadline)"), deadline_ms,
        job_listed(flow, JOB_OPEN), job_slot(flow), job_due_ms(flow, &next), job->run,
        job_state_name(job->state),
        job->deadline_ms ? flow_compose(flow, ",':was':%N", job->deadline_ms) : SLICE(""));
    if (flow_failed(flow)) return false;
    job_take(flow, flow_item(flow));
    job_wake(flow);
    return true;
}

/* ---- once more what failed ---- */

enum { REDRIVE_DEADLINE = JOB_ID + 1 };

const struct field job_redrive_fields[] = {
    FIELD_JOB_ID,
    [REDRIVE_DEADLINE] = {"deadline", IN_BODY, FIELD_DURATION, .min = 1, .max = JOB_LONG_MS,
                          .help = "another one, from now on; needed where the former is over"},
};

static _Noreturn void refuse_over(struct flow *flow)
{
    const struct job_work *work = flow->state;
    flow_refuse_with(flow, flow_compose(flow, "'state':%s", job_state_name(work->job.state)), 409,
                     "deadline-over", "The deadline of the job was %.*s. Send another deadline.",
                     SLICE_ARG(moment_text(flow->arena, work->job.deadline_ms)));
    task_end(flow);
}

/* Makes the failed tasks of a leaf missing again, which then is as it is; false: the change was taken over. The epoch
 * makes that happen once: what comes late finds it there, whatever has failed again meanwhile. */
static bool leaf_redrive(struct flow *flow, struct leaf *leaf, int64_t epoch, struct slice *told)
{
    const struct job_work *work = flow->state;
    while (leaf->failed) {
        int64_t *offsets = arena_array(flow->arena, int64_t, (size_t)leaf->failed);
        size_t count = 0;
        struct slice since, unclosed = job_leaf_unclosed(flow, &since);
        for (int64_t i = 0; i < leaf->count; i++)
            if (leaf->marks[i] == LEAF_FAILED) offsets[count++] = i;
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #epoch = :epoch DELETE #failed :tasks%r',"
            "'ConditionExpression':'#failed = :seen and (attribute_not_exists(#epoch) or #epoch < :epoch) and %r',"
            "%#,'ExpressionAttributeValues':{':epoch':%N,':tasks':%A,':seen':%A%A},'ReturnValues':'ALL_NEW',%O}",
            &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf->index),
            leaf->names ? SLICE(" ADD #waiting :tasks") : SLICE(""), unclosed, epoch,
            job_leaf_set(flow, leaf, offsets, count), leaf->failed_set, since);
        struct leaf now;
        job_leaf_read(flow, leaf->index, flow_item(flow), &now);
        if (flow_failed(flow) && (now.closed || now.epoch > epoch || !now.there)) return false;
        bool is_written = !flow_failed(flow) ||
                          now.epoch == epoch; /* by the same call before, whose reply was lost */
        for (size_t i = 0; is_written && i < count; i++)
            *told = flow_compose(flow, "%A%r%A", *told, told->len ? SLICE(",") : SLICE(""),
                                 job_task_text(flow, leaf, offsets[i]));
        *leaf = now;
        if (is_written) return true;
        if (work->job.state == JOB_DELETING) return false;
    }
    return true;
}

/* One change with all leaves that have failures; false: it was taken over, or the job has ended otherwise. */
static bool redrive(struct flow *flow, struct slice *told)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct branch branch = {.index = -1};
    struct leaf leaf;
    int64_t tasks = 0, epoch = 0;
    if (job->changing) { /* by a caller who has left it */
        if (!job_change_begin(flow)) return false;
        epoch = job->changing;
    }
    struct job_scan *scan = job_scan_begin(flow, 0, job->leaves <= JOB_FEW ? SCAN_UNSETTLED : SCAN_FAILING);
    while (job_scan_next(flow, scan, &leaf)) {
        bool has_failed = leaf.failed || scan->entries[leaf.index].failed;
        if (!has_failed || tasks >= REDRIVEN_MOST) continue;
        if (!epoch && !job_change_begin(flow)) return false;
        if (!epoch) epoch = job->changing;
        tasks += leaf.failed;
        if (!leaf_redrive(flow, &leaf, epoch, told)) return false;
        if (branch.index >= 0 && branch.index != leaf.index / JOB_FAN) job_tell_head(flow, &branch, false);
        job_tell_branch(flow, &leaf, &branch);
    }
    if (!epoch && job->state == JOB_OPEN) return true;
    if (!epoch && !job_change_begin(flow)) return false; /* those that failed have been done since */
    if (!epoch) epoch = job->changing;
    return job_change_end(flow, epoch, -1, branch.index >= 0 ? &branch : NULL);
}

void job_redrive(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    const struct job *job = &work->job;
    struct slice told = SLICE("");
    bool has_deadline = !flow_given(flow, REDRIVE_DEADLINE);
    for (bool is_first = true;; is_first = false) {
        if (!is_first) task_again(flow);
        job_load_existing(flow);
        if (job->state == JOB_CLOSING) {
            job_expire(flow);
            continue;
        }
        if (job->state == JOB_COMPLETE) job_refuse_closed(flow);
        if (!has_deadline) {
            has_deadline = job_revive(flow, flow->now_ms + flow_int(flow, REDRIVE_DEADLINE));
            continue;
        }
        if (job->state == JOB_EXPIRED || job_is_closing(flow, job)) refuse_over(flow);
        if (redrive(flow, &told)) break;
    }
    /* Where nothing had failed, all may be done; what somebody left half done in a large job is left to the sweep. */
    if (!told.len && job->leaves <= JOB_FEW)
        job_heal(flow);
    else
        job_tell_head(flow, NULL, false);
    flow_wake(flow, job_progress_topic(work->id));
    flow_answer(flow, 200, "{'redriven':[%A],'state':%s}", told, job_state_name(job->state));
}
