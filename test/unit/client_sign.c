/* Signatures against those that botocore 1.26 makes of the same requests. */
#include "base/buf.h"
#include "client/client.h"
#include "unit/test.h"

#define TIME_S 1794719282 /* 20261115T050802Z */

static struct credentials keys = {.access_key = SLICE("AKIDEXAMPLE"),
                                  .secret_key = SLICE("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")};

TEST(signature_of_a_call)
{
    char date[SIGNED_DATE_BYTES];
    struct buf out = {0};
    signature_make(&(struct signed_request){.credentials = &keys,
                                            .method = SLICE("POST"),
                                            .service = SLICE("dynamodb"),
                                            .region = SLICE("eu-west-1"),
                                            .host = SLICE("dynamodb.eu-west-1.amazonaws.com"),
                                            .path = SLICE("/"),
                                            .content_type = SLICE("application/x-amz-json-1.0"),
                                            .target = SLICE("DynamoDB_20120810.ListTables"),
                                            .body = SLICE("{}"),
                                            .time_s = TIME_S},
                   date, &out);
    CHECK_TEXT(slice_of(date), "20261115T050802Z");
    CHECK_TEXT(buf_view(&out),
               "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/eu-west-1/dynamodb/aws4_request, "
               "SignedHeaders=content-type;host;x-amz-date;x-amz-target, "
               "Signature=c36a2039841c24cc7b7838ff0fb6fa649c7f14693b7b87850d8749dcd48ecfe4");
    buf_free(&out);
}

TEST(signature_with_a_session_token_port_and_path)
{
    char date[SIGNED_DATE_BYTES];
    struct buf out = {0};
    struct credentials session = keys;
    session.session_token = SLICE("FwoGZXIvYXdzEBYaDkFnZXQgYSB0b2tlbg==");
    signature_make(&(struct signed_request){.credentials = &session,
                                            .method = SLICE("POST"),
                                            .service = SLICE("dynamodb"),
                                            .region = SLICE("eu-west-1"),
                                            .host = SLICE("localhost:8000"),
                                            .path = SLICE("/base/"),
                                            .content_type = SLICE("application/x-amz-json-1.0"),
                                            .target = SLICE("DynamoDBStreams_20120810.GetRecords"),
                                            .body = SLICE("{\"ShardIterator\":\"\xc3\xa4\"}"),
                                            .time_s = TIME_S},
                   date, &out);
    CHECK_TEXT(buf_view(&out),
               "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/eu-west-1/dynamodb/aws4_request, "
               "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, "
               "Signature=1c413312e695b48e07234b64cbdb24baa466348b94f66a6347e957adb8ed35c5");
    buf_free(&out);
}

TEST(signature_of_a_rest_call)
{
    char date[SIGNED_DATE_BYTES];
    struct buf out = {0};
    signature_make(&(struct signed_request){.credentials = &keys,
                                            .method = SLICE("GET"),
                                            .service = SLICE("lambda"),
                                            .region = SLICE("eu-west-1"),
                                            .host = SLICE("localhost:8000"),
                                            .path = SLICE("/2015-03-31/functions/a%3Ab/policy"),
                                            .query = SLICE("Marker=a%2Fb&MaxItems=5"),
                                            .time_s = TIME_S},
                   date, &out);
    CHECK_TEXT(buf_view(&out),
               "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/eu-west-1/lambda/aws4_request, "
               "SignedHeaders=host;x-amz-date, "
               "Signature=35145de09cda44f8965758b87e6d0f60816ece0651428ec1451a68f707fee5a8");
    buf_free(&out);
}

static void check_s3(const char *method, const char *host, const char *path, const char *query, const char *body,
                     const char *signature)
{
    static const struct credentials example = {.access_key = SLICE("AKIAIOSFODNN7EXAMPLE"),
                                               .secret_key = SLICE("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")};
    char date[SIGNED_DATE_BYTES], expected[300];
    struct buf out = {0};
    signature_make(&(struct signed_request){.credentials = &example,
                                            .method = slice_of(method),
                                            .service = SLICE("s3"),
                                            .region = SLICE("us-east-1"),
                                            .host = slice_of(host),
                                            .path = slice_of(path),
                                            .query = slice_of(query),
                                            .body = slice_of(body),
                                            .is_of_s3 = true,
                                            .time_s = 1369353600},
                   date, &out);
    snprintf(expected, sizeof expected,
             "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
             "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=%s",
             signature);
    CHECK_TEXT(buf_view(&out), expected);
    buf_free(&out);
}

/* The first two are the examples of Amazon's own page; in the third a path's escapes are not escaped again. */
TEST(signatures_for_s3)
{
    const char *host = "examplebucket.s3.amazonaws.com";
    check_s3("GET", host, "/", "lifecycle=", "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check_s3("GET", host, "/", "max-keys=2&prefix=J", "",
             "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    check_s3("PUT", "s3.amazonaws.com", "/photos/a%20b/%C3%BC%2B%26.json", "", "hello",
             "ea0f8ecf8ef502ad25049b5d0211af1539ef4ed724445f6bfdae75cb4712db6f");
}
