/* A value ends with the line in which the last of its brackets closes. So files of one value a line are read
 * line by line, and one that was laid out for people is read too. */
#include "cli/values.h"

#include <stdlib.h>

#include "base/limits.h"

#define VALUE_BYTES_MAX LIMIT_BODY_BYTES /* no item needs more: the service's request limit */

void values_begin(struct values *values, FILE *file)
{
    *values = (struct values){.file = file};
}

void values_end(struct values *values)
{
    free(values->line_text);
    buf_free(&values->text);
}

struct brackets {
    unsigned depth;
    bool in_string, is_escaped;
};

static void follow(struct brackets *brackets, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (brackets->in_string) {
            if (brackets->is_escaped)
                brackets->is_escaped = false;
            else if (c == '\\')
                brackets->is_escaped = true;
            else if (c == '"')
                brackets->in_string = false;
        } else if (c == '"') {
            brackets->in_string = true;
        } else if (c == '{' || c == '[') {
            brackets->depth++;
        } else if ((c == '}' || c == ']') && brackets->depth) {
            brackets->depth--;
        }
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct slice trim(struct slice text)
{
    while (text.len && is_space(text.data[text.len - 1])) text.len--;
    while (text.len && is_space(text.data[0])) text = slice_from(text, 1);
    return text;
}

enum values_result values_next(struct values *values, struct slice *out)
{
    struct brackets brackets = {0};
    ssize_t len;
    values->text.len = 0;
    while ((len = getline(&values->line_text, &values->line_room, values->file)) >= 0) {
        struct slice line = {values->line_text, (size_t)len};
        values->line++;
        follow(&brackets, line);
        buf_slice(&values->text, line);
        if (values->text.len > VALUE_BYTES_MAX) return VALUES_TOO_LONG;
        *out = trim(buf_view(&values->text));
        if (out->len && !brackets.depth && !brackets.in_string) return VALUES_FOUND;
    }
    *out = trim(buf_view(&values->text));
    return out->len ? VALUES_CUT : VALUES_END;
}
