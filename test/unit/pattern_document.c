/* Documents by their words. */
#include "pattern/merge.h"
#include "unit/pattern_fixture.h"

static void check_etag(struct patterns *patterns, const char *expected)
{
    CHECK_TEXT(patterns->call.headers, expected);
}

TEST(document_is_written_and_read)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/documents/c/a", NULL, 404, "no-such-document");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "{\"x\":[1,2.25,\"\\u00e4\",null,true,{}]}", 201,
               "{\"version\":1}");
    check_etag(&patterns, "ETag: \"1\"\r\n");
    CHECK_ASKS(&patterns, "GET /v1/documents/c/a", NULL, 200, "{\"x\":[1,2.25,\"\xc3\xa4\",null,true,{}]}");
    check_etag(&patterns, "ETag: \"1\"\r\n");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "5", 200, "{\"version\":2}");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/b%2Fc", "\"\"", 201, "{\"version\":1}");
    CHECK_ASKS(&patterns, "GET /v1/documents/c", NULL, 200,
               "{\"documents\":[{\"key\":\"a\",\"version\":2,\"data\":5},"
               "{\"key\":\"b/c\",\"version\":1,\"data\":\"\"}]}");
    CHECK_ASKS(&patterns, "GET /v1/documents/c?limit=1", NULL, 200,
               "{\"documents\":[{\"key\":\"a\",\"version\":2,\"data\":5}],\"next\":\"a\"}");
    CHECK_ASKS(&patterns, "GET /v1/documents/c?limit=1&after=a", NULL, 200,
               "{\"documents\":[{\"key\":\"b/c\",\"version\":1,\"data\":\"\"}],\"next\":\"b/c\"}");
    patterns_close(&patterns);
}

TEST(document_is_not_mixed_with_its_cost)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/documents/c/a", "{\"a\":1}");
    CHECK_ASKS(&patterns, "GET /v1/documents/c/a?cost=1", NULL, 200, "{\"a\":1}");
    CHECK_TEXT(patterns.call.headers,
               "ETag: \"1\"\r\nQuipu-Cost: {\"writeUnits\":0,\"readUnits\":1,\"calls\":1,"
               "\"dollarsPerMillion\":0.125}\r\n");
    patterns_close(&patterns);
}

TEST(document_has_conditions)
{
    struct patterns patterns;
    patterns_open(&patterns);
    with_header(&patterns, "If-Match", "*");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "1", 412, "version-mismatch");
    with_header(&patterns, "If-None-Match", "*");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "1", 201, "{\"version\":1}");
    with_header(&patterns, "If-None-Match", "*");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "2", 412, "version-mismatch");
    with_header(&patterns, "If-Match", "\"1\"");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "2", 200, "{\"version\":2}");
    with_header(&patterns, "If-Match", "W/\"1\"");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "3", 412,
               "{\"error\":\"version-mismatch\",\"message\":\"The document has version 2. Read it and decide "
               "again.\",\"version\":2}");
    check_etag(&patterns, "ETag: \"2\"\r\n");
    with_header(&patterns, "If-Match", "\"rubbish\"");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "3", 412, "version-mismatch");
    with_header(&patterns, "If-Match", "W/\"2\""); /* a weak one is not the same */
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "3", 412, "version-mismatch");
    with_header(&patterns, "If-Match", "\"7\", \"1,2\", W/\"2\"");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "3", 412, "version-mismatch");
    with_header(&patterns, "If-Match", "\"7\",\"8\"");
    CHECK_REFUSES(&patterns, "DELETE /v1/documents/c/a", NULL, 412, "version-mismatch");
    with_header(&patterns, "If-None-Match", "\"1\", W/\"2\"");
    CHECK_ASKS(&patterns, "GET /v1/documents/c/a", NULL, 304, "");
    with_header(&patterns, "If-None-Match", "\"2\"");
    CHECK_ASKS(&patterns, "GET /v1/documents/c/a", NULL, 304, "");
    with_header(&patterns, "If-None-Match", "\"1\"");
    CHECK_ASKS(&patterns, "GET /v1/documents/c/a", NULL, 200, "2");
    with_header(&patterns, "If-None-Match", "\"1\"");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "3", 400, "bad-request");
    patterns_close(&patterns);
}

TEST(document_takes_lists_of_versions)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "{}", 201, "{\"version\":1}");
    with_header(&patterns, "If-Match", "\"x\", \"1\" , \"9\"");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "{}", 200, "{\"version\":2}");
    with_header(&patterns, "If-Match", "1, 2");
    CHECK_ASKS(&patterns, "PATCH /v1/documents/c/a", "{\"n\":1}", 200, "{\"version\":3}");
    with_header(&patterns, "If-Match", "\"2\",\"3\"");
    CHECK_ASKS(&patterns, "DELETE /v1/documents/c/a", NULL, 200, "{\"deleted\":true,\"version\":4}");
    patterns_close(&patterns);
}

TEST(document_keeps_counting_when_deleted)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "DELETE /v1/documents/c/a", NULL, 404, "no-such-document");
    asks(&patterns, "PUT /v1/documents/c/a", "1");
    with_header(&patterns, "If-Match", "\"7\"");
    CHECK_REFUSES(&patterns, "DELETE /v1/documents/c/a", NULL, 412, "version-mismatch");
    with_header(&patterns, "If-Match", "\"1\"");
    CHECK_ASKS(&patterns, "DELETE /v1/documents/c/a", NULL, 200, "{\"deleted\":true,\"version\":2}");
    CHECK_REFUSES(&patterns, "GET /v1/documents/c/a", NULL, 404, "no-such-document");
    CHECK_REFUSES(&patterns, "DELETE /v1/documents/c/a", NULL, 404, "no-such-document");
    CHECK_REFUSES(&patterns, "PATCH /v1/documents/c/a", "{}", 404, "no-such-document");
    CHECK_ASKS(&patterns, "GET /v1/documents/c", NULL, 200, "{\"documents\":[]}");
    with_header(&patterns, "If-Match", "\"2\"");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "2", 412, "version-mismatch");
    with_header(&patterns, "If-None-Match", "*");
    CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "2", 200, "{\"version\":3}");
    patterns_close(&patterns);
}

TEST(document_is_patched)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/documents/c/a", "{\"a\":1,\"b\":{\"c\":2,\"d\":3}}");
    CHECK_ASKS(&patterns, "PATCH /v1/documents/c/a", "{\"b\":{\"c\":null,\"e\":4},\"f\":[1]}", 200,
               "{\"version\":2}");
    CHECK_ASKS(&patterns, "GET /v1/documents/c/a", NULL, 200, "{\"a\":1,\"b\":{\"d\":3,\"e\":4},\"f\":[1]}");
    with_header(&patterns, "If-Match", "\"1\"");
    CHECK_REFUSES(&patterns, "PATCH /v1/documents/c/a", "{\"a\":2}", 412, "version-mismatch");
    with_header(&patterns, "If-Match", "\"2\"");
    CHECK_ASKS(&patterns, "PATCH /v1/documents/c/a", "{\"a\":2}", 200, "{\"version\":3}");
    patterns_close(&patterns);
}

TEST(document_recognises_a_repeat)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/documents/c/a", "1");
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "If-Match", "\"1\"");
        with_header(&patterns, "Idempotency-Key", "k");
        CHECK_ASKS(&patterns, "PUT /v1/documents/c/a", "{\"n\":1}", 200, "{\"version\":2}");
    }
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "l");
        CHECK_ASKS(&patterns, "PATCH /v1/documents/c/a", "{\"n\":2}", 200, "{\"version\":3}");
    }
    with_header(&patterns, "Idempotency-Key", "l"); /* it would be lost without a word */
    CHECK_REFUSES(&patterns, "PATCH /v1/documents/c/a", "{\"n\":3}", 422, "key-reused");
    with_header(&patterns, "Idempotency-Key", "l");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "{\"n\":3}", 422, "key-reused");
    CHECK_ASKS(&patterns, "GET /v1/documents/c/a", NULL, 200, "{\"n\":2}");
    patterns_close(&patterns);
}

TEST(document_refuses_what_does_not_fit)
{
    struct patterns patterns;
    struct buf large = {0};
    patterns_open(&patterns);
    buf_byte(&large, '"');
    for (int i = 0; i < 410 * 1024; i++) buf_byte(&large, 'x');
    buf_text(&large, "\"");
    buf_byte(&large, '\0');
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", large.data, 413, "too-large");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "1e400", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "{\"a\":123456789012345678901234567890123456789}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a",
                  "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/documents/c/a", "{\"a\":1", 400, "bad-json");
    CHECK_REFUSES(&patterns, "GET /v1/documents/c?limit=0", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/documents/c/a?wait=2h", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/documents/c/a?wait=soon", NULL, 400, "bad-request");
    buf_free(&large);
    patterns_close(&patterns);
}

TEST(merge_patch_does_as_the_standard_says)
{
    /* the examples of RFC 7396's appendix, with members sorted */
    static const char *const cases[][3] = {
        {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
        {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
        {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
        {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
        {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
        {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
        {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]"},
        {"{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]"},
        {"{\"a\":\"foo\"}", "null", "null"},
        {"{\"a\":\"foo\"}", "\"bar\"", "\"bar\""},
        {"{\"e\":null}", "{\"a\":1}", "{\"a\":1,\"e\":null}"},
        {"[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}"},
        {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
        {"{\"a\":1}", "{\"b\":2,\"b\":3}", "{\"a\":1,\"b\":3}"},
    };
    struct arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_TEXT(merge_patch(&arena, slice_of(cases[i][0]), slice_of(cases[i][1])), cases[i][2]);
    arena_free(&arena);
}
