/* Signature Version 4 of a request. libcurl can sign too, but it sends a date that it was given twice, so a
 * clock that is off could not be corrected, and its releases differ in which headers they sign.
 *
 * Signed are all headers that mean something: content-type, host and those of x-amz-. A path is signed with its
 * escapes escaped once more, as every service but S3 wants it; for S3 it is signed as it is sent. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "base/digest.h"
#include "client/client.h"

#define SIGNED_HEADERS 8

struct signed_header {
    const char *name;
    struct slice value;
};

/* Those that are sent, in the order of their names. */
static size_t headers_gather(const struct signed_request *request, const char *date, struct slice hash,
                             struct signed_header *out)
{
    const struct signed_header all[SIGNED_HEADERS] = {
        {"content-type", request->content_type},
        {"host", request->host},
        {"x-amz-content-sha256", request->is_of_s3 ? hash : SLICE_NONE},
        {"x-amz-date", slice_of(date)},
        {"x-amz-invocation-type", request->invocation_type},
        {"x-amz-log-type", request->log_type},
        {"x-amz-security-token", request->credentials->session_token},
        {"x-amz-target", request->target},
    };
    size_t count = 0;
    for (size_t i = 0; i < SIGNED_HEADERS; i++)
        if (all[i].value.len) out[count++] = all[i];
    return count;
}

static void put_names(struct buf *out, const struct signed_header *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) buf_printf(out, "%s%s", i ? ";" : "", headers[i].name);
}

static void put_path(struct buf *out, struct slice path)
{
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (is_letter || (c && strchr("/-._~", c)))
            buf_byte(out, c);
        else
            buf_printf(out, "%%%02X", c);
    }
}

static void put_canonical_request(struct buf *out, const struct signed_request *request,
                                  struct slice hash, const struct signed_header *headers, size_t count)
{
    buf_printf(out, "%.*s\n", SLICE_ARG(request->method));
    if (request->is_of_s3)
        buf_slice(out, request->path);
    else
        put_path(out, request->path);
    buf_printf(out, "\n%.*s\n", SLICE_ARG(request->query));
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s:%.*s\n", headers[i].name, SLICE_ARG(headers[i].value));
    buf_byte(out, '\n');
    put_names(out, headers, count);
    buf_byte(out, '\n');
    buf_slice(out, hash);
}

/* HMAC after HMAC: secret, day, region, service, terminator, and last the text. */
static void put_signature(struct buf *out, const struct signed_request *request, struct slice day,
                          struct slice text)
{
    struct slice parts[] = {day, request->region, request->service, SLICE("aws4_request"), text};
    unsigned char key[DIGEST_BYTES], next[DIGEST_BYTES];
    struct buf secret = {0};
    buf_text(&secret, "AWS4");
    buf_slice(&secret, request->credentials->secret_key);
    struct slice signing = buf_view(&secret);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        HMAC(EVP_sha256(), signing.data, (int)signing.len, (const unsigned char *)parts[i].data, parts[i].len,
             next, NULL);
        memcpy(key, next, sizeof key);
        signing = (struct slice){(const char *)key, sizeof key};
    }
    digest_put_hex(out, key, sizeof key);
    OPENSSL_cleanse(secret.data, secret.len);
    OPENSSL_cleanse(key, sizeof key);
    buf_free(&secret);
}

void signature_make(const struct signed_request *request, char date[SIGNED_DATE_BYTES], struct buf *out)
{
    struct buf canonical = {0}, text = {0}, scope = {0}, hash = {0};
    struct signed_header headers[SIGNED_HEADERS];
    struct tm broken;
    time_t now = (time_t)request->time_s;
    strftime(date, SIGNED_DATE_BYTES, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &broken));
    struct slice day = {date, 8};
    digest_put_sha256(&hash, request->body);
    size_t count = headers_gather(request, date, buf_view(&hash), headers);
    put_canonical_request(&canonical, request, buf_view(&hash), headers, count);
    buf_printf(&scope, "%.*s/%.*s/%.*s/aws4_request", SLICE_ARG(day), SLICE_ARG(request->region),
               SLICE_ARG(request->service));
    buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.*s\n", date, SLICE_ARG(buf_view(&scope)));
    digest_put_sha256(&text, buf_view(&canonical));
    buf_printf(out, "AWS4-HMAC-SHA256 Credential=%.*s/%.*s, SignedHeaders=",
               SLICE_ARG(request->credentials->access_key), SLICE_ARG(buf_view(&scope)));
    put_names(out, headers, count);
    buf_text(out, ", Signature=");
    put_signature(out, request, day, buf_view(&text));
    buf_free(&canonical);
    buf_free(&text);
    buf_free(&scope);
    buf_free(&hash);
}
