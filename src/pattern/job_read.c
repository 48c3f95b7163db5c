/* Jobs: lists of tasks that are missing or failed, and of the results. The tables and what holds for them:
 * job.c.
 *
 * Pages consist of whole leaves; `next` is the number of the leaf that comes next. */
#include "pattern/job.h"
#include "pattern/rows.h"

#define PAGE_MOST  100000
#define PAGE_USUAL 1000

enum { PAGE_LIMIT = JOB_ID + 1, PAGE_AFTER };

const struct field job_page_fields[] = {
    FIELD_JOB_ID,
    [PAGE_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = PAGE_MOST,
                    .help = "so many, and the rest of the last 256 (default: 1000)"},
    [PAGE_AFTER] = {"after", IN_QUERY, FIELD_INT, .max = JOB_TASKS_MOST,
                    .help = "the \"next\" of the page before"},
};

/* Behind the last leaf that was read. */
static void page_end(struct flow *flow, const struct job_scan *scan)
{
    const struct job *job = flow->state;
    int64_t next = scan && scan->next < scan->count ? scan->asked[scan->next] : scan ? scan->at : job->leaves;
    flow_put(flow, flow->body, "]%[%?,'next':%d%]}", next < job->leaves, next);
    flow_finish(flow, 200);
}

void job_missing(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct job_scan *scan = NULL;
    struct leaf leaf;
    int64_t count = 0, from = flow_int(flow, PAGE_AFTER), most = flow_int_or(flow, PAGE_LIMIT, PAGE_USUAL);
    job_load_existing(flow);
    if (job->total < 0)
        task_refuse(flow, 409, "total-unknown", "How many tasks the job has was not told yet.");
    buf_text(flow->body, "{\"missing\":[");
    if (from < job->leaves) scan = job_scan_begin(flow, from, SCAN_UNSETTLED);
    while (scan && count < most && job_scan_next(flow, scan, &leaf))
        for (int64_t i = 0; i < leaf.count; i++) {
            if (leaf.marks[i]) continue;
            flow_put(flow, flow->body, "%,%A", job_task_text(flow, &leaf, i));
            count++;
        }
    page_end(flow, scan);
}

/* ---- results and reasons ---- */

/* The task's place in its leaf, by the key of its details; -1: none. */
static int64_t offset_of(struct flow *flow, const struct leaf *leaf, struct slice item)
{
    const struct job *job = flow->state;
    struct slice task = item_text(flow->arena, item, "task");
    int64_t number;
    if (leaf->names) return task.len ? job_leaf_find(leaf, slice_from(task, 1)) : -1;
    if (!raw_int(task, &number)) return -1;
    number -= leaf->index * job->fan;
    return number >= 0 && number < leaf->count ? number : -1;
}

static bool is_counted(struct flow *flow, const struct leaf *leaf, struct slice page)
{
    struct slice id;
    raw_each (flow->arena, attribute_content(flow->arena, leaf->pages), &id)
        if (slice_equal(raw_text(flow->arena, id), page)) return true;
    return false;
}

/* Takes the results of a page that counts: there they are told first. */
static void page_take(struct flow *flow, const struct leaf *leaf, struct slice item, struct slice *values)
{
    struct slice task = item_text(flow->arena, item, "task"), name, value;
    int64_t offset;
    if (!is_counted(flow, leaf, slice_from(task, 1))) return;
    raw_each_member (flow->arena, item_content(flow->arena, item, "results"), &name, &value) {
        if (leaf->names)
            offset = job_leaf_find(leaf, name);
        else if (!raw_int(name, &offset))
            continue;
        if (offset >= 0 && offset < leaf->count) values[offset] = value;
    }
}

/* What is known of the tasks of a leaf that have this mark. */
static void details_put(struct flow *flow, const struct leaf *leaf, uint8_t mark, const char *name)
{
    struct slice key = job_part_key(flow, LEVEL_LEAF, leaf->index), last = SLICE_NONE, item;
    struct slice *values = arena_zero(flow->arena, (size_t)(leaf->count + 1) * sizeof *values);
    do {
        task_query(flow, "#part = :part and #task > :leaf", READ_FRESH READ_FROM,
                   "':part':%A,':leaf':{'S':'-'}", &job_parts_table, last,
                   item_attribute(flow->arena, key, "part"));
        raw_each (flow->arena, flow_items(flow), &item) {
            bool is_page = slice_starts(item_text(flow->arena, item, "task"), SLICE("="));
            int64_t offset = is_page ? -1 : offset_of(flow, leaf, item);
            if (is_page && mark == LEAF_DONE) page_take(flow, leaf, item, values);
            if (offset >= 0) values[offset] = item_attribute(flow->arena, item, name);
        }
        last = flow_last_key(flow);
    } while (last.data);
    for (int64_t i = 0; i < leaf->count; i++)
        if (values[i].data && leaf->marks[i] == mark)
            flow_put(flow, flow->body, "%,{'task':%A,%s:%P}", job_task_text(flow, leaf, i), slice_of(name),
                     values[i]);
}

static void details_page(struct flow *flow, const char *list, enum job_scan_kind kind, uint8_t mark,
                         const char *name)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct job_scan *scan = NULL;
    struct leaf leaf;
    int64_t found = 0, from = flow_int(flow, PAGE_AFTER);
    int64_t most = flow_int_or(flow, PAGE_LIMIT, PAGE_USUAL);
    job_load_existing(flow);
    flow_put(flow, flow->body, "{%s:[", slice_of(list));
    bool has_some = from < job->leaves && (kind == SCAN_ALL || job->failures);
    if (has_some) scan = job_scan_begin(flow, from, kind);
    while (scan && found < most && job_scan_next(flow, scan, &leaf)) {
        int64_t marked = mark == LEAF_DONE ? leaf.done : leaf.failed;
        if (marked) details_put(flow, &leaf, mark, name);
        found += marked;
    }
    page_end(flow, scan);
}

void job_failures(struct flow *flow)
{
    details_page(flow, "failures", SCAN_FAILING, LEAF_FAILED, "reason");
}

void job_results(struct flow *flow)
{
    details_page(flow, "results", SCAN_ALL, LEAF_DONE, "result");
}
