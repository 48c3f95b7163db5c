/* Patterns as targets: each record becomes a call, by places in the call's text and body. */
#include "unit/pattern_fixture.h"

#define RECORD(id, image)                                                                                    \
    "{\"eventID\":\"" id "\",\"eventName\":\"INSERT\",\"dynamodb\":{\"Keys\":{\"id\":{\"S\":\"k 1\"}},"      \
    "\"NewImage\":" image "}}"
#define IMAGE "{\"shop\":{\"S\":\"a/b\"},\"n\":{\"N\":\"3\"},\"deep\":{\"M\":{\"x\":{\"BOOL\":true}}}}"

static void expect(struct patterns *patterns, const char *call, const char *body, const char *event,
                   bool fine, const char *expected)
{
    struct arena arena = {0};
    struct buf reply = {0};
    bool answer = pattern_apply(patterns->pattern, slice_of(call), body ? slice_of(body) : SLICE_NONE,
                                slice_of(event), SLICE_NONE, &arena, &reply, NULL);
    CHECK_INT(answer, fine);
    if (!slice_starts(buf_view(&reply), slice_of(expected)))
        test_failed(__FILE__, __LINE__, "got %.*s, expected %s", SLICE_ARG(buf_view(&reply)), expected);
    buf_free(&reply);
    arena_free(&arena);
}

TEST(target_records_become_calls_once)
{
    struct patterns patterns;
    patterns_open(&patterns);
    const char *event = "{\"Records\":[" RECORD("e1", IMAGE) "," RECORD("e2", IMAGE) "]}";
    expect(&patterns, "POST /v1/counters/{NewImage.shop}", NULL, event, true, "{\"called\":2}");
    expect(&patterns, "POST /v1/counters/{NewImage.shop}", NULL, event, true, "{\"called\":2}");
    CHECK_ASKS(&patterns, "GET /v1/counters/a%2Fb", NULL, 200, "{\"value\":2}");
    expect(&patterns, "POST /v1/counters/by", "{\"by\":\"{NewImage.n}\"}",
           "{\"Records\":[" RECORD("e3", IMAGE) "]}", true, "{\"called\":1}");
    CHECK_ASKS(&patterns, "GET /v1/counters/by", NULL, 200, "{\"value\":3}");
    patterns_close(&patterns);
}

TEST(target_places_in_bodies)
{
    struct patterns patterns;
    patterns_open(&patterns);
    expect(&patterns, "PUT /v1/documents/d/{Keys.id}",
           "{\"all\":\"{NewImage}\",\"x\":\"{NewImage.deep.x}\",\"text\":\"<{eventName} {NewImage.n}>\","
           "\"none\":\"{OldImage.n}\",\"list\":[1,\"{}\"]}",
           "{\"Records\":[" RECORD("e1", IMAGE) "]}", true, "{\"called\":1}");
    struct slice document = asks(&patterns, "GET /v1/documents/d/k%201", NULL);
    CHECK_INT(patterns.call.status, 200);
    CHECK(slice_contains(document, SLICE("\"text\":\"<INSERT 3>\"")));
    CHECK(slice_contains(document, SLICE("\"x\":true")));
    CHECK(slice_contains(document, SLICE("\"none\":null")));
    CHECK(slice_contains(document, SLICE("\"list\":[1,\"{}\"]")));
    CHECK(slice_contains(document, SLICE("\"shop\":\"a/b\"")));
    patterns_close(&patterns);
}

TEST(target_an_event_without_records_is_one)
{
    struct patterns patterns;
    patterns_open(&patterns);
    expect(&patterns, "POST /v1/counters/{a.b}", NULL, "{\"a\":{\"b\":\"tick\"}}", true, "{\"called\":1}");
    CHECK_ASKS(&patterns, "GET /v1/counters/tick", NULL, 200, "{\"value\":1}");
    patterns_close(&patterns);
}

TEST(target_late_events_of_a_group_are_handled)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/groups/pair", "{\"complete\":{\"size\":1}}", 200,
               "{\"name\":\"pair\",\"complete\":{\"size\":1},\"late\":\"discard\"}");
    const char *event = "{\"Records\":[" RECORD("e1", IMAGE) "," RECORD("e2", IMAGE) "]}";
    expect(&patterns, "POST /v1/groups/pair/k", "{\"id\":\"{eventID}\"}", event, true, "{\"called\":2}");
    patterns_close(&patterns);
}

TEST(target_refusals_tell_why)
{
    struct patterns patterns;
    patterns_open(&patterns);
    const char *event = "{\"Records\":[" RECORD("e1", IMAGE) "]}";
    expect(&patterns, "GET /v1/counters/x", NULL, "", false, "a pattern is called by POST");
    expect(&patterns, "POST /elsewhere", NULL, "", false, "a pattern is called by POST");
    expect(&patterns, "POST /v1/counters/x", "{", "", false, "the body is not JSON");
    expect(&patterns, "POST /v1/counters/x", "{}", "", true, "{\"called\":0}");
    expect(&patterns, "POST /v1/counters/{NewImage.y}", NULL, event, false, "the record has no NewImage.y");
    expect(&patterns, "POST /v1/nothing/x", NULL, "", false, "it calls no pattern that there is");
    expect(&patterns, "POST /v1/counters/{NewImage.shop}/x", NULL, "", false, "it calls no pattern");
    expect(&patterns, "POST /v1/{NewImage.shop}/x", NULL, event, false,
           "POST /v1/a%2Fb/x answered with status 404: {\"error\":\"no-such-route\","
           "\"message\":\"There is no route /v1/a%2Fb/x; GET /v1/openapi.json describes all.\"}");
    expect(&patterns, "POST /v1/counters/x", "{\"by\":\"{NewImage.shop}\"}", event, false,
           "POST /v1/counters/x answered with status 400");
    patterns_close(&patterns);
}
