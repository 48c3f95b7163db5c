/* Jobs: the leaves, in which it is written which tasks are done. The tables and what holds for them: job.c.
 */
#include "base/fail.h"
#include "base/hash.h"
#include "pattern/job.h"

struct slice job_part_key(struct flow *flow, int level, int64_t index)
{
    const struct job_work *work = flow->state;
    struct slice part = arena_printf(flow->arena, "%.*s/%.*s/%d/%lld", SLICE_ARG(work->id),
                                     SLICE_ARG(work->job.run), level, (long long)index);
    return flow_compose(flow, "{'part':%S,'task':{'S':'-'}}", part);
}

struct slice job_task_key(struct flow *flow, const struct leaf *leaf, int64_t offset)
{
    const struct job_work *work = flow->state;
    int64_t number = leaf->index * work->job.fan + offset;
    struct slice task = leaf->names ? arena_printf(flow->arena, ":%.*s", SLICE_ARG(leaf->names[offset]))
                                    : arena_printf(flow->arena, "%09lld", (long long)number);
    struct slice part = arena_printf(flow->arena, "%.*s/%.*s/0/%lld", SLICE_ARG(work->id),
                                     SLICE_ARG(work->job.run), (long long)leaf->index);
    return flow_compose(flow, "{'part':%S,'task':%S}", part, task);
}

/* ---- how many there are ---- */

static int64_t at_most(int64_t number, int64_t most)
{
    return number < most ? number : most;
}

int64_t job_leaf_wanted(const struct job *job, int64_t index)
{
    return job->total < 0 ? job->fan : at_most(job->fan, job->total - index * job->fan);
}

int64_t job_branch_wanted(const struct job *job, int64_t branch)
{
    return at_most(JOB_FAN, job->leaves - branch * JOB_FAN);
}

int64_t job_leaf_of_name(const struct job *job, struct slice name)
{
    return (int64_t)(hash_bytes(name) % (uint64_t)job->leaves);
}

/* ---- reading ---- */

/* The attributes of a leaf's item, found in one walk: its sets may be long. */
struct parts {
    struct slice waiting, done, failed, wanted, closed;
};

static struct parts parts_find(struct flow *flow, struct slice item)
{
    struct parts parts = {0};
    struct raw_look look;
    struct slice name, value;
    raw_look_begin(&look, flow->arena, item);
    while (raw_look_next(&look, &name, &value)) {
        if (slice_equal(name, SLICE("waiting"))) parts.waiting = value;
        if (slice_equal(name, SLICE("done"))) parts.done = value;
        if (slice_equal(name, SLICE("failed"))) parts.failed = value;
        if (slice_equal(name, SLICE("wanted"))) parts.wanted = value;
        if (slice_equal(name, SLICE("closed"))) parts.closed = value;
    }
    return parts;
}

/* Marks the numbers of a set. What lies behind the leaf's end does not count: the total came later. Answers
 * how many do not. */
static int64_t mark_numbers(struct flow *flow, struct slice set, uint8_t mark, struct leaf *leaf)
{
    struct raw_look look;
    struct slice quoted;
    int64_t offset, beyond = 0;
    raw_look_begin(&look, flow->arena, attribute_content(flow->arena, set));
    while (raw_look_next(&look, NULL, &quoted)) {
        struct slice number = {quoted.data + 1, quoted.len < 2 ? 0 : quoted.len - 2};
        if (raw_int(number, &offset) && offset >= 0 && offset < leaf->count)
            leaf->marks[offset] |= mark;
        else
            beyond++;
    }
    return beyond;
}

static void mark_names(struct flow *flow, struct slice set, uint8_t mark, struct leaf *leaf)
{
    struct raw_look look;
    struct slice quoted;
    raw_look_begin(&look, flow->arena, attribute_content(flow->arena, set));
    while (raw_look_next(&look, NULL, &quoted)) {
        struct slice element = raw_text(flow->arena, quoted);
        int64_t offset = job_leaf_find(leaf, element);
        if (offset < 0) {
            offset = leaf->count++;
            leaf->names[offset] = element;
            leaf->marks[offset] = 0;
        }
        leaf->marks[offset] |= mark;
    }
}

static size_t set_size(struct flow *flow, struct slice set)
{
    return raw_count(flow->arena, attribute_content(flow->arena, set));
}

void job_leaf_read(struct flow *flow, int64_t index, struct slice item, struct leaf *leaf)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct parts parts = parts_find(flow, item);
    *leaf = (struct leaf){.index = index, .there = item.data != NULL};
    leaf->failed_set = parts.failed;
    leaf->closed = parts.closed.data && attribute_int(flow->arena, parts.closed, INT64_MAX) > job->revived_ms;
    if (!raw_int(raw_text(flow->arena, attribute_content(flow->arena, parts.wanted)), &leaf->wanted))
        leaf->wanted = job->named ? 0 : job_leaf_wanted(job, index);
    if (job->named) {
        size_t most = set_size(flow, parts.waiting) + set_size(flow, parts.done) +
                      set_size(flow, parts.failed);
        leaf->names = arena_array(flow->arena, struct slice, most);
        leaf->marks = arena_zero(flow->arena, most);
        mark_names(flow, parts.waiting, 0, leaf);
        mark_names(flow, parts.done, LEAF_DONE, leaf);
        mark_names(flow, parts.failed, LEAF_FAILED, leaf);
    } else {
        leaf->count = leaf->wanted;
        leaf->marks = arena_zero(flow->arena, (size_t)leaf->count);
        leaf->done_beyond = mark_numbers(flow, parts.done, LEAF_DONE, leaf);
        leaf->failed_beyond = mark_numbers(flow, parts.failed, LEAF_FAILED, leaf);
    }
    job_leaf_count(leaf);
}

void job_leaf_count(struct leaf *leaf)
{
    leaf->done = leaf->failed = leaf->both = 0;
    for (int64_t i = 0; i < leaf->count; i++) {
        leaf->done += (leaf->marks[i] & LEAF_DONE) != 0;
        leaf->failed += leaf->marks[i] == LEAF_FAILED;
        leaf->both += leaf->marks[i] == (LEAF_DONE | LEAF_FAILED);
    }
}

bool job_leaf_is_full(const struct leaf *leaf)
{
    return leaf->there && leaf->done + leaf->failed == leaf->wanted;
}

struct slice job_leaf_unclosed(struct flow *flow, struct slice *values)
{
    const struct job_work *work = flow->state;
    *values = SLICE("");
    if (!work->job.revived_ms) return SLICE("attribute_not_exists(#closed)");
    *values = flow_compose(flow, ",':revived':%N", work->job.revived_ms);
    return SLICE("(attribute_not_exists(#closed) or #closed <= :revived)");
}

int64_t job_leaf_find(const struct leaf *leaf, struct slice name)
{
    for (int64_t i = 0; i < leaf->count; i++)
        if (slice_equal(leaf->names[i], name)) return i;
    return -1;
}

/* ---- writing ---- */

struct slice job_number_set(struct flow *flow, const int64_t *numbers, size_t count)
{
    struct buf out = {0};
    buf_text(&out, "{\"NS\":[");
    for (size_t i = 0; i < count; i++) {
        buf_slice(&out, i ? SLICE(",\"") : SLICE("\""));
        json_put_int(&out, numbers[i]);
        buf_byte(&out, '"');
    }
    buf_text(&out, "]}");
    struct slice text = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return text;
}

struct slice job_leaf_set(struct flow *flow, const struct leaf *leaf, const int64_t *offsets, size_t count)
{
    struct buf out = {0};
    if (!leaf->names) return job_number_set(flow, offsets, count);
    buf_text(&out, "{\"SS\":[");
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(&out, ',');
        json_put_string(&out, leaf->names[offsets[i]]);
    }
    buf_text(&out, "]}");
    struct slice text = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return text;
}

struct slice job_task_text(struct flow *flow, const struct leaf *leaf, int64_t offset)
{
    const struct job_work *work = flow->state;
    if (leaf->names) return flow_compose(flow, "%s", leaf->names[offset]);
    return flow_compose(flow, "%d", work->job.first + leaf->index * work->job.fan + offset);
}

/* Done tasks only come, and a failed one is never done as well where this is used, so sizes tell all. */
struct slice job_leaf_same(struct flow *flow, const struct leaf *leaf, struct slice *values)
{
    int64_t done = leaf->done + leaf->done_beyond, failed = leaf->failed + leaf->failed_beyond;
    ensure(leaf->both == 0);
    *values = flow_compose(flow, "':wanted':%N%r%r", leaf->wanted,
                           done ? flow_compose(flow, ",':done':%N", done) : SLICE(""),
                           failed ? flow_compose(flow, ",':failed':%N", failed) : SLICE(""));
    return flow_compose(flow, "#wanted = :wanted and %r and %r",
                        done ? SLICE("size(#done) = :done") : SLICE("attribute_not_exists(#done)"),
                        failed ? SLICE("size(#failed) = :failed") : SLICE("attribute_not_exists(#failed)"));
}
