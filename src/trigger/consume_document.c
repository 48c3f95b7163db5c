/* The document that tells a mapping's destination of records that were given up: Lambda's form, which
 * names the records by their numbers and does not hold them, but for a bucket (S3): there it has the event.
 * A queue keeps the call beside it, so that the records can be sent again also when the stream has lost them. */
#include <stdio.h>

#include "base/compose.h"
#include "calendar/calendar.h"
#include "trigger/consume.h"

/* Whole seconds without a fraction, as Lambda writes them. */
struct slice moment_shown(struct arena *arena, int64_t moment_ms)
{
    struct slice text = moment_text(arena, moment_ms);
    return moment_ms % 1000 == 0 ? arena_printf(arena, "%.*sZ", (int)(text.len - strlen(".000Z")), text.data)
                                 : text;
}

static struct slice or_none(struct slice text)
{
    return text.len ? text : SLICE_NONE;
}

/* The event goes to a bucket only. The error is ours: why, as an asynchronous call's document has it. */
static void put_document(struct buf *out, const struct lane *lane, uint32_t count, const char *condition,
                         struct slice event)
{
    const struct mapping *mapping = lane_mapping(lane);
    const struct record *records = lane_head(lane);
    struct arena arena = {0};
    compose(
        out, "{'requestContext':{'requestId':%s,'functionArn':%s,'condition':%s,'approximateInvokeCount':%d}",
        slice_of(lane->request_id), mapping->function_arn, slice_of(condition), (int64_t)lane->invocations);
    if (lane->was_invoked)
        compose(out,
                ",'responseContext':{'statusCode':200,'executedVersion':%s%[,'functionError':%s%]}"
                "%[,'responsePayload':%A%]",
                slice_of(lane->version), or_none(slice_of(lane->error_kind)),
                or_none(buf_view(&lane->error)));
    compose(out, ",'version':'1.0','timestamp':%s,'DDBStreamBatchInfo':{'shardId':%s",
            moment_shown(&arena, consumer_now_ms(lane->shard->reader->consumer)), slice_of(lane->shard->id));
    if (count)
        compose(out,
                ",'startSequenceNumber':%s,'endSequenceNumber':%s,'approximateArrivalOfFirstRecord':%s,"
                "'approximateArrivalOfLastRecord':%s",
                records[0].sequence, records[count - 1].sequence, moment_shown(&arena, records[0].created_ms),
                moment_shown(&arena, records[count - 1].created_ms));
    compose(out, ",'batchSize':%d,'streamArn':%s}%[,'payload':%s%]}", (int64_t)count, mapping->stream_arn,
            event);
    arena_free(&arena);
}

/* An asynchronous call has no window, and nobody hears which of its records have failed. */
static bool is_redrivable(const struct lane *lane, uint32_t count)
{
    const struct mapping *mapping = lane_mapping(lane);
    return count && !mapping->reports_failures && !mapping->tumbling_ms && !lane->window.is_open &&
           !mapping->watch;
}

/* Its members go into the lane's settlement; false when there is no destination, or it cannot be used. The
 * id is the same whoever gives these records up, and another one when they come again because the mapping was moved:
 * where there are no transactions a letter that was redriven has left a tombstone by its id (letter.h). */
bool put_failure_document(struct lane *lane, uint32_t count, const char *condition)
{
    struct consumer *consumer = lane->shard->reader->consumer;
    struct settlement *settlement = &lane->settlement;
    struct slice destination = lane_mapping(lane)->on_failure;
    char id[LIMIT_SHARD_ID_BYTES + 160];
    if (!destination.len) return false;
    struct slice from = count ? lane_head(lane)->sequence : point_view(&lane->at);
    size_t len = (size_t)snprintf(id, sizeof id, "%.*s/%s/%u/%.*s/%u", SLICE_ARG(lane_mapping(lane)->id),
                                  lane->shard->id, lane->number, SLICE_ARG(from), count);
    if (lane->shard->seen.moved)
        snprintf(id + len, sizeof id - len, "/%lld", (long long)lane->shard->seen.moved);
    struct arena arena = {0};
    struct buf event = {0}, *document = &consumer->text;
    put_payload(&event, lane, count);
    const struct func_call own = {.function = lane_mapping(lane)->function,
                                  .payload = buf_view(&event),
                                  .cause = join_causes(lane, count, &arena),
                                  .on_failure = destination};
    const struct func_call *call = is_redrivable(lane, count) ? &own : NULL;
    bool is_bucket = slice_starts(destination, SLICE("arn:")) && slice_contains(destination, SLICE(":s3:::"));
    struct slice payload = count && is_bucket ? buf_view(&event) : SLICE_NONE;
    /* Without the payload where it is too large for an item, perhaps. */
    for (int tries = payload.data ? 2 : 1; tries && !settlement->has_document;
         tries--, payload = SLICE_NONE) {
        document->len = 0;
        put_document(document, lane, count, condition, payload);
        settlement->has_document = consumer->world.destination(
            consumer->world.func, destination, buf_view(document), slice_of(id), call, &settlement->children,
            &settlement->child_count);
    }
    buf_free(&event);
    arena_free(&arena);
    return settlement->has_document;
}
