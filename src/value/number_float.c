/* Numbers as 32-bit floats: what vectors are made of. An index of vectors is filled from hundreds of millions of
 * texts, so the usual ones, of up to 19 digits, take one division; the others go the slow way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "value/internal.h"

#define FAST_DIGITS 19 /* fit 64 bits */
#define FAST_POWER  27

/* The bits of a double that a float has not, the pattern in the middle between two floats, and how many of the last
 * places may be wrong: digits, power and quotient are rounded once each. */
#define LOST_BITS  0x1fffffffu
#define MIDDLE     0x10000000u
#define WRONG_BITS 4

static bool slow_float(struct slice text, float *out)
{
    char copy[LIMIT_NUMBER_TEXT + 1];
    if (text.len > LIMIT_NUMBER_TEXT) return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = 0;
    *out = strtof(copy, NULL);
    return isfinite(*out);
}

bool number_to_float(struct slice canonical, float *out)
{
    static const double powers[FAST_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,
                                                  1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
                                                  1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27};
    const char *at = canonical.data, *end = at + canonical.len, *dot = NULL, *first = NULL;
    bool negative = at < end && *at == '-';
    uint64_t digits = 0, bits;
    at += negative;
    if (at == end) return false;
    for (; at < end; at++) {
        unsigned digit = (unsigned)(unsigned char)*at - '0';
        if (digit > 9) {
            if (*at != '.' || dot) return false;
            dot = at;
            continue;
        }
        digits = digits * 10 + digit;
        if (!first && digit) first = at;
    }
    size_t behind = dot ? (size_t)(end - dot) - 1 : 0;
    if ((first && end - first > FAST_DIGITS) || behind > FAST_POWER) return slow_float(canonical, out);
    double value = (double)digits / powers[behind];
    memcpy(&bits, &value, sizeof bits);
    uint32_t lost = (uint32_t)bits & LOST_BITS;
    if (lost + WRONG_BITS >= MIDDLE && lost <= MIDDLE + WRONG_BITS) return slow_float(canonical, out);
    *out = (float)(negative ? -value : value);
    return true;
}
