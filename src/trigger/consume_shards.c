/* The shards of a reader's stream: which there are, which continues which, what the items say of them, and whose leases
 * to take.
 *
 * A shard waits until the one that it continues is done, or is not there any more: the service forgets
 * shards whose records have all been cut off. */
#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/log.h"
#include "trigger/consume.h"

#define LOST_STREAM_US 5000000  /* between looks for a stream that is not there */
#define FORGET_US      60000000 /* descriptions may be so much older than we think, and more */
#define MISSED_US      30000000 /* time enough to hear that a mapping was deleted */

struct shard *find_shard(const struct reader *reader, struct slice id)
{
    struct shard *shard = reader->shards;
    while (shard && !slice_equal(slice_of(shard->id), id)) shard = shard->next;
    return shard;
}

/* ---- DescribeStream ---- */

/* {"ShardId":...,"ParentShardId":...,"SequenceNumberRange":{...}} */
static void take_shard(struct reader *reader, struct slice raw)
{
    static const char *const names[] = {"ShardId", "ParentShardId", "SequenceNumberRange"};
    struct arena *arena = task_arena();
    struct slice raws[3];
    if (!raw_members(arena, raw, names, raws, 3)) return;
    struct slice id = raw_string(arena, raws[0]), parent = raw_string(arena, raws[1]);
    struct slice end = raw_member(arena, raws[2], "EndingSequenceNumber");
    if (!id.len || id.len > LIMIT_SHARD_ID_BYTES || parent.len > LIMIT_SHARD_ID_BYTES) return;
    struct shard *shard = find_shard(reader, id);
    if (!shard) shard = add_shard(reader, id);
    if (parent.len) memcpy(shard->parent, parent.data, parent.len);
    shard->parent[parent.len] = 0;
    shard->listed_at = reader->look;
    if (end.len && !shard->is_closed) shard->has_more = true; /* to be read to its end */
    shard->is_closed = end.len > 0;
    shard_touch(shard);
}

/* *next: where the next page begins, raw. */
static bool take_description(struct reader *reader, struct slice reply, struct slice *next)
{
    static const char *const names[] = {"Shards", "LastEvaluatedShardId", "StreamStatus", "KeySchema"};
    struct arena *arena = task_arena();
    struct slice raws[4], raw;
    if (!raw_is_json(arena, reply) ||
        !raw_members(arena, raw_member(arena, reply, "StreamDescription"), names, raws, 4))
        return false;
    if (raw_kind(raws[0]) != JSON_ARRAY) return false;
    raw_each (arena, raws[3], &raw) {
        if (!slice_equal(raw_string(arena, raw_member(arena, raw, "KeyType")), SLICE("HASH"))) continue;
        reader->hash_key.len = 0;
        buf_slice(&reader->hash_key, raw_string(arena, raw_member(arena, raw, "AttributeName")));
    }
    raw_each (arena, raws[0], &raw) take_shard(reader, raw);
    reader->is_disabled_stream = slice_equal(raw_string(arena, raws[2]), SLICE("DISABLED"));
    *next = arena_copy(arena, raws[1]);
    return true;
}

static struct task_reply describe(struct reader *reader, struct slice from, const char *child_of)
{
    struct task_call *call = task_call_new("DescribeStream");
    struct buf *request = task_call_request(call);
    compose(request, "{'StreamArn':%A", buf_view(&reader->arn_json));
    if (from.len) compose(request, ",'ExclusiveStartShardId':%A", from);
    if (child_of) compose(request, ",'ShardFilter':{'Type':'CHILD_SHARDS','ShardId':%s}", slice_of(child_of));
    buf_byte(request, '}');
    return task_send(call);
}

/* Why the shards could not be listed; all of them are to be looked for after a while. */
static void look_failed(struct reader *reader, const struct task_reply *reply, bool is_for_one)
{
    reader->must_look_again = true;
    reader->look_us = 0;
    if (reply->fault == DYNAMO_REFUSED && is_for_one) { /* ShardFilter is younger than some services */
        reader->knows_filter = false;
    } else if (reply->fault == DYNAMO_MISSING) {
        reader->is_lost_stream = true;
        reader->failures = 0;
        reader_note(reader, "PROBLEM: The stream was not found");
        reader_pause(reader, LOST_STREAM_US);
    } else {
        if (reply->fault == DYNAMO_FINE)
            reader_note(reader, "PROBLEM: The stream's description is not of the service's form");
        else
            reader_note(reader, "PROBLEM: The stream cannot be described: %.*s",
                        SLICE_ARG(task_reply_message(reply)));
        reader_failed(reader);
    }
}

/* For the children of one shard, where that is all we want to know, or for all. */
static bool look(struct reader *reader)
{
    bool is_for_one = reader->stage == READER_RUNS && reader->wanted_of[0] && !reader->must_look_again &&
                      reader->knows_filter;
    char child_of[sizeof reader->wanted_of];
    int64_t began_us = consumer_ticks_us(reader->consumer);
    struct slice next = SLICE("");
    memcpy(child_of, reader->wanted_of, sizeof child_of);
    reader->wanted_of[0] = 0;
    reader->must_look_again = false;
    if (!is_for_one) reader->look++;
    do {
        struct task_reply reply = describe(reader, next, is_for_one ? child_of : NULL);
        if (reader_is_leaving(reader)) return false;
        if (reply.fault != DYNAMO_FINE || !take_description(reader, reply.body, &next)) {
            look_failed(reader, &reply, is_for_one);
            return false;
        }
    } while (next.len);
    reader->failures = 0;
    reader->is_lost_stream = false;
    if (is_for_one) return true;
    reader->looked = reader->look; /* only all of them tell which are gone */
    reader->looked_us = began_us;
    return true;
}

bool look_for_shards(struct reader *reader)
{
    struct arena_mark mark = arena_mark(task_arena());
    bool is_done = look(reader);
    arena_rewind(task_arena(), mark);
    return is_done;
}

/* ---- what the items say ---- */

/* While we hold the lease the item is ours, and only two things of it are news: that somebody asks for it,
 * and that it is ours no more. */
static void see_held(struct shard *shard, const struct position *position, int64_t asked_us)
{
    if (asked_us <= shard->held_us) return;
    if (position->fence > shard->seen.fence) {
        shard_lose(shard);
    } else if (position->wanted[0] && position->wanted_until_ms > consumer_now_ms(shard->reader->consumer)) {
        shard->is_handing_over = true;
        shard_touch(shard);
    }
}

/* Another server has found a shard that we have not. Until we know its parents we could not take it over. */
static struct shard *shard_found(struct reader *reader, struct slice id)
{
    if (reader->stage == READER_RUNS) {
        reader->must_look_again = true;
        reader->look_us = 0;
    }
    return add_shard(reader, id);
}

static void take_position(struct reader *reader, struct slice raw, int64_t asked_us)
{
    struct position position = {0};
    struct slice id;
    bool is_position = position_parse(raw, task_arena(), &position, &id);
    if (slice_equal(id, SLICE("start"))) {
        reader->has_start = true;
        reader->start_moved = position.moved;
    }
    reader_meet(reader, &position);
    if (is_position && id.len <= LIMIT_SHARD_ID_BYTES) {
        struct shard *shard = find_shard(reader, id);
        if (!shard) shard = shard_found(reader, id);
        shard->seen_at = reader->position_looks;
        if (shard_is_held(shard)) {
            see_held(shard, &position, asked_us);
        } else if (shard->state == SHARD_WAITS || shard->state == SHARD_FREE) {
            position_free(&shard->seen);
            shard->seen = position;
            position = (struct position){0};
        }
    }
    position_free(&position);
}

/* A position that is not there any more was removed with its table, or with its mapping, of which another
 * server has heard before us. */
static void miss_positions(struct reader *reader, int64_t asked_us)
{
    bool shared = reader->consumer->settings.shared;
    for (struct shard *shard = reader->shards; shard; shard = shard->next) {
        if (shard->seen_at == reader->position_looks || !shard->seen.exists) continue;
        bool is_held = shard_is_held(shard);
        if (is_held && asked_us <= shard->held_us) continue; /* it was made since */
        if (shared) reader->create_us = asked_us + MISSED_US;
        if (is_held) {
            shard->is_missing = true;
            shard_lose(shard);
        }
        if (shard->state == SHARD_FREE || shard->state == SHARD_WAITS) position_free(&shard->seen);
    }
}

/* Shards' ids begin with "shardId-"; states of windows sort behind "start". */
static struct task_reply query_positions(struct reader *reader, struct slice from)
{
    struct task_call *call = task_call_new("Query");
    struct buf *out = task_call_request(call);
    compose(
        out,
        "{'TableName':%A,'ConsistentRead':true,'KeyConditionExpression':'#mapping = :mapping and #shard between "
        ":first and :last',%#,'ExpressionAttributeValues':{':first':{'S':'shardId-'},':last':{'S':'start'},"
        "':mapping':%S}",
        buf_view(&reader->consumer->table), reader->mapping->id);
    if (from.len) compose(out, ",'ExclusiveStartKey':%A", from);
    buf_byte(out, '}');
    return task_send(call);
}

static bool look_at_positions(struct reader *reader)
{
    static const char *const names[] = {"Items", "LastEvaluatedKey"};
    struct slice raws[2] = {{0}}, item;
    int64_t asked_us;
    reader->position_looks++;
    do {
        asked_us = consumer_ticks_us(reader->consumer);
        struct task_reply reply = query_positions(reader, raws[1]);
        if (reader_is_leaving(reader)) return false;
        if (reply.fault == DYNAMO_MISSING) {
            reader->consumer->positions_state = POSITIONS_UNKNOWN;
            reader->must_drain = true; /* and begins anew */
        }
        if (reply.fault != DYNAMO_FINE || !raw_members(task_arena(), reply.body, names, raws, 2) ||
            raw_kind(raws[0]) != JSON_ARRAY) {
            reader_failed(reader);
            return false;
        }
        raw_each (task_arena(), raws[0], &item) take_position(reader, item, asked_us);
        raws[1] = arena_copy(task_arena(), raws[1]);
    } while (raws[1].len);
    reader->failures = 0;
    miss_positions(reader, asked_us);
    return true;
}

bool look_at_all_positions(struct reader *reader)
{
    struct arena_mark mark = arena_mark(task_arena());
    bool is_done = look_at_positions(reader);
    arena_rewind(task_arena(), mark);
    return is_done;
}

/* ---- whose leases to take ---- */

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
static void leases_weigh(struct reader *reader)
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

/* Puts our name on a lease of somebody who has many. */
static void ask(struct shard *shard)
{
    struct consumer *consumer = shard->reader->consumer;
    shard->wish = LEASE_LEAVE;
    if (dynamo_owner_is_here(slice_of(shard->seen.owner))) return; /* it never gives one away */
    if (task_request("UpdateItem", position_ask(shard)).fault != DYNAMO_FINE || shard->state != SHARD_FREE)
        return;
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

/* ---- their order ---- */

/* Until a look is complete, what the one before has found is there. */
bool shard_is_listed(const struct shard *shard)
{
    return shard->listed_at >= shard->reader->looked && shard->listed_at > 0;
}

/* The service has forgotten it: a look that was begun after we knew of it did not find it. */
static bool is_gone(const struct shard *shard)
{
    bool is_known = shard->reader->looked_us >= shard->known_us;
    return is_known && !shard_is_listed(shard) && !shard_is_held(shard);
}

static bool is_done(const struct shard *shard)
{
    return shard->state == SHARD_ENDED || shard->seen.ended || is_gone(shard);
}

/* The service has cut off all of it before we were through. */
static void lose_shard(struct shard *shard)
{
    struct reader *reader = shard->reader;
    log_line("triggers: mapping %.*s: shard %s is gone; what was not read of it is lost",
             SLICE_ARG(reader->mapping->id), shard->id);
    reader_note(reader, "PROBLEM: Records were trimmed before they were processed");
    stats_add(&reader->consumer->counts.trimmed, 1);
    shard->state = SHARD_ENDED;
}

/* Lets those begin whose parents are done, and decides whose leases to take. */
void release_shards(struct reader *reader)
{
    for (struct shard *shard = reader->shards; shard; shard = shard->next) {
        const struct shard *parent = shard->parent[0] ? find_shard(reader, slice_of(shard->parent)) : NULL;
        bool is_open = shard_is_listed(shard) && (!parent || is_done(parent));
        if (shard->state == SHARD_WAITS && is_open) shard->state = SHARD_FREE;
        bool is_ours_to_say = shard->state == SHARD_WAITS || shard->state == SHARD_FREE;
        if (is_ours_to_say && shard->seen.ended)
            shard->state = SHARD_ENDED;
        else if (is_ours_to_say && shard->seen.exists && is_gone(shard) && lease_is_free(shard))
            lose_shard(shard);
    }
    leases_weigh(reader);
    reader_touch(reader);
}

static bool has_child(const struct reader *reader, const struct shard *parent)
{
    for (const struct shard *shard = reader->shards; shard; shard = shard->next)
        if (strcmp(shard->parent, parent->id) == 0) return true;
    return false;
}

bool misses_children(const struct reader *reader)
{
    if (reader->is_disabled_stream) return false;
    for (const struct shard *shard = reader->shards; shard; shard = shard->next)
        if (shard->state == SHARD_ENDED && !is_gone(shard) && !has_child(reader, shard)) return true;
    return false;
}

/* ---- those that are done and that the service has forgotten ---- */

static bool is_forgettable(const struct shard *shard)
{
    return shard->state == SHARD_ENDED && is_gone(shard) && !shard->tasks &&
           shard->reader->looked_us > shard->known_us + FORGET_US;
}

/* One at a time: the shard goes, then its item. False: there is none. */
bool forget_a_shard(struct reader *reader)
{
    struct shard **at = &reader->shards;
    while (*at && !is_forgettable(*at)) at = &(*at)->next;
    struct shard *shard = *at;
    if (!shard) return false;
    *at = shard->next;
    struct slice request = position_delete(reader, slice_of(shard->id));
    shard_free(shard);
    if (task_request("DeleteItem", request).fault != DYNAMO_FINE) reader_failed(reader);
    return true;
}
