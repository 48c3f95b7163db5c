/* Lists of names: what is made is listed, what is gone is not. */
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define HOUR_MS 3600000

TEST(names_of_counters)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "GET /v1/counters", NULL, 200, "{\"counters\":[]}");
    asks(&patterns, "POST /v1/counters/b", NULL);
    asks(&patterns, "POST /v1/counters/b", NULL);
    asks(&patterns, "POST /v1/counters/a%2F1", "{\"start\":7}");
    asks(&patterns, "PUT /v1/counters/c", "{\"value\":9}");
    patterns.headers[0] = (struct asked_header){"Idempotency-Key", "k"};
    asks(&patterns, "POST /v1/counters/a%2F2", NULL);
    asks(&patterns, "GET /counter?systemKey=old", NULL);
    CHECK_ASKS(&patterns, "GET /v1/counters", NULL, 200,
               "{\"counters\":[{\"name\":\"a/1\",\"value\":7},{\"name\":\"a/2\",\"value\":1},"
               "{\"name\":\"b\",\"value\":2},{\"name\":\"c\",\"value\":9},{\"name\":\"old\",\"value\":1}]}");
    CHECK_ASKS(&patterns, "GET /v1/counters?limit=2", NULL, 200,
               "{\"counters\":[{\"name\":\"a/1\",\"value\":7},{\"name\":\"a/2\",\"value\":1}],\"next\":\"a/2\"}");
    CHECK_ASKS(&patterns, "GET /v1/counters?limit=2&after=a/2", NULL, 200,
               "{\"counters\":[{\"name\":\"b\",\"value\":2},{\"name\":\"c\",\"value\":9}],\"next\":\"c\"}");
    CHECK_ASKS(&patterns, "GET /v1/counters?limit=2&after=c", NULL, 200,
               "{\"counters\":[{\"name\":\"old\",\"value\":1}]}");
    CHECK_ASKS(&patterns, "GET /v1/counters?prefix=a/&limit=1", NULL, 200,
               "{\"counters\":[{\"name\":\"a/1\",\"value\":7}],\"next\":\"a/1\"}");
    CHECK_ASKS(&patterns, "GET /v1/counters?prefix=a/&after=a/1", NULL, 200,
               "{\"counters\":[{\"name\":\"a/2\",\"value\":1}]}");
    CHECK_REFUSES(&patterns, "GET /v1/counters?prefix=a/&after=b", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/counters?from=b", NULL, 400, "bad-request");
    asks(&patterns, "DELETE /v1/counters/b", NULL);
    CHECK_ASKS(&patterns, "GET /v1/counters?prefix=b", NULL, 200, "{\"counters\":[]}");
    asks(&patterns, "POST /v1/counters/b", NULL);
    CHECK_ASKS(&patterns, "GET /v1/counters?prefix=b", NULL, 200, "{\"counters\":[{\"name\":\"b\",\"value\":1}]}");
    patterns_close(&patterns);
}

/* How many entries the table has, but for those that tell of slots. */
static int64_t entries(struct patterns *patterns)
{
    struct buf request = {0}, reply = {0};
    int64_t count = -1;
    buf_printf(&request,
               "{\"TableName\":\"%snames\",\"Select\":\"COUNT\",\"FilterExpression\":\"attribute_exists(entered)\"}",
               patterns->prefix);
    CHECK_INT(dynamo_call(patterns->dynamo, SLICE("Scan"), buf_view(&request), &reply), 200);
    raw_int(raw_text(&patterns->arena, raw_member(&patterns->arena, buf_view(&reply), "Count")), &count);
    buf_free(&request);
    buf_free(&reply);
    return count;
}

TEST(names_without_a_thing_go)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/counters/a", NULL);
    asks(&patterns, "POST /v1/counters/b", NULL);
    asks(&patterns, "DELETE /v1/counters/a", NULL);
    asks(&patterns, "GET /v1/counters", NULL);
    CHECK_INT(entries(&patterns), 2); /* somebody may be making it at this moment */
    patterns.now_ms += HOUR_MS + 1;
    CHECK_ASKS(&patterns, "GET /v1/counters", NULL, 200, "{\"counters\":[{\"name\":\"b\",\"value\":1}]}");
    CHECK_INT(entries(&patterns), 1);
    asks(&patterns, "POST /v1/counters/a", NULL);
    CHECK_INT(entries(&patterns), 2);
    patterns_close(&patterns);
}

TEST(names_of_leases_and_limits)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/leases/one", "{\"owner\":\"a\",\"for\":\"10s\"}");
    asks(&patterns, "POST /v1/leases/three", "{\"owner\":\"a\",\"holders\":3,\"for\":\"10s\"}");
    CHECK_ASKS(&patterns, "GET /v1/leases", NULL, 200,
               "{\"leases\":[{\"name\":\"one\",\"held\":true,\"owner\":\"a\",\"fence\":1,"
               "\"until\":\"2054-11-15T04:13:35.340Z\"},"
               "{\"name\":\"three\",\"held\":false,\"fence\":1,\"holders\":3,\"taken\":1}]}");
    patterns.now_ms += 2 * HOUR_MS; /* what was held once stays, with its fence */
    CHECK_ASKS(&patterns, "GET /v1/leases?prefix=o", NULL, 200,
               "{\"leases\":[{\"name\":\"one\",\"held\":false,\"fence\":1}]}");
    asks(&patterns, "POST /v1/limits/mails", "{\"rate\":100,\"per\":\"1m\"}");
    CHECK_ASKS(&patterns, "GET /v1/limits", NULL, 200,
               "{\"limits\":[{\"name\":\"mails\",\"rate\":100,\"per\":\"1m\",\"burst\":100}]}");
    patterns.now_ms += 25 * HOUR_MS;
    CHECK_ASKS(&patterns, "GET /v1/limits", NULL, 200, "{\"limits\":[]}");
    patterns_close(&patterns);
}

TEST(names_of_what_has_members)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/boards/wall", "{\"text\":\"hello\"}");
    CHECK_ASKS(&patterns, "GET /v1/boards", NULL, 200,
               "{\"boards\":[{\"name\":\"wall\",\"last\":\"2054-11-15T04:13:25.340Z\"}]}");
    asks(&patterns, "PUT /v1/documents/users/ann", "{}");
    asks(&patterns, "PUT /v1/documents/users/bob", "{}");
    CHECK_ASKS(&patterns, "GET /v1/documents", NULL, 200, "{\"collections\":[{\"name\":\"users\"}]}");
    CHECK_ASKS(&patterns, "GET /v1/documents/users?prefix=b", NULL, 200,
               "{\"documents\":[{\"key\":\"bob\",\"version\":1,\"data\":{}}]}");
    asks(&patterns, "POST /v1/work/plain/a", NULL);
    asks(&patterns, "PUT /v1/work/set", "{\"lease\":\"1m\"}");
    CHECK_ASKS(&patterns, "GET /v1/work", NULL, 200,
               "{\"queues\":[{\"queue\":\"plain\",\"lease\":\"30s\",\"attempts\":5,\"backoff\":\"1s\",\"keep\":\"7d\"},"
               "{\"queue\":\"set\",\"lease\":\"1m\",\"attempts\":5,\"backoff\":\"1s\",\"keep\":\"7d\"}]}");
    asks(&patterns, "PUT /v1/logs/clicks", "{\"keep\":\"1h\"}");
    asks(&patterns, "PUT /v1/logs/visits", NULL);
    CHECK_ASKS(&patterns, "GET /v1/logs", NULL, 200,
               "{\"logs\":[{\"log\":\"clicks\",\"created\":\"2054-11-15T04:13:25.340Z\",\"keep\":\"1h\"},"
               "{\"log\":\"visits\",\"created\":\"2054-11-15T04:13:25.340Z\"}]}");
    asks(&patterns, "DELETE /v1/logs/clicks", NULL);
    CHECK_ASKS(&patterns, "GET /v1/logs?prefix=cl", NULL, 200, "{\"logs\":[]}");
    asks(&patterns, "PUT /v1/groups/pairs", "{\"complete\":{\"size\":2}}");
    CHECK_ASKS(&patterns, "GET /v1/groups", NULL, 200,
               "{\"groups\":[{\"name\":\"pairs\",\"complete\":{\"size\":2},\"late\":\"discard\"}]}");
    asks(&patterns, "DELETE /v1/groups/pairs", NULL);
    CHECK_ASKS(&patterns, "GET /v1/groups", NULL, 200, "{\"groups\":[]}");
    asks(&patterns, "PUT /v1/periods/hours", "{\"every\":\"1h\"}");
    CHECK_ASKS(&patterns, "GET /v1/periods?prefix=d", NULL, 200, "{\"periods\":[]}");
    patterns_close(&patterns);
}

/* A board in use keeps its name however long it has one, and one that is empty loses it. */
TEST(names_of_boards_stay_fresh)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/boards/a", "{\"text\":\"x\"}");
    asks(&patterns, "POST /v1/boards/b", "{\"text\":\"x\"}");
    patterns.now_ms += HOUR_MS / 2 + 1;
    asks(&patterns, "POST /v1/boards/a", "{\"text\":\"x\"}");
    asks(&patterns, "DELETE /v1/boards/a", NULL);
    asks(&patterns, "DELETE /v1/boards/b", NULL);
    patterns.now_ms += HOUR_MS / 2;
    CHECK_ASKS(&patterns, "GET /v1/boards", NULL, 200, "{\"boards\":[]}");
    CHECK_INT(entries(&patterns), 1);
    patterns_close(&patterns);
}

TEST(names_of_keys_that_failed)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/once/charge/o-1", NULL);
    asks(&patterns, "POST /v1/once/charge/o-1/fail", "{\"fence\":1,\"error\":\"declined\"}");
    asks(&patterns, "POST /v1/once/charge/o-2", NULL);
    CHECK_ASKS(&patterns, "GET /v1/once/charge", NULL, 200,
               "{\"failed\":[{\"key\":\"o-1\",\"state\":\"FAILED\",\"fence\":1,\"ended\":\"2054-11-15T04:13:25.340Z\","
               "\"failures\":1,\"error\":\"declined\"}]}");
    asks(&patterns, "POST /v1/once/charge/o-1", NULL);
    asks(&patterns, "POST /v1/once/charge/o-1/finish", "{\"fence\":2}");
    CHECK_ASKS(&patterns, "GET /v1/once/charge", NULL, 200, "{\"failed\":[]}");
    CHECK_ASKS(&patterns, "GET /v1/once/other", NULL, 200, "{\"failed\":[]}");
    patterns_close(&patterns);
}

TEST(names_of_finished_jobs_and_groups)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/groups/g", "{\"complete\":{\"size\":1}}");
    for (char id = 'a'; id <= 'c'; id++) {
        char request[40];
        patterns.now_ms += 1000;
        snprintf(request, sizeof request, "PUT /v1/jobs/%c", id);
        asks(&patterns, request, "{\"total\":1}");
        snprintf(request, sizeof request, "POST /v1/jobs/%c/done", id);
        asks(&patterns, request, "{\"task\":0}");
        snprintf(request, sizeof request, "POST /v1/groups/g/%c", id);
        asks(&patterns, request, "{\"id\":\"e\"}");
    }
    CHECK_ASKS(&patterns, "GET /v1/jobs", NULL, 200, "{\"jobs\":[]}");
    struct slice page = asks(&patterns, "GET /v1/jobs?state=complete&limit=2", NULL);
    CHECK(slice_contains(page, SLICE("[{\"id\":\"c\",\"state\":\"COMPLETE\",\"opened\":\"2054-11-15T04:13:28.340Z\"},"
                                     "{\"id\":\"b\"")));
    struct slice next = raw_text(&patterns.arena, raw_member(&patterns.arena, page, "next"));
    char request[200];
    snprintf(request, sizeof request, "GET /v1/jobs?state=complete&limit=2&after=%.*s", SLICE_ARG(next));
    CHECK_ASKS(&patterns, request, NULL, 200,
               "{\"jobs\":[{\"id\":\"a\",\"state\":\"COMPLETE\",\"opened\":\"2054-11-15T04:13:26.340Z\"}]}");
    CHECK_ASKS(&patterns, "GET /v1/groups/g?state=complete", NULL, 200,
               "{\"groups\":[{\"key\":\"c\",\"generation\":1,\"opened\":\"2054-11-15T04:13:28.340Z\"},"
               "{\"key\":\"b\",\"generation\":1,\"opened\":\"2054-11-15T04:13:27.340Z\"},"
               "{\"key\":\"a\",\"generation\":1,\"opened\":\"2054-11-15T04:13:26.340Z\"}]}");
    CHECK_ASKS(&patterns, "GET /v1/groups/g?state=open", NULL, 200, "{\"groups\":[]}");
    asks(&patterns, "DELETE /v1/jobs/c", NULL);
    asks(&patterns, "DELETE /v1/groups/g/c", NULL);
    CHECK(!slice_contains(asks(&patterns, "GET /v1/jobs?state=complete", NULL), SLICE("\"c\"")));
    CHECK(!slice_contains(asks(&patterns, "GET /v1/groups/g?state=complete", NULL), SLICE("\"c\"")));
    patterns_close(&patterns);
}
