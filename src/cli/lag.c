/* The lag of a trigger, found where it is kept: the items of the table of positions say how far each lane of
 * each shard has come; the record that follows the slowest one, if there is any, is what waits. */
#include "cli/lag.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static const struct node *positions(const struct place *place, struct arena *arena, struct slice id)
{
    struct buf request = {0};
    request_begin(&request, arena_printf(arena, "%spositions", place->prefix).data);
    buf_text(&request, ",\"ConsistentRead\":true,\"KeyConditionExpression\":\"mapping = :id\","
                       "\"ExpressionAttributeValues\":{\":id\":{");
    put_string_member(&request, "S", id);
    buf_text(&request, "}}}");
    struct answer answer = place_ask(place, arena, "Query", &request);
    buf_free(&request);
    return answer.error ? NULL : node_member(answer.json, "Items");
}

static bool is_number(struct slice point)
{
    return point.len && point.data[0] >= '0' && point.data[0] <= '9';
}

/* By value: a longer one is larger. What is no number yet comes before all that are. */
static bool is_before(struct slice a, struct slice b)
{
    if (!is_number(a) || !is_number(b)) return !is_number(a) && is_number(b);
    return a.len != b.len ? a.len < b.len : slice_compare(a, b) < 0;
}

/* The slowest lane's point. */
static struct slice slowest(const struct node *position)
{
    const struct node *lanes = node_member(node_member(position, "at"), "M");
    struct slice point = SLICE_NONE;
    for (const struct node *lane = lanes ? lanes->first : NULL; lane; lane = lane->next) {
        struct slice at = node_text(lane, "S");
        if (!point.data || is_before(at, point)) point = at;
    }
    return point;
}

/* The reply to a request about a shard from a point on, up to its first record; NULL when there is none. */
static const struct node *record_after(const struct place *place, struct arena *arena, struct slice stream,
                                       struct slice shard, struct slice point)
{
    struct buf request = {0};
    buf_byte(&request, '{');
    put_string_member(&request, "StreamArn", stream);
    put_string_member(&request, "ShardId", shard);
    put_string_member(&request, "ShardIteratorType",
                      is_number(point) ? SLICE("AFTER_SEQUENCE_NUMBER") : point);
    if (is_number(point)) put_string_member(&request, "SequenceNumber", point);
    buf_byte(&request, '}');
    struct answer answer = place_ask(place, arena, "GetShardIterator", &request);
    request.len = 0;
    buf_byte(&request, '{');
    put_string_member(&request, "ShardIterator", node_text(answer.json, "ShardIterator"));
    put_raw_member(&request, "Limit", SLICE("1"));
    buf_byte(&request, '}');
    if (!answer.error) answer = place_ask(place, arena, "GetRecords", &request);
    buf_free(&request);
    const struct node *records = answer.error ? NULL : node_member(answer.json, "Records");
    return records ? records->first : NULL;
}

static int64_t age_ms(const struct node *record)
{
    struct slice text = node_text(node_member(record, "dynamodb"), "ApproximateCreationDateTime");
    char digits[64] = "";
    if (!text.len || text.len >= sizeof digits) return 0;
    memcpy(digits, text.data, text.len);
    int64_t age = clock_now_ms(&clock_system) - (int64_t)(strtod(digits, NULL) * 1000);
    return age > 0 ? age : 1;
}

int64_t lag_of_mapping(const struct place *place, struct arena *arena, struct slice id, struct slice stream)
{
    const struct node *items = positions(place, arena, id);
    int64_t lag = items ? 0 : -1;
    for (const struct node *item = items ? items->first : NULL; item; item = item->next) {
        struct slice shard = node_text(node_member(item, "shard"), "S"), point = slowest(item);
        if (!slice_starts(shard, SLICE("shardId-")) || !point.len) continue;
        if (node_is_true(node_member(item, "ended"), "BOOL")) continue;
        const struct node *record = record_after(place, arena, stream, shard, point);
        if (record && age_ms(record) > lag) lag = age_ms(record);
    }
    return lag;
}
