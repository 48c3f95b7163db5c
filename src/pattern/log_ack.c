/* What a consumer says of the events that it was given: done with, set aside. And reading again.
 *
 * All of it acts on the fence of the lease, so whoever lost its partition moves nothing. An ack of the last
 * number that was given frees the partition; one of an earlier number keeps it, for the lease's time from
 * now. To park an event is an intent (intent.h) of the position: it moves behind the event and says that this is to
 * be put among the parked ones. So an event is acked or parked, never both. Where the one who parks has died, the
 * next walk through what is unread (log_scan.c) meets the redo: until it is done, the partition does not count as read.
 *
 * A replay from a time on is one write: the group's generation grows, positions of older ones count no more,
 * and where a partition begins is found when it is read. Parked events that are to be read again are moved to
 * a partition of the group's own, "parked", which is read like the others. */
#include "base/limits.h"
#include "calendar/calendar.h"
#include "pattern/intent.h"
#include "pattern/log.h"

#define REASON_BYTES 4096

/* clang-format off */
enum { ACT_PARTITION = LOG_GROUP + 1, ACT_FENCE, ACT_SEQUENCE, ACT_MORE };
#define FIELDS_OF_ACT(sequence_is_required, sequence_help)                                                   \
    FIELD_LOG, FIELD_LOG_GROUP,                                                                              \
    [ACT_PARTITION] = {"partition", IN_BODY, FIELD_NAME, true, .help = "of the read"},                       \
    [ACT_FENCE] = {"fence", IN_BODY, FIELD_INT, true, .min = 1, .max = LOG_NUMBER_MOST, .help = "of the read"}, \
    [ACT_SEQUENCE] = {"sequence", IN_BODY, FIELD_INT, sequence_is_required, .min = 1, .max = LOG_NUMBER_MOST, \
                      .help = sequence_help}
/* clang-format on */

static int64_t lease_of(struct flow *flow, struct slice item)
{
    return item_int(flow->arena, item, "lease", LOG_LEASE_USUAL_MS);
}

static void tell_position(struct flow *flow, struct slice item)
{
    bool is_held = item_has(flow->arena, item, "owner");
    if (!is_held) flow_wake(flow, log_topic(flow));
    flow_answer(flow, 200, "{'partition':%s,'position':%d,'held':%b%[%?,'until':%s%]}",
                flow_text(flow, ACT_PARTITION), item_int(flow->arena, item, "position", 0), (int)is_held,
                is_held, hold_until_text(flow, item));
}

/* Where the fence does not fit, or the number was not given, the task ends. */
static void refuse_unfit(struct flow *flow, struct slice item)
{
    int64_t given = item_int(flow->arena, item, "given", 0),
            position = item_int(flow->arena, item, "position", 0);
    struct dynamo_hold hold = hold_of(flow, item);
    struct slice members = flow_compose(flow, "'fence':%d,'position':%d", hold.fence, position);
    if (!hold.fence) task_refuse(flow, 409, "not-read", "The group has not read from this partition.");
    hold_refuse_fence(flow, item, flow_int(flow, ACT_FENCE), members, "partition", "read");
    if (flow_int(flow, ACT_SEQUENCE) > given)
        task_refuse_with(flow, flow_compose(flow, "'given':%d", given), 409, "not-given",
                         "The last number that was given is %lld.", (long long)given);
}

/* ---- ack ---- */

const struct field log_ack_fields[] = {
    FIELDS_OF_ACT(false, "all up to this number is done with; not given: only the lease is renewed"),
    [ACT_MORE] = FIELD_FOR(LOG_LEASE_MOST_MS,
                           "how long the partition stays the reader's (default: as long as before)"),
};

static bool renew(struct flow *flow, struct slice position)
{
    return edit_item(flow, &log_positions, position,
                     flow_given(flow, ACT_MORE) ? SLICE("SET #until = :time")
                                                : SLICE("SET #until = :time + #lease"),
                     SLICE(HOLD_ACT), "':fence':%N,':time':%N", flow_int(flow, ACT_FENCE),
                     hold_until_ms(flow, flow_int_or(flow, ACT_MORE, 0)));
}

/* In the hope that it is the last that was given. Else the lease is kept. */
static bool ack_up_to(struct flow *flow, struct slice position, int64_t sequence)
{
    int64_t fence = flow_int(flow, ACT_FENCE);
    if (edit_item(flow, &log_positions, position,
                  SLICE("SET #position = :sequence, #until = :now REMOVE #owner"),
                  SLICE(HOLD_ACT " and #given = :sequence and #position < :sequence"),
                  "':fence':%N,':sequence':%N,':now':%N", fence, sequence, flow->now_ms))
        return true;
    struct slice item = flow_item(flow);
    if (item_int(flow->arena, item, "position", 0) >= sequence ||
        item_int(flow->arena, item, "given", 0) <= sequence)
        return false;
    return edit_item(flow, &log_positions, position, SLICE("SET #position = :sequence, #until = :until"),
                     SLICE(HOLD_ACT " and #given > :sequence and #position < :sequence"),
                     "':fence':%N,':sequence':%N,':until':%N", fence, sequence,
                     hold_until_ms(flow, flow_int_or(flow, ACT_MORE, lease_of(flow, item))));
}

void log_ack_begin(struct flow *flow)
{
    int64_t sequence = flow_int_or(flow, ACT_SEQUENCE, 0);
    struct slice key = log_position(flow, log_partition_of(flow, flow_text(flow, ACT_PARTITION), true));
    bool is_done = sequence ? ack_up_to(flow, key, sequence) : renew(flow, key);
    struct slice item = flow_item(flow);
    if (!is_done) refuse_unfit(flow, item);
    if (is_done || (sequence && item_int(flow->arena, item, "position", 0) >= sequence)) /* or said before */
        tell_position(flow, item);
    else
        flow_refuse(flow, 409, "not-held", "All that was given is acked: the partition is free.");
}

/* ---- park ---- */

const struct field log_park_fields[] = {
    FIELDS_OF_ACT(true, "the event; those before it are done with"),
    [ACT_MORE] = {"reason", IN_BODY, FIELD_TEXT, .max = REASON_BYTES, .help = "why"},
};

static bool event_read(struct flow *flow, struct log_reader *reader, const struct log_layout *layout,
                       int64_t partition, int64_t sequence)
{
    *reader = (struct log_reader){.layout = layout, .partition = partition, .from = sequence, .most = 1};
    return log_read_event(flow, reader) && reader->sequence == sequence;
}

/* Puts the event of a position's redo where parked ones are; the log's layout is the flow's state. An event that was
 * parked before keeps its first place. The item is of this parking alone: one that comes late, when it was replayed
 * and removed, is recognised as replayed by the next replay. */
static void park_carry_out(struct flow *flow, struct slice position)
{
    struct slice redo = item_content(flow->arena, position, "redo");
    struct slice place = item_text(flow->arena, position, "partition");
    int64_t partition = log_partition_of(flow, place, true),
            sequence = item_int(flow->arena, redo, "sequence", 0);
    struct log_reader event;
    if (!event_read(flow, &event, flow->state, partition, sequence)) return; /* it has ended by its age */
    struct slice origin = attribute_content(flow->arena, event.origin);
    if (origin.data) {
        place = item_text(flow->arena, origin, "partition");
        sequence = item_int(flow->arena, origin, "sequence", 0);
    }
    task_call(
        flow, "PutItem",
        "{'TableName':%T,'Item':{%A,%A,'event':%S,'partition':%S,'sequence':%N,'key':%S,'time':%N,'data':%A},"
        "'ConditionExpression':'attribute_not_exists(#event)',%#}",
        &log_parked, item_members(flow->arena, position, "group"),
        item_members(flow->arena, redo, "reason parked"),
        arena_printf(flow->arena, "%.*s/%019lld/%.*s", SLICE_ARG(place), (long long)sequence,
                     SLICE_ARG(item_text(flow->arena, position, "intent"))),
        place, sequence, event.key, event.time_ms, event.data);
}

static struct intent park_intent(struct flow *flow, const struct log_layout *layout, int64_t partition)
{
    struct log_layout *kept = flow->state = arena_new(flow->arena, struct log_layout);
    *kept = *layout;
    return (struct intent){&log_positions, log_position(flow, partition), park_carry_out};
}

struct slice log_park_finish(struct flow *flow, const struct log_layout *layout, int64_t partition,
                             struct slice item)
{
    if (!item_has(flow->arena, item, "redo")) return item;
    struct intent intent = park_intent(flow, layout, partition);
    return intent_finish(flow, &intent, item);
}

/* Moves the position behind the event, on the condition that it is as it was read, and puts the event among the
 * parked ones. */
static bool park(struct flow *flow, const struct intent *intent, struct slice *position, int64_t sequence)
{
    int64_t given = item_int(flow->arena, *position, "given", 0);
    bool is_last = given == sequence;
    struct slice reason = flow_text_or(flow, ACT_MORE, SLICE("no reason given"));
    struct intent_change change = {
        .redo = flow_compose(flow, "{'M':{'sequence':%N,'reason':%S,'parked':%S}}", sequence, reason,
                             moment_text(flow->arena, flow->now_ms)),
        .update = is_last ? SLICE(", #position = :sequence, #until = :until REMOVE #owner")
                          : SLICE(", #position = :sequence, #until = :until"),
        .condition = SLICE("#fence = :fence and #position < :sequence and #given = :given"),
        .values = flow_compose(flow, ",':sequence':%N,':until':%N,':fence':%N,':given':%N", sequence,
                               is_last ? flow->now_ms : hold_until_ms(flow, lease_of(flow, *position)),
                               flow_int(flow, ACT_FENCE), given)};
    return intent_write(flow, intent, position, &change);
}

void log_park_begin(struct flow *flow)
{
    int64_t partition = log_partition_of(flow, flow_text(flow, ACT_PARTITION), true);
    int64_t sequence = flow_int(flow, ACT_SEQUENCE);
    struct log_layout layout;
    struct log_reader event;
    log_layout_get(flow, &layout);
    struct intent intent = park_intent(flow, &layout, partition);
    for (;; task_again(flow)) {
        struct slice position = intent_read(flow, &intent);
        refuse_unfit(flow, position);
        bool is_said = item_int(flow->arena, position, "position", 0) >=
                       sequence; /* of it, or of a later one */
        if (!is_said && !event_read(flow, &event, &layout, partition, sequence))
            task_refuse(flow, 404, "no-such-event", "There is no event of this number any more.");
        if (!is_said && !park(flow, &intent, &position, sequence)) continue;
        tell_position(flow, position);
        return;
    }
}

/* ---- what is parked ---- */

enum { PARKED_LIMIT = LOG_GROUP + 1, PARKED_AFTER };

const struct field log_parked_fields[] = {
    FIELD_LOG,
    FIELD_LOG_GROUP,
    [PARKED_LIMIT] = FIELD_LIMIT(LIST_MOST),
    [PARKED_AFTER] = FIELD_AFTER,
};

void log_parked_begin(struct flow *flow)
{
    struct slice item, group = log_group_key(flow);
    task_query(flow, "#group = :group",
               ",'Limit':%d%[,'ExclusiveStartKey':{'group':%S,'event':%S}%]" READ_FRESH, "':group':%S",
               &log_parked, flow_int_or(flow, PARKED_LIMIT, LIST_USUAL), group, flow_text(flow, PARKED_AFTER),
               group);
    buf_text(flow->body, "{\"parked\":[");
    raw_each (flow->arena, flow_items(flow), &item) {
        flow_put(flow, flow->body, "%,{'partition':%P", item_attribute(flow->arena, item, "partition"));
        plain_put_members(flow->body, flow->arena, item, "sequence key reason parked data");
        buf_byte(flow->body, '}');
    }
    page_finish(flow, item_text(flow->arena, flow_last_key(flow), "event"));
}
