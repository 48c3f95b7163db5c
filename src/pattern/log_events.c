/* What a partition holds: a chain of events (chain.h), and a head that tells of its news.
 *
 * An entry of the chain is a list: the key, the data, and of an event that is read again after it was parked a map of
 * `partition`, `sequence`, `time` and `reason`.
 *
 * The head is touched before a page is put, by whoever has not seen it touched in the last LOG_TOUCHED_S: so readers
 * find every page by looking for heads that were touched that long before it, and a busy partition's head is written
 * every few seconds. Of a log whose events end by their age all pages may have ended; so that no number is given twice
 * then, the head reserves numbers before they are used (`upto`), and says from where on they are used now (`base`) and
 * until when no page has ended (`lives`). */
#include "base/fail.h"
#include "calendar/calendar.h"
#include "pattern/log.h"

#define ENTRY_LEVELS 2 /* of a page: its list of entries, and the entry */
#define RESERVED_AT_ONCE                                                                                     \
    10000 /* numbers; half of them is left when the next are reserved: more than an append takes */

struct chain log_chain(struct flow *flow, const struct log_layout *layout, int64_t partition)
{
    struct slice key = log_key(flow, layout, partition);
    bool is_parked = partition == LOG_PARKED;
    return (struct chain){.table = &log_events,
                          .key = key,
                          .token_kind = is_parked ? "log-parked" : "log",
                          .token_name = is_parked ? key : slice_of(layout->id),
                          .keep_s = is_parked ? 0 : layout->keep_s};
}

const char *log_entry(struct flow *flow, struct slice key, struct slice data, struct slice *entry)
{
    struct buf out = {0};
    buf_reserve(&out, 2 * (key.len + data.len) + 100);
    flow_put(flow, &out, "{'L':[%S,", key);
    const char *fault = attribute_put_checked(&out, flow->arena, data, ENTRY_LEVELS);
    buf_text(&out, "]}");
    *entry = arena_take(flow->arena, &out);
    return fault;
}

/* ---- the head ---- */

struct slice log_head_get(struct flow *flow, const struct log_layout *layout, int64_t partition)
{
    return task_get(flow, &log_heads, "{'partition':%S}", log_key(flow, layout, partition));
}

/* As this process has seen the head last. */
struct touched {
    int64_t touched_s, upto;
};

static int64_t lives_until(const struct log_layout *layout, int64_t touched_s)
{
    return touched_s + layout->keep_s + CHAIN_LATE_S / 2;
}

void log_touch(struct flow *flow, const struct log_layout *layout, int64_t partition,
               const struct chain *chain, const struct chain_end *end, size_t count)
{
    uint64_t topic = flow_topic("log head", chain->key, SLICE(""));
    struct slice last = flow_recall(flow, topic);
    struct touched seen = {0};
    int64_t now_s = flow->now_ms / 1000, needed = 0;
    if (last.len == sizeof seen) memcpy(&seen, last.data, sizeof seen);
    if (layout->keep_s) needed = end->next + (int64_t)count + RESERVED_AT_ONCE / 2;
    while (seen.touched_s + LOG_TOUCHED_S < now_s || seen.upto < needed) {
        struct touched next = {now_s > seen.touched_s ? now_s : seen.touched_s, seen.upto};
        if (seen.upto < needed) next.upto = needed + RESERVED_AT_ONCE / 2;
        task_call(
            flow, "UpdateItem",
            "{'TableName':%T,'Key':{'partition':%S},'UpdateExpression':'SET #slot = :slot, #touched = :touched, "
            "#sequence = :sequence%r','ConditionExpression':'attribute_not_exists(#touched) or (#touched <= "
            ":touched%r)',%#,'ExpressionAttributeValues':{':slot':%S,':touched':%N,':sequence':%N%r},%O}",
            &log_heads, chain->key,
            needed ? SLICE(", #upto = :upto, #lives = :lives, #base = if_not_exists(#base, :sequence)")
                   : SLICE(""),
            needed ? SLICE(" and (attribute_not_exists(#upto) or #upto <= :upto)") : SLICE(""),
            log_key(flow, layout, partition % layout->slots), next.touched_s, end->next - 1,
            needed ? flow_compose(flow, ",':upto':%N,':lives':%N", next.upto,
                                  lives_until(layout, next.touched_s))
                   : SLICE(""));
        if (flow_failed(flow)) {
            next.touched_s = item_int(flow->arena, flow_item(flow), "touched", 0);
            next.upto = item_int(flow->arena, flow_item(flow), "upto", 0);
        }
        seen = next;
        flow_remember(flow, topic, (struct slice){(const char *)&seen, sizeof seen});
    }
}

/* ---- the end ---- */

/* There is no page: the first number is behind what has been used, and its time not before that of the parents. False:
 * somebody else has found the same, so it must be read once more. */
static bool end_by_head(struct flow *flow, const struct log_layout *layout, int64_t partition,
                        struct chain_end *end)
{
    struct slice head = log_head_get(flow, layout, partition);
    int64_t base = item_int(flow->arena, head, "base", 0), upto = item_int(flow->arena, head, "upto", 0);
    int64_t now_s = flow->now_ms / 1000;
    end->time_ms = item_int(flow->arena, head, "time", 0);
    end->next = base + 1;
    if (!upto || now_s < item_int(flow->arena, head, "lives", 0)) return true;
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'partition':%S},'UpdateExpression':'SET #touched = :now, #sequence = :upto, "
        "#base = :upto, #upto = :more, #lives = :lives','ConditionExpression':'#touched = :touched and #upto = "
        ":upto',%#,'ExpressionAttributeValues':{':now':%N,':more':%N,':lives':%N,':touched':%A,':upto':%N}}",
        &log_heads, log_key(flow, layout, partition), now_s, upto + RESERVED_AT_ONCE,
        lives_until(layout, now_s), item_attribute(flow->arena, head, "touched"), upto);
    end->next = upto + 1;
    return !flow_failed(flow);
}

bool log_end_guess(struct flow *flow, const struct log_layout *layout, int64_t partition,
                   const struct chain *chain, struct chain_end *end)
{
    for (;; task_again(flow)) {
        bool is_guess = chain_guess_end(flow, chain, end);
        if (end->first || (!layout->keep_s && !layout->version)) return is_guess;
        if (end_by_head(flow, layout, partition, end)) return false;
    }
}

struct log_end log_end_get(struct flow *flow, const struct log_layout *layout, int64_t partition)
{
    struct chain chain = log_chain(flow, layout, partition);
    struct chain_end end;
    chain_read_end(flow, &chain, &end);
    if (!end.first && (layout->keep_s || layout->version))
        end.next = item_int(flow->arena, log_head_get(flow, layout, partition), "sequence", 0) + 1;
    return (struct log_end){
        .sequence = end.next - 1, .time_ms = end.time_ms, .is_sealed = end.is_sealed, .seal = end.seal};
}

int64_t log_last_number(struct flow *flow, const struct log_layout *layout, int64_t partition)
{
    task_query(flow, "#chain = :chain", ",'ProjectionExpression':'#first, #n'" QUERY_LAST, "':chain':%S",
               &log_events, log_key(flow, layout, partition));
    struct slice page = raw_first(flow->arena, flow_items(flow));
    return page.data ? item_int(flow->arena, page, "first", 0) + item_int(flow->arena, page, "n", 0) - 1 : 0;
}

/* ---- events ---- */

bool log_read_event(struct flow *flow, struct log_reader *reader)
{
    const struct log_layout *layout = reader->layout;
    int64_t oldest_ms = layout->keep_s && reader->partition != LOG_PARKED
                            ? flow->now_ms - layout->keep_s * 1000
                            : 0;
    struct raw_look look;
    struct slice key = SLICE_NONE, more = SLICE_NONE;
    if (!reader->entries.chain) {
        reader->chain = log_chain(flow, layout, reader->partition);
        reader->entries = (struct chain_reader){.chain = &reader->chain,
                                                .from = reader->from,
                                                .page = reader->page,
                                                .most = reader->most,
                                                .rewinds = reader->rewinds};
    }
    while (chain_read(flow, &reader->entries) && reader->entries.time_ms < oldest_ms) reader->entries.told--;
    if (!reader->entries.value.data) return false;
    raw_look_begin(&look, flow->arena, raw_member(flow->arena, reader->entries.value, "L"));
    raw_look_next(&look, NULL, &key);
    raw_look_next(&look, NULL, &reader->data);
    reader->sequence = reader->entries.number;
    reader->time_ms = reader->entries.time_ms;
    reader->page_of = reader->entries.is_last_of_page ? reader->sequence + 1 : reader->entries.first;
    reader->key = attribute_text(flow->arena, key);
    reader->origin = reader->reason = SLICE_NONE;
    if (raw_look_next(&look, NULL, &more)) {
        struct slice parked = raw_member(flow->arena, more, "M");
        reader->time_ms = item_int(flow->arena, parked, "time", 0);
        reader->reason = item_attribute(flow->arena, parked, "reason");
        reader->origin = flow_compose(flow, "{'M':{%A}}",
                                      item_members(flow->arena, parked, "partition sequence"));
    }
    return true;
}

void log_reader_put(struct flow *flow, const struct log_reader *reader)
{
    flow_put(flow, flow->body, "%,{'sequence':%d,'key':%s,'time':%s", reader->sequence, reader->key,
             moment_text(flow->arena, reader->time_ms));
    if (reader->origin.data)
        flow_put(flow, flow->body, ",'origin':%P,'reason':%P", reader->origin, reader->reason);
    flow_put(flow, flow->body, ",'data':%P}", reader->data);
}
