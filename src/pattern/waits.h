/* Flows that wait, by what they wait for. Waiting costs nothing: who waits for a topic is found by the topic,
 * who waits for a moment stands in an order of moments, and nobody is touched before its time.
 *
 * What flows of this process write wakes topics; what others write into the database of this process is told
 * by the engine as things (flow.h). On a remote database nobody tells of what others write, so somebody has
 * to look again and again. Those who would make the same look are a *kin*: one of them, the scout, looks for
 * all of them, and less and less often while nothing changes. The scout comes back with a digest of what it
 * has seen, and those of its kin who have last seen something else look for themselves. So do all when the
 * scout has found what it waited for and does not come back.
 *
 * The caller's lock protects all of it; time is given. Lists of waits that are to go on are linked by `next`. */
#ifndef PATTERN_WAITS_H
#define PATTERN_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/ring.h"

#define WAITS_NEVER HEAP_NEVER

/* A moment in a heap. */
struct waits_alarm {
    struct heap_place place;
    bool is_kin;
};

struct waits_kin;

/* One that waits. Zeroed before it is added the first time. */
struct wait {
    /* given to waits_add */
    uint64_t topic, thing, kin; /* 0: none */
    int64_t until_ms;           /* by the clock; */
    int64_t until_us;           /* monotonic; both may be WAITS_NEVER */
    int64_t change_ms;          /* when somebody of the kin should look; WAITS_NEVER */
    uint64_t seen;              /* the digest of its look */
    /* the list that it was answered in */
    struct wait *next;
    /* private */
    bool is_in;
    struct ring by_topic, by_thing, by_kin;
    struct waits_alarm alarm_ms, alarm_us;
    struct waits_kin *of, *scouts_for;
    uint64_t seen_before; /* by the scout */
};

#define WAITS_BUCKETS 4096

struct waits {
    int64_t poll_ms; /* the shortest time between two looks of a kin; 0: no looks without a reason */
    size_t count;
    struct heap by_ms, by_us;
    struct ring topics[WAITS_BUCKETS], things[WAITS_BUCKETS], kins[WAITS_BUCKETS];
};

void waits_init(struct waits *waits, int64_t poll_ms);
void waits_free(struct waits *waits); /* nobody waits any more */

/* Begins to wait. Answers those who must look, because the scout has come back with news. */
struct wait *waits_add(struct waits *waits, struct wait *wait, int64_t now_us);
/* It has ended without waiting again. Answers as above; `by_time`: it tells nothing about the others. */
struct wait *waits_end(struct waits *waits, struct wait *wait, bool by_time, int64_t now_us);

/* Take out and answer who waits for it; NULL: nobody. */
struct wait *waits_take_topic(struct waits *waits, uint64_t topic);
struct wait *waits_take_thing(struct waits *waits, uint64_t thing);
struct wait *waits_take_due(struct waits *waits, int64_t now_us, int64_t now_ms);
struct wait *waits_take_all(struct waits *waits);
/* All who wait for any thing, not only for time. */
struct wait *waits_take_things(struct waits *waits);
/* This one; false: it does not wait. */
bool waits_take(struct waits *waits, struct wait *wait);
/* What the kin waits for changes by itself at this moment. */
void waits_hint(struct waits *waits, uint64_t kin, int64_t change_ms);
bool waits_has_thing(const struct waits *waits, uint64_t thing);

/* When the next is due, monotonic; WAITS_NEVER. The clock may jump, so where somebody waits for a moment by the
 * clock it is at most `tick_us` from now. */
int64_t waits_next_us(const struct waits *waits, int64_t now_us, int64_t now_ms, int64_t tick_us);

#endif
