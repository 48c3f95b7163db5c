/* See waits.h. Two heaps of moments (the monotonic clock, and the one that may jump), and three tables of
 * rings: by topic, by thing, by kin. */
#include "pattern/waits.h"

#include <stdlib.h>

#include "base/fail.h"

#define POLL_GROWTH_MOST 5 /* a kin that sees nothing new looks less often, down to a fifth */

/* Those who make the same look; it lives while somebody waits in it or scouts for it. */
struct waits_kin {
    uint64_t id;
    struct ring in_bucket, members;
    struct waits_alarm alarm_ms, alarm_us;
    int64_t change_ms; /* as the last one has seen it */
    bool scout_is_out;
    unsigned growth; /* of the time between looks, from 1 */
};

/* ---- opening ---- */

void waits_init(struct waits *waits, int64_t poll_ms)
{
    waits->poll_ms = poll_ms;
    for (size_t i = 0; i < WAITS_BUCKETS; i++) {
        ring_init(&waits->topics[i]);
        ring_init(&waits->things[i]);
        ring_init(&waits->kins[i]);
    }
}

void waits_free(struct waits *waits)
{
    ensure(!waits->count && !waits->by_ms.count && !waits->by_us.count);
    heap_free(&waits->by_ms);
    heap_free(&waits->by_us);
}

/* ---- kins ---- */

static struct waits_kin *kin_find(const struct waits *waits, uint64_t id)
{
    const struct ring *head = &waits->kins[id % WAITS_BUCKETS];
    ring_each (struct waits_kin, kin, in_bucket, head)
        if (kin->id == id) return kin;
    return NULL;
}

static struct waits_kin *kin_need(struct waits *waits, uint64_t id)
{
    struct waits_kin *kin = kin_find(waits, id);
    if (kin) return kin;
    kin = must_zero(1, sizeof *kin);
    kin->id = id;
    kin->growth = 1;
    kin->change_ms = WAITS_NEVER;
    kin->alarm_ms.is_kin = kin->alarm_us.is_kin = true;
    ring_init(&kin->members);
    ring_append(&waits->kins[id % WAITS_BUCKETS], &kin->in_bucket);
    return kin;
}

/* Looks again after a while that grows, spread a little so that kins do not march in step. */
static void kin_arm(struct waits *waits, struct waits_kin *kin, int64_t now_us)
{
    if (!waits->poll_ms || kin->scout_is_out) return;
    int64_t poll_us = waits->poll_ms * 1000 * kin->growth;
    heap_set(&waits->by_us, &kin->alarm_us.place, now_us + poll_us - (int64_t)(kin->id % 64) * poll_us / 256);
}

static void kin_settle(struct waits *waits, struct waits_kin *kin)
{
    if (!ring_empty(&kin->members)) return;
    heap_remove(&waits->by_ms, &kin->alarm_ms.place);
    heap_remove(&waits->by_us, &kin->alarm_us.place);
    if (kin->scout_is_out) return;
    ring_remove(&kin->in_bucket);
    free(kin);
}

/* ---- in and out ---- */

static void take(struct waits *waits, struct wait *wait)
{
    struct waits_kin *kin = wait->of;
    ensure(wait->is_in);
    wait->is_in = false;
    wait->of = NULL;
    waits->count--;
    ring_remove(&wait->by_topic);
    ring_remove(&wait->by_thing);
    ring_remove(&wait->by_kin);
    heap_remove(&waits->by_ms, &wait->alarm_ms.place);
    heap_remove(&waits->by_us, &wait->alarm_us.place);
    if (kin) kin_settle(waits, kin);
}

static void push(struct waits *waits, struct wait *wait, struct wait **list)
{
    take(waits, wait);
    wait->next = *list;
    *list = wait;
}

/* Takes out those who have seen something else than the scout; `all`: whatever they have seen. */
static struct wait *kin_take(struct waits *waits, struct waits_kin *kin, bool all, uint64_t seen)
{
    struct wait *list = NULL;
    ring_each (struct wait, wait, by_kin, &kin->members)
        if (all || wait->seen != seen) push(waits, wait, &list);
    return list;
}

enum scouted { SCOUT_IS_BACK, SCOUT_ENDED, SCOUT_RAN_OUT_OF_TIME };

static struct wait *scout_returns(struct waits *waits, struct wait *scout, enum scouted how, int64_t now_us)
{
    struct waits_kin *kin = scout->scouts_for;
    struct wait *list = NULL;
    if (how != SCOUT_RAN_OUT_OF_TIME) list = kin_take(waits, kin, how == SCOUT_ENDED, scout->seen);
    bool is_quiet = how == SCOUT_IS_BACK && !list && scout->seen == scout->seen_before;
    kin->growth = !is_quiet ? 1 : kin->growth < POLL_GROWTH_MOST ? kin->growth + 1 : kin->growth;
    scout->scouts_for = NULL;
    kin->scout_is_out = false;
    if (!ring_empty(&kin->members)) {
        heap_set(&waits->by_ms, &kin->alarm_ms.place, kin->change_ms);
        kin_arm(waits, kin, now_us);
    }
    if (how != SCOUT_IS_BACK) kin_settle(waits, kin);
    return list;
}

static void kin_join(struct waits *waits, struct wait *wait, int64_t now_us)
{
    struct waits_kin *kin = wait->of = kin_need(waits, wait->kin);
    bool is_first = ring_empty(&kin->members);
    ring_append(&kin->members, &wait->by_kin);
    kin->change_ms = wait->change_ms;
    if (kin->scout_is_out) return;
    heap_set(&waits->by_ms, &kin->alarm_ms.place, wait->change_ms);
    if (is_first) kin_arm(waits, kin, now_us);
}

struct wait *waits_add(struct waits *waits, struct wait *wait, int64_t now_us)
{
    struct wait *list = NULL;
    struct waits_kin *scouted = wait->kin ? wait->scouts_for : NULL; /* who only pauses is not back yet */
    ensure(!wait->is_in);
    bool is_back = scouted && scouted->id == wait->kin;
    if (scouted) list = scout_returns(waits, wait, is_back ? SCOUT_IS_BACK : SCOUT_ENDED, now_us);
    wait->is_in = true;
    waits->count++;
    ring_init(&wait->by_kin);
    ring_init(&wait->by_topic);
    ring_init(&wait->by_thing);
    if (wait->topic) ring_append(&waits->topics[wait->topic % WAITS_BUCKETS], &wait->by_topic);
    if (wait->thing) ring_append(&waits->things[wait->thing % WAITS_BUCKETS], &wait->by_thing);
    heap_set(&waits->by_ms, &wait->alarm_ms.place, wait->until_ms);
    heap_set(&waits->by_us, &wait->alarm_us.place, wait->until_us);
    if (wait->kin) kin_join(waits, wait, now_us);
    return list;
}

struct wait *waits_end(struct waits *waits, struct wait *wait, bool by_time, int64_t now_us)
{
    ensure(!wait->is_in);
    if (!wait->scouts_for) return NULL;
    return scout_returns(waits, wait, by_time ? SCOUT_RAN_OUT_OF_TIME : SCOUT_ENDED, now_us);
}

/* Sends one of them to look. */
static struct wait *kin_scout(struct waits *waits, struct waits_kin *kin)
{
    ensure(!kin->scout_is_out && !ring_empty(&kin->members));
    struct wait *scout = ring_owner(kin->members.next, struct wait, by_kin);
    kin->scout_is_out = true;
    heap_remove(&waits->by_ms, &kin->alarm_ms.place);
    heap_remove(&waits->by_us, &kin->alarm_us.place);
    take(waits, scout);
    scout->scouts_for = kin;
    scout->seen_before = scout->seen;
    return scout;
}

void waits_hint(struct waits *waits, uint64_t id, int64_t change_ms)
{
    struct waits_kin *kin = kin_find(waits, id);
    if (!kin || change_ms >= kin->change_ms) return;
    kin->change_ms = change_ms;
    if (!kin->scout_is_out) heap_set(&waits->by_ms, &kin->alarm_ms.place, change_ms);
}

/* ---- taking ---- */

bool waits_take(struct waits *waits, struct wait *wait)
{
    if (!wait->is_in) return false;
    take(waits, wait);
    return true;
}

struct wait *waits_take_topic(struct waits *waits, uint64_t topic)
{
    struct wait *list = NULL;
    ring_each (struct wait, wait, by_topic, &waits->topics[topic % WAITS_BUCKETS])
        if (wait->topic == topic) push(waits, wait, &list);
    return list;
}

struct wait *waits_take_thing(struct waits *waits, uint64_t thing)
{
    struct wait *list = NULL;
    ring_each (struct wait, wait, by_thing, &waits->things[thing % WAITS_BUCKETS])
        if (wait->thing == thing) push(waits, wait, &list);
    return list;
}

bool waits_has_thing(const struct waits *waits, uint64_t thing)
{
    ring_each (const struct wait, wait, by_thing, &waits->things[thing % WAITS_BUCKETS])
        if (wait->thing == thing) return true;
    return false;
}

struct wait *waits_take_things(struct waits *waits)
{
    struct wait *list = NULL;
    for (size_t i = 0; i < WAITS_BUCKETS; i++)
        while (!ring_empty(&waits->things[i]))
            push(waits, ring_owner(waits->things[i].next, struct wait, by_thing), &list);
    return list;
}

static void heap_take(struct waits *waits, struct heap *heap, int64_t now, struct wait **list)
{
    bool by_ms = heap == &waits->by_ms;
    while (heap->count && heap_due(heap) <= now) {
        struct waits_alarm *alarm = ring_owner(heap_first(heap), struct waits_alarm, place);
        if (alarm->is_kin) {
            struct waits_kin *kin = by_ms ? ring_owner(alarm, struct waits_kin, alarm_ms)
                                          : ring_owner(alarm, struct waits_kin, alarm_us);
            struct wait *scout = kin_scout(waits, kin);
            scout->next = *list;
            *list = scout;
        } else {
            push(waits,
                 by_ms ? ring_owner(alarm, struct wait, alarm_ms) : ring_owner(alarm, struct wait, alarm_us),
                 list);
        }
    }
}

struct wait *waits_take_due(struct waits *waits, int64_t now_us, int64_t now_ms)
{
    struct wait *list = NULL;
    heap_take(waits, &waits->by_ms, now_ms, &list);
    heap_take(waits, &waits->by_us, now_us, &list);
    return list;
}

/* Everybody waits for some moment. */
struct wait *waits_take_all(struct waits *waits)
{
    struct wait *list = NULL;
    heap_take(waits, &waits->by_ms, WAITS_NEVER, &list);
    heap_take(waits, &waits->by_us, WAITS_NEVER, &list);
    ensure(!waits->count);
    return list;
}

int64_t waits_next_us(const struct waits *waits, int64_t now_us, int64_t now_ms, int64_t tick_us)
{
    int64_t next_us = heap_due(&waits->by_us);
    if (!waits->by_ms.count) return next_us;
    int64_t left_ms = heap_due(&waits->by_ms) - now_ms;
    int64_t tick = left_ms <= 0               ? now_us
                   : left_ms < tick_us / 1000 ? now_us + left_ms * 1000
                                              : now_us + tick_us;
    return tick < next_us ? tick : next_us;
}
