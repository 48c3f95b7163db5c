/* A value ends with the line in which the last of its brackets closes. So files of one value a line are read
 * line by line, and one that was laid out for people is read too. The limits are checked byte by byte: of an
 * endless line no more is kept than a value may have. */
#include "cli/values.h"

#include <errno.h>

#include "base/limits.h"

void values_begin(struct values *values, FILE *file)
{
    *values = (struct values){.file = file};
}

void values_end(struct values *values)
{
    buf_free(&values->text);
}

struct brackets {
    unsigned depth;
    bool in_string, is_escaped;
    size_t values; /* no fewer than there are: each but the first follows a bracket or a comma */
};

static void follow(struct brackets *brackets, char c)
{
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
        brackets->values++;
    } else if (c == ',') {
        brackets->values++;
    } else if ((c == '}' || c == ']') && brackets->depth) {
        brackets->depth--;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct slice without_space_behind(struct slice text)
{
    while (text.len && is_space(text.data[text.len - 1])) text.len--;
    return text;
}

enum values_result values_next(struct values *values, struct slice *out)
{
    struct brackets brackets = {0};
    struct buf *text = &values->text;
    int next;
    text->len = 0;
    errno = 0;
    while ((next = getc_unlocked(values->file)) != EOF) {
        char c = (char)next;
        bool ends_line = c == '\n';
        if (text->len || !is_space(c)) {
            if (!text->len) values->line = values->lines_ended + 1;
            if (text->len == LIMIT_LOAD_VALUE_BYTES) return VALUES_TOO_LONG;
            buf_byte(text, (unsigned char)c);
            follow(&brackets, c);
            if (brackets.values > LIMIT_LOAD_VALUES) return VALUES_TOO_MANY;
        }
        values->lines_ended += ends_line;
        if (ends_line && text->len && !brackets.depth && !brackets.in_string) break;
    }
    if (!text->len) values->line = values->lines_ended + 1;
    if (next == EOF && ferror(values->file)) return VALUES_UNREADABLE;
    *out = without_space_behind(buf_view(text));
    if (!out->len) return VALUES_END;
    return brackets.depth || brackets.in_string ? VALUES_CUT : VALUES_FOUND;
}

#define MEGABYTES(bytes) ((bytes) >> 20)

void values_put_fault(struct buf *out, enum values_result result)
{
    switch (result) {
    case VALUES_FOUND:
    case VALUES_END: return;
    case VALUES_CUT: buf_text(out, "the value that begins here has no end"); return;
    case VALUES_TOO_LONG:
        buf_printf(out, "this value is longer than %d MB, which no item needs",
                   MEGABYTES(LIMIT_LOAD_VALUE_BYTES));
        return;
    case VALUES_TOO_MANY:
        buf_printf(out, "this has more than %d values, which no item can hold", LIMIT_LOAD_VALUES);
        return;
    case VALUES_UNREADABLE: buf_printf(out, "this cannot be read: %m"); return;
    }
}
