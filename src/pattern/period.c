/* Periods: what comes within an hour, a day, or between two times of a timetable is collected in a bucket,
 * which is handed over once, when it is over. Here: settings and adding; period_look.c shows and
 * period_close.c hands over buckets.
 *
 * Table PREFIXperiods: hash key `name` (S); `every` (N, ms) or `cron` (S) with `zone` (S); `shards`, `grace`
 * (N, ms), `keep` (N, s); `then` (S); `closed` (N, ms): buckets that begin before are closed. Index due: hash
 * `slot` (S): "due", range `due` (N, ms): when there is something to close. Table PREFIXperiod-gates: hash
 * key `shard` (S): "NAME/3", range key `bucket` (S, begin of the bucket, ISO 8601); `state` (S): OPEN or
 * CLOSED. Index open: hash `open` (S): as `shard`, while it is OPEN, range `bucket`. A bucket with events has
 * a gate in each shard that they are in; a closed one has all. Table PREFIXperiod-events: hash key `bucket`
 * (S): "NAME/BEGIN/3", range key `id` (S); `data`, `time` (S), `late` (BOOL), `expires` (N, s). Table
 * PREFIXperiod-buckets: hash key `period` (S), range key `bucket` (S): begin; `state` (S): CLOSING or DONE;
 *   `owner` (S), `fence` (N), `until` (N, ms): who closes it; when it is DONE: `count` (N), `parts` (N), and
 * of one that is small `events` (L of M {id, time, late, data}); `then`, `end` (S), `done` (S, time),
 * `expires`. Table PREFIXperiod-parts: hash key `bucket` (S): "NAME/BEGIN", range key `part` (N): 1, 2, 3...;
 * `events`; `count`. Table PREFIXtokens (tokens.h), kind "period": `bucket` (S) of the event that was added
 * with the id.
 *
 * An event is put by a transaction that also finds its gate not CLOSED, so a bucket whose gates are closed
 * changes no more: its parts are the same whoever makes them. What comes for a closed bucket goes to the one
 * that is open, marked late. */
#include "pattern/period.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/rows.h"
#include "pattern/tokens.h"

#define EVERY_MOST_MS (366 * 24 * 3600 * 1000ll)
#define KEEP_MOST_MS  (3660 * 24 * 3600 * 1000ll)
#define GRACE_MOST_MS (24 * 3600 * 1000ll)
#define SHARDS_USUAL  4
#define KEEP_USUAL_S  (7 * 24 * 3600)
#define CRON_BYTES    256
#define ITEM_SLACK    4096

const struct flow_table period_table = {
    "periods",
    "'KeySchema':[{'AttributeName':'name','KeyType':'HASH'}],"
    "'AttributeDefinitions':[{'AttributeName':'name','AttributeType':'S'},{'AttributeName':'slot','"
    "AttributeType':'S'},"
    "{'AttributeName':'due','AttributeType':'N'}],'GlobalSecondaryIndexes':[{'IndexName':'due','KeySchema':["
    "{'AttributeName':'slot','KeyType':'HASH'},{'AttributeName':'due','KeyType':'RANGE'}],'Projection':{"
    "'ProjectionType':'KEYS_ONLY'}}]",
    NULL};

const struct flow_table period_gates = {
    "period-gates",
    "'KeySchema':[{'AttributeName':'shard','KeyType':'HASH'},{'AttributeName':'bucket','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'shard','AttributeType':'S'},{'AttributeName':'bucket','"
    "AttributeType':"
    "'S'},{'AttributeName':'pending','AttributeType':'S'}],'GlobalSecondaryIndexes':[{'IndexName':'pending','"
    "KeySchema':["
    "{'AttributeName':'pending','KeyType':'HASH'},{'AttributeName':'bucket','KeyType':'RANGE'}],'Projection':"
    "{"
    "'ProjectionType':'KEYS_ONLY'}}]",
    "expires"};

const struct flow_table period_events = {
    "period-events",
    "'KeySchema':[{'AttributeName':'bucket','KeyType':'HASH'},{'AttributeName':'id','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'bucket','AttributeType':'S'},{'AttributeName':'id','"
    "AttributeType':'S'}]",
    "expires"};

const struct flow_table period_buckets = {
    "period-buckets",
    "'KeySchema':[{'AttributeName':'period','KeyType':'HASH'},{'AttributeName':'bucket','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'period','AttributeType':'S'},{'AttributeName':'bucket','"
    "AttributeType':"
    "'S'}]," FLOW_STREAM,
    "expires"};

const struct flow_table period_parts = {
    "period-parts",
    "'KeySchema':[{'AttributeName':'bucket','KeyType':'HASH'},{'AttributeName':'part','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'bucket','AttributeType':'S'},{'AttributeName':'part','"
    "AttributeType':'N'}]",
    "expires"};

/* ---- settings and buckets ---- */

void period_refuse_unknown(struct flow *flow)
{
    flow_refuse(flow, 404, "no-such-period", "There is no period of this name; PUT makes it.");
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

bool period_read(struct flow *flow, struct slice name, struct slice item, struct period *period)
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
                              .then = item_text(flow->arena, item, "then")};
    if (!item.data || period->shards < 1 || period->shards > PERIOD_SHARDS_MOST) return false;
    if (period->every_ms > 0) return true;
    if (!cron.data) return false;
    period->timetable = timetable_of(flow, cron, zone.data ? zone : SLICE(""), error, sizeof error);
    return period->timetable != NULL;
}

bool period_take(struct flow *flow, struct slice name, struct slice item, struct period *period)
{
    if (period_read(flow, name, item, period)) return true;
    if (item.data)
        flow_refuse(flow, 409, "bad-settings",
                    "The settings of this period cannot be understood: PUT it again.");
    else
        period_refuse_unknown(flow);
    return false;
}

int64_t period_start(const struct period *period, int64_t time_ms)
{
    if (period->every_ms) return time_ms - time_ms % period->every_ms;
    int64_t start_ms = timetable_last(period->timetable, time_ms);
    return start_ms < 0 ? 0 : start_ms;
}

int64_t period_end(const struct period *period, int64_t start_ms)
{
    return period->every_ms ? start_ms + period->every_ms : timetable_next(period->timetable, start_ms);
}

static struct slice encoded(struct flow *flow, struct slice name)
{
    struct buf out = {0};
    rest_encode(&out, name);
    struct slice text = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return text;
}

struct slice period_gate_key(struct flow *flow, const struct period *period, int64_t shard)
{
    return arena_printf(flow->arena, "%.*s/%lld", SLICE_ARG(encoded(flow, period->name)), (long long)shard);
}

struct slice period_events_key(struct flow *flow, const struct period *period, int64_t start_ms,
                               int64_t shard)
{
    return arena_printf(flow->arena, "%.*s/%lld", SLICE_ARG(period_parts_key(flow, period, start_ms)),
                        (long long)shard);
}

struct slice period_parts_key(struct flow *flow, const struct period *period, int64_t start_ms)
{
    return arena_printf(flow->arena, "%.*s/%.*s", SLICE_ARG(encoded(flow, period->name)),
                        SLICE_ARG(moment_text(flow->arena, start_ms)));
}

uint64_t period_topic(struct slice name)
{
    return flow_topic("period", name, SLICE(""));
}

/* ---- making one ---- */

enum { PUT_EVERY = PERIOD_NAME + 1, PUT_CRON, PUT_ZONE, PUT_GRACE, PUT_SHARDS, PUT_KEEP, PUT_THEN };

static const struct field put_fields[] = {
    FIELD_PERIOD,
    [PUT_EVERY] = {"every", IN_BODY, FIELD_DURATION, .min = 1000, .max = EVERY_MOST_MS,
                   .help = "how long a bucket is; whole ones since 1970, so hours begin with the hour"},
    [PUT_CRON] = {"cron", IN_BODY, FIELD_TEXT, .min = 1, .max = CRON_BYTES,
                  .help = "or when one ends and the next begins: \"0 9 * * 1-5\", cron(0 9 ? * MON-FRI *)"},
    [PUT_ZONE] = {"zone", IN_BODY, FIELD_NAME, .max = LIMIT_ZONE_NAME, .help = "whose clock cron means; UTC"},
    [PUT_GRACE] = {"grace", IN_BODY, FIELD_DURATION, .max = GRACE_MOST_MS,
                   .help = "how long a bucket is still open behind its end; not at all"},
    [PUT_SHARDS] = {"shards", IN_BODY, FIELD_INT, .min = 1, .max = PERIOD_SHARDS_MOST,
                    .help = "how many events can be added beside each other; 4"},
    [PUT_KEEP] = {"keep", IN_BODY, FIELD_DURATION, .min = 1000, .max = KEEP_MOST_MS,
                  .help = "how long buckets are kept behind their end; 7d"},
    [PUT_THEN] = {"then", IN_BODY, FIELD_THEN, .help = "what is told of each bucket that is DONE"},
};

static struct slice text_or(struct slice text, const char *otherwise)
{
    return text.data ? text : slice_of(otherwise);
}

static void tell_settings(struct flow *flow, int status, struct slice item)
{
    struct period period;
    if (!period_take(flow, flow_text(flow, PERIOD_NAME), item, &period)) return;
    int64_t start_ms = period_start(&period, flow->now_ms);
    struct slice when = period.every_ms
                            ? flow_compose(flow, "'every':%s", duration_text(flow->arena, period.every_ms))
                            : flow_compose(flow, "'cron':%s,'zone':%s", item_text(flow->arena, item, "cron"),
                                           text_or(item_text(flow->arena, item, "zone"), "UTC"));
    flow_answer(flow, status, "{'name':%s,%A,'grace':%s,'shards':%d,'keep':%s%A,'bucket':%s,'end':%s}",
                period.name, when, duration_text(flow->arena, period.grace_ms), period.shards,
                duration_text(flow->arena, period.keep_s * 1000),
                period.then.data ? flow_compose(flow, ",'then':%s", period.then) : SLICE(""),
                moment_text(flow->arena, start_ms), moment_text(flow->arena, period_end(&period, start_ms)));
}

static flow_step put_seen, put_done;

/* The settings as they shall be; what was closed stays closed. */
static struct slice put_item(struct flow *flow, struct slice old)
{
    int64_t shards = item_int(flow->arena, old, "shards", flow_int_or(flow, PUT_SHARDS, SHARDS_USUAL));
    struct slice when = flow_given(flow, PUT_EVERY)
                            ? flow_compose(flow, ",'every':%N", flow_int(flow, PUT_EVERY))
                            : flow_compose(flow, ",'cron':%S,'zone':%S", flow_text(flow, PUT_CRON),
                                           flow_given(flow, PUT_ZONE) ? flow_text(flow, PUT_ZONE)
                                                                      : SLICE(""));
    return flow_compose(
        flow, "{'name':%S%A,'shards':%N,'grace':%N,'keep':%N,'closed':%N,'slot':{'S':'due'},'due':%N%A}",
        flow_text(flow, PERIOD_NAME), when, shards, flow_int_or(flow, PUT_GRACE, 0),
        flow_int_or(flow, PUT_KEEP, KEEP_USUAL_S * 1000ll) / 1000, item_int(flow->arena, old, "closed", 0),
        flow->now_ms,
        flow_given(flow, PUT_THEN) ? flow_compose(flow, ",'then':%S", flow_then(flow, PUT_THEN)) : SLICE(""));
}

void period_ask(struct flow *flow, struct slice name, flow_step *then)
{
    flow_call(flow, then, "GetItem", "{'TableName':%T,'Key':{'name':%S},'ConsistentRead':true}",
              &period_table, name);
}

static void put_begin(struct flow *flow)
{
    struct slice zone = flow_given(flow, PUT_ZONE) ? flow_text(flow, PUT_ZONE) : SLICE("");
    char error[200];
    if (flow_given(flow, PUT_EVERY) == flow_given(flow, PUT_CRON)) {
        flow_refuse(flow, 400, "bad-request", "One of every and cron is needed.");
        return;
    }
    if (flow_given(flow, PUT_EVERY) && flow_given(flow, PUT_ZONE)) {
        flow_refuse(flow, 400, "bad-request", "A zone belongs to cron; every counts from 1970.");
        return;
    }
    if (flow_given(flow, PUT_CRON) &&
        !timetable_of(flow, flow_text(flow, PUT_CRON), zone, error, sizeof error)) {
        flow_refuse(flow, 400, "bad-request", "cron cannot be understood: %s", error);
        return;
    }
    period_ask(flow, flow_text(flow, PERIOD_NAME), put_seen);
}

struct put {
    struct slice item;
    bool exists;
};

static void put_again(struct flow *flow)
{
    period_ask(flow, flow_text(flow, PERIOD_NAME), put_seen);
}

static void put_seen(struct flow *flow)
{
    struct slice old = flow_item(flow);
    struct put *put = flow->state = arena_new(flow->arena, struct put);
    int64_t shards = item_int(flow->arena, old, "shards", 0);
    if (old.data && flow_given(flow, PUT_SHARDS) && shards != flow_int(flow, PUT_SHARDS)) {
        flow_refuse(flow, 409, "exists", "The period has %lld shards, which cannot be changed.",
                    (long long)shards);
        return;
    }
    put->exists = old.data != NULL;
    put->item = put_item(flow, old);
    flow_call(flow, put_done, "PutItem", "{'TableName':%T,'Item':%A,'ConditionExpression':'%r',%#%A}",
              &period_table, put->item,
              old.data ? SLICE("#closed = :closed") : SLICE("attribute_not_exists(#name)"),
              old.data ? flow_compose(flow, ",'ExpressionAttributeValues':{':closed':%N}",
                                      item_int(flow->arena, old, "closed", 0))
                       : SLICE(""));
}

static void put_done(struct flow *flow)
{
    const struct put *put = flow->state;
    if (flow_failed(flow))
        flow_again(flow, put_again);
    else
        tell_settings(flow, put->exists ? 200 : 201, put->item);
}

static const struct field name_fields[] = {FIELD_PERIOD};

static void settings_taken(struct flow *flow)
{
    tell_settings(flow, 200, flow_item(flow));
}

static void settings_begin(struct flow *flow)
{
    period_ask(flow, flow_text(flow, PERIOD_NAME), settings_taken);
}

static void delete_done(struct flow *flow)
{
    if (flow_item(flow).data)
        flow_answer(flow, 200, "{'deleted':true}");
    else
        period_refuse_unknown(flow);
}

/* Nothing is closed any more; what there is ends by its age. */
static void delete_begin(struct flow *flow)
{
    flow_call(flow, delete_done, "DeleteItem", "{'TableName':%T,'Key':{'name':%S},'ReturnValues':'ALL_OLD'}",
              &period_table, flow_text(flow, PERIOD_NAME));
}

/* ---- adding ---- */

enum { ADD_ID = PERIOD_NAME + 1, ADD_DATA, ADD_TIME };

static const struct field add_fields[] = {
    FIELD_PERIOD,
    [ADD_ID] = {"id", IN_BODY, FIELD_NAME, .help = "the same id is added once, for a day; one is made"},
    [ADD_DATA] = {"data", IN_BODY, FIELD_JSON, .help = "what is collected"},
    [ADD_TIME] = {"time", IN_BODY, FIELD_NAME, .max = 40,
                  .help = "when it happened, 2026-11-15T03:42:06Z; now"},
};

struct add {
    struct period period;
    struct slice id;
    int64_t time_ms, start_ms;
    bool late;
};

static flow_step add_taken, add_put, add_done;

static bool add_fits(struct flow *flow)
{
    struct slice data = flow_text(flow, ADD_DATA);
    if (data.len + ITEM_SLACK <= LIMIT_ITEM_BYTES ||
        item_bytes(flow->arena, flow_compose(flow, "{'data':%J}", data)) + ITEM_SLACK <= LIMIT_ITEM_BYTES)
        return true;
    flow_refuse(flow, 413, "too-large", "data does not fit: an item of DynamoDB holds at most 400 KB.");
    return false;
}

static void add_begin(struct flow *flow)
{
    struct add *add = flow->state = arena_new(flow->arena, struct add);
    add->id = flow_given(flow, ADD_ID) ? flow_text(flow, ADD_ID) : flow_new_id(flow);
    add->time_ms = flow->now_ms;
    if (flow_given(flow, ADD_TIME) &&
        (!moment_parse(flow_text(flow, ADD_TIME), &add->time_ms) || add->time_ms < 0))
        flow_refuse(flow, 400, "bad-request", "time must be like 2026-11-15T03:42:06Z.");
    else if (add->time_ms > flow->now_ms + flow->world->skew_ms)
        flow_refuse(flow, 400, "bad-request", "time must not lie in the future.");
    else if (add_fits(flow))
        period_ask(flow, flow_text(flow, PERIOD_NAME), add_taken);
}

static void add_taken(struct flow *flow)
{
    struct add *add = flow->state;
    if (!period_take(flow, flow_text(flow, PERIOD_NAME), flow_item(flow), &add->period)) return;
    add->start_ms = period_start(&add->period, add->time_ms);
    if (add->start_ms < add->period.closed_ms) {
        add->late = true;
        add->start_ms = period_start(&add->period, flow->now_ms);
    }
    if (add->start_ms < add->period.closed_ms) add->start_ms = add->period.closed_ms;
    add_put(flow);
}

/* The gate is made by the first event, and found not closed by all. */
static void add_put(struct flow *flow)
{
    struct add *add = flow->state;
    const struct period *period = &add->period;
    int64_t shard = (int64_t)(hash_bytes(add->id) % (uint64_t)period->shards);
    int64_t expires_s = period_end(period, add->start_ms) / 1000 + period->keep_s;
    struct slice gate = period_gate_key(flow, period, shard), start = moment_text(flow->arena, add->start_ms);
    struct slice token = flow_given(flow, ADD_ID)
                             ? flow_compose(flow, ",%A",
                                            token_put(flow, "period", period->name, add->id,
                                                      flow_compose(flow, ",'bucket':%S,'late':{'BOOL':%b}",
                                                                   start, (int)add->late)))
                             : SLICE("");
    flow_call(
        flow, add_done, "TransactWriteItems",
        "{'TransactItems':[{'Update':{'TableName':%T,'Key':{'shard':%S,'bucket':%S},'UpdateExpression':'SET "
        "#state = "
        ":open, #pending = :gate, #expires = :expires','ConditionExpression':'attribute_not_exists(#state) "
        "or "
        "#state = "
        ":open',%#,'ExpressionAttributeValues':{':open':{'S':'OPEN'},':gate':%S,':expires':%N}}},"
        "{'Put':{'TableName':%T,'Item':{'bucket':%S,'id':%S,'time':%S%r,'data':%J,'expires':%N},"
        "'ConditionExpression':'attribute_not_exists(#id)','ExpressionAttributeNames':{'#id':'id'}}}%A]}",
        &period_gates, gate, start, gate, expires_s, &period_events,
        period_events_key(flow, period, add->start_ms, shard), add->id,
        moment_text(flow->arena, add->time_ms), add->late ? SLICE(",\"late\":{\"BOOL\":true}") : SLICE(""),
        flow_text(flow, ADD_DATA), expires_s, token);
}

static void add_tell(struct flow *flow, int status, struct slice bucket, bool late)
{
    const struct add *add = flow->state;
    flow_answer(flow, status, "{'bucket':%s,'id':%s%r}", bucket, add->id,
                late ? SLICE(",\"late\":true") : SLICE(""));
}

static bool token_is_late(struct flow *flow, struct slice token)
{
    return slice_contains(item_attribute(flow->arena, token, "late"), SLICE("true"));
}

static void add_done(struct flow *flow)
{
    struct add *add = flow->state;
    struct slice item;
    if (!flow_failed(flow)) {
        flow_wake(flow, period_topic(add->period.name));
        add_tell(flow, 201, moment_text(flow->arena, add->start_ms), add->late);
    } else if (flow_given(flow, ADD_ID) && flow_reason(flow, 2, &item)) {
        add_tell(flow, 200, item_text(flow->arena, item, "bucket"), token_is_late(flow, item));
    } else if (flow_reason(flow, 1,
                           &item)) { /* put before by this very call, or known longer than its token */
        add_tell(flow, 200, moment_text(flow->arena, add->start_ms), add->late);
    } else {
        add->late = true;
        add->start_ms = period_end(&add->period, add->start_ms);
        flow_again(flow, add_put);
    }
}

/* ---- rows ---- */

#define EXAMPLE_BUCKET                                                                                       \
    "'period':'digest','bucket':'2026-11-15T03:00:00.000Z','end':'2026-11-15T04:00:00.000Z','state':'DONE'"

/* clang-format off */
const struct flow_row period_rows[] = {
    {"POST", "/v1/periods/{name}", add_begin, "Adds to the bucket of the present period.", FIELDS(add_fields),
     "{'bucket':'2026-11-15T03:00:00.000Z','id':'2026-11-15T03:42:06.250Z-00002a-5f3c9d'}", "period add data?"},
    {"PUT", "/v1/periods/{name}", put_begin, "Makes a period, or changes it.", FIELDS(put_fields),
     "{'name':'digest','every':'1h','grace':'0s','shards':4,'keep':'7d','bucket':'2026-11-15T03:00:00.000Z',"
     "'end':'2026-11-15T04:00:00.000Z'}", "period put"},
    {"GET", "/v1/periods/{name}", settings_begin, "A period and its present bucket.", FIELDS(name_fields),
     "{'name':'digest','every':'1h','grace':'0s','shards':4,'keep':'7d','bucket':'2026-11-15T03:00:00.000Z',"
     "'end':'2026-11-15T04:00:00.000Z'}", "period show"},
    {"POST", "/v1/periods/{name}/close", period_close_begin,
     "Closes the buckets that are over, in order, as the server does by itself.", FIELDS(period_close_fields),
     "{'closed':1}", "period close"},
    {"GET", "/v1/periods/{name}/{bucket}", period_get_begin, "A bucket and what is in it.",
     FIELDS(period_get_fields),
     "{" EXAMPLE_BUCKET ",'count':1,'parts':1,'events':[{'id':'a','time':'2026-11-15T03:42:06.250Z','data':{}}]}",
     "period get"},
    {"DELETE", "/v1/periods/{name}", delete_begin, "Removes a period; its buckets end by their age.",
     FIELDS(name_fields),
     "{'deleted':true}", "period rm"},
};
/* clang-format on */
ROW_COUNT(period);
