/* The walk over what is due, and the removal of many items; see sweep.h. */
#include "pattern/sweep.h"

#include "base/fail.h"

#define PAGE  25 /* entries at a time */
#define PAGES 4  /* of one slot: what is left is for the next sweep, and this one's memory is freed before */

struct due_walk due_begin(struct flow *flow, const struct flow_table *table, unsigned slots)
{
    return (struct due_walk){
        .table = table, .slot = (unsigned)flow_random_below(flow, slots), .slots = slots};
}

static void page_read(struct flow *flow, struct due_walk *walk)
{
    task_call(
        flow, "Query",
        "{'TableName':%T,'IndexName':'due','KeyConditionExpression':'#slot = :slot and #due <= :now',%#,"
        "'ExpressionAttributeValues':{':slot':{'S':'%d'},':now':%N},'Limit':%d%A}",
        walk->table, (int64_t)walk->slot, flow->now_ms, (int64_t)PAGE,
        walk->last_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", walk->last_key) : SLICE(""));
    walk->pages++;
    walk->last_key = flow_last_key(flow);
    raw_look_begin(&walk->page, flow->arena, flow_items(flow));
    walk->mark = arena_mark(flow->arena);
}

bool due_next(struct flow *flow, struct due_walk *walk, struct slice *entry)
{
    if (walk->pages) flow_rewind(flow, walk->mark);
    while (!walk->pages || !raw_look_next(&walk->page, NULL, entry)) {
        if (walk->pages == PAGES || (walk->pages && !walk->last_key.data)) {
            if (++walk->slots_done == walk->slots) return false;
            walk->slot = (walk->slot + 1) % walk->slots;
            walk->pages = 0;
            walk->last_key = SLICE_NONE;
        }
        page_read(flow, walk);
    }
    return true;
}

void write_items(struct flow *flow, struct slice requests)
{
    for (;;) {
        task_call(flow, "BatchWriteItem", "{'RequestItems':%A}", requests);
        requests = raw_member(flow->arena, flow->reply.body, "UnprocessedItems");
        if (!raw_count(flow->arena, requests)) return;
        task_again(flow);
    }
}

/* A batch of requests of one format. */
static void write_batch(struct flow *flow, const struct flow_table *table, const char *format,
                        const struct slice *what, size_t count)
{
    struct buf list = {0};
    ensure(count && count <= SWEEP_REMOVED);
    for (size_t i = 0; i < count; i++) {
        if (i) buf_byte(&list, ',');
        flow_put(flow, &list, format, what[i]);
    }
    struct slice requests = flow_compose(flow, "{%T:[%A]}", table, buf_view(&list));
    buf_free(&list);
    write_items(flow, requests);
}

void delete_items(struct flow *flow, const struct flow_table *table, const struct slice *keys, size_t count)
{
    write_batch(flow, table, "{'DeleteRequest':{'Key':%A}}", keys, count);
}

void put_items(struct flow *flow, const struct flow_table *table, const struct slice *items, size_t count)
{
    for (size_t at = 0; at < count; at += SWEEP_REMOVED) {
        size_t rest = count - at;
        write_batch(flow, table, "{'PutRequest':{'Item':%A}}", items + at,
                    rest < SWEEP_REMOVED ? rest : SWEEP_REMOVED);
    }
}

size_t delete_listed(struct flow *flow, const struct flow_table *table)
{
    struct slice keys[SWEEP_REMOVED];
    struct raw_look look;
    size_t count = 0;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (count < SWEEP_REMOVED && raw_look_next(&look, NULL, &keys[count])) count++;
    if (count) delete_items(flow, table, keys, count);
    return count;
}

/* ---- for what is still made of steps ---- */

struct sweep_walk {
    const struct sweep_plan *plan;
    unsigned slot, slots; /* from any on, so that several servers begin at different ones */
    unsigned pages;       /* of this slot */
    struct slice last_key;
    struct raw_look page;
    struct slice entry;
};

/* The batch that is being removed. */
struct sweep_removal {
    struct slice left; /* what the service did not get to */
    flow_step *then;
};

static flow_step page_taken, removal_taken;

static void page_ask(struct flow *flow)
{
    struct sweep_walk *walk = flow->sweep;
    walk->pages++;
    flow_call(
        flow, page_taken, "Query",
        "{'TableName':%T,'IndexName':'due','KeyConditionExpression':'#slot = :slot and #due <= :now',%#,"
        "'ExpressionAttributeValues':{':slot':{'S':'%d'},':now':%N},'Limit':%d%A}",
        walk->plan->table, (int64_t)walk->slot, flow->now_ms, (int64_t)PAGE,
        walk->last_key.data ? flow_compose(flow, ",'ExclusiveStartKey':%A", walk->last_key) : SLICE(""));
}

static void page_taken(struct flow *flow)
{
    struct sweep_walk *walk = flow->sweep;
    walk->last_key = flow_last_key(flow);
    raw_look_begin(&walk->page, flow->arena, flow_items(flow));
    sweep_next(flow);
}

static void slot_end(struct flow *flow)
{
    struct sweep_walk *walk = flow->sweep;
    if (++walk->slots == walk->plan->slots) {
        flow_finish(flow, 200);
        return;
    }
    walk->slot = (walk->slot + 1) % walk->plan->slots;
    walk->pages = 0;
    walk->last_key = SLICE_NONE;
    page_ask(flow);
}

void sweep_over(struct flow *flow, const struct sweep_plan *plan)
{
    struct sweep_walk *walk = flow->sweep = arena_new(flow->arena, struct sweep_walk);
    walk->plan = plan;
    walk->slot = (unsigned)flow_random_below(flow, plan->slots);
    page_ask(flow);
}

void sweep_next(struct flow *flow)
{
    struct sweep_walk *walk = flow->sweep;
    if (raw_look_next(&walk->page, NULL, &walk->entry))
        walk->plan->each(flow);
    else if (walk->last_key.data && walk->pages < PAGES)
        page_ask(flow);
    else
        slot_end(flow);
}

struct slice sweep_entry(const struct flow *flow)
{
    return flow->sweep->entry;
}

/* ---- removing ---- */

static void removal_resend(struct flow *flow)
{
    flow_call(flow, removal_taken, "BatchWriteItem", "{'RequestItems':%A}", flow->removal->left);
}

static void removal_taken(struct flow *flow)
{
    struct sweep_removal *removal = flow->removal;
    removal->left = raw_member(flow->arena, flow->reply.body, "UnprocessedItems");
    if (raw_count(flow->arena, removal->left))
        flow_again(flow, removal_resend);
    else
        removal->then(flow);
}

void sweep_remove(struct flow *flow, const struct flow_table *table, const struct slice *keys, size_t count,
                  flow_step *then)
{
    struct buf requests = {0};
    ensure(count && count <= SWEEP_REMOVED);
    if (!flow->removal) flow->removal = arena_new(flow->arena, struct sweep_removal);
    flow->removal->then = then;
    for (size_t i = 0; i < count; i++)
        buf_slice(&requests,
                  flow_compose(flow, "%A{'DeleteRequest':{'Key':%A}}", i ? SLICE(",") : SLICE(""), keys[i]));
    flow_call(flow, removal_taken, "BatchWriteItem", "{'RequestItems':{%T:[%A]}}", table,
              buf_view(&requests));
    buf_free(&requests);
}

bool sweep_remove_listed(struct flow *flow, const struct flow_table *table, flow_step *then)
{
    struct slice keys[SWEEP_REMOVED];
    struct raw_look look;
    size_t count = 0;
    raw_look_begin(&look, flow->arena, flow_items(flow));
    while (count < SWEEP_REMOVED && raw_look_next(&look, NULL, &keys[count])) count++;
    if (count) sweep_remove(flow, table, keys, count, then);
    return count > 0;
}
