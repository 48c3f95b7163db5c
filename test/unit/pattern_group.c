/* Groups by their answers: complete once, by each kind of rule; late events; lists. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

static struct slice member(struct patterns *patterns, struct slice reply, const char *name)
{
    return raw_member(&patterns->arena, reply, name);
}

static void check_member(struct patterns *patterns, const char *request, const char *body, const char *name,
                         const char *expected)
{
    struct slice reply = asks(patterns, request, body), value = member(patterns, reply, name);
    if (patterns->call.status >= 300 || !slice_equal(value, slice_of(expected)))
        test_failed(__FILE__, __LINE__, "%s %s: %s is not %s: %d %.*s", request, body ? body : "", name,
                    expected, patterns->call.status, SLICE_ARG(reply));
}

static int64_t event_count(struct patterns *patterns, const char *request)
{
    return (int64_t)raw_count(&patterns->arena, member(patterns, asks(patterns, request, NULL), "events"));
}

TEST(group_of_ten)
{
    struct patterns patterns;
    char body[80];
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/groups/clicks", "{\"complete\":{\"size\":10}}", 200,
               "{\"name\":\"clicks\",\"complete\":{\"size\":10},\"late\":\"discard\"}");
    for (int i = 1; i <= 10; i++) {
        snprintf(body, sizeof body, "{\"id\":\"c%d\",\"data\":{\"x\":%d}}", i, i);
        for (int again = 0; again < 2; again++)
            check_member(&patterns, "POST /v1/groups/clicks/s%2f7", body, "completed",
                         i == 10 ? "true" : "false"); /* repeated, it gets the same answer */
    }
    CHECK_REFUSES(&patterns, "POST /v1/groups/clicks/s%2f7", "{\"id\":\"c11\"}", 409, "closed-group");
    CHECK_REFUSES(&patterns, "POST /v1/groups/clicks/s%2f7", "{\"id\":\"c12\"}", 409, "closed-group");
    CHECK_ASKS(&patterns, "POST /v1/groups/clicks/s%2f7", "{\"id\":\"c3\"}", 200,
               "{\"accepted\":false,\"duplicate\":true,\"generation\":1,\"count\":10,\"state\":\"COMPLETE\","
               "\"completed\":false}");
    struct slice reply = asks(&patterns, "GET /v1/groups/clicks/s%2f7", NULL);
    CHECK(slice_starts(
        reply,
        SLICE("{\"name\":\"clicks\",\"key\":\"s/7\",\"generation\":1,\"state\":\"COMPLETE\",\"count\":10,"
              "\"opened\":\"2054-11-15T04:13:25.340Z\",\"touched\":\"2054-11-15T04:13:25.340Z\","
              "\"completed\":\"2054-11-15T04:13:25.340Z\",\"why\":\"rule\",\"events\":[{\"id\":\"c1\","
              "\"data\":{\"x\":1},\"time\":\"2054-11-15T04:13:25.340Z\"},{\"id\":\"c2\"")));
    CHECK_INT(raw_count(&patterns.arena, member(&patterns, reply, "events")), 10);
    patterns_close(&patterns);
}

TEST(group_refuses_bad_rules)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"data\":1}", 404, "no-such-group");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k", NULL, 404, "no-such-group");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g", NULL, 404, "no-such-group");
    CHECK_REFUSES(&patterns, "DELETE /v1/groups/g", NULL, 404, "no-such-group");
    CHECK_REFUSES(&patterns, "DELETE /v1/groups/g/k", NULL, 404, "no-such-group");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{}", 400, "bad-rule");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"complete\":{}}", 400, "bad-rule");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"complete\":7}", 400, "bad-rule");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":0}}", 400, "bad-rule");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"kinds\":[]}}", 400, "bad-rule");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"kinds\":[\"a\",\"a\"]}}", 400, "bad-rule");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"length\":3}}", 400, "bad-rule");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"quiet\":\"a while\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g", "{\"quiet\":\"1s\",\"late\":\"never\"}", 400, "bad-request");
    static const char *const conditions[] = {"#count >=",
                                             "count > :n",
                                             "#count >= :n) or (#count > :n",
                                             "(#count > :n",
                                             "#count > :none",
                                             "size(#count",
                                             "",
                                             "a = \\\"b\\\"",
                                             "# > :n",
                                             "#a\\\\b > :n"};
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"complete\":{\"when\":{\"expression\":\"%s\",\"values\":{\":n\":1}}}}",
                 conditions[i]);
        asks(&patterns, "PUT /v1/groups/g", body);
        if (patterns.call.status != 400) test_failed(__FILE__, __LINE__, "taken: %s", conditions[i]);
    }
    CHECK_REFUSES(&patterns, "PUT /v1/groups/g",
                  "{\"complete\":{\"when\":{\"expression\":\"#count > :n\",\"values\":{\"n\":1}}}}", 400,
                  "bad-rule");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g", NULL, 404, "no-such-group"); /* nothing came of all that */
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":2}}");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"amount\":\"much\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g?state=closed", NULL, 400, "bad-request");
    struct buf body = {0};
    buf_text(&body, "{\"data\":\"");
    for (int i = 0; i < 410 * 1024; i++) buf_byte(&body, 'x');
    buf_put(&body, "\"}", 3);
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", body.data, 413, "too-large");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k", NULL, 404, "no-such-group");
    buf_free(&body);
    patterns_close(&patterns);
}

/* The seed's second example: recommendations meet a login. */
TEST(group_of_kinds)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(
        &patterns, "PUT /v1/groups/mails",
        "{\"complete\":{\"kinds\":[\"recommendation\",\"login\"]},\"late\":\"append\",\"then\":\"mail\"}",
        200,
        "{\"name\":\"mails\",\"complete\":{\"kinds\":[\"recommendation\",\"login\"]},\"late\":\"append\","
        "\"then\":\"mail\"}");
    for (int i = 0; i < 3; i++)
        check_member(&patterns, "POST /v1/groups/mails/u1", "{\"kind\":\"recommendation\",\"data\":\"#1\"}",
                     "completed", "false");
    check_member(&patterns, "POST /v1/groups/mails/u1", "{\"kind\":\"login\"}", "completed", "true");
    CHECK_ASKS(&patterns, "POST /v1/groups/mails/u1", "{\"kind\":\"other\",\"data\":\"late\"}", 201,
               "{\"accepted\":true,\"generation\":1,\"count\":5,\"state\":\"COMPLETE\",\"completed\":false}");
    struct slice reply = asks(&patterns, "GET /v1/groups/mails/u1", NULL);
    CHECK(slice_contains(reply,
                         SLICE("\"data\":\"late\",\"time\":\"2054-11-15T04:13:25.340Z\",\"late\":true}")));
    patterns_close(&patterns);
}

TEST(group_by_a_condition)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/groups/sums",
               "{\"complete\":{\"when\":{\"expression\":\"#sum >= :least and size(#kinds) > :one\","
               "\"values\":{\":least\":10.5,\":one\":1}}},\"late\":\"new\"}",
               200,
               "{\"name\":\"sums\",\"complete\":{\"when\":{\"expression\":\"#sum >= :least and size(#kinds) "
               "> :one\",\"values\":{\":least\":10.5,\":one\":1}}},\"late\":\"new\"}");
    check_member(&patterns, "POST /v1/groups/sums/k", "{\"amount\":5,\"kind\":\"a\"}", "state", "\"OPEN\"");
    check_member(&patterns, "POST /v1/groups/sums/k", "{\"amount\":6,\"kind\":\"a\"}", "state", "\"OPEN\"");
    check_member(&patterns, "POST /v1/groups/sums/k", "{\"amount\":-1,\"kind\":\"b\"}", "state", "\"OPEN\"");
    check_member(&patterns, "POST /v1/groups/sums/k", "{\"amount\":0.5}", "completed", "true");
    check_member(&patterns, "GET /v1/groups/sums/k", NULL, "sum", "10.5");
    check_member(&patterns, "POST /v1/groups/sums/k", "{\"amount\":1,\"kind\":\"a\"}", "generation", "2");
    asks(&patterns, "PUT /v1/groups/plain",
         "{\"complete\":{\"when\":\"attribute_exists(#sum)\",\"size\":2}}");
    check_member(&patterns, "POST /v1/groups/plain/k", "{\"amount\":1}", "state", "\"OPEN\"");
    check_member(&patterns, "POST /v1/groups/plain/k", "{}", "completed", "true"); /* both must hold */
    patterns_close(&patterns);
}

/* As one would say it: names that are reserved words, and values where they belong. */
TEST(group_by_a_condition_in_plain_words)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(
        &patterns, "PUT /v1/groups/g",
        "{\"complete\":{\"when\":\"count >= 3 AND contains(kinds, 'it''s \\\"b') or sum between -1.5 and "
        "-1\"}}",
        200,
        "{\"name\":\"g\",\"complete\":{\"when\":{\"expression\":\"#count >= :v1 AND contains(#kinds, :v2) or "
        "#sum between :v3 and :v4\",\"values\":{\":v1\":3,\":v2\":\"it's "
        "\\\"b\",\":v3\":-1.5,\":v4\":-1}}},\"late\":\"discard\"}");
    check_member(&patterns, "POST /v1/groups/g/k", "{}", "completed", "false");
    check_member(&patterns, "POST /v1/groups/g/k", "{}", "completed", "false");
    check_member(&patterns, "POST /v1/groups/g/k", "{}", "completed", "false");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"kind\":\"it's \\\"b\"}", "completed", "true");
    check_member(&patterns, "POST /v1/groups/g/l", "{\"amount\":-1.25}", "completed", "true");
    static const char *const faults[] = {"count >= 007",
                                         "count >= 1.2.3",
                                         "count >= 1.",
                                         "count = 'open",
                                         "count >= 123456789012345678901234567890123456789",
                                         "count >=",
                                         "`the count` >= 3",
                                         "count >= [1,",
                                         "'a'"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char body[200];
        snprintf(body, sizeof body, "{\"complete\":{\"when\":\"%s\"}}", faults[i]);
        asks(&patterns, "PUT /v1/groups/other", body);
        if (patterns.call.status != 400) test_failed(__FILE__, __LINE__, "taken: %s", faults[i]);
    }
    CHECK_REFUSES(&patterns, "GET /v1/groups/other", NULL, 404, "no-such-group");
    patterns_close(&patterns);
}

/* What could never hold is refused, with the word that is to blame. */
TEST(group_conditions_have_known_words_and_fitting_types)
{
    static const struct {
        const char *when, *says;
    } faults[] = {
        {"\"cuont >= 3\"", "there is no \\\"cuont\\\" in a group"},
        {"\"count >= 3 and contains(kind, 'login')\"", "there is no \\\"kind\\\" in a group"},
        {"\"count >= 'three'\"", "count is a number, which it compares with"},
        {"\"'x' < sum\"", "sum is a number"},
        {"\"cuont between 1 and 3\"", "there is no \\\"cuont\\\" in a group"},
        {"\"count between 1 and 'x'\"", "count is a number, which it compares with"},
        {"\"count in (1, 'x')\"", "count is a number, which it compares with"},
        {"\"kinds = 'x' or sum in ('a')\"", "kinds is a set of texts, which it compares with"},
        {"\"size(kinds) > 1 or sum in ('a')\"", "sum is a number"},
        {"\"begins_with(count, '1')\"", "count is a number, which begins with nothing"},
        {"\"begins_with(kinds, 'a')\"", "kinds is a set of texts, which begins with nothing"},
        {"\"kinds = [\\\"a\\\"]\"", "kinds is a set of texts"},
        {"\"kinds < 'x'\"", "kinds is a set of texts"},
        {"\"size(count) > 1\"", "count is a number, which has no size"},
        {"\"count > kinds\"", "is a"},
        {"\"contains(events, 'x')\"", "events are objects"},
        {"\"events[0].kind = 3\"", "events[0].kind is a text, which it compares with 3"},
        {"\"events[0].kid = 'a'\"", "there is no \\\"kid\\\" in an event"},
        {"\"events.kind = 'a'\"", "events is a list, which has no members"},
        {"\"count[0] = 1\"", "count is a number, which has no places"},
        {"\"attribute_not_exists(count)\"", "count is in every group"},
        {"\"not (count > 1 and attribute_exists(opened))\"", "opened is in every group"},
        {"\"attribute_type(kinds, 'S')\"", "kinds is a set of texts, and no attribute of the type"},
        {"\"contains(kinds, 5)\"", "kinds are texts"},
        {"\"contains(count, 'x')\"", "count is a number, which contains nothing"},
        {"{\"expression\":\"kind > :n\",\"values\":{\":n\":1}}", "there is no \\\"kind\\\" in a group"},
        {"{\"expression\":\"#sum = :count\",\"values\":{\":count\":\"x\"}}", "sum is a number"},
    };
    struct patterns patterns;
    char body[200];
    patterns_open(&patterns);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        snprintf(body, sizeof body, "{\"complete\":{\"when\":%s}}", faults[i].when);
        CHECK_REFUSES(&patterns, "PUT /v1/groups/g", body, 400, "bad-rule");
        CHECK(slice_contains(asks(&patterns, "PUT /v1/groups/g", body), slice_of(faults[i].says)));
    }
    CHECK_REFUSES(&patterns, "GET /v1/groups/g", NULL, 404, "no-such-group");
    static const char fine[] = "{\"complete\":{\"when\":\"count between 1 and 3 and contains(kinds, 'a') or "
                               "sum in (1, 2) or (contains(kinds, 'b') and count > 4)\"}}";
    static const char parts[] =
        "{\"complete\":{\"when\":\"size(events[0].data) < count or events[1].data.x[2].y = true "
        "or not attribute_not_exists(count) or events[0].data = [\\\"x\\\"]\"}}";
    asks(&patterns, "PUT /v1/groups/fine", parts);
    CHECK_INT(patterns.call.status, 200);
    asks(&patterns, "PUT /v1/groups/fine", fine);
    CHECK_INT(patterns.call.status, 200);
    struct slice reply = asks(
        &patterns, "PUT /v1/groups/g",
        "{\"complete\":{\"when\":{\"expression\":\"#count >=\",\"values\":{\":n\":1}}}}");
    CHECK_INT(patterns.call.status, 400);
    CHECK(!slice_contains(reply, SLICE(")"))); /* none of ours */
    patterns_close(&patterns);
}

/* What GET answers can be put back as it is, and `then` is as it was sent. */
TEST(group_rules_can_be_put_back)
{
    static const char *const rules[] = {
        "{\"complete\":{\"when\":\"count >= 3 and contains(kinds, 'a')\",\"size\":2},\"quiet\":\"5m\","
        "\"then\":\"mail\"}",
        "{\"complete\":{\"kinds\":[\"a\"]},\"late\":\"new\",\"keep\":\"1h\",\"then\":{\"url\":\"http://x/y\"}}",
        "{\"deadline\":\"90s\",\"then\":[{\"call\":\"POST /v1/counters/x\",\"on\":\"COMPLETE\"},\"mail\"]}"};
    struct patterns patterns;
    patterns_open(&patterns);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char body[400];
        asks(&patterns, "PUT /v1/groups/g", rules[i]);
        struct slice told = asks(&patterns, "GET /v1/groups/g", NULL);
        snprintf(body, sizeof body, "%.*s", SLICE_ARG(told));
        CHECK(slice_contains(slice_of(rules[i]), member(&patterns, told, "then")));
        CHECK_ASKS(&patterns, "PUT /v1/groups/g", body, 200, body);
        CHECK_REFUSES(&patterns, "PUT /v1/groups/other", body, 400, "bad-request");
    }
    patterns_close(&patterns);
}

/* The first event knows until when the others may come. */
TEST(group_until_a_time)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":3},\"deadline\":\"1h\"}");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"deadline\":\"soon\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"deadline\":\"2126-11-15T04:14:00Z\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k", NULL, 404, "no-such-group");
    asks(&patterns, "POST /v1/groups/g/k", "{\"deadline\":\"2054-11-15T04:14:00Z\"}");
    asks(&patterns, "POST /v1/groups/g/k",
         "{\"deadline\":\"2054-11-15T05:00:00Z\"}"); /* it does not open it */
    asks(&patterns, "POST /v1/groups/g/usual", "{}");
    patterns.now_ms += 34659; /* 04:13:59.999 */
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "state", "\"OPEN\"");
    patterns.now_ms += 1;
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "why", "\"deadline\"");
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "count", "2");
    check_member(&patterns, "GET /v1/groups/g/usual", NULL, "state", "\"OPEN\"");
    asks(&patterns, "POST /v1/groups/g/past", "{\"deadline\":\"2054-11-15T04:00:00Z\"}");
    patterns.now_ms += 1;
    check_member(&patterns, "GET /v1/groups/g/past", NULL, "why", "\"deadline\"");
    patterns_close(&patterns);
}

TEST(group_with_generations)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":2},\"late\":\"new\"}");
    for (int i = 0; i < 6; i++) {
        char body[40], generation[16];
        snprintf(body, sizeof body, "{\"id\":\"e%d\"}", i);
        snprintf(generation, sizeof generation, "%d", i / 2 + 1);
        check_member(&patterns, "POST /v1/groups/g/k", body, "generation", generation);
    }
    CHECK_ASKS(&patterns, "POST /v1/groups/g/k", "{\"id\":\"e1\"}",
               200, /* in the first one, which it completed, and in no other */
               "{\"accepted\":false,\"duplicate\":true,\"generation\":1,\"count\":2,\"state\":\"COMPLETE\","
               "\"completed\":true}");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"e0\"}", "completed", "false");
    with_header(&patterns, "Idempotency-Key", "e7");
    check_member(&patterns, "POST /v1/groups/g/k", "{}", "generation", "4");
    with_header(&patterns, "Idempotency-Key", "e7");
    check_member(&patterns, "POST /v1/groups/g/k", "{}", "accepted", "false");
    CHECK_INT(event_count(&patterns, "GET /v1/groups/g/k?generation=2"), 2);
    CHECK_INT(event_count(&patterns, "GET /v1/groups/g/k"), 1);
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k?generation=5", NULL, 404, "no-such-group");
    CHECK_ASKS(&patterns, "DELETE /v1/groups/g/k", NULL, 200, "{\"deleted\":4}");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k", NULL, 404, "no-such-group");
    CHECK_ASKS(&patterns, "DELETE /v1/groups/g", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{}", 404, "no-such-group");
    patterns_close(&patterns);
}

TEST(group_that_is_quiet_or_over)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(
        &patterns, "PUT /v1/groups/g", "{\"quiet\":\"10s\",\"deadline\":\"25s\",\"late\":\"discard\"}", 200,
        "{\"name\":\"g\",\"complete\":{},\"quiet\":\"10s\",\"deadline\":\"25s\",\"late\":\"discard\"}");
    asks(&patterns, "POST /v1/groups/g/quiet", "{}");
    for (int i = 0; i < 3; i++) {
        asks(&patterns, "POST /v1/groups/g/busy", "{}");
        check_member(&patterns, "GET /v1/groups/g/busy", NULL, "state", "\"OPEN\"");
        patterns.now_ms += 9000;
    }
    check_member(&patterns, "GET /v1/groups/g/quiet", NULL, "why", "\"quiet\"");
    check_member(&patterns, "GET /v1/groups/g/busy", NULL, "why", "\"deadline\"");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/busy", "{}", 409, "closed-group");
    patterns_close(&patterns);
}

/* Events that do not fit the head have items of their own, and no write grows with the group. */
TEST(group_larger_than_an_item)
{
    struct patterns patterns;
    struct buf body = {0};
    double most = 0;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":60}}");
    for (int i = 0; i < 60; i++) {
        body.len = 0;
        buf_printf(&body, "{\"id\":\"event %02d\",\"data\":\"", i);
        for (int j = 0; j < (i < 3 ? 10 : 20 * 1024); j++) buf_byte(&body, 'x');
        buf_put(&body, "\"}", 3);
        struct slice reply = asks(&patterns, "POST /v1/groups/g/k?cost=1", body.data);
        CHECK_INT(patterns.call.status, 201);
        struct slice cost = raw_text(&patterns.arena,
                                     member(&patterns, member(&patterns, reply, "cost"), "writeUnits"));
        int64_t units = 0;
        CHECK(raw_int(cost, &units));
        if ((double)units > most) most = (double)units;
        if (i < 3) CHECK(units > 0 && units <= (i ? 1 : 2)); /* the first one also writes an index */
        check_member(&patterns, "POST /v1/groups/g/k", body.data, "duplicate", "true");
    }
    CHECK(most <= 2 * 21 + 2); /* the head with the event, its item, and the index, in which it moves */
    CHECK_INT(event_count(&patterns, "GET /v1/groups/g/k?limit=20"), 23);
    CHECK_TEXT(member(&patterns, asks(&patterns, "GET /v1/groups/g/k?limit=20", NULL), "next"),
               "\"event 22\"");
    CHECK_INT(event_count(&patterns, "GET /v1/groups/g/k?limit=50&after=event%2022"), 37);
    check_member(&patterns, "GET /v1/groups/g/k", NULL, "state", "\"COMPLETE\"");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"id\":\"one more\"}", 409, "closed-group");
    CHECK_ASKS(&patterns, "DELETE /v1/groups/g/k", NULL, 200, "{\"deleted\":1}");
    struct buf reply = {0};
    struct slice scan = arena_printf(&patterns.arena, "{\"TableName\":\"%sgroup-events\"}", patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("Scan"), scan, &reply), 200);
    CHECK(slice_contains(buf_view(&reply), SLICE("\"Count\":0")));
    buf_free(&reply);
    buf_free(&body);
    patterns_close(&patterns);
}

TEST(group_lists_what_is_open)
{
    struct patterns patterns;
    char request[120];
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/a%2fb", "{\"complete\":{\"size\":2}}");
    CHECK_ASKS(&patterns, "GET /v1/groups/a%2fb?state=open", NULL, 200, "{\"groups\":[]}");
    for (int i = 0; i < 10; i++) {
        snprintf(request, sizeof request, "POST /v1/groups/a%%2fb/k%d", i);
        asks(&patterns, request, "{}");
        patterns.now_ms += 1000;
    }
    asks(&patterns, "POST /v1/groups/a%2fb/k3", "{}");
    struct slice reply = asks(&patterns, "GET /v1/groups/a%2fb?state=open&limit=4", NULL);
    CHECK(slice_starts(
        reply, SLICE("{\"groups\":[{\"key\":\"k0\",\"generation\":1,\"opened\":\"2054-11-15T04:13:25.340Z\"},"
                     "{\"key\":\"k1\"")));
    CHECK(slice_contains(reply, SLICE("\"k4\"")) && !slice_contains(reply, SLICE("\"k3\"")));
    snprintf(request, sizeof request, "GET /v1/groups/a%%2fb?state=open&limit=9&after=%.*s",
             SLICE_ARG(raw_text(&patterns.arena, member(&patterns, reply, "next"))));
    reply = asks(&patterns, request, NULL);
    CHECK_INT(raw_count(&patterns.arena, member(&patterns, reply, "groups")), 5);
    CHECK(!member(&patterns, reply, "next").data);
    reply = asks(&patterns, "GET /v1/groups/a%2fb?state=open&older=7s", NULL); /* k0 is 10 seconds old */
    CHECK_INT(raw_count(&patterns.arena, member(&patterns, reply, "groups")), 3);
    patterns_close(&patterns);
}

/* Its slots were those of all names. */
TEST(group_of_an_older_version)
{
    struct patterns patterns;
    struct buf reply = {0};
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"quiet\":\"1h\"}");
    struct slice put = arena_printf(
        &patterns.arena,
        "{\"TableName\":\"%sgroups\",\"Item\":{\"group\":{\"S\":\"g/k\"},\"generation\":{\"N\":\"1\"},"
        "\"state\":{\"S\":\"OPEN\"},\"slot\":{\"S\":\"0\"},\"due\":{\"N\":\"1\"}}}",
        patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("PutItem"), put, &reply), 200);
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{}", 409, "older-layout");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/k", NULL, 409, "older-layout");
    buf_free(&reply);
    patterns_close(&patterns);
}

/* Two processes, each with a memory of its own, which grows old while the other one writes. */
TEST(group_of_two_processes)
{
    struct patterns patterns;
    patterns_open(&patterns);
    struct pattern *one = patterns.pattern;
    struct pattern *other = pattern_open(&(struct pattern_options){.dynamo = patterns.dynamo,
                                                                   .clock = &patterns.clock,
                                                                   .prefix = patterns.prefix,
                                                                   .skew_ms = -1,
                                                                   .seed = 2});
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":4}}");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"a\"}", "count", "1");
    patterns.pattern = other;
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"b\"}", "count", "2");
    check_member(&patterns, "POST /v1/groups/g/l", "{}", "count", "1");
    patterns.pattern = one;
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"b\"}", "accepted", "false");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"c\"}", "count", "3");
    patterns.pattern = other; /* which believes that two are there */
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"d\"}", "completed", "true");
    patterns.pattern = one;
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k", "{\"id\":\"e\"}", 409, "closed-group");
    CHECK_ASKS(&patterns, "DELETE /v1/groups/g/k", NULL, 200, "{\"deleted\":1}");
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":2}}");
    patterns.pattern = other; /* which knows other rules, and a group that is not there any more */
    check_member(&patterns, "POST /v1/groups/g/l", "{}", "completed", "true");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"a\"}", "count", "1");
    check_member(&patterns, "POST /v1/groups/g/k", "{\"id\":\"b\"}", "completed", "true");
    patterns.pattern = one;
    asks(&patterns, "DELETE /v1/groups/g", NULL);
    patterns.pattern = other;
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/m", "{}", 404, "no-such-group");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/m", NULL, 404, "no-such-group");
    pattern_close(other);
    patterns.pattern = one;
    patterns_close(&patterns);
}

/* By a caller: once, with what is there; later events are told. */
TEST(group_is_completed_by_a_call)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":5},\"late\":\"new\"}");
    asks(&patterns, "PUT /v1/groups/d", "{\"complete\":{\"size\":5}}");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k/complete", NULL, 404, "no-such-group");
    asks(&patterns, "POST /v1/groups/g/k", "{\"id\":\"a\"}");
    asks(&patterns, "POST /v1/groups/d/k", "{\"id\":\"a\"}");
    CHECK_ASKS(&patterns, "POST /v1/groups/d/k/complete", NULL, 200,
               "{\"generation\":1,\"count\":1,\"state\":\"COMPLETE\",\"completed\":true,\"why\":\"call\"}");
    CHECK_ASKS(&patterns, "POST /v1/groups/d/k/complete", "{\"generation\":1}", 200,
               "{\"generation\":1,\"count\":1,\"state\":\"COMPLETE\",\"completed\":false,\"why\":\"call\"}");
    CHECK_REFUSES(&patterns, "POST /v1/groups/d/k", "{\"id\":\"b\"}", 409, "closed-group");
    CHECK(slice_contains(buf_view(&patterns.reply), SLICE("\"why\":\"call\"")));
    CHECK(slice_contains(asks(&patterns, "POST /v1/groups/d/k", "{\"id\":\"a\"}"), SLICE("\"completed\":false")));
    CHECK_ASKS(&patterns, "GET /v1/groups/d?state=open", NULL, 200, "{\"groups\":[]}");
    /* the call that comes again means the same generation */
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "token");
        CHECK_ASKS(&patterns, "POST /v1/groups/g/k/complete", NULL, 200,
                   "{\"generation\":1,\"count\":1,\"state\":\"COMPLETE\",\"completed\":true,\"why\":\"call\"}");
        asks(&patterns, "POST /v1/groups/g/k", "{\"id\":\"b\"}");
        CHECK(slice_contains(buf_view(&patterns.reply), SLICE("\"generation\":2,\"count\":1,\"state\":\"OPEN\"")));
    }
    with_header(&patterns, "Idempotency-Key", "token");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k/complete", "{\"generation\":2}", 422, "key-reused");
    CHECK_REFUSES(&patterns, "POST /v1/groups/g/k/complete", "{\"generation\":9}", 404, "no-such-group");
    patterns_close(&patterns);
}
