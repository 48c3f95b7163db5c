/* Split and merge, by an intent: one conditional write to the log's item says which partitions are replaced by which,
 * and takes their numbers (`change`). Whoever meets it brings it to its end: seals the old partitions by a page that
 * names the new ones, makes the heads of these, writes the routes, and last raises the log's version, with which the
 * change is gone. Each of these writes is made if absent, or is guarded by the version that the change leads to, so it
 * does not matter how often it is made, or how late. Repeated, a split or merge answers the children that there are.
 *
 * A child names what must be read before it: each parent up to its last number. Of a parent that never had an
 * event it takes over what that one had to wait for, so the chain has no hole. Its own numbers begin behind those of
 * its parents (`base`): so the numbers of a key only grow, whatever partition it is in. */
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

/* ---- what is under way ---- */

static struct slice change_text(struct flow *flow, const struct log_change *change)
{
    struct slice olds = SLICE(""), news = SLICE("");
    for (unsigned i = 0; i < change->old_count; i++)
        olds = flow_compose(flow, "%A%,%N", olds, change->olds[i]);
    for (unsigned i = 0; i < change->new_count; i++)
        news = flow_compose(flow, "%A%,{'M':{'partition':%N,'from':%S,'to':%S}}", news,
                            change->news[i].partition, log_hex(flow, change->news[i].from),
                            log_hex(flow, change->news[i].to));
    return flow_compose(flow, "{'M':{'olds':{'L':[%A]},'news':{'L':[%A]}}}", olds, news);
}

/* The new partitions as a seal names them. */
static struct slice children_of(struct flow *flow, const struct log_change *change)
{
    struct slice list = SLICE("");
    for (unsigned i = 0; i < change->new_count; i++)
        list = flow_compose(flow, "%A%,%N", list, change->news[i].partition);
    return flow_compose(flow, "{'L':[%A]}", list);
}

/* What the children wait for: an old partition up to its last number, or what that one has to wait for itself. */
static struct slice parents_of(struct flow *flow, struct slice head, int64_t partition, int64_t sequence,
                               size_t *count)
{
    struct slice parents = item_content(flow->arena, head, "parents");
    bool has_events = sequence > item_int(flow->arena, head, "base", 0);
    if (!has_events && !parents.data) return SLICE("");
    *count += has_events ? 1 : raw_count(flow->arena, parents);
    if (has_events) return flow_compose(flow, "{'M':{'partition':%N,'end':%N}}", partition, sequence);
    return (struct slice){parents.data + 1, parents.len - 2}; /* without the brackets */
}

static void route_put(struct flow *flow, const struct log_layout *layout, const struct log_range *range,
                      struct slice part)
{
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'log':%S,'part':%S,'to':%S,'partition':%N,'version':%N},"
              "'ConditionExpression':'attribute_not_exists(#version) or #version < :version',%#,"
              "'ExpressionAttributeValues':{':version':%N}}",
              &log_table, flow_text(flow, LOG_NAME), part, log_hex(flow, range->to), range->partition,
              layout->version + 1, layout->version + 1);
}

/* Every route within the new partition's range leads to it, also those that an earlier change has left there. */
static void routes_write(struct flow *flow, const struct log_layout *layout, const struct log_range *range)
{
    struct slice name = flow_text(flow, LOG_NAME), id = slice_of(layout->id), item;
    struct slice first = flow_compose(flow, "from/%r/%r", id, log_hex(flow, range->from));
    struct slice last = flow_compose(flow, "from/%r/%r", id, log_hex(flow, range->to)), routes;
    task_query(flow, "#log = :log and #part between :first and :last", READ_FRESH,
               "':log':%S,':first':%S,':last':%S", &log_table, name, first, last);
    routes = flow_items(flow);
    route_put(flow, layout, range, first);
    raw_each (flow->arena, routes, &item) {
        struct slice part = item_text(flow->arena, item, "part");
        if (!slice_equal(part, first)) route_put(flow, layout, range, part);
    }
}

void log_change_finish(struct flow *flow, const struct log_layout *layout)
{
    if (!layout->change.data) return;
    struct log_change change = {0};
    struct slice value, map = raw_member(flow->arena, layout->change, "M");
    raw_each (flow->arena, item_content(flow->arena, map, "olds"), &value)
        if (change.old_count < 2) change.olds[change.old_count++] = attribute_int(flow->arena, value, 0);
    raw_each (flow->arena, item_content(flow->arena, map, "news"), &value)
        if (change.new_count < 2)
            log_range_read(flow, raw_member(flow->arena, value, "M"), &change.news[change.new_count++]);
    struct slice parents = SLICE(""), children = children_of(flow, &change);
    int64_t time_ms = 0, base = 0;
    for (unsigned i = 0; i < change.old_count; i++) {
        struct chain chain = log_chain(flow, layout, change.olds[i]);
        struct chain_end end;
        size_t count = 0;
        log_end_guess(flow, layout, change.olds[i], &chain, &end);
        log_touch(flow, layout, change.olds[i], &chain, &end, 0);
        chain_seal(flow, &chain, &end, children, 0);
        if (!attribute_equal(flow->arena, end.seal, children))
            task_refuse(flow, 409, "being-deleted", "This log is being deleted.");
        struct slice head = log_head_get(flow, layout, change.olds[i]);
        struct slice list = parents_of(flow, head, change.olds[i], end.next - 1, &count);
        if (list.len) parents = flow_compose(flow, "%A%,%A", parents, list);
        if (end.time_ms > time_ms) time_ms = end.time_ms;
        if (end.next - 1 > base) base = end.next - 1;
    }
    for (unsigned i = 0; i < change.new_count; i++)
        task_call(
            flow, "PutItem",
            "{'TableName':%T,'Item':{'partition':%S,'sequence':%N,'base':%N,'time':%N,'touched':%N,'slot':%S,"
            "'from':%S,'to':%S,'parents':{'L':[%A]}},'ConditionExpression':'attribute_not_exists(#partition)',%#}",
            &log_heads, log_key(flow, layout, change.news[i].partition), base, base, time_ms,
            flow->now_ms / 1000, log_key(flow, layout, change.news[i].partition % layout->slots),
            log_hex(flow, change.news[i].from), log_hex(flow, change.news[i].to), parents);
    for (unsigned i = 0; i < change.new_count; i++) routes_write(flow, layout, &change.news[i]);
    edit_item(flow, &log_table, LOG_KEY(flow), SLICE("SET #version = :new REMOVE #change"),
              SLICE("#version = :version and #id = :id"), "':version':%N,':new':%N,':id':%S", layout->version,
              layout->version + 1, slice_of(layout->id));
    log_layout_forget(flow);
    flow_wake(flow, log_topic(flow));
}

/* ---- what is asked for ---- */

/* A partition that is to be replaced. */
struct old {
    int64_t partition;
    struct slice head; /* SLICE_NONE: it was never written to */
    struct log_end end;
    struct log_range range;
};

static struct old old_read(struct flow *flow, const struct log_layout *layout, int64_t partition)
{
    struct old old = {.partition = partition, .head = log_head_get(flow, layout, partition)};
    if (partition < layout->partitions) {
        old.range = log_range_first(layout, partition);
    } else if (!log_range_read(flow, old.head, &old.range)) {
        log_refuse_partition(flow, partition);
    }
    old.end = log_end_get(flow, layout, partition);
    return old;
}

/* The ranges of the two, or a refusal. */
static void split_ranges(struct flow *flow, const struct log_layout *layout, const struct log_range *range,
                         struct log_change *change)
{
    uint64_t at = change->has_at ? change->at : range->from + (range->to - range->from) / 2 + 1;
    if (range->from == range->to || at <= range->from || at > range->to)
        task_refuse(
            flow, 409, "outside",
            "The split must be behind the first hash of the partition, %016llx, and not behind its last, "
            "%016llx.",
            (unsigned long long)range->from, (unsigned long long)range->to);
    change->news[0] = (struct log_range){range->from, at - 1, layout->next};
    change->news[1] = (struct log_range){at, range->to, layout->next + 1};
}

static void merge_range(struct flow *flow, const struct log_layout *layout, const struct old *olds,
                        struct log_range *news)
{
    struct log_range a = olds[0].range, b = olds[1].range;
    bool a_first = a.to != UINT64_MAX && a.to + 1 == b.from,
         b_first = b.to != UINT64_MAX && b.to + 1 == a.from;
    news[0] = (struct log_range){a_first ? a.from : b.from, a_first ? b.to : a.to, layout->next};
    if (a_first || b_first) return;
    task_refuse(flow, 409, "no-neighbours", "Partitions %lld and %lld do not lie side by side.",
                (long long)olds[0].partition, (long long)olds[1].partition);
}

static void tell(struct flow *flow, const struct log_change *change, struct slice children)
{
    struct slice first = log_partition_text(flow, change->olds[0]);
    if (change->old_count == 1)
        flow_answer(flow, 200, "{'partition':%s,'children':[%r]}", first, children);
    else
        flow_answer(flow, 200, "{'partitions':[%s,%s],'child':%r}", first,
                    log_partition_text(flow, change->olds[1]), children);
}

/* Somebody has sealed one: perhaps by the same request. */
static void tell_sealed(struct flow *flow, const struct log_change *change, const struct old *olds)
{
    unsigned counts[2] = {0};
    struct slice children[2] = {SLICE(""), SLICE("")};
    for (unsigned i = 0; i < change->old_count; i++)
        children[i] = log_children_text(flow, olds[i].end.seal, &counts[i]);
    bool is_same = change->old_count == 1
                       ? counts[0] == 2
                       : counts[0] == 1 && counts[1] == 1 && slice_equal(children[0], children[1]);
    unsigned sealed = olds[0].end.is_sealed ? 0 : 1;
    if (is_same)
        tell(flow, change, children[0]);
    else
        flow_refuse_with(flow, flow_compose(flow, "'children':[%r]", children[sealed]), 409, "sealed",
                         "Partition %lld is sealed: others have taken its place.",
                         (long long)change->olds[sealed]);
}

enum made { MADE, IS_SEALED, TOO_MANY_PARENTS };

static enum made change_make(struct flow *flow, struct log_change *change, struct old *olds, size_t *parents)
{
    bool is_split = change->old_count == 1;
    change->new_count = is_split ? 2 : 1;
    for (;; task_again(flow)) {
        struct log_layout layout;
        bool is_sealed = false;
        log_layout_get(flow, &layout);
        if (layout.change.data) {
            log_change_finish(flow, &layout);
            continue;
        }
        *parents = 0;
        for (unsigned i = 0; i < change->old_count; i++) {
            olds[i] = old_read(flow, &layout, change->olds[i]);
            parents_of(flow, olds[i].head, change->olds[i], olds[i].end.sequence, parents);
            is_sealed |= olds[i].end.is_sealed;
        }
        if (is_sealed) return IS_SEALED;
        if (is_split)
            split_ranges(flow, &layout, &olds[0].range, change);
        else
            merge_range(flow, &layout, olds, change->news);
        if (*parents > PARENTS_MOST) return TOO_MANY_PARENTS;
        layout.change = change_text(flow, change);
        if (!edit_item(flow, &log_table, LOG_KEY(flow), SLICE("SET #change = :change, #next = :next"),
                       SLICE("#version = :version and #id = :id and attribute_not_exists(#change) and "
                             "attribute_not_exists(#deleted)"),
                       "':change':%A,':next':%N,':version':%N,':id':%S", layout.change,
                       layout.next + change->new_count, layout.version, slice_of(layout.id)))
            continue;
        log_change_finish(flow, &layout);
        return MADE;
    }
}

bool log_change_try(struct flow *flow, struct log_change *change)
{
    struct old olds[2];
    size_t parents;
    return change_make(flow, change, olds, &parents) == MADE;
}

static void change_run(struct flow *flow, struct log_change *change)
{
    struct old olds[2];
    size_t parents;
    unsigned count;
    switch (change_make(flow, change, olds, &parents)) {
    case MADE: tell(flow, change, log_children_text(flow, children_of(flow, change), &count)); break;
    case IS_SEALED: tell_sealed(flow, change, olds); break;
    case TOO_MANY_PARENTS:
        flow_refuse(flow, 409, "too-many-parents",
                    "The new partition would wait for %zu others to be read; at most %d are possible.",
                    parents, PARENTS_MOST);
        break;
    }
}

void log_split_begin(struct flow *flow)
{
    struct log_change change = {.old_count = 1, .has_at = flow_given(flow, SPLIT_AT)};
    if (change.has_at && !log_hex_read(flow_text(flow, SPLIT_AT), &change.at))
        task_refuse(flow, 400, "bad-request", "at must be 16 hexadecimal digits.");
    change.olds[0] = log_partition_of(flow, flow_text(flow, SPLIT_PARTITION), false);
    change_run(flow, &change);
}

void log_merge_begin(struct flow *flow)
{
    struct log_change change = {.new_count = 1};
    struct slice list = flow_text(flow, MERGE_PARTITIONS), value;
    if (raw_count(flow->arena, list) != 2) task_refuse(flow, 400, "bad-request", "partitions must be two.");
    raw_each (flow->arena, list, &value)
        change.olds[change.old_count++] = log_partition_of(flow, raw_text(flow->arena, value), false);
    if (change.olds[0] == change.olds[1])
        task_refuse(flow, 400, "bad-request", "partitions must be two different ones.");
    change_run(flow, &change);
}
