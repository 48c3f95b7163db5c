/* A line is one write, so that lines of several threads do not mix. Control characters are shown escaped: what a
 * client or a function chose must not move a terminal's cursor or look like another line. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LOG_LINE_MAX 2048
#define ESCAPED_MAX  4 /* bytes that one byte becomes */

size_t log_escape(char *out, size_t room, const char *text, size_t len)
{
    size_t used = 0;
    for (size_t i = 0; i < len && room - used >= 2 * ESCAPED_MAX; i++) {
        unsigned char byte = (unsigned char)text[i], next = i + 1 < len ? (unsigned char)text[i + 1] : 0;
        if (byte == 0xc2 && next >= 0x80 && next < 0xa0) { /* terminals know these controls, too, in UTF-8 */
            used += (size_t)sprintf(out + used, "\\x%02x", next);
            i++;
        } else if (byte < 0x20 || byte == 0x7f) {
            used += (size_t)(byte == '\n'   ? sprintf(out + used, "\\n")
                             : byte == '\t' ? sprintf(out + used, "\\t")
                                            : sprintf(out + used, "\\x%02x", byte));
        } else {
            out[used++] = (char)byte;
        }
    }
    return used;
}

void log_line(const char *format, ...)
{
    char text[LOG_LINE_MAX], line[LOG_LINE_MAX + 16] = "quipu: ";
    size_t used = 7;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0) return;
    used += log_escape(line + used, sizeof line - used - 1, text,
                       (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
    line[used++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
}
