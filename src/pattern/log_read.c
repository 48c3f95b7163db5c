/* Reading a log as one of a group: the next events of a partition are read, then the partition is leased, and they are
 * answered; and how much is left to read.
 *
 * A partition can be leased when nobody else holds it and all that comes before it has been read: its
 * parents, where a split or a merge made it. The lease is one conditional write on the position that the events were
 * read from. It raises the fence, notes the last number that is given out, and where the one behind it stands; ack and
 * park (log_ack.c) act on that fence only. Owners must tell themselves apart: who asks again while it holds a partition
 * may be given the same events again, by the same fence. */
#include "calendar/calendar.h"
#include "pattern/log.h"

#define READ_MOST     1000
#define READ_USUAL    100
#define MARKS_WORTH   50      /* partitions that need not be looked at again, for a write */
#define HELD_PAUSE_MS 25      /* before looking again while others hold all that is unread */
#define READ_BYTES    1000000 /* of the answer: more is for the next read */
#define LAG_MOST      1000

enum { READ_OWNER = LOG_GROUP + 1, READ_MAX, READ_WAIT, READ_FOR, READ_PARTITION };

const struct field log_read_fields[] = {
    FIELD_LOG,
    FIELD_LOG_GROUP,
    [READ_OWNER] = {"owner", IN_BODY, FIELD_NAME, true, .help = "who reads; nobody else may use the same"},
    [READ_MAX] = {"max", IN_BODY, FIELD_INT, .min = 1, .max = READ_MOST,
                  .help = "at most so many events (default: 100)"},
    [READ_WAIT] = FIELD_WAIT(IN_BODY, "how long to wait for one (default: not at all)"),
    [READ_FOR] = FIELD_FOR(LOG_LEASE_MOST_MS,
                           "how long the partition is the reader's without an ack (default: 30s)"),
    [READ_PARTITION] = {"partition", IN_BODY, FIELD_NAME, .help = "only of this one (default: of any)"},
};

/* ---- parents ---- */

/* Up to its end. Events that have ended by their age, or are older than those that the group begins with, are not
 * waited for: nobody will be given them. */
static bool parent_is_read(struct flow *flow, const struct log_scan *scan, int64_t partition, int64_t end,
                           struct slice item)
{
    struct log_reader next = {.layout = &scan->layout, .partition = partition, .most = 1};
    int64_t position = log_position_of(flow, &scan->group, partition, item);
    if (position >= end) return true;
    if (position >= 0 && !scan->layout.keep_s) return false;
    if (position < 0) position = log_position_before(flow, &scan->layout, partition, scan->group.since_ms);
    next.from = position + 1;
    return !log_read_event(flow, &next);
}

static bool parents_are_read(struct flow *flow, const struct log_scan *scan,
                             const struct log_candidate *candidate)
{
    unsigned count = (unsigned)raw_count(flow->arena, candidate->parents), at = 0;
    int64_t *partitions = arena_array(flow->arena, int64_t, count);
    int64_t *ends = arena_array(flow->arena, int64_t, count);
    struct slice *items = arena_array(flow->arena, struct slice, count), parent;
    /* whoever had it on this turn has seen its parents read */
    if (!count ||
        (candidate->item.data && item_int(flow->arena, candidate->item, "turn", -1) == scan->group.turn))
        return true;
    raw_each (flow->arena, candidate->parents, &parent) {
        struct slice map = raw_member(flow->arena, parent, "M");
        partitions[at] = item_int(flow->arena, map, "partition", 0);
        ends[at++] = item_int(flow->arena, map, "end", 0);
    }
    log_positions_get(flow, partitions, count, items);
    for (unsigned i = 0; i < count; i++)
        if (!parent_is_read(flow, scan, partitions[i], ends[i], items[i])) return false;
    return true;
}

/* ---- events ---- */

struct given {
    struct slice events; /* as JSON; empty: there are none */
    bool has_more;       /* than these */
    int64_t last;        /* the number of the last one, */
    int64_t page;        /* ... and where the next one stands, or will stand */
    struct slice item;   /* the position's, as the lease has written it */
};

static void read_events(struct flow *flow, const struct log_layout *layout,
                        const struct log_candidate *candidate, struct given *given)
{
    size_t start = flow->body->len;
    int64_t left = flow_int_or(flow, READ_MAX, READ_USUAL);
    bool page_is_known = item_int(flow->arena, candidate->item, "given", -1) == candidate->position;
    struct log_reader reader = {.layout = layout,
                                .partition = candidate->partition,
                                .from = candidate->position + 1,
                                .page = page_is_known ? item_int(flow->arena, candidate->item, "page", 0) : 0,
                                .most = left + 1};
    *given = (struct given){0};
    buf_byte(flow->body, '[');
    while (log_read_event(flow, &reader)) {
        given->has_more = !left-- || flow->body->len - start >= READ_BYTES;
        if (given->has_more) break;
        log_reader_put(flow, &reader);
        given->last = reader.sequence;
        given->page = reader.page_of;
    }
    given->events = arena_copy(flow->arena, slice_from(buf_view(flow->body), start + 1));
    flow->body->len = start;
}

/* One conditional write on the position that was seen. An owner that holds it already keeps its fence. */
static bool lease_write(struct flow *flow, const struct log_group *group,
                        const struct log_candidate *candidate, struct given *given)
{
    struct slice item = candidate->item, owner = flow_text(flow, READ_OWNER);
    struct slice seen = item_attribute(flow->arena, item, "position");
    int64_t lease_ms = flow_int_or(flow, READ_FOR, LOG_LEASE_USUAL_MS);
    bool keeps_fence = hold_state(flow, item, owner) == HOLD_IS_MINE &&
                       attribute_int(flow->arena, seen, -1) == candidate->position;
    struct edit edit = {0};
    if (keeps_fence) {
        edit_set(flow, &edit, "until", "%N", hold_until_ms(flow, lease_ms));
        edit_if(flow, &edit, HOLD_ACT, "':fence':%N", hold_of(flow, item).fence);
    } else {
        hold_take(flow, &edit, owner, lease_ms, HOLD_FREE_OR_MINE);
    }
    edit_put(flow, &edit, EDIT_SET,
             "#lease = :lease, #given = :given, #page = :page, #position = :position, "
             "#generation = :generation, #turn = :turn",
             "':lease':%N,':given':%N,':page':%N,':position':%N,':generation':%N,':turn':%N", lease_ms,
             given->last, given->page, candidate->position, group->generation, group->turn);
    edit_if(flow, &edit, "(attribute_not_exists(#generation) or #generation <= :generation)", NULL);
    if (seen.data)
        edit_if(flow, &edit, "#position = :seen", "':seen':%A", seen);
    else
        edit_if(flow, &edit, "attribute_not_exists(#position)", NULL);
    bool is_leased = edit_write(flow, &edit, &log_positions, log_position(flow, candidate->partition));
    given->item = flow_item(flow);
    return is_leased;
}

/* Reads what is next and leases the partition. False: another holds it or has read it, or there is nothing to read. */
static bool take_partition(struct flow *flow, const struct log_scan *scan, struct log_candidate *candidate,
                           struct given *given)
{
    const struct log_group *group = &scan->group;
    struct slice owner = flow_text(flow, READ_OWNER);
    if (hold_state(flow, candidate->item, owner) == HOLD_IS_ANOTHERS) return false;
    for (;; task_again(flow)) {
        if (candidate->position < 0)
            candidate->position = log_position_before(flow, &scan->layout, candidate->partition,
                                                      group->since_ms);
        read_events(flow, &scan->layout, candidate, given);
        if (!given->events.len) {
            candidate->news = LOG_READ;
            return false;
        }
        if (lease_write(flow, group, candidate, given)) return true;
        candidate->item = given->item;
        candidate->position = log_position_of(flow, group, candidate->partition, candidate->item);
        /* where this owner got it, by a call that was repeated, it goes on with that */
        if (hold_state(flow, candidate->item, owner) != HOLD_IS_MINE) return false;
    }
}

/* ---- reading ---- */

/* The first of the page's candidates that can be had; NULL: none. Those that are tried are not tried again. */
static struct log_candidate *take_from_page(struct flow *flow, struct log_scan *scan, bool *tried,
                                            struct given *given, int64_t *held_until_ms)
{
    int64_t only = LOG_PARKED;
    if (flow_given(flow, READ_PARTITION))
        only = log_partition_of(flow, flow_text(flow, READ_PARTITION), true);
    for (unsigned i = 0; i < scan->count; i++) {
        struct log_candidate *candidate = &scan->candidates[i];
        if (candidate->news != LOG_UNREAD || tried[i]) continue;
        if (flow_given(flow, READ_PARTITION) && candidate->partition != only) continue;
        tried[i] = true;
        if (!parents_are_read(flow, scan, candidate)) continue;
        if (take_partition(flow, scan, candidate, given)) return candidate;
        int64_t until_ms = item_int(flow->arena, candidate->item, "until", INT64_MAX);
        if (candidate->news == LOG_UNREAD && until_ms < *held_until_ms) *held_until_ms = until_ms;
    }
    return NULL;
}

/* *held_until_ms: the first end of others' leases, INT64_MAX where they hold nothing. */
static struct log_candidate *take_any(struct flow *flow, struct log_scan *scan, struct given *given,
                                      int64_t *held_until_ms)
{
    struct log_candidate *found = NULL;
    *held_until_ms = INT64_MAX;
    while (!found && log_scan_page(flow, scan)) {
        bool tried[LOG_PAGE] = {0};
        found = take_from_page(flow, scan, tried, given, held_until_ms);
        if (!found) log_scan_check(flow, scan);
        if (!found) found = take_from_page(flow, scan, tried, given, held_until_ms);
    }
    return found;
}

void log_read_begin(struct flow *flow)
{
    struct log_scan *scan = arena_new(flow->arena, struct log_scan);
    int64_t until_ms = flow->now_ms + flow_int_or(flow, READ_WAIT, 0), held_until_ms;
    struct slice log = flow_text(flow, LOG_NAME);
    for (;;) {
        struct given given;
        flow_look(flow);
        log_scan_begin(flow, scan, true);
        const struct log_candidate *found = take_any(flow, scan, &given, &held_until_ms);
        if (found) {
            flow_put(flow, flow->body,
                     "{'partition':%s,'fence':%d,'until':%s,'position':%d,'more':%b,'events':[%A]}",
                     log_partition_text(flow, found->partition), hold_of(flow, given.item).fence,
                     hold_until_text(flow, given.item), found->position, (int)given.has_more, given.events);
            log_scan_mark(flow, scan, MARKS_WORTH);
            flow_finish(flow, 200);
            return;
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

/* Events that have ended by their age are not there to be read, and numbers may begin behind those of parents. */
static int64_t first_unread(struct flow *flow, const struct log_scan *scan,
                            const struct log_candidate *candidate)
{
    struct log_reader event = {.layout = &scan->layout,
                               .partition = candidate->partition,
                               .from = candidate->position + 1,
                               .most = 1};
    if (!scan->layout.keep_s && !scan->layout.version) return event.from;
    return log_read_event(flow, &event) ? event.sequence : INT64_MAX;
}

static int64_t count_parked(struct flow *flow)
{
    int64_t total = 0, count;
    struct slice start = SLICE_NONE;
    do {
        task_query(flow, "#group = :group", ",'Select':'COUNT'" READ_FROM, "':group':%S", &log_parked, start,
                   log_group_key(flow));
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
        log_scan_check(flow, scan);
        for (unsigned i = 0; i < scan->count; i++) {
            struct log_candidate *at = &scan->candidates[i];
            if (at->news == LOG_READ) continue;
            if (at->position < 0)
                at->position = log_position_before(flow, &scan->layout, at->partition, scan->group.since_ms);
            int64_t first = first_unread(flow, scan, at);
            int64_t last = log_last_number(flow, &scan->layout, at->partition);
            if (last < first) continue;
            total += last - first + 1;
            if (shown++ >= LAG_MOST) continue;
            flow_put(flow, flow->body, "%,{'partition':%s,'lag':%d,'position':%d,'sequence':%d",
                     log_partition_text(flow, at->partition), last - first + 1, at->position, last);
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
