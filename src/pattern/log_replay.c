/* Reading again: everything from a time on, one partition from a number on, or what was parked; log_ack.c and
 * log_scan.c tell how the group finds it. */
#include "calendar/calendar.h"
#include "pattern/log.h"

#define MOVED_MOST 45 /* parked events by one transaction: two actions for each, and two more */

enum { REPLAY_PARTITION = LOG_GROUP + 1, REPLAY_SEQUENCE, REPLAY_TIME, REPLAY_PARKED };

const struct field log_replay_fields[] = {
    FIELD_LOG,
    FIELD_LOG_GROUP,
    [REPLAY_PARTITION] = {"partition", IN_BODY, FIELD_NAME, .help = "only this one, from a number on"},
    [REPLAY_SEQUENCE] = {"sequence", IN_BODY, FIELD_INT, .min = 1, .max = LOG_NUMBER_MOST,
                         .help = "the first that is read again; one behind the last skips all"},
    [REPLAY_TIME] = {"time", IN_BODY, FIELD_NAME, .max = 40,
                     .help = "all partitions from this past time on, as 2026-11-15T03:42:06Z; \"start\", \"now\""},
    [REPLAY_PARKED] = {"parked", IN_BODY, FIELD_BOOL, .help = "what was parked"},
};

struct replay {
    struct log_layout layout;
    struct log_group group;
    int64_t partition, since_ms;
    struct slice head;
    struct slice began; /* what is parked later waits for the next replay */
    struct slice items, next;
    int64_t moved, total;
};

static flow_step replay_group, replay_bumped, replay_head, replay_moved, parked_next, parked_listed,
    parked_head, parked_written;

/* ---- which ---- */

/* The group begins where events are not older than `since`, so a time to come would hide the events until then.
 * Where appends are stamped by the clocks of several processes it stays behind the present by what these may
 * differ: some events are read again, none is passed over. */
static bool take_time(struct flow *flow, struct replay *replay)
{
    struct slice text = flow_text(flow, REPLAY_TIME);
    int64_t latest_ms = flow->now_ms - flow->world->skew_ms;
    if (slice_equal(text, SLICE("start"))) return true;
    replay->since_ms = latest_ms;
    if (slice_equal(text, SLICE("now"))) return true;
    if (!moment_parse(text, &replay->since_ms) || replay->since_ms <= 0) {
        flow_refuse(flow, 400, "bad-request",
                    "time must be like 2026-11-15T03:42:06Z, or \"start\", or \"now\".");
        return false;
    }
    if (replay->since_ms > flow->now_ms + flow->world->skew_ms) {
        flow_refuse(flow, 400, "bad-request",
                    "time lies in the future: here it is %.*s. \"now\" begins with what comes from now on.",
                    SLICE_ARG(moment_text(flow->arena, flow->now_ms)));
        return false;
    }
    if (replay->since_ms > latest_ms) replay->since_ms = latest_ms;
    return true;
}

void log_replay_begin(struct flow *flow)
{
    struct replay *replay = flow->state = arena_new(flow->arena, struct replay);
    bool one = flow_given(flow, REPLAY_PARTITION) && flow_given(flow, REPLAY_SEQUENCE);
    bool parked = flow_given(flow, REPLAY_PARKED) && flow_int(flow, REPLAY_PARKED);
    bool half = flow_given(flow, REPLAY_PARTITION) != flow_given(flow, REPLAY_SEQUENCE);
    if (half || one + parked + flow_given(flow, REPLAY_TIME) != 1) {
        flow_refuse(flow, 400, "bad-request",
                    "One of these is needed: partition and sequence, time, parked.");
        return;
    }
    if (one && !log_partition_parse(flow, flow_text(flow, REPLAY_PARTITION), false, &replay->partition))
        return;
    if (flow_given(flow, REPLAY_TIME) && !take_time(flow, replay)) return;
    replay->began = moment_text(flow->arena, flow->now_ms);
    log_group_ask(flow, replay_group);
}

static void replay_again(struct flow *flow)
{
    log_group_ask(flow, replay_group);
}

/* The marks count no more: from the group's `since` on everything is looked at. */
static void replay_bump(struct flow *flow)
{
    const struct replay *replay = flow->state;
    struct slice marks = SLICE("");
    for (int i = 0; i < LOG_SLOTS; i++)
        marks = arena_printf(flow->arena, "%.*s%s #mark%d", SLICE_ARG(marks), i ? "," : "", i);
    flow_call(
        flow, replay_bumped, "UpdateItem",
        "{'TableName':%T,'Key':{'log':%S,'part':%S},'UpdateExpression':'SET #turn = :turn, #generation = "
        ":generation, #since = :since REMOVE%r','ConditionExpression':'%r',%#,"
        "'ExpressionAttributeValues':{':turn':%N,':generation':%N,':since':%N%r}}",
        &log_table, flow_text(flow, LOG_NAME), log_group_part(flow), marks,
        replay->group.item.data ? SLICE("#turn = :seen") : SLICE("attribute_not_exists(#turn)"),
        replay->group.turn + 1, replay->group.generation + 1, replay->since_ms,
        replay->group.item.data ? flow_compose(flow, ",':seen':%N", replay->group.turn) : SLICE(""));
}

static void replay_group(struct flow *flow)
{
    struct replay *replay = flow->state;
    struct raw_look look;
    struct slice item, log = SLICE_NONE, group = SLICE_NONE;
    raw_look_begin(&look, flow->arena, log_batch_items(flow, &log_table));
    while (raw_look_next(&look, NULL, &item))
        *(item_says(flow->arena, item, "part", "log") ? &log : &group) = item;
    if (raw_count(flow->arena, raw_member(flow->arena, flow->reply.body, "UnprocessedKeys"))) {
        flow_again(flow, replay_again);
        return;
    }
    if (!log_layout_read(flow, log, &replay->layout)) return;
    log_group_read(flow, group, &replay->group);
    if (flow_given(flow, REPLAY_TIME))
        replay_bump(flow);
    else if (!group.data)
        log_refuse_group(flow);
    else if (flow_given(flow, REPLAY_SEQUENCE))
        flow_call(flow, replay_head, "GetItem",
                  "{'TableName':%T,'Key':{'partition':%S},'ConsistentRead':true}", &log_heads,
                  log_key(flow, replay->partition));
    else
        parked_next(flow);
}

static void replay_bumped(struct flow *flow)
{
    const struct replay *replay = flow->state;
    if (flow_failed(flow)) {
        flow_again(flow, replay_again);
        return;
    }
    flow_wake(flow, log_topic(flow));
    flow_answer(flow, 200, "{'since':%s}", moment_text(flow->arena, replay->since_ms));
}

/* ---- one partition ---- */

static void replay_head(struct flow *flow)
{
    struct replay *replay = flow->state;
    struct slice head = flow_item(flow);
    int64_t sequence = item_int(flow->arena, head, "sequence", 0), from = flow_int(flow, REPLAY_SEQUENCE);
    int64_t slot = replay->partition % replay->layout.slots, mark_s = log_mark(flow, &replay->group, slot);
    int64_t touched_s = item_int(flow->arena, head, "touched", 0);
    if (replay->partition >= replay->layout.next) {
        log_refuse_partition(flow, replay->partition);
        return;
    }
    if (from > sequence + 1) {
        flow_refuse_with(flow, flow_compose(flow, "'sequence':%d", sequence), 409, "no-such-event",
                         "The last number of the partition is %lld.", (long long)sequence);
        return;
    }
    if (touched_s < mark_s) mark_s = touched_s;
    flow_call(
        flow, replay_moved, "TransactWriteItems",
        "{'TransactItems':[{'Update':{'TableName':%T,'Key':{'log':%S,'part':%S},"
        "'UpdateExpression':'SET #turn = :turn, %r = :mark','ConditionExpression':'#turn = "
        ":seen',%#,'ExpressionAttributeValues':{':turn':%N,"
        "':mark':%N,':seen':%N}}},{'Update':{'TableName':%T,'Key':{'group':%S,'partition':%S},"
        "'UpdateExpression':'SET #position = :position, #generation = :generation, #fence = "
        "if_not_exists(#fence, :zero) + :one REMOVE #owner, #turn',%#,"
        "'ExpressionAttributeValues':{':position':%N,':generation':%N,':zero':{'N':'0'},"
        "':one':{'N':'1'}}}}]}",
        &log_table, flow_text(flow, LOG_NAME), log_group_part(flow),
        arena_printf(flow->arena, "#mark%lld", (long long)slot), replay->group.turn + 1, mark_s,
        replay->group.turn, &log_positions, log_group_key(flow), log_partition_text(flow, replay->partition),
        from - 1, replay->group.generation);
}

static void replay_moved(struct flow *flow)
{
    const struct replay *replay = flow->state;
    if (flow_failed(flow)) {
        flow_again(flow, replay_again);
        return;
    }
    flow_wake(flow, log_topic(flow));
    flow_answer(flow, 200, "{'partition':%s,'position':%d}", log_partition_text(flow, replay->partition),
                flow_int(flow, REPLAY_SEQUENCE) - 1);
}

/* ---- what was parked ---- */

static void parked_next(struct flow *flow)
{
    const struct replay *replay = flow->state;
    struct slice group = log_group_key(flow);
    flow_call(flow, parked_listed, "Query",
              "{'TableName':%T,'KeyConditionExpression':'#group = :group',"
              "'FilterExpression':'#parked <= :began',%#,'ExpressionAttributeValues':{':group':%S,"
              "':began':%S},'ConsistentRead':true,'Limit':%d%A}",
              &log_parked, group, replay->began, (int64_t)MOVED_MOST,
              replay->next.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", replay->next) : SLICE(""));
}

static void parked_go_on(struct flow *flow)
{
    const struct replay *replay = flow->state;
    if (replay->next.data)
        parked_next(flow);
    else
        flow_answer(flow, 200, "{'replayed':%d}", replay->total);
}

static void parked_ask_head(struct flow *flow)
{
    flow_call(flow, parked_head, "GetItem", "{'TableName':%T,'Key':{'partition':%S},'ConsistentRead':true}",
              &log_heads, log_key(flow, LOG_PARKED));
}

static void parked_listed(struct flow *flow)
{
    struct replay *replay = flow->state;
    replay->next = flow_last_key(flow);
    replay->items = flow_items(flow);
    replay->moved = (int64_t)raw_count(flow->arena, replay->items);
    if (replay->moved)
        parked_ask_head(flow);
    else
        parked_go_on(flow);
}

/* The event of the group's own partition, and the end of the parked one. */
static struct slice move_actions(struct flow *flow, struct slice item, int64_t sequence)
{
    return flow_compose(
        flow,
        ",{'Put':{'TableName':%T,'Item':{'partition':%S,'sequence':%N,'key':%A,'time':%A,'data':%A,"
        "'reason':%A,'origin':{'M':{'partition':%A,'sequence':%A}}},"
        "'ConditionExpression':'attribute_not_exists(#sequence)',"
        "'ExpressionAttributeNames':{'#sequence':'sequence'}}},"
        "{'Delete':{'TableName':%T,'Key':{'group':%A,'event':%A},'ConditionExpression':'#parked = :parked',"
        "'ExpressionAttributeNames':{'#parked':'parked'},'ExpressionAttributeValues':{':parked':%A}}}",
        &log_events, log_key(flow, LOG_PARKED), sequence, item_attribute(flow->arena, item, "key"),
        item_attribute(flow->arena, item, "time"), item_attribute(flow->arena, item, "data"),
        item_attribute(flow->arena, item, "reason"), item_attribute(flow->arena, item, "partition"),
        item_attribute(flow->arena, item, "sequence"), &log_parked,
        item_attribute(flow->arena, item, "group"), item_attribute(flow->arena, item, "event"),
        item_attribute(flow->arena, item, "parked"));
}

static void parked_head(struct flow *flow)
{
    struct replay *replay = flow->state;
    struct slice head = flow_item(flow), item;
    int64_t last = item_int(flow->arena, head, "sequence", 0), sequence = last;
    struct buf actions = {0};
    struct raw_look look;
    raw_look_begin(&look, flow->arena, replay->items);
    while (raw_look_next(&look, NULL, &item)) buf_slice(&actions, move_actions(flow, item, ++sequence));
    flow_call(flow, parked_written, "TransactWriteItems",
              "{'TransactItems':[{'Update':{'TableName':%T,'Key':{'partition':%S},"
              "'UpdateExpression':'SET #sequence = :new, #time = :time, #state = :open',"
              "'ConditionExpression':'%r',%#,'ExpressionAttributeValues':{':new':%N,':time':%N,"
              "':open':{'S':'OPEN'}%r}}},{'Update':{'TableName':%T,'Key':{'log':%S,'part':%S},"
              "'UpdateExpression':'SET #turn = #turn + :one, #again = :yes',"
              "'ConditionExpression':'attribute_exists(#turn)',%#,"
              "'ExpressionAttributeValues':{':one':{'N':'1'},':yes':{'BOOL':true}}}}%A]}",
              &log_heads, log_key(flow, LOG_PARKED),
              head.data ? SLICE("#sequence = :old") : SLICE("attribute_not_exists(#sequence)"), sequence,
              flow->now_ms, head.data ? flow_compose(flow, ",':old':%N", last) : SLICE(""), &log_table,
              flow_text(flow, LOG_NAME), log_group_part(flow), buf_view(&actions));
    buf_free(&actions);
}

/* Somebody else moves them, too: those that are left are listed again. */
static void parked_written(struct flow *flow)
{
    struct replay *replay = flow->state;
    if (flow_failed(flow)) {
        replay->next = SLICE_NONE;
        flow_again(flow, parked_next);
        return;
    }
    replay->total += replay->moved;
    flow_wake(flow, log_topic(flow));
    parked_go_on(flow);
}
