/* Names of streams, shards and records. */
#include "api/settings.h"
#include "api/streams.h"

#define SEQUENCE_DIGITS 20 /* behind the leading 1, which makes them 21: the service's least */

const struct shape shape_stream_arn = STRING_SHAPE_SIZED(37, 1024);
const struct shape shape_shard_id = STRING_SHAPE_SIZED(28, 65);

void put_stream_arn(struct buf *out, const struct api *api, const struct stream *stream)
{
    put_table_arn(out, api, stream->table_name);
    buf_text(out, "/stream/");
    put_stream_label(out, stream->since_ms);
}

/* The time first, so that the order of names is that of the shards: the service's client libraries count on
 * it. */
void put_shard_id(struct buf *out, const struct stream *stream, const struct shard_description *shard)
{
    buf_printf(out, "shardId-%020lld-%08x%08x", (long long)shard->created_ms, stream->number, shard->number);
}

void put_sequence(struct buf *out, uint64_t sequence)
{
    char digits[SEQUENCE_DIGITS + 1];
    digits[0] = '1';
    for (int i = SEQUENCE_DIGITS; i > 0; i--) {
        digits[i] = (char)('0' + sequence % 10);
        sequence /= 10;
    }
    buf_put(out, digits, sizeof digits);
}

bool sequence_parse(struct slice text, uint64_t *out)
{
    unsigned long long sequence;
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < '0' || text.data[i] > '9') return false;
    while (text.len > SEQUENCE_DIGITS + 1 && text.data[0] == '0') text = slice_from(text, 1);
    *out = text.len > SEQUENCE_DIGITS + 1 || (text.len && text.data[0] > '1') ? UINT64_MAX : 0;
    if (text.len == SEQUENCE_DIGITS + 1 && text.data[0] == '1')
        *out = slice_to_u64(slice_from(text, 1), UINT64_MAX, &sequence) ? sequence : UINT64_MAX;
    return text.len > 0;
}

/* ---- finding ---- */

static bool has_label(const struct stream *stream, struct slice label)
{
    struct buf own = {0};
    put_stream_label(&own, stream->since_ms);
    bool is_same = slice_equal(buf_view(&own), label);
    buf_free(&own);
    return is_same;
}

struct stream *stream_of_arn(struct api_call *call, struct slice arn)
{
    struct resource resource;
    struct stream *found = NULL;
    uint32_t count;
    enum resource_fault fault = resource_parse(call->api, arn, &resource);
    bool elsewhere = fault == RESOURCE_ELSEWHERE || fault == RESOURCE_OTHER_ACCOUNT;
    if (!resource.stream_label.len || (fault != RESOURCE_FINE && !elsewhere)) {
        invalid(call, "Invalid StreamArn");
        return NULL;
    }
    struct stream **streams = engine_streams(call->api->engine, call->arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        bool is_it = !found && !elsewhere && slice_equal(streams[i]->table_name, resource.table_name) &&
                     has_label(streams[i], resource.stream_label);
        if (is_it)
            found = streams[i];
        else
            engine_stream_release(streams[i]);
    }
    if (!found)
        refuse(call, "ResourceNotFoundException", "Requested resource not found: Stream: %.*s not found",
               SLICE_ARG(arn));
    return found;
}

const struct shard_description *shard_of_number(const struct stream *stream, uint32_t number)
{
    for (uint32_t i = 0; i < stream->shard_count; i++)
        if (stream->shards[i].number == number) return &stream->shards[i];
    return NULL;
}

const struct shard_description *shard_of_id(const struct stream *stream, struct slice id)
{
    const struct shard_description *found = NULL;
    struct buf own = {0};
    for (uint32_t i = 0; i < stream->shard_count && !found; i++) {
        own.len = 0;
        put_shard_id(&own, stream, &stream->shards[i]);
        if (slice_equal(buf_view(&own), id)) found = &stream->shards[i];
    }
    buf_free(&own);
    return found;
}
