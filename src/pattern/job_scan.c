/* Jobs: reading all leaves, counting what is done, and healing what somebody left half done. The tables and what holds
 * for them: job.c.
 *
 * The branches are read first: they tell which leaves are full, so that only the others need be read. */
#include "pattern/job.h"
#include "pattern/sweep.h"

/* ---- parts by the hundred ---- */

/* The number behind the last slash of a part's key. */
static int64_t index_of(struct flow *flow, struct slice item)
{
    struct slice part = item_text(flow->arena, item, "part");
    unsigned long long index;
    size_t start = part.len;
    while (start > 0 && part.data[start - 1] != '/') start--;
    return slice_to_u64(slice_from(part, start), INT64_MAX, &index) ? (int64_t)index : -1;
}

/* Reads parts of one level; those that are not there become SLICE_NONE. */
static void parts_read(struct flow *flow, int level, const int64_t *indices, unsigned count,
                       struct slice *items)
{
    struct buf keys = {0};
    struct slice item;
    for (unsigned i = 0; i < count; i++) {
        flow_put(flow, &keys, "%,%A", job_part_key(flow, level, indices[i]));
        items[i] = SLICE_NONE;
    }
    struct item_batch batch = get_items_begin(flow, &job_parts_table, arena_take(flow->arena, &keys),
                                              READ_FRESH);
    while (get_items_next(flow, &batch, &item)) {
        int64_t index = index_of(flow, item);
        for (unsigned i = 0; i < count; i++)
            if (indices[i] == index) items[i] = item;
    }
}

/* ---- leaves, one after the other ---- */

struct job_scan *job_scan_begin(struct flow *flow, int64_t from, enum job_scan_kind kind)
{
    struct job *job = flow->state;
    struct job_scan *scan = arena_new(flow->arena, struct job_scan);
    scan->kind = kind;
    scan->at = from;
    scan->end = job->leaves;
    scan->branch_count = job->branches;
    if (kind == SCAN_ALL) return scan;
    scan->entries = arena_zero(flow->arena, (size_t)(job->branches * JOB_FAN) * sizeof *scan->entries);
    scan->branches = arena_zero(flow->arena, (size_t)job->branches * sizeof *scan->branches);
    int64_t at = scan->at / JOB_FAN;
    while (at * JOB_FAN < scan->end) {
        unsigned count = 0;
        for (int64_t i = at; count < JOB_BATCH && i * JOB_FAN < scan->end; i++) scan->asked[count++] = i;
        parts_read(flow, LEVEL_BRANCH, scan->asked, count, scan->items);
        for (unsigned i = 0; i < count; i++)
            job_branch_read(flow, at + i, scan->items[i], &scan->entries[(at + i) * JOB_FAN],
                            &scan->branches[at + i]);
        at += count;
    }
    return scan;
}

static bool is_settled(const struct leaf_entry *entry)
{
    return entry->is_final || (entry->text.data && !entry->failed && entry->done == entry->wanted);
}

static bool is_wanted(const struct job_scan *scan, int64_t leaf)
{
    switch (scan->kind) {
    case SCAN_ALL: return true;
    case SCAN_UNSETTLED: return !is_settled(&scan->entries[leaf]);
    case SCAN_NOT_FINAL: return !scan->entries[leaf].is_final;
    case SCAN_FAILING: return scan->entries[leaf].failed > 0;
    }
    return false;
}

bool job_scan_next(struct flow *flow, struct job_scan *scan, struct leaf *leaf)
{
    if (scan->next == scan->count) {
        scan->next = scan->count = 0;
        for (; scan->count < JOB_BATCH && scan->at < scan->end; scan->at++)
            if (is_wanted(scan, scan->at)) scan->asked[scan->count++] = scan->at;
        if (!scan->count) return false;
        parts_read(flow, LEVEL_LEAF, scan->asked, scan->count, scan->items);
    }
    job_leaf_read(flow, scan->asked[scan->next], scan->items[scan->next], leaf);
    scan->next++;
    return true;
}

/* ---- counting and healing ---- */

/* Brings up what the branches were told and the head was not. */
static void branches_heal(struct flow *flow, const struct job_scan *scan)
{
    for (int64_t i = 0; i < scan->branch_count; i++) job_tell_head(flow, &scan->branches[i], false);
    job_tell_head(flow, NULL, false);
}

static void leaves_count(struct flow *flow, struct job_scan *scan, bool heals)
{
    struct job *job = flow->state;
    struct leaf leaf;
    for (int64_t i = 0; i < scan->end; i++)
        if (is_settled(&scan->entries[i])) job->done += scan->entries[i].done;
    while (job_scan_next(flow, scan, &leaf)) {
        job->missing += leaf.wanted - leaf.done - leaf.failed;
        job->done += leaf.done;
        if (heals && job_leaf_is_news(flow, &leaf, &scan->entries[leaf.index]))
            job_propagate(flow, &leaf, false);
        scan->entries[leaf.index].done = leaf.done;
        scan->entries[leaf.index].failed = leaf.failed;
    }
    if (heals) branches_heal(flow, scan);
}

static struct job_scan *count_begin(struct flow *flow)
{
    struct job *job = flow->state;
    job->has_counted = true;
    job->at_least = false;
    job->done = job->missing = 0;
    struct job_scan *scan = job_scan_begin(flow, 0, SCAN_UNSETTLED);
    job->counted = scan;
    return scan;
}

void job_heal(struct flow *flow)
{
    job_change_settle(flow);
    leaves_count(flow, count_begin(flow), true);
}

/* ---- tallies ----
 *
 * Who brings a leaf to a quarter, a half or three quarters of its tasks adds that to a tally, so that one read
 * tells of 64 leaves what a quarter more or less matters. That costs three writes for 256 tasks. The tally has a
 * set of numbers, LEAF * 1024 + DONE, of which the greatest counts: so each may be added again, and one that was
 * lost with its caller is made good by the next. Full leaves are known by their branches, unless the total is not
 * known. */

#define TALLY_LEAVES 64 /* with three numbers of each: it stays below 1 KB */
#define TALLIED_MOST 1024

int64_t job_tallies(const struct job *job)
{
    return job->leaves > JOB_FEW || job->reached ? (job->leaves + TALLY_LEAVES - 1) / TALLY_LEAVES : 0;
}

void job_tally(struct flow *flow, const struct leaf *leaf, int64_t before)
{
    struct job *job = flow->state;
    int64_t quarter = leaf->wanted ? leaf->done * 4 / leaf->wanted : 0;
    int64_t number = leaf->index % TALLY_LEAVES * TALLIED_MOST + leaf->done;
    bool has_tallies = job->total < 0 || job_tallies(job),
         is_further = quarter && quarter > before * 4 / leaf->wanted;
    if (!has_tallies || !is_further || (quarter == 4 && job->total >= 0) || leaf->done >= TALLIED_MOST)
        return;
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':%A,'UpdateExpression':'ADD #tally :number',%#,"
              "'ExpressionAttributeValues':{':number':%A}}",
              &job_parts_table, job_part_key(flow, LEVEL_TALLY, leaf->index / TALLY_LEAVES),
              job_number_set(flow, number));
}

static void tallies_count(struct flow *flow, struct job_scan *scan)
{
    struct job *job = flow->state;
    int64_t tallies = job_tallies(job), number;
    for (int64_t at = 0; at < tallies; at += scan->count) {
        for (scan->count = 0; scan->count < JOB_BATCH && at + scan->count < tallies; scan->count++)
            scan->asked[scan->count] = at + scan->count;
        parts_read(flow, LEVEL_TALLY, scan->asked, scan->count, scan->items);
        for (unsigned i = 0; i < scan->count; i++) {
            struct leaf_entry *entries = &scan->entries[(at + i) * TALLY_LEAVES];
            struct slice element;
            raw_each (flow->arena, item_content(flow->arena, scan->items[i], "tally"), &element) {
                if (!raw_int(raw_text(flow->arena, element), &number) || number < 0) continue;
                struct leaf_entry *entry = &entries[number / TALLIED_MOST % TALLY_LEAVES];
                if (entry->done < number % TALLIED_MOST) entry->done = number % TALLIED_MOST;
            }
        }
    }
    for (int64_t i = 0; i < scan->end; i++) job->done += scan->entries[i].done;
    if (job->total >= 0 && job->done > job->total - job->failures) job->done = job->total - job->failures;
    job->missing = job->total < 0 ? 0 : job->total - job->done - job->failures;
    job->at_least = true;
}

void job_count(struct flow *flow, bool heals)
{
    if (heals) job_change_settle(flow);
    struct job_scan *scan = count_begin(flow);
    int64_t unsettled = 0;
    for (int64_t i = 0; i < scan->end; i++) unsettled += !is_settled(&scan->entries[i]);
    if (unsettled <= JOB_FEW) {
        leaves_count(flow, scan, heals);
    } else {
        tallies_count(flow, scan);
        if (heals) branches_heal(flow, scan);
    }
}

/* ---- ranges ---- */

/* Of names they would tell nothing, which are in leaves by their hashes; and a set has one leaf. */
struct slice job_ranges_member(struct flow *flow)
{
    const struct job *job = flow->state;
    if (!job->ranges || !job->has_counted || job->named || job->fan != JOB_FAN || job->total <= 0)
        return SLICE("");
    int64_t end = job->counted->end, leaves = (end + job->ranges - 1) / job->ranges;
    struct buf done = {0}, failed = {0};
    for (int64_t at = 0; at < end; at += leaves) {
        int64_t done_count = 0, failed_count = 0, tasks = job->total - at * job->fan;
        if (tasks > leaves * job->fan) tasks = leaves * job->fan;
        for (int64_t i = at; i < at + leaves && i < end; i++) {
            done_count += job->counted->entries[i].done;
            failed_count += job->counted->entries[i].failed;
        }
        /* What branches and tallies tell is not of one moment. */
        if (done_count > tasks - failed_count) done_count = tasks - failed_count;
        buf_printf(&done, "%s%lld", at ? "," : "", (long long)done_count);
        buf_printf(&failed, "%s%lld", at ? "," : "", (long long)failed_count);
    }
    struct slice member = flow_compose(flow, ",'ranges':{'tasks':%d,'done':[%A],'failed':[%A]}",
                                       leaves * job->fan, buf_view(&done), buf_view(&failed));
    buf_free(&done);
    buf_free(&failed);
    return member;
}
