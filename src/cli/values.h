/* JSON values read from a file one after the other, each on a line or over several. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include <stdio.h>

#include "base/buf.h"

enum values_result { VALUES_FOUND, VALUES_END, VALUES_CUT, VALUES_TOO_LONG };

struct values {
    FILE *file;
    struct buf text;
    char *line_text;
    size_t line_room;
    unsigned long long line; /* number of the last line of the value */
};

void values_begin(struct values *values, FILE *file);
/* The next value's text, without the space around it; lives until the next call. What is not JSON is found by
 * its reader: here only quotes and brackets are followed. */
enum values_result values_next(struct values *values, struct slice *out);
void values_end(struct values *values);

#endif
