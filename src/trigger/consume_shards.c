/* The shards of a feed's stream: which there are, which continues which, and what the items say of them.
 *
 * A shard waits until the one that it continues is done, or is not there any more: the service forgets
 * shards whose records have all been cut off. */
#include <stdlib.h>

#include "base/log.h"
#include "trigger/consume.h"

#define LOST_STREAM_US 5000000  /* between looks for a stream that is not there */
#define FORGET_US      60000000 /* descriptions may be so much older than we think, and more */
#define MISSED_US      30000000 /* time enough to hear that a mapping was deleted */

struct strand *strand_find(const struct feed *feed, struct slice id)
{
    struct strand *strand = feed->strands;
    while (strand && !slice_equal(slice_of(strand->id), id)) strand = strand->next;
    return strand;
}

/* ---- DescribeStream ---- */

/* {"ShardId":...,"ParentShardId":...,"SequenceNumberRange":{...}} */
static void take_shard(struct errand *errand, struct slice raw)
{
    static const char *const names[] = {"ShardId", "ParentShardId", "SequenceNumberRange"};
    static const char *const range_names[] = {"EndingSequenceNumber"};
    struct feed *feed = errand->feed;
    struct slice raws[3], end;
    if (!raw_members(&errand->arena, raw, names, raws, 3)) return;
    raw_members(&errand->arena, raws[2], range_names, &end, 1);
    struct slice id = raw_string(&errand->arena, raws[0]), parent = raw_string(&errand->arena, raws[1]);
    if (!id.len || id.len > LIMIT_SHARD_ID_BYTES || parent.len > LIMIT_SHARD_ID_BYTES) return;
    struct strand *strand = strand_find(feed, id);
    if (!strand) strand = strand_new(feed, id);
    if (parent.len) memcpy(strand->parent, parent.data, parent.len);
    strand->parent[parent.len] = 0;
    strand->listed_at = feed->look;
    if (end.len && !strand->is_closed) strand->has_more = true; /* to be read to its end */
    strand->is_closed = end.len > 0;
    strand_touch(strand);
}

/* {"AttributeName":...,"KeyType":"HASH"} */
static void take_key(struct errand *errand, struct slice raw)
{
    static const char *const names[] = {"AttributeName", "KeyType"};
    struct slice raws[2];
    if (!raw_members(&errand->arena, raw, names, raws, 2)) return;
    if (!slice_equal(raw_string(&errand->arena, raws[1]), SLICE("HASH"))) return;
    errand->feed->hash_key.len = 0;
    buf_slice(&errand->feed->hash_key, raw_string(&errand->arena, raws[0]));
}

static bool take_description(struct errand *errand)
{
    static const char *const outer[] = {"StreamDescription"};
    static const char *const names[] = {"Shards", "LastEvaluatedShardId", "StreamStatus", "KeySchema"};
    struct feed *feed = errand->feed;
    struct slice description, raws[4];
    if (!raw_members(&errand->arena, buf_view(&errand->reply), outer, &description, 1) ||
        !raw_members(&errand->arena, description, names, raws, 4))
        return false;
    errand_each(errand, raws[3], take_key);
    if (!errand_each(errand, raws[0], take_shard)) return false;
    feed->is_disabled_stream = slice_equal(raw_string(&errand->arena, raws[2]), SLICE("DISABLED"));
    feed->page_key.len = 0;
    buf_slice(&feed->page_key, raws[1]);
    return true;
}

static void tell_why_not(struct feed *feed, struct errand *errand)
{
    enum dynamo_fault fault = errand_fault(errand);
    feed->page_key.len = 0;
    feed->must_look_again = true;
    feed->look_us = 0;
    if (fault == DYNAMO_REFUSED && feed->is_child_look) { /* ShardFilter is younger than some services */
        feed->knows_filter = false;
        feed_wait(feed, 0);
    } else if (fault == DYNAMO_MISSING) {
        feed->is_lost_stream = true;
        feed_wait(feed, LOST_STREAM_US);
        feed_note(feed, "PROBLEM: The stream was not found");
        stream_over_attend(feed);
        if (feed->stage == FEED_SHARDS) feed_enter(feed, FEED_POSITIONS); /* others may still be at work */
    } else {
        feed_note(feed, "PROBLEM: The stream cannot be described: %.*s", SLICE_ARG(errand_message(errand)));
    }
}

static void shards_answered(struct errand *errand)
{
    struct feed *feed = errand->feed;
    bool is_fine = feed_answered(errand);
    if (feed->stage != FEED_SHARDS && feed->stage != FEED_RUNS) return;
    if (!is_fine) {
        tell_why_not(feed, errand);
        return;
    }
    if (!take_description(errand)) {
        feed_note(feed, "PROBLEM: The stream's description is not of the service's form");
        feed_failed(feed);
        return;
    }
    feed->is_lost_stream = false;
    if (feed->page_key.len) return;
    if (!feed->is_child_look) { /* only all of them tell which are gone */
        feed->looked = feed->look;
        feed->looked_us = feed->look_began_us;
    }
    bool needs_start = feed->mapping->start == START_LATEST && !feed->has_start;
    if (feed->stage == FEED_RUNS)
        feed_looked(feed);
    else
        feed_enter(feed, needs_start ? FEED_START : FEED_RUNS);
}

/* For the children of one shard, where that is all we want to know, or for all. */
static void begin_look(struct feed *feed, int64_t now_us)
{
    bool is_for_one = feed->stage == FEED_RUNS && feed->wanted_of[0] && !feed->must_look_again;
    feed->is_child_look = is_for_one && feed->knows_filter;
    memcpy(feed->child_of, feed->wanted_of, sizeof feed->child_of);
    feed->wanted_of[0] = 0;
    feed->must_look_again = false;
    if (feed->is_child_look) return;
    feed->look++;
    feed->look_began_us = now_us;
}

/* The next page. */
void shards_ask(struct feed *feed)
{
    struct errand *errand = feed_ask(feed, shards_answered);
    if (!feed->page_key.len) begin_look(feed, errand->began_us);
    buf_text(&errand->request, "{\"StreamArn\":");
    buf_slice(&errand->request, buf_view(&feed->arn_json));
    if (feed->page_key.len) {
        buf_text(&errand->request, ",\"ExclusiveStartShardId\":");
        buf_slice(&errand->request, buf_view(&feed->page_key));
    }
    if (feed->is_child_look) {
        buf_text(&errand->request, ",\"ShardFilter\":{\"Type\":\"CHILD_SHARDS\",\"ShardId\":");
        json_put_string(&errand->request, slice_of(feed->child_of));
        buf_byte(&errand->request, '}');
    }
    buf_byte(&errand->request, '}');
    errand_call(errand, SLICE("DescribeStream"));
}

/* ---- what the items say ---- */

/* While we hold the lease the item is ours, and only two things of it are news: that somebody asks for it,
 * and that it is ours no more. */
static void see_held(struct strand *strand, const struct position *position, const struct errand *errand)
{
    if (errand->began_us <= strand->held_us) return;
    if (position->fence > strand->seen.fence) {
        strand_lose(strand);
    } else if (position->wanted[0] && position->wanted_until_ms > consumer_now_ms(errand->consumer)) {
        strand->is_handing_over = true;
        strand_touch(strand);
    }
}

/* Another server has found a shard that we have not. Until we know its parents we could not take it over. */
static struct strand *strand_found(struct feed *feed, struct slice id)
{
    if (feed->stage == FEED_RUNS) {
        feed->must_look_again = true;
        feed->look_us = 0;
    }
    return strand_new(feed, id);
}

static void take_position(struct errand *errand, struct slice raw)
{
    struct feed *feed = errand->feed;
    struct position position = {0};
    struct slice id;
    bool is_position = position_parse(raw, &errand->arena, &position, &id);
    if (slice_equal(id, SLICE("start"))) feed->has_start = true;
    if (is_position && id.len <= LIMIT_SHARD_ID_BYTES) {
        struct strand *strand = strand_find(feed, id);
        if (!strand) strand = strand_found(feed, id);
        strand->seen_at = feed->position_looks;
        if (strand_is_held(strand)) {
            see_held(strand, &position, errand);
        } else if (strand->state == STRAND_WAITS || strand->state == STRAND_FREE) {
            position_free(&strand->seen);
            strand->seen = position;
            position = (struct position){0};
        }
    }
    position_free(&position);
}

/* A position that is not there any more was removed with its table, or with its mapping, of which another
 * server has heard before us. */
static void miss_positions(struct feed *feed, const struct errand *errand)
{
    bool shared = feed->consumer->settings.shared;
    for (struct strand *strand = feed->strands; strand; strand = strand->next) {
        if (strand->seen_at == feed->position_looks || !strand->seen.exists) continue;
        bool is_held = strand_is_held(strand);
        if (is_held && errand->began_us <= strand->held_us) continue; /* it was made since */
        if (shared) feed->create_us = errand->began_us + MISSED_US;
        if (is_held) strand_lose(strand);
        if (strand->state == STRAND_FREE || strand->state == STRAND_WAITS) position_free(&strand->seen);
    }
}

static void positions_failed(struct feed *feed, const struct errand *errand)
{
    feed->page_key.len = 0;
    if (feed->stage == FEED_RUNS) feed->positions_us = 0;
    if (errand_fault(errand) != DYNAMO_MISSING) return;
    feed->consumer->positions_state = POSITIONS_UNKNOWN;
    feed_stop(feed); /* and begins anew */
}

static void positions_answered(struct errand *errand)
{
    static const char *const names[] = {"Items", "LastEvaluatedKey"};
    struct feed *feed = errand->feed;
    struct slice raws[2];
    bool is_fine = feed_answered(errand);
    if (feed->stage != FEED_POSITIONS && feed->stage != FEED_RUNS) return;
    if (!is_fine) {
        positions_failed(feed, errand);
        return;
    }
    if (!raw_members(&errand->arena, buf_view(&errand->reply), names, raws, 2) ||
        !errand_each(errand, raws[0], take_position)) {
        feed_failed(feed);
        return;
    }
    feed->page_key.len = 0;
    buf_slice(&feed->page_key, raws[1]);
    if (raws[1].len) {
        feed->positions_us = 0;
        return;
    }
    miss_positions(feed, errand);
    if (feed->stage == FEED_POSITIONS)
        feed_enter(feed, FEED_SHARDS);
    else
        strands_release(feed);
}

/* Shards' ids begin with "shardId-"; states of windows sort behind "start". */
void positions_ask(struct feed *feed)
{
    struct errand *errand = feed_ask(feed, positions_answered);
    struct buf *out = &errand->request;
    if (!feed->page_key.len) feed->position_looks++;
    buf_text(out, "{\"TableName\":");
    buf_slice(out, buf_view(&feed->consumer->table));
    buf_text(out, ",\"ConsistentRead\":true,\"KeyConditionExpression\":\"#m = :m AND #s BETWEEN :a AND "
                  ":b\",\"ExpressionAttributeNames\":{\"#m\":\"mapping\",\"#s\":\"shard\"},"
                  "\"ExpressionAttributeValues\":{\":a\":{\"S\":\"shardId-\"},\":b\":{\"S\":\"start\"},"
                  "\":m\":{\"S\":");
    json_put_string(out, feed->mapping->id);
    buf_text(out, "}}");
    if (feed->page_key.len) {
        buf_text(out, ",\"ExclusiveStartKey\":");
        buf_slice(out, buf_view(&feed->page_key));
    }
    buf_byte(out, '}');
    errand_call(errand, SLICE("Query"));
}

/* ---- their order ---- */

/* Until a look is complete, what the one before has found is there. */
bool strand_is_listed(const struct strand *strand)
{
    return strand->listed_at >= strand->feed->looked && strand->listed_at > 0;
}

/* The service has forgotten it: a look that was begun after we knew of it did not find it. */
static bool is_gone(const struct strand *strand)
{
    bool is_known = strand->feed->looked_us >= strand->known_us;
    return is_known && !strand_is_listed(strand) && !strand_is_held(strand);
}

static bool is_done(const struct strand *strand)
{
    return strand->state == STRAND_ENDED || strand->seen.ended || is_gone(strand);
}

/* The service has cut off all of it before we were through. */
static void lose_shard(struct strand *strand)
{
    struct feed *feed = strand->feed;
    log_line("triggers: mapping %.*s: shard %s is gone; what was not read of it is lost",
             SLICE_ARG(feed->mapping->id), strand->id);
    feed_note(feed, "PROBLEM: Records were trimmed before they were processed");
    stats_add(&feed->consumer->counts.trimmed, 1);
    strand->state = STRAND_ENDED;
}

/* Lets those begin whose parents are done, and decides whose leases to take. */
void strands_release(struct feed *feed)
{
    for (struct strand *strand = feed->strands; strand; strand = strand->next) {
        const struct strand *parent = strand->parent[0] ? strand_find(feed, slice_of(strand->parent)) : NULL;
        bool is_open = strand_is_listed(strand) && (!parent || is_done(parent));
        if (strand->state == STRAND_WAITS && is_open) strand->state = STRAND_FREE;
        bool is_ours_to_say = strand->state == STRAND_WAITS || strand->state == STRAND_FREE;
        if (is_ours_to_say && strand->seen.ended)
            strand->state = STRAND_ENDED;
        else if (is_ours_to_say && strand->seen.exists && is_gone(strand) && lease_is_free(strand))
            lose_shard(strand);
        strand_touch(strand);
    }
    leases_weigh(feed);
}

static bool has_child(const struct feed *feed, const struct strand *parent)
{
    for (const struct strand *strand = feed->strands; strand; strand = strand->next)
        if (strcmp(strand->parent, parent->id) == 0) return true;
    return false;
}

bool strands_miss_children(const struct feed *feed)
{
    if (feed->is_disabled_stream) return false;
    for (const struct strand *strand = feed->strands; strand; strand = strand->next)
        if (strand->state == STRAND_ENDED && !is_gone(strand) && !has_child(feed, strand)) return true;
    return false;
}

/* ---- those that are done and that the service has forgotten ---- */

static void forgotten(struct errand *errand)
{
    feed_answered(errand);
}

static bool is_forgettable(const struct strand *strand)
{
    return strand->state == STRAND_ENDED && is_gone(strand) && !strand->errands && !strand->is_touched &&
           strand->feed->looked_us > strand->known_us + FORGET_US;
}

/* One at a time: its item goes, then the strand. */
void strands_forget(struct feed *feed)
{
    struct strand **at = &feed->strands;
    while (*at && !is_forgettable(*at)) at = &(*at)->next;
    struct strand *strand = *at;
    if (!strand) return;
    *at = strand->next;
    struct errand *errand = feed_ask(feed, forgotten);
    buf_text(&errand->request, "{\"TableName\":");
    buf_slice(&errand->request, buf_view(&feed->consumer->table));
    buf_text(&errand->request, ",\"Key\":");
    put_position_key(&errand->request, feed, slice_of(strand->id));
    buf_byte(&errand->request, '}');
    errand_call(errand, SLICE("DeleteItem"));
    strand_free(strand);
}
