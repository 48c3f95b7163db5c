/* An attempt on the wire: the request's headers, signed, the reply's bytes into the caller's buf, and what
 * came of it. On the door's thread only.
 *
 * Replies are asked for uncompressed, so that x-amz-crc32 can be checked: it covers the bytes as sent. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/limits.h"
#include "dynamo/remote.h"

#define RECEIVE_BYTES (64 * 1024l)
#define STRANGE_BYTES 200 /* of a reply that is shown because it is not understood */

/* ---- what libcurl calls ---- */

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct remote_call *call = transfer->call;
    size_t len = size * count;
    transfer->too_long = call->call->reply->len - call->reply_start + len > LIMIT_REMOTE_REPLY_BYTES;
    if (transfer->too_long) return 0;
    buf_put(call->call->reply, bytes, len);
    return len;
}

static struct slice trimmed(struct slice text)
{
    while (text.len && (text.data[0] == ' ' || text.data[0] == '\t')) text = slice_from(text, 1);
    while (text.len && strchr(" \t\r\n", text.data[text.len - 1])) text.len--;
    return text;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct slice line = {bytes, size * count};
    const char *colon = line.len ? memchr(bytes, ':', line.len) : NULL;
    if (!colon) return line.len;
    struct slice name = {bytes, (size_t)(colon - bytes)}, value = trimmed(slice_from(line, name.len + 1));
    unsigned long long checksum;
    if (slice_equal_ignoring_case(name, SLICE("x-amz-crc32")) && slice_to_u64(value, UINT32_MAX, &checksum)) {
        transfer->has_checksum = true;
        transfer->checksum = (uint32_t)checksum;
    } else if (slice_equal_ignoring_case(name, SLICE("date")) && value.len < sizeof transfer->date) {
        memcpy(transfer->date, value.data, value.len);
        transfer->date[value.len] = '\0';
    }
    return line.len;
}

/* ---- a handle ---- */

static void set_trust(struct transfer *transfer)
{
    const struct curl *curl = transfer->remote->curl;
    const char *file = transfer->remote->options.ca_file;
    if (!file) file = getenv("AWS_CA_BUNDLE");
    if (file && *file) curl->easy_setopt(transfer->easy, CURLOPT_CAINFO, file);
}

void transfer_init(struct transfer *transfer, struct remote *remote)
{
    const struct curl *curl = remote->curl;
    CURL *easy = curl->easy_init();
    ensure(easy);
    transfer->remote = remote;
    transfer->easy = easy;
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1l);
    curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(easy, CURLOPT_POST, 1l);
    curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1l);
    curl->easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)remote->options.connect_ms);
    curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)remote->options.attempt_ms);
    curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->failure);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl->easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl->easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    set_trust(transfer);
}

void transfer_free(struct transfer *transfer)
{
    transfer->remote->curl->easy_cleanup(transfer->easy);
    buf_free(&transfer->line);
}

/* ---- the request ---- */

static void add_header(struct transfer *transfer, const char *name, struct slice value)
{
    struct buf *line = &transfer->line;
    line->len = 0;
    buf_printf(line, "%s: %.*s", name, SLICE_ARG(value));
    buf_byte(line, '\0');
    struct curl_slist *longer = transfer->remote->curl->slist_append(transfer->headers, line->data);
    ensure(longer);
    transfer->headers = longer;
}

static void add_signature(struct transfer *transfer, struct slice target, const char *host)
{
    struct remote *remote = transfer->remote;
    char date[SIGNED_DATE_BYTES];
    struct buf authorization = {0};
    signature_make(
        &(struct signed_request){.credentials = &remote->keys,
                                 .region = remote->region,
                                 .host = slice_of(host),
                                 .path = slice_of(remote->endpoint.path),
                                 .target = target,
                                 .body = transfer->call->request,
                                 .time_s = clock_now_ms(remote->clock) / 1000 + remote->clock_offset_s},
        date, &authorization);
    add_header(transfer, "X-Amz-Date", slice_of(date));
    if (remote->keys.session_token.len)
        add_header(transfer, "X-Amz-Security-Token", remote->keys.session_token);
    add_header(transfer, "Authorization", buf_view(&authorization));
    buf_free(&authorization);
}

static void add_headers(struct transfer *transfer)
{
    struct remote_call *call = transfer->call;
    const struct endpoint *endpoint = &transfer->remote->endpoint;
    const char *host = call->to_streams ? endpoint->stream_host : endpoint->host;
    struct slice target = arena_printf(call->call->arena, "%s_20120810.%.*s",
                                       call->to_streams ? "DynamoDBStreams" : "DynamoDB",
                                       SLICE_ARG(call->operation));
    add_header(transfer, "Host", slice_of(host));
    add_header(transfer, "Content-Type", SLICE("application/x-amz-json-1.0"));
    add_header(transfer, "X-Amz-Target", target);
    add_header(transfer, "User-Agent", SLICE("quipu"));
    add_header(transfer, "Expect", SLICE("")); /* or libcurl would ask before it sends a large body */
    add_signature(transfer, target, host);
}

void transfer_start(struct transfer *transfer, struct remote_call *call)
{
    const struct curl *curl = transfer->remote->curl;
    const struct endpoint *endpoint = &transfer->remote->endpoint;
    ensure(!transfer->call && !transfer->headers);
    transfer->call = call;
    transfer->too_long = transfer->has_checksum = false;
    transfer->date[0] = transfer->failure[0] = '\0';
    call->call->reply->len = call->reply_start;
    call->attempts++;
    add_headers(transfer);
    curl->easy_setopt(transfer->easy, CURLOPT_URL, call->to_streams ? endpoint->stream_url : endpoint->url);
    curl->easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl->easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->request.len);
    curl->easy_setopt(transfer->easy, CURLOPT_POSTFIELDS, call->request.len ? call->request.data : "");
    ensure(curl->multi_add_handle(transfer->remote->multi, transfer->easy) == CURLM_OK);
}

void transfer_end(struct transfer *transfer)
{
    struct remote *remote = transfer->remote;
    remote->curl->multi_remove_handle(remote->multi, transfer->easy);
    remote->curl->slist_free_all(transfer->headers);
    transfer->headers = NULL;
    transfer->call = NULL;
    transfer->next_free = remote->free;
    remote->free = transfer;
}

/* ---- what came of it ---- */

static enum attempt_end end_of(struct transfer *transfer, CURLcode code)
{
    curl_off_t sending_us = 0;
    switch (code) {
    case CURLE_OK: return ATTEMPT_ANSWERED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR: return ATTEMPT_UNCONNECTED;
    case CURLE_OPERATION_TIMEDOUT:
        transfer->remote->curl->easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &sending_us);
        return sending_us ? ATTEMPT_BROKEN : ATTEMPT_UNCONNECTED;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WRITE_ERROR: return ATTEMPT_REFUSED;
    default: return ATTEMPT_BROKEN;
    }
}

static struct slice body_of(const struct remote_call *call)
{
    return slice_from(buf_view(call->call->reply), call->reply_start);
}

static bool is_damaged(const struct transfer *transfer, struct slice body)
{
    return transfer->has_checksum &&
           (uint32_t)crc32(0, (const Bytef *)body.data, (uInt)body.len) != transfer->checksum;
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
static void judge_strange_reply(struct transfer *transfer, struct attempt *attempt, struct slice *message)
{
    struct remote_call *call = transfer->call;
    struct slice body = body_of(call);
    if (body.len > STRANGE_BYTES) body.len = STRANGE_BYTES;
    if (!utf8_valid(body)) body.len = 0;
    *message = arena_printf(call->call->arena, "%s answered with status %d and no JSON: %.*s",
                            transfer->remote->endpoint.url, attempt->status, SLICE_ARG(body));
    attempt->error = SLICE("BadReplyException");
    put_own_error(call, "BadReplyException", *message);
}

static void judge_reply(struct transfer *transfer, struct attempt *attempt, struct slice *message)
{
    struct remote_call *call = transfer->call;
    long status = 0;
    transfer->remote->curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    attempt->status = (int)status;
    struct slice body = body_of(call);
    if (is_damaged(transfer, body)) {
        attempt->end = ATTEMPT_DAMAGED;
        *message = SLICE("the reply does not have its checksum");
    } else if (!body.len || body.data[0] != '{') {
        judge_strange_reply(transfer, attempt, message);
    } else if (status != 200) {
        dynamo_error(body, call->call->arena, &attempt->error, message);
        if (!attempt->error.len) judge_strange_reply(transfer, attempt, message);
    }
}

void transfer_judge(struct transfer *transfer, CURLcode code, struct attempt *attempt, struct slice *message)
{
    struct remote_call *call = transfer->call;
    *attempt = (struct attempt){.end = end_of(transfer, code), .number = call->attempts};
    *message = SLICE("");
    if (attempt->end == ATTEMPT_ANSWERED) {
        transfer->remote->has_answered = true;
        judge_reply(transfer, attempt, message);
    }
    attempt->endpoint_has_answered = transfer->remote->has_answered;
    if (attempt->end == ATTEMPT_ANSWERED) return;
    const char *failure = transfer->too_long     ? "the reply is too long"
                          : transfer->failure[0] ? transfer->failure
                                                 : transfer->remote->curl->easy_strerror(code);
    if (!message->len) *message = slice_of(failure);
    *message = arena_printf(call->call->arena, "%s: %.*s (%u attempt%s)", transfer->remote->endpoint.url,
                            SLICE_ARG(*message), call->attempts, call->attempts == 1 ? "" : "s");
    attempt->status = 0;
    attempt->error = SLICE("NoReplyException");
    put_own_error(call, "NoReplyException", *message);
}
