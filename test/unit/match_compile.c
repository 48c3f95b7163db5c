/* What is refused as a pattern, in which words and where; and the limits. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "match/match.h"
#include "unit/test.h"

static void check_refused(const char *pattern, const char *sentence)
{
    struct arena arena = {0};
    char error[256];
    if (pattern_compile(&arena, slice_of(pattern), error, sizeof error))
        test_failed(__FILE__, __LINE__, "%s was accepted", pattern);
    else if (strcmp(error, sentence) != 0)
        test_failed(__FILE__, __LINE__, "%s\n  got:      %s\n  expected: %s", pattern, error, sentence);
    arena_free(&arena);
}

TEST(faults_have_a_sentence_and_a_place)
{
    static const char *const cases[][2] = {
        {"", "Filter is not an object, at character 1"},
        {"\"x\"", "Filter is not an object, at character 1"},
        {"[1]", "Filter is not an object, at character 1"},
        {"{}", "Empty objects are not allowed, at character 3"},
        {"{\"a\":{}}", "Empty objects are not allowed, at character 8"},
        {"{\"a\":[]}", "Empty arrays are not allowed, as in \"a\", at character 8"},
        {"{\"a\":1}", "\"a\" must be an object or an array, at character 6"},
        {"{\"a\":\"x\"}", "\"a\" must be an object or an array, at character 6"},
        {"{\"a\":null}", "\"a\" must be an object or an array, at character 6"},
        {"{\"a\":[[1]]}", "Match value must be String, number, true, false, or null, at character 7"},
        {"{\"a\":[{}]}", "Match expression name not found, at character 9"},
        {"{\"a\":[{\"like\":1}]}", "Unrecognized match type like, at character 15"},
        {"{\"a\":[{\"prefix\":1}]}", "The value of \"prefix\" must be a string, at character 17"},
        {"{\"a\":[{\"prefix\":\"x\",\"suffix\":\"y\"}]}",
         "Only one name is allowed in a comparison, not also \"suffix\", at character 30"},
        {"{\"a\":[{\"prefix\":{\"wildcard\":\"x\"}}]}",
         "Unsupported prefix pattern: wildcard, at character 29"},
        {"{\"a\":[{\"prefix\":{}}]}",
         "\"prefix\" needs a string, or an object with \"equals-ignore-case\", at character 19"},
        {"{\"a\":[{\"suffix\":null}]}", "The value of \"suffix\" must be a string, at character 17"},
        {"{\"a\":[{\"suffix\":{\"prefix\":\"x\"}}]}", "Unsupported suffix pattern: prefix, at character 27"},
        {"{\"a\":[{\"equals-ignore-case\":[\"x\"]}]}",
         "The value of \"equals-ignore-case\" must be a string, at character 29"},
        {"{\"a\":[{\"wildcard\":1}]}", "The value of \"wildcard\" must be a string, at character 19"},
        {"{\"a\":[{\"wildcard\":\"a**b\"}]}",
         "Consecutive wildcard characters at position 1 of \"a**b\", at character 25"},
        {"{\"a\":[{\"wildcard\":\"a\\\\b\"}]}",
         "Invalid escape character at position 1 of \"a\\b\", at character 25"},
        {"{\"a\":[{\"wildcard\":\"a\\\\\"}]}",
         "Invalid escape character at position 1 of \"a\\\", at character 24"},
        {"{\"a\":[{\"exists\":\"true\"}]}",
         "exists match pattern must be either true or false, at character 17"},
        {"{\"a\":[{\"numeric\":5}]}", "Value of numeric must be an array, at character 18"},
        {"{\"a\":[{\"numeric\":[]}]}", "Value of numeric must not be an empty array, at character 20"},
        {"{\"a\":[{\"numeric\":[5]}]}",
         "Invalid member in numeric match: an operator must be a string, at character 19"},
        {"{\"a\":[{\"numeric\":[\"!\",5]}]}", "Unrecognized numeric range operator: !, at character 22"},
        {"{\"a\":[{\"numeric\":[\">>\",5]}]}", "Unrecognized numeric range operator: >>, at character 23"},
        {"{\"a\":[{\"numeric\":[\">\"]}]}", "Value of > must be numeric, at character 23"},
        {"{\"a\":[{\"numeric\":[\">\",\"5\"]}]}", "Value of > must be numeric, at character 23"},
        {"{\"a\":[{\"numeric\":[\"=\",5,\"<\",6]}]}",
         "Too many elements in numeric expression, at character 25"},
        {"{\"a\":[{\"numeric\":[\"<\",5,\">\",1]}]}",
         "Too many elements in numeric expression, at character 25"},
        {"{\"a\":[{\"numeric\":[\">\",1,\">\",5]}]}", "Bad numeric range operator: >, at character 28"},
        {"{\"a\":[{\"numeric\":[\">\",1,\"=\",5]}]}", "Bad numeric range operator: =, at character 28"},
        {"{\"a\":[{\"numeric\":[\">\",1,\"<\",5,\"<\",6]}]}",
         "Too many terms in numeric range expression, at character 31"},
        {"{\"a\":[{\"numeric\":[\">\",5,\"<\",5]}]}",
         "Bottom of a numeric range must be less than its top, at character 30"},
        {"{\"a\":[{\"anything-but\":null}]}",
         "Inside anything-but, only strings and numbers are supported, at character 23"},
        {"{\"a\":[{\"anything-but\":[true]}]}",
         "Inside anything-but, only strings and numbers are supported, at character 24"},
        {"{\"a\":[{\"anything-but\":[]}]}", "Empty arrays are not allowed, at character 25"},
        {"{\"a\":[{\"anything-but\":[\"x\",1]}]}",
         "Inside an anything-but list, either all values are numbers or all are strings, mixed types are not "
         "supported, at character 29"},
        {"{\"a\":[{\"anything-but\":{}}]}", "Anything-But expression name not found, at character 25"},
        {"{\"a\":[{\"anything-but\":{\"numeric\":[\"=\",1]}}]}",
         "Unsupported anything-but pattern: numeric, at character 34"},
        {"{\"a\":[{\"anything-but\":{\"prefix\":\"\"}}]}", "Null prefix/suffix not allowed, at character 35"},
        {"{\"a\":[{\"anything-but\":{\"suffix\":[\"a\",\"\"]}}]}",
         "Null prefix/suffix not allowed, at character 40"},
        {"{\"a\":[{\"anything-but\":{\"prefix\":5}}]}",
         "Inside anything-but, only strings are supported, at character 33"},
        {"{\"a\":[{\"anything-but\":{\"prefix\":\"a\",\"suffix\":\"b\"}}]}",
         "Only one name is allowed in a comparison, not also \"suffix\", at character 46"},
        {"{\"a\":[{\"cidr\":\"10.0.0.0\"}]}", "Malformed CIDR, one '/' required, at character 25"},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/x\"}]}",
         "Malformed CIDR, mask bits must be an integer, at character 27"},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/-1\"}]}",
         "Malformed CIDR, mask bits must be an integer, at character 28"},
        {"{\"a\":[{\"cidr\":\"10.0.0.0/32\"}]}", "IPv4 mask bits must be < 32, at character 28"},
        {"{\"a\":[{\"cidr\":\"::/128\"}]}", "IPv6 mask bits must be < 128, at character 23"},
        {"{\"a\":[{\"cidr\":\"10.0.0/8\"}]}", "Invalid IP address: 10.0.0, at character 25"},
        {"{\"$or\":[{\"a\":[1]}]}", "There must be at least 2 objects in $or, at character 19"},
        {"{\"$or\":[{\"a\":[1]},5]}", "Only JSON objects are allowed in the array of $or, at character 19"},
        {"{\"$or\":[{\"a\":[1]},{}]}", "Empty objects are not allowed, at character 21"},
        {"{\"$or\":[{\"a\":[1]},{\"prefix\":[2]}]}",
         "\"prefix\" is a reserved name that cannot be a field inside $or, at character 29"},
        {"{\"$or\":1}", "\"$or\" must be an object or an array, at character 8"},
        {"{\"a\":[1]", "The pattern is not JSON: unexpected end, at character 9"},
        {"{\"a\":[1]}x", "The pattern is not JSON: text behind the value, at character 10"},
        {"{\"a\":[1,]}", "The pattern is not JSON: a value was expected, at character 9"},
        {"{\"a\":[tru]}", "The pattern is not JSON: unexpected word, at character 7"},
        {"{\"a\" [1]}", "The pattern is not JSON: a colon was expected, at character 6"},
        {"[{\"eventName\": [\"INSERT\"=123}]", "Filter is not an object, at character 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_refused(cases[i][0], cases[i][1]);
}

static bool compiles(struct slice pattern, char *error, size_t error_len)
{
    struct arena arena = {0};
    bool answer = pattern_compile(&arena, pattern, error, error_len) != NULL;
    arena_free(&arena);
    return answer;
}

TEST(a_long_name_leaves_room_for_the_place)
{
    struct buf pattern = {0};
    char error[64];
    buf_text(&pattern, "{\"");
    for (int i = 0; i < 200; i++) buf_byte(&pattern, 'n');
    buf_text(&pattern, "\":1}");
    CHECK(!compiles(buf_view(&pattern), error, sizeof error));
    CHECK(strlen(error) == sizeof error - 1);
    CHECK(strstr(error, ", at character 205") != NULL);
    buf_free(&pattern);
}

TEST(combinations_are_bounded)
{
    char error[256];
    struct buf pattern = {0};
    /* Ten times two ways are 1024; nine times are 512. */
    for (int ors = 9; ors <= 10; ors++) {
        pattern.len = 0;
        buf_byte(&pattern, '{');
        for (int i = 0; i < ors; i++)
            buf_printf(&pattern, "%s\"k%d\":{\"$or\":[{\"a\":[1]},{\"b\":[2]}]}", i ? "," : "", i);
        buf_byte(&pattern, '}');
        CHECK_INT(compiles(buf_view(&pattern), error, sizeof error), ors == 9);
    }
    CHECK(strstr(error, "1000 combinations at most") != NULL);
    buf_free(&pattern);
}

TEST(all_combinations_are_tried)
{
    struct arena arena = {0}, scratch = {0};
    struct buf text = {0}, event = {0};
    char error[256];
    buf_byte(&text, '{');
    for (int i = 0; i < 8; i++)
        buf_printf(&text, "%s\"k%d\":{\"$or\":[{\"a\":[1]},{\"b\":[2]}]}", i ? "," : "", i);
    buf_byte(&text, '}');
    struct event_pattern *pattern = pattern_compile(&arena, buf_view(&text), error, sizeof error);
    CHECK(pattern != NULL);
    for (unsigned way = 0; way < 256 && pattern; way++) {
        event.len = 0;
        buf_byte(&event, '{');
        for (unsigned i = 0; i < 8; i++)
            buf_printf(&event, "%s\"k%u\":%s", i ? "," : "", i, way >> i & 1 ? "{\"a\":1}" : "{\"b\":2}");
        buf_byte(&event, '}');
        CHECK(pattern_matches(pattern, buf_view(&event), &scratch));
        event.data[event.len - 3] = '9'; /* the last value is wrong */
        CHECK(!pattern_matches(pattern, buf_view(&event), &scratch));
        arena_reset(&scratch);
    }
    buf_free(&text);
    buf_free(&event);
    arena_free(&arena);
    arena_free(&scratch);
}

TEST(depth_and_length_are_bounded)
{
    struct buf pattern = {0};
    char error[256];
    for (int i = 0; i < 300; i++) buf_text(&pattern, "{\"a\":");
    buf_text(&pattern, "[1]");
    for (int i = 0; i < 300; i++) buf_byte(&pattern, '}');
    CHECK(!compiles(buf_view(&pattern), error, sizeof error));
    CHECK(strstr(error, "nested too deeply") != NULL);
    pattern.len = 0;
    buf_text(&pattern, "{\"a\":[\"");
    while (pattern.len < LIMIT_PATTERN_BYTES) buf_byte(&pattern, 'x');
    buf_text(&pattern, "\"]}");
    CHECK(!compiles(buf_view(&pattern), error, sizeof error));
    CHECK(strstr(error, "bytes") != NULL);
    buf_free(&pattern);
}

TEST(deep_events_match_nothing)
{
    struct arena arena = {0}, scratch = {0};
    struct buf event = {0};
    char error[256];
    struct event_pattern *pattern = pattern_compile(&arena, SLICE("{\"a\":[1]}"), error, sizeof error);
    buf_text(&event, "{\"a\":");
    for (int i = 0; i < 100000; i++) buf_byte(&event, '[');
    CHECK(!pattern_matches(pattern, buf_view(&event), &scratch));
    buf_free(&event);
    arena_free(&arena);
    arena_free(&scratch);
}

TEST(the_pattern_keeps_its_own_copies)
{
    struct arena arena = {0}, scratch = {0};
    char text[] = "{\"name\":[\"value\",{\"prefix\":\"pre\"}]}", error[256];
    struct event_pattern *pattern = pattern_compile(&arena, slice_of(text), error, sizeof error);
    memset(text, 'x', sizeof text);
    CHECK(pattern_matches(pattern, SLICE("{\"name\":\"value\"}"), &scratch));
    CHECK(pattern_matches(pattern, SLICE("{\"name\":\"prefix\"}"), &scratch));
    arena_free(&arena);
    arena_free(&scratch);
}
