/* Which ends of an attempt are tried again, after which pause, and which remedies there are. */
#include "dynamo/internal.h"
#include "unit/test.h"

static bool is_due(enum attempt_end end, int status, const char *error, unsigned number)
{
    return retry_is_due(
        &(struct attempt){.end = end, .status = status, .error = slice_of(error), .number = number}, 10);
}

TEST(replies_that_are_tried_again)
{
    static const char *const passing[] = {
        "ProvisionedThroughputExceededException", "ThrottlingException",    "RequestLimitExceeded",
        "TransactionInProgressException",         "LimitExceededException", "Throttling",
    };
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        CHECK(is_due(ATTEMPT_ANSWERED, 400, passing[i], 1));
    CHECK(is_due(ATTEMPT_ANSWERED, 500, "InternalServerError", 1));
    CHECK(is_due(ATTEMPT_ANSWERED, 502, "BadReplyException", 1));
    CHECK(is_due(ATTEMPT_ANSWERED, 503, "ServiceUnavailable", 1));
    CHECK(is_due(ATTEMPT_ANSWERED, 504, "", 1));
    CHECK(is_due(ATTEMPT_ANSWERED, 429, "", 1));
}

TEST(replies_that_are_final)
{
    static const char *const final[] = {
        "ValidationException",
        "ConditionalCheckFailedException",
        "ResourceNotFoundException",
        "ResourceInUseException",
        "TransactionCanceledException",
        "TransactionConflictException",
        "IdempotentParameterMismatchException",
        "ItemCollectionSizeLimitExceededException",
        "AccessDeniedException",
        "TrimmedDataAccessException",
        "ExpiredIteratorException",
    };
    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        CHECK(!is_due(ATTEMPT_ANSWERED, 400, final[i], 1));
    CHECK(!is_due(ATTEMPT_ANSWERED, 200, "", 1));
    CHECK(!is_due(ATTEMPT_ANSWERED, 404, "BadReplyException", 1));
    CHECK(!is_due(ATTEMPT_ANSWERED, 413, "RequestEntityTooLargeException", 1));
    CHECK(!is_due(ATTEMPT_ANSWERED, 501, "BadReplyException", 1));
}

TEST(faults_of_the_connection_are_tried_again)
{
    CHECK(is_due(ATTEMPT_BROKEN, 0, "", 1));
    CHECK(is_due(ATTEMPT_DAMAGED, 0, "", 1));
    CHECK(!is_due(ATTEMPT_REFUSED, 0, "", 1));
}

TEST(who_has_never_answered_is_tried_three_times)
{
    enum attempt_end ends[] = {ATTEMPT_UNCONNECTED, ATTEMPT_BROKEN};
    for (int i = 0; i < 2; i++) {
        struct attempt attempt = {.end = ends[i], .number = 2};
        CHECK(retry_is_due(&attempt, 10));
        attempt.number = 3;
        CHECK(!retry_is_due(&attempt, 10));
        attempt.endpoint_has_answered = true;
        CHECK(retry_is_due(&attempt, 10));
    }
}

TEST(attempts_come_to_an_end)
{
    struct attempt broken = {.end = ATTEMPT_BROKEN, .number = 9, .endpoint_has_answered = true};
    CHECK(is_due(ATTEMPT_ANSWERED, 500, "", 9));
    CHECK(!is_due(ATTEMPT_ANSWERED, 500, "", 10));
    CHECK(retry_is_due(&broken, 10));
    broken.number = 10;
    CHECK(!retry_is_due(&broken, 10));
    CHECK(!retry_is_due(&(struct attempt){.end = ATTEMPT_BROKEN, .number = 1}, 1));
}

/* The longest pause: the bits just below the bound, which is a remainder's modulus less one. */
static int64_t longest_pause_us(unsigned number)
{
    int64_t longest = 0,
            bounds[] = {50000, 100000, 200000, 400000, 800000, 1600000, 3200000, 6400000, 12800000, 20000000};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        int64_t pause = retry_pause_us(number, (uint64_t)bounds[i]);
        if (pause > longest) longest = pause;
    }
    return longest;
}

TEST(pauses_double_up_to_twenty_seconds)
{
    CHECK_INT(longest_pause_us(1), 50000);
    CHECK_INT(longest_pause_us(2), 100000);
    CHECK_INT(longest_pause_us(5), 800000);
    CHECK_INT(longest_pause_us(9), 12800000);
    CHECK_INT(longest_pause_us(10), 20000000);
    CHECK_INT(longest_pause_us(4000000000u), 20000000);
}

TEST(pauses_are_spread_from_nothing_to_the_bound)
{
    struct random random;
    int64_t sum = 0, least = INT64_MAX, most = 0;
    random_seed(&random, 7);
    for (int i = 0; i < 10000; i++) {
        int64_t pause = retry_pause_us(3, random_next(&random));
        CHECK(pause >= 0 && pause <= 200000);
        sum += pause;
        if (pause < least) least = pause;
        if (pause > most) most = pause;
    }
    CHECK(least < 1000 && most > 199000);
    CHECK(sum / 10000 > 97000 && sum / 10000 < 103000);
    CHECK_INT(retry_pause_us(1, 0), 0);
}

TEST(errors_that_ask_for_new_keys)
{
    CHECK(retry_wants_new_keys(SLICE("ExpiredTokenException")));
    CHECK(retry_wants_new_keys(SLICE("UnrecognizedClientException")));
    CHECK(!retry_wants_new_keys(SLICE("AccessDeniedException")));
    CHECK(!retry_wants_new_keys(SLICE("")));
}

TEST(a_clock_that_is_off_is_corrected_by_the_reply)
{
    struct slice date = SLICE("Sun, 15 Nov 2026 05:08:02 GMT"), error = SLICE("InvalidSignatureException");
    struct slice late = SLICE(
        "Signature expired: 20261115T040802Z is now earlier than 20261115T045302Z (...)");
    struct slice early = SLICE("Signature not yet current: 20261115T060802Z is still later than ...");
    int64_t theirs = 1794719282;
    CHECK_INT(retry_clock_offset_s(error, late, date, theirs - 3600), 3600);
    CHECK_INT(retry_clock_offset_s(error, early, date, theirs + 3600), -3600);
    CHECK_INT(retry_clock_offset_s(SLICE("RequestTimeTooSkewed"), SLICE(""), date, theirs - 3600), 3600);
    CHECK_INT(retry_clock_offset_s(error, late, date, theirs - 100), 0);
    CHECK_INT(
        retry_clock_offset_s(error, SLICE("The request signature we calculated ..."), date, theirs - 3600),
        0);
    CHECK_INT(retry_clock_offset_s(error, late, SLICE(""), theirs - 3600), 0);
    CHECK_INT(retry_clock_offset_s(error, late, SLICE("Sun, 15 anF 2026 05:08:02 GMT"), theirs - 3600), 0);
    CHECK_INT(retry_clock_offset_s(error, late, SLICE("2026-11-15T05:08:02Z"), theirs - 3600), 0);
}
