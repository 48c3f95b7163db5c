/* The walk over what is due, and many items at once; see sweep.h. */
#include "pattern/sweep.h"

#include "base/fail.h"

#define PAGE  25 /* entries at a time */
#define PAGES 4  /* of one slot: what is left is for the next sweep, and this one's memory is freed before */

struct due_walk due_begin(struct flow *flow, const struct flow_table *table, const struct slots *slots)
{
    uint64_t known = slots ? (uint64_t)slots_known(flow, slots) : 1;
    return (struct due_walk){.table = table, .slots = slots, .slot = (int64_t)flow_random_below(flow, known)};
}

static void page_read(struct flow *flow, struct due_walk *walk)
{
    task_query(flow, "#slot = :slot and #due <= :now", ",'IndexName':'due','Limit':%d" READ_FROM,
               "':slot':{'S':'%d'},':now':%N", walk->table, (int64_t)PAGE, walk->last_key, walk->slot,
               flow->now_ms);
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
            if (!walk->slots_done) walk->slot_count = walk->slots ? slots_read(flow, walk->slots) : 1;
            if (++walk->slots_done == walk->slot_count) return false;
            walk->slot = (walk->slot + 1) % walk->slot_count;
            walk->pages = 0;
            walk->last_key = SLICE_NONE;
        }
        page_read(flow, walk);
    }
    return true;
}

struct item_batch get_items_begin(struct flow *flow, const struct flow_table *table, struct slice keys,
                                  const char *members)
{
    struct item_batch batch = {
        .left = flow_compose(flow, "{%T:{'Keys':[%A]%A}}", table, keys, flow_compose(flow, members))};
    raw_look_begin(&batch.page, flow->arena, SLICE_NONE);
    return batch;
}

bool get_items_next(struct flow *flow, struct item_batch *batch, struct slice *item)
{
    while (!raw_look_next(&batch->page, NULL, item)) {
        if (!raw_count(flow->arena, batch->left)) return false;
        if (batch->is_further) task_again(flow);
        batch->is_further = true;
        task_call(flow, "BatchGetItem", "{'RequestItems':%A}", batch->left);
        batch->left = raw_member(flow->arena, flow->reply.body, "UnprocessedKeys");
        raw_look_begin(&batch->page, flow->arena,
                       raw_first(flow->arena, raw_member(flow->arena, flow->reply.body, "Responses")));
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
    struct slice keys[SWEEP_REMOVED], key;
    size_t count = 0;
    raw_each (flow->arena, flow_items(flow), &key)
        if (count < SWEEP_REMOVED) keys[count++] = key;
    if (count) delete_items(flow, table, keys, count);
    return count;
}
