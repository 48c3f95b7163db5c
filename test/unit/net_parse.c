/* The pure parser: tables of heads and chunked bodies, whole and cut at every byte. */
#include <stdlib.h>

#include "net/http_parse.h"
#include "unit/test.h"

#define HOST "Host: h\r\n"

static struct http_header room[8];

static enum http_progress parse(struct http_head *head, const char *text)
{
    return http_head_parse(head, slice_of(text), room, 8);
}

TEST(net_head_of_an_sdk)
{
    static const char text[] = "POST /?a=1 HTTP/1.1\r\nHost: localhost:8000\r\nAccept-Encoding: identity\r\n"
                               "X-Amz-Target: DynamoDB_20120810.GetItem\r\nContent-Length: 42\r\n"
                               "Empty:\r\nSpaced: \t two words \t\r\n\r\nBODY";
    struct http_head head;
    CHECK_INT(parse(&head, text), HTTP_WHOLE);
    CHECK_INT(head.method, HTTP_POST);
    CHECK_TEXT(head.target, "/?a=1");
    CHECK_TEXT(head.path, "/");
    CHECK_TEXT(head.query, "a=1");
    CHECK_INT(head.header_count, 6);
    CHECK_TEXT(head.headers[2].name, "X-Amz-Target");
    CHECK_TEXT(head.headers[2].value, "DynamoDB_20120810.GetItem");
    CHECK_TEXT(head.headers[4].value, "");
    CHECK_TEXT(head.headers[5].value, "two words");
    CHECK_TEXT(head.accept_encoding, "identity");
    CHECK(head.has_length && head.content_length == 42 && !head.chunked);
    CHECK(http_head_keeps_alive(&head));
    CHECK_INT(head.bytes, sizeof text - 1 - 4);
    for (size_t cut = 0; cut < head.bytes; cut++) {
        struct http_head part;
        CHECK_INT(http_head_parse(&part, (struct slice){text, cut}, room, 8), HTTP_MORE);
    }
}

TEST(net_targets)
{
    static const struct {
        const char *line, *path, *query;
    } cases[] = {
        {"GET / HTTP/1.1", "/", ""},
        {"GET /a/b%20c?x=1?y HTTP/1.1", "/a/b%20c", "x=1?y"},
        {"GET /a? HTTP/1.1", "/a", ""},
        {"GET http://h:1/p?q HTTP/1.1", "/p", "q"},
        {"GET HTTPS://h HTTP/1.1", "/", ""},
        {"GET http://h?q HTTP/1.1", "/", "q"},
        {"OPTIONS * HTTP/1.1", "*", ""},
        {"GET /\xc3\xa9 HTTP/1.1", "/\xc3\xa9", ""},
        {"\r\n\r\nGET /after-empty-lines HTTP/1.1", "/after-empty-lines", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct http_head head;
        snprintf(text, sizeof text, "%s\r\n" HOST "\r\n", cases[i].line);
        CHECK_INT(parse(&head, text), HTTP_WHOLE);
        CHECK_TEXT(head.path, cases[i].path);
        CHECK_TEXT(head.query, cases[i].query);
    }
}

TEST(net_methods)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"};
    for (int i = 0; i < 8; i++) {
        char text[64];
        struct http_head head;
        snprintf(text, sizeof text, "%s / HTTP/1.1\r\n" HOST "\r\n", names[i]);
        CHECK_INT(parse(&head, text), HTTP_WHOLE);
        CHECK_INT(head.method, i);
        CHECK_TEXT(head.method_text, names[i]);
    }
}

TEST(net_heads_refused)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {400, " GET / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET  / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1 \r\n" HOST "\r\n"},
        {400, "GET / http/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/11\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\n" HOST "\n"},
        {400, "GET / HTTP/1.1\r\nHost: h\n\r\n"},
        {400, "GET / HTTP/1.1\r" HOST "\r\n"},
        {400, "GET a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET * HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http:///p HTTP/1.1\r\n" HOST "\r\n"},
        {400, "CONNECT h:443 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "G\x01T / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /\x7f HTTP/1.1\r\n" HOST "\r\n"},
        {400, "\x16\x03\x01\x02"},
        {505, "GET / HTTP/2.0\r\n" HOST "\r\n"},
        {505, "GET / HTTP/0.9\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A\t: b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: 12345678901234567\x7f"
              "890\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: -5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n"},
        {431, "GET / HTTP/1.1\r\n" HOST "a:1\r\nb:1\r\nc:1\r\nd:1\r\ne:1\r\nf:1\r\ng:1\r\nh:1\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_head head;
        enum http_progress progress = parse(&head, cases[i].text);
        if (progress != HTTP_REFUSED || head.fault.status != cases[i].status || !head.fault.reason)
            test_failed(__FILE__, __LINE__, "case %zu: %d, status %d", i, progress, head.fault.status);
    }
}

TEST(net_head_with_nul_is_refused)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n";
    struct http_head head;
    CHECK_INT(http_head_parse(&head, (struct slice){text, sizeof text - 1}, room, 8), HTTP_REFUSED);
    CHECK_INT(head.fault.status, 400);
}

TEST(net_keep_alive)
{
    static const struct {
        bool keeps;
        const char *text;
    } cases[] = {
        {true, "GET / HTTP/1.1\r\n" HOST "\r\n"},
        {true, "GET / HTTP/1.2\r\n" HOST "\r\n"},
        {false, "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"},
        {false, "GET / HTTP/1.1\r\n" HOST "connection: upgrade , CLOSE\r\n\r\n"},
        {true, "GET / HTTP/1.1\r\n" HOST "Connection: closed\r\n\r\n"},
        {false, "GET / HTTP/1.0\r\n\r\n"},
        {true, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"},
        {false, "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct http_head head;
        CHECK_INT(parse(&head, cases[i].text), HTTP_WHOLE);
        CHECK_INT(http_head_keeps_alive(&head), cases[i].keeps);
    }
}

TEST(net_content_length_beyond_all_limits)
{
    struct http_head head;
    CHECK_INT(parse(&head, "POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999\r\n\r\n"),
              HTTP_WHOLE);
    CHECK(head.content_length == UINT64_MAX);
    CHECK_INT(parse(&head, "POST / HTTP/1.1\r\n" HOST "Content-Length: 7\r\nContent-Length: 07\r\n\r\n"),
              HTTP_WHOLE);
    CHECK_INT(head.content_length, 7);
}

TEST(net_codings)
{
    static const struct {
        enum http_coding coding;
        const char *lines;
    } cases[] = {
        {HTTP_CODING_NONE, ""},
        {HTTP_CODING_NONE, "Content-Encoding: identity\r\n"},
        {HTTP_CODING_ZLIB, "Content-Encoding: gzip\r\n"},
        {HTTP_CODING_ZLIB, "content-encoding: X-GZIP\r\n"},
        {HTTP_CODING_ZLIB, "Content-Encoding: deflate\r\n"},
        {HTTP_CODING_UNKNOWN, "Content-Encoding: br\r\n"},
        {HTTP_CODING_UNKNOWN, "Content-Encoding: gzip, gzip\r\n"},
        {HTTP_CODING_UNKNOWN, "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        struct http_head head;
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\n" HOST "%s\r\n", cases[i].lines);
        CHECK_INT(parse(&head, text), HTTP_WHOLE);
        CHECK_INT(head.coding, cases[i].coding);
    }
}

TEST(net_accepts_gzip)
{
    static const struct {
        bool yes;
        const char *value;
    } cases[] = {
        {true, "gzip"},
        {true, "deflate, gzip;q=1.0, *;q=0.5"},
        {true, "GZIP"},
        {true, "x-gzip"},
        {true, "*"},
        {true, "gzip;q=0.001"},
        {false, ""},
        {false, "identity"},
        {false, "gzip;q=0"},
        {false, "gzip; q=0.000"},
        {false, "*;q=0"},
        {false, "gzip;q=0, *"},
        {true, "br , gzip ,x"},
        {false, "gzipped"},
        {true, "gzip;q=1"},
        {false, ",,;,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (http_accepts_gzip(slice_of(cases[i].value)) != cases[i].yes)
            test_failed(__FILE__, __LINE__, "%s", cases[i].value);
    CHECK(!http_accepts_gzip(SLICE_NONE));
}

TEST(net_text_end_finds_every_control)
{
    char text[40];
    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 24; at++) {
            memset(text, 'x', sizeof text);
            text[at] = (char)c;
            text[at + 9] = '\r';
            bool stops = (c < 32 && c != '\t') || c == 127;
            CHECK(http_text_end(text, text + 40) == text + at + (stops ? 0 : 9));
        }
    }
    CHECK(http_text_end(text, text) == text);
}

/* ---- chunked bodies ---- */
/* Feeds the text in pieces of `step` bytes, as a connection would. Answers the progress; the body is in out.
 */
static enum http_progress decode(const char *text, size_t len, size_t step, struct http_chunks *chunks,
                                 char *out, size_t *out_len, size_t *rest)
{
    size_t at = 0, body = 0, left = 0;
    *chunks = (struct http_chunks){0};
    enum http_progress progress = HTTP_MORE;
    while (progress == HTTP_MORE && at < len) {
        size_t now = len - at < step ? len - at : step;
        memcpy(out + body + left, text + at, now);
        at += now;
        size_t more;
        progress = http_chunks_decode(chunks, out + body, left + now, 64, 40, &more, &left);
        body += more;
    }
    *out_len = body;
    *rest = left + len - at;
    return progress;
}

TEST(net_chunks_whole)
{
    static const struct {
        const char *text, *body;
        size_t rest;
    } cases[] = {
        {"0\r\n\r\n", "", 0},
        {"5\r\nhello\r\n0\r\n\r\n", "hello", 0},
        {"5\r\nhello\r\n1\r\n \r\n0000\r\n\r\nGET /", "hello ", 5},
        {"A;name=value;x=\"y z\"\r\n0123456789\r\n00a\r\nabcdefghij\r\n0;last\r\n\r\n",
         "0123456789abcdefghij", 0},
        {"3\r\n\r\n0\r\n0\r\nTrailer: one\r\nOther: two\r\n\r\nX", "\r\n0", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step < 80; step++) {
            struct http_chunks chunks;
            char out[256];
            size_t body, rest;
            CHECK_INT(decode(cases[i].text, strlen(cases[i].text), step, &chunks, out, &body, &rest),
                      HTTP_WHOLE);
            CHECK_TEXT(((struct slice){out, body}), cases[i].body);
            CHECK_INT(rest, cases[i].rest);
        }
    }
}

TEST(net_chunks_unfinished)
{
    static const char text[] = "5;ext\r\nhello\r\n0\r\nA: b\r\n\r\n";
    for (size_t cut = 0; cut < sizeof text - 1; cut++) {
        struct http_chunks chunks;
        char out[64];
        size_t body, rest;
        CHECK_INT(decode(text, cut, 100, &chunks, out, &body, &rest), HTTP_MORE);
    }
}

TEST(net_chunks_refused)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {400, "\r\n"},
        {400, "x\r\n"},
        {400, "-1\r\n"},
        {400, "0x5\r\nhello\r\n"},
        {400, "5 \r\nhello\r\n"},
        {400, " 5\r\nhello\r\n"},
        {400, "5\nhello\r\n"},
        {400, "5;a\nhello\r\n"},
        {400, "5\rhello\r\n"},
        {400, "5\r\nhelloX"},
        {400, "5\r\nhello\n"},
        {400, "5\r\nhello\rX"},
        {400, "0\r\n folded: x\r\n\r\n"},
        {400, "0\r\nname : x\r\n\r\n"},
        {413, "41\r\n"},
        {413, "40\r\n0123456789012345678901234567890123456789012345678901234567890123\r\n1\r\n"},
        {413, "ffffffffffffffff\r\n"},
        {413, "1ffffffffffffffff\r\n"},
        {431, "0\r\nA: 0123456789\r\nB: 0123456789\r\nC: 0123456789\r\n\r\n"},
        {431, "0\r\nA: 01234567890123456789012345678901234567890"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t step = 1; step < 90; step += 11) {
            struct http_chunks chunks;
            char out[256];
            size_t body, rest;
            enum http_progress progress = decode(cases[i].text, strlen(cases[i].text), step, &chunks, out,
                                                 &body, &rest);
            if (progress != HTTP_REFUSED || chunks.fault.status != cases[i].status)
                test_failed(__FILE__, __LINE__, "case %zu by %zu: %d, status %d", i, step, progress,
                            chunks.fault.status);
        }
    }
}

TEST(net_chunk_line_is_bounded)
{
    size_t len = LIMIT_CHUNK_LINE_BYTES + 10;
    char *text = malloc(len);
    struct http_chunks chunks = {0};
    size_t body, rest;
    memset(text, 'x', len);
    text[0] = '5';
    text[1] = ';';
    CHECK_INT(http_chunks_decode(&chunks, text, len, 64, 64, &body, &rest), HTTP_REFUSED);
    CHECK_INT(chunks.fault.status, 400);
    free(text);
}
