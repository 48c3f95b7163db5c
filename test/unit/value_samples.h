/* Random values for the property tests of this room: small alphabets and near neighbours, so that the corners
 * (equal beginnings, zero bytes, one digit of difference, duplicates) come up all the time. */
#ifndef TEST_UNIT_VALUE_SAMPLES_H
#define TEST_UNIT_VALUE_SAMPLES_H

#include "base/random.h"
#include "unit/test.h"
#include "value/value.h"

/* Canonical text of a number of any length, exponent and sign. */
struct slice sample_number(struct arena *arena, struct random *random);
struct slice sample_bytes(struct arena *arena, struct random *random);
/* S, N or B. */
struct value sample_key(struct arena *arena, struct random *random, enum value_type type);
/* One that differs little from it, or not at all. */
struct value sample_neighbour(struct arena *arena, struct random *random, const struct value *value);
/* Any value, with lists and maps down to so many levels. */
struct value sample_value(struct arena *arena, struct random *random, unsigned levels);
struct map sample_map(struct arena *arena, struct random *random, unsigned levels);

#endif
