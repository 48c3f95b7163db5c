/* A line is one write, so that lines of several threads do not mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LOG_LINE_MAX 2048

void log_line(const char *format, ...)
{
    char line[LOG_LINE_MAX] = "quipu: ";
    size_t used = 7;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line + used, sizeof line - used - 1, format, args);
    va_end(args);
    if (len < 0) return;
    used += (size_t)len < sizeof line - used - 1 ? (size_t)len : sizeof line - used - 2;
    line[used++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, used);
    (void)written;
}
