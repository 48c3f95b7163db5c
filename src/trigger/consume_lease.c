/* Leases: who may move a position.
 *
 * A lease ends by itself: its holder counts it as over a margin early, a taker waits a margin longer, and the
 * fence keeps out whoever is wrong about the time. A server that has the data itself (DYNAMO_OWNER_HERE) holds
 * its leases without an end and need not renew them: others reach the data through it, so while it is
 * dead nobody reads. It takes those of its predecessor at once, and waits for those of others. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/log.h"
#include "trigger/consume.h"

#define TAKE_AGAIN_US 200000 /* after somebody was faster, or no answer came */

int64_t lease_margin_ms(const struct consumer *consumer)
{
    return consumer->settings.lease_ms / 4;
}

/* A lease counts from when it was asked for: the item's time is not later than that. */
void lease_renewed(struct strand *strand, int64_t asked_us)
{
    const struct consumer *consumer = strand->feed->consumer;
    int64_t lease_us = consumer->settings.lease_ms * 1000;
    strand->lease_us = consumer->settings.shared ? asked_us + lease_us - lease_us / 4 : NEVER_US;
    strand->renew_us = consumer->settings.shared ? asked_us + lease_us / 3 : NEVER_US;
}

bool lease_is_over(struct strand *strand)
{
    int64_t now_us = consumer_ticks_us(strand->feed->consumer);
    if (now_us >= strand->lease_us) return true;
    strand_wake_at(strand, strand->lease_us);
    if (now_us < strand->renew_us) strand_wake_at(strand, strand->renew_us); /* else it is being renewed */
    return false;
}

/* ---- whose to take ---- */

bool lease_is_free(const struct strand *strand)
{
    const struct consumer *consumer = strand->feed->consumer;
    const struct position *seen = &strand->seen;
    if (!seen->exists || !seen->owner[0]) return true;
    if (!consumer->settings.shared && dynamo_owner_is_here(slice_of(seen->owner))) return true;
    return seen->until_ms < consumer_now_ms(consumer) - lease_margin_ms(consumer);
}

bool lease_is_anothers(const struct strand *strand)
{
    bool is_open = strand->state == STRAND_FREE || strand->state == STRAND_WAITS;
    return is_open && !lease_is_free(strand) &&
           strcmp(strand->seen.owner, strand->feed->consumer->settings.owner) != 0;
}

/* Once: a server that has the data itself and one that reads it from elsewhere do not share, the first keeps. */
static void tell_of_others(struct feed *feed, const struct strand *strand)
{
    bool is_shared = feed->consumer->settings.shared;
    if (feed->has_told_of_others || is_shared != dynamo_owner_is_here(slice_of(strand->seen.owner))) return;
    feed->has_told_of_others = true;
    log_line("triggers: mapping %.*s: %s", SLICE_ARG(feed->mapping->id),
             is_shared ? "the server that has the data reads it and keeps it; start that one with "
                         "--no-functions, and it is read here"
                       : "another server reads it (--on); it is read here when that one is gone");
}

static struct lease_view view_of(const struct strand *strand)
{
    const struct consumer *consumer = strand->feed->consumer;
    const struct position *seen = &strand->seen;
    const char *me = consumer->settings.owner;
    bool is_held = strand_is_held(strand) || strand->state == STRAND_TAKING;
    bool is_wanted = seen->wanted[0] && seen->wanted_until_ms > consumer_now_ms(consumer);
    return (struct lease_view){.owner = is_held                 ? me
                                        : lease_is_free(strand) ? ""
                                                                : seen->owner,
                               .wanted = is_wanted && !is_held ? seen->wanted : "",
                               .is_open = is_held || strand->state == STRAND_FREE};
}

/* Decides for all strands of a feed at once. */
void leases_weigh(struct feed *feed)
{
    uint32_t count = 0, i = 0;
    int64_t look_us = consumer_ticks_us(feed->consumer) + feed->consumer->settings.lease_ms * 1000 / 3;
    for (const struct strand *strand = feed->strands; strand; strand = strand->next) count++;
    if (!count) return;
    struct lease_view *views = must_zero(count, sizeof *views);
    enum lease_wish *wishes = must_zero(count, sizeof *wishes);
    for (const struct strand *strand = feed->strands; strand; strand = strand->next) {
        if (lease_is_anothers(strand)) {
            if (feed->positions_us > look_us) feed->positions_us = look_us;
            tell_of_others(feed, strand);
        }
        views[i++] = view_of(strand);
    }
    feed_wake_at(feed, feed->positions_us);
    lease_wishes(views, count, feed->consumer->settings.owner, wishes);
    i = 0;
    for (struct strand *strand = feed->strands; strand; strand = strand->next, i++) {
        strand->wish = wishes[i];
        if (wishes[i] != LEASE_LEAVE) strand_touch(strand);
    }
    free(views);
    free(wishes);
}

/* ---- taking ---- */

static void look_again(struct strand *strand)
{
    struct feed *feed = strand->feed;
    strand->wish = LEASE_LEAVE;
    strand->state = STRAND_FREE;
    strand->retry = due_after_us(feed->consumer, TAKE_AGAIN_US);
    feed->positions_us = strand->retry.ticks_us;
    feed_touch(feed);
}

static bool take_attributes(struct errand *errand)
{
    static const char *const names[] = {"Attributes"};
    struct slice item, shard;
    return raw_members(&errand->arena, buf_view(&errand->reply), names, &item, 1) &&
           position_parse(item, &errand->arena, &errand->strand->seen, &shard);
}

static void taken(struct errand *errand)
{
    struct strand *strand = errand->strand;
    if (strand->state != STRAND_TAKING) return;
    if (errand_fault(errand) != DYNAMO_FINE || !take_attributes(errand)) {
        look_again(strand);
        return;
    }
    if (strand->seen.ended)
        strand_end(strand);
    else
        strand_hold(strand, errand->began_us);
}

static void created(struct errand *errand)
{
    struct strand *strand = errand->strand;
    struct position *seen = &strand->seen;
    if (strand->state != STRAND_TAKING) return;
    if (errand_fault(errand) != DYNAMO_FINE) {
        look_again(strand);
        return;
    }
    position_free(seen);
    *seen = (struct position){.exists = true, .fence = 1, .lanes = strand->lanes_asked};
    snprintf(seen->owner, sizeof seen->owner, "%s", errand->consumer->settings.owner);
    for (uint32_t i = 0; i < seen->lanes; i++) seen->at[i] = POINT_HORIZON;
    strand_hold(strand, errand->began_us);
}

static void take(struct strand *strand)
{
    bool exists = strand->seen.exists;
    struct errand *errand = errand_new(strand->feed, strand, exists ? taken : created);
    strand->state = STRAND_TAKING;
    if (exists) {
        put_position_take(&errand->request, strand);
        errand_call(errand, SLICE("UpdateItem"));
        return;
    }
    struct new_position fresh = {
        .at = POINT_HORIZON, .lanes = strand->feed->mapping->lanes, .is_owned = true};
    strand->lanes_asked = fresh.lanes;
    put_position_create(&errand->request, strand, &fresh);
    errand_call(errand, SLICE("PutItem"));
}

/* ---- asking for one, giving one back ---- */

static void asked(struct errand *errand)
{
    struct strand *strand = errand->strand;
    struct consumer *consumer = errand->consumer;
    if (errand_fault(errand) != DYNAMO_FINE || strand->state != STRAND_FREE) return;
    snprintf(strand->seen.wanted, sizeof strand->seen.wanted, "%s", consumer->settings.owner);
    strand->seen.wanted_until_ms = consumer_now_ms(consumer) + consumer->settings.lease_ms;
}

static void ask(struct strand *strand)
{
    strand->wish = LEASE_LEAVE;
    if (dynamo_owner_is_here(slice_of(strand->seen.owner))) return; /* it never gives one away */
    struct errand *errand = errand_new(strand->feed, strand, asked);
    put_position_ask(&errand->request, strand);
    errand_call(errand, SLICE("UpdateItem"));
}

void lease_attend(struct strand *strand)
{
    int64_t now_us = consumer_ticks_us(strand->feed->consumer);
    if (!feed_is_running(strand->feed) || strand->wish == LEASE_LEAVE) return;
    if (!due_is_over(strand->feed->consumer, &strand->retry))
        strand_wake_at(strand, strand->retry.ticks_us);
    else if (strand->wish == LEASE_TAKE && !strand->seen.exists && now_us < strand->feed->create_us)
        strand_wake_at(strand, strand->feed->create_us);
    else if (strand->wish == LEASE_TAKE)
        take(strand);
    else
        ask(strand);
}

static void released(struct errand *errand)
{
    (void)errand; /* gone either way: what is not given back ends by itself */
}

/* Whoever asked for it has time to take it before we look at it again. */
void lease_release(struct strand *strand)
{
    struct consumer *consumer = strand->feed->consumer;
    if (consumer->settings.shared) {
        struct errand *errand = errand_new(strand->feed, strand, released);
        put_position_release(&errand->request, strand);
        errand_call(errand, SLICE("UpdateItem"));
        strand->retry = due_after_us(consumer, consumer->settings.lease_ms * 1000);
    }
    strand_drop(strand);
    strand->seen.exists = true;
}
