/* Many events or units by one call: what becomes of each is told as if they had come one by one, and the same call
 * again adds nothing. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define X50   "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LARGE X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50 X50

/* The reply's cost, or nothing where another database counts. */
static void check_cost(struct patterns *patterns, const char *cost)
{
    if (!getenv("PATTERNS_ON") && !slice_contains(buf_view(&patterns->reply), slice_of(cost)))
        test_failed(__FILE__, __LINE__, "%s: %.*s", cost, SLICE_ARG(buf_view(&patterns->reply)));
}

static void check_says(struct patterns *patterns, const char *request, const char *body, int status,
                       const char *part)
{
    struct slice reply = asks(patterns, request, body);
    if (patterns->call.status != status || !slice_contains(reply, slice_of(part)))
        test_failed(__FILE__, __LINE__, "%s: %d %.*s instead of %s", request, patterns->call.status,
                    SLICE_ARG(reply), part);
}

TEST(batch_of_a_period)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\"}");
    check_says(
        &patterns, "POST /v1/periods/p",
        "{\"events\":[{\"id\":\"a\",\"data\":1},{\"id\":\"b\",\"data\":{\"x\":2}},{\"id\":\"a\",\"data\":1},"
        "{\"id\":\"b\",\"data\":3}]}",
        201,
        "{\"events\":[{\"bucket\":\"2054-11-15T04:00:00.000Z\",\"id\":\"a\"},"
        "{\"bucket\":\"2054-11-15T04:00:00.000Z\",\"id\":\"b\"},"
        "{\"bucket\":\"2054-11-15T04:00:00.000Z\",\"id\":\"a\"},{\"error\":\"key-reused\",");
    /* again, and one by one */
    check_says(&patterns, "POST /v1/periods/p",
               "{\"events\":[{\"id\":\"b\",\"data\":{\"x\":2}},{\"id\":\"a\",\"data\":1}]}", 200,
               "{\"events\":[{\"bucket\":\"2054-11-15T04:00:00.000Z\",\"id\":\"b\"},");
    check_says(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":1}", 200, "\"id\":\"a\"");
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":2}", 422, "key-reused");
    CHECK_INT(
        (int)raw_count(&patterns.arena,
                       raw_member(&patterns.arena, asks(&patterns, "GET /v1/periods/p/now", NULL), "events")),
        2);
    /* those without ids are one page; by the key of the call they can be repeated */
    asks(&patterns, "POST /v1/periods/p?cost", "{\"events\":[{\"data\":1},{\"data\":2},{\"data\":3},{},{}]}");
    check_cost(&patterns, "\"cost\":{\"writeUnits\":1,");
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "key");
        check_says(&patterns, "POST /v1/periods/p", "{\"events\":[{\"data\":1},{\"id\":\"z\",\"data\":2}]}",
                   i ? 200 : 201, "\"id\":\"key#0\"");
    }
    /* each goes to the bucket of its time */
    check_says(
        &patterns, "POST /v1/periods/p",
        "{\"events\":[{\"id\":\"n\"},{\"id\":\"o\",\"time\":\"2054-11-15T03:59:00Z\"},{\"id\":\"q\"}]}", 201,
        "{\"bucket\":\"2054-11-15T03:00:00.000Z\",\"id\":\"o\"}");
    CHECK_INT(
        (int)raw_count(&patterns.arena,
                       raw_member(&patterns.arena, asks(&patterns, "GET /v1/periods/p/now", NULL), "events")),
        11);
    /* all or nothing is understood */
    check_says(&patterns, "POST /v1/periods/p", "{\"events\":[{\"id\":\"x\"},{\"id\":\"\"}]}", 400,
               "events[1]: id must");
    check_says(&patterns, "POST /v1/periods/p", "{\"events\":[{\"id\":\"x\"},3]}", 400,
               "events[1]: It must be an object");
    check_says(&patterns, "POST /v1/periods/p", "{\"events\":[{\"name\":\"x\"}]}", 400,
               "events[0]: It has a member");
    check_says(&patterns, "POST /v1/periods/p", "{\"events\":[{\"events\":[]}]}", 400,
               "events[0]: It has a member");
    check_says(&patterns, "POST /v1/periods/p", "{\"events\":[{\"time\":\"soon\"}]}", 400,
               "events[0]: time must");
    check_says(&patterns, "POST /v1/periods/p", "{\"events\":[]}", 400, "events must be 1 to 1000");
    check_says(&patterns, "POST /v1/periods/p", "{\"events\":[{}],\"data\":1}", 400, "events exclude");
    CHECK_INT(
        (int)raw_count(&patterns.arena,
                       raw_member(&patterns.arena, asks(&patterns, "GET /v1/periods/p/now", NULL), "events")),
        11);
    patterns_close(&patterns);
}

TEST(batch_of_work)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(
            &patterns, "POST /v1/work/q",
            "{\"units\":[{\"id\":\"a\",\"data\":1},{\"id\":\"b\",\"delay\":\"1h\",\"data\":{}}]}",
            i ? 200 : 201,
            "{\"units\":[{\"id\":\"a\",\"state\":\"READY\",\"attempts\":0,\"fence\":0,"
            "\"due\":\"2054-11-15T04:13:25.340Z\",\"data\":1},{\"id\":\"b\",\"state\":\"READY\",\"attempts\":0,"
            "\"fence\":0,\"due\":\"2054-11-15T05:13:25.340Z\",\"data\":{}}]}");
    check_says(&patterns, "POST /v1/work/q/claim", "{\"owner\":\"me\"}", 200, "\"id\":\"a\"");
    check_says(&patterns, "POST /v1/work/q", "{\"units\":[{\"id\":\"c\"},{\"id\":\"a\"}]}", 201,
               "{\"id\":\"a\",\"state\":\"CLAIMED\",");
    check_says(&patterns, "POST /v1/work/q", "{\"units\":[{\"id\":\"d\"},{\"data\":1}]}", 400,
               "units[1]: id is missing");
    check_says(&patterns, "POST /v1/work/q", "{}", 400, "units is missing");
    CHECK_REFUSES(&patterns, "GET /v1/work/q/d", NULL, 404, "no-such-work");
    patterns_close(&patterns);
}

#define TOLD(accepted, generation, count, state, completed)                                                  \
    "{\"accepted\":" accepted ",\"generation\":" generation ",\"count\":" count ",\"state\":\"" state        \
    "\",\"completed\":" completed "}"
#define AGAIN(count, state, completed)                                                                       \
    "{\"accepted\":false,\"duplicate\":true,\"generation\":1,\"count\":" count ",\"state\":\"" state         \
    "\",\"completed\":" completed "}"

TEST(batch_of_groups)
{
    struct patterns patterns;
    static const char *const batch = "{\"events\":[{\"key\":\"k\",\"id\":\"a\"},{\"key\":\"l\",\"id\":\"a\"},"
                                     "{\"key\":\"k\",\"id\":\"b\"},{\"key\":\"k\",\"id\":\"b\"},"
                                     "{\"key\":\"k\",\"id\":\"c\"},{\"key\":\"k\",\"id\":\"d\"}]}";
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":3}}");
    CHECK_REFUSES(&patterns, "POST /v1/groups/none", "{}", 400, "bad-request");
    check_says(&patterns, "POST /v1/groups/none", "{\"events\":[{\"key\":\"k\"}]}", 200,
               "{\"events\":[{\"error\":\"no-such-group\",");
    check_says(
        &patterns, "POST /v1/groups/g", batch, 201,
        "{\"events\":[" TOLD("true", "1", "1", "OPEN", "false") "," TOLD(
            "true", "1", "1", "OPEN",
            "false") "," TOLD("true", "1", "2", "OPEN",
                              "false") "," AGAIN("2", "OPEN",
                                                 "false") "," TOLD("true", "1", "3", "COMPLETE",
                                                                   "true") ",{\"error\":\"closed-group\",");
    check_says(
        &patterns, "POST /v1/groups/g", batch, 200,
        "{\"events\":[" AGAIN("3", "COMPLETE", "false") "," AGAIN("1", "OPEN", "false") "," AGAIN(
            "3", "COMPLETE", "false") "," AGAIN("3", "COMPLETE",
                                                "false") "," AGAIN("3", "COMPLETE",
                                                                   "true") ",{\"error\":\"closed-group\",");
    /* what goes together is one write */
    asks(&patterns, "PUT /v1/groups/many", "{\"complete\":{\"size\":50,\"kinds\":[\"x\",\"y\"]}}");
    asks(&patterns, "POST /v1/groups/many/k", "{}");
    asks(
        &patterns, "POST /v1/groups/many?cost",
        "{\"events\":[{\"key\":\"k\",\"id\":\"1\",\"kind\":\"x\",\"amount\":0.1},"
        "{\"key\":\"k\",\"id\":\"2\",\"kind\":\"y\",\"amount\":0.2},{\"key\":\"k\",\"id\":\"3\",\"kind\":\"x\"}]}");
    check_cost(&patterns, "\"cost\":{\"writeUnits\":1,\"readUnits\":0,");
    check_says(&patterns, "GET /v1/groups/many/k", NULL, 200,
               "\"count\":4,\"kinds\":[\"x\",\"y\"],\"sum\":0.3,");
    /* what does not fit the head goes one by one; the key of the call makes ids */
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "key");
        check_says(&patterns, "POST /v1/groups/many",
                   "{\"events\":[{\"key\":\"z\",\"data\":1},{\"key\":\"z\",\"data\":\"" LARGE "\"},"
                   "{\"key\":\"z\",\"data\":2},{\"key\":\"z\",\"data\":\"" LARGE "\"}]}",
                   i ? 200 : 201, "\"count\":4,");
    }
    check_says(&patterns, "GET /v1/groups/many/z", NULL, 200, "\"count\":4,");
    CHECK_INT(
        (int)raw_count(&patterns.arena, raw_member(&patterns.arena, buf_view(&patterns.reply), "events")), 4);
    /* nothing of what is not understood */
    check_says(&patterns, "POST /v1/groups/g", "{\"events\":[{\"key\":\"new\"},{\"id\":\"x\"}]}", 400,
               "events[1]: key is missing");
    check_says(&patterns, "POST /v1/groups/g",
               "{\"events\":[{\"key\":\"new\"},{\"key\":\"x\",\"amount\":\"1\"}]}", 400,
               "events[1]: amount must be a number");
    CHECK_REFUSES(&patterns, "GET /v1/groups/g/new", NULL, 404, "no-such-group");
    patterns_close(&patterns);
}

TEST(batch_of_groups_that_fold)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g",
         "{\"complete\":{\"when\":\"paid >= 10\"},\"fold\":{\"paid\":{\"sum\":\"a\"}}}");
    check_says(&patterns, "POST /v1/groups/g",
               "{\"events\":[{\"key\":\"k\",\"data\":{\"a\":4}},{\"key\":\"k\",\"data\":{\"a\":\"x\"}},"
               "{\"key\":\"k\",\"data\":{\"a\":6}},{\"key\":\"k\",\"data\":{\"a\":1}}]}",
               201, "\"fold\":{\"paid\":4}},{\"error\":\"bad-event\",");
    check_says(&patterns, "GET /v1/groups/g/k", NULL, 200,
               "\"state\":\"COMPLETE\",\"count\":2,\"fold\":{\"paid\":10}");
    asks(&patterns, "PUT /v1/groups/h",
         "{\"complete\":{\"size\":3},\"late\":\"new\",\"fold\":{\"n\":{\"max\":\"*\"}}}");
    check_says(
        &patterns, "POST /v1/groups/h",
        "{\"events\":[{\"key\":\"k\",\"data\":4},{\"key\":\"k\",\"data\":9},{\"key\":\"k\",\"data\":6},"
        "{\"key\":\"k\",\"data\":1}]}",
        201, "\"generation\":2,\"count\":1,\"state\":\"OPEN\",\"completed\":false,\"fold\":{\"n\":1}}]}");
    check_says(&patterns, "GET /v1/groups/h/k?generation=1", NULL, 200, "\"fold\":{\"n\":9}");
    asks(&patterns, "PUT /v1/groups/i", "{\"complete\":{\"size\":9},\"fold\":{\"n\":{\"max\":\"*\"}}}");
    check_says(
        &patterns, "POST /v1/groups/i",
        "{\"events\":[{\"key\":\"k\",\"data\":4},{\"key\":\"k\",\"data\":3},{\"key\":\"k\",\"data\":[]},"
        "{\"key\":\"k\",\"data\":6}]}",
        201,
        "\"count\":2,\"state\":\"OPEN\",\"completed\":false,\"fold\":{\"n\":4}},{\"error\":\"bad-event\",");
    check_says(&patterns, "GET /v1/groups/i/k", NULL, 200, "\"count\":3,\"fold\":{\"n\":6}");
    patterns_close(&patterns);
}
