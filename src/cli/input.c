/* Reading whole files. */
#include "cli/input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define READ_BYTES 65536

bool input_read(const char *name, size_t most_bytes, struct buf *out)
{
    FILE *file = name ? fopen(name, "re") : stdin;
    const char *what = name ? name : "standard input";
    size_t got;
    if (!file) return complain("%s cannot be read: %s", name, strerror(errno)), false;
    do {
        buf_reserve(out, READ_BYTES);
        got = fread(out->data + out->len, 1, READ_BYTES, file);
        out->len += got;
    } while (got && out->len <= most_bytes);
    bool is_broken = ferror(file) != 0;
    if (name) fclose(file);
    if (is_broken) return complain("%s cannot be read", what), false;
    if (out->len > most_bytes) return complain("%s is larger than %zu MB", what, most_bytes >> 20), false;
    return true;
}

bool input_take(const char *text, size_t most_bytes, struct buf *out)
{
    if (strcmp(text, "-") == 0) return input_read(NULL, most_bytes, out);
    if (text[0] == '@') return input_read(text + 1, most_bytes, out);
    buf_slice(out, slice_of(text));
    return true;
}
