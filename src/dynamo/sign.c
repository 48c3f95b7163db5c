/* Signature Version 4 of a call. libcurl can sign too, but it sends a date that it was given twice, so a
 * clock that is off could not be corrected, and its releases differ in which headers they sign.
 *
 * Signed are all headers that mean something: content-type, host, x-amz-date, x-amz-security-token,
 * x-amz-target. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "base/digest.h"
#include "dynamo/internal.h"


static void put_header(struct buf *out, const char *name, struct slice value)
{
    buf_printf(out, "%s:%.*s\n", name, SLICE_ARG(value));
}

static const char *signed_headers(const struct signed_request *request)
{
    return request->credentials->session_token.len
               ? "content-type;host;x-amz-date;x-amz-security-token;x-amz-target"
               : "content-type;host;x-amz-date;x-amz-target";
}

static void put_canonical_request(struct buf *out, const struct signed_request *request, const char *date)
{
    buf_printf(out, "POST\n%.*s\n\n", SLICE_ARG(request->path));
    put_header(out, "content-type", SLICE("application/x-amz-json-1.0"));
    put_header(out, "host", request->host);
    put_header(out, "x-amz-date", slice_of(date));
    if (request->credentials->session_token.len)
        put_header(out, "x-amz-security-token", request->credentials->session_token);
    put_header(out, "x-amz-target", request->target);
    buf_printf(out, "\n%s\n", signed_headers(request));
    digest_put_sha256(out, request->body);
}

/* HMAC after HMAC: secret, day, region, service, terminator, and last the text. */
static void put_signature(struct buf *out, const struct signed_request *request, struct slice day,
                          struct slice text)
{
    struct slice parts[] = {day, request->region, SLICE("dynamodb"), SLICE("aws4_request"), text};
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
    struct buf canonical = {0}, text = {0};
    struct tm broken;
    time_t now = (time_t)request->time_s;
    strftime(date, SIGNED_DATE_BYTES, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &broken));
    put_canonical_request(&canonical, request, date);
    struct slice day = {date, 8};
    buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.*s/%.*s/dynamodb/aws4_request\n", date, SLICE_ARG(day),
               SLICE_ARG(request->region));
    digest_put_sha256(&text, buf_view(&canonical));
    buf_printf(
        out, "AWS4-HMAC-SHA256 Credential=%.*s/%.*s/%.*s/dynamodb/aws4_request, SignedHeaders=%s, Signature=",
        SLICE_ARG(request->credentials->access_key), SLICE_ARG(day), SLICE_ARG(request->region),
        signed_headers(request));
    put_signature(out, request, day, buf_view(&text));
    buf_free(&canonical);
    buf_free(&text);
}
