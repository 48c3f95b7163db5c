/* Amazon Ion, the text form: what DynamoDB writes into exports and reads from imports.
 *
 * DynamoDB's types are a part of Ion's: strings, decimals, blobs, truths, nulls, lists and structs; sets are lists with
 * an annotation ($dynamodb_SS, _NS, _BS). Integers and floats are taken as numbers, too. Symbols, timestamps, clobs and
 * expressions have no type in DynamoDB and are refused. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "transfer/formats.h"

/* ---- where a value ends ---- */

enum { IN_TEXT, IN_STRING, IN_SYMBOL, IN_LONG, IN_LINE_COMMENT, IN_COMMENT, IN_BLOB };

/* What `seen` counts: in text the last byte where it may begin a mark, elsewhere how much of the end was seen. In a
 * string or symbol 1 means: behind a backslash. */
static void scan_text(struct ion_scan *scan, char c, bool *is_end)
{
    char before = (char)scan->seen;
    scan->seen = 0;
    if (before == '/' && (c == '/' || c == '*')) {
        scan->state = c == '/' ? IN_LINE_COMMENT : IN_COMMENT;
    } else if (before == '{' && c == '{') {
        scan->depth++;
        scan->state = IN_BLOB;
    } else if (c == '"') {
        scan->state = IN_STRING;
    } else if (c == '\'') {
        scan->state = IN_SYMBOL;
    } else if (c == '{' || c == '[' || c == '(') {
        scan->depth++;
        if (c == '{') scan->seen = '{';
    } else if (c == '}' || c == ']' || c == ')') {
        if (scan->depth) scan->depth--;
        *is_end = scan->depth == 0;
    } else if (c == '/') {
        scan->seen = '/';
    }
}

/* Two quotes at once are an empty symbol, which nobody writes, or the begin of a long string. */
static bool scan_symbol(struct ion_scan *scan, char c)
{
    enum { ESCAPED = 1, STARTED = 2, EMPTY = 4 };
    if (scan->seen & EMPTY) {
        scan->seen = 0;
        scan->state = c == '\'' ? IN_LONG : IN_TEXT;
        return c == '\''; /* any other byte is looked at again, as text */
    }
    if (scan->seen & ESCAPED)
        scan->seen = STARTED;
    else if (c == '\\')
        scan->seen = STARTED | ESCAPED;
    else if (c == '\'' && !scan->seen)
        scan->seen = EMPTY;
    else if (c == '\'') {
        scan->seen = 0;
        scan->state = IN_TEXT;
    } else {
        scan->seen = STARTED;
    }
    return true;
}

static void scan_long(struct ion_scan *scan, char c)
{
    enum { ESCAPED = 4 };
    if (scan->seen == ESCAPED)
        scan->seen = 0;
    else if (c == '\\')
        scan->seen = ESCAPED;
    else if (c != '\'')
        scan->seen = 0;
    else if (++scan->seen == 3) {
        scan->seen = 0;
        scan->state = IN_TEXT;
    }
}

static void scan_string(struct ion_scan *scan, char c)
{
    bool is_escaped = scan->seen;
    scan->seen = !is_escaped && c == '\\';
    if (!is_escaped && c == '"') scan->state = IN_TEXT;
}

static void scan_comment(struct ion_scan *scan, char c)
{
    bool ends = scan->state == IN_LINE_COMMENT ? c == '\n' : scan->seen && c == '/';
    scan->seen = c == '*' && scan->state == IN_COMMENT;
    if (!ends) return;
    scan->state = IN_TEXT;
    scan->seen = 0;
}

/* A blob has no quotes; a clob is a string, and its end is two braces as any. */
static bool scan_blob(struct ion_scan *scan, char c)
{
    if (c != '"' && c != '\'' && c != '}') return true;
    scan->state = IN_TEXT;
    return false;
}

bool ion_scan(struct ion_scan *scan, struct slice text, size_t *at)
{
    bool is_end = false;
    while (*at < text.len && !is_end) {
        char c = text.data[*at];
        bool is_taken = true;
        switch (scan->state) {
        case IN_TEXT: scan_text(scan, c, &is_end); break;
        case IN_STRING: scan_string(scan, c); break;
        case IN_SYMBOL: is_taken = scan_symbol(scan, c); break;
        case IN_LONG: scan_long(scan, c); break;
        case IN_BLOB: is_taken = scan_blob(scan, c); break;
        default: scan_comment(scan, c); break;
        }
        if (is_taken) (*at)++;
    }
    return is_end;
}

/* ---- reading ---- */

struct ion {
    const char *at, *end;
    struct buf text; /* of the last string, symbol or blob */
    unsigned depth;
    const char *fault;
    bool is_sound; /* the fault is one of the item only */
};

static bool fail(struct ion *ion, const char *fault)
{
    if (!ion->fault) ion->fault = fault;
    return false;
}

/* The text is sound, and what it says is no item. */
static bool fail_item(struct ion *ion, const char *fault)
{
    if (!ion->fault) ion->is_sound = true;
    return fail(ion, fault);
}

static bool starts(const struct ion *ion, const char *mark)
{
    size_t len = strlen(mark);
    return (size_t)(ion->end - ion->at) >= len && memcmp(ion->at, mark, len) == 0;
}

static char peek(const struct ion *ion)
{
    return ion->at < ion->end ? *ion->at : '\0';
}

static bool skip_space(struct ion *ion)
{
    for (;;) {
        while (ion->at < ion->end && strchr(" \t\r\n\v\f", *ion->at) && *ion->at) ion->at++;
        if (starts(ion, "//")) {
            while (ion->at < ion->end && *ion->at != '\n') ion->at++;
        } else if (starts(ion, "/*")) {
            ion->at += 2;
            while (ion->at < ion->end && !starts(ion, "*/")) ion->at++;
            if (ion->at == ion->end) return fail(ion, "a comment is not closed");
            ion->at += 2;
        } else {
            return true;
        }
    }
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

static void put_utf8(struct buf *out, uint32_t code)
{
    if (code < 0x80) {
        buf_byte(out, (unsigned char)code);
    } else if (code < 0x800) {
        buf_byte(out, (unsigned char)(0xc0 | code >> 6));
        buf_byte(out, (unsigned char)(0x80 | (code & 0x3f)));
    } else if (code < 0x10000) {
        buf_byte(out, (unsigned char)(0xe0 | code >> 12));
        buf_byte(out, (unsigned char)(0x80 | (code >> 6 & 0x3f)));
        buf_byte(out, (unsigned char)(0x80 | (code & 0x3f)));
    } else {
        buf_byte(out, (unsigned char)(0xf0 | code >> 18));
        buf_byte(out, (unsigned char)(0x80 | (code >> 12 & 0x3f)));
        buf_byte(out, (unsigned char)(0x80 | (code >> 6 & 0x3f)));
        buf_byte(out, (unsigned char)(0x80 | (code & 0x3f)));
    }
}

static bool take_hex(struct ion *ion, unsigned digits, uint32_t *out)
{
    *out = 0;
    for (unsigned i = 0; i < digits; i++) {
        char c = peek(ion);
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
            return fail(ion, "an escape has too few hexadecimal digits");
        *out = *out << 4 | (uint32_t)digit;
        ion->at++;
    }
    return true;
}

/* Behind the backslash. Surrogates come in pairs, as in JSON. */
static bool take_escape(struct ion *ion)
{
    static const char names[] = "abtnfrv0\"'?\\/", bytes[] = "\a\b\t\n\f\r\v\0\"'?\\/";
    char c = peek(ion);
    const char *known = c ? strchr(names, c) : NULL;
    uint32_t code, low;
    if (ion->at == ion->end) return fail(ion, "a text is not closed");
    ion->at++;
    if (known) {
        buf_byte(&ion->text, (unsigned char)bytes[known - names]);
        return true;
    }
    if (c == '\n') return true;
    if (c == '\r') {
        if (peek(ion) == '\n') ion->at++;
        return true;
    }
    if (c != 'x' && c != 'u' && c != 'U') return fail(ion, "an escape is unknown");
    if (!take_hex(ion, c == 'x' ? 2 : c == 'u' ? 4 : 8, &code)) return false;
    if (code >= 0xd800 && code <= 0xdbff && starts(ion, "\\u")) {
        ion->at += 2;
        if (!take_hex(ion, 4, &low)) return false;
        if (low < 0xdc00 || low > 0xdfff) return fail(ion, "half of a surrogate pair is missing");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return fail(ion, "an escape is no character");
    put_utf8(&ion->text, code);
    return true;
}

/* Behind the first quote, up to and with the last. */
static bool take_quoted(struct ion *ion, char quote)
{
    while (ion->at < ion->end && *ion->at != quote) {
        char c = *ion->at++;
        if (c == '\\') {
            if (!take_escape(ion)) return false;
        } else if (c == '\n' || c == '\r') {
            return fail(ion, "a line ends within a text");
        } else {
            buf_byte(&ion->text, (unsigned char)c);
        }
    }
    if (ion->at == ion->end) return fail(ion, "a text is not closed");
    ion->at++;
    return true;
}

/* Several long strings in a row are one. */
static bool take_long(struct ion *ion)
{
    while (starts(ion, "'''")) {
        ion->at += 3;
        while (ion->at < ion->end && !starts(ion, "'''")) {
            char c = *ion->at++;
            if (c == '\\') {
                if (!take_escape(ion)) return false;
            } else if (c == '\r') {
                if (peek(ion) == '\n') ion->at++;
                buf_byte(&ion->text, '\n');
            } else {
                buf_byte(&ion->text, (unsigned char)c);
            }
        }
        if (ion->at == ion->end) return fail(ion, "a text is not closed");
        ion->at += 3;
        if (!skip_space(ion)) return false;
    }
    return true;
}

static struct slice take_word(struct ion *ion)
{
    const char *start = ion->at;
    while (ion->at < ion->end && is_name_byte(*ion->at)) ion->at++;
    return (struct slice){start, (size_t)(ion->at - start)};
}

/* The name of a field or an annotation, into text. */
static bool take_name(struct ion *ion, bool may_be_string)
{
    ion->text.len = 0;
    if (may_be_string && starts(ion, "'''")) return take_long(ion);
    if (peek(ion) == '\'' || (may_be_string && peek(ion) == '"')) return take_quoted(ion, *ion->at++);
    struct slice word = take_word(ion);
    if (!word.len || (word.data[0] >= '0' && word.data[0] <= '9')) return fail(ion, "a name is missing");
    buf_slice(&ion->text, word);
    return true;
}

static bool put_text(struct ion *ion, struct buf *json)
{
    if (!utf8_valid(buf_view(&ion->text))) return fail(ion, "a text is not UTF-8");
    json_put_string(json, buf_view(&ion->text));
    return true;
}

static bool take_blob(struct ion *ion, struct buf *json)
{
    ion->at += 2;
    buf_byte(json, '"');
    for (;;) {
        while (ion->at < ion->end && *ion->at && strchr(" \t\r\n\v\f", *ion->at)) ion->at++;
        char c = peek(ion);
        if (c == '}') break;
        if (c == '"' || c == '\'') return fail_item(ion, "DynamoDB has no type for an Ion clob");
        if (!is_name_byte(c) && c != '+' && c != '/' && c != '=') return fail(ion, "a blob is not base64");
        buf_byte(json, (unsigned char)c);
        ion->at++;
    }
    if (!starts(ion, "}}")) return fail(ion, "a blob is not closed");
    ion->at += 2;
    buf_byte(json, '"');
    return true;
}

/* 0x1F and 0b101 as decimal digits. */
static bool put_integer(struct ion *ion, struct slice word, struct buf *json)
{
    unsigned __int128 value = 0;
    char digits[48];
    size_t start = word.data[0] == '-', count = sizeof digits;
    unsigned base = word.data[start + 1] == 'x' || word.data[start + 1] == 'X' ? 16 : 2;
    for (size_t i = start + 2; i < word.len; i++) {
        char c = word.data[i];
        if (c == '_') continue;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 99;
        if (digit >= base || value >> 120) return fail(ion, "a number is malformed, or too large");
        value = value * base + digit;
    }
    do digits[--count] = (char)('0' + (unsigned)(value % 10));
    while (value /= 10);
    if (start) buf_byte(json, '-');
    buf_put(json, digits + count, sizeof digits - count);
    return true;
}

/* Ion's decimals as DynamoDB's: 103. and 1_000 and 1d3. What is no number at all is found by PutItem. */
static bool take_number(struct ion *ion, struct buf *json)
{
    const char *start = ion->at;
    while (ion->at < ion->end && (is_name_byte(*ion->at) || *ion->at == '.' || *ion->at == '-' ||
                                  *ion->at == '+' || *ion->at == ':'))
        ion->at++;
    struct slice word = {start, (size_t)(ion->at - start)};
    size_t sign = word.data[0] == '-';
    buf_byte(json, '"');
    if (word.len > sign + 2 && word.data[sign] == '0' && strchr("xXbB", word.data[sign + 1])) {
        if (!put_integer(ion, word, json)) return false;
    } else {
        for (size_t i = 0; i < word.len; i++) {
            char c = word.data[i];
            bool is_digit = c >= '0' && c <= '9', is_sign = c == '-' || c == '+';
            char after = i + 1 < word.len ? word.data[i + 1] : 'd';
            if (c == 'd' || c == 'D' || c == 'e' || c == 'E')
                c = 'E';
            else if (c == ':' || c == 'T' || (is_sign && i && !strchr("dDeE", word.data[i - 1])))
                return fail_item(ion, "DynamoDB has no type for an Ion timestamp");
            else if (!is_digit && !is_sign && c != '.' && c != '_')
                return fail(ion, "a number is malformed");
            if (c == '_' || (c == '.' && strchr("dDeE", after))) continue;
            buf_byte(json, (unsigned char)c);
        }
    }
    buf_byte(json, '"');
    return true;
}

static bool take_value(struct ion *ion, struct buf *json);
static bool take_attributes(struct ion *ion, struct buf *json);

/* Between brackets, with commas: each part by itself. `type`: of a set's members; 0: all else. */
typedef bool take_part(struct ion *ion, struct buf *json, char type);
static bool take_parts(struct ion *ion, struct buf *json, const char *brackets, take_part *take, char type,
                       const char *no_comma)
{
    ion->at++;
    buf_byte(json, (unsigned char)brackets[0]);
    for (bool is_first = true;; is_first = false) {
        if (!skip_space(ion)) return false;
        if (peek(ion) == brackets[1]) break;
        if (!is_first) buf_byte(json, ',');
        if (!take(ion, json, type) || !skip_space(ion)) return false;
        if (peek(ion) == brackets[1]) break;
        if (peek(ion) != ',') return fail(ion, no_comma);
        ion->at++;
    }
    ion->at++;
    buf_byte(json, (unsigned char)brackets[1]);
    return true;
}

static bool take_element(struct ion *ion, struct buf *json, char type)
{
    (void)type;
    return take_value(ion, json);
}

/* Of a set: without its type, which the annotation tells. */
static bool take_member(struct ion *ion, struct buf *json, char type)
{
    bool is_text = peek(ion) == '"' || starts(ion, "'''");
    bool is_number = peek(ion) == '-' || (peek(ion) >= '0' && peek(ion) <= '9');
    ion->text.len = 0;
    if (type == 'S' && is_text)
        return (peek(ion) == '"' ? take_quoted(ion, *ion->at++) : take_long(ion)) && put_text(ion, json);
    if (type == 'N' && is_number) return take_number(ion, json);
    if (type == 'B' && starts(ion, "{{")) return take_blob(ion, json);
    return fail_item(ion, "a member of a set has another type than the set");
}

/* Of a struct: an attribute. */
static bool take_field(struct ion *ion, struct buf *json, char type)
{
    (void)type;
    if (!take_name(ion, true) || !put_text(ion, json) || !skip_space(ion)) return false;
    if (peek(ion) != ':' || starts(ion, "::")) return fail(ion, "a field has no value");
    ion->at++;
    buf_byte(json, ':');
    return skip_space(ion) && take_value(ion, json);
}

/* A word that is a value: true, false, null and null.TYPE. */
static bool take_keyword(struct ion *ion, struct slice word, struct buf *json)
{
    bool is_true = slice_equal(word, SLICE("true"));
    if (is_true || slice_equal(word, SLICE("false"))) {
        buf_printf(json, "{\"BOOL\":%s}", is_true ? "true" : "false");
        return true;
    }
    if (!slice_equal(word, SLICE("null"))) return fail_item(ion, "DynamoDB has no type for an Ion symbol");
    if (peek(ion) == '.') {
        ion->at++;
        take_word(ion);
    }
    buf_text(json, "{\"NULL\":true}");
    return true;
}

static bool take_set(struct ion *ion, struct buf *json, char type)
{
    buf_printf(json, "{\"%cS\":", type);
    if (!skip_space(ion)) return false;
    if (peek(ion) != '[') return fail(ion, "a set is not a list");
    if (!take_parts(ion, json, "[]", take_member, type, "a comma is missing in a set")) return false;
    buf_byte(json, '}');
    return true;
}

/* An annotation goes before its value; those that are not DynamoDB's mean nothing here. */
static bool take_annotated(struct ion *ion, struct buf *json)
{
    const char *start = ion->at;
    if (!take_name(ion, false) || !skip_space(ion)) return false;
    struct slice word = buf_view(&ion->text);
    if (!starts(ion, "::")) {
        if (*start == '\'') return fail_item(ion, "DynamoDB has no type for an Ion symbol");
        return take_keyword(ion, word, json);
    }
    ion->at += 2;
    bool is_set = slice_starts(word, SLICE("$dynamodb_")) && word.len == strlen("$dynamodb_SS") &&
                  strchr("SNB", word.data[10]) && word.data[11] == 'S';
    if (is_set) return take_set(ion, json, word.data[10]);
    return skip_space(ion) && take_value(ion, json);
}

static bool take_value(struct ion *ion, struct buf *json)
{
    char c = peek(ion);
    bool fine;
    if (++ion->depth > LIMIT_TRANSFER_NESTING) return fail(ion, "it is nested too deeply");
    ion->text.len = 0;
    if (c == '"' || starts(ion, "'''")) {
        buf_text(json, "{\"S\":");
        fine = (c == '"' ? take_quoted(ion, *ion->at++) : take_long(ion)) && put_text(ion, json);
    } else if (starts(ion, "{{")) {
        buf_text(json, "{\"B\":");
        fine = take_blob(ion, json);
    } else if (c == '{') {
        buf_text(json, "{\"M\":");
        fine = take_attributes(ion, json);
    } else if (c == '[') {
        buf_text(json, "{\"L\":");
        fine = take_parts(ion, json, "[]", take_element, 0, "a comma is missing in a list");
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        buf_text(json, "{\"N\":");
        fine = take_number(ion, json);
    } else if (c == '(') {
        return fail_item(ion, "DynamoDB has no type for an Ion expression");
    } else if (c == '+') {
        return fail_item(ion, "DynamoDB has no infinite numbers");
    } else {
        fine = take_annotated(ion, json);
        ion->depth--;
        return fine;
    }
    ion->depth--;
    buf_byte(json, '}');
    return fine;
}

/* A struct as the map of an item. */
static bool take_attributes(struct ion *ion, struct buf *json)
{
    return take_parts(ion, json, "{}", take_field, 0, "a comma is missing in a struct");
}

/* {Item:{...}}: other fields are read and left out. */
static bool take_record(struct ion *ion, struct buf *json)
{
    struct buf other = {0};
    bool has_item = false, fine = true;
    ion->at++;
    while (fine) {
        fine = skip_space(ion);
        if (!fine || peek(ion) == '}') break;
        fine = take_name(ion, true) && skip_space(ion) &&
               (peek(ion) == ':' || fail(ion, "a field has no value"));
        if (!fine) break;
        bool is_item = slice_equal(buf_view(&ion->text), SLICE("Item"));
        if (slice_equal(buf_view(&ion->text),
                        SLICE("ConditionExpression"))) /* to leave it out would write too much */
            fine = fail(ion, "conditions are read from DYNAMODB_JSON only");
        ion->at++;
        other.len = 0;
        fine = fine && skip_space(ion);
        if (fine && is_item && (has_item || peek(ion) != '{' || starts(ion, "{{")))
            fine = fail(ion, "Item is not one struct");
        if (fine) fine = is_item ? take_attributes(ion, json) : take_value(ion, &other);
        has_item |= is_item;
        if (fine) fine = skip_space(ion);
        if (!fine || peek(ion) == '}') break;
        if (peek(ion) != ',') fine = fail(ion, "a comma is missing in a struct");
        ion->at++;
    }
    buf_free(&other);
    if (!fine) return false;
    ion->at++;
    return has_item || fail_item(ion, "there is no Item in it");
}

enum transfer_result ion_item_read(struct slice text, struct buf *json, const char **fault)
{
    struct ion ion = {.at = text.data, .end = text.data + text.len};
    bool fine = skip_space(&ion);
    while (fine && starts(&ion, "$ion_1_0") && !(ion.at + 8 < ion.end && is_name_byte(ion.at[8]))) {
        ion.at += strlen("$ion_1_0");
        fine = skip_space(&ion);
    }
    if (fine && ion.at == ion.end) fine = false; /* and no fault: nothing is there */
    if (fine && (peek(&ion) != '{' || starts(&ion, "{{"))) fine = fail(&ion, "it is no Ion struct");
    if (fine) fine = take_record(&ion, json) && skip_space(&ion);
    if (fine && ion.at != ion.end) fine = fail(&ion, "text stands behind the struct");
    buf_free(&ion.text);
    *fault = ion.fault;
    if (fine) return TRANSFER_FOUND;
    return !ion.fault ? TRANSFER_END : ion.is_sound ? TRANSFER_BAD : TRANSFER_STOP;
}

/* ---- writing ---- */

static void put_escaped(struct buf *out, struct slice text, char quote)
{
    buf_byte(out, (unsigned char)quote);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == (unsigned char)quote || c == '\\') {
            buf_byte(out, '\\');
            buf_byte(out, c);
        } else if (c == '\n') {
            buf_text(out, "\\n");
        } else if (c == '\r') {
            buf_text(out, "\\r");
        } else if (c == '\t') {
            buf_text(out, "\\t");
        } else if (c < 0x20 || c == 0x7f) {
            buf_printf(out, "\\x%02x", c);
        } else {
            buf_byte(out, c);
        }
    }
    buf_byte(out, (unsigned char)quote);
}

/* Words that mean something, and $10, which names a symbol by its number, need quotes. */
static bool is_plain_symbol(struct slice name)
{
    static const char *const words[] = {"null", "true", "false", "nan"};
    if (!name.len || (name.data[0] >= '0' && name.data[0] <= '9')) return false;
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_byte(name.data[i])) return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (slice_equal(name, slice_of(words[i]))) return false;
    return name.data[0] != '$';
}

static void put_blob(struct buf *out, struct slice bytes)
{
    buf_text(out, "{{");
    base64_put(out, bytes);
    buf_text(out, "}}");
}

/* A number with a point is a decimal, without one an integer: 103. is DynamoDB's own way. */
static void put_decimal(struct buf *out, struct slice number)
{
    buf_slice(out, number);
    if (!memchr(number.data, '.', number.len)) buf_byte(out, '.');
}

static void put_value(struct buf *out, const struct value *value)
{
    switch (value->type) {
    case VALUE_S: put_escaped(out, value->bytes, '"'); return;
    case VALUE_N: put_decimal(out, value->bytes); return;
    case VALUE_B: put_blob(out, value->bytes); return;
    case VALUE_BOOL: buf_slice(out, value->truth ? SLICE("true") : SLICE("false")); return;
    case VALUE_NULL: buf_text(out, "null"); return;
    case VALUE_M: ion_struct_put(out, &value->map); return;
    default: break;
    }
    if (value->type != VALUE_L) buf_printf(out, "$dynamodb_%.*s::", SLICE_ARG(value_type_name(value->type)));
    buf_byte(out, '[');
    for (uint32_t i = 0; i < value->count; i++) {
        if (i) buf_byte(out, ',');
        if (value->type == VALUE_L) put_value(out, &value->elements[i]);
        if (value->type == VALUE_SS) put_escaped(out, value->members[i], '"');
        if (value->type == VALUE_NS) put_decimal(out, value->members[i]);
        if (value->type == VALUE_BS) put_blob(out, value->members[i]);
    }
    buf_byte(out, ']');
}

void ion_struct_put(struct buf *out, const struct map *map)
{
    buf_byte(out, '{');
    for (uint32_t i = 0; i < map->count; i++) {
        if (i) buf_byte(out, ',');
        if (is_plain_symbol(map->attributes[i].name))
            buf_slice(out, map->attributes[i].name);
        else
            put_escaped(out, map->attributes[i].name, '\'');
        buf_byte(out, ':');
        put_value(out, &map->attributes[i].value);
    }
    buf_byte(out, '}');
}

void ion_item_put(struct buf *out, const struct map *item)
{
    buf_text(out, "$ion_1_0 {Item:");
    ion_struct_put(out, item);
    buf_text(out, "}\n");
}
