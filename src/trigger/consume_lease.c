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

int64_t lease_margin_ms(const struct consumer *consumer)
{
    return consumer->settings.lease_ms / 4;
}

/* ---- whose to take ---- */

bool lease_is_free(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    const struct position *seen = &shard->seen;
    if (!seen->exists || !seen->owner[0]) return true;
    if (!consumer->settings.shared && dynamo_owner_is_here(slice_of(seen->owner))) return true;
    return seen->until_ms < consumer_now_ms(consumer) - lease_margin_ms(consumer);
}

bool lease_is_anothers(const struct shard *shard)
{
    bool is_open = shard->state == SHARD_FREE || shard->state == SHARD_WAITS;
    return is_open && !lease_is_free(shard) &&
           strcmp(shard->seen.owner, shard->reader->consumer->settings.owner) != 0;
}

/* Once: a server that has the data itself and one that reads it from elsewhere do not share, the first keeps. */
static void tell_of_others(struct reader *reader, const struct shard *shard)
{
    bool is_shared = reader->consumer->settings.shared;
    if (reader->has_told_of_others || is_shared != dynamo_owner_is_here(slice_of(shard->seen.owner))) return;
    reader->has_told_of_others = true;
    log_line("triggers: mapping %.*s: %s", SLICE_ARG(reader->mapping->id),
             is_shared ? "the server that has the data reads it and keeps it; start that one with "
                         "--no-functions, and it is read here"
                       : "another server reads it (--on); it is read here when that one is gone");
}

static struct lease_view view_of(const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    const struct position *seen = &shard->seen;
    const char *me = consumer->settings.owner;
    bool is_held = shard->tasks > 0;
    bool is_wanted = seen->wanted[0] && seen->wanted_until_ms > consumer_now_ms(consumer);
    return (struct lease_view){.owner = is_held                ? me
                                        : lease_is_free(shard) ? ""
                                                               : seen->owner,
                               .wanted = is_wanted && !is_held ? seen->wanted : "",
                               .is_open = is_held || shard->state == SHARD_FREE};
}

/* Decides for all shards of a reader at once. */
void leases_weigh(struct reader *reader)
{
    uint32_t count = 0, i = 0;
    int64_t look_us = consumer_ticks_us(reader->consumer) + reader->consumer->settings.lease_ms * 1000 / 3;
    for (const struct shard *shard = reader->shards; shard; shard = shard->next) count++;
    if (!count) return;
    struct lease_view *views = must_zero(count, sizeof *views);
    enum lease_wish *wishes = must_zero(count, sizeof *wishes);
    for (const struct shard *shard = reader->shards; shard; shard = shard->next) {
        if (lease_is_anothers(shard)) {
            if (reader->positions_us > look_us) reader->positions_us = look_us;
            tell_of_others(reader, shard);
        }
        views[i++] = view_of(shard);
    }
    lease_wishes(views, count, reader->consumer->settings.owner, wishes);
    i = 0;
    for (struct shard *shard = reader->shards; shard; shard = shard->next) shard->wish = wishes[i++];
    free(views);
    free(wishes);
}

/* ---- acting on it ---- */

/* Puts our name on a lease of somebody who has many. */
static void ask(struct shard *shard)
{
    struct consumer *consumer = shard->reader->consumer;
    shard->wish = LEASE_LEAVE;
    if (dynamo_owner_is_here(slice_of(shard->seen.owner))) return; /* it never gives one away */
    struct task_call *call = task_call_new("UpdateItem");
    put_position_ask(task_call_request(call), shard);
    if (task_send(call).fault != DYNAMO_FINE || shard->state != SHARD_FREE) return;
    snprintf(shard->seen.wanted, sizeof shard->seen.wanted, "%s", consumer->settings.owner);
    shard->seen.wanted_until_ms = consumer_now_ms(consumer) + consumer->settings.lease_ms;
}

struct task_moment leases_act(struct reader *reader)
{
    struct consumer *consumer = reader->consumer;
    struct task_moment due = TASK_NEVER;
    for (struct shard *shard = reader->shards; shard && !reader_is_leaving(reader); shard = shard->next) {
        if (shard->state != SHARD_FREE || shard->tasks || shard->wish == LEASE_LEAVE) continue;
        bool is_new = shard->wish == LEASE_TAKE && !shard->seen.exists;
        if (!task_moment_is_over(consumer->host, &shard->retry)) {
            if (shard->retry.ticks_us < due.ticks_us) due.ticks_us = shard->retry.ticks_us;
            if (shard->retry.now_ms < due.now_ms) due.now_ms = shard->retry.now_ms;
        } else if (is_new && consumer_ticks_us(consumer) < reader->create_us) {
            if (reader->create_us < due.ticks_us) due.ticks_us = reader->create_us;
        } else if (shard->wish == LEASE_TAKE) {
            shard->state = SHARD_TAKING;
            shard->tasks = 1;
            task_begin(consumer->host, shard_task, shard);
        } else {
            ask(shard);
        }
    }
    return due;
}
