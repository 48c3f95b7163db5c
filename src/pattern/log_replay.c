/* Reading again: everything from a time on, one partition from a number on, or what was parked; log_ack.c and
 * log_scan.c tell how the group finds it. */
#include "calendar/calendar.h"
#include "pattern/intent.h"
#include "pattern/log.h"
#include "pattern/sweep.h"

#define MOVED_MOST 100 /* parked events at a time */

enum { REPLAY_PARTITION = LOG_GROUP + 1, REPLAY_SEQUENCE, REPLAY_TIME, REPLAY_PARKED };

const struct field log_replay_fields[] = {
    FIELD_LOG,
    FIELD_LOG_GROUP,
    [REPLAY_PARTITION] = {"partition", IN_BODY, FIELD_NAME, .help = "only this one, from a number on"},
    [REPLAY_SEQUENCE] = {"sequence", IN_BODY, FIELD_INT, .min = 1, .max = LOG_NUMBER_MOST,
                         .help = "the first that is read again; one behind the last skips all"},
    [REPLAY_TIME] =
        {"time", IN_BODY, FIELD_NAME, .max = 40,
         .help = "all partitions from this past time on, as 2026-11-15T03:42:06Z; \"start\", \"now\""},
    [REPLAY_PARKED] = {"parked", IN_BODY, FIELD_BOOL, .help = "what was parked"},
};

/* The group begins where events are not older than `since`, so a time to come would hide the events until then.
 * Where appends are stamped by the clocks of several processes it stays behind the present by what these may
 * differ: some events are read again, none is passed over. What is no time ends the task. */
static int64_t since_of(struct flow *flow)
{
    struct slice text = flow_text(flow, REPLAY_TIME);
    int64_t latest_ms = flow->now_ms - flow->world->skew_ms, since_ms;
    if (slice_equal(text, SLICE("start"))) return 0;
    if (slice_equal(text, SLICE("now"))) return latest_ms;
    if (!moment_parse(text, &since_ms) || since_ms <= 0)
        task_refuse(flow, 400, "bad-request",
                    "time must be like 2026-11-15T03:42:06Z, or \"start\", or \"now\".");
    if (since_ms > flow->now_ms + flow->world->skew_ms)
        task_refuse(flow, 400, "bad-request",
                    "time lies in the future: here it is %.*s. \"now\" begins with what comes from now on.",
                    SLICE_ARG(moment_text(flow->arena, flow->now_ms)));
    return since_ms < latest_ms ? since_ms : latest_ms;
}

/* The marks count no more: from the group's `since` on everything is looked at. */
static void replay_from_time(struct flow *flow)
{
    int64_t since_ms = since_of(flow);
    struct slice marks = SLICE("");
    for (int i = 0; i < LOG_SLOTS; i++)
        marks = arena_printf(flow->arena, "%.*s%s #mark%d", SLICE_ARG(marks), i ? "," : "", i);
    for (;; task_again(flow)) {
        struct log_layout layout;
        struct log_group group;
        log_group_get(flow, &layout, &group);
        bool is_there = group.item.data;
        if (edit_item(flow, &log_table, LOG_GROUP_KEY(flow),
                      flow_compose(flow,
                                   "SET #turn = :turn, #generation = :generation, #since = :since REMOVE%A",
                                   marks),
                      is_there ? SLICE("#turn = :seen") : SLICE("attribute_not_exists(#turn)"),
                      "':turn':%N,':generation':%N,':since':%N%[%?,':seen':%N%]", group.turn + 1,
                      group.generation + 1, since_ms, is_there, group.turn))
            break;
    }
    flow_wake(flow, log_topic(flow));
    flow_answer(flow, 200, "{'since':%s}", moment_text(flow->arena, since_ms));
}

/* The log and the group, which must be there. */
static void group_get(struct flow *flow, struct log_layout *layout, struct log_group *group)
{
    log_group_get(flow, layout, group);
    if (!group->item.data) log_refuse_group(flow);
}

/* ---- one partition ---- */

/* Sets the position back that a group's redo tells of, unless it was done: each replay has a turn of its own. */
static void replay_carry_out(struct flow *flow, struct slice group)
{
    struct slice redo = item_content(flow->arena, group, "redo");
    edit_item(flow, &log_positions, log_position(flow, item_int(flow->arena, redo, "partition", 0)),
              SLICE("SET #position = :position, #generation = :generation, #replayed = :turn, #fence = "
                    "if_not_exists(#fence, :zero) + :one REMOVE #owner, #turn"),
              SLICE("attribute_not_exists(#replayed) or #replayed < :turn"),
              "':position':%A,':generation':%A,':turn':%A,':zero':{'N':'0'},':one':{'N':'1'}",
              item_attribute(flow->arena, redo, "position"), item_attribute(flow->arena, group, "generation"),
              item_attribute(flow->arena, group, "turn"));
    flow_wake(flow, log_topic(flow));
}

static struct intent replay_intent(struct flow *flow)
{
    return (struct intent){&log_table, LOG_GROUP_KEY(flow), replay_carry_out};
}

struct slice log_replay_finish(struct flow *flow, struct slice item)
{
    if (!item_has(flow->arena, item, "redo")) return item;
    struct intent intent = replay_intent(flow);
    return intent_finish(flow, &intent, item);
}

static void replay_partition(struct flow *flow)
{
    int64_t position = flow_int(flow, REPLAY_SEQUENCE) - 1;
    int64_t partition = log_partition_of(flow, flow_text(flow, REPLAY_PARTITION), false);
    for (;; task_again(flow)) {
        struct log_layout layout;
        struct log_group group;
        group_get(flow, &layout, &group);
        if (partition >= layout.next) log_refuse_partition(flow, partition);
        int64_t touched_s = item_int(flow->arena, log_head_get(flow, &layout, partition), "touched", 0);
        int64_t sequence = log_end_get(flow, &layout, partition).sequence;
        int64_t slot = partition % layout.slots, mark_s = log_mark(flow, &group, slot);
        if (position > sequence)
            task_refuse_with(flow, flow_compose(flow, "'sequence':%d", sequence), 409, "no-such-event",
                             "The last number of the partition is %lld.", (long long)sequence);
        struct intent intent = replay_intent(flow);
        struct intent_change change = {
            .redo = flow_compose(flow, "{'M':{'partition':%N,'position':%N}}", partition, position),
            .update = arena_printf(flow->arena, ", #turn = :turn, #mark%lld = :mark", (long long)slot),
            .condition = SLICE("#turn = :seen_turn"),
            .values = flow_compose(flow, ",':turn':%N,':mark':%N,':seen_turn':%N", group.turn + 1,
                                   touched_s < mark_s ? touched_s : mark_s, group.turn)};
        if (intent_write(flow, &intent, &group.item, &change)) break;
    }
    flow_wake(flow, log_topic(flow));
    flow_answer(flow, 200, "{'partition':%s,'position':%d}", log_partition_text(flow, partition), position);
}

/* ---- what was parked ---- */

/* Moves these to the end of the group's own partition: each is appended by a token of its parking, then the group is
 * told, then it is gone from among the parked. So whoever dies in between, or works on the same, moves none twice. */
static int64_t parked_move(struct flow *flow, const struct log_layout *layout, struct slice items,
                           size_t count)
{
    struct chain chain = log_chain(flow, layout, LOG_PARKED);
    struct chain_end end;
    struct chain_entry *entries = arena_array(flow->arena, struct chain_entry, count);
    struct slice *keys = arena_array(flow->arena, struct slice, count), item;
    int64_t moved = 0;
    size_t at = 0;
    raw_each (flow->arena, items, &item) {
        keys[at] = flow_compose(flow, "{%A}", item_members(flow->arena, item, "group event"));
        entries[at++] = (struct chain_entry){
            .value = flow_compose(flow, "{'L':[%S,%A,{'M':{%A}}]}", item_text(flow->arena, item, "key"),
                                  item_attribute(flow->arena, item, "data"),
                                  item_members(flow->arena, item, "partition sequence time reason")),
            .token = item_text(flow->arena, item, "event"),
            .mark = SLICE("-")};
    }
    chain_guess_end(flow, &chain, &end);
    chain_append(flow, &chain, &end, entries, count);
    for (size_t i = 0; i < count; i++) moved += !entries[i].is_repeated;
    edit_item(flow, &log_table, LOG_GROUP_KEY(flow), SLICE("SET #turn = #turn + :one, #again = :last"),
              SLICE("attribute_exists(#turn) and (attribute_not_exists(#again) or #again < :last)"),
              "':one':{'N':'1'},':last':%N", end.next - 1);
    for (size_t from = 0; from < count; from += SWEEP_REMOVED)
        delete_items(flow, &log_parked, keys + from,
                     count - from < SWEEP_REMOVED ? count - from : SWEEP_REMOVED);
    flow_wake(flow, log_topic(flow));
    return moved;
}

/* What is parked later waits for the next replay. */
static void replay_parked(struct flow *flow)
{
    struct slice began = moment_text(flow->arena, flow->now_ms), start = SLICE_NONE;
    struct log_layout layout;
    struct log_group group;
    int64_t total = 0;
    group_get(flow, &layout, &group);
    do {
        task_query(flow, "#group = :group",
                   ",'FilterExpression':'#parked <= :began','Limit':%d" READ_FRESH READ_FROM,
                   "':group':%S,':began':%S", &log_parked, (int64_t)MOVED_MOST, start, log_group_key(flow),
                   began);
        struct slice items = flow_items(flow);
        size_t count = raw_count(flow->arena, items);
        start = flow_last_key(flow);
        if (count) total += parked_move(flow, &layout, items, count);
    } while (start.data);
    flow_answer(flow, 200, "{'replayed':%d}", total);
}

void log_replay_begin(struct flow *flow)
{
    bool one = flow_given(flow, REPLAY_PARTITION) && flow_given(flow, REPLAY_SEQUENCE);
    bool parked = flow_given(flow, REPLAY_PARKED) && flow_int(flow, REPLAY_PARKED);
    bool half = flow_given(flow, REPLAY_PARTITION) != flow_given(flow, REPLAY_SEQUENCE);
    if (half || one + parked + flow_given(flow, REPLAY_TIME) != 1)
        flow_refuse(flow, 400, "bad-request",
                    "One of these is needed: partition and sequence, time, parked.");
    else if (one)
        replay_partition(flow);
    else if (parked)
        replay_parked(flow);
    else
        replay_from_time(flow);
}
