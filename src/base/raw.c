/* Raw JSON: parts of texts found, taken and read. Patterns look up most of what they know through these, and
 * every record of a trigger passes raw_take, so nothing is read twice that need not be. */
#include "base/raw.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SHORT_BYTES 32
#define BLOCK_BYTES 64 /* one bit each */

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

/* These answer where the text goes on, at its end where it breaks off. */
static const char *over_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
    return at;
}

/* From behind the opening quote to behind the closing one. Most strings are short: long ones are worth a
 * search. */
static const char *over_string(const char *at, const char *end)
{
    const char *near = end - at > SHORT_BYTES ? at + SHORT_BYTES : end, *quote;
    for (; at < near; at++) {
        if (*at == '"') return at + 1;
        if (*at == '\\') at++;
    }
    while (at < end && (quote = memchr(at, '"', (size_t)(end - at)))) {
        const char *escape = memchr(at, '\\', (size_t)(quote - at));
        if (!escape) return quote + 1;
        at = escape + 2;
    }
    return end;
}

static bool ends_scalar(char c)
{
    return c == ',' || c == ']' || c == '}' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

#ifdef __SSE2__
/* What stands where in a block, one bit for each byte. */
struct marks {
    uint64_t quotes, escapes, opens, closes;
};

static inline uint64_t marks_equal(__m128i a, __m128i b, __m128i c, __m128i d, char wanted)
{
    __m128i all = _mm_set1_epi8(wanted);
    unsigned low = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, all)) |
                   (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(b, all)) << 16;
    unsigned high = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(c, all)) |
                    (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(d, all)) << 16;
    return low | (uint64_t)high << 32;
}

static inline struct marks marks_of(const char *at)
{
    const __m128i *block = (const __m128i *)(const void *)at;
    __m128i a = _mm_loadu_si128(block), b = _mm_loadu_si128(block + 1), c = _mm_loadu_si128(block + 2),
            d = _mm_loadu_si128(block + 3), fold = _mm_set1_epi8(0x20);
    struct marks marks = {.quotes = marks_equal(a, b, c, d, '"'), .escapes = marks_equal(a, b, c, d, '\\')};
    a = _mm_or_si128(a, fold); /* '[' becomes '{', and ']' becomes '}' */
    b = _mm_or_si128(b, fold);
    c = _mm_or_si128(c, fold);
    d = _mm_or_si128(d, fold);
    marks.opens = marks_equal(a, b, c, d, '{');
    marks.closes = marks_equal(a, b, c, d, '}');
    return marks;
}

/* Each bit with all below it: ones from an opening quote to before the one that closes it. */
static inline uint64_t marks_within(uint64_t quotes)
{
    quotes ^= quotes << 1;
    quotes ^= quotes << 2;
    quotes ^= quotes << 4;
    quotes ^= quotes << 8;
    quotes ^= quotes << 16;
    return quotes ^ quotes << 32;
}

/* As far as whole blocks go without an escape, or to behind the bracket that brings the depth to 0. Where *in_string
 * says so it ends within a string. */
static const char *over_blocks(const char *at, const char *end, size_t *depth, bool *in_string)
{
    for (; end - at >= BLOCK_BYTES; at += BLOCK_BYTES) {
        struct marks marks = marks_of(at);
        uint64_t strings = marks_within(marks.quotes) ^ (*in_string ? UINT64_MAX : 0);
        if (marks.escapes) break;
        for (uint64_t left = (marks.opens | marks.closes) & ~strings; left; left &= left - 1) {
            *depth += marks.opens & left & -left ? 1 : (size_t)-1;
            if (*depth == 0) return at + __builtin_ctzll(left) + 1;
        }
        *in_string = strings >> 63;
    }
    return at;
}
#else
static const char *over_blocks(const char *at, const char *end, size_t *depth, bool *in_string)
{
    (void)end, (void)depth, (void)in_string;
    return at;
}
#endif

/* From behind the opening bracket to behind the one that closes it. */
static const char *over_nested(const char *at, const char *end)
{
    size_t depth = 1;
    while (at < end) {
        bool in_string = false;
        at = over_blocks(at, end, &depth, &in_string);
        if (depth == 0) return at;
        const char *stop = end - at > BLOCK_BYTES ? at + BLOCK_BYTES : end;
        if (in_string) at = over_string(at, end);
        while (at < stop) {
            char c = *at++;
            if (c == '"')
                at = over_string(at, end);
            else if (c == '{' || c == '[')
                depth++;
            else if ((c == '}' || c == ']') && --depth == 0)
                return at;
        }
    }
    return end;
}

static const char *over_value(const char *at, const char *end)
{
    if (at == end) return end;
    if (*at == '"') return over_string(at + 1, end);
    if (*at == '{' || *at == '[') return over_nested(at + 1, end);
    while (at < end && !ends_scalar(*at)) at++;
    return at;
}

void raw_look_begin(struct raw_look *look, struct arena *arena, struct slice value)
{
    struct slice text = value.data ? value : SLICE("");
    const char *end = text.data + text.len, *at = over_space(text.data, end);
    bool is_open = at < end && (*at == '{' || *at == '[');
    *look = (struct raw_look){is_open ? at + 1 : end, end, arena, is_open && *at == '{'};
}

/* A member's name and its colon. */
static bool look_name(struct raw_look *look, struct slice *name)
{
    const char *start = look->at, *end = look->end, *at = start + 1;
    if (start == end || *start != '"') return false;
    while (at < end && *at != '"' && *at != '\\') at++;
    *name = (struct slice){start + 1, (size_t)(at - start - 1)};
    bool has_escape = at < end && *at == '\\';
    const char *behind = has_escape ? over_string(at, end) : at + 1;
    if (behind >= end) return false;
    const char *colon = *behind == ':' ? behind : over_space(behind, end);
    if (colon == end || *colon != ':') return false;
    if (has_escape) *name = raw_string(look->arena, (struct slice){start, (size_t)(behind - start)});
    look->at = over_space(colon + 1, end);
    return name->data != NULL;
}

bool raw_look_next(struct raw_look *look, struct slice *name, struct slice *value)
{
    struct slice unused;
    look->at = over_space(look->at, look->end);
    if (look->at < look->end && *look->at == ',') look->at = over_space(look->at + 1, look->end);
    if (name) *name = SLICE("");
    if (look->is_object && !look_name(look, name ? name : &unused)) look->at = look->end;
    const char *behind = over_value(look->at, look->end);
    *value = (struct slice){look->at, (size_t)(behind - look->at)};
    look->at = value->len ? behind : look->end;
    return value->len > 0;
}

struct slice raw_member(struct arena *arena, struct slice object, const char *name)
{
    struct raw_look look;
    struct slice found, value, wanted = slice_of(name);
    raw_look_begin(&look, arena, object);
    while (look.is_object && raw_look_next(&look, &found, &value))
        if (slice_equal(found, wanted)) return value;
    return SLICE_NONE;
}

void raw_pick(struct arena *arena, struct slice object, const char *const *names, struct slice *raws,
              size_t count)
{
    struct raw_look look;
    struct slice name, value;
    for (size_t i = 0; i < count; i++) raws[i] = SLICE_NONE;
    raw_look_begin(&look, arena, object);
    while (look.is_object && raw_look_next(&look, &name, &value))
        for (size_t i = 0; i < count; i++)
            if (!raws[i].data && name.len && name.data[0] == names[i][0] &&
                slice_equal(name, slice_of(names[i]))) {
                raws[i] = value;
                break;
            }
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
    if (name) *name = SLICE("");
    if (json_failed(&walk->reader)) return false;
    bool more = walk->is_object ? json_member(&walk->reader, name ? name : &unused)
                                : json_element(&walk->reader);
    return more && raw_take(&walk->reader, value);
}

size_t raw_count(struct arena *arena, struct slice value)
{
    struct raw_look look;
    struct slice element;
    size_t count = 0;
    raw_look_begin(&look, arena, value);
    while (raw_look_next(&look, NULL, &element)) count++;
    return count;
}
