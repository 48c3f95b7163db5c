/* The canonical text of numbers, and what can be learned from that text alone.
 *
 * Numbers travel and are stored as text, and most requests bring them in canonical form already; so the usual
 * case here is one pass over a few characters that answers the input itself. Order, billed size and key bytes
 * (key.c) are read off the text too. A number is parsed into 128 bits only for arithmetic or when its text
 * has to be rewritten. */
#include "base/fail.h"
#include "value/internal.h"

#define TEN_19 10000000000000000000u

/* Where the parts of canonical text stand. */
struct parts {
    struct slice whole;    /* digits before the dot; "0" when there are none of worth */
    struct slice fraction; /* digits behind it */
    bool negative;
};

static struct parts parts_of(struct slice canonical)
{
    ensure(canonical.len > 0);
    struct parts parts = {.negative = canonical.data[0] == '-'};
    struct slice rest = slice_from(canonical, parts.negative);
    parts.whole = (struct slice){rest.data, 0};
    while (parts.whole.len < rest.len && rest.data[parts.whole.len] != '.') parts.whole.len++;
    if (parts.whole.len < rest.len) parts.fraction = slice_from(rest, parts.whole.len + 1);
    return parts;
}

static bool whole_is_zero(const struct parts *parts)
{
    return parts->whole.data[0] == '0';
}

static void put_digits(char **at, const unsigned char *digits, unsigned count)
{
    for (unsigned i = 0; i < count; i++) *(*at)++ = (char)('0' + digits[i]);
}

static void put_zeros(char **at, int count)
{
    for (; count > 0; count--) *(*at)++ = '0';
}

/* Writes the text of one that is not zero and answers its length. */
static size_t decimal_write(const struct decimal *decimal, char text[LIMIT_NUMBER_TEXT])
{
    char *at = text;
    if (decimal->negative) *at++ = '-';
    int whole = decimal->lead + 1, count = (int)decimal->count;
    if (whole <= 0) {
        *at++ = '0';
        *at++ = '.';
        put_zeros(&at, -whole);
        put_digits(&at, decimal->digits, decimal->count);
    } else if (whole >= count) {
        put_digits(&at, decimal->digits, decimal->count);
        put_zeros(&at, whole - count);
    } else {
        put_digits(&at, decimal->digits, (unsigned)whole);
        *at++ = '.';
        put_digits(&at, decimal->digits + whole, (unsigned)(count - whole));
    }
    return (size_t)(at - text);
}

struct slice decimal_text(struct arena *arena, const struct decimal *decimal)
{
    if (decimal->count == 0) return SLICE("0");
    char text[LIMIT_NUMBER_TEXT];
    size_t len = decimal_write(decimal, text);
    return arena_copy(arena, (struct slice){text, len});
}

void decimal_from_text(struct slice canonical, struct decimal *out)
{
    struct parts parts = parts_of(canonical);
    out->negative = parts.negative;
    out->count = 0;
    out->lead = 0;
    unsigned held = 0; /* zeros not yet known to stand between digits */
    for (size_t i = 0; i < parts.whole.len + parts.fraction.len; i++) {
        bool before = i < parts.whole.len;
        char c = before ? parts.whole.data[i] : parts.fraction.data[i - parts.whole.len];
        if (c == '0') {
            held++;
            continue;
        }
        if (out->count == 0) {
            out->lead = (int)parts.whole.len - 1 - (int)i;
            held = 0;
        }
        ensure(out->count + held < LIMIT_NUMBER_DIGITS);
        for (; held; held--) out->digits[out->count++] = 0;
        out->digits[out->count++] = (unsigned char)(c - '0');
    }
}

/* The digits of a 64-bit part, right-aligned in 19 places. */
static void split_digits(uint64_t value, unsigned char *digits)
{
    for (int i = 18; i >= 0; i--) {
        digits[i] = (unsigned char)(value % 10);
        value /= 10;
    }
}

static void decimal_from_number(const struct number *number, struct decimal *out)
{
    unsigned char digits[2 * 19];
    bool wide = number->digits >= TEN_19; /* most are not, and 128-bit division is slow */
    if (wide) split_digits((uint64_t)(number->digits / TEN_19), digits);
    split_digits((uint64_t)(wide ? number->digits % TEN_19 : number->digits), digits + 19);
    unsigned first = wide ? 0 : 19;
    while (first < sizeof digits && digits[first] == 0) first++;
    out->count = (unsigned)sizeof digits - first;
    out->lead = number->exponent + (int)out->count - 1;
    out->negative = number->negative;
    memcpy(out->digits, digits + first, out->count);
}

struct slice number_text(struct arena *arena, const struct number *number)
{
    ensure(number->digits < (unsigned __int128)TEN_19 * TEN_19);
    struct decimal decimal;
    decimal_from_number(number, &decimal);
    return decimal_text(arena, &decimal);
}

/* A sure yes from one pass: at most 38 characters cannot have too many digits or leave the range. */
static bool is_short_canonical(struct slice text)
{
    if (text.len == 0 || text.len > LIMIT_NUMBER_DIGITS) return false;
    const char *at = text.data, *end = at + text.len;
    bool negative = *at == '-';
    at += negative;
    if (at == end) return false;
    const char *whole = at;
    while (at < end && *at >= '0' && *at <= '9') at++;
    if (at == whole || (*whole == '0' && at - whole > 1)) return false;
    if (at == end) return !(negative && *whole == '0');
    if (*at++ != '.' || at == end) return false;
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at == end && end[-1] != '0';
}

enum number_fault number_canonical(struct arena *arena, struct slice text, struct slice *out)
{
    if (is_short_canonical(text)) {
        *out = text;
        return NUMBER_OK;
    }
    struct number number;
    enum number_fault fault = number_parse(text, &number);
    if (fault == NUMBER_OK) *out = number_text(arena, &number);
    return fault;
}

bool number_is_canonical(struct slice text)
{
    if (is_short_canonical(text)) return true;
    if (text.len <= LIMIT_NUMBER_DIGITS || text.len > LIMIT_NUMBER_TEXT) return false;
    struct number number;
    if (number_parse(text, &number) != NUMBER_OK || number.digits == 0) return false;
    struct decimal decimal;
    decimal_from_number(&number, &decimal);
    char again[LIMIT_NUMBER_TEXT];
    size_t len = decimal_write(&decimal, again);
    return slice_equal(text, (struct slice){again, len});
}

size_t number_size(struct slice canonical)
{
    size_t digits = 0;
    while (digits < canonical.len && canonical.data[digits] >= '0') digits++;
    if (digits == canonical.len && digits && canonical.data[digits - 1] != '0') return 1 + (digits + 1) / 2;
    struct parts parts = parts_of(canonical);
    size_t whole_pairs = (parts.whole.len + 1) / 2, fraction_pairs = (parts.fraction.len + 1) / 2, zeros = 0;
    if (parts.fraction.len == 0) {
        if (whole_is_zero(&parts)) return 1;
        while (parts.whole.data[parts.whole.len - 1 - zeros] == '0') zeros++;
        whole_pairs -= zeros / 2;
    } else if (whole_is_zero(&parts)) {
        whole_pairs = 0;
        while (parts.fraction.data[zeros] == '0') zeros++;
        fraction_pairs -= zeros / 2;
    }
    return 1 + whole_pairs + fraction_pairs + parts.negative;
}

/* Without needless zeros more digits before the dot mean a larger magnitude, and equally many compare like
 * text; so do the fractions. Negative numbers swap places. */
int number_text_compare(struct slice a, struct slice b)
{
    uint32_t small_a, small_b;
    if (small_whole(a, &small_a) && small_whole(b, &small_b))
        return (small_a > small_b) - (small_a < small_b);
    struct parts parts_a = parts_of(a), parts_b = parts_of(b);
    if (parts_a.negative != parts_b.negative) return parts_a.negative ? -1 : 1;
    const struct parts *less = parts_a.negative ? &parts_b : &parts_a,
                       *more = less == &parts_a ? &parts_b : &parts_a;
    if (less->whole.len != more->whole.len) return less->whole.len < more->whole.len ? -1 : 1;
    int order = slice_compare(less->whole, more->whole);
    return order ? order : slice_compare(less->fraction, more->fraction);
}
