/* What finding the unread costs: it grows with the news, not with the partitions. */
#include <stdlib.h>

#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define PARTITIONS (getenv("PATTERNS_ON") ? 5000 : 100000) /* elsewhere a call takes its time */
#define NEWS       10
#define READ       "POST /v1/logs/l/consumers/g/read?cost=1"

static void call(struct patterns *patterns, const char *operation, struct slice request)
{
    struct buf reply = {0};
    if (dynamo_call(patterns->dynamo, slice_of(operation), request, &reply) != 200)
        test_failed(__FILE__, __LINE__, "%s: %.*s", operation, SLICE_ARG(buf_view(&reply)));
    buf_free(&reply);
}

/* The log's id, which stands in all keys. */
static struct slice id_of(struct patterns *patterns)
{
    struct buf reply = {0};
    struct slice request = arena_printf(
        &patterns->arena,
        "{\"TableName\":\"%slogs\",\"Key\":{\"log\":{\"S\":\"l\"},\"part\":{\"S\":\"log\"}}}", patterns->prefix);
    CHECK_INT(dynamo_call(patterns->dynamo, SLICE("GetItem"), request, &reply), 200);
    struct slice item = raw_member(&patterns->arena, arena_copy(&patterns->arena, buf_view(&reply)), "Item");
    buf_free(&reply);
    return item_text(&patterns->arena, item, "id");
}

/* Heads, pages and positions as flows would have left them when one event of each had been read. */
static void make_partitions(struct patterns *patterns, int64_t touched_s)
{
    static const char *const tables[] = {"log-heads", "log-events", "log-positions"};
    struct slice id = id_of(patterns);
    struct buf request = {0};
    for (int i = 0; i < PARTITIONS; i += 8) {
        request.len = 0;
        for (int k = 0; k < 3; k++) {
            buf_printf(&request, "%s\"%s%s\":[", k ? "]," : "{\"RequestItems\":{", patterns->prefix, tables[k]);
            for (int n = i; n < i + 8 && n < PARTITIONS; n++) {
                if (n > i) buf_byte(&request, ',');
                if (k == 0)
                    buf_printf(&request,
                               "{\"PutRequest\":{\"Item\":{\"partition\":{\"S\":\"l/%.*s/%d\"},"
                               "\"sequence\":{\"N\":\"0\"},\"touched\":{\"N\":\"%lld\"},"
                               "\"slot\":{\"S\":\"l/%.*s/%d\"}}}}",
                               SLICE_ARG(id), n, (long long)touched_s, SLICE_ARG(id), n % 16);
                else if (k == 1)
                    buf_printf(&request,
                               "{\"PutRequest\":{\"Item\":{\"chain\":{\"S\":\"l/%.*s/%d\"},\"first\":{\"N\":\"1\"},"
                               "\"n\":{\"N\":\"1\"},\"t\":{\"N\":\"%lld000\"},\"i\":{\"N\":\"1\"},"
                               "\"e\":{\"L\":[{\"L\":[{\"S\":\"k\"},{\"NULL\":true}]}]}}}}",
                               SLICE_ARG(id), n, (long long)touched_s);
                else
                    buf_printf(&request,
                               "{\"PutRequest\":{\"Item\":{\"group\":{\"S\":\"l/g\"},\"partition\":{\"S\":\"%d\"},"
                               "\"position\":{\"N\":\"1\"},\"given\":{\"N\":\"1\"},\"page\":{\"N\":\"2\"},"
                               "\"fence\":{\"N\":\"1\"},\"generation\":{\"N\":\"0\"}}}}",
                               n);
            }
        }
        buf_text(&request, "]}}");
        call(patterns, "BatchWriteItem", buf_view(&request));
    }
    buf_free(&request);
}

static int64_t cost_of(struct patterns *patterns, struct slice reply, const char *name)
{
    struct slice cost = raw_member(&patterns->arena, reply, "cost");
    char text[40] = "";
    struct slice value = raw_text(&patterns->arena, raw_member(&patterns->arena, cost, name));
    snprintf(text, sizeof text, "%.*s", SLICE_ARG(value));
    return (int64_t)(strtod(text, NULL) + 0.5);
}

TEST(log_news_are_found_by_few_reads)
{
    struct patterns patterns;
    char body[100];
    patterns_open(&patterns);
    snprintf(body, sizeof body, "{\"partitions\":%d}", PARTITIONS);
    asks(&patterns, "PUT /v1/logs/l", body);
    CHECK_INT(patterns.call.status, 201);
    asks(&patterns, "POST /v1/logs/l", "{\"key\":\"first\"}"); /* makes the tables */
    asks(&patterns, READ, "{\"owner\":\"o\"}");
    make_partitions(&patterns, patterns.now_ms / 1000);
    patterns.now_ms += 60000;
    asks(&patterns, READ, "{\"owner\":\"o\"}"); /* finds nothing and writes that down */
    CHECK_INT(patterns.call.status, 204);
    for (int i = 0; i < NEWS; i++) {
        snprintf(body, sizeof body, "{\"key\":\"key %d\",\"data\":%d}", i, i);
        asks(&patterns, "POST /v1/logs/l", body);
        CHECK_INT(patterns.call.status, 201);
    }
    /* all ten are found: 16 queries, their positions by one call, and their ends */
    struct slice lag = asks(&patterns, "GET /v1/logs/l/consumers/g/lag?cost=1", NULL);
    CHECK(slice_contains(lag, SLICE("\"lag\":10,")));
    printf("log: %d of %d partitions with news are found by %lld calls of %lld read units\n", NEWS,
           PARTITIONS, (long long)cost_of(&patterns, lag, "calls"),
           (long long)cost_of(&patterns, lag, "readUnits"));
    CHECK(cost_of(&patterns, lag, "calls") <= 30 && cost_of(&patterns, lag, "calls") > 17);
    CHECK(cost_of(&patterns, lag, "readUnits") <= 26);
    /* each is read, at the cost of what lies between */
    for (int i = 0; i < NEWS; i++) {
        snprintf(body, sizeof body, "{\"owner\":\"o%d\"}", i);
        struct slice reply = asks(&patterns, READ, body);
        CHECK_INT(patterns.call.status, 200);
        CHECK(cost_of(&patterns, reply, "calls") <= 30);
        CHECK(cost_of(&patterns, reply, "readUnits") <= 45);
    }
    asks(&patterns, READ, "{\"owner\":\"another\"}");
    CHECK_INT(patterns.call.status, 204);
    patterns_close(&patterns);
}
