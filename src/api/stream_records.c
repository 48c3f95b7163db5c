/* GetRecords. A reader asks again and again, so this is the one way through streams that has to be quick: a
 * record's JSON is written straight from its decoded form, and decoding reuses one piece of memory. */
#include "api/settings.h"
#include "api/streams.h"
#include "base/hash.h"

#define RECORDS_MAX   1000
#define RECORDS_BYTES (1024 * 1024)

enum { GET_ITERATOR, GET_LIMIT };

static const struct shape shape_iterator = STRING_SHAPE_SIZED(1, 2048);
static const struct shape_member get_members[] = {
    [GET_ITERATOR] = REQUIRED("ShardIterator", shape_iterator),
    [GET_LIMIT] = MEMBER("Limit", shape_limit),
};
static const struct shape get_shape = STRUCT_SHAPE("GetRecordsInput", get_members);

/* The records of one shard while they are written down. */
struct reading {
    struct api_call *call;
    const struct stream *stream;
    struct arena scratch;
    int64_t limit, count;
    size_t bytes;
    uint64_t first, next; /* sequence number of the first record found; where the next page begins */
    bool more, damaged;
};

/* ---- one record ---- */

/* 32 hexadecimal digits that no other record has and that stay the same however often it is read. */
static void put_event_id(struct buf *out, const struct stream *stream, uint64_t sequence)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t words[2] = {((uint64_t)stream->number << 32) ^ (uint64_t)stream->since_ms, sequence};
    uint64_t halves[2] = {hash_bytes((struct slice){(const char *)words, sizeof words}), sequence};
    buf_text(out, "{\"eventID\":\"");
    buf_reserve(out, 32);
    for (int i = 0; i < 32; i++) out->data[out->len++] = digits[halves[i / 16] >> (60 - i % 16 * 4) & 15];
}

static void put_image(struct buf *out, const char *name, const struct map *record, struct slice member)
{
    const struct value *image = map_find(record, member);
    if (!image || image->type != VALUE_M) return;
    buf_text(out, ",\"");
    buf_slice(out, slice_of(name));
    buf_text(out, "\":");
    api_put_item_json(out, &image->map);
}

/* A member of our own: what the service does not tell. */
static void put_own(struct buf *out, const struct map *record, const char *stored, const char *name)
{
    struct slice text = map_text(record, stored);
    if (!text.len) return;
    buf_printf(out, ",\"%s\":", name);
    json_put_string(out, text);
}

static void put_record(struct reading *reading, const struct map *record, uint64_t sequence)
{
    static const char *const events[] = {"INSERT", "MODIFY", "REMOVE"};
    struct buf *out = reading->call->reply;
    int64_t event = map_integer(record, "event");
    put_event_id(out, reading->stream, sequence);
    buf_text(out, "\",\"eventName\":\"");
    buf_slice(out, slice_of(events[event < 3 ? event : 1]));
    buf_text(out, "\",\"eventVersion\":\"1.1\",\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"");
    buf_slice(out, reading->call->api->region);
    buf_text(out, "\",\"dynamodb\":{\"ApproximateCreationDateTime\":");
    json_put_int(out, map_integer(record, "time") / 1000);
    put_image(out, "Keys", record, SLICE("keys"));
    put_image(out, "NewImage", record, SLICE("new"));
    put_image(out, "OldImage", record, SLICE("old"));
    buf_text(out, ",\"SequenceNumber\":\"");
    put_sequence(out, sequence);
    buf_text(out, "\",\"SizeBytes\":");
    json_put_int(out, map_integer(record, "size"));
    buf_text(out, ",\"StreamViewType\":\"");
    buf_slice(out, slice_of(stream_view_name(reading->stream->view)));
    buf_text(out, "\"}");
    if (map_truth(record, "expired"))
        buf_text(out, ",\"userIdentity\":{\"PrincipalId\":\"dynamodb.amazonaws.com\",\"Type\":\"Service\"}");
    if (reading->call->shows_causes) {
        put_own(out, record, "cause", "cause");
        put_own(out, record, "token", "transaction");
        buf_text(out, ",\"time\":"); /* last, so that readers can cut it off */
        json_put_int(out, map_integer(record, "time"));
    }
    buf_byte(out, '}');
}

static bool visit(void *context, uint64_t sequence, struct slice encoded)
{
    struct reading *reading = context;
    struct map record;
    if (reading->count == reading->limit ||
        (reading->count && reading->bytes + encoded.len > RECORDS_BYTES)) {
        reading->more = true;
        return false;
    }
    arena_reset(&reading->scratch);
    reading->damaged = !item_decode(&reading->scratch, encoded, &record);
    if (reading->damaged) return false;
    if (reading->count++)
        buf_byte(reading->call->reply, ',');
    else
        reading->first = sequence;
    put_record(reading, &record, sequence);
    reading->bytes += encoded.len;
    reading->next = sequence + 1;
    return true;
}

/* ---- the operation ---- */

/* True when the iterator points at a number below which records are cut off, and its own may have been among
 * them. */
static bool is_trimmed(const struct reading *reading, const struct iterator *iterator)
{
    if (!iterator->position || reading->first == iterator->position) return false;
    return iterator->position < engine_stream_horizon(reading->call->api->engine);
}

static void put_next(struct reading *reading, const struct iterator *iterator)
{
    buf_text(reading->call->reply, ",\"NextShardIterator\":");
    put_iterator(reading->call->reply,
                 &(struct iterator){.stream = iterator->stream,
                                    .shard = iterator->shard,
                                    .position = reading->next,
                                    .made_ms = engine_now_ms(reading->call->api->engine)});
}

/* What was not there yet when the reading began is the next page's, so all that was seen to be missing need
 * not be looked for again. */
static void read_records(struct reading *reading, const struct iterator *iterator,
                         const struct shard_description *shard)
{
    struct api_call *call = reading->call;
    uint64_t visible = engine_stream_next(call->api->engine), from = iterator->position;
    if (from < shard->first) from = shard->first;
    reading->next = from;
    buf_text(call->reply, "{\"Records\":[");
    enum engine_result result = engine_stream_read(call->api->engine, iterator->stream, iterator->shard, from,
                                                   visit, reading);
    buf_byte(call->reply, ']');
    if (result != ENGINE_OK || reading->damaged) {
        refuse(call, "InternalServerError", "Internal server error");
    } else if (!(shard->last && from > shard->last) && is_trimmed(reading, iterator)) {
        refuse_trimmed(call);
    } else {
        if (!reading->more && reading->next < visible) reading->next = visible;
        if (reading->more || !shard->last) put_next(reading, iterator);
        buf_byte(call->reply, '}');
    }
}

static void get_begin(struct api_call *call, const struct node *input)
{
    const struct node *limit = node_member(input, GET_LIMIT);
    struct iterator iterator;
    if (limit->present && limit->integer > RECORDS_MAX) {
        invalid(call, INVALID_VALUES "Limit should be less than or equal to %d", RECORDS_MAX);
        return;
    }
    if (!iterator_parse(call, node_member(input, GET_ITERATOR)->text, &iterator)) return;
    struct stream *stream = engine_stream_find(call->api->engine, iterator.stream);
    const struct shard_description *shard = stream ? shard_of_number(stream, iterator.shard) : NULL;
    if (shard) {
        struct reading reading = {
            .call = call, .stream = stream, .limit = limit->present ? limit->integer : RECORDS_MAX};
        read_records(&reading, &iterator, shard);
        arena_free(&reading.scratch);
    } else if (stream) {
        refuse_trimmed(call);
    } else {
        refuse(call, "ResourceNotFoundException", "Requested resource not found: Stream does not exist");
    }
    if (stream) engine_stream_release(stream);
}

const struct operation operation_GetRecords = {
    .name = TEXT("GetRecords"),
    .input = &get_shape,
    .begin = get_begin,
};
