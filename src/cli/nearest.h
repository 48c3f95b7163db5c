/* Which name was probably meant: for "did you mean" behind a name that is not known. */
#ifndef CLI_NEAREST_H
#define CLI_NEAREST_H

#include "base/slice.h"

/* The search among several names, begun with {0}. */
struct nearest {
    const char *name; /* the best so far; NULL: nothing is close enough */
    size_t distance;
};

/* A candidate: taken when it is close to what was typed, and closer than those before it. */
void nearest_try(struct nearest *nearest, struct slice typed, const char *name);

#endif
