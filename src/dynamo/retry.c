/* What is tried again, and after which pause: the rules of AWS's own clients for DynamoDB, as pure functions
 * of what happened.
 *
 * Throttling, 5xx, lost connections and damaged replies are tried again; what the request itself is to blame
 * for (validation, conditions, conflicts, cancelled transactions) is not, since it would end the same way or
 * is for the caller to decide. Writes make no difference: like those clients we prefer a write that may be
 * done twice to one that may be lost, and give transactions a token (token.c) that makes the repeat harmless.
 *
 * The pause is random between nothing and a bound that doubles with each attempt ("full jitter"), so that
 * many callers who failed together do not come back together. */
#include <stdio.h>
#include <time.h>

#include "dynamo/internal.h"

#define PAUSE_FIRST_US    50000ll    /* bound of the first pause */
#define PAUSE_MAX_US      20000000ll /* of any */
#define STRANGER_MAX      3   /* attempts to reach somebody who has never answered: likely a wrong URL */
#define CLOCK_TOLERANCE_S 240 /* a difference that is no reason for a complaint */

static bool is_among(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(name, slice_of(names[i]))) return true;
    return false;
}

/* A conflict is for the caller to decide: it is told at once, not after a throttled request's pauses. */
static bool is_worth_another(int status, struct slice error)
{
    if (status == 429 || status == 500 || status == 502 || status == 503 || status == 504 || status == 509)
        return true;
    if (slice_equal(error, SLICE("ReplicatedWriteConflictException"))) return false;
    enum dynamo_fault fault = dynamo_fault(status, error);
    return status < 500 && error.len && (fault == DYNAMO_AGAIN || fault == DYNAMO_UNKNOWN);
}

bool retry_is_due(const struct attempt *attempt, unsigned attempts_max)
{
    if (attempt->number >= attempts_max) return false;
    switch (attempt->end) {
    case ATTEMPT_ANSWERED: return is_worth_another(attempt->status, attempt->error);
    case ATTEMPT_UNCONNECTED:
    case ATTEMPT_BROKEN: return attempt->endpoint_has_answered || attempt->number < STRANGER_MAX;
    case ATTEMPT_DAMAGED: return true;
    case ATTEMPT_REFUSED: return false;
    }
    return false;
}

int64_t retry_pause_us(unsigned number, uint64_t random_bits)
{
    return dynamo_pause_us(number, PAUSE_FIRST_US, PAUSE_MAX_US, random_bits);
}

bool retry_wants_new_keys(struct slice error)
{
    static const char *const names[] = {"ExpiredToken", "ExpiredTokenException",
                                        "UnrecognizedClientException", "InvalidClientTokenId"};
    return is_among(error, names, sizeof names / sizeof *names);
}

/* ---- a clock that is off ---- */

/* "Sun, 15 Nov 2026 04:59:54 GMT" -> seconds since 1970, or -1. By hand, for strptime follows the program's
 * language. */
static int64_t time_from_header(struct slice date)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char text[40], month[4];
    struct tm broken = {0};
    if (date.len >= sizeof text) return -1;
    memcpy(text, date.data, date.len);
    text[date.len] = '\0';
    if (sscanf(text, "%*3s, %2d %3s %4d %2d:%2d:%2d GMT", &broken.tm_mday, month, &broken.tm_year,
               &broken.tm_hour, &broken.tm_min, &broken.tm_sec) != 6)
        return -1;
    const char *at = strstr(months, month);
    if (!at || strlen(month) != 3 || (at - months) % 3) return -1;
    broken.tm_mon = (int)(at - months) / 3;
    broken.tm_year -= 1900;
    return (int64_t)timegm(&broken);
}

static bool complains_of_time(struct slice error, struct slice message)
{
    static const char *const names[] = {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"};
    if (is_among(error, names, sizeof names / sizeof *names)) return true;
    return slice_equal(error, SLICE("InvalidSignatureException")) &&
           (slice_starts(message, SLICE("Signature expired")) ||
            slice_starts(message, SLICE("Signature not yet current")));
}

int64_t retry_clock_offset_s(struct slice error, struct slice message, struct slice date, int64_t our_time_s)
{
    if (!complains_of_time(error, message)) return 0;
    int64_t theirs = time_from_header(date);
    if (theirs < 0) return 0;
    int64_t offset = theirs - our_time_s;
    return offset > CLOCK_TOLERANCE_S || offset < -CLOCK_TOLERANCE_S ? offset : 0;
}
