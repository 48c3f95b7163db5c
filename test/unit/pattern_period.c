/* Periods by their words. The clock begins at 2054-11-15T04:13:25.340Z, a Sunday. */
#include "base/hash.h"
#include "base/limits.h"
#include "base/attribute.h"
#include "unit/pattern_fixture.h"

#define HOUR_MS 3600000
#define FOUR    "2054-11-15T04:00:00.000Z"
#define FIVE    "2054-11-15T05:00:00.000Z"
#define SIX     "2054-11-15T06:00:00.000Z"

static void makes(struct patterns *patterns, const char *request, const char *body)
{
    struct slice reply = asks(patterns, request, body);
    if (patterns->call.status >= 300) test_failed(__FILE__, __LINE__, "%s: %.*s", request, SLICE_ARG(reply));
}

TEST(period_is_made_and_changed)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/periods/p", NULL, 404, "no-such-period");
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"data\":1}", 404, "no-such-period");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"cron\":\"0 9 * * *\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"zone\":\"Europe/Berlin\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"cron\":\"0 99 * * *\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"cron\":\"at(2055-01-01T00:00:00)\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"cron\":\"0 9 * * *\",\"zone\":\"No/Where\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"every\":\"1ms\"}", 400, "bad-request");
    CHECK_ASKS(
        &patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"then\":\"digest\"}", 201,
        "{\"name\":\"p\",\"every\":\"1h\",\"grace\":\"0s\",\"shards\":4,\"keep\":\"7d\",\"then\":\"digest\","
        "\"bucket\":\"" FOUR "\",\"end\":\"" FIVE "\"}");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":2}", 409, "exists");
    CHECK_ASKS(
        &patterns, "PUT /v1/periods/p", "{\"cron\":\"0 9 * * *\",\"zone\":\"Europe/Berlin\"}", 200,
        "{\"name\":\"p\",\"cron\":\"0 9 * * "
        "*\",\"zone\":\"Europe/Berlin\",\"grace\":\"0s\",\"shards\":4,"
        "\"keep\":\"7d\",\"bucket\":\"2054-11-14T08:00:00.000Z\",\"end\":\"2054-11-15T08:00:00.000Z\"}");
    CHECK_ASKS(&patterns, "DELETE /v1/periods/p", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "DELETE /v1/periods/p", NULL, 404, "no-such-period");
    patterns_close(&patterns);
}

TEST(period_hands_over_what_came)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":{\"n\":1}}", 201,
               "{\"bucket\":\"" FOUR "\",\"id\":\"a\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":{\"n\":1}}", 200,
               "{\"bucket\":\"" FOUR "\",\"id\":\"a\"}");
    makes(&patterns, "POST /v1/periods/p", "{\"id\":\"b\",\"data\":2}");
    CHECK_ASKS(&patterns, "GET /v1/periods/p/now", NULL, 200,
               "{\"period\":\"p\",\"bucket\":\"" FOUR "\",\"end\":\"" FIVE
               "\",\"state\":\"OPEN\",\"events\":[{\"id\":\"a\",\"time\":\"2054-11-15T04:13:25.340Z\","
               "\"data\":{\"n\":1}},"
               "{\"id\":\"b\",\"time\":\"2054-11-15T04:13:25.340Z\",\"data\":2}]}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":0}");
    patterns.now_ms += HOUR_MS;
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, i ? "{\"closed\":0}" : "{\"closed\":1}");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(
            &patterns, i ? "GET /v1/periods/p/last" : "GET /v1/periods/p/2054-11-15T04:00:00Z", NULL, 200,
            "{\"period\":\"p\",\"bucket\":\"" FOUR "\",\"end\":\"" FIVE "\",\"state\":\"DONE\",\"count\":2,"
            "\"parts\":1,\"events\":[{\"data\":{\"n\":1},\"id\":\"a\",\"time\":\"2054-11-15T04:13:25.340Z\"},"
            "{\"data\":2,\"id\":\"b\",\"time\":\"2054-11-15T04:13:25.340Z\"}]}");
    /* the same id in the next hour is the same event; of the closed hour, late */
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":{\"n\":1}}", 200,
               "{\"bucket\":\"" FOUR "\",\"id\":\"a\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"c\",\"time\":\"2054-11-15T04:59:00Z\"}", 201,
               "{\"bucket\":\"" FIVE "\",\"id\":\"c\",\"late\":true}");
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"time\":\"2054-11-15T07:00:00Z\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"time\":\"noon\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/periods/p/noon", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/periods/p/last?part=2", NULL, 404, "no-such-part");
    CHECK_ASKS(&patterns, "GET /v1/periods/p/now", NULL, 200,
               "{\"period\":\"p\",\"bucket\":\"" FIVE "\",\"end\":\"" SIX "\",\"state\":\"OPEN\",\"events\":["
               "{\"id\":\"c\",\"time\":\"2054-11-15T04:59:00.000Z\",\"late\":true,\"data\":null}]}");
    patterns_close(&patterns);
}

TEST(period_catches_up_in_order)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"grace\":\"5m\"}");
    for (int hour = 0; hour < 60; hour += 2) { /* every second hour has events, and nobody closes anything */
        for (int i = 0; i < 5; i++) makes(&patterns, "POST /v1/periods/p", "{\"data\":1}");
        patterns.now_ms += 2 * HOUR_MS;
    }
    patterns.now_ms += 5 * 60000;
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":20,\"more\":true}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":10}");
    struct buf reply = {0};
    struct slice request = arena_printf(
        &patterns.arena,
        "{\"TableName\":\"%speriod-buckets\",\"KeyConditionExpression\":\"period = :p\","
        "\"ExpressionAttributeValues\":{\":p\":{\"S\":\"p\"}}}",
        patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("Query"), request, &reply), 200);
    struct raw_walk walk;
    struct slice item;
    int count = 0;
    raw_walk_begin(&walk, &patterns.arena, raw_member(&patterns.arena, buf_view(&reply), "Items"));
    for (; raw_walk_next(&walk, NULL, &item); count++) {
        CHECK(item_says(&patterns.arena, item, "state", "DONE"));
        CHECK_INT(item_int(&patterns.arena, item, "count", 0), 5);
    }
    CHECK_INT(count, 30);
    buf_free(&reply);
    patterns_close(&patterns);
}

TEST(period_has_large_buckets_in_parts)
{
    struct patterns patterns;
    struct buf body = {0};
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":2}");
    buf_text(&body, "{\"data\":\"");
    for (int i = 0; i < 90000; i++) buf_byte(&body, 'x');
    buf_text(&body, "\"}");
    buf_byte(&body, '\0');
    for (int i = 0; i < 10; i++) makes(&patterns, "POST /v1/periods/p", body.data);
    body.len = 0;
    buf_text(&body, "{\"data\":\"");
    for (int i = 0; i < 410000; i++) buf_byte(&body, 'x');
    buf_text(&body, "\"}");
    buf_byte(&body, '\0');
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", body.data, 413, "too-large");
    patterns.now_ms += HOUR_MS;
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":1}");
    size_t count = 0;
    for (int part = 1; part <= 4; part++) { /* three fit one, so the last has one */
        char request[60];
        snprintf(request, sizeof request, "GET /v1/periods/p/last?part=%d", part);
        struct slice reply = asks(&patterns, request, NULL);
        CHECK_INT(patterns.call.status, 200);
        CHECK(slice_contains(reply, SLICE("\"count\":10,\"parts\":4")));
        count += raw_count(&patterns.arena, raw_member(&patterns.arena, reply, "events"));
    }
    CHECK_INT((int64_t)count, 10);
    buf_free(&body);
    patterns_close(&patterns);
}

/* ---- changed settings ---- */

TEST(period_changes_its_length)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"5m\",\"shards\":1}");
    makes(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"time\":\"2054-11-15T04:09:59Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":1}");
    makes(&patterns, "POST /v1/periods/p", "{\"id\":\"b\"}"); /* in the bucket of 4:10 */
    CHECK_ASKS(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\"}", 200,
               "{\"name\":\"p\",\"every\":\"1h\",\"grace\":\"0s\",\"shards\":1,\"keep\":\"7d\","
               "\"bucket\":\"2054-11-15T04:10:00.000Z\",\"end\":\"" FIVE "\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"c\"}", 201,
               "{\"bucket\":\"2054-11-15T04:10:00.000Z\",\"id\":\"c\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":0}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p/now", NULL), SLICE("\"id\":\"c\"")));
    /* from long to short: what is over by the new length is handed over at once */
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1m\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":1}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p/2054-11-15T04:10:00Z", NULL),
                         SLICE("\"end\":\"2054-11-15T04:11:00.000Z\",\"state\":\"DONE\",\"count\":2")));
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"d\"}", 201,
               "{\"bucket\":\"2054-11-15T04:13:00.000Z\",\"id\":\"d\"}");
    /* a bucket is still found by its begin when that is no begin any more */
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1d\"}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p/2054-11-15T04:05:00Z", NULL),
                         SLICE("\"bucket\":\"2054-11-15T04:05:00.000Z\"")));
    patterns_close(&patterns);
}

/* What GET answers can be put back as it is, and `then` is as it was sent. */
TEST(period_settings_can_be_put_back)
{
    static const char *const settings[] = {
        "{\"every\":\"5m\",\"shards\":2,\"then\":\"mail\"}",
        "{\"cron\":\"0 9 * * *\",\"grace\":\"1m\",\"then\":{\"url\":\"http://x/y\"}}",
        "{\"cron\":\"0 9 * * *\",\"zone\":\"UTC\",\"then\":[{\"call\":\"POST /v1/counters/x\"},\"mail\"]}"};
    struct patterns patterns;
    patterns_open(&patterns);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char body[400];
        asks(&patterns, "PUT /v1/periods/p", settings[i]);
        struct slice told = asks(&patterns, "GET /v1/periods/p", NULL);
        snprintf(body, sizeof body, "%.*s", SLICE_ARG(told));
        CHECK(slice_contains(slice_of(settings[i]), raw_member(&patterns.arena, told, "then")));
        CHECK_ASKS(&patterns, "PUT /v1/periods/p", body, 200, body);
        CHECK_REFUSES(&patterns, "PUT /v1/periods/other", body, 400, "bad-request");
    }
    CHECK_REFUSES(&patterns, "PUT /v1/periods/p", "{\"every\":\"5m\",\"ends\":1}", 400, "bad-request");
    patterns_close(&patterns);
}

/* The day on which the clocks are moved has 23 hours, or 25. */
TEST(period_follows_the_clock_of_a_zone)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"cron\":\"0 0 * * *\",\"zone\":\"Europe/Berlin\",\"shards\":1}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"time\":\"2054-10-25T22:59:59Z\"}", 201,
               "{\"bucket\":\"2054-10-24T22:00:00.000Z\",\"id\":\"a\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":1}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p/2054-10-25T12:00:00Z", NULL),
                         SLICE("\"end\":\"2054-10-25T23:00:00.000Z\",\"state\":\"DONE\"")));
    patterns.now_ms = 2689848000000; /* 2055-03-28T08:00:00Z */
    CHECK(slice_contains(
        asks(&patterns, "GET /v1/periods/p", NULL),
        SLICE("\"bucket\":\"2055-03-27T23:00:00.000Z\",\"end\":\"2055-03-28T22:00:00.000Z\"")));
    patterns_close(&patterns);
}

/* ---- looking ---- */

TEST(period_tells_of_empty_buckets)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\"}");
    CHECK_ASKS(&patterns, "GET /v1/periods/p/now", NULL, 200,
               "{\"period\":\"p\",\"bucket\":\"" FOUR "\",\"end\":\"" FIVE
               "\",\"state\":\"OPEN\",\"events\":[]}");
    patterns.now_ms += HOUR_MS;
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":0}");
    CHECK_ASKS(&patterns, "GET /v1/periods/p/last?wait=60s", NULL, 200, /* which is not waited for */
               "{\"period\":\"p\",\"bucket\":\"" FOUR "\",\"end\":\"" FIVE
               "\",\"state\":\"EMPTY\",\"events\":[]}");
    patterns_close(&patterns);
}

TEST(period_lists_periods_and_buckets)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\"}");
    for (int i = 0; i < 9; i++) makes(&patterns, "POST /v1/periods/p", "{\"time\":\"2054-11-15T02:30:00Z\"}");
    makes(&patterns, "POST /v1/periods/p", "{\"id\":\"x\",\"time\":\"2054-11-15T03:30:00Z\"}");
    makes(&patterns, "POST /v1/periods/p", "{}");
    CHECK_ASKS(
        &patterns, "GET /v1/periods/p/buckets?state=open&limit=2", NULL, 200,
        "{\"buckets\":[{\"bucket\":\"2054-11-15T02:00:00.000Z\",\"state\":\"OPEN\","
        "\"end\":\"2054-11-15T03:00:00.000Z\"},{\"bucket\":\"2054-11-15T03:00:00.000Z\",\"state\":\"OPEN\","
        "\"end\":\"" FOUR "\"}],\"next\":\"2054-11-15T03:00:00.000Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":2}");
    CHECK_ASKS(&patterns, "GET /v1/periods/p/buckets?limit=1&after=2054-11-15T02:00:00.000Z", NULL, 200,
               "{\"buckets\":[{\"bucket\":\"2054-11-15T03:00:00.000Z\",\"state\":\"DONE\",\"end\":\"" FOUR
               "\",\"count\":1,\"parts\":1,\"done\":\"2054-11-15T04:13:25.340Z\"}],"
               "\"next\":\"2054-11-15T03:00:00.000Z\"}");
    CHECK_ASKS(&patterns, "GET /v1/periods/p/buckets?state=open", NULL, 200,
               "{\"buckets\":[{\"bucket\":\"" FOUR "\",\"state\":\"OPEN\",\"end\":\"" FIVE "\"}]}");
    CHECK_REFUSES(&patterns, "GET /v1/periods/none/buckets", NULL, 404, "no-such-period");
    makes(&patterns, "PUT /v1/periods/q", "{\"every\":\"1h\"}");
    CHECK_ASKS(
        &patterns, "GET /v1/periods?limit=1", NULL, 200,
        "{\"periods\":[{\"name\":\"q\",\"due\":\"2054-11-15T04:13:25.340Z\"}],\"next\":\"2678328805340/q\"}");
    CHECK_ASKS(&patterns, "GET /v1/periods?after=2678328805340%2Fq", NULL, 200,
               "{\"periods\":[{\"name\":\"p\",\"due\":\"" FIVE "\"}]}");
    CHECK_REFUSES(&patterns, "GET /v1/periods?after=q", NULL, 400, "bad-request");
    patterns_close(&patterns);
}

/* ---- the rest ---- */

TEST(period_closes_a_very_large_bucket_by_and_by)
{
    struct patterns patterns;
    struct buf body = {0};
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":2}");
    buf_text(&body, "{\"data\":\"");
    for (int i = 0; i < 200000; i++) buf_byte(&body, 'x');
    buf_text(&body, "\"}");
    buf_byte(&body, '\0');
    for (int i = 0; i < 20; i++) makes(&patterns, "POST /v1/periods/p", body.data);
    patterns.now_ms += HOUR_MS;
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":0,\"more\":true}");
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p/last", NULL), SLICE("\"CLOSING\"")));
    CHECK_ASKS(&patterns, "POST /v1/periods/p/close", NULL, 200, "{\"closed\":1}");
    for (int part = 1; part <= 20; part++) {
        char request[60];
        snprintf(request, sizeof request, "GET /v1/periods/p/last?part=%d", part);
        struct slice reply = asks(&patterns, request, NULL);
        CHECK(slice_contains(reply, SLICE("\"count\":20,\"parts\":20")));
        CHECK_INT((int64_t)raw_count(&patterns.arena, raw_member(&patterns.arena, reply, "events")), 1);
    }
    buf_free(&body);
    patterns_close(&patterns);
}

/* The largest event, the largest reaction and the longest names fit one item. */
TEST(period_hands_over_what_is_as_large_as_may_be)
{
    struct patterns patterns;
    struct buf body = {0};
    char name[201], request[240];
    patterns_open(&patterns);
    memset(name, 'n', 200);
    name[200] = '\0';
    buf_text(&body, "{\"every\":\"1h\",\"then\":{\"call\":\"POST /v1/counters/x\",\"body\":{\"x\":\"");
    for (int i = 0; i < LIMIT_THEN_BYTES - 200; i++) buf_byte(&body, 'x');
    buf_text(&body, "\"}}}");
    buf_byte(&body, '\0');
    snprintf(request, sizeof request, "PUT /v1/periods/%s", name);
    makes(&patterns, request, body.data);
    body.len = 0;
    buf_printf(&body, "{\"id\":\"%.200s\",\"data\":\"", name);
    for (int i = 0; i < LIMIT_ITEM_BYTES - LIMIT_THEN_BYTES - 4096 - 10; i++) buf_byte(&body, 'x');
    buf_text(&body, "\"}");
    buf_byte(&body, '\0');
    snprintf(request, sizeof request, "POST /v1/periods/%s", name);
    makes(&patterns, request, body.data);
    patterns.now_ms += HOUR_MS;
    snprintf(request, sizeof request, "POST /v1/periods/%s/close", name);
    CHECK_ASKS(&patterns, request, NULL, 200, "{\"closed\":1}");
    buf_free(&body);
    patterns_close(&patterns);
}

TEST(period_adds_once_by_a_key)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\"}");
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "k");
        CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"data\":1}", i ? 200 : 201,
                   "{\"bucket\":\"" FOUR "\",\"id\":\"k\"}");
    }
    /* a clock may be ahead, a little */
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"l\",\"time\":\"2054-11-15T04:18:00Z\"}", 201,
               "{\"bucket\":\"" FOUR "\",\"id\":\"l\"}");
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"time\":\"2054-11-15T04:19:00Z\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/periods/q", "{\"cron\":\"cron(0 9 * * ? 2025)\"}", 400, "bad-request");
    patterns_close(&patterns);
}

/* Keeping the first without a word would lose the second. */
TEST(period_refuses_an_id_with_other_data)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\"}");
    asks(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":{\"n\":1}}");
    CHECK_INT(patterns.call.status, 201);
    asks(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":{\"n\":1}}");
    CHECK_INT(patterns.call.status, 200);
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":{\"n\":2}}", 422, "key-reused");
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"id\":\"a\"}", 422, "key-reused");
    patterns_close(&patterns);
}

TEST(period_costs_the_same_for_every_event)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}");
    makes(&patterns, "POST /v1/periods/p", "{\"id\":\"first\"}");
    for (int i = 0; i < 50; i++) makes(&patterns, "POST /v1/periods/p", "{\"data\":1}");
    CHECK(slice_contains(asks(&patterns, "POST /v1/periods/p?cost", "{\"data\":1}"),
                         SLICE("\"writeUnits\":1,\"readUnits\":0,")));
    CHECK(slice_contains(asks(&patterns, "POST /v1/periods/p?cost", "{\"id\":\"i\",\"data\":1}"),
                         SLICE("\"writeUnits\":2,\"readUnits\":0,")));
    patterns_close(&patterns);
}

static void puts_item(struct patterns *patterns, const char *table, const char *item)
{
    struct buf reply = {0};
    struct slice request = arena_printf(&patterns->arena, "{\"TableName\":\"%s%s\",\"Item\":%s}",
                                        patterns->prefix, table, item);
    CHECK_INT(dynamo_call(patterns->dynamo, SLICE("PutItem"), request, &reply), 200);
    buf_free(&reply);
}

TEST(period_of_an_earlier_layout_is_refused)
{
    struct patterns patterns;
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/other", "{\"every\":\"1h\"}");
    puts_item(&patterns, "periods",
              "{\"name\":{\"S\":\"p\"},\"every\":{\"N\":\"3600000\"},\"shards\":{\"N\":\"4\"},"
              "\"closed\":{\"N\":\"0\"},\"version\":{\"N\":\"1\"}}");
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"data\":1}", 409, "bad-settings");
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p", NULL), SLICE("earlier version")));
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\"}");
    CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"a\"}", 201,
               "{\"bucket\":\"" FOUR "\",\"id\":\"a\"}");
    patterns_close(&patterns);
}

/* A call died behind its token, and many events came before it is repeated. */
TEST(period_finishes_what_a_token_began)
{
    struct patterns patterns;
    char token[300];
    patterns_open(&patterns);
    makes(&patterns, "PUT /v1/periods/p", "{\"every\":\"1h\",\"shards\":1}");
    makes(&patterns, "POST /v1/periods/p", "{\"id\":\"a\",\"data\":1}");
    snprintf(token, sizeof token,
             "{\"token\":{\"S\":\"period/p/b\"},\"bucket\":{\"S\":\"" FOUR "\"},\"shard\":{\"N\":\"0\"},"
             "\"late\":{\"BOOL\":false},\"from\":{\"N\":\"2\"},\"sent\":{\"S\":\"%016llx\"}}",
             (unsigned long long)hash_bytes(SLICE("1")));
    puts_item(&patterns, "tokens", token);
    CHECK_REFUSES(&patterns, "POST /v1/periods/p", "{\"id\":\"b\",\"data\":2}", 422, "key-reused");
    for (int i = 0; i < 1010; i++) makes(&patterns, "POST /v1/periods/p", "{\"data\":1}");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(&patterns, "POST /v1/periods/p", "{\"id\":\"b\",\"data\":1}", i ? 200 : 201,
                   "{\"bucket\":\"" FOUR "\",\"id\":\"b\"}");
    /* it is not searched for again */
    CHECK(slice_contains(asks(&patterns, "POST /v1/periods/p?cost", "{\"id\":\"b\",\"data\":1}"),
                         SLICE("\"readUnits\":0,")) ||
          getenv("PATTERNS_ON"));
    patterns.now_ms += HOUR_MS;
    makes(&patterns, "POST /v1/periods/p/close", NULL);
    CHECK(slice_contains(asks(&patterns, "GET /v1/periods/p/last", NULL), SLICE("\"count\":1012,")));
    patterns_close(&patterns);
}
