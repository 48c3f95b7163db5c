/* Jobs: what each task is given, its item. The tables and what holds for them: job.c.
 *
 * Items are entries of a chain (chain.h), in the order of the tasks: task n has the entry n + 1. No page goes beyond a
 * leaf, so that whoever wants the items of a leaf reads them and no others. They come with the PUT that opens the job,
 * as JSON lines, as many calls as it takes, or from a table, which a server reads page by page; a page of these has a
 * note with the key behind which the table goes on. A seal ends them, and then the job is told its total. So whoever is
 * interrupted goes on behind the last page, and nothing is there twice. */
#include "pattern/chain.h"
#include "pattern/job.h"
#include "pattern/rows.h"

#define LINES_BYTES (16 * 1000000) /* of a call */
#define ITEM_BYTES  300000         /* a page of one must stay below 400 KB */
#define PAGE_BYTES  250000         /* of a page of more than one */

const struct flow_table job_items_table = {"job-items", CHAIN_KEYS, NULL};

static struct chain chain_of(struct flow *flow)
{
    const struct job *job = flow->state;
    return (struct chain){
        .table = &job_items_table,
        .key = arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(job->id), SLICE_ARG(job->run))};
}

int64_t job_items_read(struct flow *flow, int64_t leaf, struct slice **items)
{
    struct chain chain = chain_of(flow);
    struct chain_reader reader = {
        .chain = &chain, .from = leaf * JOB_FAN + 1, .page = leaf * JOB_FAN + 1, .most = JOB_FAN};
    int64_t count = 0;
    *items = arena_zero(flow->arena, JOB_FAN * sizeof **items);
    while (count < JOB_FAN && chain_read(flow, &reader) && reader.number == leaf * JOB_FAN + 1 + count)
        (*items)[count++] = reader.value;
    return count;
}

int64_t job_items_count(struct flow *flow)
{
    struct chain chain = chain_of(flow);
    struct chain_end end;
    chain_read_end(flow, &chain, &end);
    return end.next - 1;
}

void job_items_remove(struct flow *flow)
{
    struct chain chain = chain_of(flow);
    chain_remove(flow, &chain);
}

/* ---- appending ---- */

/* Takes items from a list, or lines: SLICE_NONE behind the last. */
struct items {
    struct slice text;    /* lines */
    struct raw_look look; /* or a list */
    bool is_list;
    int64_t line;
};

static struct slice items_next(struct items *items)
{
    struct slice value;
    if (items->is_list) return raw_look_next(&items->look, NULL, &value) ? value : SLICE_NONE;
    while (items->text.len) {
        value = slice_trim(slice_cut(&items->text, '\n'));
        items->line++;
        if (value.len) return value;
    }
    return SLICE_NONE;
}

static void item_check(struct flow *flow, const struct items *items, struct slice item, int64_t number)
{
    const char *wrong = item.len > ITEM_BYTES             ? "it has more than 300,000 bytes"
                        : !raw_is_json(flow->arena, item) ? "it is not JSON"
                                                          : plain_fault(flow->arena, item);
    if (!wrong) return;
    if (items->is_list)
        task_refuse(flow, 400, "bad-request", "Item %lld cannot be stored: %s.", (long long)number, wrong);
    task_refuse(flow, 400, "bad-request", "Line %lld cannot be stored: %s.", (long long)items->line, wrong);
}

/* Looks at all before anything is written; answers how many there are. */
static int64_t items_check(struct flow *flow, struct items items)
{
    struct slice item;
    int64_t count = 0;
    while ((item = items_next(&items)).data) item_check(flow, &items, item, count++);
    return count;
}

/* Appends them, of which the first has this place, behind what is there, as far as they are not there yet. Answers how
 * many items the job has then; -1: some are missing before them. */
static int64_t items_append(struct flow *flow, struct items items, int64_t place)
{
    struct chain chain = chain_of(flow);
    struct chain_end end;
    struct items all = items;
    chain_read_end(flow, &chain, &end);
    if (end.next - 1 < place) return -1;
    struct slice item = items_next(&items);
    int64_t at = place;
    while (item.data && !end.is_sealed) {
        struct buf values = {0};
        size_t count = 0;
        struct arena_mark mark = arena_mark(flow->arena);
        for (; item.data && at < end.next - 1; at++) item = items_next(&items); /* they are there */
        int64_t most = JOB_FAN - (end.next - 1) % JOB_FAN;
        for (; item.data && (int64_t)count < most && (!count || values.len + item.len < PAGE_BYTES);
             at++, count++) {
            if (count) buf_byte(&values, ',');
            buf_slice(&values, flow_compose(flow, "%J", item));
            item = items_next(&items);
        }
        if (count && !chain_put(flow, &chain, &end, arena_take(flow->arena, &values), count, SLICE_NONE)) {
            items = all; /* another was there first, perhaps with the same: from the start */
            at = place;
            item = items_next(&items);
        }
        buf_free(&values);
        if (!end.is_sealed) flow_rewind(flow, mark);
    }
    return end.next - 1;
}

/* Nothing comes behind them: the job has as many tasks. */
static void items_end(struct flow *flow)
{
    struct chain chain = chain_of(flow);
    struct chain_end end;
    chain_read_end(flow, &chain, &end);
    chain_seal(flow, &chain, &end, SLICE("{\"BOOL\":true}"), 0);
    while (!job_grow(flow, end.next - 1)) {
        task_again(flow);
        job_load_existing(flow);
    }
}

/* ---- a list in the PUT ---- */

static struct items list_of(struct flow *flow, struct slice list)
{
    struct items items = {.is_list = true};
    raw_look_begin(&items.look, flow->arena, list);
    return items;
}

void job_items_check(struct flow *flow, struct slice list)
{
    if (raw_count(flow->arena, list) > JOB_TASKS_MOST)
        task_refuse(flow, 400, "bad-request", "A job has at most %d tasks.", JOB_TASKS_MOST);
    items_check(flow, list_of(flow, list));
}

void job_items_put(struct flow *flow, struct slice list)
{
    items_append(flow, list_of(flow, list), 0);
    items_end(flow);
}

/* ---- JSON lines ---- */

enum { LINES_FROM = JOB_ID + 1, LINES_END, LINES_BODY };

const struct field job_items_fields[] = {
    FIELD_JOB_ID,
    [LINES_FROM] =
        {"from", IN_QUERY, FIELD_INT, .max = JOB_TASKS_MOST,
         .help = "how many items stand before these; what is there already is passed over (default: 0)"},
    [LINES_END] = {"end", IN_QUERY, FIELD_BOOL, .help = "no more come: the job has as many tasks as items"},
    [LINES_BODY] = {"items", WHOLE_BODY, FIELD_RAW, .max = LINES_BYTES, .help = "JSON, one item in a line"},
};

/* A job that nothing is known of yet takes items; false: it has changed. */
static bool takes_items(struct flow *flow)
{
    struct job *job = flow->state;
    if (job->has_items && !item_says(flow->arena, job->item, "source", "lines"))
        task_refuse(flow, 409, "other-tasks", "The items of the job do not come as lines.");
    if (job->has_items) return true;
    if (!job->blank || job->fan != JOB_FAN)
        task_refuse(flow, 409, "other-tasks", "The tasks of the job have no items.");
    if (job->state != JOB_OPEN) job_refuse_closed(flow);
    return job_took(flow, JOB_EDIT(flow, "SET #source = :lines ADD #epoch :one",
                                   "#run = :run and #state = :open and attribute_not_exists(#total) and "
                                   "attribute_not_exists(#reach) and attribute_not_exists(#source)",
                                   "':lines':{'S':'lines'},':one':{'N':'1'},':run':%S,':open':{'S':'OPEN'}",
                                   job->run));
}

void job_items(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct items lines = {.text = flow_text(flow, LINES_BODY)};
    int64_t from = flow_int(flow, LINES_FROM), count = items_check(flow, lines);
    if (from + count > JOB_TASKS_MOST)
        task_refuse(flow, 400, "bad-request", "A job has at most %d tasks.", JOB_TASKS_MOST);
    job_load_existing(flow);
    while (!takes_items(flow)) {
        task_again(flow);
        job_load_existing(flow);
    }
    int64_t stored = items_append(flow, lines, from);
    if (stored < 0) {
        stored = job_items_count(flow);
        task_refuse_with(flow, flow_compose(flow, "'stored':%d", stored), 409, "items-missing",
                         "The job has %lld items so far: those before %lld are missing.", (long long)stored,
                         (long long)from);
    }
    if (stored < from + count)
        task_refuse_with(flow, flow_compose(flow, "'stored':%d", stored), 409, "items-ended",
                         "The items of the job have ended with %lld.", (long long)stored);
    if (flow_int(flow, LINES_END)) items_end(flow);
    flow_wake(flow, job_topic(job->id));
    flow_answer(flow, 200, "{'stored':%d,'state':%s}", stored, job_state_name(job->state));
}

/* ---- from a table ---- */

void job_source_check(struct flow *flow, struct slice source)
{
    struct slice table = raw_text(flow->arena, raw_member(flow->arena, source, "table")), name, value;
    struct slice query = raw_member(flow->arena, source, "query"),
                 scan = raw_member(flow->arena, source, "scan");
    unsigned members = 0;
    static const char *const ours[] = {"TableName", "Limit",         "ExclusiveStartKey",     "Select",
                                       "Segment",   "TotalSegments", "ReturnConsumedCapacity"};
    if (raw_kind(source) != JSON_OBJECT || !table.len)
        task_refuse(flow, 400, "bad-request", "from must name a table: {\"table\": ..., \"scan\": {}}.");
    if (flow->request->role != ROLE_ADMIN && rest_role_owns_table(table, flow->world->prefix))
        task_refuse(flow, 403, "access-denied",
                    "This key has the role %s, which may not use the tables that begin with '%.*s': they are the "
                    "server's own.",
                    rest_role_name(flow->request->role), SLICE_ARG(flow->world->prefix));
    raw_each_member (flow->arena, source, &name, &value) {
        if (!slice_equal(name, SLICE("table")) && !slice_equal(name, SLICE("query")) &&
            !slice_equal(name, SLICE("scan")))
            task_refuse(flow, 400, "bad-request", "from has the members table, and query or scan.");
        members++;
    }
    /* Of two with one name the first would be checked, and the last be kept. */
    if (members > 1u + (query.data != NULL) + (scan.data != NULL))
        task_refuse(flow, 400, "bad-request", "from has a member twice.");
    if ((query.data != NULL) == (scan.data != NULL) || raw_kind(query.data ? query : scan) != JSON_OBJECT)
        task_refuse(flow, 400, "bad-request",
                    "from must have either query or scan: what that call of DynamoDB takes.");
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (raw_member(flow->arena, query.data ? query : scan, ours[i]).data)
            task_refuse(flow, 400, "bad-request", "from must not have %s: the server pages by itself.",
                        ours[i]);
}

bool job_reads_table(struct flow *flow)
{
    const struct job *job = flow->state;
    return slice_starts(item_text(flow->arena, job->item, "source"), SLICE("{"));
}

const struct field job_read_fields[] = {FIELD_JOB_ID};

/* One page of the table, of at most so many items. Ends the task where the table refuses. */
static void table_ask(struct flow *flow, struct slice source, struct slice after, int64_t limit)
{
    struct slice query = raw_member(flow->arena, source, "query"),
                 scan = raw_member(flow->arena, source, "scan");
    struct slice call = query.data ? query : scan, members = SLICE(""), name, value;
    raw_each_member (flow->arena, call, &name, &value)
        members = flow_compose(flow, "%A,%s:%A", members, name, value);
    task_try(flow, query.data ? "Query" : "Scan", "{'TableName':%s%A,'Limit':%d%[,'ExclusiveStartKey':%A%]}",
             raw_text(flow->arena, raw_member(flow->arena, source, "table")), members, limit, after);
    if (flow->reply.status == 200) return;
    flow_refuse_call(flow);
    task_end(flow);
}

/* Reads the next page of the table that the job's items come from. A page without items goes on with the next; one that
 * has too much is read again, a part of it. */
void job_read(struct flow *flow)
{
    struct job *job = job_new(flow, flow_text(flow, JOB_ID));
    struct chain chain;
    struct chain_end end;
    job_load_existing(flow);
    struct slice source = item_text(flow->arena, job->item, "source");
    if (!job_reads_table(flow))
        task_refuse(flow, 409, "other-tasks", "The items of the job do not come from a table.");
    chain = chain_of(flow);
    chain_read_end(flow, &chain, &end);
    struct slice after = attribute_content(flow->arena, end.note);
    bool is_over = end.is_sealed || (end.next > 1 && !after.data) || job->state != JOB_OPEN;
    int64_t limit = JOB_FAN - (end.next - 1) % JOB_FAN;
    while (!is_over) {
        struct slice item, values = SLICE("");
        size_t count = 0;
        table_ask(flow, source, after, limit);
        struct slice items = flow_items(flow), last = flow_last_key(flow);
        if (items.len > PAGE_BYTES && limit > 1) {
            limit /= 2;
            continue;
        }
        struct buf text = {0};
        raw_each (flow->arena, items, &item) {
            if (count++) buf_byte(&text, ',');
            buf_text(&text, "{\"M\":");
            buf_slice(&text, item);
            buf_byte(&text, '}');
        }
        values = arena_take(flow->arena, &text);
        is_over = !last.data;
        if (!count && !is_over) {
            after = last;
            continue;
        }
        if (end.next - 1 + (int64_t)count > JOB_TASKS_MOST)
            task_refuse(flow, 409, "too-many", "A job has at most %d tasks.", JOB_TASKS_MOST);
        if (count && !chain_put(flow, &chain, &end, values, count,
                                last.data ? flow_compose(flow, "{'M':%A}", last) : SLICE_NONE))
            is_over = false; /* another has read it, and goes on */
        break;
    }
    if (is_over && job->state == JOB_OPEN) items_end(flow);
    flow_wake(flow, job_topic(job->id));
    flow_answer(flow, 200, "{'stored':%d,'ended':%b,'state':%s}", end.next - 1, (int)is_over,
                job_state_name(job->state));
}
