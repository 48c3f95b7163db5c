/* Logs: events in partitions, numbered without a gap, read by groups of consumers. Here: the tables, the
 * layout; log_events.c, log_look.c, log_key.c, log_append.c, log_change.c (split and merge), log_scan.c, log_read.c,
 * log_ack.c and log_delete.c do the rest. LOG and GROUP stand percent-encoded in keys that are made of several parts.
 * ID is given to a log when it is made: what belonged to a deleted log of the same name has another one.
 *
 * Table PREFIXlogs: hash key `log` (S), range key `part` (S).
 *   Part "log": `id` (S); `partitions` (N): of the beginning, numbered from 0; the hash h (XXH3, 64 bits) of a key
 *     belongs to partition h * partitions / 2^64; `slots` (N); `version` (N): grows with each split and
 *     merge; `next` (N): number of the next partition; `change` (M): the split or merge that is under way, `olds` (L of
 *     N), `news` (L of M {partition, from, to}); `keep` (N, s), `created` (S); `deleted` (BOOL): it is being removed;
 *     `scale` (M {above, below, partitions}): log_scale.c, whose state is among the heads.
 *   Part "from/ID/HEX": a route: hashes from HEX `to` (S) belong to `partition` (N) since `version` (N); where there is
 *     none, the beginning's rule holds.
 *   Part "group/GROUP": a group of consumers: `generation`, `since` (N, ms): positions of an older
 *     generation do not count, those that are missing begin at this time; `turn` (N): grows with each
 *     replay; `mark0` .. `mark15` (N, s): what was touched before it is read; `again` (N): the group's parked events
 *     are to be read again, up to this number; `intent`, `redo` (M {partition, position}): a replay of one partition
 *     that is under way (intent.h).
 * Table PREFIXlog-heads: hash key `partition` (S): "LOG/ID/7"; `sequence` (N): so many events there are at least; of
 *   those that a split or merge made `from`, `to` (S), `parents` (L of M {partition, end}): what must be read before,
 *   `time` (N, ms): of the parents' last event; of a log with `keep` the numbers that are in use, `base`, `upto` (N),
 *   and `lives` (N, s), see log_events.c;
 *   index news, with `sequence` and `parents`: hash `slot` (S): "LOG/ID/3", range `touched` (N, s): no event is more
 *     than LOG_TOUCHED_S newer. A partition that nothing was ever put into has no head.
 * Table PREFIXlog-events: chains (chain.h), `chain` (S): "LOG/ID/7", of a group's parked events that are read again
 *   "LOG/ID/parked/GROUP"; log_events.c tells what an entry is. A seal says which partitions go on (L of N), or
 *   "deleted".
 * Table PREFIXlog-positions: hash key `group` (S): "LOG/GROUP", range key `partition` (S): "7", "parked";
 *   `position` (N): the last number that is done with; `owner` (S), `fence` (N), `until` (N, ms), `lease`
 *   (N, ms), `given` (N): the last number that the owner was given, `page` (N): where the event behind it stands, or
 *   will stand; `generation`, `turn` (N); `replayed` (N): the turn of its last replay; `intent`, `redo` (M {sequence,
 *   reason, parked}): an event that is being parked.
 * Table PREFIXlog-parked: hash key `group` (S), range key `event` (S): partition, number, and the intent that has
 *   parked it; `reason` (S), `parked` (S, time), `partition` (S), `sequence` (N), `key`, `data`, `time`.
 * Table PREFIXtokens (tokens.h), kind "log", name ID: `chain`, `number` of the event that was appended with the token;
 *   `mark` (S): a hash of its key and data. Kind "log-parked", name "LOG/ID/parked/GROUP": parked events that were
 *   moved.
 *
 * Nothing is appended behind a seal; children name what of their parents must be read before them, which keeps the
 * order of each key, and number their own events behind those. One partition is a log in one order. */
#include "pattern/log.h"

#include <stdlib.h>

#include "calendar/calendar.h"
#include "pattern/drive.h"
#include "pattern/names.h"
#include "pattern/rows.h"

#define KEEP_MOST_MS       (10 * 365 * 24 * 3600 * 1000ll)
#define LAYOUT_RECALLED_MS 60000 /* how late another process's change of settings is noticed at the most */
#define ROUTE_SHIFT        54    /* so many parts of all hashes have a route in memory each: 1024 */

const struct flow_table log_table = {"logs", "log part", NULL};

const struct flow_table log_heads = {"log-heads", "partition; news slot touched:N sequence parents", NULL};

const struct flow_table log_events = {"log-events", CHAIN_KEYS, "expires"};

const struct flow_table log_positions = {"log-positions", "group partition", NULL};

const struct flow_table log_parked = {"log-parked", "group event", NULL};

/* ---- keys and texts ---- */

/* "LOG/ID/", and what comes behind it. Every append makes one. */
static struct slice key_make(struct flow *flow, const struct log_layout *layout, const char *kind,
                             int64_t number, struct slice group)
{
    struct buf out = {0};
    buf_reserve(&out, 3 * (flow_text(flow, LOG_NAME).len + group.len) + LOG_ID_CHARS + 40);
    rest_encode(&out, flow_text(flow, LOG_NAME));
    buf_byte(&out, '/');
    buf_slice(&out, slice_of(layout->id));
    buf_byte(&out, '/');
    buf_slice(&out, slice_of(kind));
    if (group.data)
        rest_encode(&out, group);
    else
        json_put_int(&out, number);
    return arena_take(flow->arena, &out);
}

struct slice log_key(struct flow *flow, const struct log_layout *layout, int64_t partition)
{
    if (partition == LOG_PARKED) return key_make(flow, layout, "parked/", 0, flow_text(flow, LOG_GROUP));
    return key_make(flow, layout, "", partition, SLICE_NONE);
}

int64_t log_key_number(struct slice key)
{
    const char *slash = memrchr(key.data, '/', key.len);
    size_t start = slash ? (size_t)(slash - key.data) + 1 : 0;
    unsigned long long number;
    return slice_to_u64(slice_from(key, start), LOG_NUMBER_MOST, &number) ? (int64_t)number : LOG_PARKED;
}

struct slice log_group_key(struct flow *flow)
{
    return flow_compose(flow, "%A/%A", rest_encoded(flow->arena, flow_text(flow, LOG_NAME)),
                        rest_encoded(flow->arena, flow_text(flow, LOG_GROUP)));
}

struct slice log_hex(struct flow *flow, uint64_t hash)
{
    return arena_printf(flow->arena, "%016llx", (unsigned long long)hash);
}

struct slice log_partition_text(struct flow *flow, int64_t partition)
{
    if (partition == LOG_PARKED) return SLICE("parked");
    return arena_printf(flow->arena, "%lld", (long long)partition);
}

struct slice log_children_text(struct flow *flow, struct slice seal, unsigned *count)
{
    struct slice list = SLICE(""), child;
    *count = 0;
    raw_each (flow->arena, raw_member(flow->arena, seal, "L"), &child) {
        list = flow_compose(flow, "%A%,%s", list, attribute_text(flow->arena, child));
        ++*count;
    }
    return list;
}

int64_t log_partition_of(struct flow *flow, struct slice text, bool may_be_parked)
{
    unsigned long long number;
    if (may_be_parked && slice_equal(text, SLICE("parked"))) return LOG_PARKED;
    if (slice_to_u64(text, LOG_NUMBER_MOST, &number)) return (int64_t)number;
    task_refuse(flow, 400, "bad-request", "partition must be the number of a partition, as text: \"0\".");
}

struct slice log_item_key(struct flow *flow, struct slice part)
{
    return flow_compose(flow, "{'log':%S,'part':%S}", flow_text(flow, LOG_NAME), part);
}

uint64_t log_topic(const struct flow *flow)
{
    return flow_topic("log", flow_text(flow, LOG_NAME), SLICE(""));
}

_Noreturn void log_refuse_partition(struct flow *flow, int64_t partition)
{
    task_refuse(flow, 404, "no-such-partition", "The log '%.*s' has no partition %lld.",
                SLICE_ARG(flow_text(flow, LOG_NAME)), (long long)partition);
}

/* ---- the layout ---- */

void log_layout_read(struct flow *flow, struct slice item, struct log_layout *layout)
{
    struct slice id = item_text(flow->arena, item, "id");
    *layout = (struct log_layout){.partitions = item_int(flow->arena, item, "partitions", 0),
                                  .read_ms = flow->now_ms,
                                  .slots = item_int(flow->arena, item, "slots", 1),
                                  .version = item_int(flow->arena, item, "version", 0),
                                  .keep_s = item_int(flow->arena, item, "keep", 0),
                                  .scale = log_scale_of(flow, item),
                                  .created = item_text(flow->arena, item, "created"),
                                  .change = item_attribute(flow->arena, item, "change")};
    layout->next = item_int(flow->arena, item, "next", layout->partitions);
    bool is_sane = layout->partitions >= 1 && layout->slots >= 1 && layout->slots <= LOG_SLOTS;
    if (is_sane && !item_has(flow->arena, item, "deleted") && id.len == LOG_ID_CHARS) {
        memcpy(layout->id, id.data, LOG_ID_CHARS);
        return;
    }
    if (is_sane && !id.data)
        task_refuse(flow, 409, "older-layout",
                    "The log '%.*s' was made by an older version, whose events this one "
                    "cannot read.",
                    SLICE_ARG(flow_text(flow, LOG_NAME)));
    task_refuse(flow, 404, "no-such-log", "There is no log '%.*s'; put makes it.",
                SLICE_ARG(flow_text(flow, LOG_NAME)));
}

static uint64_t layout_topic(const struct flow *flow)
{
    return flow_topic("log layout", flow_text(flow, LOG_NAME), SLICE(""));
}

void log_layout_forget(struct flow *flow)
{
    flow_forget(flow, layout_topic(flow));
}

void log_layout_get(struct flow *flow, struct log_layout *layout)
{
    log_layout_forget(flow);
    log_layout_read(flow, task_get(flow, &log_table, "%A", LOG_KEY(flow)), layout);
    struct log_layout kept = *layout;
    kept.created = kept.change = SLICE_NONE;
    flow_remember(flow, layout_topic(flow), (struct slice){(const char *)&kept, sizeof kept});
}

bool log_layout_guess(struct flow *flow, struct log_layout *layout)
{
    struct slice text = flow_recall(flow, layout_topic(flow));
    if (text.len == sizeof *layout) memcpy(layout, text.data, sizeof *layout);
    if (text.len == sizeof *layout && flow->now_ms >= layout->read_ms &&
        flow->now_ms - layout->read_ms < LAYOUT_RECALLED_MS)
        return true;
    log_layout_get(flow, layout);
    return false;
}

/* The first hash of a partition of the beginning. */
static uint64_t range_start(const struct log_layout *layout, int64_t partition)
{
    unsigned __int128 whole = (unsigned __int128)1 << 64;
    return (uint64_t)((whole * (uint64_t)partition + (uint64_t)layout->partitions - 1) /
                      (uint64_t)layout->partitions);
}

struct log_range log_range_first(const struct log_layout *layout, int64_t partition)
{
    bool is_last = partition == layout->partitions - 1;
    return (struct log_range){.from = range_start(layout, partition),
                              .to = is_last ? UINT64_MAX : range_start(layout, partition + 1) - 1,
                              .partition = partition};
}

struct log_range log_range_of(const struct log_layout *layout, uint64_t hash)
{
    unsigned __int128 product = (unsigned __int128)hash * (uint64_t)layout->partitions;
    return log_range_first(layout, (int64_t)(product >> 64));
}

bool log_hex_read(struct slice text, uint64_t *out)
{
    char copy[17], *end;
    if (text.len != 16) return false;
    memcpy(copy, text.data, 16);
    copy[16] = '\0';
    *out = strtoull(copy, &end, 16);
    return !*end;
}

bool log_range_read(struct flow *flow, struct slice item, struct log_range *range)
{
    struct slice from = item_text(flow->arena, item, "from"), part = item_text(flow->arena, item, "part");
    if (!from.data && slice_starts(part, SLICE("from/")) && part.len > 16)
        from = slice_from(part, part.len - 16);
    range->partition = item_int(flow->arena, item, "partition", LOG_PARKED);
    return log_hex_read(from, &range->from) && log_hex_read(item_text(flow->arena, item, "to"), &range->to);
}

static uint64_t route_topic(const struct log_layout *layout, uint64_t hash)
{
    uint64_t part = hash >> ROUTE_SHIFT;
    return flow_topic("log route", slice_of(layout->id), (struct slice){(const char *)&part, sizeof part});
}

struct log_range log_route(struct flow *flow, const struct log_layout *layout, uint64_t hash)
{
    struct log_range range = log_range_of(layout, hash);
    if (layout->version == 0) return range;
    struct slice last = flow_recall(flow, route_topic(layout, hash));
    if (last.len == sizeof range) {
        memcpy(&range, last.data, sizeof range);
        if (hash >= range.from && hash <= range.to) return range;
    }
    task_query(flow, "#log = :log and #part between :first and :last", QUERY_LAST READ_FRESH,
               "':log':%S,':first':{'S':'from/%r/'},':last':{'S':'from/%r/%r'}", &log_table,
               flow_text(flow, LOG_NAME), slice_of(layout->id), slice_of(layout->id), log_hex(flow, hash));
    if (!log_range_read(flow, raw_first(flow->arena, flow_items(flow)), &range) || hash < range.from ||
        hash > range.to)
        range = log_range_of(layout, hash);
    flow_remember(flow, route_topic(layout, hash), (struct slice){(const char *)&range, sizeof range});
    return range;
}

void log_route_forget(struct flow *flow, const struct log_layout *layout, uint64_t hash)
{
    flow_forget(flow, route_topic(layout, hash));
}

/* ---- making one ---- */

enum { PUT_PARTITIONS = LOG_NAME + 1, PUT_KEEP, PUT_SCALE, PUT_REPLY };

static const struct field put_fields[] = {
    FIELD_LOG,
    [PUT_PARTITIONS] = {"partitions", IN_BODY, FIELD_INT, .min = 1, .max = LOG_PARTITIONS_MOST,
                        .help = "how many may be written and read side by side (default: 4); with one, all "
                                "events are in one order"},
    [PUT_KEEP] = FIELD_KEEP(KEEP_MOST_MS, "events end after this time (default: never)"),
    [PUT_SCALE] =
        {"scale", IN_BODY, FIELD_JSON,
         .help = "a server splits and merges partitions by itself: {split_above: \"500/s\", merge_below: "
                 "\"50/s\", partitions: 64}; null: it does not (default)"},
    [PUT_REPLY] = FIELD_ANSWERED("created", FIELD_TEXT),
    FIELD_ANSWERED("changes", FIELD_LIST),
    FIELD_ANSWERED("version", FIELD_INT),
    FIELD_ANSWERED("consumers", FIELD_LIST),
    FIELD_ANSWERED("open", FIELD_LIST),
    FIELD_ANSWERED("next", FIELD_TEXT),
};

struct slice log_settings(struct flow *flow, const struct log_layout *layout)
{
    struct slice keep = SLICE("");
    if (layout->keep_s)
        keep = flow_compose(flow, ",'keep':%s", duration_text(flow->arena, layout->keep_s * 1000));
    return flow_compose(flow, "'log':%s,'partitions':%d%A%A", flow_text(flow, LOG_NAME), layout->partitions,
                        keep, log_scale_member(flow, &layout->scale));
}

static void put_begin(struct flow *flow)
{
    int64_t wanted = flow_int_or(flow, PUT_PARTITIONS, 4);
    int64_t keep_s = flow_int_or(flow, PUT_KEEP, 0) / 1000;
    struct log_layout layout;
    struct log_scale scale = {0};
    if (flow_given(flow, PUT_SCALE)) /* it is refused before anything is made */
        scale = log_scale_read(flow, flow_text(flow, PUT_SCALE), flow_int_or(flow, PUT_PARTITIONS, 1));
    if (scale.above && wanted > scale.partitions) wanted = scale.partitions;
    int64_t slots = wanted < LOG_SLOTS ? wanted : LOG_SLOTS;
    struct slice id = arena_printf(flow->arena, "%010llx", (unsigned long long)(flow_random(flow) >> 24));
    struct slice log = flow_compose(
        flow,
        "{'log':%S,'part':{'S':'log'},'partitions':%N,'slots':%N,'version':{'N':'0'},"
        "'next':%N,'created':%S,'id':%S%[%?,'keep':%N%]}",
        flow_text(flow, LOG_NAME), wanted, slots, wanted, moment_text(flow->arena, flow->now_ms), id,
        keep_s != 0, keep_s);
    names_note(flow, SLICE("log"), flow_text(flow, LOG_NAME));
    for (;; task_again(flow)) {
        task_call(flow, "PutItem",
                  "{'TableName':%T,'Item':%A,'ConditionExpression':'attribute_not_exists(part)',%O}",
                  &log_table, log);
        bool is_new = !flow_failed(flow);
        struct slice item = is_new ? log : flow_item(flow);
        int64_t partitions = item_int(flow->arena, item, "partitions", 0);
        if (item_has(flow->arena, item, "deleted"))
            task_refuse(flow, 409, "being-deleted", "This log is being deleted: DELETE it once more.");
        if (flow_given(flow, PUT_PARTITIONS) && partitions != wanted)
            task_refuse_with(flow, flow_compose(flow, "'partitions':%d", partitions), 409, "exists",
                             "This log began with %lld partitions; split and merge change them.",
                             (long long)partitions);
        if (flow_given(flow, PUT_SCALE)) scale = log_scale_read(flow, flow_text(flow, PUT_SCALE), partitions);
        /* Events that are appended from now on end by another `keep`; the others as they were told. */
        bool keeps_other = keep_s && item_int(flow->arena, item, "keep", 0) != keep_s;
        struct slice setting = log_scale_attribute(flow, &scale);
        bool scales_other = flow_given(flow, PUT_SCALE) &&
                            !attribute_equal(flow->arena, item_attribute(flow->arena, item, "scale"),
                                             setting);
        if (keeps_other || scales_other) {
            struct edit edit = {0};
            if (keeps_other) edit_set(flow, &edit, "keep", "%N", keep_s);
            if (scales_other) edit_set(flow, &edit, "scale", "%A", setting);
            edit_if(flow, &edit, "attribute_exists(#part) and attribute_not_exists(#deleted)", NULL);
            if (!edit_write(flow, &edit, &log_table, LOG_KEY(flow))) continue;
            item = flow_item(flow);
        }
        log_layout_forget(flow);
        log_layout_read(flow, item, &layout);
        if (flow_given(flow, PUT_SCALE)) log_scale_enter(flow, &layout);
        flow_answer(flow, is_new ? 201 : 200, "{%A}", log_settings(flow, &layout));
        return;
    }
}

/* ---- all logs ---- */

static struct slice told_in_list(struct flow *flow, struct slice item)
{
    struct buf out = {0};
    int64_t keep_s = item_int(flow->arena, item, "keep", 0);
    if (!item_has(flow->arena, item, "partitions") || item_has(flow->arena, item, "deleted"))
        return SLICE_NONE;
    flow_put(flow, &out, ",'created':%s", item_text(flow->arena, item, "created"));
    if (keep_s) flow_put(flow, &out, ",'keep':%s", duration_text(flow->arena, keep_s * 1000));
    return arena_take(flow->arena, &out);
}

NAMES_LIST(list_logs, SLICE("log"), "logs", "log", "log", .table = &log_table, .part = ",'part':{'S':'log'}",
           .tell = told_in_list)

/* ---- consumers that the server calls ---- */

enum {
    PUSH_FUNCTION = LOG_GROUP + 1,
    PUSH_BATCH,
    PUSH_WINDOW,
    PUSH_ATTEMPTS,
    PUSH_BACKOFF,
    PUSH_PARALLEL,
    PUSH_BISECT,
    PUSH_TIMEOUT,
    PUSH_PAUSED,
    PUSH_REPLY
};

static const struct field push_fields[] = {
    FIELD_LOG,
    FIELD_LOG_GROUP,
    [PUSH_FUNCTION] = {"function", IN_BODY, FIELD_THEN,
                       .help =
                           "what the server calls with each batch: a function, a URL or a call; []: nothing"},
    [PUSH_BATCH] = {"batch", IN_BODY, FIELD_INT, .min = 1, .max = 1000,
                    .help = "at most so many events in a call (default: 100)"},
    [PUSH_WINDOW] = {"window", IN_BODY, FIELD_DURATION, .max = 300000,
                     .help = "wait so long for a full batch (default: not at all)"},
    [PUSH_ATTEMPTS] = {"attempts", IN_BODY, FIELD_INT, .min = 1, .max = 1000,
                       .help = "calls before events are parked (default: 5)"},
    [PUSH_BACKOFF] = {"backoff", IN_BODY, FIELD_DURATION, .max = LOG_LEASE_MOST_MS,
                      .help = "the pause after the first failure, doubled with each (default: 1s)"},
    [PUSH_PARALLEL] = {"parallel", IN_BODY, FIELD_INT, .min = 1, .max = 10,
                       .help = "batches of a partition at a time, each of other keys (default: 1)"},
    [PUSH_BISECT] = {"bisect", IN_BODY, FIELD_BOOL,
                     .help = "a batch that fails is halved until the event is found (default: true)"},
    [PUSH_TIMEOUT] = {"timeout", IN_BODY, FIELD_DURATION, .min = 1, .max = LOG_LEASE_MOST_MS,
                      .help = "of a call, where it is shorter than the function's own"},
    [PUSH_PAUSED] = {"paused", IN_BODY, FIELD_BOOL, .help = "true: no call is begun"},
    [PUSH_REPLY] = FIELD_ANSWERED("log", FIELD_TEXT),
    FIELD_ANSWERED("name", FIELD_TEXT),
};

static const struct drive_setting log_drive_settings[] = {
    {"function", FIELD_THEN, DRIVE_NONE},   {"batch", FIELD_INT, 100},
    {"window", FIELD_DURATION, DRIVE_NONE}, {"attempts", FIELD_INT, 5},
    {"backoff", FIELD_DURATION, 1000},      {"parallel", FIELD_INT, 1},
    {"bisect", FIELD_BOOL, true},           {"timeout", FIELD_DURATION, DRIVE_NONE},
    {"paused", FIELD_BOOL, false},
};
DRIVE_KIND(log);

struct drive_thing log_drive_thing(struct flow *flow, struct slice group)
{
    return (struct drive_thing){.kind = &log_drive_kind, .name = flow_text(flow, LOG_NAME), .part = group};
}

static void tell_push(struct flow *flow, const struct drive_thing *thing, struct slice drive)
{
    flow_answer(flow, 200, "{'log':%s,'name':%s%A}", thing->name, thing->part,
                drive_members(flow, thing, drive));
}

static void push_begin(struct flow *flow)
{
    struct drive_thing thing = log_drive_thing(flow, flow_text(flow, LOG_GROUP));
    struct log_layout layout;
    drive_check(flow, &thing);
    log_layout_get(flow, &layout);
    tell_push(flow, &thing, drive_put(flow, &thing));
}

static void pushed_begin(struct flow *flow)
{
    struct drive_thing thing = log_drive_thing(flow, flow_text(flow, LOG_GROUP));
    struct log_layout layout;
    log_layout_get(flow, &layout);
    struct slice drive = drive_read(flow, &thing);
    if (!drive.data)
        task_refuse(flow, 404, "not-driven", "The server calls nothing for the consumer '%.*s'.",
                    SLICE_ARG(thing.part));
    tell_push(flow, &thing, drive);
}

/* ---- rows ---- */

static const struct field log_fields[] = {FIELD_LOG};
static const struct field group_fields[] = {FIELD_LOG, FIELD_LOG_GROUP};

/* clang-format off */
#define PUSHED                                                                                               \
    "{'log':'orders','name':'billing','function':'bill','batch':100,'attempts':5,'backoff':'1s','parallel':1,"  \
    "'bisect':true,'paused':false}"
const struct flow_row log_rows[] = {
    {"POST", "/v1/logs/{log}", log_append_begin, "Appends an event, or several.", FIELDS(log_append_fields),
     "{'partition':'3','sequence':17}", "log append key? data?"},
    {"POST", "/v1/logs/{log}/consumers/{name}/read", log_read_begin,
     "Leases a partition with unread events to a consumer and answers the next of them, if there are any.",
     FIELDS(log_read_fields),
     "{'partition':'3','fence':7,'until':'2026-11-15T03:42:36.250Z','position':16,'more':false,'events':"
     "[{'sequence':17,'key':'k','time':'2026-11-15T03:42:06.250Z','data':{}}]}", "log read owner? -> events"},
    {"POST", "/v1/logs/{log}/consumers/{name}/ack", log_ack_begin,
     "Events up to a number are done with; behind the last that was given the partition is free for others.",
     FIELDS(log_ack_fields), "{'partition':'3','position':17,'held':false}", "log ack partition fence sequence?"},
    {"POST", "/v1/logs/{log}/consumers/{name}/park", log_park_begin,
     "Sets an event aside with a reason; those before it are done with.", FIELDS(log_park_fields),
     "{'partition':'3','position':17,'held':false}", "log park partition fence sequence reason?"},
    {"POST", "/v1/logs/{log}/consumers/{name}/replay", log_replay_begin,
     "Reads again: all from a time on, a partition from a number on, or what was parked.",
     FIELDS(log_replay_fields), "{'replayed':3}", "log replay"},
    {"GET", "/v1/logs/{log}/consumers/{name}/lag", log_lag_begin, "What a group has not read yet.",
     FIELDS(log_lag_fields),
     "{'partitions':[{'partition':'3','lag':12,'position':5,'sequence':17}],'lag':12,'parked':0}", "log lag"},
    {"GET", "/v1/logs/{log}/consumers/{name}/parked", log_parked_begin, "What a group has set aside.",
     FIELDS(log_parked_fields),
     "{'parked':[{'partition':'3','sequence':17,'key':'k','reason':'bad','parked':'2026-11-15T03:42:06.250Z',"
     "'data':{}}]}", "log parked -> parked"},
    {"PUT", "/v1/logs/{log}/consumers/{name}", push_begin,
     "Has the server call a target with what a group has to read.", FIELDS(push_fields), PUSHED, "log push function?"},
    {"GET", "/v1/logs/{log}/consumers/{name}", pushed_begin, "What the server calls for a group, and how.",
     FIELDS(group_fields), PUSHED, "log pushed"},
    {"DELETE", "/v1/logs/{log}/consumers/{name}", log_leave_begin, "Removes a group: positions and parked events.",
     FIELDS(group_fields), "{'deleted':true}", "log leave"},
    {"PUT", "/v1/logs/{log}", put_begin, "Makes a log, or changes how long its events are kept and whether it scales.",
     FIELDS(put_fields), "{'log':'clicks','partitions':4}",
     "log put"},
    {"GET", "/v1/logs/{log}", log_get_begin, "The settings, the groups and the open partitions of a log.",
     FIELDS(log_get_fields),
     "{'log':'clicks','partitions':1,'created':'2026-11-15T03:42:06.250Z','version':0,'consumers':['mail'],'open':"
     "[{'partition':'0','from':'0000000000000000','to':'ffffffffffffffff','sequence':17}]}", "log show"},
    {"GET", "/v1/logs/{log}/partitions/{partition}", log_events_begin, "Events of a partition, without a group.",
     FIELDS(log_events_fields),
     "{'partition':'3','state':'OPEN','sequence':1,'events':"
     "[{'sequence':1,'key':'k','time':'2026-11-15T03:42:06.250Z','data':{}}]}", "log events -> events"},
    {"GET", "/v1/logs/{log}/keys/{key}", log_key_begin, "Events of one key in order, without a group.",
     FIELDS(log_key_fields),
     "{'key':'k','events':[{'partition':'3','sequence':1,'time':'2026-11-15T03:42:06.250Z','data':{}}],'position':1,"
     "'read':1}", "log key -> events"},
    {"POST", "/v1/logs/{log}/split", log_split_begin, "Seals a partition and goes on with two in its place.",
     FIELDS(log_split_fields), "{'partition':'3','children':['4','5']}", "log split partition"},
    {"POST", "/v1/logs/{log}/merge", log_merge_begin, "Seals two neighbours and goes on with one in their place.",
     FIELDS(log_merge_fields), "{'partitions':['4','5'],'child':'6'}", "log merge partitions..."},
    {"DELETE", "/v1/logs/{log}", log_delete_begin, "Deletes a log with all that belongs to it.", FIELDS(log_fields),
     "{'deleted':true}", "log rm"},
    {"GET", "/v1/logs", list_logs, "The logs, by name.", FIELDS(names_fields),
     "{'logs':[{'log':'clicks','created':'2026-11-15T03:42:06.250Z','keep':'7d'}]}", "log list -> logs"},
};
/* clang-format on */
ROW_COUNT(log);
