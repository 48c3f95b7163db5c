/* What errors mean: one table for all who call. */
#include "dynamo/dynamo.h"
#include "unit/test.h"

TEST(errors_of_the_door_are_told_apart)
{
    static const struct {
        int status;
        const char *error;
        enum dynamo_fault fault;
    } cases[] = {
        {200, "", DYNAMO_FINE},
        {0, "NoReplyException", DYNAMO_UNKNOWN},
        {500, "InternalServerError", DYNAMO_UNKNOWN},
        {503, "ServiceUnavailable", DYNAMO_UNKNOWN},
        {502, "", DYNAMO_UNKNOWN},
        {400, "ConditionalCheckFailedException", DYNAMO_CONDITION},
        {400, "TransactionCanceledException", DYNAMO_CANCELLED},
        {400, "TransactionInProgressException", DYNAMO_UNKNOWN},
        {400, "TransactionConflictException", DYNAMO_CONFLICT},
        {400, "ThrottlingException", DYNAMO_AGAIN},
        {400, "ReplicatedWriteConflictException", DYNAMO_AGAIN},
        {400, "ResourceInUseException", DYNAMO_IN_USE},
        {400, "ResourceNotFoundException", DYNAMO_MISSING},
        {400, "ExpiredIteratorException", DYNAMO_EXPIRED},
        {400, "TrimmedDataAccessException", DYNAMO_TRIMMED},
        {400, "ValidationException", DYNAMO_REFUSED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_INT(dynamo_fault(cases[i].status, slice_of(cases[i].error)), cases[i].fault);
}

static struct dynamo_cancellation cancelled_by(struct arena *arena, const char *reasons)
{
    return dynamo_cancellation(
        arena_printf(arena, "{\"__type\":\"x\",\"CancellationReasons\":[%s]}", reasons), arena);
}

TEST(reasons_of_a_transaction_are_told_apart)
{
    struct arena arena = {0};
    struct dynamo_cancellation why = cancelled_by(&arena,
                                                  "{\"Code\":\"None\"},{\"Code\":\"TransactionConflict\"}");
    CHECK(why.may_pass && !why.has_failed && !why.is_refused && why.first == -1);
    why = cancelled_by(
        &arena, "{\"Code\":\"ThrottlingError\"},{\"Code\":\"ConditionalCheckFailed\",\"Message\":\"no\"}");
    CHECK(why.may_pass && why.has_failed && !why.is_refused && why.first == 1);
    CHECK_TEXT(why.message, "no");
    why = cancelled_by(&arena, "{\"Code\":\"ValidationError\"},{\"Code\":\"ConditionalCheckFailed\"}");
    CHECK(!why.may_pass && why.has_failed && why.is_refused && why.first == 0);
    CHECK_TEXT(why.code, "ValidationError");
    why = dynamo_cancellation(SLICE("{}"), &arena);
    CHECK(!why.may_pass && !why.has_failed && !why.is_refused && why.first == -1);
    arena_free(&arena);
}

TEST(pauses_double_up_to_their_bound)
{
    for (unsigned failures = 1; failures < 40; failures++) {
        int64_t bound = failures > 7 ? 6400 : 100ll << (failures - 1);
        CHECK_INT(dynamo_pause_us(failures, 100, 6400, (uint64_t)bound), bound);
        CHECK_INT(dynamo_pause_us(failures, 100, 6400, 0), 0);
        CHECK(dynamo_pause_us(failures, 100, 6400, UINT64_MAX) <= bound);
    }
}
