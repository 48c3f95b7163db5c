/* Counters by their words. */
#include "unit/pattern_fixture.h"

TEST(counter_gives_numbers)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "GET /v1/counters/x", NULL, 404, "no-such-counter");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", NULL, 200, "{\"value\":1}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{}", 200, "{\"value\":2}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"by\":5}", 200, "{\"value\":7}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"block\":10}", 200, "{\"first\":8,\"last\":17}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"by\":-3}", 200, "{\"value\":14}");
    CHECK_ASKS(&patterns, "GET /v1/counters/x", NULL, 200, "{\"value\":14}");
    CHECK_ASKS(&patterns, "POST /v1/counters/a%2Fb", "{\"start\":100}", 200, "{\"value\":100}");
    CHECK_ASKS(&patterns, "POST /v1/counters/a%2Fb", "{\"start\":100}", 200, "{\"value\":101}");
    CHECK_ASKS(&patterns, "POST /v1/counters/blocks", "{\"start\":100,\"block\":10}", 200,
               "{\"first\":100,\"last\":109}");
    CHECK_ASKS(&patterns, "POST /v1/counters/fives", "{\"start\":100,\"by\":5,\"max\":100}", 200,
               "{\"value\":100}");
    with_header(&patterns, "Idempotency-Key", "k");
    CHECK_ASKS(&patterns, "POST /v1/counters/keyed", "{\"start\":0}", 200, "{\"value\":0}");
    CHECK_ASKS(&patterns, "POST /v1/counters/zero", "{\"start\":0}", 200, "{\"value\":0}");
    CHECK_ASKS(&patterns, "PUT /v1/counters/x", "{\"value\":3}", 200, "{\"value\":3}");
    CHECK_ASKS(&patterns, "DELETE /v1/counters/x", NULL, 200, "{\"deleted\":true}");
    CHECK_REFUSES(&patterns, "DELETE /v1/counters/x", NULL, 404, "no-such-counter");
    patterns_close(&patterns);
}

TEST(counter_stops_at_its_limits)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"max\":2}", 200, "{\"value\":1}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"max\":2}", 200, "{\"value\":2}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"max\":2}", 409,
               "{\"error\":\"limit-reached\",\"message\":\"The counter stands at 2; its next value would "
               "pass the given max.\",\"value\":2}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"by\":-2,\"min\":0}", 200, "{\"value\":0}");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":-2,\"min\":0}", 409, "limit-reached");
    CHECK_REFUSES(&patterns, "POST /v1/counters/y", "{\"by\":3,\"max\":2}", 409, "limit-reached");
    CHECK_REFUSES(&patterns, "GET /v1/counters/y", NULL, 404, "no-such-counter");
    patterns_close(&patterns);
}

TEST(counter_repeats_the_number_of_a_key)
{
    struct patterns patterns;
    patterns_open(&patterns);
    for (int i = 0; i < 3; i++) {
        with_header(&patterns, "Idempotency-Key", "a");
        CHECK_ASKS(&patterns, "POST /v1/counters/x", NULL, 200, "{\"value\":1}");
    }
    with_header(&patterns, "idempotency-key", "b");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"block\":2,\"max\":3}", 200, "{\"first\":2,\"last\":3}");
    with_header(&patterns, "Idempotency-Key", "b"); /* at the limit, and still its own */
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"block\":2,\"max\":3}", 200, "{\"first\":2,\"last\":3}");
    with_header(&patterns, "Idempotency-Key", "c");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"max\":3}", 409, "limit-reached");
    with_header(&patterns, "Idempotency-Key", "a");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":2}", 422, "key-reused");
    with_header(&patterns, "Idempotency-Key", "a");
    CHECK_ASKS(&patterns, "POST /v1/counters/y", NULL, 200, "{\"value\":1}");
    patterns_close(&patterns);
}

/* What a removed counter has given is nothing to the one that is made anew. */
TEST(counter_keys_go_with_the_counter)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/counters/x", "{\"by\":7}");
    with_header(&patterns, "Idempotency-Key", "a");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", NULL, 200, "{\"value\":8}");
    asks(&patterns, "PUT /v1/counters/x", "{\"value\":20}");
    with_header(&patterns, "Idempotency-Key", "a"); /* set, it is still the same one */
    CHECK_ASKS(&patterns, "POST /v1/counters/x", NULL, 200, "{\"value\":8}");
    CHECK_ASKS(&patterns, "DELETE /v1/counters/x", NULL, 200, "{\"deleted\":true}");
    for (int i = 0; i < 2; i++) {
        with_header(&patterns, "Idempotency-Key", "a");
        CHECK_ASKS(&patterns, "POST /v1/counters/x", NULL, 200, "{\"value\":1}");
    }
    CHECK_ASKS(&patterns, "GET /v1/counters/x", NULL, 200, "{\"value\":1}");
    patterns_close(&patterns);
}

TEST(counter_refuses_what_makes_no_sense)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":0}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":1,\"block\":1}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"block\":0}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":1.5}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":\"1\"}", 400, "bad-request");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"bye\":1}", 400, "bad-request");
    CHECK_ASKS(
        &patterns, "POST /v1/counters/x?by=7", NULL, 400,
        "{\"error\":\"bad-request\",\"message\":\"The query has a parameter that is not known here: by; it "
        "belongs in the body.\"}");
    CHECK_REFUSES(&patterns, "GET /v1/counters/x?bye=7", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "GET /v1/counters/x?%ff=7", NULL, 400, "bad-request");
    CHECK_ASKS(
        &patterns, "GET /v1/counters/x?\xff\xfe=7", NULL, 400,
        "{\"error\":\"bad-request\",\"message\":\"The query has a parameter that is not known here: (no "
        "UTF-8).\"}");
    CHECK_REFUSES(&patterns, "GET /v1/counters/x?&cost", NULL, 404, "no-such-counter");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "[]", 400, "bad-json");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "nonsense", 400, "bad-json");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":}", 400, "bad-json");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x%0a", NULL, 400, "bad-request");
    CHECK_REFUSES(&patterns, "PATCH /v1/counters/x", NULL, 405, "wrong-method");
    CHECK_REFUSES(&patterns, "POST /v1/counter/x", NULL, 404, "no-such-route");
    CHECK_REFUSES(&patterns, "GET /v1/counters/x", NULL, 404, "no-such-counter");
    patterns_close(&patterns);
}

/* As another program may do it. */
static void put_value(struct patterns *patterns, const char *value)
{
    struct slice request = arena_printf(
        &patterns->arena, "{\"TableName\":\"%scounters\",\"Item\":{\"name\":{\"S\":\"x\"},\"value\":%s}}",
        patterns->prefix, value);
    struct buf reply = {0};
    CHECK_INT(dynamo_call(patterns->dynamo, SLICE("PutItem"), request, &reply), 200);
    buf_free(&reply);
}

TEST(counter_refuses_what_is_no_number)
{
    static const char *const values[] = {"{\"S\":\"a\"}", "{\"L\":[]}"};
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/counters/x", NULL);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        put_value(&patterns, values[i]);
        CHECK_REFUSES(&patterns, "GET /v1/counters/x", NULL, 409, "no-whole-number");
        CHECK_REFUSES(&patterns, "POST /v1/counters/x", NULL, 409, "no-whole-number");
        CHECK_REFUSES(&patterns, "GET /counter?systemKey=x", NULL, 409, "no-whole-number");
        with_header(&patterns, "Idempotency-Key", "a");
        CHECK_REFUSES(&patterns, "POST /v1/counters/x", NULL, 409, "no-whole-number");
    }
    patterns_close(&patterns);
}

TEST(counter_tells_its_cost)
{
    struct patterns patterns;
    patterns_open(&patterns);
    asks(&patterns, "POST /v1/counters/x", NULL);
    CHECK_ASKS(&patterns, "POST /v1/counters/x?cost=1", NULL, 200,
               "{\"value\":2,\"cost\":{\"writeUnits\":1,\"readUnits\":0,\"calls\":1,"
               "\"dollarsPerMillion\":0.625}}");
    with_header(&patterns, "Idempotency-Key", "a");
    asks(&patterns, "POST /v1/counters/x", NULL);
    with_header(&patterns, "Idempotency-Key", "b");
    CHECK_ASKS(&patterns, "POST /v1/counters/x?cost=1", NULL, 200,
               "{\"value\":4,\"cost\":{\"writeUnits\":3,\"readUnits\":1,\"calls\":4,"
               "\"dollarsPerMillion\":2}}");
    with_header(&patterns, "Idempotency-Key", "b");
    CHECK_ASKS(&patterns, "POST /v1/counters/x?cost=1", NULL, 200,
               "{\"value\":4,\"cost\":{\"writeUnits\":0,\"readUnits\":2,\"calls\":2,"
               "\"dollarsPerMillion\":0.25}}");
    patterns_close(&patterns);
}

/* Beyond 2^53 - 1 a client that reads numbers as doubles would be told the same number twice. */
TEST(counters_end_where_json_is_not_exact_any_more)
{
    struct patterns patterns;
    patterns_open(&patterns);
    CHECK_ASKS(&patterns, "POST /v1/counters/x", "{\"start\":9007199254740990}", 200,
               "{\"value\":9007199254740990}");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":2}", 409, "limit-reached");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"block\":2}", 409, "limit-reached");
    with_header(&patterns, "Idempotency-Key", "k");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", "{\"by\":9007199254740991}", 409, "limit-reached");
    CHECK_ASKS(&patterns, "GET /v1/counters/x", NULL, 200, "{\"value\":9007199254740990}");
    CHECK_ASKS(&patterns, "POST /v1/counters/x", NULL, 200, "{\"value\":9007199254740991}");
    CHECK_REFUSES(&patterns, "POST /v1/counters/x", NULL, 409, "limit-reached");
    CHECK_ASKS(&patterns, "GET /counter?systemKey=x", NULL, 409,
               "{\"error\":\"limit-reached\",\"message\":\"The counter stands at 9007199254740991; counters "
               "end at 9007199254740991 (2^53 - 1), beyond which JSON's numbers are not exact.\","
               "\"value\":9007199254740991}");
    CHECK_ASKS(&patterns, "GET /v1/counters/x", NULL, 200, "{\"value\":9007199254740991}");
    CHECK_ASKS(&patterns, "PUT /v1/counters/z", "{\"value\":9007199254740990}", 200,
               "{\"value\":9007199254740990}");
    CHECK_ASKS(&patterns, "GET /counter?systemKey=z", NULL, 200, "9007199254740991");
    CHECK_REFUSES(&patterns, "GET /counter?systemKey=z", NULL, 409, "limit-reached");
    CHECK_ASKS(&patterns, "POST /v1/counters/y", "{\"by\":-1,\"start\":-9007199254740991}", 200,
               "{\"value\":-9007199254740991}");
    CHECK_REFUSES(&patterns, "POST /v1/counters/y", "{\"by\":-1}", 409, "limit-reached");
    CHECK_REFUSES(&patterns, "POST /v1/counters/y", "{\"start\":9007199254740992}", 400, "bad-request");
    patterns_close(&patterns);
}
