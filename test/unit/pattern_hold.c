/* Holds: whose an item is, and that clocks may differ. */
#include "pattern/hold.h"
#include "unit/pattern_fixture.h"

static enum dynamo_hold_state state_of(const char *item, const char *me, int64_t now_ms)
{
    struct arena arena = {0};
    struct dynamo_hold hold = dynamo_hold_read(&arena, slice_of(item));
    enum dynamo_hold_state state = dynamo_hold_state(&hold, slice_of(me), now_ms);
    arena_free(&arena);
    return state;
}

TEST(hold_is_judged_by_owner_and_end)
{
    static const char held[] = "{\"fence\":{\"N\":\"7\"},\"owner\":{\"S\":\"a\"},\"until\":{\"N\":\"1000\"}}";
    struct arena arena = {0};
    struct dynamo_hold hold = dynamo_hold_read(&arena, slice_of(held));
    CHECK_TEXT(hold.owner, "a");
    CHECK_INT(hold.fence, 7);
    CHECK_INT(hold.until_ms, 1000);
    arena_free(&arena);
    CHECK_INT(state_of(held, "a", 1000), HOLD_IS_MINE);
    CHECK_INT(state_of(held, "b", 1000), HOLD_IS_ANOTHERS);
    CHECK_INT(state_of(held, "a", 1001), HOLD_IS_FREE);
    CHECK_INT(state_of("{\"fence\":{\"N\":\"7\"},\"until\":{\"N\":\"1000\"}}", "a", 0), HOLD_IS_FREE);
    CHECK_INT(state_of("", "a", 0), HOLD_IS_FREE);
    /* one without a name holds it, too */
    CHECK_INT(state_of("{\"owner\":{\"S\":\"\"},\"until\":{\"N\":\"1000\"}}", "b", 0), HOLD_IS_ANOTHERS);
}

/* The clock of whoever comes next may be ahead by the skew: it must wait that much longer than the holder knows. */
TEST(hold_ends_later_than_its_owner_is_told)
{
    struct patterns patterns;
    patterns_open(&patterns);
    pattern_close(patterns.pattern);
    patterns.pattern = pattern_open(&(struct pattern_options){.dynamo = patterns.dynamo,
                                                              .clock = &patterns.clock,
                                                              .prefix = patterns.prefix,
                                                              .skew_ms = 500,
                                                              .seed = 1});
    asks(&patterns, "POST /v1/work/q/a", "{}");
    CHECK_ASKS(&patterns, "POST /v1/leases/x", "{\"owner\":\"a\",\"for\":\"10s\"}", 200,
               "{\"fence\":1,\"until\":\"2054-11-15T04:13:35.340Z\"}");
    CHECK(slice_contains(asks(&patterns, "POST /v1/work/q/claim", "{\"owner\":\"a\",\"for\":\"10s\"}"),
                         SLICE("\"until\":\"2054-11-15T04:13:35.340Z\"")));
    patterns.now_ms += 10500;
    CHECK_REFUSES(&patterns, "POST /v1/leases/x", "{\"owner\":\"b\"}", 409, "held");
    CHECK_ASKS(&patterns, "POST /v1/work/q/claim", "{\"owner\":\"b\"}", 204, "");
    patterns.now_ms += 1;
    asks(&patterns, "POST /v1/leases/x", "{\"owner\":\"b\"}");
    CHECK_INT(patterns.call.status, 200);
    CHECK(slice_contains(asks(&patterns, "POST /v1/work/q/claim", "{\"owner\":\"b\",\"for\":\"1s\"}"),
                         SLICE("\"until\":\"2054-11-15T04:13:36.841Z\"")));
    CHECK(slice_contains(asks(&patterns, "POST /v1/work/q/a/beat", "{\"fence\":2,\"for\":\"5s\"}"),
                         SLICE("\"until\":\"2054-11-15T04:13:40.841Z\"")));
    patterns_close(&patterns);
}
