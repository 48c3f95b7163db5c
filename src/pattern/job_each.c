/* Jobs that the server does by itself: their settings, and the tasks that are to be called next. The tables and what
 * holds for them: job.c; who calls them: src/drive.
 *
 * The head has the settings, and a drive (drive.h) is a copy of them: it is written before the job is opened, so that
 * nobody can die in between, and again by whoever changes or opens the job later. */
#include <assert.h>

#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/job.h"
#include "pattern/rows.h"

/* Until a job is OPEN no longer, the attempts and pauses of its tasks are with the server that calls them. */
static const struct drive_setting job_drive_settings[] = {
    {"each", FIELD_THEN, DRIVE_NONE},  {"concurrency", FIELD_INT, 10},          {"attempts", FIELD_INT, 3},
    {"backoff", FIELD_DURATION, 1000}, {"timeout", FIELD_DURATION, DRIVE_NONE}, {"paused", FIELD_BOOL, false},
};
DRIVE_KIND(job);
static_assert(sizeof job_drive_settings / sizeof *job_drive_settings == JOB_EACH_FIELDS,
              "as JOB_EACH has them");

/* ---- settings ---- */

static struct drive_thing thing_of(const struct job *job)
{
    return (struct drive_thing){.kind = &job_drive_kind, .name = job->id};
}

static struct slice setting_sent(struct flow *flow, const struct drive_setting *setting, unsigned field)
{
    if (setting->type == FIELD_THEN) return flow_compose(flow, "%S", flow_then(flow, field));
    return drive_number(flow, setting, flow_int(flow, field));
}

/* An item with those settings that were sent, or that all jobs have; SLICE_NONE: nothing is called. */
struct slice job_each_sent(struct flow *flow, unsigned first, bool with_others)
{
    struct slice members = SLICE("");
    bool is_given = false;
    for (unsigned i = 0; i < JOB_EACH_FIELDS; i++) {
        const struct drive_setting *setting = &job_drive_settings[i];
        bool is_sent = flow_given(flow, first + i);
        is_given |= is_sent;
        struct slice value = is_sent ? setting_sent(flow, setting, first + i) : SLICE_NONE;
        if (!is_sent && with_others && setting->otherwise != DRIVE_NONE)
            value = drive_number(flow, setting, setting->otherwise);
        members = flow_compose(flow, "%A%[%,%s:%A%]", members, slice_of(setting->name), value);
    }
    if (is_given && with_others && !flow_given(flow, first))
        task_refuse(flow, 400, "bad-request", "each is needed: the other settings say how it is called.");
    return is_given ? flow_compose(flow, "{%A}", members) : SLICE_NONE;
}

void job_each_check(struct flow *flow, unsigned first)
{
    if (flow_given(flow, first)) drive_target(flow, "each", first);
}

void job_each_set(struct flow *flow, struct edit *edit, struct slice settings)
{
    struct slice name, value;
    if (!settings.data) return;
    raw_each_member (flow->arena, settings, &name, &value)
        edit_set(flow, edit, arena_printf(flow->arena, "%.*s", SLICE_ARG(name)).data, "%A", value);
}

const char *job_each_other(struct flow *flow, unsigned first)
{
    const struct job *job = flow->state;
    for (unsigned i = 0; i < JOB_EACH_FIELDS; i++) {
        const struct drive_setting *setting = &job_drive_settings[i];
        if (!flow_given(flow, first + i)) continue;
        struct slice is = item_attribute(flow->arena, job->item, setting->name);
        if (!is.data || !attribute_equal(flow->arena, is, setting_sent(flow, setting, first + i)))
            return setting->name;
    }
    return NULL;
}

struct slice job_each_members(struct flow *flow)
{
    const struct job *job = flow->state;
    struct drive_thing thing = thing_of(job);
    return job->is_driven ? drive_members(flow, &thing, job->item) : SLICE("");
}

/* The drive of a job that is to be opened with these settings. */
void job_each_prepare(struct flow *flow, struct slice settings)
{
    const struct job *job = flow->state;
    struct drive_thing thing = thing_of(job);
    if (settings.data) drive_copy(flow, &thing, settings, SLICE(""), false);
}

void job_each_follow(struct flow *flow, bool anew)
{
    const struct job *job = flow->state;
    struct drive_thing thing = thing_of(job);
    if (job->is_driven && job->state == JOB_OPEN)
        drive_copy(flow, &thing, job->item,
                   arena_printf(flow->arena, "%.*s/%012lld", SLICE_ARG(job->run), (long long)job->epoch),
                   anew);
}

/* ---- what is to be called next ---- */

enum { TASKS_FROM = JOB_ID + 1, TASKS_WAIT };

const struct field job_tasks_fields[] = {
    FIELD_JOB_ID,
    [TASKS_FROM] = {"from", IN_QUERY, FIELD_INT, .max = JOB_TASKS_MOST,
                    .help = "the \"next\" of the answer before"},
    [TASKS_WAIT] = FIELD_WAIT(IN_QUERY, "wait so long for tasks, or for the end of the job"),
};

#define BRANCHES_AT_ONCE 32 /* that are passed over by one call: as long as nobody minds waiting */

struct offer {
    int64_t next;  /* the place of the task behind those that were looked at */
    int64_t count; /* of tasks in the answer */
};

/* Those of a leaf from a place on that are neither done nor failed, with their items. */
static void leaf_offer(struct flow *flow, struct offer *offer, int64_t index)
{
    const struct job *job = flow->state;
    struct leaf leaf;
    struct slice *items = NULL;
    int64_t offset = offer->next - index * JOB_FAN, known = JOB_FAN;
    job_leaf_load(flow, index, &leaf);
    if (leaf.count < known) known = leaf.count;
    for (; offset < known && leaf.marks[offset]; offset++) continue;
    if (job->has_items && offset < known) {
        known = job_items_read(flow, index, &items);
        if (known > leaf.count) known = leaf.count;
    }
    for (; offset < known; offset++) {
        if (leaf.marks[offset]) continue;
        flow_put(flow, flow->body, "%,{'task':%A", job_task_text(flow, &leaf, offset));
        if (items) flow_put(flow, flow->body, ",'item':%P", items[offset]);
        buf_byte(flow->body, '}');
        offer->count++;
    }
    bool is_whole = !job->has_items || job->total >= 0 || known == JOB_FAN;
    offer->next = is_whole ? (index + 1) * JOB_FAN : index * JOB_FAN + (offset > known ? known : offset);
}

/* From offer->next on, the tasks of the next leaf that has some. False: there is none in
 * what was looked at. */
static bool branch_offer(struct flow *flow, struct offer *offer, int64_t end)
{
    int64_t first = offer->next / JOB_FAN / JOB_FAN * JOB_FAN;
    struct leaf_entry *entries = arena_zero(flow->arena, JOB_FAN * sizeof *entries);
    struct branch branch;
    struct slice item = task_get(flow, &job_parts_table, "%A",
                                 job_part_key(flow, LEVEL_BRANCH, first / JOB_FAN));
    job_branch_read(flow, first / JOB_FAN, item, entries, &branch);
    for (int64_t leaf = offer->next / JOB_FAN; leaf < end && leaf < first + JOB_FAN; leaf++) {
        const struct leaf_entry *entry = &entries[leaf - first];
        bool is_settled = entry->is_final ||
                          (entry->text.data && entry->done + entry->failed >= entry->wanted);
        if (!is_settled) leaf_offer(flow, offer, leaf);
        if (offer->count) return true;
        if (!is_settled && offer->next < (leaf + 1) * JOB_FAN)
            return false; /* more is to come to this leaf */
        offer->next = (leaf + 1) * JOB_FAN;
    }
    return false;
}

void job_tasks(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    int64_t until_ms = flow->now_ms + flow_int_or(flow, TASKS_WAIT, 0), from = flow_int(flow, TASKS_FROM);
    struct offer offer;
    for (;;) {
        flow_look(flow);
        flow->body->len = flow->body_start;
        offer = (struct offer){.next = from};
        job_load_existing(flow);
        int64_t end = job->total >= 0  ? job->leaves
                      : job->has_items ? (job_items_count(flow) + JOB_FAN - 1) / JOB_FAN
                                       : 0;
        bool is_open = job->state == JOB_OPEN && !job_is_closing(flow, job) && (!job->named || job->prepared);
        flow_put(flow, flow->body, "{'state':%s,'opened':%s,'tasks':[", job_state_name(job->state),
                 item_text(flow->arena, job->item, "opened"));
        for (int i = 0; is_open && i < BRANCHES_AT_ONCE && offer.next < end * JOB_FAN; i++)
            if (branch_offer(flow, &offer, end) || offer.next % JOB_FAN) break;
        bool is_end = offer.next >= end * JOB_FAN || offer.next % JOB_FAN;
        if (!is_open || offer.count || !is_end || flow->now_ms >= until_ms) {
            flow_put(flow, flow->body, "],'next':%d%[%?,'end':true%]%[%?,'reads':true%]%r}", offer.next,
                     is_end, job->total < 0 && job_reads_table(flow), job_each_members(flow));
            flow_finish(flow, 200);
            return;
        }
        job_wait_for_change(flow, job_topic(job->id), until_ms);
    }
}
