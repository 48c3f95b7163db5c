/* A mapping at work: from its settings to shards that are read, through changes, to its end.
 *
 * LATEST means the moment at which the mapping began, also when the server is started anew before the
 * first record came. The service tells no sequence number for it, only an iterator; so each shard's
 * position keeps that iterator, which is good for a while, and the time, by which older records are left
 * out afterwards. The item "start" comes last: shards that have no position by then came later and are
 * read from their begin.
 *
 * What goes wrong is tried again after a pause that grows; the mapping's LastProcessingResult tells of it.
 *
 * A stream is over when it was closed, with its table or by itself, and all of its records are done; or when it is
 * not there any more, and nobody is at work on what was read of it. The mappings are told, and go on with the
 * table's next stream when there is one (mapping_follow.c). Ids of shards differ between streams, so the positions
 * of the old shards are no trouble to the new ones: they are those of shards that the service has forgotten. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/compose.h"
#include "base/fail.h"
#include "base/log.h"
#include "trigger/consume.h"
#include "trigger/watch.h"

#define RETRY_MAX_US     10000000
#define LOOK_EVERY_US    60000000 /* for shards, where none has ended */
#define LOOK_CHILDREN_US 1000000  /* for the children of one that has, when they were not there at once */
#define TABLE_WAIT_US    300000   /* between looks at a table that is being made */
#define UNHEARD_US       30000000 /* time enough to hear of a change of the mapping */
#define DELETES_MAX      25       /* of one BatchWriteItem */

static void reader_task(void *argument);

/* ---- making and freeing ---- */

static void set_mapping(struct reader *reader, struct mapping *mapping)
{
    struct mapping *former = reader->mapping;
    reader->mapping = mapping_keep(mapping);
    const char *colon = memchr(mapping->function.data, ':', mapping->function.len);
    reader->function_name = mapping->function;
    if (colon) reader->function_name.len = (size_t)(colon - mapping->function.data);
    if (former) mapping_release(former);
}

/* The stream is to be looked at anew, and is another one where the mapping says so. */
static void begin_stream(struct reader *reader)
{
    reader->arn_json.len = 0;
    json_put_string(&reader->arn_json, reader->mapping->stream_arn);
    reader->is_lost_stream = reader->is_disabled_stream = false;
    reader->is_over = reader->has_looked_last = reader->has_start = false;
    reader->failures = 0;
}

static _Atomic uint64_t *readers_beside(const struct reader *reader)
{
    struct consumer_counts *counts = &reader->consumer->counts;
    return reader->mapping->watch ? &counts->watches : &counts->readers;
}

struct reader *reader_new(struct consumer *consumer, struct mapping *mapping)
{
    struct reader *reader = must_zero(1, sizeof *reader);
    reader->consumer = consumer;
    reader->knows_filter = true;
    set_mapping(reader, mapping);
    begin_stream(reader);
    reader->stage = READER_DRAINS;
    stats_add(readers_beside(reader), 1);
    task_begin(consumer->host, reader_task, reader);
    return reader;
}

static void free_shards(struct reader *reader)
{
    while (reader->shards) {
        struct shard *shard = reader->shards;
        reader->shards = shard->next;
        shard_free(shard);
    }
}

void reader_free(struct reader *reader)
{
    free_shards(reader);
    stats_add(readers_beside(reader), (uint64_t)-1);
    mapping_release(reader->mapping);
    mapping_release(reader->successor);
    buf_free(&reader->arn_json);
    buf_free(&reader->hash_key);
    free(reader);
}

/* ---- what others tell of it ---- */

void reader_touch(struct reader *reader)
{
    task_signal_give(&reader->changed);
}

static void touch_shards(struct reader *reader)
{
    for (struct shard *shard = reader->shards; shard; shard = shard->next) shard_touch(shard);
}

static void reach(struct reader *reader, enum mapping_state state)
{
    reader->consumer->world.reached(reader->consumer->world.mappings, reader->mapping->id, state);
}

static void succeed(struct reader *reader, struct mapping *mapping)
{
    mapping_release(reader->successor);
    reader->successor = mapping;
}

void reader_stop(struct reader *reader)
{
    if (reader->stage < READER_DRAINS) reader->must_drain = true;
    reader_touch(reader);
    touch_shards(reader);
}

/* The mapping has a move that is not written down yet, as far as we know. */
static bool has_move(const struct reader *reader)
{
    return reader->mapping->move.number > reader->start_moved;
}

static void tell_disabled(struct reader *reader)
{
    if (!reader->is_removed && !reader->mapping->enabled && !has_move(reader))
        reach(reader, MAPPING_DISABLED);
}

void reader_change(struct reader *reader, struct mapping *mapping)
{
    if (reader->is_removed) { /* it begins when the positions of this one are gone */
        succeed(reader, mapping_keep(mapping));
        return;
    }
    bool moves = !slice_equal(mapping->stream_arn, reader->mapping->stream_arn);
    if (mapping->revision < reader->mapping->revision && !moves)
        return; /* else the database was rolled back */
    reader->has_moved |= moves;
    set_mapping(reader, mapping);
    if ((moves || !mapping->enabled || has_move(reader)) && reader->stage < READER_DRAINS)
        reader->must_drain = true;
    else if (reader->stage == READER_STOPPED)
        tell_disabled(reader);
    else if (reader->stage == READER_RUNS)
        reach(reader, MAPPING_ENABLED);
    if (moves && reader->stage == READER_STOPPED) begin_stream(reader);
    reader_touch(reader);
    touch_shards(reader);
}

void reader_remove(struct reader *reader)
{
    succeed(reader, NULL);
    reader->is_removed = true;
    reader_stop(reader);
}

void reader_begin_anew(struct reader *reader)
{
    for (struct shard *shard = reader->shards; shard; shard = shard->next)
        if (shard_is_held(shard)) shard->state = SHARD_LEAVING;
    reader_stop(reader);
}

bool reader_meet(struct reader *reader, const struct position *position)
{
    bool is_new = position->moved > reader->moved;
    if (is_new && reader->stage == READER_PREPARES) reader->moved = position->moved;
    if (is_new && reader->stage == READER_RUNS) reader_stop(reader);
    return is_new;
}

bool reader_is_stopped(const struct reader *reader)
{
    return reader->stage == READER_STOPPED || reader->stage == READER_GONE || reader->stage == READER_DELETES;
}

bool reader_is_running(const struct reader *reader)
{
    return reader->stage == READER_RUNS && !reader->must_drain;
}

void reader_note(struct reader *reader, const char *format, ...)
{
    char text[sizeof reader->result];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (strcmp(text, reader->result) == 0) return;
    memcpy(reader->result, text, sizeof text);
    if (reader->mapping->watch && slice_starts(slice_of(text), SLICE("PROBLEM"))) /* no API shows it */
        log_line("triggers: watch %s: %s", watch_name(reader->mapping->watch), text);
    reader->consumer->world.note_result(reader->consumer->world.mappings, reader->mapping->id, text);
}

/* For the children of one it is cheap to look; of several at once, all shards are listed. */
void reader_look_soon(struct reader *reader, const struct shard *ended)
{
    if (reader->wanted_of[0])
        reader->must_look_again = true;
    else
        memcpy(reader->wanted_of, ended->id, sizeof reader->wanted_of);
    reader->look_us = 0;
    reader_touch(reader);
}

/* ---- waiting ---- */

bool reader_is_leaving(const struct reader *reader)
{
    return reader->must_drain || reader->is_removed || reader->consumer->is_stopping;
}

void reader_pause(struct reader *reader, int64_t us)
{
    struct task_moment until = task_after_us(reader->consumer->host, us);
    while (!reader_is_leaving(reader) && !task_moment_is_over(reader->consumer->host, &until))
        task_await(&reader->changed, until);
}

void reader_failed(struct reader *reader)
{
    reader->failures++;
    reader_pause(reader, retry_after_us(reader->failures, RETRY_MAX_US, consumer_random(reader->consumer)));
}

/* ---- when the stream is over ---- */

/* What nobody has read of a stream that is not there is lost; what somebody holds may be in his memory. */
static bool is_finished(const struct shard *shard)
{
    if (shard->state == SHARD_ENDED || shard->seen.ended) return true;
    return shard->reader->is_lost_stream && shard->state == SHARD_WAITS && lease_is_free(shard);
}

static bool is_closed_and_done(const struct reader *reader)
{
    if (!reader->is_lost_stream && !reader->is_disabled_stream) return false;
    for (const struct shard *shard = reader->shards; shard; shard = shard->next)
        if (!is_finished(shard)) return false;
    return true;
}

/* True: the shards are to be looked at once more before it can be told. */
static bool tell_when_over(struct reader *reader)
{
    const struct environment *world = &reader->consumer->world;
    if (reader->mapping->watch) return false; /* it looks for streams by itself */
    bool is_over = is_closed_and_done(reader);
    if (!is_over) reader->has_looked_last = false;
    if (is_over && !reader->is_lost_stream && !reader->has_looked_last) {
        reader->has_looked_last = reader->must_look_again = true;
        reader->look_us = 0;
        return true;
    }
    if (is_over == reader->is_over) return false;
    reader->is_over = is_over;
    if (is_over && !reader->is_lost_stream)
        reader_note(reader,
                    "PROBLEM: The stream is closed: its table was deleted, or the stream was switched off");
    world->stream_over(world->mappings, reader->mapping->id, reader->mapping->stream_arn, is_over);
    return false;
}

/* ---- our table ---- */

static void touch_readers(struct consumer *consumer)
{
    for (struct reader *reader = consumer->readers; reader; reader = reader->next) reader_touch(reader);
}

/* One reader asks; the others wait for its answer. */
static bool positions_table_wait(struct reader *reader)
{
    struct consumer *consumer = reader->consumer;
    struct slice table = buf_view(&consumer->table);
    while (!reader_is_leaving(reader) && consumer->positions_state != POSITIONS_READY) {
        if (consumer->positions_state == POSITIONS_ASKED) {
            task_await(&reader->changed, TASK_NEVER);
            continue;
        }
        consumer->positions_state = POSITIONS_ASKED;
        struct task_reply reply = task_request("DescribeTable",
                                               compose_in(task_arena(), "{'TableName':%A}", table));
        struct slice described = raw_member(task_arena(), reply.body, "Table");
        struct slice status = raw_string(task_arena(), raw_member(task_arena(), described, "TableStatus"));
        bool is_active = reply.fault == DYNAMO_FINE && slice_equal(status, SLICE("ACTIVE"));
        if (reply.fault ==
            DYNAMO_MISSING) /* made by us, by somebody else, or not at all: looking again tells */
            task_request("CreateTable",
                         compose_in(task_arena(),
                                    "{'TableName':%A,'BillingMode':'PAY_PER_REQUEST',"
                                    "'AttributeDefinitions':[{'AttributeName':'mapping','AttributeType':'S'},"
                                    "{'AttributeName':'shard','AttributeType':'S'}],'KeySchema':["
                                    "{'AttributeName':'mapping','KeyType':'HASH'},"
                                    "{'AttributeName':'shard','KeyType':'RANGE'}]}",
                                    table));
        consumer->positions_state = is_active ? POSITIONS_READY : POSITIONS_UNKNOWN;
        touch_readers(consumer);
        if (is_active) {
            reader->failures = 0;
        } else if (reply.fault == DYNAMO_FINE) {
            reader_pause(reader, TABLE_WAIT_US);
        } else if (reply.fault != DYNAMO_MISSING) {
            if (!reader->failures)
                log_line("triggers: the table of positions cannot be described: %.*s: %.*s",
                         SLICE_ARG(reply.error), SLICE_ARG(task_reply_message(&reply)));
            reader_failed(reader);
        }
    }
    return consumer->positions_state == POSITIONS_READY;
}

/* ---- LATEST ---- */

/* Then it came into being after the mapping did: all of it is wanted. */
static bool continues_a_marked_one(const struct reader *reader, const struct shard *shard)
{
    const struct shard *parent = shard->parent[0] ? find_shard(reader, slice_of(shard->parent)) : NULL;
    return parent && parent->seen.exists && !parent->seen.ended;
}

/* The next shard that LATEST means and that has no position. */
static struct shard *next_to_mark(struct reader *reader)
{
    for (struct shard *shard = reader->shards; shard; shard = shard->next)
        if (!shard->seen.exists && !shard->is_marked && shard_is_listed(shard) &&
            !continues_a_marked_one(reader, shard))
            return shard;
    return NULL;
}

/* The iterator of this moment; empty: nothing will come, it is closed or was trimmed since. False: nobody can tell. */
static bool find_latest(struct shard *shard, struct slice *iterator)
{
    *iterator = SLICE("");
    if (shard->is_closed) return true;
    struct task_call *call = task_call_new("GetShardIterator");
    put_iterator_question(task_call_request(call), shard, SLICE("LATEST"), NULL);
    struct task_reply reply = task_send(call);
    if (reply.fault == DYNAMO_MISSING) return true;
    return reply.fault == DYNAMO_FINE && iterator_read(reply.body, task_arena(), iterator);
}

/* False: it could not be written down yet. */
static bool mark(struct shard *shard)
{
    struct slice iterator;
    if (!find_latest(shard, &iterator)) return false;
    if (!iterator.len && !shard->is_closed) return true;
    enum dynamo_fault fault =
        task_request("PutItem", position_latest(shard, iterator, shard->is_closed)).fault;
    return fault == DYNAMO_FINE || fault == DYNAMO_CONDITION;
}

static void start_write(struct reader *reader)
{
    struct shard *shard;
    while ((shard = next_to_mark(reader)) && !reader_is_leaving(reader)) {
        struct arena_mark before = arena_mark(task_arena());
        shard->is_marked = mark(shard);
        arena_rewind(task_arena(), before);
        if (!shard->is_marked) reader_failed(reader);
    }
    if (reader_is_leaving(reader)) return;
    struct task_reply reply = task_request(
        "PutItem", compose_in(task_arena(),
                              "{'TableName':%A,'Item':{'mapping':%S,'shard':{'S':'start'}},"
                              "'ConditionExpression':'attribute_not_exists(#mapping)',%#}",
                              buf_view(&reader->consumer->table), reader->mapping->id));
    if (reply.fault != DYNAMO_FINE && reply.fault != DYNAMO_CONDITION) reader_failed(reader);
}

/* ---- moves ---- */

static bool is_meant(const struct shard *shard)
{
    const struct mapping_move *move = &shard->reader->mapping->move;
    return shard_is_listed(shard) && shard->seen.moved < move->number &&
           (!move->shard.len || slice_equal(slice_of(shard->id), move->shard));
}

/* Parents first (L5). */
static struct shard *next_to_move(struct reader *reader)
{
    for (struct shard *shard = reader->shards; shard; shard = shard->next) {
        const struct shard *parent = shard->parent[0] ? find_shard(reader, slice_of(shard->parent)) : NULL;
        if (is_meant(shard) && (!parent || !is_meant(parent))) return shard;
    }
    return NULL;
}

/* False: it could not be written down yet. */
static bool move(struct shard *shard)
{
    const struct mapping_move *move = &shard->reader->mapping->move;
    bool is_latest = slice_equal(move->to, SLICE("LATEST")) && !move->since_ms;
    struct slice iterator = SLICE("");
    if (is_latest && (!find_latest(shard, &iterator) || reader_is_leaving(shard->reader))) return false;
    bool is_ended = is_latest && !iterator.len;
    enum dynamo_fault fault = task_request("UpdateItem", position_move(shard, iterator, is_ended)).fault;
    return fault == DYNAMO_FINE || fault == DYNAMO_CONDITION; /* another server was faster */
}

/* Brings all positions that the mapping's move means to where it wants them, and writes down that it was done: shards
 * that come later are read from their begin. */
static void move_write(struct reader *reader)
{
    int64_t number = reader->mapping->move.number;
    struct shard *shard;
    while (!reader_is_leaving(reader) && (shard = next_to_move(reader))) {
        struct arena_mark before = arena_mark(task_arena());
        bool is_moved = move(shard);
        arena_rewind(task_arena(), before);
        if (is_moved)
            shard->seen.moved = number;
        else
            reader_failed(reader);
    }
    if (reader_is_leaving(reader)) return;
    struct task_reply reply = task_request(
        "UpdateItem",
        compose_in(
            task_arena(),
            "{'TableName':%A,'Key':{'mapping':%S,'shard':{'S':'start'}},'UpdateExpression':"
            "'SET #moved = :moved','ConditionExpression':'attribute_not_exists(#moved) or #moved < :moved',%#,"
            "'ExpressionAttributeValues':{':moved':%N}}",
            buf_view(&reader->consumer->table), reader->mapping->id, number));
    if (reply.fault != DYNAMO_FINE && reply.fault != DYNAMO_CONDITION) reader_failed(reader);
}

/* ---- the end ---- */

/* All items of the mapping, a few at a time, until there is none. False: the consumer ends first. */
static bool positions_delete(struct reader *reader)
{
    struct consumer *consumer = reader->consumer;
    struct arena_mark before = arena_mark(task_arena());
    while (!consumer->is_stopping) {
        arena_rewind(task_arena(), before);
        struct task_reply reply = task_request(
            "Query",
            compose_in(task_arena(),
                       "{'TableName':%A,'ConsistentRead':true,'KeyConditionExpression':'#mapping = :mapping',"
                       "'ProjectionExpression':'#mapping, #shard','Limit':%d,%#,"
                       "'ExpressionAttributeValues':{':mapping':%S}}",
                       buf_view(&consumer->table), (int64_t)DELETES_MAX, reader->mapping->id));
        if (reply.fault == DYNAMO_MISSING) return true;
        if (reply.fault == DYNAMO_FINE) {
            struct slice items = arena_copy(task_arena(), raw_member(task_arena(), reply.body, "Items")), key;
            if (items.len <= 2) return true;
            struct task_call *call = task_call_new("BatchWriteItem");
            compose(task_call_request(call), "{'RequestItems':{%A:[", buf_view(&consumer->table));
            raw_each (task_arena(), items, &key)
                compose(task_call_request(call), "%,{'DeleteRequest':{'Key':%A}}", key);
            buf_text(task_call_request(call), "]}}");
            reply = task_send(call);
        }
        if (reply.fault == DYNAMO_FINE) continue;
        reader->failures++;
        struct task_moment until = task_after_us(
            consumer->host, retry_after_us(reader->failures, RETRY_MAX_US, consumer_random(consumer)));
        while (!consumer->is_stopping && !task_moment_is_over(consumer->host, &until))
            task_await(&reader->changed, until);
    }
    return false;
}

/* ---- the task ---- */

/* All that must be known before shards are read. False: it is to stop first. */
static bool prepare(struct reader *reader)
{
    int64_t patience_us = consumer_ticks_us(reader->consumer) + UNHEARD_US;
    reader->stage = READER_PREPARES;
    reader->moved = 0;
    while (!reader_is_leaving(reader)) {
        bool is_latest = reader->mapping->start == START_LATEST;
        if (!positions_table_wait(reader) || !look_at_all_positions(reader)) continue;
        if (!look_for_shards(reader)) {
            tell_when_over(reader);
            continue; /* others may still be at work */
        }
        if (is_latest && !reader->has_start)
            start_write(
                reader); /* what was made, by us or by others at the same time, is read like any other */
        else if (has_move(reader))
            move_write(reader);
        else if (reader->moved > reader->start_moved && consumer_ticks_us(reader->consumer) < patience_us)
            reader_pause(reader, TABLE_WAIT_US); /* a move of which we will hear is only half made */
        else
            return true;
    }
    return false;
}

/* Positions are looked at again only where others change them, or when one was not as we thought. */
static void run(struct reader *reader)
{
    struct consumer *consumer = reader->consumer;
    reader->stage = READER_RUNS;
    reader->look_us = consumer_ticks_us(consumer) + LOOK_EVERY_US;
    reader->positions_us = consumer_ticks_us(consumer);
    release_shards(reader);
    if (reader->has_moved) reader_note(reader, "No records processed");
    reader->has_moved = false;
    reach(reader, MAPPING_ENABLED);
    struct arena_mark mark = arena_mark(task_arena());
    for (; !reader_is_leaving(reader); arena_rewind(task_arena(), mark)) {
        struct task_moment due = leases_act(reader);
        int64_t now_us = consumer_ticks_us(consumer);
        if (reader_is_leaving(reader)) break;
        if (now_us >= reader->positions_us) {
            bool shared = consumer->settings.shared;
            reader->positions_us = shared ? now_us + consumer->settings.lease_ms * 1000 / 3 : NEVER_US;
            if (!look_at_all_positions(reader)) reader->positions_us = 0;
            release_shards(reader);
        } else if (now_us >= reader->look_us) {
            if (!look_for_shards(reader)) {
                tell_when_over(reader);
                continue;
            }
            bool is_missing = misses_children(reader);
            reader->look_us = consumer_ticks_us(consumer) + (is_missing ? LOOK_CHILDREN_US : LOOK_EVERY_US);
            if (reader->wanted_of[0] || reader->must_look_again) reader->look_us = 0;
            release_shards(reader);
        } else if (!tell_when_over(reader) && !forget_a_shard(reader)) {
            if (reader->look_us < due.ticks_us) due.ticks_us = reader->look_us;
            if (reader->positions_us < due.ticks_us) due.ticks_us = reader->positions_us;
            task_await(&reader->changed, due);
        }
    }
}

static bool is_drained(const struct reader *reader)
{
    for (const struct shard *shard = reader->shards; shard; shard = shard->next)
        if (shard->tasks) return false;
    return true;
}

static void drain(struct reader *reader)
{
    reader->stage = READER_DRAINS;
    touch_shards(reader);
    while (!is_drained(reader)) task_await(&reader->changed, TASK_NEVER);
    free_shards(reader);
    begin_stream(reader);
    reader->must_drain = false;
    reader->stage = READER_STOPPED;
    tell_disabled(reader);
}

static void reader_task(void *argument)
{
    struct reader *reader = argument;
    struct consumer *consumer = reader->consumer;
    struct arena_mark mark = arena_mark(task_arena());
    drain(reader);
    while (!reader->is_removed) {
        arena_rewind(task_arena(), mark);
        if (consumer->is_stopping || (!reader->mapping->enabled && !has_move(reader))) {
            task_await(&reader->changed, TASK_NEVER);
            continue;
        }
        if (prepare(reader) && reader->mapping->enabled) run(reader);
        drain(reader);
    }
    reader->stage = READER_DELETES;
    while (!positions_delete(reader)) task_await(&reader->changed, TASK_NEVER);
    reach(reader, MAPPING_DELETING);
    reader->stage = READER_GONE;
}
