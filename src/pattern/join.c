/* Parties: one per topic that somebody leads just now. Those who wait stand in the order in which they came,
 * and the next round takes as many of them, from the first, as one transaction holds.
 *
 * A round begins when the one before it is over, so that it gathers as many as came meanwhile. Where more
 * wait than fit there is nothing to gather: then it begins as soon as the one before has handed on. Only the
 * last of the rounds under way has not: the front. So batons are handed on in the order of the rounds. */
#include "pattern/join.h"

#include <stdlib.h>

#include "base/fail.h"

struct party {
    uint64_t topic;
    struct party *next; /* of the bucket */
    struct seat *waiting, **waiting_end;
    size_t actions, bytes; /* of those who wait */
    struct seat *front;    /* the leader who has not handed on yet; NULL: all have */
    unsigned rounds;       /* under way */
    struct flow_baton baton;
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

static struct party *party_new(uint64_t topic)
{
    struct party *party = must_zero(1, sizeof *party);
    party->topic = topic;
    party->waiting_end = &party->waiting;
    return party;
}

bool joins_begin(struct joins *joins, struct seat *seat)
{
    pthread_mutex_lock(&joins->lock);
    struct party **place = party_find(joins, seat->flow->topic);
    bool leads = !*place;
    if (leads) *place = party_new(seat->flow->topic);
    struct party *party = seat->party = *place;
    seat->next = seat->followers = NULL;
    if (leads) {
        party->front = seat;
        party->rounds = 1;
    } else {
        *party->waiting_end = seat;
        party->waiting_end = &seat->next;
        party->actions += seat->flow->share.actions;
        party->bytes += seat->flow->share.bytes;
    }
    pthread_mutex_unlock(&joins->lock);
    return leads;
}

/* What the leader's steps see of its followers. */
static void round_tell(struct seat *leader, size_t count)
{
    struct flow *flow = leader->flow;
    flow->leads = true;
    flow->baton = leader->party->baton;
    flow->follower_count = count;
    flow->followers = arena_array(flow->arena, struct flow *, count);
    count = 0;
    for (struct seat *seat = leader->followers; seat; seat = seat->next)
        flow->followers[count++] = seat->flow;
}

/* More than one round holds. */
static bool party_is_full(const struct party *party)
{
    return party->actions > FLOW_ROUND_ACTIONS || party->bytes > FLOW_ROUND_BYTES;
}

/* The first of those who wait leads as many behind it as fit. */
static struct seat *round_begin(struct party *party)
{
    struct seat *leader = party->waiting, **end = &leader->next;
    size_t count = 0, actions = leader->flow->share.actions, bytes = leader->flow->share.bytes;
    for (struct seat *seat = leader->next; seat; seat = seat->next) {
        struct flow_share share = seat->flow->share;
        if (actions + share.actions > FLOW_ROUND_ACTIONS || bytes + share.bytes > FLOW_ROUND_BYTES) break;
        actions += share.actions;
        bytes += share.bytes;
        end = &seat->next;
        count++;
    }
    party->waiting = *end;
    if (!party->waiting) party->waiting_end = &party->waiting;
    party->actions -= actions;
    party->bytes -= bytes;
    party->front = leader;
    party->rounds++;
    *end = NULL;
    leader->followers = leader->next;
    leader->next = NULL;
    round_tell(leader, count);
    return leader;
}

struct seat *joins_hand_on(struct joins *joins, struct seat *leader)
{
    struct seat *next = NULL;
    pthread_mutex_lock(&joins->lock);
    struct party *party = leader->party;
    if (party && party->front == leader && party->rounds < JOIN_ROUNDS && party_is_full(party)) {
        party->baton = leader->flow->next_baton;
        next = round_begin(party);
    }
    pthread_mutex_unlock(&joins->lock);
    return next;
}

/* What the next leader may go by, now that this one has ended. */
static void baton_take(struct party *party, const struct seat *leader, int status)
{
    bool is_front = party->front == leader;
    if (is_front) {
        party->baton = leader->flow->next_baton;
        party->front = NULL;
    }
    if (status || (leader->flow->drops_baton && !is_front)) party->baton = (struct flow_baton){0};
}

struct seat *joins_end(struct joins *joins, struct seat *leader, int status, struct seat **next)
{
    struct seat *followers = leader->followers;
    ensure(leader->party);
    for (struct seat *seat = followers; seat; seat = seat->next) {
        seat->flow->leads = false;
        seat->flow->led_status = status;
        seat->party = NULL;
    }
    *next = NULL;
    pthread_mutex_lock(&joins->lock);
    struct party *party = leader->party;
    baton_take(party, leader, status);
    party->rounds--;
    if (!party->front && party->waiting && (!party->rounds || party_is_full(party)))
        *next = round_begin(party);
    if (!party->rounds) {
        *party_find(joins, party->topic) = party->next;
        free(party);
    }
    pthread_mutex_unlock(&joins->lock);
    leader->party = NULL;
    leader->followers = NULL;
    return followers;
}
