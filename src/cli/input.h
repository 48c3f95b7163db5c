/* What people give in files and on standard input, whole. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "base/buf.h"

/* All of a file, of at most so many bytes; NULL: standard input. False after complaining. */
bool input_read(const char *name, size_t most_bytes, struct buf *out);
/* The same for "@FILE" and "-"; any other text as it is. */
bool input_take(const char *text, size_t most_bytes, struct buf *out);

#endif
