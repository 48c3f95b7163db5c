/* Slots of an index; see slots.h. */
#include "pattern/slots.h"

#include "base/hash.h"
#include "pattern/edit.h"

#define SAMPLE  256 /* one in so many is counted: the item takes 1,000 writes a second, too */
#define SAMPLES 16  /* then it is reckoned how fast they came */
#define SLOT_RATE                                                                                            \
    250 /* things a second in a slot: opened and closed they are two writes, so that is half of it */
#define STEP_MOST 4 /* so many times as many slots at once, whatever clocks say */

static uint64_t slots_topic(const struct slots *slots)
{
    return flow_topic("slots", slice_of(slots->table->name), slots->key);
}

int64_t slots_known(struct flow *flow, const struct slots *slots)
{
    int64_t number;
    if (!raw_int(flow_recall(flow, slots_topic(slots)), &number)) return SLOTS_LEAST;
    return number;
}

/* What the item says. */
static int64_t slots_take(struct flow *flow, const struct slots *slots, struct slice item)
{
    int64_t known = slots_known(flow, slots), number = item_int(flow->arena, item, "slots", SLOTS_LEAST);
    if (number <= known) return known;
    if (number > SLOTS_MOST) number = SLOTS_MOST;
    flow_remember(flow, slots_topic(slots), flow_compose(flow, "%d", number));
    return number;
}

int64_t slots_read(struct flow *flow, const struct slots *slots)
{
    task_call(flow, "GetItem", "{'TableName':%T,'Key':%A}", slots->table, slots->key);
    struct slice item = flow_item(flow);
    int64_t number = slots_take(flow, slots, item);
    if (number > item_int(flow->arena, item, "slots", SLOTS_LEAST)) /* the table was deleted and made again */
        edit_item(flow, slots->table, slots->key, SLICE("SET #slots = :number"),
                  SLICE("attribute_not_exists(#slots) or #slots < :number"), "':number':%N", number);
    return number;
}

int64_t slots_place(struct flow *flow, const struct slots *slots, struct slice id)
{
    return (int64_t)(hash_bytes(id) % (uint64_t)slots_known(flow, slots));
}

void slots_count(struct flow *flow, const struct slots *slots, struct slice id)
{
    bool is_sample = (hash_bytes(id) >> 32) % SAMPLE == 0;
    if (!is_sample || slots_known(flow, slots) == SLOTS_MOST) return;
    edit_item(
        flow, slots->table, slots->key,
        SLICE("SET #slots = if_not_exists(#slots, :least), #since = if_not_exists(#since, :now) ADD #opened "
              ":one"),
        SLICE_NONE, "':least':%N,':now':%N,':one':{'N':'1'}", (int64_t)SLOTS_LEAST, flow->now_ms);
    struct slice item = flow_item(flow);
    int64_t number = slots_take(flow, slots, item), opened = item_int(flow->arena, item, "opened", 0);
    int64_t since_ms = item_int(flow->arena, item, "since", 0), took_ms = flow->now_ms - since_ms;
    if (opened < SAMPLES) return;
    int64_t rate = opened * SAMPLE * 1000 / (took_ms > 0 ? took_ms : 1), wanted = number;
    while (rate > wanted * SLOT_RATE && wanted < SLOTS_MOST && wanted < number * STEP_MOST) wanted *= 2;
    if (edit_item(flow, slots->table, slots->key,
                  SLICE("SET #slots = :wanted, #since = :now, #opened = :none"),
                  SLICE("#since = :since and #slots <= :wanted"),
                  "':wanted':%N,':now':%N,':none':{'N':'0'},':since':%N", wanted, flow->now_ms, since_ms))
        slots_take(flow, slots, flow_item(flow));
}
