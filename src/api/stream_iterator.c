/* Iterators, and GetShardIterator.
 *
 * A token is a few numbers with a hash over them, in base64. It needs no memory here and stays good across a
 * restart; whoever makes one up without reading this file is refused. */
#include "api/streams.h"
#include "api/tables.h"
#include "base/hash.h"

#define ITERATOR_LIFE_MS (15 * 60 * INT64_C(1000))
#define TOKEN_BYTES      33 /* version, stream, shard, position, time, hash */
#define TOKEN_VERSION    1
#define TOKEN_SALT       UINT64_C(0x71756970752d6974)

/* ---- tokens ---- */

static uint64_t token_hash(struct slice bytes)
{
    return hash_bytes(bytes) ^ TOKEN_SALT;
}

void put_iterator(struct buf *out, const struct iterator *iterator)
{
    char memory[TOKEN_BYTES];
    struct buf token = {.data = memory, .cap = sizeof memory};
    buf_byte(&token, TOKEN_VERSION);
    buf_u32(&token, iterator->stream);
    buf_u32(&token, iterator->shard);
    buf_u64(&token, iterator->position);
    buf_u64(&token, (uint64_t)iterator->made_ms);
    buf_u64(&token, token_hash(buf_view(&token)));
    json_put_base64(out, buf_view(&token));
}

bool iterator_parse(struct api_call *call, struct slice text, struct iterator *out)
{
    struct slice token;
    if (base64_decode(call->arena, text, &token) != BASE64_OK || token.len != TOKEN_BYTES ||
        token.data[0] != TOKEN_VERSION ||
        bytes_u64(token.data + TOKEN_BYTES - 8) != token_hash((struct slice){token.data, TOKEN_BYTES - 8}))
        return invalid(call, "Invalid ShardIterator");
    *out = (struct iterator){.stream = bytes_u32(token.data + 1),
                             .shard = bytes_u32(token.data + 5),
                             .position = bytes_u64(token.data + 9),
                             .made_ms = (int64_t)bytes_u64(token.data + 17)};
    if (engine_now_ms(call->api->engine) - out->made_ms > ITERATOR_LIFE_MS)
        return refuse(call, "ExpiredIteratorException",
                      "The provided iterator exceeds the maximum age allowed.");
    return true;
}

bool refuse_trimmed(struct api_call *call)
{
    return refuse(call, "TrimmedDataAccessException", "The data you are trying to access has been trimmed");
}

/* ---- GetShardIterator ---- */

enum { GET_STREAM, GET_SHARD, GET_TYPE, GET_SEQUENCE };

static const char *const iterator_types[] = {"AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER",
                                             "TRIM_HORIZON", NULL};
static const struct shape shape_iterator_type = ENUM_SHAPE(iterator_types);
static const struct shape shape_sequence = STRING_SHAPE_SIZED(21, 40);
static const struct shape_member get_members[] = {
    [GET_STREAM] = REQUIRED("StreamArn", shape_stream_arn),
    [GET_SHARD] = REQUIRED("ShardId", shape_shard_id),
    [GET_TYPE] = REQUIRED("ShardIteratorType", shape_iterator_type),
    [GET_SEQUENCE] = MEMBER("SequenceNumber", shape_sequence),
};
static const struct shape get_shape = STRUCT_SHAPE("GetShardIteratorInput", get_members);

static bool check_sequence(struct api_call *call, const struct node *sequence, bool is_wanted, uint64_t *out)
{
    if (!is_wanted && sequence->present)
        return invalid(call, INVALID_VALUES "SequenceNumber should not be passed for this iterator type");
    if (is_wanted && (!sequence->present || !sequence_parse(sequence->text, out)))
        return invalid(call, INVALID_VALUES "Invalid SequenceNumber");
    return true;
}

/* A number that was given must be one that the shard could have given to a record. */
static bool place_at(struct api_call *call, const struct shard_description *shard, uint64_t sequence)
{
    if (sequence < shard->first || (shard->last && sequence > shard->last))
        return invalid(call, "Invalid SequenceNumber for the shard");
    return sequence >= engine_stream_horizon(call->api->engine) || refuse_trimmed(call);
}

static bool place_iterator(struct api_call *call, const struct node *input,
                           const struct shard_description *shard, uint64_t sequence, uint64_t *position)
{
    const struct node *type = node_member(input, GET_TYPE);
    *position = 0;
    if (node_says(type, "TRIM_HORIZON")) return true;
    if (node_says(type, "LATEST")) {
        *position = shard->last ? shard->last + 1 : engine_stream_next(call->api->engine);
        return true;
    }
    if (!place_at(call, shard, sequence)) return false;
    *position = sequence + node_says(type, "AFTER_SEQUENCE_NUMBER");
    return true;
}

static void put_iterator_of(struct api_call *call, const struct node *input, const struct stream *stream,
                            uint64_t sequence)
{
    const struct shard_description *shard = shard_of_id(stream, node_member(input, GET_SHARD)->text);
    struct iterator iterator = {.stream = stream->number, .made_ms = engine_now_ms(call->api->engine)};
    if (!shard) {
        refuse(call, "ResourceNotFoundException", "Requested resource not found: Shard does not exist");
        return;
    }
    iterator.shard = shard->number;
    if (!place_iterator(call, input, shard, sequence, &iterator.position)) return;
    buf_text(call->reply, "{\"ShardIterator\":");
    put_iterator(call->reply, &iterator);
    buf_byte(call->reply, '}');
}

static void get_begin(struct api_call *call, const struct node *input)
{
    const struct node *type = node_member(input, GET_TYPE);
    bool by_sequence = node_says(type, "AT_SEQUENCE_NUMBER") || node_says(type, "AFTER_SEQUENCE_NUMBER");
    uint64_t sequence = 0;
    if (!check_sequence(call, node_member(input, GET_SEQUENCE), by_sequence, &sequence)) return;
    struct stream *stream = stream_of_arn(call, node_member(input, GET_STREAM)->text);
    if (!stream) return;
    put_iterator_of(call, input, stream, sequence);
    engine_stream_release(stream);
}

const struct operation operation_GetShardIterator = {
    .name = TEXT("GetShardIterator"),
    .input = &get_shape,
    .begin = get_begin,
};
