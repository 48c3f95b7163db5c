/* Periods: what comes within an hour, a day, or between two times of a timetable is collected in a bucket,
 * which is handed over once, when it is over. Here: the settings; period_add.c adds, period_look.c shows,
 * period_close.c hands over.
 *
 * Table PREFIXperiods: hash key `name` (S); `every` (N, ms) or `cron` (S) with `zone` (S); `shards`, `grace`
 *   (N, ms), `keep` (N, s); `then` (S); `version` (N): grows with each change of these; `closed` (N, ms):
 *   nothing comes to buckets that begin before; `done` (N, ms): those that begin before are all DONE or empty.
 *   Index due: hash `slot` (S): "0", range `due` (N, ms): when there is something to close.
 * Table PREFIXperiod-buckets: hash key `period` (S), range key `bucket` (S): begin, ISO 8601; `state` (S): OPEN or
 *   DONE; `shards` (N); `expires` (N, s); when it is DONE: `count`, `parts` (N), `ends` (L of N): how many events each
 *   shard has; of one that is small `events` (L of M {id, time, late, data}); `then`, `end` (S), `done` (S, time).
 * Table PREFIXperiod-pages: a chain (chain.h) for each shard of a bucket, by the key "NAME/BEGIN/SHARD"; entries are
 *   as in `events`, their tokens are the ids that were given.
 * Table PREFIXperiod-parts, of buckets that are large: hash key `bucket` (S): "NAME/BEGIN", range key `part` (N): 1,
 *   2, 3...; `shard`, `first` (N): where its events begin; `count` (N); `next_shard`, `next` (N): where those of the
 *   next part begin; `expires`.
 * Table PREFIXtokens (tokens.h), kind "period": the event of this id goes to the `shard` (N) of the `bucket` (S), and
 *   is `late` (BOOL) there; `from` (N): it stands at this number or behind it, if it is there; `number` (N): where it
 *   stands, once somebody had to search for it; `sent` (S).
 *
 * Each event is in one bucket, and a bucket that is DONE never changes:
 *  PD1. A bucket has events only if it has an item, and whoever has made or found that has read a `closed` afterwards
 *      that lets the bucket be. Whoever closes moves `closed` first and then looks for items. So it finds every
 *      bucket that gets events, and none comes into being behind it.
 *  PD2. All shards of a bucket are sealed before it is DONE: what is in it is the same for everybody from then on, and
 *      whoever closes it, also at the same time, comes to the same counts and parts.
 *  PD3. An id has one token, which names one bucket; the event is put there by whoever has this id, once (chain.h, U7).
 *      Another bucket is named only when that one was sealed without it.
 *  PD4. Buckets become DONE in order: the next one is begun when the one before is DONE.
 * What comes for a closed bucket goes to the one that is open, marked late.
 *
 * A bucket ends at the first moment behind its begin at which, by the present settings, another begins. So
 * settings may change while buckets are open: each event still belongs to one, and each of them ends. */
#include "pattern/period.h"

#include <stdio.h>

#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/listing.h"
#include "pattern/rows.h"

#define EVERY_MOST_MS (366 * 24 * 3600 * 1000ll)
#define KEEP_MOST_MS  (3660 * 24 * 3600 * 1000ll)
#define GRACE_MOST_MS (24 * 3600 * 1000ll)
#define SHARDS_USUAL  4
#define KEEP_USUAL_S  (7 * 24 * 3600)
#define CRON_BYTES    256
#define FAR_MS        253402300799999ll /* the last moment of the year 9999: a timetable may have an end */
#define REMEMBERED_MS 10000 /* so late a process may learn that another has changed or removed a period */
#define SLOT          "0"

const struct flow_table period_table = {"periods", "name; due slot due:N", NULL};
const struct flow_table period_parts = {"period-parts", "bucket part:N", "expires"};

const struct flow_table period_buckets = {"period-buckets", "period bucket; stream", "expires"};

const struct flow_table period_pages = {"period-pages", CHAIN_KEYS, "expires"};

/* ---- settings and buckets ---- */

static _Noreturn void refuse_unknown(struct flow *flow)
{
    task_refuse(flow, 404, "no-such-period", "There is no period '%.*s'; put makes it.",
                SLICE_ARG(flow_text(flow, PERIOD_NAME)));
}

/* NULL and a sentence for what is no timetable, or one that is due once. */
static const struct timetable *timetable_of(struct flow *flow, struct slice cron, struct slice zone_name,
                                            char *error, size_t error_len)
{
    struct zone *zone = zone_load(flow->arena, zone_name, error, error_len);
    struct timetable *timetable = zone ? timetable_parse(flow->arena, cron, zone, 0, error, error_len) : NULL;
    if (!timetable || !timetable_is_once(timetable)) return timetable;
    snprintf(error, error_len, "it must be due again and again.");
    return NULL;
}

static bool period_read(struct flow *flow, struct slice name, struct slice item, struct period *period)
{
    struct slice zone = item_text(flow->arena, item, "zone"), cron = item_text(flow->arena, item, "cron");
    char error[200];
    *period = (struct period){.name = name,
                              .item = item,
                              .every_ms = item_int(flow->arena, item, "every", 0),
                              .shards = item_int(flow->arena, item, "shards", SHARDS_USUAL),
                              .grace_ms = item_int(flow->arena, item, "grace", 0),
                              .keep_s = item_int(flow->arena, item, "keep", KEEP_USUAL_S),
                              .closed_ms = item_int(flow->arena, item, "closed", 0),
                              .done_ms = item_int(flow->arena, item, "done", 0),
                              .version = item_int(flow->arena, item, "version", 0),
                              .then = item_text(flow->arena, item, "then")};
    if (!item_has(flow->arena, item, "done") || period->shards < 1 || period->shards > PERIOD_SHARDS_MOST)
        return false;
    if (period->every_ms > 0) return true;
    if (!cron.data) return false;
    period->timetable = timetable_of(flow, cron, zone.data ? zone : SLICE(""), error, sizeof error);
    return period->timetable != NULL;
}

static struct slice settings_read(struct flow *flow, struct slice name)
{
    return task_get(flow, &period_table, "{'name':%S}", name);
}

/* What cannot be understood ends the task. */
static void settings_take(struct flow *flow, struct slice item, struct period *period)
{
    if (period_read(flow, flow_text(flow, PERIOD_NAME), item, period)) return;
    if (item.data && !item_has(flow->arena, item, "done"))
        task_refuse(flow, 409, "bad-settings",
                    "The period was made by an earlier version, which kept events otherwise: put it again.");
    if (item.data)
        task_refuse(flow, 409, "bad-settings",
                    "The settings of this period cannot be understood: put it again.");
    refuse_unknown(flow);
}

bool period_find(struct flow *flow, struct slice name, struct period *period)
{
    return period_read(flow, name, settings_read(flow, name), period);
}

void period_get(struct flow *flow, struct period *period)
{
    settings_take(flow, settings_read(flow, flow_text(flow, PERIOD_NAME)), period);
}

static uint64_t settings_topic(struct slice name)
{
    return flow_topic("period settings", name, SLICE(""));
}

void period_forget(struct flow *flow, struct slice name)
{
    flow_forget(flow, settings_topic(name));
}

void period_recall(struct flow *flow, struct period *period)
{
    struct slice name = flow_text(flow, PERIOD_NAME), item = flow_recall(flow, settings_topic(name));
    int64_t age_ms = flow->now_ms - item_int(flow->arena, item, "read", 0);
    if (age_ms >= 0 && age_ms < REMEMBERED_MS && period_read(flow, name, item, period)) return;
    period_get(flow, period);
    struct slice settings = item_members(flow->arena, period->item,
                                         "every cron zone shards grace keep closed done version");
    flow_remember(flow, settings_topic(name), flow_compose(flow, "{%A,'read':%N}", settings, flow->now_ms));
}

int64_t period_start(const struct period *period, int64_t time_ms)
{
    if (period->every_ms) return time_ms - time_ms % period->every_ms;
    int64_t start_ms = timetable_last(period->timetable, time_ms);
    return start_ms < 0 ? 0 : start_ms;
}

int64_t period_bucket(const struct period *period, int64_t time_ms)
{
    int64_t start_ms = period_start(period, time_ms);
    return start_ms < period->closed_ms && period->closed_ms <= time_ms ? period->closed_ms : start_ms;
}

int64_t period_end(const struct period *period, int64_t start_ms)
{
    int64_t end_ms = period->every_ms ? start_ms - start_ms % period->every_ms + period->every_ms
                                      : timetable_next(period->timetable, start_ms);
    return end_ms > FAR_MS ? FAR_MS : end_ms;
}

int64_t period_expires_s(const struct period *period, int64_t start_ms)
{
    return period_end(period, start_ms) / 1000 + period->keep_s + PERIOD_WAIT_S;
}

struct chain period_chain(struct flow *flow, const struct period *period, int64_t start_ms, int64_t shard)
{
    int64_t keep_s = period_expires_s(period, start_ms) - flow->now_ms / 1000;
    return (struct chain){.table = &period_pages,
                          .key = arena_printf(flow->arena, "%.*s/%lld",
                                              SLICE_ARG(period_parts_key(flow, period, start_ms)),
                                              (long long)shard),
                          .keep_s = keep_s > PERIOD_WAIT_S ? keep_s : PERIOD_WAIT_S,
                          .recalled_ms = REMEMBERED_MS};
}

struct slice period_bucket_key(struct flow *flow, const struct period *period, int64_t start_ms)
{
    return flow_compose(flow, "{'period':%S,'bucket':%S}", period->name, moment_text(flow->arena, start_ms));
}

struct slice period_bucket_read(struct flow *flow, const struct period *period, int64_t start_ms)
{
    return task_get(flow, &period_buckets, "%A", period_bucket_key(flow, period, start_ms));
}

struct slice period_parts_key(struct flow *flow, const struct period *period, int64_t start_ms)
{
    return arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(rest_encoded(flow->arena, period->name)),
                        SLICE_ARG(moment_text(flow->arena, start_ms)));
}

uint64_t period_topic(struct slice name)
{
    return flow_topic("period", name, SLICE(""));
}

/* ---- making one ---- */

enum {
    PUT_EVERY = PERIOD_NAME + 1,
    PUT_CRON,
    PUT_ZONE,
    PUT_GRACE,
    PUT_SHARDS,
    PUT_KEEP,
    PUT_THEN,
    PUT_BUCKET,
    PUT_END
};

static const struct field put_fields[] = {
    FIELD_PERIOD,
    [PUT_EVERY] = {"every", IN_BODY, FIELD_DURATION, .min = 1000, .max = EVERY_MOST_MS,
                   .help = "how long a bucket is; whole ones since 1970, so hours begin with the hour"},
    [PUT_CRON] = {"cron", IN_BODY, FIELD_TEXT, .min = 1, .max = CRON_BYTES,
                  .help = "or when one ends and the next begins: \"0 9 * * 1-5\", cron(0 9 ? * MON-FRI *)"},
    [PUT_ZONE] = {"zone", IN_BODY, FIELD_NAME, .max = LIMIT_ZONE_NAME,
                  .help = "whose clock cron means (default: UTC)"},
    [PUT_GRACE] = {"grace", IN_BODY, FIELD_DURATION, .max = GRACE_MOST_MS,
                   .help = "how long a bucket stays open after its end (default: not at all)"},
    [PUT_SHARDS] = {"shards", IN_BODY, FIELD_INT, .min = 1, .max = PERIOD_SHARDS_MOST,
                    .help = "how many events can be added side by side (default: 4)"},
    [PUT_KEEP] = FIELD_KEEP(KEEP_MOST_MS, "how long buckets are kept after their end (default: 7d)"),
    [PUT_THEN] = {"then", IN_BODY, FIELD_THEN,
                  .help = "what runs for each bucket that is DONE: a function, a URL or a call"},
    [PUT_BUCKET] = FIELD_ANSWERED("bucket", FIELD_TEXT),
    [PUT_END] = FIELD_ANSWERED("end", FIELD_TEXT),
};

static void tell_settings(struct flow *flow, int status, struct slice item)
{
    struct period period;
    settings_take(flow, item, &period);
    struct slice zone = item_text(flow->arena, item, "zone");
    int64_t start_ms = period_bucket(&period, flow->now_ms);
    flow_answer(
        flow, status,
        "{'name':%s%[%?,'every':%s%]%[,'cron':%s,'zone':%s%],'grace':%s,'shards':%d,'keep':%s%A,'bucket':%s,"
        "'end':%s}",
        period.name, period.every_ms > 0, duration_text(flow->arena, period.every_ms),
        item_text(flow->arena, item, "cron"), zone.len ? zone : SLICE("UTC"),
        duration_text(flow->arena, period.grace_ms), period.shards,
        duration_text(flow->arena, period.keep_s * 1000), flow_then_member(flow, item),
        moment_text(flow->arena, start_ms), moment_text(flow->arena, period_end(&period, start_ms)));
}

static struct slice zone_of(const struct flow *flow)
{
    return flow_text_or(flow, PUT_ZONE, SLICE(""));
}

/* The settings as they shall be; what was closed stays closed. Something may be due by them at once. */
static struct slice put_item(struct flow *flow, struct slice old)
{
    struct arena *arena = flow->arena;
    return flow_compose(
        flow,
        "{'name':%S%[%?,'every':%N%]%[,'cron':%S,'zone':%S%],'shards':%N,'grace':%N,'keep':%N,'closed':%N,'done':%N,"
        "'version':%N,'slot':{'S':'" SLOT "'},'due':%N%[,'then':%S%]}",
        flow_text(flow, PERIOD_NAME), flow_given(flow, PUT_EVERY), flow_int(flow, PUT_EVERY),
        flow_text(flow, PUT_CRON), zone_of(flow),
        item_int(arena, old, "shards", flow_int_or(flow, PUT_SHARDS, SHARDS_USUAL)),
        flow_int_or(flow, PUT_GRACE, 0), flow_int_or(flow, PUT_KEEP, KEEP_USUAL_S * 1000ll) / 1000,
        item_int(arena, old, "closed", 0), item_int(arena, old, "done", 0),
        item_int(arena, old, "version", 0) + 1, flow->now_ms, flow_then(flow, PUT_THEN));
}

/* What is wrong with cron, its zone or both; NULL: nothing. */
static const char *cron_fault(struct flow *flow, char *error, size_t error_len)
{
    const struct timetable *timetable = timetable_of(flow, flow_text(flow, PUT_CRON), zone_of(flow), error,
                                                     error_len);
    if (!timetable) return error;
    return timetable_next(timetable, flow->now_ms) == CALENDAR_NEVER ? "it is never due any more." : NULL;
}

static void put_period(struct flow *flow)
{
    char error[200];
    const char *fault = flow_given(flow, PUT_CRON) ? cron_fault(flow, error, sizeof error) : NULL;
    if (flow_given(flow, PUT_EVERY) == flow_given(flow, PUT_CRON))
        task_refuse(flow, 400, "bad-request", "One of every and cron is needed.");
    if (flow_given(flow, PUT_EVERY) && flow_given(flow, PUT_ZONE))
        task_refuse(flow, 400, "bad-request", "A zone belongs to cron; every counts from 1970.");
    if (fault) task_refuse(flow, 400, "bad-request", "cron cannot be used: %s", fault);
    for (;;) {
        struct slice old = settings_read(flow, flow_text(flow, PERIOD_NAME)), item = put_item(flow, old);
        int64_t shards = item_int(flow->arena, old, "shards", 0);
        if (old.data && flow_given(flow, PUT_SHARDS) && shards != flow_int(flow, PUT_SHARDS))
            task_refuse(flow, 409, "exists", "The period has %lld shards, which cannot be changed.",
                        (long long)shards);
        task_call(flow, "PutItem",
                  "{'TableName':%T,'Item':%A,'ConditionExpression':'%r',%#"
                  "%[%?,'ExpressionAttributeValues':{':version':%N,':closed':%N}%]}",
                  &period_table, item,
                  old.data ? SLICE("#version = :version and #closed = :closed")
                           : SLICE("attribute_not_exists(#name)"),
                  old.data != NULL, item_int(flow->arena, old, "version", 0),
                  item_int(flow->arena, old, "closed", 0));
        if (!flow_failed(flow)) {
            period_forget(flow, flow_text(flow, PERIOD_NAME));
            tell_settings(flow, old.data ? 200 : 201, item);
            return;
        }
        task_again(flow);
    }
}

static const struct field name_fields[] = {FIELD_PERIOD};

static void show_period(struct flow *flow)
{
    tell_settings(flow, 200, settings_read(flow, flow_text(flow, PERIOD_NAME)));
}

/* Nothing is closed any more; what there is ends by its age. */
static void delete_period(struct flow *flow)
{
    task_call(flow, "DeleteItem", "{'TableName':%T,'Key':{'name':%S},'ReturnValues':'ALL_OLD'}",
              &period_table, flow_text(flow, PERIOD_NAME));
    if (!flow_item(flow).data) refuse_unknown(flow);
    flow_answer(flow, 200, "{'deleted':true}");
}

/* ---- all periods ---- */

enum { LIST_LIMIT, LIST_AFTER, LIST_PREFIX };

static const struct field list_fields[] = {
    [LIST_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .max = 300, .help = "the \"next\" of the page before"},
    [LIST_PREFIX] = {"prefix", IN_QUERY, FIELD_NAME, .help = "only names that begin so"},
};

/* The next page begins behind "DUE/NAME". */
static void list_periods(struct flow *flow)
{
    struct slice name = flow_text(flow, LIST_AFTER), prefix = flow_text(flow, LIST_PREFIX), due, item;
    bool is_further = flow_given(flow, LIST_AFTER);
    int64_t due_ms = 0;
    due = is_further ? slice_cut(&name, '/') : SLICE_NONE;
    if (is_further && (!raw_int(due, &due_ms) || !name.len))
        task_refuse(flow, 400, "bad-request", "after must be the \"next\" of a page.");
    task_query(flow, "#slot = :slot",
               ",'IndexName':'due'%[%?,'FilterExpression':'begins_with(#name, :prefix)'%],'Limit':%d"
               "%[%?,'ExclusiveStartKey':{'slot':{'S':'" SLOT "'},'due':%N,'name':%S}%]",
               "':slot':{'S':'" SLOT "'}%[,':prefix':%S%]", &period_table, prefix.data != NULL,
               flow_int_or(flow, LIST_LIMIT, LIST_USUAL), is_further, due_ms, name, prefix);
    struct slice last = flow_last_key(flow);
    buf_text(flow->body, "{\"periods\":[");
    raw_each (flow->arena, flow_items(flow), &item)
        flow_put(flow, flow->body, "%,{'name':%s,'due':%s}", item_text(flow->arena, item, "name"),
                 moment_text(flow->arena, item_int(flow->arena, item, "due", 0)));
    page_finish(flow, last.data ? arena_printf(flow->arena, "%.*s/%.*s",
                                               SLICE_ARG(item_text(flow->arena, last, "due")),
                                               SLICE_ARG(item_text(flow->arena, last, "name")))
                                : SLICE_NONE);
}

/* ---- rows ---- */

#define EXAMPLE_BUCKET                                                                                       \
    "'period':'digest','bucket':'2026-11-15T03:00:00.000Z','end':'2026-11-15T04:00:00.000Z','state':'DONE'"

/* clang-format off */
const struct flow_row period_rows[] = {
    {"POST", "/v1/periods/{name}", period_add, "Adds to the bucket of the present period.",
     FIELDS(period_add_fields),
     "{'bucket':'2026-11-15T03:00:00.000Z','id':'2026-11-15T03:42:06.250Z-00002a-5f3c9d'}", "period add data?"},
    {"PUT", "/v1/periods/{name}", put_period, "Makes a period, or changes it.", FIELDS(put_fields),
     "{'name':'digest','every':'1h','grace':'0s','shards':4,'keep':'7d','bucket':'2026-11-15T03:00:00.000Z',"
     "'end':'2026-11-15T04:00:00.000Z'}", "period put"},
    {"GET", "/v1/periods/{name}", show_period, "A period and its present bucket.", FIELDS(name_fields),
     "{'name':'digest','every':'1h','grace':'0s','shards':4,'keep':'7d','bucket':'2026-11-15T03:00:00.000Z',"
     "'end':'2026-11-15T04:00:00.000Z'}", "period show"},
    {"POST", "/v1/periods/{name}/close", period_close,
     "Closes the buckets that are over, in order, as the server does by itself.", FIELDS(period_close_fields),
     "{'closed':1}", "period close"},
    {"GET", "/v1/periods/{name}/buckets", period_list,
     "The buckets that were handed over, or that wait for it, the oldest first.", FIELDS(period_list_fields),
     "{'buckets':[{'bucket':'2026-11-15T03:00:00.000Z','state':'DONE','end':'2026-11-15T04:00:00.000Z','count':1,"
     "'parts':1,'done':'2026-11-15T04:00:00.350Z'}]}", "period buckets -> buckets"},
    {"GET", "/v1/periods/{name}/{bucket}", period_show, "A bucket and what is in it.",
     FIELDS(period_get_fields),
     "{" EXAMPLE_BUCKET ",'count':1,'parts':1,'events':[{'id':'a','time':'2026-11-15T03:42:06.250Z','data':{}}]}",
     "period get"},
    {"DELETE", "/v1/periods/{name}", delete_period, "Removes a period; its buckets end by their age.",
     FIELDS(name_fields),
     "{'deleted':true}", "period rm"},
    {"GET", "/v1/periods", list_periods, "All periods, those that have something to close first.",
     FIELDS(list_fields), "{'periods':[{'name':'digest','due':'2026-11-15T04:00:00.000Z'}]}",
     "period ls -> periods"},
};
/* clang-format on */
ROW_COUNT(period);
