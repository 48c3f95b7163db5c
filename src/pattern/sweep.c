/* The walk over what is due; see sweep.h. */
#include "pattern/sweep.h"

#define PAGE  25 /* entries at a time */
#define PAGES 4  /* of one slot: what is left is for the next sweep, and this one's memory is freed before */

struct sweep_walk {
    const struct sweep_plan *plan;
    unsigned slot, slots; /* from any on, so that several servers begin at different ones */
    unsigned pages;       /* of this slot */
    struct slice last_key;
    struct raw_walk page;
    struct slice entry;
};

static flow_step page_taken;

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
    raw_walk_begin(&walk->page, flow->arena, flow_items(flow));
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
    if (raw_walk_next(&walk->page, NULL, &walk->entry))
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
