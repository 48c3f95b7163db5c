/* The items of the table of positions, and the requests on them.
 *
 * PREFIXpositions: hash key `mapping` (the mapping's UUID), range key `shard`.
 *   shard = a shard's id: the position in it:
 *     at                    M     lane -> the last sequence number that is done, or TRIM_HORIZON, or LATEST
 *     lanes                 N     how many there are
 *     moves                 N     how often it was moved since its lease was taken; each move is conditional on it
 *     mark                  N     of the last move, by which its author knows it again
 *     fence                 N     grows each time that somebody takes the lease
 *     owner, until          S, N  who holds the lease; until when, in milliseconds since 1970
 *     wanted, wanted_until  S, N  who asks for it; a question that is older counts no more
 *     ended                 BOOL  all of the shard is done
 *     iterator, since       S, N  where LATEST was, while nothing has been read yet
 *   shard = "start": there since all shards that LATEST means have their positions
 *   shard = "state/SHARD/LANE/PART": the state of a tumbling window (consume_window.c) */
#include <stdio.h>
#include <stdlib.h>

#include "trigger/consume.h"

void position_free(struct position *position)
{
    buf_free(&position->iterator);
    *position = (struct position){0};
}

/* ---- reading an item ---- */

static void take_integer(struct slice text, int64_t *out)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%.*s", SLICE_ARG(text));
    *out = strtoll(digits, NULL, 10);
}

static void take_name(struct slice text, char name[OWNER_BYTES])
{
    snprintf(name, OWNER_BYTES, "%.*s", SLICE_ARG(text));
}

/* The inside of {"S":"..."}, {"N":"..."}, {"BOOL":true}; of others nothing. */
static bool read_scalar(struct json_reader *reader, struct slice *text, bool *is_true)
{
    struct slice type;
    *text = SLICE("");
    *is_true = false;
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    while (json_member(reader, &type)) {
        enum json_kind kind = json_peek(reader);
        *is_true |= kind == JSON_TRUE;
        if (kind == JSON_STRING ? !json_string(reader, text) : !json_skip(reader)) return false;
    }
    return !json_failed(reader);
}

/* {"M":{"0":{"S":"..."},...}} */
static bool read_points(struct json_reader *reader, struct position *out)
{
    struct slice name, text;
    unsigned long long lane;
    bool ignored;
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader) || !json_member(reader, &name)) return false;
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    while (json_member(reader, &name)) {
        if (!read_scalar(reader, &text, &ignored)) return false;
        if (slice_to_u64(name, LANES_MAX - 1, &lane) && !point_set(&out->at[lane], text)) return false;
    }
    return !json_member(reader, &name) && !json_failed(reader);
}

static void take_attribute(struct position *out, struct slice name, struct slice text, bool is_true,
                           struct slice *shard)
{
    int64_t number;
    take_integer(text, &number);
    if (slice_equal(name, SLICE("shard"))) *shard = text;
    if (slice_equal(name, SLICE("owner"))) take_name(text, out->owner);
    if (slice_equal(name, SLICE("wanted"))) take_name(text, out->wanted);
    if (slice_equal(name, SLICE("fence"))) out->fence = (uint64_t)number;
    if (slice_equal(name, SLICE("moves"))) out->moves = (uint64_t)number;
    if (slice_equal(name, SLICE("mark"))) out->mark = (uint64_t)number;
    if (slice_equal(name, SLICE("until"))) out->until_ms = number;
    if (slice_equal(name, SLICE("wanted_until"))) out->wanted_until_ms = number;
    if (slice_equal(name, SLICE("since"))) out->since_ms = number;
    if (slice_equal(name, SLICE("lanes"))) out->lanes = (uint32_t)number;
    if (slice_equal(name, SLICE("ended"))) out->ended = is_true;
    if (slice_equal(name, SLICE("iterator"))) buf_slice(&out->iterator, text);
}

static bool has_all_points(const struct position *position)
{
    if (!position->lanes || position->lanes > LANES_MAX) return false;
    for (uint32_t i = 0; i < position->lanes; i++)
        if (!position->at[i].len) return false;
    return true;
}

bool position_parse(struct slice item, struct arena *arena, struct position *out, struct slice *shard)
{
    struct json_reader reader;
    struct slice name, text;
    bool is_true;
    position_free(out);
    *shard = SLICE("");
    if (!item.len) return false;
    json_begin(&reader, item, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return false;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, SLICE("at"))) {
            if (!read_points(&reader, out)) return false;
        } else {
            if (!read_scalar(&reader, &text, &is_true)) return false;
            take_attribute(out, name, text, is_true, shard);
        }
    }
    out->exists = true;
    return !json_failed(&reader) && shard->len && has_all_points(out);
}

/* ---- writing requests ---- */

void put_position_key(struct buf *out, const struct reader *reader, struct slice shard)
{
    buf_text(out, "{\"mapping\":{\"S\":");
    json_put_string(out, reader->mapping->id);
    buf_text(out, "},\"shard\":{\"S\":");
    json_put_string(out, shard);
    buf_text(out, "}}");
}

/* {"TableName":...,"Key":{...} */
static void put_head(struct buf *out, const struct shard *shard)
{
    buf_text(out, "{\"TableName\":");
    buf_slice(out, buf_view(&shard->reader->consumer->table));
    buf_text(out, ",\"Key\":");
    put_position_key(out, shard->reader, slice_of(shard->id));
}

static void put_number(struct buf *out, const char *name, int64_t value)
{
    buf_printf(out, ",\"%s\":{\"N\":\"%lld\"}", name, (long long)value);
}

static void put_text(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, ",\"%s\":{\"S\":", name);
    json_put_string(out, text);
    buf_byte(out, '}');
}

static void put_points(struct buf *out, const struct point *points, uint32_t count, bool all_the_same)
{
    buf_text(out, "{\"M\":{");
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "%s\"%u\":{\"S\":", i ? "," : "", i);
        json_put_string(out, point_view(&points[all_the_same ? 0 : i]));
        buf_byte(out, '}');
    }
    buf_text(out, "}}");
}

static int64_t lease_until_ms(const struct consumer *consumer)
{
    return consumer->settings.shared ? consumer_now_ms(consumer) + consumer->settings.lease_ms
                                     : DYNAMO_NO_END_MS;
}

/* For PutItem: a position that nobody has made yet, all lanes at one point. An owned one has its first
 * lease. */
void put_position_create(struct buf *out, const struct shard *shard, const struct new_position *fresh)
{
    const struct consumer *consumer = shard->reader->consumer;
    buf_text(out, "{\"TableName\":");
    buf_slice(out, buf_view(&consumer->table));
    buf_text(out, ",\"Item\":");
    put_position_key(out, shard->reader, slice_of(shard->id));
    out->len--; /* the brace */
    buf_text(out, ",\"at\":");
    put_points(out, &fresh->at, fresh->lanes, true);
    put_number(out, "lanes", fresh->lanes);
    put_number(out, "moves", 0);
    put_number(out, "fence", fresh->is_owned);
    buf_printf(out, ",\"ended\":{\"BOOL\":%s}", fresh->is_ended ? "true" : "false");
    if (fresh->is_owned) {
        put_text(out, "owner", slice_of(consumer->settings.owner));
        put_number(out, "until", lease_until_ms(consumer));
    }
    if (fresh->iterator.len) {
        put_text(out, "iterator", fresh->iterator);
        put_number(out, "since", consumer_now_ms(consumer));
    }
    buf_text(out, "},\"ConditionExpression\":\"attribute_not_exists(#m)\","
                  "\"ExpressionAttributeNames\":{\"#m\":\"mapping\"}}");
}

/* For UpdateItem: the lease becomes ours, if nobody was faster. */
void put_position_take(struct buf *out, const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    bool shared = consumer->settings.shared;
    put_head(out, shard);
    buf_text(out, ",\"UpdateExpression\":\"SET #o = :o, #u = :u, #f = #f + :one, #m = :zero REMOVE #w, "
                  "#x\",\"ConditionExpression\":\"#f = :f");
    buf_text(out, " AND (attribute_not_exists(#o) OR #u < :n OR #o = :o");
    buf_slice(out, shared ? SLICE(")") : SLICE(" OR begins_with(#o, :h))"));
    buf_text(out, "\",\"ReturnValues\":\"ALL_NEW\",\"ExpressionAttributeNames\":{\"#o\":\"owner\","
                  "\"#u\":\"until\",\"#f\":\"fence\",\"#m\":\"moves\",\"#w\":\"wanted\","
                  "\"#x\":\"wanted_until\"},\"ExpressionAttributeValues\":{\":one\":{\"N\":\"1\"},"
                  "\":zero\":{\"N\":\"0\"}");
    put_text(out, ":o", slice_of(consumer->settings.owner));
    put_number(out, ":u", lease_until_ms(consumer));
    put_number(out, ":f", (int64_t)shard->seen.fence);
    put_number(out, ":n", consumer_now_ms(consumer) - lease_margin_ms(consumer));
    if (!shared) put_text(out, ":h", SLICE(DYNAMO_OWNER_HERE));
    buf_text(out, "}}");
}

/* For UpdateItem: our name on a lease of somebody who has many. */
void put_position_ask(struct buf *out, const struct shard *shard)
{
    const struct consumer *consumer = shard->reader->consumer;
    put_head(out, shard);
    buf_text(out, ",\"UpdateExpression\":\"SET #w = :w, #x = :x\","
                  "\"ConditionExpression\":\"#f = :f AND (attribute_not_exists(#w) OR #x < :n)\","
                  "\"ExpressionAttributeNames\":{\"#f\":\"fence\",\"#w\":\"wanted\","
                  "\"#x\":\"wanted_until\"},\"ExpressionAttributeValues\":{\":w\":{\"S\":");
    json_put_string(out, slice_of(consumer->settings.owner));
    buf_byte(out, '}');
    put_number(out, ":x", consumer_now_ms(consumer) + 3 * consumer->settings.lease_ms);
    put_number(out, ":f", (int64_t)shard->seen.fence);
    put_number(out, ":n", consumer_now_ms(consumer));
    buf_text(out, "}}");
}

/* For UpdateItem: the lease is nobody's. */
void put_position_release(struct buf *out, const struct shard *shard)
{
    put_head(out, shard);
    buf_text(out, ",\"UpdateExpression\":\"REMOVE #o, #u\","
                  "\"ConditionExpression\":\"#f = :f AND #o = :o\","
                  "\"ExpressionAttributeNames\":{\"#f\":\"fence\",\"#o\":\"owner\",\"#u\":\"until\"},"
                  "\"ExpressionAttributeValues\":{\":f\":{\"N\":");
    buf_printf(out, "\"%llu\"}", (unsigned long long)shard->seen.fence);
    put_text(out, ":o", slice_of(shard->reader->consumer->settings.owner));
    buf_text(out, "}}");
}

/* ---- a commit ---- */

static void put_changes(struct buf *out, const struct shard *shard, const struct commit_plan *plan)
{
    buf_text(out, ",\"UpdateExpression\":\"SET #m = :m, #k = :k");
    if (plan->lanes) buf_text(out, ", #a = :a, #l = :l");
    for (uint32_t i = 0; !plan->lanes && i < shard->lane_count; i++)
        if (plan->moves_lane[i]) buf_printf(out, ", #a.#%u = :t%u", i, i);
    if (plan->ends) buf_text(out, ", #e = :e");
    if (plan->renews) buf_text(out, ", #u = :u");
    if (plan->loses_iterator) buf_text(out, " REMOVE #i, #s");
    buf_text(out, "\",\"ConditionExpression\":\"#f = :f AND #m = :p");
    for (uint32_t i = 0; i < shard->lane_count; i++)
        if (plan->moves_lane[i] || plan->lanes) buf_printf(out, " AND #a.#%u = :s%u", i, i);
    buf_byte(out, '"');
}

static void put_names(struct buf *out, const struct shard *shard, const struct commit_plan *plan)
{
    bool has_points = plan->lanes != 0;
    buf_text(out, ",\"ExpressionAttributeNames\":{\"#f\":\"fence\",\"#m\":\"moves\",\"#k\":\"mark\"");
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        if (!plan->moves_lane[i] && !plan->lanes) continue;
        buf_printf(out, ",\"#%u\":\"%u\"", i, i);
        has_points = true;
    }
    if (has_points) buf_text(out, ",\"#a\":\"at\"");
    if (plan->lanes) buf_text(out, ",\"#l\":\"lanes\"");
    if (plan->ends) buf_text(out, ",\"#e\":\"ended\"");
    if (plan->renews) buf_text(out, ",\"#u\":\"until\"");
    if (plan->loses_iterator) buf_text(out, ",\"#i\":\"iterator\",\"#s\":\"since\"");
    buf_byte(out, '}');
}

static void put_values(struct buf *out, const struct shard *shard, const struct commit_plan *plan)
{
    char name[16];
    buf_printf(out, ",\"ExpressionAttributeValues\":{\":f\":{\"N\":\"%llu\"}",
               (unsigned long long)shard->seen.fence);
    put_number(out, ":p", (int64_t)shard->seen.moves);
    put_number(out, ":m", (int64_t)shard->seen.moves + 1);
    put_number(out, ":k", (int64_t)plan->mark);
    for (uint32_t i = 0; i < shard->lane_count; i++) {
        if (!plan->moves_lane[i] && !plan->lanes) continue;
        snprintf(name, sizeof name, ":s%u", i);
        put_text(out, name, point_view(&shard->lanes[i].at));
        if (plan->lanes) continue;
        snprintf(name, sizeof name, ":t%u", i);
        put_text(out, name, point_view(&plan->to[i]));
    }
    if (plan->lanes) {
        buf_text(out, ",\":a\":");
        put_points(out, plan->to, plan->lanes, true);
        put_number(out, ":l", plan->lanes);
    }
    if (plan->ends) buf_text(out, ",\":e\":{\"BOOL\":true}");
    if (plan->renews) put_number(out, ":u", lease_until_ms(shard->reader->consumer));
    buf_byte(out, '}');
}

/* For UpdateItem, or as the Update of a transaction. */
void put_position_commit(struct buf *out, const struct shard *shard, const struct commit_plan *plan)
{
    put_head(out, shard);
    put_changes(out, shard, plan);
    put_names(out, shard, plan);
    put_values(out, shard, plan);
    buf_text(out, ",\"ReturnValuesOnConditionCheckFailure\":\"ALL_OLD\"}");
}
