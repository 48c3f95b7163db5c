/* Split and merge: one transaction seals the partitions that are replaced, on the heads that were seen, makes
 * their children, writes the routes and raises the layout's version. Repeated, it answers the children that
 * there are.
 *
 * A child names what must be read before it: each parent up to its last number. Of a parent that never had an
 * event it takes over what that one had to wait for, so the chain has no hole. */
#include "calendar/calendar.h"
#include "pattern/log.h"

#define PARENTS_MOST 50 /* their heads and positions are read by one BatchGetItem */

enum { SPLIT_PARTITION = LOG_NAME + 1, SPLIT_AT };

const struct field log_split_fields[] = {
    FIELD_LOG,
    [SPLIT_PARTITION] = {"partition", IN_BODY, FIELD_NAME, true, .help = "the partition"},
    [SPLIT_AT] = {"at", IN_BODY, FIELD_NAME, .max = 16,
                  .help = "the first hash of the second child, 16 hexadecimal digits (default: the middle)"},
};

enum { MERGE_PARTITIONS = LOG_NAME + 1 };

const struct field log_merge_fields[] = {
    FIELD_LOG,
    [MERGE_PARTITIONS] = {"partitions", IN_BODY, FIELD_LIST, true, .help = "two neighbours"},
};

/* A partition that is to be sealed. */
struct old {
    int64_t partition, sequence, time_ms;
    struct slice key, head; /* SLICE_NONE: it was never written to */
    struct log_range range;
};

struct change {
    struct log_layout layout;
    struct old olds[2];
    unsigned old_count, at;
    bool is_split;
    struct log_range news[2];
    unsigned new_count;
};

static flow_step change_layout, change_ask_head, change_head, change_decide, change_written, change_again;

/* ---- reading ---- */

void log_split_begin(struct flow *flow)
{
    struct change *change = flow->state = arena_new(flow->arena, struct change);
    *change = (struct change){.old_count = 1, .new_count = 2, .is_split = true};
    if (log_partition_parse(flow, flow_text(flow, SPLIT_PARTITION), false, &change->olds[0].partition))
        log_layout_ask(flow, change_layout);
}

void log_merge_begin(struct flow *flow)
{
    struct change *change = flow->state = arena_new(flow->arena, struct change);
    struct slice list = flow_text(flow, MERGE_PARTITIONS), value;
    struct raw_look look;
    *change = (struct change){.old_count = 2, .new_count = 1};
    if (raw_count(flow->arena, list) != 2) {
        flow_refuse(flow, 400, "bad-request", "partitions must be two.");
        return;
    }
    raw_look_begin(&look, flow->arena, list);
    for (unsigned i = 0; raw_look_next(&look, NULL, &value); i++)
        if (!log_partition_parse(flow, raw_text(flow->arena, value), false, &change->olds[i].partition))
            return;
    if (change->olds[0].partition == change->olds[1].partition)
        flow_refuse(flow, 400, "bad-request", "partitions must be two different ones.");
    else
        log_layout_ask(flow, change_layout);
}

static void change_layout(struct flow *flow)
{
    struct change *change = flow->state;
    if (!log_layout_read(flow, flow_item(flow), &change->layout)) return;
    change->at = 0;
    change_ask_head(flow);
}

static void change_again(struct flow *flow)
{
    log_layout_ask(flow, change_layout);
}

static void change_ask_head(struct flow *flow)
{
    struct change *change = flow->state;
    struct old *old = &change->olds[change->at];
    old->key = log_key(flow, old->partition);
    flow_call(flow, change_head, "GetItem", "{'TableName':%T,'Key':{'partition':%S},'ConsistentRead':true}",
              &log_heads, old->key);
}

static void change_head(struct flow *flow)
{
    struct change *change = flow->state;
    struct old *old = &change->olds[change->at];
    old->head = flow_item(flow);
    old->sequence = item_int(flow->arena, old->head, "sequence", 0);
    old->time_ms = item_int(flow->arena, old->head, "time", 0);
    if (old->partition < change->layout.partitions) {
        old->range = log_range_first(&change->layout, old->partition);
    } else if (!log_range_read(flow, old->head, &old->range)) {
        log_refuse_partition(flow, old->partition);
        return;
    }
    if (++change->at < change->old_count)
        change_ask_head(flow);
    else
        change_decide(flow);
}

/* ---- deciding ---- */

static bool is_sealed(struct flow *flow, const struct old *old)
{
    return item_says(flow->arena, old->head, "state", "SEALED");
}

static void tell_split(struct flow *flow, struct slice children)
{
    const struct change *change = flow->state;
    flow_answer(flow, 200, "{'partition':%s,'children':[%r]}",
                log_partition_text(flow, change->olds[0].partition), children);
}

static void tell_merge(struct flow *flow, struct slice child)
{
    const struct change *change = flow->state;
    flow_answer(flow, 200, "{'partitions':[%s,%s],'child':%r}",
                log_partition_text(flow, change->olds[0].partition),
                log_partition_text(flow, change->olds[1].partition), child);
}

/* Somebody has sealed it: perhaps by the same request. */
static void decide_sealed(struct flow *flow)
{
    struct change *change = flow->state;
    unsigned counts[2] = {0};
    struct slice children[2] = {SLICE_NONE, SLICE_NONE};
    const struct old *sealed = is_sealed(flow, &change->olds[0]) ? &change->olds[0] : &change->olds[1];
    for (unsigned i = 0; i < change->old_count; i++)
        children[i] = log_children_text(flow, change->olds[i].head, &counts[i]);
    if (change->is_split && counts[0] == 2) {
        tell_split(flow, children[0]);
    } else if (!change->is_split && counts[0] == 1 && counts[1] == 1 &&
               slice_equal(children[0], children[1])) {
        tell_merge(flow, children[0]);
    } else {
        flow_refuse_with(flow, flow_compose(flow, "'children':[%r]", children[sealed - change->olds]), 409,
                         "sealed", "Partition %lld is sealed: others have taken its place.",
                         (long long)sealed->partition);
    }
}

static bool split_ranges(struct flow *flow, struct change *change)
{
    struct log_range range = change->olds[0].range;
    uint64_t at = range.from + (range.to - range.from) / 2 + 1;
    struct slice text = flow_text(flow, SPLIT_AT);
    struct log_range given;
    if (flow_given(flow, SPLIT_AT)) {
        struct slice item = flow_compose(flow, "{'from':%S,'to':%S}", text, text);
        if (!log_range_read(flow, item, &given)) {
            flow_refuse(flow, 400, "bad-request", "at must be 16 hexadecimal digits.");
            return false;
        }
        at = given.from;
    }
    if (range.from == range.to || at <= range.from || at > range.to) {
        flow_refuse(
            flow, 409, "outside",
            "The split must be behind the first hash of the partition, %016llx, and not behind its last, "
            "%016llx.",
            (unsigned long long)range.from, (unsigned long long)range.to);
        return false;
    }
    change->news[0] = (struct log_range){range.from, at - 1, change->layout.next};
    change->news[1] = (struct log_range){at, range.to, change->layout.next + 1};
    return true;
}

static bool merge_range(struct flow *flow, struct change *change)
{
    struct log_range a = change->olds[0].range, b = change->olds[1].range;
    bool a_first = a.to != UINT64_MAX && a.to + 1 == b.from,
         b_first = b.to != UINT64_MAX && b.to + 1 == a.from;
    change->news[0] = (struct log_range){a_first ? a.from : b.from, a_first ? b.to : a.to,
                                         change->layout.next};
    if (!a_first && !b_first)
        flow_refuse(flow, 409, "no-neighbours", "Partitions %lld and %lld do not lie side by side.",
                    (long long)change->olds[0].partition, (long long)change->olds[1].partition);
    return a_first || b_first;
}

/* ---- writing ---- */

/* What the children wait for: members of a list, and how many. */
static struct slice parents_text(struct flow *flow, const struct change *change, size_t *count)
{
    struct slice list = SLICE(""), parent;
    struct raw_look look;
    *count = 0;
    for (unsigned i = 0; i < change->old_count; i++) {
        const struct old *old = &change->olds[i];
        if (old->sequence) {
            list = flow_compose(flow, "%r%r{'M':{'partition':%N,'end':%N}}", list,
                                *count ? SLICE(",") : SLICE(""), old->partition, old->sequence);
            ++*count;
            continue;
        }
        raw_look_begin(&look, flow->arena, item_content(flow->arena, old->head, "parents"));
        for (; raw_look_next(&look, NULL, &parent); ++*count)
            list = flow_compose(flow, "%r%r%r", list, *count ? SLICE(",") : SLICE(""), parent);
    }
    return list;
}

static struct slice seal_action(struct flow *flow, const struct change *change, const struct old *old)
{
    struct slice children = flow_compose(flow, "%N", change->news[0].partition);
    if (change->is_split) children = flow_compose(flow, "%r,%N", children, change->news[1].partition);
    if (old->head.data)
        return flow_compose(
            flow,
            "{'Update':{'TableName':%T,'Key':{'partition':%S},'UpdateExpression':'SET #state = :sealed, "
            "#children = :children','ConditionExpression':'#sequence = :sequence and #state = :open',%#,"
            "'ExpressionAttributeValues':{':sealed':{'S':'SEALED'},':open':{'S':'OPEN'},"
            "':children':{'L':[%r]},':sequence':%N},%O}}",
            &log_heads, old->key, children, old->sequence);
    return flow_compose(
        flow,
        "{'Put':{'TableName':%T,'Item':{'partition':%S,'sequence':{'N':'0'},'time':{'N':'0'},'touched':%N,"
        "'slot':%S,'state':{'S':'SEALED'},'children':{'L':[%r]}},"
        "'ConditionExpression':'attribute_not_exists(#partition)',%#,%O}}",
        &log_heads, old->key, flow->now_ms / 1000, log_slot(flow, old->partition % change->layout.slots),
        children);
}

static struct slice child_actions(struct flow *flow, const struct change *change,
                                  const struct log_range *range, struct slice parents)
{
    int64_t time_ms = change->olds[0].time_ms;
    if (change->old_count == 2 && change->olds[1].time_ms > time_ms) time_ms = change->olds[1].time_ms;
    return flow_compose(
        flow,
        "{'Put':{'TableName':%T,'Item':{'partition':%S,'sequence':{'N':'0'},'time':%N,'touched':%N,"
        "'slot':%S,'state':{'S':'OPEN'},'from':%S,'to':%S,'parents':{'L':[%r]}},"
        "'ConditionExpression':'attribute_not_exists(#partition)',%#}},"
        "{'Put':{'TableName':%T,'Item':{'log':%S,'part':{'S':'from/%r'},'to':%S,'partition':%N}}}",
        &log_heads, log_key(flow, range->partition), time_ms, flow->now_ms / 1000,
        log_slot(flow, range->partition % change->layout.slots), log_hex(flow, range->from),
        log_hex(flow, range->to), parents, &log_table, flow_text(flow, LOG_NAME), log_hex(flow, range->from),
        log_hex(flow, range->to), range->partition);
}

/* Of two that become one, the second's route goes. */
static struct slice route_delete_action(struct flow *flow, const struct change *change)
{
    uint64_t a = change->olds[0].range.from, b = change->olds[1].range.from;
    return flow_compose(flow, ",{'Delete':{'TableName':%T,'Key':{'log':%S,'part':{'S':'from/%r'}}}}",
                        &log_table, flow_text(flow, LOG_NAME), log_hex(flow, a > b ? a : b));
}

static void change_write(struct flow *flow, struct slice parents)
{
    struct change *change = flow->state;
    struct slice actions = flow_compose(
        flow,
        "{'Update':{'TableName':%T,'Key':{'log':%S,'part':{'S':'log'}},"
        "'UpdateExpression':'SET #version = :new, #next = :next',"
        "'ConditionExpression':'#version = :version and attribute_not_exists(#deleted)',%#,"
        "'ExpressionAttributeValues':{':version':%N,':new':%N,':next':%N}}}",
        &log_table, flow_text(flow, LOG_NAME), change->layout.version, change->layout.version + 1,
        change->layout.next + change->new_count);
    for (unsigned i = 0; i < change->old_count; i++)
        actions = flow_compose(flow, "%A,%A", actions, seal_action(flow, change, &change->olds[i]));
    for (unsigned i = 0; i < change->new_count; i++)
        actions = flow_compose(flow, "%A,%A", actions,
                               child_actions(flow, change, &change->news[i], parents));
    if (!change->is_split) actions = flow_compose(flow, "%A%A", actions, route_delete_action(flow, change));
    flow_call(flow, change_written, "TransactWriteItems", "{'TransactItems':[%A]}", actions);
}

static void change_decide(struct flow *flow)
{
    struct change *change = flow->state;
    size_t parents_count;
    for (unsigned i = 0; i < change->old_count; i++) {
        if (!is_sealed(flow, &change->olds[i])) continue;
        decide_sealed(flow);
        return;
    }
    if (change->is_split ? !split_ranges(flow, change) : !merge_range(flow, change)) return;
    struct slice parents = parents_text(flow, change, &parents_count);
    if (parents_count > PARENTS_MOST)
        flow_refuse(flow, 409, "too-many-parents",
                    "The new partition would wait for %zu others to be read; at most %d are possible.",
                    parents_count, PARENTS_MOST);
    else
        change_write(flow, parents);
}

static void change_written(struct flow *flow)
{
    struct change *change = flow->state;
    struct slice first = log_partition_text(flow, change->news[0].partition);
    if (flow_failed(flow)) {
        flow_again(flow, change_again);
        return;
    }
    flow_wake(flow, log_topic(flow));
    if (change->is_split)
        tell_split(flow,
                   flow_compose(flow, "%s,%s", first, log_partition_text(flow, change->news[1].partition)));
    else
        tell_merge(flow, flow_compose(flow, "%s", first));
}
