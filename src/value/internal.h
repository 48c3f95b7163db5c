/* What the files of this room share and nobody else sees: the decimal digits of a number as bytes, and
 * small numbers. */
#ifndef VALUE_INTERNAL_H
#define VALUE_INTERNAL_H

#include "base/limits.h"
#include "value/value.h"

/* A number taken apart into digits: first digit times 10^lead, no zero at either end; count 0 is zero. */
struct decimal {
    unsigned char digits[LIMIT_NUMBER_DIGITS]; /* 0..9 each */
    unsigned count;
    int lead;
    bool negative;
};

/* Writes the canonical text into the arena. */
struct slice decimal_text(struct arena *arena, const struct decimal *decimal);
/* Takes canonical text apart. */
void decimal_from_text(struct slice canonical, struct decimal *out);
/* True when the bytes are the canonical text of a number: what V1 asks of stored bytes. */
bool number_is_canonical(struct slice text);

#define SMALL_DIGITS 9 /* of numbers that are read and compared at once */

/* Canonical text of a few digits and nothing else: counters, and members of most sets. */
static inline bool small_whole(struct slice text, uint32_t *out)
{
    if (text.len == 0 || text.len > SMALL_DIGITS || (text.data[0] == '0' && text.len > 1)) return false;
    uint32_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint32_t digit = (uint32_t)(unsigned char)text.data[i] - '0';
        if (digit > 9) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

#endif
