/* Jobs: tasks that are done. The tables and what holds for them: job.c.
 *
 * The head says where a task belongs. It may be what the process remembers of it, because the leaf has the last word:
 * a leaf that was seen in this run of the job belongs to it as long as it is there, and one that was not seen yet is
 * written only by the head as it is. What is refused was read freshly before. */
#include "base/hash.h"
#include "pattern/job.h"
#include "pattern/job_meter.h"
#include "pattern/rows.h"

#define NAMES_AT_ONCE   20     /* of one leaf: a condition holds at most 300 operators */
#define RESULTS_AT_ONCE 64     /* likewise */
#define PAGE_BYTES      300000 /* of results that are written together: their item must stay below 400 KB */

enum { DONE_TASK = JOB_ID + 1, DONE_TASKS, DONE_RESULT, DONE_PROGRESS, DONE_KEY };

const struct field job_done_fields[] = {
    FIELD_JOB_ID,
    [DONE_TASK] = {"task", IN_BODY, FIELD_JSON, .help = "its number, from 0 on, or its name"},
    [DONE_TASKS] = {"tasks", IN_BODY, FIELD_LIST,
                    .help = "several, instead of one: each a task, or {\"task\", \"result\"}"},
    [DONE_RESULT] = {"result", IN_BODY, FIELD_JSON, .help = "what came of the task; the first one stays"},
    [DONE_PROGRESS] = {"progress", IN_QUERY, FIELD_BOOL,
                       .help = "tell how many are done, of a large job at least"},
    [DONE_KEY] = {"Idempotency-Key", IN_HEADER, FIELD_NAME,
                  .help = "tells callers apart that do the same tasks; without it, they are one caller"},
};

struct task {
    struct slice name;   /* of a named one */
    int64_t number;      /* as it was sent */
    struct slice result; /* of one in a list; SLICE_NONE: none */
    int64_t leaf;
    bool taken;
};

struct done {
    struct task *tasks;
    size_t count;
    int64_t *offsets; /* of the tasks of one leaf that are written together, JOB_FAN at most */
    struct slice *names, *results;
    size_t chosen, result_count;
    struct leaf leaf; /* the last one, as it is then */
    int64_t counted;
    bool restarts;         /* the job is another one than was remembered */
    struct slice *unknown; /* names that the job does not have */
    size_t unknown_count;
};

/* ---- which tasks ---- */

/* {"task": 17, "result": ...} of a list: answers the task. */
static struct slice result_read(struct flow *flow, struct task *task, struct slice object)
{
    struct slice name, value, sent = SLICE_NONE;
    raw_each_member (flow->arena, object, &name, &value) {
        if (slice_equal(name, SLICE("task")))
            sent = value;
        else if (slice_equal(name, SLICE("result")))
            task->result = value;
        else
            task_refuse(flow, 400, "bad-request",
                        "A task in tasks has the members task and result, not '%.*s'.",
                        SLICE_ARG(flow_shown(name)));
    }
    if (task->result.len > PAGE_BYTES)
        task_refuse(flow, 400, "bad-request", "A result of a task has at most %d bytes.", PAGE_BYTES);
    const char *wrong = task->result.data ? plain_fault(flow->arena, task->result) : NULL;
    if (wrong) task_refuse(flow, 400, "bad-request", "A result cannot be stored: %s.", wrong);
    return sent.data ? sent : SLICE("null");
}

static struct done *tasks_read(struct flow *flow)
{
    struct done *done = arena_new(flow->arena, struct done);
    struct raw_look look;
    struct slice value;
    bool is_list = flow_given(flow, DONE_TASKS);
    size_t count = is_list ? raw_count(flow->arena, flow_text(flow, DONE_TASKS)) : 1;
    if (is_list == flow_given(flow, DONE_TASK) || count == 0 || count > JOB_CALL_TASKS)
        task_refuse(flow, 400, "bad-request", "Send either task, or tasks with 1 to %d of them.",
                    JOB_CALL_TASKS);
    if (is_list && flow_given(flow, DONE_RESULT))
        task_refuse(flow, 400, "bad-request", "A result belongs to one task: send task, not tasks.");
    size_t together = count < JOB_FAN ? count : JOB_FAN;
    done->offsets = arena_array(flow->arena, int64_t, together);
    done->names = arena_array(flow->arena, struct slice, together);
    done->results = arena_array(flow->arena, struct slice, together);
    done->count = count;
    done->tasks = arena_zero(flow->arena, count * sizeof *done->tasks);
    done->unknown = arena_array(flow->arena, struct slice, count);
    if (!is_list) {
        done->tasks->name = job_task_sent(flow, flow_text(flow, DONE_TASK), &done->tasks->number);
        return done;
    }
    raw_look_begin(&look, flow->arena, flow_text(flow, DONE_TASKS));
    for (struct task *task = done->tasks; raw_look_next(&look, NULL, &value); task++) {
        if (raw_kind(value) == JSON_OBJECT) value = result_read(flow, task, value);
        task->name = job_task_sent(flow, value, &task->number);
    }
    return done;
}

/* Who calls, where it does not say so by a key: whoever does these tasks. In a list their order does not
 * matter. */
static struct slice caller_of(struct flow *flow, const struct done *done)
{
    uint64_t digest = 0;
    if (flow_given(flow, DONE_KEY)) return flow_text(flow, DONE_KEY);
    if (done->count == 1) return job_caller(flow, "done", done->tasks[0].name, done->tasks[0].number);
    for (size_t i = 0; i < done->count; i++) {
        const struct task *task = &done->tasks[i];
        digest += hash_bytes(job_caller(flow, "done", task->name, task->number));
    }
    return arena_printf(flow->arena, "done %zu %016llx", done->count, (unsigned long long)digest);
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
    if (!most) return "The job has no tasks.";
    if (number < 0 || number >= most)
        return arena_printf(flow->arena, "The job has no task %lld: they go from %lld to %lld.",
                            (long long)task->number, (long long)job->first,
                            (long long)(job->first + most - 1))
            .data;
    task->leaf = number / job->fan;
    return NULL;
}

/* Gives each task its leaf by the head that was read, and what cannot be done is refused by a fresh one. */
static void tasks_place(struct flow *flow, struct done *done)
{
    struct job *job = flow->state;
    const char *fault = NULL;
    for (;; job_load(flow)) {
        bool is_closed = (job->state == JOB_OPEN && job_is_closing(flow, job)) || job->state == JOB_CLOSING ||
                         job->state == JOB_EXPIRED || job->state == JOB_DELETING;
        fault = NULL;
        for (size_t i = 0; job->item.data && !fault && i < done->count; i++)
            fault = task_fault(flow, job, &done->tasks[i]);
        if (job->item.data && !is_closed && !fault) return;
        if (!job->is_fresh) continue;
        if (!job->item.data) job_refuse_unknown(flow);
        if (!fault) job_refuse_closed(flow);
        task_refuse_with(flow,
                         job->total < 0 ? SLICE("")
                                        : flow_compose(flow, "'total':%d,'first':%d", job->total, job->first),
                         400, "task-outside", "%s", fault);
    }
}

/* ---- leaves that this process has seen ---- */

#define SEEN_BYTES (JOB_FAN / 8) /* a bit for each leaf of a branch */

static uint64_t seen_topic(struct flow *flow, int64_t leaf)
{
    const struct job *job = flow->state;
    return flow_topic(
        "job leaves", job->id,
        arena_printf(flow->arena, "%.*s/%lld", SLICE_ARG(job->run), (long long)(leaf / JOB_FAN)));
}

static bool leaf_is_seen(struct flow *flow, int64_t leaf)
{
    struct slice seen = flow_recall(flow, seen_topic(flow, leaf));
    return seen.len == SEEN_BYTES && (seen.data[leaf % JOB_FAN / 8] >> (leaf % 8) & 1);
}

static void leaf_note(struct flow *flow, int64_t leaf, bool is_there)
{
    char bits[SEEN_BYTES] = {0};
    uint64_t topic = seen_topic(flow, leaf);
    struct slice seen = flow_recall(flow, topic);
    unsigned bit = 1u << (leaf % 8);
    if (seen.len == SEEN_BYTES) memcpy(bits, seen.data, SEEN_BYTES);
    char *byte = &bits[leaf % JOB_FAN / 8];
    *byte = (char)(is_there ? (unsigned char)*byte | bit : (unsigned char)*byte & ~bit);
    flow_remember(flow, topic, (struct slice){bits, SEEN_BYTES});
}

/* ---- counting ---- */

static bool is_chosen(const struct done *done, int64_t offset, struct slice name)
{
    for (size_t i = 0; i < done->chosen; i++)
        if (name.data ? slice_equal(done->names[i], name) : done->offsets[i] == offset) return true;
    return false;
}

/* Picks tasks of one leaf, each once, as many as one write takes. */
static void tasks_choose(const struct job *job, struct done *done, size_t first)
{
    int64_t index = done->tasks[first].leaf;
    size_t most = job->named ? NAMES_AT_ONCE : JOB_FAN, bytes = 0;
    done->leaf = (struct leaf){.index = index, .names = job->named ? done->names : NULL};
    done->chosen = done->result_count = 0;
    for (size_t i = first; i < done->count && done->chosen < most; i++) {
        struct task *task = &done->tasks[i];
        int64_t offset = job->named ? (int64_t)done->chosen : task->number - job->first - index * job->fan;
        if (task->taken || task->leaf != index) continue;
        bytes += task->result.len;
        if (task->result.data && (done->result_count == RESULTS_AT_ONCE || bytes > PAGE_BYTES)) break;
        task->taken = true;
        if (is_chosen(done, offset, task->name)) continue;
        if (job->named) done->names[done->chosen] = task->name;
        done->results[done->chosen] = task->result;
        done->result_count += task->result.data != NULL;
        done->offsets[done->chosen++] = offset;
    }
}

/* Results that came together stand in one item, a page, which the leaf names when it counts their tasks. A page that no
 * leaf names was never told of. */
static struct slice page_write(struct flow *flow, const struct done *done)
{
    struct slice id = arena_printf(flow->arena, "%llx%09llx", (unsigned long long)(flow->serial & 0xfff),
                                   (unsigned long long)(flow_random(flow) >> 28));
    struct slice results = SLICE("");
    for (size_t i = 0; i < done->chosen; i++) {
        struct slice name = done->leaf.names ? done->names[i]
                                             : arena_printf(flow->arena, "%lld", (long long)done->offsets[i]);
        if (done->results[i].data) results = flow_compose(flow, "%A%,%s:%J", results, name, done->results[i]);
    }
    task_call(flow, "PutItem", "{'TableName':%T,'Item':{'part':%A,'task':{'S':'=%r'},'results':{'M':{%A}}}}",
              &job_parts_table,
              item_attribute(flow->arena, job_part_key(flow, LEVEL_LEAF, done->leaf.index), "part"), id,
              results);
    return id;
}

/* Who was failed is done from now on. Of named tasks only those are counted that the leaf knows. The image before, or
 * the one that made the condition fail. */
static void leaf_write(struct flow *flow, struct done *done)
{
    const struct job *job = flow->state;
    struct slice page = done->result_count ? page_write(flow, done) : SLICE_NONE;
    struct edit edit = {.returns_old = true};
    edit_put(flow, &edit, EDIT_ADD, "#done :tasks", "':tasks':%A",
             job_leaf_set(flow, &done->leaf, done->offsets, done->chosen));
    if (page.data) edit_put(flow, &edit, EDIT_ADD, "#pages :page", "':page':{'SS':[%s]}", page);
    for (size_t i = 0; i < done->chosen; i++) /* the first result of a task stays */
        if (done->results[i].data)
            edit_if(flow, &edit, arena_printf(flow->arena, "not contains(#done, :r%zu)", i).data, "':r%d':%A",
                    (int64_t)i,
                    job->named ? flow_compose(flow, "%S", done->names[i])
                               : flow_compose(flow, "%N", done->offsets[i]));
    edit_put(flow, &edit, EDIT_DELETE, job->named ? "#failed :tasks, #waiting :tasks" : "#failed :tasks",
             NULL);
    if (job->revived_ms)
        edit_if(flow, &edit, LEAF_UNCLOSED, "':revived':%N", job->revived_ms);
    else
        edit_if(flow, &edit, "attribute_not_exists(#closed)", NULL); /* the same, and the shorter request */
    if (!job->named && job->is_recalled) edit_if(flow, &edit, "attribute_exists(#part)", NULL);
    if (job->named) job_leaf_if_names(flow, &edit, done->names, done->chosen, true);
    edit_write(flow, &edit, &job_parts_table, job_part_key(flow, LEVEL_LEAF, done->leaf.index));
}

/* Names that the leaf does not know are put aside, and results of what is done already; true when there are others left
 * to write. */
static bool chosen_drop(struct done *done, const struct leaf *leaf)
{
    size_t kept = 0;
    done->result_count = 0;
    for (size_t i = 0; i < done->chosen; i++) {
        int64_t offset = leaf->names ? job_leaf_find(leaf, done->names[i]) : done->offsets[i];
        if (offset < 0) done->unknown[done->unknown_count++] = done->names[i];
        bool is_done = offset >= 0 && offset < leaf->count && leaf->marks[offset] & LEAF_DONE;
        if (offset < 0 || (is_done && done->results[i].data)) continue;
        if (leaf->names) done->names[kept] = done->names[i];
        done->offsets[kept] = leaf->names ? (int64_t)kept : done->offsets[i];
        done->results[kept] = done->results[i];
        done->result_count += done->results[kept++].data != NULL;
    }
    done->chosen = kept;
    return kept > 0;
}

/* Counts the chosen tasks, unless there is nothing to count in this leaf, or the job is COMPLETE. */
static void leaf_done(struct flow *flow, struct done *done)
{
    struct job *job = flow->state;
    struct slice run = job->run;
    struct leaf leaf;
    bool was_closed = false;
    if (job->is_recalled && !job->named && !leaf_is_seen(flow, done->leaf.index)) {
        job_glance(flow);
        tasks_place(flow, done);
    }
    for (;;) {
        done->restarts = !slice_equal(run, job->run);
        if (done->restarts || job->state == JOB_COMPLETE) return;
        leaf_write(flow, done);
        job_leaf_read(flow, done->leaf.index, flow_item(flow), &leaf);
        if (!flow_failed(flow)) break;
        if (!leaf.there && job->is_recalled) { /* of a job that was deleted, or made again */
            if (!job->named) leaf_note(flow, leaf.index, false);
            job_load(flow);
            tasks_place(flow, done);
        } else if (leaf.closed) { /* has it been opened again since, or how has it ended? */
            if (was_closed) job_refuse_closed(flow);
            was_closed = true;
            job_load(flow);
            tasks_place(flow, done);
        } else if (!leaf.there && !job->prepared) {
            job_refuse_unprepared(flow);
        } else if (!chosen_drop(done, &leaf)) {
            break;
        }
    }
    if (!leaf.there && !done->chosen) return;
    int64_t done_before = leaf.done, failed_before = leaf.failed;
    if (!job->is_recalled && !job->named) leaf_note(flow, leaf.index, true);
    leaf.there = true;
    for (size_t i = 0; i < done->chosen; i++) { /* some may lie behind an end that was set meanwhile */
        int64_t offset = job->named ? job_leaf_find(&leaf, done->names[i]) : done->offsets[i];
        if (offset < leaf.count) job_leaf_mark(&leaf, offset, LEAF_DONE);
    }
    done->counted += leaf.done - done_before;
    done->leaf = leaf;
    job_meters_count(flow->world->job_meters, job->id, job->total, leaf.done - done_before, 0);
    flow_wake(flow, job_progress_topic(job->id));
    job_tally(flow, &leaf, done_before);
    /* A repeat may be that of a caller who did not come to tell of it. */
    bool is_repeat = leaf.failed_once && leaf.done == done_before;
    if (job_leaf_is_full(job, &leaf) || leaf.failed != failed_before || is_repeat)
        job_propagate(flow, &leaf, true);
}

/* All tasks by the job as it was read; false: it is another one by now. */
static bool tasks_done(struct flow *flow, struct done *done)
{
    struct job *job = flow->state;
    int64_t furthest = 0;
    tasks_place(flow, done);
    done->counted = 0;
    done->unknown_count = 0;
    if (job->state == JOB_COMPLETE) return true;
    for (size_t i = 0; i < done->count; i++) {
        done->tasks[i].taken = false;
        if (done->tasks[i].leaf > furthest) furthest = done->tasks[i].leaf;
    }
    job_reach(flow, furthest);
    if (flow_given(flow, DONE_RESULT)) {
        /* Result first, count then: whoever sees a task counted finds its result. */
        const struct task *task = &done->tasks[0];
        struct slice name = task->name;
        struct leaf leaf = {.index = task->leaf, .names = job->named ? &name : NULL};
        int64_t offset = job->named ? 0 : task->number - job->first - task->leaf * job->fan;
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #result = if_not_exists(#result, :result)',%#,"
            "'ExpressionAttributeValues':{':result':%J}}",
            &job_parts_table, job_task_key(flow, &leaf, offset), flow_text(flow, DONE_RESULT));
    }
    for (size_t i = 0; i < done->count; i++) {
        if (done->tasks[i].taken) continue;
        tasks_choose(job, done, i);
        leaf_done(flow, done);
        if (done->restarts) return false;
    }
    return true;
}

static struct slice unknown_text(struct flow *flow, const struct done *done)
{
    struct slice text = SLICE_NONE;
    for (size_t i = 0; i < done->unknown_count; i++)
        text = flow_compose(flow, "%r%,%s", text, done->unknown[i]);
    return text;
}

void job_done(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct done *done = tasks_read(flow);
    int64_t count = -1;
    job->caller = caller_of(flow, done);
    job_recall(flow);
    if (job->is_recalled && (job->state == JOB_COMPLETE || flow_given(flow, DONE_RESULT))) job_glance(flow);
    while (!tasks_done(flow, done)) task_again(flow);
    if (job->state == JOB_COMPLETE && !job->is_last) job_claim(flow);
    if (done->unknown_count == done->count)
        task_refuse(flow, 400, "task-outside", "The job has no task of %s.",
                    done->count == 1 ? "this name" : "any of these names");
    bool is_complete = job->state == JOB_COMPLETE;
    if (!is_complete && flow_int(flow, DONE_PROGRESS) && job->total >= 0) job_count(flow, false);
    if (is_complete)
        count = job->total - job->failures;
    else if (job->has_counted)
        count = job->at_least ? job->done : job->total - job->failures - job->missing;
    else if (job->leaves == 1 && done->leaf.there)
        count = done->leaf.done;
    flow_answer(
        flow, 200,
        "{'counted':%d,'complete':%b,'last':%b%[%?,'done':%d%]%[%?,'exact':false%]%[,'unknown':[%r]%]}",
        done->counted, is_complete, job->is_last, count >= 0, count, !is_complete && job->at_least,
        unknown_text(flow, done));
}
