/* Limits by their words. */
#include "unit/pattern_fixture.h"

TEST(limit_gives_a_burst_then_the_rate)
{
    struct patterns patterns;
    const char *take = "{\"rate\":2,\"per\":\"1s\",\"burst\":3}";
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/limits/x", NULL, 404, "no-such-limit");
    CHECK_ASKS(&patterns, "POST /v1/limits/x", take, 200, "{\"given\":1,\"left\":2,\"waited\":0}");
    CHECK_ASKS(&patterns, "POST /v1/limits/x", take, 200, "{\"given\":1,\"left\":1,\"waited\":0}");
    CHECK_ASKS(&patterns, "POST /v1/limits/x", take, 200, "{\"given\":1,\"left\":0,\"waited\":0}");
    CHECK_ASKS(&patterns, "POST /v1/limits/x", take, 429,
               "{\"error\":\"limited\",\"message\":\"The limit is reached; ask again in 500 ms.\",\"left\":0,"
               "\"retryAfter\":500}");
    CHECK_ASKS(&patterns, "GET /v1/limits/x", NULL, 200,
               "{\"name\":\"x\",\"rate\":2,\"per\":\"1s\",\"burst\":3,\"left\":0,"
               "\"full\":\"2054-11-15T04:13:26.840Z\"}");
    patterns.now_ms += 499;
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", take, 429, "limited");
    patterns.now_ms += 1;
    CHECK_ASKS(&patterns, "POST /v1/limits/x", take, 200, "{\"given\":1,\"left\":0,\"waited\":0}");
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", take, 429, "limited");
    patterns.now_ms += 3600000; /* no more than a burst, however long it has rested */
    CHECK_ASKS(&patterns, "POST /v1/limits/x", "{\"rate\":2,\"burst\":3,\"count\":3}", 200,
               "{\"given\":3,\"left\":0,\"waited\":0}");
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", take, 429, "limited");
    CHECK_ASKS(&patterns, "DELETE /v1/limits/x", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "DELETE /v1/limits/x", NULL, 404, "no-such-limit");
    CHECK_ASKS(&patterns, "POST /v1/limits/x", take, 200, "{\"given\":1,\"left\":2,\"waited\":0}");
    patterns_close(&patterns);
}

static bool is_given(struct patterns *patterns)
{
    return slice_contains(asks(patterns, "POST /v1/limits/x", "{\"rate\":7,\"per\":\"1s\"}"), SLICE("given"));
}

TEST(limit_of_odd_shares_gives_no_more)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (int i = 0; i < 7; i++) CHECK(is_given(&patterns));
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", "{\"rate\":7,\"per\":\"1s\"}", 429, "limited");
    patterns.now_ms += 1000;
    int given = 0;
    while (is_given(&patterns)) given++;
    CHECK_INT(given, 6); /* shares are rounded up to a nanosecond, so the seventh comes a little later */
    patterns.now_ms += 1;
    CHECK(is_given(&patterns));
    patterns_close(&patterns);
}

/* Who waits has its share, so others come behind it. */
TEST(limit_is_waited_for)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/limits/x", "{\"rate\":10,\"per\":\"1s\",\"burst\":1}");
    CHECK_ASKS(&patterns, "POST /v1/limits/x", "{\"rate\":10,\"burst\":1,\"wait\":\"1s\"}", 200,
               "{\"given\":1,\"left\":0,\"waited\":100}");
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", "{\"rate\":10,\"burst\":1,\"wait\":\"99ms\"}", 429,
                  "limited");
    patterns_close(&patterns);
}

TEST(limit_refuses_what_makes_no_sense)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", "{}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", "{\"rate\":0}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", "{\"rate\":5,\"count\":6}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/limits/x", "{\"rate\":5,\"per\":\"0s\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/limits/x",
                  "{\"rate\":1,\"per\":\"31d\",\"burst\":1000000000,\"count\":1000000000}", 429,
                  "limited"); /* it does not end within the numbers that there are */
    patterns_close(&patterns);
}
