/* Arithmetic on numbers of up to 38 decimal digits.
 *
 * Why by hand: 10^38 - 1 fits an unsigned __int128, and the service needs only parsing, sum, difference and
 * order. It never rounds: a result that needs a 39th digit is refused, as its Java original does. Every
 * function leaves a number in normal form (no trailing zero in digits, zero is 0 * 10^0 and not negative).
 * Called by expr for updates and comparisons; text of numbers is in number_text.c. */
#include <limits.h>

#include "base/fail.h"
#include "value/internal.h"

#define TEN_18  ((unsigned __int128)1000000000000000000)
#define TENS(n) (n), (n)*10, (n)*100

static const unsigned __int128 power_of_ten[LIMIT_NUMBER_DIGITS + 1] = {
    TENS((unsigned __int128)1),
    TENS((unsigned __int128)1000),
    TENS((unsigned __int128)1000000),
    TENS((unsigned __int128)1000000000),
    TENS((unsigned __int128)1000000000000),
    TENS((unsigned __int128)1000000000000000),
    TENS(TEN_18),
    TENS(TEN_18 * 1000),
    TENS(TEN_18 * 1000000),
    TENS(TEN_18 * 1000000000),
    TENS(TEN_18 * 1000000000000),
    TENS(TEN_18 * 1000000000000000),
    TENS(TEN_18 * 1000000000000000000),
};

/* The digits seen so far. Zeros are held back until a digit other than zero follows them, so that neither
 * leading nor trailing ones count as significant. */
struct scan {
    unsigned __int128 digits;
    unsigned count;     /* of significant digits; stops growing when too many */
    long long held;     /* zeros since the last significant digit */
    long long fraction; /* digits behind the dot */
    bool any, too_many;
};

static void scan_digit(struct scan *scan, unsigned digit)
{
    scan->any = true;
    if (digit == 0) {
        scan->held += scan->count > 0;
        return;
    }
    if (scan->held >= LIMIT_NUMBER_DIGITS - (long long)scan->count) {
        scan->too_many = true;
        scan->held = 0;
        return;
    }
    scan->digits = scan->digits * power_of_ten[scan->held + 1] + digit;
    scan->count += (unsigned)scan->held + 1;
    scan->held = 0;
}

/* Digits with at most one dot; answers where they end. */
static const char *scan_mantissa(struct scan *scan, const char *at, const char *end)
{
    bool dot = false;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit <= 9) {
            scan_digit(scan, digit);
            scan->fraction += dot;
        } else if (*at == '.' && !dot) {
            dot = true;
        } else {
            break;
        }
    }
    return at;
}

/* The digits of an exponent up to the very end; false when there are none, others, or too many for 32 bits:
 * such a text is no number at all to the service, even where the mantissa is zero. */
static bool scan_exponent(const char *at, const char *end, long long *exponent)
{
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    long long value = 0;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) return false;
        value = value * 10 + (long long)digit;
        if (value > INT_MAX) return false;
    }
    *exponent = negative ? -value : value;
    return true;
}

static unsigned digit_count(unsigned __int128 value)
{
    uint64_t high = (uint64_t)(value >> 64), low = (uint64_t)value;
    unsigned bits = high ? 128 - (unsigned)__builtin_clzll(high) : 64 - (unsigned)__builtin_clzll(low | 1);
    unsigned guess = bits * 1233 >> 12; /* log10(2), right or one too small for up to 128 bits */
    return guess + (value >= power_of_ten[guess]);
}

/* Exponent of the first digit. */
static int number_lead(const struct number *number)
{
    return number->exponent + (int)digit_count(number->digits) - 1;
}

static enum number_fault range_check(const struct number *number)
{
    int lead = number_lead(number);
    if (lead > LIMIT_NUMBER_EXPONENT_MAX) return NUMBER_OVERFLOW;
    if (lead < LIMIT_NUMBER_EXPONENT_MIN) return NUMBER_UNDERFLOW;
    return NUMBER_OK;
}

enum number_fault number_parse(struct slice text, struct number *out)
{
    const char *at = text.data, *end = text.len ? at + text.len : at;
    struct scan scan = {0};
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    at = scan_mantissa(&scan, at, end);
    if (!scan.any) return NUMBER_MALFORMED;
    long long exponent = 0;
    if (at < end && (*at | 0x20) != 'e') return NUMBER_MALFORMED;
    if (at < end && !scan_exponent(at + 1, end, &exponent)) return NUMBER_MALFORMED;
    exponent -= scan.fraction;
    if (exponent < -INT_MAX) return NUMBER_MALFORMED;
    if (scan.too_many) return NUMBER_PRECISION;
    *out = (struct number){0};
    if (scan.count == 0) return NUMBER_OK;
    long long lead = exponent + scan.held + scan.count - 1;
    /* The service's own sum of digits and exponent turns negative here: seen of 1e2147483647. */
    if (lead + 1 > INT_MAX) return NUMBER_UNDERFLOW;
    if (lead > LIMIT_NUMBER_EXPONENT_MAX) return NUMBER_OVERFLOW;
    if (lead < LIMIT_NUMBER_EXPONENT_MIN) return NUMBER_UNDERFLOW;
    *out = (struct number){scan.digits, (int)(exponent + scan.held), negative};
    return NUMBER_OK;
}

/* Takes trailing zeros off; 64-bit division where it suffices, because that of 128 bits is a slow library
 * call. */
static void number_trim(struct number *number)
{
    if (number->digits == 0) {
        *number = (struct number){0};
        return;
    }
    while (number->digits >> 64 && number->digits % 10 == 0) {
        number->digits /= 10;
        number->exponent++;
    }
    if (number->digits >> 64) return;
    uint64_t low = (uint64_t)number->digits;
    for (; low % 10 == 0; low /= 10) number->exponent++;
    number->digits = low;
}

/* high * 10^shift for a sum with a number of at most 38 digits that ends in another digit than zero. False
 * when that sum cannot have 38 digits: the product has 40 digits, or 39 and begins with 2 or more, so that
 * not even the largest subtrahend brings it below 10^38. What passes is below 2 * 10^38, and sum and product
 * fit 128 bits. */
static bool shifted(unsigned __int128 high, int shift, unsigned __int128 *out)
{
    unsigned count = digit_count(high);
    if (shift > LIMIT_NUMBER_DIGITS + 1 - (int)count) return false;
    if (shift > LIMIT_NUMBER_DIGITS - (int)count && high >= 2 * power_of_ten[count - 1]) return false;
    *out = high * power_of_ten[shift];
    return true;
}

enum number_fault number_add(const struct number *a, const struct number *b, struct number *out)
{
    if (a->digits == 0 || b->digits == 0) {
        *out = a->digits ? *a : *b;
        return NUMBER_OK;
    }
    const struct number *high = a->exponent >= b->exponent ? a : b, *low = high == a ? b : a;
    unsigned __int128 upper, lower = low->digits;
    if (!shifted(high->digits, high->exponent - low->exponent, &upper)) return NUMBER_PRECISION;
    struct number sum = {.exponent = low->exponent, .negative = high->negative};
    if (high->negative == low->negative) {
        sum.digits = upper + lower;
    } else if (upper >= lower) {
        sum.digits = upper - lower;
    } else {
        sum.digits = lower - upper;
        sum.negative = low->negative;
    }
    number_trim(&sum);
    if (sum.digits >= power_of_ten[LIMIT_NUMBER_DIGITS]) return NUMBER_PRECISION;
    enum number_fault fault = sum.digits ? range_check(&sum) : NUMBER_OK;
    if (fault == NUMBER_OK) *out = sum;
    return fault;
}

enum number_fault number_subtract(const struct number *a, const struct number *b, struct number *out)
{
    struct number minus = *b;
    minus.negative = b->digits != 0 && !b->negative;
    return number_add(a, &minus, out);
}

/* Both not zero. Where the first digits stand equally high, the one with fewer digits is padded with zeros to
 * the length of the other, so both stay within 38. */
static int magnitude_compare(const struct number *a, const struct number *b)
{
    int lead_a = number_lead(a), lead_b = number_lead(b);
    if (lead_a != lead_b) return lead_a < lead_b ? -1 : 1;
    unsigned __int128 digits_a = a->digits, digits_b = b->digits;
    int shift = a->exponent - b->exponent;
    ensure(shift > -LIMIT_NUMBER_DIGITS && shift < LIMIT_NUMBER_DIGITS);
    if (shift > 0) digits_a *= power_of_ten[shift];
    if (shift < 0) digits_b *= power_of_ten[-shift];
    return (digits_a > digits_b) - (digits_a < digits_b);
}

static int number_sign(const struct number *number)
{
    return number->digits == 0 ? 0 : number->negative ? -1 : 1;
}

int number_compare(const struct number *a, const struct number *b)
{
    int sign_a = number_sign(a), sign_b = number_sign(b);
    if (sign_a != sign_b) return sign_a < sign_b ? -1 : 1;
    if (sign_a == 0) return 0;
    return sign_a * magnitude_compare(a, b);
}
