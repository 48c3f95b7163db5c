/* Jobs: opening one, and changing it while it is open. The tables and what holds for them: job.c.
 *
 * A job of numbered tasks is one item: its leaves come when tasks are done. Named tasks are written into
 * their leaves at the start, head first: a job all of whose leaves are not there cannot end, and the same PUT
 * again goes on where another was interrupted. */
#include <stdlib.h>

#include "base/hash.h"
#include "calendar/calendar.h"
#include "pattern/job.h"
#include "pattern/rows.h"

#define NAME_BYTES 200
#define NAMES_MOST 100000
#define LEAF_BYTES                                                                                           \
    400 /* of names in a leaf on average, and twice as many in hardly any: below 1 KB with the rest */
#define LEAVES_TOGETHER 100 /* written by one transaction */
#define NAMES_AT_ONCE   20  /* added to a leaf: a condition holds at most 300 operators */
#define FIRST_MOST      1000000000

enum {
    PUT_TOTAL = JOB_ID + 1,
    PUT_TASKS,
    PUT_LAYOUT,
    PUT_FIRST,
    PUT_DEADLINE,
    PUT_TOLERATE,
    PUT_KEEP,
    PUT_THEN,
    PUT_REPLY /* what GET tells beside */
};

const struct field job_put_fields[] = {
    FIELD_JOB_ID,
    [PUT_TOTAL] = {"total", IN_BODY, FIELD_INT, .min = 1, .max = JOB_TASKS_MOST,
                   .help = "how many tasks; may be given later, as may names"},
    [PUT_TASKS] = {"tasks", IN_BODY, FIELD_LIST, .help = "the names of the tasks, instead of their number"},
    [PUT_LAYOUT] =
        {"layout", IN_BODY, FIELD_CHOICE, .words = "tree|set",
         .help = "tree: 1 write unit a task at any size; set: one growing item, as the service that it replaces did"},
    [PUT_FIRST] = {"first", IN_BODY, FIELD_INT, .min = -FIRST_MOST, .max = FIRST_MOST,
                   .help = "the number of the first task (default: 0)"},
    [PUT_DEADLINE] = {"deadline", IN_BODY, FIELD_DURATION, .min = 1, .max = JOB_LONG_MS, .takes_time = true,
                      .help = "when it EXPIRES with what is done then: how long from now, or a time"},
    [PUT_TOLERATE] = {"tolerate", IN_BODY, FIELD_JSON,
                      .help = "so many tasks may fail: a number, or \"5%\" of the total (default: 0)"},
    [PUT_KEEP] = {"keep", IN_BODY, FIELD_DURATION, .min = 1000, .max = JOB_LONG_MS,
                  .help = "how long it is kept after its end (default: for ever)"},
    [PUT_THEN] = {"then", IN_BODY, FIELD_THEN, .help = "what runs when it ends: a function, a URL or a call"},
    [PUT_REPLY] = {"state", IN_REPLY, FIELD_TEXT, .help = "as GET answers it; it changes nothing"},
    {"done", IN_REPLY, FIELD_INT, .help = "as GET answers it; it changes nothing"},
    {"missing", IN_REPLY, FIELD_INT, .help = "as GET answers it; it changes nothing"},
    {"exact", IN_REPLY, FIELD_BOOL, .help = "as GET answers it; it changes nothing"},
    {"failed", IN_REPLY, FIELD_INT, .help = "as GET answers it; it changes nothing"},
    {"opened", IN_REPLY, FIELD_TEXT, .help = "as GET answers it; it changes nothing"},
    {"closed", IN_REPLY, FIELD_TEXT, .help = "as GET answers it; it changes nothing"},
};

/* Named tasks, in the order of their leaves. */
struct named {
    struct slice name;
    int64_t leaf;
};

struct put {
    struct named *names;
    size_t count;
    int64_t leaves;
    struct slice digest;
    size_t at;                            /* the first name of the leaves that are being written */
    int64_t leaf, batch[LEAVES_TOGETHER]; /* the next leaf, and those of the present transaction */
    unsigned batch_count;
    bool created, revived; /* revived: with the new deadline */
    flow_step *again;              /* behind a race that was lost */
    int64_t chosen[NAMES_AT_ONCE]; /* PATCH: names that are being added */
    size_t chosen_count, chosen_end;
};

static flow_step put_loaded, put_created, put_named, put_load, leaves_next, leaves_write, leaves_written, prepared,
    put_tell, grow_again, grow_done, patch_loaded, patch_revived, patch_reload, patch_heal, patch_set, patch_grow,
    names_next, names_found, names_added;

/* ---- what was sent ---- */

static bool tolerate_fits(struct flow *flow, unsigned field)
{
    struct slice value = flow_text(flow, field), text = raw_text(flow->arena, value);
    int64_t number;
    if (!flow_given(flow, field)) return true;
    bool is_text = raw_kind(value) == JSON_STRING, fits = false;
    if (is_text && text.len > 1 && text.data[text.len - 1] == '%')
        fits = raw_int((struct slice){text.data, text.len - 1}, &number) && number >= 0 && number <= 100;
    else if (raw_kind(value) == JSON_NUMBER)
        fits = raw_int(text, &number) && number >= 0 && number <= JOB_TASKS_MOST;
    if (!fits)
        flow_refuse(flow, 400, "bad-request", "tolerate must be a number of tasks, or a share like \"5%%\".");
    return fits;
}

static int by_leaf(const void *a, const void *b)
{
    const struct named *one = a, *two = b;
    if (one->leaf != two->leaf) return one->leaf < two->leaf ? -1 : 1;
    return slice_compare(one->name, two->name);
}

static bool names_refuse(struct flow *flow, const char *sentence)
{
    flow_refuse(flow, 400, "bad-request", "%s", sentence);
    return false;
}

/* Reads the names, gives each its leaf and sorts them. `leaves` 0: as many as they need. */
static bool names_read(struct flow *flow, unsigned field, struct put *put, int64_t leaves)
{
    struct slice list = flow_text(flow, field), value;
    size_t count = raw_count(flow->arena, list), bytes = 0;
    struct raw_look look;
    uint64_t digest = 0;
    if (count == 0 || count > NAMES_MOST) return names_refuse(flow, "tasks must hold 1 to 100000 names.");
    put->names = arena_array(flow->arena, struct named, count);
    put->count = 0;
    raw_look_begin(&look, flow->arena, list);
    while (raw_look_next(&look, NULL, &value)) {
        struct slice name = raw_kind(value) == JSON_STRING ? raw_text(flow->arena, value) : SLICE_NONE;
        if (!name.len || name.len > NAME_BYTES)
            return names_refuse(flow, "A name of a task is a string of 1 to 200 bytes.");
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
            return names_refuse(flow, "A name of a task stands in tasks more than once.");
    return true;
}

static bool put_fits(struct flow *flow, struct put *put)
{
    bool is_set = flow_int(flow, PUT_LAYOUT) == 1;
    if (flow_given(flow, PUT_TOTAL) && flow_given(flow, PUT_TASKS))
        return names_refuse(flow, "Send either total or tasks.");
    if (is_set && flow_given(flow, PUT_TASKS)) return names_refuse(flow, "Named tasks have the layout tree.");
    if (is_set && flow_int(flow, PUT_TOTAL) > JOB_SET_MOST)
        return names_refuse(flow,
                            "A job with the layout set holds at most 100000 tasks: its item ends at 400 KB.");
    if (!tolerate_fits(flow, PUT_TOLERATE)) return false;
    return !flow_given(flow, PUT_TASKS) || names_read(flow, PUT_TASKS, put, 0);
}

/* ---- opening ---- */

void job_put(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct put *put = work->own = arena_new(flow->arena, struct put);
    put->again = put_loaded;
    if (put_fits(flow, put)) put_load(flow);
}

static void put_load(struct flow *flow)
{
    job_load(flow, true, put_loaded);
}

static struct slice number_member(struct flow *flow, unsigned field, const char *name)
{
    if (!flow_given(flow, field)) return SLICE("");
    return flow_compose(flow, ",'%r':%N", slice_of(name), flow_int(flow, field));
}

static void put_create(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    struct job soon = {.deadline_ms = flow_moment(flow, PUT_DEADLINE)};
    if (soon.deadline_ms && (soon.deadline_ms <= flow->now_ms || soon.deadline_ms > flow->now_ms + JOB_LONG_MS)) {
        flow_refuse(flow, 400, "bad-request", "deadline must be a time to come, within ten years.");
        return;
    }
    /* Those of the same millisecond and process in the order in which they came. */
    struct slice run = arena_printf(flow->arena, "%013lld-%03llx%03llx", (long long)flow->now_ms,
                                    (unsigned long long)(flow->serial & 0xfff),
                                    (unsigned long long)(flow_random(flow) & 0xfff));
    struct slice tasks = number_member(flow, PUT_TOTAL, "total");
    if (put->count)
        tasks = flow_compose(flow, ",'total':%N,'leaves':%N,'names':%S", (int64_t)put->count, put->leaves,
                             put->digest);
    flow_call(
        flow, put_created, "PutItem",
        "{'TableName':%T,'Item':{'id':%S,'run':%S,'state':{'S':'OPEN'},'layout':%S,'failures':{'N':'0'},"
        "'opened':%S,'listed':%S,'slot':%S,'due':%N%A%A%A%A%A%A},'ConditionExpression':'attribute_not_exists(#id)',%#}",
        &job_table, work->id, run, flow_int(flow, PUT_LAYOUT) ? SLICE("set") : SLICE("tree"),
        moment_text(flow->arena, flow->now_ms), job_listed(flow, JOB_OPEN), job_slot(flow),
        job_heal_ms(flow, &soon), tasks, number_member(flow, PUT_FIRST, "first"),
        soon.deadline_ms ? flow_compose(flow, ",'deadline':%N", soon.deadline_ms) : SLICE(""),
        number_member(flow, PUT_KEEP, "keep"),
        flow_given(flow, PUT_TOLERATE) ? flow_compose(flow, ",'tolerate':%J", flow_text(flow, PUT_TOLERATE))
                                       : SLICE(""),
        flow_given(flow, PUT_THEN) ? flow_compose(flow, ",'then':%S", flow_then(flow, PUT_THEN)) : SLICE(""));
}

/* A job that was opened without total and tasks gets names, if no number came first. */
static void put_names(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct put *put = work->own;
    flow_call(flow, put_named, "UpdateItem",
              "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #total = :total, #leaves = :leaves, #names = "
              ":names','ConditionExpression':'#run = :run and #state = :open and attribute_not_exists(#total) and "
              "attribute_not_exists(#reach)',%#,'ExpressionAttributeValues':{':total':%N,':leaves':%N,':names':%S,"
              "':run':%S,':open':{'S':'OPEN'}},%O}",
              &job_table, work->id, (int64_t)put->count, put->leaves, put->digest, work->job.run);
}

static void put_named(struct flow *flow)
{
    if (flow_failed(flow))
        flow_again(flow, grow_again);
    else
        grow_again(flow);
}

static void put_created(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    put->created = !flow_failed(flow);
    put_load(flow);
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
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
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
    if (flow_given(flow, PUT_THEN) &&
        !then_equal(flow, flow_then(flow, PUT_THEN), item_text(flow->arena, job->item, "then")))
        return "then";
    return NULL;
}

/* The job is there: is it the one that was meant? */
static bool put_differs(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct put *put = work->own;
    const struct job *job = &work->job;
    bool is_set = job->fan == JOB_SET_MOST;
    bool names_stay = job->named && !put->count && flow_int(flow, PUT_TOTAL) == job->total; /* GET tells no names */
    if (job->state == JOB_DELETING)
        flow_refuse(flow, 409, "being-deleted", "The job of this id is being deleted. Try again.");
    else if (job->named != (put->count > 0) && !takes_names(job) && !names_stay)
        flow_refuse(flow, 409, "other-tasks", "There is a job of this id whose tasks are %s.",
                    job->named ? "names" : "numbers");
    else if (job->named && !names_stay && !slice_equal(item_text(flow->arena, job->item, "names"), put->digest))
        flow_refuse(flow, 409, "other-tasks",
                    "There is a job of this id with other tasks; PATCH adds to them.");
    else if (flow_given(flow, PUT_LAYOUT) && is_set != (flow_int(flow, PUT_LAYOUT) == 1))
        flow_refuse(flow, 409, "other-layout", "There is a job of this id with the layout %s.",
                    is_set ? "set" : "tree");
    else if (flow_given(flow, PUT_FIRST) && flow_int(flow, PUT_FIRST) != job->first)
        flow_refuse(flow, 409, "other-tasks", "There is a job of this id whose first task is %lld.",
                    (long long)job->first);
    else if (!put->created && other_setting(flow))
        flow_refuse_with(flow, flow_compose(flow, "'differs':%s", slice_of(other_setting(flow))), 409,
                         "other-settings",
                         "There is a job of this id with another %s. PATCH changes deadline and tolerate.",
                         other_setting(flow));
    else
        return false;
    return true;
}

static void grow(struct flow *flow, int64_t total);

static void put_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct put *put = work->own;
    if (!work->job.item.data)
        put_create(flow);
    else if (put_differs(flow))
        return;
    else if (!work->job.named && put->count)
        put_names(flow);
    else if (work->job.named && put->count && !work->job.prepared && work->job.state == JOB_OPEN)
        leaves_next(flow);
    else if (!work->job.named && flow_given(flow, PUT_TOTAL))
        grow(flow, flow_int(flow, PUT_TOTAL));
    else
        put_tell(flow);
}

static void put_tell(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct put *put = work->own;
    job_tell(flow, put->created ? 201 : 200, -1);
}

/* ---- named tasks into their leaves ---- */

/* The leaves of the next transaction; behind the last, the job is prepared. */
static void leaves_next(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    put->batch_count = 0;
    while (put->batch_count < LEAVES_TOGETHER && put->leaf < put->leaves)
        put->batch[put->batch_count++] = put->leaf++;
    if (put->batch_count)
        leaves_write(flow);
    else
        flow_call(flow, prepared, "UpdateItem",
                  "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #prepared = :true',"
                  "'ConditionExpression':'#run = :run',%#,'ExpressionAttributeValues':{':true':{'BOOL':true},"
                  "':run':%S}}",
                  &job_table, work->id, work->job.run);
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
    struct slice text = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return text;
}

static void leaves_write(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    struct buf actions = {0};
    for (unsigned i = 0; i < put->batch_count; i++) {
        int64_t count;
        struct slice names = leaf_names(flow, put, put->batch[i], &count),
                     key = job_part_key(flow, 0, put->batch[i]);
        struct slice since, unclosed = job_leaf_unclosed(flow, &since);
        key.len--; /* its closing brace: the item begins with the key */
        buf_slice(&actions,
                  flow_compose(flow,
                               "%r{'Put':{'TableName':%T,'Item':%A,'wanted':%N%A},"
                               "'ConditionExpression':'attribute_not_exists(#part) or (#wanted = :none and "
                               "%r)',%#,"
                               "'ExpressionAttributeValues':{':none':{'N':'0'}%A}}}",
                               i ? SLICE(",") : SLICE(""), &job_parts_table, key, count,
                               count ? flow_compose(flow, ",'waiting':{'SS':[%A]}", names) : SLICE(""),
                               unclosed, since));
    }
    flow_call(flow, leaves_written, "TransactWriteItems", "{'TransactItems':[%A]}", buf_view(&actions));
    buf_free(&actions);
}

/* Those that were there before are left out, but not those that nobody made but an expiry: they want nothing. */
static void leaves_written(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    struct slice item;
    unsigned kept = 0;
    if (flow_failed(flow)) {
        for (unsigned i = 0; i < put->batch_count; i++)
            if (!flow_reason(flow, i, &item)) put->batch[kept++] = put->batch[i];
        put->batch_count = kept;
    }
    if (kept)
        leaves_write(flow);
    else
        leaves_next(flow);
}

/* A leaf that no name fell to is full from the start: that is brought up like any other. */
static void prepared_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (work->job.leaves > 1 && work->job.state == JOB_OPEN)
        job_heal(flow, put_tell);
    else
        put_tell(flow);
}

static void prepared(struct flow *flow)
{
    if (flow_failed(flow))
        put_load(flow); /* deleted and made again meanwhile */
    else
        job_load(flow, true, prepared_loaded);
}

/* ---- growing ---- */

static void refuse_total(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct slice members = flow_compose(flow, "'total':%d,'state':%s", job->total,
                                        job_state_name(job->state));
    if (job->state == JOB_OPEN)
        flow_refuse_with(flow, members, 409, "wrong-total",
                         "The job has %lld tasks, and a total can only grow.", (long long)job->total);
    else
        flow_refuse_with(flow, members, 409, "job-closed", "The job is %.*s and grows no more.",
                         SLICE_ARG(job_state_name(job->state)));
}

/* The leaf and the branch that have an end of their own, as they are with the new total. */
static struct slice grow_parts(struct flow *flow, int64_t total)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    struct job next = *job;
    int64_t last = ((job->total < 0 ? total : job->total) - 1) / job->fan, branch = last / JOB_FAN;
    next.total = total;
    next.leaves = (total + job->fan - 1) / job->fan;
    struct slice leaf = flow_compose(
        flow,
        ",{'Update':{'TableName':%T,'Key':%A,'UpdateExpression':'SET #wanted = :wanted',%#,"
        "'ExpressionAttributeValues':{':wanted':%N}}}",
        &job_parts_table, job_part_key(flow, 0, last), job_leaf_wanted(&next, last));
    if (job->total < 0) return leaf; /* nothing has gone up yet */
    bool leaf_grows = job->total % job->fan != 0;
    return flow_compose(
        flow,
        "%A,{'Update':{'TableName':%T,'Key':%A,'UpdateExpression':'SET #wanted = :wanted%r',%#,"
        "'ExpressionAttributeValues':{':wanted':%N%r}}}",
        leaf_grows ? leaf : SLICE(""), &job_parts_table, job_part_key(flow, 1, branch),
        leaf_grows ? SLICE(" DELETE #full :leaf") : SLICE(""), job_branch_wanted(&next, branch),
        leaf_grows ? flow_compose(flow, ",':leaf':%A", job_number_set(flow, &last, 1)) : SLICE(""));
}

static void grow(struct flow *flow, int64_t total)
{
    struct job_work *work = flow->state;
    const struct job *job = &work->job;
    int64_t branch = job->total < 0 ? -1 : (job->total - 1) / job->fan / JOB_FAN;
    if (job->total == total) {
        put_tell(flow);
        return;
    }
    if (job->state != JOB_OPEN || total < job->total || (job->fan == JOB_SET_MOST && total > JOB_SET_MOST)) {
        refuse_total(flow);
        return;
    }
    flow_call(flow, grow_done, "TransactWriteItems",
              "{'TransactItems':[{'Update':{'TableName':%T,'Key':{'id':%S},"
              "'UpdateExpression':'SET #total = :total%r',"
              "'ConditionExpression':'#state = :open and #run = :run and "
              "%r',%#,'ExpressionAttributeValues':{':total':%N,"
              "':open':{'S':'OPEN'},':run':%S%r},%O}}%A]}",
              &job_table, work->id, branch < 0 ? SLICE("") : SLICE(" DELETE #full :branch"),
              branch < 0 ? SLICE("attribute_not_exists(#total)") : SLICE("#total = :was"), total, job->run,
              branch < 0 ? SLICE("")
                         : flow_compose(flow, ",':was':%N,':branch':%A", job->total,
                                        job_number_set(flow, &branch, 1)),
              grow_parts(flow, total));
}

static void grow_again(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct put *put = work->own;
    job_load(flow, true, put->again);
}

/* Tasks that were done before the total was known go up now. */
static void grow_loaded(struct flow *flow)
{
    job_heal(flow, put_tell);
}

static void grow_done(struct flow *flow)
{
    if (flow_failed(flow))
        flow_again(flow, grow_again);
    else
        job_load(flow, true, grow_loaded);
}

/* ---- PATCH ---- */

enum { PATCH_TOTAL = JOB_ID + 1, PATCH_TASKS, PATCH_DEADLINE, PATCH_TOLERATE };

const struct field job_patch_fields[] = {
    FIELD_JOB_ID,
    [PATCH_TOTAL] = {"total", IN_BODY, FIELD_INT, .min = 1, .max = JOB_TASKS_MOST, .help = "a larger one"},
    [PATCH_TASKS] = {"tasks", IN_BODY, FIELD_LIST, .help = "names of further tasks"},
    [PATCH_DEADLINE] = {"deadline", IN_BODY, FIELD_DURATION, .min = 1, .max = JOB_LONG_MS,
                        .help = "another one, from now on; opens a job again that has EXPIRED"},
    [PATCH_TOLERATE] = {"tolerate", IN_BODY, FIELD_JSON,
                        .help = "so many tasks may fail, or \"5%\" of them"},
};

void job_patch(struct flow *flow)
{
    struct job_work *work = job_work_new(flow, flow_text(flow, JOB_ID));
    struct put *put = work->own = arena_new(flow->arena, struct put);
    put->again = patch_loaded;
    if (flow_given(flow, PATCH_TOTAL) && flow_given(flow, PATCH_TASKS))
        flow_refuse(flow, 400, "bad-request", "Send either total or tasks.");
    else if (tolerate_fits(flow, PATCH_TOLERATE))
        job_load(flow, true, patch_loaded);
}

/* Deadline and tolerance first: a job that grows is not over by the old ones. */
static void patch_settings(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct put *put = work->own;
    bool has_deadline = flow_given(flow, PATCH_DEADLINE) && !put->revived;
    bool has_tolerate = flow_given(flow, PATCH_TOLERATE);
    struct job next = work->job;
    if (has_deadline) next.deadline_ms = flow->now_ms + flow_int(flow, PATCH_DEADLINE);
    flow_call(
        flow, patch_set, "UpdateItem",
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'SET #due = :due%r%r',"
        "'ConditionExpression':'#run = :run and #state = :open',%#,"
        "'ExpressionAttributeValues':{':due':%N,':run':%S,':open':{'S':'OPEN'}%r%r},%O}",
        &job_table, work->id, has_deadline ? SLICE(", #deadline = :deadline") : SLICE(""),
        has_tolerate ? SLICE(", #tolerate = :tolerate") : SLICE(""), job_heal_ms(flow, &next), work->job.run,
        has_deadline ? flow_compose(flow, ",':deadline':%N", next.deadline_ms) : SLICE(""),
        has_tolerate ? flow_compose(flow, ",':tolerate':%J", flow_text(flow, PATCH_TOLERATE)) : SLICE(""));
}

static void patch_names(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (names_read(flow, PATCH_TASKS, work->own, 0)) put_names(flow);
}

/* The names are those that the job is being made with: this goes on with it. */
static bool is_being_made(struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct put *put = work->own;
    return work->job.named && !work->job.prepared &&
           slice_equal(item_text(flow->arena, work->job.item, "names"), put->digest);
}

static void patch_loaded(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    const struct job *job = &work->job;
    bool named = flow_given(flow, PATCH_TASKS);
    bool has_deadline = flow_given(flow, PATCH_DEADLINE) && !put->revived;
    if (!job->item.data || job->state == JOB_DELETING)
        job_refuse_unknown(flow);
    else if (job->state == JOB_CLOSING && has_deadline)
        job_expire(flow, patch_reload);
    else if (job->state == JOB_EXPIRED && has_deadline)
        job_revive(flow, flow->now_ms + flow_int(flow, PATCH_DEADLINE), patch_revived);
    else if (job->state != JOB_OPEN || (job->deadline_ms && flow->now_ms >= job->deadline_ms && !has_deadline))
        job_refuse_closed(flow);
    else if (named && takes_names(job))
        patch_names(flow);
    else if ((named && !job->named) || (job->named && flow_given(flow, PATCH_TOTAL)))
        flow_refuse(flow, 409, "other-tasks", "The tasks of the job are %s.",
                    job->named ? "names" : "numbers");
    else if (named && !names_read(flow, PATCH_TASKS, put, job->leaves))
        return;
    else if (has_deadline || flow_given(flow, PATCH_TOLERATE))
        patch_settings(flow);
    else
        patch_grow(flow);
}

static void patch_reload(struct flow *flow)
{
    job_load(flow, true, patch_loaded);
}

/* What was done just before it ended was not brought up. */
static void patch_revived(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    put->revived = !flow_failed(flow);
    if (put->revived)
        job_load(flow, true, patch_heal);
    else
        flow_again(flow, patch_reload);
}

static void patch_heal(struct flow *flow)
{
    job_heal(flow, patch_reload);
}

static void patch_set(struct flow *flow)
{
    if (flow_failed(flow))
        flow_again(flow, grow_again);
    else
        job_load(flow, true, patch_grow);
}

static void patch_grow(struct flow *flow)
{
    const struct job_work *work = flow->state;
    const struct put *put = work->own;
    if (put->count && is_being_made(flow))
        leaves_next(flow);
    else if (flow_given(flow, PATCH_TOTAL))
        grow(flow, flow_int(flow, PATCH_TOTAL));
    else
        names_next(flow);
}

/* ---- further names ---- */

static void names_next(struct flow *flow)
{
    struct job_work *work = flow->state;
    const struct put *put = work->own;
    if (put->at < put->count)
        flow_call(flow, names_found, "GetItem", "{'TableName':%T,'Key':%A,'ConsistentRead':true}",
                  &job_parts_table, job_part_key(flow, 0, put->names[put->at].leaf));
    else
        job_load(flow, true, put_tell);
}

/* The leaf's update: a name is added once, whatever became of it since. */
static struct slice names_update(struct flow *flow, struct put *put, int64_t leaf)
{
    struct buf condition = {0}, values = {0}, set = {0};
    for (size_t i = 0; i < put->chosen_count; i++) {
        struct slice name = put->names[put->chosen[i]].name;
        buf_printf(&condition,
                   " and not contains(#waiting, :n%zu) and not contains(#done, :n%zu) and not "
                   "contains(#failed, :n%zu)",
                   i, i, i);
        buf_printf(&values, ",\":n%zu\":%.*s", i, SLICE_ARG(flow_compose(flow, "%S", name)));
        if (i) buf_byte(&set, ',');
        json_put_string(&set, name);
    }
    struct slice since, unclosed = job_leaf_unclosed(flow, &since);
    struct slice update = flow_compose(
        flow,
        "{'TableName':%T,'Key':%A,'UpdateExpression':'ADD #wanted :count, #waiting :names',"
        "'ConditionExpression':'attribute_exists(#wanted) and %r%r',%#,"
        "'ExpressionAttributeValues':{':count':%N,':names':{'SS':[%A]}%A%A}}",
        &job_parts_table, job_part_key(flow, 0, leaf), unclosed, buf_view(&condition),
        (int64_t)put->chosen_count, buf_view(&set), buf_view(&values), since);
    buf_free(&condition);
    buf_free(&values);
    buf_free(&set);
    return update;
}

static void names_write(struct flow *flow, int64_t leaf)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    int64_t branch = leaf / JOB_FAN;
    struct slice head = flow_compose(
        flow,
        "{'TableName':%T,'Key':{'id':%S},'UpdateExpression':'ADD #total :count DELETE #full :branch',"
        "'ConditionExpression':'#run = :run and #state = :open',%#,'ExpressionAttributeValues':{':count':%N,"
        "':branch':%A,':run':%S,':open':{'S':'OPEN'}}}",
        &job_table, work->id, (int64_t)put->chosen_count, job_number_set(flow, &branch, 1), work->job.run);
    struct slice above = flow_compose(
        flow,
        "{'TableName':%T,'Key':%A,'UpdateExpression':'SET #wanted = :wanted DELETE #full :leaf',%#,"
        "'ExpressionAttributeValues':{':wanted':%N,':leaf':%A}}",
        &job_parts_table, job_part_key(flow, 1, branch), job_branch_wanted(&work->job, branch),
        job_number_set(flow, &leaf, 1));
    flow_call(flow, names_added, "TransactWriteItems",
              "{'TransactItems':[{'Update':%A},{'Update':%A},{'Update':%A}]}", head,
              names_update(flow, put, leaf), above);
}

static void names_found(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    struct leaf leaf;
    size_t at = put->at;
    job_leaf_read(flow, put->names[at].leaf, flow_item(flow), &leaf);
    put->chosen_count = 0;
    for (; at < put->count && put->names[at].leaf == leaf.index && put->chosen_count < NAMES_AT_ONCE; at++)
        if (job_leaf_find(&leaf, put->names[at].name) < 0) put->chosen[put->chosen_count++] = (int64_t)at;
    put->chosen_end = at;
    if (!leaf.there) {
        flow_refuse(flow, 409, "not-prepared",
                    "The job is still being made; repeat its PUT if that was interrupted.");
    } else if (put->chosen_count) {
        names_write(flow, leaf.index);
    } else {
        put->at = at;
        names_next(flow);
    }
}

static void names_closed(struct flow *flow)
{
    struct job_work *work = flow->state;
    if (work->job.state == JOB_OPEN)
        names_next(flow); /* another of the same id meanwhile, or the leaf is being closed */
    else
        job_refuse_closed(flow);
}

static void names_look(struct flow *flow)
{
    job_load(flow, true, names_closed);
}

static void names_added(struct flow *flow)
{
    struct job_work *work = flow->state;
    struct put *put = work->own;
    if (flow_failed(flow)) {
        flow_again(flow, names_look);
        return;
    }
    put->at = put->chosen_end;
    names_next(flow);
}
