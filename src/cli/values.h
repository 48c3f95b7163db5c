/* JSON values read from a file one after the other, each on a line or over several. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include <stdio.h>

#include "base/buf.h"

enum values_result {
    VALUES_FOUND,
    VALUES_END,
    VALUES_CUT,        /* the file ends within a value */
    VALUES_TOO_LONG,   /* LIMIT_LOAD_VALUE_BYTES */
    VALUES_TOO_MANY,   /* LIMIT_LOAD_VALUES */
    VALUES_UNREADABLE, /* errno says why */
};

struct values {
    FILE *file;
    struct buf text;
    unsigned long long line; /* where the last value begins, from 1 */
    unsigned long long lines_ended;
};

void values_begin(struct values *values, FILE *file);
/* The next value's text, without the space around it; lives until the next call. What is not JSON is found by
 * its reader: here only quotes and brackets are followed. After anything but VALUES_FOUND there is no next. */
enum values_result values_next(struct values *values, struct slice *out);
void values_end(struct values *values);
/* What is wrong, as the end of "FILE, line N: ": call it before errno changes. */
void values_put_fault(struct buf *out, enum values_result result);

#endif
