/* Jobs: opening one, and changing it while it is open. The tables and what holds for them: job.c.
 *
 * A job of numbered tasks is one item: its leaves come when tasks are done. Named tasks are written into their leaves
 * at the start: first the head, then each leaf if it is not there, then the head says that it is `prepared`. Until
 * then the job cannot complete; tasks whose leaf is there may be done. The same PUT again goes on where another was
 * interrupted, whoever sends it. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/job.h"
#include "pattern/pattern.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"

#define NAMES_MOST 100000
#define LEAF_BYTES                                                                                           \
    400 /* of names in a leaf on average, and twice as many in hardly any: below 1 KB with the rest */
#define NAMES_AT_ONCE 20 /* added to a leaf: a condition holds at most 300 operators */
#define FIRST_MOST    1000000000

enum {
    PUT_TOTAL = JOB_ID + 1,
    PUT_TASKS,
    PUT_LAYOUT,
    PUT_FIRST,
    PUT_DEADLINE,
    PUT_TOLERATE,
    PUT_KEEP,
    PUT_THEN,
    PUT_PARENT,
    PUT_ITEMS,
    PUT_FROM,
    PUT_EACH,
    PUT_REPLY = PUT_EACH + JOB_EACH_FIELDS /* what GET tells beside */
};

const struct field job_put_fields[] = {
    FIELD_JOB_ID,
    [PUT_TOTAL] = {"total", IN_BODY, FIELD_INT, .min = 0, .max = JOB_TASKS_MOST,
                   .help = "how many tasks, none is complete at once; may be given later, as may names"},
    [PUT_TASKS] = {"tasks", IN_BODY, FIELD_LIST, .help = "the names of the tasks, instead of their number"},
    [PUT_LAYOUT] =
        {"layout", IN_BODY, FIELD_CHOICE, .words = "tree|set",
         .help =
             "tree: 1 write unit a task at any size; set: one growing item, as the service that it replaces did"},
    [PUT_FIRST] = {"first", IN_BODY, FIELD_INT, .min = -FIRST_MOST, .max = FIRST_MOST,
                   .help = "the number of the first task (default: 0)"},
    [PUT_DEADLINE] = {"deadline", IN_BODY, FIELD_DURATION, .min = 1, .max = JOB_LONG_MS, .takes_time = true,
                      .help = "when it EXPIRES with what is done then: how long from now, or a time"},
    [PUT_TOLERATE] = {"tolerate", IN_BODY, FIELD_JSON,
                      .help = "so many tasks may fail: a number, or \"5%\" of the total (default: 0)"},
    [PUT_KEEP] = FIELD_KEEP(JOB_LONG_MS, "how long it is kept after its end (default: for ever)"),
    [PUT_THEN] = {"then", IN_BODY, FIELD_THEN, .help = "what runs when it ends: a function, a URL or a call"},
    [PUT_PARENT] =
        {"parent", IN_BODY, FIELD_JSON,
         .help = "the task of another job that this one is: {\"job\", \"task\"}; it is done when this is"},
    [PUT_ITEMS] = {"items", IN_BODY, FIELD_LIST, .help = "what each task is given, instead of their number"},
    [PUT_FROM] = {"from", IN_BODY, FIELD_JSON,
                  .help = "a table whose items they are: {\"table\", \"query\" or \"scan\"}"},
    JOB_EACH(PUT_EACH),
    [PUT_REPLY] = FIELD_ANSWERED("state", FIELD_TEXT),
    FIELD_ANSWERED("preparing", FIELD_BOOL),
    FIELD_ANSWERED("done", FIELD_INT),
    FIELD_ANSWERED("missing", FIELD_INT),
    FIELD_ANSWERED("exact", FIELD_BOOL),
    FIELD_ANSWERED("failed", FIELD_INT),
    FIELD_ANSWERED("opened", FIELD_TEXT),
    FIELD_ANSWERED("closed", FIELD_TEXT),
};

/* Named tasks, in the order of their leaves. */
struct named {
    struct slice name;
    int64_t leaf;
};

/* The tasks that were sent: names, or their number. */
struct put {
    struct named *names;
    size_t count; /* of names; 0: there are none, or an empty list, which is a total of 0 */
    int64_t leaves;
    struct slice digest;
    int64_t total;             /* -1: none was sent, or there are names or items */
    struct slice source;       /* of items, SLICE_NONE: there are none; what is told of it beside */
    struct slice each;         /* settings; SLICE_NONE: nothing is called */
    struct slice then, parent; /* as the head has them; SLICE_NONE */
};

/* ---- what was sent ---- */

static _Noreturn void refuse_request(struct flow *flow, const char *sentence)
{
    task_refuse(flow, 400, "bad-request", "%s", sentence);
}

static void tolerate_check(struct flow *flow, unsigned field)
{
    struct slice value = flow_text(flow, field), text = raw_text(flow->arena, value);
    int64_t number;
    if (!flow_given(flow, field)) return;
    bool is_text = raw_kind(value) == JSON_STRING, fits = false;
    if (is_text && text.len > 1 && text.data[text.len - 1] == '%')
        fits = raw_int((struct slice){text.data, text.len - 1}, &number) && number >= 0 && number <= 100;
    else if (raw_kind(value) == JSON_NUMBER)
        fits = raw_int(text, &number) && number >= 0 && number <= JOB_TASKS_MOST;
    if (!fits) refuse_request(flow, "tolerate must be a number of tasks, or a share like \"5%\".");
}

static int by_leaf(const void *a, const void *b)
{
    const struct named *one = a, *two = b;
    if (one->leaf != two->leaf) return one->leaf < two->leaf ? -1 : 1;
    return slice_compare(one->name, two->name);
}

/* Reads the names, gives each its leaf and sorts them. `leaves` 0: as many as they need. */
static void names_read(struct flow *flow, unsigned field, struct put *put, int64_t leaves)
{
    struct slice list = flow_text(flow, field), value;
    size_t count = raw_count(flow->arena, list), bytes = 0;
    uint64_t digest = 0;
    if (count > NAMES_MOST) refuse_request(flow, "tasks must hold at most 100000 names.");
    if (!count) put->total = 0;
    put->names = arena_zero(flow->arena, count * sizeof *put->names);
    put->count = 0;
    raw_each (flow->arena, list, &value) {
        struct slice name = raw_kind(value) == JSON_STRING ? raw_text(flow->arena, value) : SLICE_NONE;
        if (!name.len || name.len > JOB_NAME_BYTES)
            refuse_request(flow, "A name of a task is a string of 1 to 200 bytes.");
        put->names[put->count++].name = name;
        bytes += name.len;
        digest += hash_bytes(name);
    }
    put->leaves = leaves ? leaves : (int64_t)(bytes / LEAF_BYTES + 1);
    put->digest = arena_printf(flow->arena, "%016llx", (unsigned long long)digest);
    for (size_t i = 0; i < count; i++)
        put->names[i].leaf = job_leaf_of_name(&(struct job){.leaves = put->leaves}, put->names[i].name);
    qsort(put->names, count, sizeof *put->names, by_leaf);
    for (size_t i = 1; i < count; i++)
        if (by_leaf(&put->names[i - 1], &put->names[i]) == 0)
            refuse_request(flow, "A name of a task stands in tasks more than once.");
}

/* The end of a job that is a task of another marks that: it is told by the same reactions as everybody. */
static void parent_check(struct flow *flow, struct put *put)
{
    struct slice sent = flow_text(flow, PUT_PARENT), outer, task;
    int64_t number;
    put->then = flow_then(flow, PUT_THEN);
    if (!flow_given(flow, PUT_PARENT)) return;
    outer = raw_kind(sent) == JSON_OBJECT ? raw_text(flow->arena, raw_member(flow->arena, sent, "job"))
                                          : SLICE_NONE;
    task = raw_kind(sent) == JSON_OBJECT ? raw_member(flow->arena, sent, "task") : SLICE_NONE;
    if (!outer.len || !task.data || raw_count(flow->arena, sent) != 2)
        refuse_request(flow, "parent must be {\"job\": its id, \"task\": a number or name}.");
    struct slice name = job_task_sent(flow, task, &number);
    if (memchr(name.data ? name.data : "", '{', name.len))
        refuse_request(flow, "The task of parent must not have a brace in its name.");
    struct slice path = rest_encoded(flow->arena, outer), own = SLICE("");
    if (put->then.data)
        own = put->then.len && put->then.data[0] == '['
                  ? slice_trim((struct slice){put->then.data + 1, put->then.len - 2})
              : put->then.len && put->then.data[0] == '{' ? put->then
                                                          : flow_compose(flow, "%s", put->then);
    put->parent = flow_compose(flow, "%J", sent);
    put->then = flow_compose(
        flow,
        "[%A%,{'call':'POST /v1/jobs/%r/done','body':{'task':%A,'result':{'job':'{detail.id}','total':'{detail.total}',"
        "'done':'{detail.done}','failed':'{detail.failed}'}},'on':'COMPLETE'},{'call':'POST /v1/jobs/%r/failed',"
        "'body':{'task':%A,'reason':'The job {detail.id} is {detail.state}.'},'on':['FAILED','EXPIRED']}]",
        own, path, task, path, task);
    struct pattern_target targets[PATTERN_TARGETS];
    unsigned count;
    const char *fault = pattern_then_read(put->then, flow->arena, targets, &count);
    if (fault) task_refuse(flow, 400, "bad-request", "then with parent %s.", fault);
}

/* ---- opening ---- */

/* False: another one of this id was there first. */
static bool put_create(struct flow *flow, const struct put *put)
{
    struct job *job = flow->state;
    int64_t deadline_ms = flow_moment(flow, PUT_DEADLINE);
    if (deadline_ms && (deadline_ms <= flow->now_ms || deadline_ms > flow->now_ms + JOB_LONG_MS))
        refuse_request(flow, "deadline must be a time to come, within ten years.");
    slots_count(flow, &job_slots, job->id);
    job_each_prepare(flow, put->each);
    /* Those of the same millisecond and process in the order in which they came. */
    struct slice run = arena_printf(flow->arena, "%013lld-%03llx%03llx", (long long)flow->now_ms,
                                    (unsigned long long)(flow->serial & 0xfff),
                                    (unsigned long long)(flow_random(flow) & 0xfff));
    struct edit edit = {0};
    job_open(flow, &edit, deadline_ms);
    edit_set(flow, &edit, "run", "%S", run);
    edit_set(flow, &edit, "layout", "%S", flow_int(flow, PUT_LAYOUT) ? SLICE("set") : SLICE("tree"));
    edit_set(flow, &edit, "epoch", "{'N':'1'}");
    edit_set(flow, &edit, "failures", "{'N':'0'}");
    edit_set(flow, &edit, "opened", "%S", moment_text(flow->arena, flow->now_ms));
    if (put->count)
        edit_put(flow, &edit, EDIT_SET, "#total = :total, #leaves = :leaves, #names = :names",
                 "':total':%N,':leaves':%N,':names':%S", (int64_t)put->count, put->leaves, put->digest);
    else if (put->total >= 0 && !put->source.data)
        edit_set(flow, &edit, "total", "%N", put->total);
    if (flow_given(flow, PUT_FIRST)) edit_set(flow, &edit, "first", "%N", flow_int(flow, PUT_FIRST));
    if (deadline_ms) edit_set(flow, &edit, "deadline", "%N", deadline_ms);
    if (flow_given(flow, PUT_KEEP)) edit_set(flow, &edit, "keep", "%N", flow_int(flow, PUT_KEEP));
    if (flow_given(flow, PUT_TOLERATE))
        edit_set(flow, &edit, "tolerate", "%J", flow_text(flow, PUT_TOLERATE));
    if (put->then.data) edit_set(flow, &edit, "then", "%S", put->then);
    if (put->parent.data) edit_set(flow, &edit, "parent", "%A", put->parent);
    if (put->parent.data && flow_given(flow, PUT_THEN))
        edit_set(flow, &edit, "own_then", "%S", flow_then(flow, PUT_THEN));
    if (put->source.data) edit_set(flow, &edit, "source", "%S", put->source);
    if (put->source.data && put->digest.data) edit_set(flow, &edit, "names", "%S", put->digest);
    job_each_set(flow, &edit, put->each);
    edit_if(flow, &edit, "attribute_not_exists(#id)", NULL);
    return job_took(flow, edit_write(flow, &edit, &job_table, job_key(flow)));
}

/* Its tasks may become names. */
static bool takes_names(const struct job *job)
{
    return job->blank && job->state == JOB_OPEN && job->fan == JOB_FAN;
}

/* Whether two reactions, as they are stored, say the same. */
static bool then_equal(struct flow *flow, struct slice a, struct slice b)
{
    bool are_json = a.len && b.len && (a.data[0] == '{' || a.data[0] == '[') && a.data[0] == b.data[0];
    if (!are_json) return slice_equal(a, b);
    return attribute_equal(flow->arena, flow_compose(flow, "%J", a), flow_compose(flow, "%J", b));
}

/* The name of what was sent and is otherwise in the job that is there; NULL: nothing is. */
static const char *other_setting(struct flow *flow)
{
    struct job *job = flow->state;
    struct slice tolerate = item_attribute(flow->arena, job->item, "tolerate");
    bool is_time = flow->fields[PUT_DEADLINE].is_time;
    int64_t since_ms = is_time ? 0 : job_opened_ms(job->run);
    int64_t within_ms = job->deadline_ms ? job->deadline_ms - since_ms : 0;
    if (flow_given(flow, PUT_DEADLINE) && flow_int(flow, PUT_DEADLINE) != within_ms) return "deadline";
    if (flow_given(flow, PUT_TOLERATE) &&
        !attribute_equal(flow->arena, flow_compose(flow, "%J", flow_text(flow, PUT_TOLERATE)),
                         tolerate.data ? tolerate : SLICE("{\"N\":\"0\"}")))
        return "tolerate";
    if (flow_given(flow, PUT_KEEP) && flow_int(flow, PUT_KEEP) != job->keep_ms) return "keep";
    bool has_parent = item_has(flow->arena, job->item, "parent");
    struct slice parent = flow_given(flow, PUT_PARENT) ? flow_compose(flow, "%J", flow_text(flow, PUT_PARENT))
                                                       : SLICE_NONE;
    if (parent.data &&
        !attribute_equal(flow->arena, parent, item_attribute(flow->arena, job->item, "parent")))
        return "parent";
    if (flow_given(flow, PUT_THEN) &&
        !then_equal(flow, flow_then(flow, PUT_THEN),
                    item_text(flow->arena, job->item, has_parent ? "own_then" : "then")))
        return "then";
    return job_each_other(flow, PUT_EACH);
}

/* Whether what was sent of items is what the job has. */
static bool same_items(struct flow *flow, const struct put *put)
{
    const struct job *job = flow->state;
    struct slice source = item_text(flow->arena, job->item, "source");
    if (!put->source.data) return !job->has_items || put->total < 0 || put->total == job->total;
    if (put->source.len && put->source.data[0] == '{') return then_equal(flow, put->source, source);
    return slice_equal(put->source, source) &&
           slice_equal(put->digest, item_text(flow->arena, job->item, "names"));
}

/* The job is there: is it the one that was meant? */
static void put_compare(struct flow *flow, const struct put *put, bool is_created)
{
    struct job *job = flow->state;
    bool is_set = job->fan == JOB_SET_MOST;
    bool names_stay = job->named && !put->count && put->total == job->total; /* GET tells no names */
    if (job->state == JOB_DELETING)
        task_refuse(flow, 409, "being-deleted", "The job of this id is being deleted. Try again.");
    if (!same_items(flow, put))
        task_refuse(flow, 409, "other-tasks", "There is a job of this id with other tasks, or items.");
    if (job->named != (put->count > 0) && !takes_names(job) && !names_stay)
        task_refuse(flow, 409, "other-tasks", "There is a job of this id whose tasks are %s.",
                    job->named ? "names" : "numbers");
    if (job->named && !names_stay && !slice_equal(item_text(flow->arena, job->item, "names"), put->digest))
        task_refuse(flow, 409, "other-tasks",
                    "There is a job of this id with other tasks; PATCH adds to them.");
    if (flow_given(flow, PUT_LAYOUT) && is_set != (flow_int(flow, PUT_LAYOUT) == 1))
        task_refuse(flow, 409, "other-layout", "There is a job of this id with the layout %s.",
                    is_set ? "set" : "tree");
    if (flow_given(flow, PUT_FIRST) && flow_int(flow, PUT_FIRST) != job->first)
        task_refuse(flow, 409, "other-tasks", "There is a job of this id whose first task is %lld.",
                    (long long)job->first);
    if (!is_created && other_setting(flow))
        task_refuse_with(
            flow, flow_compose(flow, "'differs':%s", slice_of(other_setting(flow))), 409, "other-settings",
            "There is a job of this id with another %s. PATCH changes deadline, tolerate, and each and "
            "what belongs to it.",
            other_setting(flow));
}

/* ---- names ---- */

/* A job that was opened without total and tasks gets names, if no number came first. */
static bool give_names(struct flow *flow, const struct put *put)
{
    const struct job *job = flow->state;
    return job_took(
        flow,
        JOB_EDIT(
            flow, "SET #total = :total, #leaves = :leaves, #names = :names ADD #epoch :one",
            "#run = :run and #state = :open and attribute_not_exists(#total) and attribute_not_exists(#reach)",
            "':total':%N,':leaves':%N,':names':%S,':one':{'N':'1'},':run':%S,':open':{'S':'OPEN'}",
            (int64_t)put->count, put->leaves, put->digest, job->run));
}

/* The names of a leaf, which stand together. */
static struct slice leaf_names(struct flow *flow, const struct put *put, int64_t leaf, int64_t *count)
{
    struct buf out = {0};
    size_t low = 0, high = put->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (put->names[middle].leaf < leaf)
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    for (; low < put->count && put->names[low].leaf == leaf; low++) {
        if ((*count)++) buf_byte(&out, ',');
        json_put_string(&out, put->names[low].name);
    }
    return arena_take(flow->arena, &out);
}

/* Puts all names into their leaves, each once, and says so; false: the job was deleted meanwhile. A leaf that only an
 * expiry has made is put again. */
static bool prepare(struct flow *flow, const struct put *put)
{
    struct job *job = flow->state;
    for (int64_t leaf = 0; leaf < put->leaves; leaf++) {
        int64_t count;
        struct slice names = leaf_names(flow, put, leaf, &count), key = job_part_key(flow, LEVEL_LEAF, leaf);
        key.len--; /* its closing brace: the item begins with the key */
        task_call(flow, "PutItem",
                  "{'TableName':%T,'Item':%A,'wanted':%N%[%?,'waiting':{'SS':[%A]}%]},"
                  "'ConditionExpression':'attribute_not_exists(#wanted) and " LEAF_UNCLOSED "',%#,"
                  "'ExpressionAttributeValues':{':revived':%N}}",
                  &job_parts_table, key, count, count > 0, names, job->revived_ms);
    }
    JOB_EDIT(flow, "SET #prepared = :true ADD #epoch :one", "#run = :run and attribute_not_exists(#prepared)",
             "':true':{'BOOL':true},':one':{'N':'1'},':run':%S", job->run);
    struct slice run = job->run;
    job_take(flow, flow_item(flow));
    if (!slice_equal(run, job->run)) return false;
    /* A leaf that no name fell to is full from the start, and others may be by now: that is brought up. */
    if (job->state == JOB_OPEN) job_heal(flow);
    return true;
}

/* ---- growing ---- */

static _Noreturn void refuse_total(struct flow *flow)
{
    struct job *job = flow->state;
    struct slice members = flow_compose(flow, "'total':%d,'state':%s", job->total,
                                        job_state_name(job->state));
    if (job->state == JOB_OPEN)
        task_refuse_with(flow, members, 409, "wrong-total",
                         "The job has %lld tasks, and a total can only grow.", (long long)job->total);
    task_refuse_with(flow, members, 409, "job-closed", "The job is %.*s and grows no more.",
                     SLICE_ARG(job_state_name(job->state)));
}

/* One write to the head: what the leaves are is measured by the total as it is then. */
bool job_grow(struct flow *flow, int64_t total)
{
    struct job *job = flow->state;
    int64_t was = job->total;
    if (was == total && !total && job->state == JOB_OPEN) job_heal(flow); /* nothing has to be done */
    if (was == total) return true;
    if (job->state != JOB_OPEN || total < was || (job->fan == JOB_SET_MOST && total > JOB_SET_MOST))
        refuse_total(flow);
    struct edit edit = {0};
    edit_set(flow, &edit, "total", "%N", total);
    edit_put(flow, &edit, EDIT_ADD, "#epoch :one", "':one':{'N':'1'}");
    edit_if(flow, &edit, "#state = :open and #run = :run", "':open':{'S':'OPEN'},':run':%S", job->run);
    if (was < 0)
        edit_if(flow, &edit, "attribute_not_exists(#total) and attribute_not_exists(#leaves)", NULL);
    else
        edit_if(flow, &edit, "#total = :was", "':was':%N", was);
    if (!job_took(flow, edit_write(flow, &edit, &job_table, job_key(flow)))) return false;
    if (was < 0) job_heal(flow); /* what was done before the total was known */
    job->has_counted = false;
    return true;
}

void job_put(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct put put = {0};
    bool is_created = false, is_settled = false;
    bool is_set = flow_int(flow, PUT_LAYOUT) == 1;
    int kinds = flow_given(flow, PUT_TOTAL) + flow_given(flow, PUT_TASKS) + flow_given(flow, PUT_ITEMS);
    bool has_from = flow_given(flow, PUT_FROM);
    if (kinds > 1 || (has_from && (flow_given(flow, PUT_TASKS) || flow_given(flow, PUT_ITEMS))))
        refuse_request(flow, "Send one of total, tasks, items and from.");
    put.each = job_each_sent(flow, PUT_EACH, true);
    job_each_check(flow, PUT_EACH);
    if (is_set && (put.each.data || flow_given(flow, PUT_ITEMS) || has_from))
        refuse_request(flow, "A job with each or items has the layout tree.");
    if (has_from) {
        job_source_check(flow, flow_text(flow, PUT_FROM));
        put.source = flow_text(flow, PUT_FROM);
        if (!put.each.data) refuse_request(flow, "from is read as far as each is called: send each, too.");
    }
    if (flow_given(flow, PUT_ITEMS)) {
        job_items_check(flow, flow_text(flow, PUT_ITEMS));
        put.source = SLICE("list");
        put.digest = token_digest(flow, flow_text(flow, PUT_ITEMS));
    }
    parent_check(flow, &put);
    if (is_set && flow_given(flow, PUT_TASKS)) refuse_request(flow, "Named tasks have the layout tree.");
    if (is_set && flow_int(flow, PUT_TOTAL) > JOB_SET_MOST)
        refuse_request(flow,
                       "A job with the layout set holds at most 100000 tasks: its item ends at 400 KB.");
    tolerate_check(flow, PUT_TOLERATE);
    put.total = flow_given(flow, PUT_TOTAL) ? flow_int(flow, PUT_TOTAL) : -1;
    if (flow_given(flow, PUT_TASKS)) names_read(flow, PUT_TASKS, &put, 0);
    for (bool is_first = true; !is_settled; is_first = false) {
        if (!is_first) task_again(flow);
        job_load(flow);
        if (!job->item.data) is_created = put_create(flow, &put);
        if (!job->item.data) continue;
        job_each_follow(flow, false);
        put_compare(flow, &put, is_created);
        if (!job->named && put.count && !give_names(flow, &put)) continue;
        is_settled = true;
        if (job->named && put.count && !job->prepared && job->state == JOB_OPEN)
            is_settled = prepare(flow, &put);
        else if (!job->named && put.total >= 0)
            is_settled = job_grow(flow, put.total);
        else if (flow_given(flow, PUT_ITEMS) && job->state == JOB_OPEN && job->total < 0)
            job_items_put(flow, flow_text(flow, PUT_ITEMS));
    }
    job->has_counted = false;
    job_answer(flow, is_created ? 201 : 200);
}

/* ---- PATCH ---- */

enum { PATCH_TOTAL = JOB_ID + 1, PATCH_TASKS, PATCH_DEADLINE, PATCH_TOLERATE, PATCH_EACH };

const struct field job_patch_fields[] = {
    FIELD_JOB_ID,
    [PATCH_TOTAL] = {"total", IN_BODY, FIELD_INT, .min = 0, .max = JOB_TASKS_MOST, .help = "a larger one"},
    [PATCH_TASKS] = {"tasks", IN_BODY, FIELD_LIST, .help = "names of further tasks"},
    [PATCH_DEADLINE] = {"deadline", IN_BODY, FIELD_DURATION, .min = 1, .max = JOB_LONG_MS,
                        .help = "another one, from now on; opens a job again that has EXPIRED"},
    [PATCH_TOLERATE] = {"tolerate", IN_BODY, FIELD_JSON, .help = "so many tasks may fail, or \"5%\" of them"},
    JOB_EACH(PATCH_EACH),
};

/* Deadline and tolerance, and how tasks are called; who has seen the former tolerance completes nothing by it. */
static bool patch_settings(struct flow *flow, bool has_deadline)
{
    const struct job *job = flow->state;
    struct slice each = job_each_sent(flow, PATCH_EACH, !job->is_driven);
    struct job next = *(struct job *)flow->state;
    struct edit edit = {0};
    if (has_deadline) {
        next.deadline_ms = flow->now_ms + flow_int(flow, PATCH_DEADLINE);
        edit_set(flow, &edit, "deadline", "%N", next.deadline_ms);
    }
    if (flow_given(flow, PATCH_TOLERATE))
        edit_set(flow, &edit, "tolerate", "%J", flow_text(flow, PATCH_TOLERATE));
    job_each_set(flow, &edit, each);
    edit_set(flow, &edit, "due", "%N", job_due_ms(flow, &next));
    edit_put(flow, &edit, EDIT_ADD, "#epoch :one", "':one':{'N':'1'}");
    edit_if(flow, &edit, "#run = :run and #state = :open", "':run':%S,':open':{'S':'OPEN'}", next.run);
    return job_took(flow, edit_write(flow, &edit, &job_table, job_key(flow)));
}

/* Adds names to a leaf, each once, whatever became of it since. */
static bool names_write(struct flow *flow, const struct put *put, const size_t *chosen, size_t count,
                        int64_t epoch, struct leaf *leaf)
{
    const struct job *job = flow->state;
    struct leaf added = {.names = arena_array(flow->arena, struct slice, count)};
    int64_t offsets[NAMES_AT_ONCE];
    struct edit edit = {0};
    for (size_t i = 0; i < count; i++) {
        added.names[i] = put->names[chosen[i]].name;
        offsets[i] = (int64_t)i;
    }
    edit_put(flow, &edit, EDIT_SET, "#epoch = :epoch", "':epoch':%N", epoch);
    edit_put(flow, &edit, EDIT_ADD, "#wanted :count, #waiting :names", "':count':%N,':names':%A",
             (int64_t)count, job_leaf_set(flow, &added, offsets, count));
    edit_if(flow, &edit, "attribute_exists(#wanted) and (attribute_not_exists(#epoch) or #epoch <= :epoch)",
            NULL);
    edit_if(flow, &edit, LEAF_UNCLOSED, "':revived':%N", job->revived_ms);
    job_leaf_if_names(flow, &edit, added.names, count, false);
    if (!edit_write(flow, &edit, &job_parts_table, job_part_key(flow, LEVEL_LEAF, leaf->index))) return false;
    job_leaf_read(flow, leaf->index, flow_item(flow), leaf);
    return true;
}

/* One change that adds names to their leaves, begun with the first that is new; false: something came in between. */
static bool names_add(struct flow *flow, const struct put *put)
{
    struct job *job = flow->state;
    struct branch branch;
    int64_t added = 0, epoch = 0;
    if (job->changing) { /* by a caller who has left it, perhaps with the same names */
        if (!job_change_begin(flow)) return false;
        epoch = job->changing;
    }
    for (size_t at = 0; at < put->count;) {
        struct leaf leaf;
        size_t chosen[NAMES_AT_ONCE], count = 0;
        job_leaf_load(flow, put->names[at].leaf, &leaf);
        if (!leaf.there) job_refuse_unprepared(flow);
        for (; at < put->count && put->names[at].leaf == leaf.index && count < NAMES_AT_ONCE; at++)
            if (job_leaf_find(&leaf, put->names[at].name) < 0) chosen[count++] = at;
        if (!count) continue;
        if (!epoch && (job->state != JOB_OPEN || !job_change_begin(flow))) return false;
        if (!epoch) epoch = job->changing;
        if (!names_write(flow, put, chosen, count, epoch, &leaf)) return false;
        added += (int64_t)count;
        job_tell_branch(flow, &leaf, &branch);
    }
    if (!epoch) return true;
    if (!job_change_end(flow, epoch, job->total + added, NULL)) return false;
    job_tell_head(flow, NULL, false);
    return true;
}

/* Deadline and tolerance come before growth: a job that grows is not over by the old ones. */
void job_patch(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct put put = {0};
    bool has_names = flow_given(flow, PATCH_TASKS), is_settled = false;
    bool sets_each = false, sets_deadline = flow_given(flow, PATCH_DEADLINE),
         sets = sets_deadline || flow_given(flow, PATCH_TOLERATE);
    for (unsigned i = 0; i < JOB_EACH_FIELDS; i++) sets_each |= flow_given(flow, PATCH_EACH + i);
    sets |= sets_each;
    job_each_check(flow, PATCH_EACH);
    if (flow_given(flow, PATCH_TOTAL) && has_names) refuse_request(flow, "Send either total or tasks.");
    tolerate_check(flow, PATCH_TOLERATE);
    for (bool is_first = true; !is_settled; is_first = false) {
        if (!is_first) task_again(flow);
        job_load_existing(flow);
        if (job->state == JOB_CLOSING && sets_deadline) {
            job_expire(flow);
            continue;
        }
        if (job->state == JOB_EXPIRED && sets_deadline) {
            if (!job_revive(flow, flow->now_ms + flow_int(flow, PATCH_DEADLINE))) continue;
            sets_deadline = false;
            sets = sets_each || flow_given(flow, PATCH_TOLERATE);
            job_heal(flow); /* what was done just before it ended */
        }
        if (job->state != JOB_OPEN || (job_is_closing(flow, job) && !sets_deadline)) job_refuse_closed(flow);
        if (has_names && takes_names(job)) {
            names_read(flow, PATCH_TASKS, &put, 0);
            if (put.count ? !give_names(flow, &put) : !job_grow(flow, 0)) continue;
            if (!put.count) break;
        }
        if (job->has_items && (has_names || flow_given(flow, PATCH_TOTAL)))
            task_refuse(flow, 409, "other-tasks", "The tasks of the job are its items.");
        if (sets_each && job->fan != JOB_FAN) refuse_request(flow, "A job with each has the layout tree.");
        if ((has_names && !job->named) || (job->named && flow_given(flow, PATCH_TOTAL)))
            task_refuse(flow, 409, "other-tasks", "The tasks of the job are %s.",
                        job->named ? "names" : "numbers");
        if (has_names) names_read(flow, PATCH_TASKS, &put, job->leaves);
        if (sets && !patch_settings(flow, sets_deadline)) continue;
        sets = sets_deadline = false;
        /* Names that the job is being made with: this goes on with it. */
        bool is_being_made = job->named && !job->prepared &&
                             slice_equal(item_text(flow->arena, job->item, "names"), put.digest);
        if (has_names)
            is_settled = is_being_made ? prepare(flow, &put) : names_add(flow, &put);
        else
            is_settled = !flow_given(flow, PATCH_TOTAL) || job_grow(flow, flow_int(flow, PATCH_TOTAL));
    }
    job_each_follow(flow, true);
    job_wake(flow);
    job->has_counted = false;
    job_answer(flow, 200);
}
