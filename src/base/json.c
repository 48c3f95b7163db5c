/* The pull reader and the writers. Speed matters here: every request and every reply passes through. */
#include "base/json.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/limits.h"

bool json_fail(struct json_reader *reader, const char *fault)
{
    if (!reader->fault) reader->fault = fault;
    return false;
}

void json_begin(struct json_reader *reader, struct slice text, struct arena *arena)
{
    if (!text.data) text = SLICE("");
    *reader = (struct json_reader){
        .at = text.data, .start = text.data, .end = text.data + text.len, .arena = arena, .first = true};
}

static void skip_space(struct json_reader *reader)
{
    const char *at = reader->at;
    while (at < reader->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
    reader->at = at;
}

/* What a value's first byte says of its kind; a table, since the bytes of a request are hard to predict. */
static const unsigned char kind_of_byte[256] = {
    ['{'] = JSON_OBJECT, ['['] = JSON_ARRAY,  ['"'] = JSON_STRING, ['t'] = JSON_TRUE,   ['f'] = JSON_FALSE,
    ['n'] = JSON_NULL,   ['-'] = JSON_NUMBER, ['0'] = JSON_NUMBER, ['1'] = JSON_NUMBER, ['2'] = JSON_NUMBER,
    ['3'] = JSON_NUMBER, ['4'] = JSON_NUMBER, ['5'] = JSON_NUMBER, ['6'] = JSON_NUMBER, ['7'] = JSON_NUMBER,
    ['8'] = JSON_NUMBER, ['9'] = JSON_NUMBER};

enum json_kind json_peek(struct json_reader *reader)
{
    if (reader->fault) return JSON_FAULT;
    skip_space(reader);
    if (reader->at == reader->end) return JSON_END;
    enum json_kind kind = (enum json_kind)kind_of_byte[(unsigned char)*reader->at];
    if (kind == JSON_FAULT) json_fail(reader, "unexpected character");
    return kind;
}

/* True when all is well so far and this character comes next. */
static inline bool comes(struct json_reader *reader, char wanted)
{
    if (reader->fault) return false;
    skip_space(reader);
    return reader->at < reader->end && *reader->at == wanted;
}

/* Bytes that need no attention inside a string: printable ASCII but for quote and backslash. */
static inline bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The first byte that is not plain, or the end. Strings are read many times on their way, so sixteen or eight
 * bytes at a time: the sum has the high bit of each byte that is below 0x20, a quote, a backslash or above 0x7f, and a
 * borrow can only mark bytes behind one of these. */
static inline const char *plain_end(const char *at, const char *end)
{
#ifdef __SSE2__
    for (; end - at >= 16; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        __m128i marks = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)); /* signed: those from 0x80 on as well */
        marks = _mm_or_si128(marks, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')));
        marks = _mm_or_si128(marks, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));
        int found = _mm_movemask_epi8(marks);
        if (found) return at + __builtin_ctz((unsigned)found);
    }
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t ones = UINT64_MAX / 255, highs = ones * 0x80;
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        uint64_t quote = (word ^ ones * '"') - ones, backslash = (word ^ ones * '\\') - ones;
        uint64_t marks = (word | (word - ones * 0x20) | quote | backslash) & highs;
        if (marks) return at + __builtin_ctzll(marks) / 8;
    }
#endif
    while (at < end && is_plain((unsigned char)*at)) at++;
    return at;
}

/* The length of the well-formed sequence that starts here with a byte of 0x80 or more; 0 when there is none.
 */
static size_t utf8_sequence(const unsigned char *at, size_t left)
{
    unsigned char c = at[0];
    if (c >= 0xc2 && c <= 0xdf) return left >= 2 && (at[1] & 0xc0) == 0x80 ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        if (left < 3 || (at[1] & 0xc0) != 0x80 || (at[2] & 0xc0) != 0x80) return 0;
        if (c == 0xe0 && at[1] < 0xa0) return 0;
        if (c == 0xed && at[1] > 0x9f) return 0;
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (left < 4 || (at[1] & 0xc0) != 0x80 || (at[2] & 0xc0) != 0x80 || (at[3] & 0xc0) != 0x80) return 0;
        if (c == 0xf0 && at[1] < 0x90) return 0;
        if (c == 0xf4 && at[1] > 0x8f) return 0;
        return 4;
    }
    return 0;
}

bool utf8_valid(struct slice bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.data, *end = at + bytes.len;
    while (at < end) {
        if (*at < 0x80) {
            at++;
            continue;
        }
        size_t len = utf8_sequence(at, (size_t)(end - at));
        if (!len) return false;
        at += len;
    }
    return true;
}

static bool hex4(const char *at, unsigned *out)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        unsigned digit;
        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (unsigned)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (unsigned)(c - 'A' + 10);
        else
            return false;
        value = value << 4 | digit;
    }
    *out = value;
    return true;
}

static char *put_code_point(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* One escape sequence at *at (behind the backslash); writes its bytes and moves on. */
static bool take_escape(const char **at, const char *end, char **to)
{
    if (*at == end) return false;
    unsigned code, low;
    switch (*(*at)++) {
    case '"': *(*to)++ = '"'; return true;
    case '\\': *(*to)++ = '\\'; return true;
    case '/': *(*to)++ = '/'; return true;
    case 'b': *(*to)++ = '\b'; return true;
    case 'f': *(*to)++ = '\f'; return true;
    case 'n': *(*to)++ = '\n'; return true;
    case 'r': *(*to)++ = '\r'; return true;
    case 't': *(*to)++ = '\t'; return true;
    case 'u': break;
    default: return false;
    }
    if (end - *at < 4 || !hex4(*at, &code)) return false;
    *at += 4;
    if (code >= 0xdc00 && code <= 0xdfff) return false;
    if (code >= 0xd800 && code <= 0xdbff) {
        if (end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u' || !hex4(*at + 2, &low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return false;
        *at += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *to = put_code_point(*to, code);
    return true;
}

/* The string has an escape: find its end, then copy it decoded. An escape never grows, so its length bounds
 * the copy. */
static bool string_with_escapes(struct json_reader *reader, const char *start, struct slice *out)
{
    const char *close = reader->at;
    while (close < reader->end && *close != '"') close += *close == '\\' ? 2 : 1;
    if (close >= reader->end) return json_fail(reader, "string without end");
    char *copy = arena_alloc(reader->arena, (size_t)(close - start) + 1), *to = copy;
    const char *at = start;
    while (at < close) {
        unsigned char c = (unsigned char)*at;
        if (is_plain(c)) {
            *to++ = *at++;
        } else if (c == '\\') {
            at++;
            if (!take_escape(&at, close, &to)) return json_fail(reader, "bad escape in a string");
        } else if (c < 0x20) {
            return json_fail(reader, "control character in a string");
        } else {
            size_t len = utf8_sequence((const unsigned char *)at, (size_t)(close - at));
            if (!len) return json_fail(reader, "invalid UTF-8");
            memcpy(to, at, len);
            to += len;
            at += len;
        }
    }
    *out = (struct slice){copy, (size_t)(to - copy)};
    reader->at = close + 1;
    return true;
}

bool json_string(struct json_reader *reader, struct slice *out)
{
    if (!comes(reader, '"')) return json_fail(reader, "a string was expected");
    const char *start = reader->at + 1, *at = start;
    while ((at = plain_end(at, reader->end)) < reader->end) {
        unsigned char c = (unsigned char)*at;
        if (c == '"') {
            *out = (struct slice){start, (size_t)(at - start)};
            reader->at = at + 1;
            return true;
        } else if (c == '\\') {
            reader->at = at;
            return string_with_escapes(reader, start, out);
        } else if (c < 0x20) {
            return json_fail(reader, "control character in a string");
        } else {
            size_t len = utf8_sequence((const unsigned char *)at, (size_t)(reader->end - at));
            if (!len) return json_fail(reader, "invalid UTF-8");
            at += len;
        }
    }
    return json_fail(reader, "string without end");
}

bool json_tagged_string(struct json_reader *reader, const char *tags, char *tag, struct slice *out)
{
    const char *at = reader->at, *end = reader->end;
    if (reader->fault || reader->depth >= LIMIT_JSON_DEPTH || end - at < 8) return false;
    if (at[0] != '{' || at[1] != '"' || at[3] != '"' || at[4] != ':' || at[5] != '"') return false;
    if (!at[2] || !strchr(tags, at[2])) return false;
    const char *close = plain_end(at + 6, end);
    if (end - close < 2 || close[0] != '"' || close[1] != '}') return false;
    *tag = at[2];
    *out = (struct slice){at + 6, (size_t)(close - at - 6)};
    reader->at = close + 2;
    reader->first = false;
    return true;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at;
}

bool json_number(struct json_reader *reader, struct slice *out)
{
    if (json_peek(reader) != JSON_NUMBER) return json_fail(reader, "a number was expected");
    const char *at = reader->at, *end = reader->end, *digits;
    if (*at == '-') at++;
    digits = at;
    at = skip_digits(at, end);
    if (at == digits || (*digits == '0' && at - digits > 1)) return json_fail(reader, "malformed number");
    if (at < end && *at == '.') {
        digits = ++at;
        at = skip_digits(at, end);
        if (at == digits) return json_fail(reader, "malformed number");
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        digits = at;
        at = skip_digits(at, end);
        if (at == digits) return json_fail(reader, "malformed number");
    }
    *out = (struct slice){reader->at, (size_t)(at - reader->at)};
    reader->at = at;
    return true;
}

bool json_enter(struct json_reader *reader)
{
    if (!comes(reader, '{') && !comes(reader, '['))
        return json_fail(reader, "an object or array was expected");
    if (++reader->depth > LIMIT_JSON_DEPTH) return json_fail(reader, "nested too deeply");
    reader->at++;
    reader->first = true;
    return true;
}

/* Ends the container (false), or passes the comma that is due before its next part (true). */
static bool next_part(struct json_reader *reader, char close)
{
    if (reader->fault) return false;
    skip_space(reader);
    if (reader->at == reader->end) return json_fail(reader, "unexpected end");
    if (*reader->at == close) {
        reader->at++;
        reader->depth--;
        reader->first = false;
        return false;
    }
    if (!reader->first) {
        if (*reader->at != ',') return json_fail(reader, "a comma was expected");
        reader->at++;
    }
    reader->first = false;
    return true;
}

bool json_member(struct json_reader *reader, struct slice *name)
{
    if (!next_part(reader, '}')) return false;
    if (!json_string(reader, name)) return false;
    skip_space(reader);
    if (reader->at == reader->end || *reader->at != ':') return json_fail(reader, "a colon was expected");
    reader->at++;
    return true;
}

bool json_element(struct json_reader *reader)
{
    if (!next_part(reader, ']')) return false;
    skip_space(reader);
    if (reader->at < reader->end && *reader->at == ']') return json_fail(reader, "a value was expected");
    return true;
}

static bool skip_word(struct json_reader *reader, struct slice word)
{
    if ((size_t)(reader->end - reader->at) < word.len || memcmp(reader->at, word.data, word.len) != 0)
        return json_fail(reader, "unexpected word");
    reader->at += word.len;
    return true;
}

bool json_skip(struct json_reader *reader)
{
    struct slice ignored;
    switch (json_peek(reader)) {
    case JSON_NULL: return skip_word(reader, SLICE("null"));
    case JSON_TRUE: return skip_word(reader, SLICE("true"));
    case JSON_FALSE: return skip_word(reader, SLICE("false"));
    case JSON_NUMBER: return json_number(reader, &ignored);
    case JSON_STRING: return json_string(reader, &ignored);
    case JSON_OBJECT:
        if (!json_enter(reader)) return false;
        while (json_member(reader, &ignored))
            if (!json_skip(reader)) return false;
        return !reader->fault;
    case JSON_ARRAY:
        if (!json_enter(reader)) return false;
        while (json_element(reader))
            if (!json_skip(reader)) return false;
        return !reader->fault;
    case JSON_END: return json_fail(reader, "unexpected end");
    case JSON_FAULT: break;
    }
    return false;
}

bool json_done(struct json_reader *reader)
{
    if (reader->fault) return false;
    skip_space(reader);
    if (reader->at != reader->end) return json_fail(reader, "text behind the value");
    return true;
}

/* ---- writing ---- */

void json_put_string(struct buf *buf, struct slice text)
{
    buf_reserve(buf, text.len + 2);
    buf->data[buf->len++] = '"';
    const char *at = text.data, *end = at + text.len, *plain = at;
    for (; (at = plain_end(at, end)) < end; at++) {
        unsigned char c = (unsigned char)*at;
        if (c >= 0x80) continue;
        buf_put(buf, plain, (size_t)(at - plain));
        plain = at + 1;
        switch (c) {
        case '"': buf_text(buf, "\\\""); break;
        case '\\': buf_text(buf, "\\\\"); break;
        case '\n': buf_text(buf, "\\n"); break;
        case '\r': buf_text(buf, "\\r"); break;
        case '\t': buf_text(buf, "\\t"); break;
        case '\b': buf_text(buf, "\\b"); break;
        case '\f': buf_text(buf, "\\f"); break;
        default: buf_printf(buf, "\\u%04x", c); break;
        }
    }
    buf_put(buf, plain, (size_t)(end - plain));
    buf_byte(buf, '"');
}

void json_put_base64(struct buf *buf, struct slice bytes)
{
    buf_byte(buf, '"');
    base64_put(buf, bytes);
    buf_byte(buf, '"');
}

void json_put_int(struct buf *buf, int64_t value)
{
    if (value < 0) buf_byte(buf, '-');
    buf_decimal(buf, value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value);
}

void json_put_double(struct buf *buf, double value)
{
    char text[32];
    ensure(isfinite(value));
    if (value == floor(value) && fabs(value) < 1e15) {
        json_put_int(buf, (int64_t)value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    buf_slice(buf, slice_of(text));
}

/* ---- base64 ---- */

static const char base64_letters[65] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+') return 62;
    if (c == '/') return 63;
    return -1;
}

enum base64_fault base64_decode(struct arena *arena, struct slice text, struct slice *out)
{
    if (text.len % 4) return BASE64_LENGTH;
    size_t padding = 0;
    if (text.len && text.data[text.len - 1] == '=') padding = text.data[text.len - 2] == '=' ? 2 : 1;
    char *bytes = arena_alloc(arena, text.len / 4 * 3 + 1), *to = bytes;
    unsigned bits = 0;
    size_t digits = text.len - padding;
    for (size_t i = 0; i < digits; i++) {
        int digit = base64_digit(text.data[i]);
        if (digit < 0) return BASE64_CHARACTER;
        bits = bits << 6 | (unsigned)digit;
        if (i % 4 != 3) continue;
        *to++ = (char)(bits >> 16);
        *to++ = (char)(bits >> 8);
        *to++ = (char)bits;
        bits = 0;
    }
    if (padding == 1) {
        if (bits & 3) return BASE64_LAST_BITS;
        *to++ = (char)(bits >> 10);
        *to++ = (char)(bits >> 2);
    } else if (padding == 2) {
        if (bits & 15) return BASE64_LAST_BITS;
        *to++ = (char)(bits >> 4);
    }
    *out = (struct slice){bytes, (size_t)(to - bytes)};
    return BASE64_OK;
}

void base64_put(struct buf *buf, struct slice bytes)
{
    buf_reserve(buf, (bytes.len + 2) / 3 * 4);
    char *to = buf->data + buf->len;
    const unsigned char *at = (const unsigned char *)bytes.data;
    size_t left = bytes.len;
    for (; left >= 3; left -= 3, at += 3) {
        *to++ = base64_letters[at[0] >> 2];
        *to++ = base64_letters[(at[0] & 3) << 4 | at[1] >> 4];
        *to++ = base64_letters[(at[1] & 15) << 2 | at[2] >> 6];
        *to++ = base64_letters[at[2] & 63];
    }
    if (left) {
        unsigned second = left == 2 ? at[1] : 0;
        *to++ = base64_letters[at[0] >> 2];
        *to++ = base64_letters[(at[0] & 3u) << 4 | second >> 4];
        *to++ = left == 2 ? base64_letters[(second & 15) << 2] : '=';
        *to++ = '=';
    }
    buf->len = (size_t)(to - buf->data);
}
