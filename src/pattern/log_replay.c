/* Reading again: everything from a time on, one partition from a number on, or what was parked; log_ack.c and
 * log_scan.c tell how the group finds it. */
#include "calendar/calendar.h"
#include "pattern/log.h"

#define MOVED_MOST 45 /* parked events at a time */

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
    if (!moment_parse(text, &since_ms) || since_ms <= 0) {
        flow_refuse(flow, 400, "bad-request",
                    "time must be like 2026-11-15T03:42:06Z, or \"start\", or \"now\".");
        task_end(flow);
    }
    if (since_ms > flow->now_ms + flow->world->skew_ms) {
        flow_refuse(flow, 400, "bad-request",
                    "time lies in the future: here it is %.*s. \"now\" begins with what comes from now on.",
                    SLICE_ARG(moment_text(flow->arena, flow->now_ms)));
        task_end(flow);
    }
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
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':{'log':%S,'part':%S},'UpdateExpression':'SET #turn = :turn, #generation = "
            ":generation, #since = :since REMOVE%r','ConditionExpression':'%r',%#,"
            "'ExpressionAttributeValues':{':turn':%N,':generation':%N,':since':%N%r}}",
            &log_table, flow_text(flow, LOG_NAME), log_group_part(flow), marks,
            group.item.data ? SLICE("#turn = :seen") : SLICE("attribute_not_exists(#turn)"), group.turn + 1,
            group.generation + 1, since_ms,
            group.item.data ? flow_compose(flow, ",':seen':%N", group.turn) : SLICE(""));
        if (!flow_failed(flow)) break;
    }
    flow_wake(flow, log_topic(flow));
    flow_answer(flow, 200, "{'since':%s}", moment_text(flow->arena, since_ms));
}

/* The log and the group, which must be there. */
static void group_get(struct flow *flow, struct log_layout *layout, struct log_group *group)
{
    log_group_get(flow, layout, group);
    if (group->item.data) return;
    log_refuse_group(flow);
    task_end(flow);
}

/* ---- one partition ---- */

static bool partition_move(struct flow *flow, int64_t partition, int64_t position)
{
    struct log_layout layout;
    struct log_group group;
    group_get(flow, &layout, &group);
    if (partition >= layout.next) {
        log_refuse_partition(flow, partition);
        task_end(flow);
    }
    int64_t touched_s = item_int(flow->arena, log_head_get(flow, &layout, partition), "touched", 0);
    int64_t sequence = log_end_get(flow, &layout, partition).sequence;
    int64_t slot = partition % layout.slots, mark_s = log_mark(flow, &group, slot);
    if (position > sequence) {
        flow_refuse_with(flow, flow_compose(flow, "'sequence':%d", sequence), 409, "no-such-event",
                         "The last number of the partition is %lld.", (long long)sequence);
        task_end(flow);
    }
    task_call(flow, "TransactWriteItems",
              "{'TransactItems':[{'Update':{'TableName':%T,'Key':{'log':%S,'part':%S},"
              "'UpdateExpression':'SET #turn = :turn, %r = :mark','ConditionExpression':'#turn = "
              ":seen',%#,'ExpressionAttributeValues':{':turn':%N,"
              "':mark':%N,':seen':%N}}},{'Update':{'TableName':%T,'Key':{'group':%S,'partition':%S},"
              "'UpdateExpression':'SET #position = :position, #generation = :generation, #fence = "
              "if_not_exists(#fence, :zero) + :one REMOVE #owner, #turn',%#,"
              "'ExpressionAttributeValues':{':position':%N,':generation':%N,':zero':{'N':'0'},"
              "':one':{'N':'1'}}}}]}",
              &log_table, flow_text(flow, LOG_NAME), log_group_part(flow),
              arena_printf(flow->arena, "#mark%lld", (long long)slot), group.turn + 1,
              touched_s < mark_s ? touched_s : mark_s, group.turn, &log_positions, log_group_key(flow),
              log_partition_text(flow, partition), position, group.generation);
    return !flow_failed(flow);
}

static void replay_partition(struct flow *flow)
{
    int64_t partition, position = flow_int(flow, REPLAY_SEQUENCE) - 1;
    if (!log_partition_parse(flow, flow_text(flow, REPLAY_PARTITION), false, &partition)) return;
    while (!partition_move(flow, partition, position)) task_again(flow);
    flow_wake(flow, log_topic(flow));
    flow_answer(flow, 200, "{'partition':%s,'position':%d}", log_partition_text(flow, partition), position);
}

/* ---- what was parked ---- */

/* Moves these to the end of the group's own partition: they are appended, each by a token of its parking, then the
 * group is told, then they are gone. */
static void parked_move(struct flow *flow, const struct log_layout *layout, struct slice items, size_t count)
{
    struct chain_entry *entries = arena_array(flow->arena, struct chain_entry, count);
    struct chain chain = log_chain(flow, layout, LOG_PARKED);
    struct chain_end end;
    struct raw_look look;
    struct slice item;
    size_t at = 0;
    raw_look_begin(&look, flow->arena, items);
    for (; at < count && raw_look_next(&look, NULL, &item); at++) {
        struct slice parked = flow_compose(
            flow, "{'M':{'partition':%A,'sequence':%A,'time':%A,'reason':%A}}",
            item_attribute(flow->arena, item, "partition"), item_attribute(flow->arena, item, "sequence"),
            item_attribute(flow->arena, item, "time"), item_attribute(flow->arena, item, "reason"));
        entries[at] = (struct chain_entry){
            .value = log_entry_again(flow, item_text(flow->arena, item, "key"),
                                     item_attribute(flow->arena, item, "data"), parked),
            .token = flow_compose(flow, "%r/%r", item_text(flow->arena, item, "event"),
                                  item_text(flow->arena, item, "parked")),
            .mark = SLICE("-")};
    }
    chain_guess_end(flow, &chain, &end);
    chain_append(flow, &chain, &end, entries, count);
    task_call(flow, "UpdateItem",
              "{'TableName':%T,'Key':{'log':%S,'part':%S},'UpdateExpression':'SET #turn = #turn + :one, #again = :yes',"
              "'ConditionExpression':'attribute_exists(#turn)',%#,"
              "'ExpressionAttributeValues':{':one':{'N':'1'},':yes':{'BOOL':true}}}",
              &log_table, flow_text(flow, LOG_NAME), log_group_part(flow));
    raw_look_begin(&look, flow->arena, items);
    while (raw_look_next(&look, NULL, &item))
        task_call(flow, "DeleteItem",
                  "{'TableName':%T,'Key':{'group':%A,'event':%A},'ConditionExpression':'#parked = :parked',%#,"
                  "'ExpressionAttributeValues':{':parked':%A}}",
                  &log_parked, item_attribute(flow->arena, item, "group"), item_attribute(flow->arena, item, "event"),
                  item_attribute(flow->arena, item, "parked"));
}

/* What is parked later waits for the next replay. */
static void replay_parked(struct flow *flow)
{
    struct slice began = moment_text(flow->arena, flow->now_ms), start = SLICE_NONE;
    struct log_layout layout;
    struct log_group group;
    int64_t total = 0;
    group_get(flow, &layout, &group);
    for (;;) {
        task_call(flow, "Query",
                  "{'TableName':%T,'KeyConditionExpression':'#group = :group',"
                  "'FilterExpression':'#parked <= :began',%#,'ExpressionAttributeValues':{':group':%S,"
                  "':began':%S},'ConsistentRead':true,'Limit':%d%A}",
                  &log_parked, log_group_key(flow), began, (int64_t)MOVED_MOST,
                  start.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", start) : SLICE(""));
        struct slice items = flow_items(flow);
        size_t count = raw_count(flow->arena, items);
        start = flow_last_key(flow);
        if (count) parked_move(flow, &layout, items, count);
        total += (int64_t)count;
        if (count) flow_wake(flow, log_topic(flow));
        if (!start.data) break;
    }
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
