/* Texts compared without regard to case, by code points: the two cases of a letter may differ in bytes and
 * even in their number.
 *
 * The C library knows the letters, in a locale of our own that has nothing to do with the user's; where it
 * has no such locale, only ASCII letters have cases. */
#include <locale.h>
#include <pthread.h>
#include <wctype.h>

#include "match/internal.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t letters;

static void letters_open(void)
{
    letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Up and then down, so that letters with two small forms (the Greek sigma) become one. */
static uint32_t fold_point(uint32_t point)
{
    if (point < 0x80) return point >= 'A' && point <= 'Z' ? point + 32 : point;
    pthread_once(&once, letters_open);
    if (letters == (locale_t)0) return point;
    return (uint32_t)towlower_l(towupper_l((wint_t)point, letters), letters);
}

static uint32_t point_next(const char **at)
{
    const unsigned char *bytes = (const unsigned char *)*at;
    if (bytes[0] < 0x80) {
        *at += 1;
        return bytes[0];
    }
    if (bytes[0] < 0xe0) {
        *at += 2;
        return (bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu);
    }
    if (bytes[0] < 0xf0) {
        *at += 3;
        return (bytes[0] & 0x0fu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu);
    }
    *at += 4;
    return (bytes[0] & 7u) << 18 | (bytes[1] & 0x3fu) << 12 | (bytes[2] & 0x3fu) << 6 | (bytes[3] & 0x3fu);
}

struct folded fold_text(struct arena *arena, struct slice text)
{
    struct folded folded = {arena_array(arena, uint32_t, text.len), 0};
    for (const char *at = text.data, *end = at + text.len; at < end;)
        folded.points[folded.count++] = fold_point(point_next(&at));
    return folded;
}

/* True when the text begins so; *rest is where it goes on. */
static bool begins(const struct folded *wanted, struct slice text, const char **rest)
{
    const char *at = text.data, *end = at + text.len;
    for (size_t i = 0; i < wanted->count; i++)
        if (at == end || fold_point(point_next(&at)) != wanted->points[i]) return false;
    *rest = at;
    return true;
}

bool folded_equals(const struct folded *wanted, struct slice text)
{
    const char *rest;
    return begins(wanted, text, &rest) && rest == text.data + text.len;
}

bool folded_begins(const struct folded *wanted, struct slice text)
{
    const char *rest;
    return begins(wanted, text, &rest);
}

bool folded_ends(const struct folded *wanted, struct slice text)
{
    const char *end = text.data + text.len;
    for (size_t i = wanted->count; i-- > 0;) {
        if (end == text.data) return false;
        do end--;
        while (((unsigned char)*end & 0xc0) == 0x80);
        const char *at = end;
        if (fold_point(point_next(&at)) != wanted->points[i]) return false;
    }
    return true;
}
