/* Histories: every change of a table, kept beside it. Here: settings, and records that somebody brings;
 * history_record.c makes items of records, history_look.c looks, history_restore.c goes back, history_prune.c
 * forgets.
 *
 * Table PREFIXhistory: hash key `item` (S): "TABLE/name=value&name=value", the item's key, percent-encoded,
 *   names in order (history_put_key); range key `version` (S): the change's time and its sequence number;
 *   `table`, `event` (S: INSERT, MODIFY, REMOVE), `time`, `sequence` (S), `exact` (BOOL) where the time is one
 *   of milliseconds; `keys` (M); `image` (M): the item behind the change, `imageText` (S) where it is nested
 *   too deep, `lost` (S) where there is none: "large" when it does not fit beside the rest, "no-image" when
 *   the stream had none; `before` (M, or `beforeText`, S): attributes that were changed or removed, as they
 *   were, `added` (SS): names of new ones, both where they fit beside the image; `cause` (S): the functions
 *   that it came of, `transaction` (S): the token of its transaction, both where the engine tells them; `by`
 *   (S): the service, where that removed it by its age.
 * Table PREFIXhistories: hash key `table` (S); `hash`, `hashType`, `range`, `rangeType` (S): the table's
 *   key; `keep` (N, s): versions go when they have been replaced for so long; `versions` (N): so many of an
 *   item are kept; `since` (S), `stream` (S). One with `deleted` (S, a time) is no history any more, but its
 *   versions are being removed. Its item "*" is where the pruning stands (history_prune.c).
 *
 * A version is put by its sequence number, so a record that comes twice is there once. */
#include "pattern/history.h"

#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/rows.h"

#define KEEP_MOST_MS  (36600 * 24 * 3600000ll)
#define VERSIONS_MOST 1000000
#define LIST_MOST     1000
#define LIST_USUAL    100

const struct flow_table history_table = {
    "history",
    "'KeySchema':[{'AttributeName':'item','KeyType':'HASH'},{'AttributeName':'version','KeyType':'RANGE'}],"
    "'AttributeDefinitions':[{'AttributeName':'item','AttributeType':'S'},"
    "{'AttributeName':'version','AttributeType':'S'}]",
    NULL};

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
    flow_refuse(flow, 404, "no-such-history", "The table '%.*s' has no history; put makes it.",
                SLICE_ARG(flow_text(flow, HISTORY_TABLE)));
    return false;
}

void history_settings_ask(struct flow *flow, flow_step *then)
{
    flow_call(flow, then, "GetItem", "{'TableName':%T,'Key':{'table':%S},'ConsistentRead':true}",
              &history_settings_table, flow_text(flow, HISTORY_TABLE));
}

/* A part of the key as it stands in the key of versions. */
static bool part_read(struct flow *flow, struct slice type, struct slice name, unsigned field,
                      struct history_part *part)
{
    struct slice bytes;
    *part = (struct history_part){name, flow_text(flow, field)};
    bool is_number = slice_equal(type, SLICE("N")), is_binary = slice_equal(type, SLICE("B"));
    if (is_number ? number_plain(flow->arena, part->value, &part->value)
                  : !is_binary || base64_decode(flow->arena, part->value, &bytes) == BASE64_OK)
        return true;
    flow_refuse(flow, 400, "bad-request", "%.*s is %s: \"%.*s\" is none.", SLICE_ARG(name),
                is_number ? "a number" : "binary, and told in base64", SLICE_ARG(flow_text(flow, field)));
    return false;
}

bool history_item_key(struct flow *flow, const struct history_settings *settings, struct slice *key)
{
    struct buf out = {0};
    struct history_part parts[2];
    bool has_range = settings->range.data != NULL;
    if (flow_given(flow, HISTORY_RANGE) != has_range) {
        flow_refuse(flow, 400, "bad-request",
                    has_range ? "range is missing: the table's range key is %.*s."
                              : "The table has no range key%.*s.",
                    SLICE_ARG(has_range ? settings->range : SLICE("")));
        return false;
    }
    if (!part_read(flow, settings->hash_type, settings->hash, HISTORY_KEY, &parts[0])) return false;
    if (has_range && !part_read(flow, settings->range_type, settings->range, HISTORY_RANGE, &parts[1]))
        return false;
    history_put_key(&out, flow_text(flow, HISTORY_TABLE), parts, has_range ? 2 : 1);
    *key = arena_copy(flow->arena, buf_view(&out));
    buf_free(&out);
    return true;
}

/* ---- making one ---- */

enum { PUT_KEEP = HISTORY_TABLE + 1, PUT_VERSIONS };

static const struct field put_fields[] = {
    FIELD_HISTORY_TABLE,
    [PUT_KEEP] = {"keep", IN_BODY, FIELD_DURATION, .min = 1000, .max = KEEP_MOST_MS,
                  .help = "versions go when they have been replaced for this time (default: never)"},
    [PUT_VERSIONS] = {"versions", IN_BODY, FIELD_INT, .min = 1, .max = VERSIONS_MOST,
                      .help = "the last so many of each item are kept, a little longer than needed (default: all)"},
    {"hash", IN_REPLY, FIELD_TEXT, .help = "as GET answers it; it changes nothing"},
    {"range", IN_REPLY, FIELD_TEXT, .help = "as GET answers it; it changes nothing"},
    {"since", IN_REPLY, FIELD_TEXT, .help = "as GET answers it; it changes nothing"},
    {"stream", IN_REPLY, FIELD_TEXT, .help = "as GET answers it; it changes nothing"},
};

static flow_step put_look, put_described, put_streams, put_write;

struct put {
    struct slice table, stream; /* its description; the stream's name */
};

/* The members of an answer that tells settings. */
static struct slice settings_members(struct flow *flow, struct slice item)
{
    struct arena *arena = flow->arena;
    int64_t keep_s = item_int(arena, item, "keep", 0), versions = item_int(arena, item, "versions", 0);
    struct slice range = item_attribute(arena, item, "range");
    return flow_compose(flow, "'table':%P,'hash':%P%A,'since':%P,'stream':%P%A%A",
                        item_attribute(arena, item, "table"), item_attribute(arena, item, "hash"),
                        range.data ? flow_compose(flow, ",'range':%P", range) : SLICE(""),
                        item_attribute(arena, item, "since"), item_attribute(arena, item, "stream"),
                        keep_s ? flow_compose(flow, ",'keep':%s", duration_text(arena, keep_s * 1000))
                               : SLICE(""),
                        versions ? flow_compose(flow, ",'versions':%d", versions) : SLICE(""));
}

static void tell_settings(struct flow *flow)
{
    struct history_settings settings;
    if (!history_settings_read(flow, flow_item(flow), &settings)) return;
    flow_answer(flow, 200, "{%A}", settings_members(flow, flow_item(flow)));
}

/* Tables that recording itself changes: their history would have no end. */
static bool is_endless(struct flow *flow)
{
    static const char *const names[] = {"history", "histories", "positions"};
    struct slice table = flow_text(flow, HISTORY_TABLE), prefix = flow->world->prefix;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (slice_starts(table, prefix) && slice_equal(slice_from(table, prefix.len), slice_of(names[i])))
            return true;
    return false;
}

static void put_begin(struct flow *flow)
{
    if (is_endless(flow))
        flow_refuse(flow, 409, "endless",
                    "Keeping a change changes this table: a history of it would have no end.");
    else
        put_look(flow);
}

static void put_look(struct flow *flow)
{
    flow_call(flow, put_described, "DescribeTable", "{'TableName':%s}", flow_text(flow, HISTORY_TABLE));
    flow_expect_error(flow);
}

/* The name of the key's part of a kind, and its type. */
static struct slice key_part(struct flow *flow, struct slice table, const char *kind, struct slice *type)
{
    struct raw_look look;
    struct slice element, name = SLICE_NONE;
    raw_look_begin(&look, flow->arena, raw_member(flow->arena, table, "KeySchema"));
    while (raw_look_next(&look, NULL, &element))
        if (slice_equal(raw_text(flow->arena, raw_member(flow->arena, element, "KeyType")), slice_of(kind)))
            name = raw_text(flow->arena, raw_member(flow->arena, element, "AttributeName"));
    *type = SLICE("");
    raw_look_begin(&look, flow->arena, raw_member(flow->arena, table, "AttributeDefinitions"));
    while (name.data && raw_look_next(&look, NULL, &element))
        if (slice_equal(raw_text(flow->arena, raw_member(flow->arena, element, "AttributeName")), name))
            *type = raw_text(flow->arena, raw_member(flow->arena, element, "AttributeType"));
    return name;
}

/* What is not given is no longer set. */
static void put_write(struct flow *flow)
{
    const struct put *put = flow->state;
    struct slice table = put->table, stream = put->stream;
    struct slice hash_type, range_type, hash = key_part(flow, table, "HASH", &hash_type),
                                        range = key_part(flow, table, "RANGE", &range_type);
    bool has_range = range.data, has_keep = flow_given(flow, PUT_KEEP),
         has_versions = flow_given(flow, PUT_VERSIONS);
    flow_call(
        flow, tell_settings, "UpdateItem",
        "{'TableName':%T,'Key':{'table':%S},'UpdateExpression':'SET #hash = :hash, #hashType = :hashType, "
        "#stream = :stream, #since = if_not_exists(#since, :now)%r%r%r REMOVE #deleted%r%r%r',%#,"
        "'ExpressionAttributeValues':{':hash':%S,':hashType':%S,':stream':%S,':now':%S%A%A%A},"
        "'ReturnValues':'ALL_NEW'}",
        &history_settings_table, flow_text(flow, HISTORY_TABLE),
        has_range ? SLICE(", #range = :range, #rangeType = :rangeType") : SLICE(""),
        has_keep ? SLICE(", #keep = :keep") : SLICE(""),
        has_versions ? SLICE(", #versions = :versions") : SLICE(""),
        has_range ? SLICE("") : SLICE(", #range, #rangeType"), has_keep ? SLICE("") : SLICE(", #keep"),
        has_versions ? SLICE("") : SLICE(", #versions"), hash, hash_type, stream,
        moment_text(flow->arena, flow->now_ms),
        has_range ? flow_compose(flow, ",':range':%S,':rangeType':%S", range, range_type) : SLICE(""),
        has_keep ? flow_compose(flow, ",':keep':%N", flow_int(flow, PUT_KEEP) / 1000) : SLICE(""),
        has_versions ? flow_compose(flow, ",':versions':%N", flow_int(flow, PUT_VERSIONS)) : SLICE(""));
}

void history_refuse_table(struct flow *flow)
{
    if (slice_equal(flow->reply.error, SLICE("ResourceNotFoundException")))
        flow_refuse(flow, 404, "no-such-table", "There is no table '%.*s'.",
                    SLICE_ARG(flow_text(flow, HISTORY_TABLE)));
    else
        flow_refuse_call(flow);
}

/* Whoever records needs the table of versions: a call that names it makes it. */
static void put_prepare(struct flow *flow, struct slice table, struct slice stream)
{
    struct put *put = flow->state = arena_new(flow->arena, struct put);
    *put = (struct put){table, stream};
    flow_call(flow, put_write, "GetItem", "{'TableName':%T,'Key':{'item':%S,'version':%S}}", &history_table,
              flow_text(flow, HISTORY_TABLE), flow_text(flow, HISTORY_TABLE));
}

static void put_described(struct flow *flow)
{
    struct slice table = raw_member(flow->arena, flow->reply.body, "Table");
    struct slice stream = raw_member(flow->arena, table, "StreamSpecification");
    struct slice view = raw_text(flow->arena, raw_member(flow->arena, stream, "StreamViewType"));
    struct slice arn = raw_text(flow->arena, raw_member(flow->arena, table, "LatestStreamArn"));
    bool is_on = raw_kind(raw_member(flow->arena, stream, "StreamEnabled")) == JSON_TRUE;
    struct slice name = raw_text(flow->arena, raw_member(flow->arena, table, "TableName"));
    if (flow_failed(flow)) {
        history_refuse_table(flow);
    } else if (!slice_equal(name, flow_text(flow, HISTORY_TABLE))) {
        flow_refuse(flow, 400, "bad-request", "This is table %.*s: call it by that name.", SLICE_ARG(name));
    } else if (!is_on) {
        flow_call(flow, put_streams, "UpdateTable", "{'TableName':%s," FLOW_STREAM "}",
                  flow_text(flow, HISTORY_TABLE));
        flow_expect_error(flow);
    } else if (!slice_equal(view, SLICE("NEW_IMAGE")) && !slice_equal(view, SLICE("NEW_AND_OLD_IMAGES"))) {
        flow_refuse(
            flow, 409, "no-images",
            "The table's stream is %.*s and has no new images. Switch it off and on again by UpdateTable, "
            "with StreamViewType NEW_IMAGE or NEW_AND_OLD_IMAGES.",
            SLICE_ARG(view));
    } else {
        put_prepare(flow, table, arn);
    }
}

/* Whoever switched it on, and when it is ready: the table tells. */
static void put_streams(struct flow *flow)
{
    bool is_busy = slice_equal(flow->reply.error, SLICE("ResourceInUseException"));
    if (flow_failed(flow) && !is_busy)
        history_refuse_table(flow);
    else
        flow_again(flow, put_look);
}

/* ---- looking at them, and ending one ---- */

static const struct field table_fields[] = {FIELD_HISTORY_TABLE};

static void settings_begin(struct flow *flow)
{
    history_settings_ask(flow, tell_settings);
}

enum { LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    [LIST_LIMIT] = {"limit", IN_QUERY, FIELD_INT, .min = 1, .max = LIST_MOST,
                    .help = "at most so many (default: 100)"},
    [LIST_AFTER] = {"after", IN_QUERY, FIELD_NAME, .help = "the \"next\" of the page before"},
};

static void list_done(struct flow *flow)
{
    struct raw_look look;
    struct slice item, last = flow_last_key(flow);
    bool first = true;
    buf_text(flow->body, "{\"histories\":[");
    raw_look_begin(&look, flow->arena, flow_items(flow));
    for (; raw_look_next(&look, NULL, &item); first = false)
        buf_slice(flow->body,
                  flow_compose(flow, "%A{%A}", first ? SLICE("") : SLICE(","), settings_members(flow, item)));
    buf_slice(flow->body, last.data
                              ? flow_compose(flow, "],'next':%s}", item_text(flow->arena, last, "table"))
                              : SLICE("]}"));
    flow_finish(flow, 200);
}

static void list_begin(struct flow *flow)
{
    flow_call(
        flow, list_done, "Scan",
        "{'TableName':%T,'FilterExpression':'attribute_exists(#hash)',%#,'ConsistentRead':true,'Limit':%d%A}",
        &history_settings_table, flow_int_or(flow, LIST_LIMIT, LIST_USUAL),
        flow_given(flow, LIST_AFTER)
            ? flow_compose(flow, ",'ExclusiveStartKey':{'table':%S}", flow_text(flow, LIST_AFTER))
            : SLICE(""));
}

static void delete_done(struct flow *flow)
{
    if (flow_failed(flow))
        flow_refuse(flow, 404, "no-such-history", "The table '%.*s' has no history.",
                    SLICE_ARG(flow_text(flow, HISTORY_TABLE)));
    else
        flow_answer(flow, 200, "{'deleted':true}");
}

/* Its versions go by and by. */
static void delete_begin(struct flow *flow)
{
    flow_call(
        flow, delete_done, "UpdateItem",
        "{'TableName':%T,'Key':{'table':%S},'UpdateExpression':'SET #deleted = :now REMOVE #hash, #hashType, "
        "#range, #rangeType, #keep, #versions, #since, #stream',"
        "'ConditionExpression':'attribute_exists(#hash)',%#,'ExpressionAttributeValues':{':now':%S}}",
        &history_settings_table, flow_text(flow, HISTORY_TABLE), moment_text(flow->arena, flow->now_ms));
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
    struct history_rule rule = {flow->world->prefix, flow_text(flow, HISTORY_TABLE)};
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
    flow_answer(flow, 200, "{'kept':%d}", (int64_t)feed->count);
}

/* ---- rows ---- */

#define EXAMPLE_SETTINGS                                                                                     \
    "{'table':'orders','hash':'id','since':'2026-11-15T03:42:06.250Z','stream':'arn:aws:dynamodb:...',"      \
    "'keep':'30d'}"
#define EXAMPLE_VERSION                                                                                      \
    "{'version':'2026-11-15T03:42:06.000Z-0000000000000000000000000000000000000042','event':'MODIFY',"       \
    "'time':'2026-11-15T03:42:06.250Z','precision':'1ms','item':{'id':'a','n':2}}"

/* clang-format off */
const struct flow_row history_rows[] = {
    {"GET", "/v1/history", list_begin, "The tables whose changes are kept.", FIELDS(list_fields),
     "{'histories':[" EXAMPLE_SETTINGS "]}", "history ls -> histories"},
    {"PUT", "/v1/history/{table}", put_begin, "Keeps every change of a table from now on.", FIELDS(put_fields),
     EXAMPLE_SETTINGS, "history put"},
    {"GET", "/v1/history/{table}", settings_begin, "Whether a table's changes are kept, and for how long.",
     FIELDS(table_fields), EXAMPLE_SETTINGS, "history show"},
    {"DELETE", "/v1/history/{table}", delete_begin, "Keeps a table's changes no more, and forgets them.",
     FIELDS(table_fields), "{'deleted':true}", "history rm"},
    {"POST", "/v1/history/{table}", feed_begin, "Takes records of the table's stream, each once.", FIELDS(feed_fields),
     "{'kept':2}", "history feed Records?"},
    {"GET", "/v1/history/{table}/{key}", history_get_begin, "The versions of an item, or the one of a moment.",
     FIELDS(history_get_fields), "{'versions':[" EXAMPLE_VERSION "]}", "history get -> versions"},
    {"POST", "/v1/history/{table}/{key}/restore", history_restore_begin,
     "Makes an item what it was; that is a version, too.",
     FIELDS(history_restore_fields),
     "{'restored':'2026-11-15T03:42:06.000Z-0000000000000000000000000000000000000042','item':{'id':'a','n':2},"
     "'replaced':{'id':'a','n':3}}", "history restore"},
};
/* clang-format on */
ROW_COUNT(history);
