/* What a `then` says, and what is refused. */
#include "unit/pattern_fixture.h"

static struct pattern_target targets[PATTERN_TARGETS];
static unsigned count;
static struct arena arena;

static const char *read_then(const char *then)
{
    arena_reset(&arena);
    return pattern_then_read(slice_of(then), &arena, targets, &count);
}

static void check_refused(const char *then, const char *phrase)
{
    const char *fault = read_then(then);
    if (!fault || !strstr(fault, phrase))
        test_failed(__FILE__, __LINE__, "%s: got %s, expected %s", then, fault ? fault : "nothing", phrase);
}

TEST(then_is_a_function_a_url_or_a_call)
{
    CHECK(!read_then("resize"));
    CHECK_INT(count, 1);
    CHECK_TEXT(targets[0].function, "resize");
    CHECK(!read_then("arn:aws:lambda:us-east-1:000000000000:function:resize:live"));
    CHECK(!read_then("https://example.org/hook?a=1"));
    CHECK_TEXT(targets[0].url, "https://example.org/hook?a=1");
    CHECK(!targets[0].function.len);
    CHECK(!read_then("{\"function\":\"resize:$LATEST\"}"));
    CHECK_TEXT(targets[0].function, "resize:$LATEST");
    CHECK(!read_then("{\"url\":\"http://h/\",\"secret\":\"s\\u00e9\"}"));
    CHECK_TEXT(targets[0].secret, "s\xc3\xa9");
    CHECK(!read_then("{\"call\":\"POST /v1/groups/done/{detail.id}\",\"body\":{\"data\":[1]}}"));
    CHECK_TEXT(targets[0].call, "POST /v1/groups/done/{detail.id}");
    CHECK_TEXT(targets[0].body, "{\"data\":[1]}");
    arena_free(&arena);
}

TEST(then_may_be_a_list_and_an_empty_one)
{
    CHECK(!read_then("[]"));
    CHECK_INT(count, 0);
    CHECK(!read_then("[ \"f\", {\"call\":\"PUT /v1/jobs/x\"} , \"http://h\"]"));
    CHECK_INT(count, 3);
    CHECK_TEXT(targets[0].function, "f");
    CHECK_TEXT(targets[1].call, "PUT /v1/jobs/x");
    CHECK_TEXT(targets[2].url, "http://h");
    CHECK(!read_then("[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]"));
    CHECK_INT(count, PATTERN_TARGETS);
    check_refused("[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]", "more than 10");
    arena_free(&arena);
}

TEST(then_can_be_for_some_states_only)
{
    CHECK(!read_then("[\"f\",{\"function\":\"f\",\"on\":\"COMPLETE\"},"
                     "{\"function\":\"f\",\"on\":[\"FAILED\",\"EXPIRED\"]}]"));
    CHECK(pattern_target_is_for(&targets[0], SLICE("EXPIRED"), &arena));
    CHECK(pattern_target_is_for(&targets[1], SLICE("COMPLETE"), &arena));
    CHECK(!pattern_target_is_for(&targets[1], SLICE("EXPIRED"), &arena));
    CHECK(pattern_target_is_for(&targets[2], SLICE("EXPIRED"), &arena));
    CHECK(!pattern_target_is_for(&targets[2], SLICE("COMPLETE"), &arena));
    check_refused("{\"function\":\"f\",\"on\":\"OPEN\"}", "COMPLETE, FAILED");
    check_refused("{\"function\":\"f\",\"on\":[1]}", "COMPLETE, FAILED");
    check_refused("{\"function\":\"f\",\"on\":{}}", "COMPLETE, FAILED");
    arena_free(&arena);
}

TEST(then_that_cannot_be_understood)
{
    static char long_name[200], long_text[LIMIT_THEN_BYTES + 2];
    memset(long_name, 'a', sizeof long_name - 1);
    memset(long_text, 'a', sizeof long_text - 1);
    check_refused("", "1 to 170");
    check_refused(long_name, "1 to 170");
    check_refused(long_text, "16 KB");
    check_refused("two words", "its name or its ARN");
    check_refused("f/../g", "its name or its ARN");
    check_refused("https://", "too short");
    check_refused("https://h/a b", "blanks");
    check_refused("ftp://h/", "or be a URL");
    check_refused("{\"url\":\"ftp://h/\"}", "does not begin with http");
    check_refused("{\"function\":\"f\"", "not JSON");
    check_refused("{}", "one of function, url and call");
    check_refused("{\"function\":\"f\",\"url\":\"http://h\"}", "one of function, url and call");
    check_refused("{\"function\":7}", "no text");
    check_refused("{\"function\":\"\"}", "is empty");
    check_refused("{\"function\":\"f\",\"secret\":\"s\"}", "no url");
    check_refused("{\"function\":\"f\",\"body\":{}}", "no call");
    check_refused("{\"function\":\"f\",\"func\":1}", "a member other than");
    check_refused("[[\"f\"]]", "a text, an object");
    check_refused("[7]", "a text, an object");
    arena_free(&arena);
}

TEST(then_calls_patterns_that_there_are)
{
    CHECK(!read_then("{\"call\":\"POST /v1/counters/{NewImage.name}\"}"));
    CHECK(!read_then("{\"call\":\"PUT /v1/documents/reports/{detail.id}\",\"body\":\"{detail}\"}"));
    CHECK(!read_then("{\"call\":\"POST /v1/work/mail/{eventID}\"}"));
    check_refused("{\"call\":\"POST /v1/nothing/x\"}", "no pattern that there is");
    check_refused("{\"call\":\"POST /v1/counters\"}", "no pattern that there is");
    check_refused("{\"call\":\"POST /v1/counters//\"}", "no pattern that there is");
    check_refused("{\"call\":\"DELETE /v1/jobs/x/done\"}", "no pattern that there is");
    check_refused("{\"call\":\"/v1/counters/x\"}", "no pattern that there is");
    check_refused("{\"call\":\"POST\"}", "no pattern that there is");
    check_refused("{\"call\":\"GET /v1/counters/x\"}", "by GET");
    arena_free(&arena);
}

/* What is refused changes nothing. */
TEST(then_is_checked_by_the_patterns_that_take_one)
{
    static const char *const paths[] = {"PUT /v1/jobs/j", "PUT /v1/groups/g", "PUT /v1/periods/p",
                                        "PUT /v1/work/q"};
    static const char *const gets[] = {"GET /v1/jobs/j", "GET /v1/groups/g/k", "GET /v1/periods/p",
                                       "GET /v1/work/q/u"};
    static const char *const bodies[] = {"{\"total\":3,\"then\":%s}",
                                         "{\"complete\":{\"size\":2},\"then\":%s}",
                                         "{\"every\":\"1h\",\"then\":%s}", "{\"lease\":\"1m\",\"then\":%s}"};
    static const char *const bad[] = {"5", "true", "\"two words\"", "{}", "[{\"call\":\"POST /v1/none\"}]"};
    struct patterns patterns;
    char body[200];
    patterns_open(&patterns);
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 5; k++) {
            snprintf(body, sizeof body, bodies[i], bad[k]);
            struct slice reply = asks(&patterns, paths[i], body);
            CHECK_INT(patterns.call.status, 400);
            CHECK(slice_contains(reply, SLICE("\"message\":\"then ")));
        }
        asks(&patterns, gets[i], NULL);
        CHECK_INT(patterns.call.status, 404);
        snprintf(body, sizeof body, bodies[i], "{\"function\":\"not-there-yet\"}");
        asks(&patterns, paths[i], body);
        CHECK(patterns.call.status == 200 || patterns.call.status == 201);
        snprintf(body, sizeof body, bodies[i], "null");
        asks(&patterns, paths[i], body);
        CHECK(patterns.call.status < 500);
    }
    patterns_close(&patterns);
}
