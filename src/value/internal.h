/* What the files of this room share and nobody else sees: the decimal digits of a number as bytes. */
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

#endif
