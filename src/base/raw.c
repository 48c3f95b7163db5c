/* Raw JSON: parts of texts found, taken and read. Patterns look up most of what they know through these, and
 * every record of a trigger passes raw_take, so nothing is read twice that need not be. */
#include "base/raw.h"

/* Also of what is not there. */
static void begin(struct json_reader *reader, struct arena *arena, struct slice value)
{
    json_begin(reader, value.data ? value : SLICE(""), arena);
}

bool raw_take(struct json_reader *reader, struct slice *raw)
{
    json_peek(reader); /* over white space */
    const char *start = reader->at;
    bool fine = json_skip(reader);
    *raw = fine ? (struct slice){start, (size_t)(reader->at - start)} : SLICE_NONE;
    return fine;
}

bool raw_is_json(struct arena *arena, struct slice text)
{
    struct json_reader reader;
    begin(&reader, arena, text);
    return json_skip(&reader) && json_done(&reader);
}

/* ---- scalars ---- */

enum json_kind raw_kind(struct slice value)
{
    struct json_reader reader;
    begin(&reader, NULL, value);
    return json_peek(&reader);
}

struct slice raw_string(struct arena *arena, struct slice value)
{
    struct json_reader reader;
    struct slice text;
    begin(&reader, arena, value);
    return json_peek(&reader) == JSON_STRING && json_string(&reader, &text) ? text : SLICE_NONE;
}

struct slice raw_text(struct arena *arena, struct slice value)
{
    struct json_reader reader;
    struct slice text;
    begin(&reader, arena, value);
    enum json_kind kind = json_peek(&reader);
    if (kind == JSON_STRING) return json_string(&reader, &text) ? text : SLICE_NONE;
    if (kind == JSON_NUMBER) return json_number(&reader, &text) ? text : SLICE_NONE;
    return SLICE_NONE;
}

/* Most are a few digits and nothing else. */
static bool short_int(struct slice number, int64_t *out)
{
    int64_t value = 0;
    if (number.len > 18) return false;
    for (size_t i = 0; i < number.len; i++) {
        if (number.data[i] < '0' || number.data[i] > '9') return false;
        value = value * 10 + (number.data[i] - '0');
    }
    *out = value;
    return number.len > 0;
}

bool raw_int(struct slice number, int64_t *out)
{
    struct raw_digits digits;
    __int128 value = 0;
    if (short_int(number, out)) return true;
    if (!number.len) return false;
    raw_digits_read(number, &digits);
    if (digits.too_many || digits.exponent < 0 || digits.count + (uint64_t)digits.exponent > 19) return false;
    for (unsigned i = 0; i < digits.count; i++) value = value * 10 + (digits.digits[i] - '0');
    for (int64_t i = 0; i < digits.exponent; i++) value *= 10;
    if (digits.negative) value = -value;
    if (value < INT64_MIN || value > INT64_MAX) return false;
    *out = (int64_t)value;
    return true;
}

static int64_t exponent_read(const char *at, const char *end)
{
    bool negative = at < end && *at == '-';
    int64_t value = 0;
    if (at < end && (*at == '-' || *at == '+')) at++;
    for (; at < end && *at >= '0' && *at <= '9' && value < 100000; at++) value = value * 10 + (*at - '0');
    return negative ? -value : value;
}

void raw_digits_read(struct slice number, struct raw_digits *out)
{
    const char *at = number.data, *end = at + number.len;
    bool behind_point = false;
    int64_t zeros = 0; /* seen behind the last digit that counts */
    *out = (struct raw_digits){.negative = at < end && *at == '-'};
    if (out->negative) at++;
    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            behind_point = true;
            continue;
        }
        if (behind_point) out->exponent--;
        if (*at == '0') {
            zeros++;
            continue;
        }
        int64_t fill = out->count ? zeros : 0;
        zeros = 0;
        if ((int64_t)out->count + fill >= LIMIT_NUMBER_DIGITS) {
            out->too_many = true;
            return;
        }
        for (; fill > 0; fill--) out->digits[out->count++] = '0';
        out->digits[out->count++] = *at;
    }
    if (at < end) out->exponent += exponent_read(at + 1, end);
    out->exponent = out->count ? out->exponent + zeros : 0;
}

/* ---- objects and arrays ---- */

struct slice raw_member(struct arena *arena, struct slice object, const char *name)
{
    struct raw_walk walk;
    struct slice found, value, wanted = slice_of(name);
    if (raw_walk_begin(&walk, arena, object) != JSON_OBJECT) return SLICE_NONE;
    while (raw_walk_next(&walk, &found, &value))
        if (slice_equal(found, wanted)) return value;
    return SLICE_NONE;
}

bool raw_members(struct arena *arena, struct slice object, const char *const *names, struct slice *raws,
                 size_t count)
{
    struct raw_walk walk;
    struct slice name, raw;
    for (size_t i = 0; i < count; i++) raws[i] = SLICE_NONE;
    if (raw_walk_begin(&walk, arena, object) != JSON_OBJECT) return false;
    while (raw_walk_next(&walk, &name, &raw))
        for (size_t i = 0; i < count; i++)
            if (slice_equal(name, slice_of(names[i])))
                raws[i] = slice_equal(raw, SLICE("null")) ? SLICE_NONE : raw;
    return json_done(&walk.reader);
}

enum json_kind raw_walk_begin(struct raw_walk *walk, struct arena *arena, struct slice value)
{
    begin(&walk->reader, arena, value);
    enum json_kind kind = json_peek(&walk->reader);
    walk->is_object = kind == JSON_OBJECT;
    if (kind == JSON_OBJECT || kind == JSON_ARRAY)
        json_enter(&walk->reader);
    else
        json_fail(&walk->reader, "neither object nor array");
    return kind;
}

bool raw_walk_next(struct raw_walk *walk, struct slice *name, struct slice *value)
{
    struct slice unused;
    if (json_failed(&walk->reader)) return false;
    bool more = walk->is_object ? json_member(&walk->reader, name ? name : &unused)
                                : json_element(&walk->reader);
    return more && raw_take(&walk->reader, value);
}

size_t raw_count(struct arena *arena, struct slice value)
{
    struct raw_walk walk;
    struct slice element;
    size_t count = 0;
    raw_walk_begin(&walk, arena, value);
    while (raw_walk_next(&walk, NULL, &element)) count++;
    return count;
}
