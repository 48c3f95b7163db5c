/* A slice points at bytes that somebody else owns. It never owns and is passed by value. */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *data;
    size_t len;
};

#define SLICE(literal)   ((struct slice){"" literal, sizeof(literal) - 1})
#define SLICE_NONE       ((struct slice){NULL, 0})
#define SLICE_ARG(slice) (int)(slice).len, (slice).data /* for "%.*s" */

static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* Bytewise order, the shorter first where one begins the other. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared ? memcmp(a.data, b.data, shared) : 0;
    if (order != 0) return order;
    return (a.len > b.len) - (a.len < b.len);
}

static inline bool slice_starts(struct slice text, struct slice prefix)
{
    return text.len >= prefix.len && (prefix.len == 0 || memcmp(text.data, prefix.data, prefix.len) == 0);
}

static inline struct slice slice_from(struct slice text, size_t start)
{
    return (struct slice){text.data + start, text.len - start};
}

/* Without blanks, tabs and line ends around it. */
static inline struct slice slice_trim(struct slice text)
{
    while (text.len && memchr(" \t\r\n", text.data[0], 4)) text = slice_from(text, 1);
    while (text.len && memchr(" \t\r\n", text.data[text.len - 1], 4)) text.len--;
    return text;
}

/* What stands before the first such byte, or all; *rest goes on behind the byte. */
struct slice slice_cut(struct slice *rest, char end);
bool slice_contains(struct slice text, struct slice part);
/* What stands behind the first such part; SLICE_NONE: there is none. */
struct slice slice_behind(struct slice text, struct slice part);
bool slice_equal_ignoring_case(struct slice a, struct slice b);
/* A whole decimal number without sign; false when it is not one or exceeds max. */
bool slice_to_u64(struct slice text, unsigned long long max, unsigned long long *out);

#endif
