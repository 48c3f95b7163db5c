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

#define READ_MOST     1000
#define READ_USUAL    100
#define MARKS_WORTH   50 /* partitions that need not be looked at again, for a write */
#define HELD_PAUSE_MS 25 /* before looking again while others hold all that is unread */
#define READ_BYTES     1000000 /* of the answer: more is for the next read */
#define LAG_MOST      1000

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

/* ---- parents ---- */

static bool parents_are_read(struct flow *flow, const struct log_layout *layout, const struct log_group *group,
                             const struct log_candidate *candidate)
{
    unsigned count = (unsigned)raw_count(flow->arena, candidate->parents), at = 0;
    int64_t *partitions = arena_array(flow->arena, int64_t, count);
    int64_t *ends = arena_array(flow->arena, int64_t, count);
    struct slice *heads = arena_array(flow->arena, struct slice, count);
    struct slice *positions = arena_array(flow->arena, struct slice, count);
    struct raw_look look;
    struct slice parent;
    /* whoever had it on this turn has seen its parents read */
    if (!count || (candidate->item.data && item_int(flow->arena, candidate->item, "turn", -1) == group->turn))
        return true;
    raw_look_begin(&look, flow->arena, candidate->parents);
    for (; raw_look_next(&look, NULL, &parent); at++) {
        struct slice map = raw_member(flow->arena, parent, "M");
        partitions[at] = item_int(flow->arena, map, "partition", 0);
        ends[at] = item_int(flow->arena, map, "end", 0);
    }
    log_compare_get(flow, layout, partitions, count, true, heads, positions);
    for (unsigned i = 0; i < count; i++) {
        int64_t position = log_position_of(flow, group, partitions[i], positions[i]);
        if (position < 0 ? log_end_get(flow, layout, partitions[i]).time_ms >= group->since_ms : position < ends[i])
            return false;
    }
    return true;
}

/* ---- leasing ---- */

struct lease {
    int64_t given;     /* the last number of it */
    struct slice item; /* the position's, as it was written */
};

/* One conditional write on the position that was seen. An owner that holds it already keeps its fence. */
static bool lease_write(struct flow *flow, const struct log_group *group,
                        const struct log_candidate *candidate, struct lease *lease)
{
    static const char set[] =
        ", #lease = :lease, #given = :given, #position = :position, #generation = :generation, "
        "#turn = :turn";
    struct slice item = candidate->item, owner = flow_text(flow, READ_OWNER);
    struct slice seen = item_attribute(flow->arena, item, "position");
    struct held held = log_position(flow, candidate->partition);
    int64_t lease_ms = flow_int_or(flow, READ_FOR, LOG_LEASE_USUAL_MS);
    int64_t most = flow_int_or(flow, READ_MAX, READ_USUAL),
            unread = candidate->sequence - candidate->position;
    bool is_leased;
    lease->given = candidate->position + (unread < most ? unread : most);
    struct hold_also also = {
        .set = slice_of(set),
        .condition = flow_compose(
            flow, " and %r and (attribute_not_exists(#generation) or #generation <= :generation)",
            seen.data ? SLICE("#position = :seen") : SLICE("attribute_not_exists(#position)")),
        .values = flow_compose(flow, ",':lease':%N,':given':%N,':position':%N,':generation':%N,':turn':%N%r",
                               lease_ms, lease->given, candidate->position, group->generation, group->turn,
                               seen.data ? flow_compose(flow, ",':seen':%A", seen) : SLICE(""))};
    if (hold_state(flow, item, owner) == HOLD_IS_MINE &&
        attribute_int(flow->arena, seen, -1) == candidate->position) {
        also.values = flow_compose(flow, "%A,':until':%N", also.values, hold_until_ms(flow, lease_ms));
        is_leased = hold_act(flow, &held, hold_of(flow, item).fence,
                             arena_printf(flow->arena, "SET #until = :until%s", set), &also);
    } else {
        is_leased = hold_take(flow, &held, owner, lease_ms, HOLD_FREE_OR_MINE, &also);
    }
    lease->item = flow_item(flow);
    return is_leased;
}

/* False: somebody else holds it, or has read it. */
static bool lease_partition(struct flow *flow, const struct log_layout *layout, const struct log_group *group,
                            struct log_candidate *candidate, struct lease *lease)
{
    for (;;) {
        if (candidate->position < 0)
            candidate->position = log_position_before(flow, layout, candidate->partition, candidate->sequence,
                                                      group->since_ms);
        if (lease_write(flow, group, candidate, lease)) return true;
        candidate->item = lease->item;
        candidate->position = log_position_of(flow, group, candidate->partition, candidate->item);
        /* where this owner got it, by a call that was repeated, it goes on with that */
        if (hold_state(flow, candidate->item, flow_text(flow, READ_OWNER)) != HOLD_IS_MINE ||
            candidate->position < 0 || candidate->position >= candidate->sequence)
            return false;
        task_again(flow);
    }
}

/* ---- reading ---- */

/* Puts the events of a partition that was leased into the answer. False: all that was there has ended by its
 * age, counts as read now, and the partition is free. */
static bool read_events(struct flow *flow, const struct log_layout *layout, const struct log_candidate *candidate,
                        const struct lease *lease)
{
    size_t start = flow->body->len;
    struct log_reader reader = {.layout = layout,
                                .partition = candidate->partition,
                                .from = candidate->position + 1,
                                .most = lease->given - candidate->position};
    while (flow->body->len - start < READ_BYTES && log_read_event(flow, &reader) && reader.sequence <= lease->given) {
        if (flow->body->len > start) buf_byte(flow->body, ',');
        log_reader_put(flow, &reader);
    }
    struct slice events = arena_copy(flow->arena, slice_from(buf_view(flow->body), start));
    flow->body->len = start;
    if (events.len) {
        flow_put(flow, flow->body, "{'partition':%s,'fence':%d,'until':%s,'position':%d,'more':%b,'events':[%A]}",
                 log_partition_text(flow, candidate->partition), hold_of(flow, lease->item).fence,
                 hold_until_text(flow, lease->item), candidate->position, (int)(reader.sequence < candidate->sequence),
                 events);
        return true;
    }
    struct held held = log_position(flow, candidate->partition);
    struct hold_also also = {.condition = SLICE(" and #position < :given"),
                             .values = flow_compose(flow, ",':given':%N", lease->given)};
    hold_act(flow, &held, hold_of(flow, lease->item).fence, SLICE("SET #position = :given REMOVE #owner"),
             &also);
    flow_wake(flow, log_topic(flow));
    return false;
}

/* The first candidate that can be leased. False: there is none; *held_until_ms is the first end of others'
 * leases, INT64_MAX where they hold nothing. */
static bool find_partition(struct flow *flow, struct log_scan *scan, struct log_candidate **found,
                           struct lease *lease, int64_t *held_until_ms)
{
    *held_until_ms = INT64_MAX;
    while (log_scan_page(flow, scan)) {
        for (unsigned i = 0; i < scan->count; i++) {
            struct log_candidate *candidate = *found = &scan->candidates[i];
            if (hold_state(flow, candidate->item, flow_text(flow, READ_OWNER)) != HOLD_IS_ANOTHERS) {
                if (!parents_are_read(flow, &scan->layout, &scan->group, candidate)) continue;
                if (lease_partition(flow, &scan->layout, &scan->group, candidate, lease)) return true;
            }
            int64_t until_ms = item_int(flow->arena, candidate->item, "until", INT64_MAX);
            if (until_ms < *held_until_ms) *held_until_ms = until_ms;
        }
    }
    return false;
}

void log_read_begin(struct flow *flow)
{
    struct log_scan *scan = arena_new(flow->arena, struct log_scan);
    int64_t until_ms = flow->now_ms + flow_int_or(flow, READ_WAIT, 0), held_until_ms;
    struct slice log = flow_text(flow, LOG_NAME);
    for (;;) {
        struct log_candidate *candidate;
        struct lease lease;
        flow_look(flow);
        log_scan_begin(flow, scan, true);
        if (find_partition(flow, scan, &candidate, &lease, &held_until_ms)) {
            if (read_events(flow, &scan->layout, candidate, &lease)) {
                log_scan_mark(flow, scan, MARKS_WORTH);
                flow_finish(flow, 200);
                return;
            }
            task_again(flow);
            continue;
        }
        log_scan_mark(flow, scan, 1);
        if (flow->now_ms >= until_ms) {
            flow_finish(flow, 204);
            return;
        }
        /* all readers of a group look at the same heads and positions */
        task_watch_as(flow, log_topic(flow), flow_thing("log", log),
                      flow_topic("log readers", log, flow_text(flow, LOG_GROUP)), INT64_MAX,
                      held_until_ms < until_ms ? held_until_ms + 1 : until_ms);
        /* appends to partitions that others hold wake in vain: not too often */
        if (held_until_ms != INT64_MAX)
            task_sleep(flow, HELD_PAUSE_MS + (int64_t)flow_random_below(flow, HELD_PAUSE_MS));
    }
}

/* ---- lag ---- */

const struct field log_lag_fields[] = {FIELD_LOG, FIELD_LOG_GROUP};

/* Events that have ended by their age are not there to be read. */
static int64_t first_unread(struct flow *flow, const struct log_scan *scan,
                            const struct log_candidate *candidate)
{
    int64_t first = candidate->position + 1;
    if (!scan->layout.keep_s || first > candidate->sequence) return first;
    struct log_reader event = {
        .layout = &scan->layout, .partition = candidate->partition, .from = candidate->position + 1, .most = 1};
    first = log_read_event(flow, &event) ? event.sequence : candidate->sequence + 1;
    /* it may be newer than the head that was read */
    return first <= candidate->sequence ? first : candidate->sequence + 1;
}

static int64_t count_parked(struct flow *flow)
{
    int64_t total = 0, count;
    struct slice start = SLICE_NONE;
    do {
        task_call(flow, "Query",
                  "{'TableName':%T,'KeyConditionExpression':'#group = :group',%#,"
                  "'ExpressionAttributeValues':{':group':%S},'Select':'COUNT'%A}",
                  &log_parked, log_group_key(flow),
                  start.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", start) : SLICE(""));
        if (raw_int(raw_text(flow->arena, raw_member(flow->arena, flow->reply.body, "Count")), &count))
            total += count;
        start = flow_last_key(flow);
    } while (start.data);
    return total;
}

void log_lag_begin(struct flow *flow)
{
    struct log_scan *scan = arena_new(flow->arena, struct log_scan);
    int64_t total = 0;
    unsigned shown = 0;
    log_scan_begin(flow, scan, false);
    buf_text(flow->body, "{\"partitions\":[");
    while (log_scan_page(flow, scan)) {
        for (unsigned i = 0; i < scan->count; i++) {
            struct log_candidate *at = &scan->candidates[i];
            if (at->position < 0)
                at->position = log_position_before(flow, &scan->layout, at->partition, at->sequence,
                                                   scan->group.since_ms);
            int64_t unread = at->sequence - first_unread(flow, scan, at) + 1;
            total += unread;
            if (!unread || shown >= LAG_MOST) continue;
            flow_put(flow, flow->body, "%A{'partition':%s,'lag':%d,'position':%d,'sequence':%d",
                     shown++ ? SLICE(",") : SLICE(""), log_partition_text(flow, at->partition), unread,
                     at->position, at->sequence);
            if (hold_is_on(flow, at->item))
                flow_put(flow, flow->body, ",'owner':%s,'until':%s", hold_of(flow, at->item).owner,
                         hold_until_text(flow, at->item));
            buf_byte(flow->body, '}');
        }
    }
    int64_t parked = count_parked(flow);
    flow_put(flow, flow->body, "],'lag':%d,'parked':%d}", total, parked);
    flow_finish(flow, 200);
}
