/* The document that tells a mapping's destination of records that were given up: Lambda's form, which
 * names the records by their numbers and does not hold them, but for a bucket (S3): there it has the event.
 * A queue keeps the call beside it, so that the records can be sent again also when the stream has lost them. */
#include <stdio.h>

#include "calendar/calendar.h"
#include "trigger/consume.h"

/* In quotes; whole seconds without a fraction, as Lambda writes them. */
void put_moment(struct buf *out, int64_t moment_ms)
{
    struct arena arena = {0};
    struct slice text = moment_text(&arena, moment_ms);
    bool is_whole = moment_ms % 1000 == 0 && text.len > 5;
    buf_byte(out, '"');
    buf_put(out, text.data, is_whole ? text.len - 5 : text.len); /* .000Z */
    if (is_whole) buf_byte(out, 'Z');
    buf_byte(out, '"');
    arena_free(&arena);
}

static void put_text(struct buf *out, const char *name, struct slice text)
{
    buf_printf(out, "\"%s\":", name);
    json_put_string(out, text);
}

static void put_request(struct buf *out, const struct lane *lane, const char *condition)
{
    buf_text(out, "\"requestContext\":{");
    put_text(out, "requestId", slice_of(lane->request_id));
    buf_byte(out, ',');
    put_text(out, "functionArn", lane_mapping(lane)->function_arn);
    buf_byte(out, ',');
    put_text(out, "condition", slice_of(condition));
    buf_printf(out, ",\"approximateInvokeCount\":%u}", lane->invocations);
    if (!lane->was_invoked) return;
    buf_text(out, ",\"responseContext\":{\"statusCode\":200,");
    put_text(out, "executedVersion", slice_of(lane->version));
    if (lane->error_kind[0]) {
        buf_byte(out, ',');
        put_text(out, "functionError", slice_of(lane->error_kind));
    }
    buf_byte(out, '}');
    if (lane->error.len) { /* ours: why, as an asynchronous call's has it */
        buf_text(out, ",\"responsePayload\":");
        buf_slice(out, buf_view(&lane->error));
    }
}

void put_document(struct buf *out, const struct lane *lane, uint32_t count, const char *condition,
                  int64_t now_ms)
{
    buf_byte(out, '{');
    put_request(out, lane, condition);
    buf_text(out, ",\"version\":\"1.0\",\"timestamp\":");
    put_moment(out, now_ms);
    buf_byte(out, ',');
    const struct record *records = lane_head(lane);
    buf_text(out, "\"DDBStreamBatchInfo\":{");
    put_text(out, "shardId", slice_of(lane->shard->id));
    if (count) {
        buf_byte(out, ',');
        put_text(out, "startSequenceNumber", records[0].sequence);
        buf_byte(out, ',');
        put_text(out, "endSequenceNumber", records[count - 1].sequence);
        buf_text(out, ",\"approximateArrivalOfFirstRecord\":");
        put_moment(out, records[0].created_ms);
        buf_text(out, ",\"approximateArrivalOfLastRecord\":");
        put_moment(out, records[count - 1].created_ms);
    }
    buf_printf(out, ",\"batchSize\":%u,", count);
    put_text(out, "streamArn", lane_mapping(lane)->stream_arn);
    buf_byte(out, '}');
    buf_byte(out, '}');
}

/* The document's last brace becomes the member `payload`: the event, as a string. */
static void add_payload(struct buf *document, struct slice event)
{
    document->len--;
    buf_byte(document, ',');
    put_text(document, "payload", event);
    buf_byte(document, '}');
}

/* An asynchronous call has no window, and nobody hears which of its records have failed. */
static bool is_redrivable(const struct lane *lane, uint32_t count)
{
    const struct mapping *mapping = lane_mapping(lane);
    return count && !mapping->reports_failures && !mapping->tumbling_ms && !lane->window.is_open &&
           !mapping->watch;
}

/* Its members go into the lane's settlement; false when there is no destination, or it cannot be used. The
 * id is the same whoever gives these records up. */
bool put_failure_document(struct lane *lane, uint32_t count, const char *condition)
{
    struct consumer *consumer = lane->shard->reader->consumer;
    struct settlement *settlement = &lane->settlement;
    struct slice destination = lane_mapping(lane)->on_failure;
    char id[LIMIT_SHARD_ID_BYTES + 160];
    if (!destination.len) return false;
    struct slice from = count ? lane_head(lane)->sequence : point_view(&lane->at);
    snprintf(id, sizeof id, "%.*s/%s/%u/%.*s/%u", SLICE_ARG(lane_mapping(lane)->id), lane->shard->id,
             lane->number, SLICE_ARG(from), count);
    consumer->text.len = 0;
    put_document(&consumer->text, lane, count, condition, consumer_now_ms(consumer));
    struct arena arena = {0};
    struct buf event = {0}, with_payload = {0};
    put_payload(&event, lane, count);
    const struct func_call own = {.function = lane_mapping(lane)->function,
                                  .payload = buf_view(&event),
                                  .cause = join_causes(lane, count, &arena),
                                  .on_failure = destination};
    const struct func_call *call = is_redrivable(lane, count) ? &own : NULL;
    if (count && slice_starts(destination, SLICE("arn:")) && slice_contains(destination, SLICE(":s3:::"))) {
        buf_slice(&with_payload, buf_view(&consumer->text));
        add_payload(&with_payload, buf_view(&event));
        settlement->has_document = consumer->world.destination(
            consumer->world.func, destination, buf_view(&with_payload), slice_of(id), call,
            &settlement->children, &settlement->child_count);
    }
    if (!settlement->has_document) /* else it is too large for an item, perhaps: without it */
        settlement->has_document = consumer->world.destination(
            consumer->world.func, destination, buf_view(&consumer->text), slice_of(id), call,
            &settlement->children, &settlement->child_count);
    buf_free(&event);
    buf_free(&with_payload);
    arena_free(&arena);
    return settlement->has_document;
}
