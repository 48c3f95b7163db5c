/* Jobs: reading all leaves, and healing what somebody left half done. The tables and what holds for them:
 * job.c.
 *
 * The branches are read first: they tell which leaves are full, so that only the others need be read. */
#include "pattern/job.h"

static flow_step parts_taken, parts_resend, branches_ask, branches_taken, leaves_ask, leaves_taken, tallies_begin,
    tallies_ask, tallies_taken, heal_next;

/* ---- parts by the hundred ---- */

static void parts_ask(struct flow *flow, int level, flow_step *then)
{
    struct job_work *work = flow->state;
    struct buf keys = {0};
    for (unsigned i = 0; i < work->walk.asked_count; i++) {
        if (i) buf_byte(&keys, ',');
        buf_slice(&keys, job_part_key(flow, level, work->walk.asked[i]));
        work->walk.items[i] = SLICE_NONE;
    }
    work->walk.read = then;
    flow_call(flow, parts_taken, "BatchGetItem", "{'RequestItems':{%T:{'Keys':[%A],'ConsistentRead':true}}}",
              &job_parts_table, buf_view(&keys));
    buf_free(&keys);
}

/* The number behind the last slash of a part's key. */
static int64_t index_of(struct flow *flow, struct slice item)
{
    struct slice part = item_text(flow->arena, item, "part");
    unsigned long long index;
    size_t start = part.len;
    while (start > 0 && part.data[start - 1] != '/') start--;
    return slice_to_u64(slice_from(part, start), INT64_MAX, &index) ? (int64_t)index : -1;
}

static void part_keep(struct flow *flow, struct slice item)
{
    struct job_work *work = flow->state;
    int64_t index = index_of(flow, item);
    for (unsigned i = 0; i < work->walk.asked_count; i++)
        if (work->walk.asked[i] == index) work->walk.items[i] = item;
}

static void parts_taken(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct raw_look tables, look;
    struct slice name, items, item;
    raw_look_begin(&tables, flow->arena, raw_member(flow->arena, flow->reply.body, "Responses"));
    while (raw_look_next(&tables, &name, &items)) {
        raw_look_begin(&look, flow->arena, items);
        while (raw_look_next(&look, NULL, &item)) part_keep(flow, item);
    }
    work->walk.rest = raw_member(flow->arena, flow->reply.body, "UnprocessedKeys");
    if (raw_count(flow->arena, work->walk.rest))
        flow_again(flow, parts_resend);
    else
        work->walk.read(flow);
}

static void parts_resend(struct flow *flow)
{
    const struct job_work *work = flow->state;
    flow_call(flow, parts_taken, "BatchGetItem", "{'RequestItems':%A}", work->walk.rest);
}

/* ---- branches ---- */

static void walk_begin(struct flow *flow, int64_t from, int64_t to,
                       void (*each)(struct flow *flow, const struct leaf *leaf),
                       bool (*stops)(const struct flow *flow), flow_step *then)
{
    struct job_work *work = flow->state;
    if (to > work->job.leaves) to = work->job.leaves;
    work->walk.at = from;
    work->walk.end = to;
    work->walk.all = work->walk.failing = work->walk.stays_above = work->walk.sums_up = work->walk.at_least = false;
    work->walk.each = each;
    work->walk.stops = stops;
    work->walk.then = then;
    work->walk.missing = work->walk.done = 0;
    work->walk.full_count = 0;
    work->walk.branch = from / JOB_FAN;
    work->walk.branches = work->job.branches;
    work->walk.marked = arena_zero(flow->arena, (size_t)work->job.leaves);
    work->walk.whole = arena_zero(flow->arena, (size_t)work->job.branches);
}

void job_walk_failing(struct flow *flow, int64_t from, int64_t to,
                      void (*each)(struct flow *flow, const struct leaf *leaf),
                      bool (*stops)(const struct flow *flow), flow_step *then)
{
    struct job_work *work = flow->state;
    walk_begin(flow, from, to, each, stops, then);
    work->walk.failing = true;
    memset(work->walk.marked, 1, (size_t)work->job.leaves);
    branches_ask(flow);
}

void job_walk(struct flow *flow, int64_t from, int64_t to, bool all,
              void (*each)(struct flow *flow, const struct leaf *leaf),
              bool (*stops)(const struct flow *flow), flow_step *then)
{
    struct job_work *work = flow->state;
    walk_begin(flow, from, to, each, stops, then);
    work->walk.all = all;
    if (all)
        leaves_ask(flow);
    else
        branches_ask(flow);
}

static void branches_ask(struct flow *flow)
{
    struct job_work *work = flow->state;
    work->walk.asked_count = 0;
    while (work->walk.asked_count < JOB_BATCH && work->walk.branch * JOB_FAN < work->walk.end)
        work->walk.asked[work->walk.asked_count++] = work->walk.branch++;
    if (work->walk.asked_count)
        parts_ask(flow, 1, branches_taken);
    else if (work->walk.stays_above)
        work->walk.then(flow);
    else if (work->walk.sums_up)
        tallies_begin(flow);
    else
        leaves_ask(flow);
}

static void branches_taken(struct flow *flow)
{
    struct job_work *work = flow->state;
    for (unsigned i = 0; i < work->walk.asked_count; i++) {
        struct raw_look look;
        struct slice element;
        int64_t leaf, branch = work->walk.asked[i], count = 0;
        const char *set = work->walk.failing ? "failing" : "full";
        raw_look_begin(&look, flow->arena, item_content(flow->arena, work->walk.items[i], set));
        while (raw_look_next(&look, NULL, &element)) {
            if (raw_int(raw_text(flow->arena, element), &leaf) && leaf >= 0 && leaf < work->job.leaves)
                work->walk.marked[leaf] = !work->walk.failing;
            count++;
        }
        work->walk.whole[branch] = !work->walk.failing && count && count == job_branch_wanted(&work->job, branch);
    }
    branches_ask(flow);
}

/* ---- leaves ---- */

static void leaves_ask(struct flow *flow)
{
    struct job_work *work = flow->state;
    work->walk.asked_count = 0;
    if (!work->walk.stops || !work->walk.stops(flow))
        for (; work->walk.asked_count < JOB_BATCH && work->walk.at < work->walk.end; work->walk.at++)
            if (work->walk.all || !work->walk.marked[work->walk.at])
                work->walk.asked[work->walk.asked_count++] = work->walk.at;
    if (work->walk.asked_count)
        parts_ask(flow, 0, leaves_taken);
    else
        work->walk.then(flow);
}

static void leaves_taken(struct flow *flow)
{
    struct job_work *work = flow->state;
    const unsigned room = sizeof work->walk.full / sizeof *work->walk.full;
    for (unsigned i = 0; i < work->walk.asked_count; i++) {
        struct leaf leaf;
        job_leaf_read(flow, work->walk.asked[i], work->walk.items[i], &leaf);
        work->walk.missing += leaf.wanted - leaf.done - leaf.failed;
        work->walk.done += leaf.done;
        if (job_leaf_is_full(&leaf) && !work->walk.all && !work->walk.failing &&
            work->walk.full_count < room)
            work->walk.full[work->walk.full_count++] = leaf;
        if (work->walk.each) work->walk.each(flow, &leaf);
        if (work->walk.stops && work->walk.stops(flow)) {
            work->walk.at = leaf.index + 1;
            break;
        }
    }
    leaves_ask(flow);
}

/* ---- tallies ----
 *
 * Who brings a leaf to a quarter, a half or three quarters of its tasks adds that to a tally, so that one read
 * tells of 64 leaves what a quarter more or less matters. That costs three writes for 256 tasks. The tally has a
 * set of numbers, LEAF * 1024 + DONE, of which the greatest counts: so each may be added again, and one that was
 * lost with its caller is made good by the next. Full leaves are known by their branches, unless the tasks have
 * names, of which leaves have different numbers, or the total is not known. */

#define TALLIED_MOST 1024

int64_t job_tallies(const struct job *job)
{
    return job->leaves > JOB_FEW || job->reached ? (job->leaves + JOB_TALLY - 1) / JOB_TALLY : 0;
}

static bool tallies_full(const struct job *job)
{
    return job->named || job->total < 0;
}

void job_tally(struct flow *flow, const struct leaf *leaf, int64_t before, flow_step *then)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    int64_t quarter = leaf->wanted ? leaf->done * 4 / leaf->wanted : 0;
    bool is_further = leaf->wanted && quarter > before * 4 / leaf->wanted;
    int64_t number = leaf->index % JOB_TALLY * TALLIED_MOST + leaf->done;
    bool has_tallies = job->total < 0 || job_tallies(job);
    if (!has_tallies || !is_further || (quarter == 4 && !tallies_full(job)) || leaf->done >= TALLIED_MOST)
        then(flow);
    else
        flow_call(flow, then, "UpdateItem",
                  "{'TableName':%T,'Key':%A,'UpdateExpression':'ADD #tally :number',%#,"
                  "'ExpressionAttributeValues':{':number':%A}}",
                  &job_parts_table, job_part_key(flow, 2, leaf->index / JOB_TALLY), job_number_set(flow, &number, 1));
}

/* Few leaves are read themselves, which also heals them. */
static void tallies_begin(struct flow *flow)
{
    struct job_work *work = flow->state;
    int64_t open = 0;
    for (int64_t i = 0; i < work->job.leaves; i++) open += !work->walk.marked[i];
    work->walk.tally = 0;
    work->walk.at_least = open > JOB_FEW;
    if (work->walk.at_least)
        tallies_ask(flow);
    else
        leaves_ask(flow);
}

/* Who is full has all tasks done but those that failed, of which only the head knows how many. */
static void tallies_end(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    bool has_full = false;
    for (int64_t i = 0; i < job->leaves && !tallies_full(job); i++) {
        if (!work->walk.marked[i]) continue;
        work->walk.done += job_leaf_wanted(job, i);
        has_full = true;
    }
    if (has_full) work->walk.done -= job->failures;
    if (work->walk.done < 0) work->walk.done = 0;
    work->walk.missing = job->total < 0 ? 0 : job->total - work->walk.done - job->failures;
    work->walk.then(flow);
}

static void tallies_ask(struct flow *flow)
{
    struct job_work *work = flow->state;
    work->walk.asked_count = 0;
    while (work->walk.asked_count < JOB_BATCH && work->walk.tally < job_tallies(&work->job))
        work->walk.asked[work->walk.asked_count++] = work->walk.tally++;
    if (work->walk.asked_count)
        parts_ask(flow, 2, tallies_taken);
    else
        tallies_end(flow);
}

static void tallies_taken(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    for (unsigned i = 0; i < work->walk.asked_count; i++) {
        struct raw_look look;
        struct slice element;
        int64_t done[JOB_TALLY] = {0}, number, first = work->walk.asked[i] * JOB_TALLY;
        raw_look_begin(&look, flow->arena, item_content(flow->arena, work->walk.items[i], "tally"));
        while (raw_look_next(&look, NULL, &element)) {
            if (!raw_int(raw_text(flow->arena, element), &number) || number < 0) continue;
            int64_t leaf = number / TALLIED_MOST, count = number % TALLIED_MOST;
            if (leaf < JOB_TALLY && done[leaf] < count) done[leaf] = count;
        }
        for (int64_t leaf = 0; leaf < JOB_TALLY && first + leaf < job->leaves; leaf++)
            if (tallies_full(job) || !work->walk.marked[first + leaf]) work->walk.done += done[leaf];
    }
    tallies_ask(flow);
}

/* ---- healing ---- */

static void heal_walked(struct flow *flow)
{
    struct job_work *work = flow->state;
    work->walk.healed = 0;
    work->walk.healed_branch = 0;
    heal_next(flow);
}

void job_heal(struct flow *flow, flow_step *then)
{
    struct job_work *work = flow->state;
    work->walk.healed_then = then;
    job_walk(flow, 0, work->job.leaves, false, NULL, NULL, heal_walked);
}

void job_sum(struct flow *flow, flow_step *then)
{
    struct job_work *work = flow->state;
    walk_begin(flow, 0, work->job.leaves, NULL, NULL, then);
    work->walk.sums_up = true;
    branches_ask(flow);
}

void job_count(struct flow *flow, flow_step *then)
{
    struct job_work *work = flow->state;
    work->walk.healed_then = then;
    job_sum(flow, heal_walked);
}

void job_heal_branches(struct flow *flow, flow_step *then)
{
    struct job_work *work = flow->state;
    work->walk.healed_then = then;
    walk_begin(flow, 0, work->job.leaves, NULL, NULL, heal_walked);
    work->walk.stays_above = true;
    branches_ask(flow);
}

/* A branch that is full is brought up only where the head does not say so, or the job should have ended. */
static bool needs_climb(struct flow *flow, int64_t branch)
{
    const struct job_work *work = flow->state;
    int64_t count;
    bool known = job_branch_is_known(flow, branch, &count);
    return work->walk.whole[branch] && (!known || count == work->job.branches);
}

static void heal_next(struct flow *flow)
{
    struct job_work *work = flow->state;
    bool is_open = work->job.state == JOB_OPEN && work->job.total >= 0;
    if (is_open && work->walk.healed < work->walk.full_count) {
        job_climb(flow, &work->walk.full[work->walk.healed++], false, heal_next);
        return;
    }
    while (is_open && work->walk.healed_branch < work->walk.branches) {
        int64_t branch = work->walk.healed_branch++;
        if (!needs_climb(flow, branch)) continue;
        job_climb_branch(flow, branch, heal_next);
        return;
    }
    work->walk.healed_then(flow);
}
