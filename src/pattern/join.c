/* Parties: one per topic that somebody leads just now. Those who wait stand in the order in which they came,
 * and the next round takes as many of them, from the first, as one round holds. It begins when the one before it is
 * over, so that it gathers as many as came meanwhile. Who of them leads makes no difference to them, but to the time
 * that it takes: one whose thread has just ended the round before need not be woken. */
#include "pattern/join.h"

#include <stdlib.h>

#include "base/fail.h"

struct party {
    uint64_t topic;
    struct party *next; /* of the bucket */
    struct seat *waiting, **waiting_end;
};

void joins_open(struct joins *joins)
{
    *joins = (struct joins){0};
    ensure(pthread_mutex_init(&joins->lock, NULL) == 0);
}

void joins_close(struct joins *joins)
{
    for (size_t i = 0; i < JOIN_BUCKETS; i++) ensure(!joins->parties[i]);
    pthread_mutex_destroy(&joins->lock);
}

/* Where the topic's party is, or would be. Under the lock, as all below. */
static struct party **party_find(struct joins *joins, uint64_t topic)
{
    struct party **at = &joins->parties[topic % JOIN_BUCKETS];
    while (*at && (*at)->topic != topic) at = &(*at)->next;
    return at;
}

bool joins_begin(struct joins *joins, struct seat *seat)
{
    pthread_mutex_lock(&joins->lock);
    struct party **place = party_find(joins, seat->flow->topic), *party = *place;
    bool leads = !party;
    if (leads) {
        party = *place = must_zero(1, sizeof *party);
        party->topic = seat->flow->topic;
        party->waiting_end = &party->waiting;
    }
    seat->party = party;
    seat->next = seat->followers = NULL;
    if (!leads) {
        *party->waiting_end = seat;
        party->waiting_end = &seat->next;
    }
    pthread_mutex_unlock(&joins->lock);
    return leads;
}

/* The first of those who wait, as many as fit, make the next round. */
static struct seat *round_begin(struct party *party, const void *thread)
{
    struct seat *members = party->waiting, **leads = &members, **end = &members->next;
    size_t bytes = members->flow->share.bytes, follower_count = 0, count = 0;
    for (struct seat *seat = members->next; seat; seat = seat->next) {
        bytes += seat->flow->share.bytes;
        if (bytes > FLOW_ROUND_BYTES) break;
        if ((*leads)->thread != thread && seat->thread == thread) leads = end;
        end = &seat->next;
        follower_count++;
    }
    party->waiting = *end;
    if (!party->waiting) party->waiting_end = &party->waiting;
    *end = NULL;
    struct seat *leader = *leads;
    *leads = leader->next;
    leader->next = NULL;
    leader->followers = members;
    struct flow *flow = leader->flow;
    flow->leads = true;
    flow->follower_count = follower_count;
    flow->followers = arena_array(flow->arena, struct flow *, follower_count);
    for (struct seat *seat = members; seat; seat = seat->next) flow->followers[count++] = seat->flow;
    return leader;
}

struct seat *joins_end(struct joins *joins, struct seat *leader, int status, struct seat **next)
{
    struct seat *followers = leader->followers;
    struct party *party = leader->party;
    ensure(party);
    for (struct seat *seat = followers; seat; seat = seat->next) {
        seat->flow->leads = false;
        seat->flow->led_status = status;
        seat->party = NULL;
    }
    pthread_mutex_lock(&joins->lock);
    *next = party->waiting ? round_begin(party, leader->thread) : NULL;
    if (!*next) {
        *party_find(joins, party->topic) = party->next;
        free(party);
    }
    pthread_mutex_unlock(&joins->lock);
    leader->party = NULL;
    leader->followers = NULL;
    return followers;
}
