/* Histories: every change of a table, kept beside it. Here: settings, and records that somebody brings;
 * history_record.c makes items of records, history_look.c looks, history_restore.c goes back, history_prune.c
 * forgets.
 *
 * Table PREFIXhistory: hash key `item` (S): "TABLE/name=value&name=value", the item's key, percent-encoded,
 * names in order; range key `version` (S): the change's time and its sequence number; `table`, `event` (S:
 * INSERT, MODIFY, REMOVE), `time`, `sequence` (S), `keys` (M), `image` (M): the item behind the change,
 * `large` (BOOL): instead of an image that does not fit, `cause` (S): the functions that it came of;
 * `expires` (N, s). Table PREFIXhistories: hash key `table` (S); `hash`, `hashType`, `range`, `rangeType`
 * (S): the table's key; `keep` (N, s): versions end after this time; `versions` (N): so many of an item are
 * kept; `since` (S), `stream` (S). Its item "*" is where the pruning stands (history_prune.c).
 *
 * A version is put by its sequence number, so a record that comes twice is there once. */
#include "pattern/history.h"

#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/rows.h"

#define KEEP_MOST_MS  (36600 * 24 * 3600000ll)
#define VERSIONS_MOST 1000000

const struct flow_table history_table = {
    "history",
    "'KeySchema':[{'AttributeName':'item','KeyType':'HASH'},{'AttributeName':'version','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'item','AttributeType':'S'},{'AttributeName':'version','"
    "AttributeType':'S'}]",
    "expires"};

const struct flow_table history_settings_table = {
    "histories",
    "'KeySchema':[{'AttributeName':'table','KeyType':'HASH'}],"
    "'AttributeDefinitions':[{'AttributeName':'table','AttributeType':'S'}]",
    NULL};

/* ---- settings ---- */

bool history_settings_read(struct flow *flow, struct slice item, struct history_settings *settings)
{
    *settings = (struct history_settings){.hash = item_text(flow->arena, item, "hash"),
                                          .hash_type = item_text(flow->arena, item, "hashType"),
                                          .range = item_text(flow->arena, item, "range"),
                                          .range_type = item_text(flow->arena, item, "rangeType"),
                                          .keep_s = item_int(flow->arena, item, "keep", 0),
                                          .versions = item_int(flow->arena, item, "versions", 0)};
    if (settings->hash.data) return true;
    flow_refuse(flow, 404, "no-such-history", "This table has no history; PUT makes it.");
    return false;
}

void history_settings_ask(struct flow *flow, flow_step *then)
{
    flow_call(flow, then, "GetItem", "{'TableName':%T,'Key':{'table':%S},'ConsistentRead':true}",
              &history_settings_table, flow_text(flow, HISTORY_TABLE));
}

bool history_item_key(struct flow *flow, const struct history_settings *settings, struct slice range,
                      struct slice *key)
{
    struct buf out = {0};
    bool range_first = settings->range.data && slice_compare(settings->range, settings->hash) < 0;
    struct slice names[2] = {range_first ? settings->range : settings->hash,
                             range_first ? settings->hash : settings->range};
    struct slice hash = flow_text(flow, HISTORY_KEY),
                 values[2] = {range_first ? range : hash, range_first ? hash : range};
    if (range.data && !settings->range.data) {
        flow_refuse(flow, 400, "bad-request", "The table has no range key.");
        return false;
    }
    if (!range.data && settings->range.data) {
        flow_refuse(flow, 400, "bad-request", "range is missing: the table's range key is %.*s.",
                    SLICE_ARG(settings->range));
        return false;
    }
    rest_encode(&out, flow_text(flow, HISTORY_TABLE));
    for (int i = 0; i < (settings->range.data ? 2 : 1); i++) {
        buf_byte(&out, i ? '&' : '/');
        rest_encode(&out, names[i]);
        buf_byte(&out, '=');
        rest_encode(&out, values[i]);
    }
    *key = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return true;
}

/* ---- making one ---- */

enum { PUT_KEEP = HISTORY_TABLE + 1, PUT_VERSIONS };

static const struct field put_fields[] = {
    FIELD_HISTORY_TABLE,
    [PUT_KEEP] = {"keep", IN_BODY, FIELD_DURATION, .min = 1000, .max = KEEP_MOST_MS,
                  .help = "versions end after this time; never"},
    [PUT_VERSIONS] = {"versions", IN_BODY, FIELD_INT, .min = 1, .max = VERSIONS_MOST,
                      .help = "the last so many of each item are kept, a little longer than needed; all"},
};

static flow_step put_described, put_streams, put_look, put_done;

static void tell_settings(struct flow *flow, int status, struct slice item)
{
    struct history_settings settings;
    if (!history_settings_read(flow, item, &settings)) return;
    struct slice range = settings.range.data ? flow_compose(flow, ",'range':%s", settings.range) : SLICE("");
    struct slice keep = settings.keep_s ? flow_compose(flow, ",'keep':%s",
                                                       duration_text(flow->arena, settings.keep_s * 1000))
                                        : SLICE("");
    flow_answer(flow, status, "{'table':%s,'hash':%s%A,'since':%P,'stream':%P%A%A}",
                flow_text(flow, HISTORY_TABLE), settings.hash, range,
                item_attribute(flow->arena, item, "since"), item_attribute(flow->arena, item, "stream"), keep,
                settings.versions ? flow_compose(flow, ",'versions':%d", settings.versions) : SLICE(""));
}

static void put_look(struct flow *flow)
{
    flow_call(flow, put_described, "DescribeTable", "{'TableName':%s}", flow_text(flow, HISTORY_TABLE));
    flow_expect_error(flow);
}

/* The name of the key's part of a kind, and its type. */
static struct slice key_part(struct flow *flow, struct slice table, const char *kind, struct slice *type)
{
    struct raw_walk walk;
    struct slice element, name = SLICE_NONE;
    raw_walk_begin(&walk, flow->arena, raw_member(flow->arena, table, "KeySchema"));
    while (raw_walk_next(&walk, NULL, &element))
        if (slice_equal(raw_text(flow->arena, raw_member(flow->arena, element, "KeyType")), slice_of(kind)))
            name = raw_text(flow->arena, raw_member(flow->arena, element, "AttributeName"));
    *type = SLICE("");
    raw_walk_begin(&walk, flow->arena, raw_member(flow->arena, table, "AttributeDefinitions"));
    while (name.data && raw_walk_next(&walk, NULL, &element))
        if (slice_equal(raw_text(flow->arena, raw_member(flow->arena, element, "AttributeName")), name))
            *type = raw_text(flow->arena, raw_member(flow->arena, element, "AttributeType"));
    return name;
}

/* Keeps what it was, but for what is given. */
static void put_write(struct flow *flow, struct slice table, struct slice stream)
{
    struct slice hash_type, range_type, hash = key_part(flow, table, "HASH", &hash_type),
                                        range = key_part(flow, table, "RANGE", &range_type);
    bool has_keep = flow_given(flow, PUT_KEEP), has_versions = flow_given(flow, PUT_VERSIONS);
    flow_call(flow, put_done, "UpdateItem",
              "{'TableName':%T,'Key':{'table':%S},'UpdateExpression':'SET #hash = :hash, #hashType = "
              ":hashType, #stream = "
              ":stream, #since = if_not_exists(#since, "
              ":now)%r%r%r',%#,'ExpressionAttributeValues':{':hash':%S,':hashType':%S,"
              "':stream':%S,':now':%S%A%A%A},'ReturnValues':'ALL_NEW'}",
              &history_settings_table, flow_text(flow, HISTORY_TABLE),
              range.data ? SLICE(", #range = :range, #rangeType = :rangeType") : SLICE(""),
              has_keep ? SLICE(", #keep = :keep") : SLICE(""),
              has_versions ? SLICE(", #versions = :versions") : SLICE(""), hash, hash_type, stream,
              moment_text(flow->arena, flow->now_ms),
              range.data ? flow_compose(flow, ",':range':%S,':rangeType':%S", range, range_type) : SLICE(""),
              has_keep ? flow_compose(flow, ",':keep':%N", flow_int(flow, PUT_KEEP) / 1000) : SLICE(""),
              has_versions ? flow_compose(flow, ",':versions':%N", flow_int(flow, PUT_VERSIONS)) : SLICE(""));
}

static void refuse_table(struct flow *flow)
{
    if (slice_equal(flow->reply.error, SLICE("ResourceNotFoundException")))
        flow_refuse(flow, 404, "no-such-table", "There is no table of this name.");
    else
        flow_refuse_call(flow);
}

static void put_described(struct flow *flow)
{
    struct slice table = raw_member(flow->arena, flow->reply.body, "Table");
    struct slice stream = raw_member(flow->arena, table, "StreamSpecification");
    struct slice view = raw_text(flow->arena, raw_member(flow->arena, stream, "StreamViewType"));
    struct slice arn = raw_text(flow->arena, raw_member(flow->arena, table, "LatestStreamArn"));
    bool is_on = raw_kind(raw_member(flow->arena, stream, "StreamEnabled")) == JSON_TRUE;
    if (flow_failed(flow)) {
        refuse_table(flow);
    } else if (!is_on) {
        flow_call(flow, put_streams, "UpdateTable", "{'TableName':%s," FLOW_STREAM "}",
                  flow_text(flow, HISTORY_TABLE));
        flow_expect_error(flow);
    } else if (!slice_equal(view, SLICE("NEW_IMAGE")) && !slice_equal(view, SLICE("NEW_AND_OLD_IMAGES"))) {
        flow_refuse(flow, 409, "no-images",
                    "The table's stream has no new images: its StreamViewType is %.*s.", SLICE_ARG(view));
    } else {
        put_write(flow, table, arn);
    }
}

/* Whoever switched it on, and when it is ready: the table tells. */
static void put_streams(struct flow *flow)
{
    bool is_busy = slice_equal(flow->reply.error, SLICE("ResourceInUseException"));
    if (flow_failed(flow) && !is_busy)
        refuse_table(flow);
    else
        flow_again(flow, put_look);
}

static void put_done(struct flow *flow)
{
    tell_settings(flow, 200, flow_item(flow));
}

static const struct field table_fields[] = {FIELD_HISTORY_TABLE};

static void settings_taken(struct flow *flow)
{
    tell_settings(flow, 200, flow_item(flow));
}

static void settings_begin(struct flow *flow)
{
    history_settings_ask(flow, settings_taken);
}

static void delete_done(struct flow *flow)
{
    struct history_settings settings;
    if (history_settings_read(flow, flow_item(flow), &settings)) flow_answer(flow, 200, "{'deleted':true}");
}

/* What there is stays, and ends by its age. */
static void delete_begin(struct flow *flow)
{
    flow_call(flow, delete_done, "DeleteItem", "{'TableName':%T,'Key':{'table':%S},'ReturnValues':'ALL_OLD'}",
              &history_settings_table, flow_text(flow, HISTORY_TABLE));
}

/* ---- records that somebody brings ---- */

enum { FEED_RECORDS = HISTORY_TABLE + 1 };

static const struct field feed_fields[] = {
    FIELD_HISTORY_TABLE,
    [FEED_RECORDS] = {"Records", IN_BODY, FIELD_LIST, true,
                      .help = "of the table's stream, as a function gets them; up to 100"},
};

struct feed {
    size_t count;
};

static flow_step feed_settings, feed_done;

static void feed_begin(struct flow *flow)
{
    history_settings_ask(flow, feed_settings);
}

static void feed_write(struct flow *flow, struct slice actions)
{
    flow_compose(flow, "%T", &history_table); /* names it, so that it is made where it is missing */
    flow_call(flow, feed_done, "TransactWriteItems", "{'TransactItems':[%A]}", actions);
}

static void feed_settings(struct flow *flow)
{
    struct feed *feed = flow->state = arena_new(flow->arena, struct feed);
    struct history_settings settings;
    struct buf actions = {0};
    const char *fault = NULL;
    if (!history_settings_read(flow, flow_item(flow), &settings)) return;
    struct history_rule rule = {flow->world->prefix, flow_text(flow, HISTORY_TABLE), settings.keep_s};
    bool fine = history_actions(flow->arena, &rule, flow_text(flow, FEED_RECORDS), &actions, &feed->count,
                                &fault);
    if (!fine)
        flow_refuse(flow, 400, "bad-request", "Records cannot be taken: %s.", fault);
    else if (feed->count < 1 || feed->count > LIMIT_TRANSACTION_ACTIONS)
        flow_refuse(flow, 400, "bad-request", "Records must be 1 to %d.", LIMIT_TRANSACTION_ACTIONS);
    else
        feed_write(flow, buf_view(&actions));
    buf_free(&actions);
}

static void feed_done(struct flow *flow)
{
    const struct feed *feed = flow->state;
    flow_wake(flow, flow_topic("history", flow_text(flow, HISTORY_TABLE), SLICE("")));
    flow_answer(flow, 200, "{'kept':%d}", (int64_t)feed->count);
}

/* ---- rows ---- */

#define EXAMPLE_SETTINGS                                                                                     \
    "{'table':'orders','hash':'id','since':'2026-11-15T03:42:06.250Z','stream':'arn:aws:dynamodb:...',"      \
    "'keep':'30d'}"
#define EXAMPLE_VERSION                                                                                      \
    "{'version':'2026-11-15T03:42:06.000Z#0000000000000000000000000000000000000042','event':'MODIFY',"       \
    "'time':'2026-11-15T03:42:06.000Z','item':{'id':'a','n':2}}"

/* clang-format off */
const struct flow_row history_rows[] = {
    {"PUT", "/v1/history/{table}", put_look, "Keeps every change of a table from now on.", FIELDS(put_fields),
     EXAMPLE_SETTINGS, "history put"},
    {"GET", "/v1/history/{table}", settings_begin, "Whether a table's changes are kept, and for how long.",
     FIELDS(table_fields), EXAMPLE_SETTINGS, "history show"},
    {"DELETE", "/v1/history/{table}", delete_begin, "Keeps a table's changes no more.", FIELDS(table_fields),
     "{'deleted':true}", "history rm"},
    {"POST", "/v1/history/{table}", feed_begin, "Takes records of the table's stream, each once.", FIELDS(feed_fields),
     "{'kept':2}", "history feed Records?"},
    {"GET", "/v1/history/{table}/{key}", history_get_begin, "The versions of an item, or the one of a moment.",
     FIELDS(history_get_fields), "{'versions':[" EXAMPLE_VERSION "]}", "history get -> versions"},
    {"POST", "/v1/history/{table}/{key}/restore", history_restore_begin,
     "Makes an item what it was, unless somebody has changed it since its last version.",
     FIELDS(history_restore_fields),
     "{'restored':'2026-11-15T03:42:06.000Z#0000000000000000000000000000000000000042','item':{'id':'a','n':2}}",
     "history restore"},
};
/* clang-format on */
ROW_COUNT(history);
