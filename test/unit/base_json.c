/* The JSON reader and writers, and what else of base has corners. */
#include "base/json.h"

#include <math.h>

#include "base/buf.h"
#include "base/limits.h"
#include "unit/test.h"

static bool accepts(const char *text)
{
    struct arena arena = {0};
    struct json_reader reader;
    json_begin(&reader, slice_of(text), &arena);
    bool fine = json_skip(&reader) && json_done(&reader);
    arena_free(&arena);
    return fine;
}

TEST(json_accepts_what_is_json)
{
    const char *good[] = {"{}",     "[]",          " { \"a\" : [ 1 , -2.5e+3 , true, false, null, \"x\" ] } ",
                          "0",      "-0",          "\"\"",
                          "[[[]]]", "{\"\":{}}",   "\"\\u00e4\\ud83d\\ude00\\n\"",
                          "1E5",    "\"\xc3\xa4\""};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!accepts(good[i])) test_failed(__FILE__, __LINE__, "refused %s", good[i]);
}

TEST(json_refuses_what_is_not)
{
    const char *bad[] = {"",
                         "{",
                         "[",
                         "{\"a\"}",
                         "{\"a\":}",
                         "[1,]",
                         "{\"a\":1,}",
                         "[,1]",
                         "01",
                         "1.",
                         ".5",
                         "1e",
                         "+1",
                         "tru",
                         "nul",
                         "\"",
                         "\"\\x\"",
                         "\"\\u12\"",
                         "\"\\ud800\"",
                         "\"\\udc00\"",
                         "\"\n\"",
                         "\"\xff\"",
                         "\"\xc0\x80\"",
                         "\"\xed\xa0\x80\"",
                         "{} {}",
                         "[1 2]",
                         "{\"a\" 1}",
                         "'a'",
                         "-",
                         "\"abc\\",
                         "[1}",
                         "{]",
                         "\"\xf4\x90\x80\x80\"",
                         "{1:2}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (accepts(bad[i])) test_failed(__FILE__, __LINE__, "accepted %s", bad[i]);
}

TEST(json_refuses_endless_nesting)
{
    char deep[2000];
    memset(deep, '[', 1000);
    memset(deep + 1000, ']', 999);
    deep[1999] = 0;
    CHECK(!accepts(deep));
}

TEST(json_strings_are_decoded)
{
    struct arena arena = {0};
    struct json_reader reader;
    struct slice text;
    json_begin(&reader, SLICE("\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u20ac\\ud83d\\ude00z\""), &arena);
    CHECK(json_string(&reader, &text));
    CHECK_TEXT(text, "a\"\\/\b\f\n\r\tA\xe2\x82\xac\xf0\x9f\x98\x80z");
    arena_free(&arena);
}

/* Strings are read eight bytes at a time: each byte, at each place, with others before and behind it. */
TEST(json_strings_are_the_same_at_every_place)
{
    struct arena arena = {0};
    struct buf written = {0};
    for (int byte = 0; byte < 256; byte++) {
        for (size_t place = 0; place < 18; place++) {
            char text[24];
            struct json_reader reader;
            struct slice got = SLICE_NONE;
            memset(text, byte % 2 ? ' ' : '~', sizeof text);
            text[0] = text[19] = '"';
            text[place + 1] = (char)byte;
            json_begin(&reader, (struct slice){text, 20}, &arena);
            bool fine = json_string(&reader, &got);
            bool ends_early = byte == '"',
                 is_plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
            CHECK(fine == (is_plain || ends_early));
            if (!fine) continue;
            CHECK_INT(got.len, ends_early ? place : 18);
            CHECK(memcmp(got.data, text + 1, got.len) == 0);
            written.len = 0;
            json_put_string(&written, (struct slice){text + 1, 18});
            json_begin(&reader, buf_view(&written), &arena);
            CHECK(json_string(&reader, &got) && got.len == 18 && memcmp(got.data, text + 1, 18) == 0);
        }
    }
    buf_free(&written);
    arena_free(&arena);
}

TEST(json_strings_are_written_so_that_they_read_back)
{
    struct arena arena = {0};
    struct buf out = {0};
    struct json_reader reader;
    struct slice back;
    char all[256];
    for (int i = 0; i < 128; i++) all[i] = (char)i;
    struct slice text = {all, 128};
    json_put_string(&out, text);
    json_begin(&reader, buf_view(&out), &arena);
    CHECK(json_string(&reader, &back));
    CHECK(slice_equal(text, back));
    buf_free(&out);
    arena_free(&arena);
}

TEST(json_doubles_are_short)
{
    struct buf out = {0};
    json_put_double(&out, 0.5);
    buf_byte(&out, ' ');
    json_put_double(&out, 3);
    buf_byte(&out, ' ');
    json_put_double(&out, 1763123456.789);
    CHECK_TEXT(buf_view(&out), "0.5 3 1763123456.789");
    buf_free(&out);
}

TEST(base64_round_trip_and_faults)
{
    struct arena arena = {0};
    struct slice bytes;
    for (size_t len = 0; len < 20; len++) {
        char data[20];
        for (size_t i = 0; i < len; i++) data[i] = (char)(i * 37 + len);
        struct buf out = {0};
        base64_put(&out, (struct slice){data, len});
        CHECK_INT(base64_decode(&arena, buf_view(&out), &bytes), BASE64_OK);
        CHECK(slice_equal(bytes, (struct slice){data, len}));
        buf_free(&out);
    }
    CHECK_INT(base64_decode(&arena, SLICE("abc"), &bytes), BASE64_LENGTH);
    CHECK_INT(base64_decode(&arena, SLICE("ab!="), &bytes), BASE64_CHARACTER);
    CHECK_INT(base64_decode(&arena, SLICE("a==="), &bytes), BASE64_CHARACTER);
    CHECK_INT(base64_decode(&arena, SLICE("AB=="), &bytes), BASE64_LAST_BITS);
    arena_free(&arena);
}

TEST(varints_round_trip)
{
    uint64_t values[] = {0, 1, 127, 128, 16383, 16384, UINT64_MAX}, value;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct buf out = {0};
        buf_varint(&out, values[i]);
        struct slice from = buf_view(&out);
        CHECK(varint_take(&from, &value));
        CHECK(value == values[i] && from.len == 0);
        from = (struct slice){out.data, out.len - 1};
        CHECK(!varint_take(&from, &value));
        buf_free(&out);
    }
}

TEST(slice_numbers_are_bounded)
{
    unsigned long long value;
    CHECK(slice_to_u64(SLICE("65535"), 65535, &value) && value == 65535);
    CHECK(!slice_to_u64(SLICE("65536"), 65535, &value));
    CHECK(!slice_to_u64(SLICE(""), 10, &value));
    CHECK(!slice_to_u64(SLICE("1a"), 100, &value));
    CHECK(!slice_to_u64(SLICE("99999999999999999999999"), ~0ull, &value));
}

TEST(json_tagged_strings_are_taken_whole_or_not_at_all)
{
    struct arena arena = {0};
    struct json_reader reader;
    struct slice text;
    char tag;
    json_begin(&reader, SLICE("[{\"S\":\"plain\"},{\"N\":\"\"},{\"S\":\"x\"}"), &arena);
    json_enter(&reader);
    CHECK(json_element(&reader) && json_tagged_string(&reader, "SN", &tag, &text));
    CHECK(tag == 'S');
    CHECK_TEXT(text, "plain");
    CHECK(json_element(&reader) && json_tagged_string(&reader, "SN", &tag, &text));
    CHECK(tag == 'N' && text.len == 0);
    CHECK(json_element(&reader) && !json_tagged_string(&reader, "N", &tag, &text));
    CHECK(json_tagged_string(&reader, "S", &tag, &text) && !json_element(&reader) && json_failed(&reader));
    static const char *const others[] = {
        "",
        "{\"S\":\"",
        "{\"S\":\"cut",
        "{\"S\":\"cut\"",
        "{\"S\":\"two\",\"N\":\"1\"}",
        "{ \"S\":\"spaced\"}",
        "{\"S\":\"spaced\" }",
        "{\"S\": \"spaced\"}",
        "{\"S\":\"escaped\\n\"}",
        "{\"S\":\"\xc3\xa4\"}",
        "{\"S\":\"\x01\"}",
        "{\"SS\":[\"a\"]}",
        "{\"\":\"no name\"}",
        "{\"B\":\"QQ==\"}",
        "{\"S\":12345}",
        "[\"S\",\"x\"]",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        json_begin(&reader, slice_of(others[i]), &arena);
        if (json_tagged_string(&reader, "SN", &tag, &text) || json_offset(&reader) != 0)
            test_failed(__FILE__, __LINE__, "taken: %s", others[i]);
    }
    /* An object more than may be is refused as it is elsewhere. */
    struct buf deep = {0};
    for (int i = 0; i < LIMIT_JSON_DEPTH; i++) buf_byte(&deep, '[');
    buf_text(&deep, "{\"S\":\"\"}");
    json_begin(&reader, buf_view(&deep), &arena);
    for (int i = 0; i < LIMIT_JSON_DEPTH; i++) CHECK(json_enter(&reader) && json_element(&reader));
    CHECK(!json_tagged_string(&reader, "SN", &tag, &text) && !json_enter(&reader));
    buf_free(&deep);
    arena_free(&arena);
}

/* Strings are read by the block: wherever a byte stands, it counts as what it is. */
TEST(json_strings_end_at_their_quote_wherever_it_stands)
{
    struct arena arena = {0};
    static const struct {
        unsigned char byte;
        bool is_fine, is_end;
    } cases[] = {{0x1f, false, false}, {0x20, true, false},  {'"', true, true},    {'\\', false, false},
                 {0x7f, true, false},  {0x80, false, false}, {0xff, false, false}, {0, false, false}};
    for (size_t before = 0; before <= 40; before++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char text[80];
            struct json_reader reader;
            struct slice string = SLICE_NONE;
            memset(text, 'a', sizeof text);
            text[0] = '"';
            text[1 + before] = (char)cases[i].byte;
            text[1 + before + 3] = '"';
            json_begin(&reader, (struct slice){text, before + 5}, &arena);
            CHECK(json_string(&reader, &string) == cases[i].is_fine);
            if (cases[i].is_fine) CHECK_INT(string.len, before + (cases[i].is_end ? 0 : 3));
        }
    arena_free(&arena);
}
