/* Reading a log as one of a group: a partition with unread events is leased, and the next of them are
 * answered; and how much is left to read.
 *
 * A partition can be leased when nobody else holds it and all that comes before it has been read: its
 * parents, where a split or a merge made it. The lease is one conditional write that raises the fence and
 * notes the last number that is given out; ack and park (log_ack.c) act on that fence only. Owners must tell
 * themselves apart: who asks again while it holds a partition may be given the same events again, by the same
 * fence. */
#include "calendar/calendar.h"
#include "pattern/log.h"

#define LEASE_USUAL_MS 30000
#define READ_MOST      1000
#define READ_USUAL     100
#define MARKS_WORTH    50 /* partitions that need not be looked at again, for a write */
#define HELD_PAUSE_MS  25 /* before looking again while others hold all that is unread */
#define LAG_MOST       1000

enum { READ_OWNER = LOG_GROUP + 1, READ_MAX, READ_WAIT, READ_FOR };

const struct field log_read_fields[] = {
    FIELD_LOG,
    FIELD_LOG_GROUP,
    [READ_OWNER] = {"owner", IN_BODY, FIELD_NAME, true, .help = "who reads; nobody else may use the same"},
    [READ_MAX] = {"max", IN_BODY, FIELD_INT, .min = 1, .max = READ_MOST,
                  .help = "at most so many events (default: 100)"},
    [READ_WAIT] = {"wait", IN_BODY, FIELD_DURATION, .max = LOG_WAIT_MOST_MS,
                   .help = "how long to wait for one (default: not at all)"},
    [READ_FOR] = {"for", IN_BODY, FIELD_DURATION, .min = 1, .max = LOG_LEASE_MOST_MS,
                  .help = "how long the partition is the reader's without an ack (default: 30s)"},
};

struct read {
    struct log_scan scan;  /* first */
    int64_t until_ms;      /* of the waiting */
    int64_t held_until_ms; /* the first end of a lease of others; INT64_MAX: they hold nothing */
    unsigned at;           /* of the candidates */
    int64_t given, fence, lease_until_ms;
};

static flow_step read_next, read_page, read_end, read_wait, read_held, read_look, read_parents, read_searched,
    read_leased, read_taken, read_skipped;

static struct log_candidate *candidate_of(struct flow *flow)
{
    struct read *read = flow->state;
    return &read->scan.candidates[read->at];
}

void log_read_begin(struct flow *flow)
{
    struct read *read = flow->state = arena_new(flow->arena, struct read);
    read->until_ms = flow->now_ms + flow_int_or(flow, READ_WAIT, 0);
    read_look(flow);
}

static void read_look(struct flow *flow)
{
    struct read *read = flow->state;
    read->held_until_ms = INT64_MAX;
    log_scan_begin(flow, true, read_page, read_end);
}

/* ---- choosing ---- */

static void read_page(struct flow *flow)
{
    struct read *read = flow->state;
    read->at = 0;
    read_next(flow);
}

static bool is_mine(struct flow *flow, const struct log_candidate *candidate)
{
    return slice_equal(item_text(flow->arena, candidate->item, "owner"), flow_text(flow, READ_OWNER));
}

static bool is_held(struct flow *flow, const struct log_candidate *candidate)
{
    return item_has(flow->arena, candidate->item, "owner") &&
           item_int(flow->arena, candidate->item, "until", 0) >= flow->now_ms;
}

/* Whoever had it on this turn has seen its parents read. */
static bool parents_are_known(struct flow *flow, const struct log_candidate *candidate)
{
    const struct read *read = flow->state;
    return !raw_count(flow->arena, candidate->parents) ||
           (candidate->item.data &&
            item_int(flow->arena, candidate->item, "turn", -1) == read->scan.group.turn);
}

static void ask_parents(struct flow *flow, const struct log_candidate *candidate)
{
    struct raw_look look;
    struct slice parent, group = log_group_key(flow), heads = SLICE(""), positions = SLICE("");
    raw_look_begin(&look, flow->arena, candidate->parents);
    while (raw_look_next(&look, NULL, &parent)) {
        int64_t number = item_int(flow->arena, raw_member(flow->arena, parent, "M"), "partition", 0);
        struct slice comma = heads.len ? SLICE(",") : SLICE("");
        heads = flow_compose(flow, "%A%A{'partition':%S}", heads, comma, log_key(flow, number));
        positions = flow_compose(flow, "%A%A{'group':%S,'partition':%S}", positions, comma, group,
                                 log_partition_text(flow, number));
    }
    flow_call(
        flow, read_parents, "BatchGetItem",
        "{'RequestItems':{%T:{'Keys':[%A],'ConsistentRead':true},%T:{'Keys':[%A],'ConsistentRead':true}}}",
        &log_heads, heads, &log_positions, positions);
}

/* The item of a partition among those of a reply. */
static struct slice item_find(struct flow *flow, const struct flow_table *table, struct slice name)
{
    struct raw_look look;
    struct slice item;
    raw_look_begin(&look, flow->arena, log_batch_items(flow, table));
    while (raw_look_next(&look, NULL, &item))
        if (slice_equal(item_text(flow->arena, item, "partition"), name)) return item;
    return SLICE_NONE;
}

static bool parent_is_read(struct flow *flow, int64_t partition, int64_t end)
{
    const struct read *read = flow->state;
    const struct log_group *group = &read->scan.group;
    struct slice item = item_find(flow, &log_positions, log_partition_text(flow, partition));
    int64_t position = log_position_of(flow, group, partition, item);
    if (position >= 0) return position >= end;
    struct slice head = item_find(flow, &log_heads, log_key(flow, partition));
    return item_int(flow->arena, head, "time", 0) < group->since_ms;
}

static void lease_or_search(struct flow *flow);

static void read_parents(struct flow *flow)
{
    struct read *read = flow->state;
    struct raw_look look;
    struct slice parent;
    bool are_read = raw_count(flow->arena, raw_member(flow->arena, flow->reply.body, "UnprocessedKeys")) == 0;
    raw_look_begin(&look, flow->arena, candidate_of(flow)->parents);
    while (are_read && raw_look_next(&look, NULL, &parent)) {
        struct slice map = raw_member(flow->arena, parent, "M");
        are_read = parent_is_read(flow, item_int(flow->arena, map, "partition", 0),
                                  item_int(flow->arena, map, "end", 0));
    }
    if (are_read) {
        lease_or_search(flow);
    } else {
        read->at++;
        read_next(flow);
    }
}

static void read_next(struct flow *flow)
{
    struct read *read = flow->state;
    for (; read->at < read->scan.count; read->at++) {
        struct log_candidate *candidate = candidate_of(flow);
        int64_t until_ms = item_int(flow->arena, candidate->item, "until", 0);
        if (!is_held(flow, candidate) || is_mine(flow, candidate)) break;
        if (until_ms < read->held_until_ms) read->held_until_ms = until_ms;
    }
    if (read->at == read->scan.count)
        log_scan_more(flow);
    else if (!parents_are_known(flow, candidate_of(flow)))
        ask_parents(flow, candidate_of(flow));
    else
        lease_or_search(flow);
}

/* ---- leasing ---- */

static void read_lease(struct flow *flow);

static void lease_or_search(struct flow *flow)
{
    struct log_candidate *candidate = candidate_of(flow);
    if (candidate->position < 0)
        log_search_begin(flow, candidate, read_searched);
    else
        read_lease(flow);
}

static void read_searched(struct flow *flow)
{
    struct read *read = flow->state;
    candidate_of(flow)->position = read->scan.search.low;
    read_lease(flow);
}

/* The same owner holds it already: it keeps the fence. Else the fence grows. */
static void read_lease(struct flow *flow)
{
    struct read *read = flow->state;
    const struct log_candidate *candidate = candidate_of(flow);
    struct slice item = candidate->item;
    bool keeps = is_held(flow, candidate) &&
                 item_int(flow->arena, item, "position", -1) == candidate->position;
    int64_t lease_ms = flow_int_or(flow, READ_FOR, LEASE_USUAL_MS),
            max = flow_int_or(flow, READ_MAX, READ_USUAL);
    bool has_position = item_has(flow->arena, item, "position");
    read->given = candidate->sequence - candidate->position < max ? candidate->sequence
                                                                  : candidate->position + max;
    struct slice seen = has_position ? SLICE("#position = :seen") : SLICE("attribute_not_exists(#position)");
    struct slice fence = keeps ? SLICE("#fence") : SLICE("if_not_exists(#fence, :zero) + :one");
    flow_call(flow, read_leased, "UpdateItem",
              "{'TableName':%T,'Key':{'group':%S,'partition':%S},"
              "'UpdateExpression':'SET #owner = :owner, #fence = %r, #until = :until, #lease = :lease, "
              "#given = :given, #position = :position, #generation = :generation, #turn = :turn',"
              "'ConditionExpression':'(attribute_not_exists(#owner) or #until < :now or #owner = :owner) and "
              "%r and (attribute_not_exists(#generation) or #generation <= "
              ":generation)%r',%#,'ExpressionAttributeValues':{':owner':%S%r,':until':%N,':lease':%N,"
              "':given':%N,':position':%N,':generation':%N,':turn':%N,':now':%N%r},'ReturnValues':'ALL_NEW',"
              "%O}",
              &log_positions, log_group_key(flow), log_partition_text(flow, candidate->partition), fence,
              seen, keeps ? SLICE(" and #fence = :fence") : SLICE(""), flow_text(flow, READ_OWNER),
              keeps ? flow_compose(flow, ",':fence':%N", item_int(flow->arena, item, "fence", 0))
                    : SLICE(",\":zero\":{\"N\":\"0\"},\":one\":{\"N\":\"1\"}"),
              flow->now_ms + lease_ms + flow->world->skew_ms, lease_ms, read->given, candidate->position,
              read->scan.group.generation, read->scan.group.turn, flow->now_ms,
              has_position ? flow_compose(flow, ",':seen':%A", item_attribute(flow->arena, item, "position"))
                           : SLICE(""));
}

/* The lease was taken by another, or by this owner: its call was repeated. */
static void lease_lost(struct flow *flow, struct slice item)
{
    struct read *read = flow->state;
    struct log_candidate *candidate = candidate_of(flow);
    int64_t until_ms = item_int(flow->arena, item, "until", INT64_MAX);
    candidate->item = item;
    candidate->position = log_position_of(flow, &read->scan.group, candidate->partition, item);
    if (is_held(flow, candidate) && is_mine(flow, candidate) && candidate->position >= 0 &&
        candidate->position < candidate->sequence) {
        flow_again(flow, read_lease);
        return;
    }
    if (until_ms < read->held_until_ms) read->held_until_ms = until_ms;
    read->at++;
    read_next(flow);
}

static void read_leased(struct flow *flow)
{
    struct read *read = flow->state;
    const struct log_candidate *candidate = candidate_of(flow);
    struct slice item = flow_item(flow);
    if (flow_failed(flow)) {
        lease_lost(flow, item);
        return;
    }
    read->fence = item_int(flow->arena, item, "fence", 0);
    read->lease_until_ms = item_int(flow->arena, item, "until", 0);
    flow_call(
        flow, read_taken, "Query",
        "{'TableName':%T,'KeyConditionExpression':'#partition = :partition and #sequence between :first and "
        ":last',%#,'ExpressionAttributeValues':{':partition':%S,':first':%N,':last':%N},"
        "'ConsistentRead':true}",
        &log_events, log_key(flow, candidate->partition), candidate->position + 1, read->given);
}

/* ---- answering ---- */

/* The answer is ready but for what comes behind it. */
static void read_tell(struct flow *flow)
{
    flow_finish(flow, 200);
}

/* All that was there has ended by its age: it counts as read. */
static void read_skip(struct flow *flow)
{
    struct read *read = flow->state;
    flow_call(
        flow, read_skipped, "UpdateItem",
        "{'TableName':%T,'Key':{'group':%S,'partition':%S},'UpdateExpression':'SET #position = :given REMOVE "
        "#owner','ConditionExpression':'#fence = :fence and #position < :given',%#,"
        "'ExpressionAttributeValues':{':given':%N,':fence':%N}}",
        &log_positions, log_group_key(flow), log_partition_text(flow, candidate_of(flow)->partition),
        read->given, read->fence);
}

static void read_skipped(struct flow *flow)
{
    flow_wake(flow, log_topic(flow));
    flow_again(flow, read_look);
}

static void read_taken(struct flow *flow)
{
    struct read *read = flow->state;
    const struct log_candidate *candidate = candidate_of(flow);
    struct raw_look look;
    struct slice item, items = flow_items(flow);
    bool first = true;
    if (!raw_count(flow->arena, items)) {
        read_skip(flow);
        return;
    }
    buf_slice(flow->body,
              flow_compose(flow, "{'partition':%s,'fence':%d,'until':%s,'position':%d,'more':%b,'events':[",
                           log_partition_text(flow, candidate->partition), read->fence,
                           moment_text(flow->arena, read->lease_until_ms - flow->world->skew_ms),
                           candidate->position,
                           (int)(read->given < candidate->sequence || flow_last_key(flow).data)));
    raw_look_begin(&look, flow->arena, items);
    for (; raw_look_next(&look, NULL, &item); first = false) {
        if (!first) buf_byte(flow->body, ',');
        log_put_event(flow, item);
    }
    buf_text(flow->body, "]}");
    log_scan_mark(flow, MARKS_WORTH, read_tell);
}

/* ---- nothing to read ---- */

static void read_end(struct flow *flow)
{
    log_scan_mark(flow, 1, read_wait);
}

/* Appends to partitions that others hold wake in vain: not too often. */
static void read_held(struct flow *flow)
{
    flow_pause(flow, HELD_PAUSE_MS + (int64_t)flow_random_below(flow, HELD_PAUSE_MS), read_look);
}

/* All readers of a group look at the same heads and positions. */
static void read_watch(struct flow *flow, int64_t until_ms)
{
    const struct read *read = flow->state;
    struct slice log = flow_text(flow, LOG_NAME);
    flow_watch(flow, log_topic(flow), flow_thing("log", log), until_ms,
               read->held_until_ms == INT64_MAX ? read_look : read_held);
    flow_watch_kin(flow, flow_topic("log readers", log, flow_text(flow, LOG_GROUP)));
}

static void read_wait(struct flow *flow)
{
    struct read *read = flow->state;
    int64_t held_ms = read->held_until_ms;
    if (flow->now_ms >= read->until_ms)
        flow_finish(flow, 204);
    else
        read_watch(flow, held_ms < read->until_ms ? held_ms + 1 : read->until_ms);
}

/* ---- lag ---- */

const struct field log_lag_fields[] = {FIELD_LOG, FIELD_LOG_GROUP};

struct lag {
    struct log_scan scan; /* first */
    unsigned at, count;
    int64_t total, parked;
    struct slice parked_key; /* where the counting of parked events goes on */
};

static flow_step lag_page, lag_next, lag_searched, lag_first, lag_end, lag_counted;

void log_lag_begin(struct flow *flow)
{
    flow->state = arena_new(flow->arena, struct lag);
    log_scan_begin(flow, false, lag_page, lag_end);
}

/* Of a partition whose first unread event has the number `first`. */
static void lag_put(struct flow *flow, const struct log_candidate *candidate, int64_t first)
{
    struct lag *lag = flow->state;
    struct slice owner = is_held(flow, candidate) ? item_text(flow->arena, candidate->item, "owner")
                                                  : SLICE_NONE;
    int64_t until_ms = item_int(flow->arena, candidate->item, "until", 0) - flow->world->skew_ms;
    int64_t unread = candidate->sequence - first + 1;
    lag->total += unread;
    if (!unread || lag->count >= LAG_MOST) return;
    buf_slice(flow->body, flow_compose(flow, "%A{'partition':%s,'lag':%d,'position':%d,'sequence':%d%A}",
                                       lag->count++ ? SLICE(",") : SLICE("{\"partitions\":["),
                                       log_partition_text(flow, candidate->partition), unread,
                                       candidate->position, candidate->sequence,
                                       owner.data ? flow_compose(flow, ",'owner':%s,'until':%s", owner,
                                                                 moment_text(flow->arena, until_ms))
                                                  : SLICE("")));
}

static void lag_page(struct flow *flow)
{
    struct lag *lag = flow->state;
    lag->at = 0;
    lag_next(flow);
}

static void lag_next(struct flow *flow)
{
    struct lag *lag = flow->state;
    for (; lag->at < lag->scan.count; lag->at++) {
        const struct log_candidate *candidate = &lag->scan.candidates[lag->at];
        if (candidate->position < 0) {
            log_search_begin(flow, candidate, lag_searched);
            return;
        }
        if (lag->scan.layout.keep_s && candidate->position < candidate->sequence) {
            flow_call(flow, lag_first, "Query",
                      "{'TableName':%T,'KeyConditionExpression':'#partition = :partition and #sequence > "
                      ":position','ProjectionExpression':'#sequence',%#,"
                      "'ExpressionAttributeValues':{':partition':%S,':position':%N},'Limit':1}",
                      &log_events, log_key(flow, candidate->partition), candidate->position);
            return;
        }
        lag_put(flow, candidate, candidate->position + 1);
    }
    log_scan_more(flow);
}

static void lag_searched(struct flow *flow)
{
    struct lag *lag = flow->state;
    lag->scan.candidates[lag->at].position = lag->scan.search.low;
    lag_next(flow);
}

/* Events that have ended by their age are not there to be read. */
static void lag_first(struct flow *flow)
{
    struct lag *lag = flow->state;
    const struct log_candidate *candidate = &lag->scan.candidates[lag->at++];
    struct raw_look look;
    struct slice item;
    int64_t first = candidate->sequence + 1;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    if (raw_look_next(&look, NULL, &item)) first = item_int(flow->arena, item, "sequence", first);
    /* it may be newer than the head that was read */
    lag_put(flow, candidate, first <= candidate->sequence ? first : candidate->sequence + 1);
    lag_next(flow);
}

static void lag_end(struct flow *flow)
{
    const struct lag *lag = flow->state;
    flow_call(flow, lag_counted, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#group = "
              ":group',%#,'ExpressionAttributeValues':{':group':%S},"
              "'Select':'COUNT'%A}",
              &log_parked, log_group_key(flow),
              lag->parked_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", lag->parked_key)
                                   : SLICE(""));
}

static void lag_counted(struct flow *flow)
{
    struct lag *lag = flow->state;
    int64_t count = 0;
    if (raw_int(raw_text(flow->arena, raw_member(flow->arena, flow->reply.body, "Count")), &count))
        lag->parked += count;
    lag->parked_key = flow_last_key(flow);
    if (lag->parked_key.data) {
        lag_end(flow);
        return;
    }
    if (!lag->count) buf_text(flow->body, "{\"partitions\":[");
    buf_slice(flow->body, flow_compose(flow, "],'lag':%d,'parked':%d}", lag->total, lag->parked));
    flow_finish(flow, 200);
}
