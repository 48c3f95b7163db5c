/* Flags of triggers become members of Lambda's request. Ranges are the server's to judge; here is checked
 * only what would not become a number or JSON. */
#include "cli/trigger_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calendar/calendar.h"

#define NUMBER_MAX      1000000u
#define DURATION_MAX_MS (INT64_C(366) * 86400000)

static bool put_number(struct buf *out, const struct arguments *arguments, const char *flag,
                       const char *member)
{
    const char *text = argument_text(arguments, flag);
    unsigned long long number;
    if (!text) return true;
    bool is_negative = text[0] == '-';
    if (!slice_to_u64(slice_of(text + is_negative), NUMBER_MAX, &number))
        return complain_of_usage(arguments, "--%s should be a number, not '%s'", flag, text), false;
    put_name(out, member);
    buf_printf(out, "%s%llu", is_negative ? "-" : "", number);
    return true;
}

/* Whole seconds. */
static bool put_seconds(struct buf *out, const struct arguments *arguments, const char *flag,
                        const char *member)
{
    const char *text = argument_text(arguments, flag);
    int64_t ms;
    if (!text) return true;
    if (!duration_parse(slice_of(text), DURATION_MAX_MS, &ms) || ms % 1000)
        return complain_of_usage(arguments, "--%s should be whole seconds, like 10s or 5m, not '%s'", flag,
                                 text),
               false;
    put_name(out, member);
    buf_printf(out, "%lld", (long long)(ms / 1000));
    return true;
}

static bool put_filters(struct buf *out, const struct arguments *arguments, struct arena *arena)
{
    const char *fault;
    if (!argument_given(arguments, "filter")) return true;
    put_name(out, "FilterCriteria");
    buf_text(out, "{\"Filters\":[");
    for (size_t i = 0; argument_nth(arguments, "filter", i); i++) {
        const char *pattern = argument_nth(arguments, "filter", i);
        if (!node_parse(arena, slice_of(pattern), &fault))
            return complain_of_usage(arguments, "--filter should be JSON: %s in %s", fault, pattern), false;
        buf_slice(out, i ? SLICE(",{") : SLICE("{"));
        put_string_member(out, "Pattern", slice_of(pattern));
        buf_byte(out, '}');
    }
    buf_text(out, "]}");
    return true;
}

/* A bare name is that of a queue; the region and account of its ARN mean nothing here. */
static void put_destination(struct buf *out, const struct arguments *arguments, struct arena *arena)
{
    const char *where = argument_text(arguments, "on-failure");
    if (!where) return;
    struct slice destination = slice_of(where);
    if (!strchr(where, ':'))
        destination = arena_printf(arena, "arn:aws:sqs:us-east-1:000000000000:%s", where);
    put_name(out, "DestinationConfig");
    buf_text(out, "{\"OnFailure\":{");
    put_string_member(out, "Destination", destination);
    buf_text(out, "}}");
}

bool trigger_put_settings(struct buf *out, const struct arguments *arguments, struct arena *arena)
{
    bool fine = put_number(out, arguments, "batch", "BatchSize") &&
                put_seconds(out, arguments, "window", "MaximumBatchingWindowInSeconds") &&
                put_filters(out, arguments, arena) &&
                put_number(out, arguments, "lanes", "ParallelizationFactor") &&
                put_number(out, arguments, "retries", "MaximumRetryAttempts") &&
                put_seconds(out, arguments, "max-age", "MaximumRecordAgeInSeconds") &&
                put_seconds(out, arguments, "tumbling", "TumblingWindowInSeconds") &&
                put_number(out, arguments, "depth", "MaximumRecursionDepth");
    if (!fine) return false;
    if (argument_given(arguments, "bisect")) put_raw_member(out, "BisectBatchOnFunctionError", SLICE("true"));
    if (argument_given(arguments, "partial"))
        put_raw_member(out, "FunctionResponseTypes", SLICE("[\"ReportBatchItemFailures\"]"));
    put_destination(out, arguments, arena);
    return true;
}
