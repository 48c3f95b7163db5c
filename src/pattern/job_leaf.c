/* Jobs: the leaves, in which it is written which tasks are done. The tables and what holds for them: job.c. */
#include "base/hash.h"
#include "pattern/job.h"

static struct slice part_name(struct flow *flow, int level, int64_t index)
{
    const struct job *job = flow->state;
    return arena_printf(flow->arena, "%.*s/%.*s/%d/%lld", SLICE_ARG(job->id), SLICE_ARG(job->run), level,
                        (long long)index);
}

struct slice job_part_key(struct flow *flow, int level, int64_t index)
{
    return flow_compose(flow, "{'part':%S,'task':{'S':'-'}}", part_name(flow, level, index));
}

struct slice job_task_key(struct flow *flow, const struct leaf *leaf, int64_t offset)
{
    const struct job *job = flow->state;
    int64_t number = leaf->index * job->fan + offset;
    struct slice task = leaf->names ? arena_printf(flow->arena, ":%.*s", SLICE_ARG(leaf->names[offset]))
                                    : arena_printf(flow->arena, "%09lld", (long long)number);
    return flow_compose(flow, "{'part':%S,'task':%S}", part_name(flow, LEVEL_LEAF, leaf->index), task);
}

int64_t job_leaf_wanted(const struct job *job, int64_t index)
{
    int64_t left = job->total < 0 ? job->fan : job->total - index * job->fan;
    return left < 0 ? 0 : left < job->fan ? left : job->fan;
}

int64_t job_leaf_of_name(const struct job *job, struct slice name)
{
    return (int64_t)(hash_bytes(name) % (uint64_t)job->leaves);
}

/* ---- reading ---- */

/* Marks the numbers of a set, {"NS":["7","12"]}, which every done task reads: whole ones that are no offset count as
 * little as what lies behind the leaf's end, where the total came later. */
static void mark_numbers(struct slice set, uint8_t mark, struct leaf *leaf)
{
    for (const char *at = set.data, *end = at + set.len; at < end;) {
        unsigned digit = (unsigned char)(*at++ - '0');
        if (digit > 9) continue;
        int64_t offset = digit;
        for (; at < end && (digit = (unsigned char)(*at - '0')) <= 9; at++)
            if (offset < JOB_SET_MOST) offset = offset * 10 + digit;
        if (offset < leaf->count) leaf->marks[offset] |= mark;
        if (end - at > 3) at += 3 * (at[0] == '"' && at[1] == ',' && at[2] == '"');
    }
}

static void mark_names(struct flow *flow, struct slice set, uint8_t mark, struct leaf *leaf)
{
    struct slice quoted;
    raw_each (flow->arena, attribute_content(flow->arena, set), &quoted) {
        leaf->names[leaf->count] = raw_text(flow->arena, quoted);
        leaf->marks[leaf->count++] = mark;
    }
}

static size_t set_size(struct flow *flow, struct slice set)
{
    return raw_count(flow->arena, attribute_content(flow->arena, set));
}

/* Its attributes are found in one pass: its sets may be long. */
void job_leaf_read(struct flow *flow, int64_t index, struct slice item, struct leaf *leaf)
{
    enum { WAITING, DONE, FAILED, WANTED, CLOSED, EPOCH, ONCE, PAGES, ALL };
    static const char *const names[ALL] = {"waiting", "done",  "failed",      "wanted",
                                           "closed",  "epoch", "failed_once", "pages"};
    struct job *job = flow->state;
    struct slice found[ALL];
    raw_pick(flow->arena, item, names, found, ALL);
    *leaf = (struct leaf){.index = index,
                          .there = job->named ? found[WANTED].data != NULL : item.data != NULL,
                          .wanted = job->named ? attribute_int(flow->arena, found[WANTED], 0)
                                               : job_leaf_wanted(job, index),
                          .epoch = attribute_int(flow->arena, found[EPOCH], 0),
                          .closed = attribute_int(flow->arena, found[CLOSED], 0) > job->revived_ms,
                          .failed_once = found[ONCE].data != NULL,
                          .failed_set = found[FAILED],
                          .pages = found[PAGES]};
    if (job->named) {
        size_t most = set_size(flow, found[WAITING]) + set_size(flow, found[DONE]) +
                      set_size(flow, found[FAILED]);
        leaf->names = arena_array(flow->arena, struct slice, most + 1);
        leaf->marks = arena_zero(flow->arena, most + sizeof(uint64_t));
        mark_names(flow, found[WAITING], 0, leaf);
        mark_names(flow, found[DONE], LEAF_DONE, leaf);
        mark_names(flow, found[FAILED], LEAF_FAILED, leaf);
    } else {
        leaf->count = leaf->wanted;
        leaf->marks = arena_zero(flow->arena, (size_t)leaf->count + sizeof(uint64_t));
        mark_numbers(found[DONE], LEAF_DONE, leaf);
        mark_numbers(found[FAILED], LEAF_FAILED, leaf);
    }
    /* Eight marks at a time: every done task counts its leaf. There are zeros behind the last one. */
    const uint64_t ones = UINT64_MAX / 255;
    leaf->done = leaf->failed = 0;
    for (int64_t i = 0; i < leaf->count; i += 8) {
        uint64_t marks;
        memcpy(&marks, leaf->marks + i, sizeof marks);
        uint64_t done = marks / LEAF_DONE & ones, failed = marks / LEAF_FAILED & ones;
        leaf->done += (int64_t)((done & ~failed) * ones >> 56);
        leaf->failed += (int64_t)((failed & ~done) * ones >> 56);
    }
}

void job_leaf_load(struct flow *flow, int64_t index, struct leaf *leaf)
{
    struct slice item = task_get(flow, &job_parts_table, "%A", job_part_key(flow, LEVEL_LEAF, index));
    job_leaf_read(flow, index, item, leaf);
}

void job_leaf_mark(struct leaf *leaf, int64_t offset, uint8_t mark)
{
    uint8_t *now = &leaf->marks[offset];
    leaf->done += (mark == LEAF_DONE) - (*now == LEAF_DONE);
    leaf->failed += (mark == LEAF_FAILED) - (*now == LEAF_FAILED);
    *now = mark;
}

bool job_leaf_is_full(const struct job *job, const struct leaf *leaf)
{
    return leaf->there && job->total >= 0 && leaf->done + leaf->failed == leaf->wanted;
}

void job_leaf_if_names(struct flow *flow, struct edit *edit, const struct slice *names, size_t count,
                       bool has)
{
    const char *format =
        has ? "(contains(#waiting, :n%zu) or contains(#done, :n%zu) or contains(#failed, :n%zu))"
            : "not contains(#waiting, :n%zu) and not contains(#done, :n%zu) and not "
              "contains(#failed, :n%zu)";
    for (size_t i = 0; i < count; i++)
        edit_if(flow, edit, arena_printf(flow->arena, format, i, i, i).data, "':n%d':%S", (int64_t)i,
                names[i]);
}

int64_t job_leaf_find(const struct leaf *leaf, struct slice name)
{
    for (int64_t i = 0; i < leaf->count; i++)
        if (slice_equal(leaf->names[i], name)) return i;
    return -1;
}

/* ---- writing ---- */

struct slice job_number_set(struct flow *flow, int64_t number)
{
    return flow_compose(flow, "{'NS':['%d']}", number);
}

struct slice job_leaf_set(struct flow *flow, const struct leaf *leaf, const int64_t *offsets, size_t count)
{
    struct buf out = {0};
    buf_slice(&out, leaf->names ? SLICE("{\"SS\":[") : SLICE("{\"NS\":["));
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(&out, ',');
        if (leaf->names)
            json_put_string(&out, leaf->names[offsets[i]]);
        else
            buf_printf(&out, "\"%lld\"", (long long)offsets[i]);
    }
    buf_text(&out, "]}");
    return arena_take(flow->arena, &out);
}

struct slice job_task_text(struct flow *flow, const struct leaf *leaf, int64_t offset)
{
    const struct job *job = flow->state;
    if (leaf->names) return flow_compose(flow, "%s", leaf->names[offset]);
    return flow_compose(flow, "%d", job->first + leaf->index * job->fan + offset);
}

/* ---- what was sent ---- */

struct slice job_task_sent(struct flow *flow, struct slice value, int64_t *number)
{
    enum json_kind kind = raw_kind(value);
    struct slice name = kind == JSON_STRING ? raw_text(flow->arena, value) : SLICE_NONE;
    *number = 0;
    if (kind == JSON_STRING ? name.len && name.len <= JOB_NAME_BYTES
                            : kind == JSON_NUMBER && raw_int(value, number))
        return name;
    task_refuse(flow, 400, "bad-request", "A task is a whole number, or a name of 1 to %d bytes.",
                JOB_NAME_BYTES);
}
