/* Jobs: the way up from a leaf to the end of the job, and changes of what has to be done. The tables, and rules 1 to 5:
 * job.c.
 *
 * Any flow may propagate at any time, as often as it likes, from any leaf as it saw it. */
#include "calendar/calendar.h"
#include "pattern/job.h"

#define CHANGE_LEFT_MS 10000 /* a change that takes longer was left by its caller */

/* ---- what a branch knows of its leaves ---- */

/* All its tasks are done, and no growth comes to it. */
static bool is_final(const struct job *job, const struct leaf *leaf)
{
    return !job->named && job->total >= 0 && leaf->wanted == JOB_FAN && leaf->done == JOB_FAN;
}

/* Rule 2. A total that becomes known is like a change of the leaf: before, only what has failed counts. */
static struct slice entry_text(struct flow *flow, const struct leaf *leaf)
{
    struct job *job = flow->state;
    bool is_known = job->total >= 0;
    return arena_printf(flow->arena, "%lld%06lld%06lld%06lld", (long long)(leaf->epoch + 1 + is_known),
                        (long long)(job->named ? leaf->wanted : 0), (long long)(is_known ? leaf->done : 0),
                        (long long)leaf->failed);
}

static bool is_larger(struct slice number, struct slice than)
{
    return number.len != than.len ? number.len > than.len : slice_compare(number, than) > 0;
}

/* Takes the last digits off as a number. */
static int64_t take_digits(struct slice *text, size_t digits)
{
    unsigned long long number = 0;
    if (digits > text->len) digits = text->len;
    text->len -= digits;
    return slice_to_u64((struct slice){text->data + text->len, digits}, INT64_MAX, &number) ? (int64_t)number
                                                                                            : 0;
}

/* The number behind the letter of an attribute's name; -1: it is another attribute. */
static int64_t numbered(struct slice name, char letter)
{
    unsigned long long number;
    if (name.len < 2 || name.data[0] != letter) return -1;
    return slice_to_u64(slice_from(name, 1), INT64_MAX, &number) ? (int64_t)number : -1;
}

void job_branch_read(struct flow *flow, int64_t index, struct slice item, struct leaf_entry *entries,
                     struct branch *branch)
{
    struct job *job = flow->state;
    struct slice name, value, element;
    int64_t first = index * JOB_FAN, leaf;
    if (!entries) entries = arena_array(flow->arena, struct leaf_entry, JOB_FAN);
    memset(entries, 0, JOB_FAN * sizeof *entries);
    *branch = (struct branch){.index = index, .is_full = job->total >= 0};
    raw_each_member (flow->arena, item, &name, &value) {
        if (slice_equal(name, SLICE("version"))) branch->version = attribute_int(flow->arena, value, 0);
        if (slice_equal(name, SLICE("full"))) {
            raw_each (flow->arena, attribute_content(flow->arena, value), &element)
                if (raw_int(raw_text(flow->arena, element), &leaf) && leaf >= first && leaf < first + JOB_FAN)
                    entries[leaf - first].is_final = true;
        }
        leaf = numbered(name, 'l');
        if (leaf < first || leaf >= first + JOB_FAN) continue;
        struct slice digits = attribute_text(flow->arena, value);
        struct leaf_entry *entry = &entries[leaf - first];
        entry->text = digits;
        entry->failed = take_digits(&digits, 6);
        entry->done = take_digits(&digits, 6);
        entry->wanted = take_digits(&digits, 6);
    }
    for (int64_t i = 0; i < JOB_FAN && first + i < job->leaves; i++) {
        struct leaf_entry *entry = &entries[i];
        if (!job->named) entry->wanted = job_leaf_wanted(job, first + i);
        if (entry->is_final) {
            entry->done = JOB_FAN;
            entry->failed = 0;
        }
        branch->finished += entry->done + entry->failed;
        branch->failed += entry->failed;
        if (!entry->is_final && (!entry->text.data || entry->done + entry->failed < entry->wanted))
            branch->is_full = false;
    }
    if (job->total < 0) branch->finished = 0; /* some may not be tasks of the job in the end */
}

bool job_leaf_is_news(struct flow *flow, const struct leaf *leaf, const struct leaf_entry *entry)
{
    const struct job *job = flow->state;
    bool matters = job_leaf_is_full(job, leaf) || leaf->failed || entry->failed;
    if (!leaf->there || !matters || entry->is_final) return false;
    return is_final(job, leaf) || is_larger(entry_text(flow, leaf), entry->text);
}

/* Where the condition does not hold, the branch knows it already, or what came later. */
void job_tell_branch(struct flow *flow, const struct leaf *leaf, struct branch *branch)
{
    const struct job *job = flow->state;
    struct edit edit = {0};
    int64_t index = leaf->index / JOB_FAN;
    const char *name = arena_printf(flow->arena, "l%lld", (long long)leaf->index).data;
    if (is_final(job, leaf)) {
        edit_put(flow, &edit, EDIT_ADD, "#full :leaves", "':leaves':%A", job_number_set(flow, leaf->index));
        edit_if(flow, &edit, "not contains(#full, :leaf)", "':leaf':%N", leaf->index);
    } else {
        edit_put(flow, &edit, EDIT_SET, arena_printf(flow->arena, "#%s = :entry", name).data,
                 "':entry':{'N':%s}", entry_text(flow, leaf));
        edit_if(flow, &edit,
                arena_printf(flow->arena, "attribute_not_exists(#%s) or #%s < :entry", name, name).data,
                NULL);
    }
    edit_put(flow, &edit, EDIT_ADD, "#version :one", "':one':{'N':'1'}");
    edit_write(flow, &edit, &job_parts_table, job_part_key(flow, LEVEL_BRANCH, index));
    job_branch_read(flow, index, flow_item(flow), NULL, branch);
}

/* ---- writing the head ---- */

/* Writes the head if nobody else has since it was read, and takes its image. Another job that has the id by now is
 * taken for one that is being deleted. */
static bool head_write(struct flow *flow, struct edit *edit, int64_t epoch, int64_t more_failures)
{
    struct job *job = flow->state;
    struct slice run = job->run;
    edit_put(flow, edit, EDIT_SET, "#epoch = :to", "':to':%N", epoch);
    edit_put(flow, edit, EDIT_ADD, "#failures :more", "':more':%N", more_failures);
    edit_if(flow, edit, "#run = :run and #state = :was and #epoch = :epoch and #failures = :failures",
            "':run':%S,':was':%S,':epoch':%N,':failures':%N", run, job_state_name(job->state), job->epoch,
            job->failures);
    bool is_written = edit_write(flow, edit, &job_table, job_key(flow));
    job_take(flow, flow_item(flow));
    if (!slice_equal(run, job->run)) job->state = JOB_DELETING;
    return is_written;
}

void job_end(struct flow *flow, struct edit *edit, enum job_state state, struct slice last_caller)
{
    const struct job *job = flow->state;
    edit_set(flow, edit, "state", "%S", job_state_name(state));
    edit_set(flow, edit, "closed", "%S", moment_text(flow->arena, flow->now_ms));
    edit_put(flow, edit, EDIT_REMOVE, "#changing, #changing_ms", NULL);
    if (last_caller.data) edit_set(flow, edit, "last_caller", "%S", last_caller);
    edit_set(flow, edit, "listed", "%S", job_listed(flow, state));
    if (job->keep_ms)
        edit_set(flow, edit, "due", "%N", flow->now_ms + job->keep_ms);
    else
        edit_put(flow, edit, EDIT_REMOVE, "#slot, #due", NULL);
}

void job_open(struct flow *flow, struct edit *edit, int64_t deadline_ms)
{
    struct job next = *(struct job *)flow->state;
    next.deadline_ms = deadline_ms;
    edit_set(flow, edit, "state", "{'S':'OPEN'}");
    edit_set(flow, edit, "listed", "%S", job_listed(flow, JOB_OPEN));
    edit_set(flow, edit, "slot", "%S", job_slot(flow));
    edit_set(flow, edit, "due", "%N", job_due_ms(flow, &next));
}

/* What the head knows of a branch, and of all. */
struct head_entry {
    struct slice text;
    int64_t version, finished, failed;
};

static struct head_entry head_entry_of(struct flow *flow, int64_t branch, int64_t *finished_of_all)
{
    const struct job *job = flow->state;
    struct head_entry entry, found = {0};
    struct slice name, value;
    *finished_of_all = 0;
    raw_each_member (flow->arena, job->item, &name, &value) {
        int64_t index = numbered(name, 'b');
        if (index < 0) continue;
        struct slice digits = entry.text = attribute_text(flow->arena, value);
        entry.failed = take_digits(&digits, 8);
        entry.finished = take_digits(&digits, 8);
        entry.version = take_digits(&digits, digits.len);
        if (index < job->branches) *finished_of_all += entry.finished;
        if (index == branch) found = entry;
    }
    return found;
}

/* Puts in the change what the branch is; how many failures are more by that. */
static int64_t add_entry(struct flow *flow, const struct branch *branch, const struct head_entry *old,
                         struct edit *edit)
{
    const char *name = arena_printf(flow->arena, "b%lld", (long long)branch->index).data;
    struct slice text = arena_printf(flow->arena, "%lld%08lld%08lld", (long long)branch->version,
                                     (long long)branch->finished, (long long)branch->failed);
    edit_set(flow, edit, name, "{'N':%s}", text);
    if (old->text.data)
        edit_if(flow, edit, arena_printf(flow->arena, "#%s = :old", name).data, "':old':{'N':%s}", old->text);
    else
        edit_if(flow, edit, arena_printf(flow->arena, "attribute_not_exists(#%s)", name).data, NULL);
    return branch->failed - old->failed;
}

static bool takes_entries(const struct job *job)
{
    return job->state == JOB_OPEN || job->state == JOB_FAILED || job->state == JOB_COMPLETE ||
           job->state == JOB_CLOSING;
}

/* How the job ends with these numbers; JOB_NONE: not yet. */
static enum job_state end_by(struct flow *flow, int64_t finished, int64_t failures)
{
    struct job *job = flow->state;
    bool is_finished = job->total >= 0 && finished == job->total && (!job->named || job->prepared);
    if (job->state != JOB_OPEN || job->changing) return JOB_NONE;
    if (failures > job_tolerated(flow, job)) return JOB_FAILED;
    return is_finished ? JOB_COMPLETE : JOB_NONE;
}

void job_tell_head(struct flow *flow, const struct branch *branch, bool claims)
{
    struct job *job = flow->state;
    for (unsigned losses = 0;;) {
        int64_t finished;
        struct head_entry old = head_entry_of(flow, branch ? branch->index : -1, &finished);
        struct edit edit = {0};
        bool is_news = branch && takes_entries(job) && branch->version > old.version;
        if (is_news) finished += branch->finished - old.finished;
        int64_t more = is_news ? branch->failed - old.failed : 0;
        enum job_state end = end_by(flow, finished, job->failures + more);
        bool matters = is_news && (more || branch->is_full);
        if (!end && !matters) {
            bool may_be_old = branch && branch->is_full && job->state == JOB_OPEN && !job->is_fresh;
            if (!may_be_old) break;
            job_load(flow);
            continue;
        }
        if (is_news) add_entry(flow, branch, &old, &edit);
        if (end) job_end(flow, &edit, end, claims && end == JOB_COMPLETE ? job->caller : SLICE_NONE);
        if (head_write(flow, &edit, job->epoch, more)) {
            if (end) job->is_last = claims && end == JOB_COMPLETE;
            job_wake(flow);
        } else if (losses++) {
            task_again(flow);
        }
    }
    if (claims && job->state == JOB_COMPLETE) job_claim(flow);
}

/* An only leaf that never had a failure completes the job without a branch. */
static bool complete_at_once(struct flow *flow, const struct leaf *leaf, bool claims)
{
    struct job *job = flow->state;
    struct edit edit = {0};
    bool may = job->state == JOB_OPEN && job->leaves == 1 && !job->changing && !job->failures &&
               (!job->named || job->prepared);
    if (!may || leaf->failed_once || job->total < 0 || leaf->done != leaf->wanted || leaf->done != job->total)
        return false;
    job_end(flow, &edit, JOB_COMPLETE, claims ? job->caller : SLICE_NONE);
    if (head_write(flow, &edit, job->epoch, 0)) {
        job->is_last = claims;
        job_wake(flow);
    } else if (job->state == JOB_COMPLETE && claims) {
        job_claim(flow);
    }
    return job->state == JOB_COMPLETE;
}

void job_propagate(struct flow *flow, const struct leaf *leaf, bool claims)
{
    struct branch branch;
    if (complete_at_once(flow, leaf, claims)) return;
    job_tell_branch(flow, leaf, &branch);
    job_tell_head(flow, &branch, claims);
}

/* Where the job was completed by somebody who only healed it, the first caller that comes is the last one. */
void job_claim(struct flow *flow)
{
    struct job *job = flow->state;
    job->is_last = slice_equal(job->last_caller, job->caller) && job->caller.len;
    if (job->last_caller.data) return;
    JOB_EDIT(flow, "SET #last_caller = :caller",
             "#run = :run and #state = :complete and attribute_not_exists(#last_caller)",
             "':caller':%S,':run':%S,':complete':{'S':'COMPLETE'}", job->caller, job->run);
    job->is_last = slice_equal(item_text(flow->arena, flow_item(flow), "last_caller"), job->caller);
}

/* ---- changes of what has to be done ---- */

static bool change_mark(struct flow *flow)
{
    const struct job *job = flow->state;
    struct edit edit = {0};
    edit_set(flow, &edit, "changing", "%N", job->epoch + 1);
    edit_set(flow, &edit, "changing_ms", "%N", flow->now_ms);
    return head_write(flow, &edit, job->epoch + 1, 0);
}

static bool change_unmark(struct flow *flow, int64_t mine, int64_t total, const struct branch *branch,
                          bool reopens)
{
    struct job *job = flow->state;
    for (;;) {
        int64_t finished, more = 0;
        bool is_mine = job->changing == mine && (job->state == JOB_OPEN || job->state == JOB_FAILED);
        if (!is_mine) return !job->changing && job->epoch == mine; /* the same call has ended it before */
        struct head_entry old = head_entry_of(flow, branch ? branch->index : -1, &finished);
        struct edit edit = {0};
        edit_put(flow, &edit, EDIT_REMOVE, "#changing, #changing_ms", NULL);
        edit_if(flow, &edit, "#changing = :mine", "':mine':%N", mine);
        if (branch && branch->version > old.version) more = add_entry(flow, branch, &old, &edit);
        if (total >= 0) edit_set(flow, &edit, "total", "%N", total);
        if (reopens && job->failures + more <= job_tolerated(flow, job) && job->state == JOB_FAILED) {
            job_open(flow, &edit, job->deadline_ms);
            edit_put(flow, &edit, EDIT_REMOVE, "#closed", NULL);
        }
        if (head_write(flow, &edit, job->epoch, more)) return true;
        task_again(flow);
    }
}

/* Rule 4. Tasks whose names came to leaves before it was left are tasks of the job. */
static void change_take_over(struct flow *flow)
{
    struct job *job = flow->state;
    struct leaf leaf;
    struct branch branch;
    int64_t total = 0;
    if (!change_mark(flow)) return;
    int64_t epoch = job->changing;
    struct job_scan *scan = job_scan_begin(flow, 0,
                                           job->named || job->leaves <= JOB_FEW ? SCAN_ALL : SCAN_FAILING);
    while (job_scan_next(flow, scan, &leaf)) {
        if (!leaf.there) continue;
        edit_item(flow, &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf.index),
                  SLICE("SET #epoch = :epoch"),
                  SLICE("attribute_exists(#part) and (attribute_not_exists(#epoch) or #epoch < :epoch)"),
                  "':epoch':%N", epoch);
        job_leaf_read(flow, leaf.index, flow_item(flow), &leaf);
        if (!leaf.there || leaf.epoch > epoch) { /* others are further */
            job_load(flow);
            return;
        }
        total += leaf.wanted;
        job_tell_branch(flow, &leaf, &branch);
        job_tell_head(flow, &branch, false);
    }
    change_unmark(flow, epoch, job->named ? total : -1, NULL, false);
}

void job_change_settle(struct flow *flow)
{
    struct job *job = flow->state;
    bool takes = job->state == JOB_OPEN || job->state == JOB_FAILED;
    if (takes && job->changing && flow->now_ms - job->changing_ms > CHANGE_LEFT_MS) change_take_over(flow);
}

bool job_change_begin(struct flow *flow)
{
    struct job *job = flow->state;
    for (;;) {
        if (job->state != JOB_OPEN && job->state != JOB_FAILED) return false;
        if (job->changing)
            change_take_over(flow);
        else if (change_mark(flow))
            return true;
        if (job->changing) task_again(flow);
    }
}

bool job_change_end(struct flow *flow, int64_t epoch, int64_t total, const struct branch *branch)
{
    return change_unmark(flow, epoch, total, branch, true);
}
