/* What the door's errors mean for who called, and whose fault a cancelled transaction is. */
#include <stdio.h>

#include "base/json.h"
#include "trigger/judge.h"

static const struct {
    const char *error;
    enum fault fault;
} faults[] = {
    {"ConditionalCheckFailedException", FAULT_CONDITION},
    {"TransactionCanceledException", FAULT_CANCELLED},
    {"ResourceNotFoundException", FAULT_MISSING},
    {"ExpiredIteratorException", FAULT_EXPIRED},
    {"TrimmedDataAccessException", FAULT_TRIMMED},
    {"ThrottlingException", FAULT_AGAIN},
    {"ProvisionedThroughputExceededException", FAULT_AGAIN},
    {"RequestLimitExceeded", FAULT_AGAIN},
    {"LimitExceededException", FAULT_AGAIN},
    {"ResourceInUseException", FAULT_AGAIN},
    {"TransactionConflictException", FAULT_AGAIN},
    {"ReplicatedWriteConflictException", FAULT_AGAIN},
    {"TransactionInProgressException", FAULT_UNKNOWN},
};

enum fault fault_of(int status, const char *error)
{
    if (status == 200) return FAULT_NONE;
    if (status == 0 || status >= 500 || !error) return FAULT_UNKNOWN;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (strcmp(error, faults[i].error) == 0) return faults[i].fault;
    return FAULT_REFUSED;
}

/* ---- cancelled transactions ---- */

static bool is_passing(struct slice code)
{
    return code.len == 0 || slice_equal(code, SLICE("None")) ||
           slice_equal(code, SLICE("TransactionConflict")) || slice_equal(code, SLICE("ThrottlingError")) ||
           slice_equal(code, SLICE("ProvisionedThroughputExceeded"));
}

/* {"Code":...,"Message":...} */
static bool read_reason(struct json_reader *reader, struct slice *code, struct slice *message)
{
    struct slice name;
    *code = *message = SLICE("");
    if (json_peek(reader) != JSON_OBJECT || !json_enter(reader)) return false;
    while (json_member(reader, &name)) {
        struct slice *to = slice_equal(name, SLICE("Code"))      ? code
                           : slice_equal(name, SLICE("Message")) ? message
                                                                 : NULL;
        bool is_text = to && json_peek(reader) == JSON_STRING;
        if (is_text ? !json_string(reader, to) : !json_skip(reader)) return false;
    }
    return !json_failed(reader);
}

static enum cancellation read_reasons(struct json_reader *reader, char *reason, size_t reason_len)
{
    struct slice code, message;
    enum cancellation result = CANCELLED_FOR_NOW;
    if (json_peek(reader) != JSON_ARRAY || !json_enter(reader)) return result;
    for (unsigned i = 0; json_element(reader) && read_reason(reader, &code, &message); i++) {
        if (is_passing(code) || result != CANCELLED_FOR_NOW) continue;
        result = i ? CANCELLED_BY_OTHERS : CANCELLED_BY_US;
        snprintf(reason, reason_len, "write %u: %.*s: %.*s", i, SLICE_ARG(code), SLICE_ARG(message));
    }
    return result;
}

enum cancellation cancellation_of(struct slice reply, struct arena *arena, char *reason, size_t reason_len)
{
    struct json_reader reader;
    struct slice name;
    enum cancellation result = CANCELLED_FOR_NOW;
    reason[0] = 0;
    json_begin(&reader, reply, arena);
    if (json_peek(&reader) != JSON_OBJECT || !json_enter(&reader)) return result;
    while (json_member(&reader, &name)) {
        if (slice_equal(name, SLICE("CancellationReasons")))
            result = read_reasons(&reader, reason, reason_len);
        else
            json_skip(&reader);
    }
    return result;
}
