/* What an error means for whoever called: the one table of errors for the doors, patterns, functions, triggers and the
 * command line; why a transaction was cancelled; and how long to wait before another try. */
#include "base/raw.h"
#include "dynamo/internal.h"

/* X(the exception's short name, what it means). Codes of a transaction's reasons stand here, too. */
#define ERRORS(X)                                                                                            \
    X("BandwidthLimitExceeded", AGAIN)                                                                       \
    X("LimitExceededException", AGAIN)                                                                       \
    X("PriorRequestNotComplete", AGAIN)                                                                      \
    X("ProvisionedThroughputExceeded", AGAIN)                                                                \
    X("ProvisionedThroughputExceededException", AGAIN)                                                       \
    X("ReplicatedWriteConflictException", AGAIN)                                                             \
    X("RequestLimitExceeded", AGAIN)                                                                         \
    X("RequestThrottled", AGAIN)                                                                             \
    X("RequestThrottledException", AGAIN)                                                                    \
    X("ResourceInUseException", IN_USE)                                                                      \
    X("SlowDown", AGAIN)                                                                                     \
    X("ThrottledException", AGAIN)                                                                           \
    X("Throttling", AGAIN)                                                                                   \
    X("ThrottlingError", AGAIN)                                                                              \
    X("ThrottlingException", AGAIN)                                                                          \
    X("TooManyRequestsException", AGAIN)                                                                     \
    X("TransactionConflict", CONFLICT)                                                                       \
    X("TransactionConflictException", CONFLICT)                                                              \
    X("InternalFailure", UNKNOWN)                                                                            \
    X("InternalServerError", UNKNOWN)                                                                        \
    X("NoReplyException", UNKNOWN)                                                                           \
    X("RequestTimeout", UNKNOWN)                                                                             \
    X("RequestTimeoutException", UNKNOWN)                                                                    \
    X("ServiceUnavailable", UNKNOWN)                                                                         \
    X("TransactionInProgressException", UNKNOWN)                                                             \
    X("ConditionalCheckFailed", CONDITION)                                                                   \
    X("ConditionalCheckFailedException", CONDITION)                                                          \
    X("TransactionCanceledException", CANCELLED)                                                             \
    X("ResourceNotFoundException", MISSING)                                                                  \
    X("ExpiredIteratorException", EXPIRED)                                                                   \
    X("TrimmedDataAccessException", TRIMMED)

static enum dynamo_fault fault_by_name(struct slice error, enum dynamo_fault otherwise)
{
#define X(name, meaning)                                                                                     \
    if (slice_equal(error, SLICE(name))) return DYNAMO_##meaning;
    ERRORS(X)
#undef X
    return otherwise;
}

enum dynamo_fault dynamo_fault(int status, struct slice error)
{
    if (status == 200) return DYNAMO_FINE;
    bool is_unsure = status == 0 || status == 429 || status >= 500 || !error.len;
    return fault_by_name(error, is_unsure ? DYNAMO_UNKNOWN : DYNAMO_REFUSED);
}

bool dynamo_fault_may_pass(enum dynamo_fault fault)
{
    return fault == DYNAMO_AGAIN || fault == DYNAMO_CONFLICT || fault == DYNAMO_UNKNOWN;
}

struct dynamo_cancellation dynamo_cancellation(struct slice reply, struct arena *arena)
{
    struct dynamo_cancellation result = {.first = -1};
    struct raw_walk walk;
    struct slice reason;
    raw_walk_begin(&walk, arena, raw_member(arena, reply, "CancellationReasons"));
    for (int number = 0; raw_walk_next(&walk, NULL, &reason); number++) {
        struct slice code = raw_string(arena, raw_member(arena, reason, "Code"));
        if (!code.len || slice_equal(code, SLICE("None"))) continue;
        enum dynamo_fault fault = fault_by_name(code, DYNAMO_REFUSED);
        bool may_pass = dynamo_fault_may_pass(fault);
        result.may_pass |= may_pass;
        result.has_failed |= fault == DYNAMO_CONDITION;
        result.is_refused |= !may_pass && fault != DYNAMO_CONDITION;
        if (may_pass || result.first >= 0) continue;
        result.first = number;
        result.code = code;
        result.message = raw_string(arena, raw_member(arena, reason, "Message"));
    }
    return result;
}

int64_t dynamo_pause_us(unsigned failures, int64_t first_us, int64_t most_us, uint64_t random_bits)
{
    int64_t bound_us = first_us;
    for (unsigned i = 1; i < failures && bound_us < most_us; i++) bound_us *= 2;
    if (bound_us > most_us) bound_us = most_us;
    return (int64_t)(random_bits % (uint64_t)(bound_us + 1));
}
