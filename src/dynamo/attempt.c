/* An attempt: the request's headers, signed when it goes on the wire, and what the reply is worth. On the
 * client's thread.
 *
 * Replies are asked for uncompressed, so that x-amz-crc32 can be checked: it covers the bytes as sent. */
#include <zlib.h>

#include "base/json.h"
#include "base/limits.h"
#include "dynamo/remote.h"

#define STRANGE_BYTES 200 /* of a reply that is shown because it is not understood */
#define NODE_CONNECT_MS 2000 /* to a node: where it is gone, another is there */
#define HEADERS       8   /* of a request, and the end of their list */

/* ---- the request ---- */

static const char *header_line(struct remote_call *call, const char *name, struct slice value)
{
    return arena_printf(call->call->arena, "%s: %.*s", name, SLICE_ARG(value)).data;
}

static unsigned add_signature(struct remote_call *call, struct slice target, const char *host,
                              const char **headers)
{
    struct remote *remote = call->remote;
    unsigned count = 0;
    char date[SIGNED_DATE_BYTES];
    struct buf authorization = {0};
    signature_make(
        &(struct signed_request){.credentials = &remote->keys,
                                 .method = SLICE("POST"),
                                 .service = SLICE("dynamodb"),
                                 .region = remote->region,
                                 .host = slice_of(host),
                                 .path = slice_of(remote->endpoint.path),
                                 .content_type = SLICE("application/x-amz-json-1.0"),
                                 .target = target,
                                 .body = call->http.body,
                                 .time_s = clock_now_ms(remote->clock) / 1000 + remote->clock_offset_s},
        date, &authorization);
    headers[count++] = header_line(call, "X-Amz-Date", slice_of(date));
    if (remote->keys.session_token.len)
        headers[count++] = header_line(call, "X-Amz-Security-Token", remote->keys.session_token);
    headers[count++] = header_line(call, "Authorization", buf_view(&authorization));
    buf_free(&authorization);
    return count;
}

static void prepare(struct client_call *http)
{
    struct remote_call *call = http->context;
    const struct endpoint *endpoint = &call->remote->endpoint;
    nodes_choose(call);
    const char *host = call->node_host ? call->node_host : call->to_streams ? endpoint->stream_host : endpoint->host;
    struct arena *arena = call->call->arena;
    struct slice target = arena_printf(arena, "%s_20120810.%.*s",
                                       call->to_streams ? "DynamoDBStreams" : "DynamoDB",
                                       SLICE_ARG(call->operation));
    const char **headers = arena_alloc(arena, HEADERS * sizeof *headers);
    unsigned count = 0;
    headers[count++] = header_line(call, "Host", slice_of(host));
    headers[count++] = "Content-Type: application/x-amz-json-1.0";
    headers[count++] = header_line(call, "X-Amz-Target", target);
    count += add_signature(call, target, host, headers + count);
    headers[count] = NULL;
    http->headers = headers;
    http->url = call->node_url ? call->node_url : call->to_streams ? endpoint->stream_url : endpoint->url;
    http->connect_ms = call->node_url ? NODE_CONNECT_MS : call->remote->options.connect_ms;
    http->reply->len = call->reply_start;
    call->has_checksum = false;
    call->date[0] = '\0';
    call->attempts++;
}

static void take_header(struct client_call *http, struct slice name, struct slice value)
{
    struct remote_call *call = http->context;
    unsigned long long checksum;
    if (slice_equal_ignoring_case(name, SLICE("x-amz-crc32")) && slice_to_u64(value, UINT32_MAX, &checksum)) {
        call->has_checksum = true;
        call->checksum = (uint32_t)checksum;
    } else if (slice_equal_ignoring_case(name, SLICE("date")) && value.len < sizeof call->date) {
        memcpy(call->date, value.data, value.len);
        call->date[value.len] = '\0';
    }
}

void attempt_init(struct remote_call *call, struct slice request)
{
    call->http = (struct client_call){.method = "POST",
                                      .body = request,
                                      .connect_ms = call->remote->options.connect_ms,
                                      .total_ms = call->remote->options.attempt_ms,
                                      .arena = call->call->arena,
                                      .reply = call->call->reply,
                                      .prepare = prepare,
                                      .header = take_header,
                                      .context = call};
}

/* ---- what came of it ---- */

static enum attempt_end end_of(enum client_end end)
{
    switch (end) {
    case CLIENT_ANSWERED: return ATTEMPT_ANSWERED;
    case CLIENT_UNCONNECTED: return ATTEMPT_UNCONNECTED;
    case CLIENT_BROKEN: return ATTEMPT_BROKEN;
    case CLIENT_REFUSED: return ATTEMPT_REFUSED;
    }
    return ATTEMPT_BROKEN;
}

static struct slice body_of(const struct remote_call *call)
{
    return slice_from(buf_view(call->call->reply), call->reply_start);
}

static bool is_damaged(const struct remote_call *call, struct slice body)
{
    return call->has_checksum &&
           (uint32_t)crc32(0, (const Bytef *)body.data, (uInt)body.len) != call->checksum;
}

/* Puts an error of our own in the place of what came. */
static void put_own_error(struct remote_call *call, const char *name, struct slice message)
{
    struct buf *reply = call->call->reply;
    reply->len = call->reply_start;
    buf_printf(reply, "{\"__type\":\"%s\",\"message\":", name);
    json_put_string(reply, message);
    buf_byte(reply, '}');
}

/* A page of a proxy, of a web server, of anything but DynamoDB. */
static void judge_strange_reply(struct remote_call *call, struct attempt *attempt, struct slice *message)
{
    struct slice body = body_of(call);
    if (body.len > STRANGE_BYTES) body.len = STRANGE_BYTES;
    if (!utf8_valid(body)) body.len = 0;
    *message = arena_printf(call->call->arena, "%s answered with status %d and no JSON: %.*s",
                            call->remote->endpoint.url, attempt->status, SLICE_ARG(body));
    attempt->error = SLICE("BadReplyException");
    put_own_error(call, "BadReplyException", *message);
}

static void judge_reply(struct remote_call *call, struct attempt *attempt, struct slice *message)
{
    attempt->status = call->http.status;
    struct slice body = body_of(call);
    if (is_damaged(call, body)) {
        attempt->end = ATTEMPT_DAMAGED;
        *message = SLICE("the reply does not have its checksum");
    } else if (!body.len && attempt->status == 200) {
        buf_text(call->call->reply, "{}"); /* TagResource and UntagResource answer with nothing */
    } else if (!body.len || body.data[0] != '{') {
        judge_strange_reply(call, attempt, message);
    } else if (attempt->status != 200) {
        dynamo_error(body, call->call->arena, &attempt->error, message);
        if (!attempt->error.len) judge_strange_reply(call, attempt, message);
    }
}

void attempt_judge(struct remote_call *call, struct attempt *attempt, struct slice *message)
{
    struct remote *remote = call->remote;
    *attempt = (struct attempt){.end = end_of(call->http.end), .number = call->attempts};
    *message = SLICE("");
    if (attempt->end == ATTEMPT_ANSWERED) {
        remote->has_answered = true;
        judge_reply(call, attempt, message);
    }
    attempt->endpoint_has_answered = remote->has_answered;
    if (attempt->end == ATTEMPT_ANSWERED) return;
    if (!message->len) *message = call->http.failure;
    *message = arena_printf(call->call->arena, "%s: %.*s (%u attempt%s)", remote->endpoint.url,
                            SLICE_ARG(*message), call->attempts, call->attempts == 1 ? "" : "s");
    attempt->status = 0;
    attempt->error = SLICE("NoReplyException");
    put_own_error(call, "NoReplyException", *message);
}
