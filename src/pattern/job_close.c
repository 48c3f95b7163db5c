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
    const struct job *job = flow->state;
    if (!edit_item(flow, &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf->index),
                   SLICE("SET #closed = :deadline"),
                   SLICE("attribute_not_exists(#closed) or #closed <= :deadline"), "':deadline':%N",
                   job->deadline_ms))
        return false;
    job_leaf_read(flow, leaf->index, flow_item(flow), leaf);
    return true;
}

void job_expire(struct flow *flow)
{
    struct job *job = flow->state;
    struct leaf leaf;
    struct branch branch;
    int64_t missing = 0, done = 0, final = 0;
    if (!JOB_EDIT(flow, "SET #state = :closing",
                  "#run = :run and (#state = :closing or (#state = :open and #deadline = :deadline))",
                  "':closing':{'S':'CLOSING'},':open':{'S':'OPEN'},':run':%S,':deadline':%N", job->run,
                  job->deadline_ms))
        return; /* it ended otherwise, or got more time */
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
    struct edit edit = {0};
    job_end(flow, &edit, is_partial ? JOB_EXPIRED : fails ? JOB_FAILED : JOB_COMPLETE, SLICE_NONE);
    edit_set(flow, &edit, "counted", "%N", done + final);
    edit_if(flow, &edit, "#run = :run and #state = :closing and #deadline = :deadline",
            "':run':%S,':closing':{'S':'CLOSING'},':deadline':%N", job->run, deadline_ms);
    edit_write(flow, &edit, &job_table, job_key(flow));
    job_wake(flow);
}

/* ---- another deadline ---- */

bool job_revive(struct flow *flow, int64_t deadline_ms)
{
    const struct job *job = flow->state;
    struct edit edit = {0};
    job_open(flow, &edit, deadline_ms);
    edit_set(flow, &edit, "deadline", "%N", deadline_ms);
    edit_put(flow, &edit, EDIT_REMOVE, "#closed, #counted", NULL);
    if (job_is_closing(flow, job)) edit_put(flow, &edit, EDIT_SET, "#revived = :was", NULL);
    edit_if(flow, &edit, "#run = :run and #state = :ended", "':run':%S,':ended':%S", job->run,
            job_state_name(job->state));
    if (job->deadline_ms)
        edit_if(flow, &edit, "#deadline = :was", "':was':%N", job->deadline_ms);
    else
        edit_if(flow, &edit, "attribute_not_exists(#deadline)", NULL);
    if (!job_took(flow, edit_write(flow, &edit, &job_table, job_key(flow)))) return false;
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
    const struct job *job = flow->state;
    task_refuse_with(flow, flow_compose(flow, "'state':%s", job_state_name(job->state)), 409, "deadline-over",
                     "The deadline of the job was %.*s. Send another deadline.",
                     SLICE_ARG(moment_text(flow->arena, job->deadline_ms)));
}

/* Makes the failed tasks of a leaf missing again, which then is as it is; false: the change was taken over. The epoch
 * makes that happen once: what comes late finds it there, whatever has failed again meanwhile. */
static bool leaf_redrive(struct flow *flow, struct leaf *leaf, int64_t epoch, struct slice *told)
{
    const struct job *job = flow->state;
    while (leaf->failed) {
        int64_t *offsets = arena_array(flow->arena, int64_t, (size_t)leaf->failed);
        size_t count = 0;
        for (int64_t i = 0; i < leaf->count; i++)
            if (leaf->marks[i] == LEAF_FAILED) offsets[count++] = i;
        edit_item(
            flow, &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf->index),
            leaf->names ? SLICE("SET #epoch = :epoch DELETE #failed :tasks ADD #waiting :tasks")
                        : SLICE("SET #epoch = :epoch DELETE #failed :tasks"),
            SLICE("#failed = :seen and (attribute_not_exists(#epoch) or #epoch < :epoch) and " LEAF_UNCLOSED),
            "':epoch':%N,':tasks':%A,':seen':%A,':revived':%N", epoch,
            job_leaf_set(flow, leaf, offsets, count), leaf->failed_set, job->revived_ms);
        struct leaf now;
        job_leaf_read(flow, leaf->index, flow_item(flow), &now);
        if (flow_failed(flow) && (now.closed || now.epoch > epoch || !now.there)) return false;
        bool is_written = !flow_failed(flow) ||
                          now.epoch == epoch; /* by the same call before, whose reply was lost */
        for (size_t i = 0; is_written && i < count; i++)
            *told = flow_compose(flow, "%A%,%A", *told, job_task_text(flow, leaf, offsets[i]));
        *leaf = now;
        if (is_written) return true;
        if (job->state == JOB_DELETING) return false;
    }
    return true;
}

/* One change with all leaves that have failures; false: it was taken over, or the job has ended otherwise. */
static bool redrive(struct flow *flow, struct slice *told)
{
    struct job *job = flow->state;
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
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
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
    job_each_follow(flow, true);
    job_wake(flow);
    flow_answer(flow, 200, "{'redriven':[%A],'state':%s}", told, job_state_name(job->state));
}
