/* What is driven, as patterns tell it; what claims and reads have for it. */
#include "unit/pattern_fixture.h"

TEST(work_that_is_driven_tells_its_settings)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "PUT /v1/work/q", "{\"concurrency\":3,\"attempts\":2}", 400, "not-driven");
    CHECK(slice_contains(asks(&patterns, "PUT /v1/work/q", "{}"),
                         SLICE("\"attempts\":5"))); /* nothing has changed */
    CHECK(slice_contains(asks(&patterns, "PUT /v1/work/q", "{\"each\":\"f\"}"),
                         SLICE("\"each\":\"f\",\"concurrency\":10,\"paused\":false}")));
    CHECK(slice_contains(asks(&patterns, "PUT /v1/work/q", "{\"timeout\":\"5s\",\"paused\":true}"),
                         SLICE("\"each\":\"f\",\"concurrency\":10,\"timeout\":\"5s\",\"paused\":true}")));
    CHECK(slice_contains(asks(&patterns, "GET /v1/drives", NULL),
                         SLICE("{\"id\":\"work:q\",\"kind\":\"work\"")));
    CHECK_REFUSES(&patterns, "PUT /v1/work/q", "{\"each\":[\"f\",\"g\"]}", 400, "bad-request");
    CHECK(!slice_contains(asks(&patterns, "PUT /v1/work/q", "{\"each\":[]}"), SLICE("each")));
    CHECK(slice_contains(asks(&patterns, "GET /v1/drives", NULL), SLICE("{\"drives\":[],")));
    patterns_close(&patterns);
}

TEST(work_that_failed_often_enough_keeps_its_reason_when_fewer_attempts_are_allowed)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/work/q", "{\"backoff\":1}");
    asks(&patterns, "POST /v1/work/q/a", "{}");
    asks(&patterns, "POST /v1/work/q/claim", NULL);
    asks(&patterns, "POST /v1/work/q/a/fail", "{\"fence\":1,\"reason\":\"no ink\"}");
    asks(&patterns, "PUT /v1/work/q", "{\"attempts\":1}");
    patterns.now_ms += 1000;
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", NULL, 204, "");
    CHECK(slice_contains(asks(&patterns, "GET /v1/work/q/a", NULL), SLICE("\"error\":\"no ink\"")));
    patterns_close(&patterns);
}

TEST(log_reads_of_one_partition)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/logs/l", "{\"partitions\":2}");
    for (int i = 0; i < 8; i++) {
        char body[60];
        snprintf(body, sizeof body, "{\"key\":\"k%d\"}", i);
        asks(&patterns, "POST /v1/logs/l", body);
    }
    for (int i = 1; i >= 0; i--) {
        char body[60], part[30];
        snprintf(body, sizeof body, "{\"owner\":\"o%d\",\"partition\":\"%d\"}", i, i);
        snprintf(part, sizeof part, "{\"partition\":\"%d\",", i);
        CHECK(slice_starts(asks(&patterns, "POST /v1/logs/l/consumers/c/read", body), slice_of(part)));
    }
    asks(&patterns, "POST /v1/logs/l/consumers/c/read", "{\"owner\":\"x\",\"partition\":\"1\"}");
    CHECK_INT(patterns.call.status, 204);
    patterns_close(&patterns);
}
