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
 *   Index changes: hash `day` (S) "TABLE/2026-11-15/0" to "/3", by the hash of `item`; range `change` (S): the version
 *     and that hash (history_changes.c).
 * Table PREFIXhistories: hash key `table` (S); `hash`, `hashType`, `range`, `rangeType` (S): the table's
 *   key; `keep` (N, s): versions go when they have been replaced for so long; `versions` (N): so many of an
 *   item are kept; `since` (S), `stream` (S); `baseline` (M): of what was there before
 *   (history_baseline.c). One with `deleted` (S, a time) is no history any more, but its
 *   versions are being removed. Its item "*" is where the pruning stands (history_prune.c).
 *
 * A version is put by its sequence number, so a record that comes twice is there once. */
#include "pattern/history.h"

#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/edit.h"
#include "pattern/listing.h"
#include "pattern/rows.h"
#include "pattern/sweep.h"

#define KEEP_MOST_MS  (36600 * 24 * 3600000ll)
#define VERSIONS_MOST 1000000
#define RECORDS_MOST  100 /* that are brought at once */

const struct flow_table history_table = {"history", "item version; changes day change", NULL};

const struct flow_table history_settings_table = {"histories", "table", NULL};

/* ---- settings ---- */

static struct slice settings_item(struct flow *flow)
{
    struct slice item = task_get(flow, &history_settings_table, "{'table':%S}",
                                 flow_text(flow, HISTORY_TABLE));
    if (item_has(flow->arena, item, "hash")) return item;
    task_refuse(flow, 404, "no-such-history", "The table '%.*s' has no history; put makes it.",
                SLICE_ARG(flow_text(flow, HISTORY_TABLE)));
}

/* A part of the item's key as it stands in the key of versions; what is none ends the task. */
static struct history_part part_read(struct flow *flow, struct slice type, struct slice name, unsigned field)
{
    struct slice bytes;
    struct history_part part = {name, flow_text(flow, field)};
    bool is_number = slice_equal(type, SLICE("N")), is_binary = slice_equal(type, SLICE("B"));
    if (is_number ? number_plain(flow->arena, part.value, &part.value)
                  : !is_binary || base64_decode(flow->arena, part.value, &bytes) == BASE64_OK)
        return part;
    task_refuse(flow, 400, "bad-request", "%.*s is %s: \"%.*s\" is none.", SLICE_ARG(name),
                is_number ? "a number" : "binary, and told in base64", SLICE_ARG(flow_text(flow, field)));
}

struct slice history_item_key(struct flow *flow, struct slice *hash)
{
    struct slice settings = settings_item(flow), range = item_text(flow->arena, settings, "range");
    struct buf out = {0};
    struct history_part parts[2];
    bool has_range = range.data != NULL;
    *hash = item_text(flow->arena, settings, "hash");
    if (flow_given(flow, HISTORY_RANGE) != has_range)
        task_refuse(flow, 400, "bad-request",
                    has_range ? "range is missing: the table's range key is %.*s."
                              : "The table has no range key%.*s.",
                    SLICE_ARG(has_range ? range : SLICE("")));
    parts[0] = part_read(flow, item_text(flow->arena, settings, "hashType"), *hash, HISTORY_KEY);
    if (has_range)
        parts[1] = part_read(flow, item_text(flow->arena, settings, "rangeType"), range, HISTORY_RANGE);
    history_put_key(&out, flow_text(flow, HISTORY_TABLE), parts, has_range ? 2 : 1);
    return arena_take(flow->arena, &out);
}

/* ---- making one ---- */

enum { PUT_KEEP = HISTORY_TABLE + 1, PUT_VERSIONS, PUT_BASELINE };

static const struct field put_fields[] = {
    FIELD_HISTORY_TABLE,
    [PUT_KEEP] = FIELD_KEEP(KEEP_MOST_MS,
                            "versions go when they have been replaced for this time (default: never)"),
    [PUT_VERSIONS] =
        {"versions", IN_BODY, FIELD_INT, .min = 1, .max = VERSIONS_MOST,
         .help = "the last so many of each item are kept, a little longer than needed (default: all)"},
    [PUT_BASELINE] =
        {"baseline", IN_BODY, FIELD_JSON,
         .help = "false: without the items that are there now (default: they are read once, by and by)"},
    FIELD_ANSWERED("hash", FIELD_TEXT),
    FIELD_ANSWERED("range", FIELD_TEXT),
    FIELD_ANSWERED("since", FIELD_TEXT),
    FIELD_ANSWERED("stream", FIELD_TEXT),
};

/* The members of an answer that tells settings. */
static struct slice settings_members(struct flow *flow, struct slice item)
{
    int64_t keep_s = item_int(flow->arena, item, "keep", 0);
    struct buf out = {0};
    plain_put_members(&out, flow->arena, item, "table hash range since stream");
    if (keep_s) flow_put(flow, &out, ",'keep':%s", duration_text(flow->arena, keep_s * 1000));
    plain_put_members(&out, flow->arena, item, "versions");
    struct slice baseline = item_content(flow->arena, item, "baseline");
    if (baseline.data)
        flow_put(flow, &out, ",'baseline':{'state':%s,'items':%d}", item_text(flow->arena, baseline, "state"),
                 item_int(flow->arena, baseline, "items", 0));
    return slice_from(arena_take(flow->arena, &out), 1);
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

/* The name of the key's part of a kind, and its type. */
static struct slice key_part(struct flow *flow, struct slice table, const char *kind, struct slice *type)
{
    struct slice element, name = SLICE_NONE;
    raw_each (flow->arena, raw_member(flow->arena, table, "KeySchema"), &element)
        if (slice_equal(raw_text(flow->arena, raw_member(flow->arena, element, "KeyType")), slice_of(kind)))
            name = raw_text(flow->arena, raw_member(flow->arena, element, "AttributeName"));
    *type = SLICE("");
    raw_each (flow->arena, raw_member(flow->arena, table, "AttributeDefinitions"), &element)
        if (name.data &&
            slice_equal(raw_text(flow->arena, raw_member(flow->arena, element, "AttributeName")), name))
            *type = raw_text(flow->arena, raw_member(flow->arena, element, "AttributeType"));
    return name;
}

_Noreturn void history_refuse_table(struct flow *flow)
{
    if (slice_equal(flow->reply.error, SLICE("ResourceNotFoundException")))
        flow_refuse(flow, 404, "no-such-table", "There is no table '%.*s'.",
                    SLICE_ARG(flow_text(flow, HISTORY_TABLE)));
    else
        flow_refuse_call(flow);
    task_end(flow);
}

/* The description of the table, once it has a stream with new images; without a stream it gets one. */
static struct slice table_with_stream(struct flow *flow)
{
    struct slice wanted = flow_text(flow, HISTORY_TABLE);
    for (;; task_again(flow)) {
        task_try(flow, "DescribeTable", "{'TableName':%s}", wanted);
        if (flow_failed(flow)) history_refuse_table(flow);
        struct slice table = raw_member(flow->arena, flow->reply.body, "Table");
        struct slice stream = raw_member(flow->arena, table, "StreamSpecification");
        struct slice view = raw_text(flow->arena, raw_member(flow->arena, stream, "StreamViewType"));
        struct slice name = raw_text(flow->arena, raw_member(flow->arena, table, "TableName"));
        if (!slice_equal(name, wanted))
            task_refuse(flow, 400, "bad-request", "This is table %.*s: call it by that name.",
                        SLICE_ARG(name));
        if (raw_kind(raw_member(flow->arena, stream, "StreamEnabled")) == JSON_TRUE) {
            if (slice_equal(view, SLICE("NEW_IMAGE")) || slice_equal(view, SLICE("NEW_AND_OLD_IMAGES")))
                return table;
            task_refuse(flow, 409, "no-images",
                        "The table's stream is %.*s and has no new images. Switch it off and on again by "
                        "UpdateTable, with StreamViewType NEW_IMAGE or NEW_AND_OLD_IMAGES.",
                        SLICE_ARG(view));
        }
        /* whoever switches it on, and when it is ready: the table tells */
        task_try(flow, "UpdateTable", "{'TableName':%s," FLOW_STREAM "}", wanted);
        if (flow_failed(flow) && !slice_equal(flow->reply.error, SLICE("ResourceInUseException")))
            history_refuse_table(flow);
    }
}

/* What is not given is no longer set. */
static void put_history(struct flow *flow)
{
    if (is_endless(flow))
        task_refuse(flow, 409, "endless",
                    "Keeping a change changes this table: a history of it would have no end.");
    struct slice name = flow_text(flow, HISTORY_TABLE), table = table_with_stream(flow), hash_type,
                 range_type;
    struct slice hash = key_part(flow, table, "HASH", &hash_type);
    struct slice range = key_part(flow, table, "RANGE", &range_type);
    bool has_baseline = !slice_equal(flow_text(flow, PUT_BASELINE), SLICE("false"));
    bool has_keep = flow_given(flow, PUT_KEEP), has_versions = flow_given(flow, PUT_VERSIONS);
    /* whoever records needs the table of versions: a call that names it makes it */
    task_call(flow, "GetItem", "{'TableName':%T,'Key':{'item':%S,'version':%S}}", &history_table, name, name);
    edit_item(
        flow, &history_settings_table, flow_compose(flow, "{'table':%S}", name),
        flow_compose(
            flow,
            "SET #hash = :hash, #hashType = :hashType, #stream = :stream, #since = if_not_exists(#since, "
            ":now), #baseline = if_not_exists(#baseline, :baseline)"
            "%[%?, #range = :range, #rangeType = :rangeType%]%[%?, #keep = :keep%]"
            "%[%?, #versions = :versions%] REMOVE #deleted%[%?, #range, #rangeType%]%[%?, #keep%]"
            "%[%?, #versions%]",
            range.data != NULL, has_keep, has_versions, range.data == NULL, !has_keep, !has_versions),
        SLICE_NONE,
        "':hash':%S,':hashType':%S,':stream':%S,':now':%S,':baseline':{'M':{'state':{'S':%s},'items':{'N':'0'}}}"
        "%[,':range':%S,':rangeType':%S%]%[%?,':keep':%N%]%[%?,':versions':%N%]",
        hash, hash_type, raw_text(flow->arena, raw_member(flow->arena, table, "LatestStreamArn")),
        moment_text(flow->arena, flow->now_ms), has_baseline ? SLICE("RUNNING") : SLICE("NONE"), range,
        range_type, has_keep, flow_int(flow, PUT_KEEP) / 1000, has_versions, flow_int(flow, PUT_VERSIONS));
    flow_answer(flow, 200, "{%A}", settings_members(flow, flow_item(flow)));
}

/* ---- looking at them, and ending one ---- */

static const struct field table_fields[] = {FIELD_HISTORY_TABLE};

static void show_history(struct flow *flow)
{
    struct slice settings = settings_item(flow);
    if (history_asks_changes(flow))
        history_changes(flow, settings);
    else
        flow_answer(flow, 200, "{%A}", settings_members(flow, settings));
}

enum { LIST_LIMIT, LIST_AFTER };

static const struct field list_fields[] = {
    [LIST_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [LIST_AFTER] = FIELD_AFTER,
};

static void list_histories(struct flow *flow)
{
    struct slice item;
    task_call(
        flow, "Scan",
        "{'TableName':%T,'FilterExpression':'attribute_exists(#hash)',%#,'ConsistentRead':true,'Limit':%d"
        "%[,'ExclusiveStartKey':{'table':%S}%]}",
        &history_settings_table, flow_int_or(flow, LIST_LIMIT, LIST_USUAL), flow_text(flow, LIST_AFTER));
    buf_text(flow->body, "{\"histories\":[");
    raw_each (flow->arena, flow_items(flow), &item) {
        flow_put(flow, flow->body, "%,{%A}", settings_members(flow, item));
    }
    page_finish(flow, item_text(flow->arena, flow_last_key(flow), "table"));
}

/* Its versions go by and by. */
static void delete_history(struct flow *flow)
{
    edit_item(
        flow, &history_settings_table, flow_compose(flow, "{'table':%S}", flow_text(flow, HISTORY_TABLE)),
        SLICE("SET #deleted = :now REMOVE #hash, #hashType, #range, #rangeType, #keep, #versions, #since, "
              "#stream, #baseline"),
        SLICE("attribute_exists(#hash)"), "':now':%S", moment_text(flow->arena, flow->now_ms));
    if (flow_failed(flow))
        task_refuse(flow, 404, "no-such-history", "The table '%.*s' has no history.",
                    SLICE_ARG(flow_text(flow, HISTORY_TABLE)));
    flow_answer(flow, 200, "{'deleted':true}");
}

/* ---- records that somebody brings ---- */

enum { FEED_RECORDS = HISTORY_TABLE + 1 };

static const struct field feed_fields[] = {
    FIELD_HISTORY_TABLE,
    [FEED_RECORDS] = {"Records", IN_BODY, FIELD_LIST, true,
                      .help = "of the table's stream, as a function gets them; up to 100"},
};

/* A record is an item by its sequence number, so it does not matter which of them are there already, nor whether
 * all come at once: whoever got no answer brings them again. */
static void feed_records(struct flow *flow)
{
    struct slice records = flow_text(flow, FEED_RECORDS), table = flow_text(flow, HISTORY_TABLE);
    size_t count = raw_count(flow->arena, records), distinct = 0;
    settings_item(flow);
    if (count < 1 || count > RECORDS_MOST)
        task_refuse(flow, 400, "bad-request", "Records must be 1 to %d.", RECORDS_MOST);
    struct history_item *items = arena_array(flow->arena, struct history_item, count);
    struct slice *texts = arena_array(flow->arena, struct slice, count);
    const char *fault = history_items(flow->arena, table, records, items);
    if (fault) task_refuse(flow, 400, "bad-request", "Records cannot be taken: %s.", fault);
    for (size_t i = 0; i < count; i++) {
        size_t other = i + 1;
        while (other < count && (!slice_equal(items[i].key, items[other].key) ||
                                 !slice_equal(items[i].version, items[other].version)))
            other++;
        if (other == count) texts[distinct++] = items[i].text;
    }
    put_items(flow, &history_table, texts, distinct);
    flow_answer(flow, 200, "{'kept':%d}", (int64_t)count);
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
    {"GET", "/v1/history", list_histories, "The tables whose changes are kept.", FIELDS(list_fields),
     "{'histories':[" EXAMPLE_SETTINGS "]}", "history ls -> histories"},
    {"PUT", "/v1/history/{table}", put_history, "Keeps every change of a table from now on.", FIELDS(put_fields),
     EXAMPLE_SETTINGS, "history put"},
    {"GET", "/v1/history/{table}", show_history,
     "Whether a table's changes are kept, and for how long; or all changes of a time, or the table as of one.",
     FIELDS(history_changes_fields), EXAMPLE_SETTINGS, "history show -> changes"},
    {"DELETE", "/v1/history/{table}", delete_history, "Keeps a table's changes no more, and forgets them.",
     FIELDS(table_fields), "{'deleted':true}", "history rm"},
    {"POST", "/v1/history/{table}", feed_records, "Takes records of the table's stream, each once.",
     FIELDS(feed_fields),
     "{'kept':2}", "history feed Records?"},
    {"GET", "/v1/history/{table}/{key}", history_get, "The versions of an item, or the one of a moment.",
     FIELDS(history_get_fields), "{'versions':[" EXAMPLE_VERSION "]}", "history get -> versions"},
    {"POST", "/v1/history/{table}/{key}/restore", history_restore,
     "Makes an item what it was; that is a version, too.",
     FIELDS(history_restore_fields),
     "{'restored':'2026-11-15T03:42:06.000Z-0000000000000000000000000000000000000042','item':{'id':'a','n':2},"
     "'replaced':{'id':'a','n':3}}", "history restore"},
};
/* clang-format on */
ROW_COUNT(history);
