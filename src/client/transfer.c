/* A call on the wire: its request into libcurl, the reply's bytes into the caller's buf, and what came of it.
 * On the client's thread only. */
#include <stdlib.h>
#include <strings.h>

#include "base/fail.h"
#include "base/limits.h"
#include "client/internal.h"

#define RECEIVE_BYTES (64 * 1024l)
#define CONNECT_MS    5000
#define TOTAL_MS      60000

/* ---- what libcurl calls ---- */

static bool is_good(const struct transfer *transfer)
{
    long status = 0;
    transfer->client->curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    return status / 100 == 2;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct client_call *call = transfer->call;
    size_t len = size * count, max = call->reply_max_bytes;
    if (call->piece && is_good(transfer)) return call->piece(call, (struct slice){bytes, len}) ? len : 0;
    if (!max) max = LIMIT_REMOTE_REPLY_BYTES;
    transfer->too_long = call->reply->len - transfer->reply_start + len > max;
    if (transfer->too_long) return 0;
    buf_put(call->reply, bytes, len);
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
    struct client_call *call = transfer->call;
    struct slice line = {bytes, size * count};
    transfer->header_bytes += line.len;
    transfer->too_long = transfer->header_bytes > LIMIT_REMOTE_HEADER_BYTES;
    if (transfer->too_long) return 0;
    const char *colon = line.len ? memchr(bytes, ':', line.len) : NULL;
    if (!colon || !call->header) return line.len;
    struct slice name = {bytes, (size_t)(colon - bytes)};
    call->header(call, name, trimmed(slice_from(line, name.len + 1)));
    return line.len;
}

/* ---- a handle ---- */

static void set_trust(struct transfer *transfer)
{
    const char *file = transfer->client->options.ca_file;
    if (!file) file = getenv("AWS_CA_BUNDLE");
    if (file && *file) transfer->client->curl->easy_setopt(transfer->easy, CURLOPT_CAINFO, file);
}

void transfer_init(struct transfer *transfer, struct client *client)
{
    const struct curl *curl = client->curl;
    CURL *easy = curl->easy_init();
    ensure(easy);
    transfer->client = client;
    transfer->easy = easy;
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1l);
    curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1l);
    curl->easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
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
    transfer->client->curl->easy_cleanup(transfer->easy);
}

/* ---- the request ---- */

static void add_header(struct transfer *transfer, const char *line)
{
    struct curl_slist *longer = transfer->client->curl->slist_append(transfer->headers, line);
    ensure(longer);
    transfer->headers = longer;
}

static void set_headers(struct transfer *transfer)
{
    bool names_agent = false;
    for (const char *const *line = transfer->call->headers; line && *line; line++) {
        names_agent |= strncasecmp(*line, "User-Agent:", 11) == 0;
        add_header(transfer, *line);
    }
    if (!names_agent) add_header(transfer, "User-Agent: quipu");
    add_header(transfer, "Expect:"); /* or libcurl would ask before it sends a large body */
    transfer->client->curl->easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
}

static void set_method(struct transfer *transfer)
{
    const struct curl *curl = transfer->client->curl;
    const struct client_call *call = transfer->call;
    CURL *easy = transfer->easy;
    bool is_get = strcmp(call->method, "GET") == 0, is_head = strcmp(call->method, "HEAD") == 0;
    curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL); /* of the call before */
    curl->easy_setopt(easy, CURLOPT_NOBODY, is_head ? 1l : 0l);
    if (is_head) return;
    if (is_get && !call->body.len) {
        curl->easy_setopt(easy, CURLOPT_HTTPGET, 1l);
        return;
    }
    curl->easy_setopt(easy, CURLOPT_POST, 1l);
    curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
    curl->easy_setopt(easy, CURLOPT_POSTFIELDS, call->body.len ? call->body.data : "");
    if (strcmp(call->method, "POST") != 0) curl->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
}

/* libcurl speaks many protocols, some of which read files. */
static bool is_http(const char *url)
{
    return url && (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0);
}

bool transfer_start(struct transfer *transfer, struct client_call *call)
{
    const struct curl *curl = transfer->client->curl;
    ensure(!transfer->call && !transfer->headers);
    transfer->call = call;
    transfer->too_long = false;
    transfer->failure[0] = '\0';
    if (call->prepare) call->prepare(call);
    transfer->reply_start = call->reply->len;
    transfer->header_bytes = 0;
    if (!is_http(call->url)) {
        transfer_end(transfer, CURLE_UNSUPPORTED_PROTOCOL);
        return false;
    }
    set_method(transfer);
    set_headers(transfer);
    curl->easy_setopt(transfer->easy, CURLOPT_CONNECTTIMEOUT_MS,
                      (long)(call->connect_ms ? call->connect_ms : CONNECT_MS));
    curl->easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, (long)(call->total_ms ? call->total_ms : TOTAL_MS));
    curl->easy_setopt(transfer->easy, CURLOPT_URL, call->url);
    ensure(curl->multi_add_handle(transfer->client->multi, transfer->easy) == CURLM_OK);
    return true;
}

/* ---- what came of it ---- */

static enum client_end end_of(struct transfer *transfer, CURLcode code)
{
    curl_off_t sending_us = 0;
    switch (code) {
    case CURLE_OK: return CLIENT_ANSWERED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR: return CLIENT_UNCONNECTED;
    case CURLE_OPERATION_TIMEDOUT:
        transfer->client->curl->easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &sending_us);
        return sending_us ? CLIENT_BROKEN : CLIENT_UNCONNECTED;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_WRITE_ERROR: return CLIENT_REFUSED;
    default: return CLIENT_BROKEN;
    }
}

static const char *failure_of(const struct transfer *transfer, CURLcode code)
{
    if (transfer->too_long) return "the reply is too long";
    if (code == CURLE_UNSUPPORTED_PROTOCOL) return "it is no URL of HTTP";
    if (transfer->failure[0]) return transfer->failure;
    return transfer->client->curl->easy_strerror(code);
}

void transfer_end(struct transfer *transfer, CURLcode code)
{
    struct client *client = transfer->client;
    struct client_call *call = transfer->call;
    call->end = end_of(transfer, code);
    call->failure = SLICE_NONE;
    call->status = 0;
    call->timed_out = code == CURLE_OPERATION_TIMEDOUT;
    if (call->end == CLIENT_ANSWERED) {
        long status = 0;
        client->curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
        call->status = (int)status;
    } else {
        call->failure = arena_copy(call->arena, slice_of(failure_of(transfer, code)));
        if (slice_starts(call->failure, SLICE("SSL certificate problem")))
            call->failure = arena_printf(call->arena, "%s; AWS_CA_BUNDLE may name a file with certificates to trust",
                                        transfer->failure);
        call->reply->len = transfer->reply_start;
    }
    if (transfer->headers) {
        client->curl->multi_remove_handle(client->multi, transfer->easy);
        client->curl->slist_free_all(transfer->headers);
    }
    transfer->headers = NULL;
    transfer->call = NULL;
    transfer->next = client->free;
    client->free = transfer;
}
