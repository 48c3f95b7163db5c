/* The slice functions that are not worth inlining. */
#include "base/slice.h"

struct slice slice_cut(struct slice *rest, char end)
{
    const char *found = rest->len ? memchr(rest->data, end, rest->len) : NULL;
    struct slice before = {rest->data, found ? (size_t)(found - rest->data) : rest->len};
    *rest = slice_from(*rest, before.len + (found != NULL));
    return before;
}

bool slice_contains(struct slice text, struct slice part)
{
    if (part.len == 0) return true;
    if (text.len < part.len) return false;
    return memmem(text.data, text.len, part.data, part.len) != NULL;
}

struct slice slice_behind(struct slice text, struct slice part)
{
    const char *found = text.len ? memmem(text.data, text.len, part.data, part.len) : NULL;
    return found ? slice_from(text, (size_t)(found - text.data) + part.len) : SLICE_NONE;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool slice_equal_ignoring_case(struct slice a, struct slice b)
{
    if (a.len != b.len) return false;
    if (a.len == 0 || memcmp(a.data, b.data, a.len) == 0) return true; /* most are written as they are known */
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.data[i]) != lower(b.data[i])) return false;
    return true;
}

bool slice_to_u64(struct slice text, unsigned long long max, unsigned long long *out)
{
    unsigned long long value = 0;
    if (text.len == 0) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c < '0' || c > '9') return false;
        unsigned digit = (unsigned)(c - '0');
        if (value > (max - digit) / 10) return false;
        value = value * 10 + digit;
    }
    if (value > max) return false;
    *out = value;
    return true;
}
