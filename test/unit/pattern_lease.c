/* Leases by their words. */
#include "unit/pattern_fixture.h"

TEST(lease_is_granted_renewed_and_released)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/leases/x", NULL, 404, "no-such-lease");
    CHECK_ASKS(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"10s\",\"data\":[1]}", 200,
               "{\"fence\":1,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/leases/x", "{\"owner\":\"b\"}", 409,
               "{\"error\":\"held\",\"message\":\"The lease is held by a.\",\"owner\":\"a\",\"fence\":1,"
               "\"until\":\"2054-11-15T04:13:35.340Z\"}");
    CHECK_ASKS(
        &patterns, "GET /v1/leases/x", NULL, 200,
        "{\"name\":\"x\",\"held\":true,\"owner\":\"a\",\"fence\":1,\"until\":\"2054-11-15T04:13:35.340Z\","
        "\"waiting\":[],\"data\":[1]}");
    patterns.now_ms += 5000;
    CHECK_ASKS(&patterns, "PUT /v1/leases/x", "{\"owner\":\"a\",\"fence\":1,\"for\":\"10s\"}", 200,
               "{\"fence\":1,\"until\":\"2054-11-15T04:13:40.340Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"11s\"}", 200,
               "{\"fence\":1,\"until\":\"2054-11-15T04:13:41.340Z\"}");
    CHECK_ASKS(
        &patterns, "DELETE /v1/leases/x?owner=a&fence=2", NULL, 409,
        "{\"error\":\"stale-fence\",\"message\":\"The lease was never granted with fence 2: its last one "
        "is 1.\",\"owner\":\"a\",\"fence\":1,\"until\":\"2054-11-15T04:13:41.340Z\"}");
    CHECK_REFUSES(&patterns, "DELETE /v1/leases/x?owner=b&fence=1", NULL, 409, "not-held");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(&patterns, "DELETE /v1/leases/x?owner=a&fence=1", NULL, 200,
                   "{\"released\":true,\"fence\":1}");
    CHECK_REFUSES(&patterns, "PUT /v1/leases/x", "{\"owner\":\"a\",\"fence\":1}", 409, "not-held");
    CHECK_ASKS(&patterns, "POST /v1/leases/x", "{\"owner\":\"b\",\"for\":1000}", 200,
               "{\"fence\":2,\"until\":\"2054-11-15T04:13:31.340Z\"}");
    CHECK_REFUSES(&patterns, "DELETE /v1/leases/x", "{\"owner\":\"a\",\"fence\":1}", 409, "stale-fence");
    patterns_close(&patterns);
}

TEST(lease_ends_by_itself)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"10s\"}");
    patterns.now_ms += 10000;
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"b\",\"for\":\"10s\"}", 409, "held");
    patterns.now_ms += 1;
    CHECK_ASKS(&patterns, "GET /v1/leases/x", NULL, 200,
               "{\"name\":\"x\",\"held\":false,\"fence\":1,\"waiting\":[]}");
    CHECK_ASKS(&patterns, "PUT /v1/leases/x", "{\"owner\":\"a\",\"fence\":1,\"for\":\"1s\"}", 409,
               "{\"error\":\"expired\",\"message\":\"The lease ended at 2054-11-15T04:13:35.340Z: take it "
               "again.\",\"fence\":1}"); /* b may have seen that it is free */
    CHECK_ASKS(&patterns, "POST /v1/leases/x", "{\"owner\":\"b\",\"for\":\"10s\"}", 200,
               "{\"fence\":2,\"until\":\"2054-11-15T04:13:45.341Z\"}");
    CHECK_REFUSES(&patterns, "PUT /v1/leases/x", "{\"owner\":\"a\",\"fence\":1}", 409, "stale-fence");
    patterns_close(&patterns);
}

TEST(lease_refuses_what_makes_no_sense)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"0s\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"forever\"}", 400,
                  "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"wait\":\"2m\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/leases/x?wait=2m", "{\"owner\":\"a\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/leases/x", "{\"owner\":\"a\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "PUT /v1/leases/x", "{\"owner\":\"a\",\"fence\":1}", 404, "no-such-lease");
    CHECK_REFUSES(&patterns, "DELETE /v1/leases/x", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "DELETE /v1/leases/x?owner=a&fence=1", NULL, 404, "no-such-lease");
    patterns_close(&patterns);
}

/* The line as a person with a plain SDK would see and set it: places that are over count for nothing, others
 * cost whoever stands behind them two seconds each. */
TEST(lease_respects_the_line)
{
    struct patterns patterns;
    struct buf reply = {0};
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"10s\"}");
    struct slice request = arena_printf(
        &patterns.arena,
        "{\"TableName\":\"%sleases\",\"Key\":{\"name\":{\"S\":\"x\"}},"
        "\"UpdateExpression\":\"SET waiting = :w\","
        "\"ExpressionAttributeValues\":{\":w\":{\"L\":[{\"M\":{\"owner\":{\"S\":\"gone\"},"
        "\"until\":{\"N\":\"2678328800000\"}}},"
        "{\"M\":{\"owner\":{\"S\":\"b\"},\"until\":{\"N\":\"2678328899000\"}}},"
        "{\"M\":{\"owner\":{\"S\":\"c\"},\"until\":{\"N\":\"2678328899000\"}}}]}}}",
        patterns.prefix);
    CHECK_INT(dynamo_call(patterns.dynamo, SLICE("UpdateItem"), request, &reply), 200);
    CHECK_ASKS(
        &patterns, "GET /v1/leases/x", NULL, 200,
        "{\"name\":\"x\",\"held\":true,\"owner\":\"a\",\"fence\":1,\"until\":\"2054-11-15T04:13:35.340Z\","
        "\"waiting\":[\"b\",\"c\"]}");
    patterns.now_ms += 10001;
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"d\"}", 409, "others-wait");
    patterns.now_ms += 1998;
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"d\"}", 409, "others-wait");
    patterns.now_ms += 1;
    CHECK_ASKS(&patterns, "POST /v1/leases/x", "{\"owner\":\"c\",\"for\":\"1s\"}", 200, /* b did not come */
               "{\"fence\":2,\"until\":\"2054-11-15T04:13:38.340Z\"}");
    CHECK_ASKS(
        &patterns, "GET /v1/leases/x", NULL, 200,
        "{\"name\":\"x\",\"held\":true,\"owner\":\"c\",\"fence\":2,\"until\":\"2054-11-15T04:13:38.340Z\","
        "\"waiting\":[]}");
    buf_free(&reply);
    patterns_close(&patterns);
}

/* ---- several holders ---- */

#define SEAT(owner) "{\"owner\":\"" owner "\",\"for\":\"10s\",\"holders\":2}"

TEST(lease_of_several_holders)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "POST /v1/leases/s", SEAT("a"), 200,
               "{\"fence\":1,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/leases/s", SEAT("b"), 200,
               "{\"fence\":2,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    CHECK_ASKS(&patterns, "POST /v1/leases/s", SEAT("c"), 409,
               "{\"error\":\"held\",\"message\":\"The lease is held by as many as may.\",\"fence\":2,"
               "\"holders\":2,\"taken\":2}");
    CHECK_REFUSES(&patterns, "POST /v1/leases/s", "{\"owner\":\"d\"}", 409, "held"); /* that wants it alone */
    patterns.now_ms += 4000;
    CHECK_ASKS(&patterns, "POST /v1/leases/s", SEAT("a"), 200, /* the same again */
               "{\"fence\":1,\"until\":\"2054-11-15T04:13:39.340Z\"}");
    CHECK_ASKS(&patterns, "PUT /v1/leases/s", "{\"owner\":\"b\",\"fence\":2,\"for\":\"20s\"}", 200,
               "{\"fence\":2,\"until\":\"2054-11-15T04:13:49.340Z\"}");
    CHECK_REFUSES(&patterns, "PUT /v1/leases/s", "{\"owner\":\"a\",\"fence\":2}", 409, "not-held");
    CHECK_ASKS(
        &patterns, "GET /v1/leases/s", NULL, 200,
        "{\"name\":\"s\",\"held\":true,\"fence\":2,\"holders\":2,\"taken\":2,\"waiting\":[],\"seats\":["
        "{\"owner\":\"a\",\"fence\":1,\"until\":\"2054-11-15T04:13:39.340Z\"},"
        "{\"owner\":\"b\",\"fence\":2,\"until\":\"2054-11-15T04:13:49.340Z\"}]}");
    CHECK_REFUSES(&patterns, "DELETE /v1/leases/s?owner=b&fence=1", NULL, 409, "not-held");
    for (int i = 0; i < 2; i++)
        CHECK_ASKS(&patterns, "DELETE /v1/leases/s?owner=a&fence=1", NULL, 200,
                   "{\"released\":true,\"fence\":1}");
    CHECK_ASKS(&patterns, "POST /v1/leases/s", SEAT("c"), 200,
               "{\"fence\":3,\"until\":\"2054-11-15T04:13:39.340Z\"}");
    patterns.now_ms += 10001; /* c is over, b is not */
    CHECK_REFUSES(&patterns, "PUT /v1/leases/s", "{\"owner\":\"c\",\"fence\":3}", 409, "not-held");
    CHECK_ASKS(&patterns, "POST /v1/leases/s", SEAT("e"), 200,
               "{\"fence\":4,\"until\":\"2054-11-15T04:13:49.341Z\"}");
    CHECK_REFUSES(&patterns, "POST /v1/leases/s", SEAT("f"), 409, "held");
    patterns.now_ms += 60000; /* all are over: one alone may have it, and is alone */
    CHECK_ASKS(&patterns, "POST /v1/leases/s", "{\"owner\":\"d\",\"for\":\"10s\"}", 200,
               "{\"fence\":5,\"until\":\"2054-11-15T04:14:49.341Z\"}");
    CHECK_REFUSES(&patterns, "POST /v1/leases/s", "{\"owner\":\"g\"}", 409, "held");
    patterns_close(&patterns);
}

TEST(lease_of_one_has_room_for_nobody)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/leases/s", "{\"owner\":\"a\",\"for\":\"10s\"}");
    CHECK_REFUSES(&patterns, "POST /v1/leases/s", SEAT("b"), 409, "held");
    asks(&patterns, "DELETE /v1/leases/s?owner=a&fence=1", NULL);
    CHECK_ASKS(&patterns, "POST /v1/leases/s", SEAT("b"), 200,
               "{\"fence\":2,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    patterns_close(&patterns);
}
