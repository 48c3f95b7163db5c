/* Work by its words. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

static struct slice member(struct patterns *patterns, struct slice reply, const char *name)
{
    return raw_text(&patterns->arena, raw_member(&patterns->arena, reply, name));
}

static void check_state(struct patterns *patterns, const char *request, const char *body, const char *state)
{
    struct slice reply = asks(patterns, request, body);
    CHECK_INT(patterns->call.status, 200);
    if (!slice_equal(member(patterns, reply, "state"), slice_of(state)))
        test_failed(__FILE__, __LINE__, "%s: not %s: %.*s", request, state, SLICE_ARG(reply));
}

TEST(work_is_claimed_and_finished)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", NULL, 204, "");
    CHECK_ASKS(
        &patterns, "POST /v1/work/q/a", "{\"data\":{\"n\":1}}", 201,
        "{\"id\":\"a\",\"state\":\"READY\",\"attempts\":0,\"fence\":0,\"due\":\"2054-11-15T04:13:25.340Z\","
        "\"data\":{\"n\":1}}");
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", "{\"owner\":\"w1\",\"for\":\"10s\"}", 200,
               "{\"id\":\"a\",\"state\":\"CLAIMED\",\"attempts\":1,\"fence\":1,\"owner\":\"w1\","
               "\"until\":\"2054-11-15T04:13:35.340Z\",\"data\":{\"n\":1}}");
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", NULL, 204, "");
    patterns.now_ms += 5000;
    check_state(&patterns, "POST /v1/work/q/a/beat", "{\"fence\":1,\"progress\":{\"at\":7},\"step\":7}",
                "CLAIMED");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/beat", "{\"fence\":1,\"step\":6}", 409, "progress-behind");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/beat", "{\"fence\":2}", 409, "stale-fence");
    CHECK_REFUSES(&patterns, "DELETE /v1/work/q/a", NULL, 409, "claimed");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(&patterns, "POST /v1/work/q/a/finish",
                   i ? "{\"fence\":1,\"result\":43}" : "{\"fence\":1,\"result\":42}", 200,
                   "{\"id\":\"a\",\"state\":\"DONE\",\"attempts\":1,\"fence\":1,\"data\":{\"n\":1},"
                   "\"progress\":{\"at\":7},\"step\":7,\"result\":42,"
                   "\"finished\":\"2054-11-15T04:13:30.340Z\"}");
    check_state(&patterns, "POST /v1/work/q/a", "{\"data\":{\"n\":1}}",
                "DONE"); /* submitted again: its result */
    check_state(&patterns, "GET /v1/work/q/a", NULL, "DONE");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/fail", "{\"fence\":1}", 409, "not-claimed");
    CHECK_ASKS(&patterns, "DELETE /v1/work/q/a", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "DELETE /v1/work/q/a", NULL, 404, "no-such-work");
    CHECK_REFUSES(&patterns, "GET /v1/work/q/a", NULL, 404, "no-such-work");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/finish", "{\"fence\":1}", 404, "no-such-work");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/retry", NULL, 404, "no-such-work");
    CHECK(slice_contains(asks(&patterns, "GET /v1/work/q", NULL), SLICE("\"work\":[]")));
    patterns_close(&patterns);
}

/* Whoever worked at a unit that was deleted since does not finish the new one of its name. */
TEST(work_that_is_submitted_again_has_new_fences)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/work/q/a", "{\"data\":1}");
    asks(&patterns, "POST /v1/work/q/claim", "{\"for\":\"1s\"}");
    patterns.now_ms += 1001;
    CHECK_ASKS(&patterns, "DELETE /v1/work/q/a", NULL, 200, "{\"deleted\":true}");
    struct slice reply = asks(&patterns, "POST /v1/work/q/a", "{\"data\":2}");
    CHECK_INT(patterns.call.status, 201);
    CHECK_TEXT(member(&patterns, reply, "fence"), "1");
    reply = asks(&patterns, "POST /v1/work/q/claim", NULL);
    CHECK_TEXT(member(&patterns, reply, "fence"), "2");
    CHECK_TEXT(member(&patterns, reply, "attempts"), "1");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/finish", "{\"fence\":1}", 409, "stale-fence");
    check_state(&patterns, "POST /v1/work/q/a/finish", "{\"fence\":2}", "DONE");
    patterns_close(&patterns);
}

TEST(work_settings_can_be_put_back)
{
    static const char settings[] = "{\"lease\":\"10s\",\"attempts\":2,\"backoff\":\"1s\",\"keep\":\"7d\","
                                   "\"then\":{\"url\":\"http://x/y\"}}";
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/work/q", settings, 200, settings);
    CHECK_ASKS(&patterns, "PUT /v1/work/q", settings, 200, settings);
    patterns_close(&patterns);
}

TEST(work_is_claimed_again_when_its_lease_is_over)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "PUT /v1/work/q", "{\"lease\":\"10s\",\"attempts\":2,\"then\":\"tell\"}", 200,
               "{\"lease\":\"10s\",\"attempts\":2,\"backoff\":\"1s\",\"keep\":\"7d\",\"then\":\"tell\"}");
    asks(&patterns, "POST /v1/work/q/a", "{\"data\":1}");
    asks(&patterns, "POST /v1/work/q/claim", NULL);
    check_state(&patterns, "POST /v1/work/q/a/beat", "{\"fence\":1,\"progress\":5}", "CLAIMED");
    patterns.now_ms += 10000;
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", NULL, 204, ""); /* until that moment, and in it */
    patterns.now_ms += 1;
    struct slice reply = asks(&patterns, "POST /v1/work/q/claim", NULL);
    CHECK_TEXT(member(&patterns, reply, "fence"), "2");
    CHECK_TEXT(member(&patterns, reply, "progress"), "5");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/finish", "{\"fence\":1}", 409, "stale-fence");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/beat", "{\"fence\":2,\"progress\":4}", 409,
                  "progress-behind");
    patterns.now_ms += 10001; /* the second lease, too: that was the last attempt */
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", NULL, 204, "");
    reply = asks(&patterns, "GET /v1/work/q?state=dead", NULL);
    CHECK(slice_contains(reply, SLICE("\"error\":\"its last lease ended without a word\"")));
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/finish", "{\"fence\":2}", 409, "not-claimed");
    check_state(&patterns, "POST /v1/work/q/a/retry", NULL, "READY");
    check_state(&patterns, "POST /v1/work/q/a/retry", NULL, "READY");
    CHECK_ASKS(&patterns, "GET /v1/work/q?state=dead", NULL, 200, "{\"work\":[]}");
    reply = asks(&patterns, "POST /v1/work/q/claim", NULL);
    CHECK_TEXT(member(&patterns, reply, "fence"), "3");
    CHECK_REFUSES(&patterns, "POST /v1/work/q/a/retry", NULL, 409, "not-dead");
    patterns_close(&patterns);
}

TEST(work_that_fails_is_tried_later_and_then_given_up)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/work/q", "{\"attempts\":2,\"backoff\":\"10s\"}");
    asks(&patterns, "POST /v1/work/q/a", "{}");
    asks(&patterns, "POST /v1/work/q/claim", NULL);
    for (int i = 0; i < 2; i++)
        check_state(&patterns, "POST /v1/work/q/a/fail", "{\"fence\":1,\"reason\":\"no luck\"}", "READY");
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", NULL, 204, "");
    patterns.now_ms += 10000;
    check_state(&patterns, "POST /v1/work/q/claim", NULL, "CLAIMED");
    for (int i = 0; i < 2; i++)
        check_state(&patterns, "POST /v1/work/q/a/fail", "{\"fence\":2,\"reason\":\"again\"}", "DEAD");
    asks(&patterns, "POST /v1/work/q/b", "{}");
    asks(&patterns, "POST /v1/work/q/claim", NULL);
    check_state(&patterns, "POST /v1/work/q/b/fail", "{\"fence\":1,\"retry\":false}", "DEAD");
    asks(&patterns, "POST /v1/work/q/c", "{}");
    asks(&patterns, "POST /v1/work/q/claim", NULL);
    check_state(&patterns, "POST /v1/work/q/c/fail", "{\"fence\":1,\"after\":\"1m\"}", "READY");
    CHECK(slice_contains(asks(&patterns, "GET /v1/work/q/c", NULL),
                         SLICE("\"due\":\"2054-11-15T04:14:35.340Z\"")));
    CHECK_REFUSES(&patterns, "POST /v1/work/q/none/fail", "{\"fence\":1}", 404, "no-such-work");
    patterns_close(&patterns);
}

/* The settings, the slot that it was submitted to, the claim. */
TEST(work_is_claimed_where_it_was_submitted)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/work/q/claim", NULL); /* makes the tables */
    for (char id = 'a'; id < 'i'; id++) {
        char request[] = "POST /v1/work/q/?";
        request[strlen(request) - 1] = id;
        asks(&patterns, request, "{}");
        CHECK(slice_contains(asks(&patterns, "POST /v1/work/q/claim?cost", NULL), SLICE("\"calls\":3,")));
    }
    patterns_close(&patterns);
}

TEST(work_is_listed)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (char id = 'a'; id < 'f'; id++) {
        char request[] = "POST /v1/work/q/?";
        request[strlen(request) - 1] = id;
        asks(&patterns, request, id == 'e' ? "{\"delay\":\"1h\"}" : "{}");
    }
    for (int i = 0; i < 4; i++) check_state(&patterns, "POST /v1/work/q/claim", NULL, "CLAIMED");
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", NULL, 204, "");
    asks(&patterns, "POST /v1/work/q/a/finish", "{\"fence\":1}");
    asks(&patterns, "POST /v1/work/q/b/fail", "{\"fence\":1,\"retry\":false}");
    CHECK_INT(raw_count(&patterns.arena,
                        raw_member(&patterns.arena, asks(&patterns, "GET /v1/work/q", NULL), "work")),
              5);
    CHECK_INT(
        raw_count(&patterns.arena,
                  raw_member(&patterns.arena, asks(&patterns, "GET /v1/work/q?state=claimed", NULL), "work")),
        2);
    CHECK_INT(
        raw_count(&patterns.arena,
                  raw_member(&patterns.arena, asks(&patterns, "GET /v1/work/q?state=dead", NULL), "work")),
        1);
    CHECK_TEXT(member(&patterns, asks(&patterns, "GET /v1/work/q?limit=2", NULL), "next"), "b");
    CHECK_TEXT(member(&patterns, asks(&patterns, "GET /v1/work/q?limit=2&after=b", NULL), "next"), "d");
    CHECK_REFUSES(&patterns, "GET /v1/work/q?state=lost", NULL, 400, "bad-request");
    patterns_close(&patterns);
}
