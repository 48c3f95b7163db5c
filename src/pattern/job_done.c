/* Jobs: tasks that are done. The tables and what holds for them: job.c.
 *
 * The head says where a task belongs; it may be read a little late, because the leaf has the last word. What
 * is refused was read freshly before. */
#include "base/hash.h"
#include "calendar/calendar.h"
#include "pattern/job.h"
#include "pattern/rows.h"

#define NAMES_AT_ONCE 20 /* of one leaf: a condition holds at most 300 operators */
#define NAME_BYTES    200

enum { DONE_TASK = JOB_ID + 1, DONE_TASKS, DONE_RESULT, DONE_PROGRESS, DONE_KEY };

const struct field job_done_fields[] = {
    FIELD_JOB_ID,
    [DONE_TASK] = {"task", IN_BODY, FIELD_JSON, .help = "its number, from 0 on, or its name"},
    [DONE_TASKS] = {"tasks", IN_BODY, FIELD_LIST, .help = "several, instead of one"},
    [DONE_RESULT] = {"result", IN_BODY, FIELD_JSON, .help = "what came of the task; the first one stays"},
    [DONE_PROGRESS] = {"progress", IN_QUERY, FIELD_BOOL,
                       .help = "tell how many are done, of a large job at least"},
    [DONE_KEY] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                  .help = "tells callers apart that do the same tasks; without it, they are one caller"},
};

struct task {
    struct slice name; /* of a named one */
    int64_t number;    /* counted from 0 */
    int64_t leaf;
    bool taken;
};

struct done {
    struct task *tasks;
    size_t count, at;
    struct leaf leaf; /* that is being written, and as it is then */
    int64_t offsets[JOB_FAN];
    struct slice names[NAMES_AT_ONCE];
    size_t chosen;
    int64_t counted;
    bool looked; /* at the head, since a leaf was found closed */
    struct slice *unknown; /* names that the job does not have */
    size_t unknown_count;
};

static flow_step done_loaded, done_result, done_leaf, done_written, done_tallied, done_end;

/* ---- reading the tasks ---- */

/* Each as it was sent; false and refused: it cannot be a task of any job. */
static bool task_read(struct flow *flow, struct slice value, struct task *task)
{
    enum json_kind kind = raw_kind(value);
    *task = (struct task){0};
    if (kind == JSON_STRING) {
        task->name = raw_text(flow->arena, value);
        if (task->name.len && task->name.len <= NAME_BYTES) return true;
    } else if (kind == JSON_NUMBER && raw_int(value, &task->number)) {
        return true;
    }
    flow_refuse(flow, 400, "bad-request", "A task is a whole number, or a name of 1 to %d bytes.",
                NAME_BYTES);
    return false;
}

static bool tasks_read(struct flow *flow, struct done *done)
{
    struct raw_look look;
    struct slice value;
    bool is_list = flow_given(flow, DONE_TASKS);
    size_t count = is_list ? raw_count(flow->arena, flow_text(flow, DONE_TASKS)) : 1;
    if (is_list == flow_given(flow, DONE_TASK) || count == 0 || count > JOB_CALL_TASKS) {
        flow_refuse(flow, 400, "bad-request", "Send either task, or tasks with 1 to %d of them.",
                    JOB_CALL_TASKS);
        return false;
    }
    if (is_list && flow_given(flow, DONE_RESULT)) {
        flow_refuse(flow, 400, "bad-request", "A result belongs to one task: send task, not tasks.");
        return false;
    }
    done->tasks = arena_array(flow->arena, struct task, count);
    done->unknown = arena_array(flow->arena, struct slice, count);
    if (!is_list) {
        done->count = 1;
        return task_read(flow, flow_text(flow, DONE_TASK), &done->tasks[0]);
    }
    raw_look_begin(&look, flow->arena, flow_text(flow, DONE_TASKS));
    while (raw_look_next(&look, NULL, &value))
        if (!task_read(flow, value, &done->tasks[done->count++])) return false;
    return true;
}

/* Who calls, where it does not say so by a key: whoever does these tasks. In a list their order does not
 * matter. */
static struct slice caller_of(struct flow *flow, const struct done *done)
{
    uint64_t digest = 0;
    if (done->count == 1) return job_caller(flow, "done", done->tasks[0].name, done->tasks[0].number);
    for (size_t i = 0; i < done->count; i++) {
        const struct task *task = &done->tasks[i];
        digest += hash_bytes(job_caller(flow, "done", task->name, task->number));
    }
    return arena_printf(flow->arena, "done %zu %016llx", done->count, (unsigned long long)digest);
}

void job_done(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct done *done = work->own = arena_new(flow->arena, struct done);
    if (!tasks_read(flow, done)) return;
    work->me = flow_given(flow, DONE_KEY) ? flow_text(flow, DONE_KEY) : caller_of(flow, done);
    job_load(flow, false, done_loaded);
}

/* ---- where they belong ---- */

/* NULL, or why the job does not take this task. */
static const char *task_fault(struct flow *flow, const struct job *job, struct task *task)
{
    if (job->blank && task->name.data) return "Which names the tasks of this job have was not told yet.";
    if (job->named != (task->name.data != NULL))
        return job->named ? "The tasks of this job have names." : "The tasks of this job are numbers.";
    if (job->named) {
        task->leaf = job_leaf_of_name(job, task->name);
        return NULL;
    }
    int64_t number = task->number - job->first, most = job->total < 0 ? JOB_TASKS_MOST : job->total;
    if (job->total < 0 && job->fan == JOB_SET_MOST) most = JOB_SET_MOST;
    if (number < 0 || number >= most)
        return arena_printf(flow->arena, "The job has no task %lld: they go from %lld to %lld.",
                            (long long)task->number, (long long)job->first,
                            (long long)(job->first + most - 1))
            .data;
    task->leaf = number / job->fan;
    return NULL;
}

/* True when something is wrong with it; refused, if it was read freshly. */
static bool is_refused(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    const struct job *job = &work->job;
    const char *fault = NULL;
    bool over = job->state == JOB_OPEN && job->deadline_ms && flow->now_ms >= job->deadline_ms;
    bool closed = over || job->state == JOB_CLOSING || job->state == JOB_EXPIRED ||
                  job->state == JOB_DELETING;
    for (size_t i = 0; job->item.data && !fault && i < done->count; i++)
        fault = task_fault(flow, job, &done->tasks[i]);
    if (job->item.data && !closed && !fault) return false;
    if (!work->fresh)
        job_load(flow, true, done_loaded);
    else if (!job->item.data)
        job_refuse_unknown(flow);
    else if (fault)
        flow_refuse_with(flow,
                         job->total < 0 ? SLICE("")
                                        : flow_compose(flow, "'total':%d,'first':%d", job->total, job->first),
                         400, "task-outside", "%s", fault);
    else
        job_refuse_closed(flow);
    return true;
}

static void done_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    int64_t furthest = 0;
    if (is_refused(flow)) return;
    for (size_t i = 0; i < done->count; i++) {
        done->tasks[i].number -= work->job.first;
        if (done->tasks[i].leaf > furthest) furthest = done->tasks[i].leaf;
    }
    if (work->job.state == JOB_COMPLETE)
        job_claim(flow, done_end);
    else
        job_reach(flow, furthest, flow_given(flow, DONE_RESULT) ? done_result : done_leaf);
}

/* ---- counting ---- */

/* Result first, count then: whoever sees a task counted finds its result. */
static void done_result(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    struct task *task = &done->tasks[0];
    struct leaf leaf = {.index = task->leaf, .names = work->job.named ? &task->name : NULL};
    int64_t offset = work->job.named ? 0 : task->number - task->leaf * work->job.fan;
    flow_call(
        flow, done_leaf, "UpdateItem",
        "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #result = if_not_exists(#result, :result)',%#,"
        "'ExpressionAttributeValues':{':result':%J}}",
        &job_parts_table, job_task_key(flow, &leaf, offset), flow_text(flow, DONE_RESULT));
}

static bool is_chosen(const struct done *done, int64_t offset, struct slice name)
{
    for (size_t i = 0; i < done->chosen; i++)
        if (name.data ? slice_equal(done->names[i], name) : done->offsets[i] == offset) return true;
    return false;
}

/* Picks tasks of one leaf, each once, as many as one write takes. */
static void leaf_choose(struct job_work *work, struct done *done)
{
    int64_t index = done->tasks[done->at].leaf;
    size_t most = work->job.named ? NAMES_AT_ONCE : JOB_FAN;
    done->leaf = (struct leaf){.index = index, .names = work->job.named ? done->names : NULL};
    done->chosen = 0;
    for (size_t i = done->at; i < done->count && done->chosen < most; i++) {
        struct task *task = &done->tasks[i];
        int64_t offset = work->job.named ? (int64_t)done->chosen : task->number - index * work->job.fan;
        if (task->taken || task->leaf != index) continue;
        task->taken = true;
        if (is_chosen(done, offset, task->name)) continue;
        if (work->job.named) done->names[done->chosen] = task->name;
        done->offsets[done->chosen++] = offset;
    }
}

/* Of named tasks only those are counted that the leaf knows. */
static struct slice names_condition(struct flow *flow, struct done *done, struct slice *values)
{
    struct buf condition = {0}, more = {0};
    for (size_t i = 0; i < done->chosen; i++) {
        buf_printf(&condition,
                   " and (contains(#waiting, :n%zu) or contains(#done, :n%zu) or contains(#failed, :n%zu))",
                   i, i, i);
        buf_printf(&more, ",\":n%zu\":%.*s", i, SLICE_ARG(flow_compose(flow, "%S", done->names[i])));
    }
    *values = arena_copy(flow->arena, buf_view(&more));
    struct slice text = arena_copy(flow->arena, buf_view(&condition));
    buf_free(&condition);
    buf_free(&more);
    return text;
}

static void leaf_write(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    struct slice key = job_part_key(flow, 0, done->leaf.index), values, since;
    struct slice unclosed = job_leaf_unclosed(flow, &since);
    struct slice set = job_leaf_set(flow, &done->leaf, done->offsets, done->chosen);
    if (work->job.named) {
        struct slice known = names_condition(flow, done, &values);
        flow_call(flow, done_written, "UpdateItem",
                  "{'TableName':%T,'Key':%A,'UpdateExpression':'ADD #done :tasks DELETE #waiting :tasks',"
                  "'ConditionExpression':'%r%r',%#,'ExpressionAttributeValues':{':tasks':%A%A%A},"
                  "'ReturnValues':'ALL_OLD',%O}",
                  &job_parts_table, key, unclosed, known, set, values, since);
        return;
    }
    flow_call(flow, done_written, "UpdateItem",
              "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #wanted = if_not_exists(#wanted, :wanted) "
              "ADD #done :tasks','ConditionExpression':'%r',%#,"
              "'ExpressionAttributeValues':{':wanted':%N,':tasks':%A%A},'ReturnValues':'ALL_OLD',%O}",
              &job_parts_table, key, unclosed, job_leaf_wanted(&work->job, done->leaf.index), set, since);
}

static void done_leaf(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    while (done->at < done->count && done->tasks[done->at].taken) done->at++;
    if (done->at == done->count) {
        done_end(flow);
        return;
    }
    leaf_choose(work, done);
    leaf_write(flow);
}

/* Names that the leaf does not know are put aside; true when there are others left to write. */
static bool unknown_drop(struct done *done, const struct leaf *leaf)
{
    size_t kept = 0;
    for (size_t i = 0; i < done->chosen; i++) {
        if (job_leaf_find(leaf, done->names[i]) < 0)
            done->unknown[done->unknown_count++] = done->names[i];
        else
            done->names[kept++] = done->names[i];
    }
    done->chosen = kept;
    return kept > 0;
}

/* The leaf was closed: has the job been opened again since, or how has it ended? */
static void leaf_look(struct flow *flow)
{
    const struct job_work *work = flow->state;
    if (work->job.state == JOB_OPEN || work->job.state == JOB_FAILED)
        leaf_write(flow);
    else if (work->job.state == JOB_COMPLETE)
        job_claim(flow, done_end);
    else
        job_refuse_closed(flow);
}

/* The image tells why: closed, not written yet, or there are names that it does not know. */
static void leaf_refused(struct flow *flow, const struct leaf *leaf)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    if (leaf->closed && !done->looked) {
        done->looked = true;
        job_load(flow, true, leaf_look);
    } else if (leaf->closed) {
        job_refuse_closed(flow);
    } else if (!leaf->there && !work->job.prepared) {
        flow_refuse(flow, 409, "not-prepared",
                    "The job is still being made; repeat its PUT if that was interrupted.");
    } else if (unknown_drop(done, leaf)) {
        leaf_write(flow);
    } else {
        done_leaf(flow);
    }
}

/* The leaf as it is now, from what it was and what was added. */
static void leaf_add(struct job_work *work, struct done *done, struct leaf *leaf)
{
    leaf->there = true;
    for (size_t i = 0; i < done->chosen; i++) {
        int64_t offset = work->job.named ? job_leaf_find(leaf, done->names[i]) : done->offsets[i];
        if (offset >= leaf->count) continue; /* behind an end that was set meanwhile */
        if (!(leaf->marks[offset] & LEAF_DONE)) done->counted++;
        leaf->marks[offset] |= LEAF_DONE;
    }
    job_leaf_count(leaf);
}

static void done_written(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    struct leaf leaf;
    job_leaf_read(flow, done->leaf.index, flow_item(flow), &leaf);
    int64_t before = leaf.done;
    if (flow_failed(flow)) {
        leaf_refused(flow, &leaf);
        return;
    }
    leaf_add(work, done, &leaf);
    done->leaf = leaf;
    flow_wake(flow, flow_topic("job progress", work->id, SLICE("")));
    job_tally(flow, &done->leaf, before, done_tallied);
}

static void done_tallied(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    job_climb(flow, &done->leaf, true, done_leaf);
}

/* ---- answering ---- */

static struct slice unknown_text(struct flow *flow, const struct done *done)
{
    struct slice text = SLICE("");
    for (size_t i = 0; i < done->unknown_count; i++)
        text = flow_compose(flow, "%r%r%s", text, i ? SLICE(",") : SLICE(""), done->unknown[i]);
    return flow_compose(flow, ",'unknown':[%r]", text);
}

static void done_tell(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    const struct job *job = &work->job;
    bool complete = job->state == JOB_COMPLETE;
    int64_t count = -1;
    if (complete)
        count = job->total - job->failures;
    else if (work->walk.then)
        count = work->walk.at_least ? work->walk.done : job->total - job->failures - work->walk.missing;
    else if (job->leaves == 1 && done->leaf.there)
        count = done->leaf.done;
    flow_answer(flow, 200, "{'counted':%d,'complete':%b,'last':%b%r%r%r}", done->counted, (int)complete,
                (int)work->last, count < 0 ? SLICE("") : flow_compose(flow, ",'done':%d", count),
                !complete && work->walk.at_least ? SLICE(",\"exact\":false") : SLICE(""),
                done->unknown_count ? unknown_text(flow, done) : SLICE(""));
}

static void done_end(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct done *done = work->own;
    if (done->unknown_count == done->count) {
        flow_refuse(flow, 400, "task-outside", "The job has no task of %s.",
                    done->count == 1 ? "this name" : "any of these names");
    } else if (flow_int(flow, DONE_PROGRESS) && work->job.state != JOB_COMPLETE && work->job.total >= 0) {
        job_sum(flow, done_tell);
    } else {
        done_tell(flow);
    }
}
