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

enum page_kind { PAGE_MISSING, PAGE_FAILURES, PAGE_RESULTS };

struct page {
    enum page_kind kind;
    const char *name;
    struct buf *out; /* the answer's */
    int64_t count;
    struct leaf *leaves; /* whose details are still to be read */
    int64_t leaf_count, leaf_at;
    struct slice last; /* where the next page of details begins */
};

static flow_step page_loaded, page_end, details_ask, details_taken;

static void page_begin(struct flow *flow, enum page_kind kind, const char *name)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct page *page = work->own = arena_new(flow->arena, struct page);
    page->kind = kind;
    page->name = name;
    job_load(flow, true, page_loaded);
}

void job_missing(struct flow *flow)
{
    page_begin(flow, PAGE_MISSING, "missing");
}

void job_failures(struct flow *flow)
{
    page_begin(flow, PAGE_FAILURES, "failures");
}

void job_results(struct flow *flow)
{
    page_begin(flow, PAGE_RESULTS, "results");
}

static void page_put(struct flow *flow, struct slice text)
{
    struct job_work *work = flow->state;
    struct page *page = work->own;
    if (page->count++) buf_byte(flow->body, ',');
    buf_slice(flow->body, text);
}

static void missing_leaf(struct flow *flow, const struct leaf *leaf)
{
    for (int64_t i = 0; i < leaf->count; i++)
        if (!leaf->marks[i]) page_put(flow, job_task_text(flow, leaf, i));
}

static void detailed_leaf(struct flow *flow, const struct leaf *leaf)
{
    struct job_work *work = flow->state;
    struct page *page = work->own;
    int64_t found = page->kind == PAGE_FAILURES ? leaf->failed : leaf->done;
    if (found) page->leaves[page->leaf_count++] = *leaf;
    page->count += found;
}

static bool page_is_full(const struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct page *page = work->own;
    return page->count >= flow_int_or(flow, PAGE_LIMIT, PAGE_USUAL);
}

static void details_begin(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct page *page = work->own;
    page->count = 0;
    details_ask(flow);
}

static void page_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct page *page = work->own;
    const struct job *job = &work->job;
    bool is_missing = page->kind == PAGE_MISSING;
    int64_t from = flow_int(flow, PAGE_AFTER);
    if (!job->item.data || job->state == JOB_DELETING) {
        job_refuse_unknown(flow);
        return;
    }
    if (is_missing && job->total < 0) {
        flow_refuse(flow, 409, "total-unknown", "How many tasks the job has was not told yet.");
        return;
    }
    buf_slice(flow->body, flow_compose(flow, "{%s:[", slice_of(page->name)));
    if (!is_missing) page->leaves = arena_array(flow->arena, struct leaf, (size_t)job->leaves);
    if (from >= job->leaves || (page->kind == PAGE_FAILURES && !job->failures))
        page_end(flow);
    else if (page->kind == PAGE_FAILURES)
        job_walk_failing(flow, from, job->leaves, detailed_leaf, page_is_full, details_begin);
    else
        job_walk(flow, from, job->leaves, !is_missing, is_missing ? missing_leaf : detailed_leaf,
                 page_is_full, is_missing ? page_end : details_begin);
}

/* ---- results and reasons ---- */

static void details_ask(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct page *page = work->own;
    if (page->leaf_at == page->leaf_count) {
        page_end(flow);
        return;
    }
    struct slice key = job_part_key(flow, 0, page->leaves[page->leaf_at].index);
    flow_call(flow, details_taken, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#part = :part and #task > :leaf',%#,"
              "'ExpressionAttributeValues':{':part':%A,':leaf':{'S':'-'}},'ConsistentRead':true%r}",
              &job_parts_table, item_attribute(flow->arena, key, "part"),
              page->last.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", page->last) : SLICE(""));
}

/* The task's place in its leaf, by the key of its details; -1: none. */
static int64_t offset_of(struct flow *flow, const struct leaf *leaf, struct slice item)
{
    const struct job_work *work = flow->state;
    struct slice task = item_text(flow->arena, item, "task");
    int64_t number;
    if (leaf->names) return task.len ? job_leaf_find(leaf, slice_from(task, 1)) : -1;
    if (!raw_int(task, &number)) return -1;
    number -= leaf->index * work->job.fan;
    return number >= 0 && number < leaf->count ? number : -1;
}

static void details_taken(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct page *page = work->own;
    const struct leaf *leaf = &page->leaves[page->leaf_at];
    bool failures = page->kind == PAGE_FAILURES;
    const char *name = failures ? "reason" : "result";
    struct raw_look look;
    struct slice item;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (raw_look_next(&look, NULL, &item)) {
        int64_t offset = offset_of(flow, leaf, item);
        struct slice value = item_attribute(flow->arena, item, name);
        if (offset < 0 || !value.data || (leaf->marks[offset] & LEAF_DONE) == failures) continue;
        page_put(flow, flow_compose(flow, "{'task':%A,%s:%P}", job_task_text(flow, leaf, offset),
                                    slice_of(name), value));
    }
    page->last = flow_last_key(flow);
    if (!page->last.data) page->leaf_at++;
    details_ask(flow);
}

static void page_end(struct flow *flow)
{
    const struct job_work *work = flow->state;
    int64_t next = work->walk.at;
    buf_text(flow->body, "]");
    if (work->walk.then && next < work->job.leaves)
        buf_slice(flow->body, flow_compose(flow, ",'next':%d", next));
    buf_text(flow->body, "}");
    flow_finish(flow, 200);
}
