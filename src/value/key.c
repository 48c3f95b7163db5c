/* Keys whose bytewise order is the order of the values, so that the store needs no comparator of its own.
 *
 * S and B: the bytes themselves, each zero byte followed by 0xff, then the end mark 0x00 0x01. The mark sorts
 * below any byte that could stand in its place, so the shorter of two comes first, and none begins another.
 *
 * N: a byte for the sign; unless zero, a byte for the exponent of the first digit (256 are possible) and the
 * digits in pairs, each shifted left by one bit, the low bit telling that another pair follows. More pairs
 * are more magnitude, so order holds without an end mark. In a negative number all bytes but the first are
 * inverted. */
#include "base/fail.h"
#include "value/internal.h"

#define ESCAPED_ZERO 0xff
#define END_MARK     0x01

#define SIGN_NEGATIVE 1
#define SIGN_ZERO     2
#define SIGN_POSITIVE 3
#define PAIRS_MAX     (LIMIT_NUMBER_DIGITS / 2)

_Static_assert(LIMIT_NUMBER_EXPONENT_MAX - LIMIT_NUMBER_EXPONENT_MIN == 255, "an exponent is one byte");
_Static_assert(LIMIT_NUMBER_DIGITS % 2 == 0, "digits stand in pairs");

static void put_escaped(struct buf *out, struct slice bytes)
{
    while (bytes.len) {
        const char *zero = memchr(bytes.data, 0, bytes.len);
        if (!zero) {
            buf_slice(out, bytes);
            return;
        }
        size_t run = (size_t)(zero - bytes.data) + 1;
        buf_put(out, bytes.data, run);
        buf_byte(out, ESCAPED_ZERO);
        bytes = slice_from(bytes, run);
    }
}

static void put_number(struct buf *out, struct slice canonical)
{
    struct decimal decimal;
    decimal_from_text(canonical, &decimal);
    if (decimal.count == 0) {
        buf_byte(out, SIGN_ZERO);
        return;
    }
    ensure(decimal.lead >= LIMIT_NUMBER_EXPONENT_MIN && decimal.lead <= LIMIT_NUMBER_EXPONENT_MAX);
    unsigned char flip = decimal.negative ? 0xff : 0;
    buf_byte(out, decimal.negative ? SIGN_NEGATIVE : SIGN_POSITIVE);
    buf_byte(out, (unsigned char)(decimal.lead - LIMIT_NUMBER_EXPONENT_MIN) ^ flip);
    for (unsigned i = 0; i < decimal.count; i += 2) {
        unsigned pair = decimal.digits[i] * 10u + (i + 1 < decimal.count ? decimal.digits[i + 1] : 0);
        buf_byte(out, (unsigned char)(pair << 1 | (i + 2 < decimal.count)) ^ flip);
    }
}

void key_encode(struct buf *out, const struct value *value)
{
    if (value->type == VALUE_N) {
        put_number(out, value->bytes);
        return;
    }
    ensure(value->type == VALUE_S || value->type == VALUE_B);
    put_escaped(out, value->bytes);
    buf_byte(out, 0);
    buf_byte(out, END_MARK);
}

void key_encode_prefix(struct buf *out, const struct value *value)
{
    ensure(value->type == VALUE_S || value->type == VALUE_B);
    put_escaped(out, value->bytes);
}

/* Length of the encoded bytes before the end mark and how many zeros are escaped among them; false without a
 * mark. */
static bool escaped_extent(struct slice from, size_t *len, size_t *zeros)
{
    *zeros = 0;
    for (size_t at = 0; at < from.len;) {
        const char *zero = memchr(from.data + at, 0, from.len - at);
        if (!zero) return false;
        *len = (size_t)(zero - from.data);
        if (*len + 1 == from.len) return false;
        unsigned char mark = (unsigned char)zero[1];
        if (mark == END_MARK) return true;
        if (mark != ESCAPED_ZERO) return false;
        ++*zeros;
        at = *len + 2;
    }
    return false;
}

static struct slice unescaped(struct arena *arena, struct slice escaped, size_t zeros)
{
    if (zeros == 0) return escaped;
    char *plain = arena_alloc(arena, escaped.len - zeros), *at = plain;
    for (size_t i = 0; i < escaped.len; i++) {
        *at++ = escaped.data[i];
        if (escaped.data[i] == 0) i++;
    }
    return (struct slice){plain, (size_t)(at - plain)};
}

static bool take_string(struct arena *arena, struct slice *from, struct slice *out)
{
    size_t len, zeros;
    if (!escaped_extent(*from, &len, &zeros)) return false;
    *out = unescaped(arena, (struct slice){from->data, len}, zeros);
    *from = slice_from(*from, len + 2);
    return true;
}

/* The pairs of digits; false unless they are just those that put_number would write. */
static bool take_pairs(struct slice *from, unsigned char flip, struct decimal *decimal)
{
    bool more = true;
    while (more) {
        if (from->len == 0 || decimal->count == 2 * PAIRS_MAX) return false;
        unsigned byte = (unsigned char)(from->data[0] ^ flip), pair = byte >> 1;
        *from = slice_from(*from, 1);
        more = byte & 1;
        if (pair > 99 || (!more && pair == 0) || (decimal->count == 0 && pair < 10)) return false;
        decimal->digits[decimal->count++] = (unsigned char)(pair / 10);
        decimal->digits[decimal->count++] = (unsigned char)(pair % 10);
    }
    if (decimal->digits[decimal->count - 1] == 0) decimal->count--;
    return true;
}

static bool take_number(struct arena *arena, struct slice *from, struct slice *out)
{
    if (from->len == 0) return false;
    char sign = from->data[0];
    *from = slice_from(*from, 1);
    struct decimal decimal = {.negative = sign == SIGN_NEGATIVE};
    if (sign != SIGN_ZERO) {
        if ((sign != SIGN_NEGATIVE && sign != SIGN_POSITIVE) || from->len == 0) return false;
        unsigned char flip = decimal.negative ? 0xff : 0;
        decimal.lead = (unsigned char)(from->data[0] ^ flip) + LIMIT_NUMBER_EXPONENT_MIN;
        *from = slice_from(*from, 1);
        if (!take_pairs(from, flip, &decimal)) return false;
    }
    *out = decimal_text(arena, &decimal);
    return true;
}

bool key_decode(struct arena *arena, struct slice *from, enum value_type type, struct value *out)
{
    ensure(type == VALUE_S || type == VALUE_N || type == VALUE_B);
    *out = (struct value){.type = type};
    return type == VALUE_N ? take_number(arena, from, &out->bytes) : take_string(arena, from, &out->bytes);
}

bool key_successor(struct buf *key)
{
    while (key->len && (unsigned char)key->data[key->len - 1] == 0xff) key->len--;
    if (key->len == 0) return false;
    key->data[key->len - 1]++;
    return true;
}
