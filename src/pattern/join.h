/* Rounds of flows that do the same thing at the same time (flow_join): who leads, and for whom. */
#ifndef PATTERN_JOIN_H
#define PATTERN_JOIN_H

#include <pthread.h>

#include "pattern/flow.h"

#define JOIN_BUCKETS 256

struct party;

/* A flow's place in a party; its runner's. */
struct seat {
    struct flow *flow;
    struct party *party; /* NULL: in none */
    struct seat *next;   /* who waits behind it, or follows the same leader */
    struct seat *followers;
    const void *thread; /* by which its flow goes on; NULL: by any */
};

struct joins {
    pthread_mutex_t lock;
    struct party *parties[JOIN_BUCKETS]; /* by topic; only those that somebody leads */
};

void joins_open(struct joins *joins);
void joins_close(struct joins *joins);

/* The flow wants to join. True: it leads, and goes on at once. False: it waits until joins_end hands it out.
 */
bool joins_begin(struct joins *joins, struct seat *seat);
/* The leader's round is over: answers those who followed, as a list, and in *next who leads now (NULL: nobody waits),
 * with its followers filled: one of the same thread as the leader where there is one, which can begin at once.
 * `status`: how the leader ended, 0 when it went well. */
struct seat *joins_end(struct joins *joins, struct seat *leader, int status, struct seat **next);

#endif
