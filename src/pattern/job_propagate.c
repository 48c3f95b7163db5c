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
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
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
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct raw_look attributes, leaves;
    struct slice name, value, element;
    int64_t first = index * JOB_FAN, leaf;
    if (!entries) entries = arena_array(flow->arena, struct leaf_entry, JOB_FAN);
    memset(entries, 0, JOB_FAN * sizeof *entries);
    *branch = (struct branch){.index = index, .is_full = job->total >= 0};
    raw_look_begin(&attributes, flow->arena, item);
    while (raw_look_next(&attributes, &name, &value)) {
        if (slice_equal(name, SLICE("version"))) branch->version = attribute_int(flow->arena, value, 0);
        if (slice_equal(name, SLICE("full"))) {
            raw_look_begin(&leaves, flow->arena, attribute_content(flow->arena, value));
            while (raw_look_next(&leaves, NULL, &element))
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
    const struct job_work *work = flow->state;
    bool matters = job_leaf_is_full(&work->job, leaf) || leaf->failed || entry->failed;
    if (!leaf->there || !matters || entry->is_final) return false;
    return is_final(&work->job, leaf) || is_larger(entry_text(flow, leaf), entry->text);
}

/* Where the condition does not hold, the branch knows it already, or what came later. */
void job_tell_branch(struct flow *flow, const struct leaf *leaf, struct branch *branch)
{
    const struct job_work *work = flow->state;
    int64_t index = leaf->index / JOB_FAN;
    struct slice key = job_part_key(flow, LEVEL_BRANCH, index);
    if (is_final(&work->job, leaf)) {
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':%A,'UpdateExpression':'ADD #full :leaves, #version :one',"
            "'ConditionExpression':'not contains(#full, :leaf)',%#,"
            "'ExpressionAttributeValues':{':leaves':%A,':leaf':%N,':one':{'N':'1'}},'ReturnValues':'ALL_NEW',%O}",
            &job_parts_table, key, job_number_set(flow, leaf->index), leaf->index);
    } else {
        struct slice name = arena_printf(flow->arena, "#l%lld", (long long)leaf->index);
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':%A,'UpdateExpression':'SET %r = :entry ADD #version :one',"
            "'ConditionExpression':'attribute_not_exists(%r) or %r < :entry',%#,"
            "'ExpressionAttributeValues':{':entry':{'N':%s},':one':{'N':'1'}},'ReturnValues':'ALL_NEW',%O}",
            &job_parts_table, key, name, name, name, entry_text(flow, leaf));
    }
    job_branch_read(flow, index, flow_item(flow), NULL, branch);
}

/* ---- writing the head ---- */

/* Parts of an update, each with its comma or "and" in front. */
struct head_parts {
    struct slice set, remove, condition, values;
    int64_t epoch, more_failures; /* epoch 0: the same */
};

/* Writes the head if nobody else has since it was read, and takes its image. Another job that has the id by now is
 * taken for one that is being deleted. */
static bool head_write(struct flow *flow, const struct head_parts *parts)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct slice run = job->run;
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #epoch = :to%r%r%r ADD #failures :more',"
        "'ConditionExpression':'#run = :run and #state = :was and #epoch = :epoch and #failures = :failures%r',"
        "%#,'ExpressionAttributeValues':{':run':%S,':was':%S,':to':%N,':epoch':%N,':more':%N,':failures':%N%r},"
        "'ReturnValues':'ALL_NEW',%O}",
        &job_table, work->id, parts->set, parts->remove.len ? SLICE(" REMOVE ") : SLICE(""),
        parts->remove.len ? slice_from(parts->remove, 1) : SLICE(""), parts->condition, run,
        job_state_name(job->state), parts->epoch ? parts->epoch : job->epoch, job->epoch,
        parts->more_failures, job->failures, parts->values);
    bool is_written = !flow_failed(flow);
    job_take(flow, flow_item(flow));
    if (!slice_equal(run, work->job.run)) work->job.state = JOB_DELETING;
    return is_written;
}

struct job_ending job_ending(struct flow *flow, enum job_state state, struct slice last_caller)
{
    const struct job_work *work = flow->state;
    int64_t keep_ms = work->job.keep_ms;
    struct job_ending ending = {.set = SLICE(", #state = :state, #closed = :now"),
                                .remove = SLICE(", #changing, #changing_ms"),
                                .values = flow_compose(flow, ",':state':%S,':now':%S", job_state_name(state),
                                                       moment_text(flow->arena, flow->now_ms))};
    if (last_caller.data) {
        ending.set = flow_compose(flow, "%r, #last_caller = :caller", ending.set);
        ending.values = flow_compose(flow, "%A,':caller':%S", ending.values, last_caller);
    }
    if (state == JOB_COMPLETE) {
        ending.remove = flow_compose(flow, "%r, #listed", ending.remove);
    } else {
        ending.set = flow_compose(flow, "%r, #listed = :listed", ending.set);
        ending.values = flow_compose(flow, "%A,':listed':%S", ending.values, job_listed(flow, state));
    }
    if (keep_ms) {
        ending.set = flow_compose(flow, "%r, #due = :due", ending.set);
        ending.values = flow_compose(flow, "%A,':due':%N", ending.values, flow->now_ms + keep_ms);
    } else {
        ending.remove = flow_compose(flow, "%r, #slot, #due", ending.remove);
    }
    return ending;
}

static void add_ending(struct flow *flow, enum job_state state, bool claims, struct head_parts *parts)
{
    const struct job_work *work = flow->state;
    struct slice caller = claims && state == JOB_COMPLETE ? work->caller : SLICE_NONE;
    struct job_ending ending = job_ending(flow, state, caller);
    parts->set = flow_compose(flow, "%r%r", parts->set, ending.set);
    parts->remove = flow_compose(flow, "%r%r", parts->remove, ending.remove);
    parts->values = flow_compose(flow, "%A%A", parts->values, ending.values);
}

/* What the head knows of a branch, and of all. */
struct head_entry {
    struct slice text;
    int64_t version, finished, failed;
};

static struct head_entry head_entry_of(struct flow *flow, int64_t branch, int64_t *finished_of_all)
{
    const struct job_work *work = flow->state;
    struct head_entry entry, found = {0};
    struct raw_look look;
    struct slice name, value;
    *finished_of_all = 0;
    raw_look_begin(&look, flow->arena, work->job.item);
    while (raw_look_next(&look, &name, &value)) {
        int64_t index = numbered(name, 'b');
        if (index < 0) continue;
        struct slice digits = entry.text = attribute_text(flow->arena, value);
        entry.failed = take_digits(&digits, 8);
        entry.finished = take_digits(&digits, 8);
        entry.version = take_digits(&digits, digits.len);
        if (index < work->job.branches) *finished_of_all += entry.finished;
        if (index == branch) found = entry;
    }
    return found;
}

static void add_entry(struct flow *flow, const struct branch *branch, const struct head_entry *old,
                      struct head_parts *parts)
{
    struct slice name = arena_printf(flow->arena, "#b%lld", (long long)branch->index);
    struct slice text = arena_printf(flow->arena, "%lld%08lld%08lld", (long long)branch->version,
                                     (long long)branch->finished, (long long)branch->failed);
    parts->set = flow_compose(flow, "%r, %r = :entry", parts->set, name);
    parts->condition = old->text.data
                           ? flow_compose(flow, "%r and %r = :old", parts->condition, name)
                           : flow_compose(flow, "%r and attribute_not_exists(%r)", parts->condition, name);
    parts->values = flow_compose(flow, "%A,':entry':{'N':%s}", parts->values, text);
    if (old->text.data) parts->values = flow_compose(flow, "%A,':old':{'N':%s}", parts->values, old->text);
    parts->more_failures += branch->failed - old->failed;
}

static bool takes_entries(const struct job *job)
{
    return job->state == JOB_OPEN || job->state == JOB_FAILED || job->state == JOB_COMPLETE ||
           job->state == JOB_CLOSING;
}

/* How the job ends with these numbers; JOB_NONE: not yet. */
static enum job_state end_by(struct flow *flow, int64_t finished, int64_t failures)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    bool is_finished = job->total >= 0 && finished == job->total && (!job->named || job->prepared);
    if (job->state != JOB_OPEN || job->changing) return JOB_NONE;
    if (failures > job_tolerated(flow, job)) return JOB_FAILED;
    return is_finished ? JOB_COMPLETE : JOB_NONE;
}

void job_tell_head(struct flow *flow, const struct branch *branch, bool claims)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    for (unsigned losses = 0;;) {
        int64_t finished;
        struct head_entry old = head_entry_of(flow, branch ? branch->index : -1, &finished);
        struct head_parts parts = {SLICE(""), SLICE(""), SLICE(""), SLICE(""), 0, 0};
        bool is_news = branch && takes_entries(job) && branch->version > old.version;
        if (is_news) finished += branch->finished - old.finished;
        int64_t more = is_news ? branch->failed - old.failed : 0;
        enum job_state end = end_by(flow, finished, job->failures + more);
        bool matters = is_news && (more || branch->is_full);
        if (!end && !matters) {
            bool may_be_old = branch && branch->is_full && job->state == JOB_OPEN && !work->is_fresh;
            if (!may_be_old) break;
            job_load(flow);
            continue;
        }
        if (is_news) add_entry(flow, branch, &old, &parts);
        if (end) add_ending(flow, end, claims, &parts);
        if (head_write(flow, &parts)) {
            if (end) work->is_last = claims && end == JOB_COMPLETE;
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
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct head_parts parts = {SLICE(""), SLICE(""), SLICE(""), SLICE(""), 0, 0};
    bool may = job->state == JOB_OPEN && job->leaves == 1 && !job->changing && !job->failures &&
               (!job->named || job->prepared);
    if (!may || leaf->failed_once || job->total < 0 || leaf->done != leaf->wanted || leaf->done != job->total)
        return false;
    add_ending(flow, JOB_COMPLETE, claims, &parts);
    if (head_write(flow, &parts)) {
        work->is_last = claims;
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
    struct job_work *work = flow->state;
    work->is_last = slice_equal(work->job.last_caller, work->caller) && work->caller.len;
    if (work->job.last_caller.data) return;
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #last_caller = :caller',"
        "'ConditionExpression':'#run = :run and #state = :complete and attribute_not_exists(#last_caller)',%#,"
        "'ExpressionAttributeValues':{':caller':%S,':run':%S,':complete':{'S':'COMPLETE'}},%O}",
        &job_table, work->id, work->caller, work->job.run);
    work->is_last = !flow_failed(flow) ||
                    slice_equal(item_text(flow->arena, flow_item(flow), "last_caller"), work->caller);
}

/* ---- changes of what has to be done ---- */

static bool change_mark(struct flow *flow)
{
    const struct job_work *work = flow->state;
    struct head_parts parts = {.set = SLICE(", #changing = :to, #changing_ms = :began"),
                               .remove = SLICE(""),
                               .condition = SLICE(""),
                               .values = flow_compose(flow, ",':began':%N", flow->now_ms),
                               .epoch = work->job.epoch + 1};
    return head_write(flow, &parts);
}

static bool change_unmark(struct flow *flow, int64_t mine, int64_t total, const struct branch *branch, bool reopens)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    for (;;) {
        int64_t finished;
        bool is_mine = job->changing == mine && (job->state == JOB_OPEN || job->state == JOB_FAILED);
        if (!is_mine) return !job->changing && job->epoch == mine; /* the same call has ended it before */
        struct head_entry old = head_entry_of(flow, branch ? branch->index : -1, &finished);
        struct head_parts parts = {.set = SLICE(""),
                                   .remove = SLICE(", #changing, #changing_ms"),
                                   .condition = SLICE(" and #changing = :mine"),
                                   .values = flow_compose(flow, ",':mine':%N", mine)};
        if (branch && branch->version > old.version) add_entry(flow, branch, &old, &parts);
        if (total >= 0) {
            parts.set = flow_compose(flow, "%r, #total = :total", parts.set);
            parts.values = flow_compose(flow, "%A,':total':%N", parts.values, total);
        }
        bool is_well = job->failures + parts.more_failures <= job_tolerated(flow, job);
        if (reopens && is_well && job->state == JOB_FAILED) {
            parts.set = flow_compose(
                flow, "%r, #state = :open, #listed = :listed, #slot = :slot, #due = :due", parts.set);
            parts.remove = flow_compose(flow, "%r, #closed", parts.remove);
            parts.values = flow_compose(flow, "%A,':open':{'S':'OPEN'},':listed':%S,':slot':%S,':due':%N",
                                        parts.values, job_listed(flow, JOB_OPEN), job_slot(flow),
                                        job_due_ms(flow, job));
        }
        if (head_write(flow, &parts)) return true;
        task_again(flow);
    }
}

/* Rule 4. Tasks whose names came to leaves before it was left are tasks of the job. */
static void change_take_over(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct leaf leaf;
    struct branch branch;
    int64_t total = 0;
    if (!change_mark(flow)) return;
    int64_t epoch = job->changing;
    struct job_scan *scan = job_scan_begin(flow, 0,
                                           job->named || job->leaves <= JOB_FEW ? SCAN_ALL : SCAN_FAILING);
    while (job_scan_next(flow, scan, &leaf)) {
        if (!leaf.there) continue;
        task_call(flow, "UpdateItem",
                  "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #epoch = :epoch','ConditionExpression':'"
                  "attribute_exists(#part) and (attribute_not_exists(#epoch) or #epoch < :epoch)',%#,"
                  "'ExpressionAttributeValues':{':epoch':%N},'ReturnValues':'ALL_NEW',%O}",
                  &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf.index), epoch);
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
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
    bool takes = job->state == JOB_OPEN || job->state == JOB_FAILED;
    if (takes && job->changing && flow->now_ms - job->changing_ms > CHANGE_LEFT_MS) change_take_over(flow);
}

bool job_change_begin(struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct job *job = &work->job;
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
