/* Comparisons as patterns write them: a plain value, or an object with one name that says how to compare.
 *
 * What is accepted is what the service accepts; what is not is refused with a sentence here and never
 * understood as something else. */
#include <stdlib.h>

#include "base/limits.h"
#include "match/internal.h"

static const char *const reserved[] = {
    "exactly",
    "equals-ignore-case",
    "prefix",
    "suffix",
    "anything-but",
    "exists",
    "wildcard",
    "numeric",
    "cidr",
    "=",
    "<",
    "<=",
    ">",
    ">=",
    "regex",
    "not-wildcard",
    "not-equals-ignore-case",
    "date-after",
    "date-on-or-after",
    "date-before",
    "date-on-or-before",
    "in-date-range",
    "ip-address-in-range",
    "ip-address-not-in-range",
};

bool comparison_is_reserved(struct slice name)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (slice_equal(name, slice_of(reserved[i]))) return true;
    return false;
}

/* ---- pieces ---- */

static bool read_text(struct compiler *compiler, const char *what, struct slice *out)
{
    if (json_peek(&compiler->reader) != JSON_STRING)
        return compile_fail(compiler, "The value of \"%s\" must be a string", what);
    return json_string(&compiler->reader, out);
}

/* The end of an object that must have no more members. */
static bool read_end(struct compiler *compiler)
{
    struct slice name;
    if (json_member(&compiler->reader, &name))
        return compile_fail(compiler, "Only one name is allowed in a comparison, not also \"%.*s\"",
                            SLICE_ARG(name));
    return !json_failed(&compiler->reader);
}

static void make_text(struct slice text, struct comparison *out)
{
    /* Addresses are equal in whichever way they are written. */
    out->kind = network_read_address(text, &out->network) ? COMPARE_ADDRESS : COMPARE_TEXT;
    out->text = text;
}

static void make_number(struct slice number, struct comparison *out)
{
    out->kind = COMPARE_RANGE;
    out->range.low = out->range.high = decimal_read(number);
    out->range.has_low = out->range.has_high = true;
}

static bool make_folded(struct compiler *compiler, enum comparison_kind kind, struct slice text,
                        struct comparison *out)
{
    out->kind = kind;
    out->folded = fold_text(compiler->arena, text);
    return true;
}

/* Splits at the asterisks that no backslash precedes; parts are without their backslashes. */
static bool make_wildcard(struct compiler *compiler, struct slice text, struct comparison *out)
{
    char *bytes = arena_alloc(compiler->arena, text.len), *to = bytes, *part = bytes;
    out->kind = COMPARE_WILDCARD;
    out->parts = arena_array(compiler->arena, struct slice, text.len + 1);
    out->part_count = 0;
    for (size_t i = 0; i < text.len; i++) {
        char next = i + 1 < text.len ? text.data[i + 1] : '\0';
        if (text.data[i] == '*') {
            if (next == '*')
                return compile_fail(compiler, "Consecutive wildcard characters at position %zu of \"%.*s\"",
                                    i, SLICE_ARG(text));
            out->parts[out->part_count++] = (struct slice){part, (size_t)(to - part)};
            part = to;
            continue;
        }
        if (text.data[i] == '\\') {
            if (next != '*' && next != '\\')
                return compile_fail(compiler, "Invalid escape character at position %zu of \"%.*s\"", i,
                                    SLICE_ARG(text));
            i++;
        }
        *to++ = text.data[i];
    }
    out->parts[out->part_count++] = (struct slice){part, (size_t)(to - part)};
    return true;
}

/* ---- prefix and suffix: of a text, or of one without regard to case ---- */

static bool read_end_of_text(struct compiler *compiler, const char *what, enum comparison_kind plain,
                             enum comparison_kind folded, struct comparison *out)
{
    struct slice name, text;
    if (json_peek(&compiler->reader) != JSON_OBJECT) {
        out->kind = plain;
        return read_text(compiler, what, &out->text);
    }
    json_enter(&compiler->reader);
    if (!json_member(&compiler->reader, &name))
        return compile_fail(compiler, "\"%s\" needs a string, or an object with \"equals-ignore-case\"",
                            what);
    if (!slice_equal(name, SLICE("equals-ignore-case")))
        return compile_fail(compiler, "Unsupported %s pattern: %.*s", what, SLICE_ARG(name));
    return read_text(compiler, "equals-ignore-case", &text) && make_folded(compiler, folded, text, out) &&
           read_end(compiler);
}

/* ---- numeric ---- */

static bool read_operand(struct compiler *compiler, struct slice sign, struct decimal *out)
{
    struct slice number;
    if (!json_element(&compiler->reader) || json_peek(&compiler->reader) != JSON_NUMBER)
        return compile_fail(compiler, "Value of %.*s must be numeric", SLICE_ARG(sign));
    if (!json_number(&compiler->reader, &number)) return false;
    *out = decimal_read(number);
    return true;
}

static bool read_sign(struct compiler *compiler, struct slice *out)
{
    if (json_peek(&compiler->reader) != JSON_STRING)
        return compile_fail(compiler, "Invalid member in numeric match: an operator must be a string");
    return json_string(&compiler->reader, out);
}

static bool range_add(struct compiler *compiler, struct slice sign, struct range *range)
{
    bool is_low = slice_starts(sign, SLICE(">")), is_high = slice_starts(sign, SLICE("<"));
    bool is_known = slice_equal(sign, SLICE("=")) ||
                    ((is_low || is_high) && (sign.len == 1 || slice_equal(slice_from(sign, 1), SLICE("="))));
    if (!is_known)
        return compile_fail(compiler, "Unrecognized numeric range operator: %.*s", SLICE_ARG(sign));
    struct decimal bound;
    if (!read_operand(compiler, sign, &bound)) return false;
    if (!is_high) {
        range->low = bound;
        range->has_low = true;
        range->above = is_low && sign.len == 1;
    }
    if (!is_low) {
        range->high = bound;
        range->has_high = true;
        range->below = is_high && sign.len == 1;
    }
    return true;
}

/* The second comparison of a range: only an upper bound after a lower one. */
static bool range_complete(struct compiler *compiler, struct range *range)
{
    struct slice sign;
    if (range->has_high) return compile_fail(compiler, "Too many elements in numeric expression");
    if (!read_sign(compiler, &sign)) return false;
    if (!slice_starts(sign, SLICE("<")))
        return compile_fail(compiler, "Bad numeric range operator: %.*s", SLICE_ARG(sign));
    if (!range_add(compiler, sign, range)) return false;
    if (decimal_compare(&range->low, &range->high) >= 0)
        return compile_fail(compiler, "Bottom of a numeric range must be less than its top");
    if (json_element(&compiler->reader))
        return compile_fail(compiler, "Too many terms in numeric range expression");
    return true;
}

static bool read_numeric(struct compiler *compiler, struct comparison *out)
{
    struct slice sign;
    out->kind = COMPARE_RANGE;
    if (json_peek(&compiler->reader) != JSON_ARRAY)
        return compile_fail(compiler, "Value of numeric must be an array");
    json_enter(&compiler->reader);
    if (!json_element(&compiler->reader))
        return compile_fail(compiler, "Value of numeric must not be an empty array");
    if (!read_sign(compiler, &sign) || !range_add(compiler, sign, &out->range)) return false;
    return !json_element(&compiler->reader) || range_complete(compiler, &out->range);
}

/* ---- cidr ---- */

static bool read_cidr(struct compiler *compiler, struct comparison *out)
{
    struct slice text;
    unsigned long long bits;
    if (!read_text(compiler, "cidr", &text)) return false;
    const char *slash = memchr(text.data, '/', text.len);
    if (!slash) return compile_fail(compiler, "Malformed CIDR, one '/' required");
    struct slice address = {text.data, (size_t)(slash - text.data)};
    if (!slice_to_u64(slice_from(text, address.len + 1), 1000, &bits))
        return compile_fail(compiler, "Malformed CIDR, mask bits must be an integer");
    if (!network_read_address(address, &out->network))
        return compile_fail(compiler, "Invalid IP address: %.*s", SLICE_ARG(address));
    unsigned limit = out->network.bytes * 8;
    if (bits >= limit)
        return compile_fail(compiler, "%s mask bits must be < %u", limit == 32 ? "IPv4" : "IPv6", limit);
    out->kind = COMPARE_ADDRESS;
    out->network.bits = (unsigned)bits;
    return true;
}

/* ---- exists ---- */

static bool read_exists(struct compiler *compiler, struct comparison *out)
{
    enum json_kind kind = json_peek(&compiler->reader);
    if (kind != JSON_TRUE && kind != JSON_FALSE)
        return compile_fail(compiler, "exists match pattern must be either true or false");
    out->kind = kind == JSON_TRUE ? COMPARE_EXISTS : COMPARE_ABSENT;
    return json_skip(&compiler->reader);
}

/* ---- anything-but ---- */

/* What a value that is excluded is compared by: itself, or what its object says. */
struct exclusion {
    const char *name; /* NULL: plain values */
    enum comparison_kind kind;
};

static const struct exclusion exclusions[] = {
    {"prefix", COMPARE_PREFIX},
    {"suffix", COMPARE_SUFFIX},
    {"equals-ignore-case", COMPARE_FOLDED},
    {"wildcard", COMPARE_WILDCARD},
};

static bool make_excluded(struct compiler *compiler, const struct exclusion *by, struct slice text,
                          struct comparison *out)
{
    out->kind = by->kind;
    out->text = text;
    if (by->kind == COMPARE_FOLDED) return make_folded(compiler, by->kind, text, out);
    if (by->kind == COMPARE_WILDCARD) return make_wildcard(compiler, text, out);
    if (text.len == 0 && by->kind != COMPARE_TEXT)
        return compile_fail(compiler, "Null prefix/suffix not allowed");
    return true;
}

static bool read_excluded(struct compiler *compiler, const struct exclusion *by, struct comparison *out)
{
    struct slice text;
    enum json_kind kind = json_peek(&compiler->reader);
    if (kind == JSON_NUMBER && !by->name) {
        if (!json_number(&compiler->reader, &text)) return false;
        make_number(text, out);
        return true;
    }
    if (kind != JSON_STRING)
        return compile_fail(compiler, "Inside anything-but, only %s are supported",
                            by->name ? "strings" : "strings and numbers");
    return json_string(&compiler->reader, &text) && make_excluded(compiler, by, text, out);
}

static bool exclude(struct compiler *compiler, const struct exclusion *by, struct comparison *out)
{
    struct comparison one = {0};
    if (!read_excluded(compiler, by, &one)) return false;
    if ((out->excluded_count & (out->excluded_count - 1)) == 0) {
        uint32_t room = out->excluded_count ? out->excluded_count * 2 : 1;
        struct comparison *grown = arena_array(compiler->arena, struct comparison, room);
        if (out->excluded_count) memcpy(grown, out->excluded, out->excluded_count * sizeof *grown);
        out->excluded = grown;
    }
    out->excluded[out->excluded_count++] = one;
    if ((one.kind == COMPARE_RANGE) != (out->excluded[0].kind == COMPARE_RANGE))
        return compile_fail(compiler, "Inside an anything-but list, either all values are numbers or all are "
                                      "strings, mixed types are not supported");
    return true;
}

static bool read_exclusions(struct compiler *compiler, const struct exclusion *by, struct comparison *out)
{
    if (json_peek(&compiler->reader) != JSON_ARRAY) return exclude(compiler, by, out);
    json_enter(&compiler->reader);
    while (json_element(&compiler->reader))
        if (!exclude(compiler, by, out)) return false;
    if (json_failed(&compiler->reader)) return false;
    return out->excluded_count > 0 || compile_fail(compiler, "Empty arrays are not allowed");
}

static bool read_anything_but(struct compiler *compiler, struct comparison *out)
{
    static const struct exclusion plain = {NULL, COMPARE_TEXT};
    out->kind = COMPARE_NONE_OF;
    if (json_peek(&compiler->reader) != JSON_OBJECT) return read_exclusions(compiler, &plain, out);
    struct slice name;
    json_enter(&compiler->reader);
    if (!json_member(&compiler->reader, &name))
        return compile_fail(compiler, "Anything-But expression name not found");
    for (size_t i = 0; i < sizeof exclusions / sizeof *exclusions; i++)
        if (slice_equal(name, slice_of(exclusions[i].name)))
            return read_exclusions(compiler, &exclusions[i], out) && read_end(compiler);
    return compile_fail(compiler, "Unsupported anything-but pattern: %.*s", SLICE_ARG(name));
}

/* ---- the comparison ---- */

static bool read_exactly(struct compiler *compiler, struct comparison *out)
{
    struct slice text;
    if (!read_text(compiler, "exactly", &text)) return false;
    make_text(text, out);
    return true;
}

static bool read_prefix(struct compiler *compiler, struct comparison *out)
{
    return read_end_of_text(compiler, "prefix", COMPARE_PREFIX, COMPARE_FOLDED_PREFIX, out);
}

static bool read_suffix(struct compiler *compiler, struct comparison *out)
{
    return read_end_of_text(compiler, "suffix", COMPARE_SUFFIX, COMPARE_FOLDED_SUFFIX, out);
}

static bool read_ignoring_case(struct compiler *compiler, struct comparison *out)
{
    struct slice text;
    return read_text(compiler, "equals-ignore-case", &text) &&
           make_folded(compiler, COMPARE_FOLDED, text, out);
}

static bool read_wildcard(struct compiler *compiler, struct comparison *out)
{
    struct slice text;
    return read_text(compiler, "wildcard", &text) && make_wildcard(compiler, text, out);
}

static bool read_expression(struct compiler *compiler, struct comparison *out)
{
    static const struct {
        const char *name;
        bool (*read)(struct compiler *compiler, struct comparison *out);
    } expressions[] = {
        {"exactly", read_exactly},   {"prefix", read_prefix},
        {"suffix", read_suffix},     {"equals-ignore-case", read_ignoring_case},
        {"numeric", read_numeric},   {"anything-but", read_anything_but},
        {"wildcard", read_wildcard}, {"exists", read_exists},
        {"cidr", read_cidr},
    };
    struct slice name;
    json_enter(&compiler->reader);
    if (!json_member(&compiler->reader, &name))
        return compile_fail(compiler, "Match expression name not found");
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++)
        if (slice_equal(name, slice_of(expressions[i].name)))
            return expressions[i].read(compiler, out) && read_end(compiler);
    return compile_fail(compiler, "Unrecognized match type %.*s", SLICE_ARG(name));
}

bool comparison_read(struct compiler *compiler, struct comparison *out)
{
    struct slice text;
    *out = (struct comparison){0};
    enum json_kind kind = json_peek(&compiler->reader);
    switch (kind) {
    case JSON_OBJECT: return read_expression(compiler, out);
    case JSON_STRING:
        if (!json_string(&compiler->reader, &text)) return false;
        make_text(text, out);
        return true;
    case JSON_NUMBER:
        if (!json_number(&compiler->reader, &text)) return false;
        make_number(text, out);
        return true;
    case JSON_NULL:
    case JSON_TRUE:
    case JSON_FALSE:
        out->kind = COMPARE_WORD;
        out->word = kind;
        return json_skip(&compiler->reader);
    default: return compile_fail(compiler, "Match value must be String, number, true, false, or null");
    }
}
