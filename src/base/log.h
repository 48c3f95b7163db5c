/* One line per event on standard error, "quipu: " first, for what a person running the server must know. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stddef.h>

void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes the text with its control characters as \\n, \\t and \\xNN, as much of it as there is room for; its length.
 */
size_t log_escape(char *out, size_t room, const char *text, size_t len);

#endif
