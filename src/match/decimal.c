/* Numbers of events and patterns, compared as the decimals that they are written as.
 *
 * The service compares doubles and refuses in patterns what a double cannot hold; here 0.1 + 0.2 is 0.3 and
 * numbers of 38 digits, which DynamoDB has, keep their order. Nothing is converted: both texts are walked
 * digit by digit. */
#include <ctype.h>

#include "match/internal.h"

/* Beyond every exponent that digits in memory could balance, and far from overflowing. */
#define EXPONENT_MAX ((int64_t)1 << 48)

static int64_t exponent_read(const char *at, const char *end)
{
    int64_t value = 0;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    for (; at < end; at++)
        if (value < EXPONENT_MAX) value = value * 10 + (*at - '0');
    return negative ? -value : value;
}

struct decimal decimal_read(struct slice text)
{
    struct decimal decimal = {0};
    const char *at = text.data, *end = at + text.len;
    if (at < end && *at == '-') {
        decimal.negative = true;
        at++;
    }
    const char *mark = at, *point = NULL;
    for (; mark < end && (isdigit((unsigned char)*mark) || *mark == '.'); mark++)
        if (*mark == '.') point = mark;
    if (!point) point = mark;
    const char *last = mark;
    while (at < last && (*at == '0' || *at == '.')) at++;
    while (last > at && (last[-1] == '0' || last[-1] == '.')) last--;
    if (at == last) return (struct decimal){0};
    decimal.first = at;
    decimal.end = last;
    decimal.exponent = at < point ? point - at : point + 1 - at;
    if (mark < end) decimal.exponent += exponent_read(mark + 1, end);
    return decimal;
}

static int digit_next(const char **at, const char *end)
{
    if (*at < end && **at == '.') (*at)++;
    return *at < end ? *(*at)++ : '0';
}

static int magnitude_compare(const struct decimal *a, const struct decimal *b)
{
    if (a->exponent != b->exponent) return a->exponent < b->exponent ? -1 : 1;
    const char *of_a = a->first, *of_b = b->first;
    while (of_a < a->end || of_b < b->end) {
        int digit_a = digit_next(&of_a, a->end), digit_b = digit_next(&of_b, b->end);
        if (digit_a != digit_b) return digit_a < digit_b ? -1 : 1;
    }
    return 0;
}

static int sign(const struct decimal *decimal)
{
    if (decimal->first == decimal->end) return 0;
    return decimal->negative ? -1 : 1;
}

int decimal_compare(const struct decimal *a, const struct decimal *b)
{
    int sign_a = sign(a), sign_b = sign(b);
    if (sign_a != sign_b) return sign_a < sign_b ? -1 : 1;
    return sign_a * magnitude_compare(a, b);
}
