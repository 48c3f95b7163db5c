/* Things that are done once, by their words. */
#include "unit/pattern_fixture.h"

TEST(once_is_begun_finished_and_told)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/once/charge/o-1", NULL, 404, "not-begun");
    CHECK_REFUSES(&patterns, "POST /v1/once/charge/o-1/finish", "{\"fence\":1}", 404, "not-begun");
    CHECK_ASKS(&patterns, "POST /v1/once/charge/o-1", "{\"owner\":\"a\",\"for\":\"10s\"}", 201,
               "{\"state\":\"BEGUN\",\"fence\":1,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    CHECK_ASKS(
        &patterns, "POST /v1/once/charge/o-1", "{\"owner\":\"b\"}", 409,
        "{\"error\":\"running\",\"message\":\"Another caller is at it.\",\"state\":\"RUNNING\",\"fence\":1,"
        "\"owner\":\"a\",\"until\":\"2054-11-15T04:13:35.340Z\"}");
    patterns.now_ms += 1000;
    CHECK_ASKS(&patterns, "POST /v1/once/charge/o-1", "{\"owner\":\"a\",\"for\":\"10s\"}", 201,
               "{\"state\":\"BEGUN\",\"fence\":1,\"until\":\"2054-11-15T04:13:36.340Z\"}");
    CHECK_ASKS(&patterns, "PUT /v1/once/charge/o-1", "{\"fence\":1,\"for\":\"1m\"}", 200,
               "{\"fence\":1,\"until\":\"2054-11-15T04:14:26.340Z\"}");
    CHECK_REFUSES(&patterns, "POST /v1/once/charge/o-1/finish", "{\"fence\":2}", 409, "stale-fence");
    for (int i = 0; i < 2; i++) /* whose reply was lost */
        CHECK_ASKS(&patterns, "POST /v1/once/charge/o-1/finish", "{\"fence\":1,\"result\":{\"paid\":12}}",
                   200,
                   "{\"state\":\"DONE\",\"fence\":1,\"ended\":\"2054-11-15T04:13:26.340Z\",\"result\":"
                   "{\"paid\":12}}");
    CHECK_REFUSES(&patterns, "POST /v1/once/charge/o-1/fail", "{\"fence\":1}", 409, "ended");
    CHECK_ASKS(&patterns, "POST /v1/once/charge/o-1", "{}", 200,
               "{\"state\":\"DONE\",\"fence\":1,\"ended\":\"2054-11-15T04:13:26.340Z\",\"result\":"
               "{\"paid\":12}}");
    CHECK_ASKS(&patterns, "GET /v1/once/charge/o-1", NULL, 200,
               "{\"name\":\"charge\",\"key\":\"o-1\",\"state\":\"DONE\",\"fence\":1,"
               "\"ended\":\"2054-11-15T04:13:26.340Z\",\"result\":{\"paid\":12}}");
    patterns.now_ms += 24 * 3600 * 1000;
    CHECK_REFUSES(&patterns, "GET /v1/once/charge/o-1", NULL, 404, "not-begun");
    CHECK_ASKS(&patterns, "POST /v1/once/charge/o-1", "{\"for\":\"10s\"}", 201,
               "{\"state\":\"BEGUN\",\"fence\":2,\"until\":\"2054-11-16T04:13:36.340Z\"}");
    patterns_close(&patterns);
}

TEST(once_goes_to_the_next_when_it_failed_or_was_left)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\"}");
    CHECK_ASKS(&patterns, "POST /v1/once/n/k/fail", "{\"fence\":1,\"error\":\"declined\"}", 200,
               "{\"state\":\"FAILED\",\"fence\":1,\"ended\":\"2054-11-15T04:13:25.340Z\",\"failures\":1,"
               "\"error\":\"declined\"}");
    CHECK_ASKS(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\"}", 201,
               "{\"state\":\"BEGUN\",\"fence\":2,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    patterns.now_ms += 10001;
    CHECK_ASKS(&patterns, "GET /v1/once/n/k", NULL, 200,
               "{\"name\":\"n\",\"key\":\"k\",\"state\":\"LOST\",\"fence\":2}");
    CHECK_ASKS(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\"}", 201,
               "{\"state\":\"BEGUN\",\"fence\":3,\"until\":\"2054-11-15T04:13:45.341Z\"}");
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k/finish", "{\"fence\":2,\"result\":1}", 409, "stale-fence");
    CHECK_ASKS(&patterns, "POST /v1/once/n/k/finish", "{\"fence\":3}", 200,
               "{\"state\":\"DONE\",\"fence\":3,\"ended\":\"2054-11-15T04:13:35.341Z\",\"result\":null}");
    patterns_close(&patterns);
}

TEST(once_ends_late_where_nobody_has_taken_it_over)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\"}");
    patterns.now_ms += 60000;
    CHECK_ASKS(&patterns, "POST /v1/once/n/k/finish", "{\"fence\":1,\"result\":7}", 200,
               "{\"state\":\"DONE\",\"fence\":1,\"ended\":\"2054-11-15T04:14:25.340Z\",\"result\":7}");
    patterns_close(&patterns);
}

TEST(once_refuses_another_input)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\",\"input\":{\"sum\":12}}");
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k", "{\"input\":{\"sum\":13}}", 422, "other-input");
    patterns.now_ms += 10001; /* also where the first caller is gone */
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k", "{\"input\":{\"sum\":13}}", 422, "other-input");
    CHECK_ASKS(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\",\"input\":{\"sum\":12}}", 201,
               "{\"state\":\"BEGUN\",\"fence\":2,\"until\":\"2054-11-15T04:13:45.341Z\"}");
    asks(&patterns, "POST /v1/once/n/k/finish", "{\"fence\":2,\"result\":true}");
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k", "{\"input\":{\"sum\":13}}", 422, "other-input");
    patterns_close(&patterns);
}

/* The next one begins with a larger fence, so who was at it ends nothing of it. */
TEST(once_is_forgotten)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "DELETE /v1/once/n/k", NULL, 404, "not-begun");
    asks(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\"}");
    CHECK_ASKS(&patterns, "DELETE /v1/once/n/k", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "DELETE /v1/once/n/k", NULL, 404, "not-begun");
    CHECK_REFUSES(&patterns, "GET /v1/once/n/k", NULL, 404, "not-begun");
    CHECK_ASKS(&patterns, "POST /v1/once/n/k", "{\"for\":\"10s\"}", 201,
               "{\"state\":\"BEGUN\",\"fence\":2,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k/finish", "{\"fence\":1,\"result\":1}", 409, "stale-fence");
    patterns_close(&patterns);
}

TEST(once_refuses_what_makes_no_sense)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k", "{\"for\":\"0s\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k", "{\"keep\":\"10ms\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k", "{\"wait\":\"2m\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/once/n/k/finish", "{\"result\":1}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/once/n/k", "{\"fence\":0}", 400, "bad-request");
    patterns_close(&patterns);
}
