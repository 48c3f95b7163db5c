/* Buckets in any S3 over HTTP: Amazon's, MinIO, LocalStack. By path (http://host/bucket/key), signed with the keys that
 * the AWS variables and files name, or not at all when they name none. Four requests are all that is needed: PUT of a
 * whole object, GET of a part of one, ListObjectsV2, and HEAD of a bucket. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/digest.h"
#include "base/fail.h"
#include "client/client.h"
#include "transfer/buckets.h"

#define ATTEMPTS    5
#define PAUSE_US    200000            /* behind the first attempt; each further one is twice as long */
#define TOTAL_MS    60000             /* of an attempt */
#define PIECE_BYTES (4 * 1024 * 1024) /* of an object that is read */
#define REPLY_BYTES (PIECE_BYTES + 64 * 1024)

struct s3 {
    struct buckets buckets;
    struct client *client;
    char *url, *host; /* without a slash at its end; as in the header */
    struct arena arena;
    struct credentials credentials;
    struct slice region;
};

struct s3_request {
    const char *method;
    struct slice bucket, key;
    struct slice query; /* escaped, its names in order */
    const char *range;  /* "bytes=0-99"; NULL: all */
    struct slice body;
};

/* ---- requests ---- */

static void put_escaped(struct buf *out, struct slice text, bool keeps_slashes)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                        (c && strchr("-._~", c)) || (c == '/' && keeps_slashes);
        if (is_plain)
            buf_byte(out, c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

/* One attempt; the answer is whether a reply came. */
static bool attempt(struct s3 *s3, const struct s3_request *request, struct arena *arena, struct buf *reply,
                    struct client_call *call, unsigned number)
{
    struct buf path = {0}, authorization = {0}, hash = {0};
    char date[SIGNED_DATE_BYTES];
    const char *headers[6];
    size_t count = 0;
    buf_byte(&path, '/');
    put_escaped(&path, request->bucket, false);
    if (request->key.len) buf_byte(&path, '/');
    put_escaped(&path, request->key, true);
    struct slice where = arena_take(arena, &path);
    if (s3->credentials.access_key.len) {
        signature_make(&(struct signed_request){.credentials = &s3->credentials,
                                                .method = slice_of(request->method),
                                                .service = SLICE("s3"),
                                                .region = s3->region,
                                                .host = slice_of(s3->host),
                                                .path = where,
                                                .query = request->query,
                                                .body = request->body,
                                                .is_of_s3 = true,
                                                .time_s = (int64_t)time(NULL)},
                       date, &authorization);
        digest_put_sha256(&hash, request->body);
        headers[count++] = arena_printf(arena, "x-amz-date: %s", date).data;
        headers[count++] = arena_printf(arena, "x-amz-content-sha256: %.*s", SLICE_ARG(buf_view(&hash))).data;
        headers[count++] =
            arena_printf(arena, "Authorization: %.*s", SLICE_ARG(buf_view(&authorization))).data;
        if (s3->credentials.session_token.len)
            headers[count++] = arena_printf(arena, "x-amz-security-token: %.*s",
                                            SLICE_ARG(s3->credentials.session_token))
                                   .data;
    }
    if (request->range) headers[count++] = arena_printf(arena, "Range: %s", request->range).data;
    headers[count] = NULL;
    *call = (struct client_call){.method = request->method,
                                 .url = arena_printf(arena, "%s%.*s%s%.*s", s3->url, SLICE_ARG(where),
                                                     request->query.len ? "?" : "", SLICE_ARG(request->query))
                                            .data,
                                 .headers = headers,
                                 .body = request->body,
                                 .pause_us = number ? PAUSE_US << (number - 1) : 0,
                                 .total_ms = TOTAL_MS,
                                 .reply_max_bytes = REPLY_BYTES,
                                 .arena = arena,
                                 .reply = reply};
    client_call(s3->client, call);
    buf_free(&authorization);
    buf_free(&hash);
    return call->end == CLIENT_ANSWERED;
}

/* What stands between <name> and </name>, from `rest` on, which goes on behind it. */
static bool take_element(struct slice *rest, const char *name, struct slice *out)
{
    char begin[40], end[40];
    int begin_len = snprintf(begin, sizeof begin, "<%s>", name),
        end_len = snprintf(end, sizeof end, "</%s>", name);
    const char *from = rest->len ? memmem(rest->data, rest->len, begin, (size_t)begin_len) : NULL;
    if (!from) return false;
    from += begin_len;
    size_t left = rest->len - (size_t)(from - rest->data);
    const char *to = memmem(from, left, end, (size_t)end_len);
    if (!to) return false;
    *out = (struct slice){from, (size_t)(to - from)};
    *rest = slice_from(*rest, (size_t)(to - rest->data) + (size_t)end_len);
    return true;
}

/* True when it was done; the reply's body is in *reply. */
static bool s3_call(struct s3 *s3, const struct s3_request *request, struct buf *reply,
                    struct transfer_failure *failure)
{
    struct arena arena = {0};
    struct client_call call;
    bool is_answered = false, is_done = false;
    for (unsigned i = 0; i < ATTEMPTS && !is_done && !(i && atomic_load(&s3->buckets.stops)); i++) {
        reply->len = 0;
        arena_reset(&arena);
        is_answered = attempt(s3, request, &arena, reply, &call, i);
        bool may_pass = is_answered ? call.status >= 500 || call.status == 429 : call.end != CLIENT_REFUSED;
        is_done = !may_pass;
    }
    bool fine = is_answered && call.status >= 200 && call.status < 300;
    if (!fine && !is_answered) {
        transfer_fail(failure, "S3Error", "%s cannot be called: %.*s", s3->url, SLICE_ARG(call.failure));
    } else if (!fine) {
        struct slice rest = buf_view(reply), code = SLICE_NONE, message = SLICE_NONE;
        take_element(&rest, "Code", &code);
        take_element(&rest, "Message", &message);
        if (!code.len && !request->key.len && call.status == 404) { /* a HEAD's reply has no body */
            code = SLICE("NoSuchBucket");
            message = SLICE("The specified bucket does not exist");
        }
        const char *name = slice_equal(code, SLICE("NoSuchBucket")) ? "S3NoSuchBucket"
                           : call.status == 403                     ? "S3AccessDenied"
                                                                    : "S3Error";
        if (!message.len) message = SLICE("The request failed");
        transfer_fail(failure, name, "%.*s (Service: Amazon S3; Status Code: %d; Error Code: %.*s)",
                      SLICE_ARG(message), call.status, SLICE_ARG(code));
    }
    arena_free(&arena);
    return fine;
}

/* ---- listing ---- */

/* &amp; &lt; &gt; &quot; &apos; &#10; */
static struct slice unescaped(struct arena *arena, struct slice text)
{
    static const char *const names[] = {"amp", "lt", "gt", "quot", "apos"};
    char *out = arena_alloc(arena, text.len + 1), *to = out;
    while (text.len) {
        const char *end = text.data[0] == '&' ? memchr(text.data, ';', text.len) : NULL;
        struct slice name = {text.data + 1, end ? (size_t)(end - text.data) - 1 : 0};
        char c = 0;
        for (unsigned i = 0; i < 5 && end; i++)
            if (slice_equal(name, slice_of(names[i]))) c = "&<>\"'"[i];
        if (end && name.len > 1 && name.data[0] == '#') {
            long code = name.data[1] == 'x' ? strtol(name.data + 2, NULL, 16)
                                            : strtol(name.data + 1, NULL, 10);
            if (code > 0 && code < 128) c = (char)code;
        }
        *to++ = c ? c : text.data[0];
        text = slice_from(text, c ? name.len + 2 : 1);
    }
    return (struct slice){out, (size_t)(to - out)};
}

static bool take_page(struct slice reply, struct bucket_list *out, struct slice prefix,
                      struct transfer_failure *failure)
{
    struct slice rest = reply, object, key, size;
    while (take_element(&rest, "Contents", &object)) {
        struct slice inner = object;
        unsigned long long bytes;
        bool has_key = take_element(&inner, "Key", &key);
        inner = object;
        if (!has_key || !take_element(&inner, "Size", &size) || !slice_to_u64(size, INT64_MAX, &bytes))
            return transfer_fail(failure, "S3Error", "The list of objects cannot be read");
        key = unescaped(&out->arena, key);
        if (key.data[key.len - 1] == '/') continue; /* what consoles make for a folder */
        if (out->count == LIMIT_TRANSFER_OBJECTS)
            return transfer_fail(failure, "S3TooManyObjects", "More than %d objects have the prefix '%.*s'",
                                 LIMIT_TRANSFER_OBJECTS, SLICE_ARG(prefix));
        bucket_list_add(out, key, bytes);
    }
    return true;
}

static bool s3_list(struct buckets *buckets, struct slice bucket, struct slice prefix,
                    struct bucket_list *out, struct transfer_failure *failure)
{
    struct s3 *s3 = (struct s3 *)buckets;
    struct slice token = SLICE_NONE;
    struct buf query = {0}, reply = {0};
    bool fine = true, more = true;
    while (fine && more) {
        query.len = 0;
        if (token.len) buf_text(&query, "continuation-token=");
        put_escaped(&query, token, false);
        buf_printf(&query, "%slist-type=2&max-keys=1000&prefix=", token.len ? "&" : "");
        put_escaped(&query, prefix, false);
        struct s3_request request = {.method = "GET", .bucket = bucket, .query = buf_view(&query)};
        fine = s3_call(s3, &request, &reply, failure) && take_page(buf_view(&reply), out, prefix, failure);
        struct slice rest = buf_view(&reply), next = SLICE_NONE;
        more = fine && take_element(&rest, "NextContinuationToken", &next) && next.len;
        if (more) token = unescaped(&out->arena, next);
    }
    buf_free(&query);
    buf_free(&reply);
    return fine;
}

static bool s3_exists(struct buckets *buckets, struct slice bucket, struct transfer_failure *failure)
{
    struct buf reply = {0};
    struct s3_request request = {.method = "HEAD", .bucket = bucket};
    bool fine = s3_call((struct s3 *)buckets, &request, &reply, failure);
    buf_free(&reply);
    return fine;
}

/* ---- objects ---- */

struct s3_source {
    struct transfer_source source;
    struct s3 *s3;
    struct arena arena;
    struct slice bucket, key;
    uint64_t at, end;
    struct buf piece;
    size_t taken; /* of the piece */
    struct transfer_failure failure;
};

static ssize_t s3_source_read(struct transfer_source *source, char *out, size_t most)
{
    struct s3_source *own = (struct s3_source *)source;
    char range[60];
    if (own->taken == own->piece.len && own->at < own->end) {
        uint64_t last = own->at + PIECE_BYTES < own->end ? own->at + PIECE_BYTES : own->end;
        snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)own->at,
                 (unsigned long long)last - 1);
        struct s3_request request = {.method = "GET", .bucket = own->bucket, .key = own->key, .range = range};
        own->taken = 0;
        bool fine = s3_call(own->s3, &request, &own->piece, &own->failure);
        if (fine && own->piece.len != last - own->at)
            fine = transfer_fail(&own->failure, "S3Error", "the object was changed while it was read");
        if (!fine) {
            source->fault = own->failure.message;
            return -1;
        }
        own->at = last;
    }
    size_t left = own->piece.len - own->taken, count = left < most ? left : most;
    if (count) memcpy(out, own->piece.data + own->taken, count);
    own->taken += count;
    return (ssize_t)count;
}

static void s3_source_close(struct transfer_source *source)
{
    struct s3_source *own = (struct s3_source *)source;
    buf_free(&own->piece);
    arena_free(&own->arena);
    free(own);
}

static struct transfer_source *s3_open(struct buckets *buckets, struct slice bucket,
                                       const struct bucket_object *object, struct transfer_failure *failure)
{
    /* libcurl takes . and .. out of paths, which would lead to another object. */
    if (!bucket_key_check(object->key, failure)) return NULL;
    struct s3_source *own = must_zero(1, sizeof *own);
    own->source = (struct transfer_source){.read = s3_source_read, .close = s3_source_close};
    own->s3 = (struct s3 *)buckets;
    own->bucket = arena_copy(&own->arena, bucket);
    own->key = arena_copy(&own->arena, object->key);
    own->end = object->bytes;
    return &own->source;
}

static bool s3_put(struct buckets *buckets, struct slice bucket, struct slice key, struct slice bytes,
                   struct transfer_failure *failure)
{
    struct buf reply = {0};
    struct s3_request request = {.method = "PUT", .bucket = bucket, .key = key, .body = bytes};
    bool fine = bucket_key_check(key, failure) && s3_call((struct s3 *)buckets, &request, &reply, failure);
    buf_free(&reply);
    return fine;
}

/* ---- opening ---- */

static void s3_close(struct buckets *buckets)
{
    struct s3 *s3 = (struct s3 *)buckets;
    if (s3->client) client_close(s3->client);
    arena_free(&s3->arena);
    free(s3->url);
    free(s3->host);
    free(s3);
}

static const struct buckets_methods s3_methods = {
    .exists = s3_exists, .list = s3_list, .open = s3_open, .put = s3_put, .close = s3_close};

struct buckets *buckets_open_s3(const char *url, const char *region, char *error, size_t error_len)
{
    const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : NULL;
    size_t host_len = host ? strcspn(host, "/") : 0;
    if (!host_len || strcspn(host, "?#@ ") < host_len || (host[host_len] && host[host_len + 1])) {
        snprintf(error, error_len, "an S3 is named by http(s)://host[:port], not by '%.200s'", url);
        return NULL;
    }
    struct s3 *s3 = must_zero(1, sizeof *s3);
    s3->buckets.methods = &s3_methods;
    ensure((s3->url = strndup(url, (size_t)(host - url) + host_len)) && (s3->host = strndup(host, host_len)));
    struct credentials_wanted wanted = {.region = region};
    if (!credentials_find(&wanted, getenv, &s3->arena, &s3->credentials, error, error_len) ||
        !(s3->client = client_open(&(struct client_options){.in_flight = LIMIT_TRANSFER_JOBS}, error,
                                   error_len))) {
        s3_close(&s3->buckets);
        return NULL;
    }
    s3->region = s3->credentials.region.len ? s3->credentials.region : SLICE("us-east-1");
    return &s3->buckets;
}
